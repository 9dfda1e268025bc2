//! Section LD: logs that are opened, after a clean stop and after another.

use std::path::Path;
use std::sync::Arc;

use siltstone::io::{OpenMode, SimDisk, Storage};
use siltstone::log::{LeaderAppend, Log, LogConfig, OpenOptions};
use siltstone::record::builder::{BatchOptions, write_end_marker};
use siltstone::record::control::EndMarker;
use siltstone::record::validate::{AppendOrigin, Batches};
use siltstone::state::Snapshot;
use siltstone_tests::live::{DIR, NOW_MS, TestBatch, TestLog, records};
use siltstone_tests::logs::{LogBuilder, log_name};

fn hundred_bytes(time: i64) -> TestBatch {
    // 61 bytes of header, and a record of 39.
    records(1).value_bytes(32).times(&[NOW_MS + time])
}

#[test]
fn a_log_that_is_new_is_made() {
    // spec: behaviours LD-043, LD-044, LD-045
    let log = TestLog::new();
    assert_eq!((log.bases(), log.log().log_end_offset()), (vec![0], 0));
    let mut log = TestLog::new();
    log.log().close().unwrap();
    log.open_with(|options| options.clean_shutdown = true);
    log.lead(&records(1));
    let mut log = TestLog::on(
        siltstone::io::SimDisk::new(),
        siltstone::log::LogConfig::default(),
        siltstone::log::OpenOptions {
            log_start_offset: 500,
            ..siltstone::log::OpenOptions::default()
        },
    );
    assert_eq!((log.log().log_start_offset(), log.log().log_end_offset()), (500, 500));
    assert_eq!(log.lead(&records(1)).first_offset, Some(500));
}

#[test]
fn indexes_after_an_unclean_stop_are_those_before_it() {
    // spec: behaviours LD-013
    let mut log = TestLog::with(|config| {
        config.segment_bytes = 700;
        config.index_interval_bytes = 300;
        config.segment_index_bytes = 4096;
    });
    for time in 0..100 {
        log.lead(&hundred_bytes(time));
    }
    log.log().close().unwrap();
    let last = *log.bases().last().unwrap();
    let name = |suffix: &str| format!("{last:020}.{suffix}");
    let before = [name("index"), name("timeindex")].map(|file| log.file(&file));
    log.crash(100);
    assert_eq!((log.log().log_end_offset(), log.log().recovery_point()), (100, 100));
    log.log().close().unwrap();
    assert_eq!([name("index"), name("timeindex")].map(|file| log.file(&file)), before);
}

#[test]
fn leader_epochs_that_a_clean_stop_left_unreadable_are_made_anew_from_the_batches() {
    // See docs/COMPATIBILITY.md: Kafka takes the directory offline, or goes on without them.
    for spoilt in [None, Some(&b""[..]), Some(b"0\n2\n0 0\n"), Some(b"?")] {
        let mut log = TestLog::with(|config| config.segment_bytes = 300);
        for epoch in [0, 0, 3, 3, 7] {
            log.try_lead(&records(1).value_bytes(100), epoch).unwrap();
        }
        log.log().close().unwrap();
        let (epochs, kept) = (log.epochs(), log.file("leader-epoch-checkpoint"));
        assert_eq!(epochs, [(0, 0), (3, 2), (7, 4)]);
        let path = Path::new(DIR).join("leader-epoch-checkpoint");
        log.disk.remove_file(&path).unwrap();
        if let Some(bytes) = spoilt {
            log.disk.open(&path, OpenMode::CreateNew).unwrap().write_at(bytes, 0).unwrap();
        }
        log.open_with(|options| options.clean_shutdown = true);
        assert_eq!(log.epochs(), epochs, "{spoilt:?}");
        assert_eq!(log.file("leader-epoch-checkpoint"), kept, "{spoilt:?}");
        assert_eq!(log.try_lead(&records(1), 7).unwrap().first_offset, Some(5));
    }
}

