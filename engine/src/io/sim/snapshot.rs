//! Are two trees of files the same? Trees from the real and the simulated disk, to load, write out
//! and compare.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::disk::SimDisk;
use crate::error::{Error, Result};
use crate::io::{Disk, FileKind, OpenMode, Storage};

/// No file that is loaded is longer.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// What stands at a path.
#[derive(Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file with these bytes.
    File(Vec<u8>),
    /// A directory.
    Directory,
    /// Something that cannot be opened.
    Other(FileKind),
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::File(bytes) => write!(f, "file of {} bytes", bytes.len()),
            Entry::Directory => f.write_str("directory"),
            Entry::Other(kind) => write!(f, "{kind:?}"),
        }
    }
}

/// The files below a directory, by path from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// What is there.
    pub entries: BTreeMap<PathBuf, Entry>,
}

impl Snapshot {
    /// Reads what is below a directory of any disk. On a simulated disk this counts as operations:
    /// [`SimDisk::snapshot`] does not.
    pub fn read(storage: &dyn Storage, root: &Path) -> Result<Self> {
        let mut snapshot = Snapshot::default();
        let mut waiting = vec![PathBuf::new()];
        while let Some(dir) = waiting.pop() {
            for found in storage.list(&root.join(&dir))? {
                let path = dir.join(&found.name);
                let entry = match found.kind {
                    FileKind::File => Entry::File(storage.read(&root.join(&path), FILE_BYTES_MAX)?),
                    FileKind::Directory => {
                        waiting.push(path.clone());
                        Entry::Directory
                    }
                    kind => Entry::Other(kind),
                };
                snapshot.entries.insert(path, entry);
            }
        }
        Ok(snapshot)
    }

    /// Writes it out below a directory of the real disk, which must exist. What cannot be opened is
    /// left out.
    pub fn write_out(&self, root: &Path) -> Result<()> {
        let disk = Disk::new();
        // A directory sorts before what is in it.
        for (path, entry) in &self.entries {
            match entry {
                Entry::File(bytes) => {
                    disk.open(&root.join(path), OpenMode::Create)?.write_at(bytes, 0)?;
                }
                Entry::Directory => disk.create_dir(&root.join(path))?,
                Entry::Other(_) => {}
            }
        }
        Ok(())
    }

    /// Where the two part, one line each; empty when they are the same.
    #[must_use]
    pub fn differences(&self, other: &Snapshot) -> Vec<String> {
        let paths: BTreeSet<&PathBuf> = self.entries.keys().chain(other.entries.keys()).collect();
        let line = |path: &PathBuf| {
            let how = match (self.entries.get(path), other.entries.get(path)) {
                (Some(a), Some(b)) if a == b => return None,
                (Some(Entry::File(a)), Some(Entry::File(b))) => differing_bytes(a, b),
                (Some(a), Some(b)) => format!("{a:?} against {b:?}"),
                (Some(a), None) => format!("{a:?} against nothing"),
                (None, b) => format!("nothing against {:?}", b?),
            };
            Some(format!("{}: {how}", path.display()))
        };
        paths.into_iter().filter_map(line).collect()
    }
}

fn differing_bytes(a: &[u8], b: &[u8]) -> String {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (sizes, ends) = (format!("{} against {} bytes", a.len(), b.len()), a.len().min(b.len()));
    if common == ends {
        return format!("{sizes}, the longer goes on");
    }
    format!("{sizes}, the first that differs at {common}")
}

impl SimDisk {
    /// Loads what is below a directory of the real disk to a path of this one, durably and with its
    /// owners and times, and without counting as operations. Links are followed, so that one to
    /// a directory becomes a directory.
    pub fn load(&self, root: &Path, at: &Path) -> Result<()> {
        let disk = Disk::new();
        self.put_dir(at, Some(&disk.metadata(root)?))?;
        let mut waiting = vec![PathBuf::new()];
        while let Some(dir) = waiting.pop() {
            for found in disk.list(&root.join(&dir))? {
                let path = dir.join(&found.name);
                let (origin, target) = (root.join(&path), at.join(&path));
                let metadata = disk.metadata(&origin)?;
                match found.kind {
                    FileKind::File => {
                        let bytes = disk.read(&origin, FILE_BYTES_MAX)?;
                        self.put(&target, bytes, Some(&metadata))?;
                    }
                    FileKind::Directory => {
                        self.put_dir(&target, Some(&metadata))?;
                        waiting.push(path);
                    }
                    kind => self.put_other(&target, kind)?,
                }
            }
        }
        Ok(())
    }

    /// What is below a directory now, as a reader sees it, without counting as operations.
    /// `NotFound` when the directory is not there.
    pub fn snapshot(&self, root: &Path) -> Result<Snapshot> {
        let mut entries = BTreeMap::new();
        let mut is_there = false;
        for (path, kind, bytes) in self.walk(root) {
            let below = path.strip_prefix(root).unwrap_or(&path);
            if below.as_os_str().is_empty() {
                is_there = true;
                continue;
            }
            let entry = match (kind, bytes) {
                (_, Some(bytes)) => Entry::File(bytes.to_vec()),
                (FileKind::Directory, None) => Entry::Directory,
                (kind, None) => Entry::Other(kind),
            };
            entries.insert(below.to_path_buf(), entry);
        }
        if is_there {
            return Ok(Snapshot { entries });
        }
        Err(Error::io("list", root, std::io::ErrorKind::NotFound.into()))
    }
}
