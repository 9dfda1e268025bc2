//! How do many producers take little memory?
//!
//! ```text
//! PackedProducer   52 bytes: the newest batch, and all else by what it differs from that
//! OlderBatch       28 bytes: a batch, and where the one before it is
//! wide             whole, the few that do not fit
//! ```
//!
//! A log has many producers that wrote one batch, and few with five. Whoever asks gets a
//! [`LiveProducer`], made when it is asked for.

use std::collections::BTreeMap;

use super::entry::{BatchMetadata, LiveProducer, NO_BATCH};
use crate::state::id_map::{IdMap, Identified};
use crate::state::producer::{NO_OFFSET, ProducerEntry};

/// No batch before, as a link; no transaction, as a distance.
const NONE: u32 = u32::MAX;
/// Stands where the batches are counted of a producer that is kept whole.
const WIDE: u8 = u8::MAX;

/// The producers of a log, in the order they became known.
#[derive(Clone, Debug)]
pub(super) struct Producers {
    packed: IdMap<PackedProducer>,
    older: OlderBatches,
    wide: BTreeMap<i64, LiveProducer>,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct PackedProducer {
    producer_id: i64,
    last_timestamp: i64,
    /// The last offset of the newest batch.
    last_offset: i64,
    last_sequence: i32,
    offset_delta: i32,
    /// The last timestamp less that of the newest batch.
    timestamp_lead: i32,
    /// The last offset less the first of the transaction; `NONE` without one.
    txn_span: u32,
    coordinator_epoch: i32,
    /// Where the batch before the newest is.
    older: u32,
    producer_epoch: i16,
    /// How many batches are remembered, or `WIDE`.
    batch_count: u8,
}

const _: () = assert!(size_of::<PackedProducer>() == 52);
const _: () = assert!(size_of::<OlderBatch>() == 28);

impl Identified for PackedProducer {
    #[inline]
    fn producer_id(&self) -> i64 {
        self.producer_id
    }
}

impl PackedProducer {
    /// `None` when it does not fit. Older batches are linked by the caller.
    fn of(producer: &LiveProducer) -> Option<Self> {
        let batches = producer.batches();
        let lead = match batches.last() {
            None => 0,
            Some(newest) => producer.last_timestamp.checked_sub(newest.timestamp)?,
        };
        let packed = Self::of_entry(&producer.entry())?;
        Some(PackedProducer {
            timestamp_lead: i32::try_from(lead).ok()?,
            batch_count: u8::try_from(batches.len()).ok()?,
            ..packed
        })
    }

    /// Of one that is known from a snapshot: with one batch at most.
    #[inline]
    fn of_entry(entry: &ProducerEntry) -> Option<Self> {
        let txn_span = match entry.txn_first_offset {
            NO_OFFSET => NONE,
            first => {
                let span = u32::try_from(entry.last_offset.checked_sub(first)?).ok()?;
                Some(span).filter(|span| *span != NONE)?
            }
        };
        Some(PackedProducer {
            producer_id: entry.producer_id,
            last_timestamp: entry.last_timestamp,
            last_offset: entry.last_offset,
            last_sequence: entry.last_sequence,
            offset_delta: entry.offset_delta,
            timestamp_lead: 0,
            txn_span,
            coordinator_epoch: entry.coordinator_epoch,
            older: NONE,
            producer_epoch: entry.producer_epoch,
            batch_count: u8::from(entry.has_batch()),
        })
    }

    /// Says only that it is kept elsewhere.
    fn wide(producer_id: i64) -> Self {
        let packed = Self::of_entry(&ProducerEntry::empty(producer_id));
        let packed = packed.expect("a producer without a transaction fits");
        PackedProducer { last_timestamp: 0, batch_count: WIDE, ..packed }
    }

    fn is_wide(&self) -> bool {
        self.batch_count == WIDE
    }

    fn newest(&self) -> Option<BatchMetadata> {
        (self.batch_count > 0).then(|| BatchMetadata {
            last_offset: self.last_offset,
            timestamp: self.last_timestamp.wrapping_sub(i64::from(self.timestamp_lead)),
            last_sequence: self.last_sequence,
            offset_delta: self.offset_delta,
        })
    }

