//! What keeps Kafka from starting is told by every verb that looks at whole log directories, and
//! `recover` promises no start beside it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use siltstone_tests::logs::LogBuilder;
use siltstone_tests::tool::{Outcome, run};

use crate::has_clean_marker;
use crate::reading::{lines, of_type};

const PROMISE: &str = "Kafka starts as after a clean stop";

fn run_on<'a>(verb: &'a [&'a str], paths: &'a [PathBuf]) -> Outcome {
    let verb = verb.iter().map(OsStr::new);
    run(verb.chain(paths.iter().map(|path| path.as_os_str())))
}

/// A log directory in `root` with one sound partition.
fn log_dir(root: &Path, name: &str) -> PathBuf {
    let dir = root.join(name);
    LogBuilder::new().batch(3).write_into(&dir.join("orders-0"));
    fs::write(dir.join("meta.properties"), "version=1\ncluster.id=c\nnode.id=1\n").expect("a file");
    dir
}

#[test]
fn nothing_is_promised_where_kafka_does_not_start() {
    // It promised a start, and ended with 0, beside all of these but the folders.
    type Spoil = fn(&Path);
    let spoils: [(&str, Spoil); 5] = [
        ("in several log directories", |root| drop(log_dir(root, "b"))),
        ("meta.properties", |root| {
            fs::write(root.join("a/meta.properties"), "version=7\n").expect("a file");
        }),
        ("lost+found", |root| fs::create_dir(root.join("a/lost+found")).expect("a folder")),
        ("-1", |root| fs::create_dir(root.join("a/-1")).expect("a folder")),
        // Bytes that are no UTF-8 were read as if they were.
        ("x\u{fffd}-0", |root| {
            fs::create_dir(root.join("a").join(OsStr::from_bytes(b"x\xfe-0"))).expect("a folder");
        }),
    ];
    for (told, spoil) in spoils {
        let root = tempfile::tempdir().expect("a directory");
        let first = log_dir(root.path(), "a");
        spoil(root.path());
        let second = root.path().join("b");
        let dirs: Vec<_> = [first, second].into_iter().filter(|dir| dir.exists()).collect();
        let verbs: [&[&str]; 4] = [&["verify"], &["ls"], &["recover", "--dry-run"], &["recover"]];
        for verb in verbs {
            let outcome = run_on(verb, &dirs);
            let said = format!("{}{}", outcome.stdout, outcome.stderr);
            assert_eq!(outcome.code, Some(1), "{verb:?} {told}: {outcome:?}");
            assert!(said.contains(told) && !said.contains(PROMISE), "{verb:?}: {outcome:?}");
        }
        // The partitions themselves are sound.
        assert!(dirs.iter().all(|dir| has_clean_marker(dir)), "{told}");
        let (lines, _) = lines("recover", &dirs);
        for dir in of_type(&lines, "log_dir") {
            assert_eq!((&dir["is_clean"], &dir["sound"]), (&true.into(), &1.into()), "{dir}");
            assert_eq!(dir["problems"].as_array().map(Vec::len), Some(1), "{dir}");
        }
    }
}

#[test]
fn a_start_is_promised_where_nothing_stands_against_it() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = [log_dir(root.path(), "a")];
    fs::create_dir(dir[0].join("remote-log-index-cache")).expect("a folder");
    let outcome = run_on(&["recover"], &dir);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains(PROMISE), "{outcome:?}");
    // A partition that is named by itself said nothing at all.
    let outcome = run_on(&["recover"], &[dir[0].join("orders-0")]);
    assert_eq!(outcome.stdout, "orders-0: is sound, nothing to do\n", "{outcome:?}");
}

#[test]
fn a_file_alone_is_judged_as_in_its_directory() {
    // The same meta.properties was repairable alone and corrupt in its directory.
    let root = tempfile::tempdir().expect("a directory");
    let dir = log_dir(root.path(), "a");
    fs::write(dir.join("meta.properties"), "version=7\n").expect("a file");
    fs::write(dir.join("log-start-offset-checkpoint"), "x\n").expect("a file");
    let (in_dir, _) = lines("verify", &[&dir]);
    for (name, severity) in
        [("meta.properties", "corrupt"), ("log-start-offset-checkpoint", "repairable")]
    {
        let (alone, _) = lines("verify", &[dir.join(name)]);
        let problems = in_dir[0]["problems"].as_array().expect("problems");
        let there = problems.iter().find(|problem| problem["file"] == name);
        assert_eq!(there.expect(name)["severity"], severity, "{name}");
        assert_eq!(alone[0]["problems"][0]["severity"], severity, "{name}");
    }
}
