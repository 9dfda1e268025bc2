//! What a log directory holds, as far as `ls` looks.

use std::path::{Path, PathBuf};

use siltstone::dir::files::CLEAN_SHUTDOWN_FILE;
use siltstone::dir::files::LOCK_FILE;
use siltstone::dir::files::{LOG_START_FILE, META_FILE};
use siltstone::dir::metadata::METADATA_FOLDER;
use siltstone::dir::verify::duplicates;
use siltstone::index::TimeEntry;
use siltstone::io::FileKind;
use siltstone::log::name::{FolderKind, FolderName, REMOTE_INDEX_CACHE};
use siltstone::log::{LogEnd, LogFacts};
use siltstone::state::OffsetCheckpoint;
use siltstone::state::meta::{MetaProperties, parse_partition_metadata};
use siltstone::uuid::Uuid;
use siltstone::{Kind, Result};

use crate::Outcome;
use crate::session::{Session, complain};
use crate::target::file_name;

/// The small files are far smaller.
const SMALL_FILE_BYTES: u64 = 64 << 20;

/// The kinds of folders as they are printed, in the order in which they are counted.
pub(super) const KINDS: [&str; 6] = ["live", "metadata", "future", "delete", "stray", "unknown"];

/// A log directory, or the part of one that was asked for.
#[derive(Debug)]
pub(super) struct LogDir {
    pub(super) path: PathBuf,
    /// Whether all of it was asked for, and not one partition.
    pub(super) is_whole: bool,
    pub(super) is_running: bool,
    pub(super) is_clean: bool,
    /// Whether `meta.properties` cannot be understood.
    pub(super) has_fault: bool,
    pub(super) properties: Option<MetaProperties>,
    pub(super) partitions: Vec<Listed>,
}

/// One folder of a log directory.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) path: PathBuf,
    pub(super) name: String,
    /// `None` for a folder that would stop Kafka from starting.
    pub(super) parsed: Option<FolderName>,
    pub(super) facts: LogFacts,
    /// Largest timestamp of each segment, as its time index has it.
    pub(super) times: Vec<Option<TimeEntry>>,
    pub(super) end: Option<LogEnd>,
    pub(super) log_start_offset: Option<i64>,
    pub(super) topic_id: Option<Uuid>,
    pub(super) notes: Vec<String>,
    pub(super) is_unreadable: bool,
    /// Whether another log directory holds it, too.
    is_duplicate: bool,
}

impl LogDir {
    /// Lists a log directory.
    pub(super) fn read(session: &Session, path: &Path) -> Result<LogDir> {
        let mut dir = LogDir::of_files(session, path)?;
        dir.is_whole = true;
        let log_starts = dir.log_starts(session);
        for entry in session.storage().list(path)? {
            let name = entry.name.to_string_lossy().into_owned();
            if entry.kind != FileKind::Directory || name == REMOTE_INDEX_CACHE {
                continue;
            }
            let folder = path.join(&entry.name);
            dir.partitions.push(Listed::read(session, folder, name, log_starts.as_ref()));
        }
        Ok(dir)
    }

    /// Lists one partition, with what the files beside it say.
    pub(super) fn of_partition(session: &Session, path: &Path) -> Result<LogDir> {
        let parent = path.parent().unwrap_or(path);
        let mut dir = LogDir::of_files(session, parent)?;
        let log_starts = dir.log_starts(session);
        let listed =
            Listed::read(session, path.to_path_buf(), file_name(path), log_starts.as_ref());
        dir.partitions.push(listed);
        Ok(dir)
    }

    fn of_files(session: &Session, path: &Path) -> Result<LogDir> {
        let storage = session.storage();
        let is_clean = storage.metadata(&path.join(CLEAN_SHUTDOWN_FILE)).is_ok();
        let bytes = read_if_there(session, &path.join(META_FILE));
        let read = bytes.map(|bytes| MetaProperties::parse(&bytes)).transpose();
        let has_fault = read.is_err();
        if let Err(error) = &read {
            complain(&format_args!("{}: {META_FILE}: {error}", path.display()));
        }
        let properties = read.unwrap_or_default();
        Ok(LogDir {
            path: path.to_path_buf(),
            is_whole: false,
            is_running: storage.is_locked(&path.join(LOCK_FILE)).unwrap_or(false),
            is_clean,
            has_fault,
            properties,
            partitions: Vec::new(),
        })
    }

    fn log_starts(&self, session: &Session) -> Option<OffsetCheckpoint> {
        let bytes = read_if_there(session, &self.path.join(LOG_START_FILE))?;
        OffsetCheckpoint::parse(&bytes).ok()
    }

    /// The bytes of all folders.
    pub(super) fn size_bytes(&self) -> u64 {
        let sizes = self.partitions.iter().map(|listed| listed.facts.size_bytes);
        sizes.fold(0, u64::saturating_add)
    }

    /// How many folders there are of a kind.
    pub(super) fn count(&self, kind: &str) -> usize {
        self.partitions.iter().filter(|listed| listed.kind() == kind).count()
    }

