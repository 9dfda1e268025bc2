//! Batches as a busy topic has them: JSON values of 200 bytes, from idempotent producers that take
//! turns.

use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::{Codec, Compressor};

use crate::Result;
use crate::payload::json_events;

/// Bytes of a value.
const VALUE_SIZE: usize = 200;
/// Values that there are; each batch takes a run of them.
const VALUES: usize = 4096;
/// Bytes that a record has beside its value.
const RECORD_OVERHEAD: usize = 10;
/// The first producer id.
const FIRST_PRODUCER_ID: i64 = 1000;

/// The timestamp of the first batch, in ms; each batch is one ms later.
pub const FIRST_TIMESTAMP_MS: i64 = 1_700_000_000_000;

/// What the batches of a log look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// About so many bytes has a batch, compressed.
    pub batch_bytes: usize,
    /// How its records are compressed.
    pub codec: Codec,
    /// So many idempotent producers take turns; with 0 the batches are of no such producer.
    pub producers: usize,
}

/// Makes the batches of one log, one after the other.
pub struct Batches {
    shape: Shape,
    values: Vec<u8>,
    records: usize,
    sequences: Vec<i32>,
    next_offset: i64,
    made: usize,
    builder: BatchBuilder,
    compressor: Compressor,
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Batches {
    /// The batches of a new log. Two with the same shape are alike to the byte.
    ///
    /// # Errors
    /// When the codec fails.
    pub fn new(shape: Shape) -> Result<Self> {
        let mut batches = Batches {
            shape,
            values: json_events(VALUES * VALUE_SIZE, 42),
            records: 0,
            sequences: vec![0; shape.producers.max(1)],
            next_offset: 0,
            made: 0,
            builder: BatchBuilder::new(BatchOptions::default())?,
            compressor: Compressor::new(),
        };
        batches.records = (shape.batch_bytes / (VALUE_SIZE + RECORD_OVERHEAD)).max(1);
        if shape.codec != Codec::None {
            // How many records a compressed batch takes is seen from one.
            let mut trial = Vec::new();
            batches.records *= 3;
            let size = batches.push(&mut trial)?;
            batches.records = (batches.records * shape.batch_bytes / size).max(1);
            (batches.next_offset, batches.made) = (0, 0);
            batches.sequences.fill(0);
        }
        Ok(batches)
    }

    /// The offset of the next batch.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.next_offset
    }

    /// Batches made so far.
    #[must_use]
    pub fn made(&self) -> usize {
        self.made
    }

    /// Appends the next batch to `out` and gives its size.
    ///
    /// # Errors
    /// When the codec fails.
    pub fn push(&mut self, out: &mut Vec<u8>) -> Result<usize> {
        let turn = self.made % self.sequences.len();
        let sequence = self.sequences.get_mut(turn).ok_or("no producer")?;
        let timestamp_ms = FIRST_TIMESTAMP_MS + i64::try_from(self.made)?;
        let mut options = BatchOptions {
            base_offset: self.next_offset,
            leader_epoch: 0,
            compression: self.shape.codec.into(),
            ..BatchOptions::default()
        };
        if self.shape.producers > 0 {
            options.producer_id = FIRST_PRODUCER_ID + i64::try_from(turn)?;
            options.producer_epoch = 0;
            options.base_sequence = *sequence;
        }
        self.builder.restart(options)?;
        let values = self.values.chunks_exact(VALUE_SIZE).cycle();
        for value in values.skip(self.made * 37 % VALUES).take(self.records) {
            self.builder.append(timestamp_ms, None, Some(value))?;
        }
        let size = self.builder.write_to(&mut self.compressor, out)?;
        *sequence += self.builder.count();
        self.next_offset = self.builder.next_offset();
        self.made += 1;
        Ok(size)
    }
}