#[test]
fn no_record_is_given_up_for_lost_leader_epochs() {
    let mut log = TestLog::with(|config| config.segment_bytes = 300);
    for epoch in [0, 0, 3, 3, 7] {
        log.try_lead(&records(1).value_bytes(100), epoch).unwrap();
    }
    log.log().close().unwrap();
    let path = |name: &str| Path::new(DIR).join(name);
    log.disk.put(&path("leader-epoch-checkpoint"), Vec::new(), None).unwrap();
    let first = format!("{:020}.log", 0);
    let mut bytes = log.file(&first).unwrap();
    bytes[90] ^= 1;
    log.disk.put(&path(&first), bytes, None).unwrap();
    let options = OpenOptions { clean_shutdown: true, now_ms: NOW_MS, ..OpenOptions::default() };
    let disk = Arc::new(log.disk.clone());
    let before = log.files();
    let error = Log::open(disk, Path::new(DIR), log.config.clone(), &options).unwrap_err();
    assert_eq!(error.kind(), siltstone::Kind::Corrupt, "{error}");
    assert_eq!(log.files(), before);
}

#[test]
fn lost_and_broken_indexes_are_made_anew_after_an_unclean_stop() {
    // spec: behaviours LD-015, LD-016
    for bytes in [None, Some(b"  ".to_vec())] {
        let mut log = TestLog::with(|config| {
            config.segment_bytes = 200;
            config.index_interval_bytes = 1;
        });
        for time in 0..200 {
            log.lead(&records(1).times(&[NOW_MS + time * 10]));
        }
        log.log().close().unwrap();
        let dir = std::path::Path::new(siltstone_tests::live::DIR);
        for file in log.files().iter().filter(|file| file.ends_with("index")) {
            let storage: &dyn siltstone::io::Storage = &log.disk;
            storage.remove_file(&dir.join(file)).unwrap();
            if let Some(bytes) = &bytes {
                log.disk.put(&dir.join(file), bytes.clone(), None).unwrap();
            }
        }
        log.crash(0);
        assert_eq!(log.log().log_end_offset(), 200);
        for offset in 0..200 {
            assert_eq!(log.read(offset).place.offset, offset);
            let found = log.log().offset_for_timestamp(NOW_MS + offset * 10).unwrap();
            assert_eq!(found.map(|found| found.offset), Some(offset));
        }
        let indexes: Vec<_> = log.files().into_iter().filter(|it| it.ends_with("index")).collect();
        assert_eq!(indexes.len(), 2 * log.bases().len());
        for name in indexes {
            assert!(log.file(&name).is_some_and(|bytes| !bytes.is_empty()), "{name}");
        }
    }
}

#[test]
fn deleted_files_go_when_the_log_is_opened() {
    // spec: behaviours LD-019
    let mut log = TestLog::with(|config| config.retention_bytes = 0);
    for _ in 0..5 {
        log.lead(&records(1));
        log.log().roll(NOW_MS).unwrap();
    }
    log.replicate();
    log.log().delete_old_segments(NOW_MS).unwrap();
    assert!(log.files().iter().any(|file| file.ends_with(".deleted")));
    log.reopen();
    assert!(!log.files().iter().any(|file| file.ends_with(".deleted")));
    assert_eq!(log.bases().len(), 1);
}

#[test]
fn garbage_behind_the_records_is_cut_after_an_unclean_stop() {
    // spec: behaviours LD-020
    for count in [50, 75, 99] {
        let mut log = TestLog::new();
        for time in 0..count {
            log.lead(&hundred_bytes(time));
        }
        log.log().close().unwrap();
        let dir = std::path::Path::new(siltstone_tests::live::DIR);
        for (file, garbage) in [("log", 700_usize), ("index", 13)] {
            let name = format!("00000000000000000000.{file}");
            let mut bytes = log.file(&name).unwrap();
            bytes.extend((0..garbage).map(|byte| u8::try_from(byte * 31 % 251).unwrap()));
            log.disk.put(&dir.join(name), bytes, None).unwrap();
        }
        log.crash(50);
        assert_eq!(log.log().log_end_offset(), count);
        let offsets: Vec<i64> = log.headers().iter().map(|header| header.base_offset).collect();
        assert_eq!(offsets, (0..count).collect::<Vec<_>>());
    }
}

