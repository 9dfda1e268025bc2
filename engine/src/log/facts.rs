//! What can be said of a partition without reading it? Names, sizes, times, and a look at the end
//! of the newest segment.
//!
//! Nothing is checked and nothing is changed, and files may come and go meanwhile: it works beside
//! a running broker.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::error::{Kind, Result};
use crate::index::{OffsetEntries, OffsetEntry, TimeEntries, TimeEntry, offset, time};
use crate::io::{File, FileKind, MapMode, OpenMode, Reader, Source, Storage};
use crate::log::inventory::NO_FILE;
use crate::log::locate::confirmed;
use crate::problem::{Code, Problem, Severity};
use crate::record::scan::{ScannedBatch, Stop, scan};
use crate::segment::name::Parsed;
use crate::segment::{FileName, FileRole, FileState};
use crate::units::NO_TIMESTAMP;

/// Bytes that are read at a time where the end of a log is looked for.
const WINDOW_BYTES: usize = 1 << 18;

/// What names and sizes say of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Base offset.
    pub base_offset: i64,
    /// Length of the log.
    pub log_size_bytes: u64,
    /// Length of the offset index, if there is one. That of an active segment is preallocated.
    pub offset_index_size_bytes: Option<u64>,
    /// Length of the time index, if there is one.
    pub time_index_size_bytes: Option<u64>,
    /// Length of the transaction index, if there is one.
    pub txn_index_size_bytes: Option<u64>,
    /// When the log was last written, in milliseconds since 1970.
    pub modified_ms: i64,
}

impl SegmentFacts {
    /// The bytes of its indexes.
    #[must_use]
    pub fn index_size_bytes(&self) -> u64 {
        let sizes =
            [self.offset_index_size_bytes, self.time_index_size_bytes, self.txn_index_size_bytes];
        sizes.into_iter().flatten().fold(0, u64::saturating_add)
    }
}

/// What names and sizes say of a partition directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// The directory.
    pub dir: PathBuf,
    /// The segments, base offsets rising.
    pub segments: Vec<SegmentFacts>,
    /// Offset and size of the producer snapshots, offsets rising.
    pub snapshots: Vec<(i64, u64)>,
    /// Files whose names are not as Kafka writes them, though they can be read: `5.log`.
    odd_names: BTreeMap<(i64, FileRole), String>,
    /// Names of logs, by base offset, that no file has: folders, and links that lead nowhere. What
    /// they should hold is in no segment here.
    pub unreadable: BTreeMap<i64, String>,
    /// `.deleted`, `.cleaned` and `.swap` files.
    pub leftover_count: u64,
    /// Their bytes.
    pub leftover_size_bytes: u64,
    /// The bytes of all files.
    pub size_bytes: u64,
}

impl LogFacts {
    /// Lists `dir`. Files that vanish meanwhile are left out.
    pub fn read(storage: &dyn Storage, dir: &Path) -> Result<Self> {
        let mut facts = LogFacts { dir: dir.to_path_buf(), ..LogFacts::default() };
        let mut segments: BTreeMap<i64, SegmentFacts> = BTreeMap::new();
        let mut logs = Vec::new();
        for (entry, metadata) in storage.list_with_metadata(dir)? {
            if entry.kind != FileKind::File {
                facts.add_unreadable(&entry.name.to_string_lossy());
                continue;
            }
            let size = metadata.size_bytes;
            facts.size_bytes = facts.size_bytes.saturating_add(size);
            let Parsed::Segment(file) = FileName::parse(&entry.name.to_string_lossy()) else {
                continue;
            };
            if file.state != FileState::Live {
                facts.leftover_count = facts.leftover_count.saturating_add(1);
                facts.leftover_size_bytes = facts.leftover_size_bytes.saturating_add(size);
                continue;
            }
            let name = entry.name.to_string_lossy();
            if name != file.format() {
                facts.odd_names.insert((file.offset, file.role), name.into_owned());
            }
            if file.role == FileRole::Snapshot {
                facts.snapshots.push((file.offset, size));
                continue;
            }
            let segment = segments.entry(file.offset).or_default();
            match file.role {
                FileRole::Log => {
                    segment.base_offset = file.offset;
                    segment.log_size_bytes = size;
                    segment.modified_ms = metadata.modified_ms;
                    logs.push(file.offset);
                }
                FileRole::OffsetIndex => segment.offset_index_size_bytes = Some(size),
                FileRole::TimeIndex => segment.time_index_size_bytes = Some(size),
                FileRole::TxnIndex => segment.txn_index_size_bytes = Some(size),
                FileRole::Snapshot => {}
            }
        }
        facts.snapshots.sort_unstable();
        // An index without its log makes no segment.
        segments.retain(|base, _| logs.contains(base));
        facts.segments = segments.into_values().collect();
        Ok(facts)
    }

    fn add_unreadable(&mut self, name: &str) {
        if let Parsed::Segment(file) = FileName::parse(name)
            && (file.role, file.state) == (FileRole::Log, FileState::Live)
        {
            self.unreadable.insert(file.offset, name.to_owned());
        }
    }

