//! What is to be uploaded of a partition that is not open? Names and sizes say nearly all of it;
//! small files say the rest.
//!
//! No batch is read as long as the high watermark is given and no transaction was open where its
//! segment begins: what happened behind that offset keeps no earlier segment from being uploaded.

use std::path::Path;

use super::candidates::{CopyLag, DamagedSegment, UploadAnswer, UploadView};
use super::side_files::{INDEX_BYTES_MAX, fault_of_bytes, fault_of_size, fault_of_snapshot};
use crate::error::{Kind, Result};
use crate::io::{MapMode, Storage};
use crate::log::columns::UNKNOWN_TIMESTAMP_MS;
use crate::log::inventory::EPOCH_FILE;
use crate::log::recover::Silent;
use crate::log::transactions::read_before;
use crate::log::{LogFacts, SegmentColumns, SegmentFacts, SegmentRow};
use crate::problem::{Code, Problem, Severity};
use crate::segment::FileRole;
use crate::state::{LeaderEpochs, Snapshot};

/// More than a checkpoint of epochs has.
const EPOCH_BYTES_MAX: u64 = 64 << 20;
/// No producer snapshot is larger.
const SNAPSHOT_BYTES_MAX: u64 = 1 << 30;
/// A snapshot of so many bytes has no producer.
const EMPTY_SNAPSHOT_BYTES: u64 = 10;

const INDEXES: [FileRole; 3] = [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex];

/// What is known of a partition beside its directory.
#[derive(Clone, Copy, Debug)]
pub struct ColdOptions {
    /// The high watermark, as `replication-offset-checkpoint` has it; the end of the log without
    /// one.
    pub high_watermark: Option<i64>,
    /// The last stable offset; without one it comes from the high watermark and the transactions
    /// that are open.
    pub last_stable_offset: Option<i64>,
    /// Where the log starts, as `log-start-offset-checkpoint` has it; with the first segment
    /// without one.
    pub log_start_offset: Option<i64>,
    /// The last offset that is copied, -1 for none.
    pub copied_offset: i64,
    /// Whether uploads are put off.
    pub lag: Option<CopyLag>,
    /// Whether the indexes and producer snapshots of candidates are read, and not only the sizes of
    /// the indexes looked at.
    pub reads_indexes: bool,
    /// Whether the largest timestamp of the first candidate is read.
    pub reads_age: bool,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
    /// Whether files are read through maps.
    pub maps: MapMode,
}

impl Default for ColdOptions {
    /// Nothing is known, nothing is copied, and indexes are read.
    fn default() -> Self {
        ColdOptions {
            high_watermark: None,
            last_stable_offset: None,
            log_start_offset: None,
            copied_offset: -1,
            lag: None,
            reads_indexes: true,
            reads_age: true,
            now_ms: 0,
            maps: MapMode::Never,
        }
    }
}

/// Where a last stable offset comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StableFrom {
    /// It was given.
    Given,
    /// It is the high watermark: no transaction was open where its segment begins. One that began
    /// in there may hold it back, which makes no difference to what may be uploaded.
    HighWatermark,
    /// Of the transactions that are open and of the high watermark.
    Transactions,
}

/// A partition directory as far as it was looked at.
#[derive(Debug)]
pub struct ColdLog {
    /// Names and sizes.
    pub facts: LogFacts,
    /// The leader epochs; none where their file is missing or cannot be read.
    pub epochs: LeaderEpochs,
    /// Up to where the log is replicated, as far as is known.
    pub high_watermark: i64,
    /// Where the last stable offset comes from.
    pub stable_from: StableFrom,
    /// What stood in the way.
    pub problems: Vec<Problem>,
    columns: SegmentColumns,
    damaged: Vec<DamagedSegment>,
    /// All but the columns.
    view: UploadView<'static>,
}

impl ColdLog {
    /// Lists a partition directory and reads its leader epochs.
    ///
    /// # Errors
    /// What the disk says.
    pub fn list(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let mut facts = LogFacts::read(storage, dir)?;
        let mut problems = facts.unreadable_problems();
        // A log that cannot be opened has its place: without it, the one before would seem to reach
        // over the hole.
        let holes = facts
            .unreadable
            .keys()
            .map(|base| SegmentFacts { base_offset: *base, ..SegmentFacts::default() });
        facts.segments.extend(holes.collect::<Vec<_>>());
        facts.segments.sort_by_key(|segment| segment.base_offset);
        facts.segments.dedup_by_key(|segment| segment.base_offset);
        let mut columns = SegmentColumns::with_capacity(facts.segments.len());
        for segment in &facts.segments {
            columns.push(SegmentRow {
                base_offset: segment.base_offset,
                size_bytes: segment.log_size_bytes,
                max_timestamp_ms: UNKNOWN_TIMESTAMP_MS,
                may_have_txns: segment.txn_index_size_bytes.is_some_and(|size| size > 0),
            });
        }
        let epochs = read_epochs(storage, dir, &mut problems)?;
        let (damaged, view) = (Vec::new(), UploadView::default());
        let (high_watermark, stable_from) = (0, StableFrom::Given);
        Ok(ColdLog { facts, epochs, high_watermark, stable_from, problems, columns, damaged, view })
    }

