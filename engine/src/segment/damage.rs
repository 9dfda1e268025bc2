//! What is wrong where a scan stopped, and what whole batches lie behind it?
//!
//! A torn tail has nothing whole behind it and may be cut; damage in the middle has, and is the
//! operator's to decide. To tell them apart, the bytes behind the first bad one are searched for
//! batches whose frame, offset and checksum fit.

use std::ops::ControlFlow;

use crate::bytes;
use crate::error::Result;
use crate::io::Source;
use crate::problem::Code;
use crate::record::batch::{BatchHeader, HEADER_SIZE, HEADER_UP_TO_MAGIC, LOG_OVERHEAD};
use crate::record::legacy::min_entry_size;
use crate::record::scan::{ScanEnd, ScannedBatch, Stop, scan};
use crate::units::last_addressable_offset;

/// Bytes that are searched at a time.
const STEP_BYTES: usize = 1 << 20;
/// Bytes over which checksums of look-alikes may be computed beyond the size of the file itself:
/// what looks like a batch costs its length to refute, and crafted bytes could make that quadratic.
const REFUTE_BYTES: u64 = 64 << 20;

/// Whole batches behind damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survivors {
    /// How many.
    pub batches: u64,
    /// Offset of the first.
    pub first_offset: Option<i64>,
    /// Offset behind the last.
    pub end_offset: Option<i64>,
    /// Where the first begins.
    pub first_position: Option<u64>,
    /// The search was given up: there may be more.
    pub gave_up: bool,
}

impl Survivors {
    /// Adds what was found further on.
    pub fn add(&mut self, other: Survivors) {
        self.batches = self.batches.saturating_add(other.batches);
        self.first_offset = self.first_offset.or(other.first_offset);
        self.first_position = self.first_position.or(other.first_position);
        self.end_offset = other.end_offset.or(self.end_offset);
        self.gave_up |= other.gave_up;
    }

    /// Whether a cut would throw away anything whole, as far as is known.
    #[must_use]
    pub fn any(&self) -> bool {
        self.batches > 0 || self.gave_up
    }
}

/// What stands where a scan stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The most exact code.
    pub code: Code,
    /// The first bad byte.
    pub position: u64,
    /// The size of the file or what there is of it.
    pub end: u64,
    /// Why, for the operator.
    pub detail: String,
    /// What lies behind it in the same file.
    pub survivors: Survivors,
}

/// Examines the bytes behind a scan's end. `expected_offset` is the offset that the log had
/// reached; `None` when the scan ended at the end.
///
/// A magic byte of the future is told from garbage by what follows it: the end of the file or a
/// batch that fits.
pub fn examine<S: Source + ?Sized>(
    source: &mut S,
    end: ScanEnd,
    base_offset: i64,
    expected_offset: i64,
) -> Result<Option<Damage>> {
    if matches!(end.stop, Stop::End | Stop::Asked | Stop::Visitor) {
        return Ok(None);
    }
    let size = source.end();
    if is_zero(source, end.position)? {
        return Ok(Some(Damage {
            code: Code::ZeroTail,
            position: end.position,
            end: source.end(),
            detail: format!("the last {} bytes are zero", size.saturating_sub(end.position)),
            survivors: Survivors::default(),
        }));
    }
    let behind = end.position.saturating_add(1);
    let survivors = survivors(source, behind, base_offset, expected_offset)?;
    let left = size.saturating_sub(end.position);
    let (code, detail) = match end.stop {
        Stop::Short { announced_bytes: None } => {
            (Code::TornBatch, format!("{left} bytes are left, fewer than any batch has"))
        }
        Stop::Short { announced_bytes: Some(announced) } if !survivors.any() => (
            Code::TornBatch,
            format!("the batch announces {announced} bytes, and {left} are there"),
        ),
        Stop::Short { announced_bytes: Some(announced) } => (
            Code::BadLength,
            format!(
                "the batch announces {announced} bytes of the {left} there are, but whole batches stand behind it"
            ),
        ),
        Stop::BadLength { size_field } => {
            (Code::BadLength, format!("a batch cannot have the length {size_field}"))
        }
        Stop::BadCrc { stored, computed } => (
            Code::CrcMismatch,
            format!("the checksum says {stored:#010x}, the bytes have {computed:#010x}"),
        ),
        Stop::UnknownMagic { magic } if is_framed(source, end.position, survivors)? => {
            (Code::UnknownMagic, format!("magic {magic} is not known: the batch cannot be checked"))
        }
        Stop::UnknownMagic { magic } => {
            (Code::CrcMismatch, format!("no batch: magic {magic}, and nothing fits behind it"))
        }
        Stop::End | Stop::Asked | Stop::Visitor => return Ok(None),
    };
    Ok(Some(Damage { code, position: end.position, end: size, detail, survivors }))
}

