//! How fast is a log compacted in which every key was written several times?
//!
//! Throughput is in bytes of the log before. Each round has a log of its own, in the page cache.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::path::Path;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siltstone::io::Disk;
use siltstone::log::{Cleaner, Log, LogConfig, OpenOptions};
use siltstone::record::builder::{BatchBuilder, BatchOptions};
use siltstone::record::codec::{Codec, Compressor};

const LOG_BYTES: u64 = 64 << 20;
const SEGMENT_BYTES: u32 = 16 << 20;
const RECORDS_A_BATCH: i64 = 150;
const VALUE_BYTES: usize = 80;
const NOW_MS: i64 = 1_700_000_000_000;

/// A log whose records have `keys` keys in turn, in an order that jumps.
fn make(dir: &Path, codec: Codec, keys: i64) -> Log {
    let config = LogConfig {
        compact: true,
        delete: false,
        segment_bytes: SEGMENT_BYTES,
        ..LogConfig::default()
    };
    let options = OpenOptions { now_ms: NOW_MS, ..OpenOptions::default() };
    let log = Log::open(Arc::new(Disk::new()), dir, config, &options).expect("a log");
    let mut builder = BatchBuilder::new(BatchOptions::default()).expect("options");
    let (mut compressor, mut bytes) = (Compressor::new(), Vec::new());
    let value: Vec<u8> = (0..VALUE_BYTES).map(|at| b"siltstone"[at % 9]).collect();
    while log.size_bytes() < LOG_BYTES {
        let base_offset = log.log_end_offset();
        let options = BatchOptions {
            base_offset,
            leader_epoch: 0,
            compression: codec.into(),
            ..BatchOptions::default()
        };
        builder.restart(options).expect("options");
        for offset in base_offset..base_offset + RECORDS_A_BATCH {
            let key = (offset * 7919 % keys).to_be_bytes();
            builder.append(NOW_MS, Some(&key), Some(&value)).expect("a record");
        }
        bytes.clear();
        builder.write_to(&mut compressor, &mut bytes).expect("a batch");
        log.append_as_follower(&bytes, 0, NOW_MS).expect("an append");
    }
    log.roll(NOW_MS).expect("a roll");
    log.flush(true, NOW_MS).expect("a flush");
    log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
    log
}

fn compact(c: &mut Criterion) {
    let mut group = c.benchmark_group("compact");
    let home = tempfile::tempdir().expect("a folder");
    let mut cleaner = Cleaner::default();
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        for (name, keys) in [("every_key_4_times", 170_000), ("every_key_once", i64::MAX / 7919)] {
            let mut number = 0;
            group.throughput(Throughput::Bytes(LOG_BYTES));
            group.bench_function(BenchmarkId::new(name, codec.as_str()), |b| {
                let mut setup = || {
                    number += 1;
                    make(&home.path().join(format!("{name}-{codec}{number}-0")), codec, keys)
                };
                let round = |log: Log| {
                    let range = log.cleanable(None, NOW_MS).expect("a range");
                    let done = log.compact(&mut cleaner, &range, NOW_MS).expect("a round");
                    assert!(done.end_offset == range.first_uncleanable_offset);
                    log.delete().expect("a log that goes");
                };
                b.iter_batched(&mut setup, round, BatchSize::PerIteration);
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = compact
}
criterion_main!(benches);
