//! What does one batch say about its producer, and what comes of it?

use std::fmt;

use super::producer::LastBatch;
use crate::error::{Error, Kind};
use crate::record::BatchHeader;
use crate::record::control::Control;

/// What one batch with a producer id means to the state of its producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerEvent {
    /// The producer's id, not negative.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The first sequence; -1 in control batches.
    pub base_sequence: i32,
    /// The last sequence; -1 in control batches.
    pub last_sequence: i32,
    /// The first offset.
    pub base_offset: i64,
    /// The last offset.
    pub last_offset: i64,
    /// The largest timestamp of the batch in ms.
    pub max_timestamp: i64,
    /// What kind of batch it is.
    pub kind: EventKind,
}

/// What kind of batch a [`ProducerEvent`] is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Records of the producer.
    Data {
        /// Whether they belong to a transaction.
        transactional: bool,
    },
    /// The end of a transaction.
    Marker {
        /// Whether the transaction is aborted, not committed.
        abort: bool,
        /// The epoch of the transaction coordinator that wrote it.
        coordinator_epoch: i32,
        /// The timestamp of the marker's record in ms.
        timestamp: i64,
    },
    /// A control batch that compaction has emptied.
    EmptyControl,
}

impl ProducerEvent {
    /// What a batch says of its producer; `None` when it has none, or says nothing that could be
    /// read. `control` is what it says if it is a control batch.
    #[inline]
    #[must_use]
    pub fn of_batch(header: &BatchHeader, control: Option<Control>) -> Option<Self> {
        if !header.has_producer_id() {
            return None;
        }
        let kind = match control {
            None => EventKind::Data { transactional: header.is_transactional() },
            Some(Control::End(marker)) => EventKind::Marker {
                abort: marker.is_abort,
                coordinator_epoch: marker.coordinator_epoch,
                timestamp: marker.timestamp_ms,
            },
            Some(Control::Empty) => EventKind::EmptyControl,
            Some(Control::Other(_) | Control::Broken(_)) => return None,
        };
        Some(ProducerEvent {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            last_sequence: header.last_sequence(),
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            max_timestamp: header.max_timestamp,
            kind,
        })
    }

    /// The end of the batch, unless no state can take it, whatever it holds.
    #[inline]
    pub(super) fn last_batch(&self) -> Result<LastBatch, ReplayFault> {
        if self.producer_id < 0 {
            return Err(ReplayFault::ProducerId);
        }
        if (self.base_offset | self.last_offset) < 0 {
            return Err(ReplayFault::Offsets);
        }
        match i32::try_from(self.last_offset - self.base_offset) {
            Ok(offset_delta) if offset_delta >= 0 => Ok(LastBatch {
                offset: self.last_offset,
                sequence: self.last_sequence,
                offset_delta,
            }),
            _ => Err(ReplayFault::Offsets),
        }
    }

    #[cold]
    pub(super) fn problem(&self, fault: ReplayFault) -> ReplayProblem {
        let ProducerEvent { producer_id, producer_epoch, base_offset, .. } = *self;
        ReplayProblem { fault, producer_id, producer_epoch, base_offset }
    }
}

/// A transaction that a marker has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletedTransaction {
    /// The producer's id.
    pub producer_id: i64,
    /// The offset of its first batch.
    pub first_offset: i64,
    /// The offset of its marker.
    pub last_offset: i64,
    /// Up to where, exclusive, every other transaction is decided at the marker.
    pub last_stable_offset: i64,
    /// Whether it is aborted, not committed.
    pub aborted: bool,
}

/// A batch that the state of its producer does not allow. It leaves the state as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayProblem {
    /// What is wrong with it.
    pub fault: ReplayFault,
    /// The producer of the batch.
    pub producer_id: i64,
    /// The producer's epoch in the batch.
    pub producer_epoch: i16,
    /// The first offset of the batch.
    pub base_offset: i64,
}

/// What is wrong with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayFault {
    /// Its producer id is negative: it says nothing about producers.
    ProducerId,
    /// Its offsets are negative, go backwards or lie too far apart.
    Offsets,
    /// It is no part of the transaction that its producer has open.
    NotTransactional,
}

impl fmt::Display for ReplayProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReplayProblem { producer_id, producer_epoch, .. } = self;
        let what = match self.fault {
            ReplayFault::ProducerId => "a batch without a producer",
            ReplayFault::Offsets => "a batch whose offsets cannot be",
            ReplayFault::NotTransactional => {
                "a batch outside of the transaction that its producer has open"
            }
        };
        write!(f, "{what} (producer {producer_id}, epoch {producer_epoch})")
    }
}

impl std::error::Error for ReplayProblem {}

impl From<ReplayProblem> for Error {
    fn from(problem: ReplayProblem) -> Self {
        Error::new(Kind::Conflict, problem.to_string()).at_offset(problem.base_offset)
    }
}
