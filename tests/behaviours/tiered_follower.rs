//! Followers of leaders with remote storage: the vectors of KIP-405 and KIP-1023.
//!
//! The real rules drive a follower of numbers against a leader of numbers; see
//! `siltstone_tests::replicas`.

use siltstone::log::timestamps::{EARLIEST, EARLIEST_LOCAL, LATEST, LATEST_TIERED};
use siltstone::log::{Isolation, LogConfig};
use siltstone::replica::special_offset;
use siltstone::replica::{
    Action, AppendFailure, AuxFailure, AuxTarget, BrokerStatus, EpochEnd, Event, ExpandVerdict,
    FailReason, FetchAnswer, FetchState, FollowerConfig, FollowerFetch, FollowerProgress,
    InSyncReplicas, LeaderAnswers, Phase, Query, Request, RetryReason, aux_target, follower_step,
    lacks_history, should_start_at_tiered,
};
use siltstone_tests::live::{TestLog, records};
use siltstone_tests::replicas::{Batch, PlainFollower, PlainLeader, PlainSegment, epochs};

pub(crate) const PLAIN: FollowerConfig =
    FollowerConfig { starts_at_tiered: false, remote_storage: false, compacted: false };
pub(crate) const REMOTE: FollowerConfig = FollowerConfig { remote_storage: true, ..PLAIN };
pub(crate) const TIERED: FollowerConfig = FollowerConfig { starts_at_tiered: true, ..REMOTE };

/// A leader of epoch 0, with all below its local log in remote storage.
pub(crate) fn leader(
    remote_storage: bool,
    (start, local_start, end): (i64, i64, i64),
    high_watermark: i64,
    offsets: &[i64],
) -> PlainLeader {
    let epochs = epochs(&[(0, start)]);
    let segment =
        |end_offset| PlainSegment { start_offset: start, end_offset, epochs: epochs.clone() };
    let remote = (local_start > start).then(|| segment(local_start - 1));
    PlainLeader {
        remote_storage,
        log_start_offset: start,
        local_log_start_offset: local_start,
        log_end_offset: end,
        high_watermark,
        highest_remote_offset: -1,
        leader_epoch: 0,
        batches: offsets.iter().map(|&offset| Batch { offset, epoch: 0 }).collect(),
        remote: remote.into_iter().collect(),
        epochs,
    }
}

/// Log start, local log start, log end, high watermark, and batches.
pub(crate) fn log(follower: &PlainFollower) -> (i64, i64, i64, i64, usize) {
    let it = follower;
    let offsets = (it.log_start_offset, it.local_log_start_offset, it.log_end_offset);
    (offsets.0, offsets.1, offsets.2, it.high_watermark, it.batches.len())
}

pub(crate) fn state(follower: &PlainFollower) -> FetchState {
    follower.state.expect("a follower that has state")
}

#[test]
fn followers_of_plain_logs_start_at_the_log_start() {
    // spec: follower-fetch E1, E2, E3, E5
    for (config, start) in [(PLAIN, 0), (PLAIN, 10), (REMOTE, 0), (REMOTE, 10)] {
        let leader = leader(config.remote_storage, (start, start, 200), 199, &[start, 150, 199]);
        let mut follower = PlainFollower::empty(config);
        follower.poll(&leader);
        if start == 0 {
            assert_eq!(log(&follower), (0, 0, 1, 1, 1));
            assert_eq!(state(&follower).fetch_offset, 1);
        } else {
            assert_eq!(log(&follower), (10, 10, 10, 10, 0));
            assert_eq!((state(&follower).fetch_offset, state(&follower).lag), (10, Some(190)));
        }
        let polls = follower.catch_up(&leader);
        assert_eq!(polls, if start == 0 { 2 } else { 3 });
        assert_eq!(log(&follower), (start, start, 200, 199, 3));
    }
}

#[test]
fn without_the_shortcut_a_follower_starts_at_the_local_log() {
    // spec: follower-fetch E6, E7
    let ahead = leader(true, (10, 100, 200), 199, &[100, 150, 199]);
    let mut follower = PlainFollower::empty(REMOTE);
    follower.poll(&ahead);
    assert_eq!(log(&follower), (10, 10, 10, 10, 0));
    follower.poll(&ahead);
    assert_eq!(log(&follower), (10, 100, 100, 100, 0));
    assert_eq!((state(&follower).fetch_offset, state(&follower).lag), (100, Some(100)));
    follower.catch_up(&ahead);
    assert_eq!(log(&follower), (10, 100, 200, 199, 3));

    let nothing_left = leader(true, (0, 151, 151), 151, &[]);
    let mut follower = PlainFollower::empty(REMOTE);
    for _ in 0..3 {
        follower.poll(&nothing_left);
        assert_eq!(log(&follower), (0, 151, 151, 151, 0));
        assert_eq!(state(&follower).fetch_offset, 151);
    }
}

/// A follower with three records of epochs 0, 2 and 4, and a leader of a later epoch.
pub(crate) fn lagging(leader_epoch: i32, start: i64) -> (PlainFollower, PlainLeader) {
    let mut follower = PlainFollower::holding(REMOTE, &[0, 2, 4]);
    follower.high_watermark = 3;
    follower.follow(leader_epoch);
    assert_eq!(state(&follower).fetch_offset, 3);
    assert_eq!(state(&follower).last_fetched_epoch, Some(4));
    let local_start = if start == 0 { 5 } else { 7 };
    let mut list = epochs(&[(0, 0), (2, 1), (4, 2), (leader_epoch, local_start)]);
    list.truncate_from_start(start);
    list.written();
    let mut remote_epochs = list.clone();
    remote_epochs.truncate_from_end(local_start);
    remote_epochs.written();
    let offsets = local_start..local_start + 4;
    let leader = PlainLeader {
        leader_epoch,
        highest_remote_offset: local_start - 1,
        batches: offsets.map(|offset| Batch { offset, epoch: leader_epoch }).collect(),
        remote: vec![PlainSegment {
            start_offset: start,
            end_offset: local_start - 1,
            epochs: remote_epochs,
        }],
        epochs: list,
        ..leader(true, (start, local_start, local_start + 4), local_start + 3, &[])
    };
    (follower, leader)
}

