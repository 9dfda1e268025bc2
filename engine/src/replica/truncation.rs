//! How far must a follower cut its log, given where an epoch ends at its leader?

use crate::state::LeaderEpochs;
use crate::state::epochs::UNDEFINED_EPOCH_OFFSET;
use crate::units::NO_LEADER_EPOCH;

/// Where to cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// The new end of the log.
    pub offset: i64,
    /// Whether the logs agree then; if not, the leader is to be asked for an older epoch.
    pub complete: bool,
}

/// Where a follower cuts its log of `epochs` and `log_end_offset` when the leader says that
/// `epoch` ends at `end_offset`; either may be undefined (-1). `fallback` is the follower's high
/// watermark: what is below is committed.
#[must_use]
pub fn truncation_point(
    epochs: &LeaderEpochs,
    log_end_offset: i64,
    fallback: i64,
    epoch: i32,
    end_offset: i64,
) -> Truncation {
    // spec: follower-fetch 5.1
    let complete = |offset: i64| Truncation { offset, complete: true };
    if end_offset == UNDEFINED_EPOCH_OFFSET {
        return complete(fallback.min(log_end_offset));
    }
    if epoch == NO_LEADER_EPOCH {
        return complete(end_offset.min(log_end_offset));
    }
    let (own_epoch, own_end) = epochs.end_offset_for(epoch, log_end_offset);
    if own_end == UNDEFINED_EPOCH_OFFSET {
        return complete(end_offset.min(log_end_offset));
    }
    if own_epoch != epoch {
        return Truncation { offset: own_end.min(log_end_offset), complete: false };
    }
    complete(own_end.min(end_offset).min(log_end_offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::EpochEntry;

    #[test]
    fn every_row_of_the_rule_cuts_where_it_says() {
        // spec: follower-fetch 5.1
        let entry = |epoch, start_offset| EpochEntry { epoch, start_offset };
        let own = [entry(2, 10), entry(4, 20), entry(6, 30)];
        let own = LeaderEpochs::from_entries(&own).unwrap();
        let cut = |epoch, end| {
            let at = truncation_point(&own, 40, 15, epoch, end);
            (at.offset, at.complete)
        };
        // The leader knows no end: back to the high watermark.
        assert_eq!(cut(3, -1), (15, true));
        // It knows no epoch.
        assert_eq!(cut(-1, 25), (25, true));
        assert_eq!(cut(-1, 99), (40, true));
        // The own epochs end below the leader's: nothing to compare with.
        assert_eq!(cut(7, 35), (35, true));
        assert_eq!(cut(7, 99), (40, true));
        // The own log lacks the leader's epoch: cut to the next older one, and ask again.
        assert_eq!(cut(5, 28), (30, false));
        assert_eq!(cut(3, 99), (20, false));
        // Both know the epoch.
        assert_eq!(cut(4, 28), (28, true));
        assert_eq!(cut(4, 35), (30, true));
        assert_eq!(cut(6, 99), (40, true));
        // An epoch below the first is answered as itself, ending where the first begins.
        assert_eq!(cut(1, 99), (10, true));
        let none = LeaderEpochs::new();
        assert_eq!(truncation_point(&none, 40, 15, 3, 50).offset, 40);
        assert_eq!(truncation_point(&none, 40, 99, 3, -1).offset, 40);
    }
}
