//! Which segments of a partition are in remote storage, by epoch and offset?
//!
//! Fed with the events of `__remote_log_metadata`, in their order. An event that the states do not
//! allow changes nothing and is told as [`Applied::Dropped`]; so a cache can be fed again with what
//! it has seen.

use std::collections::{BTreeMap, btree_map};
use std::iter::Peekable;

use super::epoch_state::EpochState;
use super::remote_segment::{
    RemotePartition, RemoteSegment, RemoteSegmentState, RemoteSegmentUpdate,
};
use crate::error::{Error, Kind, Result};
use crate::uuid::{Uuid, UuidMap};

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It holds now.
    Done,
    /// It changed nothing.
    Dropped(Dropped),
}

/// Why an event changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The segment may not go from its state to that of the event.
    State {
        /// Its state; `None` of a segment that is not known.
        from: Option<RemoteSegmentState>,
        /// The state of the event.
        to: RemoteSegmentState,
    },
    /// The segment is not known, while not all events were read yet.
    UnknownWhileLoading,
}

/// What is known of one partition's segments in remote storage.
#[derive(Clone, Debug)]
pub struct MetadataCache {
    partition: RemotePartition,
    segments: UuidMap<RemoteSegment>,
    epochs: BTreeMap<i32, EpochState>,
    is_loaded: bool,
}

impl MetadataCache {
    /// Nothing is known of this partition yet; the cache is loading.
    #[must_use]
    pub fn new(partition: RemotePartition) -> Self {
        let (segments, epochs) = (UuidMap::default(), BTreeMap::new());
        MetadataCache { partition, segments, epochs, is_loaded: false }
    }

    /// Whose segments they are.
    #[must_use]
    pub fn partition(&self) -> &RemotePartition {
        &self.partition
    }

    /// Says that all events that were there have been read.
    pub fn mark_loaded(&mut self) {
        self.is_loaded = true;
    }

