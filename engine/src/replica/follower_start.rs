//! Where does a follower begin that cannot fetch at its own log end?
//!
//! A leader that has given its oldest segments to remote storage has no records to send for them.
//! A follower then starts at `S`, an offset of the local log of its leader, and takes what must be
//! known of everything below (leader epochs, producers) from the remote segment that ends there:
//! case K. This file chooses `S` and the segment; building is for [`crate::tier`].
//!
//! Answers of the leader are gathered in [`LeaderAnswers`]. A rule that lacks one says which, and
//! is asked again with it, so that it needs no memory of its own.

use super::follower::{Action, FollowerView, RetryReason};
use crate::state::LeaderEpochs;

/// What a follower may have to ask its leader before it can decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// The log end: ListOffsets -1.
    Latest,
    /// The log start: ListOffsets -2.
    Earliest,
    /// The first offset of the leader's local disk: ListOffsets -4.
    EarliestLocal,
    /// The first offset that waits to go to remote storage: ListOffsets -6.
    EarliestPendingUpload,
    /// The last offset in remote storage: ListOffsets -5.
    LatestTiered,
    /// Where this epoch ends: OffsetForLeaderEpoch.
    EpochEnd {
        /// The epoch.
        epoch: i32,
    },
}

/// An offset, -1 for none, with the leader epoch that the leader gave with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetAndEpoch {
    /// The offset.
    pub offset: i64,
    /// Its leader epoch, if it has one.
    pub epoch: Option<i32>,
}

/// An answer to [`Query::EpochEnd`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochEnd {
    /// The epoch that was asked for.
    pub asked: i32,
    /// The greatest epoch not above it that the leader knows; -1 for none.
    pub epoch: i32,
    /// Where that one ends, exclusive; -1 for "unknown".
    pub end_offset: i64,
}

/// What the leader has answered so far. Forget all of it when a step is over: the next try asks
/// anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaderAnswers {
    /// To [`Query::Latest`].
    pub latest: Option<i64>,
    /// To [`Query::Earliest`].
    pub earliest: Option<i64>,
    /// To [`Query::EarliestLocal`].
    pub earliest_local: Option<OffsetAndEpoch>,
    /// To [`Query::EarliestPendingUpload`].
    pub earliest_pending_upload: Option<OffsetAndEpoch>,
    /// To [`Query::LatestTiered`].
    pub latest_tiered: Option<OffsetAndEpoch>,
    /// To the last [`Query::EpochEnd`].
    pub epoch_end: Option<EpochEnd>,
}

/// Which remote segment to build from: the finished one that has `previous_offset` in `epoch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AuxTarget {
    /// Where the follower wants to start. Fetching goes on behind the segment's end, which may lie
    /// further.
    pub start_offset: i64,
    /// The leader epoch of the offset before it.
    pub epoch: i32,
    /// The offset before it.
    pub previous_offset: i64,
}

/// Whether a follower starts where the leader's uploads end, not at the leader's local log start.
///
/// An empty follower is one whose log end is 0, whether it has segments or not.
#[must_use]
pub fn should_start_at_tiered(
    config: &super::follower::FollowerConfig,
    log_end_offset: i64,
    leader_log_end_offset: i64,
) -> bool {
    // spec: follower-fetch 4
    config.starts_at_tiered
        && config.remote_storage
        && !config.compacted
        && log_end_offset == 0
        && leader_log_end_offset != 0
}

/// Whether a log that begins at `local_log_start_offset` lacks what must be known of the offsets
/// from the leader's log start on: a build from remote storage was cut off in the middle.
///
/// The proof is the leader's log start, never the own one: an own log start that lags behind a
/// `DeleteRecords` looks just the same, and such a log is sound.
#[must_use]
pub fn lacks_history(
    epochs: &LeaderEpochs,
    local_log_start_offset: i64,
    leader_log_start_offset: i64,
) -> bool {
    // spec: tiered-faults T4
    let known_below =
        epochs.earliest().is_some_and(|earliest| earliest.start_offset < local_log_start_offset);
    leader_log_start_offset < local_log_start_offset && !known_below
}

/// The segment to build from for a start at `start_offset`, whose leader epoch is `epoch`. What
/// the leader says of the end of the epoch before it is needed unless that is 0.
///
/// # Errors
/// The query that `reply` does not answer.
// spec: follower-fetch 5.3
#[inline]
pub fn aux_target(
    start_offset: i64,
    epoch: i32,
    reply: Option<EpochEnd>,
) -> Result<AuxTarget, Query> {
    let previous_offset = start_offset.saturating_sub(1);
    let target = |epoch| AuxTarget { start_offset, epoch, previous_offset };
    if epoch <= 0 {
        return Ok(target(0));
    }
    let asked = epoch.saturating_sub(1);
    match reply.filter(|reply| reply.asked == asked) {
        None => Err(Query::EpochEnd { epoch: asked }),
        // Epochs without a record leave gaps: the answer may be of an older epoch than asked for.
        Some(reply) if reply.end_offset > previous_offset => Ok(target(reply.epoch)),
        Some(_) => Ok(target(epoch)),
    }
}

