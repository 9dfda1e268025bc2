//! From which byte of the log must a scan start to meet an offset? The offset index, `.index`.
//!
//! ```text
//! 0        4        8
//! | offset | position |   repeated; relative offset i32 = offset - base, position i32 in the .log
//! ```
//!
//! An entry holds the **last** offset of the batch at its position; up to Kafka 4.0.0 (KAFKA-806)
//! that of the last of all batches of one append, which begin there. While a segment is active its
//! file is preallocated, so the entries may be followed by zeros; [`check`](super::check) tells
//! them apart, these types take the bytes as they are.

use zerocopy::big_endian::I32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::entries::layout::Layout;
use super::entries::{End, Entries, IndexBuilder, check_last_offset, check_size, relative_offset};
use super::slots;
use crate::record::BatchHeader;
use crate::{Error, Kind, Result};

/// The bytes of one entry.
pub const ENTRY_SIZE: usize = 8;

/// An entry as it lies in the file.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawEntry {
    relative_offset: I32,
    position: I32,
}

const _: () = assert!(size_of::<RawEntry>() == ENTRY_SIZE);

impl RawEntry {
    pub(super) fn new(relative_offset: i32, position: i32) -> Self {
        RawEntry { relative_offset: relative_offset.into(), position: position.into() }
    }
}

/// An entry of an offset index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OffsetEntry {
    /// The last offset of the batch at `position`.
    pub offset: i64,
    /// The byte in the log where that batch starts; as stored, so negative only in a damaged file.
    pub position: i32,
}

impl OffsetEntry {
    /// Whether this may be the batch at the entry's position, in the segment at `base_offset`: that
    /// which ends at its offset or, from a broker before KAFKA-806, the first of those that were
    /// appended together and end there. All before it ends before the entry's offset, too.
    pub(crate) fn may_name(&self, header: &BatchHeader, base_offset: i64) -> bool {
        (base_offset..=self.offset).contains(&header.base_offset)
            && header.last_offset() <= self.offset
    }
}

impl Layout for OffsetEntry {
    type Raw = RawEntry;

    const INDEX_NAME: &'static str = "offset index";

    const SPARE_COUNT: usize = 0;

    #[inline]
    fn decode(raw: &RawEntry, base_offset: i64) -> Self {
        OffsetEntry {
            offset: base_offset.wrapping_add(i64::from(raw.relative_offset.get())),
            position: raw.position.get(),
        }
    }

    fn none(base_offset: i64) -> Self {
        OffsetEntry { offset: base_offset, position: 0 }
    }

    #[inline]
    fn offset(&self) -> i64 {
        self.offset
    }
}

/// The entries of an offset index, read where they lie.
///
/// ```
/// use siltstone::index::{OffsetEntries, OffsetEntry};
///
/// let bytes = [0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 200];
/// let entries = OffsetEntries::new(&bytes, 50);
/// assert_eq!(entries.lookup(60), OffsetEntry { offset: 55, position: 0 });
/// assert_eq!(entries.lookup(70), OffsetEntry { offset: 70, position: 200 });
/// assert_eq!(entries.lookup(51), OffsetEntry { offset: 50, position: 0 });
/// ```
pub type OffsetEntries<'a> = Entries<'a, OffsetEntry>;