    /// Whether all events that were there have been read: before, the tasks of the partition must
    /// wait, as [`RemoteTasks::if_loaded`](super::RemoteTasks::if_loaded) says.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// A segment's copy began.
    ///
    /// # Errors
    /// `InvalidArgument` for a segment of another partition, in another state than
    /// [`CopyStarted`](RemoteSegmentState::CopyStarted), or that cannot be.
    pub fn add(&mut self, segment: RemoteSegment) -> Result<Applied> {
        self.check_partition(&segment.id.partition)?;
        segment.check()?;
        let to = segment.state;
        if to != RemoteSegmentState::CopyStarted {
            let message = format!("a segment is added in state {}", to.name());
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        let id = segment.id.segment_id;
        let existing = self.segments.get(&id);
        let from = existing.map(|existing| existing.state);
        if !RemoteSegmentState::may_follow(from, to) {
            return Ok(Applied::Dropped(Dropped::State { from, to }));
        }
        for entry in existing.into_iter().flat_map(|existing| &existing.leader_epochs) {
            if let Some(state) = self.epochs.get_mut(&entry.epoch) {
                state.delete_finished(id);
            }
        }
        for entry in &segment.leader_epochs {
            self.epochs.entry(entry.epoch).or_default().copy_started(id);
        }
        self.segments.insert(id, segment);
        Ok(Applied::Done)
    }

    /// A segment's state changed.
    ///
    /// # Errors
    /// `InvalidArgument` for a segment of another partition; `NotFound` for one that is not known
    /// once the cache is [loaded](Self::mark_loaded).
    pub fn update(&mut self, update: &RemoteSegmentUpdate) -> Result<Applied> {
        self.check_partition(&update.id.partition)?;
        let (id, to) = (update.id.segment_id, update.state);
        let Some(segment) = self.segments.get_mut(&id) else {
            if !self.is_loaded {
                return Ok(Applied::Dropped(Dropped::UnknownWhileLoading));
            }
            return Err(Error::new(Kind::NotFound, format!("there is no remote segment {id}")));
        };
        let from = segment.state;
        if !RemoteSegmentState::may_follow(Some(from), to) {
            return Ok(Applied::Dropped(Dropped::State { from: Some(from), to }));
        }
        for (entry, end) in segment.epoch_ranges() {
            let state = self.epochs.entry(entry.epoch).or_default();
            match to {
                RemoteSegmentState::CopyStarted => state.copy_started(id),
                // Of an epoch that begins behind its end the segment has nothing to be found.
                RemoteSegmentState::CopyFinished if entry.start_offset <= segment.end_offset => {
                    state.copy_finished(entry.start_offset, id, end);
                }
                RemoteSegmentState::CopyFinished => {}
                RemoteSegmentState::DeleteStarted => state.delete_started(entry.start_offset, id),
                RemoteSegmentState::DeleteFinished => state.delete_finished(id),
            }
        }
        if to == RemoteSegmentState::DeleteFinished {
            self.segments.remove(&id);
        } else {
            *segment = segment.updated(update);
        }
        Ok(Applied::Done)
    }

    fn check_partition(&self, partition: &RemotePartition) -> Result<()> {
        if *partition == self.partition {
            return Ok(());
        }
        let RemotePartition { topic, partition, .. } = partition;
        let message = format!("an event of {topic}-{partition} for another partition");
        Err(Error::new(Kind::InvalidArgument, message))
    }

    /// The segment of this id, in whatever state.
    #[must_use]
    pub fn get(&self, segment_id: Uuid) -> Option<&RemoteSegment> {
        self.segments.get(&segment_id)
    }

    /// The segment whose copy is finished and that has the record at `offset` of `epoch`, if it has
    /// one there.
    #[must_use]
    pub fn segment(&self, epoch: i32, offset: i64) -> Option<&RemoteSegment> {
        // spec: tiered 4.1, "segment(e, o)"
        self.with_offset(self.epochs.get(&epoch)?.floor(offset)?, epoch, offset)
    }

    /// The segment of this id, if what it has of the epoch reaches the offset.
    fn with_offset(&self, id: Uuid, epoch: i32, offset: i64) -> Option<&RemoteSegment> {
        let segment = self.segments.get(&id)?;
        let next = segment.leader_epochs.iter().find(|entry| entry.epoch > epoch);
        // An epoch that begins behind the segment's end reaches no further than that, or a chain
        // would find the same segment behind itself for ever.
        let end = next.map_or(i64::MAX, |next| next.start_offset.saturating_sub(1));
        (offset <= end.min(segment.end_offset)).then_some(segment)
    }

    /// The finished segments of `epoch` from the one with `offset` on, each the one that has the
    /// offset behind the last: they end where none has it.
    pub fn chain(&self, epoch: i32, offset: i64) -> SegmentChain<'_> {
        let places = self.epochs.get(&epoch).map(|state| state.places_from(offset).peekable());
        SegmentChain { cache: self, epoch, offset, places, floor: None }
    }

    /// The first segment of the [`chain`](Self::chain) that may have a transaction index; `None`
    /// where it ends before.
    #[must_use]
    pub fn next_with_txn_index(&self, epoch: i32, offset: i64) -> Option<&RemoteSegment> {
        self.chain(epoch, offset).find(|segment| !segment.is_txn_index_empty)
    }

    /// How far segments of this epoch ever reached whose copy was finished; it never goes back, not
    /// when they are deleted either.
    #[must_use]
    pub fn highest_offset(&self, epoch: i32) -> Option<i64> {
        self.epochs.get(&epoch)?.highest()
    }

    /// The segments of an epoch that are not gone, by start; none of an epoch that is not known.
    ///
    /// # Errors
    /// `NotFound` when the cache disagrees with itself.
    pub fn list(&self, epoch: i32) -> Result<Vec<&RemoteSegment>> {
        self.epochs.get(&epoch).map_or(Ok(Vec::new()), |state| state.list(&self.segments))
    }

