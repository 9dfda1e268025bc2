//! Which transactions are open in a partition, and which were aborted?
//!
//! The open ones come from the newest producer snapshot that can be read and the batches behind it,
//! or from all batches; the aborted ones from the transaction indexes, or from all markers. Nothing
//! is written.

use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::index::{AbortedTxn, TxnEntries};
use crate::io::{MapMode, OpenMode, Reader, Storage};
use crate::log::facts::LogFacts;
use crate::log::progress::Progress;
use crate::problem::{Code, Problem, Severity};
use crate::record::control::parse_control;
use crate::record::scan::{ScannedBatch, scan};
use crate::segment::{FileRole, damage};
use crate::state::{ProducerEvent, ReplayState, Snapshot};

/// Bytes of a log that are looked at in one piece.
const WINDOW_BYTES: usize = 1 << 20;
/// No snapshot or transaction index is larger.
const SIDE_FILE_BYTES_MAX: u64 = 1 << 30;

/// A transaction that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Its producer.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// Its first offset in this partition.
    pub first_offset: i64,
    /// The largest timestamp of its first batch in milliseconds, where that batch could be read.
    pub started_ms: Option<i64>,
    /// The producer's last offset in this partition.
    pub last_offset: i64,
    /// The producer's last timestamp in milliseconds.
    pub last_timestamp_ms: i64,
}

/// The transactions of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transactions {
    /// Those that have not ended, first offsets rising.
    pub open: Vec<OpenTransaction>,
    /// Those that were aborted and whose indexes are still there, last offsets rising.
    pub aborted: Vec<AbortedTxn>,
    /// The offset behind the last whole batch.
    pub end_offset: i64,
    /// Where the last stable offset is once all of the log is replicated.
    pub last_stable_offset: i64,
    /// The snapshot that was begun with; `None` where all batches were read.
    pub from_snapshot: Option<i64>,
    /// What stood in the way; behind damage nothing was read.
    pub problems: Vec<Problem>,
}

/// Reads the transactions of the partition in `dir`: with `from_start` from all of its batches,
/// else from snapshot and indexes.
pub fn read_transactions(
    storage: &dyn Storage,
    dir: &Path,
    from_start: bool,
    maps: MapMode,
    progress: &dyn Progress,
) -> Result<Transactions> {
    read_before(storage, dir, i64::MAX, from_start, maps, progress)
}

/// The same as if the log ended at `until`: what is decided behind it is open.
pub(crate) fn read_before(
    storage: &dyn Storage,
    dir: &Path,
    until: i64,
    from_start: bool,
    maps: MapMode,
    progress: &dyn Progress,
) -> Result<Transactions> {
    let facts = LogFacts::read(storage, dir)?;
    let mut found =
        Transactions { problems: facts.unreadable_problems(), ..Transactions::default() };
    let mut state = ReplayState::new();
    let mut start = facts.segments.first().map_or(0, |segment| segment.base_offset);
    found.end_offset = start;
    if !from_start && let Some(end) = facts.read_end(storage, maps)? {
        let end_offset = end.end_offset.min(until);
        if let Some((offset, from)) = newest_snapshot(storage, &facts, end_offset, &mut found) {
            (start, state) = (offset, from);
            found.from_snapshot = Some(offset);
        }
        found.end_offset = found.end_offset.max(start);
        read_indexes(storage, &facts, &mut found)?;
    }
    let mut replay =
        Replay { storage, facts: &facts, state, start, until, from_start, maps, found: &mut found };
    replay.run(progress)?;
    let state = replay.state;
    for (first_offset, producer_id) in state.ongoing() {
        let Some(entry) = state.producers().get(producer_id) else { continue };
        let first = facts.find_batch(storage, first_offset, maps)?;
        let first = first.filter(|(batch, _)| batch.producer_id == producer_id);
        found.open.push(OpenTransaction {
            producer_id,
            producer_epoch: entry.producer_epoch,
            first_offset,
            started_ms: first.map(|(batch, _)| batch.max_timestamp),
            last_offset: entry.last_offset,
            last_timestamp_ms: entry.last_timestamp,
        });
    }
    found.last_stable_offset = state.first_undecided_offset().unwrap_or(found.end_offset);
    Ok(found)
}

