//! Section UL: a log as its leader and its followers write it.

use siltstone::Kind;
use siltstone::log::timestamps::{
    EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST, LATEST_TIERED, MAX_TIMESTAMP,
};
use siltstone::log::{AppendReason, Isolation, LeaderAppend, Log, LogConfig};
use siltstone::record::codec::Codec;
use siltstone::record::validate::{AppendOrigin, ValidateErrorKind};
use siltstone::state::live::VerificationGuard;
use siltstone::uuid::Uuid;
use siltstone_tests::live::{Marker, NOW_MS, TestBatch, TestLog, base_offsets, records};

/// Bytes of a batch of one record.
const ONE: u32 = 69;

fn five_per_segment() -> TestLog {
    TestLog::with(|config| config.segment_bytes = 5 * ONE)
}

fn lead_many(log: &mut TestLog, count: usize, time_ms: i64) {
    for _ in 0..count {
        log.lead(&records(1).times(&[time_ms]));
    }
}

/// Deletes what is due, with the high watermark at the end.
fn delete_old(log: &TestLog) -> usize {
    log.replicate();
    log.log().delete_old_segments(log.now_ms).expect("a deletion")
}

fn first_unstable(log: &TestLog) -> Option<i64> {
    log.log().first_unstable_offset().expect("a log")
}

#[test]
fn batches_get_the_epoch_of_their_leader() {
    // spec: behaviours UL-001
    let mut log = TestLog::new();
    for _ in 0..50 {
        log.try_lead(&records(1), 72).unwrap();
    }
    let headers = log.headers();
    assert_eq!(headers.len(), 50);
    assert!(headers.iter().all(|header| header.leader_epoch == 72));
}

#[test]
fn epochs_go_with_the_segments_that_retention_deletes() {
    // spec: behaviours UL-003, UL-004
    for (starts, kept) in [
        ([(0, 0), (1, 5), (2, 10)], vec![(1, 5), (2, 10)]),
        ([(0, 0), (1, 7), (2, 10)], vec![(0, 5), (1, 7), (2, 10)]),
    ] {
        let mut log = TestLog::with(|config| {
            config.segment_bytes = 5 * ONE;
            config.retention_bytes = i64::from(10 * ONE);
        });
        for offset in 0..15 {
            let epoch = starts.iter().rev().find(|(_, start)| *start <= offset).unwrap().0;
            log.try_lead(&records(1), epoch).unwrap();
        }
        assert_eq!(delete_old(&log), 1);
        assert_eq!(log.bases(), [5, 10]);
        assert_eq!(log.epochs(), kept);
    }
}

#[test]
fn truncation_takes_the_epochs_behind_it() {
    // spec: behaviours UL-005
    let log = TestLog::new();
    let mut offset = 0;
    for (epoch, count) in [(0, 10), (1, 6), (2, 4)] {
        for _ in 0..count {
            log.follow(&records(1).at(offset).epoch(epoch));
            offset += 1;
        }
    }
    for (end, left) in [(20, 3), (11, 2), (10, 1), (0, 0)] {
        log.log().truncate_to(end, log.now_ms).unwrap();
        assert_eq!(log.epochs().len(), left, "cut at {end}");
    }
}

#[test]
fn time_retention_leaves_one_new_segment_and_keeps_fresh_ones() {
    // spec: behaviours UL-007, UL-008
    let mut log = TestLog::with(|config| config.retention_ms = 10_000);
    lead_many(&mut log, 15, 10);
    assert_eq!(delete_old(&log), 1);
    assert_eq!(log.bases(), [15]);
    let mut log = TestLog::with(|config| config.retention_ms = 10_000_000);
    lead_many(&mut log, 15, NOW_MS);
    assert_eq!(delete_old(&log), 0);
}

#[test]
fn a_compacted_log_is_not_for_time_retention() {
    // spec: behaviours UL-009
    let mut log = TestLog::with(|config| {
        config.retention_ms = 10_000;
        (config.compact, config.delete) = (true, false);
    });
    for _ in 0..15 {
        log.lead(&records(1).key("k").times(&[10]));
    }
    assert_eq!(delete_old(&log), 0);
}

#[test]
fn without_a_policy_local_retention_rules_what_is_uploaded() {
    // spec: behaviours UL-011, UL-012
    let limits: [fn(&mut LogConfig); 2] = [
        |config| config.local_retention_bytes = i64::from(ONE / 2),
        |config| (config.local_retention_ms, config.local_retention_bytes) = (5000, -1),
    ];
    for limit in limits {
        let mut log = TestLog::with(|config| {
            config.segment_bytes = 5 * ONE;
            (config.compact, config.delete) = (false, false);
            config.remote_storage = true;
            limit(config);
        });
        lead_many(&mut log, 15, 10);
        log.log().update_highest_remote_offset(14);
        assert!(delete_old(&log) > 0);
    }
}

#[test]
fn segments_before_the_log_start_go() {
    // spec: behaviours UL-013
    let mut log = five_per_segment();
    lead_many(&mut log, 15, NOW_MS);
    log.replicate();
    for (start, left) in [(1, 3), (6, 2), (15, 1)] {
        assert!(log.log().maybe_increment_log_start_offset(start).unwrap());
        delete_old(&log);
        assert_eq!(log.bases().len(), left, "start {start}");
    }
}

#[test]
fn nothing_beyond_the_high_watermark_is_deleted() {
    // spec: behaviours UL-015, UL-016, UL-017
    let mut log = TestLog::with(|config| {
        config.segment_bytes = 5 * ONE;
        config.retention_ms = 1000;
    });
    for offset in 0..100 {
        let epoch = i32::from(offset >= 90);
        log.try_lead(&records(1).times(&[10]), epoch).unwrap();
    }
    assert_eq!(log.log().delete_old_segments(log.now_ms).unwrap(), 0);
    assert_eq!(log.log().log_start_offset(), 0);
    for high_watermark in 25..=30 {
        log.log().update_high_watermark(high_watermark).unwrap();
        log.log().delete_old_segments(log.now_ms).unwrap();
        assert!(log.log().log_start_offset() <= high_watermark);
        let bases = log.bases();
        for next in bases.iter().skip(1) {
            assert!(*next > high_watermark, "{bases:?}");
        }
    }
    delete_old(&log);
    assert_eq!(log.bases(), [100]);
    assert_eq!(log.epochs(), [(1, 100)]);
}

#[test]
fn a_transaction_holds_back_until_its_marker_is_replicated() {
    // spec: behaviours UL-019, UL-020, UL-021
    let mut log = TestLog::new();
    assert_eq!(first_unstable(&log), None);
    log.lead(&records(3).txn(7, 0, 0));
    assert_eq!(first_unstable(&log), Some(0));
    log.lead(&records(1).txn(7, 0, 3));
    assert_eq!(first_unstable(&log), Some(0));
    assert_eq!(log.end(7, 0, false).last_offset, 4);
    assert_eq!(first_unstable(&log), Some(0));
    log.log().update_high_watermark(5).unwrap();
    assert_eq!(first_unstable(&log), None);
}

