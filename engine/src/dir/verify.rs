//! Are whole log directories sound? Their small files, the names of their folders, and all
//! partitions side by side.
//!
//! Two steps, so that the work is known before it begins: [`survey_log_dir`] looks at names and
//! small files, [`verify_partitions`] then reads every batch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::dir::files::{
    CLEAN_SHUTDOWN_FILE, CLEANER_FILE, LOCK_FILE, LOG_START_FILE, META_FILE, RECOVERY_POINT_FILE,
    REPLICATION_FILE,
};
use crate::dir::pool::in_pool;
use crate::error::{Error, Kind, Result};
use crate::io::{FileKind, Storage};
use crate::log::LogFacts;
use crate::log::name::{FolderKind, FolderName, REMOTE_INDEX_CACHE};
use crate::log::verify::{
    PartitionReport, VerifyOptions, check_directory_file, fault_severity, verify_partition,
};
use crate::problem::{Code, Problem, Severity};
use crate::state::OffsetCheckpoint;

/// The small files that are looked at.
const SMALL_FILES: [&str; 5] =
    [META_FILE, RECOVERY_POINT_FILE, LOG_START_FILE, REPLICATION_FILE, CLEANER_FILE];
/// A line for each of a million partitions fits.
const SMALL_SIZE_MAX: u64 = 512 << 20;

/// A partition of a log directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionFolder {
    /// Where it is.
    pub path: PathBuf,
    /// What its name says.
    pub name: FolderName,
    /// What its log directory says of it.
    pub around: Surroundings,
    /// Bytes of its logs.
    pub log_size_bytes: u64,
}

/// What stands in a log directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogDirSurvey {
    /// The directory.
    pub path: PathBuf,
    /// Whether it was stopped cleanly.
    pub is_clean: bool,
    /// Whether a broker is running on it.
    pub is_locked: bool,
    /// The partitions that Kafka would load, sorted by name.
    pub partitions: Vec<PartitionFolder>,
    /// Folders that wait to be deleted and those that are kept aside: not looked at.
    pub skipped: Vec<PathBuf>,
    /// What is wrong with the directory itself, its folders' names included.
    pub problems: Vec<Problem>,
}

impl LogDirSurvey {
    /// Bytes of the logs of all its partitions.
    #[must_use]
    pub fn log_size_bytes(&self) -> u64 {
        self.partitions.iter().fold(0, |sum, folder| sum.saturating_add(folder.log_size_bytes))
    }

    fn problem(&mut self, code: Code, severity: Severity, file: &str, detail: String) {
        self.problems.push(about_folder(code, severity, file, detail));
    }
}

/// Looks at the names and small files of a log directory.
///
/// # Errors
/// When the directory cannot be listed.
pub fn survey_log_dir(storage: &dyn Storage, dir: &Path) -> Result<LogDirSurvey> {
    let mut survey = LogDirSurvey { path: dir.to_path_buf(), ..LogDirSurvey::default() };
    survey.is_locked = storage.is_locked(&dir.join(LOCK_FILE)).unwrap_or(false);
    survey.is_clean = storage.metadata(&dir.join(CLEAN_SHUTDOWN_FILE)).is_ok();
    let starts = read_small_files(storage, &mut survey);
    for entry in storage.list(dir)? {
        let name = entry.name.to_string_lossy().into_owned();
        match entry.kind {
            FileKind::Directory => add_folder(storage, &mut survey, starts.as_ref(), &name),
            FileKind::DanglingLink => {
                let detail = "a symbolic link that leads nowhere".to_owned();
                survey.problem(Code::Unreadable, Severity::Refused, &name, detail);
            }
            FileKind::File | FileKind::Other => {}
        }
    }
    Ok(survey)
}

/// What the log directory around a partition says of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The log start offset by the checkpoint, where it has one.
    pub log_start_offset: Option<i64>,
    /// There is such a checkpoint, and it may be out of date: Kafka writes it once a minute, and
    /// after a kill goes on with the old one.
    pub log_start_may_have_moved: bool,
    /// Whether a broker is running on the directory.
    pub is_locked: bool,
}

