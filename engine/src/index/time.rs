//! From which offset must a scan start to meet a timestamp? The time index, `.timeindex`.
//!
//! ```text
//! 0            8        12
//! | timestamp  | offset |   repeated; timestamp i64 in ms, relative offset i32 = offset - base
//! ```
//!
//! An entry holds the largest timestamp so far in the segment and the **last** offset of the batch
//! that carries it. So a record with a larger timestamp has a larger offset, and timestamps rise
//! from entry to entry. The last entry of a closed segment tells its largest timestamp. As with the
//! offset index, zeros may follow while the segment is active.

use zerocopy::big_endian::{I32, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::entries::layout::Layout;
use super::entries::{End, Entries, IndexBuilder, check_last_offset, check_size, relative_offset};
use super::slots;
use crate::units::NO_TIMESTAMP;
use crate::{Error, Kind, Result};

/// The bytes of one entry.
pub const ENTRY_SIZE: usize = 12;

/// An entry as it lies in the file.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawEntry {
    timestamp_ms: I64,
    relative_offset: I32,
}

const _: () = assert!(size_of::<RawEntry>() == ENTRY_SIZE);

impl RawEntry {
    pub(super) fn new(timestamp_ms: i64, relative_offset: i32) -> Self {
        RawEntry { timestamp_ms: timestamp_ms.into(), relative_offset: relative_offset.into() }
    }
}

/// An entry of a time index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeEntry {
    /// The largest timestamp of the segment up to `offset`, in milliseconds; -1 for none.
    pub timestamp_ms: i64,
    /// The last offset of the batch that carries it.
    pub offset: i64,
}

impl Layout for TimeEntry {
    type Raw = RawEntry;

    const INDEX_NAME: &'static str = "time index";

    const SPARE_COUNT: usize = 1;

    #[inline]
    fn decode(raw: &RawEntry, base_offset: i64) -> Self {
        TimeEntry {
            timestamp_ms: raw.timestamp_ms.get(),
            offset: base_offset.wrapping_add(i64::from(raw.relative_offset.get())),
        }
    }

    fn none(base_offset: i64) -> Self {
        TimeEntry { timestamp_ms: NO_TIMESTAMP, offset: base_offset }
    }

    #[inline]
    fn offset(&self) -> i64 {
        self.offset
    }
}

/// The entries of a time index, read where they lie.
pub type TimeEntries<'a> = Entries<'a, TimeEntry>;

impl Entries<'_, TimeEntry> {
    /// The last entry; timestamp -1 at the base offset when there is none.
    #[must_use]
    pub fn last(&self) -> TimeEntry {
        self.last_or_none()
    }

    /// The last entry whose timestamp is at most `timestamp_ms`: no record before its batch is that
    /// late or later. Timestamp -1 at the base offset when there is none.
    #[inline]
    #[must_use]
    pub fn lookup(&self, timestamp_ms: i64) -> TimeEntry {
        // spec: indexes 3.2
        slots::lower_bound(self.count(), timestamp_ms, |slot| {
            self.slots.get(slot).map_or(i64::MAX, |raw| raw.timestamp_ms.get())
        })
        .and_then(|slot| self.get(slot))
        .unwrap_or(TimeEntry::none(self.base_offset))
    }

    /// Kafka's own check, which looks at the ends and the size only; [`check`](super::check) looks
    /// at all.
    pub fn sanity_check(&self) -> Result<()> {
        sanity_check(self.ends(), self.base_offset, self.stray_size_bytes())
    }
}

/// Kafka's own check of an index with these ends and so many stray bytes.
pub(crate) fn sanity_check(
    ends: Option<(TimeEntry, TimeEntry)>,
    base_offset: i64,
    stray_size: usize,
) -> Result<()> {
    // spec: indexes 3.2
    let goes_back = |(first, last): &(TimeEntry, TimeEntry)| last.timestamp_ms < first.timestamp_ms;
    if let Some((first, last)) = ends.filter(goes_back) {
        let (last, first) = (last.timestamp_ms, first.timestamp_ms);
        let message = format!("the last timestamp {last} is below the first {first}");
        return Err(Error::corrupt(message));
    }
    check_last_offset(ends.map(|(_, last)| last.offset), base_offset)?;
    check_size::<TimeEntry>(stray_size)
}

