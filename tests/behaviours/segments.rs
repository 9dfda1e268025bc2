//! Sections LS and FR: one segment and its log file, as a log shows them. The log begins at 40, and
//! holds messages of magic 1 whose timestamps are ten times their offsets.

use std::path::Path;
use std::sync::Arc;

use siltstone::Kind;
use siltstone::index::{OffsetEntries, TimeEntries, TxnEntries};
use siltstone::io::Disk;
use siltstone::log::{FetchOptions, Isolation, Log, LogConfig, OpenOptions};
use siltstone::record::builder::LegacyBuilder;
use siltstone::record::codec::{Codec, Compressor};
use siltstone_tests::live::{DIR, Marker, NOW_MS, TestLog, base_offsets, records};

/// Bytes of one message.
const ONE: u32 = 39;

fn message(offset: i64) -> Vec<u8> {
    let mut builder = LegacyBuilder::new(1, Codec::None.into(), None, offset).unwrap();
    builder.append(offset, offset * 10, None, Some(b"hello")).unwrap();
    let mut bytes = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
    assert_eq!(bytes.len(), usize::try_from(ONE).unwrap());
    bytes
}

fn log_at(base: i64, interval: u32) -> TestLog {
    let log = TestLog::with(|config| {
        config.index_interval_bytes = interval;
        config.segment_index_bytes = 1000;
        config.segment_ms = i64::MAX;
    });
    log.log().truncate_fully_and_start_at(base, None, NOW_MS).unwrap();
    log
}

/// Offsets from `first` on, one append each.
fn filled(base: i64, first: i64, count: i64, interval: u32) -> TestLog {
    let log = log_at(base, interval);
    for offset in first..first + count {
        log.try_follow(&message(offset)).unwrap();
    }
    log
}

/// Offsets and positions, timestamps and offsets.
type Entries = (Vec<(i64, i32)>, Vec<(i64, i64)>);

/// The entries of the indexes as the files have them, without the zeros behind.
fn entries(log: &TestLog, base: i64) -> Entries {
    log.log().flush(true, NOW_MS).unwrap();
    let file = |suffix: &str| log.file(&format!("{base:020}.{suffix}")).unwrap();
    let (offsets, times) = (file("index"), file("timeindex"));
    let offsets = OffsetEntries::new(&offsets, base);
    let times = TimeEntries::new(&times, base);
    (
        offsets.iter().map(|e| (e.offset, e.position)).filter(|e| *e != (base, 0)).collect(),
        times.iter().map(|e| (e.timestamp_ms, e.offset)).filter(|e| *e != (0, base)).collect(),
    )
}

fn place(log: &TestLog, offset: i64) -> (i64, u64) {
    let place = log.log().place_of(offset).unwrap();
    (place.offset, place.position)
}

#[test]
fn a_read_finds_the_batch_that_holds_or_follows_the_offset() {
    // spec: behaviours LS-005, LS-007, FR-013, FR-014, FR-016
    let log = log_at(40, 10);
    assert!(log.read(40).bytes.is_empty());
    log.follow(&records(4).at(50).epoch(0));
    let fetched = log.read(52);
    assert_eq!((fetched.place.offset, base_offsets(&fetched.bytes)), (50, vec![50]));
    let log = log_at(40, 10);
    for first in [50, 60] {
        for offset in first..first + 2 {
            log.try_follow(&message(offset)).unwrap();
        }
    }
    assert_eq!(place(&log, 55), (60, u64::from(2 * ONE)));
    let log = log_at(3, 10);
    log.follow(&records(3).at(3).epoch(0));
    assert_eq!(place(&log, 5), (3, 0));
    log.follow(&records(6).at(15).epoch(0));
    assert_eq!(place(&log, 13).0, 15);
}

#[test]
fn batches_are_found_at_their_positions() {
    // spec: behaviours FR-009, FR-010
    let log = log_at(0, 4096);
    let offsets: Vec<i64> = [0, 1, 2].into_iter().chain(50..67).collect();
    for (number, offset) in offsets.iter().enumerate() {
        log.try_follow(&message(*offset)).unwrap();
        let size = log.file("00000000000000000000.log").unwrap().len();
        assert_eq!(size, (number + 1) * usize::try_from(ONE).unwrap());
        assert_eq!(u64::try_from(size).unwrap(), log.log().size_bytes());
    }
    assert_eq!((place(&log, 0), place(&log, 1)), ((0, 0), (1, u64::from(ONE))));
    assert_eq!(place(&log, 3), (50, u64::from(3 * ONE)));
}

