//! Where does a follower start, given its leader?

use serde_json::{Map, Value, json};
use siltstone::log::LogBounds;
use siltstone::replica::{
    Action, Event, FetchAnswer, FetchRequest, FetchState, FetchVerdict, FollowerConfig,
    FollowerView, LeaderAnswers, LeaderView, Phase, Reader, Request, follower_step,
    leader_fetch_verdict,
};
use siltstone::state::LeaderEpochs;
use siltstone::units::NO_LEADER_EPOCH;
use siltstone::{Error, Result};

use super::input::Input;

/// Answers what the leader has pending, and what the follower does about it.
pub(super) fn answer(input: &Input<'_>, answers: &mut Map<String, Value>) -> Result<()> {
    let Some(leader) = input.object("leader", "leader.")? else { return Ok(()) };
    let none = Map::new();
    let follower =
        input.object("follower", "follower.")?.unwrap_or(input.absent("follower", &none));
    let flag = |names: &[&'static str], default: bool| {
        Ok::<bool, Error>(match (leader.flag(names)?, input.flag(names)?) {
            (Some(flag), _) | (None, Some(flag)) => flag,
            (None, None) => default,
        })
    };
    let remote_storage =
        flag(&["remote_storage", "remote_enabled", "remote_storage_enable"], true)?;
    let config = FollowerConfig {
        starts_at_tiered: flag(
            &["starts_at_tiered", "feature_on", "follower_fetch_last_tiered_offset_enable"],
            true,
        )?,
        remote_storage,
        compacted: flag(&["compacted"], false)?,
    };
    let start = leader.offset(&["log_start", "log_start_offset"])?.unwrap_or(0);
    let local_start = leader.offset(&["local_log_start", "local_log_start_offset"])?;
    let local_start = local_start.filter(|_| remote_storage).unwrap_or(start);
    let end = leader.offset(&["log_end", "log_end_offset"])?;
    let end = end.unwrap_or(local_start.max(start));
    let epochs = match leader.epochs()?.or(input.epochs()?) {
        Some(epochs) => epochs,
        None => epoch_0_from(start)?,
    };
    let bounds = LogBounds {
        remote_storage,
        log_start_offset: start,
        local_log_start_offset: local_start,
        log_end_offset: end,
        highest_remote_offset: leader.offset(&["highest_remote_offset"])?.unwrap_or(-1),
        epochs: &epochs,
    };
    let high_watermark = leader.offset(&["high_watermark"])?.unwrap_or(end);
    let leader_epoch = epochs.latest().map_or(0, |latest| latest.epoch);
    let leader = LeaderView {
        bounds,
        high_watermark,
        last_stable_offset: high_watermark,
        leader_epoch,
        leader_epoch_start_offset: start,
    };
    let pending = bounds.earliest_pending_upload();
    answers.insert("earliest_pending_upload_offset".to_owned(), json!(pending.offset));
    let pending_epoch = pending.leader_epoch.filter(|epoch| *epoch != NO_LEADER_EPOCH);
    answers.insert("earliest_pending_upload_epoch".to_owned(), json!(pending_epoch));

    let follower_end = follower.offset(&["log_end", "log_end_offset"])?.unwrap_or(0).max(0);
    let follower_start = follower.offset(&["log_start", "log_start_offset"])?.unwrap_or(0).max(0);
    let local_start = follower.offset(&["local_log_start", "local_log_start_offset"])?;
    let log = Log {
        start: follower_start.min(follower_end),
        local_start: local_start.unwrap_or(follower_start).clamp(0, follower_end),
        end: follower_end,
        epochs: follower.epochs()?.unwrap_or_default(),
    };
    let (what, start) = first_fetch(log, config, &leader);
    answers.insert("follower".to_owned(), json!(what));
    if let Some(start) = start {
        answers.insert("follower_start".to_owned(), json!(start));
    }
    Ok(())
}

/// One leader that wrote all of the log.
fn epoch_0_from(start: i64) -> Result<LeaderEpochs> {
    let mut epochs = LeaderEpochs::new();
    epochs.assign(0, start.max(0))?;
    Ok(epochs)
}

/// A follower's log, without its records.
struct Log {
    start: i64,
    local_start: i64,
    end: i64,
    epochs: LeaderEpochs,
}

impl Log {
    fn restart(&mut self, offset: i64, start: i64) {
        (self.start, self.local_start, self.end) = (start, offset, offset);
        self.epochs = LeaderEpochs::new();
    }

