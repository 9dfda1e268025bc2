//! An entry of magic 0 or 1, and what it wraps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::record::batch::BatchHeader;
use siltstone::record::codec::{Codec, Decompressor};
use siltstone::record::legacy;

const PAYLOAD_LIMIT_BYTES: usize = 1 << 20;

fuzz_target!(|entry: &[u8]| {
    let header = BatchHeader::parse_legacy(entry);
    let Ok(message) = legacy::parse_message(entry) else { return };
    let header = header.expect("a message has a header");
    let Some(payload) = message.value else { return };
    // As inner entries themselves: the fuzzer need not compress to reach what is behind.
    let _ = legacy::unwrap(&header, payload);
    let Some(codec) = Codec::from_id(header.codec_id()) else { return };
    let mut decompressor = Decompressor::new();
    let opened = decompressor.decompress(codec, header.magic, payload, PAYLOAD_LIMIT_BYTES);
    if let Ok(payload) = opened {
        let _ = legacy::unwrap(&header, payload);
    }
});
