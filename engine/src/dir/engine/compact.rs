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
use super::partitions::Entry;
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
            if range.checkpoint_is_stale && checkpoint.is_some() {
                entry.log.set_compacted_end_offset(Some(range.first_dirty_offset));
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
