//! How fast does a follower decide what to do next?

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use siltstone::replica::follower_step;
use siltstone_benches::follower::Decisions;

const DECISIONS: usize = 10_000;

fn follower_step_of_every_kind(c: &mut Criterion) {
    let mut group = c.benchmark_group("follower_step_of_every_kind");
    let decisions = Decisions::new(DECISIONS).expect("good epochs");
    group.throughput(Throughput::Elements(DECISIONS.try_into().expect("64 bits")));
    group.bench_function("step", |b| {
        b.iter(|| {
            decisions.each(|view, event| {
                black_box(follower_step(black_box(view), black_box(event)));
            });
        });
    });
    group.finish();
}

criterion_group!(benches, follower_step_of_every_kind);
criterion_main!(benches);
