//! What is known of one segment in remote storage?
//!
//! The names are those of Kafka's `RemoteLogSegmentMetadata`, so that a broker's own metadata
//! manager can be fed from here and the other way round.

use crate::error::{Error, Kind, Result};
use crate::state::EpochEntry;
use crate::uuid::Uuid;

/// A partition whose segments are in remote storage.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemotePartition {
    /// The topic's id: two topics of one name, one after the other, are told apart by it.
    pub topic_id: Uuid,
    /// The topic's name.
    pub topic: String,
    /// The partition within the topic.
    pub partition: i32,
}

/// The id of one upload of one segment: an upload that is tried again gets a new one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemoteSegmentId {
    /// The partition.
    pub partition: RemotePartition,
    /// A random id.
    pub segment_id: Uuid,
}

/// How far a segment's upload or removal is. The numbers are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum RemoteSegmentState {
    /// `COPY_SEGMENT_STARTED`: parts may be there.
    CopyStarted = 0,
    /// `COPY_SEGMENT_FINISHED`: all parts are there.
    CopyFinished = 1,
    /// `DELETE_SEGMENT_STARTED`: parts may be missing.
    DeleteStarted = 2,
    /// `DELETE_SEGMENT_FINISHED`: no part is left.
    DeleteFinished = 3,
}

impl RemoteSegmentState {
    /// The state of this number on the wire.
    #[must_use]
    pub fn from_wire(id: i8) -> Option<Self> {
        [Self::CopyStarted, Self::CopyFinished, Self::DeleteStarted, Self::DeleteFinished]
            .into_iter()
            .find(|state| state.wire() == id)
    }

    /// Its number on the wire.
    #[must_use]
    pub fn wire(self) -> i8 {
        match self {
            Self::CopyStarted => 0,
            Self::CopyFinished => 1,
            Self::DeleteStarted => 2,
            Self::DeleteFinished => 3,
        }
    }

    /// Kafka's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CopyStarted => "COPY_SEGMENT_STARTED",
            Self::CopyFinished => "COPY_SEGMENT_FINISHED",
            Self::DeleteStarted => "DELETE_SEGMENT_STARTED",
            Self::DeleteFinished => "DELETE_SEGMENT_FINISHED",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::CopyStarted, Self::CopyFinished, Self::DeleteStarted, Self::DeleteFinished]
            .into_iter()
            .find(|state| state.name() == name)
    }

    /// Whether a segment may go from `from` (`None`: it is new) to `to`.
    #[must_use]
    pub fn may_follow(from: Option<Self>, to: Self) -> bool {
        // spec: tiered 4, the table of states.
        use RemoteSegmentState::{CopyFinished, CopyStarted, DeleteFinished, DeleteStarted};
        matches!(
            (from, to),
            (None, CopyStarted)
                | (Some(CopyStarted), CopyStarted | CopyFinished | DeleteStarted)
                | (Some(CopyFinished), CopyFinished | DeleteStarted)
                | (Some(DeleteStarted), DeleteStarted | DeleteFinished)
                | (Some(DeleteFinished), DeleteFinished)
        )
    }
}

/// One segment in remote storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSegment {
    /// Which upload it is.
    pub id: RemoteSegmentId,
    /// The first offset, which is the base offset of the segment's name.
    pub start_offset: i64,
    /// The last offset, inclusive.
    pub end_offset: i64,
    /// The largest timestamp of a record, in milliseconds; -1 when there is none.
    pub max_timestamp_ms: i64,
    /// Who uploaded it, or changed its state last.
    pub broker_id: i32,
    /// When that was, in milliseconds.
    pub event_timestamp_ms: i64,
    /// Bytes of the `.log` part.
    pub size_bytes: i32,
    /// What the object store wants to be told again, opaque to everybody else.
    pub custom_metadata: Option<Vec<u8>>,
    /// How far it is.
    pub state: RemoteSegmentState,
    /// The leader epochs within it, rising; the first begins at `start_offset`. Never empty.
    pub leader_epochs: Vec<EpochEntry>,
    /// Whether it is known to have no aborted transaction. Old records say `false` although there
    /// may be no transaction index.
    pub is_txn_index_empty: bool,
}

