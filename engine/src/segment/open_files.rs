//! How many segments may have their files open at once?

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};

use super::log_segment::LogSegment;
use crate::sync::Mutex;

/// Segments that are open because somebody read them, oldest first. Shared by all logs that are to
/// share its limit; the segments that are written to are not counted.
#[derive(Debug)]
pub struct OpenFiles {
    count_max: usize,
    open: Mutex<VecDeque<Weak<LogSegment>>>,
}

impl OpenFiles {
    /// At most `count_max` sealed segments stay open, each with its log and the indexes that were
    /// needed: up to four descriptors. One at least stays open.
    #[must_use]
    pub fn new(count_max: usize) -> Arc<Self> {
        Arc::new(OpenFiles { count_max: count_max.max(1), open: Mutex::default() })
    }

    /// Takes note of a segment that was opened, and lets go of the oldest where there are too many.
    /// Files that a reader still has a lease on are closed with the lease.
    pub(super) fn opened(&self, segment: &Arc<LogSegment>) {
        let mut dropped = Vec::new();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_back(Arc::downgrade(segment));
        while open.len() > self.count_max
            && let Some(oldest) = open.pop_front()
        {
            dropped.extend(oldest.upgrade().map(|segment| segment.let_go()));
        }
        // Files are closed when nobody waits for the lock.
        drop(open);
        drop(dropped);
    }
}
