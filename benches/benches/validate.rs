//! How fast does a leader come from a producer's bytes to those that it writes, and a follower?
//!
//! One batch a call, with everything but the write: frame, checksum, every record, offsets.
//! Throughput is in bytes of the batches, compressed as they come. `crc` is the checksum alone, and
//! `crc_and_open` that and the decompression: what of the work no validator can save.

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siltstone::record::TimestampType;
use siltstone::record::batch::{HEADER_SIZE, compute_crc};
use siltstone::record::codec::{Codec, Decompressor};
use siltstone::record::validate::{
    AnalyseOptions, AppendOrigin, TopicCompression, ValidateOptions, Validator, analyse,
};
use siltstone_benches::batches::{Batches, FIRST_TIMESTAMP_MS, Shape};

/// Each round takes another batch, so that no branch predictor learns one by heart.
const BATCHES: usize = 64;
const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

/// Batches as producers send them: with base offset 0.
fn batches(kibibytes: usize, codec: Codec) -> Vec<Vec<u8>> {
    let shape = Shape { batch_bytes: kibibytes << 10, codec, producers: 10 };
    let mut batches = Batches::new(shape).expect("a shape");
    let make = |_| {
        let mut batch = Vec::new();
        batches.push(&mut batch).expect("a batch");
        batch[..8].fill(0);
        batch
    };
    (0..BATCHES).map(make).collect()
}

fn throughput(batches: &[Vec<u8>]) -> Throughput {
    let size: usize = batches.iter().map(Vec::len).sum();
    Throughput::Bytes(u64::try_from(size).expect("64 bits"))
}

/// What a leader does with all batches.
fn take_all(
    batches: &mut [Vec<u8>],
    validator: &mut Validator,
    options: &ValidateOptions,
    rebuilt: &mut Vec<u8>,
) {
    let leader = AnalyseOptions::leader(AppendOrigin::Client, 7, options.max_message_bytes);
    let now = FIRST_TIMESTAMP_MS + 1000;
    for batch in batches {
        // As it came in.
        batch[..8].fill(0);
        let analysis = analyse(black_box(batch), &leader).expect("good batches");
        let records = &mut batch[..analysis.valid_bytes];
        rebuilt.clear();
        let validated = validator.validate_and_assign(records, options, 1000, now, rebuilt);
        let validated = validated.expect("good records");
        black_box(validated.bytes(records, rebuilt));
    }
}

fn validate_as_leader(c: &mut Criterion) {
    let mut group = c.benchmark_group("validate_as_leader");
    for kibibytes in [1, 16, 64] {
        for codec in CODECS {
            let mut batches = batches(kibibytes, codec);
            group.throughput(throughput(&batches));
            let id =
                |what: &str| BenchmarkId::new(format!("{codec}{what}"), format!("{kibibytes}k"));
            let (mut validator, mut rebuilt) = (Validator::new(), Vec::new());
            let options = ValidateOptions::default();
            group.bench_function(id(""), |b| {
                b.iter(|| take_all(&mut batches, &mut validator, &options, &mut rebuilt));
            });
            let mut decompressor = Decompressor::new();
            let what = if codec == Codec::None { "_crc" } else { "_crc_and_open" };
            group.bench_function(id(what), |b| {
                b.iter(|| {
                    for batch in &batches {
                        black_box(compute_crc(black_box(batch)));
                        let payload = &batch[HEADER_SIZE..];
                        let opened = decompressor.decompress(codec, 2, payload, usize::MAX);
                        black_box(opened).expect("good payloads");
                    }
                });
            });
        }
    }
    group.finish();
}

fn validate_with_more_to_do(c: &mut Criterion) {
    let mut group = c.benchmark_group("validate_with_more_to_do");
    let compress = |codec: Codec| ValidateOptions {
        compression: TopicCompression::Fixed(codec.into()),
        ..ValidateOptions::default()
    };
    let append_time = ValidateOptions {
        timestamp_type: TimestampType::LogAppendTime,
        ..ValidateOptions::default()
    };
    for (what, codec, options) in [
        ("log_append_time", Codec::None, append_time),
        ("none_to_lz4", Codec::None, compress(Codec::Lz4)),
        ("none_to_zstd", Codec::None, compress(Codec::Zstd)),
        ("lz4_to_none", Codec::Lz4, compress(Codec::None)),
    ] {
        let batches = batches(16, codec);
        group.throughput(throughput(&batches));
        let (mut validator, mut rebuilt) = (Validator::new(), Vec::new());
        group.bench_function(what, |b| {
            b.iter_batched_ref(
                || batches.clone(),
                |batches| take_all(batches, &mut validator, &options, &mut rebuilt),
                criterion::BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn analyse_as_follower(c: &mut Criterion) {
    let mut group = c.benchmark_group("analyse_as_follower");
    for kibibytes in [1, 16, 64] {
        let shape = Shape { batch_bytes: kibibytes << 10, codec: Codec::None, producers: 10 };
        let mut batches = Batches::new(shape).expect("a shape");
        let mut answer = Vec::new();
        while answer.len() < 1 << 20 {
            batches.push(&mut answer).expect("a batch");
        }
        group.throughput(Throughput::Bytes(u64::try_from(answer.len()).expect("64 bits")));
        group.bench_function(format!("{kibibytes}k"), |b| {
            b.iter(|| analyse(black_box(&answer), &AnalyseOptions::follower(0)).expect("good"));
        });
    }
    group.finish();
}

criterion_group!(benches, validate_as_leader, validate_with_more_to_do, analyse_as_follower);
criterion_main!(benches);
