//! `siltstone rebuild-aux`, and the replicas that `siltstone verify --remote` finds damaged, over
//! what a real Kafka uploaded.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use siltstone::io::{Disk, Storage};
use siltstone_tests::kits::Kit;
use siltstone_tests::tool::{Outcome, run};

use crate::has_clean_marker;

fn rebuild(remote: &Path, logs: &Path, more: &[&str]) -> Outcome {
    let mut arguments: Vec<&OsStr> = ["rebuild-aux", "--json", "--remote"].map(OsStr::new).to_vec();
    arguments.push(remote.as_os_str());
    arguments.extend(more.iter().map(OsStr::new));
    arguments.push(logs.as_os_str());
    run(arguments)
}

/// An object of the only upload of a segment.
fn object(remote: &Path, topic: &str, start: i64, suffix: &str) -> Vec<u8> {
    fs::read(object_path(remote, topic, start, suffix)).expect("bytes")
}

fn object_path(remote: &Path, topic: &str, start: i64, suffix: &str) -> PathBuf {
    let root = remote.join("kafka-tiered-storage");
    let mut folders = fs::read_dir(root).expect("a folder").map(|entry| entry.expect("an entry"));
    let is_wanted = |name: &str| name.starts_with(&format!("{topic}-0-"));
    let folder = folders.find(|it| is_wanted(&it.file_name().to_string_lossy()));
    let mut files = fs::read_dir(folder.expect("a topic").path()).expect("a folder");
    let file = files.find_map(|entry| {
        let path = entry.expect("an entry").path();
        let name = path.file_name()?.to_string_lossy().into_owned();
        (name.starts_with(&format!("{start:020}-")) && name.ends_with(suffix)).then_some(path)
    });
    file.expect("an object")
}

