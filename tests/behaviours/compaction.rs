//! The log cleaner: rows CL and CM. `P {1,2}` is a batch of producer P with two records of these
//! keys.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use siltstone::Kind;
use siltstone::index::AbortedTxn;
use siltstone::io::Storage;
use siltstone::log::{Cleanable, Cleaner, CleanerOptions, Compacted, LeaderAppend, Log, LogConfig};
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::{Codec, Compressor};
use siltstone::record::validate::Batches;
use siltstone::record::{BatchHeader, BatchReader};
use siltstone_tests::live::{DIR, NOW_MS, TestLog};

const HOUR_MS: i64 = 3_600_000;
const RETENTION_MS: i64 = 86_400_000;

/// A batch that is told by its keys.
#[derive(Clone, Debug)]
struct Keys {
    options: BatchOptions,
    keys: Vec<Vec<u8>>,
    timestamp: i64,
    is_tombstone: bool,
    value: Vec<u8>,
}

fn keys(keys: &[i64]) -> Keys {
    Keys {
        options: BatchOptions::default(),
        keys: keys.iter().map(|key| key.to_string().into_bytes()).collect(),
        timestamp: NOW_MS,
        is_tombstone: false,
        value: b"value".to_vec(),
    }
}

impl Keys {
    fn of(mut self, producer_id: i64, base_sequence: i32) -> Self {
        self.options.producer_id = producer_id;
        self.options.producer_epoch = 0;
        self.options.base_sequence = base_sequence;
        self
    }

    fn build(&self) -> Vec<u8> {
        let mut builder = BatchBuilder::new(self.options).expect("options");
        for key in &self.keys {
            let value = (!self.is_tombstone).then_some(&*self.value);
            builder.append(self.timestamp, Some(key), value).expect("a record");
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).expect("a batch");
        bytes
    }
}

/// A compacted log and its cleaner.
struct Topic {
    log: TestLog,
    cleaner: Cleaner,
    sequences: BTreeMap<i64, i32>,
}

impl Topic {
    fn new() -> Self {
        Topic::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut LogConfig)) -> Self {
        let log = TestLog::with(|config| {
            config.compact = true;
            config.delete = false;
            config.file_delete_delay_ms = 0;
            change(config);
        });
        Topic { log, cleaner: Cleaner::default(), sequences: BTreeMap::new() }
    }

    /// With a map that takes three quarters of so many keys.
    fn map_slots(mut self, count: usize) -> Self {
        let options = CleanerOptions {
            dedupe_buffer_bytes: count * 24,
            load_factor: 0.75,
            ..CleanerOptions::default()
        };
        self.cleaner = Cleaner::new(options);
        self
    }

    fn append(&mut self, batch: &Keys) {
        let append = LeaderAppend::client(0, self.log.now_ms);
        self.log.try_append(batch.build(), append).expect("a batch that is taken");
    }

    /// Records without a producer, one a batch.
    fn plain(&mut self, each: &[i64]) {
        each.iter().for_each(|key| self.append(&keys(&[*key])));
    }

    /// A batch of a transaction.
    fn txn(&mut self, producer_id: i64, of: &[i64]) {
        let sequence = self.sequences.entry(producer_id).or_insert(0);
        let mut batch = keys(of).of(producer_id, *sequence);
        *sequence += i32::try_from(of.len()).expect("few");
        batch.options.is_transactional = true;
        self.append(&batch);
    }

    fn end(&mut self, producer_id: i64, abort: bool) {
        self.log.end(producer_id, 0, abort);
    }

    fn roll(&self) {
        self.log.log().roll(NOW_MS).expect("a roll");
    }

    /// From `dirty` to the active segment, as Kafka's tests clean.
    fn try_clean(&mut self, dirty: i64, now_ms: i64) -> siltstone::Result<Compacted> {
        let log = self.log.log();
        let active = log.segments().last().expect("a segment").base_offset();
        let range = Cleanable {
            first_dirty_offset: dirty,
            first_uncleanable_offset: active,
            checkpoint_is_stale: false,
            clean_bytes: 0,
            cleanable_bytes: 1,
            compaction_delay_ms: 0,
            min_dirty_ratio: 0.0,
        };
        let done = log.compact(&mut self.cleaner, &range, now_ms)?;
        log.delete_due_files(i64::MAX).expect("files that go");
        Ok(done)
    }

    fn clean(&mut self, dirty: i64, now_ms: i64) -> i64 {
        self.try_clean(dirty, now_ms).expect("a log that is compacted").end_offset
    }

    /// Two rounds, the second when markers may go.
    fn clean_twice(&mut self, dirty: i64) -> i64 {
        self.clean(dirty, NOW_MS);
        self.clean(dirty, NOW_MS + RETENTION_MS + 1)
    }

    fn headers(&self) -> Vec<BatchHeader> {
        self.read(&mut |_, _| ())
    }

    fn read(
        &self,
        see: &mut dyn FnMut(&BatchHeader, &siltstone::record::Record<'_>),
    ) -> Vec<BatchHeader> {
        let mut headers: Vec<BatchHeader> = Vec::new();
        let mut reader = BatchReader::new(1 << 26);
        let log = self.log.log();
        let mut offset = log.log_start_offset();
        while offset < log.log_end_offset() {
            let fetched = self.log.read(offset);
            if fetched.bytes.is_empty() {
                break;
            }
            for batch in Batches::new(&fetched.bytes) {
                let batch = batch.expect("a batch");
                assert!(batch.header.base_offset >= offset, "batches rise");
                offset = batch.header.next_offset();
                reader
                    .read(&batch.header, batch.bytes, &mut |record| {
                        see(&batch.header, record);
                        ControlFlow::Continue(())
                    })
                    .expect("records");
                headers.push(batch.header);
            }
        }
        headers
    }

    fn offsets(&self) -> Vec<i64> {
        let mut offsets = Vec::new();
        self.read(&mut |_, record| offsets.push(record.offset));
        offsets
    }

    fn last_offsets(&self) -> Vec<i64> {
        self.headers().iter().map(BatchHeader::last_offset).collect()
    }

    fn base_offsets(&self) -> Vec<i64> {
        self.headers().iter().map(|header| header.base_offset).collect()
    }

    /// The keys of all records with a value.
    fn keys(&self) -> Vec<i64> {
        let mut found = Vec::new();
        self.read(&mut |header, record| {
            if !header.is_control() && record.value.is_some() {
                let key = String::from_utf8(record.key.expect("a key").to_vec()).expect("digits");
                found.push(key.parse().expect("a number"));
            }
        });
        found
    }

    fn aborted(&self) -> Vec<AbortedTxn> {
        self.log.log().aborted_transactions(0, i64::MAX).expect("an index")
    }
}

