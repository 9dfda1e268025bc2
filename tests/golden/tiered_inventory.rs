//! What the objects in remote storage tell of their segments is what Kafka's brokers wrote of them
//! into `__remote_log_metadata`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use siltstone::io::Disk;
use siltstone::problem::{Code, Problem, Severity};
use siltstone::record::payload::{Value, decode_remote_metadata};
use siltstone::record::scan::ScannedBatch;
use siltstone::record::{BatchHeader, Record};
use siltstone::state::EpochEntry;
use siltstone::tier::faulty_target::{TargetFault, TargetOperation};
use siltstone::tier::{
    FaultyTarget, LocalTarget, ObjectBytes, ObjectLayout, ObjectTarget, RemoteInventory,
    RemotePartition, RemoteParts, RemoteSegment, RemoteSegmentId, RemoteSegmentState, SegmentPart,
    SegmentReading,
};
use siltstone::{Error, Kind, log};
use siltstone_tests::kits::{Kit, Unpacked};

const METADATA: &str = "__remote_log_metadata-0";

/// The segments that the metadata topic of a state leaves, by their ids.
#[derive(Default)]
struct Told(BTreeMap<RemoteSegmentId, RemoteSegment>);

fn id(value: &Value<'_>) -> RemoteSegmentId {
    let id = value.field("remoteLogSegmentId").unwrap();
    let partition = id.field("topicIdPartition").unwrap();
    RemoteSegmentId {
        partition: RemotePartition {
            topic_id: partition.uuid("id").unwrap(),
            topic: partition.text("name").unwrap().to_owned(),
            partition: int(partition, "partition"),
        },
        segment_id: id.uuid("id").unwrap(),
    }
}

fn int<T: TryFrom<i64>>(value: &Value<'_>, name: &str) -> T {
    let number = value.int(name).unwrap_or_else(|| panic!("{name}"));
    T::try_from(number).unwrap_or_else(|_| panic!("{name}"))
}

impl log::LogReader for Told {
    fn batch(&mut self, _: &ScannedBatch<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn problem(&mut self, path: &Path, problem: Problem) -> ControlFlow<()> {
        // Some states have a torn tail: what stands before it is what was told.
        assert_eq!(problem.code, Code::TornBatch, "{}: {problem}", path.display());
        ControlFlow::Continue(())
    }

    fn failed(&mut self, _: &Path, error: Error) -> ControlFlow<()> {
        panic!("{error}")
    }

    fn record(&mut self, _: &BatchHeader, record: &Record<'_>) -> ControlFlow<()> {
        let payload = decode_remote_metadata(record.value.unwrap()).unwrap();
        let message = payload.message().unwrap();
        let data = &message.data;
        let state = int::<i8>(data, "remoteLogSegmentState");
        let state = RemoteSegmentState::from_wire(state).unwrap();
        let id = id(data);
        if message.id == 1 {
            self.0.get_mut(&id).unwrap().state = state;
            return ControlFlow::Continue(());
        }
        let epochs = data.array("segmentLeaderEpochs").unwrap().iter();
        let segment = RemoteSegment {
            id: id.clone(),
            start_offset: int(data, "startOffset"),
            end_offset: int(data, "endOffset"),
            max_timestamp_ms: int(data, "maxTimestampMs"),
            // What no object tells.
            broker_id: -1,
            event_timestamp_ms: -1,
            size_bytes: int(data, "segmentSizeInBytes"),
            custom_metadata: None,
            state,
            leader_epochs: epochs
                .map(|it| EpochEntry {
                    epoch: int(it, "leaderEpoch"),
                    start_offset: int(it, "offset"),
                })
                .collect(),
            is_txn_index_empty: data.bool("txnIndexEmpty").unwrap_or(false),
        };
        self.0.insert(id, segment);
        ControlFlow::Continue(())
    }
}

/// What Kafka says of the segments of a state that are copied.
fn told(unpacked: &Unpacked) -> Vec<RemoteSegment> {
    let mut told = Told::default();
    let options = log::ReadOptions::default();
    log::read_log(&Disk::new(), &unpacked.partition(METADATA), &options, &mut told).unwrap();
    let mut copied: Vec<RemoteSegment> = told.0.into_values().collect();
    copied.retain(|segment| segment.state == RemoteSegmentState::CopyFinished);
    let key = |it: &RemoteSegment| (it.id.partition.clone(), it.start_offset, it.id.clone());
    copied.sort_by_key(key);
    copied
}

fn store(unpacked: &Unpacked) -> LocalTarget {
    LocalTarget::new(Arc::new(Disk::new()), unpacked.remote())
}

#[test]
fn objects_tell_what_the_metadata_topic_tells() {
    let mut count = 0;
    for state in Kit::open("tiered").states() {
        let unpacked = state.unpack();
        // A new node has no copy of that topic.
        if !unpacked.partition(METADATA).is_dir() || !unpacked.remote().is_dir() {
            continue;
        }
        let told = told(&unpacked);
        let (store, layout) = (store(&unpacked), ObjectLayout::default());
        let inventory = RemoteInventory::list(&store, &layout).unwrap();
        let found = inventory.read_segments(&store, &layout).unwrap();
        for (found, told) in found.iter().zip(&told) {
            assert_eq!(found, told, "{}", state.label());
        }
        assert_eq!(found.len(), told.len(), "{}", state.label());
        assert!(inventory.others.is_empty());
        for parts in inventory.segments() {
            assert_eq!(parts.read(&store, &layout).unwrap().problems, [], "{}", state.label());
            let partition = &parts.id.partition;
            let alone = RemoteInventory::list_partition(&store, &layout, partition).unwrap();
            assert_eq!(&alone, &inventory.partitions[partition]);
        }
        count += found.len();
    }
    assert!(count > 150, "{count}");
}

/// One segment with aborted transactions and two epochs, in a store of its own.
struct Sample {
    store: Arc<LocalTarget>,
    layout: ObjectLayout,
    parts: RemoteParts,
    /// What it is as long as nothing is wrong.
    sound: RemoteSegment,
    _unpacked: Unpacked,
}

impl Sample {
    fn new() -> Self {
        let unpacked = Kit::open("tiered").state("clean").unpack();
        let (store, layout) = (Arc::new(store(&unpacked)), ObjectLayout::default());
        let inventory = RemoteInventory::list(&*store, &layout).unwrap();
        let is_sample = |it: &&RemoteParts| {
            let sound = it.read(&*store, &layout).unwrap().segment.unwrap();
            !sound.is_txn_index_empty && sound.leader_epochs.len() > 1
        };
        let parts = inventory.segments().find(is_sample).unwrap().clone();
        let sound = parts.read(&*store, &layout).unwrap().segment.unwrap();
        Sample { store, layout, parts, sound, _unpacked: unpacked }
    }

