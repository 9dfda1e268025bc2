//! Layouts of the keys and values of `__share_group_state`. The notation is explained in
//! [`layout`](super::super::layout).

/// One message per record type.
pub(crate) const KEYS: &str = r"
ShareSnapshotKey 0 v0 flex-
  groupId str
  topicId uuid
  partition i32
ShareUpdateKey 1 v0 flex-
  groupId str
  topicId uuid
  partition i32
";

/// One message per record type.
pub(crate) const VALUES: &str = r"
ShareSnapshotValue 0 v0 flex0
  snapshotEpoch i32
  stateEpoch i32
  leaderEpoch i32
  startOffset i64
  createTimestamp i64
  writeTimestamp i64
  stateBatches [{}]
    firstOffset i64
    lastOffset i64
    deliveryState i8
    deliveryCount i16
  tag 0 deliveryCompleteCount i32 = -1
ShareUpdateValue 1 v0 flex0
  snapshotEpoch i32
  leaderEpoch i32
  startOffset i64
  stateBatches [{}]
    firstOffset i64
    lastOffset i64
    deliveryState i8
    deliveryCount i16
  tag 0 deliveryCompleteCount i32 = -1
";
