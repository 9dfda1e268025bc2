#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::Arc;

use super::*;
use crate::io::SimDisk;
use crate::log::{Log, LogConfig, OpenOptions};
use crate::record::builder::{BatchBuilder, BatchOptions, write_end_marker};
use crate::record::codec::Compressor;
use crate::record::control::EndMarker;
use crate::state::EpochEntry;
use crate::state::ProducerEntry;
use crate::state::snapshot::write_snapshot;
use crate::tier::{
    LocalTarget, ObjectBytes, ObjectLayout, ObjectTarget, RemotePartition, RemoteSegmentId,
};
use crate::uuid::Uuid;

const DIR: &str = "/orders-0";

/// A replica whose local log begins at an offset, and remote segments.
struct Scene {
    disk: SimDisk,
    target: LocalTarget,
    layout: ObjectLayout,
    segments: Vec<RemoteSegment>,
}

impl Scene {
    fn new(local_start: i64, epochs: &str, snapshot: &[u8]) -> Self {
        let disk = SimDisk::new();
        disk.put_dir(Path::new("/store"), None).unwrap();
        let target = LocalTarget::new(Arc::new(disk.clone()), "/store");
        let file = |suffix: &str| Path::new(DIR).join(format!("{local_start:020}.{suffix}"));
        for (path, bytes) in [
            (file("log"), Vec::new()),
            (file("snapshot"), snapshot.to_vec()),
            (Path::new(DIR).join(EPOCH_FILE), epochs.as_bytes().to_vec()),
        ] {
            disk.put(&path, bytes, None).unwrap();
        }
        Scene { disk, target, layout: ObjectLayout::default(), segments: Vec::new() }
    }

    fn upload(&mut self, (start, end): (i64, i64), epoch: i32, log: &[u8], index: &[u8]) {
        let partition =
            RemotePartition { topic_id: Uuid::random(), topic: "orders".into(), partition: 0 };
        let segment = RemoteSegment {
            id: RemoteSegmentId { partition, segment_id: Uuid::random() },
            start_offset: start,
            end_offset: end,
            max_timestamp_ms: 0,
            broker_id: 1,
            event_timestamp_ms: 0,
            size_bytes: log.len().try_into().unwrap(),
            custom_metadata: None,
            state: RemoteSegmentState::CopyFinished,
            leader_epochs: vec![EpochEntry { epoch, start_offset: start }],
            is_txn_index_empty: false,
        };
        for (part, bytes) in [
            (SegmentPart::Log, log),
            (SegmentPart::TransactionIndex, index),
            (SegmentPart::ProducerSnapshot, &write_snapshot([&ProducerEntry::empty(7)])),
        ] {
            let name = self.layout.name(&segment.id, start, part);
            self.target.put(&name, &[ObjectBytes::Memory(bytes)]).unwrap();
        }
        self.segments.push(segment);
    }

    fn found(&self, options: &VerifyOptions<'_>) -> Vec<Problem> {
        let remote = AuxRemote { target: &self.target, layout: &self.layout };
        let dir = Path::new(DIR);
        let [one, many] = [1, 8].map(|readers| {
            check_replica(&self.disk, dir, options, &self.segments, &remote, readers).unwrap()
        });
        assert_eq!(one, many);
        one
    }

    /// Of a log that starts there for sure.
    fn codes(&self, log_start_offset: i64) -> Vec<(Code, Option<i64>)> {
        let log_start_offset = Some(log_start_offset);
        let found = self.found(&VerifyOptions { log_start_offset, ..VerifyOptions::default() });
        found.into_iter().map(|problem| (problem.code, problem.offset)).collect()
    }
}

