//! How a plan and what came of it look.

use std::io::Write;

use serde_json::json;
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
            print_step_json(&mut out, step, result.as_ref())?;
            continue;
        }
        let dash = || "-".to_owned();
        let next = step.segment.as_ref().ok().map(|it| it.end_offset.saturating_add(1));
        let installed = result.as_ref().and_then(|result| result.as_ref().ok());
        table.row([
            step.dir.display().to_string(),
            step.log_start_offset.to_string(),
            next.map_or_else(dash, |next| next.to_string()),
            installed.map_or_else(dash, |it| it.producer_count.to_string()),
            format_bytes(step.size_bytes),
            text_of(step, result.as_ref()),
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
    match (&step.segment, result) {
        (_, Some(Err(error))) if error.kind() == AuxErrorKind::Io => Outcome::CouldNotLook,
        (Err(_), _) | (_, Some(Err(_))) => Outcome::Problems,
        (Ok(_), Some(Ok(_)) | None) => Outcome::Fine,
    }
}

/// One word, or why not.
fn text_of(step: &Step, result: Option<&AuxResult<AuxInstalled>>) -> String {
    match (&step.segment, result) {
        (Err(why), _) => why.clone(),
        (Ok(_), Some(Ok(_))) => "rebuilt".to_owned(),
        (Ok(_), Some(Err(error))) => error.to_string(),
        (Ok(_), None) => "to be rebuilt".to_owned(),
    }
}

fn print_step_json(
    out: &mut dyn Write,
    step: &Step,
    result: Option<&AuxResult<AuxInstalled>>,
) -> std::io::Result<()> {
    let segment = step.segment.as_ref().ok();
    let installed = result.and_then(|result| result.as_ref().ok());
    let error = match (&step.segment, result) {
        (Err(why), _) => Some(why.clone()),
        (_, Some(Err(error))) => Some(error.to_string()),
        _ => None,
    };
    let epochs = installed.map(|it| {
        let entries = it.epochs.entries().iter();
        entries.map(|entry| json!([entry.epoch, entry.start_offset])).collect::<Vec<_>>()
    });
    print_json(
        out,
        &json!({
            "type": "rebuild",
            "path": step.dir.to_string_lossy(),
            "topic_partition": step.name,
            "status": match (&error, installed) {
                (Some(_), _) => "failed",
                (None, Some(_)) => "rebuilt",
                (None, None) => "planned",
            },
            "log_start_offset": step.log_start_offset,
            "next_offset": segment.map(|it| it.end_offset.saturating_add(1)),
            "segment": segment.map(|it| json!({
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
