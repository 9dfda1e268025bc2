//! Is an offset index right? The walk through its entries beside the batches of the log.

use super::super::offset::{ENTRY_SIZE, OffsetEntries, OffsetEntry};
use super::findings::{Findings, IndexProblem, position_of};
use super::walk::Walk;
use crate::problem::Code;

/// The check of an offset index against the batches of its segment.
///
/// An entry `(offset, position)` is right when a batch starts at `position` and
///
/// ```text
/// last offset of the batch before  <  offset  <=  last offset of the batch at position
/// ```
///
/// or `offset` is the last one of a later batch before the position of the next entry: of all
/// batches of one append, brokers before KAFKA-806 (up to Kafka 4.0.0) write the position of the
/// first and the last offset of the last.
///
/// A look-up of any offset from `offset` on begins at `position` at the earliest, so what it passes
/// over is exactly the batches before, and their last offsets are smaller: nothing is missed. Was
/// the left side not so, a look-up of `offset` would begin behind its batch. Was the right side not
/// so, the look-up would only begin too early; but what no broker writes is told, too. Between the
/// two lies what is harmless: the offset of any record of the batch, and, where compaction took
/// batches away, the offsets between two batches.
///
/// ```
/// use siltstone::index::check::OffsetIndexCheck;
///
/// let bytes = [0, 0, 0, 3, 0, 0, 0, 91];
/// let mut check = OffsetIndexCheck::new(&bytes, 0);
/// check.batch(0, 1); // offsets 0 and 1
/// check.batch(91, 3); // offsets 2 and 3
/// assert!(check.finish(182).is_empty());
/// ```
#[derive(Debug)]
pub struct OffsetIndexCheck<'a> {
    /// The entries by rising position.
    walk: Walk<'a, OffsetEntry>,
    /// Where the next entry points; `u64::MAX` when there is none left.
    next_position: u64,
    /// The largest last offset of the batches so far.
    last_offset: i64,
    /// An entry with an offset behind the batch at its position.
    open: Option<OpenEntry>,
    /// Its offset; `i64::MAX` when there is none.
    open_offset: i64,
    findings: Findings,
}

#[derive(Clone, Copy, Debug)]
struct OpenEntry {
    slot: usize,
    entry: OffsetEntry,
    /// The last offset of the batch at its position.
    batch_end: i64,
}

/// What is wrong with an entry beside the one before it.
enum Disorder {
    BelowBase,
    NegativePosition,
    OffsetAfter(i64),
    PositionAfter(i32),
}

impl<'a> OffsetIndexCheck<'a> {
    /// Begins the check of an index file, all bytes of it, of the segment at `base_offset`.
    #[must_use]
    pub fn new(bytes: &'a [u8], base_offset: i64) -> Self {
        let mut findings = Findings::default();
        let mut check = OffsetIndexCheck {
            walk: Walk::new(bytes, base_offset, Code::IndexZeroPadding, &mut findings),
            next_position: u64::MAX,
            last_offset: base_offset.saturating_sub(1),
            open: None,
            open_offset: i64::MAX,
            findings,
        };
        check.order();
        check.skip_to_sound_entry();
        check
    }

    /// Tells of the next batch: the byte where it starts and its last offset. Batches come in the
    /// order of the log, all valid ones of the segment.
    #[inline]
    pub fn batch(&mut self, position: u64, last_offset: i64) {
        if self.next_position <= position {
            self.meet(position, last_offset);
        }
        if self.open_offset <= last_offset {
            self.close_open(last_offset);
        }
        self.last_offset = self.last_offset.max(last_offset);
    }

    /// What is wrong with the file that its entries tell by themselves: for who has not read the
    /// log.
    #[must_use]
    pub fn without_log(self) -> Vec<IndexProblem> {
        self.findings.into_problems()
    }

    /// Ends the check: `end_position` is the byte at which the last valid batch ends.
    #[must_use]
    pub fn finish(mut self, end_position: u64) -> Vec<IndexProblem> {
        self.close_open(i64::MIN);
        while let Some((slot, entry)) = self.walk.next() {
            if self.is_lone_zero() {
                self.walk.add_lone_padding(&mut self.findings);
            } else if self.next_position < end_position {
                self.add_no_batch(slot, entry);
            } else {
                let position = position_of(slot, ENTRY_SIZE);
                self.findings.add(Code::IndexBeyondLog, position, Some(entry.offset), || {
                    format!(
                        "entry {slot} names position {} for offset {}, but the log ends at \
                         position {end_position}",
                        entry.position, entry.offset
                    )
                });
            }
            self.advance();
        }
        self.findings.into_problems()
    }

