//! Which remote segments does retention delete?

use serde_json::{Map, Value, json};
use siltstone::Result;
use siltstone::state::{EpochEntry, LeaderEpochs};
use siltstone::tier::{
    ExpiryInput, Lineage, RemoteSegment, RemoteSegmentState, SizeRetention, plan_expiry,
};

use super::input::{Input, Segment};

/// Answers how large the log is, what goes, and what a copy that failed has left.
pub(super) fn answer(
    input: &Input<'_>,
    epochs: Option<&LeaderEpochs>,
    segments: &[Segment],
    now_ms: i64,
    answers: &mut Map<String, Value>,
) -> Result<()> {
    let retention_bytes = input.number(&["retention.bytes", "retention_bytes"])?;
    let retention_ms = input.number(&["retention.ms", "retention_ms"])?;
    let now = input.number(&["now_ms", "now"])?;
    let all: Vec<&RemoteSegment> = segments.iter().map(|segment| &segment.remote).collect();
    let is_finished = |it: &RemoteSegment| it.state == RemoteSegmentState::CopyFinished;
    let tells = |it: &&RemoteSegment| it.size_bytes > 0 || !is_finished(it);
    if retention_bytes.or(retention_ms).is_none() && !all.iter().any(tells) {
        return Ok(());
    }
    let (own, end) = lineage(input, epochs, &all)?;
    let only_local = input.number(&["only_local", "only_local_bytes", "local_only_bytes"])?;
    let only_local_bytes = u64::try_from(only_local.unwrap_or(0)).unwrap_or(0);
    let plan = plan_expiry(&ExpiryInput {
        segments: &all,
        epochs: &own,
        log_start_offset: input.offset(&["log_start", "log_start_offset"])?.unwrap_or(0),
        log_end_offset: end,
        sizes: SizeRetention {
            retention_bytes: retention_bytes.unwrap_or(-1),
            local_retention_bytes: -1,
            only_local_bytes,
            local_bytes: only_local_bytes,
        },
        // Ages are looked at when the file speaks of time.
        retention_ms: retention_ms.unwrap_or(if now.is_some() { 604_800_000 } else { -1 }),
        now_ms: now.unwrap_or(now_ms),
        is_being_copied: &|_| false,
        all_valid: false,
    });
    let id_of = |segment: &RemoteSegment| {
        let found = segments.iter().find(|it| it.remote.id == segment.id);
        found.map_or(Value::Null, |it| it.id.clone())
    };
    let gone = plan.deletes.iter().map(|(segment, _)| *segment).chain(plan.unreferenced);
    answers.insert("delete".to_owned(), gone.map(id_of).collect());
    let half_copied =
        segments.iter().filter(|it| it.remote.state == RemoteSegmentState::CopyStarted);
    answers.insert("dangling".to_owned(), half_copied.map(|it| it.id.clone()).collect());
    let lineage = Lineage::new(own.entries(), end);
    let counted = all.iter().filter(|it| is_finished(it) && lineage.holds(it));
    let sizes = counted.map(|segment| segment.log_size_bytes());
    answers.insert("total".to_owned(), json!(sizes.fold(only_local_bytes, u64::saturating_add)));
    if let Some(start) = plan.new_log_start {
        answers.insert("new_log_start".to_owned(), json!(start));
    }
    Ok(())
}

/// The epochs and the end of the log: where the file says nothing, those of a log that wrote all
/// of the segments.
fn lineage(
    input: &Input<'_>,
    epochs: Option<&LeaderEpochs>,
    segments: &[&RemoteSegment],
) -> Result<(LeaderEpochs, i64)> {
    let end = input.offset(&["log_end", "log_end_offset"])?;
    let last = segments.iter().map(|segment| segment.end_offset).max();
    let end = end.or(last.and_then(|last| last.checked_add(1))).unwrap_or(i64::MAX);
    let own = match epochs {
        Some(epochs) => epochs.clone(),
        None => {
            let mut entries: Vec<EpochEntry> =
                segments.iter().flat_map(|segment| segment.leader_epochs.iter().copied()).collect();
            entries.sort_unstable_by_key(|entry| (entry.epoch, entry.start_offset));
            entries.dedup_by_key(|entry| entry.epoch);
            LeaderEpochs::from_entries(&entries)?
        }
    };
    Ok((own, end))
}
