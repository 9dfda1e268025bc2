//! What do the producers of a log look like at an offset, and which snapshots will there be?
//!
//! Kafka makes a new state manager for every segment that it recovers and one more for the log:
//! each lists the snapshots, deletes those that do not fit, loads the newest that is left and
//! replays what is missing. The book keeps to these rules, but does not read back what it has just
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::error::{Kind, Result};
use crate::io::Storage;
use crate::log::recover::stage::{Stage, Staged, beside};
use crate::problem::{Problem, Severity};
use crate::segment::{FileName, FileRole};
use crate::state::snapshot_set::offsets_to_snapshot;
use crate::state::{ReplayState, Snapshot, SnapshotSet};

/// More than the snapshot of any partition has; a larger file is not read.
const SNAPSHOT_BYTES_MAX: u64 = 4 << 30;

/// The producer state of one log in recovery.
#[derive(Debug)]
pub struct ProducerBook<'a> {
    storage: &'a dyn Storage,
    dir: &'a Path,
    now_ms: i64,
    expiration_ms: i64,
    /// What the state manager at work knows.
    set: SnapshotSet,
    /// Snapshots that were found; a file of another offset goes with what a swap replaces.
    found: &'a BTreeSet<i64>,
    /// Snapshots whose file on disk counts.
    on_disk: BTreeSet<i64>,
    /// Snapshots that differ from what is on disk.
    written: BTreeMap<i64, Staged>,
    /// The state of the manager at work.
    pub state: ReplayState,
    /// Set when `state` is what a snapshot at this offset would bring back, but for producers that
    /// expired.
    known_at: Option<i64>,
    /// Snapshots on disk that a state was loaded from.
    loaded: BTreeSet<i64>,
    /// Snapshots that could not be used.
    pub problems: Vec<Problem>,
}

/// What is to happen to snapshot files.
#[derive(Debug)]
pub struct Snapshots {
    /// Those to unlink.
    pub remove: Vec<String>,
    /// Those to write.
    pub write: Vec<(String, Staged)>,
    /// Those to unlink when nobody will recover the log again.
    pub retire: Vec<String>,
}

/// A range of the log that is to be replayed into the producer state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The segment's base offset.
    pub base_offset: i64,
    /// The first offset that counts.
    pub from_offset: i64,
    /// The offset to stop at, exclusive.
    pub to_offset: i64,
}

