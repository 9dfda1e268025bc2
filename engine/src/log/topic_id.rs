//! Which topic is a partition directory of, by its `partition.metadata`?

use std::path::Path;

use super::inventory::METADATA_FILE;
use crate::error::{Kind, Result};
use crate::io::Storage;
use crate::state::meta::parse_partition_metadata;
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
