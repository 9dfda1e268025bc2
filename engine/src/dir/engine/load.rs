//! How are log directories opened? First what they say of themselves; then their logs.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::compact::Compactors;
use super::directory::{Failure, Lines, LogDir, is_disk_failure};
use super::engine::{Engine, Intervals};
use super::identity;
use super::load_logs::{Member, Outcome, Side, load_logs, of_group};
use super::options::EngineOptions;
use super::partitions::{Partitions, Place, Shut};
use super::remove::Removal;
use super::report::{DirLoaded, LoadReport, LogLoaded};
use crate::dir::files::{CLEANER_FILE, REPLICATION_FILE};
use crate::dir::pool::in_pool;
use crate::dir::recover::checkpoints::{Checkpoints, is_torn, read_or_empty, remove_marker};
use crate::dir::recover::rebuilds::settle_rebuilds;
use crate::error::{Error, Kind, Result};
use crate::io::{FileKind, Storage};
use crate::log::name::{FolderKind, FolderName, REMOTE_INDEX_CACHE};
use crate::log::progress::Progress;
use crate::problem::{Code, Problem, Severity};
use crate::segment::OpenFiles;
use crate::state::checkpoint::OffsetEntry;
use crate::state::meta::parse_clean_shutdown;

/// The topic of the KRaft metadata log, which is not the engine's to write.
const METADATA_TOPIC: &str = "__cluster_metadata";

/// What a directory says of its logs.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) lines: Lines,
    pub(super) members: Vec<Member>,
    /// Folders that wait for their deletion.
    deleted: Vec<PathBuf>,
    stray: Vec<PathBuf>,
    problems: Vec<Problem>,
}

impl Engine {
    /// Takes the log directories and opens all logs in them. A directory that is missing is made.
    ///
    /// A directory whose disk fails is offline from the start, and a log that cannot be opened is
    /// left as it is; the report tells of both.
    ///
    /// # Errors
    /// `Conflict` when another process holds one of the directories, or when they do not belong
    /// together; `Io` when no directory is left; `InvalidArgument` when there is none; `Cancelled`
    /// when whoever hears of the progress ends it: then the next start recovers.
    // spec: segments 7
    pub fn open(
        storage: Arc<dyn Storage>,
        dirs: &[PathBuf],
        options: &EngineOptions<'_>,
    ) -> Result<(Engine, LoadReport)> {
        in_pool(options.threads, || open(storage, dirs, options))
    }
}

fn open(
    storage: Arc<dyn Storage>,
    paths: &[PathBuf],
    options: &EngineOptions<'_>,
) -> Result<(Engine, LoadReport)> {
    let mut dirs: Vec<LogDir> = paths.iter().map(|path| LogDir::new(path)).collect();
    if dirs.is_empty() {
        return Err(Error::new(Kind::InvalidArgument, "there must be a log directory"));
    }
    for dir in &dirs {
        match dir.take(&*storage) {
            Err(error) if error.kind() == Kind::Conflict => return Err(error),
            Err(error) => drop(dir.fail(&error)),
            Ok(()) => {}
        }
    }
    identity::settle(&*storage, &mut dirs, options.identity, options.now_ms)?;
    let mut looks: Vec<Look> = Vec::new();
    for (number, dir) in dirs.iter_mut().enumerate() {
        looks.push(if dir.is_offline() {
            Look::default()
        } else {
            look(&*storage, number, dir).unwrap_or_else(|error| {
                dir.fail(&error);
                Look::default()
            })
        });
    }
    let open_files = OpenFiles::with_maps(options.open_files_max, options.maps);
    let outcomes = load_logs(&storage, &dirs, &looks, options, &open_files);
    if options.progress.is_some_and(Progress::is_cancelled) {
        return Err(Error::new(Kind::Cancelled, "the load was cancelled"));
    }
    let mut engine = Engine {
        storage,
        dirs,
        partitions: RwLock::new(Partitions::default()),
        changing: Mutex::default(),
        removals: Mutex::default(),
        open_files,
        producers: options.producers,
        intervals: Intervals::of(options),
        compactors: Compactors::new(options),
    };
    let mut report = LoadReport::default();
    engine.settle(&mut looks, outcomes, options.now_ms, &mut report);
    if engine.dirs.iter().all(LogDir::is_offline)
        && let Some(error) = engine.dirs.first().and_then(LogDir::failure)
    {
        return Err(error.context("no log directory is left"));
    }
    Ok((engine, report))
}

/// Reads what a directory says. The marker of a clean stop goes, durably: whatever happens from now
/// on, a crash is no clean stop.
fn look(storage: &dyn Storage, number: usize, dir: &mut LogDir) -> Result<Look> {
    let mut look = Look::default();
    let mut checkpoints = Checkpoints::read(storage, &dir.path, &mut look.problems)?;
    dir.was_clean = checkpoints.marker.is_some();
    dir.broker_epoch = checkpoints.marker.as_deref().and_then(parse_clean_shutdown);
    // Recovery has no use for them. One of another release takes the directory offline, as in
    // Kafka; what is lost with one that is torn is learnt anew.
    let mut checkpoint =
        |name: &str| read_or_empty(storage, &dir.path, name, is_torn, &mut look.problems);
    let high_watermarks = checkpoint(REPLICATION_FILE)?;
    let compacted_ends = checkpoint(CLEANER_FILE)?;
    for entry in storage.list(&dir.path)? {
        let name = entry.name.to_string_lossy().into_owned();
        if entry.kind == FileKind::Directory && name != REMOTE_INDEX_CACHE {
            look.add(number, dir.path.join(&entry.name), name);
        }
    }
    remove_marker(storage, &dir.path)?;
    let members: Vec<_> = look.members.iter().map(of_group).collect();
    settle_rebuilds(storage, &dir.path, &members, &mut checkpoints)?;
    let Checkpoints { recovery_points, log_starts, .. } = checkpoints;
    look.lines = Lines { recovery_points, log_starts, high_watermarks, compacted_ends };
    Ok(look)
}

