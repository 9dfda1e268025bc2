//! The segment that is written to: what only the writer knows of it.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::folder::Folder;
use super::index_tails::IndexTails;
use super::log_segment::{LogSegment, SegmentHandles};
use super::name::FileRole;
use super::recent::RecentBatches;
use crate::error::{Error, Kind, Result};
use crate::index::{TimeEntry, txn};
use crate::io::OpenMode;
use crate::units::{NO_TIMESTAMP, is_addressable};

/// The largest position in a log.
pub const LOG_BYTES_MAX: u64 = 2_147_483_647;

/// The settings that shape a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSettings {
    /// `segment.bytes`.
    pub segment_bytes: u32,
    /// `segment.ms`, or what compaction makes of it.
    pub segment_ms: i64,
    /// `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`.
    pub index_bytes: u32,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u32,
}

/// What is to be appended, for the question whether the segment must be rolled first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollParams {
    /// The largest timestamp of the batches, -1 for none.
    pub max_timestamp_ms: i64,
    /// Their last offset.
    pub last_offset: i64,
    /// Their bytes.
    pub size_bytes: u64,
    /// The clock.
    pub now_ms: i64,
}

/// The writer's view of the active segment.
#[derive(Debug)]
pub struct ActiveSegment {
    pub(super) segment: Arc<LogSegment>,
    pub(super) handles: Arc<SegmentHandles>,
    pub(super) created_ms: i64,
    roll_jitter_ms: i64,
    /// The largest timestamp of the first batch.
    pub(super) rolling_timestamp: Option<i64>,
    pub(super) bytes_since_index: u64,
    pub(super) txn_count: u32,
    pub(super) txn_last_offset: Option<i64>,
    /// A write failed and may have left bytes behind the end.
    pub(super) is_dirty_behind: bool,
}