#[test]
fn offsets_too_far_from_the_base_begin_a_segment() {
    // spec: behaviours LD-021, LD-023
    let mut log = TestLog::new();
    for offset in [0, 2_147_483_649, 2_147_483_650, 2_147_483_651] {
        log.follow(&records(1).at(offset).epoch(0));
    }
    assert_eq!(log.bases(), [0, 2_147_483_649]);
    assert_eq!(log.snapshots(), [2_147_483_649]);
    log.reopen();
    assert_eq!(log.log().log_end_offset(), 2_147_483_652);
    for base in log.bases() {
        assert_eq!(log.read(base).place.segment_base_offset, base);
    }
    let log = TestLog::new();
    let message = |offset: i64, count: i64, compressed: bool| {
        use siltstone::record::codec::{Codec, Compressor};
        let codec = if compressed { Codec::Gzip } else { Codec::None };
        let mut builder =
            siltstone::record::builder::LegacyBuilder::new(1, codec.into(), None, offset).unwrap();
        for offset in offset..offset + count {
            builder.append(offset, NOW_MS, None, Some(b"v")).unwrap();
        }
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
        bytes
    };
    log.try_follow(&message(0, 1, false)).unwrap();
    for offset in [2_147_483_649, 2_147_483_651, 2_147_483_653] {
        log.try_follow(&message(offset, 2, true)).unwrap();
    }
    assert_eq!(log.bases(), [0, 3, 2_147_483_651]);
}

#[test]
fn a_roll_that_was_flushed_is_there_after_a_crash() {
    // spec: behaviours LD-039, LD-040
    let mut log = TestLog::new();
    for _ in 0..100 {
        log.lead(&records(1));
    }
    log.log().roll(NOW_MS).unwrap();
    log.log().flush(false, NOW_MS).unwrap();
    log.crash(100);
    assert_eq!((log.log().log_end_offset(), log.log().recovery_point()), (100, 100));
    let index = "00000000000000000100.index";
    assert!(log.file(index).is_some());
    let entries = log.file("00000000000000000100.timeindex").unwrap();
    assert!(entries.iter().all(|byte| *byte == 0), "no entry");
    let mut log = TestLog::new();
    for _ in 0..100 {
        log.lead(&records(1));
    }
    log.log().roll(NOW_MS).unwrap();
    assert_eq!(log.file(index), None, "only its log");
    log.log().flush(true, NOW_MS).unwrap();
    let bytes = log.file(index).unwrap();
    assert_eq!(bytes.len(), 12_000);
}

#[test]
fn the_log_start_is_the_checkpoints_with_remote_storage_alone() {
    // spec: behaviours LD-041
    for (remote, start) in [(true, 0), (false, 5)] {
        let mut log = TestLog::with(|config| config.remote_storage = remote);
        log.log().truncate_fully_and_start_at(5, None, NOW_MS).unwrap();
        log.lead(&records(1));
        log.reopen();
        assert_eq!(log.log().log_start_offset(), start, "remote {remote}");
    }
}

#[test]
fn expired_producers_are_not_loaded() {
    // spec: behaviours LD-011
    let mut log = TestLog::new();
    log.lead(&records(1).producer(1, 0, 0));
    log.log().roll(NOW_MS).unwrap();
    log.lead(&records(1).producer(2, 0, 0));
    log.replicate();
    log.log().maybe_increment_log_start_offset(1).unwrap();
    log.log().delete_old_segments(NOW_MS).unwrap();
    let count = |log: &TestLog| log.log().with_producers(|state| state.producers().len()).unwrap();
    assert_eq!(count(&log), 2);
    log.options.log_start_offset = 1;
    log.crash(0);
    assert_eq!(count(&log), 1);
}

/// Removes the files for which `is_doomed` says so.
fn remove(log: &TestLog, is_doomed: impl Fn(&str) -> bool) {
    let dir = std::path::Path::new(siltstone_tests::live::DIR);
    let storage: &dyn siltstone::io::Storage = &log.disk;
    for file in log.files().iter().filter(|file| is_doomed(file)) {
        storage.remove_file(&dir.join(file)).unwrap();
    }
}

fn hundred_and_one(segment_bytes: u32) -> TestLog {
    let mut log = TestLog::with(|config| config.segment_bytes = segment_bytes);
    for _ in 0..101 {
        log.lead(&records(1));
    }
    log.log().close().unwrap();
    log
}

