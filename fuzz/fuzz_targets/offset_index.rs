//! An offset index file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::index::{OffsetEntries, OffsetIndexBuilder};
use siltstone_fuzz::split_i64;

fuzz_target!(|bytes: &[u8]| {
    let (base, bytes) = split_i64(bytes);
    let (target, bytes) = split_i64(bytes);
    let entries = OffsetEntries::new(bytes, base);
    let found = entries.lookup(target);
    let is_base = (found.offset, found.position) == (base, 0);
    assert!(is_base || found.offset <= target, "{found:?} for {target}");
    let _ = entries.fetch_upper_bound_offset(target as i32, (target >> 32) as i32);
    let _ = entries.sanity_check();
    assert!(entries.count_below(target) <= entries.count());
    let Ok(mut builder) = OffsetIndexBuilder::from_bytes(bytes.to_vec(), base, 1 << 20) else {
        return;
    };
    let _ = builder.append(target, 0);
    builder.truncate_to(target);
    let _ = builder.append(target, 0);
    assert!(builder.count() <= entries.count() + 2);
});
