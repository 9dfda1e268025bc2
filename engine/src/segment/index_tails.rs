//! How do the index files of the segment that is written to grow?
//!
//! Entries gather in memory and go to the files a block at a time, and before anything depends on
//! them: a flush, a roll, a close. Until then a reader scans a little further.

use super::folder::Folder;
use super::name::FileRole;
use crate::bytes;
use crate::error::Result;
use crate::index::{OffsetEntries, TimeEntries, TimeEntry, offset, time};
use crate::io::{File, OpenMode};
use crate::units::{NO_TIMESTAMP, is_addressable};

/// Entries of one index that gather in memory.
const PENDING_ENTRIES_MAX: usize = 128;

/// One index file that grows, entries of so many bytes.
#[derive(Debug)]
pub(super) struct IndexTail<const ENTRY_SIZE: usize> {
    max_count: u32,
    /// Entries in the file.
    written: u32,
    pending: Vec<u8>,
    /// The length of the file as far as it is known.
    file_size: u64,
}

impl<const ENTRY_SIZE: usize> IndexTail<ENTRY_SIZE> {
    /// The tail of a file that holds `count` entries, with room for `max_size_bytes` of them.
    fn open(file: &dyn File, count: u32, max_size_bytes: u32) -> Result<Self> {
        let file_size = file.metadata()?.size_bytes;
        let max_count = room(max_size_bytes, ENTRY_SIZE).max(count);
        let mut tail = IndexTail { max_count, written: count, pending: Vec::new(), file_size };
        tail.set_file_size(file, max_count)?;
        Ok(tail)
    }

    pub(super) fn count(&self) -> u32 {
        let pending = self.pending.len() / ENTRY_SIZE;
        self.written.saturating_add(u32::try_from(pending).unwrap_or(u32::MAX))
    }

    /// Entries that are in the file.
    pub(super) fn written(&self) -> u32 {
        self.written
    }

    fn push(&mut self, entry: [u8; ENTRY_SIZE]) {
        self.pending.extend_from_slice(&entry);
    }

    /// Writes what has gathered. It stays gathered when that fails.
    fn write_out(&mut self, file: &dyn File) -> Result<()> {
        if !self.pending.is_empty() {
            file.write_at(&self.pending, Self::position(self.written))?;
            self.written = self.count();
            self.pending.clear();
            self.file_size = self.file_size.max(Self::position(self.written));
        }
        Ok(())
    }

    /// The bytes of the entries in the file.
    fn read(&self, file: &dyn File) -> Result<Vec<u8>> {
        let size = usize::try_from(Self::position(self.written)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; size];
        let read = file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Drops the entries behind the first `count`; all of them must be in the file.
    fn keep(&mut self, count: u32) {
        self.written = self.written.min(count);
    }

    /// Cuts the file to its entries, so that what was dropped reads as zeros, and gives it its full
    /// length again.
    fn cut_file(&mut self, file: &dyn File, max_size_bytes: u32) -> Result<()> {
        self.set_file_size(file, self.written)?;
        self.max_count = room(max_size_bytes, ENTRY_SIZE).max(self.written);
        self.set_file_size(file, self.max_count)
    }

    /// Gives the file the length of this many entries.
    fn set_file_size(&mut self, file: &dyn File, count: u32) -> Result<()> {
        let size = Self::position(count);
        if self.file_size != size {
            file.set_size(size)?;
            self.file_size = size;
        }
        Ok(())
    }

    fn position(count: u32) -> u64 {
        u64::from(count).saturating_mul(u64::try_from(ENTRY_SIZE).unwrap_or(u64::MAX))
    }
}

/// The entries that so many bytes have room for.
fn room(size_bytes: u32, entry_size: usize) -> u32 {
    size_bytes / u32::try_from(entry_size).unwrap_or(u32::MAX).max(1)
}

/// The two files, open for as long as they are written to.
#[derive(Debug)]
pub struct TailFiles {
    offset: Box<dyn File>,
    time: Box<dyn File>,
}

impl TailFiles {
    /// Two files that are open.
    #[must_use]
    pub fn new(offset: Box<dyn File>, time: Box<dyn File>) -> Self {
        TailFiles { offset, time }
    }

    /// Opens the files, which are there.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn open(folder: &Folder, base_offset: i64) -> Result<Self> {
        Self::each(|role| folder.open(base_offset, role, OpenMode::ReadWrite))
    }

    /// The same, made empty where they are missing.
    pub(super) fn open_or_make(folder: &Folder, base_offset: i64) -> Result<Self> {
        Self::each(|role| folder.open_or_make(base_offset, role))
    }

    fn each(open: impl Fn(FileRole) -> Result<Box<dyn File>>) -> Result<Self> {
        let offset = open(FileRole::OffsetIndex)?;
        Ok(TailFiles { offset, time: open(FileRole::TimeIndex)? })
    }
}

