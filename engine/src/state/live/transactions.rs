//! Which transactions are undecided, or decided but not yet replicated?

use std::collections::BTreeMap;

use super::append::Completion;
use super::refusal::{Reason, Refusal};

/// An offset and, when it is known, where its batch lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetMetadata {
    /// The offset.
    pub offset: i64,
    /// The base offset of the segment that holds it and the byte where its batch begins.
    pub place: Option<(i64, u64)>,
}

impl OffsetMetadata {
    /// An offset whose place is not known.
    #[must_use]
    pub fn offset_only(offset: i64) -> Self {
        OffsetMetadata { offset, place: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Transaction {
    producer_id: i64,
    first_offset: OffsetMetadata,
}

/// The transactions of a log by first offset.
#[derive(Clone, Debug, Default)]
pub(super) struct Transactions {
    ongoing: BTreeMap<i64, Transaction>,
    /// Ended ones, with the offset of the marker, which lies at the high watermark or behind it.
    unreplicated: BTreeMap<i64, (Transaction, i64)>,
}

impl Transactions {
    pub(super) fn begin(&mut self, producer_id: i64, first_offset: OffsetMetadata) {
        self.ongoing.insert(first_offset.offset, Transaction { producer_id, first_offset });
    }

    pub(super) fn complete(&mut self, completion: &Completion) -> Result<(), Refusal> {
        let Some(transaction) = self.ongoing.remove(&completion.first_offset) else {
            let message = format!(
                "the transaction of producer {} at offset {} was not begun",
                completion.producer_id, completion.first_offset
            );
            return Err(Refusal::new(Reason::IllegalArgument, message));
        };
        self.unreplicated.insert(completion.first_offset, (transaction, completion.last_offset));
        Ok(())
    }

    /// Up to where, exclusive, every transaction but this one is decided.
    pub(super) fn last_stable_offset(&self, completion: &Completion) -> i64 {
        // spec: producer-state A2.5
        let mut others = self.ongoing.iter();
        let other = others.find(|(_, txn)| txn.producer_id != completion.producer_id);
        other.map_or_else(|| completion.last_offset.saturating_add(1), |(&first, _)| first)
    }

    pub(super) fn first_unstable(&self) -> Option<OffsetMetadata> {
        // spec: producer-state A3
        let ongoing = self.ongoing.first_key_value().map(|(_, txn)| txn.first_offset);
        let unreplicated =
            self.unreplicated.first_key_value().map(|(_, (txn, _))| txn.first_offset);
        match (unreplicated, ongoing) {
            (Some(unreplicated), Some(ongoing)) if ongoing.offset < unreplicated.offset => {
                Some(ongoing)
            }
            (unreplicated, ongoing) => unreplicated.or(ongoing),
        }
    }

    pub(super) fn first_undecided(&self) -> Option<i64> {
        self.ongoing.first_key_value().map(|(&first, _)| first)
    }

    /// The producer of the ongoing transaction with the lowest first offset.
    pub(super) fn oldest_producer(&self) -> Option<i64> {
        self.ongoing.first_key_value().map(|(_, txn)| txn.producer_id)
    }

    pub(super) fn forget_replicated(&mut self, end_offset: i64) {
        self.unreplicated.retain(|_, (_, last_offset)| *last_offset >= end_offset);
    }

    pub(super) fn has_unreplicated(&self) -> bool {
        !self.unreplicated.is_empty()
    }

    /// The log is read again from a snapshot on. Snapshots tell nothing of transactions that are
    /// decided and not replicated: those whose marker is still there stay so. Kafka forgets them, and
    /// its readers of committed data see what a later cut may still change.
    pub(super) fn restart(&mut self, log_start_offset: i64, log_end_offset: i64) {
        let span = log_start_offset..log_end_offset;
        self.ongoing.clear();
        self.unreplicated.retain(|_, (_, last_offset)| span.contains(last_offset));
    }

    pub(super) fn clear(&mut self) {
        self.ongoing.clear();
        self.unreplicated.clear();
    }
}
