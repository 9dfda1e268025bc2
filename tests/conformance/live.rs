//! A real broker opens what a node of ours wrote, repairs nothing, and its consumers read every
//! record back.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use serde_json::json;
use siltstone::dir::engine::{Engine, EngineOptions, NewLog};
use siltstone::io::Disk;
use siltstone::log::{AppendScratch, Cleaner, CleanerOptions, LeaderAppend, Log, LogConfig};
use siltstone::record::TimestampType;
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::{Codec, Compression, Compressor};
use siltstone::record::validate::AppendOrigin;
use siltstone::state::ProducerStateConfig;
use siltstone::uuid::Uuid;
use siltstone_tests::live::{Marker, NOW_MS};
use tempfile::TempDir;

use crate::broker::{Kafka, Offsets};
use crate::kafka;

/// Console consumers side by side.
const CONSUMERS: usize = 3;

/// A record as a consumer shows it: offset, key, value.
type Shown = (i64, String, String);

/// A topic of one partition that is being written, and what its consumers are to read.
struct Topic {
    name: &'static str,
    log: Arc<Log>,
    scratch: AppendScratch,
    leader_epoch: i32,
    records: Vec<Shown>,
    /// Offsets of records by the transaction that holds them, as long as it is open.
    open: BTreeMap<i64, Vec<i64>>,
    /// Offsets of records of transactions that were aborted.
    aborted: Vec<i64>,
    sequences: BTreeMap<i64, i32>,
}

impl Topic {
    /// A new one; the first is number 1.
    fn new(engine: &Engine, number: u8, name: &'static str, config: LogConfig) -> Topic {
        let mut id = [0x5a; 16];
        id[15] = number;
        let topic_id = Some(Uuid(id));
        let new = NewLog { config, topic_id, now_ms: NOW_MS, ..NewLog::default() };
        let log = engine.get_or_create(name, 0, &new).expect("a new log");
        let scratch = AppendScratch::new();
        let (open, sequences) = (BTreeMap::new(), BTreeMap::new());
        let (records, aborted) = (Vec::new(), Vec::new());
        Topic { name, log, scratch, leader_epoch: 0, records, open, aborted, sequences }
    }

    /// Appends a batch, of a producer where one is named, in its transaction.
    fn append(&mut self, count: usize, codec: Codec, producer: Option<i64>) {
        let mut options =
            BatchOptions { compression: Compression::new(codec), ..BatchOptions::default() };
        if let Some(id) = producer {
            let sequence = self.sequences.entry(id).or_default();
            (options.producer_id, options.producer_epoch) = (id, 0);
            (options.base_sequence, options.is_transactional) = (*sequence, true);
            *sequence += i32::try_from(count).expect("a small number");
        }
        let mut builder = BatchBuilder::new(options).expect("options that fit");
        let first = self.log.log_end_offset();
        let offsets = first..first + i64::try_from(count).expect("a small number");
        for offset in offsets.clone() {
            let (key, value) = (format!("k{}", offset % 7), format!("{}/{offset}", self.name));
            let timestamp = NOW_MS + offset;
            builder
                .append(timestamp, Some(key.as_bytes()), Some(value.as_bytes()))
                .expect("a record that fits");
            self.records.push((offset, key, value));
        }
        if let Some(id) = producer {
            self.open.entry(id).or_default().extend(offsets);
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).expect("a batch that fits");
        let append = LeaderAppend::client(self.leader_epoch, NOW_MS + first);
        let info = self.log.append_as_leader(&mut bytes, &append, &mut self.scratch);
        assert_eq!(info.expect("an append").first_offset, Some(first));
    }

    /// Ends a transaction.
    fn end(&mut self, producer: i64, abort: bool) {
        let append = LeaderAppend {
            origin: AppendOrigin::Coordinator,
            transaction_version: Some(0),
            ..LeaderAppend::client(self.leader_epoch, NOW_MS)
        };
        let mut bytes = Marker::of(producer, 0, abort).build();
        self.log.append_as_leader(&mut bytes, &append, &mut self.scratch).expect("a marker");
        let offsets = self.open.remove(&producer).unwrap_or_default();
        if abort {
            self.aborted.extend(offsets);
        }
    }

    /// Everything is replicated.
    fn replicate(&self) {
        self.log.update_high_watermark(self.log.log_end_offset()).expect("a high watermark");
    }

    /// What a consumer is to read.
    fn shown(&self, is_committed: bool) -> Vec<Shown> {
        let (start, end) = (self.log.log_start_offset(), self.log.last_stable_offset());
        let is_seen = |record: &&Shown| {
            record.0 >= start
                && (!is_committed || record.0 < end && !self.aborted.contains(&record.0))
        };
        self.records.iter().filter(is_seen).cloned().collect()
    }