    fn name(&self, part: SegmentPart) -> String {
        self.layout.name(&self.parts.id, self.parts.start_offset, part)
    }

    fn bytes(&self, part: SegmentPart) -> Vec<u8> {
        self.store.get(&self.name(part), None, 1 << 20).unwrap()
    }

    fn put(&self, part: SegmentPart, bytes: &[u8]) {
        self.store.put(&self.name(part), &[ObjectBytes::Memory(bytes)]).unwrap();
    }

    /// Reads the segment as it is listed now, in both ways.
    fn read(&self) -> SegmentReading {
        let inventory = RemoteInventory::list(&*self.store, &self.layout).unwrap();
        let parts = inventory.segments().find(|it| it.id == self.parts.id).unwrap();
        let reading = parts.read(&*self.store, &self.layout).unwrap();
        assert_eq!(parts.segment(&*self.store, &self.layout).unwrap(), reading.segment);
        reading
    }

    fn codes(&self, reading: &SegmentReading, part: SegmentPart) -> Vec<Code> {
        assert!(reading.problems.iter().all(|problem| problem.file == self.name(part)));
        reading.problems.iter().map(|problem| problem.code).collect()
    }
}

#[test]
fn a_missing_part_is_reported_and_made_up_for_by_the_log() {
    for part in SegmentPart::ALL {
        let sample = Sample::new();
        sample.store.delete(&sample.name(part)).unwrap();
        let reading = sample.read();
        if part == SegmentPart::TransactionIndex {
            let segment = reading.segment.unwrap();
            assert_eq!(segment, RemoteSegment { is_txn_index_empty: true, ..sample.sound });
            assert_eq!(reading.problems, []);
            continue;
        }
        assert_eq!(sample.codes(&reading, part), [Code::RemotePartMissing], "{part:?}");
        let is_log = part == SegmentPart::Log;
        let severity = if is_log { Severity::Corrupt } else { Severity::Repairable };
        assert_eq!(reading.problems[0].severity, severity);
        let expected = RemoteSegment { state: RemoteSegmentState::CopyStarted, ..sample.sound };
        assert_eq!(reading.segment, (!is_log).then_some(expected), "{part:?}");
    }
}

#[test]
fn a_part_that_goes_after_the_listing_is_reported_as_missing() {
    let sample = Sample::new();
    for part in SegmentPart::ALL {
        let faulty = FaultyTarget::new(sample.store.clone());
        let all = 0..100;
        faulty.fault(TargetOperation::Get, part.suffix(), all, TargetFault::Fails(Kind::NotFound));
        let reading = sample.parts.read(&faulty, &sample.layout).unwrap();
        assert_eq!(sample.codes(&reading, part), [Code::RemotePartMissing], "{part:?}");
        // Whatever else the store says is no finding.
        let faulty = FaultyTarget::new(sample.store.clone());
        faulty.fault_once(TargetOperation::Get, part.suffix(), TargetFault::Fails(Kind::Io));
        let error = sample.parts.read(&faulty, &sample.layout).unwrap_err();
        assert_eq!(error.kind(), Kind::Io);
        assert!(error.to_string().contains(&sample.name(part)), "{error}");
        faulty.fault_once(TargetOperation::Get, part.suffix(), TargetFault::Shorter(1));
        let error = sample.parts.read(&faulty, &sample.layout).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt);
    }
}

