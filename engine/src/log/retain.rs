//! What leaves the front of a log? Records before its start, and segments beyond retention.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::log::{Log, Writer};
use crate::error::{Error, Kind, Result};
use crate::segment::LogSegment;

impl Log {
    /// Raises the log start to `offset`; `false` when it is there already. No bytes go: segments
    /// that lie before it go with the next [`delete_old_segments`](Self::delete_old_segments).
    /// Waits for whoever is writing.
    ///
    /// What left the local disk was committed, so the start may always be raised to the local log
    /// start. A replica that begins to lead can know of a lower high watermark; it is raised, too.
    ///
    /// # Errors
    /// `OutOfRange` behind both the high watermark and the local log start; `Closed`.
    pub fn maybe_increment_log_start_offset(&self, offset: i64) -> Result<bool> {
        // spec: segments 6.3
        let mut seat = self.wait_to_write()?;
        let writer = self.ready(&mut seat)?;
        let is_raised = self.increment_log_start(writer, offset)?;
        drop(seat);
        if is_raised {
            self.save_epochs()?;
        }
        Ok(is_raised)
    }

    fn increment_log_start(&self, writer: &mut Writer, offset: i64) -> Result<bool> {
        // spec: replication 2.2; behind both it is refused. See docs/COMPATIBILITY.md.
        let high_watermark = self.high_watermark();
        let local_start = self.local_log_start_offset();
        if offset > high_watermark.max(local_start.min(self.log_end_offset())) {
            let message = format!(
                "the log cannot start at {offset}, behind the high watermark {high_watermark}"
            );
            return Err(Error::new(Kind::OutOfRange, message).at_offset(offset));
        }
        let local = local_start.max(offset);
        if offset <= self.log_start_offset() {
            if self.config.load().remote_storage {
                self.offsets.local_log_start.fetch_max(offset, Ordering::AcqRel);
            }
            return Ok(false);
        }
        self.raise_starts(writer, offset, local);
        self.change_epochs(|epochs| {
            epochs.truncate_from_start(offset);
            Ok(())
        })?;
        writer.producers.log_start_offset_incremented(offset);
        self.refresh_last_stable(writer);
        Ok(true)
    }

    /// Raises the first offset on the local disk alone, for a log with remote storage. It never
    /// goes back.
    pub fn maybe_increment_local_log_start_offset(&self, offset: i64) {
        self.offsets.local_log_start.fetch_max(offset, Ordering::AcqRel);
    }

    pub(super) fn raise_starts(&self, writer: &mut Writer, start: i64, local_start: i64) {
        self.offsets.local_log_start.fetch_max(local_start, Ordering::AcqRel);
        self.offsets.log_start.fetch_max(start, Ordering::AcqRel);
        let start = self.log_start_offset();
        if self.high_watermark() < start {
            self.set_high_watermark(writer, start);
        }
    }

    /// Removes the segments that are beyond retention or before the log start, and says how many.
    /// Their files are renamed now and deleted later, by
    /// [`delete_due_files`](Self::delete_due_files).
    ///
    /// # Errors
    /// `Conflict`, `Closed`, what the disk says; segments removed before stay removed.
    pub fn delete_old_segments(&self, now_ms: i64) -> Result<usize> {
        // spec: segments 6.8
        let mut seat = self.take_settled_seat_as_guest()?;
        let writer = self.ready(&mut seat)?;
        let config = self.config();
        let mut count = self.delete_before_start(writer, now_ms)?;
        let by_policy = config.delete || (!config.compact && config.remote_copy_enabled());
        if by_policy {
            count += self.delete_by_size(writer, now_ms)?;
            count += self.delete_by_time(writer, now_ms)?;
        }
        drop(seat);
        self.save_epochs()?;
        Ok(count)
    }

    fn delete_before_start(&self, writer: &mut Writer, now_ms: i64) -> Result<usize> {
        let remote = self.config.load().remote_storage;
        let start = if remote { self.local_log_start_offset() } else { self.log_start_offset() };
        self.delete_while(writer, now_ms, &mut |_, next| {
            Ok(next.is_some_and(|next| next.base_offset() <= start))
        })
    }

