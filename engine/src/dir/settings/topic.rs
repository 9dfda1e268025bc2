//! The settings of a topic, ready for use.

use crate::log::LogConfig;
use crate::record::TimestampType;
use crate::record::codec::{Codec, Compression};

use super::value::Values;
use super::{Resolved, Source};

/// Topics whose logs stay on the local disk: those of Kafka itself.
const WITHOUT_REMOTE: [&str; 5] = [
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
    "__remote_log_metadata",
];

/// The settings of a topic. Times are milliseconds, sizes bytes; -1 is "unlimited" where a
/// retention may be.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicSettings {
    /// `segment.bytes`, or `internal.segment.bytes` where it is set: the size at which a segment
    /// is full.
    pub segment_bytes: u32,
    /// `segment.ms`: the age at which a segment is full; see
    /// [`TopicSettings::segment_age_max_ms`].
    pub segment_ms: i64,
    /// `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`, before it is rounded down to whole entries.
    pub segment_index_bytes: u32,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u32,
    /// `flush.messages`.
    pub flush_messages: i64,
    /// `flush.ms`.
    pub flush_ms: i64,
    /// `retention.bytes`.
    pub retention_bytes: i64,
    /// `retention.ms`.
    pub retention_ms: i64,
    /// `local.retention.bytes`, -2 where it follows `retention.bytes`; see
    /// [`TopicSettings::local_retention_bytes`].
    pub local_retention_bytes_set: i64,
    /// `local.retention.ms`, -2 where it follows `retention.ms`; see
    /// [`TopicSettings::local_retention_ms`].
    pub local_retention_ms_set: i64,
    /// `max.message.bytes`: the largest batch, compressed.
    pub max_message_bytes: u32,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: i64,
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_dirty_ratio: f64,
    /// Whether `cleanup.policy` has `compact`.
    pub compact: bool,
    /// Whether `cleanup.policy` has `delete`.
    pub delete: bool,
    /// `unclean.leader.election.enable`.
    pub unclean_leader_election: bool,
    /// `min.insync.replicas`.
    pub min_insync_replicas: u32,
    /// `compression.type` with its level; `None` for `producer`: as the producer has it.
    pub compression: Option<Compression>,
    /// `preallocate`.
    pub preallocate: bool,
    /// `message.timestamp.type`.
    pub message_timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`.
    pub message_timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub message_timestamp_after_max_ms: i64,
    /// `remote.storage.enable`; it works only where the broker has remote storage at all.
    pub remote_storage: bool,
    /// `remote.log.copy.disable`.
    pub remote_copy_disabled: bool,
    /// `remote.log.delete.on.disable`.
    pub remote_delete_on_disable: bool,
    /// Every setting with its source, ordered by name; `internal.segment.bytes` only where it is
    /// set.
    pub resolved: Vec<Resolved>,
}

impl TopicSettings {
    pub(super) fn new(resolved: Vec<Resolved>) -> Self {
        let values = Values(&resolved);
        let policy = values.list("cleanup.policy");
        let has_policy = |word: &str| policy.iter().any(|policy| policy == word);
        let compression = match values.text("compression.type") {
            "uncompressed" => Some(Compression::NONE),
            "gzip" => Some(with_level(Codec::Gzip, values.int("compression.gzip.level"))),
            "lz4" => Some(with_level(Codec::Lz4, values.int("compression.lz4.level"))),
            "zstd" => Some(with_level(Codec::Zstd, values.int("compression.zstd.level"))),
            "snappy" => Some(Compression::new(Codec::Snappy)),
            _ => None,
        };
        let timestamp_type = match values.text("message.timestamp.type") {
            "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        };
        let segment_bytes = match values.find("internal.segment.bytes") {
            Some(_) => values.int("internal.segment.bytes"),
            None => values.int("segment.bytes"),
        };
        TopicSettings {
            segment_bytes,
            segment_ms: values.int("segment.ms"),
            segment_jitter_ms: values.int("segment.jitter.ms"),
            segment_index_bytes: values.int("segment.index.bytes"),
            index_interval_bytes: values.int("index.interval.bytes"),
            flush_messages: values.int("flush.messages"),
            flush_ms: values.int("flush.ms"),
            retention_bytes: values.int("retention.bytes"),
            retention_ms: values.int("retention.ms"),
            local_retention_bytes_set: values.int("local.retention.bytes"),
            local_retention_ms_set: values.int("local.retention.ms"),
            max_message_bytes: values.int("max.message.bytes"),
            delete_retention_ms: values.int("delete.retention.ms"),
            min_compaction_lag_ms: values.int("min.compaction.lag.ms"),
            max_compaction_lag_ms: values.int("max.compaction.lag.ms"),
            file_delete_delay_ms: values.int("file.delete.delay.ms"),
            min_cleanable_dirty_ratio: values.float("min.cleanable.dirty.ratio"),
            compact: has_policy("compact"),
            delete: has_policy("delete"),
            unclean_leader_election: values.bool("unclean.leader.election.enable"),
            min_insync_replicas: values.int("min.insync.replicas"),
            compression,
            preallocate: values.bool("preallocate"),
            message_timestamp_type: timestamp_type,
            message_timestamp_before_max_ms: values.int("message.timestamp.before.max.ms"),
            message_timestamp_after_max_ms: values.int("message.timestamp.after.max.ms"),
            remote_storage: values.bool("remote.storage.enable"),
            remote_copy_disabled: values.bool("remote.log.copy.disable"),
            remote_delete_on_disable: values.bool("remote.log.delete.on.disable"),
            resolved,
        }
    }

    /// The age at which a segment is full: of a compacted topic at most the time after which
    /// records must be compacted.
    #[must_use]
    pub fn segment_age_max_ms(&self) -> i64 {
        // spec: kraft-metadata 6
        if self.compact && self.max_compaction_lag_ms > 0 {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }

    /// How long records stay on the local disk of a topic with remote storage.
    #[must_use]
    pub fn local_retention_ms(&self) -> i64 {
        if self.local_retention_ms_set == -2 {
            self.retention_ms
        } else {
            self.local_retention_ms_set
        }
    }

    /// How many bytes stay on the local disk of a topic with remote storage.
    #[must_use]
    pub fn local_retention_bytes(&self) -> i64 {
        if self.local_retention_bytes_set == -2 {
            self.retention_bytes
        } else {
            self.local_retention_bytes_set
        }
    }

    /// Whether the logs of the topic of this name go to remote storage, on a broker that has it or
    /// not (`remote.log.storage.system.enable`). Compacted and internal topics never do.
    #[must_use]
    pub fn has_remote_storage(&self, topic: &str, broker_has_it: bool) -> bool {
        // spec: segments 1.4
        broker_has_it && self.remote_storage && !self.compact && !is_never_remote(topic)
    }

    /// What a log of the topic goes by; see [`has_remote_storage`](Self::has_remote_storage).
    #[must_use]
    pub fn log_config(&self, topic: &str, broker_has_remote_storage: bool) -> LogConfig {
        LogConfig {
            segment_bytes: self.segment_bytes,
            segment_ms: self.segment_age_max_ms(),
            segment_jitter_ms: self.segment_jitter_ms,
            segment_index_bytes: self.segment_index_bytes,
            index_interval_bytes: self.index_interval_bytes,
            preallocate: self.preallocate,
            flush_messages: self.flush_messages,
            flush_ms: self.flush_ms,
            retention_bytes: self.retention_bytes,
            retention_ms: self.retention_ms,
            local_retention_bytes: self.local_retention_bytes(),
            local_retention_ms: self.local_retention_ms(),
            max_message_bytes: self.max_message_bytes,
            file_delete_delay_ms: self.file_delete_delay_ms,
            compact: self.compact,
            delete: self.delete,
            delete_retention_ms: self.delete_retention_ms,
            min_compaction_lag_ms: self.min_compaction_lag_ms,
            max_compaction_lag_ms: self.max_compaction_lag_ms,
            min_cleanable_dirty_ratio: self.min_cleanable_dirty_ratio,
            compression: self.compression,
            timestamp_type: self.message_timestamp_type,
            timestamp_before_max_ms: self.message_timestamp_before_max_ms,
            timestamp_after_max_ms: self.message_timestamp_after_max_ms,
            remote_storage: self.has_remote_storage(topic, broker_has_remote_storage),
            remote_copy_disabled: self.remote_copy_disabled,
        }
    }

    /// The source of a setting, by the topic's name for it.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<Source> {
        Values(&self.resolved).find(name).map(|setting| setting.source)
    }
}

/// Whether a topic of this name never has remote storage, whatever its settings say.
#[must_use]
pub fn is_never_remote(topic: &str) -> bool {
    // spec: tiered 1
    WITHOUT_REMOTE.contains(&topic)
}

fn with_level(codec: Codec, level: i32) -> Compression {
    // Gzip alone has a hole in its range, at 0: there the default holds.
    Compression::with_level(codec, level).unwrap_or_else(|_| Compression::new(codec))
}
