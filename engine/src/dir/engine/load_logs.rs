//! How are all logs of all directories opened, side by side?
//!
//! After an unclean stop a directory is recovered first, in groups that become durable together;
//! then its logs are opened as after a clean one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::directory::{LogDir, is_disk_failure};
use super::load::Look;
use super::options::EngineOptions;
use crate::dir::recover::checkpoints::Checkpoints;
use crate::dir::recover::directory::tail_bytes;
use crate::dir::recover::group::{Group, Member as GroupMember};
use crate::dir::recover::{DirRecoverOptions, PartitionDone, PartitionSettings};
use crate::error::{Error, Kind, Result};
use crate::io::Storage;
use crate::log::progress::{Progress, Silent};
use crate::log::{FolderKind, FolderName, Log, OpenOptions, read_topic_id};
use crate::segment::OpenFiles;
use crate::segment::rebuild::IndexSettings;
use crate::uuid::Uuid;

/// Partitions that are recovered together.
const GROUP: usize = 256;

/// A folder that holds a log.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The number of its directory.
    pub(super) dir: usize,
    pub(super) path: PathBuf,
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) side: Side,
}

/// What a log is to its partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Current,
    Future,
    /// Nothing: it is kept aside.
    Stray,
}

/// What came of a folder.
#[derive(Debug)]
pub(super) enum Outcome {
    Opened(Box<Log>),
    /// It was moved aside, to here.
    Stray(PathBuf),
    /// It was aside before, and is sound.
    Recovered,
    Failed(Error),
}

struct Loader<'a> {
    storage: &'a Arc<dyn Storage>,
    dirs: &'a [LogDir],
    looks: &'a [Look],
    options: &'a EngineOptions<'a>,
    open_files: &'a Arc<OpenFiles>,
    /// Directories whose disk failed meanwhile: no more of their logs is tried.
    failed: Vec<AtomicBool>,
    progress: &'a dyn Progress,
}

/// Opens the logs of all directories.
pub(super) fn load_logs(
    storage: &Arc<dyn Storage>,
    dirs: &[LogDir],
    looks: &[Look],
    options: &EngineOptions<'_>,
    open_files: &Arc<OpenFiles>,
) -> Vec<(Member, Outcome)> {
    let failed = dirs.iter().map(|dir| AtomicBool::new(dir.is_offline())).collect();
    let progress = options.progress.unwrap_or(&Silent);
    let loader = Loader { storage, dirs, looks, options, open_files, failed, progress };
    if options.progress.is_some() {
        progress.expect(loader.work_ahead());
    }
    let mut members: Vec<(Member, Option<Error>)> = looks
        .iter()
        .flat_map(|look| look.members.iter().map(|member| (member.clone(), None)))
        .collect();
    find_duplicates(&mut members);
    for (number, dir) in dirs.iter().enumerate() {
        if !dir.is_offline() && !dir.was_clean {
            loader.recover(number, &mut members);
        }
    }
    if options.threads > 1 {
        // One by one: logs are of very different sizes.
        members.into_par_iter().with_max_len(1).map(|member| loader.open(member)).collect()
    } else {
        members.into_iter().map(|member| loader.open(member)).collect()
    }
}

/// Two folders for one log: which of them is right is not for a program to say.
fn find_duplicates(members: &mut [(Member, Option<Error>)]) {
    let mut first: BTreeMap<(String, i32, bool), usize> = BTreeMap::new();
    let mut pairs = Vec::new();
    for (at, (member, _)) in members.iter().enumerate().filter(|(_, m)| m.0.side != Side::Stray) {
        let key = (member.topic.clone(), member.partition, member.side == Side::Future);
        match first.get(&key) {
            Some(other) => pairs.push((*other, at)),
            None => drop(first.insert(key, at)),
        }
    }
    for (one, other) in pairs {
        let path = |at: usize| members.get(at).map(|(member, _)| member.path.clone());
        let paths = (path(one), path(other));
        for (at, path) in [(one, paths.1), (other, paths.0)] {
            let path = path.unwrap_or_default();
            let message = format!(
                "the same log is in {}, too; remove the folder in the log directory that failed \
                 last",
                path.display()
            );
            if let Some((member, error)) = members.get_mut(at) {
                *error = Some(Error::new(Kind::Conflict, message).in_file(&member.path));
            }
        }
    }
}

