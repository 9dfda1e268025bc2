//! What is to be written, and what does the log learn of it?

use std::ops::Range;

use crate::record::batch::BatchHeader;

/// Where the bytes to be written lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In the caller's records, up to this size.
    InPlace(usize),
    /// In the buffer for rebuilt batches.
    Rebuilt(Range<usize>),
}

/// What it took to come to these bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValidationStats {
    /// Records that were written anew: Kafka's `MessageConversions`.
    pub converted_records: u64,
    /// Bytes of records that were decompressed or written anew: Kafka's `TemporaryMemoryBytes`.
    pub temporary_memory_bytes: u64,
}

/// Batches that may be appended, with the offsets that they have from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validated {
    /// Which bytes are to be written.
    pub placement: Placement,
    /// The header of the first batch, as it is to be written: with its offsets, its timestamps, and
    /// its producer. A batch of magic 2 is the only one.
    pub first: BatchHeader,
    /// How many batches there are: more than one only in the old formats, uncompressed.
    pub batch_count: u32,
    /// Offset of the first record.
    pub first_offset: i64,
    /// Offset of the last record, inclusive.
    pub last_offset: i64,
    /// The largest timestamp, -1 for none.
    pub max_timestamp_ms: i64,
    /// Last offset of the batch that has it, of the first where there are several; -1 for none.
    pub shallow_offset_of_max_timestamp: i64,
    /// The time that the broker gave the records, -1 where they keep their own.
    pub log_append_time_ms: i64,
    /// Whether the bytes are others than the caller's. Their size was then held against
    /// `max.message.bytes` again.
    pub size_may_have_changed: bool,
    /// What it took.
    pub stats: ValidationStats,
}

impl Validated {
    /// The bytes to be written, out of the caller's records or the buffer for rebuilt batches.
    #[must_use]
    pub fn bytes<'a>(&self, records: &'a [u8], rebuilt: &'a [u8]) -> &'a [u8] {
        match &self.placement {
            Placement::InPlace(size) => records.get(..*size),
            Placement::Rebuilt(range) => rebuilt.get(range.clone()),
        }
        .unwrap_or_default()
    }
}
