//! Remote storage for tests: objects on a disk in memory, and logs that were uploaded to it.

use std::path::Path;
use std::sync::Arc;

use siltstone::io::SimDisk;
use siltstone::log::Log;
use siltstone::state::EpochEntry;
use siltstone::tier::{
    AuxRemote, FaultyTarget, LocalTarget, ObjectBytes, ObjectLayout, ObjectTarget, RemotePartition,
    RemoteSegment, RemoteSegmentId, RemoteSegmentState, SegmentPart,
};
use siltstone::uuid::Uuid;

use crate::live::{NOW_MS, TestLog};

/// A store of objects that can be told to fail.
#[derive(Debug)]
pub struct Remote {
    /// The store.
    pub target: Arc<FaultyTarget>,
    /// The names in it.
    pub layout: ObjectLayout,
}

impl Default for Remote {
    fn default() -> Self {
        let disk = SimDisk::new();
        disk.put_dir(Path::new("/store"), None).expect("a disk");
        let inner = Arc::new(LocalTarget::new(Arc::new(disk), "/store"));
        let target = Arc::new(FaultyTarget::new(inner));
        Remote { target, layout: ObjectLayout::default() }
    }
}

impl Remote {
    /// As a rebuild wants it.
    #[must_use]
    pub fn of_aux(&self) -> AuxRemote<'_> {
        AuxRemote { target: &*self.target, layout: &self.layout }
    }

    /// Writes an object of a segment.
    ///
    /// # Panics
    ///
    /// When the store fails.
    pub fn put(&self, segment: &RemoteSegment, part: SegmentPart, bytes: &[u8]) {
        let name = self.layout.name(&segment.id, segment.start_offset, part);
        self.target.put(&name, &[ObjectBytes::Memory(bytes)]).expect("a store");
    }

    /// Writes leader epochs and snapshot of a segment.
    pub fn put_aux(&self, segment: &RemoteSegment, epochs: &str, snapshot: &[u8]) {
        self.put(segment, SegmentPart::LeaderEpochs, epochs.as_bytes());
        self.put(segment, SegmentPart::ProducerSnapshot, snapshot);
    }

    /// Uploads leader epochs and snapshot of the segment that ends before `next_offset`, which must
    /// be the base of another.
    ///
    /// # Panics
    ///
    /// When the log has no such segment, or no snapshot there.
    #[must_use]
    pub fn upload(&self, leader: &TestLog, next_offset: i64) -> RemoteSegment {
        let segment = segment_of(leader.log(), next_offset);
        let epochs = leader.log().leader_epochs();
        let cut = epochs.entries_in_range(-1, next_offset);
        let snapshot = leader.file(&format!("{next_offset:020}.snapshot")).expect("a snapshot");
        self.put_aux(&segment, &epochs_text(&cut), &snapshot);
        segment
    }
}

/// The metadata of the local segment that ends before `next_offset`.
///
/// # Panics
///
/// When the log has none.
#[must_use]
pub fn segment_of(log: &Log, next_offset: i64) -> RemoteSegment {
    let segments = log.segments();
    let bases = segments.iter().map(|segment| segment.base_offset());
    let start = bases.take_while(|base| *base < next_offset).last().expect("a segment");
    let epochs = log.leader_epochs().entries_in_range(start, next_offset);
    RemoteSegment { leader_epochs: epochs, ..segment(0, start, next_offset - 1, &[]) }
}

/// A checkpoint of leader epochs.
#[must_use]
pub fn epochs_text(entries: &[EpochEntry]) -> String {
    String::from_utf8(siltstone::state::checkpoint::format_epochs(entries)).expect("text")
}

/// A finished segment of partition `orders-NUMBER`, with epochs and their starts.
#[must_use]
pub fn segment(number: i32, start: i64, end: i64, epochs: &[(i32, i64)]) -> RemoteSegment {
    let topic_id = Uuid::parse("KhrFBVCXRj-kNEnYK4ZyLw").expect("an id");
    let entries = epochs
        .iter()
        .map(|(epoch, start_offset)| EpochEntry { epoch: *epoch, start_offset: *start_offset });
    let id = RemoteSegmentId {
        partition: RemotePartition { topic_id, topic: "orders".to_owned(), partition: number },
        segment_id: Uuid::random(),
    };
    RemoteSegment {
        id,
        start_offset: start,
        end_offset: end,
        max_timestamp_ms: NOW_MS,
        broker_id: 1,
        event_timestamp_ms: NOW_MS,
        size_bytes: 1000,
        custom_metadata: None,
        state: RemoteSegmentState::CopyFinished,
        leader_epochs: entries.collect(),
        is_txn_index_empty: false,
    }
}
