//! How is a segment that is compacted read, a piece at a time?

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::WindowReader;
use crate::log::Segments;
use crate::record::scan::{Stop, Visitor, scan};
use crate::segment::{Folder, LogSegment};

/// A segment as it was when a round began.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) segment: Arc<LogSegment>,
    pub(super) size_bytes: u64,
    truncations: u32,
}

/// How far a piece of reading came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// There is more from this position on.
    Paused(u64),
    /// The segment is read.
    Ended,
    /// The visitor had enough.
    Stopped,
}

impl Source {
    pub(super) fn new(segment: &Arc<LogSegment>) -> Self {
        let truncations = segment.truncations();
        Source { segment: Arc::clone(segment), size_bytes: segment.size_bytes(), truncations }
    }

    pub(super) fn all(segments: &[Arc<LogSegment>]) -> Vec<Self> {
        segments.iter().map(Source::new).collect()
    }

    pub(super) fn base_offset(&self) -> i64 {
        self.segment.base_offset()
    }

    /// Whether the log still has it, as it was, and does not write to it.
    pub(super) fn is_current(&self, segments: &Segments) -> bool {
        let is_sealed = segments.last().is_some_and(|last| last.base_offset() > self.base_offset());
        let is_there =
            segments.get(self.base_offset()).is_some_and(|now| Arc::ptr_eq(now, &self.segment));
        is_sealed
            && is_there
            && self.segment.size_bytes() == self.size_bytes
            && self.segment.truncations() == self.truncations
    }

    /// When its log was last written to, in milliseconds since 1970.
    pub(super) fn modified_ms(&self, folder: &Folder) -> Result<i64> {
        Ok(self.segment.handles(folder)?.log().metadata()?.modified_ms)
    }

    /// Shows the batches from `position` on to `visitor`, `step_bytes` of them or a little more.
    ///
    /// # Errors
    /// `Corrupt` where there is no batch, or one with a wrong checksum: writing its records anew
    /// would make them look right.
    pub(super) fn scan<V: Visitor>(
        &self,
        folder: &Folder,
        position: u64,
        (step_bytes, window_bytes): (u64, usize),
        visitor: &mut V,
    ) -> Result<Piece> {
        let handles = self.segment.handles(folder)?;
        let file = &**handles.log();
        let mut reader = WindowReader::new(file, self.size_bytes, window_bytes);
        let end = scan(&mut reader, position, position.saturating_add(step_bytes), visitor)
            .map_err(|error| error.in_file(file.path()))?;
        let why = match end.stop {
            Stop::Visitor => return Ok(Piece::Stopped),
            Stop::Asked => return Ok(Piece::Paused(end.position)),
            Stop::End if end.position >= self.size_bytes => return Ok(Piece::Ended),
            Stop::End | Stop::Short { .. } => "the log ends within a batch".to_owned(),
            Stop::BadLength { size_field } => format!("a batch has a size field of {size_field}"),
            Stop::BadCrc { stored, computed } => {
                format!("a batch has the checksum {stored:#010x}, its bytes {computed:#010x}")
            }
            Stop::UnknownMagic { magic } => format!("a batch has the magic byte {magic}"),
        };
        Err(Error::corrupt(why).in_file(file.path()).at_position(end.position))
    }
}
