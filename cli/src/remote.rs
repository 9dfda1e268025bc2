//! Where is remote storage, as `--remote` names it?

use std::path::Path;
use std::sync::Arc;

use siltstone::dir::verify::Surroundings;
use siltstone::io::{Disk, Storage};
use siltstone::log::inventory::METADATA_FILE;
use siltstone::log::{FolderName, VerifyOptions};
use siltstone::problem::Problem;
use siltstone::state::meta::parse_partition_metadata;
use siltstone::tier::check_replica::check_replica;
use siltstone::tier::{
    AuxRemote, LocalTarget, ObjectLayout, ObjectTarget, RemoteInventory, RemotePartition,
    RemoteSegment,
};
use siltstone::uuid::Uuid;
use siltstone::{Error, Kind, Result};

use crate::target::file_name;

/// The folder that Kafka's `LocalTieredStorage` makes.
const KAFKA_FOLDER: &str = "kafka-tiered-storage";

/// More than `partition.metadata` has.
const METADATA_BYTES_MAX: u64 = 64 << 10;

/// An object store and what lies there.
#[derive(Debug)]
pub(crate) struct Remote {
    target: Arc<dyn ObjectTarget>,
    layout: ObjectLayout,
    inventory: RemoteInventory,
}

impl Remote {
    /// Lists what is in the store: a folder in the layout of `LocalTieredStorage`, or the folder
    /// around it.
    pub(crate) fn open(text: &str) -> Result<Self> {
        if text.contains("://") {
            let why = "only folders are known here, in the layout of Kafka's LocalTieredStorage";
            return Err(Error::new(Kind::Unsupported, why).context(format!("--remote {text}")));
        }
        let disk = Disk::new();
        let root = Path::new(text);
        disk.metadata(root).map_err(|error| error.context("--remote"))?;
        let is_around = disk.metadata(&root.join(KAFKA_FOLDER)).is_ok();
        let layout =
            if is_around { ObjectLayout::default() } else { ObjectLayout::with_prefix("") };
        let target: Arc<dyn ObjectTarget> = Arc::new(LocalTarget::new(Arc::new(disk), root));
        let inventory = RemoteInventory::list(&*target, &layout)?;
        Ok(Remote { target, layout, inventory })
    }

    /// As the engine takes it.
    pub(crate) fn of_aux(&self) -> AuxRemote<'_> {
        AuxRemote { target: &*self.target, layout: &self.layout }
    }

    /// The partition of this name, and of this topic id if it is known; `None` when there is none.
    pub(crate) fn find(
        &self,
        folder: &FolderName,
        topic_id: Option<Uuid>,
    ) -> Result<Option<&RemotePartition>> {
        let mut found = self.inventory.partitions.keys().filter(|it| {
            it.topic == folder.topic
                && it.partition == folder.partition
                && topic_id.is_none_or(|id| id == it.topic_id)
        });
        let first = found.next();
        if first.is_some() && found.next().is_some() {
            let why = format!(
                "{}-{}: several topics of this name are in remote storage, and the partition has \
                 no partition.metadata to tell which it is",
                folder.topic, folder.partition
            );
            return Err(Error::new(Kind::Conflict, why));
        }
        Ok(first)
    }

    /// The segments of a partition, as far as their parts tell.
    pub(crate) fn segments(&self, partition: &RemotePartition) -> Result<Vec<RemoteSegment>> {
        let parts = self.inventory.partitions.get(partition).into_iter().flatten();
        let readings = parts.map(|parts| parts.read(&*self.target, &self.layout));
        readings.filter_map(|reading| reading.map(|it| it.segment).transpose()).collect()
    }

    /// Compares a partition with what was uploaded of it.
    pub(crate) fn check(
        &self,
        storage: &dyn Storage,
        dir: &Path,
        options: &VerifyOptions<'_>,
    ) -> Result<Vec<Problem>> {
        let options = Surroundings::of(storage, dir).apply(options);
        let Some(folder) = FolderName::parse(&file_name(dir)) else { return Ok(Vec::new()) };
        let path = dir.join(METADATA_FILE);
        let topic_id = match storage.read(&path, METADATA_BYTES_MAX) {
            // One that cannot be read is a finding of the partition's own.
            Ok(bytes) => parse_partition_metadata(&bytes).ok(),
            Err(error) if error.kind() == Kind::NotFound => None,
            Err(error) => return Err(error),
        };
        let Some(partition) = self.find(&folder, topic_id)? else { return Ok(Vec::new()) };
        let (mut problems, mut segments) = (Vec::new(), Vec::new());
        for parts in self.inventory.partitions.get(partition).into_iter().flatten() {
            let mut reading = parts.read(&*self.target, &self.layout)?;
            problems.append(&mut reading.problems);
            segments.extend(reading.segment);
        }
        let start = options.log_start_offset.unwrap_or(0);
        problems.extend(check_replica(storage, dir, start, &segments, &self.of_aux())?);
        Ok(problems)
    }
}
