//! Is a transaction index right? The walk through its entries beside the abort markers of the log.

use std::cmp::Ordering;

use super::super::txn::{AbortedTxn, ENTRY_SIZE, TxnEntries, VERSION};
use super::findings::{Findings, IndexProblem, position_of};
use crate::problem::Code;

/// How much the log still tells of its transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum History {
    /// All that was written since they began: an entry must be just what the log tells.
    Whole,
    /// Compaction may have taken batches, or the segments are gone in which transactions began. The
    /// entry was made when all was there: its transaction may begin earlier than the log tells, and
    /// its last stable offset may be smaller.
    Partial,
}

/// The check of a transaction index against the abort markers of its segment.
///
/// Every aborted transaction whose records the log still holds must have its entry, or a
/// read-committed reader is handed aborted records; and no entry may be there without its marker,
/// or the reader drops records of a transaction that was committed.
///
/// The last stable offset tells a reader when to stop, so it must not lie behind the beginning of a
/// transaction that ends later. As long as one is open it is where that one begins. When none is,
/// the leader writes the offset behind the marker; a follower that appends many batches at once
/// knows already where the next transaction begins, and writes that.
#[derive(Debug)]
pub struct TxnIndexCheck<'a> {
    entries: TxnEntries<'a>,
    base_offset: i64,
    history: History,
    /// Whether there is a file at all.
    exists: bool,
    /// The slots by rising last offset; empty when they lie so in the file.
    by_last_offset: Vec<u32>,
    /// How many entries, by rising last offset, the markers so far have passed.
    rank: usize,
    /// The entry whose last stable offset lies farthest behind its marker, and its slot.
    farthest: Option<(usize, AbortedTxn)>,
    findings: Findings,
}

impl<'a> TxnIndexCheck<'a> {
    /// Begins the check of an index file, all bytes of it or `None` when there is no file, of the
    /// segment at `base_offset`.
    #[must_use]
    pub fn new(bytes: Option<&'a [u8]>, base_offset: i64, history: History) -> Self {
        let entries = TxnEntries::new(bytes.unwrap_or_default());
        let mut check = TxnIndexCheck {
            entries,
            base_offset,
            history,
            exists: bytes.is_some(),
            by_last_offset: Vec::new(),
            rank: 0,
            farthest: None,
            findings: Findings::default(),
        };
        check.look_at_entries();
        check.skip_to_sound_entry();
        check
    }

    /// From here on the log tells only a part of what was: see [`History::Partial`].
    pub fn forget_history(&mut self) {
        self.history = History::Partial;
    }

    /// Tells of the next abort marker that ends a transaction whose beginning is known; `txn` is
    /// what a walk of the log, batch by batch, makes of it. Markers come in the order of the log.
    pub fn aborted(&mut self, txn: &AbortedTxn) {
        self.pass_entries_below(txn.last_offset);
        self.bound_stable_offset(txn.first_offset, || {
            format!("but a transaction that ends later begins at {}", txn.first_offset)
        });
        match self.next() {
            Some((slot, entry)) if entry.last_offset == txn.last_offset => {
                if !self.agrees(&entry, txn) {
                    self.add_mismatch(slot, &entry, || format!("but the log tells {}", told(txn)));
                } else if self.farthest.is_none_or(|(_, farthest)| {
                    farthest.last_stable_offset < entry.last_stable_offset
                }) {
                    self.farthest = Some((slot, entry));
                }
                self.advance();
            }
            following => self.add_missing(following.map(|(slot, _)| slot), txn),
        }
    }

    /// Tells of the next abort marker that stands alone: the log does not show where its
    /// transaction began. An entry for it may be there, or not.
    pub fn lone_marker(&mut self, producer_id: i64, offset: i64) {
        self.pass_entries_below(offset);
        if let Some((slot, entry)) = self.next()
            && entry.last_offset == offset
        {
            if entry.producer_id != producer_id || entry.first_offset > offset {
                self.add_mismatch(slot, &entry, || {
                    format!("but the log has an abort marker of producer {producer_id} there")
                });
            }
            self.advance();
        }
    }

