//! A replica that is rebuilt from remote storage: what Kafka 4.3.1 loses then, and ours keeps.

use std::path::Path;

use siltstone::io::Storage;
use siltstone::log::bootstrap::AuxObject;
use siltstone::log::{AppendReason, LeaderAppend};
use siltstone::replica::{Invariant, check_caught_up};
use siltstone::state::snapshot::Snapshot;
use siltstone::tier::faulty_target::{TargetFault, TargetOperation};
use siltstone::tier::{
    AuxErrorKind, AuxInstalled, AuxJob, AuxLimits, AuxPlace, AuxResult, RemoteSegment,
    RemoteSegmentState, build_aux_bulk,
};
use siltstone::{Kind, index::AbortedTxn};
use siltstone_tests::live::{DIR, Marker, NOW_MS, TestLog, records};
use siltstone_tests::remote::{Remote, segment};

fn tiered() -> TestLog {
    TestLog::with(|config| config.remote_storage = true)
}

pub(crate) fn build(
    log: &TestLog,
    remote: &Remote,
    segment: &RemoteSegment,
    log_start_offset: i64,
) -> AuxResult<AuxInstalled> {
    let job = AuxJob { place: AuxPlace::Log(log.log()), segment, log_start_offset };
    let mut results =
        build_aux_bulk(&log.disk, &[job], remote.of_aux(), &AuxLimits::new(log.now_ms));
    assert_eq!(results.len(), 1);
    results.remove(0)
}

/// A leader that has offsets up to an end, in batches of one record.
fn fill(leader: &mut TestLog, end: i64) {
    while leader.log().log_end_offset() < end {
        leader.lead(&records(1));
    }
}

/// Has the follower fetch what the leader has from here on.
fn catch_up(follower: &TestLog, leader: &TestLog) {
    let mut offset = follower.log().log_end_offset();
    while offset < leader.log().log_end_offset() {
        let from = offset.max(leader.log().log_start_offset());
        follower.try_follow(&leader.read(from).bytes).unwrap();
        let end = follower.log().log_end_offset();
        assert!(end > offset);
        offset = end;
    }
    follower.replicate();
    // spec: tiered-faults T3
    let (next, stable) =
        (follower.log().local_log_start_offset(), follower.log().last_stable_offset());
    assert_eq!(check_caught_up(next, stable), None);
}

fn offsets(log: &TestLog) -> (i64, i64, i64, i64) {
    let log = log.log();
    (
        log.log_start_offset(),
        log.local_log_start_offset(),
        log.high_watermark(),
        log.log_end_offset(),
    )
}

fn aborted(log: &TestLog, from: i64) -> Vec<(i64, i64, i64)> {
    let found = log.log().aborted_transactions(from, log.log().log_end_offset()).unwrap();
    let line = |txn: AbortedTxn| (txn.producer_id, txn.first_offset, txn.last_offset);
    found.into_iter().map(line).collect()
}

/// Records 0..4 in a transaction, others up to 494, a new segment, and others up to 504.
fn leader_across() -> TestLog {
    let mut leader = tiered();
    leader.lead(&records(5).txn(1, 0, 0));
    fill(&mut leader, 495);
    assert_eq!(leader.log().roll(NOW_MS).unwrap(), 495);
    fill(&mut leader, 505);
    leader
}

#[test]
fn an_abort_behind_the_rebuild_names_the_whole_transaction() {
    // spec: tiered-faults T2a
    let mut leader = leader_across();
    leader.lead(&records(2).txn(1, 0, 5));
    assert_eq!(leader.end(1, 0, true).first_offset, Some(507));
    fill(&mut leader, 520);
    let remote = Remote::default();
    let segment = remote.upload(&leader, 495);

    let follower = tiered();
    let installed = build(&follower, &remote, &segment, 0).unwrap();
    assert_eq!((installed.next_offset, installed.first_open_offset), (495, Some(0)));
    catch_up(&follower, &leader);
    assert_eq!(aborted(&follower, 495), [(1, 0, 507)]);
    assert_eq!(aborted(&follower, 495), aborted(&leader, 495));
    let index = "00000000000000000495.txnindex";
    follower.log().flush(true, NOW_MS).unwrap();
    leader.log().flush(true, NOW_MS).unwrap();
    assert_eq!(follower.file(index).unwrap(), leader.file(index).unwrap());
    assert_eq!(follower.log().last_stable_offset(), 520);
}

