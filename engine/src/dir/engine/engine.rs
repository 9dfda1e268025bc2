//! The engine: all log directories of a node, and the logs in them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::compact::Compactors;
use super::directory::{Failure, LogDir, is_disk_failure};
use super::options::EngineOptions;
use super::partitions::{Entry, Partitions, Place, Shut};
use super::remove::Removal;
use crate::error::{Error, Kind, Result};
use crate::io::Storage;
use crate::log::{Log, LogConfig};
use crate::segment::OpenFiles;
use crate::state::ProducerStateConfig;
use crate::state::meta::agreed_broker_epoch;
use crate::uuid::Uuid;

/// All log directories of a node, and the logs in them.
///
/// It is shared by all threads of the host. Finding a log takes a lock that nobody holds for long;
/// making and removing logs is done one at a time.
///
/// ```
/// use std::sync::Arc;
/// use siltstone::dir::engine::{Engine, EngineOptions, NewLog};
/// use siltstone::io::SimDisk;
/// use siltstone::log::LogConfig;
///
/// let config = |_topic: &str| LogConfig::default();
/// let dirs = ["/data".into()];
/// let options = EngineOptions::new(&config, 0);
/// let (engine, report) = Engine::open(Arc::new(SimDisk::new()), &dirs, &options)?;
/// assert_eq!(report.opened, 0);
/// let log = engine.get_or_create("orders", 0, &NewLog::default())?;
/// assert_eq!(log.log_end_offset(), 0);
/// assert!(engine.close(7, 1).dirs.iter().all(|dir| dir.is_clean));
/// # Ok::<(), siltstone::Error>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) dirs: Vec<LogDir>,
    pub(super) partitions: RwLock<Partitions>,
    /// Held while a log is made, removed or moved.
    pub(super) changing: Mutex<()>,
    pub(super) removals: Mutex<Vec<Arc<Removal>>>,
    pub(super) open_files: Arc<OpenFiles>,
    pub(super) producers: ProducerStateConfig,
    pub(super) intervals: Intervals,
    pub(super) compactors: Compactors,
}

/// How often what is done, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals {
    pub(super) folder_delete_delay_ms: i64,
    pub(super) retention_ms: i64,
    pub(super) expiration_ms: i64,
    /// In the order of [`CheckpointFile::ALL`](super::CheckpointFile::ALL).
    pub(super) checkpoints_ms: [i64; 4],
    pub(super) retry_ms: i64,
    pub(super) cleaner_backoff_ms: i64,
}

impl Intervals {
    pub(super) fn of(options: &EngineOptions<'_>) -> Self {
        Intervals {
            folder_delete_delay_ms: options.folder_delete_delay_ms,
            retention_ms: options.retention_interval_ms,
            expiration_ms: options.expiration_interval_ms,
            checkpoints_ms: [
                options.recovery_point_interval_ms,
                options.log_start_interval_ms,
                options.high_watermark_interval_ms,
                0,
            ],
            retry_ms: options.retry_ms,
            cleaner_backoff_ms: options.cleaner_backoff_ms,
        }
    }
}

impl Engine {
    /// The current log of a partition; `None` when there is none.
    ///
    /// # Errors
    /// What keeps the log from being open: its directory is offline (`Io`), or it could not be
    /// loaded.
    pub fn log(&self, topic: &str, partition: i32) -> Result<Option<Arc<Log>>> {
        self.find(topic, partition, false)
    }

    /// The log of a partition that grows to replace the current one. As [`log`](Self::log).
    ///
    /// # Errors
    /// As [`log`](Self::log).
    pub fn future_log(&self, topic: &str, partition: i32) -> Result<Option<Arc<Log>>> {
        self.find(topic, partition, true)
    }

    pub(super) fn find(
        &self,
        topic: &str,
        partition: i32,
        is_future: bool,
    ) -> Result<Option<Arc<Log>>> {
        let partitions = self.read();
        match partitions.get(topic, partition, is_future) {
            None => Ok(None),
            Some(Place::Open(entry)) => Ok(Some(Arc::clone(&entry.log))),
            Some(Place::Shut(shut)) => Err(self.why(shut)),
        }
    }

    /// Why a folder is not open.
    pub(super) fn why(&self, shut: &Shut) -> Error {
        let offline = self.dirs.get(shut.dir).and_then(LogDir::failure);
        offline.unwrap_or_else(|| shut.failure.error())
    }

    /// All open logs with their partitions, by topic and number, the current ones first.
    #[must_use]
    pub fn logs(&self) -> Vec<(Arc<str>, i32, Arc<Log>)> {
        let partitions = self.read();
        let all = partitions.entries();
        all.map(|entry| (Arc::clone(&entry.topic), entry.partition, Arc::clone(&entry.log)))
            .collect()
    }

