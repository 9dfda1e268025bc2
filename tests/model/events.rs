//! What may happen in the cluster, one event at a time.

use siltstone::replica::{
    Action, AuxFailure, AuxTarget, Event, FetchAnswer, FetchRequest, FetchState, FetchVerdict,
    FollowerView, LeaderAnswers, Phase, Reader, Request, RetryReason, check_action,
    check_installed, check_offsets, follower_step, leader_fetch_verdict,
};
use siltstone::tier::{
    ExpiryInput, RemoteLogStart, SizeRetention, UploadView, highest_remote, plan_expiry,
    remote_log_start,
};
use siltstone_tests::replicas::as_answer;

use crate::cluster::{
    Build, Cluster, Flight, Replica, Segment, epochs_of, follower_view, index, leader_view, list_of,
};
use crate::rules::Broken;

/// How many records a segment of a replica holds: two replicas cut their logs differently.
pub(crate) const SEGMENT_RECORDS: [i64; 2] = [1, 2];
/// `retention.bytes`: a record is a byte.
const RETENTION: i64 = 2;

/// What went wrong in a step.
pub(crate) type Step = Result<(), String>;

impl Cluster {
    /// A producer writes a record.
    pub(crate) fn produce(&mut self, leader: usize) {
        self.replicas[leader].append(self.epoch, SEGMENT_RECORDS[leader]);
        self.advance();
    }

    /// The leader uploads the first segment that may be.
    pub(crate) fn upload(&mut self, leader: usize, broken: Broken) -> bool {
        self.learn(leader);
        let replica = &mut self.replicas[leader];
        let sizes = vec![0; replica.bases.len()];
        let timestamps = vec![0; replica.bases.len()];
        let committed = broken.keeps(Broken::UploadsAreCommitted);
        let view = UploadView {
            bases: &replica.bases,
            starts_bytes: &sizes,
            max_timestamps_ms: &timestamps,
            log_start_offset: replica.start,
            last_stable_offset: if committed { replica.high_watermark } else { replica.end },
            copied_offset: replica.highest_remote,
            lineage_start_offset: replica.epochs.first().map_or(i64::MAX, |first| first.1),
            ..UploadView::default()
        };
        let Some(slot) = view.candidates(0).slots().next() else { return false };
        let (start, next) = (replica.bases[slot], replica.bases[slot + 1]);
        let records: Option<Vec<i32>> = (start..next).map(|at| replica.record(at)).collect();
        let mut epochs = epochs_of(&replica.epochs);
        epochs.truncate_from_end(next);
        let (end, epochs) = (next - 1, list_of(&epochs));
        let records = records.expect("the records of a local segment");
        self.remote.push(Segment { start, end, epochs, records });
        replica.highest_remote = replica.highest_remote.max(end);
        true
    }

    /// A replica finds out what is in remote storage; a leader takes the log start from there.
    pub(crate) fn learn(&mut self, number: usize) {
        let metadata = self.metadata();
        let replica = &mut self.replicas[number];
        let epochs = epochs_of(&replica.epochs);
        let highest_of = |epoch: i32| {
            let ends = metadata.iter().filter_map(|segment| {
                let slot = segment.leader_epochs.iter().position(|it| it.epoch == epoch)?;
                let next = segment.leader_epochs.get(slot + 1);
                Some(next.map_or(segment.end_offset, |next| next.start_offset - 1))
            });
            ends.max()
        };
        if let Some(found) = highest_remote(&epochs, replica.end, highest_of) {
            replica.highest_remote = replica.highest_remote.max(found.offset);
        }
        if self.leader != Some(number) {
            return;
        }
        let first_start_of = |epoch: i32| {
            let of_epoch = metadata
                .iter()
                .filter(|segment| segment.leader_epochs.iter().any(|it| it.epoch == epoch));
            of_epoch.map(|segment| segment.start_offset).min()
        };
        let start = remote_log_start(&epochs, replica.start, replica.local_start, first_start_of);
        // A log start above what is committed is refused.
        if let RemoteLogStart::At(start) = start
            && start <= replica.start_max()
        {
            replica.raise_start(start);
        }
    }

