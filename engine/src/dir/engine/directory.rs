//! One log directory: its lock, its id, how it was left, and whether its disk still works.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::dir::files::LOCK_FILE;
use crate::error::{Error, Kind, Result};
use crate::io::{Lock, Storage};
use crate::state::OffsetCheckpoint;
use crate::uuid::Uuid;

/// Errors that say nothing of the disk: too many open files, no memory, no room.
const PASSING: [i32; 5] = [12, 23, 24, 28, 122];

/// A log directory.
#[derive(Debug)]
pub(super) struct LogDir {
    pub(super) path: PathBuf,
    pub(super) id: Option<Uuid>,
    pub(super) was_clean: bool,
    /// The broker epoch in its marker.
    pub(super) broker_epoch: Option<i64>,
    lock: Mutex<Option<Box<dyn Lock>>>,
    failure: OnceLock<Failure>,
    /// Whether every log in it was opened, and none left its place without a new name.
    pub(super) is_complete: AtomicBool,
    pub(super) books: Mutex<Books>,
    /// When each of the checkpoints is to be written.
    pub(super) checkpoint_at: [AtomicI64; 4],
    /// Kinds of work that are handed out.
    pub(super) busy: AtomicU8,
    pub(super) flush_retry_at: AtomicI64,
}

/// What the checkpoints of a directory say beside the offsets of its open logs.
#[derive(Debug, Default)]
pub(super) struct Books {
    /// The lines of logs that could not be opened.
    pub(super) kept: Lines,
    /// The files have lines of logs that are gone: a new log must not be taken for one of those.
    pub(super) is_stale: bool,
}

/// The entries of the checkpoints.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    pub(super) recovery_points: OffsetCheckpoint,
    pub(super) log_starts: OffsetCheckpoint,
    pub(super) high_watermarks: OffsetCheckpoint,
    pub(super) compacted_ends: OffsetCheckpoint,
}

impl Lines {
    pub(super) fn all_mut(&mut self) -> [&mut OffsetCheckpoint; 4] {
        let Lines { recovery_points, log_starts, high_watermarks, compacted_ends } = self;
        [recovery_points, log_starts, high_watermarks, compacted_ends]
    }
}

/// Why something is not to be had; told as often as it is asked for.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) kind: Kind,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn of(error: &Error) -> Self {
        Failure { kind: error.kind(), message: error.to_string() }
    }

    pub(super) fn error(&self) -> Error {
        Error::new(self.kind, self.message.clone())
    }
}

impl LogDir {
    pub(super) fn new(path: &Path) -> Self {
        LogDir {
            // Without a slash at the end or a dot within: the same directory has the same path.
            path: path.components().collect(),
            id: None,
            was_clean: false,
            broker_epoch: None,
            lock: Mutex::default(),
            failure: OnceLock::new(),
            is_complete: AtomicBool::new(false),
            books: Mutex::default(),
            checkpoint_at: Default::default(),
            busy: AtomicU8::new(0),
            flush_retry_at: AtomicI64::new(i64::MIN),
        }
    }

    /// Takes the lock of the directory, which is made when it is missing.
    pub(super) fn take(&self, storage: &dyn Storage) -> Result<()> {
        match storage.metadata(&self.path) {
            Err(error) if error.kind() == Kind::NotFound => {
                storage.create_dir(&self.path)?;
                if let Some(home) = self.path.parent().filter(|home| *home != Path::new("")) {
                    storage.sync_dir(home)?;
                }
            }
            other => drop(other?),
        }
        let lock = storage.lock(&self.path.join(LOCK_FILE))?;
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
        Ok(())
    }

    pub(super) fn let_go(&self) {
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes it offline; `false` when it was already.
    pub(super) fn fail(&self, error: &Error) -> bool {
        self.failure.set(Failure::of(error)).is_ok()
    }

    pub(super) fn failure(&self) -> Option<Error> {
        let failure = self.failure.get()?;
        let message = format!("the log directory is offline: {}", failure.message);
        Some(Error::new(Kind::Io, message).in_file(&self.path))
    }

    pub(super) fn is_offline(&self) -> bool {
        self.failure.get().is_some()
    }

    /// An error for whoever asks for something of it while it is offline.
    pub(super) fn check(&self) -> Result<()> {
        self.failure().map_or(Ok(()), Err)
    }

    /// Marks a kind of work as handed out; `false` when it is.
    pub(super) fn claim(&self, bit: u8) -> bool {
        self.busy.fetch_or(bit, Ordering::AcqRel) & bit == 0
    }
}

/// Whether an error says that a disk does not work, so that its directory goes offline.
pub(super) fn is_disk_failure(error: &Error) -> bool {
    error.kind() == Kind::Io
        && !error.is_repeated()
        && error.errno().is_none_or(|errno| !PASSING.contains(&errno))
}
