//! A log that is written to: every operation of its life fails, once or from then on, every sync is
//! lost, and the power goes at every operation.
//!
//! The scripts append (plain, transactional, several batches at once), roll, flush, cut, begin
//! anew, delete by start, size and time, with remote storage and without, close and open. Beside
//! them stands a plain model: which batch is at which offset, and which of them were made durable.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use siltstone::Kind;
use siltstone::io::SimDisk;
use siltstone::io::sim::Operation;
use siltstone::log::{Log, LogConfig};
use siltstone_tests::model::{
    Content, Model, Run, Step, config, next_offset, offsets, remote_config,
};

const EACCES: i32 = 13;
const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
/// What a power cut spares: the extremes, and mixtures.
const SEEDS: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

/// What is done to a log, one thing after another.
struct Life {
    name: &'static str,
    config: LogConfig,
    script: Vec<Step>,
}

fn lives() -> [Life; 3] {
    [
        Life { name: "by a leader's orders", config: config(), script: script() },
        Life { name: "by retention", config: config(), script: retained() },
        Life { name: "beside remote storage", config: remote_config(), script: tiered() },
    ]
}

/// Segments go by size and by time, the last of them, too.
fn retained() -> Vec<Step> {
    use Step::{
        Append, DeleteFiles, End, Epoch, Flush, Reopen, RetainBytes, RetainFrom, Roll, Truncate,
    };
    let plain = |batches| Append { batches, producer: 0, txn: false };
    vec![
        plain(3),
        Append { batches: 2, producer: 3, txn: false },
        plain(3),
        Flush,
        RetainBytes(500),
        plain(2),
        Append { batches: 1, producer: 1, txn: true },
        Epoch(1),
        plain(3),
        DeleteFiles,
        RetainFrom(12),
        End { producer: 1, abort: true },
        Flush,
        Truncate(17),
        RetainBytes(0),
        plain(1),
        DeleteFiles,
        Reopen,
        plain(3),
        Roll,
        RetainFrom(1000),
        plain(2),
        Flush,
    ]
}

/// Segments go when remote storage has them.
fn tiered() -> Vec<Step> {
    use Step::{
        Append, DeleteFiles, DeleteOld, End, Epoch, Flush, RaiseStart, Reopen, RetainBytes,
        RetainFrom, StartAt, Uploaded,
    };
    let plain = |batches| Append { batches, producer: 0, txn: false };
    vec![
        plain(3),
        Append { batches: 1, producer: 1, txn: true },
        plain(3),
        Epoch(2),
        Append { batches: 2, producer: 3, txn: false },
        Flush,
        RetainBytes(0),
        Uploaded(4),
        RetainBytes(300),
        End { producer: 1, abort: true },
        plain(3),
        Uploaded(9),
        RetainFrom(1000),
        DeleteFiles,
        plain(2),
        RaiseStart(3),
        DeleteOld,
        Flush,
        Reopen,
        plain(2),
        Uploaded(100),
        RetainFrom(1000),
        plain(2),
        StartAt(70),
        plain(2),
        Flush,
        RetainBytes(0),
    ]
}

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

/// How a disk fails.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// One operation.
    Once,
    /// Every change from one on, until somebody mends it.
    Lasting,
    /// No file can be opened in this step when so many are open.
    NoFiles { step: usize, count_max: usize },
}

impl Life {
    fn on(&self, disk: SimDisk) -> Run {
        Run::with(disk, self.config.clone())
    }

    /// The operations of a life without a fault.
    fn operations(&self) -> Vec<Operation> {
        let mut run = self.on(SimDisk::new());
        for step in &self.script {
            run.step(step).unwrap_or_else(|error| panic!("{}, {step:?}: {error}", self.name));
        }
        run.disk.operations()
    }

    /// Lives until the power goes.
    fn until_the_cut(&self, disk: SimDisk) -> Run {
        let mut run = self.on(disk);
        for step in &self.script {
            if run.step(step).is_err() {
                break;
            }
        }
        assert!(run.disk.is_off(), "{}: the cut did not come", self.name);
        run.log = None;
        run
    }

