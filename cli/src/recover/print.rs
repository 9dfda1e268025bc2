//! What came of a recovery, for people and as JSON.

use std::io::Write;

use serde_json::{Map, Value, json};
use siltstone::dir::recover::{DirReport, PartitionDone, PartitionResult};
use siltstone::dir::settings::{Source, TopicSettings};
use siltstone::log::recover::{Action, CutReason, Plan};
use siltstone::problem::{Problem, Severity};
use siltstone::segment::damage::whole_batches;
use siltstone::segment::{FileName, FileRole};

use crate::output::{format_bytes, format_count, print_json, stdout};
use crate::report::problem_json;

/// The settings of a topic that recovery goes by.
const SETTINGS: [&str; 3] =
    ["index.interval.bytes", "segment.index.bytes", "remote.storage.enable"];

/// Prints results as they come.
#[derive(Debug)]
pub(crate) struct Printer {
    json: bool,
    dry_run: bool,
    /// The first error of standard output; told at the end.
    error: Option<std::io::Error>,
}

impl Printer {
    pub(crate) fn new(json: bool, dry_run: bool) -> Printer {
        Printer { json, dry_run, error: None }
    }

    /// Prints what came of a partition.
    ///
    /// One that was named by itself has a line of its own even if there was nothing to do.
    pub(crate) fn partition(
        &mut self,
        done: &PartitionDone<'_>,
        settings: Option<&TopicSettings>,
        is_named: bool,
    ) {
        let printed = if self.json {
            print_json(&mut stdout(), &self.partition_json(done, settings))
        } else {
            self.partition_text(done, is_named)
        };
        self.note(printed);
    }

    /// Prints what came of a log directory.
    pub(crate) fn directory(&mut self, report: &DirReport) {
        let printed = if self.json {
            print_json(&mut stdout(), &directory_json(report))
        } else {
            self.directory_text(report)
        };
        self.note(printed);
    }

    /// Tells whether all could be printed.
    pub(crate) fn finish(self) -> std::io::Result<()> {
        self.error.map_or(Ok(()), Err)
    }

    fn note(&mut self, printed: std::io::Result<()>) {
        if let Err(error) = printed {
            self.error.get_or_insert(error);
        }
    }

    fn partition_json(&self, done: &PartitionDone<'_>, settings: Option<&TopicSettings>) -> Value {
        let mut object = Map::new();
        object.insert("type".into(), json!("partition"));
        object.insert("path".into(), json!(done.dir.to_string_lossy()));
        let key = done.topic.zip(done.partition);
        object.insert("topic_partition".into(), json!(key));
        object.insert("dry_run".into(), json!(self.dry_run));
        let (result, plan) = match done.result {
            PartitionResult::Sound(plan) => ("sound", Some(plan)),
            PartitionResult::Refused(plan) => ("refused", Some(plan)),
            PartitionResult::Quarantined(plan, target) => {
                object.insert("moved_to".into(), json!(target.to_string_lossy()));
                ("quarantined", Some(plan))
            }
            PartitionResult::Failed(error) => {
                object.insert("error".into(), json!(error.to_string()));
                ("failed", None)
            }
        };
        object.insert("result".into(), json!(result));
        if let Some(plan) = plan {
            plan_json(&mut object, plan);
        }
        if let Some(settings) = settings {
            let resolved = settings.resolved.iter().filter(|one| SETTINGS.contains(&one.name));
            let told: Map<String, Value> = resolved
                .map(|one| {
                    let told =
                        json!({"value": one.value.to_string(), "source": source_name(one.source)});
                    (one.name.to_owned(), told)
                })
                .collect();
            object.insert("settings".into(), Value::Object(told));
        }
        Value::Object(object)
    }

