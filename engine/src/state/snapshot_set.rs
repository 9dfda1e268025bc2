//! Which snapshots does a log have, and when is one written or deleted?
//!
//! [`SnapshotSet`] keeps the books: the offsets of the `.snapshot` files, the offset up to which
//! the producer state is built and the offset of the last snapshot. It touches no file; it says
//! which file to write, read or delete. What a method tells to delete is already struck off.

use std::collections::BTreeSet;
use std::ops::Bound;

/// The snapshots of one log and how far its producer state goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSet {
    offsets: BTreeSet<i64>,
    map_end_offset: i64,
    last_snapshot_offset: i64,
}

/// What [`SnapshotSet::truncate_and_reload`] asks of the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reload {
    /// Snapshots whose files are to be deleted now.
    pub delete: Vec<i64>,
    /// Whether the state is to be cleared and loaded again: see [`SnapshotSet::latest`].
    /// Otherwise it stays, but for completed transactions before the log start offset.
    pub reload: bool,
}

impl SnapshotSet {
    /// The snapshots found in a directory; no state is built yet.
    #[must_use]
    pub fn new(offsets: impl IntoIterator<Item = i64>) -> Self {
        SnapshotSet { offsets: offsets.into_iter().collect(), ..Self::default() }
    }

    /// Takes what a directory holds now in place of what was known.
    pub fn relist(&mut self, offsets: impl IntoIterator<Item = i64>) {
        self.offsets = offsets.into_iter().collect();
    }

    /// Forgets how far the state is built, as a new set of the same snapshots would.
    pub fn restart(&mut self) {
        (self.map_end_offset, self.last_snapshot_offset) = (0, 0);
    }

    /// The offsets of the snapshots, rising.
    pub fn offsets(&self) -> impl DoubleEndedIterator<Item = i64> + '_ {
        self.offsets.iter().copied()
    }

    /// The newest snapshot.
    #[must_use]
    pub fn latest(&self) -> Option<i64> {
        self.offsets.last().copied()
    }

    /// The oldest snapshot.
    #[must_use]
    pub fn oldest(&self) -> Option<i64> {
        self.offsets.first().copied()
    }

    /// Whether there is a snapshot at exactly this offset.
    #[must_use]
    pub fn contains(&self, offset: i64) -> bool {
        self.offsets.contains(&offset)
    }

    /// The offset up to which, exclusive, the producer state is built.
    #[must_use]
    pub fn map_end_offset(&self) -> i64 {
        self.map_end_offset
    }

    /// The offset of the last snapshot taken or loaded.
    #[must_use]
    pub fn last_snapshot_offset(&self) -> i64 {
        self.last_snapshot_offset
    }

    /// Says how far the state is built; it may go back.
    pub fn set_map_end_offset(&mut self, offset: i64) {
        self.map_end_offset = offset;
    }

    /// Takes a snapshot: gives the offset to write one at, or `None` when the state has not
    /// moved on since the last one. An empty state is written, too.
    // spec: producer-state A6
    #[must_use]
    pub fn take_snapshot(&mut self) -> Option<i64> {
        if self.map_end_offset <= self.last_snapshot_offset {
            return None;
        }
        self.offsets.insert(self.map_end_offset);
        self.last_snapshot_offset = self.map_end_offset;
        Some(self.map_end_offset)
    }

    /// Deletes the snapshots below an offset.
    #[must_use]
    pub fn delete_before(&mut self, offset: i64) -> Vec<i64> {
        self.delete((Bound::Included(0), Bound::Excluded(offset.max(0))))
    }

    /// Strikes one snapshot off, to be renamed and deleted later; `false` when it is not known.
    pub fn remove(&mut self, offset: i64) -> bool {
        self.offsets.remove(&offset)
    }

    /// The state is cleared and begins at `offset`: every snapshot is deleted.
    #[must_use]
    pub fn truncate_fully_and_start_at(&mut self, offset: i64) -> Vec<i64> {
        self.last_snapshot_offset = 0;
        self.map_end_offset = offset;
        self.delete((Bound::Unbounded, Bound::Unbounded))
    }

    /// The log now starts at `offset`; producers are kept.
    pub fn log_start_offset_incremented(&mut self, offset: i64) {
        self.map_end_offset = self.map_end_offset.max(offset);
        self.last_snapshot_offset = self.latest().unwrap_or(offset);
    }

    /// The log now spans `log_start_offset..log_end_offset`: what to delete, and whether the
    /// state must be loaded again, since it was built to another end.
    ///
    /// To load, clear the state and read [`latest`](Self::latest): tell
    /// [`loaded`](Self::loaded) or [`unusable`](Self::unusable) and try again; when there is
    /// none left, tell [`nothing_to_load`](Self::nothing_to_load).
    #[must_use]
    pub fn truncate_and_reload(&mut self, log_start_offset: i64, log_end_offset: i64) -> Reload {
        let before = (Bound::Unbounded, Bound::Included(log_start_offset));
        let mut delete = self.delete(before);
        let behind = (Bound::Excluded(log_end_offset), Bound::Unbounded);
        delete.extend(self.delete(behind));
        let reload = log_end_offset != self.map_end_offset;
        if !reload {
            self.log_start_offset_incremented(log_start_offset);
        }
        Reload { delete, reload }
    }

    /// The state now is what the snapshot at `offset` says.
    pub fn loaded(&mut self, offset: i64) {
        self.last_snapshot_offset = offset;
        self.map_end_offset = offset;
    }

    /// The snapshot at `offset` is corrupt; its file is to be deleted.
    pub fn unusable(&mut self, offset: i64) {
        self.offsets.remove(&offset);
    }

    /// No snapshot can be loaded: the state begins, empty, at the start of the log.
    pub fn nothing_to_load(&mut self, log_start_offset: i64) {
        self.loaded(log_start_offset);
    }

    /// Deletes the snapshots that belong to no segment but the largest such one, which stays
    /// when it lies at the last segment's base or behind it: a clean stop writes one at the end
    /// of the log.
    #[must_use]
    pub fn remove_stray(&mut self, segment_bases: &BTreeSet<i64>) -> Vec<i64> {
        let mut strays: Vec<i64> =
            self.offsets().filter(|offset| !segment_bases.contains(offset)).collect();
        if let (Some(&largest), Some(&last_base)) = (strays.last(), segment_bases.last())
            && largest < last_base
        {
            // Even the largest one is of no use.
        } else {
            strays.pop();
        }
        for offset in &strays {
            self.offsets.remove(offset);
        }
        strays
    }

    /// Recovery asks this once a segment, of as many snapshots as there are segments: it looks at
    /// no others.
    fn delete(&mut self, condemned: (Bound<i64>, Bound<i64>)) -> Vec<i64> {
        let delete: Vec<i64> = self.offsets.range(condemned).copied().collect();
        for offset in &delete {
            self.offsets.remove(offset);
        }
        delete
    }
}

