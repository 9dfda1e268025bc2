//! How plans look.

use std::io::Write;

use serde_json::{Value, json};
use siltstone::log::columns::UNKNOWN_TIMESTAMP_MS;
use siltstone::tier::StableFrom;

use super::{Plan, PlanUploadsArgs};
use crate::output::{Align, Table, format_bytes, format_count, format_span_ms, print_json, stdout};
use crate::report::problem_json;
use crate::time::format_ms;

/// Prints all of them.
pub(super) fn print(args: &PlanUploadsArgs, plans: &[Plan], now_ms: i64) -> std::io::Result<()> {
    let mut out = stdout();
    if args.json {
        for plan in plans {
            print_json(&mut out, &to_json(plan, args.segments, now_ms))?;
        }
        return out.flush();
    }
    if args.segments {
        for plan in plans {
            writeln!(out, "{}", plan.dir.path.display())?;
            segment_table(plan, now_ms).print(&mut out, 2)?;
            writeln!(out)?;
        }
    }
    let table = partition_table(plans, now_ms);
    if !table.is_empty() {
        table.print(&mut out, 0)?;
        writeln!(out)?;
    }
    print_summary(&mut out, plans, now_ms)?;
    out.flush()
}

/// One partition. The keys are stable.
fn to_json(plan: &Plan, with_segments: bool, now_ms: i64) -> Value {
    let view = plan.log.view();
    let is_apart = plan.apart.is_some();
    let slots = if is_apart { 0..0 } else { plan.answer.slots() };
    let pairs = view.bases.iter().zip(view.bases.iter().skip(1));
    let candidates: Vec<Value> = pairs
        .clone()
        .skip(slots.start)
        .take(slots.len())
        .map(|(base, next)| json!([base, next - 1]))
        .collect();
    let reasons = |wanted: &dyn Fn(&str) -> bool| -> Vec<(i64, &'static str)> {
        let all = view.bases.iter().enumerate();
        let reasons = all.filter_map(|(slot, base)| Some((*base, plan.why_not(slot, now_ms)?)));
        reasons.filter(|(_, reason)| wanted(reason)).collect()
    };
    let skipped: Vec<i64> = reasons(&is_done).into_iter().map(|(base, _)| base).collect();
    let blocked = plan.blocked(now_ms);
    let is_blocked = |base: i64| blocked.iter().any(|(blocked, _)| *blocked == base);
    let mut waiting = reasons(&|reason| !is_done(reason) && reason != "active");
    waiting.retain(|(base, _)| !is_blocked(*base));
    let txns = plan.log.columns().may_have_txns();
    let has_txns = txns.get(slots.clone()).is_some_and(|txns| txns.contains(&true));
    let has_snapshots =
        pairs.skip(slots.start).take(slots.len()).all(|(_, next)| plan.log.has_snapshot(*next));
    let oldest = plan.answer.oldest_timestamp_ms;
    let folder = plan.dir.folder.as_ref();
    let (pending_segments, pending_bytes) = pending(plan);
    let mut line = json!({
        "type": "partition",
        "path": plan.dir.path.display().to_string(),
        "topic": folder.map(|folder| folder.topic.as_str()),
        "partition": folder.map(|folder| folder.partition),
        "remote_storage": plan.is_remote,
        "log_start_offset": view.log_start_offset,
        "high_watermark": plan.log.high_watermark,
        "last_stable_offset": view.last_stable_offset,
        "last_stable_from": match plan.log.stable_from {
            StableFrom::Given => "given",
            StableFrom::HighWatermark => "high_watermark",
            StableFrom::Transactions => "transactions",
        },
        "highest_remote_offset": plan.copied_offset,
        "candidates": candidates,
        "active": view.bases.last(),
        "blocked": blocked,
        "skipped": skipped,
        "waiting": waiting,
        "stop": plan.apart.unwrap_or(plan.answer.stop.as_str()),
        "size_bytes": if is_apart { 0 } else { plan.answer.size_bytes },
        "oldest_timestamp_ms": Some(oldest).filter(|ms| *ms >= 0 && !is_apart),
        "oldest_age_ms": plan.answer.oldest_age_ms(now_ms).filter(|_| !is_apart),
        "pending_segments": pending_segments,
        "pending_bytes": pending_bytes,
        "txn_index_empty": !has_txns,
        "snapshot": if has_snapshots { "present" } else { "rebuild_or_empty" },
        "problems": plan.log.problems.iter().map(problem_json).collect::<Vec<_>>(),
    });
    if with_segments && let Some(object) = line.as_object_mut() {
        object.insert("segments".to_owned(), segments_json(plan, now_ms));
    }
    line
}

