//! How does a log end its life in this process?

use std::sync::atomic::Ordering;

use super::flush::FlushWork;
use super::log::{Log, Writer};
use super::seat::Seat;
use crate::error::{Kind, Result};

impl Log {
    /// Closes the log: files get the form that they have at rest, a snapshot is taken, everything
    /// is made durable. Readers are turned away from now on; leases stay good. A log that is closed
    /// may be closed again.
    ///
    /// # Errors
    /// The first thing that failed; the log is closed all the same, as after a crash.
    pub fn close(&self) -> Result<()> {
        self.check_no_look()?;
        self.pause_compaction();
        // What a compaction could not complete the next start does.
        let _ = self.complete_replacement();
        let seat = match self.take_seat_anyway() {
            Ok(seat) => seat,
            Err(error) if error.kind() == Kind::Closed => return self.closed_before(),
            Err(error) => {
                self.resume_compaction();
                return Err(error);
            }
        };
        let Some((work, now_ms)) = self.close_from(seat)? else { return Ok(()) };
        let outcome = self.sync(&work);
        self.complete_flush(&work, outcome, now_ms)
    }

    /// Closes the log but for the syncs, so that a host can do those of many logs at once: files
    /// get the form that they have at rest, a snapshot is taken, and what is to be synced is told,
    /// with the writer's clock. `None` when all is durable. Waits for whoever is writing.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub fn begin_close(&self) -> Result<Option<(FlushWork, i64)>> {
        self.check_no_look()?;
        self.pause_compaction();
        let _ = self.complete_replacement();
        match self.wait_for_seat() {
            Ok(seat) => self.close_from(seat),
            Err(error) if error.kind() == Kind::Closed => self.closed_before().map(|()| None),
            Err(error) => Err(error),
        }
    }

    fn close_from(&self, mut seat: Seat<'_>) -> Result<Option<(FlushWork, i64)>> {
        // spec: segments 6.10, 7
        let writer = seat.writer()?;
        let now_ms = writer.now_ms;
        let outcome = if self.is_failed() { Err(self.failed()) } else { self.finish(writer) };
        if outcome.is_err() {
            // Nobody may take it for closed cleanly when he asks again.
            self.is_failed.store(true, Ordering::Release);
        }
        self.leave(seat);
        Ok(outcome?.map(|work| (work, now_ms)))
    }

    /// What a second close says: nothing, unless the first one failed.
    fn closed_before(&self) -> Result<()> {
        if self.is_failed() { Err(self.failed()) } else { Ok(()) }
    }

    fn finish(&self, writer: &mut Writer) -> Result<Option<FlushWork>> {
        if writer.is_unsettled {
            self.settle(writer)?;
        }
        // The last flush would make the indexes of an empty segment, at their full length.
        let settings = self.config.load().segment();
        writer.active.touch_indexes(&self.folder, &settings)?;
        writer.active.finish_files(&self.folder)?;
        self.take_snapshot(writer)?;
        self.prepare_flush(self.log_end_offset(), true)
    }

    /// Closes the log as it is, without a write: for one whose disk has failed, or that is to be
    /// deleted. Whoever is writing to it is not waited for, and cannot write again.
    pub fn abandon(&self) {
        self.rounds.pause();
        self.is_failed.store(true, Ordering::Release);
        self.is_closed.store(true, Ordering::Release);
        if let Ok(seat) = self.take_seat_anyway() {
            self.leave(seat);
        }
    }

    /// Turns everybody away and lets go of the files.
    fn leave(&self, seat: Seat<'_>) {
        self.is_closed.store(true, Ordering::Release);
        if let Some(writer) = seat.leave() {
            writer.active.close();
        }
        for segment in self.segments.load().iter() {
            segment.close();
        }
    }
}