    fn partition_text(&self, done: &PartitionDone<'_>, is_named: bool) -> std::io::Result<()> {
        let mut out = stdout();
        let name = done.dir.file_name().unwrap_or_default().to_string_lossy();
        match done.result {
            PartitionResult::Failed(error) => {
                writeln!(out, "{name}: could not be recovered: {error}")?
            }
            PartitionResult::Refused(plan) => {
                writeln!(out, "{name}: left as it is: {}", reason(plan))?
            }
            PartitionResult::Quarantined(plan, target) => {
                writeln!(out, "{name}: moved to {}: {}", target.display(), reason(plan))?;
            }
            PartitionResult::Sound(plan) if plan.is_empty() => {
                if is_named {
                    writeln!(out, "{name}: is sound, nothing to do")?;
                }
            }
            PartitionResult::Sound(plan) => {
                let verb = if self.dry_run { "would be" } else { "is" };
                let end = plan.outcome.log_end_offset;
                writeln!(
                    out,
                    "{name}: {verb} sound, offsets {} to {end}",
                    plan.outcome.log_start_offset
                )?;
                if let Some(split) = &plan.split {
                    writeln!(
                        out,
                        "  segment {} is split into {}: its offsets reach too far for an index",
                        split.base_offset,
                        split.parts.len()
                    )?;
                }
                if plan.cut.is_some() {
                    writeln!(out, "  {}", cut_text(plan))?;
                }
                for action in &plan.actions {
                    writeln!(out, "  {}", action_text(action))?;
                }
            }
        }
        out.flush()
    }

    fn directory_text(&self, report: &DirReport) -> std::io::Result<()> {
        let mut out = stdout();
        for problem in &report.problems {
            writeln!(out, "{}: {problem}", report.dir.display())?;
        }
        let mut parts = vec![format!("{} partitions sound", format_count(count(report.sound)))];
        for (number, what) in [
            (report.refused, "left as they are"),
            (report.quarantined, "moved away"),
            (report.failed, "could not be recovered"),
        ] {
            if number > 0 {
                parts.push(format!("{} {what}", format_count(count(number))));
            }
        }
        let state = if self.dry_run {
            "nothing was written"
        } else if report.is_clean && report.keeps_kafka_from_starting() {
            "it has its clean-shutdown marker, but Kafka does not start with what is named above"
        } else if report.is_clean {
            "Kafka starts as after a clean stop"
        } else if report.refused > 0 || report.failed > 0 {
            "no clean-shutdown marker: Kafka would recover this directory, and cut what is left as it is"
        } else {
            "no clean-shutdown marker"
        };
        writeln!(out, "{}: {}; {state}", report.dir.display(), parts.join(", "))?;
        out.flush()
    }
}

