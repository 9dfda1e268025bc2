//! What lies between the rows of the lists: ends that are out of date, bytes that are no batch,
//! disks that are full for a moment, offsets without a next one.

use std::path::Path;

use siltstone::dir::engine::{CheckpointFile, NewLog, WorkKind};
use siltstone::error::Kind;
use siltstone::io::{OpenMode, Storage};
use siltstone::log::timestamps::MAX_TIMESTAMP;
use siltstone::log::{
    AppendReason, AppendScratch, FetchOptions, Isolation, LeaderAppend, LogConfig,
};
use siltstone::record::validate::ValidateErrorKind;
use siltstone::uuid::Uuid;
use siltstone_tests::live::{DIR, Marker, NOW_MS, TestLog, base_offsets, records};
use siltstone_tests::nodes::TestNode;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// The answers to batches that are appended in one call: first offsets, and whether each was there.
fn together(log: &TestLog, group: &[Vec<u8>]) -> Vec<Result<(Option<i64>, bool), String>> {
    let mut group = group.to_vec();
    let mut all: Vec<&mut [u8]> = group.iter_mut().map(Vec::as_mut_slice).collect();
    let append = LeaderAppend::client(0, NOW_MS);
    let answers = log.log().append_all_as_leader(&mut all, &append, &mut AppendScratch::new());
    let told = |info: siltstone::log::AppendInfo| (info.first_offset, info.is_duplicate);
    answers.into_iter().map(|answer| answer.map(told).map_err(|e| e.to_string())).collect()
}

#[test]
fn a_new_producers_batches_of_one_call_are_held_against_each_other() {
    // The second was written again: a producer of whom nothing is known may go on anywhere.
    let mut log = TestLog::new();
    log.lead(&records(1));
    let first = records(2).producer(7, 0, 0).build();
    let next = records(1).producer(7, 0, 2).build();
    let answers = together(&log, &[first.clone(), first.clone(), next]);
    assert_eq!(answers, [Ok((Some(1), false)), Ok((Some(1), true)), Ok((Some(3), false))]);
    assert_eq!(log.log().log_end_offset(), 4);
    // One that leaves a gap, of another newcomer.
    let group = [records(1).producer(8, 0, 0).build(), records(1).producer(8, 0, 5).build()];
    let answers = together(&log, &group);
    assert_eq!(answers[0], Ok((Some(4), false)));
    let error = answers[1].as_ref().unwrap_err();
    assert!(error.contains("Out of order sequence 5 of producer 8"), "{error}");
    assert_eq!(log.log().log_end_offset(), 5);
}

#[test]
fn a_flush_up_to_an_end_that_was_cut_says_nothing_of_what_comes_behind() {
    let mut node = TestNode::new(1);
    let log = node.log("one");
    node.fill(&log, 10);
    log.roll(node.now_ms).unwrap();
    let due = node.engine().due_work(node.now_ms);
    let flush = due.into_iter().find(|work| work.kind() == WorkKind::Flush).expect("a flush");
    log.truncate_to(5, node.now_ms).unwrap();
    node.fill(&log, 3);
    node.engine().run(&flush, node.now_ms).unwrap();
    drop(flush);
    assert_eq!(log.recovery_point(), 8);
    node.fill(&log, 2);
    log.flush(false, node.now_ms).unwrap();
    assert_eq!(log.recovery_point(), 10);
    drop(log);
    node.kill();
    let mut left = TestNode::on(node.disk.after_crash(0), 1);
    left.start();
    assert_eq!(left.log("one").log_end_offset(), 10);
}

#[test]
fn a_flush_goes_no_further_than_the_log() {
    let mut log = TestLog::new();
    log.lead(&records(3));
    for inclusive in [false, true] {
        log.log().flush_to(1000, inclusive, NOW_MS).unwrap();
        assert_eq!(log.log().recovery_point(), 3);
    }
    log.lead(&records(2));
    log.log().flush(false, NOW_MS).unwrap();
    assert_eq!(log.log().recovery_point(), 5);
}

