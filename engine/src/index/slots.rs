//! Which slot of a sorted index holds a key? The two searches that offset and time index share.
//!
//! [`probe`] looks at the slots in Kafka's order and answers as Kafka does, whatever the keys are.
//! [`lower_bound`] is the fast one: it guesses by interpolation, and behind each guess stands a
//! bracket that a binary search closes. On keys that rise both give the same slot; on others both
//! give a slot that exists.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The bytes of the end of an index that Kafka searches first, since most look-ups are near the
/// end.
const WARM_SIZE_BYTES: usize = 8192;

/// How far from its last guess [`lower_bound`] looks first, in slots; the measured best of 2, 4 and
/// 8.
const GALLOP_FIRST_STEP: usize = 4;

/// The whole entries at the front of `bytes`, and how many bytes are left behind them.
pub(super) fn view<T>(bytes: &[u8]) -> (&[T], usize)
where
    T: FromBytes + Immutable + KnownLayout + Unaligned,
{
    let count = bytes.len() / size_of::<T>();
    match <[T]>::ref_from_prefix_with_elems(bytes, count) {
        Ok((slots, rest)) => (slots, rest.len()),
        Err(_) => (&[], bytes.len()),
    }
}

/// The slots on both sides of a target, as Kafka finds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// The slot of the largest key at most the target.
    pub lower: Option<usize>,
    /// The slot of the smallest key at least the target, but for the quirk of [`probe`].
    pub upper: Option<usize>,
}

/// Searches `count` slots of `entry_size` bytes for `target` in Kafka's probe order.
///
/// Kafka quirk: the loop never looks at its lowest slot, so for a target equal to the first key the
/// upper bound is the second slot (none when there is no second). It must stay: the bound decides
/// which aborted transactions a fetch names.
pub(super) fn probe(
    count: usize,
    entry_size: usize,
    target: i64,
    key: impl Fn(usize) -> i64,
) -> Bounds {
    // spec: indexes 1.6
    let Some(last) = count.checked_sub(1) else { return Bounds { lower: None, upper: None } };
    let first_hot = last.saturating_sub(WARM_SIZE_BYTES / entry_size);
    let (mut low, mut high) = if key(first_hot) < target {
        (first_hot, last)
    } else if key(0) > target {
        return Bounds { lower: None, upper: Some(0) };
    } else {
        (0, first_hot)
    };
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        match key(middle).cmp(&target) {
            std::cmp::Ordering::Greater => high = middle - 1,
            std::cmp::Ordering::Equal => {
                return Bounds { lower: Some(middle), upper: Some(middle) };
            }
            std::cmp::Ordering::Less => low = middle,
        }
    }
    Bounds { lower: Some(low), upper: (low != last).then(|| low + 1) }
}