fn segments_json(plan: &Plan, now_ms: i64) -> Value {
    let columns = plan.log.columns();
    let rows = (0..columns.count()).filter_map(|slot| Some((slot, columns.row(slot)?)));
    let lines = rows.map(|(slot, row)| {
        let next = columns.bases().get(slot.saturating_add(1));
        json!({
            "base_offset": row.base_offset,
            "last_offset": next.map(|next| next - 1),
            "size_bytes": row.size_bytes,
            "max_timestamp_ms": Some(row.max_timestamp_ms).filter(|ms| *ms != UNKNOWN_TIMESTAMP_MS),
            "txn_index_empty": !row.may_have_txns,
            "snapshot": next.map(|next| plan.log.has_snapshot(*next)),
            "reason": plan.why_not(slot, now_ms),
        })
    });
    lines.collect()
}

/// Whether a segment with this reason is done with.
fn is_done(reason: &str) -> bool {
    matches!(reason, "already_copied" | "before_log_start")
}

/// How many segments, and how many bytes of them, are sealed and not copied, whether they may be
/// uploaded now or not.
fn pending(plan: &Plan) -> (usize, u64) {
    let view = plan.log.view();
    let active = view.bases.len().saturating_sub(1);
    let first = plan.answer.slots().start.min(active);
    if plan.apart.is_some() { (0, 0) } else { (active - first, view.size_of(first..active)) }
}

fn partition_table(plans: &[Plan], now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("PARTITION", Align::Left),
        ("SEGMENTS", Align::Right),
        ("COPIED TO", Align::Right),
        ("STABLE TO", Align::Right),
        ("UPLOAD", Align::Right),
        ("SIZE", Align::Right),
        ("OLDEST", Align::Right),
        ("WAIT", Align::Right),
        ("WHY", Align::Left),
    ]);
    for plan in plans.iter().filter(|plan| plan.apart.is_none()) {
        let (pending, _) = pending(plan);
        let slots = plan.answer.slots();
        let age = plan.answer.oldest_age_ms(now_ms);
        let why = match plan.answer.stop.as_str() {
            "active" => String::new(),
            why => {
                let base = plan.log.view().bases.get(slots.end).copied();
                base.map_or(String::new(), |base| format!("segment {base}: {why}"))
            }
        };
        table.row([
            plan.dir.name.clone(),
            plan.log.columns().count().to_string(),
            if plan.copied_offset < 0 { "-".to_owned() } else { plan.copied_offset.to_string() },
            plan.log.view().last_stable_offset.to_string(),
            slots.len().to_string(),
            format_bytes(plan.answer.size_bytes),
            age.map_or_else(|| "-".to_owned(), format_span_ms),
            pending.saturating_sub(slots.len()).to_string(),
            why,
        ]);
    }
    table
}

fn segment_table(plan: &Plan, now_ms: i64) -> Table {
    let mut table = Table::new(&[
        ("BASE", Align::Right),
        ("LAST", Align::Right),
        ("SIZE", Align::Right),
        ("LARGEST TIMESTAMP", Align::Left),
        ("UPLOAD", Align::Left),
    ]);
    let columns = plan.log.columns();
    for (slot, row) in (0..columns.count()).filter_map(|slot| Some((slot, columns.row(slot)?))) {
        let next = columns.bases().get(slot.saturating_add(1));
        let timestamp_ms = row.max_timestamp_ms;
        table.row([
            row.base_offset.to_string(),
            next.map_or_else(|| "-".to_owned(), |next| (next - 1).to_string()),
            format_bytes(row.size_bytes),
            if timestamp_ms < 0 { "-".to_owned() } else { format_ms(timestamp_ms) },
            plan.why_not(slot, now_ms).unwrap_or("now").to_owned(),
        ]);
    }
    table
}

fn print_summary(out: &mut dyn Write, plans: &[Plan], now_ms: i64) -> std::io::Result<()> {
    let part: Vec<&Plan> = plans.iter().filter(|plan| plan.apart.is_none()).collect();
    let number = |count: usize| format_count(u64::try_from(count).unwrap_or(u64::MAX));
    let segments: usize = part.iter().map(|plan| plan.answer.slots().len()).sum();
    let bytes = part.iter().map(|plan| plan.answer.size_bytes).fold(0, u64::saturating_add);
    let oldest = part.iter().filter_map(|plan| plan.answer.oldest_age_ms(now_ms)).max();
    let age =
        oldest.map_or(String::new(), |age| format!(", the oldest {} old", format_span_ms(age)));
    writeln!(
        out,
        "{} segments to upload ({}) in {} partitions{age}",
        number(segments),
        format_bytes(bytes),
        number(part.iter().filter(|plan| plan.answer.count() > 0).count()),
    )?;
    let apart = plans.len() - part.len();
    if apart > 0 {
        writeln!(out, "{} partitions have no part in it (--assume-remote)", number(apart))?;
    }
    let unknown = plans.iter().filter(|plan| plan.is_remote.is_none()).count();
    if unknown > 0 {
        writeln!(
            out,
            "of {} partitions nothing tells whether they have remote storage: they are taken to have \
             it (--metadata)",
            number(unknown)
        )?;
    }
    Ok(())
}