impl Surroundings {
    /// Looks around a partition. What cannot be read is taken for missing.
    #[must_use]
    pub fn of(storage: &dyn Storage, partition_dir: &Path) -> Self {
        let dir = std::path::absolute(partition_dir).unwrap_or_default();
        let (Some(parent), Some(name)) = (dir.parent(), dir.file_name()) else {
            return Surroundings::default();
        };
        let bytes = storage.read(&parent.join(LOG_START_FILE), SMALL_SIZE_MAX).ok();
        let starts = bytes.as_deref().and_then(|bytes| OffsetCheckpoint::parse(bytes).ok());
        let name = FolderName::parse(&name.to_string_lossy());
        let start = starts.zip(name).and_then(|(all, name)| all.get(&name.topic, name.partition));
        Surroundings {
            log_start_offset: start,
            log_start_may_have_moved: bytes.is_some(),
            is_locked: storage.is_locked(&parent.join(LOCK_FILE)).unwrap_or(false),
        }
    }

    /// The options for the partition: a log start offset that is asked for outranks the
    /// checkpoint's.
    #[must_use]
    pub fn apply<'a>(&self, options: &VerifyOptions<'a>) -> VerifyOptions<'a> {
        let asked = options.log_start_offset;
        VerifyOptions {
            log_start_offset: asked.or(self.log_start_offset),
            log_start_may_have_moved: asked.is_none() && self.log_start_may_have_moved,
            is_live: options.is_live || self.is_locked,
            ..*options
        }
    }
}

/// Checks the small files; gives the log start offsets.
fn read_small_files(storage: &dyn Storage, survey: &mut LogDirSurvey) -> Option<OffsetCheckpoint> {
    let mut starts = None;
    for name in SMALL_FILES {
        match read_small_file(storage, &survey.path, name) {
            Ok(Some(bytes)) if name == LOG_START_FILE => {
                starts = OffsetCheckpoint::parse(&bytes).ok();
            }
            Ok(_) => {}
            Err(problem) => survey.problems.push(problem),
        }
    }
    starts
}

/// Reads a small file of a log directory; `None` where it is missing.
///
/// # Errors
/// What is to be told of it.
pub(crate) fn read_small_file(
    storage: &dyn Storage,
    dir: &Path,
    name: &str,
) -> std::result::Result<Option<Vec<u8>>, Problem> {
    let wrong =
        |code, severity, error: &Error| Err(about_folder(code, severity, name, error.to_string()));
    let bytes = match storage.read(&dir.join(name), SMALL_SIZE_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == Kind::NotFound => return Ok(None),
        Err(error) => return wrong(Code::Unreadable, Severity::Refused, &error),
    };
    match check_directory_file(name, &bytes).unwrap_or_else(Some) {
        None => Ok(Some(bytes)),
        Some(fault) => wrong(Code::CheckpointFile, fault_severity(name), &fault),
    }
}

fn about_folder(code: Code, severity: Severity, file: &str, detail: String) -> Problem {
    let file = file.to_owned();
    Problem { code, severity, file, position: None, offset: None, detail }
}

// spec: segments 1.1
fn add_folder(
    storage: &dyn Storage,
    survey: &mut LogDirSurvey,
    starts: Option<&OffsetCheckpoint>,
    folder: &str,
) {
    let path = survey.path.join(folder);
    let Some(name) = FolderName::parse(folder) else {
        if folder != REMOTE_INDEX_CACHE {
            let detail = "a folder of this name keeps Kafka from starting; left alone".to_owned();
            survey.problem(Code::BadName, Severity::Corrupt, folder, detail);
        }
        return;
    };
    if matches!(name.kind, FolderKind::Delete | FolderKind::Stray) {
        survey.skipped.push(path);
        return;
    }
    // What cannot be listed now is told when its turn comes.
    let size = LogFacts::read(storage, &path).map_or(0, |facts| facts.log_size_bytes());
    let around = Surroundings {
        log_start_offset: starts.and_then(|all| all.get(&name.topic, name.partition)),
        log_start_may_have_moved: starts.is_some(),
        is_locked: survey.is_locked,
    };
    survey.partitions.push(PartitionFolder { log_size_bytes: size, path, name, around });
}