    /// What is wrong with the file that its entries tell by themselves: for who has not read the
    /// log.
    #[must_use]
    pub fn without_log(self) -> Vec<IndexProblem> {
        self.findings.into_problems()
    }

    /// Ends the check: `end_offset` is the offset behind the last valid batch of the segment.
    #[must_use]
    pub fn finish(mut self, end_offset: i64) -> Vec<IndexProblem> {
        self.bound_stable_offset(end_offset, || format!("but the log ends at {end_offset}"));
        while let Some((slot, entry)) = self.next() {
            self.add_unknown(slot, &entry);
            self.advance();
        }
        self.findings.into_problems()
    }

    fn agrees(&self, entry: &AbortedTxn, txn: &AbortedTxn) -> bool {
        let is_partial = self.history == History::Partial;
        let nothing_was_open = txn.last_stable_offset > txn.last_offset;
        let begins_right = match is_partial {
            true => entry.first_offset <= txn.first_offset,
            false => entry.first_offset == txn.first_offset,
        };
        // What lies too far behind is found when later transactions are told of.
        let is_stable_right = match entry.last_stable_offset.cmp(&txn.last_stable_offset) {
            Ordering::Less => is_partial,
            Ordering::Equal => true,
            Ordering::Greater => nothing_was_open,
        };
        entry.producer_id == txn.producer_id && begins_right && is_stable_right
    }

    /// No last stable offset so far may lie behind `limit`.
    fn bound_stable_offset(&mut self, limit: i64, why: impl Fn() -> String) {
        if let Some((slot, entry)) = self.farthest
            && entry.last_stable_offset > limit
        {
            self.add_mismatch(slot, &entry, why);
            self.farthest = None;
        }
    }

    /// Finds what is wrong with the entries themselves, and the order in which to walk them.
    fn look_at_entries(&mut self) {
        let entries = self.entries;
        if entries.stray_size_bytes() != 0 {
            let position = position_of(entries.count(), ENTRY_SIZE);
            self.findings.add(Code::TxnindexSize, position, None, || {
                format!(
                    "{} bytes behind the last whole entry of {ENTRY_SIZE}",
                    entries.stray_size_bytes()
                )
            });
        }
        let mut rises = true;
        let mut previous = i64::MIN;
        for (slot, entry) in entries.iter().enumerate() {
            rises &= previous <= entry.last_offset;
            previous = entry.last_offset;
            let position = position_of(slot, ENTRY_SIZE);
            let offset = Some(entry.last_offset);
            if let Some(version) = entries.version(slot).filter(|version| *version != VERSION) {
                // Kafka would serve some of these versions, but nobody has written one yet.
                self.findings.add(Code::TxnindexVersion, position, offset, || {
                    format!("entry {slot} has version {version}, not {VERSION}")
                });
            }
            if self.is_disordered(slot, &entry) {
                let base = self.base_offset;
                self.findings.add(Code::TxnindexOrder, position, offset, || {
                    match slot.checked_sub(1).and_then(|slot| entries.get(slot)) {
                        Some(before) if entry.last_offset >= base => format!(
                            "entry {slot} goes backwards (last offset {} after {})",
                            entry.last_offset, before.last_offset
                        ),
                        _ => format!(
                            "entry {slot} ends at offset {}, below the base offset {base}",
                            entry.last_offset
                        ),
                    }
                });
            }
        }
        if !rises {
            // Only a damaged file pays for this; its transactions are looked at in any case.
            self.by_last_offset = (0..).take(entries.count()).collect();
            self.by_last_offset.sort_by_key(|slot| {
                usize::try_from(*slot)
                    .ok()
                    .and_then(|slot| entries.get(slot))
                    .map(|e| e.last_offset)
            });
        }
    }

    fn is_disordered(&self, slot: usize, entry: &AbortedTxn) -> bool {
        let before = slot.checked_sub(1).and_then(|slot| self.entries.get(slot));
        entry.last_offset < self.base_offset
            || before.is_some_and(|before| entry.last_offset <= before.last_offset)
    }

