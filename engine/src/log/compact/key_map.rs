//! What is the last offset of each key?
//!
//! An open table of 24 bytes a slot: the key's digest of 16 bytes, and the offset plus one, so that
//! zero is an empty slot. As Kafka's it is bounded by bytes of memory and takes keys up to a load
//! factor; unlike Kafka's it is no larger than the round needs.

use super::digest::{Digest, Digester};
use crate::error::{Error, Kind, Result};

/// Bytes of a slot, in Kafka's map too: they and the memory say how many slots there are.
pub(super) const SLOT_BYTES: usize = 24;
const SLOTS_MIN: usize = 16;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    digest: Digest,
    /// 0 for an empty slot.
    offset_plus_one: u64,
}

const _: () = assert!(size_of::<Slot>() == SLOT_BYTES);

/// Keys and the last offset of each.
#[derive(Debug)]
pub(super) struct KeyMap {
    digester: Digester,
    slots: Vec<Slot>,
    slot_count_max: usize,
    key_count_max: usize,
    key_count: usize,
    latest_offset: i64,
}

impl KeyMap {
    /// A map that takes as many keys as Kafka's would with so many bytes and this load factor, but
    /// one at least.
    pub(super) fn new(memory_bytes: usize, load_factor: f64) -> Self {
        let slot_count = memory_bytes / SLOT_BYTES;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "Kafka computes the limit so; what is negative or no number becomes 0"
        )]
        let limit = (slot_count as f64 * load_factor.min(1.0)) as usize;
        let key_count_max = limit.max(1);
        KeyMap {
            digester: Digester::new(),
            slots: Vec::new(),
            // One slot is always empty, so that every search ends.
            slot_count_max: slot_count.max(key_count_max + 1),
            key_count_max,
            key_count: 0,
            latest_offset: -1,
        }
    }

    /// Forgets everything, and makes room for so many keys as far as memory may be used.
    ///
    /// # Errors
    /// `Limit` when there is no such memory.
    pub(super) fn restart(&mut self, expected_count: u64) -> Result<()> {
        let expected = usize::try_from(expected_count).unwrap_or(usize::MAX);
        let wanted =
            expected.saturating_mul(2).clamp(SLOTS_MIN, self.slot_count_max.max(SLOTS_MIN));
        self.slots.clear();
        self.slots.try_reserve_exact(wanted).map_err(|_| {
            let message = format!("no memory for a map of {wanted} keys");
            Error::new(Kind::Limit, message)
        })?;
        self.slots.resize(wanted, Slot::default());
        self.key_count = 0;
        self.latest_offset = -1;
        Ok(())
    }

    /// Whether it takes no more keys.
    pub(super) fn is_full(&self) -> bool {
        self.key_count >= self.key_count_max
    }

    /// How many keys it has.
    pub(super) fn key_count(&self) -> usize {
        self.key_count
    }

    /// The last offset that it speaks for: of every key before it the latest is known. -1 for none.
    pub(super) fn latest_offset(&self) -> i64 {
        self.latest_offset
    }

    /// Says that everything up to `offset` was read.
    pub(super) fn read_up_to(&mut self, offset: i64) {
        self.latest_offset = offset;
    }

    /// What stands for a key here.
    pub(super) fn digest(&self, key: &[u8]) -> Digest {
        self.digester.digest(key)
    }

    /// Has memory bring the places of keys that are looked for next, all at the same time: each
    /// would be waited for alone else, as the map is larger than any cache.
    pub(super) fn warm(&self, digests: impl Iterator<Item = Digest>) {
        let count = self.slots.len();
        let places = digests.map(|digest| self.slots.get(slot_of(digest[0], count)));
        let seen = places.map(|slot| slot.map_or(0, |slot| slot.offset_plus_one));
        std::hint::black_box(seen.fold(0, |all, offset| all ^ offset));
    }

    /// Takes a later offset of a key. It must not be full.
    pub(super) fn put(&mut self, digest: Digest, offset: i64) {
        let Some(at) = self.find(digest) else { return };
        if let Some(slot) = self.slots.get_mut(at) {
            self.key_count += usize::from(slot.offset_plus_one == 0);
            *slot = Slot { digest, offset_plus_one: offset.cast_unsigned().wrapping_add(1) };
        }
        // spec: behaviours CL-007. In the middle of a batch, too.
        self.latest_offset = offset;
    }

    /// The last offset of a key, -1 when it is not known.
    pub(super) fn get(&self, digest: Digest) -> i64 {
        let slot = self.find(digest).and_then(|at| self.slots.get(at));
        slot.map_or(-1, |slot| slot.offset_plus_one.wrapping_sub(1).cast_signed())
    }

    /// The slot of a digest, or the empty one where it belongs.
    fn find(&self, digest: Digest) -> Option<usize> {
        let start = slot_of(digest[0], self.slots.len());
        let (front, back) = self.slots.split_at_checked(start)?;
        let is_it = |slot: &Slot| slot.offset_plus_one == 0 || slot.digest == digest;
        match back.iter().position(is_it) {
            Some(at) => Some(start + at),
            None => front.iter().position(is_it),
        }
    }

    /// Gives its memory back.
    pub(super) fn release(&mut self) {
        self.slots = Vec::new();
        self.key_count = 0;
    }
}

