//! What is in a partition directory?
//!
//! The inventory applies the loader's rules for what an interrupted compaction, split or deletion
//! left behind: it says which files are to be removed or renamed, and gives the segments as they
//! are once that is done. It changes nothing.
//!
//! `*.deleted` and `*.cleaned` go. A `*.log.swap` is complete and replaces the segments that it
//! covers, but where a split was interrupted (a `*.cleaned` at or below it) it goes, too. Index
//! files of a swap follow their log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::io::{FileKind, Source, Storage};
use crate::log::bootstrap::{MARK_FILE, is_staged_name};
use crate::problem::{Code, Problem, Severity};
use crate::segment::active::LOG_BYTES_MAX;
use crate::segment::name::Parsed;
use crate::segment::{FileName, FileRole, FileState};

/// Name of the checkpoint of leader epochs.
pub const EPOCH_FILE: &str = "leader-epoch-checkpoint";
/// Name of the file with the topic id.
pub const METADATA_FILE: &str = "partition.metadata";

/// What is said of a name that should be a file's.
pub(crate) const NO_FILE: &str = "no plain file, or a link that leads nowhere";

/// One segment: its files by their present names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentFiles {
    /// Base offset.
    pub base_offset: i64,
    /// Present name of the log: a `.swap` that is to be renamed has its suffix still.
    pub log: String,
    /// Length of the log.
    pub log_size_bytes: u64,
    /// Present name of the offset index, if there is one.
    pub offset_index: Option<String>,
    /// Present name of the time index, if there is one.
    pub time_index: Option<String>,
    /// Present name of the transaction index, if there is one.
    pub txn_index: Option<String>,
}

impl SegmentFiles {
    /// The present name of one of its indexes.
    #[must_use]
    pub fn index(&self, role: FileRole) -> Option<&str> {
        match role {
            FileRole::OffsetIndex => self.offset_index.as_deref(),
            FileRole::TimeIndex => self.time_index.as_deref(),
            FileRole::TxnIndex => self.txn_index.as_deref(),
            FileRole::Log | FileRole::Snapshot => None,
        }
    }
}

/// What a partition directory holds.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// The directory.
    pub dir: PathBuf,
    /// Segments by base offset, after leftovers are dealt with.
    pub segments: BTreeMap<i64, SegmentFiles>,
    /// Producer snapshots by offset, after leftovers are dealt with.
    pub snapshots: BTreeSet<i64>,
    /// Whether there is a leader epoch checkpoint.
    pub has_epoch_file: bool,
    /// Whether there is a `partition.metadata`.
    pub has_metadata_file: bool,
    /// Files that the loader would remove, in order.
    pub remove: Vec<String>,
    /// Files that the loader would rename (from, to), in order.
    pub rename: Vec<(String, String)>,
    /// New files that a recovery wrote beside the old ones before it was killed.
    pub half_written: Vec<String>,
    /// What is wrong with the names, and what was left behind.
    pub problems: Vec<Problem>,
}

impl Inventory {
    /// Lists `dir` and applies the loader's rules. Swap logs are scanned for their end.
    pub fn read(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let mut found = Found::list(storage, dir)?;
        let mut inventory = Inventory { dir: dir.to_path_buf(), ..Inventory::default() };
        inventory.problems.append(&mut found.problems);
        inventory.has_epoch_file = found.others.contains(EPOCH_FILE);
        inventory.has_metadata_file = found.others.contains(METADATA_FILE);
        // What an interrupted rebuild wrote is still of use.
        let is_marked = found.others.contains(MARK_FILE);
        inventory.half_written = (found.others.iter())
            .filter(|name| is_half_written(name) && !(is_marked && is_staged_name(name)))
            .cloned()
            .collect();
        inventory.drop_leftovers(&mut found);
        inventory.apply_swaps(storage, &mut found)?;
        inventory.collect(storage, &found)?;
        Ok(inventory)
    }

    /// The base offset of the segment behind the one with this base.
    #[must_use]
    pub fn next_base(&self, base_offset: i64) -> Option<i64> {
        self.segments.range(base_offset.saturating_add(1)..).next().map(|(base, _)| *base)
    }

