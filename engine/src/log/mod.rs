//! One partition: what is in its directory, whether it is sound, and how it is made so.

pub mod compare;
pub mod coordinator;
pub mod facts;
pub mod inventory;
mod locate;
pub mod name;
pub mod progress;
pub mod read_files;
pub mod recover;
pub mod stats;
pub mod transactions;
pub mod verify;

pub use compare::{Comparison, compare_logs};
pub use coordinator::{CoordinatedTransaction, Coordinators};
pub use facts::{LogEnd, LogFacts, SegmentFacts};
pub use inventory::{Inventory, SegmentFiles};
pub use name::{FolderKind, FolderName};
pub use read_files::{LogReader, ReadOptions, Selection, read_log};
pub use stats::LogStats;
pub use transactions::{OpenTransaction, Transactions, read_transactions};
pub use verify::{PartitionReport, VerifyOptions, verify_file, verify_partition};