fn aborted(producer_id: i64, first: i64, last: i64, stable: i64) -> AbortedTxn {
    AbortedTxn { producer_id, first_offset: first, last_offset: last, last_stable_offset: stable }
}

fn three_producers() -> (Topic, [Keys; 3]) {
    let mut topic = Topic::new();
    let batches = [keys(&[1, 2, 3]).of(1, 0), keys(&[3, 1, 4]).of(2, 0), keys(&[1, 4]).of(3, 0)];
    batches.iter().for_each(|batch| topic.append(batch));
    topic.roll();
    topic.clean(0, NOW_MS);
    (topic, batches)
}

#[test]
fn duplicates_are_known_after_compaction() {
    // spec: behaviours CL-003, CL-004
    let (mut topic, batches) = three_producers();
    let check = |topic: &Topic| {
        assert_eq!(topic.last_offsets(), [2, 5, 7]);
        assert_eq!(topic.keys(), [2, 3, 1, 4]);
        assert_eq!(topic.offsets(), [1, 3, 6, 7]);
        let sequences: Vec<(i64, i32)> = topic
            .headers()
            .iter()
            .map(|header| (header.producer_id, header.last_sequence()))
            .collect();
        assert_eq!(sequences, [(1, 2), (2, 2), (3, 1)]);
    };
    check(&topic);
    for is_clean in [true, false] {
        if is_clean {
            topic.log.reopen();
        } else {
            topic.log.crash(0);
        }
        check(&topic);
        for (batch, expected) in batches.iter().zip([(0, 2), (3, 5), (6, 7)]) {
            let append = LeaderAppend::client(0, NOW_MS);
            let info = topic.log.try_append(batch.build(), append).expect("a duplicate");
            assert!(info.is_duplicate);
            assert_eq!((info.first_offset, info.last_offset), (Some(expected.0), expected.1));
        }
    }
}

/// Script M of the catalogue.
fn script_m() -> Topic {
    let mut topic = Topic::with(|config| config.delete_retention_ms = 50_000).map_slots(4);
    topic.txn(1, &[1, 2]);
    topic.txn(2, &[2, 3]);
    topic.txn(1, &[3, 4]);
    topic.end(1, false);
    topic.end(2, false);
    topic.txn(1, &[2, 3]);
    topic.end(1, true);
    topic.txn(2, &[4, 5]);
    topic.txn(1, &[5, 6]);
    topic.end(1, false);
    topic.end(2, true);
    topic.txn(2, &[6, 7]);
    topic.end(2, false);
    topic.roll();
    topic
}

#[test]
fn a_round_ends_where_the_map_is_full() {
    // spec: behaviours CL-006, CL-007, CL-008
    let mut topic = script_m();
    let tail = [13, 14, 15, 16, 17, 18, 19];
    assert_eq!(topic.clean(0, NOW_MS), 4);
    assert_eq!(topic.base_offsets(), [0, 2, 4, 6, 7, 10, 13, 15, 16, 17, 19]);
    assert_eq!(topic.offsets(), [&[0, 2, 3, 4, 5, 6, 7, 10], &tail[..]].concat());
    assert_eq!(topic.aborted(), [aborted(1, 8, 10, 11), aborted(2, 11, 16, 17)]);
    assert_eq!(topic.clean(4, NOW_MS), 14);
    assert_eq!(topic.base_offsets(), [0, 2, 4, 6, 7, 10, 13, 15, 16, 17, 19]);
    assert_eq!(topic.offsets(), [&[0, 2, 4, 5, 6, 7, 10], &tail[..]].concat());
    assert_eq!(topic.aborted(), []);
    assert_eq!(topic.clean(14, NOW_MS + 50_000), 20);
    assert_eq!(topic.base_offsets(), [0, 2, 4, 6, 7, 13, 15, 17, 19]);
    assert_eq!(topic.offsets(), [0, 2, 4, 5, 6, 7, 13, 15, 17, 18, 19]);
    assert_eq!(topic.aborted(), []);
}

