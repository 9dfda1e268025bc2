//! What does a leader answer to ListOffsets and OffsetForLeaderEpoch?

use super::follower_start::{EpochEnd, LeaderAnswers, OffsetAndEpoch, Query};
use super::leader::LeaderView;
use crate::log::Isolation;
use crate::log::timestamps::{
    EARLIEST, EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST, LATEST_TIERED, MAX_TIMESTAMP,
};
use crate::segment::TimestampAndOffset;

/// Why there is no answer, by Kafka's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetError {
    /// `UNSUPPORTED_VERSION`: the request is older than the special timestamp.
    UnsupportedVersion,
    /// `OFFSET_NOT_AVAILABLE`: the high watermark has not reached the leader's own epoch.
    OffsetNotAvailable,
    /// `INVALID_REQUEST`: the timestamp stands for nothing.
    InvalidTimestamp,
}

impl OffsetError {
    /// Its number on the wire.
    #[must_use]
    pub fn code(self) -> i16 {
        match self {
            Self::UnsupportedVersion => 35,
            Self::InvalidTimestamp => 42,
            Self::OffsetNotAvailable => 78,
        }
    }
}

/// The first version of ListOffsets that knows a timestamp, and the timestamp.
const FIRST_VERSIONS: [(i64, i16); 6] = [
    (LATEST, 1),
    (EARLIEST, 1),
    (MAX_TIMESTAMP, 7),
    (EARLIEST_LOCAL, 8),
    (LATEST_TIERED, 9),
    (EARLIEST_PENDING_UPLOAD, 11),
];

/// The offset for `timestamp`, which may be a special one, in a request of this version; `None`
/// when there is none to be told. Followers read up to the log end.
///
/// `found` is what the log, remote storage first, has for a timestamp from 0 on and for the
/// largest timestamp (see [`Log::offset_for_timestamp`](crate::log::Log::offset_for_timestamp));
/// for others it is not looked at.
///
/// # Errors
/// As [`OffsetError`] says.
// spec: follower-fetch 2.1
pub fn special_offset(
    leader: &LeaderView<'_>,
    timestamp: i64,
    version: i16,
    reader: Isolation,
    found: Option<TimestampAndOffset>,
) -> Result<Option<TimestampAndOffset>, OffsetError> {
    let first_version = match FIRST_VERSIONS.iter().find(|(special, _)| *special == timestamp) {
        Some((_, version)) => *version,
        None if timestamp >= 0 => 1,
        None => return Err(OffsetError::InvalidTimestamp),
    };
    if version < first_version {
        return Err(OffsetError::UnsupportedVersion);
    }
    let bounds = &leader.bounds;
    let last_fetchable = match reader {
        Isolation::LogEnd => bounds.log_end_offset,
        Isolation::HighWatermark => leader.high_watermark,
        Isolation::Committed => leader.last_stable_offset,
    };
    // After an election the high watermark may lie before offsets that clients have seen.
    let lags =
        reader != Isolation::LogEnd && leader.high_watermark < leader.leader_epoch_start_offset;
    let answer = match timestamp {
        EARLIEST => return Ok(Some(bounds.earliest())),
        EARLIEST_LOCAL => return Ok(Some(bounds.earliest_local())),
        LATEST if lags => return Err(OffsetError::OffsetNotAvailable),
        LATEST => {
            return Ok(Some(TimestampAndOffset { offset: last_fetchable, ..bounds.latest() }));
        }
        // A leader of Kafka hides the answer when all is uploaded, and its follower waits until
        // the next record is produced (D11).
        EARLIEST_PENDING_UPLOAD => return Ok(Some(bounds.earliest_pending_upload())),
        LATEST_TIERED => Some(bounds.latest_tiered()),
        _ => found,
    };
    match answer.filter(|answer| answer.offset < last_fetchable) {
        None if lags => Err(OffsetError::OffsetNotAvailable),
        answer => Ok(answer),
    }
}

