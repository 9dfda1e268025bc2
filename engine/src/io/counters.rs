//! What has a disk been asked to do? Counts of the calls that reached the kernel.
//!
//! Tests prove with them which path ran (ring or plain calls) and that reading does not write; a
//! host shows them.

use std::sync::atomic::{AtomicU64, Ordering};

/// A snapshot of a disk's counts since it was made. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Files opened or made.
    pub opened: u64,
    /// Reads from files, whichever way.
    pub reads: u64,
    /// Bytes that those reads gave.
    pub bytes_read: u64,
    /// Writes to files, whichever way.
    pub writes: u64,
    /// Bytes that those writes took.
    pub bytes_written: u64,
    /// Files made durable.
    pub syncs: u64,
    /// Directories made durable.
    pub directory_syncs: u64,
    /// Whole file systems made durable.
    pub filesystem_syncs: u64,
    /// Calls that handed requests to the ring.
    pub ring_submissions: u64,
    /// Requests that the ring completed.
    pub ring_completions: u64,
}

/// The counts while they change. Relaxed: they order nothing.
#[derive(Debug, Default)]
pub(super) struct Tally {
    opened: AtomicU64,
    reads: AtomicU64,
    bytes_read: AtomicU64,
    writes: AtomicU64,
    bytes_written: AtomicU64,
    syncs: AtomicU64,
    directory_syncs: AtomicU64,
    filesystem_syncs: AtomicU64,
    ring_submissions: AtomicU64,
    ring_completions: AtomicU64,
}

impl Tally {
    pub(super) fn opened(&self) {
        add(&self.opened, 1);
    }

    pub(super) fn read(&self, size_bytes: usize) {
        add(&self.reads, 1);
        add(&self.bytes_read, size_bytes);
    }

    pub(super) fn written(&self, size_bytes: usize) {
        add(&self.writes, 1);
        add(&self.bytes_written, size_bytes);
    }

    pub(super) fn synced(&self) {
        add(&self.syncs, 1);
    }

    pub(super) fn synced_directory(&self) {
        add(&self.directory_syncs, 1);
    }

    pub(super) fn synced_filesystem(&self) {
        add(&self.filesystem_syncs, 1);
    }

    pub(super) fn ring_submitted(&self) {
        add(&self.ring_submissions, 1);
    }

    pub(super) fn ring_completed(&self) {
        add(&self.ring_completions, 1);
    }

    pub(super) fn snapshot(&self) -> Counters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            opened: get(&self.opened),
            reads: get(&self.reads),
            bytes_read: get(&self.bytes_read),
            writes: get(&self.writes),
            bytes_written: get(&self.bytes_written),
            syncs: get(&self.syncs),
            directory_syncs: get(&self.directory_syncs),
            filesystem_syncs: get(&self.filesystem_syncs),
            ring_submissions: get(&self.ring_submissions),
            ring_completions: get(&self.ring_completions),
        }
    }
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
}