#[test]
fn what_stands_behind_the_last_batch_after_a_clean_stop_is_cut() {
    let torn = records(2).at(3).epoch(0).build();
    let cases: [&[u8]; 5] = [&[0; 5], &[7; 17], &torn[..20], &torn[..torn.len() - 1], &[0; 100]];
    for garbage in cases {
        let mut log = TestLog::new();
        log.lead(&records(3));
        let sound = log.read(0).bytes;
        log.log().close().unwrap();
        let path = Path::new("/orders-0/00000000000000000000.log");
        log.disk.put(path, [&sound[..], garbage].concat(), None).unwrap();
        log.open_with(|options| options.clean_shutdown = true);
        assert_eq!(log.log().log_end_offset(), 3, "{} bytes", garbage.len());
        log.lead(&records(1));
        assert_eq!(base_offsets(&log.read(0).bytes), [0, 3]);
        log.reopen();
        assert_eq!(log.log().log_end_offset(), 4);
        assert_eq!(base_offsets(&log.read(0).bytes), [0, 3]);
    }
}

#[test]
fn no_log_of_a_group_is_opened_when_the_disk_was_full_as_it_was_recovered() {
    // Only the first was refused; the others were opened with what recovery had found in them.
    let node = TestNode::new(1);
    for topic in ["one", "two", "three"] {
        node.fill(&node.log(topic), 5);
    }
    let disk = node.disk.after_crash(0);
    let operations = {
        let disk = disk.fork();
        TestNode::on(disk.clone(), 1).start();
        disk.operations()
    };
    let syncs =
        (0_u64..).zip(&operations).filter(|(_, it)| it.what.starts_with("sync file system"));
    let mut refused = 0;
    for (number, _) in syncs {
        let disk = disk.fork();
        disk.fail_at(number, ENOSPC);
        let mut other = TestNode::on(disk, 1);
        other.start();
        assert!(other.engine().offline_dirs().is_empty(), "operation {number}");
        let open = ["one", "two", "three"].map(|topic| other.engine().log(topic, 0).is_ok());
        assert!(open == [true; 3] || open == [false; 3], "operation {number}: {open:?}");
        refused += usize::from(!open[0]);
        other.kill();
        other.start();
        for topic in ["one", "two", "three"] {
            assert!(other.engine().log(topic, 0).unwrap().is_some());
        }
    }
    assert!(refused > 0);
}

#[test]
fn a_log_that_failed_takes_nothing_else_offline() {
    let mut node = TestNode::new(1);
    let (one, two) = (node.log("one"), node.log("two"));
    node.fill(&one, 5);
    node.fill(&two, 5);
    node.disk.fail_at(node.disk.operation_count(), ENOSPC);
    assert_eq!(one.flush(false, node.now_ms).unwrap_err().kind(), Kind::Io);
    assert!(one.is_failed());
    node.now_ms += 3_600_000;
    node.run_due();
    for refused in [
        node.engine().truncate_to("one", 0, 1, node.now_ms).map(drop),
        node.engine().flush(&[one], node.now_ms).pop().unwrap(),
    ] {
        assert_eq!(refused.unwrap_err().kind(), Kind::Io);
    }
    assert!(node.engine().offline_dirs().is_empty());
    node.fill(&two, 1);
    // The disk itself still does.
    node.disk.fail_at(node.disk.operation_count(), EIO);
    assert!(node.engine().truncate_to("two", 0, 1, node.now_ms).is_err());
    assert_eq!(node.engine().offline_dirs().len(), 1);
}

#[test]
fn the_lines_of_a_log_are_not_those_of_one_that_was_set_aside() {
    let node = TestNode::new(1);
    let old = node.log("one");
    node.fill(&old, 5);
    node.engine().mark_stray("one", 0, node.now_ms).unwrap();
    drop(old);
    let new = node.log("one");
    node.fill(&new, 100);
    assert!(new.maybe_increment_log_start_offset(90).unwrap());
    new.flush(true, node.now_ms).unwrap();
    for file in CheckpointFile::ALL {
        node.engine().checkpoint(file).unwrap();
    }
    drop(new);
    let mut left = TestNode::on(node.disk.after_crash(0), 1);
    left.start();
    let stray = left.folders("/a").into_iter().find(|name| name.ends_with("-stray")).unwrap();
    let kept = left.file(&format!("/a/{stray}/00000000000000000000.log")).unwrap();
    assert_eq!(kept.len(), 5 * records(1).build().len());
    assert_eq!(left.log("one").log_start_offset(), 90);
}

