//! What do the batches of a log say about its producers?
//!
//! [`ReplayState`] applies what is already written, as recovery, reload and followers do: it was
//! accepted once, so sequences are not checked and epochs that go back are taken as they come.

use std::collections::BTreeSet;

use super::event::{CompletedTransaction, EventKind, ProducerEvent, ReplayFault, ReplayProblem};
use super::producer::NO_OFFSET;
use super::snapshot::Snapshot;
use super::table::ProducerTable;

/// The producers of a log and their open transactions, up to some offset.
#[derive(Clone, Debug, Default)]
pub struct ReplayState {
    producers: ProducerTable,
    /// First offset and producer id of every open transaction. It is open here if and only if
    /// it is in the producer's entry.
    ongoing: BTreeSet<(i64, i64)>,
}

impl ReplayState {
    /// No producers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The state that a snapshot brings back at `now_ms`.
    #[must_use]
    pub fn from_snapshot(snapshot: &Snapshot<'_>, now_ms: i64, expiration_ms: i64) -> Self {
        let producers = ProducerTable::from_snapshot(snapshot, now_ms, expiration_ms);
        let open = producers.entries().iter().filter(|entry| entry.in_transaction());
        let ongoing = open.map(|entry| (entry.txn_first_offset, entry.producer_id)).collect();
        ReplayState { producers, ongoing }
    }

    /// The bytes of a snapshot of this state, producers in Kafka's order.
    #[must_use]
    pub fn snapshot(&self) -> Vec<u8> {
        self.producers.snapshot()
    }

    /// The producers.
    #[must_use]
    pub fn producers(&self) -> &ProducerTable {
        &self.producers
    }

    /// First offset and producer id of the open transactions, first offsets rising.
    pub fn ongoing(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.ongoing.iter().copied()
    }

    /// The first offset of the oldest open transaction. With a high watermark at the end of the
    /// log it is the last stable offset.
    #[must_use]
    pub fn first_undecided_offset(&self) -> Option<i64> {
        // spec: producer-state A3
        self.ongoing.first().map(|&(first_offset, _)| first_offset)
    }

    /// Forgets the producers that are expired at `now_ms`.
    pub fn remove_expired(&mut self, now_ms: i64, expiration_ms: i64) {
        self.producers.remove_expired(now_ms, expiration_ms);
    }

    /// Applies the next batch; gives the transaction that it ends.
    ///
    /// # Errors
    /// The state does not allow the batch and stays as it was. Kafka fails to load such a log.
    // spec: producer-state A2
    #[inline]
    pub fn apply(
        &mut self,
        event: &ProducerEvent,
    ) -> Result<Option<CompletedTransaction>, ReplayProblem> {
        let batch = event.last_batch().map_err(|fault| event.problem(fault))?;
        let entry = self.producers.get_or_insert(event.producer_id);
        match event.kind {
            EventKind::Data { transactional } => {
                if entry.in_transaction() {
                    if !transactional {
                        return Err(event.problem(ReplayFault::NotTransactional));
                    }
                } else if transactional {
                    entry.txn_first_offset = event.base_offset;
                    self.ongoing.insert((event.base_offset, event.producer_id));
                }
                entry.take_batch(event.producer_epoch, batch, event.max_timestamp);
                Ok(None)
            }
            EventKind::Marker { abort, coordinator_epoch, timestamp } => {
                entry.take_marker(event.producer_epoch, coordinator_epoch, timestamp);
                Ok(self.end_transaction(event.producer_id, event.base_offset, abort))
            }
            // It makes its producer known and says nothing about it.
            EventKind::EmptyControl => Ok(None),
        }
    }

