//! Which leader wrote which offsets?
//!
//! [`LeaderEpochs`] is the content of `leader-epoch-checkpoint`: for each leader epoch the offset
//! of its first batch, both rising. It opens no file; [`LeaderEpochs::changed`] says when the
//! owner has to write it.

use super::checkpoint::{EpochEntry, format_epochs, parse_epochs};
use crate::error::{Error, Kind, Result};
use crate::units::NO_LEADER_EPOCH;

/// "No such epoch" as an answer of [`LeaderEpochs::end_offset_for`].
pub const UNDEFINED_EPOCH_OFFSET: i64 = -1;

/// The leader epochs of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderEpochs {
    /// Epochs and start offsets rise from entry to entry: every change keeps that.
    entries: Vec<EpochEntry>,
    changed: bool,
}

impl LeaderEpochs {
    /// No epochs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the bytes of `leader-epoch-checkpoint`.
    ///
    /// Lines that do not rise are put right in memory alone, so that a file with such lines is
    /// not [`changed`](Self::changed) by reading it.
    ///
    /// # Errors
    /// Those of [`parse_epochs`]; [`Kind::InvalidArgument`] for a negative epoch or offset.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Self::from_entries(&parse_epochs(bytes)?)
    }

    /// The epochs that come of assigning these entries in turn, as loading a file does.
    ///
    /// # Errors
    /// [`Kind::InvalidArgument`] for a negative epoch or offset.
    pub fn from_entries(entries: &[EpochEntry]) -> Result<Self> {
        let mut epochs = Self::new();
        for entry in entries {
            epochs.insert(*entry)?;
        }
        Ok(epochs)
    }

    /// The bytes of `leader-epoch-checkpoint`.
    #[must_use]
    pub fn format(&self) -> Vec<u8> {
        format_epochs(&self.entries)
    }

    /// The entries, rising.
    #[must_use]
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// Whether the file has to be written since it was read or [`written`](Self::written).
    #[must_use]
    pub fn changed(&self) -> bool {
        self.changed
    }

    /// Says that the file now holds these entries.
    pub fn written(&mut self) {
        self.changed = false;
    }

    /// Says that batches from `start_offset` on are of `epoch`; `true` when that was news.
    ///
    /// An epoch that goes back removes the higher ones; a start that goes back removes the
    /// epochs that started there or behind it.
    ///
    /// # Errors
    /// [`Kind::InvalidArgument`] for a negative epoch or offset; nothing is changed.
    pub fn assign(&mut self, epoch: i32, start_offset: i64) -> Result<bool> {
        let news = self.insert(EpochEntry { epoch, start_offset })?;
        self.changed |= news;
        Ok(news)
    }

    /// Assigns a list in turn. The file is to be written afterwards even when nothing was news.
    ///
    /// # Errors
    /// [`Kind::InvalidArgument`] for a negative epoch or offset; those before it are assigned.
    pub fn assign_all(&mut self, entries: &[EpochEntry]) -> Result<()> {
        for entry in entries {
            self.assign(entry.epoch, entry.start_offset)?;
        }
        self.changed |= !entries.is_empty();
        Ok(())
    }

    /// What recovery of a segment does for a batch: only an epoch above all known ones counts.
    ///
    /// # Errors
    /// [`Kind::InvalidArgument`] for such an epoch at a negative offset.
    pub fn assign_recovered(&mut self, epoch: i32, start_offset: i64) -> Result<bool> {
        // spec: producer-state B5
        if epoch < 0 || self.latest().is_some_and(|latest| epoch <= latest.epoch) {
            return Ok(false);
        }
        self.assign(epoch, start_offset)
    }

    // spec: producer-state B2
    fn insert(&mut self, entry: EpochEntry) -> Result<bool> {
        let EpochEntry { epoch, start_offset } = entry;
        if epoch < 0 || start_offset < 0 {
            let message = format!("leader epoch {epoch} cannot start at offset {start_offset}");
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        let needed = self
            .latest()
            .is_none_or(|latest| latest.epoch != epoch || start_offset < latest.start_offset);
        if needed {
            while self
                .entries
                .pop_if(|last| last.epoch >= epoch || last.start_offset >= start_offset)
                .is_some()
            {}
            self.entries.push(entry);
        }
        Ok(needed)
    }

    /// The last entry.
    #[must_use]
    pub fn latest(&self) -> Option<EpochEntry> {
        self.entries.last().copied()
    }

    /// The first entry.
    #[must_use]
    pub fn earliest(&self) -> Option<EpochEntry> {
        self.entries.first().copied()
    }

    /// The epoch just below the latest.
    #[must_use]
    pub fn previous_epoch(&self) -> Option<i32> {
        let slot = self.entries.len().checked_sub(2)?;
        self.entries.get(slot).map(|e| e.epoch)
    }

    /// The entry of the greatest epoch below `epoch`.
    #[must_use]
    pub fn previous_entry(&self, epoch: i32) -> Option<EpochEntry> {
        let slot = self.entries.partition_point(|e| e.epoch < epoch).checked_sub(1)?;
        self.entries.get(slot).copied()
    }

    /// The entry of the smallest epoch above `epoch`.
    #[must_use]
    pub fn next_entry(&self, epoch: i32) -> Option<EpochEntry> {
        self.entries.get(self.entries.partition_point(|e| e.epoch <= epoch)).copied()
    }

    /// The entry of exactly this epoch.
    #[must_use]
    pub fn entry(&self, epoch: i32) -> Option<EpochEntry> {
        let slot = self.entries.binary_search_by_key(&epoch, |e| e.epoch).ok()?;
        self.entries.get(slot).copied()
    }

    /// The epoch of the batch at `offset`; none below the first entry.
    #[must_use]
    pub fn epoch_for_offset(&self, offset: i64) -> Option<i32> {
        let slot = self.entries.partition_point(|e| e.start_offset <= offset).checked_sub(1)?;
        self.entries.get(slot).map(|e| e.epoch)
    }

    /// Where an epoch ends: the greatest known epoch not above `epoch` and its exclusive end.
    ///
    /// Below the first known epoch it is `epoch` itself and the first start. Epoch -1 and
    /// epochs above the latest give ([`NO_LEADER_EPOCH`], [`UNDEFINED_EPOCH_OFFSET`]).
    #[must_use]
    pub fn end_offset_for(&self, epoch: i32, log_end_offset: i64) -> (i32, i64) {
        // spec: producer-state B3
        const UNDEFINED: (i32, i64) = (NO_LEADER_EPOCH, UNDEFINED_EPOCH_OFFSET);
        if epoch == NO_LEADER_EPOCH {
            return UNDEFINED;
        }
        if self.latest().is_some_and(|latest| latest.epoch == epoch) {
            return (epoch, log_end_offset);
        }
        let Some(higher) = self.next_entry(epoch) else { return UNDEFINED };
        let floor = self.entry(epoch).or_else(|| self.previous_entry(epoch));
        (floor.map_or(epoch, |floor| floor.epoch), higher.start_offset)
    }

    /// The entries that hold from `start` to before `end`, the first one cut to `start`.
    /// A negative `start` cuts nothing.
    #[must_use]
    pub fn entries_in_range(&self, start: i64, end: i64) -> Vec<EpochEntry> {
        let mut range = self.clone();
        if start >= 0 {
            range.truncate_from_start(start);
        }
        range.truncate_from_end(end);
        range.entries
    }

    /// Forgets the epochs that start at `end` or behind it; `true` when there were any.
    pub fn truncate_from_end(&mut self, end: i64) -> bool {
        // spec: producer-state B4
        if end < 0 || self.latest().is_none_or(|latest| latest.start_offset < end) {
            return false;
        }
        self.entries.truncate(self.entries.partition_point(|e| e.start_offset < end));
        self.changed = true;
        true
    }

    /// Forgets what lies before `start`: the epoch that holds there now starts there.
    /// `true` when an entry started at `start` or before it, even if it stays the same.
    pub fn truncate_from_start(&mut self, start: i64) -> bool {
        // spec: producer-state B4
        let Some(slot) = self.entries.partition_point(|e| e.start_offset <= start).checked_sub(1)
        else {
            return false;
        };
        self.entries.drain(..slot);
        if let Some(first) = self.entries.first_mut() {
            first.start_offset = start;
        }
        self.changed = true;
        true
    }

    /// Forgets every epoch; the file is to be written.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.changed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Assigns `epoch@start` words in turn.
    fn epochs(words: &str) -> LeaderEpochs {
        let mut epochs = LeaderEpochs::new();
        assign(&mut epochs, words);
        epochs.written();
        epochs
    }

    fn assign(epochs: &mut LeaderEpochs, words: &str) {
        for word in words.split_whitespace() {
            let (epoch, start) = word.split_once('@').unwrap();
            epochs.assign(epoch.parse().unwrap(), start.parse().unwrap()).unwrap();
        }
    }

    fn words(entries: &[EpochEntry]) -> String {
        let words = entries.iter().map(|e| format!("{}@{}", e.epoch, e.start_offset));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_previous_epoch_follows_assignments_and_truncation() {
        // spec: behaviours EC-001, EC-002
        let mut cache = LeaderEpochs::new();
        assert_eq!(cache.previous_epoch(), None);
        assign(&mut cache, "2@10");
        assert_eq!(cache.previous_epoch(), None);
        assign(&mut cache, "4@15");
        assert_eq!(cache.previous_epoch(), Some(2));
        assign(&mut cache, "10@20");
        assert_eq!(cache.previous_epoch(), Some(4));
        assert!(cache.truncate_from_end(18));
        assert_eq!(cache.previous_epoch(), Some(2));
    }

    #[test]
    fn the_same_epoch_with_a_higher_start_is_no_news() {
        // spec: behaviours EC-004, EC-006
        let mut cache = epochs("2@11");
        assert!(!cache.assign(2, 12).unwrap());
        assert!(!cache.changed());
        assert_eq!(words(cache.entries()), "2@11");
        assert_eq!(cache.end_offset_for(2, 14), (2, 14));
        assert_eq!(words(epochs("2@9 2@10").entries()), "2@9");
    }

    #[test]
    fn end_offsets_of_unknown_epochs_are_undefined() {
        // spec: behaviours EC-005, EC-008, EC-013
        assert_eq!(epochs("2@11 3@12").end_offset_for(-1, 0), (-1, -1));
        let empty = LeaderEpochs::new();
        for (epoch, end) in [(0, 0), (7, 0), (-1, 73)] {
            assert_eq!(empty.end_offset_for(epoch, end), (-1, -1));
        }
        assert_eq!(epochs("2@100").end_offset_for(3, 100), (-1, -1));
    }

    #[test]
    fn an_epoch_before_the_first_is_echoed() {
        // spec: behaviours EC-009
        assert_eq!(epochs("5@11 6@12 7@13").end_offset_for(4, 0), (4, 11));
    }

    #[test]
    fn a_start_that_goes_back_removes_the_epochs_behind_it() {
        // spec: behaviours EC-010, EC-016, EC-017
        let cache = epochs("5@11 6@12 7@13 7@12");
        assert_eq!(words(cache.entries()), "5@11 7@12");
        assert_eq!(cache.end_offset_for(5, 0), (5, 12));
        assert_eq!(cache.end_offset_for(6, 0), (5, 12));
        assert_eq!(words(epochs("2@6 3@5").entries()), "3@5");
        let cache = epochs("0@0 1@0");
        assert_eq!(words(cache.entries()), "1@0");
        assert_eq!(cache.end_offset_for(1, 0), (1, 0));
        assert_eq!(cache.end_offset_for(0, 0), (0, 0));
    }

    #[test]
    fn an_epoch_ends_where_the_next_known_one_starts() {
        // spec: behaviours EC-012, EC-018
        let cache = epochs("0@10 2@13 4@17");
        let ends = [1, 2, 3].map(|epoch| cache.end_offset_for(epoch, 99));
        assert_eq!(ends, [(0, 13), (2, 17), (2, 17)]);
        let cache = epochs("0@0 1@0 2@5");
        let ends = [2, 1, 0].map(|epoch| cache.end_offset_for(epoch, 10));
        assert_eq!(ends, [(2, 10), (1, 5), (0, 0)]);
    }

    #[test]
    fn a_cache_is_what_its_file_says() {
        // spec: behaviours EC-014
        let cache = epochs("2@6");
        assert_eq!(cache.format(), b"0\n1\n2 6\n");
        assert_eq!(LeaderEpochs::parse(&cache.format()).unwrap(), cache);
    }

    #[test]
    fn truncation_from_the_end_removes_epochs_that_start_there() {
        // spec: behaviours EC-020, EC-021, EC-022
        for (end, left) in [(8, "2@6"), (9, "2@6 3@8"), (11, "2@6 3@8")] {
            let mut cache = epochs("2@6 3@8 4@11");
            assert!(cache.truncate_from_end(end) && cache.changed());
            assert_eq!(words(cache.entries()), left);
        }
        let mut cache = epochs("2@6 3@8 4@11");
        assert!(!cache.truncate_from_end(12) && !cache.changed());
    }

    #[test]
    fn truncation_from_the_start_moves_the_epoch_that_holds_there() {
        // spec: behaviours EC-024, EC-025, EC-028, EC-030
        for (before, start, after) in [
            ("2@6 3@8 4@11", 8, "3@8 4@11"),
            ("2@6 3@8 4@11", 9, "3@9 4@11"),
            ("2@6 3@8 4@11", 15, "4@15"),
            ("0@0 1@7 2@10", 5, "0@5 1@7 2@10"),
        ] {
            let mut cache = epochs(before);
            assert!(cache.truncate_from_start(start) && cache.changed());
            assert_eq!(words(cache.entries()), after);
        }
    }

    #[test]
    fn truncation_before_the_first_epoch_changes_nothing() {
        // spec: behaviours EC-026, EC-029, EC-032
        let mut cache = epochs("2@6 3@8 4@11");
        assert!(!cache.truncate_from_start(1));
        assert!(!cache.truncate_from_start(-1) && !cache.truncate_from_end(-1));
        assert!(!cache.changed());
        // Kafka quirk: an entry that starts exactly there counts as moved, so the file is written.
        assert!(cache.truncate_from_start(6) && cache.changed());
        assert_eq!(words(cache.entries()), "2@6 3@8 4@11");
        let mut empty = LeaderEpochs::new();
        assert!(!empty.truncate_from_start(7) && !empty.truncate_from_end(7));
        assert_eq!(empty.latest(), None);
    }

    #[test]
    fn neighbours_of_an_epoch_are_found_whether_it_is_known_or_not() {
        // spec: behaviours EC-033, EC-034
        let cache = epochs("2@10 4@15 10@20");
        let previous = |epoch| cache.previous_entry(epoch).map(|e| (e.epoch, e.start_offset));
        assert_eq!(
            [4, 2, 3, 10].map(previous),
            [Some((2, 10)), None, Some((2, 10)), Some((4, 15))]
        );
        let cache = epochs("0@0 1@100 2@200");
        let next = |epoch| cache.next_entry(epoch).map(|e| e.epoch);
        assert_eq!([-1, 0, 1, 2, 100].map(next), [Some(0), Some(1), Some(2), None, None]);
        assert_eq!(cache.entry(1), Some(EpochEntry { epoch: 1, start_offset: 100 }));
        assert_eq!(cache.entry(3), None);
        assert_eq!(cache.earliest().map(|e| e.epoch), Some(0));
    }

    #[test]
    fn the_epoch_of_an_offset_is_that_of_the_last_start_not_behind_it() {
        // spec: behaviours EC-036
        let cache = epochs("0@10 1@20 5@30");
        let found = [25, 20, 30, 50, 5].map(|offset| cache.epoch_for_offset(offset));
        assert_eq!(found, [Some(1), Some(1), Some(5), Some(5), None]);
    }

    #[test]
    fn truncation_from_both_ends_is_what_the_file_then_says() {
        // spec: behaviours EC-037
        let mut cache = epochs("2@6 3@8 4@11");
        cache.truncate_from_end(11);
        cache.truncate_from_start(8);
        assert_eq!(cache.format(), b"0\n1\n3 8\n");
        assert_eq!(words(LeaderEpochs::parse(&cache.format()).unwrap().entries()), "3@8");
    }

    #[test]
    fn a_range_is_cut_at_both_ends_and_leaves_the_cache_alone() {
        // spec: behaviours EC-038
        let cache = epochs("2@6 3@8 4@11");
        assert_eq!(words(&cache.entries_in_range(7, 11)), "2@7 3@8");
        assert_eq!(words(&cache.entries_in_range(-1, 11)), "2@6 3@8");
        assert_eq!(words(&cache.entries_in_range(-1, 9)), "2@6 3@8");
        assert!(!cache.changed());
    }

    #[test]
    fn recovery_takes_only_epochs_above_the_latest() {
        // spec: behaviours LS-037
        let mut cache = LeaderEpochs::new();
        for (epoch, base) in [(0, 104), (1, 106), (1, 108), (2, 110), (1, 112), (-1, 114)] {
            cache.assign_recovered(epoch, base).unwrap();
        }
        assert_eq!(words(cache.entries()), "0@104 1@106 2@110");
    }

    #[test]
    fn an_append_takes_an_epoch_that_goes_back() {
        let mut cache = epochs("0@0 3@5 7@9");
        assert!(cache.assign(4, 12).unwrap());
        assert_eq!(words(cache.entries()), "0@0 3@5 4@12");
    }

    #[test]
    fn a_file_that_does_not_rise_is_put_right_in_memory_only() {
        let cache = LeaderEpochs::parse(b"0\n2\n7 0\n3 2\n").unwrap();
        assert_eq!(words(cache.entries()), "3@2");
        assert!(!cache.changed());
    }

    #[test]
    fn negative_epochs_and_offsets_are_refused() {
        let mut cache = epochs("0@0");
        for (epoch, start) in [(-1, 5), (1, -1)] {
            let error = cache.assign(epoch, start).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument);
        }
        assert!(LeaderEpochs::parse(b"0\n1\n-1 0\n").is_err());
        assert!(!cache.changed());
    }

    #[test]
    fn a_list_is_written_even_when_it_is_no_news() {
        let mut cache = epochs("2@6");
        cache.assign_all(&[]).unwrap();
        assert!(!cache.changed());
        cache.assign_all(&[EpochEntry { epoch: 2, start_offset: 6 }]).unwrap();
        assert!(cache.changed());
        cache.written();
        cache.clear();
        assert!(cache.changed() && cache.entries().is_empty());
    }
}
