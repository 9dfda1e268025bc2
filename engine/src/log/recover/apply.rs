//! How is a plan carried out so that a crash at any moment leaves a directory that recovers to the same end?
//!
//! `prepare` writes every new file beside the one that it replaces; the caller makes that durable, for many partitions at once. `commit`
//! then renames, cuts and removes. What is lost is kept first; segments behind a cut go before the cut itself, so that
//! until the very end the damage that demands it is still there to be seen.

use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::io::{Metadata, OpenMode, Storage};
use crate::log::recover::plan::{Action, Cut, CutSegment, Plan};
use crate::log::recover::split::{copy, write_parts};
use crate::log::recover::stage::{Staged, beside, write_beside};
use crate::segment::{FileName, FileRole, FileState};

/// So many `.log.lost` files of one segment are kept apart before giving up.
const LOST_FILES_MAX: u32 = 1000;

/// Writes the new files of a plan beside the old, not yet durably. Changes nothing that Kafka looks at.
///
/// A split is carried out whole, with what an interrupted operation left before it; analyse the partition anew after that.
pub fn prepare(storage: &dyn Storage, plan: &mut Plan) -> Result<()> {
    if plan.refusal.is_some() {
        return Ok(());
    }
    let like = match plan.like {
        Some(like) => Some(like),
        None => owner(storage, &plan.dir)?,
    };
    if let Some(split) = &plan.split {
        // Leftovers first: a `.cleaned` of another operation among them would tell of these parts that they are not complete.
        remove_swaps(storage, plan)?;
        put_swaps_in_place(storage, &plan.dir, &plan.actions)?;
        let log = FileName::live(split.base_offset, FileRole::Log).format();
        return write_parts(storage, &plan.dir, &log, split, like.as_ref());
    }
    for action in &mut plan.actions {
        if let Action::Write { name, staged, in_place, .. } = action {
            match staged {
                Staged::Memory(_) if *in_place => continue,
                Staged::Memory(bytes) => {
                    write_beside(storage, &plan.dir, name, bytes, like.as_ref())?;
                }
                Staged::Beside => continue,
                Staged::Dropped => {
                    return Err(Error::new(
                        Kind::InvalidArgument,
                        "a dry run's plan cannot be carried out",
                    )
                    .in_file(&plan.dir));
                }
            }
            *staged = Staged::Beside;
        }
    }
    Ok(())
}

/// Removes what `prepare` and the analysis wrote beside, when the plan is not to be carried out.
pub fn discard(storage: &dyn Storage, plan: &Plan) -> Result<()> {
    for action in &plan.actions {
        if let Action::Write { name, staged: Staged::Beside, .. } = action {
            storage.remove_file(&beside(&plan.dir, name))?;
        }
    }
    Ok(())
}

/// Carries a prepared plan out. The new files must be durable by now; what this does is durable only after the caller has
/// made the file system so.
pub fn commit(storage: &dyn Storage, plan: &Plan) -> Result<()> {
    if plan.refusal.is_some() || plan.split.is_some() {
        return Ok(());
    }
    let dir = &plan.dir;
    remove_swaps(storage, plan)?;
    // What an interrupted compaction or split left comes first, up to the last swap that takes its final name.
    let last_rename =
        plan.actions.iter().rposition(|action| matches!(action, Action::Rename { .. }));
    let (leftovers, rest) =
        plan.actions.split_at(last_rename.map_or(0, |last| last.saturating_add(1)));
    put_swaps_in_place(storage, dir, leftovers)?;
    if let Some(cut) = &plan.cut {
        cut_log(storage, dir, cut, plan.keep_lost)?;
    }
    for action in rest {
        match action {
            Action::Remove { name, .. } => remove_if_there(storage, &dir.join(name))?,
            Action::Rename { from, to } => storage.rename(&dir.join(from), &dir.join(to))?,
            Action::Write { name, staged: Staged::Memory(bytes), in_place: true, .. } => {
                write_over(storage, plan, name, bytes)?;
            }
            Action::Write { name, .. } => take_place(storage, dir, name)?,
            Action::Shorten { name, size_bytes } => {
                shorten(storage, plan, name, *size_bytes)?;
            }
        }
    }
    Ok(())
}

