//! CRC-32C for batches and snapshots, CRC-32 for the old message formats.

/// The CRC-32C (Castagnoli) of `bytes`.
#[inline]
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The CRC-32C of some bytes with checksum `crc`, followed by `bytes`.
#[inline]
#[must_use]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}

/// The CRC-32 (IEEE) of `bytes`.
#[inline]
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
