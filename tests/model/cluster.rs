//! The model's cluster: two replicas, remote storage, and what must never be lost.

use siltstone::log::LogBounds;
use siltstone::replica::{
    AuxTarget, FetchAnswer, FetchState, FollowerConfig, FollowerView, LeaderView, Request,
};
use siltstone::state::{EpochEntry, LeaderEpochs};
use siltstone::tier::{RemotePartition, RemoteSegment, RemoteSegmentId, RemoteSegmentState};
use siltstone::uuid::Uuid;

/// Leader epochs and their start offsets.
pub(crate) type Epochs = Vec<(i32, i64)>;

pub(crate) fn epochs_of(list: &Epochs) -> LeaderEpochs {
    let entry = |&(epoch, start_offset): &(i32, i64)| EpochEntry { epoch, start_offset };
    LeaderEpochs::from_entries(&list.iter().map(entry).collect::<Vec<_>>()).expect("good epochs")
}

pub(crate) fn list_of(epochs: &LeaderEpochs) -> Epochs {
    epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect()
}

/// A finished segment in remote storage. Its records are known by their epochs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Segment {
    pub(crate) start: i64,
    /// Inclusive.
    pub(crate) end: i64,
    /// The content of its leader-epoch object.
    pub(crate) epochs: Epochs,
    /// The epoch of each record.
    pub(crate) records: Vec<i32>,
}

impl Segment {
    /// Whether it has the record at this offset that this leader wrote.
    pub(crate) fn holds(&self, epoch: i32, offset: i64) -> bool {
        (self.start..=self.end).contains(&offset)
            && epochs_of(&self.epochs).epoch_for_offset(offset) == Some(epoch)
            && self.records.get(index(offset - self.start)) == Some(&epoch)
    }

    /// As its metadata has it.
    pub(crate) fn metadata(&self, number: usize) -> RemoteSegment {
        let partition =
            RemotePartition { topic_id: Uuid::ZERO, topic: "model".to_owned(), partition: 0 };
        let mut id = [0; 16];
        id[15] = u8::try_from(number).expect("few segments");
        let cut = epochs_of(&self.epochs).entries_in_range(self.start, self.end + 1);
        RemoteSegment {
            id: RemoteSegmentId { partition, segment_id: Uuid(id) },
            start_offset: self.start,
            end_offset: self.end,
            max_timestamp_ms: 0,
            broker_id: 0,
            event_timestamp_ms: 0,
            size_bytes: i32::try_from(self.records.len()).expect("few records"),
            custom_metadata: None,
            state: RemoteSegmentState::CopyFinished,
            leader_epochs: cut,
            is_txn_index_empty: true,
        }
    }
}

pub(crate) fn index(offset: i64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// A build from remote storage that is under way: both objects have been read and checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Build {
    pub(crate) target: AuxTarget,
    pub(crate) log_start: i64,
    pub(crate) leader_end: i64,
    pub(crate) segment: Segment,
    /// How many steps of the installation are done.
    pub(crate) stage: u8,
}

/// One replica: its disk, and what it knows while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Replica {
    pub(crate) up: bool,
    pub(crate) start: i64,
    pub(crate) local_start: i64,
    pub(crate) end: i64,
    pub(crate) high_watermark: i64,
    pub(crate) epochs: Epochs,
    /// The epoch of each record from `local_start` on.
    pub(crate) records: Vec<i32>,
    /// Base offsets of segments; the last one is written to.
    pub(crate) bases: Vec<i64>,
    /// Where the newest snapshot from remote storage is, -1 for none.
    pub(crate) snapshot: i64,
    /// The mark of a build that is under way.
    pub(crate) mark: bool,
    /// What it knows to be in remote storage, as long as it runs.
    pub(crate) highest_remote: i64,
    pub(crate) state: Option<FetchState>,
    pub(crate) build: Option<Build>,
}

impl Replica {
    pub(crate) fn empty() -> Self {
        Replica {
            up: true,
            start: 0,
            local_start: 0,
            end: 0,
            high_watermark: 0,
            epochs: Vec::new(),
            records: Vec::new(),
            bases: vec![0],
            snapshot: -1,
            mark: false,
            highest_remote: -1,
            state: None,
            build: None,
        }
    }

