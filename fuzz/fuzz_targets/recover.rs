//! Recovery of a partition directory on the simulated disk: it ends, a second one finds nothing to
//! do, pieces side by side come to the same files as one walk, and an analysis alone changes
//! nothing.
#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use rayon::{ThreadPool, ThreadPoolBuilder};
use siltstone::io::SimDisk;
use siltstone::log::recover::{Plan, RecoverOptions, Silent, analyse, commit, prepare, retire};
use siltstone::log::{VerifyOptions, verify_partition};
use siltstone::problem::{Code, Severity};
use siltstone_fuzz::directory::Directory;

const DIR: &str = "/orders-0";

/// A split adds a segment each time, and a file of a few kilobytes has few places to split at.
const ROUNDS_MAX: usize = 200;

static POOL: LazyLock<ThreadPool> =
    LazyLock::new(|| ThreadPoolBuilder::new().num_threads(2).build().expect("two threads"));

fuzz_target!(|bytes: &[u8]| {
    let directory = Directory::decode(bytes);
    let disk = SimDisk::new();
    disk.put_dir(Path::new(DIR), None).expect("an empty disk");
    for (name, bytes) in directory.files {
        disk.put(&Path::new(DIR).join(name), bytes, None).expect("a name that is free");
    }
    let options = directory.options;
    let before = disk.snapshot(Path::new(DIR)).expect("the directory");
    let other = disk.fork();

    let dry = RecoverOptions { stage_bytes: None, ..options.clone() };
    analyse(&disk, Path::new(DIR), &dry, &Silent).expect("a disk without faults");
    let after = disk.snapshot(Path::new(DIR)).expect("the directory");
    assert_eq!(before.differences(&after), Vec::<String>::new(), "an analysis changed files");

    let plan = recover(&disk, &options);
    let after = disk.snapshot(Path::new(DIR)).expect("the directory");
    if plan.refusal.is_none() {
        if options.clean_shutdown {
            // As in a directory that has its marker again.
            retire(&disk, Path::new(DIR), &plan.retire).expect("no faults");
        }
        let again = analyse(&disk, Path::new(DIR), &options, &Silent).expect("no faults");
        assert!(again.refusal.is_none(), "refused the second time: {:?}", again.refusal);
        assert!(again.is_empty(), "left to do: {:?} {:?}", again.actions, again.cut);
        // Behind a clean stop what is right in itself is trusted.
        retire(&disk, Path::new(DIR), &plan.retire).expect("no faults");
        if options.all || !options.clean_shutdown && options.recovery_point == 0 {
            assert_small_files_are_right(&disk, &plan, &options);
        }
    }

    let pieces = RecoverOptions { piece_bytes: 300, parallel: 2, ..options };
    POOL.install(|| recover(&other, &pieces));
    let in_pieces = other.snapshot(Path::new(DIR)).expect("the directory");
    assert_eq!(after.differences(&in_pieces), Vec::<String>::new(), "pieces part from one walk");
});

/// Recovers until there is nothing left to split; gives the last plan.
fn recover(disk: &SimDisk, options: &RecoverOptions) -> Plan {
    for _ in 0..ROUNDS_MAX {
        let mut plan = analyse(disk, Path::new(DIR), options, &Silent).expect("no faults");
        prepare(disk, &mut plan).expect("no faults");
        commit(disk, &plan).expect("no faults");
        if plan.split.is_none() {
            return plan;
        }
    }
    panic!("recovery does not end");
}

/// What recovery can put right, a check does not find any more.
fn assert_small_files_are_right(disk: &SimDisk, plan: &Plan, told: &RecoverOptions) {
    let options = VerifyOptions {
        log_start_offset: Some(plan.outcome.log_start_offset),
        // Then epochs that begin behind a batch stay as they are.
        log_start_may_have_moved: true,
        now_ms: told.now_ms,
        producer_id_expiration_ms: told.producer_expiration_ms,
        max_decompressed_bytes: 1 << 20,
        ..VerifyOptions::default()
    };
    let report = verify_partition(disk, Path::new(DIR), &options).expect("no faults");
    // The epochs of batches that run backwards are in no file.
    let is_ordered = report.problems.iter().all(|problem| problem.code != Code::EpochOrder);
    let mut problems = report.problems.iter();
    let left = problems.find(|problem| {
        let is_told = problem.code != Code::EpochMismatch || is_ordered;
        problem.severity == Severity::Repairable && is_told
    });
    assert!(left.is_none(), "after recovery: {left:?}");
}