/// Whether all bytes from `position` to the end are zero. Stops at the first that is not.
fn is_zero<S: Source + ?Sized>(source: &mut S, position: u64) -> Result<bool> {
    let mut position = position;
    while position < source.end() {
        let window = source.window(position, 1)?;
        if window.is_empty() {
            break;
        }
        if window.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        position = position.saturating_add(u64::try_from(window.len()).unwrap_or(u64::MAX));
    }
    // What cannot be read shows zeros in a map.
    source.check()?;
    Ok(true)
}

/// Whether the batch at `position` ends where the file ends or where the first survivor begins.
fn is_framed<S: Source + ?Sized>(
    source: &mut S,
    position: u64,
    survivors: Survivors,
) -> Result<bool> {
    let size_field = bytes::get_i32(source.window(position, HEADER_SIZE)?, 8).unwrap_or(-1);
    let end =
        u64::try_from(size_field).ok().map(|size| position.saturating_add(size).saturating_add(12));
    Ok(end.is_some() && (end == Some(source.end()) || end == survivors.first_position))
}

/// Searches for whole batches at or behind `position`, and behind each further damage.
///
/// They count from `expected_offset` on, and as far as the segment can address.
pub fn survivors<S: Source + ?Sized>(
    source: &mut S,
    position: u64,
    base_offset: i64,
    expected_offset: i64,
) -> Result<Survivors> {
    let mut found = Survivors::default();
    let mut expected = expected_offset;
    let mut budget = source.end().saturating_add(REFUTE_BYTES);
    let mut position = position;
    while let Some(start) =
        next_batch(source, position, u64::MAX, base_offset, expected, &mut budget)?
    {
        found.first_position.get_or_insert(start);
        let mut visitor = |batch: ScannedBatch<'_>| {
            // What runs backwards is no continuation of this log.
            if batch.header.base_offset < expected {
                return Ok(ControlFlow::Break(()));
            }
            expected = batch.header.next_offset();
            found.batches = found.batches.saturating_add(1);
            found.first_offset.get_or_insert(batch.header.base_offset);
            found.end_offset = Some(expected);
            Ok(ControlFlow::Continue(()))
        };
        let end = scan(source, start, u64::MAX, &mut visitor)?;
        position = end.position.max(start.saturating_add(1));
    }
    found.gave_up = budget == 0;
    Ok(found)
}

/// The first position in `from..until` where a whole batch begins whose offsets could continue the
/// log.
///
/// Also where a piece of a segment begins when its pieces are scanned side by side.
pub fn next_batch<S: Source + ?Sized>(
    source: &mut S,
    from: u64,
    until: u64,
    base_offset: i64,
    expected_offset: i64,
    budget: &mut u64,
) -> Result<Option<u64>> {
    let mut from = from;
    loop {
        if from >= until {
            return Ok(None);
        }
        let end = source.end();
        let window = source.window(from, STEP_BYTES)?;
        if window.len() < HEADER_UP_TO_MAGIC {
            return Ok(None);
        }
        let last_offset = last_addressable_offset(base_offset);
        let fit = |at: usize| {
            let left =
                end.saturating_sub(from.saturating_add(u64::try_from(at).unwrap_or(u64::MAX)));
            looks_like_batch(window.get(at..)?, left, expected_offset, last_offset)
                .map(|size| (at, size))
        };
        let starts = window.len().saturating_sub(HEADER_UP_TO_MAGIC).saturating_add(1);
        let Some((at, size)) = (0..starts).find_map(fit) else {
            from = from.saturating_add(u64::try_from(starts).unwrap_or(u64::MAX));
            continue;
        };
        let position = from.saturating_add(u64::try_from(at).unwrap_or(u64::MAX));
        *budget = budget.saturating_sub(size);
        if *budget == 0 {
            return Ok(None);
        }
        let mut only_first = FirstBatch { seen: false };
        scan(source, position, position.saturating_add(1), &mut only_first)?;
        if only_first.seen {
            return Ok(Some(position));
        }
        from = position.saturating_add(1);
    }
}

/// Takes one batch and no more.
struct FirstBatch {
    seen: bool,
}

impl crate::record::scan::Visitor for FirstBatch {
    fn body_limit_bytes(&self) -> usize {
        0
    }

    fn batch(&mut self, _batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        self.seen = true;
        Ok(ControlFlow::Continue(()))
    }
}

