//! Topic, directory and incarnation ids: 16 bytes, written as 22 characters of base64url.

use std::fmt;

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
        use std::hash::{BuildHasher, RandomState};
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
}
