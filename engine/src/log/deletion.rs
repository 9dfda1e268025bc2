//! Which files are to be deleted, and when?
//!
//! What leaves a log is renamed at once and unlinked after a delay, when the host says so: a reader
//! that has just looked it up still finds it open.

use std::collections::VecDeque;
use std::sync::PoisonError;

use super::log::Log;
use crate::error::{Kind, Result};
use crate::segment::{FileName, FileRole, FileState};
use crate::sync::{Mutex, MutexGuard};

/// Files that wait for their deletion.
#[derive(Debug, Default)]
pub(super) struct Deletions(Mutex<VecDeque<Deletion>>);

#[derive(Clone, Debug)]
struct Deletion {
    due_ms: i64,
    /// Names of files in the directory.
    names: Vec<String>,
}

impl Deletions {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Deletion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// When the next files are to be deleted, in milliseconds since 1970; `None` when none wait.
    #[must_use]
    pub fn next_deletion_ms(&self) -> Option<i64> {
        self.deletions.lock().iter().map(|deletion| deletion.due_ms).min()
    }

    /// Deletes the files that are due, and says how many. To be called by the host, from any
    /// thread; what cannot be deleted stays due.
    ///
    /// # Errors
    /// The first file that could not be deleted; the others were.
    pub fn delete_due_files(&self, now_ms: i64) -> Result<usize> {
        let due: VecDeque<Deletion> = {
            let mut waiting = self.deletions.lock();
            let (due, later) = waiting.drain(..).partition(|deletion| deletion.due_ms <= now_ms);
            *waiting = later;
            due
        };
        let mut deleted = 0;
        let mut outcome = Ok(());
        for deletion in due {
            let mut kept = Vec::new();
            for name in deletion.names {
                match self.folder.storage().remove_file(&self.dir().join(&name)) {
                    Ok(()) => deleted += 1,
                    Err(error) if error.kind() == Kind::NotFound => {}
                    Err(error) => {
                        kept.push(name);
                        outcome = outcome.and(Err(error));
                    }
                }
            }
            if !kept.is_empty() {
                self.deletions.lock().push_back(Deletion { due_ms: deletion.due_ms, names: kept });
            }
        }
        outcome.map(|()| deleted)
    }

    /// Renames the files of a segment, so that nobody takes them for a part of the log, and puts
    /// them up for deletion.
    pub(super) fn doom_segment(&self, base_offset: i64, now_ms: i64) -> Result<()> {
        // spec: segments 4.6. The log comes last: as long as it has its name, the segment is whole,
        // if slower to search.
        let roles = [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex, FileRole::Log];
        self.doom(base_offset, &roles, now_ms)
    }

    /// The same for a snapshot.
    pub(super) fn doom_snapshot(&self, offset: i64, now_ms: i64) -> Result<()> {
        self.doom(offset, &[FileRole::Snapshot], now_ms)
    }

    fn doom(&self, offset: i64, roles: &[FileRole], now_ms: i64) -> Result<()> {
        let dir = self.dir();
        let mut names = Vec::new();
        let mut outcome = Ok(());
        for role in roles {
            let live = FileName::live(offset, *role);
            let name = FileName { state: FileState::Deleted, ..live }.format();
            match self.folder.storage().rename(&dir.join(live.format()), &dir.join(&name)) {
                Ok(()) => names.push(name),
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        if !names.is_empty() {
            let due_ms = now_ms.saturating_add(self.config.load().file_delete_delay_ms);
            self.deletions.lock().push_back(Deletion { due_ms, names });
        }
        outcome
    }
}
