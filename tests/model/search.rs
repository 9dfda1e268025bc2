//! Every state that can be reached, breadth first, so that the first history that goes wrong is a
//! shortest one; and single histories at random, where there are too many states.
//!
//! A state that was looked at is remembered by 128 bits of its hash alone. Two states that share
//! them would be taken for one: with a hundred million states the odds of a single such pair are
//! one in 10^22.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

/// What may happen next: its name, and the next state or what went wrong on the way.
pub(crate) type Found<S> = Vec<(Cow<'static, str>, Result<S, String>)>;

/// A model: its states and what may happen next.
pub(crate) trait Model {
    /// All there is.
    type State: Clone + Eq + Hash + Debug;

    /// Where it begins.
    fn first(&self) -> Self::State;

    /// What may happen, in the same order each time.
    fn next(&self, state: &Self::State, found: &mut Found<Self::State>);

    /// What is wrong with a state.
    fn check(&self, state: &Self::State) -> Result<(), String>;
}

/// What a search found.
#[derive(Debug)]
pub(crate) struct Search {
    /// How many states there are.
    pub(crate) states: usize,
    /// What went wrong, and how it came to that; none when nothing can.
    pub(crate) failure: Option<(String, Vec<String>)>,
}

/// How each state was reached first: from which one, by which of its events.
struct Origins(Vec<(u32, u16)>);

impl Origins {
    /// The events that lead to a state, and one more; they are found out by going there again.
    fn history<M: Model>(&self, model: &M, mut at: u32, last: Option<u16>) -> Vec<String> {
        let mut slots: Vec<u16> = last.into_iter().collect();
        while at != 0 {
            let (from, slot) = self.0[usize::try_from(at).unwrap()];
            slots.push(slot);
            at = from;
        }
        let mut state = model.first();
        let mut found = Vec::new();
        let mut names = Vec::new();
        for slot in slots.into_iter().rev() {
            model.next(&state, &mut found);
            let (name, next) = found.swap_remove(usize::from(slot));
            names.push(name.into_owned());
            found.clear();
            let Ok(next) = next else { break };
            state = next;
        }
        names
    }
}

/// Looks at every state, up to `states_max` of them.
///
/// # Panics
///
/// When there are more: the model is too large to say anything.
pub(crate) fn search<M: Model>(model: &M, states_max: usize) -> Search {
    let first = model.first();
    let mut seen = HashSet::from([fingerprint(&first)]);
    let mut waiting = VecDeque::from([first]);
    let mut origins = Origins(vec![(0, 0)]);
    let mut found = Vec::new();
    let mut number = 0;
    while let Some(state) = waiting.pop_front() {
        if let Err(what) = model.check(&state) {
            let failure = Some((what, origins.history(model, number, None)));
            return Search { states: seen.len(), failure };
        }
        model.next(&state, &mut found);
        for (slot, (_, next)) in found.drain(..).enumerate() {
            let slot = u16::try_from(slot).expect("few events");
            let next = match next {
                Ok(next) => next,
                Err(what) => {
                    let failure = Some((what, origins.history(model, number, Some(slot))));
                    return Search { states: seen.len(), failure };
                }
            };
            if seen.insert(fingerprint(&next)) {
                assert!(seen.len() <= states_max, "more than {states_max} states");
                waiting.push_back(next);
                origins.0.push((number, slot));
            }
        }
        number += 1;
    }
    Search { states: seen.len(), failure: None }
}

/// Goes `steps` events at random from the first state on, or as far as anything can happen, and
/// looks at each state on the way.
pub(crate) fn walk<M: Model>(model: &M, mut seed: u64, steps: usize) -> Search {
    let mut state = model.first();
    let mut found = Vec::new();
    let mut names = Vec::new();
    let mut states = 0;
    let mut failed = model.check(&state).err();
    while failed.is_none() && states < steps {
        model.next(&state, &mut found);
        if found.is_empty() {
            break;
        }
        seed = mixed(seed.wrapping_add(0x9e37_79b9_7f4a_7c15));
        let slot = seed % u64::try_from(found.len()).unwrap();
        let (name, next) = found.swap_remove(usize::try_from(slot).unwrap());
        names.push(name.into_owned());
        found.clear();
        states += 1;
        match next {
            Ok(next) => {
                state = next;
                failed = model.check(&state).err();
            }
            Err(what) => failed = Some(what),
        }
    }
    Search { states, failure: failed.map(|what| (what, names)) }
}

/// How many rare events a history may have.
pub(crate) fn faults(default: u8) -> u8 {
    let set = std::env::var("SILTSTONE_MODEL_FAULTS").ok();
    set.map_or(default, |text| text.parse().expect("SILTSTONE_MODEL_FAULTS is a number"))
}

/// 128 bits of a hash, in two halves that mix differently.
struct Fingerprint(u64, u64);

fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = mixed(self.0 ^ word);
        self.1 = mixed(self.1.rotate_left(17).wrapping_add(word).wrapping_add(1));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(u64::try_from(word).expect("64 bits"));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Stands for a state.
pub(crate) fn fingerprint(state: &impl Hash) -> u128 {
    let mut halves = Fingerprint(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344);
    state.hash(&mut halves);
    (u128::from(halves.0) << 64) | u128::from(halves.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts up by one or two, and must not come to `wrong`.
    struct Counter {
        wrong: u8,
    }

    impl Model for Counter {
        type State = u8;

        fn first(&self) -> u8 {
            0
        }

        fn next(&self, state: &u8, found: &mut Found<u8>) {
            for by in [1, 2] {
                if state + by <= 9 {
                    found.push((format!("+{by}").into(), Ok(state + by)));
                }
            }
        }

        fn check(&self, state: &u8) -> Result<(), String> {
            if *state == self.wrong { Err(format!("{state}")) } else { Ok(()) }
        }
    }

    #[test]
    fn all_states_are_found_and_the_shortest_way_to_a_wrong_one() {
        let found = search(&Counter { wrong: 99 }, 10);
        assert_eq!((found.states, found.failure), (10, None));
        let (what, history) = search(&Counter { wrong: 5 }, 10).failure.unwrap();
        assert_eq!((what.as_str(), history.len()), ("5", 3));
        let sum: u8 = history.iter().map(|name| name[1..].parse::<u8>().unwrap()).sum();
        assert_eq!(sum, 5);
    }

    #[test]
    #[should_panic(expected = "more than 9 states")]
    fn a_search_that_is_not_over_is_no_answer() {
        search(&Counter { wrong: 99 }, 9);
    }

    #[test]
    fn walks_end_where_nothing_can_happen_and_meet_what_is_wrong() {
        for seed in 0..100 {
            let found = walk(&Counter { wrong: 99 }, seed, 100);
            assert!((5..=9).contains(&found.states), "{found:?}");
            assert_eq!(found.failure, None);
        }
        let met = (0..100).filter(|&seed| walk(&Counter { wrong: 5 }, seed, 9).failure.is_some());
        assert!((1..100).contains(&met.count()));
    }

    #[test]
    fn states_that_differ_have_different_fingerprints() {
        let mut all = HashSet::new();
        for first in 0..100_i64 {
            for second in 0..100_i64 {
                assert!(all.insert(fingerprint(&(vec![first], vec![second, -1]))));
            }
        }
        let other = fingerprint(&(vec![1_i64, 2], vec![3_i64]));
        assert_ne!(fingerprint(&(vec![1_i64], vec![2_i64, 3])), other);
    }
}
