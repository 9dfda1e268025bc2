//! What could this machine do for a log that is written to and read? As in
//! [`limits`](crate::limits): the work that cannot be left out, in loops that believe what they
//! read.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;

use crc_fast::crc32_iscsi;

use crate::Result;

/// Bytes before the records of a batch.
const HEADER_SIZE: usize = 61;
/// Bytes of an entry of the offset and of the time index.
const OFFSET_ENTRY: usize = 8;
const TIME_ENTRY: usize = 12;
/// Bytes that are read of a log to find a batch.
const WINDOW_BYTES: usize = 4096;

/// Opens what batches hold, to see that it can be opened.
pub type Open<'a> = dyn FnMut(&[u8]) -> Result<usize> + 'a;

/// Checks every batch and opens its records.
///
/// # Errors
/// When a checksum is wrong.
pub fn check(batches: &[u8], open: &mut Open<'_>) -> Result<()> {
    let mut rest = batches;
    while let Some(size) = u32_at(rest, 8) {
        let (batch, behind) = rest.split_at_checked(usize::try_from(size)? + 12).ok_or("short")?;
        if Some(crc32_iscsi(batch.get(21..).ok_or("short")?)) != u32_at(batch, 17) {
            return Err("a batch is not what was written".into());
        }
        black_box(open(batch.get(HEADER_SIZE..).unwrap_or_default())?);
        rest = behind;
    }
    Ok(())
}

/// Looks at every record of a batch that is not compressed: its length is followed to the next.
///
/// # Errors
/// When there is no record where one should be.
pub fn walk_records(records: &[u8]) -> Result<usize> {
    let (mut rest, mut count) = (records, 0);
    while !rest.is_empty() {
        let (mut length, mut shift, mut used) = (0_u64, 0, 0);
        for byte in rest {
            length |= u64::from(byte & 0x7f) << shift;
            (shift, used) = (shift + 7, used + 1);
            if byte & 0x80 == 0 || shift > 28 {
                break;
            }
        }
        // Lengths are zigzag numbers, and not negative.
        let size = used + usize::try_from(length >> 1)?;
        rest = rest.get(size..).ok_or("a record that is cut off")?;
        count += 1;
    }
    Ok(count)
}

/// The key of the entry in a slot, and the number behind it.
fn offset_entry(index: &[u8], slot: usize) -> (u64, u32) {
    let entry = index.get(slot * OFFSET_ENTRY..).and_then(|rest| rest.first_chunk::<8>());
    let word = u64::from_be_bytes(*entry.unwrap_or(&[0; 8]));
    (word >> 32, u32::try_from(word & 0xffff_ffff).unwrap_or(0))
}

fn time_entry(index: &[u8], slot: usize) -> (u64, u32) {
    let entry = index.get(slot * TIME_ENTRY..).unwrap_or_default();
    let key = entry.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    (key, u32_at(entry, 8).unwrap_or(0))
}

/// The position that an offset index has for a relative offset.
#[must_use]
#[inline]
pub fn offset_lookup(index: &[u8], count: usize, target: u32) -> u32 {
    interpolate(count, u64::from(target), |slot| offset_entry(index, slot))
}

/// The relative offset that a time index has for a timestamp.
#[must_use]
#[inline]
pub fn time_lookup(index: &[u8], count: usize, target: u64) -> u32 {
    interpolate(count, target, |slot| time_entry(index, slot))
}

/// A binary search, which halves without a branch.
#[must_use]
#[inline]
pub fn offset_search(index: &[u8], count: usize, target: u32) -> u32 {
    let (mut low, mut left) = (0, count);
    while left > 1 {
        let half = left / 2;
        let is_below = offset_entry(index, low + half).0 <= u64::from(target);
        low = if is_below { low + half } else { low };
        left -= half;
    }
    offset_entry(index, low).1
}

/// Guesses by interpolation, gallops to a bracket and halves it.
#[inline]
fn interpolate(count: usize, target: u64, entry: impl Fn(usize) -> (u64, u32)) -> u32 {
    let last = count.saturating_sub(1);
    let ((first_key, first), (last_key, behind)) = (entry(0), entry(last));
    if target >= last_key {
        return behind;
    }
    if target < first_key {
        return first;
    }
    let slots = (target - first_key).saturating_mul(u64::try_from(last).unwrap_or(0));
    let mut guess = usize::try_from(slots / (last_key - first_key)).unwrap_or(0).min(last);
    let (mut low, mut high, mut step) = (0, last, 8);
    if entry(guess).0 <= target {
        low = guess;
        while guess + step < high {
            guess += step;
            if entry(guess).0 > target {
                high = guess;
                break;
            }
            low = guess;
            step *= 4;
        }
    } else {
        high = guess;
        while guess > step {
            guess -= step;
            if entry(guess).0 <= target {
                low = guess;
                break;
            }
            high = guess;
            step *= 4;
        }
    }
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if entry(middle).0 <= target {
            low = middle;
        } else {
            high = middle;
        }
    }
    entry(low).1
}

