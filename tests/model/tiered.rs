//! A leader, a follower and remote storage: what may happen to them, and what must hold.

use std::cell::RefCell;
use std::collections::HashSet;

use crate::cluster::Cluster;
use crate::events::Step;
use crate::rules::Broken;
use crate::scopes::Scope;
use crate::search::{self, Model, fingerprint};

/// The cluster, with one rule broken.
pub(crate) struct Tiered {
    broken: Broken,
    scope: Scope,
    /// Whether a follower must be able to join from every state.
    joins: bool,
    /// States, by their fingerprints, from which it is known that a follower can.
    joining: RefCell<HashSet<u128>>,
}

type Found = search::Found<Cluster>;

/// Adds what comes of `event` where it changes anything.
fn add(
    found: &mut Found,
    state: &Cluster,
    name: &'static str,
    event: impl FnOnce(&mut Cluster) -> Step,
) {
    let mut next = state.clone();
    let outcome = event(&mut next);
    next.forget();
    if outcome.is_err() || next != *state {
        found.push((name.into(), outcome.map(|()| next)));
    }
}

impl Tiered {
    pub(crate) fn new(scope: Scope, broken: Broken, joins: bool) -> Self {
        Tiered { broken, scope, joins, joining: RefCell::default() }
    }

    fn leads(&self, state: &Cluster, leader: usize, found: &mut Found) {
        let broken = self.broken;
        if state.replicas[leader].end < self.scope.end_max {
            add(found, state, "produce", |it| {
                it.produce(leader);
                Ok(())
            });
        }
        add(found, state, "roll", |it| {
            it.replicas[leader].roll();
            Ok(())
        });
        if state.remote_on {
            add(found, state, "upload", |it| {
                it.upload(leader, broken);
                Ok(())
            });
            if self.scope.expires {
                add(found, state, "expire", |it| {
                    it.expire(leader);
                    Ok(())
                });
            }
        }
        let follower = 1 - leader;
        if state.isr[follower] && state.follower_end < state.replicas[leader].end {
            add(found, state, "shrink", |it| {
                it.isr[follower] = false;
                it.advance();
                Ok(())
            });
        }
    }

    fn follows(&self, state: &Cluster, number: usize, found: &mut Found) {
        let broken = self.broken;
        let replica = &state.replicas[number];
        if replica.build.is_some() {
            add(found, state, "install", |it| it.install(number, broken));
            return;
        }
        let Some(fetch) = replica.state else { return };
        if fetch.delayed {
            add(found, state, "delay over", |it| {
                it.step(number, &siltstone::replica::Event::DelayOver, broken).map(drop)
            });
        } else if state.flight.is_none() {
            add(found, state, "poll", |it| it.poll(number, true, broken));
        }
    }

    /// What happens seldom, and not often in one history.
    fn faults(&self, state: &Cluster, found: &mut Found) {
        let broken = self.broken;
        let mut fewer = state.clone();
        let Some(left) = fewer.faults.checked_sub(1) else { return };
        fewer.faults = left;
        for number in 0..2 {
            let replica = &fewer.replicas[number];
            if replica.up && self.scope.crashes {
                add(found, &fewer, ["crash 0", "crash 1"][number], |it| {
                    it.crash(number);
                    Ok(())
                });
            }
            if !replica.up && self.scope.replaces {
                add(found, &fewer, ["replace 0", "replace 1"][number], |it| {
                    it.replace(number, broken);
                    Ok(())
                });
            }
            let reads = replica.build.as_ref().is_some_and(|build| build.stage == 0);
            if reads && self.scope.failed_reads {
                add(found, &fewer, "failed read", |it| it.fail_read(number, broken));
            }
        }
        if let Some(leader) = fewer.leader {
            self.faults_of_leader(&fewer, leader, found);
        }
        let is_building = fewer.replicas.iter().any(|replica| replica.build.is_some());
        let is_calm = !is_building && fewer.replicas.iter().all(|replica| replica.up);
        if self.scope.switches && is_calm {
            add(found, &fewer, "switch", |it| {
                it.switch(broken);
                Ok(())
            });
        }
    }

