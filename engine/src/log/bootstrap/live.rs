//! How does an open log take over what was fetched, under its readers?
//!
//! The same three steps as in a directory, from the writer's seat. Old segments are doomed and not
//! unlinked: leases stay good, and files go when they are due.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::mark::{MARK_FILE, STAGED_EPOCHS, STAGED_SNAPSHOT};
use super::stage::{Names, clear, mark_of, stage_objects, write};
use super::state::AuxState;
use crate::error::{Error, Kind, Result};
use crate::log::inventory::EPOCH_FILE;
use crate::log::log::{Log, Writer};
use crate::segment::FileRole;

/// The new files beside a log, and what the log was when they were written: they may replace no
/// other. Whoever holds this is the only one who may take them back.
#[derive(Debug, PartialEq, Eq)]
pub struct AuxStaged {
    end_offset: i64,
    truncations: u64,
}

impl Log {
    /// Begins anew behind what remote storage holds, durably: the log is empty then, goes on at the
    /// state's `next_offset`, starts at its `log_start_offset`, and knows its epochs and producers.
    /// Readers go on with what they hold. Many logs at once are
    /// [`build_aux_bulk`](crate::tier::build_aux_bulk)'s to do, which also writes where each starts
    /// into the checkpoint around it. This leaves that to the host: before it is done, a log that is
    /// opened after a crash starts where an old line says, 0 without one, and is emptied by one that
    /// lies behind its end.
    ///
    /// # Errors
    /// `InvalidArgument` for a log without remote storage; `Conflict`, also while another install
    /// is under way; `Closed`; what the disk says. The log is as it was, or
    /// [has failed](Self::is_failed): then it is settled when it is opened again.
    pub fn install_aux(&self, state: &AuxState, now_ms: i64) -> Result<()> {
        // spec: follower-fetch 5.3, K6 to K8
        let storage = self.folder.storage();
        let staged = self.stage_aux(state)?;
        if let Err(error) = storage.sync_filesystem(&self.dir()) {
            self.discard_aux(staged)?;
            return Err(error);
        }
        self.put_aux_in_place(state, staged, now_ms)?;
        self.aux_synced(storage.sync_filesystem(&self.dir()))?;
        self.clear_aux()?;
        self.aux_synced(storage.sync_dir(&self.dir()))
    }

    /// The first step: the new files and the mark, beside the old. Not durable yet.
    ///
    /// # Errors
    /// As [`install_aux`](Self::install_aux): nothing of it is left then, or the log has failed.
    pub fn stage_aux(&self, state: &AuxState) -> Result<AuxStaged> {
        if !self.config().remote_storage {
            let message = "the log has no remote storage to be rebuilt from";
            return Err(Error::new(Kind::InvalidArgument, message).in_file(&self.dir()));
        }
        let mut seat = self.take_settled_seat()?;
        self.ready(&mut seat)?;
        let (storage, dir) = (self.folder.storage(), self.dir());
        let names = Names::list(&**storage, &dir)?;
        // The files beside the log are those of another install, which may be in place already.
        names.check_unmarked(&dir)?;
        let written = names.owner(&**storage, &dir).and_then(|like| {
            stage_objects(&**storage, &dir, state, &like)?;
            let mark = mark_of(state, names.segment_sizes(&**storage, &dir)?);
            write(&**storage, &dir, MARK_FILE, &mark.format(), &like)
        });
        let (end_offset, truncations) = (self.log_end_offset(), self.durable().truncations);
        let staged = AuxStaged { end_offset, truncations };
        let Err(error) = written else { return Ok(staged) };
        // Still in the seat: nobody else's files can be there.
        let cleared = clear(&**storage, &dir);
        drop(seat);
        self.aux_synced(cleared.and_then(|()| storage.sync_dir(&dir)))?;
        Err(error)
    }

