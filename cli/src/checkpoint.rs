//! What does a checkpoint of offsets beside the partitions say?

use std::path::Path;

use siltstone::io::Storage;
use siltstone::state::OffsetCheckpoint;
use siltstone::{Kind, Result};

/// More than a checkpoint of a million partitions has.
const BYTES_MAX: u64 = 512 << 20;

/// The lines of a checkpoint; none where there is no file.
///
/// # Errors
/// `Corrupt` for a file that is none, and what the disk says.
pub(crate) fn read_checkpoint(storage: &dyn Storage, path: &Path) -> Result<OffsetCheckpoint> {
    match storage.read(path, BYTES_MAX) {
        Ok(bytes) => OffsetCheckpoint::parse(&bytes).map_err(|error| error.in_file(path)),
        Err(error) if error.kind() == Kind::NotFound => Ok(OffsetCheckpoint::new()),
        Err(error) => Err(error),
    }
}
