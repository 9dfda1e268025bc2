//! What a check has to say.

use std::path::PathBuf;

use crate::index::AbortedTxn;
use crate::problem::{Code, Problem, Severity};
use crate::segment::damage::Survivors;
use crate::state::{EpochEntry, ProducerEntry};
use crate::units::NO_TIMESTAMP;
use crate::uuid::Uuid;

/// The whole judgement, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Nothing is wrong.
    Ok,
    /// The log is whole; files that are derived from it are wrong and can be made anew without
    /// loss.
    Repairable,
    /// Bytes of the log itself are wrong.
    Corrupt,
    /// Nothing can be said for sure, and nothing may be changed.
    Refused,
}

impl Verdict {
    /// The name as the command line prints it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Repairable => "repairable",
            Verdict::Corrupt => "corrupt",
            Verdict::Refused => "refused",
        }
    }
}

/// A transaction that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenTransaction {
    /// Whose it is.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The offset of its first batch.
    pub first_offset: i64,
}

/// The records of a small log, one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordLists {
    /// The offset of each record, control records included.
    pub offsets: Vec<i64>,
    /// The timestamp of each.
    pub timestamps: Vec<i64>,
    /// The offsets of those that are data.
    pub data_offsets: Vec<i64>,
    /// The offsets that a read-committed reader is handed.
    pub committed_offsets: Vec<i64>,
}

/// Everything that a check of one partition found.
///
/// Counts and offsets are of what is valid from the front of the log up to the first damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionReport {
    /// The directory, or the single file that was asked about.
    pub path: PathBuf,
    /// Topic and partition by the directory's name.
    pub topic_partition: Option<(String, i32)>,
    /// The topic's id by `partition.metadata`.
    pub topic_id: Option<Uuid>,
    /// The first offset that is here; the log of a tiered topic may begin earlier, in the remote
    /// tier.
    pub log_start_offset: i64,
    /// The offset behind the last record.
    pub log_end_offset: i64,
    /// Up to where, exclusive, a read-committed reader gets.
    pub last_stable_offset: i64,
    /// How many segments there are.
    pub segments: u64,
    /// The bytes of their logs.
    pub size_bytes: u64,
    /// How many batches.
    pub batches: u64,
    /// How many records; control records included, batches with a fault left out.
    pub records: u64,
    /// How many records a reader is handed: no control records, none before the log start offset.
    pub visible_records: u64,
    /// The largest timestamp, -1 for none.
    pub max_timestamp: i64,
    /// The latest delete horizon that compaction has set.
    pub delete_horizon_ms: Option<i64>,
    /// The leader epochs: those of the file when it is right, else those of the batches.
    pub epochs: Vec<EpochEntry>,
    /// What the log says about its producers; none is forgotten for being silent.
    pub producers: Vec<ProducerEntry>,
    /// Transactions that have not ended, by first offset.
    pub open: Vec<OpenTransaction>,
    /// Aborted transactions by the offset of their markers; `None` when there are too many to
    /// list.
    pub aborted: Option<Vec<AbortedTxn>>,
    /// The records; `None` when there are too many to list, or when only batches were looked at.
    pub lists: Option<RecordLists>,
    /// Whole batches behind the damage: what a cut there would throw away.
    pub survivors_after: Survivors,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// What is not wrong, but worth knowing.
    pub notices: Vec<Problem>,
}

impl PartitionReport {
    /// The report of something of which nothing is known yet.
    pub(super) fn new(path: PathBuf) -> Self {
        PartitionReport {
            path,
            topic_partition: None,
            topic_id: None,
            log_start_offset: 0,
            log_end_offset: 0,
            last_stable_offset: 0,
            segments: 0,
            size_bytes: 0,
            batches: 0,
            records: 0,
            visible_records: 0,
            max_timestamp: NO_TIMESTAMP,
            delete_horizon_ms: None,
            epochs: Vec::new(),
            producers: Vec::new(),
            open: Vec::new(),
            aborted: Some(Vec::new()),
            lists: None,
            survivors_after: Survivors::default(),
            problems: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// The whole judgement.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let worst = self.problems.iter().map(|problem| problem.severity).max();
        match worst {
            None | Some(Severity::Notice) => Verdict::Ok,
            Some(Severity::Repairable) => Verdict::Repairable,
            Some(Severity::Corrupt) => Verdict::Corrupt,
            Some(Severity::Refused) => Verdict::Refused,
        }
    }

    /// Whether something could not be looked at.
    #[must_use]
    pub fn has_unreadable(&self) -> bool {
        self.problems.iter().any(|problem| problem.code == Code::Unreadable)
    }
}
