//! Threads that write and read one log at the same time, in orders that a model checker picks.
//!
//! Under `--cfg loom` every order of a few steps, under `--cfg shuttle` random orders of many.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;
use std::sync::Arc;

#[cfg(loom)]
use loom::thread::spawn;
#[cfg(shuttle)]
use shuttle::thread::spawn;

#[cfg(shuttle)]
use super::{AppendAs, AppendRequest, AppendScratch, Cleaner, CleanerOptions, append_many};
use super::{FetchOptions, Isolation, Log, LogConfig, OpenOptions};
use crate::error::Kind;
use crate::io::SimDisk;
#[cfg(shuttle)]
use crate::io::Storage;
use crate::record::builder::BatchOptions;
use crate::record::builder::samples::batch_of_one;
use crate::record::validate::Batches;
use crate::segment::OpenFiles;

const NOW_MS: i64 = 1_700_000_000_000;

/// A log whose segments hold two batches.
fn log() -> Arc<Log> {
    log_on(&SimDisk::new())
}

fn log_on(disk: &SimDisk) -> Arc<Log> {
    log_with(disk, 100)
}

/// A log whose files are let go of when there are more.
fn log_with(disk: &SimDisk, open_files_max: usize) -> Arc<Log> {
    let config = LogConfig {
        segment_bytes: 200,
        segment_index_bytes: 80,
        index_interval_bytes: 50,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    };
    let open_files = OpenFiles::new(open_files_max);
    let options = OpenOptions { now_ms: NOW_MS, open_files, ..OpenOptions::default() };
    Arc::new(Log::open(Arc::new(disk.clone()), Path::new("/orders-0"), config, &options).unwrap())
}

/// The batch of one record that is appended at an offset in an epoch: not one of another epoch has
/// its size, so that none begins where another did.
fn batch(offset: i64, leader_epoch: i32) -> Vec<u8> {
    let options = BatchOptions { base_offset: offset, leader_epoch, ..BatchOptions::default() };
    let padding = ".".repeat(usize::try_from(leader_epoch).unwrap() % 8);
    batch_of_one(options, NOW_MS + offset, format!("{leader_epoch}/{offset}{padding}").as_bytes())
}

fn append(log: &Log, leader_epoch: i32) {
    let offset = log.log_end_offset();
    log.append_as_follower(&batch(offset, leader_epoch), i32::MAX, NOW_MS).unwrap();
}

/// What a reader gets from an offset is what was appended there.
fn read(log: &Log, offset: i64, isolation: Isolation) -> Option<i64> {
    let options = FetchOptions { max_bytes: 1000, isolation, min_one_message: true };
    let fetched = match log.read(offset, &options) {
        Ok(fetched) => fetched,
        Err(error) if matches!(error.kind(), Kind::OutOfRange | Kind::Closed) => return None,
        Err(error) => panic!("{error}"),
    };
    let mut next = offset;
    for found in Batches::new(&fetched.bytes) {
        let found = found.unwrap();
        let (base, epoch) = (found.header.base_offset, found.header.leader_epoch);
        assert_eq!(base, next, "a gap, or another offset than was asked for");
        assert_eq!(found.bytes, batch(base, epoch), "not what was appended");
        next = found.header.next_offset();
    }
    Some(next)
}

/// Whoever sees an end reads up to it, however the segments change meanwhile.
fn an_end_that_is_seen_can_be_read(
    open_files_max: usize,
    (before, appends): (usize, usize),
    reads: usize,
) {
    let log = log_with(&SimDisk::new(), open_files_max);
    (0..before).for_each(|_| append(&log, 0));
    let writer = Arc::clone(&log);
    let writer = spawn(move || {
        for _ in 0..appends {
            append(&writer, 0);
            let end = writer.log_end_offset();
            writer.update_high_watermark(end).unwrap();
        }
    });
    for _ in 0..reads {
        // In this order each is at most what the next one says.
        let stable = log.last_stable_offset();
        let high = log.high_watermark();
        let end = log.log_end_offset();
        assert!(stable <= high && high <= end, "{stable}, {high}, {end}");
        if end > 0 {
            let next = read(&log, end - 1, Isolation::LogEnd);
            assert!(next.is_some_and(|next| next >= end), "{next:?} of {end}");
            // What was read is an offset to go on at.
            let now = log.log_end_offset();
            assert!(next.is_some_and(|next| next <= now), "{next:?} beyond {now}");
        }
        if high > 0 {
            let next = read(&log, high - 1, Isolation::HighWatermark);
            assert!(next.is_some_and(|next| next >= high), "{next:?} of {high}");
        }
    }
    writer.join().unwrap();
    assert_eq!(log.log_end_offset(), i64::try_from(before + appends).unwrap());
}

