//! Indexes by themselves.

use std::ffi::c_char;
use std::path::Path;

use engine::index::{AbortedTxn, OffsetEntry, TimeEntry};
use engine::io::Disk;
use engine::segment::index_handle::{IndexCounters, IndexHandle, IndexOptions};
use engine::segment::txn_index_handle::TxnIndexHandle;
use engine::{Error, Kind, Result};

use crate::error::{
    CLOSED, CORRUPT, Failure, INVALID_ARGUMENT, NOT_FOUND, Outcome, SiltError, Status, guard,
    invalid,
};
use crate::handle::{Handle, Object, close, object_function, on};
use crate::memory::{check_place, fill, path, read_plain, write_if_wanted, write_plain};
use crate::types::{AbortedEntry, IndexEntry};

/// What is behind a `silt_index_t`.
pub struct IndexObject {
    disk: Disk,
    index: Index,
}

enum Index {
    Offset(IndexHandle<OffsetEntry>),
    Time(IndexHandle<TimeEntry>),
    Txn(TxnIndexHandle),
}

impl Object for IndexObject {
    const MAGIC: u64 = 0x7369_6c74_5f69_6478;
}

const READ_ONLY: u32 = 1;

/// Does the same with an offset and with a time index, and something else with a transaction index.
macro_rules! by_kind {
    ($index:expr, $it:ident => $do:expr, $txn:ident => $other:expr) => {
        match $index {
            Index::Offset($it) => $do,
            Index::Time($it) => $do,
            Index::Txn($txn) => $other,
        }
    };
}

fn wrong_kind<T>() -> Outcome<T> {
    invalid("the index is of another kind")
}

impl IndexObject {
    fn open(path: &Path, kind: u32, options: &IndexOptions) -> Outcome<Self> {
        let disk = Disk::new();
        let index = match kind {
            0 => Index::Offset(IndexHandle::open(&disk, path, options)?),
            1 => Index::Time(IndexHandle::open(&disk, path, options)?),
            2 => {
                let (base, is_writable) = (options.base_offset, options.is_writable);
                Index::Txn(TxnIndexHandle::open(&disk, path, base, is_writable)?)
            }
            _ => return invalid("kind is none of SILT_INDEX_"),
        };
        Ok(IndexObject { disk, index })
    }

    fn offset(&self) -> Outcome<&IndexHandle<OffsetEntry>> {
        match &self.index {
            Index::Offset(index) => Ok(index),
            _ => wrong_kind(),
        }
    }

    fn time(&self) -> Outcome<&IndexHandle<TimeEntry>> {
        match &self.index {
            Index::Time(index) => Ok(index),
            _ => wrong_kind(),
        }
    }

