//! Logs made to measure: `LogBuilder::new().batch(3).roll().txn(7, 2).abort(7)` gives the log files
//! of a partition.
//!
//! Only what the batches say is made; a first recovery adds indexes, snapshots and epochs.

use std::collections::BTreeMap;
use std::path::Path;

use siltstone::io::SimDisk;
use siltstone::record::builder::{
    BatchBuilder, BatchOptions, LegacyBuilder, write_empty_batch, write_end_marker,
};
use siltstone::record::codec::{Codec, Compression, Compressor};
use siltstone::record::control::EndMarker;

/// The producer epoch of every producer.
const PRODUCER_EPOCH: i16 = 0;
/// The first timestamp, in milliseconds since 1970.
const BEGIN_MS: i64 = 1_700_000_000_000;

/// The log files of a partition in the making.
#[derive(Debug)]
pub struct LogBuilder {
    segments: BTreeMap<i64, Vec<u8>>,
    base_offset: i64,
    next_offset: i64,
    leader_epoch: i32,
    timestamp_ms: i64,
    compression: Compression,
    sequences: BTreeMap<i64, i32>,
    value: Vec<u8>,
    /// Where each batch begins: base offset of the segment, position, first offset.
    starts: Vec<(i64, usize, i64)>,
}

impl Default for LogBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl LogBuilder {
    /// A log that starts at offset 0, in leader epoch 0.
    #[must_use]
    pub fn new() -> Self {
        Self::starting_at(0)
    }

    /// A log that starts at an offset.
    #[must_use]
    pub fn starting_at(offset: i64) -> Self {
        LogBuilder {
            segments: BTreeMap::from([(offset, Vec::new())]),
            base_offset: offset,
            next_offset: offset,
            leader_epoch: 0,
            timestamp_ms: BEGIN_MS,
            compression: Compression::NONE,
            sequences: BTreeMap::new(),
            value: b"some value".to_vec(),
            starts: Vec::new(),
        }
    }

    /// Appends a batch of so many records without a producer.
    #[must_use]
    pub fn batch(self, records: i32) -> Self {
        let options = BatchOptions::default();
        self.append(options, records)
    }

    /// Appends a batch of an idempotent producer.
    #[must_use]
    pub fn idempotent(self, producer_id: i64, records: i32) -> Self {
        self.produced(producer_id, records, false)
    }

    /// Appends a batch of a transaction.
    #[must_use]
    pub fn txn(self, producer_id: i64, records: i32) -> Self {
        self.produced(producer_id, records, true)
    }

    /// Ends a transaction well.
    #[must_use]
    pub fn commit(self, producer_id: i64) -> Self {
        self.end(producer_id, false)
    }

    /// Ends a transaction badly.
    #[must_use]
    pub fn abort(self, producer_id: i64) -> Self {
        self.end(producer_id, true)
    }

    /// Appends entries of an old format: single messages, or one wrapper where a codec is set.
    ///
    /// # Panics
    ///
    /// When the magic is neither 0 nor 1.
    #[must_use]
    pub fn legacy(mut self, magic: i8, messages: i64) -> Self {
        let mut builder =
            LegacyBuilder::new(magic, self.compression, None, self.next_offset).expect("a builder");
        for _ in 0..messages {
            let timestamp = if magic == 0 { -1 } else { self.tick() };
            builder
                .append(self.next_offset, timestamp, Some(b"key"), Some(&self.value))
                .expect("a message");
            self.next_offset += 1;
        }
        let first_offset = self.next_offset - messages;
        self.write(first_offset, |out| {
            builder.write_to(&mut Compressor::new(), out).expect("entries");
        })
    }

    /// Appends a batch that compaction emptied and that spans so many offsets.
    ///
    /// # Panics
    ///
    /// When it spans none.
    #[must_use]
    pub fn emptied(mut self, offsets: i64) -> Self {
        let options = self.options(BatchOptions::default());
        let last = self.next_offset + offsets - 1;
        let timestamp = self.tick();
        self.next_offset = last + 1;
        self.write(options.base_offset, |out| {
            write_empty_batch(&options, last, timestamp, out).expect("a header");
        })
    }

    /// Begins a new segment.
    #[must_use]
    pub fn roll(mut self) -> Self {
        self.base_offset = self.next_offset;
        self.segments.entry(self.base_offset).or_default();
        self
    }

    /// The next batches have this leader epoch.
    #[must_use]
    pub fn epoch(mut self, leader_epoch: i32) -> Self {
        self.leader_epoch = leader_epoch;
        self
    }

    /// The next batches are compressed like this.
    #[must_use]
    pub fn codec(mut self, codec: Codec) -> Self {
        self.compression = Compression::new(codec);
        self
    }