#[test]
fn transactions_over_segments_go_where_their_marker_is_known() {
    // spec: behaviours CL-010, CL-011
    let mut topic = Topic::new();
    topic.txn(1, &[1, 2]);
    topic.txn(3, &[2, 3]);
    topic.txn(2, &[3, 4]);
    topic.roll();
    topic.txn(2, &[5, 6]);
    topic.txn(3, &[6, 7]);
    topic.txn(1, &[7, 8]);
    topic.end(2, true);
    topic.txn(3, &[8, 9]);
    topic.end(3, false);
    topic.txn(1, &[9, 10]);
    topic.end(1, true);
    let dirty = topic.clean(0, NOW_MS);
    assert_eq!(topic.keys(), [2, 3, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10]);
    topic.roll();
    topic.txn(2, &[11]);
    topic.txn(1, &[12]);
    topic.clean(dirty, NOW_MS);
    assert_eq!(topic.keys(), [2, 3, 6, 7, 8, 9, 11, 12]);
}

#[test]
fn a_commit_marker_goes_after_its_records() {
    // spec: behaviours CL-012, CL-014
    let mut topic = Topic::new();
    topic.txn(1, &[1]);
    topic.txn(1, &[2, 3]);
    topic.end(1, false);
    topic.txn(1, &[2]);
    topic.end(1, false);
    topic.roll();
    let dirty = topic.clean(0, NOW_MS);
    assert_eq!((topic.keys(), topic.offsets()), (vec![1, 3, 2], vec![0, 2, 3, 4, 5]));
    topic.txn(1, &[1, 3]);
    topic.end(1, false);
    topic.roll();
    let dirty = topic.clean(dirty, NOW_MS);
    assert_eq!(topic.offsets(), [3, 4, 5, 6, 7, 8]);
    let dirty = topic.clean(dirty, NOW_MS);
    assert_eq!(topic.offsets(), [3, 4, 5, 6, 7, 8]);
    topic.clean(dirty, i64::MAX);
    assert_eq!(topic.offsets(), [4, 5, 6, 7, 8]);
}

#[test]
fn batches_that_go_without_a_look_are_no_end() {
    // spec: behaviours CL-015
    let mut topic = Topic::with(|config| config.max_message_bytes = 100);
    topic.txn(1, &[1]);
    topic.end(1, true);
    topic.txn(1, &[2]);
    topic.txn(1, &[2]);
    topic.end(1, false);
    topic.roll();
    let dirty = topic.clean(0, NOW_MS);
    assert_eq!(topic.offsets(), [1, 3, 4]);
    topic.clean_twice(dirty);
    assert_eq!(topic.offsets(), [3, 4]);
}

#[test]
fn bare_headers_keep_producers() {
    // spec: behaviours CL-016, CL-018
    let mut topic = Topic::new();
    topic.txn(1, &[2, 3]);
    topic.roll();
    topic.txn(2, &[2, 3]);
    topic.end(2, false);
    topic.roll();
    topic.plain(&[2, 3]);
    topic.end(1, false);
    topic.roll();
    let dirty = topic.clean(0, NOW_MS);
    assert_eq!(topic.offsets(), [4, 5, 6, 7]);
    assert_eq!(topic.last_offsets(), [1, 3, 4, 5, 6, 7]);
    let dirty = topic.clean_twice(dirty);
    assert_eq!(topic.offsets(), [4, 5, 6, 7]);
    assert_eq!(topic.last_offsets(), [1, 3, 4, 5, 6, 7]);
    topic.txn(2, &[1]);
    topic.end(2, false);
    topic.roll();
    let dirty = topic.clean(dirty, NOW_MS);
    assert_eq!(topic.last_offsets(), [1, 4, 5, 6, 7, 8, 9]);
    topic.clean_twice(dirty);
    assert_eq!(topic.last_offsets(), [1, 5, 6, 7, 8, 9]);
    assert_eq!(topic.offsets(), [5, 6, 7, 8, 9]);
}

#[test]
fn an_empty_marker_keeps_a_producer_without_data() {
    // spec: behaviours CL-019
    let mut topic = Topic::new();
    topic.end(1, false);
    topic.plain(&[2, 3]);
    topic.roll();
    topic.clean_twice(0);
    assert_eq!((topic.offsets(), topic.last_offsets()), (vec![1, 2], vec![0, 1, 2]));
}

#[test]
fn a_marker_in_another_segment_stays_with_its_records() {
    // spec: behaviours CL-020
    let mut topic = Topic::new();
    topic.txn(1, &[1]);
    topic.roll();
    topic.end(1, false);
    topic.roll();
    topic.clean_twice(0);
    assert_eq!(topic.offsets(), [0, 1]);
}

#[test]
fn an_abort_marker_goes_in_the_second_round() {
    // spec: behaviours CL-022
    let mut topic = Topic::new();
    topic.txn(1, &[1]);
    topic.txn(1, &[2, 3]);
    topic.end(1, true);
    topic.txn(1, &[3]);
    topic.end(1, false);
    topic.roll();
    let dirty = topic.clean(0, NOW_MS);
    assert_eq!(topic.offsets(), [3, 4, 5]);
    topic.clean_twice(dirty);
    assert_eq!(topic.offsets(), [4, 5]);
}

#[test]
fn a_producer_that_begins_again_at_sequence_0_keeps_its_last_batch() {
    // spec: behaviours CL-023
    let topic = &mut Topic::new();
    for (offset, key) in [(0, 1), (2, 2)] {
        let mut batch = keys(&[key]).of(1, 0);
        batch.options.is_transactional = true;
        batch.options.base_offset = offset;
        batch.options.leader_epoch = 0;
        topic.log.try_follow(&batch.build()).expect("a batch");
        topic.end(1, false);
    }
    topic.plain(&[1, 2]);
    topic.roll();
    topic.clean(0, NOW_MS);
    assert_eq!(topic.offsets(), [1, 3, 4, 5]);
    assert_eq!(topic.last_offsets(), [1, 2, 3, 4, 5]);
    topic.clean_twice(0);
    assert_eq!(topic.offsets(), [3, 4, 5]);
    assert_eq!(topic.last_offsets(), [2, 3, 4, 5]);
}

