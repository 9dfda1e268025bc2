//! `--remote` by every name that remote storage can have: the folder, the one around it, and URLs.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use siltstone_tests::file_sums;
use siltstone_tests::kits::{Kit, Unpacked};
use siltstone_tests::moto::Moto;
use siltstone_tests::tool::{self, Outcome};

use crate::remote::upload;

const VERBS: [&str; 3] = ["verify", "plan-uploads", "rebuild-aux"];

/// All names of a state's remote storage; those in a bucket where there is a server.
fn places(unpacked: &Unpacked) -> Vec<String> {
    let folder = unpacked.remote().display().to_string();
    let mut places = vec![format!("{folder}/kafka-tiered-storage"), format!("file://{folder}")];
    if let Some(moto) = Moto::get() {
        let url = format!("s3://{}/some/tier", moto.bucket());
        upload(moto, &url, &unpacked.remote());
        places.extend([format!("{url}/kafka-tiered-storage"), url]);
    }
    places.push(folder);
    places
}

fn run(verb: &str, remote: &str, more: &[&str], path: &Path) -> Outcome {
    let mut command = Command::new(tool::siltstone());
    command.args([verb, "--json", "--now-ms", "1", "--remote", remote]).args(more).arg(path);
    if let Some(moto) = Moto::get() {
        command.envs(moto.environment());
    }
    tool::run_command(&mut command)
}

#[test]
fn uploads_are_planned_alike_by_every_name() {
    let unpacked = Kit::open("tiered").state("unclean").unpack();
    let metadata = unpacked.metadata().display().to_string();
    let plan =
        |place: &str| run("plan-uploads", place, &["--metadata", &metadata], &unpacked.data());
    let places = places(&unpacked);
    let first = plan(&places[0]);
    assert!(
        first.json_lines().iter().any(|line| line["highest_remote_offset"] == 278),
        "{first:?}"
    );
    for place in &places {
        let outcome = plan(place);
        assert_eq!((outcome.code, &outcome.stdout), (Some(0), &first.stdout), "{place}");
        assert_eq!(outcome.stderr, "", "{place}");
    }
}

#[test]
fn damaged_replicas_are_found_by_every_name() {
    let leader = Kit::open("tiered").state("unclean").unpack();
    let follower = Kit::open("tiered").state("follower").unpack();
    let found = |place: &str| {
        let outcome = run("verify", place, &[], &follower.data());
        assert_eq!(outcome.code, Some(1), "{place}: {outcome:?}");
        let lines = outcome.json_lines().into_iter();
        lines.filter(|line| line["type"] == "remote").collect::<Vec<_>>()
    };
    let places = places(&leader);
    let first = found(&places[0]);
    assert_eq!(first.len(), 3);
    for place in &places {
        assert_eq!(found(place), first, "{place}");
    }
}

#[test]
fn replicas_are_rebuilt_alike_by_every_name() {
    let unpacked = Kit::open("tiered").state("unclean").unpack();
    let named = ["--partition", "tier-a-0", "--partition", "tier-b-0"];
    let mut all = Vec::new();
    for place in places(&unpacked) {
        let logs = tempfile::tempdir().expect("a directory");
        let told = |outcome: &Outcome| {
            assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{place}");
            let mut lines = outcome.json_lines();
            let statuses: Vec<Value> = lines
                .iter_mut()
                .map(|line| {
                    let object = line.as_object_mut().expect("an object");
                    object.remove("path");
                    object.remove("status").expect("a status")
                })
                .collect();
            (lines, statuses)
        };
        let dry = run("rebuild-aux", &place, &[&named[..], &["--dry-run"]].concat(), logs.path());
        let (planned, statuses) = told(&dry);
        assert_eq!(statuses, ["planned", "planned"]);
        assert!(file_sums(logs.path()).is_empty(), "{place}");
        let (rebuilt, statuses) = told(&run("rebuild-aux", &place, &named, logs.path()));
        assert_eq!(statuses, ["rebuilt", "rebuilt"]);
        assert_eq!(planned, rebuilt, "{place}");
        all.push((rebuilt, file_sums(logs.path())));
    }
    for other in &all {
        assert_eq!(other, &all[0]);
    }
}

#[test]
fn what_is_no_remote_storage_is_told_by_every_verb() {
    let unpacked = Kit::open("tiered").state("clean").unpack();
    let file = unpacked.case_file().display().to_string();
    let places = [
        ("/nowhere/at/all", "/nowhere/at/all"),
        ("ftp://host/x", "no store is known for ftp://"),
        ("s3://", "s3://"),
        ("file:///nowhere/at/all", "/nowhere/at/all"),
        (file.as_str(), "no folder"),
    ];
    for verb in VERBS {
        for (place, why) in places {
            let outcome = run(verb, place, &[], &unpacked.data());
            assert_eq!(outcome.code, Some(2), "{verb} {place}: {outcome:?}");
            assert!(outcome.stderr.contains(why), "{verb} {place}: {}", outcome.stderr);
            // What is here is verified all the same.
            assert_eq!(verb == "verify", outcome.stdout.contains("tier-a-0"), "{verb} {place}");
        }
        let help = tool::run([verb, "--help"]);
        assert!(help.stdout.contains("--remote <DIR|URL>"), "{verb}");
    }
    // Nobody listens there.
    let outcome = run("plan-uploads", "http://127.0.0.1:1/tier", &[], &unpacked.data());
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("list http://127.0.0.1:1/tier"), "{}", outcome.stderr);
}

#[test]
fn a_bucket_that_is_not_there_is_told() {
    if Moto::get().is_none() {
        return;
    }
    let unpacked = Kit::open("tiered").state("clean").unpack();
    for verb in VERBS {
        let outcome = run(verb, "s3://no-such-bucket/tier", &[], &unpacked.data());
        assert_eq!(outcome.code, Some(2), "{verb}: {outcome:?}");
        assert!(outcome.stderr.contains("NoSuchBucket"), "{verb}: {}", outcome.stderr);
    }
    let wrong = ["--store-option", "no_such=1"];
    let outcome = run("verify", "s3://no-such-bucket/tier", &wrong, &unpacked.data());
    assert!(outcome.stderr.contains("no_such"), "{}", outcome.stderr);
}

#[test]
fn remote_storage_with_nothing_in_it_is_pointed_out() {
    let unpacked = Kit::open("tiered").state("follower").unpack();
    let empty = tempfile::tempdir().expect("a directory");
    std::fs::write(empty.path().join("notes.txt"), b"nothing").expect("a file");
    let mut places: Vec<OsString> = vec![empty.path().into()];
    if let Some(moto) = Moto::get() {
        places.push(format!("s3://{}/tier", moto.bucket()).into());
    }
    for place in places {
        let place = place.to_str().expect("a name");
        for verb in VERBS {
            let outcome = run(verb, place, &[], &unpacked.data());
            assert_eq!(outcome.code, Some(0), "{verb} {place}: {outcome:?}");
            assert!(outcome.stderr.contains("no uploaded segment is there"), "{verb} {place}");
        }
    }
}
