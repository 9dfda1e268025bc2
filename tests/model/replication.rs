//! Does a replica that may lead ever lack a committed record?
//!
//! Three replicas with `min.insync.replicas` 2, one controller. A broker that stops in order keeps
//! its log; one that is killed may lose any part of it. Histories end where a leader is elected
//! uncleanly, since that may lose records.

use siltstone::replica::{
    AlterAnswer, AlterPartition, BrokerEvent, BrokerStatus, ChangeRequest, Election, ElrOptions,
    FollowerFetch, HighWatermarkChange, InSyncReplicas, IsrChange, LeaderMoment, LeaderProgress,
    Partition, PartitionChange, PartitionLeader, PartitionMetadata, acks_before_append,
    advance_high_watermark, merge_change, plan_broker_event, plan_partition_change,
    validate_alter_partition,
};

use crate::search::{Found, Model, faults, search};

const BROKERS: usize = 3;
const MIN_ISR: i32 = 2;
/// The last offset that is ever written, and one more.
const END_MAX: usize = 2;
/// A history ends when the partition has changed so often.
const CHANGES_MAX: i32 = 5;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Nothing,
    /// The high watermark moves below the minimum of in-sync replicas.
    StrictMinIsr,
    /// A broker that was killed says that it stopped in order.
    UncleanIsTold,
    /// A shrink in flight counts before the controller has made it.
    ShrinkIsConfirmed,
    /// A follower joins before it has all that is committed.
    JoinsCaughtUp,
    /// A follower does not say which life of its broker it is of.
    LivesAreTold,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    partition: Partition,
    up: [bool; BROKERS],
    /// Each life of a broker has its epoch.
    lives: [i64; BROKERS],
    /// The request in flight: what is sent again is the same, whatever was learnt meanwhile.
    sent: Option<Vec<(i32, i64)>>,
    /// The leader epoch of each record.
    logs: [Vec<i32>; BROKERS],
    leader: Option<PartitionLeader>,
    high_watermark: i64,
    committed: Vec<i32>,
    faults: u8,
}

struct Replication {
    broken: Broken,
    faults: u8,
}

fn id(broker: usize) -> i32 {
    i32::try_from(broker).unwrap()
}

fn size(log: &[i32]) -> i64 {
    i64::try_from(log.len()).unwrap()
}

impl Group {
    fn broker(&self, id: i32) -> BrokerStatus {
        let at = usize::try_from(id).expect("a broker");
        BrokerStatus { epoch: Some(self.lives[at]), fenced: !self.up[at], shutting_down: false }
    }

    fn leading(&self) -> Option<usize> {
        usize::try_from(self.partition.leader).ok().filter(|&leader| self.up[leader])
    }

    /// The controller changes the partition, and everybody hears of it.
    fn change(&mut self, change: Option<PartitionChange>, broken: Broken) {
        let Some(change) = change else { return };
        let epoch = self.partition.leader_epoch;
        self.partition = merge_change(&self.partition, &change).expect("a change that fits");
        let Some(leader) = self.leading() else {
            self.leader = None;
            return;
        };
        let end = size(&self.logs[leader]);
        let metadata = PartitionMetadata {
            leader: self.partition.leader,
            leader_epoch: self.partition.leader_epoch,
            partition_epoch: self.partition.partition_epoch,
            replicas: self.partition.replicas.clone(),
            isr: self.partition.isr.clone(),
        };
        match self.leader.as_mut() {
            Some(state) if state.id == metadata.leader => {
                state.update(&metadata, end, 0);
            }
            _ => {
                self.leader = Some(PartitionLeader::new(&metadata, MIN_ISR, end, 0));
                self.high_watermark = self.high_watermark.min(end);
            }
        }
        if epoch != self.partition.leader_epoch {
            self.truncate();
        }
        self.advance(broken);
    }

    /// Followers drop what their leader does not have.
    fn truncate(&mut self) {
        let Some(leader) = self.leading() else { return };
        let leads = self.logs[leader].clone();
        for (log, _) in self.logs.iter_mut().zip(self.up).filter(|(_, up)| *up) {
            let common = log.iter().zip(&leads).take_while(|(own, other)| own == other).count();
            log.truncate(common);
        }
    }

