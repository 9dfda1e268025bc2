//! What is known of all producers of a log?
//!
//! [`ProducerTable`] holds one [`ProducerEntry`] a producer and writes them in the order that
//! Kafka would: the iteration order of a `java.util.HashMap` keyed by the id.

use super::id_map::{IdMap, Identified};
use super::producer::ProducerEntry;
use super::snapshot::{Snapshot, write_snapshot};

/// The producers of one log, in the order they became known.
#[derive(Clone, Debug)]
pub struct ProducerTable {
    entries: IdMap<ProducerEntry>,
    order: JavaOrder,
}

impl Identified for ProducerEntry {
    #[inline]
    fn producer_id(&self) -> i64 {
        self.producer_id
    }
}

impl Default for ProducerTable {
    fn default() -> Self {
        Self::new()
    }
}

impl ProducerTable {
    /// No producers.
    #[must_use]
    pub fn new() -> Self {
        ProducerTable { entries: IdMap::new(), order: JavaOrder::new() }
    }

    /// The producers of a snapshot that are not expired at `now_ms`.
    #[must_use]
    pub fn from_snapshot(snapshot: &Snapshot<'_>, now_ms: i64, expiration_ms: i64) -> Self {
        let mut table = Self::new();
        for entry in snapshot.iter() {
            if !entry.is_expired(now_ms, expiration_ms) {
                *table.get_or_insert(entry.producer_id) = entry;
            }
        }
        table
    }

    /// The bytes of a snapshot, producers in Kafka's order.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        write_snapshot(self.order.sorted(self.entries(), |entry| entry.producer_id))
    }

    /// How many producers are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no producer is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// The producers in the order they became known.
    #[must_use]
    pub fn entries(&self) -> &[ProducerEntry] {
        self.entries.items()
    }

    /// What is known of a producer.
    #[must_use]
    pub fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.entries.get(producer_id)
    }

    /// The entry of a producer, an empty one when it is new. Its id must stay as it is.
    #[inline]
    pub(super) fn get_or_insert(&mut self, producer_id: i64) -> &mut ProducerEntry {
        let known = self.entries.len();
        let slot =
            self.entries.slot_or_insert_with(producer_id, || ProducerEntry::empty(producer_id));
        if slot == known {
            let others = self.entries.items().iter().take(known).map(|entry| entry.producer_id);
            self.order.inserted(producer_id, others);
        }
        self.entries.at_mut(slot)
    }

    pub(super) fn get_mut(&mut self, producer_id: i64) -> Option<&mut ProducerEntry> {
        self.entries.get_mut(producer_id)
    }

    /// Forgets the producers that are expired at `now_ms`.
    pub fn remove_expired(&mut self, now_ms: i64, expiration_ms: i64) {
        self.entries.retain(|entry| !entry.is_expired(now_ms, expiration_ms));
    }

    /// Forgets every producer.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

/// The size a `java.util.HashMap` with the same insertions would have, which decides its order.
///
/// It never shrinks, not even when the map is cleared.
// spec: producer-state A5
#[derive(Clone, Copy, Debug)]
pub(super) struct JavaOrder {
    capacity: u32,
}

const CAPACITY_MIN: u32 = 16;
const CAPACITY_MAX: u32 = 1 << 30;
/// A bucket that grows beyond this many items is made a tree.
const LIST_ITEMS_MAX: usize = 8;
/// ... but below this capacity the map is doubled instead.
const TREE_CAPACITY_MIN: u32 = 64;

impl JavaOrder {
    pub(super) fn new() -> Self {
        JavaOrder { capacity: CAPACITY_MIN }
    }

    /// Takes note that `id` was inserted beside `others`.
    pub(super) fn inserted(&mut self, id: i64, others: impl ExactSizeIterator<Item = i64>) {
        let count = others.len() + 1;
        if self.looks_at_ids() {
            // Below 64 buckets there are at most 48 others to look at.
            let bucket = self.bucket(id);
            let alike = others.filter(|&other| self.bucket(other) == bucket).count();
            if alike >= LIST_ITEMS_MAX {
                self.double();
            }
        }
        self.holds(count);
    }

    /// Whether its size depends on which ids are inserted, and not on their number alone.
    #[inline]
    pub(super) fn looks_at_ids(&self) -> bool {
        self.capacity < TREE_CAPACITY_MIN
    }

    /// Takes note that there are so many items now.
    pub(super) fn holds(&mut self, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        while count > self.capacity / 4 * 3 && self.capacity < CAPACITY_MAX {
            self.double();
        }
    }

