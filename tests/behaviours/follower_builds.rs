//! How a replica is built from remote storage, step by step, and where that departs from the texts
//! of KIP-405 and KIP-1023: sections 5.3 and 6 of follower-fetch.

use siltstone::log::Isolation;
use siltstone::log::timestamps::{EARLIEST_PENDING_UPLOAD, LATEST_TIERED};
use siltstone::replica::{
    Action, AuxFailure, AuxTarget, EpochEnd, Event, FetchAnswer, FetchState, FollowerConfig,
    LeaderAnswers, OffsetAndEpoch, Phase, Query, RetryReason, aux_target, follower_step,
    should_start_at_tiered, special_offset,
};
use siltstone::tier::{
    AuxErrorKind, MetadataCache, RemoteSegment, RemoteSegmentState, RemoteSegmentUpdate,
};
use siltstone_tests::live::{TestLog, records};
use siltstone_tests::remote::{Remote, segment};
use siltstone_tests::replicas::{PlainFollower, PlainLeader, PlainSegment, epochs};

use crate::tiered_follower::{PLAIN, REMOTE, TIERED, leader, log, response, state, vector};
use crate::tiered_rebuild::build;

#[test]
fn a_log_without_remote_storage_is_not_built_from_it() {
    // spec: follower-fetch K0, K3
    let known = LeaderAnswers::default();
    let plain = PlainFollower::empty(PLAIN);
    let event = response(&plain, FetchAnswer::MovedToTieredStorage, &known);
    let waits = FetchState { delayed: true, ..state(&plain) };
    let delay = |reason| Action::Delay { reason, state: waits };
    assert_eq!(follower_step(&plain.view(), &event), delay(RetryReason::RemoteStorageOff));
    // It is no good asking the engine to, either.
    let mut leader = TestLog::with(|config| config.remote_storage = true);
    leader.lead(&records(1));
    leader.log().roll(leader.now_ms).unwrap();
    let remote = Remote::default();
    let segment = remote.upload(&leader, 1);
    let mut off = TestLog::new();
    off.lead(&records(3));
    let error = build(&off, &remote, &segment, 0).unwrap_err();
    assert_eq!(error.kind(), AuxErrorKind::NotReady);
    assert_eq!((off.log().local_log_start_offset(), off.log().log_end_offset()), (0, 3));

    // What is known of remote segments is not there yet.
    let mut follower = PlainFollower::empty(REMOTE);
    let before = log(&follower);
    let not_ready = Event::AuxFailed(AuxFailure::NotReady);
    assert_eq!(follower.step(&not_ready), delay(RetryReason::RemoteNotReady));
    assert_eq!(log(&follower), before);
}

#[test]
fn the_segment_is_the_one_with_the_record_before_the_start() {
    // spec: follower-fetch K1, K2
    let target = |start_offset: i64, epoch| {
        Ok(AuxTarget { start_offset, epoch, previous_offset: start_offset - 1 })
    };
    let reply = |asked, epoch, end_offset| Some(EpochEnd { asked, epoch, end_offset });
    assert_eq!(aux_target(90, 0, None), target(90, 0));
    for (start, epoch) in [(90, 3), (1, 1), (i64::MAX, i32::MAX)] {
        assert_eq!(aux_target(start, epoch, None), Err(Query::EpochEnd { epoch: epoch - 1 }));
    }
    // Epochs (0,20)(1,85)(3,90)(4,98); nothing was written in epoch 2.
    let list = epochs(&[(0, 20), (1, 85), (3, 90), (4, 98)]);
    let answer = |asked| {
        let (epoch, end_offset) = list.end_offset_for(asked, 120);
        reply(asked, epoch, end_offset)
    };
    assert_eq!(answer(2), reply(2, 1, 90));
    assert_eq!(aux_target(90, 3, answer(2)), target(90, 1));
    assert_eq!(aux_target(91, 3, answer(2)), target(91, 3));
    assert_eq!(aux_target(98, 4, answer(3)), target(98, 3));
    assert_eq!(aux_target(99, 4, answer(3)), target(99, 4));
}

