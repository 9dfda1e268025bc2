//! Which partition folders belong to this node? What the folders are is compared with what the
//! cluster's metadata says.
//!
//! ```text
//! topic id in the metadata, node among the replicas          wanted
//! topic id unknown, other id under the name, not a replica,
//! no partition.metadata                                      stray: Kafka renames it at a start
//! node among the replicas, no folder                         missing: a new partition has none yet
//! ```

use std::collections::HashSet;
use std::fmt;

use crate::dir::metadata::{MetadataImage, Partition, is_reserved_directory};
use crate::uuid::Uuid;

/// Whether a folder's replica belongs to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belonging {
    /// The node has this replica.
    Wanted {
        /// The log directory that the metadata assigns; `None` where it names none.
        directory: Option<Uuid>,
    },
    /// The node has no such replica: Kafka renames the folder to `-stray` at its next start.
    Stray(Stray),
}

/// Why a folder is stray.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stray {
    /// It has no `partition.metadata`, or none with a topic id.
    NoTopicId,
    /// No topic has its topic id.
    UnknownTopicId,
    /// A topic of its name has another topic id: it was deleted and made again.
    NameReused,
    /// The topic has no partition of this index.
    UnknownPartition,
    /// Other nodes have the replicas.
    NotAReplica,
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stray::NoTopicId => "no topic id",
            Stray::UnknownTopicId => "unknown topic id",
            Stray::NameReused => "the topic was made again with another id",
            Stray::UnknownPartition => "the topic has no such partition",
            Stray::NotAReplica => "not a replica",
        })
    }
}

/// Whether the replica in a folder belongs to node `node_id`. The folder is of partition `index` of
/// `topic`; `topic_id` is from its `partition.metadata`.
#[must_use]
pub fn belonging(
    image: &MetadataImage,
    node_id: i32,
    topic: &str,
    index: i32,
    topic_id: Option<Uuid>,
) -> Belonging {
    // spec: kraft-metadata 7. The id alone decides, as in Kafka.
    let Some(id) = topic_id else { return Belonging::Stray(Stray::NoTopicId) };
    let Some(known) = image.topic_by_id(id) else {
        let is_reused = image.topic(topic).is_some();
        return Belonging::Stray(if is_reused { Stray::NameReused } else { Stray::UnknownTopicId });
    };
    match known.partitions.get(&index) {
        None => Belonging::Stray(Stray::UnknownPartition),
        Some(partition) if !partition.replicas.contains(&node_id) => {
            Belonging::Stray(Stray::NotAReplica)
        }
        Some(partition) => Belonging::Wanted { directory: assigned_directory(partition, node_id) },
    }
}

/// The log directory that a partition's replica on this node is assigned to; `None` where it may be
/// in any.
#[must_use]
pub fn assigned_directory(partition: &Partition, node_id: i32) -> Option<Uuid> {
    // spec: kraft-metadata 8
    let mut assigned = partition.replicas.iter().zip(&partition.directories);
    let (_, directory) = assigned.find(|(replica, _)| **replica == node_id)?;
    (!is_reserved_directory(*directory)).then_some(*directory)
}

/// The partitions that node `node_id` has by the metadata and that are not among `found`, by topic
/// name and index.
#[must_use]
pub fn missing<'a>(
    image: &'a MetadataImage,
    node_id: i32,
    found: &HashSet<(&'a str, i32)>,
) -> Vec<(&'a str, i32)> {
    let wanted = image.topics().flat_map(|topic| {
        let here = topic.partitions.iter().filter(|(_, p)| p.replicas.contains(&node_id));
        here.map(|(index, _)| (topic.name.as_str(), *index))
    });
    wanted.filter(|partition| !found.contains(partition)).collect()
}
