//! What does the writer of a batch choose?

use crate::error::{Error, Kind, Result};
use crate::record::batch::{
    ATTR_CONTROL, ATTR_DELETE_HORIZON, ATTR_LOG_APPEND_TIME, ATTR_TRANSACTIONAL,
};
use crate::record::codec::Compression;
use crate::units::{NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE};

/// What the header of a batch says beside what follows from the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchOptions {
    /// Offset that the batch counts its records from.
    pub base_offset: i64,
    /// Leader epoch, -1 for none.
    pub leader_epoch: i32,
    /// Codec and level of the records.
    pub compression: Compression,
    /// The time of the append, where the topic wants that for all records; otherwise they keep
    /// their own.
    pub log_append_time_ms: Option<i64>,
    /// Producer id, -1 for none.
    pub producer_id: i64,
    /// Producer epoch, -1 for none.
    pub producer_epoch: i16,
    /// Sequence of the first record, -1 for none.
    pub base_sequence: i32,
    /// Whether the batch belongs to a transaction.
    pub is_transactional: bool,
    /// Whether it holds a control record.
    pub is_control: bool,
    /// The time after which its tombstones may go; compaction sets it.
    pub delete_horizon_ms: Option<i64>,
    /// Offset that the batch reaches to, inclusive, where that is behind its last record:
    /// compaction keeps it.
    pub last_offset: Option<i64>,
}

impl Default for BatchOptions {
    fn default() -> Self {
        BatchOptions {
            base_offset: 0,
            leader_epoch: NO_LEADER_EPOCH,
            compression: Compression::NONE,
            log_append_time_ms: None,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            is_transactional: false,
            is_control: false,
            delete_horizon_ms: None,
            last_offset: None,
        }
    }
}

impl BatchOptions {
    /// The producer rules that Kafka's writer insists on.
    pub(super) fn check(&self) -> Result<()> {
        // spec: records 1.3
        let has_producer_id = self.producer_id != NO_PRODUCER_ID;
        if self.is_transactional && !has_producer_id {
            return Err(invalid("a transactional batch needs a producer id"));
        }
        if has_producer_id && self.producer_epoch == NO_PRODUCER_EPOCH {
            return Err(invalid("a batch with a producer id needs a producer epoch"));
        }
        if has_producer_id && self.base_sequence < 0 && !self.is_control {
            return Err(invalid("a batch with a producer id needs a base sequence"));
        }
        if self.delete_horizon_ms.is_some_and(|horizon| horizon < 0) {
            return Err(invalid("a delete horizon is not negative"));
        }
        Ok(())
    }

    pub(super) fn attributes(&self) -> u8 {
        let flags = [
            (self.log_append_time_ms.is_some(), ATTR_LOG_APPEND_TIME),
            (self.is_transactional, ATTR_TRANSACTIONAL),
            (self.is_control, ATTR_CONTROL),
            (self.delete_horizon_ms.is_some(), ATTR_DELETE_HORIZON),
        ];
        let codec = self.compression.codec().id();
        flags.into_iter().filter(|flag| flag.0).fold(codec, |attributes, flag| attributes | flag.1)
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(Kind::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::super::BatchBuilder;
    use super::*;

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        // spec: behaviours BU-003, BU-004, BU-005
        let base = BatchOptions::default();
        let producer = BatchOptions { producer_id: 1, producer_epoch: 0, base_sequence: 0, ..base };
        for (options, accepted) in [
            (producer, true),
            (BatchOptions { is_transactional: true, ..producer }, true),
            (BatchOptions { is_transactional: true, ..base }, false),
            (BatchOptions { producer_epoch: -1, ..producer }, false),
            (BatchOptions { base_sequence: -1, ..producer }, false),
            (BatchOptions { base_sequence: -1, is_control: true, ..producer }, true),
            (BatchOptions { delete_horizon_ms: Some(-1), ..base }, false),
        ] {
            let outcome = BatchBuilder::new(options).map(drop).map_err(|error| error.kind());
            let wanted = if accepted { Ok(()) } else { Err(Kind::InvalidArgument) };
            assert_eq!(outcome, wanted, "{options:?}");
        }
    }
}
