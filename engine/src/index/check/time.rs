//! Is a time index right? The walk through its entries beside the batches of the log.

use super::super::time::{ENTRY_SIZE, TimeEntries, TimeEntry};
use super::findings::{Findings, IndexProblem, position_of};
use super::walk::Walk;
use crate::problem::Code;
use crate::units::NO_TIMESTAMP;

/// The check of a time index against the batches of its segment.
///
/// An entry `(timestamp, offset)` is right when the batch that holds `offset` has `timestamp` as
/// its largest one, and every batch before it only smaller ones.
///
/// A look-up of a timestamp from `timestamp` on begins at `offset` at the earliest, so what it
/// passes over is exactly the batches before: none of them may hold a record that is as late. And
/// the last entry is taken for the segment's largest timestamp, which retention goes by: so the
/// batch must really carry it. As in the offset index, Kafka writes the last offset of the batch,
/// and any offset behind the batch before is as good.
#[derive(Debug)]
pub struct TimeIndexCheck<'a> {
    /// The entries by rising offset.
    walk: Walk<'a, TimeEntry>,
    /// The offset of the next entry; `i64::MAX` when there is none left.
    next_offset: i64,
    /// The last offset of the batch before.
    last_offset: i64,
    /// The largest timestamp so far, and the last offset of its batch.
    largest: TimeEntry,
    findings: Findings,
}

/// What [`TimeIndexCheck`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeIndexFindings {
    /// What is wrong with the entries there are.
    pub problems: Vec<IndexProblem>,
    /// That the last entry is not of the segment's largest timestamp
    /// ([`TimeindexShort`](Code::TimeindexShort)): a fault of a segment that was rolled or closed,
    /// and the normal state of one that is being written.
    pub short: Option<IndexProblem>,
}

/// What is wrong with an entry beside the one before it.
enum Disorder {
    BelowBase,
    TimestampAfter(i64),
    OffsetAfter(i64),
}

impl<'a> TimeIndexCheck<'a> {
    /// Begins the check of an index file, all bytes of it, of the segment at `base_offset`.
    #[must_use]
    pub fn new(bytes: &'a [u8], base_offset: i64) -> Self {
        let mut findings = Findings::default();
        let mut check = TimeIndexCheck {
            walk: Walk::new(bytes, base_offset, Code::TimeindexZeroPadding, &mut findings),
            next_offset: i64::MAX,
            last_offset: base_offset.saturating_sub(1),
            largest: TimeEntry { timestamp_ms: NO_TIMESTAMP, offset: base_offset },
            findings,
        };
        check.order();
        check.skip_to_sound_entry();
        check
    }

    /// Tells of the next batch: its last offset and its largest timestamp (-1 for none). Batches
    /// come in the order of the log, all valid ones of the segment.
    #[inline]
    pub fn batch(&mut self, last_offset: i64, max_timestamp_ms: i64) {
        if self.next_offset <= last_offset {
            self.meet(last_offset, max_timestamp_ms);
        }
        self.last_offset = self.last_offset.max(last_offset);
        if max_timestamp_ms > self.largest.timestamp_ms {
            self.largest = TimeEntry { timestamp_ms: max_timestamp_ms, offset: last_offset };
        }
    }

    /// What is wrong with the file that its entries tell by themselves: for who has not read the
    /// log.
    #[must_use]
    pub fn without_log(self) -> Vec<IndexProblem> {
        self.findings.into_problems()
    }

    /// Ends the check.
    #[must_use]
    pub fn finish(mut self) -> TimeIndexFindings {
        let end_offset = self.last_offset.saturating_add(1);
        while let Some((slot, entry)) = self.walk.next() {
            if self.is_lone_zero() {
                self.walk.add_lone_padding(&mut self.findings);
            } else {
                self.add_mismatch(slot, entry, || format!("but the log ends at {end_offset}"));
            }
            self.advance();
        }
        let short = self.short();
        TimeIndexFindings { problems: self.findings.into_problems(), short }
    }

    /// Judges the entries whose offsets the batch up to `last_offset` holds.
    fn meet(&mut self, last_offset: i64, max_timestamp_ms: i64) {
        while let Some((slot, entry)) = self.walk.next()
            && entry.offset <= last_offset
        {
            let before = self.largest;
            if entry.timestamp_ms != max_timestamp_ms {
                if self.is_lone_zero() {
                    self.walk.add_lone_padding(&mut self.findings);
                } else {
                    self.add_mismatch(slot, entry, || {
                        format!("but the largest timestamp of its batch is {max_timestamp_ms}")
                    });
                }
            } else if entry.timestamp_ms <= before.timestamp_ms {
                self.add_mismatch(slot, entry, || {
                    format!(
                        "but the batch that ends at offset {} already has {}",
                        before.offset, before.timestamp_ms
                    )
                });
            }
            self.advance();
        }
    }

