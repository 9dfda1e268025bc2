//! A tiered log from its first upload to its deletion: rows of sections RC and EX that a consumer
//! sees.

use std::path::Path;

use siltstone::dir::engine::NewLog;
use siltstone::io::SimDisk;
use siltstone::log::{AppendScratch, LeaderAppend, LogConfig};
use siltstone::tier::{
    AuxJob, AuxLimits, AuxPlace, AuxRemote, MetadataCache, ObjectTarget, RemoteLogStart,
    RemoteSegment, RemoteSegmentState, SizeBudget, build_aux_bulk,
};
use siltstone_tests::live::records;
use siltstone_tests::nodes::TestNode;

use crate::tiered_log::{Remote, Tiered};

/// A log whose segments but the last are uploaded, and gone from the disk.
fn settled(records: usize, per_segment: i64) -> Tiered {
    let mut tiered = Tiered::new(per_segment);
    (0..records).for_each(|_| tiered.produce(0));
    tiered.settle();
    tiered
}

#[test]
fn what_was_there_before_remote_storage_is_uploaded_and_read_too() {
    // spec: tiered-behaviours RC17
    let mut tiered = Tiered::new(1);
    tiered.set(|config| config.remote_storage = false);
    (0..3).for_each(|_| tiered.produce(0));
    tiered.settle();
    assert_eq!((tiered.log.log().local_log_start_offset(), &tiered.remote.uploaded), (0, &vec![]));
    assert_eq!(tiered.copy().requests, 0, "also when it is asked to");
    tiered.set(|config| config.remote_storage = true);
    (0..2).for_each(|_| tiered.produce(0));
    tiered.settle();
    assert_eq!(tiered.remote.uploaded, [(0, 0), (1, 1), (2, 2), (3, 3)]);
    assert_eq!((tiered.log.log().local_log_start_offset(), tiered.local()), (4, vec![4]));
    assert_eq!(tiered.consume(0, 5), (vec![0, 1, 2, 3, 4], 4));
}

#[test]
fn copies_can_be_switched_off_and_on_again() {
    // spec: tiered-behaviours RC18, RC19
    let mut tiered = settled(3, 1);
    assert_eq!(tiered.remote.uploaded, [(0, 0), (1, 1)]);
    // The local retention is that of the log, which has no limit.
    let off = |config: &mut LogConfig| {
        (config.remote_copy_disabled, config.local_retention_bytes) = (true, -1);
    };
    tiered.set(off);
    tiered.log.log().roll(tiered.log.now_ms).unwrap();
    tiered.settle();
    assert_eq!(tiered.copy().requests, 0, "also when it is asked to");
    assert_eq!(tiered.remote.uploaded, [(0, 0), (1, 1)]);
    assert_eq!(tiered.log.log().local_log_start_offset(), 2);
    assert_eq!(tiered.consume(0, 3), (vec![0, 1, 2], 2));

    tiered.set(|config| {
        (config.remote_copy_disabled, config.local_retention_bytes) = (false, 1);
    });
    tiered.produce(0);
    tiered.settle();
    assert_eq!(tiered.remote.uploaded[2..], [(2, 2)]);
    assert_eq!((tiered.log.log().local_log_start_offset(), tiered.local()), (3, vec![3]));
    tiered.set(off);
    tiered.settle();
    assert_eq!(tiered.consume(0, 4), (vec![0, 1, 2, 3], 3));
}

#[test]
fn a_broker_that_lost_its_checkpoints_goes_on_where_remote_storage_ends() {
    // spec: tiered-behaviours RC21
    let mut tiered = settled(3, 1);
    assert_eq!(tiered.log.log().local_log_start_offset(), 2);
    tiered.log.log().close().unwrap();
    tiered.log.crash(0);
    tiered.reload();
    let log = tiered.log.log();
    assert_eq!((log.high_watermark(), log.highest_remote_offset()), (0, -1));
    (0..2).for_each(|_| tiered.produce(0));
    tiered.settle();
    assert_eq!(tiered.remote.uploaded[2..], [(2, 2), (3, 3)]);
    assert_eq!((tiered.log.log().local_log_start_offset(), tiered.local()), (4, vec![4]));
    assert_eq!(tiered.consume(0, 5), (vec![0, 1, 2, 3, 4], 4));
}

