//! What do topic and broker ask of batches?

use crate::record::batch::TimestampType;
use crate::record::codec::{Codec, Compression};
use crate::units::NO_LEADER_EPOCH;

/// Who appends, which decides what is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendOrigin {
    /// A follower takes what its leader has accepted, or a log is read again.
    Replication,
    /// A transaction coordinator writes markers.
    Coordinator,
    /// A producer.
    Client,
    /// The leader of the metadata log.
    RaftLeader,
}

/// `compression.type` of a topic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TopicCompression {
    /// `producer`: what came is what is written; where it must be written anew, the same codec at
    /// its default level.
    #[default]
    Producer,
    /// A codec with its level, or [`Compression::NONE`] for `uncompressed`.
    Fixed(Compression),
}

impl TopicCompression {
    /// How batches are to be written that came in `source`.
    #[must_use]
    pub fn target(self, source: Codec) -> Compression {
        match self {
            TopicCompression::Producer => Compression::new(source),
            TopicCompression::Fixed(compression) => compression,
        }
    }
}

/// The rules that a leader holds batches against. The default has Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateOptions {
    /// Who appends.
    pub origin: AppendOrigin,
    /// The format to write: 2. The old ones are there for the sake of tests.
    pub target_magic: i8,
    /// `compression.type`, with the level of its codec.
    pub compression: TopicCompression,
    /// Whether `cleanup.policy` has `compact`: every record must have a key.
    pub is_compacted: bool,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far in the past a record's timestamp may lie.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far in the future.
    pub timestamp_after_max_ms: i64,
    /// `max.message.bytes`: the size of a batch, where it was written anew.
    pub max_message_bytes: u32,
    /// The leader epoch that batches get.
    pub leader_epoch: i32,
    /// A batch that must be written anew is refused when its records take more memory than this.
    /// Kafka knows no such limit but its heap.
    pub opened_bytes_max: usize,
}

impl Default for ValidateOptions {
    fn default() -> Self {
        ValidateOptions {
            origin: AppendOrigin::Client,
            target_magic: 2,
            compression: TopicCompression::Producer,
            is_compacted: false,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            max_message_bytes: 1_048_588,
            leader_epoch: NO_LEADER_EPOCH,
            opened_bytes_max: 1 << 30,
        }
    }
}

impl ValidateOptions {
    pub(super) fn is_log_append_time(&self) -> bool {
        self.timestamp_type == TimestampType::LogAppendTime
    }
}
