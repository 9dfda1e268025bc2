//! What holds of a follower whatever happens?
//!
//! The checks are cheap; [`follower_step`](super::follower_step) makes those that are about a
//! decision in debug builds, and a host may make the others where it changes a log.

use super::follower::{Action, Event, FetchState, FollowerView};
use super::follower_start::AuxTarget;

/// A rule of a follower that does not hold, by its number in the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invariant {
    /// 1: log start <= local log start <= log end, and log start <= high watermark <= log end.
    OffsetsInOrder,
    /// 2: after a build from remote storage local log start and log end are where it says, and the
    /// latest epoch is that of the offset before.
    BuiltAsSaid,
    /// 3: a build from remote storage leads to the wanted start or behind it.
    NoGapBelowStart,
    /// 6: an error that is tried again changes neither fetch offset, lag nor epochs.
    RetryChangesNothing,
    /// 7: an answer to another question decides nothing.
    StaleAnswerIgnored,
    /// 8: a follower fetches at its local log or behind it, never where it has no local data.
    FetchesBehindLocalStart,
    /// T3: what is in remote storage is decided there, or by what follows: a follower that was
    /// built from it knows no transaction from before that is open at its leader.
    DecidedBelowStart,
}

/// Rule 1, of a log at rest.
#[must_use]
pub fn check_offsets(view: &FollowerView<'_>) -> Option<Invariant> {
    // spec: follower-fetch 7
    let (start, end) = (view.log_start_offset, view.log_end_offset);
    let is_ordered = start <= view.local_log_start_offset
        && view.local_log_start_offset <= end
        && start <= view.high_watermark
        && view.high_watermark <= end;
    (!is_ordered).then_some(Invariant::OffsetsInOrder)
}

/// Rules 2 and 3, of a log that was built from remote storage for `target`, before it fetches.
#[must_use]
pub fn check_installed(view: &FollowerView<'_>, target: &AuxTarget) -> Option<Invariant> {
    // spec: follower-fetch 7
    let next = view.log_end_offset;
    if next < target.start_offset {
        return Some(Invariant::NoGapBelowStart);
    }
    let latest = view.epochs.latest();
    let is_built = view.local_log_start_offset == next
        && latest.is_some_and(|latest| latest.start_offset < next)
        && latest.map(|latest| latest.epoch) == view.epochs.epoch_for_offset(next - 1);
    if is_built { check_offsets(view) } else { Some(Invariant::BuiltAsSaid) }
}

/// Rule T3, of a log that was built from remote storage to begin at `next_offset` and has caught up
/// since: its high watermark has come to where its leader's log ended when it was built.
#[must_use]
pub fn check_caught_up(next_offset: i64, last_stable_offset: i64) -> Option<Invariant> {
    // spec: tiered-faults T3
    (last_stable_offset < next_offset).then_some(Invariant::DecidedBelowStart)
}

/// Rules 6, 7 and 8, of a decision.
#[must_use]
pub fn check_action(
    view: &FollowerView<'_>,
    event: &Event<'_>,
    action: &Action,
) -> Option<Invariant> {
    // spec: follower-fetch 7
    if let Event::Response { request, .. } = event {
        let is_current = view.state.is_some_and(|state| {
            state.is_ready()
                && state.fetch_offset == request.fetch_offset
                && state.leader_epoch == request.leader_epoch
        });
        if !is_current && *action != Action::Ignore {
            return Some(Invariant::StaleAnswerIgnored);
        }
    }
    match *action {
        Action::Delay { state, .. } => {
            let is_kept = view.state.is_none_or(|before| {
                let retried = FetchState {
                    delayed: before.delayed,
                    tiered_start_failed: before.tiered_start_failed,
                    ..state
                };
                retried == before
            });
            (!is_kept).then_some(Invariant::RetryChangesNothing)
        }
        Action::Advance { state, .. } if state.fetch_offset < view.local_log_start_offset => {
            Some(Invariant::FetchesBehindLocalStart)
        }
        _ => None,
    }
}