#[test]
fn a_limit_cuts_the_first_batch_unless_one_is_wanted_whole() {
    // spec: behaviours LS-011, LS-013
    let log = filled(40, 50, 2, 10);
    let locate = |max_bytes, min_one_message| {
        let isolation = Isolation::LogEnd;
        log.log().locate(50, &FetchOptions { max_bytes, isolation, min_one_message }).unwrap()
    };
    let fetched = locate(1, true);
    assert_eq!(fetched.range.unwrap().size_bytes(), u64::from(ONE));
    assert!(!fetched.first_entry_incomplete);
    let fetched = locate(0, false);
    assert!(fetched.range.is_none());
    assert_eq!((fetched.place.offset, fetched.place.position), (50, 0));
    // spec: segments 3.5. Nothing is no part of a batch.
    assert!(!fetched.first_entry_incomplete);
    assert!(locate(1, false).first_entry_incomplete);
}

#[test]
fn nothing_is_read_at_the_end_of_what_may_be_seen() {
    // spec: behaviours LS-009. A bound at the very offset lets nothing through.
    let log = filled(40, 50, 2, 10);
    log.log().update_high_watermark(51).unwrap();
    let options =
        FetchOptions { max_bytes: 1, isolation: Isolation::HighWatermark, min_one_message: false };
    let fetched = log.log().locate(51, &options).unwrap();
    assert!(fetched.range.is_none());
    let place = fetched.place;
    assert_eq!((place.offset, place.segment_base_offset, place.position), (51, 40, 39));
}

/// Five batches of different sizes, and their bytes.
fn five_batches() -> (TestLog, Vec<Vec<u8>>) {
    let log = log_at(0, 4096);
    let made = |offset: i64| {
        let size = usize::try_from(offset * 10 + 1).unwrap();
        records(1).at(offset).epoch(0).value_bytes(size).build()
    };
    let batches: Vec<Vec<u8>> = (0..5).map(made).collect();
    for batch in &batches {
        log.try_follow(batch).unwrap();
    }
    (log, batches)
}

fn range(log: &TestLog, offset: i64, max_bytes: u32) -> siltstone::log::FileRange {
    let options = FetchOptions { max_bytes, isolation: Isolation::LogEnd, min_one_message: false };
    log.log().locate(offset, &options).unwrap().range.unwrap()
}

#[test]
fn a_range_of_a_file_is_a_part_of_it() {
    // spec: behaviours FR-004, FR-005, FR-006
    let (log, batches) = five_batches();
    let from_third = range(&log, 3, u32::MAX);
    let last_two = [&batches[3][..], &batches[4]].concat();
    assert_eq!(from_third.position() + from_third.size_bytes(), log.log().size_bytes());
    assert_eq!(from_third.read().unwrap(), last_two);
    let behind = from_third.position() + u64::try_from(batches[3].len()).unwrap();
    let mut slice = vec![0; batches[4].len() + 100];
    let read = from_third.file().read_at(&mut slice, behind).unwrap();
    slice.truncate(read);
    assert_eq!(base_offsets(&slice), [4]);
    let short = u32::try_from(batches[3].len()).unwrap() - 1;
    let cut = range(&log, 3, short).read().unwrap();
    assert_eq!((cut.len(), base_offsets(&cut)), (batches[3].len() - 1, vec![]));
}

#[test]
fn reading_does_not_move_where_the_next_batch_goes() {
    // spec: behaviours FR-008
    let (log, mut batches) = five_batches();
    assert_eq!(log.headers().len(), 5);
    assert_eq!(log.log().size_bytes(), u64::try_from(batches.concat().len()).unwrap());
    batches.push(records(1).at(5).epoch(0).build());
    log.try_follow(&batches[5]).unwrap();
    assert_eq!(log.file(&format!("{:020}.log", 0)).unwrap(), batches.concat());
}