/// Where a setting comes from, by the option that brought it.
fn source_name(source: Source) -> &'static str {
    match source {
        Source::Override => "--config",
        Source::TopicOverride => "--topic-configs",
        Source::ServerProperties => "server.properties",
        other => other.as_str(),
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn reason(plan: &Plan) -> &str {
    plan.refusal.as_ref().map_or("", |refusal| refusal.reason.as_str())
}

fn cut_text(plan: &Plan) -> String {
    let Some(cut) = &plan.cut else { return String::new() };
    let later: u64 = cut.later_segments.iter().map(|(_, size)| size).sum();
    let bytes = cut.segment.map_or(0, |segment| segment.cut_bytes).saturating_add(later);
    let what = match cut.reason {
        CutReason::Asked => "cut where you asked".to_owned(),
        CutReason::Damage(code) => format!("cut at {code}: {}", cut.detail),
    };
    let lost = match (cut.survivors.batches, cut.survivors.end_offset) {
        (0, _) => "nothing whole was behind it".to_owned(),
        (batches, Some(end)) => format!(
            "offsets {} to {} are lost, {} among them{}",
            cut.from_offset,
            end.saturating_sub(1),
            whole_batches(batches),
            if plan.keep_lost { "; kept as .log.lost" } else { "" }
        ),
        (batches, None) => format!("whole batches that are lost: {batches}"),
    };
    let place = cut.segment.map_or(String::new(), |segment| {
        let file = FileName::live(segment.base_offset, FileRole::Log).format();
        format!("{file}, position {}, ", segment.position)
    });
    format!("{place}offset {}: {what}; {} go, {lost}", cut.from_offset, format_bytes(bytes))
}

fn action_text(action: &Action) -> String {
    match action {
        Action::Remove { name, why } => format!("{name}: removed ({why})"),
        Action::Rename { from, to } => format!("{from}: becomes {to}"),
        Action::Write { name, why, .. } => format!("{name}: written ({why})"),
        Action::Shorten { name, size_bytes } => {
            format!("{name}: shortened to {} of right entries", format_bytes(*size_bytes))
        }
    }
}

fn plan_json(object: &mut Map<String, Value>, plan: &Plan) {
    let outcome = &plan.outcome;
    if let Some(refusal) = &plan.refusal {
        object.insert(
            "refusal".into(),
            json!({"code": refusal.code.as_str(), "reason": refusal.reason, "loss": refusal.loss}),
        );
    } else {
        let epochs: Vec<(i32, i64)> =
            outcome.epochs.iter().map(|entry| (entry.epoch, entry.start_offset)).collect();
        object.insert("log_start_offset".into(), json!(outcome.log_start_offset));
        object.insert("log_end_offset".into(), json!(outcome.log_end_offset));
        object.insert("last_stable_offset".into(), json!(outcome.last_stable_offset));
        object.insert("epochs".into(), json!(epochs));
        object.insert("producer_count".into(), json!(outcome.producers));
        object.insert("segments".into(), json!(outcome.segments));
        object.insert("segments_read".into(), json!(outcome.segments_read));
        object.insert("log_bytes".into(), json!(outcome.log_bytes));
        object.insert("bytes_read".into(), json!(outcome.bytes_read));
        object.insert("batches_read".into(), json!(outcome.batches_read));
    }
    if let Some(split) = &plan.split {
        let bases: Vec<i64> = split.parts.iter().map(|(base, _)| *base).collect();
        object.insert("split".into(), json!({"base_offset": split.base_offset, "into": bases}));
    }
    if let Some(cut) = &plan.cut {
        let code = match cut.reason {
            CutReason::Damage(code) => json!(code.as_str()),
            CutReason::Asked => Value::Null,
        };
        object.insert(
            "cut".into(),
            json!({
                "code": code,
                "detail": cut.detail,
                "from_offset": cut.from_offset,
                "base_offset": cut.segment.map(|segment| segment.base_offset),
                "position": cut.segment.map(|segment| segment.position),
                "cut_bytes": cut.segment.map(|segment| segment.cut_bytes),
                "later_segments": cut.later_segments,
                "batches_lost": cut.survivors.batches,
                "end_offset_lost": cut.survivors.end_offset,
                "kept": plan.keep_lost && cut.survivors.any(),
            }),
        );
    }
    let actions: Vec<Value> = plan.actions.iter().map(action_json).collect();
    object.insert("actions".into(), json!(actions));
    let (notices, problems): (Vec<&Problem>, Vec<&Problem>) =
        plan.problems.iter().partition(|problem| problem.severity == Severity::Notice);
    object.insert("problems".into(), problems_json(&problems));
    object.insert("notices".into(), problems_json(&notices));
}

fn action_json(action: &Action) -> Value {
    match action {
        Action::Remove { name, why } => json!({"action": "remove", "file": name, "why": why}),
        Action::Rename { from, to } => json!({"action": "rename", "file": from, "to": to}),
        Action::Write { name, why, .. } => json!({"action": "write", "file": name, "why": why}),
        Action::Shorten { name, size_bytes } => {
            json!({"action": "shorten", "file": name, "size_bytes": size_bytes})
        }
    }
}

fn problems_json(problems: &[&Problem]) -> Value {
    problems.iter().map(|problem| problem_json(problem)).collect()
}

fn directory_json(report: &DirReport) -> Value {
    let problems: Vec<&Problem> = report.problems.iter().collect();
    json!({
        "type": "log_dir",
        "path": report.dir.to_string_lossy(),
        "was_clean": report.was_clean,
        "is_clean": report.is_clean,
        "sound": report.sound,
        "refused": report.refused,
        "quarantined": report.quarantined,
        "failed": report.failed,
        "problems": problems_json(&problems),
    })
}
