//! The small files of a log directory: read before, written last.

use std::path::Path;

use crate::dir::files::{
    CLEAN_SHUTDOWN_FILE, LOG_START_FILE, META_FILE, RECOVERY_POINT_FILE, read_offsets,
};
use crate::error::{Kind, Result};
use crate::io::{Metadata, OpenMode, Storage};
use crate::problem::{Code, Problem, Severity};
use crate::state::OffsetCheckpoint;

/// More than the marker has.
const MARKER_BYTES_MAX: u64 = 64 << 10;

/// What a directory says of its logs.
#[derive(Clone, Debug, Default)]
pub struct Checkpoints {
    /// Up to where logs were flushed.
    pub recovery_points: OffsetCheckpoint,
    /// Where logs start.
    pub log_starts: OffsetCheckpoint,
    /// The bytes of the clean-shutdown marker, if it is there.
    pub marker: Option<Vec<u8>>,
}

impl Checkpoints {
    /// Reads what is there. A checkpoint that cannot be read counts as empty, as in Kafka, and is
    /// told.
    pub fn read(storage: &dyn Storage, dir: &Path, problems: &mut Vec<Problem>) -> Result<Self> {
        // spec: segments 7
        let mut checkpoint = |name: &str| {
            // One of another release as well: Kafka starts without its lines.
            let says_nothing = |kind| kind == Kind::Unsupported || is_torn(kind);
            read_or_empty(storage, dir, name, says_nothing, problems)
        };
        Ok(Checkpoints {
            recovery_points: checkpoint(RECOVERY_POINT_FILE)?,
            log_starts: checkpoint(LOG_START_FILE)?,
            // Only that it is there counts; one too long to be a marker is none of ours to write
            // back.
            marker: match storage.read(&dir.join(CLEAN_SHUTDOWN_FILE), MARKER_BYTES_MAX) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == Kind::NotFound => None,
                Err(error) if error.kind() == Kind::Limit => Some(Vec::new()),
                Err(error) => return Err(error),
            },
        })
    }
}

/// Whether a checkpoint is what a power cut may leave; too long to be one is as good as one that
/// says nothing.
pub fn is_torn(kind: Kind) -> bool {
    matches!(kind, Kind::Corrupt | Kind::Limit)
}

/// The lines of a checkpoint, or none and a problem where reading it fails in a way that
/// `says_nothing` of its logs.
pub fn read_or_empty(
    storage: &dyn Storage,
    dir: &Path,
    name: &str,
    says_nothing: impl Fn(Kind) -> bool,
    problems: &mut Vec<Problem>,
) -> Result<OffsetCheckpoint> {
    match read_offsets(storage, dir, name) {
        Err(error) if says_nothing(error.kind()) => {
            problems.push(Problem {
                code: Code::CheckpointFile,
                severity: Severity::Repairable,
                file: name.to_owned(),
                position: None,
                offset: None,
                detail: format!("{}; taken for empty", error.message()),
            });
            Ok(OffsetCheckpoint::new())
        }
        other => other,
    }
}

/// Replaces a small file of the directory, durably: it is the old one or the new one, whatever
/// happens.
pub fn replace(
    storage: &dyn Storage,
    dir: &Path,
    name: &str,
    bytes: &[u8],
    like: &Metadata,
) -> Result<()> {
    replace_by(storage, dir, (name, &format!("{name}.tmp")), bytes, like)
}

/// The same with a temporary name of its own.
pub fn replace_by(
    storage: &dyn Storage,
    dir: &Path,
    (name, beside): (&str, &str),
    bytes: &[u8],
    like: &Metadata,
) -> Result<()> {
    let beside = dir.join(beside);
    let file = storage.open(&beside, OpenMode::Create)?;
    file.write_at(bytes, 0)?;
    storage.set_owner(&beside, like)?;
    file.sync()?;
    drop(file);
    storage.rename(&beside, &dir.join(name))?;
    storage.sync_dir(dir)
}

/// Removes the clean-shutdown marker, durably.
pub fn remove_marker(storage: &dyn Storage, dir: &Path) -> Result<()> {
    match storage.remove_file(&dir.join(CLEAN_SHUTDOWN_FILE)) {
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => storage.sync_dir(dir),
    }
}

/// Owner and mode for the small files of the directory: those of `meta.properties`, else of the
/// directory.
pub fn owner_of_dir(storage: &dyn Storage, dir: &Path) -> Result<Metadata> {
    match storage.metadata(&dir.join(META_FILE)) {
        Ok(metadata) => Ok(metadata),
        Err(error) if error.kind() == Kind::NotFound => {
            let mut metadata = storage.metadata(dir)?;
            metadata.mode &= 0o666;
            Ok(metadata)
        }
        Err(error) => Err(error),
    }
}
