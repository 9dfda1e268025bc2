//! Which batches of a producer are remembered?

use crate::state::producer::{NO_OFFSET, ProducerEntry};
use crate::units::{
    NO_COORDINATOR_EPOCH, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, decrement_sequence,
};

/// How many batches of a producer are remembered: as many as it may have in flight.
const BATCHES_MAX: usize = 5;

/// One batch that a producer has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMetadata {
    /// The last offset.
    pub last_offset: i64,
    /// The largest timestamp in ms.
    pub timestamp: i64,
    /// The last sequence.
    pub last_sequence: i32,
    /// Last offset less first offset.
    pub offset_delta: i32,
}

impl BatchMetadata {
    /// The first offset.
    #[must_use]
    pub fn first_offset(&self) -> i64 {
        self.last_offset.wrapping_sub(i64::from(self.offset_delta))
    }

    /// The first sequence.
    #[must_use]
    pub fn first_sequence(&self) -> i32 {
        decrement_sequence(self.last_sequence, self.offset_delta)
    }
}

/// A producer of a log that is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveProducer {
    pub(super) producer_id: i64,
    pub(super) last_timestamp: i64,
    /// [`NO_OFFSET`] when no transaction is open.
    pub(super) txn_first_offset: i64,
    pub(super) coordinator_epoch: i32,
    pub(super) producer_epoch: i16,
    batches: Batches,
}

/// The newest batches, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Batches {
    /// Behind `count` they mean nothing and are all alike.
    items: [BatchMetadata; BATCHES_MAX],
    count: usize,
}

pub(super) const NO_BATCH: BatchMetadata = BatchMetadata {
    last_offset: NO_OFFSET,
    timestamp: NO_TIMESTAMP,
    last_sequence: NO_SEQUENCE,
    offset_delta: 0,
};

impl Batches {
    const EMPTY: Batches = Batches { items: [NO_BATCH; BATCHES_MAX], count: 0 };

    fn as_slice(&self) -> &[BatchMetadata] {
        self.items.get(..self.count).unwrap_or_default()
    }

    fn push(&mut self, batch: BatchMetadata) {
        if self.count == BATCHES_MAX {
            self.items.rotate_left(1);
            self.count -= 1;
        }
        if let Some(place) = self.items.get_mut(self.count) {
            *place = batch;
            self.count += 1;
        }
    }
}

impl LiveProducer {
    pub(super) fn empty(producer_id: i64) -> Self {
        LiveProducer {
            producer_id,
            last_timestamp: NO_TIMESTAMP,
            txn_first_offset: NO_OFFSET,
            coordinator_epoch: NO_COORDINATOR_EPOCH,
            producer_epoch: NO_PRODUCER_EPOCH,
            batches: Batches::EMPTY,
        }
    }

    /// Remembers a batch, without a look at its epoch and timestamp.
    pub(super) fn push(&mut self, batch: BatchMetadata) {
        self.batches.push(batch);
    }

    /// The same producer with none of its batches.
    pub(super) fn without_batches(&self) -> Self {
        LiveProducer { batches: Batches::EMPTY, ..*self }
    }

    pub(super) fn from_entry(entry: &ProducerEntry) -> Self {
        let mut producer = LiveProducer {
            producer_id: entry.producer_id,
            last_timestamp: entry.last_timestamp,
            txn_first_offset: entry.txn_first_offset,
            coordinator_epoch: entry.coordinator_epoch,
            producer_epoch: entry.producer_epoch,
            batches: Batches::EMPTY,
        };
        if entry.has_batch() {
            producer.batches.push(BatchMetadata {
                last_offset: entry.last_offset,
                timestamp: entry.last_timestamp,
                last_sequence: entry.last_sequence,
                offset_delta: entry.offset_delta,
            });
        }
        producer
    }

    /// What a snapshot keeps of it.
    #[must_use]
    pub fn entry(&self) -> ProducerEntry {
        let newest = self.newest().copied().unwrap_or(NO_BATCH);
        ProducerEntry {
            producer_id: self.producer_id,
            last_offset: newest.last_offset,
            last_timestamp: self.last_timestamp,
            txn_first_offset: self.txn_first_offset,
            last_sequence: newest.last_sequence,
            offset_delta: newest.offset_delta,
            coordinator_epoch: self.coordinator_epoch,
            producer_epoch: self.producer_epoch,
        }
    }

