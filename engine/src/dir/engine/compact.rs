//! Which log is compacted next? The one of which most is not, if it is enough.
//!
//! As in Kafka one look takes one log: the current ones that are to be compacted, are not at it
//! already and hold nothing that cannot be read. Whoever took one looks again at once; who found
//! none, some seconds later. What lies before the starts of compacted logs goes with each look, as
//! retention leaves these logs alone.
//!
//! Deleting, moving and closing a log end its round, and wait until it is over.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::checkpoints::CheckpointFile;
use super::due::WorkKind;
use super::engine::Engine;
use super::options::EngineOptions;
use super::partitions::{Entry, Place};
use crate::error::{Error, Kind, Result};
use crate::log::{Cleanable, Cleaner, CleanerOptions};

/// Those who compact logs.
#[derive(Debug)]
pub(super) struct Compactors {
    count: usize,
    options: CleanerOptions,
    /// When one is to look for a log, in milliseconds since 1970.
    look_at: AtomicI64,
    crew: Mutex<Crew>,
    /// Held while a log is picked.
    picking: Mutex<()>,
}

#[derive(Debug, Default)]
struct Crew {
    /// How many are handed out.
    out: usize,
    /// The memory of those who were at work before.
    idle: Vec<Cleaner>,
}

impl Compactors {
    pub(super) fn new(options: &EngineOptions<'_>) -> Self {
        let look_at = options.now_ms.saturating_add(options.cleaner_backoff_ms);
        Compactors {
            count: options.cleaners,
            options: options.cleaner,
            look_at: AtomicI64::new(look_at),
            crew: Mutex::default(),
            picking: Mutex::default(),
        }
    }

    fn crew(&self) -> MutexGuard<'_, Crew> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands one out, if one is to look now.
    pub(super) fn take(&self, now_ms: i64) -> bool {
        if self.look_at.load(Ordering::Relaxed) > now_ms {
            return false;
        }
        let mut crew = self.crew();
        let is_free = crew.out < self.count;
        crew.out += usize::from(is_free);
        is_free
    }

    /// Takes back one that was handed out.
    pub(super) fn give_back(&self) {
        let mut crew = self.crew();
        crew.out = crew.out.saturating_sub(1);
    }

    fn cleaner(&self) -> Cleaner {
        let idle = self.crew().idle.pop();
        idle.unwrap_or_else(|| Cleaner::new(self.options))
    }
}

/// A log that was picked; others leave it alone as long as this lives.
struct Picked(Arc<Entry>);

impl Picked {
    fn claim(entry: &Arc<Entry>) -> Option<Self> {
        entry.claim(WorkKind::Compact.bit()).then(|| Picked(Arc::clone(entry)))
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        self.0.busy.fetch_and(!WorkKind::Compact.bit(), Ordering::AcqRel);
    }
}

impl Engine {
    /// Compacts the log that is the dirtiest, if one is dirty enough.
    pub(super) fn compact_dirtiest(&self, now_ms: i64) -> Result<()> {
        let (picked, looked) = self.pick(now_ms);
        let mut has_done_something = false;
        let compacted = match picked {
            Some((picked, range)) => {
                let outcome = self.compact_picked(&picked.0, &range, now_ms);
                has_done_something = outcome.as_ref().is_ok_and(|progress| *progress);
                outcome.map(drop)
            }
            None => Ok(()),
        };
        let removed = self.remove_before_starts(now_ms);
        if !has_done_something {
            let next = now_ms.saturating_add(self.intervals.cleaner_backoff_ms);
            self.compactors.look_at.store(next, Ordering::Relaxed);
            self.compactors.crew().idle.clear();
        }
        looked.and(compacted).and(removed)
    }

    /// The logs that may be compacted.
    fn compacted_entries(&self) -> Vec<Arc<Entry>> {
        let partitions = self.read();
        let entries = partitions.entries().filter(|entry| {
            !entry.is_future
                && entry.log.config().compact
                && !entry.is_uncleanable.load(Ordering::Relaxed)
                && !entry.log.is_failed()
        });
        entries.cloned().collect()
    }