    /// The missing last entry, if it is missing.
    fn short(&self) -> Option<IndexProblem> {
        let entries = self.walk.entries();
        let last = entries.last();
        (last.timestamp_ms < self.largest.timestamp_ms).then(|| IndexProblem {
            code: Code::TimeindexShort,
            position: position_of(entries.count(), ENTRY_SIZE),
            offset: Some(self.largest.offset),
            count: 1,
            detail: format!(
                "the last of {} entries has timestamp {}, but the segment's largest is {}",
                entries.count(),
                last.timestamp_ms,
                self.largest.timestamp_ms
            ),
        })
    }

    /// Finds what is wrong with the order of the entries, and the order in which to walk them.
    fn order(&mut self) {
        let entries = self.walk.entries();
        for (slot, entry) in entries.iter().enumerate() {
            let Some(disorder) = disorder(&entries, slot) else { continue };
            let position = position_of(slot, ENTRY_SIZE);
            self.findings.add(
                Code::TimeindexOrder,
                position,
                Some(entry.offset),
                || match disorder {
                    Disorder::BelowBase => format!(
                        "entry {slot} names offset {}, below the base offset {}",
                        entry.offset,
                        entries.base_offset()
                    ),
                    Disorder::TimestampAfter(before) => format!(
                        "entry {slot} goes backwards (timestamp {} after {before})",
                        entry.timestamp_ms
                    ),
                    Disorder::OffsetAfter(before) => format!(
                        "entry {slot} goes backwards (offset {} after {before})",
                        entry.offset
                    ),
                },
            );
        }
        self.walk.order_by(|entry| entry.offset);
    }

    fn advance(&mut self) {
        self.walk.pass();
        self.skip_to_sound_entry();
    }

    /// Passes over entries that were already found to be out of order.
    fn skip_to_sound_entry(&mut self) {
        while let Some((slot, entry)) = self.walk.next() {
            if disorder(&self.walk.entries(), slot).is_none() {
                self.next_offset = entry.offset;
                return;
            }
            self.walk.pass();
        }
        self.next_offset = i64::MAX;
    }

    /// Whether the file is one entry of zeros, which is padding when the first batch has another
    /// timestamp.
    fn is_lone_zero(&self) -> bool {
        let entries = self.walk.entries();
        let zero = TimeEntry { timestamp_ms: 0, offset: entries.base_offset() };
        entries.count() == 1 && entries.get(0) == Some(zero)
    }

    fn add_mismatch(&mut self, slot: usize, entry: TimeEntry, why: impl Fn() -> String) {
        let position = position_of(slot, ENTRY_SIZE);
        self.findings.add(Code::TimeindexMismatch, position, Some(entry.offset), || {
            format!(
                "entry {slot} names timestamp {} at offset {}, {}",
                entry.timestamp_ms,
                entry.offset,
                why()
            )
        });
    }
}

