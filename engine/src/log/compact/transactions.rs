//! Which batches belong to aborted transactions, and which markers are of no use any more?
//!
//! The batches of a log are shown in order; what the transaction indexes say of them is added
//! before.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::index::AbortedTxn;
use crate::record::BatchHeader;
use crate::record::control::{Control, parse_control};

/// What is known of the transactions around a batch.
#[derive(Debug, Default)]
pub(super) struct TransactionView {
    /// Aborted ones that begin further on, by first offset.
    pending: BinaryHeap<Reverse<ByFirst>>,
    /// Aborted ones that have begun, by producer, and whether a batch of them was seen.
    aborted: HashMap<i64, (AbortedTxn, bool)>,
    /// Producers of whom data was seen that is not aborted.
    committed: HashSet<i64>,
}

#[derive(Debug, PartialEq, Eq)]
struct ByFirst(AbortedTxn);

impl Ord for ByFirst {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |txn: &AbortedTxn| (txn.first_offset, txn.last_offset, txn.producer_id);
        key(&self.0).cmp(&key(&other.0))
    }
}

impl PartialOrd for ByFirst {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// What a marker turns out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MarkerSeen {
    /// Nothing of its transaction is left.
    pub(super) is_discardable: bool,
    /// The transaction that it ends, where a batch of it was seen: readers must still know of it.
    pub(super) aborted: Option<AbortedTxn>,
}

impl TransactionView {
    /// Adds what an index says of the batches to come. The same may be said twice.
    pub(super) fn add(&mut self, aborted: Vec<AbortedTxn>) {
        self.pending.extend(aborted.into_iter().map(|txn| Reverse(ByFirst(txn))));
    }

    fn begin_up_to(&mut self, offset: i64) {
        // spec: cleaner 7
        while self.pending.peek().is_some_and(|Reverse(next)| next.0.first_offset <= offset)
            && let Some(Reverse(ByFirst(txn))) = self.pending.pop()
        {
            self.aborted.entry(txn.producer_id).or_insert((txn, false));
        }
    }

    /// Shows it a batch of data; says whether it is of an aborted transaction.
    pub(super) fn see_data(&mut self, header: &BatchHeader) -> bool {
        self.begin_up_to(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        if let Some((_, is_seen)) = self.aborted.get_mut(&header.producer_id) {
            *is_seen = true;
            return true;
        }
        self.committed.insert(header.producer_id);
        false
    }

    /// Whether data was seen of transactions that commit further on.
    pub(super) fn waits_for_commits(&self) -> bool {
        !self.committed.is_empty()
    }

    /// Shows it a control batch.
    pub(super) fn see_marker(&mut self, header: &BatchHeader, batch: &[u8]) -> MarkerSeen {
        self.begin_up_to(header.last_offset());
        let (is_discardable, aborted) = match parse_control(header, batch) {
            // It was discarded before, and only its header is left.
            Control::Empty => (true, None),
            Control::End(marker) if marker.is_abort => {
                let ended = self.aborted.remove(&header.producer_id);
                let seen = ended.filter(|(_, is_seen)| *is_seen).map(|(txn, _)| txn);
                (seen.is_none(), seen)
            }
            Control::End(_) => (!self.committed.remove(&header.producer_id), None),
            // One that cannot be read says nothing, and stays.
            Control::Other(_) | Control::Broken(_) => (false, None),
        };
        MarkerSeen { is_discardable, aborted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::builder::{
        BatchOptions, KraftControl, write_empty_batch, write_end_marker, write_kraft_control,
    };
    use crate::record::control::EndMarker;

    fn header(producer_id: i64, offset: i64, is_transactional: bool) -> BatchHeader {
        let options = BatchOptions {
            base_offset: offset,
            producer_id,
            producer_epoch: 0,
            base_sequence: 0,
            is_transactional,
            ..BatchOptions::default()
        };
        let mut bytes = Vec::new();
        write_empty_batch(&options, offset, 0, &mut bytes).unwrap();
        BatchHeader::parse(&bytes).unwrap()
    }

    fn marker(
        view: &mut TransactionView,
        producer_id: i64,
        offset: i64,
        abort: bool,
    ) -> MarkerSeen {
        let options = BatchOptions {
            base_offset: offset,
            producer_id,
            producer_epoch: 0,
            ..BatchOptions::default()
        };
        let marker = EndMarker { is_abort: abort, coordinator_epoch: 0, timestamp_ms: 0 };
        let mut bytes = Vec::new();
        write_end_marker(&options, &marker, &mut bytes).unwrap();
        view.see_marker(&BatchHeader::parse(&bytes).unwrap(), &bytes)
    }

    fn txn(producer_id: i64, first_offset: i64, last_offset: i64) -> AbortedTxn {
        AbortedTxn { producer_id, first_offset, last_offset, last_stable_offset: last_offset }
    }

    fn discardable(is_discardable: bool) -> MarkerSeen {
        MarkerSeen { is_discardable, aborted: None }
    }

    #[test]
    fn a_transaction_is_aborted_from_its_first_offset_to_its_marker() {
        let mut view = TransactionView::default();
        view.add(vec![txn(1, 5, 9), txn(2, 0, 20)]);
        view.add(vec![txn(1, 5, 9)]);
        assert!(!view.see_data(&header(1, 4, true)), "a transaction before");
        assert!(view.see_data(&header(2, 4, true)));
        assert_eq!(marker(&mut view, 1, 4, false), discardable(false));
        assert!(view.see_data(&header(1, 5, true)));
        assert!(!view.see_data(&header(1, 6, false)), "no part of a transaction");
        let ended = marker(&mut view, 1, 9, true);
        assert_eq!(ended, MarkerSeen { is_discardable: false, aborted: Some(txn(1, 5, 9)) });
        assert!(!view.see_data(&header(1, 10, true)), "the next one");
        assert!(view.see_data(&header(2, 11, true)));
    }

    #[test]
    fn markers_of_which_no_data_is_left_may_go() {
        let mut view = TransactionView::default();
        view.add(vec![txn(1, 0, 3)]);
        assert_eq!(marker(&mut view, 1, 3, true), discardable(true));
        assert_eq!(marker(&mut view, 2, 4, false), discardable(true));
        view.see_data(&header(2, 5, true));
        assert_eq!(marker(&mut view, 2, 6, false), discardable(false));
        assert_eq!(marker(&mut view, 2, 7, false), discardable(true));
    }

    #[test]
    fn other_control_batches_stay_and_empty_ones_may_go() {
        let mut view = TransactionView::default();
        let mut bytes = Vec::new();
        let control = KraftControl::SnapshotFooter;
        write_kraft_control(&BatchOptions::default(), 0, &control, &mut bytes).unwrap();
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!(view.see_marker(&header, &bytes), discardable(false));
        assert_eq!(view.see_marker(&header, &bytes[..61]), discardable(false), "broken");
        let empty = BatchHeader { count: 0, ..header };
        assert_eq!(view.see_marker(&empty, &bytes[..61]), discardable(true));
    }
}
