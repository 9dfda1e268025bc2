//! A log that is compacted while it is read and written to: readers meet whole batches with the
//! right records, and what they hold stays good.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use siltstone::Kind;
use siltstone::io::Disk;
use siltstone::log::{
    Cleaner, CleanerOptions, FetchOptions, FileRange, Isolation, Log, LogConfig, OpenOptions,
};
use siltstone::record::BatchReader;
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::Compressor;
use siltstone::record::validate::Batches;
use siltstone_tests::live::NOW_MS;

const APPENDS: i64 = 2000;

/// Three records, whose keys and values their offsets tell.
fn batch(base_offset: i64) -> Vec<u8> {
    let options = BatchOptions { base_offset, leader_epoch: 0, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options).unwrap();
    for offset in base_offset..base_offset + 3 {
        let key = (offset * 7 % 50).to_be_bytes();
        builder.append(NOW_MS, Some(&key), Some(&offset.to_be_bytes())).unwrap();
    }
    let mut bytes = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
    bytes
}

/// Does something again until nobody else has the writer's seat.
fn patiently<T>(mut act: impl FnMut() -> siltstone::Result<T>) -> T {
    loop {
        match act() {
            Ok(done) => return done,
            Err(error) if error.kind() == Kind::Conflict => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Checks the records of whole batches; gives the offset behind them.
fn check(bytes: &[u8], from: i64) -> i64 {
    let mut next = from;
    let mut reader = BatchReader::new(1 << 20);
    for found in Batches::new(bytes) {
        let found = found.unwrap();
        assert!(found.header.last_offset() >= next, "{:?} behind {next}", found.header);
        reader
            .read(&found.header, found.bytes, &mut |record| {
                assert_eq!(record.key, Some(&(record.offset * 7 % 50).to_be_bytes()[..]));
                assert_eq!(record.value, Some(&record.offset.to_be_bytes()[..]));
                ControlFlow::Continue(())
            })
            .unwrap();
        next = found.header.next_offset();
    }
    next
}

fn write(log: &Log) {
    for _ in 0..APPENDS {
        let bytes = batch(log.log_end_offset());
        patiently(|| {
            log.append_as_follower(&bytes, i32::MAX, NOW_MS).map_err(siltstone::Error::from)
        });
        patiently(|| log.update_high_watermark(log.log_end_offset()));
    }
}

fn read(log: &Log, is_over: &AtomicBool, reads: &AtomicI64) {
    let options =
        FetchOptions { max_bytes: 3000, isolation: Isolation::Committed, min_one_message: true };
    let mut leases: Vec<(FileRange, Vec<u8>)> = Vec::new();
    while !is_over.load(Ordering::Acquire) {
        let mut offset = 0;
        while offset < log.log_end_offset() {
            let fetched = log.locate(offset, &options).unwrap();
            let Some(range) = fetched.range else { break };
            let bytes = range.read().unwrap();
            if range.is_intact() {
                let next = check(&bytes, offset);
                assert!(next > offset);
                offset = next;
                reads.fetch_add(1, Ordering::Relaxed);
                leases.push((range, bytes));
            }
        }
        for (range, bytes) in leases.drain(..) {
            assert_eq!(range.read().unwrap(), bytes, "a lease is good after a compaction");
        }
    }
}

#[test]
fn readers_and_the_writer_go_on_while_a_log_is_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig {
        compact: true,
        delete: false,
        segment_bytes: 4000,
        index_interval_bytes: 200,
        segment_index_bytes: 4096,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    };
    let options = OpenOptions {
        open_files: siltstone::segment::OpenFiles::new(3),
        now_ms: NOW_MS,
        ..OpenOptions::default()
    };
    let path = dir.path().join("orders-0");
    let log = Log::open(Arc::new(Disk::new()), &path, config, &options).unwrap();
    let (is_written, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let reads = AtomicI64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            write(&log);
            is_written.store(true, Ordering::Release);
        });
        for _ in 0..2 {
            scope.spawn(|| read(&log, &is_over, &reads));
        }
        let options = CleanerOptions { step_bytes: 2000, ..CleanerOptions::default() };
        let mut cleaner = Cleaner::new(options);
        let (mut checkpoint, mut rounds) = (None, 0);
        loop {
            let is_last = is_written.load(Ordering::Acquire);
            let range = log.cleanable(checkpoint, NOW_MS).unwrap();
            if range.first_uncleanable_offset > range.first_dirty_offset {
                // A round that has begun is taken further, whoever writes meanwhile.
                let done = loop {
                    match log.begin_compaction(&mut cleaner, &range, NOW_MS) {
                        Ok(mut round) => {
                            break loop {
                                if let Some(done) = patiently(|| round.step()) {
                                    break done;
                                }
                            };
                        }
                        Err(error) => assert_eq!(error.kind(), Kind::Conflict, "{error}"),
                    }
                };
                checkpoint = Some(done.end_offset);
                rounds += 1;
                log.delete_due_files(i64::MAX).unwrap();
            }
            if is_last {
                break;
            }
        }
        is_over.store(true, Ordering::Release);
        assert!(rounds > 0, "{rounds} rounds");
    });
    assert!(reads.load(Ordering::Relaxed) > 100);
    assert!(log.size_bytes() < 20_000, "{} bytes", log.size_bytes());
    log.close().unwrap();
}