    fn txn(&self) -> Outcome<&TxnIndexHandle> {
        match &self.index {
            Index::Txn(index) => Ok(index),
            _ => wrong_kind(),
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_index_open(
    path_of_file: *const c_char,
    kind: u32,
    base_offset: i64,
    max_size_bytes: u32,
    flags: u32,
    index: *mut *mut Handle<IndexObject>,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's text.
        let path = unsafe { path(path_of_file)? };
        if flags & !READ_ONLY != 0 {
            return invalid("flags are none of SILT_INDEX_");
        }
        check_place(index, "the place for the index is NULL or not aligned")?;
        let is_writable = flags & READ_ONLY == 0;
        let options = IndexOptions { base_offset, max_size_bytes, is_writable };
        let object = IndexObject::open(path, kind, &options)?;
        // SAFETY: not NULL, and aligned.
        unsafe { write_plain(index, Handle::give(object)) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_index_close(index: *mut Handle<IndexObject>) {
    // SAFETY: an object of the caller's, which it gives back.
    unsafe { close(index) };
}

object_function! {
    fn silt_index_shut(index: IndexObject) |it| {
        by_kind!(&it.index, index => index.close(), index => index.close());
        Ok(())
    }
}

/// A look-up whose answer is one number: what it finds, or a status.
///
/// # Safety
/// That of [`on`].
unsafe fn packed(
    index: *const Handle<IndexObject>,
    look: impl FnOnce(&IndexHandle<OffsetEntry>) -> i64,
) -> i64 {
    let mut found = i64::from(INVALID_ARGUMENT);
    let body = |it: &IndexObject| {
        found = look(it.offset()?);
        Ok(())
    };
    // SAFETY: the caller's promise; nobody is told.
    match unsafe { on(index, std::ptr::null_mut(), body) } {
        0 => found,
        status => i64::from(status),
    }
}

/// An entry in one number.
#[inline]
fn pack(base_offset: i64, entry: OffsetEntry) -> i64 {
    let relative = entry.offset.wrapping_sub(base_offset);
    // What is negative is in a damaged file alone.
    match relative < 0 || entry.position < 0 {
        true => i64::from(CORRUPT),
        false => relative << 32 | i64::from(entry.position),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_index_lookup(index: *const Handle<IndexObject>, offset: i64) -> i64 {
    let look = |it: &IndexHandle<OffsetEntry>| match it.lookup(offset) {
        Some(entry) => pack(it.base_offset(), entry),
        None => i64::from(CLOSED),
    };
    // SAFETY: an object of the caller's.
    unsafe { packed(index, look) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_index_upper_bound(
    index: *const Handle<IndexObject>,
    position: i32,
    size_bytes: i32,
) -> i64 {
    let look =
        |it: &IndexHandle<OffsetEntry>| match it.fetch_upper_bound_offset(position, size_bytes) {
            Some(Some(entry)) => pack(it.base_offset(), entry),
            Some(None) => i64::from(NOT_FOUND),
            None => i64::from(CLOSED),
        };
    // SAFETY: an object of the caller's.
    unsafe { packed(index, look) }
}

fn of_offset(entry: OffsetEntry) -> IndexEntry {
    let OffsetEntry { offset, position } = entry;
    IndexEntry { offset, timestamp_ms: -1, position, reserved: 0 }
}

fn of_time(entry: TimeEntry) -> IndexEntry {
    let TimeEntry { timestamp_ms, offset } = entry;
    IndexEntry { offset, timestamp_ms, position: -1, reserved: 0 }
}

fn closed() -> Failure {
    Failure::Call(CLOSED, "the index is closed")
}

object_function! {
    fn silt_index_lookup_time(index: IndexObject, timestamp_ms: i64, out: *mut IndexEntry) |it| {
        let found = it.time()?.lookup(timestamp_ms).ok_or_else(closed)?;
        // SAFETY: the caller's struct.
        unsafe { write_plain(out, of_time(found)) }
    }
}

object_function! {
    fn silt_index_entry(index: IndexObject, slot: u32, out: *mut IndexEntry) |it| {
        let slot = usize::try_from(slot).unwrap_or(usize::MAX);
        let found = match &it.index {
            Index::Offset(index) => of_offset(index.entry(slot)?),
            Index::Time(index) => of_time(index.entry(slot)?),
            Index::Txn(_) => return wrong_kind(),
        };
        // SAFETY: the caller's struct.
        unsafe { write_plain(out, found) }
    }
}

object_function! {
    fn silt_index_append(index: IndexObject, offset: i64, position: i32) |it| {
        Ok(it.offset()?.append(offset, position)?)
    }
}

object_function! {
    fn silt_index_append_time(
        index: IndexObject,
        timestamp_ms: i64,
        offset: i64,
        is_forced: i32,
        appended: *mut i32
    ) |it| {
        let is_new = it.time()?.maybe_append(timestamp_ms, offset, is_forced != 0)?;
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(appended, i32::from(is_new)) }
    }
}

object_function! {
    fn silt_index_append_aborted(
        index: IndexObject,
        path_now: *const c_char,
        entry: *const AbortedEntry
    ) |it| {
        // SAFETY: the caller's text.
        let path = unsafe { path(path_now)? };
        // SAFETY: the caller's struct.
        let entry = unsafe { read_plain(entry)? };
        let txn = AbortedTxn {
            producer_id: entry.producer_id,
            first_offset: entry.first_offset,
            last_offset: entry.last_offset,
            last_stable_offset: entry.last_stable_offset,
        };
        Ok(it.txn()?.append(&it.disk, path, &txn)?)
    }
}

object_function! {
    fn silt_index_collect_aborted(
        index: IndexObject,
        from: i64,
        upper_bound: i64,
        out: *mut AbortedEntry,
        capacity: u32,
        count: *mut u32,
        is_complete: *mut i32
    ) |it| {
        let mut found = Vec::new();
        let is_all = it.txn()?.collect_aborted(from, upper_bound, &mut found)?;
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(is_complete, i32::from(is_all))? };
        let items = found.iter().map(|txn| AbortedEntry {
            producer_id: txn.producer_id,
            first_offset: txn.first_offset,
            last_offset: txn.last_offset,
            last_stable_offset: txn.last_stable_offset,
        });
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, items) }
    }
}

object_function! {
    fn silt_index_truncate_to(index: IndexObject, path_now: *const c_char, offset: i64) |it| {
        let cut = |index: &TxnIndexHandle| -> Outcome<()> {
            // SAFETY: the caller's text.
            let path = unsafe { path(path_now)? };
            Ok(index.truncate_to(&it.disk, path, offset)?)
        };
        by_kind!(&it.index, index => Ok(index.truncate_to(offset)?), index => cut(index))
    }
}

object_function! {
    fn silt_index_resize(
        index: IndexObject,
        path_now: *const c_char,
        size_bytes: u32,
        is_changed: *mut i32
    ) |it| {
        // SAFETY: the caller's text.
        let path = unsafe { path(path_now)? };
        let changed = match &it.index {
            Index::Offset(index) => index.resize(&it.disk, path, size_bytes)?,
            Index::Time(index) => index.resize(&it.disk, path, size_bytes)?,
            Index::Txn(_) => return wrong_kind(),
        };
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(is_changed, i32::from(changed)) }
    }
}

object_function! {
    fn silt_index_trim(index: IndexObject, path_now: *const c_char) |it| {
        // SAFETY: the caller's text.
        let path = unsafe { path(path_now)? };
        let (trim, disk) = (|index: &TxnIndexHandle| index.count().map(drop), &it.disk);
        Ok(by_kind!(&it.index, index => index.trim(disk, path).map(drop), index => trim(index))?)
    }
}

object_function! {
    fn silt_index_flush(index: IndexObject, path_now: *const c_char) |it| {
        // SAFETY: the caller's text.
        let path = unsafe { path(path_now)? };
        let disk = &it.disk;
        Ok(by_kind!(&it.index, index => index.flush(disk, path), index => index.flush(disk, path))?)
    }
}

object_function! {
    fn silt_index_sanity_check(index: IndexObject) |it| {
        Ok(by_kind!(&it.index, index => index.sanity_check(), index => index.sanity_check())?)
    }
}

object_function! {
    fn silt_index_counters(index: IndexObject, out: *mut *const IndexCounters) |it| {
        let none = |_: &TxnIndexHandle| -> Result<&IndexCounters> {
            let message = "a transaction index has no counters";
            Err(Error::new(Kind::InvalidArgument, message))
        };
        let counters: &IndexCounters =
            by_kind!(&it.index, index => index.counters(), index => none(index)?);
        // SAFETY: the caller's pointer.
        unsafe { write_plain(out, std::ptr::from_ref(counters)) }
    }
}

/// The layout of the struct that the engine has.
#[cfg(feature = "test")]
pub fn layout() -> String {
    use std::mem::offset_of;
    let fields = [
        ("entry_count", offset_of!(IndexCounters, entry_count)),
        ("max_entries", offset_of!(IndexCounters, max_entries)),
        ("file_size_bytes", offset_of!(IndexCounters, file_size_bytes)),
        ("last_offset", offset_of!(IndexCounters, last_offset)),
        ("last_timestamp_ms", offset_of!(IndexCounters, last_timestamp_ms)),
        ("is_closed", offset_of!(IndexCounters, is_closed)),
    ];
    let fields = fields.map(|(name, position)| format!("silt_index_counters_t.{name} {position}"));
    format!("silt_index_counters_t {}\n{}", size_of::<IndexCounters>(), fields.join("\n"))
}
