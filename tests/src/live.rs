//! Batches and logs for tests that write: short to say, and on the simulated disk.

use std::path::Path;
use std::sync::Arc;

use siltstone::io::SimDisk;
use siltstone::io::sim::Entry;
use siltstone::log::{
    AppendError, AppendInfo, AppendScratch, FetchOptions, FetchedBytes, Isolation, LeaderAppend,
    Log, LogConfig, OpenOptions,
};
use siltstone::record::BatchHeader;
use siltstone::record::builder::{BatchBuilder, BatchOptions, write_end_marker};
use siltstone::record::codec::{Codec, Compressor};
use siltstone::record::control::EndMarker;
use siltstone::record::validate::{AppendOrigin, Batches};
use siltstone::state::ProducerStateConfig;

/// Where the log of a test lies.
pub const DIR: &str = "/orders-0";
/// What the clock of a test says at first.
pub const NOW_MS: i64 = 1_700_000_000_000;

/// A batch to be made: of magic 2, at offset 0, without a producer, unless said.
#[derive(Clone, Debug)]
pub struct TestBatch {
    options: BatchOptions,
    timestamps: Vec<i64>,
    key: Option<Vec<u8>>,
    value: Vec<u8>,
}

/// A batch of `count` records.
#[must_use]
pub fn records(count: usize) -> TestBatch {
    TestBatch {
        options: BatchOptions::default(),
        timestamps: vec![NOW_MS; count],
        key: None,
        value: b"v".to_vec(),
    }
}

impl TestBatch {
    /// At this offset, for followers.
    #[must_use]
    pub fn at(mut self, base_offset: i64) -> Self {
        self.options.base_offset = base_offset;
        self
    }

    /// Of this leader epoch.
    #[must_use]
    pub fn epoch(mut self, leader_epoch: i32) -> Self {
        self.options.leader_epoch = leader_epoch;
        self
    }

    /// With these timestamps, one record each.
    #[must_use]
    pub fn times(mut self, timestamps: &[i64]) -> Self {
        self.timestamps = timestamps.to_vec();
        self
    }

    /// With this key.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.key = Some(key.as_bytes().to_vec());
        self
    }

    /// With values of so many bytes.
    #[must_use]
    pub fn value_bytes(mut self, size: usize) -> Self {
        self.value = vec![b'v'; size];
        self
    }

    /// Compressed.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.options.compression = codec.into();
        self
    }

    /// Of a producer: id, epoch, first sequence.
    #[must_use]
    pub fn producer(mut self, id: i64, epoch: i16, sequence: i32) -> Self {
        self.options.producer_id = id;
        self.options.producer_epoch = epoch;
        self.options.base_sequence = sequence;
        self
    }

    /// Of a transaction of a producer.
    #[must_use]
    pub fn txn(self, id: i64, epoch: i16, sequence: i32) -> Self {
        let mut batch = self.producer(id, epoch, sequence);
        batch.options.is_transactional = true;
        batch
    }

    /// Its bytes.
    ///
    /// # Panics
    ///
    /// When there can be no such batch.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let mut builder = BatchBuilder::new(self.options).expect("options that fit");
        for timestamp in &self.timestamps {
            builder
                .append(*timestamp, self.key.as_deref(), Some(&self.value))
                .expect("a record that fits");
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).expect("a batch that fits");
        bytes
    }
}

/// The marker that ends a transaction.
#[derive(Clone, Copy, Debug)]
pub struct Marker {
    /// Its offset, for followers.
    pub offset: i64,
    /// Its leader epoch.
    pub leader_epoch: i32,
    /// The producer's id and epoch.
    pub producer: (i64, i16),
    /// Whether the transaction is aborted.
    pub abort: bool,
    /// The epoch of the coordinator.
    pub coordinator_epoch: i32,
}

impl Marker {
    /// The marker of a producer, by coordinator epoch 0.
    #[must_use]
    pub fn of(id: i64, epoch: i16, abort: bool) -> Self {
        let producer = (id, epoch);
        Marker { offset: 0, leader_epoch: -1, producer, abort, coordinator_epoch: 0 }
    }