#[test]
fn committed_reads_need_no_room_on_the_disk() {
    let mut log = TestLog::with(|config| config.index_interval_bytes = 1);
    log.lead(&records(1).txn(7, 0, 0));
    log.end(7, 0, true);
    for _ in 0..20 {
        log.lead(&records(1));
    }
    log.replicate();
    log.disk.fail_changes_from(log.disk.operation_count(), ENOSPC);
    let options =
        FetchOptions { max_bytes: 1000, isolation: Isolation::Committed, min_one_message: true };
    let bounded = FetchOptions { max_bytes: 100, ..options };
    for options in [options, bounded] {
        let fetched = log.log().locate(0, &options).unwrap();
        assert_eq!(fetched.aborted.map(|aborted| aborted.len()), Some(1));
    }
    let fetched = log.log().locate(5, &options).unwrap();
    assert_eq!(fetched.aborted.map(|aborted| aborted.len()), Some(0));
}

#[test]
fn a_log_without_a_topic_id_gets_the_first_that_is_told() {
    let mut node = TestNode::new(1);
    let log = node.log("one");
    assert_eq!((log.topic_id(), node.file("/a/one-0/partition.metadata")), (None, None));
    let (id, other) = (Uuid([1; 16]), Uuid([2; 16]));
    let ask = |node: &TestNode, id| {
        let new = NewLog { config: LogConfig::default(), topic_id: Some(id), ..NewLog::default() };
        node.engine().get_or_create("one", 0, &new)
    };
    assert_eq!(ask(&node, id).unwrap().topic_id(), Some(id));
    assert_eq!(log.topic_id(), Some(id));
    assert_eq!(ask(&node, other).unwrap_err().kind(), Kind::Conflict);
    drop(log);
    node.disk = node.disk.after_crash(0);
    node.kill();
    node.start();
    assert_eq!(ask(&node, other).unwrap_err().kind(), Kind::Conflict);
    assert_eq!(ask(&node, id).unwrap().topic_id(), Some(id));
}

#[test]
fn batches_that_overlap_are_no_log() {
    // Recovery would refuse what was appended so.
    let log = TestLog::new();
    let group = [records(3).at(10).epoch(0).build(), records(3).at(11).epoch(0).build()].concat();
    let error = log.try_follow(&group).unwrap_err();
    assert_eq!(error.invalid(), Some(ValidateErrorKind::OffsetsOutOfOrder));
    let group = [records(3).at(10).epoch(0).build(), records(3).at(13).epoch(0).build()].concat();
    assert_eq!(log.try_follow(&group).unwrap().last_offset, 15);
}

#[test]
fn no_batch_takes_the_last_offset_there_is() {
    let log = TestLog::new();
    for (at, count) in [(i64::MAX, 1), (i64::MAX - 1, 2), (i64::MAX - 1, 3)] {
        // No checksum covers the base offset.
        let mut bytes = records(count).epoch(0).build();
        bytes[..8].copy_from_slice(&i64::to_be_bytes(at));
        let error = log.try_follow(&bytes).unwrap_err();
        let is_refused = error.reason() == Some(AppendReason::UnexpectedAppendOffset)
            || error.invalid() == Some(ValidateErrorKind::OffsetsOutOfOrder);
        assert!(is_refused, "{at} {count}: {error}");
        assert_eq!((log.log().log_end_offset(), log.bases()), (0, vec![0]));
    }
    log.try_follow(&records(1).at(i64::MAX - 1).epoch(0).build()).unwrap();
    let mut log = log;
    let error = log.try_lead(&records(1), 0).unwrap_err();
    assert_eq!(error.reason(), Some(AppendReason::UnexpectedAppendOffset));
    log.crash(0);
    assert_eq!(log.log().log_end_offset(), i64::MAX);
    assert_eq!(base_offsets(&log.read(i64::MAX - 1).bytes), [i64::MAX - 1]);
}

#[test]
fn a_log_starts_at_no_negative_offset() {
    let mut log = TestLog::with(|config| config.remote_storage = true);
    log.lead(&records(3));
    for start in [-1, i64::MIN] {
        let refused = log.log().truncate_fully_and_start_at(5, Some(start), NOW_MS);
        assert_eq!(refused.unwrap_err().kind(), Kind::InvalidArgument, "{start}");
        assert_eq!((log.log().log_start_offset(), log.log().log_end_offset()), (0, 3));
    }
    log.log().truncate_fully_and_start_at(5, Some(2), NOW_MS).unwrap();
    assert_eq!((log.log().log_start_offset(), log.log().log_end_offset()), (2, 5));
}

