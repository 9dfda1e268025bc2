//! How does a partition get its log, and in which directory?

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8};
use std::sync::{Arc, Mutex};

use super::directory::{LogDir, is_disk_failure};
use super::engine::Engine;
use super::options::NewLog;
use super::partitions::{Entry, NO_LINE, Place};
use crate::error::{Error, Kind, Result};
use crate::log::{FolderKind, FolderName, Log, OpenOptions};
use crate::uuid::Uuid;

impl Engine {
    /// The log of a partition, made now if there is none: in the directory that was asked for, else
    /// in that with the fewest logs. One that has no topic id yet gets that of `new`.
    ///
    /// # Errors
    /// `Conflict` when the log has another topic id, or a future log would stand beside the current
    /// one or has none to replace; `Io` when the directory is offline, or one is and the replica is
    /// not known to be new; what keeps the log from being open, as [`log`](Self::log).
    pub fn get_or_create(&self, topic: &str, partition: i32, new: &NewLog) -> Result<Arc<Log>> {
        let _changing = self.change();
        if let Some(log) = self.find(topic, partition, new.is_future)? {
            // spec: segments 1.2
            let dir = self.read().get(topic, partition, new.is_future).map(Place::dir);
            let assigned = new.topic_id.map_or(Ok(()), |topic_id| log.assign_topic_id(topic_id));
            return assigned.map(|()| log).map_err(|error| match dir {
                Some(dir) => self.judge(dir, error),
                None => error,
            });
        }
        check_name(topic, partition)?;
        if !new.is_new
            && let Some(error) = self.dirs.iter().find_map(LogDir::failure)
        {
            return Err(error.context(format!("{topic}-{partition} may be in it")));
        }
        let mut tried = None;
        for dir in self.choose(topic, partition, new)? {
            match self.create_in(dir, topic, partition, new) {
                Ok(log) => {
                    let log = Arc::new(log);
                    let is_future = new.is_future;
                    self.add(topic, partition, is_future, dir, Arc::clone(&log), new.now_ms);
                    return Ok(log);
                }
                Err(error) if is_disk_failure(&error) => tried = Some(self.judge(dir, error)),
                Err(error) => return Err(error),
            }
        }
        Err(tried.unwrap_or_else(|| Error::new(Kind::Io, "no log directory is left")))
    }

    /// The directories to try, in this order.
    fn choose(&self, topic: &str, partition: i32, new: &NewLog) -> Result<Vec<usize>> {
        let asked = match &new.preferred {
            Some(path) => {
                let path: PathBuf = path.components().collect();
                let found = self.dirs.iter().position(|dir| dir.path == path);
                Some(found.ok_or_else(|| {
                    let message = "this is none of the log directories";
                    Error::new(Kind::InvalidArgument, message).in_file(&path)
                })?)
            }
            None => new.assigned.and_then(|id| self.dirs.iter().position(|d| d.id == Some(id))),
        };
        if new.is_future {
            let current = self.read().get(topic, partition, false).map(Place::dir);
            let why = match (asked, current) {
                (None, _) => Some("a future log needs a directory to grow in"),
                (_, None) => Some("there is no log to be replaced"),
                (Some(asked), Some(current)) if asked == current => {
                    Some("a future log cannot grow in the directory of the current one")
                }
                _ => None,
            };
            if let Some(why) = why {
                return Err(Error::new(Kind::Conflict, format!("{topic}-{partition}: {why}")));
            }
        }
        if let Some(asked) = asked {
            self.dir(asked)?.check()?;
            return Ok(vec![asked]);
        }
        let mut counts = vec![0_u64; self.dirs.len()];
        for entry in self.read().entries() {
            if let Some(count) = counts.get_mut(entry.dir) {
                *count += 1;
            }
        }
        let mut order: Vec<usize> = (0..self.dirs.len()).collect();
        order.retain(|dir| self.dirs.get(*dir).is_some_and(|dir| !dir.is_offline()));
        order.sort_by_key(|dir| counts.get(*dir).copied());
        Ok(order)
    }

    fn create_in(&self, dir: usize, topic: &str, partition: i32, new: &NewLog) -> Result<Log> {
        // A line of a log that had this name would say where the new one starts.
        self.freshen(dir)?;
        let kind = if new.is_future { FolderKind::Future } else { FolderKind::Live };
        let folder = FolderName { topic: topic.to_owned(), partition, kind };
        let path = self.dir(dir)?.path.join(folder.marked(Uuid::random()));
        let options = OpenOptions {
            topic_id: new.topic_id,
            producers: self.producers,
            open_files: Arc::clone(&self.open_files),
            now_ms: new.now_ms,
            ..OpenOptions::default()
        };
        Log::open(Arc::clone(&self.storage), &path, new.config.clone(), &options)
    }

    /// Puts an open log in its place.
    pub(super) fn add(
        &self,
        topic: &str,
        partition: i32,
        is_future: bool,
        dir: usize,
        log: Arc<Log>,
        now_ms: i64,
    ) {
        let mut partitions = self.write();
        let topic = partitions.name(topic);
        // Logs of a topic mostly have the same settings, which are kept once.
        let like = partitions.first_of(&topic).map(|entry| entry.log.config());
        if let Some(like) = like.filter(|like| *like == log.config()) {
            log.set_config(like);
        }
        let entry = Entry {
            topic: Arc::clone(&topic),
            partition,
            is_future,
            dir,
            log,
            retain_at: AtomicI64::new(now_ms.saturating_add(self.intervals.retention_ms)),
            expire_at: AtomicI64::new(now_ms.saturating_add(self.intervals.expiration_ms)),
            retry_at: AtomicI64::new(i64::MIN),
            compacted_saved: AtomicI64::new(NO_LINE),
            is_uncleanable: AtomicBool::new(false),
            compacting: Mutex::default(),
            busy: AtomicU8::new(0),
        };
        partitions.put(&topic, partition, is_future, Place::Open(Arc::new(entry)));
    }
}

/// A name that could not be read back would be lost at the next start.
fn check_name(topic: &str, partition: i32) -> Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if topic.is_empty() || partition < 0 || !topic.chars().all(is_plain) {
        let message = format!("{topic:?} {partition} names no partition");
        return Err(Error::new(Kind::InvalidArgument, message));
    }
    Ok(())
}
