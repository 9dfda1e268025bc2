//! May the leader of a partition change who is in sync? The controller's side.

use super::elr::Partition;
use super::follower_progress::BrokerStatus;
use super::isr::alter_errors::{
    FENCED_LEADER_EPOCH, INELIGIBLE_REPLICA, INVALID_REQUEST, INVALID_UPDATE_VERSION,
    NOT_CONTROLLER,
};

/// A request to change who is in sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterPartition {
    /// Who asks.
    pub broker: i32,
    /// The leader epoch that it knows.
    pub leader_epoch: i32,
    /// The partition epoch that it knows.
    pub partition_epoch: i32,
    /// The set that it wants, each with its broker epoch or -1.
    pub isr: Vec<(i32, i64)>,
    /// Whether the leader still recovers from an unclean election.
    pub recovering: bool,
}

/// Checks a request; `broker` tells what is known of a broker. Topic and partition are known: for
/// others the answer is `UNKNOWN_TOPIC_ID` and `UNKNOWN_TOPIC_OR_PARTITION`, in this order.
///
/// # Errors
/// The code of the first check that fails.
// spec: replication 3, the controller's checks in order
pub fn validate_alter_partition(
    partition: &Partition,
    request: &AlterPartition,
    broker: impl Fn(i32) -> BrokerStatus,
) -> Result<(), i16> {
    if request.leader_epoch > partition.leader_epoch
        || request.partition_epoch > partition.partition_epoch
    {
        return Err(NOT_CONTROLLER);
    }
    if request.leader_epoch < partition.leader_epoch {
        return Err(FENCED_LEADER_EPOCH);
    }
    if request.broker != partition.leader {
        return Err(INVALID_REQUEST);
    }
    if request.partition_epoch < partition.partition_epoch {
        return Err(INVALID_UPDATE_VERSION);
    }
    // A set of replicas is no larger than their list: the rest looks at few members.
    if request.isr.len() > partition.replicas.len() {
        return Err(INVALID_REQUEST);
    }
    let mut members = request.isr.iter().map(|(replica, _)| *replica);
    let is_known = members.clone().all(|replica| partition.replicas.contains(&replica));
    let has_leader = members.clone().any(|replica| replica == partition.leader);
    let is_single = members
        .all(|replica| request.isr.iter().filter(|(other, _)| *other == replica).count() == 1);
    if !is_known || !has_leader || !is_single {
        return Err(INVALID_REQUEST);
    }
    let goes_back = request.recovering && !partition.recovering;
    if (request.recovering && request.isr.len() > 1) || goes_back {
        return Err(INVALID_REQUEST);
    }
    let is_eligible = |(replica, epoch): &(i32, i64)| broker(*replica).is_eligible(*epoch);
    if request.isr.iter().all(is_eligible) { Ok(()) } else { Err(INELIGIBLE_REPLICA) }
}
