//! A log that is fed the batches of a fixture, one append each and closed where Kafka was stopped,
//! has the files that Kafka had: logs, indexes, snapshots and epochs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use siltstone::io::Disk;
use siltstone::log::{Log, LogConfig, OpenOptions};
use siltstone::record::validate::Batches;
use siltstone::state::{LeaderEpochs, ProducerStateConfig};
use siltstone_tests::kits::{Kit, State};
use siltstone_tests::sha256;

use crate::Partition;

/// Partitions whose files another hand has changed: compaction, deleted records, segments that went
/// to remote storage, or batches that were not appended one by one.
fn is_written_plainly(partition: &Partition) -> bool {
    let config = &partition.expectation.config;
    let is = |name: &str, value: &str| config.get(name).is_some_and(|v| v.contains(value));
    let segments = &partition.expectation.raw.segments;
    let starts_at_zero = segments.first().is_some_and(|segment| segment.base_offset == 0);
    !is("cleanup.policy", "compact") && starts_at_zero && !partition.name.starts_with("delrec")
}

fn check(kit: &str, state: &str) {
    let state = Kit::open(kit).state(state);
    let mut count = 0;
    for name in state.partitions() {
        let expectation = state.expectation(&name).expect("an expectation");
        let partition = Partition { state: state.clone(), name, expectation };
        if is_written_plainly(&partition) {
            check_partition(&state, &partition);
            count += 1;
        }
    }
    assert!(count > 0, "{kit} has a partition to compare");
}

#[test]
fn files_of_plain_topics_are_kafkas_after_a_clean_stop() {
    check("basic", "clean");
}

#[test]
fn files_of_plain_topics_are_kafkas_while_it_runs() {
    check("basic", "unclean");
}

#[test]
fn files_of_transactional_topics_are_kafkas_after_a_clean_stop() {
    check("txn", "clean");
}

#[test]
fn files_of_transactional_topics_are_kafkas_while_it_runs() {
    check("txn", "unclean");
}

#[test]
fn files_of_topics_with_tiny_indexes_are_kafkas() {
    check("tinyindex", "clean");
    check("tinyindex", "unclean");
}

/// Appends the batches of all segments to a new log, closing and opening it where an epoch begins.
fn check_partition(state: &State, partition: &Partition) {
    let label = partition.label();
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join(&partition.name);
    let config = config(&partition.expectation.config);
    let options = OpenOptions {
        now_ms: state.at_ms(),
        producers: ProducerStateConfig {
            producer_id_expiration_ms: i64::from(i32::MAX),
            ..ProducerStateConfig::default()
        },
        ..OpenOptions::default()
    };
    let open = || {
        Log::open(Arc::new(Disk::new()), &dir, config.clone(), &options)
            .unwrap_or_else(|error| panic!("{label}: {error}"))
    };
    let epochs = partition.read("leader-epoch-checkpoint").expect("a checkpoint");
    let epochs = LeaderEpochs::parse(&epochs).expect("epochs");
    let mut starts = epochs.entries().iter().copied().peekable();
    let mut log = open();
    for segment in &partition.expectation.raw.segments {
        let bytes = partition.read(&crate::file_name(segment.base_offset, "log")).expect("a log");
        let end = usize::try_from(segment.batches_end).expect("a size");
        for batch in Batches::new(&bytes[..end]) {
            let batch = batch.expect("a batch");
            while let Some(start) =
                starts.next_if(|start| start.start_offset <= batch.header.base_offset)
            {
                log = restart(log, start.start_offset > 0, &open);
                log.assign_epoch_start(start.epoch, start.start_offset).expect("an epoch");
            }
            log.append_as_follower(batch.bytes, i32::MAX, options.now_ms)
                .unwrap_or_else(|error| panic!("{label}: {error}"));
        }
    }
    for start in starts {
        log = restart(log, start.start_offset > 0, &open);
        log.assign_epoch_start(start.epoch, start.start_offset).expect("an epoch");
    }
    if state.is_clean() {
        log.close().expect("a clean stop");
    } else {
        log.flush(true, options.now_ms).expect("a flush");
    }
    compare(&label, &dir, partition);
}

fn restart(log: Log, is_needed: bool, open: &dyn Fn() -> Log) -> Log {
    if !is_needed {
        return log;
    }
    log.close().expect("a clean stop");
    open()
}

fn config(config: &BTreeMap<String, String>) -> LogConfig {
    let number = |name: &str| config.get(name).map(|v| v.parse::<u32>().expect(name));
    let defaults = LogConfig::default();
    LogConfig {
        segment_bytes: number("internal.segment.bytes")
            .or(number("segment.bytes"))
            .unwrap_or(defaults.segment_bytes),
        segment_index_bytes: number("segment.index.bytes").unwrap_or(defaults.segment_index_bytes),
        index_interval_bytes: number("index.interval.bytes")
            .unwrap_or(defaults.index_interval_bytes),
        ..defaults
    }
}

fn compare(label: &str, dir: &Path, partition: &Partition) {
    let mut wrong = Vec::new();
    let mut got: BTreeMap<String, Vec<u8>> = fs::read_dir(dir)
        .expect("the partition")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path.file_name().expect("a name").display().to_string();
            (name, fs::read(&path).expect("a file"))
        })
        .collect();
    let is_preallocated = partition.expectation.config.contains_key("preallocate");
    for (name, size, sum) in &partition.expectation.raw.files {
        if name == "partition.metadata" {
            continue;
        }
        let Some(bytes) = got.remove(name) else {
            wrong.push(format!("{name} is missing"));
            continue;
        };
        if sha256(&bytes) == *sum {
            continue;
        }
        let kafkas = partition.read(name).expect("the file");
        // We do not let the log of a preallocated segment end in zeros.
        let is_front = kafkas.get(..bytes.len()) == Some(&bytes[..])
            && kafkas[bytes.len()..].iter().all(|byte| *byte == 0);
        if is_preallocated && name.ends_with(".log") && is_front {
            continue;
        }
        let at = bytes.iter().zip(&kafkas).position(|(a, b)| a != b);
        wrong.push(format!("{name}: {} bytes, not {size}; differs at {at:?}", bytes.len()));
    }
    wrong.extend(got.keys().map(|name| format!("{name} should not be there")));
    assert!(wrong.is_empty(), "{label}:\n{}", wrong.join("\n"));
}