#[test]
fn a_follower_that_lags_too_far_starts_anew() {
    // spec: follower-fetch E9, E10
    let (mut follower, leader) = lagging(5, 0);
    follower.poll(&leader);
    assert_eq!(log(&follower), (0, 5, 5, 5, 0));
    follower.catch_up(&leader);
    assert_eq!(log(&follower), (0, 5, 9, 8, 4));
    assert_eq!(follower.epochs, leader.epochs);

    let (mut follower, leader) = lagging(7, 5);
    follower.poll(&leader);
    assert_eq!(log(&follower), (5, 5, 5, 5, 0));
    follower.poll(&leader);
    assert_eq!(log(&follower), (5, 7, 7, 7, 0));
    follower.catch_up(&leader);
    assert_eq!(log(&follower), (5, 7, 11, 10, 4));
}

/// A vector of the shortcut: what the leader has, and what it has uploaded.
pub(crate) struct Vector {
    start: i64,
    local_start: i64,
    end: i64,
    offsets: &'static [i64],
    high_watermark: i64,
    pending: i64,
}

impl Vector {
    pub(crate) fn leader(&self) -> PlainLeader {
        let bounds = (self.start, self.local_start, self.end);
        let mut leader = leader(true, bounds, self.high_watermark, self.offsets);
        leader.highest_remote_offset = if self.pending < 0 { -1 } else { self.pending - 1 };
        if self.pending > self.local_start {
            leader.remote = vec![PlainSegment {
                start_offset: self.start,
                end_offset: self.pending - 1,
                epochs: leader.epochs.clone(),
            }];
        }
        leader
    }
}

pub(crate) fn vector(
    (start, local_start, end): (i64, i64, i64),
    offsets: &'static [i64],
    high_watermark: i64,
    pending: i64,
) -> Vector {
    Vector { start, local_start, end, offsets, high_watermark, pending }
}

#[test]
fn an_empty_follower_of_a_leader_with_records_from_offset_0_needs_no_start() {
    // spec: follower-fetch V01, V02
    let empty = vector((0, 0, 0), &[], 0, -1).leader();
    let mut follower = PlainFollower::empty(TIERED);
    follower.poll(&empty);
    assert_eq!(log(&follower), (0, 0, 0, 0, 0));
    assert_eq!((state(&follower).phase, state(&follower).fetch_offset), (Phase::Fetching, 0));
    follower.catch_up(&empty);
    assert_eq!(log(&follower), (0, 0, 0, 0, 0));

    let local = vector((0, 0, 200), &[0, 150, 199], 199, -1).leader();
    let mut follower = PlainFollower::empty(TIERED);
    follower.poll(&local);
    assert_eq!(log(&follower), (0, 0, 1, 1, 1));
    follower.catch_up(&local);
    assert_eq!(log(&follower), (0, 0, 200, 199, 3));
}

#[test]
fn a_follower_waits_while_its_leader_does_not_know_what_is_uploaded() {
    // spec: follower-fetch V03, V07, V16, V21, V24
    for vector in [
        vector((0, 10, 200), &[10, 150, 199], 199, -1),
        vector((0, 200, 200), &[], 199, -1),
        vector((10, 100, 200), &[100, 150, 199], 199, -1),
        vector((10, 200, 200), &[], 199, -1),
        vector((10, 5, 200), &[5, 10, 199], 199, -1),
    ] {
        let leader = vector.leader();
        let mut follower = PlainFollower::empty(TIERED);
        let before = state(&follower);
        let action = follower.poll(&leader);
        let waits = FetchState { delayed: true, ..before };
        assert_eq!(action, Action::Delay { reason: RetryReason::OffsetNotAvailable, state: waits });
        assert_eq!(log(&follower), (0, 0, 0, 0, 0));
        let waiting = state(&follower);
        assert_eq!((waiting.fetch_offset, waiting.lag), (0, None));
        assert_eq!((waiting.last_fetched_epoch, waiting.phase), (Some(0), Phase::Fetching));
        assert_eq!(follower.poll(&leader), Action::Ignore, "it waits");
        follower.step(&Event::DelayOver);
        assert_eq!(follower.poll(&leader), action, "as often as it tries");
        // As soon as the leader has learnt what is uploaded, it starts there.
        let mut knows = leader.clone();
        knows.highest_remote_offset = leader.local_log_start_offset.max(10) - 1;
        follower.step(&Event::DelayOver);
        follower.poll(&knows);
        assert_eq!(follower.log_end_offset, leader.local_log_start_offset.max(10));
    }
}

#[test]
fn a_follower_starts_where_uploads_end() {
    // spec: follower-fetch V04, V06, V14, V15, V17, V18, V20, V22, V23, V27
    // The last column: log start, local log start, log end, high watermark, batches when it has
    // caught up.
    for (vector, start, last) in [
        (vector((0, 10, 200), &[10, 150, 199], 199, 10), 10, (0, 10, 200, 199, 3)),
        (vector((0, 10, 200), &[10, 150, 199], 199, 200), 200, (0, 200, 200, 199, 0)),
        (vector((10, 10, 200), &[10, 150, 199], 199, 150), 150, (10, 150, 200, 199, 2)),
        (vector((10, 10, 200), &[10, 150, 199], 199, 200), 200, (10, 200, 200, 199, 0)),
        (vector((10, 100, 200), &[100, 150, 199], 199, 5), 100, (10, 100, 200, 199, 3)),
        (vector((10, 100, 200), &[100, 150, 199], 199, 100), 100, (10, 100, 200, 199, 3)),
        (vector((10, 100, 200), &[100, 150, 199], 199, 200), 200, (10, 200, 200, 199, 0)),
        (vector((10, 200, 200), &[], 199, 5), 200, (10, 200, 200, 199, 0)),
        (vector((10, 200, 200), &[], 199, 200), 200, (10, 200, 200, 199, 0)),
        (vector((10, 5, 200), &[5, 10, 199], 199, 200), 200, (10, 200, 200, 199, 0)),
    ] {
        let leader = vector.leader();
        let mut follower = PlainFollower::empty(TIERED);
        follower.poll(&leader);
        // The log start is the leader's at once.
        assert_eq!(log(&follower), (vector.start, start, start, start, 0));
        assert_eq!(state(&follower).fetch_offset, start);
        assert_eq!(state(&follower).lag, Some(vector.end - start));
        assert_eq!(follower.snapshot, Some(start), "what remote storage knows of producers");
        assert_eq!(follower.epochs, leader.epochs);
        follower.catch_up(&leader);
        assert_eq!(log(&follower), last);
    }
}

