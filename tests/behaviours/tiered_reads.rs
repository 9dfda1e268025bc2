//! Consumers and listings of offsets over remote and local segments: section RR.

use std::path::Path;
use std::sync::Arc;

use siltstone::io::SimDisk;
use siltstone::log::{FetchOptions, Isolation};
use siltstone::record::BatchHeader;
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::Compressor;
use siltstone::tier::{
    ExpiryInput, LocalTarget, MetadataCache, ObjectBytes, ObjectLayout, ObjectTarget,
    RemoteMetadata, RemoteMetadataRecord, RemotePartition, RemoteSegment, RemoteSegmentId,
    RemoteSegmentState, RemoteSegmentUpdate, RemoteTimestamp, RemoteView, SegmentPart,
    SizeRetention, TargetIndexes, plan_expiry, read_metadata_log, remote_offset_for_timestamp,
    remote_read,
};
use siltstone::uuid::Uuid;
use siltstone_tests::live::{TestLog, records};

/// The first record's timestamp.
const T: i64 = 1_700_000_000_000;

const EARLIEST: i64 = -2;
const EARLIEST_LOCAL: i64 = -4;
const LATEST: i64 = -1;
const LATEST_TIERED: i64 = -5;

/// A log of single records, whose segments go to remote storage when there is another behind.
struct Tiered {
    log: TestLog,
    per_segment: i64,
    target: LocalTarget,
    layout: ObjectLayout,
    cache: MetadataCache,
    /// What a broker would write into the topic of remote metadata.
    events: Vec<RemoteMetadataRecord>,
}

fn partition() -> RemotePartition {
    RemotePartition { topic_id: Uuid::reserved(9), topic: "orders".into(), partition: 0 }
}

impl Tiered {
    fn new(per_segment: i64) -> Self {
        let log = TestLog::with(|config| {
            config.remote_storage = true;
            config.local_retention_bytes = 1;
        });
        let mut cache = MetadataCache::new(partition());
        cache.mark_loaded();
        Tiered {
            log,
            per_segment,
            target: LocalTarget::new(Arc::new(SimDisk::new()), "/"),
            layout: ObjectLayout::default(),
            cache,
            events: Vec::new(),
        }
    }

    /// Appends one record as the leader of an epoch.
    fn produce(&mut self, epoch: i32) {
        let offset = self.log.log().log_end_offset();
        if offset > 0 && offset % self.per_segment == 0 {
            self.log.log().roll(self.log.now_ms).unwrap();
        }
        self.log.try_lead(&records(1).times(&[T + offset]), epoch).unwrap();
        self.log.replicate();
    }

    /// Uploads all segments but the active one and removes them from the local disk.
    fn settle(&mut self) {
        let log = self.log.log();
        log.flush(true, self.log.now_ms).unwrap();
        let bases: Vec<i64> = log.segments().iter().map(|it| it.base_offset()).collect();
        for pair in bases.windows(2) {
            self.upload(pair[0], pair[1]);
        }
        self.log.log().delete_old_segments(self.log.now_ms).unwrap();
    }

    fn upload(&mut self, start_offset: i64, next: i64) {
        let id = RemoteSegmentId {
            partition: partition(),
            segment_id: Uuid::reserved(u64::try_from(start_offset).unwrap() + 1),
        };
        let file = |suffix| self.log.file(&format!("{start_offset:020}{suffix}"));
        let log = file(".log").unwrap();
        let segment = RemoteSegment {
            id: id.clone(),
            start_offset,
            end_offset: next - 1,
            max_timestamp_ms: T + next - 1,
            broker_id: 0,
            event_timestamp_ms: 0,
            size_bytes: i32::try_from(log.len()).unwrap(),
            custom_metadata: None,
            state: RemoteSegmentState::CopyStarted,
            leader_epochs: self.log.log().leader_epochs().entries_in_range(start_offset, next),
            is_txn_index_empty: true,
        };
        for (part, bytes) in [
            (SegmentPart::Log, log),
            (SegmentPart::OffsetIndex, file(".index").unwrap_or_default()),
            (SegmentPart::TimeIndex, file(".timeindex").unwrap_or_default()),
        ] {
            let name = self.layout.name(&id, start_offset, part);
            self.target.put(&name, &[ObjectBytes::Memory(&bytes)]).unwrap();
        }
        let finish = RemoteSegmentUpdate {
            id,
            event_timestamp_ms: 1,
            custom_metadata: None,
            state: RemoteSegmentState::CopyFinished,
            broker_id: 0,
        };
        self.cache.add(segment.clone()).unwrap();
        self.cache.update(&finish).unwrap();
        self.events.push(RemoteMetadataRecord::Segment(segment));
        self.events.push(RemoteMetadataRecord::Update(finish));
        self.log.log().update_highest_remote_offset(next - 1);
    }

