//! Many logs in one call: each is the same as if it were spoken to alone.

use std::sync::Arc;

use siltstone::Kind;
use siltstone::dir::engine::{Engine, EngineOptions, NewLog, PartitionAppend, PartitionFetch};
use siltstone::io::{Disk, IoChoice, SimDisk, Storage, open_disk};
use siltstone::log::{
    AppendAs, AppendInfo, AppendRequest, AppendScratch, FetchOptions, FetchRequest, Isolation,
    LeaderAppend, Log, LogConfig, OpenOptions, append_many, locate_many,
};
use siltstone::record::codec::{Codec, Compression};
use siltstone::record::validate::AppendOrigin;
use siltstone_tests::live::{Marker, NOW_MS, TestLog, records};

type Answer = Result<AppendInfo, String>;

/// What goes to which log, and how.
#[derive(Clone)]
struct Wanted {
    log: usize,
    records: Vec<u8>,
    append: AppendAs,
}

fn client(log: usize, records: Vec<u8>) -> Wanted {
    Wanted { log, records, append: AppendAs::Leader(LeaderAppend::client(0, NOW_MS)) }
}

/// Logs of small segments; one wants another codec, and the last is to be a follower's.
fn logs() -> Vec<TestLog> {
    let log = |number| {
        TestLog::with(|config| {
            config.segment_bytes = 6000;
            config.index_interval_bytes = 300;
            config.segment_index_bytes = 200;
            config.compression = (number == 2).then(|| Compression::from(Codec::Lz4));
        })
    };
    (0..4).map(log).collect()
}

fn one_by_one(logs: &[TestLog], wanted: &mut [Wanted], scratch: &mut AppendScratch) -> Vec<Answer> {
    let one = |wanted: &mut Wanted| {
        let log = logs[wanted.log].log();
        let answer = match wanted.append {
            AppendAs::Leader(append) => log.append_as_leader(&mut wanted.records, &append, scratch),
            AppendAs::Follower { leader_epoch, now_ms } => {
                log.append_as_follower(&wanted.records, leader_epoch, now_ms)
            }
        };
        answer.map_err(|error| error.to_string())
    };
    wanted.iter_mut().map(one).collect()
}

fn at_once(logs: &[TestLog], wanted: &mut [Wanted], scratch: &mut AppendScratch) -> Vec<Answer> {
    let mut requests: Vec<AppendRequest<'_>> = wanted
        .iter_mut()
        .map(|wanted| AppendRequest {
            log: logs[wanted.log].log(),
            records: &mut wanted.records,
            append: wanted.append,
        })
        .collect();
    let answers = append_many(&mut requests, scratch);
    answers.into_iter().map(|answer| answer.map_err(|error| error.to_string())).collect()
}

fn assert_same(one: &TestLog, other: &TestLog) {
    assert_eq!(one.log().log_end_offset(), other.log().log_end_offset());
    assert_eq!(one.log().last_stable_offset(), other.log().last_stable_offset());
    assert_eq!(one.epochs(), other.epochs());
    assert_eq!(one.files(), other.files());
    for name in one.files() {
        assert_eq!(one.file(&name), other.file(&name), "{name}");
    }
}

/// Makes numbers below an end, always the same ones.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut random = 11_u64;
    move |end| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 8) % end
    }
}

