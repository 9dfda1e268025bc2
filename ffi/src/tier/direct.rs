//! Which bytes of a remote segment hold these offsets, and which transactions must be left out?

use engine::index::{OffsetEntries, TxnEntries};
use engine::tier::SegmentBounds;

use super::types::{DirectRead, DirectRequest};
use crate::error::{Failure, OUT_OF_RANGE, Outcome, SiltError, Status, fits, guard, invalid};
use crate::memory::{Growing, bytes_of, check_struct, items_of_mut, read_struct, write_struct};
use crate::read::aborted_of;

/// `SILT_DIRECT_ABORTED_GO_ON`.
const ABORTED_GO_ON: u32 = 1;

/// Where the bytes are; `None` where there is nothing to be seen.
///
/// # Safety
/// The offset index is NULL or as long as the request says.
unsafe fn place(request: &DirectRequest) -> Outcome<Option<DirectRead>> {
    let DirectRequest { start_offset, end_offset, offset, limit_offset, .. } = *request;
    if start_offset < 0 || end_offset < start_offset {
        return invalid("the segment's offsets are none");
    }
    let end = end_offset.saturating_add(1);
    if !(start_offset..end).contains(&offset) {
        return Err(Failure::Call(OUT_OF_RANGE, "the offset is none of the segment"));
    }
    // SAFETY: the caller's bytes.
    let bytes = unsafe { bytes_of(request.offset_index, request.offset_index_size_bytes)? };
    let bounds = SegmentBounds { offsets: start_offset..end, size_bytes: request.log_size_bytes };
    let entries = OffsetEntries::new(bytes, start_offset);
    let range = bounds.byte_range(entries, offset, limit_offset, request.max_bytes);
    Ok(range.map(|range| DirectRead {
        position: range.begin,
        size_bytes: range.end.saturating_sub(range.begin),
        upper_bound_offset: range.upper_bound_offset,
        next_offset: end,
        ..DirectRead::INIT
    }))
}

/// Tells the aborted transactions of the segment that fit; whether that is all of them.
///
/// # Safety
/// The transaction index and the array are NULL or as long as the request says.
unsafe fn aborted(request: &DirectRequest, read: &mut DirectRead) -> Outcome<bool> {
    if request.transaction_index.is_null() {
        return Ok(true);
    }
    let size_bytes = request.transaction_index_size_bytes;
    // SAFETY: the caller's bytes.
    let bytes = unsafe { bytes_of(request.transaction_index, size_bytes)? };
    // SAFETY: the caller's array.
    let slots = unsafe { items_of_mut(request.aborted, u64::from(request.aborted_capacity))? };
    let mut count = 0_u32;
    let mut slots = slots.iter_mut();
    let mut is_all = true;
    let is_over =
        TxnEntries::new(bytes).visit_aborted(request.offset, read.upper_bound_offset, |txn| {
            count = count.saturating_add(1);
            match slots.next() {
                Some(slot) => *slot = aborted_of(&txn),
                None => is_all = false,
            }
        })?;
    read.aborted_count = count;
    read.flags = if is_over { 0 } else { ABORTED_GO_ON };
    Ok(is_all)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_tier_direct_read(
    request: *const DirectRequest,
    out: *mut DirectRead,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let request = unsafe { read_struct(request)? };
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        // SAFETY: the caller's bytes.
        let Some(mut read) = (unsafe { place(&request)? }) else {
            // SAFETY: a struct of the header.
            return unsafe { write_struct(out, &DirectRead::INIT) };
        };
        // SAFETY: the caller's bytes and array.
        let is_all = unsafe { aborted(&request, &mut read)? };
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &read)? };
        fits(is_all, "not all aborted transactions fit")
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}
