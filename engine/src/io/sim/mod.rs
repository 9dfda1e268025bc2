//! Would it survive a power cut here? A disk in memory that can lose what was not synced: for
//! tests.
//!
//! Every file has bytes that a reader sees and bytes that a power cut leaves; a sync carries the
//! first over into the second, and so does the sync of a directory with its names.
//! [`SimDisk::after_crash`] makes one of the states that a cut may leave, chosen by a seed: each
//! sector written or not, each change of a name done or not.
//!
//! ```text
//!  write_at, set_size           rename, create, remove
//!        |                             |
//!    seen bytes                    seen names
//!        | sync                        | sync_dir
//!   durable bytes   sync_filesystem   durable names
//!         \________________  _________________/
//!                 after_crash(seed)
//! ```
//!
//! The n-th operation can be made to fail, to be cut, or to be a sync that does nothing; see
//! [`SimDisk::crash_at`], [`SimDisk::fail_at`] and [`SimDisk::lose_sync_at`].

mod body;
mod disk;
mod fate;
mod faults;
mod file;
mod plan;
mod snapshot;
mod tree;

pub use disk::SimDisk;
pub use faults::Operation;
pub use snapshot::{Entry, Snapshot};
