//! When does a log go on in a new segment, and what becomes of the old one?

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::log::{Log, Writer};
use crate::error::{Error, Kind, Result};
use crate::io::OpenMode;
use crate::segment::active::RollParams;
use crate::segment::{ActiveSegment, FileRole};
use crate::state::SnapshotSet;

impl Log {
    /// Goes on in a new segment, whatever the old one's size; gives its base offset. In the place
    /// of an empty one comes another of the same base.
    ///
    /// The old segment is not durable yet: a flush up to the new base is due.
    ///
    /// # Errors
    /// `Conflict` when another thread is writing; `Closed`; `Io`: the log goes on in the old one,
    /// or [has failed](Self::is_failed) where that was empty and went already.
    pub fn roll(&self, now_ms: i64) -> Result<i64> {
        let mut seat = self.take_seat()?;
        let writer = self.ready(&mut seat)?;
        self.roll_to(writer, 0, now_ms)
    }

    /// Rolls if what is to be appended belongs into a new segment; `first_offset` is that of the
    /// batches, where it is known.
    pub(super) fn maybe_roll(
        &self,
        writer: &mut Writer,
        append: &RollParams,
        first_offset: Option<i64>,
    ) -> Result<bool> {
        // spec: segments 6.4
        let settings = self.config.load().segment();
        writer.active.touch_indexes(&self.folder, &settings)?;
        if !writer.active.should_roll(&self.folder, &settings, append)? {
            return Ok(false);
        }
        let last_possible = append.last_offset.saturating_sub(i64::from(i32::MAX));
        self.roll_to(writer, first_offset.unwrap_or(last_possible), append.now_ms)?;
        writer.active.touch_indexes(&self.folder, &settings)?;
        Ok(true)
    }

    pub(super) fn roll_to(
        &self,
        writer: &mut Writer,
        expected_next_offset: i64,
        now_ms: i64,
    ) -> Result<i64> {
        // spec: segments 4.3, 6.5
        let base_offset = expected_next_offset.max(self.log_end_offset());
        let old_base = writer.active.base_offset();
        if base_offset < old_base || (base_offset == old_base && writer.active.size_bytes() > 0) {
            let message = format!("a segment at {base_offset} cannot follow the one at {old_base}");
            return Err(Error::new(Kind::Conflict, message).in_file(&self.dir()));
        }
        if base_offset == old_base {
            return self.replace_empty(writer, now_ms);
        }
        let settings = self.config.load().segment();
        let books = writer.producers.snapshots().clone();
        let outcome = self.write_roll_snapshot(writer, base_offset).and_then(|snapshot| {
            writer.active.finish_files(&self.folder)?;
            let next = ActiveSegment::create(&self.folder, base_offset, &settings, now_ms)?;
            Ok((snapshot, next))
        });
        let (snapshot, next) = match outcome {
            Ok(done) => done,
            Err(error) => {
                self.forget_roll_snapshot(&books, base_offset);
                *writer.producers.snapshots_mut() = books;
                return Err(error);
            }
        };
        self.leave_behind(writer.active.segment(), base_offset);
        self.durable().snapshots.extend(snapshot);
        self.segments.store(Arc::new(self.segments.load().with(Arc::clone(next.segment()))));
        std::mem::replace(&mut writer.active, next).seal();
        Ok(base_offset)
    }

    /// An empty segment is rolled when its index has no room at all: it gets new indexes.
    fn replace_empty(&self, writer: &mut Writer, now_ms: i64) -> Result<i64> {
        let base_offset = writer.active.base_offset();
        let settings = self.config.load().segment();
        let _changing = self.change_list();
        self.retire_indexes(writer.active.segment(), now_ms)?;
        let next = ActiveSegment::create(&self.folder, base_offset, &settings, now_ms)
            // The log has no segment to go on in.
            .inspect_err(|_| self.is_failed.store(true, Ordering::Release))?;
        let list = self.segments.load().without(|segment| segment.base_offset() == base_offset);
        self.segments.store(Arc::new(list.with(Arc::clone(next.segment()))));
        std::mem::replace(&mut writer.active, next).close();
        Ok(base_offset)
    }

    /// Writes the snapshot of a roll, not durably: a flush makes it so, after the records that it
    /// speaks of.
    fn write_roll_snapshot(&self, writer: &mut Writer, base_offset: i64) -> Result<Option<i64>> {
        writer.producers.snapshots_mut().set_map_end_offset(base_offset);
        let Some((offset, bytes)) = writer.producers.take_snapshot() else { return Ok(None) };
        self.write_snapshot(offset, &bytes)?;
        Ok(Some(offset))
    }

    /// A roll failed: the snapshot that it may have written is in no book.
    fn forget_roll_snapshot(&self, books: &SnapshotSet, base_offset: i64) {
        if !books.contains(base_offset) {
            // Where it stays, the next start removes it.
            let path = self.folder.file(base_offset, FileRole::Snapshot);
            let _ = self.folder.storage().remove_file(&path);
        }
    }

    pub(super) fn write_snapshot(&self, offset: i64, bytes: &[u8]) -> Result<()> {
        let path = self.folder.file(offset, FileRole::Snapshot);
        self.folder.storage().open(&path, OpenMode::Create)?.write_at(bytes, 0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;
    use crate::io::SimDisk;
    use crate::log::{FetchOptions, Isolation, LogConfig, OpenOptions};
    use crate::record::builder::BatchOptions;
    use crate::record::builder::samples::batch_of_one;

    fn open(disk: &SimDisk, clean_shutdown: bool) -> Log {
        let options = OpenOptions { clean_shutdown, ..OpenOptions::default() };
        let dir = Path::new("/orders-0");
        Log::open(Arc::new(disk.clone()), dir, LogConfig::default(), &options).unwrap()
    }

    fn batch() -> Vec<u8> {
        let options = BatchOptions { leader_epoch: 0, ..BatchOptions::default() };
        batch_of_one(options, 1000, b"value")
    }

    #[test]
    fn what_is_appended_after_an_empty_segment_could_not_be_replaced_is_not_lost() {
        // Where no new file could be made the log went on in the old one, which had got its name of
        // a deleted file: it was deleted a minute later.
        let (mut failures, mut ends) = (0, 0);
        for number in 0.. {
            let disk = SimDisk::new();
            let log = open(&disk, true);
            let before = disk.operation_count();
            disk.fail_at(before + number, 28);
            let rolled = log.roll(0);
            if rolled.is_ok() && disk.operation_count() <= before + number {
                break;
            }
            failures += usize::from(rolled.is_err());
            if log.is_failed() {
                ends += 1;
            } else {
                log.append_as_follower(&batch(), 0, 0).unwrap();
                let end = FetchOptions {
                    max_bytes: 1000,
                    isolation: Isolation::LogEnd,
                    min_one_message: true,
                };
                assert_eq!(log.read(0, &end).unwrap().bytes, batch(), "failure {number}");
                log.delete_due_files(i64::MAX).unwrap();
            }
            let wanted = log.log_end_offset();
            drop(log);
            assert_eq!(open(&disk, false).log_end_offset(), wanted, "failure {number}");
        }
        assert!(failures > ends && ends > 0, "{failures} failures, {ends} of them ended the log");
    }
}
