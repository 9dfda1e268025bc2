//! Many logs in one call.

use engine::log::{
    AppendAs, AppendError, AppendInfo, AppendRequest, AppendScratch, FetchRequest, append_many,
    locate_many,
};

use crate::error::{Failure, OK, Outcome, SiltError, Status, guard_or, invalid};
use crate::handle::{poison, try_hold};
use crate::log::{LogObject, appended, leader_append, open_log, shrink};
use crate::memory::{Columns, columns_of, items_of, items_of_mut};
use crate::read::{NOTHING, options, tell};
use crate::types::{Append, AppendItem, AppendResult, Fetch, Range};

const FOLLOWER: u32 = 1;

/// Nothing appended.
const NONE: AppendResult = AppendResult {
    first_offset: -1,
    last_offset: -1,
    max_timestamp_ms: -1,
    log_append_time_ms: -1,
    log_start_offset: -1,
    size_bytes: 0,
    flags: 0,
    detail_code: 0,
};

/// How records are appended.
pub fn append_as(is_follower: bool, append: &Append) -> Outcome<AppendAs> {
    let Append { leader_epoch, now_ms, .. } = *append;
    match is_follower {
        true => Ok(AppendAs::Follower { leader_epoch, now_ms }),
        false => Ok(AppendAs::Leader(leader_append(append)?)),
    }
}