#[test]
fn appends_to_many_logs_make_the_logs_that_they_make_one_by_one() {
    let (alone, many) = (logs(), logs());
    let mut scratch = AppendScratch::new();
    let mut below = numbers();
    let mut sequence = 0;
    let mut followed = 0;
    let mut refused = 0;
    for _ in 0..300 {
        let wanted: Vec<Wanted> = (0..=below(12))
            .map(|_| {
                let count = 1 + usize::try_from(below(4)).unwrap();
                let length = i32::try_from(count).unwrap();
                let plain = records(count).value_bytes(usize::try_from(below(80)).unwrap());
                let log = usize::try_from(below(4)).unwrap();
                if log == 3 {
                    let epoch = i32::try_from(followed / 200).unwrap();
                    let records = plain.at(followed).epoch(epoch).build();
                    followed += i64::from(length);
                    let append = AppendAs::Follower { leader_epoch: epoch, now_ms: NOW_MS };
                    return Wanted { log, records, append };
                }
                match (log, below(30)) {
                    (0, 0..4) => {
                        let first = sequence;
                        sequence += length;
                        client(log, plain.txn(7, 0, first).build())
                    }
                    (0, 4..6) => {
                        let append = LeaderAppend {
                            origin: AppendOrigin::Coordinator,
                            transaction_version: Some(0),
                            ..LeaderAppend::client(0, NOW_MS)
                        };
                        let records = Marker::of(7, 0, below(2) == 0).build();
                        Wanted { log, records, append: AppendAs::Leader(append) }
                    }
                    (1, 0..2) => client(log, plain.producer(8, 0, 5).build()),
                    (_, 6) => {
                        let mut bytes = plain.build();
                        *bytes.last_mut().unwrap() ^= 1;
                        client(log, bytes)
                    }
                    (_, 7) => client(log, Vec::new()),
                    _ => client(log, plain.build()),
                }
            })
            .collect();
        let (mut first, mut second) = (wanted.clone(), wanted);
        let answers = one_by_one(&alone, &mut first, &mut scratch);
        assert_eq!(at_once(&many, &mut second, &mut scratch), answers);
        let same = first.iter().zip(&second).filter(|(one, other)| one.records == other.records);
        assert_eq!(same.count(), first.len());
        refused += answers.iter().filter(|answer| answer.is_err()).count();
    }
    assert!(refused > 20 && alone.iter().all(|log| log.log().segments().count() > 5));
    for (one, other) in alone.iter().zip(&many) {
        for log in [one, other] {
            log.log().close().unwrap();
        }
        assert_same(one, other);
    }
}

/// So many real logs below a directory.
fn real_logs(storage: &Arc<dyn Storage>, dir: &std::path::Path, count: usize) -> Vec<Log> {
    let options = OpenOptions { now_ms: NOW_MS, ..OpenOptions::default() };
    let open = |number| {
        let path = dir.join(format!("orders-{number}"));
        Log::open(Arc::clone(storage), &path, LogConfig::default(), &options).unwrap()
    };
    (0..count).map(open).collect()
}

/// Appends three batches to each log at once.
fn append_to_all(logs: &[Log], scratch: &mut AppendScratch) {
    let mut all: Vec<Vec<u8>> = (0..logs.len() * 3).map(|n| records(n % 3 + 1).build()).collect();
    let mut requests: Vec<AppendRequest<'_>> = (0..)
        .zip(&mut all)
        .map(|(number, records)| AppendRequest {
            // Those of one log do not stand together.
            log: &logs[number % logs.len()],
            records,
            append: AppendAs::Leader(LeaderAppend::client(0, NOW_MS)),
        })
        .collect();
    for answer in append_many(&mut requests, scratch) {
        answer.unwrap();
    }
}

#[test]
fn what_goes_to_many_logs_is_one_write_each_and_one_submission_to_a_ring() {
    let mut scratch = AppendScratch::new();
    let mut disks = vec![Arc::new(Disk::new()) as Arc<dyn Storage>];
    if let Ok(ring) = open_disk(IoChoice::Uring) {
        disks.push(ring.into());
    }
    let mut contents = Vec::new();
    for disk in &disks {
        let dir = tempfile::tempdir().unwrap();
        let logs = real_logs(disk, dir.path(), 64);
        append_to_all(&logs, &mut scratch);
        let before = disk.counters();
        append_to_all(&logs, &mut scratch);
        let after = disk.counters();
        assert_eq!(after.writes, before.writes + 64);
        let submitted = after.ring_completions - before.ring_completions;
        assert_eq!(submitted, if before.ring_completions > 0 { 64 } else { 0 });
        let read = |log: &Log| std::fs::read(log.dir().join("00000000000000000000.log")).unwrap();
        contents.push(logs.iter().map(read).collect::<Vec<_>>());
    }
    assert!(contents.iter().all(|other| *other == contents[0]));
    assert!(contents[0].iter().all(|log| log.len() > 400));
}

