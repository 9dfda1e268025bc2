//! What does a leader answer to a fetch?

use crate::log::LogBounds;

/// A partition as its leader knows it.
#[derive(Clone, Copy, Debug)]
pub struct LeaderView<'a> {
    /// Bounds and leader epochs of the log; the leader's own epoch is among them.
    pub bounds: LogBounds<'a>,
    /// What is committed, exclusive.
    pub high_watermark: i64,
    /// What is committed and decided, exclusive.
    pub last_stable_offset: i64,
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// Where the leader's epoch began.
    pub leader_epoch_start_offset: i64,
}

/// Who fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A follower, or the future replica in another directory.
    Follower,
    /// A consumer: what is in remote storage is read for it.
    Consumer,
}

/// What a fetch asks of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// Who asks.
    pub reader: Reader,
    /// The first offset that is wanted.
    pub fetch_offset: i64,
    /// The leader epoch that the asker knows, if it says so.
    pub leader_epoch: Option<i32>,
    /// The epoch of the record before, if it says so.
    pub last_fetched_epoch: Option<i32>,
}

/// Why a fetch is refused, by Kafka's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// `FENCED_LEADER_EPOCH`.
    FencedLeaderEpoch,
    /// `UNKNOWN_LEADER_EPOCH`.
    UnknownLeaderEpoch,
    /// `OFFSET_OUT_OF_RANGE`.
    OffsetOutOfRange,
}

impl FetchError {
    /// Its number on the wire.
    #[must_use]
    pub fn code(self) -> i16 {
        match self {
            Self::OffsetOutOfRange => 1,
            Self::FencedLeaderEpoch => 74,
            Self::UnknownLeaderEpoch => 75,
        }
    }
}

/// `OFFSET_MOVED_TO_TIERED_STORAGE` on the wire. Fetches before version 14 do not know it.
pub const OFFSET_MOVED_TO_TIERED_STORAGE: i16 = 109;

/// What a leader answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchVerdict {
    /// Records from the local disk, maybe none.
    Serve {
        /// The high watermark.
        high_watermark: i64,
        /// The log start.
        log_start_offset: i64,
    },
    /// Records from remote storage, for a consumer.
    ReadRemote,
    /// `OFFSET_MOVED_TO_TIERED_STORAGE`, for a follower.
    MovedToTieredStorage {
        /// The high watermark.
        high_watermark: i64,
        /// The log start.
        log_start_offset: i64,
        /// The log end.
        log_end_offset: i64,
    },
    /// No error and no records: the asker's last epoch ended earlier.
    Diverging {
        /// The greatest epoch not above the asker's that the leader knows.
        epoch: i32,
        /// Where it ends, exclusive.
        end_offset: i64,
    },
    /// An error.
    Refuse(FetchError),
}