#[test]
fn replicas_begin_behind_what_kafka_uploaded() {
    let kit = Kit::open("tiered").state("unclean").unpack();
    let logs = tempfile::tempdir().expect("a directory");
    let marker = logs.path().join(".kafka_cleanshutdown");
    fs::write(&marker, br#"{"version":0,"brokerEpoch":42}"#).expect("a marker");
    let named = ["--partition", "tier-a-0", "--partition", "tier-c-0"];
    let dry = rebuild(&kit.remote(), logs.path(), &[&named[..], &["--dry-run"]].concat());
    assert_eq!(dry.code, Some(0), "{dry:?}");
    let planned: Vec<_> = dry.json_lines().iter().map(|line| line["status"].clone()).collect();
    assert_eq!(planned, ["planned", "planned"]);
    assert_eq!(fs::read_dir(logs.path()).expect("a directory").count(), 1, "something is written");

    let outcome = rebuild(&kit.remote(), logs.path(), &named);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    for (line, (topic, start, next)) in
        outcome.json_lines().iter().zip([("tier-a", 179, 279), ("tier-c", 189, 293)])
    {
        assert_eq!((&line["status"], &line["next_offset"]), (&"rebuilt".into(), &next.into()));
        let dir = logs.path().join(format!("{topic}-0"));
        let read = |name: &str| fs::read(dir.join(name)).expect("a file");
        let snapshot = object(&kit.remote(), topic, start, ".snapshot");
        assert_eq!(read(&format!("{next:020}.snapshot")), snapshot);
        assert!(snapshot.len() > 10, "the snapshot has producers");
        let epochs = object(&kit.remote(), topic, start, ".leader_epoch_checkpoint");
        assert_eq!(read("leader-epoch-checkpoint"), epochs);
        assert_eq!(read(&format!("{next:020}.log")), b"");
        let theirs = fs::read(kit.partition(&format!("{topic}-0")).join("partition.metadata"));
        assert_eq!(read("partition.metadata"), theirs.expect("a file"));
    }
    assert!(fs::read_to_string(&marker).expect("the marker").contains(":-1}"));
    let verified =
        run(["verify".as_ref(), "--now-ms".as_ref(), "1".as_ref(), logs.path().as_os_str()]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let again = rebuild(&kit.remote(), logs.path(), &[]);
    assert_eq!(
        (again.code, again.json_lines().len()),
        (Some(0), 2),
        "empty ones are rebuilt by default"
    );

    // One whose end is behind all that was uploaded is none of them.
    let later = logs.path().join("tier-b-0");
    fs::create_dir(&later).expect("a directory");
    fs::write(later.join("00000000000000000500.log"), b"").expect("a log");
    assert_eq!(rebuild(&kit.remote(), logs.path(), &[]).json_lines().len(), 2);

    // Behind an earlier segment.
    let more = ["--partition", "tier-a-0", "--start-offset", "100", "--log-start-offset", "7"];
    let earlier = rebuild(&kit.remote(), logs.path(), &more);
    assert_eq!(earlier.json()["next_offset"], 179, "{earlier:?}");
    assert_eq!(earlier.json()["log_start_offset"], 7);
    let starts = fs::read_to_string(logs.path().join("log-start-offset-checkpoint"));
    assert!(starts.expect("a checkpoint").contains("tier-a 0 7\n"));
}

#[test]
fn replicas_with_records_are_left_alone_unless_they_are_named() {
    let kit = Kit::open("tiered").state("clean").unpack();
    let before = siltstone_tests::file_sums(&kit.partition("tier-a-0"));
    let outcome = rebuild(&kit.remote(), &kit.data(), &[]);
    assert_eq!((outcome.code, outcome.json_lines().len()), (Some(0), 0), "{outcome:?}");
    assert_eq!(siltstone_tests::file_sums(&kit.partition("tier-a-0")), before);
    assert!(has_clean_marker(&kit.data()));
    let outcome = rebuild(&kit.remote(), &kit.data(), &["--partition", "tier-a-0"]);
    assert_eq!(outcome.json()["next_offset"], 89, "{outcome:?}");
    assert!(outcome.json()["removed_bytes"].as_u64() > Some(1000));
    let absent = rebuild(&kit.remote(), &kit.data(), &["--partition", "nowhere-0"]);
    assert_eq!((absent.code, &absent.json()["status"]), (Some(1), &"failed".into()));
    assert!(!kit.partition("nowhere-0").exists());
    let no_name = rebuild(&kit.remote(), &kit.data(), &["--partition", "../x-0"]);
    assert_eq!(no_name.code, Some(2), "{no_name:?}");
}

#[test]
fn a_partition_that_is_named_twice_is_rebuilt_once_and_one_in_two_directories_not_at_all() {
    let kit = Kit::open("tiered").state("unclean").unpack();
    let logs = tempfile::tempdir().expect("a directory");
    let twice = ["--partition", "tier-c-0", "--partition", "tier-a-0", "--partition", "tier-c-0"];
    let outcome = rebuild(&kit.remote(), logs.path(), &twice);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let names: Vec<_> = outcome.json_lines().iter().map(|line| line["path"].clone()).collect();
    let path = |name: &str| Value::from(logs.path().join(name).display().to_string());
    assert_eq!(names, [path("tier-c-0"), path("tier-a-0")]);

    // Kafka would not start with both, and which of them is to stay is not for this to say.
    let other = tempfile::tempdir().expect("a directory");
    fs::create_dir(other.path().join("tier-a-0")).expect("a folder");
    let before = siltstone_tests::file_sums(&logs.path().join("tier-a-0"));
    let remote = kit.remote();
    for named in [&["--partition", "tier-a-0"][..], &[]] {
        let mut arguments: Vec<&OsStr> =
            ["rebuild-aux", "--json", "--remote"].map(OsStr::new).to_vec();
        arguments.push(remote.as_os_str());
        arguments.extend(named.iter().map(OsStr::new));
        arguments.extend([logs.path().as_os_str(), other.path().as_os_str()]);
        let outcome = run(arguments);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let lines = outcome.json_lines().into_iter();
        let twice: Vec<Value> =
            lines.filter(|it| it["topic_partition"] == json!(["tier-a", 0])).collect();
        assert_eq!(twice.len(), 2, "{outcome:?}");
        for line in twice {
            let why = line["error"].as_str().expect("a reason");
            assert!(why.contains("several log directories"), "{line}");
        }
    }
    assert_eq!(siltstone_tests::file_sums(&logs.path().join("tier-a-0")), before);
    assert_eq!(fs::read_dir(other.path().join("tier-a-0")).expect("a folder").count(), 0);
}

// One folder that could not be looked at ended the run, and no replica was rebuilt.
#[test]
fn a_folder_that_cannot_be_looked_at_is_told_and_the_others_are_rebuilt() {
    let kit = Kit::open("tiered").state("unclean").unpack();
    let logs = tempfile::tempdir().expect("a directory");
    for name in ["tier-a-0", "tier-b-0", "tier-c-0", "other-0"] {
        fs::create_dir(logs.path().join(name)).expect("a directory");
    }
    let break_id = |name: &str| {
        fs::write(logs.path().join(name).join("partition.metadata"), b"version: 7\n")
            .expect("a file");
    };
    break_id("tier-b-0");
    // Nothing was ever uploaded of this one.
    break_id("other-0");
    let statuses = |outcome: &Outcome| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let lines = outcome.json_lines().into_iter();
        lines.map(|line| (text(&line["name"]), text(&line["status"]))).collect()
    };
    for (more, status) in [(&["--dry-run"][..], "planned"), (&[], "rebuilt")] {
        let outcome = rebuild(&kit.remote(), logs.path(), more);
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let expected = [("tier-a-0", status), ("tier-b-0", "failed"), ("tier-c-0", status)];
        let expected = expected.map(|(name, status)| (name.to_owned(), status.to_owned()));
        assert_eq!(statuses(&outcome), expected);
        let failed = &outcome.json_lines()[1];
        assert!(failed["error"].as_str().expect("a reason").contains("partition.metadata"));
        assert_eq!((&failed["log_start_offset"], &failed["segment"]), (&Value::Null, &Value::Null));
    }
    assert_eq!(fs::read_dir(logs.path().join("tier-b-0")).expect("a folder").count(), 1);
    assert!(logs.path().join("tier-c-0/00000000000000000293.log").exists());
    let for_people = run([
        "rebuild-aux".as_ref(),
        "--dry-run".as_ref(),
        "--remote".as_ref(),
        kit.remote().as_os_str(),
        logs.path().as_os_str(),
    ]);
    let table = for_people.stdout.lines().filter(|line| line.contains("to be rebuilt"));
    assert_eq!((table.count(), for_people.code), (2, Some(1)), "{for_people:?}");
}

#[test]
fn what_a_run_would_refuse_is_not_planned() {
    let kit = Kit::open("tiered").state("unclean").unpack();
    let logs = tempfile::tempdir().expect("a directory");
    let refused = |more: &[&str], why: &str| {
        let more = [&["--partition", "tier-a-0"], more].concat();
        let dry = rebuild(&kit.remote(), logs.path(), &[&more[..], &["--dry-run"]].concat());
        let done = rebuild(&kit.remote(), logs.path(), &more);
        assert_eq!((dry.code, &dry.stdout), (Some(1), &done.stdout), "{dry:?}");
        assert_eq!((done.code, &done.json()["status"]), (Some(1), &"failed".into()));
        let error = done.json()["error"].as_str().map(str::to_owned);
        assert!(error.as_ref().is_some_and(|error| error.contains(why)), "{error:?}");
        assert!(!logs.path().join("tier-a-0").exists());
    };
    refused(&["--log-start-offset", "279"], "before the start of the log, 279");
    refused(&["--start-offset", "280"], "no whole segment in remote storage holds 279");
    let snapshot = object_path(&kit.remote(), "tier-a", 179, ".snapshot");
    let mut bytes = fs::read(&snapshot).expect("bytes");
    *bytes.last_mut().expect("a byte") ^= 1;
    fs::write(&snapshot, bytes).expect("a file");
    refused(&[], "remote segment 179.snapshot");
}

// The start of the log was that of the first object, although nobody can read a copy that was not
// finished.
#[test]
fn a_log_starts_with_the_first_segment_that_is_whole() {
    let kit = Kit::open("tiered").state("unclean").unpack();
    let logs = tempfile::tempdir().expect("a directory");
    let dry = |expected: i64| {
        let more = ["--dry-run", "--partition", "tier-a-0"];
        let outcome = rebuild(&kit.remote(), logs.path(), &more);
        assert_eq!(outcome.json()["log_start_offset"], expected, "{outcome:?}");
        outcome.json()["next_offset"].clone()
    };
    assert_eq!(dry(0), 279);
    fs::remove_file(object_path(&kit.remote(), "tier-a", 0, ".timeindex")).expect("an object");
    assert_eq!(dry(89), 279);
    fs::remove_file(object_path(&kit.remote(), "tier-a", 179, ".log")).expect("an object");
    assert_eq!(dry(89), 179);
}

#[test]
fn a_directory_that_a_broker_holds_is_refused() {
    let kit = Kit::open("tiered").state("clean").unpack();
    let logs = tempfile::tempdir().expect("a directory");
    let held = Disk::new().lock(&logs.path().join(".lock")).expect("a lock");
    let outcome = rebuild(&kit.remote(), logs.path(), &["--partition", "tier-a-0"]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("a running broker holds this directory"), "{outcome:?}");
    // Looking is allowed, and says that no more is.
    let dry = rebuild(&kit.remote(), logs.path(), &["--partition", "tier-a-0", "--dry-run"]);
    assert_eq!((dry.code, &dry.json()["status"]), (Some(0), &"planned".into()), "{dry:?}");
    assert!(dry.stderr.contains("a running broker holds this directory"), "{dry:?}");
    drop(held);
    let dry = rebuild(&kit.remote(), logs.path(), &["--partition", "tier-a-0", "--dry-run"]);
    assert_eq!(dry.stderr, "", "{dry:?}");
    for remote in ["/nowhere/at/all", "ftp://host/x"] {
        let outcome = rebuild(Path::new(remote), logs.path(), &[]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
    }
}

#[test]
fn replicas_that_kafka_rebuilt_are_found_to_have_forgotten_producers() {
    // spec: tiered-faults T2
    let leader = Kit::open("tiered").state("unclean").unpack();
    let follower = Kit::open("tiered").state("follower").unpack();
    let verify = |data: &Path| {
        let outcome = run([
            "verify".as_ref(),
            "--json".as_ref(),
            "--remote".as_ref(),
            leader.remote().as_os_str(),
            data.as_os_str(),
        ]);
        let lines = outcome.json_lines().into_iter();
        let remote = lines.filter(|line| line["type"] == "remote").flat_map(|line| {
            let problems = line["problems"].as_array().expect("problems").clone();
            problems.into_iter().map(move |it| (line["path"].clone(), it["code"].clone()))
        });
        let mut found: Vec<(String, String)> = remote
            .map(|(path, code)| {
                let name = Path::new(path.as_str().expect("a path")).file_name();
                let name = name.expect("a name").to_string_lossy().into_owned();
                (name, code.as_str().expect("a code").to_owned())
            })
            .collect();
        found.sort();
        found
    };
    let forgotten = ["tier-a-0", "tier-b-0", "tier-c-0"]
        .map(|name| (name.to_owned(), "producers_forgotten".to_owned()));
    assert_eq!(verify(&follower.data()), forgotten);
    assert_eq!(verify(&leader.data()), []);
}

#[test]
fn a_replica_whose_uploads_are_all_gone_is_told() {
    let kit = Kit::open("tiered").state("unclean").unpack();
    let remote = kit.remote();
    let object = object_path(&remote, "tier-a", 179, ".log");
    fs::remove_dir_all(object.parent().expect("a folder")).expect("a folder");
    let arguments = ["verify", "--json", "--remote"].map(OsStr::new);
    let data = kit.data();
    let paths = [remote.as_os_str(), data.as_os_str()];
    let outcome = run([&arguments[..], &paths].concat());
    let lines = outcome.json_lines();
    let told: Vec<&Value> = lines.iter().filter(|line| line["type"] == "remote").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0]["path"].as_str().expect("a path").ends_with("tier-a-0"));
    let [problem] = &told[0]["problems"].as_array().expect("problems")[..] else {
        panic!("{told:?}")
    };
    let field = |key: &str| problem[key].clone();
    // Retention may have deleted them within the minute for which the checkpoint is old.
    assert_eq!((field("code"), field("severity")), ("remote_hole".into(), "notice".into()));
    assert_eq!(field("offset"), 0);
}
