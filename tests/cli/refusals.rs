//! What `recover` refuses before it has written anything, and how it ends when nobody reads.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use siltstone_tests::logs::LogBuilder;
use siltstone_tests::tool::{Outcome, run, siltstone};

use crate::has_clean_marker;

/// A log directory of a killed broker with one partition, whose last batch is torn.
fn killed() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let partition = directory.path().join("orders-0");
    LogBuilder::new().batch(3).batch(2).tear(1).write_into(&partition);
    (directory, partition)
}

fn recover<A: AsRef<OsStr>>(arguments: &[A]) -> Outcome {
    let verb = [OsStr::new("recover"), OsStr::new("--json")];
    run(verb.into_iter().chain(arguments.iter().map(AsRef::as_ref)))
}

/// Everything in a directory, by name, with what the files hold.
fn content(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(content(&path));
        } else {
            found.push((path.clone(), fs::read(&path).expect("a file")));
        }
    }
    found.sort();
    found
}

fn assert_refused(outcome: &Outcome, why: &str, (dir, before): (&Path, &[(PathBuf, Vec<u8>)])) {
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains(why), "{outcome:?}");
    // The lock file is made on the way.
    let mut now = content(dir);
    now.retain(|(path, _)| !path.ends_with(".lock"));
    assert_eq!(now, before);
}

#[test]
fn settings_that_are_none_are_told_before_anything_is_written() {
    // The directory was recovered with default settings and got its marker first.
    let (directory, _) = killed();
    let before = content(directory.path());
    let path = directory.path().to_string_lossy().into_owned();
    for (setting, why) in [
        (
            "index.interval.bytes=4k",
            "--config: index.interval.bytes in the given settings is \"4k\"",
        ),
        ("producer.id.expiration.ms=never", "--config: producer.id.expiration.ms in"),
        ("nope=1", "--config: nope: there is no setting of this name"),
    ] {
        let outcome = recover(&["--config", setting, &path]);
        assert_refused(&outcome, why, (directory.path(), &before));
    }
    assert_eq!(recover(&[&path]).code, Some(0));
    assert!(has_clean_marker(directory.path()));
}

#[test]
fn nothing_is_moved_into_the_log_directory_itself() {
    let (directory, _) = killed();
    let before = content(directory.path());
    let inside = directory.path().join("refused");
    for quarantine in [&inside, directory.path()] {
        let arguments =
            [OsStr::new("--quarantine"), quarantine.as_ref(), directory.path().as_ref()];
        assert_refused(&recover(&arguments), "--quarantine", (directory.path(), &before));
    }
}

#[test]
fn the_metadata_log_is_never_recovered() {
    let directory = tempfile::tempdir().expect("a directory");
    let partition = directory.path().join("__cluster_metadata-0");
    LogBuilder::new().batch(3).tear(1).write_into(&partition);
    let before = content(directory.path());
    assert_refused(&recover(&[&partition]), "never written", (directory.path(), &before));
}

#[test]
fn a_partition_is_not_recovered_by_a_link_to_it() {
    // The broker's lock lies beside what the link points to.
    let (directory, partition) = killed();
    let before = content(directory.path());
    let elsewhere = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join(".lock"), []).expect("a lock");
    let link = elsewhere.path().join("orders-0");
    std::os::unix::fs::symlink(&partition, &link).expect("a link");
    let outcome = recover(&[&link]);
    assert_refused(&outcome, "a symbolic link into", (directory.path(), &before));
    assert_eq!(recover(&[OsStr::new("--dry-run"), link.as_ref()]).code, Some(0));
    assert_eq!(recover(&[&partition]).code, Some(0));
}

#[test]
fn a_partition_alone_is_moved_from_no_directory_that_was_stopped_cleanly() {
    let directory = tempfile::tempdir().expect("a directory");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let partition = directory.path().join("orders-0");
    LogBuilder::new().batch(3).write_into(&partition);
    // It cannot be understood.
    fs::write(partition.join("partition.metadata"), "version: 9\n").expect("a file");
    let quarantine = elsewhere.path().join("refused");
    let arguments = [OsStr::new("--quarantine"), quarantine.as_ref(), partition.as_ref()];
    fs::write(directory.path().join(".kafka_cleanshutdown"), r#"{"version":0,"brokerEpoch":4}"#)
        .expect("the marker");
    let before = content(directory.path());
    assert_refused(&recover(&arguments), "marker of a clean stop", (directory.path(), &before));
    fs::remove_file(directory.path().join(".kafka_cleanshutdown")).expect("no marker");
    let outcome = recover(&arguments);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.json()["result"], "quarantined", "{outcome:?}");
    assert!(!partition.exists() && quarantine.join("orders-0").exists());
}

#[test]
fn what_was_found_is_told_by_the_exit_though_nobody_reads_it() {
    let directory = tempfile::tempdir().expect("a directory");
    for number in 0..200 {
        let partition = directory.path().join(format!("orders-{number}"));
        let torn = number == 199;
        let log = LogBuilder::new().batch(3);
        let log = if torn { log.tear(1) } else { log };
        log.write_into(&partition);
    }
    for verb in ["verify", "recover"] {
        let mut command = Command::new(siltstone());
        // One partition of 200 is damaged, or left as it is.
        if verb == "recover" {
            let metadata = directory.path().join("orders-7/partition.metadata");
            fs::write(metadata, "version: 9\n").expect("a file");
        }
        let command = command.arg(verb).arg("--json").arg(directory.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect(verb);
        let mut byte = [0];
        child.stdout.take().expect("its output").read_exact(&mut byte).expect("a byte");
        assert_eq!(child.wait().expect(verb).code(), Some(1), "{verb}");
    }
}
