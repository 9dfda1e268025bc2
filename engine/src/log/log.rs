//! One partition that is read and written to now.
//!
//! [`Log`] is shared: one thread at a time changes it, any number read it. Whoever changes it takes
//! the writer's seat; a second one is turned away with `Conflict` instead of waiting, but for what
//! only moves an offset or tells an epoch: that waits. What goes on beside the one that writes, such
//! as retention and compaction, is waited for. Readers take no lock: the list of segments
//! is immutable and swapped as a whole, and offsets are published last. Only a cut syncs from the
//! seat, as nothing may come in the place of what it removes before that is gone for good; what is
//! due later (flushes, deletions) is the host's to run.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError};

use super::compact::{Replacements, Rounds};
use super::config::LogConfig;
use super::damaged::DamagedSegments;
use super::deletion::Deletions;
use super::segments::Segments;
use crate::error::{Error, Kind};
use crate::segment::{ActiveSegment, Folder};
use crate::state::{LeaderEpochs, ProducerState};
use crate::sync::{
    ArcSwap, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicI64, Ordering},
};
use crate::uuid::Uuid;

/// One partition, open for reading and writing.
///
/// ```
/// use std::sync::Arc;
/// use siltstone::io::SimDisk;
/// use siltstone::log::{Log, LogConfig, OpenOptions};
///
/// let disk = SimDisk::new();
/// let dir = std::path::Path::new("/orders-0");
/// let log = Log::open(Arc::new(disk), dir, LogConfig::default(), &OpenOptions::default())?;
/// assert_eq!(log.log_end_offset(), 0);
/// log.close()?;
/// # Ok::<(), siltstone::Error>(())
/// ```
#[derive(Debug)]
pub struct Log {
    pub(super) folder: Folder,
    pub(super) config: ArcSwap<LogConfig>,
    pub(super) segments: ArcSwap<Segments>,
    /// Held while segments go before they are out of the list.
    pub(super) changing_list: Mutex<()>,
    pub(super) offsets: Offsets,
    pub(super) epochs: ArcSwap<LeaderEpochs>,
    /// Whether the epochs have changed since they were last compared with their checkpoint.
    pub(super) epochs_are_new: AtomicBool,
    /// What `leader-epoch-checkpoint` holds.
    pub(super) saved_epochs: Mutex<Arc<LeaderEpochs>>,
    pub(super) durable: Mutex<Durable>,
    pub(super) deletions: Deletions,
    pub(super) rounds: Rounds,
    pub(super) replacements: Replacements,
    pub(super) damaged: DamagedSegments,
    pub(super) topic_id: OnceLock<Uuid>,
    /// A sync failed: what is on disk is not known any more.
    pub(super) is_failed: AtomicBool,
    pub(super) is_closed: AtomicBool,
    pub(super) seat: Mutex<Option<Writer>>,
    /// Whether the one who has the seat is a writer, for whom nobody waits.
    pub(super) is_written: AtomicBool,
}

/// What only the writer knows.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) active: ActiveSegment,
    pub(super) producers: ProducerState,
    pub(super) now_ms: i64,
    /// The log was cut, but its files or producers do not say so yet: nothing may be written
    /// before.
    pub(super) is_unsettled: bool,
}

/// The offsets that everybody may look at.
#[derive(Debug)]
pub(super) struct Offsets {
    pub(super) log_start: AtomicI64,
    pub(super) local_log_start: AtomicI64,
    pub(super) log_end: AtomicI64,
    pub(super) high_watermark: AtomicI64,
    pub(super) last_stable: AtomicI64,
    /// -1 when nothing was uploaded yet, as far as is known.
    pub(super) highest_remote: AtomicI64,
}

impl Offsets {
    /// Of a log that was just opened: nothing is known to be replicated or uploaded.
    pub(super) fn new(log_start: i64, local_log_start: i64, log_end: i64) -> Self {
        Offsets {
            log_start: AtomicI64::new(log_start),
            local_log_start: AtomicI64::new(local_log_start),
            log_end: AtomicI64::new(log_end),
            high_watermark: AtomicI64::new(log_start),
            last_stable: AtomicI64::new(log_start),
            highest_remote: AtomicI64::new(-1),
        }
    }
}

