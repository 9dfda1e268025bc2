//! All logs of a node: the log directories, opened together, and what becomes of them.
//!
//! ```text
//! open      locks, whose directories these are, checkpoints, markers; then every log
//! in use    logs are found, made, moved, deleted; checkpoints are written; due work is run
//! close     logs, checkpoints, markers, locks
//! ```
//!
//! The engine has no thread. A bulk call uses as many as it is allowed and ends them; everything
//! that comes due later is handed out by [`Engine::due_work`] and run by the host. A directory
//! whose disk fails is taken offline, and its logs with it; the others go on.

mod checkpoints;
mod close;
mod compact;
mod counters;
mod create;
mod directory;
mod due;
#[expect(clippy::module_inception, reason = "what owns the log directories is called so, too")]
mod engine;
mod flush;
mod identity;
mod load;
mod load_logs;
mod many;
mod options;
mod partitions;
mod remove;
mod report;

pub use checkpoints::CheckpointFile;
pub use counters::EngineCounters;
pub use due::{DueWork, WorkKind};
pub use engine::Engine;
pub use many::{PartitionAppend, PartitionFetch};
pub use options::{EngineOptions, Identity, IsStray, NewLog, TopicConfig};
pub use report::{CloseReport, DirClosed, DirLoaded, LoadReport, LogLoaded};
