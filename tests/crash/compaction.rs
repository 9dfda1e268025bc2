//! A log that is compacted: the power goes at every operation, and every operation fails once.
//!
//! Whatever is left says the same of every key, holds nothing that was not there, and can be
//! compacted to the same end.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use siltstone::Kind;
use siltstone::io::SimDisk;
use siltstone::io::sim::Operation;
use siltstone::log::{
    Cleaner, CleanerOptions, Log, LogConfig, OpenOptions, VerifyOptions, verify_partition,
};
use siltstone::problem::Severity;
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::Compressor;
use siltstone_tests::compacted::{Line, View, lines, lines_to_a_fault, view};
use siltstone_tests::live::{DIR, Marker, NOW_MS};

const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const RETENTION_MS: i64 = 1000;
/// What a power cut spares: the extremes, and mixtures, in some of which renames are reordered.
pub(super) const SEEDS: std::ops::Range<u64> = 0..24;

pub(super) fn config() -> LogConfig {
    LogConfig {
        compact: true,
        delete: false,
        segment_bytes: 700,
        segment_index_bytes: 240,
        index_interval_bytes: 100,
        file_delete_delay_ms: 0,
        delete_retention_ms: RETENTION_MS,
        min_cleanable_dirty_ratio: 0.0,
        ..LogConfig::default()
    }
}

fn open(disk: &SimDisk, clean_shutdown: bool, recovery_point: i64) -> siltstone::Result<Log> {
    let options =
        OpenOptions { clean_shutdown, recovery_point, now_ms: NOW_MS, ..OpenOptions::default() };
    let log = Log::open(Arc::new(disk.clone()), Path::new(DIR), config(), &options)?;
    log.update_high_watermark(log.log_end_offset())?;
    Ok(log)
}

/// Keys with values, or deleted where the value is 0; by producer 1 in a transaction if so.
fn append(log: &Log, offset: &mut i64, records: &[(u8, u8)], sequence: Option<i32>) {
    let mut options =
        BatchOptions { base_offset: *offset, leader_epoch: 0, ..BatchOptions::default() };
    if let Some(base_sequence) = sequence {
        let (producer_id, producer_epoch, is_transactional) = (1, 0, true);
        options = BatchOptions {
            producer_id,
            producer_epoch,
            base_sequence,
            is_transactional,
            ..options
        };
    }
    let mut builder = BatchBuilder::new(options).expect("options");
    for (key, value) in records {
        let value = [*value; 20];
        builder.append(NOW_MS, Some(&[*key]), (value[0] > 0).then_some(&value)).expect("a record");
    }
    let mut bytes = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut bytes).expect("a batch");
    follow(log, offset, &bytes, records.len());
}

fn end(log: &Log, offset: &mut i64, abort: bool) {
    let marker = Marker { offset: *offset, leader_epoch: 0, ..Marker::of(1, 0, abort) };
    follow(log, offset, &marker.build(), 1);
}

fn follow(log: &Log, offset: &mut i64, bytes: &[u8], records: usize) {
    log.append_as_follower(bytes, i32::MAX, NOW_MS).expect("an append");
    *offset += i64::try_from(records).expect("few");
}

/// Seven segments, of which the last is active.
pub(super) fn fill(log: &Log) {
    let at = &mut 0;
    append(log, at, &[(1, 1), (2, 1), (3, 1)], None);
    append(log, at, &[(4, 1), (5, 1)], Some(0));
    end(log, at, true);
    log.roll(NOW_MS).expect("a roll");
    append(log, at, &[(1, 2), (6, 1), (7, 1)], None);
    append(log, at, &[(2, 0), (8, 1)], None);
    log.roll(NOW_MS).expect("a roll");
    append(log, at, &[(7, 2)], Some(2));
    append(log, at, &[(9, 1), (9, 2)], None);
    log.roll(NOW_MS).expect("a roll");
    append(log, at, &[(9, 0), (8, 0)], None);
    end(log, at, false);
    log.roll(NOW_MS).expect("a roll");
    append(log, at, &[(4, 3), (6, 3), (10, 3)], None);
    append(log, at, &[(11, 1), (12, 1), (13, 1), (14, 1)], None);
    log.roll(NOW_MS).expect("a roll");
    append(log, at, &[(11, 0), (12, 0), (13, 0), (14, 0)], Some(3));
    end(log, at, false);
    log.roll(NOW_MS).expect("a roll");
    append(log, at, &[(1, 9)], None);
}

/// Closed cleanly and durable.
pub(super) fn made() -> SimDisk {
    let disk = SimDisk::new();
    let log = open(&disk, true, 0).expect("a log");
    fill(&log);
    log.close().expect("a clean stop");
    disk.settle();
    disk
}

/// A small map, and many steps.
pub(super) fn small() -> CleanerOptions {
    CleanerOptions {
        dedupe_buffer_bytes: 24 * 10,
        io_buffer_bytes: 64,
        step_bytes: 100,
        ..CleanerOptions::default()
    }
}

