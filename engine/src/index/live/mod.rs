//! How is an index searched while it grows? Entries of an offset or time index in memory, for one
//! writer and any number of readers that wait for nobody.
//!
//! A reader takes the count of entries, searches those, and looks whether entries were removed
//! meanwhile: then it begins again. Entries that are only added do not disturb it.

mod words;

use std::fmt;

use self::words::Words;
use super::entries::IndexEntry;
use super::entries::layout::Layout;
use super::{OffsetEntry, TimeEntry, offset, slots, time};
use crate::sync::atomic::{AtomicU64, Ordering, fence};

/// What is added to the state when entries are removed, and what is set in it at the end. The
/// count of entries is below.
const ONE_REMOVAL: u64 = 1 << 33;
const CLOSED: u64 = 1 << 32;

/// An entry that stands in words.
pub trait LiveEntry: IndexEntry {
    /// How many words: 1 or 2.
    #[doc(hidden)]
    const WIDTH: usize;

    /// The words; one that is not used is 0.
    #[doc(hidden)]
    fn words(raw: &Self::Raw) -> [u64; 2];

    /// The entry as it lies in its file.
    #[doc(hidden)]
    fn raw(words: [u64; 2]) -> Self::Raw;

    /// What entries are searched by, as it stands in the first word.
    #[doc(hidden)]
    fn key(first: u64) -> i64;

    /// A key that is looked for, as it would stand there.
    #[doc(hidden)]
    fn target(key: i64, base_offset: i64) -> i64;
}

impl LiveEntry for OffsetEntry {
    const WIDTH: usize = 1;

    fn words(raw: &offset::RawEntry) -> [u64; 2] {
        [zerocopy::transmute!(*raw), 0].map(u64::from_be)
    }

    fn raw(words: [u64; 2]) -> offset::RawEntry {
        let [word, _] = words.map(u64::to_be);
        zerocopy::transmute!(word)
    }

    #[inline]
    fn key(first: u64) -> i64 {
        first.cast_signed() >> 32
    }

    #[inline]
    fn target(key: i64, base_offset: i64) -> i64 {
        key.saturating_sub(base_offset)
    }
}

impl LiveEntry for TimeEntry {
    const WIDTH: usize = 2;

    fn words(raw: &time::RawEntry) -> [u64; 2] {
        let entry = TimeEntry::decode(raw, 0);
        [entry.timestamp_ms.cast_unsigned(), entry.offset.cast_unsigned()]
    }

    fn raw(words: [u64; 2]) -> time::RawEntry {
        let [timestamp, offset] = words.map(u64::cast_signed);
        time::RawEntry::new(timestamp, i32::try_from(offset).unwrap_or(0))
    }

    #[inline]
    fn key(first: u64) -> i64 {
        first.cast_signed()
    }

    #[inline]
    fn target(key: i64, _base_offset: i64) -> i64 {
        key
    }
}

/// The entries of an index that is open.
pub struct LiveEntries<E: LiveEntry> {
    base_offset: i64,
    /// Removals, whether it is closed, and the count of entries.
    state: AtomicU64,
    words: Words,
    _entry: std::marker::PhantomData<fn() -> E>,
}

impl<E: LiveEntry> LiveEntries<E> {
    /// The entries in `bytes`, of the segment that starts at `base_offset`; bytes too few for one
    /// more are left out.
    #[must_use]
    pub fn new(bytes: &[u8], base_offset: i64) -> Self {
        let (raw, _) = slots::view::<E::Raw>(bytes);
        let words = raw.iter().flat_map(|raw| E::words(raw).into_iter().take(E::WIDTH));
        // More entries than a number of 32 bits counts are in no file that is opened.
        let count = u32::try_from(raw.len()).unwrap_or(u32::MAX);
        LiveEntries {
            base_offset,
            state: AtomicU64::new(u64::from(count)),
            words: Words::new(words),
            _entry: std::marker::PhantomData,
        }
    }

    /// The offset that the entries are relative to.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// How many entries there are; `None` when the index is closed.
    #[must_use]
    pub fn count(&self) -> Option<u32> {
        let state = self.state.load(Ordering::Acquire);
        (state & CLOSED == 0).then_some(count_of(state))
    }

    /// Looks at the entries that there are at one moment; `None` when the index is closed.
    #[inline]
    fn look<T>(&self, look: impl Fn(usize) -> T) -> Option<T> {
        loop {
            let before = self.state.load(Ordering::Acquire);
            if before & CLOSED != 0 {
                return None;
            }
            let found = look(usize::try_from(count_of(before)).unwrap_or(0));
            // Who has seen a word that was written over sees the removal before it, too.
            fence(Ordering::Acquire);
            let after = self.state.load(Ordering::Relaxed);
            if before >> 32 == after >> 32 {
                return Some(found);
            }
        }
    }

    #[inline]
    fn key_at(&self, slot: usize) -> i64 {
        E::key(self.words.get(slot * E::WIDTH))
    }