#[test]
fn a_log_without_snapshots_gets_those_that_recovery_takes() {
    // spec: behaviours LD-047, LD-048
    for from_start in [false, true] {
        let mut log = hundred_and_one(640);
        let bases = log.bases();
        remove(&log, |file| file.ends_with(".snapshot"));
        log.crash(if from_start { 0 } else { 101 });
        let mut wanted: Vec<i64> =
            if from_start { bases[1..].to_vec() } else { bases[bases.len() - 2..].to_vec() };
        wanted.push(101);
        assert_eq!(log.snapshots(), wanted, "from the start: {from_start}");
    }
}

#[test]
fn only_segments_from_the_recovery_point_on_are_recovered() {
    // spec: behaviours LD-005
    let mut log = hundred_and_one(640);
    let bases = log.bases();
    let count = bases.len();
    let point = bases[count - 4];
    let second_last = bases[count - 2];
    remove(&log, |file| {
        let stem = file.strip_suffix(".snapshot").and_then(|stem| stem.parse::<i64>().ok());
        stem.is_some_and(|offset| offset < second_last)
    });
    log.crash(point);
    let mut wanted = bases[count - 4..].to_vec();
    wanted.push(101);
    assert_eq!(log.snapshots(), wanted);
    assert_eq!(log.log().log_end_offset(), 101);
}

#[test]
fn a_stray_snapshot_goes_after_an_unclean_stop() {
    // spec: behaviours LD-012
    let mut log = TestLog::new();
    for _ in 0..2 {
        log.lead(&records(1));
        log.log().roll(NOW_MS).unwrap();
    }
    log.lead(&records(2));
    log.log().close().unwrap();
    assert_eq!(log.snapshots(), [1, 2, 4]);
    let dir = std::path::Path::new(siltstone_tests::live::DIR);
    log.disk.put(&dir.join(format!("{:020}.snapshot", 3)), Vec::new(), None).unwrap();
    log.crash(0);
    assert_eq!(log.snapshots(), [1, 2, 4]);
}

#[test]
fn indexes_without_a_log_go() {
    // spec: behaviours LD-017
    let mut log = TestLog::new();
    log.log().close().unwrap();
    remove(&log, |file| file.ends_with("log"));
    let dir = std::path::Path::new(siltstone_tests::live::DIR);
    for base in [0, 5] {
        for role in ["index", "timeindex"] {
            let path = dir.join(format!("{base:020}.{role}"));
            log.disk.put(&path, vec![7; 24], None).unwrap();
        }
    }
    log.open_with(|options| options.clean_shutdown = true);
    log.lead(&records(1));
    let files = log.files();
    assert!(!files.iter().any(|file| file.starts_with("00000000000000000005")));
    for role in ["index", "timeindex"] {
        let bytes = log.file(&format!("{:020}.{role}", 0)).unwrap();
        assert_eq!(bytes, vec![0; 12_000], "{role} at its full length");
    }
}

#[test]
fn a_marker_of_an_older_coordinator_is_loaded_where_its_producer_was_forgotten() {
    // spec: behaviours LD-009
    let mut log = TestLog::new();
    let marker = |coordinator_epoch, timestamp_ms| {
        let options = BatchOptions {
            leader_epoch: 0,
            producer_id: 7,
            producer_epoch: 0,
            ..Default::default()
        };
        let marker = EndMarker { is_abort: true, coordinator_epoch, timestamp_ms };
        let mut bytes = Vec::new();
        write_end_marker(&options, &marker, &mut bytes).unwrap();
        bytes
    };
    let end = |log: &mut TestLog, bytes| {
        let origin = AppendOrigin::Coordinator;
        let append = LeaderAppend {
            origin,
            transaction_version: Some(0),
            ..LeaderAppend::client(0, log.now_ms)
        };
        log.try_append(bytes, append)
    };
    end(&mut log, marker(5, NOW_MS)).unwrap();
    assert!(end(&mut log, marker(4, NOW_MS)).is_err(), "while the producer is known");
    log.now_ms += log.options.producers.producer_id_expiration_ms + 1;
    log.log().remove_expired_producers(log.now_ms).unwrap();
    let last_ms = log.now_ms - 5;
    end(&mut log, marker(4, last_ms)).unwrap();
    log.log().close().unwrap();
    log.options.now_ms = log.now_ms;
    log.crash(0);
    assert_eq!(log.log().log_end_offset(), 2);
    log.log().close().unwrap();
    let bytes = log.file(&format!("{:020}.snapshot", 2)).unwrap();
    let known: Vec<_> = Snapshot::read(&bytes)
        .unwrap()
        .iter()
        .map(|it| (it.producer_id, it.coordinator_epoch, it.last_timestamp))
        .collect();
    assert_eq!(known, [(7, 4, last_ms)]);
}

