//! What does a power cut spare? The choices behind a seed.

/// The choices of one power cut: the same seed, the same choices.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    state: u64,
    data: Share,
    sizes: Share,
    names: Share,
    names_in_order: bool,
}

/// How much of something was spared: so many of 8.
type Share = u64;

const NOTHING: Share = 0;
const EVERYTHING: Share = 8;

impl Fate {
    /// The first seeds are the extremes; all others mix.
    pub(super) fn new(seed: u64) -> Self {
        let mut fate = Fate {
            state: seed,
            data: NOTHING,
            sizes: NOTHING,
            names: NOTHING,
            names_in_order: true,
        };
        (fate.data, fate.sizes, fate.names) = match seed {
            0 => (NOTHING, NOTHING, NOTHING),
            1 => (EVERYTHING, EVERYTHING, EVERYTHING),
            // Names went ahead of the bytes: files of the right length with nothing in them.
            2 => (NOTHING, EVERYTHING, EVERYTHING),
            // As before, but of no length.
            3 => (NOTHING, NOTHING, EVERYTHING),
            // Bytes went ahead of the names.
            4 => (EVERYTHING, EVERYTHING, NOTHING),
            _ => (fate.below(9), fate.below(9), fate.below(9)),
        };
        // A journal keeps the order of names; not every file system has one.
        fate.names_in_order = fate.below(2) == 0;
        fate
    }

    /// Whether this sector was written.
    pub(super) fn spares_sector(&mut self) -> bool {
        let share = self.data;
        self.below(EVERYTHING) < share
    }

    /// The length of a file between what was durable and what was seen.
    pub(super) fn size(&mut self, durable: usize, seen: usize) -> usize {
        let share = self.sizes;
        if self.below(EVERYTHING) >= share {
            return durable;
        }
        let grown = u64::try_from(seen.saturating_sub(durable)).unwrap_or_default();
        if share == EVERYTHING || grown == 0 || self.below(2) == 0 {
            return seen;
        }
        // A file that is written back piece by piece grows piece by piece.
        durable + usize::try_from(self.below(grown)).unwrap_or_default()
    }

    /// Which of so many changes of names were done.
    pub(super) fn spared_names(&mut self, count: usize) -> Vec<bool> {
        let share = self.names;
        if self.names_in_order && (NOTHING + 1..EVERYTHING).contains(&share) {
            let bound = u64::try_from(count).unwrap_or(u64::MAX).saturating_add(1);
            let done = usize::try_from(self.below(bound)).unwrap_or_default();
            return (0..count).map(|number| number < done).collect();
        }
        (0..count).map(|_| self.below(EVERYTHING) < share).collect()
    }

    /// A number below `bound`, by SplitMix64.
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).checked_rem(bound).unwrap_or_default()
    }
}