impl ActiveSegment {
    /// Makes the files of a new segment: its log alone, over what may lie there under its names.
    pub fn create(
        folder: &Folder,
        base_offset: i64,
        settings: &SegmentSettings,
        now_ms: i64,
    ) -> Result<Self> {
        let storage = folder.storage();
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex] {
            remove_if_there(folder, &folder.file(base_offset, role))?;
        }
        let path = folder.file(base_offset, FileRole::Log);
        let log = match storage.open(&path, OpenMode::CreateNew) {
            Err(error) if error.kind() == Kind::Conflict => {
                remove_if_there(folder, &path)?;
                storage.open(&path, OpenMode::CreateNew)?
            }
            other => other?,
        };
        let segment = Arc::new(LogSegment::new(base_offset, 0));
        segment.begin_writing();
        let handles = Arc::new(SegmentHandles::new(&segment, log.into(), folder.open_files()));
        segment.set_max_timestamp(Some((NO_TIMESTAMP, base_offset)));
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex] {
            segment.set_entry_count(role, Some(0));
        }
        Ok(Self::with(segment, handles, true, settings, now_ms))
    }

    /// Takes the last segment of a log that was loaded.
    pub fn open(
        folder: &Folder,
        segment: &Arc<LogSegment>,
        settings: &SegmentSettings,
        now_ms: i64,
    ) -> Result<Self> {
        // Other handles than those of its readers, who may hold its sealed indexes in memory.
        let log = Arc::clone(segment.handles(folder)?.log());
        if !segment.begin_writing() {
            let message = "mapped slices of the segment are in use";
            return Err(Error::new(Kind::Conflict, message).in_file(log.path()));
        }
        let handles = Arc::new(SegmentHandles::new(segment, log, folder.open_files()));
        let is_empty = segment.size_bytes() == 0;
        let segment = Arc::clone(segment);
        let mut active = Self::with(segment, handles, is_empty, settings, now_ms);
        active.open_txn_index(folder)?;
        active.touch_indexes(folder, settings)?;
        Ok(active)
    }

    fn with(
        segment: Arc<LogSegment>,
        handles: Arc<SegmentHandles>,
        is_empty: bool,
        settings: &SegmentSettings,
        now_ms: i64,
    ) -> Self {
        segment.set_recent(Some(RecentBatches::new(segment.base_offset(), is_empty)));
        segment.set_handles(Arc::clone(&handles));
        ActiveSegment {
            segment,
            handles,
            created_ms: now_ms,
            roll_jitter_ms: jitter(settings.segment_jitter_ms.min(settings.segment_ms)),
            rolling_timestamp: None,
            bytes_since_index: 0,
            txn_count: 0,
            txn_last_offset: None,
            is_dirty_behind: false,
        }
    }

    fn open_txn_index(&mut self, folder: &Folder) -> Result<()> {
        let Some(file) = self.handles.index(&self.segment, folder, FileRole::TxnIndex)? else {
            self.segment.set_entry_count(FileRole::TxnIndex, Some(0));
            return Ok(());
        };
        let size = u64::try_from(txn::ENTRY_SIZE).unwrap_or(u64::MAX);
        let count = file.metadata()?.size_bytes / size;
        self.txn_count = u32::try_from(count).unwrap_or(u32::MAX);
        self.segment.set_entry_count(FileRole::TxnIndex, Some(self.txn_count));
        if let Some(slot) = count.checked_sub(1) {
            let mut entry = [0; txn::ENTRY_SIZE];
            file.read_at(&mut entry, slot.saturating_mul(size))?;
            self.txn_last_offset =
                crate::index::TxnEntries::new(&entry).get(0).map(|entry| entry.last_offset);
        }
        Ok(())
    }

    /// What readers share of it.
    #[must_use]
    pub fn segment(&self) -> &Arc<LogSegment> {
        &self.segment
    }

    /// Its open files.
    #[must_use]
    pub fn handles(&self) -> &Arc<SegmentHandles> {
        &self.handles
    }

    /// The offset that its files are named after.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.segment.base_offset()
    }

    /// The bytes of its log.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.segment.size_bytes()
    }

    /// Makes the offset and the time index at their full length, where they are not there yet.
    pub fn touch_indexes(&self, folder: &Folder, settings: &SegmentSettings) -> Result<()> {
        touch(&self.segment, &self.handles, folder, settings)
    }

    /// Whether so many batches may each get an index entry and the segment is still not full.
    #[must_use]
    pub fn has_index_room(&self, batches: usize) -> bool {
        self.handles.with_tails(|tails| tails.has_room(batches)) == Some(true)
    }

    /// Whether what is to be appended belongs into a new segment. Indexes must have been touched.
    pub fn should_roll(
        &mut self,
        folder: &Folder,
        settings: &SegmentSettings,
        append: &RollParams,
    ) -> Result<bool> {
        // spec: segments 3.4
        let size = self.size_bytes();
        let limit = i64::from(settings.segment_bytes);
        let room = limit.saturating_sub(i64::try_from(append.size_bytes).unwrap_or(i64::MAX));
        let is_too_large = i64::try_from(size).unwrap_or(i64::MAX) > room;
        if is_too_large
            || self.handles.with_tails(|tails| tails.is_full()) == Some(true)
            || !is_addressable(self.base_offset(), append.last_offset)
        {
            return Ok(true);
        }
        if size == 0 {
            return Ok(false);
        }
        let waited = self.time_waited(folder, append.now_ms, append.max_timestamp_ms)?;
        Ok(waited > settings.segment_ms.saturating_sub(self.roll_jitter_ms))
    }

    /// For how long the segment has been filled, by the timestamps where it has some.
    pub fn time_waited(
        &mut self,
        folder: &Folder,
        now_ms: i64,
        max_timestamp_ms: i64,
    ) -> Result<i64> {
        if self.rolling_timestamp.is_none() {
            self.rolling_timestamp = self.segment.first_batch_timestamp(folder)?;
        }
        Ok(match self.rolling_timestamp {
            Some(first) if first >= 0 => max_timestamp_ms.saturating_sub(first),
            _ => now_ms.saturating_sub(self.created_ms),
        })
    }

    /// Makes the indexes of a segment that is written to, where they are not there yet.
    pub fn touch_of(
        segment: &LogSegment,
        handles: &SegmentHandles,
        folder: &Folder,
        settings: &SegmentSettings,
    ) -> Result<()> {
        touch(segment, handles, folder, settings)
    }

    /// Writes the index entries that have gathered to their files, and makes these where they are
    /// missing: a flush does, of any segment.
    pub fn write_out_indexes(
        segment: &LogSegment,
        handles: &SegmentHandles,
        folder: &Folder,
        settings: &SegmentSettings,
    ) -> Result<()> {
        touch(segment, handles, folder, settings)?;
        let written = handles.with_tails(|tails| tails.write_out().map(|()| tails.written()));
        written.transpose()?.inspect(|written| publish_entry_counts(segment, *written));
        Ok(())
    }

    /// Brings the files to the form that they have while nothing is written to them: the entry of
    /// the largest timestamp at the end of the time index, and no bytes behind the last. The
    /// segment may be written to afterwards all the same.
    pub fn finish_files(&mut self, folder: &Folder) -> Result<()> {
        // spec: segments 3.7
        self.cut_what_failed()?;
        let log = self.handles.log();
        if log.metadata()?.size_bytes != self.size_bytes() {
            log.set_size(self.size_bytes())?;
        }
        let known = self.segment.known_max_timestamp();
        let largest = known.map(|(timestamp_ms, offset)| TimeEntry { timestamp_ms, offset });
        let finished =
            self.handles.with_tails(|tails| tails.finish(largest).map(|()| tails.written()));
        // Also when it failed half way.
        self.segment.indexes_changed();
        if let Some(written) = finished {
            publish_entry_counts(&self.segment, written?);
        }
        self.cut_txn_file(folder)
    }

    /// Ends the writing: what readers share of it stays. Its files must be
    /// [finished](Self::finish_files).
    pub fn seal(self, folder: &Folder) -> Arc<LogSegment> {
        let segment = self.seal_open();
        folder.open_files().opened(&segment);
        segment
    }

    /// The same for a segment whose files are still to get their names: they stay open until it is
    /// closed.
    pub(crate) fn seal_open(self) -> Arc<LogSegment> {
        *self.handles.tails.lock().unwrap_or_else(PoisonError::into_inner) = None;
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex] {
            self.segment.set_entry_count(role, None);
        }
        // That there is none needs no look at the disk any more.
        let txns = (self.txn_count == 0).then_some(0);
        self.segment.set_entry_count(FileRole::TxnIndex, txns);
        self.segment.set_recent(None);
        self.segment.end_writing();
        self.segment
    }

    /// Lets go of all files.
    pub fn close(self) {
        *self.handles.tails.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.segment.close();
    }
}

