//! What a log is told: the settings of its topic, and what is known when it is opened.

use std::sync::Arc;

use crate::record::TimestampType;
use crate::record::codec::Compression;
use crate::segment::{OpenFiles, SegmentSettings};
use crate::state::ProducerStateConfig;
use crate::uuid::Uuid;

/// The settings of a topic that its logs go by. Times are milliseconds, sizes bytes; -1 is
/// "unlimited" where a retention may be.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`.
    pub segment_bytes: u32,
    /// `segment.ms`; of a compacted topic at most `max.compaction.lag.ms`.
    pub segment_ms: i64,
    /// `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u32,
    /// `preallocate`: room for a segment is reserved on the disk when it is begun, and what it
    /// did not need goes back when it is finished.
    pub preallocate: bool,
    /// `flush.messages`.
    pub flush_messages: i64,
    /// `flush.ms`.
    pub flush_ms: i64,
    /// `retention.bytes`.
    pub retention_bytes: i64,
    /// `retention.ms`.
    pub retention_ms: i64,
    /// `local.retention.bytes`, already that of `retention.bytes` where it follows it.
    pub local_retention_bytes: i64,
    /// `local.retention.ms`, already that of `retention.ms` where it follows it.
    pub local_retention_ms: i64,
    /// `max.message.bytes`.
    pub max_message_bytes: u32,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: i64,
    /// Whether `cleanup.policy` has `compact`.
    pub compact: bool,
    /// Whether `cleanup.policy` has `delete`.
    pub delete: bool,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_dirty_ratio: f64,
    /// `compression.type`; `None` for `producer`.
    pub compression: Option<Compression>,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub timestamp_after_max_ms: i64,
    /// Whether remote storage is on for the topic, broker, policy and name considered.
    pub remote_storage: bool,
    /// `remote.log.copy.disable`.
    pub remote_copy_disabled: bool,
}

impl Default for LogConfig {
    /// Kafka's defaults.
    fn default() -> Self {
        // spec: segments 1.4
        LogConfig {
            segment_bytes: 1_073_741_824,
            segment_ms: 604_800_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10_485_760,
            index_interval_bytes: 4096,
            preallocate: false,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            retention_bytes: -1,
            retention_ms: 604_800_000,
            local_retention_bytes: -1,
            local_retention_ms: 604_800_000,
            max_message_bytes: 1_048_588,
            file_delete_delay_ms: 60_000,
            compact: false,
            delete: true,
            delete_retention_ms: 86_400_000,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            min_cleanable_dirty_ratio: 0.5,
            compression: None,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            remote_storage: false,
            remote_copy_disabled: false,
        }
    }
}

impl LogConfig {
    /// What shapes the segments.
    #[must_use]
    pub fn segment(&self) -> SegmentSettings {
        SegmentSettings {
            segment_bytes: self.segment_bytes,
            segment_ms: self.segment_ms,
            segment_jitter_ms: self.segment_jitter_ms,
            index_bytes: self.segment_index_bytes,
            index_interval_bytes: self.index_interval_bytes,
            preallocate: self.preallocate,
        }
    }

    /// Whether segments go to remote storage before they leave the local disk.
    #[must_use]
    pub fn remote_copy_enabled(&self) -> bool {
        self.remote_storage && !self.remote_copy_disabled
    }
}

/// What is known of a log when it is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Whether the log directory was stopped cleanly: then its segments are trusted.
    pub clean_shutdown: bool,
    /// The line of `recovery-point-offset-checkpoint`, 0 without one.
    pub recovery_point: i64,
    /// The line of `log-start-offset-checkpoint`, 0 without one.
    pub log_start_offset: i64,
    /// The topic's id. It is written down where it is not yet, and must be the one that is.
    pub topic_id: Option<Uuid>,
    /// How producers are remembered.
    pub producers: ProducerStateConfig,
    /// Whether what recovery cuts off is kept beside, in `.log.lost` files.
    pub keep_lost: bool,
    /// The limit of open files that the log shares with others.
    pub open_files: Arc<OpenFiles>,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
}

impl Default for OpenOptions {
    /// A log that was stopped cleanly, of which nothing more is known.
    fn default() -> Self {
        OpenOptions {
            clean_shutdown: true,
            recovery_point: 0,
            log_start_offset: 0,
            topic_id: None,
            producers: ProducerStateConfig::default(),
            keep_lost: false,
            open_files: OpenFiles::new(100),
            now_ms: 0,
        }
    }
}