impl Entries<'_, OffsetEntry> {
    /// The offset of the last entry, the base when there is none.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.last_or_none().offset
    }

    /// The last entry whose offset is at most `offset`: a scan from its position meets it. The base
    /// at position 0 when there is none.
    #[inline]
    #[must_use]
    pub fn lookup(&self, offset: i64) -> OffsetEntry {
        // spec: indexes 2.2
        slots::lower_bound(self.count(), offset, |slot| self.offset_at(slot))
            .and_then(|slot| self.get(slot))
            .unwrap_or(OffsetEntry::none(self.base_offset))
    }

    /// The first slot whose offset is at least `offset`; the count of entries when there is none.
    #[inline]
    #[must_use]
    pub fn slot_from_offset(&self, offset: i64) -> usize {
        let below = offset.saturating_sub(1);
        slots::lower_bound(self.count(), below, |slot| self.offset_at(slot))
            .map_or(0, |slot| slot + 1)
    }

    /// The first slot whose position is at least `position`; the count of entries when there is
    /// none.
    #[inline]
    #[must_use]
    pub fn slot_from_position(&self, position: i64) -> usize {
        let below = position.saturating_sub(1);
        let position_at = |slot: usize| {
            self.slots.get(slot).map_or(i64::MAX, |raw| i64::from(raw.position.get()))
        };
        slots::lower_bound(self.count(), below, position_at).map_or(0, |slot| slot + 1)
    }

    /// An entry behind the bytes of a fetch, so that no offset of the fetch reaches its offset;
    /// `None` when the index does not go that far.
    ///
    /// `position` is where the fetch starts in the log and `size_bytes` its size. Kafka quirk: the
    /// end is computed in 32 bits and wraps, and the first entry never counts as equal; a later
    /// bound only makes the fetch name more aborted transactions than it needs, and it must be the
    /// same bound as Kafka's.
    #[must_use]
    pub fn fetch_upper_bound_offset(&self, position: i32, size_bytes: i32) -> Option<OffsetEntry> {
        // spec: indexes 1.6, 2.2
        let target = i64::from(position.wrapping_add(size_bytes));
        let position_at = |slot: usize| {
            self.slots.get(slot).map_or(i64::MAX, |raw| i64::from(raw.position.get()))
        };
        self.get(slots::probe(self.count(), ENTRY_SIZE, target, position_at).upper?)
    }

    /// Kafka's own check, which looks at the last entry and the size only; [`check`](super::check)
    /// looks at all.
    pub fn sanity_check(&self) -> Result<()> {
        sanity_check(self.ends(), self.base_offset, self.stray_size_bytes())
    }
}

/// Kafka's own check of an index with these ends and so many stray bytes.
pub(crate) fn sanity_check(
    ends: Option<(OffsetEntry, OffsetEntry)>,
    base_offset: i64,
    stray_size: usize,
) -> Result<()> {
    // spec: indexes 2.2
    check_last_offset(ends.map(|(_, last)| last.offset), base_offset)?;
    check_size::<OffsetEntry>(stray_size)
}

impl End<OffsetEntry> {
    /// The entry that is appended, or why it is not: see [`IndexBuilder::append`].
    pub(crate) fn entry(&self, offset: i64, position: i32) -> Result<RawEntry> {
        // spec: indexes 2.2
        if self.is_full() {
            return Err(self.full());
        }
        if self.count > 0 && offset <= self.last.offset {
            let message = format!("offset index: {offset} after {}", self.last.offset);
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        Ok(RawEntry::new(relative_offset(self.base_offset, offset)?, position))
    }
}

/// An offset index that grows.
pub type OffsetIndexBuilder = IndexBuilder<OffsetEntry>;

impl IndexBuilder<OffsetEntry> {
    /// Appends an entry: `offset` is the last one of the batch at `position`.
    ///
    /// Fails, and changes nothing, with `Limit` when the index is full, `InvalidArgument` when the
    /// offset is not above the last one, and `OutOfRange` when it is no i32 above the base.
    pub fn append(&mut self, offset: i64, position: i32) -> Result<()> {
        let raw = self.end().entry(offset, position)?;
        self.push(&raw);
        Ok(())
    }

    /// The offset of the last entry, the base when there is none.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.last.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slot_from_an_offset_or_a_position_is_found() {
        let mut index = OffsetIndexBuilder::new(100, 80).unwrap();
        for (offset, position) in [(109, 0), (119, 500), (129, 1000)] {
            index.append(offset, position).unwrap();
        }
        let entries = index.entries();
        let from_offset = [0, 109, 110, 119, 129, 130].map(|it| entries.slot_from_offset(it));
        assert_eq!(from_offset, [0, 0, 1, 1, 2, 3]);
        let from_position = [0, 1, 500, 501, 1000, 1001].map(|it| entries.slot_from_position(it));
        assert_eq!(from_position, [0, 1, 1, 2, 2, 3]);
        let none = OffsetEntries::new(&[], 100);
        assert_eq!((none.slot_from_offset(5), none.slot_from_position(5)), (0, 0));
    }
    use proptest::prelude::*;

