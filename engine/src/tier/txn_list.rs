//! Which aborted transactions of one remote segment must a fetch know? Its transaction index, made
//! ready once for many fetches.
//!
//! The entries of a sound index are kept as they are given out: to collect them is to copy a run
//! of them. Any other index is kept as it was fetched, and is walked as Kafka walks it.

use crate::error::{Error, Result};
use crate::index::{AbortedTxn, TxnEntries, txn};

/// The transaction index of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TxnList {
    /// Last offsets rise, Kafka refuses no entry, and nothing is behind the last.
    Sound(SoundTxns),
    /// Anything else.
    AsFetched(Vec<u8>),
}

/// Entries whose last offsets rise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SoundTxns {
    entries: Vec<AbortedTxn>,
    /// First offsets rise, too.
    starts_rise: bool,
    /// The last offsets of the first and of the last entry.
    ends: (i64, i64),
    /// The largest last stable offset: no search for a bound above it ends here.
    stable_max: i64,
}

impl TxnList {
    /// The entries in the bytes of a file.
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let entries = TxnEntries::new(&bytes);
        if entries.stray_size_bytes() == 0 && entries.is_rising() {
            TxnList::Sound(SoundTxns::new(entries))
        } else {
            TxnList::AsFetched(bytes)
        }
    }

    /// How many entries there are.
    pub(super) fn count(&self) -> usize {
        match self {
            TxnList::Sound(list) => list.entries.len(),
            TxnList::AsFetched(bytes) => TxnEntries::new(bytes).count(),
        }
    }

    /// Bytes of the file.
    pub(super) fn size_bytes(&self) -> usize {
        match self {
            TxnList::Sound(list) => list.entries.len().saturating_mul(txn::ENTRY_SIZE),
            TxnList::AsFetched(bytes) => bytes.len(),
        }
    }

    /// Kafka's check of the file, for the segment that starts at `base_offset`.
    pub(super) fn sanity_check(&self, base_offset: i64) -> Result<()> {
        match self {
            // The others end behind it.
            TxnList::Sound(list) => match list.entries.first() {
                Some(first) => check(&first.encode(), base_offset),
                None => Ok(()),
            },
            TxnList::AsFetched(bytes) => check(bytes, base_offset),
        }
    }

    /// As [`TxnEntries::collect_aborted`].
    #[inline]
    pub(super) fn collect_aborted(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<bool> {
        if let Some((run, is_over)) = self.run(fetch_offset, upper_bound) {
            found.extend_from_slice(run);
            return Ok(is_over);
        }
        match self {
            TxnList::Sound(list) => {
                let (looked_at, is_over) = list.looked_at(fetch_offset, upper_bound);
                let is_wanted = |txn: &AbortedTxn| txn.first_offset < upper_bound;
                found.extend(looked_at.iter().copied().filter(is_wanted));
                Ok(is_over)
            }
            TxnList::AsFetched(bytes) => {
                TxnEntries::new(bytes).collect_aborted(fetch_offset, upper_bound, found)
            }
        }
    }

    /// What [`collect_aborted`](Self::collect_aborted) adds and says, where first offsets rise and
    /// so it adds a run of entries as they are.
    #[inline]
    pub(super) fn run(&self, fetch_offset: i64, upper_bound: i64) -> Option<(&[AbortedTxn], bool)> {
        let TxnList::Sound(list) = self else { return None };
        if !list.starts_rise {
            return None;
        }
        let (looked_at, is_over) = list.looked_at(fetch_offset, upper_bound);
        let is_wanted = |txn: &AbortedTxn| txn.first_offset < upper_bound;
        let count = looked_at.iter().rposition(is_wanted).map_or(0, |slot| slot + 1);
        Some((looked_at.get(..count).unwrap_or_default(), is_over))
    }
}

impl SoundTxns {
    fn new(entries: TxnEntries<'_>) -> Self {
        let entries: Vec<AbortedTxn> = entries.iter().collect();
        let mut pairs = entries.iter().zip(entries.iter().skip(1));
        let end_of = |txn: Option<&AbortedTxn>| txn.map_or(i64::MAX, |txn| txn.last_offset);
        SoundTxns {
            starts_rise: pairs.all(|(one, next)| one.first_offset < next.first_offset),
            ends: (end_of(entries.first()), end_of(entries.last())),
            stable_max: entries.iter().map(|txn| txn.last_stable_offset).max().unwrap_or(i64::MIN),
            entries,
        }
    }

