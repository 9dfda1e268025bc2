//! What is to be done now? Work that comes due is handed out to the host, which runs it where and
//! when it likes.
//!
//! | work | when |
//! |---|---|
//! | flush | a log was rolled, or by `flush.ms` and `flush.messages`; all logs of a directory at once |
//! | delete files | `file.delete.delay.ms` after they left their log |
//! | delete folders | a while after their logs were deleted |
//! | retention | every few minutes; compacted logs are the cleaner's |
//! | expire producers | every few minutes |
//! | checkpoints | every few seconds, or minutes; of compaction when it says something else |
//! | compact | whenever there may be a log that is dirty enough; see `compact.rs` |
//!
//! What is handed out is not handed out again before it was run or dropped. What failed is due
//! again a little later.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::checkpoints::CheckpointFile;
use super::directory::LogDir;
use super::engine::Engine;
use super::partitions::Entry;
use super::remove::Removal;
use crate::error::{Error, Kind, Result};
use crate::log::{Log, remove_tree};

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkKind {
    /// Make logs of a directory durable.
    Flush,
    /// Unlink files that left a log.
    DeleteFiles,
    /// Remove the folder of a deleted log.
    DeleteFolder,
    /// Remove segments beyond retention.
    Retention,
    /// Forget silent producers.
    ExpireProducers,
    /// Write a checkpoint of a directory.
    Checkpoint(CheckpointFile),
    /// Compact the dirtiest log, and remove what lies before the starts of compacted logs.
    Compact,
}

impl WorkKind {
    /// Its bit where claims are kept: of a log, or of a directory.
    pub(super) fn bit(self) -> u8 {
        match self {
            WorkKind::Flush | WorkKind::DeleteFiles => 1,
            WorkKind::Retention | WorkKind::Checkpoint(CheckpointFile::RecoveryPoints) => 2,
            WorkKind::ExpireProducers | WorkKind::Checkpoint(CheckpointFile::LogStarts) => 4,
            WorkKind::DeleteFolder | WorkKind::Checkpoint(CheckpointFile::HighWatermarks) => 8,
            WorkKind::Compact | WorkKind::Checkpoint(CheckpointFile::CompactedEnds) => 16,
        }
    }
}

/// A piece of work that is due. To be given to [`Engine::run`]; what is dropped is due again.
#[derive(Debug)]
pub struct DueWork<'a> {
    engine: &'a Engine,
    kind: WorkKind,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// Logs of a directory, each up to an offset.
    Logs(usize, Vec<(Arc<Log>, i64)>),
    Log(Arc<Entry>),
    Folder(Arc<Removal>),
    Dir(usize),
    /// The log that is the dirtiest when it is run.
    Dirtiest,
}

impl DueWork<'_> {
    /// What it is.
    #[must_use]
    pub fn kind(&self) -> WorkKind {
        self.kind
    }

    /// Where it is done: the directory of a log, or a log directory. Empty for compaction, which
    /// picks its logs when it is run.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.target {
            Target::Log(entry) => PathBuf::clone(&entry.log.dir()),
            Target::Folder(removal) => removal.path().to_path_buf(),
            Target::Logs(dir, _) | Target::Dir(dir) => {
                self.engine.dirs.get(*dir).map(|dir| dir.path.clone()).unwrap_or_default()
            }
            Target::Dirtiest => PathBuf::new(),
        }
    }

    /// The number of its log directory, if it has one.
    fn dir(&self) -> Option<usize> {
        match &self.target {
            Target::Log(entry) => Some(entry.dir),
            Target::Folder(removal) => Some(removal.dir),
            Target::Logs(dir, _) | Target::Dir(dir) => Some(*dir),
            Target::Dirtiest => None,
        }
    }
}

impl Drop for DueWork<'_> {
    fn drop(&mut self) {
        let mask = !self.kind.bit();
        match &self.target {
            Target::Log(entry) => drop(entry.busy.fetch_and(mask, Ordering::AcqRel)),
            Target::Folder(removal) => removal.is_busy.store(false, Ordering::Release),
            Target::Logs(dir, _) | Target::Dir(dir) => {
                if let Some(dir) = self.engine.dirs.get(*dir) {
                    dir.busy.fetch_and(mask, Ordering::AcqRel);
                }
            }
            Target::Dirtiest => self.engine.compactors.give_back(),
        }
    }
}

