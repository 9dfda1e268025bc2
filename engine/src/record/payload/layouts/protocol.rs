//! Layouts of what clients put into a classic consumer group. The notation is explained in
//! [`layout`](super::super::layout).

/// Subscription and assignment, which have no ids of their own.
pub(crate) const PROTOCOL: &str = r"
ConsumerProtocolSubscription 0 v0-3 flex-
  topics [str]
  userData bytes?
  ownedPartitions [{}] 1+
    topic str
    partitions [i32]
  generationId i32 2+
  rackId str? 3+
ConsumerProtocolAssignment 1 v0-3 flex-
  assignedPartitions [{}]
    topic str
    partitions [i32]
  userData bytes?
";
