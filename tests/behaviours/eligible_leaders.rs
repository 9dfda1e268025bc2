//! Eligible leader replicas: the vectors of elections and of the controller's events.

use siltstone::replica::elr::FIRST_LEVEL_WITHOUT_BUMP;
use siltstone::replica::isr::alter_errors;
use siltstone::replica::{
    AlterPartition, BadState, BrokerEvent, BrokerStatus, ChangeRequest, Election, ElectionRefusal,
    ElrIndex, ElrOptions, Partition, PartitionChange, clear_elr, effective_min_isr, merge_change,
    plan_broker_event, plan_election, plan_partition_change, validate_alter_partition,
};

const ON: ElrOptions = ElrOptions { elr: true, last_known_leader: true, bump_on_shrink: false };
/// Without the rule of the last known leader.
const BALANCED: ElrOptions = ElrOptions { last_known_leader: false, ..ON };
const OFF: ElrOptions = ElrOptions { elr: false, ..BALANCED };

fn partition(
    replicas: &[i32],
    isr: &[i32],
    elr: &[i32],
    last_known_elr: &[i32],
    leader: i32,
) -> Partition {
    Partition {
        replicas: replicas.to_vec(),
        isr: isr.to_vec(),
        elr: elr.to_vec(),
        last_known_elr: last_known_elr.to_vec(),
        leader,
        ..Partition::default()
    }
}

fn request(target_isr: Option<&[i32]>, election: Election, min_isr: usize) -> ChangeRequest {
    let target_isr = target_isr.map(<[i32]>::to_vec);
    ChangeRequest { target_isr, election, min_isr, ..ChangeRequest::default() }
}

fn some(set: &[i32]) -> Option<Vec<i32>> {
    Some(set.to_vec())
}

fn none() -> PartitionChange {
    PartitionChange::default()
}

#[test]
fn replicas_that_leave_below_min_isr_stay_eligible() {
    // spec: replication L1, L2, L4
    let not_3 = |replica| replica != 3;
    let full = partition(&[1, 2, 3, 4], &[1, 2, 3, 4], &[], &[], 1);
    let change = plan_partition_change(
        &full,
        &request(Some(&[1, 2]), Election::Online, 3),
        BALANCED,
        &not_3,
    );
    assert_eq!(change, Some(PartitionChange { isr: some(&[1, 2]), elr: some(&[3, 4]), ..none() }));

    let below = partition(&[1, 2, 3, 4], &[1, 2], &[3], &[4], 1);
    let change = plan_partition_change(
        &below,
        &request(Some(&[1, 2, 3]), Election::Online, 3),
        BALANCED,
        &not_3,
    );
    let cleared = PartitionChange {
        isr: some(&[1, 2, 3]),
        elr: some(&[]),
        last_known_elr: some(&[]),
        ..none()
    };
    assert_eq!(change, Some(cleared));

    let lost = partition(&[1, 2, 3, 4], &[1], &[2, 3], &[], 1);
    let unclean = ChangeRequest { unclean: vec![3], ..request(None, Election::Online, 3) };
    let change = plan_partition_change(&lost, &unclean, BALANCED, &not_3);
    let expected = PartitionChange { elr: some(&[2]), last_known_elr: some(&[3]), ..none() };
    assert_eq!(change, Some(expected));
}

#[test]
fn an_eligible_replica_leads_without_loss() {
    // spec: replication L5
    for (options, last_known) in [(ON, &[][..]), (BALANCED, &[2])] {
        let partition = partition(&[1, 2, 3, 4], &[1], &[3], last_known, 1);
        let change = plan_partition_change(
            &partition,
            &request(Some(&[]), Election::Preferred, 3),
            options,
            &|replica| replica != 1,
        );
        let expected =
            PartitionChange { leader: Some(3), isr: some(&[3]), elr: some(&[1]), ..none() };
        assert_eq!(change, Some(expected));
    }
}