    fn advance(&mut self, broken: Broken) {
        match &self.leader {
            Some(state) if state.isr.change().is_some() => {
                let own = usize::try_from(state.id).map_or(-1, |leader| self.lives[leader]);
                let request = state.proposed_with_epochs(own);
                self.sent = self.sent.take().or(request);
            }
            _ => self.sent = None,
        }
        let (Some(number), Some(state)) = (self.leading(), &self.leader) else { return };
        let isr = match state.isr.proposed() {
            Some(proposed)
                if broken == Broken::ShrinkIsConfirmed
                    && matches!(state.isr.change(), Some(IsrChange::Shrink(_))) =>
            {
                InSyncReplicas::new(proposed, 0)
            }
            _ => state.isr.clone(),
        };
        let strict = broken != Broken::StrictMinIsr;
        let progress = LeaderProgress {
            log_end_offset: size(&self.logs[number]),
            high_watermark: self.high_watermark,
            isr: &isr,
            effective_min_isr: if strict { state.effective_min_isr() } else { 0 },
            followers: &state.followers,
            now_ms: 0,
            // Nobody counts as caught up who has not all.
            lag_max_ms: -1,
        };
        let change = advance_high_watermark(&progress, |id| self.broker(id));
        if let HighWatermarkChange::Advance { high_watermark, .. } = change {
            self.high_watermark = high_watermark;
            let from = self.committed.len();
            let to = usize::try_from(high_watermark).unwrap().max(from);
            self.committed.extend_from_slice(&self.logs[number][from..to]);
        }
    }

    fn fetch(&mut self, broker: usize, broken: Broken) {
        let Some(leader) = self.leading() else { return };
        let end = size(&self.logs[leader]);
        let high_watermark = if broken == Broken::JoinsCaughtUp { 0 } else { self.high_watermark };
        let status = self.broker(id(broker));
        let offset = size(&self.logs[broker]);
        let Some(state) = self.leader.as_mut() else { return };
        if broken == Broken::JoinsCaughtUp {
            state.leader_epoch_start_offset = 0;
        }
        let fetch = FollowerFetch {
            offset,
            log_start_offset: 0,
            // A broker that says no epoch passes.
            broker_epoch: if broken == Broken::LivesAreTold { -1 } else { self.lives[broker] },
            now_ms: 0,
            leader_log_end_offset: end,
        };
        state.record_fetch(id(broker), &fetch, status, high_watermark).expect("a broker of now");
        self.advance(broken);
        if let Some(record) = self.logs[leader].get(self.logs[broker].len()).copied() {
            self.logs[broker].push(record);
        }
    }

    /// The controller looks at the change that the leader wants.
    fn alter(&mut self, broken: Broken) {
        let Some(state) = &self.leader else { return };
        let (Some(isr), Some(sent)) = (self.sent.clone(), state.isr.change().cloned()) else {
            return;
        };
        let request = AlterPartition {
            broker: state.id,
            leader_epoch: state.leader_epoch,
            partition_epoch: state.isr.partition_epoch(),
            isr,
            recovering: self.partition.recovering,
        };
        let verdict = validate_alter_partition(&self.partition, &request, |id| self.broker(id));
        let leader_epoch = state.leader_epoch;
        let answer = match verdict {
            Err(code) => AlterAnswer::Error(code),
            Ok(()) => {
                let wanted: Vec<i32> = request.isr.iter().map(|member| member.0).collect();
                let change = ChangeRequest {
                    target_isr: Some(wanted.clone()),
                    min_isr: usize::try_from(MIN_ISR).unwrap(),
                    ..ChangeRequest::default()
                };
                let is_ok = |id: i32| !self.broker(id).fenced;
                let change =
                    plan_partition_change(&self.partition, &change, ElrOptions::default(), &is_ok);
                if let Some(change) = change {
                    self.partition = merge_change(&self.partition, &change).expect("it fits");
                }
                let partition_epoch = self.partition.partition_epoch;
                AlterAnswer::Ok { leader_epoch, partition_epoch, isr: wanted }
            }
        };
        self.sent = None;
        if let Some(state) = self.leader.as_mut() {
            state.isr.apply(&sent, leader_epoch, request.partition_epoch, answer);
        }
        self.advance(broken);
    }

    fn event(&mut self, broker: usize, event: BrokerEvent, broken: Broken) {
        let up = self.up;
        let is_ok = |id: i32| usize::try_from(id).is_ok_and(|at| up[at]);
        let min_isr = usize::try_from(MIN_ISR).unwrap();
        let rule = (Election::Online, min_isr);
        let options = ElrOptions::default();
        let change = plan_broker_event(&self.partition, id(broker), event, rule, options, &is_ok);
        self.change(change, broken);
    }
}

impl Model for Replication {
    type State = Group;

