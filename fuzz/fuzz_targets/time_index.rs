//! A time index file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::index::{TimeEntries, TimeIndexBuilder};
use siltstone_fuzz::split_i64;

fuzz_target!(|bytes: &[u8]| {
    let (base, bytes) = split_i64(bytes);
    let (target, bytes) = split_i64(bytes);
    let entries = TimeEntries::new(bytes, base);
    let found = entries.lookup(target);
    let is_none = (found.timestamp_ms, found.offset) == (-1, base);
    assert!(is_none || found.timestamp_ms <= target, "{found:?} for {target}");
    let _ = (entries.sanity_check(), entries.last());
    assert!(entries.count_below(target) <= entries.count());
    let Ok(mut builder) = TimeIndexBuilder::from_bytes(bytes.to_vec(), base, 1 << 20) else {
        return;
    };
    let _ = builder.maybe_append(target, base, true);
    builder.truncate_to(target);
    let _ = builder.maybe_append(target, target, false);
    assert!(builder.count() <= entries.count() + 2);
});