/// The offset and the time index of the segment that is written to.
#[derive(Debug)]
pub struct IndexTails {
    base_offset: i64,
    offset: IndexTail<{ offset::ENTRY_SIZE }>,
    time: IndexTail<{ time::ENTRY_SIZE }>,
    last_offset: i64,
    last_time: TimeEntry,
}

/// Which entries stay when a log is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexCut {
    pub(super) offset_count: u32,
    last_offset: i64,
    pub(super) time_count: u32,
    pub(super) last_time: TimeEntry,
    /// Where the search for a larger timestamp than the last entry's begins.
    pub(super) largest_from: u64,
}

impl IndexTails {
    /// The tails of two files whose entries are all valid. The files get their full length, as they
    /// have while a segment is active.
    ///
    /// # Errors
    /// What the files say: then they have the length that they had, if that can be had.
    pub fn open(base_offset: i64, files: &TailFiles, max_size_bytes: u32) -> Result<Self> {
        let (offset_file, time_file) = (&*files.offset, &*files.time);
        let (offset_count, last) = last_entry(offset_file, offset::ENTRY_SIZE)?;
        let last_offset = last.map_or(base_offset, |entry| relative(base_offset, &entry, 0));
        let (time_count, last) = last_entry(time_file, time::ENTRY_SIZE)?;
        let last_time = last.map_or(none(base_offset), |entry| TimeEntry {
            timestamp_ms: bytes::get_i64(&entry, 0).unwrap_or(NO_TIMESTAMP),
            offset: relative(base_offset, &entry, 8),
        });
        let mut offset = IndexTail::open(offset_file, offset_count, max_size_bytes)?;
        let time = IndexTail::open(time_file, time_count, max_size_bytes).inspect_err(|_| {
            // The zeros behind them would be read as entries.
            let _ = offset.set_file_size(offset_file, offset_count);
        })?;
        Ok(IndexTails { base_offset, offset, time, last_offset, last_time })
    }

    /// The last entry of the time index; timestamp -1 at the base offset when there is none.
    pub(super) fn last_time(&self) -> TimeEntry {
        self.last_time
    }

    /// Entries in the files: of the offset index and of the time index.
    pub(super) fn written(&self) -> (u32, u32) {
        (self.offset.written(), self.time.written())
    }

    /// Whether the segment must be rolled before another entry is added.
    pub(super) fn is_full(&self) -> bool {
        // spec: indexes 1.3. The last slot of the time index is kept for roll and close.
        self.offset_is_full() || self.time_is_full()
    }

    /// Whether it is not full after so many more entries either.
    pub(super) fn has_room(&self, entries: usize) -> bool {
        let more = u32::try_from(entries).unwrap_or(u32::MAX);
        let after = |count: u32| count.saturating_add(more);
        after(self.offset.count()) < self.offset.max_count
            && after(self.time.count()).saturating_add(1) < self.time.max_count
    }

    fn offset_is_full(&self) -> bool {
        self.offset.count() >= self.offset.max_count
    }

    fn time_is_full(&self) -> bool {
        self.time.count().saturating_add(1) >= self.time.max_count
    }

    /// Adds the entries of one batch: its last offset at its position, and the largest timestamp
    /// so far. An index that is full, or whose file already goes further, stays as it is: look-ups
    /// scan a little further then.
    pub fn push(&mut self, last_offset: i64, position: u32, largest: TimeEntry) {
        // spec: segments 3.3
        let rises = self.offset.count() == 0 || last_offset > self.last_offset;
        let fits = is_addressable(self.base_offset, last_offset);
        if rises && fits && !self.offset_is_full() {
            let entry = u64::from(self.relative(last_offset)) << 32 | u64::from(position);
            self.offset.push(entry.to_be_bytes());
            self.last_offset = last_offset;
        }
        if !self.time_is_full() {
            self.push_time(largest);
        }
    }

    /// Whether so many entries have gathered that they are to be written.
    #[must_use]
    pub fn must_write_out(&self) -> bool {
        self.offset.pending.len() >= PENDING_ENTRIES_MAX * offset::ENTRY_SIZE
    }

    /// Whether entries have gathered.
    pub(super) fn has_gathered(&self) -> bool {
        !self.offset.pending.is_empty() || !self.time.pending.is_empty()
    }

    /// The offset of the first gathered entry whose position is `target` or behind it.
    pub(super) fn gathered_from(&self, target: i64) -> Option<i64> {
        let entries = self.offset.pending.chunks_exact(offset::ENTRY_SIZE);
        let position = |entry: &[u8]| bytes::get_i32(entry, 4).map_or(i64::MAX, i64::from);
        // Kafka quirk: the first entry of an index never counts as equal.
        let is_first = |slot: usize| slot == 0 && self.offset.written == 0;
        let reaches = |(slot, entry): &(usize, &[u8])| {
            position(entry) > target || position(entry) == target && !is_first(*slot)
        };
        let (_, entry) = entries.enumerate().find(reaches)?;
        Some(relative(self.base_offset, entry, 0))
    }

