//! How is a segment read: in one go, or in pieces side by side?
//!
//! A piece begins at the first whole batch found at or behind its border, which may be wrong: a
//! batch may hold the bytes of another batch as data. So a piece counts only if the piece before it
//! ends just where this one began; else it is read again from there. The fold sees the same batches
//! in the same order either way.

use std::ops::ControlFlow;

use rayon::prelude::*;

use crate::error::{Error, Kind, Result};
use crate::io::{File, MapMode, Reader, Source};
use crate::log::progress::Progress;
use crate::log::recover::fold::Fact;
use crate::record::BatchHeader;
use crate::record::control::Control;
use crate::record::scan::{ScanEnd, ScannedBatch, Stop, Visitor, scan};
use crate::segment::damage::next_batch;

/// Bytes of a window.
const WINDOW_BYTES: usize = 256 << 10;
/// Bytes between two looks at the clock.
const PROGRESS_BYTES: u64 = 4 << 20;

/// Reads segments for one recovery.
#[derive(Clone, Copy)]
pub struct Scanner<'a> {
    /// Hears of progress.
    pub progress: &'a dyn Progress,
    /// Bytes of a piece.
    pub piece_bytes: u64,
    /// Pieces that are read side by side; 1: in one go.
    pub parallel: usize,
    /// Whether logs may be read through maps.
    pub map_mode: MapMode,
}

impl std::fmt::Debug for Scanner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scanner").field("piece_bytes", &self.piece_bytes).finish_non_exhaustive()
    }
}

impl Scanner<'_> {
    /// The bytes of a log file, in windows.
    pub fn reader<'f>(&self, file: &'f dyn File, size_bytes: u64) -> Reader<'f> {
        Reader::new(file, size_bytes, WINDOW_BYTES, self.map_mode)
    }

    /// Feeds the batches of `file` from `start` to `each`, up to its `size_bytes`; gives where and
    /// why it stopped.
    pub fn scan(
        &self,
        file: &dyn File,
        size_bytes: u64,
        start: u64,
        base_offset: i64,
        mut each: impl FnMut(&Fact<'_>) -> ControlFlow<()>,
    ) -> Result<ScanEnd> {
        if self.parallel > 1 && size_bytes.saturating_sub(start) > self.piece_bytes {
            return self.scan_pieces(file, size_bytes, start, base_offset, each);
        }
        let mut source = self.reader(file, size_bytes);
        let mut visitor = Told { each: &mut each, progress: self.progress, told: start, at: start };
        let end = scan(&mut source, start, u64::MAX, &mut visitor)?;
        visitor.tell(end.position);
        source.check()?;
        Ok(end)
    }

    fn scan_pieces(
        &self,
        file: &dyn File,
        size_bytes: u64,
        start: u64,
        base_offset: i64,
        mut each: impl FnMut(&Fact<'_>) -> ControlFlow<()>,
    ) -> Result<ScanEnd> {
        let mut reached = start;
        let mut border = start;
        loop {
            let borders: Vec<(u64, u64)> = (0..self.parallel)
                .map(|_| {
                    let from = border;
                    border = border.saturating_add(self.piece_bytes).min(size_bytes);
                    (from, border)
                })
                .filter(|(from, to)| from < to)
                .collect();
            if borders.is_empty() {
                // Nothing is left but to say how it ends.
                let piece = self.piece(file, size_bytes, reached, u64::MAX)?;
                return Ok(feed(&piece, &mut each).unwrap_or(piece.end));
            }
            let pieces: Vec<Result<Option<Piece>>> = borders
                .par_iter()
                .map(|&(from, to)| {
                    let begin = if from == start {
                        Some(start)
                    } else {
                        self.piece_start(file, size_bytes, from, to, base_offset)?
                    };
                    begin.map(|begin| self.piece(file, size_bytes, begin, to)).transpose()
                })
                .collect();
            for (piece, &(_, to)) in pieces.into_iter().zip(&borders) {
                if reached >= to {
                    // A batch of the pieces before reaches over this one.
                    continue;
                }
                let piece = match piece? {
                    Some(piece) if piece.start == reached => piece,
                    _ => self.piece(file, size_bytes, reached, to)?,
                };
                if let Some(end) = feed(&piece, &mut each) {
                    return Ok(end);
                }
                self.progress.bytes(piece.end.position.saturating_sub(reached));
                reached = piece.end.position;
                if piece.end.stop != Stop::Asked {
                    return Ok(piece.end);
                }
            }
            if self.progress.is_cancelled() {
                return Err(Error::new(Kind::Cancelled, "cancelled").in_file(file.path()));
            }
        }
    }

    /// Where the batches of a piece seem to begin; `None` when no batch begins within it.
    fn piece_start(
        &self,
        file: &dyn File,
        size_bytes: u64,
        from: u64,
        to: u64,
        base_offset: i64,
    ) -> Result<Option<u64>> {
        let mut source = self.reader(file, size_bytes);
        // Look-alikes cost their length to refute; past this the piece is left to the one before
        // it.
        let mut budget = self.piece_bytes.saturating_mul(2);
        let found = next_batch(&mut source, from, to, base_offset, base_offset, &mut budget)?;
        Ok(found.filter(|start| *start < to))
    }

    /// Scans from `start` up to the first batch that begins at `stop_at` or behind.
    fn piece(&self, file: &dyn File, size_bytes: u64, start: u64, stop_at: u64) -> Result<Piece> {
        let mut source = self.reader(file, size_bytes);
        let mut facts = Vec::new();
        let mut visitor = |batch: ScannedBatch<'_>| {
            facts.push(Kept::of(&batch));
            Ok(ControlFlow::Continue(()))
        };
        let end = scan(&mut source, start, stop_at, &mut visitor)?;
        source.check()?;
        Ok(Piece { start, facts, end })
    }
}

/// Feeds the batches of a piece on; gives the end when `each` had enough.
fn feed(piece: &Piece, each: &mut impl FnMut(&Fact<'_>) -> ControlFlow<()>) -> Option<ScanEnd> {
    let refused = piece.facts.iter().find(|kept| each(&kept.fact()).is_break())?;
    Some(ScanEnd { position: refused.position, stop: Stop::Visitor })
}

/// What was read of one piece.
struct Piece {
    start: u64,
    facts: Vec<Kept>,
    end: ScanEnd,
}

/// A fact that is kept while the bytes are gone.
struct Kept {
    position: u64,
    header: BatchHeader,
    control: Option<Control>,
}

impl Kept {
    fn of(batch: &ScannedBatch<'_>) -> Self {
        let Fact { position, header, control } = Fact::of(batch);
        Kept { position, header: *header, control }
    }

    fn fact(&self) -> Fact<'_> {
        Fact { position: self.position, header: &self.header, control: self.control }
    }
}

/// Feeds facts on and tells of progress.
struct Told<'a, F> {
    each: &'a mut F,
    progress: &'a dyn Progress,
    told: u64,
    at: u64,
}

impl<F> Told<'_, F> {
    fn tell(&mut self, position: u64) {
        self.progress.bytes(position.saturating_sub(self.told));
        self.told = position.max(self.told);
    }
}

impl<F: FnMut(&Fact<'_>) -> ControlFlow<()>> Visitor for Told<'_, F> {
    #[inline]
    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        self.at = batch.position;
        if self.at.saturating_sub(self.told) >= PROGRESS_BYTES {
            self.tell(batch.position);
            if self.progress.is_cancelled() {
                return Err(Error::new(Kind::Cancelled, "cancelled"));
            }
        }
        Ok((self.each)(&Fact::of(&batch)))
    }
}
