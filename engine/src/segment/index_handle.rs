//! How does a host use an offset or time index by itself, without the log around it?
//!
//! As Kafka uses its own: it opens a file, looks up, appends, cuts, resizes and lets go, and may
//! rename the file at any time. So no descriptor is kept and no path: what touches the file is
//! given the path each time. The entries stand in memory, where nothing that happens to the file
//! can reach a look-up; appended ones go to the file with a flush or a resize.

use std::path::Path;
use std::sync::PoisonError;

use crate::index::live::{LiveEntries, LiveEntry};
use crate::index::{OffsetEntry, TimeEntry, entries::End, offset, time};
use crate::io::{File, OpenMode, Storage};
use crate::sync::atomic::{AtomicI64, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::{Error, Kind, Result, units};

/// Entries that are encoded and written in one piece.
const WRITE_ENTRIES: u32 = 8192;

/// Bytes of a file that are read in one piece, so that memory follows what is really there.
const READ_SIZE: usize = 1 << 20;

/// The longest file, in bytes: Kafka maps no longer one.
const FILE_SIZE_MAX: u64 = 0x7FFF_FFFF;

/// How an index is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOptions {
    /// The offset of the segment.
    pub base_offset: i64,
    /// The bytes that a file gets that is made now; an existing one keeps its length.
    pub max_size_bytes: u32,
    /// Whether it is written to. Else a file that is missing is not made.
    pub is_writable: bool,
}

/// What a host may look at without a call; each number as it is at that moment, in its place for as
/// long as the handle lives.
#[derive(Debug, Default)]
#[repr(C)]
pub struct IndexCounters {
    /// Entries that there are.
    pub entry_count: AtomicI64,
    /// Entries that there may be.
    pub max_entries: AtomicI64,
    /// The length of the file as it was set or found last, in bytes.
    pub file_size_bytes: AtomicI64,
    /// The offset of the last entry, the base offset when there is none.
    pub last_offset: AtomicI64,
    /// The timestamp of the last entry of a time index, -1 when there is none.
    pub last_timestamp_ms: AtomicI64,
    /// 1 when it is closed.
    pub is_closed: AtomicI64,
}

/// An entry that a handle knows how to check.
pub trait HandleEntry: LiveEntry {
    #[doc(hidden)]
    fn sanity_check(ends: Option<(Self, Self)>, base_offset: i64, stray: usize) -> Result<()>;

    #[doc(hidden)]
    fn timestamp_ms(&self) -> i64;
}

impl HandleEntry for OffsetEntry {
    fn sanity_check(ends: Option<(Self, Self)>, base_offset: i64, stray: usize) -> Result<()> {
        offset::sanity_check(ends, base_offset, stray)
    }

    fn timestamp_ms(&self) -> i64 {
        units::NO_TIMESTAMP
    }
}

impl HandleEntry for TimeEntry {
    fn sanity_check(ends: Option<(Self, Self)>, base_offset: i64, stray: usize) -> Result<()> {
        time::sanity_check(ends, base_offset, stray)
    }

    fn timestamp_ms(&self) -> i64 {
        self.timestamp_ms
    }
}

/// An offset or time index by itself: any number of look-ups at once, and one that writes.
#[derive(Debug)]
pub struct IndexHandle<E: HandleEntry> {
    is_writable: bool,
    entries: LiveEntries<E>,
    counters: IndexCounters,
    writer: Mutex<Writer<E>>,
}

/// What is the writer's alone.
#[derive(Debug)]
struct Writer<E> {
    max_count: u32,
    /// The length of the file.
    file_size: u64,
    /// Entries that are in the file.
    written: u32,
    last: E,
}

impl<E: HandleEntry> IndexHandle<E> {
    const ENTRY_SIZE: usize = size_of::<E::Raw>();

