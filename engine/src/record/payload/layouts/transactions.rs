//! Layouts of the key and value of `__transaction_state`. The notation is explained in
//! [`layout`](super::super::layout).

/// The one key.
pub(crate) const KEYS: &str = r"
TransactionLogKey 0 v0 flex-
  transactionalId str
";

/// The one value.
pub(crate) const VALUES: &str = r"
TransactionLogValue 0 v0-1 flex1
  producerId i64
  producerEpoch i16
  transactionTimeoutMs i32
  transactionStatus i8
  transactionPartitions [{}]?
    topic str
    partitionIds [i32]
  transactionLastUpdateTimestampMs i64
  transactionStartTimestampMs i64
  tag 0 previousProducerId i64 1+ = -1
  tag 1 nextProducerId i64 1+ = -1
  tag 2 clientTransactionVersion i16 1+ = 0
  tag 3 nextProducerEpoch i16 1+ = -1
";