#[test]
fn a_follower_starts_at_the_log_start_where_nothing_below_is_uploaded() {
    // spec: follower-fetch V09, V10, V11, V12, V25
    for (vector, lag, last) in [
        (vector((10, 10, 10), &[], 10, -1), 0, (10, 10, 10, 10, 0)),
        (vector((10, 10, 10), &[], 10, 5), 0, (10, 10, 10, 10, 0)),
        (vector((10, 10, 200), &[10, 150, 199], 199, -1), 190, (10, 10, 200, 199, 3)),
        (vector((10, 10, 200), &[10, 150, 199], 199, 5), 190, (10, 10, 200, 199, 3)),
        (vector((10, 5, 200), &[5, 10, 199], 199, 10), 190, (10, 10, 200, 199, 2)),
    ] {
        let leader = vector.leader();
        let mut follower = PlainFollower::empty(TIERED);
        let action = follower.poll(&leader);
        assert!(matches!(action, Action::Restart { offset: 10, .. }), "{action:?}");
        assert_eq!(log(&follower), (10, 10, 10, 10, 0));
        assert_eq!((state(&follower).fetch_offset, state(&follower).lag), (10, Some(lag)));
        assert_eq!((follower.snapshot, follower.epochs.latest()), (None, None));
        follower.catch_up(&leader);
        assert_eq!(log(&follower), last);
    }
}

#[test]
fn a_build_that_fails_is_tried_again_and_one_that_is_fenced_is_not() {
    // spec: follower-fetch V28, V29; tiered-faults T4
    let leader = vector((10, 10, 200), &[10, 150, 199], 199, 150).leader();
    for failure in [AuxFailure::Storage, AuxFailure::NotReady] {
        let mut follower = PlainFollower::empty(TIERED);
        follower.aux_failure = Some(failure);
        let before = follower.clone();
        assert!(matches!(follower.poll(&leader), Action::Delay { .. }));
        let waiting = state(&follower);
        assert_eq!((waiting.fetch_offset, waiting.lag, waiting.delayed), (0, None, true));
        // But for the delay it is as before, so that the next try asks the same questions.
        follower.step(&Event::DelayOver);
        assert_eq!(follower.state, before.state);
        assert_eq!(log(&follower), log(&before));
        follower.poll(&leader);
        assert_eq!(log(&follower), (10, 150, 150, 150, 0));
    }
    let mut follower = PlainFollower::empty(TIERED);
    follower.aux_failure = Some(AuxFailure::Fenced);
    assert_eq!(follower.poll(&leader), Action::Fail(FailReason::Fenced));
    assert_eq!((follower.state, follower.log_end_offset), (None, 0));
    assert_eq!(follower.poll(&leader), Action::Ignore);
}

#[test]
fn logs_that_part_become_equal_again() {
    // spec: follower-fetch T12, T13, T15; tiered-behaviours FF4
    let emptied = PlainLeader { leader_epoch: 5, ..leader(false, (0, 0, 0), 0, &[]) };
    let emptied = PlainLeader { epochs: epochs(&[]), ..emptied };
    let mut follower = PlainFollower::holding(PLAIN, &[0, 2, 4]);
    follower.follow(5);
    assert_eq!(state(&follower).fetch_offset, 3);
    let action = follower.poll(&emptied);
    assert!(matches!(action, Action::Truncate { offset: 0, .. }), "{action:?}");
    assert_eq!(log(&follower), (0, 0, 0, 0, 0));
    assert_eq!((state(&follower).fetch_offset, state(&follower).lag), (0, Some(0)));

    let list = epochs(&[(1, 0), (3, 1), (5, 2)]);
    let batches: Vec<Batch> =
        [1, 3, 5].into_iter().zip(0..).map(|(epoch, offset)| Batch { offset, epoch }).collect();
    let other = PlainLeader { leader_epoch: 5, batches, ..leader(false, (0, 0, 3), 3, &[]) };
    let other = PlainLeader { epochs: list, ..other };
    let mut follower = PlainFollower::holding(PLAIN, &[0, 2, 4]);
    follower.follow(5);
    follower.catch_up(&other);
    assert_eq!(follower.batches, other.batches);
    assert_eq!(follower.epochs, other.epochs);
    assert_eq!(log(&follower), (0, 0, 3, 3, 3));

    // Records without epochs: all above the high watermark goes.
    let mut follower = PlainFollower::holding(PLAIN, &[0, 0, 0]);
    follower.epochs = epochs(&[]);
    follower.high_watermark = 2;
    follower.follow(0);
    assert_eq!((state(&follower).phase, state(&follower).fetch_offset), (Phase::Truncating, 2));
    follower.poll(&leader(false, (0, 0, 3), 3, &[0, 1, 2]));
    assert_eq!((state(&follower).phase, state(&follower).fetch_offset), (Phase::Fetching, 2));
    assert_eq!((follower.log_end_offset, follower.batches.len()), (2, 2));
}

#[test]
fn the_shortcut_is_for_empty_followers_of_tiered_topics_alone() {
    // spec: tiered-behaviours FF1
    let mut open = Vec::new();
    for starts_at_tiered in [false, true] {
        for remote_storage in [false, true] {
            for compacted in [false, true] {
                for (leader_end, end) in [(0, 0), (5, 0), (5, 1)] {
                    let config = FollowerConfig { starts_at_tiered, remote_storage, compacted };
                    if should_start_at_tiered(&config, end, leader_end) {
                        open.push((config, leader_end, end));
                    }
                }
            }
        }
    }
    assert_eq!(open, [(TIERED, 5, 0)]);
}