    /// Opens the index at `path`. A file that is missing is made, full of zeros, and holds no
    /// entry; one that exists is taken to be full of entries up to its length.
    ///
    /// # Errors
    /// `InvalidArgument` for a new file that has no room for one entry or would be longer than
    /// Kafka maps, `NotFound` for a missing one that is not to be written to, `Limit` for one that
    /// is longer, and what the disk says.
    pub fn open(storage: &dyn Storage, path: &Path, options: &IndexOptions) -> Result<Self> {
        // spec: indexes 1.2
        let base_offset = options.base_offset;
        let (bytes, file_size) = match open_existing(storage, path, options.is_writable)? {
            Some(file) => {
                let bytes = read_all(&*file)?;
                let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                (bytes, size)
            }
            None => {
                let size = Self::rounded(path, options.max_size_bytes)?;
                if size == 0 {
                    let (size, wanted) = (options.max_size_bytes, Self::ENTRY_SIZE);
                    let message = format!("an index of {size} bytes cannot hold one of {wanted}");
                    return Err(Error::new(Kind::InvalidArgument, message).in_file(path));
                }
                storage.open(path, OpenMode::CreateNew)?.set_size(size)?;
                (Vec::new(), size)
            }
        };
        let entries = LiveEntries::<E>::new(&bytes, base_offset);
        let count = entries.count().unwrap_or(0);
        let last = entries.ends().flatten().map_or_else(|| E::none(base_offset), |(_, last)| last);
        let max_count = Self::room(file_size);
        let writer = Writer { max_count, file_size, written: count, last };
        let counters = IndexCounters::default();
        let is_writable = options.is_writable;
        let handle = IndexHandle { is_writable, entries, counters, writer: Mutex::new(writer) };
        handle.tell(&*handle.lock()?, count);
        Ok(handle)
    }

    /// What a host may look at without a call.
    #[must_use]
    pub fn counters(&self) -> &IndexCounters {
        &self.counters
    }

