//! How do batches that stay as they are get their offsets?

use super::assign::{set_last_offset, set_leader_epoch, set_max_timestamp};
use super::batches::{BatchView, Batches, parse_header};
use super::rebuild::shallow;
use super::rules::Task;
use super::validated::{Placement, Validated, ValidationStats};
use crate::units::NO_TIMESTAMP;

/// What is known of the records of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walked {
    pub(super) count: u64,
    /// -1 for none.
    pub(super) max_timestamp: i64,
    /// Bytes of the records without compression.
    pub(super) opened_bytes: u64,
}

/// Writes into the one batch of `records` what the log gives it.
// spec: records 5.5 and 5.6
#[inline]
pub(super) fn assign_batch(records: &mut [u8], task: &Task<'_>, walked: Walked) -> Validated {
    let size = usize::try_from(task.first.size_bytes).unwrap_or(usize::MAX).min(records.len());
    let batch = records.get_mut(..size).unwrap_or_default();
    let last_offset = task.first_offset.wrapping_add_unsigned(walked.count).wrapping_sub(1);
    let time = task.log_append_time_ms();
    let max_timestamp_ms = time.unwrap_or(walked.max_timestamp);
    let is_written = set_last_offset(batch, last_offset)
        && set_max_timestamp(batch, task.options.timestamp_type, max_timestamp_ms);
    debug_assert!(is_written, "the header was read from these bytes");
    if task.first.magic >= 2 {
        set_leader_epoch(batch, task.options.leader_epoch);
    }
    let temporary_memory_bytes = task.memory_for(walked.opened_bytes);
    Validated {
        placement: Placement::InPlace(size),
        first: parse_header(batch).unwrap_or(task.first),
        batch_count: 1,
        first_offset: task.first_offset,
        last_offset,
        max_timestamp_ms,
        shallow_offset_of_max_timestamp: shallow(max_timestamp_ms, last_offset),
        log_append_time_ms: time.unwrap_or(NO_TIMESTAMP),
        size_may_have_changed: false,
        stats: ValidationStats { converted_records: 0, temporary_memory_bytes },
    }
}

/// Gives each entry of the old formats the next offset; gives how many bytes they have together.
pub(super) fn assign_entries(records: &mut [u8], task: &Task<'_>) -> usize {
    let time = task.log_append_time_ms();
    let (mut rest, mut size, mut offset) = (records, 0, task.first_offset);
    while let Some(Ok(BatchView { header, bytes })) = Batches::new(rest).next() {
        let (entry_size, own_ms) = (bytes.len(), header.max_timestamp);
        let Some((entry, behind)) = rest.split_at_mut_checked(entry_size) else { break };
        let is_written = set_last_offset(entry, offset);
        debug_assert!(is_written, "the header was read from these bytes");
        if header.magic > 0 {
            let max_ms = time.unwrap_or(own_ms.max(NO_TIMESTAMP));
            set_max_timestamp(entry, task.options.timestamp_type, max_ms);
        }
        rest = behind;
        size += entry_size;
        offset = offset.wrapping_add(1);
    }
    size
}
