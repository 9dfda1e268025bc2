//! What does a follower do next?

use engine::replica::{
    Action, AppendFailure, AuxFailure, EpochEnd, Event, FailReason, FetchAnswer, FollowerConfig,
    FollowerView, OffsetAndEpoch, Phase, Query, Request, RetryReason, follower_step,
};
use engine::replica::{FetchState as State, LeaderAnswers as Answers};

use super::types::{Bounds, FetchState, FollowerAction, FollowerEvent, LeaderAnswers};
use super::view::{View, known};
use crate::error::{Outcome, SiltError, Status, guard, invalid};
use crate::memory::{Growing, check_struct, flags_of, read_plain, read_struct, write_struct};

const HAS_STATE: u32 = 1;
const TRUNCATING: u32 = 2;
const DELAYED: u32 = 4;
const TIERED_START_FAILED: u32 = 8;

fn state_of(state: &FetchState) -> Outcome<Option<State>> {
    if state.flags & !(HAS_STATE | TRUNCATING | DELAYED | TIERED_START_FAILED) != 0 {
        return invalid("flags are none of SILT_FETCH_STATE_");
    }
    if state.flags & HAS_STATE == 0 {
        return Ok(None);
    }
    Ok(Some(State {
        fetch_offset: state.fetch_offset,
        lag: known(state.lag),
        leader_epoch: state.leader_epoch,
        last_fetched_epoch: known(state.last_fetched_epoch),
        phase: if state.flags & TRUNCATING != 0 { Phase::Truncating } else { Phase::Fetching },
        delayed: state.flags & DELAYED != 0,
        tiered_start_failed: state.flags & TIERED_START_FAILED != 0,
    }))
}

fn told_state(state: &State) -> FetchState {
    let flags = [
        (state.phase == Phase::Truncating, TRUNCATING),
        (state.delayed, DELAYED),
        (state.tiered_start_failed, TIERED_START_FAILED),
    ];
    FetchState {
        fetch_offset: state.fetch_offset,
        lag: state.lag.unwrap_or(-1),
        leader_epoch: state.leader_epoch,
        last_fetched_epoch: state.last_fetched_epoch.unwrap_or(-1),
        flags: HAS_STATE | flags_of(&flags),
        reserved: 0,
    }
}

/// The answers of the leader that the caller has.
fn answers(given: &LeaderAnswers) -> Outcome<Answers> {
    if given.known & !0x3f != 0 {
        return invalid("known has bits that are none of SILT_KNOWS_");
    }
    let has = |bit: u32| given.known & bit != 0;
    let pair = |bit: u32, offset, epoch| {
        has(bit).then_some(OffsetAndEpoch { offset, epoch: known(epoch) })
    };
    let pending = (given.earliest_pending_upload, given.earliest_pending_upload_epoch);
    Ok(Answers {
        latest: has(1).then_some(given.latest),
        earliest: has(2).then_some(given.earliest),
        earliest_local: pair(4, given.earliest_local, given.earliest_local_epoch),
        earliest_pending_upload: pair(8, pending.0, pending.1),
        latest_tiered: pair(16, given.latest_tiered, given.latest_tiered_epoch),
        epoch_end: has(32).then_some(EpochEnd {
            asked: given.epoch_asked,
            epoch: given.epoch_found,
            end_offset: given.epoch_end_offset,
        }),
    })
}

fn answer(event: &FollowerEvent) -> Outcome<FetchAnswer> {
    let FollowerEvent { high_watermark, log_start_offset, epoch, end_offset, .. } = *event;
    Ok(match event.answer {
        0 => FetchAnswer::Records { high_watermark, log_start_offset },
        1 => FetchAnswer::Diverging { epoch, end_offset },
        2 => match i16::try_from(event.error_code) {
            Ok(1) => FetchAnswer::OutOfRange,
            Ok(74) => FetchAnswer::Fenced,
            Ok(109) => FetchAnswer::MovedToTieredStorage,
            Ok(code) if code != 0 => FetchAnswer::Error(code),
            _ => return invalid("error_code is none of the protocol's errors"),
        },
        _ => return invalid("answer is none of SILT_ANSWER_"),
    })
}