    /// Ends the transaction that a producer has open, if any.
    fn end_transaction(
        &mut self,
        producer_id: i64,
        marker_offset: i64,
        aborted: bool,
    ) -> Option<CompletedTransaction> {
        let entry = self.producers.get_mut(producer_id).filter(|entry| entry.in_transaction())?;
        let first_offset = std::mem::replace(&mut entry.txn_first_offset, NO_OFFSET);
        self.ongoing.remove(&(first_offset, producer_id));
        // spec: producer-state A2.5
        let undecided = self.first_undecided_offset();
        Some(CompletedTransaction {
            producer_id,
            first_offset,
            last_offset: marker_offset,
            last_stable_offset: undecided.unwrap_or_else(|| marker_offset.saturating_add(1)),
            aborted,
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;
    use crate::state::ProducerEntry;

    pub(in crate::state) fn data(id: i64, epoch: i16, sequence: i32, offset: i64) -> ProducerEvent {
        ProducerEvent {
            producer_id: id,
            producer_epoch: epoch,
            base_sequence: sequence,
            last_sequence: sequence,
            base_offset: offset,
            last_offset: offset,
            max_timestamp: offset * 10,
            kind: EventKind::Data { transactional: false },
        }
    }

    pub(in crate::state) fn txn(id: i64, epoch: i16, sequence: i32, offset: i64) -> ProducerEvent {
        ProducerEvent {
            kind: EventKind::Data { transactional: true },
            ..data(id, epoch, sequence, offset)
        }
    }

    pub(in crate::state) fn marker(id: i64, epoch: i16, offset: i64, abort: bool) -> ProducerEvent {
        let kind = EventKind::Marker { abort, coordinator_epoch: 0, timestamp: offset * 10 };
        ProducerEvent { kind, ..data(id, epoch, -1, offset) }
    }

    fn any_event() -> impl Strategy<Value = ProducerEvent> {
        let kind = prop_oneof![
            3 => any::<bool>().prop_map(|transactional| EventKind::Data { transactional }),
            2 => (any::<bool>(), 0..3_i32, 0..1000_i64).prop_map(
                |(abort, coordinator_epoch, timestamp)| EventKind::Marker {
                    abort,
                    coordinator_epoch,
                    timestamp
                }
            ),
            1 => Just(EventKind::EmptyControl),
        ];
        (-1..5_i64, 0..3_i16, 0..10_i32, -1..4_i64, 0..1000_i64, kind).prop_map(
            |(producer_id, producer_epoch, base_sequence, delta, max_timestamp, kind)| {
                ProducerEvent {
                    producer_id,
                    producer_epoch,
                    base_sequence,
                    last_sequence: base_sequence + 3,
                    base_offset: 0,
                    last_offset: delta,
                    max_timestamp,
                    kind,
                }
            },
        )
    }

    /// Events that follow each other in the log, but for some that lie at an offset below 0.
    pub(in crate::state) fn any_events() -> impl Strategy<Value = Vec<ProducerEvent>> {
        prop::collection::vec((any_event(), 0..40_u8), 0..60).prop_map(|events| {
            let mut next = 0;
            let placed = events.into_iter().map(|(mut event, odd)| {
                event.base_offset = if odd == 0 { -1 } else { next };
                event.last_offset += event.base_offset;
                next = next.max(event.last_offset + 1);
                event
            });
            placed.collect()
        })
    }

    fn apply(state: &mut ReplayState, events: &[ProducerEvent]) -> Vec<CompletedTransaction> {
        events.iter().filter_map(|event| state.apply(event).unwrap()).collect()
    }

    fn entry(state: &ReplayState) -> ProducerEntry {
        *state.producers().get(1).unwrap()
    }

    #[test]
    fn a_marker_makes_its_producer_known() {
        // spec: behaviours PS-004
        let mut state = ReplayState::new();
        assert_eq!(apply(&mut state, &[marker(1, 2, 27, false)]), []);
        assert_eq!((entry(&state).producer_epoch, entry(&state).last_sequence), (2, -1));
        assert!(!entry(&state).has_batch() && !entry(&state).in_transaction());
    }

    #[test]
    fn the_first_batch_may_have_any_sequence() {
        // spec: behaviours PS-009
        let mut state = ReplayState::new();
        apply(&mut state, &[data(1, 5, 16, 735)]);
        let entry = entry(&state);
        assert_eq!(
            (entry.producer_epoch, entry.first_sequence(), entry.last_sequence),
            (5, 16, 16)
        );
        assert_eq!((entry.first_offset(), entry.last_offset), (735, 735));
    }

    #[test]
    fn a_marker_of_another_epoch_forgets_the_newest_batch() {
        // spec: behaviours PS-010
        let mut state = ReplayState::new();
        apply(&mut state, &[data(1, 0, 0, 0), marker(1, 1, 1, true)]);
        let bumped = entry(&state);
        assert_eq!((bumped.producer_epoch, bumped.last_sequence), (1, -1));
        assert!(!bumped.in_transaction() && !bumped.has_batch());
        apply(&mut state, &[data(1, 1, 0, 2), marker(1, 0, 3, true)]);
        assert!(!entry(&state).has_batch(), "also one that goes back");
    }

    #[test]
    fn a_marker_of_the_same_epoch_keeps_the_newest_batch() {
        let mut state = ReplayState::new();
        apply(&mut state, &[txn(1, 0, 0, 0), txn(1, 0, 1, 1), marker(1, 0, 2, false)]);
        let entry = entry(&state);
        assert_eq!((entry.last_sequence, entry.last_offset, entry.last_timestamp), (1, 1, 20));
    }

    #[test]
    fn an_open_transaction_survives_a_snapshot() {
        // spec: behaviours PS-025, PS-026
        let mut state = ReplayState::new();
        apply(&mut state, &[txn(1, 0, 0, 0), txn(1, 0, 1, 1)]);
        let reload = |state: &ReplayState| {
            let bytes = state.snapshot();
            ReplayState::from_snapshot(&Snapshot::read(&bytes).unwrap(), i64::MAX, 1000)
        };
        let reloaded = reload(&state);
        let kept = entry(&reloaded);
        assert_eq!((kept.first_offset(), kept.last_offset), (1, 1));
        assert_eq!((kept.first_sequence(), kept.last_sequence), (1, 1));
        assert_eq!(reloaded.ongoing().collect::<Vec<_>>(), [(0, 1)]);
        apply(&mut state, &[marker(1, 0, 2, true)]);
        let bytes = state.snapshot();
        let later = ReplayState::from_snapshot(&Snapshot::read(&bytes).unwrap(), 30, 1000);
        assert_eq!(
            entry(&later),
            ProducerEntry {
                txn_first_offset: -1,
                last_timestamp: 20,
                coordinator_epoch: 0,
                ..kept
            }
        );
        assert_eq!(later.first_undecided_offset(), None);
    }

    #[test]
    fn plain_data_within_a_transaction_is_a_problem_and_changes_nothing() {
        // spec: behaviours PS-021
        let mut state = ReplayState::new();
        apply(&mut state, &[txn(1, 0, 0, 0)]);
        let before = entry(&state);
        let problem = state.apply(&data(1, 0, 1, 1)).unwrap_err();
        assert_eq!(
            problem,
            ReplayProblem {
                fault: ReplayFault::NotTransactional,
                producer_id: 1,
                producer_epoch: 0,
                base_offset: 1
            }
        );
        assert_eq!(entry(&state), before);
        assert_eq!(Error::from(problem).offset(), Some(1));
    }

    #[test]
    fn batches_that_cannot_be_are_problems_and_change_nothing() {
        let mut state = ReplayState::new();
        let far = i64::from(i32::MAX) + 1;
        for (event, fault) in [
            (data(-1, 0, 0, 5), ReplayFault::ProducerId),
            (txn(1, 0, 0, -1), ReplayFault::Offsets),
            (ProducerEvent { last_offset: 4, ..data(1, 0, 0, 5) }, ReplayFault::Offsets),
            (ProducerEvent { last_offset: far, ..data(1, 0, 0, 0) }, ReplayFault::Offsets),
            (ProducerEvent { last_offset: i64::MIN, ..data(1, 0, 0, 9) }, ReplayFault::Offsets),
        ] {
            assert_eq!(state.apply(&event).unwrap_err().fault, fault);
        }
        assert!(state.producers().is_empty());
    }

    #[test]
    fn an_emptied_control_batch_makes_its_producer_known_and_nothing_more() {
        // spec: behaviours PS-053
        let mut state = ReplayState::new();
        let empty = ProducerEvent { kind: EventKind::EmptyControl, ..data(1, 3, -1, 0) };
        assert_eq!(apply(&mut state, &[empty]), []);
        assert_eq!(entry(&state), ProducerEntry::empty(1));
        apply(&mut state, &[txn(1, 0, 0, 1), empty]);
        assert_eq!(state.first_undecided_offset(), Some(1));
    }

    #[test]
    fn the_oldest_open_transaction_is_the_first_undecided() {
        // spec: behaviours PS-041, PS-042, PS-044
        let mut state = ReplayState::new();
        assert_eq!(state.first_undecided_offset(), None);
        apply(&mut state, &[txn(1, 0, 0, 99)]);
        apply(&mut state, &[txn(2, 0, 0, 105)]);
        assert_eq!(state.first_undecided_offset(), Some(99));
        apply(&mut state, &[marker(1, 0, 109, false)]);
        assert_eq!(state.first_undecided_offset(), Some(105));
        apply(&mut state, &[marker(2, 0, 112, true)]);
        assert_eq!(state.first_undecided_offset(), None);
    }

    #[test]
    fn the_last_stable_offset_of_a_completion_is_that_of_the_other_transactions() {
        // spec: behaviours PS-068, PS-069
        let mut state = ReplayState::new();
        let open = [txn(1, 0, 0, 992_342), txn(2, 0, 0, 992_367), txn(3, 0, 0, 992_399)];
        apply(&mut state, &open);
        let ends = [
            marker(1, 0, 992_412, false),
            marker(3, 0, 992_434, false),
            marker(2, 0, 992_512, false),
        ];
        let completed = apply(&mut state, &ends);
        let stable: Vec<_> = completed.iter().map(|done| done.last_stable_offset).collect();
        assert_eq!(stable, [992_367, 992_367, 992_513]);
    }

    #[test]
    fn markers_without_a_transaction_complete_nothing() {
        // spec: behaviours PS-070
        let mut state = ReplayState::new();
        let completed = apply(
            &mut state,
            &[
                txn(1, 0, 0, 16),
                marker(1, 0, 21, false),
                marker(1, 0, 22, false),
                marker(1, 0, 23, true),
                txn(1, 0, 1, 24),
                marker(1, 0, 28, true),
                marker(1, 0, 29, true),
                txn(1, 0, 2, 30),
            ],
        );
        let found: Vec<_> =
            completed.iter().map(|c| (c.first_offset, c.last_offset, c.aborted)).collect();
        assert_eq!(found, [(16, 21, false), (24, 28, true)]);
        assert_eq!(state.first_undecided_offset(), Some(30));
    }

    #[test]
    fn recovery_finds_the_aborted_transaction_and_its_last_stable_offset() {
        // spec: behaviours LS-035
        let mut state = ReplayState::new();
        let mut completed = apply(
            &mut state,
            &[
                txn(5, 0, 0, 100),
                txn(5, 0, 1, 101),
                txn(10, 0, 0, 102),
                txn(10, 0, 1, 103),
                marker(10, 0, 106, true),
                marker(5, 0, 107, false),
            ],
        );
        completed.retain(|transaction| transaction.aborted);
        assert_eq!(
            completed,
            [CompletedTransaction {
                producer_id: 10,
                first_offset: 102,
                last_offset: 106,
                last_stable_offset: 100,
                aborted: true
            }]
        );
    }
}
