#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::PathBuf;

use super::*;
use crate::index::AbortedTxn;
use crate::io::{OpenMode, SimDisk};
use crate::state::EpochEntry;
use crate::tier::faulty_target::{TargetFault, TargetOperation};
use crate::tier::{
    FaultyTarget, LocalTarget, ObjectBytes, RemotePartition, RemoteSegmentId, RemoteSegmentState,
    SegmentPart,
};

const PARTS: [SegmentPart; 3] = files::PARTS;

/// A disk with a log directory, and a store with segments.
struct Bench {
    disk: SimDisk,
    store: Arc<FaultyTarget>,
    layout: ObjectLayout,
}

/// The bytes of all three files of a segment of the bench.
const SEGMENT_BYTES: u64 = 3 * 8 + 3 * 12 + 34;

impl Bench {
    fn new() -> Self {
        let disk = SimDisk::new();
        disk.put_dir(Path::new("/data"), None).unwrap();
        let local = LocalTarget::new(Arc::new(SimDisk::new()), "/");
        let store = Arc::new(FaultyTarget::new(Arc::new(local)));
        Bench { disk, store, layout: ObjectLayout::default() }
    }

    fn open_with(&self, options: IndexCacheOptions, now_ms: i64) -> RemoteIndexCache {
        self.try_open(&self.disk, options, now_ms).unwrap()
    }

    fn try_open(
        &self,
        disk: &SimDisk,
        options: IndexCacheOptions,
        now_ms: i64,
    ) -> Result<RemoteIndexCache> {
        let (storage, store) = (Arc::new(disk.clone()), Arc::clone(&self.store));
        let (dir, layout) = (Path::new("/data"), self.layout.clone());
        RemoteIndexCache::open(storage, dir, store, layout, options, now_ms)
    }

    fn open(&self) -> RemoteIndexCache {
        self.open_with(IndexCacheOptions::default(), 0)
    }

    /// A cache that has room for so many segments.
    fn open_for(&self, count: u64) -> RemoteIndexCache {
        let limit_bytes = count * SEGMENT_BYTES;
        self.open_with(IndexCacheOptions { limit_bytes, ..IndexCacheOptions::default() }, 0)
    }

    /// Puts the side files of a segment into the store.
    fn segment(&self, number: u8) -> RemoteSegment {
        let topic_id = Uuid([1; 16]);
        let partition = RemotePartition { topic_id, topic: "orders".to_owned(), partition: 0 };
        let start_offset = i64::from(number) * 100;
        let segment = RemoteSegment {
            id: RemoteSegmentId { partition, segment_id: Uuid([number; 16]) },
            start_offset,
            end_offset: start_offset + 99,
            max_timestamp_ms: 0,
            broker_id: 1,
            event_timestamp_ms: 0,
            size_bytes: 1000,
            custom_metadata: None,
            state: RemoteSegmentState::CopyFinished,
            leader_epochs: vec![EpochEntry { epoch: 0, start_offset }],
            is_txn_index_empty: false,
        };
        for (part, bytes) in PARTS.into_iter().zip(side_files(start_offset)) {
            self.put(&segment, part, &bytes);
        }
        segment
    }

    fn segments<const COUNT: usize>(&self) -> [RemoteSegment; COUNT] {
        std::array::from_fn(|number| self.segment(u8::try_from(number).unwrap()))
    }

    fn put(&self, segment: &RemoteSegment, part: SegmentPart, bytes: &[u8]) {
        let name = self.layout.name(&segment.id, segment.start_offset, part);
        self.store.put(&name, &[ObjectBytes::Memory(bytes)]).unwrap();
    }

    /// How often the store was asked for the offset, time and transaction indexes.
    fn fetches(&self) -> [usize; 3] {
        PARTS.map(|part| self.store.count(TargetOperation::Get, part.suffix()))
    }

    fn path(&self, segment: &RemoteSegment, part: SegmentPart, end: &str) -> PathBuf {
        let (start, id) = (segment.start_offset, segment.id.segment_id);
        PathBuf::from(format!("/data/{CACHE_FOLDER}/{start}_{id}{}{end}", part.suffix()))
    }

