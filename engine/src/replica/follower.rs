//! What does a follower do next, given what its leader answered?
//!
//! [`follower_step`] is a table: a view of the follower's log and fetch state, and an event, give
//! one [`Action`]. It keeps nothing, so the same inputs always give the same action, and trying
//! again after a crash or an error is asking again.
//!
//! ```text
//!            answers, results
//!   leader ------------------> Event ---> follower_step ---> Action ---> host
//!      ^                                        ^                         |
//!      |  fetches, queries                      |  a view of log, state   |  changes the log,
//!      +----------------------------------------+-------------------------+  keeps the state
//! ```
//!
//! The host applies the action to the log as a whole, keeps the [`FetchState`] that it carries and
//! drops the state when the action is [`Action::Fail`].

use super::follower_start::{AuxTarget, LeaderAnswers, Query, lacks_history};
use super::follower_start::{moved_to_tiered, out_of_range};
use super::truncation::truncation_point;
use crate::state::LeaderEpochs;

/// Whether a follower compares its log with its leader's, or fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Where the logs part is not known yet.
    Truncating,
    /// It fetches, unless it waits.
    Fetching,
}

/// How far a follower is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FetchState {
    /// The next offset to be fetched.
    pub fetch_offset: i64,
    /// Records behind the leader, once it is known.
    pub lag: Option<i64>,
    /// The leader epoch that it follows.
    pub leader_epoch: i32,
    /// The latest epoch in its log.
    pub last_fetched_epoch: Option<i32>,
    /// What it does.
    pub phase: Phase,
    /// Whether it waits before it tries again.
    pub delayed: bool,
    /// Whether the next start is the leader's local log start, as the last one, where its uploads
    /// end, found no segment to build from.
    pub tiered_start_failed: bool,
}

impl FetchState {
    /// Whether a fetch may be sent, and its answer acted on.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Fetching && !self.delayed
    }
}

/// The settings that a follower's decisions depend on. They are read anew at each decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowerConfig {
    /// `follower.fetch.last.tiered.offset.enable` of the broker.
    pub starts_at_tiered: bool,
    /// Whether the topic has remote storage.
    pub remote_storage: bool,
    /// Whether the topic is compacted.
    pub compacted: bool,
}

/// A follower as it is before an event.
#[derive(Clone, Copy, Debug)]
pub struct FollowerView<'a> {
    /// The first offset that can be read, from the local disk or from remote storage.
    pub log_start_offset: i64,
    /// The first offset on the local disk.
    pub local_log_start_offset: i64,
    /// The next offset to be written.
    pub log_end_offset: i64,
    /// What is committed, exclusive.
    pub high_watermark: i64,
    /// Which leader wrote what.
    pub epochs: &'a LeaderEpochs,
    /// Its settings.
    pub config: FollowerConfig,
    /// How far it is; none before the first leader, after a failure, and when it was removed.
    pub state: Option<FetchState>,
}

/// What a fetch was sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The fetch offset.
    pub fetch_offset: i64,
    /// The leader epoch.
    pub leader_epoch: i32,
}

/// What a leader answers to a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FetchAnswer {
    /// Records, maybe none.
    Records {
        /// The leader's high watermark.
        high_watermark: i64,
        /// The leader's log start.
        log_start_offset: i64,
    },
    /// The follower's last epoch ends earlier at the leader.
    Diverging {
        /// The greatest epoch not above it that the leader knows; -1 for none.
        epoch: i32,
        /// Where that one ends, exclusive; -1 for "unknown".
        end_offset: i64,
    },
    /// `OFFSET_OUT_OF_RANGE`.
    OutOfRange,
    /// `OFFSET_MOVED_TO_TIERED_STORAGE`.
    MovedToTieredStorage,
    /// `FENCED_LEADER_EPOCH`.
    Fenced,
    /// Any other error, by its code: `UNKNOWN_LEADER_EPOCH`, `NOT_LEADER_OR_FOLLOWER`,
    /// `UNKNOWN_TOPIC_OR_PARTITION`, `UNKNOWN_TOPIC_ID`, `INCONSISTENT_TOPIC_ID` ...
    Error(i16),
}

/// Why records could not be appended, or the log not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFailure {
    /// The records are corrupt or invalid.
    InvalidRecords,
    /// The disk, or something that nobody expected.
    Storage,
}