    /// All segments that are not gone, by start.
    #[must_use]
    pub fn list_all(&self) -> Vec<&RemoteSegment> {
        let mut all: Vec<_> = self.segments.values().collect();
        all.sort_by_key(|segment| (segment.start_offset, segment.id.segment_id));
        all
    }

    /// Bytes of the `.log` parts of an epoch's segments that are not gone.
    ///
    /// # Errors
    /// Those of [`list`](Self::list).
    pub fn remote_size_bytes(&self, epoch: i32) -> Result<u64> {
        Ok(self.list(epoch)?.into_iter().map(RemoteSegment::log_size_bytes).sum())
    }

    /// The epochs of which there ever were segments, rising.
    pub fn epochs(&self) -> impl Iterator<Item = i32> + '_ {
        self.epochs.keys().copied()
    }
}

/// Segments of an epoch, one behind the other; see [`MetadataCache::chain`].
#[derive(Clone, Debug)]
pub struct SegmentChain<'a> {
    cache: &'a MetadataCache,
    epoch: i32,
    offset: i64,
    /// Where the epoch begins in the segments that are still to come.
    places: Option<Peekable<btree_map::Range<'a, i64, Uuid>>>,
    floor: Option<Uuid>,
}

impl<'a> Iterator for SegmentChain<'a> {
    type Item = &'a RemoteSegment;

    fn next(&mut self) -> Option<&'a RemoteSegment> {
        let (places, offset) = (self.places.as_mut()?, self.offset);
        while let Some((_, id)) = places.next_if(|(start, _)| **start <= offset) {
            self.floor = Some(*id);
        }
        let segment = self.cache.with_offset(self.floor?, self.epoch, offset)?;
        match segment.end_offset.checked_add(1) {
            Some(behind) => self.offset = behind,
            None => self.places = None,
        }
        Some(segment)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::lineage::tests::entries;
    use super::super::remote_segment::RemoteSegmentId;
    use super::*;
    use RemoteSegmentState::{CopyFinished, CopyStarted, DeleteFinished, DeleteStarted};

    pub(in super::super) fn partition() -> RemotePartition {
        RemotePartition { topic_id: Uuid::reserved(7), topic: "orders".into(), partition: 0 }
    }

    /// A segment of 1024 bytes whose copy began; epochs as `epoch:start` words.
    pub(in super::super) fn segment(id: u64, start: i64, end: i64, epochs: &str) -> RemoteSegment {
        RemoteSegment {
            id: RemoteSegmentId { partition: partition(), segment_id: Uuid::reserved(id) },
            start_offset: start,
            end_offset: end,
            max_timestamp_ms: end,
            broker_id: 0,
            event_timestamp_ms: 0,
            size_bytes: 1024,
            custom_metadata: None,
            state: CopyStarted,
            leader_epochs: entries(epochs),
            is_txn_index_empty: true,
        }
    }

    pub(in super::super) fn update(id: u64, state: RemoteSegmentState) -> RemoteSegmentUpdate {
        RemoteSegmentUpdate {
            id: RemoteSegmentId { partition: partition(), segment_id: Uuid::reserved(id) },
            event_timestamp_ms: 5,
            custom_metadata: None,
            state,
            broker_id: 1,
        }
    }

    /// A loaded cache in which these segments' copies are finished.
    pub(in super::super) fn finished(segments: Vec<RemoteSegment>) -> MetadataCache {
        let mut cache = MetadataCache::new(partition());
        cache.mark_loaded();
        for segment in segments {
            let finish = RemoteSegmentUpdate { id: segment.id.clone(), ..update(0, CopyFinished) };
            assert_eq!(cache.add(segment).unwrap(), Applied::Done);
            assert_eq!(cache.update(&finish).unwrap(), Applied::Done);
        }
        cache
    }

    fn id(segment: Option<&RemoteSegment>) -> Option<u64> {
        segment.map(|segment| u64::from_be_bytes(segment.id.segment_id.0[8..].try_into().unwrap()))
    }

