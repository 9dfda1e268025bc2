//! A log that is written to, cut, retained, stopped and opened again in any order, power cuts among
//! it: it holds what its model says. Two bytes are one thing to do.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone_tests::turns::{Draw, live};

/// More than these show nothing new, and take long.
const DRAWS_MAX: usize = 80;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let draws = bytes.chunks_exact(2).take(DRAWS_MAX);
    live(draws.map(|pair| Draw { kind: pair[0], number: pair[1] }), first % 2 == 1);
});
