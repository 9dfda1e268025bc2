//! What does a reader get? Ranges of files, ready to be sent; copies only where it wants them.
//!
//! Readers take no lock. A range keeps its file open through roll, deletion, truncation and close.

use std::ops::Deref;
use std::sync::{Arc, PoisonError};

use super::log::Log;
use super::segments::Segments;
use crate::error::{Error, Kind, Result};
use crate::index::AbortedTxn;
use crate::io::{File, MapMode, MappedFile, cache};
use crate::segment::handles::SealedPin;
use crate::segment::{BatchPlace, FileName, FileRole, Lease, LogSegment};
use crate::sync::MutexGuard;

/// How often a copy is tried again when the log is cut under it.
const RETRIES_MAX: usize = 100;

/// Up to where a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Everything that was appended: followers.
    LogEnd,
    /// What is replicated: readers of uncommitted data.
    HighWatermark,
    /// What is replicated and decided: readers of committed data, which are told the aborted
    /// transactions, too.
    Committed,
}

/// What a reader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchOptions {
    /// At most so many bytes, which may end within a batch.
    pub max_bytes: u32,
    /// Up to where it may see.
    pub isolation: Isolation,
    /// Whether a first batch larger than `max_bytes` is given whole.
    pub min_one_message: bool,
}

/// Where an offset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetPlace {
    /// The first offset of the batch, or the offset that was asked for where no batch is.
    pub offset: i64,
    /// The base offset of its segment.
    pub segment_base_offset: i64,
    /// Its first byte there.
    pub position: u64,
}

/// Bytes of a log, in a file that stays open as long as this lives.
#[derive(Clone, Debug)]
pub struct FileRange {
    lease: Arc<Lease>,
    position: u64,
    size_bytes: u64,
    truncations: u32,
}

/// What keeps the file of a range open.
pub type RangeLease = Lease;

/// Bytes of a sealed segment as memory: the pages of its file, not a copy. It keeps its file open
/// through deletion, compaction and close, and keeps the log from being cut within the segment
/// meanwhile: [`Log::truncate_to`] fails with `Conflict`. Drop it before the log is opened again.
///
/// The caveat of every map: where the disk fails to read a page, or another process cuts the file,
/// touching the bytes raises SIGBUS, which ends the process. Only in a process with the guard
/// ([`guard_process`](crate::io::map::guard_process)) such bytes are zeros instead, and
/// [`is_whole`](Self::is_whole) tells.
#[derive(Debug)]
pub struct MappedRange {
    mapped: MappedFile,
    /// Dropped after the map.
    _pin: SealedPin,
}

impl Deref for MappedRange {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.mapped.bytes()
    }
}

impl AsRef<[u8]> for MappedRange {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl MappedRange {
    /// Whether all that was seen so far was the file.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.mapped.is_whole()
    }
}

/// What a reader gets.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Where the first batch begins.
    pub place: OffsetPlace,
    /// The bytes; `None` when there is nothing to be seen.
    pub range: Option<FileRange>,
    /// Whether the first batch is larger than what was asked for and is not whole; not where
    /// nothing was asked for.
    pub first_entry_incomplete: bool,
    /// Of a reader of committed data: the transactions whose records it must leave out.
    pub aborted: Option<Vec<AbortedTxn>>,
}

/// The bytes of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedBytes {
    /// Where the first batch begins.
    pub place: OffsetPlace,
    /// The bytes, which may end within a batch.
    pub bytes: Vec<u8>,
    /// As in [`Fetched::aborted`].
    pub aborted: Option<Vec<AbortedTxn>>,
}

impl FileRange {
    /// The file, to be read or sent from.
    #[must_use]
    pub fn file(&self) -> &dyn File {
        self.lease.file()
    }

