//! A log that is fed the batches of a fixture, one append each and closed where Kafka was stopped,
//! has the files that Kafka had: logs, indexes, snapshots and epochs. It is fed them as a follower,
//! and as the leader that Kafka was.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use siltstone::io::Disk;
use siltstone::log::{
    AppendError, AppendInfo, AppendScratch, LeaderAppend, Log, LogConfig, OpenOptions,
};
use siltstone::record::validate::{
    AppendOrigin, BatchView, Batches, set_last_offset, set_leader_epoch, set_max_timestamp,
};
use siltstone::record::{BatchHeader, TimestampType};
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

/// How a log comes by its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// As a follower, which was restarted where an epoch begins.
    Follower,
    /// As a follower that stayed up through all epochs.
    FollowerThatStays,
    /// As their leader, which was restarted where an epoch begins.
    Leader,
}

/// Compares the partitions of a state that are written plainly; gives how many. Those of kit
/// `legacy` no broker has appended, and two states of `cluster` are of nodes that cut logs.
fn check(kit: &str, state: &str, role: Role) -> usize {
    let state = Kit::open(kit).state(state);
    let mut count = 0;
    for name in state.partitions() {
        let expectation = state.expectation(&name).expect("an expectation");
        let partition = Partition { state: state.clone(), name, expectation };
        if is_written_plainly(&partition) {
            check_partition(&state, &partition, role);
            count += 1;
        }
    }
    count
}

#[test]
fn files_of_plain_topics_are_kafkas_after_a_clean_stop() {
    assert_eq!(check("basic", "clean", Role::Follower), 13);
}

#[test]
fn files_of_plain_topics_are_kafkas_while_it_runs() {
    assert_eq!(check("basic", "unclean", Role::Follower), 13);
}

#[test]
fn files_of_transactional_topics_are_kafkas_after_a_clean_stop() {
    assert_eq!(check("txn", "clean", Role::Follower), 6);
}

#[test]
fn files_of_transactional_topics_are_kafkas_while_it_runs() {
    assert_eq!(check("txn", "unclean", Role::Follower), 6);
}

#[test]
fn files_of_topics_with_tiny_indexes_are_kafkas() {
    assert_eq!(check("tinyindex", "clean", Role::Follower), 2);
    assert_eq!(check("tinyindex", "unclean", Role::Follower), 2);
}

#[test]
fn files_of_replicas_that_stayed_up_are_kafkas() {
    // Node 1 until it was stopped; node 2 until it was killed, and lost what nobody else had.
    assert_eq!(check("cluster", "n1-clean", Role::FollowerThatStays), 4);
    assert_eq!(check("cluster", "n2-unclean", Role::FollowerThatStays), 3);
}

#[test]
fn files_of_tiered_topics_are_kafkas_before_segments_leave_the_disk() {
    assert_eq!(check("tiered", "clean", Role::Follower), 4);
    assert_eq!(check("tiered", "unclean", Role::Follower), 3);
}

#[test]
fn files_of_a_leader_are_kafkas() {
    assert_eq!(check("basic", "clean", Role::Leader), 13);
    assert_eq!(check("basic", "unclean", Role::Leader), 13);
}

#[test]
fn files_of_a_leader_of_transactions_are_kafkas() {
    assert_eq!(check("txn", "clean", Role::Leader), 6);
    assert_eq!(check("txn", "unclean", Role::Leader), 6);
}

#[test]
fn files_of_a_leader_of_other_topics_are_kafkas() {
    assert_eq!(check("tinyindex", "clean", Role::Leader), 2);
    assert_eq!(check("compact", "clean", Role::Leader), 1);
    assert_eq!(check("tiered", "clean", Role::Leader), 4);
}

/// Appends the batches of all segments to a new log, closing and opening it where an epoch begins.
fn check_partition(state: &State, partition: &Partition, role: Role) {
    let label = partition.label();
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join(&partition.name);
    let config = config(&partition.expectation.config);
    let options = OpenOptions {
        now_ms: state.at_ms(),
        producers: ProducerStateConfig {
            producer_id_expiration_ms: i64::from(i32::MAX),
            transaction_verification_enabled: false,
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
                log =
                    restart(log, role != Role::FollowerThatStays && start.start_offset > 0, &open);
                log.assign_epoch_start(start.epoch, start.start_offset).expect("an epoch");
            }
            append(&log, &batch, role, options.now_ms)
                .unwrap_or_else(|error| panic!("{label}: {error}"));
        }
    }
    for start in starts {
        log = restart(log, role != Role::FollowerThatStays && start.start_offset > 0, &open);
        log.assign_epoch_start(start.epoch, start.start_offset).expect("an epoch");
    }
    if state.is_clean() {
        log.close().expect("a clean stop");
    } else {
        log.flush(true, options.now_ms).expect("a flush");
    }
    compare(&label, &dir, partition);
}

/// Appends a batch as it came: to a leader, from a producer or coordinator, without an offset.
fn append(
    log: &Log,
    batch: &BatchView<'_>,
    role: Role,
    now_ms: i64,
) -> Result<AppendInfo, AppendError> {
    if role != Role::Leader {
        return log.append_as_follower(batch.bytes, i32::MAX, now_ms);
    }
    let BatchHeader { leader_epoch, max_timestamp, last_offset_delta, .. } = batch.header;
    let mut sent = batch.bytes.to_vec();
    assert!(set_last_offset(&mut sent, i64::from(last_offset_delta)));
    assert!(set_leader_epoch(&mut sent, -1));
    assert!(set_max_timestamp(&mut sent, TimestampType::CreateTime, max_timestamp));
    let is_stamped = log.config().timestamp_type == TimestampType::LogAppendTime;
    let now_ms = if is_stamped { max_timestamp } else { now_ms };
    let mut append = LeaderAppend::client(leader_epoch, now_ms);
    if batch.header.is_control() {
        append.origin = AppendOrigin::Coordinator;
        append.transaction_version = Some(2);
    }
    log.append_as_leader(&mut sent, &append, &mut AppendScratch::default())
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
        timestamp_type: match config.get("message.timestamp.type") {
            Some(kind) if kind == "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        },
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
