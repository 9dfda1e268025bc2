//! What the groups of rows share: where they work, how often they measure, and which rows are
//! wanted.

use std::fs;
use std::path::{Path, PathBuf};

use siltstone_benches::Result;
use siltstone_benches::rounds::{Lap, Timing, Watch, rounds};

use crate::kafka::Figures;
use crate::table::Row;

/// One run of the comparison.
#[derive(Debug)]
pub(crate) struct Bench {
    /// Where data is made.
    pub(crate) work: PathBuf,
    /// Small data, few rounds.
    pub(crate) is_quick: bool,
    /// Only rows whose name holds one of these; all when there are none.
    pub(crate) words: Vec<String>,
    /// What Kafka's classes took.
    pub(crate) kafka: Figures,
}

impl Bench {
    pub(crate) fn new(work: PathBuf) -> Self {
        Bench { work, is_quick: false, words: Vec::new(), kafka: Figures::default() }
    }

    /// Whether a row is to be measured.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Measured rounds.
    pub(crate) fn rounds(&self) -> usize {
        if self.is_quick { 2 } else { 5 }
    }

    /// A size in bytes or items, a sixteenth of it in a quick run.
    pub(crate) fn scaled(&self, size: u64) -> u64 {
        if self.is_quick { size / 16 } else { size }
    }

    /// Measures what is done in one go.
    pub(crate) fn time(&self, mut work: impl FnMut() -> Result<()>) -> Result<Timing> {
        rounds(self.rounds(), || {
            let watch = Watch::start();
            work()?;
            Ok(watch.stop())
        })
    }

    /// Measures rounds that say themselves what counts.
    pub(crate) fn time_laps(&self, work: impl FnMut() -> Result<Lap>) -> Result<Timing> {
        rounds(self.rounds(), work)
    }

    /// Shows a row as soon as it is known.
    pub(crate) fn told(&self, row: Row) -> Row {
        println!("{}", row.line());
        row
    }

    /// Removes what was made.
    pub(crate) fn clear(&self) -> Result<()> {
        remove(&self.work)?;
        Ok(fs::create_dir_all(&self.work)?)
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