    /// The epoch of the record at an offset of the local log.
    pub(crate) fn record(&self, offset: i64) -> Option<i32> {
        let at = offset.checked_sub(self.local_start).filter(|at| *at >= 0)?;
        self.records.get(index(at)).copied()
    }

    pub(crate) fn assign(&mut self, epoch: i32, offset: i64) {
        let mut epochs = epochs_of(&self.epochs);
        epochs.assign(epoch, offset).expect("a good epoch");
        self.epochs = list_of(&epochs);
    }

    /// Begins a new segment, unless the last one is empty.
    pub(crate) fn roll(&mut self) {
        if self.bases.last().is_some_and(|base| *base < self.end) {
            self.bases.push(self.end);
        }
    }

    /// Appends a record; segments of this replica hold `segment_records`.
    pub(crate) fn append(&mut self, epoch: i32, segment_records: i64) {
        if self.bases.last().is_some_and(|base| self.end - base >= segment_records) {
            self.roll();
        }
        self.assign(epoch, self.end);
        self.records.push(epoch);
        self.end += 1;
    }

    pub(crate) fn restart(&mut self, offset: i64, start: i64) {
        self.highest_remote = self.highest_remote.min(offset.min(self.end) - 1);
        (self.start, self.local_start, self.end) = (start, offset, offset);
        self.high_watermark = offset;
        self.epochs.clear();
        self.records.clear();
        self.bases = vec![offset];
        self.snapshot = -1;
    }

    pub(crate) fn truncate(&mut self, offset: i64) {
        if offset >= self.end {
            return;
        }
        if offset < self.local_start {
            self.restart(offset, offset);
            return;
        }
        self.records.truncate(index(offset - self.local_start));
        let mut epochs = epochs_of(&self.epochs);
        epochs.truncate_from_end(offset);
        self.epochs = list_of(&epochs);
        self.bases.retain(|base| *base < offset);
        if self.bases.is_empty() {
            self.bases.push(offset);
        }
        self.end = offset;
        self.highest_remote = self.highest_remote.min(offset - 1);
        self.start = self.start.min(offset);
        self.high_watermark = self.high_watermark.min(offset);
    }

    pub(crate) fn raise_local_start(&mut self, offset: i64) {
        if offset <= self.local_start {
            return;
        }
        self.records.drain(..index(offset - self.local_start).min(self.records.len()));
        self.local_start = offset;
        while self.bases.get(1).is_some_and(|next| *next <= offset) {
            self.bases.remove(0);
        }
        if let Some(first) = self.bases.first_mut() {
            *first = (*first).max(offset);
        }
    }

    pub(crate) fn raise_start(&mut self, offset: i64) {
        if offset <= self.start {
            return;
        }
        self.start = offset;
        self.high_watermark = self.high_watermark.max(offset);
        self.raise_local_start(offset);
        let mut epochs = epochs_of(&self.epochs);
        epochs.truncate_from_start(offset);
        self.epochs = list_of(&epochs);
    }

    /// Whether it can lead now. A log that is being built anew is no log until that is done, and
    /// who leads waits for it.
    pub(crate) fn may_lead(&self) -> bool {
        self.up && self.build.as_ref().is_none_or(|build| build.stage == 0)
    }

    /// The greatest log start that is not refused.
    pub(crate) fn start_max(&self) -> i64 {
        self.high_watermark.max(self.local_start)
    }
}

/// A fetch whose answer is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    pub(crate) request: Request,
    pub(crate) answer: FetchAnswer,
    /// The epoch of the record in it, if it has one.
    pub(crate) record: Option<i32>,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cluster {
    pub(crate) replicas: [Replica; 2],
    pub(crate) leader: Option<usize>,
    pub(crate) epoch: i32,
    pub(crate) epoch_start: i64,
    pub(crate) isr: [bool; 2],
    /// The follower's log end as the leader knows it.
    pub(crate) follower_end: i64,
    pub(crate) remote: Vec<Segment>,
    pub(crate) remote_on: bool,
    /// `follower.fetch.last.tiered.offset.enable`
    pub(crate) shortcut: bool,
    pub(crate) flight: Option<Flight>,
    /// The epoch of each record that was ever committed, from offset 0 on.
    pub(crate) committed: Vec<i32>,
    /// Below it everything was deleted as somebody wanted.
    pub(crate) wanted_start: i64,
    /// How many rare events may still happen.
    pub(crate) faults: u8,
}

