//! A log that is written to: every operation of its life fails once, and the power goes at every
//! one.
//!
//! The script appends (plain, transactional, several batches at once), rolls, flushes, cuts, begins
//! anew, deletes, closes and opens. Beside it stands a plain model: which batch is at which offset,
//! and which of them were made durable.

use siltstone::io::SimDisk;
use siltstone::io::sim::Operation;
use siltstone::log::Log;
use siltstone_tests::model::{Model, Run, Step, next_offset, offsets};

const EACCES: i32 = 13;
const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
/// What a power cut spares: the extremes, and mixtures.
const SEEDS: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

fn script() -> Vec<Step> {
    use Step::{
        Append, DeleteFiles, DeleteOld, End, Epoch, Flush, RaiseStart, Reopen, Roll, StartAt,
        Truncate,
    };
    let plain = |batches| Append { batches, producer: 0, txn: false };
    let txn = |producer| Append { batches: 1, producer, txn: true };
    let idempotent = |producer| Append { batches: 2, producer, txn: false };
    vec![
        plain(1),
        txn(1),
        idempotent(2),
        Flush,
        End { producer: 1, abort: true },
        Epoch(1),
        plain(3),
        txn(1),
        txn(3),
        Roll,
        End { producer: 3, abort: true },
        Flush,
        Roll,
        plain(2),
        idempotent(2),
        Truncate(17),
        plain(1),
        End { producer: 1, abort: false },
        Truncate(9),
        plain(4),
        Epoch(2),
        plain(1),
        Flush,
        RaiseStart(7),
        DeleteOld,
        DeleteFiles,
        txn(5),
        Reopen,
        End { producer: 5, abort: true },
        plain(2),
        Flush,
        StartAt(60),
        plain(2),
        idempotent(7),
        Roll,
        plain(1),
    ]
}

/// The script without a fault: its operations, and what it ends with.
fn uncut() -> (Vec<Operation>, Run) {
    let mut run = Run::new(SimDisk::new());
    for step in script() {
        run.step(&step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
    }
    let operations = run.disk.operations();
    (operations, run)
}

#[test]
fn a_life_without_faults_leaves_a_sound_directory() {
    let mut run = Run::new(SimDisk::new());
    for step in script() {
        run.step(&step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
        run.check_same(&format!("{step:?}"));
    }
    run.log.take().expect("a log").close().expect("a clean stop");
    run.check_files("at the end");
    run.is_clean = true;
    run.open().expect("a log");
    run.check_same("opened again");
}

#[test]
fn every_operation_fails_once_and_the_log_goes_on() {
    let (operations, _) = uncut();
    let mut failed = 0;
    for (number, operation) in (0..).zip(&operations) {
        for errno in [EIO, ENOSPC, EMFILE, EACCES] {
            let disk = SimDisk::new();
            disk.fail_at(number, errno);
            failed += u32::from(survive(
                Run::new(disk),
                &format!("error {errno} at {number} ({operation})"),
            ));
        }
    }
    assert!(failed > 100, "{failed} faults were told");
}

/// Runs the script; a step that fails is done again, after a reopening where the log asks for it.
/// Says whether any failed.
fn survive(mut run: Run, when: &str) -> bool {
    let mut has_failed = false;
    for (number, step) in script().iter().enumerate() {
        let when = format!("{when}, step {number} {step:?}");
        let before = run.model.clone();
        for attempt in 0..3 {
            let Err(error) = run.step(step) else { break };
            has_failed = true;
            assert!(attempt < 2, "{when}: {error}");
            recover(&mut run, step, &before, &when);
        }
    }
    run.check_same(when);
    run.log.take().expect("a log").close().unwrap_or_else(|error| panic!("{when}: {error}"));
    run.check_files(when);
    has_failed
}

/// After a step that failed: the log is as it was, or says that it must be opened again.
fn recover(run: &mut Run, step: &Step, before: &Model, when: &str) {
    let must_open = run.log.as_ref().is_none_or(Log::is_failed);
    if must_open {
        let is_cut = matches!(step, Step::Truncate(_) | Step::StartAt(_));
        let may_fail = run.log.is_none() || is_cut || when.contains("sync");
        assert!(may_fail, "{when}: the log must be opened again");
        run.log = None;
        run.is_clean = false;
        if run.open().is_err() {
            run.open().unwrap_or_else(|error| panic!("{when}: {error}"));
        }
    }
    let is_cut = matches!(step, Step::Truncate(_) | Step::StartAt(_));
    // The checks look at the disk, and meet no fault any more.
    let content = run.content();
    run.check_whole(&content, when);
    if !is_cut && !must_open {
        let start = run.log().log_start_offset();
        let is_done = run.model.end > before.end;
        let wanted = if is_done { &run.model.now } else { &before.now };
        let missing = wanted
            .iter()
            .filter(|(base, bytes)| next_offset(bytes) > start && content.get(base) != Some(bytes));
        assert_eq!(
            missing.count(),
            0,
            "{when}: {:?}, not {:?}",
            offsets(&content),
            offsets(wanted)
        );
    }
    // What is there is what the script goes on with.
    run.model.end = run.log().log_end_offset();
    run.model.now = content;
    run.model.start = run.model.start.max(run.log().log_start_offset());
    run.model.sequences.clone_from(&before.sequences);
    let end = run.model.end;
    run.log().update_high_watermark(end).unwrap_or_else(|error| panic!("{when}: {error}"));
}

#[test]
fn the_power_goes_at_every_operation_and_nothing_durable_is_lost() {
    let (operations, _) = uncut();
    for (number, operation) in (0..).zip(&operations) {
        if !operation.is_change {
            continue;
        }
        let disk = SimDisk::new();
        disk.crash_at(number);
        let mut run = Run::new(disk);
        for step in script() {
            if run.step(&step).is_err() {
                break;
            }
        }
        assert!(run.disk.is_off(), "operation {number} did not come");
        run.log = None;
        for seed in SEEDS {
            let when = format!("cut at {number} ({operation}), seed {seed}");
            let disk = run.disk.after_crash(seed);
            let mut left =
                Run { disk, model: run.model.clone(), log: None, is_clean: run.is_clean };
            left.is_clean = false;
            left.open().unwrap_or_else(|error| panic!("{when}: {error}"));
            left.check_survived(&when);
            left.log
                .take()
                .expect("a log")
                .close()
                .unwrap_or_else(|error| panic!("{when}: {error}"));
            left.check_files(&when);
        }
    }
}