    /// Its bytes.
    ///
    /// # Panics
    ///
    /// When there can be no such marker.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let options = BatchOptions {
            base_offset: self.offset,
            leader_epoch: self.leader_epoch,
            producer_id: self.producer.0,
            producer_epoch: self.producer.1,
            ..BatchOptions::default()
        };
        let marker = EndMarker {
            is_abort: self.abort,
            coordinator_epoch: self.coordinator_epoch,
            timestamp_ms: NOW_MS,
        };
        let mut bytes = Vec::new();
        write_end_marker(&options, &marker, &mut bytes).expect("a marker");
        bytes
    }
}

/// A log on a simulated disk, with a clock.
pub struct TestLog {
    /// The disk.
    pub disk: SimDisk,
    /// The topic's settings.
    pub config: LogConfig,
    /// What is known at opening.
    pub options: OpenOptions,
    /// The clock.
    pub now_ms: i64,
    log: Option<Log>,
    scratch: AppendScratch,
}

impl TestLog {
    /// A new log with Kafka's default settings.
    #[must_use]
    pub fn new() -> Self {
        TestLog::with(|_| ())
    }

    /// A new log with some settings.
    ///
    /// # Panics
    ///
    /// When it cannot be opened.
    #[must_use]
    pub fn with(change: impl FnOnce(&mut LogConfig)) -> Self {
        // Full-sized indexes are 10 MiB of zeros each on a disk in memory.
        let mut config = LogConfig { segment_index_bytes: 12_000, ..LogConfig::default() };
        change(&mut config);
        // Few tests are of verification; those that are switch it on.
        let producers = ProducerStateConfig {
            transaction_verification_enabled: false,
            ..ProducerStateConfig::default()
        };
        let options = OpenOptions { now_ms: NOW_MS, producers, ..OpenOptions::default() };
        TestLog::on(SimDisk::new(), config, options)
    }

    /// The same with transactions verified.
    ///
    /// # Panics
    ///
    /// When it cannot be opened.
    #[must_use]
    pub fn verifying() -> Self {
        let mut log = TestLog::new();
        log.open_with(|options| options.producers.transaction_verification_enabled = true);
        log
    }

    /// The log on a disk.
    ///
    /// # Panics
    ///
    /// When it cannot be opened.
    #[must_use]
    pub fn on(disk: SimDisk, config: LogConfig, options: OpenOptions) -> Self {
        let scratch = AppendScratch::new();
        let mut log = TestLog { disk, config, options, now_ms: NOW_MS, log: None, scratch };
        log.open();
        log
    }

    /// The log.
    ///
    /// # Panics
    ///
    /// When it is not open.
    #[must_use]
    pub fn log(&self) -> &Log {
        self.log.as_ref().expect("an open log")
    }

    fn open(&mut self) {
        let options = OpenOptions { now_ms: self.now_ms, ..self.options.clone() };
        let disk = Arc::new(self.disk.clone());
        let log = Log::open(disk, Path::new(DIR), self.config.clone(), &options);
        self.log = Some(log.expect("a log that opens"));
    }

    /// Closes it and opens it again.
    ///
    /// # Panics
    ///
    /// When one of them fails.
    pub fn reopen(&mut self) {
        self.log().close().expect("a clean stop");
        self.options.clean_shutdown = true;
        self.open();
    }

    /// Lets go of it without a word and opens it again from a recovery point.
    pub fn crash(&mut self, recovery_point: i64) {
        self.log = None;
        self.options.clean_shutdown = false;
        self.options.recovery_point = recovery_point;
        self.open();
    }

    /// Opens it with other options.
    pub fn open_with(&mut self, change: impl FnOnce(&mut OpenOptions)) {
        self.log = None;
        change(&mut self.options);
        self.open();
    }

