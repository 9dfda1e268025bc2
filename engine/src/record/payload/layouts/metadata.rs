//! Layouts of the records of the KRaft metadata log. The notation is explained in
//! [`layout`](super::super::layout).

/// One message per api key.
pub(crate) const METADATA: &str = r"
TopicRecord 2 v0 flex0
  name str
  topicId uuid
RemoveTopicRecord 9 v0 flex0
  topicId uuid
PartitionRecord 3 v0-2 flex0
  partitionId i32
  topicId uuid
  replicas [i32]
  isr [i32]
  removingReplicas [i32]
  addingReplicas [i32]
  leader i32
  leaderEpoch i32
  partitionEpoch i32
  directories [uuid] 1+
  tag 0 leaderRecoveryState i8 = 0
  tag 1 eligibleLeaderReplicas [i32]? 2+ = null
  tag 2 lastKnownElr [i32]? 2+ = null
PartitionChangeRecord 5 v0-2 flex0
  partitionId i32
  topicId uuid
  tag 0 isr [i32]? = null
  tag 1 leader i32 = -2
  tag 2 replicas [i32]? = null
  tag 3 removingReplicas [i32]? = null
  tag 4 addingReplicas [i32]? = null
  tag 5 leaderRecoveryState i8 = -1
  tag 6 eligibleLeaderReplicas [i32]? 2+ = null
  tag 7 lastKnownElr [i32]? 2+ = null
  tag 8 directories [uuid]? 1+ = null
ClearElrRecord 28 v0 flex0
  topicName str
ConfigRecord 4 v0 flex0
  resourceType i8
  resourceName str
  name str
  value str?
FeatureLevelRecord 12 v0 flex0
  name str
  featureLevel i16
RegisterBrokerRecord 0 v0-4 flex0
  brokerId i32
  isMigratingZkBroker bool 2+
  incarnationId uuid
  brokerEpoch i64
  endPoints [{}]
    name str
    host str
    port u16
    securityProtocol i16
  features [{}]
    name str
    minSupportedVersion i16
    maxSupportedVersion i16
  rack str?
  fenced bool
  inControlledShutdown bool 1+
  tag 0 logDirs [uuid] 3+ = []
  tag 1 cordonedLogDirs [uuid]? 4+ = null
UnregisterBrokerRecord 1 v0 flex0
  brokerId i32
  brokerEpoch i64
BrokerRegistrationChangeRecord 17 v0-3 flex0
  brokerId i32
  brokerEpoch i64
  tag 0 fenced i8 = 0
  tag 1 inControlledShutdown i8 1+ = 0
  tag 2 logDirs [uuid] 2+ = []
  tag 3 cordonedLogDirs [uuid]? 3+ = null
FenceBrokerRecord 7 v0 flex0
  id i32
  epoch i64
UnfenceBrokerRecord 8 v0 flex0
  id i32
  epoch i64
BeginTransactionRecord 23 v0 flex0
  tag 0 name str? = null
EndTransactionRecord 24 v0 flex0
AbortTransactionRecord 25 v0 flex0
  tag 0 reason str? = null
NoOpRecord 20 v0 flex0
ProducerIdsRecord 15 v0 flex0
  brokerId i32
  brokerEpoch i64
  nextProducerId i64
RegisterControllerRecord 27 v0 flex0
  controllerId i32
  incarnationId uuid
  zkMigrationReady bool
  endPoints [{}]
    name str
    host str
    port u16
    securityProtocol i16
  features [{}]
    name str
    minSupportedVersion i16
    maxSupportedVersion i16
AccessControlEntryRecord 18 v0 flex0
  id uuid
  resourceType i8
  resourceName str
  patternType i8
  principal str
  host str
  operation i8
  permissionType i8
RemoveAccessControlEntryRecord 19 v0 flex0
  id uuid
ClientQuotaRecord 14 v0 flex0
  entity [{}]
    entityType str
    entityName str?
  key str
  value f64
  remove bool
UserScramCredentialRecord 11 v0 flex0
  name str
  mechanism i8
  salt bytes
  storedKey bytes
  serverKey bytes
  iterations i32
RemoveUserScramCredentialRecord 22 v0 flex0
  name str
  mechanism i8
DelegationTokenRecord 10 v0 flex0
  owner str
  requester str
  renewers [str]
  issueTimestamp i64
  maxTimestamp i64
  expirationTimestamp i64
  tokenId str
RemoveDelegationTokenRecord 26 v0 flex0
  tokenId str
ZkMigrationStateRecord 21 v0 flex0
  zkMigrationState i8
";