    /// Says what is to be uploaded of it.
    ///
    /// # Errors
    /// What the disk says.
    pub fn look(&mut self, storage: &dyn Storage, options: &ColdOptions) -> Result<UploadAnswer> {
        self.damaged.clear();
        let segments = &self.facts.segments;
        let first = segments.first().map_or(0, |first| first.base_offset);
        self.view = UploadView {
            active_size_bytes: segments.last().map_or(0, |active| active.log_size_bytes),
            log_start_offset: options.log_start_offset.unwrap_or(first),
            copied_offset: options.copied_offset,
            lineage_start_offset: self.epochs.earliest().map_or(i64::MAX, |it| it.start_offset),
            ..UploadView::default()
        };
        self.view.last_stable_offset = self.last_stable_offset(storage, options)?;
        let may_go = self.view().candidates(options.now_ms);
        for slot in may_go.slots() {
            if let Some(code) = self.fault(storage, slot, options)? {
                let slot = u32::try_from(slot).unwrap_or(u32::MAX);
                self.damaged.push(DamagedSegment { slot, code });
            }
        }
        self.view.lag = options.lag;
        let goes_by_time = options.lag.is_some_and(|lag| lag.ms > 0 && lag.bytes != 0);
        let count = if goes_by_time { usize::MAX } else { usize::from(options.reads_age) };
        for slot in may_go.slots().take(count) {
            let Some(segment) = self.facts.segments.get(slot) else { break };
            let last = self.facts.last_time_entry(storage, segment.base_offset)?;
            let timestamp_ms = last.map_or(-1, |entry| entry.timestamp_ms);
            self.columns.set_max_timestamp_ms(slot, timestamp_ms);
        }
        Ok(self.view().candidates(options.now_ms))
    }