    /// The first byte.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// How many bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Whether the log was not cut since the range was looked up: if it was, other bytes may stand
    /// there now, or none.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.lease.truncations() == self.truncations
    }

    /// How often its segment had been cut when it was looked up.
    #[must_use]
    pub fn truncations(&self) -> u32 {
        self.truncations
    }

    /// What keeps the file open, alone: for a host that carries position and size itself.
    #[must_use]
    pub fn into_lease(self) -> Arc<RangeLease> {
        self.lease
    }

    /// Copies the bytes; fewer when the log was cut meanwhile.
    ///
    /// # Errors
    /// What reading the file fails with.
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.size_bytes).unwrap_or(usize::MAX)];
        let read = self.file().read_at(&mut bytes, self.position)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// The bytes as memory, without a copy, for a caller that has decided for maps and knows what
    /// that means: see [`MappedRange`]. `None` with [`MapMode::Never`]; while the segment is
    /// written to; where the log was cut since the range was looked up; and where there can be no
    /// map, as on the simulated disk. Then [`read`](Self::read) is there.
    ///
    /// # Errors
    /// What the system says, as when the process has too many maps.
    pub fn map(&self, maps: MapMode) -> Result<Option<MappedRange>> {
        if maps == MapMode::Never {
            return Ok(None);
        }
        let Some(pin) = self.lease.pin() else { return Ok(None) };
        // After the pin: from now on nobody cuts it.
        if !self.is_intact() {
            return Ok(None);
        }
        let mapped = MappedFile::new(&**pin.log(), self.position, self.size_bytes)?;
        Ok(mapped.map(|mapped| MappedRange { mapped, _pin: pin }))
    }

    /// Whether the page cache has all of the bytes, so that sending them waits for no disk. Yes
    /// where nobody can tell. A look at each page, 0.4 us of a core, until one is not there; what is
    /// there may go away at any time.
    #[must_use]
    pub fn is_resident(&self) -> bool {
        cache::has_all(self.file(), self.position, self.size_bytes)
    }

    /// How many of the bytes, from the first on, the page cache has. As
    /// [`is_resident`](Self::is_resident).
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        cache::resident_bytes(self.file(), self.position, self.size_bytes)
    }

    /// Has the disk read the bytes into the page cache, and does not wait for it: for a range that
    /// is not [resident](Self::is_resident), before a thread that must not wait sends it. What the
    /// system has no memory for, or cannot read, is not read: sending it then waits or fails.
    pub fn warm(&self) {
        cache::warm(self.file(), self.position, self.size_bytes);
    }
}

/// The end of what may be seen.
struct Bound {
    offset: i64,
    segment_base_offset: i64,
    position: u64,
}

impl Log {
    /// Looks up the batches from `offset` on.
    ///
    /// # Errors
    /// `OutOfRange` for an offset before the log start or behind the log end, and for one that is
    /// not on the local disk; `Closed`; what the disk says.
    // spec: segments 4.2
    pub fn locate(&self, offset: i64, options: &FetchOptions) -> Result<Fetched> {
        self.look(|segments| self.locate_in(segments, offset, options))
    }

    /// Looks for something in the segments, again if they have become others meanwhile.
    pub(super) fn look<T>(&self, mut look: impl FnMut(&Arc<Segments>) -> Result<T>) -> Result<T> {
        loop {
            let segments = self.segments.load();
            match look(&segments) {
                // A segment was deleted or replaced between the look at the list and the opening
                // of its file.
                Err(error) if error.kind() == Kind::NotFound => {
                    self.wait_for_list();
                    if Arc::ptr_eq(&segments, &self.segments.load()) {
                        return Err(error);
                    }
                }
                other => return other,
            }
        }
    }

    /// Waits until segments that were found and are gone are out of the list, too. Not to be asked
    /// for by who changes it.
    pub(super) fn wait_for_list(&self) {
        drop(self.change_list());
    }

    /// To be held while segments that are in the list are retired, until others, or none, are in
    /// their place: where the list cannot be changed first, as the log would have no end.
    pub(super) fn change_list(&self) -> MutexGuard<'_, ()> {
        self.changing_list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locate_in(
        &self,
        segments: &Arc<Segments>,
        offset: i64,
        options: &FetchOptions,
    ) -> Result<Fetched> {
        let wants_aborted = options.isolation == Isolation::Committed;
        let Some(floor) = self.floor_for(segments, offset)? else {
            return Err(self.out_of_range(offset));
        };
        let bound = self.bound(segments, options.isolation)?;
        let nothing = |place| {
            let aborted = wants_aborted.then(Vec::new);
            Fetched { place, range: None, first_entry_incomplete: false, aborted }
        };
        if offset == bound.offset {
            return Ok(nothing(bound.place()));
        }
        if offset > bound.offset {
            return Ok(nothing(self.convert(segments, offset)?));
        }
        let mut next = Some(floor);
        while let Some(segment) = next {
            let base_offset = segment.base_offset();
            if base_offset > bound.segment_base_offset {
                break;
            }
            // The cuts first: a place that is found after that is none any more when there are more.
            // Then the size: what is found after that is behind it or within it.
            let truncations = segment.truncations();
            let size = segment.size_bytes();
            let end = if base_offset < bound.segment_base_offset { size } else { bound.position };
            if let Some(found) = segment.translate(&self.folder, offset)? {
                let segment = (segment, truncations);
                return self.found(segments, segment, &found, (offset, end), options);
            }
            next = segments.higher(base_offset);
        }
        let place = self.end_place(segments);
        Ok(Fetched { place, range: None, first_entry_incomplete: false, aborted: None })
    }

