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

/// A CRC-32 (IEEE) over pieces.
#[derive(Clone, Debug, Default)]
pub struct Crc32(crc32fast::Hasher);

impl Crc32 {
    /// Of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        Crc32(crc32fast::Hasher::new())
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes added.
    #[must_use]
    pub fn finish(self) -> u32 {
        self.0.finalize()
    }
}
