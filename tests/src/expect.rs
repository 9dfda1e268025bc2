//! What Kafka's own classes say about one partition in one state.
//!
//! `raw` is what is on disk before loading; `loaded` is Kafka's log after loading a copy of it,
//! with the clock at `now_ms` and a producer expiry of 2147483647 ms. Rows are arrays in the JSON;
//! their columns are named at each field here.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Path, size in bytes, SHA-256.
pub type FileSum = (String, u64, String);

/// Offset and position of an offset index entry.
pub type IndexEntry = (i64, i64);

/// Timestamp and offset of a time index entry.
pub type TimeIndexEntry = (i64, i64);

/// Version, producer id, first offset, last offset, last stable offset.
pub type AbortedTxn = (i16, i64, i64, i64, i64);

/// From, upper bound, and producer id, first, last and last stable offset of each aborted
/// transaction.
pub type AbortedTxns = (i64, i64, Vec<(i64, i64, i64, i64)>);

/// From offset, last stable offset, and base and next base of each segment that may be uploaded.
pub type UploadCandidates = (i64, i64, Vec<(i64, i64)>);

/// All of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Expectation {
    /// The partition directory's name.
    pub partition: String,
    /// The state's name.
    pub state: String,
    /// The topic's configs.
    pub config: BTreeMap<String, String>,
    /// The clock while loading, in milliseconds since 1970.
    pub now_ms: i64,
    /// Whether the directory had its clean-shutdown file.
    pub clean_shutdown_file: bool,
    /// The partition's line in `recovery-point-offset-checkpoint`.
    pub recovery_point_checkpoint: Option<i64>,
    /// The partition's line in `log-start-offset-checkpoint`.
    pub log_start_offset_checkpoint: Option<i64>,
    /// The partition's line in `replication-offset-checkpoint`.
    pub high_watermark_checkpoint: Option<i64>,
    /// What is on disk.
    pub raw: Raw,
    /// What Kafka made of it.
    pub loaded: Loading,
}

/// What is on disk before loading.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Raw {
    /// Every file of the partition.
    pub files: Vec<FileSum>,
    /// Epoch and start offset of each line of `leader-epoch-checkpoint`; `None` without that file.
    pub leader_epochs: Option<Vec<(i32, i64)>>,
    /// Every `.snapshot` file, sorted by name.
    pub snapshots: Vec<Snapshot>,
    /// Every segment, sorted by base offset.
    pub segments: Vec<RawSegment>,
}

/// One `.snapshot` file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Its name.
    pub file: String,
    /// Its producers, in the order of the file.
    pub entries: Vec<Producer>,
}

/// The state of one producer.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Producer {
    /// Producer id.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Coordinator epoch of the last marker, -1 without one.
    pub coordinator_epoch: i32,
    /// Timestamp of the last batch.
    pub last_timestamp: i64,
    /// First offset of the open transaction.
    pub current_txn_first_offset: Option<i64>,
    /// First offset of the remembered batches, -1 without one.
    pub first_data_offset: i64,
    /// Last offset of the remembered batches, -1 without one.
    pub last_data_offset: i64,
    /// First sequence, last sequence, first offset, last offset, timestamp of each remembered
    /// batch.
    pub batches: Vec<(i32, i32, i64, i64, i64)>,
}

/// One segment on disk.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawSegment {
    /// Its base offset.
    pub base_offset: i64,
    /// Size of the `.log` file in bytes.
    pub size: u64,
    /// Every batch that could be framed.
    pub batches: Vec<Batch>,
    /// Position after the last batch that could be framed.
    pub batches_end: u64,
    /// The exception of Kafka's reader behind it.
    pub read_problem: Option<String>,
    /// The records of all valid batches.
    pub records: Vec<Record>,
    /// The `.index` file.
    pub index: Option<RawIndex<IndexEntry>>,
    /// The `.timeindex` file.
    pub timeindex: Option<RawIndex<TimeIndexEntry>>,
    /// The `.txnindex` file.
    pub txnindex: Option<Vec<AbortedTxn>>,
}

/// A batch header as Kafka reads it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    /// Where it starts in the `.log` file.
    pub position: u64,
    /// Its size in bytes, with the 12 bytes of offset and length.
    pub size: u64,
    /// Base offset. Of a wrapper of magic 0 or 1: that of its first inner record.
    pub base_offset: i64,
    /// Last offset.
    pub last_offset: i64,
    /// Format version.
    pub magic: i8,
    /// Whether the checksum and sizes are right.
    pub valid: bool,
    /// The stored checksum.
    pub crc: u32,
    /// Codec name.
    pub codec: String,
    /// `CreateTime`, `LogAppendTime` or `NoTimestampType`.
    pub timestamp_type: String,
    /// Largest timestamp.
    pub max_timestamp: i64,
    /// Leader epoch, -1 before magic 2.
    pub partition_leader_epoch: i32,
    /// Producer id, -1 without one.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// First sequence number.
    pub base_sequence: i32,
    /// Last sequence number.
    pub last_sequence: i32,
    /// Whether it belongs to a transaction.
    pub transactional: bool,
    /// Whether it holds a control record.
    pub control: bool,
    /// The delete horizon.
    pub delete_horizon_ms: Option<i64>,
    /// Record count; `None` before magic 2.
    pub count: Option<i32>,
}

/// One record. Byte strings are given as [`blob`] writes them.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "Vec<Value>")]
pub struct Record {
    /// Offset.
    pub offset: i64,
    /// Timestamp.
    pub timestamp: i64,
    /// Sequence number, -1 without one.
    pub sequence: i32,
    /// Key.
    pub key: Option<String>,
    /// Value.
    pub value: Option<String>,
    /// Header keys (as text) and values.
    pub headers: Vec<(String, Option<String>)>,
    /// `COMMIT`, `ABORT` and so on, of a control record.
    pub control_type: Option<String>,
}

