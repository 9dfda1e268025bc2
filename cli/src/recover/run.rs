//! Runs the recovery of what was given, one directory after another.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use siltstone::dir::recover::{
    DirRecoverOptions, DirReport, PartitionDone, PartitionSettings, bytes_to_read, recover_log_dir,
    recover_partition,
};
use siltstone::dir::verify::duplicates;
use siltstone::io::Storage;
use siltstone::log::FolderName;
use siltstone::problem::{Code, Problem};
use siltstone::segment::rebuild::IndexSettings;
use siltstone::uuid::Uuid;
use siltstone::{Error, Kind, Result};

use crate::Outcome;
use crate::given::distinct;
use crate::output::told;
use crate::progress::Progress;
use crate::recover::RecoverArgs;
use crate::recover::print::Printer;
use crate::session::{Session, complain};
use crate::settings::{Settings, SettingsFrom};
use crate::target::{PartitionDir, Target, file_name};

/// Recovers all paths.
pub(crate) fn run(args: &RecoverArgs, session: &Session) -> std::io::Result<Outcome> {
    match prepare(args, session) {
        Ok(job) => job.run(),
        Err(error) => {
            complain(&error);
            Ok(Outcome::CouldNotLook)
        }
    }
}

struct Job<'a> {
    args: &'a RecoverArgs,
    session: &'a Session,
    targets: Vec<Target>,
    settings: Settings,
    topic_id: Option<Uuid>,
    now_ms: i64,
    threads: usize,
}

fn prepare<'a>(args: &'a RecoverArgs, session: &'a Session) -> Result<Job<'a>> {
    let storage = session.storage();
    let mut targets = Vec::new();
    for path in distinct(&args.paths) {
        match Target::classify(storage, &path)? {
            Target::File { path, .. } => {
                return Err(Error::new(
                    Kind::InvalidArgument,
                    "a file alone cannot be recovered; name its partition directory",
                )
                .in_file(&path));
            }
            target => targets.push(target),
        }
    }
    let is_one_partition = matches!(targets.as_slice(), [Target::Partition(_)]);
    let alone = [
        ("--truncate-to", args.truncate_to.is_some()),
        ("--recovery-point", args.recovery_point.is_some()),
        ("--log-start-offset", args.log_start_offset.is_some()),
        ("--topic-id", args.topic_id.is_some()),
    ];
    if let Some((option, _)) = alone.iter().find(|(_, given)| *given && !is_one_partition) {
        let why = format!("{option} is for one partition; name its directory alone");
        return Err(Error::new(Kind::InvalidArgument, why));
    }
    let topic_id = match &args.topic_id {
        None => None,
        Some(text) => Some(Uuid::parse(text).ok_or_else(|| {
            Error::new(Kind::InvalidArgument, format!("--topic-id: {text} is no topic id"))
        })?),
    };
    let dirs = dirs_of(&targets);
    let settings = Settings::read(
        storage,
        &dirs,
        &SettingsFrom {
            args: &args.settings,
            like_kafka: args.like_kafka,
            metadata_upto: args.metadata_upto,
        },
    )?;
    check_settings(storage, &targets, &settings)?;
    check_quarantine(args.quarantine.as_deref(), &dirs)?;
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Job {
        args,
        session,
        targets,
        settings,
        topic_id,
        now_ms: args.now_ms.unwrap_or_else(now_ms),
        threads: args.threads.map_or(available, usize::from),
    })
}

/// Looks at all settings that the recovery goes by, before anything is written by others.
fn check_settings(storage: &dyn Storage, targets: &[Target], settings: &Settings) -> Result<()> {
    settings.producer_expiration_ms()?;
    let mut names = Vec::new();
    for target in targets {
        match target {
            Target::LogDir(path) => {
                let entries = storage.list(path)?;
                names.extend(entries.iter().map(|it| it.name.to_string_lossy().into_owned()));
            }
            Target::Partition(path) | Target::File { path, .. } => names.push(file_name(path)),
        }
    }
    let topics: BTreeSet<String> = names
        .iter()
        .filter_map(|name| Some(FolderName::parse(name)?.topic))
        // A folder of any other name gets what is set for all.
        .chain([String::new()])
        .collect();
    topics.iter().try_for_each(|topic| settings.topic(topic).map(drop))
}

/// Kafka does not start on a log directory with a folder that no partition has as its name.
fn check_quarantine(quarantine: Option<&Path>, dirs: &[PathBuf]) -> Result<()> {
    let Some(quarantine) = quarantine else { return Ok(()) };
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let parent = quarantine.parent().filter(|parent| !parent.as_os_str().is_empty());
    let homes = [real(quarantine), real(parent.unwrap_or(Path::new(".")))];
    match dirs.iter().find(|dir| homes.contains(&real(dir))) {
        None => Ok(()),
        Some(dir) => {
            let why = format!(
                "--quarantine: lies in the log directory {}, where Kafka takes it for a partition and \
                 does not start",
                dir.display()
            );
            Err(Error::new(Kind::InvalidArgument, why).in_file(quarantine))
        }
    }
}

