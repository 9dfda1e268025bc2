//! Which entry of an index file is the last that is not above a target? By few reads, without
//! holding the file in memory.

use crate::error::Result;
use crate::io::File;

/// Entries that are read at a time: few around the guess, which is mostly right, and more where it
/// was not.
const FIRST_ENTRIES: u64 = 64;
const BLOCK_ENTRIES: u64 = 512;

/// An index file and how its entries compare.
pub(super) struct IndexFile<'a, K> {
    pub(super) file: &'a dyn File,
    pub(super) entry_size: usize,
    /// Entries that count; what lies behind them in the file does not.
    pub(super) count: u64,
    /// The key of an entry, rising from entry to entry.
    pub(super) key: K,
}

impl<K: Fn(&[u8]) -> i64> IndexFile<'_, K> {
    /// The last entry whose key is at most `target`, and its slot. `guess` is the slot where it may
    /// be: a right guess costs one read.
    pub(super) fn lower_bound(&self, target: i64, guess: u64) -> Result<Option<(u64, Vec<u8>)>> {
        // All entries before `first` are at most the target, `best` is the last of them; all from
        // `end` on are above it.
        let (mut first, mut end) = (0, self.count);
        let mut best = None;
        let mut middle = guess;
        let mut block_entries = FIRST_ENTRIES;
        let mut steps = [BLOCK_ENTRIES, 8 * BLOCK_ENTRIES].into_iter();
        let mut block = Vec::new();
        while first < end {
            let count = block_entries.min(end - first);
            block_entries = BLOCK_ENTRIES;
            let start = middle.saturating_sub(count / 2).clamp(first, end - count);
            let found = self.read(start, count, &mut block)?;
            let entries = block.chunks_exact(self.entry_size);
            let below = entries.take_while(|entry| (self.key)(entry) <= target).count();
            let is_behind = below > 0;
            if let Some(last) = below.checked_sub(1) {
                let slot = start + u64::try_from(last).unwrap_or(u64::MAX);
                let entry = block.chunks_exact(self.entry_size).nth(last);
                best = entry.map(|entry| (slot, entry.to_vec()));
                let passed = start + u64::try_from(below).unwrap_or(u64::MAX);
                if passed < start + found {
                    return Ok(best);
                }
                first = passed;
                if found < count {
                    // The file was cut while it was read.
                    return Ok(best);
                }
            } else {
                end = start;
            }
            // A guess that was wrong was mostly not far off.
            let near = steps.next().map(|step| step.min(end - first));
            middle = match near {
                Some(step) if is_behind => first + step / 2,
                Some(step) => end - step / 2,
                None => first + (end - first) / 2,
            };
        }
        Ok(best)
    }

    /// The last entry.
    pub(super) fn last(&self) -> Result<Option<Vec<u8>>> {
        match self.count.checked_sub(1) {
            Some(slot) => self.entry(slot),
            None => Ok(None),
        }
    }

    /// The entry in a slot; `None` where the file ends before.
    pub(super) fn entry(&self, slot: u64) -> Result<Option<Vec<u8>>> {
        let mut entry = Vec::new();
        let found = self.read(slot, 1, &mut entry)?;
        Ok((found == 1).then_some(entry))
    }

    /// The bytes of all entries.
    pub(super) fn all(&self) -> Result<Vec<u8>> {
        let mut entries = Vec::new();
        self.read(0, self.count, &mut entries)?;
        Ok(entries)
    }

    /// Reads entries into `block`; gives how many were there.
    fn read(&self, start: u64, count: u64, block: &mut Vec<u8>) -> Result<u64> {
        let size = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(self.entry_size);
        block.clear();
        block.resize(size, 0);
        let entry_size = u64::try_from(self.entry_size).unwrap_or(u64::MAX);
        let read = self.file.read_at(block, start.saturating_mul(entry_size))?;
        let found = read / self.entry_size;
        block.truncate(found * self.entry_size);
        Ok(u64::try_from(found).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::bytes;
    use crate::io::{OpenMode, SimDisk, Storage};

    /// A file of 8-byte entries with these keys, and zeros behind.
    fn file(keys: &[i32]) -> Box<dyn File> {
        let file = SimDisk::new().open(Path::new("/index"), OpenMode::CreateNew).unwrap();
        let entries = keys.iter().flat_map(|key| [key.to_be_bytes(), [9; 4]].concat());
        file.write_at(&entries.collect::<Vec<u8>>(), 0).unwrap();
        file.set_size(u64::try_from(keys.len() * 8 + 800).unwrap()).unwrap();
        file
    }

    fn key(entry: &[u8]) -> i64 {
        bytes::get_i32(entry, 0).map_or(i64::MAX, i64::from)
    }

    #[test]
    fn every_target_is_found_from_every_guess() {
        for count in [0, 1, 2, 511, 512, 513, 1500, 3000] {
            let keys: Vec<i32> = (0..count).map(|slot| slot * 3 + 5).collect();
            let file = file(&keys);
            let count = u64::try_from(count).unwrap();
            let index = IndexFile { file: &*file, entry_size: 8, count, key };
            for target in (-1..i64::try_from(count).unwrap() * 3 + 9).step_by(7) {
                let below = keys.iter().filter(|key| i64::from(**key) <= target).count();
                let wanted = below.checked_sub(1).map(|slot| (slot, keys[slot]));
                for guess in [0, count / 2, count, u64::MAX / 2] {
                    let found = index.lower_bound(target, guess).unwrap();
                    let found = found.map(|(slot, entry)| {
                        (usize::try_from(slot).unwrap(), bytes::get_i32(&entry, 0).unwrap())
                    });
                    assert_eq!(found, wanted, "{target} of {count} from {guess}");
                }
            }
            let last = index.last().unwrap().map(|entry| key(&entry));
            assert_eq!(last, keys.last().map(|key| i64::from(*key)));
        }
    }

    #[test]
    fn a_file_that_is_shorter_than_its_count_ends_the_search() {
        let file = file(&[1, 2, 3]);
        file.set_size(20).unwrap();
        let index = IndexFile { file: &*file, entry_size: 8, count: 2000, key };
        let found = index.lower_bound(i64::MAX, 1000).unwrap();
        assert!(found.is_none_or(|(slot, _)| slot < 2));
        assert_eq!(index.all().unwrap().len(), 16);
        assert_eq!(index.entry(2).unwrap(), None);
    }
}