/// What has happened; `known` outlives what is made of it.
fn event_of<'a>(
    event: &FollowerEvent,
    view: &FollowerView<'_>,
    known: &'a Answers,
) -> Outcome<Event<'a>> {
    let FollowerEvent { leader_epoch, epoch, end_offset, failure, .. } = *event;
    Ok(match event.kind {
        0 => Event::NewLeader {
            leader_epoch,
            initial_offset: match event.fetch_offset {
                i64::MIN => view.initial_offset(),
                offset => offset,
            },
        },
        1 => Event::Response {
            request: Request { fetch_offset: event.fetch_offset, leader_epoch },
            answer: answer(event)?,
            known,
        },
        2 => Event::Appended {
            leader_high_watermark: event.high_watermark,
            leader_log_start_offset: event.log_start_offset,
        },
        3 => Event::LogFailed(match failure {
            0 => AppendFailure::Storage,
            1 => AppendFailure::InvalidRecords,
            _ => return invalid("failure is none of a log's"),
        }),
        4 => Event::EpochEnd { leader_epoch, epoch, end_offset, known },
        5 => Event::QueryFailed {
            leader_epoch,
            fenced: match failure {
                0 => false,
                4 => true,
                _ => return invalid("failure is none of a query's"),
            },
        },
        6 => Event::AuxInstalled { leader_log_end_offset: event.log_end_offset },
        7 => Event::AuxFailed(match failure {
            0 => AuxFailure::Storage,
            2 => AuxFailure::NotReady,
            3 => AuxFailure::SegmentNotFound,
            4 => AuxFailure::Fenced,
            _ => return invalid("failure is none of a build's"),
        }),
        8 => Event::DelayOver,
        _ => return invalid("kind is none of SILT_EVENT_"),
    })
}

fn told(action: &Action) -> FollowerAction {
    let none = FollowerAction::INIT;
    match *action {
        Action::Ignore => none,
        Action::Adopt(state) => FollowerAction { kind: 1, state: told_state(&state), ..none },
        Action::Append { last_epoch } => FollowerAction { kind: 2, epoch: last_epoch, ..none },
        Action::Advance { high_watermark, log_start_offset, state } => FollowerAction {
            kind: 3,
            high_watermark,
            log_start_offset,
            state: told_state(&state),
            ..none
        },
        Action::Truncate { offset, state } => {
            FollowerAction { kind: 4, offset, state: told_state(&state), ..none }
        }
        Action::Restart { offset, state } => {
            FollowerAction { kind: 5, offset, state: told_state(&state), ..none }
        }
        Action::Ask(query) => {
            let (query, epoch) = match query {
                Query::Latest => (1, -1),
                Query::Earliest => (2, -1),
                Query::EarliestLocal => (4, -1),
                Query::EarliestPendingUpload => (8, -1),
                Query::LatestTiered => (16, -1),
                Query::EpochEnd { epoch } => (32, epoch),
            };
            FollowerAction { kind: 6, query, epoch, ..none }
        }
        Action::BuildAux { target, log_start_offset, leader_log_end_offset } => FollowerAction {
            kind: 7,
            offset: target.start_offset,
            previous_offset: target.previous_offset,
            epoch: target.epoch,
            log_start_offset,
            leader_log_end_offset,
            ..none
        },
        Action::Delay { reason, state } => {
            let (reason, error_code) = match reason {
                RetryReason::Answer(code) => (1, i32::from(code)),
                RetryReason::OffsetNotAvailable => (2, 0),
                RetryReason::OldLeaderEpoch => (3, 0),
                RetryReason::QueryFailed => (4, 0),
                RetryReason::InvalidRecords => (5, 0),
                RetryReason::RemoteStorageOff => (6, 0),
                RetryReason::RemoteNotReady => (7, 0),
                RetryReason::SegmentNotFound => (8, 0),
                RetryReason::RemoteStorage => (9, 0),
            };
            FollowerAction { kind: 8, reason, error_code, state: told_state(&state), ..none }
        }
        Action::Fail(reason) => {
            let reason = match reason {
                FailReason::Storage => 10,
                FailReason::Fenced => 11,
            };
            FollowerAction { kind: 9, reason, ..none }
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_follower_step(
    follower: *const Bounds,
    state: *const FetchState,
    event: *const FollowerEvent,
    out: *mut FollowerAction,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let view = unsafe { View::read(follower)? };
        let state = match state.is_null() {
            true => None,
            // SAFETY: the caller's struct.
            false => state_of(&unsafe { read_plain(state)? })?,
        };
        // SAFETY: a struct of the header.
        let event = unsafe { read_struct(event)? };
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        let known = answers(&event.known)?;
        let given = &view.given;
        let follower = FollowerView {
            log_start_offset: given.log_start_offset,
            local_log_start_offset: given.local_log_start_offset,
            log_end_offset: given.log_end_offset,
            high_watermark: given.high_watermark,
            epochs: &view.epochs,
            config: FollowerConfig {
                starts_at_tiered: view.starts_at_tiered(),
                remote_storage: view.has_remote_storage(),
                compacted: view.is_compacted(),
            },
            state,
        };
        let action = follower_step(&follower, &event_of(&event, &follower, &known)?);
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &told(&action)) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}
