//! Three partitions are rebuilt from remote storage in one call, and the power goes, or the disk
//! fails, at every operation: each partition is then as it was, or as it was to be.
//!
//! The first was empty, the second has a log of its own, the third is not there yet. They are
//! looked at through a log that is opened alone, and through a recovery of the whole directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use siltstone::dir::engine::{Engine, EngineOptions};
use siltstone::dir::recover::{
    DirRecoverOptions, PartitionDone, PartitionSettings, recover_log_dir,
};
use siltstone::io::sim::Operation;
use siltstone::io::{SimDisk, Storage};
use siltstone::log::recover::Silent;
use siltstone::log::{Log, LogConfig, OpenOptions};
use siltstone::record::validate::Batches;
use siltstone::state::snapshot::write_snapshot;
use siltstone::state::{OffsetCheckpoint, ProducerEntry};
use siltstone::tier::{AuxJob, AuxLimits, AuxPlace, AuxResult, RemoteSegment, build_aux_bulk};
use siltstone_tests::live::{NOW_MS, records};
use siltstone_tests::remote::{Remote, segment};

const LOGS: &str = "/logs";
const EIO: i32 = 5;
const EACCES: i32 = 13;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
/// What a power cut spares: the extremes, and mixtures.
const SEEDS: [u64; 4] = [0, 1, 2, 5];
/// Where the log of the second partition starts and ends before: behind the new end.
const OLD: (i64, i64) = (900, 906);
const START: i64 = 30;
const NEXT: i64 = 565;

fn config() -> LogConfig {
    LogConfig {
        remote_storage: true,
        segment_bytes: 200,
        segment_index_bytes: 240,
        index_interval_bytes: 100,
        ..LogConfig::default()
    }
}

fn dir(number: i32) -> PathBuf {
    Path::new(LOGS).join(format!("orders-{number}"))
}

struct Scene {
    disk: SimDisk,
    remote: Remote,
    segments: Vec<RemoteSegment>,
    snapshot: Vec<u8>,
}

impl Scene {
    fn new() -> Self {
        let disk = SimDisk::new();
        disk.put_dir(Path::new(LOGS), None).expect("a disk");
        let remote = Remote::default();
        let producer = ProducerEntry {
            last_offset: 500,
            last_sequence: 4,
            offset_delta: 4,
            last_timestamp: NOW_MS,
            producer_epoch: 1,
            ..ProducerEntry::empty(7)
        };
        let snapshot = write_snapshot([&producer]);
        let segments: Vec<_> = (0..3).map(|n| segment(n, 495, NEXT - 1, &[(2, 495)])).collect();
        for segment in &segments {
            remote.put_aux(segment, "0\n2\n0 30\n2 305\n", &snapshot);
        }
        open(&disk, 0, 0, true).expect("a log").close().expect("a clean stop");
        let log = open(&disk, 1, 0, true).expect("a log");
        log.truncate_fully_and_start_at(OLD.0, None, NOW_MS).expect("a log");
        for offset in OLD.0..OLD.1 {
            let batch = records(1).at(offset).epoch(1).producer(3, 0, 0).build();
            // A producer writes one batch; the others are of nobody.
            let bytes =
                if offset == OLD.0 { batch } else { records(1).at(offset).epoch(1).build() };
            log.append_as_follower(&bytes, 9, NOW_MS).expect("an append");
        }
        log.close().expect("a clean stop");
        let lines =
            [("log-start-offset-checkpoint", OLD.0), ("recovery-point-offset-checkpoint", OLD.1)];
        for (name, offset) in lines {
            let mut checkpoint = OffsetCheckpoint::new();
            checkpoint.set("orders", 0, 0);
            checkpoint.set("orders", 1, offset);
            disk.put(&Path::new(LOGS).join(name), checkpoint.format(), None).expect("a disk");
        }
        let marker = b"{\"version\":0,\"brokerEpoch\":12}".to_vec();
        disk.put(&Path::new(LOGS).join(".kafka_cleanshutdown"), marker, None).expect("a disk");
        disk.settle();
        Scene { disk: disk.fork(), remote, segments, snapshot }
    }

