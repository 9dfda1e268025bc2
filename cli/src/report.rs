//! What a check of a partition found, as JSON and for people.

use std::io::Write;

use serde_json::{Map, Value, json};
use siltstone::log::PartitionReport;
use siltstone::log::verify::RecordLists;
use siltstone::problem::Problem;

use crate::output::{Align, Table, format_bytes, format_count};
use crate::time::format_ms;

/// The object that `--json` prints for a partition or a file. The keys are stable.
pub(crate) fn to_json(report: &PartitionReport) -> Map<String, Value> {
    let lists = report.lists.as_ref();
    let list = |pick: fn(&RecordLists) -> &Vec<i64>| lists.map(|lists| json!(pick(lists)));
    let survivors = &report.survivors_after;
    let epochs: Vec<_> = report.epochs.iter().map(|e| json!([e.epoch, e.start_offset])).collect();
    let open = report.open.iter();
    let open: Vec<_> =
        open.map(|txn| json!([txn.producer_id, txn.producer_epoch, txn.first_offset])).collect();
    let aborted = report.aborted.as_ref().map(|aborted| -> Vec<Value> {
        let spans = aborted.iter();
        spans.map(|txn| json!([txn.producer_id, txn.first_offset, txn.last_offset])).collect()
    });
    let producers = report.producers.iter().map(|producer| {
        let fields = json!({
            "epoch": producer.producer_epoch,
            "last_seq": producer.last_sequence,
            "last_offset": producer.last_offset,
            "last_timestamp": producer.last_timestamp,
            "coordinator_epoch": producer.coordinator_epoch,
        });
        (producer.producer_id.to_string(), fields)
    });
    let object = json!({
        "type": if report.path.is_file() { "file" } else { "partition" },
        "path": report.path.display().to_string(),
        "verdict": report.verdict().as_str(),
        "topic_partition": report.topic_partition,
        "topic_id": report.topic_id.map(|id| id.to_string()),
        "log_start_offset": report.log_start_offset,
        "log_end_offset": report.log_end_offset,
        "last_stable_offset": report.last_stable_offset,
        "segments": report.segments,
        "size_bytes": report.size_bytes,
        "batches": report.batches,
        "records": report.records,
        "visible_records": report.visible_records,
        "max_timestamp": report.max_timestamp,
        "delete_horizon": report.delete_horizon_ms,
        "epochs": epochs,
        "aborted": aborted,
        "open": open,
        "producers": producers.collect::<Map<_, _>>(),
        "offsets": list(|lists| &lists.offsets),
        "timestamps": list(|lists| &lists.timestamps),
        "data_offsets": list(|lists| &lists.data_offsets),
        "committed_offsets": list(|lists| &lists.committed_offsets),
        "survivors_after": survivors.batches,
        "survivors_span": survivors.first_offset.zip(survivors.end_offset),
        "survivors_uncounted": survivors.gave_up,
        "problems": report.problems.iter().map(problem_json).collect::<Vec<_>>(),
        "notices": report.notices.iter().map(problem_json).collect::<Vec<_>>(),
    });
    match object {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// One finding as JSON.
pub(crate) fn problem_json(problem: &Problem) -> Value {
    json!({
        "code": problem.code.as_str(),
        "severity": problem.severity.as_str(),
        "file": problem.file,
        "position": problem.position,
        "offset": problem.offset,
        "detail": problem.detail,
    })
}

/// Prints what was found in a partition or file.
pub(crate) fn print(out: &mut dyn Write, report: &PartitionReport) -> std::io::Result<()> {
    writeln!(out, "{}: {}", report.path.display(), report.verdict().as_str())?;
    let mut facts = vec![
        format!("offsets {} to {}", report.log_start_offset, report.log_end_offset),
        format!("{} batches", format_count(report.batches)),
        format!("{} records", format_count(report.records)),
        format!("{} in {} segments", format_bytes(report.size_bytes), report.segments),
    ];
    if report.max_timestamp >= 0 {
        facts.push(format!("up to {}", format_ms(report.max_timestamp)));
    }
    if report.last_stable_offset != report.log_end_offset {
        facts.push(format!("stable up to {}", report.last_stable_offset));
    }
    writeln!(out, "  {}", facts.join(", "))?;
    let survivors = &report.survivors_after;
    if survivors.any() {
        let more = if survivors.gave_up { " at least" } else { "" };
        let span = survivors.first_offset.zip(survivors.end_offset);
        let offsets =
            span.map_or(String::new(), |(first, end)| format!(" (offsets {first} to {end})"));
        let count = format_count(survivors.batches);
        writeln!(out, "  behind the damage:{more} {count} whole batches{offsets}")?;
    }
    print_problems(out, report.problems.iter().chain(&report.notices))
}

/// Prints findings as a table.
pub(crate) fn print_problems<'a>(
    out: &mut dyn Write,
    problems: impl IntoIterator<Item = &'a Problem>,
) -> std::io::Result<()> {
    let mut table = Table::new(&[
        ("SEVERITY", Align::Left),
        ("CODE", Align::Left),
        ("FILE", Align::Left),
        ("POSITION", Align::Right),
        ("OFFSET", Align::Right),
        ("DETAIL", Align::Left),
    ]);
    for problem in problems {
        let number = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        table.row([
            problem.severity.as_str().to_owned(),
            problem.code.as_str().to_owned(),
            problem.file.clone(),
            number(problem.position.map(|position| position.to_string())),
            number(problem.offset.map(|offset| offset.to_string())),
            problem.detail.clone(),
        ]);
    }
    if table.is_empty() { Ok(()) } else { table.print(out, 2) }
}
