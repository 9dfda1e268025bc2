//! Does a remote segment belong to the history of this log, or to one that lost an election?

use super::remote_segment::RemoteSegment;
use crate::state::EpochEntry;

/// The epochs that hold records: of consecutive entries with one start only the last does.
///
/// What it gives borrows from what it takes, and nothing is allocated.
pub fn filter_epochs(
    entries: &[EpochEntry],
) -> impl DoubleEndedIterator<Item = EpochEntry> + Clone + '_ {
    // spec: tiered 5
    entries.iter().enumerate().filter_map(|(slot, entry)| {
        let next = slot.checked_add(1).and_then(|next| entries.get(next));
        next.is_none_or(|next| next.start_offset != entry.start_offset).then_some(*entry)
    })
}

/// The leader epochs that a log has, as the test of the lineage wants them: filtered once, asked
/// for many segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    epochs: Vec<EpochEntry>,
    log_end_offset: i64,
}

impl Lineage {
    /// The lineage of a log with these epochs, rising, and this exclusive end.
    #[must_use]
    pub fn new(entries: &[EpochEntry], log_end_offset: i64) -> Self {
        Lineage { epochs: filter_epochs(entries).collect(), log_end_offset }
    }

    /// The epochs that hold records, rising.
    #[must_use]
    pub fn epochs(&self) -> &[EpochEntry] {
        &self.epochs
    }

    /// Whether a segment's records are those that this log has, or had, at their offsets.
    ///
    /// Epochs of the segment before the log's first one are not looked at: the log may have
    /// forgotten them.
    #[must_use]
    pub fn holds(&self, segment: &RemoteSegment) -> bool {
        self.holds_range(segment.end_offset, &segment.leader_epochs)
    }

    /// The same for a segment of which only the inclusive end and the epochs, rising, are known.
    #[must_use]
    pub fn holds_range(&self, end_offset: i64, leader_epochs: &[EpochEntry]) -> bool {
        is_within(&self.epochs, self.log_end_offset, end_offset, leader_epochs)
    }
}

/// As [`Lineage::holds_range`], of a log with these epochs, of which each holds records.
pub(super) fn is_within(
    epochs: &[EpochEntry],
    log_end_offset: i64,
    end_offset: i64,
    leader_epochs: &[EpochEntry],
) -> bool {
    // spec: tiered 5, rules 1 to 7
    let segment = filter_epochs(leader_epochs);
    let (Some(earliest), Some(latest)) = (epochs.first(), epochs.last()) else {
        return false;
    };
    let Some(last) = segment.clone().next_back() else { return false };
    if !(earliest.epoch..=latest.epoch).contains(&last.epoch) || end_offset >= log_end_offset {
        return false;
    }
    let mut known = segment.skip_while(|entry| entry.epoch < earliest.epoch).peekable();
    let mut is_first = true;
    while let Some(entry) = known.next() {
        let Ok(slot) = epochs.binary_search_by_key(&entry.epoch, |it| it.epoch) else {
            return false;
        };
        let own = epochs.get(slot).map_or(i64::MAX, |own| own.start_offset);
        if std::mem::take(&mut is_first) && slot > 0 && entry.start_offset < own {
            return false;
        }
        let behind = slot.checked_add(1).and_then(|behind| epochs.get(behind));
        let is_right = match known.peek() {
            Some(next) => behind == Some(next),
            None => behind.is_none_or(|behind| end_offset < behind.start_offset),
        };
        if !is_right {
            return false;
        }
    }
    true
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Entries of `epoch:start` words.
    pub(in super::super) fn entries(words: &str) -> Vec<EpochEntry> {
        let entry = |word: &str| {
            let (epoch, start) = word.split_once(':').unwrap();
            EpochEntry { epoch: epoch.parse().unwrap(), start_offset: start.parse().unwrap() }
        };
        words.split_whitespace().map(entry).collect()
    }

    #[test]
    fn epochs_without_records_are_left_out() {
        // spec: tiered 5
        let filtered: Vec<_> =
            filter_epochs(&entries("0:0 1:0 2:0 3:30 4:40 5:60 6:60 7:70 8:70")).collect();
        assert_eq!(filtered, entries("2:0 3:30 4:40 6:60 8:70"));
        assert_eq!(filter_epochs(&[]).count(), 0);
    }

    #[test]
    fn a_segment_is_in_the_lineage_as_kafka_says() {
        // spec: tiered 5, both tables
        let lineage = Lineage::new(&entries("0:0 1:10 2:20 3:30 4:40 5:50 7:70"), 90);
        let all = "1:15 2:20 3:30 4:40 5:50 7:70";
        for (end, epochs, expected) in [
            (35, "1:15 2:20 3:30", true),
            (19, "1:15", true),
            (5, "0:0", true),
            (29, "1:15 2:20", true),
            (85, "5:55 6:60 7:70", false),
            (45, "1:15 2:20 4:40", false),
            (95, all, false),
            (90, all, false),
            (89, all, true),
            (35, "1:15 2:20", false),
        ] {
            assert_eq!(lineage.holds_range(end, &entries(epochs)), expected, "{end} {epochs}");
        }
        let lineage = Lineage::new(&entries("7:51 9:100"), 210);
        for (end, epochs, expected) in [
            (150, "5:14 7:15 9:100", true),
            (7, "2:5 3:6", false),
            (250, "7:15 9:100 10:200", false),
            (150, "7:15 9:101", false),
            (150, "9:99", false),
        ] {
            assert_eq!(lineage.holds_range(end, &entries(epochs)), expected, "{end} {epochs}");
        }
    }

    #[test]
    fn epochs_of_a_segment_that_hold_no_records_do_not_count() {
        let lineage = Lineage::new(&entries("0:0 1:10 2:10 3:30"), 90);
        assert!(lineage.holds_range(29, &entries("0:5 1:10 2:10")));
        assert!(lineage.holds_range(29, &entries("0:5 2:10")));
        assert!(!lineage.holds_range(9, &entries("1:5")));
    }

    #[test]
    fn nothing_is_in_a_lineage_without_epochs_and_nothing_without_epochs_is_in_one() {
        assert!(!Lineage::new(&[], 90).holds_range(5, &entries("0:0")));
        assert!(!Lineage::new(&entries("0:0"), 90).holds_range(5, &[]));
    }
}
