//! What every batch of a segment is asked, and what its indexes are told of it.

use std::ops::ControlFlow;

use super::findings::Place;
use super::meter::Meter;
use super::partition::Walk;
use crate::error::{Error, Result};
use crate::index::AbortedTxn;
use crate::index::check::{IndexProblem, OffsetIndexCheck, TimeIndexCheck, TxnIndexCheck};
use crate::io::File;
use crate::log::inventory::SegmentFiles;
use crate::problem::{Code, Severity};
use crate::record::BatchHeader;
use crate::record::check::CheckedBatch;
use crate::record::control::{Control, EndMarker, parse_control};
use crate::record::scan::{ScannedBatch, Visitor};
use crate::segment::damage::Damage;
use crate::segment::{FileName, FileRole};
use crate::state::{EventKind, ProducerEvent};
use crate::units::{NO_LEADER_EPOCH, is_addressable};

/// Larger batches are not held while they are scanned; only when their checksum is right are they
/// read whole.
const BODY_MAX: usize = 32 << 20;

/// The visitor of one segment.
pub(super) struct SegmentCheck<'s, 'w> {
    pub(super) walk: &'s mut Walk<'w>,
    pub(super) files: &'s SegmentFiles,
    pub(super) next_base: Option<i64>,
    pub(super) file: &'s dyn File,
    pub(super) offset_index: Option<OffsetIndexCheck<'s>>,
    pub(super) time_index: Option<TimeIndexCheck<'s>>,
    pub(super) txn_index: TxnIndexCheck<'s>,
    pub(super) max_timestamp: i64,
    pub(super) batches: u64,
    pub(super) meter: Meter<'s>,
}

impl Visitor for SegmentCheck<'_, '_> {
    fn body_limit_bytes(&self) -> usize {
        BODY_MAX
    }

    #[inline]
    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        self.meter.at(batch.position)?;
        let checked = self.check_records(&batch)?;
        let header = batch.header;
        let base_offset = checked.map_or(header.base_offset, |checked| checked.base_offset);
        self.check_offsets(&batch, base_offset);
        self.check_epoch(&batch);
        self.walk.producers.reach(base_offset, &mut self.walk.findings);
        if header.has_producer_id() {
            self.apply_producer(&batch)?;
        }
        self.count(header, checked);
        let last_offset = header.last_offset();
        if let Some(check) = &mut self.offset_index {
            check.batch(batch.position, last_offset);
        }
        if let Some(check) = &mut self.time_index {
            check.batch(last_offset, header.max_timestamp);
        }
        self.walk.next_offset = self.walk.next_offset.max(header.next_offset());
        Ok(ControlFlow::Continue(()))
    }
}

impl SegmentCheck<'_, '_> {
    fn problem(&mut self, code: Code, position: u64, offset: i64, detail: impl Into<String>) {
        let place = Place::at(position, offset);
        self.walk.findings.add(code, Severity::Corrupt, &self.files.log, place, detail);
    }

    /// Looks at every record, where that is asked; `None` when there is a fault, or when it is not
    /// asked.
    #[inline]
    fn check_records(&mut self, batch: &ScannedBatch<'_>) -> Result<Option<CheckedBatch>> {
        let Some(checker) = &mut self.walk.checker else { return Ok(None) };
        let header = batch.header;
        let listed = self.walk.lists.len();
        let (lists, start) = (&mut self.walk.lists, self.walk.log_start_offset);
        let mut visible = 0_u64;
        let read;
        let bytes = if batch.bytes.len() < usize::try_from(header.size_bytes).unwrap_or(0) {
            read = read_batch(self.file, batch)?;
            read.as_slice()
        } else {
            batch.bytes
        };
        // Most records are not listed, and their loop is as short as can be.
        let checked = if lists.is_open() {
            checker.check(header, bytes, &mut |offset, timestamp| {
                visible += u64::from(offset >= start);
                lists.push(header, offset, timestamp);
            })
        } else {
            checker.check(header, bytes, &mut |offset, _| visible += u64::from(offset >= start))
        };
        match checked {
            Ok(checked) => {
                if !header.is_control() {
                    self.walk.report.visible_records += visible;
                }
                Ok(Some(checked))
            }
            Err(fault) => {
                self.walk.lists.truncate(listed);
                self.problem(fault.code, batch.position, header.base_offset, fault.detail);
                Ok(None)
            }
        }
    }

