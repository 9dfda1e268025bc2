//! Which segments are in the cache, which were asked for last, and what is to be unlinked when?

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use super::files::Name;
use super::{IndexCacheOptions, IndexCacheStats, SegmentIndexes, closed};
use crate::error::Result;
use crate::uuid::{Uuid, UuidMap};

/// One segment in the cache.
#[derive(Debug)]
struct Entry {
    name: Name,
    size_bytes: u64,
    /// Whether all of its files are there: a load that failed leaves some.
    is_whole: bool,
    /// In memory, once somebody has asked for it.
    indexes: Option<Arc<SegmentIndexes>>,
    used_ms: i64,
    /// Its place in the order of use.
    turn: u64,
}

#[derive(Debug)]
pub(super) struct Books {
    pub(super) options: IndexCacheOptions,
    pub(super) stats: IndexCacheStats,
    pub(super) is_closed: bool,
    /// Segments that somebody loads now.
    pub(super) loading: HashSet<Uuid>,
    entries: UuidMap<Entry>,
    /// Those that nobody asked for lately come first.
    by_turn: BTreeMap<u64, Uuid>,
    last_turn: u64,
    size_bytes: u64,
    /// Files to be unlinked, and when.
    deletions: VecDeque<(i64, PathBuf)>,
}

impl Books {
    pub(super) fn new(options: IndexCacheOptions) -> Self {
        Books {
            options,
            stats: IndexCacheStats::default(),
            is_closed: false,
            loading: HashSet::new(),
            entries: UuidMap::default(),
            by_turn: BTreeMap::new(),
            last_turn: 0,
            size_bytes: 0,
            deletions: VecDeque::new(),
        }
    }

    pub(super) fn check_open(&self) -> Result<()> {
        if self.is_closed { Err(closed()) } else { Ok(()) }
    }

    pub(super) fn contains(&self, id: Uuid) -> bool {
        self.entries.get(&id).is_some_and(|entry| entry.is_whole)
    }

    pub(super) fn count(&self) -> usize {
        self.entries.values().filter(|entry| entry.is_whole).count()
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// A segment that is in memory; it was used now.
    pub(super) fn find(&mut self, id: Uuid, now_ms: i64) -> Option<Arc<SegmentIndexes>> {
        let entry = self.entries.get_mut(&id)?;
        let indexes = entry.indexes.clone()?;
        self.by_turn.remove(&entry.turn);
        self.last_turn += 1;
        (entry.turn, entry.used_ms) = (self.last_turn, now_ms);
        self.by_turn.insert(entry.turn, id);
        self.stats.hits += 1;
        Some(indexes)
    }

    /// Enters a segment that was used now, instead of what is said of it.
    pub(super) fn enter(
        &mut self,
        name: Name,
        size_bytes: u64,
        indexes: Option<Arc<SegmentIndexes>>,
        used_ms: i64,
    ) {
        let id = name.segment_id;
        self.leave(id);
        self.last_turn += 1;
        let turn = self.last_turn;
        self.by_turn.insert(turn, id);
        self.size_bytes = self.size_bytes.saturating_add(size_bytes);
        let is_whole = true;
        self.entries.insert(id, Entry { name, size_bytes, is_whole, indexes, used_ms, turn });
    }

    /// Enters what a load that failed has left on the disk: it goes as whole segments do.
    pub(super) fn enter_part(&mut self, name: Name, size_bytes: u64, used_ms: i64) {
        self.enter(name, size_bytes, None, used_ms);
        if let Some(entry) = self.entries.get_mut(&name.segment_id) {
            entry.is_whole = false;
        }
    }

    /// Takes a segment off.
    pub(super) fn leave(&mut self, id: Uuid) -> Option<Name> {
        let entry = self.entries.remove(&id)?;
        self.by_turn.remove(&entry.turn);
        self.size_bytes = self.size_bytes.saturating_sub(entry.size_bytes);
        Some(entry.name)
    }

    /// Takes off the segment that nobody asked for longest, if all of them are too many bytes.
    pub(super) fn take_beyond_limit(&mut self) -> Option<Name> {
        let (_, id) = self.by_turn.first_key_value()?;
        let (id, is_beyond) = (*id, self.size_bytes > self.options.limit_bytes);
        is_beyond.then(|| self.evict(id)).flatten()
    }

    /// Takes off the segment that nobody asked for longest, if that is too long.
    pub(super) fn take_expired(&mut self, now_ms: i64) -> Option<Name> {
        let is_expired = self.next_expiry_ms()? <= now_ms;
        let (_, id) = self.by_turn.first_key_value()?;
        let id = *id;
        is_expired.then(|| self.evict(id)).flatten()
    }

    fn evict(&mut self, id: Uuid) -> Option<Name> {
        self.stats.evictions += 1;
        self.leave(id)
    }

    fn next_expiry_ms(&self) -> Option<i64> {
        let (_, id) = self.by_turn.first_key_value()?;
        Some(self.entries.get(id)?.used_ms.saturating_add(self.options.ttl_ms?))
    }

    pub(super) fn unlink_later(&mut self, path: PathBuf, now_ms: i64) {
        let due_ms = now_ms.saturating_add(self.options.file_delete_delay_ms);
        self.deletions.push_back((due_ms, path));
    }

    /// The files that are to be unlinked by now.
    pub(super) fn take_due(&mut self, now_ms: i64) -> Vec<PathBuf> {
        let is_due = |&(due_ms, _): &(i64, PathBuf)| due_ms <= now_ms;
        let (due, later): (Vec<_>, Vec<_>) = self.deletions.drain(..).partition(is_due);
        self.deletions = later.into();
        due.into_iter().map(|(_, path)| path).collect()
    }

    pub(super) fn next_due_ms(&self) -> Option<i64> {
        let deletion = self.deletions.iter().map(|(due_ms, _)| *due_ms).min();
        deletion.into_iter().chain(self.next_expiry_ms()).min()
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.entries.clear();
        self.by_turn.clear();
        self.deletions.clear();
        self.size_bytes = 0;
    }
}