/// The slot of the largest key at most `target` among `count` rising keys.
///
/// Keys are nearly evenly spread in a real index: a first guess by interpolation, and a second from
/// there, land within a cache line or two of the slot. From the second guess it gallops until it
/// has passed the slot, and halves what is between. A heavily skewed index so costs one and a half
/// times a binary search. On keys that do not rise it ends, too, at a slot whose key is at most
/// `target`.
#[inline]
pub(super) fn lower_bound(count: usize, target: i64, key: impl Fn(usize) -> i64) -> Option<usize> {
    let mut high = count.checked_sub(1)?;
    let high_key = key(high);
    if high_key <= target {
        return Some(high);
    }
    let mut low = 0;
    let low_key = key(low);
    if target < low_key {
        return None;
    }
    // From here on: key(low) <= target < key(high).
    let spread = Spread::new(high, low_key, high_key);
    let first = spread.slots(low_key, target).min(high);
    let first_key = key(first);
    let rest = spread.slots(first_key, target);
    let second = if first_key <= target {
        low = first;
        first.saturating_add(rest).min(high)
    } else {
        high = first;
        first.saturating_sub(rest)
    };
    let goes_up = key(second) <= target;
    if goes_up {
        low = second;
    } else {
        high = second;
    }
    let mut step = GALLOP_FIRST_STEP;
    while high - low > step {
        let middle = if goes_up { low + step } else { high - step };
        let is_below = key(middle) <= target;
        if is_below {
            low = middle;
        } else {
            high = middle;
        }
        if is_below != goes_up {
            break;
        }
        step = step.saturating_mul(4);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if key(middle) <= target {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// How densely the slots between two keys would lie, were they evenly spread.
struct Spread {
    /// Distances between keys are cut to 32 bits, so that their product with a slot count fits.
    shift: u32,
    /// The slots of one unit of such a distance, times 2^32.
    slots_per_unit: u64,
}

impl Spread {
    /// The density of `span` slots from `low_key` to `high_key`, which differ.
    #[inline]
    fn new(span: usize, low_key: i64, high_key: i64) -> Self {
        let whole = high_key.abs_diff(low_key);
        let shift = (u64::BITS - whole.leading_zeros()).saturating_sub(32);
        let span = u64::try_from(span).unwrap_or(u64::MAX).min(u64::from(u32::MAX));
        Spread { shift, slots_per_unit: (span << 32).checked_div(whole >> shift).unwrap_or(0) }
    }

    /// How many slots lie between two keys, at most the span if the keys lie within it.
    #[inline]
    fn slots(&self, from: i64, to: i64) -> usize {
        let distance = to.abs_diff(from) >> self.shift;
        let slots = distance.saturating_mul(self.slots_per_unit) >> 32;
        usize::try_from(slots).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn find(keys: &[i64], target: i64) -> Option<usize> {
        lower_bound(keys.len(), target, |slot| keys[slot])
    }

    fn kafka(keys: &[i64], target: i64) -> Bounds {
        probe(keys.len(), 8, target, |slot| keys[slot])
    }

    #[test]
    fn the_upper_bound_never_names_the_first_slot_for_an_equal_target() {
        // spec: indexes 1.6
        assert_eq!(kafka(&[], 5), Bounds { lower: None, upper: None });
        assert_eq!(kafka(&[7], 7), Bounds { lower: Some(0), upper: None });
        assert_eq!(kafka(&[7, 9], 7), Bounds { lower: Some(0), upper: Some(1) });
        assert_eq!(kafka(&[7, 9], 6), Bounds { lower: None, upper: Some(0) });
        assert_eq!(kafka(&[7, 9], 8), Bounds { lower: Some(0), upper: Some(1) });
        assert_eq!(kafka(&[7, 9], 9), Bounds { lower: Some(1), upper: Some(1) });
        assert_eq!(kafka(&[7, 9], 10), Bounds { lower: Some(1), upper: None });
    }

    #[test]
    fn keys_at_the_ends_of_the_number_range_are_found() {
        let keys = [i64::MIN, -1, 0, 1, i64::MAX];
        for (slot, key) in keys.iter().enumerate() {
            assert_eq!(find(&keys, *key), Some(slot));
        }
        assert_eq!(find(&keys, i64::MAX - 1), Some(3));
        assert_eq!(find(&keys[1..], i64::MIN), None);
    }

    #[test]
    fn a_heavily_skewed_index_is_searched_right() {
        let keys: Vec<i64> = (0..60).map(|bit| 1i64 << bit).collect();
        for target in keys.iter().flat_map(|key| [key - 1, *key, key + 1]) {
            assert_eq!(find(&keys, target), kafka(&keys, target).lower, "{target}");
        }
    }

    /// Keys that rise by steps of very different sizes.
    fn rising() -> impl Strategy<Value = Vec<i64>> {
        let step = prop_oneof![4 => 1i64..100, 1 => 1i64..10_000_000];
        (-1000i64..1_000_000, prop::collection::vec(step, 0..3000)).prop_map(|(first, steps)| {
            steps
                .iter()
                .scan(first, |key, step| {
                    *key += step;
                    Some(*key)
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn interpolation_finds_what_kafka_finds(
            keys in rising(),
            picks in prop::collection::vec((any::<prop::sample::Index>(), -2i64..=2), 20),
            wild in any::<i64>(),
        ) {
            let near = picks.iter().filter(|_| !keys.is_empty()).map(|(i, d)| i.get(&keys) + d);
            for target in near.chain([wild]) {
                prop_assert_eq!(find(&keys, target), kafka(&keys, target).lower);
            }
        }

        #[test]
        fn keys_in_any_order_give_a_slot_that_exists(
            keys in prop::collection::vec(any::<i64>(), 0..3000),
            target in any::<i64>(),
        ) {
            if let Some(slot) = find(&keys, target) {
                prop_assert!(keys[slot] <= target);
            }
            let bounds = kafka(&keys, target);
            for slot in bounds.lower.into_iter().chain(bounds.upper) {
                prop_assert!(slot < keys.len());
            }
        }
    }
}
