//! Who is in sync, as the leader of a partition knows and changes it?
//!
//! ```text
//!              propose                      Ok
//!   committed ---------> change in flight ------> committed
//!       ^                    |     |
//!       +--------------------+     +--> waits for metadata, or sends the same again
//!         OPERATION_NOT_ATTEMPTED, INELIGIBLE_REPLICA
//! ```

use super::follower_progress::{BrokerStatus, FollowerProgress};

/// A change that was sent to the controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IsrChange {
    /// This replica is to be added.
    Expand(i32),
    /// These are to be removed.
    Shrink(Vec<i32>),
}

/// The in-sync replicas of a partition at its leader.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct InSyncReplicas {
    committed: Vec<i32>,
    change: Option<IsrChange>,
    partition_epoch: i32,
}

/// Whether a follower may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpandVerdict {
    /// Yes.
    Join,
    /// Not while a change is in flight.
    InFlight,
    /// It is a member.
    Member,
    /// Its broker is fenced, shuts down, is not registered, or lives another life.
    NotEligible,
    /// It has not all that is committed, or nothing of the leader's epoch.
    Behind,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlterOutcome {
    /// The controller has made it: look at the high watermark.
    Committed,
    /// It is off; the committed set stays.
    Reverted,
    /// It stays in flight until metadata says more.
    Waiting,
    /// The same request is to be sent again.
    Retry,
    /// The answer is about something else.
    Ignored,
}

/// The controller's answer to a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterAnswer {
    /// It is made.
    Ok {
        /// The leader epoch.
        leader_epoch: i32,
        /// The partition epoch.
        partition_epoch: i32,
        /// Who is in sync.
        isr: Vec<i32>,
    },
    /// An error code.
    Error(i16),
}

/// Codes of errors that an AlterPartition may end with.
pub mod alter_errors {
    /// `UNKNOWN_TOPIC_OR_PARTITION`
    pub const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    /// `NOT_CONTROLLER`
    pub const NOT_CONTROLLER: i16 = 41;
    /// `INVALID_REQUEST`
    pub const INVALID_REQUEST: i16 = 42;
    /// `OPERATION_NOT_ATTEMPTED`
    pub const OPERATION_NOT_ATTEMPTED: i16 = 55;
    /// `FENCED_LEADER_EPOCH`
    pub const FENCED_LEADER_EPOCH: i16 = 74;
    /// `INVALID_UPDATE_VERSION`
    pub const INVALID_UPDATE_VERSION: i16 = 95;
    /// `UNKNOWN_TOPIC_ID`
    pub const UNKNOWN_TOPIC_ID: i16 = 100;
    /// `INELIGIBLE_REPLICA`
    pub const INELIGIBLE_REPLICA: i16 = 107;
    /// `NEW_LEADER_ELECTED`
    pub const NEW_LEADER_ELECTED: i16 = 108;
}

impl InSyncReplicas {
    /// What metadata says, with no change in flight.
    #[must_use]
    pub fn new(committed: Vec<i32>, partition_epoch: i32) -> Self {
        InSyncReplicas { committed, change: None, partition_epoch }
    }

    /// The set that the controller keeps.
    #[must_use]
    pub fn committed(&self) -> &[i32] {
        &self.committed
    }

    /// The change in flight.
    #[must_use]
    pub fn change(&self) -> Option<&IsrChange> {
        self.change.as_ref()
    }

    /// The epoch of what is committed.
    #[must_use]
    pub fn partition_epoch(&self) -> i32 {
        self.partition_epoch
    }

    /// Whether a replica counts for the high watermark: a member of the committed set, whether it
    /// is about to be removed or not, or the one that is about to be added.
    #[must_use]
    pub fn is_in_maximal(&self, replica: i32) -> bool {
        // spec: replication 1
        self.committed.contains(&replica) || self.change == Some(IsrChange::Expand(replica))
    }

    /// How many replicas [count](Self::is_in_maximal).
    #[must_use]
    pub fn maximal_count(&self) -> usize {
        let added = matches!(self.change, Some(IsrChange::Expand(_)));
        self.committed.len().saturating_add(usize::from(added))
    }