    /// The entries from a fetch on up to the one that ends a search, and whether there is one.
    #[inline]
    fn looked_at(&self, fetch_offset: i64, upper_bound: i64) -> (&[AbortedTxn], bool) {
        let entries = self.from(fetch_offset);
        // spec: indexes 4.2
        if self.stable_max < upper_bound {
            return (entries, false);
        }
        let is_last = |txn: &AbortedTxn| txn.last_stable_offset >= upper_bound;
        match entries.iter().position(is_last) {
            Some(last) => (entries.get(..=last).unwrap_or_default(), true),
            None => (entries, false),
        }
    }

    /// The entries that do not end before a fetch.
    #[inline]
    fn from(&self, fetch_offset: i64) -> &[AbortedTxn] {
        let (first_end, last_end) = self.ends;
        if first_end >= fetch_offset {
            return &self.entries;
        }
        // The processor need not fetch the ends from memory.
        let final_slot = self.entries.len().saturating_sub(1);
        let end = |slot| match slot {
            0 => first_end,
            slot if slot == final_slot => last_end,
            slot => self.entries.get(slot).map_or(i64::MAX, |txn| txn.last_offset),
        };
        let passed = txn::count_before(self.entries.len(), fetch_offset, end);
        self.entries.get(passed..).unwrap_or_default()
    }
}

/// Kafka's check of the bytes of a transaction index.
pub(super) fn check(bytes: &[u8], base_offset: i64) -> Result<()> {
    let entries = TxnEntries::new(bytes);
    let outcome = match entries.stray_size_bytes() {
        0 => entries.sanity_check(base_offset),
        stray => Err(Error::corrupt(format!("{stray} bytes behind the last whole entry"))),
    };
    outcome.map_err(|error| error.context("transaction index"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn list_of(entries: &[AbortedTxn]) -> (TxnList, Vec<u8>) {
        let bytes: Vec<u8> = entries.iter().flat_map(AbortedTxn::encode).collect();
        (TxnList::new(bytes.clone()), bytes)
    }

    #[test]
    fn an_index_that_is_not_sound_is_kept_as_it_was_fetched() {
        let txn = |last_offset| AbortedTxn {
            producer_id: 1,
            first_offset: last_offset,
            last_offset,
            last_stable_offset: 0,
        };
        let (sound, bytes) = list_of(&[txn(1), txn(2)]);
        assert!(matches!(sound, TxnList::Sound(_)));
        assert_eq!((sound.count(), sound.size_bytes()), (2, 68));
        sound.sanity_check(1).unwrap();
        assert!(sound.sanity_check(2).is_err());
        let stray = [&*bytes, &[0]].concat();
        let (backward, _) = list_of(&[txn(2), txn(1)]);
        for (list, size) in [(TxnList::new(stray), 69), (backward, 68)] {
            assert!(matches!(list, TxnList::AsFetched(_)));
            assert_eq!((list.count(), list.size_bytes()), (2, size));
            assert_eq!(list.sanity_check(0).is_ok(), size == 68);
            assert!(list.run(0, 9).is_none());
        }
        let (none, _) = list_of(&[]);
        assert_eq!((none.count(), none.size_bytes()), (0, 0));
        none.sanity_check(i64::MAX).unwrap();
        assert!(!none.collect_aborted(0, i64::MAX, &mut Vec::new()).unwrap());
    }

    proptest! {
        #[test]
        fn what_is_collected_is_what_a_walk_over_the_file_finds(
            steps in prop::collection::vec((1i64..6, 0i64..40, 0i64..40), 0..100),
            is_nested: bool,
            fetch in -5i64..300,
            size in 0i64..300,
        ) {
            let mut last_offset = 0;
            let entries: Vec<AbortedTxn> = steps.into_iter().map(|(step, length, lag)| {
                last_offset += step;
                AbortedTxn {
                    producer_id: step,
                    first_offset: last_offset - if is_nested { length } else { 0 },
                    last_offset,
                    last_stable_offset: last_offset - lag,
                }
            }).collect();
            let (list, bytes) = list_of(&entries);
            let before = entries.len();
            let (mut walked, mut found) = (entries.clone(), entries);
            let upper = fetch + size;
            let is_over = TxnEntries::new(&bytes).collect_aborted(fetch, upper, &mut walked);
            let is_found = list.collect_aborted(fetch, upper, &mut found).unwrap();
            prop_assert_eq!(is_over.unwrap(), is_found);
            prop_assert_eq!(&walked, &found);
            let run = list.run(fetch, upper);
            prop_assert!(is_nested || run.is_some());
            if let Some((run, is_over)) = run {
                prop_assert_eq!((walked.get(before..).unwrap(), is_found), (run, is_over));
            }
        }
    }
}
