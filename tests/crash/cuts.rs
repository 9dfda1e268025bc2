//! The power goes at every operation, once and twice.

use std::path::{Path, PathBuf};

use siltstone::io::SimDisk;
use siltstone::io::sim::Snapshot;

use crate::scenario::{Scenario, bytes, has_marker, marker, settled_tree, tree};

/// What the power cut spares: the extremes, and mixtures.
const SEEDS: [u64; 8] = [0, 5, 2, 1, 3, 4, 6, 7];
/// The second cuts, and what they spare.
const SECOND_SEEDS: [u64; 2] = [0, 9];

/// The trees that a scenario may end in.
pub struct Ends {
    pub before: Snapshot,
    /// From the directory as it is.
    pub uncut: Snapshot,
    /// From the directory without its clean marker.
    pub without_marker: Snapshot,
    /// Whether the marker is none of the recovery's, which does one partition alone.
    is_alone: bool,
}

impl Ends {
    pub fn of(scenario: &Scenario) -> Self {
        let disk = scenario.disk.fork();
        scenario.recover_whole(&disk);
        let ends = Ends {
            before: tree(&scenario.disk),
            uncut: tree(&disk),
            without_marker: scenario.end_without_marker(),
            is_alone: scenario.alone.is_some(),
        };
        for seed in SEEDS {
            let left = tree(&disk.after_crash(seed));
            same(&left, &ends.uncut, &format!("uncut, then a cut with seed {seed}"));
        }
        ends
    }

    /// The end that must come of what is left: a directory that has its marker no more was not
    /// stopped cleanly.
    pub fn wanted(&self, left: &Snapshot) -> &Snapshot {
        let has_its_marker = has_marker(left) && marker(left) == marker(&self.before);
        if has_its_marker { &self.uncut } else { &self.without_marker }
    }

    /// What must hold at any moment: no marker beside unfinished work, and nothing lost.
    pub fn check_left(&self, left: &SimDisk, when: &str) {
        let left = settled_tree(left);
        if has_marker(&left) && !self.is_alone {
            let is_as_before = has_marker(&self.before) && is_beside(&left, &self.before);
            let done = self.retired(&left);
            let is_done = is_beside(&done, &self.uncut) || is_beside(&done, &self.without_marker);
            assert!(
                is_as_before || is_done,
                "{when}: a marker beside unfinished work:\n{}",
                left.differences(&self.uncut).join("\n")
            );
        }
        self.check_nothing_lost(&left, when);
    }

    /// What is left, without the snapshots at the start of a log: a recovery that begins anew needs
    /// them, so they go last, and Kafka, which does not, removes them, too.
    fn retired(&self, left: &Snapshot) -> Snapshot {
        let mut left = left.clone();
        let names: Vec<&PathBuf> = self.uncut.entries.keys().collect();
        let first_log = |dir: &Path| {
            let logs = names.iter().filter(|path| path.extension().is_some_and(|end| end == "log"));
            logs.filter(|path| path.parent() == Some(dir)).filter_map(|path| path.file_stem()).min()
        };
        left.entries.retain(|path, _| {
            let is_snapshot = path.extension().is_some_and(|end| end == "snapshot");
            let is_of_the_start = path.parent().and_then(first_log) >= path.file_stem();
            !is_snapshot || !is_of_the_start || self.uncut.entries.contains_key(path)
        });
        left
    }

    /// Kept bytes are whole, are there before the log is cut, and are never overwritten.
    pub fn check_nothing_lost(&self, left: &Snapshot, when: &str) {
        for (path, entry) in &left.entries {
            if is_lost(path) {
                let is_whole = self.uncut.entries.get(path) == Some(entry);
                assert!(is_whole, "{when}: {} is half or overwritten", path.display());
            }
        }
        for path in self.uncut.entries.keys().filter(|path| is_lost(path)) {
            if self.before.entries.contains_key(path) {
                assert!(left.entries.contains_key(path), "{when}: {} went away", path.display());
                continue;
            }
            let log = log_of(path);
            let is_uncut = bytes(left, &log)
                .is_some_and(|now| bytes(&self.before, &log).is_some_and(|before| now == before));
            let is_kept = left.entries.contains_key(path);
            assert!(is_uncut || is_kept, "{when}: {} is cut, and not kept", log.display());
        }
    }
}

