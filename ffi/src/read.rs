//! Reading: ranges of files with their leases, and copies.

use std::sync::Arc;

use engine::Kind;
use engine::index::AbortedTxn;
use engine::log::{FetchOptions, Fetched, FileRange, Isolation, Log, RangeLease};

use crate::error::{
    Failure, OK, Outcome, SHORT_BUFFER, SiltError, Status, fits, guard, guard_or, invalid,
};
use crate::log::{log_function, open_log};
use crate::many::poison_fetches;
use crate::memory::{
    columns_of, fill, items_of, items_of_mut, read_plain, u32_of, u64_of, write_plain,
};
use crate::types::{Aborted, Fetch, Range};

const MIN_ONE: u32 = 1;
const FIRST_INCOMPLETE: u32 = 1;

/// No bytes.
pub const NOTHING: Range = Range {
    fd: -1,
    flags: 0,
    position: 0,
    size_bytes: 0,
    base_offset: -1,
    segment_base_offset: -1,
    lease: 0,
    truncations: 0,
    aborted_count: 0,
};

/// Up to where a reader sees a log.
pub fn isolation_of(up_to: u32) -> Outcome<Isolation> {
    Ok(match up_to {
        0 => Isolation::LogEnd,
        1 => Isolation::HighWatermark,
        2 => Isolation::Committed,
        _ => return invalid("up_to is none of SILT_UP_TO_"),
    })
}

/// What a fetch asks for.
pub fn options(fetch: &Fetch) -> Outcome<FetchOptions> {
    let isolation = isolation_of(fetch.up_to)?;
    if fetch.flags & !MIN_ONE != 0 {
        return invalid("flags are none of SILT_FETCH_");
    }
    let min_one_message = fetch.flags & MIN_ONE != 0;
    Ok(FetchOptions { max_bytes: fetch.max_bytes, isolation, min_one_message })
}

/// Tells the aborted transactions that fit; whether that is all.
///
/// # Safety
/// The fetch is one of the header.
unsafe fn tell_aborted(fetch: &Fetch, aborted: &[AbortedTxn], range: &mut Range) -> Outcome<bool> {
    let capacity = if fetch.aborted.is_null() { 0 } else { u64::from(fetch.aborted_capacity) };
    // SAFETY: the caller's array.
    let slots = unsafe { items_of_mut(fetch.aborted, capacity)? };
    for (slot, txn) in slots.iter_mut().zip(aborted) {
        *slot = aborted_of(txn);
    }
    range.aborted_count = u32_of(aborted.len());
    Ok(fetch.aborted.is_null() || aborted.len() <= slots.len())
}

pub fn aborted_of(txn: &AbortedTxn) -> Aborted {
    let AbortedTxn { producer_id, first_offset, last_offset, .. } = *txn;
    Aborted { producer_id, first_offset, last_offset }
}

fn descriptor(range: &FileRange) -> Option<i32> {
    use std::os::fd::AsRawFd;
    range.file().descriptor().map(|file| file.as_raw_fd())
}

/// Tells what was found, with its lease, which the caller gives back; the status of it. `out` is
/// [`NOTHING`] before.
///
/// # Safety
/// The fetch is one of the header.
pub unsafe fn tell(fetch: &Fetch, fetched: Fetched, out: &mut Range) -> Outcome<Status> {
    let mut is_all = true;
    if let Some(aborted) = &fetched.aborted {
        // SAFETY: the caller's array.
        is_all = unsafe { tell_aborted(fetch, aborted, out)? };
    }
    out.base_offset = fetched.place.offset;
    out.segment_base_offset = fetched.place.segment_base_offset;
    out.position = fetched.place.position;
    out.flags = if fetched.first_entry_incomplete { FIRST_INCOMPLETE } else { 0 };
    if let Some(range) = fetched.range {
        let Some(fd) = descriptor(&range) else { return invalid("the file has no descriptor") };
        out.fd = fd;
        out.position = range.position();
        out.size_bytes = range.size_bytes();
        out.truncations = range.truncations();
        let address = Arc::into_raw(range.into_lease()).expose_provenance();
        out.lease = u64::try_from(address).unwrap_or(0);
    }
    Ok(if is_all { OK } else { SHORT_BUFFER })
}