/// A follower at offset 3 that fetches from a leader of epoch 4.
pub(crate) fn fetching() -> PlainFollower {
    let mut follower = PlainFollower::holding(PLAIN, &[0, 2, 4]);
    follower.follow(4);
    follower
}

pub(crate) fn response<'a>(
    follower: &PlainFollower,
    answer: FetchAnswer,
    known: &'a LeaderAnswers,
) -> Event<'a> {
    let FetchState { fetch_offset, leader_epoch, .. } = state(follower);
    Event::Response { request: Request { fetch_offset, leader_epoch }, answer, known }
}

#[test]
fn errors_that_pass_leave_everything_as_it_was() {
    // spec: tiered-behaviours FF3, FF7; follower-fetch F11, F12
    let known = LeaderAnswers::default();
    // UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH, UNKNOWN_TOPIC_ID,
    // INCONSISTENT_TOPIC_ID, and one that nobody knows.
    for code in [3, 6, 75, 100, 103, -1] {
        let mut follower = fetching();
        let before = follower.clone();
        let event = response(&follower, FetchAnswer::Error(code), &known);
        let action = follower.step(&event);
        assert!(matches!(action, Action::Delay { reason: RetryReason::Answer(_), .. }));
        assert_eq!(state(&follower).fetch_offset, 3);
        follower.step(&Event::DelayOver);
        assert_eq!(follower, before);
    }
    let source = leader(false, (0, 0, 4), 4, &[3]);
    let source =
        PlainLeader { leader_epoch: 4, epochs: epochs(&[(0, 0), (2, 1), (4, 2)]), ..source };
    let mut follower = fetching();
    follower.append_failure = Some(AppendFailure::InvalidRecords);
    follower.poll(&source);
    assert!(state(&follower).delayed && follower.log_end_offset == 3);
    follower.step(&Event::DelayOver);
    follower.poll(&source);
    assert_eq!(follower.log_end_offset, 4);
}

#[test]
fn a_follower_whose_next_record_is_gone_goes_on_behind_it() {
    // spec: tiered-behaviours FF5
    let mut follower = PlainFollower::holding(PLAIN, &[0]);
    follower.follow(0);
    assert_eq!(state(&follower).fetch_offset, 1);
    let leader = leader(false, (2, 2, 3), 3, &[2]);
    follower.poll(&leader);
    assert_eq!(log(&follower), (2, 2, 2, 2, 0));
    follower.catch_up(&leader);
    assert_eq!(log(&follower), (2, 2, 3, 3, 1));
    assert_eq!(follower.batches, leader.batches);
    assert_eq!(follower.epochs, leader.epochs);
}

#[test]
fn answers_to_other_questions_are_ignored() {
    // spec: tiered-behaviours FF8, FF9
    let known = LeaderAnswers::default();
    let records = FetchAnswer::Records { high_watermark: 9, log_start_offset: 0 };
    let answers = [
        records,
        FetchAnswer::Diverging { epoch: 0, end_offset: 1 },
        FetchAnswer::OutOfRange,
        FetchAnswer::MovedToTieredStorage,
        FetchAnswer::Fenced,
        FetchAnswer::Error(75),
    ];
    for answer in answers {
        let mut follower = fetching();
        let event = |fetch_offset, leader_epoch| Event::Response {
            request: Request { fetch_offset, leader_epoch },
            answer,
            known: &known,
        };
        for (fetch_offset, leader_epoch) in [(2, 4), (4, 4), (3, 3), (3, 5)] {
            let stale = event(fetch_offset, leader_epoch);
            assert_eq!(follower_step(&follower.view(), &stale), Action::Ignore);
        }
        // The leader changes while the fetch is under way.
        let sent = event(3, 4);
        assert_ne!(follower_step(&follower.view(), &sent), Action::Ignore);
        follower.follow(5);
        assert_eq!(follower.step(&sent), Action::Ignore);
        assert_eq!(state(&follower).leader_epoch, 5, "the next fetch has the new epoch");
        assert_ne!(follower_step(&follower.view(), &event(3, 5)), Action::Ignore);
    }
}

#[test]
fn an_answer_without_records_tells_the_lag() {
    // spec: tiered-behaviours FF11
    for (high_watermark, lag) in [(9, 6), (3, 0), (1, 0)] {
        let mut follower = fetching();
        assert_eq!(state(&follower).lag, None);
        let event =
            Event::Appended { leader_high_watermark: high_watermark, leader_log_start_offset: 0 };
        follower.step(&event);
        let after = state(&follower);
        assert_eq!((after.lag, after.phase, after.fetch_offset), (Some(lag), Phase::Fetching, 3));
    }
}

#[test]
fn a_follower_that_was_removed_does_nothing_more() {
    // spec: tiered-behaviours FF12
    let mut follower = PlainFollower::holding(PLAIN, &[0, 0, 0]);
    follower.epochs = epochs(&[]);
    follower.follow(0);
    assert_eq!(state(&follower).phase, Phase::Truncating);
    follower.state = None;
    let known = LeaderAnswers::default();
    let late = Event::EpochEnd { leader_epoch: 0, epoch: 0, end_offset: 1, known: &known };
    assert_eq!(follower.step(&late), Action::Ignore);
    assert_eq!((follower.state, follower.log_end_offset), (None, 3));
}

#[test]
fn a_disk_that_fails_takes_its_follower_out_and_no_other() {
    // spec: tiered-behaviours FF13; follower-fetch F13
    let source = leader(false, (0, 0, 4), 4, &[3]);
    let source =
        PlainLeader { leader_epoch: 4, epochs: epochs(&[(0, 0), (2, 1), (4, 2)]), ..source };
    let (mut broken, mut sound) = (fetching(), fetching());
    broken.append_failure = Some(AppendFailure::Storage);
    assert_eq!(broken.poll(&source), Action::Fail(FailReason::Storage));
    assert_eq!((broken.state, broken.poll(&source)), (None, Action::Ignore));
    sound.poll(&source);
    assert_eq!(sound.log_end_offset, 4);
    // A new leader brings it back.
    broken.follow(4);
    assert_eq!(state(&broken).fetch_offset, 3);
}

