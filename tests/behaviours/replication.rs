//! High watermark, in-sync and eligible leader replicas: the vectors of KIP-966.

use siltstone::replica::isr::alter_errors;
use siltstone::replica::{
    AcksVerdict, AlterAnswer, AlterOutcome, BrokerStatus, ExpandVerdict, FollowerFetch,
    HighWatermarkChange, InSyncReplicas, IsrChange, LeaderMoment, PartitionLeader,
    PartitionMetadata, StaleBrokerEpoch, acks_before_append, acks_verdict, effective_min_isr,
    follower_high_watermark, low_watermark,
};

const LEADER: i32 = 1;
const A: i32 = 2;
const B: i32 = 3;

/// A broker that is registered with epoch 100.
const ALIVE: BrokerStatus = BrokerStatus { epoch: Some(100), fenced: false, shutting_down: false };

/// A leader with a log and a clock.
struct Node {
    state: PartitionLeader,
    moment: LeaderMoment,
    brokers: Vec<(i32, BrokerStatus)>,
}

fn metadata(replicas: &[i32], isr: &[i32], epochs: (i32, i32)) -> PartitionMetadata {
    PartitionMetadata {
        leader: LEADER,
        leader_epoch: epochs.0,
        partition_epoch: epochs.1,
        replicas: replicas.to_vec(),
        isr: isr.to_vec(),
    }
}

impl Node {
    /// A new leader of a log of `end` records, at time 0.
    fn new(replicas: &[i32], isr: &[i32], min_isr: i32, end: i64) -> Self {
        let state = PartitionLeader::new(&metadata(replicas, isr, (5, 1)), min_isr, end, 0);
        let (now_ms, lag_max_ms) = (0, 30_000);
        let moment = LeaderMoment { log_end_offset: end, high_watermark: 0, now_ms, lag_max_ms };
        Node { state, moment, brokers: Vec::new() }
    }

    fn broker(&self, id: i32) -> BrokerStatus {
        self.brokers.iter().find(|broker| broker.0 == id).map_or(ALIVE, |broker| broker.1)
    }

    fn advance(&mut self) -> HighWatermarkChange {
        let change = self.state.advance(&self.moment, |id| self.broker(id));
        if let HighWatermarkChange::Advance { high_watermark, .. } = change {
            self.moment.high_watermark = high_watermark;
        }
        change
    }

    fn fetch_as(&mut self, replica: i32, offset: i64, broker_epoch: i64) {
        let fetch = FollowerFetch {
            offset,
            log_start_offset: 0,
            broker_epoch,
            now_ms: self.moment.now_ms,
            leader_log_end_offset: self.moment.log_end_offset,
        };
        let (broker, high_watermark) = (self.broker(replica), self.moment.high_watermark);
        self.state.record_fetch(replica, &fetch, broker, high_watermark).expect("a broker of now");
        self.advance();
    }

    fn fetch(&mut self, replica: i32, offset: i64) {
        self.fetch_as(replica, offset, 100);
    }

    fn append(&mut self, count: i64) {
        self.moment.log_end_offset += count;
        self.advance();
    }

    /// What the controller is asked for.
    fn proposed(&self) -> Option<Vec<i32>> {
        self.state.isr.proposed()
    }

    /// The controller makes the change in flight.
    fn confirm(&mut self) {
        let isr = self.proposed().expect("a change in flight");
        let partition_epoch = self.state.isr.partition_epoch() + 1;
        let leader_epoch = self.state.leader_epoch;
        let answer = AlterAnswer::Ok { leader_epoch, partition_epoch, isr };
        assert_eq!(self.answer(answer), AlterOutcome::Committed);
        self.advance();
    }

    fn answer(&mut self, answer: AlterAnswer) -> AlterOutcome {
        let sent = self.state.isr.change().expect("a change in flight").clone();
        let leader_epoch = self.state.leader_epoch;
        let partition_epoch = self.state.isr.partition_epoch();
        self.state.isr.apply(&sent, leader_epoch, partition_epoch, answer)
    }

    /// Committed set, size of the maximal one, high watermark.
    fn seen(&self) -> (&[i32], usize, i64) {
        let isr = &self.state.isr;
        (isr.committed(), isr.maximal_count(), self.moment.high_watermark)
    }

    fn caught_up_ms(&self, replica: i32) -> i64 {
        let mut followers = self.state.followers.iter();
        followers.find(|it| it.replica == replica).expect("a follower").last_caught_up_ms
    }
}