#[test]
fn the_last_leader_is_remembered_once() {
    // spec: replication L6, L11
    let full = partition(&[1, 2, 3, 4], &[1, 2, 3, 4], &[], &[], 1);
    let nobody = |_| false;
    let change =
        plan_partition_change(&full, &request(Some(&[]), Election::Online, 3), ON, &nobody);
    let expected = PartitionChange {
        leader: Some(-1),
        isr: some(&[]),
        elr: some(&[1, 2, 3, 4]),
        last_known_elr: some(&[1]),
        ..none()
    };
    assert_eq!(change, Some(expected.clone()));
    let leaderless = merge_change(&full, &expected).unwrap();
    let unclean = ChangeRequest { unclean: vec![2], ..request(None, Election::Online, 3) };
    let change = plan_partition_change(&leaderless, &unclean, ON, &nobody);
    assert_eq!(change, Some(PartitionChange { elr: some(&[1, 3, 4]), ..none() }));

    let alone = partition(&[1, 2, 3], &[1], &[2], &[], 1);
    let change = plan_partition_change(&alone, &request(None, Election::Preferred, 3), ON, &nobody);
    let expected = PartitionChange { leader: Some(-1), last_known_elr: some(&[1]), ..none() };
    assert_eq!(change, Some(expected));
}

#[test]
fn the_last_leader_leads_again_when_nobody_is_eligible() {
    // spec: replication L8, L10
    let partition = partition(&[1, 2, 3, 4], &[], &[], &[1], -1);
    let change =
        plan_partition_change(&partition, &request(None, Election::Preferred, 3), ON, &|_| true);
    let expected = PartitionChange {
        leader: Some(1),
        isr: some(&[1]),
        last_known_elr: some(&[]),
        recovering: Some(true),
        ..none()
    };
    assert_eq!(change, Some(expected));
    for election in [Election::Preferred, Election::Online, Election::Unclean] {
        let change = plan_partition_change(&partition, &request(None, election, 3), ON, &|_| false);
        assert_eq!(change, None);
    }
}

#[test]
fn an_unclean_election_clears_what_was_eligible() {
    // spec: replication L12, L13
    let only_1 = |replica| replica == 1;
    let unclean = request(None, Election::Unclean, 2);
    let expected =
        PartitionChange { leader: Some(1), isr: some(&[1]), recovering: Some(true), ..none() };
    let eligible = partition(&[2, 1, 3], &[], &[3], &[2], -1);
    let change = plan_partition_change(&eligible, &unclean, ON, &only_1);
    let cleared = PartitionChange { elr: some(&[]), last_known_elr: some(&[]), ..expected.clone() };
    assert_eq!(change, Some(cleared));
    let plain = partition(&[2, 1, 3], &[3], &[], &[], -1);
    assert_eq!(plan_partition_change(&plain, &unclean, OFF, &only_1), Some(expected));
}

#[test]
fn each_kind_of_election_finds_its_leader() {
    // spec: replication L14
    let partition = partition(&[2, 1, 3], &[2, 1, 3], &[], &[], 1);
    for options in [ON, BALANCED, OFF] {
        let leader = |isr, election| {
            let change = plan_partition_change(
                &partition,
                &request(isr, election, 2),
                options,
                &|replica| replica != 3,
            );
            let change = change.unwrap_or_default();
            (change.leader.unwrap_or(1), change.recovering == Some(true))
        };
        assert_eq!(leader(None, Election::Preferred), (2, false));
        assert_eq!(leader(None, Election::Online), (1, false));
        assert_eq!(leader(None, Election::Unclean), (1, false));
        assert_eq!(leader(Some(&[1, 3]), Election::Online), (1, false));
        assert_eq!(leader(Some(&[3]), Election::Online), (-1, false));
        assert_eq!(leader(Some(&[3]), Election::Unclean), (2, true));
    }
}

#[test]
fn a_reassignment_ends_when_all_new_replicas_are_in_sync() {
    // spec: replication L15; tiered-behaviours RP20
    let moving = Partition {
        adding: vec![2, 3],
        removing: vec![0, 1],
        ..partition(&[2, 3, 0, 1], &[0, 1], &[], &[], 0)
    };
    let plan = |isr: &[i32], is_ok: &dyn Fn(i32) -> bool| {
        plan_partition_change(&moving, &request(Some(isr), Election::Online, 1), OFF, is_ok)
            .unwrap()
    };
    let done = PartitionChange {
        replicas: some(&[2, 3]),
        isr: some(&[2, 3]),
        adding: some(&[]),
        removing: some(&[]),
        leader: Some(-1),
        ..none()
    };
    assert_eq!(plan(&[0, 1, 2, 3], &|_| false), done);
    let led = PartitionChange { leader: Some(2), ..done };
    assert_eq!(plan(&[0, 1, 2, 3], &|_| true), led);
    let merged = merge_change(&moving, &led).unwrap();
    assert_eq!((merged.replicas, merged.adding, merged.removing), (vec![2, 3], vec![], vec![]));
    // Not yet.
    assert_eq!(plan(&[0, 1, 2], &|_| true), PartitionChange { isr: some(&[0, 1, 2]), ..none() });
}