#[test]
fn an_aborted_transaction_stays_known_as_long_as_a_header_of_it_stays() {
    // spec: behaviours CL-024, CL-026
    let mut topic = Topic::new();
    topic.txn(1, &[2, 3]);
    topic.end(1, true);
    topic.roll();
    let dirty = topic.clean(0, NOW_MS);
    let check = |topic: &Topic| {
        assert_eq!(topic.keys(), [0; 0]);
        assert_eq!((topic.offsets(), topic.last_offsets()), (vec![2], vec![1, 2]));
        assert_eq!(topic.aborted(), [aborted(1, 0, 2, 3)]);
    };
    check(&topic);
    let dirty = topic.clean_twice(dirty);
    check(&topic);
    topic.txn(1, &[1]);
    topic.roll();
    let dirty = topic.clean(dirty, NOW_MS);
    topic.clean_twice(dirty);
    assert_eq!(topic.offsets(), [3]);
    assert_eq!(topic.aborted(), []);
}

#[test]
fn batches_larger_than_the_buffers_are_compacted() {
    // spec: behaviours CL-027, CL-028
    for max_message_bytes in [2 << 20, 512 << 10] {
        let mut topic = Topic::with(|config| config.max_message_bytes = 2 << 20);
        let options = CleanerOptions {
            io_buffer_bytes: 1 << 10,
            step_bytes: 1 << 10,
            ..CleanerOptions::default()
        };
        topic.cleaner = Cleaner::new(options);
        for key in [1, 2, 1] {
            topic.append(&Keys { value: vec![b'v'; 1 << 20], ..keys(&[key]) });
        }
        topic.roll();
        let config = LogConfig { max_message_bytes, ..LogConfig::clone(&topic.log.log().config()) };
        topic.log.log().set_config(config);
        topic.clean(0, NOW_MS);
        assert_eq!(topic.offsets(), [1, 2]);
    }
}

#[test]
fn keys_with_tombstones_are_gone() {
    // spec: behaviours CL-030
    let mut topic = Topic::new();
    let all: Vec<i64> = (0..40).collect();
    topic.plain(&all);
    topic.roll();
    for key in all.iter().step_by(2) {
        topic.append(&Keys { is_tombstone: true, ..keys(&[*key]) });
    }
    topic.plain(&(100..140).collect::<Vec<i64>>());
    topic.roll();
    topic.clean(0, NOW_MS);
    assert!(topic.keys().iter().all(|key| *key >= 100 || key % 2 == 1));
    assert_eq!(topic.keys().len(), 60);
}

#[test]
fn a_round_begins_at_the_first_dirty_offset() {
    // spec: behaviours CL-031, CL-032
    let mut topic = Topic::new().map_slots(4);
    topic.plain(&[0, 1, 0, 1, 0]);
    topic.roll();
    let done = topic.try_clean(2, NOW_MS).expect("a round");
    assert_eq!((done.end_offset, done.records_read, done.records_written), (5, 5, 2));
    let mut topic = Topic::new().map_slots(2);
    topic.plain(&[0, 1, 0, 1, 0]);
    topic.roll();
    for (dirty, offsets) in [(2, &[1, 2, 3, 4][..]), (3, &[2, 3, 4]), (4, &[3, 4])] {
        let end = topic.clean(dirty, NOW_MS);
        assert_eq!((end, topic.offsets().as_slice()), (dirty + 1, offsets));
    }
}

#[test]
fn the_last_batch_of_an_aborted_transaction_leaves_its_header() {
    // spec: behaviours CL-034, CL-035
    let mut topic = Topic::new();
    topic.txn(1, &[1]);
    topic.txn(1, &[2, 3]);
    topic.end(1, true);
    topic.roll();
    let dirty = topic.clean(0, NOW_MS);
    assert_eq!((topic.last_offsets(), topic.offsets()), (vec![2, 3], vec![3]));
    assert_eq!(topic.headers()[0].last_sequence(), 2);
    topic.txn(1, &[1, 5]);
    topic.roll();
    topic.clean(dirty, NOW_MS);
    assert_eq!((topic.last_offsets(), topic.offsets()), (vec![3, 5], vec![3, 4, 5]));
}

#[test]
fn the_key_of_a_marker_is_no_key() {
    // spec: behaviours CL-036
    let mut topic = Topic::new();
    topic.txn(1, &[1]);
    topic.end(1, false);
    let marker_key = [0, 0, 0, 1].to_vec();
    topic.append(&Keys { keys: vec![marker_key], ..keys(&[0]) });
    topic.txn(1, &[2]);
    topic.roll();
    topic.clean(0, NOW_MS);
    assert_eq!(topic.offsets(), [0, 1, 2, 3]);
}

#[test]
fn a_tombstone_waits_from_its_first_round_on_whatever_its_timestamp() {
    // spec: behaviours CL-048
    let mut topic = Topic::new();
    let old = Keys { is_tombstone: true, timestamp: NOW_MS - 10 * RETENTION_MS, ..keys(&[1]) };
    topic.append(&old);
    topic.roll();
    let dirty = topic.clean(0, NOW_MS);
    assert_eq!(topic.offsets(), [0]);
    assert_eq!(topic.headers()[0].delete_horizon_ms(), Some(NOW_MS + RETENTION_MS));
    topic.plain(&[2]);
    topic.roll();
    let dirty = topic.clean(dirty, NOW_MS);
    assert_eq!(topic.offsets(), [0, 1]);
    topic.clean(dirty, NOW_MS + RETENTION_MS);
    assert_eq!(topic.offsets(), [1]);
}

