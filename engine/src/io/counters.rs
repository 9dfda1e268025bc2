//! What has a disk been asked to do? Counts of the calls that reached the kernel.
//!
//! Tests prove with them which path ran (ring or plain calls) and that reading does not write; a
//! host shows them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sync::thread_number;

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

/// Parts of each count: threads that count at the same time do not write to the same.
const SHARES: usize = 8;

/// The counts while they change. Relaxed: they order nothing.
#[derive(Debug, Default)]
pub(super) struct Tally {
    shares: [Share; SHARES],
}

/// What some of the threads have counted, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Share {
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
    fn own(&self) -> &Share {
        let own = self.shares.get(thread_number() % SHARES);
        own.expect("a remainder is below the number of shares")
    }

    pub(super) fn opened(&self) {
        add(&self.own().opened, 1);
    }

    pub(super) fn read(&self, size_bytes: usize) {
        add(&self.own().reads, 1);
        add(&self.own().bytes_read, size_bytes);
    }

    pub(super) fn written(&self, size_bytes: usize) {
        add(&self.own().writes, 1);
        add(&self.own().bytes_written, size_bytes);
    }

    pub(super) fn synced(&self) {
        add(&self.own().syncs, 1);
    }

    pub(super) fn synced_directory(&self) {
        add(&self.own().directory_syncs, 1);
    }

    pub(super) fn synced_filesystem(&self) {
        add(&self.own().filesystem_syncs, 1);
    }

    pub(super) fn ring_submitted(&self) {
        add(&self.own().ring_submissions, 1);
    }

    pub(super) fn ring_completed(&self) {
        add(&self.own().ring_completions, 1);
    }

    pub(super) fn snapshot(&self) -> Counters {
        let get = |count: fn(&Share) -> &AtomicU64| {
            let counts = self.shares.iter().map(|share| count(share).load(Ordering::Relaxed));
            counts.fold(0, u64::wrapping_add)
        };
        Counters {
            opened: get(|share| &share.opened),
            reads: get(|share| &share.reads),
            bytes_read: get(|share| &share.bytes_read),
            writes: get(|share| &share.writes),
            bytes_written: get(|share| &share.bytes_written),
            syncs: get(|share| &share.syncs),
            directory_syncs: get(|share| &share.directory_syncs),
            filesystem_syncs: get(|share| &share.filesystem_syncs),
            ring_submissions: get(|share| &share.ring_submissions),
            ring_completions: get(|share| &share.ring_completions),
        }
    }
}

fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
}