/// Cuts at every operation, with every seed, and cuts the second recovery, too.
pub fn check(scenario: &Scenario) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    let ends = Ends::of(scenario);
    let disk = scenario.disk.fork();
    scenario.succeed(&disk, "uncut");
    let operations = disk.operations();
    let mut cut_at = 0;
    for (number, operation) in (0..).zip(&operations) {
        let disk = scenario.disk.fork();
        disk.crash_at(number);
        scenario.run(&disk);
        assert!(disk.is_off(), "operation {number} did not come");
        cut_at += 1;
        let when = format!("cut at {number} ({operation})");
        check_killed(scenario, &ends, &disk, &when);
        if !operation.is_change && number > 0 && !operations[at(number) - 1].is_change {
            // It leaves what the cut before it left.
            continue;
        }
        for &seed in if scenario.is_long { &SEEDS[..3] } else { &SEEDS } {
            let when = format!("{when} with seed {seed}");
            let left = disk.after_crash(seed);
            check_left(scenario, &ends, &left, &when);
            if seed < 6 {
                check_second_cut(scenario, &ends, &left, number ^ seed, &when);
            }
        }
    }
    println!("{name}: an uncut run has {} operations, cut at {cut_at}", operations.len());
    assert_eq!(operations.len(), cut_at);
}

fn check_left(scenario: &Scenario, ends: &Ends, left: &SimDisk, when: &str) {
    ends.check_left(left, when);
    let wanted = ends.wanted(&tree(left));
    let again = left.fork();
    scenario.succeed(&again, when);
    same(&tree(&again), wanted, when);
}

/// A killed process leaves what was seen, and a later power cut may still lose it.
fn check_killed(scenario: &Scenario, ends: &Ends, disk: &SimDisk, when: &str) {
    let when = format!("{when}, killed");
    let again = disk.fork();
    let wanted = ends.wanted(&tree(&again));
    scenario.succeed(&again, &when);
    same(&tree(&again), wanted, &when);
    for seed in [0, 2, 5] {
        let left = tree(&again.after_crash(seed));
        same(&left, wanted, &format!("{when}, recovered, then cut with seed {seed}"));
    }
}

/// The second recovery is cut at a few places, and the third must end it.
fn check_second_cut(scenario: &Scenario, ends: &Ends, left: &SimDisk, salt: u64, when: &str) {
    let uncut = left.fork();
    scenario.run(&uncut);
    let changes = uncut.change_count();
    if changes == 0 {
        return;
    }
    let rounds = if scenario.is_long { 1 } else { SECOND_SEEDS.len() };
    for (round, &seed) in (0_u64..).zip(&SECOND_SEEDS[..rounds]) {
        let number =
            (salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).wrapping_add(round * 7) % changes;
        let disk = left.fork();
        disk.crash_at_change(number);
        scenario.run(&disk);
        let when = format!("{when}, and again at change {number} with seed {seed}");
        check_left(scenario, ends, &disk.after_crash(seed), &when);
    }
}

pub fn same(got: &Snapshot, wanted: &Snapshot, when: &str) {
    let lines = got.differences(wanted);
    assert!(
        lines.is_empty(),
        "{when}: the tree is not that of an uncut run:\n{}",
        lines.join("\n")
    );
}

/// Whether a tree is that of `whole`, but for files that are not yet in place.
fn is_beside(left: &Snapshot, whole: &Snapshot) -> bool {
    let mut whole = whole.clone();
    whole.entries.retain(|path, _| {
        let name = path.to_string_lossy();
        !name.ends_with(".tmp") && !name.ends_with(".lock")
    });
    left == &whole
}

fn is_lost(path: &Path) -> bool {
    path.to_string_lossy().contains(".log.lost") && !path.to_string_lossy().ends_with(".tmp")
}

/// The log whose bytes a `.log.lost` file keeps.
fn log_of(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    let stem = text.split(".lost").next().unwrap_or_default();
    PathBuf::from(stem)
}

fn at(number: u64) -> usize {
    usize::try_from(number).expect("a number of operations")
}