/// The newest snapshot that can be read and does not lie behind the end of the log.
fn newest_snapshot(
    storage: &dyn Storage,
    facts: &LogFacts,
    end_offset: i64,
    found: &mut Transactions,
) -> Option<(i64, ReplayState)> {
    let first = facts.segments.first()?.base_offset;
    for (offset, _) in facts.snapshots.iter().rev() {
        if !(first..=end_offset).contains(offset) {
            continue;
        }
        let name = facts.name_of(*offset, FileRole::Snapshot);
        let bytes = match storage.read(&facts.dir.join(&name), SIDE_FILE_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) => {
                found.problems.push(problem(Code::Unreadable, name, error.to_string()));
                continue;
            }
        };
        match Snapshot::read(&bytes) {
            // Whether a producer is expired does not matter to its open transaction.
            Ok(snapshot) => {
                return Some((*offset, ReplayState::from_snapshot(&snapshot, 0, i64::MAX)));
            }
            Err(fault) => found.problems.push(problem(fault.code, name, fault.detail)),
        }
    }
    None
}

/// Reads the aborted transactions of all segments from their indexes.
fn read_indexes(storage: &dyn Storage, facts: &LogFacts, found: &mut Transactions) -> Result<()> {
    for segment in &facts.segments {
        if segment.txn_index_size_bytes.is_none() {
            continue;
        }
        let name = facts.name_of(segment.base_offset, FileRole::TxnIndex);
        let bytes = match storage.read(&facts.dir.join(&name), SIDE_FILE_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => continue,
            other => other?,
        };
        let entries = TxnEntries::new(&bytes);
        if let Err(error) = entries.sanity_check(segment.base_offset) {
            found.problems.push(problem(Code::TxnindexOrder, name, error.message().to_owned()));
            continue;
        }
        found.aborted.extend(entries.iter());
    }
    Ok(())
}

fn problem(code: Code, file: String, detail: String) -> Problem {
    Problem { code, severity: Severity::Repairable, file, position: None, offset: None, detail }
}

/// Applies the batches of a log to the producer state.
struct Replay<'a> {
    storage: &'a dyn Storage,
    facts: &'a LogFacts,
    state: ReplayState,
    /// Batches before this offset are in the state already.
    start: i64,
    /// The first offset that is not looked at.
    until: i64,
    /// Whether aborted transactions are taken from their markers. Else they are known from the
    /// indexes.
    from_start: bool,
    maps: MapMode,
    found: &'a mut Transactions,
}

