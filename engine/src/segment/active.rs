//! The segment that is written to: what only the writer knows of it.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::folder::Folder;
use super::handles::SegmentHandles;
use super::index_tails::{IndexTails, TailFiles};
use super::log_segment::{Live, LogSegment, Tails};
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
    /// `preallocate`: whether room for all of it is reserved on the disk when it is made.
    pub preallocate: bool,
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
    pub(super) tails: Arc<Tails>,
    pub(super) created_ms: i64,
    roll_jitter_ms: i64,
    /// The largest timestamp of the first batch.
    pub(super) rolling_timestamp: Option<i64>,
    pub(super) bytes_since_index: u64,
    pub(super) txn_count: u32,
    /// Of the last entry that was written or is left by a cut; unknown after an open, as in Kafka:
    /// a damaged one would have every abort refused.
    // spec: indexes 4.2
    pub(super) txn_last_offset: Option<i64>,
    /// A write failed and may have left bytes behind the end.
    pub(super) is_dirty_behind: bool,
    /// There may be room reserved behind the end.
    is_reserved: bool,
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
                // An empty one is as good as a new one, and a crash leaves it its name.
                let found = storage.open(&path, OpenMode::Rewrite).ok();
                match found.filter(|file| file.metadata().is_ok_and(|now| now.size_bytes == 0)) {
                    Some(file) => file,
                    None => {
                        remove_if_there(folder, &path)?;
                        storage.open(&path, OpenMode::CreateNew)?
                    }
                }
            }
            other => other?,
        };
        if settings.preallocate
            && let Err(error) = log.reserve(u64::from(settings.segment_bytes))
        {
            // A segment that nobody writes to must not be found behind the one that goes on.
            remove_if_there(folder, &path)?;
            return Err(error);
        }
        let segment = Arc::new(LogSegment::new(base_offset, 0));
        segment.begin_writing();
        let handles = SegmentHandles::new(&segment, log.into(), folder.open_files());
        segment.set_max_timestamp(Some((NO_TIMESTAMP, base_offset)));
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex] {
            segment.set_entry_count(role, Some(0));
        }
        let active = Self::with(segment, (settings, now_ms));
        drop(active.segment.set_handles(folder, Arc::new(handles)));
        Ok(active)
    }

    /// Takes the last segment of a log that was loaded. When that fails it is sealed as before.
    pub fn open(
        folder: &Folder,
        segment: &Arc<LogSegment>,
        settings: &SegmentSettings,
        now_ms: i64,
    ) -> Result<Self> {
        // Other handles than those of its readers, who may hold its sealed indexes in memory.
        let handles = segment.handles(folder)?;
        if !segment.begin_writing() {
            let message = "mapped slices of the segment are in use";
            return Err(Error::new(Kind::Conflict, message).in_file(handles.log().path()));
        }
        let mut active = Self::with(Arc::clone(segment), (settings, now_ms));
        let before = segment.set_handles(folder, Arc::new(handles.without_indexes()));
        let unmapped = before.map_or(Ok(()), |before| before.blank_map());
        let opened = unmapped.and_then(|()| active.open_txn_index(folder));
        match opened.and_then(|()| active.touch_indexes(folder, settings)) {
            Ok(()) => Ok(active),
            Err(error) => {
                active.end(None);
                Err(error)
            }
        }
    }

    fn with(segment: Arc<LogSegment>, (settings, now_ms): (&SegmentSettings, i64)) -> Self {
        let recent = RecentBatches::new(segment.base_offset(), segment.size_bytes() == 0);
        let tails = Arc::<Tails>::default();
        segment.set_live(Some(Live { recent, tails: Arc::clone(&tails) }));
        ActiveSegment {
            segment,
            tails,
            created_ms: now_ms,
            roll_jitter_ms: jitter(settings.segment_jitter_ms.min(settings.segment_ms)),
            rolling_timestamp: None,
            bytes_since_index: 0,
            txn_count: 0,
            txn_last_offset: None,
            is_dirty_behind: false,
            is_reserved: settings.preallocate,
        }
    }

    fn open_txn_index(&mut self, folder: &Folder) -> Result<()> {
        let handles = self.segment.handles(folder)?;
        let Some(file) = handles.index(&self.segment, folder, FileRole::TxnIndex)? else {
            self.segment.set_entry_count(FileRole::TxnIndex, Some(0));
            return Ok(());
        };
        let size = u64::try_from(txn::ENTRY_SIZE).unwrap_or(u64::MAX);
        let count = file.metadata()?.size_bytes / size;
        self.txn_count = u32::try_from(count).unwrap_or(u32::MAX);
        self.segment.set_entry_count(FileRole::TxnIndex, Some(self.txn_count));
        Ok(())
    }

    /// What readers share of it.
    #[must_use]
    pub fn segment(&self) -> &Arc<LogSegment> {
        &self.segment
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
        touch(&self.segment, &self.tails, folder, settings)
    }

    /// Does something with the growing ends of the indexes, where there are any.
    pub(super) fn with_tails<T>(&self, act: impl FnOnce(&mut IndexTails) -> T) -> Option<T> {
        self.tails.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(act)
    }

    /// The same with their files.
    pub(super) fn with_tail_files<T>(
        &self,
        folder: &Folder,
        act: impl FnOnce(&mut IndexTails, &TailFiles) -> Result<T>,
    ) -> Result<Option<T>> {
        let base_offset = self.base_offset();
        let open = |tails: &mut IndexTails| act(tails, &TailFiles::open(folder, base_offset)?);
        self.with_tails(open).transpose()
    }

    /// Whether so many batches may each get an index entry and the segment is still not full.
    #[must_use]
    pub fn has_index_room(&self, batches: usize) -> bool {
        self.with_tails(|tails| tails.has_room(batches)) == Some(true)
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
            || self.with_tails(|tails| tails.is_full()) == Some(true)
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
        folder: &Folder,
        settings: &SegmentSettings,
    ) -> Result<()> {
        match segment.live() {
            Some(live) => touch(segment, &live.tails, folder, settings),
            None => Ok(()),
        }
    }

    /// Writes the index entries that have gathered to their files, and makes these where they are
    /// missing: a flush does, of any segment.
    pub fn write_out_indexes(
        segment: &Arc<LogSegment>,
        folder: &Folder,
        settings: &SegmentSettings,
    ) -> Result<()> {
        Self::touch_of(segment, folder, settings)?;
        segment.write_out_tails(folder)
    }

    /// Brings the files to the form that they have while nothing is written to them: the entry of
    /// the largest timestamp at the end of the time index, and no bytes behind the last. The
    /// segment may be written to afterwards all the same.
    pub fn finish_files(&mut self, folder: &Folder) -> Result<()> {
        // spec: segments 3.7
        self.cut_what_failed(folder)?;
        let handles = self.segment.handles(folder)?;
        if self.is_reserved || handles.log().metadata()?.size_bytes != self.size_bytes() {
            handles.log().set_size(self.size_bytes())?;
        }
        let known = self.segment.known_max_timestamp();
        let largest = known.map(|(timestamp_ms, offset)| TimeEntry { timestamp_ms, offset });
        let finished = self.with_tail_files(folder, |tails, files| {
            tails.finish(files, largest)?;
            self.segment.publish_entry_counts(tails.written());
            Ok(())
        });
        // Also when it failed half way.
        self.segment.indexes_changed();
        finished?;
        self.cut_txn_file(folder)
    }

    /// Ends the writing: what readers share of it stays. Its files must be
    /// [finished](Self::finish_files).
    pub fn seal(self) -> Arc<LogSegment> {
        // That there is none needs no look at the disk any more.
        let txns = (self.txn_count == 0).then_some(0);
        self.end(txns)
    }

    /// Ends the writing; of the index of transactions so many entries count, or all.
    fn end(self, txns: Option<u32>) -> Arc<LogSegment> {
        // In this order: a flush that finds no tails must see that there are to be none any more.
        self.segment.set_live(None);
        *self.tails.lock().unwrap_or_else(PoisonError::into_inner) = None;
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex] {
            self.segment.set_entry_count(role, None);
        }
        self.segment.set_entry_count(FileRole::TxnIndex, txns);
        self.segment.end_writing();
        self.segment
    }

    /// Lets go of all files.
    pub fn close(self) {
        self.segment.close();
        *self.tails.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Makes the indexes of a segment that is written to, once.
fn touch(
    segment: &LogSegment,
    tails: &Tails,
    folder: &Folder,
    settings: &SegmentSettings,
) -> Result<()> {
    // spec: segments 9.9. A new segment has only its log until something needs an index.
    let mut tails = tails.lock().unwrap_or_else(PoisonError::into_inner);
    // A flush may have found it written to, and it was sealed meanwhile.
    if tails.is_some() || !segment.is_live() {
        return Ok(());
    }
    segment.check_own(Ok(()), folder)?;
    let base_offset = segment.base_offset();
    let files = TailFiles::open_or_make(folder, base_offset)?;
    let opened = IndexTails::open(base_offset, &files, settings.index_bytes);
    segment.indexes_changed();
    let opened = opened?;
    segment.publish_entry_counts(opened.written());
    *tails = Some(opened);
    Ok(())
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
