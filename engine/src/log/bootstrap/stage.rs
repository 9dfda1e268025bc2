//! How do the new files of a directory take the place of its log?

use std::collections::BTreeMap;
use std::path::Path;

use super::mark::{MARK_FILE, Mark, STAGED, STAGED_EPOCHS, STAGED_METADATA, STAGED_SNAPSHOT, Sum};
use super::state::AuxState;
use crate::error::{Error, Kind, Result};
use crate::io::cache::begin_to_write;
use crate::io::{FileKind, Metadata, OpenMode, Storage};
use crate::log::inventory::{EPOCH_FILE, METADATA_FILE};
use crate::log::topic_id::read_topic_id;
use crate::segment::name::Parsed;
use crate::segment::{FileName, FileRole, FileState};
use crate::state::meta::format_partition_metadata;
use crate::uuid::Uuid;

/// Writes the new files of a partition beside the old ones, and the mark. Nothing that Kafka looks
/// at changes. To be made durable by a sync of the file system before
/// [`put_in_place`]; [`clear`] takes it back.
///
/// # Errors
/// `Conflict` when the partition is of another topic id, or is marked already; what the disk says.
/// Nothing is left of what was written, if the disk lets it be removed.
pub fn stage(storage: &dyn Storage, dir: &Path, state: &AuxState) -> Result<()> {
    let names = Names::list(storage, dir)?;
    names.check_unmarked(dir)?;
    let topic_id = missing_topic_id(storage, dir, state.target.topic_id)?;
    let like = names.owner(storage, dir)?;
    let segments = names.segment_sizes(storage, dir)?;
    let mark = Mark { topic_id, ..mark_of(state, segments) };
    let written = stage_objects(storage, dir, state, &like).and_then(|()| {
        stage_topic_id(storage, dir, &mark, &like)?;
        write(storage, dir, MARK_FILE, &mark.format(), &like)
    });
    // What went wrong first is told.
    written.inspect_err(|_| drop(clear(storage, dir)))
}

/// The two files that were fetched.
pub(super) fn stage_objects(
    storage: &dyn Storage,
    dir: &Path,
    state: &AuxState,
    like: &Metadata,
) -> Result<()> {
    write(storage, dir, STAGED_EPOCHS, &state.epochs.format(), like)?;
    write(storage, dir, STAGED_SNAPSHOT, &state.snapshot, like)
}

/// The topic id, where the partition has none yet; one that is staged already is written again.
pub(super) fn stage_topic_id(
    storage: &dyn Storage,
    dir: &Path,
    mark: &Mark,
    like: &Metadata,
) -> Result<()> {
    let Some(id) = mark.topic_id else { return Ok(()) };
    write(storage, dir, STAGED_METADATA, &format_partition_metadata(id), like)
}

pub(super) fn mark_of(state: &AuxState, segments: BTreeMap<i64, u64>) -> Mark {
    Mark {
        log_start_offset: state.target.log_start_offset,
        next_offset: state.target.next_offset,
        epochs: Sum::of(&state.epochs.format()),
        snapshot: Sum::of(&state.snapshot),
        topic_id: None,
        segments,
    }
}

pub(super) fn write(
    storage: &dyn Storage,
    dir: &Path,
    name: &str,
    bytes: &[u8],
    like: &Metadata,
) -> Result<()> {
    let file = storage.open(&dir.join(name), OpenMode::Create)?;
    if !bytes.is_empty() {
        file.write_at(bytes, 0)?;
    }
    file.set_owner(like)?;
    // The disk is busy with it while the next partitions are read, and not only in the sync.
    begin_to_write(&*file, bytes.len());
    Ok(())
}

/// The topic id that is to be written down, if the partition has none.
fn missing_topic_id(
    storage: &dyn Storage,
    dir: &Path,
    wanted: Option<Uuid>,
) -> Result<Option<Uuid>> {
    let Some(wanted) = wanted else { return Ok(None) };
    match read_topic_id(storage, dir)? {
        None => Ok(Some(wanted)),
        Some(found) if found == wanted => Ok(None),
        Some(found) => {
            let message = format!("the topic id is {found}, that of the remote segment {wanted}");
            Err(Error::new(Kind::Conflict, message).in_file(&dir.join(METADATA_FILE)))
        }
    }
}

/// Carries out what is [staged](stage): the log and its side files go, the new files take their
/// names, and an empty log with its indexes is made. The staged files must be durable. After a
/// failure the partition is to be [settled](super::settle).
///
/// The old log goes from its front on, and the new one appears last: what a process that is killed
/// in between leaves is the end of the old log, or none, also to those who do not know the mark.
///
/// # Errors
/// What the disk says.
pub fn put_in_place(storage: &dyn Storage, dir: &Path, state: &AuxState) -> Result<()> {
    put_at(storage, dir, state.target.next_offset)
}

