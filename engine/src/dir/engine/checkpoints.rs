//! What do the checkpoints of a log directory say, and when are they written?
//!
//! | file | a line for |
//! |---|---|
//! | `recovery-point-offset-checkpoint` | every log, future ones too |
//! | `log-start-offset-checkpoint` | those with remote storage, and those that start behind their first segment's base |
//! | `replication-offset-checkpoint` | every log: its high watermark |
//! | `cleaner-offset-checkpoint` | those that were compacted, but future ones: up to where |
//!
//! The last one is written when it says something else than before, and at once: what it takes for
//! compacted is not looked at again.
//!
//! A log that is there and could not be opened keeps its lines.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::directory::Lines;
use super::engine::Engine;
use super::partitions::{Entry, NO_LINE};
use crate::dir::files::{CLEANER_FILE, LOG_START_FILE, RECOVERY_POINT_FILE, REPLICATION_FILE};
use crate::error::{Kind, Result};
use crate::log::replace::replace;
use crate::state::OffsetCheckpoint;

/// A checkpoint of a log directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckpointFile {
    /// Up to where logs are durable.
    RecoveryPoints,
    /// Where logs start.
    LogStarts,
    /// Up to where logs are replicated.
    HighWatermarks,
    /// Up to where logs are compacted.
    CompactedEnds,
}

impl CheckpointFile {
    /// All of them, in the order in which they are written.
    pub const ALL: [CheckpointFile; 4] = [
        CheckpointFile::RecoveryPoints,
        CheckpointFile::LogStarts,
        CheckpointFile::HighWatermarks,
        CheckpointFile::CompactedEnds,
    ];

    /// The file's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            CheckpointFile::RecoveryPoints => RECOVERY_POINT_FILE,
            CheckpointFile::LogStarts => LOG_START_FILE,
            CheckpointFile::HighWatermarks => REPLICATION_FILE,
            CheckpointFile::CompactedEnds => CLEANER_FILE,
        }
    }

    /// What it says of an open log.
    fn line(self, entry: &Entry) -> Option<i64> {
        let log = &entry.log;
        match self {
            CheckpointFile::RecoveryPoints => Some(log.recovery_point_to_save()),
            CheckpointFile::HighWatermarks => Some(log.high_watermark()),
            CheckpointFile::LogStarts => {
                // spec: segments 6.3
                let start = log.log_start_offset();
                let base = log.segments().first().map(|segment| segment.base_offset());
                let is_beyond = base.is_some_and(|base| start > base);
                (log.config().remote_storage || is_beyond).then_some(start)
            }
            CheckpointFile::CompactedEnds if entry.is_future => None,
            CheckpointFile::CompactedEnds => log.compacted_end_offset(),
        }
    }
}

impl Lines {
    fn of(&self, file: CheckpointFile) -> &OffsetCheckpoint {
        match file {
            CheckpointFile::RecoveryPoints => &self.recovery_points,
            CheckpointFile::LogStarts => &self.log_starts,
            CheckpointFile::HighWatermarks => &self.high_watermarks,
            CheckpointFile::CompactedEnds => &self.compacted_ends,
        }
    }
}

impl Engine {
    /// Writes a checkpoint of all directories that are online, durably.
    ///
    /// # Errors
    /// The first that could not be written; the others were.
    pub fn checkpoint(&self, file: CheckpointFile) -> Result<()> {
        let mut outcome = Ok(());
        for number in 0..self.dirs.len() {
            if self.dirs.get(number).is_some_and(|dir| !dir.is_offline()) {
                outcome = outcome.and(self.checkpoint_dir(number, file));
            }
        }
        outcome
    }

    /// Writes a checkpoint of one directory; a disk that fails takes it offline.
    pub(super) fn checkpoint_dir(&self, number: usize, file: CheckpointFile) -> Result<()> {
        let outcome = self.write_checkpoint(number, file);
        outcome.map_err(|error| {
            // The directory itself may be gone.
            if error.kind() == Kind::NotFound {
                self.fail_dir(number, &error);
            }
            self.judge(number, error)
        })
    }

    fn write_checkpoint(&self, number: usize, file: CheckpointFile) -> Result<()> {
        let dir = self.dir(number)?;
        dir.check()?;
        // Held while the file is written: there is one temporary name.
        let books = dir.books();
        let mut lines = books.kept.of(file).clone();
        let entries: Vec<Arc<Entry>> =
            self.read().entries().filter(|entry| entry.dir == number).cloned().collect();
        let offsets: Vec<Option<i64>> = entries.iter().map(|entry| file.line(entry)).collect();
        if file == CheckpointFile::CompactedEnds && !books.is_stale {
            let mut all = entries.iter().zip(&offsets);
            if all.all(|(entry, offset)| entry.is_saved(*offset)) {
                return Ok(());
            }
        }
        for (entry, offset) in entries.iter().zip(&offsets) {
            if let Some(offset) = offset {
                lines.set(&entry.topic, entry.partition, *offset);
            }
        }
        replace(&*self.storage, &dir.path, file.name(), &lines.format())?;
        if file == CheckpointFile::CompactedEnds {
            for (entry, offset) in entries.iter().zip(offsets) {
                entry.compacted_saved.store(offset.unwrap_or(NO_LINE), Ordering::Release);
            }
        }
        Ok(())
    }

    /// Writes all checkpoints of a directory anew if they have lines of logs that are gone.
    pub(super) fn freshen(&self, number: usize) -> Result<()> {
        let dir = self.dir(number)?;
        if dir.is_offline() || !dir.books().is_stale {
            return Ok(());
        }
        for file in CheckpointFile::ALL {
            self.checkpoint_dir(number, file)?;
        }
        dir.books().is_stale = false;
        Ok(())
    }

    /// Takes note that a log has left a directory.
    pub(super) fn forget_lines(&self, number: usize, topic: &str, partition: i32) {
        let Some(dir) = self.dirs.get(number) else { return };
        let mut books = dir.books();
        books.is_stale = true;
        for lines in books.kept.all_mut() {
            if lines.get(topic, partition).is_some() {
                lines.retain(|line| &*line.topic != topic || line.partition != partition);
            }
        }
    }
}