#[test]
fn epochs_that_begin_with_the_local_log_are_found_where_older_ones_were_uploaded() {
    // spec: tiered-faults T4
    let some = write_snapshot([&ProducerEntry::empty(7)]);
    let mut scene = Scene::new(565, "0\n1\n2 565\n", &some);
    scene.upload((30, 304), 0, b"", b"");
    scene.upload((305, 564), 2, b"", b"");
    assert_eq!(scene.codes(30), [(Code::EpochsForgotten, Some(565))]);
    assert_eq!(scene.codes(565), []);
    let mut sound = Scene::new(565, "0\n2\n0 30\n2 305\n", &some);
    sound.segments.clone_from(&scene.segments);
    assert_eq!(sound.codes(30), []);
    // Nothing was uploaded yet.
    let scene = Scene::new(565, "0\n1\n2 565\n", &some);
    assert_eq!(scene.codes(565), []);
}

#[test]
fn an_empty_snapshot_is_found_where_producers_were_uploaded() {
    // spec: tiered-faults T2
    let mut scene = Scene::new(515, "0\n1\n0 0\n", &write_snapshot([]));
    scene.upload((0, 514), 0, b"", b"");
    assert_eq!(scene.codes(0), [(Code::ProducersForgotten, Some(515))]);
}

#[test]
fn offsets_that_are_nowhere_are_found() {
    let some = write_snapshot([&ProducerEntry::empty(7)]);
    let mut scene = Scene::new(100, "0\n1\n0 0\n", &some);
    scene.upload((10, 39), 0, b"", b"");
    scene.upload((50, 79), 0, b"", b"");
    let holes = [10, 39, 79].map(|_| Code::RemoteHole);
    let found = scene.codes(5);
    assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), holes);
    assert_eq!(found.iter().filter_map(|it| it.1).collect::<Vec<_>>(), [5, 40, 80]);
    assert_eq!(scene.codes(50).len(), 1);
    assert_eq!(scene.codes(100), []);
}

#[test]
fn a_hole_at_the_front_of_a_log_that_may_start_later_is_no_damage() {
    // What was remote had just expired, and the checkpoint did not know yet.
    let some = write_snapshot([&ProducerEntry::empty(7)]);
    let mut scene = Scene::new(100, "0\n1\n0 0\n", &some);
    scene.upload((10, 39), 0, b"", b"");
    scene.upload((50, 99), 0, b"", b"");
    let severities = |scene: &Scene, log_start_offset, log_start_may_have_moved| {
        let options = VerifyOptions {
            log_start_offset,
            log_start_may_have_moved,
            ..VerifyOptions::default()
        };
        let found = scene.found(&options).into_iter();
        found.map(|problem| (problem.severity, problem.offset.unwrap())).collect::<Vec<_>>()
    };
    use Severity::{Corrupt, Notice};
    assert_eq!(severities(&scene, Some(0), true), [(Notice, 0), (Corrupt, 40)]);
    assert_eq!(severities(&scene, Some(0), false), [(Corrupt, 0), (Corrupt, 40)]);
    assert_eq!(severities(&scene, None, false), [(Notice, 0), (Corrupt, 40)]);
    // Nothing is remote.
    scene.segments.clear();
    assert_eq!(severities(&scene, Some(0), true), [(Notice, 0)]);
    assert_eq!(severities(&scene, Some(0), false), [(Corrupt, 0)]);
    assert_eq!(severities(&scene, Some(100), false), []);
}

#[test]
fn holes_are_found_where_nothing_is_local() {
    let some = write_snapshot([&ProducerEntry::empty(7)]);
    let mut scene = Scene::new(100, "0\n1\n0 0\n", &some);
    scene.disk.remove_file(&Path::new(DIR).join(format!("{:020}.log", 100))).unwrap();
    scene.upload((10, 39), 0, b"", b"");
    scene.upload((50, 99), 0, b"", b"");
    let hole = |offset| (Code::RemoteHole, Some(offset));
    assert_eq!(scene.codes(0), [hole(0), hole(40)]);
    assert_eq!(scene.codes(10), [hole(40)]);
}

