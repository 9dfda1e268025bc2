//! Which remote segments does retention delete?

use serde_json::{Map, Value, json};
use siltstone::Result;
use siltstone::state::{EpochEntry, LeaderEpochs};
use siltstone::tier::{
    ExpiryInput, RemotePartition, RemoteSegment, RemoteSegmentId, RemoteSegmentState,
    SizeRetention, plan_expiry,
};
use siltstone::uuid::Uuid;

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
    let tells = |it: &Segment| it.size_bytes > 0 || it.state != RemoteSegmentState::CopyFinished;
    if retention_bytes.or(retention_ms).is_none() && !segments.iter().any(tells) {
        return Ok(());
    }
    let (own, end) = lineage(input, epochs, segments)?;
    let remote: Vec<RemoteSegment> =
        segments.iter().zip(1..).map(|(it, number)| remote_segment(it, number)).collect();
    let all: Vec<&RemoteSegment> = remote.iter().collect();
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
        let slot = all.iter().position(|it| it.id == segment.id);
        slot.and_then(|slot| segments.get(slot)).map_or(Value::Null, |it| it.id.clone())
    };
    let gone = plan.deletes.iter().map(|(segment, _)| *segment).chain(plan.unreferenced);
    answers.insert("delete".to_owned(), gone.map(id_of).collect());
    let half_copied = segments.iter().filter(|it| it.state == RemoteSegmentState::CopyStarted);
    answers.insert("dangling".to_owned(), half_copied.map(|it| it.id.clone()).collect());
    let lineage = siltstone::tier::Lineage::new(own.entries(), end);
    let counts =
        |it: &&RemoteSegment| it.state == RemoteSegmentState::CopyFinished && lineage.holds(it);
    let sizes = remote.iter().filter(counts).map(RemoteSegment::log_size_bytes);
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
    segments: &[Segment],
) -> Result<(LeaderEpochs, i64)> {
    let end = input.offset(&["log_end", "log_end_offset"])?;
    let last = segments.iter().map(|segment| segment.end_offset).max();
    let end = end.or(last.and_then(|last| last.checked_add(1))).unwrap_or(i64::MAX);
    let own = match epochs {
        Some(epochs) => epochs.clone(),
        None => {
            let mut entries: Vec<EpochEntry> = segments.iter().flat_map(epochs_of).collect();
            entries.sort_unstable_by_key(|entry| (entry.epoch, entry.start_offset));
            entries.dedup_by_key(|entry| entry.epoch);
            LeaderEpochs::from_entries(&entries)?
        }
    };
    Ok((own, end))
}

/// The epochs of a segment; of one that says none, epoch 0.
fn epochs_of(segment: &Segment) -> Vec<EpochEntry> {
    if segment.epochs.is_empty() {
        return vec![EpochEntry { epoch: 0, start_offset: segment.start_offset }];
    }
    segment.epochs.clone()
}

fn remote_segment(segment: &Segment, number: u128) -> RemoteSegment {
    let partition = RemotePartition { topic_id: Uuid::ZERO, topic: String::new(), partition: 0 };
    RemoteSegment {
        id: RemoteSegmentId { partition, segment_id: Uuid(number.to_be_bytes()) },
        start_offset: segment.start_offset,
        end_offset: segment.end_offset,
        max_timestamp_ms: segment.max_timestamp_ms,
        broker_id: 0,
        event_timestamp_ms: 0,
        size_bytes: segment.size_bytes,
        custom_metadata: None,
        state: segment.state,
        leader_epochs: epochs_of(segment),
        is_txn_index_empty: true,
    }
}