    /// Writes over a file of the cache.
    fn write(&self, segment: &RemoteSegment, part: SegmentPart, end: &str, bytes: &[u8]) {
        self.disk.put(&self.path(segment, part, end), bytes.to_vec(), None).unwrap();
    }

    /// The names of the files in the cache's folder.
    fn files(&self) -> Vec<String> {
        let entries = self.disk.list(&Path::new("/data").join(CACHE_FOLDER)).unwrap();
        entries.into_iter().map(|entry| entry.name.into_string().unwrap()).collect()
    }
}

fn side_files(start_offset: i64) -> [Vec<u8>; 3] {
    let (mut offset_index, mut time_index) = (Vec::new(), Vec::new());
    for (relative, position) in [(9_i32, 0_i32), (19, 500), (29, 900)] {
        offset_index.extend([relative.to_be_bytes(), position.to_be_bytes()].concat());
        time_index.extend(i64::from(relative).to_be_bytes());
        time_index.extend(relative.to_be_bytes());
    }
    let (first_offset, last_offset) = (start_offset + 3, start_offset + 7);
    let txn = AbortedTxn { producer_id: 1, first_offset, last_offset, last_stable_offset: 0 };
    [offset_index, time_index, txn.encode().to_vec()]
}

// spec: tiered-behaviours IC1, IC2; behaviours RI-001, RI-002, RI-004
#[test]
fn the_first_use_fetches_each_file_once_and_the_next_none() {
    let bench = Bench::new();
    let segment = bench.segment(1);
    let cache = bench.open();
    let indexes = cache.get(&segment, 0).unwrap();
    assert_eq!(bench.fetches(), [1, 1, 1]);
    let name = format!("100_{}", segment.id.segment_id);
    let names = [".index", ".timeindex", ".txnindex"].map(|end| format!("{name}{end}"));
    assert_eq!(bench.files(), names);
    assert_eq!(indexes.lookup_offset(110), 0);
    assert_eq!(indexes.lookup_offset(125), 500);
    // Above the last entry, and below the base.
    assert_eq!((indexes.lookup_offset(1_000_000), indexes.lookup_offset(5)), (900, 0));
    assert_eq!(indexes.lookup_timestamp(20, 100), 500);
    let again = cache.at(0).indexes(&segment).unwrap();
    assert!(Arc::ptr_eq(&indexes, &again));
    assert_eq!((bench.fetches(), cache.count()), ([1, 1, 1], 1));
    assert_eq!(cache.size_bytes(), SEGMENT_BYTES);
    let stats = IndexCacheStats { hits: 1, loads: 1, ..IndexCacheStats::default() };
    assert_eq!(cache.stats(), stats);
}

// spec: tiered-behaviours IC3
#[test]
fn a_transaction_index_that_is_not_there_is_an_empty_file() {
    let bench = Bench::new();
    let [segment, mut known] = bench.segments();
    for segment in [&segment, &known] {
        let part = SegmentPart::TransactionIndex;
        bench.store.delete(&bench.layout.name(&segment.id, segment.start_offset, part)).unwrap();
    }
    let cache = bench.open();
    assert_eq!(cache.get(&segment, 0).unwrap().transaction_count(), 0);
    let path = bench.path(&segment, SegmentPart::TransactionIndex, "");
    assert_eq!(bench.disk.read(&path, 10).unwrap(), b"");
    assert_eq!(bench.fetches(), [1, 1, 1]);
    // Where it is known that there is none, nobody asks.
    known.is_txn_index_empty = true;
    cache.get(&known, 0).unwrap();
    assert_eq!((bench.fetches(), bench.files().len()), ([2, 2, 1], 6));
}

