//! Why are batches refused, in Kafka's words?

use std::fmt;

use super::counters::ValidationCounters;
use crate::error::{Error, Kind};
use crate::record::codec::{CodecError, CodecErrorKind};
use crate::record::records::RecordError;

/// The exceptions that Kafka refuses batches with, and what its protocol makes of them.
///
/// | kind | Kafka's exception | code on the wire |
/// |---|---|---|
/// | `CorruptRecord` | `CorruptRecordException` | 2 `CORRUPT_MESSAGE` |
/// | `InvalidRecord` | `InvalidRecordException`, or `RecordValidationException` over it | 87 `INVALID_RECORD` |
/// | `InvalidTimestamp` | `RecordValidationException` over `InvalidTimestampException` | 32 `INVALID_TIMESTAMP` |
/// | `RecordTooLarge` | `RecordTooLargeException` | 10 `MESSAGE_TOO_LARGE` |
/// | `UnsupportedForMessageFormat` | `UnsupportedForMessageFormatException` | 43 `UNSUPPORTED_FOR_MESSAGE_FORMAT` |
/// | `UnsupportedCompressionType` | `UnsupportedCompressionTypeException` | 76 `UNSUPPORTED_COMPRESSION_TYPE` |
/// | `OffsetsOutOfOrder` | `OffsetsOutOfOrderException` | -1 `UNKNOWN_SERVER_ERROR` |
/// | `IllegalArgument` | `IllegalArgumentException` | -1 `UNKNOWN_SERVER_ERROR` |
/// | `Codec` | `KafkaException` | -1 `UNKNOWN_SERVER_ERROR` |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValidateErrorKind {
    /// Bytes that are no batch, or a checksum that does not match.
    CorruptRecord,
    /// Batches or records that contradict themselves or the topic.
    InvalidRecord,
    /// Timestamps that the topic does not take.
    InvalidTimestamp,
    /// A batch above `max.message.bytes`.
    RecordTooLarge,
    /// Transactions or idempotence in an old format.
    UnsupportedForMessageFormat,
    /// A codec that the version of the request does not know.
    UnsupportedCompressionType,
    /// A follower's batches whose offsets do not rise.
    OffsetsOutOfOrder,
    /// An unknown codec, or what the writer of a batch refuses.
    IllegalArgument,
    /// A payload that does not open.
    Codec,
}

impl ValidateErrorKind {
    /// The error code of Kafka's protocol.
    #[must_use]
    pub fn code(self) -> i16 {
        match self {
            ValidateErrorKind::CorruptRecord => 2,
            ValidateErrorKind::InvalidRecord => 87,
            ValidateErrorKind::InvalidTimestamp => 32,
            ValidateErrorKind::RecordTooLarge => 10,
            ValidateErrorKind::UnsupportedForMessageFormat => 43,
            ValidateErrorKind::UnsupportedCompressionType => 76,
            ValidateErrorKind::OffsetsOutOfOrder
            | ValidateErrorKind::IllegalArgument
            | ValidateErrorKind::Codec => -1,
        }
    }
}

/// A record that its batch is refused for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedRecord {
    /// Which record of the batch, from 0. (Kafka calls it the batch index.)
    pub batch_index: u32,
    /// Why.
    pub rejection: Rejection,
}

/// Why a record is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// Its magic is not that of the batch around it.
    Magic {
        /// The record's.
        record: i8,
        /// The batch's.
        batch: i8,
    },
    /// It has no key, and the topic is compacted.
    NoKey,
    /// Its timestamp is too far from now.
    Timestamp {
        /// The timestamp.
        timestamp_ms: i64,
        /// The record's offset, as it came.
        offset: i64,
        /// The least that would be taken.
        least_ms: i64,
        /// The most that would be taken.
        most_ms: i64,
    },
    /// The producer says that the broker gave the timestamp.
    LogAppendTime,
}

impl Rejection {
    /// What Kafka makes of this record alone; one [`ValidateErrorKind::InvalidTimestamp`] makes the
    /// whole batch so.
    #[must_use]
    pub fn kind(self) -> ValidateErrorKind {
        match self {
            Rejection::Magic { .. } | Rejection::NoKey => ValidateErrorKind::InvalidRecord,
            Rejection::Timestamp { .. } | Rejection::LogAppendTime => {
                ValidateErrorKind::InvalidTimestamp
            }
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::Magic { record, batch } => {
                write!(f, "Record's magic {record} does not match outer magic {batch}")
            }
            Rejection::NoKey => f.write_str("Compacted topic cannot accept message without key"),
            Rejection::Timestamp { timestamp_ms, offset, least_ms, most_ms } => write!(
                f,
                "Timestamp {timestamp_ms} of message with offset {offset} is out of range. The \
                 timestamp should be within [{least_ms}, {most_ms}]"
            ),
            Rejection::LogAppendTime => f.write_str(
                "Invalid timestamp type in message. Producer should not set timestamp type to \
                 LogAppendTime.",
            ),
        }
    }
}

/// The records that one batch is refused for.
#[derive(Clone, Debug, Default)]
pub(super) struct Rejections {
    listed: Vec<RejectedRecord>,
    count: u64,
    magic_count: u64,
    no_key_count: u64,
    has_timestamp: bool,
}