#[test]
fn a_file_that_is_too_large_is_no_log() {
    // spec: behaviours FR-002
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("orders-0");
    std::fs::create_dir(&path).unwrap();
    let file = std::fs::File::create(path.join(format!("{:020}.log", 0))).unwrap();
    let open = |clean_shutdown| {
        let options = OpenOptions { now_ms: NOW_MS, clean_shutdown, ..OpenOptions::default() };
        Log::open(Arc::new(Disk::new()), &path, LogConfig::default(), &options)
    };
    for clean_shutdown in [true, false] {
        // No byte of it is on the disk.
        file.set_len(2_147_483_652).unwrap();
        let error = open(clean_shutdown).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(error.to_string().contains("a log of 2147483652 bytes"), "{error}");
        assert_eq!(file.metadata().unwrap().len(), 2_147_483_652, "it stays as it is");
    }
    file.set_len(0).unwrap();
    assert_eq!(open(false).unwrap().log_end_offset(), 0);
}

#[test]
fn an_offset_is_cut_off_again_and_again() {
    // spec: behaviours LS-015
    let log = log_at(40, 10);
    for offset in 40..70 {
        log.try_follow(&message(offset)).unwrap();
        log.try_follow(&message(offset + 1)).unwrap();
        assert_eq!(base_offsets(&log.read(offset).bytes), [offset, offset + 1]);
        log.log().truncate_to(offset + 1, NOW_MS).unwrap();
        assert_eq!(base_offsets(&log.read(offset).bytes), [offset]);
    }
}

#[test]
fn a_batch_that_is_cut_within_goes_whole() {
    // spec: behaviours LS-017
    let log = log_at(40, 10);
    log.follow(&records(4).at(50).epoch(0));
    log.log().truncate_to(52, NOW_MS).unwrap();
    assert_eq!(log.log().size_bytes(), 0);
}

#[test]
fn every_second_message_is_indexed_at_an_interval_of_almost_two() {
    // spec: behaviours LS-022, LS-023
    let log = filled(40, 40, 30, 2 * ONE - 1);
    assert_eq!(entries(&log, 40).1.len(), 14);
    log.log().truncate_to(41, NOW_MS).unwrap();
    assert_eq!(entries(&log, 40).1, []);
    assert_eq!(log.log().log_end_offset(), 41);
    let max = log.log().offset_for_timestamp(-3).unwrap().unwrap();
    assert_eq!(max.timestamp_ms, 400);
}

#[test]
fn times_lead_to_their_offsets() {
    // spec: behaviours LS-026, LS-027
    let log = filled(40, 40, 10, 2 * ONE - 1);
    let max = log.log().offset_for_timestamp(-3).unwrap().unwrap();
    assert_eq!((max.timestamp_ms, max.offset), (490, 49));
    let found = [420, 421, 430, 431]
        .map(|time| log.log().offset_for_timestamp(time).unwrap().unwrap().offset);
    assert_eq!(found, [42, 43, 43, 44]);
}

#[test]
fn the_next_offset_is_behind_the_last_message() {
    // spec: behaviours LS-029, LS-030
    let mut log = log_at(40, 10);
    log.reopen();
    assert_eq!(log.log().log_end_offset(), 40);
    let mut log = filled(40, 50, 3, 10);
    log.reopen();
    assert_eq!(log.log().log_end_offset(), 53);
}

#[test]
fn a_new_segment_has_no_index_until_one_is_needed() {
    // spec: behaviours LS-031
    let log = filled(40, 40, 1, 10);
    log.log().roll(NOW_MS).unwrap();
    let of_new: Vec<String> =
        log.files().into_iter().filter(|file| file.starts_with("00000000000000000041")).collect();
    assert_eq!(of_new, ["00000000000000000041.log", "00000000000000000041.snapshot"]);
}

/// Writes over a file of a closed log.
fn damage(log: &TestLog, name: &str, damage: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = log.file(name).unwrap();
    damage(&mut bytes);
    log.disk.put(&Path::new(DIR).join(name), bytes, None).unwrap();
}

