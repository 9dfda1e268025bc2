//! A snappy payload.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::record::codec::Codec;

fuzz_target!(|payload: &[u8]| siltstone_fuzz::open(Codec::Snappy, payload));