    /// The partition as the rule takes it, once it was [looked](Self::look) at.
    #[must_use]
    pub fn view(&self) -> UploadView<'_> {
        UploadView {
            bases: self.columns.bases(),
            starts_bytes: self.columns.starts_bytes(),
            max_timestamps_ms: self.columns.max_timestamps_ms(),
            damaged: &self.damaged,
            ..self.view
        }
    }

    /// The segments, side by side.
    #[must_use]
    pub fn columns(&self) -> &SegmentColumns {
        &self.columns
    }

    /// Whether the producer snapshot is there that goes with the segment before `offset`, and not
    /// known to be damaged. Segments that were written before there were such snapshots have none:
    /// one is to be rebuilt from the log, or an empty one to be taken.
    #[must_use]
    pub fn has_snapshot(&self, offset: i64) -> bool {
        let is_broken = |damaged: &DamagedSegment| {
            is_of_snapshot(damaged.code) && self.next_base(damaged.slot) == Some(offset)
        };
        self.snapshot_size(offset).is_some() && !self.damaged.iter().any(is_broken)
    }

    /// Where the segment behind a slot begins.
    fn next_base(&self, slot: u32) -> Option<i64> {
        let next = usize::try_from(slot).ok()?.checked_add(1)?;
        self.columns.bases().get(next).copied()
    }

    fn snapshot_size(&self, offset: i64) -> Option<u64> {
        let snapshots = &self.facts.snapshots;
        let at = snapshots.binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
        snapshots.get(at).map(|(_, size)| *size)
    }

    fn last_stable_offset(&mut self, storage: &dyn Storage, options: &ColdOptions) -> Result<i64> {
        self.high_watermark = match options.high_watermark.or(options.last_stable_offset) {
            Some(offset) => offset,
            None => {
                let end = self.facts.read_end(storage, options.maps)?;
                end.map_or(0, |end| end.end_offset)
            }
        };
        if let Some(offset) = options.last_stable_offset {
            self.stable_from = StableFrom::Given;
            return Ok(offset);
        }
        self.stable_from = StableFrom::HighWatermark;
        if self.may_have_open_transactions(storage)? {
            self.stable_from = StableFrom::Transactions;
            let dir = &self.facts.dir;
            // A marker that is not replicated yet decides nothing.
            let until = self.high_watermark;
            let found = read_before(storage, dir, until, false, options.maps, &Silent)?;
            return Ok(until.min(found.last_stable_offset));
        }
        Ok(self.high_watermark)
    }

    /// Whether a transaction may have been open where the segment of the high watermark begins.
    fn may_have_open_transactions(&self, storage: &dyn Storage) -> Result<bool> {
        let is_before = |segment: &SegmentFacts| segment.base_offset <= self.high_watermark;
        let count = self.facts.segments.partition_point(is_before);
        let before = self.facts.segments.get(..count).unwrap_or_default();
        let [.., _, newest] = before else { return Ok(false) };
        match self.snapshot_size(newest.base_offset) {
            None => return Ok(true),
            Some(EMPTY_SNAPSHOT_BYTES) => return Ok(false),
            Some(_) => {}
        }
        let path = self.facts.path_of(newest.base_offset, FileRole::Snapshot);
        let bytes = match storage.read(&path, SNAPSHOT_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(true),
            other => other?,
        };
        let Ok(snapshot) = Snapshot::read(&bytes) else { return Ok(true) };
        Ok(snapshot.iter().any(|producer| producer.in_transaction()))
    }

    /// What is wrong with the side files of a segment.
    fn fault(
        &self,
        storage: &dyn Storage,
        slot: usize,
        options: &ColdOptions,
    ) -> Result<Option<Code>> {
        let Some(segment) = self.facts.segments.get(slot) else { return Ok(None) };
        if self.facts.unreadable.contains_key(&segment.base_offset) {
            return Ok(Some(Code::Unreadable));
        }
        for role in INDEXES {
            let size_bytes = index_size(segment, role);
            if let Some(code) = fault_of_size(role, size_bytes) {
                return Ok(Some(code));
            }
            // An empty index has nothing to be wrong.
            if !options.reads_indexes || size_bytes.is_none_or(|size| size == 0) {
                continue;
            }
            let path = self.facts.path_of(segment.base_offset, role);
            let bytes = match storage.read(&path, INDEX_BYTES_MAX) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == Kind::NotFound => {
                    return Ok(Some(Code::IndexMissing));
                }
                Err(error) => return Err(error),
            };
            let log_size_bytes = segment.log_size_bytes;
            let fault = fault_of_bytes(role, &bytes, segment.base_offset, log_size_bytes);
            if fault.is_some() {
                return Ok(fault);
            }
        }
        self.snapshot_fault(storage, slot, options)
    }

    /// What is wrong with the producer snapshot behind a segment, where there is one.
    fn snapshot_fault(
        &self,
        storage: &dyn Storage,
        slot: usize,
        options: &ColdOptions,
    ) -> Result<Option<Code>> {
        let next = self.columns.bases().get(slot.saturating_add(1)).copied();
        let is_there = |next: &i64| self.snapshot_size(*next).is_some();
        let Some(next) = next.filter(|next| options.reads_indexes && is_there(next)) else {
            return Ok(None);
        };
        match storage.read(&self.facts.path_of(next, FileRole::Snapshot), SNAPSHOT_BYTES_MAX) {
            // One that went since is made of the log like any that is missing.
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            read => Ok(fault_of_snapshot(&read?, next)),
        }
    }
}

fn index_size(segment: &SegmentFacts, role: FileRole) -> Option<u64> {
    match role {
        FileRole::OffsetIndex => segment.offset_index_size_bytes,
        FileRole::TimeIndex => segment.time_index_size_bytes,
        FileRole::TxnIndex => segment.txn_index_size_bytes,
        FileRole::Log | FileRole::Snapshot => None,
    }
}

fn is_of_snapshot(code: Code) -> bool {
    matches!(
        code,
        Code::SnapshotTruncated
            | Code::SnapshotVersion
            | Code::SnapshotCrc
            | Code::SnapshotMismatch
    )
}