pub(super) fn put_at(storage: &dyn Storage, dir: &Path, next_offset: i64) -> Result<()> {
    let names = Names::list(storage, dir)?;
    let like = names.owner(storage, dir)?;
    let is_staged = |name: &str| names.staged.iter().any(|staged| staged == name);
    let live = |role| FileName::live(next_offset, role).format();
    let mut in_place = Vec::new();
    for (file, name) in &names.files {
        let path = dir.join(name);
        // From an earlier run; or the log was empty there before, and is again.
        let is_new = *name == live(file.role)
            && match file.role {
                FileRole::Snapshot => !is_staged(STAGED_SNAPSHOT),
                role => EMPTY.contains(&role) && is_empty(storage, &path)?,
            };
        match is_new {
            true => in_place.push(file.role),
            false => remove_if_there(storage, &path)?,
        }
    }
    for (staged, name) in [
        (STAGED_SNAPSHOT, live(FileRole::Snapshot)),
        (STAGED_EPOCHS, EPOCH_FILE.to_owned()),
        (STAGED_METADATA, METADATA_FILE.to_owned()),
    ] {
        if is_staged(staged) {
            storage.rename(&dir.join(staged), &dir.join(name))?;
        }
    }
    for role in EMPTY.into_iter().filter(|role| !in_place.contains(role)) {
        write(storage, dir, &live(role), &[], &like)?;
    }
    Ok(())
}

/// The new files that have nothing in them, the log last.
const EMPTY: [FileRole; 3] = [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::Log];

fn is_empty(storage: &dyn Storage, path: &Path) -> Result<bool> {
    Ok(storage.metadata(path)?.size_bytes == 0)
}

/// Removes what is left of an install, the mark last. To be made durable before anything is
/// written to the log: a mark that came back would be of another log.
///
/// # Errors
/// What the disk says.
pub fn clear(storage: &dyn Storage, dir: &Path) -> Result<()> {
    for name in STAGED {
        remove_if_there(storage, &dir.join(name))?;
    }
    remove_if_there(storage, &dir.join(MARK_FILE))
}

/// Removes every file of the log.
pub(super) fn empty(storage: &dyn Storage, dir: &Path) -> Result<()> {
    for (_, name) in Names::list(storage, dir)?.files {
        remove_if_there(storage, &dir.join(name))?;
    }
    remove_if_there(storage, &dir.join(EPOCH_FILE))
}

fn remove_if_there(storage: &dyn Storage, path: &Path) -> Result<()> {
    match storage.remove_file(path) {
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        other => other,
    }
}

/// What is in a partition directory, as far as an install cares.
pub(super) struct Names {
    /// Files of segments, and snapshots: by offset, the log first.
    pub(super) files: Vec<(FileName, String)>,
    /// New files.
    pub(super) staged: Vec<String>,
    pub(super) is_marked: bool,
}

impl Names {
    pub(super) fn list(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let mut names = Names { files: Vec::new(), staged: Vec::new(), is_marked: false };
        for entry in storage.list(dir)? {
            let name = entry.name.to_string_lossy().into_owned();
            if entry.kind == FileKind::Directory {
                continue;
            }
            if name == MARK_FILE {
                names.is_marked = true;
            } else if STAGED.contains(&&*name) {
                names.staged.push(name);
            } else if let Parsed::Segment(file) = FileName::parse(&name) {
                names.files.push((file, name));
            }
        }
        names.files.sort_by_key(|(file, _)| (file.offset, file.role));
        Ok(names)
    }

    /// The new files of an install that is under way are not to be written over.
    pub(super) fn check_unmarked(&self, dir: &Path) -> Result<()> {
        if self.is_marked {
            let message = "another rebuild of this partition is under way, or was interrupted";
            return Err(Error::new(Kind::Conflict, message).in_file(dir));
        }
        Ok(())
    }

    /// The segments by base offset, with the bytes of their logs.
    pub(super) fn segment_sizes(
        &self,
        storage: &dyn Storage,
        dir: &Path,
    ) -> Result<BTreeMap<i64, u64>> {
        let is_log = |file: &FileName| file.role == FileRole::Log && file.state == FileState::Live;
        let logs = self.files.iter().filter(|(file, _)| is_log(file));
        logs.map(|(file, name)| Ok((file.offset, storage.metadata(&dir.join(name))?.size_bytes)))
            .collect()
    }

    /// Owner and mode for new files: those of the newest log, else of the directory.
    pub(super) fn owner(&self, storage: &dyn Storage, dir: &Path) -> Result<Metadata> {
        let newest = self.files.iter().rev().find(|(file, _)| file.role == FileRole::Log);
        if let Some((_, name)) = newest {
            return storage.metadata(&dir.join(name));
        }
        let mut metadata = storage.metadata(dir)?;
        metadata.mode &= 0o666;
        Ok(metadata)
    }
}