#[test]
fn an_upload_that_lost_an_election_covers_nothing_and_is_not_looked_into() {
    // Epoch 1 began at 40. The leader of epoch 0 went on to 79, and was deposed.
    let some = write_snapshot([&ProducerEntry::empty(7)]);
    let mut scene = Scene::new(80, "0\n2\n0 0\n1 40\n", &some);
    scene.upload((0, 39), 0, b"", b"");
    // It has a transaction of its own, which the other leader's marker does not end.
    scene.upload((30, 59), 0, &batch(30, 1), b"");
    assert_eq!(scene.codes(0), [(Code::RemoteHole, Some(40))]);
    scene.upload((60, 79), 1, &[batch(60, 1), abort(61, 1)].concat(), b"");
    let forgotten = (Code::AbortedForgotten, Some(60));
    assert_eq!(scene.codes(0), [(Code::RemoteHole, Some(40)), forgotten]);
    // Without epochs nobody can tell.
    scene.disk.remove_file(&Path::new(DIR).join(EPOCH_FILE)).unwrap();
    assert!(!scene.codes(0).contains(&(Code::RemoteHole, Some(40))));
}

fn batch(offset: i64, producer: i64) -> Vec<u8> {
    let options = BatchOptions {
        base_offset: offset,
        producer_id: producer,
        producer_epoch: 0,
        base_sequence: 0,
        is_transactional: true,
        leader_epoch: 0,
        ..BatchOptions::default()
    };
    let mut builder = BatchBuilder::new(options).unwrap();
    builder.append(1, None, Some(b"v")).unwrap();
    let mut bytes = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
    bytes
}

fn abort(offset: i64, producer: i64) -> Vec<u8> {
    let options = BatchOptions {
        base_offset: offset,
        producer_id: producer,
        producer_epoch: 0,
        leader_epoch: 0,
        ..BatchOptions::default()
    };
    let marker = EndMarker { is_abort: true, coordinator_epoch: 0, timestamp_ms: 1 };
    let mut bytes = Vec::new();
    write_end_marker(&options, &marker, &mut bytes).unwrap();
    bytes
}

#[test]
fn an_index_that_lacks_what_a_marker_aborts_is_found() {
    // spec: tiered-faults T2a
    let some = write_snapshot([&ProducerEntry::empty(7)]);
    let right = crate::index::AbortedTxn {
        producer_id: 1,
        first_offset: 0,
        last_offset: 2,
        last_stable_offset: 3,
    };
    let cut = crate::index::AbortedTxn { first_offset: 1, ..right };
    let second = [batch(1, 1), abort(2, 1)].concat();
    for (index, expected) in [
        (right.encode().to_vec(), vec![]),
        (cut.encode().to_vec(), vec![(Code::AbortedForgotten, Some(0))]),
        (Vec::new(), vec![(Code::AbortedForgotten, Some(0))]),
    ] {
        let mut scene = Scene::new(3, "0\n1\n0 0\n", &some);
        scene.upload((0, 0), 0, &batch(0, 1), b"");
        scene.upload((1, 2), 0, &second, &index);
        assert_eq!(scene.codes(0), expected);
    }
    // An upload of some of the same offsets, as a new leader makes it, is looked at, too.
    for (index, expected) in
        [(right.encode().to_vec(), vec![]), (Vec::new(), vec![(Code::AbortedForgotten, Some(1))])]
    {
        let mut scene = Scene::new(3, "0\n1\n0 0\n", &some);
        let whole = [batch(0, 1), second.clone()].concat();
        scene.upload((0, 2), 0, &whole, &right.encode());
        scene.upload((1, 2), 0, &second, &index);
        assert_eq!(scene.codes(0), expected);
    }
    // Where the transaction begins is not known: nothing is said of it.
    let mut scene = Scene::new(3, "0\n1\n0 0\n", &some);
    scene.upload((2, 2), 0, &abort(2, 1), b"");
    assert_eq!(scene.codes(2), []);
}

