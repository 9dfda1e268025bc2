//! What does compaction need, whatever log it is at?

use super::key_map::KeyMap;
use crate::record::BatchReader;
use crate::record::filter::BatchFilter;

/// Bytes of scratch that are kept from segment to segment.
const SCRATCH_BYTES_KEPT: usize = 4 << 20;

/// How much memory a [`Cleaner`] takes, and how it goes about its work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CleanerOptions {
    /// Bytes of the map of keys, 24 for each: `log.cleaner.dedupe.buffer.size`, divided by the
    /// number of cleaners.
    pub dedupe_buffer_bytes: usize,
    /// The part of the map that is filled: `log.cleaner.io.buffer.load.factor`.
    pub load_factor: f64,
    /// Bytes of each of the two buffers: half of `log.cleaner.io.buffer.size`, divided by the
    /// number of cleaners. Larger batches make them grow for as long as they are needed.
    pub io_buffer_bytes: usize,
    /// Bytes that a step reads, and a batch more.
    pub step_bytes: u64,
    /// The most bytes that a compressed batch may open to: what opens to more is an error.
    pub opened_bytes_max: usize,
}

impl Default for CleanerOptions {
    /// Kafka's defaults, steps of 8 MiB, and batches of up to 1 GiB.
    fn default() -> Self {
        // spec: cleaner 1
        CleanerOptions {
            dedupe_buffer_bytes: 128 << 20,
            load_factor: 0.9,
            io_buffer_bytes: 256 << 10,
            step_bytes: 8 << 20,
            opened_bytes_max: 1 << 30,
        }
    }
}

/// The memory of compaction: a map of keys, buffers and codec contexts. It serves one log after
/// another; a host has one for each thread that compacts.
pub struct Cleaner {
    pub(super) options: CleanerOptions,
    pub(super) map: KeyMap,
    pub(super) reader: BatchReader,
    pub(super) filter: BatchFilter,
    pub(super) out: Vec<u8>,
}

impl std::fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cleaner").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Cleaner {
    /// A cleaner without memory yet.
    #[must_use]
    pub fn new(options: CleanerOptions) -> Self {
        Cleaner {
            options,
            map: KeyMap::new(options.dedupe_buffer_bytes, options.load_factor),
            reader: BatchReader::new(options.opened_bytes_max),
            filter: BatchFilter::new(options.opened_bytes_max),
            out: Vec::new(),
        }
    }

    /// Gives back the map, which is as large as the largest round needed.
    pub fn release(&mut self) {
        self.map.release();
        self.shrink();
    }

    /// Gives back what an odd batch has made of the buffers.
    pub(super) fn shrink(&mut self) {
        self.filter.shrink_to(SCRATCH_BYTES_KEPT);
        self.out.shrink_to(self.options.io_buffer_bytes.saturating_mul(2));
    }
}

impl Default for Cleaner {
    fn default() -> Self {
        Cleaner::new(CleanerOptions::default())
    }
}
