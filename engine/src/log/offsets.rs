//! How far may readers see, and which leader wrote what? High watermark, last stable offset, leader
//! epochs.
//!
//! Always: log start <= last stable <= high watermark <= log end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::log::{Log, Writer};
use super::replace::replace;
use crate::error::{Error, Kind, Result};
use crate::log::inventory::EPOCH_FILE;
use crate::state::LeaderEpochs;

impl Log {
    /// Sets the high watermark, which may go back: to the log start when it lies before it, to the
    /// log end when it lies behind. Gives what it is now. Waits for whoever is writing.
    ///
    /// # Errors
    /// `InvalidArgument` for a negative offset; `Closed`.
    pub fn update_high_watermark(&self, high_watermark: i64) -> Result<i64> {
        // spec: segments 6.1
        if high_watermark < 0 {
            let message = format!("a high watermark of {high_watermark} cannot be");
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        let mut seat = self.wait_for_seat()?;
        Ok(self.set_high_watermark(seat.writer()?, high_watermark))
    }

    /// Raises the high watermark if `high_watermark` is above it; gives the old one if so. Waits
    /// for whoever is writing.
    ///
    /// # Errors
    /// `InvalidArgument` for an offset behind the log end; `Closed`.
    pub fn maybe_increment_high_watermark(&self, high_watermark: i64) -> Result<Option<i64>> {
        // spec: segments 6.1
        let end = self.log_end_offset();
        if high_watermark > end {
            let message =
                format!("a high watermark of {high_watermark} is behind the log end {end}");
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        let mut seat = self.wait_for_seat()?;
        let old = self.high_watermark();
        if old >= high_watermark {
            return Ok(None);
        }
        self.set_high_watermark(seat.writer()?, high_watermark);
        Ok(Some(old))
    }

    /// Sets the high watermark to what is asked for, within the log; gives it if that changed it.
    ///
    /// # Errors
    /// Those of [`update_high_watermark`](Self::update_high_watermark).
    pub fn maybe_update_high_watermark(&self, high_watermark: i64) -> Result<Option<i64>> {
        let old = self.high_watermark();
        let new = self.update_high_watermark(high_watermark)?;
        Ok((new != old).then_some(new))
    }

    pub(super) fn set_high_watermark(&self, writer: &mut Writer, wanted: i64) -> i64 {
        let new = wanted.max(self.log_start_offset()).min(self.log_end_offset());
        writer.producers.high_watermark_updated(new);
        let old = self.high_watermark();
        // A reader must not see the last stable offset above the high watermark.
        if new < old {
            self.publish_last_stable(writer, new);
            self.offsets.high_watermark.store(new, Ordering::Release);
        } else {
            self.offsets.high_watermark.store(new, Ordering::Release);
            self.publish_last_stable(writer, new);
        }
        new
    }

    /// Works out the last stable offset anew.
    pub(super) fn refresh_last_stable(&self, writer: &Writer) {
        self.publish_last_stable(writer, self.high_watermark());
    }

    fn publish_last_stable(&self, writer: &Writer, high_watermark: i64) {
        // spec: segments 6.2
        let stable = match self.unstable(writer) {
            Some(unstable) if unstable < high_watermark => unstable,
            _ => high_watermark,
        };
        self.offsets.last_stable.store(stable, Ordering::Release);
    }

    fn unstable(&self, writer: &Writer) -> Option<i64> {
        let first = writer.producers.first_unstable_offset()?;
        Some(first.offset.max(self.log_start_offset()))
    }

    /// The first offset that a transaction holds back: open, or ended with a marker that is not
    /// replicated yet.
    ///
    /// # Errors
    /// `Conflict` when another thread is writing, `Closed`.
    pub fn first_unstable_offset(&self) -> Result<Option<i64>> {
        let mut seat = self.take_seat_as_guest_anyway()?;
        let writer = seat.writer()?;
        Ok(self.unstable(writer))
    }

    /// Takes note that the batches from `start_offset` on are of a new leader epoch, as a leader
    /// does when it becomes one. Waits for whoever is writing; the checkpoint is durable when this
    /// returns.
    ///
    /// # Errors
    /// `InvalidArgument` for a negative epoch or offset; `Closed`; what writing the file fails
    /// with.
    pub fn assign_epoch_start(&self, epoch: i32, start_offset: i64) -> Result<()> {
        let seat = self.wait_to_write()?;
        self.change_epochs(|epochs| epochs.assign(epoch, start_offset).map(drop))?;
        drop(seat);
        self.save_epochs()
    }

    /// Where a leader epoch ends: the greatest known epoch not above it and its exclusive end; -1
    /// and -1 when that is not known. See [`LeaderEpochs::end_offset_for`].
    #[must_use]
    pub fn end_offset_for_epoch(&self, epoch: i32) -> (i32, i64) {
        self.epochs.load().end_offset_for(epoch, self.log_end_offset())
    }

    /// The latest leader epoch.
    #[must_use]
    pub fn latest_epoch(&self) -> Option<i32> {
        self.epochs.load().latest().map(|latest| latest.epoch)
    }

    /// Changes the leader epochs; the seat must be taken. Nothing is changed when `change` fails.
    pub(super) fn change_epochs(
        &self,
        change: impl FnOnce(&mut LeaderEpochs) -> Result<()>,
    ) -> Result<()> {
        let mut epochs = LeaderEpochs::clone(&self.epochs.load());
        change(&mut epochs)?;
        self.set_epochs(epochs);
        Ok(())
    }

    pub(super) fn set_epochs(&self, epochs: LeaderEpochs) {
        self.epochs.store(Arc::new(epochs));
        self.epochs_are_new.store(true, Ordering::Release);
    }

    /// Writes the leader epochs to their checkpoint, durably, if it does not have them. Not from
    /// the seat: this syncs.
    pub(super) fn save_epochs(&self) -> Result<()> {
        if !self.epochs_are_new.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut saved = match self.saved_epochs.lock() {
            Ok(saved) => saved,
            Err(poisoned) => poisoned.into_inner(),
        };
        // What comes after this is news again.
        self.epochs_are_new.store(false, Ordering::Release);
        let epochs = self.epochs.load_full();
        if saved.entries() == epochs.entries() {
            return Ok(());
        }
        let outcome = replace(&**self.folder.storage(), &self.dir(), EPOCH_FILE, &epochs.format());
        if let Err(error) = outcome {
            self.epochs_are_new.store(true, Ordering::Release);
            // The directory may be on its way out: a checkpoint is written where it is there.
            return if error.kind() == Kind::NotFound { Ok(()) } else { Err(error) };
        }
        *saved = epochs;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::io::SimDisk;
    use crate::log::{LogConfig, OpenOptions};

    #[test]
    fn what_moves_an_offset_waits_for_whoever_is_writing() {
        let (disk, options) = (Arc::new(SimDisk::new()), OpenOptions::default());
        let dir = Path::new("/orders-0");
        let log = Log::open(disk, dir, LogConfig::default(), &options).unwrap();
        let moves: [fn(&Log) -> Result<()>; 4] = [
            |log| log.update_high_watermark(0).map(drop),
            |log| log.maybe_increment_high_watermark(0).map(drop),
            |log| log.maybe_increment_log_start_offset(0).map(drop),
            |log| log.assign_epoch_start(3, 0),
        ];
        for waits in moves {
            let seat = log.take_seat().unwrap();
            thread::scope(|scope| {
                let waiting = scope.spawn(|| waits(&log));
                thread::sleep(Duration::from_millis(20));
                assert!(!waiting.is_finished());
                drop(seat);
                waiting.join().unwrap().unwrap();
            });
        }
        assert_eq!(log.latest_epoch(), Some(3));
    }
}
