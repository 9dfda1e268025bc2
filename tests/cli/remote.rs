//! `dump` of what lies in an object store, and of a remote folder on the disk.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::Value;
use siltstone::io::Disk;
use siltstone::tier::{LocalTarget, ObjectBytes, ObjectTarget};
use siltstone_objects::{Place, RemoteStore, StoreOptions};
use siltstone_tests::kits::{Kit, Unpacked};
use siltstone_tests::moto::Moto;
use siltstone_tests::tool::{self, Outcome};

use crate::reading::{lines, of_type};

/// The folder of the partition in a state's remote folder.
fn folder(unpacked: &Unpacked) -> PathBuf {
    let storage = unpacked.remote().join("kafka-tiered-storage");
    let entries = std::fs::read_dir(storage).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().find(|path| path.display().to_string().contains("tier-a-0-")).unwrap()
}

/// The names in a folder that end so, sorted.
fn names(folder: &Path, suffix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(suffix)).collect();
    names.sort();
    names
}

fn unpacked() -> Unpacked {
    Kit::open("tiered").state("clean").unpack()
}

#[test]
fn a_folder_of_uploaded_segments_is_read_in_order() {
    let unpacked = unpacked();
    let folder = folder(&unpacked);
    let (remote, outcome) = lines("dump", &[&folder]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let (local, _) = lines("dump", &[unpacked.partition("tier-a-0")]);
    let record =
        |line: &Value| (line["offset"].clone(), line["key"].clone(), line["value"].clone());
    let local: Vec<_> = of_type(&local, "record").into_iter().map(record).collect();
    let remote: Vec<_> = of_type(&remote, "record").into_iter().map(record).collect();
    assert!(remote.len() > 50 && remote[..] == local[..remote.len()]);
    // What was not asked for is not opened.
    let wanted = ["--offsets".into(), "20..=21".into(), folder.clone().into_os_string()];
    let (few, _) = lines("dump", &wanted);
    assert_eq!(of_type(&few, "file").len(), 1);
    assert_eq!(of_type(&few, "record").len(), 2);
}

#[test]
fn an_upload_that_reaches_beyond_the_start_of_the_next_is_read() {
    // It was taken to end where the next one begins, and nothing was printed.
    let unpacked = unpacked();
    let folder = folder(&unpacked);
    let log = folder.join(&names(&folder, ".log")[0]);
    let (batches, _) = lines("dump", &["--batches".into(), log.clone().into_os_string()]);
    let batches = of_type(&batches, "batch");
    let number = |at: usize, key: &str| batches[at][key].as_i64().unwrap();
    let position = |at: usize| usize::try_from(number(at, "position")).unwrap();
    // Another leader uploaded the second batch alone.
    let start = number(1, "base_offset");
    let bytes = std::fs::read(&log).unwrap();
    let short = folder.join(format!("{start:020}-{}.log", "A".repeat(22)));
    std::fs::write(short, &bytes[position(1)..position(2)]).unwrap();
    let ask = |offset: i64| {
        let range = format!("{offset}..={offset}");
        let (lines, outcome) =
            lines("dump", &["--offsets".into(), range.into(), folder.clone().into_os_string()]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        (of_type(&lines, "file").len(), of_type(&lines, "record").len())
    };
    // By its name the short one may have it, too.
    assert_eq!(ask(number(batches.len() - 1, "last_offset")), (2, 1));
    assert_eq!(ask(start), (2, 2), "both uploads");
    assert_eq!(ask(start - 1), (1, 1), "the short one begins behind it");
}

#[test]
fn parts_beside_an_uploaded_log_are_known_by_their_names() {
    let unpacked = unpacked();
    let folder = folder(&unpacked);
    let dump = |suffix: &str, kind: &str| -> Vec<Value> {
        let path = folder.join(names(&folder, suffix).pop().unwrap());
        let (lines, outcome) = lines("dump", &[path]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        of_type(&lines, kind).into_iter().cloned().collect()
    };
    let base: i64 = names(&folder, ".log").pop().unwrap()[..20].parse().unwrap();
    let entries = dump(".index", "index_entry");
    assert!(entries[0]["offset"].as_i64().unwrap() > base, "relative to the base in the name");
    assert!(!dump(".timeindex", "timeindex_entry").is_empty());
    assert!(!dump(".snapshot", "producer").is_empty());
    assert_eq!(dump(".leader_epoch_checkpoint", "epoch")[0]["epoch"], 0);
}

#[test]
fn a_range_of_bytes_is_read_as_a_consumer_reads_it() {
    let unpacked = unpacked();
    let folder = folder(&unpacked);
    let log = folder.join(&names(&folder, ".log")[0]).display().to_string();
    let (whole, _) = lines("dump", &["--batches", &log]);
    let batches = of_type(&whole, "batch");
    let position = |at: usize| batches[at]["position"].as_u64().unwrap();
    let range = format!("{}..{}", position(2), position(5));
    let (some, outcome) = lines("dump", &["--batches", "--bytes", &range, &log]);
    assert_eq!((of_type(&some, "batch"), outcome.code), (batches[2..5].to_vec(), Some(0)));
    // One that does not begin at a batch.
    let range = format!("{}..", position(2) + 1);
    let (none, outcome) = lines("dump", &["--bytes", &range, &log]);
    assert_eq!((of_type(&none, "batch").len(), outcome.code), (0, Some(1)));
    assert_eq!(of_type(&none, "problem")[0]["position"], position(2) + 1);
    // What lies behind the end of the file is not passed over: an object may be cut short.
    let size = std::fs::metadata(&log).unwrap().len();
    for (range, found) in [
        (format!("0..{}", size + 1), batches.len()),
        (format!("{}..{}", size + 5, size + 9), 0),
        (format!("{}..", size + 5), 0),
    ] {
        let (some, outcome) = lines("dump", &["--batches", "--bytes", &range, &log]);
        assert_eq!((of_type(&some, "batch").len(), outcome.code), (found, Some(1)), "{range}");
        let problem = of_type(&some, "problem")[0];
        assert_eq!((&problem["position"], &problem["code"]), (&size.into(), &"bad_length".into()));
    }
    let (_, outcome) = lines("dump", &["--bytes", &format!("0..{size}"), &log]);
    assert_eq!(outcome.code, Some(0));
    let (_, outcome) = lines("dump", &["--bytes", "0..", &folder.display().to_string()]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("--bytes is for one .log file"), "{}", outcome.stderr);
}

#[test]
fn a_url_that_names_nothing_is_told() {
    for (url, why) in [
        ("s3://", "s3://"),
        ("ftp://host/x", "ftp://host/x"),
        ("file:///no/such/path", "/no/such/path"),
        ("s3://bucket/a#b", "%23"),
    ] {
        let outcome = tool::run(["dump", url]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(why), "{url}: {}", outcome.stderr);
    }
    let outcome = tool::run(["dump", "--store-option", "no_such=1", "s3://bucket/x.log"]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("no_such"), "{}", outcome.stderr);
    let outcome = tool::run(["dump", "--store-option", "novalue", "s3://bucket/x.log"]);
    assert!(outcome.stderr.contains("KEY=VALUE"), "{}", outcome.stderr);
}

/// Puts all that is below a folder of the disk below a URL; the store there.
pub fn upload(moto: &Moto, url: &str, folder: &Path) -> RemoteStore {
    let settings = moto.environment().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let options = StoreOptions { settings: settings.into(), ..StoreOptions::default() };
    let store = RemoteStore::open(&Place::parse(url).unwrap(), options).unwrap();
    let disk = LocalTarget::new(Arc::new(Disk::new()), folder);
    for object in disk.list("").unwrap() {
        let bytes = disk.get(&object.name, None, object.size_bytes).unwrap();
        store.put(&object.name, &[ObjectBytes::Memory(&bytes)]).unwrap();
    }
    store
}

/// Runs `dump --json` on something in a bucket.
fn dump(moto: &Moto, arguments: &[&str]) -> (Vec<Value>, Outcome) {
    let mut command = Command::new(tool::siltstone());
    command.args(["dump", "--json"]).args(arguments).envs(moto.environment());
    let outcome = tool::run_command(&mut command);
    (outcome.json_lines(), outcome)
}

/// The lines without what tells where they are from.
fn placeless(lines: &[Value]) -> Vec<Value> {
    let mut lines = lines.to_vec();
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("path");
    }
    lines
}

#[test]
fn a_bucket_is_read_as_the_folder_that_was_uploaded() {
    let Some(moto) = Moto::get() else { return };
    let unpacked = unpacked();
    let folder = folder(&unpacked);
    let name = folder.file_name().unwrap().to_str().unwrap();
    let url = format!("s3://{}/kafka-tiered-storage/{name}", moto.bucket());
    let store = upload(moto, &url, &folder);
    let files = names(&folder, "");
    // All of it, and each object alone.
    let (local, _) = lines("dump", &[&folder]);
    let (remote, outcome) = dump(moto, &[&url]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(placeless(&remote), placeless(&local));
    let path = of_type(&remote, "file")[0]["path"].as_str().unwrap().to_owned();
    assert_eq!(path, format!("{url}/{}", names(&folder, ".log")[0]));
    for file in &files {
        let (local, _) = lines("dump", &[folder.join(file)]);
        let (remote, outcome) = dump(moto, &[&format!("{url}/{file}")]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(placeless(&remote), placeless(&local), "{file}");
    }
    let log = &names(&folder, ".log")[0];
    let position = of_type(&local, "batch")[3]["position"].to_string();
    let range = format!("{position}..");
    let (remote, _) = dump(moto, &["--bytes", &range, &format!("{url}/{log}")]);
    let path = folder.join(log).display().to_string();
    let (local, _) = lines("dump", &["--bytes", &range, &path]);
    assert_eq!(placeless(&remote), placeless(&local));
    // What is damaged is told with its place, what is not there is an error.
    let mut bytes = std::fs::read(folder.join(log)).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    store.put(log, &[ObjectBytes::Memory(&bytes)]).unwrap();
    let (damaged, outcome) = dump(moto, &[&format!("{url}/{log}")]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert_eq!(of_type(&damaged, "problem")[0]["code"], "crc_mismatch");
    let (_, outcome) = dump(moto, &[&format!("{url}/nothing.log")]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains(&format!("{url}/nothing.log")), "{}", outcome.stderr);
}
