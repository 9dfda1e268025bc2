//! How does a new segment take the place of old ones, so that a crash leaves the old or the new?
//!
//! ```text
//! <base>.log.cleaned          all bytes and names are durable; a start removes it
//!   -> <base>.log.swap        sync; from here on a start completes the replacement
//! the list of segments        readers find the new segment, whose files are open
//! old files -> .deleted       sync
//!   -> <base>.log             sync
//! ```
//!
//! The syncs of the directory keep the steps apart on file systems that reorder renames. None of
//! them is done from the writer's seat; so that nothing else changes the old segments meanwhile, who
//! removes or cuts segments completes a replacement first, and is turned away while another thread
//! is at it. A step that fails can be tried again.

use std::path::Path;
use std::sync::{Arc, PoisonError, TryLockError};

use super::cleaned::CleanSegment;
use super::rules::Conditions;
use super::sources::Source;
use crate::error::{Error, Kind, Result};
use crate::io::Storage;
use crate::log::Log;
use crate::log::seat::Seat;
use crate::segment::{FileRole, FileState};
use crate::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

/// What a log knows of segments that are being replaced.
#[derive(Debug, Default)]
pub(in crate::log) struct Replacements {
    /// There is a replacement. Changes under the seat.
    is_pending: AtomicBool,
    pending: Mutex<Option<Replacement>>,
}

#[derive(Debug)]
pub(in crate::log) struct Replacement {
    new: CleanSegment,
    old: Vec<Source>,
    now_ms: i64,
    stage: Stage,
    /// Snapshots that go with the old segments.
    snapshots: Vec<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The new files are to be called `.swap`.
    Announce,
    /// Readers are to find the new segment.
    Publish,
    /// The old files are to be called `.deleted`.
    Retire,
    /// The new files are to get their names.
    Name,
}

/// A replacement that was not begun: nothing has happened.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) error: Error,
    pub(super) new: CleanSegment,
    pub(super) old: Vec<Source>,
    /// The log is not what it was: there is no use in another try.
    pub(super) is_changed: bool,
}

impl Log {
    /// Begins to replace segments, by a new one that was made under these conditions.
    ///
    /// # Errors
    /// `Conflict` while another thread is writing or replacing, and when the old segments or the
    /// conditions are not what they were.
    pub(super) fn begin_replacement(
        &self,
        (new, old): (CleanSegment, Vec<Source>),
        conditions: &Conditions,
    ) -> std::result::Result<(), Refused> {
        let mut is_changed = false;
        let mut begin = || {
            let pending = self.replacements.lock()?;
            if pending.is_some() {
                return Err(being_replaced());
            }
            let mut seat = self.take_seat_as_guest()?;
            let writer = self.ready(&mut seat)?;
            let segments = self.segments.load();
            let next = old.last().and_then(|last| segments.higher(last.base_offset()));
            let end = next.map_or(i64::MAX, |next| next.base_offset());
            // In the seat: a cut is behind the replacement, or is seen here.
            let lowest_cut = self.durable().lowest_cut;
            is_changed = !old.iter().all(|source| source.is_current(&segments))
                || !conditions.hold(lowest_cut, end, &writer.producers);
            if is_changed {
                return Err(changed(self));
            }
            self.replacements.is_pending.store(true, Ordering::Release);
            Ok(pending)
        };
        let mut pending = match begin() {
            Ok(pending) => pending,
            Err(error) => return Err(Refused { error, new, old, is_changed }),
        };
        let (stage, now_ms) = (Stage::Announce, conditions.now_ms);
        *pending = Some(Replacement { new, old, now_ms, stage, snapshots: Vec::new() });
        Ok(())
    }

    /// Completes the replacement of segments, if there is one that is not complete.
    ///
    /// # Errors
    /// `Conflict` while another thread is at it or is writing, what the disk says: to be tried
    /// again. After a sync that failed the log takes no more writes, and the next start completes
    /// it.
    pub(in crate::log) fn complete_replacement(&self) -> Result<()> {
        let mut pending = self.replacements.lock()?;
        if let Some(replacement) = pending.as_mut() {
            replacement.complete(self)?;
            *pending = None;
            self.replacements.is_pending.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Takes the writer's seat for what removes or cuts segments.
    ///
    /// # Errors
    /// Those of a seat; `Conflict` while segments are being replaced.
    pub(in crate::log) fn take_settled_seat(&self) -> Result<Seat<'_>> {
        self.complete_replacement()?;
        self.settled(self.take_seat()?)
    }

    /// The same for what goes on beside a writer, which waits for it.
    ///
    /// # Errors
    /// As [`take_settled_seat`](Self::take_settled_seat).
    pub(in crate::log) fn take_settled_seat_as_guest(&self) -> Result<Seat<'_>> {
        self.complete_replacement()?;
        self.settled(self.take_seat_as_guest()?)
    }