#[test]
fn no_task_runs_before_the_metadata_is_read() {
    // spec: tiered-behaviours RC9
    // A log of four segments: the first is uploaded and beyond retention, the next two could be
    // uploaded.
    for is_leader in [true, false] {
        let mut tiered = Tiered::new(1);
        (0..2).for_each(|_| tiered.produce(0));
        tiered.settle();
        (0..2).for_each(|_| tiered.produce(0));
        tiered.set(|config| config.retention_bytes = 1);
        tiered.is_leader = is_leader;
        tiered.log.reopen();
        tiered.log.replicate();
        // What it has read so far is not all.
        let loaded = tiered.remote.cache.clone();
        tiered.remote.cache = MetadataCache::new(loaded.partition().clone());
        for segment in loaded.list_all() {
            let state = RemoteSegmentState::CopyStarted;
            tiered.remote.cache.add(RemoteSegment { state, ..segment.clone() }).unwrap();
        }
        tiered.settle();
        assert_eq!((&tiered.remote.uploaded, &tiered.remote.deleted), (&vec![(0, 0)], &vec![]));
        assert_eq!(tiered.log.log().highest_remote_offset(), -1);
        assert_eq!(tiered.log.log().log_start_offset(), 0);

        tiered.reload();
        tiered.settle();
        let highest = if is_leader { 2 } else { 0 };
        assert_eq!(tiered.log.log().highest_remote_offset(), highest);
        assert_eq!(!tiered.remote.deleted.is_empty(), is_leader);
        assert_eq!(tiered.remote.uploaded.len() > 1, is_leader);
    }
}

#[test]
fn a_log_that_moves_to_another_directory_starts_behind_what_is_remote() {
    // spec: tiered-behaviours FF20
    let mut node = TestNode::new(2);
    node.config = LogConfig {
        remote_storage: true,
        local_retention_bytes: 1,
        segment_index_bytes: 12_000,
        ..LogConfig::default()
    };
    let mut remote = Remote::new(0, &SimDisk::new());
    let current = node.log("orders");
    for offset in 0..3 {
        if offset > 0 {
            current.roll(node.now_ms).unwrap();
        }
        node.append(&current, &records(1));
    }
    remote.copy_of(&current);
    current.delete_old_segments(node.now_ms).unwrap();
    assert_eq!((&remote.uploaded, current.local_log_start_offset()), (&vec![(0, 0), (1, 1)], 2));

    // The log in the other directory begins behind what is remote, and copies what is local.
    let future = NewLog {
        is_future: true,
        preferred: Some("/b".into()),
        config: node.config.clone(),
        now_ms: node.now_ms,
        ..NewLog::default()
    };
    let future = node.engine().get_or_create("orders", 0, &future).unwrap();
    let segment = remote.cache.segment(0, current.local_log_start_offset() - 1).unwrap();
    let job = AuxJob { place: AuxPlace::Log(&future), segment, log_start_offset: 0 };
    let from = AuxRemote { target: &remote.target, layout: &remote.layout };
    let limits = AuxLimits::new(node.now_ms);
    let built = build_aux_bulk(&node.disk, &[job], from, &limits).remove(0).unwrap();
    assert_eq!(built.next_offset, 2);
    future.append_as_follower(&records(1).at(2).epoch(0).build(), 0, node.now_ms).unwrap();
    node.engine().replace_current_with_future("orders", 0, node.now_ms).unwrap();

    // Leadership moves to it.
    let log = node.log("orders");
    assert_eq!(*log.dir(), Path::new("/b/orders-0"));
    assert_eq!((log.log_start_offset(), log.local_log_start_offset()), (0, 2));
    assert_eq!(log.highest_remote_offset(), -1);
    log.roll(node.now_ms).unwrap();
    let append = LeaderAppend::client(1, node.now_ms);
    log.append_as_leader(&mut records(1).build(), &append, &mut AppendScratch::new()).unwrap();
    log.update_high_watermark(log.log_end_offset()).unwrap();
    remote.copy_of(&log);
    assert_eq!(remote.uploaded[2..], [(2, 2)]);
    log.delete_old_segments(node.now_ms).unwrap();
    assert_eq!(log.local_log_start_offset(), 3);
    assert_eq!(remote.consume(&log, 0, 4), (vec![0, 1, 2, 3], 3));
}