    fn push_time(&mut self, largest: TimeEntry) {
        // spec: indexes 3.2
        let goes_back = self.time.count() > 0 && largest.offset < self.last_time.offset;
        if largest.timestamp_ms <= self.last_time.timestamp_ms
            || goes_back
            || !is_addressable(self.base_offset, largest.offset)
        {
            return;
        }
        let mut entry = [0; time::ENTRY_SIZE];
        let (timestamp, offset) = entry.split_at_mut(8);
        timestamp.copy_from_slice(&largest.timestamp_ms.to_be_bytes());
        offset.copy_from_slice(&self.relative(largest.offset).to_be_bytes());
        self.time.push(entry);
        self.last_time = largest;
    }

    /// Writes what has gathered.
    ///
    /// # Errors
    /// What the files say; nothing is lost.
    pub fn write_out(&mut self, files: &TailFiles) -> Result<()> {
        self.offset.write_out(&*files.offset)?;
        self.time.write_out(&*files.time)
    }

    /// Writes what has gathered and the entry of the largest timestamp, and cuts the files to
    /// their entries, as they are once the segment is not written to any more.
    pub(super) fn finish(&mut self, files: &TailFiles, largest: Option<TimeEntry>) -> Result<()> {
        // spec: segments 3.7, onBecomeInactive. The last slot was kept for this entry.
        if let Some(largest) = largest
            && self.time.count() < self.time.max_count
        {
            self.push_time(largest);
        }
        self.write_out(files)?;
        self.offset.set_file_size(&*files.offset, self.offset.written)?;
        self.time.set_file_size(&*files.time, self.time.written)
    }

    /// Which entries stay when the log is cut at `offset`. What has gathered is written; nothing
    /// else changes.
    pub(super) fn cut(&mut self, files: &TailFiles, offset: i64) -> Result<IndexCut> {
        self.write_out(files)?;
        let offsets = self.offset.read(&*files.offset)?;
        let entries = OffsetEntries::new(&offsets, self.base_offset);
        let offset_count = entries.count_below(offset);
        let last_offset = offset_count.checked_sub(1).and_then(|slot| entries.get(slot));
        let times = self.time.read(&*files.time)?;
        let time_entries = TimeEntries::new(&times, self.base_offset);
        let time_count = time_entries.count_below(offset);
        let last_time = time_count.checked_sub(1).and_then(|slot| time_entries.get(slot));
        let last_time = last_time.unwrap_or(none(self.base_offset));
        let kept = offsets.get(..offset_count * offset::ENTRY_SIZE).unwrap_or_default();
        let from = OffsetEntries::new(kept, self.base_offset).lookup(last_time.offset);
        Ok(IndexCut {
            offset_count: u32::try_from(offset_count).unwrap_or(u32::MAX),
            last_offset: last_offset.map_or(self.base_offset, |entry| entry.offset),
            time_count: u32::try_from(time_count).unwrap_or(u32::MAX),
            last_time,
            largest_from: u64::try_from(from.position).unwrap_or(0),
        })
    }

    /// Drops the other entries.
    pub(super) fn keep(&mut self, cut: &IndexCut) {
        self.offset.keep(cut.offset_count);
        self.last_offset = cut.last_offset;
        self.time.keep(cut.time_count);
        self.last_time = cut.last_time;
    }

    /// Cuts the files to their entries, so that what was dropped reads as zeros, and gives them
    /// their full length again.
    pub(super) fn cut_files(&mut self, files: &TailFiles, max_size_bytes: u32) -> Result<()> {
        self.offset.cut_file(&*files.offset, max_size_bytes)?;
        self.time.cut_file(&*files.time, max_size_bytes)
    }

    fn relative(&self, offset: i64) -> u32 {
        u32::try_from(offset.wrapping_sub(self.base_offset)).unwrap_or(u32::MAX)
    }
}

fn none(base_offset: i64) -> TimeEntry {
    TimeEntry { timestamp_ms: NO_TIMESTAMP, offset: base_offset }
}

/// How many whole entries a file has, and the last of them.
fn last_entry(file: &dyn File, entry_size: usize) -> Result<(u32, Option<Vec<u8>>)> {
    // spec: indexes 1.2. Every slot up to the end of the file counts.
    let size = u64::try_from(entry_size).unwrap_or(u64::MAX);
    let count = u32::try_from(file.metadata()?.size_bytes / size).unwrap_or(u32::MAX);
    let Some(slot) = count.checked_sub(1) else { return Ok((0, None)) };
    let mut entry = vec![0; entry_size];
    let read = file.read_at(&mut entry, u64::from(slot).saturating_mul(size))?;
    Ok(if read == entry_size { (count, Some(entry)) } else { (0, None) })
}

fn relative(base_offset: i64, entry: &[u8], at: usize) -> i64 {
    base_offset.wrapping_add(i64::from(bytes::get_i32(entry, at).unwrap_or(0)))
}