    /// The dirtiest log and its range, and the first error of those that could not be looked at.
    fn pick(&self, now_ms: i64) -> (Option<(Picked, Cleanable)>, Result<()>) {
        let _picking = self.compactors.picking.lock().unwrap_or_else(PoisonError::into_inner);
        let mut outcome = Ok(());
        let mut found: Option<(Picked, Cleanable)> = None;
        for entry in self.compacted_entries() {
            let Some(picked) = Picked::claim(&entry) else { continue };
            let checkpoint = entry.log.compacted_end_offset();
            let range = match entry.log.cleanable(checkpoint, now_ms) {
                Ok(range) => range,
                Err(error) => {
                    outcome = outcome.and(self.judge_compaction(&entry, error));
                    continue;
                }
            };
            // spec: cleaner 2. At once, whether or not the log is compacted.
            if range.checkpoint_is_stale && entry.log.correct_compacted_end_offset() {
                outcome = outcome.and(self.checkpoint_compacted(&entry));
            }
            let most = found.as_ref().map_or(0.0, |(_, most)| most.dirty_ratio());
            if range.is_due() && range.dirty_ratio() > most {
                found = Some((picked, range));
            }
        }
        (found, outcome)
    }

    /// One round; whether it came further.
    fn compact_picked(&self, entry: &Arc<Entry>, range: &Cleanable, now_ms: i64) -> Result<bool> {
        let _compacting = entry.compacting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cleaner = self.compactors.cleaner();
        let outcome = entry.log.compact(&mut cleaner, range, now_ms);
        self.compactors.crew().idle.push(cleaner);
        match outcome {
            Ok(done) => {
                // What it took for compacted must not be forgotten, or tombstones would wait for
                // the next round for nothing.
                self.checkpoint_compacted(entry)?;
                Ok(done.end_offset > range.first_dirty_offset)
            }
            Err(error) => self.judge_compaction(entry, error).map(|()| false),
        }
    }

    /// Cuts the current log of a partition as [`Log::truncate_to`](crate::log::Log::truncate_to)
    /// does, and writes down at once that less of it is compacted: else a start after a crash would
    /// take for compacted what has come in the place of what was cut.
    ///
    /// # Errors
    /// `NotFound` when there is no log; those of the cut, and of the checkpoint: then the log is
    /// cut, and the checkpoint is written with the work that is due.
    pub fn truncate_to(
        &self,
        topic: &str,
        partition: i32,
        offset: i64,
        now_ms: i64,
    ) -> Result<bool> {
        let log = self.log(topic, partition)?;
        let entry = self.read().get(topic, partition, false).and_then(Place::entry).cloned();
        let (Some(_), Some(entry)) = (log, entry) else {
            let message = format!("there is no log of {topic}-{partition}");
            return Err(Error::new(Kind::NotFound, message));
        };
        let cut = entry.log.truncate_to(offset, now_ms);
        let is_cut = cut.map_err(|error| self.judge(entry.dir, error))?;
        if is_cut {
            self.checkpoint_compacted(&entry)?;
        }
        Ok(is_cut)
    }

    fn checkpoint_compacted(&self, entry: &Entry) -> Result<()> {
        self.checkpoint_dir(entry.dir, CheckpointFile::CompactedEnds)
    }

