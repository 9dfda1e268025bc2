//! Indexes in memory: look-ups, and the entries of a segment that grows.

use std::hint::black_box;

use siltstone::index::{OffsetIndexBuilder, TimeEntry, TimeIndexBuilder};
use siltstone::io::{Disk, OpenMode, Storage};
use siltstone::segment::index_tails::{IndexTails, TailFiles};
use siltstone_benches::batches::FIRST_TIMESTAMP_MS;
use siltstone_benches::rounds::{Timing, rounds};
use siltstone_benches::{Result, live_limits};

use crate::append::lap;
use crate::bench::Bench;
use crate::locate::Random;
use crate::table::{Goal, Row, Unit};

const NS: Unit = Unit::Nanoseconds;
/// Kafka's `segment.index.bytes`.
const INDEX_BYTES: usize = 10 << 20;
const LOOKUPS: u64 = 1_000_000;
/// Offsets of the last 8 KB of entries.
const LAST: i64 = 70_000;
const PAIRS: u64 = 400_000;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    rows.extend(offsets(bench)?);
    rows.extend(times(bench)?);
    rows.extend(pairs(bench)?);
    Ok(rows)
}

fn row(bench: &Bench, name: &str, count: u64, ours: Timing, goal: f64) -> Result<Row> {
    let count = f64::from(u32::try_from(count)?);
    let key = match name {
        "offset index look-up, random" => "index-random",
        "offset index look-up, last 8 KB" => "index-last",
        "time index look-up, random" => "index-time",
        _ => "index-append",
    };
    let kafka = bench.kafka.get(key).map(|seconds| seconds * 1e9);
    Ok(Row::timed(name, NS, count, ours, Goal::Figure(goal)).with_kafka(kafka))
}

/// A full index whose entries lie 50 to 90 offsets apart, and one batch in the log.
fn offsets(bench: &Bench) -> Result<Vec<Row>> {
    let names = ["offset index look-up, random", "offset index look-up, last 8 KB"];
    let mut rows = Vec::new();
    if !names.iter().any(|name| bench.wants(name)) {
        return Ok(rows);
    }
    let mut random = Random(8);
    let mut index = OffsetIndexBuilder::new(0, INDEX_BYTES)?;
    let (mut offset, mut position) = (0, 0);
    while !index.is_full() {
        offset += 50 + random.below(41);
        index.append(offset, position)?;
        position += 1600;
    }
    let count = bench.scaled(LOOKUPS);
    let (bytes, slots) = (index.as_bytes(), index.count());
    let entries = index.entries();
    for (name, start, goal) in [(names[0], 0, 60.0), (names[1], offset - LAST, 30.0)] {
        if !bench.wants(name) {
            continue;
        }
        let wanted = random.between(count, start, offset);
        let ours = bench.time(|| {
            let seen = wanted.iter().fold(0, |seen, at| seen ^ entries.lookup(*at).position);
            black_box(seen);
            Ok(())
        })?;
        let narrow: std::result::Result<Vec<u32>, _> =
            wanted.iter().map(|at| u32::try_from(*at)).collect();
        let narrow = narrow?;
        let limit = bench.time(|| {
            let lookup = |at| match start {
                0 => live_limits::offset_lookup(bytes, slots, at),
                _ => {
                    let last = bytes.len() - 8192;
                    live_limits::offset_search(bytes.get(last..).unwrap_or_default(), 1024, at)
                }
            };
            black_box(narrow.iter().fold(0, |seen, at| seen ^ lookup(*at)));
            Ok(())
        })?;
        let amount = f64::from(u32::try_from(count)?);
        let row = row(bench, name, count, ours, goal)?.with_limit(amount, limit);
        rows.push(bench.told(row));
    }
    Ok(rows)
}

/// A full index whose entries lie 1 to 5 ms apart.
fn times(bench: &Bench) -> Result<Option<Row>> {
    let name = "time index look-up, random";
    if !bench.wants(name) {
        return Ok(None);
    }
    let mut random = Random(9);
    let mut index = TimeIndexBuilder::new(0, INDEX_BYTES)?;
    let (mut timestamp_ms, mut offset) = (FIRST_TIMESTAMP_MS, 0);
    while !index.is_full() {
        timestamp_ms += 1 + random.below(5);
        offset += 70;
        index.maybe_append(timestamp_ms, offset, false)?;
    }
    let count = bench.scaled(LOOKUPS);
    let wanted = random.between(count, FIRST_TIMESTAMP_MS, timestamp_ms);
    let entries = index.entries();
    let ours = bench.time(|| {
        black_box(wanted.iter().fold(0, |seen, at| seen ^ entries.lookup(*at).offset));
        Ok(())
    })?;
    let (bytes, slots) = (index.as_bytes(), index.count());
    let limit = bench.time(|| {
        let lookup = |at: &i64| live_limits::time_lookup(bytes, slots, at.cast_unsigned());
        black_box(wanted.iter().fold(0, |seen, at| seen ^ lookup(at)));
        Ok(())
    })?;
    let amount = f64::from(u32::try_from(count)?);
    Ok(Some(bench.told(row(bench, name, count, ours, 70.0)?.with_limit(amount, limit))))
}

/// The entries of a batch in every four KiB of a segment that grows, with the writing.
fn pairs(bench: &Bench) -> Result<Option<Row>> {
    let name = "append one offset and one time entry";
    if !bench.wants(name) {
        return Ok(None);
    }
    let count = bench.scaled(PAIRS);
    let index_bytes = u32::try_from(INDEX_BYTES)?;
    let disk = Disk::new();
    let ours = rounds(bench.rounds(), || {
        let open = |name: &str| disk.open(&bench.work.join(name), OpenMode::Create);
        let files = TailFiles::new(open("offsets")?, open("times")?);
        let mut tails = IndexTails::open(0, &files, index_bytes)?;
        lap(|| {
            for number in 0..count {
                let (offset, position) = (i64::try_from(number)? * 70 + 69, number * 1600);
                let timestamp_ms = FIRST_TIMESTAMP_MS + i64::try_from(number)?;
                tails.push(offset, u32::try_from(position)?, TimeEntry { timestamp_ms, offset });
                if tails.must_write_out() {
                    tails.write_out(&files)?;
                }
            }
            Ok(tails.write_out(&files)?)
        })
    })?;
    let limit = bench.time(|| {
        // New pages, as those of a file that grows.
        let (mut offsets, mut times) = (vec![0; INDEX_BYTES], vec![0; INDEX_BYTES]);
        for number in 0..count {
            let (relative, position) = (u32::try_from(number * 70)?, number * 1600);
            let entry =
                (relative, u32::try_from(position)?, FIRST_TIMESTAMP_MS + i64::from(relative));
            let slot = usize::try_from(number)?;
            live_limits::append_entries((&mut offsets, &mut times), slot, entry)?;
        }
        black_box((&offsets, &times));
        Ok(())
    })?;
    let amount = f64::from(u32::try_from(count)?);
    Ok(Some(bench.told(row(bench, name, count, ours, 18.0)?.with_limit(amount, limit))))
}
