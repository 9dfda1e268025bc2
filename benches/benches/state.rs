//! How fast does producer state come from a snapshot, go into one, and follow batches?

#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use siltstone::state::{ProducerEntry, ReplayState, Snapshot, write_snapshot};
use siltstone_benches::batches::FIRST_TIMESTAMP_MS;
use siltstone_benches::{state, state_limits};

const PRODUCERS: u32 = 10_000;
const EXPIRATION_MS: i64 = 86_400_000;

fn snapshot_of_10k_producers(c: &mut Criterion) {
    let mut group = c.benchmark_group("snapshot_of_10k_producers");
    let producers = state::producers(PRODUCERS);
    let bytes = write_snapshot(&producers);
    group.throughput(Throughput::Bytes(bytes.len().try_into().expect("64 bits")));
    let mut found: Vec<ProducerEntry> = Vec::new();
    group.bench_function("read", |b| {
        b.iter(|| {
            found.clear();
            found.extend(Snapshot::read(black_box(&bytes)).expect("right").iter());
            black_box(found.len())
        });
    });
    let mut least = Vec::new();
    group.bench_function("plain_loop", |b| {
        b.iter(|| state_limits::read_snapshot(black_box(&bytes), &mut least).expect("right"));
    });
    group.bench_function("load_into_state", |b| {
        b.iter(|| {
            let snapshot = Snapshot::read(black_box(&bytes)).expect("right");
            ReplayState::from_snapshot(&snapshot, FIRST_TIMESTAMP_MS, EXPIRATION_MS)
        });
    });
    group.bench_function("write", |b| b.iter(|| write_snapshot(black_box(&producers))));
    let snapshot = Snapshot::read(&bytes).expect("right");
    let state = ReplayState::from_snapshot(&snapshot, FIRST_TIMESTAMP_MS, EXPIRATION_MS);
    group.bench_function("write_in_kafkas_order", |b| b.iter(|| black_box(&state).snapshot()));
    group.finish();
}

criterion_group!(benches, snapshot_of_10k_producers);
criterion_main!(benches);