    fn offsets(&self) -> Offsets {
        Offsets {
            start: Some(self.log.log_start_offset()),
            local_start: Some(self.log.local_log_start_offset()),
            end: Some(self.log.log_end_offset()),
            last_stable: Some(self.log.last_stable_offset()),
        }
    }
}

/// Segments of a few batches.
fn small() -> LogConfig {
    LogConfig { segment_bytes: 2000, index_interval_bytes: 200, ..LogConfig::default() }
}

fn codecs(engine: &Engine, topics: &mut Vec<Topic>) {
    for (name, codec) in [
        ("none", Codec::None),
        ("gzip", Codec::Gzip),
        ("snappy", Codec::Snappy),
        ("lz4", Codec::Lz4),
        ("zstd", Codec::Zstd),
    ] {
        let mut topic = Topic::new(engine, next(topics), name, small());
        for batch in 0..60 {
            topic.append(1 + batch % 5, codec, None);
        }
        topics.push(topic);
    }
    let config = LogConfig { compression: Some(Compression::new(Codec::Zstd)), ..small() };
    let mut topic = Topic::new(engine, next(topics), "recoded", config);
    for batch in 0..40 {
        let codec = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd][batch % 5];
        topic.append(3, codec, None);
    }
    topics.push(topic);
    let config = LogConfig { timestamp_type: TimestampType::LogAppendTime, ..small() };
    let mut topic = Topic::new(engine, next(topics), "stamped", config);
    for batch in 0..40 {
        topic.append(3, [Codec::None, Codec::Lz4][batch % 2], None);
    }
    topics.push(topic);
}

fn transactions(engine: &Engine, topics: &mut Vec<Topic>) {
    let mut topic = Topic::new(engine, next(topics), "txn", small());
    for round in 0..12 {
        topic.append(2, Codec::None, Some(1));
        topic.append(3, Codec::Lz4, Some(2));
        topic.append(1, Codec::None, None);
        topic.append(2, Codec::Zstd, Some(1));
        topic.end(1, round % 3 == 1);
        topic.append(4, Codec::None, Some(2));
        topic.end(2, round % 2 == 0);
    }
    topic.append(5, Codec::None, Some(3));
    topic.append(2, Codec::None, None);
    topics.push(topic);
}

fn changes(engine: &Engine, topics: &mut Vec<Topic>) {
    let config = LogConfig { retention_bytes: 5000, file_delete_delay_ms: 0, ..small() };
    let mut topic = Topic::new(engine, next(topics), "retained", config);
    for _ in 0..80 {
        topic.append(3, Codec::None, None);
    }
    topic.replicate();
    assert!(topic.log.delete_old_segments(NOW_MS).expect("deletions") > 0);
    topic.log.delete_due_files(NOW_MS).expect("deletions");
    assert!(topic.log.log_start_offset() > 0);
    topics.push(topic);

    let mut topic = Topic::new(engine, next(topics), "cut", small());
    for _ in 0..40 {
        topic.append(3, Codec::Snappy, None);
    }
    // Within the batch of offsets 48 to 50, which goes whole.
    assert!(topic.log.truncate_to(50, NOW_MS).expect("a cut"));
    topic.log.delete_due_files(i64::MAX).expect("deletions");
    let end = topic.log.log_end_offset();
    assert_eq!(end, 50);
    topic.records.retain(|record| record.0 < 48);
    topic.leader_epoch = 3;
    topic.log.assign_epoch_start(3, end).expect("an epoch");
    for _ in 0..20 {
        topic.append(2, Codec::None, None);
    }
    topics.push(topic);
}

/// A compacted topic: of each key in the clean part the last record stays.
fn compacted(engine: &Engine, topics: &mut Vec<Topic>) {
    let config = LogConfig { compact: true, delete: false, file_delete_delay_ms: 0, ..small() };
    let mut topic = Topic::new(engine, next(topics), "compacted", config);
    for batch in 0..60 {
        topic.append(3, [Codec::None, Codec::Zstd, Codec::Lz4][batch % 3], None);
    }
    topic.replicate();
    let range = topic.log.cleanable(None, NOW_MS).expect("a look");
    let mut cleaner = Cleaner::new(CleanerOptions::default());
    let done = topic.log.compact(&mut cleaner, &range, NOW_MS).expect("a compaction");
    topic.log.delete_due_files(i64::MAX).expect("deletions");
    assert!(done.records_written < done.records_read, "{done:?}");
    let mut last = BTreeMap::new();
    for record in topic.records.iter().filter(|record| record.0 < done.end_offset) {
        last.insert(record.1.clone(), record.0);
    }
    topic.records.retain(|record| record.0 >= done.end_offset || last[&record.1] == record.0);
    for _ in 0..5 {
        topic.append(2, Codec::None, None);
    }
    topics.push(topic);
}

