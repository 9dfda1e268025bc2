//! The fast way over one record of magic 2.
//!
//! Nearly every record of nearly every batch is good. So the walk that runs says only where the next
//! record begins, or nothing: then the precise walk looks at the same bytes again and says what is
//! wrong. (With errors told at every field, this loop takes four times as long.)

use crate::record::check::fields::Deltas;

/// Walks the record at `at`; gives the position behind it. `None` when the precise walk must look.
///
/// In `FULL`, the fields must fill exactly what the record declares as its length; otherwise they
/// are bounded by the payload alone. Positions go through by value: a loop that hands out their
/// address keeps them in memory.
#[inline(always)]
pub(super) fn step<const FULL: bool>(payload: &[u8], at: usize) -> Option<(Deltas, usize)> {
    let (length, at) = read(payload, at)?;
    let fields = if FULL { payload.get(..at.checked_add(size(length)?)?)? } else { payload };
    // The attributes say nothing.
    let (timestamp, at) = read_long(fields, at + 1)?;
    let (offset, at) = read(fields, at)?;
    let (key, at) = read(fields, at)?;
    let (value, at) = read(fields, at.checked_add(size_or_none(key)?)?)?;
    let (header_count, mut at) = read(fields, at.checked_add(size_or_none(value)?)?)?;
    if header_count != 0 {
        at = step_headers(fields, at, size(header_count)?)?;
    }
    if FULL && at != fields.len() {
        return None;
    }
    let deltas = Deltas {
        timestamp: (timestamp >> 1).cast_signed() ^ -(timestamp & 1).cast_signed(),
        offset: (offset >> 1).cast_signed() ^ -(offset & 1).cast_signed(),
        has_key: key & 1 == 0,
    };
    Some((deltas, at))
}

/// Passes over headers.
#[inline(never)]
fn step_headers(fields: &[u8], at: usize, count: usize) -> Option<usize> {
    let mut at = at;
    // Each takes two bytes at least.
    if count > fields.len().checked_sub(at)? {
        return None;
    }
    for _ in 0..count {
        let (key, behind) = read(fields, at)?;
        let (value, behind) = read(fields, behind.checked_add(size(key)?)?)?;
        at = behind.checked_add(size_or_none(value)?)?;
    }
    // What was skipped last may reach too far.
    (at <= fields.len()).then_some(at)
}

/// What a zigzag-coded size says, unless it is negative.
#[inline(always)]
fn size(coded: u32) -> Option<usize> {
    if coded & 1 == 0 { usize::try_from(coded >> 1).ok() } else { None }
}

/// The size of a key or value: a negative one is null, and takes nothing.
#[inline(always)]
fn size_or_none(coded: u32) -> Option<usize> {
    if coded & 1 == 0 { usize::try_from(coded >> 1).ok() } else { Some(0) }
}

/// Reads a number, as it is coded; gives the position behind it.
#[inline(always)]
fn read(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let first = u32::from(*bytes.get(at)?);
    if first < 0x80 {
        return Some((first, at + 1));
    }
    let second = u32::from(*bytes.get(at + 1)?);
    if second < 0x80 {
        return Some((first & 0x7f | second << 7, at + 2));
    }
    read_on(bytes, at + 2, first & 0x7f | (second & 0x7f) << 7)
}

/// The third byte of a number and those behind it.
#[inline(never)]
fn read_on(bytes: &[u8], mut at: usize, mut value: u32) -> Option<(u32, usize)> {
    for shift in [14, 21, 28] {
        let byte = u32::from(*bytes.get(at)?);
        at += 1;
        value |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value, at));
        }
    }
    None
}

/// Reads a number of up to 64 bits, as it is coded; gives the position behind it.
#[inline(always)]
fn read_long(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = u64::from(*bytes.get(at)?);
    if first < 0x80 {
        return Some((first, at + 1));
    }
    let second = u64::from(*bytes.get(at + 1)?);
    if second < 0x80 {
        return Some((first & 0x7f | second << 7, at + 2));
    }
    read_long_on(bytes, at + 2, first & 0x7f | (second & 0x7f) << 7)
}

#[inline(never)]
fn read_long_on(bytes: &[u8], mut at: usize, mut value: u64) -> Option<(u64, usize)> {
    for shift in [14, 21, 28, 35, 42, 49, 56, 63] {
        let byte = u64::from(*bytes.get(at)?);
        at += 1;
        value |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value, at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::check::fields::walk_record;
    use crate::record::varint;

    /// What the precise walk makes of a record with this length in front.
    fn precise(payload: &[u8]) -> Option<(Deltas, usize)> {
        let (length, rest) = varint::read_i32(payload).ok()?;
        let (mut fields, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        Some((walk_record(&mut fields).ok()?, payload.len() - behind.len()))
    }

    proptest! {
        #[test]
        fn the_fast_walk_and_the_precise_one_agree(
            mut body in prop::collection::vec(prop_oneof![0..6_u8, any::<u8>()], 0..40),
            behind in prop::collection::vec(any::<u8>(), 0..4),
        ) {
            let mut payload = Vec::new();
            varint::write_i32(&mut payload, i32::try_from(body.len()).unwrap());
            payload.append(&mut body);
            payload.extend(behind);
            prop_assert_eq!(step::<true>(&payload, 0), precise(&payload));
        }

        #[test]
        fn numbers_of_every_size_are_read(
            timestamp in any::<i64>(), offset in any::<i32>(), fewer in 0..64_u32, key in 0..70_000_usize,
        ) {
            let (timestamp, offset) = (timestamp >> fewer, offset >> (fewer / 2));
            let mut body = vec![0];
            varint::write_i64(&mut body, timestamp);
            varint::write_i32(&mut body, offset);
            varint::write_i32(&mut body, i32::try_from(key).unwrap());
            body.resize(body.len() + key, 7);
            body.extend([1, 0]);
            let mut payload = Vec::new();
            varint::write_i32(&mut payload, i32::try_from(body.len()).unwrap());
            payload.append(&mut body);
            let deltas = Deltas { timestamp, offset, has_key: true };
            prop_assert_eq!(step::<true>(&payload, 0), Some((deltas, payload.len())));
            prop_assert_eq!(step::<false>(&payload, 0), Some((deltas, payload.len())));
        }
    }
}
