//! How does a log become durable?
//!
//! In three steps, so that many logs can be made durable at once and nobody waits meanwhile:
//! [`prepare_flush`](Log::prepare_flush) says which files, the host syncs them,
//! [`complete_flush`](Log::complete_flush) takes note. Records come first, then the snapshots that
//! speak of them, then the directory; the recovery point moves last.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::log::Log;
use crate::error::{Kind, Result};
use crate::io::{File, OpenMode};
use crate::segment::active::ActiveSegment;
use crate::segment::{FileRole, LogSegment};

/// Files to be synced before a log is durable up to an offset.
#[derive(Debug)]
pub struct FlushWork {
    /// Records and their indexes.
    files: Vec<Arc<dyn File>>,
    /// Snapshots, to be synced after the records.
    snapshots: Vec<(i64, Option<Arc<dyn File>>)>,
    sync_dir: bool,
    end_offset: i64,
    truncations: u64,
}

impl FlushWork {
    /// The files to be synced first.
    #[must_use]
    pub fn files(&self) -> Vec<&dyn File> {
        self.files.iter().map(|file| &**file).collect()
    }

    /// The files to be synced when the first are.
    #[must_use]
    pub fn snapshots(&self) -> Vec<&dyn File> {
        self.snapshots.iter().filter_map(|(_, file)| file.as_deref()).collect()
    }

    /// Lets go of the files, for a host that syncs the file system as a whole.
    pub fn let_go(&mut self) {
        self.files.clear();
        self.snapshots.iter_mut().for_each(|(_, file)| *file = None);
    }

    /// Whether the directory is to be synced, too.
    #[must_use]
    pub fn syncs_dir(&self) -> bool {
        self.sync_dir
    }
}

impl Log {
    /// Makes the log durable up to its end, the files of an empty active segment too if
    /// `with_active`.
    ///
    /// # Errors
    /// A sync that failed: the log takes no more writes until it is opened again. Other errors
    /// leave it as it was.
    pub fn flush(&self, with_active: bool, now_ms: i64) -> Result<()> {
        let end = self.log_end_offset();
        self.flush_to(end, with_active, now_ms)
    }

    /// Makes the log durable up to `end_offset`, exclusive, or with the segment that begins there
    /// if `inclusive`. The same errors as [`flush`](Self::flush).
    pub fn flush_to(&self, end_offset: i64, inclusive: bool, now_ms: i64) -> Result<()> {
        let Some(work) = self.prepare_flush(end_offset, inclusive)? else { return Ok(()) };
        let outcome = self.sync(&work);
        self.complete_flush(&work, outcome, now_ms)
    }

    /// Syncs what a flush has to, in its order; [`complete_flush`](Self::complete_flush) is told
    /// how it went.
    ///
    /// # Errors
    /// The first sync that failed.
    pub fn sync(&self, work: &FlushWork) -> Result<()> {
        let storage = self.folder.storage();
        storage.sync_files(&work.files()).into_iter().collect::<Result<()>>()?;
        storage.sync_files(&work.snapshots()).into_iter().collect::<Result<()>>()?;
        if work.sync_dir { self.sync_folder() } else { Ok(()) }
    }

    /// Makes the names in the directory durable.
    ///
    /// # Errors
    /// What the disk says; that the directory is gone is none.
    pub fn sync_folder(&self) -> Result<()> {
        match self.folder.storage().sync_dir(&self.dir()) {
            // spec: segments 4.4. The directory may be on its way out.
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Says what is to be synced to make the log durable up to `end_offset`; `None` when it is.
    /// Index entries that gathered in memory are written now.
    ///
    /// # Errors
    /// What writing or opening files fails with; nothing is lost by trying again.
    pub fn prepare_flush(&self, end_offset: i64, inclusive: bool) -> Result<Option<FlushWork>> {
        if self.is_failed() {
            return Err(self.failed());
        }
        // spec: segments 6.6
        let flush_end = if inclusive { end_offset.saturating_add(1) } else { end_offset };
        let (from, truncations, snapshots) = {
            let durable = self.durable();
            (durable.flushed_end_offset, durable.truncations, durable.snapshots.clone())
        };
        self.save_epochs()?;
        if flush_end <= from {
            return Ok(None);
        }
        let mut work = FlushWork {
            files: Vec::new(),
            snapshots: Vec::new(),
            sync_dir: false,
            end_offset,
            truncations,
        };
        let segments = self.segments();
        for segment in segments.values(from, flush_end)? {
            work.sync_dir |= segment.base_offset() >= from;
            match self.segment_files(segment, &mut work.files) {
                // Deleted meanwhile, or replaced by a segment that is durable.
                Err(error) if error.kind() == Kind::NotFound => {
                    let now = self.segments.load();
                    if now.get(segment.base_offset()).is_some_and(|now| Arc::ptr_eq(now, segment)) {
                        return Err(error);
                    }
                }
                other => other?,
            }
        }
        for offset in snapshots.into_iter().filter(|offset| *offset <= end_offset) {
            let path = self.folder.file(offset, FileRole::Snapshot);
            match self.folder.storage().open(&path, OpenMode::ReadWrite) {
                Ok(file) => work.snapshots.push((offset, Some(file.into()))),
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(work))
    }

    /// The files of a segment, with all index entries in them.
    pub(super) fn segment_files(
        &self,
        segment: &Arc<LogSegment>,
        files: &mut Vec<Arc<dyn File>>,
    ) -> Result<()> {
        let handles = segment.handles(&self.folder)?;
        let settings = self.config.load().segment();
        ActiveSegment::write_out_indexes(segment, &handles, &self.folder, &settings)?;
        files.push(Arc::clone(handles.log()));
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex] {
            files.extend(handles.index(segment, &self.folder, role)?);
        }
        Ok(())
    }

    /// Takes note of how the syncs of a flush went.
    ///
    /// # Errors
    /// That of the syncs: from now on the log takes no more writes.
    pub fn complete_flush(&self, work: &FlushWork, outcome: Result<()>, now_ms: i64) -> Result<()> {
        if let Err(error) = outcome {
            // Linux drops what it could not write: nobody knows any more what is on the disk.
            self.is_failed.store(true, Ordering::Release);
            return Err(error.context("the log takes no more writes until it is opened again"));
        }
        let mut durable = self.durable();
        if durable.truncations == work.truncations {
            durable.flushed_end_offset = durable.flushed_end_offset.max(work.end_offset);
            durable.last_flush_ms = now_ms;
            let synced: BTreeSet<i64> = work.snapshots.iter().map(|(offset, _)| *offset).collect();
            durable.snapshots.retain(|offset| !synced.contains(offset));
        }
        Ok(())
    }

    /// When the log is to be flushed by `flush.ms`, in milliseconds since 1970; `None` when there
    /// is nothing to flush, or no such time is set.
    #[must_use]
    pub fn next_flush_ms(&self) -> Option<i64> {
        let flush_ms = self.config.load().flush_ms;
        let durable = self.durable();
        let is_due = flush_ms < i64::MAX && durable.flushed_end_offset < self.log_end_offset();
        is_due.then(|| durable.last_flush_ms.saturating_add(flush_ms))
    }
}
