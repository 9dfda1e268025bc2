//! What must hold of a batch, and of each of its records?

use super::analyse::unknown_codec;
use super::batches::Batches;
use super::counters::ValidationCounters;
use super::error::{Rejection, ValidateError, ValidateErrorKind};
use super::options::{AppendOrigin, ValidateOptions};
use super::rebuild::batch_overhead;
use crate::record::batch::{BatchHeader, TimestampType};
use crate::record::codec::{Codec, Compression};
use crate::units::NO_TIMESTAMP;

/// What the headers of all batches together say.
pub(super) struct Survey {
    pub(super) first: BatchHeader,
    pub(super) batch_count: u32,
    /// The codec of the last compressed one.
    pub(super) source: Codec,
    /// Whether any has another magic than the target's.
    pub(super) has_other_magic: bool,
}

impl Survey {
    #[inline]
    pub(super) fn of(records: &[u8], target_magic: i8) -> Result<Survey, ValidateError> {
        let mut batches = Batches::new(records);
        let first = batches
            .next()
            .ok_or_else(|| ValidateError::invalid("Record batch has no batches at all"))??;
        let mut survey = Survey {
            first: first.header,
            batch_count: 0,
            source: Codec::None,
            has_other_magic: false,
        };
        survey.take(&first.header, target_magic)?;
        for batch in batches {
            survey.take(&batch?.header, target_magic)?;
        }
        Ok(survey)
    }

    #[inline]
    fn take(&mut self, header: &BatchHeader, target_magic: i8) -> Result<(), ValidateError> {
        self.batch_count = self.batch_count.saturating_add(1);
        self.has_other_magic |= header.magic != target_magic;
        match Codec::from_id(header.codec_id()) {
            Some(Codec::None) => Ok(()),
            Some(codec) => {
                self.source = codec;
                Ok(())
            }
            None => Err(unknown_codec(header.codec_id())),
        }
    }
}

/// One call of the validator.
#[derive(Clone, Copy)]
pub(super) struct Task<'o> {
    pub(super) options: &'o ValidateOptions,
    /// The header of the first batch, as it came.
    pub(super) first: BatchHeader,
    pub(super) batch_count: u32,
    /// The codec of the batches as they came.
    pub(super) source: Codec,
    /// How they are to be written.
    pub(super) target: Compression,
    pub(super) first_offset: i64,
    pub(super) now_ms: i64,
    /// No more rejected records than this are listed.
    pub(super) rejected_max: usize,
}

impl Task<'_> {
    /// A batch of magic 2, or a compressed one, comes alone.
    // spec: records 5.2
    pub(super) fn check_single(&self) -> Result<(), ValidateError> {
        if self.batch_count > 1 && (self.first.magic >= 2 || self.source != Codec::None) {
            return Err(ValidateError::invalid("Compressed outer record has more than one batch"));
        }
        Ok(())
    }

    /// What Kafka counts as the memory for records of this size: none where neither side is
    /// compressed.
    pub(super) fn memory_for(&self, opened_bytes: u64) -> u64 {
        if self.source == Codec::None && self.target.codec() == Codec::None {
            return 0;
        }
        let overhead = batch_overhead(self.options.target_magic, self.source);
        u64::from(self.batch_count) * overhead + opened_bytes
    }

    /// The time that every record gets, where the topic wants that.
    pub(super) fn log_append_time_ms(&self) -> Option<i64> {
        self.options.is_log_append_time().then_some(self.now_ms)
    }
}

/// Holds the header of a batch against the first one's, its producer and the format to write.
// spec: records 5.3
pub(super) fn check_batch(
    header: &BatchHeader,
    task: &Task<'_>,
    counters: &mut ValidationCounters,
) -> Result<(), ValidateError> {
    if header.magic != task.first.magic {
        counters.invalid_magic += 1;
        return Err(ValidateError::invalid(format!(
            "Batch magic {} is not the same as the first batch's magic byte {}",
            header.magic, task.first.magic
        )));
    }
    if task.options.origin == AppendOrigin::Client {
        check_producers_batch(header, counters)?;
    } else if header.magic >= 2 && header.last_offset() < header.base_offset {
        // Kafka trusts a coordinator; no follower would take what came of it.
        counters.invalid_offset += 1;
        return Err(invalid_range(header));
    }
    let what = match (header.is_transactional(), header.has_producer_id()) {
        (true, _) => "Transactional",
        (_, true) => "Idempotent",
        _ => return Ok(()),
    };
    let target_magic = task.options.target_magic;
    if target_magic >= 2 {
        return Ok(());
    }
    let message = format!("{what} records cannot be used with magic version {target_magic}");
    Err(ValidateError::new(ValidateErrorKind::UnsupportedForMessageFormat, message))
}

