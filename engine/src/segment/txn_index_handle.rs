//! How does a host use a transaction index by itself? As [`index_handle`](super::index_handle) says
//! for the others, but for two things: the file comes with the first entry, and an entry is in it
//! when the append returns.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::index_handle::{closed, open_existing, read_all};
use crate::index::txn::ENTRY_SIZE;
use crate::index::{AbortedTxn, TxnIndexBuilder};
use crate::io::{OpenMode, Storage};
use crate::sync::{ArcSwapOption, Mutex, MutexGuard};
use crate::{Error, Kind, Result};

/// A transaction index by itself: any number of look-ups at once, and one that writes.
#[derive(Debug)]
pub struct TxnIndexHandle {
    base_offset: i64,
    is_writable: bool,
    /// `None` when it is closed.
    entries: ArcSwapOption<TxnIndexBuilder>,
    writer: Mutex<()>,
}

impl TxnIndexHandle {
    /// Opens the index of the segment at `base_offset`; a file that is missing is an empty index.
    ///
    /// # Errors
    /// `Limit` for a file that is longer than an index can be, and what the disk says.
    pub fn open(
        storage: &dyn Storage,
        path: &Path,
        base_offset: i64,
        is_writable: bool,
    ) -> Result<Self> {
        // spec: indexes 4.1
        let bytes = match open_existing(storage, path, is_writable) {
            Ok(Some(file)) => read_all(&*file)?,
            Ok(None) => Vec::new(),
            Err(error) if error.kind() == Kind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let entries = ArcSwapOption::empty();
        entries.store(Some(Arc::new(TxnIndexBuilder::from_bytes(bytes))));
        Ok(TxnIndexHandle { base_offset, is_writable, entries, writer: Mutex::new(()) })
    }

    /// How many entries there are.
    pub fn count(&self) -> Result<usize> {
        Ok(self.entries()?.entries().count())
    }

    /// Adds to `found` what [`TxnEntries::collect_aborted`](crate::index::TxnEntries) gives.
    pub fn collect_aborted(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<bool> {
        self.entries()?.entries().collect_aborted(fetch_offset, upper_bound, found)
    }

    /// Appends an entry to the file, which is made when it is missing.
    ///
    /// # Errors
    /// `InvalidArgument` when its last offset is not above that of the entry before, unless that
    /// was in the file when it was opened; what the disk says. The index is as before then.
    pub fn append(&self, storage: &dyn Storage, path: &Path, txn: &AbortedTxn) -> Result<()> {
        let _writer = self.write()?;
        let mut entries = (*self.entries()?).clone();
        let position = size_of_entries(entries.entries().count());
        entries.append(txn)?;
        let file = match storage.open(path, OpenMode::ReadWrite) {
            Err(error) if error.kind() == Kind::NotFound => {
                storage.open(path, OpenMode::CreateNew)?
            }
            opened => opened?,
        };
        // A file that was cut or made anew gets back what it had.
        if file.metadata()?.size_bytes < position {
            file.write_at(entries.as_bytes(), 0)?;
        } else {
            file.write_at(&txn.encode(), position)?;
        }
        self.entries.store(Some(Arc::new(entries)));
        Ok(())
    }

    /// Removes the first entry that ends at or behind `offset`, and every later one. A file that is
    /// missing is not made.
    pub fn truncate_to(&self, storage: &dyn Storage, path: &Path, offset: i64) -> Result<()> {
        // spec: indexes 4.2
        let _writer = self.write()?;
        let mut entries = (*self.entries()?).clone();
        let count = entries.entries().count();
        entries.truncate_to(offset);
        let kept = entries.entries().count();
        if kept == count {
            return Ok(());
        }
        match storage.open(path, OpenMode::ReadWrite) {
            Ok(file) => file.set_size(size_of_entries(kept))?,
            Err(error) if error.kind() == Kind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.entries.store(Some(Arc::new(entries)));
        Ok(())
    }

    /// Makes the file durable, if there is one.
    pub fn flush(&self, storage: &dyn Storage, path: &Path) -> Result<()> {
        let _writer = self.write()?;
        match storage.open(path, OpenMode::ReadWrite) {
            Ok(file) => file.sync(),
            Err(error) if error.kind() == Kind::NotFound => {
                if self.count()? == 0 {
                    Ok(())
                } else {
                    Err(error)
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Kafka's own check.
    pub fn sanity_check(&self) -> Result<()> {
        self.entries()?.entries().sanity_check(self.base_offset)
    }

    /// Lets go of the index once whoever is writing is done: every call gives `Closed` from now on.
    pub fn close(&self) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.entries.store(None);
    }

    fn entries(&self) -> Result<Arc<TxnIndexBuilder>> {
        self.entries.load_full().ok_or_else(closed)
    }

    fn lock(&self) -> Result<MutexGuard<'_, ()>> {
        match self.writer.try_lock() {
            Ok(guard) => Ok(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => {
                Err(Error::new(Kind::Conflict, "another thread is writing to this index"))
            }
        }
    }

    fn write(&self) -> Result<MutexGuard<'_, ()>> {
        let guard = self.lock()?;
        self.entries()?;
        if !self.is_writable {
            return Err(Error::new(Kind::Conflict, "the index was opened for reading"));
        }
        Ok(guard)
    }
}

fn size_of_entries(count: usize) -> u64 {
    u64::try_from(count.saturating_mul(ENTRY_SIZE)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::SimDisk;

    fn txn(last: i64) -> AbortedTxn {
        AbortedTxn { producer_id: 7, first_offset: 5, last_offset: last, last_stable_offset: last }
    }

    #[test]
    fn the_file_comes_with_the_first_entry_and_goes_with_its_name() {
        // spec: indexes 4.1, 4.2
        let (disk, path, moved) = (SimDisk::new(), Path::new("/a.txnindex"), Path::new("/b"));
        let index = TxnIndexHandle::open(&disk, path, 0, true).unwrap();
        index.flush(&disk, path).unwrap();
        index.truncate_to(&disk, path, 0).unwrap();
        assert_eq!(disk.metadata(path).unwrap_err().kind(), Kind::NotFound);
        index.append(&disk, path, &txn(10)).unwrap();
        disk.rename(path, moved).unwrap();
        index.append(&disk, moved, &txn(20)).unwrap();
        index.flush(&disk, moved).unwrap();
        assert_eq!(index.flush(&disk, path).unwrap_err().kind(), Kind::NotFound);
        assert_eq!(disk.metadata(moved).unwrap().size_bytes, 68);
        let again = index.append(&disk, moved, &txn(20)).unwrap_err();
        assert_eq!(again.kind(), Kind::InvalidArgument);
        index.truncate_to(&disk, moved, 15).unwrap();
        assert_eq!(disk.metadata(moved).unwrap().size_bytes, 34);
        let mut found = Vec::new();
        assert!(!index.collect_aborted(0, 100, &mut found).unwrap());
        assert_eq!(found, [txn(10)]);
        index.sanity_check().unwrap();
    }

    #[test]
    fn a_file_that_was_cut_gets_back_what_it_had() {
        let (disk, path) = (SimDisk::new(), Path::new("/a.txnindex"));
        let index = TxnIndexHandle::open(&disk, path, 0, true).unwrap();
        index.append(&disk, path, &txn(10)).unwrap();
        disk.open(path, OpenMode::ReadWrite).unwrap().set_size(3).unwrap();
        index.append(&disk, path, &txn(20)).unwrap();
        let again = TxnIndexHandle::open(&disk, path, 0, false).unwrap();
        assert_eq!(again.count().unwrap(), 2);
        assert_eq!(again.append(&disk, path, &txn(30)).unwrap_err().kind(), Kind::Conflict);
    }

    #[test]
    fn a_closed_index_answers_nothing() {
        let (disk, path) = (SimDisk::new(), Path::new("/a.txnindex"));
        let index = TxnIndexHandle::open(&disk, path, 100, true).unwrap();
        index.append(&disk, path, &txn(10)).unwrap();
        assert_eq!(index.sanity_check().unwrap_err().kind(), Kind::Corrupt);
        index.close();
        index.close();
        let errors = [
            index.sanity_check().unwrap_err(),
            index.count().unwrap_err(),
            index.flush(&disk, path).unwrap_err(),
            index.truncate_to(&disk, path, 0).unwrap_err(),
            index.append(&disk, path, &txn(30)).unwrap_err(),
            index.collect_aborted(0, 1, &mut Vec::new()).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.kind() == Kind::Closed));
    }
}