impl RemoteSegment {
    /// Checks what Kafka's constructor checks.
    ///
    /// # Errors
    /// `InvalidArgument` for a negative start, an end before the start, or epochs that are missing
    /// or do not rise.
    pub fn check(&self) -> Result<()> {
        // spec: tiered 4
        let refuse = |why: String| Err(Error::new(Kind::InvalidArgument, why));
        if self.start_offset < 0 {
            return refuse(format!("a remote segment cannot start at {}", self.start_offset));
        }
        if self.end_offset < self.start_offset {
            let (start, end) = (self.start_offset, self.end_offset);
            return refuse(format!("a remote segment cannot start at {start} and end at {end}"));
        }
        if self.leader_epochs.is_empty() {
            return refuse("a remote segment has at least one leader epoch".to_owned());
        }
        let mut pairs = self.leader_epochs.iter().zip(self.leader_epochs.iter().skip(1));
        if pairs.any(|(entry, next)| next.epoch <= entry.epoch) {
            return refuse("the leader epochs of a remote segment do not rise".to_owned());
        }
        Ok(())
    }

    /// Bytes of the `.log` part; a negative size, which no segment has, counts as 0.
    #[must_use]
    pub fn log_size_bytes(&self) -> u64 {
        u64::try_from(self.size_bytes).unwrap_or(0)
    }

    /// Its leader epochs, each with the last offset of it here, inclusive. None reaches beyond the
    /// segment: what is behind it would be taken for uploaded, and deleted locally.
    pub fn epoch_ranges(&self) -> impl Iterator<Item = (EpochEntry, i64)> + '_ {
        let (entries, last) = (&self.leader_epochs, self.end_offset);
        let before = move |next: &EpochEntry| next.start_offset.saturating_sub(1).min(last);
        let ends = entries.iter().skip(1).map(before);
        entries.iter().copied().zip(ends.chain([last]))
    }

    /// How far it has an epoch, inclusive; `None` when it has nothing of it.
    #[must_use]
    pub fn last_offset_of(&self, epoch: i32) -> Option<i64> {
        self.epoch_ranges().find(|(entry, _)| entry.epoch == epoch).map(|(_, last)| last)
    }

    /// The same after an update, whose four fields replace its own. Whether the update may be
    /// applied is for [`RemoteSegmentState::may_follow`] to say.
    #[must_use]
    pub fn updated(&self, update: &RemoteSegmentUpdate) -> Self {
        RemoteSegment {
            event_timestamp_ms: update.event_timestamp_ms,
            broker_id: update.broker_id,
            custom_metadata: update.custom_metadata.clone(),
            state: update.state,
            ..self.clone()
        }
    }
}

/// A change of a segment's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSegmentUpdate {
    /// Which upload it is.
    pub id: RemoteSegmentId,
    /// When, in milliseconds.
    pub event_timestamp_ms: i64,
    /// What the object store wants to be told again.
    pub custom_metadata: Option<Vec<u8>>,
    /// The new state.
    pub state: RemoteSegmentState,
    /// Who says so.
    pub broker_id: i32,
}

/// A segment as it stands in a file that a broker keeps for one partition: without the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSnapshot {
    /// The upload's id within its partition.
    pub segment_id: Uuid,
    /// As in [`RemoteSegment`].
    pub start_offset: i64,
    /// As in [`RemoteSegment`].
    pub end_offset: i64,
    /// As in [`RemoteSegment`].
    pub max_timestamp_ms: i64,
    /// As in [`RemoteSegment`].
    pub broker_id: i32,
    /// As in [`RemoteSegment`].
    pub event_timestamp_ms: i64,
    /// As in [`RemoteSegment`].
    pub size_bytes: i32,
    /// As in [`RemoteSegment`].
    pub custom_metadata: Option<Vec<u8>>,
    /// As in [`RemoteSegment`].
    pub state: RemoteSegmentState,
    /// As in [`RemoteSegment`].
    pub leader_epochs: Vec<EpochEntry>,
    /// As in [`RemoteSegment`].
    pub is_txn_index_empty: bool,
}

