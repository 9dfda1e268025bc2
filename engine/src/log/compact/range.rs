//! What of a log may be compacted, and is it worth it?

use std::sync::Arc;

use crate::error::Result;
use crate::log::Log;
use crate::segment::LogSegment;

/// Between which offsets a log may be compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanableOffsets {
    /// Where the part begins that was not compacted yet.
    pub first_dirty_offset: i64,
    /// Where it ends, exclusive.
    pub first_uncleanable_offset: i64,
    /// The checkpoint was outside of the log: the first dirty offset is to be written in its place
    /// at once, whether or not the log is compacted.
    pub checkpoint_is_stale: bool,
}

/// The same in whole segments, and what there is to be gained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cleanable {
    /// Where the part begins that was not compacted yet.
    pub first_dirty_offset: i64,
    /// The base of the first segment that stays as it is.
    pub first_uncleanable_offset: i64,
    /// As in [`CleanableOffsets`].
    pub checkpoint_is_stale: bool,
    /// The bytes of the segments before.
    pub clean_bytes: u64,
    /// The bytes of the segments that may be compacted.
    pub cleanable_bytes: u64,
    /// For how many milliseconds longer than `max.compaction.lag.ms` records wait; 0 for none.
    pub compaction_delay_ms: i64,
    /// `min.cleanable.dirty.ratio`.
    pub min_dirty_ratio: f64,
}

impl Cleanable {
    /// The part of the bytes that is not compacted: of several logs the one with the most is to be
    /// taken. 0 when there are none.
    #[must_use]
    pub fn dirty_ratio(&self) -> f64 {
        let total = self.clean_bytes.saturating_add(self.cleanable_bytes);
        // Counts of bytes are far below what a float holds exactly.
        #[expect(clippy::cast_precision_loss, reason = "the ratio is only compared")]
        if total == 0 { 0.0 } else { self.cleanable_bytes as f64 / total as f64 }
    }

    /// Whether the log is to be compacted.
    #[must_use]
    pub fn is_due(&self) -> bool {
        // spec: cleaner 2
        self.cleanable_bytes > 0
            && (self.compaction_delay_ms > 0 || self.dirty_ratio() > self.min_dirty_ratio)
    }
}

impl Log {
    /// Between which offsets the log may be compacted. `checkpoint` is its line of
    /// `cleaner-offset-checkpoint`, if it has one.
    ///
    /// # Errors
    /// What the disk says: timestamps may have to be read.
    pub fn cleanable_offsets(
        &self,
        checkpoint: Option<i64>,
        now_ms: i64,
    ) -> Result<CleanableOffsets> {
        // spec: cleaner 2
        let start = self.log_start_offset();
        let checkpoint = checkpoint.unwrap_or(start);
        let checkpoint_is_stale = checkpoint < start || checkpoint > self.log_end_offset();
        let first_dirty_offset = if checkpoint_is_stale { start } else { checkpoint };
        let lag = self.config().min_compaction_lag_ms;
        let uncleanable = self.look(|segments| {
            let active = segments.last().map_or(start, |active| active.base_offset());
            let mut uncleanable = self.last_stable_offset().min(active);
            if lag > 0 {
                for segment in segments.non_active_from(first_dirty_offset) {
                    if segment.largest_timestamp(&self.folder)? > now_ms.saturating_sub(lag) {
                        uncleanable = uncleanable.min(segment.base_offset());
                        break;
                    }
                }
            }
            Ok(uncleanable)
        })?;
        let first_uncleanable_offset = uncleanable.max(first_dirty_offset);
        Ok(CleanableOffsets { first_dirty_offset, first_uncleanable_offset, checkpoint_is_stale })
    }

