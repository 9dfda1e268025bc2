//! How many files of segments may be open at once?

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};

use super::log_segment::LogSegment;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Fewer entries than this are not worth a look for those that are of no use any more.
const FEW: usize = 64;

/// The open files of segments, shared by all logs that are to share its limit. Sealed segments are
/// let go of when there are too many, those that nobody used for a while first; the files of
/// segments that are written to count, but stay open.
#[derive(Debug)]
pub struct OpenFiles {
    count_max: usize,
    count: AtomicUsize,
    /// Sealed segments that were opened, in the order in which they are looked at.
    sealed: Mutex<VecDeque<Weak<LogSegment>>>,
}

impl OpenFiles {
    /// At most `count_max` files stay open, as far as sealed segments can give way: each has its
    /// log and the indexes that were needed, up to four. The one that was opened last stays open.
    #[must_use]
    pub fn new(count_max: usize) -> Arc<Self> {
        Arc::new(OpenFiles { count_max, count: AtomicUsize::new(0), sealed: Mutex::default() })
    }

    /// Files that are open now, those that only a reader's lease keeps open too.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, count: usize) {
        self.count.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn subtract(&self, count: usize) {
        self.count.fetch_sub(count, Ordering::Relaxed);
    }

    /// Takes note of a segment that was opened, or that is not written to any more.
    pub(super) fn opened(&self, segment: &Arc<LogSegment>) {
        let mut sealed = self.sealed.lock().unwrap_or_else(PoisonError::into_inner);
        sealed.push_back(Arc::downgrade(segment));
        // Segments that were deleted, or opened twice, are not to gather here.
        if sealed.len() > FEW.max(self.count_max.saturating_mul(2)) {
            sealed.retain(|segment| segment.upgrade().is_some_and(|segment| segment.is_open()));
        }
        drop(sealed);
        self.shrink();
    }

    /// Lets go of segments until there are few enough files. Those that a reader still has a lease
    /// on are closed with the lease.
    pub(super) fn shrink(&self) {
        if self.count() <= self.count_max {
            return;
        }
        let mut dropped = Vec::new();
        let mut sealed = self.sealed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut freed = 0;
        // A segment that was used since the last look gets a second chance.
        let mut looks = sealed.len().saturating_mul(2);
        while self.count().saturating_sub(freed) > self.count_max && sealed.len() > 1 && looks > 0 {
            looks -= 1;
            let Some(segment) = sealed.pop_front().and_then(|oldest| oldest.upgrade()) else {
                continue;
            };
            if segment.was_used() {
                sealed.push_back(Arc::downgrade(&segment));
            } else if let Some(handles) = segment.let_go() {
                freed += handles.file_count();
                dropped.push(handles);
            }
        }
        // Files are closed when nobody waits for the lock.
        drop(sealed);
        drop(dropped);
    }
}
