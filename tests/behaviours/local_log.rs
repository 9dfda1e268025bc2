//! Section LL: the segments of a log.

use siltstone::Kind;
use siltstone::log::Isolation;
use siltstone_tests::live::{DIR, NOW_MS, TestLog, base_offsets, records};

/// Appends one record after the other, and begins a new segment before each offset of `rolls`.
fn filled(count: i64, rolls: &[i64]) -> TestLog {
    let mut log = TestLog::new();
    for offset in 0..count {
        if rolls.contains(&offset) {
            log.log().roll(NOW_MS).unwrap();
        }
        log.lead(&records(1));
    }
    log
}

#[test]
fn an_append_moves_the_end_and_not_the_recovery_point() {
    // spec: behaviours LL-007
    let mut log = TestLog::new();
    log.lead(&records(2));
    assert_eq!((log.log().log_end_offset(), log.log().recovery_point()), (2, 0));
    assert_eq!(log.headers().iter().map(|h| h.count).collect::<Vec<_>>(), [2]);
}

#[test]
fn files_that_left_the_log_wait_for_their_deletion() {
    // spec: behaviours LL-011
    let mut log = filled(9, &[1, 2, 3, 4, 5, 6, 7, 8]);
    log.log().roll(NOW_MS).unwrap();
    assert_eq!(log.bases().len(), 10);
    log.log().truncate_fully_and_start_at(20, None, NOW_MS).unwrap();
    let deleted = |log: &TestLog| log.files().iter().filter(|f| f.ends_with(".deleted")).count();
    let waiting = deleted(&log);
    assert!(waiting >= 10 + 9 * 2, "a log each, and indexes of those that were written to");
    assert_eq!(log.bases(), [20]);
    let due = log.log().next_deletion_ms().unwrap();
    assert_eq!(due, NOW_MS + 60_000);
    assert_eq!(log.log().delete_due_files(due - 1).unwrap(), 0);
    assert_eq!(log.log().delete_due_files(due).unwrap(), waiting);
    assert_eq!((deleted(&log), log.log().next_deletion_ms()), (0, None));
    log.now_ms = due;
    log.lead(&records(1));
}

#[test]
fn a_log_that_begins_anew_has_one_empty_segment() {
    let log = filled(13, &[3, 6, 9, 12]);
    assert_eq!(log.bases().len(), 5);
    log.log().truncate_fully_and_start_at(10, None, NOW_MS).unwrap();
    assert_eq!((log.bases(), log.log().log_end_offset()), (vec![10], 10));
    // There is nothing before the start that could be lost.
    assert_eq!(log.log().recovery_point(), 10);
    assert!(log.read(10).bytes.is_empty());
}

#[test]
fn a_read_ends_before_its_bound() {
    // spec: behaviours LL-015, LL-016
    let log = filled(5, &[2, 4]);
    log.log().update_high_watermark(4).unwrap();
    let read = |offset| log.try_read(offset, u32::MAX, Isolation::HighWatermark).unwrap();
    let place = |offset| {
        let fetched = read(offset);
        assert!(fetched.bytes.is_empty());
        (fetched.place.offset, fetched.place.segment_base_offset, fetched.place.position)
    };
    assert_eq!(place(4), (4, 4, 0));
    assert_eq!(place(5), (5, 4, 69));
    assert_eq!(base_offsets(&read(3).bytes), [3]);
}

#[test]
fn an_offset_behind_the_end_is_out_of_range() {
    // spec: behaviours LL-019
    let log = filled(5, &[2, 4]);
    let error = log.try_read(6, 100, Isolation::LogEnd).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (Kind::OutOfRange, Some(6)));
}

#[test]
fn truncation_removes_later_segments_and_cuts_its_own() {
    // spec: behaviours LL-020
    let mut log = filled(12, &[3, 6, 9]);
    log.log().roll(NOW_MS).unwrap();
    assert_eq!(log.bases(), [0, 3, 6, 9, 12]);
    log.log().truncate_to(7, NOW_MS).unwrap();
    assert_eq!((log.bases(), log.log().log_end_offset()), (vec![0, 3, 6], 7));
    assert_eq!(base_offsets(&log.read(6).bytes), [6]);
    let deleted: Vec<String> =
        log.files().into_iter().filter(|file| file.ends_with(".log.deleted")).collect();
    assert_eq!(deleted, ["00000000000000000009.log.deleted", "00000000000000000012.log.deleted"]);
    assert_eq!(log.lead(&records(1)).first_offset, Some(7));
    assert_eq!(log.log().log_end_offset(), 8);
}

#[test]
fn segments_before_the_active_one_are_listed_from_an_offset() {
    // spec: behaviours LL-021
    let log = filled(5, &[1, 2, 3, 4]);
    log.log().roll(NOW_MS).unwrap();
    let list = log.log().segments();
    let from = |offset| -> Vec<i64> {
        list.non_active_from(offset).iter().map(|segment| segment.base_offset()).collect()
    };
    assert_eq!(from(0), [0, 1, 2, 3, 4]);
    assert_eq!(from(2), [2, 3, 4]);
    assert_eq!((from(5), from(6)), (vec![], vec![]));
}

