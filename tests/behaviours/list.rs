//! Which rows of the catalogue have no test, and why?
//!
//! A test cites its rows in a comment: `// spec: behaviours LL-007, LL-020`. A row is one fact with
//! all of its results. What has no test for good is told in `docs/COMPATIBILITY.md`.

use std::collections::BTreeSet;
use std::fs;

use siltstone_tests::sources::{root, sources};

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
fn rows_in(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.filter(|word| is_row(word)).map(str::to_owned)
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

/// The rows that some test of the repository cites.
fn cited() -> BTreeSet<String> {
    let mut cited = BTreeSet::new();
    for source in sources(&["engine/src", "tests"]) {
        // Tests of the engine stand at the end of a file, or in files of their own.
        let is_test = source.name.split('/').any(|part| part.starts_with("tests"));
        cited.extend(cited_in(&source.text, is_test));
    }
    cited
}

/// The rows of the table below the heading, and those of its lines that give no reason.
fn explained() -> (BTreeSet<String>, Vec<String>) {
    let document = fs::read_to_string(root().join("docs/COMPATIBILITY.md")).expect("the document");
    let (_, behind) = document.split_once(&format!("\n{HEADING}\n")).expect("the heading");
    let section = behind.split_once("\n## ").map_or(behind, |(section, _)| section);
    let (mut explained, mut without_reason) = (BTreeSet::new(), Vec::new());
    for line in section.lines().filter(|line| line.starts_with("| ")) {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let rows: Vec<String> = rows_in(cells.next().unwrap_or_default()).collect();
        if !rows.is_empty() && cells.next().is_none_or(str::is_empty) {
            without_reason.push(line.to_owned());
        }
        explained.extend(rows);
    }
    (explained, without_reason)
}

#[test]
fn every_row_has_a_test_or_a_reason() {
    let rows: BTreeSet<String> = ROWS.lines().map(str::to_owned).collect();
    let (cited, (explained, without_reason)) = (cited(), explained());
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