fn invalid_range(header: &BatchHeader) -> ValidateError {
    let (base, last) = (header.base_offset, header.last_offset());
    ValidateError::invalid(format!("Batch has an invalid offset range: [{base}, {last}]"))
}

fn check_producers_batch(
    header: &BatchHeader,
    counters: &mut ValidationCounters,
) -> Result<(), ValidateError> {
    if header.magic >= 2 {
        let (base, last) = (header.base_offset, header.last_offset());
        let count_from_offsets = last.wrapping_sub(base).wrapping_add(1);
        let count = i64::from(header.count);
        if count_from_offsets <= 0 || count <= 0 || count_from_offsets != count {
            counters.invalid_offset += 1;
            return Err(if count_from_offsets <= 0 {
                invalid_range(header)
            } else if count <= 0 {
                ValidateError::invalid(format!("Invalid reported count for record batch: {count}"))
            } else {
                ValidateError::invalid(format!(
                    "Inconsistent batch offset range [{base}, {last}] and count of records {count}"
                ))
            });
        }
    }
    if header.is_control() {
        counters.invalid_offset += 1;
        return Err(ValidateError::invalid("Clients are not allowed to write control records"));
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        counters.invalid_sequence += 1;
        return Err(ValidateError::invalid(format!(
            "Invalid sequence number {} in record batch with producerId {}",
            header.base_sequence, header.producer_id
        )));
    }
    Ok(())
}

/// The rules for the records of one batch.
#[derive(Clone, Copy)]
pub(super) struct RecordRules {
    is_compacted: bool,
    keeps_create_time: bool,
    is_of_log_append_time: bool,
    now_ms: i64,
    before_max_ms: i64,
    after_max_ms: i64,
}

impl RecordRules {
    pub(super) fn new(task: &Task<'_>, batch: &BatchHeader) -> Self {
        RecordRules {
            is_compacted: task.options.is_compacted,
            keeps_create_time: !task.options.is_log_append_time(),
            is_of_log_append_time: batch.timestamp_type() == TimestampType::LogAppendTime,
            now_ms: task.now_ms,
            before_max_ms: task.options.timestamp_before_max_ms,
            after_max_ms: task.options.timestamp_after_max_ms,
        }
    }

    /// Whether surely no record breaks a rule, when their timestamps, those apart that are none, lie
    /// between these two.
    pub(super) fn accept_all(&self, min_ms: i64, max_ms: i64, have_keys: bool) -> bool {
        if (self.is_compacted && !have_keys) || self.is_of_log_append_time {
            return false;
        }
        // Only far apart from all clocks the difference overflows, and then it says nothing of the
        // timestamps in between.
        let is_surely_near = |ms| self.now_ms.checked_sub(ms).is_some_and(|_| self.is_near(ms));
        !self.keeps_create_time
            || min_ms == i64::MAX
            || (is_surely_near(min_ms) && is_surely_near(max_ms))
    }

    /// Within the limits, which belong to what is taken.
    #[inline]
    fn is_near(&self, timestamp_ms: i64) -> bool {
        // Kafka subtracts without a check.
        let past_ms = self.now_ms.wrapping_sub(timestamp_ms);
        past_ms <= self.before_max_ms && past_ms.wrapping_neg() <= self.after_max_ms
    }

    /// The first rule that the record breaks.
    // spec: records 5.4
    pub(super) fn judge(&self, timestamp_ms: i64, offset: i64, has_key: bool) -> Option<Rejection> {
        if self.is_compacted && !has_key {
            return Some(Rejection::NoKey);
        }
        if !self.keeps_create_time || timestamp_ms == NO_TIMESTAMP {
            return self.is_of_log_append_time.then_some(Rejection::LogAppendTime);
        }
        if self.is_near(timestamp_ms) {
            return None;
        }
        Some(Rejection::Timestamp {
            timestamp_ms,
            offset,
            least_ms: self.now_ms.wrapping_sub(self.before_max_ms),
            most_ms: self.now_ms.wrapping_add(self.after_max_ms),
        })
    }
}
