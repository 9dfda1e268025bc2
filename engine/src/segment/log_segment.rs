//! One segment of a log that is read, and perhaps written to, now.
//!
//! It costs little until it is used: no file is open and no index in memory. Readers and the writer
//! share it; what the writer has appended becomes visible by [`LogSegment::size_bytes`], last.

use std::sync::{Arc, PoisonError};

use super::folder::Folder;
use super::handles::{Lease, SegmentHandles};
use super::index_tails::{IndexTails, TailFiles};
use super::name::FileRole;
use super::recent::RecentBatches;
use crate::error::{Error, Kind, Result};
use crate::io::{File, OpenMode};
use crate::sync::{
    ArcSwapOption, Mutex,
    atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering},
};

/// "Every entry that the file holds", as a count of index entries.
const WHOLE_FILE: u32 = u32::MAX;
/// In the count of pins: the segment is written to.
const IS_WRITTEN: u32 = 1 << 31;
/// "Not known yet", as a largest timestamp.
const UNKNOWN: i64 = i64::MIN;

/// A segment of a log.
#[derive(Debug)]
pub struct LogSegment {
    base_offset: i64,
    /// About where its offsets end: look-ups guess by it.
    end_offset_hint: AtomicI64,
    size_bytes: AtomicU64,
    max_timestamp_ms: AtomicI64,
    offset_of_max_timestamp: AtomicI64,
    offset_entries: AtomicU32,
    time_entries: AtomicU32,
    txn_entries: AtomicU32,
    /// Shared with those who keep its log open when it is gone.
    truncations: Arc<AtomicU32>,
    /// How often its indexes were changed, and how much of that is durable.
    index_changes: AtomicU32,
    durable_index_changes: AtomicU32,
    /// Who needs that the log is not cut; or that it is written to, and may be.
    pins: AtomicU32,
    /// Its files have other names now, and others may have theirs.
    is_retired: AtomicBool,
    handles: ArcSwapOption<SegmentHandles>,
    /// While it is written to.
    live: ArcSwapOption<Live>,
}

/// What a segment has while it is written to.
#[derive(Debug)]
pub(super) struct Live {
    /// The newest batches.
    pub(super) recent: RecentBatches,
    /// The growing ends of the indexes.
    pub(super) tails: Arc<Tails>,
}

/// The growing ends of the indexes, once there are indexes.
pub(super) type Tails = Mutex<Option<IndexTails>>;

impl LogSegment {
    /// A segment whose log has `size_bytes`.
    #[must_use]
    pub fn new(base_offset: i64, size_bytes: u64) -> Self {
        LogSegment {
            base_offset,
            end_offset_hint: AtomicI64::new(base_offset),
            size_bytes: AtomicU64::new(size_bytes),
            max_timestamp_ms: AtomicI64::new(UNKNOWN),
            offset_of_max_timestamp: AtomicI64::new(base_offset),
            offset_entries: AtomicU32::new(WHOLE_FILE),
            time_entries: AtomicU32::new(WHOLE_FILE),
            txn_entries: AtomicU32::new(WHOLE_FILE),
            truncations: Arc::new(AtomicU32::new(0)),
            index_changes: AtomicU32::new(0),
            durable_index_changes: AtomicU32::new(0),
            pins: AtomicU32::new(0),
            is_retired: AtomicBool::new(false),
            handles: ArcSwapOption::empty(),
            live: ArcSwapOption::empty(),
        }
    }

    /// The offset that its files are named after.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Says about where its offsets end, so that look-ups begin near to what they look for.
    pub fn hint_end_offset(&self, end_offset: i64) {
        self.end_offset_hint.store(end_offset, Ordering::Relaxed);
    }

    /// The offset that was said last. Of the segment that is written to it is the end of all
    /// batches that its size covers, and for a moment already of those that are about to be.
    pub(crate) fn end_offset_hint(&self) -> i64 {
        self.end_offset_hint.load(Ordering::Relaxed)
    }