/// Why the state could not be built from remote storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuxFailure {
    /// What is known of remote segments is not loaded yet.
    NotReady,
    /// No finished segment has the target's offset in its epoch.
    SegmentNotFound,
    /// An object could not be read, or is not what it should be.
    Storage,
    /// `FENCED_LEADER_EPOCH` for the current leader epoch.
    Fenced,
}

/// What has happened.
///
/// Answers of a leader say what they are answers to, and may come late. What becomes of the host's
/// own work on the log ([`Appended`](Self::Appended), [`LogFailed`](Self::LogFailed),
/// [`AuxInstalled`](Self::AuxInstalled), [`AuxFailed`](Self::AuxFailed)) does not: it is told when
/// the work is done, before any other event, that of a new leader among them.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// There is a leader of this epoch.
    NewLeader {
        /// Its epoch.
        leader_epoch: i32,
        /// Where to begin: see [`FollowerView::initial_offset`]; below 0 when that is for the
        /// leader to say.
        initial_offset: i64,
    },
    /// The leader answered a fetch. After [`Action::Ask`] it is the same event with more answers.
    Response {
        /// What it was sent with.
        request: Request,
        /// What came back.
        answer: FetchAnswer,
        /// What the leader has answered to queries so far.
        known: &'a LeaderAnswers,
    },
    /// The records of a response are in the log, or there were none.
    Appended {
        /// The response's high watermark.
        leader_high_watermark: i64,
        /// The response's log start.
        leader_log_start_offset: i64,
    },
    /// Appending, truncating or restarting failed.
    LogFailed(AppendFailure),
    /// The leader answered where an epoch ends, to a follower that compares its log; both are -1
    /// where it does not know, or where the follower had no epoch to ask for.
    EpochEnd {
        /// The leader epoch that the query was sent with.
        leader_epoch: i32,
        /// The greatest epoch not above the one asked for.
        epoch: i32,
        /// Where it ends, exclusive.
        end_offset: i64,
        /// What the leader has answered to other queries so far.
        known: &'a LeaderAnswers,
    },
    /// A query failed; `fenced` says that it was with `FENCED_LEADER_EPOCH`.
    QueryFailed {
        /// The leader epoch that it was sent with.
        leader_epoch: i32,
        /// Whether the epoch was the reason.
        fenced: bool,
    },
    /// [`Action::BuildAux`] succeeded: the view shows the log as it is now.
    AuxInstalled {
        /// As the action had it.
        leader_log_end_offset: i64,
    },
    /// [`Action::BuildAux`] failed: the log is as it was.
    AuxFailed(AuxFailure),
    /// The delay is over.
    DelayOver,
}

/// Why a follower waits before it tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryReason {
    /// The leader answered with this error code.
    Answer(i16),
    /// The leader cannot say yet where to start.
    OffsetNotAvailable,
    /// Another leader epoch is known by now.
    OldLeaderEpoch,
    /// A query failed.
    QueryFailed,
    /// The response's records are no good.
    InvalidRecords,
    /// The records are in remote storage, and this log has none.
    RemoteStorageOff,
    /// What is known of remote segments is not loaded yet.
    RemoteNotReady,
    /// No remote segment ends where the follower would start.
    SegmentNotFound,
    /// Remote storage failed.
    RemoteStorage,
}

/// Why a follower fetches no more until it hears of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailReason {
    /// The leader has a newer epoch than this follower has heard of.
    Fenced,
    /// The log could not be changed.
    Storage,
}

