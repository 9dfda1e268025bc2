//! How far is a follower, as its leader knows it?

/// What the leader remembers of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FollowerProgress {
    /// The replica's id.
    pub replica: i32,
    /// Its log start, -1 until its first fetch.
    pub log_start_offset: i64,
    /// Its log end, which is the offset that it fetched last; -1 until its first fetch in this
    /// leadership.
    pub log_end_offset: i64,
    /// When it had last fetched all that there was, in milliseconds.
    pub last_caught_up_ms: i64,
    /// When it fetched last, in milliseconds.
    pub last_fetch_ms: i64,
    /// The leader's log end at that time.
    pub leader_end_at_fetch: i64,
    /// The broker epoch that its last fetch came with; none before it, -1 when it said none.
    pub broker_epoch: Option<i64>,
}

/// A fetch of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerFetch {
    /// The offset that it asks for.
    pub offset: i64,
    /// Its log start.
    pub log_start_offset: i64,
    /// The broker epoch that it says, or -1.
    pub broker_epoch: i64,
    /// Now, in milliseconds.
    pub now_ms: i64,
    /// The leader's log end when the records were read.
    pub leader_log_end_offset: i64,
}

/// The fetch is from an earlier life of the broker: `NOT_LEADER_OR_FOLLOWER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleBrokerEpoch;

impl StaleBrokerEpoch {
    /// Its number on the wire.
    #[must_use]
    pub fn code(self) -> i16 {
        6
    }
}

/// What is known of a broker from the cluster's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerStatus {
    /// The epoch of its registration; none when it is not registered.
    pub epoch: Option<i64>,
    /// Whether it is fenced.
    pub fenced: bool,
    /// Whether it shuts down in a controlled way.
    pub shutting_down: bool,
}

impl BrokerStatus {
    /// Whether a replica there may join the in-sync replicas; `broker_epoch` is what it says of
    /// itself, -1 for nothing.
    #[must_use]
    pub fn is_eligible(&self, broker_epoch: i64) -> bool {
        // spec: replication 2.1, 3
        let is_this_life =
            self.epoch.is_some_and(|epoch| broker_epoch == -1 || broker_epoch == epoch);
        is_this_life && !self.fenced && !self.shutting_down
    }
}

impl FollowerProgress {
    /// A follower that has not fetched yet.
    #[must_use]
    pub fn new(replica: i32) -> Self {
        FollowerProgress {
            replica,
            log_start_offset: -1,
            log_end_offset: -1,
            last_caught_up_ms: 0,
            last_fetch_ms: 0,
            leader_end_at_fetch: -1,
            broker_epoch: None,
        }
    }

    /// The same at the beginning of a new leader epoch. A leader that was one before keeps what it
    /// knows of its followers' logs.
    #[must_use]
    pub fn at_new_epoch(
        self,
        in_sync: bool,
        was_leader: bool,
        leader_log_end_offset: i64,
        now_ms: i64,
    ) -> Self {
        // spec: replication 3
        let last_caught_up_ms = if in_sync { now_ms } else { 0 };
        if !was_leader {
            return FollowerProgress { last_caught_up_ms, ..Self::new(self.replica) };
        }
        FollowerProgress {
            last_caught_up_ms,
            last_fetch_ms: last_caught_up_ms,
            leader_end_at_fetch: leader_log_end_offset,
            ..self
        }
    }

    /// Takes note of a fetch; tells whether the follower's log end is another now. `registered` is
    /// the epoch of the broker's registration.
    ///
    /// # Errors
    /// For a fetch of an earlier life of the broker; nothing is changed.
    pub fn record(
        &mut self,
        fetch: &FollowerFetch,
        registered: Option<i64>,
    ) -> Result<bool, StaleBrokerEpoch> {
        // spec: replication 3
        if fetch.broker_epoch != -1 && registered.is_some_and(|epoch| fetch.broker_epoch < epoch) {
            return Err(StaleBrokerEpoch);
        }
        let caught_up_ms = if fetch.offset >= fetch.leader_log_end_offset {
            fetch.now_ms
        } else if fetch.offset >= self.leader_end_at_fetch {
            self.last_fetch_ms
        } else {
            self.last_caught_up_ms
        };
        let moved = self.log_end_offset != fetch.offset;
        *self = FollowerProgress {
            replica: self.replica,
            log_start_offset: fetch.log_start_offset,
            log_end_offset: fetch.offset,
            last_caught_up_ms: self.last_caught_up_ms.max(caught_up_ms),
            last_fetch_ms: fetch.now_ms,
            leader_end_at_fetch: self.leader_end_at_fetch.max(fetch.leader_log_end_offset),
            broker_epoch: Some(fetch.broker_epoch),
        };
        Ok(moved)
    }

    /// Whether it may join the in-sync replicas as far as its `broker` is concerned. One that has
    /// not fetched in this leadership has said of no life that it is in it.
    #[must_use]
    pub fn may_join(&self, broker: BrokerStatus) -> bool {
        // spec: replication 2.1
        self.broker_epoch.is_some_and(|epoch| broker.is_eligible(epoch))
    }

    /// Whether it has all that its leader has, or had within `lag_max_ms`
    /// (`replica.lag.time.max.ms`).
    #[must_use]
    pub fn is_caught_up(&self, leader_log_end_offset: i64, now_ms: i64, lag_max_ms: i64) -> bool {
        self.log_end_offset == leader_log_end_offset
            || now_ms.saturating_sub(self.last_caught_up_ms) <= lag_max_ms
    }
}
