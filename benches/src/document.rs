//! Where do figures stand? Between marks in docs/PERFORMANCE.md, where those of a run replace those
//! of the run before.

use std::fs;
use std::path::Path;

use crate::Result;

/// Puts a text between two marks.
///
/// # Errors
/// When the document lacks a mark, or cannot be written.
pub fn replace((begin, end): (&str, &str), text: &str) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/PERFORMANCE.md");
    let whole = fs::read_to_string(&path)?;
    let missing = |mark: &str| format!("docs/PERFORMANCE.md has no {mark}");
    let (front, rest) = whole.split_once(begin).ok_or_else(|| missing(begin))?;
    let (_, back) = rest.split_once(end).ok_or_else(|| missing(end))?;
    fs::write(&path, format!("{front}{begin}\n{text}{end}{back}"))?;
    println!("written to {}", path.display());
    Ok(())
}
