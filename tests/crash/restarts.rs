//! A process is killed, and what its next start finds is sound: whatever that start takes for
//! durable survives a power cut.
//!
//! A kill loses nothing that was written, so there may be nothing to recover; but what was written
//! need not be on the disk. Logs are killed on their way out, when their files have the form that
//! they have at rest and nothing was synced.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::dir::engine::{CheckpointFile, Engine, EngineOptions, NewLog};
use siltstone::io::SimDisk;
use siltstone::log::recover::{RecoverOptions, Silent, analyse};
use siltstone::log::{
    FetchOptions, Isolation, Log, LogConfig, OpenOptions, VerifyOptions, verify_partition,
};
use siltstone::segment::rebuild::IndexSettings;
use siltstone_tests::live::{NOW_MS, records};

/// What a power cut spares: the extremes, and mixtures.
const SEEDS: std::ops::Range<u64> = 0..12;
const SEGMENTS: i64 = 3;
const BATCHES_EACH: i64 = 100;
const END: i64 = SEGMENTS * BATCHES_EACH;

fn config() -> LogConfig {
    LogConfig { index_interval_bytes: 10, segment_index_bytes: 1 << 16, ..LogConfig::default() }
}

/// Appends a few segments, and is killed while it closes the log.
fn live_and_die(log: &Log) {
    for number in 0..SEGMENTS {
        for offset in number * BATCHES_EACH..(number + 1) * BATCHES_EACH {
            let batch = records(1).at(offset).epoch(0).times(&[NOW_MS + offset]).build();
            log.append_as_follower(&batch, 0, NOW_MS).expect("an append");
        }
        if number + 1 < SEGMENTS {
            log.roll(NOW_MS).expect("a roll");
        }
    }
    log.update_high_watermark(END).expect("a high watermark");
    drop(log.begin_close().expect("files at rest"));
}

fn check_nothing_to_recover(disk: &SimDisk, dir: &Path) {
    let config = config();
    let index = IndexSettings {
        interval_bytes: u64::from(config.index_interval_bytes),
        max_size_bytes: usize::try_from(config.segment_index_bytes).expect("a size"),
    };
    let options = RecoverOptions { index, now_ms: NOW_MS, ..RecoverOptions::default() };
    let plan = analyse(disk, dir, &options, &Silent).expect("a look");
    assert!(plan.is_empty(), "{plan:?}");
}

/// Every batch is there and found by offset and by time.
fn check(disk: &SimDisk, log: &Log, when: &str) {
    assert_eq!(log.log_end_offset(), END, "{when}");
    let options =
        FetchOptions { max_bytes: 1, isolation: Isolation::LogEnd, min_one_message: true };
    for offset in 0..END {
        assert_eq!(log.read(offset, &options).expect("bytes").place.offset, offset, "{when}");
        let found = log.offset_for_timestamp(NOW_MS + offset).expect("a look");
        assert_eq!(found.map(|found| found.offset), Some(offset), "{when}");
    }
    let dir = log.dir();
    log.close().expect("a clean stop");
    let options = VerifyOptions { now_ms: NOW_MS, ..VerifyOptions::default() };
    let report = verify_partition(disk, &dir, &options).expect("a look");
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{when}: {problems:?}");
}

fn open_log(disk: &SimDisk, recovery_point: i64) -> Log {
    let options = OpenOptions {
        clean_shutdown: false,
        recovery_point,
        now_ms: NOW_MS,
        ..OpenOptions::default()
    };
    Log::open(Arc::new(disk.clone()), Path::new("/orders-0"), config(), &options).expect("a log")
}

#[test]
fn indexes_that_a_killed_process_left_are_durable_before_the_recovery_point_passes_them() {
    // The next start found nothing to be done and took the indexes for durable, as it had not
    // changed them. A flush synced the logs and left the indexes behind: after a power cut they
    // were trusted, with nothing in them.
    let disk = SimDisk::new();
    live_and_die(&open_log(&disk, 0));
    check_nothing_to_recover(&disk, Path::new("/orders-0"));
    let log = open_log(&disk, 0);
    log.flush(true, NOW_MS).expect("a flush");
    let point = log.recovery_point_to_save();
    assert_eq!(point, END);
    for seed in SEEDS {
        let left = disk.after_crash(seed);
        check(&left, &open_log(&left, point), &format!("seed {seed}"));
    }
}

fn open_engine(disk: &SimDisk) -> Engine {
    let config = |_: &str| config();
    let dirs: [PathBuf; 1] = ["/a".into()];
    let options = EngineOptions::new(&config, NOW_MS);
    let (engine, report) =
        Engine::open(Arc::new(disk.clone()), &dirs, &options).expect("an engine");
    assert!(report.refused.is_empty(), "{:?}", report.refused);
    engine
}

#[test]
fn logs_that_a_killed_node_left_are_durable_before_it_says_so() {
    // A node that found all of its logs sound took them for durable up to their ends, and wrote
    // that down: a power cut took what no recovery looked for any more.
    let disk = SimDisk::new();
    let engine = open_engine(&disk);
    let new = NewLog { config: config(), now_ms: NOW_MS, ..NewLog::default() };
    let log = engine.get_or_create("orders", 0, &new).expect("a log");
    live_and_die(&log);
    check_nothing_to_recover(&disk, &log.dir());
    drop((log, engine));
    let engine = open_engine(&disk);
    let log = engine.log("orders", 0).expect("a look").expect("a log");
    assert_eq!(log.recovery_point(), END);
    engine.checkpoint(CheckpointFile::RecoveryPoints).expect("a checkpoint");
    for seed in SEEDS {
        let left = disk.after_crash(seed);
        let engine = open_engine(&left);
        let log = engine.log("orders", 0).expect("a look").expect("a log");
        check(&left, &log, &format!("seed {seed}"));
    }
}
