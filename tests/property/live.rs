//! A log behaves as a map of batches does: any operations in any order, stops and power cuts among
//! them.

use proptest::collection::vec;
use proptest::prelude::*;
use siltstone_tests::turns::{Draw, KINDS, live};

use crate::runner::check;

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    vec((0..KINDS, any::<u8>()).prop_map(|(kind, number)| Draw { kind, number }), 1..60)
}

#[test]
fn a_log_holds_what_was_appended_whatever_happens() {
    check(150, &draws(), |draws| live(draws, false));
}

#[test]
fn a_log_with_remote_storage_holds_what_is_nowhere_else() {
    check(150, &draws(), |draws| live(draws, true));
}