    fn delete_by_size(&self, writer: &mut Writer, now_ms: i64) -> Result<usize> {
        let config = self.config.load();
        let limit = if config.remote_copy_enabled() {
            config.local_retention_bytes
        } else {
            config.retention_bytes
        };
        drop(config);
        let Ok(limit) = u64::try_from(limit) else { return Ok(0) };
        let Some(mut surplus) = self.size_bytes().checked_sub(limit) else { return Ok(0) };
        self.delete_while(writer, now_ms, &mut |segment, _| {
            let left = surplus.checked_sub(segment.size_bytes());
            surplus = left.unwrap_or(surplus);
            Ok(left.is_some())
        })
    }

    fn delete_by_time(&self, writer: &mut Writer, now_ms: i64) -> Result<usize> {
        let config = self.config.load();
        let limit = if config.remote_copy_enabled() {
            config.local_retention_ms
        } else {
            config.retention_ms
        };
        drop(config);
        if limit < 0 {
            return Ok(0);
        }
        self.delete_while(writer, now_ms, &mut |segment, _| {
            Ok(now_ms.saturating_sub(segment.largest_timestamp(&self.folder)?) > limit)
        })
    }

    /// Deletes segments from the oldest on, as long as `may_go` says so and readers and remote
    /// storage have them.
    fn delete_while(
        &self,
        writer: &mut Writer,
        now_ms: i64,
        may_go: &mut MayGo<'_>,
    ) -> Result<usize> {
        let config = self.config();
        let segments = self.segments();
        let mut doomed: Vec<Arc<LogSegment>> = Vec::new();
        let mut rolls = false;
        for segment in segments.iter() {
            let next = segments.higher(segment.base_offset());
            let upper = next.map_or(self.log_end_offset(), |next| next.base_offset());
            if self.high_watermark() < upper || !may_go(segment, next)? {
                break;
            }
            let is_empty = segment.size_bytes() == 0;
            rolls |= config.remote_storage && next.is_none() && !is_empty;
            if (next.is_none() && is_empty) || !self.is_elsewhere(next, upper) {
                break;
            }
            doomed.push(Arc::clone(segment));
        }
        if rolls {
            self.roll_to(writer, 0, now_ms)?;
        }
        self.delete_segments(writer, doomed, now_ms)
    }

    /// Whether a segment that ends at `upper` needs not to go to remote storage first.
    fn is_elsewhere(&self, next: Option<&Arc<LogSegment>>, upper: i64) -> bool {
        let is_uploaded = upper > 0 && upper.saturating_sub(1) <= self.highest_remote_offset();
        let start = self.log_start_offset();
        !self.config.load().remote_copy_enabled()
            || is_uploaded
            || next.is_some_and(|next| start >= next.base_offset())
    }

    fn delete_segments(
        &self,
        writer: &mut Writer,
        mut doomed: Vec<Arc<LogSegment>>,
        now_ms: i64,
    ) -> Result<usize> {
        let count = doomed.len();
        if count == 0 {
            return Ok(0);
        }
        if count == self.segments.load().count() {
            // One segment stays: a new one.
            let base_offset = self.roll_to(writer, 0, now_ms)?;
            doomed.retain(|segment| segment.base_offset() != base_offset);
        }
        let Some(last) = doomed.last() else { return Ok(count) };
        let next = self.segments.load().higher(last.base_offset()).map(|next| next.base_offset());
        if let Some(next) = next {
            if self.config.load().remote_copy_enabled() {
                self.maybe_increment_local_log_start_offset(next);
            } else {
                self.increment_log_start(writer, next)?;
            }
        }
        for segment in &doomed {
            let base_offset = segment.base_offset();
            self.remove_segment(segment, now_ms)?;
            if writer.producers.snapshots_mut().remove(base_offset) {
                self.doom_snapshot(base_offset, now_ms)?;
            }
        }
        Ok(count)
    }

    /// Forgets producers that have been silent for `producer.id.expiration.ms`. Waits for whoever is
    /// writing.
    ///
    /// # Errors
    /// `Closed`; `Io` after a sync that failed.
    pub fn remove_expired_producers(&self, now_ms: i64) -> Result<()> {
        self.wait_to_write()?.writer()?.producers.remove_expired(now_ms);
        Ok(())
    }
}

/// Whether a segment may be deleted; it is told the one behind it.
type MayGo<'a> = dyn FnMut(&Arc<LogSegment>, Option<&Arc<LogSegment>>) -> Result<bool> + 'a;