#[test]
fn the_high_watermark_waits_until_the_controller_confirms_the_last_member() {
    // spec: replication H1
    let mut node = Node::new(&[LEADER, A, B], &[LEADER, A], 3, 10);
    node.fetch(A, 10);
    assert_eq!(node.seen(), (&[LEADER, A][..], 2, 0));
    node.fetch(B, 10);
    assert_eq!(node.seen(), (&[LEADER, A][..], 3, 0));
    assert_eq!(node.proposed(), Some(vec![LEADER, A, B]));
    assert_eq!(node.advance(), HighWatermarkChange::UnderMinIsr);
    assert!(node.state.is_under_min_isr());
    node.confirm();
    assert_eq!(node.state.isr.partition_epoch(), 2);
    assert_eq!(node.seen(), (&[LEADER, A, B][..], 3, 10));
    assert!(!node.state.is_under_min_isr());
}

#[test]
fn a_follower_that_has_caught_up_is_waited_for_unless_it_is_fenced() {
    // spec: replication H2, H4
    for fenced in [true, false] {
        let mut node = Node::new(&[LEADER, A], &[LEADER, A], 1, 10);
        node.fetch(A, 10);
        assert_eq!(node.moment.high_watermark, 10);
        node.append(10);
        node.brokers = vec![(A, BrokerStatus { fenced, ..ALIVE })];
        let shrunk = metadata(&[LEADER, A], &[LEADER], (5, 2));
        assert!(node.state.update(&shrunk, 20, 0));
        let change = node.advance();
        if fenced {
            assert_eq!(node.moment.high_watermark, 20);
        } else {
            assert_eq!(change, HighWatermarkChange::Held { by: Some(A) });
            assert_eq!(node.moment.high_watermark, 10);
        }
    }
}

#[test]
fn a_follower_that_never_fetches_leaves_after_the_lag_limit() {
    // spec: replication H5, H6
    let mut node = Node::new(&[LEADER, A, B], &[LEADER, A, B], 1, 10);
    node.fetch(A, 10);
    assert!(!node.state.shrink(&node.moment), "as if it had caught up at the beginning");
    node.moment.now_ms = 30_000;
    assert!(!node.state.shrink(&node.moment), "the limit itself is no lag");
    node.moment.now_ms = 30_001;
    assert!(node.state.shrink(&node.moment));
    assert_eq!(node.proposed(), Some(vec![LEADER, A]));
    node.advance();
    assert_eq!(node.seen(), (&[LEADER, A, B][..], 3, 0));
    node.confirm();
    assert_eq!(node.seen(), (&[LEADER, A][..], 2, 10));
}

#[test]
fn a_follower_joins_once_it_has_all_that_is_committed() {
    // spec: replication H7
    let mut node = Node::new(&[LEADER, A], &[LEADER], 1, 10);
    node.fetch(A, 3);
    assert_eq!((node.proposed(), node.seen().1), (None, 1));
    node.fetch(A, 10);
    assert_eq!(node.proposed(), Some(vec![LEADER, A]));
    assert_eq!((node.seen().0, node.seen().1), (&[LEADER][..], 2));
    node.confirm();
    assert_eq!((node.seen().0, node.seen().1), (&[LEADER, A][..], 2));
}

#[test]
fn a_follower_that_is_always_one_fetch_behind_counts_as_caught_up() {
    // spec: replication H9
    let mut node = Node::new(&[LEADER, A], &[LEADER, A], 1, 10);
    node.moment.lag_max_ms = 10_000;
    node.moment.now_ms = 5_000;
    node.fetch(A, 5);
    assert_eq!((node.caught_up_ms(A), node.moment.high_watermark), (0, 5));
    node.append(5);
    node.moment.now_ms = 10_001;
    node.fetch(A, 10);
    assert_eq!((node.caught_up_ms(A), node.moment.high_watermark), (5_000, 10));
    assert!(!node.state.shrink(&node.moment));
}

#[test]
fn a_follower_at_the_log_end_never_lags() {
    // spec: replication H10
    let mut node = Node::new(&[LEADER, A], &[LEADER, A], 1, 10);
    node.fetch(A, 10);
    node.moment.now_ms = 30_001;
    assert!(!node.state.shrink(&node.moment));
}

