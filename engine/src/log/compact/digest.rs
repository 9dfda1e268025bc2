//! Which 128 bits stand for a key?
//!
//! SipHash with one round a word and three at the end, 128 bits of output. Kafka takes MD5; nobody
//! sees which. A key of our own, drawn by chance for each cleaner, keeps clients from making up two
//! keys with the same digest, one of which compaction would take for the other.

use std::hash::{BuildHasher, RandomState};

/// What stands for a key.
pub(super) type Digest = [u64; 2];

/// A secret that makes digests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digester {
    key: [u64; 2],
}

impl Digester {
    /// One that nobody can foresee.
    pub(super) fn new() -> Self {
        let random = RandomState::new();
        Digester { key: [random.hash_one(0_u64), random.hash_one(1_u64)] }
    }

    pub(super) fn digest(&self, bytes: &[u8]) -> Digest {
        sip::<1, 3>(self.key, bytes)
    }
}

#[inline]
fn round(v: &mut [u64; 4]) {
    let [a, b, c, d] = v;
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32).wrapping_add(*d);
    *c = c.wrapping_add(*b);
    *d = d.rotate_left(21) ^ *a;
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

#[inline]
fn take<const ROUNDS: usize>(v: &mut [u64; 4], word: u64) {
    v[3] ^= word;
    (0..ROUNDS).for_each(|_| round(v));
    v[0] ^= word;
}

#[inline]
fn sip<const WORD: usize, const END: usize>([k0, k1]: [u64; 2], bytes: &[u8]) -> [u64; 2] {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        take::<WORD>(&mut v, u64::from_be_bytes(*word).swap_bytes());
    }
    // The last word has the low byte of the length on top.
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    last[7] = bytes.len().to_be_bytes().last().copied().unwrap_or(0);
    take::<WORD>(&mut v, u64::from_be_bytes(last).swap_bytes());
    v[2] ^= 0xee;
    (0..END).for_each(|_| round(&mut v));
    let first = v[0] ^ v[1] ^ v[2] ^ v[3];
    v[1] ^= 0xdd;
    (0..END).for_each(|_| round(&mut v));
    [first, v[0] ^ v[1] ^ v[2] ^ v[3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_siphash() {
        // The published vectors of SipHash-2-4-128: key 00 to 0f, messages "", 00, 00 01, ...
        let key = [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908];
        let published: [[u64; 2]; 2] = [
            [0xe6a8_25ba_047f_81a3, 0x9302_55c7_1472_f66d],
            [0x44af_996b_d8c1_87da, 0x45fc_229b_1159_7634],
        ];
        assert_eq!(sip::<2, 4>(key, &[]), published[0]);
        assert_eq!(sip::<2, 4>(key, &[0]), published[1]);
    }

    #[test]
    fn every_byte_and_the_length_count() {
        let digester = Digester::new();
        let mut seen = std::collections::HashSet::new();
        for size in 0..40 {
            let mut bytes = vec![0; size];
            assert!(seen.insert(digester.digest(&bytes)));
            for at in 0..size {
                bytes[at] = 1;
                assert!(seen.insert(digester.digest(&bytes)));
                bytes[at] = 0;
            }
        }
        let other = Digester::new();
        assert_ne!(digester.digest(b"key"), other.digest(b"key"));
    }
}
