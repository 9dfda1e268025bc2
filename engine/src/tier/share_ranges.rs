//! Which bytes of a remote segment belong to the records that a share group acquired?
//!
//! A share group's leader hands out offsets; it needs the headers of batches and not their records.

use std::ops::Range;

use super::byte_range::byte_range;
use super::indexes::SegmentIndexes;
use super::remote_segment::RemoteSegment;
use super::view::{RemoteBatches, RemoteView};
use crate::error::{Error, Result};
use crate::record::BatchHeader;

/// Bytes that are fetched at a time to look at headers: batches that are larger are passed over.
const WINDOW_BYTES: usize = 16 << 10;

/// Offsets that were acquired, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquiredRange {
    /// The first offset.
    pub first_offset: i64,
    /// The last offset.
    pub last_offset: i64,
}

/// The bytes of the segment that hold these offsets, in whole batches, rising and without overlap:
/// ranges that touch are one. Offsets that the segment does not have give none.
#[must_use]
pub fn acquired_byte_ranges(
    segment: &RemoteSegment,
    indexes: &SegmentIndexes,
    acquired: &[AcquiredRange],
) -> Vec<Range<u64>> {
    // spec: tiered 9.1, "share groups"
    let mut ranges: Vec<Range<u64>> = acquired
        .iter()
        .filter_map(|acquired| {
            let first = acquired.first_offset.max(segment.start_offset);
            let limit = acquired.last_offset.saturating_add(1);
            Some(byte_range(segment, indexes, first, limit, u64::MAX)?.range())
        })
        .collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, range| {
        let touches = next.start <= range.end;
        if touches {
            range.end = range.end.max(next.end);
        }
        touches
    });
    ranges
}

/// The headers of the batches that begin within `range` of a segment's log, each with the byte
/// where it begins; a batch begins where the range does.
///
/// # Errors
/// `Corrupt` where no batch is, and those of the store.
pub fn batch_headers(
    view: &RemoteView<'_>,
    segment: &RemoteSegment,
    range: Range<u64>,
) -> Result<Vec<(BatchHeader, u64)>> {
    let (name, size) = (view.log_name(segment), segment.log_size_bytes());
    let mut batches = RemoteBatches::new(view.target, &name, size, range.start, WINDOW_BYTES);
    let mut headers = Vec::new();
    while batches.position() < range.end {
        let found = batches.next().and_then(|found| {
            let position = batches.position();
            found.ok_or_else(|| {
                Error::corrupt("no whole batch is left in the range").at_position(position)
            })
        });
        headers.push(found.map_err(|error| error.context(&*name))?);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::super::byte_range::tests::given;
    use super::*;

    fn ranges(acquired: &[(i64, i64)]) -> Vec<(u64, u64)> {
        let (segment, indexes) = given();
        let acquired: Vec<_> = acquired
            .iter()
            .map(|(first_offset, last_offset)| AcquiredRange {
                first_offset: *first_offset,
                last_offset: *last_offset,
            })
            .collect();
        let found = acquired_byte_ranges(&segment, &indexes, &acquired);
        found.into_iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn acquired_offsets_become_ranges_that_do_not_overlap() {
        // spec: tiered 9.1, "share groups"
        assert_eq!(ranges(&[(0, 10)]), [(0, 8000)]);
        assert_eq!(ranges(&[(160, 170), (0, 10)]), [(0, 8000), (12000, 16000)]);
        assert_eq!(ranges(&[(0, 10), (60, 70)]), [(0, 12000)]);
        assert_eq!(ranges(&[(0, 10), (100, 120)]), [(0, 16000)]);
        assert_eq!(ranges(&[(0, 199), (60, 70)]), [(0, 16000)]);
        assert_eq!(ranges(&[(190, 500)]), [(12000, 16000)]);
        assert_eq!(ranges(&[(200, 500), (-9, -1), (9, 8)]), []);
        assert_eq!(ranges(&[(-9, 5)]), [(0, 8000)]);
        assert_eq!(ranges(&[]), []);
    }
}