    /// Passes 1 of the loader: `.deleted`, `.cleaned`, and swaps of a split that did not end.
    fn drop_leftovers(&mut self, found: &mut Found) {
        // spec: segments 5, step 1
        let cleaned_from = found.by_state(FileState::Cleaned).map(|(file, _)| file.offset).min();
        let doomed: Vec<FileName> = found
            .files
            .keys()
            .filter(|file| match file.0.state {
                FileState::Deleted | FileState::Cleaned => true,
                FileState::Swap => cleaned_from.is_some_and(|from| file.0.offset >= from),
                FileState::Live => false,
            })
            .map(|file| file.0)
            .collect();
        for file in doomed {
            let name = found.take(file);
            let severity = if file.state == FileState::Deleted {
                Severity::Notice
            } else {
                Severity::Repairable
            };
            self.problem(
                Code::Leftover,
                severity,
                &name,
                "left over from an interrupted operation",
            );
            self.remove.push(name);
        }
    }

    /// Passes 2 and 3: what complete swaps cover goes, and they take their final names.
    fn apply_swaps(&mut self, storage: &dyn Storage, found: &mut Found) -> Result<()> {
        let mut covered: Option<(i64, i64)> = None;
        let logs: Vec<(FileName, String)> = found
            .by_state(FileState::Swap)
            .filter(|(file, _)| file.role == FileRole::Log)
            .map(|(file, name)| (file, name.to_owned()))
            .collect();
        for (file, name) in logs {
            let end = match read_next_offset(storage, &self.dir.join(&name), file.offset) {
                // What it replaces may be gone or not: nothing is done with any of it.
                Err(error) if error.kind() == Kind::Corrupt => {
                    self.bad_swap(&name, &error);
                    return Ok(());
                }
                other => other?,
            };
            let (from, to) = covered.unwrap_or((file.offset, end));
            covered = Some((from.min(file.offset), to.max(end)));
        }
        if let Some((from, to)) = covered {
            let replaced: Vec<FileName> = found
                .files
                .keys()
                .map(|key| key.0)
                .filter(|file| file.state == FileState::Live && (from..to).contains(&file.offset))
                .collect();
            for file in replaced {
                let name = found.take(file);
                self.remove.push(name);
            }
        }
        let swaps: Vec<FileName> = found.by_state(FileState::Swap).map(|(file, _)| file).collect();
        for file in swaps {
            let name = found.take(file);
            let target = FileName::live(file.offset, file.role);
            self.problem(
                Code::Leftover,
                Severity::Repairable,
                &name,
                "the complete output of an interrupted compaction or split",
            );
            self.rename.push((name.clone(), target.format()));
            // What it replaces goes first: the swap itself may go, too, when it has no log.
            if let Some(replaced) = found.files.insert(Key(target), name) {
                self.remove.push(replaced);
            }
        }
        Ok(())
    }

    fn bad_swap(&mut self, name: &str, error: &Error) {
        self.problems.push(Problem {
            code: Code::Leftover,
            severity: Severity::Refused,
            file: name.to_owned(),
            position: error.position(),
            offset: None,
            detail: error.message().to_owned(),
        });
    }

    /// Pass 4: segments, snapshots, and indexes without a log.
    fn collect(&mut self, storage: &dyn Storage, found: &Found) -> Result<()> {
        for (file, name) in found.by_state(FileState::Live) {
            match file.role {
                FileRole::Log => {
                    let metadata = match storage.metadata(&self.dir.join(name)) {
                        // Somebody removed it since the directory was listed.
                        Err(error) if error.kind() == Kind::NotFound => continue,
                        other => other?,
                    };
                    if metadata.size_bytes > LOG_BYTES_MAX {
                        let size = metadata.size_bytes;
                        let detail = format!("a log of {size} bytes, at most {LOG_BYTES_MAX} fit");
                        self.problem(Code::BadLength, Severity::Corrupt, name, &detail);
                    }
                    let segment = self.segments.entry(file.offset).or_default();
                    segment.base_offset = file.offset;
                    segment.log = name.to_owned();
                    segment.log_size_bytes = metadata.size_bytes;
                }
                FileRole::Snapshot => {
                    self.snapshots.insert(file.offset);
                }
                FileRole::OffsetIndex | FileRole::TimeIndex | FileRole::TxnIndex => {}
            }
        }
        for (file, name) in found.by_state(FileState::Live) {
            if matches!(file.role, FileRole::Log | FileRole::Snapshot) {
                continue;
            }
            let Some(segment) = self.segments.get_mut(&file.offset) else {
                self.problem(
                    Code::OrphanIndex,
                    Severity::Repairable,
                    name,
                    "an index file without its log file",
                );
                // A swap without a log goes as it is, under the name that it has.
                self.rename.retain(|(from, _)| from != name);
                self.remove.push(name.to_owned());
                continue;
            };
            let slot = match file.role {
                FileRole::OffsetIndex => &mut segment.offset_index,
                FileRole::TimeIndex => &mut segment.time_index,
                _ => &mut segment.txn_index,
            };
            *slot = Some(name.to_owned());
        }
        Ok(())
    }