#[test]
fn the_epoch_of_a_remote_segment_is_that_of_its_last_record() {
    // spec: tiered-behaviours FF17, FF19; follower-fetch 5.3
    let reply = |asked, epoch, end_offset| Some(EpochEnd { asked, epoch, end_offset });
    let target = |start_offset, epoch| {
        Ok(AuxTarget { start_offset, epoch, previous_offset: start_offset - 1 })
    };
    assert_eq!(aux_target(90, 0, None), target(90, 0));
    assert_eq!(aux_target(90, 2, None), Err(Query::EpochEnd { epoch: 1 }));
    assert_eq!(aux_target(90, 2, reply(1, 1, 85)), target(90, 2));
    assert_eq!(aux_target(90, 2, reply(1, 1, 90)), target(90, 1));
    // Epoch 2 wrote nothing: the answer is of epoch 1.
    assert_eq!(aux_target(90, 3, reply(2, 1, 90)), target(90, 1));
    assert_eq!(aux_target(90, 3, reply(2, -1, -1)), target(90, 3));
    // An answer to another question is none.
    assert_eq!(aux_target(90, 3, reply(1, 1, 90)), Err(Query::EpochEnd { epoch: 2 }));
}

#[test]
fn what_is_built_is_what_the_remote_segment_says() {
    // spec: tiered-behaviours FF15, FF16
    for (segment_end, next) in [(149, 150), (159, 160)] {
        let mut source = leader(true, (0, 150, 200), 200, &[150, 160, 170]);
        source.leader_epoch = 2;
        source.highest_remote_offset = 149;
        source.epochs = epochs(&[(0, 0), (1, 85), (2, 150)]);
        source.batches.iter_mut().for_each(|batch| batch.epoch = 2);
        let remote_epochs = epochs(&[(0, 0), (1, 85)]);
        let segment =
            PlainSegment { start_offset: 0, end_offset: segment_end, epochs: remote_epochs };
        source.remote = vec![segment];
        let mut follower = PlainFollower::empty(TIERED);
        follower.state = None;
        follower.follow(2);
        assert_eq!(state(&follower).phase, Phase::Truncating);
        follower.poll(&source);
        follower.poll(&source);
        assert_eq!(log(&follower), (0, next, next, next, 0));
        assert_eq!(follower.epochs, epochs(&[(0, 0), (1, 85)]));
        assert_eq!(follower.snapshot, Some(next));
        let after = state(&follower);
        assert_eq!((after.fetch_offset, after.last_fetched_epoch), (next, Some(1)));
        assert_eq!(after.lag, Some(200 - next));
    }
}

#[test]
fn a_start_at_or_below_the_log_start_needs_no_remote_segment() {
    // spec: tiered-faults T1
    // Log start, local log start, highest remote offset, log end: Kafka tries for ever.
    for (start, local_start, highest, end) in [
        (0, 0, -1, 40),
        (20, 20, -1, 40),
        (20, 20, -1, 353),
        (287, 287, 279, 330),
        (280, 280, 279, 300),
        (300, 300, 299, 300),
    ] {
        let mut source = leader(true, (start, local_start, end), end, &[]);
        source.highest_remote_offset = highest;
        let mut follower = PlainFollower::empty(TIERED);
        follower.poll(&source);
        assert_eq!(log(&follower), (start, start, start, start, 0));
        assert_eq!(state(&follower).fetch_offset, start);
        assert_eq!(state(&follower).lag, Some(end - start));
        assert_eq!(follower.epochs.latest(), None);
        assert_eq!(follower.snapshot, None);
        // It catches up and joins, without anything more to be uploaded.
        let offsets = [start, end - 1].into_iter().filter(|it| (start..end).contains(it));
        source.batches = offsets.map(|offset| Batch { offset, epoch: 0 }).collect();
        follower.catch_up(&source);
        assert_eq!(log(&follower), (start, start, end, end, source.batches.len()));
        let mut progress = FollowerProgress::new(2);
        let fetch = FollowerFetch {
            offset: state(&follower).fetch_offset,
            log_start_offset: start,
            broker_epoch: 1,
            now_ms: 0,
            leader_log_end_offset: end,
        };
        progress.record(&fetch, Some(1)).unwrap();
        let alive = BrokerStatus { epoch: Some(1), fenced: false, shutting_down: false };
        let in_sync = InSyncReplicas::new(vec![1], 0);
        let verdict = in_sync.expand_verdict(&progress, alive, end, start);
        assert_eq!(verdict, ExpandVerdict::Join, "{start} to {end}");
    }
}