    /// A replica deletes its oldest local segment.
    pub(crate) fn delete_local(&mut self, number: usize, broken: Broken) -> bool {
        let replica = &mut self.replicas[number];
        let [_, next, ..] = *replica.bases else { return false };
        // spec: follower-fetch 7, invariant 9
        let is_uploaded = next - 1 <= replica.highest_remote || next <= replica.start;
        let may_go = is_uploaded || !broken.keeps(Broken::DeletesAreUploaded);
        if !may_go || replica.high_watermark < next {
            return false;
        }
        replica.raise_local_start(next);
        true
    }

    /// The leader deletes what retention says.
    pub(crate) fn expire(&mut self, leader: usize) -> bool {
        let metadata = self.metadata();
        let all: Vec<_> = metadata.iter().collect();
        let replica = &mut self.replicas[leader];
        let epochs = epochs_of(&replica.epochs);
        let first_local = replica.highest_remote.max(replica.local_start - 1) + 1;
        let only_local_bytes = u64::try_from((replica.end - first_local).max(0)).unwrap();
        let plan = plan_expiry(&ExpiryInput {
            segments: &all,
            epochs: &epochs,
            log_start_offset: replica.start,
            log_end_offset: replica.end,
            sizes: SizeRetention {
                retention_bytes: RETENTION,
                local_retention_bytes: -1,
                only_local_bytes,
                local_bytes: 0,
            },
            retention_ms: -1,
            now_ms: 0,
            is_being_copied: &|_| false,
            all_valid: false,
        });
        let gone: Vec<u8> = plan
            .deletes
            .iter()
            .map(|it| it.0)
            .chain(plan.unreferenced)
            .map(|segment| segment.id.segment_id.0[15])
            .collect();
        if let Some(start) = plan.new_log_start {
            // A log start above what is committed is refused, and then nothing is deleted.
            if start > replica.start_max() {
                return false;
            }
            // The operator wants no more than this.
            self.wanted_start = self.wanted_start.max(start);
            replica.raise_start(start);
        }
        let mut number = 0;
        self.remote.retain(|_| {
            number += 1;
            !gone.contains(&(number - 1))
        });
        !gone.is_empty() || plan.new_log_start.is_some()
    }

    /// Remote storage is switched off, and what is there goes; or it is switched on.
    pub(crate) fn switch(&mut self, broken: Broken) {
        self.remote_on = !self.remote_on;
        if self.remote_on {
            return;
        }
        self.remote.clear();
        for replica in &mut self.replicas {
            self.wanted_start = self.wanted_start.max(replica.local_start);
            replica.raise_start(replica.local_start);
            replica.high_watermark = replica.high_watermark.max(replica.start);
            if broken.keeps(Broken::SwitchedOffIsForgotten) {
                replica.highest_remote = -1;
            }
        }
    }

    /// A replica becomes leader, the other one its follower.
    pub(crate) fn elect(&mut self, number: usize, broken: Broken) {
        self.epoch += 1;
        self.leader = Some(number);
        self.follower_end = -1;
        self.epoch_start = self.replicas[number].end;
        let replica = &mut self.replicas[number];
        // What is read for a build is of no use to a leader; see `Replica::may_lead` for the rest.
        (replica.state, replica.build) = (None, None);
        replica.assign(self.epoch, replica.end);
        self.isr[number] = true;
        let other = &self.replicas[1 - number];
        if other.up && other.build.is_none() {
            self.follow(1 - number, broken);
        }
        self.advance();
    }

    /// A replica stops at once. The controller takes it out of the in-sync replicas, but for the
    /// last one.
    pub(crate) fn crash(&mut self, number: usize) {
        let replica = &mut self.replicas[number];
        replica.up = false;
        replica.state = None;
        replica.build = None;
        replica.highest_remote = -1;
        self.flight = None;
        if self.isr[1 - number] {
            self.isr[number] = false;
        }
        if self.leader == Some(number) {
            self.leader = None;
        }
        self.advance();
    }

    /// A replica that stopped gets an empty disk. It will register as a new incarnation that did
    /// not stop cleanly, and the controller takes it out of the in-sync replicas before that, the
    /// last one, too: nobody can lead then, and nothing is lost that the other replica lacks.
    // spec: replication 4.4, 4.5
    pub(crate) fn replace(&mut self, number: usize, broken: Broken) {
        self.replicas[number] = Replica { up: false, ..Replica::empty() };
        if broken.keeps(Broken::ReplacedIsOutOfSync) {
            self.isr[number] = false;
        }
    }