    /// An index of base 45 and 240 bytes, unless a row says otherwise.
    fn index(entries: &[(i64, i32)]) -> OffsetIndexBuilder {
        index_of(45, 240, entries)
    }

    fn index_of(base: i64, size: usize, entries: &[(i64, i32)]) -> OffsetIndexBuilder {
        let mut index = OffsetIndexBuilder::new(base, size).unwrap();
        for (offset, position) in entries {
            index.append(*offset, *position).unwrap();
        }
        index
    }

    fn at(offset: i64, position: i32) -> OffsetEntry {
        OffsetEntry { offset, position }
    }

    fn kind<T: std::fmt::Debug>(result: Result<T>) -> Kind {
        result.unwrap_err().kind()
    }

    #[test]
    fn an_empty_index_gives_its_base() {
        // spec: behaviours OI-001, OI-002, OI-010, OI-014
        let index = index(&[]);
        assert_eq!(index.entries().lookup(92), at(45, 0));
        assert_eq!((index.count(), index.is_full(), index.as_bytes().len()), (0, false, 0));
        assert_eq!(index.preallocated_size_bytes(), 240);
        assert_eq!(kind(index.entries().entry(0)), Kind::OutOfRange);
        assert_eq!(index.entries().fetch_upper_bound_offset(0, 5), None);
        assert_eq!(OffsetEntries::new(&[0; 240], 45).fetch_upper_bound_offset(0, 5), None);
    }

    #[test]
    fn an_index_of_thirty_entries_takes_thirty() {
        // spec: behaviours OI-003, OI-005, OI-006, OI-007
        let mut index = index(&[]);
        for i in 0..30 {
            assert!(!index.is_full());
            index.append(46 + i64::from(i), i).unwrap();
        }
        assert!(index.is_full());
        assert_eq!(kind(index.append(76, 30)), Kind::Limit);
        assert_eq!(index.entries().lookup(45), at(45, 0));
        for i in 0..30 {
            assert_eq!(index.entries().lookup(46 + i64::from(i)), at(46 + i64::from(i), i));
        }
        for offset in [75, 76, 1000, i64::MAX] {
            assert_eq!(index.entries().lookup(offset), at(75, 29));
        }
        assert_eq!(index.entries().lookup(i64::MIN), at(45, 0));
    }

    #[test]
    fn entries_come_back_in_order() {
        // spec: behaviours OI-009
        let index = index(&[(51, 0), (52, 1), (54, 2), (61, 3)]);
        let expected = [at(51, 0), at(52, 1), at(54, 2), at(61, 3)];
        assert!(index.entries().iter().eq(expected));
        assert_eq!(index.entries().entry(3).unwrap(), at(61, 3));
        assert_eq!(kind(index.entries().entry(4)), Kind::OutOfRange);
    }

    #[test]
    fn an_append_that_does_not_rise_changes_nothing() {
        // spec: behaviours OI-011
        let mut index = index(&[(51, 0)]);
        assert_eq!(kind(index.append(50, 1)), Kind::InvalidArgument);
        assert_eq!(kind(index.append(51, 1)), Kind::InvalidArgument);
        assert_eq!((index.count(), index.last_offset()), (1, 51));
    }

    #[test]
    fn the_first_offset_may_be_the_base() {
        // spec: behaviours OI-013
        let index = index(&[(45, 0)]);
        index.entries().sanity_check().unwrap();
        assert_eq!(index.as_bytes(), [0; 8]);
    }

    #[test]
    fn an_offset_that_is_no_i32_above_the_base_is_refused() {
        // spec: indexes 1.5
        let mut index = index(&[]);
        assert_eq!(kind(index.append(44, 0)), Kind::OutOfRange);
        assert_eq!(kind(index.append(46 + i64::from(i32::MAX), 0)), Kind::OutOfRange);
        index.append(45 + i64::from(i32::MAX), 0).unwrap();
        assert_eq!(index.as_bytes(), [0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]);
        let mut lowest = index_of(i64::MIN, 80, &[]);
        assert_eq!(kind(lowest.append(i64::MAX, 0)), Kind::OutOfRange);
    }

