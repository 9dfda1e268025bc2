//! Where are the newest batches of the segment that is written to?
//!
//! A ring of their places, so that a reader at the tail of a log needs no system call. One writer
//! pushes, any number of readers look, and neither waits for the other. It is small at first: a
//! larger one takes its place as batches come, until it is large enough for a busy log.

use crate::sync::atomic::{AtomicU64, Ordering, fence};

/// Batches that are remembered at first, and at most. Readers trust half of them, so that a writer
/// has the other half to go on before it overtakes a reader.
const SLOTS_MIN: u64 = 4;
const SLOTS_MAX: u64 = if cfg!(loom) { 4 } else { 128 };

/// Where a batch lies in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPlace {
    /// The first offset; of a batch of an old format, the last one.
    pub base_offset: i64,
    /// The last offset.
    pub last_offset: i64,
    /// Its first byte in the log.
    pub position: u64,
    /// Its bytes.
    pub size_bytes: u64,
}

/// What a ring knows of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recent {
    /// The first batch that ends at the offset or behind it.
    Found(BatchPlace),
    /// Every batch of the segment ends before it.
    Behind,
    /// Too old to be remembered.
    Unknown,
}

#[derive(Debug)]
struct Slot {
    /// Last offset above the base, then first offset above the base.
    offsets: AtomicU64,
    /// Position, then size.
    place: AtomicU64,
}

/// The newest batches of one segment.
#[derive(Debug)]
pub struct RecentBatches {
    base_offset: i64,
    /// Whether the first batch pushed is the first of the segment.
    is_from_start: bool,
    pushed: AtomicU64,
    slots: Box<[Slot]>,
}

impl RecentBatches {
    /// An empty ring for the segment at `base_offset`; `is_from_start` says that it has no batch
    /// yet.
    #[must_use]
    pub fn new(base_offset: i64, is_from_start: bool) -> Self {
        Self::with_slots(base_offset, is_from_start, SLOTS_MIN)
    }

    fn with_slots(base_offset: i64, is_from_start: bool, slots: u64) -> Self {
        let slot = |_| Slot { offsets: AtomicU64::new(0), place: AtomicU64::new(0) };
        let slots = (0..slots).map(slot).collect();
        RecentBatches { base_offset, is_from_start, pushed: AtomicU64::new(0), slots }
    }

    /// A larger ring with the same batches, if so many more do not fit without one that readers
    /// trust being forgotten. The writer's.
    #[must_use]
    pub fn grown_for(&self, more: usize) -> Option<Self> {
        let pushed = self.pushed.load(Ordering::Relaxed);
        let more = u64::try_from(more).unwrap_or(SLOTS_MAX).min(SLOTS_MAX);
        let wanted = pushed.saturating_add(more).saturating_mul(2).clamp(SLOTS_MIN, SLOTS_MAX);
        let wanted = wanted.next_power_of_two();
        if wanted <= self.slot_count() {
            return None;
        }
        // One that may still grow has forgotten nothing.
        let grown = Self::with_slots(self.base_offset, self.is_from_start, wanted);
        (0..pushed).for_each(|number| grown.push(&self.at(number)));
        Some(grown)
    }

    fn slot_count(&self) -> u64 {
        u64::try_from(self.slots.len()).unwrap_or(SLOTS_MAX)
    }

    /// Remembers the next batch. One writer at a time.
    pub fn push(&self, batch: &BatchPlace) {
        let pushed = self.pushed.load(Ordering::Relaxed);
        let relative = |offset: i64| offset.wrapping_sub(self.base_offset).cast_unsigned();
        let slot = self.slot(pushed);
        // Who sees what is written below sees the count above, too, and does not trust the slot.
        fence(Ordering::Release);
        let offsets = pack(relative(batch.last_offset), relative(batch.base_offset));
        slot.offsets.store(offsets, Ordering::Relaxed);
        slot.place.store(pack(batch.position, batch.size_bytes), Ordering::Relaxed);
        self.pushed.store(pushed.wrapping_add(1), Ordering::Release);
    }

