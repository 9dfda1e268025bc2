//! Reads of remote segments: where they begin and end, and which transactions they leave out.

use std::hint::black_box;

use siltstone::index::AbortedTxn;
use siltstone::log::Isolation;
use siltstone::tier::{
    DirectAnswer, SegmentIndexes, collect_remote_aborted, plan_direct_read_into,
};
use siltstone_benches::remote::{ABORTED, OFFSETS, RemoteLog, offset_index, request};
use siltstone_benches::rounds::Timing;
use siltstone_benches::{Result, live_limits, state, state_limits};

use crate::bench::Bench;
use crate::table::{Goal, Row, Unit};

const SEGMENTS: u32 = 1000;
const PLANS: u64 = 1_000_000;
const FETCHES: u64 = 1_000_000;
const LOOKUPS: u64 = 1_000_000;
const ALL: u64 = 100;
/// The bytes of the transaction index of one segment.
const SEGMENT_TXN_BYTES: usize = 34 * 100;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    rows.extend(last_hundred(bench)?);
    rows.extend(many_segments(bench)?);
    Ok(rows)
}

/// A row of `times` repetitions of one thing.
fn row(name: &str, unit: Unit, times: u64, ours: Timing, goal: f64, limit: Timing) -> Result<Row> {
    let times = f64::from(u32::try_from(times)?);
    Ok(Row::timed(name, unit, times, ours, Goal::Figure(goal)).with_limit(times, limit))
}

fn last_hundred(bench: &Bench) -> Result<Option<Row>> {
    let name = "aborted transactions, the last 100 of 100,000";
    if !bench.wants(name) {
        return Ok(None);
    }
    let bytes = state::transactions(100_000);
    let indexes = SegmentIndexes::new(0, Vec::new(), Vec::new(), bytes.clone());
    let times = bench.scaled(LOOKUPS);
    let mut found: Vec<AbortedTxn> = Vec::new();
    let ours = bench.time(|| {
        for _ in 0..times {
            found.clear();
            indexes.collect_aborted(black_box(999_000), i64::MAX, &mut found)?;
            black_box(&found);
        }
        Ok(())
    })?;
    let mut least = Vec::new();
    let limit = bench.time(|| {
        for _ in 0..times {
            least.clear();
            let start = state_limits::first_aborted(black_box(&bytes), black_box(999_000));
            state_limits::collect_aborted(bytes.get(start..).unwrap_or_default(), &mut least);
            black_box(&least);
        }
        Ok(())
    })?;
    let kafka = bench.kafka.get("txn-last").map(|seconds| seconds * 1e6);
    let row = row(name, Unit::Microseconds, times, ours, 0.3, limit)?.with_kafka(kafka);
    Ok(Some(bench.told(row)))
}

fn many_segments(bench: &Bench) -> Result<Vec<Row>> {
    let (all, one, plan, committed) = (
        "aborted transactions of 1,000 remote segments",
        "aborted transactions of one fetch in 1,000 remote segments",
        "plan of a direct read",
        "plan of a direct read of committed data",
    );
    let mut rows = Vec::new();
    if ![all, one, plan, committed].iter().any(|name| bench.wants(name)) {
        return Ok(rows);
    }
    let log = RemoteLog::make(SEGMENTS);
    let view = log.view();
    let bytes = state::transactions(100_000);
    if bench.wants(all) {
        let first = view.segment_at(0).ok_or("no segment")?;
        let times = bench.scaled(ALL);
        let mut found: Vec<AbortedTxn> = Vec::new();
        let ours = bench.time(|| {
            for _ in 0..times {
                collect_remote_aborted(&view, first, 0, black_box(i64::MAX), &mut found)?;
                if found.len() != usize::try_from(ABORTED)? * usize::try_from(SEGMENTS)? {
                    return Err("not all were found".into());
                }
            }
            Ok(())
        })?;
        let mut least = Vec::new();
        let limit = bench.time(|| {
            for _ in 0..times {
                least.clear();
                for index in bytes.chunks(SEGMENT_TXN_BYTES) {
                    state_limits::collect_aborted(black_box(index), &mut least);
                }
                black_box(&least);
            }
            Ok(())
        })?;
        let kafka = bench.kafka.get("txn-segments").map(|seconds| seconds * 1e6);
        let row = row(all, Unit::Microseconds, times, ours, 200.0, limit)?.with_kafka(kafka);
        rows.push(bench.told(row));
    }
    if bench.wants(one) {
        let times = bench.scaled(FETCHES);
        let mut found: Vec<AbortedTxn> = Vec::new();
        let ours = bench.time(|| {
            for number in 0..times {
                let from = place(number, log.end())?;
                let segment = view.segment_at(from).ok_or("no segment")?;
                collect_remote_aborted(&view, segment, from, from + 100, &mut found)?;
                black_box(&found);
            }
            Ok(())
        })?;
        let limit = bench.time(|| {
            let mut least = Vec::new();
            for number in 0..times {
                let from = place(number, log.end())?;
                least.clear();
                let start = state_limits::first_aborted(&bytes, from);
                let end = bytes.len().min(start + 34 * 11);
                state_limits::collect_aborted(
                    bytes.get(start..end).unwrap_or_default(),
                    &mut least,
                );
                black_box(&least);
            }
            Ok(())
        })?;
        let kafka = bench.kafka.get("txn-fetch").map(|seconds| seconds * 1e6);
        let row = row(one, Unit::Microseconds, times, ours, 0.5, limit)?.with_kafka(kafka);
        rows.push(bench.told(row));
    }
    for (name, isolation) in [(plan, Isolation::HighWatermark), (committed, Isolation::Committed)] {
        if bench.wants(name) {
            rows.push(bench.told(direct(bench, &log, name, isolation)?));
        }
    }
    Ok(rows)
}

/// Offsets all over the log.
fn place(number: u64, end: i64) -> Result<i64> {
    Ok(i64::try_from(number)?.wrapping_mul(7_919) % end)
}

fn direct(bench: &Bench, log: &RemoteLog, name: &str, isolation: Isolation) -> Result<Row> {
    let view = log.direct_view();
    let times = bench.scaled(PLANS);
    let mut aborted = Vec::new();
    let ours = bench.time(|| {
        for number in 0..times {
            let wanted = request(place(number, log.end())?, isolation);
            let answer = plan_direct_read_into(&wanted, &view, &mut aborted)?;
            black_box(&aborted);
            if !matches!(answer, DirectAnswer::Read(_)) {
                return Err("no location was given".into());
            }
        }
        Ok(())
    })?;
    // What cannot be left out: two look-ups in the index of a segment.
    let (index, entries) = offset_index(0);
    let limit = bench.time(|| {
        for number in 0..times {
            let offset = u32::try_from(place(number, OFFSETS)?)?;
            black_box(live_limits::offset_lookup(&index, entries, black_box(offset)));
            black_box(live_limits::offset_lookup(&index, entries, black_box(offset) + 256));
        }
        Ok(())
    })?;
    row(name, Unit::Microseconds, times, ours, 0.3, limit)
}
