//! How is a store read by what reads disks?

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::io::{DirEntry, File, FileKind, Lock, Metadata, OpenMode, Storage};
use siltstone::tier::{ObjectTarget, get_exact};
use siltstone::{Error, Kind, Result};

/// A store as a [`Storage`] that cannot be written to. An object is a file whose path is its URL,
/// such as `s3://bucket/folder/object`; what names of objects have in common up to a `/` is a
/// directory.
#[derive(Clone, Debug)]
pub struct RemoteDisk {
    target: Arc<dyn ObjectTarget>,
    root: PathBuf,
}

impl RemoteDisk {
    /// The objects of `target`, below the path `root`.
    #[must_use]
    pub fn new(target: Arc<dyn ObjectTarget>, root: impl Into<PathBuf>) -> Self {
        RemoteDisk { target, root: root.into() }
    }

    /// The name of the object at a path; empty for the root.
    fn name(&self, path: &Path) -> Result<String> {
        let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
        name.map(str::to_owned)
            .ok_or_else(|| Error::new(Kind::NotFound, "not in this object store").in_file(path))
    }
}

/// What every call that would write says.
fn refused<T>(path: &Path) -> Result<T> {
    let why = "an object store is only read here";
    Err(Error::new(Kind::Unsupported, why).in_file(path))
}

fn metadata_of(kind: FileKind, size_bytes: u64) -> Metadata {
    Metadata { kind, size_bytes, modified_ms: 0, mode: 0o444, owner: 0, group: 0 }
}