#[test]
fn a_raft_leader_gives_its_own_offsets() {
    // spec: behaviours UL-023
    let log = TestLog::new();
    let append = |at| {
        let bytes = records(3).at(at).epoch(5).build();
        log.log().append_as_raft_leader(&bytes, 5, NOW_MS)
    };
    append(0).unwrap();
    assert_eq!(log.log().log_end_offset(), 3);
    assert_eq!(append(1).unwrap_err().reason(), Some(AppendReason::UnexpectedAppendOffset));
    append(3).unwrap();
    assert_eq!(log.log().log_end_offset(), 6);
    let bytes = records(1).at(6).epoch(4).build();
    let error = log.log().append_as_raft_leader(&bytes, 5, NOW_MS).unwrap_err();
    assert_eq!(error.invalid(), Some(ValidateErrorKind::InvalidRecord));
}

#[test]
fn an_append_tells_its_first_offset() {
    // spec: behaviours UL-024
    let mut log = TestLog::new();
    assert_eq!(log.lead(&records(3)).first_offset, Some(0));
    assert_eq!(log.lead(&records(3)).first_offset, Some(3));
    log.log().roll(NOW_MS).unwrap();
    assert_eq!(log.lead(&records(3)).first_offset, Some(6));
}

#[test]
fn an_open_transaction_is_known_after_a_reopen_and_goes_with_the_log() {
    // spec: behaviours UL-025, UL-027
    let mut log = TestLog::new();
    log.lead(&records(3));
    log.lead(&records(2).txn(1, 0, 0));
    log.reopen();
    assert_eq!(first_unstable(&log), Some(3));
    log.log().truncate_fully_and_start_at(2, Some(1), NOW_MS).unwrap();
    assert_eq!((log.log().log_start_offset(), log.log().log_end_offset()), (1, 2));
    assert_eq!(first_unstable(&log), None);
}

#[test]
fn the_high_watermark_stays_within_the_log() {
    // spec: behaviours UL-028, UL-121
    let mut log = TestLog::new();
    log.lead(&records(3));
    assert_eq!(log.log().high_watermark(), 0);
    assert_eq!(log.log().maybe_increment_high_watermark(1).unwrap(), Some(0));
    assert_eq!(log.log().high_watermark(), 1);
    assert_eq!(log.log().update_high_watermark(5).unwrap(), 3);
    let mut log = TestLog::new();
    log.lead(&records(100));
    let asked = [99, 99, 100, 100, 101];
    let answers = asked.map(|asked| log.log().maybe_update_high_watermark(asked).unwrap());
    assert_eq!(answers, [Some(99), None, Some(100), None, None]);
    let error = log.log().maybe_increment_high_watermark(101).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
    assert_eq!(log.log().update_high_watermark(-1).unwrap_err().kind(), Kind::InvalidArgument);
}

#[test]
fn truncation_lowers_the_high_watermark_and_appends_leave_it() {
    // spec: behaviours UL-029
    let log = TestLog::new();
    log.follow(&records(6).epoch(0));
    log.replicate();
    log.log().truncate_to(3, NOW_MS).unwrap();
    assert_eq!((log.log().high_watermark(), log.log().log_end_offset()), (3, 3));
    log.follow(&records(3).at(3).epoch(0));
    assert_eq!((log.log().high_watermark(), log.log().log_end_offset()), (3, 6));
}

#[test]
fn a_fetch_begins_with_the_batch_that_holds_the_offset() {
    // spec: behaviours UL-031, UL-032
    let mut log = TestLog::new();
    log.lead(&records(3));
    log.lead(&records(2));
    for (offset, base) in [(0, 0), (1, 0), (2, 0), (3, 3), (4, 3)] {
        let fetched = log.read(offset);
        assert_eq!(fetched.place.offset, base);
        assert_eq!(base_offsets(&fetched.bytes)[0], base);
        assert_eq!(log.headers().len(), 2);
    }
    log.log().update_high_watermark(3).unwrap();
    let read = |offset| log.try_read(offset, u32::MAX, Isolation::HighWatermark).unwrap();
    for offset in 0..3 {
        assert_eq!(base_offsets(&read(offset).bytes), [0]);
    }
    for (offset, base) in [(3, 3), (4, 3), (5, 5)] {
        let fetched = read(offset);
        assert!(fetched.bytes.is_empty());
        assert_eq!(fetched.place.offset, base, "at {offset}");
    }
}

#[test]
fn the_last_stable_offset_waits_for_the_first_open_transaction() {
    // spec: behaviours UL-033
    let mut log = TestLog::new();
    log.lead(&records(5).txn(1, 0, 0));
    log.lead(&records(3));
    log.lead(&records(2).txn(2, 0, 0));
    log.lead(&records(4).txn(1, 0, 5));
    log.lead(&records(2));
    log.lead(&records(10).txn(1, 0, 9));
    log.replicate();
    assert_eq!(log.log().last_stable_offset(), 0);
    assert_eq!(log.end(1, 0, false).last_offset, 26);
    assert_eq!(log.log().last_stable_offset(), 0);
    log.log().update_high_watermark(27).unwrap();
    assert_eq!(log.log().last_stable_offset(), 8);
}

#[test]
fn segments_roll_by_the_clock_where_there_are_no_timestamps() {
    // spec: behaviours UL-035, UL-036, UL-037, UL-039, UL-040
    let mut log = TestLog::with(|config| {
        config.segment_ms = 3600;
        config.timestamp_after_max_ms = i64::MAX;
    });
    let count = |log: &TestLog| log.bases().len();
    let lead = |log: &mut TestLog, time_ms| {
        log.lead(&records(1).times(&[time_ms]));
        log.bases().len()
    };
    log.now_ms += 3601;
    assert_eq!(lead(&mut log, -1), 1, "an empty segment is not rolled");
    log.now_ms += 3601;
    assert_eq!(lead(&mut log, -1), 2);
    for wanted in [3, 4] {
        log.now_ms += 3601;
        assert_eq!(lead(&mut log, -1), wanted);
    }
    let first = log.now_ms + 3601;
    assert_eq!(lead(&mut log, first), 4, "the clock decides: the first batch has no timestamp");
    log.now_ms += 3601;
    assert_eq!(lead(&mut log, first), 5);
    log.now_ms += 3601;
    assert_eq!(lead(&mut log, first), 5, "by the timestamps no time has passed");
    let now = log.now_ms + 3601;
    log.now_ms = now;
    assert_eq!(lead(&mut log, now), 6);
    for wait in [0, 3601, 100_000] {
        log.now_ms += wait;
        assert_eq!(log.try_follow(&[]).unwrap().first_offset, None);
        assert_eq!(count(&log), 6);
    }
}

#[test]
fn an_epoch_that_has_no_batch_goes_with_a_truncation_that_cuts_nothing() {
    // spec: behaviours UL-043
    let log = TestLog::new();
    log.log().truncate_fully_and_start_at(27, None, NOW_MS).unwrap();
    log.follow(&records(2).at(27).epoch(19));
    for (epoch, cut) in [(20, 29), (24, 30)] {
        log.log().assign_epoch_start(epoch, 29).unwrap();
        assert!(!log.log().truncate_to(cut, NOW_MS).unwrap());
        assert_eq!(log.epochs(), [(19, 27)]);
        assert_eq!(log.log().log_end_offset(), 29);
    }
}