    /// Offsets rise from batch to batch, stay within the segment and can be addressed by its
    /// indexes.
    #[inline]
    fn check_offsets(&mut self, batch: &ScannedBatch<'_>, base_offset: i64) {
        let (segment, next) = (self.files.base_offset, self.walk.next_offset);
        let last_offset = batch.header.last_offset();
        if base_offset < next || last_offset < base_offset {
            let detail = if last_offset < base_offset {
                format!("its last offset {last_offset} lies before its base offset")
            } else if base_offset < segment {
                format!("it lies below the base offset {segment} of its segment")
            } else {
                format!("it lies below offset {next}, which the log had reached")
            };
            self.problem(Code::OffsetOrder, batch.position, base_offset, detail);
        } else if base_offset > next || !is_full(batch.header) {
            // Compaction was here, or segments were lost on the way: what was known is not all told
            // any more.
            self.walk.producers.is_partial = true;
            self.txn_index.forget_history();
        }
        if last_offset >= segment && !is_addressable(segment, last_offset) {
            let detail =
                format!("its last offset {last_offset} is out of reach of the segment's indexes");
            self.problem(Code::OffsetOverflow, batch.position, base_offset, detail);
        } else if let Some(next_base) = self.next_base.filter(|next_base| last_offset >= *next_base)
        {
            let detail =
                format!("its last offset {last_offset} reaches into the segment {next_base}");
            self.problem(Code::SegmentOverlap, batch.position, base_offset, detail);
        }
    }

    #[inline]
    fn check_epoch(&mut self, batch: &ScannedBatch<'_>) {
        let header = batch.header;
        let (epoch, largest) = (header.leader_epoch, self.walk.largest_epoch);
        if epoch < largest && epoch != NO_LEADER_EPOCH {
            let detail = match epoch {
                ..0 => format!("its leader epoch is {epoch}"),
                _ => format!("its leader epoch {epoch} is below {largest} of an earlier batch"),
            };
            self.problem(Code::EpochOrder, batch.position, header.base_offset, detail);
        }
        self.walk.largest_epoch = largest.max(epoch);
        self.walk.epochs.batch(header);
    }

