//! How are the bytes of a log looked at? By reading its file, or in a map of it.

use crate::error::Result;
use crate::io::{File, SharedMap};

/// The bytes of a log.
#[derive(Clone, Copy)]
pub(super) struct LogBytes<'a> {
    pub(super) file: &'a dyn File,
    /// A map of a file that nobody writes to.
    pub(super) map: Option<&'a SharedMap>,
}

impl<'a> LogBytes<'a> {
    /// By reading.
    pub(super) fn read(file: &'a dyn File) -> Self {
        LogBytes { file, map: None }
    }

    /// Fills `bytes` from `position` on; gives how many there were.
    pub(super) fn read_at(&self, bytes: &mut [u8], position: u64) -> Result<usize> {
        if self.map.is_some_and(|map| map.copy_at(bytes, position)) {
            return Ok(bytes.len());
        }
        self.file.read_at(bytes, position)
    }
}
