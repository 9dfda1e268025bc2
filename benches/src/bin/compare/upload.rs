//! What is to be uploaded, of one log, of many, and of a directory that nobody has open.

use std::hint::black_box;

use siltstone::io::Disk;
use siltstone::tier::{ColdLog, ColdOptions, UploadList, UploadView, list_uploads};
use siltstone_benches::{Result, uploads};

use crate::bench::Bench;
use crate::table::{GROWTH, Goal, Row, Unit};

/// Segments of one log, and of all logs together.
const SEGMENTS: i64 = 100_000;
/// Questions of one round.
const QUESTIONS: i64 = 100_000;
/// Scans of one round.
const TIMES: u32 = 200;
/// A plan may take so much longer than listing.
const COLD_FACTOR: f64 = 1.3;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let one = "upload scan of 100,000 segments, as a list";
    rows.extend(list(bench, one, (1, SEGMENTS), SEGMENTS, (100.0, "upload-list"))?);
    rows.extend(range(bench)?);
    let none = "upload scan of 1,000 logs x 100 segments, none copied";
    rows.extend(list(bench, none, (1000, 100), 100, (120.0, "upload-logs-100"))?);
    let each = "upload scan of 1,000 logs x 100 segments, one each to copy";
    rows.extend(list(bench, each, (1000, 100), 1, (40.0, "upload-logs-1"))?);
    for logs in [10, 100, 1000, 10_000] {
        rows.extend(growth(bench, logs)?);
    }
    rows.extend(cold(bench)?);
    Ok(rows)
}

/// Lists the candidates of so many logs of so many segments, `to_copy` of each.
fn list(
    bench: &Bench,
    name: &str,
    (logs, segments): (i64, i64),
    to_copy: i64,
    (goal_us, kafka): (f64, &str),
) -> Result<Option<Row>> {
    if !bench.wants(name) {
        return Ok(None);
    }
    let (work, ours, limit) = measure_list(bench, logs, segments, to_copy)?;
    let row = Row::timed(name, Unit::Microseconds, work, ours, Goal::Figure(goal_us));
    let kafka = bench.kafka.get(kafka).map(|seconds| seconds * 1e6);
    Ok(Some(bench.told(row.with_limit(work, limit).with_kafka(kafka))))
}

type Measured = (f64, siltstone_benches::rounds::Timing, siltstone_benches::rounds::Timing);

/// Scans of one round, what they took, and what the plain loop took.
fn measure_list(bench: &Bench, logs: i64, segments: i64, to_copy: i64) -> Result<Measured> {
    let table = uploads::table(logs, segments, to_copy);
    let expected = usize::try_from(logs * to_copy.min(segments - 1))?;
    let (mut answers, mut found) = (Vec::new(), UploadList::default());
    let times = (TIMES * 1000).div_ceil(u32::try_from(logs * segments)?.div_ceil(100)).max(2);
    let ours = bench.time(|| {
        for _ in 0..times {
            list_uploads(table.views(), 0, &mut answers, &mut found);
            black_box(&found);
        }
        if found.count() == expected { Ok(()) } else { Err("not all were found".into()) }
    })?;
    let all: Vec<Vec<i64>> = (0..logs).map(|_| uploads::bases(segments)).collect();
    let from = (segments - 1 - to_copy).max(0) * uploads::SEGMENT_OFFSETS;
    let end = segments * uploads::SEGMENT_OFFSETS;
    let mut least: Vec<i64> = Vec::new();
    let limit = bench.time(|| {
        for _ in 0..times {
            least.clear();
            for bases in &all {
                uploads::limit_list(bases, from, end, &mut least);
            }
            black_box(&least);
        }
        Ok(())
    })?;
    Ok((f64::from(times), ours, limit))
}

/// The candidates of one log as a range, with their bytes and age.
fn range(bench: &Bench) -> Result<Option<Row>> {
    let name = "upload scan of 100,000 segments, as a range";
    if !bench.wants(name) {
        return Ok(None);
    }
    let table = uploads::table(1, SEGMENTS, SEGMENTS);
    let view = table.view(0).ok_or("a log")?;
    let end = (SEGMENTS - 10) * uploads::SEGMENT_OFFSETS;
    let copied = |question: i64| question % 1000 * uploads::SEGMENT_OFFSETS * 90;
    let ours = bench.time(|| {
        for question in 0..QUESTIONS {
            let copied_offset = copied(question);
            let view = UploadView { copied_offset, last_stable_offset: end, ..view };
            black_box(black_box(&view).candidates(0));
        }
        Ok(())
    })?;
    let bases = uploads::bases(SEGMENTS);
    let limit = bench.time(|| {
        for question in 0..QUESTIONS {
            black_box(uploads::limit_range(&bases, black_box(copied(question)), end));
        }
        Ok(())
    })?;
    let work = f64::from(u32::try_from(QUESTIONS)?);
    let row = Row::timed(name, Unit::Nanoseconds, work, ours, Goal::Figure(50.0));
    Ok(Some(bench.told(row.with_limit(work, limit))))
}

/// A list of all segments of so many logs with 100 each: what one segment costs as the work grows.
fn growth(bench: &Bench, logs: i64) -> Result<Option<Row>> {
    let name = format!("{GROWTH}{}", logs * 100);
    if !bench.wants(&name) {
        return Ok(None);
    }
    let (times, ours, limit) = measure_list(bench, logs, 100, 100)?;
    let work = times * f64::from(u32::try_from(logs * 100)?);
    let row = Row::timed(&name, Unit::Nanoseconds, work, ours, Goal::Figure(1.2));
    Ok(Some(bench.told(row.with_limit(work, limit))))
}

/// Names and sizes of a directory that nobody has open, and the small files that say the rest.
fn cold(bench: &Bench) -> Result<Option<Row>> {
    let name = "upload plan of 2,000 partitions x 3 segments, not open";
    if !bench.wants(name) {
        return Ok(None);
    }
    bench.with_partitions(|directory| {
        let partitions = uploads::partitions(&directory.home)?;
        let (disk, end) = (Disk::new(), directory.end_offset);
        let options = ColdOptions {
            high_watermark: Some(end),
            reads_indexes: false,
            reads_age: false,
            ..ColdOptions::default()
        };
        let ours = bench.time(|| {
            let mut found = 0;
            for dir in &partitions {
                let mut log = ColdLog::list(&disk, dir)?;
                found += log.look(&disk, &options)?.count();
            }
            let is_all = usize::try_from(found)? == partitions.len() * 2;
            if is_all { Ok(()) } else { Err(format!("{found} segments were found").into()) }
        })?;
        let limit = bench.time(|| {
            for dir in &partitions {
                black_box(uploads::limit_listing(dir)?);
            }
            Ok(())
        })?;
        let work = f64::from(u32::try_from(partitions.len())?);
        let goal = Goal::OfLimit(1.0 / COLD_FACTOR);
        let row = Row::timed(name, Unit::Partitions, work, ours, goal);
        Ok(Some(bench.told(row.with_limit(work, limit))))
    })
}
