//! What a leader answers, and what its follower does then, row by row: sections 2 and 5 of
//! follower-fetch.

use siltstone::replica::{
    Action, AppendFailure, AuxFailure, AuxTarget, Event, FailReason, FetchAnswer, FetchError,
    FetchRequest, FetchState, FetchVerdict, LeaderAnswers, Phase, Query, Reader, RetryReason,
    follower_step, leader_fetch_verdict,
};
use siltstone_tests::live::{TestLog, records};
use siltstone_tests::replicas::{Batch, PlainFollower, PlainLeader, epochs};

use crate::tiered_follower::{
    PLAIN, REMOTE, TIERED, fetching, lagging, leader, log, response, state, vector,
};

/// A leader of epoch 4 with offsets from 10 to 40, those below 20 in remote storage alone and those
/// below 30 there, too.
fn serving() -> PlainLeader {
    PlainLeader {
        leader_epoch: 4,
        highest_remote_offset: 29,
        epochs: epochs(&[(1, 10), (2, 25), (4, 30)]),
        ..leader(true, (10, 20, 40), 35, &[])
    }
}

/// The verdict on a follower's fetch.
fn ask(leader: &PlainLeader, fetch_offset: i64, epoch: i32, last: Option<i32>) -> FetchVerdict {
    let fetch = FetchRequest {
        reader: Reader::Follower,
        fetch_offset,
        leader_epoch: Some(epoch),
        last_fetched_epoch: last,
    };
    leader_fetch_verdict(&leader.view(), &fetch)
}