#[test]
fn the_last_batch_of_a_round_leaves_its_header() {
    let mut topic = Topic::new();
    topic.append(&Keys { is_tombstone: true, ..keys(&[1, 2]) });
    topic.roll();
    topic.append(&Keys { is_tombstone: true, ..keys(&[1, 2]) });
    topic.roll();
    let dirty = topic.clean(0, NOW_MS);
    assert_eq!(topic.offsets(), [2, 3]);
    topic.clean(dirty, NOW_MS + RETENTION_MS);
    assert_eq!((topic.offsets(), topic.last_offsets()), (vec![], vec![3]));
    assert_eq!(topic.log.bases(), [0, 4]);
}

#[test]
fn a_round_that_begins_behind_an_abort_marker_maps_what_its_producer_commits() {
    // What was committed behind the marker was taken for aborted, so that its keys were not mapped:
    // in the next round the tombstone went and the value that it had deleted stayed. What is over
    // before a round begins says nothing of it any more.
    let mut topic = Topic::with(|config| config.index_interval_bytes = 0).map_slots(2);
    topic.plain(&[1]);
    topic.txn(7, &[2]);
    topic.end(7, true);
    topic.plain(&[3]);
    let mut tombstone = Keys { is_tombstone: true, ..keys(&[1]).of(7, 1) };
    tombstone.options.is_transactional = true;
    topic.append(&tombstone);
    topic.end(7, false);
    topic.roll();
    // The tombstone gets its horizon in a round that does not come as far as to map it.
    let mut dirty = topic.clean(0, NOW_MS);
    while dirty < 4 {
        dirty = topic.clean(dirty, NOW_MS);
    }
    assert_eq!((dirty, topic.keys()), (4, vec![1, 3]));
    topic.clean(dirty, NOW_MS + RETENTION_MS);
    assert_eq!(topic.keys(), [3]);
}

#[test]
fn gaps_of_offsets_are_passed_over() {
    // spec: behaviours CL-050, CL-051
    let mut topic = Topic::new();
    for offset in [0, 7_206_178] {
        let mut batch = keys(&[offset]);
        batch.options.base_offset = offset;
        batch.options.leader_epoch = 0;
        topic.log.try_follow(&batch.build()).expect("a batch");
    }
    topic.roll();
    assert_eq!(topic.clean(0, NOW_MS) - 1, 7_206_178);
    assert_eq!(topic.offsets(), [0, 7_206_178]);

    let mut topic = Topic::with(|config| config.segment_bytes = 100);
    for offset in [0, 1, 50] {
        let mut batch = keys(&[offset]);
        batch.options.base_offset = offset;
        batch.options.leader_epoch = 0;
        topic.log.try_follow(&batch.build()).expect("a batch");
    }
    assert_eq!(topic.log.bases(), [0, 1, 50]);
    assert_eq!(topic.clean(0, NOW_MS), 50);
}

/// The files of a segment before and after a compaction, by suffix.
type Files = BTreeMap<&'static str, Vec<u8>>;

fn files(topic: &Topic, base_offset: i64) -> Files {
    let found = [".log", ".index", ".timeindex"].into_iter().map(|suffix| {
        let name = format!("{base_offset:020}{suffix}");
        (suffix, topic.log.file(&name).expect("a file"))
    });
    found.collect()
}

#[test]
fn a_start_completes_a_swap_or_takes_it_back() {
    // spec: behaviours CL-042, CL-043, CL-044, CL-046, CL-047
    let mut topic = Topic::with(|config| config.index_interval_bytes = 1);
    topic.plain(&[0, 1, 2, 0, 1, 2, 3, 4]);
    topic.roll();
    topic.plain(&[4, 4, 9]);
    topic.roll();
    let (bases, before) = (topic.log.bases(), topic.keys());
    let old: Vec<(i64, Files)> = vec![(0, files(&topic, 0)), (8, files(&topic, 8))];
    topic.clean(0, NOW_MS);
    let after = topic.keys();
    assert_eq!((after.as_slice(), bases.len()), (&[0, 1, 2, 3, 4, 9][..], 3));
    let new = files(&topic, 0);
    let is_swap_but_log = |suffix: &str| if suffix == ".log" { "" } else { ".swap" };
    type Ending<'a> = (&'a dyn Fn(&str) -> &'static str, bool, &'a [i64]);
    let endings: [Ending<'_>; 6] = [
        (&|_| ".cleaned", true, &before),
        (&|suffix| if suffix == ".log" { ".swap" } else { ".cleaned" }, true, &before),
        (&|_| ".swap", true, &after),
        (&is_swap_but_log, false, &after),
        (&|suffix| if suffix == ".timeindex" { ".swap" } else { "" }, false, &after),
        (&|_| "", false, &after),
    ];
    let plain = topic.log.disk.fork();
    for (number, (ending, has_old, expected)) in endings.into_iter().enumerate() {
        let disk = plain.fork();
        let put = |name: String, bytes: &[u8]| {
            disk.put(&Path::new(DIR).join(name), bytes.to_vec(), None).expect("a file");
        };
        for (suffix, bytes) in &new {
            let live = Path::new(DIR).join(format!("{:020}{suffix}", 0));
            disk.remove_file(&live).expect("a file");
            put(format!("{:020}{suffix}{}", 0, ending(suffix)), bytes);
        }
        for (base_offset, files) in old.iter().filter(|_| has_old) {
            for (suffix, bytes) in files {
                put(format!("{base_offset:020}{suffix}"), bytes);
            }
        }
        disk.settle();
        topic.log.disk = disk;
        topic.log.crash(0);
        assert_eq!(topic.keys(), expected, "ending {number}");
        let names = topic.log.files();
        let is_left = |name: &&String| name.ends_with(".swap") || name.ends_with(".cleaned");
        assert_eq!(names.iter().find(is_left), None, "ending {number}");
    }
}

