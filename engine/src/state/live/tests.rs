use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::state::event::ProducerEvent;
use crate::state::replay::tests::{any_events, data, marker, txn};
use crate::state::{EventKind, ReplayState, SnapshotSet};

const CLIENT: AppendOrigin = AppendOrigin::Client;
const REPLICATION: AppendOrigin = AppendOrigin::Replication;
const COORDINATOR: AppendOrigin = AppendOrigin::Coordinator;

/// A state and the snapshot files beside it.
struct Log {
    state: ProducerState,
    files: BTreeMap<i64, Vec<u8>>,
}

impl Log {
    fn new() -> Self {
        Self::with_files(BTreeMap::new())
    }

    fn with_files(files: BTreeMap<i64, Vec<u8>>) -> Self {
        let config =
            ProducerStateConfig { transaction_timeout_max_ms: 300_000, ..Default::default() };
        let snapshots = SnapshotSet::new(files.keys().copied());
        Log { state: ProducerState::new(config, snapshots), files }
    }

    fn append(&mut self, origin: AppendOrigin, event: ProducerEvent) -> Result<(), Refusal> {
        self.append_version(origin, event, Some(0)).map(|_| ())
    }

    fn append_version(
        &mut self,
        origin: AppendOrigin,
        event: ProducerEvent,
        version: TransactionVersion,
    ) -> Result<Option<Completion>, Refusal> {
        let mut append = self.state.prepare(event.producer_id, origin);
        let completion = append.add(&event, None, version)?;
        self.state.commit(&append);
        if let Some(completion) = &completion {
            self.state.complete(completion)?;
        }
        self.state.snapshots_mut().set_map_end_offset(event.last_offset + 1);
        Ok(completion)
    }

    fn client(&mut self, event: ProducerEvent) -> Result<(), Refusal> {
        self.append(CLIENT, event)
    }

    fn end(&mut self, event: ProducerEvent) {
        self.append(COORDINATOR, event).unwrap();
    }

    fn snapshot(&mut self) {
        self.files.extend(self.state.take_snapshot());
    }

    fn reload(&mut self, start: i64, end: i64, now_ms: i64) {
        let reload = self.state.truncate_and_reload(start, end);
        reload.delete.iter().for_each(|offset| drop(self.files.remove(offset)));
        if !reload.reload {
            return;
        }
        loop {
            let Some(offset) = self.state.snapshots().latest() else {
                return self.state.nothing_to_load(start);
            };
            match self.state.load_snapshot(offset, &self.files[&offset], now_ms) {
                Ok(()) => return,
                Err(_) => drop(self.files.remove(&offset)),
            }
        }
    }

    fn reopened(&self, start: i64, end: i64, now_ms: i64) -> Self {
        let mut log = Self::with_files(self.files.clone());
        log.reload(start, end, now_ms);
        log
    }

    fn producer(&self) -> LiveProducer {
        self.state.producer(1).unwrap()
    }

    /// First and last sequence, first and last data offset.
    fn span(&self) -> (i32, i32, i64, i64) {
        let producer = self.producer();
        let batches = producer.batches();
        let (first, last) = (batches.first().unwrap(), batches.last().unwrap());
        let first_sequence = first.first_sequence();
        (first_sequence, last.last_sequence, first.first_offset(), last.last_offset)
    }

    fn unstable(&self) -> Option<i64> {
        self.state.first_unstable_offset().map(|metadata| metadata.offset)
    }
}

/// A batch of several records.
fn wide(id: i64, epoch: i16, sequences: (i32, i32), offsets: (i64, i64)) -> ProducerEvent {
    ProducerEvent {
        base_sequence: sequences.0,
        last_sequence: sequences.1,
        base_offset: offsets.0,
        last_offset: offsets.1,
        ..data(id, epoch, 0, 0)
    }
}

fn at(event: ProducerEvent, timestamp: i64) -> ProducerEvent {
    ProducerEvent { max_timestamp: timestamp, ..event }
}

fn coordinated(event: ProducerEvent, epoch: i32) -> ProducerEvent {
    let EventKind::Marker { abort, timestamp, .. } = event.kind else { panic!("no marker") };
    let kind = EventKind::Marker { abort, coordinator_epoch: epoch, timestamp };
    ProducerEvent { kind, ..event }
}