/// The leader epochs; a file that cannot be read is told and taken for empty.
fn read_epochs(
    storage: &dyn Storage,
    dir: &Path,
    problems: &mut Vec<Problem>,
) -> Result<LeaderEpochs> {
    let read = storage.read(&dir.join(EPOCH_FILE), EPOCH_BYTES_MAX);
    let (code, detail) = match read.and_then(|bytes| LeaderEpochs::parse(&bytes)) {
        Ok(epochs) => return Ok(epochs),
        Err(error) if error.kind() == Kind::NotFound => {
            (Code::EpochMissing, "no leader epoch is known of any offset".to_owned())
        }
        Err(error) if error.kind() == Kind::Io => return Err(error),
        Err(error) => (Code::EpochFile, error.message().to_owned()),
    };
    problems.push(Problem {
        code,
        severity: Severity::Repairable,
        file: EPOCH_FILE.to_owned(),
        position: None,
        offset: None,
        detail,
    });
    Ok(LeaderEpochs::new())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::io::SimDisk;
    use crate::log::{Log, LogConfig, OpenOptions};
    use crate::record::builder::{BatchBuilder, BatchOptions, write_end_marker};
    use crate::record::codec::Compressor;
    use crate::record::control::EndMarker;
    use crate::tier::candidates::NotEligible;

    const DIR: &str = "/orders-0";

    fn options(offset: i64) -> BatchOptions {
        BatchOptions {
            base_offset: offset,
            producer_id: 1,
            producer_epoch: 0,
            base_sequence: i32::try_from(offset).unwrap(),
            is_transactional: true,
            leader_epoch: 0,
            ..BatchOptions::default()
        }
    }

    fn data(offset: i64) -> Vec<u8> {
        let mut builder = BatchBuilder::new(options(offset)).unwrap();
        builder.append(1, None, Some(b"v")).unwrap();
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
        bytes
    }

    fn commit(offset: i64) -> Vec<u8> {
        let marker = EndMarker { is_abort: false, coordinator_epoch: 0, timestamp_ms: 1 };
        let mut bytes = Vec::new();
        write_end_marker(&options(offset), &marker, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_transaction_whose_end_is_not_replicated_holds_its_segments_back() {
        // It was taken for decided when its marker was in the log before the newest segment, also
        // behind the high watermark, and its first segments went to remote storage.
        let disk = SimDisk::new();
        let storage = Arc::new(disk.clone());
        let opened =
            Log::open(storage, Path::new(DIR), LogConfig::default(), &OpenOptions::default());
        let log = opened.unwrap();
        for bytes in [data(0), data(1), commit(2), data(3)] {
            log.append_as_follower(&bytes, 9, 1).unwrap();
            log.roll(1).unwrap();
        }
        log.close().unwrap();
        let mut cold = ColdLog::list(&disk, Path::new(DIR)).unwrap();
        let mut look = |high_watermark| {
            let high_watermark = Some(high_watermark);
            let options = ColdOptions { high_watermark, ..ColdOptions::default() };
            let answer = cold.look(&disk, &options).unwrap();
            (cold.view().last_stable_offset, answer.count())
        };
        for (high_watermark, expected) in
            [(0, (0, 0)), (1, (0, 0)), (2, (0, 0)), (3, (3, 3)), (4, (3, 3))]
        {
            assert_eq!(look(high_watermark), expected, "{high_watermark}");
        }
    }

    #[test]
    fn a_broken_snapshot_keeps_its_segment_from_being_uploaded() {
        let disk = SimDisk::new();
        let storage = Arc::new(disk.clone());
        let opened =
            Log::open(storage, Path::new(DIR), LogConfig::default(), &OpenOptions::default());
        let log = opened.unwrap();
        for bytes in [data(0), commit(1), data(2), commit(3)] {
            log.append_as_follower(&bytes, 9, 1).unwrap();
            log.roll(1).unwrap();
        }
        log.close().unwrap();
        let file = disk
            .open(
                &Path::new(DIR).join(format!("{:020}.snapshot", 2)),
                crate::io::OpenMode::ReadWrite,
            )
            .unwrap();
        let mut byte = [0];
        file.read_at(&mut byte, 20).unwrap();
        file.write_at(&[byte[0] ^ 1], 20).unwrap();
        let mut cold = ColdLog::list(&disk, Path::new(DIR)).unwrap();
        let options = ColdOptions { high_watermark: Some(4), ..ColdOptions::default() };
        let answer = cold.look(&disk, &options).unwrap();
        assert_eq!((answer.count(), answer.stop), (1, NotEligible::Damaged(Code::SnapshotCrc)));
        let sound: Vec<i64> = (0..=4).filter(|offset| cold.has_snapshot(*offset)).collect();
        assert_eq!(sound, [1, 3, 4]);
        // By sizes alone nobody can tell.
        let options = ColdOptions { reads_indexes: false, ..options };
        assert_eq!(cold.look(&disk, &options).unwrap().count(), 4);
        assert!(cold.has_snapshot(2));
    }
}