    fn found(
        &self,
        segments: &Segments,
        (segment, truncations): (&Arc<LogSegment>, u32),
        found: &BatchPlace,
        (offset, end): (i64, u64),
        options: &FetchOptions,
    ) -> Result<Fetched> {
        // spec: segments 3.5
        let max_bytes = u64::from(options.max_bytes);
        let wanted =
            if options.min_one_message { max_bytes.max(found.size_bytes) } else { max_bytes };
        let size_bytes = end.saturating_sub(found.position).min(wanted);
        let place = OffsetPlace {
            offset: found.base_offset,
            segment_base_offset: segment.base_offset(),
            position: found.position,
        };
        let range = if size_bytes == 0 {
            None
        } else {
            let lease = segment.lease(&self.folder)?;
            Some(FileRange { lease, position: found.position, size_bytes, truncations })
        };
        let aborted = match options.isolation {
            Isolation::Committed => {
                Some(self.aborted(segments, segment, offset, (found.position, size_bytes))?)
            }
            Isolation::LogEnd | Isolation::HighWatermark => None,
        };
        let first_entry_incomplete = wanted > 0 && wanted < found.size_bytes;
        Ok(Fetched { place, range, first_entry_incomplete, aborted })
    }

    /// The same as [`locate`](Self::locate) with the bytes copied, all of them.
    ///
    /// # Errors
    /// Those of [`locate`](Self::locate); `Corrupt` when the file is shorter than the log that it
    /// holds, as when another process has cut it.
    pub fn read(&self, offset: i64, options: &FetchOptions) -> Result<FetchedBytes> {
        let mut bytes = Vec::new();
        let copy = |range: &FileRange| {
            bytes = range.read()?;
            Ok(bytes.len())
        };
        let (Fetched { place, aborted, .. }, size) = self.copy(offset, options, copy)?;
        // What was copied before the log was cut is nothing.
        bytes.truncate(size);
        Ok(FetchedBytes { place, bytes, aborted })
    }

    /// The same with the bytes copied into `buffer`; how many they are is the second of the answer.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); `Limit` when the first batch is given whole and is larger
    /// than the buffer.
    pub fn read_into(
        &self,
        offset: i64,
        options: &FetchOptions,
        buffer: &mut [u8],
    ) -> Result<(Fetched, usize)> {
        let room = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let options = FetchOptions { max_bytes: options.max_bytes.min(room), ..*options };
        self.copy(offset, &options, |range| {
            let size = usize::try_from(range.size_bytes()).unwrap_or(usize::MAX);
            let Some(buffer) = buffer.get_mut(..size) else {
                return Err(Error::new(Kind::Limit, "the first batch is larger than the buffer"));
            };
            range.file().read_at(buffer, range.position())
        })
    }

    /// Looks up a range and copies it, again when the log is cut meanwhile; how many bytes it has.
    fn copy(
        &self,
        offset: i64,
        options: &FetchOptions,
        mut copy: impl FnMut(&FileRange) -> Result<usize>,
    ) -> Result<(Fetched, usize)> {
        for _ in 0..RETRIES_MAX {
            let fetched = self.locate(offset, options)?;
            let Some(range) = &fetched.range else { return Ok((fetched, 0)) };
            let copied = copy(range)?;
            if !range.is_intact() {
                continue;
            }
            let size = u64::try_from(copied).unwrap_or(u64::MAX);
            if size < range.size_bytes() {
                let base_offset = fetched.place.segment_base_offset;
                let file = FileName::live(base_offset, FileRole::Log).format();
                let message = "the file is shorter than the log that it holds";
                return Err(Error::corrupt(message)
                    .in_file(&self.dir().join(file))
                    .at_position(range.position().saturating_add(size)));
            }
            return Ok((fetched, copied));
        }
        Err(Error::new(Kind::Conflict, "the log is cut again and again while it is read"))
    }

    /// Where an offset is: the batch that holds it, or the end of the log.
    ///
    /// # Errors
    /// `OutOfRange` for an offset that is not in the local log.
    pub fn place_of(&self, offset: i64) -> Result<OffsetPlace> {
        self.look(|segments| self.convert(segments, offset))
    }

    fn convert(&self, segments: &Segments, offset: i64) -> Result<OffsetPlace> {
        let Some(floor) = self.floor_for(segments, offset)? else {
            return Err(self.out_of_range(offset));
        };
        let mut next = Some(floor);
        while let Some(segment) = next {
            if let Some(found) = segment.translate(&self.folder, offset)? {
                return Ok(OffsetPlace {
                    offset: found.base_offset,
                    segment_base_offset: segment.base_offset(),
                    position: found.position,
                });
            }
            next = segments.higher(segment.base_offset());
        }
        Ok(self.end_place(segments))
    }

