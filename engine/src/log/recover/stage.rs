//! Where are the new small files while the plan is not yet carried out?
//!
//! In memory, up to a limit; what does not fit is written beside the file that it will replace, as `<name>.tmp`, a name that
//! neither Kafka nor the inventory takes for anything.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::io::{Metadata, OpenMode, Storage};

/// The bytes of a file to be.
#[derive(Debug)]
pub enum Staged {
    /// Held in memory.
    Memory(Vec<u8>),
    /// Written beside, under its name with `.tmp`.
    Beside,
    /// Not kept: the plan will not be carried out.
    Dropped,
}

/// Keeps new files until they are put in place.
#[derive(Debug)]
pub struct Stage<'a> {
    storage: &'a dyn Storage,
    dir: PathBuf,
    limit_bytes: Option<usize>,
    held_bytes: usize,
    /// Owner and mode for new files.
    like: Option<Metadata>,
}

impl<'a> Stage<'a> {
    /// A stage for files of `dir`. Without a limit nothing is written, and what does not fit is dropped.
    pub fn new(
        storage: &'a dyn Storage,
        dir: &Path,
        limit_bytes: Option<usize>,
        like: Option<Metadata>,
    ) -> Self {
        Stage { storage, dir: dir.to_path_buf(), limit_bytes, held_bytes: 0, like }
    }

    /// Keeps the bytes of a file.
    pub fn put(&mut self, name: &str, bytes: Vec<u8>) -> Result<Staged> {
        const DRY_RUN_BYTES: usize = 8 << 20;
        let limit = self.limit_bytes.unwrap_or(DRY_RUN_BYTES);
        if self.held_bytes.saturating_add(bytes.len()) <= limit {
            self.held_bytes = self.held_bytes.saturating_add(bytes.len());
            return Ok(Staged::Memory(bytes));
        }
        if self.limit_bytes.is_none() {
            return Ok(Staged::Dropped);
        }
        write_beside(self.storage, &self.dir, name, &bytes, self.like.as_ref())?;
        Ok(Staged::Beside)
    }

    /// Forgets what was kept of a file.
    pub fn forget(&mut self, name: &str, staged: &Staged) -> Result<()> {
        match staged {
            Staged::Memory(bytes) => {
                self.held_bytes = self.held_bytes.saturating_sub(bytes.len());
                Ok(())
            }
            Staged::Beside => self.storage.remove_file(&beside(&self.dir, name)),
            Staged::Dropped => Ok(()),
        }
    }
}

/// Where a file is written before it replaces the one of its name.
pub fn beside(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.tmp"))
}

/// Writes a file beside the one that it will replace, with owner and mode of `like`.
pub fn write_beside(
    storage: &dyn Storage,
    dir: &Path,
    name: &str,
    bytes: &[u8],
    like: Option<&Metadata>,
) -> Result<()> {
    let path = beside(dir, name);
    let file = storage.open(&path, OpenMode::Create)?;
    file.write_at(bytes, 0)?;
    if let Some(like) = like {
        file.set_owner(like)?;
    }
    Ok(())
}