#[test]
fn an_abort_alone_behind_the_rebuild_is_indexed() {
    // spec: tiered-faults T2a, the last column
    let mut leader = leader_across();
    assert_eq!(leader.end(1, 0, true).first_offset, Some(505));
    let remote = Remote::default();
    let segment = remote.upload(&leader, 495);
    let follower = tiered();
    build(&follower, &remote, &segment, 0).unwrap();
    assert_eq!(follower.log().last_stable_offset(), 0);
    assert_eq!(check_caught_up(495, 0), Some(Invariant::DecidedBelowStart), "its end is to come");
    catch_up(&follower, &leader);
    assert_eq!(aborted(&follower, 495), [(1, 0, 505)]);
    assert_eq!(follower.log().last_stable_offset(), 506);
}

/// Five producers of five records each, others up to 514, a new segment, and others up to 529; and
/// a follower that was rebuilt behind 514 and caught up.
fn led_by_the_rebuilt() -> (TestLog, TestLog) {
    let mut leader = tiered();
    for (id, epoch) in [(1, 0), (2, 0), (3, 1), (4, 0), (5, 0)] {
        leader.lead(&records(5).producer(id, epoch, 0));
    }
    fill(&mut leader, 515);
    leader.log().roll(NOW_MS).unwrap();
    fill(&mut leader, 530);
    let remote = Remote::default();
    let segment = remote.upload(&leader, 515);
    let follower = tiered();
    let installed = build(&follower, &remote, &segment, 0).unwrap();
    assert_eq!(installed.producer_count, 5);
    catch_up(&follower, &leader);
    (leader, follower)
}

#[test]
fn the_snapshot_is_that_of_remote_storage() {
    // spec: tiered-faults T2; follower-fetch D10
    let (leader, follower) = led_by_the_rebuilt();
    let snapshot = follower.file("00000000000000000515.snapshot").unwrap();
    assert_eq!(snapshot.len(), 240);
    assert_eq!(Some(snapshot), leader.file("00000000000000000515.snapshot"));
}

#[test]
fn producers_are_answered_as_by_a_follower_that_was_never_rebuilt() {
    // spec: tiered-faults T2b
    let (_, mut follower) = led_by_the_rebuilt();
    for id in [1, 2, 5] {
        // The same batch again.
        let info = follower.try_lead(&records(5).producer(id, 0, 0), 1).unwrap();
        assert_eq!(info.first_offset, Some((id - 1) * 5));
        assert_eq!(follower.log().log_end_offset(), 530);
    }
    let gap = follower.try_lead(&records(1).producer(2, 0, 99), 1);
    assert_eq!(gap.unwrap_err().reason(), Some(AppendReason::OutOfOrderSequence));
    let old = follower.try_lead(&records(1).producer(3, 0, 0), 1);
    assert_eq!(old.unwrap_err().reason(), Some(AppendReason::InvalidProducerEpoch));
    assert_eq!(follower.log().log_end_offset(), 530);
    // What follows, and then what was there before it.
    let next = follower.try_lead(&records(1).producer(4, 0, 5), 1).unwrap();
    assert_eq!(next.first_offset, Some(530));
    let again = follower.try_lead(&records(5).producer(4, 0, 0), 1).unwrap();
    assert_eq!((again.first_offset, follower.log().log_end_offset()), (Some(15), 531));
    // A producer that goes on.
    let next = follower.try_lead(&records(1).producer(5, 0, 5), 1).unwrap();
    assert_eq!(next.first_offset, Some(531));
}