/// What the host is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing: the event is not about what the follower does now.
    Ignore,
    /// Keep this state, and fetch as it says. The log is not touched.
    Adopt(FetchState),
    /// Append the response's batches of epochs up to this one, drop the rest, and tell with
    /// [`Event::Appended`].
    Append {
        /// The largest leader epoch to be taken.
        last_epoch: i32,
    },
    /// Set the high watermark, then raise the log start if it is below, and keep this state.
    Advance {
        /// The follower's high watermark.
        high_watermark: i64,
        /// The log start.
        log_start_offset: i64,
        /// The state.
        state: FetchState,
    },
    /// Cut the log to end at `offset`, and keep this state, in which the logs may have to be
    /// compared once more. A high watermark above goes down to it.
    ///
    /// The state may wait, as that of [`Delay`](Self::Delay) does. Then a log that was built from
    /// remote storage is dropped before it has taken a record: its segment left the leader's
    /// lineage behind the start. It is built anew after each delay, until the leader has uploaded
    /// one that did not.
    Truncate {
        /// The new log end.
        offset: i64,
        /// The state.
        state: FetchState,
    },
    /// Drop everything, and start an empty log at `offset`: log start, local log start, log end
    /// and high watermark are there, epochs and producers are gone. Keep this state.
    Restart {
        /// The start.
        offset: i64,
        /// The state.
        state: FetchState,
    },
    /// Ask the leader, and bring the same event with the answer, or [`Event::QueryFailed`].
    Ask(Query),
    /// Build the state from remote storage (case K), log start at `log_start_offset`; then tell
    /// with [`Event::AuxInstalled`] or [`Event::AuxFailed`]. Once the log is being changed, that is
    /// done to its end before the replica may lead.
    BuildAux {
        /// From which segment.
        target: AuxTarget,
        /// The leader's log start, which becomes the follower's.
        log_start_offset: i64,
        /// The leader's log end, for the lag.
        leader_log_end_offset: i64,
    },
    /// Keep this state, which waits; tell with [`Event::DelayOver`] after
    /// `replica.fetch.backoff.ms`.
    Delay {
        /// Why.
        reason: RetryReason,
        /// The state.
        state: FetchState,
    },
    /// Drop the state: only a new leader brings the follower back.
    Fail(FailReason),
}

impl FollowerView<'_> {
    /// Where a follower begins when it hears of a leader: its log end if it knows an epoch, else
    /// its high watermark.
    #[must_use]
    pub fn initial_offset(&self) -> i64 {
        // spec: follower-fetch 5, F17 and F18
        if self.epochs.latest().is_some() { self.log_end_offset } else { self.high_watermark }
    }

    /// Whether building anew loses nothing that should stay: the log is empty, or says itself that
    /// there are records before its local ones. One that has records and does not say so had its
    /// start raised, and may follow a leader whose own start lags behind: it is sound, and may be
    /// in sync, so that dropping what it has could lose committed records.
    fn may_be_built_anew(&self) -> bool {
        self.log_start_offset < self.local_log_start_offset
            || self.local_log_start_offset == self.log_end_offset
    }

    /// Whether nothing is known of what lies before the local log. That is a fault only if the
    /// leader has records there.
    fn may_lack_history(&self) -> bool {
        self.config.remote_storage
            && self.may_be_built_anew()
            && lacks_history(self.epochs, self.local_log_start_offset, 0)
    }

    /// Whether a build from remote storage was cut off here, or the log was cut in front of its
    /// first local record, with this log start of the leader's.
    pub(super) fn lacks_history_from(&self, leader_log_start_offset: i64) -> bool {
        // spec: tiered-faults T4
        self.config.remote_storage
            && self.may_be_built_anew()
            && leader_log_start_offset >= 0
            && lacks_history(self.epochs, self.local_log_start_offset, leader_log_start_offset)
    }

    /// Case K for a log that lacks its history: what it holds counts for nothing.
    pub(super) fn build_anew(&self, known: &LeaderAnswers) -> Action {
        moved_to_tiered(&FollowerView { log_end_offset: 0, ..*self }, known)
    }

    fn latest_epoch(&self) -> Option<i32> {
        self.epochs.latest().map(|latest| latest.epoch)
    }

    /// The state, of a follower that is about to get one too.
    fn state_or_new(&self) -> FetchState {
        self.state.unwrap_or_else(|| self.new_state(-1, self.initial_offset()))
    }

    fn new_state(&self, leader_epoch: i32, fetch_offset: i64) -> FetchState {
        FetchState {
            fetch_offset,
            lag: None,
            leader_epoch,
            last_fetched_epoch: self.latest_epoch(),
            phase: Phase::Fetching,
            delayed: false,
            tiered_start_failed: false,
        }
    }

    pub(super) fn adopt(
        &self,
        fetch_offset: i64,
        lag: Option<i64>,
        last_fetched_epoch: Option<i32>,
    ) -> Action {
        Action::Adopt(self.going_on(fetch_offset, lag, last_fetched_epoch))
    }

    fn going_on(
        &self,
        fetch_offset: i64,
        lag: Option<i64>,
        last_fetched_epoch: Option<i32>,
    ) -> FetchState {
        FetchState {
            fetch_offset,
            lag,
            last_fetched_epoch,
            phase: Phase::Fetching,
            delayed: false,
            tiered_start_failed: false,
            ..self.state_or_new()
        }
    }

    pub(super) fn delay(&self, reason: RetryReason) -> Action {
        Action::Delay { reason, state: FetchState { delayed: true, ..self.state_or_new() } }
    }

    /// Cuts the log; `lag` replaces the state's where it is given.
    pub(super) fn truncate(&self, offset: i64, lag: Option<i64>) -> Action {
        let lag = lag.or_else(|| self.state.and_then(|state| state.lag));
        // spec: follower-fetch 5.2
        let kept = Some(self.epochs).filter(|_| offset >= self.local_log_start_offset);
        let epoch = kept.and_then(|epochs| epochs.epoch_for_offset(offset.saturating_sub(1)));
        let mut state = self.going_on(offset, lag, epoch);
        // A log that is empty now and knows nothing of what lies before asks its leader for that
        // before it fetches, and may be taken to be in sync.
        // spec: tiered-faults T4
        let is_emptied = offset < self.log_end_offset && offset <= self.local_log_start_offset;
        let lacks_all = offset > 0 && kept.is_none_or(|epochs| lacks_history(epochs, offset, 0));
        if self.config.remote_storage && is_emptied && lacks_all {
            state.phase = Phase::Truncating;
        }
        // What was just built is no good, and until there is another segment the next build will
        // be none either: without a pause it would fetch the same objects for ever.
        let is_built = self.log_end_offset == self.local_log_start_offset
            && self.epochs.earliest().is_some_and(|it| it.start_offset < self.log_end_offset);
        state.delayed = self.config.remote_storage && is_built && kept.is_none();
        Action::Truncate { offset, state }
    }

    pub(super) fn restart(&self, offset: i64, leader_log_end_offset: i64) -> Action {
        let lag = Some(leader_log_end_offset.saturating_sub(offset).max(0));
        Action::Restart { offset, state: self.going_on(offset, lag, None) }
    }
}