    fn truncate(&mut self, offset: i64) {
        if offset < self.local_start {
            return self.restart(offset, offset);
        }
        (self.start, self.end) = (self.start.min(offset), offset);
        self.epochs.truncate_from_end(offset);
    }
}

/// Lets the rules of both sides talk until the follower fetches records, or waits. What it is, and
/// where it fetches. Remote storage has all that the leader says it has.
fn first_fetch(
    mut log: Log,
    config: FollowerConfig,
    leader: &LeaderView<'_>,
) -> (&'static str, Option<i64>) {
    // Each round ends with another log or with an answer, and no more than two logs can follow.
    const ROUNDS_MAX: usize = 8;
    let mut state = FetchState {
        fetch_offset: log.end,
        lag: None,
        leader_epoch: leader.leader_epoch,
        last_fetched_epoch: log.epochs.latest().map(|latest| latest.epoch),
        phase: Phase::Fetching,
        delayed: false,
        tiered_start_failed: false,
    };
    let mut what = "fetch";
    for _ in 0..ROUNDS_MAX {
        let action = if state.phase == Phase::Truncating {
            compare(&log, config, state, leader)
        } else {
            let fetch = FetchRequest {
                reader: Reader::Follower,
                fetch_offset: state.fetch_offset,
                leader_epoch: Some(state.leader_epoch),
                last_fetched_epoch: state.last_fetched_epoch,
            };
            let answer = match leader_fetch_verdict(leader, &fetch) {
                FetchVerdict::Serve { .. } | FetchVerdict::ReadRemote => {
                    return (what, Some(state.fetch_offset));
                }
                FetchVerdict::Diverging { epoch, end_offset } => {
                    FetchAnswer::Diverging { epoch, end_offset }
                }
                FetchVerdict::MovedToTieredStorage { .. } => FetchAnswer::MovedToTieredStorage,
                FetchVerdict::Refuse(_) => FetchAnswer::OutOfRange,
            };
            let FetchState { fetch_offset, leader_epoch, .. } = state;
            let request = Request { fetch_offset, leader_epoch };
            decide(&log, config, state, leader, |known| Event::Response { request, answer, known })
        };
        match action {
            Action::BuildAux { target, log_start_offset, .. } => {
                log.restart(target.start_offset, log_start_offset);
                log.epochs = leader.bounds.epochs.clone();
                log.epochs.truncate_from_end(target.start_offset);
                state.fetch_offset = target.start_offset;
                state.phase = Phase::Fetching;
                state.last_fetched_epoch = log.epochs.latest().map(|latest| latest.epoch);
                what = "build";
            }
            Action::Restart { offset, state: next } => {
                log.restart(offset, offset);
                (state, what) = (next, "restart");
            }
            Action::Truncate { offset, state: next } => {
                log.truncate(offset);
                (state, what) = (next, "truncate");
            }
            Action::Adopt(next) => state = next,
            Action::Fail(_) => return ("fail", None),
            _ => return ("retry", None),
        }
    }
    ("retry", None)
}

/// A follower that compares its log asks where its last epoch ends, and does not fetch before.
fn compare(
    log: &Log,
    config: FollowerConfig,
    state: FetchState,
    leader: &LeaderView<'_>,
) -> Action {
    let LogBounds { epochs, log_end_offset, .. } = leader.bounds;
    let end_of = |epoch| epochs.end_offset_for(epoch, log_end_offset);
    let (epoch, end_offset) = state.last_fetched_epoch.map_or((NO_LEADER_EPOCH, -1), end_of);
    let leader_epoch = state.leader_epoch;
    decide(log, config, state, leader, |known| Event::EpochEnd {
        leader_epoch,
        epoch,
        end_offset,
        known,
    })
}

fn decide(
    log: &Log,
    config: FollowerConfig,
    state: FetchState,
    leader: &LeaderView<'_>,
    event: impl for<'k> Fn(&'k LeaderAnswers) -> Event<'k>,
) -> Action {
    let view = FollowerView {
        log_start_offset: log.start,
        local_log_start_offset: log.local_start,
        log_end_offset: log.end,
        high_watermark: log.end,
        epochs: &log.epochs,
        config,
        state: Some(state),
    };
    let mut known = LeaderAnswers::default();
    loop {
        match follower_step(&view, &event(&known)) {
            // Every question is put once: there are six.
            Action::Ask(query) => leader.answer(query, &mut known),
            action => return action,
        }
    }
}