#[test]
fn truncation_loads_the_producers_from_the_snapshot_that_fits() {
    // spec: behaviours UL-044, UL-048
    let mut log = TestLog::new();
    log.lead(&records(1));
    log.reopen();
    assert_eq!(log.snapshots(), [1]);
    let mut log = TestLog::new();
    log.lead(&records(1).producer(1, 0, 0));
    log.lead(&records(1).producer(1, 0, 1));
    log.log().truncate_to(1, NOW_MS).unwrap();
    let last = log.log().with_producers(|state| state.producer(1).unwrap().last_sequence());
    assert_eq!(last.unwrap(), 0);
}

#[test]
fn truncation_reads_sequences_from_the_headers_of_compacted_batches() {
    // spec: behaviours UL-045
    let log = TestLog::new();
    log.log().truncate_fully_and_start_at(23, None, NOW_MS).unwrap();
    let options = siltstone::record::builder::BatchOptions {
        base_offset: 23,
        leader_epoch: 0,
        producer_id: 1,
        producer_epoch: 0,
        base_sequence: 0,
        last_offset: Some(26),
        ..Default::default()
    };
    let mut builder = siltstone::record::builder::BatchBuilder::new(options).unwrap();
    for offset in [23, 25] {
        builder.append_at(offset, NOW_MS, None, Some(b"v"), std::iter::empty()).unwrap();
    }
    let mut bytes = Vec::new();
    builder.write_to(&mut siltstone::record::codec::Compressor::new(), &mut bytes).unwrap();
    log.try_follow(&bytes).unwrap();
    log.follow(&records(2).at(27).epoch(0).producer(1, 0, 4));
    log.log().truncate_to(27, NOW_MS).unwrap();
    let last = log.log().with_producers(|state| state.producer(1).unwrap().last_sequence());
    assert_eq!(last.unwrap(), 3);
}

#[test]
fn snapshots_go_with_their_segments() {
    // spec: behaviours UL-049, UL-051
    let mut log = TestLog::with(|config| config.retention_bytes = 0);
    for _ in 0..3 {
        log.lead(&records(1));
        log.log().roll(NOW_MS).unwrap();
    }
    assert_eq!(log.snapshots(), [1, 2, 3]);
    delete_old(&log);
    assert_eq!(log.snapshots(), [3]);
    assert_eq!(log.log().log_start_offset(), 3);
    let mut log = TestLog::new();
    for offset in 0..3 {
        log.lead(&records(1));
        if offset < 2 {
            log.log().roll(NOW_MS).unwrap();
        }
    }
    log.replicate();
    log.log().maybe_increment_log_start_offset(2).unwrap();
    delete_old(&log);
    assert_eq!(log.snapshots(), [2]);
}

#[test]
fn a_log_that_begins_anew_has_no_snapshot() {
    // spec: behaviours UL-052
    let mut log = TestLog::new();
    for _ in 0..3 {
        log.lead(&records(1));
        log.log().roll(NOW_MS).unwrap();
    }
    log.log().truncate_fully_and_start_at(29, None, NOW_MS).unwrap();
    assert_eq!(log.bases(), [29]);
    assert_eq!(log.snapshots(), [29_i64; 0]);
    let end = log.log().with_producers(|state| state.snapshots().map_end_offset());
    assert_eq!(end.unwrap(), 29);
}

#[test]
fn retention_keeps_the_producers() {
    // spec: behaviours UL-053
    let mut log = TestLog::with(|config| config.retention_bytes = i64::from(2 * ONE));
    for id in [1, 2, 2] {
        let sequence = i32::try_from(log.log().log_end_offset()).unwrap().saturating_sub(1).max(0);
        log.lead(&records(1).producer(id, 0, if id == 1 { 0 } else { sequence }));
        log.log().roll(NOW_MS).unwrap();
    }
    assert_eq!(delete_old(&log), 1);
    let ids = log.log().with_producers(|state| {
        state.producers().map(|producer| producer.entry().producer_id).collect::<Vec<_>>()
    });
    assert_eq!(ids.unwrap(), [1, 2]);
}

#[test]
fn a_roll_takes_a_snapshot_and_truncation_keeps_the_one_at_its_end() {
    // spec: behaviours UL-055, UL-056
    let mut log = TestLog::with(|config| config.segment_bytes = 1024);
    log.lead(&records(1).value_bytes(512).producer(1, 0, 0));
    log.lead(&records(1).value_bytes(512).producer(1, 0, 1));
    assert_eq!((log.bases(), log.snapshots()), (vec![0, 1], vec![1]));
    log.log().truncate_to(1, NOW_MS).unwrap();
    assert_eq!((log.bases(), log.snapshots()), (vec![0, 1], vec![1]));
    assert_eq!(log.log().segments().last().unwrap().size_bytes(), 0);
    let span = log.log().with_producers(|state| {
        let producer = state.producer(1).unwrap();
        producer.batches().iter().map(|batch| (batch.first_offset(), batch.last_offset)).collect()
    });
    let span: Vec<_> = span.unwrap();
    assert_eq!(span, [(0, 0)]);
}

#[test]
fn an_aborted_transaction_is_decided_after_a_crash() {
    // spec: behaviours UL-057
    let mut log = TestLog::new();
    log.lead(&records(3).txn(1, 0, 0));
    log.end(1, 0, true);
    log.log().update_high_watermark(4).unwrap();
    assert_eq!(first_unstable(&log), None);
    log.crash(0);
    log.log().update_high_watermark(4).unwrap();
    assert_eq!(first_unstable(&log), None);
}

#[test]
fn a_batch_that_is_sent_again_is_answered_as_the_first_time() {
    // spec: behaviours UL-059, UL-060, UL-061
    let mut log = TestLog::new();
    for sequence in 0..6 {
        log.lead(&records(1).producer(1, 0, sequence));
    }
    let wide = records(3).producer(1, 0, 6);
    let first = log.lead(&wide);
    let again = log.lead(&wide);
    assert!(again.is_duplicate && !first.is_duplicate);
    assert_eq!((again.first_offset, again.last_offset), (Some(6), 8));
    assert_eq!((first.first_offset, first.last_offset), (Some(6), 8));
    assert_eq!(log.log().log_end_offset(), 9);
    let refused =
        |log: &mut TestLog, batch: &TestBatch| log.try_lead(batch, 0).unwrap_err().reason();
    let out_of_order = Some(AppendReason::OutOfOrderSequence);
    assert_eq!(refused(&mut log, &records(2).producer(1, 0, 7)), out_of_order);
    assert!(log.lead(&records(1).producer(1, 0, 2)).is_duplicate, "the fifth newest");
    assert_eq!(refused(&mut log, &records(1).producer(1, 0, 1)), out_of_order);
    assert_eq!(log.log().log_end_offset(), 9);
}

#[test]
fn a_follower_takes_batches_of_many_producers_at_once() {
    // spec: behaviours UL-063
    let log = TestLog::new();
    let mut bytes = Vec::new();
    for (offset, (id, sequence)) in [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2)].iter().enumerate() {
        let offset = i64::try_from(offset).unwrap();
        bytes.extend(records(1).at(offset).epoch(0).producer(*id, 0, *sequence).build());
    }
    log.try_follow(&bytes).unwrap();
    assert_eq!(log.log().log_end_offset(), 5);
}

#[test]
fn an_older_instance_of_a_producer_is_fenced() {
    // spec: behaviours UL-064
    let mut log = TestLog::new();
    log.lead(&records(1).producer(1, 1, 0));
    let error = log.try_lead(&records(1).producer(1, 0, 0), 0).unwrap_err();
    assert_eq!(error.reason(), Some(AppendReason::InvalidProducerEpoch));
}