#[test]
fn an_empty_segment_is_rolled_into_itself() {
    // spec: behaviours LL-028
    let log = TestLog::new();
    log.log().roll(NOW_MS).unwrap();
    log.log().roll(NOW_MS).unwrap();
    assert_eq!((log.bases(), log.log().log_end_offset()), (vec![0], 0));
}

#[test]
fn a_segment_that_ends_before_the_next_begins_is_read_into_that() {
    // spec: behaviours UL-071
    let mut log = TestLog::new();
    for offset in 0..6 {
        if offset % 2 == 0 {
            log.log().roll(NOW_MS).unwrap();
        }
        log.lead(&records(1));
    }
    log.log().close().unwrap();
    let name = format!("{:020}.log", 0);
    let mut bytes = log.file(&name).unwrap();
    bytes.truncate(bytes.len() / 2);
    log.disk.put(&std::path::Path::new(DIR).join(&name), bytes, None).unwrap();
    log.open_with(|options| options.clean_shutdown = true);
    assert_eq!(log.bases(), [0, 2, 4]);
    assert_eq!(base_offsets(&log.read(0).bytes), [0]);
    assert_eq!(base_offsets(&log.read(1).bytes)[0], 2);
}

#[test]
fn eleven_bytes_are_nothing_to_append() {
    // spec: behaviours MI-005
    let log = filled(2, &[]);
    for bytes in [[0; 11], [0xff; 11]] {
        log.try_follow(&bytes).unwrap();
        assert_eq!((log.log().log_end_offset(), log.headers().len()), (2, 2));
    }
}

#[test]
fn a_roll_begins_at_the_end_of_the_log() {
    // spec: behaviours LL-029
    let mut log = TestLog::new();
    log.lead(&records(2));
    log.log().roll(NOW_MS).unwrap();
    assert_eq!((log.bases(), log.log().log_end_offset()), (vec![0, 2], 2));
}

#[test]
fn a_closed_log_takes_and_gives_nothing_but_keeps_its_leases() {
    // spec: behaviours LL-008
    let mut log = filled(3, &[]);
    let options = siltstone::log::FetchOptions {
        max_bytes: 1000,
        isolation: Isolation::LogEnd,
        min_one_message: true,
    };
    let lease = log.log().locate(0, &options).unwrap().range.unwrap();
    log.log().close().unwrap();
    log.log().close().unwrap();
    let refused = log.try_lead(&records(1), 0).unwrap_err();
    assert_eq!(siltstone::Error::from(refused).kind(), Kind::Closed);
    assert_eq!(log.try_read(0, 10, Isolation::LogEnd).unwrap_err().kind(), Kind::Closed);
    assert_eq!(base_offsets(&lease.read().unwrap()), [0, 1, 2]);
}

#[test]
fn a_log_whose_close_failed_is_not_closed_cleanly_by_another() {
    let first = filled(3, &[]).disk.operation_count();
    let log = filled(3, &[]);
    log.log().close().unwrap();
    let mut failures = 0;
    for number in first..log.disk.operation_count() {
        let log = filled(3, &[]);
        log.disk.fail_at(number, 28);
        let outcome = log.log().close();
        failures += u32::from(outcome.is_err());
        assert_eq!(log.log().close().is_err(), outcome.is_err(), "{number}");
    }
    assert!(failures > 3, "{failures}");
}

#[test]
fn names_of_folders_are_kafkas() {
    // spec: behaviours LL-023, LL-024
    use siltstone::log::{FolderKind, FolderName};
    let name = "foo.bar-testtopic-42.0123456789abcdef0123456789abcdef-delete";
    let parsed = FolderName::parse(name).unwrap();
    assert_eq!(
        (parsed.topic.as_str(), parsed.partition, parsed.kind),
        ("foo.bar-testtopic", 42, FolderKind::Delete)
    );
    for bad in [
        "",
        "test_topic1999",
        "test_topic1999.-delete",
        "-1999",
        "test_topic-",
        "test_topic-1999a",
        "non_kafka_dir",
        "non_kafka_dir-delete",
    ] {
        assert_eq!(FolderName::parse(bad), None, "{bad:?}");
    }
}

#[test]
fn offsets_are_read_from_file_names() {
    // spec: behaviours LL-027
    use siltstone::segment::name::Parsed;
    use siltstone::segment::{FileName, FileRole};
    let roles = [FileRole::Log, FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::Snapshot];
    for role in roles {
        let name = FileName::live(23_423_423, role).format();
        let parsed = FileName::parse(&name);
        assert!(matches!(parsed, Parsed::Segment(file) if file.offset == 23_423_423), "{name}");
    }
}

#[test]
fn a_flush_does_not_mind_that_the_directory_is_gone() {
    // spec: behaviours LL-032
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("orders-0");
    let options = siltstone::log::OpenOptions { now_ms: NOW_MS, ..Default::default() };
    let disk = std::sync::Arc::new(siltstone::io::Disk::new());
    let config = siltstone::log::LogConfig::default();
    let log = siltstone::log::Log::open(disk, &path, config, &options).unwrap();
    log.append_as_follower(&records(1).epoch(0).build(), 0, NOW_MS).unwrap();
    log.flush(false, NOW_MS).unwrap();
    log.append_as_follower(&records(1).at(1).epoch(0).build(), 0, NOW_MS).unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    log.flush(false, NOW_MS).unwrap();
}