    fn first(&self) -> Group {
        let all: Vec<i32> = (0..BROKERS).map(id).collect();
        let partition =
            Partition { replicas: all.clone(), isr: all, leader: 0, ..Partition::default() };
        let mut group = Group {
            partition,
            up: [true; BROKERS],
            lives: [0; BROKERS],
            sent: None,
            logs: [const { Vec::new() }; BROKERS],
            leader: None,
            high_watermark: 0,
            committed: Vec::new(),
            faults: self.faults,
        };
        let nothing = PartitionChange { leader: Some(0), ..PartitionChange::default() };
        group.change(Some(nothing), self.broken);
        group
    }

    fn next(&self, state: &Group, found: &mut Found<Group>) {
        let broken = self.broken;
        if state.partition.partition_epoch > CHANGES_MAX || state.partition.recovering {
            return;
        }
        let mut add = |name: String, event: &dyn Fn(&mut Group)| {
            let mut next = state.clone();
            event(&mut next);
            if next != *state {
                found.push((name.into(), Ok(next)));
            }
        };
        let leads = state.leading().zip(state.leader.as_ref());
        if let Some((number, leader)) = leads {
            let min_isr = leader.effective_min_isr();
            // A producer of acks=all is refused below the minimum; others are not.
            let acks = if acks_before_append(-1, &leader.isr, min_isr).is_some() { 1 } else { -1 };
            if state.logs[number].len() < END_MAX {
                add(format!("produce acks={acks}"), &|it| {
                    it.logs[number].push(it.partition.leader_epoch);
                    it.advance(broken);
                });
            }
            add("shrink".to_owned(), &|it| {
                let moment = LeaderMoment {
                    log_end_offset: size(&it.logs[number]),
                    high_watermark: it.high_watermark,
                    now_ms: 0,
                    lag_max_ms: -1,
                };
                if let Some(leader) = it.leader.as_mut() {
                    leader.shrink(&moment);
                }
                it.advance(broken);
            });
            add("alter".to_owned(), &|it| it.alter(broken));
        }
        for broker in 0..BROKERS {
            if state.up[broker] {
                if leads.is_some_and(|(number, _)| number != broker) {
                    add(format!("fetch {broker}"), &|it| it.fetch(broker, broken));
                }
                if state.faults == 0 {
                    continue;
                }
                add(format!("stop {broker}"), &|it| {
                    it.faults -= 1;
                    it.up[broker] = false;
                    it.event(broker, BrokerEvent::Fenced, broken);
                });
                continue;
            }
            // It comes back as it stopped, or it was killed and has lost the end of its log.
            add(format!("start {broker}"), &|it| {
                it.lives[broker] += 1;
                it.event(broker, BrokerEvent::RestartedClean, broken);
                it.up[broker] = true;
                it.event(broker, BrokerEvent::Unfenced, broken);
                it.truncate();
            });
            for kept in 0..state.logs[broker].len() {
                add(format!("start {broker} with {kept} records"), &|it| {
                    let kind = if broken == Broken::UncleanIsTold {
                        BrokerEvent::RestartedClean
                    } else {
                        BrokerEvent::RestartedUnclean
                    };
                    it.lives[broker] += 1;
                    it.logs[broker].truncate(kept);
                    it.event(broker, kind, broken);
                    it.up[broker] = true;
                    it.event(broker, BrokerEvent::Unfenced, broken);
                    it.truncate();
                });
            }
        }
    }

    fn check(&self, state: &Group) -> Result<(), String> {
        let Some(leader) = state.leading().filter(|_| !state.partition.recovering) else {
            return Ok(());
        };
        let log = &state.logs[leader];
        if log.starts_with(&state.committed) {
            Ok(())
        } else {
            Err(format!("{leader} leads with {log:?}, committed is {:?}", state.committed))
        }
    }
}

const STATES_MAX: usize = 3_000_000;

#[test]
fn no_replica_that_may_lead_lacks_a_committed_record() {
    // spec: replication 4.4, "Safety argument"
    let found = search(&Replication { broken: Broken::Nothing, faults: faults(2) }, STATES_MAX);
    println!("three replicas and a controller: {} states", found.states);
    assert_eq!(found.failure, None);
}

#[test]
fn every_rule_of_replication_that_is_broken_is_found_out() {
    // spec: replication 4.4
    for broken in [
        Broken::StrictMinIsr,
        Broken::UncleanIsTold,
        Broken::ShrinkIsConfirmed,
        Broken::JoinsCaughtUp,
        Broken::LivesAreTold,
    ] {
        let found = search(&Replication { broken, faults: 3 }, STATES_MAX);
        let (what, history) = found
            .failure
            .unwrap_or_else(|| panic!("{broken:?}: nothing goes wrong in {} states", found.states));
        println!("{broken:?}: {what} after {} states: {}", found.states, history.join(", "));
    }
}
