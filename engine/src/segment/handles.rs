//! Which files of a segment are open, and who keeps them so?
//!
//! The log alone is open while a segment is written to or read at its end; indexes are opened when
//! somebody looks into them. All of it may be let go of at any time and is opened again when it is
//! needed; who has a lease on the log keeps that open.

// For maps alone, which the simulated disk of the model checkers has not.
use std::sync::atomic::fence;
use std::sync::{Arc, OnceLock, Weak};

use super::folder::Folder;
use super::index_memory::IndexMemory;
use super::log_bytes::LogBytes;
use super::log_segment::LogSegment;
use super::name::FileRole;
use super::open_files::{LogMaps, OpenFiles};
use crate::error::{Kind, Result};
use crate::io::{File, OpenMode, SharedMap};
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use crate::sync::thread_number;

/// Counts of leases that a segment has: threads with different ones do not get into each other's
/// way.
const LEASES: usize = 8;

/// The open files of a segment.
#[derive(Debug)]
pub struct SegmentHandles {
    log: Arc<OpenLog>,
    /// Somebody wanted them since they were looked at last.
    is_used: AtomicBool,
    indexes: OnceLock<Box<OpenIndexes>>,
    leases: OnceLock<Box<[OnceLock<Arc<Lease>>; LEASES]>>,
}

/// The open log of a segment.
#[derive(Debug)]
struct OpenLog {
    file: Arc<dyn File>,
    segment: Weak<LogSegment>,
    truncations: Arc<AtomicU32>,
    open_files: Arc<OpenFiles>,
}

/// Indexes that somebody has looked into.
#[derive(Debug, Default)]
struct OpenIndexes {
    offset: OnceLock<Arc<dyn File>>,
    time: OnceLock<Arc<dyn File>>,
    txn: OnceLock<Arc<dyn File>>,
    offset_memory: IndexMemory,
    time_memory: IndexMemory,
    log_map: OnceLock<Option<SharedMap>>,
}

/// Keeps the log of a segment open.
///
/// A segment has a few of them. Each thread takes the same one again and again, so that the count
/// of those who hold it stays in the cache of one core.
#[derive(Debug)]
#[repr(align(64))]
pub struct Lease {
    log: Arc<OpenLog>,
}

impl Drop for OpenLog {
    fn drop(&mut self) {
        self.open_files.subtract(1);
    }
}

impl Drop for SegmentHandles {
    fn drop(&mut self) {
        self.log.open_files.subtract(self.file_count() - 1);
    }
}

impl Lease {
    /// The log.
    #[must_use]
    pub fn file(&self) -> &dyn File {
        &*self.log.file
    }

    /// How often the log was cut: see [`LogSegment::truncations`]. A segment that is no part of a
    /// log any more is not cut again.
    #[must_use]
    pub fn truncations(&self) -> u32 {
        self.log.truncations.load(Ordering::Acquire)
    }

    /// Keeps the log from being cut; `None` while the segment is written to.
    #[must_use]
    pub fn pin(self: &Arc<Self>) -> Option<SealedPin> {
        let segment = self.log.segment.upgrade();
        let is_sealed = segment.as_ref().is_none_or(|segment| segment.pin());
        is_sealed.then(|| SealedPin { lease: Arc::clone(self), segment })
    }
}

/// Keeps the log of a sealed segment from being cut, and its file open.
#[derive(Debug)]
pub struct SealedPin {
    lease: Arc<Lease>,
    /// `None` when the segment is no part of a log any more: then nobody cuts it.
    segment: Option<Arc<LogSegment>>,
}

impl SealedPin {
    /// The log.
    #[must_use]
    pub fn log(&self) -> &Arc<dyn File> {
        &self.lease.log.file
    }
}

impl Drop for SealedPin {
    fn drop(&mut self) {
        if let Some(segment) = &self.segment {
            segment.unpin();
        }
    }
}

impl OpenIndexes {
    fn slot(&self, role: FileRole) -> &OnceLock<Arc<dyn File>> {
        match role {
            FileRole::OffsetIndex => &self.offset,
            FileRole::TimeIndex => &self.time,
            FileRole::TxnIndex | FileRole::Log | FileRole::Snapshot => &self.txn,
        }
    }
}

