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
//! A hole at the front of a log that may start behind it is a notice.
//!
//! It reads, and changes nothing. The logs of all remote segments are read from end to end.
// spec: tiered-faults T2, T4

mod logs;

use std::collections::BTreeMap;
use std::path::Path;

use logs::{LogFindings, Open};

use super::aux_build::AuxRemote;
use super::layout::SegmentPart;
use super::lineage::Lineage;
use super::read_many::side_by_side;
use super::remote_segment::{RemoteSegment, RemoteSegmentState};
use crate::error::{Kind, Result};
use crate::io::Storage;
use crate::log::VerifyOptions;
use crate::log::inventory::{EPOCH_FILE, Inventory};
use crate::problem::{Code, Problem, Severity};
use crate::segment::{FileName, FileRole};
use crate::state::{LeaderEpochs, Snapshot};

/// More than any small file or part has.
const PART_BYTES_MAX: u64 = 1 << 30;

/// Compares the replica in `dir` with the segments in remote storage, and these with each other. Of
/// the options only those of the log start count; where it is not known, 0 is taken. Up to
/// `readers` segments are read at a time, each by a thread that ends before this returns.
///
/// Uploads of leaders whose records lost an election are left out, as far as the replica's epochs
/// tell.
///
/// # Errors
/// What the disk or the store says.
pub fn check_replica(
    storage: &dyn Storage,
    dir: &Path,
    options: &VerifyOptions<'_>,
    segments: &[RemoteSegment],
    remote: &AuxRemote<'_>,
    readers: usize,
) -> Result<Vec<Problem>> {
    let inventory = Inventory::read(storage, dir)?;
    let mut finished: Vec<&RemoteSegment> =
        segments.iter().filter(|it| it.state == RemoteSegmentState::CopyFinished).collect();
    finished.sort_by_key(|segment| (segment.start_offset, segment.end_offset));
    let start = options.log_start_offset.unwrap_or(0);
    let is_start_sure = options.log_start_offset.is_some() && !options.log_start_may_have_moved;
    let mut check = Check { storage, dir, start, is_start_sure, inventory, finished, remote };
    let mut problems = Vec::new();
    let epochs = check.read_epochs()?;
    problems.extend(check.epochs_forgotten(epochs.as_ref()));
    if let Some(lineage) = epochs.as_ref().and_then(|epochs| check.lineage(epochs)) {
        check.finished.retain(|segment| lineage.holds(segment));
    }
    problems.splice(0..0, check.holes());
    problems.extend(check.producers()?);
    check.logs(readers, &mut problems)?;
    Ok(problems)
}

struct Check<'a> {
    storage: &'a dyn Storage,
    dir: &'a Path,
    /// Where the log starts.
    start: i64,
    /// Whether it does not start later.
    is_start_sure: bool,
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
            if start > reached && local.is_none_or(|local| reached < local) {
                let mut detail = format!("offsets {reached} to {start} are neither here nor there");
                let severity = match reached == self.start && !self.is_start_sure {
                    true => Severity::Notice,
                    false => Severity::Corrupt,
                };
                if severity == Severity::Notice {
                    detail.push_str(", unless the log starts behind them by now");
                }
                holes.push(problem(Code::RemoteHole, severity, String::new(), reached, detail));
            }
            reached = reached.max(end);
        }
        holes
    }

    /// The leader epochs; `None` where they cannot be read, which is a finding of the check of the
    /// partition itself.
    fn read_epochs(&self) -> Result<Option<LeaderEpochs>> {
        let bytes = match self.storage.read(&self.dir.join(EPOCH_FILE), PART_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => Vec::new(),
            other => other?,
        };
        Ok(LeaderEpochs::parse(&bytes).ok())
    }

    /// What the epochs tell of who wrote the remote segments; `None` where they were forgotten.
    fn lineage(&self, epochs: &LeaderEpochs) -> Option<Lineage> {
        let first = epochs.earliest()?;
        let local = self.local_start();
        let is_known = local.is_none_or(|local| first.start_offset < local || local <= self.start);
        // Where the log ends is not looked for: what lies behind is harmless here.
        is_known.then(|| Lineage::new(epochs.entries(), i64::MAX))
    }

    /// Leader epochs that begin with the local log, although older ones were uploaded.
    fn epochs_forgotten(&self, epochs: Option<&LeaderEpochs>) -> Option<Problem> {
        let local = self.local_start().filter(|local| *local > self.start)?;
        let first = epochs?.earliest();
        if first.is_some_and(|first| first.start_offset < local) {
            return None;
        }
        let older = self.finished.iter().filter(|segment| segment.start_offset < local).count();
        if older == 0 {
            return None;
        }
        let detail = format!(
            "no epoch begins before the first local offset {local}, but {older} remote segments \
             lie there: as a leader Kafka deletes those of older epochs. Rebuild this replica"
        );
        let file = EPOCH_FILE.to_owned();
        Some(problem(Code::EpochsForgotten, Severity::Repairable, file, local, detail))
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
    fn logs(&self, readers: usize, problems: &mut Vec<Problem>) -> Result<()> {
        let read = |segment: &&RemoteSegment| LogFindings::read(self, segment);
        let findings = side_by_side(readers, &self.finished, read);
        // Of uploads that overlap any may be read from: each is looked at, with what was open at
        // the end of one that it goes on behind.
        let mut open_at: BTreeMap<i64, Open> = BTreeMap::new();
        for (segment, findings) in self.finished.iter().zip(findings) {
            open_at = open_at.split_off(&segment.start_offset);
            let mut open = open_at.get(&segment.start_offset).cloned().unwrap_or_default();
            problems.extend(findings?.settle(&mut open));
            open_at.insert(segment.end_offset.saturating_add(1), open);
        }
        Ok(())
    }
}

fn problem(code: Code, severity: Severity, file: String, offset: i64, detail: String) -> Problem {
    Problem { code, severity, file, position: None, offset: Some(offset), detail }
}

#[cfg(test)]
mod tests;