#[test]
fn a_roll_that_fails_leaves_no_snapshot() {
    let mut failures = 0;
    for number in 0.. {
        let mut log = TestLog::new();
        log.lead(&records(3).producer(7, 0, 0));
        log.disk.fail_at(log.disk.operation_count() + number, ENOSPC);
        if log.log().roll(NOW_MS).is_ok() {
            break;
        }
        failures += 1;
        assert_eq!(log.snapshots(), [0_i64; 0], "failure {number}");
        log.log().roll(NOW_MS).unwrap();
        assert_eq!(log.snapshots(), [3]);
    }
    assert!(failures > 3, "{failures} failures");
}

#[test]
fn the_largest_timestamp_is_found_while_the_log_grows() {
    let log = std::sync::Arc::new(TestLog::new());
    let bytes = |offset: i64| records(1).at(offset).epoch(0).times(&[NOW_MS + offset]).build();
    log.try_follow(&bytes(0)).unwrap();
    std::thread::scope(|scope| {
        let writer = std::sync::Arc::clone(&log);
        scope.spawn(move || {
            for offset in 1..2000 {
                writer.try_follow(&bytes(offset)).unwrap();
            }
        });
        while log.log().log_end_offset() < 2000 {
            let found = log.log().offset_for_timestamp(MAX_TIMESTAMP).unwrap().unwrap();
            assert_eq!(found.timestamp_ms - NOW_MS, found.offset);
        }
    });
}

#[test]
fn time_indexes_that_are_not_there_are_made_anew_however_many_they_are() {
    // The sixteenth was too much, and the log could not be opened.
    use siltstone::io::Storage;
    for is_empty in [false, true] {
        let mut log = TestLog::with(|config| config.segment_bytes = 200);
        for offset in 0..60 {
            log.lead(&records(1).times(&[NOW_MS + offset]));
        }
        assert!(log.bases().len() >= 20);
        let end = log.log().log_end_offset();
        log.log().flush(true, NOW_MS).unwrap();
        log.log().close().unwrap();
        let names: Vec<String> = log.files();
        let names = names.iter().filter(|name| name.ends_with(".timeindex"));
        let indexes: Vec<_> = names.map(|name| (name, log.file(name).unwrap())).collect();
        for (name, _) in &indexes {
            let path = Path::new("/orders-0").join(name);
            log.disk.remove_file(&path).unwrap();
            if is_empty {
                log.disk.put(&path, Vec::new(), None).unwrap();
            }
        }
        let mut again = TestLog::on(log.disk.fork(), log.config.clone(), log.options.clone());
        again.crash(end);
        assert_eq!(again.log().log_end_offset(), end);
        again.log().close().unwrap();
        for (name, bytes) in &indexes {
            assert_eq!(again.file(name).as_ref(), Some(bytes), "{name}");
        }
    }
}

#[test]
fn transactions_can_be_aborted_behind_a_damaged_entry_of_their_index() {
    // spec: indexes 4.2
    // Its last offset was taken for right, and every abort refused: the last stable offset stood.
    let mut log = TestLog::new();
    let abort = |log: &mut TestLog, id, count: usize| {
        log.lead(&records(1).txn(id, 0, 0));
        let ended = log.try_end(&Marker::of(id, 0, true), Some(0)).expect("a marker that is taken");
        log.replicate();
        assert_eq!(log.log().last_stable_offset(), log.log().log_end_offset());
        let index = log.file("00000000000000000000.txnindex").expect("an index");
        assert_eq!(index.len(), 34 * count);
        ended.last_offset
    };
    abort(&mut log, 1, 1);
    let path = Path::new(DIR).join("00000000000000000000.txnindex");
    let file = log.disk.open(&path, OpenMode::ReadWrite).expect("an index");
    file.write_at(&1_000_000_000_000_i64.to_be_bytes(), 18).expect("an entry that is damaged");
    log.reopen();
    let second = abort(&mut log, 2, 2);
    let third = abort(&mut log, 3, 3);
    let aborted = log.log().aborted_transactions(0, i64::MAX).expect("an index");
    let last: Vec<i64> = aborted.iter().map(|txn| txn.last_offset).collect();
    assert_eq!(last, [1_000_000_000_000, second, third]);
}
