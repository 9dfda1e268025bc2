//! What do the parts of one remote segment tell of it, and what is wrong with them?

use std::ops::ControlFlow;

use super::inventory::RemoteParts;
use super::layout::{ObjectLayout, SegmentPart};
use super::object_source::ObjectSource;
use super::remote_segment::{RemoteSegment, RemoteSegmentState};
use super::target::{ObjectTarget, get_exact};
use crate::error::{Error, Kind, Result};
use crate::index::{OffsetEntries, TimeEntries, TxnEntries};
use crate::io::Source;
use crate::problem::{Code, Problem, Severity};
use crate::record::scan::{ScanEnd, ScannedBatch, scan};
use crate::segment::damage;
use crate::state::checkpoint::parse_epochs;
use crate::state::{EpochEntry, LeaderEpochs, Snapshot};
use crate::units::{NO_TIMESTAMP, is_addressable};

/// No side part is larger.
const PART_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a log that are fetched at a time. The tail behind the last index entry fits as a rule.
const WINDOW_BYTES: usize = 1 << 20;

/// What was read of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentReading {
    /// The segment, as far as its parts tell: nobody is said to have uploaded it (-1), at no time
    /// (-1), and with no metadata of the store's own. It is said to be copied as long as no part is
    /// missing. `None` when not even the log tells its end.
    pub segment: Option<RemoteSegment>,
    /// What is missing or wrong; a file is named by its whole name.
    pub problems: Vec<Problem>,
}

/// Reads the parts of a segment; unless `checks`, those alone that tell something of it.
pub(super) fn read_segment(
    target: &dyn ObjectTarget,
    layout: &ObjectLayout,
    parts: &RemoteParts,
    checks: bool,
) -> Result<SegmentReading> {
    let mut reader = Reader { target, layout, parts, checks, problems: Vec::new(), is_whole: true };
    let segment = reader.segment()?;
    Ok(SegmentReading { segment, problems: reader.problems })
}

struct Reader<'a> {
    target: &'a dyn ObjectTarget,
    layout: &'a ObjectLayout,
    parts: &'a RemoteParts,
    /// Whether parts are looked into for what is wrong with them alone.
    checks: bool,
    problems: Vec<Problem>,
    /// Whether no part was missing.
    is_whole: bool,
}

/// What the offset index says of the log's tail.
#[derive(Clone, Copy, Debug, Default)]
struct Tail {
    position: u64,
    /// The last offset of the batch there, or of one behind it that was appended with it.
    last_offset: Option<i64>,
}

/// What the batches of a log tell, from some of them on.
#[derive(Debug)]
struct LogFacts {
    last_offset: i64,
    max_timestamp_ms: i64,
    /// Of the batches that were looked at.
    epochs: LeaderEpochs,
}