#[test]
fn producers_are_known_after_a_restart_too() {
    // spec: tiered-faults T2b
    let (_, mut follower) = led_by_the_rebuilt();
    let snapshot = follower.file("00000000000000000515.snapshot");
    follower.reopen();
    assert_eq!(follower.file("00000000000000000515.snapshot"), snapshot);
    let again = follower.try_lead(&records(5).producer(1, 0, 0), 1).unwrap();
    assert_eq!((again.first_offset, follower.log().log_end_offset()), (Some(0), 530));
    follower.crash(0);
    let again = follower.try_lead(&records(5).producer(4, 0, 0), 1).unwrap();
    assert_eq!((again.first_offset, follower.log().log_end_offset()), (Some(15), 530));
}

#[test]
fn expired_producers_stay_in_the_file_and_are_forgotten_in_memory() {
    // spec: tiered-faults T2, "entries of P (unexpired)"
    let mut leader = tiered();
    leader.lead(&records(5).producer(1, 0, 0));
    leader.log().roll(NOW_MS).unwrap();
    let remote = Remote::default();
    let segment = remote.upload(&leader, 5);
    let mut follower = tiered();
    follower.now_ms += 86_400_001;
    build(&follower, &remote, &segment, 0).unwrap();
    assert_eq!(follower.file("00000000000000000005.snapshot").unwrap().len(), 56);
    // Forgotten: any sequence begins anew.
    let info = follower.try_lead(&records(1).producer(1, 0, 99), 1).unwrap();
    assert_eq!(info.first_offset, Some(5));
}

/// The first offset of the open transaction in a snapshot.
fn open_in_snapshot(log: &TestLog, offset: i64) -> Vec<i64> {
    let bytes = log.file(&format!("{offset:020}.snapshot")).expect("a snapshot");
    let snapshot = Snapshot::read(&bytes).unwrap();
    snapshot.iter().map(|producer| producer.txn_first_offset).filter(|first| *first >= 0).collect()
}

#[test]
fn a_transaction_that_begins_behind_the_rebuild_holds_the_last_stable_offset() {
    // spec: tiered-faults T3, the first row
    let mut leader = tiered();
    leader.lead(&records(1).producer(9, 0, 0));
    fill(&mut leader, 280);
    leader.log().roll(NOW_MS).unwrap();
    fill(&mut leader, 300);
    leader.lead(&records(3).txn(1, 0, 0));
    fill(&mut leader, 503);
    leader.replicate();
    assert_eq!(leader.log().last_stable_offset(), 300);
    let remote = Remote::default();
    let segment = remote.upload(&leader, 280);
    let follower = tiered();
    let installed = build(&follower, &remote, &segment, 0).unwrap();
    assert_eq!((installed.next_offset, installed.first_open_offset), (280, None));
    for next in [353, 423, 493, 503] {
        let bytes: Vec<u8> = (leader.headers().iter())
            .filter(|header| (follower.log().log_end_offset()..next).contains(&header.base_offset))
            .flat_map(|header| {
                let bytes = leader.read(header.base_offset).bytes;
                bytes[..usize::try_from(header.size_bytes).unwrap()].to_vec()
            })
            .collect();
        follower.try_follow(&bytes).unwrap();
        if next < 503 {
            assert_eq!(follower.log().roll(NOW_MS).unwrap(), next);
            assert_eq!(open_in_snapshot(&follower, next), [300]);
        }
    }
    follower.replicate();
    assert_eq!(follower.log().last_stable_offset(), 300);
    let committed = follower.try_read(280, u32::MAX, siltstone::log::Isolation::Committed).unwrap();
    let last = siltstone_tests::live::base_offsets(&committed.bytes).last().copied();
    assert_eq!((last, committed.aborted), (Some(299), Some(Vec::new())));
}

