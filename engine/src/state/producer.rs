//! What is known of one producer?
//!
//! [`ProducerEntry`] is what a snapshot keeps: the newest batch, the epochs, the last timestamp
//! and the transaction that is open. It has no place for older batches, which matter only to a
//! leader that looks for duplicates.

use crate::units::{
    NO_COORDINATOR_EPOCH, NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, decrement_sequence,
};

/// "No offset" in a [`ProducerEntry`].
pub const NO_OFFSET: i64 = -1;

/// The state of one producer as a snapshot holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    /// The producer's id.
    pub producer_id: i64,
    /// The last offset of its newest batch; [`NO_OFFSET`] when no batch is known.
    pub last_offset: i64,
    /// The largest timestamp of its last batch, or the timestamp of its last marker, in ms.
    pub last_timestamp: i64,
    /// The first offset of its open transaction; [`NO_OFFSET`] when none is open.
    pub txn_first_offset: i64,
    /// The last sequence of its newest batch; [`NO_SEQUENCE`] when no batch is known.
    pub last_sequence: i32,
    /// Last offset less first offset of its newest batch; 0 when no batch is known.
    pub offset_delta: i32,
    /// The epoch of the transaction coordinator that wrote its last marker.
    pub coordinator_epoch: i32,
    /// The producer's epoch.
    pub producer_epoch: i16,
}

// Ten thousands of producers a partition are common: an entry is what it costs to know one.
const _: () = assert!(size_of::<ProducerEntry>() == 48);

impl ProducerEntry {
    /// A producer of which nothing is known.
    #[must_use]
    pub fn empty(producer_id: i64) -> Self {
        ProducerEntry {
            producer_id,
            last_offset: NO_OFFSET,
            last_timestamp: NO_TIMESTAMP,
            txn_first_offset: NO_OFFSET,
            last_sequence: NO_SEQUENCE,
            offset_delta: 0,
            coordinator_epoch: NO_COORDINATOR_EPOCH,
            producer_epoch: NO_PRODUCER_EPOCH,
        }
    }

    /// Whether its newest batch is known.
    #[inline]
    #[must_use]
    pub fn has_batch(&self) -> bool {
        self.last_offset >= 0
    }

    /// Whether it has a transaction open.
    #[inline]
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.txn_first_offset >= 0
    }

    /// The first sequence of its newest batch, [`NO_SEQUENCE`] when no batch is known.
    #[must_use]
    pub fn first_sequence(&self) -> i32 {
        if self.has_batch() {
            decrement_sequence(self.last_sequence, self.offset_delta)
        } else {
            NO_SEQUENCE
        }
    }

    /// The first offset of its newest batch, [`NO_OFFSET`] when no batch is known.
    #[must_use]
    pub fn first_offset(&self) -> i64 {
        if self.has_batch() {
            self.last_offset.wrapping_sub(i64::from(self.offset_delta))
        } else {
            NO_OFFSET
        }
    }

    /// Whether it may be forgotten: silent for `expiration_ms` and without an open transaction.
    #[inline]
    #[must_use]
    pub fn is_expired(&self, now_ms: i64, expiration_ms: i64) -> bool {
        // spec: producer-state A4
        !self.in_transaction() && now_ms.wrapping_sub(self.last_timestamp) >= expiration_ms
    }

    /// Takes note of a batch of data.
    #[inline]
    pub(super) fn take_batch(&mut self, epoch: i16, last: LastBatch, timestamp: i64) {
        self.producer_epoch = epoch;
        self.last_offset = last.offset;
        self.last_sequence = last.sequence;
        self.offset_delta = last.offset_delta;
        self.last_timestamp = timestamp;
    }

    /// Takes note of the end of a transaction, without ending it: an epoch other than the known
    /// one, also a lower one, forgets the newest batch.
    #[inline]
    pub(super) fn take_marker(&mut self, epoch: i16, coordinator_epoch: i32, timestamp: i64) {
        if self.producer_epoch != epoch {
            self.forget_batch();
            self.producer_epoch = epoch;
        }
        self.coordinator_epoch = coordinator_epoch;
        self.last_timestamp = timestamp;
    }

    /// Forgets the newest batch.
    #[inline]
    pub(super) fn forget_batch(&mut self) {
        self.last_offset = NO_OFFSET;
        self.last_sequence = NO_SEQUENCE;
        self.offset_delta = 0;
    }
}

/// The end of a batch of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastBatch {
    pub(super) offset: i64,
    pub(super) sequence: i32,
    pub(super) offset_delta: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_batch_follows_from_its_last_across_the_wrap() {
        // spec: behaviours PS-008
        let mut entry = ProducerEntry::empty(1);
        assert_eq!((entry.first_sequence(), entry.first_offset()), (-1, -1));
        entry.take_batch(0, LastBatch { offset: 2020, sequence: 9, offset_delta: 20 }, 5);
        assert_eq!((entry.first_sequence(), entry.first_offset()), (2_147_483_637, 2000));
    }

    #[test]
    fn an_open_transaction_never_expires() {
        // spec: behaviours PS-046
        let mut entry = ProducerEntry::empty(1);
        entry.last_timestamp = 100;
        assert!(!entry.is_expired(109, 10));
        assert!(entry.is_expired(110, 10));
        entry.txn_first_offset = 99;
        assert!(!entry.is_expired(i64::MAX, 10));
    }
}
