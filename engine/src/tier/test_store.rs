//! Remote segments made up for tests.

use std::sync::Arc;

use super::indexes::TargetIndexes;
use super::layout::{ObjectLayout, SegmentPart};
use super::local_target::LocalTarget;
use super::metadata_cache::MetadataCache;
use super::metadata_cache::tests::{finished, partition, segment, update};
use super::remote_segment::{RemoteSegment, RemoteSegmentId, RemoteSegmentState};
use super::target::{ObjectBytes, ObjectTarget};
use super::view::{LocalTransactions, NoLocalSegments, RemoteView};
use crate::index::AbortedTxn;
use crate::io::SimDisk;
use crate::record::builder::{BatchBuilder, BatchOptions};
use crate::record::codec::Compressor;
use crate::state::LeaderEpochs;

/// A batch of one record for each timestamp, at these offsets.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    base_offset: i64,
    leader_epoch: i32,
    timestamps: Vec<i64>,
}

/// A batch of these timestamps.
pub(super) fn batch(base_offset: i64, leader_epoch: i32, timestamps: &[i64]) -> Batch {
    Batch { base_offset, leader_epoch, timestamps: timestamps.to_vec() }
}

impl Batch {
    fn last_offset(&self) -> i64 {
        self.base_offset + i64::try_from(self.timestamps.len()).unwrap() - 1
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let (base_offset, leader_epoch) = (self.base_offset, self.leader_epoch);
        let options = BatchOptions { base_offset, leader_epoch, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options).unwrap();
        for timestamp in &self.timestamps {
            builder.append(*timestamp, None, Some(b"value")).unwrap();
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
        bytes
    }
}

/// An object store with segments of one partition.
pub(super) struct TestStore {
    target: LocalTarget,
    layout: ObjectLayout,
    pub(super) cache: MetadataCache,
    pub(super) epochs: LeaderEpochs,
    pub(super) log_start_offset: i64,
    pub(super) log_end_offset: i64,
}

impl TestStore {
    /// No segments, of a log with these epochs, as `epoch:start` words.
    pub(super) fn new(epochs: &str, log_end_offset: i64) -> Self {
        TestStore {
            target: LocalTarget::new(Arc::new(SimDisk::new()), "/"),
            layout: ObjectLayout::default(),
            cache: finished(vec![]),
            epochs: LeaderEpochs::from_entries(&super::lineage::tests::entries(epochs)).unwrap(),
            log_start_offset: 0,
            log_end_offset,
        }
    }

    /// Uploads a segment with an index entry for each batch but the first, and says that its copy
    /// is finished.
    pub(super) fn upload(
        &mut self,
        given: RemoteSegment,
        batches: &[Batch],
        aborted: &[AbortedTxn],
    ) {
        let id = given.id.clone();
        self.begin(given, batches, aborted);
        let finish =
            super::RemoteSegmentUpdate { id, ..update(0, RemoteSegmentState::CopyFinished) };
        self.cache.update(&finish).unwrap();
    }

    /// The same without the end of the copy.
    pub(super) fn begin(
        &mut self,
        given: RemoteSegment,
        batches: &[Batch],
        aborted: &[AbortedTxn],
    ) {
        let start = given.start_offset;
        let (mut log, mut offsets, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let mut latest = -1;
        for (slot, batch) in batches.iter().enumerate() {
            let relative = i32::try_from(batch.last_offset() - start).unwrap();
            if slot > 0 {
                offsets.extend(relative.to_be_bytes());
                offsets.extend(i32::try_from(log.len()).unwrap().to_be_bytes());
            }
            let max_timestamp = batch.timestamps.iter().copied().max().unwrap();
            if max_timestamp > latest {
                latest = max_timestamp;
                times.extend(latest.to_be_bytes());
                times.extend(relative.to_be_bytes());
            }
            log.extend(batch.bytes());
        }
        self.put(&given.id, start, SegmentPart::Log, &log);
        self.put(&given.id, start, SegmentPart::OffsetIndex, &offsets);
        self.put(&given.id, start, SegmentPart::TimeIndex, &times);
        let entries: Vec<u8> = aborted.iter().flat_map(AbortedTxn::encode).collect();
        if !entries.is_empty() {
            self.put(&given.id, start, SegmentPart::TransactionIndex, &entries);
        }
        let segment = RemoteSegment {
            size_bytes: i32::try_from(log.len()).unwrap(),
            max_timestamp_ms: latest,
            is_txn_index_empty: aborted.is_empty(),
            ..given
        };
        self.cache.add(segment).unwrap();
    }

    /// Replaces an object.
    pub(super) fn put(&self, id: &RemoteSegmentId, start: i64, part: SegmentPart, bytes: &[u8]) {
        let name = self.layout.name(id, start, part);
        self.target.put(&name, &[ObjectBytes::Memory(bytes)]).unwrap();
    }

    /// Hands out a view of it, without local segments.
    pub(super) fn with<T>(&self, see: impl FnOnce(&RemoteView<'_>) -> T) -> T {
        self.with_local(&NoLocalSegments, see)
    }

    /// Hands out a view of it.
    pub(super) fn with_local<T>(
        &self,
        local: &dyn LocalTransactions,
        see: impl FnOnce(&RemoteView<'_>) -> T,
    ) -> T {
        let indexes = TargetIndexes { target: &self.target, layout: &self.layout };
        see(&RemoteView {
            cache: &self.cache,
            epochs: &self.epochs,
            log_start_offset: self.log_start_offset,
            log_end_offset: self.log_end_offset,
            target: &self.target,
            layout: &self.layout,
            indexes: &indexes,
            local,
        })
    }
}

/// The number of a segment that was made with it.
pub(super) fn number(segment: &RemoteSegment) -> u64 {
    assert_eq!(segment.id.partition, partition());
    u64::from_be_bytes(segment.id.segment_id.0[8..].try_into().unwrap())
}

/// A segment of one batch for each of these offsets, at time `10 * offset`.
pub(super) fn one_by_one(store: &mut TestStore, id: u64, epochs: &str, offsets: &[i64], end: i64) {
    let given = segment(id, offsets[0], end, epochs);
    let epoch_of = |offset| {
        let entries = LeaderEpochs::from_entries(&given.leader_epochs).unwrap();
        entries.epoch_for_offset(offset).unwrap()
    };
    let batches: Vec<Batch> =
        offsets.iter().map(|offset| batch(*offset, epoch_of(*offset), &[offset * 10])).collect();
    store.upload(given, &batches, &[]);
}
