//! Which offset answers for a timestamp, and for the special ones?

use std::sync::atomic::Ordering;

use super::log::Log;
use super::segments::Segments;
use super::special_offsets::LogBounds;
use crate::error::{Error, Kind, Result};
use crate::segment::TimestampAndOffset;

/// The end of the log.
pub const LATEST: i64 = -1;
/// The start of the log.
pub const EARLIEST: i64 = -2;
/// The record with the largest timestamp on the local disk.
pub const MAX_TIMESTAMP: i64 = -3;
/// The first offset on the local disk.
pub const EARLIEST_LOCAL: i64 = -4;
/// The last offset in remote storage.
pub const LATEST_TIERED: i64 = -5;
/// The first offset that waits to go to remote storage.
pub const EARLIEST_PENDING_UPLOAD: i64 = -6;

impl Log {
    /// The first record on the local disk with this timestamp or a later one; of a special
    /// timestamp, what it stands for. `None` when there is no such record.
    ///
    /// The high watermark is the caller's to consider, and so is remote storage.
    ///
    /// # Errors
    /// `InvalidArgument` for a negative timestamp that stands for nothing; `Closed`; what the disk
    /// says.
    // spec: segments 6.9
    pub fn offset_for_timestamp(&self, timestamp_ms: i64) -> Result<Option<TimestampAndOffset>> {
        if self.is_closed() {
            return Err(Error::new(Kind::Closed, "the log is closed").in_file(&self.dir()));
        }
        let epochs = self.epochs.load();
        let bounds = LogBounds {
            remote_storage: self.config.load().remote_storage,
            log_start_offset: self.log_start_offset(),
            local_log_start_offset: self.local_log_start_offset(),
            log_end_offset: self.log_end_offset(),
            highest_remote_offset: self.highest_remote_offset(),
            epochs: &epochs,
        };
        match timestamp_ms {
            LATEST => Ok(Some(bounds.latest())),
            EARLIEST => Ok(Some(bounds.earliest())),
            EARLIEST_LOCAL => Ok(Some(bounds.earliest_local())),
            MAX_TIMESTAMP => self.look(|segments| self.find_max_timestamp(segments)),
            LATEST_TIERED => Ok(Some(bounds.latest_tiered())),
            EARLIEST_PENDING_UPLOAD => Ok(Some(bounds.earliest_pending_upload())),
            i64::MIN..0 => {
                let message = format!("timestamp {timestamp_ms} stands for nothing");
                Err(Error::new(Kind::InvalidArgument, message))
            }
            _ => self.look(|segments| self.find_timestamp(segments, timestamp_ms)),
        }
    }

    fn find_max_timestamp(&self, segments: &Segments) -> Result<Option<TimestampAndOffset>> {
        let mut best = None;
        for segment in segments.iter().filter(|segment| segment.size_bytes() > 0) {
            let (timestamp_ms, _) = segment.max_timestamp(&self.folder)?;
            if best.is_none_or(|(best, _)| timestamp_ms > best) {
                best = Some((timestamp_ms, segment));
            }
        }
        match best {
            Some((_, segment)) => segment.find_max_timestamp(&self.folder),
            None => Ok(None),
        }
    }

    fn find_timestamp(
        &self,
        segments: &Segments,
        timestamp_ms: i64,
    ) -> Result<Option<TimestampAndOffset>> {
        // An empty one would count by the time of its file, and hide what is behind it.
        for segment in segments.iter().filter(|segment| segment.size_bytes() > 0) {
            if segment.largest_timestamp(&self.folder)? >= timestamp_ms {
                let start = self.log_start_offset();
                return segment.find_offset_by_timestamp(&self.folder, timestamp_ms, start);
            }
        }
        Ok(None)
    }

    /// The last offset that is known to be in remote storage, -1 for none.
    #[must_use]
    pub fn highest_remote_offset(&self) -> i64 {
        self.offsets.highest_remote.load(Ordering::Acquire)
    }

    /// Takes note of what was uploaded: up to `offset`, inclusive. It goes back only when the log
    /// is cut, and when remote storage is switched off.
    pub fn update_highest_remote_offset(&self, offset: i64) {
        self.offsets.highest_remote.fetch_max(offset, Ordering::AcqRel);
    }

    /// How often the highest remote offset went back. Whoever copies asks for it before.
    pub(crate) fn remote_generation(&self) -> u64 {
        self.durable().remote_generation
    }

    /// Whether what was copied in this generation, up to `offset`, is still the log's.
    pub(crate) fn is_of_remote_generation(&self, generation: u64, offset: i64) -> bool {
        self.durable().is_of_remote_generation(generation, offset)
    }

    /// Takes note of what was uploaded of the log as it was in this generation. It may have been
    /// cut since, or remote storage been switched off: then nothing happens, and this is `false`.
    pub(crate) fn update_highest_remote_offset_of(&self, generation: u64, offset: i64) -> bool {
        // Who makes it go back holds the lock, too.
        let durable = self.durable();
        let is_known = durable.is_of_remote_generation(generation, offset);
        if is_known {
            let last_offset = self.log_end_offset().saturating_sub(1);
            self.update_highest_remote_offset(offset.min(last_offset));
        }
        is_known
    }
}
