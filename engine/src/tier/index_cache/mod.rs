//! Which side files of remote segments are at hand, without asking the object store again?
//!
//! As in Kafka they lie in `remote-log-index-cache` of the first log directory:
//!
//! ```text
//! 100_Tatxc1nKR4CYjieL8sO-bg.index          <start offset>_<segment id>.<what it is>
//! 100_Tatxc1nKR4CYjieL8sO-bg.timeindex
//! 100_Tatxc1nKR4CYjieL8sO-bg.txnindex
//! ```
//!
//! What is looked into is kept in memory, too. Who was given the side files of a segment holds
//! them: to evict a segment takes it off the books and its files off the disk, and never what a
//! reader has in his hands. The cache has no thread and no clock of its own: calls say what time it
//! is, and the host runs what is due ([`RemoteIndexCache::run_due`]).

mod books;
mod files;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use books::Books;
use files::Files;

use super::indexes::{IndexSource, SegmentIndexes};
use super::layout::ObjectLayout;
use super::remote_segment::RemoteSegment;
use super::target::ObjectTarget;
use crate::error::{Error, Kind, Result};
use crate::io::Storage;
use crate::uuid::Uuid;

/// The folder within the first log directory.
pub const CACHE_FOLDER: &str = "remote-log-index-cache";

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexCacheOptions {
    /// The most bytes of side files: `remote.log.index.file.cache.total.size.bytes`.
    pub limit_bytes: u64,
    /// What nobody asks for that long is dropped: `remote.log.index.file.cache.ttl.ms`; `None` for
    /// Kafka's -1, which is never.
    pub ttl_ms: Option<i64>,
    /// Between the time when a file is taken off the books and the time when it is unlinked.
    pub file_delete_delay_ms: i64,
}

impl Default for IndexCacheOptions {
    /// As Kafka has them: 1 GiB, 15 minutes, 10 seconds.
    fn default() -> Self {
        IndexCacheOptions {
            limit_bytes: 1 << 30,
            ttl_ms: Some(15 * 60 * 1000),
            file_delete_delay_ms: 10_000,
        }
    }
}

/// What the cache did since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCacheStats {
    /// Segments that were asked for and in memory.
    pub hits: u64,
    /// Segments that were loaded, from the disk or the store.
    pub loads: u64,
    /// Loads that failed.
    pub failures: u64,
    /// Segments that were dropped for others, or since nobody asked for them.
    pub evictions: u64,
}

/// The side files of remote segments. Calls may come from several threads at once.
#[derive(Debug)]
pub struct RemoteIndexCache {
    files: Files,
    books: Mutex<Books>,
    /// Told when a load ends.
    loaded: Condvar,
}

impl RemoteIndexCache {
    /// Opens the cache of a log directory; what is missing of it is made, and what an earlier one
    /// has left unfinished or damaged is removed. Side files come from `target` under the names of
    /// `layout`.
    ///
    /// # Errors
    /// What the disk says.
    pub fn open(
        storage: Arc<dyn Storage>,
        log_dir: &Path,
        target: Arc<dyn ObjectTarget>,
        layout: ObjectLayout,
        options: IndexCacheOptions,
        now_ms: i64,
    ) -> Result<Self> {
        let files = Files::new(storage, log_dir.join(CACHE_FOLDER), target, layout);
        let mut books = Books::new(options);
        for (name, size_bytes) in files.sweep()? {
            // Kafka knows segments by their ids alone.
            if books.contains(name.segment_id) {
                files.remove(name)?;
            } else {
                books.enter(name, size_bytes, None, now_ms);
            }
        }
        let cache = RemoteIndexCache { files, books: Mutex::new(books), loaded: Condvar::new() };
        cache.shrink(&mut cache.lock(), now_ms);
        Ok(cache)
    }

    /// The side files of a segment: from memory, from the disk, or from the store. Of several who
    /// ask for one segment, one loads and the others wait.
    ///
    /// # Errors
    /// `Closed` after [`close`](Self::close); `Corrupt` when what the store has cannot be what it
    /// should; what the disk and the store say. Nothing is kept of a segment then but those of its
    /// files that are sound.
    pub fn get(&self, segment: &RemoteSegment, now_ms: i64) -> Result<Arc<SegmentIndexes>> {
        let id = segment.id.segment_id;
        let mut books = self.lock();
        loop {
            books.check_open()?;
            self.expire(&mut books, now_ms);
            if let Some(indexes) = books.find(id, now_ms) {
                return Ok(indexes);
            }
            if books.loading.insert(id) {
                // What is only on the disk must not be evicted while it is read.
                books.leave(id);
                break;
            }
            books = self.loaded.wait(books).unwrap_or_else(PoisonError::into_inner);
        }
        drop(books);
        // Others who wait for it are told in any case, also when a target panics.
        let loading = Loading { cache: self, id };
        let outcome = self.files.load(segment);
        let name = files::Name::of(segment);
        let left_bytes = if outcome.is_ok() { 0 } else { self.files.size_bytes(name) };
        let mut books = self.lock();
        let outcome = books.check_open().and(outcome);
        match &outcome {
            Ok(indexes) => {
                books.stats.loads += 1;
                books.enter(name, indexes.size_bytes(), Some(Arc::clone(indexes)), now_ms);
                self.shrink(&mut books, now_ms);
            }
            Err(_) => {
                books.stats.failures += 1;
                if left_bytes > 0 && !books.is_closed {
                    books.enter_part(name, left_bytes, now_ms);
                    self.shrink(&mut books, now_ms);
                }
            }
        }
        drop(books);
        drop(loading);
        outcome
    }