    /// Judges the entries up to the batch at `position`.
    fn meet(&mut self, position: u64, last_offset: i64) {
        while let Some((slot, entry)) = self.walk.next()
            && self.next_position <= position
        {
            let before = self.last_offset;
            if self.next_position < position {
                self.add_no_batch(slot, entry);
                self.advance();
                continue;
            }
            self.close_open(i64::MIN);
            if entry.offset <= before {
                self.add_wrong_batch(slot, entry, || {
                    format!("which an earlier batch holds (up to offset {before})")
                });
            } else if entry.offset > last_offset {
                self.open = Some(OpenEntry { slot, entry, batch_end: last_offset });
                self.open_offset = entry.offset;
            }
            self.advance();
        }
    }

    /// Judges the entry that is open, as no batch but the one that ends at `last_offset` can be the
    /// one that it is about.
    fn close_open(&mut self, last_offset: i64) {
        self.open_offset = i64::MAX;
        let Some(OpenEntry { slot, entry, batch_end }) = self.open.take() else { return };
        if entry.offset != last_offset {
            self.add_wrong_batch(slot, entry, || format!("but it ends at offset {batch_end}"));
        }
    }

    /// Finds what is wrong with the order of the entries, and the order in which to walk them.
    fn order(&mut self) {
        let entries = self.walk.entries();
        for (slot, entry) in entries.iter().enumerate() {
            let Some(disorder) = disorder(&entries, slot) else { continue };
            let position = position_of(slot, ENTRY_SIZE);
            self.findings.add(Code::IndexOrder, position, Some(entry.offset), || match disorder {
                Disorder::BelowBase => format!(
                    "entry {slot} names offset {}, below the base offset {}",
                    entry.offset,
                    entries.base_offset()
                ),
                Disorder::NegativePosition => {
                    format!("entry {slot} names position {}, before the log", entry.position)
                }
                Disorder::OffsetAfter(before) => {
                    format!("entry {slot} goes backwards (offset {} after {before})", entry.offset)
                }
                Disorder::PositionAfter(before) => format!(
                    "entry {slot} goes backwards (position {} after {before})",
                    entry.position
                ),
            });
        }
        self.walk.order_by(|entry| i64::from(entry.position));
    }

    fn advance(&mut self) {
        self.walk.pass();
        self.skip_to_sound_entry();
    }

    /// Passes over entries that were already found to be out of order.
    fn skip_to_sound_entry(&mut self) {
        while let Some((slot, entry)) = self.walk.next() {
            if disorder(&self.walk.entries(), slot).is_none()
                && let Ok(position) = u64::try_from(entry.position)
            {
                self.next_position = position;
                return;
            }
            self.walk.pass();
        }
        self.next_position = u64::MAX;
    }

    /// Whether the file is one entry of zeros, which is padding when no batch starts at position 0.
    fn is_lone_zero(&self) -> bool {
        let entries = self.walk.entries();
        let zero = OffsetEntry { offset: entries.base_offset(), position: 0 };
        entries.count() == 1 && entries.get(0) == Some(zero)
    }

    fn add_no_batch(&mut self, slot: usize, entry: OffsetEntry) {
        let position = position_of(slot, ENTRY_SIZE);
        self.findings.add(Code::IndexPosition, position, Some(entry.offset), || {
            format!(
                "entry {slot} names position {} for offset {}, but no batch starts there",
                entry.position, entry.offset
            )
        });
    }

    fn add_wrong_batch(&mut self, slot: usize, entry: OffsetEntry, why: impl Fn() -> String) {
        let position = position_of(slot, ENTRY_SIZE);
        self.findings.add(Code::IndexPosition, position, Some(entry.offset), || {
            format!(
                "entry {slot} names the batch at position {} for offset {}, {}",
                entry.position,
                entry.offset,
                why()
            )
        });
    }
}

