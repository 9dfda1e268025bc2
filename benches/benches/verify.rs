//! How fast is a partition verified: the CRC of every batch, or every record?
//!
//! Throughput is in bytes of the log, compressed as they lie there.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siltstone::io::{Disk, MapMode, map};
use siltstone::log::verify::Depth;
use siltstone::log::{VerifyOptions, verify_partition};
use siltstone::record::codec::Codec;
use siltstone_benches::batches::Shape;
use siltstone_benches::segment::Segment;

const SEGMENT_BYTES: u64 = 256 << 20;

fn verify(segment: &Segment, depth: Depth, maps: MapMode) {
    let options = VerifyOptions { depth, maps, records_listed_max: 0, ..VerifyOptions::default() };
    let report = verify_partition(&Disk::new(), &segment.dir, &options).expect("looked at");
    assert!(report.problems.is_empty());
}

fn verify_every_crc(c: &mut Criterion) {
    map::guard_process().expect("maps");
    let mut group = c.benchmark_group("verify_every_crc");
    for kibibytes in [1_usize, 16, 64] {
        let home = tempfile::tempdir().expect("a folder");
        let shape = Shape { batch_bytes: kibibytes << 10, codec: Codec::None, producers: 100 };
        let segment = Segment::make(home.path(), "topic", SEGMENT_BYTES, shape).expect("made");
        group.throughput(Throughput::Bytes(segment.size_bytes));
        for (how, maps) in [("by_map", MapMode::Always), ("host_safe", MapMode::Never)] {
            group.bench_function(BenchmarkId::new(how, format!("{kibibytes}k")), |b| {
                b.iter(|| verify(&segment, Depth::Batches, maps));
            });
        }
    }
    group.finish();
}

fn verify_every_record(c: &mut Criterion) {
    map::guard_process().expect("maps");
    let mut group = c.benchmark_group("verify_every_record");
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let home = tempfile::tempdir().expect("a folder");
        let shape = Shape { batch_bytes: 16 << 10, codec, producers: 100 };
        let segment = Segment::make(home.path(), "topic", SEGMENT_BYTES / 4, shape).expect("made");
        group.throughput(Throughput::Bytes(segment.size_bytes));
        group.bench_function(BenchmarkId::new(codec.as_str(), "16k"), |b| {
            b.iter(|| verify(&segment, Depth::Records, MapMode::Always));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = verify_every_crc, verify_every_record
}
criterion_main!(benches);
