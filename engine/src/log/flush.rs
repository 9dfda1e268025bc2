//! How does a log become durable?
//!
//! In three steps, so that many logs can be made durable at once and nobody waits meanwhile:
//! [`prepare_flush`](Log::prepare_flush) says which files, the host syncs them,
//! [`complete_flush`](Log::complete_flush) takes note. Records come first, then the snapshots that
//! speak of them, then the directory; the recovery point moves last.
//!
//! Indexes are synced when the recovery point leaves their segment behind, and only if they have
//! changed: after a crash those of the segment that holds the recovery point are made anew, while
//! earlier ones are trusted. So what is written down as the recovery point stays within a segment
//! until its indexes are durable: [`recovery_point_to_save`](Log::recovery_point_to_save).

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
    /// The segments whose indexes are among them, and how often these had changed.
    indexes: Vec<(Arc<LogSegment>, u32)>,
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
    /// Makes the log durable up to its end, with all files of the active segment if
    /// `with_active`: the indexes, and those of an empty one, too.
    ///
    /// # Errors
    /// A sync that failed: the log takes no more writes until it is opened again. Other errors
    /// leave it as it was.
    pub fn flush(&self, with_active: bool, now_ms: i64) -> Result<()> {
        let end = self.log_end_offset();
        self.flush_to(end, with_active, now_ms)
    }

    /// Makes the log durable up to `end_offset`, exclusive; if `inclusive`, all files of the
    /// segment that ends or begins there, too. The same errors as [`flush`](Self::flush).
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

    /// Says what is to be synced to make the log durable up to `end_offset`, or its end where that
    /// comes first; `None` when it is. Index entries that gathered in memory are written now.
    ///
    /// # Errors
    /// What writing or opening files fails with; nothing is lost by trying again.
    pub fn prepare_flush(&self, end_offset: i64, inclusive: bool) -> Result<Option<FlushWork>> {
        if self.is_failed() {
            return Err(self.failed());
        }
        let (flushed, truncations, snapshots, end_offset) = {
            let durable = self.durable();
            // A cut lowers the end under the same lock. What is to come behind it is not durable
            // because somebody had a longer log in mind.
            let end_offset = end_offset.min(self.log_end_offset());
            let snapshots = durable.snapshots.clone();
            (durable.flushed_end_offset, durable.truncations, snapshots, end_offset)
        };
        // spec: segments 6.6
        let flush_end = if inclusive { end_offset.saturating_add(1) } else { end_offset };
        self.save_epochs()?;
        let segments = self.segments();
        if flush_end <= flushed {
            return Ok(None);
        }
        let mut work = FlushWork {
            files: Vec::new(),
            indexes: Vec::new(),
            snapshots: Vec::new(),
            sync_dir: false,
            end_offset,
            truncations,
        };
        for segment in segments.values(flushed, flush_end)? {
            let next_base = segments.higher(segment.base_offset()).map(|next| next.base_offset());
            let is_left_behind = next_base.is_some_and(|next| next <= end_offset);
            work.sync_dir |= segment.base_offset() >= flushed;
            match self.segment_files(segment, is_left_behind || inclusive, &mut work) {
                // Deleted meanwhile, or replaced by a segment that is durable.
                Err(error) if error.kind() == Kind::NotFound => {
                    self.wait_for_list();
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

    /// Adds the files of a segment: its log, and its indexes if they are not durable.
    fn segment_files(
        &self,
        segment: &Arc<LogSegment>,
        with_indexes: bool,
        work: &mut FlushWork,
    ) -> Result<()> {
        // spec: segments 9.9. A flush makes the indexes of a segment that has none yet.
        let settings = self.config.load().segment();
        ActiveSegment::touch_of(segment, &self.folder, &settings)?;
        work.files.push(Arc::clone(segment.handles(&self.folder)?.log()));
        if with_indexes && !segment.are_indexes_durable() {
            // What changes from here on is not known to be among what is synced.
            let changes = segment.index_changes();
            self.index_files(segment, &mut work.files)?;
            work.indexes.push((Arc::clone(segment), changes));
            work.sync_dir = true;
        }
        Ok(())
    }

    /// Adds the indexes of a segment, with all entries in them.
    pub(super) fn index_files(
        &self,
        segment: &Arc<LogSegment>,
        files: &mut Vec<Arc<dyn File>>,
    ) -> Result<()> {
        let settings = self.config.load().segment();
        ActiveSegment::write_out_indexes(segment, &self.folder, &settings)?;
        let handles = segment.handles(&self.folder)?;
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex] {
            files.extend(handles.index(segment, &self.folder, role)?.map(Arc::clone));
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
        for (segment, changes) in &work.indexes {
            segment.indexes_synced(*changes);
        }
        let mut durable = self.durable();
        if durable.truncations == work.truncations {
            // A roll that came between, perhaps not the last one: its segment is left behind with
            // indexes that are not among what was synced.
            let segments = self.segments.load();
            let is_base =
                durable.newest_base == work.end_offset || segments.get(work.end_offset).is_some();
            let is_left = is_base && has_dirty_indexes(segments.lower(work.end_offset));
            let end = if is_left { work.end_offset.saturating_sub(1) } else { work.end_offset };
            durable.flushed_end_offset = durable.flushed_end_offset.max(end);
            durable.last_flush_ms = now_ms;
            let synced: BTreeSet<i64> = work.snapshots.iter().map(|(offset, _)| *offset).collect();
            durable.snapshots.retain(|offset| !synced.contains(offset));
        }
        Ok(())
    }

    /// A segment is to begin at `base_offset` behind this one, whose indexes may not be durable:
    /// then the recovery point stays within it until a flush has synced them. Nothing is synced
    /// here, where everybody who appends waits.
    pub(super) fn leave_behind(&self, segment: &LogSegment, base_offset: i64) {
        let mut durable = self.durable();
        durable.newest_base = base_offset;
        if !segment.are_indexes_durable() {
            let within = base_offset.saturating_sub(1);
            durable.flushed_end_offset = durable.flushed_end_offset.min(within);
        }
    }

    /// The offset for `recovery-point-offset-checkpoint`: the recovery point, or the offset before
    /// it as long as the indexes of the segment that ends there are not durable. A start after a
    /// crash makes the indexes of the segment that holds it anew, and trusts those before.
    #[must_use]
    pub fn recovery_point_to_save(&self) -> i64 {
        let point = self.recovery_point();
        let segments = self.segments.load();
        let is_left = segments.lower(point).is_some_and(|last| {
            let next = segments.higher(last.base_offset()).map(|next| next.base_offset());
            next.unwrap_or(self.log_end_offset()) <= point && !last.are_indexes_durable()
        });
        if is_left { point.saturating_sub(1).max(self.log_start_offset()) } else { point }
    }

    /// A sync that fails ends the writing: see [`complete_flush`](Self::complete_flush).
    pub(super) fn synced(&self, outcome: Result<()>) -> Result<()> {
        outcome.inspect_err(|_| self.is_failed.store(true, Ordering::Release))
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

fn has_dirty_indexes(segment: Option<&Arc<LogSegment>>) -> bool {
    segment.is_some_and(|segment| !segment.are_indexes_durable())
}
