//! `ls` and `stat`: what lies in log directories, and in numbers.

use std::collections::BTreeMap;

use serde_json::Value;
use siltstone::io::{Disk, Storage};
use siltstone_tests::file_sums;
use siltstone_tests::kits::Kit;

use crate::reading::{lines, of_type};

fn by_name(lines: &[Value]) -> BTreeMap<String, &Value> {
    let partitions = of_type(lines, "partition").into_iter();
    partitions.map(|line| (line["name"].as_str().unwrap().to_owned(), line)).collect()
}

#[test]
fn logs_end_where_kafka_ends_them() {
    for (kit, state) in [
        ("basic", "unclean"),
        ("basic", "torn"),
        ("basic", "noindex"),
        ("txn", "torn"),
        ("compact", "clean"),
        ("tiered", "bare"),
        ("cluster", "n2-unclean"),
        ("legacy", "bare"),
    ] {
        let state = Kit::open(kit).state(state);
        let unpacked = state.unpack();
        let (lines, outcome) = lines("ls", &[unpacked.data()]);
        assert_eq!(outcome.code, Some(0), "{}: {outcome:?}", state.label());
        let listed = by_name(&lines);
        for partition in state.partitions() {
            let Some(expectation) = state.expectation(&partition) else { continue };
            let line = listed[&partition];
            let label = format!("{} {partition}", state.label());
            let Some(loaded) = expectation.loaded.ok() else { continue };
            assert_eq!(line["end_offset"].as_i64(), Some(loaded.log_end_offset), "{label}");
            assert_eq!(line["segments"], expectation.raw.segments.len(), "{label}");
            let sizes = expectation.raw.files.iter().map(|file| file.1);
            assert_eq!(line["size_bytes"].as_u64(), Some(sizes.sum()), "{label}");
            // The log start of a tiered log lies before its first local segment.
            if kit != "tiered" {
                let start = Some(loaded.log_start_offset);
                assert_eq!(line["first_offset"].as_i64(), start, "{label}");
            }
        }
    }
}

#[test]
fn segments_are_listed_with_their_files() {
    let state = Kit::open("txn").state("clean");
    let unpacked = state.unpack();
    let expectation = state.expectation("txn-b-0").unwrap();
    let path = unpacked.partition("txn-b-0");
    let (lines, _) = lines("ls", &["--segments".into(), path.into_os_string()]);
    let segments = of_type(&lines, "segment");
    assert_eq!(segments.len(), expectation.raw.segments.len());
    for (line, segment) in segments.iter().zip(&expectation.raw.segments) {
        assert_eq!(line["base_offset"], segment.base_offset);
        assert_eq!(line["log_size_bytes"], segment.size);
        let index = segment.index.as_ref().map(|index| index.size);
        assert_eq!(line["index_size_bytes"].as_u64(), index);
        let last = segment.timeindex.as_ref().and_then(|index| index.entries.last());
        assert_eq!(line["largest_timestamp_ms"].as_i64(), last.map(|entry| entry.0));
    }
}

#[test]
fn folders_are_told_apart_and_an_unknown_one_is_a_problem() {
    let unpacked = Kit::open("cluster").state("n2-unclean").unpack();
    let data = unpacked.data();
    let id = "0123456789abcdef0123456789abcdef";
    for (name, kind) in [
        (format!("orders-0.{id}-delete"), "delete"),
        (format!("orders-1.{id}-stray"), "stray"),
        (format!("orders-2.{id}-future"), "future"),
        ("lost+found".to_owned(), "unknown"),
        ("remote-log-index-cache".to_owned(), ""),
    ] {
        std::fs::create_dir(data.join(&name)).unwrap();
        let (lines, outcome) = lines("ls", &[&data]);
        let listed = by_name(&lines);
        assert_eq!(listed.get(&name).map_or("", |line| line["kind"].as_str().unwrap()), kind);
        // From the unknown folder on.
        let is_sound = ["delete", "stray", "future"].contains(&kind);
        assert_eq!(outcome.code, Some(i32::from(!is_sound)), "{name}");
    }
    let (lines, _) = lines("ls", &[&data]);
    let counts = &of_type(&lines, "log_dir")[0]["folders"];
    let kinds = ["live", "delete", "stray", "future", "unknown"];
    assert_eq!(kinds.map(|kind| counts[kind].as_u64().unwrap()), [3, 1, 1, 1, 1]);
}

