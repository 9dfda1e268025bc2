//! Every state that can be reached, breadth first, so that the first history that goes wrong is a
//! shortest one.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;

/// A model: its states and what may happen next.
pub(crate) trait Model {
    /// All there is.
    type State: Clone + Eq + Hash + Debug;

    /// Where it begins.
    fn first(&self) -> Self::State;

    /// What may happen, with its name: the next state, or what went wrong on the way.
    fn next(&self, state: &Self::State, found: &mut Vec<(String, Result<Self::State, String>)>);

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

/// Looks at every state, up to `states_max` of them.
///
/// # Panics
///
/// When there are more: the model is too large to say anything.
pub(crate) fn search<M: Model>(model: &M, states_max: usize) -> Search {
    let first = model.first();
    let mut numbers: HashMap<M::State, usize> = HashMap::new();
    let mut waiting = std::collections::VecDeque::new();
    // How each state was reached first: from which one, by what.
    let mut came: Vec<(usize, String)> = vec![(0, String::new())];
    let history = |came: &[(usize, String)], mut at: usize, last: Option<String>| {
        let mut events: Vec<String> = last.into_iter().collect();
        while at != 0 {
            events.push(came[at].1.clone());
            at = came[at].0;
        }
        events.reverse();
        events
    };
    numbers.insert(first.clone(), 0);
    waiting.push_back((0, first));
    let mut found = Vec::new();
    while let Some((number, state)) = waiting.pop_front() {
        if let Err(what) = model.check(&state) {
            let failure = Some((what, history(&came, number, None)));
            return Search { states: numbers.len(), failure };
        }
        model.next(&state, &mut found);
        for (event, next) in found.drain(..) {
            let next = match next {
                Ok(next) => next,
                Err(what) => {
                    let failure = Some((what, history(&came, number, Some(event))));
                    return Search { states: numbers.len(), failure };
                }
            };
            if numbers.contains_key(&next) {
                continue;
            }
            assert!(numbers.len() < states_max, "more than {states_max} states");
            numbers.insert(next.clone(), came.len());
            waiting.push_back((came.len(), next));
            came.push((number, event));
        }
    }
    Search { states: numbers.len(), failure: None }
}

/// How many rare events a history may have.
pub(crate) fn faults(default: u8) -> u8 {
    let set = std::env::var("SILTSTONE_MODEL_FAULTS").ok();
    set.map_or(default, |text| text.parse().expect("SILTSTONE_MODEL_FAULTS is a number"))
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

        fn next(&self, state: &u8, found: &mut Vec<(String, Result<u8, String>)>) {
            for by in [1, 2] {
                if state + by <= 9 {
                    found.push((format!("+{by}"), Ok(state + by)));
                }
            }
        }

        fn check(&self, state: &u8) -> Result<(), String> {
            if *state == self.wrong { Err(format!("{state}")) } else { Ok(()) }
        }
    }

    #[test]
    fn all_states_are_found_and_the_shortest_way_to_a_wrong_one() {
        let search = search(&Counter { wrong: 99 }, 100);
        assert_eq!((search.states, search.failure), (10, None));
        let (what, history) = super::search(&Counter { wrong: 5 }, 100).failure.unwrap();
        assert_eq!((what.as_str(), history.len()), ("5", 3));
    }
}
