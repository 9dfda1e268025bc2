//! Variable-length integers: base-128 groups, least significant first, the high bit of a byte says
//! that more follow.
//!
//! Signed values are zigzag coded: 0, -1, 1, -2 become 0, 1, 2, 3. A 32-bit value takes at most
//! five bytes, a 64-bit one at most ten. Bits of the last byte that do not fit are dropped without
//! complaint, as Kafka drops them.

/// Why a number could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarintError {
    /// The bytes end within the number.
    Short,
    /// The number has more bytes than its type can need.
    TooLong,
}

/// Reads an unsigned 32-bit number; gives it and the bytes behind it.
#[inline]
pub fn read_u32(bytes: &[u8]) -> Result<(u32, &[u8]), VarintError> {
    // Nearly every length and delta fits into one byte or two.
    match bytes {
        [a, rest @ ..] if *a < 0x80 => return Ok((u32::from(*a), rest)),
        [a, b, rest @ ..] if *b < 0x80 => {
            return Ok((u32::from(*a & 0x7f) | u32::from(*b) << 7, rest));
        }
        _ => {}
    }
    let mut value = 0_u32;
    let mut rest = bytes;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, behind) = rest.split_first().ok_or(VarintError::Short)?;
        rest = behind;
        value |= u32::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok((value, rest));
        }
    }
    Err(VarintError::TooLong)
}

/// Reads an unsigned 64-bit number; gives it and the bytes behind it.
#[inline]
pub fn read_u64(bytes: &[u8]) -> Result<(u64, &[u8]), VarintError> {
    let mut value = 0_u64;
    let mut rest = bytes;
    for shift in [0, 7, 14, 21, 28, 35, 42, 49, 56, 63] {
        let (byte, behind) = rest.split_first().ok_or(VarintError::Short)?;
        rest = behind;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok((value, rest));
        }
    }
    Err(VarintError::TooLong)
}

/// Reads a zigzag-coded 32-bit number.
#[inline]
pub fn read_i32(bytes: &[u8]) -> Result<(i32, &[u8]), VarintError> {
    let (coded, rest) = read_u32(bytes)?;
    Ok(((coded >> 1).cast_signed() ^ -(coded & 1).cast_signed(), rest))
}

/// Reads a zigzag-coded 64-bit number.
#[inline]
pub fn read_i64(bytes: &[u8]) -> Result<(i64, &[u8]), VarintError> {
    let (coded, rest) = read_u64(bytes)?;
    Ok(((coded >> 1).cast_signed() ^ -(coded & 1).cast_signed(), rest))
}

/// Appends an unsigned number in its shortest form.
pub fn write_u64(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = (value & 0x7f).to_be_bytes()[7];
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// Appends an unsigned number in its shortest form.
pub fn write_u32(out: &mut Vec<u8>, value: u32) {
    write_u64(out, u64::from(value));
}

/// Appends a zigzag-coded 32-bit number in its shortest form.
pub fn write_i32(out: &mut Vec<u8>, value: i32) {
    write_u64(out, u64::from(((value << 1) ^ (value >> 31)).cast_unsigned()));
}

/// Appends a zigzag-coded 64-bit number in its shortest form.
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    write_u64(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_extreme_numbers_have_kafkas_bytes() {
        // spec: records 10; behaviours VB-024
        for (value, bytes) in [
            (0, &[0x00][..]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (-65, &[0x81, 0x01]),
            (8191, &[0xfe, 0x7f]),
            (8192, &[0x80, 0x80, 0x01]),
            (1_048_576, &[0x80, 0x80, 0x80, 0x01]),
            (134_217_728, &[0x80, 0x80, 0x80, 0x80, 0x01]),
            (i32::MAX, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        ] {
            let mut out = Vec::new();
            write_i32(&mut out, value);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(read_i32(bytes), Ok((value, &[][..])));
            assert_eq!(read_i64(bytes), Ok((i64::from(value), &[][..])));
        }
        for (value, bytes) in [
            (17_179_869_183_i64, &[0xfe, 0xff, 0xff, 0xff, 0x7f][..]),
            (17_179_869_184, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
            (36_028_797_018_963_968, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
        ] {
            let mut out = Vec::new();
            write_i64(&mut out, value);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(read_i64(bytes), Ok((value, &[][..])));
        }
    }

    #[test]
    fn a_number_that_never_ends_is_refused() {
        // spec: behaviours VB-026, VB-027
        assert_eq!(read_i32(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), Err(VarintError::TooLong));
        assert_eq!(read_i32(&[0x80; 5]), Err(VarintError::TooLong));
        assert_eq!(read_i32(&[0x80; 4]), Err(VarintError::Short));
        assert_eq!(read_i64(&[0xff; 10]), Err(VarintError::TooLong));
        assert_eq!(read_i64(&[0xff; 9]), Err(VarintError::Short));
        assert_eq!(read_i32(&[]), Err(VarintError::Short));
    }

    #[test]
    fn bits_that_do_not_fit_are_dropped() {
        // Kafka shifts them out of the top: spec records 1.1.
        assert_eq!(read_u32(&[0xff, 0xff, 0xff, 0xff, 0x7f]), Ok((u32::MAX, &[][..])));
    }
}
