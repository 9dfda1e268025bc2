//! One recovery that can be run again and again: a disk and what recovery is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use siltstone::dir::recover::{
    DirRecoverOptions, DirReport, PartitionDone, PartitionResult, PartitionSettings,
    recover_log_dir, recover_partition,
};
use siltstone::io::sim::{Entry, Snapshot};
use siltstone::io::{SimDisk, Storage};
use siltstone::log::recover::Silent;
use siltstone::log::{VerifyOptions, verify_partition};
use siltstone::problem::Severity;
use siltstone::segment::damage::survivors;
use siltstone::segment::rebuild::IndexSettings;
use siltstone::state::OffsetCheckpoint;

/// The log directory.
pub const LOGS: &str = "/logs";
/// Where refused partitions go.
pub const QUARANTINE: &str = "/elsewhere/refused";
/// The marker of a clean stop.
pub const MARKER: &str = ".kafka_cleanshutdown";

/// No producer is forgotten.
const EXPIRATION_MS: i64 = i32::MAX as i64;

/// A directory to recover, and how.
pub struct Scenario {
    /// The disk before.
    pub disk: SimDisk,
    /// The folder of the partition that is recovered alone; `None` for the whole directory.
    pub alone: Option<&'static str>,
    pub allow_loss: bool,
    pub discard_lost: bool,
    pub quarantine: bool,
    pub truncate_to: Option<i64>,
    pub interval_bytes: u64,
    pub now_ms: i64,
    /// It takes long: fewer power cuts at each operation must do.
    pub is_long: bool,
}

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    /// Whether the call succeeded, and the directory's errors with their numbers.
    pub report: Result<DirReport, Fault>,
    /// The partitions that failed.
    pub failed: BTreeMap<PathBuf, Fault>,
    /// The partitions that are sound.
    pub sound: Vec<PathBuf>,
    /// The partitions that were left where they are, as they are.
    pub refused: Vec<PathBuf>,
}

/// An error, kept as text and number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub errno: Option<i32>,
    pub text: String,
}

impl Fault {
    fn of(error: &siltstone::Error) -> Self {
        Fault { errno: error.errno(), text: error.to_string() }
    }
}

impl Run {
    /// Every error that was reported.
    pub fn faults(&self) -> Vec<&Fault> {
        self.report.as_ref().err().into_iter().chain(self.failed.values()).collect()
    }
}

impl Scenario {
    pub fn new(disk: SimDisk) -> Self {
        Scenario {
            disk,
            alone: None,
            allow_loss: false,
            discard_lost: false,
            quarantine: false,
            truncate_to: None,
            interval_bytes: 200,
            now_ms: 1_700_000_100_000,
            is_long: false,
        }
    }

