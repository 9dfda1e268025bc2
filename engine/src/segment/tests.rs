//! What a segment does that is written to, apart from the log that it is a part of.

use std::path::Path;
use std::sync::Arc;

use super::active::RollParams;
use super::{ActiveSegment, FileRole, Folder, LogSegment, OpenFiles, SegmentSettings};
use crate::error::Kind;
use crate::io::{OpenMode, SimDisk};
use crate::record::BatchHeader;
use crate::record::builder::{BatchBuilder, BatchOptions, LegacyBuilder};
use crate::record::codec::{Codec, Compressor};
use crate::record::validate::{BatchView, Batches};

const NOW_MS: i64 = 1_700_000_000_000;

const SETTINGS: SegmentSettings = SegmentSettings {
    segment_bytes: 2_147_483_647,
    segment_ms: 300_000,
    segment_jitter_ms: 0,
    index_bytes: 1000,
    index_interval_bytes: 10,
    preallocate: false,
};

fn folder() -> Folder {
    let disk = SimDisk::new();
    disk.put_dir(Path::new("/orders-0"), None).unwrap();
    Folder::new(Arc::new(disk), Path::new("/orders-0"), OpenFiles::new(10))
}

fn create(base_offset: i64) -> (Folder, ActiveSegment) {
    let folder = folder();
    let active = ActiveSegment::create(&folder, base_offset, &SETTINGS, NOW_MS).unwrap();
    (folder, active)
}

/// The segment closed as a clean stop does, and opened again.
fn reopen(folder: &Folder, mut active: ActiveSegment) -> ActiveSegment {
    active.touch_indexes(folder, &SETTINGS).unwrap();
    active.finish_files(folder).unwrap();
    let segment = LogSegment::new(active.base_offset(), active.size_bytes());
    active.close();
    ActiveSegment::open(folder, &Arc::new(segment), &SETTINGS, NOW_MS).unwrap()
}

fn append(folder: &Folder, active: &mut ActiveSegment, bytes: &[u8]) {
    let batches: Vec<BatchView<'_>> = Batches::new(bytes).map(|batch| batch.unwrap()).collect();
    let append = active.prepare(folder, &SETTINGS, &batches).unwrap();
    active.write(folder, &[bytes]).unwrap();
    active.commit(folder, &append);
}

/// Messages of magic 1 from an offset on.
fn messages(offset: i64, timestamp: i64, count: i64) -> Vec<u8> {
    let mut builder = LegacyBuilder::new(1, Codec::None.into(), None, offset).unwrap();
    for offset in offset..offset + count {
        builder.append(offset, timestamp, None, Some(b"hello")).unwrap();
    }
    let mut bytes = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
    bytes
}

/// A batch of magic 2 with a record at each offset.
fn batch(base_offset: i64, count: i64) -> Vec<u8> {
    let options = BatchOptions { base_offset, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options).unwrap();
    (0..count).for_each(|_| builder.append(1000, None, Some(b"v")).unwrap());
    let mut bytes = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
    bytes
}

/// Why a segment does not take a batch that ends at an offset.
fn refusal(folder: &Folder, active: &ActiveSegment, last_offset: i64) -> Kind {
    let bytes = batch(0, 1);
    let header = BatchHeader::parse(&bytes).unwrap();
    let header = BatchHeader { base_offset: last_offset, ..header };
    let batches = [BatchView { header, bytes: &bytes }];
    active.prepare(folder, &SETTINGS, &batches).unwrap_err().kind()
}

#[test]
fn offsets_that_the_indexes_cannot_hold_are_refused() {
    // spec: behaviours LS-001, LS-002
    for (base_offset, last_offset) in [
        (0, -2_147_483_648),
        (0, 2_147_483_648),
        (1, 0),
        (100, 10),
        (2_147_483_648, 0),
        (-2_147_483_648, 0),
        (2_147_483_648, 4_294_967_296),
    ] {
        let (folder, active) = create(base_offset);
        assert_eq!(refusal(&folder, &active, last_offset), Kind::OutOfRange);
        assert_eq!(active.size_bytes(), 0, "{base_offset}");
        let log = folder.storage().metadata(&folder.file(base_offset, FileRole::Log)).unwrap();
        assert_eq!(log.size_bytes, 0);
    }
}