#[test]
fn a_question_whose_answer_led_nowhere_is_not_put_again() {
    // spec: tiered-faults T1
    let mut source = vector((10, 100, 200), &[100, 150, 199], 199, 150).leader();
    let below_local = source.remote[0].clone();
    source.remote.clear();
    let mut follower = PlainFollower::empty(TIERED);
    let action = follower.poll(&source);
    assert!(matches!(action, Action::Delay { reason: RetryReason::SegmentNotFound, .. }));
    assert_eq!((state(&follower).fetch_offset, log(&follower)), (0, (0, 0, 0, 0, 0)));
    // It starts at the local log instead, which needs the segment before it ...
    source.remote = vec![PlainSegment { end_offset: 99, ..below_local }];
    follower.step(&Event::DelayOver);
    follower.poll(&source);
    assert_eq!(log(&follower), (10, 100, 100, 100, 0));
    assert!(!state(&follower).tiered_start_failed, "the next start may be the shortcut again");

    // ... or asks again where uploads end, if that leads nowhere either. It would have waited for
    // a segment in front of the local log for good, while others were uploaded.
    let mut source = vector((10, 100, 200), &[100, 150, 199], 199, 150).leader();
    let uploaded = source.remote.remove(0);
    source.remote.clear();
    let mut follower = PlainFollower::empty(TIERED);
    for _ in 0..3 {
        for has_failed in [true, false] {
            let action = follower.poll(&source);
            let reason = RetryReason::SegmentNotFound;
            assert!(matches!(action, Action::Delay { reason: it, .. } if it == reason));
            assert_eq!(state(&follower).tiered_start_failed, has_failed);
            follower.step(&Event::DelayOver);
        }
    }
    follower.poll(&source);
    follower.step(&Event::DelayOver);
    source.remote = vec![PlainSegment { start_offset: 100, ..uploaded }];
    let action = follower.poll(&source);
    assert!(matches!(action, Action::Delay { .. }), "nothing is in front of the local log");
    follower.step(&Event::DelayOver);
    follower.poll(&source);
    assert_eq!(log(&follower), (10, 150, 150, 150, 0));

    // Where all is local, the log start needs none.
    let mut source = vector((10, 10, 200), &[10, 150, 199], 199, 150).leader();
    source.remote.clear();
    let mut follower = PlainFollower::empty(TIERED);
    follower.poll(&source);
    follower.step(&Event::DelayOver);
    follower.poll(&source);
    assert_eq!(log(&follower), (10, 10, 10, 10, 0));
}

#[test]
fn a_leader_of_kafka_that_hides_what_is_uploaded_does_not_stop_a_follower() {
    // spec: follower-fetch 5.4
    // All is uploaded, and Kafka answers -1 (D11).
    let answers = |highest_remote: i64, local_start: i64| {
        let epoch = (highest_remote >= 0).then_some(3).or(Some(-1));
        let pair = |offset, epoch| Some(siltstone::replica::OffsetAndEpoch { offset, epoch });
        LeaderAnswers {
            latest: Some(200),
            earliest: Some(10),
            earliest_local: pair(local_start, Some(4)),
            earliest_pending_upload: pair(-1, Some(-1)),
            latest_tiered: pair(highest_remote, epoch),
            epoch_end: Some(EpochEnd { asked: 3, epoch: 3, end_offset: 100 }),
        }
    };
    let follower = PlainFollower::empty(TIERED);
    let decide = |known: &LeaderAnswers| {
        follower_step(&follower.view(), &response(&follower, FetchAnswer::OutOfRange, known))
    };
    let built_at = |known: &LeaderAnswers| match decide(known) {
        Action::BuildAux { target, log_start_offset: 10, leader_log_end_offset: 200 } => target,
        action => panic!("{action:?}"),
    };
    let target =
        |start_offset, epoch| AuxTarget { start_offset, epoch, previous_offset: start_offset - 1 };
    assert_eq!(built_at(&answers(199, 100)), target(200, 3));
    // A hole between remote and local log.
    assert_eq!(built_at(&answers(50, 100)), target(100, 3));
    let waits = decide(&answers(-1, 100));
    assert!(matches!(waits, Action::Delay { reason: RetryReason::OffsetNotAvailable, .. }));
    let all_local = decide(&answers(-1, 10));
    assert!(matches!(all_local, Action::Restart { offset: 10, .. }), "{all_local:?}");
    // A leader that does not know where its log begins: nothing is emptied, and no log is begun
    // at -1.
    let unknown = Some(siltstone::replica::OffsetAndEpoch { offset: -1, epoch: None });
    let local = answers(-1, 10).earliest_local;
    for (earliest, earliest_local) in [(-1, unknown), (-1, local), (10, unknown)] {
        let known = LeaderAnswers { earliest: Some(earliest), earliest_local, ..answers(-1, 10) };
        let waits = decide(&known);
        assert!(
            matches!(waits, Action::Delay { reason: RetryReason::OffsetNotAvailable, .. }),
            "{waits:?}"
        );
    }
    // Nor is a start looked for in a leader that does not know where its log ends.
    let known = LeaderAnswers { latest: Some(-1), ..answers(199, 100) };
    for answer in [FetchAnswer::OutOfRange, FetchAnswer::MovedToTieredStorage] {
        let waits = follower_step(&follower.view(), &response(&follower, answer, &known));
        assert!(
            matches!(waits, Action::Delay { reason: RetryReason::OffsetNotAvailable, .. }),
            "{waits:?}"
        );
    }
    let unasked = LeaderAnswers { latest_tiered: None, ..answers(199, 100) };
    assert_eq!(decide(&unasked), Action::Ask(Query::LatestTiered));
}

