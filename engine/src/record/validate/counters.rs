//! How often was what refused?

/// Kafka's meters of refused records, counted since the validator was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValidationCounters {
    /// `InvalidMagicNumberRecordsPerSec`.
    pub invalid_magic: u64,
    /// `InvalidOffsetOrSequenceRecordsPerSec`, for an offset, a count or a control batch.
    pub invalid_offset: u64,
    /// `InvalidOffsetOrSequenceRecordsPerSec`, for a sequence.
    pub invalid_sequence: u64,
    /// `InvalidMessageCrcRecordsPerSec`.
    pub invalid_checksum: u64,
    /// `NoKeyCompactedTopicRecordsPerSec`.
    pub no_key_compacted_topic: u64,
}