#[test]
fn a_log_has_no_more_bytes_than_a_position_can_tell() {
    // spec: behaviours FR-001
    let (folder, active) = create(0);
    active.close();
    let full = Arc::new(LogSegment::new(0, 2_147_483_647));
    let active = ActiveSegment::open(&folder, &full, &SETTINGS, NOW_MS).unwrap();
    assert_eq!(refusal(&folder, &active, 5), Kind::InvalidArgument);
}

#[test]
fn an_offset_behind_the_last_batch_is_not_in_the_segment() {
    // spec: behaviours LS-003, LS-006, LS-010, FR-012, FR-017
    let (folder, active) = create(40);
    assert_eq!(active.segment().translate(&folder, 40).unwrap(), None);
    for (parts, found, missing) in [
        (vec![messages(50, 500, 2)], 51, vec![52, 53]),
        (vec![batch(0, 1), batch(1, 1), batch(2, 1), batch(50, 1)], 50, vec![51]),
        (vec![batch(5, 1), batch(8, 2)], 9, vec![10]),
    ] {
        let (folder, mut active) = create(0);
        parts.iter().for_each(|bytes| append(&folder, &mut active, bytes));
        let look = |segment: &Arc<LogSegment>| {
            let found = segment.translate(&folder, found).unwrap().unwrap();
            let missing = missing.iter().map(|offset| segment.translate(&folder, *offset).unwrap());
            (found.last_offset, missing.flatten().count())
        };
        // What the writer remembers, and what the files say.
        assert_eq!(look(active.segment()), (found, 0));
        active.finish_files(&folder).unwrap();
        assert_eq!(look(&active.seal()), (found, 0));
    }
}

#[test]
fn a_batch_is_found_with_its_place_and_its_size() {
    // spec: behaviours FR-010
    let (folder, mut active) = create(0);
    let batches = [batch(0, 1), batch(1, 3), batch(4, 2), batch(50, 1)];
    batches.iter().for_each(|bytes| append(&folder, &mut active, bytes));
    active.finish_files(&folder).unwrap();
    let sealed = active.seal();
    let mut position = 0;
    for (bytes, offset) in batches.iter().zip([0, 1, 4, 50]) {
        let found = sealed.translate(&folder, offset).unwrap().unwrap();
        let size = u64::try_from(bytes.len()).unwrap();
        assert_eq!((found.base_offset, found.position, found.size_bytes), (offset, position, size));
        // A walk that begins at the batch itself finds it, too.
        let mut from_there = None;
        let mut see = |header: &BatchHeader, at, _: &super::SegmentHandles| {
            from_there = Some((header.last_offset() >= offset, at, u64::from(header.size_bytes)));
            Ok(std::ops::ControlFlow::Break(()))
        };
        sealed.for_each_header(&folder, position, &mut see).unwrap();
        assert_eq!(from_there, Some((true, position, size)));
        position += size;
    }
}

#[test]
fn the_clock_of_a_segment_that_was_emptied_starts_anew() {
    // spec: behaviours LS-018, LS-019, LS-021
    let (folder, active) = create(0);
    let mut active = reopen(&folder, active);
    let now_ms = NOW_MS + 500;
    active.truncate_to(&folder, &SETTINGS, 57, now_ms).unwrap();
    active.cut_files(&folder, &SETTINGS).unwrap();
    assert_eq!(active.time_waited(&folder, now_ms, -1).unwrap(), 0);
    assert_eq!(active.with_tails(|tails| tails.is_full()), Some(false));
    let roll = |active: &mut ActiveSegment, last_offset, now_ms| {
        let params = RollParams { max_timestamp_ms: -1, last_offset, size_bytes: 1024, now_ms };
        active.should_roll(&folder, &SETTINGS, &params).unwrap()
    };
    assert!(!roll(&mut active, 100, now_ms));
    assert!(roll(&mut active, 2_147_483_647 + 200, now_ms + 300_001));
}