    /// What an error of compaction means for its log; what is no fault is none.
    fn judge_compaction(&self, entry: &Entry, error: Error) -> Result<()> {
        match error.kind() {
            // It was ended from outside, or the log was changed: it is tried again.
            Kind::Cancelled | Kind::Closed | Kind::Conflict => Ok(()),
            Kind::Io | Kind::NotFound => Err(self.judge(entry.dir, error)),
            // spec: cleaner 3
            _ => {
                entry.is_uncleanable.store(true, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Removes what lies before the start of each compacted log, and what is beyond retention where
    /// that holds of it, too.
    fn remove_before_starts(&self, now_ms: i64) -> Result<()> {
        let mut outcome = Ok(());
        for entry in self.compacted_entries() {
            let Some(picked) = Picked::claim(&entry) else { continue };
            if let Err(error) = picked.0.log.delete_old_segments(now_ms) {
                let is_fault = !matches!(error.kind(), Kind::Conflict | Kind::Closed);
                if is_fault {
                    outcome = outcome.and(Err(self.judge(entry.dir, error)));
                }
            }
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::dir::engine::NewLog;
    use crate::io::{SimDisk, Storage};
    use crate::log::LogConfig;
    use crate::record::builder::BatchOptions;
    use crate::record::builder::samples::batch_of_one;

    #[test]
    fn a_log_that_is_cut_after_it_was_picked_is_picked_again() {
        let disk = SimDisk::new();
        let config = LogConfig { compact: true, file_delete_delay_ms: 0, ..LogConfig::default() };
        let config_of = |_: &str| config.clone();
        let dirs = ["/data".into()];
        let options = EngineOptions::new(&config_of, 0);
        let (engine, _) = Engine::open(Arc::new(disk), &dirs, &options).unwrap();
        let new = NewLog { config: config.clone(), ..NewLog::default() };
        let log = engine.get_or_create("orders", 0, &new).unwrap();
        let append = |base_offset| {
            let options = BatchOptions { base_offset, leader_epoch: 0, ..BatchOptions::default() };
            log.append_as_follower(&batch_of_one(options, 0, b"value"), 0, 0).unwrap();
            log.roll(0).unwrap();
            log.update_high_watermark(base_offset + 1).unwrap();
        };
        (0..4).for_each(append);
        for (cut, start) in [(2, None), (0, Some(1))] {
            let (picked, looked) = engine.pick(0);
            looked.unwrap();
            let (picked, range) = picked.unwrap();
            match start {
                Some(start) => log.truncate_fully_and_start_at(start, None, 0).unwrap(),
                None => assert!(log.truncate_to(cut, 0).unwrap()),
            }
            assert!(!engine.compact_picked(&picked.0, &range, 0).unwrap());
            drop(picked);
            let end = log.log_end_offset();
            (end..end + 4).for_each(append);
        }
        let (picked, range) = engine.pick(0).0.unwrap();
        assert!(engine.compact_picked(&picked.0, &range, 0).unwrap());
    }

    #[test]
    fn a_cut_is_in_the_checkpoint_of_compacted_logs_when_it_returns() {
        let disk = SimDisk::new();
        let config = |_: &str| LogConfig::default();
        let dirs = ["/data".into()];
        let options = EngineOptions::new(&config, 0);
        let (engine, _) = Engine::open(Arc::new(disk.clone()), &dirs, &options).unwrap();
        let missing = engine.truncate_to("orders", 0, 0, 0).unwrap_err();
        assert_eq!(missing.kind(), Kind::NotFound);
        let log = engine.get_or_create("orders", 0, &NewLog::default()).unwrap();
        for base_offset in 0..4 {
            let options = BatchOptions { base_offset, leader_epoch: 0, ..BatchOptions::default() };
            log.append_as_follower(&batch_of_one(options, 0, b"value"), 0, 0).unwrap();
            log.roll(0).unwrap();
        }
        log.set_compacted_end_offset(Some(3));
        engine.checkpoint(CheckpointFile::CompactedEnds).unwrap();
        let line = || {
            let path = std::path::Path::new("/data").join(CheckpointFile::CompactedEnds.name());
            let bytes = disk.read(&path, 1000).unwrap();
            crate::state::OffsetCheckpoint::parse(&bytes).unwrap().get("orders", 0)
        };
        assert!(!engine.truncate_to("orders", 0, 9, 0).unwrap());
        assert_eq!(line(), Some(3));
        assert!(engine.truncate_to("orders", 0, 2, 0).unwrap());
        assert_eq!(line(), Some(2));
    }
}