    /// How it went.
    pub(super) fn outcome(&self) -> Outcome {
        let each = self.partitions.iter().map(|listed| match listed {
            Listed { is_unreadable: true, .. } => Outcome::CouldNotLook,
            // A partition that was named by itself may be called as it likes.
            Listed { parsed: None, .. } if self.is_whole => Outcome::Problems,
            Listed { is_duplicate: true, .. } => Outcome::Problems,
            _ => Outcome::Fine,
        });
        let own = if self.has_fault && self.is_whole { Outcome::Problems } else { Outcome::Fine };
        each.fold(own, Outcome::max)
    }
}

impl Listed {
    fn read(
        session: &Session,
        path: PathBuf,
        name: String,
        log_starts: Option<&OffsetCheckpoint>,
    ) -> Listed {
        let parsed = FolderName::parse(&name);
        let log_start_offset = parsed
            .as_ref()
            .zip(log_starts)
            .and_then(|(parsed, starts)| starts.get(&parsed.topic, parsed.partition));
        let mut listed = Listed {
            path,
            name,
            parsed,
            facts: LogFacts::default(),
            times: Vec::new(),
            end: None,
            log_start_offset,
            topic_id: None,
            notes: Vec::new(),
            is_unreadable: false,
            is_duplicate: false,
        };
        if let Err(error) = listed.look(session) {
            complain(&error);
            listed.is_unreadable = true;
            listed.notes.push("could not be looked at".to_owned());
        }
        listed
    }

    fn look(&mut self, session: &Session) -> Result<()> {
        let storage = session.storage();
        self.facts = LogFacts::read(storage, &self.path)?;
        for problem in self.facts.unreadable_problems() {
            complain(&format_args!("{}: {problem}", self.path.display()));
            self.notes.push(format!("{} cannot be opened", problem.file));
            self.is_unreadable = true;
        }
        let bases = self.facts.segments.iter().map(|segment| segment.base_offset);
        for base in bases.collect::<Vec<_>>() {
            self.times.push(self.facts.last_time_entry(storage, base)?);
        }
        if let Some(bytes) = read_if_there(session, &self.path.join("partition.metadata")) {
            match parse_partition_metadata(&bytes) {
                Ok(id) => self.topic_id = Some(id),
                Err(error) => self.notes.push(format!("partition.metadata: {error}")),
            }
        }
        if self.parsed.is_none() {
            self.notes.push("no partition by its name: Kafka will not start with it".to_owned());
            return Ok(());
        }
        self.end = self.facts.read_end(storage, session.maps)?;
        if let Some(end) = self.end
            && end.unread_bytes > 0
        {
            self.notes.push(format!(
                "{} behind the last whole batch",
                crate::output::format_bytes(end.unread_bytes)
            ));
        }
        if self.facts.leftover_count > 0 {
            self.notes.push(format!(
                "{} leftover files ({})",
                self.facts.leftover_count,
                crate::output::format_bytes(self.facts.leftover_size_bytes)
            ));
        }
        Ok(())
    }

    /// What becomes of it: one of [`KINDS`].
    pub(super) fn kind(&self) -> &'static str {
        match &self.parsed {
            _ if self.name == METADATA_FOLDER => "metadata",
            None => "unknown",
            Some(parsed) => match parsed.kind {
                FolderKind::Live => "live",
                FolderKind::Future => "future",
                FolderKind::Delete => "delete",
                FolderKind::Stray => "stray",
            },
        }
    }

    /// The first offset: of the first segment, or behind it where the checkpoint says so.
    pub(super) fn first_offset(&self) -> Option<i64> {
        let first = self.facts.segments.first()?.base_offset;
        Some(self.log_start_offset.map_or(first, |start| start.max(first)))
    }
}

/// Notes at each partition that several of the log directories hold that Kafka does not start so.
pub(super) fn note_duplicates(dirs: &mut [LogDir]) {
    let names = |dir: &LogDir| -> Vec<FolderName> {
        dir.partitions.iter().filter_map(|listed| listed.parsed.clone()).collect()
    };
    let known: Vec<_> = dirs.iter().map(|dir| (dir.path.clone(), names(dir))).collect();
    for (at, problem) in duplicates(&known) {
        let partitions = dirs.get_mut(at).map(|dir| &mut dir.partitions);
        let twice = partitions.into_iter().flatten().filter(|it| it.name == problem.file);
        for listed in twice {
            listed.notes.push(format!("{}: Kafka will not start with it", problem.detail));
            listed.is_duplicate = true;
        }
    }
}

/// The bytes of a small file; `None`, and a complaint, when it is there and cannot be read.
pub(super) fn read_if_there(session: &Session, path: &Path) -> Option<Vec<u8>> {
    match session.storage().read(path, SMALL_FILE_BYTES) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            if error.kind() != Kind::NotFound {
                complain(&error);
            }
            None
        }
    }
}
