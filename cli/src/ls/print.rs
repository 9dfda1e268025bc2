//! How a listing looks.

use std::io::Write;

use serde_json::{Value, json};
use siltstone::log::SegmentFacts;

use super::LsArgs;
use super::assignment::Assignments;
use super::listing::{KINDS, Listed, LogDir};
use crate::output::{Align, Table, format_bytes, print_json};
use crate::time::format_ms;

/// Prints all of it.
pub(super) fn print(
    out: &mut dyn Write,
    args: &LsArgs,
    dirs: &[LogDir],
    assignments: Option<&Assignments>,
) -> std::io::Result<()> {
    if args.json {
        return print_lines(out, args, dirs, assignments);
    }
    for (at, dir) in dirs.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        if dir.is_whole {
            writeln!(out, "{}: {}", dir.path.display(), summary(dir))?;
        }
        let indent = if dir.is_whole { 2 } else { 0 };
        if args.segments {
            segment_table(dir).print(out, indent)?;
        } else if !dir.partitions.is_empty() {
            partition_table(dir).print(out, indent)?;
        }
    }
    if let Some(assignments) = assignments {
        print_assignments(out, dirs, assignments)?;
    }
    Ok(())
}

/// `3 live, 1 delete; 1.2 GiB; node 1 of cluster X; stopped cleanly`
fn summary(dir: &LogDir) -> String {
    let kinds = KINDS.iter().map(|kind| (kind, dir.count(kind)));
    let counts: Vec<String> = kinds
        .filter(|(_, count)| *count > 0)
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let counts = if counts.is_empty() { "no partitions".to_owned() } else { counts.join(", ") };
    let owner = dir.properties.as_ref().map_or_else(String::new, |properties| {
        let node = properties.node_id.map_or_else(String::new, |node| format!("; node {node}"));
        let cluster = properties.cluster_id.as_deref();
        node + &cluster.map_or_else(String::new, |id| format!(" of cluster {id}"))
    });
    let state = match (dir.is_running, dir.is_clean) {
        (true, _) => "held by a running broker",
        (false, true) => "stopped cleanly",
        (false, false) => "not stopped cleanly",
    };
    format!("{counts}; {}{owner}; {state}", format_bytes(dir.size_bytes()))
}

fn partition_table(dir: &LogDir) -> Table {
    let mut table = Table::new(&[
        ("PARTITION", Align::Left),
        ("KIND", Align::Left),
        ("SEGMENTS", Align::Right),
        ("FIRST OFFSET", Align::Right),
        ("END OFFSET", Align::Right),
        ("SIZE", Align::Right),
        ("LAST WRITE", Align::Left),
        ("NOTES", Align::Left),
    ]);
    for listed in &dir.partitions {
        table.row([
            listed.name.clone(),
            listed.kind().to_owned(),
            listed.facts.segments.len().to_string(),
            or_dash(listed.first_offset()),
            or_dash(listed.end.map(|end| end.end_offset)),
            format_bytes(listed.facts.size_bytes),
            listed.facts.modified_ms().map_or_else(|| "-".to_owned(), format_ms),
            listed.notes.join("; "),
        ]);
    }
    table
}

fn segment_table(dir: &LogDir) -> Table {
    let mut table = Table::new(&[
        ("PARTITION", Align::Left),
        ("BASE OFFSET", Align::Right),
        ("SIZE", Align::Right),
        ("INDEX", Align::Right),
        ("TIMEINDEX", Align::Right),
        ("TXNINDEX", Align::Right),
        ("LARGEST TIMESTAMP", Align::Left),
        ("LAST WRITE", Align::Left),
    ]);
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), format_bytes);
    for listed in &dir.partitions {
        for (segment, time) in listed.facts.segments.iter().zip(&listed.times) {
            table.row([
                listed.name.clone(),
                segment.base_offset.to_string(),
                format_bytes(segment.log_size_bytes),
                size(segment.offset_index_size_bytes),
                size(segment.time_index_size_bytes),
                size(segment.txn_index_size_bytes),
                time.map_or_else(|| "-".to_owned(), |entry| format_ms(entry.timestamp_ms)),
                format_ms(segment.modified_ms),
            ]);
        }
    }
    table
}

