//! Which partition directories has this process open?
//!
//! Two logs of one directory would write over each other's batches: the second one is refused.
//! Another process is not found out, and the logs of an engine are its own business: it locks their
//! log directory.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::{Error, Kind};

use crate::error::Outcome;
use crate::fork;

/// Whose a directory is, by its path without links.
static OPEN: Mutex<BTreeMap<PathBuf, Mark>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

/// One claim among those of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    generation: u32,
    number: u64,
}

/// The right to open a directory, until it is dropped.
pub struct Claim {
    place: PathBuf,
    mark: Mark,
}

fn open() -> MutexGuard<'static, BTreeMap<PathBuf, Mark>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path of a directory without links. It may be missing, but its parent is there where a log
/// can be opened.
fn place_of(dir: &Path) -> PathBuf {
    let of_parent = || {
        let parent = match dir.parent()? {
            here if here == Path::new("") => Path::new("."),
            parent => parent,
        };
        Some(parent.canonicalize().ok()?.join(dir.file_name().unwrap_or(OsStr::new(""))))
    };
    dir.canonicalize().ok().or_else(of_parent).unwrap_or_else(|| dir.to_path_buf())
}

impl Claim {
    /// Claims a directory.
    pub fn take(dir: &Path) -> Outcome<Self> {
        let place = place_of(dir);
        let generation = fork::watch();
        let mark = Mark { generation, number: NEXT.fetch_add(1, Ordering::Relaxed) };
        let mut open = open();
        // What the parent has open is not known to be open still.
        if open.get(&place).is_some_and(|other| other.generation == generation) {
            let message = "this process has the log open already";
            return Err(Error::new(Kind::Conflict, message).in_file(dir).into());
        }
        open.insert(place.clone(), mark);
        Ok(Claim { place, mark })
    }

    /// Lets others claim the directory.
    pub fn release(&self) {
        let mut open = open();
        if open.get(&self.place) == Some(&self.mark) {
            open.remove(&self.place);
        }
        if open.is_empty() {
            // When the library is unloaded, no node of the tree stays.
            *open = BTreeMap::new();
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.release();
    }
}
