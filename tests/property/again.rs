//! A second recovery finds nothing to do and changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use siltstone::dir::recover::{
    DirRecoverOptions, PartitionDone, PartitionResult, PartitionSettings, recover_log_dir,
};
use siltstone::io::sim::Snapshot;
use siltstone::io::{SimDisk, Storage};
use siltstone::log::recover::{Silent, analyse};

use crate::logs::{Case, DIR, cases};
use crate::recovery::recover;
use crate::runner::check;

const LOGS: &str = "/logs";
const MARKER: &str = ".kafka_cleanshutdown";

fn tree(disk: &SimDisk) -> Snapshot {
    disk.snapshot(Path::new("/")).expect("a root")
}

#[test]
fn a_second_recovery_of_a_partition_has_nothing_to_do() {
    check(400, &cases(300), |case| {
        let disk = case.disk();
        let before = tree(&disk);
        let (told, plan) = recover(&disk, &case.options());
        let after = tree(&disk);
        if plan.refusal.is_some() && told.len() == 1 {
            assert_eq!(before.differences(&after), Vec::<String>::new(), "refused, but changed");
        }
        let again = analyse(&disk, Path::new(DIR), &case.options(), &Silent).expect("no faults");
        assert_eq!(again.refusal.is_some(), plan.refusal.is_some(), "{:?}", again.refusal);
        assert!(again.is_empty(), "left to do: {:?} {:?}", again.actions, again.cut);
        recover(&disk, &case.options());
        assert_eq!(after.differences(&tree(&disk)), Vec::<String>::new(), "changed again");
    });
}

/// What a recovery of the directory planned for its partition; `None` where it was refused.
fn recover_directory(disk: &SimDisk, case: &Case) -> Option<usize> {
    let told = Mutex::new(None);
    let done = |done: PartitionDone<'_>| {
        let left = match done.result {
            PartitionResult::Sound(plan) => {
                let is_cut = usize::from(plan.cut.is_some());
                Some(plan.actions.len() + is_cut)
            }
            PartitionResult::Refused(_) => None,
            other => panic!("{other:?}"),
        };
        *told.lock().expect("no panic") = Some(left);
    };
    let options = case.options();
    let (index, now_ms) = (options.index, options.now_ms);
    let settings = |_: &str| PartitionSettings { index, remote_storage: false };
    let options = DirRecoverOptions {
        allow_loss: case.allow_loss,
        discard_lost: case.discard_lost,
        producer_expiration_ms: options.producer_expiration_ms,
        ..DirRecoverOptions::new(&settings, &done, now_ms)
    };
    recover_log_dir(disk, Path::new(LOGS), &options, &Silent).expect("no faults");
    told.into_inner().expect("no panic").expect("one partition")
}

#[test]
fn a_second_recovery_of_a_log_directory_has_nothing_to_do() {
    check(200, &cases(300), |case| {
        let disk = case.disk();
        let is_refused = recover_directory(&disk, &case).is_none();
        let after = tree(&disk);
        let left = recover_directory(&disk, &case);
        assert_eq!(left, if is_refused { None } else { Some(0) }, "left to do");
        assert_eq!(after.differences(&tree(&disk)), Vec::<String>::new(), "changed again");
        if is_refused {
            return;
        }
        // The machine stops once more before Kafka has started.
        let marker: PathBuf = Path::new(LOGS).join(MARKER);
        disk.remove_file(&marker).expect("a clean marker");
        assert_eq!(recover_directory(&disk, &case), Some(0), "left to do without the marker");
        assert_eq!(after.differences(&tree(&disk)), Vec::<String>::new(), "changed without it");
    });
}