#[test]
fn only_a_segment_that_was_copied_to_its_end_is_built_from() {
    // spec: follower-fetch K4
    use RemoteSegmentState::{CopyFinished, CopyStarted, DeleteStarted};
    let finished = segment(0, 0, 149, &[(0, 0), (1, 85)]);
    let mut cache = MetadataCache::new(finished.id.partition.clone());
    cache.mark_loaded();
    cache.add(RemoteSegment { state: CopyStarted, ..finished.clone() }).unwrap();
    let found = |cache: &MetadataCache| {
        [(0, 84), (1, 85), (1, 149), (0, 85), (1, 84), (1, 150), (2, 149)]
            .map(|(epoch, offset)| cache.segment(epoch, offset).is_some())
    };
    let follower = TestLog::with(|config| config.remote_storage = true);
    let remote = Remote::default();
    for (state, is_found) in [(CopyStarted, false), (CopyFinished, true), (DeleteStarted, false)] {
        if state != CopyStarted {
            let id = finished.id.clone();
            let (event_timestamp_ms, custom_metadata, broker_id) = (0, None, 1);
            let update =
                RemoteSegmentUpdate { id, event_timestamp_ms, custom_metadata, state, broker_id };
            cache.update(&update).unwrap();
        }
        let [a, b, c, others @ ..] = found(&cache);
        assert_eq!((a, b, c, others), (is_found, is_found, is_found, [false; 4]), "{state:?}");
        if !is_found {
            let segment = RemoteSegment { state, ..finished.clone() };
            let error = build(&follower, &remote, &segment, 0).unwrap_err();
            assert_eq!(error.kind(), AuxErrorKind::SegmentNotFound);
        }
    }
    // Nothing is changed, and it is tried again.
    let mut waiting = PlainFollower::empty(REMOTE);
    let not_found = Event::AuxFailed(AuxFailure::SegmentNotFound);
    let Action::Delay { reason, state } = waiting.step(&not_found) else { panic!("a delay") };
    assert_eq!((reason, state.fetch_offset), (RetryReason::SegmentNotFound, 0));
    assert_eq!(follower.log().log_end_offset(), 0);
}

/// What a leader uploaded of 9 records, five of a producer in epoch 0 and four others in epoch 2.
fn uploaded() -> (Remote, RemoteSegment) {
    let mut leader = TestLog::with(|config| config.remote_storage = true);
    leader.lead(&records(5).producer(7, 0, 0));
    for _ in 0..4 {
        leader.try_lead(&records(1), 2).unwrap();
    }
    leader.log().roll(leader.now_ms).unwrap();
    leader.replicate();
    let remote = Remote::default();
    let segment = remote.upload(&leader, 9);
    (remote, segment)
}

#[test]
fn a_log_that_is_built_begins_behind_its_segment_with_what_was_uploaded() {
    // spec: follower-fetch K5, K6, K7, K8, K9
    let (remote, segment) = uploaded();
    let mut follower = TestLog::with(|config| config.remote_storage = true);
    // What it has counts for nothing: records, epochs and producers.
    follower.try_lead(&records(2).producer(8, 0, 0), 1).unwrap();
    follower.log().roll(follower.now_ms).unwrap();
    // It wanted to start at 6, in the middle of the segment.
    let installed = build(&follower, &remote, &segment, 3).unwrap();
    assert_eq!((installed.next_offset, installed.producer_count), (9, 1));
    let it = follower.log();
    assert_eq!((it.log_start_offset(), it.local_log_start_offset()), (3, 9));
    assert_eq!((it.log_end_offset(), it.high_watermark()), (9, 9));
    let bases: Vec<i64> = it.segments().iter().map(|segment| segment.base_offset()).collect();
    assert_eq!(bases, [9]);
    // Whole, as the object has them: also of offsets before the log start.
    assert_eq!(it.leader_epochs().entries(), epochs(&[(0, 0), (2, 5)]).entries());
    let files: Vec<String> =
        follower.files().into_iter().filter(|name| name.ends_with("snapshot")).collect();
    assert_eq!(files, ["00000000000000000009.snapshot"]);
    assert!(!follower.files().iter().any(|name| name.ends_with(".tmp")));
    // The producer is known by its last batch, and the other is not.
    let again = follower.try_lead(&records(5).producer(7, 0, 0), 3).unwrap();
    assert_eq!((again.first_offset, follower.log().log_end_offset()), (Some(0), 9));
    let next = follower.try_lead(&records(1).producer(7, 0, 5), 3).unwrap();
    assert_eq!(next.first_offset, Some(9));

    // Fetching goes on there.
    let mut plain = PlainFollower::empty(REMOTE);
    plain.state = None;
    plain.follow(3);
    let built = epochs(&[(0, 0), (2, 5)]);
    plain.install(&PlainSegment { start_offset: 0, end_offset: 8, epochs: built }, 3);
    plain.step(&Event::AuxInstalled { leader_log_end_offset: 21 });
    let after = state(&plain);
    assert_eq!((after.fetch_offset, after.lag, after.phase), (9, Some(12), Phase::Fetching));
    assert_eq!((after.last_fetched_epoch, after.leader_epoch), (Some(2), 3));
}

/// The answer to a special timestamp: its offset, or `None`.
fn listed(source: &PlainLeader, timestamp: i64) -> Option<(i64, Option<i32>)> {
    let answer = special_offset(&source.view(), timestamp, 11, Isolation::LogEnd, None).unwrap();
    answer.map(|answer| (answer.offset, answer.leader_epoch))
}