fn disorder(entries: &OffsetEntries<'_>, slot: usize) -> Option<Disorder> {
    let entry = entries.get(slot)?;
    let before = slot.checked_sub(1).and_then(|slot| entries.get(slot));
    if entry.offset < entries.base_offset() {
        return Some(Disorder::BelowBase);
    }
    if entry.position < 0 {
        return Some(Disorder::NegativePosition);
    }
    match before {
        Some(before) if entry.offset <= before.offset => Some(Disorder::OffsetAfter(before.offset)),
        Some(before) if entry.position < before.position => {
            Some(Disorder::PositionAfter(before.position))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::offset::OffsetIndexBuilder;
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;

    /// Batches as (position, first offset, last offset), and the end of the log.
    #[derive(Debug)]
    struct Log {
        batches: Vec<(u64, i64, i64)>,
        end_position: u64,
    }

    /// Six batches of two records and 91 bytes each, from `base`.
    fn six(base: i64) -> Log {
        let batches = (0u32..6).map(|n| {
            let first = base + 2 * i64::from(n);
            (91 * u64::from(n), first, first + 1)
        });
        Log { batches: batches.collect(), end_position: 546 }
    }

    fn bytes(entries: &[(i32, i32)]) -> Vec<u8> {
        entries.iter().flat_map(|(o, p)| [o.to_be_bytes(), p.to_be_bytes()].concat()).collect()
    }

    fn check(bytes: &[u8], base: i64, log: &Log) -> Vec<IndexProblem> {
        let mut check = OffsetIndexCheck::new(bytes, base);
        for (position, _, last) in &log.batches {
            check.batch(*position, *last);
        }
        check.finish(log.end_position)
    }

    /// Code, position in the index, log offset and count of each problem.
    fn found(bytes: &[u8], base: i64, log: &Log) -> Vec<(Code, u64, Option<i64>, u64)> {
        check(bytes, base, log)
            .into_iter()
            .map(|problem| (problem.code, problem.position, problem.offset, problem.count))
            .collect()
    }

    const RIGHT: [(i32, i32); 3] = [(3, 91), (7, 273), (11, 455)];

    #[test]
    fn an_index_as_kafka_writes_it_is_right() {
        assert_eq!(found(&bytes(&RIGHT), 0, &six(0)), []);
        assert_eq!(found(&[], 0, &six(0)), []);
        assert_eq!(found(&[], 0, &Log { batches: vec![], end_position: 0 }), []);
    }

    #[test]
    fn the_base_offset_at_position_zero_is_right() {
        // spec: cases S302
        assert_eq!(found(&bytes(&[(0, 0)]), 5_000_000_000, &six(5_000_000_000)), []);
        assert_eq!(found(&bytes(&[(0, 0), (3, 91)]), 0, &six(0)), []);
    }

    #[test]
    fn any_offset_behind_the_batch_before_is_right() {
        let mut gap = six(0);
        gap.batches.remove(2); // offsets 4 and 5
        for offset in [4, 5, 6, 7] {
            assert_eq!(found(&bytes(&[(offset, 273)]), 0, &gap), [], "{offset}");
        }
        for offset in [3, 8] {
            assert_eq!(found(&bytes(&[(offset, 273)]), 0, &gap)[0].0, Code::IndexPosition);
        }
    }

    #[test]
    fn the_last_offset_of_an_append_at_the_position_of_its_first_batch_is_right() {
        for entries in [&[(9, 91)][..], &[(5, 91), (11, 273)], &[(5, 0), (9, 273), (11, 455)]] {
            assert_eq!(found(&bytes(entries), 0, &six(0)), [], "{entries:?}");
        }
        // Within a batch, behind the log, behind the batch that the next entry names.
        for offset in [4, 6, 8, 10, 12, 13] {
            let expected = (Code::IndexPosition, 0, Some(i64::from(offset)), 1);
            assert_eq!(found(&bytes(&[(offset, 91)]), 0, &six(0)), [expected]);
        }
        let expected = (Code::IndexPosition, 0, Some(7), 1);
        assert_eq!(found(&bytes(&[(7, 91), (9, 273)]), 0, &six(0)), [expected]);
        let problem = &check(&bytes(&[(6, 91)]), 0, &six(0))[0];
        assert!(problem.detail.ends_with("but it ends at offset 3"), "{}", problem.detail);
        // One that is out of order is not the next, nor one that names no batch.
        let odd = bytes(&[(5, 91), (6, 100), (11, 273)]);
        assert_eq!(found(&odd, 0, &six(0)), [(Code::IndexPosition, 8, Some(6), 1)]);
    }

    #[test]
    fn zeros_behind_the_entries_are_padding() {
        // spec: cases S060, S361
        for padded_size in [32, 40, 1024] {
            let mut padded = bytes(&RIGHT);
            padded.resize(padded_size, 0);
            let expected = (Code::IndexZeroPadding, 24, None, 1);
            assert_eq!(found(&padded, 0, &six(0)), [expected]);
        }
        // A lone entry that was overwritten with zeros is told as padding, too.
        let mut zeroed = bytes(&RIGHT);
        zeroed[16..].fill(0);
        assert_eq!(found(&zeroed, 0, &six(0)), [(Code::IndexZeroPadding, 16, None, 1)]);
    }

    #[test]
    fn a_file_of_zeros_is_padding() {
        let empty = Log { batches: vec![], end_position: 0 };
        for size in [8, 16, 4096] {
            assert_eq!(found(&vec![0; size], 0, &empty), [(Code::IndexZeroPadding, 0, None, 1)]);
        }
        assert_eq!(found(&[0; 16], 0, &six(0)), [(Code::IndexZeroPadding, 0, None, 1)]);
    }

    #[test]
    fn a_size_that_is_no_multiple_is_told() {
        // spec: cases S062
        let stray = [bytes(&RIGHT), vec![1, 2, 3, 4, 5]].concat();
        assert_eq!(found(&stray, 0, &six(0)), [(Code::IndexSize, 24, None, 1)]);
        assert_eq!(found(&[0; 5], 0, &six(0)), [(Code::IndexSize, 0, None, 1)]);
    }

    #[test]
    fn an_entry_behind_the_end_of_the_log_is_told() {
        // spec: cases S063
        let mut cut = six(0);
        cut.batches.truncate(3);
        cut.end_position = 273;
        let expected = (Code::IndexBeyondLog, 8, Some(7), 2);
        assert_eq!(found(&bytes(&RIGHT), 0, &cut), [expected]);
    }

    #[test]
    fn an_offset_below_the_base_is_told() {
        // spec: cases S064
        let below = bytes(&[(3, 91), (7, 273), (-5, 300)]);
        assert_eq!(found(&below, 0, &six(0)), [(Code::IndexOrder, 16, Some(-5), 1)]);
        let first = bytes(&[(-1, 0)]);
        assert_eq!(found(&first, 50, &six(50)), [(Code::IndexOrder, 0, Some(49), 1)]);
    }

    #[test]
    fn entries_that_go_backwards_are_told() {
        // spec: cases S364
        let back = bytes(&[(7, 273), (3, 91), (11, 455)]);
        let base = 5_000_000_000;
        let expected = (Code::IndexOrder, 8, Some(base + 3), 1);
        assert_eq!(found(&back, base, &six(base)), [expected]);
        // The same offset twice, and positions alone going back.
        let twice = bytes(&[(3, 91), (3, 91)]);
        assert_eq!(found(&twice, 0, &six(0)), [(Code::IndexOrder, 8, Some(3), 1)]);
        let position = bytes(&[(3, 91), (5, 0), (7, 273)]);
        assert_eq!(found(&position, 0, &six(0)), [(Code::IndexOrder, 8, Some(5), 1)]);
        // A zero entry in the middle is no padding.
        let hole = bytes(&[(3, 91), (0, 0), (11, 455)]);
        assert_eq!(found(&hole, 0, &six(0)), [(Code::IndexOrder, 8, Some(0), 1)]);
    }

    #[test]
    fn disorder_of_one_entry_hides_no_other_problem() {
        let both = bytes(&[(11, 455), (3, 91), (7, 280)]);
        let expected = [(Code::IndexOrder, 8, Some(3), 1), (Code::IndexPosition, 16, Some(7), 1)];
        assert_eq!(found(&both, 0, &six(0)), expected);
    }

    #[test]
    fn a_position_inside_a_batch_is_told() {
        // spec: cases S068
        let inside = bytes(&[(3, 91 + 13)]);
        assert_eq!(found(&inside, 0, &six(0)), [(Code::IndexPosition, 0, Some(3), 1)]);
        let problem = &check(&inside, 0, &six(0))[0];
        assert_eq!(
            problem.detail,
            "entry 0 names position 104 for offset 3, but no batch starts there"
        );
        let in_last = bytes(&[(11, 500)]);
        assert_eq!(found(&in_last, 0, &six(0)), [(Code::IndexPosition, 0, Some(11), 1)]);
    }

    #[test]
    fn a_position_before_the_log_is_told_without_a_batch() {
        let negative = bytes(&[(3, -91)]);
        assert_eq!(found(&negative, 0, &six(0)), [(Code::IndexOrder, 0, Some(3), 1)]);
        let empty = Log { batches: vec![], end_position: 0 };
        assert_eq!(found(&negative, 0, &empty), [(Code::IndexOrder, 0, Some(3), 1)]);
    }

    #[test]
    fn an_entry_that_names_another_batch_is_told() {
        for (offset, position) in [(1, 91), (3, 273), (4, 91), (12, 0)] {
            let wrong = bytes(&[(offset, position)]);
            let expected = (Code::IndexPosition, 0, Some(i64::from(offset)), 1);
            assert_eq!(found(&wrong, 0, &six(0)), [expected]);
        }
    }

    #[test]
    fn a_flood_of_problems_is_counted() {
        let garbage: Vec<u8> = (0..80_000u32).flat_map(|i| (!i).to_be_bytes()).collect();
        let problems = check(&garbage, 0, &six(0));
        assert!(problems.len() <= 5);
        assert_eq!(problems.iter().map(|problem| problem.count).sum::<u64>(), 40_000);
    }

    /// A log of batches with gaps between them, as compaction leaves it, of 100 bytes each.
    fn logs() -> impl Strategy<Value = Log> {
        prop::collection::vec((0i64..3, 0i64..4), 0..12).prop_map(|steps| {
            let mut next = 0;
            let mut batches = Vec::new();
            for (position, (gap, delta)) in (0u64..).step_by(100).zip(steps) {
                batches.push((position, next + gap, next + gap + delta));
                next += gap + delta + 1;
            }
            let end_position = 100 * u64::try_from(batches.len()).unwrap();
            Log { batches, end_position }
        })
    }

    proptest! {
        #[test]
        fn an_index_without_problems_misses_no_batch(
            log in logs(),
            picks in prop::collection::vec((any::<Index>(), -2i64..=6, 0u8..20), 0..4),
        ) {
            // Entries of real batches, more or less: an offset off by a few, some inside a batch.
            let mut entries: Vec<(i32, i32)> = picks
                .iter()
                .filter(|_| !log.batches.is_empty())
                .map(|(pick, off, inside)| {
                    let (position, _, last) = pick.get(&log.batches);
                    let position = i32::try_from(*position).unwrap() + i32::from(*inside == 0);
                    (i32::try_from(last + off).unwrap(), position)
                })
                .collect();
            entries.sort();
            let bytes = bytes(&entries);
            if check(&bytes, 0, &log).is_empty() {
                let entries = OffsetEntries::new(&bytes, 0);
                for (position, first, last) in &log.batches {
                    for offset in *first..=*last {
                        let start = u64::try_from(entries.lookup(offset).position).unwrap();
                        prop_assert!(start <= *position);
                        prop_assert!(log.batches.iter().any(|batch| batch.0 == start));
                    }
                    // No offset before a position reaches the bound of a fetch that ends there.
                    let end = i32::try_from(*position).unwrap();
                    if let Some(bound) = entries.fetch_upper_bound_offset(0, end) {
                        let before = log.batches.iter().filter(|batch| batch.0 < *position);
                        prop_assert!(before.into_iter().all(|batch| batch.2 < bound.offset));
                    }
                }
            }
        }

        #[test]
        fn an_index_as_kafka_writes_it_has_no_problems(
            log in logs(),
            picks in prop::collection::vec(any::<bool>(), 12),
        ) {
            let mut index = OffsetIndexBuilder::new(0, 4096).unwrap();
            let picked = log.batches.iter().zip(picks).filter(|(_, is_picked)| *is_picked);
            for ((position, _, last), _) in picked {
                index.append(*last, i32::try_from(*position).unwrap()).unwrap();
            }
            prop_assert_eq!(check(index.as_bytes(), 0, &log), vec![]);
        }

        #[test]
        fn any_bytes_can_be_checked(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            base in any::<i64>(),
            batches in prop::collection::vec((any::<u64>(), any::<i64>()), 0..20),
            end_position in any::<u64>(),
        ) {
            let mut check = OffsetIndexCheck::new(&bytes, base);
            for (position, last_offset) in batches {
                check.batch(position, last_offset);
            }
            for problem in check.finish(end_position) {
                prop_assert!(problem.position < u64::try_from(bytes.len()).unwrap());
            }
        }
    }
}
