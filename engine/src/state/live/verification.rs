//! Was the transaction coordinator asked about this transaction?
//!
//! Before the first batch of a transaction the leader asks the coordinator whether it is one of
//! its own. Meanwhile the producer is remembered here under a guard that the batch must bring.

use std::collections::HashMap;

/// What a batch brings to show that its transaction was verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VerificationGuard(u64);

impl VerificationGuard {
    /// Nothing was verified, nor needed to be. It verifies no batch.
    pub const SENTINEL: VerificationGuard = VerificationGuard(0);

    /// The guard of a number that [`number`](Self::number) gave; 0 is the sentinel.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        VerificationGuard(number)
    }

    /// The guard's number: 0 for the sentinel.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// Whether a request that brings `other` was verified under this guard.
    #[must_use]
    pub fn verify(self, other: VerificationGuard) -> bool {
        other != Self::SENTINEL && self == other
    }
}

/// A producer whose transaction is being verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verification {
    pub(super) created_ms: i64,
    pub(super) guard: VerificationGuard,
    pub(super) lowest_sequence: i32,
    pub(super) epoch: i16,
    pub(super) supports_epoch_bump: bool,
}

/// The producers that are being verified.
// spec: producer-state A7
#[derive(Clone, Debug, Default)]
pub(super) struct Verifications {
    entries: HashMap<i64, Verification>,
    last_guard: u64,
}

impl Verifications {
    pub(super) fn get(&self, producer_id: i64) -> Option<&Verification> {
        self.entries.get(&producer_id)
    }

    /// The verification of a producer, begun now if there is none. A lower sequence of the same
    /// epoch lowers it; a higher epoch takes its place, under the same guard.
    pub(super) fn get_or_create(
        &mut self,
        producer_id: i64,
        sequence: i32,
        epoch: i16,
        supports_epoch_bump: bool,
        now_ms: i64,
    ) -> &Verification {
        let last_guard = &mut self.last_guard;
        let entry = self.entries.entry(producer_id).or_insert_with(|| {
            *last_guard += 1;
            Verification {
                created_ms: now_ms,
                guard: VerificationGuard(*last_guard),
                lowest_sequence: sequence,
                epoch,
                supports_epoch_bump,
            }
        });
        if epoch == entry.epoch {
            entry.lowest_sequence = entry.lowest_sequence.min(sequence);
        } else if epoch > entry.epoch {
            entry.epoch = epoch;
            entry.lowest_sequence = sequence;
        }
        entry
    }

    /// A transactional batch was appended: the verification has served, unless the batch is a
    /// marker and the producer's next transaction is already being verified.
    pub(super) fn appended(&mut self, producer_id: i64, epoch: i16, is_control: bool) {
        let next_has_begun = self
            .get(producer_id)
            .is_some_and(|v| v.supports_epoch_bump && is_control && epoch == v.epoch);
        if !next_has_begun {
            self.entries.remove(&producer_id);
        }
    }

    pub(super) fn remove_expired(&mut self, now_ms: i64, expiration_ms: i64) {
        self.entries.retain(|_, v| now_ms.wrapping_sub(v.created_ms) < expiration_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_sequence_of_the_highest_epoch_holds_under_one_guard() {
        // spec: behaviours PS-060
        let mut all = Verifications::default();
        let guard = all.get_or_create(1, 1, 0, false, 0).guard;
        for (sequence, epoch, lowest, highest) in [(0, 0, 0, 0), (2, 1, 2, 1), (0, 0, 2, 1)] {
            let entry = *all.get_or_create(1, sequence, epoch, true, 9);
            assert_eq!((entry.lowest_sequence, entry.epoch), (lowest, highest));
            assert_eq!((entry.guard, entry.supports_epoch_bump), (guard, false));
        }
    }

    #[test]
    fn guards_are_numbered_from_one_and_verify_only_themselves() {
        let mut all = Verifications::default();
        let first = all.get_or_create(1, 0, 0, false, 0).guard;
        let second = all.get_or_create(2, 0, 0, false, 0).guard;
        assert_eq!((first.number(), second.number()), (1, 2));
        assert!(first.verify(first) && !first.verify(second));
        let sentinel = VerificationGuard::SENTINEL;
        assert!(!sentinel.verify(sentinel) && !first.verify(sentinel));
    }

    #[test]
    fn old_verifications_expire() {
        // spec: behaviours PS-062
        let mut all = Verifications::default();
        all.get_or_create(1, 0, 0, false, 0);
        all.remove_expired(50, 100);
        assert!(all.get(1).is_some());
        all.remove_expired(101, 100);
        assert!(all.get(1).is_none());
    }

    #[test]
    fn a_batch_ends_the_verification_but_a_marker_leaves_that_of_the_next_transaction() {
        // spec: behaviours UL-136, UL-137
        for (bump, control, epoch, left) in [
            (true, true, 1, true),
            (true, true, 2, false),
            (true, false, 1, false),
            (false, true, 1, false),
        ] {
            let mut all = Verifications::default();
            all.get_or_create(1, 0, 1, bump, 0);
            all.appended(1, epoch, control);
            assert_eq!(all.get(1).is_some(), left);
        }
    }
}