#[test]
fn a_leader_that_recovers_goes_on_recovering_after_it_was_away() {
    // spec: replication L16
    for options in [ON, OFF] {
        let recovering = Partition { recovering: true, ..partition(&[1, 2], &[1], &[], &[], 1) };
        let event = |partition: &Partition, event| {
            let change =
                plan_broker_event(partition, 1, event, (Election::Online, 1), options, &|_| false);
            merge_change(partition, &change.unwrap()).unwrap()
        };
        let away = event(&recovering, BrokerEvent::Fenced);
        assert_eq!((away.leader, away.recovering), (-1, true));
        let back = event(&away, BrokerEvent::Unfenced);
        assert_eq!((back.leader, back.recovering, back.isr), (1, true, vec![1]));
    }
}

/// A partition, and the brokers that are there.
struct Cluster {
    partition: Partition,
    min_isr: usize,
    fenced: Vec<i32>,
}

impl Cluster {
    fn new(replicas: &[i32], min_isr: usize) -> Self {
        let partition = partition(replicas, replicas, &[], &[], replicas[0]);
        Cluster { partition, min_isr, fenced: Vec::new() }
    }

    fn apply(&mut self, change: Option<PartitionChange>) {
        if let Some(change) = change {
            self.partition = merge_change(&self.partition, &change).unwrap();
        }
    }

    fn event(&mut self, broker: i32, event: BrokerEvent) {
        let fenced = self.fenced.clone();
        let is_ok = |replica| !fenced.contains(&replica);
        let rule = (Election::Online, self.min_isr);
        let change = plan_broker_event(&self.partition, broker, event, rule, ON, &is_ok);
        self.apply(change);
        self.fenced.retain(|&other| other != broker);
        if event != BrokerEvent::Unfenced {
            self.fenced.push(broker);
        }
    }

    fn fence(&mut self, brokers: &[i32]) {
        brokers.iter().for_each(|&broker| self.event(broker, BrokerEvent::Fenced));
    }

    fn alter(&mut self, isr: &[i32]) {
        let fenced = self.fenced.clone();
        let is_ok = |replica| !fenced.contains(&replica);
        let wanted = request(Some(isr), Election::Online, self.min_isr);
        let change = plan_partition_change(&self.partition, &wanted, ON, &is_ok);
        self.apply(change);
    }
}

#[test]
fn eligible_replicas_come_and_go_with_the_isr() {
    // spec: replication G1, G2
    let mut cluster = Cluster::new(&[0, 1, 2], 2);
    cluster.alter(&[0]);
    assert_eq!(cluster.partition.elr, [1, 2]);
    cluster.alter(&[0, 1]);
    assert!(cluster.partition.elr.is_empty());

    let mut cluster = Cluster::new(&[0, 1, 2], 3);
    cluster.fence(&[1, 2]);
    assert_eq!((&cluster.partition.isr[..], &cluster.partition.elr[..]), (&[0][..], &[1, 2][..]));
    // A controlled shutdown of the last one.
    cluster.fence(&[0]);
    assert_eq!((cluster.partition.isr.len(), &cluster.partition.elr[..]), (0, &[0, 1, 2][..]));
    assert_eq!((cluster.partition.leader, &cluster.partition.last_known_elr[..]), (-1, &[0][..]));
}

#[test]
fn unfencing_clears_nothing_and_an_unclean_restart_does() {
    // spec: replication G3, G5
    let mut cluster = Cluster::new(&[0, 1, 2, 3], 3);
    cluster.fence(&[2, 3]);
    assert_eq!(cluster.partition.elr, [3]);
    cluster.fence(&[1]);
    assert_eq!(cluster.partition.elr, [1, 3]);
    for broker in [1, 2, 3] {
        cluster.event(broker, BrokerEvent::Unfenced);
    }
    assert_eq!(cluster.partition.elr, [1, 3]);

    let mut cluster = Cluster::new(&[0, 1, 2, 3], 3);
    cluster.fence(&[1, 2, 3]);
    assert_eq!(cluster.partition.elr, [2, 3]);
    cluster.event(3, BrokerEvent::RestartedUnclean);
    assert_eq!((&cluster.partition.elr[..], cluster.partition.leader), (&[2][..], 0));
    cluster.event(0, BrokerEvent::RestartedUnclean);
    let Partition { elr, last_known_elr, .. } = &cluster.partition;
    assert_eq!((&elr[..], &last_known_elr[..]), (&[2][..], &[0][..]));
    assert_eq!((cluster.partition.leader, cluster.partition.isr.len()), (-1, 0));
    // The eligible one comes back, and leads without loss.
    cluster.event(2, BrokerEvent::Unfenced);
    assert_eq!((cluster.partition.leader, &cluster.partition.isr[..]), (2, &[2][..]));
    assert!(!cluster.partition.recovering && cluster.partition.last_known_elr.is_empty());
}

