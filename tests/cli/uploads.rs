//! `plan-uploads`: what waits to go to remote storage.

use std::ffi::OsStr;
use std::fs;

use serde_json::{Value, json};
use siltstone::state::snapshot::write_snapshot;
use siltstone_tests::cases::cases;
use siltstone_tests::file_sums;
use siltstone_tests::kits::{Kit, Unpacked};
use siltstone_tests::logs::LogBuilder;
use siltstone_tests::tool;

use crate::reading::lines;

#[test]
fn every_case_has_its_right_answer() {
    let cases = cases("plan-uploads");
    assert_eq!(cases.len(), 6);
    for case in &cases {
        let (dir, name) = case.unpack();
        let path = dir.path().join(name);
        let before = file_sums(&path);
        let mut arguments = case.options();
        arguments.push(path.display().to_string());
        let (found, outcome) = lines("plan-uploads", &arguments);
        assert_eq!(found.len(), 1, "{}", case.id());
        for (key, value) in case.expect() {
            assert_eq!(&found[0][key], value, "{}: {key}", case.id());
        }
        let is_blocked = found[0]["blocked"] != json!([]);
        assert_eq!(outcome.code, Some(i32::from(is_blocked)), "{}", case.id());
        assert_eq!(file_sums(&path), before, "{}: its input", case.id());
    }
}

fn plan(unpacked: &Unpacked, options: &[&str]) -> Vec<Value> {
    let mut arguments: Vec<String> = options.iter().map(|it| (*it).to_owned()).collect();
    arguments.push("--metadata".to_owned());
    arguments.push(unpacked.metadata().display().to_string());
    arguments.push(unpacked.data().display().to_string());
    let (lines, outcome) = lines("plan-uploads", &arguments);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    lines
}

fn of<'a>(lines: &'a [Value], topic: &str) -> &'a Value {
    lines.iter().find(|line| line["topic"] == topic).expect("a partition")
}

#[test]
fn what_a_broker_uploaded_is_not_uploaded_again() {
    let unpacked = Kit::open("tiered").state("unclean").unpack();
    let remote = unpacked.remote().display().to_string();
    let all = plan(&unpacked, &[]);
    let rest = plan(&unpacked, &["--remote", &remote]);
    for (topic, highest) in [("tier-a", 278), ("tier-b", 273), ("tier-c", 292), ("tier-d", 275)] {
        assert_ne!(of(&all, topic)["candidates"], json!([]), "{topic}");
        let plan = of(&rest, topic);
        assert_eq!(plan["candidates"], json!([]), "{topic}");
        assert_eq!(plan["highest_remote_offset"], highest, "{topic}");
        assert_eq!(plan["remote_storage"], true, "{topic}");
    }
    // An open transaction holds back what comes behind its first offset.
    let held = of(&rest, "tier-d");
    assert_eq!(held["stop"], "above_last_stable");
    assert_eq!(held["last_stable_from"], "transactions");
    assert_eq!(held["waiting"][0][1], "above_last_stable");
    assert_eq!(of(&all, "__transaction_state")["stop"], "internal");
    // The folder itself may be named, too.
    let inner = unpacked.remote().join("kafka-tiered-storage").display().to_string();
    assert_eq!(plan(&unpacked, &["--remote", &inner]), rest);
}

