//! What is copied already, by the objects in remote storage?

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use siltstone::Result;
use siltstone::io::{IoChoice, Storage, open_disk};
use siltstone::log::FolderName;
use siltstone::state::LeaderEpochs;
use siltstone::tier::{
    LocalTarget, ObjectLayout, RemoteInventory, RemoteParts, RemoteSegment, RemoteSegmentState,
    highest_remote,
};
use siltstone::uuid::Uuid;

/// A folder of remote storage.
pub(super) struct Remote {
    target: LocalTarget,
    layout: ObjectLayout,
    /// The segments by topic and partition, those of all topics of one name together.
    partitions: HashMap<(String, i32), Vec<RemoteParts>>,
}

impl Remote {
    /// Lists the objects in the folder, whether it is the one that holds `kafka-tiered-storage` or
    /// that one itself.
    pub(super) fn list(dir: &Path) -> Result<Self> {
        let disk: Arc<dyn Storage> = Arc::from(open_disk(IoChoice::Auto)?);
        disk.metadata(dir)?;
        let layout = ObjectLayout::default();
        let folder = layout.prefix().trim_end_matches('/');
        let is_inner = dir.file_name().is_some_and(|name| name == folder);
        let layout = if is_inner { ObjectLayout::with_prefix("") } else { layout };
        let target = LocalTarget::new(disk, dir);
        let mut partitions: HashMap<_, Vec<_>> = HashMap::new();
        for (partition, parts) in RemoteInventory::list(&target, &layout)?.partitions {
            partitions.entry((partition.topic, partition.partition)).or_default().extend(parts);
        }
        Ok(Remote { target, layout, partitions })
    }

    /// The last offset of a partition that is copied, -1 for none.
    pub(super) fn copied_offset(
        &self,
        folder: &FolderName,
        topic_id: Option<Uuid>,
        epochs: &LeaderEpochs,
        log_end_offset: i64,
    ) -> Result<i64> {
        let mut segments = Vec::new();
        let parts = self.partitions.get(&(folder.topic.clone(), folder.partition));
        for parts in parts.into_iter().flatten() {
            if topic_id.is_none_or(|id| id == parts.id.partition.topic_id) {
                segments.extend(parts.read(&self.target, &self.layout)?.segment);
            }
        }
        segments.retain(|segment| segment.state == RemoteSegmentState::CopyFinished);
        let highest_of = |epoch| segments.iter().filter_map(|it| last_offset(it, epoch)).max();
        let highest = highest_remote(epochs, log_end_offset, highest_of);
        Ok(highest.map_or(-1, |highest| highest.offset))
    }
}

/// The last offset of an epoch in a segment.
fn last_offset(segment: &RemoteSegment, epoch: i32) -> Option<i64> {
    let mut epochs = segment.leader_epochs.iter();
    epochs.find(|entry| entry.epoch == epoch)?;
    Some(epochs.next().map_or(segment.end_offset, |next| next.start_offset.saturating_sub(1)))
}
