//! What the benchmarks share: generated logs and timing.

pub mod payload;