/// The offsets where loading a log takes snapshots: the bases of its last two segments and its
/// end, in this order.
#[must_use]
pub fn offsets_to_snapshot(segment_bases: &BTreeSet<i64>, log_end_offset: i64) -> Vec<i64> {
    // spec: producer-state A8
    let mut offsets: Vec<i64> = segment_bases.iter().rev().take(2).copied().collect();
    offsets.reverse();
    offsets.push(log_end_offset);
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(offsets: &[i64]) -> SnapshotSet {
        SnapshotSet::new(offsets.iter().copied())
    }

    fn offsets(set: &SnapshotSet) -> Vec<i64> {
        set.offsets().collect()
    }

    fn bases(offsets: &[i64]) -> BTreeSet<i64> {
        offsets.iter().copied().collect()
    }

    #[test]
    fn a_snapshot_is_taken_only_when_the_state_has_moved_on() {
        let mut snapshots = SnapshotSet::default();
        assert_eq!(snapshots.take_snapshot(), None);
        snapshots.set_map_end_offset(5);
        assert_eq!(snapshots.take_snapshot(), Some(5));
        assert_eq!(snapshots.take_snapshot(), None);
        snapshots.set_map_end_offset(4);
        assert_eq!(snapshots.take_snapshot(), None);
        assert_eq!((snapshots.map_end_offset(), snapshots.last_snapshot_offset()), (4, 5));
        assert_eq!(offsets(&snapshots), [5]);
    }

    #[test]
    fn a_reload_deletes_snapshots_behind_the_end_and_up_to_the_start() {
        // spec: behaviours PS-022, PS-034
        let mut snapshots = set(&[1, 2, 3, 4, 5]);
        let reload = snapshots.truncate_and_reload(1, 3);
        assert_eq!(reload, Reload { delete: vec![1, 4, 5], reload: true });
        assert_eq!((snapshots.oldest(), snapshots.latest()), (Some(2), Some(3)));
        let mut snapshots = set(&[3, 5]);
        assert_eq!(snapshots.truncate_and_reload(3, 5).delete, [3]);
        assert_eq!(offsets(&snapshots), [5]);
    }

    #[test]
    fn a_state_that_ends_at_the_log_end_is_kept() {
        // spec: behaviours PS-038
        let mut snapshots = SnapshotSet::default();
        snapshots.set_map_end_offset(2);
        assert_eq!(snapshots.take_snapshot(), Some(2));
        let reload = snapshots.truncate_and_reload(1, 2);
        assert_eq!(reload, Reload { delete: vec![], reload: false });
        assert_eq!((snapshots.map_end_offset(), snapshots.last_snapshot_offset()), (2, 2));
    }

    #[test]
    fn loading_goes_back_to_the_newest_snapshot_that_can_be_read() {
        // spec: behaviours PS-052
        let mut snapshots = set(&[1, 2]);
        assert!(snapshots.truncate_and_reload(0, 20).reload);
        assert_eq!(snapshots.latest(), Some(2));
        snapshots.unusable(2);
        assert_eq!(snapshots.latest(), Some(1));
        snapshots.loaded(1);
        assert_eq!((snapshots.map_end_offset(), snapshots.last_snapshot_offset()), (1, 1));
        snapshots.unusable(1);
        assert_eq!(snapshots.latest(), None);
        snapshots.nothing_to_load(7);
        assert_eq!((snapshots.map_end_offset(), snapshots.last_snapshot_offset()), (7, 7));
    }

    #[test]
    fn only_the_snapshot_asked_for_is_known() {
        // spec: behaviours PS-024, PS-057, PS-058
        let mut snapshots = set(&[5]);
        assert!(!snapshots.contains(1) && snapshots.contains(5));
        assert!(snapshots.remove(5) && !snapshots.remove(5));
        assert_eq!(snapshots.latest(), None);
    }

    #[test]
    fn snapshots_below_an_offset_are_deleted() {
        // spec: behaviours PS-032
        let mut snapshots = set(&[2, 3]);
        assert_eq!(snapshots.delete_before(3), [2]);
        assert_eq!(offsets(&snapshots), [3]);
        assert_eq!(snapshots.delete_before(4), [3]);
        assert_eq!(offsets(&snapshots), []);
    }

    #[test]
    fn a_full_truncation_deletes_all_and_starts_anew() {
        // spec: behaviours PS-033
        let mut snapshots = set(&[2, 3]);
        snapshots.loaded(3);
        assert_eq!(snapshots.truncate_fully_and_start_at(0), [2, 3]);
        assert_eq!(snapshots.latest(), None);
        snapshots.set_map_end_offset(1);
        assert_eq!(snapshots.take_snapshot(), Some(1));
        assert_eq!(offsets(&snapshots), [1]);
    }

    #[test]
    fn a_log_start_that_moves_past_the_state_moves_it_along() {
        let mut snapshots = set(&[4]);
        snapshots.loaded(4);
        snapshots.log_start_offset_incremented(9);
        assert_eq!((snapshots.map_end_offset(), snapshots.last_snapshot_offset()), (9, 4));
        snapshots.remove(4);
        snapshots.log_start_offset_incremented(6);
        assert_eq!((snapshots.map_end_offset(), snapshots.last_snapshot_offset()), (9, 6));
    }

    #[test]
    fn only_the_largest_stray_may_stay() {
        // spec: behaviours PS-054, PS-056
        for (snapshots, segments, left) in [
            (&[2, 5, 42][..], &[5][..], &[5, 42][..]),
            (&[3, 7], &[], &[7]),
            (&[3, 7], &[10], &[]),
            (&[3, 7, 10], &[7, 10], &[7, 10]),
            (&[10, 11, 12], &[7, 10], &[10, 12]),
            (&[], &[7], &[]),
        ] {
            let mut set = set(snapshots);
            let deleted = set.remove_stray(&bases(segments));
            assert_eq!(offsets(&set), left);
            assert_eq!(deleted.len(), snapshots.len() - left.len());
        }
    }

    #[test]
    fn loading_takes_snapshots_at_the_last_two_bases_and_the_end() {
        assert_eq!(offsets_to_snapshot(&bases(&[0, 10, 20, 30]), 35), [20, 30, 35]);
        assert_eq!(offsets_to_snapshot(&bases(&[0]), 0), [0, 0]);
        assert_eq!(offsets_to_snapshot(&bases(&[]), 4), [4]);
    }
}
