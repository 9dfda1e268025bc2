//! How long does it take to say what is to be uploaded?

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siltstone::tier::{UploadList, list_uploads, oldest_first};
use siltstone_benches::uploads;

const SEGMENTS: i64 = 100_000;

fn one_log(criterion: &mut Criterion) {
    let table = uploads::table(1, SEGMENTS, SEGMENTS);
    let view = table.view(0).expect("a log");
    criterion.bench_function("candidates_of_100k_segments_as_a_range", |bencher| {
        bencher.iter(|| black_box(&view).candidates(0));
    });
    let (mut answers, mut found) = (Vec::new(), UploadList::default());
    criterion.bench_function("candidates_of_100k_segments_as_a_list", |bencher| {
        bencher.iter(|| {
            list_uploads(table.views(), 0, &mut answers, &mut found);
            black_box(&found);
        });
    });
}

fn many_logs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("candidates_of_logs_with_100_segments");
    for logs in [10, 100, 1000, 10_000] {
        for to_copy in [1, 100] {
            let table = uploads::table(logs, 100, to_copy);
            let (mut answers, mut order) = (Vec::new(), Vec::new());
            let mut found = UploadList::default();
            group.throughput(Throughput::Elements(u64::try_from(logs * 100).expect("segments")));
            let id = BenchmarkId::new(format!("{to_copy}_to_copy"), logs);
            group.bench_function(id, |bencher| {
                bencher.iter(|| {
                    list_uploads(table.views(), 0, &mut answers, &mut found);
                    black_box(&found);
                });
            });
            group.bench_function(BenchmarkId::new(format!("{to_copy}_oldest"), logs), |bencher| {
                bencher.iter(|| {
                    oldest_first(&answers, &mut order);
                    black_box(&order);
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, one_log, many_logs);
criterion_main!(benches);