    fn ids(segments: &[&RemoteSegment]) -> Vec<u64> {
        segments.iter().filter_map(|segment| id(Some(segment))).collect()
    }

    fn drop_of(cache: &mut MetadataCache, id: u64, to: RemoteSegmentState) -> Dropped {
        match cache.update(&update(id, to)).unwrap() {
            Applied::Dropped(dropped) => dropped,
            Applied::Done => panic!("it was not dropped"),
        }
    }

    #[test]
    fn no_epoch_reaches_beyond_the_end_of_its_segment() {
        // An epoch that ends at 199 by the next one's start was taken for uploaded up to there,
        // although the segment ends at 100.
        let cache = finished(vec![segment(1, 0, 100, "0:0 1:200")]);
        assert_eq!((cache.highest_offset(0), cache.highest_offset(1)), (Some(100), None));
        assert_eq!(id(cache.segment(0, 100)), Some(1));
        assert_eq!(id(cache.segment(0, 101)), None);
        assert_eq!(id(cache.segment(1, 200)), None);
        // It is gone from both in the end.
        let mut cache = cache;
        assert_eq!(ids(&cache.list(1).unwrap()), [1]);
        for state in [DeleteStarted, DeleteFinished] {
            assert_eq!(cache.update(&update(1, state)).unwrap(), Applied::Done);
        }
        assert_eq!((ids(&cache.list(0).unwrap()), ids(&cache.list(1).unwrap())), (vec![], vec![]));
    }

    fn three() -> MetadataCache {
        finished(vec![
            segment(10, 0, 100, "0:0 1:20 2:80"),
            segment(11, 101, 200, "2:101"),
            segment(12, 201, 300, "2:201 3:240"),
            segment(13, 250, 400, "3:250 4:370"),
        ])
    }

    #[test]
    fn an_epoch_that_begins_behind_the_end_of_its_segment_makes_no_chain_without_end() {
        let mut cache = MetadataCache::new(partition());
        cache.add(segment(1, 0, 28, "4:0 5:30 6:60")).unwrap();
        cache.update(&update(1, CopyFinished)).unwrap();
        assert_eq!(cache.segment(4, 28).map(|it| it.end_offset), Some(28));
        assert_eq!(cache.segment(4, 29), None);
        assert_eq!(cache.chain(4, 0).count(), 1);
        assert_eq!(cache.next_with_txn_index(4, 0), None);
    }