    fn rebuild(&self, disk: &SimDisk) -> Vec<AuxResult<siltstone::tier::AuxInstalled>> {
        let dirs: Vec<PathBuf> = (0..3).map(dir).collect();
        let jobs: Vec<_> = (dirs.iter().zip(&self.segments))
            .map(|(dir, segment)| AuxJob {
                place: AuxPlace::Dir(dir),
                segment,
                log_start_offset: START,
            })
            .collect();
        build_aux_bulk(disk, &jobs, self.remote.of_aux(), &AuxLimits::new(NOW_MS))
    }

    fn operations(&self) -> Vec<Operation> {
        let disk = self.disk.fork();
        let results = self.rebuild(&disk);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        disk.operations()
    }

    /// Checks each partition through a log of its own; gives which are rebuilt.
    fn check_logs(&self, disk: &SimDisk, when: &str) -> Vec<bool> {
        let is_clean = has_marker(disk);
        let checks = (0..3).map(|number| {
            let start = line(disk, "log-start-offset-checkpoint", number);
            let when = format!("{when}, partition {number}");
            let log = open(disk, number, start, is_clean)
                .unwrap_or_else(|error| panic!("{when}: {error}"));
            let is_rebuilt = self.check_log(&log, number, &when);
            log.close().unwrap_or_else(|error| panic!("{when}: {error}"));
            let names = disk.list(&dir(number)).expect("a directory");
            let is_left = |name: &str| name.contains("aux-rebuild");
            assert!(!names.iter().any(|e| is_left(&e.name.to_string_lossy())), "{when}: {names:?}");
            is_rebuilt
        });
        checks.collect()
    }

    fn check_log(&self, log: &Log, number: i32, when: &str) -> bool {
        let epochs = log.leader_epochs();
        let epochs: Vec<_> = epochs.entries().iter().map(|e| (e.epoch, e.start_offset)).collect();
        let offsets = (log.log_start_offset(), log.local_log_start_offset(), log.log_end_offset());
        let producers = log.with_producers(|state| {
            state.producers().map(|producer| producer.entry().producer_id).collect::<Vec<_>>()
        });
        let producers = producers.expect("a writer's seat");
        if offsets == (START, NEXT, NEXT) {
            assert_eq!(epochs, [(0, 30), (2, 305)], "{when}");
            assert_eq!(producers, [7], "{when}");
            return true;
        }
        if number == 1 {
            assert_eq!(offsets, (OLD.0, OLD.0, OLD.1), "{when}");
            assert_eq!((epochs, producers), (vec![(1, OLD.0)], vec![3]), "{when}");
            let options = siltstone::log::FetchOptions {
                max_bytes: u32::MAX,
                isolation: siltstone::log::Isolation::LogEnd,
                min_one_message: true,
            };
            let mut offset = OLD.0;
            while offset < OLD.1 {
                let fetched = log.read(offset, &options).expect("bytes");
                let batches = Batches::new(&fetched.bytes).map(|batch| batch.expect("a batch"));
                offset = batches.last().expect("a batch").header.next_offset();
            }
        } else {
            assert_eq!((offsets, epochs.len(), producers.len()), ((0, 0, 0), 0, 0), "{when}");
        }
        false
    }

    /// The whole directory is recovered, then opened as an engine does.
    fn check_directory(&self, disk: &SimDisk, wanted: &[bool], when: &str) {
        let failed = std::sync::Mutex::new(Vec::new());
        let done = |done: PartitionDone<'_>| {
            if !matches!(done.result, siltstone::dir::recover::PartitionResult::Sound(_)) {
                failed.lock().expect("no panic").push(format!("{done:?}"));
            }
        };
        let settings = |_: &str| PartitionSettings { remote_storage: true, ..Default::default() };
        let options = DirRecoverOptions::new(&settings, &done, NOW_MS);
        let recovered = disk.fork();
        let report = recover_log_dir(&recovered, Path::new(LOGS), &options, &Silent);
        let report = report.unwrap_or_else(|error| panic!("{when}: {error}"));
        let failed = failed.into_inner().expect("no panic");
        assert!(failed.is_empty() && report.is_clean, "{when}: {failed:?}");
        // A log that was rebuilt is not what its broker epoch stood for.
        let marker = recovered.read(&Path::new(LOGS).join(".kafka_cleanshutdown"), 100);
        let marker = String::from_utf8(marker.expect("a marker")).expect("text");
        assert!(!wanted.contains(&true) || marker.ends_with(":-1}"), "{when}: {marker}");
        assert_eq!(self.check_logs(&recovered, when), wanted, "{when}");
        self.check_engine(disk, wanted, when);
    }

    fn check_engine(&self, disk: &SimDisk, wanted: &[bool], when: &str) {
        let disk = disk.fork();
        let settings = |_: &str| config();
        let options = EngineOptions::new(&settings, NOW_MS);
        let (engine, report) = Engine::open(Arc::new(disk.clone()), &[LOGS.into()], &options)
            .unwrap_or_else(|error| panic!("{when}: {error}"));
        assert!(report.refused.is_empty(), "{when}: {report:?}");
        for (number, wanted) in (0..).zip(wanted) {
            let Some(log) = engine.log("orders", number).expect("a log") else {
                assert!(!wanted, "{when}: no partition {number}");
                continue;
            };
            assert_eq!(self.check_log(&log, number, when), *wanted, "{when}");
        }
    }
}