/// What to do about `event`. It allocates nothing, and any numbers give an action.
#[must_use]
pub fn follower_step(view: &FollowerView<'_>, event: &Event<'_>) -> Action {
    let action = decide(view, event);
    debug_assert_eq!(super::invariants::check_action(view, event, &action), None);
    action
}

// spec: follower-fetch 5
fn decide(view: &FollowerView<'_>, event: &Event<'_>) -> Action {
    if let Event::NewLeader { leader_epoch, initial_offset } = *event {
        return new_leader(view, leader_epoch, initial_offset);
    }
    let Some(state) = view.state else { return Action::Ignore };
    match *event {
        Event::NewLeader { .. } => Action::Ignore,
        Event::Response { request, answer, known } => {
            let is_current = state.is_ready()
                && request.fetch_offset == state.fetch_offset
                && request.leader_epoch == state.leader_epoch;
            if is_current { response(view, &state, answer, known) } else { Action::Ignore }
        }
        Event::Appended { leader_high_watermark, leader_log_start_offset } => {
            appended(view, leader_high_watermark, leader_log_start_offset)
        }
        Event::LogFailed(AppendFailure::InvalidRecords) => view.delay(RetryReason::InvalidRecords),
        Event::LogFailed(AppendFailure::Storage) => Action::Fail(FailReason::Storage),
        Event::EpochEnd { leader_epoch, epoch, end_offset, known } => {
            let is_current = state.phase == Phase::Truncating
                && !state.delayed
                && leader_epoch == state.leader_epoch;
            let end = (epoch, end_offset);
            if is_current { epoch_end(view, &state, end, known) } else { Action::Ignore }
        }
        Event::QueryFailed { leader_epoch, fenced: true } if leader_epoch == state.leader_epoch => {
            Action::Fail(FailReason::Fenced)
        }
        Event::QueryFailed { fenced: true, .. } => view.delay(RetryReason::OldLeaderEpoch),
        Event::QueryFailed { leader_epoch, .. } if leader_epoch == state.leader_epoch => {
            view.delay(RetryReason::QueryFailed)
        }
        Event::QueryFailed { .. } => Action::Ignore,
        Event::AuxInstalled { leader_log_end_offset } => {
            let lag = leader_log_end_offset.saturating_sub(view.log_end_offset).max(0);
            view.adopt(view.log_end_offset, Some(lag), view.latest_epoch())
        }
        Event::AuxFailed(failure) => aux_failed(view, &state, failure),
        Event::DelayOver => Action::Adopt(FetchState { delayed: false, ..state }),
    }
}