impl Loader<'_> {
    fn is_failed(&self, dir: usize) -> bool {
        self.failed.get(dir).is_none_or(|failed| failed.load(Ordering::Relaxed))
    }

    fn note(&self, dir: usize, error: &Error) {
        if is_disk_failure(error)
            && let Some(failed) = self.failed.get(dir)
        {
            failed.store(true, Ordering::Relaxed);
        }
    }

    /// The bytes that recovery will read, and one for each log that will be opened.
    fn work_ahead(&self) -> u64 {
        let mut ahead = 0_u64;
        for (dir, look) in self.dirs.iter().zip(self.looks) {
            for member in &look.members {
                let to_read = if dir.was_clean {
                    0
                } else {
                    let points = &look.lines.recovery_points;
                    let key = of_group(member).key;
                    let point = key.and_then(|(topic, partition)| points.get(&topic, partition));
                    tail_bytes(&**self.storage, &member.path, point.unwrap_or(0))
                };
                ahead = ahead.saturating_add(to_read).saturating_add(1);
            }
        }
        ahead
    }

    /// Makes the logs of a directory sound and durable; what cannot be gets its error.
    fn recover(&self, number: usize, members: &mut [(Member, Option<Error>)]) {
        let (Some(dir), Some(look)) = (self.dirs.get(number), self.looks.get(number)) else {
            return;
        };
        let settings = |topic: &str| {
            let config = (self.options.config)(topic);
            PartitionSettings {
                index: IndexSettings {
                    interval_bytes: u64::from(config.index_interval_bytes),
                    max_size_bytes: usize::try_from(config.segment_index_bytes)
                        .unwrap_or(usize::MAX),
                },
                remote_storage: config.remote_storage,
            }
        };
        let done = |_: PartitionDone<'_>| {};
        let options = DirRecoverOptions {
            threads: self.options.threads,
            allow_loss: true,
            discard_lost: !self.options.keep_lost,
            producer_expiration_ms: self.options.producers.producer_id_expiration_ms,
            ..DirRecoverOptions::new(&settings, &done, self.options.now_ms)
        };
        let checkpoints = Checkpoints {
            recovery_points: look.lines.recovery_points.clone(),
            log_starts: look.lines.log_starts.clone(),
            marker: None,
        };
        let group = Group {
            storage: &**self.storage,
            dir: &dir.path,
            checkpoints: &checkpoints,
            options: &options,
            progress: self.progress,
            clean: false,
        };
        let mut waiting: Vec<&mut (Member, Option<Error>)> = members
            .iter_mut()
            .filter(|(member, error)| member.dir == number && error.is_none())
            .collect();
        for part in waiting.chunks_mut(GROUP) {
            if self.is_failed(number) || self.progress.is_cancelled() {
                return;
            }
            let list: Vec<GroupMember> = part.iter().map(|(member, _)| of_group(member)).collect();
            match group.recover(&list) {
                Ok(plans) => {
                    for (slot, plan) in part.iter_mut().zip(plans) {
                        slot.1 = match plan {
                            Ok(plan) => plan.refusal.map(|refusal| {
                                Error::corrupt(refusal.reason).in_file(&slot.0.path)
                            }),
                            Err(error) => Some(error),
                        };
                    }
                }
                Err(error) => {
                    self.note(number, &error);
                    // How far it came with each of them is not known: none may be opened.
                    part.iter_mut().for_each(|slot| slot.1 = Some(error.copy()));
                }
            }
        }
    }

    fn open(&self, (member, error): (Member, Option<Error>)) -> (Member, Outcome) {
        let outcome = match error {
            Some(error) => Err(error),
            None if self.progress.is_cancelled() => {
                let message = "not opened: the load was cancelled";
                Err(Error::new(Kind::Cancelled, message).in_file(&member.path))
            }
            None if self.is_failed(member.dir) => {
                let message = "not opened: its log directory is offline";
                Err(Error::new(Kind::Closed, message).in_file(&member.path))
            }
            None => self.open_log(&member),
        };
        let outcome = outcome.unwrap_or_else(|error| {
            self.note(member.dir, &error);
            Outcome::Failed(error)
        });
        self.progress.bytes(1);
        (member, outcome)
    }

    fn open_log(&self, member: &Member) -> Result<Outcome> {
        if member.side == Side::Stray {
            return Ok(Outcome::Recovered);
        }
        if let Some(path) = self.move_aside(member)? {
            return Ok(Outcome::Stray(path));
        }
        let Some(look) = self.looks.get(member.dir) else { return Ok(Outcome::Recovered) };
        let (topic, partition) = (member.topic.as_str(), member.partition);
        let options = OpenOptions {
            clean_shutdown: true,
            recovery_point: look.lines.recovery_points.get(topic, partition).unwrap_or(0),
            log_start_offset: look.lines.log_starts.get(topic, partition).unwrap_or(0),
            topic_id: None,
            producers: self.options.producers,
            keep_lost: self.options.keep_lost,
            open_files: Arc::clone(self.open_files),
            now_ms: self.options.now_ms,
        };
        let config = (self.options.config)(topic);
        let log = Log::open(Arc::clone(self.storage), &member.path, config, &options)?;
        if let Some(high_watermark) = look.lines.high_watermarks.get(topic, partition) {
            log.update_high_watermark(high_watermark.max(0))?;
        }
        if member.side == Side::Current {
            let line = look.lines.compacted_ends.get(topic, partition);
            log.set_compacted_end_offset(line.map(|line| compacted_end(&log, line)));
        }
        Ok(Outcome::Opened(Box::new(log)))
    }

    /// Gives a log that is not assigned to this node another name; `None` when it is.
    fn move_aside(&self, member: &Member) -> Result<Option<PathBuf>> {
        let Some(is_stray) = self.options.is_stray else { return Ok(None) };
        let topic_id = read_topic_id(&**self.storage, &member.path)?;
        if !is_stray(&member.topic, member.partition, topic_id) {
            return Ok(None);
        }
        let name = FolderName {
            topic: member.topic.clone(),
            partition: member.partition,
            kind: FolderKind::Stray,
        };
        let Some(home) = member.path.parent() else { return Ok(None) };
        let path = home.join(name.marked(Uuid::random()));
        self.storage.rename(&member.path, &path)?;
        self.storage.sync_dir(home)?;
        Ok(Some(path))
    }
}

