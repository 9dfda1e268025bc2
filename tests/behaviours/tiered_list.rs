//! Which vectors and rows of remote storage and replication have no test, and why?
//!
//! A test cites them with the document they are in: `// spec: tiered C1, C2; replication H1`. What
//! has no test for good is told in `docs/COMPATIBILITY.md`.

use std::collections::BTreeSet;

use siltstone_tests::citations::{cited, explained};

/// Every one, one a line: the document and the id.
const ROWS: &str = include_str!("../data/tiered-behaviours.txt");

/// The heading in `docs/COMPATIBILITY.md` below which rows without a test stand in a table.
const HEADING: &str = "## Tiered behaviours without a test";

/// The document and the letters of a row.
fn kind(row: &str) -> &str {
    without_part(row).trim_end_matches(|c: char| c.is_ascii_digit())
}

/// A row of which one part may be named: `T2` of `T2a`.
fn without_part(row: &str) -> &str {
    row.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(row)
}

/// Whether a word is written as an id is: `RC12`, `T2a`.
fn is_id(word: &str) -> bool {
    let word = without_part(word);
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    (1..=2).contains(&letters.len())
        && letters.len() < word.len()
        && letters.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// The rows that a text names: clauses parted by `;`, each of a document and its ids.
fn rows_in(text: &str) -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    for clause in text.split(';') {
        let Some((document, ids)) = clause.trim().split_once(' ') else { continue };
        let words = ids.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| is_id(word));
        rows.extend(words.map(|id| format!("{document} {id}")));
    }
    rows
}

/// The rows that the tests of a source file cite. A list may go on in the next line.
fn cited_in(text: &str, is_test: bool) -> BTreeSet<String> {
    let mut cited = BTreeSet::new();
    let mut is_test = is_test;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        is_test |= line == "#[cfg(test)]";
        let Some(list) = line.trim_start().strip_prefix("// spec:") else { continue };
        let mut list = list.trim().to_owned();
        while list.ends_with([',', ';'])
            && let Some(more) = lines.next_if(|line| line.trim_start().starts_with("// "))
        {
            list.push(' ');
            list.push_str(more.trim_start().trim_start_matches("// "));
        }
        if is_test {
            cited.extend(rows_in(&list));
        }
    }
    cited
}

#[test]
fn every_vector_and_row_has_a_test_or_a_reason() {
    let rows: BTreeSet<String> = ROWS.lines().map(str::to_owned).collect();
    let kinds: BTreeSet<&str> = rows.iter().map(|row| kind(row)).collect();
    let cited = cited(&["engine/src", "cli/src", "tests"], cited_in);
    let (explained, without_reason) = explained(HEADING, rows_in);
    assert_eq!(without_reason, Vec::<String>::new());
    let is_unknown = |row: &&String| kinds.contains(kind(row)) && !rows.contains(*row);
    let unknown: Vec<&String> = cited.union(&explained).filter(is_unknown).collect();
    assert!(unknown.is_empty(), "no rows of the catalogue: {unknown:?}");
    let both: Vec<&String> = cited.intersection(&explained).collect();
    assert!(both.is_empty(), "they have a test, and need no reason: {both:?}");

    let left = rows.iter().filter(|row| !cited.contains(*row) && !explained.contains(*row));
    let missing: Vec<&String> = left.collect();
    let proven = rows.intersection(&cited).count();
    println!("{proven} of {} rows have a test, {} a reason", rows.len(), explained.len());
    assert!(missing.is_empty(), "without a test or a reason: {missing:?}");
}

#[test]
fn citations_are_found_with_their_documents() {
    let text = [
        "// spec: tiered C1\n#[cfg(test)]\n",
        "    // spec: tiered 5, X2, X3; replication H1,\n",
        "    // H2; tiered T1, T2a; follower-fetch 5.3\n",
        "    // spec: tiered-behaviours EX2. Only C9 of two.\n",
        "    let why = \"R1\";\n",
    ]
    .concat();
    let found: Vec<String> = cited_in(&text, false).into_iter().collect();
    let documents = ["replication H1", "replication H2", "tiered T1", "tiered T2a"];
    assert_eq!(found[..4], documents);
    assert_eq!(found[4..6], ["tiered X2", "tiered X3"]);
    assert_eq!(found[6..], ["tiered-behaviours C9", "tiered-behaviours EX2"]);
    assert!(cited_in(&text, true).contains("tiered C1"));
}