#[test]
fn events_concern_the_partitions_that_they_are_about() {
    // spec: replication 4.4
    let eligible = partition(&[0, 1, 2], &[0], &[1], &[], 0);
    let plan = |broker, event| {
        plan_broker_event(&eligible, broker, event, (Election::Online, 2), ON, &|_| true)
    };
    assert_eq!(plan(1, BrokerEvent::Fenced), None);
    assert_eq!(plan(1, BrokerEvent::RestartedClean), None, "it keeps what it held");
    assert_eq!(plan(1, BrokerEvent::Unfenced), None);
    assert_eq!(plan(2, BrokerEvent::RestartedUnclean), None);
    let gone = plan(1, BrokerEvent::RestartedUnclean).unwrap();
    assert_eq!(gone.elr, some(&[]));
}

#[test]
fn elections_on_request_are_held_where_they_change_something() {
    // spec: replication 4.4
    let led = partition(&[1, 2], &[1, 2], &[], &[], 2);
    let plan = |partition: &Partition, election, is_ok: &dyn Fn(i32) -> bool| {
        plan_election(partition, election, 1, ON, is_ok)
    };
    assert_eq!(plan(&led, Election::Preferred, &|_| true).unwrap().leader, Some(1));
    let refused = plan(&led, Election::Preferred, &|replica| replica == 2);
    assert_eq!(refused, Err(ElectionRefusal::PreferredNotAvailable));
    assert_eq!(plan(&led, Election::Unclean, &|_| true), Err(ElectionRefusal::NotNeeded));
    let preferred = Partition { leader: 1, ..led.clone() };
    let refused = plan(&preferred, Election::Preferred, &|_| true);
    assert_eq!(refused.unwrap_err().code(), 84);
    let leaderless = Partition { leader: -1, ..led };
    assert_eq!(plan(&leaderless, Election::Unclean, &|_| false).unwrap_err().code(), 83);
    assert_eq!(ElectionRefusal::PreferredNotAvailable.code(), 80);
}

#[test]
fn clearing_changes_only_where_there_is_something() {
    // spec: replication G7, G8
    assert_eq!(clear_elr(&partition(&[0, 1], &[0], &[], &[], 0)), None);
    let eligible = partition(&[0, 1, 2], &[0], &[1, 2], &[3], 0);
    let change = clear_elr(&eligible).unwrap();
    let cleared = merge_change(&eligible, &change).unwrap();
    assert_eq!((cleared.elr, cleared.last_known_elr), (vec![], vec![]));
    assert_eq!((cleared.partition_epoch, cleared.leader_epoch), (1, 0));

    let mut index = ElrIndex::default();
    index.update(("topic", 0), &[], &[1, 2]);
    index.update(("topic", 1), &[], &[2]);
    assert_eq!(index.partitions_of(2).collect::<Vec<_>>(), [("topic", 0), ("topic", 1)]);
    assert_eq!(index.partitions_of(3).count(), 0);
    index.update(("topic", 0), &[1, 2], &[]);
    index.update(("topic", 1), &[2], &[]);
    assert!(index.is_empty());
    assert_eq!(effective_min_isr(5, 3), 3);
}

#[test]
fn a_shrink_bumps_the_leader_epoch_of_older_clusters() {
    // spec: tiered-behaviours RP17
    // 3.4-IV0, 3.5-IV2, 3.6-IV0 and a later one.
    for (level, bumps) in [(8, true), (11, true), (12, false), (25, false)] {
        let options = ElrOptions { bump_on_shrink: level < FIRST_LEVEL_WITHOUT_BUMP, ..OFF };
        let full = partition(&[1, 2], &[1, 2], &[], &[], 1);
        let shrink = request(Some(&[1]), Election::Online, 1);
        let change = plan_partition_change(&full, &shrink, options, &|_| true).unwrap();
        assert_eq!(change.leader, bumps.then_some(1), "level {level}");
        let merged = merge_change(&full, &change).unwrap();
        assert_eq!((merged.leader_epoch, merged.partition_epoch), (i32::from(bumps), 1));
    }
}

