//! Which files make up the metadata log?
//!
//! ```text
//! __cluster_metadata-0/
//!   <base offset, 20 digits>.log
//!   <end offset, 20 digits>-<epoch, 10 digits>.checkpoint
//!                                   a snapshot of everything before the end offset
//! ```
//!
//! `.deleted` and `.checkpoint.part` files are leftovers; indexes and producer snapshots are of no
//! use here.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::io::{FileKind, Storage};

/// The folder of the metadata log within a log directory.
pub const METADATA_FOLDER: &str = "__cluster_metadata-0";

/// The files of a metadata log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    /// Base offsets of the segments, rising.
    pub(super) segments: Vec<i64>,
    /// The snapshots, oldest first.
    pub(super) snapshots: Vec<SnapshotId>,
}

/// What a snapshot's name says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SnapshotId {
    /// The offset behind the last record that it holds.
    pub(super) end_offset: i64,
    /// The epoch of that record.
    pub(super) epoch: i32,
}

impl SnapshotId {
    pub(super) fn file_name(self) -> String {
        format!("{:020}-{:010}.checkpoint", self.end_offset, self.epoch)
    }
}

/// The name of the segment with this base offset.
pub(super) fn segment_name(base_offset: i64) -> String {
    format!("{base_offset:020}.log")
}

/// The metadata log that lies in one of `dirs`, or is one of them; the first one wins.
#[must_use]
pub fn find_metadata(storage: &dyn Storage, dirs: &[PathBuf]) -> Option<PathBuf> {
    dirs.iter().find_map(|dir| {
        let itself = dir.file_name().is_some_and(|name| name == METADATA_FOLDER);
        let folder = if itself { dir.clone() } else { dir.join(METADATA_FOLDER) };
        let is_folder = storage.metadata(&folder).is_ok_and(|of| of.kind == FileKind::Directory);
        is_folder.then_some(folder)
    })
}

/// Lists the files of the metadata log in `folder`.
pub(super) fn list(storage: &dyn Storage, folder: &Path) -> Result<Files> {
    let mut files = Files::default();
    for entry in storage.list(folder)? {
        let Some(name) = entry.name.to_str() else { continue };
        if entry.kind != FileKind::File {
            continue;
        }
        if let Some(base) = name.strip_suffix(".log").and_then(|stem| digits(stem, 20)) {
            files.segments.push(base);
        } else if let Some(id) = name.strip_suffix(".checkpoint").and_then(snapshot_id) {
            files.snapshots.push(id);
        }
    }
    files.segments.sort_unstable();
    files.snapshots.sort_unstable();
    Ok(files)
}

fn snapshot_id(stem: &str) -> Option<SnapshotId> {
    let (end_offset, epoch) = stem.split_once('-')?;
    let epoch = i32::try_from(digits(epoch, 10)?).ok()?;
    Some(SnapshotId { end_offset: digits(end_offset, 20)?, epoch })
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let whole = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if whole { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;

    #[test]
    fn leftovers_and_strangers_are_not_part_of_the_log() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "00000000000000000005.log",
            "00000000000000000000.log",
            "00000000000000000000.log.deleted",
            "00000000000000000007-0000000002.checkpoint",
            "00000000000000000007-0000000001.checkpoint",
            "00000000000000000003-0000000001.checkpoint.deleted",
            "00000000000000000009-0000000001-42.checkpoint.part",
            "00000000000000000009-42.checkpoint",
            "99999999999999999999.log",
            "5.log",
            "bootstrap.checkpoint",
            "quorum-state",
        ] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        std::fs::create_dir(dir.path().join("00000000000000000008.log")).unwrap();
        let files = list(&Disk::new(), dir.path()).unwrap();
        assert_eq!(files.segments, [0, 5]);
        let snapshot = |end_offset, epoch| SnapshotId { end_offset, epoch };
        assert_eq!(files.snapshots, [snapshot(7, 1), snapshot(7, 2)]);
        assert_eq!(files.snapshots[1].file_name(), "00000000000000000007-0000000002.checkpoint");
        assert_eq!(segment_name(5), "00000000000000000005.log");
    }

    #[test]
    fn the_folder_is_found_in_its_parent_or_by_itself() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new();
        let parent = dir.path().join("b");
        let folder = parent.join(METADATA_FOLDER);
        assert_eq!(find_metadata(&disk, std::slice::from_ref(&parent)), None);
        std::fs::create_dir_all(&folder).unwrap();
        assert_eq!(find_metadata(&disk, &[dir.path().join("a"), parent]), Some(folder.clone()));
        assert_eq!(find_metadata(&disk, std::slice::from_ref(&folder)), Some(folder));
    }
}