impl<'a> ProducerBook<'a> {
    /// The book of a directory with these snapshots.
    pub fn new(
        storage: &'a dyn Storage,
        dir: &'a Path,
        snapshots: &'a BTreeSet<i64>,
        now_ms: i64,
        expiration_ms: i64,
    ) -> Self {
        ProducerBook {
            storage,
            dir,
            now_ms,
            expiration_ms,
            set: SnapshotSet::new(snapshots.iter().copied()),
            found: snapshots,
            on_disk: snapshots.clone(),
            written: BTreeMap::new(),
            state: ReplayState::new(),
            known_at: None,
            loaded: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// Brings the state to `log_end`, with a new manager: loads the newest snapshot that fits and
    /// lets `replay` apply what is missing. Segments are given by their bases; those that
    /// `replay` gets are in order.
    pub fn rebuild(
        &mut self,
        stage: &mut Stage<'a>,
        bases: &BTreeSet<i64>,
        log_start: i64,
        log_end: i64,
        mut replay: impl FnMut(Replay, &mut ReplayState) -> Result<()>,
    ) -> Result<()> {
        // spec: producer-state A8. A new manager knows the files and nothing else.
        self.set.restart();
        let was_empty = log_end <= 0;
        let reload = self.set.truncate_and_reload(log_start, log_end);
        for offset in reload.delete {
            self.forget(stage, offset)?;
        }
        if reload.reload {
            self.load(stage, log_start)?;
        } else {
            self.reset();
        }
        if log_end > self.set.map_end_offset() && !was_empty {
            let taken_at = offsets_to_snapshot(bases, log_end);
            let mut reached = self.set.map_end_offset();
            for base in segments_between(bases, reached, log_end) {
                let from_offset = base.max(reached).max(log_start);
                self.set.set_map_end_offset(from_offset);
                if taken_at.contains(&base) {
                    self.take_snapshot(stage)?;
                }
                self.known_at = None;
                replay(
                    Replay { base_offset: base, from_offset, to_offset: log_end },
                    &mut self.state,
                )?;
                reached = from_offset;
            }
        }
        self.set.set_map_end_offset(log_end);
        self.take_snapshot(stage)
    }

    /// Says that the state was brought to `offset` from outside, and takes a snapshot there.
    pub fn advanced(&mut self, stage: &mut Stage<'a>, offset: i64) -> Result<()> {
        self.known_at = None;
        self.set.set_map_end_offset(offset);
        self.take_snapshot(stage)
    }

    /// The log is cleared and starts at `offset`.
    pub fn clear(&mut self, stage: &mut Stage<'a>, offset: i64) -> Result<()> {
        for gone in self.set.truncate_fully_and_start_at(offset) {
            self.forget(stage, gone)?;
        }
        self.reset();
        Ok(())
    }

    /// Removes the snapshots that belong to no segment.
    pub fn remove_stray(&mut self, stage: &mut Stage<'a>, bases: &BTreeSet<i64>) -> Result<()> {
        for gone in self.set.remove_stray(bases) {
            self.forget(stage, gone)?;
        }
        Ok(())
    }

    /// What is to happen to snapshot files in the end, of a log that starts at `log_start`.
    pub fn finish(self, log_start: i64) -> Snapshots {
        let left: BTreeSet<i64> = self.set.offsets().collect();
        // What it says of producers without a batch in the log is nowhere else: a recovery that begins anew needs it.
        let (retire, remove) =
            self.found.difference(&left).copied().partition::<Vec<i64>, _>(|offset| {
                *offset <= log_start && self.loaded.contains(offset)
            });
        let write = self
            .written
            .into_iter()
            .filter(|(offset, _)| left.contains(offset))
            .map(|(offset, staged)| (name_of(offset), staged))
            .collect();
        let named = |offsets: Vec<i64>| offsets.into_iter().map(name_of).collect();
        Snapshots { remove: named(remove), write, retire: named(retire) }
    }

    /// Forgets the snapshots that were to be written.
    pub fn drop_written(&mut self, stage: &mut Stage<'a>) -> Result<()> {
        for (offset, staged) in std::mem::take(&mut self.written) {
            stage.forget(&name_of(offset), &staged)?;
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.state = ReplayState::new();
        self.known_at = None;
    }

    fn take_snapshot(&mut self, stage: &mut Stage<'a>) -> Result<()> {
        let Some(offset) = self.set.take_snapshot() else { return Ok(()) };
        let bytes = self.state.snapshot();
        self.known_at = Some(offset);
        if let Some(staged) = self.written.remove(&offset) {
            stage.forget(&name_of(offset), &staged)?;
        }
        let path = self.dir.join(name_of(offset));
        let same = self.found.contains(&offset)
            && match self.storage.read(&path, u64::try_from(bytes.len()).unwrap_or(u64::MAX)) {
                Ok(old) => same_contents(&old, &bytes),
                Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Limit) => false,
                Err(error) => return Err(error),
            };
        if same {
            self.on_disk.insert(offset);
        } else {
            self.on_disk.remove(&offset);
            let staged = stage.put(&name_of(offset), bytes)?;
            self.written.insert(offset, staged);
        }
        Ok(())
    }

    fn load(&mut self, stage: &mut Stage<'a>, log_start: i64) -> Result<()> {
        while let Some(offset) = self.set.latest() {
            if self.known_at == Some(offset) {
                self.state.remove_expired(self.now_ms, self.expiration_ms);
                self.set.loaded(offset);
                return Ok(());
            }
            let bytes = match self.written.get(&offset) {
                Some(Staged::Memory(bytes)) => bytes.clone(),
                Some(Staged::Beside) => {
                    self.storage.read(&beside(self.dir, &name_of(offset)), SNAPSHOT_BYTES_MAX)?
                }
                // A dry run has let go of it; the one before it serves, with more to replay.
                Some(Staged::Dropped) => Vec::new(),
                None => {
                    match self.storage.read(&self.dir.join(name_of(offset)), SNAPSHOT_BYTES_MAX) {
                        Ok(bytes) => bytes,
                        Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Limit) => {
                            Vec::new()
                        }
                        Err(error) => return Err(error),
                    }
                }
            };
            match Snapshot::read(&bytes) {
                Ok(snapshot) => {
                    if self.on_disk.contains(&offset) {
                        self.loaded.insert(offset);
                    }
                    self.state =
                        ReplayState::from_snapshot(&snapshot, self.now_ms, self.expiration_ms);
                    self.known_at = Some(offset);
                    self.set.loaded(offset);
                    return Ok(());
                }
                Err(fault) => {
                    self.problems.push(Problem {
                        code: fault.code,
                        severity: Severity::Repairable,
                        file: name_of(offset),
                        position: u64::try_from(fault.position).ok(),
                        offset: Some(offset),
                        detail: fault.detail,
                    });
                    self.set.unusable(offset);
                    self.forget(stage, offset)?;
                }
            }
        }
        self.reset();
        self.set.nothing_to_load(log_start);
        Ok(())
    }

    fn forget(&mut self, stage: &mut Stage<'a>, offset: i64) -> Result<()> {
        self.on_disk.remove(&offset);
        match self.written.remove(&offset) {
            Some(staged) => stage.forget(&name_of(offset), &staged),
            None => Ok(()),
        }
    }
}

fn name_of(offset: i64) -> String {
    FileName::live(offset, FileRole::Snapshot).format()
}

/// The bases of the segments that hold offsets in `from..to`.
fn segments_between(bases: &BTreeSet<i64>, from: i64, to: i64) -> Vec<i64> {
    // spec: segments 3.1
    if to <= from {
        return Vec::new();
    }
    let floor = bases.range(..=from).next_back().copied();
    let start = floor.or_else(|| bases.first().copied()).unwrap_or(to);
    if start >= to { Vec::new() } else { bases.range(start..to).copied().collect() }
}

/// Whether two snapshots hold the same producers, in any order: Kafka's is that of a hash map.
fn same_contents(old: &[u8], new: &[u8]) -> bool {
    if old == new {
        return true;
    }
    let (Ok(old), Ok(new)) = (Snapshot::read(old), Snapshot::read(new)) else { return false };
    if old.len() != new.len() {
        return false;
    }
    let by_id: BTreeMap<i64, _> = old.iter().map(|entry| (entry.producer_id, entry)).collect();
    new.iter().all(|entry| by_id.get(&entry.producer_id) == Some(&entry))
}
