//! Topic, directory and incarnation ids: 16 bytes, written as 22 characters of base64url.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// An id of Kafka: of a topic, of a log directory or of a broker's life.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// All zeros: "unknown", and as a directory id "may be anywhere" (being migrated).
    pub const ZERO: Uuid = Uuid([0; 16]);

    /// The id whose upper half is 0 and whose lower half is `low`; directory ids below 100 are
    /// reserved.
    #[must_use]
    pub const fn reserved(low: u64) -> Self {
        Uuid((low as u128).to_be_bytes())
    }

    /// A new id, as random as the keys of the standard library's hash maps; its text does not begin
    /// with a dash.
    #[must_use]
    pub fn random() -> Self {
        loop {
            let half = |number: u64| RandomState::new().hash_one(number).to_be_bytes();
            let (first, second) = (half(0), half(1));
            let mut bytes = [0; 16];
            for (to, from) in bytes.iter_mut().zip(first.iter().chain(&second)) {
                *to = *from;
            }
            // Version 4, variant 1.
            let [_, _, _, _, _, _, version, _, variant, ..] = &mut bytes;
            *version = (*version & 0x0f) | 0x40;
            *variant = (*variant & 0x3f) | 0x80;
            let id = Uuid(bytes);
            if !id.to_string().starts_with('-') {
                return id;
            }
        }
    }

    /// Reads the text form: 22 characters of base64url, or 24 with their padding. `None` for
    /// anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix("==").unwrap_or(text);
        if text.len() != 22 {
            return None;
        }
        // 22 characters carry 132 bits: the last four are beyond the id, and Kafka does not look at
        // them.
        let mut bits: u128 = 0;
        for (at, character) in text.bytes().enumerate() {
            let sextet = ALPHABET.iter().position(|&known| known == character)?;
            let sextet = u128::try_from(sextet).ok()?;
            bits = if at < 21 { (bits << 6) | sextet } else { (bits << 2) | (sextet >> 4) };
        }
        Some(Uuid(bits.to_be_bytes()))
    }
}

/// What is known by id. An id is hashed in a few cycles, since it is looked up with each read.
pub type UuidMap<T> = HashMap<Uuid, T, UuidState>;

/// The seed of a [`UuidMap`]. It cannot be guessed: ids come from files, and colliding ones would
/// make the map slow.
#[derive(Clone, Copy, Debug)]
pub struct UuidState(u64);

impl Default for UuidState {
    fn default() -> Self {
        UuidState(RandomState::new().hash_one(0_u64))
    }
}

impl BuildHasher for UuidState {
    type Hasher = UuidHasher;

    #[inline]
    fn build_hasher(&self) -> UuidHasher {
        UuidHasher(self.0)
    }
}

/// Hashes a [`Uuid`].
#[derive(Clone, Copy, Debug)]
pub struct UuidHasher(u64);

impl Hasher for UuidHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        for half in bytes.chunks(8) {
            let word = half.iter().fold(0, |word, byte| (word << 8) | u64::from(*byte));
            let (low, high) = (self.0 ^ word).carrying_mul(MULTIPLIER, 0);
            self.0 = low ^ high;
        }
    }

    /// The number of an id's bytes, which says nothing.
    #[inline]
    fn write_usize(&mut self, _: usize) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        let mut text = String::with_capacity(22);
        for at in 0..22_u32 {
            // The last character has only two bits left, which are its upper ones.
            let sextet = if at < 21 { bits >> (122 - 6 * at) } else { bits << 4 };
            let slot = usize::try_from(sextet & 63).unwrap_or_default();
            text.push(char::from(ALPHABET.get(slot).copied().unwrap_or(b'A')));
        }
        f.pad(&text)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_id_reads_back() {
        for (text, low) in [("AAAAAAAAAAAAAAAAAAAAAA", 0), ("AAAAAAAAAAAAAAAAAAAAAQ", 1)] {
            assert_eq!(Uuid::parse(text), Some(Uuid::reserved(low)));
            assert_eq!(Uuid::reserved(low).to_string(), text);
        }
        let all_ones = Uuid([0xff; 16]);
        assert_eq!(all_ones.to_string(), "_____________________w");
        assert_eq!(Uuid::parse("_____________________w"), Some(all_ones));
        let seen = "dQXn6_shsHA9xXaWVqaNIw";
        assert_eq!(Uuid::parse(seen).unwrap().to_string(), seen);
        assert_eq!(Uuid::parse("dQXn6_shsHA9xXaWVqaNIw=="), Uuid::parse(seen));
    }

    #[test]
    fn random_ids_differ_and_are_of_version_4() {
        let ids: std::collections::BTreeSet<Uuid> = (0..1000).map(|_| Uuid::random()).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            assert_eq!((id.0[6] >> 4, id.0[8] >> 6), (4, 2));
            assert!(!id.to_string().starts_with('-'));
        }
    }

    #[test]
    fn a_text_that_is_no_id_is_refused() {
        for text in
            ["", "A", "AAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAA+AAAAAAAAAAA"]
        {
            assert_eq!(Uuid::parse(text), None, "{text}");
        }
        assert_eq!(Uuid::parse("ÄÄÄÄÄÄÄÄÄÄÄ"), None);
    }

    #[test]
    fn ids_that_count_up_in_either_half_fill_a_map_evenly() {
        let state = UuidState::default();
        for shift in [0, 20, 64, 100] {
            let mut buckets = [0_u32; 64];
            for number in 0..6400_u128 {
                let id = Uuid((number << shift).to_be_bytes());
                let at = usize::try_from(state.hash_one(id) % 64).unwrap();
                buckets[at] += 1;
            }
            assert!(buckets.iter().all(|count| (40..200).contains(count)), "{shift} {buckets:?}");
        }
    }
}
