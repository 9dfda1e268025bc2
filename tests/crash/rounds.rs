//! A node that compacts its logs: the power goes at every change of the disk, from the first round
//! to the last line of `cleaner-offset-checkpoint`, and every operation fails once.
//!
//! Whatever is left says the same of every key; and what the checkpoint takes for compacted is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::Result;
use siltstone::dir::engine::{CheckpointFile, Engine, EngineOptions, NewLog, WorkKind};
use siltstone::io::{SimDisk, Storage};
use siltstone::log::Log;
use siltstone::state::OffsetCheckpoint;
use siltstone_tests::compacted::lines;
use siltstone_tests::live::NOW_MS;

use crate::compaction::{self, Known, SEEDS, config, fill, small};

const TOPIC: &str = "orders";
const CHECKPOINT: &str = "/data/cleaner-offset-checkpoint";
/// When the node looks for a log to compact.
const LOOK_MS: i64 = NOW_MS + 15_000;
const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;

fn open(disk: &SimDisk) -> Result<Engine> {
    let config = |_: &str| config();
    let options =
        EngineOptions { cleaners: 1, cleaner: small(), ..EngineOptions::new(&config, NOW_MS) };
    let dirs: [PathBuf; 1] = ["/data".into()];
    Ok(Engine::open(Arc::new(disk.clone()), &dirs, &options)?.0)
}

/// A node that was stopped cleanly, with one log, and no round yet.
fn made() -> SimDisk {
    let disk = SimDisk::new();
    let engine = open(&disk).expect("a node");
    let new = NewLog { config: config(), now_ms: NOW_MS, ..NewLog::default() };
    let log = engine.get_or_create(TOPIC, 0, &new).expect("a log");
    fill(&log);
    log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
    let report = engine.close(1, 1);
    assert!(report.dirs.iter().all(|dir| dir.is_clean));
    disk.settle();
    disk
}

fn log_of(engine: &Engine) -> Result<Arc<Log>> {
    let log = engine.log(TOPIC, 0)?.expect("a log");
    log.update_high_watermark(log.log_end_offset())?;
    Ok(log)
}

/// Rounds until there is nothing to be compacted any more, and what they leave to be done.
fn compact(engine: &Engine, now_ms: i64) -> Result<()> {
    log_of(engine)?;
    loop {
        let is_ours = |kind: WorkKind| {
            let checkpoint = WorkKind::Checkpoint(CheckpointFile::CompactedEnds);
            [WorkKind::Compact, WorkKind::DeleteFiles, checkpoint].contains(&kind)
        };
        let mut due = engine.due_work(now_ms);
        due.retain(|work| is_ours(work.kind()));
        if due.is_empty() {
            return Ok(());
        }
        due.iter().try_for_each(|work| engine.run(work, now_ms))?;
    }
}

fn line(disk: &SimDisk) -> Option<i64> {
    let bytes = disk.read(Path::new(CHECKPOINT), 1000).ok()?;
    OffsetCheckpoint::parse(&bytes).expect("a checkpoint that is whole").get(TOPIC, 0)
}

/// What must hold of every node that is left: up to the checkpoint each key has one record.
fn check(known: &Known, engine: &Engine, disk: &SimDisk, when: &str) {
    let log = log_of(engine).unwrap_or_else(|error| panic!("{when}: {error}"));
    known.check(&log, when);
    let compacted = line(disk).unwrap_or(0);
    assert!(log.compacted_end_offset().is_none_or(|end| end >= compacted), "{when}");
    let mut keys = BTreeSet::new();
    for line in lines(&log) {
        if line.offset < compacted && line.abort.is_none() {
            assert!(keys.insert(line.key), "{when}: two of a key before {compacted}");
        }
    }
}

fn check_end(known: &Known, engine: &Engine, disk: &SimDisk, when: &str) {
    // What failed is due again later.
    compact(engine, LOOK_MS + 15_000).unwrap_or_else(|error| panic!("{when}: {error}"));
    check(known, engine, disk, when);
    let log = log_of(engine).expect("a log");
    let active = log.segments().last().expect("a segment").base_offset();
    assert_eq!(line(disk), Some(active), "{when}");
    let report = engine.close(1, 1);
    assert!(report.dirs.iter().all(|dir| dir.is_clean), "{when}: {report:?}");
    let names = disk.list(Path::new("/data/orders-0")).expect("a folder");
    let names = names.into_iter().map(|entry| entry.name.to_string_lossy().into_owned());
    let left: Vec<String> =
        names.filter(|name| name.ends_with(".cleaned") || name.ends_with(".swap")).collect();
    assert!(left.is_empty(), "{when}: {left:?}");
}

/// How many changes and operations there are before the first round, and with all of them.
fn counts(disk: &SimDisk) -> [(u64, u64); 2] {
    let run = disk.fork();
    let begin = (run.change_count(), run.operation_count());
    let counts = || (run.change_count() - begin.0, run.operation_count() - begin.1);
    let engine = open(&run).expect("a node");
    let opening = counts();
    compact(&engine, LOOK_MS).expect("rounds");
    let end = counts();
    assert!(line(&run).is_some());
    [opening, end]
}

#[test]
fn the_power_goes_at_every_change_of_a_node_that_compacts() {
    let known = Known::of(&compaction::made());
    let disk = made();
    let [(opening, _), (end, _)] = counts(&disk);
    assert!(end - opening > 60, "{opening} to {end}");
    for number in opening..end {
        let run = disk.fork();
        let engine = open(&run).expect("a node");
        run.crash_at_change(run.change_count() + number - opening);
        compact(&engine, LOOK_MS).expect_err("the power goes");
        assert!(run.is_off(), "change {number} did not come");
        drop(engine);
        for seed in SEEDS {
            let when = format!("cut at change {number}, seed {seed}");
            let left = run.after_crash(seed);
            let engine = open(&left).unwrap_or_else(|error| panic!("{when}: {error}"));
            check(&known, &engine, &left, &when);
            check_end(&known, &engine, &left, &when);
        }
    }
}

#[test]
fn every_operation_of_a_node_that_compacts_fails_once() {
    let known = Known::of(&compaction::made());
    let disk = made();
    let [(_, opening), (_, end)] = counts(&disk);
    for number in opening..end {
        for errno in [EIO, ENOSPC, EMFILE] {
            let when = format!("error {errno} at {number}");
            let run = disk.fork();
            let mut engine = open(&run).expect("a node");
            run.fail_at(run.operation_count() + number - opening, errno);
            let outcome = compact(&engine, LOOK_MS);
            let is_broken = !engine.offline_dirs().is_empty()
                || log_of(&engine).is_ok_and(|log| log.is_failed());
            if is_broken {
                assert!(outcome.is_err(), "{when}");
                drop(engine);
                engine = open(&run).unwrap_or_else(|error| panic!("{when}: {error}"));
            }
            check(&known, &engine, &run, &when);
            check_end(&known, &engine, &run, &when);
        }
    }
}
