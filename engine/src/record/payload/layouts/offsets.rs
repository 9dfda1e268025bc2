//! Layouts of the keys and values of `__consumer_offsets`. The notation is explained in
//! [`layout`](super::super::layout).

/// One message per record type.
pub(crate) const KEYS: &str = r"
LegacyOffsetCommitKey 0 v0 flex-
  group str
  topic str
  partition i32
OffsetCommitKey 1 v0 flex-
  group str
  topic str
  partition i32
GroupMetadataKey 2 v0 flex-
  group str
ConsumerGroupMetadataKey 3 v0 flex-
  groupId str
ConsumerGroupPartitionMetadataKey 4 v0 flex-
  groupId str
ConsumerGroupMemberMetadataKey 5 v0 flex-
  groupId str
  memberId str
ConsumerGroupTargetAssignmentMetadataKey 6 v0 flex-
  groupId str
ConsumerGroupTargetAssignmentMemberKey 7 v0 flex-
  groupId str
  memberId str
ConsumerGroupCurrentMemberAssignmentKey 8 v0 flex-
  groupId str
  memberId str
ShareGroupMemberMetadataKey 10 v0 flex-
  groupId str
  memberId str
ShareGroupMetadataKey 11 v0 flex-
  groupId str
ShareGroupTargetAssignmentMetadataKey 12 v0 flex-
  groupId str
ShareGroupTargetAssignmentMemberKey 13 v0 flex-
  groupId str
  memberId str
ShareGroupCurrentMemberAssignmentKey 14 v0 flex-
  groupId str
  memberId str
ShareGroupStatePartitionMetadataKey 15 v0 flex-
  groupId str
ConsumerGroupRegularExpressionKey 16 v0 flex-
  groupId str
  regularExpression str
StreamsGroupMetadataKey 17 v0 flex-
  groupId str
StreamsGroupMemberMetadataKey 19 v0 flex-
  groupId str
  memberId str
StreamsGroupTargetAssignmentMetadataKey 20 v0 flex-
  groupId str
StreamsGroupTargetAssignmentMemberKey 21 v0 flex-
  groupId str
  memberId str
StreamsGroupCurrentMemberAssignmentKey 22 v0 flex-
  groupId str
  memberId str
StreamsGroupTopologyKey 23 v0 flex-
  groupId str
";

/// One message per record type, in its versions.
pub(crate) const VALUES: &str = r"
LegacyOffsetCommitValue 0 v0 flex-
  offset i64
  metadata str
  commitTimestamp i64
OffsetCommitValue 1 v0-4 flex4
  offset i64
  leaderEpoch i32 3+
  metadata str
  commitTimestamp i64
  expireTimestamp i64 1-1
  tag 0 topicId uuid 4+ = zero
GroupMetadataValue 2 v0-4 flex4
  protocolType str
  generation i32
  protocol str?
  leader str?
  currentStateTimestamp i64 2+
  members [{}]
    memberId str
    groupInstanceId str? 3+
    clientId str
    clientHost str
    rebalanceTimeout i32 1+
    sessionTimeout i32
    subscription bytes
    assignment bytes
ConsumerGroupMetadataValue 3 v0 flex0
  epoch i32
  tag 0 metadataHash i64 = 0
ConsumerGroupPartitionMetadataValue 4 v0 flex0
  topics [{}]
    topicId uuid
    topicName str
    numPartitions i32
    partitionMetadata [{}]
      partition i32
      racks [str]
ConsumerGroupMemberMetadataValue 5 v0 flex0
  instanceId str?
  rackId str?
  clientId str
  clientHost str
  subscribedTopicNames [str]
  subscribedTopicRegex str?
  rebalanceTimeoutMs i32
  serverAssignor str?
  tag 0 classicMemberMetadata {}? = empty
    sessionTimeoutMs i32
    supportedProtocols [{}]
      name str
      metadata bytes
ConsumerGroupTargetAssignmentMetadataValue 6 v0 flex0
  assignmentEpoch i32
  tag 0 assignmentTimestamp i64 = 0
ConsumerGroupTargetAssignmentMemberValue 7 v0 flex0
  topicPartitions [{}]
    topicId uuid
    partitions [i32]
