//! Many logs that are written to in one call: every operation fails once, and the power goes at
//! every one; how they are opened is `live`'s to ask.
//!
//! Beside the logs stands what was answered: which batch is at which offset of which log, and which
//! of them were made durable. One log gets groups, one has its batches compressed anew, one has
//! transactions, and one is a follower's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use siltstone::io::SimDisk;
use siltstone::io::sim::Operation;
use siltstone::log::{
    AppendAs, AppendRequest, AppendScratch, FetchOptions, Isolation, LeaderAppend, Log, LogConfig,
    OpenOptions, VerifyOptions, append_many, verify_partition,
};
use siltstone::problem::Code;
use siltstone::record::BatchHeader;
use siltstone::record::codec::{Codec, Compression};
use siltstone::record::validate::{AppendOrigin, Batches};
use siltstone::state::ProducerStateConfig;
use siltstone_tests::live::{Marker, NOW_MS, records};

/// In turn: no I/O, no permission, too many open files, a full disk.
const ERRORS: [i32; 4] = [5, 13, 24, 28];
/// What a power cut spares, two of them in turn: the extremes, and mixtures.
const SEEDS: [[u64; 2]; 2] = [[0, 2], [1, 5]];
const COUNT: usize = 4;
const REBUILT: usize = 1;
const WITH_TXNS: usize = 2;
const FOLLOWED: usize = 3;
const ROUNDS: usize = 4;
/// The round with a flush behind it.
const FLUSHED: usize = 1;

/// A batch that was taken: the offset behind it, and its bytes where the log has them as they came.
type Taken = BTreeMap<i64, (i64, Option<Vec<u8>>)>;

/// What is known of one log.
#[derive(Clone, Debug, Default)]
struct Known {
    taken: Taken,
    /// Up to where what was taken must survive a power cut.
    durable_end: i64,
    /// Requests that may have been taken when the power went.
    in_flight: usize,
}

struct Node {
    disk: SimDisk,
    logs: Vec<Log>,
    known: Vec<Known>,
    scratch: AppendScratch,
}

fn dir(log: usize) -> PathBuf {
    PathBuf::from(format!("/orders-{log}"))
}

fn open(disk: &SimDisk, log: usize, recovery_point: i64) -> siltstone::Result<Log> {
    let config = LogConfig {
        segment_bytes: if log == WITH_TXNS { 200 } else { 420 },
        segment_index_bytes: 240,
        index_interval_bytes: 100,
        compression: (log == REBUILT).then(|| Compression::from(Codec::Lz4)),
        ..LogConfig::default()
    };
    let producers = ProducerStateConfig {
        transaction_verification_enabled: false,
        ..ProducerStateConfig::default()
    };
    let options = OpenOptions {
        clean_shutdown: false,
        recovery_point,
        now_ms: NOW_MS,
        producers,
        ..OpenOptions::default()
    };
    Log::open(Arc::new(disk.clone()), &dir(log), config, &options)
}

impl Node {
    fn new(disk: SimDisk) -> Self {
        let known = vec![Known::default(); COUNT];
        Node { disk, logs: Vec::new(), known, scratch: AppendScratch::new() }
    }

    fn start(&mut self) -> siltstone::Result<()> {
        self.logs.clear();
        for (log, known) in self.known.iter().enumerate() {
            self.logs.push(open(&self.disk, log, known.durable_end)?);
        }
        Ok(())
    }

    /// What is asked for in a round, in an order that mixes the logs.
    fn wanted(&self, round: usize) -> Vec<(usize, Vec<u8>, AppendAs)> {
        let client = AppendAs::Leader(LeaderAppend::client(0, NOW_MS));
        let size = |number: usize| 5 + (round * 7 + number * 3) % 50;
        let mut followed = self.logs[FOLLOWED].log_end_offset();
        let mut wanted = Vec::new();
        for number in 0..3 {
            let plain = records(1 + (round + number) % 2).value_bytes(size(number));
            wanted.push((0, plain.build(), client));
            if number > 0 {
                wanted.push((REBUILT, plain.build(), client));
                let append = AppendAs::Follower { leader_epoch: 0, now_ms: NOW_MS };
                wanted.push((FOLLOWED, plain.at(followed).epoch(0).build(), append));
                followed += i64::try_from(1 + (round + number) % 2).unwrap();
            }
        }
        // A transaction of one batch, decided in the next round.
        let number = i32::try_from(round / 2).unwrap();
        wanted.push(match round % 2 {
            0 => (WITH_TXNS, records(1).txn(7, 0, number).build(), client),
            _ => {
                let append = LeaderAppend {
                    origin: AppendOrigin::Coordinator,
                    transaction_version: Some(0),
                    ..LeaderAppend::client(0, NOW_MS)
                };
                (WITH_TXNS, Marker::of(7, 0, round % 4 == 1).build(), AppendAs::Leader(append))
            }
        });
        wanted
    }

