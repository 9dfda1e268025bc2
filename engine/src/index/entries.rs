//! What offset and time index share: entries that are read where they lie, and an index that grows.

use std::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::slots;
use crate::{Error, Kind, Result, units};

/// An entry of an offset or time index. Nobody else can have one: the layouts are Kafka's.
pub trait IndexEntry: Copy + fmt::Debug + layout::Layout {}

impl<E: layout::Layout + Copy + fmt::Debug> IndexEntry for E {}

pub(super) mod layout {
    use super::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

    /// How an entry lies in its file.
    pub trait Layout: Sized {
        /// Its bytes.
        type Raw: Copy + FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned;

        /// What an index of such entries is called.
        const INDEX_NAME: &'static str;

        /// The slots that stay free until the segment is closed.
        const SPARE_COUNT: usize;

        /// The entry, of the segment at `base_offset`.
        fn decode(raw: &Self::Raw, base_offset: i64) -> Self;

        /// What stands for an entry where there is none.
        fn none(base_offset: i64) -> Self;

        /// The offset that it holds.
        fn offset(&self) -> i64;
    }
}

/// The entries of an offset or time index, read where they lie.
///
/// Every slot up to the end of the bytes counts as an entry, as in a file that Kafka opens; bytes
/// too few for one more are left out.
#[derive(Clone, Copy)]
pub struct Entries<'a, E: IndexEntry> {
    pub(super) base_offset: i64,
    pub(super) slots: &'a [E::Raw],
    stray_size: usize,
}

impl<'a, E: IndexEntry> Entries<'a, E> {
    /// The entries in `bytes`, of the segment that starts at `base_offset`.
    #[must_use]
    pub fn new(bytes: &'a [u8], base_offset: i64) -> Self {
        let (slots, stray_size) = slots::view(bytes);
        Entries { base_offset, slots, stray_size }
    }

    /// The offset that the entries are relative to.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// How many entries there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The bytes behind the last whole entry, fewer than one entry has.
    #[must_use]
    pub fn stray_size_bytes(&self) -> usize {
        self.stray_size
    }

    /// The entry in a slot; `None` behind the last.
    #[inline]
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<E> {
        self.slots.get(slot).map(|raw| E::decode(raw, self.base_offset))
    }

    /// The entry in a slot; an `OutOfRange` error behind the last.
    pub fn entry(&self, slot: usize) -> Result<E> {
        self.get(slot).ok_or_else(|| {
            let count = self.count();
            let message = format!("there is no entry {slot} in an index of {count}");
            Error::new(Kind::OutOfRange, message)
        })
    }

    /// Every entry, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = E> + '_ {
        self.slots.iter().map(|raw| E::decode(raw, self.base_offset))
    }

    /// The last entry; what stands for one when there is none.
    pub(super) fn last_or_none(&self) -> E {
        self.slots
            .last()
            .map_or_else(|| E::none(self.base_offset), |raw| E::decode(raw, self.base_offset))
    }

    /// How many entries stay when the log is cut at `offset`: those below it.
    ///
    /// Where several entries of a time index have the same offset, Kafka's probe order decides
    /// among them.
    #[must_use]
    pub fn count_below(&self, offset: i64) -> usize {
        // spec: indexes 2.2, 3.2
        let offset_at = |slot: usize| self.offset_at(slot);
        match slots::probe(self.count(), size_of::<E::Raw>(), offset, offset_at).lower {
            None => 0,
            Some(slot) if self.offset_at(slot) == offset => slot,
            Some(slot) => slot + 1,
        }
    }

    #[inline]
    pub(super) fn offset_at(&self, slot: usize) -> i64 {
        self.get(slot).map_or(i64::MAX, |entry| entry.offset())
    }

    /// The first entry and the last one.
    pub(super) fn ends(&self) -> Option<(E, E)> {
        Some((self.get(0)?, self.get(self.count().checked_sub(1)?)?))
    }
}

/// The part of Kafka's own check that is the same for both indexes.
pub(crate) fn check_size<E: IndexEntry>(stray_size: usize) -> Result<()> {
    if stray_size == 0 {
        return Ok(());
    }
    let size = size_of::<E::Raw>();
    let message = format!("the size is no multiple of {size}: {stray_size} bytes too many");
    Err(Error::corrupt(message))
}

/// The part of it that looks at the offset of the last entry, where there is one.
pub(crate) fn check_last_offset(last_offset: Option<i64>, base: i64) -> Result<()> {
    let Some(last) = last_offset.filter(|last| *last < base) else { return Ok(()) };
    let message = format!("the last entry's offset {last} is below the base offset {base}");
    Err(Error::corrupt(message))
}

/// The end of an index, which an append is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End<E> {
    pub base_offset: i64,
    pub count: usize,
    pub max_count: usize,
    /// What stands for an entry where there is none.
    pub last: E,
}

