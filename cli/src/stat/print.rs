//! How numbers look.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Value, json};
use siltstone::log::LogStats;
use siltstone::log::stats::CodecStats;
use siltstone::record::codec::Codec;

use super::PartitionStats;
use crate::output::{Align, Table, format_bytes, format_count, print_json, stdout};
use crate::report::problem_json;
use crate::time::format_ms;

/// Prints all of it.
pub(super) fn print(is_json: bool, partitions: &[PartitionStats]) -> std::io::Result<()> {
    let mut out = stdout();
    if is_json {
        for partition in partitions {
            print_json(&mut out, &partition_json(partition))?;
        }
        print_json(&mut out, &total_json(partitions))?;
        return out.flush();
    }
    match partitions {
        [] => {}
        [partition] => print_one(&mut out, partition)?,
        _ => {
            table(partitions).print(&mut out, 0)?;
            print_codecs(&mut out, &total_codecs(partitions))?;
        }
    }
    for partition in partitions {
        for problem in &partition.stats.problems {
            writeln!(out, "PROBLEM: {}: {problem}", partition.dir.path.display())?;
        }
    }
    out.flush()
}

fn table(partitions: &[PartitionStats]) -> Table {
    let mut table = Table::new(&[
        ("PARTITION", Align::Left),
        ("SEGMENTS", Align::Right),
        ("LOGS", Align::Right),
        ("INDEXES", Align::Right),
        ("SNAPSHOTS", Align::Right),
        ("BATCHES", Align::Right),
        ("RECORDS", Align::Right),
        ("PRODUCERS", Align::Right),
        ("OPEN TXNS", Align::Right),
        ("EPOCHS", Align::Right),
        ("CODECS", Align::Left),
        ("FROM", Align::Left),
        ("TO", Align::Left),
    ]);
    for partition in partitions {
        let (stats, facts) = (&partition.stats, &partition.stats.facts);
        let codecs: Vec<&str> = stats.codecs.keys().map(|id| codec_name(*id)).collect();
        table.row([
            partition.dir.name.clone(),
            facts.segments.len().to_string(),
            format_bytes(facts.log_size_bytes()),
            format_bytes(facts.index_size_bytes()),
            format_bytes(facts.snapshot_size_bytes()),
            format_count(stats.batches),
            format_count(stats.records),
            format_count(stats.producers),
            stats.open_transactions.len().to_string(),
            stats.epochs.len().to_string(),
            if codecs.is_empty() { "-".to_owned() } else { codecs.join(",") },
            format_ms(stats.min_timestamp_ms),
            format_ms(stats.max_timestamp_ms),
        ]);
    }
    let total = |of: &dyn Fn(&LogStats) -> u64| sum(partitions, of);
    table.row([
        "total".to_owned(),
        total(&|stats| count(stats.facts.segments.len())).to_string(),
        format_bytes(total(&|stats| stats.facts.log_size_bytes())),
        format_bytes(total(&|stats| stats.facts.index_size_bytes())),
        format_bytes(total(&|stats| stats.facts.snapshot_size_bytes())),
        format_count(total(&|stats| stats.batches)),
        format_count(total(&|stats| stats.records)),
        format_count(total(&|stats| stats.producers)),
        total(&|stats| count(stats.open_transactions.len())).to_string(),
        String::new(),
        String::new(),
        String::new(),
        String::new(),
    ]);
    table
}

fn print_one(out: &mut dyn Write, partition: &PartitionStats) -> std::io::Result<()> {
    let (stats, facts) = (&partition.stats, &partition.stats.facts);
    writeln!(out, "{}", partition.dir.path.display())?;
    let first = facts.segments.first().map_or(0, |segment| segment.base_offset);
    let mut table = Table::new(&[("", Align::Left), ("", Align::Left)]);
    let mut line = |name: &str, value: String| table.row([name.to_owned(), value]);
    line("segments", format!("{}, offsets {first} to {}", facts.segments.len(), stats.end_offset));
    line(
        "size",
        format!(
            "{} of logs, {} of indexes, {} in {} producer snapshots",
            format_bytes(facts.log_size_bytes()),
            format_bytes(facts.index_size_bytes()),
            format_bytes(facts.snapshot_size_bytes()),
            facts.snapshots.len()
        ),
    );
    let [old, legacy, _] = stats.magics;
    let old_formats = if old + legacy > 0 {
        format!(", {} of magic 0, {} of magic 1", format_count(old), format_count(legacy))
    } else {
        String::new()
    };
    line(
        "batches",
        format!(
            "{}{old_formats}; {} transactional, {} control, {} empty; the largest has {}",
            format_count(stats.batches),
            format_count(stats.transactional_batches),
            format_count(stats.control_batches),
            format_count(stats.empty_batches),
            format_bytes(u64::from(stats.largest_batch_bytes))
        ),
    );
    line("records", format_count(stats.records));
    let (from, to) = (format_ms(stats.min_timestamp_ms), format_ms(stats.max_timestamp_ms));
    line("times", format!("{from} to {to}"));
    line("producers", format_count(stats.producers));
    let open: Vec<String> = stats
        .open_transactions
        .iter()
        .take(10)
        .map(|(producer, first)| format!("producer {producer} from offset {first}"))
        .collect();
    let more = stats.open_transactions.len().saturating_sub(open.len());
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    let open = if open.is_empty() { "none".to_owned() } else { open.join(", ") };
    line("open transactions", open + &more);
    line("leader epochs", epochs_text(stats));
    table.print_rows(out, 2)?;
    print_codecs(out, &stats.codecs)
}

