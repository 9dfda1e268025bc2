//! The records of `__remote_log_metadata`.

use engine::state::EpochEntry;
use engine::tier::{
    PartitionDelete, PartitionDeleteState, RemoteMetadataRecord, RemotePartition, RemoteSegment,
    RemoteSegmentId, RemoteSegmentState, RemoteSegmentUpdate, SegmentSnapshot, metadata_partition,
};
use engine::uuid::Uuid;

use super::types::RemoteRecord;
use crate::error::{Failure, Outcome, SiltError, Status, fits, guard, invalid};
use crate::memory::{
    Growing, bytes_of, check_struct, items_of, items_of_mut, put, put_whole, read_struct, u32_of,
    write_struct,
};
use crate::types::Epoch;

const SEGMENT: u32 = 0;
const UPDATE: u32 = 1;
const PARTITION_DELETE: u32 = 2;
const SNAPSHOT: u32 = 3;

/// `SILT_REMOTE_TXN_INDEX_EMPTY`.
const TXN_INDEX_EMPTY: u32 = 1;

/// What a record says.
///
/// # Safety
/// The record's arrays are NULL or as long as it says.
pub unsafe fn read_record(record: &RemoteRecord) -> Outcome<RemoteMetadataRecord> {
    // SAFETY: the caller's promise.
    let custom_metadata = unsafe { custom(record)? };
    let RemoteRecord { broker_id, event_timestamp_ms, .. } = *record;
    let partition = || {
        // SAFETY: the caller's promise.
        unsafe { partition(record) }
    };
    let id = || {
        let segment_id = Uuid(record.segment_id);
        Ok::<_, Failure>(RemoteSegmentId { partition: partition()?, segment_id })
    };
    Ok(match record.kind {
        SEGMENT | SNAPSHOT => {
            // SAFETY: the caller's promise.
            let snapshot = unsafe { snapshot(record, custom_metadata)? };
            if record.kind == SNAPSHOT {
                return Ok(RemoteMetadataRecord::Snapshot(snapshot));
            }
            let segment = snapshot.into_segment(partition()?);
            segment.check()?;
            RemoteMetadataRecord::Segment(segment)
        }
        UPDATE => RemoteMetadataRecord::Update(RemoteSegmentUpdate {
            id: id()?,
            event_timestamp_ms,
            custom_metadata,
            state: state(record.state)?,
            broker_id,
        }),
        PARTITION_DELETE => {
            let found = i8::try_from(record.state).ok().and_then(PartitionDeleteState::from_wire);
            let Some(state) = found else { return invalid("the state is none of a partition") };
            let partition = partition()?;
            let delete = PartitionDelete { partition, event_timestamp_ms, state, broker_id };
            RemoteMetadataRecord::PartitionDelete(delete)
        }
        _ => return invalid("kind is none of SILT_REMOTE_"),
    })
}

fn state(number: i32) -> Outcome<RemoteSegmentState> {
    let state = i8::try_from(number).ok().and_then(RemoteSegmentState::from_wire);
    state.map_or_else(|| invalid("the state is none of a segment"), Ok)
}

/// # Safety
/// That of [`read_record`].
unsafe fn partition(record: &RemoteRecord) -> Outcome<RemotePartition> {
    let (topic, size) = (record.topic.cast::<u8>(), u64::from(record.topic_size_bytes));
    // SAFETY: the caller's bytes.
    let topic = unsafe { bytes_of(topic, size)? };
    let Ok(topic) = std::str::from_utf8(topic) else { return invalid("a topic is not UTF-8") };
    let (topic_id, topic) = (Uuid(record.topic_id), topic.to_owned());
    Ok(RemotePartition { topic_id, topic, partition: record.partition })
}

/// # Safety
/// That of [`read_record`].
unsafe fn custom(record: &RemoteRecord) -> Outcome<Option<Vec<u8>>> {
    match u64::try_from(record.custom_size_bytes) {
        // SAFETY: the caller's bytes.
        Ok(size) => Ok(Some(unsafe { bytes_of(record.custom, size)? }.to_vec())),
        Err(_) if record.custom_size_bytes == -1 => Ok(None),
        Err(_) => invalid("custom_size_bytes is negative"),
    }
}