#[test]
fn a_new_leader_starts_the_log_where_remote_storage_does() {
    // spec: tiered-behaviours RC13
    // Epochs (1,250) and (2,550), and segments of epoch 2 alone, from 600 on.
    let mut tiered = Tiered::new(50);
    tiered.log.log().truncate_fully_and_start_at(250, None, 0).unwrap();
    (250..550).for_each(|_| tiered.produce(1));
    (550..750).for_each(|_| tiered.produce(2));
    tiered.settle();
    tiered.delete_remote(600);
    assert_eq!(tiered.epochs(), [(1, 250), (2, 550)]);
    assert_eq!(tiered.log.log().log_start_offset(), 250);
    assert_eq!(tiered.become_leader(), RemoteLogStart::At(600));
    assert_eq!(tiered.log.log().log_start_offset(), 600);
    assert_eq!(tiered.epochs(), [(2, 600)]);
}

#[test]
fn a_log_that_is_too_large_is_expired_to_what_is_local() {
    // spec: tiered-behaviours EX11
    let mut tiered = settled(4, 1);
    assert_eq!(tiered.remote.uploaded.len(), 3);
    tiered.set(|config| config.retention_bytes = 1);
    tiered.settle();
    assert_eq!(tiered.remote.deleted, [(0, 0), (1, 1), (2, 2)]);
    assert_eq!((tiered.log.log().log_start_offset(), tiered.epochs()), (3, vec![(0, 3)]));
    assert_eq!(tiered.consume(3, 1), (vec![3], 0));
}

#[test]
fn a_segment_that_holds_the_log_start_stays_and_is_read() {
    // spec: tiered-behaviours EX13, EX14
    let mut tiered = settled(5, 2);
    assert_eq!(tiered.remote.uploaded, [(0, 1), (2, 3)]);
    assert_eq!(tiered.delete_records(3), 1);
    assert_eq!((&tiered.remote.deleted, tiered.epochs()), (&vec![(0, 1)], vec![(0, 3)]));
    assert_eq!(tiered.consume(3, 2), (vec![3, 4], 1));

    (0..5).for_each(|_| tiered.produce(1));
    tiered.settle();
    assert_eq!(tiered.remote.uploaded[2..], [(4, 5), (6, 7)]);
    assert_eq!(tiered.delete_records(7), 2);
    let mut deleted = tiered.remote.deleted.split_off(1);
    deleted.sort_unstable();
    assert_eq!((deleted, tiered.epochs()), (vec![(2, 3), (4, 5)], vec![(1, 7)]));
    assert_eq!(tiered.consume(7, 3), (vec![7, 8, 9], 1));
}

#[test]
fn a_topic_that_goes_leaves_no_object() {
    // spec: tiered-behaviours EX15
    let store = SimDisk::new();
    let mut partitions = [0, 1].map(|partition| Tiered::of(partition, &store, 1));
    for tiered in &mut partitions {
        (0..3).for_each(|_| tiered.produce(0));
        tiered.settle();
    }
    let objects = |tiered: &Tiered| tiered.remote.target.list("").unwrap().len();
    assert_eq!(objects(&partitions[0]), 4 * 5, "four segments of five parts");
    for (tiered, left) in partitions.iter_mut().zip([10, 0]) {
        let run = tiered.delete_remote(i64::MAX);
        assert_eq!((run.requests, run.deleted, run.failures), (2, 2, 0));
        assert_eq!(tiered.remote.deleted, [(0, 0), (1, 1)]);
        assert_eq!((objects(tiered), tiered.remote.cache.list_all().len()), (left, 0));
    }
}

#[test]
fn what_a_cancelled_task_knew_of_the_sizes_is_forgotten() {
    // spec: tiered-behaviours EX10
    let mut tiered = settled(5, 1);
    let size = tiered.log.log().size_bytes();
    tiered.set(|config| config.retention_bytes = i64::try_from(size * 3).unwrap());
    tiered.remote.deletions_max = 1;
    tiered.settle();
    // Two are too many, and one is gone.
    assert_eq!((tiered.remote.deleted.len(), tiered.expiry.was_cancelled), (1, true));
    assert_eq!(tiered.expiry.budget, SizeBudget::default());
    tiered.remote.deletions_max = usize::MAX;
    tiered.settle();
    let SizeBudget { breach, total_percent, local_percent, all_valid } = tiered.expiry.budget;
    assert!(!tiered.expiry.was_cancelled && all_valid);
    assert_eq!(breach.unwrap().breach_bytes(), size);
    assert_eq!((total_percent, local_percent), (133, size * 100));
}