#[test]
fn a_follower_must_have_reached_the_epoch_of_its_leader() {
    // spec: replication H11
    let mut node = Node::new(&[LEADER, A, B], &[LEADER, B], 1, 5);
    node.moment.high_watermark = 2;
    // It loses the leadership, and gets it again.
    node.state = PartitionLeader::new(&metadata(&[LEADER, A, B], &[LEADER, B], (7, 3)), 1, 5, 0);
    assert_eq!(node.state.leader_epoch_start_offset, 5);
    for offset in [0, 1, 2, 4] {
        node.fetch(A, offset);
        assert_eq!(node.proposed(), None, "{offset}");
    }
    node.fetch(A, 5);
    assert_eq!(node.proposed(), Some(vec![LEADER, B, A]));
}

#[test]
fn min_isr_is_no_more_than_there_are_replicas() {
    // spec: replication H14, H15, H17, G9
    let mut node = Node::new(&[LEADER, A], &[LEADER, A], 2, 0);
    assert!(!node.state.is_under_min_isr());
    assert!(node.state.update(&metadata(&[LEADER, A], &[LEADER], (5, 2)), 0, 0));
    assert!(node.state.is_under_min_isr());
    assert!(Node::new(&[LEADER, A, B], &[LEADER], 1, 0).state.is_at_min_isr());
    assert_eq!(effective_min_isr(5, 3), 3);
    assert_eq!(Node::new(&[LEADER, A, B], &[LEADER], 5, 0).state.effective_min_isr(), 3);
}

#[test]
fn a_log_is_opened_with_the_checkpoint_as_far_as_it_goes() {
    // spec: replication 2.2, 2.3
    assert_eq!(follower_high_watermark(4, 0, 6), 4);
    assert_eq!(follower_high_watermark(9, 0, 6), 6);
    assert_eq!(follower_high_watermark(0, 3, 6), 3);
    assert_eq!(low_watermark(5, [7, 3, 9].into_iter()), 3);
    assert_eq!(low_watermark(5, [].into_iter()), 5);
}

#[test]
fn a_shrink_in_flight_does_not_release_the_high_watermark() {
    // spec: tiered-behaviours RP1
    let mut node = Node::new(&[LEADER, A], &[LEADER, A], 1, 10);
    node.fetch(A, 4);
    node.moment.now_ms = 30_001;
    assert!(node.state.shrink(&node.moment));
    assert_eq!(node.proposed(), Some(vec![LEADER]));
    assert_eq!(node.advance(), HighWatermarkChange::Held { by: Some(A) });
    assert_eq!(node.moment.high_watermark, 4);
    node.confirm();
    assert_eq!(node.moment.high_watermark, 10);
}

/// A leader whose request to add A is in flight.
fn expanding() -> Node {
    let mut node = Node::new(&[LEADER, A, B], &[LEADER], 1, 10);
    node.fetch(A, 10);
    assert_eq!(node.proposed(), Some(vec![LEADER, A]));
    node
}

#[test]
fn answers_that_metadata_will_explain_are_waited_on() {
    // spec: tiered-behaviours RP3
    for code in [
        alter_errors::NEW_LEADER_ELECTED,
        alter_errors::UNKNOWN_TOPIC_OR_PARTITION,
        alter_errors::INVALID_UPDATE_VERSION,
        alter_errors::UNKNOWN_TOPIC_ID,
        alter_errors::FENCED_LEADER_EPOCH,
        alter_errors::INVALID_REQUEST,
    ] {
        let mut node = expanding();
        assert_eq!(node.answer(AlterAnswer::Error(code)), AlterOutcome::Waiting);
        assert_eq!(node.proposed(), Some(vec![LEADER, A]));
        // Newer metadata ends it.
        node.state.update(&metadata(&[LEADER, A, B], &[LEADER], (5, 2)), 10, 0);
        assert_eq!(node.proposed(), None);
    }
    for code in [alter_errors::OPERATION_NOT_ATTEMPTED, alter_errors::INELIGIBLE_REPLICA] {
        let mut node = expanding();
        assert_eq!(node.answer(AlterAnswer::Error(code)), AlterOutcome::Reverted);
        assert_eq!((node.proposed(), node.seen().0), (None, &[LEADER][..]));
    }
}

