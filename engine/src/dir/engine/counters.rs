//! How much is there, and how busy is it? Counted when it is asked for.

use std::sync::atomic::Ordering;

use super::directory::LogDir;
use super::engine::Engine;
use super::partitions::Place;

/// What an engine holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounters {
    /// Open logs, future ones too.
    pub logs: u64,
    /// Those of them that are to replace others.
    pub future_logs: u64,
    /// Logs that are there and not open: refused, or in a directory that is offline.
    pub shut_logs: u64,
    /// Logs that take no writes, since a sync failed.
    pub failed_logs: u64,
    /// Logs that hold what compaction cannot read, and are left alone until the next start.
    pub uncleanable_logs: u64,
    /// Directories that are offline.
    pub offline_dirs: u64,
    /// Segments of open logs.
    pub segments: u64,
    /// Bytes of their batches.
    pub size_bytes: u64,
    /// Bytes of the segments that are not known to be durable.
    pub dirty_bytes: u64,
    /// Segments whose files are open.
    pub open_segments: u64,
    /// Files of segments that are open.
    pub open_files: u64,
    /// Folders that wait for their deletion.
    pub waiting_folders: u64,
}

impl Engine {
    /// Counts. It looks at every segment, so it is for now and then.
    #[must_use]
    pub fn counters(&self) -> EngineCounters {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let mut counters = EngineCounters {
            offline_dirs: count(self.dirs.iter().filter(|dir| LogDir::is_offline(dir)).count()),
            open_files: count(self.open_files.count()),
            waiting_folders: count(self.removals().len()),
            ..EngineCounters::default()
        };
        for (_, _, is_future, place) in self.read().iter() {
            let Place::Open(entry) = place else {
                counters.shut_logs += 1;
                continue;
            };
            let segments = entry.log.segments();
            counters.logs += 1;
            counters.future_logs += u64::from(is_future);
            counters.failed_logs += u64::from(entry.log.is_failed());
            counters.uncleanable_logs += u64::from(entry.is_uncleanable.load(Ordering::Relaxed));
            counters.segments += count(segments.count());
            counters.size_bytes += segments.size_bytes();
            counters.open_segments +=
                count(segments.iter().filter(|segment| segment.is_open()).count());
            let (durable, end) = (entry.log.recovery_point(), entry.log.log_end_offset());
            let dirty = segments.values(durable, end.max(durable)).unwrap_or_default();
            counters.dirty_bytes += dirty.iter().map(|segment| segment.size_bytes()).sum::<u64>();
        }
        counters
    }
}