    #[test]
    fn the_checks_of_an_append_come_in_kafkas_order() {
        // spec: indexes 2.2
        let mut full = index_of(45, 8, &[(50, 0)]);
        assert_eq!(kind(full.append(44, 0)), Kind::Limit);
        let mut open = index_of(45, 16, &[(50, 0)]);
        assert_eq!(kind(open.append(44, 0)), Kind::InvalidArgument);
    }

    #[test]
    fn a_fetch_is_bounded_by_the_entry_behind_it() {
        // spec: behaviours OI-015, OI-017, OI-018, OI-019, OI-021
        let index = index(&[(45, 0), (46, 10), (47, 23), (48, 37)]);
        let bound = |position, size| index.entries().fetch_upper_bound_offset(position, size);
        assert_eq!(bound(0, 5), Some(at(46, 10)));
        assert_eq!(bound(0, 23), Some(at(47, 23)));
        assert_eq!(bound(0, 22), Some(at(47, 23)));
        assert_eq!(bound(10, 24), Some(at(48, 37)));
        assert_eq!(bound(0, 200), None);
        assert_eq!(bound(10, 200), None);
    }

    #[test]
    fn the_first_entry_is_never_the_bound_of_an_equal_position() {
        // spec: behaviours OI-038, OI-039
        assert_eq!(index(&[(50, 7)]).entries().fetch_upper_bound_offset(0, 7), None);
        let two = index(&[(50, 7), (60, 9)]);
        assert_eq!(two.entries().fetch_upper_bound_offset(0, 7), Some(at(60, 9)));
    }

    #[test]
    fn the_end_of_a_fetch_wraps_in_32_bits() {
        // spec: indexes 2.2
        let index = index(&[(45, 0), (46, 10)]);
        assert_eq!(index.entries().fetch_upper_bound_offset(i32::MAX, 1), Some(at(45, 0)));
    }

    #[test]
    fn a_closed_index_is_full_until_it_is_resized() {
        // spec: behaviours OI-022, OI-023
        let bytes = index(&[(51, 0), (52, 1)]).into_bytes();
        assert_eq!(bytes.len(), 16);
        let mut index = OffsetIndexBuilder::from_bytes(bytes, 45, 16).unwrap();
        assert_eq!((index.last_offset(), index.count()), (52, 2));
        assert_eq!(index.entries().lookup(51), at(51, 0));
        assert_eq!(index.entries().lookup(52), at(52, 1));
        assert_eq!(kind(index.append(53, 2)), Kind::Limit);
        assert!(index.resize(240).unwrap());
        index.append(53, 2).unwrap();
    }

    #[test]
    fn truncation_removes_every_entry_at_or_above_the_offset() {
        // spec: behaviours OI-025, OI-026, OI-027
        let ten: Vec<(i64, i32)> = (1..=10).map(|i| (i64::from(i), i)).collect();
        let mut index = index_of(0, 80, &ten);
        for (offset, last_offset, count) in [(10, 9, 9), (9, 8, 8), (5, 4, 4), (1, 0, 0)] {
            index.truncate_to(offset);
            assert_eq!((index.last_offset(), index.count()), (last_offset, count));
        }
    }

    #[test]
    fn truncation_keeps_what_the_numeric_examples_say() {
        // spec: indexes 7
        for (offset, count) in [(55, 1), (54, 1), (56, 2), (50, 0), (40, 0), (1000, 3)] {
            let mut index = index_of(50, 240, &[(50, 0), (55, 100), (70, 200)]);
            index.truncate_to(offset);
            assert_eq!(index.count(), count, "{offset}");
        }
    }

    #[test]
    fn an_appended_entry_replaces_what_truncation_removed() {
        let mut index = index(&[(50, 1), (60, 2)]);
        index.truncate_to(55);
        index.append(51, 3).unwrap();
        assert!(index.entries().iter().eq([at(50, 1), at(51, 3)]));
        index.clear();
        index.append(45, 9).unwrap();
        assert_eq!(index.last_offset(), 45);
    }