#[test]
fn an_error_that_nobody_expected_has_the_same_request_sent_again() {
    // spec: tiered-behaviours RP4
    let mut node = expanding();
    let before = node.state.clone();
    for code in [-1, 7, 41] {
        assert_eq!(node.answer(AlterAnswer::Error(code)), AlterOutcome::Retry);
        assert_eq!(node.state, before);
    }
    node.confirm();
    assert_eq!(node.seen().0, [LEADER, A]);
}

#[test]
fn answers_of_another_epoch_or_about_another_change_are_dropped() {
    // spec: replication 3
    let mut node = expanding();
    let ok = |leader_epoch, partition_epoch| {
        let isr = vec![LEADER, A];
        AlterAnswer::Ok { leader_epoch, partition_epoch, isr }
    };
    for answer in [ok(4, 2), ok(6, 2), ok(5, 0)] {
        assert_eq!(node.answer(answer), AlterOutcome::Ignored);
        assert_eq!(node.seen().0, [LEADER]);
    }
    let other = IsrChange::Expand(B);
    assert_eq!(node.state.isr.apply(&other, 5, 1, ok(5, 2)), AlterOutcome::Ignored);
    node.state.update(&metadata(&[LEADER, A, B], &[LEADER], (5, 3)), 10, 0);
    let late = node.state.isr.apply(&IsrChange::Expand(A), 5, 1, ok(5, 3));
    assert_eq!((late, node.seen().0), (AlterOutcome::Ignored, &[LEADER][..]));
}

#[test]
fn an_answer_to_the_first_try_is_none_to_the_second() {
    // spec: replication 3, "state changed meanwhile"
    let mut node = expanding();
    let sent = IsrChange::Expand(A);
    // Metadata ends the change, and the follower is put forward again.
    node.state.update(&metadata(&[LEADER, A, B], &[LEADER], (5, 2)), 10, 0);
    node.fetch(A, 10);
    assert_eq!(node.state.isr.change(), Some(&sent));
    let refused = || AlterAnswer::Error(alter_errors::INELIGIBLE_REPLICA);
    assert_eq!(node.state.isr.apply(&sent, 5, 1, refused()), AlterOutcome::Ignored);
    assert_eq!(node.state.isr.change(), Some(&sent), "it still is on its way");
    assert_eq!(node.state.isr.apply(&sent, 5, 2, refused()), AlterOutcome::Reverted);
}

#[test]
fn a_follower_that_has_not_fetched_holds_nothing_back() {
    // spec: replication 2.1, eligible
    // The clock begins at 0, so that it counts as caught up.
    let mut node = Node::new(&[LEADER, A], &[LEADER], 1, 10);
    node.advance();
    assert_eq!((node.moment.high_watermark, node.proposed()), (10, None));
    let follower = node.state.followers[0];
    let verdict = node.state.isr.expand_verdict(&follower, ALIVE, -1, -1);
    assert_eq!(verdict, ExpandVerdict::NotEligible);
    // A fetch without a broker epoch is one all the same.
    node.append(5);
    node.fetch_as(A, 15, -1);
    assert_eq!(node.proposed(), Some(vec![LEADER, A]));
}

#[test]
fn one_change_is_in_flight_at_a_time() {
    // spec: tiered-behaviours RP5
    let mut node = expanding();
    node.fetch(B, 10);
    assert_eq!(node.state.isr.change(), Some(&IsrChange::Expand(A)));
    node.moment.now_ms = 60_000;
    assert!(!node.state.shrink(&node.moment));
    node.confirm();
    node.fetch(B, 10);
    assert_eq!(node.proposed(), Some(vec![LEADER, A, B]));
}

#[test]
fn a_follower_that_is_leaving_is_not_added() {
    // spec: tiered-behaviours RP7
    for broker in [
        BrokerStatus { fenced: true, ..ALIVE },
        BrokerStatus { shutting_down: true, ..ALIVE },
        BrokerStatus { epoch: None, ..ALIVE },
        // Its fetches come with epoch 100, which is not registered yet.
        BrokerStatus { epoch: Some(99), ..ALIVE },
    ] {
        let mut node = Node::new(&[LEADER, A], &[LEADER], 1, 10);
        node.brokers = vec![(A, broker)];
        node.fetch(A, 10);
        assert_eq!(node.proposed(), None, "{broker:?}");
        node.brokers.clear();
        node.fetch(A, 10);
        assert_eq!(node.proposed(), Some(vec![LEADER, A]));
    }
}

