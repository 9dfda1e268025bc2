//! What are the small files of a log directory called, and what does a checkpoint of offsets say?

use std::path::Path;

use crate::error::{Kind, Result};
use crate::io::Storage;
use crate::state::OffsetCheckpoint;

/// Up to where each log was flushed.
pub const RECOVERY_POINT_FILE: &str = "recovery-point-offset-checkpoint";
/// Where each log starts, when that is not where its first segment starts.
pub const LOG_START_FILE: &str = "log-start-offset-checkpoint";
/// The high watermark of each replica.
pub const REPLICATION_FILE: &str = "replication-offset-checkpoint";
/// Up to where each compacted log is clean.
pub const CLEANER_FILE: &str = "cleaner-offset-checkpoint";
/// The marker of a clean stop.
pub const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";
/// The file that a running broker holds locked.
pub const LOCK_FILE: &str = ".lock";
/// Whose directory it is.
pub const META_FILE: &str = crate::log::verify::META_FILE;

/// More than a checkpoint of a million partitions has.
const CHECKPOINT_BYTES_MAX: u64 = 512 << 20;

/// The lines of a checkpoint of offsets, such as [`LOG_START_FILE`]; none where there is no file.
///
/// # Errors
/// `Corrupt` or `Unsupported` for a file that is none, `Limit` for one that is far too large, and
/// what the disk says.
pub fn read_offsets(storage: &dyn Storage, dir: &Path, name: &str) -> Result<OffsetCheckpoint> {
    let path = dir.join(name);
    match storage.read(&path, CHECKPOINT_BYTES_MAX) {
        Ok(bytes) => OffsetCheckpoint::parse(&bytes).map_err(|error| error.in_file(&path)),
        Err(error) if error.kind() == Kind::NotFound => Ok(OffsetCheckpoint::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::io::SimDisk;

    #[test]
    fn a_checkpoint_that_is_not_there_has_no_lines_and_one_that_is_none_is_named() {
        let disk = SimDisk::new();
        let dir = Path::new("/data");
        disk.put_dir(dir, None).unwrap();
        let read = || read_offsets(&disk, dir, LOG_START_FILE);
        assert!(read().unwrap().entries().is_empty());
        let put = |bytes: &[u8]| {
            disk.put(&dir.join(LOG_START_FILE), bytes.to_vec(), None).unwrap();
        };
        put(b"0\n1\norders 3 7\n");
        assert_eq!(read().unwrap().get("orders", 3), Some(7));
        for bytes in [&b"0\n2\norders 3 7\n"[..], b"nothing"] {
            put(bytes);
            let error = read().unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt);
            assert!(error.to_string().contains("/data/log-start-offset-checkpoint"), "{error}");
        }
    }
}
