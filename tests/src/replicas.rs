//! A leader and a follower of numbers alone, to drive the rules of `siltstone::replica`: batches
//! of one record each, remote segments without bytes, and a network that never fails unless told.

use siltstone::log::LogBounds;
use siltstone::replica::{
    Action, AppendFailure, AuxFailure, AuxTarget, Event, FetchAnswer, FetchRequest, FetchState,
    FetchVerdict, FollowerConfig, FollowerView, LeaderAnswers, LeaderView, Phase, Reader, Request,
    check_installed, check_offsets, follower_step, leader_fetch_verdict,
};
use siltstone::state::{EpochEntry, LeaderEpochs};

/// The epochs of `(epoch, start offset)` pairs.
///
/// # Panics
///
/// When one of them is negative.
#[must_use]
pub fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
    let entry = |&(epoch, start_offset)| EpochEntry { epoch, start_offset };
    let entries: Vec<EpochEntry> = entries.iter().map(entry).collect();
    LeaderEpochs::from_entries(&entries).expect("epochs that are not negative")
}

/// A batch of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Batch {
    /// Its offset.
    pub offset: i64,
    /// Its leader epoch.
    pub epoch: i32,
}

/// A finished segment in remote storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainSegment {
    /// Its first offset.
    pub start_offset: i64,
    /// Its last offset, inclusive.
    pub end_offset: i64,
    /// The content of its leader-epoch object.
    pub epochs: LeaderEpochs,
}

impl PlainSegment {
    /// Whether it has this offset in this epoch.
    #[must_use]
    pub fn holds(&self, epoch: i32, offset: i64) -> bool {
        (self.start_offset..=self.end_offset).contains(&offset)
            && self.epochs.epoch_for_offset(offset) == Some(epoch)
    }
}

/// A leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainLeader {
    /// Whether the topic has remote storage.
    pub remote_storage: bool,
    /// The first offset that can be read.
    pub log_start_offset: i64,
    /// The first offset on its disk.
    pub local_log_start_offset: i64,
    /// The next offset to be written.
    pub log_end_offset: i64,
    /// What is committed, exclusive.
    pub high_watermark: i64,
    /// The last offset that it knows to be in remote storage, -1 for none.
    pub highest_remote_offset: i64,
    /// Its epoch.
    pub leader_epoch: i32,
    /// Which leader wrote what.
    pub epochs: LeaderEpochs,
    /// What is on its disk.
    pub batches: Vec<Batch>,
    /// What is in remote storage.
    pub remote: Vec<PlainSegment>,
}

impl PlainLeader {
    /// What the rules see of it.
    #[must_use]
    pub fn view(&self) -> LeaderView<'_> {
        let bounds = LogBounds {
            remote_storage: self.remote_storage,
            log_start_offset: self.log_start_offset,
            local_log_start_offset: self.local_log_start_offset,
            log_end_offset: self.log_end_offset,
            highest_remote_offset: self.highest_remote_offset,
            epochs: &self.epochs,
        };
        LeaderView {
            bounds,
            high_watermark: self.high_watermark,
            last_stable_offset: self.high_watermark,
            leader_epoch: self.leader_epoch,
            leader_epoch_start_offset: self.log_start_offset,
        }
    }
}

/// A follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainFollower {
    /// Its settings.
    pub config: FollowerConfig,
    /// The first offset that can be read.
    pub log_start_offset: i64,
    /// The first offset on its disk.
    pub local_log_start_offset: i64,
    /// The next offset to be written.
    pub log_end_offset: i64,
    /// What is committed, exclusive.
    pub high_watermark: i64,
    /// Which leader wrote what.
    pub epochs: LeaderEpochs,
    /// What is on its disk.
    pub batches: Vec<Batch>,
    /// The offset of the newest snapshot that came from remote storage.
    pub snapshot: Option<i64>,
    /// How far it is.
    pub state: Option<FetchState>,
    /// Why the next build from remote storage fails.
    pub aux_failure: Option<AuxFailure>,
    /// Why the next append fails.
    pub append_failure: Option<AppendFailure>,
}

impl PlainFollower {
    /// An empty one that has state at offset 0 already.
    #[must_use]
    pub fn empty(config: FollowerConfig) -> Self {
        let state = FetchState {
            fetch_offset: 0,
            lag: None,
            leader_epoch: 0,
            last_fetched_epoch: Some(0),
            phase: Phase::Fetching,
            delayed: false,
            tiered_start_failed: false,
        };
        PlainFollower {
            config,
            log_start_offset: 0,
            local_log_start_offset: 0,
            log_end_offset: 0,
            high_watermark: 0,
            epochs: LeaderEpochs::new(),
            batches: Vec::new(),
            snapshot: None,
            state: Some(state),
            aux_failure: None,
            append_failure: None,
        }
    }