    /// The log directories with their ids, in the order that they were given in; those that are
    /// offline too.
    pub fn dirs(&self) -> impl Iterator<Item = (&Path, Option<Uuid>)> {
        self.dirs.iter().map(|dir| (dir.path.as_path(), dir.id))
    }

    /// The log directories that are offline, and why.
    #[must_use]
    pub fn offline_dirs(&self) -> Vec<(PathBuf, Error)> {
        let offline = |dir: &LogDir| Some((dir.path.clone(), dir.failure()?));
        self.dirs.iter().filter_map(offline).collect()
    }

    /// The broker epoch of the life before, when all directories were stopped cleanly by the same.
    #[must_use]
    pub fn previous_broker_epoch(&self) -> Option<i64> {
        let epoch = |dir: &LogDir| dir.broker_epoch.filter(|_| !dir.is_offline());
        agreed_broker_epoch(self.dirs.iter().map(epoch))
    }

    /// Gives the logs of a topic other settings. Those that are not to be compacted any more are
    /// not from now on.
    pub fn set_config(&self, topic: &str, config: &LogConfig) {
        let config = Arc::new(config.clone());
        let of_topic: Vec<Arc<Entry>> = {
            let partitions = self.read();
            let of_topic = partitions.entries().filter(|entry| &*entry.topic == topic);
            of_topic.inspect(|entry| entry.log.set_config(Arc::clone(&config))).cloned().collect()
        };
        if config.compact {
            return;
        }
        // Nobody is to wait for the table of all logs while a step comes to its end.
        for entry in of_topic {
            entry.log.pause_compaction();
            entry.log.resume_compaction();
        }
    }

    /// Takes a log directory offline: its logs are closed without a write and answer with an error
    /// from now on, and its lock is let go of. For a host that met an I/O error in one of its logs;
    /// what the engine meets itself it acts on alone. `false` when no directory has that path, or
    /// it is offline already.
    pub fn take_offline(&self, dir: &Path, error: &Error) -> bool {
        let dir: PathBuf = dir.components().collect();
        match self.dirs.iter().position(|known| known.path == dir) {
            Some(number) => self.fail_dir(number, error),
            None => false,
        }
    }

    pub(super) fn fail_dir(&self, number: usize, error: &Error) -> bool {
        let Some(dir) = self.dirs.get(number) else { return false };
        if !dir.fail(error) {
            return false;
        }
        let mut partitions = self.write();
        let lost: Vec<Arc<Entry>> =
            partitions.entries().filter(|entry| entry.dir == number).cloned().collect();
        for entry in lost {
            let Some(place) = shut(&entry, dir) else { continue };
            partitions.put(&entry.topic, entry.partition, entry.is_future, place);
            entry.log.abandon();
        }
        drop(partitions);
        dir.let_go();
        true
    }

    /// Takes the directory offline if the error says that its disk failed; gives the error.
    pub(super) fn judge(&self, number: usize, error: Error) -> Error {
        if is_disk_failure(&error) {
            self.fail_dir(number, &error);
        }
        error
    }

    pub(super) fn dir(&self, number: usize) -> Result<&LogDir> {
        self.dirs.get(number).ok_or_else(|| Error::new(Kind::NotFound, "no such log directory"))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Partitions> {
        self.partitions.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Partitions> {
        self.partitions.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn removals(&self) -> MutexGuard<'_, Vec<Arc<Removal>>> {
        self.removals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What stands in the place of a log whose directory went offline.
fn shut(entry: &Entry, dir: &LogDir) -> Option<Place> {
    let failure = Failure::of(&dir.failure()?);
    let path = PathBuf::clone(&entry.log.dir());
    Some(Place::Shut(Arc::new(Shut { path, dir: entry.dir, failure })))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::{Duration, Instant};

    use super::*;
    use crate::dir::engine::NewLog;
    use crate::io::SimDisk;

    #[test]
    fn a_topic_that_is_not_to_be_compacted_any_more_keeps_nobody_from_the_others() {
        // It held the table of all logs until the step that was being done was over.
        let compacted = LogConfig { compact: true, ..LogConfig::default() };
        let config = |_: &str| LogConfig::default();
        let dirs = ["/data".into()];
        let options = EngineOptions::new(&config, 0);
        let (engine, _) = Engine::open(Arc::new(SimDisk::new()), &dirs, &options).unwrap();
        let new = NewLog { config: compacted, ..NewLog::default() };
        let log = engine.get_or_create("orders", 0, &new).unwrap();
        std::thread::scope(|scope| {
            let step = log.stand_still();
            let setter = scope.spawn(|| engine.set_config("orders", &LogConfig::default()));
            let give_up_at = Instant::now() + Duration::from_secs(20);
            while log.config().compact || engine.partitions.try_write().is_err() {
                assert!(Instant::now() < give_up_at, "the table is held");
                std::thread::yield_now();
            }
            assert!(!setter.is_finished(), "it waits for the step");
            drop(step);
        });
    }
}
