//! Which remote record answers for a timestamp?

use std::ops::ControlFlow;

use super::remote_segment::{RemoteSegment, RemoteSegmentState};
use super::view::{RemoteBatches, RemoteView};
use crate::error::{Error, Result};
use crate::record::BatchReader;
use crate::segment::TimestampAndOffset;
use crate::units::NO_LEADER_EPOCH;

/// The largest batch that is opened.
const BATCH_BYTES_MAX: usize = 1 << 30;

/// Bytes of a log that are fetched at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// Who answers for a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteTimestamp {
    /// Remote storage: this record, or none at all.
    Found(Option<TimestampAndOffset>),
    /// The local segments, from the first one on.
    TryLocal,
}

/// Looks for the first record at `from_offset` or behind it that is as late as `timestamp_ms`.
///
/// `first_local_base` is the base offset of the first segment on the local disk: what both have is
/// read there.
///
/// # Errors
/// Those of the store; `Corrupt` for a log that is none.
pub fn remote_offset_for_timestamp(
    view: &RemoteView<'_>,
    timestamp_ms: i64,
    from_offset: i64,
    first_local_base: Option<i64>,
) -> Result<RemoteTimestamp> {
    // spec: tiered 8, "By timestamp"
    let Some(first) = view.epochs.epoch_for_offset(from_offset) else {
        return Ok(RemoteTimestamp::TryLocal);
    };
    for entry in view.epochs.entries().iter().filter(|entry| entry.epoch >= first) {
        for segment in view.cache.list(entry.epoch)? {
            let may_answer = segment.max_timestamp_ms >= timestamp_ms
                && segment.end_offset >= from_offset
                && segment.state == RemoteSegmentState::CopyFinished
                && view.holds(segment);
            if !may_answer {
                continue;
            }
            if first_local_base.is_some_and(|base| segment.start_offset >= base) {
                return Ok(RemoteTimestamp::TryLocal);
            }
            let found = find_in(view, segment, timestamp_ms, from_offset)?;
            return Ok(RemoteTimestamp::Found(found));
        }
    }
    Ok(RemoteTimestamp::TryLocal)
}