    /// One that holds these records from offset 0 on, and has no state.
    #[must_use]
    pub fn holding(config: FollowerConfig, batch_epochs: &[i32]) -> Self {
        let mut follower = PlainFollower { state: None, ..Self::empty(config) };
        for (offset, &epoch) in (0..).zip(batch_epochs) {
            follower.append(Batch { offset, epoch });
        }
        follower
    }

    /// What the rules see of it.
    #[must_use]
    pub fn view(&self) -> FollowerView<'_> {
        FollowerView {
            log_start_offset: self.log_start_offset,
            local_log_start_offset: self.local_log_start_offset,
            log_end_offset: self.log_end_offset,
            high_watermark: self.high_watermark,
            epochs: &self.epochs,
            config: self.config,
            state: self.state,
        }
    }

    /// Takes one step and does what it says of the log; gives what it said.
    ///
    /// # Panics
    ///
    /// When an invariant does not hold afterwards.
    pub fn step(&mut self, event: &Event<'_>) -> Action {
        let action = follower_step(&self.view(), event);
        match action {
            Action::Ignore | Action::Append { .. } | Action::Ask(_) | Action::BuildAux { .. } => {}
            Action::Adopt(state) | Action::Delay { state, .. } => self.state = Some(state),
            Action::Advance { high_watermark, log_start_offset, state } => {
                self.high_watermark = high_watermark;
                if log_start_offset > self.log_start_offset {
                    self.raise_log_start(log_start_offset);
                }
                self.state = Some(state);
            }
            Action::Truncate { offset, state } => {
                self.truncate(offset);
                self.state = Some(state);
            }
            Action::Restart { offset, state } => {
                self.restart(offset, offset);
                self.state = Some(state);
            }
            Action::Fail(_) => self.state = None,
        }
        assert_eq!(check_offsets(&self.view()), None, "after {action:?}: {self:?}");
        action
    }

    /// Hears of a leader.
    pub fn follow(&mut self, leader_epoch: i32) -> Action {
        let initial_offset = self.view().initial_offset();
        self.step(&Event::NewLeader { leader_epoch, initial_offset })
    }

    /// Sends one fetch, or compares its log, and does all that comes of it. Gives the last action;
    /// [`Action::Ignore`] when there was nothing to send.
    ///
    /// # Panics
    ///
    /// When a rule asks for ever.
    pub fn poll(&mut self, leader: &PlainLeader) -> Action {
        let Some(state) = self.state else { return Action::Ignore };
        if state.phase == Phase::Truncating {
            let (epoch, end_offset) = match state.last_fetched_epoch {
                Some(last) => leader.epochs.end_offset_for(last, leader.log_end_offset),
                None => (-1, -1),
            };
            let leader_epoch = state.leader_epoch;
            return self.converse(leader, |known| Event::EpochEnd {
                leader_epoch,
                epoch,
                end_offset,
                known,
            });
        }
        if !state.is_ready() {
            return Action::Ignore;
        }
        let request =
            Request { fetch_offset: state.fetch_offset, leader_epoch: state.leader_epoch };
        let fetch = FetchRequest {
            reader: Reader::Follower,
            fetch_offset: state.fetch_offset,
            leader_epoch: Some(state.leader_epoch),
            last_fetched_epoch: state.last_fetched_epoch,
        };
        let answer = as_answer(leader_fetch_verdict(&leader.view(), &fetch));
        let action = self.converse(leader, |known| Event::Response { request, answer, known });
        let FetchAnswer::Records { high_watermark, log_start_offset } = answer else {
            return action;
        };
        let Action::Append { last_epoch } = action else { return action };
        if let Some(failure) = self.append_failure.take() {
            return self.step(&Event::LogFailed(failure));
        }
        let next = leader.batches.iter().find(|batch| batch.offset >= state.fetch_offset);
        if let Some(batch) = next.filter(|batch| batch.epoch <= last_epoch) {
            self.append(*batch);
        }
        self.step(&Event::Appended {
            leader_high_watermark: high_watermark,
            leader_log_start_offset: log_start_offset,
        })
    }

    /// Polls until nothing changes; gives how often that was.
    ///
    /// # Panics
    ///
    /// When that takes more than a hundred polls.
    pub fn catch_up(&mut self, leader: &PlainLeader) -> usize {
        for polls in 0..100 {
            let before = self.clone();
            self.poll(leader);
            if *self == before {
                return polls;
            }
        }
        panic!("never comes to rest: {self:?}");
    }

    /// Brings an event until it leads to something else than a question.
    fn converse(
        &mut self,
        leader: &PlainLeader,
        event: impl for<'k> Fn(&'k LeaderAnswers) -> Event<'k>,
    ) -> Action {
        let mut known = LeaderAnswers::default();
        for _ in 0..10 {
            match self.step(&event(&known)) {
                Action::Ask(query) => leader.view().answer(query, &mut known),
                Action::BuildAux { target, log_start_offset, leader_log_end_offset } => {
                    let event = match self.build(leader, target, log_start_offset) {
                        Ok(()) => Event::AuxInstalled { leader_log_end_offset },
                        Err(failure) => Event::AuxFailed(failure),
                    };
                    return self.step(&event);
                }
                action => return action,
            }
        }
        panic!("asks for ever: {known:?}");
    }

    fn build(
        &mut self,
        leader: &PlainLeader,
        target: AuxTarget,
        log_start_offset: i64,
    ) -> Result<(), AuxFailure> {
        if let Some(failure) = self.aux_failure.take() {
            return Err(failure);
        }
        let holds = |segment: &&PlainSegment| segment.holds(target.epoch, target.previous_offset);
        let segment = leader.remote.iter().find(holds).ok_or(AuxFailure::SegmentNotFound)?;
        self.install(segment, log_start_offset);
        assert_eq!(check_installed(&self.view(), &target), None, "{target:?}: {self:?}");
        Ok(())
    }

    /// Takes what is behind a remote segment as its beginning.
    pub fn install(&mut self, segment: &PlainSegment, log_start_offset: i64) {
        let next = segment.end_offset + 1;
        self.restart(next, log_start_offset);
        self.epochs = segment.epochs.clone();
        self.snapshot = Some(next);
    }

    /// Drops everything and starts an empty log at `offset`.
    pub fn restart(&mut self, offset: i64, log_start_offset: i64) {
        self.batches.clear();
        self.epochs = LeaderEpochs::new();
        self.snapshot = None;
        self.log_start_offset = log_start_offset;
        self.local_log_start_offset = offset;
        self.log_end_offset = offset;
        self.high_watermark = offset;
    }

    /// Cuts the log to end at `offset`.
    pub fn truncate(&mut self, offset: i64) {
        if offset >= self.log_end_offset {
            return;
        }
        if offset < self.local_log_start_offset {
            self.restart(offset, offset);
            return;
        }
        self.batches.retain(|batch| batch.offset < offset);
        self.epochs.truncate_from_end(offset);
        self.epochs.written();
        self.log_start_offset = self.log_start_offset.min(offset);
        self.log_end_offset = offset;
        self.high_watermark = self.high_watermark.min(offset);
    }

    /// Appends a batch.
    ///
    /// # Panics
    ///
    /// When its epoch is negative.
    pub fn append(&mut self, batch: Batch) {
        self.epochs.assign(batch.epoch, batch.offset).expect("an epoch that is not negative");
        self.epochs.written();
        self.batches.push(batch);
        self.log_end_offset = batch.offset + 1;
    }

    fn raise_log_start(&mut self, offset: i64) {
        assert!(offset <= self.high_watermark, "{offset}: {self:?}");
        self.log_start_offset = offset;
        self.local_log_start_offset = self.local_log_start_offset.max(offset);
        self.batches.retain(|batch| batch.offset >= offset);
        self.epochs.truncate_from_start(offset);
        self.epochs.written();
    }
}

/// A verdict, as it looks to a follower.
#[must_use]
pub fn as_answer(verdict: FetchVerdict) -> FetchAnswer {
    match verdict {
        FetchVerdict::Serve { high_watermark, log_start_offset } => {
            FetchAnswer::Records { high_watermark, log_start_offset }
        }
        FetchVerdict::Diverging { epoch, end_offset } => {
            FetchAnswer::Diverging { epoch, end_offset }
        }
        FetchVerdict::MovedToTieredStorage { .. } => FetchAnswer::MovedToTieredStorage,
        FetchVerdict::ReadRemote => unreachable!("only consumers are read for"),
        FetchVerdict::Refuse(error) => match error.code() {
            1 => FetchAnswer::OutOfRange,
            74 => FetchAnswer::Fenced,
            code => FetchAnswer::Error(code),
        },
    }
}