/// The answer to a fetch, before any record is looked at.
// spec: follower-fetch 2, L1 to L9, in this order
#[must_use]
pub fn leader_fetch_verdict(leader: &LeaderView<'_>, request: &FetchRequest) -> FetchVerdict {
    use FetchError::{FencedLeaderEpoch, OffsetOutOfRange, UnknownLeaderEpoch};
    let bounds = &leader.bounds;
    let (start, end) = (bounds.log_start_offset, bounds.log_end_offset);
    let offset = request.fetch_offset;
    match request.leader_epoch {
        Some(epoch) if epoch < leader.leader_epoch => {
            return FetchVerdict::Refuse(FencedLeaderEpoch);
        }
        Some(epoch) if epoch > leader.leader_epoch => {
            return FetchVerdict::Refuse(UnknownLeaderEpoch);
        }
        _ => {}
    }
    if let Some(last) = request.last_fetched_epoch {
        let (epoch, end_offset) = bounds.epochs.end_offset_for(last, end);
        if end_offset < 0 || offset < start {
            return FetchVerdict::Refuse(OffsetOutOfRange);
        }
        if epoch < last || end_offset < offset {
            return FetchVerdict::Diverging { epoch, end_offset };
        }
    }
    let (high_watermark, log_start_offset) = (leader.high_watermark, start);
    if offset < start || offset > end {
        FetchVerdict::Refuse(OffsetOutOfRange)
    } else if bounds.remote_storage && offset < bounds.local_log_start_offset {
        match request.reader {
            Reader::Consumer => FetchVerdict::ReadRemote,
            Reader::Follower => FetchVerdict::MovedToTieredStorage {
                high_watermark,
                log_start_offset,
                log_end_offset: end,
            },
        }
    } else {
        FetchVerdict::Serve { high_watermark, log_start_offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::leader_offsets::tests::{epochs, leader};

    fn fetch(fetch_offset: i64, last_fetched_epoch: Option<i32>) -> FetchRequest {
        let reader = Reader::Follower;
        FetchRequest { reader, fetch_offset, leader_epoch: Some(10), last_fetched_epoch }
    }

    #[test]
    fn logs_that_part_are_told_where() {
        // spec: follower-fetch T1, T2, T4, T5, T6, T7, T8, T10, T11
        let mut list = epochs(&[(0, 0), (3, 2), (4, 8), (7, 13), (9, 14), (10, 17)]);
        let ask = |list: &_, start, epoch, offset| {
            let view = leader(list, (start, start, 17), 10);
            leader_fetch_verdict(&view, &fetch(offset, Some(epoch)))
        };
        let diverging = |epoch, end_offset| FetchVerdict::Diverging { epoch, end_offset };
        let out_of_range = FetchVerdict::Refuse(FetchError::OffsetOutOfRange);
        assert_eq!(ask(&list, 0, 2, 5), diverging(0, 2));
        assert_eq!(ask(&list, 0, 0, 4), diverging(0, 2));
        assert_eq!(ask(&list, 0, 5, 9), diverging(4, 13));
        assert_eq!(ask(&list, 0, 10, 18), diverging(10, 17));
        for (epoch, offset) in [(0, 2), (7, 14), (9, 17), (10, 17)] {
            let verdict = ask(&list, 0, epoch, offset);
            let served = FetchVerdict::Serve { high_watermark: 17, log_start_offset: 0 };
            assert_eq!(verdict, served, "epoch {epoch} at {offset}");
        }
        assert_eq!(ask(&list, 0, 11, 5), out_of_range);
        list.truncate_from_start(5);
        assert_eq!(ask(&list, 5, 2, 8), diverging(2, 5));
        assert_eq!(ask(&list, 5, 0, 0), out_of_range);
        list.truncate_from_start(10);
        assert_eq!(ask(&list, 10, 5, 6), out_of_range);
        assert_eq!(ask(&list, 10, 3, 6), out_of_range);
    }

    #[test]
    fn checks_are_made_in_their_order() {
        // spec: follower-fetch 2
        let list = epochs(&[(3, 10)]);
        let view = LeaderView { high_watermark: 30, ..leader(&list, (10, 20, 40), 4) };
        let ask = |fetch_offset, leader_epoch, last_fetched_epoch| {
            let reader = Reader::Follower;
            let request = FetchRequest { reader, fetch_offset, leader_epoch, last_fetched_epoch };
            leader_fetch_verdict(&view, &request)
        };
        let refuse = FetchVerdict::Refuse;
        // An epoch that differs outweighs an offset that is nowhere.
        assert_eq!(ask(99, Some(3), Some(3)), refuse(FetchError::FencedLeaderEpoch));
        assert_eq!(ask(99, Some(5), Some(9)), refuse(FetchError::UnknownLeaderEpoch));
        assert_eq!(ask(15, Some(4), Some(-1)), refuse(FetchError::OffsetOutOfRange));
        for (offset, error) in [(9, 1), (41, 1), (-1, 1), (i64::MIN, 1), (i64::MAX, 1)] {
            let FetchVerdict::Refuse(found) = ask(offset, None, None) else { panic!("{offset}") };
            assert_eq!(found.code(), error);
        }
        let moved = FetchVerdict::MovedToTieredStorage {
            high_watermark: 30,
            log_start_offset: 10,
            log_end_offset: 40,
        };
        for offset in [10, 19] {
            assert_eq!(ask(offset, Some(4), Some(3)), moved);
        }
        let served = FetchVerdict::Serve { high_watermark: 30, log_start_offset: 10 };
        for offset in [20, 40] {
            assert_eq!(ask(offset, Some(4), Some(3)), served);
        }
        let remote = FetchRequest { reader: Reader::Consumer, ..fetch(15, None) };
        let remote = FetchRequest { leader_epoch: None, ..remote };
        assert_eq!(leader_fetch_verdict(&view, &remote), FetchVerdict::ReadRemote);
        // Without remote storage all of the log is local.
        let bounds = LogBounds { remote_storage: false, ..view.bounds };
        let view = LeaderView { bounds, ..view };
        assert_eq!(leader_fetch_verdict(&view, &remote), served);
        assert_eq!(FetchError::FencedLeaderEpoch.code(), 74);
        assert_eq!(FetchError::UnknownLeaderEpoch.code(), 75);
        assert_eq!(OFFSET_MOVED_TO_TIERED_STORAGE, 109);
    }
}
