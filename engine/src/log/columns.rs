//! What is known of all segments of a log, side by side: for questions to many logs at once, which
//! must open no file and follow no pointer.
//!
//! The columns belong to one list of segments and are made with it, so both always fit together.
//! What they say of the last segment is out of date as soon as it is written to; the next list puts
//! that right.

use crate::segment::LogSegment;

/// "Nobody has looked", as a largest timestamp.
pub const UNKNOWN_TIMESTAMP_MS: i64 = i64::MIN;

/// Columns of equal length, one entry a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SegmentColumns {
    bases: Vec<i64>,
    starts_bytes: Vec<u64>,
    max_timestamps_ms: Vec<i64>,
    may_have_txns: Vec<bool>,
    /// The bytes before the segment that comes next.
    end_bytes: u64,
}

/// What the columns say of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRow {
    /// Its base offset.
    pub base_offset: i64,
    /// The bytes of its log.
    pub size_bytes: u64,
    /// Its largest timestamp: -1 where its records have none, [`UNKNOWN_TIMESTAMP_MS`] where nobody
    /// has looked.
    pub max_timestamp_ms: i64,
    /// Whether it may have aborted transactions.
    pub may_have_txns: bool,
}

impl SegmentRow {
    /// What is in memory of a segment.
    #[must_use]
    pub fn of(segment: &LogSegment) -> Self {
        let known = segment.known_max_timestamp();
        SegmentRow {
            base_offset: segment.base_offset(),
            size_bytes: segment.size_bytes(),
            max_timestamp_ms: known.map_or(UNKNOWN_TIMESTAMP_MS, |(timestamp_ms, _)| timestamp_ms),
            may_have_txns: segment.may_have_txns(),
        }
    }
}

impl Clone for SegmentColumns {
    fn clone(&self) -> Self {
        let mut columns = Self::with_capacity(self.count());
        columns.clone_from(self);
        columns
    }

    fn clone_from(&mut self, source: &Self) {
        // The room is kept: whoever made it has something to push.
        self.bases.clone_from(&source.bases);
        self.starts_bytes.clone_from(&source.starts_bytes);
        self.max_timestamps_ms.clone_from(&source.max_timestamps_ms);
        self.may_have_txns.clone_from(&source.may_have_txns);
        self.end_bytes = source.end_bytes;
    }
}

impl SegmentColumns {
    /// Columns with room for so many segments.
    #[must_use]
    pub fn with_capacity(count: usize) -> Self {
        SegmentColumns {
            bases: Vec::with_capacity(count),
            starts_bytes: Vec::with_capacity(count),
            max_timestamps_ms: Vec::with_capacity(count),
            may_have_txns: Vec::with_capacity(count),
            end_bytes: 0,
        }
    }

    /// The columns of a list of segments.
    pub fn of<'a>(segments: impl ExactSizeIterator<Item = &'a LogSegment>) -> Self {
        let mut columns = Self::with_capacity(segments.len());
        segments.for_each(|segment| columns.push(SegmentRow::of(segment)));
        columns
    }

    /// Adds a segment behind the others.
    pub fn push(&mut self, row: SegmentRow) {
        self.bases.push(row.base_offset);
        self.starts_bytes.push(self.end_bytes);
        self.max_timestamps_ms.push(row.max_timestamp_ms);
        self.may_have_txns.push(row.may_have_txns);
        self.end_bytes = self.end_bytes.wrapping_add(row.size_bytes);
    }

    /// Says what the largest timestamp of the segment in a slot is.
    pub fn set_max_timestamp_ms(&mut self, slot: usize, max_timestamp_ms: i64) {
        if let Some(known) = self.max_timestamps_ms.get_mut(slot) {
            *known = max_timestamp_ms;
        }
    }

    /// Forgets the last segment.
    pub fn pop(&mut self) {
        self.bases.pop();
        self.max_timestamps_ms.pop();
        self.may_have_txns.pop();
        self.end_bytes = self.starts_bytes.pop().unwrap_or(self.end_bytes);
    }

    /// Forgets all segments, and keeps the room.
    pub fn clear(&mut self) {
        self.bases.clear();
        self.starts_bytes.clear();
        self.max_timestamps_ms.clear();
        self.may_have_txns.clear();
    }

    /// What is said of the segment in a slot.
    #[must_use]
    pub fn row(&self, slot: usize) -> Option<SegmentRow> {
        let start = *self.starts_bytes.get(slot)?;
        let end = self.starts_bytes.get(slot.saturating_add(1)).unwrap_or(&self.end_bytes);
        Some(SegmentRow {
            base_offset: *self.bases.get(slot)?,
            size_bytes: end.wrapping_sub(start),
            max_timestamp_ms: *self.max_timestamps_ms.get(slot)?,
            may_have_txns: *self.may_have_txns.get(slot)?,
        })
    }

    /// How many segments there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bases.len()
    }

    /// Base offsets, rising.
    #[must_use]
    pub fn bases(&self) -> &[i64] {
        &self.bases
    }

    /// For each segment the bytes of those before it, counted from anywhere and wrapping.
    #[must_use]
    pub fn starts_bytes(&self) -> &[u64] {
        &self.starts_bytes
    }

    /// The largest timestamps: see [`SegmentRow::max_timestamp_ms`].
    #[must_use]
    pub fn max_timestamps_ms(&self) -> &[i64] {
        &self.max_timestamps_ms
    }

    /// Which segments may have aborted transactions.
    #[must_use]
    pub fn may_have_txns(&self) -> &[bool] {
        &self.may_have_txns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(base_offset: i64, size_bytes: u64) -> SegmentRow {
        SegmentRow { base_offset, size_bytes, max_timestamp_ms: 7, may_have_txns: false }
    }

    #[test]
    fn rows_are_read_as_they_were_pushed() {
        let mut columns = SegmentColumns::default();
        let rows = [row(0, 10), row(5, 0), row(9, 4)];
        rows.iter().for_each(|row| columns.push(*row));
        let found: Vec<_> = (0..4).map_while(|slot| columns.row(slot)).collect();
        assert_eq!(found, rows);
        assert_eq!(columns.starts_bytes(), [0, 10, 10]);
        columns.pop();
        columns.push(row(9, 6));
        assert_eq!(columns.row(2), Some(row(9, 6)));
    }

    #[test]
    fn sizes_are_right_where_their_sum_has_no_room() {
        let mut columns = SegmentColumns::default();
        let rows = [row(0, u64::MAX), row(5, u64::MAX - 3), row(9, 4)];
        rows.iter().for_each(|row| columns.push(*row));
        assert_eq!((0..3).filter_map(|slot| columns.row(slot)).collect::<Vec<_>>(), rows);
    }
}
