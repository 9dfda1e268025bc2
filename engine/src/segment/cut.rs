//! How does the segment that is written to lose its end?
//!
//! First everything that may fail is read, then what is known of the segment changes, and last the
//! files are cut: readers and later appends go by what is known.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::active::{ActiveSegment, SegmentSettings};
use super::folder::Folder;
use super::index_tails::{IndexTails, TailFiles};
use super::log_segment::Live;
use super::name::FileRole;
use super::recent::RecentBatches;
use crate::error::Result;
use crate::index::{TimeEntry, TxnEntries, txn};
use crate::units::NO_TIMESTAMP;

impl ActiveSegment {
    /// Cuts the log in front of the batch that holds `offset` or follows it; gives the bytes that
    /// went. The files themselves are cut by [`cut_files`](Self::cut_files).
    ///
    /// # Errors
    /// What reading the files fails with: then nothing has changed.
    pub fn truncate_to(
        &mut self,
        folder: &Folder,
        settings: &SegmentSettings,
        offset: i64,
        now_ms: i64,
    ) -> Result<u64> {
        // spec: segments 3.7. Everything that may fail comes first.
        self.touch_indexes(folder, settings)?;
        let end = self.size_bytes();
        let place = self.segment.translate(folder, offset)?;
        let position = place.map_or(end, |place| place.position);
        let txns = self.txns_below(folder, offset)?;
        let cut = self.with_tail_files(folder, |tails, files| tails.cut(files, offset))?;
        let from = cut.as_ref().map_or(0, |cut| cut.largest_from);
        let last = cut.as_ref().map_or(self.none(), |cut| cut.last_time);
        let largest = self.largest_between(folder, from, position, last)?;

        if position < end {
            self.segment.hint_end_offset(offset);
            self.segment.set_size_bytes(position);
            let recent = RecentBatches::new(self.base_offset(), position == 0);
            self.segment.set_live(Some(Live { recent, tails: Arc::clone(&self.tails) }));
            // Behind what readers look places up in: who found one before sees another count when
            // the bytes there may be others.
            self.segment.truncated();
            self.is_dirty_behind = true;
        }
        if let Some(cut) = cut {
            self.with_tails(|tails| tails.keep(&cut));
            self.segment.publish_entry_counts((cut.offset_count, cut.time_count));
        }
        (self.txn_count, self.txn_last_offset) = txns;
        self.segment.set_entry_count(FileRole::TxnIndex, Some(self.txn_count));
        if position == 0 {
            self.created_ms = now_ms;
            self.rolling_timestamp = None;
        }
        self.bytes_since_index = 0;
        self.segment.set_max_timestamp(Some((largest.timestamp_ms, largest.offset)));
        Ok(end - position)
    }

    /// Cuts the files to what [`truncate_to`](Self::truncate_to) has left. May be done again when
    /// it fails; appends do the part of it that they depend on.
    pub fn cut_files(&mut self, folder: &Folder, settings: &SegmentSettings) -> Result<()> {
        self.cut_what_failed(folder)?;
        let cut = |tails: &mut IndexTails, files: &TailFiles| {
            tails.cut_files(files, settings.index_bytes)
        };
        let cut = self.with_tail_files(folder, cut).and_then(|_| self.cut_txn_file(folder));
        self.segment.indexes_changed();
        cut
    }

    fn none(&self) -> TimeEntry {
        TimeEntry { timestamp_ms: NO_TIMESTAMP, offset: self.base_offset() }
    }

    /// How many aborted transactions end before `offset`, and the end of the last of them.
    fn txns_below(&self, folder: &Folder, offset: i64) -> Result<(u32, Option<i64>)> {
        let handles = self.segment.handles(folder)?;
        let Some(file) = handles.index(&self.segment, folder, FileRole::TxnIndex)? else {
            return Ok((0, None));
        };
        let count = usize::try_from(self.txn_count).unwrap_or(usize::MAX);
        let mut entries = vec![0; count.saturating_mul(txn::ENTRY_SIZE)];
        let read = file.read_at(&mut entries, 0)?;
        entries.truncate(read);
        let entries = TxnEntries::new(&entries);
        let kept = entries.count_below(offset);
        let last = kept.checked_sub(1).and_then(|slot| entries.get(slot));
        Ok((u32::try_from(kept).unwrap_or(u32::MAX), last.map(|txn| txn.last_offset)))
    }

    pub(super) fn cut_txn_file(&self, folder: &Folder) -> Result<()> {
        let handles = self.segment.handles(folder)?;
        let Some(file) = handles.index(&self.segment, folder, FileRole::TxnIndex)? else {
            return Ok(());
        };
        let size = u64::try_from(txn::ENTRY_SIZE).unwrap_or(u64::MAX);
        let size = u64::from(self.txn_count).saturating_mul(size);
        if file.metadata()?.size_bytes > size {
            file.set_size(size)?;
        }
        Ok(())
    }

    /// The largest timestamp of the batches between two positions, or what is known already.
    fn largest_between(
        &self,
        folder: &Folder,
        from: u64,
        end: u64,
        known: TimeEntry,
    ) -> Result<TimeEntry> {
        // spec: segments 3.7
        let mut largest = known;
        self.segment.for_each_header(folder, from, |header, position, _| {
            if position >= end {
                return Ok(ControlFlow::Break(()));
            }
            if header.max_timestamp > largest.timestamp_ms {
                largest =
                    TimeEntry { timestamp_ms: header.max_timestamp, offset: header.last_offset() };
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(largest)
    }
}
