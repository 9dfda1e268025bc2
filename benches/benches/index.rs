//! How long does a look-up in an index take, and how long its check?

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use siltstone::index::check::OffsetIndexCheck;
use siltstone::index::{
    AbortedTxn, OffsetEntries, OffsetIndexBuilder, TimeEntries, TimeIndexBuilder, TxnEntries,
    TxnIndexBuilder,
};

/// Kafka's `segment.index.bytes`.
const INDEX_SIZE_BYTES: usize = 10 << 20;
const LOOKUP_COUNT: usize = 100_000;
const TXN_COUNT: usize = 100_000;
/// The bytes of a batch in the indexed log; one in two has an entry.
const BATCH_SIZE: i32 = 800;

/// A xorshift generator: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        i64::try_from(self.0 >> 1).expect("63 bits") % end
    }
}

/// A full offset index whose entries lie 50 to 90 offsets apart.
fn offset_index() -> OffsetIndexBuilder {
    let mut random = Random(8);
    let mut index = OffsetIndexBuilder::new(0, INDEX_SIZE_BYTES).expect("large enough");
    let (mut offset, mut position) = (0, 0);
    while !index.is_full() {
        offset += 50 + random.below(41);
        position += 2 * BATCH_SIZE;
        index.append(offset, position).expect("rising");
    }
    index
}

/// A full time index whose entries lie 1 to 5 ms apart.
fn time_index() -> TimeIndexBuilder {
    let mut random = Random(9);
    let mut index = TimeIndexBuilder::new(0, INDEX_SIZE_BYTES).expect("large enough");
    let (mut timestamp_ms, mut offset) = (1_700_000_000_000, 0);
    while !index.is_full() {
        timestamp_ms += 1 + random.below(5);
        offset += 70;
        index.maybe_append(timestamp_ms, offset, false).expect("rising");
    }
    index
}

fn txn_index() -> TxnIndexBuilder {
    let mut index = TxnIndexBuilder::new();
    for (first_offset, n) in (0..).step_by(10).zip(0..TXN_COUNT) {
        let txn = AbortedTxn {
            producer_id: i64::try_from(n % 1000).expect("small"),
            first_offset,
            last_offset: first_offset + 5,
            last_stable_offset: first_offset + 6,
        };
        index.append(&txn).expect("rising");
    }
    index
}

fn lookups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lookup");
    group.throughput(Throughput::Elements(LOOKUP_COUNT.try_into().expect("fits")));
    let mut random = Random(7);

    let offsets = offset_index();
    let entries: OffsetEntries<'_> = offsets.entries();
    let last = entries.last_offset();
    let anywhere: Vec<i64> = (0..LOOKUP_COUNT).map(|_| random.below(last)).collect();
    let near_the_end: Vec<i64> = (0..LOOKUP_COUNT).map(|_| last - random.below(70_000)).collect();
    for (name, targets) in [("offset_anywhere", &anywhere), ("offset_near_the_end", &near_the_end)]
    {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                targets.iter().fold(0, |seen, target| seen ^ entries.lookup(*target).position)
            });
        });
    }
    group.bench_function("offset_each_waits_for_the_one_before", |bencher| {
        bencher.iter(|| {
            anywhere
                .iter()
                .fold(0, |seen, target| entries.lookup(*target ^ i64::from(seen & 1)).position)
        });
    });
    group.bench_function("fetch_upper_bound_anywhere", |bencher| {
        let position = |target: &i64| i32::try_from(target / 2 * 40).expect("below 2 GiB");
        let positions: Vec<i32> = anywhere.iter().map(position).collect();
        bencher.iter(|| {
            positions.iter().filter_map(|p| entries.fetch_upper_bound_offset(*p, 1000)).count()
        });
    });

    let times = time_index();
    let entries: TimeEntries<'_> = times.entries();
    let (first, last) = (1_700_000_000_000, entries.last().timestamp_ms);
    let anywhere: Vec<i64> =
        (0..LOOKUP_COUNT).map(|_| first + random.below(last - first)).collect();
    group.bench_function("time_anywhere", |bencher| {
        bencher
            .iter(|| anywhere.iter().fold(0, |seen, target| seen ^ entries.lookup(*target).offset));
    });
    group.finish();
}

fn transactions(criterion: &mut Criterion) {
    let index = txn_index();
    let mut group = criterion.benchmark_group("txn_100k");
    group.throughput(Throughput::Bytes(index.as_bytes().len().try_into().expect("fits")));
    let mut pairs: Vec<(i64, i64)> = Vec::with_capacity(TXN_COUNT);
    group.bench_function("check_versions_and_collect_all", |bencher| {
        // What a fetch response names of each transaction.
        bencher.iter(|| {
            pairs.clear();
            TxnEntries::new(black_box(index.as_bytes()))
                .visit_aborted(0, i64::MAX, |txn| pairs.push((txn.producer_id, txn.first_offset)))
                .expect("sound");
            black_box(&pairs);
        });
    });
    let mut found: Vec<AbortedTxn> = Vec::with_capacity(TXN_COUNT);
    group.bench_function("check_order_and_collect_all_fields", |bencher| {
        bencher.iter(|| {
            found.clear();
            let entries = TxnEntries::new(black_box(index.as_bytes()));
            assert!(entries.is_rising());
            entries.collect_aborted_rising(0, i64::MAX, &mut found);
            black_box(&found);
        });
    });
    group.bench_function("sanity_check", |bencher| {
        bencher.iter(|| TxnEntries::new(black_box(index.as_bytes())).sanity_check(0));
    });
    group.finish();

    let end = i64::try_from(TXN_COUNT).expect("fits") * 10;
    criterion.bench_function("txn_100k/collect_last_100", |bencher| {
        let entries = TxnEntries::new(index.as_bytes());
        let mut found: Vec<AbortedTxn> = Vec::with_capacity(200);
        bencher.iter(|| {
            found.clear();
            let start = black_box(end - 1000);
            entries.collect_aborted_rising(start, end, &mut found);
            found.len()
        });
    });
}

fn check(criterion: &mut Criterion) {
    let index = offset_index();
    let end =
        u64::try_from(index.count()).expect("fits") * 2 * u64::from(BATCH_SIZE.unsigned_abs());
    let entries: Vec<(u64, i64)> = index
        .entries()
        .iter()
        .map(|entry| (u64::try_from(entry.position).expect("positive"), entry.offset))
        .collect();
    let mut group = criterion.benchmark_group("check_offset_index");
    group.throughput(Throughput::Elements(2 * u64::try_from(entries.len()).expect("fits")));
    group.bench_function("10_mib_with_two_batches_an_entry", |bencher| {
        bencher.iter(|| {
            let mut check = OffsetIndexCheck::new(index.as_bytes(), 0);
            for (position, last_offset) in &entries {
                check.batch(*position, *last_offset);
                check.batch(position + 800, last_offset + 20);
            }
            assert!(check.finish(end + 1600).is_empty());
        });
    });
    group.finish();
}

criterion_group!(benches, lookups, transactions, check);
criterion_main!(benches);