    /// Recovers `disk`, which began as a copy of the scenario's.
    pub fn run(&self, disk: &SimDisk) -> Run {
        let failed = Mutex::new(BTreeMap::new());
        let (sound, refused) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let done = |done: PartitionDone<'_>| match done.result {
            PartitionResult::Failed(error) => {
                let mut failed = failed.lock().expect("no panic");
                failed.insert(done.dir.to_path_buf(), Fault::of(error));
            }
            PartitionResult::Sound(_) => {
                sound.lock().expect("no panic").push(done.dir.to_path_buf());
            }
            PartitionResult::Refused(_) => {
                refused.lock().expect("no panic").push(done.dir.to_path_buf());
            }
            PartitionResult::Quarantined(..) => {}
        };
        let index =
            IndexSettings { interval_bytes: self.interval_bytes, ..IndexSettings::default() };
        let settings = |_: &str| PartitionSettings { index, remote_storage: false };
        let options = DirRecoverOptions {
            allow_loss: self.allow_loss,
            discard_lost: self.discard_lost,
            quarantine: self.quarantine.then(|| PathBuf::from(QUARANTINE)),
            truncate_to: self.truncate_to,
            producer_expiration_ms: EXPIRATION_MS,
            ..DirRecoverOptions::new(&settings, &done, self.now_ms)
        };
        let report = match self.alone {
            None => recover_log_dir(disk, Path::new(LOGS), &options, &Silent),
            Some(name) => recover_partition(disk, &Path::new(LOGS).join(name), &options, &Silent),
        };
        let report = report.map_err(|error| Fault::of(&error));
        Run {
            report,
            failed: failed.into_inner().expect("no panic"),
            sound: sound.into_inner().expect("no panic"),
            refused: refused.into_inner().expect("no panic"),
        }
    }

    /// Recovers, and expects that it can.
    pub fn succeed(&self, disk: &SimDisk, when: &str) -> DirReport {
        let run = self.run(disk);
        assert!(run.failed.is_empty(), "{when}: {run:?}");
        run.report.unwrap_or_else(|fault| panic!("{when}: {}", fault.text))
    }

    /// Recovers without a cut, and expects that nothing is left to be repaired in what is sound,
    /// and that what is refused is as it was.
    pub fn recover_whole(&self, disk: &SimDisk) {
        let run = self.run(disk);
        assert!(run.report.is_ok() && run.failed.is_empty(), "{run:?}");
        for dir in &run.refused {
            let files = |disk: &SimDisk| disk.snapshot(dir).expect("a partition");
            let lines = files(disk).differences(&files(&self.disk));
            assert!(lines.is_empty(), "{}: {}", dir.display(), lines.join("\n"));
        }
        let starts = disk
            .fork()
            .read(&Path::new(LOGS).join("log-start-offset-checkpoint"), 1 << 20)
            .expect("a checkpoint");
        let starts = OffsetCheckpoint::parse(&starts).expect("a checkpoint");
        for dir in &run.sound {
            self.check_every_byte(dir, disk);
            let name = dir.file_name().expect("a name").to_string_lossy();
            let (topic, _) = name.rsplit_once('-').expect("a partition");
            let options = VerifyOptions {
                log_start_offset: starts.get(topic, 0),
                log_start_may_have_moved: true,
                now_ms: self.now_ms,
                producer_id_expiration_ms: EXPIRATION_MS,
                ..VerifyOptions::default()
            };
            let disk = disk.fork();
            let report = verify_partition(&disk, dir, &options).expect("a partition");
            let is_grave = |severity| severity >= Severity::Repairable;
            let problems = report.problems.iter().filter(|problem| is_grave(problem.severity));
            let problems: Vec<_> = problems.collect();
            assert!(problems.is_empty(), "{}: {problems:#?}", dir.display());
        }
    }

    /// What was in the logs of a partition is in its logs, or kept, or holds nothing whole.
    fn check_every_byte(&self, dir: &Path, disk: &SimDisk) {
        let (before, after) = (self.disk.snapshot(dir), disk.snapshot(dir));
        let (before, after) = (before.expect("a partition"), after.expect("a partition"));
        let is_swap = |path: &PathBuf| path.to_string_lossy().ends_with(".log.swap");
        if before.entries.keys().any(is_swap) {
            // A compaction drops batches.
            return;
        }
        let joined = |tree: &Snapshot, is_wanted: &dyn Fn(&Path) -> bool| {
            let wanted = tree.entries.keys().filter(|path| is_wanted(path));
            wanted
                .flat_map(|path| bytes(tree, path).unwrap_or_default().to_vec())
                .collect::<Vec<u8>>()
        };
        let is_log = |path: &Path| path.extension().is_some_and(|suffix| suffix == "log");
        let is_lost = |path: &Path| {
            path.to_string_lossy().contains(".log.lost") && !before.entries.contains_key(path)
        };
        let all = joined(&before, &is_log);
        let kept = [joined(&after, &is_log), joined(&after, &is_lost)].concat();
        let rest = all.strip_prefix(&*kept);
        let mut rest = rest.unwrap_or_else(|| panic!("{}: other bytes", dir.display()));
        let whole = survivors(&mut rest, 0, 0, 0).expect("bytes in memory");
        assert!(whole.batches == 0 || self.discard_lost, "{}: {whole:?}", dir.display());
    }

    /// The tree that a recovery without a cut leaves, where the directory has no clean marker.
    pub fn end_without_marker(&self) -> Snapshot {
        let disk = self.disk.fork();
        remove_marker(&disk);
        self.succeed(&disk, "uncut, without marker");
        tree(&disk)
    }
}

/// Everything on a disk. The order of a checkpoint's lines says nothing, so they are sorted.
pub fn tree(disk: &SimDisk) -> Snapshot {
    let mut tree = disk.snapshot(Path::new("/")).expect("a root");
    let checkpoint = Path::new("logs/recovery-point-offset-checkpoint");
    if let Some(Entry::File(bytes)) = tree.entries.get_mut(checkpoint) {
        let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        if let Some(entries) = lines.get_mut(2..) {
            entries.sort_unstable();
        }
        *bytes = lines.concat();
    }
    tree
}

/// The tree without what says nothing of a log: the lock, and files that are not yet in place.
pub fn settled_tree(disk: &SimDisk) -> Snapshot {
    let mut tree = tree(disk);
    tree.entries.retain(|path, _| {
        let name = path.to_string_lossy();
        !name.ends_with(".tmp") && !name.ends_with(".lock")
    });
    tree
}

/// Whether the log directory has a clean marker.
pub fn has_marker(tree: &Snapshot) -> bool {
    marker(tree).is_some()
}

/// The bytes of the clean marker.
pub fn marker(tree: &Snapshot) -> Option<&[u8]> {
    bytes(tree, &Path::new("logs").join(MARKER))
}

/// The bytes of a file.
pub fn bytes<'a>(tree: &'a Snapshot, path: &Path) -> Option<&'a [u8]> {
    match tree.entries.get(path) {
        Some(Entry::File(bytes)) => Some(bytes),
        _ => None,
    }
}

fn remove_marker(disk: &SimDisk) {
    match disk.remove_file(&Path::new(LOGS).join(MARKER)) {
        Ok(()) => disk.settle(),
        Err(error) => assert_eq!(error.kind(), siltstone::Kind::NotFound),
    }
}