    fn problem(&mut self, code: Code, severity: Severity, file: &str, detail: &str) {
        self.problems.push(Problem {
            code,
            severity,
            file: file.to_owned(),
            position: None,
            offset: None,
            detail: detail.to_owned(),
        });
    }
}

/// A file name in the order of segments: by offset, then role, then state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(FileName);

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |file: &FileName| (file.offset, file.role, file.state);
        key(&self.0).cmp(&key(&other.0))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The names of a directory.
struct Found {
    files: BTreeMap<Key, String>,
    others: BTreeSet<String>,
    problems: Vec<Problem>,
}

impl Found {
    fn list(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let mut found =
            Found { files: BTreeMap::new(), others: BTreeSet::new(), problems: Vec::new() };
        for entry in storage.list(dir)? {
            let name = entry.name.to_string_lossy().into_owned();
            found.add(name, entry.kind);
        }
        found.tell_other_spellings();
        Ok(found)
    }

    /// A name such as `5.log`: Kafka takes its offset, and then opens the file that it would have
    /// named so.
    fn tell_other_spellings(&mut self) {
        let stays = |state| matches!(state, FileState::Live | FileState::Swap);
        for (Key(file), name) in &self.files {
            if stays(file.state) && *name != file.format() {
                self.problems.push(Problem {
                    code: Code::BadName,
                    severity: Severity::Corrupt,
                    file: name.clone(),
                    position: None,
                    offset: Some(file.offset),
                    detail: format!("Kafka would open {} in its place", file.format()),
                });
            }
        }
    }

    fn add(&mut self, name: String, kind: FileKind) {
        let mut problem = |code, severity, detail: &str, file: &str| {
            self.problems.push(Problem {
                code,
                severity,
                file: file.to_owned(),
                position: None,
                offset: None,
                detail: detail.to_owned(),
            });
        };
        let is_file = kind == FileKind::File;
        match FileName::parse(&name) {
            // A folder in the way of a file, which could not be written, either.
            Parsed::Segment(_) if !is_file => {
                problem(Code::Unreadable, Severity::Refused, NO_FILE, &name);
            }
            Parsed::Other if !is_file && [EPOCH_FILE, METADATA_FILE].contains(&&*name) => {
                problem(Code::Unreadable, Severity::Refused, NO_FILE, &name);
            }
            _ if kind == FileKind::Directory => {}
            Parsed::Segment(file) => match self.files.entry(Key(file)) {
                std::collections::btree_map::Entry::Vacant(slot) => {
                    slot.insert(name);
                }
                std::collections::btree_map::Entry::Occupied(mut slot) => {
                    problem(
                        Code::DuplicateBase,
                        Severity::Corrupt,
                        &format!("{} has the same offset", slot.get()),
                        &name,
                    );
                    // The one that Kafka would name so is the segment's.
                    if name == file.format() {
                        slot.insert(name);
                    }
                }
            },
            Parsed::Bad => {
                problem(
                    Code::BadName,
                    Severity::Corrupt,
                    "the name has the suffix of a segment's file but no offset; Kafka would not start",
                    &name,
                );
            }
            Parsed::Other => {
                if is_lost(&name) {
                    problem(
                        Code::Lost,
                        Severity::Notice,
                        "bytes that an earlier recovery cut and kept",
                        &name,
                    );
                } else if name == MARK_FILE {
                    problem(
                        Code::InterruptedRebuild,
                        Severity::Repairable,
                        "a rebuild from remote storage was interrupted; recovery ends it",
                        &name,
                    );
                } else if !is_known(&name) {
                    problem(
                        Code::UnknownFile,
                        Severity::Notice,
                        "none of Kafka's files; left alone",
                        &name,
                    );
                }
                self.others.insert(name);
            }
        }
    }