#[test]
fn a_log_that_somebody_writes_to_or_that_is_closed_keeps_out_no_other() {
    let logs = logs();
    let mut scratch = AppendScratch::new();
    logs[1].log().close().unwrap();
    let batch = records(2).build();
    let wanted: Vec<Wanted> =
        [0, 1, 2, 0, 1].map(|log| client(log, batch.clone())).into_iter().collect();
    let mut second = wanted.clone();
    let answers = logs[0].log().with_producers(|_| at_once(&logs, &mut second, &mut scratch));
    let answers = answers.unwrap();
    for (number, says) in [(0, "another thread"), (1, "closed"), (3, "another"), (4, "closed")] {
        let error = answers[number].as_ref().unwrap_err();
        assert!(error.contains(says), "{error}");
        assert_eq!(second[number].records, wanted[number].records);
    }
    assert_eq!(answers[2].as_ref().unwrap().first_offset, Some(0));
    assert_eq!(logs[0].log().log_end_offset(), 0);
    let answers = at_once(&logs, &mut second, &mut scratch);
    assert_eq!(answers[3].as_ref().unwrap().first_offset, Some(2));
    assert_eq!(at_once(&logs, &mut [], &mut scratch), []);
}

#[test]
fn a_follower_leaves_no_gap_behind_records_that_were_not_appended() {
    let logs = logs();
    let mut scratch = AppendScratch::new();
    let follow = |log: usize, offset: i64| Wanted {
        log,
        records: records(2).at(offset).epoch(0).build(),
        append: AppendAs::Follower { leader_epoch: 0, now_ms: NOW_MS },
    };
    let mut damaged = follow(3, 2);
    *damaged.records.last_mut().unwrap() ^= 1;
    let mut wanted =
        vec![follow(3, 0), follow(2, 0), damaged, follow(3, 4), follow(2, 2), follow(3, 6)];
    let answers = at_once(&logs, &mut wanted, &mut scratch);
    let told: Vec<bool> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(told, [true, true, false, false, true, false]);
    assert!(answers[5].as_ref().unwrap_err().contains("not appended"));
    assert_eq!((logs[3].log().log_end_offset(), logs[2].log().log_end_offset()), (2, 4));
    // The next call begins anew.
    let mut wanted = vec![follow(3, 2), follow(3, 4)];
    assert!(at_once(&logs, &mut wanted, &mut scratch).iter().all(Result::is_ok));
}

fn options(max_bytes: u32) -> FetchOptions {
    FetchOptions { max_bytes, isolation: Isolation::LogEnd, min_one_message: true }
}

