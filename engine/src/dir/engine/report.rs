//! What came of opening and of closing all logs.

use std::path::PathBuf;

use crate::error::Error;
use crate::problem::Problem;

/// What came of opening an engine.
#[derive(Debug, Default)]
pub struct LoadReport {
    /// The log directories, in the order that they were given in.
    pub dirs: Vec<DirLoaded>,
    /// Logs that are open, future ones too.
    pub opened: usize,
    /// Logs that could not be opened. They are left as they are, and keep their directory from
    /// being marked as stopped cleanly.
    pub refused: Vec<LogLoaded>,
    /// Folders of logs that are not assigned to this node.
    pub stray: Vec<PathBuf>,
    /// Folders that wait for their deletion.
    pub deleting: usize,
}

/// What came of a log directory.
#[derive(Debug)]
pub struct DirLoaded {
    /// The directory.
    pub path: PathBuf,
    /// Whether it was stopped cleanly.
    pub was_clean: bool,
    /// Why it is offline.
    pub failure: Option<Error>,
    /// What is wrong with its own files and folders.
    pub problems: Vec<Problem>,
}

/// A log that could not be opened.
#[derive(Debug)]
pub struct LogLoaded {
    /// Its folder.
    pub path: PathBuf,
    /// Why.
    pub error: Error,
}

/// What came of closing an engine.
#[derive(Debug, Default)]
pub struct CloseReport {
    /// The log directories, in the order that they were given in.
    pub dirs: Vec<DirClosed>,
}

/// What came of closing a log directory.
#[derive(Debug)]
pub struct DirClosed {
    /// The directory.
    pub path: PathBuf,
    /// Whether it is marked as stopped cleanly.
    pub is_clean: bool,
    /// What went wrong.
    pub errors: Vec<Error>,
}