// F15 to F18
fn new_leader(view: &FollowerView<'_>, leader_epoch: i32, initial_offset: i64) -> Action {
    match view.state {
        Some(state) if state.leader_epoch == leader_epoch => return Action::Adopt(state),
        Some(state) if state.leader_epoch > leader_epoch => return Action::Ignore,
        _ => {}
    }
    let state = view.new_state(leader_epoch, initial_offset);
    // No leader has an offset below 0, so that its answer to a fetch leads to F3 to F6.
    let is_left_to_leader = initial_offset < 0;
    let can_fetch = state.last_fetched_epoch.is_some() && !view.may_lack_history();
    let phase = if can_fetch || is_left_to_leader { Phase::Fetching } else { Phase::Truncating };
    Action::Adopt(FetchState { phase, ..state })
}

// F1 to F9, F11
fn response(
    view: &FollowerView<'_>,
    state: &FetchState,
    answer: FetchAnswer,
    known: &LeaderAnswers,
) -> Action {
    match answer {
        FetchAnswer::Records { log_start_offset, .. } => {
            if view.lacks_history_from(log_start_offset) {
                return view.build_anew(known);
            }
            Action::Append { last_epoch: state.leader_epoch }
        }
        FetchAnswer::Diverging { epoch, end_offset } => {
            let end = view.log_end_offset;
            let at = truncation_point(view.epochs, end, view.high_watermark, epoch, end_offset);
            view.truncate(at.offset, None)
        }
        FetchAnswer::OutOfRange => out_of_range(view, known),
        FetchAnswer::MovedToTieredStorage => moved_to_tiered(view, known),
        FetchAnswer::Fenced => Action::Fail(FailReason::Fenced),
        FetchAnswer::Error(code) => view.delay(RetryReason::Answer(code)),
    }
}

// F1
fn appended(view: &FollowerView<'_>, high_watermark: i64, leader_log_start: i64) -> Action {
    let end = view.log_end_offset;
    let lag = Some(high_watermark.saturating_sub(end).max(0));
    let high_watermark = high_watermark.max(view.log_start_offset).min(end);
    // The leader may have raised its log start beyond what is committed here: the next answer
    // brings the rest.
    let log_start_offset = leader_log_start.min(high_watermark).max(view.log_start_offset);
    let state = view.going_on(end, lag, view.latest_epoch());
    Action::Advance { high_watermark, log_start_offset, state }
}

// F18
fn epoch_end(
    view: &FollowerView<'_>,
    state: &FetchState,
    (epoch, end_offset): (i32, i64),
    known: &LeaderAnswers,
) -> Action {
    if view.may_lack_history() {
        let Some(earliest) = known.earliest else { return Action::Ask(Query::Earliest) };
        if view.lacks_history_from(earliest) {
            return view.build_anew(known);
        }
    }
    let end = view.log_end_offset;
    let at = truncation_point(view.epochs, end, state.fetch_offset, epoch, end_offset);
    match view.truncate(at.offset, None) {
        Action::Truncate { offset, state } if !at.complete => {
            let state = FetchState { phase: Phase::Truncating, ..state };
            Action::Truncate { offset, state }
        }
        action => action,
    }
}

// F9, F14
fn aux_failed(view: &FollowerView<'_>, state: &FetchState, failure: AuxFailure) -> Action {
    let reason = match failure {
        AuxFailure::Fenced => return Action::Fail(FailReason::Fenced),
        AuxFailure::NotReady => RetryReason::RemoteNotReady,
        AuxFailure::Storage => RetryReason::RemoteStorage,
        AuxFailure::SegmentNotFound => {
            // The two starts take turns: the next upload may be what either of them waits for.
            // spec: tiered-faults T1
            let tiered_start_failed = !state.tiered_start_failed;
            let state = FetchState { delayed: true, tiered_start_failed, ..*state };
            return Action::Delay { reason: RetryReason::SegmentNotFound, state };
        }
    };
    view.delay(reason)
}