#[test]
fn a_segment_without_timestamps_is_cut_and_filled_again() {
    // spec: behaviours LS-025
    let (folder, mut active) = create(40);
    append(&folder, &mut active, &messages(40, -1, 2));
    let now_ms = NOW_MS + 500;
    assert_eq!(active.time_waited(&folder, now_ms, -1).unwrap(), 500);
    active.truncate_to(&folder, &SETTINGS, 0, now_ms).unwrap();
    active.cut_files(&folder, &SETTINGS).unwrap();
    assert_eq!(active.time_waited(&folder, now_ms, -1).unwrap(), 0);
    assert_eq!(active.with_tails(|tails| tails.is_full()), Some(false));
    assert_eq!(active.segment().translate(&folder, 0).unwrap(), None);
    append(&folder, &mut active, &messages(40, -1, 2));
    assert_eq!(active.segment().translate(&folder, 41).unwrap().unwrap().last_offset, 41);
    let log = folder.storage().read(&folder.file(40, FileRole::Log), 1000).unwrap();
    assert_eq!(log, messages(40, -1, 2));
}

#[test]
fn the_first_batch_tells_its_timestamp() {
    // spec: behaviours LS-045. Kafka's number for "none" is its largest.
    let (folder, mut active) = create(1);
    assert_eq!(active.segment().first_batch_timestamp(&folder).unwrap(), None);
    append(&folder, &mut active, &batch(1, 1));
    assert_eq!(active.segment().first_batch_timestamp(&folder).unwrap(), Some(1000));
}

/// A sealed segment with entries in both indexes.
fn sealed(base_offset: i64) -> (Folder, Arc<LogSegment>) {
    let (folder, mut active) = create(base_offset);
    active.touch_indexes(&folder, &SETTINGS).unwrap();
    (0..5).for_each(|number| {
        let time = NOW_MS + number;
        append(&folder, &mut active, &messages(base_offset + number, time, 1));
    });
    active.finish_files(&folder).unwrap();
    (folder, active.seal())
}

fn index_sizes(folder: &Folder, base_offset: i64) -> [u64; 2] {
    [FileRole::OffsetIndex, FileRole::TimeIndex]
        .map(|role| folder.storage().metadata(&folder.file(base_offset, role)).unwrap().size_bytes)
}

#[test]
fn an_index_entry_of_an_old_broker_is_begun_at() {
    // Of batches that were appended together it has the last offset of all, at the first's place:
    // each look-up by it walked the segment from its front.
    let (folder, segment) = sealed(0);
    let places: Vec<u64> = (0..5)
        .map(|offset| segment.translate(&folder, offset).unwrap().unwrap().position)
        .collect();
    let disk = folder.storage();
    let reopen = |entry: [i32; 2], bytes: &[u8]| {
        let folder = self::folder();
        let index: Vec<u8> = entry.iter().flat_map(|field| field.to_be_bytes()).collect();
        for (role, bytes) in [(FileRole::Log, bytes), (FileRole::OffsetIndex, &index)] {
            let path = folder.file(0, role);
            let file = folder.storage().open(&path, OpenMode::CreateNew).unwrap();
            file.write_at(bytes, 0).unwrap();
        }
        (folder, Arc::new(LogSegment::new(0, segment.size_bytes())))
    };
    let whole = disk.read(&folder.file(0, FileRole::Log), 1 << 20).unwrap();
    let mut behind = whole.clone();
    behind[..usize::try_from(places[1]).unwrap()].fill(0);
    let entry = |offset, slot: usize| [offset, i32::try_from(places[slot]).unwrap()];
    let (folder, segment) = reopen(entry(3, 1), &behind);
    for (offset, place) in [(3, places[3]), (4, places[4])] {
        let found = segment.translate(&folder, offset).unwrap().unwrap();
        assert_eq!((found.last_offset, found.position), (offset, place));
    }
    segment.translate(&folder, 2).unwrap_err();
    // One that leads behind its offset, or to no batch, is not gone by.
    for lie in [entry(1, 3), [2, entry(0, 1)[1] + 1], entry(5, 2)] {
        let (folder, segment) = reopen(lie, &whole);
        for offset in 0..5 {
            let found = segment.translate(&folder, offset).unwrap().unwrap();
            assert_eq!(found.last_offset, offset, "{lie:?}");
        }
        assert_eq!(segment.translate(&folder, 5).unwrap(), None, "{lie:?}");
    }
}

