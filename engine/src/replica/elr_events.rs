//! What happens to partitions when brokers come and go, and when somebody asks for an election?

use std::collections::{BTreeMap, BTreeSet};

use super::elr::{
    ChangeRequest, Election, ElrOptions, NO_LEADER, Partition, PartitionChange,
    plan_partition_change,
};

/// What happened to a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokerEvent {
    /// It was fenced, or asked for a controlled shutdown.
    Fenced,
    /// It was unfenced.
    Unfenced,
    /// It was unregistered.
    Unregistered,
    /// A new life of it registered, after a clean stop.
    RestartedClean,
    /// A new life of it registered, and what was not on its disk is lost.
    RestartedUnclean,
}

/// What becomes of a partition when something happens to `broker`; none when the partition is not
/// concerned. `election` is [`Election::Unclean`] where the topic allows it.
#[must_use]
pub fn plan_broker_event(
    partition: &Partition,
    broker: i32,
    event: BrokerEvent,
    (election, min_isr): (Election, usize),
    options: ElrOptions,
    is_ok: &dyn Fn(i32) -> bool,
) -> Option<PartitionChange> {
    // spec: replication 4.4
    let in_isr = partition.isr.contains(&broker);
    let in_elr = partition.elr.contains(&broker);
    let is_unclean = event == BrokerEvent::RestartedUnclean && options.elr;
    let is_visited = match event {
        BrokerEvent::Fenced | BrokerEvent::RestartedClean => in_isr,
        BrokerEvent::Unfenced => partition.leader == NO_LEADER,
        BrokerEvent::Unregistered => in_isr || in_elr,
        BrokerEvent::RestartedUnclean => in_isr || (options.elr && in_elr),
    };
    if !is_visited {
        return None;
    }
    let leaves = event != BrokerEvent::Unfenced;
    let isr = partition.isr.iter().copied().filter(|&replica| !leaves || replica != broker);
    let request = ChangeRequest {
        target_isr: Some(isr.collect()),
        unclean: if is_unclean { vec![broker] } else { Vec::new() },
        election,
        min_isr,
        recovering: None,
    };
    let is_there =
        |replica| if replica == broker { event == BrokerEvent::Unfenced } else { is_ok(replica) };
    plan_partition_change(partition, &request, options, &is_there)
}

/// Why an election was not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionRefusal {
    /// `ELECTION_NOT_NEEDED`.
    NotNeeded,
    /// `PREFERRED_LEADER_NOT_AVAILABLE`.
    PreferredNotAvailable,
    /// `ELIGIBLE_LEADERS_NOT_AVAILABLE`.
    EligibleNotAvailable,
}

impl ElectionRefusal {
    /// Its number on the wire.
    #[must_use]
    pub fn code(self) -> i16 {
        match self {
            Self::PreferredNotAvailable => 80,
            Self::EligibleNotAvailable => 83,
            Self::NotNeeded => 84,
        }
    }
}

/// The outcome of an ElectLeaders request, which asks for the preferred leader, or for an unclean
/// election.
///
/// # Errors
/// When there is nothing to do, or nobody to be elected.
pub fn plan_election(
    partition: &Partition,
    election: Election,
    min_isr: usize,
    options: ElrOptions,
    is_ok: &dyn Fn(i32) -> bool,
) -> Result<PartitionChange, ElectionRefusal> {
    // spec: replication 4.4
    let is_unclean = election == Election::Unclean;
    let has_wanted = if is_unclean {
        partition.leader != NO_LEADER
    } else {
        partition.replicas.first() == Some(&partition.leader)
    };
    if has_wanted {
        return Err(ElectionRefusal::NotNeeded);
    }
    let request = ChangeRequest { election, min_isr, ..ChangeRequest::default() };
    plan_partition_change(partition, &request, options, is_ok).ok_or(if is_unclean {
        ElectionRefusal::EligibleNotAvailable
    } else {
        ElectionRefusal::PreferredNotAvailable
    })
}

/// What a change of `min.insync.replicas` does: the sets that were made under the old value are
/// emptied. None where they are empty, so that the partition epoch stays.
#[must_use]
pub fn clear_elr(partition: &Partition) -> Option<PartitionChange> {
    // spec: replication 4.4
    let emptied = |set: &Vec<i32>| (!set.is_empty()).then(Vec::new);
    let change = PartitionChange {
        elr: emptied(&partition.elr),
        last_known_elr: emptied(&partition.last_known_elr),
        ..PartitionChange::default()
    };
    (change != PartitionChange::default()).then_some(change)
}

/// Which partitions a broker is an eligible leader of, so that its restart visits those alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElrIndex<K: Ord + Copy> {
    partitions: BTreeMap<i32, BTreeSet<K>>,
}

impl<K: Ord + Copy> ElrIndex<K> {
    /// Takes note of a partition's set before and after; an empty one when it is made or deleted.
    pub fn update(&mut self, partition: K, before: &[i32], after: &[i32]) {
        for replica in before {
            if let Some(partitions) = self.partitions.get_mut(replica) {
                partitions.remove(&partition);
            }
        }
        for &replica in after {
            self.partitions.entry(replica).or_default().insert(partition);
        }
        self.partitions.retain(|_, partitions| !partitions.is_empty());
    }

    /// The partitions that a broker is an eligible leader of.
    pub fn partitions_of(&self, broker: i32) -> impl Iterator<Item = K> + '_ {
        self.partitions.get(&broker).into_iter().flatten().copied()
    }

    /// Whether there is none at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }
}
