//! What the benchmarks share: generated logs and directories, loops that show what the machine
//! could do, and timing.

pub mod batches;
pub mod cache;
pub mod dir_limits;
pub mod directory;
pub mod document;
pub mod follower;
pub mod limits;
pub mod live_limits;
pub mod machine;
pub mod payload;
pub mod remote;
pub mod rounds;
pub mod segment;
pub mod state;
pub mod state_limits;
pub mod supply;
pub mod sync_limits;
pub mod uploads;
pub mod walks;

/// A benchmark that cannot go on says why and ends.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
