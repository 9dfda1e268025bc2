//! Consumers and listings of offsets over remote and local segments: section RR.

use siltstone::tier::{RemoteTimestamp, remote_offset_for_timestamp};

use crate::tiered_log::{T, Tiered};

const EARLIEST: i64 = -2;
const EARLIEST_LOCAL: i64 = -4;
const LATEST: i64 = -1;
const LATEST_TIERED: i64 = -5;

impl Tiered {
    /// A special offset and its epoch, -1 for none.
    fn listed(&self, special: i64) -> (i64, i32) {
        let found = self.log.log().offset_for_timestamp(special).unwrap().unwrap();
        (found.offset, found.leader_epoch.unwrap_or(-1))
    }

    /// The offset and epoch for a timestamp, and whether remote storage told it.
    fn by_time(&self, timestamp_ms: i64) -> (i64, i32, bool) {
        let log = self.log.log();
        let first_local = log.segments().iter().next().map(|it| it.base_offset());
        let from = log.log_start_offset();
        let found = self
            .with(|view| remote_offset_for_timestamp(view, timestamp_ms, from, first_local))
            .unwrap();
        let (found, is_remote) = match found {
            RemoteTimestamp::Found(found) => (found, true),
            RemoteTimestamp::TryLocal => (log.offset_for_timestamp(timestamp_ms).unwrap(), false),
        };
        let found = found.unwrap();
        (found.offset, found.leader_epoch.unwrap_or(-1), is_remote)
    }
}

#[test]
fn what_is_in_remote_storage_is_known_again_after_a_restart() {
    // spec: tiered-behaviours RR10
    let mut tiered = Tiered::new(1);
    (0..3).for_each(|_| tiered.produce(0));
    tiered.settle();
    assert_eq!(tiered.log.log().local_log_start_offset(), 2);
    tiered.bounce();
    let log = tiered.log.log();
    assert_eq!((log.log_start_offset(), log.local_log_start_offset()), (0, 2));
    assert_eq!(tiered.local(), [2]);
    assert_eq!(tiered.consume(1, 2), (vec![1, 2], 1));
}

#[test]
fn a_consumer_goes_on_from_remote_to_local_segments() {
    // spec: tiered-behaviours RR11
    let mut tiered = Tiered::new(2);
    (0..5).for_each(|_| tiered.produce(0));
    tiered.settle();
    assert_eq!(tiered.consume(1, 4), (vec![1, 2, 3, 4], 3));
}

/// Two records a segment; the first three of epoch 0, three more of epoch 1.
fn two_leaders() -> Tiered {
    let mut tiered = Tiered::new(2);
    (0..3).for_each(|_| tiered.produce(0));
    tiered.settle();
    (0..3).for_each(|_| tiered.produce(1));
    tiered.settle();
    tiered
}

#[test]
fn offsets_are_listed_over_remote_and_local_segments() {
    // spec: tiered-behaviours RR12
    let tiered = two_leaders();
    assert_eq!(tiered.listed(EARLIEST), (0, 0));
    assert_eq!(tiered.listed(EARLIEST_LOCAL), (4, 1));
    assert_eq!(tiered.listed(LATEST_TIERED), (3, 1));
    assert_eq!(tiered.listed(LATEST), (6, 1));
}

#[test]
fn offsets_by_time_are_told_by_remote_storage() {
    // spec: tiered-behaviours RR14
    let tiered = two_leaders();
    assert_eq!(tiered.by_time(T - 1), (0, 0, true));
    assert_eq!(tiered.by_time(T), (0, 0, true));
    assert_eq!(tiered.by_time(T + 1), (1, 0, true));
    assert_eq!(tiered.by_time(T + 3), (3, 1, true));
    assert_eq!(tiered.by_time(T + 4), (4, 1, false));
}

#[test]
fn a_deletion_of_records_moves_what_is_listed() {
    // spec: tiered-behaviours RR15, RR16
    let mut tiered = two_leaders();
    assert_eq!(tiered.delete_records(3), 1);
    assert_eq!(tiered.listed(EARLIEST), (3, 1));
    assert_eq!(tiered.listed(EARLIEST_LOCAL), (4, 1));
    tiered.delete_records(4);
    assert_eq!(tiered.listed(EARLIEST), (4, 1));
    assert_eq!(tiered.listed(EARLIEST_LOCAL), (4, 1));
    assert_eq!(tiered.listed(LATEST_TIERED), (3, -1));
    assert_eq!(tiered.listed(LATEST), (6, 1));
}
