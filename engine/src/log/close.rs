//! How does a log end its life in this process?

use std::sync::atomic::Ordering;

use super::log::Log;
use crate::error::Result;

impl Log {
    /// Closes the log: files get the form that they have at rest, a snapshot is taken, everything
    /// is made durable. Readers are turned away from now on; leases stay good.
    ///
    /// # Errors
    /// The first thing that failed; the log is closed all the same, as after a crash.
    pub fn close(&self) -> Result<()> {
        // spec: segments 6.10, 7
        // What a compaction could not complete the next start does.
        let _ = self.complete_replacement();
        let mut seat = self.take_seat_anyway()?;
        let writer = seat.writer()?;
        let now_ms = writer.now_ms;
        let mut outcome = Ok(());
        if !self.is_failed() {
            outcome = if writer.is_unsettled { self.settle(writer) } else { Ok(()) };
            // The last flush would make the indexes of an empty segment, at their full length.
            let settings = self.config.load().segment();
            let active = &mut writer.active;
            outcome = outcome.and_then(|()| active.touch_indexes(&self.folder, &settings));
            outcome = outcome.and_then(|()| active.finish_files(&self.folder));
            outcome = outcome.and_then(|()| self.take_snapshot(writer));
            outcome = outcome.and_then(|()| self.flush(true, now_ms));
        }
        self.is_closed.store(true, Ordering::Release);
        if let Some(writer) = seat.leave() {
            writer.active.close();
        }
        for segment in self.segments.load().iter() {
            segment.close();
        }
        outcome
    }
}