/// Removes what a recovery from the start would have needed; not yet durable.
pub fn retire(storage: &dyn Storage, dir: &Path, names: &[String]) -> Result<()> {
    names.iter().try_for_each(|name| remove_if_there(storage, &dir.join(name)))
}

/// Swaps that are not complete go before the `.cleaned` files which tell that they are not.
fn remove_swaps(storage: &dyn Storage, plan: &Plan) -> Result<()> {
    // spec: segments 5, step 1
    let mut any = false;
    for action in &plan.actions {
        if let Action::Remove { name, .. } = action
            && name.ends_with(FileState::Swap.suffix())
        {
            remove_if_there(storage, &plan.dir.join(name))?;
            any = true;
        }
    }
    if any { storage.sync_dir(&plan.dir) } else { Ok(()) }
}

/// Lets what was written beside a file take its place; where that is a link, the place behind it.
fn take_place(storage: &dyn Storage, dir: &Path, name: &str) -> Result<()> {
    let (new, path) = (beside(dir, name), dir.join(name));
    let Some(target) = storage.link_target(&path)? else { return storage.rename(&new, &path) };
    // It may lie on another disk: then it is copied there first, and made durable on its own.
    let source = storage.open(&new, OpenMode::Read)?;
    let end = source.metadata()?.size_bytes;
    let home = target.parent().unwrap_or(dir);
    let name_there = target.file_name().unwrap_or_default().to_string_lossy();
    let copied = beside(home, &name_there);
    let file = storage.open(&copied, OpenMode::Create)?;
    copy(&*source, 0, end, &*file)?;
    file.set_owner(&storage.metadata(&target)?)?;
    file.sync()?;
    storage.rename(&copied, &target)?;
    storage.sync_dir(home)?;
    storage.remove_file(&new)
}

/// Writes over a small file. Where it is a link, or may not be written to, a new one takes its
/// place.
fn write_over(storage: &dyn Storage, plan: &Plan, name: &str, bytes: &[u8]) -> Result<()> {
    let path = plan.dir.join(name);
    let Ok(file) = storage.open(&path, OpenMode::Rewrite) else {
        write_beside(storage, &plan.dir, name, bytes, plan.like.as_ref())?;
        return take_place(storage, &plan.dir, name);
    };
    file.write_at(bytes, 0)?;
    file.set_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX))
}

/// Shortens a small file, links and all as above.
fn shorten(storage: &dyn Storage, plan: &Plan, name: &str, size_bytes: u64) -> Result<()> {
    let path = plan.dir.join(name);
    if let Ok(file) = storage.open(&path, OpenMode::Rewrite) {
        return file.set_size(size_bytes);
    }
    let mut front = vec![0; usize::try_from(size_bytes).unwrap_or(usize::MAX)];
    let read = storage.open(&path, OpenMode::Read)?.read_at(&mut front, 0)?;
    front.truncate(read);
    write_beside(storage, &plan.dir, name, &front, plan.like.as_ref())?;
    take_place(storage, &plan.dir, name)
}

/// What the swaps replace goes first, durably: a swap in place beside a segment that it covers could not be told apart from
/// two segments that overlap.
fn put_swaps_in_place(storage: &dyn Storage, dir: &Path, leftovers: &[Action]) -> Result<()> {
    if leftovers.is_empty() {
        return Ok(());
    }
    for action in leftovers {
        if let Action::Remove { name, .. } = action {
            remove_if_there(storage, &dir.join(name))?;
        }
    }
    storage.sync_dir(dir)?;
    for action in leftovers {
        if let Action::Rename { from, to } = action {
            storage.rename(&dir.join(from), &dir.join(to))?;
        }
    }
    storage.sync_dir(dir)
}

fn cut_log(storage: &dyn Storage, dir: &Path, cut: &Cut, keep_lost: bool) -> Result<()> {
    let keep = keep_lost && cut.survivors.any();
    if keep && let Some(segment) = cut.segment {
        keep_tail(storage, dir, segment)?;
    }
    for (base, size) in cut.later_segments.iter().rev() {
        let log = dir.join(FileName::live(*base, FileRole::Log).format());
        if keep && *size > 0 {
            keep_segment(storage, dir, *base, &log)?;
        } else {
            remove_if_there(storage, &log)?;
        }
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex] {
            remove_if_there(storage, &dir.join(FileName::live(*base, role).format()))?;
        }
    }
    if !cut.later_segments.is_empty() {
        storage.sync_dir(dir)?;
    }
    if let Some(segment) = cut.segment {
        let log = dir.join(FileName::live(segment.base_offset, FileRole::Log).format());
        let file = storage.open(&log, OpenMode::ReadWrite)?;
        file.set_size(segment.position)?;
        file.sync()?;
    }
    Ok(())
}