/// A lease reads what was there, though its segment was deleted and the log is closed.
fn a_lease_outlives_its_segment(batches: usize) {
    let log = log();
    (0..batches).for_each(|_| append(&log, 0));
    log.roll(NOW_MS).unwrap();
    log.update_high_watermark(log.log_end_offset()).unwrap();
    let options =
        FetchOptions { max_bytes: 1000, isolation: Isolation::LogEnd, min_one_message: true };
    let reader = Arc::clone(&log);
    let reader = spawn(move || {
        let Ok(fetched) = reader.locate(0, &options) else { return };
        let bytes = fetched.range.unwrap().read().unwrap();
        let first = Batches::new(&bytes).next().unwrap().unwrap();
        assert_eq!(first.bytes, batch(0, 0));
    });
    log.maybe_increment_log_start_offset(2).unwrap();
    assert!(log.delete_old_segments(NOW_MS).unwrap() > 0);
    log.delete_due_files(NOW_MS).unwrap();
    log.close().unwrap();
    reader.join().unwrap();
}

/// A round of compaction ends when its log is deleted, moved or closed: then it leaves no file, and
/// does not touch another log that gets the name.
#[cfg(shuttle)]
fn a_round_of_compaction_ends_with_its_log(end: fn(&Log)) {
    let disk = SimDisk::new();
    let log = log_on(&disk);
    (0..6).for_each(|_| append(&log, 0));
    log.update_high_watermark(6).unwrap();
    let compacted = Arc::clone(&log);
    let range = log.cleanable(None, NOW_MS).unwrap();
    let compactor = spawn(move || {
        let options = CleanerOptions { step_bytes: 1, ..CleanerOptions::default() };
        let mut cleaner = Cleaner::new(options);
        let mut round = match compacted.begin_compaction(&mut cleaner, &range, NOW_MS) {
            Ok(round) => round,
            Err(error) => {
                let kinds = [Kind::Conflict, Kind::Cancelled, Kind::Closed, Kind::NotFound];
                assert!(kinds.contains(&error.kind()), "{error}");
                return;
            }
        };
        loop {
            match round.step() {
                Ok(Some(_)) => break,
                Ok(None) => {}
                Err(error) if error.kind() == Kind::Conflict => {
                    assert!(!round.is_abandoned());
                    shuttle::thread::yield_now();
                }
                Err(error) => {
                    let kinds = [Kind::Cancelled, Kind::Closed];
                    assert!(kinds.contains(&error.kind()), "{error}");
                    break;
                }
            }
        }
    });
    end(&log);
    let names = |dir: &str| {
        let listed = disk.list(Path::new(dir)).unwrap_or_default();
        let names: Vec<_> = listed.into_iter().map(|entry| entry.name).collect();
        names
    };
    let before = names("/orders-0");
    compactor.join().unwrap();
    assert_eq!(names("/orders-0"), before);
}

