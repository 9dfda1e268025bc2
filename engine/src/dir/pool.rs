//! Threads for the length of one bulk call, and no longer.

use crate::error::{Error, Kind, Result};

/// Runs `work` on a pool of this many threads of its own; on the caller's thread when it is one.
///
/// # Errors
/// What `work` fails with, or `Limit` when the threads cannot be had.
pub fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if threads <= 1 {
        return work();
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|number| format!("siltstone-{number}"))
        .build()
        .map_err(|error| Error::new(Kind::Limit, format!("{threads} threads: {error}")))?;
    pool.install(work)
}