impl SegmentSnapshot {
    /// The segment of this partition.
    #[must_use]
    pub fn into_segment(self, partition: RemotePartition) -> RemoteSegment {
        RemoteSegment {
            id: RemoteSegmentId { partition, segment_id: self.segment_id },
            start_offset: self.start_offset,
            end_offset: self.end_offset,
            max_timestamp_ms: self.max_timestamp_ms,
            broker_id: self.broker_id,
            event_timestamp_ms: self.event_timestamp_ms,
            size_bytes: self.size_bytes,
            custom_metadata: self.custom_metadata,
            state: self.state,
            leader_epochs: self.leader_epochs,
            is_txn_index_empty: self.is_txn_index_empty,
        }
    }
}

impl From<&RemoteSegment> for SegmentSnapshot {
    fn from(segment: &RemoteSegment) -> Self {
        SegmentSnapshot {
            segment_id: segment.id.segment_id,
            start_offset: segment.start_offset,
            end_offset: segment.end_offset,
            max_timestamp_ms: segment.max_timestamp_ms,
            broker_id: segment.broker_id,
            event_timestamp_ms: segment.event_timestamp_ms,
            size_bytes: segment.size_bytes,
            custom_metadata: segment.custom_metadata.clone(),
            state: segment.state,
            leader_epochs: segment.leader_epochs.clone(),
            is_txn_index_empty: segment.is_txn_index_empty,
        }
    }
}

/// How far a partition's removal from remote storage is. The numbers are those of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum PartitionDeleteState {
    /// `DELETE_PARTITION_MARKED`: it is to go.
    Marked = 0,
    /// `DELETE_PARTITION_STARTED`: its segments are being deleted.
    Started = 1,
    /// `DELETE_PARTITION_FINISHED`: nothing is left.
    Finished = 2,
}

impl PartitionDeleteState {
    /// The state of this number on the wire.
    #[must_use]
    pub fn from_wire(id: i8) -> Option<Self> {
        [Self::Marked, Self::Started, Self::Finished].into_iter().find(|state| state.wire() == id)
    }

    /// Its number on the wire.
    #[must_use]
    pub fn wire(self) -> i8 {
        match self {
            Self::Marked => 0,
            Self::Started => 1,
            Self::Finished => 2,
        }
    }
}

/// A partition that goes from remote storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionDelete {
    /// The partition.
    pub partition: RemotePartition,
    /// When, in milliseconds.
    pub event_timestamp_ms: i64,
    /// How far it is.
    pub state: PartitionDeleteState,
    /// Who says so.
    pub broker_id: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: tiered 4
    #[test]
    fn states_follow_each_other_as_in_kafkas_table() {
        let states: Vec<_> = (0..4).filter_map(RemoteSegmentState::from_wire).collect();
        let allowed = |from| {
            let may = |&to: &RemoteSegmentState| RemoteSegmentState::may_follow(from, to);
            states.iter().copied().filter(may).map(RemoteSegmentState::wire).collect::<Vec<_>>()
        };
        assert_eq!(allowed(None), [0]);
        assert_eq!(allowed(RemoteSegmentState::from_wire(0)), [0, 1, 2]);
        assert_eq!(allowed(RemoteSegmentState::from_wire(1)), [1, 2]);
        assert_eq!(allowed(RemoteSegmentState::from_wire(2)), [2, 3]);
        assert_eq!(allowed(RemoteSegmentState::from_wire(3)), [3]);
        assert_eq!(RemoteSegmentState::from_wire(4), None);
        assert!(states.iter().all(|it| RemoteSegmentState::from_name(it.name()) == Some(*it)));
    }
}
