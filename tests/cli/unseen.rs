//! What could not be looked at is told, and ends with exit code 2: nothing is said of the rest as
//! if there were no more.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use siltstone_tests::kits::{Kit, Unpacked};
use siltstone_tests::logs::LogBuilder;
use siltstone_tests::tool::run;

use crate::reading::{lines, of_type};

/// A log of three segments, the second of which is a link to nowhere.
fn with_a_hole(dir: &Path) -> PathBuf {
    let partition = dir.join("orders-0");
    LogBuilder::new().batch(3).roll().batch(3).roll().batch(3).write_into(&partition);
    // Indexes and leader epochs.
    assert_eq!(run([OsStr::new("recover"), partition.as_os_str()]).code, Some(0));
    let second = partition.join("00000000000000000003.log");
    fs::remove_file(&second).expect("a log");
    std::os::unix::fs::symlink("/nowhere/at/all", &second).expect("a link");
    partition
}

#[test]
fn a_log_that_cannot_be_opened_is_never_passed_over() {
    let root = tempfile::tempdir().expect("a directory");
    let partition = with_a_hole(root.path());
    for verb in ["verify", "ls", "stat", "txns", "plan-uploads"] {
        for path in [root.path(), &partition] {
            let (_, outcome) = lines(verb, &[path]);
            assert_eq!(outcome.code, Some(2), "{verb}: {outcome:?}");
            let said = format!("{}{}", outcome.stdout, outcome.stderr);
            assert!(said.contains("00000000000000000003.log"), "{verb}: {outcome:?}");
        }
    }
    // A folder in its place is no log without records.
    let only = root.path().join("lonely-0");
    fs::create_dir_all(only.join("00000000000000000000.log")).expect("a folder");
    for verb in ["ls", "stat", "txns"] {
        assert_eq!(lines(verb, &[&only]).1.code, Some(2), "{verb}");
    }
}

#[test]
fn no_upload_reaches_over_a_hole() {
    // Segment 0 was planned with the offsets of the one behind it.
    let root = tempfile::tempdir().expect("a directory");
    let partition = with_a_hole(root.path());
    let arguments = ["--assume-remote", "--sizes-only", "--high-watermark", "9"].map(PathBuf::from);
    let (found, _) = lines("plan-uploads", &[&arguments[..], &[partition]].concat());
    let plan = &found[0];
    assert_eq!(plan["candidates"], json!([[0, 2]]), "{plan}");
    assert_eq!(plan["blocked"], json!([[3, "unreadable"]]), "{plan}");
}

/// A state whose metadata log has eight bytes of garbage.
fn with_damaged_metadata() -> Unpacked {
    let unpacked = Kit::open("tiered").state("unclean").unpack();
    let folder = unpacked.metadata().join("__cluster_metadata-0");
    let folder = if folder.exists() { folder } else { unpacked.metadata() };
    let log = folder.join("00000000000000000000.log");
    let mut bytes = fs::read(&log).expect("the metadata log");
    bytes[200..208].copy_from_slice(b"garbage!");
    fs::write(&log, bytes).expect("the metadata log");
    unpacked
}

#[test]
fn a_metadata_log_that_is_not_read_to_its_end_decides_nothing() {
    // Every topic was taken for one without remote storage, and every partition for a stray.
    let unpacked = with_damaged_metadata();
    let (metadata, data) = (unpacked.metadata(), unpacked.data());
    let on_damaged = |verb: &str| {
        let (found, outcome) = lines(verb, &[Path::new("--metadata"), &metadata, &data]);
        assert_eq!(outcome.code, Some(2), "{verb}: {outcome:?}");
        assert!(outcome.stderr.contains("00000000000000000000.log"), "{verb}: {outcome:?}");
        found
    };
    let listed = on_damaged("ls");
    assert!(of_type(&listed, "missing").is_empty());
    assert!(
        of_type(&listed, "partition").iter().all(|it| !it["notes"].to_string().contains("stray"))
    );
    let planned = on_damaged("plan-uploads");
    let partitions = of_type(&planned, "partition");
    let is_user = |topic: &str| !topic.starts_with("__");
    for plan in partitions.iter().filter(|it| it["topic"].as_str().is_some_and(is_user)) {
        assert_eq!(plan["remote_storage"], json!(null), "{plan}");
        assert_ne!(plan["stop"], "remote_storage_off", "{plan}");
    }
    // Recovery needs little of it, and says so even where it says nothing else.
    let options = ["--quiet", "--dry-run", "--metadata"].map(Path::new);
    let (_, outcome) = lines("recover", &[&options[..], &[&metadata, &data]].concat());
    assert!(outcome.stderr.contains("read up to offset"), "{outcome:?}");
    let found = on_damaged("txns");
    assert_eq!(of_type(&found, "coordinators")[0]["partitions"], json!(null));
}

#[test]
fn a_metadata_log_that_is_named_and_not_there_is_told() {
    // `txns` passed over it.
    let unpacked = Kit::open("tiered").state("unclean").unpack();
    for verb in ["ls", "txns", "recover", "plan-uploads"] {
        for place in ["/nowhere/at/all", "/etc"] {
            let (option, data) = (Path::new("--metadata"), unpacked.data());
            let (_, outcome) = lines(verb, &[option, Path::new(place), &data]);
            assert_eq!(outcome.code, Some(2), "{verb} {place}: {outcome:?}");
            assert!(outcome.stderr.contains("no __cluster_metadata-0 here"), "{verb}: {outcome:?}");
        }
    }
}
