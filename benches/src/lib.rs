//! What the benchmarks share: generated logs and timing.
