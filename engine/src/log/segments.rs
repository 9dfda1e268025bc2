//! Which segments does a log have? An immutable list, so that readers need no lock: every change
//! makes another one.

use std::sync::Arc;

use super::columns::{SegmentColumns, SegmentRow};
use crate::error::{Error, Kind, Result};
use crate::segment::LogSegment;

/// The segments of a log by base offset, rising.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    list: Vec<Arc<LogSegment>>,
    columns: SegmentColumns,
}

impl Segments {
    /// A list of these segments, in any order; of two with one base the first stays.
    #[must_use]
    pub fn new(segments: impl IntoIterator<Item = Arc<LogSegment>>) -> Self {
        let mut list: Vec<Arc<LogSegment>> = segments.into_iter().collect();
        list.sort_by_key(|segment| segment.base_offset());
        list.dedup_by_key(|segment| segment.base_offset());
        Self::of_rising(list)
    }

    fn of_rising(list: Vec<Arc<LogSegment>>) -> Self {
        let columns = SegmentColumns::of(list.iter().map(|segment| &**segment));
        Segments { list, columns }
    }

    /// The same list with one more, which takes the place of one with its base.
    #[must_use]
    pub fn with(&self, segment: Arc<LogSegment>) -> Self {
        let mut list = Vec::with_capacity(self.list.len() + 1);
        list.extend(self.list.iter().cloned());
        if self.last().is_none_or(|last| last.base_offset() < segment.base_offset()) {
            list.push(segment);
            return self.rolled(list);
        }
        let place = self.list.binary_search_by_key(&segment.base_offset(), |s| s.base_offset());
        let (replaced, at) = place.map_or_else(|at| (0, at), |at| (1, at));
        list.splice(at..at + replaced, [segment]);
        Self::of_rising(list)
    }

    /// The list that has one segment more at its end. Only of the last two the columns can say
    /// anything new: following the pointers to all others would make every roll of a long log slow.
    fn rolled(&self, list: Vec<Arc<LogSegment>>) -> Self {
        let mut columns = SegmentColumns::with_capacity(list.len());
        columns.clone_from(&self.columns);
        columns.pop();
        for segment in list.iter().skip(columns.count()) {
            columns.push(SegmentRow::of(segment));
        }
        Segments { list, columns }
    }

    /// The same list without those that `is_gone` names.
    #[must_use]
    pub fn without(&self, mut is_gone: impl FnMut(&LogSegment) -> bool) -> Self {
        let mut kept = Segments::default();
        for (slot, segment) in self.list.iter().enumerate() {
            let row = self.columns.row(slot).filter(|_| !is_gone(segment));
            if let Some(row) = row {
                kept.list.push(Arc::clone(segment));
                kept.columns.push(row);
            }
        }
        kept
    }

    /// The same list, whose columns say what is in memory of the segments now.
    #[must_use]
    pub fn refreshed(&self) -> Self {
        Self::of_rising(self.list.clone())
    }

    /// What is known of all of them, side by side. Of the last one it is out of date.
    #[must_use]
    pub fn columns(&self) -> &SegmentColumns {
        &self.columns
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them, rising.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<LogSegment>> + ExactSizeIterator {
        self.list.iter()
    }

    /// The bytes of all logs.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.list.iter().map(|segment| segment.size_bytes()).fold(0, u64::saturating_add)
    }

    /// The first segment.
    #[must_use]
    pub fn first(&self) -> Option<&Arc<LogSegment>> {
        self.list.first()
    }

    /// The segment that is written to.
    #[must_use]
    pub fn last(&self) -> Option<&Arc<LogSegment>> {
        self.list.last()
    }

    /// The segment of exactly this base.
    #[must_use]
    pub fn get(&self, base_offset: i64) -> Option<&Arc<LogSegment>> {
        self.floor(base_offset).filter(|segment| segment.base_offset() == base_offset)
    }

    /// The segment with the greatest base not above `offset`.
    #[must_use]
    pub fn floor(&self, offset: i64) -> Option<&Arc<LogSegment>> {
        self.list.get(self.count_up_to(offset).checked_sub(1)?)
    }

    /// The segment with the greatest base below `offset`.
    #[must_use]
    pub fn lower(&self, offset: i64) -> Option<&Arc<LogSegment>> {
        let at = self.list.partition_point(|segment| segment.base_offset() < offset);
        self.list.get(at.checked_sub(1)?)
    }

    /// The segment with the least base above `offset`.
    #[must_use]
    pub fn higher(&self, offset: i64) -> Option<&Arc<LogSegment>> {
        self.list.get(self.count_up_to(offset))
    }