fn reason(result: Result<(), Refusal>) -> Reason {
    result.unwrap_err().reason
}

#[test]
fn sequences_follow_each_other() {
    // spec: behaviours PS-001, PS-002
    let mut log = Log::new();
    log.client(data(1, 0, 0, 0)).unwrap();
    log.client(data(1, 0, 1, 1)).unwrap();
    for sequence in [1, 5] {
        assert_eq!(reason(log.client(data(1, 0, sequence, 2))), Reason::OutOfOrderSequence);
    }
    assert_eq!(log.span(), (0, 1, 0, 1));
}

#[test]
fn after_a_marker_alone_only_sequence_0_of_its_epoch_follows() {
    // spec: behaviours PS-004, PS-005
    let mut log = Log::new();
    log.end(marker(1, 2, 27, false));
    assert_eq!((log.producer().producer_epoch, log.producer().last_sequence()), (2, -1));
    assert_eq!(reason(log.client(data(1, 0, 0, 28))), Reason::InvalidProducerEpoch);
    assert_eq!(reason(log.client(data(1, 2, 17, 28))), Reason::OutOfOrderSequence);
    log.client(data(1, 2, 0, 28)).unwrap();
    assert_eq!(log.producer().last_sequence(), 0);
}

#[test]
fn the_sequence_wraps_to_0() {
    // spec: behaviours PS-006
    let mut log = Log::new();
    log.append(REPLICATION, data(1, 15, i32::MAX, 735)).unwrap();
    log.client(data(1, 15, 0, 736)).unwrap();
    assert_eq!(log.span(), (i32::MAX, 0, 735, 736));
}

#[test]
fn a_batch_counts_once_its_append_is_committed() {
    // spec: behaviours PS-008, PS-009
    let mut log = Log::new();
    let mut append = log.state.prepare(1, REPLICATION);
    append.add(&wide(1, 0, (2_147_483_637, 9), (2000, 2020)), None, None).unwrap();
    assert!(log.state.producer(1).is_none());
    log.state.commit(&append);
    assert_eq!(log.span(), (2_147_483_637, 9, 2000, 2020));
    let mut log = Log::new();
    log.append(REPLICATION, data(1, 5, 16, 735)).unwrap();
    assert_eq!((log.producer().producer_epoch, log.span()), (5, (16, 16, 735, 735)));
}

#[test]
fn a_marker_of_a_new_epoch_forgets_the_sequences() {
    // spec: behaviours PS-010
    let mut log = Log::new();
    log.client(data(1, 0, 0, 0)).unwrap();
    log.end(marker(1, 1, 1, true));
    let producer = log.producer();
    assert_eq!((producer.producer_epoch, producer.last_sequence()), (1, -1));
    assert!(!producer.in_transaction() && producer.batches().is_empty());
}

#[test]
fn the_first_unstable_offset_has_the_place_of_the_batch() {
    // spec: behaviours PS-012
    let mut log = Log::new();
    let mut append = log.state.prepare(1, CLIENT);
    let place = Some((990_000, 234_224));
    append.add(&txn(1, 0, 0, 992_342), place, None).unwrap();
    log.state.commit(&append);
    let expected = OffsetMetadata { offset: 992_342, place };
    assert_eq!(log.state.first_unstable_offset(), Some(expected));
}

#[test]
fn a_transaction_is_late_when_it_outlasts_the_timeout_and_the_buffer() {
    // spec: behaviours PS-013, PS-014
    let t = 1_700_000_000_000;
    for (version, epoch) in [(Some(0), 0), (Some(2), 1)] {
        let mut log = Log::new();
        log.client(at(txn(39, 0, 0, 100), t)).unwrap();
        log.client(at(txn(57, 0, 0, 150), t + 500)).unwrap();
        assert!(!log.state.has_late_transaction(t + 600_000));
        assert!(log.state.has_late_transaction(t + 600_001));
        let now = t + 600_501;
        log.append_version(COORDINATOR, marker(39, epoch, 200, false), version).unwrap();
        assert!(log.state.has_late_transaction(now));
        log.append_version(COORDINATOR, marker(57, epoch, 250, false), version).unwrap();
        assert!(!log.state.has_late_transaction(now));
    }
}