    /// The next records have this value.
    #[must_use]
    pub fn value(mut self, value: &[u8]) -> Self {
        self.value = value.to_vec();
        self
    }

    /// Leaves offsets out, as compaction does.
    #[must_use]
    pub fn skip(mut self, offsets: i64) -> Self {
        self.next_offset += offsets;
        self
    }

    /// Appends bytes that are no batch.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.active().extend_from_slice(bytes);
        self
    }

    /// Takes bytes off the end of the newest segment.
    #[must_use]
    pub fn tear(mut self, bytes: usize) -> Self {
        let size = self.active().len().saturating_sub(bytes);
        self.active().truncate(size);
        self
    }

    /// Flips a bit in the last byte of the batch that holds an offset.
    ///
    /// # Panics
    ///
    /// When no batch does.
    #[must_use]
    pub fn damage(mut self, offset: i64) -> Self {
        let at = self.starts.iter().rposition(|start| start.2 <= offset).expect("a batch");
        let (base, _, _) = self.starts[at];
        let end = match self.starts.get(at + 1) {
            Some(next) if next.0 == base => next.1,
            _ => self.segments[&base].len(),
        };
        let segment = self.segments.get_mut(&base).expect("its segment");
        segment[end - 1] ^= 1;
        self
    }

    /// The offset behind the last batch.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.next_offset
    }

    /// The bytes of the newest segment so far.
    #[must_use]
    pub fn newest(&self) -> &[u8] {
        &self.segments[&self.base_offset]
    }

    /// The log files by name.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let named = self.segments.iter();
        named.map(|(base, bytes)| (log_name(*base), bytes.clone())).collect()
    }

    /// Puts the log files into a folder of a simulated disk, durably.
    ///
    /// # Panics
    ///
    /// When something else stands there.
    pub fn put(&self, disk: &SimDisk, dir: &Path) {
        for (name, bytes) in self.files() {
            disk.put(&dir.join(name), bytes, None).expect("a file in place");
        }
    }

    /// Writes the log files into a folder of the real disk, which is made.
    ///
    /// # Panics
    ///
    /// When the disk says no.
    pub fn write_into(&self, dir: &Path) {
        std::fs::create_dir_all(dir).expect("a folder");
        for (name, bytes) in self.files() {
            std::fs::write(dir.join(name), bytes).expect("a file");
        }
    }

    fn produced(mut self, producer_id: i64, records: i32, is_transactional: bool) -> Self {
        let sequence = self.sequences.entry(producer_id).or_default();
        let base_sequence = *sequence;
        *sequence += records;
        let options = BatchOptions {
            producer_id,
            producer_epoch: PRODUCER_EPOCH,
            base_sequence,
            is_transactional,
            ..BatchOptions::default()
        };
        self.append(options, records)
    }

    fn append(mut self, options: BatchOptions, records: i32) -> Self {
        let options = self.options(options);
        let mut builder = BatchBuilder::new(options).expect("options");
        for _ in 0..records {
            let timestamp = self.tick();
            builder.append(timestamp, Some(b"key"), Some(&self.value)).expect("a record");
        }
        self.next_offset += i64::from(records);
        self.write(options.base_offset, |out| {
            builder.write_to(&mut Compressor::new(), out).expect("a batch");
        })
    }

    fn end(mut self, producer_id: i64, is_abort: bool) -> Self {
        let options = self.options(BatchOptions {
            producer_id,
            producer_epoch: PRODUCER_EPOCH,
            ..BatchOptions::default()
        });
        let marker = EndMarker { is_abort, coordinator_epoch: 3, timestamp_ms: self.tick() };
        self.next_offset += 1;
        self.write(options.base_offset, |out| {
            write_end_marker(&options, &marker, out).expect("a marker");
        })
    }

    fn options(&self, options: BatchOptions) -> BatchOptions {
        BatchOptions {
            base_offset: self.next_offset,
            leader_epoch: self.leader_epoch,
            compression: self.compression,
            ..options
        }
    }

    fn write(mut self, first_offset: i64, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let start = (self.base_offset, self.active().len(), first_offset);
        self.starts.push(start);
        write(self.active());
        self
    }

    fn active(&mut self) -> &mut Vec<u8> {
        self.segments.get_mut(&self.base_offset).expect("the newest segment")
    }

    fn tick(&mut self) -> i64 {
        self.timestamp_ms += 1;
        self.timestamp_ms
    }
}

/// The name of the log file with this base offset.
#[must_use]
pub fn log_name(base_offset: i64) -> String {
    format!("{base_offset:020}.log")
}