#[test]
fn old_snapshots_go_and_producers_stay_when_the_start_is_raised() {
    // spec: behaviours UL-065
    let mut log = TestLog::new();
    log.lead(&records(1).producer(1, 0, 0));
    log.log().roll(NOW_MS).unwrap();
    log.lead(&records(1).producer(2, 0, 0));
    log.log().roll(NOW_MS).unwrap();
    log.replicate();
    log.log().maybe_increment_log_start_offset(2).unwrap();
    delete_old(&log);
    log.log().delete_due_files(NOW_MS + 60_001).unwrap();
    let count = log.log().with_producers(|state| state.producers().len()).unwrap();
    assert_eq!((count, log.snapshots()), (2, vec![2]));
}

#[test]
fn a_full_segment_is_rolled() {
    // spec: behaviours UL-067
    let mut log = TestLog::with(|config| config.segment_bytes = 10 * (ONE - 1));
    lead_many(&mut log, 11, NOW_MS);
    assert_eq!(log.bases().len(), 2);
}

#[test]
fn every_offset_is_read_whatever_the_limit() {
    // spec: behaviours UL-068, UL-069
    let mut log = TestLog::with(|config| config.segment_bytes = ONE);
    lead_many(&mut log, 50, NOW_MS);
    assert_eq!(log.bases().len(), 50);
    for offset in 0..50 {
        let fetched = log.try_read(offset, 1, Isolation::LogEnd).unwrap();
        assert_eq!(base_offsets(&fetched.bytes), [offset]);
    }
    assert!(log.try_read(50, 1, Isolation::LogEnd).unwrap().bytes.is_empty());
    let log = TestLog::with(|config| config.segment_bytes = 10 * ONE);
    let offsets: Vec<i64> = (0..50).chain((50..200).step_by(7)).collect();
    for offset in &offsets {
        log.follow(&records(1).at(*offset).epoch(0));
    }
    for max_bytes in [1, 100, 100_000] {
        for offset in 50..197 {
            let fetched = log.try_read(offset, max_bytes, Isolation::LogEnd).unwrap();
            let wanted = offsets.iter().find(|o| **o >= offset).unwrap();
            assert_eq!(fetched.place.offset, *wanted, "from {offset}");
            assert_eq!(base_offsets(&fetched.bytes)[0], *wanted);
        }
    }
}

#[test]
fn offsets_outside_of_the_log_are_out_of_range() {
    // spec: behaviours UL-073
    let mut log = TestLog::new();
    log.log().truncate_fully_and_start_at(1024, None, NOW_MS).unwrap();
    log.lead(&records(1));
    assert!(log.read(1025).bytes.is_empty());
    for offset in [0, 1026] {
        let error = log.try_read(offset, 1000, Isolation::LogEnd).unwrap_err();
        assert_eq!(error.kind(), Kind::OutOfRange);
    }
}

#[test]
fn a_flush_moves_the_recovery_point() {
    // spec: behaviours UL-075
    let mut log = TestLog::with(|config| config.segment_bytes = 100);
    lead_many(&mut log, 100, NOW_MS);
    log.log().flush(false, NOW_MS).unwrap();
    assert!(log.log().recovery_point() >= *log.bases().last().unwrap());
    assert_eq!(log.log().recovery_point(), 100);
}

#[test]
fn a_compressed_batch_is_read_from_its_first_record_on() {
    // spec: behaviours UL-076
    let mut log = TestLog::new();
    log.lead(&records(2).codec(Codec::Gzip));
    log.lead(&records(2).codec(Codec::Gzip));
    let firsts = [0, 1, 2, 3].map(|offset| base_offsets(&log.read(offset).bytes)[0]);
    assert_eq!(firsts, [0, 0, 2, 2]);
}

#[test]
fn an_expired_log_is_emptied_once_and_goes_on() {
    // spec: behaviours UL-077
    for count in [0, 1, 25] {
        let mut log = TestLog::with(|config| {
            config.segment_bytes = 5 * ONE;
            config.retention_ms = 0;
        });
        lead_many(&mut log, count, NOW_MS - 1000);
        let end = log.log().log_end_offset();
        delete_old(&log);
        assert_eq!(log.log().log_end_offset(), end);
        assert_eq!(log.bases().len(), 1);
        assert_eq!(delete_old(&log), 0);
        assert_eq!(log.lead(&records(1)).first_offset, Some(end));
    }
}

#[test]
fn only_a_leader_minds_the_size_of_a_batch() {
    // spec: behaviours UL-079
    let mut log = TestLog::with(|config| config.max_message_bytes = ONE - 1);
    let error = log.try_lead(&records(1), 0).unwrap_err();
    assert_eq!(error.invalid(), Some(ValidateErrorKind::RecordTooLarge));
    log.follow(&records(1).epoch(0));
}

#[test]
fn a_compacted_topic_takes_no_record_without_a_key() {
    // spec: behaviours UL-080
    let build = |keys: &[Option<&str>], codec: Codec| {
        let options = siltstone::record::builder::BatchOptions {
            compression: codec.into(),
            ..Default::default()
        };
        let mut builder = siltstone::record::builder::BatchBuilder::new(options).unwrap();
        for key in keys {
            builder.append(NOW_MS, key.map(str::as_bytes), Some(b"v")).unwrap();
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut siltstone::record::codec::Compressor::new(), &mut bytes).unwrap();
        bytes
    };
    let mut log = TestLog::with(|config| config.compact = true);
    for (bytes, index) in [
        (build(&[None, Some("k")], Codec::None), 0),
        (build(&[None], Codec::None), 0),
        (build(&[Some("k"), None], Codec::Gzip), 1),
    ] {
        let append = LeaderAppend::client(0, NOW_MS);
        let error = match log.try_append(bytes, append).unwrap_err() {
            siltstone::log::AppendError::Invalid(error) => error,
            other => panic!("{other}"),
        };
        assert!(error.is_record_validation());
        assert_eq!(error.kind(), ValidateErrorKind::InvalidRecord);
        let indexes: Vec<u32> = error.rejected().iter().map(|record| record.batch_index).collect();
        assert_eq!(indexes, [index]);
        let rejection = error.rejected()[0].rejection.to_string();
        assert!(rejection.starts_with("Compacted topic cannot accept message without key"));
    }
    assert_eq!(log.log().log_end_offset(), 0);
}

#[test]
fn random_bytes_are_refused_or_nothing() {
    // spec: behaviours UL-081
    let log = TestLog::new();
    let mut state = 1_u64;
    for round in 0..2000 {
        let bytes: Vec<u8> = (0..=round % 128)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        match log.try_follow(&bytes) {
            Ok(info) => assert_eq!(info.size_bytes, 0),
            Err(error) => assert_eq!(error.invalid(), Some(ValidateErrorKind::CorruptRecord)),
        }
        assert_eq!(log.log().log_end_offset(), 0);
    }
}