/// The numbers, rising, of the records at these addresses and of these sizes that share bytes with
/// others: they are changed in place.
pub fn overlapping(records: impl Iterator<Item = (usize, u64)>) -> Vec<usize> {
    let places = records.enumerate().filter(|(_, (_, size))| *size > 0);
    let mut places: Vec<(u64, u64, usize)> = places
        .filter_map(|(number, (address, size))| Some((u64::try_from(address).ok()?, size, number)))
        .collect();
    places.sort_unstable();
    let mut found = Vec::new();
    // What reaches furthest of those before.
    let (mut end, mut owner) = (0, 0);
    for (address, size, number) in places {
        if address < end {
            found.extend([owner, number]);
        }
        let its_end = address.saturating_add(size);
        if its_end > end {
            (end, owner) = (its_end, number);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// What an item appends to, and how.
///
/// # Safety
/// The log is an object of the caller's.
unsafe fn target<'a>(item: &AppendItem, verification: u64) -> Outcome<(&'a LogObject, AppendAs)> {
    // SAFETY: the caller's promise.
    let object = unsafe { open_log(item.log)? };
    if item.flags & !FOLLOWER != 0 {
        return invalid("flags are none of SILT_APPEND_");
    }
    let AppendItem { leader_epoch, now_ms, origin, transaction_version, .. } = *item;
    let append =
        Append { struct_size: 0, leader_epoch, now_ms, origin, transaction_version, verification };
    Ok((object, append_as(item.flags & FOLLOWER != 0, &append)?))
}

fn result(answer: Result<AppendInfo, AppendError>) -> (Status, AppendResult) {
    match answer {
        Ok(info) => {
            let told = appended(&info);
            let result = AppendResult {
                first_offset: told.first_offset,
                last_offset: told.last_offset,
                max_timestamp_ms: told.max_timestamp_ms,
                log_append_time_ms: told.log_append_time_ms,
                log_start_offset: told.log_start_offset,
                size_bytes: told.size_bytes,
                flags: told.flags,
                detail_code: 0,
            };
            (OK, result)
        }
        Err(error) => {
            let failure = Failure::from(error);
            let (detail_code, _) = failure.numbers();
            (failure.status(), AppendResult { detail_code, ..NONE })
        }
    }
}

/// Appends items, each with the number of its verification; where there is none for it, 0.
///
/// # Safety
/// The items are as the header says.
unsafe fn append_items(
    (items, results, statuses): Columns<'_, AppendItem, AppendResult>,
    verifications: &[u64],
) -> Outcome<()> {
    let records = items.iter().map(|item| (item.records.addr(), item.size_bytes));
    if !overlapping(records).is_empty() {
        return invalid("the records of two items share bytes");
    }
    let mut requests = Vec::with_capacity(items.len());
    let mut objects = Vec::with_capacity(items.len());
    let mut verifications = verifications.iter().copied();
    for ((item, result), status) in items.iter().zip(&mut *results).zip(&mut *statuses) {
        *result = NONE;
        let verification = verifications.next().unwrap_or(0);
        // SAFETY: an object of the caller's.
        let found = unsafe { target(item, verification) }.and_then(|found| {
            // SAFETY: the caller's bytes, which no other item has.
            Ok((found, unsafe { items_of_mut(item.records, item.size_bytes)? }))
        });
        match found {
            Ok(((object, append), records)) => {
                *status = OK;
                requests.push(AppendRequest { log: &object.log, records, append });
                objects.push(object);
            }
            Err(failure) => *status = failure.status(),
        }
    }
    let mut own = AppendScratch::default();
    let mut held = objects.first().and_then(|object| try_hold(&object.scratch));
    let scratch = held.as_deref_mut().unwrap_or(&mut own);
    let mut answers = append_many(&mut requests, scratch).into_iter();
    shrink(scratch);
    for (result_of, status) in results.iter_mut().zip(statuses) {
        if *status == OK
            && let Some(answer) = answers.next()
        {
            (*status, *result_of) = result(answer);
        }
    }
    Ok(())
}

/// Poisons the logs of items that a call panicked on.
///
/// # Safety
/// The items are as the header says.
unsafe fn poison_items(items: *const AppendItem, count: u32) {
    // SAFETY: the caller's array.
    for item in unsafe { items_of(items, u64::from(count)) }.into_iter().flatten() {
        // SAFETY: an object of the caller's.
        unsafe { poison(item.log) };
    }
}

/// Poisons the logs of fetches that a call panicked on.
///
/// # Safety
/// The fetches are as the header says.
pub unsafe fn poison_fetches(fetches: *const Fetch, count: u32) {
    // SAFETY: the caller's array.
    for fetch in unsafe { items_of(fetches, u64::from(count)) }.into_iter().flatten() {
        // SAFETY: an object of the caller's.
        unsafe { poison(fetch.log) };
    }
}

/// Appends the caller's items, with their verifications where there are some.
///
/// # Safety
/// The arrays and the struct are as the header says.
unsafe fn append_all(
    items: *const AppendItem,
    verifications: Option<*const u64>,
    count: u32,
    (out, status): (*mut AppendResult, *mut Status),
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's arrays.
        let columns = unsafe { columns_of(items, count, out, status)? };
        let verifications = match verifications {
            // SAFETY: the caller's array.
            Some(verifications) => unsafe { items_of(verifications, u64::from(count))? },
            None => &[],
        };
        // SAFETY: the caller's items.
        unsafe { append_items(columns, verifications) }
    };
    // SAFETY: the caller's items.
    let poison = || unsafe { poison_items(items, count) };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard_or(err, poison, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_append_many(
    items: *const AppendItem,
    count: u32,
    out: *mut AppendResult,
    status: *mut Status,
    err: *mut SiltError,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { append_all(items, None, count, (out, status), err) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_append_many_verified(
    items: *const AppendItem,
    verifications: *const u64,
    count: u32,
    out: *mut AppendResult,
    status: *mut Status,
    err: *mut SiltError,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { append_all(items, Some(verifications), count, (out, status), err) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_locate_within(
    fetches: *const Fetch,
    count: u32,
    max_bytes: u64,
    out: *mut Range,
    status: *mut Status,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's arrays.
        let (fetches, ranges, statuses) = unsafe { columns_of(fetches, count, out, status)? };
        let mut requests: Vec<FetchRequest<'_>> = Vec::with_capacity(fetches.len());
        for ((fetch, range), status) in fetches.iter().zip(&mut *ranges).zip(&mut *statuses) {
            *range = NOTHING;
            // SAFETY: an object of the caller's.
            let found = unsafe { open_log(fetch.log) };
            *status = match found.and_then(|object| Ok((object, options(fetch)?))) {
                Ok((object, options)) => {
                    requests.push(FetchRequest { log: &object.log, offset: fetch.offset, options });
                    OK
                }
                Err(failure) => failure.status(),
            };
        }
        let mut answers = Vec::new();
        locate_many(&requests, max_bytes, &mut answers);
        let mut answers = answers.into_iter();
        for ((fetch, range), status) in fetches.iter().zip(ranges).zip(statuses) {
            if *status != OK {
                continue;
            }
            let Some(answer) = answers.next() else { continue };
            let told = answer.map_err(Failure::from).and_then(|fetched| {
                // SAFETY: the caller's array.
                unsafe { tell(fetch, fetched, range) }
            });
            *status = told.unwrap_or_else(|failure| failure.status());
        }
        Ok(())
    };
    // SAFETY: the caller's fetches.
    let poison = || unsafe { poison_fetches(fetches, count) };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard_or(err, poison, body) }
}