impl Reader<'_> {
    fn segment(&mut self) -> Result<Option<RemoteSegment>> {
        let start_offset = self.parts.start_offset;
        let size_bytes = self.log_size();
        let tail = self.offset_index(size_bytes.map_or(u64::MAX, |it| it.0))?;
        let timestamp = self.time_index()?;
        let epochs = self.leader_epochs()?;
        let is_txn_index_empty = self.transaction_index()?;
        self.producer_snapshot()?;
        let Some((log_bytes, size_bytes)) = size_bytes else { return Ok(None) };
        let is_enough = timestamp.is_some() && epochs.is_some();
        let tail = tail.filter(|_| is_enough).unwrap_or_default();
        let Some(facts) = self.log(log_bytes, tail)? else { return Ok(None) };
        let leader_epochs = self.epochs_within(&facts, epochs, log_bytes)?;
        let segment = RemoteSegment {
            id: self.parts.id.clone(),
            start_offset,
            end_offset: facts.last_offset,
            max_timestamp_ms: facts.max_timestamp_ms.max(timestamp.unwrap_or(NO_TIMESTAMP)),
            broker_id: -1,
            event_timestamp_ms: -1,
            size_bytes,
            custom_metadata: None,
            state: match self.is_whole {
                true => RemoteSegmentState::CopyFinished,
                false => RemoteSegmentState::CopyStarted,
            },
            leader_epochs,
            is_txn_index_empty,
        };
        if let Err(error) = segment.check() {
            let (part, why) = (SegmentPart::LeaderEpochs, error.message().to_owned());
            self.report(part, Code::EpochMissing, Severity::Corrupt, None, why);
            return Ok(None);
        }
        Ok(Some(segment))
    }

    /// The bytes of the log; `None` when it is not there or cannot be one.
    fn log_size(&mut self) -> Option<(u64, i32)> {
        let Some(bytes) = self.parts.size_bytes(SegmentPart::Log) else {
            self.missing(SegmentPart::Log);
            return None;
        };
        let Ok(size_bytes) = i32::try_from(bytes) else {
            let why = format!("a segment of {bytes} bytes: no position reaches that far");
            self.report(SegmentPart::Log, Code::BadLength, Severity::Corrupt, None, why);
            return None;
        };
        Some((bytes, size_bytes))
    }

    /// The epochs within the segment: those of the checkpoint, if they end with that of the last
    /// batches, else those of all batches.
    fn epochs_within(
        &mut self,
        facts: &LogFacts,
        checkpoint: Option<LeaderEpochs>,
        log_bytes: u64,
    ) -> Result<Vec<EpochEntry>> {
        let (start, end) = (self.parts.start_offset, facts.last_offset.saturating_add(1));
        let of_log = facts.epochs.entries_in_range(start, end);
        let Some(checkpoint) = checkpoint else { return Ok(of_log) };
        let epochs = checkpoint.entries_in_range(start, end);
        let last = |entries: &[EpochEntry]| entries.last().map(|entry| entry.epoch);
        // A log of the old formats has no epochs; then the checkpoint alone knows.
        if of_log.is_empty() || last(&epochs) == last(&of_log) {
            return Ok(epochs);
        }
        let why = "its last epoch is not that of the last batches";
        self.repairable(SegmentPart::LeaderEpochs, Code::EpochMismatch, why);
        let all = self.log(log_bytes, Tail::default())?;
        Ok(all.map(|all| all.epochs.entries_in_range(start, end)).unwrap_or_default())
    }

    /// Where the last batch that the offset index knows begins; `None` when it cannot be used.
    fn offset_index(&mut self, log_bytes: u64) -> Result<Option<Tail>> {
        let part = SegmentPart::OffsetIndex;
        let Some(bytes) = self.part(part)? else { return Ok(None) };
        let entries = OffsetEntries::new(&bytes, self.parts.start_offset);
        if let Err(error) = entries.sanity_check() {
            let is_odd = entries.stray_size_bytes() != 0;
            let code = if is_odd { Code::IndexSize } else { Code::IndexOrder };
            self.repairable(part, code, error.message());
            return Ok(None);
        }
        let Some(last) = entries.count().checked_sub(1).and_then(|slot| entries.get(slot)) else {
            return Ok(Some(Tail::default()));
        };
        match u64::try_from(last.position) {
            Ok(position) if position < log_bytes => {
                Ok(Some(Tail { position, last_offset: Some(last.offset) }))
            }
            _ => {
                let why = format!("the last entry is at {} of {log_bytes} bytes", last.position);
                self.repairable(part, Code::IndexBeyondLog, &why);
                Ok(None)
            }
        }
    }

    /// The largest timestamp that the time index knows; `None` when it cannot be used.
    fn time_index(&mut self) -> Result<Option<i64>> {
        let part = SegmentPart::TimeIndex;
        let Some(bytes) = self.part(part)? else { return Ok(None) };
        let entries = TimeEntries::new(&bytes, self.parts.start_offset);
        if let Err(error) = entries.sanity_check() {
            let is_odd = entries.stray_size_bytes() != 0;
            let code = if is_odd { Code::IndexSize } else { Code::TimeindexOrder };
            self.repairable(part, code, error.message());
            return Ok(None);
        }
        Ok(Some(entries.last().timestamp_ms).filter(|_| !entries.is_empty()))
    }

    fn leader_epochs(&mut self) -> Result<Option<LeaderEpochs>> {
        let part = SegmentPart::LeaderEpochs;
        let Some(bytes) = self.part(part)? else { return Ok(None) };
        match parse_epochs(&bytes).and_then(|entries| LeaderEpochs::from_entries(&entries)) {
            Ok(epochs) if !epochs.entries().is_empty() => Ok(Some(epochs)),
            Ok(_) => {
                self.repairable(part, Code::EpochFile, "no epoch is in it");
                Ok(None)
            }
            Err(error) => {
                self.repairable(part, Code::EpochFile, error.message());
                Ok(None)
            }
        }
    }

    /// Whether no transaction of the segment was aborted, as far as its index tells.
    fn transaction_index(&mut self) -> Result<bool> {
        let part = SegmentPart::TransactionIndex;
        let Some(size_bytes) = self.parts.size_bytes(part) else { return Ok(true) };
        if !self.checks {
            return Ok(size_bytes == 0 || size_bytes > PART_BYTES_MAX);
        }
        let Some(bytes) = self.part(part)? else { return Ok(true) };
        let entries = TxnEntries::new(&bytes);
        if entries.stray_size_bytes() != 0 {
            let why = format!("{} bytes behind the last whole entry", entries.stray_size_bytes());
            self.repairable(part, Code::TxnindexSize, &why);
        } else if let Err(error) = entries.sanity_check(self.parts.start_offset) {
            let is_version = error.kind() == Kind::Unsupported;
            let code = if is_version { Code::TxnindexVersion } else { Code::TxnindexOrder };
            self.repairable(part, code, error.message());
        }
        Ok(bytes.is_empty())
    }

    fn producer_snapshot(&mut self) -> Result<()> {
        let part = SegmentPart::ProducerSnapshot;
        if !self.checks && self.parts.size_bytes(part).is_some() {
            return Ok(());
        }
        let Some(bytes) = self.part(part)? else { return Ok(()) };
        if let Err(fault) = Snapshot::read(&bytes) {
            let position = u64::try_from(fault.position).ok();
            self.report(part, fault.code, Severity::Repairable, position, fault.detail);
        }
        Ok(())
    }

    /// What the batches from the tail on tell; from the first one on when the tail is not where the
    /// index has it.
    fn log(&mut self, log_bytes: u64, tail: Tail) -> Result<Option<LogFacts>> {
        let name = self.name(SegmentPart::Log);
        let mut source = ObjectSource::new(self.target, &name, log_bytes, WINDOW_BYTES);
        let mut walk = Walk::new(self.parts.start_offset, tail.last_offset);
        let outcome = scan(&mut source, tail.position, u64::MAX, &mut |batch: ScannedBatch<'_>| {
            Ok(walk.batch(&batch))
        });
        let end = match outcome {
            Ok(end) => end,
            Err(error) if error.kind() == Kind::NotFound => {
                self.missing(SegmentPart::Log);
                return Ok(None);
            }
            Err(error) => return Err(self.named(error, SegmentPart::Log)),
        };
        if walk.tail_offset.is_some() {
            let why = format!("no batch is at {} of the log", tail.position);
            self.repairable(SegmentPart::OffsetIndex, Code::IndexPosition, &why);
            return self.log(log_bytes, Tail::default());
        }
        self.log_problems(&mut source, end, &walk)?;
        if walk.facts.is_none() && log_bytes == 0 {
            let why = "a log without a batch".to_owned();
            self.report(SegmentPart::Log, Code::TornBatch, Severity::Corrupt, Some(0), why);
        }
        Ok(walk.facts)
    }

    fn log_problems(&mut self, source: &mut dyn Source, end: ScanEnd, walk: &Walk) -> Result<()> {
        if let Some((code, detail)) = &walk.fault {
            let (position, detail) = (Some(end.position), detail.clone());
            self.report(SegmentPart::Log, *code, Severity::Corrupt, position, detail);
            return Ok(());
        }
        let expected = walk.facts.as_ref().map_or(walk.start_offset, |facts| facts.last_offset);
        if let Some(damage) = damage::examine(source, end, walk.start_offset, expected)? {
            let (position, detail) = (Some(damage.position), damage.detail);
            self.report(SegmentPart::Log, damage.code, Severity::Corrupt, position, detail);
        }
        Ok(())
    }

    fn name(&self, part: SegmentPart) -> String {
        self.layout.name(&self.parts.id, self.parts.start_offset, part)
    }

    fn named(&self, error: Error, part: SegmentPart) -> Error {
        error.context(self.name(part))
    }

    /// The bytes of a side part. One that is not there, or not as it was listed, is a finding.
    fn part(&mut self, part: SegmentPart) -> Result<Option<Vec<u8>>> {
        let Some(size_bytes) = self.parts.size_bytes(part) else {
            self.missing(part);
            return Ok(None);
        };
        if size_bytes > PART_BYTES_MAX {
            self.repairable(part, Code::IndexSize, &format!("{size_bytes} bytes are too many"));
            return Ok(None);
        }
        match get_exact(self.target, &self.name(part), 0..size_bytes) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == Kind::NotFound => {
                self.missing(part);
                Ok(None)
            }
            Err(error) => Err(self.named(error, part)),
        }
    }

    fn missing(&mut self, part: SegmentPart) {
        self.is_whole = false;
        let is_log = part == SegmentPart::Log;
        let severity = if is_log { Severity::Corrupt } else { Severity::Repairable };
        let why = "a part that every uploaded segment has is not there".to_owned();
        self.report(part, Code::RemotePartMissing, severity, None, why);
    }

    fn repairable(&mut self, part: SegmentPart, code: Code, detail: &str) {
        self.report(part, code, Severity::Repairable, None, detail.to_owned());
    }

    fn report(
        &mut self,
        part: SegmentPart,
        code: Code,
        severity: Severity,
        position: Option<u64>,
        detail: String,
    ) {
        let file = self.name(part);
        self.problems.push(Problem { code, severity, file, position, offset: None, detail });
    }
}

