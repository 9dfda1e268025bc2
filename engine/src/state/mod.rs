//! What does the log mean? Producers, snapshots, leader epochs and checkpoint files.
//!
//! Everything here takes bytes and gives bytes: the files themselves are opened further right.

pub mod checkpoint;
pub mod epochs;
mod id_map;
pub mod producer;
pub mod replay;
pub mod snapshot;
pub mod snapshot_set;
pub mod table;

pub use checkpoint::{EpochEntry, OffsetCheckpoint, OffsetEntry};
pub use epochs::LeaderEpochs;
pub use producer::ProducerEntry;
pub use replay::{CompletedTransaction, EventKind, ProducerEvent, ReplayProblem, ReplayState};
pub use snapshot::{Snapshot, SnapshotFault, write_snapshot};
pub use snapshot_set::SnapshotSet;
pub use table::ProducerTable;
