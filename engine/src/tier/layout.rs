//! Under which names do the parts of a remote segment lie?
//!
//! The layout is that of Kafka's `LocalTieredStorage`, in a folder as in a bucket:
//!
//! ```text
//! kafka-tiered-storage/orders-0-<topic id>/00000000000000000042-<segment id>.log
//! ```

use super::remote_segment::{RemotePartition, RemoteSegmentId};
use crate::log::{FolderKind, FolderName};
use crate::uuid::Uuid;

/// Below this folder `LocalTieredStorage` keeps everything.
const KAFKA_PREFIX: &str = "kafka-tiered-storage/";

/// The characters of an id.
const ID_LEN: usize = 22;

/// The six parts of an uploaded segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentPart {
    /// The record batches.
    Log,
    /// The offset index.
    OffsetIndex,
    /// The time index.
    TimeIndex,
    /// The transaction index; there is none when no transaction was aborted.
    TransactionIndex,
    /// The producers at the end of the segment.
    ProducerSnapshot,
    /// The leader epochs from the start of the log to the end of the segment.
    LeaderEpochs,
}

impl SegmentPart {
    /// All of them, in the order in which they are uploaded.
    pub const ALL: [SegmentPart; 6] = [
        SegmentPart::Log,
        SegmentPart::OffsetIndex,
        SegmentPart::TimeIndex,
        SegmentPart::TransactionIndex,
        SegmentPart::ProducerSnapshot,
        SegmentPart::LeaderEpochs,
    ];

    /// The end of its name.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TransactionIndex => ".txnindex",
            Self::ProducerSnapshot => ".snapshot",
            Self::LeaderEpochs => ".leader_epoch_checkpoint",
        }
    }
}

/// Names of objects below a prefix. A name uses `/` alone to separate folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectLayout {
    prefix: String,
}

impl Default for ObjectLayout {
    /// As Kafka's `LocalTieredStorage` has them.
    fn default() -> Self {
        ObjectLayout { prefix: KAFKA_PREFIX.to_owned() }
    }
}

impl ObjectLayout {
    /// Names that begin so; the prefix is used as it is, with no `/` put behind it.
    #[must_use]
    pub fn with_prefix(prefix: impl Into<String>) -> Self {
        ObjectLayout { prefix: prefix.into() }
    }

    /// What every name begins with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What the names of a partition begin with.
    #[must_use]
    pub fn partition_prefix(&self, partition: &RemotePartition) -> String {
        let RemotePartition { topic_id, topic, partition } = partition;
        format!("{}{topic}-{partition}-{topic_id}/", self.prefix)
    }

    /// The name of a part.
    #[must_use]
    pub fn name(&self, id: &RemoteSegmentId, start_offset: i64, part: SegmentPart) -> String {
        let folder = self.partition_prefix(&id.partition);
        format!("{folder}{start_offset:020}-{}{}", id.segment_id, part.suffix())
    }

    /// What a name says; `None` when it is of no part of a segment.
    #[must_use]
    pub fn parse(&self, name: &str) -> Option<(RemoteSegmentId, i64, SegmentPart)> {
        let (folder, file) = name.strip_prefix(self.prefix.as_str())?.split_once('/')?;
        let partition = parse_partition(folder)?;
        let (start_offset, segment_id, part) = parse_part(file)?;
        Some((RemoteSegmentId { partition, segment_id }, start_offset, part))
    }
}

/// What the name of a part says within its folder: where the segment starts, its id, and which part
/// it is.
#[must_use]
pub fn parse_part(file: &str) -> Option<(i64, Uuid, SegmentPart)> {
    let part = SegmentPart::ALL.into_iter().find(|part| file.ends_with(part.suffix()))?;
    let (start, segment_id) = file.strip_suffix(part.suffix())?.split_once('-')?;
    let is_offset = start.len() >= 20 && start.bytes().all(|byte| byte.is_ascii_digit());
    let start_offset = start.parse().ok().filter(|_| is_offset)?;
    Some((start_offset, parse_id(segment_id)?, part))
}

/// The partition of a folder: `orders-0-<topic id>`. An id may have dashes of its own.
#[must_use]
pub fn parse_partition(folder: &str) -> Option<RemotePartition> {
    let (name, id) = folder.split_at_checked(folder.len().checked_sub(ID_LEN)?)?;
    let FolderName { topic, partition, kind } = FolderName::parse(name.strip_suffix('-')?)?;
    let topic_id = parse_id(id)?;
    (kind == FolderKind::Live).then_some(RemotePartition { topic_id, topic, partition })
}

/// An id in the one form that is written.
fn parse_id(text: &str) -> Option<Uuid> {
    Uuid::parse(text).filter(|id| id.to_string() == text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let layout = ObjectLayout::default();
        let folder = "kafka-tiered-storage/tier-a-0-KhrFBVCXRj-kNEnYK4ZyLw/";
        for part in SegmentPart::ALL {
            let file = format!("00000000000000000089-y-tcbHSyS_K1aAUhhTCjAg{}", part.suffix());
            let name = format!("{folder}{file}");
            let (id, start_offset, found) = layout.parse(&name).unwrap();
            assert_eq!((id.partition.topic.as_str(), id.partition.partition), ("tier-a", 0));
            assert_eq!((start_offset, found), (89, part));
            assert_eq!(layout.name(&id, start_offset, part), name);
            assert_eq!(layout.partition_prefix(&id.partition), folder);
        }
    }

    #[test]
    fn other_names_are_no_parts() {
        let layout = ObjectLayout::default();
        let id = "KhrFBVCXRj-kNEnYK4ZyLw";
        for name in [
            String::new(),
            format!("tier-a-0-{id}/00000000000000000089-{id}.log"),
            format!("kafka-tiered-storage/tier-a-0/00000000000000000089-{id}.log"),
            format!("kafka-tiered-storage/tier-a-{id}/00000000000000000089-{id}.log"),
            format!("kafka-tiered-storage/tier-a-0-{id}/89-{id}.log"),
            format!("kafka-tiered-storage/tier-a-0-{id}/00000000000000000089-{id}.logs"),
            format!("kafka-tiered-storage/tier-a-0-{id}/00000000000000000089-.log"),
            format!("kafka-tiered-storage/tier-a-0-{id}/99999999999999999999-{id}.log"),
            format!("kafka-tiered-storage/tier-a-0-{id}"),
            format!("kafka-tiered-storage/{id}/x"),
        ] {
            assert_eq!(layout.parse(&name), None, "{name}");
        }
    }
}
