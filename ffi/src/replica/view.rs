//! A log as the rules see it: an open one, or numbers of the caller's.

use std::sync::Arc;

use engine::log::LogBounds;
use engine::state::{EpochEntry, LeaderEpochs};

use super::types::Bounds;
use crate::error::{Outcome, invalid};
use crate::log::open_log;
use crate::memory::{items_of, read_struct};

/// `SILT_REPLICA_REMOTE_STORAGE`.
const REMOTE_STORAGE: u32 = 1;
/// `SILT_REPLICA_COMPACTED`.
const COMPACTED: u32 = 2;
/// `SILT_REPLICA_STARTS_AT_TIERED`.
const STARTS_AT_TIERED: u32 = 4;

/// An offset, epoch or lag that may be unknown: below 0.
pub fn known<T: PartialOrd + Default>(number: T) -> Option<T> {
    (number >= T::default()).then_some(number)
}

/// The bounds of a log, with its epochs.
pub struct View {
    pub given: Bounds,
    pub epochs: Arc<LeaderEpochs>,
}

impl View {
    /// # Safety
    /// The struct is NULL or one of the header, and its pointers are NULL or what it says.
    pub unsafe fn read(bounds: *const Bounds) -> Outcome<Self> {
        // SAFETY: the caller's promise.
        let mut given = unsafe { read_struct(bounds)? };
        if given.flags & !(REMOTE_STORAGE | COMPACTED | STARTS_AT_TIERED) != 0 {
            return invalid("flags are none of SILT_REPLICA_");
        }
        if given.log.is_null() {
            // SAFETY: the caller's array.
            let epochs = unsafe { items_of(given.epochs, u64::from(given.epoch_count))? };
            let entries: Vec<EpochEntry> = epochs.iter().map(EpochEntry::from).collect();
            let epochs = Arc::new(LeaderEpochs::from_entries(&entries)?);
            return Ok(View { given, epochs });
        }
        // SAFETY: an object of the caller's.
        let log = &unsafe { open_log(given.log)? }.log;
        given.log_start_offset = log.log_start_offset();
        given.local_log_start_offset = log.local_log_start_offset();
        given.log_end_offset = log.log_end_offset();
        given.high_watermark = log.high_watermark();
        given.last_stable_offset = log.last_stable_offset();
        given.highest_remote_offset = log.highest_remote_offset();
        if log.config().remote_storage {
            given.flags |= REMOTE_STORAGE;
        }
        Ok(View { given, epochs: log.leader_epochs() })
    }

    pub fn has_remote_storage(&self) -> bool {
        self.given.flags & REMOTE_STORAGE != 0
    }

    pub fn is_compacted(&self) -> bool {
        self.given.flags & COMPACTED != 0
    }

    pub fn starts_at_tiered(&self) -> bool {
        self.given.flags & STARTS_AT_TIERED != 0
    }

    pub fn bounds(&self) -> LogBounds<'_> {
        LogBounds {
            remote_storage: self.has_remote_storage(),
            log_start_offset: self.given.log_start_offset,
            local_log_start_offset: self.given.local_log_start_offset,
            log_end_offset: self.given.log_end_offset,
            highest_remote_offset: self.given.highest_remote_offset,
            epochs: &self.epochs,
        }
    }
}