fn or_dash(number: Option<i64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn print_assignments(
    out: &mut dyn Write,
    dirs: &[LogDir],
    assignments: &Assignments,
) -> std::io::Result<()> {
    let loaded = &assignments.loaded;
    writeln!(
        out,
        "\nmetadata: {}, read to offset {}, committed at least to {}",
        assignments.folder.display(),
        loaded.read_to,
        loaded.committed_at_least
    )?;
    let missing = assignments.missing(dirs);
    if !missing.is_empty() {
        writeln!(
            out,
            "placed on node {} by the metadata, but in none of these directories (a new partition has no \
             folder before the broker has opened it):",
            assignments.node_id
        )?;
        for (topic, partition) in missing {
            writeln!(out, "  {topic}-{partition}")?;
        }
    }
    Ok(())
}

fn print_lines(
    out: &mut dyn Write,
    args: &LsArgs,
    dirs: &[LogDir],
    assignments: Option<&Assignments>,
) -> std::io::Result<()> {
    for dir in dirs {
        if dir.is_whole {
            print_json(out, &dir_json(dir, assignments))?;
        }
        for listed in &dir.partitions {
            print_json(out, &partition_json(listed))?;
            if args.segments {
                for (segment, time) in listed.facts.segments.iter().zip(&listed.times) {
                    let largest = time.map(|entry| entry.timestamp_ms);
                    print_json(out, &segment_json(listed, segment, largest))?;
                }
            }
        }
    }
    for (topic, partition) in assignments.map(|found| found.missing(dirs)).unwrap_or_default() {
        let name = format!("{topic}-{partition}");
        let line = json!({"type": "missing", "name": name, "topic": topic, "partition": partition});
        print_json(out, &line)?;
    }
    Ok(())
}

fn dir_json(dir: &LogDir, assignments: Option<&Assignments>) -> Value {
    let properties = dir.properties.as_ref();
    let counts = KINDS.iter().map(|kind| ((*kind).to_owned(), dir.count(kind).into()));
    json!({
        "type": "log_dir",
        "path": dir.path.to_string_lossy(),
        "broker_running": dir.is_running,
        "clean_shutdown": dir.is_clean,
        "cluster_id": properties.and_then(|found| found.cluster_id.as_deref()),
        "node_id": properties.and_then(|found| found.node_id),
        "directory_id": properties.and_then(|found| found.directory_id).map(|id| id.to_string()),
        "folders": Value::Object(counts.collect()),
        "size_bytes": dir.size_bytes(),
        "metadata": assignments.map(|found| json!({
            "path": found.folder.to_string_lossy(),
            "snapshot": found.loaded.snapshot,
            "read_to": found.loaded.read_to,
            "committed_at_least": found.loaded.committed_at_least,
        })),
    })
}

fn partition_json(listed: &Listed) -> Value {
    let facts = &listed.facts;
    json!({
        "type": "partition",
        "path": listed.path.to_string_lossy(),
        "name": listed.name,
        "kind": listed.kind(),
        "topic": listed.parsed.as_ref().map(|parsed| parsed.topic.as_str()),
        "partition": listed.parsed.as_ref().map(|parsed| parsed.partition),
        "topic_id": listed.topic_id.map(|id| id.to_string()),
        "segments": facts.segments.len(),
        "first_offset": listed.first_offset(),
        "end_offset": listed.end.map(|end| end.end_offset),
        "unread_bytes": listed.end.map(|end| end.unread_bytes),
        "size_bytes": facts.size_bytes,
        "log_size_bytes": facts.log_size_bytes(),
        "index_size_bytes": facts.index_size_bytes(),
        "snapshot_size_bytes": facts.snapshot_size_bytes(),
        "leftover_size_bytes": facts.leftover_size_bytes,
        "last_write_ms": facts.modified_ms(),
        "last_write": facts.modified_ms().map(format_ms),
        "notes": listed.notes,
    })
}

fn segment_json(listed: &Listed, segment: &SegmentFacts, largest_ms: Option<i64>) -> Value {
    json!({
        "type": "segment",
        "path": listed.path.to_string_lossy(),
        "name": listed.name,
        "base_offset": segment.base_offset,
        "log_size_bytes": segment.log_size_bytes,
        "index_size_bytes": segment.offset_index_size_bytes,
        "timeindex_size_bytes": segment.time_index_size_bytes,
        "txnindex_size_bytes": segment.txn_index_size_bytes,
        "largest_timestamp_ms": largest_ms,
        "largest_timestamp": largest_ms.map(format_ms),
        "last_write_ms": segment.modified_ms,
        "last_write": format_ms(segment.modified_ms),
    })
}