    /// What of the log may be compacted, in whole segments; see
    /// [`cleanable_offsets`](Self::cleanable_offsets).
    ///
    /// # Errors
    /// What the disk says.
    pub fn cleanable(&self, checkpoint: Option<i64>, now_ms: i64) -> Result<Cleanable> {
        let offsets = self.cleanable_offsets(checkpoint, now_ms)?;
        let dirty = offsets.first_dirty_offset;
        let config = self.config();
        self.look(|segments| {
            let first = segments.non_active_from(offsets.first_uncleanable_offset).first();
            let first = first.or(segments.last()).map(|segment| segment.base_offset());
            let first_uncleanable_offset = first.unwrap_or(dirty);
            let cleanable =
                segments.values(dirty.min(first_uncleanable_offset), first_uncleanable_offset)?;
            let mut earliest = i64::MAX;
            for segment in segments.non_active_from(dirty) {
                let first = segment.first_batch_timestamp(&self.folder)?;
                earliest = earliest.min(first.filter(|first| *first > 0).unwrap_or(i64::MAX));
            }
            let until = now_ms.saturating_sub(config.max_compaction_lag_ms.max(0));
            Ok(Cleanable {
                first_dirty_offset: dirty,
                first_uncleanable_offset,
                checkpoint_is_stale: offsets.checkpoint_is_stale,
                clean_bytes: size_of(segments.values(-1, dirty)?),
                cleanable_bytes: size_of(cleanable),
                compaction_delay_ms: until.saturating_sub(earliest).max(0),
                min_dirty_ratio: config.min_cleanable_dirty_ratio,
            })
        })
    }
}

impl Log {
    /// Up to where, exclusive, the log is compacted: its line of `cleaner-offset-checkpoint`;
    /// `None` when it has none. A round that comes to its end sets it, a truncation lowers it.
    #[must_use]
    pub fn compacted_end_offset(&self) -> Option<i64> {
        self.durable().compacted_end_offset
    }

    /// Sets [`compacted_end_offset`](Self::compacted_end_offset), to what a checkpoint says.
    pub fn set_compacted_end_offset(&self, offset: Option<i64>) {
        self.durable().compacted_end_offset = offset;
    }

    /// Puts the log start in its place where it lies outside of the log, as it is now and not as it
    /// was when somebody looked; says whether it did.
    // spec: cleaner 2
    pub fn correct_compacted_end_offset(&self) -> bool {
        // A truncation lowers both it and the ends of the log under this lock.
        let mut durable = self.durable();
        let (start, end) = (self.log_start_offset(), self.log_end_offset());
        let is_outside =
            durable.compacted_end_offset.is_some_and(|line| line < start || line > end);
        if is_outside {
            durable.compacted_end_offset = Some(start);
        }
        is_outside
    }

    /// Takes note of a round from `first_dirty_offset` to `end_offset`, unless the log was cut
    /// since it began, or before it and after its range was told.
    pub(super) fn compacted(&self, first_dirty_offset: i64, end_offset: i64, truncations: u64) {
        let mut durable = self.durable();
        let is_whole = durable.compacted_end_offset.is_none_or(|end| end >= first_dirty_offset);
        if is_whole && durable.truncations == truncations {
            durable.compacted_end_offset = Some(end_offset);
        }
    }
}

fn size_of(segments: &[Arc<LogSegment>]) -> u64 {
    segments.iter().map(|segment| segment.size_bytes()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;
    use crate::io::SimDisk;
    use crate::log::{LogConfig, OpenOptions};

    #[test]
    fn a_line_outside_of_the_log_becomes_its_start_as_it_is_now() {
        // The start that an earlier look had found was written down, though the log had been cut
        // since: what came in the place of what was cut passed for compacted.
        let options = OpenOptions { log_start_offset: 60, ..OpenOptions::default() };
        let disk = Arc::new(SimDisk::new());
        let log = Log::open(disk, Path::new("/orders-0"), LogConfig::default(), &options).unwrap();
        assert!(!log.correct_compacted_end_offset(), "it has no line");
        for (line, corrected) in [(60, 60), (50, 60), (70, 60)] {
            log.set_compacted_end_offset(Some(line));
            assert_eq!(log.correct_compacted_end_offset(), line != corrected);
            assert_eq!(log.compacted_end_offset(), Some(corrected));
        }
        log.set_compacted_end_offset(Some(50));
        assert!(log.cleanable(Some(50), 0).unwrap().checkpoint_is_stale);
        log.truncate_fully_and_start_at(20, None, 0).unwrap();
        assert!(!log.correct_compacted_end_offset());
        assert_eq!(log.compacted_end_offset(), Some(20));
    }
}