/// # Safety
/// That of [`read_record`].
unsafe fn snapshot(
    record: &RemoteRecord,
    custom_metadata: Option<Vec<u8>>,
) -> Outcome<SegmentSnapshot> {
    if record.flags & !TXN_INDEX_EMPTY != 0 {
        return invalid("flags are none of SILT_REMOTE_");
    }
    // SAFETY: the caller's array.
    let epochs = unsafe { items_of(record.epochs, u64::from(record.epoch_count))? };
    Ok(SegmentSnapshot {
        segment_id: Uuid(record.segment_id),
        start_offset: record.start_offset,
        end_offset: record.end_offset,
        max_timestamp_ms: record.max_timestamp_ms,
        broker_id: record.broker_id,
        event_timestamp_ms: record.event_timestamp_ms,
        size_bytes: record.size_bytes,
        custom_metadata,
        state: state(record.state)?,
        leader_epochs: epochs.iter().map(EpochEntry::from).collect(),
        is_txn_index_empty: record.flags & TXN_INDEX_EMPTY != 0,
    })
}

/// What is told of a record, but for its arrays.
struct Parts<'a> {
    fields: RemoteRecord,
    topic: &'a str,
    custom: Option<&'a [u8]>,
    epochs: &'a [EpochEntry],
}

/// What a segment or a snapshot of one says, above what is said of its partition.
fn parts_of_snapshot<'a>(snapshot: &'a SegmentSnapshot, above: Parts<'a>) -> Parts<'a> {
    Parts {
        fields: RemoteRecord {
            state: i32::from(snapshot.state.wire()),
            broker_id: snapshot.broker_id,
            start_offset: snapshot.start_offset,
            end_offset: snapshot.end_offset,
            max_timestamp_ms: snapshot.max_timestamp_ms,
            event_timestamp_ms: snapshot.event_timestamp_ms,
            size_bytes: snapshot.size_bytes,
            flags: u32::from(snapshot.is_txn_index_empty),
            segment_id: snapshot.segment_id.0,
            ..above.fields
        },
        custom: snapshot.custom_metadata.as_deref(),
        epochs: &snapshot.leader_epochs,
        ..above
    }
}

/// What is said of a partition.
fn parts_of_partition(kind: u32, partition: &RemotePartition) -> Parts<'_> {
    let topic_id = partition.topic_id.0;
    Parts {
        fields: RemoteRecord {
            kind,
            partition: partition.partition,
            topic_id,
            ..RemoteRecord::INIT
        },
        topic: &partition.topic,
        custom: None,
        epochs: &[],
    }
}

/// Tells a segment to the record of the caller.
///
/// # Safety
/// That of [`tell`].
pub unsafe fn tell_segment(segment: &RemoteSegment, to: *mut RemoteRecord) -> Outcome<()> {
    let above = parts_of_partition(SEGMENT, &segment.id.partition);
    // SAFETY: the caller's promise.
    unsafe { tell(&parts_of_snapshot(&SegmentSnapshot::from(segment), above), to) }
}