#[test]
fn a_fetch_of_an_earlier_life_changes_nothing() {
    // spec: tiered-behaviours RP8
    let mut node = Node::new(&[LEADER, A], &[LEADER], 1, 10);
    node.fetch(A, 4);
    let before = node.state.clone();
    let fetch = FollowerFetch {
        offset: 10,
        log_start_offset: 0,
        broker_epoch: 99,
        now_ms: 1,
        leader_log_end_offset: 10,
    };
    let refused = node.state.record_fetch(A, &fetch, ALIVE, 0);
    assert_eq!(refused.map_err(StaleBrokerEpoch::code), Err(6), "NOT_LEADER_OR_FOLLOWER");
    assert_eq!(node.state, before);
}

#[test]
fn a_fetch_that_says_no_broker_epoch_is_accepted() {
    // spec: tiered-behaviours RP9
    let mut node = Node::new(&[LEADER, A], &[LEADER], 1, 10);
    node.fetch_as(A, 10, -1);
    assert_eq!(node.proposed(), Some(vec![LEADER, A]));
    assert_eq!(node.state.proposed_with_epochs(77), Some(vec![(LEADER, 77), (A, -1)]));
    let mut node = expanding();
    assert_eq!(node.state.proposed_with_epochs(77), Some(vec![(LEADER, 77), (A, 100)]));
    node.state.update(&metadata(&[LEADER, A, B], &[LEADER, B], (5, 2)), 10, 0);
    node.fetch(A, 10);
    let with_epochs = node.state.proposed_with_epochs(77);
    assert_eq!(with_epochs, Some(vec![(LEADER, 77), (B, -1), (A, 100)]));
}

#[test]
fn metadata_of_the_same_leader_epoch_keeps_what_is_known_of_followers() {
    // spec: tiered-behaviours RP11
    let mut node = Node::new(&[LEADER, A], &[LEADER, A], 1, 10);
    node.fetch(A, 7);
    node.append(5);
    let followers = node.state.followers.clone();
    assert!(node.state.update(&metadata(&[LEADER, A], &[LEADER], (5, 2)), 15, 9));
    assert_eq!(node.state.leader_epoch_start_offset, 10);
    assert_eq!(node.state.followers, followers);
    // Older metadata is no news.
    assert!(!node.state.update(&metadata(&[LEADER, A], &[LEADER, A], (5, 1)), 15, 9));
    assert_eq!(node.seen().0, [LEADER]);
    // The same leader, elected again, keeps the log ends.
    assert!(node.state.update(&metadata(&[LEADER, A], &[LEADER], (6, 3)), 15, 9));
    assert_eq!(node.state.leader_epoch_start_offset, 15);
    assert_eq!(node.state.followers[0].log_end_offset, 7);
    assert_eq!(node.caught_up_ms(A), 0, "it is not in sync");
}

#[test]
fn a_replica_that_leads_anew_knows_nothing_of_its_followers() {
    let node = Node::new(&[LEADER, A, B], &[LEADER, A], 1, 10);
    let ends: Vec<i64> = node.state.followers.iter().map(|it| it.log_end_offset).collect();
    assert_eq!(ends, [-1, -1]);
    assert!(InSyncReplicas::default().committed().is_empty());
}

#[test]
fn producers_are_told_what_is_committed() {
    // spec: replication 2.1
    let isr = |count: i32| InSyncReplicas::new((0..count).collect(), 0);
    for acks in [0, 1] {
        assert_eq!(acks_before_append(acks, &isr(1), 2), None);
        assert_eq!(acks_verdict(acks, &isr(1), 2, 0, 5), AcksVerdict::Done);
    }
    assert_eq!(acks_before_append(-1, &isr(1), 2), Some(AcksVerdict::Refuse));
    assert_eq!(acks_before_append(-1, &isr(2), 2), None);
    assert_eq!(acks_verdict(-1, &isr(2), 2, 4, 5), AcksVerdict::Wait);
    assert_eq!(acks_verdict(-1, &isr(2), 2, 5, 5), AcksVerdict::Done);
    assert_eq!(acks_verdict(-1, &isr(1), 2, 5, 5), AcksVerdict::DoneUnderReplicated);
    // A replica that is about to be added counts.
    let mut joining = isr(1);
    assert!(joining.propose(IsrChange::Expand(9)) && !joining.propose(IsrChange::Expand(8)));
    assert_eq!(acks_verdict(-1, &joining, 2, 5, 5), AcksVerdict::Done);
}