    /// A replica opens its log again.
    pub(crate) fn restart(&mut self, number: usize, broken: Broken) {
        let replica = &mut self.replicas[number];
        replica.up = true;
        if std::mem::take(&mut replica.mark) {
            // spec: follower-fetch 10: finished if all is there, else as if it were empty
            let known = epochs_of(&replica.epochs).epoch_for_offset(replica.end - 1).is_some();
            if !known || replica.snapshot != replica.end {
                replica.restart(0, 0);
            }
        }
        if self.leader.is_some_and(|leader| leader != number) {
            self.follow(number, broken);
        }
    }

    /// A replica hears of the leader.
    pub(crate) fn follow(&mut self, number: usize, broken: Broken) {
        let (leader_epoch, config) = (self.epoch, self.config());
        let replica = &mut self.replicas[number];
        let epochs = epochs_of(&replica.epochs);
        let mut view = follower_view(replica, config, &epochs);
        hide_what_is_missing(&mut view, broken);
        let initial_offset = view.initial_offset();
        let event = Event::NewLeader { leader_epoch, initial_offset };
        if let Action::Adopt(state) = follower_step(&view, &event) {
            replica.state = Some(state);
        }
    }

    /// The follower compares its log, or fetches: the answer comes at once, or it is on its way.
    pub(crate) fn poll(&mut self, number: usize, at_once: bool, broken: Broken) -> Step {
        let (Some(leader), Some(state)) = (self.leader, self.replicas[number].state) else {
            return Ok(());
        };
        let leader_epochs = epochs_of(&self.replicas[leader].epochs);
        if state.phase == Phase::Truncating {
            let end = self.replicas[leader].end;
            let asked = state.last_fetched_epoch.unwrap_or(-1);
            let (epoch, end_offset) = leader_epochs.end_offset_for(asked, end);
            let leader_epoch = state.leader_epoch;
            return self
                .converse(number, broken, |known| Event::EpochEnd {
                    leader_epoch,
                    epoch,
                    end_offset,
                    known,
                })
                .map(drop);
        }
        let view = leader_view(self, leader, &leader_epochs);
        let fetch = FetchRequest {
            reader: Reader::Follower,
            fetch_offset: state.fetch_offset,
            leader_epoch: Some(state.leader_epoch),
            last_fetched_epoch: state.last_fetched_epoch,
        };
        let verdict = leader_fetch_verdict(&view, &fetch);
        let request =
            Request { fetch_offset: state.fetch_offset, leader_epoch: state.leader_epoch };
        let mut record = None;
        if let FetchVerdict::Serve { .. } = verdict {
            record = self.replicas[leader].record(state.fetch_offset);
            self.follower_end = state.fetch_offset;
            let high_watermark = self.replicas[leader].high_watermark;
            if state.fetch_offset >= high_watermark && state.fetch_offset >= self.epoch_start {
                self.isr[number] = true;
            }
            self.advance();
        }
        let flight = Flight { request, answer: as_answer(verdict), record };
        if at_once {
            return self.deliver(number, &flight, broken);
        }
        self.flight = Some(flight);
        Ok(())
    }

    /// The answer to a fetch arrives.
    pub(crate) fn deliver(&mut self, number: usize, flight: &Flight, broken: Broken) -> Step {
        let Flight { mut request, answer, record } = *flight;
        if let (Broken::StaleAnswersAreIgnored, Some(state)) = (broken, self.replicas[number].state)
        {
            let FetchState { fetch_offset, leader_epoch, .. } = state;
            request = Request { fetch_offset, leader_epoch };
        }
        let action =
            self.converse(number, broken, |known| Event::Response { request, answer, known })?;
        let FetchAnswer::Records { high_watermark, log_start_offset } = answer else {
            return Ok(());
        };
        let Action::Append { last_epoch } = action else { return Ok(()) };
        if let Some(epoch) = record.filter(|epoch| *epoch <= last_epoch) {
            let replica = &mut self.replicas[number];
            if replica.end != flight.request.fetch_offset {
                return Err(format!(
                    "a record of {} at {}",
                    flight.request.fetch_offset, replica.end
                ));
            }
            replica.append(epoch, SEGMENT_RECORDS[number]);
        }
        let event = Event::Appended {
            leader_high_watermark: high_watermark,
            leader_log_start_offset: log_start_offset,
        };
        self.step(number, &event, broken).map(drop)
    }