#[test]
fn the_topic_id_is_written_down_and_must_be_the_same() {
    // spec: behaviours UL-083, UL-084
    let id = Uuid::parse("AAAAAAAAQACAAAAAAAAAAQ").unwrap();
    let mut log = TestLog::new();
    log.open_with(|options| options.topic_id = Some(id));
    log.lead(&records(1));
    let bytes = log.file("partition.metadata").unwrap();
    assert_eq!(bytes, format!("version: 0\ntopic_id: {id}").into_bytes());
    assert_eq!(log.log().topic_id(), Some(id));
    log.log().close().unwrap();
    assert_eq!(log.file("partition.metadata").unwrap(), bytes);
    let options = siltstone::log::OpenOptions {
        topic_id: Some(Uuid::parse("AAAAAAAAQACAAAAAAAAAAg").unwrap()),
        ..log.options.clone()
    };
    let disk = std::sync::Arc::new(log.disk.clone());
    let dir = std::path::Path::new("/orders-0");
    let error = Log::open(disk, dir, LogConfig::default(), &options).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
}

#[test]
fn every_batch_but_the_first_may_have_a_time_index_entry() {
    // spec: behaviours UL-085
    {
        let log = TestLog::with(|config| config.index_interval_bytes = 1);
        for offset in 0..100 {
            log.follow(&records(1).at(100 + offset).epoch(0).times(&[NOW_MS + offset]));
        }
        log.log().close().unwrap();
        let mut entries = Vec::new();
        for name in log.files() {
            if let Some(base) = name.strip_suffix(".timeindex") {
                let base = base.parse().unwrap();
                let bytes = log.file(&name).unwrap();
                let list = siltstone::index::TimeEntries::new(&bytes, base);
                entries.extend(list.iter().map(|entry| entry.timestamp_ms));
            }
        }
        assert_eq!(entries.len(), 99);
        assert_eq!(entries.last(), Some(&(NOW_MS + 99)));
    }
}

#[test]
fn special_timestamps_have_their_offsets() {
    // spec: behaviours UL-087, UL-088, UL-089
    let mut log = TestLog::new();
    assert_eq!(log.log().offset_for_timestamp(0).unwrap(), None);
    assert_eq!(log.log().offset_for_timestamp(MAX_TIMESTAMP).unwrap(), None);
    log.try_lead(&records(1).times(&[NOW_MS]), 0).unwrap();
    log.try_lead(&records(1).times(&[NOW_MS + 1]), 1).unwrap();
    log.log().assign_epoch_start(2, 2).unwrap();
    let latest = log.log().offset_for_timestamp(LATEST).unwrap().unwrap();
    assert_eq!((latest.timestamp_ms, latest.offset, latest.leader_epoch), (-1, 2, Some(2)));
    let mut log = TestLog::new();
    for time in [NOW_MS, NOW_MS + 1, NOW_MS] {
        log.lead(&records(1).times(&[time]));
    }
    let max = log.log().offset_for_timestamp(MAX_TIMESTAMP).unwrap().unwrap();
    assert_eq!((max.timestamp_ms, max.offset, max.leader_epoch), (NOW_MS + 1, 1, Some(0)));
    assert_eq!(log.log().offset_for_timestamp(-7).unwrap_err().kind(), Kind::InvalidArgument);
}

#[test]
fn remote_timestamps_have_their_offsets() {
    // spec: behaviours UL-091, UL-092, UL-093
    for (highest, local, wanted) in [(0, 1, (1, 0, 1)), (1, 0, (2, 1, 0)), (-1, 0, (0, -1, 0))] {
        let mut log = TestLog::with(|config| config.remote_storage = true);
        lead_many(&mut log, 3, NOW_MS);
        log.log().update_highest_remote_offset(highest);
        log.log().maybe_increment_local_log_start_offset(local);
        let ask = |timestamp| log.log().offset_for_timestamp(timestamp).unwrap().unwrap();
        let got = (
            ask(EARLIEST_PENDING_UPLOAD).offset,
            ask(LATEST_TIERED).offset,
            ask(EARLIEST_LOCAL).offset,
        );
        assert_eq!(got, wanted);
        if highest < 0 {
            assert_eq!(ask(LATEST_TIERED).leader_epoch, Some(-1));
        }
    }
}

#[test]
fn truncation_cuts_at_the_end_the_middle_and_the_start() {
    // spec: behaviours UL-095, UL-096
    let mut log = TestLog::new();
    lead_many(&mut log, 10, NOW_MS);
    let size = log.log().size_bytes();
    for end in [10, 11] {
        assert!(!log.log().truncate_to(end, NOW_MS).unwrap());
        assert_eq!((log.log().log_end_offset(), log.log().size_bytes()), (10, size));
    }
    assert!(log.log().truncate_to(5, NOW_MS).unwrap());
    assert_eq!(log.log().log_end_offset(), 5);
    assert!(log.log().size_bytes() < size);
    log.log().truncate_to(0, NOW_MS).unwrap();
    assert_eq!((log.log().log_end_offset(), log.log().size_bytes()), (0, 0));
    lead_many(&mut log, 10, NOW_MS);
    assert_eq!(log.log().log_end_offset(), 10);
    log.log().truncate_fully_and_start_at(1, None, NOW_MS).unwrap();
    assert_eq!(log.log().log_end_offset(), 1);
    lead_many(&mut log, 10, NOW_MS);
    assert_eq!(log.log().log_end_offset(), 11);
    log.log().truncate_to(0, NOW_MS).unwrap();
    assert_eq!(log.log().log_end_offset(), 0);
    let error = log.log().truncate_to(-1, NOW_MS).unwrap_err();
    assert_eq!(error.kind(), Kind::InvalidArgument);
}

#[test]
fn a_follower_takes_only_offsets_that_rise_and_are_new() {
    // spec: behaviours UL-099, UL-100, UL-101
    let log = TestLog::new();
    let bytes: Vec<u8> =
        [0, 1, 3, 2, 4].iter().flat_map(|offset| records(1).at(*offset).epoch(0).build()).collect();
    let error = log.try_follow(&bytes).unwrap_err();
    assert_eq!(error.invalid(), Some(ValidateErrorKind::OffsetsOutOfOrder));
    assert_eq!((log.log().log_end_offset(), log.log().size_bytes()), (0, 0));
    log.follow(&records(2).epoch(0));
    for codec in [Codec::None, Codec::Lz4] {
        let error = log.try_follow(&records(1).epoch(0).codec(codec).build()).unwrap_err();
        assert_eq!(error.reason(), Some(AppendReason::UnexpectedAppendOffset));
        for magic in [0, 1] {
            let error = log.try_follow(&legacy(magic, 0, codec)).unwrap_err();
            assert_eq!(error.reason(), Some(AppendReason::UnexpectedAppendOffset));
        }
    }
    let log = TestLog::new();
    log.log().truncate_fully_and_start_at(7, None, NOW_MS).unwrap();
    let error = log.try_follow(&records(3).at(4).epoch(0).build()).unwrap_err();
    match error {
        siltstone::log::AppendError::Refused(refusal) => {
            assert_eq!(refusal.reason, AppendReason::UnexpectedAppendOffset);
            assert_eq!(refusal.offsets, Some((4, 6)));
        }
        other => panic!("{other}"),
    }
}

/// One message of an old format.
fn legacy(magic: i8, offset: i64, codec: Codec) -> Vec<u8> {
    let mut builder =
        siltstone::record::builder::LegacyBuilder::new(magic, codec.into(), None, offset)
            .expect("an old format");
    builder.append(offset, NOW_MS, None, Some(b"v")).expect("a message");
    let mut bytes = Vec::new();
    builder
        .write_to(&mut siltstone::record::codec::Compressor::new(), &mut bytes)
        .expect("a message set");
    bytes
}

