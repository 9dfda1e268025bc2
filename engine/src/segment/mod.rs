//! One `.log` with its side files: their names, how it is read and written to, what is wrong with
//! it, and its indexes made anew.

pub mod active;
pub mod append;
mod cut;
pub mod damage;
pub mod folder;
pub mod handles;
mod index_file;
pub mod index_handle;
mod index_memory;
pub mod index_tails;
mod log_bytes;
pub mod log_segment;
pub mod name;
pub mod open_files;
pub mod rebuild;
pub mod recent;
mod search;
pub mod txn_index_handle;
mod walk;

pub use active::{ActiveSegment, SegmentSettings};
pub use folder::Folder;
pub use handles::{Lease, SegmentHandles};
pub use log_segment::LogSegment;
pub use name::{FileName, FileRole, FileState};
pub use open_files::{LogMaps, OpenFiles};
pub use recent::BatchPlace;
pub use search::TimestampAndOffset;

#[cfg(test)]
mod tests;
