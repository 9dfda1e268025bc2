//! A transaction index file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::index::{TxnEntries, TxnIndexBuilder};
use siltstone_fuzz::split_i64;

fuzz_target!(|bytes: &[u8]| {
    let (from, bytes) = split_i64(bytes);
    let (upper, bytes) = split_i64(bytes);
    let entries = TxnEntries::new(bytes);
    let (mut slow, mut fast) = (Vec::new(), Vec::new());
    let is_done = entries.collect_aborted(from, upper, &mut slow);
    // A stable offset behind its own transaction's end, which no broker writes, ends Kafka's search
    // where a binary search has already passed.
    let is_possible = entries
        .iter()
        .all(|txn| txn.last_offset.checked_add(1).is_none_or(|end| txn.last_stable_offset <= end));
    if entries.is_rising() && is_possible && from < upper {
        let is_done = is_done.expect("no entry that is refused");
        assert_eq!(entries.collect_aborted_rising(from, upper, &mut fast), is_done);
        assert_eq!(slow, fast);
    }
    let _ = entries.sanity_check(from);
    let mut builder = TxnIndexBuilder::from_bytes(bytes.to_vec());
    builder.truncate_to(upper);
    if let Some(txn) = entries.get(0) {
        let _ = builder.append(&txn);
    }
    assert!(builder.entries().count() <= entries.count() + 1);
});
