//! Which files are to be deleted, and when?
//!
//! What leaves a log is renamed at once and unlinked after a delay, when the host says so: a reader
//! that has just looked it up still finds it open.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use super::log::Log;
use super::segments::Segments;
use crate::error::{Kind, Result};
use crate::segment::{FileName, FileRole, FileState, LogSegment};
use crate::sync::{Mutex, MutexGuard};

/// Files that wait for their deletion.
#[derive(Debug, Default)]
pub(super) struct Deletions(Mutex<VecDeque<Deletion>>);

#[derive(Clone, Debug)]
struct Deletion {
    due_ms: i64,
    /// Names of files in the directory.
    names: Vec<String>,
}

impl Deletions {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Deletion>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of a segment as they are given up. The log comes last: as long as it has its name, the
/// segment is whole, if slower to search.
// spec: segments 4.6
const SEGMENT_ROLES: [FileRole; 4] =
    [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex, FileRole::Log];

/// Those that are made anew from the log.
const INDEX_ROLES: [FileRole; 3] = [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex];

impl Log {
    /// When the next files are to be deleted, in milliseconds since 1970; `None` when none wait.
    #[must_use]
    pub fn next_deletion_ms(&self) -> Option<i64> {
        self.deletions.lock().iter().map(|deletion| deletion.due_ms).min()
    }

    /// Deletes the files that are due, and says how many. To be called by the host, from any
    /// thread; what cannot be deleted stays due.
    ///
    /// # Errors
    /// The first file that could not be deleted; the others were.
    pub fn delete_due_files(&self, now_ms: i64) -> Result<usize> {
        let due: VecDeque<Deletion> = {
            let mut waiting = self.deletions.lock();
            let (due, later) = waiting.drain(..).partition(|deletion| deletion.due_ms <= now_ms);
            *waiting = later;
            due
        };
        let mut deleted = 0;
        let mut outcome = Ok(());
        for deletion in due {
            let mut kept = Vec::new();
            for name in deletion.names {
                match self.folder.storage().remove_file(&self.dir().join(&name)) {
                    Ok(()) => deleted += 1,
                    Err(error) if error.kind() == Kind::NotFound => {}
                    Err(error) => {
                        kept.push(name);
                        outcome = outcome.and(Err(error));
                    }
                }
            }
            if !kept.is_empty() {
                self.deletions.lock().push_back(Deletion { due_ms: deletion.due_ms, names: kept });
            }
        }
        outcome.map(|()| deleted)
    }

