//! Windows of a file, in order: what a scan reads through.

use crate::error::Result;
use crate::io::map::MapReader;
use crate::io::{File, cache};

/// Bytes that are looked at through a window that moves forward.
pub trait Source {
    /// Where the bytes end, exclusive.
    fn end(&self) -> u64;

    /// The bytes from `position` on: at least `wanted_bytes` of them, or all up to the end when
    /// fewer are left.
    ///
    /// Going back is allowed, but slow. The caller bounds `wanted_bytes`: an implementation may
    /// allocate that much, but never more than there is up to the end.
    fn window(&mut self, position: u64, wanted_bytes: usize) -> Result<&[u8]>;

    /// Whether all that was given so far were bytes of the file. To be called before acting on what
    /// was seen: a map of a file that shrank shows zeros, which look like a torn tail.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

impl Source for &[u8] {
    fn end(&self) -> u64 {
        u64::try_from(self.len()).unwrap_or(u64::MAX)
    }

    fn window(&mut self, position: u64, _wanted_bytes: usize) -> Result<&[u8]> {
        let start = usize::try_from(position).unwrap_or(usize::MAX);
        Ok(self.get(start..).unwrap_or_default())
    }
}

/// A [`Source`] over a file, by positioned reads into one reused buffer.
#[derive(Debug)]
pub struct WindowReader<'a> {
    file: &'a dyn File,
    end: u64,
    window_bytes: usize,
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
    /// Up to where the disk was told to read.
    advised: u64,
}

impl<'a> WindowReader<'a> {
    /// Reads `file` up to `end` (exclusive; what lies beyond the file's own end is cut when it is
    /// reached) in windows of `window_bytes`.
    #[must_use]
    pub fn new(file: &'a dyn File, end: u64, window_bytes: usize) -> Self {
        WindowReader {
            file,
            end,
            window_bytes,
            buffer: Vec::new(),
            start: 0,
            filled: 0,
            advised: 0,
        }
    }

    /// Has the disk read what lies behind the window while the window is looked at.
    fn read_ahead(&mut self, behind: u64) {
        let Some(descriptor) = self.file.descriptor() else { return };
        let ahead_bytes = self.window_bytes.saturating_mul(WINDOWS_AHEAD);
        let to = behind.saturating_add(u64::try_from(ahead_bytes).unwrap_or(u64::MAX));
        let (from, to) = (behind.max(self.advised), to.min(self.end));
        if from < to && !cache::has(descriptor, to - 1) {
            cache::read_ahead(descriptor, from, to);
            self.advised = to;
        }
    }
}

impl Source for WindowReader<'_> {
    fn end(&self) -> u64 {
        self.end
    }

    fn window(&mut self, position: u64, wanted_bytes: usize) -> Result<&[u8]> {
        let left = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX);
        let wanted = wanted_bytes.min(left);
        let skip = position.checked_sub(self.start).and_then(|skip| usize::try_from(skip).ok());
        let held = skip.filter(|&skip| skip <= self.filled);
        if let Some(skip) = held
            && self.filled - skip >= wanted
        {
            return Ok(self.buffer.get(skip..self.filled).unwrap_or_default());
        }
        // What is held of the wanted bytes moves to the front, the rest is read behind it.
        let kept = held.map_or(0, |skip| self.filled - skip);
        if let Some(skip) = held {
            self.buffer.copy_within(skip..self.filled, 0);
        }
        self.start = position;
        self.filled = kept;
        let size = wanted.max(self.window_bytes.min(left));
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        let target = self.buffer.get_mut(kept..size).unwrap_or_default();
        let at = position.saturating_add(u64::try_from(kept).unwrap_or(u64::MAX));
        let read = self.file.read_at(target, at)?;
        self.filled = kept + read;
        let behind = position.saturating_add(u64::try_from(self.filled).unwrap_or(u64::MAX));
        if self.filled < size {
            // The file is shorter than promised: someone cut it while we looked.
            self.end = behind;
        } else if behind < self.end {
            self.read_ahead(behind);
        }
        Ok(self.buffer.get(..self.filled).unwrap_or_default())
    }
}

/// The least window of a map. Windows of less than some MiB are slower, and larger ones gain
/// nothing more: this one bounds what is resident.
const MAP_WINDOW_BYTES: usize = 32 << 20;

/// The most bytes of a window that is read: a larger one does not stay in the processor's cache,
/// and is slower.
const READ_WINDOW_BYTES_MAX: usize = 1 << 20;

/// So many windows a disk is to be ahead of the one that is looked at.
const WINDOWS_AHEAD: usize = 8;

/// Less than this is read into memory in any case: setting up a map costs more than copying it.
const MAPPED_BYTES_MIN: u64 = 64 << 10;

/// Whether files are read through maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapMode {
    /// Into memory of our own: what a host wants, since no I/O error can then become a signal.
    #[default]
    Never,
    /// Through maps wherever they are possible and the process is guarded
    /// ([`guard_process`](crate::io::map::guard_process)); into memory of our own elsewhere.
    Always,
}

/// A [`Source`] over a file in the way that a [`MapMode`] asks for.
#[derive(Debug)]
pub enum Reader<'a> {
    /// By positioned reads.
    Windows(WindowReader<'a>),
    /// Through maps.
    Mapped(MapReader<'a>),
}

impl<'a> Reader<'a> {
    /// Reads `file` up to `end` (exclusive, bounded by the file's own end). A window that is read
    /// has `window_bytes`, and 1 MiB at most unless a caller wants more; one that is mapped has
    /// 32 MiB at least.
    #[must_use]
    pub fn new(file: &'a dyn File, end: u64, window_bytes: usize, mode: MapMode) -> Self {
        if mode == MapMode::Always
            && end >= MAPPED_BYTES_MIN
            && let Some(mapped) = MapReader::new(file, end, window_bytes.max(MAP_WINDOW_BYTES))
        {
            return Reader::Mapped(mapped);
        }
        Self::reading(file, end, window_bytes)
    }

    fn reading(file: &'a dyn File, end: u64, window_bytes: usize) -> Self {
        let window_bytes = window_bytes.min(READ_WINDOW_BYTES_MAX);
        Reader::Windows(WindowReader::new(file, end, window_bytes))
    }
}

impl Source for Reader<'_> {
    fn end(&self) -> u64 {
        match self {
            Reader::Windows(reader) => reader.end(),
            Reader::Mapped(reader) => reader.end(),
        }
    }

    fn window(&mut self, position: u64, wanted_bytes: usize) -> Result<&[u8]> {
        if let Reader::Mapped(reader) = self {
            reader.unharmed()?;
            // Some file systems cannot map, and a process may have no room for another map: reading
            // still works.
            if reader.cover(position, wanted_bytes).is_err() {
                let (file, end, window_bytes) = reader.parts();
                *self = Self::reading(file, end, window_bytes);
            }
        }
        match self {
            Reader::Windows(reader) => reader.window(position, wanted_bytes),
            Reader::Mapped(reader) => reader.window(position, wanted_bytes),
        }
    }

    fn check(&self) -> Result<()> {
        match self {
            Reader::Windows(reader) => reader.check(),
            Reader::Mapped(reader) => reader.check(),
        }
    }
}
