#![allow(clippy::unwrap_used)]

use super::*;
use crate::io::SimDisk;

const PATH: &str = "/00000000000000000045.index";

fn path() -> &'static Path {
    Path::new(PATH)
}

fn options(max_size_bytes: u32) -> IndexOptions {
    IndexOptions { base_offset: 45, max_size_bytes, is_writable: true }
}

fn open(disk: &SimDisk, max_size_bytes: u32) -> IndexHandle<OffsetEntry> {
    IndexHandle::open(disk, path(), &options(max_size_bytes)).unwrap()
}

fn size(disk: &SimDisk) -> u64 {
    disk.metadata(path()).unwrap().size_bytes
}

fn at(offset: i64, position: i32) -> Option<OffsetEntry> {
    Some(OffsetEntry { offset, position })
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> Kind {
    result.unwrap_err().kind()
}

fn counters<E: HandleEntry>(index: &IndexHandle<E>) -> [i64; 6] {
    let it = index.counters();
    [
        &it.entry_count,
        &it.max_entries,
        &it.file_size_bytes,
        &it.last_offset,
        &it.last_timestamp_ms,
        &it.is_closed,
    ]
    .map(|counter| counter.load(Ordering::Relaxed))
}

#[test]
fn a_new_file_is_full_of_zeros_and_an_existing_one_of_entries() {
    // spec: indexes 1.2
    let disk = SimDisk::new();
    let index = open(&disk, 67);
    assert_eq!((size(&disk), index.lookup(1000)), (64, at(45, 0)));
    assert_eq!(counters(&index), [0, 8, 64, 45, -1, 0]);
    drop(index);
    let again = open(&disk, 67);
    assert_eq!(counters(&again), [8, 8, 64, 45, -1, 0]);
    assert_eq!(kind(again.append(50, 1)), Kind::Limit);
    let other = Path::new("/other");
    let missing = IndexOptions { is_writable: false, ..options(80) };
    assert_eq!(kind(IndexHandle::<OffsetEntry>::open(&disk, other, &missing)), Kind::NotFound);
    assert_eq!(
        kind(IndexHandle::<OffsetEntry>::open(&disk, other, &options(7))),
        Kind::InvalidArgument
    );
    assert_eq!(kind(disk.metadata(other)), Kind::NotFound);
}

#[test]
fn appended_entries_are_found_at_once_and_in_the_file_after_a_flush() {
    let disk = SimDisk::new();
    let index = open(&disk, 80);
    index.append(46, 7).unwrap();
    index.append(50, 900).unwrap();
    assert_eq!((index.lookup(49), index.lookup(50)), (at(46, 7), at(50, 900)));
    assert_eq!(index.fetch_upper_bound_offset(7, 10), Some(at(50, 900)));
    assert_eq!(kind(index.append(50, 901)), Kind::InvalidArgument);
    assert_eq!(kind(index.append(45 + (1 << 31), 901)), Kind::OutOfRange);
    assert!(disk.read(path(), 100).unwrap().iter().all(|byte| *byte == 0));
    index.flush(&disk, path()).unwrap();
    let bytes = disk.read(path(), 100).unwrap();
    assert_eq!(bytes.get(..16), Some(&[0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 5, 0, 0, 3, 132][..]));
    assert_eq!(bytes.len(), 80);
    assert!(index.trim(&disk, path()).unwrap());
    assert!(!index.trim(&disk, path()).unwrap());
    assert_eq!(counters(&index), [2, 2, 16, 50, -1, 0]);
    assert_eq!(kind(index.append(60, 1000)), Kind::Limit);
    assert!(index.resize(&disk, path(), 35).unwrap());
    assert_eq!((size(&disk), counters(&index)), (32, [2, 4, 32, 50, -1, 0]));
    assert_eq!(kind(index.resize(&disk, path(), 8)), Kind::InvalidArgument);
}

#[test]
fn a_file_that_was_cut_or_is_gone_gets_back_its_entries() {
    let disk = SimDisk::new();
    let index = open(&disk, 80);
    index.append(46, 7).unwrap();
    index.append(50, 900).unwrap();
    index.flush(&disk, path()).unwrap();
    disk.open(path(), OpenMode::ReadWrite).unwrap().set_size(3).unwrap();
    assert_eq!(index.lookup(60), at(50, 900));
    index.flush(&disk, path()).unwrap();
    assert_eq!(size(&disk), 16);
    disk.remove_file(path()).unwrap();
    assert_eq!(kind(index.flush(&disk, path())), Kind::NotFound);
    assert!(index.resize(&disk, path(), 40).unwrap());
    let again = open(&disk, 0);
    assert_eq!((size(&disk), again.entry(1).ok()), (40, at(50, 900)));
    index.truncate_to(0).unwrap();
    disk.remove_file(path()).unwrap();
    assert!(index.resize(&disk, path(), 0).unwrap());
    assert_eq!(size(&disk), 0);
}

#[test]
fn truncation_keeps_what_lies_below_and_leaves_the_file() {
    let disk = SimDisk::new();
    let index = open(&disk, 80);
    for offset in 46..50 {
        index.append(offset, 1).unwrap();
    }
    index.flush(&disk, path()).unwrap();
    index.truncate_to(48).unwrap();
    assert_eq!((size(&disk), counters(&index)), (80, [2, 10, 80, 47, -1, 0]));
    index.append(60, 5).unwrap();
    index.flush(&disk, path()).unwrap();
    let again = open(&disk, 80);
    // What was cut is written over, and the rest of it stays as Kafka leaves it.
    assert_eq!((again.entry(2).ok(), again.entry(3).ok()), (at(60, 5), at(49, 1)));
    assert_eq!(kind(index.entry(3)), Kind::OutOfRange);
}

#[test]
fn a_time_index_keeps_its_last_slot_and_tells_its_last_entry() {
    // spec: indexes 1.3, 3.2
    let (disk, path) = (SimDisk::new(), Path::new("/a.timeindex"));
    let index = IndexHandle::<TimeEntry>::open(&disk, path, &options(40)).unwrap();
    assert_eq!(counters(&index), [0, 3, 36, 45, -1, 0]);
    assert!(index.maybe_append(10, 50, false).unwrap());
    assert!(!index.maybe_append(10, 55, false).unwrap());
    assert!(index.maybe_append(20, 55, false).unwrap());
    assert_eq!(kind(index.maybe_append(30, 60, false)), Kind::Limit);
    assert!(index.maybe_append(30, 60, true).unwrap());
    assert_eq!(counters(&index), [3, 3, 36, 60, 30, 0]);
    assert_eq!(index.lookup(25), Some(TimeEntry { timestamp_ms: 20, offset: 55 }));
    index.truncate_to(52).unwrap();
    assert_eq!(counters(&index), [1, 3, 36, 50, 10, 0]);
    index.trim(&disk, path).unwrap();
    index.sanity_check().unwrap();
    let bytes = disk.read(path, 100).unwrap();
    assert_eq!(bytes, [0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 5]);
}

#[test]
fn a_check_finds_stray_bytes_and_offsets_below_the_base() {
    let disk = SimDisk::new();
    let file = disk.open(path(), OpenMode::CreateNew).unwrap();
    file.write_at(&[0, 0, 0, 1, 0, 0, 0, 0, 9], 0).unwrap();
    let index = open(&disk, 80);
    assert_eq!(
        (counters(&index)[..3].to_vec(), kind(index.sanity_check())),
        (vec![1, 1, 9], Kind::Corrupt)
    );
    file.set_size(0).unwrap();
    file.write_at(&[0xFF, 0, 0, 1, 0, 0, 0, 0], 0).unwrap();
    assert_eq!(kind(open(&disk, 80).sanity_check()), Kind::Corrupt);
}

#[test]
fn closed_and_read_only_handles_refuse_what_they_cannot_do() {
    let disk = SimDisk::new();
    let index = open(&disk, 80);
    index.append(46, 7).unwrap();
    index.trim(&disk, path()).unwrap();
    let options = IndexOptions { is_writable: false, ..options(80) };
    let reading = IndexHandle::<OffsetEntry>::open(&disk, path(), &options).unwrap();
    assert_eq!(reading.lookup(50), at(46, 7));
    for (index, refused) in [(&reading, Kind::Conflict), (&index, Kind::Closed)] {
        if refused == Kind::Closed {
            index.close();
            index.close();
        }
        assert_eq!(kind(index.append(70, 1)), refused);
        assert_eq!(kind(index.truncate_to(0)), refused);
        assert_eq!(kind(index.resize(&disk, path(), 800)), refused);
    }
    assert_eq!(kind(index.trim(&disk, path())), Kind::Closed);
    assert_eq!(kind(index.flush(&disk, path())), Kind::Closed);
    assert!(!reading.trim(&disk, path()).unwrap());
    reading.flush(&disk, path()).unwrap();
    assert_eq!((index.lookup(50), index.fetch_upper_bound_offset(0, 1)), (None, None));
    assert_eq!((kind(index.entry(0)), kind(index.sanity_check())), (Kind::Closed, Kind::Closed));
    assert_eq!(counters(&index).last(), Some(&1));
}

#[test]
fn readers_find_whole_entries_while_others_are_removed_and_added() {
    let (disk, path) = (SimDisk::new(), Path::new("/a.timeindex"));
    let options = IndexOptions { base_offset: 1000, max_size_bytes: 12_000, is_writable: true };
    let index = IndexHandle::<TimeEntry>::open(&disk, path, &options).unwrap();
    let fill = |round: i64, from: i64| {
        for slot in from..200 {
            // In each round other timestamps, which tell the offset.
            let relative = slot * 10 + round % 10;
            index.maybe_append(relative * 7, 1000 + relative, false).unwrap();
        }
    };
    fill(0, 0);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (index, is_done) = (&index, &is_done);
            scope.spawn(move || {
                let mut target = reader;
                while !is_done.load(Ordering::Relaxed) {
                    target = (target + 977) % 14_000;
                    let found = index.lookup(target).unwrap();
                    assert!(found.timestamp_ms <= target);
                    if found.timestamp_ms >= 0 {
                        assert_eq!(found.timestamp_ms, (found.offset - 1000) * 7);
                    }
                }
            });
        }
        for round in 1..2000 {
            let from = round * 37 % 200;
            index.truncate_to(1000 + from * 10).unwrap();
            fill(round, from);
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_close_waits_for_whoever_is_writing() {
    let disk = SimDisk::new();
    let index = open(&disk, 80);
    let writer = index.lock().unwrap();
    std::thread::scope(|scope| {
        let closing = scope.spawn(|| index.close());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!closing.is_finished());
        drop(writer);
        closing.join().unwrap();
    });
    assert_eq!(kind(index.append(46, 7)), Kind::Closed);
}
