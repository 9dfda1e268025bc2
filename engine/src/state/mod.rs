//! What does the log mean? Producers, snapshots, leader epochs and checkpoint files.
//!
//! Everything here takes bytes and gives bytes: the files themselves are opened further right.

pub mod checkpoint;
pub mod epochs;

pub use checkpoint::{EpochEntry, OffsetCheckpoint, OffsetEntry};
pub use epochs::LeaderEpochs;
