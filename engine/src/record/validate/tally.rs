//! What do all records of a batch of magic 2 together say?
//!
//! A batch that is good is walked once, without a look at which record says what. Only one that is
//! refused is walked again, to list its records.

use super::counters::ValidationCounters;
use super::error::{Rejections, ValidateError};
use super::rules::{RecordRules, Task};
use super::walk::{Seer, WalkFault};
use crate::record::batch::{BatchHeader, TimestampType};
use crate::record::check::fields::Deltas;
use crate::record::codec::Codec;
use crate::units::NO_TIMESTAMP;

/// What a walk over the records of a batch gives. As few numbers as may be, so that the walk keeps
/// all of them in registers.
#[derive(Clone, Copy)]
pub(super) struct Tally {
    base_timestamp: i64,
    /// The offset delta with which the next record has the offset that is its number.
    next_delta: i64,
    max_timestamp: i64,
    /// The smallest, without those that are none; the largest number when there is no other.
    min_timestamp: i64,
    /// [`IS_ODD`] and [`IS_KEYLESS`], of any record.
    flags: u8,
}

/// An offset is not 0, 1, 2 ...
const IS_ODD: u8 = 1;
/// A key is null.
const IS_KEYLESS: u8 = 2;

impl Tally {
    /// Of no records yet, for the task's batch.
    pub(super) fn new(task: &Task<'_>) -> Self {
        Tally {
            base_timestamp: task.first.base_timestamp,
            next_delta: task.first.base_offset.wrapping_neg(),
            max_timestamp: NO_TIMESTAMP,
            min_timestamp: i64::MAX,
            flags: 0,
        }
    }

    /// The largest timestamp, -1 for none.
    pub(super) fn max_timestamp(&self, task: &Task<'_>) -> i64 {
        match Place::of(&task.first).append_time {
            Some(time) if task.first.count > 0 => time.max(NO_TIMESTAMP),
            Some(_) => NO_TIMESTAMP,
            None => self.max_timestamp,
        }
    }

    /// Whether the records' offsets are 0, 1, 2 ...
    pub(super) fn is_consecutive(&self) -> bool {
        self.flags & IS_ODD == 0
    }

    /// Whether surely no record breaks a rule. Otherwise a [`Lister`] must look at each, as it
    /// must where the batch has one timestamp for all.
    pub(super) fn is_accepted(&self, task: &Task<'_>) -> bool {
        let rules = RecordRules::new(task, &task.first);
        let has_all_keys = self.flags & IS_KEYLESS == 0;
        rules.accept_all(self.min_timestamp, self.max_timestamp, has_all_keys)
    }
}

impl Seer for Tally {
    #[inline(always)]
    fn take(&mut self, deltas: Deltas) {
        let timestamp_ms = self.base_timestamp.wrapping_add(deltas.timestamp);
        let present_ms = if timestamp_ms == NO_TIMESTAMP { i64::MAX } else { timestamp_ms };
        self.max_timestamp = self.max_timestamp.max(timestamp_ms);
        self.min_timestamp = self.min_timestamp.min(present_ms);
        let is_odd = i64::from(deltas.offset) != self.next_delta;
        let is_keyless = !deltas.has_key;
        self.flags |= (u8::from(is_odd) * IS_ODD) | (u8::from(is_keyless) * IS_KEYLESS);
        self.next_delta = self.next_delta.wrapping_add(1);
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

    fn timestamp_ms(&self, deltas: Deltas) -> i64 {
        self.append_time.unwrap_or_else(|| self.base_timestamp.wrapping_add(deltas.timestamp))
    }

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

    /// The refusal of the batch, if there is anything to refuse. A record that cannot be read is
    /// refused at once, whatever was listed in front of it.
    pub(super) fn finish(
        self,
        walked: Result<(), WalkFault>,
        codec: Codec,
        counters: &mut ValidationCounters,
    ) -> Result<(), ValidateError> {
        match walked {
            Ok(()) => self.rejections.into_result(counters),
            Err(fault) => {
                self.rejections.count_into(counters);
                Err(fault.into_error(codec))
            }
        }
    }
}

impl Seer for &mut Lister {
    fn take(&mut self, deltas: Deltas) {
        let (timestamp_ms, offset) = (self.place.timestamp_ms(deltas), self.place.offset(deltas));
        if let Some(rejection) = self.rules.judge(timestamp_ms, offset, deltas.has_key) {
            self.rejections.push(self.index, rejection, self.listed_max);
        }
        self.index = self.index.saturating_add(1);
    }
}