/// Three rounds, at whose end tombstones and markers are gone.
fn compact(log: &Log, from: &mut (usize, Option<i64>)) -> siltstone::Result<()> {
    let mut cleaner = Cleaner::new(small());
    while from.0 < 4 {
        let now_ms = NOW_MS + RETENTION_MS * i64::try_from(from.0).expect("few");
        let range = log.cleanable(from.1, now_ms)?;
        let done = log.compact(&mut cleaner, &range, now_ms)?;
        *from = (from.0 + 1, Some(done.end_offset));
        log.delete_due_files(i64::MAX)?;
    }
    Ok(())
}

/// What is known before and after.
pub(super) struct Known {
    before: BTreeSet<Line>,
    view: View,
    after: Vec<Line>,
    end_offset: i64,
    operations: Vec<Operation>,
    /// Operations of the opening.
    opening: u64,
}

impl Known {
    pub(super) fn of(disk: &SimDisk) -> Self {
        let disk = disk.fork();
        let log = open(&disk, true, 0).expect("a log");
        let before = lines(&log);
        drop(log);
        let disk = disk.fork();
        let begin = disk.operation_count();
        let log = open(&disk, true, 0).expect("a log");
        let opening = disk.operation_count() - begin;
        compact(&log, &mut (0, None)).expect("a log that is compacted");
        let operations = disk.operations();
        let known = Known {
            view: view(&before),
            before: before.into_iter().collect(),
            after: lines(&log),
            end_offset: log.log_end_offset(),
            operations: operations[usize::try_from(begin).expect("few")..].to_vec(),
            opening,
        };
        known.check(&log, "uncut");
        assert!(known.after.len() * 2 < known.before.len() + 4, "{:#?}", known.after);
        known
    }

    /// What must hold of every log that is left.
    pub(super) fn check(&self, log: &Log, when: &str) {
        let left = lines(log);
        assert_eq!(view(&left), self.view, "{when}: other keys, of {left:#?}");
        let invented = left.iter().find(|line| !self.before.contains(line));
        assert_eq!(invented, None, "{when}");
        let missing = self.after.iter().find(|line| !left.contains(line));
        assert_eq!(missing, None, "{when}");
        assert_eq!(log.log_end_offset(), self.end_offset, "{when}");
    }

    /// Compacts what is left, and looks at the files.
    fn check_end(&self, disk: &SimDisk, log: &Log, when: &str) {
        compact(log, &mut (0, None)).unwrap_or_else(|error| panic!("{when}: {error}"));
        self.check(log, when);
        log.close().unwrap_or_else(|error| panic!("{when}: {error}"));
        let options = VerifyOptions { now_ms: NOW_MS, ..VerifyOptions::default() };
        let report = verify_partition(disk, Path::new(DIR), &options).expect("a look");
        let grave = report.problems.iter().filter(|p| p.severity >= Severity::Repairable);
        let grave: Vec<String> = grave.map(ToString::to_string).collect();
        assert!(grave.is_empty(), "{when}: {grave:?}");
        let files = disk.snapshot(Path::new(DIR)).expect("a directory");
        let is_left = |name: &String| [".cleaned", ".swap"].iter().any(|end| name.ends_with(end));
        let names = files.entries.keys().map(|path| path.display().to_string());
        assert_eq!(names.filter(is_left).collect::<Vec<_>>(), [""; 0], "{when}");
    }
}

#[test]
fn the_power_goes_at_every_operation_of_a_compaction() {
    let disk = made();
    let known = Known::of(&disk);
    let mut cut = 0;
    for (number, operation) in (0_u64..).zip(&known.operations) {
        if number < known.opening || !operation.is_change {
            continue;
        }
        let run = disk.fork();
        run.crash_at(run.operation_count() + number);
        let log = open(&run, true, 0).expect("a log");
        compact(&log, &mut (0, None)).expect_err("the power goes");
        drop(log);
        assert!(run.is_off(), "operation {number} did not come");
        cut += 1;
        for seed in SEEDS {
            let when = format!("cut at {number} ({operation}), seed {seed}");
            let left = run.after_crash(seed);
            let log = open(&left, false, known.end_offset)
                .unwrap_or_else(|error| panic!("{when}: {error}"));
            known.check(&log, &when);
            known.check_end(&left, &log, &when);
        }
    }
    println!("cut at {cut} of {} operations", known.operations.len());
    assert!(cut > 100, "{cut} changes");
}