/// Makes the indexes of a segment that is written to, once.
fn touch(
    segment: &LogSegment,
    handles: &SegmentHandles,
    folder: &Folder,
    settings: &SegmentSettings,
) -> Result<()> {
    // spec: segments 9.9. A new segment has only its log until something needs an index.
    let mut tails = handles.tails.lock().unwrap_or_else(PoisonError::into_inner);
    if tails.is_some() || segment.with_recent(|_| ()).is_none() {
        return Ok(());
    }
    let offset = handles.index_or_new(segment, folder, FileRole::OffsetIndex)?;
    let time = handles.index_or_new(segment, folder, FileRole::TimeIndex)?;
    let opened = IndexTails::open(segment.base_offset(), (offset, time), settings.index_bytes);
    segment.indexes_changed();
    let opened = opened?;
    publish_entry_counts(segment, opened.written());
    *tails = Some(opened);
    Ok(())
}

pub(super) fn publish_entry_counts(
    segment: &LogSegment,
    (offset_entries, time_entries): (u32, u32),
) {
    segment.set_entry_count(FileRole::OffsetIndex, Some(offset_entries));
    segment.set_entry_count(FileRole::TimeIndex, Some(time_entries));
}

/// A number of milliseconds below `limit_ms`, another one each time.
fn jitter(limit_ms: i64) -> i64 {
    use std::hash::{BuildHasher, RandomState};
    let Ok(limit) = u64::try_from(limit_ms) else { return 0 };
    if limit == 0 {
        return 0;
    }
    i64::try_from(RandomState::new().hash_one(0_u64) % limit).unwrap_or(0)
}

/// Removes a file that may not be there.
pub(crate) fn remove_if_there(folder: &Folder, path: &Path) -> Result<()> {
    match folder.storage().remove_file(path) {
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        other => other,
    }
}