impl LeaderView<'_> {
    /// Answers a follower's query, for a host that has leader and follower in one process, and for
    /// models.
    pub fn answer(&self, query: Query, known: &mut LeaderAnswers) {
        let bounds = &self.bounds;
        let pair = |answer: TimestampAndOffset| {
            Some(OffsetAndEpoch { offset: answer.offset, epoch: answer.leader_epoch })
        };
        match query {
            Query::Latest => known.latest = Some(bounds.log_end_offset),
            Query::Earliest => known.earliest = Some(bounds.log_start_offset),
            Query::EarliestLocal => known.earliest_local = pair(bounds.earliest_local()),
            Query::EarliestPendingUpload => {
                known.earliest_pending_upload = pair(bounds.earliest_pending_upload());
            }
            Query::LatestTiered => known.latest_tiered = pair(bounds.latest_tiered()),
            Query::EpochEnd { epoch: asked } => {
                let end = bounds.log_end_offset;
                let (epoch, end_offset) = bounds.epochs.end_offset_for(asked, end);
                known.epoch_end = Some(EpochEnd { asked, epoch, end_offset });
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::log::LogBounds;
    use crate::state::{EpochEntry, LeaderEpochs};
    use crate::units::NO_TIMESTAMP;

    pub(in crate::replica) fn epochs(entries: &[(i32, i64)]) -> LeaderEpochs {
        let entry = |&(epoch, start_offset)| EpochEntry { epoch, start_offset };
        LeaderEpochs::from_entries(&entries.iter().map(entry).collect::<Vec<_>>()).unwrap()
    }

    /// A leader with remote storage, all of whose records are committed.
    pub(in crate::replica) fn leader(
        epochs: &LeaderEpochs,
        (start, local_start, end): (i64, i64, i64),
        leader_epoch: i32,
    ) -> LeaderView<'_> {
        let bounds = LogBounds {
            remote_storage: true,
            log_start_offset: start,
            local_log_start_offset: local_start,
            log_end_offset: end,
            highest_remote_offset: -1,
            epochs,
        };
        let leader_epoch_start_offset = start;
        LeaderView {
            bounds,
            high_watermark: end,
            last_stable_offset: end,
            leader_epoch,
            leader_epoch_start_offset,
        }
    }

    const CLIENT: Isolation = Isolation::HighWatermark;

    fn record(offset: i64) -> Option<TimestampAndOffset> {
        Some(TimestampAndOffset { timestamp_ms: 1000 + offset, offset, leader_epoch: Some(0) })
    }

    #[test]
    fn clients_wait_until_the_high_watermark_reaches_the_new_epoch() {
        // spec: replication H13
        let list = epochs(&[(0, 0)]);
        let mut view = leader(&list, (0, 0, 5), 1);
        (view.high_watermark, view.last_stable_offset) = (2, 2);
        view.leader_epoch_start_offset = 5;
        let offset = |view: &_, timestamp, reader, found| {
            special_offset(view, timestamp, 11, reader, found).map(|it| it.map(|it| it.offset))
        };
        let not_available = Err(OffsetError::OffsetNotAvailable);
        assert_eq!(offset(&view, LATEST, CLIENT, None), not_available);
        assert_eq!(offset(&view, LATEST, Isolation::LogEnd, None), Ok(Some(5)));
        assert_eq!(offset(&view, EARLIEST, CLIENT, None), Ok(Some(0)));
        assert_eq!(offset(&view, 1001, CLIENT, record(1)), Ok(Some(1)));
        assert_eq!(offset(&view, 9999, CLIENT, None), not_available);
        assert_eq!(offset(&view, 1003, CLIENT, record(3)), not_available);
        (view.high_watermark, view.last_stable_offset) = (5, 5);
        assert_eq!(offset(&view, LATEST, CLIENT, None), Ok(Some(5)));
        assert_eq!(offset(&view, 9999, CLIENT, None), Ok(None));
        assert_eq!(OffsetError::OffsetNotAvailable.code(), 78);
    }

    #[test]
    fn requests_that_are_too_old_for_a_timestamp_are_refused() {
        // spec: tiered-behaviours RR18; follower-fetch 2.1
        let list = epochs(&[(0, 0)]);
        let view = leader(&list, (0, 0, 5), 0);
        let ask = |timestamp, version| {
            let answer = special_offset(&view, timestamp, version, CLIENT, record(1));
            answer.map(|it| it.map(|it| it.offset))
        };
        for (timestamp, version) in [(EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (-6, 10), (-3, 6)] {
            let refused = Err(OffsetError::UnsupportedVersion);
            assert_eq!(ask(timestamp, version), refused, "{timestamp}");
            assert!(ask(timestamp, version + 1).is_ok());
        }
        assert_eq!(OffsetError::UnsupportedVersion.code(), 35);
        assert_eq!(ask(-7, 11), Err(OffsetError::InvalidTimestamp));
        assert_eq!(ask(i64::MIN, 11), Err(OffsetError::InvalidTimestamp));
        assert_eq!(ask(0, 0), Err(OffsetError::UnsupportedVersion));
    }

    #[test]
    fn a_client_sees_what_is_committed_and_a_replica_all() {
        // spec: follower-fetch 2.1
        let list = epochs(&[(2, 0)]);
        let mut view = leader(&list, (0, 0, 9), 2);
        (view.high_watermark, view.last_stable_offset) = (7, 4);
        for (reader, end) in [(Isolation::LogEnd, 9), (CLIENT, 7), (Isolation::Committed, 4)] {
            let latest = special_offset(&view, LATEST, 1, reader, None).unwrap().unwrap();
            assert_eq!((latest.offset, latest.leader_epoch), (end, Some(2)));
            assert_eq!(latest.timestamp_ms, NO_TIMESTAMP);
            // What is not fetchable is not found either.
            for timestamp in [MAX_TIMESTAMP, 1000] {
                let of = |offset| special_offset(&view, timestamp, 7, reader, record(offset));
                assert_eq!(of(end), Ok(None));
                assert_eq!(of(end - 1), Ok(record(end - 1)));
            }
        }
    }

    #[test]
    fn a_log_that_is_all_uploaded_has_its_end_pending() {
        // spec: follower-fetch 2.1
        // Kafka answers -1 to the last, and its follower would wait for a record.
        let list = epochs(&[(0, 0)]);
        let mut view = leader(&list, (0, 2, 5), 0);
        view.bounds.highest_remote_offset = 4;
        let offset = |timestamp| {
            let answer = special_offset(&view, timestamp, 11, Isolation::LogEnd, None).unwrap();
            answer.map(|answer| answer.offset)
        };
        assert_eq!(offset(LATEST_TIERED), Some(4));
        assert_eq!(offset(EARLIEST_PENDING_UPLOAD), Some(5));
        assert_eq!(offset(EARLIEST_LOCAL), Some(2));
        assert_eq!(offset(MAX_TIMESTAMP), None);
    }
}