    /// What is known of it, with these batches, oldest first.
    fn with_batches(&self, batches: impl Iterator<Item = BatchMetadata>) -> LiveProducer {
        let mut producer = LiveProducer::empty(self.producer_id);
        producer.last_timestamp = self.last_timestamp;
        if self.txn_span != NONE {
            producer.txn_first_offset = self.last_offset.wrapping_sub(i64::from(self.txn_span));
        }
        producer.coordinator_epoch = self.coordinator_epoch;
        producer.producer_epoch = self.producer_epoch;
        batches.for_each(|batch| producer.push(batch));
        producer
    }
}

impl Producers {
    pub(super) fn new() -> Self {
        Producers { packed: IdMap::new(), older: OlderBatches::new(), wide: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.packed.len()
    }

    /// The ids, in the order they became known.
    pub(super) fn ids(&self) -> impl ExactSizeIterator<Item = i64> {
        self.packed.items().iter().map(|packed| packed.producer_id)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = LiveProducer> {
        self.packed.items().iter().map(|packed| self.unpack(packed))
    }

    /// What a snapshot keeps of each.
    pub(super) fn entries(&self) -> impl ExactSizeIterator<Item = ProducerEntry> {
        self.packed.items().iter().map(|packed| self.entry(packed))
    }

    pub(super) fn get(&self, producer_id: i64) -> Option<LiveProducer> {
        self.packed.get(producer_id).map(|packed| self.unpack(packed))
    }

    pub(super) fn knows(&self, producer_id: i64) -> bool {
        self.packed.get(producer_id).is_some()
    }

    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, count: usize) {
        self.packed.reserve(count);
    }

    /// As [`put`](Self::put), of a producer as a snapshot has it: nearly always it is new.
    #[inline]
    pub(super) fn put_entry(&mut self, entry: &ProducerEntry) -> bool {
        let is_new = PackedProducer::of_entry(entry).is_some_and(|it| self.packed.insert_new(it));
        is_new || self.put(&LiveProducer::from_entry(entry))
    }

    /// Takes what is known of a producer from now on; says whether it is new.
    pub(super) fn put(&mut self, producer: &LiveProducer) -> bool {
        let (id, known) = (producer.producer_id, self.packed.len());
        let slot = self.packed.slot_or_insert_with(id, || PackedProducer::wide(id));
        let before = *self.packed.at_mut(slot);
        if before.is_wide() && slot != known {
            self.wide.remove(&id);
        }
        let older = producer.batches().split_last().map_or(&[][..], |(_, older)| older);
        let packed = PackedProducer::of(producer).and_then(|mut packed| {
            packed.older = self.older.replace(before.older, older)?;
            Some(packed)
        });
        *self.packed.at_mut(slot) = match packed {
            Some(packed) => packed,
            None => {
                self.older.free(before.older);
                self.wide.insert(id, producer.clone());
                PackedProducer::wide(id)
            }
        };
        slot == known
    }

    /// Keeps the producers for which `keep` says so.
    pub(super) fn retain(&mut self, keep: impl Fn(&ProducerEntry) -> bool) {
        let Producers { packed, older, wide } = self;
        packed.retain(|packed| {
            let id = packed.producer_id;
            let is_kept = match wide.get(&id) {
                Some(whole) => keep(&whole.entry()),
                None => keep(&packed.with_batches(packed.newest().into_iter()).entry()),
            };
            if !is_kept {
                wide.remove(&id);
                older.free(packed.older);
            }
            is_kept
        });
    }

    pub(super) fn clear(&mut self) {
        self.packed.clear();
        self.older = OlderBatches::new();
        self.wide.clear();
    }

    fn entry(&self, packed: &PackedProducer) -> ProducerEntry {
        match self.whole(packed) {
            Some(whole) => whole.entry(),
            None => packed.with_batches(packed.newest().into_iter()).entry(),
        }
    }

    fn unpack(&self, packed: &PackedProducer) -> LiveProducer {
        if let Some(whole) = self.whole(packed) {
            return whole.clone();
        }
        let mut newest_first = [NO_BATCH; 4];
        let mut count = 0;
        for (place, batch) in newest_first.iter_mut().zip(self.older.chain(packed.older)) {
            *place = batch;
            count += 1;
        }
        let older = newest_first.into_iter().take(count).rev();
        packed.with_batches(older.chain(packed.newest()))
    }

    fn whole(&self, packed: &PackedProducer) -> Option<&LiveProducer> {
        if packed.is_wide() { self.wide.get(&{ packed.producer_id }) } else { None }
    }
}

/// A batch that is not the newest of its producer.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct OlderBatch {
    last_offset: i64,
    timestamp: i64,
    last_sequence: i32,
    offset_delta: i32,
    /// The batch before it, or the next place that is free.
    link: u32,
}

impl OlderBatch {
    fn of(batch: &BatchMetadata, link: u32) -> Self {
        let BatchMetadata { last_offset, timestamp, last_sequence, offset_delta } = *batch;
        OlderBatch { last_offset, timestamp, last_sequence, offset_delta, link }
    }

    fn batch(&self) -> BatchMetadata {
        let OlderBatch { last_offset, timestamp, last_sequence, offset_delta, .. } = *self;
        BatchMetadata { last_offset, timestamp, last_sequence, offset_delta }
    }
}

/// The older batches of all producers, each a chain from newer to older.
#[derive(Clone, Debug)]
struct OlderBatches {
    places: Vec<OlderBatch>,
    free: u32,
    used_count: usize,
}

impl OlderBatches {
    fn new() -> Self {
        OlderBatches { places: Vec::new(), free: NONE, used_count: 0 }
    }

    fn at(&self, place: u32) -> Option<&OlderBatch> {
        self.places.get(usize::try_from(place).ok()?)
    }

    fn at_mut(&mut self, place: u32) -> Option<&mut OlderBatch> {
        self.places.get_mut(usize::try_from(place).ok()?)
    }

