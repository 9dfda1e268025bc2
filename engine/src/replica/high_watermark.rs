//! What is committed, and when may a producer be told so?
//!
//! The high watermark of a leader never goes back, and does not move at all while fewer than
//! `min.insync.replicas` replicas are in sync (KIP-966): that is what makes every replica that
//! left the in-sync set below that size hold all that was committed.

use super::follower_progress::{BrokerStatus, FollowerProgress};
use super::isr::InSyncReplicas;

/// `min.insync.replicas`, as far as there are so many replicas at all.
#[must_use]
pub fn effective_min_isr(min_insync_replicas: i32, replica_count: usize) -> usize {
    // spec: replication 1
    usize::try_from(min_insync_replicas).unwrap_or_default().min(replica_count)
}

/// What a leader knows when it looks whether more is committed.
#[derive(Clone, Copy, Debug)]
pub struct LeaderProgress<'a> {
    /// Its log end.
    pub log_end_offset: i64,
    /// Its high watermark.
    pub high_watermark: i64,
    /// Who is in sync.
    pub isr: &'a InSyncReplicas,
    /// See [`effective_min_isr`].
    pub effective_min_isr: usize,
    /// The other replicas of the assignment.
    pub followers: &'a [FollowerProgress],
    /// Now, in milliseconds.
    pub now_ms: i64,
    /// `replica.lag.time.max.ms`.
    pub lag_max_ms: i64,
}

/// Whether more is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HighWatermarkChange {
    /// The high watermark goes up.
    Advance {
        /// To here.
        high_watermark: i64,
        /// The follower that holds it back there, if one does.
        held_by: Option<i32>,
    },
    /// It stays: the follower has no more.
    Held {
        /// The follower; none when there is nothing new at all.
        by: Option<i32>,
    },
    /// It stays: too few replicas are in sync.
    UnderMinIsr,
}

/// Whether the high watermark goes up; `broker` tells what is known of a follower's broker.
///
/// It goes to the smallest log end of all replicas in sync, and of those that are about to be: a
/// follower that has caught up is waited for, so that it can join.
pub fn advance_high_watermark(
    leader: &LeaderProgress<'_>,
    broker: impl Fn(i32) -> BrokerStatus,
) -> HighWatermarkChange {
    // spec: replication 2.1
    if leader.isr.committed().len() < leader.effective_min_isr {
        return HighWatermarkChange::UnderMinIsr;
    }
    let mut new = leader.log_end_offset;
    let mut held_by = None;
    for follower in leader.followers.iter().filter(|it| it.log_end_offset < leader.log_end_offset) {
        let counts = leader.isr.is_in_maximal(follower.replica)
            || (follower.is_caught_up(leader.log_end_offset, leader.now_ms, leader.lag_max_ms)
                && follower.may_join(broker(follower.replica)));
        if counts && follower.log_end_offset < new {
            new = follower.log_end_offset;
            held_by = Some(follower.replica);
        }
    }
    if new > leader.high_watermark {
        HighWatermarkChange::Advance { high_watermark: new, held_by }
    } else {
        HighWatermarkChange::Held { by: held_by }
    }
}

/// The high watermark of a follower whose leader says `leader_high_watermark`, and of a log that
/// is opened with a checkpoint: what is committed within the log. It may go back.
#[must_use]
pub fn follower_high_watermark(
    leader_high_watermark: i64,
    log_start_offset: i64,
    log_end_offset: i64,
) -> i64 {
    // spec: replication 2.2
    leader_high_watermark.min(log_end_offset).max(log_start_offset)
}

/// The offset below which no replica has records any more: `followers` are the log starts of the
/// live ones. A `DeleteRecords` is complete when this reaches its offset.
#[must_use]
pub fn low_watermark(log_start_offset: i64, followers: impl Iterator<Item = i64>) -> i64 {
    // spec: replication 2.3
    followers.fold(log_start_offset, i64::min)
}

/// What a producer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcksVerdict {
    /// Before the append: `NOT_ENOUGH_REPLICAS` (19).
    Refuse,
    /// Not yet committed.
    Wait,
    /// Done.
    Done,
    /// Committed, by fewer replicas than wanted: `NOT_ENOUGH_REPLICAS_AFTER_APPEND` (20).
    DoneUnderReplicated,
}

/// Whether records may be appended at all for a producer with these `acks` (-1 for all).
#[must_use]
pub fn acks_before_append(
    acks: i16,
    isr: &InSyncReplicas,
    effective_min_isr: usize,
) -> Option<AcksVerdict> {
    // spec: replication 2.1
    (acks == -1 && isr.committed().len() < effective_min_isr).then_some(AcksVerdict::Refuse)
}

/// What a producer with these `acks` is told once its records are in the log, the last of them
/// before `required_offset`.
#[must_use]
pub fn acks_verdict(
    acks: i16,
    isr: &InSyncReplicas,
    effective_min_isr: usize,
    high_watermark: i64,
    required_offset: i64,
) -> AcksVerdict {
    // spec: replication 2.1
    if acks != -1 {
        AcksVerdict::Done
    } else if high_watermark < required_offset {
        AcksVerdict::Wait
    } else if effective_min_isr <= isr.maximal_count() {
        AcksVerdict::Done
    } else {
        AcksVerdict::DoneUnderReplicated
    }
}
