//! What the tests of the reading verbs share.

use std::ffi::OsStr;

use serde_json::Value;
use siltstone_tests::tool::{self, Outcome};

/// Runs a verb with `--json`; gives its lines.
pub fn lines<A: AsRef<OsStr>>(verb: &str, arguments: &[A]) -> (Vec<Value>, Outcome) {
    let head = [verb, "--json"].map(OsStr::new);
    let outcome = tool::run(head.into_iter().chain(arguments.iter().map(AsRef::as_ref)));
    assert!(outcome.is_healthy(), "{outcome:?}");
    (outcome.json_lines(), outcome)
}

/// The lines of one type.
pub fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// Bytes as they are printed in JSON: null, a string, or base64.
pub fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.as_bytes().to_vec()),
        other => Some(from_base64(other["base64"].as_str().expect("base64"))),
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for character in text.trim_end_matches('=').chars() {
        let sextet = ALPHABET.find(character).expect("a character of base64");
        bits = (bits << 6) | u32::try_from(sextet).expect("six bits");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).expect("eight bits"));
        }
    }
    bytes
}