// spec: tiered-behaviours IC5; behaviours RI-005
#[test]
fn beyond_the_limit_the_segment_that_was_not_used_longest_goes() {
    let bench = Bench::new();
    let [a, b, c] = bench.segments();
    let cache = bench.open_for(2);
    let held = cache.get(&b, 0).unwrap();
    cache.get(&a, 0).unwrap();
    cache.get(&c, 0).unwrap();
    let is_in = |segment: &RemoteSegment| cache.contains(segment.id.segment_id);
    assert_eq!((cache.count(), is_in(&a), is_in(&b), is_in(&c)), (2, true, false, true));
    assert_eq!(bench.fetches(), [3, 3, 3]);
    let deleted =
        |bench: &Bench| bench.files().into_iter().filter(|name| name.ends_with(".deleted")).count();
    assert_eq!(deleted(&bench), 3);
    // Who was given it reads on, whatever happens to the files.
    assert_eq!(held.lookup_offset(125), 500);
    assert_eq!((cache.next_due_ms(), cache.run_due(9_999).unwrap()), (Some(10_000), 0));
    assert_eq!((cache.run_due(10_000).unwrap(), deleted(&bench)), (3, 0));
    assert_eq!(held.lookup_offset(125), 500);
    cache.get(&b, 10_000).unwrap();
    assert_eq!((bench.fetches(), cache.count(), is_in(&a)), ([4, 4, 4], 2, false));
    assert_eq!(cache.stats().evictions, 2);
    // One that is larger than all the room is given, and not kept.
    cache.resize(SEGMENT_BYTES - 1, 10_000).unwrap();
    assert_eq!(cache.count(), 0);
    assert_eq!(cache.get(&a, 10_000).unwrap().lookup_offset(25), 500);
    assert_eq!((cache.count(), cache.size_bytes()), (0, 0));
}

// spec: tiered-behaviours IC6; behaviours RI-009
#[test]
fn a_closed_cache_answers_nothing_and_keeps_its_files() {
    let bench = Bench::new();
    let [a, b] = bench.segments();
    let cache = bench.open();
    let held = cache.get(&a, 0).unwrap();
    cache.get(&b, 0).unwrap();
    cache.remove(&[b.id.segment_id], 0).unwrap();
    let files = bench.files();
    cache.close();
    cache.close();
    let kinds = [
        cache.get(&a, 0).unwrap_err().kind(),
        cache.remove(&[a.id.segment_id], 0).unwrap_err().kind(),
        cache.resize(1, 0).unwrap_err().kind(),
        cache.run_due(1_000_000).unwrap_err().kind(),
    ];
    assert_eq!(kinds, [Kind::Closed; 4]);
    assert_eq!((cache.count(), cache.next_due_ms()), (0, None));
    assert_eq!((bench.files(), bench.fetches()), (files, [2, 2, 2]));
    assert_eq!(held.lookup_offset(25), 500);
}

#[test]
fn a_load_that_a_close_overtakes_gives_nothing() {
    let bench = Bench::new();
    let segment = bench.segment(1);
    let cache = Arc::new(bench.open());
    let closing = Arc::downgrade(&cache);
    bench.store.before_each(move |_| closing.upgrade().unwrap().close());
    assert_eq!(cache.get(&segment, 0).unwrap_err().kind(), Kind::Closed);
    assert_eq!(cache.count(), 0);
}

// spec: tiered-behaviours IC7, IC15, IC23
#[test]
fn what_is_removed_is_renamed_and_unlinked_later() {
    let bench = Bench::new();
    let [a, b] = bench.segments();
    let cache = bench.open();
    let held = cache.get(&a, 0).unwrap();
    cache.get(&b, 0).unwrap();
    // Copies of an earlier removal are in nobody's way.
    for part in PARTS {
        bench.write(&a, part, ".deleted", b"old");
    }
    cache.remove(&[a.id.segment_id, Uuid([9; 16])], 5).unwrap();
    assert_eq!((cache.count(), cache.contains(a.id.segment_id)), (1, false));
    for (part, bytes) in PARTS.into_iter().zip(side_files(0)) {
        assert_eq!(bench.disk.read(&bench.path(&a, part, ".deleted"), 100).unwrap(), bytes);
        let gone = bench.disk.read(&bench.path(&a, part, ""), 100).unwrap_err();
        assert_eq!(gone.kind(), Kind::NotFound);
    }
    // Between the two, look-ups still answer.
    assert_eq!(held.lookup_offset(25), 500);
    // A segment that comes back meanwhile keeps its new files.
    cache.get(&a, 6).unwrap();
    assert_eq!(cache.next_due_ms(), Some(10_005));
    assert_eq!(cache.run_due(10_005).unwrap(), 3);
    assert_eq!((bench.files().len(), cache.count()), (6, 2));
    cache.remove(&[a.id.segment_id, b.id.segment_id], 20_000).unwrap();
    assert_eq!(cache.run_due(30_000).unwrap(), 6);
    assert_eq!((bench.files().len(), cache.next_due_ms()), (0, None));
}