/// What holds of a log whose line of `cleaner-offset-checkpoint` may be of a longer one: the log
/// must not grow up to there before somebody looks.
// spec: cleaner 2
fn compacted_end(log: &Log, line: i64) -> i64 {
    if line > log.log_end_offset() { log.log_start_offset() } else { line }
}

pub(super) fn of_group(member: &Member) -> GroupMember {
    // The checkpoints speak of the log that has the name now, not of one that was set aside.
    let is_aside = member.side == Side::Stray;
    let key = (!is_aside).then(|| (member.topic.clone(), member.partition));
    GroupMember { dir: member.path.clone(), key }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::dir::engine::{Engine, NewLog};
    use crate::io::SimDisk;
    use crate::log::LogConfig;
    use crate::record::builder::{BatchBuilder, BatchOptions};
    use crate::record::codec::Compressor;

    const LOGS: i32 = 5;

    /// Counts, and ends the load when so much is done.
    struct Heard {
        expected: AtomicU64,
        done: AtomicU64,
        end: u64,
    }

    impl Heard {
        fn until(end: u64) -> Self {
            Heard { expected: AtomicU64::new(0), done: AtomicU64::new(0), end }
        }

        fn counts(&self) -> (u64, u64) {
            (self.expected.load(Ordering::Relaxed), self.done.load(Ordering::Relaxed))
        }
    }

    impl Progress for Heard {
        fn bytes(&self, count: u64) {
            self.done.fetch_add(count, Ordering::Relaxed);
        }

        fn expect(&self, count: u64) {
            self.expected.fetch_add(count, Ordering::Relaxed);
        }

        fn is_cancelled(&self) -> bool {
            self.done.load(Ordering::Relaxed) >= self.end
        }
    }

    fn open(disk: &Arc<SimDisk>, heard: &Heard) -> Result<Engine> {
        let config = |_: &str| LogConfig::default();
        let options = EngineOptions { progress: Some(heard), ..EngineOptions::new(&config, 0) };
        let disk: Arc<dyn Storage> = Arc::<SimDisk>::clone(disk);
        Engine::open(disk, &["/data".into()], &options).map(|(engine, _)| engine)
    }

    /// Logs of a batch each; the bytes of all of them.
    fn fill(engine: &Engine) -> u64 {
        let mut batch = Vec::new();
        let options = BatchOptions { leader_epoch: 0, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options).unwrap();
        builder.append(0, None, Some(b"value")).unwrap();
        builder.write_to(&mut Compressor::new(), &mut batch).unwrap();
        for partition in 0..LOGS {
            let log = engine.get_or_create("orders", partition, &NewLog::default()).unwrap();
            log.append_as_follower(&batch, 0, 0).unwrap();
        }
        u64::try_from(batch.len()).unwrap() * 5
    }

    #[test]
    fn a_load_tells_each_log_and_the_bytes_that_recovery_reads() {
        let disk = Arc::new(SimDisk::new());
        let engine = open(&disk, &Heard::until(u64::MAX)).unwrap();
        let bytes = fill(&engine);
        drop(engine);
        let heard = Heard::until(u64::MAX);
        let engine = open(&disk, &heard).unwrap();
        assert_eq!(heard.counts(), (bytes + 5, bytes + 5), "after a crash");
        assert!(engine.close(1, 1).dirs.iter().all(|dir| dir.is_clean));
        drop(engine);
        let heard = Heard::until(u64::MAX);
        open(&disk, &heard).unwrap();
        assert_eq!(heard.counts(), (5, 5), "after a clean stop");
    }

    #[test]
    fn a_load_that_is_cancelled_can_be_done_again() {
        let disk = Arc::new(SimDisk::new());
        let engine = open(&disk, &Heard::until(u64::MAX)).unwrap();
        let bytes = fill(&engine);
        assert!(engine.close(1, 1).dirs.iter().all(|dir| dir.is_clean));
        drop(engine);
        // While logs are opened; the next start is none after a clean stop. Then while logs are
        // recovered, and before anything is done.
        for end in [3, 1, 0] {
            let error = open(&disk, &Heard::until(end)).map(drop).unwrap_err();
            assert_eq!(error.kind(), Kind::Cancelled, "{end}");
        }
        let heard = Heard::until(u64::MAX);
        let engine = open(&disk, &heard).unwrap();
        assert_eq!(heard.counts(), (bytes + 5, bytes + 5));
        for partition in 0..LOGS {
            let log = engine.log("orders", partition).unwrap().unwrap();
            assert_eq!(log.log_end_offset(), 1);
        }
    }
}
