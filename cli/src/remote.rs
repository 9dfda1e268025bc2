//! What is in remote storage, as `--remote` names it?

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use siltstone::dir::verify::Surroundings;
use siltstone::io::Storage;
use siltstone::log::{FolderName, LogFacts, VerifyOptions, read_topic_id};
use siltstone::problem::Problem;
use siltstone::state::LeaderEpochs;
use siltstone::state::checkpoint::parse_epochs;
use siltstone::tier::check_replica::check_replica;
use siltstone::tier::{
    AuxRemote, Lineage, ObjectLayout, ObjectTarget, RemoteInventory, RemotePartition, RemoteParts,
    RemoteSegment, RemoteSegmentState, SegmentPart, check_remote_segments, highest_remote,
    read_remote_segments,
};
use siltstone::uuid::Uuid;
use siltstone::{Error, Kind, Result};

use crate::location;
use crate::session::{Session, complain};
use crate::target::file_name;

/// Segments that are read at a time: an object store takes many questions at once.
pub(crate) const READERS: usize = 32;

/// The most bytes of a leader-epoch checkpoint that are read.
const EPOCHS_BYTES_MAX: u64 = 64 << 20;

/// An object store and what lies there.
#[derive(Debug)]
pub(crate) struct Remote {
    target: Arc<dyn ObjectTarget>,
    is_far: bool,
    layout: ObjectLayout,
    inventory: RemoteInventory,
    /// The partitions by topic and number: more than one where a topic was made anew.
    by_name: HashMap<(String, i32), Vec<RemotePartition>>,
    /// What was read ahead of the partitions that were not asked for yet.
    ahead: Mutex<BTreeMap<RemotePartition, Result<Vec<RemoteSegment>>>>,
}

impl Remote {
    /// Lists what is below a folder or URL: the folder that Kafka's `LocalTieredStorage` makes, or
    /// that folder itself.
    pub(crate) fn open(session: &Session, path: &Path) -> Result<Self> {
        Self::list(session, path).map_err(|error| error.context("--remote"))
    }

    fn list(session: &Session, path: &Path) -> Result<Self> {
        let target = location::objects(session, path)?;
        let mut layout = ObjectLayout::default();
        let mut inventory = RemoteInventory::list(&*target, &layout)?;
        if inventory.partitions.is_empty() {
            layout = ObjectLayout::with_prefix("");
            inventory = RemoteInventory::list(&*target, &layout)?;
        }
        // It is no error, before the first upload; but a name with a slip in it looks the same.
        if inventory.partitions.is_empty() {
            let example = "kafka-tiered-storage/TOPIC-N-TOPICID/OFFSET-SEGMENTID.log";
            complain(&format_args!("--remote: no uploaded segment is there, such as {example}"));
        }
        let mut by_name: HashMap<_, Vec<_>> = HashMap::new();
        for partition in inventory.partitions.keys() {
            let name = (partition.topic.clone(), partition.partition);
            by_name.entry(name).or_default().push(partition.clone());
        }
        let is_far = location::is_stored(path);
        Ok(Remote { target, is_far, layout, inventory, by_name, ahead: Mutex::default() })
    }

    /// Whether it is a store and no folder: each object is waited for.
    pub(crate) fn is_far(&self) -> bool {
        self.is_far
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
        let named = self.by_name.get(&(folder.topic.clone(), folder.partition));
        let is_meant = |it: &&RemotePartition| topic_id.is_none_or(|id| id == it.topic_id);
        let mut found = named.into_iter().flatten().filter(is_meant);
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

    /// Reads the segments of many partitions side by side, for [`finished`](Self::finished) to give
    /// them one by one; what cannot be read is told there, too.
    pub(crate) fn read_ahead<'a>(&self, partitions: impl Iterator<Item = &'a RemotePartition>) {
        let parts: Vec<(&RemotePartition, Vec<&RemoteParts>)> =
            partitions.map(|partition| (partition, self.whole(partition))).collect();
        let all: Vec<&RemoteParts> =
            parts.iter().flat_map(|(_, parts)| parts.iter().copied()).collect();
        let mut results =
            read_remote_segments(&*self.target, &self.layout, &all, READERS).into_iter();
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        for (partition, parts) in parts {
            let own: Vec<_> = results.by_ref().take(parts.len()).collect();
            ahead.insert(partition.clone(), finished_of(own));
        }
    }