#[test]
fn indexes_of_random_bytes_are_made_anew() {
    // spec: behaviours LS-033, LS-034
    for suffix in ["index", "timeindex"] {
        let mut log = filled(0, 0, 100, 10);
        log.log().close().unwrap();
        let size = log.file("00000000000000000000.log").unwrap().len();
        damage(&log, &format!("{:020}.{suffix}", 0), |bytes| {
            bytes.iter_mut().zip(0_usize..).for_each(|(byte, n)| {
                *byte = u8::try_from(n * 7919 % 251).unwrap();
            });
        });
        log.crash(0);
        assert_eq!(log.file("00000000000000000000.log").unwrap().len(), size);
        for offset in 0..100 {
            let fetched = log.try_read(offset, 1, Isolation::LogEnd).unwrap();
            assert_eq!(base_offsets(&fetched.bytes), [offset]);
            let at = |time| log.log().offset_for_timestamp(time).unwrap().map(|f| f.offset);
            assert_eq!(at(offset * 10), Some(offset));
            assert_eq!(at(offset * 10 + 1), (offset < 99).then_some(offset + 1));
        }
    }
}

#[test]
fn recovery_finds_the_aborted_transaction_without_any_state() {
    // spec: behaviours LS-035
    let mut log = log_at(100, 4096);
    log.follow(&records(2).at(100).epoch(0).txn(5, 0, 0));
    log.follow(&records(2).at(102).epoch(0).txn(10, 0, 0));
    log.follow(&records(2).at(104).epoch(0));
    for (offset, id, abort) in [(106, 10, true), (107, 5, false)] {
        let marker = Marker { offset, leader_epoch: 0, ..Marker::of(id, 0, abort) };
        log.try_follow(&marker.build()).unwrap();
    }
    log.log().close().unwrap();
    let storage: &dyn siltstone::io::Storage = &log.disk;
    for name in log.files().iter().filter(|name| name.contains("txnindex")) {
        storage.remove_file(&Path::new(DIR).join(name)).unwrap();
    }
    for name in log.files().iter().filter(|name| name.ends_with(".snapshot")) {
        storage.remove_file(&Path::new(DIR).join(name)).unwrap();
    }
    assert_eq!(log.snapshots(), [0_i64; 0]);
    log.crash(0);
    assert_eq!((log.log().log_end_offset(), log.snapshots().last()), (108, Some(&108)));
    let index = log.file(&format!("{:020}.txnindex", 100)).unwrap();
    let found: Vec<_> = TxnEntries::new(&index)
        .iter()
        .map(|e| (e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset))
        .collect();
    assert_eq!(found, [(10, 102, 106, 100)]);
}

#[test]
fn damage_in_a_message_cuts_the_log_before_it() {
    // spec: behaviours LS-038, LS-039
    for hit in 0..20 {
        for within in [0, 4, 8, 11, 12, 14] {
            let mut log = filled(0, 0, 20, 10);
            log.log().close().unwrap();
            let from = usize::try_from(hit * ONE + within).unwrap();
            damage(&log, "00000000000000000000.log", |bytes| {
                bytes[from..].iter_mut().for_each(|byte| *byte ^= 0xa5);
            });
            log.crash(0);
            let kept = i64::from(hit);
            assert_eq!(log.log().log_end_offset(), kept, "byte {within} of {hit}");
            assert_eq!(log.log().size_bytes(), u64::from(hit * ONE));
        }
    }
    let mut log = filled(0, 0, 20, 10);
    log.log().close().unwrap();
    damage(&log, "00000000000000000000.log", |bytes| bytes.extend([0; 5]));
    log.crash(0);
    assert_eq!(log.log().size_bytes(), u64::from(20 * ONE));
    let size = log.file("00000000000000000000.log").unwrap().len();
    assert_eq!(size, usize::try_from(20 * ONE).unwrap());
}

fn timed(offset: i64, time: i64) -> Vec<u8> {
    records(1).at(offset).epoch(0).times(&[time]).build()
}

#[test]
fn each_batch_of_an_append_may_have_an_entry() {
    // spec: behaviours LS-046, LS-047
    let offsets = |log: &TestLog| entries(log, 0).0.iter().map(|e| e.0).collect::<Vec<_>>();
    let log = log_at(0, 1);
    log.try_follow(&[timed(0, 0), timed(1, 1)].concat()).unwrap();
    log.try_follow(&timed(2, 2)).unwrap();
    assert_eq!((offsets(&log), entries(&log, 0).1), (vec![1, 2], vec![(1, 1), (2, 2)]));
    let log = log_at(0, 1);
    log.try_follow(&[timed(0, 1), timed(1, 0), timed(2, 2)].concat()).unwrap();
    assert_eq!((offsets(&log), entries(&log, 0).1), (vec![1, 2], vec![(1, 0), (2, 2)]));
}