/// What is known to be durable.
#[derive(Debug, Default)]
pub(super) struct Durable {
    /// Up to where, exclusive, records and what is said of them were synced.
    pub(super) flushed_end_offset: i64,
    /// The base of the newest segment that may be on the disk.
    pub(super) newest_base: i64,
    /// How often the log was cut: a flush that began before says nothing of what came after.
    pub(super) truncations: u64,
    /// How often what was known to be in remote storage went back: a copy that began before says
    /// nothing of what came after, unless it lies before all that was ever cut.
    pub(super) remote_generation: u64,
    /// The lowest offset at which it ever went back.
    pub(super) remote_cut: i64,
    /// The lowest offset at which it was cut since the last round of compaction began.
    pub(super) lowest_cut: i64,
    /// Snapshots that were written but not synced.
    pub(super) snapshots: Vec<i64>,
    pub(super) last_flush_ms: i64,
    /// Up to where, exclusive, the log is compacted, if that is known.
    pub(super) compacted_end_offset: Option<i64>,
}

impl Durable {
    /// What is known to be in remote storage ends before `end` at the latest.
    pub(super) fn remote_goes_back(&mut self, end: i64) {
        self.remote_generation += 1;
        self.remote_cut = self.remote_cut.min(end);
    }

    /// Whether what was copied in this generation, up to `offset`, is still the log's.
    pub(super) fn is_of_remote_generation(&self, generation: u64, offset: i64) -> bool {
        self.remote_generation == generation || offset < self.remote_cut
    }
}

impl Log {
    /// Whether a sync has failed: then the log takes no more writes until it is opened again.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.is_failed.load(Ordering::Acquire)
    }

    /// Whether it was closed: nothing is read of it or written to it any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    pub(super) fn failed(&self) -> Error {
        let message = "a sync of this log failed before; it must be opened again";
        Error::new(Kind::Io, message).in_file(&self.dir()).repeated()
    }

    pub(super) fn half_changed(&self) -> Error {
        let message = "a fault of this library left the log half changed; it must be opened again";
        Error::new(Kind::Io, message).in_file(&self.dir())
    }

    pub(super) fn durable(&self) -> MutexGuard<'_, Durable> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> Arc<PathBuf> {
        self.folder.path()
    }

    /// The topic's id, if it is known.
    #[must_use]
    pub fn topic_id(&self) -> Option<Uuid> {
        self.topic_id.get().copied()
    }

    /// The settings now.
    #[must_use]
    pub fn config(&self) -> Arc<LogConfig> {
        self.config.load_full()
    }

    /// Takes other settings; segments that are there already keep their jitter.
    ///
    /// Where remote storage is switched off, what was known to be there is forgotten: a local
    /// segment must not go as uploaded when it is switched on again.
    pub fn set_config(&self, config: impl Into<Arc<LogConfig>>) {
        let config = config.into();
        let is_remote = config.remote_storage;
        let old = self.config.swap(config);
        if old.remote_storage && !is_remote {
            let mut durable = self.durable();
            durable.remote_goes_back(0);
            self.offsets.highest_remote.store(-1, Ordering::Release);
        }
    }

    /// The segments now.
    #[must_use]
    pub fn segments(&self) -> Arc<Segments> {
        self.segments.load_full()
    }

    /// The bytes of all segments.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.segments.load().size_bytes()
    }

    /// The first offset that a reader may ask for; with remote storage, what lies before
    /// [`local_log_start_offset`](Self::local_log_start_offset) is not here.
    #[must_use]
    pub fn log_start_offset(&self) -> i64 {
        self.offsets.log_start.load(Ordering::Acquire)
    }

    /// The first offset on the local disk.
    #[must_use]
    pub fn local_log_start_offset(&self) -> i64 {
        self.offsets.local_log_start.load(Ordering::Acquire)
    }

    /// The offset of the next batch.
    #[must_use]
    pub fn log_end_offset(&self) -> i64 {
        self.offsets.log_end.load(Ordering::Acquire)
    }

    /// Up to where, exclusive, the log is replicated.
    #[must_use]
    pub fn high_watermark(&self) -> i64 {
        self.offsets.high_watermark.load(Ordering::Acquire)
    }

    /// Up to where, exclusive, every transaction is decided and replicated: never above the high
    /// watermark.
    #[must_use]
    pub fn last_stable_offset(&self) -> i64 {
        self.offsets.last_stable.load(Ordering::Acquire)
    }

    /// From where on recovery must read the log after a crash: everything before is durable, or
    /// before its start.
    #[must_use]
    pub fn recovery_point(&self) -> i64 {
        // spec: segments 6.3. What lies before the start of the log needs no recovery.
        let start = self.log_start_offset().min(self.log_end_offset());
        self.durable().flushed_end_offset.max(start)
    }

    /// The leader epochs now.
    #[must_use]
    pub fn leader_epochs(&self) -> Arc<LeaderEpochs> {
        self.epochs.load_full()
    }
}

pub(super) fn closed() -> Error {
    Error::new(Kind::Closed, "the log is closed")
}