/// Finds partitions that several log directories hold, which keeps Kafka from starting, and tells
/// each directory of them.
pub fn find_duplicates(surveys: &mut [LogDirSurvey]) {
    let name = |folder: &PartitionFolder| folder.name.clone();
    let dirs: Vec<(PathBuf, Vec<FolderName>)> = surveys
        .iter()
        .map(|survey| (survey.path.clone(), survey.partitions.iter().map(name).collect()))
        .collect();
    for (at, problem) in duplicates(&dirs) {
        if let Some(survey) = surveys.get_mut(at) {
            survey.problems.push(problem);
        }
    }
}

/// What is to be told of partitions in use that several log directories hold, which keeps Kafka
/// from starting: for each of the directories, by its number.
#[must_use]
pub fn duplicates(dirs: &[(PathBuf, Vec<FolderName>)]) -> Vec<(usize, Problem)> {
    let mut homes: BTreeMap<&FolderName, Vec<(usize, &Path)>> = BTreeMap::new();
    for (at, (path, names)) in dirs.iter().enumerate() {
        for name in names.iter().filter(|name| name.kind == FolderKind::Live) {
            homes.entry(name).or_default().push((at, path));
        }
    }
    let mut problems = Vec::new();
    for (name, places) in homes.into_iter().filter(|(_, places)| places.len() > 1) {
        let paths: Vec<String> =
            places.iter().map(|(_, path)| path.display().to_string()).collect();
        let detail = format!("in several log directories: {}", paths.join(", "));
        let (code, severity) = (Code::BadName, Severity::Corrupt);
        problems.extend(
            places.iter().map(|(at, _)| {
                (*at, about_folder(code, severity, &name.to_string(), detail.clone()))
            }),
        );
    }
    problems
}

/// Checks partitions on `threads` threads (one: that of the caller) and hands over each report in
/// the order of `folders`.
///
/// `each` is called by the threads, one at a time; of a partition whose directory cannot be listed
/// it gets the error.
///
/// # Errors
/// [`Kind::Cancelled`], and when threads cannot be made.
pub fn verify_partitions(
    storage: &dyn Storage,
    folders: &[PartitionFolder],
    options: &VerifyOptions<'_>,
    threads: usize,
    each: &(dyn Fn(&PartitionFolder, Result<PartitionReport>) + Sync),
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let queue = Queue { folders, each, waiting: Mutex::new((0, BTreeMap::new())) };
    let work = || {
        while !options.progress.is_cancelled() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(folder) = folders.get(at) else { return };
            let options = folder.around.apply(options);
            queue.done(at, verify_partition(storage, &folder.path, &options));
        }
    };
    let threads = threads.min(folders.len());
    in_pool(threads, || {
        match threads {
            0 | 1 => work(),
            _ => drop(rayon::broadcast(|_| work())),
        }
        Ok(())
    })?;
    if options.progress.is_cancelled() {
        return Err(Error::new(Kind::Cancelled, "cancelled"));
    }
    Ok(())
}

/// Reports on their way to the caller, who gets them in order.
struct Queue<'a> {
    folders: &'a [PartitionFolder],
    each: &'a (dyn Fn(&PartitionFolder, Result<PartitionReport>) + Sync),
    /// The next one to hand over, and those that are done before their turn.
    waiting: Mutex<(usize, BTreeMap<usize, Result<PartitionReport>>)>,
}