fn open(disk: &SimDisk, number: i32, start: i64, is_clean: bool) -> siltstone::Result<Log> {
    let options = OpenOptions {
        clean_shutdown: is_clean,
        log_start_offset: start,
        now_ms: NOW_MS,
        ..OpenOptions::default()
    };
    Log::open(Arc::new(disk.clone()), &dir(number), config(), &options)
}

fn has_marker(disk: &SimDisk) -> bool {
    disk.metadata(&Path::new(LOGS).join(".kafka_cleanshutdown")).is_ok()
}

fn line(disk: &SimDisk, name: &str, number: i32) -> i64 {
    let bytes = disk.read(&Path::new(LOGS).join(name), 1 << 20).expect("a checkpoint");
    let checkpoint = OffsetCheckpoint::parse(&bytes).expect("a checkpoint");
    checkpoint.get("orders", number).unwrap_or(0)
}

#[test]
fn a_replica_that_is_rebuilt_where_it_is_empty_already_has_the_same_files_again() {
    let scene = Scene::new();
    let disk = scene.disk.fork();
    let rebuilt = || -> BTreeMap<String, Vec<u8>> {
        let results = scene.rebuild(&disk);
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        let entries = disk.list(&dir(0)).expect("a directory").into_iter();
        let files = entries.map(|entry| {
            let name = entry.name.to_string_lossy().into_owned();
            let bytes = disk.read(&dir(0).join(&name), 1 << 20).expect("a file");
            (name, bytes)
        });
        files.collect()
    };
    let first = rebuilt();
    assert_eq!(rebuilt(), first);
    // What has something in it, or another name, does not stay.
    for (name, bytes) in
        [(format!("{NEXT:020}.timeindex"), vec![7; 12]), (format!("{NEXT}.index"), vec![])]
    {
        disk.put(&dir(0).join(name), bytes, None).expect("a disk");
    }
    assert_eq!(rebuilt(), first);
}

#[test]
fn an_uncut_rebuild_leaves_what_kafka_takes_over() {
    let scene = Scene::new();
    let disk = scene.disk.fork();
    assert!(scene.rebuild(&disk).iter().all(Result::is_ok));
    for number in 0..3 {
        let names = disk.list(&dir(number)).expect("a directory");
        let names: Vec<_> = names.iter().map(|e| e.name.to_string_lossy().into_owned()).collect();
        assert_eq!(
            names,
            [
                "00000000000000000565.index",
                "00000000000000000565.log",
                "00000000000000000565.snapshot",
                "00000000000000000565.timeindex",
                "leader-epoch-checkpoint",
                "partition.metadata",
            ]
        );
        let read = |name: &str| disk.read(&dir(number).join(name), 1000).expect("a file");
        assert_eq!(read("00000000000000000565.snapshot"), scene.snapshot);
        assert_eq!(read("leader-epoch-checkpoint"), b"0\n2\n0 30\n2 305\n");
        assert_eq!(line(&disk, "log-start-offset-checkpoint", number), START);
        assert_eq!(line(&disk, "recovery-point-offset-checkpoint", number), NEXT);
        assert_eq!(line(&disk, "replication-offset-checkpoint", number), NEXT);
    }
    let marker = disk.read(&Path::new(LOGS).join(".kafka_cleanshutdown"), 100).expect("a marker");
    assert_eq!(marker, b"{\"version\":0,\"brokerEpoch\":-1}");
    assert_eq!(scene.check_logs(&disk, "uncut"), [true; 3]);
    assert!(scene.rebuild(&disk).iter().all(Result::is_ok), "a second time");
    scene.check_directory(&disk, &[true; 3], "uncut");
}

