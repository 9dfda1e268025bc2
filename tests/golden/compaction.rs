//! A log that Kafka has compacted twice: what it had in between, compacted here, is what it had at
//! the end, logs and indexes.
//!
//! The kit has the log after a first stop, and again after more was appended and compacted. The
//! segments that the second round found compacted are those of the first stop. Of those that it
//! found dirty, what Kafka has left of them serves: of each key the last record is there. They are
//! smaller than they were then, so that the size of a segment is told for each topic, lest more of
//! them become one than Kafka put together.

use std::fs;
use std::sync::Arc;

use siltstone::io::Disk;
use siltstone::log::{Cleaner, Log, LogConfig, OpenOptions};
use siltstone::state::{OffsetCheckpoint, ProducerStateConfig};
use siltstone_tests::kits::{Kit, State};

use crate::{Partition, file_name};

const CHECKPOINT: &str = "data/cleaner-offset-checkpoint";

fn checkpoint(state: &State, topic: &str) -> i64 {
    let bytes = state.read(CHECKPOINT).expect("a checkpoint");
    OffsetCheckpoint::parse(&bytes).expect("a checkpoint").get(topic, 0).expect("a line")
}

fn partition(state: &State, name: &str) -> Partition {
    let expectation = state.expectation(name).expect("an expectation");
    Partition { state: state.clone(), name: name.to_owned(), expectation }
}

/// The log of every segment, with its base offset.
fn logs(partition: &Partition) -> Vec<(i64, Vec<u8>)> {
    let segments = &partition.expectation.raw.segments;
    let logs = segments.iter().map(|segment| {
        let bytes = partition.read(&file_name(segment.base_offset, "log")).expect("a log");
        let end = usize::try_from(segment.batches_end).expect("a size");
        (segment.base_offset, bytes[..end].to_vec())
    });
    logs.collect()
}

/// `now_ms` is the time of Kafka's round, as its delete horizons tell it.
fn check(topic: &str, segment_bytes: u32, now_ms: Option<i64>) {
    let kit = Kit::open("compact");
    let (first, second) = (kit.state("clean"), kit.state("unclean"));
    let name = format!("{topic}-0");
    let (before, after) = (partition(&first, &name), partition(&second, &name));
    let (dirty, end) = (checkpoint(&first, topic), checkpoint(&second, topic));
    let now_ms = now_ms.unwrap_or(second.at_ms());
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join(&name);
    fs::create_dir(&dir).expect("a directory");
    let old = logs(&before).into_iter().filter(|(base, _)| *base < dirty);
    let kafkas = logs(&after);
    let new = kafkas.iter().filter(|(base, _)| *base >= dirty).cloned();
    for (base, bytes) in old.chain(new) {
        fs::write(dir.join(file_name(base, "log")), bytes).expect("a file");
    }
    let options = OpenOptions {
        clean_shutdown: false,
        now_ms,
        producers: ProducerStateConfig {
            producer_id_expiration_ms: i64::from(i32::MAX),
            ..ProducerStateConfig::default()
        },
        ..OpenOptions::default()
    };
    let number = |name: &str| after.expectation.config[name].parse::<u32>().expect("a number");
    let config = LogConfig {
        compact: true,
        delete: false,
        segment_bytes,
        segment_index_bytes: number("segment.index.bytes"),
        index_interval_bytes: number("index.interval.bytes"),
        delete_retention_ms: i64::from(number("delete.retention.ms")),
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    };
    let log = Log::open(Arc::new(Disk::new()), &dir, config, &options).expect("a log");
    log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
    let range = log.cleanable(Some(dirty), now_ms).expect("a range");
    assert_eq!((range.first_dirty_offset, range.first_uncleanable_offset), (dirty, end));
    let done = log.compact(&mut Cleaner::default(), &range, now_ms).expect("a round");
    assert_eq!(done.end_offset, end);
    log.delete_due_files(i64::MAX).expect("files that go");
    let bases: Vec<i64> = log.segments().iter().map(|segment| segment.base_offset()).collect();
    assert_eq!(bases, kafkas.iter().map(|(base, _)| *base).collect::<Vec<_>>(), "{topic}");
    // Kafka saw the transactions of the dirty segments before their records went, we do not.
    let compared_to = if topic == "cmp-txn" { dirty } else { end };
    for (base, _) in kafkas.iter().filter(|(base, _)| *base < compared_to) {
        for suffix in ["log", "index", "timeindex", "txnindex"] {
            let name = file_name(*base, suffix);
            let ours = fs::read(dir.join(&name)).ok();
            let kafkas = after.read(&name);
            assert!(ours == kafkas, "{topic} {name} is not Kafka's");
        }
    }
}

#[test]
fn keys_without_a_producer_are_compacted_to_kafkas_bytes() {
    check("cmp-plain", 16_384, None);
}

#[test]
fn compressed_batches_are_compacted_to_kafkas_bytes() {
    check("cmp-zstd", 12_288, None);
}

#[test]
fn tombstones_are_compacted_to_kafkas_bytes() {
    check("cmp-tomb", 12_288, Some(1_795_991_580_316));
}

#[test]
fn transactions_are_compacted_to_kafkas_bytes() {
    check("cmp-txn", 11_700, Some(1_795_991_581_061));
}