    /// The slot in an index of `count` entries where the entry of `offset` is, if offsets rise
    /// evenly.
    pub(super) fn guess_slot(&self, offset: i64, count: u64) -> u64 {
        let base = i128::from(self.base_offset);
        let span = i128::from(self.end_offset_hint()) - base;
        let ahead = (i128::from(offset) - base).clamp(0, span.max(0));
        let slot = i128::from(count) * ahead / span.max(1);
        u64::try_from(slot).unwrap_or(0).min(count)
    }

    /// The bytes of its log that may be read.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Acquire)
    }

    pub(super) fn set_size_bytes(&self, size_bytes: u64) {
        self.size_bytes.store(size_bytes, Ordering::Release);
    }

    /// How often its log was cut since it was opened. Bytes that were read before and after the
    /// same count were not cut in between.
    #[must_use]
    pub fn truncations(&self) -> u32 {
        self.truncations.load(Ordering::Acquire)
    }

    pub(super) fn truncation_count(&self) -> &Arc<AtomicU32> {
        &self.truncations
    }

    pub(super) fn truncated(&self) {
        self.truncations.fetch_add(1, Ordering::AcqRel);
    }

    /// How often its indexes were changed since it was opened. To be read before they are synced.
    #[must_use]
    pub fn index_changes(&self) -> u32 {
        self.index_changes.load(Ordering::Acquire)
    }

    /// They were changed: to be said afterwards, so that a sync that began before does not cover
    /// what it may have missed.
    pub(super) fn indexes_changed(&self) {
        self.index_changes.fetch_add(1, Ordering::AcqRel);
    }

    /// As many changes of its indexes are durable now. Of two syncs that end in turn the later
    /// counts: at worst that makes for one sync too many.
    pub fn indexes_synced(&self, changes: u32) {
        self.durable_index_changes.store(changes, Ordering::Release);
    }

    /// Whether its indexes are durable as they are.
    #[must_use]
    pub fn are_indexes_durable(&self) -> bool {
        self.durable_index_changes.load(Ordering::Acquire) == self.index_changes()
    }

    /// Says that the segment is written to from now on; `false` when its log must not be cut.
    pub(super) fn begin_writing(&self) -> bool {
        let may_begin = |pins: u32| (pins & !IS_WRITTEN == 0).then_some(IS_WRITTEN);
        self.pins.fetch_update(Ordering::AcqRel, Ordering::Acquire, may_begin).is_ok()
    }

    /// Says that nobody writes to it any more.
    pub(super) fn end_writing(&self) {
        self.pins.fetch_and(!IS_WRITTEN, Ordering::AcqRel);
    }

    /// Keeps the log from being cut; `false` while it is written to.
    pub(super) fn pin(&self) -> bool {
        let may_pin = |pins: u32| (pins & IS_WRITTEN == 0).then(|| pins.checked_add(1)).flatten();
        self.pins.fetch_update(Ordering::AcqRel, Ordering::Acquire, may_pin).is_ok()
    }

    pub(super) fn unpin(&self) {
        self.pins.fetch_sub(1, Ordering::AcqRel);
    }

    /// The largest timestamp of its batches and the last offset of the batch that has it, where
    /// that is in memory.
    #[must_use]
    pub fn known_max_timestamp(&self) -> Option<(i64, i64)> {
        // The offset is stored first, and never goes back but with a truncation.
        let timestamp_ms = self.max_timestamp_ms.load(Ordering::Acquire);
        let offset = self.offset_of_max_timestamp.load(Ordering::Acquire);
        (timestamp_ms != UNKNOWN).then_some((timestamp_ms, offset))
    }

    /// Takes what a reader has found in the files, unless the writer has said it meanwhile.
    pub(super) fn learn_max_timestamp(&self, (timestamp_ms, offset): (i64, i64)) {
        let put = |cell: &AtomicI64, unknown, known| {
            cell.compare_exchange(unknown, known, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        // In between the base offset is told: who looks from there finds the same batch.
        if put(&self.max_timestamp_ms, UNKNOWN, timestamp_ms) {
            put(&self.offset_of_max_timestamp, self.base_offset, offset);
        }
    }

    pub(super) fn set_max_timestamp(&self, known: Option<(i64, i64)>) {
        let (timestamp_ms, offset) = known.unwrap_or((UNKNOWN, self.base_offset));
        self.offset_of_max_timestamp.store(offset, Ordering::Release);
        self.max_timestamp_ms.store(timestamp_ms, Ordering::Release);
    }

    /// How many entries of an index file count.
    pub(super) fn entry_count(
        &self,
        role: FileRole,
        file: &dyn File,
        entry_size: usize,
    ) -> Result<u64> {
        let count = match self.entries(role).load(Ordering::Acquire) {
            WHOLE_FILE => {
                let size = u64::try_from(entry_size).unwrap_or(u64::MAX).max(1);
                let whole = file.metadata()?.size_bytes / size;
                let count = u32::try_from(whole).unwrap_or(WHOLE_FILE - 1);
                // Nobody writes to the file any more, unless the count was set meanwhile.
                let entries = self.entries(role);
                let kept = (Ordering::AcqRel, Ordering::Acquire);
                match entries.compare_exchange(WHOLE_FILE, count, kept.0, kept.1) {
                    Ok(_) => count,
                    Err(now) => now,
                }
            }
            count => count,
        };
        Ok(u64::from(count))
    }

    /// Whether the transaction index is worth a look.
    #[must_use]
    pub fn may_have_txns(&self) -> bool {
        self.txn_entries.load(Ordering::Acquire) > 0
    }

    /// There is no transaction index, and nobody will make one any more.
    pub(crate) fn has_no_txns(&self) {
        let kept = (Ordering::AcqRel, Ordering::Acquire);
        // Where the count is set meanwhile, the segment is written to again.
        let _ = self.txn_entries.compare_exchange(WHOLE_FILE, 0, kept.0, kept.1);
    }

    /// Says how many entries of an index file count; `None`: all that it holds.
    pub(super) fn set_entry_count(&self, role: FileRole, count: Option<u32>) {
        self.entries(role).store(count.unwrap_or(WHOLE_FILE), Ordering::Release);
    }

    fn entries(&self, role: FileRole) -> &AtomicU32 {
        match role {
            FileRole::OffsetIndex => &self.offset_entries,
            FileRole::TimeIndex => &self.time_entries,
            FileRole::TxnIndex | FileRole::Log | FileRole::Snapshot => &self.txn_entries,
        }
    }

    /// What it has while it is written to.
    pub(super) fn live(&self) -> Option<Arc<Live>> {
        self.live.load_full()
    }

    pub(super) fn set_live(&self, live: Option<Live>) {
        self.live.store(live.map(Arc::new));
    }

    /// Whether it is written to.
    pub(super) fn is_live(&self) -> bool {
        self.live.load().is_some()
    }

    /// A look at the newest batches, while it is written to.
    pub(super) fn with_recent<T>(&self, look: impl FnOnce(&RecentBatches) -> T) -> Option<T> {
        self.live.load().as_deref().map(|live| look(&live.recent))
    }

    /// Does something with the growing ends of the indexes, where there are any.
    pub(super) fn with_tails<T>(&self, act: impl FnOnce(&mut IndexTails) -> T) -> Option<T> {
        let live = self.live()?;
        let mut tails = live.tails.lock().unwrap_or_else(PoisonError::into_inner);
        tails.as_mut().map(act)
    }

    /// Writes the index entries that have gathered to their files.
    pub(super) fn write_out_tails(self: &Arc<Self>, folder: &Folder) -> Result<()> {
        let Some(live) = self.live() else { return Ok(()) };
        let mut tails = live.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tails) = tails.as_mut() else { return Ok(()) };
        self.check_own(Ok(()), folder)?;
        if tails.has_gathered() {
            tails.write_out(&TailFiles::open(folder, self.base_offset)?)?;
        }
        self.publish_entry_counts(tails.written());
        Ok(())
    }

    pub(super) fn publish_entry_counts(&self, (offset_entries, time_entries): (u32, u32)) {
        self.set_entry_count(FileRole::OffsetIndex, Some(offset_entries));
        self.set_entry_count(FileRole::TimeIndex, Some(time_entries));
    }

    /// Says that it is no part of the log any more: files that are opened by its names from now on
    /// are not its own, and one that is missing says nothing. To be said when nobody finds it any
    /// more, and before its files are renamed. Whoever is at the growing ends of its indexes is
    /// waited for: he must not write to what has its names then.
    pub(crate) fn retire(&self) {
        let live = self.live();
        let _tails =
            live.as_ref().map(|live| live.tails.lock().unwrap_or_else(PoisonError::into_inner));
        self.is_retired.store(true, Ordering::Release);
    }

    /// Takes [`retire`](Self::retire) back, when its files have their names after all.
    pub(crate) fn reinstate(&self) {
        self.is_retired.store(false, Ordering::Release);
    }

    /// A file that was looked up by name is this segment's only if it is not retired yet.
    pub(super) fn check_own<T>(&self, opened: Result<T>, folder: &Folder) -> Result<T> {
        // After the opening: whoever renames has retired the segment before.
        if self.is_retired.load(Ordering::Acquire) {
            let message = "the segment is no part of the log any more";
            let path = folder.file(self.base_offset, FileRole::Log);
            return Err(Error::new(Kind::NotFound, message).in_file(&path));
        }
        opened
    }

    /// Its files, opened now if they are not open.
    ///
    /// # Errors
    /// `NotFound` when the segment was deleted or replaced meanwhile; what opening a file may fail
    /// with.
    pub fn handles(self: &Arc<Self>, folder: &Folder) -> Result<Arc<SegmentHandles>> {
        if let Some(handles) = self.handles.load_full() {
            handles.used();
            return Ok(handles);
        }
        self.open(folder)
    }

    /// Looks at its files, opened now if they are not open. Readers that only look do not disturb
    /// each other.
    pub(super) fn with_handles<T>(
        self: &Arc<Self>,
        folder: &Folder,
        look: impl FnOnce(&SegmentHandles) -> Result<T>,
    ) -> Result<T> {
        if let Some(handles) = self.handles.load().as_deref() {
            handles.used();
            return look(handles);
        }
        look(&*self.open(folder)?)
    }

    /// A lease on its log, opened now if it is not open.
    ///
    /// # Errors
    /// As [`handles`](Self::handles).
    pub fn lease(self: &Arc<Self>, folder: &Folder) -> Result<Arc<Lease>> {
        self.with_handles(folder, |handles| Ok(handles.lease()))
    }

    fn open(self: &Arc<Self>, folder: &Folder) -> Result<Arc<SegmentHandles>> {
        let opened = folder.open(self.base_offset, FileRole::Log, OpenMode::ReadWrite);
        let log = self.check_own(opened, folder)?.into();
        let handles = Arc::new(SegmentHandles::new(self, log, folder.open_files()));
        if let Some(others) = self.set_handles(folder, Arc::clone(&handles)) {
            self.part_with(&others);
        }
        Ok(handles)
    }

    /// Takes open files, and gives those that it had. Where it had none, and be it since a moment,
    /// nobody knows any more that they are to be let go of.
    #[must_use]
    pub(super) fn set_handles(
        self: &Arc<Self>,
        folder: &Folder,
        handles: Arc<SegmentHandles>,
    ) -> Option<Arc<SegmentHandles>> {
        let others = self.handles.swap(Some(handles));
        if others.is_none() {
            folder.keep_count(self);
        }
        others
    }

    /// Ends the map of files that it has no longer, while readers may still be at it.
    pub(super) fn part_with(&self, handles: &SegmentHandles) {
        if handles.blank_map().is_err() {
            // Nobody knows when the last of them is gone: the log is not cut any more.
            self.pin();
        }
    }

    /// Whether these are its open files.
    pub(super) fn has_handles(&self, handles: &SegmentHandles) -> bool {
        self.handles.load().as_deref().is_some_and(|own| std::ptr::eq(own, handles))
    }

    /// Whether files of it are open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.handles.load().is_some()
    }

    /// Whether its files were used since this was asked last.
    pub(super) fn was_used(&self) -> bool {
        self.handles.load().as_deref().is_some_and(SegmentHandles::was_used)
    }

    /// Lets go of its open files; leases keep the log, and whoever is at it.
    pub(super) fn let_go(&self) -> Option<Arc<SegmentHandles>> {
        let handles = self.handles.swap(None)?;
        self.part_with(&handles);
        Some(handles)
    }

    /// Lets go of its files whatever it is used for.
    pub(crate) fn close(&self) {
        self.live.store(None);
        drop(self.let_go());
    }
}
