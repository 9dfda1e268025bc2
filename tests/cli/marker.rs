//! The marker of a clean stop stands beside sound partitions only, and leaves no recovered log
//! that ends sooner than it says.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use siltstone::state::ReplayState;
use siltstone_tests::logs::LogBuilder;
use siltstone_tests::tool::{Outcome, run};

use crate::has_clean_marker;

/// A log directory with its marker and one partition, whose log ends within a batch.
fn torn_behind_a_clean_stop() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join(".kafka_cleanshutdown"), br#"{"version":0,"brokerEpoch":42}"#)
        .expect("the marker");
    let partition = directory.path().join("orders-0");
    LogBuilder::new().batch(3).batch(2).tear(1).write_into(&partition);
    (directory, partition)
}

fn recover(path: &Path) -> Outcome {
    run(["recover".as_ref(), "--json".as_ref(), "--all".as_ref(), path.as_os_str()])
}

#[test]
fn one_partition_is_not_cut_beside_the_marker_of_its_directory() {
    // It was cut and the marker stayed: Kafka would have taken the log for complete.
    let (directory, partition) = torn_behind_a_clean_stop();
    let log = partition.join("00000000000000000000.log");
    let before = fs::read(&log).expect("the log");
    let outcome = recover(&partition);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(outcome.json()["refusal"]["code"], "clean_marker", "{outcome:?}");
    assert_eq!(fs::read(&log).expect("the log"), before);
    assert_eq!(fs::read_dir(&partition).expect("the partition").count(), 1, "files were left");
    assert!(has_clean_marker(directory.path()));

    let outcome = recover(directory.path());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(fs::read(&log).expect("the log").len() < before.len());
    let marker = fs::read_to_string(directory.path().join(".kafka_cleanshutdown"));
    assert!(marker.expect("the marker").contains("-1"), "the marker still claims the old epoch");
}

#[test]
fn who_asks_for_a_cut_beside_the_marker_is_told_what_helps() {
    // It was to recover the whole directory, for which no offset can be given.
    let (_directory, partition) = torn_behind_a_clean_stop();
    let told = |more: &[&str]| {
        let verb = ["recover", "--json"].into_iter().chain(more.iter().copied());
        let outcome = run(verb.map(OsStr::new).chain([partition.as_os_str()]));
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        outcome.json()["refusal"]["reason"].as_str().expect("a reason").to_owned()
    };
    let (asked, found) = (told(&["--truncate-to", "0"]), told(&["--all"]));
    assert!(asked.ends_with("complete. Remove the marker first"), "{asked}");
    assert!(found.ends_with("Recover the whole directory, or remove the marker first"), "{found}");
}

#[test]
fn there_is_no_marker_beside_a_partition_that_could_not_be_read() {
    let (directory, partition) = torn_behind_a_clean_stop();
    fs::create_dir(partition.join("leader-epoch-checkpoint")).expect("a folder in its place");
    let outcome = recover(directory.path());
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    assert!(!has_clean_marker(directory.path()), "{outcome:?}");
}

#[test]
fn a_partition_that_is_refused_beside_the_marker_keeps_every_file() {
    // The snapshot before the first segment was unlinked although the partition was refused.
    let (_directory, partition) = torn_behind_a_clean_stop();
    fs::remove_dir_all(&partition).expect("an empty place");
    LogBuilder::starting_at(3).batch(3).batch(2).tear(1).write_into(&partition);
    let snapshot = partition.join("00000000000000000002.snapshot");
    fs::write(&snapshot, ReplayState::new().snapshot()).expect("a snapshot");
    let outcome = recover(&partition);
    assert_eq!(outcome.json()["refusal"]["code"], "clean_marker", "{outcome:?}");
    assert!(snapshot.exists(), "the snapshot is gone");
    assert_eq!(fs::read_dir(&partition).expect("the partition").count(), 2, "files were left");
}