    /// Applies a batch to the state of its producer.
    fn apply_producer(&mut self, batch: &ScannedBatch<'_>) -> Result<()> {
        let header = batch.header;
        let kind = if header.is_control() {
            match parse_control(header, batch.bytes) {
                Control::Empty => EventKind::EmptyControl,
                Control::End(EndMarker { is_abort, coordinator_epoch, timestamp_ms }) => {
                    EventKind::Marker {
                        abort: is_abort,
                        coordinator_epoch,
                        timestamp: timestamp_ms,
                    }
                }
                Control::Other(_) => return Ok(()),
                Control::Broken(why) => {
                    if self.walk.checker.is_none() {
                        let offset = header.base_offset;
                        self.problem(Code::ControlRecord, batch.position, offset, why);
                    }
                    return Ok(());
                }
            }
        } else {
            EventKind::Data { transactional: header.is_transactional() }
        };
        let event = ProducerEvent {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            max_timestamp: header.max_timestamp,
            kind,
        };
        match self.walk.producers.state.apply(&event) {
            Ok(Some(done)) if done.aborted => {
                let txn = AbortedTxn {
                    producer_id: done.producer_id,
                    first_offset: done.first_offset,
                    last_offset: done.last_offset,
                    last_stable_offset: done.last_stable_offset,
                };
                self.txn_index.aborted(&txn);
                self.walk.list_aborted(txn);
            }
            Ok(None) if matches!(kind, EventKind::Marker { abort: true, .. }) => {
                self.txn_index.lone_marker(header.producer_id, header.base_offset);
            }
            Ok(_) => {}
            // Negative offsets were told already.
            Err(_) if header.base_offset < 0 || header.last_offset_delta < 0 => {}
            Err(problem) => {
                let detail = format!("{problem}: Kafka does not load such a log");
                self.problem(Code::ControlRecord, batch.position, header.base_offset, detail);
            }
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, header: &BatchHeader, checked: Option<CheckedBatch>) {
        self.batches += 1;
        let report = &mut self.walk.report;
        let counted = if self.walk.checker.is_some() {
            checked.map_or(0, |checked| checked.records)
        } else {
            u64::try_from(header.count).unwrap_or(1)
        };
        report.records = report.records.saturating_add(counted);
        self.max_timestamp = self.max_timestamp.max(header.max_timestamp);
        report.delete_horizon_ms = report.delete_horizon_ms.max(header.delete_horizon_ms());
    }

    /// The log could not be read to its end: what it told so far stands.
    pub(super) fn give_up(self, size: u64, error: Error) -> Result<ControlFlow<()>> {
        self.walk.take_error(&self.files.log, error)?;
        self.walk.report.batches = self.walk.report.batches.saturating_add(self.batches);
        self.meter.finish(size)?;
        Ok(ControlFlow::Continue(()))
    }

    /// Judges what can be judged only at the end of the segment.
    pub(super) fn finish(
        mut self,
        size: u64,
        end_position: u64,
        damage: Option<Damage>,
    ) -> Result<ControlFlow<()>> {
        let next = self.walk.next_offset;
        if let Some(damage) = &damage {
            let detail = damage.detail.clone();
            self.problem(damage.code, damage.position, next, detail);
            self.walk.report.survivors_after.add(damage.survivors);
        }
        let is_damaged = damage.is_some();
        // What an index says of batches that are lost is no fault of its own.
        let is_lost =
            |offset: Option<i64>| is_damaged && offset.is_some_and(|offset| offset >= next);
        let files = self.files;
        let findings = &mut self.walk.findings;
        let mut index = |name: &str, problems: Vec<IndexProblem>| {
            for problem in problems.into_iter().filter(|problem| !is_lost(problem.offset)) {
                findings.take_index(problem, name);
            }
        };
        let name = |role| {
            let live = || FileName::live(files.base_offset, role).format();
            files.index(role).map_or_else(live, str::to_owned)
        };
        if let Some(check) = self.offset_index {
            index(&name(FileRole::OffsetIndex), check.finish(end_position));
        }
        if let Some(check) = self.time_index {
            let found = check.finish();
            index(&name(FileRole::TimeIndex), found.problems);
            index(&name(FileRole::TimeIndex), found.short.into_iter().collect());
        }
        index(&name(FileRole::TxnIndex), self.txn_index.finish(next));
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex] {
            if files.index(role).is_none() && self.batches > 0 {
                let (code, severity) = (Code::IndexMissing, Severity::Repairable);
                findings.add(code, severity, &name(role), Place::FILE, "there is no such file");
            }
        }
        let report = &mut self.walk.report;
        report.batches = report.batches.saturating_add(self.batches);
        report.max_timestamp = report.max_timestamp.max(self.max_timestamp);
        self.walk.note_future(&files.log, self.max_timestamp);
        self.meter.finish(size)?;
        Ok(if is_damaged { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

/// Whether a batch still has all the records it was written with, as far as its header tells.
#[inline]
fn is_full(header: &BatchHeader) -> bool {
    header.magic < 2 || i64::from(header.count) == i64::from(header.last_offset_delta) + 1
}

/// Reads a batch that the scan had to pass in pieces.
fn read_batch(file: &dyn File, batch: &ScannedBatch<'_>) -> Result<Vec<u8>> {
    let size = usize::try_from(batch.header.size_bytes).unwrap_or(usize::MAX);
    let mut bytes = vec![0; size];
    let read = file.read_at(&mut bytes, batch.position)?;
    if read < size {
        let error = Error::corrupt("the file was cut while it was read");
        return Err(error.in_file(file.path()).at_position(batch.position));
    }
    Ok(bytes)
}