#[test]
fn fetches_of_many_logs_have_the_answers_of_each_and_share_their_bytes() {
    let mut logs: Vec<TestLog> = (0..3).map(|_| TestLog::new()).collect();
    for log in &mut logs {
        for _ in 0..5 {
            log.lead(&records(1));
        }
    }
    let size = u64::try_from(records(1).build().len()).unwrap();
    let mut answers = Vec::new();
    let fetch = |log: usize, offset, max_bytes| FetchRequest {
        log: logs[log].log(),
        offset,
        options: options(max_bytes),
    };
    let all =
        [fetch(0, 1, 1 << 20), fetch(1, 9, 1), fetch(2, 5, 1), fetch(1, 4, 1), fetch(0, 0, 9)];
    locate_many(&all, u64::MAX, &mut answers);
    let sizes = |answers: &[siltstone::Result<siltstone::log::Fetched>]| -> Vec<Option<u64>> {
        let size = |range: &siltstone::log::FileRange| range.size_bytes();
        answers
            .iter()
            .map(|answer| answer.as_ref().ok().map(|a| a.range.as_ref().map_or(0, size)))
            .collect()
    };
    // Once one has got bytes, a batch that does not fit is not given whole any more.
    assert_eq!(sizes(&answers), [Some(4 * size), None, Some(0), Some(1), Some(9)]);
    assert_eq!(answers[1].as_ref().unwrap_err().kind(), Kind::OutOfRange);
    for (answer, request) in answers.iter().zip(&all).filter(|(answer, _)| answer.is_ok()) {
        let alone = request.log.locate(request.offset, &request.options).unwrap();
        assert_eq!(answer.as_ref().unwrap().place, alone.place);
    }
    let bytes = answers[0].as_ref().unwrap().range.as_ref().unwrap().read().unwrap();
    assert_eq!(bytes, logs[0].read(1).bytes);

    // What is left after the first is too little for the others, and then nothing.
    let all = [fetch(0, 2, 1 << 20), fetch(1, 0, 1 << 20), fetch(2, 0, 1 << 20)];
    locate_many(&all, 3 * size + 10, &mut answers);
    assert_eq!(sizes(&answers), [Some(3 * size), Some(10), Some(0)]);
    // The first may exceed them all.
    locate_many(&all, 1, &mut answers);
    assert_eq!(sizes(&answers), [Some(size), Some(0), Some(0)]);
    locate_many(&[], 1, &mut answers);
    assert!(answers.is_empty());
}

#[test]
fn an_engine_finds_the_logs_of_many_partitions() {
    let config = |_: &str| LogConfig { segment_index_bytes: 12_000, ..LogConfig::default() };
    let dirs = ["/data".into()];
    let disk = Arc::new(SimDisk::new());
    let (engine, _) = Engine::open(disk, &dirs, &EngineOptions::new(&config, NOW_MS)).unwrap();
    let new = NewLog { config: config(""), now_ms: NOW_MS, ..NewLog::default() };
    for partition in 0..3 {
        engine.get_or_create("orders", partition, &new).unwrap();
    }
    let append = AppendAs::Leader(LeaderAppend::client(0, NOW_MS));
    let mut bytes: Vec<Vec<u8>> = (1..6).map(|count| records(count).build()).collect();
    let places = [("orders", 2), ("payments", 0), ("orders", 0), ("orders", 7), ("orders", 2)];
    let mut appends: Vec<PartitionAppend<'_>> = places
        .into_iter()
        .zip(&mut bytes)
        .map(|((topic, partition), records)| PartitionAppend { topic, partition, records, append })
        .collect();
    let answers = engine.append_many(&mut appends, &mut AppendScratch::new());
    let told: Vec<Option<i64>> =
        answers.iter().map(|answer| answer.as_ref().ok().map(|info| info.last_offset)).collect();
    assert_eq!(told, [Some(0), None, Some(2), None, Some(5)]);
    let missing = answers.into_iter().nth(1).unwrap().unwrap_err();
    assert!(missing.to_string().contains("payments-0"), "{missing}");
    assert_eq!(siltstone::Error::from(missing).kind(), Kind::NotFound);

    let fetch = |(topic, partition)| PartitionFetch {
        topic,
        partition,
        offset: 0,
        options: options(1 << 20),
    };
    let mut answers = Vec::new();
    engine.locate_many(&places.map(fetch), u64::MAX, &mut answers);
    let sizes: Vec<Option<u64>> = answers
        .iter()
        .map(|answer| Some(answer.as_ref().ok()?.range.as_ref()?.size_bytes()))
        .collect();
    let size = |number: usize| u64::try_from(bytes[number].len()).unwrap();
    let both = Some(size(0) + size(4));
    assert_eq!(sizes, [both, None, Some(size(2)), None, both]);
    assert_eq!(answers[1].as_ref().unwrap_err().kind(), Kind::NotFound);
}
