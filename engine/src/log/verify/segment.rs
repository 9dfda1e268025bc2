//! One segment of a log: every batch looked at once, its indexes beside them.

use std::ops::ControlFlow;

use super::batches::SegmentCheck;
use super::findings::Place;
use super::meter::Meter;
use super::partition::Walk;
use crate::error::{Kind, Result};
use crate::index::check::{History, OffsetIndexCheck, TimeIndexCheck, TxnIndexCheck};
use crate::io::{File, MapMode, OpenMode, Reader};
use crate::log::inventory::SegmentFiles;
use crate::problem::{Code, Severity};
use crate::record::scan::{ScannedBatch, scan};
use crate::segment::FileRole;
use crate::segment::damage::{Survivors, examine};
use crate::units::NO_TIMESTAMP;

/// What is read of a log at a time: it stays in the cache while it is looked at.
const READ_BYTES: usize = 256 << 10;
/// What is mapped of a log at a time.
const MAP_BYTES: usize = 8 << 20;
/// The part of an index's size that does not depend on the log: `segment.index.bytes` of zeros
/// behind the entries.
const INDEX_SIZE_MAX: u64 = 64 << 20;

/// Checks a segment. `Break` when its log is damaged: what follows cannot be judged.
pub(super) fn check_segment(
    walk: &mut Walk<'_>,
    files: &SegmentFiles,
    next_base: Option<i64>,
) -> Result<ControlFlow<()>> {
    let indexes = Indexes::read(walk, files)?;
    let Some(file) = open_log(walk, files) else { return Ok(ControlFlow::Continue(())) };
    let size = files.log_size_bytes;
    let mut source = reader(&*file, size, walk.options.maps);
    let base = files.base_offset;
    walk.next_offset = walk.next_offset.max(base);
    let history = if walk.producers.is_partial { History::Partial } else { History::Whole };
    let mut visitor = SegmentCheck {
        files,
        next_base,
        file: &*file,
        offset_index: indexes.offset.as_deref().map(|bytes| OffsetIndexCheck::new(bytes, base)),
        time_index: indexes.time.as_deref().map(|bytes| TimeIndexCheck::new(bytes, base)),
        txn_index: TxnIndexCheck::new(indexes.txn.as_deref(), base, history),
        max_timestamp: NO_TIMESTAMP,
        batches: 0,
        meter: Meter::new(walk.options.progress),
        walk,
    };
    let scanned = match scan(&mut source, 0, u64::MAX, &mut visitor) {
        Ok(end) => examine(&mut source, end, base, visitor.walk.next_offset).map(|it| (end, it)),
        Err(error) => Err(error),
    };
    match scanned {
        Ok((end, damage)) => visitor.finish(size, end.position, damage),
        Err(error) => visitor.give_up(size, error),
    }
}

/// Counts the whole batches of a segment that lies behind damage, and says what else is damaged.
pub(super) fn count_survivors(walk: &mut Walk<'_>, files: &SegmentFiles) -> Result<Survivors> {
    let mut survivors = Survivors::default();
    let Some(file) = open_log(walk, files) else { return Ok(survivors) };
    let size = files.log_size_bytes;
    let mut source = reader(&*file, size, walk.options.maps);
    let mut meter = Meter::new(walk.options.progress);
    let mut visitor = |batch: ScannedBatch<'_>| {
        meter.at(batch.position)?;
        survivors.batches = survivors.batches.saturating_add(1);
        survivors.first_offset.get_or_insert(batch.header.base_offset);
        survivors.end_offset = Some(batch.header.next_offset());
        Ok(ControlFlow::Continue(()))
    };
    let scanned = match scan(&mut source, 0, u64::MAX, &mut visitor) {
        Ok(end) => {
            let expected = survivors.end_offset.unwrap_or(files.base_offset);
            examine(&mut source, end, files.base_offset, expected).map(|damage| (expected, damage))
        }
        Err(error) => Err(error),
    };
    match scanned {
        Ok((_, None)) => {}
        Ok((expected, Some(damage))) => {
            let place = Place::at(damage.position, expected);
            walk.findings.add(damage.code, Severity::Corrupt, &files.log, place, damage.detail);
            survivors.add(damage.survivors);
        }
        Err(error) => walk.take_error(&files.log, error)?,
    }
    meter.finish(size)?;
    Ok(survivors)
}

fn reader(file: &dyn File, size_bytes: u64, maps: MapMode) -> Reader<'_> {
    let window_bytes = match maps {
        MapMode::Always => MAP_BYTES,
        MapMode::Never => READ_BYTES,
    };
    Reader::new(file, size_bytes, window_bytes, maps)
}

fn open_log(walk: &mut Walk<'_>, files: &SegmentFiles) -> Option<Box<dyn File>> {
    match walk.storage.open(&walk.dir.join(&files.log), OpenMode::Read) {
        Ok(file) => Some(file),
        Err(error) => {
            walk.blind(&files.log, &error);
            walk.options.progress.bytes(files.log_size_bytes);
            None
        }
    }
}

/// The bytes of a segment's indexes, where there are files.
struct Indexes {
    offset: Option<Vec<u8>>,
    time: Option<Vec<u8>>,
    txn: Option<Vec<u8>>,
}

impl Indexes {
    fn read(walk: &mut Walk<'_>, files: &SegmentFiles) -> Result<Self> {
        let mut read = |role| read_index(walk, files, role);
        Ok(Indexes {
            offset: read(FileRole::OffsetIndex)?,
            time: read(FileRole::TimeIndex)?,
            txn: read(FileRole::TxnIndex)?,
        })
    }
}

/// The bytes of an index; `None` when there is none, or none that can be looked at, which is told.
fn read_index(
    walk: &mut Walk<'_>,
    files: &SegmentFiles,
    role: FileRole,
) -> Result<Option<Vec<u8>>> {
    let Some(name) = files.index(role) else { return Ok(None) };
    // No batch has more than one entry, nor fewer than 26 bytes.
    let limit = INDEX_SIZE_MAX.saturating_add(files.log_size_bytes.saturating_mul(2));
    match walk.storage.read(&walk.dir.join(name), limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == Kind::Limit => {
            let code =
                if role == FileRole::TxnIndex { Code::TxnindexSize } else { Code::IndexSize };
            let detail = "larger than any index of this log";
            walk.findings.add(code, Severity::Repairable, name, Place::FILE, detail);
            Ok(None)
        }
        Err(error) => {
            walk.findings.unreadable(name, &error);
            Ok(None)
        }
    }
}
