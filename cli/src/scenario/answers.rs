//! Which questions does a scenario ask?

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use siltstone::{Error, Kind, Result};

use super::input::{Input, Used};
use super::{follower, questions};

/// The answers to all that `bytes` ask at this time, in milliseconds since 1970, and the keys that
/// no question was asked with.
///
/// # Errors
/// When they are no JSON object, when a key has a value that it cannot have, and when they ask
/// nothing.
pub(crate) fn answer(bytes: &[u8], now_ms: i64) -> Result<(Map<String, Value>, BTreeSet<String>)> {
    let input: Value = serde_json::from_slice(bytes)
        .map_err(|error| Error::corrupt(format!("this is no JSON: {error}")))?;
    let Value::Object(members) = input else {
        return Err(Error::corrupt("this is no JSON object"));
    };
    let used = Used::default();
    let input = Input::new(&members, &used);
    let mut answers = Map::new();
    questions::answer(&input, now_ms, &mut answers)?;
    follower::answer(&input, &mut answers)?;
    if answers.is_empty() {
        let message = "there is no question in it: see siltstone help scenario for the keys";
        return Err(Error::new(Kind::InvalidArgument, message));
    }
    Ok((answers, used.unused(&members)))
}