    /// The entry that the markers have not passed yet, and its slot.
    fn next(&self) -> Option<(usize, AbortedTxn)> {
        let slot = match self.by_last_offset.is_empty() {
            true => self.rank,
            false => usize::try_from(*self.by_last_offset.get(self.rank)?).ok()?,
        };
        Some((slot, self.entries.get(slot)?))
    }

    fn advance(&mut self) {
        self.rank += 1;
        self.skip_to_sound_entry();
    }

    /// Passes over entries that were already found to be out of order.
    fn skip_to_sound_entry(&mut self) {
        while let Some((slot, entry)) = self.next()
            && self.is_disordered(slot, &entry)
        {
            self.rank += 1;
        }
    }

    /// Passes the entries that end below the offset of a marker: no marker told of them.
    fn pass_entries_below(&mut self, offset: i64) {
        while let Some((slot, entry)) = self.next()
            && entry.last_offset < offset
        {
            self.add_unknown(slot, &entry);
            self.advance();
        }
    }

    fn add_unknown(&mut self, slot: usize, entry: &AbortedTxn) {
        self.add_mismatch(slot, entry, || "but the log has no such abort marker".into());
    }

    fn add_mismatch(&mut self, slot: usize, entry: &AbortedTxn, why: impl Fn() -> String) {
        let position = position_of(slot, ENTRY_SIZE);
        self.findings.add(Code::TxnindexMismatch, position, Some(entry.last_offset), || {
            format!("entry {slot} tells {}, {}", told(entry), why())
        });
    }

    /// The log tells of a transaction that has no entry; it would stand before `slot`, or at the
    /// end.
    fn add_missing(&mut self, slot: Option<usize>, txn: &AbortedTxn) {
        let position = position_of(slot.unwrap_or(self.entries.count()), ENTRY_SIZE);
        let code = if self.exists { Code::TxnindexMismatch } else { Code::TxnindexMissing };
        self.findings.add(code, position, Some(txn.last_offset), || {
            let what = if self.exists { "no entry" } else { "no file" };
            format!("there is {what} for {}", told(txn))
        });
    }
}

