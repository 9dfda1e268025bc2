//! How does a log move to another directory name, and how does it end for good?

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::log::Log;
use crate::error::{Error, Kind, Result};
use crate::state::LeaderEpochs;

impl Log {
    /// Renames the directory, durably; `false` when it has that name. Readers go on.
    ///
    /// With `keep_epochs` the log goes on under the new name: a future replica takes its place. A
    /// log that is to be deleted or was left behind forgets them; its checkpoint stays as it is.
    ///
    /// # Errors
    /// `Conflict`, `Closed`, what the disk says: the name is then the old one.
    pub fn rename_dir(&self, path: &Path, keep_epochs: bool) -> Result<bool> {
        // spec: segments 6.10
        let seat = self.take_seat_anyway()?;
        let old = self.dir();
        if old.as_path() == path {
            return Ok(false);
        }
        let storage = self.folder.storage();
        storage.rename(&old, path)?;
        self.folder.renamed(path);
        if !keep_epochs {
            let forgotten = Arc::new(LeaderEpochs::new());
            let mut saved = match self.saved_epochs.lock() {
                Ok(saved) => saved,
                Err(poisoned) => poisoned.into_inner(),
            };
            *saved = Arc::clone(&forgotten);
            self.epochs.store(forgotten);
        }
        drop(seat);
        let mut parents: Vec<&Path> = [old.parent(), path.parent()].into_iter().flatten().collect();
        parents.dedup();
        parents.into_iter().try_for_each(|parent| storage.sync_dir(parent))?;
        Ok(true)
    }

    /// Removes the log from the disk and closes it. Leases stay good.
    ///
    /// # Errors
    /// `Conflict`, `Closed`, what the disk says: what is left is to be removed by another call on
    /// the directory, opened again.
    pub fn delete(&self) -> Result<()> {
        // spec: segments 6.10
        let seat = self.take_seat_anyway()?;
        self.is_closed.store(true, Ordering::Release);
        if let Some(writer) = seat.leave() {
            writer.active.close();
        }
        self.segments.load().iter().for_each(|segment| segment.close());
        let (storage, dir) = (self.folder.storage(), self.dir());
        for entry in storage.list(&dir)? {
            match storage.remove_file(&dir.join(entry.name)) {
                Err(error) if error.kind() == Kind::NotFound => {}
                other => other?,
            }
        }
        storage.remove_dir(&dir)?;
        match dir.parent() {
            Some(parent) => storage.sync_dir(parent),
            None => Err(Error::new(Kind::InvalidArgument, "the root is no log").in_file(&dir)),
        }
    }
}