    /// Looks for the batch of an offset.
    #[must_use]
    pub fn find(&self, offset: i64) -> Recent {
        let end = self.pushed.load(Ordering::Acquire);
        let slots = self.slot_count();
        let first = end.saturating_sub(slots / 2);
        let (mut low, mut high) = (first, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at(middle).last_offset < offset {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let found = if low == end {
            // An empty ring knows nothing of a segment that had batches before.
            if end > 0 || self.is_from_start { Recent::Behind } else { Recent::Unknown }
        } else {
            let batch = self.at(low);
            let is_first_of_all = low == 0 && self.is_from_start;
            if low == first && !is_first_of_all && batch.base_offset > offset {
                Recent::Unknown
            } else {
                Recent::Found(batch)
            }
        };
        // The slot of the n-th batch is written over from the moment that as many more are there as
        // there are slots.
        fence(Ordering::Acquire);
        if self.pushed.load(Ordering::Relaxed) >= first + slots { Recent::Unknown } else { found }
    }

    fn at(&self, number: u64) -> BatchPlace {
        let slot = self.slot(number);
        let (last, first) = unpack(slot.offsets.load(Ordering::Relaxed));
        let (position, size_bytes) = unpack(slot.place.load(Ordering::Relaxed));
        let absolute = |relative: u64| self.base_offset.wrapping_add_unsigned(relative);
        BatchPlace {
            base_offset: absolute(first),
            last_offset: absolute(last),
            position,
            size_bytes,
        }
    }

    fn slot(&self, number: u64) -> &Slot {
        let slot = usize::try_from(number % self.slot_count()).unwrap_or(0);
        self.slots.get(slot).expect("a remainder is below the number of slots")
    }
}

/// Two numbers below 2^32 in one word: positions and relative offsets of a segment are.
fn pack(high: u64, low: u64) -> u64 {
    high << 32 | low & u64::from(u32::MAX)
}

fn unpack(word: u64) -> (u64, u64) {
    (word >> 32, word & u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: i64) -> BatchPlace {
        BatchPlace {
            base_offset: 1000 + number * 10,
            last_offset: 1000 + number * 10 + 7,
            position: number.unsigned_abs() * 100,
            size_bytes: 100,
        }
    }

    #[test]
    fn a_batch_is_found_by_every_offset_that_it_answers_for() {
        let ring = RecentBatches::with_slots(1000, true, SLOTS_MAX);
        assert_eq!(ring.find(1000), Recent::Behind);
        (0..3).for_each(|number| ring.push(&place(number)));
        for offset in 990..1008 {
            assert_eq!(ring.find(offset), Recent::Found(place(0)), "{offset}");
        }
        for offset in 1008..1018 {
            assert_eq!(ring.find(offset), Recent::Found(place(1)), "{offset}");
        }
        assert_eq!(ring.find(1027), Recent::Found(place(2)));
        assert_eq!(ring.find(1028), Recent::Behind);
    }

    #[test]
    fn what_lies_before_the_ring_is_not_known() {
        let ring = RecentBatches::new(1000, false);
        assert_eq!(ring.find(1000), Recent::Unknown);
        ring.push(&place(5));
        assert_eq!(ring.find(1049), Recent::Unknown, "a batch before may hold it");
        assert_eq!(ring.find(1050), Recent::Found(place(5)));
        let mut ring = ring;
        for number in 6..1000 {
            ring = ring.grown_for(1).unwrap_or(ring);
            ring.push(&place(number));
        }
        assert_eq!(ring.find(1050), Recent::Unknown);
        assert_eq!(ring.slot_count(), SLOTS_MAX);
        let oldest = 1000 - i64::try_from(SLOTS_MAX / 2).unwrap();
        assert_eq!(ring.find(1000 + oldest * 10), Recent::Found(place(oldest)));
        assert_eq!(ring.find(1000 + oldest * 10 - 1), Recent::Unknown);
    }

    #[test]
    fn a_ring_that_grows_forgets_nothing_that_was_trusted() {
        for is_from_start in [false, true] {
            let mut ring = RecentBatches::new(1000, is_from_start);
            assert_eq!(ring.slot_count(), SLOTS_MIN);
            let mut pushed = 0;
            for more in [1, 1, 1, 3, 5, 2, 40, 1, 9, 100, 1, 64] {
                ring = ring.grown_for(more).unwrap_or(ring);
                for _ in 0..more {
                    ring.push(&place(pushed));
                    pushed += 1;
                }
                let trusted = pushed.min(i64::try_from(SLOTS_MAX / 2).unwrap());
                for number in pushed - trusted..pushed {
                    let found = ring.find(1000 + number * 10);
                    assert_eq!(found, Recent::Found(place(number)), "{number} of {pushed}");
                }
                assert_eq!(ring.find(1000 + pushed * 10), Recent::Behind);
            }
        }
    }

    #[test]
    fn a_reader_never_sees_half_of_a_batch() {
        let ring = RecentBatches::with_slots(1000, true, SLOTS_MAX);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200_000).for_each(|number| ring.push(&place(number))));
            let mut wanted = 0;
            while wanted < 199_990 {
                let pushed = i64::try_from(ring.pushed.load(Ordering::Acquire)).unwrap();
                wanted = (pushed - 5).max(0);
                if let Recent::Found(found) = ring.find(1000 + wanted * 10) {
                    assert_eq!(found, place(wanted));
                }
            }
        });
    }
}

#[cfg(all(test, loom))]
mod schedules {
    use std::sync::Arc;

    use super::*;

    fn place(number: i64) -> BatchPlace {
        BatchPlace {
            base_offset: number * 10,
            last_offset: number * 10 + 7,
            position: number.unsigned_abs() * 100,
            size_bytes: 100 + number.unsigned_abs(),
        }
    }

    /// Slots are written over while a reader looks: it finds a batch whole, or knows that it does
    /// not know.
    #[test]
    fn a_batch_is_seen_whole_or_not_at_all() {
        loom::model(|| {
            let ring = Arc::new(RecentBatches::new(0, true));
            (0..3).for_each(|number| ring.push(&place(number)));
            let writer = Arc::clone(&ring);
            let writer = loom::thread::spawn(move || {
                (3..6).for_each(|number| writer.push(&place(number)));
            });
            for wanted in [1, 2] {
                match ring.find(wanted * 10) {
                    Recent::Found(found) => assert_eq!(found, place(wanted)),
                    Recent::Unknown => {}
                    Recent::Behind => panic!("batch {wanted} was there from the beginning"),
                }
            }
            writer.join().unwrap();
            assert_eq!(ring.find(50), Recent::Found(place(5)));
        });
    }
}