#[test]
fn a_transaction_that_nothing_was_uploaded_of_is_copied() {
    // spec: tiered-faults T3, the second row
    let mut leader = tiered();
    fill(&mut leader, 10);
    leader.lead(&records(3).txn(1, 0, 0));
    for end in [50, 100, 150, 200, 250] {
        fill(&mut leader, end);
        leader.log().roll(NOW_MS).unwrap();
    }
    leader.replicate();
    let follower = tiered();
    catch_up(&follower, &leader);
    assert_eq!((leader.log().last_stable_offset(), follower.log().last_stable_offset()), (10, 10));
}

#[test]
fn nothing_can_be_known_of_a_transaction_before_a_restart_at_the_log_start() {
    // spec: tiered-faults T3, the third row
    let mut leader = tiered();
    fill(&mut leader, 10);
    leader.lead(&records(3).txn(1, 0, 0));
    fill(&mut leader, 28);
    leader.lead(&records(8));
    fill(&mut leader, 313);
    leader.replicate();
    leader.log().maybe_increment_log_start_offset(32).unwrap();
    // Kafka says 28, the base of the batch in which the log starts, which no reader can ask for.
    assert_eq!(leader.log().last_stable_offset(), 32);
    let mut follower = tiered();
    follower.log().truncate_fully_and_start_at(28, Some(32), NOW_MS).unwrap();
    catch_up(&follower, &leader);
    assert_eq!((follower.log().log_start_offset(), follower.log().last_stable_offset()), (32, 313));
    let next = records(1).txn(1, 0, 3);
    follower.open_with(|options| {
        options.log_start_offset = 32;
        options.producers.transaction_verification_enabled = true;
    });
    // The second version of transactions asks for a sequence of 0 where nothing is known.
    let guard = follower.log().start_verification(1, 3, 0, true, NOW_MS).unwrap();
    let append = LeaderAppend { guard, ..LeaderAppend::client(1, NOW_MS) };
    let refused = follower.try_append(next.build(), append).unwrap_err();
    assert_eq!(refused.reason(), Some(AppendReason::OutOfOrderSequence));
    assert_eq!(leader.lead(&next).first_offset, Some(313));
    assert_eq!(follower.end(1, 0, true).first_offset, Some(313));
    follower.replicate();
    assert_eq!(follower.log().last_stable_offset(), follower.log().log_end_offset());
}

/// The leader of the fault runs: epochs (0,30)(2,305), a segment up to 564.
fn remote_of_t4() -> (Remote, RemoteSegment) {
    let mut leader = tiered();
    leader.lead(&records(5).producer(1, 0, 0));
    leader.log().roll(NOW_MS).unwrap();
    let snapshot = leader.file("00000000000000000005.snapshot").unwrap();
    let remote = Remote::default();
    let segment = segment(0, 495, 564, &[(2, 495)]);
    remote.put_aux(&segment, "0\n2\n0 30\n2 305\n", &snapshot);
    (remote, segment)
}

#[test]
fn an_object_that_cannot_be_read_leaves_the_follower_as_it_was_and_the_next_try_is_the_same() {
    // spec: tiered-faults T4, the rows k7 and k8
    let faults = [
        TargetFault::Fails(Kind::Io),
        TargetFault::Fails(Kind::NotFound),
        TargetFault::Fails(Kind::Conflict),
        TargetFault::AnswerLost,
        TargetFault::Shorter(1),
        TargetFault::Longer(1),
        TargetFault::Flipped(3),
        TargetFault::Instead(Vec::new()),
        TargetFault::Instead(vec![0; 200]),
        TargetFault::Instead(b"<Error><Code>SlowDown</Code></Error>".to_vec()),
    ];
    let (remote, segment) = remote_of_t4();
    for part in [".leader_epoch_checkpoint", ".snapshot"] {
        for fault in &faults {
            let follower = tiered();
            let before = (offsets(&follower), follower.disk.snapshot(Path::new("/")).unwrap());
            remote.target.reset();
            remote.target.fault_once(TargetOperation::Get, part, fault.clone());
            let error = build(&follower, &remote, &segment, 30).unwrap_err();
            match error.kind() {
                AuxErrorKind::Remote { retryable: true } => {}
                AuxErrorKind::Corrupt { object: AuxObject::LeaderEpochs } => {
                    assert_eq!(part, ".leader_epoch_checkpoint");
                }
                AuxErrorKind::Corrupt { object: AuxObject::ProducerSnapshot } => {
                    assert_eq!(part, ".snapshot");
                }
                other => panic!("{fault:?} of {part}: {other:?}"),
            }
            let after = (offsets(&follower), follower.disk.snapshot(Path::new("/")).unwrap());
            assert_eq!(after, before, "{fault:?} of {part}");
            build(&follower, &remote, &segment, 30).unwrap();
            assert_eq!(offsets(&follower), (30, 565, 565, 565));
            assert_eq!(follower.epochs(), [(0, 30), (2, 305)]);
        }
    }
}

