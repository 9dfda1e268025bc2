//! How transactions look.

use std::io::Write;

use serde_json::{Value, json};

use super::judge::Judge;
use super::{PartitionTxns, TxnsArgs};
use crate::output::{Align, Table, format_count, format_span_ms, print_json, stdout};
use crate::report::problem_json;
use crate::time::format_ms;

/// Prints all of it.
pub(super) fn print(
    args: &TxnsArgs,
    partitions: &[PartitionTxns],
    judge: &Judge,
    now_ms: i64,
) -> std::io::Result<()> {
    let mut out = stdout();
    if args.json {
        for partition in partitions {
            for line in lines(partition, now_ms) {
                print_json(&mut out, &line)?;
            }
        }
        print_json(&mut out, &coordinators(judge))?;
        return out.flush();
    }
    let open = open_table(partitions, now_ms);
    if !open.is_empty() {
        open.print(&mut out, 0)?;
        writeln!(out)?;
    }
    let aborted = aborted_table(partitions, now_ms);
    if !aborted.is_empty() {
        aborted.print(&mut out, 0)?;
        writeln!(out)?;
    }
    print_summary(&mut out, partitions, judge)?;
    out.flush()
}

fn open_table(partitions: &[PartitionTxns], now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("PARTITION", Align::Left),
        ("PRODUCER", Align::Right),
        ("EPOCH", Align::Right),
        ("FIRST OFFSET", Align::Right),
        ("LAST OFFSET", Align::Right),
        ("STARTED", Align::Left),
        ("OPEN FOR", Align::Right),
        ("STATE", Align::Left),
        ("TRANSACTIONAL ID", Align::Left),
        ("WHY", Align::Left),
    ]);
    for partition in partitions {
        for (txn, verdict) in &partition.open {
            table.row([
                partition.dir.name.clone(),
                txn.producer_id.to_string(),
                txn.producer_epoch.to_string(),
                txn.first_offset.to_string(),
                txn.last_offset.to_string(),
                or_dash(txn.started_ms),
                age(txn.started_ms, now_ms),
                verdict.state.to_owned(),
                verdict.transactional_id.clone().unwrap_or_else(|| "-".to_owned()),
                verdict.why.clone(),
            ]);
        }
    }
    table
}

fn aborted_table(partitions: &[PartitionTxns], now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("ABORTED IN", Align::Left),
        ("PRODUCER", Align::Right),
        ("FIRST OFFSET", Align::Right),
        ("MARKER OFFSET", Align::Right),
        ("ENDED", Align::Left),
        ("AGO", Align::Right),
    ]);
    for partition in partitions {
        for (txn, ended_ms) in &partition.aborted {
            table.row([
                partition.dir.name.clone(),
                txn.producer_id.to_string(),
                txn.first_offset.to_string(),
                txn.last_offset.to_string(),
                or_dash(*ended_ms),
                age(*ended_ms, now_ms),
            ]);
        }
    }
    table
}

fn print_summary(
    out: &mut dyn Write,
    partitions: &[PartitionTxns],
    judge: &Judge,
) -> std::io::Result<()> {
    let open: usize = partitions.iter().map(|partition| partition.open.len()).sum();
    let hanging: Vec<_> = partitions
        .iter()
        .flat_map(|partition| {
            partition.open.iter().map(move |(txn, verdict)| (partition, txn, verdict))
        })
        .filter(|(_, _, verdict)| verdict.is_hanging())
        .collect();
    let aborted: usize = partitions.iter().map(|partition| partition.found.aborted.len()).sum();
    let number = |count: usize| format_count(u64::try_from(count).unwrap_or(u64::MAX));
    writeln!(
        out,
        "{} partitions: {} open transactions ({} hanging), {} aborted",
        number(partitions.len()),
        number(open),
        number(hanging.len()),
        number(aborted)
    )?;
    let here = judge.here.len();
    match judge.partitions {
        _ if here == 0 => writeln!(
            out,
            "this node has no replica of __transaction_state here: whether a transaction hangs cannot \
             be told"
        )?,
        Some(all) => {
            writeln!(out, "{here} of {all} partitions of __transaction_state were looked at")?;
        }
        None => writeln!(
            out,
            "{here} partitions of __transaction_state were looked at; how many there are is not known \
             (--metadata)"
        )?,
    }
    if here > 0 {
        writeln!(out, "(only the replica of a partition's leader is authoritative)")?;
    }
    for (partition, txn, _) in hanging {
        if let Some(folder) = &partition.dir.folder {
            writeln!(
                out,
                "to end it: kafka-transactions.sh --bootstrap-server HOST:PORT abort --topic {} \
                 --partition {} --start-offset {}",
                folder.topic, folder.partition, txn.first_offset
            )?;
        }
    }
    Ok(())
}

fn or_dash(ms: Option<i64>) -> String {
    ms.map_or_else(|| "-".to_owned(), format_ms)
}

fn age(since_ms: Option<i64>, now_ms: i64) -> String {
    since_ms.map_or_else(|| "-".to_owned(), |ms| format_span_ms(now_ms.saturating_sub(ms)))
}

fn lines(partition: &PartitionTxns, now_ms: i64) -> Vec<Value> {
    let dir = &partition.dir;
    let path = dir.path.to_string_lossy();
    let age_ms = |ms: Option<i64>| ms.map(|ms| now_ms.saturating_sub(ms));
    let found = &partition.found;
    let mut lines = vec![json!({
        "type": "partition",
        "path": path,
        "name": dir.name,
        "topic": dir.folder.as_ref().map(|folder| folder.topic.as_str()),
        "partition": dir.folder.as_ref().map(|folder| folder.partition),
        "end_offset": found.end_offset,
        "last_stable_offset": found.last_stable_offset,
        "open": partition.open.len(),
        "aborted": found.aborted.len(),
        "from_snapshot": found.from_snapshot,
        "problems": found.problems.iter().map(problem_json).collect::<Vec<_>>(),
    })];
    lines.extend(partition.open.iter().map(|(txn, verdict)| {
        json!({
            "type": "open",
            "path": path,
            "name": dir.name,
            "producer_id": txn.producer_id,
            "producer_epoch": txn.producer_epoch,
            "first_offset": txn.first_offset,
            "last_offset": txn.last_offset,
            "started_ms": txn.started_ms,
            "age_ms": age_ms(txn.started_ms),
            "last_timestamp_ms": txn.last_timestamp_ms,
            "state": verdict.state,
            "why": verdict.why,
            "transactional_id": verdict.transactional_id,
            "coordinator_status": verdict.coordinator_status,
        })
    }));
    lines.extend(partition.aborted.iter().map(|(txn, ended_ms)| {
        json!({
            "type": "aborted",
            "path": path,
            "name": dir.name,
            "producer_id": txn.producer_id,
            "first_offset": txn.first_offset,
            "last_offset": txn.last_offset,
            "last_stable_offset": txn.last_stable_offset,
            "ended_ms": ended_ms,
            "age_ms": age_ms(*ended_ms),
        })
    }));
    lines
}

fn coordinators(judge: &Judge) -> Value {
    json!({
        "type": "coordinators",
        "partitions_here": judge.here,
        "partitions": judge.partitions,
        "complete": judge.is_complete(),
        "producers": judge.producers(),
        "broker_running": judge.is_running,
    })
}