/// Looks in one segment.
fn find_in(
    view: &RemoteView<'_>,
    segment: &RemoteSegment,
    timestamp_ms: i64,
    from_offset: i64,
) -> Result<Option<TimestampAndOffset>> {
    let name = view.log_name(segment);
    let indexes = view.indexes.indexes(segment)?;
    let from = from_offset.max(indexes.time_entries().lookup(timestamp_ms).offset);
    let size_bytes = segment.log_size_bytes();
    let mut batches = RemoteBatches::new(view.target, &name, size_bytes, 0, WINDOW_BYTES);
    let in_log = |error: Error| error.context(name.clone());
    let entry = indexes.offset_entries().lookup(from);
    batches.begin_at(entry, segment.start_offset).map_err(in_log)?;
    let mut reader = BatchReader::new(BATCH_BYTES_MAX);
    while let Some((header, position)) = batches.next().map_err(in_log)? {
        if header.max_timestamp < timestamp_ms || header.last_offset() < from_offset {
            continue;
        }
        let size = usize::try_from(header.size_bytes).unwrap_or(usize::MAX);
        let batch = batches.bytes(position, size).map_err(in_log)?;
        let mut found = None;
        let outcome = reader.read(&header, batch, &mut |record| {
            if record.timestamp_ms < timestamp_ms || record.offset < from_offset {
                return ControlFlow::Continue(());
            }
            let epoch = header.leader_epoch;
            found = Some(TimestampAndOffset {
                timestamp_ms: record.timestamp_ms,
                offset: record.offset,
                leader_epoch: (epoch != NO_LEADER_EPOCH).then_some(epoch),
            });
            ControlFlow::Break(())
        });
        outcome.map_err(|fault| in_log(Error::corrupt(fault.detail).at_position(position)))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::metadata_cache::tests::segment;
    use super::super::test_store::{TestStore, batch};
    use super::*;

    const T: i64 = 1000;

    fn find(
        store: &TestStore,
        timestamp_ms: i64,
        from_offset: i64,
        first_local_base: Option<i64>,
    ) -> RemoteTimestamp {
        store
            .with(|view| {
                remote_offset_for_timestamp(view, timestamp_ms, from_offset, first_local_base)
            })
            .unwrap()
    }

    fn found(timestamp_ms: i64, offset: i64, epoch: i32) -> RemoteTimestamp {
        let leader_epoch = Some(epoch);
        RemoteTimestamp::Found(Some(TimestampAndOffset { timestamp_ms, offset, leader_epoch }))
    }

    const EPOCHS: &str = "4:99 5:99 10:120 12:500";

    #[test]
    fn the_first_record_as_late_as_the_timestamp_answers() {
        // spec: tiered R1, R2, R3
        let records =
            [batch(120, 10, &[T - 1]), batch(121, 10, &[T + 1]), batch(122, 10, &[T + 2])];
        let mut store = TestStore::new(EPOCHS, 600);
        store.upload(segment(1, 120, 122, "10:120"), &records, &[]);
        assert_eq!(find(&store, T, 120, None), found(T + 1, 121, 10));
        assert_eq!(find(&store, T + 2, 120, None), found(T + 2, 122, 10));
        assert_eq!(find(&store, T + 3, 120, None), RemoteTimestamp::TryLocal);
        assert_eq!(find(&store, T - 9, 122, None), found(T + 2, 122, 10));

        let mut foreign = TestStore::new(EPOCHS, 600);
        foreign.upload(segment(1, 120, 122, "9:119 10:120"), &records, &[]);
        assert_eq!(find(&foreign, T, 120, None), RemoteTimestamp::TryLocal);

        let mut copying = TestStore::new(EPOCHS, 600);
        copying.begin(segment(1, 120, 122, "10:120"), &records, &[]);
        assert_eq!(find(&copying, T, 120, None), RemoteTimestamp::TryLocal);
    }

    #[test]
    fn one_batch_of_many_records_is_opened() {
        let mut store = TestStore::new(EPOCHS, 600);
        let records = [batch(120, 10, &[T - 1, T + 1, T + 2])];
        store.upload(segment(1, 120, 122, "10:120"), &records, &[]);
        assert_eq!(find(&store, T, 99, None), found(T + 1, 121, 10));
        assert_eq!(find(&store, T, 122, None), found(T + 2, 122, 10));
    }

    fn two_segments() -> TestStore {
        let mut store = TestStore::new("0:0", 600);
        let at = |base: i64, time: i64| [batch(base, 0, &[time - 1]), batch(base + 60, 0, &[time])];
        store.upload(segment(1, 0, 99, "0:0"), &at(0, T), &[]);
        store.upload(segment(2, 100, 199, "0:100"), &at(100, T + 1), &[]);
        store
    }

    #[test]
    fn what_is_on_the_local_disk_is_looked_up_there() {
        // spec: tiered R4, R6
        let store = two_segments();
        assert_eq!(find(&store, T, 0, Some(50)), found(T, 60, 0));
        assert_eq!(find(&store, T + 1, 0, Some(50)), RemoteTimestamp::TryLocal);
        assert_eq!(find(&store, T + 1, 0, Some(100)), RemoteTimestamp::TryLocal);
        assert_eq!(find(&store, T + 1, 0, Some(101)), found(T + 1, 160, 0));
        assert_eq!(find(&store, T + 1, 0, None), found(T + 1, 160, 0));
    }

    #[test]
    fn the_answer_of_a_remote_segment_is_final() {
        // spec: tiered 8. The segment's largest timestamp is of a record before the start.
        let mut store = TestStore::new("0:0", 600);
        let records = [batch(0, 0, &[T + 5]), batch(1, 0, &[T])];
        store.upload(segment(1, 0, 9, "0:0"), &records, &[]);
        store.upload(segment(2, 10, 19, "0:10"), &[batch(10, 0, &[T + 9])], &[]);
        assert_eq!(find(&store, T + 5, 1, None), RemoteTimestamp::Found(None));
        assert_eq!(find(&store, T + 6, 1, None), found(T + 9, 10, 0));
    }

    #[test]
    fn segments_before_the_start_and_epochs_before_it_do_not_answer() {
        let store = two_segments();
        assert_eq!(find(&store, T - 1, 100, None), found(T, 100, 0));
        assert_eq!(find(&store, 0, 200, None), RemoteTimestamp::TryLocal);
        assert_eq!(find(&store, 0, -1, None), RemoteTimestamp::TryLocal);
    }

    #[test]
    fn a_list_of_offsets_by_time_goes_from_remote_to_local_segments() {
        // spec: tiered-behaviours RR14, but for the local record
        let mut store = TestStore::new("0:0 1:2", 6);
        store.upload(segment(1, 0, 1, "0:0"), &[batch(0, 0, &[T]), batch(1, 0, &[T + 1])], &[]);
        let later = [batch(2, 1, &[T + 2]), batch(3, 1, &[T + 3])];
        store.upload(segment(2, 2, 3, "1:2"), &later, &[]);
        assert_eq!(find(&store, T - 1, 0, Some(4)), found(T, 0, 0));
        assert_eq!(find(&store, T, 0, Some(4)), found(T, 0, 0));
        assert_eq!(find(&store, T + 1, 0, Some(4)), found(T + 1, 1, 0));
        assert_eq!(find(&store, T + 3, 0, Some(4)), found(T + 3, 3, 1));
    }
}