#[test]
fn a_log_directory_tells_whose_it_is_and_how_it_was_left() {
    let unpacked = Kit::open("txn").state("clean").unpack();
    let data = unpacked.data();
    let dir = || lines("ls", &[&data]).0[0].clone();
    let clean = dir();
    assert_eq!((&clean["node_id"], &clean["clean_shutdown"]), (&1.into(), &true.into()));
    assert_eq!(clean["broker_running"], false);
    let _held = Disk::new().lock(&data.join(".lock")).unwrap();
    std::fs::remove_file(data.join(".kafka_cleanshutdown")).unwrap();
    let running = dir();
    assert_eq!(running["clean_shutdown"], false);
    assert_eq!(running["broker_running"], true);
}

#[test]
fn the_metadata_tells_what_does_not_belong_here_and_what_is_missing() {
    let unpacked = Kit::open("cluster").state("n2-unclean").unpack();
    let data = unpacked.data();
    let metadata = unpacked.metadata();
    let list = || {
        let options = ["--metadata".into(), metadata.clone().into_os_string()];
        let paths = [data.clone().into_os_string()];
        lines("ls", &options.into_iter().chain(paths).collect::<Vec<_>>()).0
    };
    let all = list();
    assert!(of_type(&all, "missing").is_empty());
    let notes = |lines: &[Value], name: &str| by_name(lines)[name]["notes"].to_string();
    assert_eq!(notes(&all, "repl-0"), "[]");
    assert!(all[0]["metadata"]["read_to"].as_i64() > Some(0));
    std::fs::rename(data.join("repl-0"), data.join("repl-7")).unwrap();
    let moved = list();
    assert!(notes(&moved, "repl-7").contains("stray"), "{}", notes(&moved, "repl-7"));
    assert_eq!(of_type(&moved, "missing")[0]["name"], "repl-0");
}

#[test]
fn stat_counts_what_kafka_reads() {
    for (kit, state) in [("basic", "clean"), ("txn", "clean"), ("compact", "unclean")] {
        let state = Kit::open(kit).state(state);
        let unpacked = state.unpack();
        let (lines, outcome) = lines("stat", &[unpacked.data()]);
        assert_eq!(outcome.code, Some(0), "{}: {outcome:?}", state.label());
        let counted = by_name(&lines);
        for partition in state.partitions() {
            let Some(expectation) = state.expectation(&partition) else { continue };
            let (line, label) = (counted[&partition], format!("{} {partition}", state.label()));
            let batches: Vec<_> =
                expectation.raw.segments.iter().flat_map(|s| &s.batches).collect();
            assert_eq!(line["batches"], batches.len(), "{label}");
            let records = expectation.raw.segments.iter().flat_map(|segment| &segment.records);
            let data = records.filter(|record| record.control_type.is_none()).count();
            assert_eq!(line["records"], data, "{label}");
            let largest = batches.iter().map(|batch| batch.max_timestamp).max();
            let largest = largest.filter(|timestamp| *timestamp >= 0);
            assert_eq!(line["max_timestamp_ms"].as_i64(), largest, "{label}");
            let control = batches.iter().filter(|batch| batch.control).count();
            assert_eq!(line["control_batches"], control, "{label}");
            let of_codec = |name: &str| batches.iter().filter(|b| b.codec == name).count();
            for name in ["none", "gzip", "snappy", "lz4", "zstd"] {
                let count = line["codecs"][name]["batches"].as_u64().unwrap_or_default();
                assert_eq!(count, of_codec(name) as u64, "{label} {name}");
            }
            let open = expectation.loaded.ok().map(|loaded| loaded.ongoing_txns.len());
            assert_eq!(line["open_transactions"].as_array().map(Vec::len), open, "{label}");
            let epochs = expectation.raw.leader_epochs.unwrap_or_default().len();
            assert_eq!(line["epochs"].as_array().map(Vec::len), Some(epochs), "{label}");
        }
        let total = of_type(&lines, "total")[0];
        assert_eq!(total["partitions"], counted.len());
        let sum: u64 = counted.values().map(|line| line["records"].as_u64().unwrap()).sum();
        assert_eq!(total["records"], sum);
    }
}

#[test]
fn verbs_that_read_change_nothing() {
    let unpacked = Kit::open("txn").state("torn").unpack();
    let (data, other) = (unpacked.data(), Kit::open("txn").state("unclean").unpack());
    let before = file_sums(unpacked.root());
    for verb in ["ls", "stat", "dump", "txns", "verify"] {
        lines(verb, &[&data]);
        assert_eq!(file_sums(unpacked.root()), before, "{verb}");
    }
    lines("diff", &[&data, &other.data()]);
    assert_eq!(file_sums(unpacked.root()), before, "diff");
}
