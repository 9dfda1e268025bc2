//! Who may change a log now? One thread at a time has its seat.
//!
//! A writer does not wait for another one: that is a mistake of the host's, which it is told. What
//! goes on beside it, such as retention, compaction and the high watermark, it waits for; none of
//! that takes long. A writer may have the seats of many logs. It has said so of each of them before
//! it asks for the next, so that two of them cannot wait for one another.

use std::cell::Cell;
use std::sync::TryLockError;

use super::log::{Log, Writer, closed};
use crate::error::{Error, Kind, Result};
use crate::sync::MutexGuard;
use crate::sync::atomic::{AtomicBool, Ordering, fence};

/// The seat of a log, taken.
pub(super) struct Seat<'a> {
    writer: MutexGuard<'a, Option<Writer>>,
    /// Set while a writer has it.
    is_written: Option<&'a AtomicBool>,
}

impl Seat<'_> {
    pub(super) fn writer(&mut self) -> Result<&mut Writer> {
        self.writer.as_mut().ok_or_else(closed)
    }

    /// Leaves nobody to take the seat any more.
    pub(super) fn leave(mut self) -> Option<Writer> {
        self.writer.take()
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        if let Some(is_written) = self.is_written {
            is_written.store(false, Ordering::Release);
        }
    }
}

thread_local! {
    /// How many seats this thread has while it runs functions of the host's.
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

/// A function of the host's runs in a seat: what it calls must not wait for that.
pub(super) struct Look;

impl Look {
    pub(super) fn begin() -> Self {
        LOOKS.set(LOOKS.get() + 1);
        Look
    }

    fn is_under_way() -> bool {
        LOOKS.get() > 0
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        LOOKS.set(LOOKS.get().saturating_sub(1));
    }
}

impl Log {
    /// Takes the seat to write.
    ///
    /// # Errors
    /// `Conflict` when another writer has it, `Closed` after a close, `Io` after a sync that
    /// failed.
    pub(super) fn take_seat(&self) -> Result<Seat<'_>> {
        self.writable(self.take_seat_anyway()?)
    }

    /// The same after a sync that failed, too.
    pub(super) fn take_seat_anyway(&self) -> Result<Seat<'_>> {
        let mut seat = self.take_seat_as_guest_anyway()?;
        self.is_written.store(true, Ordering::Release);
        seat.is_written = Some(&self.is_written);
        Ok(seat)
    }

    /// The seat for what goes on beside a writer: `Conflict` while that one has it.
    pub(super) fn take_seat_as_guest(&self) -> Result<Seat<'_>> {
        self.writable(self.take_seat_as_guest_anyway()?)
    }

    /// The seat once whoever has it is done: for what must come to pass, such as a rename.
    /// `Conflict` where that may be this very thread.
    pub(super) fn wait_for_seat(&self) -> Result<Seat<'_>> {
        if Look::is_under_way() {
            return self.take_seat_as_guest_anyway();
        }
        let writer = self.seat.lock().map_err(|_| self.half_changed())?;
        self.seated(writer)
    }

    /// The same of a log that may be written to.
    pub(super) fn wait_to_write(&self) -> Result<Seat<'_>> {
        self.writable(self.wait_for_seat()?)
    }

    /// Refuses what waits for more than the seat while a function of the host's has one.
    pub(super) fn check_no_look(&self) -> Result<()> {
        match Look::is_under_way() {
            true => Err(self.taken()),
            false => Ok(()),
        }
    }

    /// The writer in a seat that was taken, once a cut that failed half way is brought to its end.
    pub(super) fn ready<'a>(&self, seat: &'a mut Seat<'_>) -> Result<&'a mut Writer> {
        let writer = seat.writer()?;
        if writer.is_unsettled {
            self.settle(writer)?;
        }
        Ok(writer)
    }

    /// The seat of a guest after a sync that failed, too.
    pub(super) fn take_seat_as_guest_anyway(&self) -> Result<Seat<'_>> {
        match self.seat.try_lock() {
            Ok(writer) => self.seated(writer),
            Err(TryLockError::WouldBlock) => {
                // What the last one to leave has said is seen, if it has left.
                fence(Ordering::Acquire);
                if self.is_written.load(Ordering::Acquire) || Look::is_under_way() {
                    return Err(self.taken());
                }
                let writer = self.seat.lock().map_err(|_| self.half_changed())?;
                self.seated(writer)
            }
            // Whoever panicked in it may have left it half changed.
            Err(TryLockError::Poisoned(_)) => Err(self.half_changed()),
        }
    }

    fn seated<'a>(&self, writer: MutexGuard<'a, Option<Writer>>) -> Result<Seat<'a>> {
        if writer.is_none() {
            return Err(closed().in_file(&self.dir()));
        }
        Ok(Seat { writer, is_written: None })
    }

    fn writable<'a>(&self, seat: Seat<'a>) -> Result<Seat<'a>> {
        match self.is_failed() {
            true => Err(self.failed()),
            false => Ok(seat),
        }
    }

    fn taken(&self) -> Error {
        let message = "another thread is writing to this log";
        Error::new(Kind::Conflict, message).in_file(&self.dir())
    }
}