    /// The offset of the segment.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.entries.base_offset()
    }

    /// The last entry whose offset, or timestamp, is at most `key`; what stands for one where there
    /// is none. `None` when the index is closed.
    #[inline]
    #[must_use]
    pub fn lookup(&self, key: i64) -> Option<E> {
        self.entries.lookup(key)
    }

    /// The entry in a slot; an `OutOfRange` error behind the last.
    pub fn entry(&self, slot: usize) -> Result<E> {
        self.entries.get(slot).ok_or_else(closed)?.ok_or_else(|| {
            let message = format!("there is no entry {slot} in the index");
            Error::new(Kind::OutOfRange, message)
        })
    }

    /// Removes every entry at or above `offset`. The file is not touched.
    pub fn truncate_to(&self, offset: i64) -> Result<()> {
        let mut writer = self.write()?;
        let kept = self.entries.count_below(offset);
        self.entries.keep(kept);
        writer.written = writer.written.min(kept);
        writer.last = self.last();
        self.tell(&writer, kept);
        Ok(())
    }

    /// Gives the file this length, rounded down to whole entries, and writes what was appended;
    /// says whether the length changes. A file that is missing is made.
    ///
    /// # Errors
    /// `InvalidArgument` when the entries need more or when Kafka would not map as much, and what
    /// the disk says.
    pub fn resize(&self, storage: &dyn Storage, path: &Path, size_bytes: u32) -> Result<bool> {
        // spec: indexes 1.4
        let mut writer = self.open_writer()?;
        self.resize_to(&mut writer, storage, path, Self::rounded(path, size_bytes)?)
    }

    /// Cuts the file to its entries.
    pub fn trim(&self, storage: &dyn Storage, path: &Path) -> Result<bool> {
        let mut writer = self.open_writer()?;
        let size = Self::size_of_entries(self.count());
        self.resize_to(&mut writer, storage, path, size)
    }

    /// Writes what was appended, and makes the file durable. `NotFound` when it is not at `path`:
    /// nothing is lost, and the call may be repeated with another path. An index that is only read
    /// has nothing to flush.
    pub fn flush(&self, storage: &dyn Storage, path: &Path) -> Result<()> {
        let mut writer = self.open_writer()?;
        if !self.is_writable {
            return Ok(());
        }
        let file = storage.open(path, OpenMode::ReadWrite)?;
        self.write_out(&mut writer, &*file)?;
        // What a failed sync has not made durable may be gone: all is written again.
        file.sync().inspect_err(|_| writer.written = 0)
    }

    /// Kafka's own check, which looks at the ends and the length only.
    pub fn sanity_check(&self) -> Result<()> {
        let ends = self.entries.ends().ok_or_else(closed)?;
        let size = self.counters.file_size_bytes.load(Ordering::Relaxed);
        let stray = usize::try_from(size).unwrap_or(0) % Self::ENTRY_SIZE;
        E::sanity_check(ends, self.base_offset(), stray)
    }

    /// Lets go of the index once whoever is writing is done: every call gives `Closed` from now on.
    /// What was not flushed is not written.
    pub fn close(&self) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.entries.close();
        self.counters.is_closed.store(1, Ordering::Release);
    }

    fn lock(&self) -> Result<MutexGuard<'_, Writer<E>>> {
        match self.writer.try_lock() {
            Ok(writer) => Ok(writer),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => {
                let message = "another thread is writing to this index";
                Err(Error::new(Kind::Conflict, message))
            }
        }
    }

    fn open_writer(&self) -> Result<MutexGuard<'_, Writer<E>>> {
        let writer = self.lock()?;
        match self.entries.count() {
            Some(_) => Ok(writer),
            None => Err(closed()),
        }
    }

    fn write(&self) -> Result<MutexGuard<'_, Writer<E>>> {
        let writer = self.open_writer()?;
        self.check_writable().map(|()| writer)
    }

    fn check_writable(&self) -> Result<()> {
        match self.is_writable {
            true => Ok(()),
            false => Err(Error::new(Kind::Conflict, "the index was opened for reading")),
        }
    }

    fn count(&self) -> u32 {
        self.entries.count().unwrap_or(0)
    }

    fn last(&self) -> E {
        let ends = self.entries.ends().flatten();
        ends.map_or_else(|| E::none(self.base_offset()), |(_, last)| last)
    }

    fn end(&self, writer: &Writer<E>) -> End<E> {
        let wide = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let (count, max_count) = (wide(self.count()), wide(writer.max_count));
        End { base_offset: self.base_offset(), count, max_count, last: writer.last }
    }

    fn push(&self, writer: &mut Writer<E>, raw: &E::Raw) -> Result<()> {
        if !self.entries.push(raw) {
            return Err(Error::new(Kind::Limit, "an index of more than 2^31 entries"));
        }
        writer.last = E::decode(raw, self.base_offset());
        self.tell(writer, self.count());
        Ok(())
    }

    fn tell(&self, writer: &Writer<E>, count: u32) {
        let counters = &self.counters;
        counters.entry_count.store(i64::from(count), Ordering::Release);
        counters.max_entries.store(i64::from(writer.max_count), Ordering::Relaxed);
        let file_size = i64::try_from(writer.file_size).unwrap_or(i64::MAX);
        counters.file_size_bytes.store(file_size, Ordering::Relaxed);
        counters.last_offset.store(writer.last.offset(), Ordering::Relaxed);
        counters.last_timestamp_ms.store(writer.last.timestamp_ms(), Ordering::Relaxed);
    }

    fn resize_to(
        &self,
        writer: &mut Writer<E>,
        storage: &dyn Storage,
        path: &Path,
        size: u64,
    ) -> Result<bool> {
        if writer.file_size == size && writer.written == self.count() {
            return Ok(false);
        }
        self.check_writable()?;
        let count = self.count();
        if size < Self::size_of_entries(count) {
            let message = format!("{size} bytes cannot hold the {count} entries there are");
            return Err(Error::new(Kind::InvalidArgument, message).in_file(path));
        }
        let file = match storage.open(path, OpenMode::ReadWrite) {
            Err(error) if error.kind() == Kind::NotFound => {
                storage.open(path, OpenMode::CreateNew)?
            }
            opened => opened?,
        };
        self.write_out(writer, &*file)?;
        file.set_size(size)?;
        let is_changed = writer.file_size != size;
        writer.file_size = size;
        writer.max_count = Self::room(size);
        self.tell(writer, count);
        Ok(is_changed)
    }

    /// Writes the entries that the file lacks: those that were appended, and those that somebody
    /// cut off.
    fn write_out(&self, writer: &mut Writer<E>, file: &dyn File) -> Result<()> {
        let there = Self::room(file.metadata()?.size_bytes);
        writer.written = writer.written.min(there);
        while writer.written < self.count() {
            let bytes = self.entries.bytes(writer.written, WRITE_ENTRIES);
            file.write_at(&bytes, Self::size_of_entries(writer.written))?;
            writer.written = writer.written.saturating_add(WRITE_ENTRIES).min(self.count());
        }
        Ok(())
    }

    fn entry_size() -> u64 {
        u64::try_from(Self::ENTRY_SIZE).unwrap_or(u64::MAX)
    }

    /// The length of a file that a host asks for, in whole entries.
    fn rounded(path: &Path, size_bytes: u32) -> Result<u64> {
        let size = u64::from(size_bytes);
        if size > FILE_SIZE_MAX {
            let message = format!("an index of {size} bytes is longer than {FILE_SIZE_MAX}");
            return Err(Error::new(Kind::InvalidArgument, message).in_file(path));
        }
        Ok(size - size % Self::entry_size())
    }

    fn room(size_bytes: u64) -> u32 {
        u32::try_from(size_bytes / Self::entry_size()).unwrap_or(u32::MAX)
    }

    fn size_of_entries(count: u32) -> u64 {
        u64::from(count).saturating_mul(Self::entry_size())
    }
}

