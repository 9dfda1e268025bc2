//! What is in remote storage of all partitions? The events of `__remote_log_metadata`, applied.

use std::collections::HashMap;

use super::metadata_cache::{Applied, Dropped, MetadataCache};
use super::metadata_codec::RemoteMetadataRecord;
use super::remote_segment::{PartitionDelete, PartitionDeleteState, RemotePartition};
use crate::error::{Error, Kind, Result};

/// What is known of every partition in remote storage.
#[derive(Clone, Debug, Default)]
pub struct RemoteMetadata {
    caches: HashMap<RemotePartition, MetadataCache>,
    going: HashMap<RemotePartition, PartitionDeleteState>,
    is_loaded: bool,
}

impl RemoteMetadata {
    /// Nothing is known yet; it is loading.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies an event.
    ///
    /// # Errors
    /// Those of [`MetadataCache::add`] and [`MetadataCache::update`]; `NotFound` for an update of a
    /// partition that is not known once it is [loaded](Self::mark_loaded); `InvalidArgument` for a
    /// snapshot, which names no partition.
    pub fn apply(&mut self, record: RemoteMetadataRecord) -> Result<Applied> {
        match record {
            RemoteMetadataRecord::Segment(segment) => {
                self.cache_of(&segment.id.partition).add(segment)
            }
            RemoteMetadataRecord::Update(update) => {
                let Some(cache) = self.caches.get_mut(&update.id.partition) else {
                    return match self.is_loaded {
                        true => Err(unknown(&update.id.partition)),
                        false => Ok(Applied::Dropped(Dropped::UnknownWhileLoading)),
                    };
                };
                cache.update(&update)
            }
            RemoteMetadataRecord::PartitionDelete(PartitionDelete { partition, state, .. }) => {
                if state == PartitionDeleteState::Finished {
                    self.caches.remove(&partition);
                    self.going.remove(&partition);
                } else {
                    self.going.insert(partition, state);
                }
                Ok(Applied::Done)
            }
            RemoteMetadataRecord::Snapshot(segment) => {
                let id = segment.segment_id;
                let message = format!("the snapshot of segment {id} names no partition");
                Err(Error::new(Kind::InvalidArgument, message))
            }
        }
    }

    fn cache_of(&mut self, partition: &RemotePartition) -> &mut MetadataCache {
        let is_loaded = self.is_loaded;
        self.caches.entry(partition.clone()).or_insert_with(|| {
            let mut cache = MetadataCache::new(partition.clone());
            if is_loaded {
                cache.mark_loaded();
            }
            cache
        })
    }

    /// Says that all events that were there have been read.
    pub fn mark_loaded(&mut self) {
        self.is_loaded = true;
        self.caches.values_mut().for_each(MetadataCache::mark_loaded);
    }

    /// What is known of a partition.
    ///
    /// # Errors
    /// `NotFound` when nothing ever was.
    pub fn partition(&self, partition: &RemotePartition) -> Result<&MetadataCache> {
        self.caches.get(partition).ok_or_else(|| unknown(partition))
    }

    /// The partitions of this name and number, by topic id: there are several after a topic was
    /// deleted and made anew.
    #[must_use]
    pub fn find(&self, topic: &str, partition: i32) -> Vec<&MetadataCache> {
        let mut found = self.partitions();
        found.retain(|cache| {
            let of = cache.partition();
            of.topic == topic && of.partition == partition
        });
        found
    }

    /// Every partition, by topic id.
    #[must_use]
    pub fn partitions(&self) -> Vec<&MetadataCache> {
        let mut caches: Vec<_> = self.caches.values().collect();
        caches.sort_by(|one, other| one.partition().cmp(other.partition()));
        caches
    }

    /// How far a partition's removal is, if it is to go.
    #[must_use]
    pub fn delete_state(&self, partition: &RemotePartition) -> Option<PartitionDeleteState> {
        self.going.get(partition).copied()
    }
}

fn unknown(partition: &RemotePartition) -> Error {
    let RemotePartition { topic, partition, topic_id } = partition;
    let message = format!("nothing is known of {topic}-{partition} ({topic_id}) in remote storage");
    Error::new(Kind::NotFound, message)
}

#[cfg(test)]
mod tests {
    use super::super::metadata_cache::tests::{partition, segment, update};
    use super::super::remote_segment::{RemoteSegmentState, SegmentSnapshot};
    use super::*;

    fn going(state: PartitionDeleteState) -> RemoteMetadataRecord {
        RemoteMetadataRecord::PartitionDelete(PartitionDelete {
            partition: partition(),
            event_timestamp_ms: 0,
            state,
            broker_id: 0,
        })
    }

    fn finish(id: u64) -> RemoteMetadataRecord {
        RemoteMetadataRecord::Update(update(id, RemoteSegmentState::CopyFinished))
    }

    #[test]
    fn events_reach_the_cache_of_their_partition() {
        let mut metadata = RemoteMetadata::new();
        let early = metadata.apply(finish(1)).unwrap();
        assert_eq!(early, Applied::Dropped(Dropped::UnknownWhileLoading));
        let added = RemoteMetadataRecord::Segment(segment(1, 0, 9, "0:0"));
        assert_eq!(metadata.apply(added).unwrap(), Applied::Done);
        assert_eq!(metadata.apply(finish(1)).unwrap(), Applied::Done);
        metadata.mark_loaded();
        let cache = metadata.partition(&partition()).unwrap();
        assert!(cache.is_loaded() && cache.segment(0, 9).is_some());
        assert_eq!(metadata.find("orders", 0).len(), 1);
        assert!(metadata.find("orders", 1).is_empty() && metadata.find("other", 0).is_empty());
    }

    #[test]
    fn a_partition_of_which_nothing_is_known_is_not_found() {
        // spec: tiered-behaviours MC22
        let mut metadata = RemoteMetadata::new();
        assert_eq!(metadata.partition(&partition()).unwrap_err().kind(), Kind::NotFound);
        metadata.mark_loaded();
        assert_eq!(metadata.apply(finish(1)).unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn a_partition_that_is_gone_is_forgotten() {
        let mut metadata = RemoteMetadata::new();
        metadata.apply(RemoteMetadataRecord::Segment(segment(1, 0, 9, "0:0"))).unwrap();
        for state in [PartitionDeleteState::Marked, PartitionDeleteState::Started] {
            metadata.apply(going(state)).unwrap();
            assert_eq!(metadata.delete_state(&partition()), Some(state));
            assert!(metadata.partition(&partition()).is_ok());
        }
        metadata.apply(going(PartitionDeleteState::Finished)).unwrap();
        assert_eq!(metadata.delete_state(&partition()), None);
        assert!(metadata.partitions().is_empty());
    }

    #[test]
    fn a_snapshot_belongs_to_no_partition() {
        let snapshot = SegmentSnapshot::from(&segment(1, 0, 9, "0:0"));
        let record = RemoteMetadataRecord::Snapshot(snapshot);
        let error = RemoteMetadata::new().apply(record).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument);
    }
}
