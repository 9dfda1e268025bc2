//! How does a log leave its place? It is deleted, moved aside, or another replaces it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use super::checkpoints::CheckpointFile;
use super::directory::LogDir;
use super::engine::Engine;
use super::partitions::{Entry, Place, Shut};
use crate::error::{Error, Kind, Result};
use crate::log::{FolderKind, FolderName, Log};
use crate::uuid::Uuid;

/// A folder that waits for its deletion.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) dir: usize,
    path: PathBuf,
    /// The log, while it may still be in use.
    pub(super) log: Option<Arc<Log>>,
    /// When it is to go, in milliseconds since 1970.
    pub(super) due_ms: AtomicI64,
    /// It is being deleted.
    pub(super) is_busy: AtomicBool,
}

impl Removal {
    pub(super) fn new(dir: usize, path: PathBuf, log: Option<Arc<Log>>, due_ms: i64) -> Self {
        let (due_ms, is_busy) = (AtomicI64::new(due_ms), AtomicBool::new(false));
        Removal { dir, path, log, due_ms, is_busy }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Engine {
    /// Deletes the log of a partition: its folder is renamed now, and goes with the due work later.
    /// Readers that have the log may go on until then.
    ///
    /// # Errors
    /// `NotFound` when there is none; `Io` when its directory is offline, or one is where it may
    /// be.
    pub fn delete(&self, topic: &str, partition: i32, now_ms: i64) -> Result<()> {
        self.take_out(topic, partition, false, FolderKind::Delete, now_ms)
    }

    /// The same of a log that was to replace the current one.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn delete_future(&self, topic: &str, partition: i32, now_ms: i64) -> Result<()> {
        self.take_out(topic, partition, true, FolderKind::Delete, now_ms)
    }

    /// Moves the log of a partition aside, which is not assigned to this node any more; its files
    /// stay.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub fn mark_stray(&self, topic: &str, partition: i32, now_ms: i64) -> Result<()> {
        self.take_out(topic, partition, false, FolderKind::Stray, now_ms)
    }

    fn take_out(
        &self,
        topic: &str,
        partition: i32,
        is_future: bool,
        kind: FolderKind,
        now_ms: i64,
    ) -> Result<()> {
        let _changing = self.change();
        let place = self.read().get(topic, partition, is_future).cloned();
        let Some(place) = place else {
            let offline = self.dirs.iter().find_map(LogDir::failure);
            let message = format!("there is no log of {topic}-{partition}");
            let error = Error::new(Kind::NotFound, message);
            return Err(offline.map_or(error, |error| {
                error.context(format!("the log of {topic}-{partition} may be in it"))
            }));
        };
        let dir = place.dir();
        if let Place::Shut(shut) = &place
            && self.dir(dir)?.is_offline()
        {
            return Err(self.why(shut));
        }
        let folder = FolderName { topic: topic.to_owned(), partition, kind };
        let name = folder.marked(Uuid::random());
        let path = self.dir(dir)?.path.join(&name);
        if let Place::Open(entry) = &place {
            entry.pause_compaction();
        }
        let outcome = match &place {
            Place::Open(entry) => entry.log.rename_dir(&path, false).map(drop),
            Place::Shut(shut) => self.rename(shut, &name),
        };
        let is_renamed = match &place {
            Place::Open(entry) => *entry.log.dir() == path,
            Place::Shut(_) => outcome.is_ok(),
        };
        if !is_renamed {
            if let Place::Open(entry) = &place {
                entry.log.resume_compaction();
            }
            return outcome.map_err(|error| self.judge(dir, error));
        }
        self.write().remove(topic, partition, is_future);
        self.forget_lines(dir, topic, partition);
        let log = place.entry().map(|entry| Arc::clone(&entry.log));
        if kind == FolderKind::Delete {
            self.put_up(dir, path, log, now_ms);
        } else if let Some(log) = log {
            close_aside(&log)?;
        }
        outcome.and_then(|()| self.freshen(dir)).map_err(|error| self.judge(dir, error))
    }

    fn rename(&self, shut: &Shut, name: &str) -> Result<()> {
        let home = &self.dir(shut.dir)?.path;
        self.storage.rename(&shut.path, &home.join(name))?;
        self.storage.sync_dir(home)
    }

