//! `dump` prints what Kafka's own classes read.

use std::path::{Path, PathBuf};

use serde_json::Value;
use siltstone::io::{Disk, Storage};
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::Compressor;
use siltstone_tests::expect::{Expectation, Record, blob};
use siltstone_tests::kits::Kit;
use siltstone_tests::{hex, tool};

use crate::reading::{bytes, lines, of_type};

/// A record as the expectations have it. `--decode none` gives the bytes of every record but those
/// of control batches.
fn record(line: &Value) -> Record {
    let int = |key: &str| line[key].as_i64().unwrap_or_else(|| panic!("{key} of {line}"));
    let headers = line["headers"].as_array().expect("headers").iter();
    let control = line["decoded_key"]["control"].as_str();
    Record {
        offset: int("offset"),
        timestamp: int("timestamp_ms"),
        sequence: i32::try_from(int("sequence")).expect("a sequence"),
        key: control.is_none().then(|| blob(bytes(&line["key"]).as_deref())).flatten(),
        value: control.is_none().then(|| blob(bytes(&line["value"]).as_deref())).flatten(),
        headers: headers
            .map(|header| {
                let key = bytes(&header["key"]).expect("a header key");
                let key = String::from_utf8(key).expect("text");
                (key, blob(bytes(&header["value"]).as_deref()))
            })
            .collect(),
        control_type: control.map(str::to_owned),
    }
}

/// The expected records; what control records hold is decoded, so their bytes are not compared.
fn expected(expectation: &Expectation) -> Vec<Record> {
    let segments = expectation.raw.segments.iter();
    let mut records: Vec<Record> =
        segments.flat_map(|segment| segment.records.iter().cloned()).collect();
    for record in records.iter_mut().filter(|record| record.control_type.is_some()) {
        (record.key, record.value) = (None, None);
    }
    records
}

fn check_kit(kit: &str, state: &str) {
    let state = Kit::open(kit).state(state);
    let unpacked = state.unpack();
    for partition in state.partitions() {
        let Some(expectation) = state.expectation(&partition) else { continue };
        let path = unpacked.partition(&partition);
        let arguments = ["--decode".into(), "none".into(), path.into_os_string()];
        let (lines, outcome) = lines("dump", &arguments);
        let label = format!("{} {partition}", state.label());
        let problems = of_type(&lines, "problem");
        assert_eq!(outcome.code, Some(i32::from(!problems.is_empty())), "{label}");
        // A preallocated file ends in zeros when its broker was killed.
        assert!(problems.iter().all(|problem| problem["code"] == "zero_tail"), "{label}");
        let records: Vec<Record> = of_type(&lines, "record").into_iter().map(record).collect();
        assert_eq!(records, expected(&expectation), "{label}");
        let segments = expectation.raw.segments.iter();
        let batches: usize = segments.map(|segment| segment.batches.len()).sum();
        assert_eq!(of_type(&lines, "batch").len(), batches, "{label}");
    }
}

#[test]
fn records_of_all_codecs_are_kafkas() {
    check_kit("basic", "unclean");
}

#[test]
fn records_of_transactions_are_kafkas() {
    check_kit("txn", "unclean");
}

#[test]
fn records_of_compacted_logs_are_kafkas() {
    check_kit("compact", "unclean");
}

#[test]
fn records_of_the_old_formats_are_kafkas() {
    check_kit("legacy", "bare");
}

#[test]
fn records_of_a_cluster_are_kafkas() {
    check_kit("cluster", "n2-unclean");
}

fn arguments(path: &Path, filters: &[&str]) -> Vec<String> {
    let filters = filters.iter().map(|filter| (*filter).to_owned());
    filters.chain([path.display().to_string()]).collect()
}

fn offsets(path: &Path, filters: &[&str]) -> Vec<i64> {
    let (lines, outcome) = lines("dump", &arguments(path, filters));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    of_type(&lines, "record").iter().map(|line| line["offset"].as_i64().unwrap()).collect()
}