impl Rejections {
    /// Adds one; it is listed when fewer than `listed_max` are.
    pub(super) fn push(&mut self, batch_index: u32, rejection: Rejection, listed_max: usize) {
        self.count += 1;
        match rejection {
            Rejection::Magic { .. } => self.magic_count += 1,
            Rejection::NoKey => self.no_key_count += 1,
            Rejection::Timestamp { .. } | Rejection::LogAppendTime => self.has_timestamp = true,
        }
        if self.listed.len() < listed_max {
            self.listed.push(RejectedRecord { batch_index, rejection });
        }
    }

    /// What Kafka has counted by now.
    pub(super) fn count_into(&self, counters: &mut ValidationCounters) {
        counters.invalid_magic += self.magic_count;
        counters.no_key_compacted_topic += self.no_key_count;
    }

    /// The refusal of the whole batch, if there is anything to refuse; Kafka's meters count its
    /// records.
    pub(super) fn into_result(
        self,
        counters: &mut ValidationCounters,
    ) -> Result<(), ValidateError> {
        if self.count == 0 {
            return Ok(());
        }
        self.count_into(counters);
        let (kind, message) = if self.has_timestamp {
            (
                ValidateErrorKind::InvalidTimestamp,
                "One or more records have been rejected due to invalid timestamp".to_owned(),
            )
        } else {
            let first = self.listed.iter().take(3);
            let first: Vec<String> =
                first.map(|r| format!("record {}: {}", r.batch_index, r.rejection)).collect();
            let message = format!(
                "One or more records have been rejected due to {} record errors in total, and \
                 only showing the first three errors at most: [{}]",
                self.count,
                first.join(", ")
            );
            (ValidateErrorKind::InvalidRecord, message)
        };
        let (rejected, rejected_count) = (self.listed, self.count);
        Err(ValidateError(Box::new(Inner { kind, message, rejected, rejected_count })))
    }
}

/// Batches that are refused. The caller's bytes are as they were.
#[derive(Clone, PartialEq, Eq)]
pub struct ValidateError(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    kind: ValidateErrorKind,
    message: String,
    rejected: Vec<RejectedRecord>,
    rejected_count: u64,
}

impl ValidateError {
    #[cold]
    pub(super) fn new(kind: ValidateErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        ValidateError(Box::new(Inner { kind, message, rejected: Vec::new(), rejected_count: 0 }))
    }

    #[cold]
    pub(super) fn corrupt(message: impl Into<String>) -> Self {
        ValidateError::new(ValidateErrorKind::CorruptRecord, message)
    }

    #[cold]
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        ValidateError::new(ValidateErrorKind::InvalidRecord, message)
    }

    #[cold]
    pub(super) fn argument(message: impl Into<String>) -> Self {
        ValidateError::new(ValidateErrorKind::IllegalArgument, message)
    }

    /// Kafka's error.
    #[must_use]
    pub fn kind(&self) -> ValidateErrorKind {
        self.0.kind
    }

    /// One sentence in Kafka's words, without topic and partition.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether Kafka would throw `RecordValidationException`: single records are refused.
    #[must_use]
    pub fn is_record_validation(&self) -> bool {
        self.0.rejected_count > 0
    }

    /// The records that the batch is refused for, in order: all of them, but never more than the
    /// request had bytes.
    #[must_use]
    pub fn rejected(&self) -> &[RejectedRecord] {
        &self.0.rejected
    }

    /// How many records there are that the batch is refused for.
    #[must_use]
    pub fn rejected_count(&self) -> u64 {
        self.0.rejected_count
    }
}

impl fmt::Display for ValidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for ValidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.kind, self.0.message)
    }
}

impl std::error::Error for ValidateError {}

impl From<RecordError> for ValidateError {
    fn from(error: RecordError) -> Self {
        ValidateError::invalid(error.reason)
    }
}

impl From<CodecError> for ValidateError {
    fn from(error: CodecError) -> Self {
        let kind = match error.kind() {
            CodecErrorKind::Corrupt => ValidateErrorKind::Codec,
            CodecErrorKind::Limit => ValidateErrorKind::RecordTooLarge,
            CodecErrorKind::UnknownCodec | CodecErrorKind::Argument => {
                ValidateErrorKind::IllegalArgument
            }
        };
        ValidateError::new(kind, error.reason())
    }
}

/// What the builders of batches refuse.
impl From<Error> for ValidateError {
    fn from(error: Error) -> Self {
        ValidateError::argument(error.message())
    }
}

impl From<ValidateError> for Error {
    fn from(error: ValidateError) -> Self {
        let kind = match error.kind() {
            ValidateErrorKind::CorruptRecord | ValidateErrorKind::Codec => Kind::Corrupt,
            ValidateErrorKind::RecordTooLarge => Kind::Limit,
            ValidateErrorKind::UnsupportedForMessageFormat
            | ValidateErrorKind::UnsupportedCompressionType => Kind::Unsupported,
            ValidateErrorKind::OffsetsOutOfOrder => Kind::Conflict,
            ValidateErrorKind::InvalidRecord
            | ValidateErrorKind::InvalidTimestamp
            | ValidateErrorKind::IllegalArgument => Kind::InvalidArgument,
        };
        Error::new(kind, error.message())
    }
}

const _: () = assert!(size_of::<ValidateError>() == size_of::<usize>());
