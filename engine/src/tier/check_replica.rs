//! Was a replica, or what was uploaded, damaged by Kafka's way to rebuild it?
//!
//! | code | what is found |
//! |---|---|
//! | `producers_forgotten` | the snapshot at the first local offset is empty, the uploaded one is not |
//! | `epochs_forgotten` | the epochs begin at the first local offset, those of remote segments are older |
//! | `aborted_forgotten` | a remote transaction index lacks a transaction that a marker aborts |
//! | `remote_hole` | offsets that neither remote storage nor the local log has |
//! | `remote_differs` | a remote log has other bytes than the local one |
//!
//! It reads, and changes nothing. The logs of all remote segments are read from end to end.
// spec: tiered-faults T2, T4

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::Path;

use super::aux_build::AuxRemote;
use super::layout::SegmentPart;
use super::object_source::ObjectSource;
use super::remote_segment::{RemoteSegment, RemoteSegmentState};
use super::target::get_exact;
use crate::error::{Kind, Result};
use crate::index::TxnEntries;
use crate::io::{OpenMode, Storage};
use crate::log::inventory::{EPOCH_FILE, Inventory};
use crate::problem::{Code, Problem, Severity};
use crate::record::control::parse_control;
use crate::record::scan::{ScannedBatch, scan};
use crate::segment::{FileName, FileRole};
use crate::state::{EventKind, LeaderEpochs, ProducerEvent, Snapshot};

/// More than any small file or part has.
const PART_BYTES_MAX: u64 = 1 << 30;
/// Bytes of a log that are looked at at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// The first offsets of open transactions, by producer.
type Open = BTreeMap<i64, i64>;

/// Compares the replica in `dir`, whose log starts at `log_start_offset`, with the segments in
/// remote storage, and these with each other.
///
/// # Errors
/// What the disk or the store says.
pub fn check_replica(
    storage: &dyn Storage,
    dir: &Path,
    log_start_offset: i64,
    segments: &[RemoteSegment],
    remote: &AuxRemote<'_>,
) -> Result<Vec<Problem>> {
    let inventory = Inventory::read(storage, dir)?;
    let mut finished: Vec<&RemoteSegment> =
        segments.iter().filter(|it| it.state == RemoteSegmentState::CopyFinished).collect();
    finished.sort_by_key(|segment| (segment.start_offset, segment.end_offset));
    let check = Check { storage, dir, start: log_start_offset, inventory, finished, remote };
    let mut problems = Vec::new();
    problems.extend(check.holes());
    problems.extend(check.epochs()?);
    problems.extend(check.producers()?);
    check.logs(&mut problems)?;
    Ok(problems)
}

struct Check<'a> {
    storage: &'a dyn Storage,
    dir: &'a Path,
    /// Where the log starts.
    start: i64,
    inventory: Inventory,
    /// By start offset.
    finished: Vec<&'a RemoteSegment>,
    remote: &'a AuxRemote<'a>,
}