impl Replay<'_> {
    fn run(&mut self, progress: &dyn Progress) -> Result<()> {
        let segments = &self.facts.segments;
        let ends = segments.iter().skip(1).map(|next| next.base_offset).chain([i64::MAX]);
        for (segment, end) in segments.iter().zip(ends) {
            if progress.is_cancelled() {
                return Err(Error::new(Kind::Cancelled, "cancelled"));
            }
            let is_over = segment.base_offset >= self.until;
            if is_over || (end > self.start && !self.segment(segment.base_offset)?) {
                break;
            }
            progress.bytes(segment.log_size_bytes);
        }
        Ok(())
    }

    /// Applies one segment; `false` where damage ends it, or nothing more is looked at.
    fn segment(&mut self, base_offset: i64) -> Result<bool> {
        let name = self.facts.name_of(base_offset, FileRole::Log);
        let file = self.storage.open(&self.facts.dir.join(&name), OpenMode::Read)?;
        let size = file.metadata()?.size_bytes;
        let mut source = Reader::new(&*file, size, WINDOW_BYTES, self.maps);
        let position =
            self.facts.position_before(self.storage, base_offset, self.start, &mut source);
        let (state, start, with_markers) = (&mut self.state, self.start, self.from_start);
        let (until, mut is_over) = (self.until, false);
        let found = &mut *self.found;
        let mut visitor = |batch: ScannedBatch<'_>| {
            let header = batch.header;
            if header.base_offset >= until {
                is_over = true;
                return Ok(ControlFlow::Break(()));
            }
            found.end_offset = header.next_offset();
            if header.base_offset < start || !header.has_producer_id() {
                return Ok(ControlFlow::Continue(()));
            }
            let control = header.is_control().then(|| parse_control(header, batch.bytes));
            // What the state does not allow is for verify to tell.
            if let Some(event) = ProducerEvent::of_batch(header, control)
                && let Ok(Some(ended)) = state.apply(&event)
                && ended.aborted
                && with_markers
            {
                found.aborted.push(AbortedTxn {
                    producer_id: ended.producer_id,
                    first_offset: ended.first_offset,
                    last_offset: ended.last_offset,
                    last_stable_offset: ended.last_stable_offset,
                });
            }
            Ok(ControlFlow::Continue(()))
        };
        let end = scan(&mut source, position, u64::MAX, &mut visitor)?;
        if is_over {
            return Ok(false);
        }
        let expected = self.found.end_offset;
        let damage = damage::examine(&mut source, end, base_offset, expected)?;
        let is_whole = damage.is_none();
        if let Some(damage) = damage {
            self.found.problems.push(Problem {
                code: damage.code,
                severity: Severity::Corrupt,
                file: name,
                position: Some(damage.position),
                offset: Some(expected),
                detail: damage.detail,
            });
        }
        Ok(is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::log::progress::Silent;
    use crate::record::builder::{BatchBuilder, BatchOptions, write_end_marker};
    use crate::record::codec::Compressor;
    use crate::record::control::EndMarker;

    struct Writer {
        log: Vec<u8>,
        offset: i64,
    }

    impl Writer {
        fn data(&mut self, producer_id: i64) -> &mut Self {
            let mut builder = BatchBuilder::new(BatchOptions {
                base_offset: self.offset,
                producer_id,
                producer_epoch: 0,
                base_sequence: 0,
                is_transactional: true,
                ..BatchOptions::default()
            })
            .unwrap();
            builder.append(1000 + self.offset, None, None).unwrap();
            builder.write_to(&mut Compressor::new(), &mut self.log).unwrap();
            self.offset += 1;
            self
        }

        fn end(&mut self, producer_id: i64, is_abort: bool) -> &mut Self {
            let options = BatchOptions {
                base_offset: self.offset,
                producer_id,
                producer_epoch: 0,
                ..BatchOptions::default()
            };
            let timestamp_ms = 2000 + self.offset;
            let marker = EndMarker { is_abort, coordinator_epoch: 0, timestamp_ms };
            write_end_marker(&options, &marker, &mut self.log).unwrap();
            self.offset += 1;
            self
        }
    }

    fn read(dir: &Path, from_start: bool) -> Transactions {
        read_transactions(&Disk::new(), dir, from_start, MapMode::Never, &Silent).unwrap()
    }

    fn open(found: &Transactions) -> Vec<(i64, i64, Option<i64>)> {
        found.open.iter().map(|txn| (txn.producer_id, txn.first_offset, txn.started_ms)).collect()
    }

    #[test]
    fn open_and_aborted_transactions_come_from_the_batches() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer { log: Vec::new(), offset: 0 };
        writer.data(1).data(2).data(3).end(2, true).end(1, false).data(1);
        std::fs::write(dir.path().join("00000000000000000000.log"), &writer.log).unwrap();
        let found = read(dir.path(), true);
        assert_eq!(open(&found), [(3, 2, Some(1002)), (1, 5, Some(1005))]);
        assert_eq!((found.end_offset, found.last_stable_offset), (6, 2));
        let aborted: Vec<_> =
            found.aborted.iter().map(|txn| (txn.producer_id, txn.last_offset)).collect();
        assert_eq!(aborted, [(2, 3)]);
        // Without snapshot and indexes the open ones are the same.
        let quick = read(dir.path(), false);
        assert_eq!((open(&quick), quick.aborted.len()), (open(&found), 0));
    }

    #[test]
    fn a_snapshot_spares_the_batches_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer { log: Vec::new(), offset: 0 };
        writer.data(1).data(2);
        let mut state = ReplayState::new();
        for (offset, producer_id) in [(0, 1), (1, 2)] {
            let event = ProducerEvent {
                producer_id,
                producer_epoch: 0,
                base_sequence: 0,
                last_sequence: 0,
                base_offset: offset,
                last_offset: offset,
                max_timestamp: 0,
                kind: crate::state::EventKind::Data { transactional: true },
            };
            state.apply(&event).unwrap();
        }
        let at = |name: &str| dir.path().join(name);
        // The first segment cannot be read at all: the snapshot stands for it.
        std::fs::write(at("00000000000000000000.log"), vec![0xff; writer.log.len()]).unwrap();
        std::fs::write(at("00000000000000000002.snapshot"), state.snapshot()).unwrap();
        // One that lies behind the end of the log, and one that is damaged, are passed over.
        std::fs::write(at("00000000000000000099.snapshot"), ReplayState::new().snapshot()).unwrap();
        std::fs::write(at("00000000000000000003.snapshot"), b"broken").unwrap();
        writer.log.clear();
        writer.end(1, true).data(4);
        std::fs::write(at("00000000000000000002.log"), &writer.log).unwrap();
        let found = read(dir.path(), false);
        assert_eq!(found.from_snapshot, Some(2));
        assert_eq!(open(&found), [(2, 1, None), (4, 3, Some(1003))]);
        assert_eq!((found.end_offset, found.problems.len()), (4, 1));
        let all = read(dir.path(), true);
        assert_eq!((all.open.len(), all.problems.len()), (0, 1));
    }
}
