//! Layouts of the records of `__remote_log_metadata`. The notation is explained in
//! [`layout`](super::super::layout).

/// One message per api key.
pub(crate) const REMOTE: &str = r"
RemoteLogSegmentMetadataRecord 0 v0 flex0
  remoteLogSegmentId {}
    topicIdPartition {}
      name str
      id uuid
      partition i32
    id uuid
  startOffset i64
  endOffset i64
  brokerId i32
  maxTimestampMs i64
  eventTimestampMs i64
  segmentLeaderEpochs [{}]
    leaderEpoch i32
    offset i64
  segmentSizeInBytes i32
  customMetadata bytes?
  remoteLogSegmentState i8
  tag 0 txnIndexEmpty bool = false
RemoteLogSegmentMetadataUpdateRecord 1 v0 flex0
  remoteLogSegmentId {}
    topicIdPartition {}
      name str
      id uuid
      partition i32
    id uuid
  brokerId i32
  eventTimestampMs i64
  customMetadata bytes?
  remoteLogSegmentState i8
RemotePartitionDeleteMetadataRecord 2 v0 flex0
  topicIdPartition {}
    name str
    id uuid
    partition i32
  brokerId i32
  eventTimestampMs i64
  remotePartitionDeleteState i8
RemoteLogSegmentMetadataSnapshotRecord 3 v0 flex0
  segmentId uuid
  startOffset i64
  endOffset i64
  brokerId i32
  maxTimestampMs i64
  eventTimestampMs i64
  segmentLeaderEpochs [{}]
    leaderEpoch i32
    offset i64
  segmentSizeInBytes i32
  customMetadata bytes?
  remoteLogSegmentState i8
  tag 0 txnIndexEmpty bool = false
";