/// Segments of ten records each, of which the last is active.
fn segments(topic: &mut Topic, times: &[i64]) {
    for (number, time) in times.iter().enumerate() {
        if number > 0 {
            topic.roll();
        }
        for key in 0..10 {
            topic.append(&Keys { timestamp: *time, ..keys(&[key]) });
        }
    }
}

fn offsets(topic: &Topic, checkpoint: Option<i64>, now_ms: i64) -> (i64, i64, bool) {
    let found = topic.log.log().cleanable_offsets(checkpoint, now_ms).expect("offsets");
    (found.first_dirty_offset, found.first_uncleanable_offset, found.checkpoint_is_stale)
}

#[test]
fn nothing_is_cleaned_behind_the_last_stable_offset() {
    // spec: behaviours CM-001, CM-005
    let mut topic = Topic::new();
    segments(&mut topic, &[NOW_MS; 8]);
    topic.log.log().update_high_watermark(50).expect("a high watermark");
    assert_eq!(offsets(&topic, Some(0), NOW_MS), (0, 50, false));
    let range = topic.log.log().cleanable(None, NOW_MS).expect("a range");
    assert_eq!((range.first_dirty_offset, range.first_uncleanable_offset), (0, 50));
    assert_eq!((range.clean_bytes, range.dirty_ratio()), (0, 1.0));
    assert!(range.is_due());
    topic.log.log().update_high_watermark(55).expect("a high watermark");
    assert_eq!(offsets(&topic, Some(0), NOW_MS), (0, 55, false));
    let range = topic.log.log().cleanable(Some(40), NOW_MS).expect("a range");
    assert_eq!((range.first_dirty_offset, range.first_uncleanable_offset), (40, 50));
    assert_eq!(range.clean_bytes, 4 * range.cleanable_bytes);
    assert!(!range.is_due());

    let mut topic = Topic::new();
    topic.txn(1, &[1]);
    topic.plain(&[2, 3]);
    topic.roll();
    topic.log.log().update_high_watermark(3).expect("a high watermark");
    assert_eq!(offsets(&topic, Some(0), NOW_MS), (0, 0, false));
}

#[test]
fn records_may_be_kept_from_the_cleaner_for_a_while() {
    // spec: behaviours CM-003, CM-004
    let mut topic = Topic::with(|config| config.min_compaction_lag_ms = HOUR_MS);
    let later = NOW_MS + HOUR_MS + 1;
    topic.log.now_ms = later;
    segments(&mut topic, &[NOW_MS; 4]);
    // The segment that is active goes on a while.
    topic.append(&Keys { timestamp: later, ..keys(&[1]) });
    topic.roll();
    segments(&mut topic, &[later; 4]);
    topic.log.replicate();
    assert_eq!(offsets(&topic, Some(0), later), (0, 30, false));

    let mut topic = Topic::with(|config| config.min_compaction_lag_ms = HOUR_MS);
    segments(&mut topic, &[NOW_MS; 8]);
    topic.log.replicate();
    assert_eq!(offsets(&topic, Some(0), later), (0, 70, false));
    assert_eq!(offsets(&topic, Some(0), NOW_MS + HOUR_MS), (0, 70, false));
    assert_eq!(offsets(&topic, Some(0), NOW_MS + HOUR_MS - 1), (0, 0, false));
}

#[test]
fn records_that_wait_too_long_make_a_log_due() {
    let mut topic = Topic::with(|config| {
        config.max_compaction_lag_ms = HOUR_MS;
        config.min_cleanable_dirty_ratio = 1.0;
    });
    segments(&mut topic, &[NOW_MS, NOW_MS + 5, NOW_MS]);
    topic.log.replicate();
    let delay = |now_ms| {
        let range = topic.log.log().cleanable(Some(0), now_ms).expect("a range");
        (range.compaction_delay_ms, range.is_due())
    };
    assert_eq!(delay(NOW_MS + HOUR_MS), (0, false));
    assert_eq!(delay(NOW_MS + HOUR_MS + 3), (3, true));
}

#[test]
fn a_checkpoint_outside_of_the_log_is_stale() {
    // spec: behaviours CM-007, CM-008, CM-009
    let mut topic = Topic::new();
    segments(&mut topic, &[NOW_MS; 10]);
    topic.log.replicate();
    assert_eq!(offsets(&topic, Some(200), NOW_MS), (0, 90, true));
    assert_eq!(offsets(&topic, Some(100), NOW_MS), (100, 100, false));
    let log = topic.log.log();
    log.maybe_increment_log_start_offset(10).expect("a log start");
    assert_eq!(offsets(&topic, Some(0), NOW_MS), (10, 90, true));
    log.maybe_increment_log_start_offset(20).expect("a log start");
    assert_eq!(offsets(&topic, Some(15), NOW_MS), (20, 90, true));
    assert_eq!(offsets(&topic, None, NOW_MS), (20, 90, false));

    let topic = Topic::new();
    topic.log.log().truncate_fully_and_start_at(20, None, NOW_MS).expect("a log that begins anew");
    let range = topic.log.log().cleanable(Some(15), NOW_MS).expect("a range");
    assert_eq!((range.first_dirty_offset, range.checkpoint_is_stale), (20, true));
    assert!(!range.is_due());
}

