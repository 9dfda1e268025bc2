//! How far is a long piece of work, and is it still wanted?

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Hears how far a bulk call has come, and may end it. Called from the threads that do the work, so
/// it must be quick.
pub trait Progress: Sync {
    /// This many more bytes of logs were read.
    fn bytes(&self, count: u64);

    /// This many more will be; told by calls that find that out themselves.
    fn expect(&self, _count: u64) {}

    /// Whether to stop; looked at now and then.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn bytes(&self, _count: u64) {}
}

/// A count of bytes, and a flag that cancels.
impl Progress for (AtomicU64, AtomicBool) {
    fn bytes(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }
}