fn disorder(entries: &TimeEntries<'_>, slot: usize) -> Option<Disorder> {
    let entry = entries.get(slot)?;
    let before = slot.checked_sub(1).and_then(|slot| entries.get(slot));
    if entry.offset < entries.base_offset() {
        return Some(Disorder::BelowBase);
    }
    match before {
        Some(before) if entry.timestamp_ms <= before.timestamp_ms => {
            Some(Disorder::TimestampAfter(before.timestamp_ms))
        }
        Some(before) if entry.offset < before.offset => Some(Disorder::OffsetAfter(before.offset)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::time::TimeIndexBuilder;
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;

    /// The last offset and the largest timestamp of each batch.
    type Log = Vec<(i64, i64)>;

    /// Six batches of two records, a second apart.
    fn six(base: i64) -> Log {
        (0..6).map(|n| (base + 2 * n + 1, 1000 * n)).collect()
    }

    fn bytes(entries: &[(i64, i32)]) -> Vec<u8> {
        entries
            .iter()
            .flat_map(|(t, o)| [&t.to_be_bytes()[..], &o.to_be_bytes()].concat())
            .collect()
    }

    fn check(bytes: &[u8], base: i64, log: &Log) -> TimeIndexFindings {
        let mut check = TimeIndexCheck::new(bytes, base);
        for (last_offset, timestamp) in log {
            check.batch(*last_offset, *timestamp);
        }
        check.finish()
    }

    /// Code, position in the index, log offset and count of each problem, the short end included.
    fn found(bytes: &[u8], base: i64, log: &Log) -> Vec<(Code, u64, Option<i64>, u64)> {
        let findings = check(bytes, base, log);
        findings
            .problems
            .into_iter()
            .chain(findings.short)
            .map(|problem| (problem.code, problem.position, problem.offset, problem.count))
            .collect()
    }

    const RIGHT: [(i64, i32); 3] = [(1000, 3), (3000, 7), (5000, 11)];

    #[test]
    fn an_index_as_kafka_writes_it_is_right() {
        assert_eq!(found(&bytes(&RIGHT), 0, &six(0)), []);
        assert_eq!(found(&bytes(&[(5000, 11)]), 0, &six(0)), []);
        assert_eq!(found(&[], 0, &vec![]), []);
        // Batches without timestamps leave the index empty.
        assert_eq!(found(&[], 0, &vec![(0, -1), (1, -1)]), []);
        // Timestamp 0 at the base offset is an entry of zeros.
        assert_eq!(found(&bytes(&[(0, 0)]), 0, &vec![(0, 0), (1, 0)]), []);
    }

    #[test]
    fn the_largest_timestamp_so_far_may_be_of_an_earlier_batch() {
        let log = vec![(1, 500), (3, 900), (5, 200), (7, 900), (9, 950)];
        assert_eq!(found(&bytes(&[(900, 3), (950, 9)]), 0, &log), []);
        // The later batch with the same timestamp would hide the earlier one.
        let later = bytes(&[(900, 7), (950, 9)]);
        assert_eq!(found(&later, 0, &log), [(Code::TimeindexMismatch, 0, Some(7), 1)]);
        // A batch that is older than one before it would hide that one.
        let older = bytes(&[(200, 5), (950, 9)]);
        assert_eq!(found(&older, 0, &log), [(Code::TimeindexMismatch, 0, Some(5), 1)]);
    }

    #[test]
    fn zeros_behind_the_entries_are_padding() {
        // spec: cases S061
        for padded_size in [48, 1200] {
            let mut padded = bytes(&RIGHT);
            padded.resize(padded_size, 0);
            assert_eq!(found(&padded, 0, &six(0)), [(Code::TimeindexZeroPadding, 36, None, 1)]);
        }
        let padding = (Code::TimeindexZeroPadding, 0, None, 1);
        assert_eq!(found(&[0; 12], 0, &vec![]), [padding]);
        assert_eq!(found(&[0; 120], 0, &vec![]), [padding]);
        let short = (Code::TimeindexShort, 12, Some(11), 1);
        assert_eq!(found(&[0; 12], 0, &vec![(11, 7)]), [padding, short]);
    }

    #[test]
    fn a_size_that_is_no_multiple_is_told() {
        let stray = [bytes(&RIGHT), vec![1]].concat();
        assert_eq!(found(&stray, 0, &six(0)), [(Code::IndexSize, 36, None, 1)]);
    }

    #[test]
    fn timestamps_that_go_backwards_are_told() {
        // spec: cases S065
        let back = bytes(&[(5000, 3), (3000, 5), (5500, 11)]);
        let expected =
            [(Code::TimeindexOrder, 12, Some(5), 1), (Code::TimeindexMismatch, 0, Some(3), 2)];
        assert_eq!(found(&back, 0, &six(0)), expected);
        let twice = bytes(&[(1000, 3), (1000, 3), (5000, 11)]);
        assert_eq!(found(&twice, 0, &six(0)), [(Code::TimeindexOrder, 12, Some(3), 1)]);
        let hole = bytes(&[(1000, 3), (0, 0), (5000, 11)]);
        assert_eq!(found(&hole, 0, &six(0)), [(Code::TimeindexOrder, 12, Some(0), 1)]);
    }

    #[test]
    fn offsets_that_go_backwards_are_told() {
        // spec: cases S366
        let base = 5_000_000_000;
        let back = bytes(&[(1000, 11), (3000, 7), (5000, 11)]);
        let expected = [
            (Code::TimeindexOrder, 12, Some(base + 7), 1),
            (Code::TimeindexMismatch, 0, Some(base + 11), 1),
        ];
        assert_eq!(found(&back, base, &six(base)), expected);
        let below = bytes(&[(5000, -1)]);
        assert_eq!(found(&below, base, &six(base))[0].0, Code::TimeindexOrder);
    }

    #[test]
    fn a_missing_last_entry_is_told_apart() {
        // spec: cases S368
        let findings = check(&bytes(&RIGHT[..1]), 0, &six(0));
        assert_eq!(findings.problems, []);
        let short = findings.short.unwrap();
        assert_eq!((short.code, short.position), (Code::TimeindexShort, 12));
        assert_eq!(short.offset, Some(11));
        assert_eq!(
            short.detail,
            "the last of 1 entries has timestamp 1000, but the segment's largest is 5000"
        );
        assert!(check(&[], 0, &six(0)).short.is_some());
    }

    #[test]
    fn what_is_not_in_the_log_is_told() {
        for (timestamp, offset) in [(999, 3), (1001, 3), (1000, 1), (1000, 5)] {
            let wrong = bytes(&[(timestamp, offset), (5000, 11)]);
            let expected = (Code::TimeindexMismatch, 0, Some(i64::from(offset)), 1);
            assert_eq!(found(&wrong, 0, &six(0)), [expected]);
        }
        let beyond = bytes(&[(5000, 11), (6000, 13)]);
        assert_eq!(found(&beyond, 0, &six(0)), [(Code::TimeindexMismatch, 12, Some(13), 1)]);
    }

    /// A log of one to four records a batch, as their timestamps.
    fn logs() -> impl Strategy<Value = Vec<Vec<i64>>> {
        prop::collection::vec(prop::collection::vec(-1i64..20, 1..4), 0..12)
    }

    /// The last offset and the largest timestamp of each batch.
    fn batches(log: &[Vec<i64>]) -> Log {
        let mut next = 0;
        log.iter()
            .map(|stamps| {
                next += i64::try_from(stamps.len()).unwrap();
                (next - 1, *stamps.iter().max().unwrap())
            })
            .collect()
    }

    proptest! {
        #[test]
        fn an_index_without_problems_misses_no_record(
            log in logs(),
            picks in prop::collection::vec((any::<Index>(), -1i64..=1, -1i64..=1), 0..4),
        ) {
            let batches = batches(&log);
            // Entries of real batches, more or less.
            let mut entries: Vec<(i64, i32)> = picks
                .iter()
                .filter(|_| !batches.is_empty())
                .map(|(pick, offset_off, time_off)| {
                    let (last, timestamp) = pick.get(&batches);
                    let offset = i32::try_from(last + offset_off).unwrap();
                    (timestamp + time_off * offset_off, offset)
                })
                .collect();
            entries.sort();
            let bytes = bytes(&entries);
            let findings = check(&bytes, 0, &batches);
            let entries = TimeEntries::new(&bytes, 0);
            if findings.problems.is_empty() {
                for target in -1..21 {
                    let start = entries.lookup(target).offset;
                    let stamps = log.iter().flatten();
                    let first = (0i64..).zip(stamps).find(|(_, stamp)| **stamp >= target);
                    if let Some((first, _)) = first {
                        // The scan starts at the batch that holds the entry's offset.
                        let batch = batches.iter().find(|batch| batch.0 >= first).unwrap();
                        prop_assert!(start <= batch.0, "{target}");
                    }
                }
                if findings.short.is_none() {
                    let largest = log.iter().flatten().max().copied().unwrap_or(-1);
                    prop_assert_eq!(entries.last().timestamp_ms, largest);
                }
            }
        }

        #[test]
        fn an_index_as_kafka_writes_it_has_no_problems(
            log in logs(),
            picks in prop::collection::vec(any::<bool>(), 12),
        ) {
            let batches = batches(&log);
            let mut index = TimeIndexBuilder::new(0, 4096).unwrap();
            let mut largest = index.last();
            for ((offset, timestamp_ms), pick) in batches.iter().copied().zip(picks) {
                if timestamp_ms > largest.timestamp_ms {
                    largest = TimeEntry { timestamp_ms, offset };
                }
                if pick {
                    index.maybe_append(largest.timestamp_ms, largest.offset, false).unwrap();
                }
            }
            prop_assert_eq!(check(index.as_bytes(), 0, &batches).problems, vec![]);
            index.maybe_append(largest.timestamp_ms, largest.offset, true).unwrap();
            let closed = check(index.as_bytes(), 0, &batches);
            prop_assert_eq!(closed, TimeIndexFindings { problems: vec![], short: None });
        }

        #[test]
        fn any_bytes_can_be_checked(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            base in any::<i64>(),
            batches in prop::collection::vec((any::<i64>(), any::<i64>()), 0..20),
        ) {
            let mut check = TimeIndexCheck::new(&bytes, base);
            for (last_offset, timestamp) in batches {
                check.batch(last_offset, timestamp);
            }
            for problem in check.finish().problems {
                prop_assert!(problem.position < u64::try_from(bytes.len()).unwrap());
            }
        }
    }
}