#[test]
fn the_power_goes_at_every_operation_and_each_partition_is_as_before_or_rebuilt() {
    // spec: tiered-faults T4
    let scene = Scene::new();
    let operations = scene.operations();
    let seen: Vec<Vec<bool>> = (0..operations.len())
        .into_par_iter()
        .filter(|number| operations[*number].is_change)
        .flat_map_iter(|number| {
            let disk = scene.disk.fork();
            disk.crash_at(number.try_into().expect("a number"));
            let results = scene.rebuild(&disk);
            assert!(disk.is_off(), "operation {number} did not come");
            assert!(results.iter().any(Result::is_err) || number > operations.len() - 8);
            let mut seen = Vec::new();
            for seed in SEEDS {
                let when = format!("cut at {number} ({}), seed {seed}", operations[number]);
                let left = disk.after_crash(seed);
                let whole = left.fork();
                let rebuilt = scene.check_logs(&left, &when);
                if seed == 2 {
                    scene.check_directory(&whole, &rebuilt, &when);
                }
                // It can be rebuilt from what is left.
                let results = scene.rebuild(&whole);
                assert!(results.iter().all(Result::is_ok), "{when}: {results:?}");
                assert_eq!(scene.check_logs(&whole, &when), [true; 3], "{when}");
                seen.push(rebuilt);
            }
            seen
        })
        .collect();
    println!("{} operations, {} states looked at", operations.len(), seen.len());
    for number in 0..3 {
        for is_rebuilt in [false, true] {
            assert!(seen.iter().any(|it| it[number] == is_rebuilt), "{number}: {is_rebuilt}");
        }
    }
}

#[test]
fn settling_is_cut_at_every_operation_too() {
    // spec: tiered-faults T4
    let scene = Scene::new();
    let operations = scene.operations();
    let numbers: Vec<usize> =
        (0..operations.len()).filter(|number| operations[*number].is_change).collect();
    let cuts: usize = numbers
        .par_iter()
        .step_by(12)
        .map(|number| {
            let disk = scene.disk.fork();
            disk.crash_at((*number).try_into().expect("a number"));
            drop(scene.rebuild(&disk));
            let left = disk.after_crash(5);
            let trial = left.fork();
            let wanted = scene.check_logs(&trial, "uncut");
            let settle = |disk: &SimDisk| {
                let settings = |_: &str| config();
                let options = EngineOptions::new(&settings, NOW_MS);
                drop(Engine::open(Arc::new(disk.clone()), &[LOGS.into()], &options));
            };
            let trial = left.fork();
            settle(&trial);
            let count = trial.change_count();
            for change in 0..count {
                let again = left.fork();
                again.crash_at_change(change);
                settle(&again);
                for seed in [0, 1, 5] {
                    let when = format!("cut at {number}, then at change {change}, seed {seed}");
                    assert_eq!(scene.check_logs(&again.after_crash(seed), &when), wanted, "{when}");
                }
            }
            usize::try_from(count).expect("a count")
        })
        .sum();
    println!("{cuts} cuts while settling");
}

#[test]
fn a_rebuild_after_one_that_was_cut_is_cut_at_every_operation_too() {
    // What was left was settled without its lines: the log was taken for one that starts at 900 and
    // ends at 565, and was emptied.
    let scene = Scene::new();
    let is_marked = |disk: &SimDisk| disk.metadata(&dir(1).join("aux-rebuild.mark")).is_ok();
    let left: Vec<(usize, SimDisk)> = (0..scene.operations().len())
        .filter_map(|number| {
            let disk = scene.disk.fork();
            disk.crash_at(number.try_into().expect("a number"));
            drop(scene.rebuild(&disk));
            let left = disk.after_crash(5);
            is_marked(&left).then_some((number, left))
        })
        .step_by(9)
        .collect();
    assert!(left.len() > 2, "{}", left.len());
    let cuts: usize = left
        .par_iter()
        .map(|(number, left)| {
            let trial = left.fork();
            assert!(scene.rebuild(&trial).iter().all(Result::is_ok), "cut at {number}");
            let count = trial.change_count();
            for change in 0..count {
                let again = left.fork();
                again.crash_at_change(change);
                drop(scene.rebuild(&again));
                for seed in [0, 1, 5] {
                    let when = format!("cut at {number}, then at change {change}, seed {seed}");
                    let left = again.after_crash(seed);
                    let rebuilt = scene.check_logs(&left.fork(), &when);
                    if seed == 5 && change % 4 == 0 {
                        scene.check_directory(&left, &rebuilt, &when);
                    }
                }
            }
            usize::try_from(count).expect("a count")
        })
        .sum();
    println!("{cuts} cuts of {} rebuilds", left.len());
}

