//! Where do decompressed bytes go?

/// The least that is allocated: one block of what Kafka's lz4 writer makes.
const SIZE_MIN: usize = 64 * 1024;

/// A buffer that is kept from payload to payload and grows only when bytes that really came do not
/// fit.
///
/// All of it is initialised, so that it is zeroed once per growth and not once per batch.
#[derive(Default)]
pub(super) struct Scratch {
    bytes: Vec<u8>,
}

impl Scratch {
    /// How many bytes there are without growing.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The first `size` bytes, or all when there are fewer.
    pub(super) fn filled(&self, size: usize) -> &[u8] {
        self.bytes.get(..size).unwrap_or(&self.bytes)
    }

    /// The bytes from `from` on, at least `size` of them. Grows by doubling, but past `size_max` in
    /// total only when `from + size` asks for it.
    pub(super) fn room(&mut self, from: usize, size: usize, size_max: usize) -> &mut [u8] {
        let needed = from.saturating_add(size);
        if needed > self.bytes.len() {
            let doubled = self.bytes.len().saturating_mul(2).max(SIZE_MIN).min(size_max);
            self.bytes.resize(needed.max(doubled), 0);
        }
        self.bytes.get_mut(from..).unwrap_or_default()
    }

    /// Gives back the memory above `size` bytes.
    pub(super) fn shrink_to(&mut self, size: usize) {
        if self.bytes.len() > size {
            self.bytes.truncate(size);
            self.bytes.shrink_to_fit();
        }
    }
}