impl IndexHandle<OffsetEntry> {
    /// Appends an entry, as [`OffsetIndexBuilder::append`](crate::index::OffsetIndexBuilder) does.
    pub fn append(&self, offset: i64, position: i32) -> Result<()> {
        let mut writer = self.write()?;
        let raw = self.end(&writer).entry(offset, position)?;
        self.push(&mut writer, &raw)
    }

    /// As [`OffsetEntries::fetch_upper_bound_offset`](crate::index::OffsetEntries) says; `None`
    /// when the index is closed.
    #[must_use]
    pub fn fetch_upper_bound_offset(
        &self,
        position: i32,
        size_bytes: i32,
    ) -> Option<Option<OffsetEntry>> {
        self.entries.fetch_upper_bound_offset(position, size_bytes)
    }
}

impl IndexHandle<TimeEntry> {
    /// Appends an entry if it says something new, as
    /// [`TimeIndexBuilder::maybe_append`](crate::index::TimeIndexBuilder) does.
    pub fn maybe_append(
        &self,
        timestamp_ms: i64,
        offset: i64,
        skip_full_check: bool,
    ) -> Result<bool> {
        let mut writer = self.write()?;
        match self.end(&writer).entry(timestamp_ms, offset, skip_full_check)? {
            Some(raw) => self.push(&mut writer, &raw).map(|()| true),
            None => Ok(false),
        }
    }
}

/// The error of a closed handle.
pub(super) fn closed() -> Error {
    Error::new(Kind::Closed, "the index is closed")
}

/// Opens a file that is there; `None` for a missing one that may be made.
pub(super) fn open_existing(
    storage: &dyn Storage,
    path: &Path,
    is_writable: bool,
) -> Result<Option<Box<dyn File>>> {
    let mode = if is_writable { OpenMode::ReadWrite } else { OpenMode::Read };
    match storage.open(path, mode) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == Kind::NotFound && is_writable => Ok(None),
        Err(error) => Err(error),
    }
}

/// All bytes of a file, which may be cut meanwhile.
pub(super) fn read_all(file: &dyn File) -> Result<Vec<u8>> {
    let size = file.metadata()?.size_bytes;
    if size > FILE_SIZE_MAX {
        let message = format!("an index of {size} bytes is longer than one can be");
        return Err(Error::new(Kind::Limit, message).in_file(file.path()));
    }
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    while bytes.len() < size {
        let at = bytes.len();
        bytes.resize(size.min(at + READ_SIZE), 0);
        let room = bytes.get_mut(at..).unwrap_or_default();
        let read = file.read_at(room, u64::try_from(at).unwrap_or(u64::MAX))?;
        if read < room.len() {
            bytes.truncate(at + read);
            break;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