// spec: tiered-behaviours IC9
#[test]
fn a_file_that_cannot_be_unlinked_keeps_none_of_the_others() {
    let bench = Bench::new();
    let segment = bench.segment(1);
    let cache = bench.open();
    cache.get(&segment, 0).unwrap();
    cache.remove(&[segment.id.segment_id], 0).unwrap();
    bench.disk.fail_at(bench.disk.operation_count() + 1, 5);
    let error = cache.run_due(10_000).unwrap_err();
    assert_eq!((error.errno(), bench.files().len()), (Some(5), 1));
    assert_eq!(cache.next_due_ms(), Some(20_000));
    assert_eq!((cache.run_due(20_000).unwrap(), bench.files().len()), (1, 0));
    cache.close();
    assert_eq!(cache.run_due(30_000).unwrap_err().kind(), Kind::Closed);
}

// spec: tiered-behaviours IC10
#[test]
fn another_limit_is_kept_at_once() {
    let bench = Bench::new();
    let [a, b, c] = bench.segments();
    let cache = bench.open();
    cache.get(&a, 0).unwrap();
    cache.resize(1, 0).unwrap();
    assert_eq!((cache.count(), cache.run_due(10_000).unwrap()), (0, 3));
    assert_eq!(bench.files().len(), 0);
    cache.resize(2 * SEGMENT_BYTES, 10_000).unwrap();
    for segment in [&a, &b, &c] {
        cache.get(segment, 10_000).unwrap();
    }
    assert_eq!(cache.count(), 2);
    for (limit_bytes, count) in
        [(SEGMENT_BYTES, 1), (SEGMENT_BYTES, 1), (2 * SEGMENT_BYTES, 1), (u64::MAX, 1)]
    {
        cache.resize(limit_bytes, 10_000).unwrap();
        assert_eq!(cache.count(), count);
    }
}

// spec: tiered-behaviours IC11; behaviours RI-006
#[test]
fn a_damaged_file_is_fetched_again() {
    let damages: [fn(&mut Vec<u8>); 2] =
        [|it| it.truncate(it.len() - 1), |it| it.iter_mut().for_each(|byte| *byte = 0xe7)];
    for damage in damages {
        for (at, part) in PARTS.into_iter().enumerate() {
            let bench = Bench::new();
            let segment = bench.segment(1);
            bench.open().get(&segment, 0).unwrap();
            let mut bytes = side_files(100)[at].clone();
            damage(&mut bytes);
            // Found when the cache opens: all three go.
            bench.write(&segment, part, "", &bytes);
            let cache = bench.open();
            assert_eq!((cache.count(), bench.files().len()), (0, 0), "{part:?}");
            // Found when it is asked for: that one is replaced.
            for (other, bytes) in PARTS.into_iter().zip(side_files(100)) {
                bench.write(&segment, other, "", &bytes);
            }
            bench.write(&segment, part, "", &bytes);
            assert_eq!(cache.get(&segment, 0).unwrap().lookup_offset(125), 500);
            let mut expected = [1; 3];
            expected[at] = 2;
            assert_eq!(bench.fetches(), expected, "{part:?}");
            let stored = bench.disk.read(&bench.path(&segment, part, ""), 100).unwrap();
            assert_eq!(stored, side_files(100)[at]);
        }
    }
}

// spec: tiered-behaviours IC13
#[test]
fn a_damaged_answer_is_an_error_and_what_was_good_stays() {
    let bench = Bench::new();
    let segment = bench.segment(1);
    let cache = bench.open();
    let get = |fault| {
        bench.store.fault_once(TargetOperation::Get, ".timeindex", fault);
        cache.get(&segment, 0).unwrap_err()
    };
    let error = get(TargetFault::Shorter(1));
    assert_eq!((error.kind(), cache.count()), (Kind::Corrupt, 0));
    assert!(error.to_string().contains("-AQEBAQEBAQEBAQEBAQEBAQ.timeindex: time index"), "{error}");
    assert_eq!((bench.fetches(), bench.files().len()), ([1, 1, 0], 1));
    // The offset index is not fetched again. Errors of the store are told as they are.
    assert_eq!(get(TargetFault::Fails(Kind::Io)).kind(), Kind::Io);
    assert_eq!(get(TargetFault::Fails(Kind::NotFound)).kind(), Kind::NotFound);
    assert_eq!(bench.fetches(), [1, 3, 0]);
    cache.get(&segment, 0).unwrap();
    assert_eq!((bench.fetches(), cache.count()), ([1, 4, 1], 1));
    assert_eq!(cache.stats().failures, 3);
}