impl SegmentHandles {
    pub(super) fn new(
        segment: &Arc<LogSegment>,
        log: Arc<dyn File>,
        open_files: &Arc<OpenFiles>,
    ) -> Self {
        open_files.add(1);
        Self::of(Arc::new(OpenLog {
            file: log,
            segment: Arc::downgrade(segment),
            truncations: Arc::clone(segment.truncation_count()),
            open_files: Arc::clone(open_files),
        }))
    }

    fn of(log: Arc<OpenLog>) -> Self {
        let (indexes, leases) = (OnceLock::new(), OnceLock::new());
        SegmentHandles { log, is_used: AtomicBool::new(true), indexes, leases }
    }

    /// The same log, with no index open or in memory.
    pub(super) fn without_indexes(&self) -> Self {
        Self::of(Arc::clone(&self.log))
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &Arc<dyn File> {
        &self.log.file
    }

    /// A lease on the log for this thread.
    pub(super) fn lease(&self) -> Arc<Lease> {
        let leases = self.leases.get_or_init(Box::default);
        let own = leases.get(thread_number() % LEASES);
        let own = own.expect("a remainder is below the number of leases");
        Arc::clone(own.get_or_init(|| Arc::new(Lease { log: Arc::clone(&self.log) })))
    }

    /// Takes note that somebody wants them.
    pub(super) fn used(&self) {
        // Mostly it is known, and others need not hear of it again.
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether somebody wanted them since this was asked last.
    pub(super) fn was_used(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }

    /// The entries of the offset or the time index of a sealed segment, if they are in memory or
    /// worth it by now.
    pub(super) fn index_in_memory(
        &self,
        segment: &LogSegment,
        folder: &Folder,
        role: FileRole,
    ) -> Result<Option<&[u8]>> {
        let indexes = self.indexes.get_or_init(Box::default);
        let memory = match role {
            FileRole::OffsetIndex => &indexes.offset_memory,
            _ => &indexes.time_memory,
        };
        if let Some(entries) = memory.entries() {
            return Ok(Some(entries));
        }
        // While the segment is written to its indexes grow.
        if segment.is_live() {
            return Ok(None);
        }
        let Some(file) = self.index(segment, folder, role)? else { return Ok(None) };
        memory.load(&**file, file.metadata()?.size_bytes, folder.open_files())
    }

    /// The log, by its map where there is one or it is worth one by now.
    pub(super) fn log_bytes(&self, segment: &LogSegment, folder: &Folder) -> LogBytes<'_> {
        let map = match folder.open_files().maps() {
            LogMaps::Never => None,
            LogMaps::Sealed => self.log_map(segment),
        };
        LogBytes { file: &*self.log.file, map }
    }

    fn log_map(&self, segment: &LogSegment) -> Option<&SharedMap> {
        let indexes = self.indexes.get()?;
        if let Some(map) = indexes.log_map.get() {
            return map.as_ref();
        }
        if segment.is_live() || !indexes.offset_memory.is_worth_it() {
            return None;
        }
        // Where there can be none, the file is read.
        let made = || SharedMap::new(&*self.log.file, segment.size_bytes()).ok().flatten();
        let map = indexes.log_map.get_or_init(made).as_ref();
        // Either who takes these handles from the segment, before its log may be cut, finds the map
        // and makes it blank; or they are found gone here, and nobody ever looks into it.
        fence(Ordering::SeqCst);
        if !segment.is_live() && segment.has_handles(self) {
            map.inspect(|map| map.open());
        }
        map
    }

    /// From now on the log is not looked at by a map: to be said when these are no handles of the
    /// segment any more, and before its log is cut.
    ///
    /// # Errors
    /// What the system says: then the log must not be cut.
    pub(super) fn blank_map(&self) -> Result<()> {
        fence(Ordering::SeqCst);
        match self.indexes.get().and_then(|indexes| indexes.log_map.get()) {
            Some(Some(map)) => map.blank(&*self.log.file),
            Some(None) | None => Ok(()),
        }
    }

    /// An index file; `None` when there is none.
    pub(crate) fn index(
        &self,
        segment: &LogSegment,
        folder: &Folder,
        role: FileRole,
    ) -> Result<Option<&Arc<dyn File>>> {
        let slot = self.indexes.get_or_init(Box::default).slot(role);
        if let Some(file) = slot.get() {
            return Ok(Some(file));
        }
        let opened = folder.open(segment.base_offset(), role, OpenMode::ReadWrite);
        // Without the check a reader of committed data would miss the index of transactions.
        let file: Arc<dyn File> = match segment.check_own(Ok(opened), folder)? {
            Ok(file) => file.into(),
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // Where another thread was first, its file.
        let mut is_new = false;
        let kept = slot.get_or_init(|| {
            is_new = true;
            file
        });
        if is_new {
            self.log.open_files.add(1);
            self.log.open_files.shrink();
        }
        Ok(Some(kept))
    }

    /// Its open files.
    pub(super) fn file_count(&self) -> usize {
        let open = |indexes: &OpenIndexes| {
            let all = [&indexes.offset, &indexes.time, &indexes.txn];
            all.iter().filter(|index| index.get().is_some()).count()
        };
        1 + self.indexes.get().map_or(0, |indexes| open(indexes))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::io::SimDisk;
    use crate::segment::{ActiveSegment, SegmentSettings};

    fn sealed() -> (Folder, Arc<LogSegment>) {
        let disk = SimDisk::new();
        disk.put_dir(Path::new("/orders-0"), None).unwrap();
        let folder = Folder::new(Arc::new(disk), Path::new("/orders-0"), OpenFiles::new(10));
        let settings = SegmentSettings {
            segment_bytes: 1000,
            segment_ms: 1000,
            segment_jitter_ms: 0,
            index_bytes: 100,
            index_interval_bytes: 10,
            preallocate: false,
        };
        let mut active = ActiveSegment::create(&folder, 0, &settings, 0).unwrap();
        active.touch_indexes(&folder, &settings).unwrap();
        active.finish_files(&folder).unwrap();
        (folder, active.seal())
    }

    #[test]
    fn a_lease_keeps_the_log_open_and_nothing_else() {
        let (folder, segment) = sealed();
        let handles = segment.handles(&folder).unwrap();
        assert!(handles.index(&segment, &folder, FileRole::OffsetIndex).unwrap().is_some());
        assert!(handles.index(&segment, &folder, FileRole::TxnIndex).unwrap().is_none());
        drop(handles);
        let (one, other) = (segment.lease(&folder).unwrap(), segment.lease(&folder).unwrap());
        assert!(Arc::ptr_eq(&one, &other), "the same thread");
        assert_eq!(folder.open_files().count(), 2);
        drop(segment.let_go());
        assert_eq!(folder.open_files().count(), 1);
        assert_eq!(one.file().metadata().unwrap().size_bytes, 0);
        drop((one, other));
        assert_eq!(folder.open_files().count(), 0);
        // It is opened again.
        segment.lease(&folder).unwrap();
        assert_eq!(folder.open_files().count(), 1);
    }

    #[test]
    fn a_lease_knows_how_often_its_log_was_cut_when_the_segment_is_gone() {
        // It said that the log was never cut: a range of one that had been was thrown away.
        let (folder, segment) = sealed();
        segment.truncated();
        let lease = segment.lease(&folder).unwrap();
        segment.truncated();
        assert_eq!(lease.truncations(), 2);
        drop(segment);
        assert_eq!(lease.truncations(), 2);
    }

    #[test]
    fn threads_have_leases_of_their_own() {
        let (folder, segment) = sealed();
        let own = segment.lease(&folder).unwrap();
        let of_another = || {
            std::thread::scope(|scope| {
                scope.spawn(|| segment.lease(&folder).unwrap()).join().unwrap()
            })
        };
        // There are only a few: some threads share one.
        assert!((0..64).any(|_| !Arc::ptr_eq(&own, &of_another())));
        assert_eq!(folder.open_files().count(), 1);
    }
}
