//! What does the log mean? Producers, snapshots, leader epochs and checkpoint files.
//!
//! Everything here takes bytes and gives bytes: the files themselves are opened further right.

pub mod checkpoint;
pub mod epochs;
pub mod event;
mod id_map;
mod json;
pub mod live;
pub mod meta;
pub mod producer;
pub mod properties;
pub mod replay;
pub mod snapshot;
pub mod snapshot_set;
pub mod table;

pub use checkpoint::{EpochEntry, OffsetCheckpoint, OffsetEntry};
pub use epochs::LeaderEpochs;
pub use event::{CompletedTransaction, EventKind, ProducerEvent, ReplayFault, ReplayProblem};
pub use live::{ProducerState, ProducerStateConfig};
pub use meta::MetaProperties;
pub use producer::ProducerEntry;
pub use properties::Properties;
pub use replay::ReplayState;
pub use snapshot::{Snapshot, SnapshotFault, write_snapshot};
pub use snapshot_set::SnapshotSet;
pub use table::ProducerTable;
