//! Layouts of the values of control records. The notation is explained in
//! [`layout`](super::super::layout).

/// One message per control type. The end-of-transaction markers are those of ordinary logs.
pub(crate) const CONTROL: &str = r"
ABORT 0 v0 flex-
  version i16
  coordinatorEpoch i32
COMMIT 1 v0 flex-
  version i16
  coordinatorEpoch i32
LEADER_CHANGE 2 v0-1 flex0
  version i16
  leaderId i32
  voters [{}]
    voterId i32
    voterDirectoryId uuid 1+
  grantingVoters [{}]
    voterId i32
    voterDirectoryId uuid 1+
SNAPSHOT_HEADER 3 v0 flex0
  version i16
  lastContainedLogTimestamp i64
SNAPSHOT_FOOTER 4 v0 flex0
  version i16
KRAFT_VERSION 5 v0 flex0
  version i16
  kRaftVersion i16
KRAFT_VOTERS 6 v0 flex0
  version i16
  voters [{}]
    voterId i32
    voterDirectoryId uuid
    endpoints [{}]
      name str
      host str
      port u16
    kRaftVersionFeature {}
      minSupportedVersion i16
      maxSupportedVersion i16
";