    /// Asks for what is wanted; gives what was not taken, as it came.
    fn append(
        &mut self,
        mut wanted: Vec<(usize, Vec<u8>, AppendAs)>,
    ) -> Vec<(usize, Vec<u8>, AppendAs)> {
        let came = wanted.clone();
        let ends: Vec<i64> = self.logs.iter().map(Log::log_end_offset).collect();
        for (log, ..) in &wanted {
            self.known[*log].in_flight += 1;
        }
        let mut requests: Vec<AppendRequest<'_>> = wanted
            .iter_mut()
            .map(|(log, records, append)| AppendRequest {
                log: &self.logs[*log],
                records,
                append: *append,
            })
            .collect();
        let answers = append_many(&mut requests, &mut self.scratch);
        let is_off = self.disk.is_off();
        let mut left = Vec::new();
        let mut next = ends;
        for ((answer, request), came) in answers.into_iter().zip(wanted).zip(came) {
            let (log, bytes, _) = request;
            match answer {
                Ok(info) => {
                    let first = info.first_offset.unwrap();
                    assert_eq!(first, next[log], "offsets follow each other");
                    next[log] = info.last_offset + 1;
                    let bytes = (log != REBUILT).then_some(bytes);
                    self.known[log].taken.insert(first, (next[log], bytes));
                }
                Err(_) => {
                    assert_eq!(bytes, came.1, "records that are not taken stay as they were");
                    left.push(came);
                }
            }
        }
        if !is_off {
            for (log, end) in self.logs.iter().zip(next) {
                assert_eq!(log.log_end_offset(), end);
            }
            self.known.iter_mut().for_each(|known| known.in_flight = 0);
        }
        left
    }

    fn flush(&mut self) -> siltstone::Result<()> {
        for (log, known) in self.logs.iter().zip(&mut self.known) {
            log.flush(true, NOW_MS)?;
            known.durable_end = log.log_end_offset();
        }
        Ok(())
    }

    /// The whole life, up to where the power goes; says whether it came to its end.
    fn live(&mut self) -> bool {
        self.start().expect("logs");
        for round in 0..ROUNDS {
            if !self.append(self.wanted(round)).is_empty() {
                return false;
            }
            if round == FLUSHED && self.flush().is_err() {
                return false;
            }
        }
        true
    }

    /// The whole life with a fault in it: what fails is done again, by logs that are opened again
    /// where that is asked for. Says whether anything failed.
    fn survive(&mut self, when: &str) -> bool {
        self.start().expect("logs");
        let mut has_failed = false;
        for round in 0..ROUNDS {
            let left = self.append(self.wanted(round));
            if !left.is_empty() {
                has_failed = true;
                self.check(when);
            }
            let logs: Vec<usize> = left.iter().map(|(log, ..)| *log).collect();
            // One fault is one log's.
            assert!(logs.windows(2).all(|pair| pair[0] == pair[1]), "{when}: {logs:?}");
            // A follower's later batches are taken only behind the earlier ones.
            let left = self.append(left);
            assert!(left.is_empty(), "{when}: {left:?}");
            if round == FLUSHED && self.flush().is_err() {
                has_failed = true;
                if self.logs.iter().any(Log::is_failed) {
                    self.start().unwrap_or_else(|error| panic!("{when}: {error}"));
                }
                self.flush().unwrap_or_else(|error| panic!("{when}: {error}"));
            }
        }
        self.check(when);
        for log in std::mem::take(&mut self.logs) {
            log.close().unwrap_or_else(|error| panic!("{when}: {error}"));
        }
        self.check_files(when);
        has_failed
    }

    /// Each log has what it has taken, and nothing else.
    fn check(&self, when: &str) {
        for (number, (log, known)) in self.logs.iter().zip(&self.known).enumerate() {
            let found = batches(log);
            let offsets: Vec<i64> = found.keys().copied().collect();
            assert!(offsets.iter().eq(known.taken.keys()), "{when}: log {number} has {offsets:?}");
            check_same(&found, known, when);
        }
    }

    fn check_files(&self, when: &str) {
        for log in 0..COUNT {
            let options = VerifyOptions { now_ms: NOW_MS, ..VerifyOptions::default() };
            let mut report = verify_partition(&self.disk, &dir(log), &options).expect("a look");
            // A start after a kill takes one where the log ends, which stays until the next start.
            report.problems.retain(|problem| problem.code != Code::StraySnapshot);
            assert!(report.problems.is_empty(), "{when}: log {log}: {:?}", report.problems);
        }
    }
}