fn told(txn: &AbortedTxn) -> String {
    format!(
        "the aborted transaction of producer {} at offsets {} to {} with last stable offset {}",
        txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::txn::TxnIndexBuilder;
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;

    fn txn(producer_id: i64, first: i64, last: i64, stable: i64) -> AbortedTxn {
        AbortedTxn {
            producer_id,
            first_offset: first,
            last_offset: last,
            last_stable_offset: stable,
        }
    }

    fn bytes(txns: &[AbortedTxn]) -> Vec<u8> {
        txns.iter().flat_map(|txn| txn.encode()).collect()
    }

    /// Code, position in the index and log offset of each problem.
    fn found(
        bytes: Option<&[u8]>,
        history: History,
        log: &[AbortedTxn],
    ) -> Vec<(Code, u64, Option<i64>)> {
        let mut check = TxnIndexCheck::new(bytes, 0, history);
        for txn in log {
            check.aborted(txn);
        }
        let end_offset = log.last().map_or(0, |txn| txn.last_offset + 10);
        let problems = check.finish(end_offset);
        problems.into_iter().map(|p| (p.code, p.position, p.offset)).collect()
    }

    fn whole(bytes: &[u8], log: &[AbortedTxn]) -> Vec<(Code, u64, Option<i64>)> {
        found(Some(bytes), History::Whole, log)
    }

    const FIRST: AbortedTxn =
        AbortedTxn { producer_id: 9001, first_offset: 0, last_offset: 4, last_stable_offset: 5 };

    #[test]
    fn an_index_that_tells_what_the_log_tells_is_right() {
        // spec: cases S070, S074
        assert_eq!(whole(&bytes(&[FIRST]), &[FIRST]), []);
        assert_eq!(whole(&[], &[]), []);
        assert_eq!(found(None, History::Whole, &[]), []);
    }

    #[test]
    fn a_size_that_is_no_multiple_is_told() {
        // spec: cases S071
        let stray = [bytes(&[FIRST]), vec![0; 10]].concat();
        assert_eq!(whole(&stray, &[FIRST]), [(Code::TxnindexSize, 34, None)]);
    }

    #[test]
    fn entries_that_do_not_rise_are_told() {
        // spec: cases S072
        let order = [(Code::TxnindexOrder, 34, Some(4))];
        assert_eq!(whole(&bytes(&[FIRST, FIRST]), &[FIRST]), order);
        let other = txn(7, 2, 9, 10);
        assert_eq!(
            whole(&bytes(&[other, FIRST]), &[FIRST, other]),
            [order[0], (Code::TxnindexMismatch, 0, Some(4))]
        );
        let mut check = TxnIndexCheck::new(Some(&[0; 34]), 50, History::Whole);
        check.lone_marker(0, 50);
        assert_eq!(check.finish(60)[0].code, Code::TxnindexOrder);
    }

    #[test]
    fn an_aborted_transaction_without_entry_is_told() {
        // spec: cases S073
        assert_eq!(found(None, History::Whole, &[FIRST]), [(Code::TxnindexMissing, 0, Some(4))]);
        assert_eq!(whole(&[], &[FIRST]), [(Code::TxnindexMismatch, 0, Some(4))]);
        let (second, third) = (txn(1, 5, 9, 10), txn(2, 8, 12, 13));
        let mismatch = [(Code::TxnindexMismatch, 34, Some(9))];
        assert_eq!(whole(&bytes(&[FIRST, third]), &[FIRST, second, third]), mismatch);
    }

    #[test]
    fn an_unknown_version_is_told() {
        // spec: cases S370; Kafka itself reads an entry of version 1 as one of version 0.
        for version in [[0, 1], [1, 0], [0xFF, 0xFF]] {
            let mut entry = bytes(&[FIRST]);
            entry[..2].copy_from_slice(&version);
            assert_eq!(whole(&entry, &[FIRST]), [(Code::TxnindexVersion, 0, Some(4))]);
        }
    }

    #[test]
    fn an_entry_that_no_marker_tells_of_is_told() {
        let invented = txn(9001, 5, 6, 7);
        let mismatch = [(Code::TxnindexMismatch, 34, Some(6))];
        assert_eq!(whole(&bytes(&[FIRST, invented]), &[FIRST]), mismatch);
        let before = [(Code::TxnindexMismatch, 0, Some(4))];
        assert_eq!(whole(&bytes(&[FIRST, invented]), &[invented]), before);
    }

    #[test]
    fn an_entry_that_differs_from_its_marker_is_told() {
        for wrong in [txn(9002, 0, 4, 5), txn(9001, 1, 4, 5), txn(9001, 0, 4, 15)] {
            for history in [History::Whole, History::Partial] {
                let mismatch = [(Code::TxnindexMismatch, 0, Some(4))];
                assert_eq!(found(Some(&bytes(&[wrong])), history, &[FIRST]), mismatch);
            }
        }
    }

    #[test]
    fn a_log_that_lost_batches_may_tell_less_than_the_index() {
        // Seen in a compacted log: the transaction's first batches are gone.
        let entry = bytes(&[txn(9001, -3, 4, 2)]);
        assert_eq!(found(Some(&entry), History::Partial, &[FIRST]), []);
        assert_eq!(whole(&entry, &[FIRST]), [(Code::TxnindexMismatch, 0, Some(4))]);
    }

    #[test]
    fn a_marker_alone_needs_no_entry_and_allows_one() {
        let log = |bytes: &[u8], producer_id| {
            let mut check = TxnIndexCheck::new(Some(bytes), 0, History::Partial);
            check.lone_marker(producer_id, 4);
            check.aborted(&txn(1, 5, 9, 10));
            check.finish(20).len()
        };
        assert_eq!(log(&bytes(&[FIRST, txn(1, 5, 9, 10)]), 9001), 0);
        assert_eq!(log(&bytes(&[txn(1, 5, 9, 10)]), 9001), 0);
        assert_eq!(log(&bytes(&[FIRST, txn(1, 5, 9, 10)]), 1), 1);
        assert_eq!(log(&bytes(&[txn(9001, 6, 4, 5), txn(1, 5, 9, 10)]), 9001), 1);
    }

    #[test]
    fn a_follower_may_have_known_where_the_next_transaction_begins() {
        // Seen in a replica: it had fetched the marker and the next transaction at once.
        let ahead = bytes(&[txn(9001, 0, 4, 7), txn(1, 7, 9, 10)]);
        assert_eq!(whole(&ahead, &[FIRST, txn(1, 7, 9, 10)]), []);
        let mismatch = [(Code::TxnindexMismatch, 0, Some(4))];
        let too_far = bytes(&[txn(9001, 0, 4, 8), txn(1, 7, 9, 10)]);
        assert_eq!(whole(&too_far, &[FIRST, txn(1, 7, 9, 10)]), mismatch);
        // While another transaction is open, the offset is where that one begins.
        let open = txn(9001, 0, 4, 3);
        assert_eq!(whole(&bytes(&[FIRST]), &[open]), mismatch);
        assert_eq!(whole(&bytes(&[txn(9001, 0, 4, 2)]), &[open]), mismatch);
    }

    /// Aborted transactions as a walk of their log tells them, and the end of the log.
    fn logs() -> impl Strategy<Value = (Vec<AbortedTxn>, i64)> {
        prop::collection::vec((1i64..6, 0i64..12), 1..6).prop_map(|steps| {
            let mut last = 20;
            let mut log: Vec<AbortedTxn> = Vec::new();
            for (step, length) in steps {
                last += step;
                log.push(txn(step, last - length, last, last + 1));
            }
            for n in 0..log.len() {
                let opens = log[n + 1..].iter().map(|later| later.first_offset);
                log[n].last_stable_offset = opens.chain([log[n].last_offset + 1]).min().unwrap();
            }
            (log, last + 1)
        })
    }

    fn answers(bytes: &[u8], end_offset: i64) -> Vec<Vec<(i64, i64)>> {
        let mut answers = Vec::new();
        for fetch_offset in 0..=end_offset {
            for upper_bound in fetch_offset..=end_offset {
                let mut found = Vec::new();
                TxnEntries::new(bytes)
                    .collect_aborted(fetch_offset, upper_bound, &mut found)
                    .unwrap();
                answers.push(found.iter().map(|txn| (txn.producer_id, txn.first_offset)).collect());
            }
        }
        answers
    }

    proptest! {
        #[test]
        fn an_index_without_problems_answers_as_the_right_one_does(
            (log, end_offset) in logs(),
            entry in any::<Index>(),
            field in 0usize..4,
            flip in 1u8..32,
        ) {
            let mut index = TxnIndexBuilder::new();
            for txn in &log {
                index.append(txn).unwrap();
            }
            let right = index.into_bytes();
            let check = |bytes: &[u8]| {
                let mut check = TxnIndexCheck::new(Some(bytes), 0, History::Whole);
                log.iter().for_each(|txn| check.aborted(txn));
                check.finish(end_offset)
            };
            prop_assert_eq!(check(&right), vec![]);
            let mut bytes = right.clone();
            // The low bits of a number are those that matter in so short a log.
            bytes[entry.index(log.len()) * ENTRY_SIZE + 2 + field * 8 + 7] ^= flip;
            if check(&bytes).is_empty() {
                prop_assert_eq!(answers(&bytes, end_offset), answers(&right, end_offset));
            }
        }

        #[test]
        fn any_bytes_can_be_checked(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            base in any::<i64>(),
            markers in prop::collection::vec((any::<i64>(), any::<i64>(), any::<bool>()), 0..20),
        ) {
            let mut check = TxnIndexCheck::new(Some(&bytes), base, History::Partial);
            for (producer_id, offset, is_lone) in markers {
                match is_lone {
                    true => check.lone_marker(producer_id, offset),
                    false => check.aborted(&txn(producer_id, offset, offset, offset)),
                }
            }
            let _ = check.finish(base);
        }
    }
}
