//! Can part of a file be a slice, for somebody who has asked for that?
//!
//! This map, and that of look-ups (`io/shared_map.rs`), is made without the guard against SIGBUS,
//! too: who asks for it has said that nobody else cuts the file, and that an I/O error may be a
//! signal.

use std::fmt;

use rustix::mm::Advice;

use super::map::{Map, Slot, is_guarded};
use crate::error::{Error, Result};
use crate::io::File;

/// A map that the guard watches, in a process that has one
/// ([`guard_process`](super::map::guard_process)).
pub(super) struct WatchedMap {
    map: Map,
    slot: Option<&'static Slot>,
}

impl WatchedMap {
    /// Maps `file` from `start` to `end`. `None` where there is nothing to be mapped: no bytes, a
    /// file of the simulated disk, one that is shorter, or a process with the guard that has as
    /// many maps as it can watch.
    pub(super) fn new(
        file: &dyn File,
        start: u64,
        end: u64,
        advice: Advice,
    ) -> Result<Option<Self>> {
        let Some(descriptor) = file.descriptor() else { return Ok(None) };
        let size = end.checked_sub(start).and_then(|size| usize::try_from(size).ok());
        let Some(size) = size.filter(|size| *size > 0) else { return Ok(None) };
        if file.metadata()?.size_bytes < end {
            return Ok(None);
        }
        let slot = if is_guarded() {
            let Some(slot) = Slot::take() else { return Ok(None) };
            Some(slot)
        } else {
            None
        };
        let map = Map::new(descriptor, start, size, advice).map_err(|e| {
            slot.inspect(|slot| slot.give_back());
            Error::io("map", file.path(), e.into()).at_position(start)
        })?;
        slot.inspect(|slot| slot.guard(&map));
        Ok(Some(WatchedMap { map, slot }))
    }

    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    /// Whether all that was seen so far was the file.
    pub(super) fn is_whole(&self) -> bool {
        !self.slot.is_some_and(Slot::has_faulted)
    }
}

impl Drop for WatchedMap {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            // The window stops being ours before its addresses may become somebody else's.
            slot.unguard();
            slot.give_back();
        }
    }
}

/// Part of a file as memory. What the disk fails to read, or what somebody has cut off the file,
/// is a SIGBUS when it is touched; in a process with the guard
/// ([`guard_process`](super::map::guard_process)) it is zeros, of which
/// [`is_whole`](Self::is_whole) tells.
pub struct MappedFile {
    map: WatchedMap,
    /// Bytes of the map before and up to the end of what was asked for.
    first: usize,
    end: usize,
}

impl MappedFile {
    /// Maps `size_bytes` of `file` from `position` on. `None` where there is nothing to be mapped:
    /// no bytes, a file of the simulated disk, one that is shorter, or a process with the guard
    /// that has as many maps as it can watch.
    pub(crate) fn new(file: &dyn File, position: u64, size_bytes: u64) -> Result<Option<Self>> {
        if size_bytes == 0 {
            return Ok(None);
        }
        let end = position.saturating_add(size_bytes);
        let start = Map::start_for(position);
        let (first, size) = match (usize::try_from(position - start), usize::try_from(end - start))
        {
            (Ok(first), Ok(size)) => (first, size),
            _ => return Ok(None),
        };
        let map = WatchedMap::new(file, start, end, Advice::Sequential)?;
        Ok(map.map(|map| MappedFile { map, first, end: size }))
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.map.map().bytes().get(self.first..self.end).unwrap_or_default()
    }

    /// Whether all that was seen so far was the file: `false` after a fault that the guard has
    /// answered with zeros.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.map.is_whole()
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size_bytes = self.end - self.first;
        f.debug_struct("MappedFile").field("size_bytes", &size_bytes).finish_non_exhaustive()
    }
}