    /// The segments that hold offsets from `from` to before `to`.
    ///
    /// # Errors
    /// `InvalidArgument` when `to` lies before `from`.
    pub fn values(&self, from: i64, to: i64) -> Result<&[Arc<LogSegment>]> {
        // spec: segments 3.1
        if to < from {
            let message = format!("there are no segments from {from} to {to}");
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        if to == from {
            return Ok(&[]);
        }
        let start = self.count_up_to(from).saturating_sub(1);
        let end = self.list.partition_point(|segment| segment.base_offset() < to);
        Ok(self.list.get(start..end).unwrap_or_default())
    }

    /// The segments from the one that holds `from` on, but the one that is written to.
    #[must_use]
    pub fn non_active_from(&self, from: i64) -> &[Arc<LogSegment>] {
        match self.last() {
            Some(active) if from <= active.base_offset() => {
                self.values(from, active.base_offset()).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// The segments from the one that holds `from` on.
    #[must_use]
    pub fn from(&self, from: i64) -> &[Arc<LogSegment>] {
        self.list.get(self.count_up_to(from).saturating_sub(1)..).unwrap_or_default()
    }

    fn count_up_to(&self, offset: i64) -> usize {
        self.list.partition_point(|segment| segment.base_offset() <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(bases: &[i64]) -> Segments {
        Segments::new(bases.iter().map(|base| Arc::new(LogSegment::new(*base, 0))))
    }

    fn bases(list: &[Arc<LogSegment>]) -> Vec<i64> {
        list.iter().map(|segment| segment.base_offset()).collect()
    }

    fn base(segment: Option<&Arc<LogSegment>>) -> Option<i64> {
        segment.map(|segment| segment.base_offset())
    }

    #[test]
    fn an_empty_list_has_nothing() {
        // spec: behaviours SG-001
        let list = Segments::default();
        assert!(list.is_empty());
        assert_eq!((list.count(), list.size_bytes()), (0, 0));
        assert_eq!((base(list.first()), base(list.last())), (None, None));
    }

    #[test]
    fn neighbours_are_found_by_base() {
        // spec: behaviours SG-002, SG-007
        let list = segments(&[0]).with(Arc::new(LogSegment::new(1, 0)));
        assert_eq!((base(list.first()), base(list.last())), (Some(0), Some(1)));
        assert_eq!(base(list.higher(0)), Some(1));
        assert_eq!(base(list.floor(1)), Some(1));
        assert_eq!(base(list.lower(1)), Some(0));
        let list = segments(&[7, 1, 5, 3]);
        let found = [list.floor(2), list.floor(3), list.lower(3), list.lower(4)].map(base);
        assert_eq!(found, [Some(1), Some(3), Some(1), Some(3)]);
        assert_eq!([list.higher(4), list.higher(5)].map(base), [Some(5), Some(7)]);
    }

    #[test]
    fn a_range_begins_with_the_segment_that_holds_its_start() {
        // spec: behaviours SG-003, SG-005, SG-006
        let list = segments(&[1, 2, 3, 4]);
        assert_eq!(list.values(2, 1).unwrap_err().kind(), Kind::InvalidArgument);
        assert_eq!(bases(list.values(0, 9).unwrap()), [1, 2, 3, 4]);
        assert_eq!(bases(list.values(2, 4).unwrap()), [2, 3]);
        assert_eq!(bases(list.values(2, 2).unwrap()), [0_i64; 0]);
        assert_eq!(bases(list.non_active_from(2)), [2, 3]);
        assert_eq!(bases(list.non_active_from(4)), [0_i64; 0]);
        assert_eq!(bases(list.non_active_from(5)), [0_i64; 0]);
        assert_eq!(bases(segments(&[0, 10]).values(5, 6).unwrap()), [0]);
    }

    #[test]
    fn a_segment_takes_the_place_of_one_with_its_base() {
        // spec: behaviours SG-009
        let list = segments(&[1, 2]);
        let list = list.with(Arc::new(LogSegment::new(2, 7)));
        let size = list.get(2).map(|segment| segment.size_bytes());
        assert_eq!((list.count(), size), (2, Some(7)), "the new one");
    }

    #[test]
    fn sizes_add_up_beyond_32_bits() {
        // spec: behaviours SG-010
        let segment = |base| Arc::new(LogSegment::new(base, 2_147_483_647));
        assert_eq!(Segments::new([segment(0), segment(1)]).size_bytes(), 4_294_967_294);
    }
}