    fn with<T>(&self, see: impl FnOnce(&RemoteView<'_>) -> T) -> T {
        let log = self.log.log();
        let epochs = log.leader_epochs();
        see(&RemoteView {
            cache: &self.cache,
            epochs: &epochs,
            log_start_offset: log.log_start_offset(),
            log_end_offset: log.log_end_offset(),
            target: &self.target,
            layout: &self.layout,
            indexes: &TargetIndexes { target: &self.target, layout: &self.layout },
            local: log,
        })
    }

    /// Reads so many records one at a time; gives their offsets, and how many came from remote
    /// storage.
    fn consume(&self, from: i64, count: usize) -> (Vec<i64>, usize) {
        let options = FetchOptions {
            max_bytes: 1,
            isolation: Isolation::HighWatermark,
            min_one_message: true,
        };
        let (mut offsets, mut remote) = (Vec::new(), 0);
        let mut offset = from;
        while offsets.len() < count {
            let log = self.log.log();
            let bytes = if offset < log.local_log_start_offset() {
                remote += 1;
                self.with(|view| remote_read(view, offset, &options)).unwrap().bytes
            } else {
                log.read(offset, &options).unwrap().bytes
            };
            let header = BatchHeader::parse(&bytes).unwrap();
            offsets.push(header.base_offset);
            offset = header.next_offset();
        }
        (offsets, remote)
    }

    /// A special offset and its epoch, -1 for none.
    fn listed(&self, special: i64) -> (i64, i32) {
        let found = self.log.log().offset_for_timestamp(special).unwrap().unwrap();
        (found.offset, found.leader_epoch.unwrap_or(-1))
    }

    /// The offset and epoch for a timestamp, and whether remote storage told it.
    fn by_time(&self, timestamp_ms: i64) -> (i64, i32, bool) {
        let log = self.log.log();
        let first_local = log.segments().iter().next().map(|it| it.base_offset());
        let from = log.log_start_offset();
        let found = self
            .with(|view| remote_offset_for_timestamp(view, timestamp_ms, from, first_local))
            .unwrap();
        let (found, is_remote) = match found {
            RemoteTimestamp::Found(found) => (found, true),
            RemoteTimestamp::TryLocal => (log.offset_for_timestamp(timestamp_ms).unwrap(), false),
        };
        let found = found.unwrap();
        (found.offset, found.leader_epoch.unwrap_or(-1), is_remote)
    }

    /// Raises the log start as a deletion of records does; gives how many remote segments go.
    fn delete_records(&mut self, before: i64) -> usize {
        let log = self.log.log();
        log.maybe_increment_log_start_offset(before).unwrap();
        let (segments, epochs) = (self.cache.list_all(), log.leader_epochs());
        let plan = plan_expiry(&ExpiryInput {
            segments: &segments,
            epochs: &epochs,
            log_start_offset: log.log_start_offset(),
            log_end_offset: log.log_end_offset(),
            sizes: SizeRetention {
                retention_bytes: -1,
                local_retention_bytes: 1,
                only_local_bytes: 0,
                local_bytes: 0,
            },
            retention_ms: -1,
            now_ms: self.log.now_ms,
            is_being_copied: &|_| false,
            all_valid: false,
        });
        let gone = plan.deletes.iter().map(|(segment, _)| *segment);
        let gone: Vec<RemoteSegmentId> =
            gone.chain(plan.unreferenced.iter().copied()).map(|it| it.id.clone()).collect();
        for id in &gone {
            for state in [RemoteSegmentState::DeleteStarted, RemoteSegmentState::DeleteFinished] {
                let update = RemoteSegmentUpdate {
                    id: id.clone(),
                    event_timestamp_ms: 2,
                    custom_metadata: None,
                    state,
                    broker_id: 1,
                };
                self.cache.update(&update).unwrap();
            }
        }
        gone.len()
    }

    /// Forgets what is known of remote storage, and reads it from the topic.
    fn bounce(&mut self) {
        let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
        for event in &self.events {
            builder.append(0, None, Some(&event.encode().unwrap())).unwrap();
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
        let (disk, dir) = (SimDisk::new(), Path::new("/__remote_log_metadata-0"));
        siltstone::io::Storage::create_dir(&disk, dir).unwrap();
        disk.put(&dir.join("00000000000000000000.log"), bytes, None).unwrap();
        let mut metadata = RemoteMetadata::new();
        let report = read_metadata_log(&disk, dir, &mut metadata).unwrap();
        assert!(report.refused.is_empty() && report.problems.is_empty());
        metadata.mark_loaded();
        self.cache = metadata.partition(&partition()).unwrap().clone();
        self.log.reopen();
        self.log.replicate();
    }
}

#[test]
fn what_is_in_remote_storage_is_known_again_after_a_restart() {
    // spec: tiered-behaviours RR10
    let mut tiered = Tiered::new(1);
    (0..3).for_each(|_| tiered.produce(0));
    tiered.settle();
    assert_eq!(tiered.log.log().local_log_start_offset(), 2);
    tiered.bounce();
    assert_eq!(tiered.log.log().segments().iter().next().unwrap().base_offset(), 2);
    tiered.log.log().maybe_increment_local_log_start_offset(2);
    assert_eq!(tiered.consume(1, 2), (vec![1, 2], 1));
}

#[test]
fn a_consumer_goes_on_from_remote_to_local_segments() {
    // spec: tiered-behaviours RR11
    let mut tiered = Tiered::new(2);
    (0..5).for_each(|_| tiered.produce(0));
    tiered.settle();
    assert_eq!(tiered.consume(1, 4), (vec![1, 2, 3, 4], 3));
}

/// Two records a segment; the first three of epoch 0, three more of epoch 1.
fn two_leaders() -> Tiered {
    let mut tiered = Tiered::new(2);
    (0..3).for_each(|_| tiered.produce(0));
    tiered.settle();
    (0..3).for_each(|_| tiered.produce(1));
    tiered.settle();
    tiered
}

#[test]
fn offsets_are_listed_over_remote_and_local_segments() {
    // spec: tiered-behaviours RR12
    let tiered = two_leaders();
    assert_eq!(tiered.listed(EARLIEST), (0, 0));
    assert_eq!(tiered.listed(EARLIEST_LOCAL), (4, 1));
    assert_eq!(tiered.listed(LATEST_TIERED), (3, 1));
    assert_eq!(tiered.listed(LATEST), (6, 1));
}

#[test]
fn offsets_by_time_are_told_by_remote_storage() {
    // spec: tiered-behaviours RR14
    let tiered = two_leaders();
    assert_eq!(tiered.by_time(T - 1), (0, 0, true));
    assert_eq!(tiered.by_time(T), (0, 0, true));
    assert_eq!(tiered.by_time(T + 1), (1, 0, true));
    assert_eq!(tiered.by_time(T + 3), (3, 1, true));
    assert_eq!(tiered.by_time(T + 4), (4, 1, false));
}

#[test]
fn a_deletion_of_records_moves_what_is_listed() {
    // spec: tiered-behaviours RR15, RR16
    let mut tiered = two_leaders();
    assert_eq!(tiered.delete_records(3), 1);
    assert_eq!(tiered.listed(EARLIEST), (3, 1));
    assert_eq!(tiered.listed(EARLIEST_LOCAL), (4, 1));
    tiered.delete_records(4);
    assert_eq!(tiered.listed(EARLIEST), (4, 1));
    assert_eq!(tiered.listed(EARLIEST_LOCAL), (4, 1));
    assert_eq!(tiered.listed(LATEST_TIERED), (3, -1));
    assert_eq!(tiered.listed(LATEST), (6, 1));
}