/// The log directories that are given or that hold what is given.
fn dirs_of(targets: &[Target]) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = Vec::new();
    for target in targets {
        let dir = match target {
            Target::LogDir(path) => path.clone(),
            Target::Partition(path) | Target::File { path, .. } => {
                path.parent().map(Path::to_path_buf).unwrap_or_default()
            }
        };
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    dirs
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

impl Job<'_> {
    fn run(&self) -> std::io::Result<Outcome> {
        let storage = self.session.storage();
        let printer = Mutex::new(Printer::new(self.args.json, self.args.dry_run));
        let (warnings, is_whole) = self.settings.metadata_warnings();
        if !self.args.json && !self.session.quiet {
            for note in &self.settings.notes {
                complain(note);
            }
        } else if !is_whole {
            // The settings may be others than the broker's.
            for warning in warnings {
                complain(&format_args!("the metadata log: {warning}"));
            }
        }
        let mut outcome = Outcome::Fine;
        let twice = self.duplicates();
        for (number, target) in self.targets.iter().enumerate() {
            match self.one(storage, target, &printer) {
                Ok(mut report) => {
                    let here = twice.iter().filter(|(of, _)| *of == number);
                    report.problems.extend(here.map(|(_, problem)| problem.clone()));
                    outcome = outcome.max(outcome_of(&report));
                    if let (Ok(mut printer), Target::LogDir(_)) = (printer.lock(), target) {
                        printer.directory(&report);
                    }
                }
                Err(error) => {
                    complain(&error);
                    outcome = Outcome::CouldNotLook;
                }
            }
        }
        let printed = match printer.into_inner() {
            Ok(printer) => printer.finish(),
            Err(poisoned) => poisoned.into_inner().finish(),
        };
        told(printed, outcome)
    }

    /// What is to be told of partitions that several of the directories hold.
    fn duplicates(&self) -> Vec<(usize, Problem)> {
        let storage = self.session.storage();
        let names = |target: &Target| match target {
            // One that cannot be listed is told when its turn comes.
            Target::LogDir(_) => PartitionDir::of_target(storage, target).unwrap_or_default(),
            Target::Partition(_) | Target::File { .. } => Vec::new(),
        };
        let folder = |partition: PartitionDir| partition.folder;
        let dirs = self.targets.iter().map(|target| {
            let names = names(target).into_iter().filter_map(folder).collect();
            (target.path().to_path_buf(), names)
        });
        duplicates(&dirs.collect::<Vec<_>>())
    }

    fn one(
        &self,
        storage: &dyn Storage,
        target: &Target,
        printer: &Mutex<Printer>,
    ) -> Result<DirReport> {
        let args = self.args;
        let is_partition = matches!(target, Target::Partition(_));
        if args.dry_run {
            let home = target.path().parent().filter(|_| is_partition);
            self.session.point_out_broker(home.unwrap_or(target.path()));
        }
        let failed_settings: Mutex<Option<Error>> = Mutex::new(None);
        let settings = |topic: &str| self.settings_of(topic, &failed_settings);
        let done = |done: PartitionDone<'_>| {
            if let Ok(mut printer) = printer.lock() {
                let topic = done.topic.and_then(|topic| self.settings.topic(topic).ok());
                printer.partition(&done, topic.as_ref(), is_partition);
            }
        };
        let expiration = match args.producer_id_expiration_ms {
            Some(given) => given,
            None => self.settings.producer_expiration_ms()?,
        };
        let options = DirRecoverOptions {
            settings: &settings,
            done: &done,
            threads: self.threads,
            dry_run: args.dry_run,
            all: args.all,
            allow_loss: args.allow_loss,
            discard_lost: args.discard_lost,
            quarantine: args.quarantine.clone(),
            truncate_to: args.truncate_to,
            topic_id: self.topic_id,
            clean_shutdown: args.clean_shutdown,
            recovery_point: args.recovery_point,
            log_start_offset: args.log_start_offset,
            now_ms: self.now_ms,
            producer_expiration_ms: expiration,
            map_mode: self.session.maps,
        };
        let total = if self.session.quiet {
            0
        } else {
            bytes_to_read(storage, target.path(), is_partition, &options).unwrap_or(0)
        };
        let progress = Progress::start("read", total, self.session.quiet);
        let report = match target {
            Target::LogDir(path) => recover_log_dir(storage, path, &options, &progress),
            Target::Partition(path) | Target::File { path, .. } => {
                recover_partition(storage, path, &options, &progress)
            }
        };
        progress.finish();
        match failed_settings.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => report,
        }
    }

    fn settings_of(&self, topic: &str, failed: &Mutex<Option<Error>>) -> PartitionSettings {
        match self.settings.topic(topic) {
            Ok(resolved) => PartitionSettings {
                index: IndexSettings {
                    interval_bytes: u64::from(resolved.index_interval_bytes),
                    max_size_bytes: usize::try_from(resolved.segment_index_bytes)
                        .unwrap_or(usize::MAX),
                },
                remote_storage: self.settings.is_remote(topic, &resolved),
            },
            Err(error) => {
                if let Ok(mut slot) = failed.lock() {
                    slot.get_or_insert(error);
                }
                PartitionSettings::default()
            }
        }
    }
}

/// The exit that a directory asks for.
fn outcome_of(report: &DirReport) -> Outcome {
    let is_unread = |problem: &Problem| problem.code == Code::Unreadable;
    if report.failed > 0 || report.problems.iter().any(is_unread) {
        Outcome::CouldNotLook
    } else if report.refused > 0 || report.keeps_kafka_from_starting() {
        Outcome::Problems
    } else {
        Outcome::Fine
    }
}