ConsumerGroupCurrentMemberAssignmentValue 8 v0 flex0
  memberEpoch i32
  previousMemberEpoch i32
  state i8
  assignedPartitions [{}]
    topicId uuid
    partitions [i32]
    tag 0 assignmentEpochs [i32]? = []
  partitionsPendingRevocation [{}]
    topicId uuid
    partitions [i32]
    tag 0 assignmentEpochs [i32]? = []
ConsumerGroupRegularExpressionValue 16 v0 flex0
  topics [str]
  version i64
  timestamp i64
ShareGroupMemberMetadataValue 10 v0 flex0
  rackId str?
  clientId str
  clientHost str
  subscribedTopicNames [str]
ShareGroupMetadataValue 11 v0 flex0
  epoch i32
  metadataHash i64
ShareGroupTargetAssignmentMetadataValue 12 v0 flex0
  assignmentEpoch i32
  tag 0 assignmentTimestamp i64 = 0
ShareGroupTargetAssignmentMemberValue 13 v0 flex0
  topicPartitions [{}]
    topicId uuid
    partitions [i32]
ShareGroupCurrentMemberAssignmentValue 14 v0 flex0
  memberEpoch i32
  previousMemberEpoch i32
  state i8
  assignedPartitions [{}]
    topicId uuid
    partitions [i32]
ShareGroupStatePartitionMetadataValue 15 v0 flex0
  initializingTopics [{}]
    topicId uuid
    topicName str
    partitions [i32]
  initializedTopics [{}]
    topicId uuid
    topicName str
    partitions [i32]
  deletingTopics [{}]
    topicId uuid
    topicName str
StreamsGroupMetadataValue 17 v0 flex0
  epoch i32
  metadataHash i64
  tag 0 validatedTopologyEpoch i32 = -1
  tag 1 lastAssignmentConfigs [{}]? = []
    key str
    value str
StreamsGroupMemberMetadataValue 19 v0 flex0
  instanceId str?
  rackId str?
  clientId str
  clientHost str
  rebalanceTimeoutMs i32
  topologyEpoch i32
  processId str
  userEndpoint {}?
    host str
    port u16
  clientTags [{}]
    key str
    value str
StreamsGroupTargetAssignmentMetadataValue 20 v0 flex0
  assignmentEpoch i32
  tag 0 assignmentTimestamp i64 = 0
StreamsGroupTargetAssignmentMemberValue 21 v0 flex0
  activeTasks [{}]
    subtopologyId str
    partitions [i32]
  standbyTasks [{}]
    subtopologyId str
    partitions [i32]
  warmupTasks [{}]
    subtopologyId str
    partitions [i32]
StreamsGroupCurrentMemberAssignmentValue 22 v0 flex0
  memberEpoch i32
  previousMemberEpoch i32
  state i8
  activeTasks [{}]
    subtopologyId str
    partitions [i32]
    tag 0 assignmentEpochs [i32]? = []
  standbyTasks [{}]
    subtopologyId str
    partitions [i32]
    tag 0 assignmentEpochs [i32]? = []
  warmupTasks [{}]
    subtopologyId str
    partitions [i32]
    tag 0 assignmentEpochs [i32]? = []
  activeTasksPendingRevocation [{}]
    subtopologyId str
    partitions [i32]
    tag 0 assignmentEpochs [i32]? = []
  standbyTasksPendingRevocation [{}]
    subtopologyId str
    partitions [i32]
    tag 0 assignmentEpochs [i32]? = []
  warmupTasksPendingRevocation [{}]
    subtopologyId str
    partitions [i32]
    tag 0 assignmentEpochs [i32]? = []
StreamsGroupTopologyValue 23 v0 flex0
  epoch i32
  subtopologies [{}]
    subtopologyId str
    sourceTopics [str]
    sourceTopicRegex [str]
    stateChangelogTopics [{}]
      name str
      partitions i32
      replicationFactor i16
      topicConfigs [{}]
        key str
        value str
    repartitionSinkTopics [str]
    repartitionSourceTopics [{}]
      name str
      partitions i32
      replicationFactor i16
      topicConfigs [{}]
        key str
        value str
    copartitionGroups [{}]
      sourceTopics [i16]
      sourceTopicRegex [i16]
      repartitionSourceTopics [i16]
";