    /// The second step, once the first is durable: the log begins anew. Not durable yet.
    ///
    /// # Errors
    /// `Conflict` when the log is not the one that was staged, or when another thread writes to it:
    /// it stays as it is, and nothing is left beside it. After what the disk says the log has
    /// failed.
    pub fn put_aux_in_place(&self, state: &AuxState, staged: AuxStaged, now_ms: i64) -> Result<()> {
        let outcome = self.take_settled_seat().and_then(|mut seat| {
            let writer = self.ready(&mut seat)?;
            let now = AuxStaged {
                end_offset: self.log_end_offset(),
                truncations: self.durable().truncations,
            };
            if now != staged {
                let message = "the log was written to while its rebuild was prepared";
                return Err(Error::new(Kind::Conflict, message).in_file(&self.dir()));
            }
            writer.now_ms = now_ms;
            // Whatever fails from here on, the mark has the log settled when it is opened again.
            self.begin_behind(writer, state, now_ms)
                .inspect_err(|_| self.is_failed.store(true, Ordering::Release))
        });
        if outcome.is_err() && !self.is_failed() {
            self.discard_aux(staged)?;
        }
        outcome
    }

    /// Takes note of how the sync after the second step went.
    ///
    /// # Errors
    /// That of the sync: the log has failed.
    pub fn aux_synced(&self, outcome: Result<()>) -> Result<()> {
        if outcome.is_err() {
            self.is_failed.store(true, Ordering::Release);
            return outcome;
        }
        let mut durable = self.durable();
        durable.flushed_end_offset = durable.flushed_end_offset.max(self.local_log_start_offset());
        Ok(())
    }

    /// The third step, once the second is durable: removes the mark. To be made durable before
    /// anything is appended.
    ///
    /// # Errors
    /// What the disk says: the log has failed.
    pub fn clear_aux(&self) -> Result<()> {
        self.aux_synced(clear(&**self.folder.storage(), &self.dir()))
    }

    /// Takes the first step back, durably.
    ///
    /// # Errors
    /// What the disk says: the log has failed, since the mark may come back.
    pub fn discard_aux(&self, _staged: AuxStaged) -> Result<()> {
        // The mark goes last, and as long as it is there nobody else stages: no seat is needed.
        let (storage, dir) = (self.folder.storage(), self.dir());
        self.aux_synced(clear(&**storage, &dir).and_then(|()| storage.sync_dir(&dir)))
    }

    fn begin_behind(&self, writer: &mut Writer, state: &AuxState, now_ms: i64) -> Result<()> {
        let next = state.target.next_offset;
        let old = self.replace_all(writer, next, now_ms)?;
        // The old snapshots go before the new one comes, which may have the name of one of them.
        // spec: follower-fetch D10
        for snapshot in writer.producers.truncate_fully_and_start_at(next) {
            self.remove_snapshot(snapshot)?;
        }
        let (storage, dir) = (self.folder.storage(), self.dir());
        storage.rename(&dir.join(STAGED_SNAPSHOT), &self.folder.file(next, FileRole::Snapshot))?;
        writer.producers.snapshots_mut().relist([next]);
        writer.producers.load_snapshot(next, &state.snapshot, now_ms)?;
        {
            // Their checkpoint is written from outside of the seat.
            let mut saved = self.saved_epochs.lock().unwrap_or_else(PoisonError::into_inner);
            storage.rename(&dir.join(STAGED_EPOCHS), &dir.join(EPOCH_FILE))?;
            *saved = Arc::clone(&state.epochs);
            self.epochs.store(Arc::clone(&state.epochs));
        }
        self.offsets.log_start.store(state.target.log_start_offset, Ordering::Release);
        self.offsets.local_log_start.store(next, Ordering::Release);
        self.offsets.log_end.store(next, Ordering::Release);
        self.set_high_watermark(writer, next);
        old.map_or(Ok(()), |old| self.retire_segment(&old, now_ms))
    }
}
