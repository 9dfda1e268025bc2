//! The side files of a walk: looking at them, and putting new ones into the plan.

use std::ops::ControlFlow;

use crate::error::{Kind, Result};
use crate::index::check::{OffsetIndexCheck, TimeIndexCheck};
use crate::index::txn::{TxnEntries, TxnIndexBuilder};
use crate::io::OpenMode;
use crate::log::inventory::{EPOCH_FILE, SegmentFiles};
use crate::log::recover::fold::{Fact, SegmentFold};
use crate::log::recover::plan::Action;
use crate::log::recover::walk::{Halt, INDEX_BYTES_MAX, Look, Need, Right, Scanned, Walk};
use crate::problem::{Code, Problem, Severity};
use crate::record::scan::{ScanEnd, Stop};
use crate::segment::damage::examine;
use crate::segment::rebuild::IndexRebuild;
use crate::segment::{FileName, FileRole};

/// A larger file is written beside the old one, so that it need not be held until then.
const IN_PLACE_BYTES_MAX: usize = 16 << 10;

impl Walk<'_> {
    /// Reads the batches of a segment; in the tail, into the producer state.
    pub(super) fn scan(
        &mut self,
        segment: &SegmentFiles,
        need: &Need,
        in_tail: bool,
    ) -> Result<Scanned> {
        let base = segment.base_offset;
        let reset = in_tail && need.resets(base);
        let (old_offset, old_time) = if reset {
            (None, None)
        } else {
            (
                self.read_index(segment, FileRole::OffsetIndex)?,
                self.read_index(segment, FileRole::TimeIndex)?,
            )
        };
        let mut offset_check = old_offset.as_ref().map(|bytes| OffsetIndexCheck::new(bytes, base));
        let mut time_check = old_time.as_ref().map(|bytes| TimeIndexCheck::new(bytes, base));
        let file = self.open(segment)?;
        let size = file.metadata()?.size_bytes;
        let mut fold = SegmentFold {
            base_offset: base,
            parts: Vec::new(),
            next_base: self.inventory.next_base(base),
            next_offset: self.reached.max(base),
            truncate_to: self.options.truncate_to.filter(|_| in_tail),
            indexes: Some(IndexRebuild::new(base, self.options.index)?),
            epochs: &mut self.epochs,
            log_start_offset: self.options.log_start_offset,
            epoch_differs: false,
            epoch_untold: false,
            producers: in_tail.then_some(&mut self.book.state),
            txn_index: TxnIndexBuilder::new(),
            abort_markers: 0,
            batches: 0,
            producer_faults: 0,
            trouble: None,
        };
        let each = |fact: &Fact<'_>| {
            if fold.batch(fact).is_break() {
                return ControlFlow::Break(());
            }
            let last_offset = fact.header.last_offset();
            if let Some(check) = &mut offset_check {
                check.batch(fact.position, last_offset);
            }
            if let Some(check) = &mut time_check {
                check.batch(last_offset, fact.header.max_timestamp);
            }
            ControlFlow::Continue(())
        };
        let end = self.scanner.scan(&*file, size, 0, base, each)?;
        let last_base = fold.base_offset;
        let SegmentFold {
            next_offset,
            epoch_differs,
            epoch_untold,
            indexes,
            txn_index,
            abort_markers,
            parts,
            ..
        } = fold;
        self.epoch_untold |= epoch_untold;
        let (batches, producer_faults, trouble) =
            (fold.batches, fold.producer_faults, fold.trouble);
        let right = Right {
            offset_index: offset_check.is_some_and(|check| check.finish(end.position).is_empty()),
            time_index: time_check.is_some_and(|check| {
                let found = check.finish();
                found.problems.is_empty() && found.short.is_none()
            }),
        };
        let damage = if trouble.is_none() && end.stop != Stop::End {
            let mut source = self.scanner.reader(&*file, size);
            examine(&mut source, end, last_base, next_offset)?
        } else {
            None
        };
        let outcome = &mut self.plan.outcome;
        outcome.segments_read = outcome.segments_read.saturating_add(1);
        outcome.bytes_read = outcome.bytes_read.saturating_add(end.position);
        outcome.batches_read = outcome.batches_read.saturating_add(batches);
        outcome.producer_faults = outcome.producer_faults.saturating_add(producer_faults);
        Ok(Scanned {
            end,
            damage,
            trouble,
            parts,
            indexes: indexes.map(IndexRebuild::finish).transpose()?,
            txn_index: txn_index.into_bytes(),
            abort_markers,
            epoch_differs,
            next_offset,
            right,
        })
    }

    /// What a trusted segment's small files ask for.
    pub(super) fn look_at_indexes(&mut self, segment: &SegmentFiles) -> Result<Look> {
        let base = segment.base_offset;
        if let Some(bytes) = self.read_index(segment, FileRole::TxnIndex)?
            && !is_sound_in_itself(&TxnEntries::new(&bytes), base)
        {
            return Ok(Look::Recover);
        }
        let Some(bytes) = self.read_index(segment, FileRole::OffsetIndex)? else {
            // spec: segments 5, step 5. Kafka recovers a segment without its offset index.
            return Ok(Look::Recover);
        };
        // Without the batches only what is wrong in the entries alone can be told.
        let in_itself = |code: Code| {
            !matches!(code, Code::IndexPosition | Code::TimeindexMismatch | Code::TimeindexShort)
        };
        let found = OffsetIndexCheck::new(&bytes, base).finish(segment.log_size_bytes);
        if found.iter().any(|problem| in_itself(problem.code)) {
            return Ok(Look::Reindex);
        }
        let Some(bytes) = self.read_index(segment, FileRole::TimeIndex)? else {
            return Ok(Look::Reindex);
        };
        let found = TimeIndexCheck::new(&bytes, base).finish();
        if found.problems.iter().any(|problem| in_itself(problem.code))
            || (bytes.is_empty() && segment.log_size_bytes > 0)
        {
            return Ok(Look::Reindex);
        }
        Ok(Look::Sound)
    }

    /// How many aborted transactions the transaction index tells of; `None` when it cannot be read.
    pub(super) fn aborts_told(&self, segment: &SegmentFiles) -> Result<Option<u64>> {
        let bytes = self.read_index(segment, FileRole::TxnIndex)?.unwrap_or_default();
        let entries = TxnEntries::new(&bytes);
        let sound = is_sound_in_itself(&entries, segment.base_offset);
        Ok(sound.then(|| u64::try_from(entries.count()).unwrap_or(u64::MAX)))
    }

    /// Puts the indexes made from the batches into the plan, where those that are there are not right.
    pub(super) fn place_indexes(
        &mut self,
        segment: &SegmentFiles,
        scanned: &Scanned,
        reset: bool,
    ) -> Result<()> {
        let Some(indexes) = &scanned.indexes else { return Ok(()) };
        if reset || !scanned.right.offset_index {
            self.place(segment, FileRole::OffsetIndex, &indexes.offset_index, reset)?;
        }
        if reset || !scanned.right.time_index {
            self.place(segment, FileRole::TimeIndex, &indexes.time_index, reset)?;
        }
        Ok(())
    }

    /// Puts the transaction index into the plan, where the one that is there differs.
    pub(super) fn place_txn_index(
        &mut self,
        segment: &SegmentFiles,
        bytes: &[u8],
        reset: bool,
    ) -> Result<()> {
        // Kafka makes the file with the first entry, and leaves an emptied one.
        if bytes.is_empty() && segment.txn_index.is_none() {
            return Ok(());
        }
        self.place(segment, FileRole::TxnIndex, bytes, reset)
    }

    /// Puts a small file of a segment into the plan: nothing where the file is as it should be, a shorter length where its
    /// front is, else new bytes.
    ///
    /// An index that is reset is made anew by whoever starts next, until the directory has its
    /// clean marker: nobody trusts what a crash leaves of it. So a small one is written over, which
    /// costs a tenth of making a file and renaming it. But not where the operator named another
    /// recovery point: whoever starts next knows only that of the checkpoint.
    fn place(
        &mut self,
        segment: &SegmentFiles,
        role: FileRole,
        bytes: &[u8],
        reset: bool,
    ) -> Result<()> {
        let target = FileName::live(segment.base_offset, role).format();
        let mut in_place = false;
        if let Some(name) = segment.index(role) {
            match self.storage.open(&self.inventory.dir.join(name), OpenMode::Read) {
                Ok(file) => {
                    in_place = reset
                        && self.options.recovery_point_is_known
                        && name == target
                        && bytes.len() <= IN_PLACE_BYTES_MAX;
                    let mut front = vec![0_u8; bytes.len()];
                    let same = file.read_at(&mut front, 0)? == bytes.len() && front == bytes;
                    let size = file.metadata()?.size_bytes;
                    let wanted = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    if same && size == wanted {
                        return Ok(());
                    }
                    if same {
                        self.plan
                            .actions
                            .push(Action::Shorten { name: target, size_bytes: wanted });
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let staged = self.stage.put(&target, bytes.to_vec())?;
        self.plan.actions.push(Action::Write {
            name: target,
            staged,
            why: "made from the batches",
            in_place,
        });
        Ok(())
    }

    /// Puts the checkpoint of leader epochs into the plan, where it changes.
    pub(super) fn place_epochs(&mut self, need: &Need, end: i64) -> Result<Option<Halt>> {
        // spec: segments 5, step 7, but for the order: where a log starts at its end, Kafka moves its
        // last epoch there and drops it at the next load, and a second recovery may change nothing.
        self.epochs.truncate_from_start(self.options.log_start_offset);
        self.epochs.truncate_from_end(end);
        let entries_left = !self.epochs.entries().is_empty();
        if !entries_left && self.epoch_untold {
            // They began behind the end of the log: no log start has moved there.
            return Ok(Some(Halt::Again(Need { epochs: true, ..need.clone() })));
        }
        let path = self.inventory.dir.join(EPOCH_FILE);
        let wanted = self.epochs.format();
        let old = match self.storage.read(&path, u64::try_from(wanted.len()).unwrap_or(u64::MAX)) {
            Ok(old) => Some(old),
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Limit) => None,
            Err(error) => return Err(error),
        };
        // Kafka makes the file empty, and does not write no entries into one that has none.
        let stays_empty = !entries_left && (need.epochs || old.as_ref().is_some_and(Vec::is_empty));
        let bytes = if stays_empty { Vec::new() } else { wanted };
        if old.as_deref() == Some(&*bytes) {
            return Ok(None);
        }
        if need.epochs && entries_left && !self.inventory.has_epoch_file {
            self.plan.problems.push(Problem {
                code: Code::EpochMissing,
                severity: Severity::Repairable,
                file: EPOCH_FILE.to_owned(),
                position: None,
                offset: None,
                detail: "missing, but the batches have leader epochs".to_owned(),
            });
        }
        let staged = self.stage.put(EPOCH_FILE, bytes)?;
        self.plan.actions.push(Action::Write {
            name: EPOCH_FILE.to_owned(),
            staged,
            why: "leader epochs",
            in_place: false,
        });
        Ok(None)
    }

    /// The offset behind the last whole batch of a segment that was not read: from the last index entry on.
    pub(super) fn next_offset_of(&mut self, segment: &SegmentFiles) -> Result<(i64, ScanEnd)> {
        let base = segment.base_offset;
        let bytes = self.read_index(segment, FileRole::OffsetIndex)?.unwrap_or_default();
        let entries = crate::index::OffsetEntries::new(&bytes, base);
        let hint = entries.count().checked_sub(1).and_then(|slot| entries.get(slot));
        let start = hint.and_then(|entry| u64::try_from(entry.position).ok()).unwrap_or(0);
        let file = self.open(segment)?;
        let size = file.metadata()?.size_bytes;
        for start in [start, 0] {
            let mut next = base;
            let each = |fact: &Fact<'_>| {
                next = fact.header.next_offset();
                ControlFlow::Continue(())
            };
            let end = self.scanner.scan(&*file, size, start, base, each)?;
            if end.stop == Stop::End || start == 0 {
                return Ok((next, end));
            }
        }
        Ok((base, ScanEnd { position: 0, stop: Stop::End }))
    }

    /// The bytes of an index, bounded by what an index can have.
    pub(super) fn read_index(
        &self,
        segment: &SegmentFiles,
        role: FileRole,
    ) -> Result<Option<Vec<u8>>> {
        let Some(name) = segment.index(role) else { return Ok(None) };
        match self.storage.read(&self.inventory.dir.join(name), INDEX_BYTES_MAX) {
            Ok(bytes) => Ok(Some(bytes)),
            // Wrong by its size: to be made anew like one that is missing.
            Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Limit) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What can be told of a transaction index without the batches.
fn is_sound_in_itself(entries: &TxnEntries<'_>, base_offset: i64) -> bool {
    entries.stray_size_bytes() == 0 && entries.is_sound(base_offset)
}
