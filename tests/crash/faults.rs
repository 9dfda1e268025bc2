//! Every operation fails once, in every way that a disk has: the error is told, nothing is lost,
//! and the next run ends it.

use std::path::Path;

use siltstone::io::SimDisk;

use crate::cuts::{Ends, same};
use crate::scenario::{LOGS, Run, Scenario, tree};

const EACCES: i32 = 13;
const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
/// Files that one thread may hold open at once.
const OPEN_FILES_MAX: usize = 4;

/// Lets every operation fail.
pub fn check(scenario: &Scenario) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let ends = Ends::of(scenario);
    let disk = scenario.disk.fork();
    scenario.succeed(&disk, "without a fault");
    assert!(disk.open_files_peak() <= OPEN_FILES_MAX, "{} files open", disk.open_files_peak());
    let operations = disk.operations();
    let (mut failed, mut absorbed) = (0, 0);
    for (number, operation) in (0..).zip(&operations) {
        let errnos = [EIO, ENOSPC, EMFILE, EACCES];
        for &errno in if scenario.is_long { &errnos[..1] } else { &errnos } {
            let disk = scenario.disk.fork();
            disk.fail_at(number, errno);
            let run = scenario.run(&disk);
            let when = format!("error {errno} at {number} ({operation})");
            if run.faults().is_empty() {
                same(&tree(&disk), &ends.uncut, &format!("{when}, not reported"));
                absorbed += 1;
            } else {
                let is_told = run.faults().iter().any(|fault| fault.errno == Some(errno));
                assert!(is_told, "{when}: {run:?}");
                check_others(&ends, &disk, &run, &when);
            }
            check_next_run(scenario, &ends, &disk, &when);
        }
        failed += 1;
        if operation.is_change {
            check_full_disk(scenario, &ends, number, &format!("{number} ({operation})"));
            check_lost_sync(scenario, &ends, number, &format!("{number} ({operation})"));
        }
    }
    println!(
        "{name}: an uncut run has {} operations, {failed} failed; {absorbed} faults did not matter",
        operations.len()
    );
    assert_eq!(operations.len(), failed);
}

/// What did not fail is done.
fn check_others(ends: &Ends, disk: &SimDisk, run: &Run, when: &str) {
    if run.report.is_err() {
        return;
    }
    let (got, root) = (tree(disk), Path::new("/"));
    for (path, entry) in &ends.uncut.entries {
        let path = root.join(path);
        let is_of_partition =
            path.strip_prefix(LOGS).is_ok_and(|path| path.components().count() > 1);
        let is_failed = run.failed.keys().any(|dir| path.starts_with(dir));
        if is_of_partition && !is_failed {
            let below = path.strip_prefix(root).expect("a path from the root");
            assert!(
                got.entries.get(below) == Some(entry),
                "{when}: {} is not done",
                path.display()
            );
        }
    }
}

fn check_next_run(scenario: &Scenario, ends: &Ends, disk: &SimDisk, when: &str) {
    ends.check_left(disk, when);
    let again = disk.fork();
    let wanted = ends.wanted(&tree(&again));
    scenario.succeed(&again, when);
    same(&tree(&again), wanted, &format!("{when}, then again"));
    for seed in [0, 1, 6] {
        let when = format!("{when}, then a cut with seed {seed}");
        let left = disk.after_crash(seed);
        ends.check_left(&left, &when);
        let wanted = ends.wanted(&tree(&left));
        scenario.succeed(&left, &when);
        same(&tree(&left), wanted, &when);
    }
}

/// Nothing can be written any more.
fn check_full_disk(scenario: &Scenario, ends: &Ends, number: u64, what: &str) {
    for errno in [ENOSPC, EROFS] {
        let disk = scenario.disk.fork();
        disk.fail_changes_from(number, errno);
        let run = scenario.run(&disk);
        let when = format!("error {errno} from {what} on");
        let is_told = run.faults().iter().any(|fault| fault.errno == Some(errno));
        assert!(is_told, "{when}: {run:?}");
        check_next_run(scenario, ends, &disk, &when);
    }
}

/// A disk that lies about a sync: the end is the same as long as the power stays.
fn check_lost_sync(scenario: &Scenario, ends: &Ends, number: u64, what: &str) {
    let disk = scenario.disk.fork();
    disk.lose_sync_at(number);
    let when = format!("lost sync at {what}");
    scenario.succeed(&disk, &when);
    same(&tree(&disk), &ends.uncut, &when);
}