    /// Lives; a step that fails is done again, after a reopening where the log asks for it. Says
    /// whether any failed.
    fn survive(&self, disk: SimDisk, fault: Fault, when: &str) -> bool {
        let mut run = self.on(disk);
        let mut has_failed = false;
        for (number, step) in self.script.iter().enumerate() {
            let when = format!("{}, {when}, step {number} {step:?}", self.name);
            match fault {
                Fault::NoFiles { step, count_max } if step == number => {
                    run.disk.limit_open_files(count_max);
                }
                _ => {}
            }
            let before = run.model.clone();
            for attempt in 0..4 {
                let Err(error) = run.step(step) else { break };
                has_failed = true;
                assert!(attempt < 3, "{when}: {error}");
                // What lasts is met a second time before it is mended.
                if attempt > 0 || matches!(fault, Fault::Once) {
                    run.disk.mend();
                    recover(&mut run, step, &before, fault, &when);
                }
            }
            if matches!(fault, Fault::NoFiles { .. }) {
                run.disk.mend();
            }
        }
        run.check_same(when);
        run.log.take().expect("a log").close().unwrap_or_else(|error| panic!("{when}: {error}"));
        run.check_files(when);
        has_failed
    }
}

/// After a step that failed: the log is as it was, or says that it must be opened again.
fn recover(run: &mut Run, step: &Step, before: &Model, fault: Fault, when: &str) {
    let must_open = run.log.as_ref().is_none_or(Log::is_failed);
    let is_cut = matches!(step, Step::Truncate(_) | Step::StartAt(_));
    if must_open {
        let is_lasting = !matches!(fault, Fault::Once);
        let may_fail = run.log.is_none() || is_cut || is_lasting || when.contains("sync");
        assert!(may_fail, "{when}: the log must be opened again");
        run.log = None;
        run.is_clean = false;
        run.open().unwrap_or_else(|error| panic!("{when}: {error}"));
    }
    run.check_survived(when);
    let content = run.content();
    let start = run.log().log_start_offset().max(run.log().local_log_start_offset());
    let is_there = |wanted: &Content| {
        wanted
            .iter()
            .filter(|(_, bytes)| next_offset(bytes) > start)
            .all(|(base, bytes)| content.get(base) == Some(bytes))
    };
    let cut = match step {
        Step::Truncate(to) => {
            before.now.clone().into_iter().filter(|(_, bytes)| next_offset(bytes) <= *to).collect()
        }
        _ => Content::new(),
    };
    let is_known = match run.model.end > before.end {
        true => is_there(&run.model.now),
        // As after a crash in the middle of it, which is looked at above.
        false if is_cut && must_open => true,
        // The log end may lie between the two until the cut is brought to its end.
        false if is_cut => {
            is_there(&cut) && content.iter().all(|(b, bytes)| before.now.get(b) == Some(bytes))
        }
        false => is_there(&before.now),
    };
    assert!(is_known, "{when}: {:?}, not {:?}", offsets(&content), offsets(&before.now));
    // What is there is what the script goes on with.
    run.model.end = run.log().log_end_offset();
    run.model.states.push(content.clone());
    run.model.now = content;
    run.model.start = run.model.start.max(run.log().log_start_offset());
    run.model.local_start = run.log().local_log_start_offset();
    run.model.sequences.clone_from(&before.sequences);
    let end = run.model.end;
    run.log().update_high_watermark(end).unwrap_or_else(|error| panic!("{when}: {error}"));
}

#[test]
fn a_life_without_faults_leaves_a_sound_directory() {
    for life in lives() {
        let mut run = life.on(SimDisk::new());
        for step in &life.script {
            run.step(step).unwrap_or_else(|error| panic!("{}, {step:?}: {error}", life.name));
            run.check_same(&format!("{}, {step:?}", life.name));
        }
        run.log.take().expect("a log").close().expect("a clean stop");
        run.check_files(life.name);
        run.is_clean = true;
        run.open().expect("a log");
        run.check_same(&format!("{}, opened again", life.name));
    }
}

#[test]
fn every_operation_fails_once_and_the_log_goes_on() {
    for life in lives() {
        let failed = AtomicU32::new(0);
        let operations = life.operations();
        operations.par_iter().enumerate().for_each(|(number, operation)| {
            for errno in [EIO, ENOSPC, EMFILE, EACCES] {
                let disk = SimDisk::new();
                disk.fail_at(u64::try_from(number).unwrap(), errno);
                let when = format!("error {errno} at {number} ({operation})");
                let has_failed = life.survive(disk, Fault::Once, &when);
                failed.fetch_add(u32::from(has_failed), Ordering::Relaxed);
            }
        });
        assert!(failed.into_inner() > 100, "{}: few faults were told", life.name);
    }
}

