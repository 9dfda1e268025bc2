//! What is to be uploaded, of one log, of many, and of a directory that nobody has open.

use std::hint::black_box;
use std::path::PathBuf;

use siltstone::io::Disk;
use siltstone::tier::{ColdLog, ColdOptions, UploadList, UploadView, list_uploads};
use siltstone_benches::directory::Directory;
use siltstone_benches::{Result, uploads};

use crate::bench::Bench;
use crate::table::{COLD, Goal, Row, UPLOADS, UPLOADS_OF_ONE, Unit};

/// Segments of one log, and of all logs together.
const SEGMENTS: i64 = 100_000;
/// Questions of one round.
const QUESTIONS: i64 = 100_000;
/// Scans of one round.
const TIMES: u32 = 200;
/// Segments of which one is looked at, as there are ever more.
pub(crate) const GROWS: [i64; 4] = [1000, 10_000, 100_000, 1_000_000];
/// Partitions that are not open, and how many of them are looked at as there are ever more.
const COLD_PARTITIONS: u64 = 10_000;
const COLD_GROWS: [usize; 3] = [100, 1000, 10_000];
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
    for segments in GROWS {
        rows.extend(growth(bench, UPLOADS, segments / 100, 100)?);
    }
    for segments in GROWS {
        rows.extend(growth(bench, UPLOADS_OF_ONE, 1, segments)?);
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

/// A list of all segments of so many logs: what one segment costs as the work grows.
fn growth(bench: &Bench, what: &str, logs: i64, segments: i64) -> Result<Option<Row>> {
    let name = format!("{what}{}", logs * segments);
    if !bench.wants(&name) {
        return Ok(None);
    }
    let (times, ours, limit) = measure_list(bench, logs, segments, segments)?;
    let work = times * f64::from(u32::try_from(logs * segments)?);
    let row = Row::timed(&name, Unit::Nanoseconds, work, ours, Goal::Figure(1.2));
    Ok(Some(bench.told(row.with_limit(work, limit))))
}

/// A directory that nobody has open: as the command plans its uploads, with indexes and snapshots
/// read, and by names and sizes.
fn cold(bench: &Bench) -> Result<Vec<Row>> {
    let whole = "upload plan of 10,000 partitions x 3 segments, not open";
    let sizes = "upload plan of 10,000 partitions x 3 segments, not open, sizes alone";
    let grows = COLD_GROWS.map(|count| format!("{COLD}{count}"));
    let mut rows = Vec::new();
    if ![whole, sizes].iter().any(|name| bench.wants(name))
        && !grows.iter().any(|name| bench.wants(name))
    {
        return Ok(rows);
    }
    let home = bench.many_files().join("cold");
    let directory = Directory::make(&home, usize::try_from(bench.scaled(COLD_PARTITIONS))?, 3)?;
    let partitions = uploads::partitions(&directory.home)?;
    let work = f64::from(u32::try_from(partitions.len())?);
    for (name, reads_indexes) in [(whole, true), (sizes, false)] {
        if bench.wants(name) {
            let ours = bench.time(|| plan(&partitions, directory.end_offset, reads_indexes))?;
            let limit = bench.time(|| list_all(&partitions))?;
            let goal = Goal::OfLimit(1.0 / COLD_FACTOR);
            let row = Row::timed(name, Unit::Partitions, work, ours, goal);
            rows.push(bench.told(row.with_limit(work, limit)));
        }
    }
    for (name, count) in grows.iter().zip(COLD_GROWS) {
        if let (true, Some(some)) = (bench.wants(name), partitions.get(..count)) {
            let work = f64::from(u32::try_from(count)?);
            let ours = bench.time(|| plan(some, directory.end_offset, true))?;
            let limit = bench.time(|| list_all(some))?;
            let row = Row::timed(name, Unit::Microseconds, work, ours, Goal::Nothing);
            rows.push(bench.told(row.with_limit(work, limit)));
        }
    }
    Ok(rows)
}

fn plan(partitions: &[PathBuf], high_watermark: i64, reads_indexes: bool) -> Result<()> {
    let disk = Disk::new();
    let options = ColdOptions {
        high_watermark: Some(high_watermark),
        reads_indexes,
        ..ColdOptions::default()
    };
    let mut found = 0;
    for dir in partitions {
        let mut log = ColdLog::list(&disk, dir)?;
        found += log.look(&disk, &options)?.count();
    }
    let is_all = usize::try_from(found)? == partitions.len() * 2;
    if is_all { Ok(()) } else { Err(format!("{found} segments were found").into()) }
}

fn list_all(partitions: &[PathBuf]) -> Result<()> {
    for dir in partitions {
        black_box(uploads::limit_listing(dir)?);
    }
    Ok(())
}