#[test]
fn an_old_format_ends_the_epochs_and_a_new_one_begins_them() {
    // spec: behaviours UL-107
    let mut log = TestLog::new();
    log.try_lead(&records(1), 5).unwrap();
    assert_eq!(log.log().latest_epoch(), Some(5));
    log.try_follow(&legacy(1, 1, Codec::None)).unwrap();
    assert_eq!(log.log().latest_epoch(), None);
}

/// Appends the transactions of script T, each append by `append`: offset, bytes, whether a marker.
pub fn script_t(mut append: impl FnMut(i64, Vec<u8>, bool)) {
    let mut offset = 0;
    let mut sequences = std::collections::BTreeMap::new();
    let steps: [(i64, usize, Option<bool>); 17] = [
        (1, 5, None),
        (0, 3, None),
        (2, 2, None),
        (1, 4, None),
        (3, 3, None),
        (0, 2, None),
        (1, 10, None),
        (1, 0, Some(true)),
        (2, 6, None),
        (4, 3, None),
        (0, 10, None),
        (3, 9, None),
        (3, 0, Some(false)),
        (4, 8, None),
        (2, 7, None),
        (2, 0, Some(true)),
        (0, 10, None),
    ];
    // Offset 36 begins with P4, 75 with plain records, 85 with P4 again.
    let last = [(4, 4, None), (4, 0, Some(false))];
    for (id, count, marker) in steps.into_iter().chain(last) {
        let bytes = match marker {
            Some(abort) => Marker { offset, leader_epoch: 0, ..Marker::of(id, 0, abort) }.build(),
            None => {
                let batch = records(count).at(offset).epoch(0);
                let sequence = sequences.entry(id).or_insert(0);
                let batch = if id == 0 { batch } else { batch.txn(id, 0, *sequence) };
                *sequence += i32::try_from(count).unwrap();
                batch.build()
            }
        };
        append(offset, bytes, marker.is_some());
        offset += i64::try_from(count).unwrap().max(1);
    }
    assert_eq!(offset, 90);
}

#[test]
fn aborted_transactions_are_indexed_for_leaders_and_followers() {
    // spec: behaviours UL-112
    for leads in [true, false] {
        let mut log = TestLog::new();
        let mut all = Vec::new();
        script_t(|_, mut bytes, is_marker| {
            if !leads {
                all.extend(bytes);
                return;
            }
            // A producer counts from 0.
            bytes[..8].fill(0);
            let origin = if is_marker { AppendOrigin::Coordinator } else { AppendOrigin::Client };
            let append = LeaderAppend {
                origin,
                transaction_version: Some(0),
                ..LeaderAppend::client(0, NOW_MS)
            };
            log.try_append(bytes, append).expect("a step of the script");
        });
        log.try_follow(&all).expect("all at once");
        let aborted = log.log().aborted_transactions(0, i64::MAX).unwrap();
        let aborted: Vec<_> = aborted
            .iter()
            .map(|t| (t.producer_id, t.first_offset, t.last_offset, t.last_stable_offset))
            .collect();
        assert_eq!(aborted, [(1, 0, 29, 8), (2, 8, 74, 36)]);
        for (high_watermark, wanted) in [(30, Some(8)), (75, Some(36)), (90, None)] {
            log.log().update_high_watermark(high_watermark).unwrap();
            assert_eq!(first_unstable(&log), wanted, "at {high_watermark}");
        }
    }
}

#[test]
fn an_older_coordinator_is_fenced() {
    // spec: behaviours UL-113
    let mut log = TestLog::new();
    let marker = |abort, coordinator_epoch| Marker { coordinator_epoch, ..Marker::of(1, 0, abort) };
    log.lead(&records(1).txn(1, 0, 0));
    log.try_end(&marker(true, 1), Some(0)).unwrap();
    log.lead(&records(1).txn(1, 0, 1));
    log.try_end(&marker(false, 2), Some(0)).unwrap();
    let error = log.try_end(&marker(true, 1), Some(0)).unwrap_err();
    assert_eq!(error.reason(), Some(AppendReason::TransactionCoordinatorFenced));
}

#[test]
fn markers_of_the_second_version_raise_the_epoch() {
    // spec: behaviours UL-115, UL-116
    let mut log = TestLog::new();
    log.lead(&records(1).txn(1, 5, 0));
    log.try_end(&Marker::of(1, 6, false), Some(2)).unwrap();
    let epoch = log.log().with_producers(|state| state.producer(1).unwrap().entry().producer_epoch);
    assert_eq!(epoch.unwrap(), 6);
    let error = log.try_end(&Marker::of(1, 7, false), None).unwrap_err();
    assert_eq!(error.reason(), Some(AppendReason::IllegalArgument));
    let marker = Marker { offset: 2, leader_epoch: 0, ..Marker::of(1, 7, false) };
    log.try_follow(&marker.build()).unwrap();
}

#[test]
fn the_first_unstable_offset_is_not_before_the_log_start() {
    // spec: behaviours UL-117
    let mut log = TestLog::new();
    log.lead(&records(5).txn(1, 0, 0));
    log.lead(&records(3));
    log.log().roll(NOW_MS).unwrap();
    log.lead(&records(1).txn(1, 0, 5));
    log.replicate();
    log.log().maybe_increment_log_start_offset(5).unwrap();
    assert_eq!(first_unstable(&log), Some(5));
}

#[test]
fn a_committed_read_is_told_the_aborted_transactions() {
    // spec: behaviours UL-119
    let mut log = TestLog::new();
    log.lead(&records(3).txn(137, 0, 0));
    log.log().roll(NOW_MS).unwrap();
    log.lead(&records(3).txn(137, 0, 3));
    log.end(137, 0, true);
    log.replicate();
    let fetched = log.try_read(0, u32::MAX, Isolation::Committed).unwrap();
    let aborted: Vec<_> =
        fetched.aborted.unwrap().iter().map(|txn| (txn.producer_id, txn.first_offset)).collect();
    assert_eq!(aborted, [(137, 0)]);
}

#[test]
fn the_log_cannot_start_behind_the_high_watermark() {
    // spec: behaviours UL-120
    let mut log = TestLog::new();
    log.lead(&records(100));
    log.log().update_high_watermark(25).unwrap();
    let error = log.log().maybe_increment_log_start_offset(26).unwrap_err();
    assert_eq!(error.kind(), Kind::OutOfRange);
}

#[test]
fn a_log_can_start_where_its_local_disk_does_whatever_the_high_watermark() {
    // spec: replication 2.2; what left the local disk was committed
    let mut log = TestLog::with(|config| config.remote_storage = true);
    lead_many(&mut log, 50, NOW_MS);
    log.log().truncate_fully_and_start_at(60, Some(40), NOW_MS).unwrap();
    log.log().update_high_watermark(40).unwrap();
    assert_eq!((log.log().high_watermark(), log.log().local_log_start_offset()), (40, 60));
    let error = log.log().maybe_increment_log_start_offset(61).unwrap_err();
    assert_eq!((error.kind(), log.log().log_start_offset()), (Kind::OutOfRange, 40));
    assert!(log.log().maybe_increment_log_start_offset(60).unwrap());
    assert_eq!((log.log().log_start_offset(), log.log().high_watermark()), (60, 60));
    assert_eq!(log.log().last_stable_offset(), 60);
    // A local log start that was said too large is no proof of records that there are not.
    log.log().maybe_increment_local_log_start_offset(99);
    let error = log.log().maybe_increment_log_start_offset(61).unwrap_err();
    assert_eq!((error.kind(), log.log().log_start_offset()), (Kind::OutOfRange, 60));
}