/// Tells a record to that of the caller.
///
/// # Safety
/// That of [`tell`].
unsafe fn tell_record(record: &RemoteMetadataRecord, to: *mut RemoteRecord) -> Outcome<()> {
    let parts = match record {
        // SAFETY: the caller's promise.
        RemoteMetadataRecord::Segment(segment) => return unsafe { tell_segment(segment, to) },
        RemoteMetadataRecord::Snapshot(snapshot) => {
            let fields = RemoteRecord { kind: SNAPSHOT, ..RemoteRecord::INIT };
            let above = Parts { fields, topic: "", custom: None, epochs: &[] };
            parts_of_snapshot(snapshot, above)
        }
        RemoteMetadataRecord::Update(update) => {
            let above = parts_of_partition(UPDATE, &update.id.partition);
            let fields = RemoteRecord {
                state: i32::from(update.state.wire()),
                broker_id: update.broker_id,
                event_timestamp_ms: update.event_timestamp_ms,
                segment_id: update.id.segment_id.0,
                ..above.fields
            };
            Parts { fields, custom: update.custom_metadata.as_deref(), ..above }
        }
        RemoteMetadataRecord::PartitionDelete(delete) => {
            let above = parts_of_partition(PARTITION_DELETE, &delete.partition);
            let fields = RemoteRecord {
                state: i32::from(delete.state.wire()),
                broker_id: delete.broker_id,
                event_timestamp_ms: delete.event_timestamp_ms,
                ..above.fields
            };
            Parts { fields, ..above }
        }
    };
    // SAFETY: the caller's promise.
    unsafe { tell(&parts, to) }
}

/// Writes to a record of the caller, whose arrays have the room that it says.
///
/// # Safety
/// `to` is NULL or a struct of the header, and its arrays are NULL or as long as it says.
unsafe fn tell(parts: &Parts<'_>, to: *mut RemoteRecord) -> Outcome<()> {
    // SAFETY: the caller's promise.
    let asked = unsafe { read_struct(to.cast_const())? };
    // SAFETY: the caller's array.
    let topic = unsafe { put(asked.topic.cast(), asked.topic_capacity, parts.topic.as_bytes())? };
    let bytes = parts.custom.unwrap_or_default();
    // SAFETY: the caller's array.
    let custom = unsafe { put(asked.custom, asked.custom_capacity, bytes)? };
    let entries: Vec<Epoch> = parts.epochs.iter().map(Epoch::from).collect();
    // SAFETY: the caller's array.
    let epochs = unsafe { put(asked.epochs, asked.epoch_capacity, &entries)? };
    let told = RemoteRecord {
        topic: asked.topic,
        topic_capacity: asked.topic_capacity,
        topic_size_bytes: u32_of(parts.topic.len()),
        custom: asked.custom,
        custom_capacity: asked.custom_capacity,
        custom_size_bytes: match parts.custom {
            Some(custom) => i32::try_from(custom.len()).unwrap_or(i32::MAX),
            None => -1,
        },
        epochs: asked.epochs,
        epoch_capacity: asked.epoch_capacity,
        epoch_count: u32_of(parts.epochs.len()),
        ..parts.fields
    };
    // SAFETY: a struct of the header.
    unsafe { write_struct(to, &told)? };
    fits(topic && custom && epochs, "an array of the record is too small")
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_remote_record_encode(
    record: *const RemoteRecord,
    bytes: *mut u8,
    capacity: u64,
    size_bytes: *mut u64,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let record = unsafe { read_struct(record)? };
        // SAFETY: the caller's bytes.
        let room = unsafe { items_of_mut(bytes, capacity)? };
        // SAFETY: the record's arrays.
        let encoded = unsafe { read_record(&record)? }.encode()?;
        // SAFETY: the caller's number.
        unsafe { put_whole(room, &encoded, size_bytes, "the record does not fit") }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_remote_record_decode(
    bytes: *const u8,
    size_bytes: u64,
    record: *mut RemoteRecord,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's bytes.
        let bytes = unsafe { bytes_of(bytes, size_bytes)? };
        // SAFETY: a struct of the header.
        unsafe { check_struct(record)? };
        let decoded = RemoteMetadataRecord::decode(bytes)?;
        // SAFETY: a struct of the header, and its arrays.
        unsafe { tell_record(&decoded, record) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_remote_metadata_partition(
    topic_id: *const u8,
    partition: i32,
    partition_count: u32,
) -> u32 {
    // SAFETY: the caller's id.
    let Ok(id) = (unsafe { bytes_of(topic_id, 16) }) else { return 0 };
    let topic_id = Uuid(id.try_into().unwrap_or_default());
    metadata_partition(
        &RemotePartition { topic_id, topic: String::new(), partition },
        partition_count,
    )
}