#[test]
fn an_entry_comes_when_strictly_more_than_the_interval_lies_behind_the_last() {
    // spec: behaviours LS-049
    let log = log_at(0, 100);
    let mut counts = Vec::new();
    for offset in 0..4 {
        let batch = records(1).at(offset).epoch(0).value_bytes(32);
        assert_eq!(batch.build().len(), 100);
        log.follow(&batch);
        counts.push(entries(&log, 0).0.len());
    }
    assert_eq!(counts, [0, 0, 1, 1]);
}

#[test]
fn a_roll_ends_the_time_index_with_the_largest_timestamp_and_trims_the_files() {
    // spec: behaviours LS-053
    let log = filled(40, 40, 10, 3 * ONE);
    assert_ne!(entries(&log, 40).1.last(), Some(&(490, 49)));
    log.log().roll(NOW_MS).unwrap();
    let times = log.file(&format!("{:020}.timeindex", 40)).unwrap();
    let times = TimeEntries::new(&times, 40);
    assert_eq!((times.last().timestamp_ms, times.last().offset), (490, 49));
    assert!(times.count() < 5);
    let index = log.file(&format!("{:020}.index", 40)).unwrap();
    assert_eq!(OffsetEntries::new(&index, 40).count(), 2);
    let size = log.file(&format!("{:020}.log", 40)).unwrap().len();
    assert_eq!(size, usize::try_from(10 * ONE).unwrap());

    // A full index, of three slots, has kept the last one for this.
    let log = TestLog::with(|config| {
        config.index_interval_bytes = ONE;
        config.segment_index_bytes = 36;
    });
    log.log().truncate_fully_and_start_at(40, None, NOW_MS).unwrap();
    log.try_follow(&(40..46).flat_map(message).collect::<Vec<u8>>()).unwrap();
    assert_eq!(entries(&log, 40).1, [(420, 42), (440, 44)]);
    log.log().roll(NOW_MS).unwrap();
    assert_eq!(entries(&log, 40).1, [(420, 42), (440, 44), (450, 45)]);
}

#[test]
fn a_new_log_file_is_empty_and_a_missing_side_file_is_no_matter() {
    // spec: behaviours FR-020, LS-051
    let log = TestLog::new();
    assert_eq!(log.file("00000000000000000000.log").unwrap().len(), 0);
    assert_eq!(log.log().size_bytes(), 0);
    log.follow(&records(1).epoch(0));
    let storage: &dyn siltstone::io::Storage = &log.disk;
    let missing = Path::new(DIR).join("00000000000000000000.timeindex");
    storage.remove_file(&missing).unwrap();
    log.log().truncate_fully_and_start_at(7, None, NOW_MS).unwrap();
    log.log().delete_due_files(NOW_MS + 60_000).unwrap();
    let left: Vec<String> =
        log.files().into_iter().filter(|file| file.starts_with("00000000000000000000")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_timestamp_search_tells_the_leader_epoch() {
    // spec: behaviours FR-022
    let log = log_at(0, 4096);
    log.try_follow(&records(1).at(5).epoch(0).times(&[10]).build()).unwrap();
    log.try_follow(&records(1).at(6).epoch(1).times(&[11]).build()).unwrap();
    let find = |log: &TestLog, time| {
        let found = log.log().offset_for_timestamp(time).unwrap();
        found.map(|found| (found.timestamp_ms, found.offset, found.leader_epoch))
    };
    let wanted = [Some((10, 5, Some(0))), Some((10, 5, Some(0))), Some((11, 6, Some(1))), None];
    assert_eq!([9, 10, 11, 12].map(|time| find(&log, time)), wanted);
    let log = log_at(0, 4096);
    log.try_follow(&message(1)).unwrap();
    assert_eq!(find(&log, 10), Some((10, 1, None)));
    let mut builder = LegacyBuilder::new(0, Codec::None.into(), None, 2).unwrap();
    builder.append(2, -1, None, Some(b"v")).unwrap();
    let mut bytes = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
    let log = log_at(0, 4096);
    log.try_follow(&bytes).unwrap();
    assert_eq!(find(&log, 0), None, "magic 0 has no timestamps");
}