    #[inline]
    fn at(&self, slot: usize) -> E {
        let second = if E::WIDTH > 1 { self.words.get(slot * E::WIDTH + 1) } else { 0 };
        E::decode(&E::raw([self.words.get(slot * E::WIDTH), second]), self.base_offset)
    }

    /// The last entry whose offset, or timestamp, is at most `key`; what stands for one where there
    /// is none. `None` when the index is closed.
    #[inline]
    #[must_use]
    pub fn lookup(&self, key: i64) -> Option<E> {
        // spec: indexes 2.2, 3.2
        let target = E::target(key, self.base_offset);
        self.look(|count| {
            slots::lower_bound(count, target, |slot| self.key_at(slot))
                .map_or_else(|| E::none(self.base_offset), |slot| self.at(slot))
        })
    }

    /// The entry in a slot, and `None` behind the last one; `None` when the index is closed.
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<Option<E>> {
        self.look(|count| (slot < count).then(|| self.at(slot)))
    }

    /// The first entry and the last one, if there are any; `None` when the index is closed.
    #[must_use]
    pub fn ends(&self) -> Option<Option<(E, E)>> {
        self.look(|count| count.checked_sub(1).map(|last| (self.at(0), self.at(last))))
    }

    /// How many entries stay when the log is cut at `offset`, as
    /// [`Entries::count_below`](super::Entries::count_below) says. The writer's.
    #[must_use]
    pub fn count_below(&self, offset: i64) -> u32 {
        // spec: indexes 2.2, 3.2
        let count = count_of(self.state.load(Ordering::Relaxed));
        let offset_at = |slot: usize| self.at(slot).offset();
        let slots = usize::try_from(count).unwrap_or(0);
        let kept = match slots::probe(slots, size_of::<E::Raw>(), offset, offset_at).lower {
            None => 0,
            Some(slot) if offset_at(slot) == offset => slot,
            Some(slot) => slot + 1,
        };
        u32::try_from(kept).unwrap_or(count)
    }

    /// Adds an entry, and says whether there was room in memory for its number. One writer at a
    /// time.
    pub fn push(&self, raw: &E::Raw) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        let at = usize::try_from(count_of(state)).unwrap_or(0).saturating_mul(E::WIDTH);
        let words = E::words(raw);
        let is_set =
            words.iter().take(E::WIDTH).zip(at..).all(|(&word, at)| self.words.set(at, word));
        if is_set && count_of(state) < u32::MAX {
            self.state.store(state + 1, Ordering::Release);
        }
        is_set
    }

    /// Keeps the first `count` entries. One writer at a time.
    pub fn keep(&self, count: u32) {
        let state = self.state.load(Ordering::Relaxed);
        let kept = count_of(state).min(count);
        let flags = (state & !u64::from(u32::MAX)).wrapping_add(ONE_REMOVAL);
        self.state.store(flags | u64::from(kept), Ordering::Relaxed);
        // What is written over the others is not seen before that.
        fence(Ordering::Release);
    }

    /// Ends it: nothing is found any more. One writer at a time.
    pub fn close(&self) {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state | CLOSED, Ordering::Release);
    }

    /// The bytes of the entries from a slot on, at most so many. The writer's.
    #[must_use]
    pub fn bytes(&self, slot: u32, count_max: u32) -> Vec<u8> {
        let count = count_of(self.state.load(Ordering::Relaxed));
        let end = count.min(slot.saturating_add(count_max));
        let mut bytes = Vec::new();
        for slot in slot..end {
            let at = usize::try_from(slot).unwrap_or(0) * E::WIDTH;
            let second = if E::WIDTH > 1 { self.words.get(at + 1) } else { 0 };
            let raw = E::raw([self.words.get(at), second]);
            bytes.extend_from_slice(zerocopy::IntoBytes::as_bytes(&raw));
        }
        bytes
    }
}

impl LiveEntries<OffsetEntry> {
    /// As [`Entries::fetch_upper_bound_offset`](super::Entries::fetch_upper_bound_offset) says;
    /// `None` when the index is closed.
    #[must_use]
    pub fn fetch_upper_bound_offset(
        &self,
        position: i32,
        size_bytes: i32,
    ) -> Option<Option<OffsetEntry>> {
        // spec: indexes 1.6, 2.2
        let target = i64::from(position.wrapping_add(size_bytes));
        let position_at = |slot: usize| (self.words.get(slot) << 32).cast_signed() >> 32;
        self.look(|count| {
            let upper = slots::probe(count, offset::ENTRY_SIZE, target, position_at).upper?;
            (upper < count).then(|| self.at(upper))
        })
    }
}

impl<E: LiveEntry> fmt::Debug for LiveEntries<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveEntries")
            .field("base_offset", &self.base_offset)
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

fn count_of(state: u64) -> u32 {
    u32::try_from(state & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
