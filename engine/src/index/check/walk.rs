//! The entries of an index file, in the order in which the batches of the log pass them.

use super::super::entries::{Entries, IndexEntry};
use super::findings::{Findings, count_before_padding, position_of};
use crate::problem::Code;

/// The entries of an index that is checked, and how many of them were passed.
#[derive(Debug)]
pub(super) struct Walk<'a, E: IndexEntry> {
    entries: Entries<'a, E>,
    /// The slots by rising key; empty when they lie so in the file.
    by_key: Vec<u32>,
    /// How many entries, by rising key, were passed.
    rank: usize,
    /// What zeros behind the entries are called.
    padding: Code,
}

impl<'a, E: IndexEntry> Walk<'a, E> {
    const ENTRY_SIZE: usize = size_of::<E::Raw>();

    /// Opens an index file, all bytes of it; tells of bytes and zeros behind its entries.
    pub(super) fn new(
        bytes: &'a [u8],
        base_offset: i64,
        padding: Code,
        findings: &mut Findings,
    ) -> Self {
        let all = Entries::<E>::new(bytes, base_offset);
        let size = Self::ENTRY_SIZE;
        if all.stray_size_bytes() != 0 {
            findings.add(Code::IndexSize, position_of(all.count(), size), None, || {
                format!("{} bytes behind the last whole entry of {size}", all.stray_size_bytes())
            });
        }
        let mut count = count_before_padding(bytes, size);
        let zeros = all.count() - count;
        if count == 0 && zeros == 1 {
            // A single zero entry may be a real one: the batches tell.
            count = 1;
        }
        let bytes = bytes.get(..count * size).unwrap_or_default();
        let entries = Entries::new(bytes, base_offset);
        let walk = Walk { entries, by_key: Vec::new(), rank: 0, padding };
        if count < all.count() {
            walk.add_padding(findings, count, zeros);
        }
        walk
    }

    /// All entries, in the order of the file.
    pub(super) fn entries(&self) -> Entries<'a, E> {
        self.entries
    }

    /// Says by which key the batches pass the entries.
    pub(super) fn order_by(&mut self, key: impl Fn(E) -> i64) {
        let entries = self.entries;
        if entries.iter().is_sorted_by_key(&key) {
            return;
        }
        // Only a damaged file pays for this; what its entries name is looked at in any case.
        self.by_key = (0..).take(entries.count()).collect();
        self.by_key.sort_by_key(|slot| {
            usize::try_from(*slot).ok().and_then(|slot| entries.get(slot)).map(&key)
        });
    }

    /// The first entry that was not passed, and its slot.
    pub(super) fn next(&self) -> Option<(usize, E)> {
        let slot = match self.by_key.is_empty() {
            true => self.rank,
            false => usize::try_from(*self.by_key.get(self.rank)?).ok()?,
        };
        Some((slot, self.entries.get(slot)?))
    }

    /// Passes it.
    pub(super) fn pass(&mut self) {
        self.rank += 1;
    }

    /// Says that the only entry, of zeros, is none.
    pub(super) fn add_lone_padding(&self, findings: &mut Findings) {
        self.add_padding(findings, 0, 1);
    }

    fn add_padding(&self, findings: &mut Findings, count: usize, zeros: usize) {
        findings.add(self.padding, position_of(count, Self::ENTRY_SIZE), None, || {
            format!("{zeros} zero entries behind {count} real ones")
        });
    }
}