impl Storage for RemoteDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>> {
        if mode != OpenMode::Read {
            return refused(path);
        }
        let name = self.name(path)?;
        let size_bytes = self.target.size(&name)?;
        let (target, path) = (Arc::clone(&self.target), path.to_path_buf());
        Ok(Box::new(RemoteFile { target, name, path, size_bytes }))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let name = self.name(path)?;
        if name.is_empty() {
            return Ok(metadata_of(FileKind::Directory, 0));
        }
        match self.target.size(&name) {
            Ok(size_bytes) => Ok(metadata_of(FileKind::File, size_bytes)),
            Err(error) if error.kind() == Kind::NotFound => {
                match self.target.list(&format!("{name}/"))?.is_empty() {
                    true => Err(error),
                    false => Ok(metadata_of(FileKind::Directory, 0)),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        let name = self.name(dir)?;
        let prefix = if name.is_empty() { name } else { name + "/" };
        let mut entries = BTreeMap::new();
        for object in self.target.list(&prefix)? {
            let Some(rest) = object.name.strip_prefix(&prefix) else { continue };
            match rest.split_once('/') {
                Some((folder, _)) => {
                    entries.insert(OsString::from(folder), FileKind::Directory);
                }
                None => {
                    entries.entry(OsString::from(rest)).or_insert(FileKind::File);
                }
            }
        }
        Ok(entries.into_iter().map(|(name, kind)| DirEntry { name, kind }).collect())
    }

    fn read(&self, path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        self.target.get(&self.name(path)?, None, limit_bytes)
    }

    fn is_locked(&self, _path: &Path) -> Result<bool> {
        Ok(false)
    }

    fn rename(&self, from: &Path, _to: &Path) -> Result<()> {
        refused(from)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        refused(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        refused(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        refused(path)
    }

    fn set_owner(&self, path: &Path, _like: &Metadata) -> Result<()> {
        refused(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        refused(dir)
    }

    fn sync_filesystem(&self, dir: &Path) -> Result<()> {
        refused(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        refused(path)
    }
}

/// An object that is open.
#[derive(Debug)]
struct RemoteFile {
    target: Arc<dyn ObjectTarget>,
    name: String,
    path: PathBuf,
    /// When it was opened; an object never changes its size.
    size_bytes: u64,
}

impl File for RemoteFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn metadata(&self) -> Result<Metadata> {
        Ok(metadata_of(FileKind::File, self.size_bytes))
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let wanted = u64::try_from(buffer.len()).unwrap_or(u64::MAX);
        let end = position.saturating_add(wanted).min(self.size_bytes);
        if position >= end {
            return Ok(0);
        }
        let bytes = get_exact(&*self.target, &self.name, position..end)?;
        for (to, from) in buffer.iter_mut().zip(&bytes) {
            *to = *from;
        }
        Ok(bytes.len())
    }

    fn write_at(&self, _bytes: &[u8], _position: u64) -> Result<()> {
        refused(&self.path)
    }

    fn set_size(&self, _size_bytes: u64) -> Result<()> {
        refused(&self.path)
    }

    fn reserve(&self, _size_bytes: u64) -> Result<()> {
        refused(&self.path)
    }

    fn set_owner(&self, _like: &Metadata) -> Result<()> {
        refused(&self.path)
    }

    fn set_modified(&self, _modified_ms: i64) -> Result<()> {
        refused(&self.path)
    }

    fn sync(&self) -> Result<()> {
        refused(&self.path)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use siltstone::io::SimDisk;
    use siltstone::tier::{LocalTarget, ObjectBytes};

    use super::*;

    fn disk() -> RemoteDisk {
        let target = LocalTarget::new(Arc::new(SimDisk::new()), "/");
        for name in ["top.log", "a/b/one.log", "a/two.log", "a/b.log"] {
            target.put(name, &[ObjectBytes::Memory(b"0123456789")]).unwrap();
        }
        RemoteDisk::new(Arc::new(target), "s3://bucket")
    }

    #[test]
    fn a_store_looks_like_a_disk() {
        let disk = disk();
        let names = |dir: &str| -> Vec<(String, bool)> {
            let entries = disk.list(Path::new(dir)).unwrap().into_iter();
            let name = |entry: DirEntry| entry.name.into_string().unwrap();
            entries
                .map(|it| (it.kind == FileKind::Directory, name(it)))
                .map(|(a, b)| (b, a))
                .collect()
        };
        let expected = |list: &[(&str, bool)]| -> Vec<(String, bool)> {
            list.iter().map(|(name, is_dir)| ((*name).to_owned(), *is_dir)).collect()
        };
        assert_eq!(names("s3://bucket"), expected(&[("a", true), ("top.log", false)]));
        let within = [("b", true), ("b.log", false), ("two.log", false)];
        assert_eq!(names("s3://bucket/a"), expected(&within));
        let kind = |path: &str| disk.metadata(Path::new(path)).map(|it| (it.kind, it.size_bytes));
        assert_eq!(kind("s3://bucket").unwrap(), (FileKind::Directory, 0));
        assert_eq!(kind("s3://bucket/a/b").unwrap(), (FileKind::Directory, 0));
        assert_eq!(kind("s3://bucket/a/b.log").unwrap(), (FileKind::File, 10));
        assert_eq!(kind("s3://bucket/x").unwrap_err().kind(), Kind::NotFound);
        assert_eq!(kind("/elsewhere").unwrap_err().kind(), Kind::NotFound);
        let path = Path::new("s3://bucket/a/two.log");
        assert_eq!(disk.read(path, 10).unwrap(), b"0123456789");
        assert_eq!(disk.read(path, 9).unwrap_err().kind(), Kind::Limit);
        let file = disk.open(path, OpenMode::Read).unwrap();
        let mut buffer = [0; 4];
        assert_eq!((file.read_at(&mut buffer, 3).unwrap(), &buffer), (4, b"3456"));
        assert_eq!((file.read_at(&mut buffer, 8).unwrap(), &buffer[..2]), (2, &b"89"[..]));
        assert_eq!(file.read_at(&mut buffer, 10).unwrap(), 0);
        assert_eq!(file.read_at(&mut buffer, u64::MAX).unwrap(), 0);
    }

    #[test]
    fn nothing_is_written_through_it() {
        let (disk, path) = (disk(), Path::new("s3://bucket/top.log"));
        let like = disk.metadata(path).unwrap();
        let file = disk.open(path, OpenMode::Read).unwrap();
        let outcomes = [
            disk.open(path, OpenMode::ReadWrite).map(|_| ()),
            disk.rename(path, path),
            disk.remove_file(path),
            disk.remove_dir(path),
            disk.create_dir(path),
            disk.set_owner(path, &like),
            disk.sync_dir(path),
            disk.sync_filesystem(path),
            disk.lock(path).map(|_| ()),
            file.write_at(b"x", 0),
            file.set_size(0),
            file.set_owner(&like),
            file.set_modified(0),
            file.sync(),
        ];
        assert!(outcomes.iter().all(|it| it.as_ref().unwrap_err().kind() == Kind::Unsupported));
        assert!(!disk.is_locked(path).unwrap());
    }
}
