//! Which rows of the catalogue have no test, and why?
//!
//! A test cites its rows in a comment: `// spec: behaviours LL-007, LL-020`. A row is one fact with
//! all of its results. What has no test for good is told in `docs/COMPATIBILITY.md`.

use std::collections::BTreeSet;

use siltstone_tests::citations::{cited, explained};

/// Every row, one a line.
const ROWS: &str = include_str!("../data/behaviours.txt");

/// The heading in `docs/COMPATIBILITY.md` below which rows without a test stand in a table.
const HEADING: &str = "## Behaviours without a test";

/// Whether a word is written as a row is: `LL-007`.
fn is_row(word: &str) -> bool {
    word.split_once('-').is_some_and(|(section, number)| {
        section.len() == 2
            && section.bytes().all(|byte| byte.is_ascii_uppercase())
            && number.len() == 3
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// The rows that a text names.
fn rows_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| is_row(word)).map(str::to_owned).collect()
}

/// The rows that the tests of a source file cite. A list may go on in the next line.
fn cited_in(text: &str, is_test: bool) -> BTreeSet<String> {
    let mut cited = BTreeSet::new();
    let (mut is_test, mut goes_on) = (is_test, false);
    for line in text.lines() {
        let comment = line.trim_start().strip_prefix("// ");
        is_test |= line == "#[cfg(test)]";
        let list = match comment {
            Some(text) if text.starts_with("spec:") => {
                text.split_once("behaviours ").map(|it| it.1)
            }
            Some(text) if goes_on && text.split([',', ' ']).next().is_some_and(is_row) => {
                Some(text)
            }
            _ => None,
        };
        goes_on = list.is_some();
        if let Some(list) = list.filter(|_| is_test) {
            cited.extend(rows_in(list));
        }
    }
    cited
}

#[test]
fn every_row_has_a_test_or_a_reason() {
    let rows: BTreeSet<String> = ROWS.lines().map(str::to_owned).collect();
    let cited = cited(&["engine/src", "tests"], cited_in);
    let (explained, without_reason) = explained(HEADING, rows_in);
    assert_eq!(without_reason, Vec::<String>::new());
    let unknown: Vec<&String> =
        cited.union(&explained).filter(|row| !rows.contains(*row)).collect();
    assert!(unknown.is_empty(), "no rows of the catalogue: {unknown:?}");
    let both: Vec<&String> = cited.intersection(&explained).collect();
    assert!(both.is_empty(), "they have a test, and need no reason: {both:?}");

    let is_left = |row: &&String| !cited.contains(*row) && !explained.contains(*row);
    let missing: Vec<&String> = rows.iter().filter(is_left).collect();
    println!("{} of {} rows have a test, {} a reason", cited.len(), rows.len(), explained.len());
    assert!(missing.is_empty(), "without a test or a reason: {missing:?}");
}

#[test]
fn citations_are_found_where_tests_stand() {
    let text = "// spec: behaviours OI-001\n#[cfg(test)]\n";
    assert_eq!(cited_in(text, false), BTreeSet::new());
    let text = [
        text,
        "    // spec: records 10; behaviours OI-002, OI-003,\n",
        "    // OI-005\n",
        "    let why = \"OI-006\";\n",
        "    // OI-007\n",
    ]
    .concat();
    let found: Vec<String> = cited_in(&text, false).into_iter().collect();
    assert_eq!(found, ["OI-002", "OI-003", "OI-005"]);
    assert!(cited_in(&text, true).contains("OI-001"));
}