/// # Safety
/// The fetch is one of the header.
unsafe fn locate(fetch: &Fetch, out: &mut Range) -> Outcome<Status> {
    // SAFETY: an object of the caller's.
    let object = unsafe { open_log(fetch.log)? };
    let fetched = object.log.locate(fetch.offset, &options(fetch)?)?;
    // SAFETY: the caller's fetch.
    unsafe { tell(fetch, fetched, out) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_locate(
    fetches: *const Fetch,
    count: u32,
    out: *mut Range,
    status: *mut Status,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's arrays.
        let (fetches, ranges, statuses) = unsafe { columns_of(fetches, count, out, status)? };
        for ((fetch, range), status) in fetches.iter().zip(ranges).zip(statuses) {
            *range = NOTHING;
            // SAFETY: an object and an array of the caller's.
            *status = unsafe { locate(fetch, range) }.unwrap_or_else(|failure| failure.status());
        }
        Ok(())
    };
    // SAFETY: the caller's fetches.
    let poison = || unsafe { poison_fetches(fetches, count) };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard_or(err, poison, body) }
}

/// The lease behind its number.
fn lease_at(lease: u64) -> *const RangeLease {
    std::ptr::with_exposed_provenance(usize::try_from(lease).unwrap_or(0))
}

/// Lets go of what a lease keeps open.
///
/// # Safety
/// It is the number of a range that was told, and is used no more.
pub unsafe fn release(lease: u64) {
    // SAFETY: the caller's promise.
    drop(unsafe { Arc::from_raw(lease_at(lease)) });
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_range_is_intact(range: *const Range) -> i32 {
    if !range.is_aligned() {
        return 0;
    }
    // SAFETY: the caller's struct, which is aligned, or NULL.
    let Some(range) = (unsafe { range.as_ref() }) else { return 0 };
    // SAFETY: a lease that was given and not released.
    let Some(lease) = (unsafe { lease_at(range.lease).as_ref() }) else { return 0 };
    i32::from(lease.truncations() == range.truncations)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_leases_release(
    leases: *const u64,
    count: u32,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's array.
        let leases = unsafe { items_of(leases, u64::from(count))? };
        for &lease in leases.iter().filter(|&&lease| lease != 0) {
            // SAFETY: it was given by `silt_locate` and is released once.
            unsafe { release(lease) };
        }
        Ok(())
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// Copies what a fetch gives; whether all its aborted transactions were told.
///
/// # Safety
/// The fetch is one of the header.
pub unsafe fn read(fetch: &Fetch, log: &Log, bytes: &mut [u8], out: &mut Range) -> Outcome<bool> {
    let found = log.read_into(fetch.offset, &options(fetch)?, bytes);
    let (fetched, size) = found.map_err(|error| match error.kind() {
        Kind::Limit => Failure::Call(SHORT_BUFFER, "the first batch is larger than the buffer"),
        _ => Failure::Engine(error),
    })?;
    *out = Range {
        flags: if fetched.first_entry_incomplete { FIRST_INCOMPLETE } else { 0 },
        size_bytes: u64_of(size),
        base_offset: fetched.place.offset,
        segment_base_offset: fetched.place.segment_base_offset,
        position: fetched.place.position,
        ..NOTHING
    };
    // SAFETY: the caller's promise.
    unsafe { tell_aborted(fetch, fetched.aborted.as_deref().unwrap_or_default(), out) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_log_read(
    fetch: *const Fetch,
    bytes: *mut u8,
    capacity: u64,
    out: *mut Range,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's struct.
        let fetch = &unsafe { read_plain(fetch)? };
        // SAFETY: the caller's bytes.
        let bytes = unsafe { items_of_mut(bytes, capacity)? };
        // SAFETY: an object of the caller's.
        let object = unsafe { open_log(fetch.log)? };
        let mut range = NOTHING;
        // SAFETY: the caller's array.
        let is_all = unsafe { read(fetch, &object.log, bytes, &mut range) };
        if matches!(is_all, Ok(_) | Err(Failure::Call(SHORT_BUFFER, _))) {
            // SAFETY: the caller's struct.
            unsafe { write_plain(out, range)? };
        }
        fits(is_all?, "not all aborted transactions fit")
    };
    // SAFETY: the caller's fetches.
    let poison = || unsafe { poison_fetches(fetch, 1) };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard_or(err, poison, body) }
}

log_function! {
    fn silt_log_aborted(
        from: i64,
        to: i64,
        out: *mut Aborted,
        capacity: u32,
        count: *mut u32
    ) |it| {
        let found = it.log.aborted_transactions(from, to)?;
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, found.iter().map(aborted_of)) }
    }
}
