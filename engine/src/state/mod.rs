//! What does the log mean? Producers, snapshots, leader epochs and checkpoint files.
//!
//! Everything here takes bytes and gives bytes: the files themselves are opened further right.

pub mod checkpoint;
pub mod epochs;
mod id_map;
mod json;
pub mod meta;
pub mod producer;
pub mod properties;
pub mod replay;
pub mod snapshot;
pub mod snapshot_set;
pub mod summary;
pub mod table;

pub use checkpoint::{EpochEntry, OffsetCheckpoint, OffsetEntry};
pub use epochs::LeaderEpochs;
pub use meta::MetaProperties;
pub use producer::ProducerEntry;
pub use properties::Properties;
pub use replay::{CompletedTransaction, EventKind, ProducerEvent, ReplayProblem, ReplayState};
pub use snapshot::{Snapshot, SnapshotFault, write_snapshot};
pub use snapshot_set::SnapshotSet;
pub use summary::{ReplayProblems, SegmentSummary};
pub use table::ProducerTable;