#[test]
fn truncation_forgets_a_late_transaction() {
    // spec: behaviours PS-016
    let late = || {
        let mut log = Log::new();
        log.client(at(txn(1, 0, 0, 100), 1000)).unwrap();
        assert!(log.state.has_late_transaction(10_000_000));
        log
    };
    let mut log = late();
    log.reload(0, 80, 10_000_000);
    assert!(!log.state.has_late_transaction(10_000_000));
    let mut log = late();
    assert!(log.state.truncate_fully_and_start_at(150).is_empty());
    assert!(!log.state.has_late_transaction(10_000_000));
}

#[test]
fn an_append_is_prepared_on_what_the_one_before_it_left() {
    // spec: behaviours PS-017, PS-018
    let mut log = Log::new();
    let mut append = log.state.prepare(1, CLIENT);
    append.add(&wide(1, 0, (0, 5), (15, 20)), None, None).unwrap();
    assert!(log.state.producer(1).is_none());
    log.state.commit(&append);
    let mut append = log.state.prepare(1, CLIENT);
    append.add(&wide(1, 0, (6, 10), (26, 30)), None, None).unwrap();
    assert_eq!(log.span(), (0, 5, 15, 20));
    log.state.commit(&append);
    assert_eq!(log.span(), (0, 10, 15, 30));
}

#[test]
fn after_an_abort_of_a_new_epoch_sequences_start_at_0() {
    // spec: behaviours PS-020
    let mut log = Log::new();
    log.client(txn(1, 0, 0, 0)).unwrap();
    log.client(txn(1, 0, 1, 1)).unwrap();
    log.end(marker(1, 1, 2, true));
    for epoch in [1, 2] {
        assert_eq!(reason(log.client(data(1, epoch, 2, 3))), Reason::OutOfOrderSequence);
    }
    log.client(data(1, 1, 0, 3)).unwrap();
}

#[test]
fn plain_data_within_a_transaction_is_refused() {
    // spec: behaviours PS-021
    let mut log = Log::new();
    log.client(txn(1, 0, 0, 0)).unwrap();
    assert_eq!(reason(log.client(data(1, 0, 1, 1))), Reason::InvalidTxnState);
    assert_eq!(log.span(), (0, 0, 0, 0));
}

#[test]
fn a_reload_knows_the_newest_batch_and_the_open_transaction() {
    // spec: behaviours PS-025, PS-026
    let mut log = Log::new();
    log.client(txn(1, 0, 0, 0)).unwrap();
    log.client(txn(1, 0, 1, 1)).unwrap();
    log.snapshot();
    let mut reopened = log.reopened(0, 3, 100);
    assert_eq!(reopened.span(), (1, 1, 1, 1));
    assert_eq!(reopened.producer().txn_first_offset, 0);
    assert_eq!(reopened.unstable(), Some(0));
    reopened.client(txn(1, 0, 2, 2)).unwrap();
    log.end(marker(1, 0, 2, true));
    log.snapshot();
    let reopened = log.reopened(0, 3, 100);
    assert_eq!(reopened.span(), (1, 1, 1, 1));
    assert!(!reopened.producer().in_transaction() && reopened.unstable().is_none());
}

#[test]
fn a_producer_without_batches_is_kept_until_it_expires() {
    // spec: behaviours PS-028
    let mut log = Log::new();
    log.client(txn(1, 0, 0, 0)).unwrap();
    log.end(marker(1, 1, 1, true));
    log.state.remove_expired(100);
    let producer = log.producer();
    assert!(!producer.in_transaction() && producer.newest().is_none());
}

#[test]
fn an_expired_producer_starts_anew_with_any_sequence() {
    // spec: behaviours PS-029, PS-030, PS-040
    for origin in [CLIENT, REPLICATION] {
        let mut log = Log::new();
        log.client(at(data(1, 0, 0, 0), 0)).unwrap();
        log.client(at(data(1, 0, 1, 1), 1)).unwrap();
        log.snapshot();
        let mut reopened = log.reopened(0, 1, 86_400_000 + 70_000);
        reopened.append(origin, at(data(1, 0, 2, 2), 70_001)).unwrap();
        assert_eq!(reopened.state.producers().len(), 1);
        assert_eq!(reopened.producer().last_sequence(), 2);
        assert_eq!(reopened.state.snapshots().map_end_offset(), 3);
    }
    let mut log = Log::new();
    log.client(at(data(1, 0, 0, 1), 0)).unwrap();
    log.state.remove_expired(86_400_001);
    log.client(at(data(1, 0, 1, 2), 86_400_001)).unwrap();
    assert_eq!((log.state.producers().len(), log.producer().last_sequence()), (1, 1));
    assert_eq!(log.state.snapshots().map_end_offset(), 3);
}

