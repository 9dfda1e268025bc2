//! Where do the special offsets of a log lie: earliest, earliest local, tiered, pending upload?
//!
//! Functions of a handful of numbers, so that a log, a leader's answer to a follower and a model
//! of both cannot come to different results.

use crate::segment::TimestampAndOffset;
use crate::state::LeaderEpochs;
use crate::units::{NO_LEADER_EPOCH, NO_TIMESTAMP};

/// What a log knows of its own bounds.
#[derive(Clone, Copy, Debug)]
pub struct LogBounds<'a> {
    /// Whether the topic has remote storage.
    pub remote_storage: bool,
    /// The first offset that can be read, from the local disk or from remote storage.
    pub log_start_offset: i64,
    /// The first offset on the local disk.
    pub local_log_start_offset: i64,
    /// The next offset to be written.
    pub log_end_offset: i64,
    /// The last offset that is known to be in remote storage, -1 for none.
    pub highest_remote_offset: i64,
    /// Which leader wrote what.
    pub epochs: &'a LeaderEpochs,
}

impl LogBounds<'_> {
    /// The end of the log, with its latest leader epoch.
    #[must_use]
    pub fn latest(&self) -> TimestampAndOffset {
        special(self.log_end_offset, self.epochs.latest().map(|latest| latest.epoch))
    }

    /// The start of the log.
    #[must_use]
    pub fn earliest(&self) -> TimestampAndOffset {
        let offset = self.log_start_offset;
        let earliest = self.epochs.earliest().filter(|earliest| earliest.start_offset <= offset);
        special(offset, earliest.map(|earliest| earliest.epoch))
    }

    /// The first offset on the local disk; without remote storage the start of the log.
    #[must_use]
    pub fn earliest_local(&self) -> TimestampAndOffset {
        if !self.remote_storage {
            return self.earliest();
        }
        let offset = self.local_log_start_offset;
        special(offset, self.epochs.epoch_for_offset(offset))
    }

    /// The last offset in remote storage; -1 with epoch -1 when none is known.
    #[must_use]
    pub fn latest_tiered(&self) -> TimestampAndOffset {
        if !self.remote_storage || self.highest_remote_offset < 0 {
            return UNKNOWN;
        }
        let offset = self.highest_remote_offset;
        special(offset, self.epochs.epoch_for_offset(offset))
    }

    /// The first offset that waits to go to remote storage; -1 with epoch -1 when that is not
    /// known. It is never below what the local disk has.
    #[must_use]
    pub fn earliest_pending_upload(&self) -> TimestampAndOffset {
        // spec: follower-fetch 3
        let (start, local_start) = (self.log_start_offset, self.local_log_start_offset);
        if !self.remote_storage {
            return UNKNOWN;
        }
        if self.highest_remote_offset >= 0 {
            let next = self.highest_remote_offset.saturating_add(1);
            let offset = next.max(start).max(local_start);
            return special(offset, self.epochs.epoch_for_offset(offset));
        }
        // Something was uploaded earlier, but how far is not known yet.
        if local_start == start { self.earliest() } else { UNKNOWN }
    }
}

const UNKNOWN: TimestampAndOffset = special(-1, Some(NO_LEADER_EPOCH));

const fn special(offset: i64, leader_epoch: Option<i32>) -> TimestampAndOffset {
    TimestampAndOffset { timestamp_ms: NO_TIMESTAMP, offset, leader_epoch }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::EpochEntry;

    fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
        let entry = |&(epoch, start_offset)| EpochEntry { epoch, start_offset };
        LeaderEpochs::from_entries(&entries.iter().map(entry).collect::<Vec<_>>()).unwrap()
    }

    fn bounds(
        epochs: &LeaderEpochs,
        (start, local_start, end): (i64, i64, i64),
        highest: i64,
    ) -> LogBounds<'_> {
        LogBounds {
            remote_storage: true,
            log_start_offset: start,
            local_log_start_offset: local_start,
            log_end_offset: end,
            highest_remote_offset: highest,
            epochs,
        }
    }

    fn pair(answer: TimestampAndOffset) -> (i64, Option<i32>) {
        assert_eq!(answer.timestamp_ms, NO_TIMESTAMP);
        (answer.offset, answer.leader_epoch)
    }

    #[test]
    fn without_remote_storage_nothing_is_pending() {
        // spec: follower-fetch P1
        let (none, some) = (epochs(&[]), epochs(&[(0, 0), (1, 1)]));
        for log in [bounds(&none, (0, 0, 0), -1), bounds(&some, (0, 0, 3), -1)] {
            let log = LogBounds { remote_storage: false, ..log };
            assert_eq!(pair(log.earliest_pending_upload()), (-1, Some(-1)));
            assert_eq!(pair(log.latest_tiered()), (-1, Some(-1)));
            assert_eq!(pair(log.earliest_local()), pair(log.earliest()));
        }
    }

    #[test]
    fn where_nothing_was_uploaded_all_is_pending() {
        // spec: follower-fetch P2, P5
        let none = epochs(&[]);
        for start in [0, 100] {
            let log = bounds(&none, (start, start, start), -1);
            assert_eq!(pair(log.earliest_pending_upload()), (start, None));
        }
        let three = epochs(&[(4, 0), (5, 1), (7, 2)]);
        let log = bounds(&three, (0, 0, 3), -1);
        assert_eq!(pair(log.latest_tiered()), (-1, Some(-1)));
        assert_eq!(pair(log.earliest_pending_upload()), (0, Some(4)));
    }

    #[test]
    fn special_offsets_have_the_epochs_of_their_records() {
        // spec: follower-fetch P3, P6
        let three = epochs(&[(4, 0), (5, 1), (7, 2)]);
        let log = bounds(&three, (0, 1, 3), 0);
        assert_eq!(pair(log.earliest()), (0, Some(4)));
        assert_eq!(pair(log.latest_tiered()), (0, Some(4)));
        assert_eq!(pair(log.earliest_local()), (1, Some(5)));
        assert_eq!(pair(log.latest()), (3, Some(7)));
        assert_eq!(pair(log.earliest_pending_upload()), (1, Some(5)));

        let later = epochs(&[(4, 100), (5, 101), (7, 102)]);
        let log = bounds(&later, (100, 100, 103), 50);
        assert_eq!(pair(log.latest_tiered()), (50, None));
        assert_eq!(pair(log.earliest_pending_upload()), (100, Some(4)));
        assert_eq!(pair(log.latest()), (103, Some(7)));
    }

    #[test]
    fn what_was_uploaded_but_is_not_known_makes_the_answer_unknown() {
        // spec: follower-fetch P7
        let three = epochs(&[(0, 0), (1, 1), (2, 2)]);
        let log = bounds(&three, (0, 3, 3), -1);
        assert_eq!(pair(log.earliest_pending_upload()), (-1, Some(-1)));
    }

    #[test]
    fn what_is_pending_begins_within_the_local_log() {
        // spec: follower-fetch P8, P9, P10, P12
        let all = epochs(&[(0, 0), (3, 2)]);
        let pending = |start, local_start, highest| {
            pair(bounds(&all, (start, local_start, 12), highest).earliest_pending_upload())
        };
        assert_eq!(pending(0, 0, 1), (2, Some(3)));
        assert_eq!(pending(0, 8, 5), (8, Some(3)));
        assert_eq!(pending(10, 3, 5), (10, Some(3)));
        assert_eq!(pending(10, 10, 5), (10, Some(3)));
        assert_eq!(pending(0, 0, i64::MAX), (i64::MAX, Some(3)));
    }
}
