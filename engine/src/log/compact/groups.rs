//! Which segments become one?

use std::collections::VecDeque;
use std::sync::Arc;

use super::sources::Source;
use crate::error::Result;
use crate::index::{offset, time};
use crate::segment::{FileRole, Folder, LogSegment, SegmentSettings};

/// The sizes of a segment, of its indexes in whole entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    base_offset: i64,
    log_bytes: u64,
    offset_index_bytes: u64,
    time_index_bytes: u64,
}

/// Puts segments that follow each other together as long as they fit into one.
pub(super) fn group(
    folder: &Folder,
    segments: &[Arc<LogSegment>],
    settings: &SegmentSettings,
    first_uncleanable_offset: i64,
) -> Result<VecDeque<Vec<Source>>> {
    let mut sizes = Vec::with_capacity(segments.len());
    for segment in segments {
        sizes.push(sizes_of(folder, segment)?);
    }
    let mut rest = segments;
    let mut groups = VecDeque::new();
    for count in group_counts(&sizes, settings, first_uncleanable_offset) {
        let (group, behind) = rest.split_at_checked(count).unwrap_or((rest, &[]));
        groups.push_back(Source::all(group));
        rest = behind;
    }
    Ok(groups)
}

fn sizes_of(folder: &Folder, segment: &Arc<LogSegment>) -> Result<Sizes> {
    let handles = segment.handles(folder)?;
    let size = |role, entry_size: usize| -> Result<u64> {
        let Some(file) = handles.index(segment, folder, role)? else { return Ok(0) };
        let entry_size = u64::try_from(entry_size).unwrap_or(u64::MAX);
        Ok(file.metadata()?.size_bytes / entry_size * entry_size)
    };
    Ok(Sizes {
        base_offset: segment.base_offset(),
        log_bytes: segment.size_bytes(),
        offset_index_bytes: size(FileRole::OffsetIndex, offset::ENTRY_SIZE)?,
        time_index_bytes: size(FileRole::TimeIndex, time::ENTRY_SIZE)?,
    })
}

/// How many segments each group has, from the first on.
fn group_counts(
    segments: &[Sizes],
    settings: &SegmentSettings,
    first_uncleanable_offset: i64,
) -> Vec<usize> {
    // spec: cleaner 5
    let mut counts = Vec::new();
    let mut rest = segments;
    while let Some((first, mut behind)) = rest.split_first() {
        let mut sum = *first;
        let mut count = 1;
        while let Some((next, after)) = behind.split_first() {
            // In the worst case the next one reaches up to the one after it.
            let end = after.first().map_or(first_uncleanable_offset, |after| after.base_offset);
            let reach = end.saturating_sub(1).saturating_sub(first.base_offset);
            let joined = Sizes {
                base_offset: first.base_offset,
                log_bytes: sum.log_bytes.saturating_add(next.log_bytes),
                offset_index_bytes: sum.offset_index_bytes + next.offset_index_bytes,
                time_index_bytes: sum.time_index_bytes + next.time_index_bytes,
            };
            let fits = joined.log_bytes <= u64::from(settings.segment_bytes)
                && joined.offset_index_bytes <= u64::from(settings.index_bytes)
                && joined.time_index_bytes <= u64::from(settings.index_bytes)
                && (next.log_bytes == 0 || reach <= i64::from(i32::MAX));
            if !fits {
                break;
            }
            (sum, behind) = (joined, after);
            count += 1;
        }
        counts.push(count);
        rest = behind;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(segment_bytes: u32, index_bytes: u32) -> SegmentSettings {
        SegmentSettings {
            segment_bytes,
            segment_ms: i64::MAX,
            segment_jitter_ms: 0,
            index_bytes,
            index_interval_bytes: 1,
            preallocate: false,
        }
    }

    fn segment(base_offset: i64, log_bytes: u64) -> Sizes {
        Sizes { base_offset, log_bytes, offset_index_bytes: 8, time_index_bytes: 12 }
    }

    #[test]
    fn a_group_ends_where_one_more_would_not_fit() {
        // spec: behaviours CL-039
        let equal: Vec<Sizes> = (0..9).map(|number| segment(number * 10, 100)).collect();
        let counts = |segment_bytes, index_bytes| {
            group_counts(&equal, &settings(segment_bytes, index_bytes), 90)
        };
        assert_eq!(counts(u32::MAX, u32::MAX), [9]);
        assert_eq!(counts(1, u32::MAX), [1; 9]);
        assert_eq!(counts(u32::MAX, 1), [1; 9]);
        assert_eq!(counts(301, u32::MAX), [3; 3]);
        assert_eq!(counts(300, u32::MAX), [3; 3], "as much as there may be");
        assert_eq!(counts(299, u32::MAX), [2, 2, 2, 2, 1]);
        assert_eq!(counts(u32::MAX, 24), [2, 2, 2, 2, 1], "the time index");
        assert_eq!(group_counts(&[], &settings(1, 1), 0), [0_usize; 0]);
    }

    #[test]
    fn a_group_reaches_no_further_than_its_offsets_can_be_told() {
        // spec: behaviours CL-040
        let reach = i64::from(i32::MAX);
        let counts = |bases: &[i64], end| {
            let segments: Vec<Sizes> = bases.iter().map(|base| segment(*base, 100)).collect();
            group_counts(&segments, &settings(u32::MAX, u32::MAX), end)
        };
        assert_eq!(counts(&[0, 10], reach + 1), [2]);
        assert_eq!(counts(&[0, 10], reach + 2), [1, 1]);
        assert_eq!(counts(&[0, 10, reach + 1, reach + 5], reach + 9), [2, 2]);
        assert_eq!(counts(&[0, 10, reach + 2], reach + 9), [1, 2]);
        let mut empty = vec![segment(0, 100), segment(10, 0)];
        assert_eq!(group_counts(&empty, &settings(u32::MAX, u32::MAX), i64::MAX), [2]);
        empty[1].log_bytes = 1;
        assert_eq!(group_counts(&empty, &settings(u32::MAX, u32::MAX), i64::MAX), [1, 1]);
    }
}