#[test]
fn a_completed_transaction_is_stable_once_replicated_and_after_a_reload() {
    // spec: behaviours PS-036, PS-037
    let mut log = Log::new();
    log.client(txn(1, 0, 0, 99)).unwrap();
    log.snapshot();
    log.end(marker(1, 0, 105, false));
    log.state.high_watermark_updated(106);
    assert_eq!(log.unstable(), None);
    log.snapshot();
    log.client(data(1, 0, 1, 106)).unwrap();
    log.reload(0, 106, 2000);
    assert_eq!(log.unstable(), None);
    log.reload(0, 100, 2000);
    assert_eq!(log.unstable(), Some(99));
}

#[test]
fn a_log_start_that_moves_keeps_the_producers() {
    // spec: behaviours PS-038
    let mut log = Log::new();
    log.client(data(1, 0, 0, 0)).unwrap();
    log.client(data(2, 0, 0, 1)).unwrap();
    log.snapshot();
    log.reload(1, 2, 100);
    let last: Vec<_> = log.state.producers().map(|p| p.entry()).collect();
    assert_eq!(last.iter().map(|e| e.last_sequence).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(last.iter().map(|e| e.last_offset).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_transaction_is_undecided_until_its_marker_and_unstable_until_that_is_replicated() {
    // spec: behaviours PS-041, PS-042, PS-044, PS-045
    let mut log = Log::new();
    let both = |log: &Log| (log.state.first_undecided_offset(), log.unstable());
    assert_eq!(both(&log), (None, None));
    log.client(txn(1, 0, 0, 99)).unwrap();
    assert_eq!(both(&log), (Some(99), Some(99)));
    log.client(txn(2, 0, 0, 105)).unwrap();
    assert_eq!(both(&log), (Some(99), Some(99)));
    log.end(marker(1, 0, 109, false));
    assert_eq!(both(&log), (Some(105), Some(99)));
    log.state.high_watermark_updated(100);
    assert_eq!(both(&log), (Some(105), Some(99)));
    log.state.high_watermark_updated(110);
    assert_eq!(both(&log), (Some(105), Some(105)));
    log.end(marker(2, 0, 112, true));
    assert_eq!(both(&log), (None, Some(105)));
    log.state.high_watermark_updated(112);
    assert_eq!(both(&log), (None, Some(105)));
    log.state.high_watermark_updated(113);
    assert_eq!(both(&log), (None, None));
}

#[test]
fn a_producer_with_an_open_transaction_does_not_expire() {
    // spec: behaviours PS-046
    let mut log = Log::new();
    log.client(at(txn(1, 0, 0, 99), 0)).unwrap();
    log.state.remove_expired(86_400_001);
    assert!(log.state.producer(1).is_some());
    assert_eq!(log.state.first_undecided_offset(), Some(99));
}

#[test]
fn markers_of_old_epochs_are_refused() {
    // spec: behaviours PS-048, PS-049
    for (epoch, version, accepted) in
        [(3, 0, false), (3, 2, false), (5, 2, false), (5, 0, true), (6, 2, true), (6, 0, true)]
    {
        let mut log = Log::new();
        log.client(txn(1, 5, 0, 0)).unwrap();
        let result = log.append_version(COORDINATOR, marker(1, epoch, 1, false), Some(version));
        assert_eq!(result.is_ok(), accepted, "epoch {epoch}, version {version}");
        if let Err(refusal) = result {
            assert_eq!(refusal.reason, Reason::InvalidProducerEpoch);
        }
    }
}

#[test]
fn a_marker_with_a_raised_epoch_may_be_written_again() {
    // spec: producer-state A2.3
    let mut log = Log::new();
    log.client(txn(1, 5, 0, 0)).unwrap();
    for _ in 0..2 {
        log.append_version(COORDINATOR, marker(1, 6, 1, false), Some(2)).unwrap();
    }
    // The largest epoch cannot be raised: its marker ends the transaction all the same.
    log.client(txn(1, i16::MAX, 0, 2)).unwrap();
    let last = marker(1, i16::MAX, 3, false);
    assert!(log.append_version(COORDINATOR, last, Some(2)).unwrap().is_some());
}

#[test]
fn a_follower_takes_what_a_leader_would_refuse() {
    let mut log = Log::new();
    log.append(REPLICATION, data(1, 5, 7, 0)).unwrap();
    log.append(REPLICATION, data(1, 3, 2, 1)).unwrap();
    assert_eq!((log.producer().producer_epoch, log.span()), (3, (2, 2, 1, 1)));
    log.append_version(REPLICATION, marker(1, 2, 2, false), None).unwrap();
    assert_eq!(log.producer().producer_epoch, 2);
    let unversioned = log.append_version(COORDINATOR, marker(1, 9, 3, false), None);
    assert_eq!(unversioned.unwrap_err().reason, Reason::IllegalArgument);
}

#[test]
fn an_old_coordinator_is_fenced() {
    // spec: behaviours PS-050, LD-009
    let mut log = Log::new();
    for (offset, epoch) in [(0, 1), (1, 1), (2, 2)] {
        log.end(coordinated(marker(1, 0, offset, false), epoch));
    }
    let old = coordinated(marker(1, 0, 3, false), 1);
    assert_eq!(reason(log.append(COORDINATOR, old)), Reason::TransactionCoordinatorFenced);
    assert_eq!(log.producer().coordinator_epoch, 2);
    log.append(REPLICATION, old).unwrap();
    assert_eq!(log.producer().coordinator_epoch, 1);
}

#[test]
fn a_corrupt_snapshot_is_passed_over_and_deleted() {
    // spec: behaviours PS-052
    let spoils: [fn(&mut Vec<u8>); 3] =
        [Vec::clear, |bytes| bytes.truncate(bytes.len() / 2), |bytes| bytes[..37].fill(0)];
    for spoil in spoils {
        let mut log = Log::new();
        log.client(data(1, 0, 0, 0)).unwrap();
        log.snapshot();
        log.client(data(1, 0, 1, 1)).unwrap();
        log.snapshot();
        spoil(log.files.get_mut(&2).unwrap());
        let reopened = log.reopened(0, 20, 100);
        assert_eq!(reopened.files.keys().copied().collect::<Vec<_>>(), [1]);
        assert_eq!(reopened.span(), (0, 0, 0, 0));
    }
}

#[test]
fn an_emptied_control_batch_makes_an_entry() {
    // spec: behaviours PS-053
    let mut log = Log::new();
    let empty = ProducerEvent { kind: EventKind::EmptyControl, ..data(1, 3, -1, 0) };
    log.append(COORDINATOR, empty).unwrap();
    assert_eq!(log.producer(), LiveProducer::empty(1));
}

#[test]
fn a_sequence_above_the_one_that_is_verified_is_refused() {
    // spec: behaviours PS-061
    let mut log = Log::new();
    log.state.start_verification(1, 0, 0, false, 0).unwrap();
    assert_eq!(reason(log.client(txn(1, 0, 4, 0))), Reason::OutOfOrderSequence);
    log.state.config_mut().transaction_verification_enabled = false;
    assert_eq!(reason(log.client(txn(1, 0, 4, 0))), Reason::OutOfOrderSequence);
    assert_eq!(log.state.verification_guard(1).number(), 1);
    log.client(txn(1, 0, 0, 0)).unwrap();
}

#[test]
fn an_unknown_producer_of_raised_epochs_starts_at_sequence_0() {
    // spec: behaviours PS-064, PS-065
    let mut log = Log::new();
    log.state.start_verification(1, 0, 0, true, 0).unwrap();
    let refusal = log.client(txn(1, 0, 5, 0)).unwrap_err();
    assert_eq!(refusal.reason, Reason::OutOfOrderSequence);
    let expected = "Expected sequence 0 for transactions v2 idempotent producer";
    assert!(refusal.message.contains(expected), "{refusal}");
    log.client(txn(1, 0, 0, 0)).unwrap();
    let mut log = Log::new();
    log.state.start_verification(1, 5, 0, false, 0).unwrap();
    log.client(txn(1, 0, 5, 0)).unwrap();
}

#[test]
fn a_new_epoch_starts_at_sequence_0() {
    // spec: behaviours PS-066
    let mut log = Log::new();
    for sequence in 0..3 {
        log.client(data(1, 0, sequence, i64::from(sequence))).unwrap();
    }
    let refusal = log.client(data(1, 1, 5, 3)).unwrap_err();
    assert!(refusal.message.contains("Invalid sequence number for new epoch"), "{refusal}");
    log.client(data(1, 1, 0, 3)).unwrap();
}

#[test]
fn the_last_stable_offset_of_a_completion_passes_over_its_own_transaction() {
    // spec: behaviours PS-068, PS-069
    let mut log = Log::new();
    for (id, offset) in [(1, 992_342), (2, 992_367), (3, 992_399)] {
        log.client(txn(id, 0, 0, offset)).unwrap();
    }
    log.end(marker(1, 0, 992_412, false));
    log.state.high_watermark_updated(992_415);
    let completion = |producer_id, first_offset, last_offset| Completion {
        producer_id,
        first_offset,
        last_offset,
        aborted: false,
    };
    let third = completion(3, 992_399, 992_434);
    assert_eq!(log.state.last_stable_offset(&third), 992_367);
    assert_eq!(log.unstable(), Some(992_367));
    log.end(marker(3, 0, 992_434, false));
    let second = completion(2, 992_367, 992_512);
    assert_eq!(log.state.last_stable_offset(&second), 992_513);
    log.end(marker(2, 0, 992_512, false));
    log.state.high_watermark_updated(992_513);
    assert_eq!(log.unstable(), None);
    let again = log.state.complete(&second).unwrap_err();
    assert_eq!(again.reason, Reason::IllegalArgument);
}

#[test]
fn one_append_may_hold_several_transactions() {
    // spec: behaviours PS-070
    let mut log = Log::new();
    log.client(txn(1, 0, 0, 16)).unwrap();
    let mut append = log.state.prepare(1, REPLICATION);
    let events = [
        wide(1, 0, (1, 4), (17, 20)),
        marker(1, 0, 21, false),
        marker(1, 0, 22, false),
        marker(1, 0, 23, true),
        wide(1, 0, (5, 8), (24, 27)),
        marker(1, 0, 28, true),
        marker(1, 0, 29, true),
        wide(1, 0, (9, 10), (30, 31)),
    ];
    let mut completed = Vec::new();
    for mut event in events {
        if let EventKind::Data { transactional } = &mut event.kind {
            *transactional = true;
        }
        completed.extend(append.add(&event, None, Some(0)).unwrap());
    }
    let found: Vec<_> =
        completed.iter().map(|c| (c.first_offset, c.last_offset, c.aborted)).collect();
    assert_eq!(found, [(16, 21, false), (24, 28, true)]);
    let started: Vec<i64> = append.started().iter().map(|metadata| metadata.offset).collect();
    assert_eq!(started, [24, 30]);
    log.state.commit(&append);
    completed.iter().for_each(|completion| log.state.complete(completion).unwrap());
    log.state.high_watermark_updated(32);
    assert_eq!(log.unstable(), Some(30));
}

#[test]
fn a_refused_batch_leaves_the_append_as_it_was() {
    let mut log = Log::new();
    log.client(data(1, 0, 0, 0)).unwrap();
    let mut append = log.state.prepare(1, CLIENT);
    append.add(&txn(1, 0, 1, 1), None, None).unwrap();
    let before = append.producer().clone();
    for event in [data(1, 0, 2, 2), txn(1, 0, 7, 2), txn(2, 0, 2, 2), txn(1, 0, 2, -1)] {
        append.add(&event, None, None).unwrap_err();
        assert_eq!(*append.producer(), before);
        assert_eq!(append.started().len(), 1);
    }
    log.state.commit(&append);
    assert_eq!(log.span(), (0, 1, 0, 1));
}

#[test]
fn the_last_five_batches_are_known_as_duplicates() {
    // spec: behaviours PS-073, UL-061
    let mut log = Log::new();
    for sequence in 0..6 {
        log.client(data(1, 0, sequence, i64::from(sequence))).unwrap();
    }
    log.client(wide(1, 0, (6, 8), (6, 8))).unwrap();
    let found = |event| log.state.find_duplicate(&event).map(|batch| batch.first_offset());
    assert_eq!(found(wide(1, 0, (6, 8), (9, 11))), Some(6));
    assert_eq!(found(wide(1, 0, (7, 8), (9, 10))), None);
    assert_eq!(found(data(1, 0, 2, 9)), Some(2));
    assert_eq!(found(data(1, 0, 1, 9)), None);
    assert_eq!(found(data(1, 1, 2, 9)), None);
    assert_eq!(found(data(2, 0, 2, 9)), None);
}

#[test]
fn the_next_transaction_is_verified_under_a_new_guard() {
    // spec: behaviours UL-135
    let mut log = Log::new();
    let guard = log.state.start_verification(1, 0, 1, true, 0).unwrap();
    log.client(data(1, 1, 0, 0)).unwrap();
    let first = txn(1, 1, 1, 1);
    let unverified = log.state.check_verified(&first, VerificationGuard::SENTINEL);
    assert_eq!(reason(unverified), Reason::InvalidTxnState);
    log.state.check_verified(&first, guard).unwrap();
    log.state.verification_served(&first);
    log.append(REPLICATION, first).unwrap();
    assert!(log.state.has_ongoing_transaction(1, 1));
    let sentinel = VerificationGuard::SENTINEL;
    assert_eq!(log.state.start_verification(1, 2, 1, true, 0).unwrap(), sentinel);
    log.state.check_verified(&txn(1, 1, 2, 2), sentinel).unwrap();
    log.append_version(COORDINATOR, marker(1, 2, 2, false), Some(2)).unwrap();
    log.state.verification_served(&marker(1, 2, 2, false));
    assert!(!log.state.has_ongoing_transaction(1, 2));
    let next = log.state.start_verification(1, 0, 2, true, 0).unwrap();
    assert_ne!(next, guard);
    // With verification switched off a transaction begins without a guard.
    log.state.config_mut().transaction_verification_enabled = false;
    log.state.check_verified(&txn(1, 2, 0, 3), sentinel).unwrap();
}

#[test]
fn an_epoch_below_the_last_seen_one_is_not_verified() {
    // spec: behaviours UL-141
    let mut log = Log::new();
    log.client(txn(1, 6, 0, 0)).unwrap();
    log.end(marker(1, 6, 1, false));
    for bump in [false, true] {
        let refusal = log.state.start_verification(1, 0, 5, bump, 0).unwrap_err();
        assert_eq!(refusal.reason, Reason::InvalidProducerEpoch);
        assert!(refusal.message.contains("smaller than the last seen epoch"), "{refusal}");
    }
    let guard = VerificationGuard::SENTINEL;
    let late = log.state.check_verified(&txn(1, 5, 0, 2), guard);
    assert_eq!(reason(late), Reason::InvalidProducerEpoch);
}

#[test]
fn a_state_is_empty_without_producers_and_unreplicated_transactions() {
    let mut log = Log::new();
    assert!(log.state.is_empty());
    log.client(at(txn(1, 0, 0, 0), 0)).unwrap();
    log.end(marker(1, 0, 1, false));
    log.state.remove_expired(i64::MAX);
    assert!(log.state.producers().len() == 0 && !log.state.is_empty());
    log.state.log_start_offset_incremented(2);
    assert!(log.state.is_empty());
    assert_eq!(log.state.snapshots().map_end_offset(), 2);
}

proptest! {
    #[test]
    fn replay_gives_the_snapshots_that_recovery_writes(events in any_events()) {
        let mut recovered = ReplayState::new();
        let mut log = Log::new();
        for event in &events {
            let expected = recovered.apply(event);
            let found = log.state.replay(event);
            prop_assert_eq!(found.is_ok(), expected.is_ok());
            if let (Ok(found), Ok(expected)) = (found, expected) {
                let found = found.map(|c| (c.producer_id, c.first_offset, c.last_offset, c.aborted));
                let expected =
                    expected.map(|c| (c.producer_id, c.first_offset, c.last_offset, c.aborted));
                prop_assert_eq!(found, expected);
            }
            prop_assert_eq!(
                log.state.first_undecided_offset(),
                recovered.first_undecided_offset()
            );
        }
        log.state.snapshots_mut().set_map_end_offset(1);
        prop_assert_eq!(log.state.take_snapshot(), Some((1, recovered.snapshot())));
    }
}
