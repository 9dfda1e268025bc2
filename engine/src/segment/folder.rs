//! Where do the files of a partition lie?

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use super::log_segment::LogSegment;
use super::name::{FileName, FileRole, FileState};
use super::open_files::OpenFiles;
use crate::error::{Kind, Result};
use crate::io::{File, OpenMode, Storage};
use crate::sync::{ArcSwap, Mutex};

/// The directory of a partition, which may be renamed while its segments are read.
#[derive(Debug)]
pub struct Folder {
    storage: Arc<dyn Storage>,
    path: ArcSwap<PathBuf>,
    /// Held while the directory gets another name.
    moving: Mutex<()>,
    open_files: Arc<OpenFiles>,
    state: FileState,
}

impl Folder {
    /// The directory at `path`.
    #[must_use]
    pub fn new(storage: Arc<dyn Storage>, path: &Path, open_files: Arc<OpenFiles>) -> Self {
        let path = ArcSwap::from_pointee(path.to_path_buf());
        let (moving, state) = (Mutex::default(), FileState::Live);
        Folder { storage, path, moving, open_files, state }
    }

    /// The same directory for the output of a compaction: its files are no part of the log yet.
    #[must_use]
    pub fn for_cleaned(&self) -> Self {
        Folder {
            storage: Arc::clone(&self.storage),
            path: ArcSwap::new(self.path()),
            moving: Mutex::default(),
            open_files: Arc::clone(&self.open_files),
            state: FileState::Cleaned,
        }
    }

    /// The disk that it lies on.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Its path now.
    #[must_use]
    pub fn path(&self) -> Arc<PathBuf> {
        self.path.load_full()
    }

    /// Renames it within its file system. Not durable before the directory around it is synced.
    ///
    /// # Errors
    /// What the disk says: then it has its old name.
    pub fn rename(&self, to: &Path) -> Result<()> {
        let _moving = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        self.storage.rename(&self.path.load(), to)?;
        self.path.store(Arc::new(to.to_path_buf()));
        Ok(())
    }

    /// Opens a file of a segment, also while the directory is renamed.
    ///
    /// # Errors
    /// What the disk says.
    pub fn open(&self, offset: i64, role: FileRole, mode: OpenMode) -> Result<Box<dyn File>> {
        loop {
            let path = self.path();
            let name = FileName { offset, role, state: self.state }.format();
            match self.storage.open(&path.join(name), mode) {
                Err(error) if error.kind() == Kind::NotFound => {
                    // It may have just got another name, which is told when the lock is free.
                    drop(self.moving.lock().unwrap_or_else(PoisonError::into_inner));
                    if Arc::ptr_eq(&path, &self.path.load()) {
                        return Err(error);
                    }
                }
                other => return other,
            }
        }
    }

    /// The same, made empty where it is missing.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) fn open_or_make(&self, offset: i64, role: FileRole) -> Result<Box<dyn File>> {
        match self.open(offset, role, OpenMode::ReadWrite) {
            Err(error) if error.kind() == Kind::NotFound => {
                self.open(offset, role, OpenMode::CreateNew)
            }
            other => other,
        }
    }

    /// The path of a file of a segment.
    #[must_use]
    pub fn file(&self, offset: i64, role: FileRole) -> PathBuf {
        self.file_in(offset, role, self.state)
    }

    /// The path of a file of a segment at another stage of its life.
    #[must_use]
    pub fn file_in(&self, offset: i64, role: FileRole, state: FileState) -> PathBuf {
        self.path.load().join(FileName { offset, role, state }.format())
    }

    pub(super) fn open_files(&self) -> &Arc<OpenFiles> {
        &self.open_files
    }

    /// Counts a segment whose files were opened among those that may be let go of. One that is to
    /// get other names has to keep them: it could not be opened again.
    pub(super) fn keep_count(&self, segment: &Arc<LogSegment>) {
        if self.state == FileState::Live {
            self.open_files.opened(segment);
        }
    }
}
