//! How is a producer found by its id?
//!
//! [`IdMap`] keeps items in the order they came and finds them by producer id through an
//! open-addressing table of 4-byte slots: 48 bytes of entry and at most 11 of table a producer.

use std::hash::{BuildHasher, RandomState};

/// What an [`IdMap`] holds: something that has a producer id which never changes.
pub(super) trait Identified {
    fn producer_id(&self) -> i64;
}

/// Items by producer id, in the order they were inserted.
#[derive(Clone, Debug)]
pub(super) struct IdMap<T> {
    items: Vec<T>,
    /// For each bucket the slot in `items`, or `VACANT`. Empty, or a power of two long.
    buckets: Vec<u32>,
    /// How far a hash is shifted to become a bucket.
    shift: u32,
    /// Not to be guessed: the ids come from files, and colliding ones would make it slow.
    seed: u64,
    /// The slot found last. Batches of one producer often follow each other.
    recent: usize,
}

const VACANT: u32 = u32::MAX;
const BUCKETS_MIN: usize = 8;
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl<T: Identified> IdMap<T> {
    pub(super) fn new() -> Self {
        let seed = RandomState::new().hash_one(0_u64);
        IdMap { items: Vec::new(), buckets: Vec::new(), shift: 64, seed, recent: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    pub(super) fn get(&self, producer_id: i64) -> Option<&T> {
        self.items.get(self.find(producer_id)?)
    }

    pub(super) fn get_mut(&mut self, producer_id: i64) -> Option<&mut T> {
        let slot = self.find(producer_id)?;
        self.items.get_mut(slot)
    }

    /// The item at a place that [`slot_or_insert_with`](Self::slot_or_insert_with) gave.
    #[inline]
    pub(super) fn at_mut(&mut self, slot: usize) -> &mut T {
        self.items.get_mut(slot).expect("the slot of an item that was found or inserted")
    }

    /// The place among the items of the one of this id, which `make` makes when it is new.
    #[inline]
    pub(super) fn slot_or_insert_with(
        &mut self,
        producer_id: i64,
        make: impl FnOnce() -> T,
    ) -> usize {
        if self.items.get(self.recent).is_some_and(|item| item.producer_id() == producer_id) {
            return self.recent;
        }
        let slot = match self.find(producer_id) {
            Some(slot) => slot,
            None => self.insert(make()),
        };
        self.recent = slot;
        slot
    }

    /// Makes room for so many more items.
    pub(super) fn reserve(&mut self, count: usize) {
        self.items.reserve(count);
        let all = self.items.len().saturating_add(count);
        let mut buckets = self.buckets.len().max(BUCKETS_MIN);
        while is_full(all, buckets) {
            buckets *= 2;
        }
        if count > 0 && buckets > self.buckets.len() {
            self.rehash(buckets);
        }
    }

    /// Inserts an item of an id that is not known, and says whether it was so.
    #[inline]
    pub(super) fn insert_new(&mut self, item: T) -> bool {
        let slot = self.items.len();
        if is_full(slot + 1, self.buckets.len()) {
            self.rehash((self.buckets.len() * 2).max(BUCKETS_MIN));
        }
        let mask = self.buckets.len() - 1;
        let mut bucket = self.bucket(item.producer_id());
        while let Some(&taken) = self.buckets.get(bucket).filter(|&&taken| taken != VACANT) {
            let known = usize::try_from(taken).ok().and_then(|slot| self.items.get(slot));
            if known.is_some_and(|known| known.producer_id() == item.producer_id()) {
                return false;
            }
            bucket = (bucket + 1) & mask;
        }
        if let Some(vacant) = self.buckets.get_mut(bucket) {
            *vacant = bucket_entry(slot);
        }
        self.items.push(item);
        true
    }

    /// Keeps the items for which `keep` says so, in their order.
    pub(super) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        let before = self.items.len();
        self.items.retain(keep);
        if self.items.len() != before {
            self.recent = 0;
            self.rehash(self.buckets.len());
        }
    }

    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.buckets.fill(VACANT);
        self.recent = 0;
    }

    fn insert(&mut self, item: T) -> usize {
        let slot = self.items.len();
        if is_full(slot + 1, self.buckets.len()) {
            self.rehash((self.buckets.len() * 2).max(BUCKETS_MIN));
        }
        let producer_id = item.producer_id();
        self.items.push(item);
        self.occupy(producer_id, slot);
        slot
    }

    fn rehash(&mut self, buckets: usize) {
        self.buckets.clear();
        self.buckets.resize(buckets, VACANT);
        self.shift = 64 - buckets.trailing_zeros();
        for slot in 0..self.items.len() {
            if let Some(producer_id) = self.items.get(slot).map(Identified::producer_id) {
                self.occupy(producer_id, slot);
            }
        }
    }

    fn occupy(&mut self, producer_id: i64, slot: usize) {
        let mask = self.buckets.len() - 1;
        let mut bucket = self.bucket(producer_id);
        while self.buckets.get(bucket).is_some_and(|&slot| slot != VACANT) {
            bucket = (bucket + 1) & mask;
        }
        if let Some(vacant) = self.buckets.get_mut(bucket) {
            *vacant = bucket_entry(slot);
        }
    }

    #[inline]
    fn find(&self, producer_id: i64) -> Option<usize> {
        let mask = self.buckets.len().checked_sub(1)?;
        let mut bucket = self.bucket(producer_id);
        loop {
            let slot = *self.buckets.get(bucket)?;
            // The vacant mark lies behind every item.
            let slot = usize::try_from(slot).ok()?;
            if self.items.get(slot)?.producer_id() == producer_id {
                return Some(slot);
            }
            bucket = (bucket + 1) & mask;
        }
    }

    #[inline]
    fn bucket(&self, producer_id: i64) -> usize {
        let (low, high) = (producer_id.cast_unsigned() ^ self.seed).carrying_mul(MULTIPLIER, 0);
        // Shifting by all 64 bits cannot happen: there are at least eight buckets.
        usize::try_from((low ^ high) >> (self.shift & 63)).unwrap_or(0)
    }
}