    /// The items in the order of the map: buckets rising, within a bucket as inserted.
    ///
    /// A bucket of more than eight items in a large map is a tree in Java, whose root comes
    /// first and whose later items come behind their parents. That order is not imitated: it
    /// takes nine ids alike in all the bits that count, and no reader depends on it.
    pub(super) fn sorted<'a, T>(&self, items: &'a [T], id: impl Fn(&T) -> i64) -> Vec<&'a T> {
        let mut sorted: Vec<&T> = items.iter().collect();
        sorted.sort_by_key(|item| self.bucket(id(item)));
        sorted
    }

    fn double(&mut self) {
        self.capacity = (self.capacity * 2).min(CAPACITY_MAX);
    }

    fn bucket(&self, id: i64) -> u32 {
        let [a, b, c, d, e, f, g, h] = id.to_be_bytes();
        let hash = u32::from_be_bytes([a, b, c, d]) ^ u32::from_be_bytes([e, f, g, h]);
        (hash ^ (hash >> 16)) & (self.capacity - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(ids: impl IntoIterator<Item = i64>) -> ProducerTable {
        let mut table = ProducerTable::new();
        ids.into_iter().for_each(|id| table.get_or_insert(id).last_timestamp = 0);
        table
    }

    fn order(table: &ProducerTable) -> Vec<i64> {
        let bytes = table.snapshot();
        Snapshot::read(&bytes).unwrap().iter().map(|entry| entry.producer_id).collect()
    }

    #[test]
    fn small_ids_are_written_in_rising_order() {
        assert_eq!(order(&table([5, 3, 9, 0])), [0, 3, 5, 9]);
    }

    #[test]
    fn ids_of_one_bucket_are_written_as_inserted() {
        // 12 items leave 16 buckets, the 13th makes them 32.
        let ids: Vec<i64> = (0..11).chain([16]).collect();
        assert_eq!(order(&table(ids.clone()))[..3], [0, 16, 1]);
        let more: Vec<i64> = ids.into_iter().chain([11]).collect();
        assert_eq!(order(&table(more))[11..], [11, 16]);
        assert_eq!(order(&table([33, 1, 17]))[..], [33, 1, 17]);
    }

    #[test]
    fn the_upper_half_of_an_id_and_its_upper_bits_count_towards_the_bucket() {
        // Hashes: 1 << 32 is 1; 3 << 16 is spread to 3; -1 is 0.
        let ids = [3_i64 << 16, 2, 1 << 32, -1];
        assert_eq!(order(&table(ids)), [-1, 1 << 32, 2, 3 << 16]);
    }

    #[test]
    fn the_ninth_id_of_a_bucket_doubles_a_small_map() {
        let alike: Vec<i64> = (0..9).map(|i| 1 + i * 16).collect();
        // Of 32 buckets: 1, 33, 65, 97, 129 in bucket 1; 17, 49, ... in bucket 17.
        let expected = [1, 33, 65, 97, 129, 17, 49, 81, 113];
        assert_eq!(order(&table(alike)), expected);
    }

    #[test]
    fn a_map_never_shrinks() {
        let mut shrunk = table(0..13);
        shrunk.remove_expired(1, 1);
        assert!(shrunk.is_empty());
        shrunk.get_or_insert(16);
        shrunk.get_or_insert(1);
        assert_eq!(order(&shrunk), [1, 16]);
        let mut cleared = table(0..13);
        cleared.clear();
        cleared.get_or_insert(16);
        cleared.get_or_insert(1);
        assert_eq!(order(&cleared), [1, 16]);
        assert_eq!(order(&table([16, 1])), [16, 1]);
    }

    #[test]
    fn a_snapshot_brings_back_all_but_expired_producers() {
        // spec: behaviours PS-029
        let mut before = table([1, 2, 3]);
        before.get_or_insert(2).last_timestamp = 1000;
        before.get_or_insert(3).txn_first_offset = 7;
        let bytes = before.snapshot();
        let after = ProducerTable::from_snapshot(&Snapshot::read(&bytes).unwrap(), 1005, 10);
        assert_eq!(after.get(1), None);
        assert_eq!(after.get(2), before.get(2));
        assert_eq!(after.get(3), before.get(3));
        assert_eq!(after.len(), 2);
    }

    #[test]
    fn of_two_entries_of_one_producer_the_later_holds() {
        let [first, mut second] = [ProducerEntry::empty(4); 2];
        second.last_timestamp = 9;
        let bytes = write_snapshot(&[first, second]);
        let table = ProducerTable::from_snapshot(&Snapshot::read(&bytes).unwrap(), 0, i64::MAX);
        assert_eq!(table.entries(), [second]);
    }
}