#[test]
fn a_request_that_changes_nothing_makes_no_record() {
    // spec: tiered-behaviours RP19
    let full = partition(&[1, 2], &[1, 2], &[], &[], 1);
    for election in [Election::Preferred, Election::Online, Election::Unclean] {
        assert_eq!(plan_partition_change(&full, &request(None, election, 2), ON, &|_| true), None);
    }
}

#[test]
fn a_change_that_makes_no_sense_is_refused() {
    let full = partition(&[1, 2], &[1, 2], &[], &[], 1);
    let led_by = |leader| PartitionChange { leader: Some(leader), ..none() };
    assert_eq!(merge_change(&full, &led_by(3)), Err(BadState::LeaderIsNoReplica));
    let change = PartitionChange { isr: some(&[2]), ..none() };
    assert_eq!(merge_change(&full, &change), Err(BadState::LeaderIsNotInSync));
    assert_eq!(merge_change(&full, &led_by(-1)).unwrap().leader_epoch, 1);
}

#[test]
fn the_controller_checks_a_request_in_order() {
    // spec: tiered-behaviours RP13, RP15, RP16; replication 3
    let led = Partition {
        leader_epoch: 5,
        partition_epoch: 7,
        ..partition(&[1, 2, 3], &[1, 2], &[], &[], 1)
    };
    let alive = BrokerStatus { epoch: Some(100), fenced: false, shutting_down: false };
    let good = AlterPartition {
        broker: 1,
        leader_epoch: 5,
        partition_epoch: 7,
        isr: vec![(1, 100), (2, 100), (3, -1)],
        recovering: false,
    };
    let check = |request: &AlterPartition| validate_alter_partition(&led, request, |_| alive);
    assert_eq!(check(&good), Ok(()));
    let with = |change: &dyn Fn(&mut AlterPartition)| {
        let mut request = good.clone();
        change(&mut request);
        check(&request).unwrap_err()
    };
    let newer = with(&|it| (it.partition_epoch, it.broker) = (8, 2));
    assert_eq!(newer, alter_errors::NOT_CONTROLLER);
    assert_eq!(with(&|it| it.leader_epoch = 6), alter_errors::NOT_CONTROLLER);
    let older = with(&|it| (it.leader_epoch, it.broker) = (4, 2));
    assert_eq!(older, alter_errors::FENCED_LEADER_EPOCH);
    let foreign = with(&|it| (it.broker, it.partition_epoch) = (2, 6));
    assert_eq!(foreign, alter_errors::INVALID_REQUEST);
    let behind = with(&|it| (it.partition_epoch, it.isr) = (6, vec![]));
    assert_eq!(behind, alter_errors::INVALID_UPDATE_VERSION);
    for isr in [vec![], vec![(2, -1)], vec![(1, -1), (9, -1)], vec![(1, -1), (1, -1)]] {
        assert_eq!(with(&|it| it.isr.clone_from(&isr)), alter_errors::INVALID_REQUEST);
    }
    // However many members are said, few are looked at.
    let many = with(&|it| it.isr = vec![(1, -1); 300_000]);
    assert_eq!(many, alter_errors::INVALID_REQUEST);
    assert_eq!(with(&|it| it.recovering = true), alter_errors::INVALID_REQUEST);
    let alone = |recovering| AlterPartition { isr: vec![(1, -1)], recovering, ..good.clone() };
    assert_eq!(check(&alone(true)), Err(alter_errors::INVALID_REQUEST), "it had recovered");
    let recovering = Partition { recovering: true, ..led.clone() };
    assert_eq!(validate_alter_partition(&recovering, &alone(true), |_| alive), Ok(()));

    for bad in [
        BrokerStatus { fenced: true, ..alive },
        BrokerStatus { shutting_down: true, ..alive },
        BrokerStatus { epoch: None, ..alive },
        BrokerStatus { epoch: Some(101), ..alive },
    ] {
        let broker = |id| if id == 2 { bad } else { alive };
        let refused = validate_alter_partition(&led, &good, broker);
        assert_eq!(refused, Err(alter_errors::INELIGIBLE_REPLICA), "{bad:?}");
    }
}
