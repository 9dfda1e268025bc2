//! How long does it take to find where a remote read begins and ends, and which transactions it
//! must leave out?

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use siltstone::index::AbortedTxn;
use siltstone::log::Isolation;
use siltstone::tier::{DirectAnswer, SegmentIndexes, collect_remote_aborted, plan_direct_read};
use siltstone_benches::remote::{OFFSETS, RemoteLog, request};
use siltstone_benches::state::transactions;

const SEGMENTS: u32 = 1000;

fn one_segment(criterion: &mut Criterion) {
    let index = transactions(100_000);
    let indexes = SegmentIndexes::new(0, Vec::new(), Vec::new(), index);
    let mut group = criterion.benchmark_group("remote_aborted_100k");
    let mut found: Vec<AbortedTxn> = Vec::with_capacity(100_000);
    for (name, start) in [("all", 0), ("last_100", 999_000)] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                found.clear();
                indexes.collect_aborted(black_box(start), i64::MAX, &mut found).expect("sound");
                found.len()
            });
        });
    }
    group.finish();
}

fn many_segments(criterion: &mut Criterion) {
    let log = RemoteLog::make(SEGMENTS);
    let view = log.view();
    let mut group = criterion.benchmark_group("remote_aborted_1000_segments");
    let first = view.segment_at(0).expect("the first");
    let mut found: Vec<AbortedTxn> = Vec::new();
    group.bench_function("all", |bencher| {
        bencher.iter(|| {
            let end = black_box(i64::MAX);
            collect_remote_aborted(&view, first, 0, end, &mut found).expect("sound");
            found.len()
        });
    });
    let middle = view.segment_at(500 * OFFSETS).expect("one in the middle");
    group.bench_function("one_fetch", |bencher| {
        bencher.iter(|| {
            let from = black_box(500 * OFFSETS + 400);
            collect_remote_aborted(&view, middle, from, from + 100, &mut found).expect("sound");
            found.len()
        });
    });
    group.finish();

    let view = log.direct_view();
    let mut group = criterion.benchmark_group("direct_read_plan");
    for (name, isolation) in
        [("uncommitted", Isolation::HighWatermark), ("committed", Isolation::Committed)]
    {
        let mut offset = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                // A prime: all segments come, and all places in them.
                offset = (offset + 7_919) % log.end();
                let answer = plan_direct_read(&request(offset, isolation), &view);
                matches!(answer.expect("sound"), DirectAnswer::Read(_))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, one_segment, many_segments);
criterion_main!(benches);
