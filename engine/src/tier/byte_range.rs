//! Which bytes of a remote segment hold these offsets? As far as the offset index tells, in whole
//! batches.

use std::ops::Range;

use super::indexes::SegmentIndexes;
use super::remote_segment::RemoteSegment;
use crate::index::OffsetEntries;

/// Bytes of a segment's log that hold whole batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte: a batch begins there, and batches before `offset` may come first.
    pub begin: u64,
    /// The byte behind the last, above `begin`.
    pub end: u64,
    /// An offset that no record in the range reaches.
    pub upper_bound_offset: i64,
}

impl ByteRange {
    /// The bytes, half-open.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.begin..self.end
    }

    /// The last byte, inclusive: what Kafka's storage plug-ins are asked for.
    #[must_use]
    pub fn last_position(&self) -> u64 {
        self.end.saturating_sub(1)
    }
}

/// The bytes of `segment` from the batch with `offset` on, up to the first place that the index
/// knows where `max_bytes` are reached, and no further than is needed to give all records before
/// `limit_offset`. At least one batch; nothing when `offset` is not below the limit or is not of
/// the segment.
///
/// An index that is damaged gives a range that is too large, and never one that is too small.
#[inline]
#[must_use]
pub fn byte_range(
    segment: &RemoteSegment,
    indexes: &SegmentIndexes,
    offset: i64,
    limit_offset: i64,
    max_bytes: u64,
) -> Option<ByteRange> {
    let end_offset = segment.end_offset.saturating_add(1);
    let bounds = SegmentBounds {
        offsets: segment.start_offset..end_offset,
        size_bytes: segment.log_size_bytes(),
    };
    bounds.byte_range(indexes.offset_entries(), offset, limit_offset, max_bytes)
}

/// What must be known of a segment beside its offset index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentBounds {
    /// Its offsets, the end exclusive.
    pub offsets: Range<i64>,
    /// Bytes of its log.
    pub size_bytes: u64,
}

