//! How far is the check of one file, and is it still wanted?

use crate::error::{Error, Kind, Result};
use crate::log::progress::Progress;

/// The bytes of one file on their way to a [`Progress`].
pub(super) struct Meter<'a> {
    progress: &'a dyn Progress,
    told: u64,
    tell_at: u64,
}

/// It hears of them once in this many bytes.
const STEP_BYTES: u64 = 1 << 20;

impl<'a> Meter<'a> {
    pub(super) fn new(progress: &'a dyn Progress) -> Self {
        Meter { progress, told: 0, tell_at: STEP_BYTES }
    }

    /// The work has come to this position.
    #[inline]
    pub(super) fn at(&mut self, position: u64) -> Result<()> {
        if position < self.tell_at {
            return Ok(());
        }
        self.tell(position)
    }

    /// The work is done up to the end of the file.
    pub(super) fn finish(mut self, size_bytes: u64) -> Result<()> {
        self.tell(size_bytes)
    }

    fn tell(&mut self, position: u64) -> Result<()> {
        self.progress.bytes(position.saturating_sub(self.told));
        self.told = self.told.max(position);
        self.tell_at = position.saturating_add(STEP_BYTES);
        if self.progress.is_cancelled() {
            return Err(Error::new(Kind::Cancelled, "cancelled"));
        }
        Ok(())
    }
}