/// The batches of a log by offset.
fn batches(log: &Log) -> BTreeMap<i64, Vec<u8>> {
    let options =
        FetchOptions { max_bytes: u32::MAX, isolation: Isolation::LogEnd, min_one_message: true };
    let mut found = BTreeMap::new();
    let mut offset = 0;
    while offset < log.log_end_offset() {
        // A reader may meet the fault; it asks again.
        let fetched = log.read(offset, &options).or_else(|_| log.read(offset, &options));
        let fetched = fetched.expect("bytes");
        if fetched.bytes.is_empty() {
            // The end of a segment that was not flushed is lost, the next one has a name alone.
            assert_eq!(fetched.place.offset, log.log_end_offset());
            break;
        }
        for batch in Batches::new(&fetched.bytes) {
            let batch = batch.expect("a batch");
            offset = batch.header.next_offset();
            found.insert(batch.header.base_offset, batch.bytes.to_vec());
        }
    }
    found
}

fn check_same(found: &BTreeMap<i64, Vec<u8>>, known: &Known, when: &str) {
    for (offset, bytes) in found {
        if let Some((next, taken)) = known.taken.get(offset) {
            let header = BatchHeader::parse(bytes).expect("a header");
            assert_eq!(header.next_offset(), *next, "{when}: at {offset}");
            assert!(taken.as_ref().is_none_or(|taken| taken == bytes), "{when}: at {offset}");
        }
    }
}

/// The operations behind those that open the logs, with their numbers.
fn uncut() -> Vec<(u64, Operation)> {
    let mut opened = Node::new(SimDisk::new());
    opened.start().expect("logs");
    let first = opened.disk.operations().len();
    let mut node = Node::new(SimDisk::new());
    assert!(node.live(), "nothing fails by itself");
    node.check("without a fault");
    assert!(node.logs.iter().all(|log| log.segments().count() > 1), "every log rolls");
    (0..).zip(node.disk.operations()).skip(first).collect()
}

#[test]
fn an_operation_fails_once_and_only_its_log_notices() {
    let operations = uncut();
    let faults = operations.par_iter().flat_map_iter(|it| ERRORS.map(|errno| (it, errno)));
    let failed = faults.filter(|((number, operation), errno)| {
        let disk = SimDisk::new();
        disk.fail_at(*number, *errno);
        Node::new(disk).survive(&format!("error {errno} at {number} ({operation})"))
    });
    let failed = failed.count();
    assert!(failed > 10, "{failed} faults were told");
}

#[test]
fn the_power_goes_while_many_logs_are_written_to_and_no_batch_is_half() {
    let operations = uncut();
    let changes = operations.iter().filter(|(_, operation)| operation.is_change);
    let changes: Vec<&(u64, Operation)> = changes.collect();
    changes.par_iter().enumerate().for_each(|(at, (number, operation))| {
        let disk = SimDisk::new();
        disk.crash_at(*number);
        let mut node = Node::new(disk);
        assert!(!node.live() && node.disk.is_off(), "operation {number} did not come");
        node.logs.clear();
        for seed in SEEDS[at % SEEDS.len()] {
            let when = format!("cut at {number} ({operation}), seed {seed}");
            let mut left = Node::new(node.disk.after_crash(seed));
            left.known = node.known.clone();
            left.start().unwrap_or_else(|error| panic!("{when}: {error}"));
            for (log, known) in left.logs.iter().zip(&left.known) {
                check_survived(log, known, &when);
            }
            for log in std::mem::take(&mut left.logs) {
                log.close().unwrap_or_else(|error| panic!("{when}: {error}"));
            }
            left.check_files(&when);
        }
    });
}

/// What is left is what was taken, with all that was durable; and perhaps more of what was asked
/// for when the power went. Of a segment that was not flushed not even the name need be there.
fn check_survived(log: &Log, known: &Known, when: &str) {
    let found = batches(log);
    check_same(&found, known, when);
    let mut next = 0;
    for (offset, bytes) in &found {
        assert!(*offset >= next, "{when}: {offset} overlaps");
        next = BatchHeader::parse(bytes).expect("a header").next_offset();
    }
    for (offset, _) in known.taken.iter().filter(|(_, (next, _))| *next <= known.durable_end) {
        assert!(found.contains_key(offset), "{when}: {offset} was durable");
    }
    let invented = found.keys().filter(|offset| !known.taken.contains_key(offset)).count();
    assert!(invented <= known.in_flight, "{when}: {invented} of {} asked for", known.in_flight);
}