#[test]
fn what_a_load_that_failed_has_left_goes_like_whole_segments() {
    // It was in no book: files stayed beyond the limit, and until the cache was opened again.
    let bench = Bench::new();
    let [a, b] = bench.segments();
    let fail = |cache: &RemoteIndexCache, now_ms| {
        bench.store.fault_once(TargetOperation::Get, ".timeindex", TargetFault::Fails(Kind::Io));
        assert!(cache.get(&a, now_ms).is_err());
        assert!(!cache.contains(a.id.segment_id));
    };
    let cache = bench.open_for(1);
    fail(&cache, 0);
    assert_eq!((cache.count(), cache.size_bytes()), (0, 3 * 8));
    // Another segment needs the room.
    cache.get(&b, 1).unwrap();
    assert_eq!((cache.count(), cache.size_bytes()), (1, SEGMENT_BYTES));
    assert_eq!((cache.run_due(10_001).unwrap(), bench.files().len()), (1, 3));
    cache.close();
    // It goes with its segment, and when nobody asks again.
    let cache = bench.open();
    fail(&cache, 0);
    cache.remove(&[a.id.segment_id], 5).unwrap();
    assert_eq!((cache.run_due(10_005).unwrap(), bench.files().len()), (1, 3));
    fail(&cache, 10_005);
    assert_eq!((cache.run_due(910_005).unwrap(), cache.size_bytes()), (0, 0));
    assert_eq!((cache.run_due(920_005).unwrap(), bench.files().len()), (4, 0));
}

// spec: tiered-behaviours IC14
#[test]
fn files_that_came_back_are_taken_without_asking_the_store() {
    let bench = Bench::new();
    let segment = bench.segment(1);
    let cache = bench.open();
    let before = cache.get(&segment, 0).unwrap();
    cache.remove(&[segment.id.segment_id], 0).unwrap();
    for (part, bytes) in PARTS.into_iter().zip(side_files(100)) {
        bench.write(&segment, part, "", &bytes);
    }
    assert_eq!(*cache.get(&segment, 0).unwrap(), *before);
    assert_eq!(bench.fetches(), [1, 1, 1]);
}

// spec: tiered-behaviours IC17; behaviours RI-008
#[test]
fn what_one_cache_has_left_the_next_one_has() {
    let bench = Bench::new();
    let [a, b, c] = bench.segments();
    let cache = bench.open();
    let before = [cache.get(&a, 0).unwrap(), cache.get(&b, 0).unwrap()];
    cache.close();
    drop(cache);
    let cache = bench.open();
    assert_eq!((cache.count(), cache.size_bytes()), (2, 2 * SEGMENT_BYTES));
    assert_eq!(*cache.get(&a, 0).unwrap(), *before[0]);
    assert_eq!(*cache.get(&b, 0).unwrap(), *before[1]);
    assert_eq!(bench.fetches(), [2, 2, 2]);
    cache.get(&c, 0).unwrap();
    drop(cache);
    // One with less room drops the rest.
    let cache = bench.open_for(1);
    assert_eq!((cache.count(), cache.size_bytes()), (1, SEGMENT_BYTES));
    assert_eq!(cache.run_due(10_000).unwrap(), 6);
}