#[test]
fn old_formats_become_batches_of_today() {
    use siltstone::record::builder::LegacyBuilder;
    for codec in [Codec::None, Codec::Gzip] {
        let mut topic = Topic::new();
        let mut bytes = Vec::new();
        let mut builder = LegacyBuilder::new(1, codec.into(), None, 0).expect("a builder");
        for (offset, key) in [(0, "1"), (1, "2"), (2, "1")] {
            let value = (key == "1").then_some(&b"v"[..]);
            builder.append(offset, NOW_MS, Some(key.as_bytes()), value).expect("a message");
        }
        builder.write_to(&mut Compressor::new(), &mut bytes).expect("messages");
        topic.log.try_follow(&bytes).expect("messages that are taken");
        topic.roll();
        // Nothing is clean yet: the horizon lies before all time.
        topic.clean(0, NOW_MS);
        assert_eq!((topic.offsets(), topic.keys()), (vec![1, 2], vec![1]));
        assert!(topic.headers().iter().all(|header| header.magic == 2));
    }
}

#[test]
fn an_old_message_with_bytes_behind_its_value_is_compacted() {
    use siltstone::record::builder::write_legacy_message;
    use siltstone::record::legacy::{LegacyMessage, compute_legacy_crc};
    // It ended the round, and each that came after it.
    let mut topic = Topic::new();
    for offset in 0..2 {
        let mut bytes = Vec::new();
        let message = LegacyMessage {
            offset,
            magic: 1,
            attributes: 0,
            timestamp_ms: NOW_MS,
            key: Some(b"1"),
            value: Some(b"value"),
        };
        write_legacy_message(&message, &mut bytes).expect("a message");
        bytes.extend([7; 4]);
        let size = i32::try_from(bytes.len() - 12).expect("few bytes");
        bytes[8..12].copy_from_slice(&size.to_be_bytes());
        let crc = compute_legacy_crc(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_be_bytes());
        topic.log.try_follow(&bytes).expect("a message that is taken");
    }
    topic.roll();
    topic.log.replicate();
    let found = topic.log.log().offset_for_timestamp(NOW_MS).expect("a timestamp");
    assert_eq!(found.expect("a message").offset, 0);
    topic.clean(0, NOW_MS);
    assert_eq!((topic.offsets(), topic.keys()), (vec![1], vec![1]));
}

#[test]
fn a_log_that_is_written_or_compacted_elsewhere_says_so() {
    let mut topic = Topic::new();
    topic.plain(&[1, 2, 1]);
    topic.roll();
    topic.log.replicate();
    let log = topic.log.log();
    let range = log.cleanable(None, NOW_MS).expect("a range");
    let (mut one, mut two) = (Cleaner::default(), Cleaner::default());
    let first = log.begin_compaction(&mut one, &range, NOW_MS).expect("a round");
    let second = log.begin_compaction(&mut two, &range, NOW_MS).expect_err("one at a time");
    assert_eq!(second.kind(), Kind::Conflict);
    drop(first);
    let beyond = Cleanable { first_uncleanable_offset: 4, ..range };
    let error = log.begin_compaction(&mut two, &beyond, NOW_MS).expect_err("the active segment");
    assert_eq!(error.kind(), Kind::Conflict);
    for (first_dirty_offset, first_uncleanable_offset) in [(-1, 3), (3, 2)] {
        let none = Cleanable { first_dirty_offset, first_uncleanable_offset, ..range };
        let error = log.begin_compaction(&mut two, &none, NOW_MS).expect_err("no range");
        assert_eq!(error.kind(), Kind::InvalidArgument);
    }
    log.compact(&mut two, &range, NOW_MS).expect("a round");
    assert_eq!(topic.offsets(), [1, 2]);
}

#[test]
fn a_log_that_is_cut_meanwhile_ends_the_round() {
    let mut topic = Topic::new();
    topic.cleaner = Cleaner::new(CleanerOptions { step_bytes: 1, ..CleanerOptions::default() });
    topic.plain(&[1, 2, 1, 3, 3]);
    topic.roll();
    topic.plain(&[4]);
    topic.log.replicate();
    let log = topic.log.log();
    let range = log.cleanable(None, NOW_MS).expect("a range");
    for steps in 0..40 {
        let mut compaction =
            log.begin_compaction(&mut topic.cleaner, &range, NOW_MS).expect("a round");
        let is_over = (0..steps).any(|_| compaction.step().expect("a step").is_some());
        if is_over {
            assert!(steps > 10, "a round has more steps");
            break;
        }
        drop(compaction);
        let names = topic.log.files();
        assert!(names.iter().all(|name| !name.ends_with(".cleaned")), "{names:?}");
    }
    let mut compaction = log.begin_compaction(&mut topic.cleaner, &range, NOW_MS).expect("a round");
    for _ in 0..5 {
        compaction.step().expect("a step");
    }
    log.truncate_to(2, NOW_MS).expect("a cut");
    let error = loop {
        match compaction.step() {
            Ok(done) => assert_eq!(done, None),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), Kind::Conflict);
    assert_eq!(compaction.step().expect_err("given up").kind(), Kind::Cancelled);
}