fn next(topics: &[Topic]) -> u8 {
    u8::try_from(topics.len()).expect("few topics") + 1
}

/// A node with one log directory.
fn node(data: &Path) -> Engine {
    let producers = ProducerStateConfig {
        transaction_verification_enabled: false,
        ..ProducerStateConfig::default()
    };
    let config = |_: &str| small();
    let options = EngineOptions { producers, ..EngineOptions::new(&config, NOW_MS) };
    let dirs = [data.to_owned()];
    let (engine, report) =
        Engine::open(Arc::new(Disk::new()), &dirs, &options).expect("a log directory");
    assert_eq!(report.refused.len(), 0);
    engine
}

#[test]
fn kafka_reads_what_a_node_of_ours_wrote_and_repairs_nothing() {
    let Some(kafka) = kafka() else { return };
    let home = TempDir::with_prefix("siltstone-live-").expect("a temporary directory");
    let data = home.path().join("data");
    fs::create_dir(&data).expect("a log directory");
    let engine = node(&data);
    let mut topics = Vec::new();
    codecs(&engine, &mut topics);
    transactions(&engine, &mut topics);
    changes(&engine, &mut topics);
    compacted(&engine, &mut topics);
    topics.iter().for_each(Topic::replicate);
    // Checkpoints, and the marker of a clean stop.
    let stopped = engine.close(7, 1);
    assert!(stopped.dirs.iter().all(|dir| dir.is_clean), "{stopped:?}");

    // The broker's own cleaner has nothing to do.
    let settings = json!({
        "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"},
    });
    let judgement =
        kafka.judge_while(&data, &settings, None, |address| read_back(kafka, address, &topics));
    assert_eq!(judgement.repairs, Vec::<String>::new(), "Kafka repaired");
    assert_eq!(judgement.changed, Vec::<String>::new(), "Kafka changed");
    for topic in &topics {
        let name = format!("{}-0", topic.name);
        assert_eq!(judgement.offsets[&name], topic.offsets(), "{name}");
    }
}

/// Both consumers read every record of every topic, and with committed data only those.
fn read_back(kafka: &Kafka, address: &str, topics: &[Topic]) {
    for topic in topics {
        for (isolation, is_committed) in [("read_uncommitted", false), ("read_committed", true)] {
            let wanted = topic.shown(is_committed);
            let read = kcat(address, topic.name, isolation);
            assert_eq!(read, wanted, "kcat of {}, {isolation}", topic.name);
        }
    }
    for part in topics.chunks(CONSUMERS) {
        std::thread::scope(|scope| {
            for topic in part {
                scope.spawn(|| console_reads(kafka, address, topic));
            }
        });
    }
}

/// All that is committed, and where that is not all there is, the rest of it, too.
fn console_reads(kafka: &Kafka, address: &str, topic: &Topic) {
    let mut before = None;
    for (isolation, is_committed) in [("read_committed", true), ("read_uncommitted", false)] {
        let wanted = topic.shown(is_committed);
        if before.as_ref() == Some(&wanted) {
            continue;
        }
        let told = kafka.console_consumer(address, topic.name, isolation, wanted.len());
        let read: Vec<Shown> =
            told.iter().map(|line| shown(line, "Offset:").expect(line)).collect();
        assert_eq!(read, wanted, "the console consumer of {}, {isolation}", topic.name);
        before = Some(wanted);
    }
}

fn kcat(address: &str, topic: &str, isolation: &str) -> Vec<Shown> {
    let mut kcat = Command::new("kcat");
    kcat.args(["-C", "-q", "-e", "-b", address, "-t", topic, "-p", "0", "-o", "beginning"]);
    kcat.args(["-X", &format!("isolation.level={isolation}"), "-X", "check.crcs=true"]);
    kcat.args(["-f", "%o\t%k\t%s\n"]);
    let output = kcat.output().unwrap_or_else(|error| panic!("kcat: {error}"));
    assert!(output.status.success(), "kcat: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| shown(line, "").expect(line)).collect()
}

fn shown(line: &str, prefix: &str) -> Option<Shown> {
    let mut fields = line.splitn(3, '\t');
    let offset = fields.next()?.strip_prefix(prefix)?.parse().ok()?;
    Some((offset, fields.next()?.to_owned(), fields.next()?.to_owned()))
}
