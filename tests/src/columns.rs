//! What a log's columns say of its segments, beside a fresh look at the files.

use std::ops::ControlFlow;
use std::path::Path;

use siltstone::io::{MapMode, OpenMode, Reader, Storage};
use siltstone::log::columns::UNKNOWN_TIMESTAMP_MS;
use siltstone::log::{Log, LogFacts};
use siltstone::record::scan::{ScannedBatch, scan};
use siltstone::segment::FileRole;

/// The columns say of each sealed segment what its files say.
///
/// # Panics
///
/// When they do not.
pub fn check_columns(storage: &dyn Storage, dir: &Path, log: &Log, when: &str) {
    let segments = log.segments();
    let columns = segments.columns();
    let facts = LogFacts::read(storage, dir).expect("a directory");
    assert_eq!(columns.count(), segments.count(), "{when}");
    let bases: Vec<i64> = facts.segments.iter().map(|segment| segment.base_offset).collect();
    assert_eq!(columns.bases(), bases, "{when}");
    let sealed = facts.segments.iter().take(segments.count().saturating_sub(1));
    for (slot, segment) in sealed.enumerate() {
        let row = columns.row(slot).expect("a row");
        let when = format!("{when}, segment {}", segment.base_offset);
        assert_eq!(row.size_bytes, segment.log_size_bytes, "{when}: size");
        if row.max_timestamp_ms != UNKNOWN_TIMESTAMP_MS {
            let largest = largest_timestamp(storage, &facts, segment.base_offset);
            assert_eq!(row.max_timestamp_ms, largest, "{when}: largest timestamp");
        }
        if !row.may_have_txns {
            let size = segment.txn_index_size_bytes.unwrap_or_default();
            assert_eq!(size, 0, "{when}: there is a transaction index");
        }
    }
}

fn largest_timestamp(storage: &dyn Storage, facts: &LogFacts, base_offset: i64) -> i64 {
    let path = facts.path_of(base_offset, FileRole::Log);
    let file = storage.open(&path, OpenMode::Read).expect("a log");
    let size = file.metadata().expect("a size").size_bytes;
    let mut source = Reader::new(&*file, size, 1 << 16, MapMode::Never);
    let mut largest = -1;
    let mut visitor = |batch: ScannedBatch<'_>| {
        largest = largest.max(batch.header.max_timestamp);
        Ok(ControlFlow::Continue(()))
    };
    scan(&mut source, 0, u64::MAX, &mut visitor).expect("batches");
    largest
}
