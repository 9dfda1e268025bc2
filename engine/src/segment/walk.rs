//! Which batches follow each other from a position on? For readers that trust a log: checksums are
//! not looked at.

use crate::error::Result;
use crate::io::File;
use crate::record::BatchHeader;
use crate::record::batch::HEADER_SIZE;
use crate::record::frames::read_frame;

/// What is read at a time: a batch is found within an index interval, which is as much by default.
const WINDOW_BYTES: usize = 4096;

/// Walks the headers of a log.
pub(super) struct HeaderWalk<'a> {
    file: &'a dyn File,
    position: u64,
    end: u64,
    window: [u8; WINDOW_BYTES],
    window_start: u64,
    filled: usize,
}

impl<'a> HeaderWalk<'a> {
    /// From the batch that begins at `position` up to `end`, exclusive.
    pub(super) fn new(file: &'a dyn File, position: u64, end: u64) -> Self {
        let window = [0; WINDOW_BYTES];
        HeaderWalk { file, position, end, window, window_start: position, filled: 0 }
    }

    /// The next header and where its batch begins; `None` where the log ends.
    pub(super) fn next(&mut self) -> Result<Option<(BatchHeader, u64)>> {
        let position = self.position;
        let left = self.end.saturating_sub(position);
        self.fill(position, left)?;
        let header = read_frame(self.head(position), left)
            .map_err(|error| error.in_file(self.file.path()).at_position(position))?;
        let Some(header) = header else { return Ok(None) };
        self.position = position.saturating_add(u64::from(header.size_bytes));
        Ok(Some((header, position)))
    }

    fn head(&self, position: u64) -> &[u8] {
        let skip = position.checked_sub(self.window_start).and_then(|at| usize::try_from(at).ok());
        skip.and_then(|skip| self.window.get(skip..self.filled)).unwrap_or_default()
    }

    fn fill(&mut self, position: u64, left: u64) -> Result<()> {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        if self.head(position).len() >= HEADER_SIZE.min(left) {
            return Ok(());
        }
        let wanted = self.window.get_mut(..WINDOW_BYTES.min(left)).unwrap_or_default();
        self.filled = self.file.read_at(wanted, position)?;
        self.window_start = position;
        Ok(())
    }
}
