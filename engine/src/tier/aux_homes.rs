//! What do the log directories around rebuilt partitions have to say afterwards?
//!
//! Before the first partition of a directory changes, its marker of a clean stop goes; it comes
//! back last, with the broker epoch that tells the controller of an unclean stop, if every
//! partition was rebuilt as it was to be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dir::files::{
    CLEAN_SHUTDOWN_FILE, LOG_START_FILE, RECOVERY_POINT_FILE, REPLICATION_FILE, read_offsets,
};
use crate::dir::recover::checkpoints::{
    Checkpoints, owner_of_dir, remove_marker, replace, replace_by,
};
use crate::dir::recover::group::Member;
use crate::dir::recover::rebuilds::settle_rebuilds;
use crate::error::{Kind, Result};
use crate::io::Storage;
use crate::log::FolderName;
use crate::log::bootstrap::MARK_FILE;
use crate::state::meta::format_clean_shutdown;

/// A partition's directory, where its log starts, and where it goes on.
pub(super) type Line = (PathBuf, i64, i64);

/// The log directories of a bulk rebuild.
pub(super) struct Homes<'a> {
    storage: &'a dyn Storage,
    /// Whether each had its marker, and has it no more.
    marked: BTreeMap<PathBuf, bool>,
}

impl<'a> Homes<'a> {
    pub(super) fn new(storage: &'a dyn Storage) -> Self {
        Homes { storage, marked: BTreeMap::new() }
    }

    /// Removes the marker before a first partition changes.
    pub(super) fn open(&mut self, home: &Path) -> Result<()> {
        if self.marked.contains_key(home) {
            return Ok(());
        }
        let is_marked = match self.storage.metadata(&home.join(CLEAN_SHUTDOWN_FILE)) {
            Ok(_) => true,
            Err(error) if error.kind() == Kind::NotFound => false,
            Err(error) => return Err(error),
        };
        if is_marked {
            remove_marker(self.storage, home)?;
        }
        self.marked.insert(home.to_path_buf(), is_marked);
        Ok(())
    }

    /// Settles the rebuilds of partitions that were interrupted in an earlier call, with the lines
    /// of the checkpoints. One that cannot be settled keeps its mark, which has it refused.
    pub(super) fn settle(&mut self, home: &Path, dirs: &[&Path]) -> Result<()> {
        let is_marked = |dir: &&&Path| self.storage.metadata(&dir.join(MARK_FILE)).is_ok();
        let members: Vec<Member> = (dirs.iter().filter(is_marked))
            .map(|dir| {
                let key = FolderName::of_dir(dir).map(|folder| (folder.topic, folder.partition));
                Member { dir: dir.to_path_buf(), key }
            })
            .collect();
        if members.is_empty() {
            return Ok(());
        }
        self.open(home)?;
        let mut checkpoints = Checkpoints {
            recovery_points: read_offsets(self.storage, home, RECOVERY_POINT_FILE)?,
            log_starts: read_offsets(self.storage, home, LOG_START_FILE)?,
            marker: None,
        };
        settle_rebuilds(self.storage, home, &members, &mut checkpoints)?;
        if members.iter().any(|member| is_marked(&&&*member.dir)) {
            self.has_failed(home);
        }
        Ok(())
    }

    /// Writes what the checkpoints say of rebuilt partitions, durably.
    ///
    /// Of logs that are open only what an opening after a crash must not lack: with an old line a
    /// log would start where it did before, and one that lies behind its end would empty it. The
    /// host that has them open may write the same files at any time, also between what is read and
    /// written here: what it wrote of others is then as old as after a crash, until it writes
    /// again.
    pub(super) fn write_lines(&self, home: &Path, lines: &[Line], are_open: bool) -> Result<()> {
        // A directory of another name is none of Kafka's, and has no line.
        let named = lines.iter().filter_map(|line| Some((FolderName::of_dir(&line.0)?, line)));
        let named: Vec<(FolderName, &Line)> = named.collect();
        if named.is_empty() {
            return Ok(());
        }
        let like = owner_of_dir(self.storage, home)?;
        // The high watermark comes last: it alone is no proof of anything.
        let files = [LOG_START_FILE, RECOVERY_POINT_FILE, REPLICATION_FILE];
        for name in files.into_iter().filter(|name| !are_open || *name != REPLICATION_FILE) {
            // One that cannot be understood is not written over: it has the lines of others.
            let mut checkpoint = read_offsets(self.storage, home, name)?;
            for (folder, (_, log_start_offset, next_offset)) in &named {
                let offset = if name == LOG_START_FILE { *log_start_offset } else { *next_offset };
                checkpoint.set(&folder.topic, folder.partition, offset);
            }
            // The host has the usual temporary name for itself.
            let beside = if are_open { format!("{name}.aux.tmp") } else { format!("{name}.tmp") };
            replace_by(self.storage, home, (name, &beside), &checkpoint.format(), &like)?;
        }
        Ok(())
    }

    /// Says that a partition of this directory may be half rebuilt.
    pub(super) fn has_failed(&mut self, home: &Path) {
        if let Some(is_marked) = self.marked.get_mut(home) {
            *is_marked = false;
        }
    }

    /// Puts the markers back. Without one Kafka recovers the directory, which does no harm: so one
    /// that cannot be written is no error of any partition.
    pub(super) fn close(self) {
        for (home, _) in self.marked.iter().filter(|(_, is_marked)| **is_marked) {
            let _ = self.mark(home);
        }
    }

    fn mark(&self, home: &Path) -> Result<()> {
        let like = owner_of_dir(self.storage, home)?;
        replace(self.storage, home, CLEAN_SHUTDOWN_FILE, &format_clean_shutdown(-1), &like)
    }
}
