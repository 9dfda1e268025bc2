//! What do all records of a batch of magic 2 together say?
//!
//! A batch that is good is walked once, without a look at which record says what. Only one that is
//! refused is walked again, to list its records.

use super::counters::ValidationCounters;
use super::error::{Rejections, ValidateError};
use super::rules::{RecordRules, Task};
use super::walk::Seer;
use crate::record::batch::{BatchHeader, TimestampType};
use crate::record::check::fields::Deltas;
use crate::units::NO_TIMESTAMP;

/// What a walk over the records of a batch gives.
#[derive(Clone, Copy)]
pub(super) struct Tally {
    place: Place,
    rules: RecordRules,
    next_offset: i64,
    /// The largest timestamp, -1 for none.
    pub(super) max_timestamp: i64,
    /// The smallest, without those that are none; the largest number when there is no other.
    min_timestamp: i64,
    /// Whether the records' offsets are 0, 1, 2 ...
    pub(super) is_consecutive: bool,
    has_all_keys: bool,
}

impl Tally {
    /// Of no records yet, for the task's batch.
    #[inline]
    pub(super) fn new(task: &Task<'_>) -> Self {
        Tally {
            place: Place::of(&task.first),
            rules: RecordRules::new(task, &task.first),
            next_offset: 0,
            max_timestamp: NO_TIMESTAMP,
            min_timestamp: i64::MAX,
            is_consecutive: true,
            has_all_keys: true,
        }
    }

    /// Whether surely no record breaks a rule. Otherwise a [`Lister`] must look at each.
    pub(super) fn is_accepted(&self) -> bool {
        self.rules.accept_all(self.min_timestamp, self.max_timestamp, self.has_all_keys)
    }
}

impl Seer for Tally {
    #[inline(always)]
    fn take(&mut self, deltas: Deltas) {
        let timestamp_ms = self.place.timestamp_ms(deltas);
        let present_ms = if timestamp_ms == NO_TIMESTAMP { i64::MAX } else { timestamp_ms };
        self.max_timestamp = self.max_timestamp.max(timestamp_ms);
        self.min_timestamp = self.min_timestamp.min(present_ms);
        self.is_consecutive &= self.place.offset(deltas) == self.next_offset;
        self.has_all_keys &= deltas.has_key;
        self.next_offset += 1;
    }
}

/// Where the records of a batch stand.
#[derive(Clone, Copy)]
struct Place {
    base_offset: i64,
    base_timestamp: i64,
    /// The timestamp of every record, where the header says so.
    append_time: Option<i64>,
}

impl Place {
    fn of(header: &BatchHeader) -> Self {
        Place {
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time: (header.timestamp_type() == TimestampType::LogAppendTime)
                .then_some(header.max_timestamp),
        }
    }

    #[inline]
    fn timestamp_ms(&self, deltas: Deltas) -> i64 {
        self.append_time.unwrap_or_else(|| self.base_timestamp.wrapping_add(deltas.timestamp))
    }

    #[inline]
    fn offset(&self, deltas: Deltas) -> i64 {
        self.base_offset.wrapping_add(i64::from(deltas.offset))
    }
}

/// Lists the records of a batch that break a rule.
pub(super) struct Lister {
    place: Place,
    rules: RecordRules,
    index: u32,
    listed_max: usize,
    rejections: Rejections,
}

impl Lister {
    /// Of no records yet, for the task's batch.
    pub(super) fn new(task: &Task<'_>) -> Self {
        Lister {
            place: Place::of(&task.first),
            rules: RecordRules::new(task, &task.first),
            index: 0,
            listed_max: task.rejected_max,
            rejections: Rejections::default(),
        }
    }

    /// The refusal of the batch, if there is anything to list.
    pub(super) fn finish(self, counters: &mut ValidationCounters) -> Result<(), ValidateError> {
        self.rejections.into_result(counters)
    }
}

impl Seer for Lister {
    fn take(&mut self, deltas: Deltas) {
        let (timestamp_ms, offset) = (self.place.timestamp_ms(deltas), self.place.offset(deltas));
        if let Some(rejection) = self.rules.judge(timestamp_ms, offset, deltas.has_key) {
            self.rejections.push(self.index, rejection, self.listed_max);
        }
        self.index = self.index.saturating_add(1);
    }
}
