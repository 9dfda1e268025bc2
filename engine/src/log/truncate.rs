//! How does a log lose its end, or everything?
//!
//! Segments go first, from the end, then the cut itself: whatever fails in between leaves a log that
//! ends where the last removed segment began, and the same call can be made again.
//!
//! Each step is durable before the next, and all before anything is appended: else a crash could
//! bring back what was cut behind what came in its place. So this syncs from the writer's seat;
//! nobody has anything to write meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::log::{Log, Writer};
use super::segments::Segments;
use crate::error::{Error, Kind, Result};
use crate::segment::{ActiveSegment, LogSegment};

impl Log {
    /// Cuts the log in front of the batch that holds `offset`, so that it ends there; `false` when
    /// it ended there or before. Where the batch begins before `offset`, the log has a gap.
    ///
    /// # Errors
    /// `InvalidArgument` for a negative offset; `Conflict` when another thread is writing, or holds
    /// a [`MappedRange`](super::MappedRange) of the segment that is to be cut; `Closed`; what the
    /// disk says.
    pub fn truncate_to(&self, offset: i64, now_ms: i64) -> Result<bool> {
        // spec: segments 6.7
        if offset < 0 {
            let message = format!("the log cannot be cut at offset {offset}");
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        let mut seat = self.take_settled_seat()?;
        let writer = self.ready(&mut seat)?;
        writer.now_ms = now_ms;
        let end = self.log_end_offset();
        let is_cut = offset < end;
        if !is_cut {
            self.truncate_epochs(end)?;
        } else if self.segments.load().first().is_none_or(|first| first.base_offset() > offset) {
            self.clear(writer, offset, None, now_ms)?;
        } else {
            self.truncate_in(writer, offset, now_ms)?;
        }
        drop(seat);
        self.save_epochs()?;
        Ok(is_cut)
    }

    /// Removes everything; the log goes on, empty, at `offset`. It starts there, too, or with
    /// remote storage at `log_start_offset`. Where that is behind `offset`, it must be in the first
    /// batch that is appended.
    ///
    /// # Errors
    /// Those of [`truncate_to`](Self::truncate_to), also for a negative start.
    pub fn truncate_fully_and_start_at(
        &self,
        offset: i64,
        log_start_offset: Option<i64>,
        now_ms: i64,
    ) -> Result<()> {
        // spec: segments 6.7
        if offset < 0 {
            let message = format!("a log cannot start at offset {offset}");
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        if let Some(start) = log_start_offset.filter(|start| *start < 0) {
            let message = format!("a log cannot start at offset {start}");
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        let mut seat = self.take_settled_seat()?;
        let writer = self.ready(&mut seat)?;
        writer.now_ms = now_ms;
        self.clear(writer, offset, log_start_offset, now_ms)?;
        drop(seat);
        self.save_epochs()
    }

    fn truncate_epochs(&self, end: i64) -> Result<()> {
        self.change_epochs(|epochs| {
            epochs.truncate_from_end(end);
            Ok(())
        })
    }

    fn truncate_in(&self, writer: &mut Writer, offset: i64, now_ms: i64) -> Result<()> {
        let outcome = self
            .remove_from(writer, offset, now_ms)
            .and_then(|()| self.cut_active(writer, offset, now_ms));
        // However far it came, what stays must fit together before anything is written.
        if writer.is_unsettled { outcome.and(self.settle(writer)) } else { outcome }
    }

    /// Removes the segments behind `offset`, the last one first.
    fn remove_from(&self, writer: &mut Writer, offset: i64, now_ms: i64) -> Result<()> {
        let segments = self.segments();
        let Some(floor) = segments.floor(offset) else { return Ok(()) };
        if floor.base_offset() == writer.active.base_offset() {
            return Ok(());
        }
        // The segment that will be written to is opened first: what fails later cannot keep the
        // log from having one.
        let next = self.open_active(floor, now_ms)?;
        let later = segments.iter().rev().take_while(|segment| segment.base_offset() > offset);
        let mut outcome = Ok(());
        let mut end = None;
        let changing = self.change_list();
        for segment in later {
            outcome = self.retire_segment(segment, now_ms);
            if outcome.is_err() {
                break;
            }
            end = Some(segment.base_offset());
        }
        let is_all = outcome.is_ok();
        let Some(end) = end else { return outcome.and(self.put_back(next)) };
        self.lower_end(writer, end);
        writer.is_unsettled = true;
        self.segments.store(Arc::new(segments.without(|segment| segment.base_offset() >= end)));
        drop(changing);
        let gone = segments.iter().filter(|segment| segment.base_offset() >= end);
        gone.for_each(|segment| segment.close());
        if !is_all {
            // Neither the old nor the next segment is the last one now.
            self.is_failed.store(true, Ordering::Release);
            return outcome;
        }
        std::mem::replace(&mut writer.active, next).close();
        for segment in segments.iter().filter(|segment| segment.base_offset() >= end) {
            if writer.producers.snapshots_mut().remove(segment.base_offset()) {
                outcome = outcome.and(self.doom_snapshot(segment.base_offset(), now_ms));
            }
        }
        outcome?;
        self.sync_dir()
    }

    /// A segment that was opened to be written to, and is not.
    fn put_back(&self, mut next: ActiveSegment) -> Result<()> {
        let outcome = next.finish_files(&self.folder);
        next.seal();
        self.is_failed.fetch_or(outcome.is_err(), Ordering::AcqRel);
        outcome
    }

    fn open_active(&self, segment: &Arc<LogSegment>, now_ms: i64) -> Result<ActiveSegment> {
        let settings = self.config.load().segment();
        ActiveSegment::open(&self.folder, segment, &settings, now_ms)
    }

    fn cut_active(&self, writer: &mut Writer, offset: i64, now_ms: i64) -> Result<()> {
        let settings = self.config.load().segment();
        writer.active.truncate_to(&self.folder, &settings, offset, now_ms)?;
        writer.is_unsettled = true;
        self.lower_end(writer, offset);
        Ok(())
    }

    fn sync_dir(&self) -> Result<()> {
        self.synced(self.folder.storage().sync_dir(&self.dir()))
    }

    /// Lets readers see no further than `end`, and flushes that have begun say nothing of it.
    fn lower_end(&self, writer: &mut Writer, end: i64) {
        // What comes in the place of what is cut was not compacted, and the segment that is
        // written to never is.
        let holds_end = self.segments.load().floor(end).map(|segment| segment.base_offset());
        let compacted_end = holds_end.unwrap_or(end).min(end);
        let mut durable = self.durable();
        durable.truncations += 1;
        durable.lowest_cut = durable.lowest_cut.min(end);
        durable.flushed_end_offset = durable.flushed_end_offset.min(end);
        durable.newest_base = durable.newest_base.min(end);
        durable.snapshots.retain(|offset| *offset <= end);
        let compacted = &mut durable.compacted_end_offset;
        *compacted = compacted.map(|compacted| compacted.min(compacted_end));
        let high_watermark = self.high_watermark().min(end);
        let stable = self.last_stable_offset().min(end);
        self.offsets.last_stable.store(stable, Ordering::Release);
        self.offsets.high_watermark.store(high_watermark, Ordering::Release);
        self.offsets.log_end.store(end, Ordering::Release);
        let start = self.log_start_offset().min(end);
        self.offsets.log_start.store(start, Ordering::Release);
        let local_start = self.local_log_start_offset().min(end);
        self.offsets.local_log_start.store(local_start, Ordering::Release);
        // What comes in the place of what is cut is uploaded anew, or it would go as if it were.
        durable.remote_goes_back(end);
        self.offsets.highest_remote.fetch_min(end.saturating_sub(1), Ordering::AcqRel);
        drop(durable);
        self.refresh_last_stable(writer);
    }

    /// Brings files, epochs and producers to the end that the log has now, durably. May be done
    /// again when it fails.
    pub(super) fn settle(&self, writer: &mut Writer) -> Result<()> {
        let settings = self.config.load().segment();
        writer.active.cut_files(&self.folder, &settings)?;
        let segment = writer.active.segment();
        let changes = segment.index_changes();
        let mut files = vec![Arc::clone(segment.handles(&self.folder)?.log())];
        self.index_files(segment, &mut files)?;
        let files: Vec<_> = files.iter().map(|file| &**file).collect();
        self.synced(self.folder.storage().sync_files(&files).into_iter().collect())?;
        segment.indexes_synced(changes);
        self.sync_dir()?;
        let end = self.log_end_offset();
        self.truncate_epochs(end)?;
        self.rebuild_producers(writer, end).inspect_err(|_| {
            // Half of a state is none: the next time begins anew.
            writer.producers.snapshots_mut().set_map_end_offset(0);
        })?;
        writer.is_unsettled = false;
        let high_watermark = self.high_watermark();
        self.set_high_watermark(writer, high_watermark);
        Ok(())
    }

    fn clear(
        &self,
        writer: &mut Writer,
        offset: i64,
        log_start_offset: Option<i64>,
        now_ms: i64,
    ) -> Result<()> {
        let old = self.replace_all(writer, offset, now_ms)?;
        let outcome = self
            .settle_cleared(writer, offset, log_start_offset)
            .and_then(|()| old.map_or(Ok(()), |old| self.retire_segment(&old, now_ms)))
            .and_then(|()| self.sync_dir());
        if outcome.is_err() {
            self.is_failed.store(true, Ordering::Release);
        }
        outcome
    }

    /// Puts a new, empty segment at `offset` in the place of all others. Gives the last of them,
    /// whose files still have their names; `None` when it began at `offset`, too.
    pub(super) fn replace_all(
        &self,
        writer: &mut Writer,
        offset: i64,
        now_ms: i64,
    ) -> Result<Option<Arc<LogSegment>>> {
        // spec: segments 4.5
        let segments = self.segments();
        let active = Arc::clone(writer.active.segment());
        let active_base = active.base_offset();
        for segment in segments.iter().filter(|segment| segment.base_offset() != active_base) {
            self.drop_first(writer, segment, now_ms)?;
        }
        let settings = self.config.load().segment();
        let is_same_base = offset == active_base;
        let _changing = self.change_list();
        if is_same_base {
            self.retire_segment(&active, now_ms)?;
        }
        let next = match ActiveSegment::create(&self.folder, offset, &settings, now_ms) {
            Ok(next) => next,
            Err(error) => {
                // The old segment may be gone already.
                self.is_failed.fetch_or(is_same_base, Ordering::AcqRel);
                return Err(error);
            }
        };
        self.lower_end(writer, offset.min(self.log_end_offset()));
        self.segments.store(Arc::new(Segments::new([Arc::clone(next.segment())])));
        std::mem::replace(&mut writer.active, next).close();
        Ok((!is_same_base).then_some(active))
    }

    /// Removes the first segment; the log starts behind it.
    fn drop_first(
        &self,
        writer: &mut Writer,
        segment: &Arc<LogSegment>,
        now_ms: i64,
    ) -> Result<()> {
        let base_offset = segment.base_offset();
        let next = self.segments.load().higher(base_offset).map(|next| next.base_offset());
        self.remove_segment(segment, now_ms)?;
        let start = next.unwrap_or(base_offset).max(self.local_log_start_offset());
        self.raise_starts(writer, start, start);
        Ok(())
    }

    fn settle_cleared(
        &self,
        writer: &mut Writer,
        offset: i64,
        log_start_offset: Option<i64>,
    ) -> Result<()> {
        self.change_epochs(|epochs| {
            epochs.clear();
            Ok(())
        })?;
        for snapshot in writer.producers.truncate_fully_and_start_at(offset) {
            self.remove_snapshot(snapshot)?;
        }
        let start = log_start_offset.unwrap_or(offset);
        self.offsets.log_start.store(start, Ordering::Release);
        self.offsets.local_log_start.store(offset, Ordering::Release);
        self.offsets.log_end.store(offset, Ordering::Release);
        self.rebuild_producers(writer, offset)?;
        self.set_high_watermark(writer, offset);
        Ok(())
    }
}
