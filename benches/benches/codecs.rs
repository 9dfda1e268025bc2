//! How fast do payloads open and close, per codec and batch size, with kept contexts?
//!
//! Throughput is in bytes of records, not of their compressed form. Each round takes another
//! payload, so that no branch predictor learns one by heart. `decompress_a_batch/lz4_flex` is the
//! limit of `decompress_a_batch/lz4`: the same blocks, opened by the library without frame and
//! scratch.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siltstone::record::codec::{Codec, Compressor, Decompressor};
use siltstone_benches::payload::json_events;

const SIZES: [usize; 2] = [16 * 1024, 64 * 1024];
const CODECS: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];
const PAYLOADS: u64 = 64;

fn batches(size: usize) -> Vec<Vec<u8>> {
    (0..PAYLOADS).map(|seed| json_events(size, seed)).collect()
}

fn compressed(codec: Codec, size: usize) -> Vec<Vec<u8>> {
    let mut compressor = Compressor::new();
    let compress = |records: Vec<u8>| {
        let mut payload = Vec::new();
        compressor.compress(codec.into(), 2, &records, &mut payload).expect("magic 2 has all");
        payload
    };
    batches(size).into_iter().map(compress).collect()
}

fn throughput(size: usize) -> Throughput {
    Throughput::Bytes(u64::try_from(size).expect("64 bits"))
}

fn decompress_a_batch(c: &mut Criterion) {
    let mut group = c.benchmark_group("decompress_a_batch");
    for size in SIZES {
        group.throughput(throughput(size));
        for codec in CODECS {
            let payloads = compressed(codec, size);
            let mut payloads = payloads.iter().cycle();
            let mut decompressor = Decompressor::new();
            group.bench_function(BenchmarkId::new(codec.as_str(), size), |b| {
                b.iter(|| {
                    let payload = payloads.next().expect("endless");
                    let opened = decompressor.decompress(codec, 2, black_box(payload), size);
                    assert_eq!(black_box(opened).map(<[u8]>::len), Ok(size));
                });
            });
        }
        let blocks: Vec<_> =
            batches(size).iter().map(|records| lz4_flex::block::compress(records)).collect();
        let mut blocks = blocks.iter().cycle();
        let mut out = vec![0; size];
        group.bench_function(BenchmarkId::new("lz4_flex", size), |b| {
            b.iter(|| {
                let block = blocks.next().expect("endless");
                lz4_flex::block::decompress_into(black_box(block), black_box(&mut out))
            });
        });
    }
    group.finish();
}

fn stream_a_large_batch(c: &mut Criterion) {
    let mut group = c.benchmark_group("stream_a_large_batch");
    let size = 4 << 20;
    group.throughput(throughput(size));
    for codec in CODECS {
        let mut payload = Vec::new();
        Compressor::new()
            .compress(codec.into(), 2, &json_events(size, 1), &mut payload)
            .expect("magic 2 has all");
        let mut decompressor = Decompressor::new();
        let mut chunk = vec![0; 64 * 1024];
        group.bench_function(BenchmarkId::new(codec.as_str(), size), |b| {
            b.iter(|| {
                let mut stream =
                    decompressor.stream(codec, 2, black_box(&payload), u64::MAX).expect("opens");
                while stream.fill(black_box(&mut chunk)).expect("goes on") > 0 {}
            });
        });
    }
    group.finish();
}

fn compress_a_batch(c: &mut Criterion) {
    let mut group = c.benchmark_group("compress_a_batch");
    for size in SIZES {
        let batches = batches(size);
        group.throughput(throughput(size));
        for codec in CODECS {
            let mut batches = batches.iter().cycle();
            let mut compressor = Compressor::new();
            let mut out = Vec::new();
            group.bench_function(BenchmarkId::new(codec.as_str(), size), |b| {
                b.iter(|| {
                    out.clear();
                    let records = batches.next().expect("endless");
                    compressor.compress(codec.into(), 2, black_box(records), &mut out)
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, decompress_a_batch, stream_a_large_batch, compress_a_batch);
criterion_main!(benches);