    /// The cache as a source of side files at this time.
    #[must_use]
    pub fn at(&self, now_ms: i64) -> CachedIndexes<'_> {
        CachedIndexes { cache: self, now_ms }
    }

    /// Drops segments, as when they are deleted remotely. Their files get the ending `.deleted`,
    /// and are unlinked later.
    ///
    /// # Errors
    /// `Closed`; what the disk says, for the first of those that it says it of.
    pub fn remove(&self, segment_ids: &[Uuid], now_ms: i64) -> Result<()> {
        let mut books = self.lock();
        let mut outcome = Ok(());
        for id in segment_ids {
            while books.loading.contains(id) && !books.is_closed {
                books = self.loaded.wait(books).unwrap_or_else(PoisonError::into_inner);
            }
            books.check_open()?;
            if let Some(name) = books.leave(*id) {
                outcome = outcome.and(self.set_aside(&mut books, name, now_ms));
            }
        }
        outcome
    }

    /// Sets another limit; a smaller one is kept at once.
    ///
    /// # Errors
    /// `Closed`.
    pub fn resize(&self, limit_bytes: u64, now_ms: i64) -> Result<()> {
        let mut books = self.lock();
        books.check_open()?;
        books.options.limit_bytes = limit_bytes;
        self.shrink(&mut books, now_ms);
        Ok(())
    }

    /// Drops what nobody has asked for and unlinks the files of what was dropped a while ago; gives
    /// the number of files unlinked. To be called when [`next_due_ms`](Self::next_due_ms) has come.
    ///
    /// # Errors
    /// `Closed`; the first error of the disk. The other files are gone then, and those that are not
    /// are tried again later.
    pub fn run_due(&self, now_ms: i64) -> Result<usize> {
        let due = {
            let mut books = self.lock();
            books.check_open()?;
            self.expire(&mut books, now_ms);
            books.take_due(now_ms)
        };
        let (mut unlinked, mut outcome) = (0, Ok(()));
        for path in due {
            match self.files.unlink(&path) {
                Ok(()) => unlinked += 1,
                Err(error) => {
                    self.lock().unlink_later(path, now_ms);
                    outcome = outcome.and(Err(error));
                }
            }
        }
        outcome.map(|()| unlinked)
    }

    /// When there is something to do for [`run_due`](Self::run_due); `None` for never.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<i64> {
        self.lock().next_due_ms()
    }

    /// Ends it: every call fails from now on. Files stay for the next one. Closing it again does
    /// nothing.
    pub fn close(&self) {
        self.lock().close();
        self.loaded.notify_all();
    }

    /// Whether a segment is in it. That is no use of the segment: it gets no younger.
    #[must_use]
    pub fn contains(&self, segment_id: Uuid) -> bool {
        self.lock().contains(segment_id)
    }

    /// How many segments are in it.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().count()
    }

    /// Bytes of all side files in it, with those that loads have left which failed.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.lock().size_bytes()
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> IndexCacheStats {
        self.lock().stats
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expire(&self, books: &mut Books, now_ms: i64) {
        while let Some(name) = books.take_expired(now_ms) {
            // A file that stays is whole: it is taken when the segment is asked for again.
            self.set_aside(books, name, now_ms).ok();
        }
    }

    fn shrink(&self, books: &mut Books, now_ms: i64) {
        while let Some(name) = books.take_beyond_limit() {
            self.set_aside(books, name, now_ms).ok();
        }
    }

    /// Renames the files of a segment, and has them unlinked later. The lock is held: nobody may
    /// load the same segment meanwhile.
    fn set_aside(&self, books: &mut Books, name: files::Name, now_ms: i64) -> Result<()> {
        let (paths, outcome) = self.files.set_aside(name);
        for path in paths {
            books.unlink_later(path, now_ms);
        }
        outcome
    }
}

/// A [`RemoteIndexCache`] at one time.
#[derive(Clone, Copy, Debug)]
pub struct CachedIndexes<'a> {
    cache: &'a RemoteIndexCache,
    now_ms: i64,
}

impl IndexSource for CachedIndexes<'_> {
    fn indexes(&self, segment: &RemoteSegment) -> Result<Arc<SegmentIndexes>> {
        self.cache.get(segment, self.now_ms)
    }
}

/// A load that is going on.
struct Loading<'a> {
    cache: &'a RemoteIndexCache,
    id: Uuid,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.cache.lock().loading.remove(&self.id);
        self.cache.loaded.notify_all();
    }
}

/// What every call says after the end.
fn closed() -> Error {
    Error::new(Kind::Closed, "the cache of remote indexes is closed")
}