#[test]
fn epochs_come_from_the_batches_of_a_segment_that_is_recovered() {
    // spec: behaviours LS-037
    let mut log = TestLog::new();
    log.log().truncate_fully_and_start_at(104, None, NOW_MS).unwrap();
    for (offset, epoch) in [(104, 0), (106, 1), (108, 1), (110, 2)] {
        log.follow(&records(2).at(offset).epoch(epoch));
    }
    let path = Path::new(DIR).join("leader-epoch-checkpoint");
    log.disk.put(&path, b"0\n0\n".to_vec(), None).unwrap();
    log.crash(0);
    assert_eq!(log.epochs(), [(0, 104), (1, 106), (2, 110)]);
}

#[test]
fn epochs_come_again_with_their_batches() {
    // spec: behaviours LD-031
    let mut log = TestLog::new();
    for (offset, epoch) in [(0, 1), (1, 2), (2, 2), (3, 3)] {
        log.follow(&records(1).at(offset).epoch(epoch));
    }
    assert_eq!(log.epochs(), [(1, 0), (2, 1), (3, 3)]);
    log.log().close().unwrap();
    let dir = std::path::Path::new(siltstone_tests::live::DIR);
    let file = dir.join("leader-epoch-checkpoint");
    log.disk.put(&file, b"0\n2\n1 0\n2 1\n".to_vec(), None).unwrap();
    log.crash(0);
    assert_eq!(log.epochs(), [(1, 0), (2, 1), (3, 3)]);
}

/// A record and a new segment, so many times.
fn lead_and_roll(log: &mut TestLog, times: usize) {
    for _ in 0..times {
        log.lead(&records(1));
        log.log().roll(NOW_MS).unwrap();
    }
}

/// A log of so many segments whose second one is damaged and that starts at 4, loaded again.
fn damaged_before_its_start(segments: usize) -> TestLog {
    let mut log = TestLog::new();
    lead_and_roll(&mut log, segments);
    log.log().close().unwrap();
    let file = Path::new(DIR).join(format!("{:020}.log", 1));
    log.disk.put(&file, b"not a segment".to_vec(), None).unwrap();
    log.options.log_start_offset = 4;
    log.crash(0);
    assert_eq!((log.bases(), log.log().log_end_offset()), (vec![4], 4));
    log
}

#[test]
fn a_log_that_is_damaged_before_its_start_begins_anew() {
    // spec: behaviours LD-036, LD-037
    let mut log = damaged_before_its_start(9);
    let early: Vec<i64> = log.snapshots().into_iter().filter(|offset| *offset <= 4).collect();
    assert_eq!(early, [0_i64; 0]);
    // Nor are they known: nothing is left for the deletion of old ones to ask for.
    log.replicate();
    log.log().delete_old_segments(NOW_MS).unwrap();
    assert_eq!((log.bases(), log.log().log_end_offset()), (vec![4], 4));
    assert!(!log.files().iter().any(|file| file.contains(".snapshot.deleted")));
    lead_and_roll(&mut log, 5);
    log.log().delete_due_files(NOW_MS + 60_001).unwrap();
    assert_eq!(log.log().log_end_offset(), 9);
    assert_eq!(log.snapshots(), [5, 6, 7, 8, 9]);
    assert!(!log.files().iter().any(|file| file.ends_with(".deleted")));
}