#[test]
fn filters_give_just_what_was_asked_for() {
    let unpacked = Kit::open("txn").state("clean").unpack();
    let path = unpacked.partition("txn-a-0");
    let (all, _) = lines("dump", &arguments(&path, &[]));
    let records = of_type(&all, "record");
    let select = |wanted: &dyn Fn(&Value) -> bool| -> Vec<i64> {
        let wanted = records.iter().filter(|line| wanted(line));
        wanted.map(|line| line["offset"].as_i64().unwrap()).collect()
    };
    let within = |key: &'static str, from: i64, to: i64| {
        move |line: &Value| (from..to).contains(&line[key].as_i64().unwrap())
    };
    assert_eq!(offsets(&path, &["--offsets", "100..=117"]), select(&within("offset", 100, 118)));
    assert_eq!(offsets(&path, &["--offsets", "42"]), [42]);
    let middle = records[records.len() / 2]["timestamp_ms"].as_i64().unwrap();
    let range = format!("{middle}..{}", middle + 5000);
    let expected = select(&within("timestamp_ms", middle, middle + 5000));
    assert!(!expected.is_empty() && expected.len() < records.len());
    assert_eq!(offsets(&path, &["--time", &range]), expected);
    let expected = select(&|line| line["producer_id"] == 1);
    assert!(!expected.is_empty());
    assert_eq!(offsets(&path, &["--producer-id", "1"]), expected);
    let key = records.iter().find_map(|line| line["key"].as_str()).unwrap();
    let expected = select(&|line| line["key"] == key);
    assert_eq!(offsets(&path, &["--key", key]), expected);
    let hex = format!("hex:{}", hex(key.as_bytes()));
    assert_eq!(offsets(&path, &["--key", &hex]), expected);
    let both = offsets(&path, &["--key", key, "--offsets", "0..200"]);
    assert!(both.len() < expected.len() && both.iter().all(|offset| expected.contains(offset)));
}

#[test]
fn batches_alone_are_printed_without_records() {
    let unpacked = Kit::open("txn").state("clean").unpack();
    let path = unpacked.partition("txn-a-0");
    let (lines, _) = lines("dump", &arguments(&path, &["--batches", "--offsets", "100..120"]));
    assert!(of_type(&lines, "record").is_empty());
    let batches = of_type(&lines, "batch");
    assert!(!batches.is_empty());
    for batch in batches {
        assert!(batch["last_offset"].as_i64() >= Some(100), "{batch}");
        assert!(batch["base_offset"].as_i64() < Some(120), "{batch}");
    }
}

#[test]
fn damage_is_named_and_the_rest_of_the_file_is_not_guessed_at() {
    let state = Kit::open("txn").state("crc");
    let unpacked = state.unpack();
    for partition in state.partitions() {
        let path = unpacked.partition(&partition);
        let (lines, outcome) = lines("dump", &[&path]);
        let problems = of_type(&lines, "problem");
        let Some(problem) = problems.first() else { continue };
        assert_eq!((outcome.code, &problem["code"]), (Some(1), &"crc_mismatch".into()));
        let offset = problem["offset"].as_i64().unwrap();
        let records = of_type(&lines, "record");
        assert!(records.iter().all(|record| record["offset"].as_i64() < Some(offset)));
        assert!(problem["path"].as_str().unwrap().starts_with(path.to_str().unwrap()));
        assert!(problem["position"].as_u64().is_some());
        return;
    }
    panic!("no partition of the state has a wrong checksum");
}

#[test]
fn whole_batches_behind_damage_are_salvaged_when_asked_for() {
    let unpacked = Kit::open("txn").state("crc").unpack();
    let path = unpacked.partition("txn-a-0");
    let whole = Kit::open("txn").state("unclean").unpack();
    let (expected, _) = lines("dump", &[whole.partition("txn-a-0")]);
    let (found, outcome) = lines("dump", &arguments(&path, &["--salvage"]));
    assert_eq!((of_type(&found, "problem").len(), outcome.code), (1, Some(1)));
    // One batch has a flipped bit.
    let batches = |lines| of_type(lines, "batch").len();
    assert_eq!(batches(&found) + 1, batches(&expected));
}

