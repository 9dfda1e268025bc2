//! How many files of segments may be open at once, and how much memory may their indexes take?

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, Weak};

use super::log_segment::LogSegment;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that the indexes of all open segments may take in memory.
const INDEX_BYTES_MAX: usize = 64 << 20;
/// An index above this size is read block by block: it would push out too many others.
const INDEX_BYTES_EACH_MAX: usize = INDEX_BYTES_MAX / 4;
/// Fewer entries than this are not worth a look for those that are of no use any more.
const FEW: usize = 64;

/// Whether look-ups in logs go through maps: a choice of who opens them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogMaps {
    /// By reading into memory of our own: no I/O error becomes a signal.
    #[default]
    Never,
    /// A segment that nobody writes to, and that is looked into again and again, is mapped as long
    /// as it is open: one map each, of as many as files may be open. For who owns the files alone,
    /// and accepts that a page which the disk fails to read, or that another process has cut off,
    /// is a SIGBUS, which ends the process where nobody has
    /// [guarded](crate::io::map::guard_process) it. What this log itself cuts or deletes is none.
    /// Appends, and whatever reads a log from end to end, use no map.
    Sealed,
}

/// The open files of segments, shared by all logs that are to share its limit. Segments are let go
/// of when there are too many, those that nobody used for a while first. One that is written to is
/// among them: what is not in its files yet stays in memory, and the next append opens its log
/// again. The kernel tells of a write that failed on its way to the disk also to who opens the file
/// later, as long as nobody was told.
#[derive(Debug)]
pub struct OpenFiles {
    count_max: usize,
    maps: LogMaps,
    count: AtomicUsize,
    /// Segments that were opened, in the order in which they are looked at.
    opened: Mutex<VecDeque<Weak<LogSegment>>>,
    index_bytes: AtomicUsize,
}

/// Memory that an index may take, until it is dropped.
#[derive(Debug)]
pub(super) struct IndexRoom {
    open_files: Arc<OpenFiles>,
    size_bytes: usize,
}

impl IndexRoom {
    pub(super) fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

impl Drop for IndexRoom {
    fn drop(&mut self) {
        self.open_files.index_bytes.fetch_sub(self.size_bytes, Ordering::Relaxed);
    }
}

impl OpenFiles {
    /// At most `count_max` files stay open: a segment has its log and the indexes that were needed,
    /// up to four. The one that was opened last stays open, and what somebody is at or has a lease
    /// on until he is done.
    #[must_use]
    pub fn new(count_max: usize) -> Arc<Self> {
        Self::with_maps(count_max, LogMaps::Never)
    }

    /// The same with a choice of maps.
    #[must_use]
    pub fn with_maps(count_max: usize, maps: LogMaps) -> Arc<Self> {
        Arc::new(OpenFiles {
            count_max,
            maps,
            count: AtomicUsize::new(0),
            opened: Mutex::default(),
            index_bytes: AtomicUsize::new(0),
        })
    }

    /// Memory for an index; segments that were opened earlier make room for it. `None` when there
    /// is none, or the index is too large.
    pub(super) fn room(self: &Arc<Self>, size_bytes: usize) -> Option<IndexRoom> {
        if size_bytes > INDEX_BYTES_EACH_MAX {
            return None;
        }
        let take =
            |taken: usize| taken.checked_add(size_bytes).filter(|taken| *taken <= INDEX_BYTES_MAX);
        let taken = &self.index_bytes;
        while taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            let oldest = self.opened.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
            drop(oldest.upgrade().map(|segment| segment.let_go()));
        }
        Some(IndexRoom { open_files: Arc::clone(self), size_bytes })
    }

    /// Whether look-ups go through maps.
    #[must_use]
    pub fn maps(&self) -> LogMaps {
        self.maps
    }

    /// How many may stay open.
    #[must_use]
    pub fn count_max(&self) -> usize {
        self.count_max
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

    /// Takes note of a segment that was opened.
    pub(super) fn opened(&self, segment: &Arc<LogSegment>) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.push_back(Arc::downgrade(segment));
        // Segments that were deleted, or opened twice, are not to gather here.
        if opened.len() > FEW.max(self.count_max.saturating_mul(2)) {
            opened.retain(|segment| segment.upgrade().is_some_and(|segment| segment.is_open()));
        }
        drop(opened);
        self.shrink();
    }

    /// Lets go of segments until there are few enough files. Those that a reader still has a lease
    /// on are closed with the lease.
    pub(super) fn shrink(&self) {
        if self.count() <= self.count_max {
            return;
        }
        let mut dropped = Vec::new();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let mut freed = 0;
        // A segment that was used since the last look gets a second chance.
        let mut looks = opened.len().saturating_mul(2);
        while self.count().saturating_sub(freed) > self.count_max && opened.len() > 1 && looks > 0 {
            looks -= 1;
            let Some(segment) = opened.pop_front().and_then(|oldest| oldest.upgrade()) else {
                continue;
            };
            if segment.was_used() {
                opened.push_back(Arc::downgrade(&segment));
            } else if let Some(handles) = segment.let_go() {
                freed += handles.file_count();
                dropped.push(handles);
            }
        }
        // Files are closed when nobody waits for the lock.
        drop(opened);
        drop(dropped);
    }
}