    #[test]
    fn only_a_segment_whose_copy_began_is_added() {
        // spec: tiered-behaviours MC1. That there is no segment at all is not to be had here.
        let mut cache = MetadataCache::new(partition());
        for state in [CopyFinished, DeleteStarted, DeleteFinished] {
            let error = cache.add(RemoteSegment { state, ..segment(1, 0, 9, "0:0") }).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument);
        }
        assert!(cache.list_all().is_empty() && cache.list(0).unwrap().is_empty());
        let mut other = segment(1, 0, 9, "0:0");
        other.id.partition.partition = 1;
        assert_eq!(cache.add(other).unwrap_err().kind(), Kind::InvalidArgument);
    }

    #[test]
    fn an_update_of_an_unknown_segment_is_an_error_once_all_was_read() {
        // spec: tiered-behaviours MC2
        let mut cache = MetadataCache::new(partition());
        for state in [CopyFinished, DeleteStarted, DeleteFinished] {
            assert_eq!(drop_of(&mut cache, 1, state), Dropped::UnknownWhileLoading);
        }
        cache.mark_loaded();
        for state in [CopyFinished, DeleteStarted, DeleteFinished] {
            assert_eq!(cache.update(&update(1, state)).unwrap_err().kind(), Kind::NotFound);
        }
    }

    #[test]
    fn states_that_may_not_follow_are_dropped_and_told() {
        // spec: tiered-behaviours MC3, MC5
        let mut cache = MetadataCache::new(partition());
        cache.add(segment(1, 10, 100, "5:10")).unwrap();
        let dropped = drop_of(&mut cache, 1, DeleteFinished);
        assert_eq!(dropped, Dropped::State { from: Some(CopyStarted), to: DeleteFinished });
        let listed = cache.list(5).unwrap();
        assert_eq!((ids(&listed), listed[0].state), (vec![1], CopyStarted));

        let mut cache = finished(vec![segment(1, 10, 100, "5:10")]);
        assert_eq!(cache.update(&update(1, DeleteStarted)).unwrap(), Applied::Done);
        for to in [CopyFinished, CopyStarted] {
            let dropped = drop_of(&mut cache, 1, to);
            assert_eq!(dropped, Dropped::State { from: Some(DeleteStarted), to });
            assert_eq!(cache.list(5).unwrap()[0].state, DeleteStarted);
        }
        let again = cache.add(segment(1, 10, 100, "5:10")).unwrap();
        let state = Dropped::State { from: Some(DeleteStarted), to: CopyStarted };
        assert_eq!(again, Applied::Dropped(state));
        assert_eq!(cache.update(&update(1, DeleteFinished)).unwrap(), Applied::Done);
        assert!(cache.list(5).unwrap().is_empty() && cache.list_all().is_empty());
    }

    #[test]
    fn a_segment_that_is_being_copied_is_not_found() {
        // spec: tiered-behaviours MC6
        let mut cache = MetadataCache::new(partition());
        cache.add(segment(10, 0, 100, "0:0 1:20 2:80")).unwrap();
        assert_eq!(cache.segment(1, 40), None);
        assert_eq!([0, 1, 2].map(|epoch| cache.highest_offset(epoch)), [None; 3]);
        assert_eq!(ids(&cache.list(1).unwrap()), [10]);
    }

    #[test]
    fn finished_segments_are_found_by_epoch_and_offset() {
        // spec: tiered-behaviours MC7
        let cache = three();
        let found = [(1, 40), (2, 110), (3, 240), (3, 250), (4, 375)]
            .map(|(epoch, offset)| id(cache.segment(epoch, offset)));
        assert_eq!(found, [10, 11, 12, 13, 13].map(Some));
        // Beyond what a segment has of the epoch, before its first offset, of another epoch.
        let none = [(0, 20), (1, 19), (1, 80), (4, 401), (4, 369), (5, 375), (2, 240)];
        for (epoch, offset) in none {
            assert_eq!(cache.segment(epoch, offset), None, "{epoch} {offset}");
        }
    }

    #[test]
    fn the_highest_offset_survives_the_segments() {
        // spec: tiered-behaviours MC9, MC10
        let mut cache = three();
        cache.update(&update(10, DeleteStarted)).unwrap();
        assert_eq!(cache.segment(0, 10), None);
        assert_eq!(ids(&cache.list(0).unwrap()), [10]);
        assert!(ids(&cache.list_all()).contains(&10));
        cache.update(&update(10, DeleteFinished)).unwrap();
        assert_eq!(cache.list(0).unwrap().len(), 0);
        let highest = [0, 1, 2, 3, 4, 5].map(|epoch| cache.highest_offset(epoch));
        assert_eq!(highest, [Some(19), Some(79), Some(239), Some(369), Some(400), None]);
    }

    #[test]
    fn an_epoch_lists_its_segments_in_order() {
        // spec: tiered-behaviours MC11
        let mut cache = finished(vec![
            segment(3, 0, 100, "0:0"),
            segment(2, 101, 200, "0:101"),
            segment(1, 201, 400, "0:201 1:301"),
        ]);
        assert_eq!(ids(&cache.list(0).unwrap()), [3, 2, 1]);
        assert_eq!(ids(&cache.list(1).unwrap()), [1]);
        cache.add(segment(9, 150, 250, "0:150")).unwrap();
        assert_eq!(ids(&cache.list(0).unwrap()), [3, 2, 9, 1]);
        assert_eq!(ids(&cache.list_all()), [3, 2, 9, 1]);
        assert_eq!(cache.epochs().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn the_remote_size_of_an_epoch_is_that_of_its_segments() {
        // spec: tiered-behaviours MC22. Partitions that are not known: `RemoteMetadata`.
        let sized = |id, start, times| RemoteSegment {
            size_bytes: 100 * times,
            ..segment(id, start, start + 9, &format!("3:{start}"))
        };
        let cache = finished(vec![sized(1, 0, 1), sized(2, 10, 2), sized(3, 20, 3)]);
        assert_eq!(cache.remote_size_bytes(3).unwrap(), 600);
        assert_eq!(cache.remote_size_bytes(9001).unwrap(), 0);
    }

    #[test]
    fn a_segment_that_cannot_be_is_refused() {
        // spec: tiered-behaviours MC23
        let mut cache = MetadataCache::new(partition());
        for bad in [segment(1, -1, 9, "0:0"), segment(1, 5, 4, "0:5"), segment(1, 0, 9, "")] {
            assert_eq!(bad.check().unwrap_err().kind(), Kind::InvalidArgument);
            assert_eq!(cache.add(bad).unwrap_err().kind(), Kind::InvalidArgument);
        }
    }

    #[test]
    fn the_next_segment_with_a_transaction_index_is_found_across_those_without() {
        // spec: tiered 4.1, "next_with_txn_index"
        let with = RemoteSegment { is_txn_index_empty: false, ..segment(3, 20, 29, "0:20") };
        let cache = finished(vec![
            segment(1, 0, 9, "0:0"),
            segment(2, 10, 19, "0:10"),
            with,
            segment(4, 30, 39, "0:30"),
        ]);
        let next = |offset| id(cache.next_with_txn_index(0, offset));
        assert_eq!([0, 15, 29, 30, 40].map(next), [Some(3), Some(3), Some(3), None, None]);
        assert_eq!(id(cache.next_with_txn_index(1, 0)), None);
    }

    #[test]
    fn a_chain_goes_on_with_the_segment_that_has_the_next_offset() {
        let mut cache = finished(vec![
            segment(1, 0, 9, "0:0"),
            segment(2, 10, 29, "0:10"),
            // Within the one before, so that no chain comes to it from there.
            segment(3, 15, 19, "0:15"),
            segment(4, 30, 49, "0:30 1:40"),
            segment(5, 60, 69, "0:60"),
        ]);
        let chain = |cache: &MetadataCache, epoch, offset| {
            ids(&cache.chain(epoch, offset).collect::<Vec<_>>())
        };
        assert_eq!(chain(&cache, 0, 0), [1, 2, 4]);
        assert_eq!(chain(&cache, 0, 5), [1, 2, 4]);
        assert_eq!(chain(&cache, 0, 17), [3]);
        assert_eq!(chain(&cache, 0, 39), [4]);
        assert_eq!(chain(&cache, 0, 40), []);
        assert_eq!(chain(&cache, 1, 40), [4]);
        assert_eq!(chain(&cache, 0, 60), [5]);
        assert_eq!(chain(&cache, 0, -1), []);
        assert_eq!(chain(&cache, 7, 0), []);
        cache.update(&update(2, DeleteStarted)).unwrap();
        assert_eq!(chain(&cache, 0, 0), [1]);
    }

    #[test]
    fn events_that_come_twice_change_nothing_the_second_time() {
        let once = three();
        let mut twice = three();
        for it in [12, 10, 13, 11] {
            assert_eq!(twice.update(&update(it, CopyFinished)).unwrap(), Applied::Done);
        }
        for epoch in 0..5 {
            assert_eq!(ids(&twice.list(epoch).unwrap()), ids(&once.list(epoch).unwrap()));
            assert_eq!(twice.highest_offset(epoch), once.highest_offset(epoch));
        }
        assert_eq!(id(twice.segment(3, 250)), Some(13));
    }
}
