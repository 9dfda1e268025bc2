//! Indexes that were written but not synced: no start may trust them, and what a recovery point
//! leaves behind is durable with its indexes.

use std::path::Path;
use std::sync::Arc;

use siltstone::io::{SimDisk, Storage};
use siltstone::log::{Log, LogConfig, OpenOptions, VerifyOptions, verify_partition};
use siltstone::segment::{FileName, FileRole};
use siltstone_tests::live::{NOW_MS, records};

/// What a power cut spares: the extremes, and mixtures.
const SEEDS: std::ops::Range<u64> = 0..40;
/// Enough for index files of several sectors.
const BATCHES: i64 = 300;
const EIO: i32 = 5;

fn config() -> LogConfig {
    LogConfig { index_interval_bytes: 10, segment_index_bytes: 1 << 16, ..LogConfig::default() }
}

fn open(disk: &SimDisk, recovery_point: i64) -> Log {
    let options = OpenOptions {
        clean_shutdown: recovery_point == 0,
        recovery_point,
        now_ms: NOW_MS,
        ..OpenOptions::default()
    };
    Log::open(Arc::new(disk.clone()), Path::new("/orders-0"), config(), &options).expect("a log")
}

fn fill(log: &Log) {
    for _ in 0..BATCHES {
        let offset = log.log_end_offset();
        let batch = records(1).at(offset).epoch(0).times(&[NOW_MS + offset]).build();
        log.append_as_follower(&batch, 0, NOW_MS).expect("an append");
        log.update_high_watermark(offset + 1).expect("a high watermark");
    }
}

/// The files that were synced from an operation on.
fn synced_from(disk: &SimDisk, first: usize) -> Vec<String> {
    let operations = disk.operations();
    let syncs = operations.iter().skip(first).filter(|operation| operation.what == "sync");
    let name = |path: &Path| path.extension().map(|name| name.to_string_lossy().into_owned());
    syncs.filter_map(|operation| name(&operation.path)).collect()
}

/// Every batch is found, and the files say what they should.
fn check(disk: &SimDisk, log: &Log, when: &str) {
    assert_eq!(log.log_end_offset(), BATCHES, "{when}");
    for offset in 0..BATCHES {
        assert_eq!(log.place_of(offset).expect("a place").offset, offset, "{when}");
        let found = log.offset_for_timestamp(NOW_MS + offset).expect("a look");
        assert_eq!(found.map(|found| found.offset), Some(offset), "{when}");
    }
    log.flush(true, NOW_MS).expect("a flush");
    log.close().expect("a clean stop");
    let options = VerifyOptions { now_ms: NOW_MS, ..VerifyOptions::default() };
    let report = verify_partition(disk, Path::new("/orders-0"), &options).expect("a look");
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{when}: {problems:?}");
}

/// What is trusted is as it was written.
fn check_trusted(disk: &SimDisk, left: &SimDisk, when: &str) {
    for role in [FileRole::OffsetIndex, FileRole::TimeIndex] {
        let path = Path::new("/orders-0").join(FileName::live(0, role).format());
        let bytes = |disk: &SimDisk| disk.read(&path, 1 << 20).expect("an index");
        assert!(bytes(left) == bytes(disk), "{when}: {}", path.display());
    }
}

#[test]
fn an_index_that_was_written_but_not_synced_is_not_trusted() {
    let disk = SimDisk::new();
    let log = open(&disk, 0);
    fill(&log);
    let first = disk.operations().len();
    log.flush(false, NOW_MS).expect("a flush");
    assert_eq!(log.recovery_point(), BATCHES);
    assert_eq!(synced_from(&disk, first), ["log"], "the indexes are made anew after a crash");
    // What is written down stays within the segment.
    let saved = log.recovery_point_to_save();
    assert_eq!(saved, BATCHES - 1);
    for seed in SEEDS {
        let left = disk.after_crash(seed);
        check(&left, &open(&left, saved), &format!("flushed, seed {seed}"));
    }
    // The next segment begins at the end of what is durable, and nothing was synced for it.
    let first = disk.operations().len();
    log.roll(NOW_MS).expect("a roll");
    assert_eq!(synced_from(&disk, first), [""; 0], "nobody waits for the disk in a roll");
    assert_eq!((log.recovery_point(), log.recovery_point_to_save()), (saved, saved));
    for seed in SEEDS {
        let left = disk.after_crash(seed);
        check(&left, &open(&left, saved), &format!("rolled, seed {seed}"));
    }
    let first = disk.operations().len();
    log.flush(false, NOW_MS).expect("a flush");
    assert_eq!(synced_from(&disk, first), ["log", "index", "timeindex", "snapshot"]);
    assert_eq!((log.recovery_point(), log.recovery_point_to_save()), (BATCHES, BATCHES));
    for seed in SEEDS {
        let left = disk.after_crash(seed);
        check_trusted(&disk, &left, &format!("left behind, seed {seed}"));
        check(&left, &open(&left, BATCHES), &format!("left behind, seed {seed}"));
    }
    let first = disk.operations().len();
    log.flush(false, NOW_MS).expect("a flush");
    assert_eq!(synced_from(&disk, first), [""; 0], "nothing has changed");
}

