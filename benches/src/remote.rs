//! A partition with many remote segments, whose side files are in memory.

use std::sync::Arc;

use siltstone::Error;
use siltstone::error::Kind;
use siltstone::index::{AbortedTxn, OffsetIndexBuilder};
use siltstone::io::SimDisk;
use siltstone::state::{EpochEntry, LeaderEpochs};
use siltstone::tier::{
    DirectRequest, DirectView, IndexSource, LocalTarget, MetadataCache, NoLocalSegments,
    ObjectLayout, RemotePartition, RemoteSegment, RemoteSegmentId, RemoteSegmentState,
    RemoteSegmentUpdate, RemoteView, SegmentIndexes, formats,
};
use siltstone::uuid::{Uuid, UuidMap};

/// Aborted transactions of a segment, ten offsets each.
pub const ABORTED: i64 = 100;
/// Offsets of a segment.
pub const OFFSETS: i64 = 10 * ABORTED;
/// Entries of a segment's offset index, an offset each.
const ENTRIES: i32 = 1000;
/// Bytes of a segment's log between entries.
const INTERVAL: i32 = 4096;

/// The partition.
#[derive(Debug)]
pub struct RemoteLog {
    cache: MetadataCache,
    epochs: LeaderEpochs,
    indexes: Cached,
    target: LocalTarget,
    layout: ObjectLayout,
    end: i64,
}

/// Side files by segment, as a cache keeps them.
#[derive(Debug)]
struct Cached(UuidMap<Arc<SegmentIndexes>>);

impl IndexSource for Cached {
    fn indexes(&self, segment: &RemoteSegment) -> siltstone::Result<Arc<SegmentIndexes>> {
        let found = self.0.get(&segment.id.segment_id);
        found.map(Arc::clone).ok_or_else(|| Error::new(Kind::NotFound, "not made"))
    }
}

impl RemoteLog {
    /// So many segments, each with its aborted transactions, one behind the other.
    ///
    /// # Panics
    /// When what is made here cannot be.
    #[must_use]
    pub fn make(segments: u32) -> Self {
        let partition =
            RemotePartition { topic_id: Uuid::reserved(1), topic: "orders".into(), partition: 0 };
        let mut cache = MetadataCache::new(partition);
        let mut indexes = UuidMap::default();
        for number in 0..segments {
            let start_offset = i64::from(number) * OFFSETS;
            let segment = RemoteSegment {
                state: RemoteSegmentState::CopyStarted,
                ..finished(start_offset, 0)
            };
            let id = segment.id.clone();
            indexes.insert(id.segment_id, Arc::new(side_files(start_offset)));
            cache.add(segment).expect("a new segment");
            let finish = RemoteSegmentUpdate {
                id,
                event_timestamp_ms: 0,
                custom_metadata: None,
                state: RemoteSegmentState::CopyFinished,
                broker_id: 0,
            };
            cache.update(&finish).expect("a known segment");
        }
        let start = EpochEntry { epoch: 0, start_offset: 0 };
        RemoteLog {
            cache,
            epochs: LeaderEpochs::from_entries(&[start]).expect("one epoch"),
            indexes: Cached(indexes),
            target: LocalTarget::new(Arc::new(SimDisk::new()), "/"),
            layout: ObjectLayout::default(),
            end: i64::from(segments) * OFFSETS,
        }
    }

    /// The offset behind the last segment.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.end
    }

    /// What a reader sees of it.
    #[must_use]
    pub fn view(&self) -> RemoteView<'_> {
        RemoteView {
            cache: &self.cache,
            epochs: &self.epochs,
            log_start_offset: 0,
            log_end_offset: self.end + 1,
            target: &self.target,
            layout: &self.layout,
            indexes: &self.indexes,
            local: &NoLocalSegments,
        }
    }

    /// What a consumer that reads by itself sees of it.
    #[must_use]
    pub fn direct_view(&self) -> DirectView<'_> {
        DirectView {
            remote: self.view(),
            local_log_start_offset: self.end,
            high_watermark: self.end,
            last_stable_offset: self.end,
            stored_format: formats::APACHE_KAFKA_V1,
        }
    }
}

/// A segment of [`OFFSETS`] offsets whose copy is finished.
#[must_use]
pub fn finished(start_offset: i64, max_timestamp_ms: i64) -> RemoteSegment {
    let partition =
        RemotePartition { topic_id: Uuid::reserved(1), topic: "orders".into(), partition: 0 };
    let number = start_offset.unsigned_abs();
    RemoteSegment {
        id: RemoteSegmentId { partition, segment_id: Uuid::reserved(number + 1000) },
        start_offset,
        end_offset: start_offset + OFFSETS - 1,
        max_timestamp_ms,
        broker_id: 0,
        event_timestamp_ms: 0,
        size_bytes: ENTRIES * INTERVAL,
        custom_metadata: None,
        state: RemoteSegmentState::CopyFinished,
        leader_epochs: vec![EpochEntry { epoch: 0, start_offset }],
        is_txn_index_empty: false,
    }
}

/// A request for a mebibyte from `offset` on.
#[must_use]
pub fn request(offset: i64, isolation: siltstone::log::Isolation) -> DirectRequest<'static> {
    DirectRequest {
        offset,
        max_bytes: 1 << 20,
        isolation,
        wants_location: true,
        is_consumer: true,
        formats: &[formats::APACHE_KAFKA_V1],
    }
}

/// The bytes of a segment's offset index, and their number of entries.
///
/// # Panics
/// When what is made here cannot be.
#[must_use]
pub fn offset_index(start_offset: i64) -> (Vec<u8>, usize) {
    let entries = usize::try_from(ENTRIES).expect("positive");
    let mut offsets = OffsetIndexBuilder::new(start_offset, entries * 8).expect("room");
    for slot in 0..ENTRIES {
        let offset = start_offset + i64::from(slot);
        offsets.append(offset, slot * INTERVAL).expect("rising");
    }
    (offsets.into_bytes(), entries)
}

fn side_files(start_offset: i64) -> SegmentIndexes {
    let transactions = (0..ABORTED).flat_map(|number| {
        let first_offset = start_offset + number * 10;
        AbortedTxn {
            producer_id: number,
            first_offset,
            last_offset: first_offset + 5,
            last_stable_offset: first_offset + 6,
        }
        .encode()
    });
    let (offsets, _) = offset_index(start_offset);
    SegmentIndexes::new(start_offset, offsets, Vec::new(), transactions.collect())
}