#[test]
fn parts_that_tell_nothing_of_a_segment_are_fetched_only_to_be_checked() {
    use SegmentPart::{ProducerSnapshot, TransactionIndex};
    let sample = Sample::new();
    for part in SegmentPart::ALL {
        let faulty = FaultyTarget::new(sample.store.clone());
        faulty.fault_once(TargetOperation::Get, part.suffix(), TargetFault::Fails(Kind::Io));
        let segment = sample.parts.segment(&faulty, &sample.layout);
        if matches!(part, ProducerSnapshot | TransactionIndex) {
            assert_eq!(segment.unwrap().as_ref(), Some(&sample.sound), "{part:?}");
        } else {
            assert_eq!(segment.unwrap_err().kind(), Kind::Io, "{part:?}");
        }
    }
}

#[test]
fn a_damaged_side_part_is_reported_and_not_believed() {
    use SegmentPart::{LeaderEpochs, OffsetIndex, ProducerSnapshot, TimeIndex, TransactionIndex};
    type Damage = fn(&mut Vec<u8>);
    let cases: [(SegmentPart, Code, Damage); 14] = [
        (OffsetIndex, Code::IndexSize, |it| it.truncate(it.len() - 1)),
        (OffsetIndex, Code::IndexOrder, |it| last(it, 8).fill(0xff)),
        (OffsetIndex, Code::IndexBeyondLog, |it| last(it, 4).fill(0x7f)),
        (OffsetIndex, Code::IndexPosition, |it| last(it, 1)[0] ^= 1),
        (OffsetIndex, Code::IndexPosition, |it| last(it, 5)[0] ^= 1),
        (TimeIndex, Code::IndexSize, |it| it.push(0)),
        (TimeIndex, Code::TimeindexOrder, |it| last(it, 12).fill(0)),
        (TransactionIndex, Code::TxnindexSize, |it| it.truncate(it.len() - 1)),
        (TransactionIndex, Code::TxnindexOrder, |it| it[2..34].fill(0xff)),
        (TransactionIndex, Code::TxnindexVersion, |it| it[0..2].fill(1)),
        (ProducerSnapshot, Code::SnapshotCrc, |it| last(it, 1)[0] ^= 1),
        (LeaderEpochs, Code::EpochFile, |it| it.truncate(4)),
        (LeaderEpochs, Code::EpochFile, |it| *it = b"0\n0\n".to_vec()),
        (LeaderEpochs, Code::EpochMismatch, |it| *it = b"0\n1\n7 0\n".to_vec()),
    ];
    for (part, code, damage) in cases {
        let sample = Sample::new();
        let mut bytes = sample.bytes(part);
        damage(&mut bytes);
        sample.put(part, &bytes);
        let reading = sample.read();
        assert_eq!(sample.codes(&reading, part), [code], "{part:?}");
        assert_eq!(reading.segment.as_ref(), Some(&sample.sound), "{part:?} {code}");
    }
}

fn last(bytes: &mut [u8], count: usize) -> &mut [u8] {
    let from = bytes.len() - count;
    &mut bytes[from..]
}

#[test]
fn the_segment_ends_where_its_log_is_damaged() {
    let sample = Sample::new();
    let whole = sample.bytes(SegmentPart::Log);
    let log = SegmentPart::Log;
    // The index leads behind a cut in the middle.
    sample.put(log, &whole[..whole.len() / 2]);
    let reading = sample.read();
    let codes: Vec<Code> = reading.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::IndexBeyondLog, Code::TornBatch]);
    let cut = reading.segment.unwrap();
    assert!((sample.sound.start_offset..sample.sound.end_offset).contains(&cut.end_offset));
    // A torn tail.
    sample.put(log, &whole[..whole.len() - 1]);
    let reading = sample.read();
    assert_eq!(sample.codes(&reading, log), [Code::TornBatch]);
    let torn = reading.segment.unwrap();
    assert!((cut.end_offset..sample.sound.end_offset).contains(&torn.end_offset));
    // Bytes behind the end, and nothing at all.
    sample.put(log, &[&whole[..], &[0; 100]].concat());
    let reading = sample.read();
    assert_eq!(sample.codes(&reading, log), [Code::ZeroTail]);
    assert_eq!(reading.segment.unwrap().end_offset, sample.sound.end_offset);
    sample.put(log, b"");
    let reading = sample.read();
    let codes: Vec<Code> = reading.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::IndexBeyondLog, Code::TornBatch]);
    assert_eq!(reading.segment, None);
    // The batches of another segment.
    sample.put(log, &[&whole[..], &whole[..]].concat());
    let reading = sample.read();
    assert_eq!(sample.codes(&reading, log), [Code::OffsetOrder]);
    assert_eq!(reading.segment.unwrap().end_offset, sample.sound.end_offset);
}
