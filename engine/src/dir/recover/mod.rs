//! How do whole log directories become fit to start?
//!
//! Partitions are recovered side by side, in groups: each group is analysed and its new files are
//! written beside the old, made durable by one `syncfs`, and put in place. Checkpoints and the
//! clean-shutdown marker come last, and the marker only when every partition
//! is sound. [`recover_log_dir`] does one directory, [`recover_partition`] one partition alone.

pub(crate) mod checkpoints;
pub(crate) mod directory;
pub(crate) mod group;
mod options;
pub(crate) mod rebuilds;

pub use directory::{bytes_to_read, lock_log_dir, recover_log_dir, recover_partition};
pub use options::{
    DirRecoverOptions, DirReport, PartitionDone, PartitionResult, PartitionSettings,
};
