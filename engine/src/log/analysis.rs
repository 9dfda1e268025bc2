//! What is in the bytes that are to be appended? Looked at before anybody waits.

use super::append_error::{AppendError, AppendReason};
use crate::record::frames::{Batch, Batches};
use crate::units::{NO_LEADER_EPOCH, NO_TIMESTAMP};

/// The batches of an append and what they have in common.
#[derive(Debug)]
pub(super) struct Analysis<'a> {
    pub(super) batches: Vec<Batch<'a>>,
    /// Of the first batch, where its format says it.
    pub(super) first_offset: Option<i64>,
    pub(super) last_offset_of_first: i64,
    pub(super) last_offset: i64,
    pub(super) max_timestamp_ms: i64,
    pub(super) is_monotonic: bool,
    pub(super) size_bytes: u64,
}

/// What is asked of the batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demands {
    /// `max.message.bytes`; followers take what their leader has taken.
    pub(super) batch_bytes_max: Option<u32>,
    /// Batches of a later epoch are left out, and all behind them: they come from a leader that the
    /// follower does not know yet.
    pub(super) leader_epoch_max: Option<i32>,
    /// Every batch must be of this epoch.
    pub(super) leader_epoch: Option<i32>,
}

impl<'a> Analysis<'a> {
    /// Looks at the whole batches of `records`.
    // spec: segments 6.4, step 1
    pub(super) fn of(records: &'a [u8], demands: Demands) -> Result<Self, AppendError> {
        let mut analysis = Analysis {
            batches: Vec::new(),
            first_offset: None,
            last_offset_of_first: -1,
            last_offset: -1,
            max_timestamp_ms: NO_TIMESTAMP,
            is_monotonic: true,
            size_bytes: 0,
        };
        for batch in Batches::new(records) {
            let batch = batch.map_err(|error| {
                AppendError::refused(AppendReason::CorruptRecord, error.message())
            })?;
            let epoch = batch.header.leader_epoch;
            if demands.leader_epoch.is_some_and(|wanted| wanted != epoch) {
                let message = format!("a batch of leader epoch {epoch} comes from another leader");
                return Err(AppendError::refused(AppendReason::InvalidRecord, message));
            }
            // Kafka 4.3.1: KAFKA-18723.
            if epoch != NO_LEADER_EPOCH && demands.leader_epoch_max.is_some_and(|max| epoch > max) {
                break;
            }
            analysis.add(batch, demands.batch_bytes_max)?;
        }
        Ok(analysis)
    }

    fn add(&mut self, batch: Batch<'a>, bytes_max: Option<u32>) -> Result<(), AppendError> {
        let header = &batch.header;
        if let Some(max) = bytes_max
            && header.size_bytes > max
        {
            let message = format!(
                "the batch at offset {} has {} bytes, at most {max} may be appended",
                header.base_offset, header.size_bytes
            );
            return Err(AppendError::refused(AppendReason::RecordTooLarge, message));
        }
        if !batch.is_valid() {
            let message = format!("the batch at offset {} is damaged", header.base_offset);
            return Err(AppendError::refused(AppendReason::CorruptRecord, message));
        }
        let last_offset = header.last_offset();
        if self.batches.is_empty() {
            self.first_offset = (header.magic >= 2).then_some(header.base_offset);
            self.last_offset_of_first = last_offset;
        } else {
            self.is_monotonic &= self.last_offset < last_offset;
        }
        self.last_offset = last_offset;
        self.max_timestamp_ms = self.max_timestamp_ms.max(header.max_timestamp);
        self.size_bytes = self.size_bytes.saturating_add(u64::from(header.size_bytes));
        self.batches.push(batch);
        Ok(())
    }

    /// The first offset, or the last one of the first batch where only that is known.
    pub(super) fn first_known_offset(&self) -> i64 {
        self.first_offset.unwrap_or(self.last_offset_of_first)
    }
}