#[test]
fn every_operation_fails_once_and_each_partition_is_as_before_or_rebuilt() {
    let scene = Scene::new();
    let operations = scene.operations();
    let told: usize = (0..operations.len())
        .into_par_iter()
        .map(|number| {
            let mut told = 0;
            let is_change = operations[number].is_change;
            let errnos: &[i32] = if is_change { &[EIO, ENOSPC] } else { &[EIO, EACCES, EMFILE] };
            for &errno in errnos {
                let disk = scene.disk.fork();
                disk.fail_at(number.try_into().expect("a number"), errno);
                let results = scene.rebuild(&disk);
                told += results.iter().filter(|result| result.is_err()).count();
                let when = format!("error {errno} at {number} ({})", operations[number]);
                for left in [disk.fork(), disk.after_crash(5)] {
                    let whole = left.fork();
                    let rebuilt = scene.check_logs(&left, &when);
                    for (number, result) in results.iter().enumerate() {
                        assert!(rebuilt[number] || result.is_err(), "{when}: {result:?}");
                    }
                    if errno == EIO {
                        scene.check_directory(&whole, &rebuilt, &when);
                    }
                    let results = scene.rebuild(&whole);
                    assert!(results.iter().all(Result::is_ok), "{when}: {results:?}");
                }
            }
            told
        })
        .sum();
    println!("{} operations, {told} failures told", operations.len());
    assert!(told > 100, "{told}");
}

#[test]
fn an_open_log_is_rebuilt_and_cut_at_every_operation() {
    // spec: tiered-faults T4
    let scene = Scene::new();
    let rebuild = |disk: &SimDisk| {
        let log = open(disk, 1, OLD.0, true)?;
        let job = AuxJob {
            place: AuxPlace::Log(&log),
            segment: &scene.segments[1],
            log_start_offset: START,
        };
        let limits = AuxLimits::new(NOW_MS);
        let mut results = build_aux_bulk(disk, &[job], scene.remote.of_aux(), &limits);
        let result = results.remove(0);
        Ok::<_, siltstone::Error>((log, result))
    };
    let disk = scene.disk.fork();
    let (log, result) = rebuild(&disk).expect("a log");
    result.expect("a rebuild");
    assert!(scene.check_log(&log, 1, "uncut"));
    drop(log);
    let operations = disk.operations();
    // The host writes its checkpoints later; a crash comes before it.
    let check = |disk: &SimDisk, when: &str| {
        let start = line(disk, "log-start-offset-checkpoint", 1);
        let log = open(disk, 1, start, false).unwrap_or_else(|error| panic!("{when}: {error}"));
        scene.check_log(&log, 1, when)
    };
    let (mut before, mut after) = (0, 0);
    for (number, operation) in (0..).zip(&operations) {
        for errno in [0, EIO, ENOSPC, EMFILE] {
            let disk = scene.disk.fork();
            let when = format!("error {errno} (0: cut) at {number} ({operation})");
            if errno == 0 {
                disk.crash_at(number);
            } else {
                disk.fail_at(number, errno);
            }
            if let Ok((log, result)) = rebuild(&disk) {
                if result.is_ok() {
                    assert!(scene.check_log(&log, 1, &when));
                } else if !log.is_failed() && errno != 0 {
                    assert!(!scene.check_log(&log, 1, &when), "{when}");
                    let marked = disk.metadata(&dir(1).join("aux-rebuild.mark")).is_ok();
                    assert!(!marked, "{when}");
                }
            }
            for seed in SEEDS {
                let is_rebuilt = check(&disk.after_crash(seed), &format!("{when}, seed {seed}"));
                (before, after) = (before + i32::from(!is_rebuilt), after + i32::from(is_rebuilt));
            }
        }
    }
    println!("{} operations: {before} times as before, {after} times rebuilt", operations.len());
    assert!(before > 100 && after > 100);
}
