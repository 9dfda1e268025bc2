//! Logs whose segments wait to be uploaded, and the loops that the choice cannot do without.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, open, statat};
use siltstone::log::SegmentRow;
use siltstone::tier::{UploadTable, UploadView};

use crate::Result;

/// Offsets of a segment.
pub const SEGMENT_OFFSETS: i64 = 1000;

/// A table of so many logs with so many segments each, of which the last `to_copy` sealed ones are
/// not copied; all are stable.
#[must_use]
pub fn table(logs: i64, segments: i64, to_copy: i64) -> UploadTable {
    let mut table = UploadTable::default();
    let copied_segments = (segments - 1 - to_copy).max(0);
    for _ in 0..logs {
        for number in 0..segments {
            table.columns_mut().push(SegmentRow {
                base_offset: number * SEGMENT_OFFSETS,
                size_bytes: 1 << 30,
                max_timestamp_ms: 1_700_000_000_000 + number,
                may_have_txns: false,
            });
        }
        table.end_log(&UploadView {
            last_stable_offset: segments * SEGMENT_OFFSETS,
            copied_offset: copied_segments * SEGMENT_OFFSETS - 1,
            ..UploadView::default()
        });
    }
    table
}

/// The base offsets of the same logs.
#[must_use]
pub fn bases(segments: i64) -> Vec<i64> {
    (0..segments).map(|number| number * SEGMENT_OFFSETS).collect()
}

/// The least that a list takes: the range, and a copy of its bases.
pub fn limit_list(bases: &[i64], from: i64, last_stable_offset: i64, found: &mut Vec<i64>) {
    let (first, end) = limit_range(bases, from, last_stable_offset);
    found.extend_from_slice(bases.get(first.saturating_sub(1)..end).unwrap_or_default());
}

/// The least that a range takes: two binary searches.
#[must_use]
pub fn limit_range(bases: &[i64], from: i64, last_stable_offset: i64) -> (usize, usize) {
    let first = bases.partition_point(|base| *base <= from);
    (first, bases.partition_point(|base| *base <= last_stable_offset))
}

/// The partition directories of a log directory.
///
/// # Errors
/// When it cannot be listed.
pub fn partitions(home: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// The least that a look at names and sizes takes: lists a directory and asks for the size of each
/// file; gives their sum.
///
/// # Errors
/// When the directory cannot be listed.
pub fn limit_listing(dir: &Path) -> Result<u64> {
    let descriptor =
        open(dir, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = 0;
    for entry in Dir::read_from(&descriptor)? {
        let entry = entry?;
        let status = statat(&descriptor, entry.file_name(), AtFlags::empty())?;
        bytes += u64::try_from(status.st_size)?;
    }
    Ok(bytes)
}