/// Walks batches from a place in a log.
struct Walk {
    start_offset: i64,
    /// The last offset of a batch that is still to be met.
    tail_offset: Option<i64>,
    facts: Option<LogFacts>,
    fault: Option<(Code, String)>,
}

impl Walk {
    fn new(start_offset: i64, tail_offset: Option<i64>) -> Self {
        Walk { start_offset, tail_offset, facts: None, fault: None }
    }

    fn batch(&mut self, batch: &ScannedBatch<'_>) -> ControlFlow<()> {
        let header = batch.header;
        let (base, last) = (header.base_offset, header.last_offset());
        if let Some(tail_offset) = self.tail_offset {
            if base < self.start_offset || last > tail_offset {
                return ControlFlow::Break(());
            }
            self.tail_offset = (last < tail_offset).then_some(tail_offset);
        }
        let least = self.facts.as_ref().map_or(self.start_offset, |it| it.last_offset + 1);
        if base < least || last < base {
            self.fault = Some((
                Code::OffsetOrder,
                format!("a batch of the offsets {base} to {last}, expected from {least} on"),
            ));
            return ControlFlow::Break(());
        }
        if !is_addressable(self.start_offset, last) || last == i64::MAX {
            let why = format!("offset {last} is too far from the start {}", self.start_offset);
            self.fault = Some((Code::OffsetOverflow, why));
            return ControlFlow::Break(());
        }
        let facts = self.facts.get_or_insert_with(|| LogFacts {
            last_offset: last,
            max_timestamp_ms: NO_TIMESTAMP,
            epochs: LeaderEpochs::new(),
        });
        facts.last_offset = last;
        facts.max_timestamp_ms = facts.max_timestamp_ms.max(header.max_timestamp);
        // It fails for a negative offset alone, which no batch from the start on has.
        facts.epochs.assign_recovered(header.leader_epoch, base).ok();
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BatchHeader;
    use crate::record::builder::BatchOptions;
    use crate::record::builder::samples::batch_of_one;

    /// A walk over batches of one record at these offsets.
    fn walked(tail_offset: Option<i64>, offsets: &[i64]) -> Walk {
        let mut walk = Walk::new(5, tail_offset);
        for base_offset in offsets {
            let options = BatchOptions { base_offset: *base_offset, ..BatchOptions::default() };
            let bytes = batch_of_one(options, 0, b"value");
            let header = BatchHeader::parse(&bytes).unwrap();
            if walk.batch(&ScannedBatch { header: &header, position: 0, bytes: &bytes }).is_break()
            {
                break;
            }
        }
        walk
    }

    #[test]
    fn the_tail_is_where_a_batch_or_one_appended_with_it_ends_at_the_offset_of_the_index() {
        for tail_offset in [None, Some(7), Some(8), Some(9)] {
            let walk = walked(tail_offset, &[7, 8, 9]);
            let last = walk.facts.map(|facts| facts.last_offset);
            assert_eq!((walk.tail_offset, last), (None, Some(9)), "{tail_offset:?}");
        }
        // Behind it, before it, between two batches, before the segment.
        for (tail_offset, offsets) in
            [(6, &[7, 8][..]), (9, &[7, 8]), (8, &[7, 9]), (7, &[4, 5, 6, 7])]
        {
            let walk = walked(Some(tail_offset), offsets);
            assert_eq!(walk.tail_offset, Some(tail_offset), "{offsets:?}");
            assert_eq!(walk.fault, None, "{offsets:?}");
        }
    }
}
