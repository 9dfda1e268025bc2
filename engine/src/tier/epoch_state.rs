//! Which remote segments hold the records of one leader epoch?

use std::collections::{BTreeMap, BTreeSet, btree_map};

use super::remote_segment::RemoteSegment;
use crate::error::{Error, Kind, Result};
use crate::uuid::{Uuid, UuidMap};

/// The segments of one leader epoch of a partition, by the offset where the epoch begins in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EpochState {
    /// Those whose copy was finished and that nothing replaced.
    referenced: BTreeMap<i64, Uuid>,
    /// The others: being copied, being deleted, or replaced by a larger one.
    unreferenced: BTreeSet<Uuid>,
    highest: Option<i64>,
}

impl EpochState {
    /// The copy of a segment began.
    pub(super) fn copy_started(&mut self, id: Uuid) {
        self.unreferenced.insert(id);
    }

    /// The copy of a segment is finished that has the epoch from `start` to `end`, inclusive.
    pub(super) fn copy_finished(&mut self, start: i64, id: Uuid, end: i64) {
        // spec: tiered 4.1. A segment that reaches as far as all before replaces those that begin
        // within it; a shorter one replaces none but that of the same start.
        if self.highest.is_none_or(|highest| highest <= end) {
            while let Some(last) = self.referenced.last_entry().filter(|it| *it.key() >= start) {
                self.unreferenced.insert(last.remove());
            }
        }
        self.referenced.insert(start, id);
        self.unreferenced.remove(&id);
        self.highest = self.highest.max(Some(end));
    }

    /// The removal of a segment began that has the epoch from `start` on.
    pub(super) fn delete_started(&mut self, start: i64, id: Uuid) {
        if self.referenced.get(&start) == Some(&id) {
            self.referenced.remove(&start);
        }
        self.unreferenced.insert(id);
    }

    /// A segment is gone.
    pub(super) fn delete_finished(&mut self, id: Uuid) {
        self.unreferenced.remove(&id);
    }

    /// The finished segment in which the epoch begins last at or before `offset`.
    pub(super) fn floor(&self, offset: i64) -> Option<Uuid> {
        self.referenced.range(..=offset).next_back().map(|(_, id)| *id)
    }

    /// The finished segments from that on in which the epoch begins last at or before `offset`,
    /// with the offsets where it begins.
    pub(super) fn places_from(&self, offset: i64) -> btree_map::Range<'_, i64, Uuid> {
        let floor = self.referenced.range(..=offset).next_back();
        self.referenced.range(floor.map_or(offset, |(start, _)| *start)..)
    }

    /// How far finished segments ever reached.
    pub(super) fn highest(&self) -> Option<i64> {
        self.highest
    }

    /// All segments: the finished ones in order, with the others sorted among them by start.
    ///
    /// # Errors
    /// `NotFound` for an id of which nothing more is known.
    pub(super) fn list<'a>(
        &self,
        segments: &'a UuidMap<RemoteSegment>,
    ) -> Result<Vec<&'a RemoteSegment>> {
        let ids = self.referenced.values().chain(&self.unreferenced);
        let mut list = ids
            .map(|id| {
                let missing =
                    || Error::new(Kind::NotFound, format!("there is no remote segment {id}"));
                segments.get(id).ok_or_else(missing)
            })
            .collect::<Result<Vec<_>>>()?;
        if !self.unreferenced.is_empty() {
            list.sort_by_key(|segment| segment.start_offset);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Uuid = Uuid::reserved(1);
    const B: Uuid = Uuid::reserved(2);
    const C: Uuid = Uuid::reserved(3);
    const D: Uuid = Uuid::reserved(4);

    fn finished(segments: &[(i64, Uuid, i64)]) -> EpochState {
        let mut state = EpochState::default();
        for (start, id, end) in segments {
            state.copy_started(*id);
            state.copy_finished(*start, *id, *end);
        }
        state
    }

    fn unreferenced(state: &EpochState) -> Vec<Uuid> {
        state.unreferenced.iter().copied().collect()
    }

    #[test]
    fn segments_behind_each_other_are_all_referenced() {
        // spec: tiered-behaviours MC13
        let state = finished(&[(10, A, 100), (101, B, 200)]);
        assert_eq!([90, 150, 9].map(|it| state.floor(it)), [Some(A), Some(B), None]);
        assert_eq!((state.highest(), unreferenced(&state)), (Some(200), vec![]));
    }

    #[test]
    fn a_larger_segment_replaces_those_that_begin_within_it() {
        // spec: tiered-behaviours MC14, MC15, MC17
        let state = finished(&[(10, A, 100), (5, B, 150)]);
        assert_eq!((state.floor(11), state.referenced.len()), (Some(B), 1));
        assert_eq!((unreferenced(&state), state.highest()), (vec![A], Some(150)));

        let state = finished(&[(10, A, 100), (5, B, 150), (148, C, 155), (4, D, 200)]);
        assert_eq!((state.floor(11), state.referenced.len()), (Some(D), 1));
        assert_eq!((unreferenced(&state), state.highest()), (vec![A, B, C], Some(200)));

        let state = finished(&[(10, A, 100), (10, B, 150)]);
        assert_eq!([11, 111].map(|it| state.floor(it)), [Some(B), Some(B)]);
        assert_eq!((unreferenced(&state), state.highest()), (vec![A], Some(150)));
    }

    #[test]
    fn a_smaller_segment_replaces_only_that_of_the_same_start() {
        // spec: tiered 4.1, "Consequence"
        let state = finished(&[(10, A, 150), (20, B, 100)]);
        assert_eq!([15, 30].map(|it| state.floor(it)), [Some(A), Some(B)]);
        assert_eq!((unreferenced(&state), state.highest()), (vec![], Some(150)));
        let state = finished(&[(10, A, 150), (10, B, 100)]);
        assert_eq!((state.floor(15), state.referenced.len()), (Some(B), 1));
        assert_eq!((unreferenced(&state), state.highest()), (vec![], Some(150)));
    }

    #[test]
    fn what_is_being_deleted_is_unreferenced_until_it_is_gone() {
        // spec: tiered-behaviours MC18, MC19
        let mut state = finished(&[(10, A, 100), (101, B, 200)]);
        state.delete_started(10, A);
        state.delete_started(101, B);
        assert_eq!((state.referenced.len(), unreferenced(&state)), (0, vec![A, B]));
        assert_eq!(state.highest(), Some(200));
        let mut state = EpochState::default();
        state.copy_started(A);
        state.delete_finished(A);
        assert_eq!(unreferenced(&state), vec![]);
    }

    #[test]
    fn the_removal_of_a_replaced_segment_leaves_the_one_in_its_place() {
        let mut state = finished(&[(10, A, 100), (10, B, 150)]);
        state.delete_started(10, A);
        state.delete_finished(A);
        assert_eq!((state.floor(10), unreferenced(&state)), (Some(B), vec![]));
    }

    #[test]
    fn an_id_of_which_nothing_is_known_cannot_be_listed() {
        // spec: tiered-behaviours MC21
        let error = finished(&[(10, A, 100)]).list(&UuidMap::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
    }
}