#[test]
fn a_sealed_segment_that_cannot_be_written_to_again_is_sealed_as_before() {
    // Where its indexes could not be lengthened it stayed one that is written to: no slice of it
    // could be mapped any more, and half of its indexes had zeros behind them.
    let mut failures = 0;
    for number in 0.. {
        let disk = SimDisk::new();
        disk.put_dir(Path::new("/orders-0"), None).unwrap();
        let (other, segment) = sealed(0);
        let folder = Folder::new(Arc::new(disk.clone()), Path::new("/orders-0"), OpenFiles::new(9));
        for role in [FileRole::Log, FileRole::OffsetIndex, FileRole::TimeIndex] {
            let bytes = other.storage().read(&other.file(0, role), 1 << 20).unwrap();
            disk.put(&folder.file(0, role), bytes, None).unwrap();
        }
        let segment = Arc::new(LogSegment::new(0, segment.size_bytes()));
        let sizes = index_sizes(&folder, 0);
        disk.fail_at(disk.operation_count() + number, 28);
        if let Ok(active) = ActiveSegment::open(&folder, &segment, &SETTINGS, NOW_MS) {
            if disk.operation_count() <= number {
                break;
            }
            drop(active);
            continue;
        }
        failures += 1;
        assert!(!segment.is_live() && segment.pin(), "failure {number}");
        segment.unpin();
        assert_eq!(index_sizes(&folder, 0), sizes, "failure {number}");
        assert_eq!(segment.max_timestamp(&folder).unwrap(), (NOW_MS + 4, 4), "failure {number}");
        assert_eq!(segment.translate(&folder, 3).unwrap().unwrap().last_offset, 3);
        let active = ActiveSegment::open(&folder, &segment, &SETTINGS, NOW_MS).unwrap();
        assert_eq!(index_sizes(&folder, 0), [1000, 996], "failure {number}");
        drop(active);
    }
    assert!(failures > 4, "{failures} failures");
}

#[test]
fn a_flush_that_is_late_writes_nothing_to_the_files_of_another_segment() {
    // A flush that had found a segment before it went opened the indexes by their names, and wrote
    // its entries to those of the segment that had taken its place.
    let (folder, mut active) = create(0);
    active.touch_indexes(&folder, &SETTINGS).unwrap();
    (0..5).for_each(|offset| append(&folder, &mut active, &batch(offset, 1)));
    let late = Arc::clone(active.segment());
    late.retire();
    let next = ActiveSegment::create(&folder, 0, &SETTINGS, NOW_MS).unwrap();
    let flushed = ActiveSegment::write_out_indexes(&late, &folder, &SETTINGS);
    assert_eq!(flushed.unwrap_err().kind(), Kind::NotFound);
    next.touch_indexes(&folder, &SETTINGS).unwrap();
    let flushed = ActiveSegment::write_out_indexes(&late, &folder, &SETTINGS);
    assert_eq!(flushed.unwrap_err().kind(), Kind::NotFound);
    let index = folder.storage().read(&folder.file(0, FileRole::OffsetIndex), 1 << 20).unwrap();
    assert!(index.iter().all(|byte| *byte == 0), "{index:?}");
    // One that had no indexes makes none.
    let (folder, active) = create(0);
    active.segment().retire();
    let flushed = ActiveSegment::write_out_indexes(active.segment(), &folder, &SETTINGS);
    assert_eq!(flushed.unwrap_err().kind(), Kind::NotFound);
    assert_eq!(folder.storage().list(Path::new("/orders-0")).unwrap().len(), 1);
}

#[test]
fn files_that_come_when_others_were_let_go_of_are_let_go_of_in_their_turn() {
    // A segment whose files were let go of while it was made ready to be written to was not among
    // those that are looked at any more: its log stayed open for good.
    let disk = SimDisk::new();
    disk.put_dir(Path::new("/orders-0"), None).unwrap();
    let open_files = OpenFiles::new(1);
    let folder = Folder::new(Arc::new(disk), Path::new("/orders-0"), Arc::clone(&open_files));
    let made = |base_offset| {
        let mut active = ActiveSegment::create(&folder, base_offset, &SETTINGS, NOW_MS).unwrap();
        active.finish_files(&folder).unwrap();
        let segment = active.seal();
        segment.close();
        segment
    };
    let (one, other) = (made(0), made(10));
    let handles = one.handles(&folder).unwrap();
    other.handles(&folder).unwrap();
    assert!(!one.is_open(), "it was opened first");
    drop(one.set_handles(&folder, Arc::new(handles.without_indexes())));
    drop(handles);
    assert_eq!(open_files.count(), 1);
}
