//! However the bytes are fetched, they are recovered to the same bytes: by io_uring or by plain
//! system calls, in windows or through maps.

use std::io::Write;
use std::sync::Mutex;

use proptest::prelude::*;
use siltstone::dir::recover::{
    DirRecoverOptions, PartitionDone, PartitionSettings, recover_log_dir,
};
use siltstone::io::map::guard_process;
use siltstone::io::{Counters, Disk, IoChoice, MapMode, RingDisk, Storage};
use siltstone::log::recover::Silent;
use siltstone_tests::file_sums;
use tempfile::TempDir;

use crate::logs::{Case, cases};
use crate::runner::check;

/// Values of up to this size make many segments large enough to be mapped.
const VALUE_BYTES: usize = 40_000;

/// What a recovery left, told and asked of the disk.
#[derive(Debug)]
struct Recovered {
    files: Vec<(String, u64, String)>,
    told: Vec<String>,
    counters: Counters,
}

impl Recovered {
    /// What came of a recovery, whichever way it went.
    fn outcome(&self) -> (&[(String, u64, String)], &[String]) {
        (&self.files, &self.told)
    }
}

/// A log directory with some partitions.
fn directories() -> impl Strategy<Value = Vec<Case>> {
    proptest::collection::vec(cases(VALUE_BYTES), 1..8)
}

fn recovered(partitions: &[Case], storage: &dyn Storage, map_mode: MapMode) -> Recovered {
    let dir = TempDir::with_prefix("siltstone-paths-").expect("a temporary directory");
    for (number, case) in partitions.iter().enumerate() {
        let folder = dir.path().join(format!("orders-{number}"));
        std::fs::create_dir(&folder).expect("a folder");
        for (name, bytes) in case.files() {
            std::fs::write(folder.join(name), bytes).expect("room on the disk");
        }
    }
    let told = Mutex::new(Vec::new());
    let root = dir.path().display().to_string();
    let done = |done: PartitionDone<'_>| {
        let text = format!("{:?} {:?}", done.dir, done.result);
        told.lock().expect("no panic").push(without_times(&text.replace(&root, "")));
    };
    let first = partitions.first().expect("a partition");
    let options = first.options();
    let (index, now_ms) = (options.index, options.now_ms);
    let settings = |_: &str| PartitionSettings { index, remote_storage: false };
    let options = DirRecoverOptions {
        allow_loss: first.allow_loss,
        discard_lost: first.discard_lost,
        producer_expiration_ms: options.producer_expiration_ms,
        map_mode,
        ..DirRecoverOptions::new(&settings, &done, now_ms)
    };
    recover_log_dir(storage, dir.path(), &options, &Silent).expect("a disk without faults");
    let files = file_sums(dir.path());
    let told = told.into_inner().expect("no panic");
    Recovered { files, told, counters: storage.counters() }
}

/// The two copies of a directory were not made in the same millisecond.
fn without_times(text: &str) -> String {
    let mut parts = text.split("modified_ms: ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[test]
fn io_uring_recovers_to_the_bytes_of_system_calls() {
    if let Err(error) = RingDisk::forced() {
        assert_ne!(IoChoice::from_env().ok(), Some(IoChoice::Uring), "{error}");
        // Past the capture of the test's output: nobody should take this for a test that ran.
        let _ = writeln!(std::io::stderr(), "NOT TESTED, io_uring beside system calls: {error}");
        return;
    }
    check(8, &directories(), |partitions| {
        let ring = RingDisk::forced().expect("a ring");
        let by_ring = recovered(&partitions, &ring, MapMode::Never);
        let by_calls = recovered(&partitions, &Disk::new(), MapMode::Never);
        let by_choice = recovered(&partitions, &RingDisk::auto(), MapMode::Never);
        assert_eq!(by_ring.outcome(), by_calls.outcome());
        assert_eq!(by_choice.outcome(), by_calls.outcome());
        // Each went its own way, and asked for the same.
        let (ring, calls) = (by_ring.counters, by_calls.counters);
        assert_eq!((calls.ring_submissions, calls.ring_completions), (0, 0));
        assert!(ring.ring_completions >= ring.reads + ring.writes, "{ring:?}");
        let asked = |it: Counters| (it.bytes_read, it.bytes_written, it.syncs);
        assert_eq!(asked(ring), asked(calls));
    });
}

#[test]
fn maps_recover_to_the_bytes_of_windows() {
    guard_process().expect("a guard against SIGBUS");
    let saved_bytes = Mutex::new(0);
    check(8, &directories(), |partitions| {
        let by_windows = recovered(&partitions, &Disk::new(), MapMode::Never);
        let by_maps = recovered(&partitions, &Disk::new(), MapMode::Always);
        assert_eq!(by_windows.outcome(), by_maps.outcome());
        let read = [&by_windows, &by_maps].map(|it| it.counters.bytes_read);
        *saved_bytes.lock().expect("no panic") += read[0] - read[1];
    });
    // What is mapped is not read, so less was.
    assert!(saved_bytes.into_inner().expect("no panic") > 0, "nothing was mapped");
}