fn epochs_text(stats: &LogStats) -> String {
    match stats.epochs.last() {
        None => "none".to_owned(),
        Some(last) => format!(
            "{}, the last is {} from offset {}",
            stats.epochs.len(),
            last.epoch,
            last.start_offset
        ),
    }
}

fn print_codecs(out: &mut dyn Write, codecs: &BTreeMap<u8, CodecStats>) -> std::io::Result<()> {
    if codecs.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[
        ("CODEC", Align::Left),
        ("BATCHES", Align::Right),
        ("BYTES", Align::Right),
        ("OPENS TO", Align::Right),
    ]);
    for (id, stats) in codecs {
        table.row([
            codec_name(*id).to_owned(),
            format_count(stats.batches),
            format_bytes(stats.size_bytes),
            ratio(stats).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2} times")),
        ]);
    }
    writeln!(out)?;
    table.print(out, 2)
}

/// Bytes that a compressed byte opens to, as measured; `None` where nothing was.
fn ratio(stats: &CodecStats) -> Option<f64> {
    // Hundredths are shown, so parts of a million are enough.
    let millionths = u128::from(stats.opened_bytes) * 1_000_000;
    let millionths = millionths.checked_div(u128::from(stats.sampled_bytes))?;
    u32::try_from(millionths).ok().map(|millionths| f64::from(millionths) / 1_000_000.0)
}

fn codec_name(id: u8) -> &'static str {
    Codec::from_id(id).map_or("unknown", Codec::as_str)
}

fn count(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

fn sum(partitions: &[PartitionStats], of: &dyn Fn(&LogStats) -> u64) -> u64 {
    partitions.iter().fold(0, |sum, partition| sum.saturating_add(of(&partition.stats)))
}

fn total_codecs(partitions: &[PartitionStats]) -> BTreeMap<u8, CodecStats> {
    let mut total: BTreeMap<u8, CodecStats> = BTreeMap::new();
    for (id, stats) in partitions.iter().flat_map(|partition| &partition.stats.codecs) {
        let entry = total.entry(*id).or_default();
        entry.batches = entry.batches.saturating_add(stats.batches);
        entry.size_bytes = entry.size_bytes.saturating_add(stats.size_bytes);
        entry.sampled_bytes = entry.sampled_bytes.saturating_add(stats.sampled_bytes);
        entry.opened_bytes = entry.opened_bytes.saturating_add(stats.opened_bytes);
    }
    total
}

fn codecs_json(codecs: &BTreeMap<u8, CodecStats>) -> Value {
    let each = codecs.iter().map(|(id, stats)| {
        let value = json!({
            "batches": stats.batches,
            "size_bytes": stats.size_bytes,
            "compression_ratio": ratio(stats),
        });
        (codec_name(*id).to_owned(), value)
    });
    Value::Object(each.collect())
}

fn partition_json(partition: &PartitionStats) -> Value {
    let (stats, facts, dir) = (&partition.stats, &partition.stats.facts, &partition.dir);
    let time = |ms: i64| (ms >= 0).then_some(ms);
    let [magic_0, magic_1, magic_2] = stats.magics;
    json!({
        "type": "partition",
        "path": dir.path.to_string_lossy(),
        "name": dir.name,
        "topic": dir.folder.as_ref().map(|folder| folder.topic.as_str()),
        "partition": dir.folder.as_ref().map(|folder| folder.partition),
        "segments": facts.segments.len(),
        "first_offset": facts.segments.first().map(|segment| segment.base_offset),
        "end_offset": stats.end_offset,
        "size_bytes": facts.size_bytes,
        "log_size_bytes": facts.log_size_bytes(),
        "index_size_bytes": facts.index_size_bytes(),
        "snapshot_size_bytes": facts.snapshot_size_bytes(),
        "snapshots": facts.snapshots.len(),
        "batches": stats.batches,
        "records": stats.records,
        "batches_by_magic": [magic_0, magic_1, magic_2],
        "control_batches": stats.control_batches,
        "transactional_batches": stats.transactional_batches,
        "empty_batches": stats.empty_batches,
        "largest_batch_bytes": stats.largest_batch_bytes,
        "min_timestamp_ms": time(stats.min_timestamp_ms),
        "max_timestamp_ms": time(stats.max_timestamp_ms),
        "producers": stats.producers,
        "open_transactions": stats.open_transactions,
        "epochs": stats.epochs.iter().map(|e| json!([e.epoch, e.start_offset])).collect::<Vec<_>>(),
        "codecs": codecs_json(&stats.codecs),
        "problems": stats.problems.iter().map(problem_json).collect::<Vec<_>>(),
    })
}

fn total_json(partitions: &[PartitionStats]) -> Value {
    let total = |of: &dyn Fn(&LogStats) -> u64| sum(partitions, of);
    json!({
        "type": "total",
        "partitions": partitions.len(),
        "segments": total(&|stats| count(stats.facts.segments.len())),
        "size_bytes": total(&|stats| stats.facts.size_bytes),
        "log_size_bytes": total(&|stats| stats.facts.log_size_bytes()),
        "index_size_bytes": total(&|stats| stats.facts.index_size_bytes()),
        "snapshot_size_bytes": total(&|stats| stats.facts.snapshot_size_bytes()),
        "batches": total(&|stats| stats.batches),
        "records": total(&|stats| stats.records),
        "producers": total(&|stats| stats.producers),
        "open_transactions": total(&|stats| count(stats.open_transactions.len())),
        "codecs": codecs_json(&total_codecs(partitions)),
    })
}
