//! Can many threads look into a file by a map, and one of them cut the file meanwhile?
//!
//! Bytes are copied out of the map, and count only if the map was the file all the while. Before
//! the file is cut, zeros take the place of the file in the map: who is at it then sees them, finds
//! that they do not count, and reads the file instead. So a cut waits for no reader, and none of
//! them faults.
//!
//! ```text
//! reader   |  copy bytes             |  is it blank? yes: they do not count
//! cutter   |  say that it is blank   |  map zeros over it   |  cut the file
//! ```
//!
//! What somebody else cuts off, or the disk fails to read, is a SIGBUS: see `io/mapped.rs`.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering, fence};

use rustix::mm::Advice;

use super::mapped::WatchedMap;
use crate::error::{Error, Result};
use crate::io::File;

/// Nobody looks yet: the file may have been cut since it was mapped.
const NEW: u8 = 0;
const OPEN: u8 = 1;
/// Nobody looks any more.
const BLANK: u8 = 2;

/// A file as memory, for look-ups here and there.
pub(crate) struct SharedMap {
    map: WatchedMap,
    state: AtomicU8,
}

impl SharedMap {
    /// Maps the first `size_bytes` of `file`, for places all over it: nothing is read ahead. `None`
    /// where there is nothing to be mapped, as in [`MappedFile`](super::MappedFile).
    pub(crate) fn new(file: &dyn File, size_bytes: u64) -> Result<Option<Self>> {
        let map = WatchedMap::new(file, 0, size_bytes, Advice::Random)?;
        Ok(map.map(|map| SharedMap { map, state: AtomicU8::new(NEW) }))
    }

    /// From now on it may be looked into, unless it is blank: whoever cuts the file knows of it.
    pub(crate) fn open(&self) {
        // When it is blank by now, it stays so.
        let _ = self.state.compare_exchange(NEW, OPEN, Ordering::SeqCst, Ordering::SeqCst);
    }

    fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == OPEN && self.map.is_whole()
    }

    /// Copies the bytes from `position` on, all of them; `false` when they are to be read from the
    /// file instead.
    pub(crate) fn copy_at(&self, bytes: &mut [u8], position: u64) -> bool {
        if !self.is_open() {
            return false;
        }
        let Ok(first) = usize::try_from(position) else { return false };
        if !self.map.map().copy(first, bytes) {
            return false;
        }
        // Whoever puts zeros there says so first.
        fence(Ordering::Acquire);
        self.is_open()
    }

    /// From now on nothing is looked up here: `file`, which is mapped, may be cut.
    ///
    /// # Errors
    /// What the system says: the file must not be cut as long as this lives.
    pub(crate) fn blank(&self, file: &dyn File) -> Result<()> {
        self.state.store(BLANK, Ordering::SeqCst);
        let blank = self.map.map().blank();
        blank.map_err(|e| Error::io("map zeros in the place of", file.path(), e.into()))
    }
}

impl fmt::Debug for SharedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMap").field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::io::{Disk, OpenMode, SimDisk, Storage};

    #[test]
    fn bytes_count_until_the_file_is_to_be_cut() {
        let dir = tempfile::tempdir().unwrap();
        let file = Disk::new().open(&dir.path().join("log"), OpenMode::CreateNew).unwrap();
        let content: Vec<u8> = (0..10_000_u32).map(|at| at.to_le_bytes()[0]).collect();
        file.write_at(&content, 0).unwrap();
        assert!(SharedMap::new(&*file, 10_001).unwrap().is_none());
        assert!(SharedMap::new(&*file, 0).unwrap().is_none());
        let map = SharedMap::new(&*file, 10_000).unwrap().unwrap();
        let mut bytes = [0; 64];
        assert!(!map.copy_at(&mut bytes, 0), "not yet");
        map.open();
        for position in [0, 1, 4090, 9936] {
            assert!(map.copy_at(&mut bytes, position));
            let first = usize::try_from(position).unwrap();
            assert_eq!(bytes, content[first..first + 64]);
        }
        for position in [9937, 10_000, u64::MAX] {
            assert!(!map.copy_at(&mut bytes, position), "{position} is no place of the file");
        }
        map.blank(&*file).unwrap();
        file.set_size(0).unwrap();
        assert!(!map.copy_at(&mut bytes, 0));
        map.open();
        assert!(!map.copy_at(&mut bytes, 0), "blank for good");
        map.blank(&*file).unwrap();
    }

    #[test]
    fn a_file_of_the_simulated_disk_has_no_map() {
        let file = SimDisk::new().open(std::path::Path::new("/log"), OpenMode::CreateNew).unwrap();
        file.write_at(&[1; 100], 0).unwrap();
        assert!(SharedMap::new(&*file, 100).unwrap().is_none());
    }

    #[test]
    fn who_looks_while_the_file_is_cut_does_not_fault() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let file = Disk::new().open(&path, OpenMode::CreateNew).unwrap();
        for _ in 0..200 {
            file.write_at(&vec![7; 1 << 20], 0).unwrap();
            let map = SharedMap::new(&*file, 1 << 20).unwrap().unwrap();
            map.open();
            let looks = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for reader in 0..2_u64 {
                    let (map, looks) = (&map, &looks);
                    scope.spawn(move || {
                        let mut bytes = [0; 61];
                        for at in 0.. {
                            let position = (at * 40_503 + reader * 7) % ((1 << 20) - 61);
                            if !map.copy_at(&mut bytes, position) {
                                break;
                            }
                            assert_eq!(bytes, [7; 61], "what counts is the file");
                            looks.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                while looks.load(Ordering::Relaxed) < 50 {
                    std::thread::yield_now();
                }
                map.blank(&*file).unwrap();
                file.set_size(0).unwrap();
            });
        }
    }
}
