//! Do a leader, a follower and remote storage ever lose a committed record?

use crate::cluster::Cluster;
use crate::events::{END_MAX, EPOCH_MAX, Step};
use crate::rules::Broken;
use crate::search::{Model, faults, search};

/// The cluster, with one rule broken.
struct Tiered {
    broken: Broken,
    faults: u8,
    /// Whether a follower must be able to join from every state.
    joins: bool,
}

/// An event: what it does, or nothing where it cannot happen.
type Found = Vec<(String, Result<Cluster, String>)>;

/// Adds what comes of `event` where it changes anything.
fn add(found: &mut Found, state: &Cluster, name: &str, event: impl FnOnce(&mut Cluster) -> Step) {
    let mut next = state.clone();
    let outcome = event(&mut next);
    if outcome.is_err() || next != *state {
        found.push((name.to_owned(), outcome.map(|()| next)));
    }
}

impl Tiered {
    fn leads(&self, state: &Cluster, leader: usize, found: &mut Found) {
        let broken = self.broken;
        if state.replicas[leader].end < END_MAX {
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
            add(found, state, "expire", |it| {
                it.expire(leader, broken);
                Ok(())
            });
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
            if replica.up {
                add(found, &fewer, &format!("crash {number}"), |it| {
                    it.crash(number);
                    Ok(())
                });
            }
            if replica.build.as_ref().is_some_and(|build| build.stage == 0) {
                add(found, &fewer, "failed read", |it| it.fail_read(number, broken));
            }
        }
        if let Some(leader) = fewer.leader {
            let follower = 1 - leader;
            let may_lead = fewer.isr[follower] || !broken.keeps(Broken::LeadersAreInSync);
            if fewer.replicas[follower].up && may_lead && fewer.epoch < EPOCH_MAX {
                add(found, &fewer, "new leader", |it| {
                    it.elect(follower, broken);
                    Ok(())
                });
            }
            add(found, &fewer, "delete records", |it| {
                let replica = &mut it.replicas[leader];
                replica.raise_start(replica.high_watermark);
                it.wanted_start = it.wanted_start.max(replica.start);
                Ok(())
            });
            let fetches = fewer.replicas[follower].state.is_some_and(|it| it.is_ready());
            if fetches && fewer.replicas[follower].build.is_none() && fewer.flight.is_none() {
                add(found, &fewer, "slow fetch", |it| it.poll(follower, false, broken));
            }
        }
        let is_building = fewer.replicas.iter().any(|replica| replica.build.is_some());
        if !is_building && fewer.replicas.iter().all(|replica| replica.up) {
            add(found, &fewer, "switch", |it| {
                it.switch(broken);
                Ok(())
            });
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
        // A leader finds out what is in remote storage sooner or later.
        if calm.remote_on {
            calm.learn(leader);
        }
        for _ in 0..40 {
            let replica = &calm.replicas[follower];
            if replica.build.is_some() {
                calm.install(follower, self.broken)?;
            } else if replica.state.is_some_and(|it| it.delayed) {
                calm.step(follower, &siltstone::replica::Event::DelayOver, self.broken)?;
            } else {
                calm.poll(follower, true, self.broken)?;
            }
            if calm.isr[follower] && calm.replicas[follower].end == calm.replicas[leader].end {
                return Ok(());
            }
        }
        Err("the follower never joins".to_owned())
    }
}

impl Model for Tiered {
    type State = Cluster;

    fn first(&self) -> Cluster {
        let mut cluster = Cluster::first(self.faults);
        cluster.follow(1, self.broken);
        cluster
    }

    fn next(&self, state: &Cluster, found: &mut Found) {
        let broken = self.broken;
        for number in 0..2 {
            let replica = &state.replicas[number];
            if !replica.up {
                add(found, state, &format!("restart {number}"), |it| {
                    it.restart(number, broken);
                    Ok(())
                });
                continue;
            }
            if state.remote_on && replica.build.is_none() {
                add(found, state, &format!("learn {number}"), |it| {
                    it.learn(number);
                    Ok(())
                });
                add(found, state, &format!("delete local {number}"), |it| {
                    it.delete_local(number, broken);
                    Ok(())
                });
            }
            match state.leader {
                Some(leader) if leader == number => self.leads(state, number, found),
                Some(_) => self.follows(state, number, found),
                None if state.isr[number] && state.epoch < EPOCH_MAX => {
                    add(found, state, &format!("elect {number}"), |it| {
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

/// The most states that a search looks at.
const STATES_MAX: usize = 3_000_000;

#[test]
#[ignore = "minutes without optimisation: .ci/long runs it"]
fn no_history_loses_a_committed_record_or_breaks_an_invariant() {
    // spec: follower-fetch 7; tiered-faults T4
    let model = Tiered { broken: Broken::Nothing, faults: faults(2), joins: true };
    let found = search(&model, STATES_MAX);
    println!("leader, follower and remote storage: {} states", found.states);
    assert_eq!(found.failure, None);
}

#[test]
#[ignore = "minutes without optimisation: .ci/long runs it"]
fn every_rule_that_is_broken_is_found_out() {
    // spec: follower-fetch 7
    for (broken, joins, wrong) in [
        (Broken::Mark, false, "is lost"),
        (Broken::MarkAndExpiry, false, "is lost"),
        (Broken::ReadBeforeDrop, false, "is lost"),
        (Broken::UploadsAreCommitted, false, "is lost"),
        (Broken::DeletesAreUploaded, false, "is lost"),
        (Broken::SwitchedOffIsForgotten, false, "is lost"),
        (Broken::SegmentIsFound, false, "is lost"),
        (Broken::SegmentReachesTheStart, false, "NoGapBelowStart"),
        (Broken::EpochsAreInstalled, false, "BuiltAsSaid"),
        (Broken::StaleAnswersAreIgnored, false, "a record of"),
        (Broken::HighWatermarkIsClamped, false, "OffsetsInOrder"),
        (Broken::RetryChangesNothing, false, "RetryChangesNothing"),
        (Broken::LocalStartIsMinded, false, "is lost"),
        (Broken::StartAtLogStart, true, "never joins"),
        (Broken::LeadersAreInSync, false, "is lost"),
    ] {
        let found = search(&Tiered { broken, faults: 3, joins }, STATES_MAX);
        let (what, history) = found
            .failure
            .unwrap_or_else(|| panic!("{broken:?}: nothing goes wrong in {} states", found.states));
        println!("{broken:?}: {what} after {} states: {}", found.states, history.join(", "));
        assert!(what.contains(wrong), "{broken:?}: {what} after {history:?}");
    }
}
