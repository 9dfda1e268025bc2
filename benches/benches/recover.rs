//! How fast is a segment recovered, and how many small partitions a second?
//!
//! Recovery checks the CRC of every batch and rebuilds indexes and producers; the files are in the
//! page cache and right, so that nothing is written for a segment. `recover_a_segment/plain_loop`
//! is its limit: the same work with nothing checked twice.
//!
//! The data is made in the temporary directory: some 2 GiB.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siltstone::io::{MapMode, map};
use siltstone::record::codec::Codec;
use siltstone_benches::batches::Shape;
use siltstone_benches::directory::Directory;
use siltstone_benches::limits;
use siltstone_benches::rounds::Watch;
use siltstone_benches::segment::Segment;

const SEGMENT_BYTES: u64 = 512 << 20;
const PARTITIONS: usize = 500;

fn recover_a_segment(c: &mut Criterion) {
    map::guard_process().expect("maps");
    let mut group = c.benchmark_group("recover_a_segment");
    for kibibytes in [1_usize, 16, 64] {
        let home = tempfile::tempdir().expect("a folder");
        let shape = Shape { batch_bytes: kibibytes << 10, codec: Codec::None, producers: 100 };
        let segment = Segment::make(home.path(), "topic", SEGMENT_BYTES, shape).expect("made");
        group.throughput(Throughput::Bytes(segment.size_bytes));
        for (how, maps) in [("by_map", MapMode::Always), ("host_safe", MapMode::Never)] {
            group.bench_function(BenchmarkId::new(how, format!("{kibibytes}k")), |b| {
                b.iter(|| segment.recover(maps).expect("recovered"));
            });
            let how = format!("plain_loop_{how}");
            group.bench_function(BenchmarkId::new(how, format!("{kibibytes}k")), |b| {
                b.iter(|| limits::recover(&segment.log, maps).expect("walked"));
            });
        }
    }
    group.finish();
}

fn recover_unclean_partitions(c: &mut Criterion) {
    map::guard_process().expect("maps");
    let mut group = c.benchmark_group("recover_unclean_partitions");
    let home = tempfile::tempdir().expect("a folder");
    let logs = home.path().join("logs");
    let mut directory = Directory::make(&logs, PARTITIONS, 3).expect("made");
    group.throughput(Throughput::Bytes(directory.log_bytes));
    for threads in [1, 2] {
        group.bench_function(BenchmarkId::new("threads", threads), |b| {
            b.iter_custom(|times| {
                let mut whole = Duration::ZERO;
                for _ in 0..times {
                    directory.kill_again().expect("killed");
                    let watch = Watch::start();
                    directory.recover(threads, MapMode::Always).expect("recovered");
                    whole += Duration::from_secs_f64(watch.stop().seconds);
                }
                whole
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = recover_a_segment, recover_unclean_partitions
}
criterion_main!(benches);