impl Check<'_> {
    /// The first local offset; `None` when nothing is local.
    fn local_start(&self) -> Option<i64> {
        self.inventory.segments.keys().next().copied()
    }

    fn name(&self, segment: &RemoteSegment, part: SegmentPart) -> String {
        self.remote.layout.name(&segment.id, segment.start_offset, part)
    }

    /// Offsets from the start of the log on that are nowhere.
    fn holes(&self) -> Vec<Problem> {
        let mut holes = Vec::new();
        let mut reached = self.start;
        let local = self.local_start();
        let ends =
            self.finished.iter().map(|it| (it.start_offset, it.end_offset.saturating_add(1)));
        let local_end = local.map(|start| (start, i64::MAX));
        let mut spans: Vec<(i64, i64)> = ends.chain(local_end).collect();
        spans.sort_unstable();
        for (start, end) in spans {
            if start > reached && local.is_some_and(|local| reached < local) {
                let detail = format!("offsets {reached} to {start} are neither here nor there");
                let file = String::new();
                holes.push(problem(Code::RemoteHole, Severity::Corrupt, file, reached, detail));
            }
            reached = reached.max(end);
        }
        holes
    }

    /// Leader epochs that begin with the local log, although older ones were uploaded.
    fn epochs(&self) -> Result<Option<Problem>> {
        let Some(local) = self.local_start().filter(|local| *local > self.start) else {
            return Ok(None);
        };
        let bytes = match self.storage.read(&self.dir.join(EPOCH_FILE), PART_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => Vec::new(),
            other => other?,
        };
        // One that cannot be read is a finding of the check of the partition itself.
        let Ok(epochs) = LeaderEpochs::parse(&bytes) else { return Ok(None) };
        let first = epochs.earliest();
        if first.is_some_and(|first| first.start_offset < local) {
            return Ok(None);
        }
        let older = self.finished.iter().filter(|segment| segment.start_offset < local).count();
        if older == 0 {
            return Ok(None);
        }
        let detail = format!(
            "no epoch begins before the first local offset {local}, but {older} remote segments \
             lie there: as a leader Kafka deletes those of older epochs. Rebuild this replica"
        );
        let file = EPOCH_FILE.to_owned();
        Ok(Some(problem(Code::EpochsForgotten, Severity::Repairable, file, local, detail)))
    }

    /// An empty snapshot at the first local offset, although producers were uploaded.
    fn producers(&self) -> Result<Option<Problem>> {
        let Some(local) = self.local_start() else { return Ok(None) };
        let ends_there =
            |segment: &&&RemoteSegment| segment.end_offset.checked_add(1) == Some(local);
        let Some(segment) = self.finished.iter().find(ends_there) else { return Ok(None) };
        let file = FileName::live(local, FileRole::Snapshot).format();
        let here = match self.storage.read(&self.dir.join(&file), PART_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            other => other?,
        };
        let name = self.name(segment, SegmentPart::ProducerSnapshot);
        let there = match self.remote.target.get(&name, None, PART_BYTES_MAX) {
            // That it is missing is a finding of the listing.
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            other => other?,
        };
        let count = |bytes: &[u8]| Snapshot::read(bytes).map(|snapshot| snapshot.len());
        let (Ok(0), Ok(uploaded @ 1..)) = (count(&here), count(&there)) else { return Ok(None) };
        let detail = format!(
            "no producer, but {uploaded} were uploaded with the segment before it: transactions \
             that were open there are not aborted for readers, and duplicates are taken"
        );
        Ok(Some(problem(Code::ProducersForgotten, Severity::Repairable, file, local, detail)))
    }

    /// Reads the logs of all segments: their bytes, and what their markers abort.
    fn logs(&self, problems: &mut Vec<Problem>) -> Result<()> {
        // Of uploads that overlap any may be read from: each is looked at, with what was open at
        // the end of one that it goes on behind.
        let mut open_at: BTreeMap<i64, Open> = BTreeMap::new();
        for segment in &self.finished {
            open_at = open_at.split_off(&segment.start_offset);
            let mut open = open_at.get(&segment.start_offset).cloned().unwrap_or_default();
            problems.extend(self.aborted(segment, &mut open)?);
            open_at.insert(segment.end_offset.saturating_add(1), open);
            problems.extend(self.bytes(segment)?);
        }
        Ok(())
    }

    /// The first transaction that a marker in the segment aborts and its index lacks. `open` has
    /// the transactions that are open where the segment begins, as far as they are known.
    fn aborted(&self, segment: &RemoteSegment, open: &mut Open) -> Result<Option<Problem>> {
        let target = self.remote.target;
        let (log, index) = (
            self.name(segment, SegmentPart::Log),
            self.name(segment, SegmentPart::TransactionIndex),
        );
        let bytes = match target.get(&index, None, PART_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => Vec::new(),
            other => other?,
        };
        // One may begin before all that was read: an entry that begins earlier tells of it, too.
        let known: HashMap<(i64, i64), i64> = TxnEntries::new(&bytes)
            .iter()
            .map(|txn| ((txn.producer_id, txn.last_offset), txn.first_offset))
            .collect();
        let size = match target.size(&log) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            other => other?,
        };
        let mut missing = None;
        let mut source = ObjectSource::new(target, &log, size, WINDOW_BYTES);
        scan(&mut source, 0, u64::MAX, &mut |batch: ScannedBatch<'_>| {
            let header = batch.header;
            let control = header.is_control().then(|| parse_control(header, batch.bytes));
            let Some(event) = ProducerEvent::of_batch(header, control) else {
                return Ok(ControlFlow::Continue(()));
            };
            match event.kind {
                EventKind::Data { transactional: true } => {
                    open.entry(event.producer_id).or_insert(event.base_offset);
                }
                EventKind::Marker { abort, .. } => {
                    let first = open.remove(&event.producer_id);
                    let (producer, last) = (event.producer_id, event.base_offset);
                    if let (true, Some(first)) = (abort && missing.is_none(), first)
                        && known.get(&(producer, last)).is_none_or(|told| *told > first)
                    {
                        missing = Some((producer, first, last));
                    }
                }
                EventKind::Data { .. } | EventKind::EmptyControl => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(missing.map(|(producer, first, last)| {
            let detail = format!(
                "producer {producer} aborted offsets {first} to {last}, which the index does not \
                 tell: readers of committed data get its records"
            );
            problem(Code::AbortedForgotten, Severity::Corrupt, index, first, detail)
        }))
    }

    /// Compares the log with the local one of the same base, as far as both go.
    fn bytes(&self, segment: &RemoteSegment) -> Result<Option<Problem>> {
        let Some(local) = self.inventory.segments.get(&segment.start_offset) else {
            return Ok(None);
        };
        let name = self.name(segment, SegmentPart::Log);
        let size = match self.remote.target.size(&name) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            other => other?,
        };
        if u64::try_from(segment.size_bytes).is_ok_and(|told| told != size) {
            let detail = format!("{size} bytes, its metadata says {}", segment.size_bytes);
            let start = segment.start_offset;
            return Ok(Some(problem(Code::RemoteDiffers, Severity::Corrupt, name, start, detail)));
        }
        let file = self.storage.open(&self.dir.join(&local.log), OpenMode::Read)?;
        let end = size.min(local.log_size_bytes);
        let window = u64::try_from(WINDOW_BYTES).unwrap_or(u64::MAX);
        let mut at = 0;
        while at < end {
            let to = at.saturating_add(window).min(end);
            let there = get_exact(self.remote.target, &name, at..to)?;
            let mut here = vec![0; there.len()];
            let read = file.read_at(&mut here, at)?;
            here.truncate(read);
            if let Some(skipped) = there.iter().zip(&here).position(|(a, b)| a != b) {
                let skipped = u64::try_from(skipped).unwrap_or(u64::MAX);
                let detail = "other bytes than the local log of the same base".to_owned();
                let start = segment.start_offset;
                let found = problem(Code::RemoteDiffers, Severity::Corrupt, name, start, detail);
                return Ok(Some(Problem { position: Some(at.saturating_add(skipped)), ..found }));
            }
            at = to;
        }
        Ok(None)
    }
}

fn problem(code: Code, severity: Severity, file: String, offset: i64, detail: String) -> Problem {
    Problem { code, severity, file, position: None, offset: Some(offset), detail }
}

#[cfg(test)]
mod tests;
