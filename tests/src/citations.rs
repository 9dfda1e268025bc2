//! Which rows of a catalogue do the tests of the repository cite, and which have a reason for
//! having none?

use std::collections::BTreeSet;
use std::fs;

use crate::sources::{root, sources};

/// The rows that some test below these folders cites: `cited_in` finds those of a source file, and
/// is told whether all of that file is a test.
#[must_use]
pub fn cited(
    folders: &[&str],
    cited_in: impl Fn(&str, bool) -> BTreeSet<String>,
) -> BTreeSet<String> {
    let mut cited = BTreeSet::new();
    for source in sources(folders) {
        // Tests of the engine stand at the end of a file, or in files of their own.
        let is_test = source.name.split('/').any(|part| part.starts_with("tests"));
        cited.extend(cited_in(&source.text, is_test));
    }
    cited
}

/// The rows of the table below a heading of `docs/COMPATIBILITY.md`, and those of its lines that
/// give no reason.
///
/// # Panics
///
/// When the document or the heading is missing.
#[must_use]
pub fn explained(
    heading: &str,
    rows_in: impl Fn(&str) -> BTreeSet<String>,
) -> (BTreeSet<String>, Vec<String>) {
    let document = fs::read_to_string(root().join("docs/COMPATIBILITY.md")).expect("the document");
    let (_, behind) = document.split_once(&format!("\n{heading}\n")).expect("the heading");
    let section = behind.split_once("\n## ").map_or(behind, |(section, _)| section);
    let (mut explained, mut without_reason) = (BTreeSet::new(), Vec::new());
    for line in section.lines().filter(|line| line.starts_with("| ")) {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let rows = rows_in(cells.next().unwrap_or_default());
        if !rows.is_empty() && cells.next().is_none_or(str::is_empty) {
            without_reason.push(line.to_owned());
        }
        explained.extend(rows);
    }
    (explained, without_reason)
}