    /// The segments of a partition whose copy was finished: nobody can read of others. What lacks a
    /// part by the listing is not looked into.
    pub(crate) fn finished(&self, partition: &RemotePartition) -> Result<Vec<RemoteSegment>> {
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner).remove(partition);
        ahead.unwrap_or_else(|| {
            let parts = self.whole(partition);
            finished_of(read_remote_segments(&*self.target, &self.layout, &parts, READERS))
        })
    }

    /// The leader epochs of the log that a segment was uploaded from, as they were then.
    pub(crate) fn lineage(&self, segment: &RemoteSegment) -> Result<Lineage> {
        let name = self.layout.name(&segment.id, segment.start_offset, SegmentPart::LeaderEpochs);
        let epochs = (self.target.get(&name, None, EPOCHS_BYTES_MAX))
            .and_then(|bytes| LeaderEpochs::from_entries(&parse_epochs(&bytes)?));
        let epochs = epochs.map_err(|error| error.context(name))?;
        Ok(Lineage::new(epochs.entries(), i64::MAX))
    }

    /// The segments of a partition that lack no part by the listing.
    fn whole(&self, partition: &RemotePartition) -> Vec<&RemoteParts> {
        let parts = self.inventory.partitions.get(partition).into_iter().flatten();
        parts.filter(|parts| parts.missing().next().is_none()).collect()
    }

    /// The last offset of a partition that is copied, as its own leader epochs, segments and end
    /// have it; -1 for none.
    pub(crate) fn copied_offset(
        &self,
        partition: &RemotePartition,
        epochs: &LeaderEpochs,
        facts: &LogFacts,
        log_end_offset: i64,
    ) -> Result<i64> {
        let mut segments = self.finished(partition)?;
        segments.iter_mut().for_each(|segment| reach_next(segment, facts));
        let highest_of = |epoch| segments.iter().filter_map(|it| it.last_offset_of(epoch)).max();
        let highest = highest_remote(epochs, log_end_offset, highest_of);
        Ok(highest.map_or(-1, |highest| highest.offset))
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
        let topic_id = match read_topic_id(storage, dir) {
            Err(error) if error.kind() == Kind::Io => return Err(error),
            // What is wrong with the file is a finding of the partition's own.
            outcome => outcome.unwrap_or_default(),
        };
        let partition = self.find(&folder, topic_id)?;
        // Without uploads all must be here, which only the start of the log can tell. That of a log
        // without remote storage is the first segment's as a rule, and written down nowhere.
        if partition.is_none() && options.log_start_offset.is_none() {
            return Ok(Vec::new());
        }
        let (mut problems, mut segments) = (Vec::new(), Vec::new());
        let parts = partition.and_then(|partition| self.inventory.partitions.get(partition));
        let parts: Vec<&RemoteParts> = parts.into_iter().flatten().collect();
        for reading in check_remote_segments(&*self.target, &self.layout, &parts, READERS) {
            let mut reading = reading?;
            problems.append(&mut reading.problems);
            segments.extend(reading.segment);
        }
        let remote = self.of_aux();
        problems.extend(check_replica(storage, dir, &options, &segments, &remote, READERS)?);
        Ok(problems)
    }
}

/// A segment ends in front of the next one, also where its last batch ends earlier. The store does
/// not tell; the local segment of the same base and as many bytes does.
fn reach_next(segment: &mut RemoteSegment, facts: &LogFacts) {
    // spec: tiered 2.2
    let bases = facts.segments.binary_search_by_key(&segment.start_offset, |it| it.base_offset);
    let Ok(slot) = bases else { return };
    let size_bytes = u64::try_from(segment.size_bytes).ok();
    if let Some([local, next, ..]) = facts.segments.get(slot..)
        && Some(local.log_size_bytes) == size_bytes
    {
        segment.end_offset = segment.end_offset.max(next.base_offset.saturating_sub(1));
    }
}

/// The segments that are whole, or the first error.
fn finished_of(read: Vec<Result<Option<RemoteSegment>>>) -> Result<Vec<RemoteSegment>> {
    let mut segments =
        read.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>>>()?;
    // A part may have gone since.
    segments.retain(|segment| segment.state == RemoteSegmentState::CopyFinished);
    Ok(segments)
}
