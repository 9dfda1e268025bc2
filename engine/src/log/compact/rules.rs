//! Which batches and records of a compacted log stay?

use std::collections::HashMap;

use super::digest::Digest;
use super::key_map::KeyMap;
use super::transactions::TransactionView;
use crate::error::Result;
use crate::index::AbortedTxn;
use crate::record::filter::{BatchVerdict, FilterRules, Retention};
use crate::record::{BatchHeader, Record};
use crate::state::ProducerState;

/// What a round goes by.
#[derive(Debug)]
pub(super) struct Conditions {
    pub(super) now_ms: i64,
    /// Where the round ends, exclusive.
    pub(super) upper_bound: i64,
    /// Up to where, exclusive, the log must be what it was: the records that take the place of
    /// others and the markers that decide about what goes lie before it.
    pub(super) reach: i64,
    /// Before it lie the markers of all transactions with a record before `upper_bound`.
    pub(super) decided_end: i64,
    /// Tombstones of the old formats stay in segments that were written to later.
    pub(super) legacy_horizon_ms: i64,
    pub(super) last_records: LastRecords,
}

impl Conditions {
    /// Whether they are right for segments that end at `end`, though the log was cut at
    /// `lowest_cut` since, if it is not `i64::MAX`.
    pub(super) fn hold(&self, lowest_cut: i64, end: i64, producers: &ProducerState) -> bool {
        lowest_cut >= self.reach
            && (lowest_cut == i64::MAX || self.last_records.hold(producers, end))
    }
}

/// The last batch of each producer that is known: it must not go, or the producer's next sequence
/// would not be known after the log was read again.
#[derive(Debug, Default)]
pub(super) struct LastRecords(HashMap<i64, LastRecord>);

#[derive(Debug, PartialEq, Eq)]
struct LastRecord {
    data_offset: Option<i64>,
    producer_epoch: i16,
}

impl LastRecords {
    /// Those of the producers now. What a producer writes later lies behind every round that has
    /// begun.
    pub(super) fn of(producers: &ProducerState) -> Self {
        let records = producers.producers().map(|producer| {
            let data_offset = producer.newest().map(|batch| batch.last_offset);
            let producer = producer.entry();
            let data_offset = data_offset.filter(|offset| *offset >= 0);
            let record = LastRecord { data_offset, producer_epoch: producer.producer_epoch };
            (producer.producer_id, record)
        });
        LastRecords(records.collect())
    }

    /// Whether no other batch before `end` is the last of its producer now, as one in front of a cut
    /// may be.
    fn hold(&self, producers: &ProducerState, end: i64) -> bool {
        LastRecords::of(producers).0.iter().all(|(producer_id, now)| {
            let is_behind = now.data_offset.is_some_and(|offset| offset >= end);
            is_behind || self.0.get(producer_id) == Some(now)
        })
    }

    fn has(&self, header: &BatchHeader) -> bool {
        // spec: cleaner 8
        header.has_producer_id()
            && self.0.get(&header.producer_id).is_some_and(|last| match last.data_offset {
                Some(offset) => header.last_offset() == offset,
                None => header.is_control() && header.producer_epoch == last.producer_epoch,
            })
    }
}

/// The rules for one segment after the other.
pub(super) struct CleanRules<'a> {
    pub(super) map: &'a KeyMap,
    pub(super) view: &'a mut TransactionView,
    pub(super) conditions: &'a Conditions,
    pub(super) keeps_legacy_tombstones: bool,
    /// Of the batch that was judged last.
    discards_records: bool,
    /// Of the records that are judged together.
    digests: Vec<Option<Digest>>,
    /// Records without a key, which go.
    pub(super) invalid_records: u64,
    /// What is to stand in the index of transactions after the batch that was judged last.
    pub(super) aborted: Option<AbortedTxn>,
}

impl<'a> CleanRules<'a> {
    pub(super) fn new(
        map: &'a KeyMap,
        view: &'a mut TransactionView,
        conditions: &'a Conditions,
        keeps_legacy_tombstones: bool,
    ) -> Self {
        CleanRules {
            map,
            view,
            conditions,
            keeps_legacy_tombstones,
            discards_records: false,
            digests: Vec::new(),
            invalid_records: 0,
            aborted: None,
        }
    }
}

impl FilterRules for CleanRules<'_> {
    // spec: cleaner 7, 8
    fn judge_batch(&mut self, header: &BatchHeader, batch: &[u8]) -> Result<BatchVerdict> {
        let is_marker_of_empty_txn = if header.is_control() {
            let seen = self.view.see_marker(header, batch);
            self.aborted = seen.aborted;
            let is_late =
                header.delete_horizon_ms().is_some_and(|horizon| horizon <= self.conditions.now_ms);
            self.discards_records = seen.is_discardable && is_late;
            seen.is_discardable
        } else {
            self.aborted = None;
            self.discards_records = self.view.see_data(header);
            false
        };
        let retention = if self.conditions.last_records.has(header)
            || header.next_offset() == self.conditions.upper_bound
        {
            Retention::RetainEmpty
        } else if self.discards_records {
            Retention::Delete
        } else {
            Retention::DeleteEmpty
        };
        Ok(BatchVerdict { retention, is_marker_of_empty_txn })
    }

    fn keeps_record(&mut self, header: &BatchHeader, record: &Record<'_>) -> bool {
        let digest = record.key.map(|key| self.map.digest(key));
        self.keeps(header, record, digest)
    }

    fn keep_records(
        &mut self,
        header: &BatchHeader,
        records: &[Record<'_>],
        see: &mut dyn FnMut(&Record<'_>, bool),
    ) {
        self.digests.clear();
        if !self.discards_records && !header.is_control() {
            let digests = records.iter().map(|record| record.key.map(|key| self.map.digest(key)));
            self.digests.extend(digests);
            self.map.warm(self.digests.iter().copied().flatten());
        }
        for (at, record) in records.iter().enumerate() {
            let digest = self.digests.get(at).copied().flatten();
            see(record, self.keeps(header, record, digest));
        }
    }
}

impl CleanRules<'_> {
    // spec: cleaner 6
    fn keeps(&mut self, header: &BatchHeader, record: &Record<'_>, digest: Option<Digest>) -> bool {
        if self.discards_records {
            return false;
        }
        // What the map does not speak for stays, without a key, too.
        if header.is_control() || record.offset > self.map.latest_offset() {
            return true;
        }
        let Some(digest) = digest else {
            self.invalid_records += 1;
            return false;
        };
        let may_stay = record.value.is_some()
            || if header.magic < 2 {
                self.keeps_legacy_tombstones
            } else {
                let horizon = header.delete_horizon_ms();
                horizon.is_none_or(|horizon| self.conditions.now_ms < horizon)
            };
        may_stay && record.offset >= self.map.get(digest)
    }
}