    fn put_up(&self, dir: usize, path: PathBuf, log: Option<Arc<Log>>, now_ms: i64) {
        let due_ms = now_ms.saturating_add(self.intervals.folder_delete_delay_ms);
        self.removals().push(Arc::new(Removal::new(dir, path, log, due_ms)));
    }

    /// Has the future log of a partition replace the current one, whose folder is deleted later.
    ///
    /// # Errors
    /// `NotFound` when one of the two is missing; what the disk says. When it was the current log
    /// that could not be renamed, the future one has its place all the same.
    pub fn replace_current_with_future(
        &self,
        topic: &str,
        partition: i32,
        now_ms: i64,
    ) -> Result<()> {
        let _changing = self.change();
        let current = self.open_entry(topic, partition, false)?;
        let future = self.open_entry(topic, partition, true)?;
        current.pause_compaction();
        let outcome = self.put_in_place(topic, partition, (&current, &future), now_ms);
        // Where the current log kept its place it goes on.
        if outcome.is_err()
            && self.open_entry(topic, partition, false).is_ok_and(|now| Arc::ptr_eq(&now, &current))
        {
            current.log.resume_compaction();
        }
        outcome
    }

    fn put_in_place(
        &self,
        topic: &str,
        partition: i32,
        (current, future): (&Entry, &Entry),
        now_ms: i64,
    ) -> Result<()> {
        // What the current log has durable must not be lost with it.
        future.log.flush(true, now_ms).map_err(|error| self.judge(future.dir, error))?;
        // A line that the new log's directory has of an older one would be taken for its own.
        self.freshen(future.dir)?;
        let live = FolderName { topic: topic.to_owned(), partition, kind: FolderKind::Live };
        let path = self.dir(future.dir)?.path.join(live.to_string());
        let home = &self.dir(future.dir)?.path;
        let renamed = future.log.rename_dir(&path, true).and_then(|is_renamed| {
            // An earlier try may have come as far as this.
            if is_renamed { Ok(()) } else { self.storage.sync_dir(home) }
        });
        renamed.map_err(|error| self.judge(future.dir, error))?;
        self.write().remove(topic, partition, true);
        future.log.set_compacted_end_offset(current.log.compacted_end_offset());
        self.add(topic, partition, false, future.dir, Arc::clone(&future.log), now_ms);
        let moved = self.checkpoint_dir(future.dir, CheckpointFile::CompactedEnds);
        let folder = FolderName { kind: FolderKind::Delete, ..live };
        let name = folder.marked(Uuid::random());
        let path = self.dir(current.dir)?.path.join(&name);
        // It goes on for those who have it.
        let outcome = current.log.rename_dir(&path, true);
        if *current.log.dir() == path {
            self.put_up(current.dir, path, Some(Arc::clone(&current.log)), now_ms);
        } else {
            // Nobody closes it any more: a marker would say that it is whole.
            self.dir(current.dir)?.is_complete.store(false, Ordering::Relaxed);
        }
        self.forget_lines(current.dir, topic, partition);
        let checkpointed = outcome.and_then(|_| self.freshen(current.dir));
        let checkpointed = checkpointed.map_err(|error| {
            let error = self.judge(current.dir, error);
            // Nobody else closes it: it is in no place any more.
            if self.dirs.get(current.dir).is_some_and(LogDir::is_offline) {
                current.log.abandon();
            }
            error
        });
        checkpointed.and(moved)
    }

    fn open_entry(&self, topic: &str, partition: i32, is_future: bool) -> Result<Arc<Entry>> {
        match self.read().get(topic, partition, is_future) {
            Some(Place::Open(entry)) => Ok(Arc::clone(entry)),
            Some(Place::Shut(shut)) => Err(self.why(shut)),
            None => {
                let what = if is_future { "future log" } else { "log" };
                let message = format!("there is no {what} of {topic}-{partition}");
                Err(Error::new(Kind::NotFound, message))
            }
        }
    }
}

/// A log that is kept aside is whole and durable: whoever takes it up again finds it sound.
fn close_aside(log: &Log) -> Result<()> {
    let Some((work, now_ms)) = log.begin_close()? else { return Ok(()) };
    let outcome = log.sync(&work);
    log.complete_flush(&work, outcome, now_ms)
}
