//! Which index of a sealed segment is worth memory? One that is looked into again and again: then a
//! look-up costs no system call. All logs that share open files share a bound of such memory.

use std::sync::{Arc, OnceLock};

use super::open_files::{IndexRoom, OpenFiles};
use crate::error::Result;
use crate::io::File;
use crate::sync::atomic::{AtomicU32, Ordering};

/// Look-ups by reading before the index is taken into memory: as many cost about as much.
const LOOKUPS_BEFORE: u32 = 8;

/// The entries of one index of a sealed segment, if they are in memory.
#[derive(Debug)]
pub(super) struct IndexMemory {
    lookups: AtomicU32,
    loaded: OnceLock<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    entries: Box<[u8]>,
    /// Given back with the entries.
    _room: IndexRoom,
}

impl Default for IndexMemory {
    fn default() -> Self {
        IndexMemory { lookups: AtomicU32::new(0), loaded: OnceLock::new() }
    }
}

impl IndexMemory {
    /// The entries, if they are in memory.
    pub(super) fn entries(&self) -> Option<&[u8]> {
        self.loaded.get().map(|loaded| &*loaded.entries)
    }

    /// Whether there were so many look-ups that more are to be expected.
    pub(super) fn is_worth_it(&self) -> bool {
        self.lookups.load(Ordering::Relaxed) > LOOKUPS_BEFORE
    }

    /// The same after a look-up that found none: taken into memory now if there were enough of
    /// them, and there is room.
    pub(super) fn load(
        &self,
        file: &dyn File,
        size_bytes: u64,
        open_files: &Arc<OpenFiles>,
    ) -> Result<Option<&[u8]>> {
        if self.lookups.fetch_add(1, Ordering::Relaxed) < LOOKUPS_BEFORE {
            return Ok(None);
        }
        let Some(room) = usize::try_from(size_bytes).ok().and_then(|size| open_files.room(size))
        else {
            return Ok(None);
        };
        let mut entries = vec![0; room.size_bytes()];
        let read = file.read_at(&mut entries, 0)?;
        if read < entries.len() {
            return Ok(None);
        }
        let loaded = || Loaded { entries: entries.into_boxed_slice(), _room: room };
        Ok(Some(&self.loaded.get_or_init(loaded).entries))
    }
}