    /// Brings an event until it leads to something else than a question.
    fn converse(
        &mut self,
        number: usize,
        broken: Broken,
        event: impl for<'k> Fn(&'k LeaderAnswers) -> Event<'k>,
    ) -> Result<Action, String> {
        let mut known = LeaderAnswers::default();
        loop {
            match self.step(number, &event(&known), broken)? {
                Action::Ask(query) => {
                    let Some(leader) = self.leader else {
                        let leader_epoch = self.epoch;
                        let event = Event::QueryFailed { leader_epoch, fenced: false };
                        return self.step(number, &event, broken);
                    };
                    let epochs = epochs_of(&self.replicas[leader].epochs);
                    leader_view(self, leader, &epochs).answer(query, &mut known);
                }
                Action::BuildAux { target, log_start_offset, leader_log_end_offset } => {
                    return self.begin(
                        number,
                        (target, log_start_offset, leader_log_end_offset),
                        broken,
                    );
                }
                action => return Ok(action),
            }
        }
    }

    /// Looks the segment up; its objects are read and checked before anything is changed.
    fn begin(
        &mut self,
        number: usize,
        (target, log_start, leader_end): (AuxTarget, i64, i64),
        broken: Broken,
    ) -> Result<Action, String> {
        let holds = |segment: &&Segment| {
            segment.holds(target.epoch, target.previous_offset)
                || !broken.keeps(Broken::SegmentReachesTheStart)
        };
        let Some(segment) = self.remote.iter().find(holds).cloned() else {
            return self.step(number, &Event::AuxFailed(AuxFailure::SegmentNotFound), broken);
        };
        self.replicas[number].build =
            Some(Build { target, log_start, leader_end, segment, stage: 0 });
        Ok(Action::Ignore)
    }

    /// The objects cannot be read.
    pub(crate) fn fail_read(&mut self, number: usize, broken: Broken) -> Step {
        let replica = &mut self.replicas[number];
        let build = replica.build.take().expect("a build");
        if !broken.keeps(Broken::ReadBeforeDrop) {
            replica.restart(build.segment.end + 1, build.log_start);
        }
        self.step(number, &Event::AuxFailed(AuxFailure::Storage), broken)?;
        // What it has heard of meanwhile.
        if self.leader.is_some_and(|leader| leader != number) {
            self.follow(number, broken);
        }
        Ok(())
    }

    /// The next step of an installation.
    pub(crate) fn install(&mut self, number: usize, broken: Broken) -> Step {
        let (marks, config) = (broken.keeps(Broken::Mark), self.config());
        let replica = &mut self.replicas[number];
        let mut build = replica.build.take().expect("a build");
        let next = build.segment.end + 1;
        build.stage += 1;
        match build.stage {
            1 => replica.mark = marks,
            2 => replica.restart(next, build.log_start),
            3 if broken.keeps(Broken::EpochsAreInstalled) => {
                replica.epochs.clone_from(&build.segment.epochs);
            }
            3 => {}
            4 if broken.keeps(Broken::SnapshotIsInstalled) => replica.snapshot = next,
            4 => {}
            _ => {
                replica.mark = false;
                if replica.snapshot != next {
                    return Err(format!("no snapshot at {next}"));
                }
                let epochs = epochs_of(&replica.epochs);
                let view = follower_view(replica, config, &epochs);
                if let Some(rule) = check_installed(&view, &build.target) {
                    return Err(format!("{rule:?}"));
                }
                let event = Event::AuxInstalled { leader_log_end_offset: build.leader_end };
                self.step(number, &event, broken)?;
                // What it has heard of meanwhile.
                if self.leader.is_some_and(|leader| leader != number) {
                    self.follow(number, broken);
                }
                return Ok(());
            }
        }
        replica.build = Some(build);
        Ok(())
    }

    /// Takes one step of the real table, and does what it says of the log.
    pub(crate) fn step(
        &mut self,
        number: usize,
        event: &Event<'_>,
        broken: Broken,
    ) -> Result<Action, String> {
        let config = self.config();
        let replica = &mut self.replicas[number];
        let epochs = epochs_of(&replica.epochs);
        let mut view = follower_view(replica, config, &epochs);
        hide_what_is_missing(&mut view, broken);
        let mut action = follower_step(&view, event);
        let mut again = view;
        if !broken.keeps(Broken::RulesKeepNothing)
            && let Action::Adopt(state) | Action::Truncate { state, .. } = action
        {
            again.state = Some(state);
        }
        if action != follower_step(&again, event) {
            return Err("the same question has two answers".to_owned());
        }
        if let (Action::Restart { .. }, Broken::StartAtLogStart, 0) = (action, broken, replica.end)
        {
            action = follower_step(&view, &Event::AuxFailed(AuxFailure::Storage));
        }
        match action {
            Action::Ignore | Action::Append { .. } | Action::Ask(_) | Action::BuildAux { .. } => {}
            Action::Adopt(state) => replica.state = Some(state),
            Action::Delay { mut state, reason } => {
                if !broken.keeps(Broken::RetryChangesNothing)
                    && reason == RetryReason::RemoteStorage
                {
                    state.fetch_offset += 1;
                }
                replica.state = Some(state);
                if let Some(rule) = check_action(&view, event, &Action::Delay { state, reason }) {
                    return Err(format!("{rule:?}"));
                }
            }
            Action::Advance { mut high_watermark, log_start_offset, state } => {
                if let (Event::Appended { leader_high_watermark, .. }, false) =
                    (event, broken.keeps(Broken::HighWatermarkIsClamped))
                {
                    high_watermark = *leader_high_watermark;
                }
                replica.high_watermark = high_watermark;
                replica.raise_start(log_start_offset);
                replica.state = Some(state);
            }
            Action::Truncate { offset, state } => {
                let uploaded = replica.highest_remote;
                replica.truncate(offset);
                if !broken.keeps(Broken::UploadsAreCommitted) {
                    replica.highest_remote = uploaded;
                }
                replica.state = Some(state);
            }
            Action::Restart { offset, state } => {
                replica.restart(offset, offset);
                replica.state = Some(state);
            }
            Action::Fail(_) => replica.state = None,
        }
        Ok(action)
    }

    /// What must hold of every state.
    pub(crate) fn check(&self, broken: Broken) -> Step {
        for (number, replica) in self.replicas.iter().enumerate() {
            let epochs = epochs_of(&replica.epochs);
            let view = follower_view(replica, self.config(), &epochs);
            if let Some(rule) = check_offsets(&view) {
                return Err(format!("{rule:?} at {number}"));
            }
        }
        let Some(leader) = self.leader else { return Ok(()) };
        let replica = &self.replicas[leader];
        if replica.start > self.wanted_start {
            return Err(format!("the log starts at {}, nobody wanted that", replica.start));
        }
        let epochs = epochs_of(&replica.epochs);
        let minded = if broken.keeps(Broken::LocalStartIsMinded) {
            replica.local_start
        } else {
            replica.start
        };
        let mut view = leader_view(self, leader, &epochs);
        view.bounds.local_log_start_offset = minded;
        for offset in self.wanted_start..i64::try_from(self.committed.len()).unwrap() {
            let fetch = FetchRequest {
                reader: Reader::Consumer,
                fetch_offset: offset,
                leader_epoch: None,
                last_fetched_epoch: None,
            };
            let wanted = self.committed[index(offset)];
            let found = match leader_fetch_verdict(&view, &fetch) {
                FetchVerdict::Serve { .. } => replica.record(offset),
                FetchVerdict::ReadRemote => {
                    let epoch = epochs.epoch_for_offset(offset);
                    epoch.filter(|epoch| self.remote.iter().any(|it| it.holds(*epoch, offset)))
                }
                _ => None,
            };
            if found != Some(wanted) {
                return Err(format!("the committed record {offset} is lost: {found:?}"));
            }
        }
        Ok(())
    }
}

/// A rule that is broken: the follower does not see that its log begins behind its leader's.
fn hide_what_is_missing(view: &mut FollowerView<'_>, broken: Broken) {
    if let Broken::Mark | Broken::ReadBeforeDrop = broken {
        view.local_log_start_offset = 0;
    }
}