    fn faults_of_leader(&self, fewer: &Cluster, leader: usize, found: &mut Found) {
        let broken = self.broken;
        let follower = 1 - leader;
        let is_in_sync = fewer.isr[follower] || !broken.keeps(Broken::LeadersAreInSync);
        if fewer.replicas[follower].may_lead() && is_in_sync && fewer.epoch < self.scope.epoch_max {
            add(found, fewer, "new leader", |it| {
                it.elect(follower, broken);
                Ok(())
            });
        }
        if self.scope.deletes_records {
            add(found, fewer, "delete records", |it| {
                let replica = &mut it.replicas[leader];
                replica.raise_start(replica.high_watermark);
                it.wanted_start = it.wanted_start.max(replica.start);
                Ok(())
            });
        }
        let fetches = fewer.replicas[follower].state.is_some_and(|it| it.is_ready());
        let is_free = fewer.replicas[follower].build.is_none() && fewer.flight.is_none();
        if self.scope.slow_answers && fetches && is_free {
            add(found, fewer, "slow fetch", |it| it.poll(follower, false, broken));
        }
    }

    /// Without further faults, the follower catches up.
    fn can_join(&self, state: &Cluster) -> Step {
        let Some(leader) = state.leader else { return Ok(()) };
        let follower = 1 - leader;
        if !state.replicas[follower].up || state.flight.is_some() {
            return Ok(());
        }
        let mut calm = state.clone();
        calm.faults = 0;
        // What is lost is for `Cluster::check` to say.
        calm.committed.clear();
        calm.wanted_start = 0;
        // A leader finds out what is in remote storage sooner or later.
        if calm.remote_on {
            calm.learn(leader);
        }
        let mut joining = self.joining.borrow_mut();
        let mut way = Vec::new();
        loop {
            calm.forget();
            let here = fingerprint(&calm);
            if way.contains(&here) {
                return Err("the follower never joins".to_owned());
            }
            way.push(here);
            let follows = &calm.replicas[follower];
            let has_all = follows.end == calm.replicas[leader].end;
            if joining.contains(&here) || (calm.isr[follower] && has_all) {
                joining.extend(way);
                return Ok(());
            }
            if follows.build.is_some() {
                calm.install(follower, self.broken)?;
            } else {
                calm.poll(follower, true, self.broken)?;
            }
            calm.committed.clear();
        }
    }
}

impl Model for Tiered {
    type State = Cluster;

    fn first(&self) -> Cluster {
        let mut cluster = Cluster::first(self.scope.faults, self.scope.shortcut);
        cluster.follow(1, self.broken);
        cluster.forget();
        cluster
    }

    fn next(&self, state: &Cluster, found: &mut Found) {
        let broken = self.broken;
        for number in 0..2 {
            let replica = &state.replicas[number];
            if !replica.up {
                add(found, state, ["restart 0", "restart 1"][number], |it| {
                    it.restart(number, broken);
                    Ok(())
                });
                continue;
            }
            if state.remote_on && replica.build.is_none() {
                add(found, state, ["learn 0", "learn 1"][number], |it| {
                    it.learn(number);
                    Ok(())
                });
                add(found, state, ["delete local 0", "delete local 1"][number], |it| {
                    it.delete_local(number, broken);
                    Ok(())
                });
            }
            match state.leader {
                Some(leader) if leader == number => self.leads(state, number, found),
                Some(_) => self.follows(state, number, found),
                None if state.isr[number]
                    && replica.may_lead()
                    && state.epoch < self.scope.epoch_max =>
                {
                    add(found, state, ["elect 0", "elect 1"][number], |it| {
                        it.elect(number, broken);
                        Ok(())
                    });
                }
                None => {}
            }
            if let Some(flight) = state.flight.clone().filter(|_| state.leader != Some(number)) {
                add(found, state, "answer", |it| {
                    it.flight = None;
                    if it.replicas[number].build.is_some() {
                        return Ok(());
                    }
                    it.deliver(number, &flight, broken)
                });
            }
        }
        self.faults(state, found);
    }

    fn check(&self, state: &Cluster) -> Step {
        state.check(self.broken)?;
        if self.joins { self.can_join(state) } else { Ok(()) }
    }
}