/// The size of what could be a batch at the front of `bytes`, by cheap tests of its header alone.
#[inline]
fn looks_like_batch(
    bytes: &[u8],
    left: u64,
    expected_offset: i64,
    last_offset: i64,
) -> Option<u64> {
    let head = bytes.first_chunk::<HEADER_UP_TO_MAGIC>()?;
    let magic = head[16].cast_signed();
    if !(0..=2).contains(&magic) {
        return None;
    }
    let offset = bytes::get_i64(head, 0)?;
    if offset < expected_offset || offset > last_offset {
        return None;
    }
    let size = u64::try_from(bytes::get_i32(head, 8)?).ok()?.checked_add(12)?;
    let least = if magic == 2 { HEADER_SIZE } else { min_entry_size(magic) };
    if size > left || usize::try_from(size).is_ok_and(|size| size < least.max(LOG_OVERHEAD)) {
        return None;
    }
    if magic == 2
        && let Some(header) = BatchHeader::parse(bytes)
        && (header.last_offset_delta < 0 || header.leader_epoch < -1)
    {
        return None;
    }
    Some(size)
}

/// So many whole batches, in words.
#[must_use]
pub fn whole_batches(count: u64) -> String {
    format!("{count} whole batch{}", if count == 1 { "" } else { "es" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::checksum;
    use crate::record::batch::CRC_START;

    fn batch(base_offset: i64, payload: &[u8]) -> Vec<u8> {
        let mut covered = vec![0_u8; HEADER_SIZE - CRC_START];
        covered.extend(payload);
        let mut out = base_offset.to_be_bytes().to_vec();
        out.extend(u32::try_from(covered.len() + 9).unwrap().to_be_bytes());
        out.extend([0, 0, 0, 0, 2]);
        out.extend(checksum::crc32c(&covered).to_be_bytes());
        out.extend(covered);
        out
    }

    fn damage(bytes: &[u8]) -> Option<Damage> {
        let mut expected = 0;
        let mut visitor = |batch: ScannedBatch<'_>| {
            expected = batch.header.next_offset();
            Ok(ControlFlow::Continue(()))
        };
        let mut source = bytes;
        let end = scan(&mut source, 0, u64::MAX, &mut visitor).unwrap();
        examine(&mut source, end, 0, expected).unwrap()
    }

    #[test]
    fn a_torn_tail_has_no_survivors() {
        let mut bytes = [batch(0, b"a"), batch(1, b"bb")].concat();
        bytes.truncate(bytes.len() - 1);
        let damage = damage(&bytes).unwrap();
        assert_eq!(damage.code, Code::TornBatch);
        assert!(!damage.survivors.any());
    }

    #[test]
    fn whole_batches_behind_a_bad_one_are_counted() {
        let mut bytes = [batch(0, b"a"), batch(1, b"bb"), batch(2, b"c"), batch(3, b"d")].concat();
        bytes[batch(0, b"a").len() + 61] ^= 1;
        let damage = damage(&bytes).unwrap();
        assert_eq!(damage.code, Code::CrcMismatch);
        assert_eq!(damage.survivors.batches, 2);
        assert_eq!(
            (damage.survivors.first_offset, damage.survivors.end_offset),
            (Some(2), Some(4))
        );
    }

    #[test]
    fn a_length_that_hides_whole_batches_is_bad_and_not_torn() {
        let mut bytes = [batch(0, b"a"), batch(1, b"b"), batch(2, b"c")].concat();
        let at = batch(0, b"a").len() + 8;
        bytes[at..at + 4].copy_from_slice(&i32::MAX.to_be_bytes());
        assert_eq!(damage(&bytes).unwrap().code, Code::BadLength);
    }

    #[test]
    fn zeros_at_the_end_are_a_zero_tail_of_any_size() {
        for zeros in [1, 7, 17, 18, 4096] {
            let bytes = [batch(0, b"a"), vec![0; zeros]].concat();
            assert_eq!(damage(&bytes).unwrap().code, Code::ZeroTail, "{zeros}");
        }
    }

    #[test]
    fn a_future_magic_is_told_from_garbage_by_what_follows() {
        let mut future = batch(1, b"b");
        future[16] = 3;
        let middle = [batch(0, b"a"), future.clone(), batch(2, b"c")].concat();
        assert_eq!(damage(&middle).unwrap().code, Code::UnknownMagic);
        let last = [batch(0, b"a"), future.clone()].concat();
        assert_eq!(damage(&last).unwrap().code, Code::UnknownMagic);
        let garbage = [batch(0, b"a"), future, b"something else".to_vec()].concat();
        assert_eq!(damage(&garbage).unwrap().code, Code::CrcMismatch);
    }
}
