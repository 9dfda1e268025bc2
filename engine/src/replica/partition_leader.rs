//! What does the leader of a partition keep of its replicas, and what changes it?

use super::follower_progress::{BrokerStatus, FollowerFetch, FollowerProgress, StaleBrokerEpoch};
use super::high_watermark::{
    HighWatermarkChange, LeaderProgress, advance_high_watermark, effective_min_isr,
};
use super::isr::{ExpandVerdict, InSyncReplicas, IsrChange};

/// What the cluster's metadata says of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// The leader.
    pub leader: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Grows with every change.
    pub partition_epoch: i32,
    /// All replicas, the leader among them.
    pub replicas: Vec<i32>,
    /// Those in sync.
    pub isr: Vec<i32>,
}

/// What a leader keeps of its replicas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionLeader {
    /// Its own id.
    pub id: i32,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Where its epoch began.
    pub leader_epoch_start_offset: i64,
    /// `min.insync.replicas`.
    pub min_insync_replicas: i32,
    /// Who is in sync.
    pub isr: InSyncReplicas,
    /// The other replicas.
    pub followers: Vec<FollowerProgress>,
}

/// The log and the clock of a leader at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderMoment {
    /// The log end.
    pub log_end_offset: i64,
    /// The high watermark.
    pub high_watermark: i64,
    /// Now, in milliseconds.
    pub now_ms: i64,
    /// `replica.lag.time.max.ms`.
    pub lag_max_ms: i64,
}

impl PartitionLeader {
    /// The state of a replica that becomes leader.
    #[must_use]
    pub fn new(
        metadata: &PartitionMetadata,
        min_insync_replicas: i32,
        log_end_offset: i64,
        now_ms: i64,
    ) -> Self {
        let mut leader = PartitionLeader {
            id: metadata.leader,
            leader_epoch: metadata.leader_epoch,
            leader_epoch_start_offset: log_end_offset,
            min_insync_replicas,
            isr: InSyncReplicas::default(),
            followers: Vec::new(),
        };
        leader.take(metadata, Some(false), log_end_offset, now_ms);
        leader
    }

    /// Takes newer metadata in which it still leads; `false` when that is older than what it has.
    /// A new leader epoch begins at `log_end_offset`.
    pub fn update(
        &mut self,
        metadata: &PartitionMetadata,
        log_end_offset: i64,
        now_ms: i64,
    ) -> bool {
        // spec: replication 3
        if metadata.partition_epoch < self.isr.partition_epoch() {
            return false;
        }
        let is_new_epoch = metadata.leader_epoch > self.leader_epoch;
        if is_new_epoch {
            self.leader_epoch = metadata.leader_epoch;
            self.leader_epoch_start_offset = log_end_offset;
        }
        self.take(metadata, is_new_epoch.then_some(true), log_end_offset, now_ms);
        true
    }

    /// `new_epoch` says, at the beginning of an epoch, whether this replica led before.
    fn take(
        &mut self,
        metadata: &PartitionMetadata,
        new_epoch: Option<bool>,
        log_end_offset: i64,
        now_ms: i64,
    ) {
        self.isr = InSyncReplicas::new(metadata.isr.clone(), metadata.partition_epoch);
        let others = metadata.replicas.iter().copied().filter(|&replica| replica != self.id);
        let progress = |replica| {
            let known = self.followers.iter().find(|known| known.replica == replica);
            let progress = known.copied().unwrap_or_else(|| FollowerProgress::new(replica));
            match new_epoch {
                None => progress,
                Some(was_leader) => {
                    let in_sync = metadata.isr.contains(&replica);
                    progress.at_new_epoch(in_sync, was_leader, log_end_offset, now_ms)
                }
            }
        };
        self.followers = others.map(progress).collect();
    }

    /// See [`effective_min_isr`].
    #[must_use]
    pub fn effective_min_isr(&self) -> usize {
        effective_min_isr(self.min_insync_replicas, self.followers.len().saturating_add(1))
    }

    /// Whether fewer replicas are in sync than wanted.
    #[must_use]
    pub fn is_under_min_isr(&self) -> bool {
        self.isr.committed().len() < self.effective_min_isr()
    }

    /// Whether just as many replicas are in sync as wanted.
    #[must_use]
    pub fn is_at_min_isr(&self) -> bool {
        self.isr.committed().len() == self.effective_min_isr()
    }

    /// Whether more is committed.
    pub fn advance(
        &self,
        moment: &LeaderMoment,
        broker: impl Fn(i32) -> BrokerStatus,
    ) -> HighWatermarkChange {
        let progress = LeaderProgress {
            log_end_offset: moment.log_end_offset,
            high_watermark: moment.high_watermark,
            isr: &self.isr,
            effective_min_isr: self.effective_min_isr(),
            followers: &self.followers,
            now_ms: moment.now_ms,
            lag_max_ms: moment.lag_max_ms,
        };
        advance_high_watermark(&progress, broker)
    }

    /// Takes note of a follower's fetch, and puts it forward as in sync where it is. Gives whether
    /// its log end is another now, so that the high watermark is to be looked at; `false` for a
    /// replica that is not in the assignment.
    ///
    /// # Errors
    /// For a fetch of an earlier life of the broker; nothing is changed.
    pub fn record_fetch(
        &mut self,
        replica: i32,
        fetch: &FollowerFetch,
        broker: BrokerStatus,
        high_watermark: i64,
    ) -> Result<bool, StaleBrokerEpoch> {
        let Some(follower) = self.followers.iter_mut().find(|it| it.replica == replica) else {
            return Ok(false);
        };
        let moved = follower.record(fetch, broker.epoch)?;
        let start = self.leader_epoch_start_offset;
        if self.isr.expand_verdict(follower, broker, high_watermark, start) == ExpandVerdict::Join {
            self.isr.propose(IsrChange::Expand(replica));
        }
        Ok(moved)
    }

    /// Puts forward that members which have fallen behind are no longer in sync; tells whether
    /// there are any.
    pub fn shrink(&mut self, moment: &LeaderMoment) -> bool {
        let end = moment.log_end_offset;
        let behind = self.isr.out_of_sync(&self.followers, end, moment.now_ms, moment.lag_max_ms);
        !behind.is_empty() && self.isr.propose(IsrChange::Shrink(behind))
    }

    /// The set that the change in flight asks for, each with the broker epoch that the controller
    /// compares: the own one, that of a follower's last fetch, -1 for a follower without one.
    ///
    /// Take it when the change is put forward, and send the same again when a request is retried:
    /// a follower that has lost its log since then has another epoch, and must not pass with it.
    #[must_use]
    pub fn proposed_with_epochs(&self, own_broker_epoch: i64) -> Option<Vec<(i32, i64)>> {
        // spec: replication 3
        let epoch_of = |replica: i32| {
            if replica == self.id {
                return own_broker_epoch;
            }
            let follower = self.followers.iter().find(|it| it.replica == replica);
            follower.and_then(|it| it.broker_epoch).unwrap_or(-1)
        };
        let proposed = self.isr.proposed()?;
        Some(proposed.into_iter().map(|replica| (replica, epoch_of(replica))).collect())
    }
}