/// Two segments that are too large for one, and the active one. What comes first is in the first,
/// the newer value of key 1 in the second, at 17.
fn two_groups(first: impl Fn(&mut Topic)) -> Topic {
    let mut topic = Topic::with(|config| config.segment_bytes = 1500);
    topic.cleaner = Cleaner::new(CleanerOptions { step_bytes: 1, ..CleanerOptions::default() });
    let fill = |topic: &mut Topic, end: i64| {
        for offset in topic.log.log().log_end_offset()..end {
            let key = if offset == 17 { 1 } else { 100 + offset };
            topic.append(&Keys { value: vec![b'v'; 40], ..keys(&[key]) });
        }
    };
    first(&mut topic);
    fill(&mut topic, 10);
    topic.roll();
    fill(&mut topic, 20);
    topic.roll();
    topic.log.replicate();
    let bases: Vec<i64> = topic.log.log().segments().iter().map(|one| one.base_offset()).collect();
    assert_eq!(bases, [0, 10, 20], "the segments are not what the test is about");
    topic
}

/// Changes a log after each step of a round, not before `end`. Says how the rounds ended,
/// and in how many of them what stands before `end` was another in the end.
fn change_after_each_step(
    new: impl Fn() -> Topic,
    end: i64,
    change: impl Fn(&Log),
) -> (Vec<Option<Kind>>, usize) {
    let (mut endings, mut changes) = (Vec::new(), 0);
    for steps in 0.. {
        let mut topic = new();
        let before_end = |topic: &Topic| {
            let (mut bases, mut records) = (topic.base_offsets(), topic.offsets());
            bases.retain(|base| *base < end);
            records.retain(|record| *record < end);
            (bases, records)
        };
        let mut cleaner = std::mem::take(&mut topic.cleaner);
        let log = topic.log.log();
        let range = log.cleanable(None, NOW_MS).expect("a range");
        let mut round = log.begin_compaction(&mut cleaner, &range, NOW_MS).expect("a round");
        if (0..steps).any(|_| round.step().expect("a step").is_some()) {
            return (endings, changes);
        }
        let before = before_end(&topic);
        change(log);
        let ending = loop {
            match round.step() {
                Ok(None) => {}
                Ok(Some(_)) => break None,
                Err(error) => break Some(error.kind()),
            }
        };
        drop(round);
        endings.push(ending);
        changes += usize::from(before_end(&topic) != before);
    }
    unreachable!("a round ends")
}

fn cut_after_each_step(new: impl Fn() -> Topic, offset: i64) -> (Vec<Option<Kind>>, usize) {
    let cut = |log: &Log| assert!(log.truncate_to(offset, NOW_MS).expect("a cut"));
    change_after_each_step(new, offset, cut)
}

#[test]
fn values_stay_where_those_that_were_to_replace_them_are_cut() {
    let new = || two_groups(|topic| topic.plain(&[1]));
    let mut topic = new();
    topic.clean(0, NOW_MS);
    assert_eq!(topic.offsets()[..2], [1, 2], "the first is replaced else");
    let (endings, changes) = cut_after_each_step(new, 15);
    assert!(endings.len() > 40, "{} steps", endings.len());
    assert_eq!(changes, 0);
    let is_ended = |ending: &&Option<Kind>| **ending == Some(Kind::Conflict);
    // But for the cut that came last, when all was done.
    assert_eq!(endings.iter().filter(is_ended).count(), endings.len() - 1);
}

#[test]
fn transactions_are_not_taken_for_aborted_whose_markers_are_cut() {
    let new = || {
        let mut topic = two_groups(|topic| topic.txn(1, &[2]));
        topic.end(1, true);
        topic.plain(&[3]);
        topic.log.replicate();
        topic
    };
    let (endings, changes) = cut_after_each_step(new, 20);
    assert_eq!(changes, 0);
    assert!(endings.contains(&Some(Kind::Conflict)));
}

#[test]
fn the_last_batches_of_producers_stay_that_are_so_by_a_cut() {
    let of_producer = |key, sequence| keys(&[key]).of(1, sequence);
    let new = || {
        let mut topic = two_groups(|topic| topic.append(&of_producer(1, 0)));
        topic.plain(&[3]);
        topic.append(&of_producer(2, 1));
        topic
    };
    let (endings, changes) = cut_after_each_step(new, 21);
    assert_eq!(changes, 0);
    assert!(endings.contains(&Some(Kind::Conflict)));
}

#[test]
fn a_cut_behind_what_a_round_goes_by_does_not_end_it() {
    let new = || {
        let mut topic = two_groups(|topic| topic.plain(&[1]));
        topic.append(&keys(&[4]).of(1, 0));
        topic.plain(&[5]);
        topic
    };
    let (endings, changes) = cut_after_each_step(new, 20);
    assert!(endings.iter().all(Option::is_none), "{endings:?}");
    assert!(changes > 0);
}

#[test]
fn a_round_whose_segments_are_removed_ends_with_a_conflict() {
    let new = || two_groups(|topic| topic.plain(&[1]));
    let (endings, _) = change_after_each_step(new, 0, |log| {
        log.maybe_increment_log_start_offset(10).expect("a log start");
        log.delete_old_segments(NOW_MS).expect("a segment that goes");
        log.delete_due_files(NOW_MS).expect("files that go");
        assert_eq!(log.segments().first().expect("a segment").base_offset(), 10);
    });
    let count = |ending| endings.iter().filter(|one| **one == ending).count();
    // When the segment has been read, or replaced, and is not needed, the round goes on.
    let (ended, whole) = (count(Some(Kind::Conflict)), count(None));
    assert!(ended > 20 && whole > 20 && ended + whole == endings.len(), "{endings:?}");
}