/// Finds the batch of an offset: the index in memory, one read of headers in the log, and more
/// where the batch lies further on.
///
/// # Errors
/// When the log cannot be read.
pub fn locate(log: &File, index: &[u8], offset: u32, size_bytes: u64) -> Result<u64> {
    let position = offset_lookup(index, index.len() / OFFSET_ENTRY, offset);
    seek(log, u64::from(position), size_bytes, |batch| last_offset(batch) >= u64::from(offset))
}

/// Finds the batch of an offset by an index and a log that are both in memory, as mapped files are.
///
/// # Errors
/// When there is none.
pub fn locate_mapped(log: &[u8], index: &[u8], offset: u32) -> Result<usize> {
    let mut position = usize::try_from(offset_lookup(index, index.len() / OFFSET_ENTRY, offset))?;
    while let Some(header) = log.get(position..position + HEADER_SIZE) {
        if last_offset(header) >= u64::from(offset) {
            return Ok(position);
        }
        position += usize::try_from(u32_at(header, 8).unwrap_or(0))? + 12;
    }
    Err("no batch has this offset".into())
}

/// Finds the first batch that is as late as `timestamp` or later, and looks at its first record:
/// both indexes in memory, one read of headers, and more where the batch lies further on.
///
/// # Errors
/// When the log cannot be read.
pub fn locate_time(
    log: &File,
    (offsets, times): (&[u8], &[u8]),
    timestamp: u64,
    size_bytes: u64,
) -> Result<u64> {
    let offset = time_lookup(times, times.len() / TIME_ENTRY, timestamp);
    let position = offset_lookup(offsets, offsets.len() / OFFSET_ENTRY, offset);
    seek(log, u64::from(position), size_bytes, |batch| {
        let is_there = u64_at(batch, 35) >= timestamp;
        if is_there {
            let record = batch.get(HEADER_SIZE..HEADER_SIZE + 8).unwrap_or_default();
            black_box(walk_records(record).is_ok());
        }
        is_there
    })
}

fn last_offset(header: &[u8]) -> u64 {
    u64_at(header, 0) + u64::from(u32_at(header, 23).unwrap_or(0))
}

/// The position of the first batch from `position` on that `is_it`.
fn seek(
    log: &File,
    mut position: u64,
    size_bytes: u64,
    is_it: impl Fn(&[u8]) -> bool,
) -> Result<u64> {
    let mut window = [0; WINDOW_BYTES];
    loop {
        let read = log.read_at(&mut window, position)?;
        let read = window.get(..read).unwrap_or_default();
        let mut skipped = 0;
        while let Some(batch) = read.get(skipped..).filter(|batch| batch.len() >= HEADER_SIZE) {
            if is_it(batch) {
                return Ok(position + u64::try_from(skipped)?);
            }
            skipped += usize::try_from(u32_at(batch, 8).unwrap_or(0))? + 12;
        }
        position += u64::try_from(skipped)?;
        if position >= size_bytes || skipped == 0 {
            return Err("no such batch".into());
        }
    }
}

/// Finds the batch of an offset among the last ones, in memory.
#[must_use]
#[inline]
pub fn locate_among(recent: &[(i64, u64)], offset: i64) -> Option<u64> {
    let at = recent.partition_point(|(last_offset, _)| *last_offset < offset);
    recent.get(at).map(|(_, position)| *position)
}

/// Puts an entry of each index where it belongs in files that are mapped, or as good as that.
///
/// # Errors
/// When there is no room.
#[inline]
pub fn append_entries(
    (offsets, times): (&mut [u8], &mut [u8]),
    number: usize,
    (relative, position, timestamp_ms): (u32, u32, i64),
) -> Result<()> {
    let offsets = offsets.get_mut(number * OFFSET_ENTRY..).and_then(|rest| rest.first_chunk_mut());
    let entry = u64::from(relative) << 32 | u64::from(position);
    *offsets.ok_or("no room")? = entry.to_be_bytes();
    let times = times.get_mut(number * TIME_ENTRY..).and_then(|rest| rest.first_chunk_mut());
    let times: &mut [u8; TIME_ENTRY] = times.ok_or("no room")?;
    let (time, offset) = times.split_at_mut(8);
    time.copy_from_slice(&timestamp_ms.to_be_bytes());
    offset.copy_from_slice(&relative.to_be_bytes());
    Ok(())
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