#[test]
fn what_if_uploads_waited() {
    let unpacked = Kit::open("tiered").state("clean").unpack();
    let count = |options: &[&str]| {
        let lines = plan(&unpacked, options);
        of(&lines, "tier-d")["candidates"].as_array().expect("candidates").len()
    };
    let all = count(&[]);
    assert!(all > 1, "{all}");
    assert_eq!(count(&["--copy-lag-ms", "0"]), all);
    assert_eq!(count(&["--copy-lag-ms", "9000000000000"]), 0);
    assert_eq!(count(&["--copy-lag-ms", "1000", "--now-ms", "0"]), 0);
    assert_eq!(count(&["--copy-lag-bytes", "1"]), all);
    assert_eq!(count(&["--copy-lag-bytes", "1000000000"]), 0);
    assert_eq!(count(&["--copy-lag-ms", "1", "--copy-lag-bytes", "1000000000"]), all);
    // The local retention of these topics is 20,000 bytes or not limited.
    let lines = plan(&unpacked, &["--copy-lag-bytes", "-1", "--segments"]);
    let plan = of(&lines, "tier-d");
    assert_eq!((&plan["candidates"], &plan["stop"]), (&json!([]), &json!("lagging")));
    assert_eq!(plan["segments"][0]["reason"], "lagging");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let unpacked = Kit::open("tiered").state("clean").unpack();
    let data = unpacked.data().display().to_string();
    let code = |arguments: &[&str]| {
        let outcome = tool::run(["plan-uploads"].iter().chain(arguments));
        assert!(outcome.is_healthy(), "{outcome:?}");
        outcome.code
    };
    assert_eq!(code(&["--high-watermark", "7", &data]), Some(2));
    assert_eq!(code(&["--high-watermark", "-7", &data]), Some(2));
    assert_eq!(code(&["--remote", "/nowhere/at/all", &data]), Some(2));
    assert_eq!(code(&["--copy-lag-ms", "-2", &data]), Some(2));
    let log = format!("{data}/tier-a-0/00000000000000000279.log");
    assert_eq!(code(&[&log]), Some(2));
    assert_eq!(code(&["/nowhere/at/all"]), Some(2));
    // A log whose last stable offset cannot be is planned, and says so.
    let partition = format!("{data}/tier-a-0");
    let (lines, _) = lines("plan-uploads", &["--last-stable-offset", "-5", &partition]);
    assert_eq!(lines[0]["stop"], "inconsistent");
}

#[test]
fn a_segment_whose_last_offsets_have_no_batch_is_not_uploaded_again() {
    // Offsets 95 to 99 are gone, as after compaction: an upload of 0 to 99 seemed to end at 94.
    let folder = tempfile::tempdir().expect("a directory");
    let dir = folder.path().join("logs/orders-0");
    LogBuilder::new().batch(95).skip(5).roll().batch(3).write_into(&dir);
    assert_eq!(tool::run([OsStr::new("recover"), dir.as_os_str()]).code, Some(0));
    let remote = folder.path().join("remote");
    let uploads = remote.join("kafka-tiered-storage/orders-0-KhrFBVCXRj-kNEnYK4ZyLw");
    fs::create_dir_all(&uploads).expect("a folder");
    let part = |suffix: &str| uploads.join(format!("{:020}-x2t5GTfnTM-67nVHQOFO5Q{suffix}", 0));
    for suffix in [".log", ".index", ".timeindex"] {
        fs::copy(dir.join(format!("{:020}{suffix}", 0)), part(suffix)).expect("a part");
    }
    fs::write(part(".snapshot"), write_snapshot([])).expect("a part");
    fs::write(part(".leader_epoch_checkpoint"), "0\n1\n0 0\n").expect("a part");
    let plan = || {
        let option = OsStr::new;
        let arguments =
            [option("--remote"), remote.as_os_str(), option("--high-watermark"), option("103")];
        let (lines, outcome) =
            lines("plan-uploads", &[&arguments[..], &[dir.as_os_str()]].concat());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        (lines[0]["highest_remote_offset"].clone(), lines[0]["candidates"].clone())
    };
    assert_eq!(plan(), (json!(99), json!([])));
    // One of fewer bytes is another leader's: it may end where its batches do.
    let log = fs::OpenOptions::new().append(true).open(dir.join(format!("{:020}.log", 0)));
    let more = LogBuilder::starting_at(95).batch(1);
    std::io::Write::write_all(&mut log.expect("a log"), more.newest()).expect("a batch");
    assert_eq!(plan(), (json!(94), json!([[0, 99]])));
}