    /// What is to be told of [`unreadable`](Self::unreadable) logs.
    #[must_use]
    pub fn unreadable_problems(&self) -> Vec<Problem> {
        let problem = |(base, name): (&i64, &String)| Problem {
            code: Code::Unreadable,
            severity: Severity::Refused,
            file: name.clone(),
            position: None,
            offset: Some(*base),
            detail: NO_FILE.to_owned(),
        };
        self.unreadable.iter().map(problem).collect()
    }

    /// The name of the live file of this role at this offset, as it is in the directory.
    #[must_use]
    pub fn name_of(&self, offset: i64, role: FileRole) -> String {
        let odd = self.odd_names.get(&(offset, role));
        odd.cloned().unwrap_or_else(|| FileName::live(offset, role).format())
    }

    /// The path of the live file of this role at this offset.
    #[must_use]
    pub fn path_of(&self, offset: i64, role: FileRole) -> PathBuf {
        self.dir.join(self.name_of(offset, role))
    }

    /// The bytes of all logs.
    #[must_use]
    pub fn log_size_bytes(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.log_size_bytes))
    }

    /// The bytes of all indexes.
    #[must_use]
    pub fn index_size_bytes(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.index_size_bytes()))
    }

    /// The bytes of all producer snapshots.
    #[must_use]
    pub fn snapshot_size_bytes(&self) -> u64 {
        self.snapshots.iter().fold(0, |sum, (_, size)| sum.saturating_add(*size))
    }

    /// When a log was last written, in milliseconds since 1970.
    #[must_use]
    pub fn modified_ms(&self) -> Option<i64> {
        self.segments.iter().map(|segment| segment.modified_ms).max()
    }

    /// Where the log ends, by the batches behind the last usable entry of the newest offset index.
    /// `None` without a segment.
    pub fn read_end(&self, storage: &dyn Storage, maps: MapMode) -> Result<Option<LogEnd>> {
        let Some(segment) = self.segments.last() else { return Ok(None) };
        let base_offset = segment.base_offset;
        let path = self.path_of(base_offset, FileRole::Log);
        let file = storage.open(&path, OpenMode::Read)?;
        let size = file.metadata()?.size_bytes;
        let mut source = Reader::new(&*file, size, WINDOW_BYTES, maps);
        let start = self.last_known_batch(storage, base_offset, &mut source);
        let end = scan_end(&mut source, start, base_offset)?;
        // Where the batch that the index knows is itself the torn one, only the batches before it
        // tell.
        if start > 0 && end.position == start {
            return scan_end(&mut source, 0, base_offset).map(Some);
        }
        Ok(Some(end))
    }

    /// The position of the last batch that the offset index knows, if the batch is really there;
    /// else the front.
    fn last_known_batch(
        &self,
        storage: &dyn Storage,
        base_offset: i64,
        source: &mut Reader<'_>,
    ) -> u64 {
        let entry = self.last_offset_entry(storage, base_offset).ok().flatten();
        entry.and_then(|entry| confirmed(entry, base_offset, source)).unwrap_or_default()
    }

    fn last_offset_entry(
        &self,
        storage: &dyn Storage,
        base_offset: i64,
    ) -> Result<Option<OffsetEntry>> {
        let role = FileRole::OffsetIndex;
        let last = self.last_slot::<{ offset::ENTRY_SIZE }>(storage, base_offset, role)?;
        Ok(last.and_then(|bytes| OffsetEntries::new(&bytes, base_offset).get(0)))
    }

    /// The largest timestamp of a segment and its offset, as its time index has them. `None`
    /// without index or entry.
    pub fn last_time_entry(
        &self,
        storage: &dyn Storage,
        base_offset: i64,
    ) -> Result<Option<TimeEntry>> {
        let role = FileRole::TimeIndex;
        let last = self.last_slot::<{ time::ENTRY_SIZE }>(storage, base_offset, role)?;
        Ok(last.and_then(|bytes| TimeEntries::new(&bytes, base_offset).get(0)))
    }

    fn last_slot<const SIZE: usize>(
        &self,
        storage: &dyn Storage,
        base_offset: i64,
        role: FileRole,
    ) -> Result<Option<[u8; SIZE]>> {
        let path = self.path_of(base_offset, role);
        match storage.open(&path, OpenMode::Read) {
            Ok(file) => last_used_slot(&*file),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Where a log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// The offset behind the last whole batch.
    pub end_offset: i64,
    /// The largest timestamp among the batches that were looked at, -1 for none.
    pub max_timestamp_ms: i64,
    /// Where the newest segment ends being whole.
    pub position: u64,
    /// Bytes behind that: 0 but for a torn or preallocated tail, or a batch that is just being
    /// written.
    pub unread_bytes: u64,
    /// Why it ends there.
    pub stop: Stop,
}

fn scan_end(source: &mut Reader<'_>, start: u64, base_offset: i64) -> Result<LogEnd> {
    let (mut end_offset, mut max_timestamp_ms) = (base_offset, NO_TIMESTAMP);
    let mut visitor = |batch: ScannedBatch<'_>| {
        end_offset = batch.header.next_offset();
        max_timestamp_ms = max_timestamp_ms.max(batch.header.max_timestamp);
        Ok(ControlFlow::Continue(()))
    };
    let stopped = scan(source, start, u64::MAX, &mut visitor)?;
    Ok(LogEnd {
        end_offset,
        max_timestamp_ms,
        position: stopped.position,
        unread_bytes: source.end().saturating_sub(stopped.position),
        stop: stopped.stop,
    })
}

