//! Are we still in the process that made the object?

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many forks lie between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static WATCH: Once = Once::new();

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// The generation of this process, for an object that is made now. The C library forgets the
/// handler when this library is unloaded.
pub fn watch() -> u32 {
    WATCH.call_once(|| {
        // SAFETY: the handler only counts. Without memory for it nothing is found out of a fork.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    current()
}

/// The generation of this process.
pub fn current() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}