    fn by_state(&self, state: FileState) -> impl Iterator<Item = (FileName, &str)> {
        self.files
            .iter()
            .filter(move |(key, _)| key.0.state == state)
            .map(|(key, name)| (key.0, name.as_str()))
    }

    fn take(&mut self, file: FileName) -> String {
        self.files.remove(&Key(file)).unwrap_or_else(|| file.format())
    }
}

/// Whether a file keeps what an earlier recovery cut.
fn is_lost(name: &str) -> bool {
    name.split_once(".log.lost").is_some_and(|(front, back)| {
        front.bytes().all(|byte| byte.is_ascii_digit())
            && back.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit())
    })
}

/// Whether a file is one that recovery writes beside the one it will replace.
fn is_half_written(name: &str) -> bool {
    let Some(target) = name.strip_suffix(".tmp") else { return false };
    target == EPOCH_FILE
        || is_staged_name(name)
        || is_lost(target)
        || matches!(FileName::parse(target), Parsed::Segment(file) if file.state == FileState::Live)
}

/// Names in a partition directory that belong to Kafka or to us, beside those of segments.
fn is_known(name: &str) -> bool {
    name == EPOCH_FILE
        || name == METADATA_FILE
        || name == "quorum-state"
        || name.ends_with(".tmp")
        || name.ends_with(".checkpoint")
        || name.ends_with(".checkpoint.part")
        || name.ends_with(".checkpoint.deleted")
}

/// The offset behind the last whole batch of a log file; its base when there is none.
fn read_next_offset(storage: &dyn Storage, path: &Path, base_offset: i64) -> Result<i64> {
    let file = storage.open(path, crate::io::OpenMode::Read)?;
    let size = file.metadata()?.size_bytes;
    let mut source = crate::io::WindowReader::new(&*file, size, 1 << 18);
    let mut next = base_offset;
    let mut visitor = |batch: crate::record::scan::ScannedBatch<'_>| {
        next = batch.header.next_offset();
        Ok(std::ops::ControlFlow::Continue(()))
    };
    let end = crate::record::scan::scan(&mut source, 0, u64::MAX, &mut visitor)?;
    if end.position < source.end() {
        return Err(Error::corrupt(
            "the output of a compaction or split does not end with a whole batch",
        )
        .in_file(path)
        .at_position(end.position));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::SimDisk;

    #[test]
    fn an_index_swap_without_a_log_goes_and_is_not_renamed_first() {
        // It was to be removed under its present name and then renamed, which failed.
        let disk = SimDisk::new();
        let dir = Path::new("/orders-0");
        disk.put_dir(dir, None).unwrap();
        let name = "00000000000000000000.index.swap";
        disk.put(&dir.join(name), Vec::new(), None).unwrap();
        let inventory = Inventory::read(&disk, dir).unwrap();
        assert_eq!(inventory.remove, [name]);
        assert!(inventory.rename.is_empty());
        // The live index beside it was forgotten, and found without a log by the next recovery.
        let live = "00000000000000000000.index";
        disk.put(&dir.join(live), Vec::new(), None).unwrap();
        let inventory = Inventory::read(&disk, dir).unwrap();
        assert_eq!(inventory.remove, [live, name]);
        assert!(inventory.rename.is_empty());
    }

    #[test]
    fn a_name_that_kafka_would_spell_otherwise_is_refused() {
        // The cut and the indexes were written to the name as Kafka spells it, which was not there.
        let disk = SimDisk::new();
        let dir = Path::new("/orders-0");
        disk.put_dir(dir, None).unwrap();
        disk.put(&dir.join("5.log"), Vec::new(), None).unwrap();
        disk.put(&dir.join("5.snapshot.deleted"), Vec::new(), None).unwrap();
        let inventory = Inventory::read(&disk, dir).unwrap();
        let told: Vec<_> = inventory.problems.iter().map(|p| (p.code, &*p.file)).collect();
        assert_eq!(told, [(Code::BadName, "5.log"), (Code::Leftover, "5.snapshot.deleted")]);
    }
}