// spec: behaviours RI-010
#[test]
fn what_was_left_unfinished_goes_when_the_cache_opens() {
    let bench = Bench::new();
    let [whole, other, torn] = bench.segments();
    bench.open().get(&whole, 0).unwrap();
    bench.write(&other, SegmentPart::OffsetIndex, ".tmp", b"x");
    bench.write(&other, SegmentPart::TimeIndex, ".deleted", b"x");
    // Two of three files are of no use.
    bench.write(&torn, SegmentPart::OffsetIndex, "", &[]);
    bench.write(&torn, SegmentPart::TimeIndex, "", &[]);
    // What is none of the cache's own is left alone.
    let dir = Path::new("/data").join(CACHE_FOLDER);
    let foreign = ["README", "007_AQEBAQEBAQEBAQEBAQEBAQ.index", "-1_AQEBAQEBAQEBAQEBAQEBAQ.index"];
    for name in foreign {
        bench.disk.put(&dir.join(name), Vec::new(), None).unwrap();
    }
    let cache = bench.open();
    assert_eq!(cache.count(), 1);
    let names = bench.files();
    assert_eq!(names.len(), 3 + foreign.len(), "{names:?}");
    assert!(foreign.iter().all(|name| names.iter().any(|it| it == name)));
    cache.get(&whole, 0).unwrap();
    assert_eq!(bench.fetches(), [1, 1, 1]);
}

// spec: tiered-behaviours IC18, IC19, IC21, IC22
#[test]
fn what_nobody_asks_for_goes_after_a_while() {
    let bench = Bench::new();
    let [a, b, c] = bench.segments();
    let with_ttl = |ttl_ms, count: u64| {
        let limit_bytes = count * SEGMENT_BYTES;
        let options = IndexCacheOptions { ttl_ms, limit_bytes, ..IndexCacheOptions::default() };
        bench.open_with(options, 0)
    };
    let cache = with_ttl(None, 9);
    cache.get(&a, 0).unwrap();
    cache.run_due(900_000).unwrap();
    assert_eq!((cache.count(), cache.next_due_ms()), (1, None));
    cache.remove(&[a.id.segment_id], 0).unwrap();

    let cache = with_ttl(Some(10_000), 9);
    cache.get(&a, 0).unwrap();
    assert_eq!(cache.next_due_ms(), Some(10_000));
    cache.run_due(9_000).unwrap();
    assert!(cache.contains(a.id.segment_id));
    cache.run_due(11_000).unwrap();
    assert!(!cache.contains(a.id.segment_id));

    let cache = with_ttl(Some(10_000), 9);
    cache.get(&a, 0).unwrap();
    cache.get(&b, 5_000).unwrap();
    cache.run_due(11_000).unwrap();
    assert!(!cache.contains(a.id.segment_id) && cache.contains(b.id.segment_id));
    // A use makes it young again; and one that is too old is not given.
    let fetches = bench.fetches()[0];
    cache.get(&b, 14_000).unwrap();
    cache.get(&b, 23_000).unwrap();
    assert_eq!(bench.fetches()[0], fetches);
    cache.get(&b, 33_000).unwrap();
    assert_eq!(bench.fetches()[0], fetches + 1);
    cache.remove(&[b.id.segment_id], 33_000).unwrap();

    let cache = with_ttl(Some(10_000), 2);
    for segment in [&a, &b, &c] {
        cache.get(segment, 0).unwrap();
    }
    assert_eq!(cache.count(), 2);
    cache.run_due(11_000).unwrap();
    assert_eq!(cache.count(), 0);
}

#[test]
fn of_many_who_ask_for_one_segment_one_loads_it() {
    let bench = Bench::new();
    let segments: [RemoteSegment; 3] = bench.segments();
    bench.store.before_each(|_| (0..1000).for_each(|_| std::thread::yield_now()));
    let cache = bench.open();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            for segment in &segments {
                scope.spawn(|| {
                    let indexes = cache.get(segment, 0).unwrap();
                    assert_eq!(indexes.base_offset(), segment.start_offset);
                });
            }
        }
    });
    assert_eq!(bench.fetches(), [3, 3, 3]);
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.hits), (3, 9));
}

#[test]
fn who_waits_for_a_load_that_fails_tries_it_itself() {
    let bench = Bench::new();
    let segment = bench.segment(1);
    let cache = bench.open();
    bench.store.fault(TargetOperation::Get, ".index", 0..2, TargetFault::Fails(Kind::Io));
    bench.store.before_each(|_| (0..1000).for_each(|_| std::thread::yield_now()));
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..5).map(|_| scope.spawn(|| cache.get(&segment, 0).is_ok())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|is_ok| !**is_ok).count(), 2);
    assert_eq!(bench.fetches(), [3, 1, 1]);
}

