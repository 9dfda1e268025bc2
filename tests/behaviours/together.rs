//! What waits for a log may go in together: the log is then the same as if it went in one by one.

use std::sync::Arc;

use siltstone::io::{Disk, Storage};
use siltstone::log::{AppendInfo, AppendScratch, LeaderAppend, Log, LogConfig, OpenOptions};
use siltstone::record::codec::Codec;
use siltstone_tests::live::{NOW_MS, TestLog, records};

type Answers = Vec<Result<AppendInfo, String>>;

fn log() -> TestLog {
    TestLog::with(|config| {
        config.segment_bytes = 6000;
        config.index_interval_bytes = 300;
        config.segment_index_bytes = 200;
    })
}

fn one_by_one(log: &TestLog, group: &mut [Vec<u8>], scratch: &mut AppendScratch) -> Answers {
    let append = LeaderAppend::client(0, NOW_MS);
    let one = |records: &mut Vec<u8>| {
        log.log().append_as_leader(records, &append, scratch).map_err(|error| error.to_string())
    };
    group.iter_mut().map(one).collect()
}

fn together(log: &TestLog, group: &mut [Vec<u8>], scratch: &mut AppendScratch) -> Answers {
    let append = LeaderAppend::client(0, NOW_MS);
    let mut all: Vec<&mut [u8]> = group.iter_mut().map(Vec::as_mut_slice).collect();
    let answers = log.log().append_all_as_leader(&mut all, &append, scratch);
    answers.into_iter().map(|answer| answer.map_err(|error| error.to_string())).collect()
}

fn assert_same(one: &TestLog, other: &TestLog) {
    assert_eq!(one.log().log_end_offset(), other.log().log_end_offset());
    assert_eq!(one.files(), other.files());
    for name in one.files() {
        assert_eq!(one.file(&name), other.file(&name), "{name}");
    }
}

#[test]
fn batches_that_go_in_together_make_the_log_that_they_make_one_by_one() {
    let (alone, grouped) = (log(), log());
    let mut scratch = AppendScratch::new();
    let mut random = 7_u64;
    let mut below = |end: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 8) % end
    };
    let mut sequences = [0_i32; 3];
    let mut refused = 0;
    for _ in 0..400 {
        let group: Vec<Vec<u8>> = (0..=below(5))
            .map(|_| {
                let count = 1 + usize::try_from(below(4)).unwrap();
                let size = usize::try_from(below(80)).unwrap();
                let plain = records(count).value_bytes(size);
                let plain = plain.times(&vec![NOW_MS - i64::try_from(below(50)).unwrap(); count]);
                let who = usize::try_from(below(3)).unwrap();
                let id = 100 + i64::try_from(who).unwrap();
                let length = i32::try_from(count).unwrap();
                match below(40) {
                    0..15 => plain.build(),
                    15..25 => plain.codec(Codec::Lz4).build(),
                    // A batch of a producer that may follow, was there, or leaves a gap.
                    25..36 => {
                        let sequence = sequences[who];
                        sequences[who] += length;
                        plain.producer(id, 0, sequence).build()
                    }
                    36 => plain.producer(id, 0, (sequences[who] - length).max(0)).build(),
                    37 => plain.producer(id, 0, sequences[who] + 1).build(),
                    38 => plain.at(5).build(),
                    _ => {
                        let mut bytes = plain.build();
                        *bytes.last_mut().unwrap() ^= 1;
                        bytes
                    }
                }
            })
            .collect();
        let (mut first, mut second) = (group.clone(), group);
        let answers = one_by_one(&alone, &mut first, &mut scratch);
        assert_eq!(together(&grouped, &mut second, &mut scratch), answers);
        assert_eq!(first, second);
        refused += answers.iter().filter(|answer| answer.is_err()).count();
    }
    assert!(refused > 20 && alone.log().segments().count() > 10);
    for log in [&alone, &grouped] {
        log.log().flush(true, NOW_MS).unwrap();
    }
    assert_same(&alone, &grouped);
    for log in [&alone, &grouped] {
        log.log().close().unwrap();
    }
    assert_same(&alone, &grouped);
}

#[test]
fn batches_that_go_in_together_are_one_write() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(Disk::new());
    let options = OpenOptions { now_ms: NOW_MS, ..OpenOptions::default() };
    let storage: Arc<dyn Storage> = Arc::clone(&disk) as _;
    let path = dir.path().join("orders-0");
    let log = Log::open(storage, &path, LogConfig::default(), &options).unwrap();
    let append = LeaderAppend::client(0, NOW_MS);
    let mut scratch = AppendScratch::new();
    let mut add = |count: usize| {
        let mut group: Vec<Vec<u8>> = (0..count).map(|n| records(n % 3 + 1).build()).collect();
        let mut all: Vec<&mut [u8]> = group.iter_mut().map(Vec::as_mut_slice).collect();
        for answer in log.append_all_as_leader(&mut all, &append, &mut scratch) {
            answer.unwrap();
        }
    };
    add(1);
    let before = disk.counters().writes;
    add(2000);
    // Linux takes 1,024 parts in one call.
    assert_eq!(disk.counters().writes, before + 2);
    log.close().unwrap();
    let size = std::fs::metadata(path.join("00000000000000000000.log")).unwrap().len();
    assert_eq!(size, log.size_bytes());
}

#[test]
fn a_group_of_nothing_changes_nothing() {
    let log = log();
    let mut scratch = AppendScratch::new();
    assert_eq!(together(&log, &mut [], &mut scratch), []);
    let answers = together(&log, &mut [Vec::new(), Vec::new()], &mut scratch);
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|info| info.last_offset == -1)));
    assert_eq!(log.log().log_end_offset(), 0);
}