    fn settled<'a>(&self, seat: Seat<'a>) -> Result<Seat<'a>> {
        if self.replacements.is_pending.load(Ordering::Acquire) {
            return Err(being_replaced().in_file(&self.dir()));
        }
        Ok(seat)
    }

    fn sync_replacement(&self) -> Result<()> {
        self.folder.storage().sync_dir(&self.dir()).inspect_err(|_| {
            // Nobody knows any more which names are on the disk.
            self.is_failed.store(true, Ordering::Release);
        })
    }
}

impl Replacements {
    fn lock(&self) -> Result<MutexGuard<'_, Option<Replacement>>> {
        match self.pending.try_lock() {
            Ok(pending) => Ok(pending),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(being_replaced()),
        }
    }

    /// The same once whoever is at it is done.
    pub(super) fn wait(&self) -> MutexGuard<'_, Option<Replacement>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replacement {
    fn complete(&mut self, log: &Log) -> Result<()> {
        loop {
            match self.stage {
                Stage::Announce => {
                    self.rename(log, FileState::Cleaned, FileState::Swap)?;
                    log.sync_replacement()?;
                    self.stage = Stage::Publish;
                }
                Stage::Publish => {
                    self.publish(log)?;
                    self.stage = Stage::Retire;
                }
                Stage::Retire => {
                    self.retire(log)?;
                    self.stage = Stage::Name;
                }
                Stage::Name => {
                    self.rename(log, FileState::Swap, FileState::Live)?;
                    log.sync_replacement()?;
                    // From now on its files are opened by their names.
                    self.new.segment.close();
                    return Ok(());
                }
            }
        }
    }

    // spec: segments 4.8
    fn publish(&mut self, log: &Log) -> Result<()> {
        let mut seat = log.take_seat_as_guest()?;
        let writer = log.ready(&mut seat)?;
        let new = &self.new.segment;
        let is_old = |base| self.old.iter().any(|source| source.base_offset() == base);
        let list = log.segments.load().without(|segment| is_old(segment.base_offset()));
        log.segments.store(Arc::new(list.with(Arc::clone(new))));
        for source in &self.old {
            source.segment.retire();
            source.segment.close();
            let base_offset = source.base_offset();
            if base_offset != new.base_offset()
                && writer.producers.snapshots_mut().remove(base_offset)
            {
                self.snapshots.push(base_offset);
            }
        }
        Ok(())
    }

    fn retire(&self, log: &Log) -> Result<()> {
        for source in &self.old {
            let base_offset = source.base_offset();
            log.doom_segment(base_offset, self.now_ms)?;
            if base_offset >= self.new.next_offset {
                // A start that finds the new segment removes the old ones only up to its end. One
                // that it does not remove must not be there without those behind it: what they say
                // of its keys may be said nowhere else any more.
                log.sync_replacement()?;
            }
        }
        for offset in &self.snapshots {
            log.doom_snapshot(*offset, self.now_ms)?;
        }
        log.sync_replacement()
    }

    fn rename(&self, log: &Log, from: FileState, to: FileState) -> Result<()> {
        let base_offset = self.new.segment.base_offset();
        // The log first: a start takes an index without one for its own.
        for role in &FileRole::ALL[..4] {
            let from = log.folder.file_in(base_offset, *role, from);
            let to = log.folder.file_in(base_offset, *role, to);
            rename_if_there(&**log.folder.storage(), &from, &to)?;
        }
        Ok(())
    }
}

/// Renames a file that may have been renamed before, or may never have been.
fn rename_if_there(storage: &dyn Storage, from: &Path, to: &Path) -> Result<()> {
    match storage.rename(from, to) {
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        other => other,
    }
}

/// That a round found another log than it began with.
pub(super) fn changed(log: &Log) -> Error {
    let message = "the log was changed while it was compacted";
    Error::new(Kind::Conflict, message).in_file(&log.dir())
}

fn being_replaced() -> Error {
    Error::new(Kind::Conflict, "segments of this log are being replaced")
}