impl Engine {
    /// What is due at `now_ms` (milliseconds since 1970) and not handed out yet.
    #[must_use]
    pub fn due_work(&self, now_ms: i64) -> Vec<DueWork<'_>> {
        let mut due = Vec::new();
        let mut flushes: Vec<Vec<(Arc<Log>, i64)>> = vec![Vec::new(); self.dirs.len()];
        let mut is_recompacted = vec![false; self.dirs.len()];
        for entry in self.read().entries() {
            if is_later(&entry.retry_at, now_ms) {
                continue;
            }
            if let (Some(end), Some(flushes)) =
                (flush_end(&entry.log, now_ms), flushes.get_mut(entry.dir))
            {
                flushes.push((Arc::clone(&entry.log), end));
            }
            if let Some(is_recompacted) = is_recompacted.get_mut(entry.dir) {
                let is_current = !entry.is_future;
                *is_recompacted |= is_current && !entry.is_saved(entry.log.compacted_end_offset());
            }
            // Its host opens a failed log again, or takes its directory offline.
            let is_sound = !entry.log.is_failed();
            let has_files = entry.log.next_deletion_ms().is_some_and(|due_ms| due_ms <= now_ms);
            let is_compacted = entry.log.config().compact;
            for (kind, is_due) in [
                (WorkKind::DeleteFiles, has_files),
                (
                    WorkKind::Retention,
                    is_sound && !is_compacted && !is_later(&entry.retain_at, now_ms),
                ),
                (WorkKind::ExpireProducers, is_sound && !is_later(&entry.expire_at, now_ms)),
            ] {
                if is_due && entry.claim(kind.bit()) {
                    due.push(self.work(kind, Target::Log(Arc::clone(entry))));
                }
            }
        }
        let dirs = self.dirs.iter().zip(flushes.into_iter().zip(is_recompacted));
        for (number, (dir, work)) in dirs.enumerate() {
            self.due_in_dir(number, dir, work, now_ms, &mut due);
        }
        if self.compactors.take(now_ms) {
            due.push(self.work(WorkKind::Compact, Target::Dirtiest));
        }
        for removal in self.removals().iter() {
            let is_online = self.dirs.get(removal.dir).is_some_and(|dir| !dir.is_offline());
            if is_online
                && !is_later(&removal.due_ms, now_ms)
                && !removal.is_busy.swap(true, Ordering::AcqRel)
            {
                due.push(self.work(WorkKind::DeleteFolder, Target::Folder(Arc::clone(removal))));
            }
        }
        due
    }

    fn work(&self, kind: WorkKind, target: Target) -> DueWork<'_> {
        DueWork { engine: self, kind, target }
    }

    fn due_in_dir<'a>(
        &'a self,
        number: usize,
        dir: &LogDir,
        (logs, is_recompacted): (Vec<(Arc<Log>, i64)>, bool),
        now_ms: i64,
        due: &mut Vec<DueWork<'a>>,
    ) {
        if dir.is_offline() {
            return;
        }
        let may_flush = !logs.is_empty() && !is_later(&dir.flush_retry_at, now_ms);
        if may_flush && dir.claim(WorkKind::Flush.bit()) {
            due.push(self.work(WorkKind::Flush, Target::Logs(number, logs)));
        }
        for (file, at) in CheckpointFile::ALL.into_iter().zip(&dir.checkpoint_at) {
            let kind = WorkKind::Checkpoint(file);
            let is_wanted = file != CheckpointFile::CompactedEnds || is_recompacted;
            if is_wanted && !is_later(at, now_ms) && dir.claim(kind.bit()) {
                due.push(self.work(kind, Target::Dir(number)));
            }
        }
    }

    /// Does a piece of work, on the caller's thread. What fails is due again after a while.
    ///
    /// # Errors
    /// What kept it from being done. A disk that failed took its directory offline.
    pub fn run(&self, work: &DueWork<'_>, now_ms: i64) -> Result<()> {
        let Some(dir) = work.dir() else { return self.compact_dirtiest(now_ms) };
        let outcome = self.dir(dir).and_then(LogDir::check);
        outcome.and_then(|()| self.act(work, now_ms)).map_err(|error| {
            let retry_at = now_ms.saturating_add(self.intervals.retry_ms);
            match &work.target {
                Target::Log(entry) => entry.retry_at.store(retry_at, Ordering::Relaxed),
                Target::Folder(removal) => removal.due_ms.store(retry_at, Ordering::Relaxed),
                Target::Logs(dir, _) => {
                    if let Some(dir) = self.dirs.get(*dir) {
                        dir.flush_retry_at.store(retry_at, Ordering::Relaxed);
                    }
                }
                Target::Dir(_) | Target::Dirtiest => self.set_checkpoint_at(work, retry_at),
            }
            // Somebody was writing: that is no fault.
            if error.kind() == Kind::Conflict { error } else { self.judge(dir, error) }
        })
    }

    fn act(&self, work: &DueWork<'_>, now_ms: i64) -> Result<()> {
        match (&work.target, work.kind) {
            (Target::Logs(_, logs), _) => {
                let logs: Vec<(&Log, i64)> = logs.iter().map(|(log, end)| (&**log, *end)).collect();
                self.flush_to(&logs, now_ms).into_iter().collect()
            }
            (Target::Log(entry), WorkKind::DeleteFiles) => {
                entry.log.delete_due_files(now_ms).map(drop)
            }
            (Target::Log(entry), WorkKind::Retention) => {
                entry.log.delete_old_segments(now_ms)?;
                let next = now_ms.saturating_add(self.intervals.retention_ms);
                entry.retain_at.store(next, Ordering::Relaxed);
                Ok(())
            }
            (Target::Log(entry), _) => {
                entry.log.remove_expired_producers(now_ms)?;
                let next = now_ms.saturating_add(self.intervals.expiration_ms);
                entry.expire_at.store(next, Ordering::Relaxed);
                Ok(())
            }
            (Target::Folder(removal), _) => self.remove_folder(removal),
            (Target::Dir(dir), WorkKind::Checkpoint(file)) => {
                self.checkpoint_dir(*dir, file)?;
                let position = CheckpointFile::ALL.iter().position(|known| *known == file);
                let interval = position.and_then(|at| self.intervals.checkpoints_ms.get(at));
                let next = now_ms.saturating_add(interval.copied().unwrap_or(0));
                self.set_checkpoint_at(work, next);
                Ok(())
            }
            (Target::Dir(_) | Target::Dirtiest, _) => {
                Err(Error::new(Kind::InvalidArgument, "no such work"))
            }
        }
    }

    fn set_checkpoint_at(&self, work: &DueWork<'_>, at_ms: i64) {
        let WorkKind::Checkpoint(file) = work.kind else { return };
        let Some(dir) = work.dir().and_then(|dir| self.dirs.get(dir)) else { return };
        let mut all = CheckpointFile::ALL.iter().zip(&dir.checkpoint_at);
        if let Some((_, at)) = all.find(|(known, _)| **known == file) {
            at.store(at_ms, Ordering::Relaxed);
        }
    }

    fn remove_folder(&self, removal: &Arc<Removal>) -> Result<()> {
        if let Some(log) = &removal.log {
            log.abandon();
        }
        remove_tree(&*self.storage, removal.path())?;
        self.removals().retain(|other| !Arc::ptr_eq(other, removal));
        Ok(())
    }
}

fn is_later(at: &AtomicI64, now_ms: i64) -> bool {
    at.load(Ordering::Relaxed) > now_ms
}

/// Up to where a log is to be made durable now, if it is: what lies before its active segment, and
/// by `flush.ms` or `flush.messages` all of it.
fn flush_end(log: &Log, now_ms: i64) -> Option<i64> {
    if log.is_failed() {
        return None;
    }
    if log.flush_is_due() || log.next_flush_ms().is_some_and(|due_ms| due_ms <= now_ms) {
        return Some(log.log_end_offset());
    }
    // spec: segments 6.5
    let rolled = log.segments().last().map(|active| active.base_offset())?;
    (log.recovery_point() < rolled).then_some(rolled)
}