impl Look {
    fn add(&mut self, dir: usize, path: PathBuf, name: String) {
        let Some(folder) = FolderName::parse(&name) else {
            self.problems.push(Problem {
                code: Code::BadName,
                severity: Severity::Refused,
                file: name,
                position: None,
                offset: None,
                detail: "no folder of a partition; it is left alone".to_owned(),
            });
            return;
        };
        let side = match folder.kind {
            _ if folder.topic == METADATA_TOPIC => return,
            FolderKind::Delete => return self.deleted.push(path),
            FolderKind::Stray => Side::Stray,
            FolderKind::Live => Side::Current,
            FolderKind::Future => Side::Future,
        };
        if side == Side::Stray {
            self.stray.push(path.clone());
        }
        let (topic, partition) = (folder.topic, folder.partition);
        self.members.push(Member { dir, path, topic, partition, side });
    }
}

impl Engine {
    /// Puts all logs in their places and tells what came of them.
    fn settle(
        &mut self,
        looks: &mut [Look],
        outcomes: Vec<(Member, Outcome)>,
        now_ms: i64,
        report: &mut LoadReport,
    ) {
        let mut failed = Vec::new();
        let mut refused = vec![false; self.dirs.len()];
        for (member, outcome) in outcomes {
            let Member { dir, path, topic, partition, side } = member;
            let is_future = side == Side::Future;
            match outcome {
                Outcome::Opened(log) => {
                    report.opened += 1;
                    self.add(&topic, partition, is_future, dir, Arc::new(*log), now_ms);
                }
                Outcome::Stray(path) => report.stray.push(path),
                Outcome::Recovered => {}
                Outcome::Failed(error) => {
                    if is_disk_failure(&error) {
                        failed.push((dir, Failure::of(&error).error()));
                    }
                    if let Some(refused) = refused.get_mut(dir) {
                        *refused = true;
                    }
                    if side != Side::Stray {
                        let failure = Failure::of(&error);
                        let shut = Shut { path: path.clone(), dir, failure };
                        let mut partitions = self.write();
                        let name = partitions.name(&topic);
                        partitions.put(&name, partition, is_future, Place::Shut(Arc::new(shut)));
                    }
                    report.refused.push(LogLoaded { path, error });
                }
            }
        }
        for (dir, is_refused) in self.dirs.iter().zip(&refused) {
            dir.is_complete.store(!is_refused, Ordering::Relaxed);
        }
        for (dir, error) in failed {
            self.fail_dir(dir, &error);
        }
        for (number, look) in looks.iter_mut().enumerate() {
            for path in look.deleted.drain(..) {
                let due_ms = now_ms.saturating_add(self.intervals.folder_delete_delay_ms);
                self.removals().push(Arc::new(Removal::new(number, path, None, due_ms)));
                report.deleting += 1;
            }
            report.stray.append(&mut look.stray);
            self.keep_lines(number, std::mem::take(&mut look.lines));
        }
        for (number, dir) in self.dirs.iter().enumerate() {
            let intervals = self.intervals.checkpoints_ms;
            for (at, interval) in dir.checkpoint_at.iter().zip(intervals) {
                at.store(now_ms.saturating_add(interval), Ordering::Relaxed);
            }
            // What cannot be written now is tried again before a log is made.
            let _ = self.freshen(number);
        }
        let problems = looks.iter_mut().map(|look| std::mem::take(&mut look.problems));
        for (dir, problems) in self.dirs.iter().zip(problems) {
            let (path, was_clean) = (dir.path.clone(), dir.was_clean);
            report.dirs.push(DirLoaded { path, was_clean, failure: dir.failure(), problems });
        }
    }

    /// Remembers the lines of logs that are there and not open, and whether there are lines of logs
    /// that are not there.
    fn keep_lines(&self, number: usize, mut lines: Lines) {
        let Some(dir) = self.dirs.get(number) else { return };
        let partitions = self.read();
        let mut is_stale = false;
        let here = |line: &OffsetEntry, is_future| {
            let place = partitions.get(&line.topic, line.partition, is_future);
            place.filter(|place| place.dir() == number)
        };
        lines.compacted_ends.retain(|line| {
            // A future log is not compacted: the line is one of a log that was here before.
            let place = here(line, false);
            is_stale |= place.is_none();
            if let Some(entry) = place.and_then(Place::entry) {
                entry.compacted_saved.store(line.offset, Ordering::Release);
            }
            place.is_some_and(|place| place.entry().is_none())
        });
        let Lines { recovery_points, log_starts, high_watermarks, .. } = &mut lines;
        for checkpoint in [recovery_points, log_starts, high_watermarks] {
            checkpoint.retain(|line| {
                let places = [here(line, false), here(line, true)];
                is_stale |= places.iter().all(Option::is_none);
                places.iter().flatten().any(|place| place.entry().is_none())
            });
        }
        let mut books = dir.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.kept = lines;
        books.is_stale = is_stale;
    }
}