#[test]
fn with_all_files_flushed_the_recovery_point_is_written_down_as_it_is() {
    let disk = SimDisk::new();
    let log = open(&disk, 0);
    fill(&log);
    log.flush(true, NOW_MS).expect("a flush");
    assert_eq!(log.recovery_point_to_save(), BATCHES);
    for seed in SEEDS {
        let left = disk.after_crash(seed);
        check_trusted(&disk, &left, &format!("flushed, seed {seed}"));
        check(&left, &open(&left, BATCHES), &format!("flushed, seed {seed}"));
    }
}

#[test]
fn a_roll_between_the_steps_of_a_flush_leaves_indexes_to_the_next_one() {
    let disk = SimDisk::new();
    let log = open(&disk, 0);
    fill(&log);
    let work = log.prepare_flush(BATCHES, false).expect("files").expect("work");
    assert_eq!(work.files().len(), 1, "the log");
    log.roll(NOW_MS).expect("a roll");
    let synced = log.sync(&work);
    log.complete_flush(&work, synced, NOW_MS).expect("a flush");
    let point = log.recovery_point();
    assert_eq!(point, BATCHES - 1);
    for seed in SEEDS {
        let left = disk.after_crash(seed);
        check(&left, &open(&left, point), &format!("rolled, seed {seed}"));
    }
    // A flush that is given up says nothing of the indexes, nor does one that failed.
    let work = log.prepare_flush(BATCHES, false).expect("files").expect("work");
    assert_eq!(work.files().len(), 3);
    drop(work);
    assert_eq!(log.recovery_point(), BATCHES - 1);
    let first = disk.operations().len();
    log.flush(false, NOW_MS).expect("a flush");
    assert_eq!(log.recovery_point(), BATCHES);
    assert_eq!(synced_from(&disk, first), ["log", "index", "timeindex", "snapshot"]);
    for seed in SEEDS {
        let left = disk.after_crash(seed);
        check_trusted(&disk, &left, &format!("left behind, seed {seed}"));
        check(&left, &open(&left, BATCHES), &format!("left behind, seed {seed}"));
    }
}

#[test]
fn two_rolls_between_the_steps_of_a_flush_leave_the_indexes_of_the_first_segment_to_the_next_one() {
    // Only the newest segment was looked at: the one that the flush had ended at was behind it, and
    // no flush came back to its indexes.
    let disk = SimDisk::new();
    let log = open(&disk, 0);
    fill(&log);
    let work = log.prepare_flush(BATCHES, false).expect("files").expect("work");
    log.roll(NOW_MS).expect("a roll");
    let batch = records(1).at(BATCHES).epoch(0).build();
    log.append_as_follower(&batch, 0, NOW_MS).expect("an append");
    log.roll(NOW_MS).expect("a roll");
    let synced = log.sync(&work);
    log.complete_flush(&work, synced, NOW_MS).expect("a flush");
    assert_eq!(log.recovery_point(), BATCHES - 1);
    log.flush(false, NOW_MS).expect("a flush");
    assert_eq!((log.recovery_point(), log.recovery_point_to_save()), (BATCHES + 1, BATCHES + 1));
    for seed in SEEDS {
        check_trusted(&disk, &disk.after_crash(seed), &format!("seed {seed}"));
    }
}

#[test]
fn a_sync_of_indexes_that_fails_ends_the_writing() {
    for failing in 0..3 {
        let disk = SimDisk::new();
        let log = open(&disk, 0);
        fill(&log);
        log.flush(false, NOW_MS).expect("a flush");
        log.roll(NOW_MS).expect("a roll");
        let point = log.recovery_point_to_save();
        // Where the flush syncs is learnt from another log.
        let probe = SimDisk::new();
        let other = open(&probe, 0);
        fill(&other);
        other.flush(false, NOW_MS).expect("a flush");
        other.roll(NOW_MS).expect("a roll");
        let before = disk.operation_count();
        other.flush(false, NOW_MS).expect("a flush");
        let operations = probe.operations();
        let syncs = (0..).zip(&operations).filter(|(_, o)| o.what.starts_with("sync"));
        let mut in_flush = syncs.filter(|(number, _)| *number >= before);
        let (number, operation) = in_flush.nth(failing).expect("files and a directory");
        disk.fail_at(number, EIO);
        log.flush(false, NOW_MS).expect_err("a sync that failed");
        assert!(log.is_failed(), "{operation}");
        drop(log);
        for seed in SEEDS {
            let left = disk.after_crash(seed);
            check(&left, &open(&left, point), &format!("{operation} failed, seed {seed}"));
        }
    }
}
