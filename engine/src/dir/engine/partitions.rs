//! Which log is whose? The table of all partitions, by topic and number.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::directory::Failure;
use crate::log::Log;

/// In the place of a line that a checkpoint does not have.
pub(super) const NO_LINE: i64 = i64::MIN;

/// An open log and where it belongs.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
    pub(super) is_future: bool,
    /// The number of its directory.
    pub(super) dir: usize,
    pub(super) log: Arc<Log>,
    /// When retention is to look at it, in milliseconds since 1970.
    pub(super) retain_at: AtomicI64,
    /// When its producers may have expired.
    pub(super) expire_at: AtomicI64,
    /// Before then nothing of it is tried again.
    pub(super) retry_at: AtomicI64,
    /// What `cleaner-offset-checkpoint` says of it; [`NO_LINE`] for nothing.
    pub(super) compacted_saved: AtomicI64,
    /// It holds what compaction cannot read: it is left alone until the next start.
    pub(super) is_uncleanable: AtomicBool,
    /// Held while it is compacted.
    pub(super) compacting: Mutex<()>,
    /// Kinds of work that are handed out.
    pub(super) busy: AtomicU8,
}

impl Entry {
    /// Ends a round of compaction, waits until it is over, and lets none begin.
    pub(super) fn pause_compaction(&self) {
        self.log.pause_compaction();
        drop(self.compacting.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether `cleaner-offset-checkpoint` says this of it.
    pub(super) fn is_saved(&self, compacted_end: Option<i64>) -> bool {
        self.compacted_saved.load(Ordering::Acquire) == compacted_end.unwrap_or(NO_LINE)
    }

    /// Marks a kind of work as handed out; `false` when it is.
    pub(super) fn claim(&self, bit: u8) -> bool {
        self.busy.fetch_or(bit, Ordering::AcqRel) & bit == 0
    }
}

/// What is under the name of a partition.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Its log.
    Open(Arc<Entry>),
    /// A folder that is not open, and why.
    Shut(Arc<Shut>),
}

/// A folder that is not open.
#[derive(Debug)]
pub(super) struct Shut {
    pub(super) path: PathBuf,
    pub(super) dir: usize,
    pub(super) failure: Failure,
}

impl Place {
    pub(super) fn dir(&self) -> usize {
        match self {
            Place::Open(entry) => entry.dir,
            Place::Shut(shut) => shut.dir,
        }
    }

    pub(super) fn entry(&self) -> Option<&Arc<Entry>> {
        match self {
            Place::Open(entry) => Some(entry),
            Place::Shut(_) => None,
        }
    }
}

/// The current log of a partition, and the one that will replace it.
#[derive(Debug, Default)]
struct Slot {
    current: Option<Place>,
    future: Option<Place>,
}

impl Slot {
    fn side(&self, is_future: bool) -> Option<&Place> {
        if is_future { self.future.as_ref() } else { self.current.as_ref() }
    }

    fn side_mut(&mut self, is_future: bool) -> &mut Option<Place> {
        if is_future { &mut self.future } else { &mut self.current }
    }
}

/// All partitions.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    topics: BTreeMap<Arc<str>, BTreeMap<i32, Slot>>,
}

impl Partitions {
    pub(super) fn get(&self, topic: &str, partition: i32, is_future: bool) -> Option<&Place> {
        self.topics.get(topic)?.get(&partition)?.side(is_future)
    }

    /// The topic's name as the table has it.
    pub(super) fn name(&self, topic: &str) -> Arc<str> {
        match self.topics.get_key_value(topic) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(topic),
        }
    }

    /// The first open log of a topic.
    pub(super) fn first_of(&self, topic: &str) -> Option<&Arc<Entry>> {
        let mut slots = self.topics.get(topic)?.values();
        slots.find_map(|slot| slot.current.as_ref()?.entry())
    }

    /// Puts a log in its place, and gives what was there.
    pub(super) fn put(
        &mut self,
        topic: &Arc<str>,
        partition: i32,
        is_future: bool,
        place: Place,
    ) -> Option<Place> {
        let partitions = self.topics.entry(Arc::clone(topic)).or_default();
        partitions.entry(partition).or_default().side_mut(is_future).replace(place)
    }

    pub(super) fn remove(&mut self, topic: &str, partition: i32, is_future: bool) -> Option<Place> {
        let partitions = self.topics.get_mut(topic)?;
        let slot = partitions.get_mut(&partition)?;
        let removed = slot.side_mut(is_future).take();
        if slot.current.is_none() && slot.future.is_none() {
            partitions.remove(&partition);
        }
        if partitions.is_empty() {
            self.topics.remove(topic);
        }
        removed
    }

    /// All places: topic, partition, whether it is of a future log.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, i32, bool, &Place)> {
        self.topics.iter().flat_map(|(topic, partitions)| {
            partitions.iter().flat_map(move |(partition, slot)| {
                let current = slot.current.iter().map(|place| (false, place));
                let all = current.chain(slot.future.iter().map(|place| (true, place)));
                all.map(move |(is_future, place)| (topic, *partition, is_future, place))
            })
        })
    }

    /// All open logs.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.iter().filter_map(|(_, _, _, place)| place.entry())
    }
}