impl Cluster {
    pub(crate) fn first(faults: u8, shortcut: bool) -> Self {
        let mut leader = Replica::empty();
        leader.assign(0, 0);
        Cluster {
            replicas: [leader, Replica::empty()],
            leader: Some(0),
            epoch: 0,
            epoch_start: 0,
            isr: [true, false],
            follower_end: -1,
            remote: Vec::new(),
            remote_on: true,
            shortcut,
            flight: None,
            committed: Vec::new(),
            wanted_start: 0,
            faults,
        }
    }

    /// The settings of a follower.
    pub(crate) fn config(&self) -> FollowerConfig {
        let (starts_at_tiered, remote_storage) = (self.shortcut, self.remote_on);
        FollowerConfig { starts_at_tiered, remote_storage, compacted: false }
    }

    /// The records of a replica that are committed go down in history.
    pub(crate) fn advance(&mut self) {
        let Some(leader) = self.leader else { return };
        let mut high_watermark = self.replicas[leader].end;
        if self.isr[1 - leader] {
            high_watermark = high_watermark.min(self.follower_end);
        }
        let leader = &mut self.replicas[leader];
        leader.high_watermark = leader.high_watermark.max(high_watermark);
        while let Ok(next) = i64::try_from(self.committed.len())
            && next < leader.high_watermark
            && let Some(epoch) = leader.record(next)
        {
            self.committed.push(epoch);
        }
    }

    /// Forgets what nothing depends on any more, so that states that differ in nothing else are
    /// one.
    pub(crate) fn forget(&mut self) {
        let deleted = index(self.wanted_start).min(self.committed.len());
        self.committed[..deleted].fill(-1);
        self.remote.sort_unstable_by(|one, other| {
            (one.start, one.end, &one.epochs).cmp(&(other.start, other.end, &other.epochs))
        });
        if self.leader.is_none_or(|leader| !self.isr[1 - leader]) {
            self.follower_end = -1;
        }
        // It has said all that it says once the high watermark is beyond it.
        if self.leader.is_none_or(|it| self.replicas[it].high_watermark >= self.epoch_start) {
            self.epoch_start = 0;
        }
        for replica in &mut self.replicas {
            if !replica.mark && replica.build.is_none() {
                replica.snapshot = -1;
            }
            // The lag is for people to read.
            if let Some(build) = &mut replica.build {
                build.leader_end = 0;
            }
            if let Some(state) = &mut replica.state {
                state.lag = state.lag.map(|_| 0);
                // While it waits it would ignore an answer. With none on its way, nothing but the
                // end of the delay can come first, or what makes the delay void.
                state.delayed &= self.flight.is_some();
            }
        }
    }

    pub(crate) fn metadata(&self) -> Vec<RemoteSegment> {
        self.remote.iter().enumerate().map(|(number, segment)| segment.metadata(number)).collect()
    }
}

/// What the rules see of a replica as a log.
pub(crate) fn bounds<'a>(
    replica: &Replica,
    remote_storage: bool,
    epochs: &'a LeaderEpochs,
) -> LogBounds<'a> {
    LogBounds {
        remote_storage,
        log_start_offset: replica.start,
        local_log_start_offset: replica.local_start,
        log_end_offset: replica.end,
        highest_remote_offset: replica.highest_remote,
        epochs,
    }
}

/// What the rules see of the leader.
pub(crate) fn leader_view<'a>(
    cluster: &Cluster,
    leader: usize,
    epochs: &'a LeaderEpochs,
) -> LeaderView<'a> {
    let replica = &cluster.replicas[leader];
    LeaderView {
        bounds: bounds(replica, cluster.remote_on, epochs),
        high_watermark: replica.high_watermark,
        last_stable_offset: replica.high_watermark,
        leader_epoch: cluster.epoch,
        leader_epoch_start_offset: cluster.epoch_start,
    }
}

/// What the rules see of a follower.
pub(crate) fn follower_view<'a>(
    replica: &Replica,
    config: FollowerConfig,
    epochs: &'a LeaderEpochs,
) -> FollowerView<'a> {
    FollowerView {
        log_start_offset: replica.start,
        local_log_start_offset: replica.local_start,
        log_end_offset: replica.end,
        high_watermark: replica.high_watermark,
        epochs,
        config,
        state: replica.state,
    }
}