    /// The segment in which a read from `offset` begins; `None` when the log does not have it.
    fn floor_for<'a>(
        &self,
        segments: &'a Segments,
        offset: i64,
    ) -> Result<Option<&'a Arc<LogSegment>>> {
        if self.is_closed() {
            return Err(Error::new(Kind::Closed, "the log is closed").in_file(&self.dir()));
        }
        if offset < self.log_start_offset() || offset > self.log_end_offset() {
            return Ok(None);
        }
        Ok(segments.floor(offset))
    }

    fn out_of_range(&self, offset: i64) -> Error {
        let message = format!(
            "the log goes from {} to {}, on the local disk from {}",
            self.log_start_offset(),
            self.log_end_offset(),
            self.local_log_start_offset()
        );
        Error::new(Kind::OutOfRange, message).in_file(&self.dir()).at_offset(offset)
    }

    fn end_place(&self, segments: &Segments) -> OffsetPlace {
        let (segment_base_offset, position) =
            segments.last().map_or((0, 0), |active| (active.base_offset(), active.size_bytes()));
        OffsetPlace { offset: self.log_end_offset(), segment_base_offset, position }
    }

    fn bound(&self, segments: &Segments, isolation: Isolation) -> Result<Bound> {
        // The size of the active segment first: whatever comes later lies behind it.
        let end = self.end_place(segments);
        let (offset, is_within) = match isolation {
            // An append that is just being published has its bytes shown before the end.
            Isolation::LogEnd => {
                let shown = segments.last().map(|active| active.end_offset_hint());
                (end.offset, shown.is_some_and(|shown| shown > end.offset))
            }
            Isolation::HighWatermark => (self.high_watermark(), true),
            Isolation::Committed => (self.last_stable_offset(), true),
        };
        let mut next = segments.floor(offset);
        if is_within {
            while let Some(segment) = next {
                if let Some(found) = segment.translate(&self.folder, offset)? {
                    return Ok(Bound {
                        offset: found.base_offset.min(offset),
                        segment_base_offset: segment.base_offset(),
                        position: found.position,
                    });
                }
                next = segments.higher(segment.base_offset());
            }
        }
        let OffsetPlace { segment_base_offset, position, .. } = end;
        Ok(Bound { offset, segment_base_offset, position })
    }

    /// The aborted transactions that overlap a fetch from `offset`.
    fn aborted(
        &self,
        segments: &Segments,
        segment: &Arc<LogSegment>,
        offset: i64,
        (position, size_bytes): (u64, u64),
    ) -> Result<Vec<AbortedTxn>> {
        // spec: indexes 4.3
        let mut found = Vec::new();
        let base_offset = segment.base_offset();
        if !segments.from(base_offset).iter().any(|segment| segment.may_have_txns()) {
            return Ok(found);
        }
        let bound = segment.fetch_upper_bound_offset(&self.folder, position, size_bytes)?;
        let next = || segments.higher(segment.base_offset()).map(|next| next.base_offset());
        let bound = bound.or_else(next).unwrap_or_else(|| self.log_end_offset());
        self.collect_aborted(segments, segment.base_offset(), (offset, bound), &mut found)?;
        Ok(found)
    }

    fn collect_aborted(
        &self,
        segments: &Segments,
        base_offset: i64,
        (from, upper_bound): (i64, i64),
        found: &mut Vec<AbortedTxn>,
    ) -> Result<()> {
        for segment in segments.from(base_offset) {
            if segment.collect_aborted(&self.folder, from, upper_bound, found)? {
                break;
            }
        }
        Ok(())
    }

    /// Adds the aborted transactions of all segments on the local disk that a fetch from
    /// `fetch_offset` to before `upper_bound` must know: for a fetch from remote storage, which may
    /// end here.
    ///
    /// # Errors
    /// What the disk says; `Unsupported` for an index of a later version. Nothing was added then.
    pub fn collect_aborted_from_start(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<()> {
        let count = found.len();
        self.look(|segments| {
            found.truncate(count);
            let range = (fetch_offset, upper_bound);
            self.collect_aborted(segments, i64::MIN, range, found)
        })
        .inspect_err(|_| found.truncate(count))
    }

    /// The aborted transactions that a reader of the offsets from `from` to before `upper_bound`
    /// must know, in the order of their markers, and more: all that overlap from the base of the
    /// segment on that holds `from`, as Kafka has it.
    ///
    /// # Errors
    /// What the disk says; `Unsupported` for an index of a later version.
    pub fn aborted_transactions(&self, from: i64, upper_bound: i64) -> Result<Vec<AbortedTxn>> {
        self.look(|segments| {
            let mut found = Vec::new();
            let base_offset = segments.floor(from).map_or(from, |segment| segment.base_offset());
            self.collect_aborted(segments, base_offset, (base_offset, upper_bound), &mut found)?;
            Ok(found)
        })
    }
}

impl Bound {
    fn place(&self) -> OffsetPlace {
        OffsetPlace {
            offset: self.offset,
            segment_base_offset: self.segment_base_offset,
            position: self.position,
        }
    }
}
