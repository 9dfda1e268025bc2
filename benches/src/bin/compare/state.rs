//! Small files in memory: a snapshot of producers, a transaction index.

use std::hint::black_box;

use siltstone::index::{AbortedTxn, TxnEntries};
use siltstone::state::{ProducerEntry, Snapshot, write_snapshot};
use siltstone_benches::rounds::Timing;
use siltstone_benches::{Result, state_limits};

use crate::bench::Bench;
use crate::table::{Goal, Row, Unit};

const PRODUCERS: u32 = 10_000;
const TRANSACTIONS: u32 = 100_000;
/// Repetitions of what takes less than a millisecond.
const TIMES: u32 = 200;

pub(crate) fn rows(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    rows.extend(snapshot(bench)?);
    rows.extend(transactions(bench)?);
    Ok(rows)
}

/// Read means from the file to entries in an array.
fn snapshot(bench: &Bench) -> Result<Option<Row>> {
    let name = "read a snapshot of 10,000 producers";
    if !bench.wants(name) {
        return Ok(None);
    }
    let path = bench.work.join("snapshot");
    std::fs::write(&path, write_snapshot(&siltstone_benches::state::producers(PRODUCERS)))?;
    let mut buffer = Vec::new();
    let mut found: Vec<ProducerEntry> = Vec::new();
    let ours = bench.time(|| {
        for _ in 0..TIMES {
            read_into(&path, &mut buffer)?;
            found.clear();
            found.extend(Snapshot::read(&buffer)?.iter());
            black_box(&found);
        }
        Ok(())
    })?;
    let mut least = Vec::new();
    let limit = bench.time(|| {
        for _ in 0..TIMES {
            read_into(&path, &mut buffer)?;
            state_limits::read_snapshot(&buffer, &mut least)?;
            black_box(&least);
        }
        Ok(())
    })?;
    let work = f64::from(PRODUCERS) * f64::from(TIMES);
    let row = Row::timed(name, Unit::MillionProducers, work, ours, Goal::Figure(180.0));
    let kafka = bench.kafka.get("snapshot").map(|rate| rate / 1e6);
    Ok(Some(bench.told(row.with_limit(work, limit).with_kafka(kafka))))
}

fn read_into(path: &std::path::Path, buffer: &mut Vec<u8>) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(path)?;
    buffer.resize(usize::try_from(file.metadata()?.len())?, 0);
    Ok(file.read_exact_at(buffer, 0)?)
}

fn transactions(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let bytes = siltstone_benches::state::transactions(TRANSACTIONS);
    let (check, collect) =
        ("check a transaction index of 100,000", "collect all of a transaction index of 100,000");
    if bench.wants(check) {
        let ours = bench.time(|| {
            for _ in 0..TIMES {
                let entries = TxnEntries::new(black_box(&bytes));
                if !black_box(entries.is_sound(0)) {
                    return Err("what was made is not sound".into());
                }
            }
            Ok(())
        })?;
        let limit = bench.time(|| {
            for _ in 0..TIMES {
                black_box(state_limits::aborted_rise(black_box(&bytes)));
            }
            Ok(())
        })?;
        rows.push(bench.told(one_of(bench, check, (ours, limit), "txn-check")));
    }
    if bench.wants(collect) {
        let mut found: Vec<AbortedTxn> = Vec::new();
        let ours = bench.time(|| {
            for _ in 0..TIMES {
                found.clear();
                TxnEntries::new(black_box(&bytes)).collect_aborted(0, i64::MAX, &mut found)?;
                black_box(&found);
            }
            Ok(())
        })?;
        let mut least = Vec::new();
        let limit = bench.time(|| {
            for _ in 0..TIMES {
                least.clear();
                state_limits::collect_aborted(black_box(&bytes), &mut least);
                black_box(&least);
            }
            Ok(())
        })?;
        rows.push(bench.told(one_of(bench, collect, (ours, limit), "txn-collect")));
    }
    Ok(rows)
}

/// The row of one of many repetitions.
fn one_of(bench: &Bench, name: &str, (ours, limit): (Timing, Timing), kafka: &str) -> Row {
    let mut row = Row::timed(name, Unit::Milliseconds, 1.0, ours, Goal::Figure(0.12));
    row.ours /= f64::from(TIMES);
    row.spread =
        row.spread.map(|(worst, best)| (worst / f64::from(TIMES), best / f64::from(TIMES)));
    row.limit = Some(limit.median_s / f64::from(TIMES) * 1e3);
    row.with_kafka(bench.kafka.get(kafka).map(|seconds| seconds * 1e3))
}