    /// Takes a sealed segment out of the log, from the writer's seat. When its files cannot be
    /// renamed it is there as before.
    pub(super) fn remove_segment(&self, segment: &Arc<LogSegment>, now_ms: i64) -> Result<()> {
        let base_offset = segment.base_offset();
        // Whoever has found it before must not take a file that is renamed for one that was never
        // there: without its index of transactions aborted records would look committed.
        let list = self.segments.load().without(|other| other.base_offset() == base_offset);
        self.segments.store(Arc::new(list));
        match self.retire_segment(segment, now_ms) {
            Ok(()) => segment.close(),
            Err(error) => {
                if !self.is_failed() {
                    let list = self.segments.load().with(Arc::clone(segment));
                    self.segments.store(Arc::new(list));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Renames the files of a segment after telling whoever still looks at it.
    pub(super) fn retire_segment(&self, segment: &LogSegment, now_ms: i64) -> Result<()> {
        self.retire(segment, &SEGMENT_ROLES, now_ms)
    }

    /// The same for an empty segment in whose place another one of the same base comes: its log
    /// keeps its name, by which alone a crash may tell where the log ends.
    pub(super) fn retire_indexes(&self, segment: &LogSegment, now_ms: i64) -> Result<()> {
        self.retire(segment, &INDEX_ROLES, now_ms)
    }

    fn retire(&self, segment: &LogSegment, roles: &[FileRole], now_ms: i64) -> Result<()> {
        segment.retire();
        self.doom(segment.base_offset(), roles, now_ms).inspect_err(|_| {
            if !self.is_failed() {
                segment.reinstate();
                // Whoever was told that it is gone looks again.
                let list = Segments::clone(&self.segments.load());
                self.segments.store(Arc::new(list));
            }
        })
    }

    /// Renames the files of a segment, so that nobody takes them for a part of the log, and puts
    /// them up for deletion. When one cannot be renamed all have their old names; where that
    /// cannot be had either, the log takes no more writes.
    pub(super) fn doom_segment(&self, base_offset: i64, now_ms: i64) -> Result<()> {
        self.doom(base_offset, &SEGMENT_ROLES, now_ms)
    }

    /// The same for a snapshot.
    pub(super) fn doom_snapshot(&self, offset: i64, now_ms: i64) -> Result<()> {
        self.doom(offset, &[FileRole::Snapshot], now_ms)
    }

    fn doom(&self, offset: i64, roles: &[FileRole], now_ms: i64) -> Result<()> {
        let (dir, storage) = (self.dir(), self.folder.storage());
        let mut renamed: Vec<(String, String)> = Vec::new();
        let mut outcome = Ok(());
        for role in roles {
            let live = FileName::live(offset, *role);
            let name = FileName { state: FileState::Deleted, ..live }.format();
            let live = live.format();
            match storage.rename(&dir.join(&live), &dir.join(&name)) {
                Ok(()) => renamed.push((live, name)),
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        if outcome.is_err() {
            let back = |(live, name): &(String, String)| {
                storage.rename(&dir.join(name), &dir.join(live)).is_ok()
            };
            while renamed.last().is_some_and(back) {
                renamed.pop();
            }
            // A segment that lacks files is whole for the next start, which makes them anew.
            self.is_failed.fetch_or(!renamed.is_empty(), Ordering::AcqRel);
        }
        if !renamed.is_empty() {
            let due_ms = now_ms.saturating_add(self.config.load().file_delete_delay_ms);
            let names = renamed.into_iter().map(|(_, name)| name).collect();
            self.deletions.lock().push_back(Deletion { due_ms, names });
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::path::Path;

    use super::*;
    use crate::io::{SimDisk, Storage};
    use crate::log::{FetchOptions, Isolation, LogConfig, OpenOptions};
    use crate::record::builder::samples::batch_of_one;
    use crate::record::builder::{BatchOptions, write_end_marker};
    use crate::record::control::EndMarker;

    const NOW_MS: i64 = 1_700_000_000_000;
    const ALL: FetchOptions =
        FetchOptions { max_bytes: 1000, isolation: Isolation::Committed, min_one_message: true };

    /// An aborted transaction in a segment of its own, and a record behind it.
    fn log(disk: &SimDisk) -> Log {
        let options = OpenOptions { now_ms: NOW_MS, ..OpenOptions::default() };
        let disk = Arc::new(disk.clone());
        let dir = Path::new("/orders-0");
        let log = Log::open(disk, dir, LogConfig::default(), &options).unwrap();
        let txn = BatchOptions {
            producer_id: 7,
            producer_epoch: 0,
            base_sequence: 0,
            is_transactional: true,
            leader_epoch: 0,
            ..BatchOptions::default()
        };
        let marker = EndMarker { is_abort: true, coordinator_epoch: 0, timestamp_ms: NOW_MS };
        let data = |options: BatchOptions| batch_of_one(options, NOW_MS, b"value");
        let mut bytes = data(txn);
        write_end_marker(&BatchOptions { base_offset: 1, ..txn }, &marker, &mut bytes).unwrap();
        log.append_as_follower(&bytes, i32::MAX, NOW_MS).unwrap();
        log.roll(NOW_MS).unwrap();
        let plain = BatchOptions { base_offset: 2, leader_epoch: 0, ..BatchOptions::default() };
        let last = data(plain);
        log.append_as_follower(&last, i32::MAX, NOW_MS).unwrap();
        log.update_high_watermark(3).unwrap();
        log
    }

    fn live_files(disk: &SimDisk) -> Vec<String> {
        let names = disk.list(Path::new("/orders-0")).unwrap();
        let names = names.into_iter().map(|entry| entry.name.into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.ends_with(".deleted")).collect();
        names.sort();
        names
    }

    #[test]
    fn a_reader_that_found_a_segment_before_it_went_misses_no_aborted_transaction() {
        // Retention renamed the files of a segment that its readers still took for whole: one that
        // came to look for the index of transactions found none, and aborted records looked
        // committed. Such a reader is told that the segment is gone, and looks again.
        type Removal = fn(&Log) -> Result<()>;
        let removals: [Removal; 3] = [
            |log| {
                log.maybe_increment_log_start_offset(2)?;
                log.delete_old_segments(NOW_MS).map(|count| assert_eq!(count, 1))
            },
            |log| log.truncate_fully_and_start_at(9, None, NOW_MS),
            |log| log.truncate_fully_and_start_at(2, None, NOW_MS),
        ];
        for (number, remove) in removals.into_iter().enumerate() {
            let log = log(&SimDisk::new());
            let stale = &Arc::clone(log.segments().first().unwrap());
            let open = stale.handles(&log.folder).unwrap();
            let before = log.locate(0, &ALL).unwrap().aborted.unwrap();
            assert_eq!(before.len(), 1);
            stale.close();
            let fresh = stale.handles(&log.folder).unwrap();
            let mut looks = 0;
            let found = log.look(|segments| {
                looks += 1;
                if looks == 1 {
                    remove(&log).unwrap();
                }
                let mut found = Vec::new();
                for segment in segments.iter() {
                    segment.collect_aborted(&log.folder, 0, 9, &mut found)?;
                }
                Ok(found.len())
            });
            assert_eq!((found.unwrap(), looks), (0, 2));
            assert_eq!(stale.handles(&log.folder).unwrap_err().kind(), Kind::NotFound);
            let txns = fresh.index(stale, &log.folder, FileRole::TxnIndex);
            assert_eq!(txns.unwrap_err().kind(), Kind::NotFound, "{number}");
            // What is open stays good.
            assert!(open.index(stale, &log.folder, FileRole::TxnIndex).unwrap().is_some());
        }
    }

    #[test]
    fn a_reader_waits_where_a_segment_goes_before_it_is_out_of_the_list() {
        // The list was the same that it had looked at, so it was told that files are missing.
        let log = log(&SimDisk::new());
        let first = Arc::clone(log.segments().first().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let changing = log.change_list();
            first.retire();
            first.close();
            let reader = scope.spawn(|| {
                log.look(|segments| {
                    let found = segments.iter().map(|segment| segment.handles(&log.folder));
                    let found: Result<Vec<_>> = found.collect();
                    let _ = tell.send(found.is_ok());
                    found.map(|found| found.len())
                })
            });
            assert!(!told.recv().unwrap());
            let list = log.segments().without(|segment| segment.base_offset() == 0);
            log.segments.store(Arc::new(list));
            drop(changing);
            assert_eq!(reader.join().unwrap().unwrap(), 1);
        });
    }

    #[test]
    fn a_segment_that_cannot_be_renamed_is_there_as_before() {
        let counted = SimDisk::new();
        let renames = {
            let log = log(&counted);
            log.maybe_increment_log_start_offset(2).unwrap();
            let before = counted.operation_count();
            log.delete_old_segments(NOW_MS).unwrap();
            counted.operation_count() - before
        };
        assert!(renames >= 4, "{renames} operations");
        let mut failures = 0;
        for number in 0..renames {
            let disk = SimDisk::new();
            let log = log(&disk);
            let before = live_files(&disk);
            log.maybe_increment_log_start_offset(2).unwrap();
            disk.fail_at(disk.operation_count() + number, 28);
            if log.delete_old_segments(NOW_MS).is_ok() {
                continue;
            }
            failures += 1;
            if log.segments().count() == 2 {
                let names = live_files(&disk);
                assert!(before.iter().all(|name| names.contains(name)), "{names:?}");
                let first = Arc::clone(log.segments().first().unwrap());
                let mut found = Vec::new();
                first.collect_aborted(&log.folder, 0, 9, &mut found).unwrap();
                assert_eq!(found.len(), 1, "{number}");
                assert_eq!(log.delete_old_segments(NOW_MS).unwrap(), 1);
            }
            assert_eq!(log.segments().count(), 1);
            log.close().unwrap();
        }
        assert!(failures >= 4, "{failures} failures");
    }
}
