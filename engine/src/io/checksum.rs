//! CRC-32C for batches and snapshots, CRC-32 for the old message formats.
//!
//! Checking CRC-32C decides how fast a log is recovered. Crate `crc-fast` is the faster
//! implementation at every size from 4 bytes to megabytes, up to fourfold above 512 bytes; at 256
//! to 511 bytes it is level with crate `crc32c`. Since a wrong checksum would make good data look
//! corrupt, the first call in a process compares it with `crc32c`, on this processor, and takes
//! that one when they ever disagree.

use std::sync::OnceLock;

use crc_fast::{CrcAlgorithm, Digest};

/// The CRC-32C (Castagnoli) of `bytes`.
#[inline]
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    if is_fast_trusted() { fast(bytes) } else { crc32c::crc32c(bytes) }
}

/// The CRC-32C of some bytes with checksum `crc`, followed by `bytes`.
#[inline]
#[must_use]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    if is_fast_trusted() { fast_append(crc, bytes) } else { crc32c::crc32c_append(crc, bytes) }
}

/// The CRC-32C of bytes A followed by bytes B, from the checksum of each and the size of B: pieces
/// of one batch can be checked apart from each other. Takes some 100 ns a set bit of the size, and
/// does not touch the bytes.
#[must_use]
pub fn crc32c_combine(crc_a: u32, crc_b: u32, size_b: u64) -> u32 {
    // A checksum is a polynomial modulo the Castagnoli one, and B behind A multiplies A's by x once
    // for each bit of B. The two inversions cancel out.
    let powers = POWERS.iter().enumerate();
    let shifted = powers
        .filter(|&(bit, _)| size_b >> bit & 1 == 1)
        .fold(crc_a, |product, (_, &power)| times(power, product));
    shifted ^ crc_b
}

/// The CRC-32 (IEEE) of `bytes`.
#[inline]
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// A CRC-32 (IEEE) over pieces.
#[derive(Clone, Debug, Default)]
pub struct Crc32(crc32fast::Hasher);

impl Crc32 {
    /// Of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        Crc32(crc32fast::Hasher::new())
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes added.
    #[must_use]
    pub fn finish(self) -> u32 {
        self.0.finalize()
    }
}

/// The Castagnoli polynomial, reflected: the highest power stands in the lowest bit.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// x to the power of 8, 16, 32 ...: what 1, 2, 4 ... bytes multiply by.
const POWERS: [u32; 64] = {
    let mut powers = [0; 64];
    let mut power = 1 << (31 - 8);
    let mut rest: &mut [u32] = &mut powers;
    while let Some((first, others)) = rest.split_first_mut() {
        *first = power;
        power = times(power, power);
        rest = others;
    }
    powers
};

/// The product of two polynomials modulo the Castagnoli one.
const fn times(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 == 1 { b >> 1 ^ POLYNOMIAL } else { b >> 1 };
        bit >>= 1;
    }
    product
}

#[inline]
fn fast(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

#[inline]
fn fast_append(crc: u32, bytes: &[u8]) -> u32 {
    // The state is what the checksum is before its last inversion.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    low_half(digest.finalize())
}

/// A checksum of 32 bits is given in 64.
fn low_half(wide: u64) -> u32 {
    u32::try_from(wide & u64::from(u32::MAX)).unwrap_or_default()
}

#[inline]
fn is_fast_trusted() -> bool {
    static TRUSTED: OnceLock<bool> = OnceLock::new();
    *TRUSTED.get_or_init(implementations_agree)
}

/// Compares the implementations at sizes on both sides of every block size that either works in. A
/// tenth of a millisecond.
#[cold]
fn implementations_agree() -> bool {
    const SIZE_MAX: usize = 16 * 1024 + 77;
    let bytes: Vec<u8> =
        (0_u8..=255).cycle().map(|b| b.wrapping_mul(151) ^ 0x5c).take(SIZE_MAX).collect();
    let sizes = (0..300).step_by(3).chain((300..2200).step_by(97)).chain([4095, 4096, SIZE_MAX]);
    sizes.enumerate().all(|(turn, size)| {
        // Neither end is aligned.
        let piece = bytes.get(turn % 17..size).unwrap_or_default();
        let (head, tail) = piece.split_at(piece.len() / 3);
        let expected = crc32c::crc32c(piece);
        fast(piece) == expected && fast_append(fast(head), tail) == expected
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition: bit by bit, reflected, with this polynomial.
    fn by_definition(polynomial: u32, bytes: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for &byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ polynomial } else { crc >> 1 };
            }
        }
        !crc
    }

    const CASTAGNOLI: u32 = 0x82f6_3b78;
    const IEEE: u32 = 0xedb8_8320;

    #[test]
    fn the_check_values_of_the_catalogue_hold() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!((crc32c(b""), crc32(b"")), (0, 0));
        assert_eq!(crc32c_append(0, b"123456789"), 0xe306_9283);
        // RFC 3720, B.4: 32 bytes of zeros and of ones.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn the_fast_implementation_is_trusted_here() {
        assert!(implementations_agree());
    }

    #[test]
    fn every_size_up_to_two_kilobytes_agrees_with_the_definition() {
        let bytes: Vec<u8> = (0..2048_u32).map(|i| i.wrapping_mul(i).to_be_bytes()[2]).collect();
        for size in 0..bytes.len() {
            let piece = &bytes[size / 3..size];
            assert_eq!(crc32c(piece), by_definition(CASTAGNOLI, piece), "size {size}");
            assert_eq!(crc32(piece), by_definition(IEEE, piece), "size {size}");
        }
    }

    proptest! {
        #[test]
        fn pieces_appended_or_combined_give_the_checksum_of_the_whole(
            bytes in prop::collection::vec(any::<u8>(), 0..5000),
            cut in any::<prop::sample::Index>(),
        ) {
            let (a, b) = bytes.split_at(cut.index(bytes.len() + 1));
            let whole = by_definition(CASTAGNOLI, &bytes);
            prop_assert_eq!(crc32c(&bytes), whole);
            prop_assert_eq!(crc32c_append(crc32c(a), b), whole);
            prop_assert_eq!(crc32c_combine(crc32c(a), crc32c(b), b.len() as u64), whole);
            prop_assert_eq!(crc32c::crc32c_append(crc32c::crc32c(a), b), whole);
            prop_assert_eq!(crc32(&bytes), by_definition(IEEE, &bytes));
        }

        #[test]
        fn combining_agrees_with_the_other_crate_at_every_size(
            a in any::<u32>(), b in any::<u32>(), size in any::<u64>(), fewer in 0..64_u32,
        ) {
            // Nothing has checksum 0: with a size of 0 any other is no checksum.
            let size = (size >> fewer).max(1);
            let expected = crc32c::crc32c_combine(a, b, usize::try_from(size).unwrap());
            prop_assert_eq!(crc32c_combine(a, b, size), expected);
        }

        #[test]
        fn a_flipped_bit_is_seen(
            mut bytes in prop::collection::vec(any::<u8>(), 1..3000),
            at in any::<prop::sample::Index>(),
            bit in 0..8_u32,
        ) {
            let before = crc32c(&bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert_ne!(crc32c(&bytes), before);
        }
    }
}