#[test]
fn an_object_that_is_too_large_is_not_read() {
    let (remote, segment) = remote_of_t4();
    let follower = tiered();
    let job =
        AuxJob { place: AuxPlace::Log(follower.log()), segment: &segment, log_start_offset: 30 };
    let limits = AuxLimits { object_bytes_max: 20, ..AuxLimits::new(NOW_MS) };
    let results = build_aux_bulk(&follower.disk, &[job], remote.of_aux(), &limits);
    let error = results[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), AuxErrorKind::Remote { retryable: false });
    assert_eq!(offsets(&follower), (0, 0, 0, 0));
}

#[test]
fn a_rebuilt_log_begins_behind_the_segment_with_its_epochs_and_producers() {
    // spec: tiered-behaviours FF15, FF16
    let snapshot = {
        let mut leader = tiered();
        leader.lead(&records(1).producer(1, 0, 0));
        leader.log().roll(NOW_MS).unwrap();
        leader.file("00000000000000000001.snapshot").unwrap()
    };
    for end in [149, 159] {
        let remote = Remote::default();
        let segment = segment(0, 0, end, &[(0, 0), (1, 85)]);
        remote.put_aux(&segment, "0\n2\n0 0\n1 85\n", &snapshot);
        let follower = tiered();
        let installed = build(&follower, &remote, &segment, 0).unwrap();
        let next = end + 1;
        assert_eq!(installed.next_offset, next);
        assert_eq!(installed.epochs.latest().map(|entry| entry.epoch), Some(1));
        assert_eq!(offsets(&follower), (0, next, next, next));
        assert_eq!(follower.epochs(), [(0, 0), (1, 85)]);
        assert_eq!(follower.file("leader-epoch-checkpoint").unwrap(), b"0\n2\n0 0\n1 85\n");
        assert_eq!(follower.snapshots(), [next]);
        assert_eq!(follower.file(&format!("{next:020}.snapshot")).unwrap(), snapshot);
        assert_eq!(follower.log().with_producers(|state| state.producers().len()).unwrap(), 1);
    }
}

#[test]
fn what_is_no_segment_to_begin_behind_is_refused_before_anything_is_read() {
    let (remote, segment) = remote_of_t4();
    let follower = tiered();
    let with = |change: fn(&mut RemoteSegment)| {
        let mut other = segment.clone();
        change(&mut other);
        other
    };
    for (segment, start) in [
        (with(|it| it.state = RemoteSegmentState::CopyStarted), 30),
        (with(|it| it.state = RemoteSegmentState::DeleteStarted), 30),
        (with(|it| it.leader_epochs.clear()), 30),
        (with(|it| it.end_offset = 494), 30),
        (with(|it| it.end_offset = i64::MAX), 30),
        (segment.clone(), 565),
        (segment.clone(), -1),
    ] {
        let error = build(&follower, &remote, &segment, start).unwrap_err();
        assert_eq!(error.kind(), AuxErrorKind::SegmentNotFound, "{segment:?}");
    }
    assert_eq!(remote.target.count(TargetOperation::Get, ""), 0);
    let plain = TestLog::new();
    let error = build(&plain, &remote, &segment, 30).unwrap_err();
    assert_eq!(error.kind(), AuxErrorKind::NotReady);
}