/// The last slot of an index that is not zero, as its bytes are. A preallocated file ends in zeros:
/// the border is searched for, not read up to.
fn last_used_slot<const SIZE: usize>(file: &dyn File) -> Result<Option<[u8; SIZE]>> {
    let slot_size = u64::try_from(SIZE).unwrap_or(u64::MAX);
    let read = |slot: u64| -> Result<Option<[u8; SIZE]>> {
        let mut bytes = [0_u8; SIZE];
        let read = file.read_at(&mut bytes, slot.saturating_mul(slot_size))?;
        Ok((read == SIZE && bytes != [0; SIZE]).then_some(bytes))
    };
    let slots = file.metadata()?.size_bytes / slot_size;
    // Most files are trimmed: their last slot is used.
    if let Some(last) = slots.checked_sub(1)
        && let Some(bytes) = read(last)?
    {
        return Ok(Some(bytes));
    }
    let (mut used, mut unused) = (0, slots.saturating_sub(1));
    let mut found = None;
    while used < unused {
        let middle = used + (unused - used) / 2;
        match read(middle)? {
            Some(bytes) => (used, found) = (middle.saturating_add(1), Some(bytes)),
            None => unused = middle,
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::record::builder::BatchOptions;
    use crate::record::builder::samples::batch_of_one;

    fn last(bytes: &[u8]) -> Option<[u8; 8]> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.index");
        std::fs::write(&path, bytes).unwrap();
        last_used_slot(&*Disk::new().open(&path, OpenMode::Read).unwrap()).unwrap()
    }

    fn batch(base_offset: i64) -> Vec<u8> {
        let options = BatchOptions { base_offset, ..BatchOptions::default() };
        batch_of_one(options, base_offset, b"value")
    }

    fn end_of(log: &[u8], index: &[u8]) -> LogEnd {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("00000000000000000010.log"), log).unwrap();
        std::fs::write(dir.path().join("00000000000000000010.index"), index).unwrap();
        let facts = LogFacts::read(&Disk::new(), dir.path()).unwrap();
        facts.read_end(&Disk::new(), MapMode::Never).unwrap().unwrap()
    }

    #[test]
    fn the_end_is_right_whatever_the_index_says() {
        let log: Vec<u8> = (10..15).flat_map(batch).collect();
        let size = log.len() as u64 / 5;
        let position = u32::try_from(size * 4).unwrap().to_be_bytes();
        let good = [[0, 0, 0, 4], position].concat();
        for index in [good.clone(), [good.clone(), vec![0; 40]].concat(), vec![], vec![0xff; 16]] {
            let end = end_of(&log, &index);
            assert_eq!((end.end_offset, end.unread_bytes, end.stop), (15, 0, Stop::End));
            // The last batch, to which the index points, is torn.
            let end = end_of(&log[..log.len() - 3], &index);
            assert_eq!((end.end_offset, end.unread_bytes), (14, size - 3));
        }
    }

    #[test]
    fn a_name_with_too_few_digits_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("7.log"), batch(7)).unwrap();
        let facts = LogFacts::read(&Disk::new(), dir.path()).unwrap();
        let end = facts.read_end(&Disk::new(), MapMode::Never).unwrap().unwrap();
        assert_eq!((end.end_offset, facts.name_of(7, FileRole::Log)), (8, "7.log".to_owned()));
    }

    #[test]
    fn a_directory_without_segments_has_no_end() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("00000000000000000010.index"), b"12345678").unwrap();
        let facts = LogFacts::read(&Disk::new(), dir.path()).unwrap();
        assert_eq!((facts.segments.len(), facts.size_bytes), (0, 8));
        assert_eq!(facts.read_end(&Disk::new(), MapMode::Never).unwrap(), None);
    }

    #[test]
    fn the_last_used_slot_is_found_in_front_of_any_number_of_zeros() {
        for used in 0..20_u8 {
            for zeros in 0..20 {
                let mut bytes: Vec<u8> = (1..=used).flat_map(|slot| [slot; 8]).collect();
                bytes.extend(vec![0; zeros * 8 + zeros % 8]);
                assert_eq!(last(&bytes), (used > 0).then_some([used; 8]), "{used} and {zeros}");
            }
        }
    }
}