#[test]
fn a_leader_says_what_waits_to_be_uploaded_and_hides_nothing() {
    // spec: follower-fetch D1, D3, D11
    let at = |bounds, highest_remote_offset| PlainLeader {
        highest_remote_offset,
        ..leader(true, bounds, bounds.2, &[])
    };
    // The last that is tiered, and the one behind it.
    let some = at((0, 50, 200), 149);
    assert_eq!(listed(&some, LATEST_TIERED), Some((149, Some(0))));
    assert_eq!(listed(&some, EARLIEST_PENDING_UPLOAD), Some((150, Some(0))));
    // Nothing is uploaded: all of it waits. It does not know: -1.
    assert_eq!(listed(&at((10, 10, 200), -1), EARLIEST_PENDING_UPLOAD), Some((10, Some(0))));
    let unknown = at((10, 50, 200), -1);
    assert_eq!(listed(&unknown, EARLIEST_PENDING_UPLOAD), Some((-1, Some(-1))));
    // All is uploaded: Kafka hides that, and its follower waits for the next record.
    let all = at((0, 6, 6), 5);
    assert_eq!(listed(&all, EARLIEST_PENDING_UPLOAD), Some((6, Some(0))));
    assert_eq!(listed(&all, LATEST_TIERED), Some((5, Some(0))));

    // A follower of Kafka's leader, which answers -1 to all of these.
    let decide = |earliest: i64, local: i64, tiered: i64| {
        let pair = |offset, epoch| Some(OffsetAndEpoch { offset, epoch: Some(epoch) });
        let known = LeaderAnswers {
            latest: Some(6),
            earliest: Some(earliest),
            earliest_local: pair(local, 0),
            earliest_pending_upload: pair(-1, -1),
            latest_tiered: pair(tiered, if tiered < 0 { -1 } else { 0 }),
            epoch_end: None,
        };
        let follower = PlainFollower::empty(TIERED);
        follower_step(&follower.view(), &response(&follower, FetchAnswer::OutOfRange, &known))
    };
    let restarted = decide(2, 2, -1);
    assert!(matches!(restarted, Action::Restart { offset: 2, .. }), "{restarted:?}");
    let waits = decide(0, 6, -1);
    assert!(matches!(waits, Action::Delay { reason: RetryReason::OffsetNotAvailable, .. }));
    let Action::BuildAux { target, .. } = decide(0, 6, 5) else { panic!("a build") };
    assert_eq!((target.start_offset, target.previous_offset), (6, 5));
}

#[test]
fn the_shortcut_is_for_empty_followers_alone() {
    // spec: follower-fetch D2, D8, D9
    let open =
        |config: &FollowerConfig, end, leader_end| should_start_at_tiered(config, end, leader_end);
    assert!(open(&TIERED, 0, 5));
    assert!(!open(&TIERED, 1, 5) && !open(&TIERED, 0, 0));
    assert!(!open(&FollowerConfig { compacted: true, ..TIERED }, 0, 5));
    // Without it, which is also how a log in another directory follows, it is the local log that is
    // started at, by the same build.
    assert!(!open(&REMOTE, 0, 5));
    let source = vector((0, 100, 200), &[150], 199, 150).leader();
    let below = PlainSegment { end_offset: 99, ..source.remote[0].clone() };
    let source = PlainLeader { remote: vec![below], ..source };
    let mut follower = PlainFollower::empty(REMOTE);
    follower.poll(&source);
    assert_eq!((log(&follower), follower.snapshot), ((0, 100, 100, 100, 0), Some(100)));
}

#[test]
fn a_start_at_the_log_start_needs_nothing_of_remote_storage() {
    // spec: follower-fetch D4
    // Kafka's follower looks for the record before the log start, for ever.
    for (bounds, pending) in [((10, 10, 200), 10), ((10, 10, 200), 5), ((10, 5, 200), 10)] {
        let source = vector(bounds, &[], 199, pending).leader();
        let source = PlainLeader { remote: Vec::new(), ..source };
        let mut follower = PlainFollower::empty(TIERED);
        let action = follower.poll(&source);
        assert!(matches!(action, Action::Restart { offset: 10, .. }), "{action:?}");
        assert_eq!(log(&follower), (10, 10, 10, 10, 0));
    }
}

#[test]
fn a_segment_that_reaches_further_takes_its_epochs_along_and_no_more() {
    // spec: follower-fetch D5, D6
    // Another leader uploaded up to 159; the leader has a later epoch from 160 on.
    let list = epochs(&[(0, 0), (1, 85), (2, 160)]);
    let mut source = vector((20, 150, 200), &[], 199, 150).leader();
    (source.leader_epoch, source.epochs) = (2, list.clone());
    source.epochs.truncate_from_start(20);
    source.epochs.written();
    let mut whole = list;
    whole.truncate_from_end(160);
    whole.written();
    let remote = PlainSegment { start_offset: 0, end_offset: 159, epochs: whole.clone() };
    source.remote = vec![remote];
    let mut follower = PlainFollower::empty(TIERED);
    follower.state = Some(FetchState { leader_epoch: 2, ..state(&follower) });
    follower.poll(&source);
    assert_eq!((log(&follower), state(&follower).fetch_offset), ((20, 160, 160, 160, 0), 160));
    // Epoch 0 begins at 0, though the log starts at 20.
    assert_eq!(follower.epochs, whole);
    assert_eq!(follower.epochs.entries(), epochs(&[(0, 0), (1, 85)]).entries());
}
