//! How the command line behaves whatever the verb: help, bad arguments, missing paths, broken
//! pipes.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use siltstone::io::{Disk, Storage};
use siltstone_tests::kits::Kit;
use siltstone_tests::tool;

use crate::reading::lines;

const VERBS: [&str; 10] = [
    "verify",
    "recover",
    "rebuild-aux",
    "dump",
    "ls",
    "stat",
    "txns",
    "diff",
    "scenario",
    "plan-uploads",
];

#[test]
fn every_verb_explains_itself() {
    let all = tool::run(["--help"]);
    assert_eq!(all.code, Some(0));
    for verb in VERBS {
        assert!(all.stdout.contains(&format!("  {verb} ")), "{verb}");
        let help = tool::run([verb, "--help"]);
        assert_eq!(help.code, Some(0));
        for part in ["Usage: siltstone", "Examples:", "Exit codes:", "--json"] {
            assert!(help.stdout.contains(part), "{verb}: {part}");
        }
        let widest = help.stdout.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{verb}: {widest:?}");
    }
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let outcome = tool::run(["completions", shell]);
        assert_eq!(outcome.code, Some(0));
        for word in VERBS.iter().chain(&["--allow-loss", "--producer-id"]) {
            let option = word.trim_start_matches("--");
            assert!(outcome.stdout.contains(option), "{shell}: {word}");
        }
    }
}

