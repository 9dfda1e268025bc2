//! Up to where is a log in remote storage, and where does it begin there? What a new leader or
//! follower asks first.

use crate::state::{EpochEntry, LeaderEpochs};

/// How far a log is in remote storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighestRemote {
    /// The last offset, inclusive.
    pub offset: i64,
    /// The leader epoch that it is of.
    pub epoch: i32,
}

/// The last offset of this log that is in remote storage; `None` when nothing is.
///
/// `highest_of` tells how far the segments reach whose copy of an epoch was finished, as
/// [`MetadataCache::highest_offset`](super::MetadataCache::highest_offset) does. Where remote
/// storage has more of an epoch than the log kept, as after an unclean election, the log's own end
/// of the epoch counts.
pub fn highest_remote(
    epochs: &LeaderEpochs,
    log_end_offset: i64,
    mut highest_of: impl FnMut(i32) -> Option<i64>,
) -> Option<HighestRemote> {
    // spec: tiered 2.1
    let epochs_down = epochs.entries().iter().rev();
    let mut found = epochs_down.filter_map(|entry| Some((entry.epoch, highest_of(entry.epoch)?)));
    let (epoch, highest) = found.next()?;
    let (own_epoch, end) = epochs.end_offset_for(epoch, log_end_offset);
    if end <= highest {
        return Some(HighestRemote { offset: end.saturating_sub(1), epoch: own_epoch });
    }
    Some(HighestRemote { offset: highest, epoch })
}

/// Where the log begins according to remote storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteLogStart {
    /// The log start, as it is or raised.
    At(i64),
    /// The epochs of this log begin above its start, so that earlier segments of its own look
    /// foreign: the start stays as it is.
    EpochsIncomplete {
        /// The log start.
        log_start_offset: i64,
        /// The first epoch, above it.
        first: EpochEntry,
    },
}

/// Where the log begins when its copies in remote storage are looked at: with the first segment of
/// the earliest epoch that has one, else with `local_log_start_offset`. It is only ever raised from
/// `log_start_offset`.
///
/// `first_start_of` tells the start of the first segment that is listed for an epoch.
///
/// Kafka also raises it when the epochs of the log begin above its start. A log is so after the
/// rebuild of a follower was interrupted, and then Kafka loses what lies between; here nothing is
/// raised.
pub fn remote_log_start(
    epochs: &LeaderEpochs,
    log_start_offset: i64,
    local_log_start_offset: i64,
    mut first_start_of: impl FnMut(i32) -> Option<i64>,
) -> RemoteLogStart {
    // spec: tiered-faults T4, "do not raise LS from it"
    if let Some(first) = begins_above(epochs, log_start_offset) {
        return RemoteLogStart::EpochsIncomplete { log_start_offset, first };
    }
    // spec: tiered 2.1
    let mut starts = epochs.entries().iter().filter_map(|entry| first_start_of(entry.epoch));
    RemoteLogStart::At(starts.next().unwrap_or(local_log_start_offset).max(log_start_offset))
}

/// The first epoch, where it starts above the log start: then earlier ones are not known.
#[must_use]
pub fn begins_above(epochs: &LeaderEpochs, log_start_offset: i64) -> Option<EpochEntry> {
    epochs.earliest().filter(|first| first.start_offset > log_start_offset)
}

#[cfg(test)]
mod tests {
    use super::super::lineage::tests::entries;
    use super::*;

    fn epochs(words: &str) -> LeaderEpochs {
        LeaderEpochs::from_entries(&entries(words)).unwrap()
    }

    #[test]
    fn the_highest_remote_offset_is_that_of_the_latest_epoch_with_any() {
        // spec: tiered 2.1, the table
        for (words, highest, expected) in [
            ("0:0 1:500", None, None),
            ("0:0 1:500", Some(200), Some((200, 0))),
            ("0:0 1:150 2:300", Some(200), Some((149, 0))),
        ] {
            let found = highest_remote(&epochs(words), 600, |epoch| highest.filter(|_| epoch == 0));
            assert_eq!(found.map(|it| (it.offset, it.epoch)), expected, "{words}");
        }
        // The end of the latest epoch is that of the log.
        let all = |end| highest_remote(&epochs("0:0 1:100"), end, |_| Some(150)).unwrap();
        assert_eq!(all(151), HighestRemote { offset: 150, epoch: 1 });
        assert_eq!(all(150), HighestRemote { offset: 149, epoch: 1 });
        assert_eq!(highest_remote(&LeaderEpochs::new(), 600, |_| Some(9)), None);
    }

    #[test]
    fn the_log_starts_with_the_first_segment_of_the_earliest_epoch_that_has_one() {
        // spec: tiered-behaviours RC11
        let of_1 = |epoch| (epoch == 1).then_some(500);
        let start = remote_log_start(&epochs("0:0 1:250 2:550"), 0, 700, of_1);
        assert_eq!(start, RemoteLogStart::At(500));
        let of_2 = |epoch| (epoch == 2).then_some(600);
        let start = remote_log_start(&epochs("1:250 2:550"), 250, 700, of_2);
        assert_eq!(start, RemoteLogStart::At(600));
        // spec: tiered 2.1: none has any; and it is never lowered.
        let none = remote_log_start(&epochs("0:0 1:250"), 0, 700, |_| None);
        assert_eq!(none, RemoteLogStart::At(700));
        let lower = remote_log_start(&epochs("0:0 1:250"), 520, 700, of_1);
        assert_eq!(lower, RemoteLogStart::At(520));
    }

    // Kafka raises the start to 285 here, the first segment of epoch 2, and the records from 30 on
    // are gone for every replica.
    #[test]
    fn the_log_start_stays_where_epochs_begin_above_it() {
        // spec: tiered-faults T4
        let start =
            remote_log_start(&epochs("2:565"), 30, 565, |epoch| (epoch == 2).then_some(285));
        let first = EpochEntry { epoch: 2, start_offset: 565 };
        assert_eq!(start, RemoteLogStart::EpochsIncomplete { log_start_offset: 30, first });
        assert_eq!(begins_above(&epochs("2:565"), 565), None);
    }
}
