//! The metadata log is replayed to what Kafka's own image loader makes of it.

use std::sync::OnceLock;

use serde_json::Value;
use siltstone_tests::archive::Archive;

/// The archive with records, images and the metadata logs of three nodes.
pub fn archive() -> &'static Archive {
    static OPENED: OnceLock<Archive> = OnceLock::new();
    OPENED.get_or_init(|| Archive::open("metadata.tar.zst"))
}

/// A JSON file of the archive.
pub fn json(path: &str) -> Value {
    let bytes = archive().read(path).unwrap_or_else(|| panic!("no {path} in the archive"));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The bytes of a hexadecimal text.
pub fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}