#[test]
fn transactions_are_followed_from_segment_to_segment() {
    let some = write_snapshot([&ProducerEntry::empty(7)]);
    let told = |producer_id, first_offset, last_offset| {
        let txn = crate::index::AbortedTxn {
            producer_id,
            first_offset,
            last_offset,
            last_stable_offset: 0,
        };
        txn.encode()
    };
    // Producer 1 goes on from segment to segment, 2 begins anew behind a marker.
    let logs = [
        ((0, 1), [batch(0, 1), batch(1, 2)].concat()),
        ((2, 5), [abort(2, 2), batch(3, 2), batch(4, 1), abort(5, 2)].concat()),
        ((6, 8), [batch(6, 2), abort(7, 1), abort(8, 2)].concat()),
    ];
    let entries = [vec![], vec![told(2, 1, 2), told(2, 3, 5)], vec![told(1, 0, 7), told(2, 6, 8)]];
    // The first that the index of a segment lacks is told; which are left out, and what is found.
    for (left_out, expected) in [
        (vec![], vec![]),
        (vec![(1, 0)], vec![1]),
        (vec![(1, 1)], vec![3]),
        (vec![(1, 0), (1, 1)], vec![1]),
        (vec![(2, 0)], vec![0]),
        (vec![(2, 1)], vec![6]),
        (vec![(1, 1), (2, 0), (2, 1)], vec![3, 0]),
    ] {
        let mut scene = Scene::new(9, "0\n1\n0 0\n", &some);
        for (number, (range, log)) in logs.iter().enumerate() {
            let is_kept = |slot: &usize| !left_out.contains(&(number, *slot));
            let kept = (0..entries[number].len()).filter(is_kept);
            let index: Vec<u8> = kept.flat_map(|slot| entries[number][slot]).collect();
            scene.upload(*range, 0, log, &index);
        }
        let expected: Vec<_> =
            expected.into_iter().map(|first| (Code::AbortedForgotten, Some(first))).collect();
        assert_eq!(scene.codes(0), expected, "{left_out:?}");
    }
}

#[test]
fn a_remote_log_of_other_bytes_is_found() {
    let disk = SimDisk::new();
    let options = OpenOptions::default();
    let log = Log::open(Arc::new(disk.clone()), Path::new(DIR), LogConfig::default(), &options);
    let log = log.unwrap();
    let bytes = [batch(0, 1), batch(1, 2), abort(2, 2)].concat();
    log.append_as_follower(&bytes, 9, 0).unwrap();
    log.close().unwrap();
    disk.put_dir(Path::new("/store"), None).unwrap();
    let target = LocalTarget::new(Arc::new(disk.clone()), "/store");
    let layout = ObjectLayout::default();
    let mut scene = Scene { disk, target, layout, segments: Vec::new() };
    let aborted = crate::index::AbortedTxn {
        producer_id: 2,
        first_offset: 1,
        last_offset: 2,
        last_stable_offset: 0,
    };
    scene.upload((0, 2), 0, &bytes, &aborted.encode());
    assert_eq!(scene.codes(0), []);
    // A shorter one of the same bytes is an earlier roll.
    let short = batch(0, 1);
    scene.segments.clear();
    scene.upload((0, 0), 0, &short, b"");
    assert_eq!(scene.codes(0), []);
    let mut other = bytes.clone();
    // The leader epoch, which no checksum covers.
    other[15] ^= 1;
    scene.segments.clear();
    scene.upload((0, 2), 0, &other, &aborted.encode());
    assert_eq!(scene.codes(0), [(Code::RemoteDiffers, Some(0))]);
    // So it is beside a sound upload of the same offsets.
    scene.upload((0, 2), 0, &bytes, &aborted.encode());
    scene.segments.reverse();
    assert_eq!(scene.codes(0), [(Code::RemoteDiffers, Some(0))]);
    scene.segments.truncate(1);
    scene.segments[0].size_bytes += 1;
    assert_eq!(scene.codes(0), [(Code::RemoteDiffers, Some(0))]);
}