/// Whether so many items are too many. A bucket of four stays vacant, so that a search ends soon
/// and always ends.
fn is_full(items: usize, buckets: usize) -> bool {
    items.saturating_mul(4) > buckets.saturating_mul(3)
}

fn bucket_entry(slot: usize) -> u32 {
    u32::try_from(slot).expect("2^32 producers do not fit into memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Identified for i64 {
        fn producer_id(&self) -> i64 {
            *self
        }
    }

    #[test]
    fn what_was_inserted_is_found_in_its_order() {
        let mut map = IdMap::new();
        let ids: Vec<i64> = (0..1000).map(|i| i * 4096 - 77).chain([i64::MIN, i64::MAX]).collect();
        for &id in &ids {
            assert_eq!(map.get(id), None);
            let slot = map.slot_or_insert_with(id, || id);
            assert_eq!(*map.at_mut(slot), id);
        }
        assert_eq!(map.items(), ids);
        assert!(ids.iter().all(|&id| map.get(id) == Some(&id)));
        assert_eq!(map.get(5), None);
    }

    #[test]
    fn what_was_removed_is_not_found_and_the_rest_still_is() {
        let mut map = IdMap::new();
        (0..100).for_each(|id| assert_eq!(map.slot_or_insert_with(id, || id), map.len() - 1));
        map.retain(|id| id % 3 == 0);
        for id in 0..100 {
            assert_eq!(map.get(id).is_some(), id % 3 == 0, "{id}");
        }
        map.clear();
        assert_eq!((map.len(), map.get(0)), (0, None));
        assert_eq!(map.slot_or_insert_with(0, || 0), 0);
    }

    #[test]
    fn what_is_new_is_inserted_with_and_without_room() {
        for room in [0, 5, 1000] {
            let mut map = IdMap::new();
            map.reserve(room);
            let ids = || (0..500_i64).map(|i| i * 4096 - 77);
            assert!(ids().all(|id| map.insert_new(id)));
            assert!(!ids().any(|id| map.insert_new(id)));
            assert_eq!(map.items(), ids().collect::<Vec<_>>());
            assert!(ids().all(|id| map.get(id) == Some(&id)));
            map.reserve(room);
            assert!(ids().all(|id| map.get(id) == Some(&id)));
        }
    }

    #[test]
    fn an_empty_map_finds_nothing() {
        let mut map = IdMap::<i64>::new();
        assert_eq!(map.get(0), None);
        assert_eq!(map.get_mut(-1), None);
        map.retain(|_| false);
        map.clear();
    }
}