/// Copies the end of a log that is to be cut into a `.log.lost` file, durably.
fn keep_tail(storage: &dyn Storage, dir: &Path, segment: CutSegment) -> Result<()> {
    let log = dir.join(FileName::live(segment.base_offset, FileRole::Log).format());
    let source = storage.open(&log, OpenMode::Read)?;
    let metadata = source.metadata()?;
    let end = metadata.size_bytes;
    let name = format!("{}.lost", FileName::live(segment.base_offset, FileRole::Log));
    // Written beside first, so that a crash leaves no half of it under its name.
    let path = beside(dir, &name);
    let target = storage.open(&path, OpenMode::Create)?;
    copy(&*source, segment.position, end, &*target)?;
    storage.set_owner(&path, &metadata)?;
    target.sync()?;
    let free = match free_lost_name(storage, dir, segment.base_offset, Some(&path))? {
        Some(free) => free,
        // An earlier run has kept the very same bytes before it was killed.
        None => return storage.remove_file(&path),
    };
    storage.rename(&path, &dir.join(free))?;
    storage.sync_dir(dir)
}

/// Turns a whole log into a `.log.lost` file.
fn keep_segment(storage: &dyn Storage, dir: &Path, base_offset: i64, log: &Path) -> Result<()> {
    match storage.metadata(log) {
        Ok(_) => {}
        Err(error) if error.kind() == Kind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    match free_lost_name(storage, dir, base_offset, None)? {
        Some(free) => storage.rename(log, &dir.join(free)),
        None => Ok(()),
    }
}

/// A name for lost bytes that no file has. `None` when a file with such a name already holds the bytes of `same_as`.
fn free_lost_name(
    storage: &dyn Storage,
    dir: &Path,
    base_offset: i64,
    same_as: Option<&Path>,
) -> Result<Option<String>> {
    let stem = format!("{}.lost", FileName::live(base_offset, FileRole::Log));
    for number in 0..LOST_FILES_MAX {
        let name = if number == 0 { stem.clone() } else { format!("{stem}.{number}") };
        match storage.metadata(&dir.join(&name)) {
            Ok(_) => {
                if let Some(other) = same_as
                    && same_bytes(storage, &dir.join(&name), other)?
                {
                    return Ok(None);
                }
            }
            Err(error) if error.kind() == Kind::NotFound => return Ok(Some(name)),
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(Kind::Limit, format!("{LOST_FILES_MAX} files of lost bytes are there already"))
        .in_file(&dir.join(stem)))
}

fn same_bytes(storage: &dyn Storage, a: &Path, b: &Path) -> Result<bool> {
    const PIECE: usize = 1 << 20;
    let (a, b) = (storage.open(a, OpenMode::Read)?, storage.open(b, OpenMode::Read)?);
    let size = a.metadata()?.size_bytes;
    if size != b.metadata()?.size_bytes {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0_u8; PIECE], vec![0_u8; PIECE]);
    let mut at = 0;
    while at < size {
        let read = a.read_at(&mut left, at)?;
        if read == 0 || b.read_at(&mut right, at)? != read || left.get(..read) != right.get(..read)
        {
            return Ok(false);
        }
        at = at.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
    }
    Ok(true)
}

fn remove_if_there(storage: &dyn Storage, path: &Path) -> Result<()> {
    match storage.remove_file(path) {
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        other => other,
    }
}

/// Owner and mode for new files: those of the newest log in the directory, else of the directory itself without the right to enter.
fn owner(storage: &dyn Storage, dir: &Path) -> Result<Option<Metadata>> {
    let logs = storage.list(dir)?;
    let newest = logs.iter().rev().find(|entry| entry.name.to_string_lossy().ends_with(".log"));
    if let Some(entry) = newest {
        return storage.metadata(&dir.join(&entry.name)).map(Some);
    }
    let mut metadata = storage.metadata(dir)?;
    metadata.mode &= 0o666;
    Ok(Some(metadata))
}
