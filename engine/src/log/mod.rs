//! One partition: what is in its directory, whether it is sound, how it is made so, and how it is
//! written to and read.

mod append;
mod append_all;
mod append_error;
mod append_leader;
mod append_many;
pub mod bootstrap;
mod close;
pub mod columns;
mod compact;
pub mod compare;
mod config;
pub mod coordinator;
mod damaged;
mod deletion;
pub mod facts;
mod flush;
mod folder;
pub mod inventory;
mod learn;
mod locate;
mod locate_many;
#[expect(clippy::module_inception, reason = "the partition itself is called a log, too")]
mod log;
pub mod name;
mod offsets;
mod open;
mod producers;
pub mod progress;
mod read;
pub mod read_files;
mod rebuild_producers;
pub mod recover;
mod removal;
pub(crate) mod replace;
mod retain;
mod roll;
#[cfg(all(test, any(loom, shuttle)))]
mod schedules;
mod sealed_files;
mod seat;
pub mod segments;
mod special_offsets;
pub mod stats;
pub mod timestamps;
mod topic_id;
pub mod transactions;
mod truncate;
pub mod verify;

pub use append::AppendInfo;
pub use append_error::{AppendError, AppendReason, AppendRefusal};
pub use append_leader::{AppendScratch, LeaderAppend};
pub use append_many::{AppendAs, AppendRequest, append_many};
pub use columns::{SegmentColumns, SegmentRow};
pub use compact::{Cleanable, CleanableOffsets, Cleaner, CleanerOptions, Compacted, Compaction};
pub use compare::{Comparison, compare_logs};
pub use config::{LogConfig, OpenOptions};
pub use coordinator::{CoordinatedTransaction, Coordinators};
pub use facts::{LogEnd, LogFacts, SegmentFacts};
pub use flush::FlushWork;
pub use inventory::{Inventory, SegmentFiles};
pub(crate) use locate_many::FetchBudget;
pub use locate_many::{FetchRequest, locate_many};
pub use log::Log;
pub use name::{FolderKind, FolderName};
pub use read::{
    FetchOptions, Fetched, FetchedBytes, FileRange, Isolation, MappedRange, OffsetPlace, RangeLease,
};
pub use read_files::{LogReader, ReadOptions, Selection, read_log};
pub use removal::remove_tree;
pub use sealed_files::SealedFiles;
pub use segments::Segments;
pub use special_offsets::LogBounds;
pub use stats::LogStats;
pub use topic_id::read_topic_id;
pub use transactions::{OpenTransaction, Transactions, read_transactions};
pub use verify::{PartitionReport, VerifyOptions, verify_file, verify_partition};