/// The answer, or the action of this function: to ask for it.
macro_rules! answered {
    ($known:expr, $field:ident, $query:expr) => {
        match $known.$field {
            Some(answer) => answer,
            None => return Action::Ask($query),
        }
    };
}

/// The offset is not in the leader's log.
// spec: follower-fetch 5, F3 to F6
pub(super) fn out_of_range(view: &FollowerView<'_>, known: &LeaderAnswers) -> Action {
    let latest = answered!(known, latest, Query::Latest);
    if latest < 0 {
        return view.delay(RetryReason::OffsetNotAvailable);
    }
    if should_start_at_tiered(&view.config, view.log_end_offset, latest) {
        return start_at_tiered(view, known, latest);
    }
    if latest < view.log_end_offset {
        return view.truncate(latest, Some(0));
    }
    let earliest = answered!(known, earliest, Query::Earliest);
    if earliest < 0 {
        return view.delay(RetryReason::OffsetNotAvailable);
    }
    if earliest > view.log_end_offset {
        return view.restart(earliest, latest);
    }
    if view.lacks_history_from(earliest) {
        return view.build_anew(known);
    }
    let lag = Some(latest.saturating_sub(view.log_end_offset));
    let last_fetched_epoch = view.epochs.latest().map(|latest| latest.epoch);
    view.adopt(view.log_end_offset, lag, last_fetched_epoch)
}

/// The offset is in the leader's log, but no longer on its disk; or what this log must know of
/// such offsets is missing.
// spec: follower-fetch 5, F7 and F8
pub(super) fn moved_to_tiered(view: &FollowerView<'_>, known: &LeaderAnswers) -> Action {
    if !view.config.remote_storage {
        return view.delay(RetryReason::RemoteStorageOff);
    }
    let latest = answered!(known, latest, Query::Latest);
    if latest < 0 {
        return view.delay(RetryReason::OffsetNotAvailable);
    }
    if should_start_at_tiered(&view.config, view.log_end_offset, latest) {
        return start_at_tiered(view, known, latest);
    }
    let earliest = answered!(known, earliest, Query::Earliest);
    start_at_local(view, known, earliest, latest)
}

/// Case K where the leader's uploads end.
// spec: follower-fetch 5.4
fn start_at_tiered(view: &FollowerView<'_>, known: &LeaderAnswers, latest: i64) -> Action {
    let earliest = answered!(known, earliest, Query::Earliest);
    // spec: tiered-faults T1: a question is not put twice in a row when its answer was of no use.
    if view.state.is_some_and(|state| state.tiered_start_failed) {
        return start_at_local(view, known, earliest, latest);
    }
    let pending = answered!(known, earliest_pending_upload, Query::EarliestPendingUpload);
    if pending.offset >= 0 {
        return start_at(view, known, pending, earliest, latest);
    }
    let local = answered!(known, earliest_local, Query::EarliestLocal);
    if earliest < 0 || local.offset < 0 {
        return view.delay(RetryReason::OffsetNotAvailable);
    }
    if local.offset == earliest {
        return view.restart(earliest, latest);
    }
    // Kafka's leader does not say that everything is uploaded: it answers -1, as if it did not
    // know (D11). What it says of the last tiered offset tells the two apart.
    let tiered = answered!(known, latest_tiered, Query::LatestTiered);
    if tiered.offset < 0 {
        return view.delay(RetryReason::OffsetNotAvailable);
    }
    let next = tiered.offset.saturating_add(1);
    if next < local.offset.max(earliest) {
        return start_at(view, known, local, earliest, latest);
    }
    match tiered.epoch.filter(|&epoch| epoch >= 0) {
        // The epoch of the offset before the start is known: nothing is left to ask.
        Some(epoch) if next > earliest => {
            let target = AuxTarget { start_offset: next, epoch, previous_offset: tiered.offset };
            build(target, earliest, latest)
        }
        _ => start_at(view, known, OffsetAndEpoch { offset: next, epoch: None }, earliest, latest),
    }
}

/// Case K at the leader's local log start.
fn start_at_local(
    view: &FollowerView<'_>,
    known: &LeaderAnswers,
    earliest: i64,
    latest: i64,
) -> Action {
    let local = answered!(known, earliest_local, Query::EarliestLocal);
    start_at(view, known, local, earliest, latest)
}

fn start_at(
    view: &FollowerView<'_>,
    known: &LeaderAnswers,
    start: OffsetAndEpoch,
    earliest: i64,
    latest: i64,
) -> Action {
    if earliest < 0 || start.offset < 0 {
        return view.delay(RetryReason::OffsetNotAvailable);
    }
    // spec: tiered-faults T1: nothing below the start is there to be described.
    if start.offset <= earliest {
        return view.restart(earliest, latest);
    }
    let Some(epoch) = start.epoch.filter(|&epoch| epoch >= 0) else {
        return view.delay(RetryReason::OffsetNotAvailable);
    };
    match aux_target(start.offset, epoch, known.epoch_end) {
        Ok(target) => build(target, earliest, latest),
        Err(query) => Action::Ask(query),
    }
}

fn build(target: AuxTarget, log_start_offset: i64, leader_log_end_offset: i64) -> Action {
    Action::BuildAux { target, log_start_offset, leader_log_end_offset }
}