/// Everything at once: what is read was appended, in one epoch or the other.
#[cfg(shuttle)]
fn readers_see_what_was_appended(open_files_max: usize) {
    let log = log_with(&SimDisk::new(), open_files_max);
    (0..3).for_each(|_| append(&log, 0));
    let mut threads = Vec::new();
    for reader in 0..2 {
        let log = Arc::clone(&log);
        threads.push(spawn(move || {
            for offset in [0, 2, 3, 4, 1] {
                let isolation = [Isolation::LogEnd, Isolation::Committed][reader];
                read(&log, offset, isolation);
            }
        }));
    }
    let flusher = Arc::clone(&log);
    threads.push(spawn(move || {
        // A closed log has nothing to flush.
        let _ = flusher.flush(false, NOW_MS);
    }));
    append(&log, 0);
    log.roll(NOW_MS).unwrap();
    append(&log, 0);
    log.truncate_to(2, NOW_MS).unwrap();
    (0..3).for_each(|_| append(&log, 1));
    log.update_high_watermark(4).unwrap();
    log.maybe_increment_log_start_offset(1).unwrap();
    log.delete_old_segments(NOW_MS).unwrap();
    log.delete_due_files(NOW_MS).unwrap();
    log.close().unwrap();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Of two writers one is turned away; nothing is written twice or lost.
fn a_second_writer_is_turned_away() {
    let log = log();
    let write = |log: Arc<Log>| {
        move || match log.append_as_raft_leader(&batch(0, 0), 0, NOW_MS) {
            Ok(_) => 1,
            // The other one was first, or is at it.
            Err(_) => 0,
        }
    };
    let other = spawn(write(Arc::clone(&log)));
    let own = write(Arc::clone(&log))();
    let done = own + other.join().unwrap();
    assert_eq!(log.log_end_offset(), i64::from(done > 0));
    assert!(done == 1, "{done} writers appended at offset 0");
    assert_eq!(read(&log, 0, Isolation::LogEnd), Some(1));
}

/// Two that write to the same logs in opposite orders, and one that moves their high watermarks,
/// never wait for one another.
#[cfg(shuttle)]
fn writers_of_many_logs_do_not_wait_for_one_another() {
    let logs = [log(), log()];
    let mut threads = Vec::new();
    for order in [[0, 1], [1, 0]] {
        let logs = logs.clone();
        threads.push(spawn(move || {
            let mut bytes = [batch(0, 0), batch(0, 0)];
            let [one, other] = &mut bytes;
            let append = AppendAs::Follower { leader_epoch: i32::MAX, now_ms: NOW_MS };
            let mut requests = [
                AppendRequest { log: &logs[order[0]], records: one, append },
                AppendRequest { log: &logs[order[1]], records: other, append },
            ];
            append_many(&mut requests, &mut AppendScratch::new());
        }));
    }
    for log in logs.clone() {
        threads.push(spawn(move || {
            log.update_high_watermark(0).unwrap();
        }));
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(logs.iter().any(|log| log.log_end_offset() == 1));
}

#[cfg(loom)]
mod every_order {
    fn model(run: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        // More steps than these would take days; faults need few changes of threads.
        model.preemption_bound = Some(2);
        model.max_branches = 100_000;
        model.check(run);
    }

    #[test]
    fn an_end_that_is_seen_can_be_read() {
        model(|| super::an_end_that_is_seen_can_be_read(100, (0, 2), 1));
    }

    #[test]
    fn files_are_let_go_of_while_they_are_used() {
        model(|| super::an_end_that_is_seen_can_be_read(0, (0, 2), 1));
    }

    /// The append makes a new segment while another thread looks for one.
    #[test]
    fn a_segment_that_is_made_is_found() {
        model(|| super::an_end_that_is_seen_can_be_read(100, (2, 1), 1));
    }

    #[test]
    fn a_lease_outlives_its_segment() {
        model(|| super::a_lease_outlives_its_segment(2));
    }

    #[test]
    fn a_second_writer_is_turned_away() {
        model(super::a_second_writer_is_turned_away);
    }
}

#[cfg(shuttle)]
mod random_orders {
    use super::*;

    /// Orders that are tried of each, half of them by chance and half with few changes of threads.
    const ORDERS: usize = 2000;

    fn check(run: impl Fn() + Sync + Send + Clone + 'static) {
        shuttle::check_random(run.clone(), ORDERS / 2);
        shuttle::check_pct(run, ORDERS / 2, 3);
    }

    #[test]
    fn an_end_that_is_seen_can_be_read() {
        check(|| super::an_end_that_is_seen_can_be_read(100, (0, 7), 5));
    }

    #[test]
    fn files_are_let_go_of_while_they_are_used() {
        check(|| super::an_end_that_is_seen_can_be_read(0, (0, 7), 5));
    }

    #[test]
    fn a_lease_outlives_its_segment() {
        check(|| super::a_lease_outlives_its_segment(4));
    }

    #[test]
    fn a_second_writer_is_turned_away() {
        check(super::a_second_writer_is_turned_away);
    }

    #[test]
    fn writers_of_many_logs_do_not_wait_for_one_another() {
        check(super::writers_of_many_logs_do_not_wait_for_one_another);
    }

    /// What is asked for until nobody else is writing.
    fn patiently(mut act: impl FnMut() -> crate::error::Result<()>) {
        loop {
            match act() {
                Err(error) if error.kind() == Kind::Conflict => shuttle::thread::yield_now(),
                other => return other.unwrap(),
            }
        }
    }

    #[test]
    fn a_round_of_compaction_ends_when_its_log_is_deleted() {
        check(|| {
            super::a_round_of_compaction_ends_with_its_log(|log| {
                patiently(|| log.delete());
                let disk = log.folder.storage();
                // The name is free at once, and whatever gets it is left alone.
                disk.create_dir(Path::new("/orders-0")).unwrap();
                let name = Path::new("/orders-0/00000000000000000000.log.cleaned");
                drop(disk.open(name, crate::io::OpenMode::Create).unwrap());
            });
        });
    }

    #[test]
    fn a_round_of_compaction_ends_when_its_log_is_closed() {
        check(|| super::a_round_of_compaction_ends_with_its_log(|log| patiently(|| log.close())));
    }

    #[test]
    fn a_round_of_compaction_ends_when_its_log_gets_another_name() {
        check(|| {
            super::a_round_of_compaction_ends_with_its_log(|log| {
                log.rename_dir(Path::new("/orders-0.x-delete"), false).unwrap();
            });
        });
    }

    #[test]
    fn readers_see_what_was_appended_while_the_log_is_cut_and_closed() {
        check(|| super::readers_see_what_was_appended(100));
    }

    #[test]
    fn readers_open_files_while_the_log_is_cut_and_closed() {
        check(|| super::readers_see_what_was_appended(0));
    }
}