/// The number on the wire of a refusal.
fn refused(verdict: FetchVerdict) -> i16 {
    match verdict {
        FetchVerdict::Refuse(error) => error.code(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_row_of_a_leader_is_answered_as_it_says() {
    // spec: follower-fetch L1, L2, L3, L4, L5, L6, L7, L8, L9
    let it = serving();
    // L1, L2: before anything else is looked at.
    for (offset, last) in [(30, None), (99, None), (9, Some(9)), (15, Some(1))] {
        assert_eq!(refused(ask(&it, offset, 3, last)), 74, "{offset}");
        assert_eq!(refused(ask(&it, offset, 5, last)), 75, "{offset}");
    }
    // L3: an epoch newer than all, and none.
    for last in [5, i32::MAX, -1] {
        assert_eq!(refused(ask(&it, 30, 4, Some(last))), 1, "{last}");
    }
    // L4: also where the epochs part. Between the starts it goes on to L5.
    let diverging = |epoch, end_offset| FetchVerdict::Diverging { epoch, end_offset };
    for last in [1, 3] {
        assert_eq!(refused(ask(&it, 9, 4, Some(last))), 1, "{last}");
    }
    assert_eq!(ask(&it, 15, 4, Some(0)), diverging(0, 10));
    // L5: an epoch that the leader does not have, and one that ended earlier.
    assert_eq!(ask(&it, 28, 4, Some(3)), diverging(2, 30));
    assert_eq!(ask(&it, 35, 4, Some(2)), diverging(2, 30));
    assert_eq!(ask(&it, 26, 4, Some(1)), diverging(1, 25));
    // L6, L9
    for offset in [-1, 9, 41, i64::MAX] {
        assert_eq!(refused(ask(&it, offset, 4, None)), 1, "{offset}");
    }
    // L7: with and without an epoch that agrees.
    let moved = FetchVerdict::MovedToTieredStorage {
        high_watermark: 35,
        log_start_offset: 10,
        log_end_offset: 40,
    };
    for (offset, last) in [(10, None), (19, None), (15, Some(1))] {
        assert_eq!(ask(&it, offset, 4, last), moved, "{offset}");
    }
    // L8: what is uploaded and still on the disk is served from there.
    let served = FetchVerdict::Serve { high_watermark: 35, log_start_offset: 10 };
    for (offset, last) in [(20, None), (29, Some(2)), (40, Some(4))] {
        assert_eq!(ask(&it, offset, 4, last), served, "{offset}");
    }
    // Without remote storage there is no L7.
    let off = PlainLeader { remote_storage: false, ..it };
    assert_eq!(ask(&off, 15, 4, None), served);
}

#[test]
fn records_are_appended_up_to_the_epoch_that_is_followed() {
    // spec: follower-fetch F1
    let known = LeaderAnswers::default();
    let mut follower = fetching();
    let answer = FetchAnswer::Records { high_watermark: 9, log_start_offset: 1 };
    let event = response(&follower, answer, &known);
    assert_eq!(follower.step(&event), Action::Append { last_epoch: 4 });
    let real = TestLog::new();
    let mut bytes = records(1).epoch(4).build();
    bytes.extend(records(1).at(1).epoch(5).build());
    real.log().append_as_follower(&bytes, 4, real.now_ms).unwrap();
    assert_eq!((real.log().log_end_offset(), real.log().latest_epoch()), (1, Some(4)));

    follower.append(Batch { offset: 3, epoch: 4 });
    let appended = |leader_high_watermark, leader_log_start_offset| Event::Appended {
        leader_high_watermark,
        leader_log_start_offset,
    };
    follower.step(&appended(9, 1));
    assert_eq!(log(&follower), (1, 1, 4, 4, 3));
    let after = state(&follower);
    assert_eq!((after.fetch_offset, after.lag, after.last_fetched_epoch), (4, Some(5), Some(4)));
    // Never below the log start, which never goes back.
    follower.step(&appended(0, 0));
    assert_eq!((log(&follower), state(&follower).lag), ((1, 1, 4, 1, 3), Some(0)));
}

#[test]
fn a_follower_that_parted_cuts_its_log_and_nothing_else() {
    // spec: follower-fetch F2
    for (high_watermark, (epoch, end_offset), cut, last, left) in [
        // Both know the epoch.
        (0, (2, 1), 1, Some(0), 0),
        (2, (2, 2), 2, Some(2), 2),
        // The follower does not: to the end of the one below, and it goes on fetching.
        (1, (3, 3), 2, Some(2), 1),
        // The leader knows nothing: to what is committed.
        (2, (-1, -1), 2, Some(2), 2),
    ] {
        let known = LeaderAnswers::default();
        let mut follower = fetching();
        follower.high_watermark = high_watermark;
        let before = state(&follower);
        let event = response(&follower, FetchAnswer::Diverging { epoch, end_offset }, &known);
        let cut_state = FetchState { fetch_offset: cut, last_fetched_epoch: last, ..before };
        assert_eq!(follower.step(&event), Action::Truncate { offset: cut, state: cut_state });
        assert_eq!(cut_state.phase, Phase::Fetching);
        assert_eq!(log(&follower).0, 0);
        assert_eq!((follower.log_end_offset, follower.high_watermark), (cut, left));
    }
}

/// What is asked of a leader after an answer, and the action in the end.
fn asked(
    follower: &PlainFollower,
    leader: &PlainLeader,
    answer: FetchAnswer,
) -> (Vec<Query>, Action) {
    let (mut known, mut queries) = (LeaderAnswers::default(), Vec::new());
    loop {
        match follower_step(&follower.view(), &response(follower, answer, &known)) {
            Action::Ask(query) => {
                assert!(!queries.contains(&query), "twice: {query:?}");
                queries.push(query);
                leader.view().answer(query, &mut known);
            }
            action => return (queries, action),
        }
    }
}

fn build_aux(start: i64, epoch: i32, log_start_offset: i64, leader_end: i64) -> Action {
    let target = AuxTarget { start_offset: start, epoch, previous_offset: start - 1 };
    Action::BuildAux { target, log_start_offset, leader_log_end_offset: leader_end }
}

#[test]
fn an_empty_follower_starts_where_uploads_end_after_one_question_each() {
    // spec: follower-fetch F3, F7
    use Query::{Earliest, EarliestLocal, EarliestPendingUpload, Latest};
    let follower = PlainFollower::empty(TIERED);
    for (bounds, answer) in [
        ((10, 10, 200), FetchAnswer::OutOfRange),
        ((0, 100, 200), FetchAnswer::MovedToTieredStorage),
    ] {
        let source = vector(bounds, &[], 199, 150).leader();
        let (queries, action) = asked(&follower, &source, answer);
        assert_eq!(queries, [Latest, Earliest, EarliestPendingUpload]);
        assert_eq!(action, build_aux(150, 0, bounds.0, 200));
    }
    // The first local offset is asked for only where the leader does not know.
    let source = vector((0, 100, 200), &[], 199, -1).leader();
    let (queries, _) = asked(&follower, &source, FetchAnswer::MovedToTieredStorage);
    assert_eq!(queries[..3], [Latest, Earliest, EarliestPendingUpload]);
    assert_eq!(queries[3], EarliestLocal);
}

#[test]
fn a_follower_out_of_range_is_cut_or_begins_anew_or_goes_on() {
    // spec: follower-fetch F4, F5, F6
    use Query::{Earliest, Latest};
    for config in [PLAIN, REMOTE, TIERED] {
        let mut follower = PlainFollower::holding(config, &[0, 2, 4]);
        follower.follow(4);
        let before = state(&follower);
        let source = |start, end| leader(config.remote_storage, (start, start, end), end, &[]);
        let out_of_range = FetchAnswer::OutOfRange;
        // The leader ends earlier.
        let (queries, action) = asked(&follower, &source(0, 2), out_of_range);
        let cut =
            FetchState { lag: Some(0), fetch_offset: 2, last_fetched_epoch: Some(2), ..before };
        assert_eq!((queries, action), (vec![Latest], Action::Truncate { offset: 2, state: cut }));
        // It starts later.
        let (queries, action) = asked(&follower, &source(7, 11), out_of_range);
        let anew = FetchState { lag: Some(4), fetch_offset: 7, last_fetched_epoch: None, ..before };
        assert_eq!(queries, [Latest, Earliest]);
        assert_eq!(action, Action::Restart { offset: 7, state: anew });
        let mut restarted = follower.clone();
        restarted.high_watermark = 1;
        restarted.restart(7, 7);
        assert_eq!(log(&restarted), (7, 7, 7, 7, 0));
        // It has what comes next after all.
        for start in [1, 3] {
            let (queries, action) = asked(&follower, &source(start, 11), out_of_range);
            assert_eq!(queries, [Latest, Earliest]);
            assert_eq!(action, Action::Adopt(FetchState { lag: Some(8), ..before }));
        }
    }
}

#[test]
fn a_follower_with_records_starts_at_the_local_log_of_its_leader() {
    // spec: follower-fetch F8
    use Query::{Earliest, EarliestLocal, EpochEnd, Latest};
    let (mut follower, source) = lagging(5, 0);
    for config in [REMOTE, TIERED] {
        follower.config = config;
        let (queries, action) = asked(&follower, &source, FetchAnswer::MovedToTieredStorage);
        assert_eq!(queries, [Latest, Earliest, EarliestLocal, EpochEnd { epoch: 4 }]);
        assert_eq!(action, build_aux(5, 4, 0, 9));
    }
}

#[test]
fn a_follower_of_an_old_epoch_is_out_until_it_hears_of_a_leader() {
    // spec: follower-fetch F9
    let known = LeaderAnswers::default();
    let fetch = response(&fetching(), FetchAnswer::Fenced, &known);
    let query = Event::QueryFailed { leader_epoch: 4, fenced: true };
    for event in [fetch, query, Event::AuxFailed(AuxFailure::Fenced)] {
        let mut follower = fetching();
        assert_eq!(follower.step(&event), Action::Fail(FailReason::Fenced));
        assert_eq!((follower.state, follower.log_end_offset), (None, 3));
        assert_eq!(follower.step(&event), Action::Ignore);
        follower.follow(5);
        assert_eq!((state(&follower).leader_epoch, state(&follower).fetch_offset), (5, 3));
    }
}

#[test]
fn an_error_while_a_log_is_rebuilt_changes_nothing() {
    // spec: follower-fetch F14
    let failed = |failure| Event::AuxFailed(failure);
    for (event, reason) in [
        (failed(AuxFailure::NotReady), RetryReason::RemoteNotReady),
        (failed(AuxFailure::SegmentNotFound), RetryReason::SegmentNotFound),
        (failed(AuxFailure::Storage), RetryReason::RemoteStorage),
        (Event::QueryFailed { leader_epoch: 4, fenced: false }, RetryReason::QueryFailed),
    ] {
        let mut follower = fetching();
        let before = follower.clone();
        let Action::Delay { reason: found, state: waiting } = follower.step(&event) else {
            panic!("{event:?}")
        };
        assert_eq!((found, waiting.delayed), (reason, true));
        let was = state(&before);
        // A start that led nowhere is not tried again at once; nothing else is another.
        let FetchState { delayed, tiered_start_failed, .. } = was;
        assert_eq!(FetchState { delayed, tiered_start_failed, ..waiting }, was);
        assert_eq!((log(&follower), &follower.epochs), (log(&before), &before.epochs));
    }
    // A disk that fails is another matter.
    let mut follower = fetching();
    let failed = Event::LogFailed(AppendFailure::Storage);
    assert_eq!(follower.step(&failed), Action::Fail(FailReason::Storage));
}

#[test]
fn a_new_leader_is_followed_from_where_the_log_ends() {
    // spec: follower-fetch F15, F16, F17, F18
    // The same epoch again.
    let mut follower = fetching();
    follower.state = Some(FetchState { lag: Some(7), delayed: true, ..state(&follower) });
    let before = follower.clone();
    assert_eq!(follower.follow(4), Action::Adopt(state(&before)));
    assert_eq!(follower, before);

    // It is left to the leader: as if the follower's offset were out of range.
    for source in [
        leader(false, (0, 0, 2), 2, &[0, 1]),
        leader(false, (7, 7, 11), 11, &[7]),
        leader(false, (1, 1, 11), 11, &[1]),
    ] {
        let source = PlainLeader { leader_epoch: 4, ..source };
        let (_, expected) = asked(&fetching(), &source, FetchAnswer::OutOfRange);
        let mut follower = PlainFollower::holding(PLAIN, &[0, 2, 4]);
        follower.step(&Event::NewLeader { leader_epoch: 4, initial_offset: -1 });
        assert_eq!((state(&follower).phase, state(&follower).fetch_offset), (Phase::Fetching, -1));
        let verdict = ask(&source, -1, 4, state(&follower).last_fetched_epoch);
        assert_eq!(verdict, FetchVerdict::Refuse(FetchError::OffsetOutOfRange));
        let (_, action) = asked(&follower, &source, FetchAnswer::OutOfRange);
        assert_eq!(action, expected);
    }

    // It knows an epoch.
    let mut follower = PlainFollower::holding(PLAIN, &[0, 2, 4]);
    follower.high_watermark = 1;
    follower.follow(9);
    let now = state(&follower);
    assert_eq!((now.phase, now.fetch_offset, now.leader_epoch), (Phase::Fetching, 3, 9));
    assert_eq!((now.last_fetched_epoch, now.lag, now.delayed), (Some(4), None, false));

    // It knows none: first to what is committed.
    let mut follower = PlainFollower::holding(PLAIN, &[0, 0, 0]);
    follower.epochs = epochs(&[]);
    follower.high_watermark = 2;
    follower.follow(9);
    let now = state(&follower);
    assert_eq!((now.phase, now.fetch_offset), (Phase::Truncating, 2));
    follower.poll(&PlainLeader { leader_epoch: 9, ..leader(false, (0, 0, 3), 3, &[]) });
    assert_eq!((follower.log_end_offset, follower.high_watermark), (2, 2));
    assert_eq!((state(&follower).phase, state(&follower).fetch_offset), (Phase::Fetching, 2));
}