#[test]
fn a_load_that_panics_leaves_the_segment_to_others() {
    let bench = Bench::new();
    let segment = bench.segment(1);
    let cache = bench.open();
    bench.store.before_each(|_| panic!("the store's own bug"));
    let outcome = std::thread::scope(|scope| scope.spawn(|| cache.get(&segment, 0)).join());
    assert!(outcome.is_err());
    bench.store.reset();
    assert!(cache.get(&segment, 0).is_ok());
}

#[test]
fn threads_that_evict_for_each_other_always_read_right() {
    let bench = Bench::new();
    let segments: [RemoteSegment; 6] = bench.segments();
    let cache = bench.open_for(2);
    std::thread::scope(|scope| {
        for thread in 0..4_usize {
            let (cache, segments) = (&cache, &segments);
            scope.spawn(move || {
                for round in 0..100_usize {
                    let segment = &segments[(thread * 7 + round * 5) % segments.len()];
                    let now_ms = i64::try_from(round * 1000).unwrap();
                    let indexes = cache.get(segment, now_ms).unwrap();
                    assert_eq!(indexes.lookup_offset(segment.start_offset + 25), 500);
                    assert_eq!(indexes.offset_entries().last_offset(), segment.start_offset + 29);
                    match round % 10 {
                        3 => cache.remove(&[segment.id.segment_id], now_ms).unwrap(),
                        7 => drop(cache.run_due(now_ms).unwrap()),
                        _ => {}
                    }
                }
            });
        }
    });
    assert!(cache.count() <= 2);
    cache.run_due(1_000_000_000).unwrap();
    cache.run_due(2_000_000_000).unwrap();
    assert_eq!(bench.files(), Vec::<String>::new());
}

#[test]
fn a_power_cut_anywhere_leaves_a_cache_that_opens_and_reads_right() {
    let bench = Bench::new();
    let [a, b] = bench.segments();
    let run = |disk: &SimDisk| -> Result<()> {
        let limit_bytes = SEGMENT_BYTES;
        let options = IndexCacheOptions { limit_bytes, ..IndexCacheOptions::default() };
        let cache = bench.try_open(disk, options, 0)?;
        cache.get(&a, 0)?;
        cache.get(&b, 0)?;
        cache.run_due(10_000)?;
        Ok(())
    };
    let whole = bench.disk.fork();
    run(&whole).unwrap();
    for cut in 0..whole.change_count() {
        let disk = bench.disk.fork();
        disk.crash_at_change(cut);
        // A rename that is cut is no error: what stays is whole.
        run(&disk).ok();
        for seed in 0..10 {
            let left = disk.after_crash(seed);
            let cache = bench.try_open(&left, IndexCacheOptions::default(), 0).unwrap();
            for segment in [&a, &b] {
                let indexes = cache.get(segment, 0).unwrap();
                let [offset_index, time_index, transaction_index] =
                    side_files(segment.start_offset);
                let start = segment.start_offset;
                let expected =
                    SegmentIndexes::new(start, offset_index, time_index, transaction_index);
                assert_eq!(*indexes, expected, "{cut} {seed}");
            }
        }
    }
}

#[test]
fn a_disk_that_is_full_is_an_error_and_leaves_no_half_file() {
    let bench = Bench::new();
    let segment = bench.segment(1);
    let whole = bench.disk.fork();
    let cache = bench.try_open(&whole, IndexCacheOptions::default(), 0).unwrap();
    let before = whole.operation_count();
    cache.get(&segment, 0).unwrap();
    for at in before..whole.operation_count() {
        let disk = bench.disk.fork();
        let cache = bench.try_open(&disk, IndexCacheOptions::default(), 0).unwrap();
        disk.fail_at(at, 28);
        let error = cache.get(&segment, 0).unwrap_err();
        assert_eq!((error.errno(), cache.count()), (Some(28), 0), "{at}");
        assert!(cache.get(&segment, 0).is_ok());
    }
    let path = bench.path(&segment, SegmentPart::OffsetIndex, "");
    assert!(whole.open(&path, OpenMode::Read).is_ok());
}