#[test]
fn a_follower_that_a_crash_left_half_built_is_built_anew() {
    // spec: tiered-faults T4
    let list = epochs(&[(2, 565)]);
    assert!(lacks_history(&list, 565, 30));
    assert!(!lacks_history(&list, 565, 565));
    assert!(!lacks_history(&epochs(&[(0, 30), (2, 305)]), 565, 30));

    let whole = epochs(&[(0, 30), (2, 305)]);
    let mut source = leader(true, (30, 355, 605), 605, &[]);
    source.leader_epoch = 2;
    source.highest_remote_offset = 564;
    source.batches = (565..605).map(|offset| Batch { offset, epoch: 2 }).collect();
    source.remote = vec![PlainSegment { start_offset: 30, end_offset: 564, epochs: whole.clone() }];
    source.epochs = whole.clone();
    let damaged = || {
        let mut damaged = PlainFollower::empty(TIERED);
        damaged.restart(565, 30);
        damaged.append(Batch { offset: 565, epoch: 2 });
        damaged.high_watermark = 566;
        damaged.state = None;
        damaged
    };
    // It asks before its first fetch, so that the leader never counts it as caught up ...
    let mut follower = damaged();
    follower.follow(2);
    assert_eq!(state(&follower).phase, Phase::Truncating);
    follower.poll(&source);
    assert_eq!(log(&follower), (30, 565, 565, 565, 0));
    assert_eq!((&follower.epochs, follower.snapshot), (&whole, Some(565)));
    follower.catch_up(&source);
    assert_eq!((follower.log_end_offset, &follower.epochs), (605, &whole));

    // ... and looks again at each answer, for what one that fetches already may have learnt.
    let mut follower = damaged();
    follower.state = PlainFollower::empty(TIERED).state;
    let fetching = FetchState { fetch_offset: 566, leader_epoch: 2, ..state(&follower) };
    follower.state = Some(FetchState { last_fetched_epoch: Some(2), ..fetching });
    follower.poll(&source);
    assert_eq!((&follower.epochs, follower.snapshot), (&whole, Some(565)));

    // Without the shortcut it starts at the local log.
    let mut follower = damaged();
    follower.config = REMOTE;
    source.remote.push(PlainSegment { start_offset: 30, end_offset: 354, epochs: whole.clone() });
    source.remote.remove(0);
    follower.follow(2);
    follower.poll(&source);
    assert_eq!(log(&follower), (30, 355, 355, 355, 0));

    // A log whose start was raised says of no records that they are elsewhere. It may be in sync
    // with a new leader whose start lags behind: what it has is not dropped.
    let mut raised = damaged();
    raised.log_start_offset = 565;
    raised.follow(2);
    assert_eq!(state(&raised).phase, Phase::Fetching);
    raised.poll(&source);
    assert_eq!(raised.batches[0], Batch { offset: 565, epoch: 2 });

    // The same log is sound where the leader's begins there, too.
    let mut follower = damaged();
    follower.follow(2);
    let later = epochs(&[(2, 565)]);
    let source =
        PlainLeader { log_start_offset: 565, local_log_start_offset: 565, epochs: later, ..source };
    follower.poll(&source);
    assert_eq!((state(&follower).phase, state(&follower).fetch_offset), (Phase::Fetching, 566));
    assert_eq!(follower.batches.len(), 1, "nothing was dropped");
    follower.catch_up(&source);
    assert_eq!(log(&follower), (565, 565, 605, 605, 40));
}

#[test]
fn an_empty_log_without_history_is_built_anew_whatever_it_says_of_its_start() {
    // spec: tiered-faults T4
    // Kafka was killed before it had written where the log starts: it says that nothing is before
    // its local log. It has nothing that could be lost.
    let whole = epochs(&[(0, 30), (2, 305)]);
    let mut source = leader(true, (30, 355, 605), 605, &[]);
    (source.leader_epoch, source.highest_remote_offset) = (2, 564);
    source.batches = (565..605).map(|offset| Batch { offset, epoch: 2 }).collect();
    source.remote = vec![PlainSegment { start_offset: 30, end_offset: 564, epochs: whole.clone() }];
    source.epochs = whole.clone();
    let mut left = PlainFollower::empty(TIERED);
    left.restart(565, 565);
    left.state = None;
    let mut follower = left.clone();
    follower.follow(2);
    assert_eq!(state(&follower).phase, Phase::Truncating);
    follower.poll(&source);
    assert_eq!(log(&follower), (30, 565, 565, 565, 0));
    assert_eq!((&follower.epochs, follower.snapshot), (&whole, Some(565)));

    // So does one that leaves it to the leader where to begin, and it fetches nothing before.
    let mut follower = left.clone();
    follower.step(&Event::NewLeader { leader_epoch: 2, initial_offset: -1 });
    assert_eq!((state(&follower).phase, state(&follower).fetch_offset), (Phase::Fetching, -1));
    follower.poll(&source);
    assert_eq!((&follower.epochs, follower.snapshot), (&whole, Some(565)));

    // Where the leader's log begins there, too, nothing is missing.
    let later = epochs(&[(2, 565)]);
    let source =
        PlainLeader { log_start_offset: 565, local_log_start_offset: 565, epochs: later, ..source };
    let mut follower = left;
    follower.follow(2);
    follower.poll(&source);
    assert_eq!((state(&follower).phase, state(&follower).fetch_offset), (Phase::Fetching, 565));
    follower.catch_up(&source);
    assert_eq!((log(&follower), follower.snapshot), ((565, 565, 605, 605, 40), None));
}

#[test]
fn a_log_that_is_cut_in_front_of_its_local_start_is_built_anew_before_it_takes_records() {
    // spec: follower-fetch 5.2; tiered-faults T4
    // It would have led without an epoch of what lies below 50, and had its segments deleted.
    let first = epochs(&[(0, 0)]);
    let segment = |end_offset| PlainSegment { start_offset: 0, end_offset, epochs: first.clone() };
    let mut elected = leader(true, (0, 30, 60), 60, &[]);
    elected.leader_epoch = 1;
    elected.epochs = epochs(&[(0, 0), (1, 50)]);
    let epoch_of = |offset| i32::from(offset >= 50);
    elected.batches = (30..60).map(|offset| Batch { offset, epoch: epoch_of(offset) }).collect();
    elected.remote = vec![segment(29), segment(79)];
    elected.highest_remote_offset = 29;
    for config in [REMOTE, TIERED] {
        let mut follower = PlainFollower::empty(config);
        follower.install(&segment(79), 0);
        (80..100).for_each(|offset| follower.append(Batch { offset, epoch: 0 }));
        follower.high_watermark = 100;
        follower.state = None;
        follower.follow(1);
        let action = follower.poll(&elected);
        assert!(matches!(action, Action::Truncate { offset: 50, .. }), "{action:?}");
        assert_eq!(log(&follower), (50, 50, 50, 50, 0));
        // The epochs are gone with the log, and it is no member before it has asked.
        let cut = state(&follower);
        assert_eq!((cut.last_fetched_epoch, cut.phase), (None, Phase::Truncating));
        let mut early = follower.clone();
        follower.poll(&elected);
        assert_eq!(log(&follower), (0, 30, 30, 30, 0));
        follower.catch_up(&elected);
        assert_eq!(log(&follower), (0, 30, 60, 60, 30));
        assert_eq!((&follower.batches, &follower.epochs), (&elected.batches, &elected.epochs));

        // One that fetches at once takes no records either.
        early.state = Some(FetchState { phase: Phase::Fetching, ..cut });
        early.poll(&elected);
        assert_eq!(log(&early), (0, 30, 30, 30, 0));
    }
}