    #[test]
    fn sizes_are_rounded_down_to_whole_entries() {
        // spec: behaviours OI-030, OI-031
        assert_eq!(index_of(45, 67, &[]).preallocated_size_bytes(), 64);
        assert_eq!(kind(OffsetIndexBuilder::new(45, 7)), Kind::InvalidArgument);
    }

    #[test]
    fn a_resize_never_loses_entries() {
        // spec: behaviours OI-033, OI-034
        let mut empty = index(&[]);
        assert!(empty.resize(120).unwrap());
        assert_eq!((empty.count(), empty.max_count()), (0, 15));
        assert!(empty.resize(240).unwrap());
        assert!(!empty.resize(247).unwrap());
        assert_eq!(empty.max_count(), 30);
        let thirty: Vec<(i64, i32)> = (0..30).map(|i| (46 + i64::from(i), i)).collect();
        let mut full = index(&thirty);
        assert_eq!(kind(full.resize(80)), Kind::InvalidArgument);
        assert_eq!((full.count(), full.max_count()), (30, 30));
    }

    #[test]
    fn stray_bytes_are_no_entry_but_fail_the_check() {
        // spec: behaviours OI-035
        let mut bytes = vec![0; 245];
        bytes[3] = 1;
        let entries = OffsetEntries::new(&bytes, 45);
        assert_eq!((entries.count(), entries.stray_size_bytes()), (30, 5));
        assert_eq!(kind(entries.sanity_check()), Kind::Corrupt);
    }

    #[test]
    fn a_last_entry_below_the_base_fails_the_check() {
        // spec: indexes 2.2
        let bytes = [0, 0, 0, 1, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFB, 0, 0, 1, 0x2C];
        let entries = OffsetEntries::new(&bytes, 45);
        assert_eq!(entries.get(1), Some(at(40, 300)));
        assert_eq!(kind(entries.sanity_check()), Kind::Corrupt);
    }

    #[test]
    fn every_offset_is_found_in_and_out_of_the_warm_section() {
        // spec: behaviours OI-037
        let many: Vec<(i64, i32)> = (0..2000).map(|i| (46 + 2 * i64::from(i), i)).collect();
        let index = index_of(45, 16_000, &many);
        for offset in 40..4050 {
            let plain = many.iter().rev().find(|(o, _)| *o <= offset).copied().unwrap_or((45, 0));
            assert_eq!(index.entries().lookup(offset), at(plain.0, plain.1), "{offset}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_into(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            base in any::<i64>(),
            target in any::<i64>(),
            position in any::<i32>(),
            size in any::<i32>(),
        ) {
            let entries = OffsetEntries::new(&bytes, base);
            let found = entries.lookup(target);
            prop_assert!(found == at(base, 0) || entries.iter().any(|entry| entry == found));
            prop_assert!(entries.count_below(target) <= entries.count());
            let _ = entries.fetch_upper_bound_offset(position, size);
            let _ = entries.sanity_check();
            prop_assert_eq!(entries.get(entries.count()), None);
        }

        #[test]
        fn what_was_appended_is_found_again(
            steps in prop::collection::vec((1i64..1000, 0i32..100_000), 0..500),
            base in 0i64..1 << 40,
        ) {
            let mut index = OffsetIndexBuilder::new(base, 4096 * ENTRY_SIZE).unwrap();
            let (mut offset, mut position) = (base, 0);
            let mut expected = Vec::new();
            for (offset_step, position_step) in steps {
                offset += offset_step;
                position += position_step;
                index.append(offset, position).unwrap();
                expected.push(at(offset, position));
            }
            let reopened =
                OffsetIndexBuilder::from_bytes(index.as_bytes().to_vec(), base, 4096 * 8).unwrap();
            prop_assert!(reopened.entries().iter().eq(expected.iter().copied()));
            for entry in expected {
                prop_assert_eq!(reopened.entries().lookup(entry.offset), entry);
            }
        }
    }
}
