//! What is in remote storage, whose is it, and how long does it stay?

use serde_json::{Map, Value, json};
use siltstone::Result;
use siltstone::dir::metadata::Configs;
use siltstone::dir::settings::{Layers, Resolver};
use siltstone::replica::{EpochEnd, aux_target};
use siltstone::state::LeaderEpochs;
use siltstone::tier::{
    Lineage, RemoteSegmentState, RemoteTopicConfig, check_topic_config, highest_remote,
};

use super::input::{Input, Segment};
use super::retention;

/// Answers all questions that are asked of remote segments and of settings.
pub(super) fn answer(
    input: &Input<'_>,
    now_ms: i64,
    answers: &mut Map<String, Value>,
) -> Result<()> {
    let epochs = input.epochs()?;
    let segments = input.segments(epochs.as_ref())?;
    let log_end = input.offset(&["log_end", "log_end_offset"])?;
    if let (Some(epochs), Some(segments)) = (&epochs, &segments) {
        let end = log_end.unwrap_or(i64::MAX);
        let found = highest_remote(epochs, end, |epoch| highest_of(segments, epoch));
        let offset = found.map_or(-1, |found| found.offset);
        answers.insert("highest_remote_offset".to_owned(), json!(offset));
        answers.insert("highest_remote_epoch".to_owned(), json!(found.map(|found| found.epoch)));
        // Where the log starts decides nothing here, and may be said.
        input.offset(&["log_start", "log_start_offset"])?;
        lineage(&Lineage::new(epochs.entries(), end), segments, answers);
    }
    if let Some(segments) = &segments {
        retention::answer(input, epochs.as_ref(), segments, now_ms, answers)?;
    }
    let start = input.offset(&["start_offset", "start", "offset"])?;
    if let (Some(epochs), Some(start)) = (&epochs, start) {
        let epoch = input.epoch(&["start_epoch", "epoch"])?;
        aux_epoch(epochs, start, epoch, log_end.unwrap_or(i64::MAX), answers);
    }
    local_retention(input, answers)
}

/// How far the finished segments reach in an epoch.
fn highest_of(segments: &[Segment], epoch: i32) -> Option<i64> {
    let remote = segments.iter().map(|segment| &segment.remote);
    let finished = remote.filter(|it| it.state == RemoteSegmentState::CopyFinished);
    finished.filter_map(|segment| segment.last_offset_of(epoch)).max()
}

fn lineage(lineage: &Lineage, segments: &[Segment], answers: &mut Map<String, Value>) {
    let (mut within, mut outside) = (Vec::new(), Vec::new());
    for segment in segments {
        let side = if lineage.holds(&segment.remote) { &mut within } else { &mut outside };
        side.push(segment.id.clone());
    }
    answers.insert("within".to_owned(), Value::Array(within));
    answers.insert("outside".to_owned(), Value::Array(outside));
}

/// The epoch of the remote segment that a follower is built from which starts at `start`.
fn aux_epoch(
    epochs: &LeaderEpochs,
    start: i64,
    epoch: Option<i32>,
    log_end: i64,
    answers: &mut Map<String, Value>,
) {
    let Some(epoch) = epoch.or_else(|| epochs.epoch_for_offset(start)) else { return };
    let asked = epoch.saturating_sub(1);
    let (reply, end_offset) = epochs.end_offset_for(asked, log_end);
    let reply = EpochEnd { asked, epoch: reply, end_offset };
    if let Ok(target) = aux_target(start, epoch, Some(reply)) {
        answers.insert("aux_epoch".to_owned(), json!(target.epoch));
        answers.insert("target_epoch".to_owned(), json!(target.epoch));
        answers.insert("previous_offset".to_owned(), json!(target.previous_offset));
    }
}

/// What stays on the local disk of a topic with remote storage.
fn local_retention(input: &Input<'_>, answers: &mut Map<String, Value>) -> Result<()> {
    let names = [
        ("retention.ms", "retention_ms"),
        ("retention.bytes", "retention_bytes"),
        ("local.retention.ms", "local_retention_ms"),
        ("local.retention.bytes", "local_retention_bytes"),
    ];
    let disabled_names = ["remote_log_copy_disable", "remote_copy_disabled", "copy_disabled"];
    let mut configs = Configs::new();
    for (setting, key) in names {
        if let Some(value) = input.number(&[setting, key])? {
            configs.insert(setting.to_owned(), value.to_string());
        }
    }
    if configs.is_empty() {
        return Ok(());
    }
    let disabled = input.flag(&disabled_names)?.unwrap_or(false);
    let settings = Resolver::new(Layers::default())?.topic("scenario", Some(&configs))?;
    // Without uploads a segment goes from the local disk when it goes for good.
    let (ms, bytes) = if disabled {
        (settings.retention_ms, settings.retention_bytes)
    } else {
        (settings.local_retention_ms(), settings.local_retention_bytes())
    };
    let config = RemoteTopicConfig {
        remote_storage: true,
        copy_disabled: disabled,
        ..RemoteTopicConfig::from(&settings)
    };
    if let Err(refusal) = check_topic_config(None, &config, true) {
        answers.insert("refused".to_owned(), json!(refusal.to_string()));
    }
    answers.insert("effective_local_retention_ms".to_owned(), json!(ms));
    answers.insert("effective_local_retention_bytes".to_owned(), json!(bytes));
    Ok(())
}
