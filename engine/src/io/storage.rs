//! The disk as the engine sees it: two traits with two implementations, the real disk and the
//! simulated one.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Kind, Result};
use crate::io::Counters;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A plain file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link that leads nowhere or in a circle.
    DanglingLink,
    /// A device, pipe or socket.
    Other,
}

/// What the file system knows of a path; symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Its length in bytes.
    pub size_bytes: u64,
    /// When its bytes last changed, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Permission bits.
    pub mode: u32,
    /// User id of the owner.
    pub owner: u32,
    /// Group id.
    pub group: u32,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The name within the directory.
    pub name: OsString,
    /// What it is, behind symbolic links.
    pub kind: FileKind,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it must exist.
    ReadWrite,
    /// As `ReadWrite`, but a symbolic link is refused.
    Rewrite,
    /// For reading and writing; made, or cut to nothing when it exists. A symbolic link is refused.
    Create,
    /// For reading and writing; made, and an error of kind `Conflict` when it exists.
    CreateNew,
}

/// An open file. Positions are bytes from its start.
pub trait File: Send + Sync + fmt::Debug {
    /// The path it was opened by.
    fn path(&self) -> &Path;

    /// What the file system knows of it now.
    fn metadata(&self) -> Result<Metadata>;

    /// Fills `buffer` from `position`; fewer bytes than asked for only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize>;

    /// Writes all of `bytes` at `position`, or fails; after a failure some of them may be there.
    fn write_at(&self, bytes: &[u8], position: u64) -> Result<()>;

    /// Writes all of `parts`, one behind the other, or fails as [`write_at`](Self::write_at) does.
    fn write_parts_at(&self, parts: &[&[u8]], position: u64) -> Result<()> {
        let mut at = position;
        for part in parts {
            self.write_at(part, at)?;
            at = at.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
        }
        Ok(())
    }

    /// Cuts or extends (with zeros) to this length.
    fn set_size(&self, size_bytes: u64) -> Result<()>;

    /// Reserves room on the disk up to this length, without changing the length; where there is
    /// not so much, or the file system cannot, nothing happens. Setting the size lets go of what is
    /// reserved behind it.
    fn reserve(&self, size_bytes: u64) -> Result<()>;

    /// Gives the file the owner, group and mode of `like`; what the caller may not change is left
    /// as it is.
    fn set_owner(&self, like: &Metadata) -> Result<()>;

    /// Says when its bytes last changed, in milliseconds since 1970.
    fn set_modified(&self, modified_ms: i64) -> Result<()>;

    /// Makes bytes and length durable.
    fn sync(&self) -> Result<()>;

    /// The descriptor, for maps; `None` on the simulated disk.
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }
}

/// Bytes for a file, one part behind the other.
#[derive(Clone, Copy, Debug)]
pub struct FileWrite<'a> {
    /// The file.
    pub file: &'a dyn File,
    /// What is written.
    pub parts: &'a [&'a [u8]],
    /// Where the first part begins.
    pub position: u64,
}

/// A held lock; dropping it lets go.
pub trait Lock: Send + Sync + fmt::Debug {}

/// A disk. As a directory, the empty path is the current one: the parent of a relative name.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Opens or makes a file.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>>;

    /// What the path is; `NotFound` when it is not there.
    fn metadata(&self, path: &Path) -> Result<Metadata>;

    /// The entries of a directory, sorted by name.
    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>>;

    /// The same with what [`metadata`](Self::metadata) says of each. Those that vanish meanwhile
    /// are left out.
    fn list_with_metadata(&self, dir: &Path) -> Result<Vec<(DirEntry, Metadata)>> {
        let mut entries = Vec::new();
        for entry in self.list(dir)? {
            match self.metadata(&dir.join(&entry.name)) {
                Err(error) if error.kind() == Kind::NotFound => {}
                metadata => entries.push((entry, metadata?)),
            }
        }
        Ok(entries)
    }

    /// Renames within one file system, over what is there. Durable after `sync_dir`.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// The file behind a symbolic link, for who must write through it; `None` when the name is no
    /// link. `Conflict` when the link is of one user and the file of another: whoever owns the
    /// directory could have root write to any file.
    fn link_target(&self, path: &Path) -> Result<Option<PathBuf>> {
        let _ = path;
        Ok(None)
    }

    /// Unlinks a file. Durable after `sync_dir`.
    fn remove_file(&self, path: &Path) -> Result<()>;

    /// Removes an empty directory. Durable after `sync_dir` of its parent.
    fn remove_dir(&self, path: &Path) -> Result<()>;

    /// Makes a directory; its parent must exist. `Conflict` when the name is taken.
    fn create_dir(&self, path: &Path) -> Result<()>;

    /// Gives a file or directory the owner, group and mode of `like`; what the caller may not
    /// change is left as it is. A symbolic link is refused.
    fn set_owner(&self, path: &Path, like: &Metadata) -> Result<()>;

    /// Makes the entries of a directory durable.
    fn sync_dir(&self, dir: &Path) -> Result<()>;

    /// Makes everything written so far to the file system that holds `dir` durable.
    fn sync_filesystem(&self, dir: &Path) -> Result<()>;

    /// Makes many files durable at once; one result each, in order.
    fn sync_files(&self, files: &[&dyn File]) -> Vec<Result<()>> {
        files.iter().map(|file| file.sync()).collect()
    }

    /// Writes to many files at once, each as [`File::write_parts_at`] does; one result each, in
    /// order. What is written to one file must not overlap. Files of another disk are taken, too.
    fn write_files(&self, writes: &[FileWrite<'_>]) -> Vec<Result<()>> {
        writes.iter().map(|write| write.file.write_parts_at(write.parts, write.position)).collect()
    }

    /// Takes the exclusive POSIX record lock on the whole file, making the file when it is missing:
    /// what a broker does with `.lock`. `Conflict` when it is held. A lock is lost when its file is
    /// opened by [`Storage::open`] or [`Storage::read`] in the same process and closed again: so
    /// POSIX wants it.
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>>;

    /// Whether another process holds the lock on this file; a missing file is not held.
    fn is_locked(&self, path: &Path) -> Result<bool>;

    /// The bytes of a file from its start, at most `limit_bytes` of them; `Limit` when it is
    /// longer.
    fn read(&self, path: &Path, limit_bytes: u64) -> Result<Vec<u8>>;

    /// What it has been asked to do since it was made.
    fn counters(&self) -> Counters {
        Counters::default()
    }
}
