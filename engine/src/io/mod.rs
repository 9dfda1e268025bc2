//! Where do bytes come from? Files, io_uring, maps, checksums and the simulated disk.
//!
//! Everything above names only [`Storage`] and [`File`]: the real disk and the simulated one of the
//! crash tests stand behind the same traits. Reading goes through a [`Source`], which gives windows
//! of a file in whatever way is best.

pub(crate) mod cache;
pub mod checksum;
#[cfg(test)]
mod conformance;
mod counters;
mod disk;
mod lock;
pub mod map;
mod mapped;
mod ring;
mod ring_disk;
mod shared_map;
pub mod sim;
mod source;
mod storage;

pub use counters::Counters;
pub use disk::Disk;
pub use map::MapReader;
pub use mapped::MappedFile;
pub use ring_disk::{IoChoice, RingDisk, open_disk};
pub(crate) use shared_map::SharedMap;
pub use sim::SimDisk;
pub use source::{MapMode, Reader, Source, WindowReader};
pub use storage::{DirEntry, File, FileKind, FileWrite, Lock, Metadata, OpenMode, Storage};
