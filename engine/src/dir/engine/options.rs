//! What an engine is told when it is opened, and what of a log that is made.

use std::path::PathBuf;

use crate::log::progress::Progress;
use crate::log::{CleanerOptions, LogConfig};
use crate::segment::LogMaps;
use crate::state::ProducerStateConfig;
use crate::uuid::Uuid;

/// The settings of a topic's logs.
pub type TopicConfig<'a> = dyn Fn(&str) -> LogConfig + Sync + 'a;

/// Whether a log is not assigned to this node any more; told its topic, its partition and the id in
/// its `partition.metadata`.
pub type IsStray<'a> = dyn Fn(&str, i32, Option<Uuid>) -> bool + Sync + 'a;

/// Whose the log directories are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's id.
    pub cluster_id: String,
    /// The node's id.
    pub node_id: i32,
}

/// What an engine is told when it is opened. Times are milliseconds.
#[derive(Clone, Copy)]
pub struct EngineOptions<'a> {
    /// The settings of a topic.
    pub config: &'a TopicConfig<'a>,
    /// Which logs are moved aside instead of opened.
    pub is_stray: Option<&'a IsStray<'a>>,
    /// Whose the directories must be. With it, a directory without `meta.properties` gets one.
    pub identity: Option<&'a Identity>,
    /// Threads to load with; 1 is the caller's own.
    pub threads: usize,
    /// Hears how far the load is, counted in the bytes that recovery reads and one for each log
    /// that is opened, and may end it.
    pub progress: Option<&'a dyn Progress>,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
    /// How producers are remembered.
    pub producers: ProducerStateConfig,
    /// Whether what recovery cuts off is kept beside, in `.log.lost` files.
    pub keep_lost: bool,
    /// Files of segments that may stay open, in all logs, those that are written to too: of more
    /// partitions than that, those that nobody uses have no file open. A call has a few more while
    /// it lasts, a flush of many logs about as many again, and four more for each segment beyond
    /// one that it makes durable of a log.
    pub open_files_max: usize,
    /// Whether look-ups go through maps.
    pub maps: LogMaps,
    /// `log.segment.delete.delay.ms`: how long the folder of a deleted log stays.
    pub folder_delete_delay_ms: i64,
    /// `log.retention.check.interval.ms`.
    pub retention_interval_ms: i64,
    /// `producer.id.expiration.check.interval.ms`.
    pub expiration_interval_ms: i64,
    /// `log.flush.offset.checkpoint.interval.ms`.
    pub recovery_point_interval_ms: i64,
    /// `log.flush.start.offset.checkpoint.interval.ms`.
    pub log_start_interval_ms: i64,
    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub high_watermark_interval_ms: i64,
    /// After how long work that failed is due again.
    pub retry_ms: i64,
    /// `log.cleaner.threads`: how many logs may be compacted at once. With 0 none is.
    pub cleaners: usize,
    /// What each of them may use.
    pub cleaner: CleanerOptions,
    /// `log.cleaner.backoff.ms`: how long none looks for a log to compact after one found none.
    pub cleaner_backoff_ms: i64,
}

impl<'a> EngineOptions<'a> {
    /// Kafka's defaults, on the caller's thread.
    // spec: segments 1.4
    #[must_use]
    pub fn new(config: &'a TopicConfig<'a>, now_ms: i64) -> Self {
        EngineOptions {
            config,
            is_stray: None,
            identity: None,
            threads: 1,
            progress: None,
            now_ms,
            producers: ProducerStateConfig::default(),
            keep_lost: false,
            open_files_max: 10_000,
            maps: LogMaps::Never,
            folder_delete_delay_ms: 60_000,
            retention_interval_ms: 300_000,
            expiration_interval_ms: 600_000,
            recovery_point_interval_ms: 60_000,
            log_start_interval_ms: 60_000,
            high_watermark_interval_ms: 5_000,
            retry_ms: 1_000,
            cleaners: 1,
            cleaner: CleanerOptions::default(),
            cleaner_backoff_ms: 15_000,
        }
    }
}

impl std::fmt::Debug for EngineOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineOptions")
            .field("identity", &self.identity)
            .field("threads", &self.threads)
            .field("open_files_max", &self.open_files_max)
            .finish_non_exhaustive()
    }
}

/// What is known of a log that may have to be made.
#[derive(Clone, Debug, Default)]
pub struct NewLog {
    /// Its settings.
    pub config: LogConfig,
    /// Its topic's id: that of a log which is there already must be the same.
    pub topic_id: Option<Uuid>,
    /// Whether the replica is known to be new. One that is not is not made anew while a directory
    /// is offline: it may be there.
    pub is_new: bool,
    /// Whether it is to grow beside the current log, in another directory, and replace it.
    pub is_future: bool,
    /// The log directory that was asked for by path.
    pub preferred: Option<PathBuf>,
    /// The log directory that the cluster's metadata assigns; an id that no directory here has is
    /// passed over.
    pub assigned: Option<Uuid>,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
}