    /// Appends a producer's batch as the leader of an epoch.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn try_lead(&mut self, batch: &TestBatch, epoch: i32) -> Result<AppendInfo, AppendError> {
        let append = LeaderAppend::client(epoch, self.now_ms);
        self.try_append(batch.build(), append)
    }

    /// Appends bytes as a leader.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn try_append(
        &mut self,
        mut bytes: Vec<u8>,
        append: LeaderAppend,
    ) -> Result<AppendInfo, AppendError> {
        let log = self.log.as_ref().expect("an open log");
        log.append_as_leader(&mut bytes, &append, &mut self.scratch)
    }

    /// Appends a producer's batch as the leader of epoch 0.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub fn lead(&mut self, batch: &TestBatch) -> AppendInfo {
        self.try_lead(batch, 0).expect("a batch that is taken")
    }

    /// Appends a marker as the leader of epoch 0, of a transaction version.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn try_end(
        &mut self,
        marker: &Marker,
        version: Option<i16>,
    ) -> Result<AppendInfo, AppendError> {
        let append = LeaderAppend {
            origin: AppendOrigin::Coordinator,
            transaction_version: version,
            ..LeaderAppend::client(0, self.now_ms)
        };
        self.try_append(marker.build(), append)
    }

    /// Ends a transaction as the leader of epoch 0.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub fn end(&mut self, id: i64, epoch: i16, abort: bool) -> AppendInfo {
        self.try_end(&Marker::of(id, epoch, abort), Some(0)).expect("a marker that is taken")
    }

    /// Appends as a follower.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn try_follow(&self, bytes: &[u8]) -> Result<AppendInfo, AppendError> {
        self.log().append_as_follower(bytes, i32::MAX, self.now_ms)
    }

    /// Appends a batch as a follower.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub fn follow(&self, batch: &TestBatch) -> AppendInfo {
        self.try_follow(&batch.build()).expect("a batch that is taken")
    }

    /// Sets the high watermark to the end of the log.
    ///
    /// # Panics
    ///
    /// When another thread writes.
    pub fn replicate(&self) {
        let end = self.log().log_end_offset();
        self.log().update_high_watermark(end).expect("a high watermark");
    }

    /// Reads up to an end.
    ///
    /// # Errors
    ///
    /// Those of the log.
    pub fn try_read(
        &self,
        offset: i64,
        max_bytes: u32,
        isolation: Isolation,
    ) -> siltstone::Result<FetchedBytes> {
        let options = FetchOptions { max_bytes, isolation, min_one_message: true };
        self.log().read(offset, &options)
    }

    /// Reads everything from an offset on.
    ///
    /// # Panics
    ///
    /// When it cannot be read.
    #[must_use]
    pub fn read(&self, offset: i64) -> FetchedBytes {
        self.try_read(offset, u32::MAX, Isolation::LogEnd).expect("bytes")
    }

    /// The headers of all batches.
    ///
    /// # Panics
    ///
    /// When the log cannot be read.
    #[must_use]
    pub fn headers(&self) -> Vec<BatchHeader> {
        let mut headers: Vec<BatchHeader> = Vec::new();
        let mut offset = self.log().local_log_start_offset();
        while offset < self.log().log_end_offset() {
            let fetched = self.read(offset);
            if fetched.bytes.is_empty() {
                break;
            }
            for batch in Batches::new(&fetched.bytes) {
                let header = batch.expect("a batch").header;
                offset = header.next_offset();
                headers.push(header);
            }
        }
        headers
    }

    /// The base offsets of the segments.
    #[must_use]
    pub fn bases(&self) -> Vec<i64> {
        self.log().segments().iter().map(|segment| segment.base_offset()).collect()
    }

    /// The leader epochs, as epoch and start offset.
    #[must_use]
    pub fn epochs(&self) -> Vec<(i32, i64)> {
        self.log().leader_epochs().entries().iter().map(|e| (e.epoch, e.start_offset)).collect()
    }

    /// The names of the files in the directory, sorted.
    ///
    /// # Panics
    ///
    /// When there is no directory.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let snapshot = self.disk.snapshot(Path::new(DIR)).expect("a directory");
        snapshot.entries.keys().map(|path| path.display().to_string()).collect()
    }

    /// The bytes of a file in the directory.
    ///
    /// # Panics
    ///
    /// When there is no directory.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        let snapshot = self.disk.snapshot(Path::new(DIR)).expect("a directory");
        match snapshot.entries.get(Path::new(name)) {
            Some(Entry::File(bytes)) => Some(bytes.clone()),
            _ => None,
        }
    }

    /// The offsets of the snapshots on the disk.
    #[must_use]
    pub fn snapshots(&self) -> Vec<i64> {
        let files = self.files();
        let stems = files.iter().filter_map(|name| name.strip_suffix(".snapshot"));
        stems.map(|stem| stem.parse().expect("an offset")).collect()
    }
}

impl Default for TestLog {
    fn default() -> Self {
        TestLog::new()
    }
}

/// The first offsets of the batches in some bytes that may end within one.
///
/// # Panics
///
/// When they are no batches.
#[must_use]
pub fn base_offsets(bytes: &[u8]) -> Vec<i64> {
    Batches::new(bytes).map(|batch| batch.expect("a batch").header.base_offset).collect()
}