    /// The set that the change in flight asks for.
    #[must_use]
    pub fn proposed(&self) -> Option<Vec<i32>> {
        let mut isr = self.committed.clone();
        match self.change.as_ref()? {
            IsrChange::Expand(replica) => isr.push(*replica),
            IsrChange::Shrink(removed) => isr.retain(|replica| !removed.contains(replica)),
        }
        Some(isr)
    }

    /// Whether a follower may be added now.
    #[must_use]
    pub fn expand_verdict(
        &self,
        follower: &FollowerProgress,
        broker: BrokerStatus,
        high_watermark: i64,
        leader_epoch_start_offset: i64,
    ) -> ExpandVerdict {
        // spec: replication 3
        if self.change.is_some() {
            ExpandVerdict::InFlight
        } else if self.committed.contains(&follower.replica) {
            ExpandVerdict::Member
        } else if !follower.may_join(broker) {
            ExpandVerdict::NotEligible
        } else if follower.log_end_offset < high_watermark
            || follower.log_end_offset < leader_epoch_start_offset
        {
            ExpandVerdict::Behind
        } else {
            ExpandVerdict::Join
        }
    }

    /// The members that have fallen behind; none while a change is in flight.
    #[must_use]
    pub fn out_of_sync(
        &self,
        followers: &[FollowerProgress],
        leader_log_end_offset: i64,
        now_ms: i64,
        lag_max_ms: i64,
    ) -> Vec<i32> {
        // spec: replication 3
        if self.change.is_some() {
            return Vec::new();
        }
        let members = followers.iter().filter(|it| self.committed.contains(&it.replica));
        let behind =
            members.filter(|it| !it.is_caught_up(leader_log_end_offset, now_ms, lag_max_ms));
        behind.map(|it| it.replica).collect()
    }

    /// Puts a change in flight; `false`, and nothing done, while another one is.
    pub fn propose(&mut self, change: IsrChange) -> bool {
        let is_free = self.change.is_none();
        if is_free {
            self.change = Some(change);
        }
        is_free
    }

    /// Takes the controller's answer to `sent`, a request with these two epochs.
    ///
    /// The same change may be in flight again since metadata ended the first try: the partition
    /// epoch tells the two apart.
    pub fn apply(
        &mut self,
        sent: &IsrChange,
        leader_epoch: i32,
        partition_epoch: i32,
        answer: AlterAnswer,
    ) -> AlterOutcome {
        // spec: replication 3, the table of answers
        use alter_errors::{
            FENCED_LEADER_EPOCH, INELIGIBLE_REPLICA, INVALID_REQUEST, INVALID_UPDATE_VERSION,
            NEW_LEADER_ELECTED, OPERATION_NOT_ATTEMPTED, UNKNOWN_TOPIC_ID,
            UNKNOWN_TOPIC_OR_PARTITION,
        };
        if self.change.as_ref() != Some(sent) || partition_epoch != self.partition_epoch {
            return AlterOutcome::Ignored;
        }
        match answer {
            AlterAnswer::Ok { leader_epoch: epoch, partition_epoch, isr } => {
                if epoch != leader_epoch || partition_epoch < self.partition_epoch {
                    return AlterOutcome::Ignored;
                }
                *self = InSyncReplicas::new(isr, partition_epoch);
                AlterOutcome::Committed
            }
            AlterAnswer::Error(OPERATION_NOT_ATTEMPTED | INELIGIBLE_REPLICA) => {
                self.change = None;
                AlterOutcome::Reverted
            }
            AlterAnswer::Error(
                UNKNOWN_TOPIC_OR_PARTITION
                | UNKNOWN_TOPIC_ID
                | FENCED_LEADER_EPOCH
                | INVALID_UPDATE_VERSION
                | INVALID_REQUEST
                | NEW_LEADER_ELECTED,
            ) => AlterOutcome::Waiting,
            AlterAnswer::Error(_) => AlterOutcome::Retry,
        }
    }
}