impl SegmentBounds {
    /// As [`byte_range`], by entries wherever they lie.
    #[inline]
    #[must_use]
    pub fn byte_range(
        &self,
        entries: OffsetEntries<'_>,
        offset: i64,
        limit_offset: i64,
        max_bytes: u64,
    ) -> Option<ByteRange> {
        // spec: tiered 9.1, "begin", "end", "no bytes below L"
        let limit_offset = limit_offset.min(self.offsets.end);
        if offset >= limit_offset || offset < self.offsets.start {
            return None;
        }
        let size = self.size_bytes;
        let last = entries.count().checked_sub(1).and_then(|slot| entries.get(slot));
        // Of the two ends that which comes first, as slots: behind the last slot is the segment's
        // end.
        let mut end_slot = entries.count();
        // A damaged index may have a negative position; the front is right, too.
        let begin = u64::try_from(entries.lookup(offset).position).unwrap_or(0);
        let begin = Some(begin).filter(|begin| *begin < size).unwrap_or(0);
        if last.is_some_and(|last| last.offset >= limit_offset.saturating_sub(1)) {
            let holds_last = entries.slot_from_offset(limit_offset.saturating_sub(1));
            end_slot = end_slot.min(holds_last.saturating_add(1));
        }
        // At least one entry behind the one where it begins.
        let least = begin.saturating_add(max_bytes.max(1));
        let least = i64::try_from(least).unwrap_or(i64::MAX);
        if last.is_some_and(|last| i64::from(last.position) >= least) {
            end_slot = end_slot.min(entries.slot_from_position(least));
        }
        let end = entries.get(end_slot).and_then(|entry| {
            let position = u64::try_from(entry.position).ok()?;
            (begin < position && position < size).then_some((position, entry.offset))
        });
        let (end, upper_bound_offset) = end.unwrap_or((size, self.offsets.end));
        Some(ByteRange { begin, end, upper_bound_offset })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::metadata_cache::tests::segment;
    use super::*;

    /// A segment of the offsets 0 to 199 and of 16000 bytes.
    pub(in super::super) fn given() -> (RemoteSegment, SegmentIndexes) {
        let segment =
            RemoteSegment { size_bytes: 16000, max_timestamp_ms: 199, ..segment(1, 0, 199, "0:0") };
        (segment, indexes(&[(49, 4000), (99, 8000), (149, 12000)]))
    }

    pub(in super::super) fn indexes(entries: &[(i32, i32)]) -> SegmentIndexes {
        let bytes = entries
            .iter()
            .flat_map(|(offset, position)| [offset.to_be_bytes(), position.to_be_bytes()].concat())
            .collect();
        SegmentIndexes::new(0, bytes, Vec::new(), Vec::new())
    }

    /// Begin and end.
    fn range(offset: i64, limit: i64, max_bytes: u64) -> Option<(u64, u64)> {
        let (segment, indexes) = given();
        let found = byte_range(&segment, &indexes, offset, limit, max_bytes)?;
        assert_eq!(found.range(), found.begin..found.last_position() + 1);
        Some((found.begin, found.end))
    }

    const INF: u64 = u64::MAX;

    #[test]
    fn offsets_become_ranges_of_whole_batches() {
        // spec: tiered D1, D2, D3, D5, D7, D8
        assert_eq!(range(0, 1000, INF), Some((0, 16000)));
        assert_eq!(range(60, 1000, INF), Some((4000, 16000)));
        assert_eq!(range(60, 1000, 3000), Some((4000, 8000)));
        assert_eq!(range(0, 100, INF), Some((0, 12000)));
        assert_eq!(range(120, 100, INF), None);
        assert_eq!(range(199, 1000, 1), Some((12000, 16000)));
    }

    #[test]
    fn the_edges_of_entries_segments_and_limits_are_exact() {
        // An offset on an entry begins at it, the one before it at the entry before.
        assert_eq!(range(49, 1000, INF), Some((4000, 16000)));
        assert_eq!(range(48, 1000, INF), Some((0, 16000)));
        assert_eq!(range(149, 1000, 1), Some((12000, 16000)));
        // One byte, none, and exactly what there is up to an entry.
        assert_eq!(range(0, 1000, 0), Some((0, 4000)));
        assert_eq!(range(0, 1000, 1), Some((0, 4000)));
        assert_eq!(range(0, 1000, 4000), Some((0, 4000)));
        assert_eq!(range(0, 1000, 4001), Some((0, 8000)));
        assert_eq!(range(60, 1000, 8000), Some((4000, 12000)));
        // The limit in a batch, at its end, behind it; the first entry that holds it still counts.
        assert_eq!(range(0, 1, INF), Some((0, 8000)));
        assert_eq!(range(0, 50, INF), Some((0, 8000)));
        assert_eq!(range(0, 51, INF), Some((0, 12000)));
        assert_eq!(range(0, 150, INF), Some((0, 16000)));
        assert_eq!(range(0, 200, INF), Some((0, 16000)));
        assert_eq!(range(0, 51, 1), Some((0, 4000)));
        // Nothing: at the limit, behind the segment, before it.
        assert_eq!(range(100, 100, INF), None);
        assert_eq!(range(200, 1000, INF), None);
        assert_eq!(range(-1, 1000, INF), None);
        assert_eq!(range(0, 0, INF), None);
    }

    #[test]
    fn no_record_of_the_range_reaches_its_upper_bound() {
        let (segment, indexes) = given();
        let bound = |offset, limit, max_bytes| {
            byte_range(&segment, &indexes, offset, limit, max_bytes).unwrap().upper_bound_offset
        };
        assert_eq!(bound(0, 1000, INF), 200);
        assert_eq!(bound(60, 1000, 3000), 99);
        assert_eq!(bound(0, 100, INF), 149);
    }

    #[test]
    fn without_entries_the_range_is_the_segment() {
        let (segment, _) = given();
        for max_bytes in [0, 1, INF] {
            let found = byte_range(&segment, &indexes(&[]), 120, 150, max_bytes).unwrap();
            assert_eq!((found.begin, found.end, found.upper_bound_offset), (0, 16000, 200));
        }
    }

    #[test]
    fn a_damaged_index_gives_a_range_that_is_too_large() {
        let (segment, _) = given();
        let range = |entries: &[(i32, i32)], offset| {
            let found = byte_range(&segment, &indexes(entries), offset, 1000, 1).unwrap();
            (found.begin, found.end)
        };
        assert_eq!(range(&[(49, -5), (99, 8000)], 60), (0, 8000));
        assert_eq!(range(&[(49, 4000), (99, 16000)], 60), (4000, 16000));
        assert_eq!(range(&[(49, 90000)], 60), (0, 16000));
        assert_eq!(range(&[(49, 8000), (99, 4000)], 60), (8000, 16000));
        assert_eq!(range(&[(49, 4000), (99, 4000)], 60), (4000, 16000));
    }
}
