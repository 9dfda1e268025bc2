//! How a plan and what came of it look.

use std::io::Write;

use serde_json::json;
use siltstone::Kind;
use siltstone::log::FolderName;
use siltstone::tier::{AuxErrorKind, AuxInstalled, AuxResult};

use crate::Outcome;
use crate::output::{Align, Table, format_bytes, print_json, stdout};
use crate::rebuild_aux::Results;
use crate::rebuild_aux::plan::Step;

/// Prints all steps; says how the run ended.
pub(super) fn print(
    is_json: bool,
    is_dry_run: bool,
    steps: &[Step],
    results: &Results,
) -> std::io::Result<Outcome> {
    let mut out = stdout();
    let mut table = Table::new(&[
        ("REPLICA", Align::Left),
        ("LOG START", Align::Right),
        ("BEGINS AT", Align::Right),
        ("PRODUCERS", Align::Right),
        ("GOES", Align::Right),
        ("RESULT", Align::Left),
    ]);
    let mut outcome = Outcome::Fine;
    for (step, result) in steps.iter().zip(results) {
        outcome = outcome.max(outcome_of(step, result.as_ref()));
        if is_json {
            print_step_json(&mut out, is_dry_run, step, result.as_ref())?;
            continue;
        }
        let dash = || "-".to_owned();
        let behind = step.begins_behind.as_ref().ok();
        let installed = result.as_ref().and_then(|result| result.as_ref().ok());
        table.row([
            step.dir.display().to_string(),
            behind.map_or_else(dash, |(_, start)| start.to_string()),
            behind.map_or_else(dash, |(it, _)| it.end_offset.saturating_add(1).to_string()),
            installed.map_or_else(dash, |it| it.producer_count.to_string()),
            format_bytes(step.size_bytes),
            text_of(is_dry_run, step, result.as_ref()),
        ]);
    }
    if !is_json {
        if table.is_empty() {
            writeln!(
                out,
                "no empty replica of a topic in remote storage; --partition names others"
            )?;
        } else {
            table.print(&mut out, 0)?;
        }
        if is_dry_run && !table.is_empty() {
            writeln!(out, "nothing was written")?;
        }
    }
    out.flush()?;
    Ok(outcome)
}

fn outcome_of(step: &Step, result: Option<&AuxResult<AuxInstalled>>) -> Outcome {
    match (&step.begins_behind, result) {
        (Err(refusal), _) => refusal.outcome,
        // Neither disk nor store could be read, or written to.
        (_, Some(Err(error)))
            if error.kind() == AuxErrorKind::Io || error.error().kind() == Kind::Io =>
        {
            Outcome::CouldNotLook
        }
        (_, Some(Err(_))) => Outcome::Problems,
        (Ok(_), Some(Ok(_)) | None) => Outcome::Fine,
    }
}

/// Why a replica is not rebuilt.
fn error_of(step: &Step, result: Option<&AuxResult<AuxInstalled>>) -> Option<String> {
    match (&step.begins_behind, result) {
        (Err(refusal), _) => Some(refusal.why.clone()),
        (Ok(_), Some(Err(error))) => Some(error.to_string()),
        (Ok(_), Some(Ok(_)) | None) => None,
    }
}

/// One word, or why not.
fn text_of(is_dry_run: bool, step: &Step, result: Option<&AuxResult<AuxInstalled>>) -> String {
    let done = if is_dry_run { "to be rebuilt" } else { "rebuilt" };
    error_of(step, result).unwrap_or_else(|| done.to_owned())
}

fn print_step_json(
    out: &mut dyn Write,
    is_dry_run: bool,
    step: &Step,
    result: Option<&AuxResult<AuxInstalled>>,
) -> std::io::Result<()> {
    let behind = step.begins_behind.as_ref().ok();
    let installed = result.and_then(|result| result.as_ref().ok());
    let error = error_of(step, result);
    let key = FolderName::parse(&step.name).map(|name| (name.topic, name.partition));
    let epochs = installed.map(|it| {
        let entries = it.epochs.entries().iter();
        entries.map(|entry| json!([entry.epoch, entry.start_offset])).collect::<Vec<_>>()
    });
    print_json(
        out,
        &json!({
            "type": "rebuild",
            "path": step.dir.to_string_lossy(),
            "name": step.name,
            "topic_partition": key,
            "status": match &error {
                Some(_) => "failed",
                None if is_dry_run => "planned",
                None => "rebuilt",
            },
            "log_start_offset": behind.map(|(_, start)| start),
            "next_offset": behind.map(|(it, _)| it.end_offset.saturating_add(1)),
            "segment": behind.map(|(it, _)| json!({
                "id": it.id.segment_id.to_string(),
                "start_offset": it.start_offset,
                "end_offset": it.end_offset,
            })),
            "removed_bytes": step.size_bytes,
            "producers": installed.map(|it| it.producer_count),
            "epochs": epochs,
            "bytes_read": installed.map(|it| it.bytes_read),
            "error": error,
        }),
    )
}