impl From<Vec<Value>> for Record {
    fn from(row: Vec<Value>) -> Record {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let headers = row[5].as_array().expect("a list of headers").iter();
        Record {
            offset: row[0].as_i64().expect("an offset"),
            timestamp: row[1].as_i64().expect("a timestamp"),
            sequence: i32::try_from(row[2].as_i64().expect("a number")).expect("a sequence"),
            key: text(&row[3]),
            value: text(&row[4]),
            headers: headers
                .map(|header| (text(&header[0]).expect("a header key"), text(&header[1])))
                .collect(),
            control_type: row.get(6).and_then(text),
        }
    }
}

/// A byte string as expectations have it: hex up to 24 bytes, else its length and the first 32 hex
/// digits of its SHA-256.
#[must_use]
pub fn blob(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|bytes| match bytes.len() {
        0..=24 => crate::hex(bytes),
        len => format!("{len}:{}", &crate::sha256(bytes)[..32]),
    })
}

/// An index file: its real entries, and how many zero slots follow.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawIndex<E> {
    /// Size of the file in bytes.
    pub size: u64,
    /// How many whole entries fit in it.
    pub slots: u64,
    /// How many all-zero slots stand at its end.
    pub zero_tail_slots: u64,
    /// The entries before them, offsets absolute.
    pub entries: Vec<E>,
}

/// What came of loading.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub enum Loading {
    /// Kafka's log.
    Loaded(Box<Loaded>),
    /// Kafka could not load the partition; its exception.
    Failed(String),
}

impl Loading {
    /// Kafka's log; `None` when it could not load.
    #[must_use]
    pub fn ok(&self) -> Option<&Loaded> {
        match self {
            Loading::Loaded(loaded) => Some(loaded),
            Loading::Failed(_) => None,
        }
    }
}

impl TryFrom<Value> for Loading {
    type Error = serde_json::Error;

    fn try_from(value: Value) -> Result<Loading, serde_json::Error> {
        match value.get("loadError").and_then(Value::as_str) {
            Some(error) => Ok(Loading::Failed(error.to_owned())),
            None => serde_json::from_value(value).map(|loaded| Loading::Loaded(Box::new(loaded))),
        }
    }
}

/// Kafka's log after loading.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Loaded {
    /// Log start offset.
    pub log_start_offset: i64,
    /// Local log start offset.
    pub local_log_start_offset: i64,
    /// Log end offset, exclusive.
    pub log_end_offset: i64,
    /// Recovery point.
    pub recovery_point: i64,
    /// Last stable offset with the high watermark at the log's end.
    pub last_stable_offset_at_hw_eq_leo: i64,
    /// First offset of the first open transaction.
    pub first_unstable_offset: Option<i64>,
    /// Epoch and start offset.
    pub leader_epochs: Vec<(i32, i64)>,
    /// Live producers, sorted by id.
    pub producers: Vec<Producer>,
    /// Producer id, first offset, last offset of each open transaction.
    pub ongoing_txns: Vec<(i64, i64, Option<i64>)>,
    /// The same of each transaction that ended beyond the high watermark.
    pub unreplicated_txns: Vec<(i64, i64, Option<i64>)>,
    /// Every segment.
    pub segments: Vec<LoadedSegment>,
    /// Which aborted transactions a reader of a range must know.
    pub collect_aborted_transactions: Vec<AbortedTxns>,
    /// Requested epoch, epoch found, end offset.
    pub end_offset_for: Vec<(i32, i32, i64)>,
    /// Offset and its epoch.
    pub epoch_for_offset: Vec<(i64, Option<i32>)>,
    /// Which segments the broker's own copy task would choose.
    pub upload_candidates: Vec<UploadCandidates>,
    /// Target (-1 latest, -2 earliest, -3 largest timestamp, -4 earliest local), then what was
    /// found or null.
    #[serde(default)]
    pub fetch_offset_by_timestamp: Vec<Vec<Value>>,
    /// Start, size limit, isolation, then what was read or an error.
    pub log_read: Vec<Vec<Value>>,
    /// Every file after flush and close.
    pub files_after_close: Vec<FileSum>,
    /// Every `.snapshot` file then.
    pub snapshots: Vec<Snapshot>,
}

/// One segment after loading.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadedSegment {
    /// Its base offset.
    pub base_offset: i64,
    /// Size of the log in bytes.
    pub size: u64,
    /// The offset after its last batch.
    pub read_next_offset: i64,
    /// Its largest timestamp.
    pub max_timestamp: i64,
    /// The offset of that record.
    pub offset_of_max_timestamp: i64,
    /// Offset index entries.
    pub index: Vec<IndexEntry>,
    /// Time index entries.
    pub timeindex: Vec<TimeIndexEntry>,
    /// Transaction index entries.
    pub txnindex: Vec<AbortedTxn>,
    /// Target, offset, position.
    pub offset_index_lookup: Vec<(i64, i64, i64)>,
    /// Target, then offset, position, size of the batch, or null.
    pub translate_offset: Vec<Vec<Option<i64>>>,
    /// Target, timestamp, offset.
    pub time_index_lookup: Vec<(i64, i64, i64)>,
    /// Target, starting offset, then timestamp, offset, leader epoch, or null.
    pub find_offset_by_timestamp: Vec<Vec<Option<i64>>>,
    /// Start, size limit, whether one whole batch is wanted, then position, bytes, whether the
    /// first is cut, or null.
    pub segment_read: Vec<Vec<Value>>,
}
