//! Where do the files of a partition lie?

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::name::{FileName, FileRole, FileState};
use super::open_files::OpenFiles;
use crate::io::Storage;

/// The directory of a partition, which may be renamed while its segments are read.
#[derive(Debug)]
pub struct Folder {
    storage: Arc<dyn Storage>,
    path: ArcSwap<PathBuf>,
    open_files: Arc<OpenFiles>,
    state: FileState,
}

impl Folder {
    /// The directory at `path`.
    #[must_use]
    pub fn new(storage: Arc<dyn Storage>, path: &Path, open_files: Arc<OpenFiles>) -> Self {
        let path = ArcSwap::from_pointee(path.to_path_buf());
        Folder { storage, path, open_files, state: FileState::Live }
    }

    /// The same directory for the output of a compaction: its files are no part of the log yet.
    #[must_use]
    pub fn for_cleaned(&self) -> Self {
        Folder {
            storage: Arc::clone(&self.storage),
            path: ArcSwap::new(self.path()),
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

    /// Says that it was renamed.
    pub fn renamed(&self, path: &Path) {
        self.path.store(Arc::new(path.to_path_buf()));
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

    pub(super) fn open_files(&self) -> &OpenFiles {
        &self.open_files
    }
}
