//! Which topic is a partition directory of, by its `partition.metadata`?

use std::path::Path;

use super::inventory::METADATA_FILE;
use super::log::Log;
use super::replace::replace;
use crate::error::{Error, Kind, Result};
use crate::io::Storage;
use crate::state::meta::{self, parse_partition_metadata};
use crate::uuid::Uuid;

/// More than `partition.metadata` has.
const METADATA_BYTES_MAX: u64 = 64 << 10;

/// The topic id that a partition directory has; `None` where no file tells it.
///
/// # Errors
/// `Corrupt` or `Unsupported` for a file that is none, `Limit` for one that is far too large, and
/// what the disk says.
pub fn read_topic_id(storage: &dyn Storage, dir: &Path) -> Result<Option<Uuid>> {
    let path = dir.join(METADATA_FILE);
    match storage.read(&path, METADATA_BYTES_MAX) {
        Ok(bytes) => {
            parse_partition_metadata(&bytes).map(Some).map_err(|error| error.in_file(&path))
        }
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The topic id that the log has, written down if it was not.
pub(super) fn settle_topic_id(
    storage: &dyn Storage,
    dir: &Path,
    wanted: Option<Uuid>,
) -> Result<Option<Uuid>> {
    // spec: segments 1.2
    match (read_topic_id(storage, dir)?, wanted) {
        (Some(found), Some(wanted)) if found != wanted => {
            let message = format!("the topic id is {found}, not {wanted}");
            Err(Error::new(Kind::Conflict, message).in_file(&dir.join(METADATA_FILE)))
        }
        (Some(found), _) => Ok(Some(found)),
        (None, Some(wanted)) => {
            let bytes = meta::format_partition_metadata(wanted);
            replace(storage, dir, METADATA_FILE, &bytes)?;
            Ok(Some(wanted))
        }
        (None, None) => Ok(None),
    }
}

impl Log {
    /// Gives the log its topic id, durably, where it has none yet.
    ///
    /// # Errors
    /// `Conflict` when it has another one, or its file says so; `Closed`; what the disk says.
    pub fn assign_topic_id(&self, topic_id: Uuid) -> Result<()> {
        if self.topic_id() == Some(topic_id) {
            return Ok(());
        }
        let _seat = self.wait_for_seat()?;
        let settled = settle_topic_id(&**self.folder.storage(), &self.dir(), Some(topic_id))?;
        // Under the seat nobody else was first.
        if let Some(settled) = settled {
            let _ = self.topic_id.set(settled);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::io::SimDisk;

    #[test]
    fn a_directory_has_the_id_that_its_file_says() {
        let disk = SimDisk::new();
        let dir = Path::new("/orders-0");
        disk.put_dir(dir, None).unwrap();
        assert_eq!(read_topic_id(&disk, dir).unwrap(), None);
        let put = |bytes: &[u8]| {
            disk.put(&dir.join(METADATA_FILE), bytes.to_vec(), None).unwrap();
        };
        put(b"version: 0\ntopic_id: KhrFBVCXRj-kNEnYK4ZyLw");
        let id = Uuid::parse("KhrFBVCXRj-kNEnYK4ZyLw");
        assert_eq!(read_topic_id(&disk, dir).unwrap(), id);
        for (bytes, kind) in [(&b"version: 0\n"[..], Kind::Corrupt), (&[b' '; 70_000], Kind::Limit)]
        {
            put(bytes);
            let error = read_topic_id(&disk, dir).unwrap_err();
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains("/orders-0/partition.metadata"), "{error}");
        }
    }
}