#[test]
fn readers_of_the_old_log_go_on_with_what_they_hold() {
    let (remote, segment) = remote_of_t4();
    let mut follower = tiered();
    follower.lead(&records(3).value_bytes(100));
    follower.replicate();
    let options = siltstone::log::FetchOptions {
        max_bytes: u32::MAX,
        isolation: siltstone::log::Isolation::LogEnd,
        min_one_message: true,
    };
    let lease = follower.log().locate(0, &options).unwrap().range.unwrap();
    let before = lease.read().unwrap();
    build(&follower, &remote, &segment, 30).unwrap();
    assert_eq!(lease.read().unwrap(), before);
    follower.log().delete_due_files(i64::MAX).unwrap();
    assert_eq!(lease.read().unwrap(), before);
    assert_eq!(follower.bases(), [565]);
    let names = follower.files();
    assert!(names.iter().all(|name| !name.contains("aux-rebuild")), "{names:?}");
    // It can be read, written to and opened.
    follower.try_follow(&records(2).at(565).epoch(2).build()).unwrap();
    follower.replicate();
    assert_eq!(follower.headers().len(), 1);
}

#[test]
fn a_log_whose_active_segment_has_the_name_of_the_new_one_is_rebuilt() {
    let (remote, segment) = remote_of_t4();
    let mut follower = tiered();
    follower.log().truncate_fully_and_start_at(565, None, NOW_MS).unwrap();
    follower.try_follow(&records(4).at(565).epoch(2).producer(9, 0, 0).build()).unwrap();
    build(&follower, &remote, &segment, 30).unwrap();
    assert_eq!(offsets(&follower), (30, 565, 565, 565));
    assert_eq!(follower.file("00000000000000000565.log").unwrap(), b"");
    follower.options.log_start_offset = 30;
    follower.reopen();
    assert_eq!(follower.epochs(), [(0, 30), (2, 305)]);
    assert_eq!(offsets(&follower), (30, 565, 30, 565));
    assert_eq!(follower.log().with_producers(|state| state.producers().len()).unwrap(), 1);
}

#[test]
fn jobs_that_share_a_segment_read_it_once_and_a_log_is_rebuilt_once() {
    let (remote, segment) = remote_of_t4();
    let disk = siltstone::io::SimDisk::new();
    disk.put_dir(Path::new("/logs"), None).unwrap();
    let dirs: Vec<_> = (0..6).map(|number| format!("/logs/orders-{number}")).collect();
    let mut jobs: Vec<_> = (dirs.iter())
        .map(|dir| AuxJob {
            place: AuxPlace::Dir(Path::new(dir)),
            segment: &segment,
            log_start_offset: 30,
        })
        .collect();
    jobs.push(jobs[2]);
    for threads in [1, 3] {
        remote.target.reset();
        let limits = AuxLimits { threads, ..AuxLimits::new(NOW_MS) };
        let results = build_aux_bulk(&disk, &jobs, remote.of_aux(), &limits);
        assert!(results[..6].iter().all(|result| result.is_ok()), "{results:?}");
        assert_eq!(results[6].as_ref().unwrap_err().kind(), AuxErrorKind::Io);
        assert_eq!(remote.target.count(TargetOperation::Get, ".snapshot"), 1);
        assert_eq!(remote.target.count(TargetOperation::Get, ".leader_epoch_checkpoint"), 1);
    }
    let lines = disk.read(Path::new("/logs/log-start-offset-checkpoint"), 1000).unwrap();
    assert_eq!(String::from_utf8(lines).unwrap().lines().count(), 8);
}