#[test]
fn bad_arguments_are_could_not_look() {
    for arguments in [
        &["frobnicate"][..],
        &[],
        &["ls"],
        &["ls", "--frobnicate", "/"],
        &["dump", "--offsets", "9..3", "/"],
        &["dump", "--time", "yesterday", "/"],
        &["dump", "--key", "hex:0", "/"],
        &["diff", "/"],
        &["recover", "--config", "novalue", "/"],
        &["completions", "tcsh"],
    ] {
        let outcome = tool::run(arguments);
        assert_eq!(outcome.code, Some(2), "{arguments:?}: {outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    }
}

#[test]
fn a_path_that_is_not_there_is_named_and_the_others_are_looked_at() {
    let unpacked = Kit::open("cluster").state("n2-unclean").unpack();
    let root = unpacked.root().to_path_buf();
    std::os::unix::fs::symlink(root.join("nowhere"), root.join("dangling")).unwrap();
    std::os::unix::fs::symlink(root.join("circle"), root.join("circle")).unwrap();
    std::fs::write(root.join("notes.txt"), b"hello").unwrap();
    std::fs::create_dir(root.join("empty")).unwrap();
    let partition = unpacked.partition("repl-0");
    for wrong in ["missing", "dangling", "circle", "notes.txt", "empty"] {
        for verb in ["ls", "stat", "dump", "txns", "verify", "plan-uploads"] {
            let paths = [root.join(wrong), partition.clone()].map(PathBuf::into_os_string);
            let outcome = tool::run([verb.into(), "--json".into()].into_iter().chain(paths));
            assert_eq!(outcome.code, Some(2), "{verb} {wrong}: {outcome:?}");
            assert!(outcome.stderr.contains(wrong), "{verb} {wrong}: {}", outcome.stderr);
            assert!(outcome.stdout.contains("repl-0"), "{verb} {wrong}: {}", outcome.stdout);
        }
    }
}

#[test]
fn a_path_means_the_same_however_it_is_written() {
    let unpacked = Kit::open("txn").state("clean").unpack();
    let partition = unpacked.partition("txn-a-0");
    let run = |dir: &Path, verb: &str, path: &str| {
        let mut command = Command::new(tool::siltstone());
        let outcome = tool::run_command(command.current_dir(dir).args([verb, "--json", path]));
        let lines = outcome.json_lines();
        let told = |line: &Value| {
            let mut line = line.clone();
            // How it was written, and how long ago that is.
            for key in ["path", "age_ms"] {
                line.as_object_mut().unwrap().remove(key);
            }
            line
        };
        (outcome.code, lines.iter().map(told).collect::<Vec<_>>())
    };
    for verb in ["ls", "stat", "dump", "txns", "verify"] {
        let whole = run(Path::new("/"), verb, partition.to_str().unwrap());
        assert!(whole.0 < Some(2) && !whole.1.is_empty(), "{verb}");
        for (dir, path) in [
            (unpacked.data(), "txn-a-0"),
            (unpacked.data(), "./txn-a-0/"),
            (partition.clone(), "."),
            (unpacked.partition("txn-b-0"), "../txn-a-0"),
        ] {
            assert_eq!(run(&dir, verb, path), whole, "{verb} {path}");
        }
    }
    // The lock of a broker is found from within a partition, too.
    let _held = Disk::new().lock(&unpacked.data().join(".lock")).unwrap();
    for (dir, path) in [(&partition, "."), (&unpacked.data(), "txn-a-0")] {
        assert_eq!(run(dir, "recover", path).0, Some(2), "{path}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let unpacked = Kit::open("txn").state("clean").unpack();
    let mut child = Command::new(tool::siltstone())
        .arg("dump")
        .arg("--json")
        .arg(unpacked.data())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::with_capacity(16, child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), stderr.as_str()), (Some(0), ""));
}

#[test]
fn both_ways_to_the_disk_give_the_same_output() {
    let unpacked = Kit::open("txn").state("torn").unpack();
    let data = unpacked.data();
    for verb in ["ls", "stat", "dump"] {
        let run =
            |io: &str| tool::run([verb.as_ref(), "--io".as_ref(), io.as_ref(), data.as_os_str()]);
        let plain = run("syscalls");
        assert_eq!(run("auto").stdout, plain.stdout, "{verb}");
        let ring = run("uring");
        // Where the kernel or a sandbox does not allow it, it says so.
        match ring.code {
            Some(2) if ring.stdout.is_empty() => assert!(ring.stderr.contains("io_uring")),
            _ => assert_eq!(ring.stdout, plain.stdout, "{verb}"),
        }
    }
    let mut command = Command::new(tool::siltstone());
    let outcome = tool::run_command(command.arg("ls").arg(&data).env("SILTSTONE_IO", "floppy"));
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
}

#[test]
fn progress_goes_to_standard_error_and_can_be_turned_off() {
    let unpacked = Kit::open("txn").state("clean").unpack();
    let outcome = tool::run(["stat".as_ref(), "--quiet".as_ref(), unpacked.data().as_os_str()]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
}

/// The section of the manual about a verb's JSON.
fn manual_of(verb: &str) -> String {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/OPERATORS.md");
    let text = std::fs::read_to_string(manual).unwrap();
    let heading = format!("### {verb} --json");
    let (_, behind) = text.split_once(&heading).unwrap_or_else(|| panic!("no {heading}"));
    behind.split("\n### ").next().unwrap_or_default().to_owned()
}

#[test]
fn every_key_that_is_printed_is_in_the_manual() {
    let kit = Kit::open("txn");
    let (torn, flipped) = (kit.state("torn").unpack(), kit.state("crc").unpack());
    let other = kit.state("unclean").unpack();
    let data = torn.data().into_os_string();
    let side_files = std::fs::read_dir(torn.partition("txn-a-0")).unwrap();
    let side_files = side_files.map(|entry| entry.unwrap().path().into_os_string());
    let metadata = ["--metadata".into(), torn.metadata().into_os_string()];
    let verify = [data.clone(), torn.partition("txn-b-0").into_os_string()];
    let question = torn.root().join("question.json");
    let text = r#"{"remote": [{"start": 0, "end": 9, "state": "COPY_SEGMENT_STARTED"}],
        "epochs": [[0, 0]], "retention_ms": 1, "start_offset": 5,
        "leader": {"local_log_start": 200, "log_end": 500, "highest_remote_offset": 299}}"#;
    std::fs::write(&question, text).unwrap();
    let tiered = Kit::open("tiered").state("clean").unpack();
    let remote = ["--remote".into(), tiered.remote().into_os_string()];
    let named: [OsString; 3] = ["--dry-run".into(), "--partition".into(), "tier-a-0".into()];
    let tiered_data = tiered.data().into_os_string();
    let calls: [(&str, Vec<OsString>); 10] = [
        ("ls", [vec!["--segments".into(), data.clone()], metadata.to_vec()].concat()),
        ("verify", verify.to_vec()),
        ("dump", [data.clone()].into_iter().chain(side_files).collect()),
        ("stat", vec![data.clone()]),
        ("txns", vec!["--aborted".into(), data.clone()]),
        ("diff", vec![other.data().into_os_string(), data]),
        ("recover", vec!["--dry-run".into(), flipped.data().into_os_string()]),
        ("scenario", vec![question.into_os_string()]),
        (
            "plan-uploads",
            [vec!["--segments".into(), tiered_data.clone()], remote.to_vec()].concat(),
        ),
        ("rebuild-aux", [named.to_vec(), remote.to_vec(), vec![tiered_data]].concat()),
    ];
    for (verb, arguments) in calls {
        let manual = manual_of(verb);
        let (lines, _) = lines(verb, &arguments);
        assert!(!lines.is_empty(), "{verb}");
        for line in lines {
            let kind = line["type"].as_str().unwrap();
            assert!(manual.contains(&format!("`{kind}`")), "{verb}: type {kind}");
            for key in line.as_object().unwrap().keys().filter(|key| *key != "type") {
                assert!(manual.contains(&format!("`{key}`")), "{verb}: {key} of {kind}");
            }
        }
    }
}
