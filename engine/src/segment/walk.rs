//! Which batches follow each other from a position on? For readers that trust a log: checksums are
//! not looked at.

use super::log_bytes::LogBytes;
use crate::error::Result;
use crate::record::BatchHeader;
use crate::record::batch::HEADER_SIZE;
use crate::record::frames::read_frame;

/// What is read at a time: a batch is found within an index interval, which is as much by default.
pub(super) const WINDOW_BYTES: usize = 4096;
/// What is copied at a time where that costs no system call: one header.
pub(super) const HEAD_BYTES: usize = 64;

/// Walks the headers of a log, `BYTES` of it in memory at a time.
pub(super) struct HeaderWalk<'a, const BYTES: usize> {
    log: LogBytes<'a>,
    position: u64,
    end: u64,
    window: [u8; BYTES],
    window_start: u64,
    filled: usize,
}

impl<'a, const BYTES: usize> HeaderWalk<'a, BYTES> {
    /// From the batch that begins at `position` up to `end`, exclusive.
    pub(super) fn new(log: LogBytes<'a>, position: u64, end: u64) -> Self {
        const { assert!(BYTES >= HEADER_SIZE) };
        let window = [0; BYTES];
        HeaderWalk { log, position, end, window, window_start: position, filled: 0 }
    }

    /// The next header and where its batch begins; `None` where the log ends.
    pub(super) fn next(&mut self) -> Result<Option<(BatchHeader, u64)>> {
        let position = self.position;
        let left = self.end.saturating_sub(position);
        self.fill(position, left)?;
        let header = read_frame(self.head(position), left)
            .map_err(|error| error.in_file(self.log.file.path()).at_position(position))?;
        let Some(header) = header else { return Ok(None) };
        self.position = position.saturating_add(u64::from(header.size_bytes));
        Ok(Some((header, position)))
    }

    /// The next batch that ends at `offset` or behind it.
    pub(super) fn find(&mut self, offset: i64) -> Result<Option<(BatchHeader, u64)>> {
        while let Some((header, position)) = self.next()? {
            if header.last_offset() >= offset {
                return Ok(Some((header, position)));
            }
        }
        Ok(None)
    }

    /// Where the next batch begins, or the log ends.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// What was read from `position` on, perhaps nothing: at least the header after a
    /// [`next`](Self::next) that found it there.
    pub(super) fn head(&self, position: u64) -> &[u8] {
        let skip = position.checked_sub(self.window_start).and_then(|at| usize::try_from(at).ok());
        skip.and_then(|skip| self.window.get(skip..self.filled)).unwrap_or_default()
    }

    fn fill(&mut self, position: u64, left: u64) -> Result<()> {
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        if self.head(position).len() >= HEADER_SIZE.min(left) {
            return Ok(());
        }
        let wanted = self.window.get_mut(..BYTES.min(left)).unwrap_or_default();
        self.filled = self.log.read_at(wanted, position)?;
        self.window_start = position;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::error::Kind;
    use crate::io::{File, OpenMode, SimDisk, Storage};
    use crate::record::builder::BatchOptions;
    use crate::record::builder::samples::batch_of_one;

    fn file(bytes: Vec<u8>) -> Box<dyn File> {
        let disk = SimDisk::new();
        disk.put(Path::new("/log"), bytes, None).unwrap();
        disk.open(Path::new("/log"), OpenMode::Read).unwrap()
    }

    fn two_batches() -> Vec<u8> {
        let mut bytes = Vec::new();
        for base_offset in [0, 1] {
            let options = BatchOptions { base_offset, ..BatchOptions::default() };
            bytes.extend(batch_of_one(options, 7, b"value"));
        }
        bytes
    }

    #[test]
    fn there_is_no_batch_where_the_log_begins_at_its_end() {
        // spec: behaviours FR-024
        let log = file(two_batches());
        for at in [0, 2_147_483_647] {
            let mut walk = HeaderWalk::<WINDOW_BYTES>::new(LogBytes::read(&*log), at, at);
            assert_eq!(walk.next().unwrap(), None);
        }
    }

    #[test]
    fn a_size_that_no_batch_has_is_told_where_it_stands() {
        // spec: behaviours FR-026
        let mut bytes = two_batches();
        let second = bytes.len() / 2;
        bytes[second + 8..second + 12].copy_from_slice(&13_i32.to_be_bytes());
        let end = bytes.len().try_into().unwrap();
        let log = file(bytes);
        let mut walk = HeaderWalk::<WINDOW_BYTES>::new(LogBytes::read(&*log), 0, end);
        assert_eq!(walk.next().unwrap().unwrap().0.base_offset, 0);
        let error = walk.next().unwrap_err();
        assert_eq!((error.kind(), error.position()), (Kind::Corrupt, Some(end / 2)));
    }

    #[test]
    fn a_magic_below_0_is_read_as_an_old_one() {
        // spec: behaviours FR-028
        let mut bytes = two_batches();
        bytes[16] = 0xff;
        let end = bytes.len().try_into().unwrap();
        let log = file(bytes);
        let mut walk = HeaderWalk::<WINDOW_BYTES>::new(LogBytes::read(&*log), 0, end);
        let (header, _) = walk.next().unwrap().unwrap();
        assert_eq!((header.magic, header.base_offset, header.last_offset()), (-1, 0, 0));
        assert_eq!((header.count, header.producer_id), (-1, -1), "the view of an old entry");
        assert_eq!(walk.next().unwrap().unwrap().0.magic, 2);
    }
}