#[test]
fn a_log_that_was_built_from_what_the_leader_has_not_is_built_anew_once_in_each_delay() {
    // spec: tiered-faults T4
    // An unclean election ended epoch 0 at 50, and the one segment of it reaches to 79. A follower
    // built itself from it, was cut at 50 and built itself again, as fast as it could.
    let segment = |start_offset, end_offset, of: &[(i32, i64)]| PlainSegment {
        start_offset,
        end_offset,
        epochs: epochs(of),
    };
    let mut elected = leader(true, (0, 30, 60), 60, &[]);
    elected.leader_epoch = 1;
    elected.epochs = epochs(&[(0, 0), (1, 50)]);
    let epoch_of = |offset| i32::from(offset >= 50);
    elected.batches = (30..60).map(|offset| Batch { offset, epoch: epoch_of(offset) }).collect();
    elected.remote = vec![segment(0, 79, &[(0, 0)])];
    elected.highest_remote_offset = 49;
    for config in [REMOTE, TIERED] {
        let mut follower = PlainFollower { state: None, ..PlainFollower::empty(config) };
        follower.follow(1);
        for _ in 0..5 {
            let mut builds = 0;
            while !state(&follower).delayed {
                follower.poll(&elected);
                builds += i32::from(follower.snapshot == Some(80) && follower.batches.is_empty());
                assert!(builds <= 1, "{follower:?}");
            }
            assert_eq!(follower.poll(&elected), Action::Ignore, "it waits");
            assert!(follower.batches.is_empty());
            follower.step(&Event::DelayOver);
        }
        // What the leader uploads next is what it waits for: in its own lineage, up to 54. A start
        // at the local log waits until that is gone from the leader's disk, too.
        let mut uploaded = elected.clone();
        uploaded.remote.push(segment(30, 54, &[(0, 0), (1, 50)]));
        uploaded.highest_remote_offset = 54;
        if config == REMOTE {
            uploaded.local_log_start_offset = 55;
        }
        for _ in 0..5 {
            follower.catch_up(&uploaded);
            if state(&follower).delayed {
                follower.step(&Event::DelayOver);
            }
        }
        assert_eq!(log(&follower), (0, 55, 60, 60, 5), "{config:?}");
        assert_eq!(follower.epochs, elected.epochs);
    }
}

#[test]
fn a_query_of_an_earlier_leader_epoch_that_failed_holds_nothing_up() {
    // spec: follower-fetch 5, F10 and F15
    let mut follower = fetching();
    follower.follow(5);
    let before = follower.clone();
    let failed = Event::QueryFailed { leader_epoch: 4, fenced: false };
    assert_eq!(follower.step(&failed), Action::Ignore);
    assert_eq!(follower, before);
    let fenced = follower.step(&Event::QueryFailed { leader_epoch: 4, fenced: true });
    assert!(matches!(fenced, Action::Delay { reason: RetryReason::OldLeaderEpoch, .. }));
    let failed = follower.step(&Event::QueryFailed { leader_epoch: 5, fenced: false });
    assert!(matches!(failed, Action::Delay { reason: RetryReason::QueryFailed, .. }));
}

#[test]
fn what_was_uploaded_of_a_log_that_is_cut_is_not_taken_for_what_comes_in_its_place() {
    // Records 4 to 9 were uploaded by a leader whose log an unclean election ended at 4. Others
    // came in their place, and went from the local disk as uploaded.
    let mut log = TestLog::with(|config| config.remote_storage = true);
    for _ in 0..10 {
        log.lead(&records(1));
    }
    log.log().update_highest_remote_offset(9);
    log.log().truncate_to(10, 0).unwrap();
    assert_eq!(log.log().highest_remote_offset(), 9, "nothing was cut");
    log.log().truncate_to(4, 0).unwrap();
    assert_eq!(log.log().highest_remote_offset(), 3);
    log.log().update_highest_remote_offset(1);
    assert_eq!(log.log().highest_remote_offset(), 3, "an upload does not lower it");
    log.log().truncate_fully_and_start_at(2, None, 0).unwrap();
    assert_eq!(log.log().highest_remote_offset(), 1);
}

#[test]
fn what_was_uploaded_is_forgotten_when_remote_storage_is_switched_off() {
    // What remote storage had is deleted then. When it was switched on again, local segments went
    // as uploaded, and their records were nowhere.
    let log = TestLog::with(|config| config.remote_storage = true);
    log.log().update_highest_remote_offset(7);
    let on = LogConfig::clone(&log.log().config());
    log.log().set_config(LogConfig { retention_ms: 1, ..on.clone() });
    assert_eq!(log.log().highest_remote_offset(), 7, "other settings do not matter");
    log.log().set_config(LogConfig { remote_storage: false, ..on.clone() });
    assert_eq!(log.log().highest_remote_offset(), -1);
    log.log().set_config(on);
    assert_eq!(log.log().highest_remote_offset(), -1);
}

#[test]
fn special_offsets_follow_the_leader_and_the_log_start() {
    // spec: tiered-behaviours RR12, RR16
    // Two records of epoch 0, four of epoch 1; all but the last two are uploaded and gone.
    let mut source = leader(true, (0, 4, 6), 6, &[4, 5]);
    (source.leader_epoch, source.highest_remote_offset) = (1, 3);
    source.epochs = epochs(&[(0, 0), (1, 2)]);
    let offsets = |source: &PlainLeader| {
        [EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, LATEST].map(|timestamp| {
            let reader = Isolation::HighWatermark;
            let answer = special_offset(&source.view(), timestamp, 11, reader, None);
            let answer = answer.unwrap().unwrap();
            (answer.offset, answer.leader_epoch)
        })
    };
    let e1 = Some(1);
    assert_eq!(offsets(&source), [(0, Some(0)), (4, e1), (3, e1), (6, e1)]);
    // All that is remote is deleted.
    source.log_start_offset = 4;
    source.epochs.truncate_from_start(4);
    assert_eq!(offsets(&source), [(4, e1), (4, e1), (3, None), (6, e1)]);
}
