//! Is a partition what it should be? Every problem of it, and everything its log says.
//!
//! [`verify_partition`] reads every batch of every segment once, derives from them what the other
//! files should say, as Kafka does after an unclean stop, and compares:
//!
//! ```text
//! segments in order -> scan -> every batch -> records, offsets, epochs, producers, transactions
//!                                          -> .index .timeindex .txnindex of the segment
//!                                          -> .snapshot at its offset, leader-epoch-checkpoint
//! ```
//!
//! It repairs nothing and never writes. Behind the first damage of the log nothing can be derived
//! any more: there it only counts the whole batches that a cut would throw away.

mod batches;
mod epochs;
mod file;
mod findings;
mod lists;
mod meter;
mod options;
mod partition;
mod producers;
mod report;
mod segment;

pub use file::verify_file;
pub(crate) use file::{META_FILE, check_directory_file, fault_severity};
pub use options::{Depth, VerifyOptions};
pub use partition::verify_partition;
pub use report::{OpenTransaction, PartitionReport, RecordLists, Verdict};

#[cfg(test)]
mod tests;