impl Queue<'_> {
    fn done(&self, at: usize, report: Result<PartitionReport>) {
        // A caller that panicked has nothing more to hear.
        let Ok(mut waiting) = self.waiting.lock() else { return };
        let (next, reports) = &mut *waiting;
        reports.insert(at, report);
        while let Some(report) = reports.remove(next) {
            if let Some(folder) = self.folders.get(*next) {
                (self.each)(folder, report);
            }
            *next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::SimDisk;
    use crate::log::progress::Progress;

    const LOG: &str = "00000000000000000000.log";

    fn disk(files: &[(&str, &str)]) -> SimDisk {
        let disk = SimDisk::new();
        for (path, text) in files {
            disk.put(&Path::new("/").join(path), text.as_bytes().to_vec(), None).unwrap();
        }
        disk
    }

    fn codes(survey: &LogDirSurvey) -> Vec<(Code, &str)> {
        survey.problems.iter().map(|problem| (problem.code, problem.file.as_str())).collect()
    }

    #[test]
    fn folders_that_are_no_logs_are_told_and_those_on_their_way_out_are_skipped() {
        let id = "0123456789abcdef0123456789abcdef";
        let disk = disk(&[
            (&format!("d/orders-0/{LOG}"), ""),
            (&format!("d/__cluster_metadata-0/{LOG}"), ""),
            (&format!("d/orders-1.{id}-future/{LOG}"), ""),
            (&format!("d/orders-2.{id}-delete/{LOG}"), ""),
            (&format!("d/orders-3.{id}-stray/{LOG}"), ""),
            ("d/remote-log-index-cache/x", ""),
            ("d/lost+found/x", ""),
            ("d/orders-0.bak/x", ""),
            ("d/notes.txt", ""),
        ]);
        let survey = survey_log_dir(&disk, Path::new("/d")).unwrap();
        assert_eq!(
            codes(&survey),
            [(Code::BadName, "lost+found"), (Code::BadName, "orders-0.bak")]
        );
        assert_eq!((survey.partitions.len(), survey.skipped.len()), (3, 2));
    }

    #[test]
    fn checkpoints_are_checked_and_the_log_starts_reach_their_partitions() {
        let disk = disk(&[
            (&format!("d/orders-0/{LOG}"), ""),
            ("d/log-start-offset-checkpoint", "0\n1\norders 0 42\n"),
            ("d/recovery-point-offset-checkpoint", "0\n2\norders 0 42\n"),
            ("d/meta.properties", "version=1\nnode.id=1\n"),
            ("d/.kafka_cleanshutdown", ""),
        ]);
        let survey = survey_log_dir(&disk, Path::new("/d")).unwrap();
        assert!(survey.is_clean);
        assert_eq!(
            codes(&survey),
            [
                (Code::CheckpointFile, "meta.properties"),
                (Code::CheckpointFile, "recovery-point-offset-checkpoint")
            ]
        );
        let around = survey.partitions[0].around;
        assert_eq!(around, Surroundings::of(&disk, Path::new("/d/orders-0")));
        assert_eq!((around.log_start_offset, around.log_start_may_have_moved), (Some(42), true));
        let asked = VerifyOptions { log_start_offset: Some(7), ..VerifyOptions::default() };
        assert_eq!(around.apply(&asked).log_start_offset, Some(7));
    }

    #[test]
    fn a_running_broker_is_seen_by_its_lock() {
        let disk = disk(&[(&format!("d/orders-0/{LOG}"), ""), ("d/.lock", "")]);
        assert!(!survey_log_dir(&disk, Path::new("/d")).unwrap().is_locked);
        disk.hold_lock_elsewhere(Path::new("/d/.lock")).unwrap();
        let survey = survey_log_dir(&disk, Path::new("/d")).unwrap();
        assert!(survey.is_locked);
        let options = survey.partitions[0].around.apply(&VerifyOptions::default());
        assert!(options.is_live);
    }

    #[test]
    fn a_partition_in_two_log_directories_is_told_of_both() {
        let disk = disk(&[
            (&format!("a/orders-0/{LOG}"), ""),
            (&format!("b/orders-0/{LOG}"), ""),
            (&format!("b/orders-1/{LOG}"), ""),
        ]);
        let mut surveys = ["/a", "/b"].map(|dir| survey_log_dir(&disk, Path::new(dir)).unwrap());
        find_duplicates(&mut surveys);
        for survey in &surveys {
            assert_eq!(codes(survey), [(Code::BadName, "orders-0")]);
        }
    }

    struct Cancelled;

    impl Progress for Cancelled {
        fn bytes(&self, _count: u64) {}

        fn is_cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_cancelled_check_says_so() {
        let disk = disk(&[(&format!("d/orders-0/{LOG}"), "")]);
        let survey = survey_log_dir(&disk, Path::new("/d")).unwrap();
        let options = VerifyOptions { progress: &Cancelled, ..VerifyOptions::default() };
        let each = |_: &PartitionFolder, _: Result<PartitionReport>| {};
        let outcome = verify_partitions(&disk, &survey.partitions, &options, 2, &each);
        assert_eq!(outcome.unwrap_err().kind(), Kind::Cancelled);
    }
}
