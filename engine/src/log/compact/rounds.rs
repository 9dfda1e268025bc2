//! Who may compact a log now? One round at a time, until somebody ends it.
//!
//! A round is at a step or between two of them. Whoever ends it waits for the step, not for the
//! round: what a round has in hand is nothing to the log before it is swapped, and the next step
//! finds that it is over.

use std::sync::PoisonError;

use super::replacement::Replacement;
use crate::error::{Error, Kind, Result};
use crate::log::Log;
use crate::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

/// Rounds of compaction of a log.
#[derive(Debug, Default)]
pub(in crate::log) struct Rounds {
    is_under_way: AtomicBool,
    /// How often rounds were ended: one that began before is over.
    endings: AtomicU64,
    /// Who wants none to begin.
    pauses: AtomicU32,
    /// Held during a step.
    step: Mutex<()>,
}

/// While this lives no round does a step, and no replacement of segments goes on.
pub(crate) struct Standstill<'a> {
    _step: MutexGuard<'a, ()>,
    pending: MutexGuard<'a, Option<Replacement>>,
}

impl Standstill<'_> {
    /// Forgets a replacement that is not complete: its files go with all others.
    pub(in crate::log) fn forget_replacement(&mut self) {
        *self.pending = None;
    }
}

/// A place in the order of rounds, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Round<'a> {
    rounds: &'a Rounds,
    endings: u64,
}

impl Rounds {
    /// Begins a round of `log`.
    pub(super) fn begin<'a>(&'a self, log: &Log) -> Result<Round<'a>> {
        // Before anything is looked at: who pauses rounds now ends this one.
        let endings = self.endings.load(Ordering::Acquire);
        if self.pauses.load(Ordering::Acquire) > 0 {
            return Err(is_over(log));
        }
        if self.is_under_way.swap(true, Ordering::AcqRel) {
            let message = "this log is being compacted";
            return Err(Error::new(Kind::Conflict, message).in_file(&log.dir()));
        }
        Ok(Round { rounds: self, endings })
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the round that is under way, and waits for nobody.
    pub(in crate::log) fn end(&self) {
        self.endings.fetch_add(1, Ordering::AcqRel);
    }

    /// The same, and lets none begin any more.
    pub(in crate::log) fn pause(&self) {
        self.pauses.fetch_add(1, Ordering::AcqRel);
        self.end();
    }
}

impl Round<'_> {
    /// Begins a step, which lasts as long as what is given.
    ///
    /// # Errors
    /// `Cancelled` when the round was ended, or its log.
    pub(super) fn step<'b>(&self, rounds: &'b Rounds, log: &Log) -> Result<MutexGuard<'b, ()>> {
        let step = rounds.lock();
        // A round may have begun while its log was on the way out.
        if rounds.endings.load(Ordering::Acquire) != self.endings || log.is_closed() {
            return Err(is_over(log));
        }
        Ok(step)
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.rounds.is_under_way.store(false, Ordering::Release);
    }
}

fn is_over(log: &Log) -> Error {
    Error::new(Kind::Cancelled, "the compaction of this log was ended").in_file(&log.dir())
}

impl Log {
    /// Ends the round of compaction that is under way, if there is one, and lets none begin until
    /// [`resume_compaction`](Self::resume_compaction) was called as often as this. Waits for the
    /// step that is being done; the next one gives `Cancelled`.
    pub fn pause_compaction(&self) {
        self.rounds.pause();
        drop(self.rounds.lock());
    }

    /// Lets rounds begin again.
    pub fn resume_compaction(&self) {
        let pauses = &self.rounds.pauses;
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        // More often than it was paused says nothing.
        let _ = pauses.fetch_update(set, get, |count| count.checked_sub(1));
    }

    /// Ends the round that is under way, and keeps it and every replacement of segments from the
    /// disk. Not to be asked for from the writer's seat.
    pub(crate) fn stand_still(&self) -> Standstill<'_> {
        self.rounds.end();
        let step = self.rounds.lock();
        // Once more: a round may have begun since, and done a step where the log was.
        self.rounds.end();
        Standstill { _step: step, pending: self.replacements.wait() }
    }

    /// Waits until whoever replaces segments or is writing is done.
    pub(super) fn wait_for_turn(&self) -> Result<()> {
        drop(self.replacements.wait());
        self.wait_for_seat().map(drop)
    }
}
