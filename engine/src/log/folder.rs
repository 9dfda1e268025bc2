//! How does a log move to another directory name, and how does it end for good?

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::log::Log;
use super::removal::remove_tree;
use crate::error::{Error, Kind, Result};
use crate::state::LeaderEpochs;

impl Log {
    /// Renames the directory, durably; `false` when it has that name. Readers go on; whoever is
    /// writing is waited for. A round of compaction ends.
    ///
    /// With `keep_epochs` the log goes on under the new name: a future replica takes its place. A
    /// log that is to be deleted or was left behind forgets them; its checkpoint stays as it is.
    ///
    /// # Errors
    /// `Closed`; what the disk says. When only the sync failed, the log has its new name all the
    /// same: [`dir`](Self::dir) tells.
    pub fn rename_dir(&self, path: &Path, keep_epochs: bool) -> Result<bool> {
        // spec: segments 6.10
        self.check_no_look()?;
        let still = self.stand_still();
        let seat = self.wait_for_seat()?;
        let old = self.dir();
        if old.as_path() == path {
            return Ok(false);
        }
        let storage = self.folder.storage();
        // The epochs are written from outside of the seat.
        let mut saved = match self.saved_epochs.lock() {
            Ok(saved) => saved,
            Err(poisoned) => poisoned.into_inner(),
        };
        self.folder.rename(path)?;
        if !keep_epochs {
            let forgotten = Arc::new(LeaderEpochs::new());
            *saved = Arc::clone(&forgotten);
            self.epochs.store(forgotten);
        }
        drop(saved);
        drop(seat);
        drop(still);
        let mut parents: Vec<&Path> = [old.parent(), path.parent()].into_iter().flatten().collect();
        parents.dedup();
        parents.into_iter().try_for_each(|parent| storage.sync_dir(parent))?;
        Ok(true)
    }

    /// Removes the log from the disk and closes it. Leases stay good. A round of compaction ends;
    /// the step that is being done is waited for.
    ///
    /// # Errors
    /// `Conflict`, `Closed`, what the disk says: what is left is for [`remove_tree`] to remove.
    pub fn delete(&self) -> Result<()> {
        // spec: segments 6.10
        self.check_no_look()?;
        let mut still = self.stand_still();
        let seat = self.take_seat_anyway()?;
        still.forget_replacement();
        self.is_closed.store(true, Ordering::Release);
        if let Some(writer) = seat.leave() {
            writer.active.close();
        }
        self.segments.load().iter().for_each(|segment| segment.close());
        let (storage, dir) = (self.folder.storage(), self.dir());
        remove_tree(&**storage, &dir)?;
        match dir.parent() {
            Some(parent) => storage.sync_dir(parent),
            None => Err(Error::new(Kind::InvalidArgument, "the root is no log").in_file(&dir)),
        }
    }
}