#[test]
fn a_log_with_remote_storage_starts_before_its_first_segment() {
    // spec: behaviours UL-124
    let mut log = TestLog::with(|config| config.remote_storage = true);
    lead_many(&mut log, 50, NOW_MS);
    log.replicate();
    log.log().maybe_increment_log_start_offset(40).unwrap();
    log.log().truncate_fully_and_start_at(60, Some(40), NOW_MS).unwrap();
    let starts = (log.log().log_start_offset(), log.log().local_log_start_offset());
    assert_eq!(starts, (40, 60));
}

#[test]
fn a_roll_whose_snapshot_cannot_be_synced_moves_no_recovery_point() {
    // spec: behaviours UL-125
    let mut log = TestLog::new();
    log.lead(&records(1).producer(1, 0, 0));
    log.log().roll(NOW_MS).unwrap();
    let work = log.log().prepare_flush(1, false).unwrap().unwrap();
    assert_eq!(work.snapshots().len(), 1);
    let failed = Err(siltstone::Error::new(Kind::Io, "a sync that failed"));
    assert_eq!(log.log().complete_flush(&work, failed, NOW_MS).unwrap_err().kind(), Kind::Io);
    assert_eq!(log.log().recovery_point(), 0);
    assert!(log.log().is_failed());
    assert!(log.try_lead(&records(1).producer(1, 0, 1), 0).is_err());
    // Nobody may take this for a clean stop.
    assert_eq!(log.log().close().unwrap_err().kind(), Kind::Io);

    // Whatever sync of the flush it is that fails on the disk, that of the snapshot among them.
    let rolled = || {
        let mut log = TestLog::new();
        log.lead(&records(1).producer(1, 0, 0));
        log.log().roll(NOW_MS).unwrap();
        log
    };
    let log = rolled();
    let first = log.disk.operation_count();
    log.log().flush(false, NOW_MS).unwrap();
    assert_eq!(log.log().recovery_point(), 1);
    let mut failures = 0;
    for number in first..log.disk.operation_count() {
        let log = rolled();
        log.disk.fail_at(number, 5);
        if log.log().flush(false, NOW_MS).is_err() {
            failures += 1;
            assert_eq!(log.log().recovery_point(), 0, "{number}");
        }
    }
    assert!(failures >= 2, "{failures}");
}

#[test]
fn the_active_segment_of_a_remote_log_is_rolled_and_goes_when_it_is_uploaded() {
    // spec: behaviours UL-127
    let mut log = TestLog::with(|config| {
        config.remote_storage = true;
        config.local_retention_ms = 1;
    });
    lead_many(&mut log, 1, NOW_MS);
    log.now_ms += 2;
    assert_eq!(delete_old(&log), 0);
    assert_eq!(log.bases(), [0, 1]);
    log.log().update_highest_remote_offset(0);
    assert_eq!(delete_old(&log), 1);
    assert_eq!(log.bases(), [1]);
    let starts = (log.log().log_start_offset(), log.log().local_log_start_offset());
    assert_eq!(starts, (0, 1));
}

#[test]
fn only_uploaded_segments_leave_a_remote_log() {
    // spec: behaviours UL-129
    let mut log = TestLog::with(|config| {
        config.segment_bytes = ONE;
        config.remote_storage = true;
        (config.retention_bytes, config.local_retention_bytes) = (1, 1);
    });
    lead_many(&mut log, 6, NOW_MS);
    log.log().update_highest_remote_offset(1);
    delete_old(&log);
    let starts = (log.log().log_start_offset(), log.log().local_log_start_offset());
    assert_eq!(starts, (0, 2));
    let with_data = log.log().segments().iter().filter(|s| s.size_bytes() > 0).count();
    assert_eq!(with_data, 4);
}

#[test]
fn a_remote_log_that_is_not_uploaded_any_more_is_kept_as_a_local_one() {
    // spec: behaviours UL-131
    let mut log = TestLog::with(|config| {
        config.segment_bytes = ONE;
        config.remote_storage = true;
        config.retention_bytes = i64::from(ONE) * 5;
        config.local_retention_bytes = 1;
    });
    let state = |log: &TestLog| {
        let with_data = log.log().segments().iter().filter(|s| s.size_bytes() > 0).count();
        (with_data, log.log().log_start_offset(), log.log().local_log_start_offset())
    };
    lead_many(&mut log, 6, NOW_MS);
    log.log().update_highest_remote_offset(1);
    delete_old(&log);
    assert_eq!(state(&log), (4, 0, 2));
    let mut config = LogConfig::clone(&log.log().config());
    config.remote_copy_disabled = true;
    log.log().set_config(config.clone());
    assert_eq!(delete_old(&log), 0);
    assert_eq!(state(&log), (4, 0, 2));

    // What is in remote storage has expired.
    log.log().maybe_increment_log_start_offset(2).unwrap();
    assert_eq!(state(&log), (4, 2, 2));
    lead_many(&mut log, 3, NOW_MS);
    assert_eq!(state(&log), (7, 2, 2));
    assert_eq!(delete_old(&log), 2);
    assert_eq!(state(&log), (5, 4, 4));

    (config.retention_ms, config.local_retention_ms) = (1000, 1);
    log.log().set_config(config);
    let delete_at = |log: &TestLog, now_ms| log.log().delete_old_segments(now_ms).unwrap();
    assert_eq!(delete_at(&log, NOW_MS + 10), 0);
    assert_eq!(state(&log), (5, 4, 4));
    assert_eq!(delete_at(&log, NOW_MS + 1010), 5);
    assert_eq!(log.bases(), [9]);
    assert_eq!(state(&log), (0, 9, 9));
}

#[test]
fn local_retention_keeps_what_is_not_uploaded() {
    // spec: behaviours UL-132, UL-133
    let mut log = TestLog::with(|config| {
        config.remote_storage = true;
        config.local_retention_bytes = 1;
    });
    for offset in 0..50 {
        // Of 72 bytes each.
        log.lead(&records(1).value_bytes(4));
        if offset % 10 == 0 && offset > 0 {
            log.log().roll(NOW_MS).unwrap();
        }
    }
    assert_eq!(log.bases(), [0, 11, 21, 31, 41]);
    log.log().update_highest_remote_offset(30);
    delete_old(&log);
    assert_eq!(log.log().local_log_start_offset(), 31);
    assert_eq!(log.bases(), [31, 41]);
    log.log().maybe_increment_log_start_offset(15).unwrap();
    let place = log.log().place_of(35).unwrap();
    let place = (place.offset, place.segment_base_offset, place.position);
    assert_eq!(place, (35, 31, 288));
    // What is uploaded, was deleted, or is not there yet has no place here.
    for offset in [29, 14, 51] {
        let error = log.log().place_of(offset).unwrap_err();
        assert_eq!(error.kind(), Kind::OutOfRange, "{offset}");
    }
}

/// A verified append of a transaction.
fn verified(log: &TestLog, guard: VerificationGuard) -> LeaderAppend {
    LeaderAppend { guard, ..LeaderAppend::client(0, log.now_ms) }
}