#[test]
fn aborted_transactions_come_again_with_their_batches() {
    // spec: behaviours LD-032, LD-033
    for only_last in [false, true] {
        let mut log = TestLog::with(|config| config.segment_bytes = 640);
        crate::unified_log::script_t(|_, bytes, _| drop(log.try_follow(&bytes).map(|_| ())));
        log.log().close().unwrap();
        let last = *log.bases().last().unwrap();
        assert!(log.bases().len() > 3);
        remove(&log, |file| {
            let is_index = file.ends_with(".index") || file.ends_with(".txnindex");
            is_index && (!only_last || file.starts_with(&format!("{last:020}")))
        });
        log.crash(if only_last { last } else { 0 });
        let aborted = log.log().aborted_transactions(0, i64::MAX).unwrap();
        let aborted: Vec<_> = aborted
            .iter()
            .map(|t| (t.producer_id, t.first_offset, t.last_offset, t.last_stable_offset))
            .collect();
        assert_eq!(aborted, [(1, 0, 29, 8), (2, 8, 74, 36)], "only the last: {only_last}");
    }
}

#[test]
fn a_log_that_begins_anew_has_all_of_its_files() {
    // spec: behaviours LD-035
    let log = damaged_before_its_start(5);
    assert_eq!(log.log().log_start_offset(), 4);
    let files = log.files();
    for suffix in ["log", "index", "timeindex"] {
        let name = format!("{:020}.{suffix}", 4);
        assert!(files.contains(&name), "{name} in {files:?}");
    }
}

/// A log of three segments, the second of which reaches too far for its indexes, and the two parts
/// that it is to be split into: base offset and bytes.
fn overflowed() -> (LogBuilder, [(i64, Vec<u8>); 2]) {
    let far = i64::from(i32::MAX);
    let log = LogBuilder::new().batch(3).roll().batch(2).skip(far).batch(2).roll().batch(1);
    let bytes = log.files()[&log_name(3)].clone();
    let first = Batches::new(&bytes).next().unwrap().unwrap().bytes.len();
    let parts = [(3, bytes[..first].to_vec()), (far + 5, bytes[first..].to_vec())];
    (log, parts)
}

/// Opens what is there after an unclean stop: no record is missing, and there is a segment more.
fn assert_split(disk: &SimDisk, label: &str) {
    let options = OpenOptions { clean_shutdown: false, now_ms: NOW_MS, ..OpenOptions::default() };
    let log = TestLog::on(disk.clone(), LogConfig::default(), options);
    let far = i64::from(i32::MAX);
    assert_eq!(log.bases(), [0, 3, far + 5, far + 7], "{label}");
    let mut bases = Vec::new();
    let mut offset = 0;
    while offset < log.log().log_end_offset() {
        let fetched = log.read(offset);
        let batch = Batches::new(&fetched.bytes).next().unwrap().unwrap();
        bases.push(batch.header.base_offset);
        offset = batch.header.next_offset();
    }
    assert_eq!(bases, [0, 3, far + 5, far + 7], "{label}");
}

#[test]
fn a_segment_that_reaches_too_far_is_split_whatever_a_crash_left_of_the_split() {
    // spec: behaviours LD-024, LD-025, LD-027, LD-028, LD-029, UL-109
    let (log, parts) = overflowed();
    let dir = Path::new(DIR);
    let file = |base: i64, suffix: &str| dir.join(format!("{base:020}.log{suffix}"));
    let original = file(3, "");
    let disk = || {
        let disk = SimDisk::new();
        log.put(&disk, dir);
        disk
    };
    assert_split(&disk(), "nothing was split yet");

    let left = disk();
    for (base, bytes) in &parts {
        left.put(&file(*base, ".cleaned"), bytes.clone(), None).unwrap();
    }
    assert_split(&left, "no part is complete");

    let swapped = || {
        let left = disk();
        for (base, bytes) in &parts {
            left.put(&file(*base, ".swap"), bytes.clone(), None).unwrap();
        }
        left
    };
    let left = swapped();
    left.open(&original, OpenMode::ReadWrite).unwrap().set_size(0).unwrap();
    assert_split(&left, "all parts are complete, and the segment is empty");
    let left = swapped();
    left.remove_file(&original).unwrap();
    assert_split(&left, "all parts are complete, and the segment is gone");
    let left = swapped();
    left.rename(&file(3, ".swap"), &original).unwrap();
    assert_split(&left, "only the last part has not its name");
}
