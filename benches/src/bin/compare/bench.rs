//! What the groups of rows share: where they work, how often they measure, and which rows are
//! wanted.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use siltstone_benches::Result;
use siltstone_benches::directory::Directory;
use siltstone_benches::rounds::{Lap, Timing, Watch, few_rounds, rounds};

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
    partitions: RefCell<Option<Directory>>,
}

/// Where directories of many partitions are made, in the folder of all data.
const MANY_FILES: &str = "partitions";
/// Small partitions of a directory, and segments of each.
const PARTITIONS: u64 = 2000;
const SEGMENTS: usize = 3;

impl Bench {
    pub(crate) fn new(work: PathBuf) -> Self {
        Bench {
            work,
            is_quick: false,
            words: Vec::new(),
            kafka: Figures::default(),
            partitions: RefCell::new(None),
        }
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

    /// Measures rounds that say themselves what counts. They take seconds, and longer still to put
    /// back, so there are three.
    pub(crate) fn time_few_laps(&self, work: impl FnMut() -> Result<Lap>) -> Result<Timing> {
        few_rounds(self.rounds().min(3), work)
    }

    /// Where directories of many partitions are made. They stay until the end: where many files
    /// were deleted, ext4 takes several times as long to make new ones.
    pub(crate) fn many_files(&self) -> PathBuf {
        self.work.join(MANY_FILES)
    }

    /// Works with the directory of small partitions that all rows share.
    pub(crate) fn with_partitions<T>(
        &self,
        work: impl FnOnce(&mut Directory) -> Result<T>,
    ) -> Result<T> {
        let mut shared = self.partitions.borrow_mut();
        if let Some(directory) = shared.as_mut() {
            return work(directory);
        }
        let count = usize::try_from(self.scaled(PARTITIONS))?;
        let home = self.many_files().join("siltstone");
        work(shared.insert(Directory::make(&home, count, SEGMENTS)?))
    }

    /// Shows a row as soon as it is known.
    pub(crate) fn told(&self, row: Row) -> Row {
        println!("{}", row.line());
        row
    }

    /// Removes what was made, but for the directories of many files.
    pub(crate) fn clear(&self) -> Result<()> {
        fs::create_dir_all(&self.work)?;
        for entry in fs::read_dir(&self.work)? {
            let entry = entry?;
            if entry.file_name() == MANY_FILES {
                continue;
            }
            if entry.file_type()?.is_dir() {
                remove(&entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Removes everything.
    pub(crate) fn clear_all(&self) -> Result<()> {
        remove(&self.work)
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