#[test]
fn a_transaction_is_verified_under_its_guard() {
    // spec: behaviours UL-135, UL-139
    let mut log = TestLog::verifying();
    let guard = log.log().start_verification(23, 1, 1, true, NOW_MS).unwrap();
    assert_ne!(guard, VerificationGuard::SENTINEL);
    log.lead(&records(1).producer(23, 1, 0));
    assert_eq!(log.log().verification_guard(23).unwrap(), guard);
    let txn = records(1).txn(23, 1, 1);
    let refused = log.try_append(txn.build(), verified(&log, VerificationGuard::SENTINEL));
    assert_eq!(refused.unwrap_err().reason(), Some(AppendReason::InvalidTxnState));
    log.try_append(txn.build(), verified(&log, guard)).unwrap();
    assert_eq!(log.log().verification_guard(23).unwrap(), VerificationGuard::SENTINEL);
    log.try_end(&Marker::of(23, 2, false), Some(2)).unwrap();
    let ongoing = log.log().with_producers(|state| state.has_ongoing_transaction(23, 2));
    assert!(!ongoing.unwrap());
    let next = log.log().start_verification(23, 0, 2, true, NOW_MS).unwrap();
    assert_ne!(next, guard);
}

#[test]
fn an_empty_transaction_ends_its_verification() {
    // spec: behaviours UL-136, UL-137
    for (epoch, version) in [(1, 2), (0, 1)] {
        let mut log = TestLog::verifying();
        log.log().start_verification(23, 0, 0, false, NOW_MS).unwrap();
        log.try_end(&Marker::of(23, epoch, false), Some(version)).unwrap();
        let guard = log.log().verification_guard(23).unwrap();
        assert_eq!(guard, VerificationGuard::SENTINEL);
    }
    let mut log = TestLog::verifying();
    let guard = log.log().start_verification(23, 0, 0, true, NOW_MS).unwrap();
    log.try_end(&Marker::of(23, 0, false), Some(0)).unwrap();
    assert_eq!(log.log().verification_guard(23).unwrap(), guard);
}

#[test]
fn a_transaction_of_the_second_version_begins_with_sequence_zero() {
    // spec: behaviours UL-140
    let mut log = TestLog::verifying();
    let guard = log.log().start_verification(23, 3, 0, true, NOW_MS).unwrap();
    let txn = records(1).txn(23, 0, 3);
    let error = log.try_append(txn.build(), verified(&log, guard)).unwrap_err();
    assert_eq!(error.reason(), Some(AppendReason::OutOfOrderSequence));
    let mut log = TestLog::new();
    log.lead(&txn);
}

#[test]
fn an_older_epoch_is_not_verified() {
    // spec: behaviours UL-141
    for supports_epoch_bump in [false, true] {
        let mut log = TestLog::new();
        log.lead(&records(1).txn(1, 6, 0));
        log.end(1, 6, false);
        let error = log.log().start_verification(1, 0, 5, supports_epoch_bump, NOW_MS).unwrap_err();
        assert_eq!(error.reason(), Some(AppendReason::InvalidProducerEpoch));
        assert!(error.to_string().contains("smaller than the last seen epoch"));
    }
}

#[test]
fn snapshots_behind_a_cut_go_and_the_state_ends_with_the_log() {
    // spec: behaviours UL-047
    let mut log = TestLog::new();
    log.lead(&records(1));
    log.lead(&records(1));
    log.log().roll(NOW_MS).unwrap();
    log.lead(&records(1));
    log.log().roll(NOW_MS).unwrap();
    assert_eq!(log.snapshots(), [2, 3]);
    for (cut, latest) in [(2, Some(2)), (1, Some(1)), (0, None)] {
        log.log().truncate_to(cut, NOW_MS).unwrap();
        let state = log.log().with_producers(|state| {
            (state.snapshots().latest(), state.snapshots().map_end_offset())
        });
        assert_eq!(state.unwrap(), (latest, cut), "cut at {cut}");
    }
}

#[test]
fn a_sealed_index_is_trimmed_and_grows_when_its_segment_is_written_to_again() {
    // spec: behaviours UL-097
    let mut log = TestLog::with(|config| {
        config.segment_bytes = 10 * ONE;
        config.index_interval_bytes = ONE - 1;
        config.segment_index_bytes = 1200;
    });
    for offset in 0..20 {
        log.lead(&records(1).times(&[NOW_MS + offset * 10]));
    }
    assert_eq!(log.bases(), [0, 10]);
    let sizes = |log: &TestLog| {
        ["index", "timeindex"].map(|s| log.file(&format!("{:020}.{s}", 0)).unwrap().len())
    };
    assert_eq!(sizes(&log), [9 * 8, 9 * 12]);
    log.log().truncate_to(0, NOW_MS).unwrap();
    assert_eq!(sizes(&log), [1200 / 8 * 8, 1200 / 12 * 12]);
}

#[test]
fn an_old_format_of_a_producer_is_converted() {
    let mut log = TestLog::new();
    let append = LeaderAppend::client(5, NOW_MS);
    let info = log.try_append(legacy(1, 0, Codec::None), append).unwrap();
    assert_eq!((info.first_offset, info.stats.converted_records), (Some(0), 1));
    assert_eq!(log.headers()[0].magic, 2);
    assert_eq!(log.log().latest_epoch(), Some(5));
}

#[test]
fn a_remote_log_start_lets_segments_go_that_were_not_uploaded() {
    // spec: behaviours UL-128
    let mut log = TestLog::with(|config| {
        config.segment_bytes = 4 * ONE;
        config.remote_storage = true;
        config.retention_bytes = 1;
        config.local_retention_bytes = 1;
    });
    lead_many(&mut log, 5, NOW_MS);
    log.replicate();
    assert_eq!(log.bases(), [0, 4]);
    let mut counts = Vec::new();
    for start in [3, 4, 5] {
        log.log().maybe_increment_log_start_offset(start).unwrap();
        counts.push(log.log().delete_old_segments(log.now_ms).unwrap());
    }
    assert_eq!(counts, [0, 1, 0]);
}

#[test]
fn a_refused_append_leaves_the_log_and_the_callers_bytes_as_they_were() {
    let mut log = TestLog::new();
    log.lead(&records(1).producer(1, 0, 0));
    let bytes = records(2).producer(1, 0, 9).build();
    let mut given = bytes.clone();
    let append = LeaderAppend::client(3, NOW_MS);
    let mut scratch = siltstone::log::AppendScratch::new();
    let refused = log.log().append_as_leader(&mut given, &append, &mut scratch);
    assert_eq!(refused.unwrap_err().reason(), Some(AppendReason::OutOfOrderSequence));
    assert_eq!(given, bytes);
    assert_eq!((log.epochs(), log.log().log_end_offset()), (vec![(0, 0)], 1));
    // What follows in sequence is taken.
    assert_eq!(log.lead(&records(2).producer(1, 0, 1)).first_offset, Some(1));
}

#[test]
fn a_segment_whose_indexes_hold_nothing_is_replaced_while_it_is_empty() {
    let mut log = TestLog::with(|config| config.segment_index_bytes = 12);
    for offset in 0..3 {
        assert_eq!(log.lead(&records(1)).first_offset, Some(offset));
    }
    assert_eq!(log.bases(), [0, 1, 2], "every append rolls");
    log.reopen();
    assert_eq!(log.headers().len(), 3);
}
