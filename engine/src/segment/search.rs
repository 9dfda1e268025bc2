//! Where in a segment is an offset, or a timestamp?

use std::ops::ControlFlow;
use std::sync::Arc;

use super::folder::Folder;
use super::handles::SegmentHandles;
use super::index_file::IndexFile;
use super::log_bytes::LogBytes;
use super::log_segment::LogSegment;
use super::name::FileRole;
use super::recent::{BatchPlace, Recent};
use super::walk::{HEAD_BYTES, HeaderWalk, WINDOW_BYTES};
use crate::bytes;
use crate::error::{Error, Result};
use crate::index::{AbortedTxn, OffsetEntries, OffsetEntry, TimeEntries, TimeEntry, TxnEntries};
use crate::index::{offset, time, txn};
use crate::record::batch::HEADER_SIZE;
use crate::record::codec::Codec;
use crate::record::records::Records;
use crate::record::{BatchHeader, BatchReader, Record};
use crate::units::{NO_LEADER_EPOCH, NO_TIMESTAMP};

/// The largest batch that is opened to look for a timestamp.
const BATCH_BYTES_MAX: usize = 1 << 30;

/// The record that answers for a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampAndOffset {
    /// The record's timestamp in milliseconds.
    pub timestamp_ms: i64,
    /// Its offset.
    pub offset: i64,
    /// The leader epoch of its batch, if it has one.
    pub leader_epoch: Option<i32>,
}

impl LogSegment {
    /// The first batch that ends at `offset` or behind it; `None` when every batch ends before.
    pub fn translate(self: &Arc<Self>, folder: &Folder, offset: i64) -> Result<Option<BatchPlace>> {
        // spec: segments 3.5
        match self.with_recent(|recent| recent.find(offset)) {
            Some(Recent::Found(place)) => return Ok(Some(place)),
            Some(Recent::Behind) => return Ok(None),
            Some(Recent::Unknown) | None => {}
        }
        self.with_handles(folder, |handles| self.translate_in(handles, folder, offset))
    }

    fn translate_in(
        &self,
        handles: &SegmentHandles,
        folder: &Folder,
        offset: i64,
    ) -> Result<Option<BatchPlace>> {
        let entry = self.lookup_offset(handles, folder, offset)?;
        let log = handles.log_bytes(self, folder);
        match log.map {
            Some(_) => self.find_from::<HEAD_BYTES>(log, entry, offset),
            None => self.find_from::<WINDOW_BYTES>(log, entry, offset),
        }
    }

    /// The first batch that ends at `offset` or behind it, from an index entry on.
    fn find_from<const BYTES: usize>(
        &self,
        log: LogBytes<'_>,
        entry: OffsetEntry,
        offset: i64,
    ) -> Result<Option<BatchPlace>> {
        let start = u64::try_from(entry.position).unwrap_or(0);
        let mut walk = HeaderWalk::<BYTES>::new(log, start, self.size_bytes());
        if start > 0 {
            // The first one, or a later one of the same append: see `OffsetEntry::may_name`.
            match walk.find(entry.offset) {
                Ok(Some((header, position))) if header.last_offset() == entry.offset => {
                    if entry.offset >= offset {
                        return Ok(Some(place(&header, position)));
                    }
                }
                // An index that lies, as an unclean stop may leave it, must not hide what is there.
                _ => walk = HeaderWalk::new(log, 0, self.size_bytes()),
            }
        }
        Ok(walk.find(offset)?.map(|(header, position)| place(&header, position)))
    }

    /// The last offset index entry at or before `offset`; the base at position 0 without one.
    pub(super) fn lookup_offset(
        &self,
        handles: &SegmentHandles,
        folder: &Folder,
        offset: i64,
    ) -> Result<OffsetEntry> {
        let base_offset = self.base_offset();
        let none = OffsetEntry { offset: base_offset, position: 0 };
        if let Some(entries) = handles.index_in_memory(self, folder, FileRole::OffsetIndex)? {
            return Ok(OffsetEntries::new(entries, base_offset).lookup(offset));
        }
        let Some(file) = handles.index(self, folder, FileRole::OffsetIndex)? else {
            return Ok(none);
        };
        let count = self.entry_count(FileRole::OffsetIndex, &**file, offset::ENTRY_SIZE)?;
        let key = |entry: &[u8]| relative(base_offset, entry, 0);
        let index = IndexFile { file: &**file, entry_size: offset::ENTRY_SIZE, count, key };
        let found = index.lower_bound(offset, self.guess_slot(offset, count))?;
        Ok(found.map_or(none, |(_, entry)| OffsetEntry {
            offset: relative(base_offset, &entry, 0),
            position: bytes::get_i32(&entry, 4).unwrap_or(0),
        }))
    }

