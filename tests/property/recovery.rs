//! Recovery of one partition, step by step.

use std::path::Path;

use siltstone::io::Storage;
use siltstone::log::recover::{Plan, RecoverOptions, Silent, analyse, commit, prepare};

use crate::logs::DIR;

/// More segments than any log here can be split into.
const ROUNDS_MAX: usize = 100;

/// Recovers until nothing is left to be split. Gives what was planned each time, in full, and the
/// last plan.
pub fn recover(disk: &dyn Storage, options: &RecoverOptions) -> (Vec<String>, Plan) {
    let mut told = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let mut plan = analyse(disk, Path::new(DIR), options, &Silent).expect("no faults");
        told.push(format!("{plan:#?}"));
        prepare(disk, &mut plan).expect("no faults");
        commit(disk, &plan).expect("no faults");
        if plan.split.is_none() {
            return (told, plan);
        }
    }
    panic!("recovery does not end: {}", told.concat());
}
