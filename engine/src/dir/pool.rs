//! Threads for the length of one bulk call, and no longer.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::error::{Error, Kind, Result};

/// Runs `work` on a pool of this many threads of its own; on the caller's thread when it is one.
/// The threads have ended when it returns.
///
/// # Errors
/// What `work` fails with, or `Limit` when the threads cannot be had.
pub fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    if threads <= 1 {
        return work();
    }
    // Dropped behind the pool, which tells the threads to end; also when `work` panics.
    let mut joined = Joined(Vec::new());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .spawn_handler(|thread| joined.start(thread))
        .build()
        .map_err(|error| Error::new(Kind::Limit, format!("{threads} threads: {error}")))?;
    pool.install(work)
}

/// Threads that are waited for. A pool that is dropped does not: its threads would still be on
/// their way out when a host unloads the library.
struct Joined(Vec<JoinHandle<()>>);

impl Joined {
    fn start(&mut self, thread: rayon::ThreadBuilder) -> io::Result<()> {
        let name = format!("siltstone-{}", thread.index());
        self.0.push(Builder::new().name(name).spawn(|| thread.run())?);
        Ok(())
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        for thread in self.0.drain(..) {
            // What `work` panics with has gone to the caller already.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static ENDED: AtomicUsize = AtomicUsize::new(0);

    /// Counts the threads that have ended with all that is theirs.
    struct Ends;

    impl Drop for Ends {
        fn drop(&mut self) {
            ENDED.fetch_add(1, Ordering::Relaxed);
        }
    }

    thread_local! { static ENDS: Ends = const { Ends }; }

    #[test]
    fn no_thread_outlives_the_call() {
        for round in 1..=20 {
            let work = || {
                rayon::broadcast(|_| ENDS.with(|_| ()));
                Ok(round)
            };
            assert_eq!(in_pool(4, work).unwrap(), round);
            assert_eq!(ENDED.load(Ordering::Relaxed), 4 * round);
        }
    }
}