    /// The position of the batch that the last index entry at or before `offset` names.
    pub(crate) fn position_before(self: &Arc<Self>, folder: &Folder, offset: i64) -> Result<u64> {
        let handles = self.handles(folder)?;
        let entry = self.lookup_offset(&handles, folder, offset)?;
        Ok(u64::try_from(entry.position).unwrap_or(0))
    }

    fn time_index_file<T>(
        &self,
        handles: &SegmentHandles,
        folder: &Folder,
        look: impl FnOnce(&IndexFile<'_, fn(&[u8]) -> i64>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(file) = handles.index(self, folder, FileRole::TimeIndex)? else { return Ok(None) };
        let count = self.entry_count(FileRole::TimeIndex, &**file, time::ENTRY_SIZE)?;
        let key: fn(&[u8]) -> i64 = |entry| bytes::get_i64(entry, 0).unwrap_or(i64::MAX);
        look(&IndexFile { file: &**file, entry_size: time::ENTRY_SIZE, count, key }).map(Some)
    }

    fn decode_time(&self, entry: Option<Vec<u8>>) -> TimeEntry {
        entry.map_or(
            TimeEntry { timestamp_ms: NO_TIMESTAMP, offset: self.base_offset() },
            |entry| TimeEntry {
                timestamp_ms: bytes::get_i64(&entry, 0).unwrap_or(NO_TIMESTAMP),
                offset: relative(self.base_offset(), &entry, 8),
            },
        )
    }

    /// The largest timestamp of its batches and the last offset of the batch that has it, -1 at
    /// the base offset when there is none: from memory, else the last entry of the time index.
    pub fn max_timestamp(self: &Arc<Self>, folder: &Folder) -> Result<(i64, i64)> {
        // spec: segments 3.2
        if let Some(known) = self.known_max_timestamp() {
            return Ok(known);
        }
        let last = match self.with_tails(|tails| tails.last_time()) {
            Some(last) => last,
            None => {
                let handles = self.handles(folder)?;
                let last = self.time_index_file(&handles, folder, |index| index.last())?.flatten();
                self.decode_time(last)
            }
        };
        let known = (last.timestamp_ms, last.offset);
        self.learn_max_timestamp(known);
        Ok(known)
    }

    /// The largest timestamp for retention: that of the batches, else the time of the last write
    /// to the log.
    pub fn largest_timestamp(self: &Arc<Self>, folder: &Folder) -> Result<i64> {
        // spec: segments 3.7
        let (max_timestamp, _) = self.max_timestamp(folder)?;
        if max_timestamp >= 0 {
            return Ok(max_timestamp);
        }
        Ok(self.handles(folder)?.log().metadata()?.modified_ms)
    }

    /// The largest timestamp of the first batch; `None` while there is no batch.
    pub fn first_batch_timestamp(self: &Arc<Self>, folder: &Folder) -> Result<Option<i64>> {
        if self.size_bytes() == 0 {
            return Ok(None);
        }
        let handles = self.handles(folder)?;
        let log = LogBytes::read(&**handles.log());
        let first = HeaderWalk::<HEAD_BYTES>::new(log, 0, self.size_bytes()).next()?;
        Ok(first.map(|(header, _)| header.max_timestamp))
    }

    /// The first record at `start_offset` or behind it whose timestamp is at least `timestamp_ms`.
    pub fn find_offset_by_timestamp(
        self: &Arc<Self>,
        folder: &Folder,
        timestamp_ms: i64,
        start_offset: i64,
    ) -> Result<Option<TimestampAndOffset>> {
        // spec: segments 3.7
        let handles = self.handles(folder)?;
        let entry = match handles.index_in_memory(self, folder, FileRole::TimeIndex)? {
            Some(entries) => TimeEntries::new(entries, self.base_offset()).lookup(timestamp_ms),
            None => {
                let found = self.time_index_file(&handles, folder, |index| {
                    index.lower_bound(timestamp_ms, index.count / 2)
                })?;
                self.decode_time(found.flatten().map(|(_, entry)| entry))
            }
        };
        let from = self.lookup_offset(&handles, folder, entry.offset.max(start_offset))?;
        self.scan_for(
            handles.log_bytes(self, folder),
            u64::try_from(from.position).unwrap_or(0),
            |record| record.timestamp_ms >= timestamp_ms && record.offset >= start_offset,
            |header| header.max_timestamp >= timestamp_ms,
        )
    }

    /// The first record with the largest timestamp of the segment.
    pub fn find_max_timestamp(
        self: &Arc<Self>,
        folder: &Folder,
    ) -> Result<Option<TimestampAndOffset>> {
        // spec: segments 6.9
        let (max_timestamp, offset) = self.max_timestamp(folder)?;
        if max_timestamp < 0 {
            return Ok(None);
        }
        let handles = self.handles(folder)?;
        let from = self.lookup_offset(&handles, folder, offset)?;
        let from = u64::try_from(from.position).unwrap_or(0);
        let log = handles.log_bytes(self, folder);
        let found = self.scan_for_timestamp(log, from, max_timestamp)?;
        if found.is_some() {
            return Ok(found);
        }
        // An append tells of its timestamp before its batches can be seen.
        let mut largest = None;
        self.for_each_header(folder, 0, |header, position, _| {
            if largest.is_none_or(|(timestamp_ms, _)| header.max_timestamp > timestamp_ms) {
                largest = Some((header.max_timestamp, position));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let Some((timestamp_ms, position)) = largest else { return Ok(None) };
        self.scan_for_timestamp(log, position, timestamp_ms)
    }

    /// The first record with this timestamp in batches that have none larger.
    fn scan_for_timestamp(
        &self,
        log: LogBytes<'_>,
        from: u64,
        timestamp_ms: i64,
    ) -> Result<Option<TimestampAndOffset>> {
        let is_wanted = |record: &Record<'_>| record.timestamp_ms == timestamp_ms;
        self.scan_for(log, from, is_wanted, |header| header.max_timestamp == timestamp_ms)
    }

    /// The first record that is wanted, in batches that may hold one.
    fn scan_for(
        &self,
        log: LogBytes<'_>,
        from: u64,
        is_wanted: impl Fn(&Record<'_>) -> bool,
        may_hold: impl Fn(&BatchHeader) -> bool,
    ) -> Result<Option<TimestampAndOffset>> {
        let mut walk = HeaderWalk::<WINDOW_BYTES>::new(log, from, self.size_bytes());
        let mut reader = BatchReader::new(BATCH_BYTES_MAX);
        let mut batch = Vec::new();
        while let Some((header, position)) = walk.next()? {
            if !may_hold(&header) {
                continue;
            }
            let found_in = |record: &Record<'_>| TimestampAndOffset {
                timestamp_ms: record.timestamp_ms,
                offset: record.offset,
                leader_epoch: (header.leader_epoch != NO_LEADER_EPOCH)
                    .then_some(header.leader_epoch),
            };
            let head = walk.head(position);
            if let Some(record) = first_wanted(&header, head, &is_wanted) {
                return Ok(Some(found_in(&record)));
            }
            batch.resize(usize::try_from(header.size_bytes).unwrap_or(usize::MAX), 0);
            let read = log.read_at(&mut batch, position)?;
            batch.truncate(read);
            let mut found = None;
            let mut see = |record: &Record<'_>| {
                if !is_wanted(record) {
                    return ControlFlow::Continue(());
                }
                found = Some(found_in(record));
                ControlFlow::Break(())
            };
            reader.read(&header, &batch, &mut see).map_err(|fault| {
                Error::corrupt(fault.detail).in_file(log.file.path()).at_position(position)
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The offset behind the last whole batch, the base when there is none, and the position where
    /// that batch ends: what stands behind it is no batch.
    ///
    /// # Errors
    /// `Corrupt` when what follows the last index entry is no log.
    pub fn read_end(self: &Arc<Self>, folder: &Folder) -> Result<(i64, u64)> {
        // spec: segments 3.7
        let handles = self.handles(folder)?;
        let entry = self.lookup_offset(&handles, folder, i64::MAX)?;
        let mut start = u64::try_from(entry.position).unwrap_or(0);
        if start >= self.size_bytes() {
            start = 0;
        }
        let log = LogBytes::read(&**handles.log());
        let mut walk = HeaderWalk::<WINDOW_BYTES>::new(log, start, self.size_bytes());
        let mut next = self.base_offset();
        while let Some((header, _)) = walk.next()? {
            next = header.next_offset();
        }
        Ok((next, walk.position()))
    }

    /// The bytes of the log from `position` up to the last whole batch before `end`, header by
    /// header.
    pub(crate) fn for_each_header(
        self: &Arc<Self>,
        folder: &Folder,
        position: u64,
        mut see: impl FnMut(&BatchHeader, u64, &SegmentHandles) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let handles = self.handles(folder)?;
        let log = LogBytes::read(&**handles.log());
        let mut walk = HeaderWalk::<WINDOW_BYTES>::new(log, position, self.size_bytes());
        while let Some((header, position)) = walk.next()? {
            if see(&header, position, &handles)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// An offset behind the bytes of a fetch, by the offset index: see
    /// [`fetch_upper_bound_offset`](crate::index::OffsetEntries::fetch_upper_bound_offset).
    pub fn fetch_upper_bound_offset(
        self: &Arc<Self>,
        folder: &Folder,
        position: u64,
        size_bytes: u64,
    ) -> Result<Option<i64>> {
        let handles = self.handles(folder)?;
        let Some(file) = handles.index(self, folder, FileRole::OffsetIndex)? else {
            return Ok(None);
        };
        // Kafka quirk: both are 32 bits, and their sum wraps.
        let narrow = |value: u64| i32::try_from(value).unwrap_or(i32::MAX);
        let target = i64::from(narrow(position).wrapping_add(narrow(size_bytes)));
        // What has gathered in memory bounds a fetch, too.
        let gathered = self.with_tails(|tails| (tails.written().0, tails.gathered_from(target)));
        let (count, gathered) = match gathered {
            Some((written, gathered)) => (u64::from(written), gathered),
            None => {
                let size = offset::ENTRY_SIZE;
                (self.entry_count(FileRole::OffsetIndex, &**file, size)?, None)
            }
        };
        let key = |entry: &[u8]| i64::from(bytes::get_i32(entry, 4).unwrap_or(i32::MAX));
        let index = IndexFile { file: &**file, entry_size: offset::ENTRY_SIZE, count, key };
        let below = index.lower_bound(target.saturating_sub(1), count / 2)?;
        let mut slot = below.map_or(0, |(slot, _)| slot.saturating_add(1));
        // Kafka quirk: the first entry never counts as equal.
        if slot == 0 && index.entry(0)?.is_some_and(|first| key(&first) == target) {
            slot = 1;
        }
        if slot >= count {
            return Ok(gathered);
        }
        Ok(index.entry(slot)?.map(|entry| relative(self.base_offset(), &entry, 0)))
    }

    /// Adds the aborted transactions of a fetch to `found`; says whether the search is over.
    pub fn collect_aborted(
        self: &Arc<Self>,
        folder: &Folder,
        fetch_offset: i64,
        upper_bound: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<bool> {
        if !self.may_have_txns() {
            return Ok(false);
        }
        let handles = self.handles(folder)?;
        let Some(file) = handles.index(self, folder, FileRole::TxnIndex)? else {
            self.has_no_txns();
            return Ok(false);
        };
        let count = self.entry_count(FileRole::TxnIndex, &**file, txn::ENTRY_SIZE)?;
        let key = |_: &[u8]| 0;
        let entries = IndexFile { file: &**file, entry_size: txn::ENTRY_SIZE, count, key }.all()?;
        TxnEntries::new(&entries)
            .collect_aborted(fetch_offset, upper_bound, found)
            .map_err(|error| error.in_file(file.path()))
    }
}

/// The first wanted record among those that are whole in the first bytes of a batch, where that can
/// be seen without opening it.
fn first_wanted<'a>(
    header: &BatchHeader,
    head: &'a [u8],
    is_wanted: impl Fn(&Record<'_>) -> bool,
) -> Option<Record<'a>> {
    if header.magic < 2 || Codec::from_id(header.codec_id()) != Some(Codec::None) {
        return None;
    }
    let size = usize::try_from(header.size_bytes).unwrap_or(usize::MAX);
    let records = head.get(HEADER_SIZE..size.min(head.len()))?;
    Records::new(header, records).map_while(|record| record.ok()).find(|record| is_wanted(record))
}

fn place(header: &BatchHeader, position: u64) -> BatchPlace {
    BatchPlace {
        base_offset: header.base_offset,
        last_offset: header.last_offset(),
        position,
        size_bytes: u64::from(header.size_bytes),
    }
}

fn relative(base_offset: i64, entry: &[u8], at: usize) -> i64 {
    base_offset.wrapping_add(i64::from(bytes::get_i32(entry, at).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::index::OffsetEntries;
    use crate::io::SimDisk;
    use crate::segment::OpenFiles;

    /// A sealed segment at 100 with this offset index and an empty log.
    fn segment(entries: &[(i32, i32)]) -> (Folder, Arc<LogSegment>, Vec<u8>) {
        let disk = SimDisk::new();
        let bytes: Vec<u8> = entries
            .iter()
            .flat_map(|(offset, position)| [offset.to_be_bytes(), position.to_be_bytes()].concat())
            .collect();
        let dir = Path::new("/orders-0");
        disk.put(&dir.join("00000000000000000100.log"), Vec::new(), None).unwrap();
        disk.put(&dir.join("00000000000000000100.index"), bytes.clone(), None).unwrap();
        let folder = Folder::new(Arc::new(disk), dir, OpenFiles::new(10));
        (folder, Arc::new(LogSegment::new(100, 0)), bytes)
    }

    #[test]
    fn a_fetch_is_bounded_as_the_whole_index_says() {
        for count in [0, 1, 2, 3, 600, 1400] {
            let entries: Vec<(i32, i32)> = (1..=count).map(|n| (n * 2, n * 10)).collect();
            let (folder, segment, bytes) = segment(&entries);
            let whole = OffsetEntries::new(&bytes, 100);
            for position in [0_i32, 5, 10, 20, 6000, 14_000, i32::MAX] {
                for size in [0_i32, 1, 5, 10, 4000, i32::MAX] {
                    let wanted = whole.fetch_upper_bound_offset(position, size);
                    let found = segment
                        .fetch_upper_bound_offset(
                            &folder,
                            u64::from(position.unsigned_abs()),
                            u64::from(size.unsigned_abs()),
                        )
                        .unwrap();
                    assert_eq!(
                        found,
                        wanted.map(|entry| entry.offset),
                        "{position} {size} {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_segment_that_is_gone_is_not_found() {
        let (folder, segment, _) = segment(&[]);
        let (storage, open_files) = (Arc::clone(folder.storage()), super::super::OpenFiles::new(1));
        let folder = Folder::new(storage, Path::new("/elsewhere"), open_files);
        let error = segment.translate(&folder, 100).unwrap_err();
        assert_eq!(error.kind(), crate::Kind::NotFound);
        assert!(!segment.is_open());
    }

    #[test]
    fn an_index_in_memory_answers_as_its_file() {
        let entries: Vec<(i32, i32)> = (1..=1400).map(|n| (n * 3, n * 10)).collect();
        let (folder, segment, bytes) = segment(&entries);
        let whole = OffsetEntries::new(&bytes, 100);
        let handles = segment.handles(&folder).unwrap();
        let offsets = [0, 99, 100, 102, 103, 104, 2000, 4299, 4300, 4301, i64::MAX];
        // The first look-ups read the file, the others do not.
        for round in 0..3 {
            for offset in offsets {
                let found = segment.lookup_offset(&handles, &folder, offset).unwrap();
                assert_eq!(found, whole.lookup(offset), "{offset} in round {round}");
            }
        }
        let memory = handles.index_in_memory(&segment, &folder, FileRole::OffsetIndex).unwrap();
        assert_eq!(memory, Some(&*bytes));
    }

    #[test]
    fn an_index_that_is_not_in_memory_stays_out_when_there_is_no_room() {
        let open_files = OpenFiles::new(10);
        let each = 16 << 20;
        assert!(open_files.room(each + 1).is_none());
        let rooms: Vec<_> = (0..4).map(|_| open_files.room(each).unwrap()).collect();
        assert!(open_files.room(1).is_none());
        drop(rooms);
        assert!(open_files.room(1).is_some());
    }
}