    fn chain(&self, first: u32) -> impl Iterator<Item = BatchMetadata> {
        let mut next = first;
        std::iter::from_fn(move || {
            let found = self.at(next)?;
            next = found.link;
            Some(found.batch())
        })
    }

    /// Puts these batches, oldest first, in the place of a chain; gives the new one. `None` when
    /// there are no places left: then the chain is as it was.
    fn replace(&mut self, chain: u32, batches: &[BatchMetadata]) -> Option<u32> {
        if self.places.len().saturating_add(batches.len()) >= usize::try_from(NONE).ok()? {
            return None;
        }
        // The places that become free last are taken first: those of the chain itself.
        self.free(chain);
        let mut newer = NONE;
        for batch in batches {
            newer = self.take(OlderBatch::of(batch, newer));
        }
        Some(newer)
    }

    fn take(&mut self, batch: OlderBatch) -> u32 {
        self.used_count += 1;
        let place = self.free;
        if let Some(free) = self.at_mut(place) {
            let next = std::mem::replace(free, batch).link;
            self.free = next;
            return place;
        }
        self.places.push(batch);
        u32::try_from(self.places.len() - 1).expect("there were places left")
    }

    fn free(&mut self, chain: u32) {
        let mut next = chain;
        while let Some(&found) = self.at(next) {
            let free = self.free;
            if let Some(place) = self.at_mut(next) {
                place.link = free;
            }
            self.free = next;
            self.used_count -= 1;
            next = found.link;
        }
        if self.used_count == 0 {
            *self = OlderBatches::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(number: i32) -> BatchMetadata {
        BatchMetadata {
            last_offset: i64::from(number) * 10,
            timestamp: i64::from(number) + 5,
            last_sequence: number,
            offset_delta: 3,
        }
    }

    fn producer(id: i64, batches: std::ops::Range<i32>) -> LiveProducer {
        let mut producer = LiveProducer::empty(id);
        batches.for_each(|number| producer.take_batch(1, batch(number)));
        producer
    }

    /// Producers at every border of what fits.
    fn borders() -> Vec<LiveProducer> {
        let far = i64::from(i32::MAX) + 5;
        let mut all = Vec::new();
        for count in 0..7 {
            for last_timestamp in [-1, 0, 5, 6 + far, 7 + far, -far, i64::MIN, i64::MAX] {
                for first in [-1, 0, 60, 61, i64::MIN, -4_294_967_234, -4_294_967_235, i64::MAX] {
                    let id = i64::try_from(all.len()).unwrap() * 4096 - 5;
                    let mut producer = producer(id, 0..count);
                    producer.last_timestamp = last_timestamp;
                    producer.txn_first_offset = first;
                    producer.coordinator_epoch = count - 1;
                    all.push(producer);
                }
            }
        }
        all
    }

    #[test]
    fn what_was_put_comes_back_whether_it_fits_or_not() {
        let (all, mut producers) = (borders(), Producers::new());
        all.iter().for_each(|producer| assert!(producers.put(producer)));
        assert!(
            all.iter().all(|producer| producers.get(producer.producer_id).unwrap() == *producer)
        );
        assert!(producers.iter().eq(all.iter().cloned()), "in the order they came");
        assert!(producers.entries().eq(all.iter().map(LiveProducer::entry)));
        assert!(producers.ids().eq(all.iter().map(|producer| producer.producer_id)));
        let wide = producers.wide.len();
        assert!((100..all.len() - 50).contains(&wide), "{wide} of {}", all.len());
        // Each becomes what another was.
        let turned: Vec<LiveProducer> = all
            .iter()
            .zip(all.iter().rev())
            .map(|(this, other)| {
                let mut turned = other.clone();
                turned.producer_id = this.producer_id;
                turned
            })
            .collect();
        turned.iter().for_each(|producer| assert!(!producers.put(producer)));
        assert!(producers.iter().eq(turned.iter().cloned()));
    }

    #[test]
    fn what_is_not_kept_leaves_its_places_to_others() {
        let mut producers = Producers::new();
        (0..100).for_each(|id| assert!(producers.put(&producer(id, 0..5))));
        let mut wide = producer(7, 0..5);
        wide.last_timestamp = i64::MAX;
        producers.put(&wide);
        assert_eq!((producers.older.places.len(), producers.older.used_count), (400, 396));
        producers.retain(|entry| entry.producer_id % 2 == 0);
        assert_eq!(
            (producers.len(), producers.wide.len(), producers.older.used_count),
            (50, 0, 200)
        );
        assert!(producers.get(7).is_none());
        (0..50).for_each(|id| assert!(producers.put(&producer(1001 + id, 0..5))));
        assert_eq!(producers.older.places.len(), 400);
        let ids = (0..100).step_by(2).chain(1001..1051);
        assert!(ids.into_iter().all(|id| producers.get(id).unwrap() == producer(id, 0..5)));
        producers.retain(|_| false);
        assert_eq!((producers.len(), producers.older.places.capacity()), (0, 0));
        producers.put(&producer(3, 0..2));
        producers.clear();
        assert!(producers.get(3).is_none());
        assert_eq!((producers.len(), producers.older.used_count), (0, 0));
    }
}