#[test]
fn the_tail_of_a_log_that_a_broker_writes_to_is_no_damage() {
    let unpacked = Kit::open("txn").state("torn").unpack();
    let path = unpacked.partition("txn-a-0");
    let (stopped, outcome) = lines("dump", &[&path]);
    assert_eq!((of_type(&stopped, "problem").len(), outcome.code), (1, Some(1)));
    let _held = Disk::new().lock(&unpacked.data().join(".lock")).unwrap();
    let (running, outcome) = lines("dump", &[&path]);
    assert_eq!((of_type(&running, "problem").len(), outcome.code), (0, Some(0)));
    assert_eq!(of_type(&running, "unfinished")[0]["code"], "torn_batch");
    assert_eq!(of_type(&running, "record").len(), of_type(&stopped, "record").len());
}

#[test]
fn records_of_kafkas_own_topics_are_decoded() {
    let unpacked = Kit::open("txn").state("clean").unpack();
    let names = |path: PathBuf| -> Vec<String> {
        let (lines, outcome) = lines("dump", &[&path]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let records = of_type(&lines, "record").into_iter();
        records.map(|line| line["decoded_value"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let offsets = names(unpacked.partition("__consumer_offsets-0"));
    assert!(offsets.contains(&"OffsetCommitValue".to_owned()), "{offsets:?}");
    assert!(offsets.contains(&"COMMIT".to_owned()), "{offsets:?}");
    let transactions = names(unpacked.partition("__transaction_state-0"));
    assert!(transactions.iter().all(|name| name == "TransactionLogValue"));
    let metadata = names(unpacked.metadata().join("__cluster_metadata-0"));
    for name in ["TopicRecord", "PartitionRecord", "LEADER_CHANGE", "NoOpRecord"] {
        assert!(metadata.iter().any(|found| found == name), "{name}");
    }
    // A copy elsewhere does not tell by its name.
    let copy = unpacked.root().join("copy");
    std::fs::rename(unpacked.partition("__transaction_state-0"), &copy).unwrap();
    let asked = arguments(&copy, &["--decode", "__transaction_state"]);
    let (lines, _) = lines("dump", &asked);
    assert_eq!(of_type(&lines, "record")[0]["decoded_value"]["name"], "TransactionLogValue");
}

#[test]
fn passwords_in_the_metadata_are_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("__cluster_metadata-0");
    std::fs::create_dir(&folder).unwrap();
    // A user's password, and a record of a newer release that nobody can look into.
    let user = b"\x01\x0b\x00\x02u\x01\x05Wern\x05Ovid\x05Zeno\x00\x00\x10\x00\x00";
    let newer = b"\x01\xc8\x01\x00sesame";
    let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
    builder.append(0, None, Some(user)).unwrap();
    builder.append(0, None, Some(newer)).unwrap();
    let mut log = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut log).unwrap();
    for name in ["00000000000000000000.log", "00000000000000000002-0000000001.checkpoint"] {
        std::fs::write(folder.join(name), &log).unwrap();
        for option in ["--full", "--json", "--decode=none"] {
            let outcome = tool::run(["dump", option, folder.join(name).to_str().unwrap()]);
            assert_eq!(outcome.stdout.matches("[hidden]").count(), 4, "{}", outcome.stdout);
            for secret in ["Wern", "Ovid", "Zeno", "V2Vyb", "sesame", "73657361"] {
                assert!(!outcome.stdout.contains(secret), "{secret}: {}", outcome.stdout);
            }
        }
    }
}

#[test]
fn side_files_are_printed_entry_by_entry() {
    let state = Kit::open("txn").state("unclean");
    let unpacked = state.unpack();
    let expectation = state.expectation("txn-a-0").unwrap();
    let dir = unpacked.partition("txn-a-0");
    let dump = |name: String, kind: &str, keys: &[&str]| -> Vec<Vec<i64>> {
        let (lines, outcome) = lines("dump", &[dir.join(name)]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let row = |line: &Value| keys.iter().map(|key| line[*key].as_i64().unwrap()).collect();
        of_type(&lines, kind).into_iter().map(row).collect()
    };
    for segment in &expectation.raw.segments {
        let base = segment.base_offset;
        let index = segment.index.as_ref().unwrap().entries.iter();
        assert_eq!(
            dump(format!("{base:020}.index"), "index_entry", &["offset", "position"]),
            index.map(|entry| vec![entry.0, entry.1]).collect::<Vec<_>>()
        );
        let times = segment.timeindex.as_ref().unwrap().entries.iter();
        assert_eq!(
            dump(format!("{base:020}.timeindex"), "timeindex_entry", &["timestamp_ms", "offset"]),
            times.map(|entry| vec![entry.0, entry.1]).collect::<Vec<_>>()
        );
        let Some(aborted) = &segment.txnindex else { continue };
        let keys = ["version", "producer_id", "first_offset", "last_offset", "last_stable_offset"];
        assert_eq!(
            dump(format!("{base:020}.txnindex"), "txnindex_entry", &keys),
            aborted.iter().map(|t| vec![i64::from(t.0), t.1, t.2, t.3, t.4]).collect::<Vec<_>>()
        );
    }
    for snapshot in &expectation.raw.snapshots {
        let keys = ["producer_id", "producer_epoch", "last_timestamp_ms", "coordinator_epoch"];
        let expected = snapshot.entries.iter().map(|entry| {
            let (epoch, coordinator) = (entry.producer_epoch, entry.coordinator_epoch);
            vec![entry.producer_id, epoch.into(), entry.last_timestamp, coordinator.into()]
        });
        let mut found = dump(snapshot.file.clone(), "producer", &keys);
        let mut expected: Vec<_> = expected.collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
    let epochs = expectation.raw.leader_epochs.unwrap();
    assert_eq!(
        dump("leader-epoch-checkpoint".to_owned(), "epoch", &["epoch", "start_offset"]),
        epochs.iter().map(|(epoch, start)| vec![i64::from(*epoch), *start]).collect::<Vec<_>>()
    );
    let (lines, _) = lines("dump", &[unpacked.data().join("recovery-point-offset-checkpoint")]);
    let points = of_type(&lines, "offset");
    let point = points.iter().find(|line| line["topic"] == "txn-a").unwrap();
    assert_eq!(point["offset"].as_i64(), expectation.recovery_point_checkpoint);
}

#[test]
fn damaged_side_files_are_problems() {
    let dir = tempfile::tempdir().unwrap();
    for (name, content, code) in [
        ("00000000000000000000.index", &[1; 11][..], "index_size"),
        ("00000000000000000000.txnindex", &[0; 33][..], "txnindex_size"),
        ("00000000000000000000.snapshot", b"\0\x01nothing", "snapshot_truncated"),
        ("leader-epoch-checkpoint", b"0\n5\n", "epoch_file"),
        ("recovery-point-offset-checkpoint", b"what", "checkpoint_file"),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        let (lines, outcome) = lines("dump", &[&path]);
        assert_eq!(outcome.code, Some(1), "{name}: {outcome:?}");
        assert_eq!(of_type(&lines, "problem")[0]["code"], code, "{name}");
    }
}

#[test]
fn a_bomb_is_not_opened_beyond_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let compression = siltstone::record::codec::Codec::Zstd.into();
    let options = BatchOptions { compression, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options).unwrap();
    builder.append(0, None, Some(&vec![0; 100 << 20])).unwrap();
    let mut log = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut log).unwrap();
    drop(builder);
    let path = dir.path().join("00000000000000000000.log");
    std::fs::write(&path, log).unwrap();
    let limit = ["--max-decompressed-bytes", "1000000"];
    let (lines, outcome) = lines("dump", &arguments(&path, &limit));
    assert_eq!(outcome.code, Some(1));
    assert_eq!(of_type(&lines, "problem")[0]["code"], "codec");
    assert!(of_type(&lines, "record").is_empty());
}