impl End<TimeEntry> {
    /// The entry that is appended, `None` when it says nothing new, or why it is not: see
    /// [`IndexBuilder::maybe_append`].
    pub(crate) fn entry(
        &self,
        timestamp_ms: i64,
        offset: i64,
        skip_full_check: bool,
    ) -> Result<Option<RawEntry>> {
        // spec: indexes 3.2; the order of the checks decides which error a caller sees.
        let last = self.last;
        if !skip_full_check && self.is_full() {
            return Err(self.full());
        }
        if self.count > 0 && offset < last.offset {
            let message = format!("time index: offset {offset} after {}", last.offset);
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        if self.count > 0 && timestamp_ms < last.timestamp_ms {
            let message =
                format!("time index: timestamp {timestamp_ms} after {}", last.timestamp_ms);
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        if timestamp_ms <= last.timestamp_ms {
            return Ok(None);
        }
        if self.count >= self.max_count {
            return Err(self.full());
        }
        Ok(Some(RawEntry::new(timestamp_ms, relative_offset(self.base_offset, offset)?)))
    }
}

/// A time index that grows.
pub type TimeIndexBuilder = IndexBuilder<TimeEntry>;

impl IndexBuilder<TimeEntry> {
    /// Appends the largest timestamp so far and the last offset of its batch, and says whether it
    /// was new: the same timestamp again, and none (-1), leave the index as it is.
    ///
    /// The last slot is kept for the entry that is forced on roll and close, with
    /// `skip_full_check`.
    ///
    /// Fails, and changes nothing, with `Limit` when the index is full, `InvalidArgument` when
    /// offset or timestamp go back, and `OutOfRange` when the offset is no i32 above the base.
    pub fn maybe_append(
        &mut self,
        timestamp_ms: i64,
        offset: i64,
        skip_full_check: bool,
    ) -> Result<bool> {
        let Some(raw) = self.end().entry(timestamp_ms, offset, skip_full_check)? else {
            return Ok(false);
        };
        self.push(&raw);
        Ok(true)
    }

    /// The last entry; timestamp -1 at the base offset when there is none.
    #[must_use]
    pub fn last(&self) -> TimeEntry {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An index of base 45 and 30 entries.
    fn index(entries: &[(i64, i64)]) -> TimeIndexBuilder {
        let mut index = TimeIndexBuilder::new(45, 360).unwrap();
        for (timestamp, offset) in entries {
            assert!(index.maybe_append(*timestamp, *offset, false).unwrap());
        }
        index
    }

    /// The entries (10, 55), (20, 65) and so on.
    fn tens(count: i64) -> TimeIndexBuilder {
        index(&(1..=count).map(|i| (10 * i, 45 + 10 * i)).collect::<Vec<_>>())
    }

    fn at(timestamp_ms: i64, offset: i64) -> TimeEntry {
        TimeEntry { timestamp_ms, offset }
    }

    fn kind<T: std::fmt::Debug>(result: Result<T>) -> Kind {
        result.unwrap_err().kind()
    }

    #[test]
    fn an_empty_index_gives_no_timestamp_at_its_base() {
        // spec: behaviours TI-001, TI-006
        let index = index(&[]);
        assert_eq!(index.entries().lookup(100), at(-1, 45));
        assert_eq!(kind(index.entries().entry(0)), Kind::OutOfRange);
    }

    #[test]
    fn a_timestamp_finds_the_entry_at_or_below_it() {
        // spec: behaviours TI-002, TI-003, TI-005; indexes 7
        let index = tens(29);
        let entries = index.entries();
        assert_eq!(entries.lookup(9), at(-1, 45));
        assert_eq!(entries.lookup(10), at(10, 55));
        assert_eq!(entries.lookup(25), at(20, 65));
        assert_eq!(entries.lookup(1000), at(290, 335));
        for (slot, expected) in [at(10, 55), at(20, 65), at(30, 75), at(40, 85)].iter().enumerate()
        {
            assert_eq!(entries.entry(slot).unwrap(), *expected);
        }
    }

    #[test]
    fn the_last_slot_is_kept_for_roll_and_close() {
        // spec: behaviours TI-007, TI-009, TI-010
        assert!(!tens(28).is_full());
        let mut index = tens(29);
        assert!(index.is_full());
        assert_eq!(kind(index.maybe_append(10_000, 1000, false)), Kind::Limit);
        assert_eq!(kind(index.maybe_append(10_000, 280, true)), Kind::InvalidArgument);
        assert!(index.maybe_append(10_000, 1000, true).unwrap());
        assert_eq!((index.count(), index.last()), (30, at(10_000, 1000)));
        assert_eq!(kind(index.maybe_append(20_000, 2000, true)), Kind::Limit);
        assert_eq!(index.last(), at(10_000, 1000));
    }

    #[test]
    fn the_checks_of_an_append_come_in_kafkas_order() {
        // spec: indexes 3.2
        let mut full = tens(29);
        assert_eq!(kind(full.maybe_append(290, 335, false)), Kind::Limit);
        assert!(!full.maybe_append(290, 335, true).unwrap());
        let mut open = tens(1);
        let message = open.maybe_append(5, 50, false).unwrap_err().to_string();
        assert_eq!(message, "time index: offset 50 after 55");
        let message = open.maybe_append(5, 60, false).unwrap_err().to_string();
        assert_eq!(message, "time index: timestamp 5 after 10");
        // What adds no entry needs no offset that fits.
        assert!(!open.maybe_append(10, i64::MAX, false).unwrap());
        assert_eq!(kind(open.maybe_append(11, i64::MAX, false)), Kind::OutOfRange);
        assert_eq!(open.last(), at(10, 55));
    }

    #[test]
    fn the_first_entry_may_lie_anywhere_above_the_base() {
        let mut index = index(&[]);
        assert_eq!(kind(index.maybe_append(1, 44, false)), Kind::OutOfRange);
        assert!(index.maybe_append(1, 45 + i64::from(i32::MAX), false).unwrap());
        assert_eq!(index.as_bytes(), [0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 0xFF, 0xFF, 0xFF]);
    }

    #[test]
    fn truncation_removes_every_entry_at_or_above_the_offset() {
        // spec: behaviours TI-011, TI-013; indexes 7
        for (offset, count) in [(65, 1), (60, 1), (55, 0), (40, 0), (335, 28), (336, 29)] {
            let mut index = tens(29);
            index.truncate_to(offset);
            assert_eq!(index.count(), count, "{offset}");
        }
        let mut index = tens(29);
        index.truncate_to(60);
        assert_eq!(index.last(), at(10, 55));
        index.clear();
        assert_eq!((index.count(), index.last()), (0, at(-1, 45)));
    }

    #[test]
    fn only_a_larger_timestamp_makes_an_entry() {
        // spec: behaviours TI-014, TI-015, TI-017, TI-018
        let mut index = index(&[]);
        assert_eq!(index.last(), at(-1, 45));
        assert!(!index.maybe_append(-1, 50, false).unwrap());
        assert_eq!(index.count(), 0);
        assert!(index.maybe_append(1, 46, false).unwrap());
        assert_eq!(index.last(), at(1, 46));
        let mut ten = tens(1);
        assert!(!ten.maybe_append(10, 70, false).unwrap());
        assert_eq!((ten.count(), ten.last()), (1, at(10, 55)));
        let mut zero = TimeIndexBuilder::new(45, 360).unwrap();
        assert!(zero.maybe_append(0, 45, false).unwrap());
        assert!(zero.entries().iter().eq([at(0, 45)]));
    }

    #[test]
    fn a_resize_says_whether_the_length_changes() {
        // spec: behaviours TI-019, TI-023
        let mut index = index(&[]);
        assert!(!index.resize(360).unwrap());
        assert!(index.resize(180).unwrap());
        assert!(index.resize(360).unwrap());
        assert_eq!(kind(tens(29).resize(180)), Kind::InvalidArgument);
        let default = TimeIndexBuilder::new(0, 10_485_760).unwrap();
        assert_eq!(default.preallocated_size_bytes(), 10_485_756);
        assert_eq!(kind(TimeIndexBuilder::new(0, 11)), Kind::InvalidArgument);
    }

    #[test]
    fn an_index_of_one_slot_is_full_from_the_start() {
        // spec: indexes 1.3
        let mut index = TimeIndexBuilder::new(45, 23).unwrap();
        assert!(index.is_full());
        assert!(index.maybe_append(5, 50, true).unwrap());
    }

    #[test]
    fn wrong_ends_and_stray_bytes_fail_the_check() {
        // spec: behaviours TI-021, TI-022
        let mut bytes = tens(2).into_bytes();
        bytes.rotate_left(ENTRY_SIZE);
        assert_eq!(kind(TimeEntries::new(&bytes, 45).sanity_check()), Kind::Corrupt);
        assert_eq!(kind(TimeEntries::new(&[0], 45).sanity_check()), Kind::Corrupt);
        let mut below = tens(2).into_bytes();
        below[20] = 0x80;
        assert_eq!(kind(TimeEntries::new(&below, 45).sanity_check()), Kind::Corrupt);
        tens(2).entries().sanity_check().unwrap();
        index(&[]).entries().sanity_check().unwrap();
    }

    #[test]
    fn a_preallocated_file_is_full_of_zero_entries() {
        // spec: behaviours TI-025
        let mut index = TimeIndexBuilder::from_bytes(vec![0; 360], 45, 360).unwrap();
        assert_eq!((index.count(), index.last()), (30, at(0, 45)));
        assert_eq!(kind(index.maybe_append(5, 50, false)), Kind::Limit);
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_into(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            base in any::<i64>(),
            target in any::<i64>(),
        ) {
            let entries = TimeEntries::new(&bytes, base);
            let found = entries.lookup(target);
            prop_assert!(found == at(-1, base) || entries.iter().any(|entry| entry == found));
            prop_assert!(entries.count_below(target) <= entries.count());
            let _ = entries.sanity_check();
        }

        #[test]
        fn no_record_is_later_than_the_entry_before_it(
            stamps in prop::collection::vec(-1i64..10_000, 1..300),
            target in -1i64..10_000,
        ) {
            // One record an offset; every third is followed by an index entry.
            let mut index = TimeIndexBuilder::new(0, 4096 * ENTRY_SIZE).unwrap();
            let mut largest = at(-1, 0);
            for (offset, stamp) in (0..).zip(&stamps) {
                if *stamp > largest.timestamp_ms {
                    largest = at(*stamp, offset);
                }
                if offset % 3 == 0 {
                    index.maybe_append(largest.timestamp_ms, largest.offset, false).unwrap();
                }
            }
            let start = usize::try_from(index.entries().lookup(target).offset).unwrap();
            let first = stamps.iter().position(|stamp| *stamp >= target);
            prop_assert!(first.is_none_or(|first| start <= first));
        }
    }
}
