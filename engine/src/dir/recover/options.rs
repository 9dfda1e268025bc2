//! What recovery of a directory is told, and what it tells.

use std::path::PathBuf;

use crate::error::Error;
use crate::io::MapMode;
use crate::log::recover::Plan;
use crate::problem::{Problem, Severity};
use crate::segment::rebuild::IndexSettings;
use crate::uuid::Uuid;

/// What recovery must know of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionSettings {
    /// Shape of the indexes.
    pub index: IndexSettings,
    /// Whether the log may start before its first local segment.
    pub remote_storage: bool,
}

/// What recovery of log directories is told.
pub struct DirRecoverOptions<'a> {
    /// The settings of a topic.
    pub settings: &'a (dyn Fn(&str) -> PartitionSettings + Sync),
    /// Hears of each partition when it is done.
    pub done: &'a (dyn Fn(PartitionDone<'_>) + Sync),
    /// Threads to work with; 1 is the caller's own.
    pub threads: usize,
    /// Say what would be done, and do nothing.
    pub dry_run: bool,
    /// Read every batch.
    pub all: bool,
    /// Whole batches behind damage may be cut away.
    pub allow_loss: bool,
    /// What is cut is not kept.
    pub discard_lost: bool,
    /// Where refused partitions are moved.
    pub quarantine: Option<PathBuf>,
    /// Cut the log here; for one partition.
    pub truncate_to: Option<i64>,
    /// The topic id that the partition must have; for one partition.
    pub topic_id: Option<Uuid>,
    /// Take the directory for cleanly stopped.
    pub clean_shutdown: bool,
    /// Recovery point in place of the checkpoint's.
    pub recovery_point: Option<i64>,
    /// Log start offset in place of the checkpoint's.
    pub log_start_offset: Option<i64>,
    /// The time of day in milliseconds.
    pub now_ms: i64,
    /// `producer.id.expiration.ms`.
    pub producer_expiration_ms: i64,
    /// Whether logs may be read through maps.
    pub map_mode: MapMode,
}

impl<'a> DirRecoverOptions<'a> {
    /// On the caller's thread, with nothing allowed to be lost and everything taken from the
    /// checkpoints; producers expire after a day.
    #[must_use]
    pub fn new(
        settings: &'a (dyn Fn(&str) -> PartitionSettings + Sync),
        done: &'a (dyn Fn(PartitionDone<'_>) + Sync),
        now_ms: i64,
    ) -> Self {
        DirRecoverOptions {
            settings,
            done,
            threads: 1,
            dry_run: false,
            all: false,
            allow_loss: false,
            discard_lost: false,
            quarantine: None,
            truncate_to: None,
            topic_id: None,
            clean_shutdown: false,
            recovery_point: None,
            log_start_offset: None,
            now_ms,
            producer_expiration_ms: 86_400_000,
            map_mode: MapMode::Never,
        }
    }
}

impl std::fmt::Debug for DirRecoverOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirRecoverOptions")
            .field("threads", &self.threads)
            .field("dry_run", &self.dry_run)
            .finish_non_exhaustive()
    }
}

/// One partition that is done, or left as it was.
#[derive(Debug)]
pub struct PartitionDone<'a> {
    /// Its folder.
    pub dir: &'a std::path::Path,
    /// The topic in the folder's name, if it has one.
    pub topic: Option<&'a str>,
    /// The partition in the folder's name.
    pub partition: Option<i32>,
    /// What came of it.
    pub result: &'a PartitionResult,
}

/// What came of a partition.
#[derive(Debug)]
pub enum PartitionResult {
    /// The plan was carried out, or would be in a dry run.
    Sound(Plan),
    /// It was left as it was, for the reason in the plan.
    Refused(Plan),
    /// It was refused and moved to where refused partitions go.
    Quarantined(Plan, PathBuf),
    /// It could not be read or written.
    Failed(Error),
}

/// What came of a directory.
#[derive(Debug, Default)]
pub struct DirReport {
    /// The directory.
    pub dir: PathBuf,
    /// Whether it was stopped cleanly.
    pub was_clean: bool,
    /// Whether it has its clean-shutdown marker now.
    pub is_clean: bool,
    /// Partitions that are fit to start.
    pub sound: usize,
    /// Partitions left as they were.
    pub refused: usize,
    /// Partitions moved away.
    pub quarantined: usize,
    /// Partitions that could not be read or written.
    pub failed: usize,
    /// What is wrong with the directory itself.
    pub problems: Vec<Problem>,
}

impl DirReport {
    /// Whether something is left with which Kafka does not start, whatever the partitions are like:
    /// a folder's name, or a `meta.properties` that cannot be understood.
    #[must_use]
    pub fn keeps_kafka_from_starting(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity > Severity::Repairable)
    }
}