#[test]
fn a_disk_that_takes_no_changes_for_a_while_leaves_no_half_batch() {
    for life in lives() {
        let operations = life.operations();
        operations.par_iter().enumerate().for_each(|(number, operation)| {
            if !operation.is_change {
                return;
            }
            for errno in [EIO, ENOSPC] {
                let disk = SimDisk::new();
                disk.fail_changes_from(u64::try_from(number).unwrap(), errno);
                let when = format!("error {errno} from {number} ({operation}) on");
                assert!(life.survive(disk, Fault::Lasting, &when), "{when}: not told");
            }
        });
    }
}

#[test]
fn a_log_goes_on_once_it_may_open_files_again() {
    for life in lives() {
        for step in 0..life.script.len() {
            for count_max in 0..4 {
                let when = format!("{count_max} files");
                life.survive(SimDisk::new(), Fault::NoFiles { step, count_max }, &when);
            }
        }
    }
}

#[test]
fn the_power_goes_at_every_operation_and_nothing_durable_is_lost() {
    for life in lives() {
        let operations = life.operations();
        operations.par_iter().enumerate().for_each(|(number, operation)| {
            if !operation.is_change {
                return;
            }
            let disk = SimDisk::new();
            disk.crash_at(u64::try_from(number).unwrap());
            let run = life.until_the_cut(disk);
            for seed in SEEDS {
                let when = format!("{}, cut at {number} ({operation}), seed {seed}", life.name);
                let mut left = run.after_crash(seed);
                left.open().unwrap_or_else(|error| panic!("{when}: {error}"));
                left.check_survived(&when);
                let log = left.log.take().expect("a log");
                log.close().unwrap_or_else(|error| panic!("{when}: {error}"));
                left.check_files(&when);
            }
        });
    }
}

/// A disk that lies about a sync, and a power cut later: the log may be shorter than was promised,
/// and is otherwise as it was at one time. Where the lie was about a cut, what was cut may be back
/// under what came after it: such a log is refused.
#[test]
fn a_lost_sync_costs_records_and_makes_up_none() {
    let refused = AtomicU32::new(0);
    for life in lives() {
        let operations = life.operations();
        let is_sync = |operation: &Operation| operation.to_string().contains("sync");
        let syncs = operations.iter().enumerate().filter(|(_, operation)| is_sync(operation));
        let mut losses: Vec<Option<usize>> = syncs.map(|(number, _)| Some(number)).collect();
        // All of them.
        losses.push(None);
        losses.par_iter().for_each(|lost| {
            let from = lost.map_or(0, |lost| lost + 1);
            // Soon after, and later.
            let cuts = (from..operations.len()).filter(|at| operations[*at].is_change);
            let near = |at: &usize| *at < from + 20 || (*at - from).is_multiple_of(17);
            for at in cuts.filter(near) {
                let disk = SimDisk::new();
                match lost {
                    Some(lost) => disk.lose_sync_at(u64::try_from(*lost).unwrap()),
                    None => disk.lose_syncs(),
                }
                disk.crash_at(u64::try_from(at).unwrap());
                let run = life.until_the_cut(disk);
                for seed in [0, 1, 3] {
                    let when = format!("{}, lost {lost:?}, cut at {at}, seed {seed}", life.name);
                    let is_open = go_on_after_a_lie(run.after_crash(seed), &when);
                    refused.fetch_add(u32::from(!is_open), Ordering::Relaxed);
                }
            }
        });
    }
    let refused = refused.into_inner();
    assert!(refused < 10, "{refused} logs were refused");
}

/// Says whether the log could be opened.
fn go_on_after_a_lie(mut left: Run, when: &str) -> bool {
    if let Err(error) = left.open() {
        assert_eq!(error.kind(), Kind::Corrupt, "{when}: {error}");
        assert!(error.to_string().contains("reaches into the next segment"), "{when}: {error}");
        return false;
    }
    left.check_part(when);
    left.go_on();
    left.step(&Step::Append { batches: 2, producer: 0, txn: false })
        .unwrap_or_else(|error| panic!("{when}: {error}"));
    // An index that a lost sync has covered is believed, as what is older than a flush is.
    left.check_content(when);
    true
}