#[test]
fn every_operation_of_a_compaction_fails_once() {
    let disk = made();
    let known = Known::of(&disk);
    for (number, operation) in
        (0_u64..).zip(&known.operations).skip(usize::try_from(known.opening).expect("few"))
    {
        for errno in [EIO, ENOSPC, EMFILE] {
            let when = format!("error {errno} at {number} ({operation})");
            let run = disk.fork();
            run.fail_at(run.operation_count() + number, errno);
            let mut log = open(&run, true, 0).expect("a log");
            let mut from = (0, None);
            if compact(&log, &mut from).is_err() {
                if log.is_failed() {
                    assert!(when.contains("sync"), "{when}: the log must be opened again");
                    drop(log);
                    log = open(&run, false, known.end_offset)
                        .unwrap_or_else(|error| panic!("{when}: {error}"));
                }
                known.check(&log, &when);
                // The log is written to as before.
                compact(&log, &mut from).unwrap_or_else(|error| panic!("{when}: {error}"));
            }
            known.check(&log, &when);
            known.check_end(&run, &log, &when);
        }
    }
}

/// A disk that lies about syncs, and a power cut later: records may be gone, and where they were
/// the log says that it cannot be read. None is made up, and none is read as another one.
#[test]
fn a_lost_sync_of_a_compaction_makes_up_no_record() {
    let disk = made();
    let known = Known::of(&disk);
    let is_sync = |operation: &Operation| operation.to_string().contains("sync");
    let all = (0_u64..).zip(&known.operations).filter(|(number, _)| *number >= known.opening);
    let (syncs, changes): (Vec<_>, Vec<_>) = all
        .filter(|(_, operation)| operation.is_change || is_sync(operation))
        .partition(|(_, operation)| is_sync(operation));
    assert!(syncs.len() > 5, "{}", syncs.len());
    let mut losses: Vec<Option<u64>> = syncs.iter().map(|(number, _)| Some(*number)).collect();
    losses.push(None);
    let (mut whole, mut faulty) = (0, 0);
    for lost in losses {
        for (number, operation) in changes.iter().filter(|(number, _)| Some(*number) > lost) {
            let run = disk.fork();
            let first = run.operation_count();
            match lost {
                Some(lost) => run.lose_sync_at(first + lost),
                None => run.lose_syncs(),
            }
            run.crash_at(first + number);
            let log = open(&run, true, 0).expect("a log");
            compact(&log, &mut (0, None)).expect_err("the power goes");
            drop(log);
            for seed in [0, 1, 3, 7] {
                let when = format!("lost {lost:?}, cut at {number} ({operation}), seed {seed}");
                let left = run.after_crash(seed);
                let log = match open(&left, false, known.end_offset) {
                    Ok(log) => log,
                    Err(error) => {
                        assert_eq!(error.kind(), Kind::Corrupt, "{when}: {error}");
                        faulty += 1;
                        continue;
                    }
                };
                let (found, fault) = lines_to_a_fault(&log);
                let invented = found.iter().find(|line| !known.before.contains(line));
                assert_eq!(invented, None, "{when}");
                match fault {
                    Some(_) => faulty += 1,
                    None => whole += 1,
                }
            }
        }
    }
    println!("{whole} logs can be read, {faulty} say that they cannot");
    assert!(whole > 1000 && faulty > 0, "{whole}, {faulty}");
}

/// What was flushed is not given up for something that was not.
#[test]
fn no_key_is_lost_that_was_flushed_when_newer_records_of_it_were_not() {
    let live = |disk: SimDisk| -> siltstone::Result<i64> {
        let log = open(&disk, true, 0)?;
        let at = &mut 0;
        // Too large for one group.
        let others: Vec<(u8, u8)> = (100..115).map(|key| (key, 1)).collect();
        append(&log, at, &[&[(1, 1), (2, 1), (3, 1)], &others[..]].concat(), None);
        log.roll(NOW_MS)?;
        log.flush(false, NOW_MS)?;
        let recovery_point = log.recovery_point_to_save();
        append(&log, at, &[&others[..], &[(1, 2), (2, 2)]].concat(), None);
        log.roll(NOW_MS)?;
        append(&log, at, &[(9, 1)], None);
        log.update_high_watermark(log.log_end_offset())?;
        let range = log.cleanable(None, NOW_MS)?;
        let options = CleanerOptions { dedupe_buffer_bytes: 24 * 60, ..small() };
        log.compact(&mut Cleaner::new(options), &range, NOW_MS)?;
        Ok(recovery_point)
    };
    let whole = SimDisk::new();
    let recovery_point = live(whole.clone()).expect("a disk without faults");
    assert_eq!(recovery_point, 18);
    let operations = whole.operations();
    let opened = |operation: &Operation| operation.to_string().contains("cleaned");
    let first = operations.iter().position(opened).expect("a round");
    for number in first..operations.len() {
        let disk = SimDisk::new();
        disk.crash_at(u64::try_from(number).expect("few"));
        live(disk.clone()).expect_err("a cut");
        for seed in SEEDS {
            let left = disk.after_crash(seed);
            let log = open(&left, false, recovery_point).expect("a log");
            let keys: BTreeSet<Vec<u8>> =
                lines(&log).into_iter().filter_map(|line| line.key).collect();
            for key in 1..=3 {
                assert!(keys.contains(&vec![key]), "cut at {number}, seed {seed}: {key} is gone");
            }
        }
    }
}
