//! What is given on the command line, and is not what the verb needs.

use std::ffi::OsStr;
use std::fs;

use siltstone::io::{Disk, Storage};
use siltstone_tests::file_sums;
use siltstone_tests::kits::Kit;
use siltstone_tests::logs::LogBuilder;
use siltstone_tests::tool::{Outcome, run};

use crate::reading::{lines, of_type};

fn assert_unwanted(outcome: &Outcome, why: &str) {
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains(why), "{why}: {outcome:?}");
}

#[test]
fn a_directory_that_is_given_twice_is_looked_at_once() {
    // Every partition of it was told to stand in several log directories.
    let root = tempfile::tempdir().expect("a directory");
    let (dir, link) = (root.path().join("a"), root.path().join("link"));
    for name in ["orders-0", "orders-1"] {
        LogBuilder::new().batch(3).write_into(&dir.join(name));
    }
    assert_eq!(run([OsStr::new("recover"), dir.as_os_str()]).code, Some(0));
    std::os::unix::fs::symlink(&dir, &link).expect("a link");
    let again = [dir.clone(), dir.join("."), link, dir.join("orders-1")];
    for verb in ["verify", "recover", "ls", "stat", "txns", "plan-uploads"] {
        for other in &again {
            let (found, outcome) = lines(verb, &[&dir, other]);
            let told = format!("{verb} {}: {outcome:?}", other.display());
            assert_eq!(of_type(&found, "partition").len(), 2, "{told}");
            assert_eq!(outcome.code, Some(0), "{told}");
            assert!(outcome.stderr.contains("left out"), "{told}");
        }
    }
}

#[test]
fn replicas_are_rebuilt_in_log_directories_only() {
    // A partition, or any folder, was taken for a log directory and written into.
    let unpacked = Kit::open("tiered").state("clean").unpack();
    let data = unpacked.data();
    let empty = tempfile::tempdir().expect("a directory");
    let remote = tempfile::tempdir().expect("a directory");
    let before = file_sums(unpacked.root());
    for (dir, why) in [
        (data.join("tier-a-0"), "no log directory"),
        (data.join("meta.properties"), "no log directory"),
        (empty.path().to_path_buf(), "neither a partition directory nor a log directory"),
        (data.join("gone"), "No such file"),
    ] {
        for named in [&["--partition", "tier-b-0"][..], &[], &["--dry-run"]] {
            if dir == empty.path() && named.len() == 2 {
                // The directory of a new disk is empty.
                continue;
            }
            let verb = ["rebuild-aux", "--remote"].map(OsStr::new);
            let places = [remote.path().as_os_str(), dir.as_os_str()];
            let named = named.iter().map(OsStr::new);
            assert_unwanted(&run(verb.into_iter().chain(places).chain(named)), why);
        }
    }
    assert_eq!(file_sums(unpacked.root()), before);
    assert_eq!(fs::read_dir(empty.path()).expect("a directory").count(), 0);
}

#[test]
fn what_is_right_for_one_partition_is_taken_for_one_only() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path();
    LogBuilder::new().batch(3).write_into(&dir.join("orders-0"));
    let verify = |option: &str, value: &str| {
        let verb = ["verify", "--json", option, value].map(OsStr::new);
        run(verb.into_iter().chain([dir.as_os_str()]))
    };
    let options = [("--topic-id", "KhrFBVCXRj-kNEnYK4ZyLw"), ("--log-start-offset", "2")];
    for (option, value) in options {
        assert_eq!(verify(option, value).code, Some(1), "{option}");
    }
    LogBuilder::new().batch(3).write_into(&dir.join("orders-1"));
    for (option, value) in options {
        let outcome = verify(option, value);
        assert_unwanted(&outcome, &format!("{option} is for one partition"));
        assert_eq!(outcome.stdout, "", "{option}");
    }
}

#[test]
fn a_negative_number_is_told_to_be_out_of_range() {
    // The tip was to write it behind `--`, where it is taken for a path.
    for arguments in [
        &["verify", "--log-start-offset"][..],
        &["verify", "--threads"],
        &["verify", "--now-ms"],
        &["recover", "--truncate-to"],
        &["recover", "--recovery-point"],
        &["recover", "--now-ms"],
        &["diff", "--from"],
        &["stat", "--threads"],
        &["txns", "--max-timeout-ms"],
        &["rebuild-aux", "--start-offset"],
        &["plan-uploads", "--high-watermark"],
    ] {
        let all = arguments.iter().copied().chain(["-5", "/", "/"]);
        assert_unwanted(&run(all), "-5 is not in ");
    }
}

#[test]
fn a_file_that_is_not_checked_is_named_with_its_directory() {
    let unpacked = Kit::open("tiered").state("clean").unpack();
    let file = unpacked.data().join("bootstrap.checkpoint");
    let outcome = run([OsStr::new("verify"), file.as_os_str()]);
    assert_unwanted(&outcome, &format!("{}: no file of a Kafka log", file.display()));
}

#[test]
fn a_dry_run_points_out_a_running_broker() {
    // `recover --dry-run` listed the growing end of a log as a cut, and said nothing else.
    let root = tempfile::tempdir().expect("a directory");
    let partition = root.path().join("orders-0");
    LogBuilder::new().batch(3).write_into(&partition);
    let _held = Disk::new().lock(&root.path().join(".lock")).expect("the lock");
    for path in [root.path(), &partition] {
        let outcome = run(["recover".as_ref(), "--dry-run".as_ref(), path.as_os_str()]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert!(outcome.stderr.contains("a running broker holds"), "{outcome:?}");
    }
}
