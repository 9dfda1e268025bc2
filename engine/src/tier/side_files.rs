//! May the side files of a segment be uploaded? What each of them tells by itself; the log is not
//! read.
//!
//! A broken file does no harm where it can be rebuilt from the log. In remote storage nobody does
//! that: a reader would be led astray until the segment expires, and no replica could be built from
//! it.

use crate::index::OffsetEntries;
use crate::index::check::{History, OffsetIndexCheck, TimeIndexCheck, TxnIndexCheck};
use crate::index::{offset, time, txn};
use crate::problem::Code;
use crate::segment::FileRole;
use crate::state::Snapshot;

/// No index is larger.
pub(super) const INDEX_BYTES_MAX: u64 = 1 << 30;

/// What is wrong with an index by its size in bytes alone, `None` for a file that is not there; and
/// whether its bytes are worth a look.
#[must_use]
pub fn fault_of_size(role: FileRole, size_bytes: Option<u64>) -> Option<Code> {
    let (entry_size, stray) = match role {
        FileRole::OffsetIndex => (offset::ENTRY_SIZE, Code::IndexSize),
        FileRole::TimeIndex => (time::ENTRY_SIZE, Code::IndexSize),
        FileRole::TxnIndex => (txn::ENTRY_SIZE, Code::TxnindexSize),
        FileRole::Log | FileRole::Snapshot => return None,
    };
    match size_bytes {
        // There is none as long as no transaction was aborted.
        None if role == FileRole::TxnIndex => None,
        None => Some(Code::IndexMissing),
        Some(size) => {
            let entry_size = u64::try_from(entry_size).unwrap_or(1);
            (!size.is_multiple_of(entry_size)).then_some(stray)
        }
    }
}

/// What is wrong with an index, of a segment that is not written to any more, by its bytes: sizes,
/// order, entries that name what the log does not have.
#[must_use]
pub fn fault_of_bytes(
    role: FileRole,
    bytes: &[u8],
    base_offset: i64,
    log_size_bytes: u64,
) -> Option<Code> {
    let problems = match role {
        FileRole::OffsetIndex => OffsetIndexCheck::new(bytes, base_offset).without_log(),
        FileRole::TimeIndex => TimeIndexCheck::new(bytes, base_offset).without_log(),
        FileRole::TxnIndex => {
            TxnIndexCheck::new(Some(bytes), base_offset, History::Partial).without_log()
        }
        FileRole::Log | FileRole::Snapshot => return None,
    };
    if let Some(problem) = problems.first() {
        return Some(problem.code);
    }
    if role != FileRole::OffsetIndex {
        return None;
    }
    let entries = OffsetEntries::new(bytes, base_offset);
    let last = entries.get(entries.count().checked_sub(1)?)?;
    let is_inside = u64::try_from(last.position).is_ok_and(|position| position < log_size_bytes);
    (!is_inside).then_some(Code::IndexBeyondLog)
}

/// What is wrong with the producer snapshot at `offset`.
#[must_use]
pub fn fault_of_snapshot(bytes: &[u8], offset: i64) -> Option<Code> {
    match Snapshot::read(bytes) {
        Err(fault) => Some(fault.code),
        Ok(snapshot) => (!snapshot.is_before(offset)).then_some(Code::SnapshotMismatch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FileRole::{OffsetIndex, TimeIndex, TxnIndex};

    #[test]
    fn a_size_that_no_index_has_is_told_without_a_look() {
        for role in [OffsetIndex, TimeIndex] {
            assert_eq!(fault_of_size(role, None), Some(Code::IndexMissing));
            assert_eq!(fault_of_size(role, Some(0)), None);
            assert_eq!(fault_of_size(role, Some(24)), None);
            assert_eq!(fault_of_size(role, Some(25)), Some(Code::IndexSize));
        }
        assert_eq!(fault_of_size(TxnIndex, None), None);
        assert_eq!(fault_of_size(TxnIndex, Some(34)), None);
        assert_eq!(fault_of_size(TxnIndex, Some(35)), Some(Code::TxnindexSize));
        assert_eq!(fault_of_size(FileRole::Log, Some(7)), None);
    }

    fn offsets(entries: &[(i32, i32)]) -> Vec<u8> {
        let bytes = |&(offset, position): &(i32, i32)| {
            [offset.to_be_bytes(), position.to_be_bytes()].concat()
        };
        entries.iter().flat_map(bytes).collect()
    }

    fn times(entries: &[(i64, i32)]) -> Vec<u8> {
        let bytes = |&(timestamp, offset): &(i64, i32)| {
            [&timestamp.to_be_bytes()[..], &offset.to_be_bytes()].concat()
        };
        entries.iter().flat_map(bytes).collect()
    }

    #[test]
    fn an_index_is_judged_by_its_entries() {
        let offset_fault = |entries: &[_]| fault_of_bytes(OffsetIndex, &offsets(entries), 100, 90);
        assert_eq!(offset_fault(&[]), None);
        assert_eq!(offset_fault(&[(0, 0)]), None);
        assert_eq!(offset_fault(&[(3, 40), (5, 89)]), None);
        assert_eq!(offset_fault(&[(3, 40), (5, 90)]), Some(Code::IndexBeyondLog));
        assert_eq!(offset_fault(&[(3, 40), (3, 50)]), Some(Code::IndexOrder));
        assert_eq!(offset_fault(&[(3, 40), (0, 0)]), Some(Code::IndexZeroPadding));
        // spec: cases S183
        let time_fault = |entries: &[_]| fault_of_bytes(TimeIndex, &times(entries), 100, 90);
        assert_eq!(time_fault(&[(1000, 1), (2000, 2)]), None);
        assert_eq!(time_fault(&[(2000, 1), (1000, 2)]), Some(Code::TimeindexOrder));
        assert_eq!(time_fault(&[(2000, 1), (0, 0)]), Some(Code::TimeindexZeroPadding));
        let txn_fault = |bytes: &[u8]| fault_of_bytes(TxnIndex, bytes, 100, 90);
        assert_eq!(txn_fault(&[]), None);
        assert_eq!(txn_fault(&[0; 34]), Some(Code::TxnindexOrder), "it ends below the base");
        assert_eq!(txn_fault(&[9; 35]), Some(Code::TxnindexSize));
    }
}
