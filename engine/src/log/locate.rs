//! Where in the files of a partition is the batch of an offset? By its offset index where that is
//! right, else by a scan.

use std::ops::ControlFlow;

use crate::error::{Kind, Result};
use crate::index::{OffsetEntries, OffsetEntry, offset};
use crate::io::{File, MapMode, OpenMode, Reader, Source, Storage};
use crate::log::facts::LogFacts;
use crate::record::BatchHeader;
use crate::record::batch::HEADER_SIZE;
use crate::record::scan::{ScannedBatch, scan};
use crate::segment::FileRole;

/// Bytes that are read at a time: index intervals are smaller by default.
const WINDOW_BYTES: usize = 64 << 10;

const ENTRY_SIZE: u64 = 8;
const _: () = assert!(offset::ENTRY_SIZE == 8);

impl LogFacts {
    /// The first batch that ends at `offset` or behind it, with its position in its segment. `None`
    /// when there is none, or when damage stands before it. Nothing but frames and checksums is
    /// checked.
    pub fn find_batch(
        &self,
        storage: &dyn Storage,
        offset: i64,
        maps: MapMode,
    ) -> Result<Option<(BatchHeader, u64)>> {
        let holds = self.segments.partition_point(|segment| segment.base_offset <= offset);
        for segment in self.segments.iter().skip(holds.saturating_sub(1)) {
            let base_offset = segment.base_offset;
            let path = self.path_of(base_offset, FileRole::Log);
            let file = storage.open(&path, OpenMode::Read)?;
            let size = file.metadata()?.size_bytes;
            let mut source = Reader::new(&*file, size, WINDOW_BYTES, maps);
            let start = self.position_before(storage, base_offset, offset, &mut source);
            let mut found = None;
            let mut visitor = |batch: ScannedBatch<'_>| {
                if batch.header.last_offset() < offset {
                    return Ok(ControlFlow::Continue(()));
                }
                found = Some((*batch.header, batch.position));
                Ok(ControlFlow::Break(()))
            };
            let end = scan(&mut source, start, u64::MAX, &mut visitor)?;
            if found.is_some() || end.position < source.end() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// A position in the segment at which a batch begins, no behind the batch of `offset`; 0 when
    /// the index does not help.
    pub(super) fn position_before<S: Source + ?Sized>(
        &self,
        storage: &dyn Storage,
        base_offset: i64,
        offset: i64,
        source: &mut S,
    ) -> u64 {
        let entry = self.index_entry(storage, base_offset, offset).ok().flatten();
        entry.and_then(|entry| confirmed(entry, base_offset, source)).unwrap_or_default()
    }

    /// The last entry of the offset index for `offset` or before, by a binary search in the file:
    /// it may be large, and end in zeros.
    fn index_entry(
        &self,
        storage: &dyn Storage,
        base_offset: i64,
        offset: i64,
    ) -> Result<Option<OffsetEntry>> {
        let path = self.path_of(base_offset, FileRole::OffsetIndex);
        let file = match storage.open(&path, OpenMode::Read) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            other => other?,
        };
        let (mut first, mut end) = (0, file.metadata()?.size_bytes / ENTRY_SIZE);
        let mut found = None;
        while first < end {
            let middle = first + (end - first) / 2;
            match read_entry(&*file, middle, base_offset)? {
                Some(entry) if entry.offset <= offset => {
                    found = Some(entry);
                    first = middle + 1;
                }
                _ => end = middle,
            }
        }
        Ok(found)
    }
}

/// The entry in a slot; `None` for zeros, which stand behind the entries of a preallocated file.
fn read_entry(file: &dyn File, slot: u64, base_offset: i64) -> Result<Option<OffsetEntry>> {
    let mut bytes = [0; offset::ENTRY_SIZE];
    let read = file.read_at(&mut bytes, slot.saturating_mul(ENTRY_SIZE))?;
    let is_entry = read == bytes.len() && bytes != [0; offset::ENTRY_SIZE];
    Ok(OffsetEntries::new(&bytes, base_offset).get(0).filter(|_| is_entry))
}

/// The position of an entry, if a batch begins there that it may name.
pub(super) fn confirmed<S: Source + ?Sized>(
    entry: OffsetEntry,
    base_offset: i64,
    source: &mut S,
) -> Option<u64> {
    let position = u64::try_from(entry.position).ok()?;
    let window = source.window(position, HEADER_SIZE).ok()?;
    let header = match window.get(16) {
        Some(0 | 1) => BatchHeader::parse_legacy(window),
        _ => BatchHeader::parse(window),
    };
    header.filter(|header| entry.may_name(header, base_offset)).map(|_| position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::record::builder::{BatchBuilder, BatchOptions};
    use crate::record::codec::Compressor;

    /// Batches of two records each at offsets 10 to 19 and 20 to 29, in two segments.
    fn partition(index: &dyn Fn(i64, u64) -> Vec<u8>) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for base in [10, 20] {
            let (mut log, mut positions) = (Vec::new(), Vec::new());
            for base_offset in (base..base + 10).step_by(2) {
                positions.push((base_offset + 1 - base, u64::try_from(log.len()).unwrap()));
                let options = BatchOptions { base_offset, ..BatchOptions::default() };
                let mut builder = BatchBuilder::new(options).unwrap();
                builder.append(0, None, None).unwrap();
                builder.append(0, None, None).unwrap();
                builder.write_to(&mut Compressor::new(), &mut log).unwrap();
            }
            let index: Vec<u8> = positions.iter().flat_map(|&(at, to)| index(at, to)).collect();
            std::fs::write(dir.path().join(format!("{base:020}.log")), log).unwrap();
            std::fs::write(dir.path().join(format!("{base:020}.index")), index).unwrap();
        }
        dir
    }

    fn entry(relative: i64, position: u64) -> Vec<u8> {
        let relative = i32::try_from(relative).unwrap().to_be_bytes();
        [relative, i32::try_from(position).unwrap().to_be_bytes()].concat()
    }

    #[test]
    fn the_batch_of_every_offset_is_found_whatever_the_index_says() {
        let indexes: [&dyn Fn(i64, u64) -> Vec<u8>; 4] = [
            &entry,
            &|at, to| if at < 5 { entry(at, to) } else { vec![0; 8] },
            &|_, _| vec![0xff; 8],
            &|at, to| entry(at, to + 1),
        ];
        for index in indexes {
            let dir = partition(index);
            let facts = LogFacts::read(&Disk::new(), dir.path()).unwrap();
            let find = |offset| facts.find_batch(&Disk::new(), offset, MapMode::Never).unwrap();
            for offset in 10..30 {
                let (header, _) = find(offset).unwrap();
                assert_eq!(header.base_offset, offset / 2 * 2);
            }
            assert_eq!(find(5).unwrap().0.base_offset, 10);
            assert_eq!(find(30), None);
        }
    }

    #[test]
    fn a_batch_behind_damage_is_not_found() {
        let dir = partition(&|_, _| Vec::new());
        let path = dir.path().join("00000000000000000010.log");
        let mut log = std::fs::read(&path).unwrap();
        log[100] ^= 1;
        std::fs::write(&path, log).unwrap();
        let facts = LogFacts::read(&Disk::new(), dir.path()).unwrap();
        assert_eq!(facts.find_batch(&Disk::new(), 18, MapMode::Never).unwrap(), None);
        assert!(facts.find_batch(&Disk::new(), 20, MapMode::Never).unwrap().is_some());
    }
}