    /// The batches remembered, oldest first: at most five.
    #[must_use]
    pub fn batches(&self) -> &[BatchMetadata] {
        self.batches.as_slice()
    }

    /// The newest batch.
    #[must_use]
    pub fn newest(&self) -> Option<&BatchMetadata> {
        self.batches().last()
    }

    /// The last sequence of the newest batch, [`NO_SEQUENCE`] without one.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        self.newest().map_or(NO_SEQUENCE, |batch| batch.last_sequence)
    }

    /// Whether it has a transaction open.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.txn_first_offset >= 0
    }

    /// The remembered batch with these sequences, written with this epoch.
    #[must_use]
    pub fn find_duplicate(&self, epoch: i16, first: i32, last: i32) -> Option<BatchMetadata> {
        // spec: producer-state A1.1
        if epoch != self.producer_epoch {
            return None;
        }
        let alike =
            |batch: &&BatchMetadata| batch.first_sequence() == first && batch.last_sequence == last;
        self.batches().iter().find(alike).copied()
    }

    pub(super) fn take_batch(&mut self, epoch: i16, batch: BatchMetadata) {
        self.take_epoch(epoch);
        self.batches.push(batch);
        self.last_timestamp = batch.timestamp;
    }

    pub(super) fn take_marker(&mut self, epoch: i16, coordinator_epoch: i32, timestamp: i64) {
        self.take_epoch(epoch);
        self.txn_first_offset = NO_OFFSET;
        self.coordinator_epoch = coordinator_epoch;
        self.last_timestamp = timestamp;
    }

    /// Takes over what an append has gathered.
    pub(super) fn take_update(&mut self, update: &LiveProducer) {
        self.take_epoch(update.producer_epoch);
        for &batch in update.batches() {
            self.batches.push(batch);
        }
        self.coordinator_epoch = update.coordinator_epoch;
        self.txn_first_offset = update.txn_first_offset;
        self.last_timestamp = update.last_timestamp;
    }

    fn take_epoch(&mut self, epoch: i16) {
        if self.producer_epoch != epoch {
            self.batches = Batches::EMPTY;
            self.producer_epoch = epoch;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(sequence: i32) -> BatchMetadata {
        BatchMetadata {
            last_offset: i64::from(sequence),
            timestamp: 0,
            last_sequence: sequence,
            offset_delta: 0,
        }
    }

    #[test]
    fn the_newest_five_batches_are_remembered() {
        // spec: behaviours PS-073
        let mut producer = LiveProducer::empty(1);
        (0..6).for_each(|sequence| producer.take_batch(0, batch(sequence)));
        let kept: Vec<i32> = producer.batches().iter().map(|batch| batch.last_sequence).collect();
        assert_eq!(kept, [1, 2, 3, 4, 5]);
        assert_eq!(producer.find_duplicate(0, 0, 0), None);
        assert_eq!(producer.find_duplicate(0, 1, 1), Some(batch(1)));
    }

    #[test]
    fn a_duplicate_has_the_same_sequences_and_epoch() {
        let mut producer = LiveProducer::empty(1);
        let wide = BatchMetadata { offset_delta: 2, ..batch(8) };
        producer.take_batch(3, wide);
        assert_eq!(producer.find_duplicate(3, 6, 8), Some(wide));
        assert_eq!(producer.find_duplicate(3, 7, 8), None, "a part of a batch is none");
        assert_eq!(producer.find_duplicate(4, 6, 8), None);
    }

    #[test]
    fn another_epoch_forgets_the_batches() {
        let mut producer = LiveProducer::empty(1);
        producer.take_batch(1, batch(0));
        producer.take_marker(1, 0, 5);
        assert_eq!(producer.batches().len(), 1);
        producer.take_marker(0, 0, 6);
        assert_eq!((producer.batches().len(), producer.last_sequence()), (0, -1));
    }

    #[test]
    fn a_snapshot_keeps_the_newest_batch() {
        let mut producer = LiveProducer::empty(1);
        assert_eq!(LiveProducer::from_entry(&producer.entry()), producer);
        producer.take_batch(1, batch(0));
        producer.take_batch(1, batch(1));
        let reloaded = LiveProducer::from_entry(&producer.entry());
        assert_eq!(reloaded.batches(), [batch(1)]);
    }
}