#[test]
fn many_small_waves_come_to_what_one_comes_to() {
    let (remote, one) = remote_of_t4();
    let segments: Vec<RemoteSegment> = (0..20)
        .map(|number| {
            let segment = segment(number, 495, 564, &[(2, 495)]);
            let name = remote.layout.name(
                &one.id,
                one.start_offset,
                siltstone::tier::SegmentPart::ProducerSnapshot,
            );
            let snapshot = siltstone::tier::ObjectTarget::get(&*remote.target, &name, None, 1000);
            remote.put_aux(&segment, "0\n2\n0 30\n2 305\n", &snapshot.unwrap());
            segment
        })
        .collect();
    let dirs: Vec<_> = (0..20).map(|number| format!("/logs/orders-{number}")).collect();
    let rebuild = |limits: AuxLimits| {
        let disk = siltstone::io::SimDisk::new();
        disk.put_dir(Path::new("/logs"), None).unwrap();
        let jobs: Vec<_> = (dirs.iter().zip(&segments))
            .map(|(dir, segment)| AuxJob {
                place: AuxPlace::Dir(Path::new(dir)),
                segment,
                log_start_offset: 30,
            })
            .collect();
        let results = build_aux_bulk(&disk, &jobs, remote.of_aux(), &limits);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        disk.snapshot(Path::new("/logs")).unwrap()
    };
    let limits = AuxLimits::new(NOW_MS);
    let whole = rebuild(limits);
    assert_eq!(rebuild(AuxLimits { held_bytes_max: 0, ..limits }), whole);
    assert_eq!(rebuild(AuxLimits { partitions_max: 3, ..limits }), whole);
    assert_eq!(rebuild(AuxLimits { partitions_max: 0, threads: 2, ..limits }), whole);
    for threads in [1, 2] {
        assert_eq!(rebuild(AuxLimits { readers: 8, threads, ..limits }), whole);
    }
}

#[test]
fn a_log_that_is_written_to_meanwhile_is_left_as_it_is() {
    let (remote, segment) = remote_of_t4();
    let mut follower = tiered();
    follower.lead(&records(1));
    let name = |part| remote.layout.name(&segment.id, segment.start_offset, part);
    let get = |part| {
        siltstone::tier::ObjectTarget::get(&*remote.target, &name(part), None, 1000).unwrap()
    };
    let target = siltstone::log::bootstrap::AuxTarget {
        log_start_offset: 30,
        next_offset: 565,
        last_epoch: 2,
        topic_id: None,
    };
    let state = siltstone::log::bootstrap::AuxState::check(
        target,
        &get(siltstone::tier::SegmentPart::LeaderEpochs),
        get(siltstone::tier::SegmentPart::ProducerSnapshot).into(),
    )
    .unwrap();
    let staged = follower.log().stage_aux(&state).unwrap();
    let files = follower.files();
    // A second install keeps off, and leaves alone what is not its own.
    assert_eq!(follower.log().stage_aux(&state).unwrap_err().kind(), Kind::Conflict);
    assert_eq!(follower.log().install_aux(&state, NOW_MS).unwrap_err().kind(), Kind::Conflict);
    let refused = build(&follower, &remote, &segment, 30).unwrap_err();
    assert_eq!(refused.error().kind(), Kind::Conflict);
    assert_eq!(follower.files(), files);
    assert!(!follower.log().is_failed());
    follower.lead(&records(1));
    let error = follower.log().put_aux_in_place(&state, staged, NOW_MS).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert!(!follower.log().is_failed());
    let names = follower.files();
    assert!(names.iter().all(|name| !name.contains("aux-rebuild")), "{names:?}");
    assert_eq!(follower.lead(&records(1)).first_offset, Some(2));
    // One call alone does it all.
    follower.log().install_aux(&state, NOW_MS).unwrap();
    assert_eq!(offsets(&follower), (30, 565, 565, 565));
    assert!(follower.disk.metadata(&Path::new(DIR).join("aux-rebuild.mark")).is_err());
    let marker = Marker { offset: 565, leader_epoch: 2, ..Marker::of(1, 0, true) };
    follower.try_follow(&marker.build()).unwrap();
}