/// The slot at which a search begins: the digest as a part of all digests.
fn slot_of(digest: u64, slot_count: usize) -> usize {
    let slot = (u128::from(digest) * u128::try_from(slot_count).unwrap_or(0)) >> 64;
    usize::try_from(slot).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn put(map: &mut KeyMap, key: &[u8], offset: i64) {
        let digest = map.digest(key);
        map.warm(std::iter::once(digest));
        map.put(digest, offset);
    }

    fn get(map: &KeyMap, key: &[u8]) -> i64 {
        map.get(map.digest(key))
    }

    #[test]
    fn a_map_takes_as_many_keys_as_kafkas() {
        let limits = [(24 * 4, 0.75, 3), (24 * 2, 0.75, 1), (24 * 10, 0.9, 9), (23, 0.9, 1)];
        for (bytes, factor, expected) in limits {
            let mut map = KeyMap::new(bytes, factor);
            map.restart(1 << 40).unwrap();
            let mut count = 0_i64;
            while !map.is_full() {
                put(&mut map, &count.to_be_bytes(), count);
                count += 1;
            }
            assert_eq!(count, expected, "{bytes} bytes");
            // A full table still ends a search.
            assert_eq!(get(&map, b"another"), -1);
        }
    }

    #[test]
    fn the_last_offset_of_each_key_is_known() {
        let mut map = KeyMap::new(24 * 1000, 1.0);
        map.restart(500).unwrap();
        let mut model = HashMap::new();
        for offset in 0..2000_i64 {
            let key = (offset * 7919 % 499).to_be_bytes();
            put(&mut map, &key, offset);
            model.insert(key, offset);
        }
        assert_eq!((map.key_count(), map.latest_offset()), (model.len(), 1999));
        for (key, offset) in &model {
            assert_eq!(get(&map, key), *offset);
        }
        assert_eq!(get(&map, &499_i64.to_be_bytes()), -1);
        assert_eq!(get(&map, b""), -1);
        map.restart(1).unwrap();
        assert_eq!((map.key_count(), map.latest_offset()), (0, -1));
        assert_eq!(get(&map, &0_i64.to_be_bytes()), -1);
    }

    #[test]
    fn offset_zero_is_an_offset() {
        let mut map = KeyMap::new(24 * 10, 0.9);
        map.restart(1).unwrap();
        put(&mut map, b"", 0);
        assert_eq!((get(&map, b""), map.latest_offset()), (0, 0));
        map.read_up_to(7_206_178);
        assert_eq!(map.latest_offset(), 7_206_178);
    }
}