impl<E: IndexEntry> End<E> {
    /// Whether no entry can be appended, but for the one that a time index keeps for roll and
    /// close.
    pub(crate) fn is_full(&self) -> bool {
        // spec: indexes 1.3
        self.count + E::SPARE_COUNT >= self.max_count
    }

    pub(super) fn full(&self) -> Error {
        let (name, count) = (E::INDEX_NAME, self.count);
        Error::new(Kind::Limit, format!("the {name} is full with {count} entries"))
    }
}

impl<E: IndexEntry> fmt::Debug for Entries<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An offset or time index that grows.
#[derive(Clone, Debug)]
pub struct IndexBuilder<E: IndexEntry> {
    pub(super) base_offset: i64,
    max_count: usize,
    pub(super) last: E,
    bytes: Vec<u8>,
}

impl<E: IndexEntry> IndexBuilder<E> {
    const ENTRY_SIZE: usize = size_of::<E::Raw>();

    /// An empty index for the segment at `base_offset`, of at most `max_size_bytes` (Kafka's
    /// `segment.index.bytes`).
    ///
    /// Fails with `InvalidArgument` when that is less than one entry.
    pub fn new(base_offset: i64, max_size_bytes: usize) -> Result<Self> {
        Self::from_bytes(Vec::new(), base_offset, max_size_bytes)
    }

    /// The index whose entries are `bytes`, to be appended to; stray bytes at the end are dropped.
    ///
    /// Fails with `InvalidArgument` when `max_size_bytes` is less than one entry or less than
    /// `bytes` hold.
    pub fn from_bytes(mut bytes: Vec<u8>, base_offset: i64, max_size_bytes: usize) -> Result<Self> {
        let last = Entries::<E>::new(&bytes, base_offset).last_or_none();
        bytes.truncate(bytes.len() / Self::ENTRY_SIZE * Self::ENTRY_SIZE);
        let mut index = IndexBuilder { base_offset, max_count: 0, last, bytes };
        if max_size_bytes < Self::ENTRY_SIZE {
            let message = format!("an index of {max_size_bytes} bytes cannot hold one entry");
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        index.resize(max_size_bytes)?;
        Ok(index)
    }

    /// Appends an entry that was checked.
    pub(super) fn push(&mut self, raw: &E::Raw) {
        self.bytes.extend_from_slice(raw.as_bytes());
        self.last = E::decode(raw, self.base_offset);
    }

    /// Removes every entry at or above `offset`.
    pub fn truncate_to(&mut self, offset: i64) {
        let count = self.entries().count_below(offset);
        self.bytes.truncate(count * Self::ENTRY_SIZE);
        self.last = self.entries().last_or_none();
    }

    /// Removes every entry.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.last = E::none(self.base_offset);
    }

    /// Sets the largest size, and says whether that changes the file's preallocated length.
    ///
    /// Fails with `InvalidArgument`, and changes nothing, when the entries need more.
    pub fn resize(&mut self, max_size_bytes: usize) -> Result<bool> {
        // spec: indexes 1.4
        let (max_count, count) = (max_size_bytes / Self::ENTRY_SIZE, self.count());
        if max_count < count {
            let message =
                format!("{max_size_bytes} bytes cannot hold the {count} entries there are");
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        let is_changed = max_count != self.max_count;
        self.max_count = max_count;
        Ok(is_changed)
    }

    /// The entries so far.
    #[must_use]
    pub fn entries(&self) -> Entries<'_, E> {
        Entries::new(&self.bytes, self.base_offset)
    }

    /// How many entries there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.bytes.len() / Self::ENTRY_SIZE
    }

    /// How many entries there may be; of a time index, with the one that is kept for roll and
    /// close.
    #[must_use]
    pub fn max_count(&self) -> usize {
        self.max_count
    }

    /// Whether no entry can be appended, but for the one that a time index keeps for roll and
    /// close; the segment is rolled then.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.end().is_full()
    }

    pub(super) fn end(&self) -> End<E> {
        let (count, max_count) = (self.count(), self.max_count);
        End { base_offset: self.base_offset, count, max_count, last: self.last }
    }

    /// The length that the file has while the segment is active, zeros behind the entries.
    #[must_use]
    pub fn preallocated_size_bytes(&self) -> usize {
        self.max_count * Self::ENTRY_SIZE
    }

    /// The bytes of the entries: the file as it is once the segment is closed.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same bytes, owned.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// `offset` as an index of the segment at `base_offset` stores it.
pub(super) fn relative_offset(base_offset: i64, offset: i64) -> Result<i32> {
    // spec: indexes 1.5
    offset
        .checked_sub(base_offset)
        .filter(|_| units::is_addressable(base_offset, offset))
        .and_then(|relative| i32::try_from(relative).ok())
        .ok_or_else(|| {
            Error::new(
                Kind::OutOfRange,
                format!("offset {offset} cannot be stored relative to base offset {base_offset}"),
            )
        })
}
