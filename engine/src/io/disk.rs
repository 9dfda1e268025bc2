//! The real disk, by plain system calls.
//!
//! Every call is repeated when a signal interrupts it, short reads and writes are continued, and
//! every error says what was done to which path and keeps the kernel's number. All descriptors are
//! closed on exec.

use std::ffi::{OsStr, OsString};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps,
    UTIME_OMIT, Uid,
};
use rustix::io::{Errno, retry_on_intr};

use crate::error::{Error, Kind, Result};
use crate::io::counters::Tally;
use crate::io::{
    Counters, DirEntry, File, FileKind, Lock, Metadata, OpenMode, Storage, lock as record_lock,
};

/// The real disk by plain system calls. Cheap to make; clones share their counters.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    tally: Arc<Tally>,
}

impl Disk {
    /// The disk of this machine.
    #[must_use]
    pub fn new() -> Self {
        Disk::default()
    }

    pub(super) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    pub(super) fn open_file(&self, path: &Path, mode: OpenMode) -> Result<DiskFile> {
        let descriptor = open_plain(path, mode)?;
        self.tally.opened();
        Ok(DiskFile { descriptor, path: path.to_path_buf(), tally: Arc::clone(&self.tally) })
    }
}

impl Storage for Disk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>> {
        Ok(Box::new(self.open_file(path, mode)?))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        let path = from_here(path);
        let stat = match retry_on_intr(|| rustix::fs::stat(path)) {
            Ok(stat) => stat,
            // What is there may be a link that leads nowhere; the link itself then answers.
            Err(e @ (Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ACCESS)) => {
                let link = retry_on_intr(|| rustix::fs::lstat(path)).map_err(|_| e);
                link.map_err(|e| Error::io("examine", path, e.into()))?
            }
            Err(e) => return Err(Error::io("examine", path, e.into())),
        };
        metadata_of(&stat)
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        entries_of(&open_directory(dir)?, dir)
    }

    fn list_with_metadata(&self, dir: &Path) -> Result<Vec<(DirEntry, Metadata)>> {
        let descriptor = open_directory(dir)?;
        let mut entries = Vec::new();
        for entry in entries_of(&descriptor, dir)? {
            // From the directory on: the kernel need not walk there again for each.
            if let Some(stat) = stat_behind(&descriptor, dir, &entry.name)? {
                entries.push((entry, metadata_of(&stat)?));
            }
        }
        Ok(entries)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        retry_on_intr(|| rustix::fs::rename(from, to))
            .map_err(|e| Error::io(&format!("rename to {}", to.display()), from, e.into()))
    }

    fn link_target(&self, path: &Path) -> Result<Option<PathBuf>> {
        let error = |e: Errno| Error::io("examine", path, e.into());
        let link = match retry_on_intr(|| rustix::fs::lstat(path)) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => stat,
            Ok(_) | Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(error(e)),
        };
        let target =
            std::fs::canonicalize(path).map_err(|e| Error::io("follow the link", path, e))?;
        let behind = retry_on_intr(|| rustix::fs::lstat(&target)).map_err(error)?;
        if link.st_uid != 0 && link.st_uid != behind.st_uid {
            let why = format!("the link and {} belong to different users", target.display());
            return Err(Error::new(Kind::Conflict, why).in_file(path));
        }
        Ok(Some(target))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        retry_on_intr(|| rustix::fs::unlink(path)).map_err(|e| Error::io("remove", path, e.into()))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        retry_on_intr(|| rustix::fs::rmdir(path))
            .map_err(|e| Error::io("remove directory", path, e.into()))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        retry_on_intr(|| rustix::fs::mkdir(path, Mode::from_raw_mode(0o777)))
            .map_err(|e| Error::io("create directory", path, e.into()))
    }

    fn set_owner(&self, path: &Path, like: &Metadata) -> Result<()> {
        // By descriptor and not through a link: else whoever owns the directory could have root
        // hand over any file.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let descriptor = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()))
            .map_err(|e| Error::io("open", path, e.into()))?;
        set_owner(&descriptor, path, like)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        let descriptor = open_directory(dir)?;
        self.tally.synced_directory();
        retry_on_intr(|| rustix::fs::fsync(&descriptor))
            .map_err(|e| Error::io("sync directory", dir, e.into()))
    }

    fn sync_filesystem(&self, dir: &Path) -> Result<()> {
        let descriptor = open_directory(dir)?;
        self.tally.synced_filesystem();
        retry_on_intr(|| rustix::fs::syncfs(&descriptor))
            .map_err(|e| Error::io("sync file system", dir, e.into()))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        record_lock::lock(path)
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        record_lock::is_locked(path)
    }

    fn read(&self, path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        read_whole(&self.open_file(path, OpenMode::Read)?, limit_bytes)
    }

    fn counters(&self) -> Counters {
        self.tally.snapshot()
    }
}

/// Parts that Linux takes in one call.
pub(super) const PARTS_MAX: usize = 1024;

/// An open file of the real disk.
#[derive(Debug)]
pub(super) struct DiskFile {
    descriptor: OwnedFd,
    path: PathBuf,
    tally: Arc<Tally>,
}

impl File for DiskFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn metadata(&self) -> Result<Metadata> {
        let stat = rustix::fs::fstat(&self.descriptor)
            .map_err(|e| Error::io("examine", &self.path, e.into()))?;
        metadata_of(&stat)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let at = advance(position, filled);
            let count = retry_on_intr(|| rustix::io::pread(&self.descriptor, &mut *rest, at))
                .map_err(|e| Error::io("read", &self.path, e.into()).at_position(at))?;
            self.tally.read(count);
            if count == 0 {
                break;
            }
            filled += count;
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<()> {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            let at = advance(position, written);
            let count = retry_on_intr(|| rustix::io::pwrite(&self.descriptor, rest, at))
                .map_err(|e| Error::io("write", &self.path, e.into()).at_position(at))?;
            self.tally.written(count);
            if count == 0 {
                return Err(no_progress(&self.path, at));
            }
            written += count;
        }
        Ok(())
    }

    fn write_parts_at(&self, parts: &[&[u8]], position: u64) -> Result<()> {
        let mut at = position;
        for group in parts.chunks(PARTS_MAX) {
            if let [part] = group {
                self.write_at(part, at)?;
                at = advance(at, part.len());
                continue;
            }
            if group.iter().all(|part| part.is_empty()) {
                // Nothing, even where no file can be written.
                continue;
            }
            let slices: Vec<IoSlice<'_>> = group.iter().map(|part| IoSlice::new(part)).collect();
            let mut done = retry_on_intr(|| rustix::io::pwritev(&self.descriptor, &slices, at))
                .map_err(|e| Error::io("write", &self.path, e.into()).at_position(at))?;
            self.tally.written(done);
            if done == 0 {
                return Err(no_progress(&self.path, at));
            }
            for part in group {
                let (_, rest) = part.split_at(done.min(part.len()));
                done = done.saturating_sub(part.len());
                // Only when the kernel took less than all.
                self.write_at(rest, advance(at, part.len() - rest.len()))?;
                at = advance(at, part.len());
            }
        }
        Ok(())
    }

    fn set_size(&self, size_bytes: u64) -> Result<()> {
        retry_on_intr(|| rustix::fs::ftruncate(&self.descriptor, size_bytes))
            .map_err(|e| Error::io("set size of", &self.path, e.into()))
    }

    fn reserve(&self, size_bytes: u64) -> Result<()> {
        let flags = FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| rustix::fs::fallocate(&self.descriptor, flags, 0, size_bytes)) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOSPC | Errno::DQUOT) => Ok(()),
            outcome => outcome.map_err(|e| Error::io("reserve room for", &self.path, e.into())),
        }
    }

    fn set_owner(&self, like: &Metadata) -> Result<()> {
        let is = self.metadata()?;
        if (is.owner, is.group, is.mode) == (like.owner, like.group, like.mode) {
            return Ok(());
        }
        set_owner(&self.descriptor, &self.path, like)
    }

    fn set_modified(&self, modified_ms: i64) -> Result<()> {
        let omitted = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let modified = Timespec {
            tv_sec: modified_ms.div_euclid(1000),
            tv_nsec: modified_ms.rem_euclid(1000) * 1_000_000,
        };
        let times = Timestamps { last_access: omitted, last_modification: modified };
        retry_on_intr(|| rustix::fs::futimens(&self.descriptor, &times))
            .map_err(|e| Error::io("set time of", &self.path, e.into()))
    }

    fn sync(&self) -> Result<()> {
        self.tally.synced();
        // The length is among what fdatasync makes durable; the time of the last change need not
        // be.
        retry_on_intr(|| rustix::fs::fdatasync(&self.descriptor))
            .map_err(|e| Error::io("sync", &self.path, e.into()))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.descriptor.as_fd())
    }
}

fn set_owner(descriptor: &OwnedFd, path: &Path, like: &Metadata) -> Result<()> {
    let may_fail = !rustix::process::geteuid().is_root();
    let allowed = |outcome: rustix::io::Result<()>, operation: &str| match outcome {
        Err(Errno::PERM) if may_fail => Ok(()),
        other => other.map_err(|e| Error::io(operation, path, e.into())),
    };
    let (owner, group) = (Uid::from_raw(like.owner), Gid::from_raw(like.group));
    let mut outcome = retry_on_intr(|| rustix::fs::fchown(descriptor, Some(owner), Some(group)));
    if outcome == Err(Errno::PERM) && may_fail {
        // Another owner needs root, but one of our own groups does not.
        outcome = retry_on_intr(|| rustix::fs::fchown(descriptor, None, Some(group)));
    }
    allowed(outcome, "change owner")?;
    // After the owner, since a change of owner clears some of the bits.
    // Nothing of a log is run, as anybody.
    let mode = Mode::from_raw_mode(like.mode & 0o777);
    allowed(retry_on_intr(|| rustix::fs::fchmod(descriptor, mode)), "change mode")
}

/// The position `count` bytes after `position`; one past what the kernel takes stays there and is
/// refused by it.
pub(super) fn advance(position: u64, count: usize) -> u64 {
    position.saturating_add(u64::try_from(count).unwrap_or(u64::MAX))
}

/// What is left of parts behind the first `done` bytes of them.
pub(super) fn parts_behind<'a>(
    parts: &'a [&'a [u8]],
    mut done: usize,
) -> impl Iterator<Item = &'a [u8]> {
    parts.iter().filter_map(move |part| {
        let (gone, rest) = part.split_at(done.min(part.len()));
        done -= gone.len();
        (!rest.is_empty()).then_some(rest)
    })
}

/// A write that took nothing and gave no reason: going on would be an endless loop.
pub(super) fn no_progress(path: &Path, position: u64) -> Error {
    let cause = std::io::Error::from(std::io::ErrorKind::WriteZero);
    Error::io("write", path, cause).at_position(position)
}

/// The bytes of an open file from its start, or `Limit`.
pub(super) fn read_whole(file: &dyn File, limit_bytes: u64) -> Result<Vec<u8>> {
    let path = file.path();
    let too_long = || {
        Error::new(Kind::Limit, format!("longer than the limit of {limit_bytes} bytes"))
            .in_file(path)
    };
    let mut size_bytes = file.metadata()?.size_bytes;
    let mut bytes = Vec::new();
    loop {
        if size_bytes > limit_bytes {
            return Err(too_long());
        }
        let size = usize::try_from(size_bytes).map_err(|_| too_long())?;
        // One byte more than there should be: a short read then says that this was the end.
        let held = bytes.len();
        bytes.try_reserve_exact(size.saturating_add(1) - held).map_err(|_| too_long())?;
        bytes.resize(size.saturating_add(1), 0);
        let target = bytes.get_mut(held..).unwrap_or_default();
        let filled = held + file.read_at(target, advance(0, held))?;
        let is_end = filled < bytes.len();
        bytes.truncate(filled);
        if is_end {
            return Ok(bytes);
        }
        // It grew while we read.
        size_bytes = file.metadata()?.size_bytes.max(advance(0, filled));
    }
}

/// Opens a plain file and nothing else.
fn open_plain(path: &Path, mode: OpenMode) -> Result<OwnedFd> {
    let access = match mode {
        OpenMode::Read => OFlags::RDONLY,
        OpenMode::ReadWrite => OFlags::RDWR,
        OpenMode::Rewrite => OFlags::RDWR | OFlags::NOFOLLOW,
        // Not through a link: it would let whoever owns the directory have root cut and fill any
        // file.
        OpenMode::Create => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW,
        OpenMode::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
    };
    // A pipe or a device with the name of a log must not hold us up.
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let error = |e: Errno| Error::io("open", path, e.into());
    let descriptor = retry_on_intr(|| rustix::fs::open(path, flags, Mode::from_raw_mode(0o666)))
        .map_err(error)?;
    let stat = rustix::fs::fstat(&descriptor).map_err(error)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(error(Errno::ISDIR)),
        _ => {
            return Err(
                Error::new(Kind::InvalidArgument, "open: a device, pipe or socket").in_file(path)
            );
        }
    }
    // Older kernels answer ring reads of a non-blocking file with EAGAIN instead of waiting for the
    // disk.
    rustix::fs::fcntl_setfl(&descriptor, access & OFlags::RWMODE).map_err(error)?;
    Ok(descriptor)
}

/// The parent of a relative name is empty in Rust, and a dot to the system.
fn from_here(path: &Path) -> &Path {
    match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    }
}

fn open_directory(dir: &Path) -> Result<OwnedFd> {
    let dir = from_here(dir);
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::open(dir, flags, Mode::empty()))
        .map_err(|e| Error::io("open", dir, e.into()))
}

/// The entries of a directory, sorted by name.
fn entries_of(descriptor: &OwnedFd, dir: &Path) -> Result<Vec<DirEntry>> {
    let error = |e: Errno| Error::io("list", dir, e.into());
    let mut entries = Vec::new();
    for entry in
        Dir::new(descriptor.try_clone().map_err(|e| Error::io("list", dir, e))?).map_err(error)?
    {
        let entry = entry.map_err(error)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::RegularFile => Some(FileKind::File),
            FileType::Directory => Some(FileKind::Directory),
            FileType::Symlink | FileType::Unknown => {
                stat_behind(descriptor, dir, name)?.as_ref().map(kind_of)
            }
            _ => Some(FileKind::Other),
        };
        if let Some(kind) = kind {
            entries.push(DirEntry { name: OsString::from(name), kind });
        }
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// What is behind the links of a name; `None` when it vanished since it was listed.
fn stat_behind(descriptor: &OwnedFd, dir: &Path, name: &OsStr) -> Result<Option<Stat>> {
    let error = |e: Errno| Error::io("examine", &dir.join(name), e.into());
    match retry_on_intr(|| rustix::fs::statat(descriptor, name, AtFlags::empty())) {
        Ok(stat) => return Ok(Some(stat)),
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ACCESS) => {}
        Err(e) => return Err(error(e)),
    }
    match retry_on_intr(|| rustix::fs::statat(descriptor, name, AtFlags::SYMLINK_NOFOLLOW)) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(error(e)),
    }
}

fn kind_of(stat: &Stat) -> FileKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        // Links are followed, so this one could not be.
        FileType::Symlink => FileKind::DanglingLink,
        _ => FileKind::Other,
    }
}

fn metadata_of(stat: &Stat) -> Result<Metadata> {
    let milliseconds = i64::try_from(stat.st_mtime_nsec / 1_000_000).unwrap_or(0);
    Ok(Metadata {
        kind: kind_of(stat),
        size_bytes: u64::try_from(stat.st_size)
            .map_err(|_| Error::corrupt("the file system gave a negative size"))?,
        modified_ms: stat.st_mtime.saturating_mul(1000).saturating_add(milliseconds),
        mode: stat.st_mode & 0o7777,
        owner: stat.st_uid,
        group: stat.st_gid,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn disk() -> (tempfile::TempDir, Disk) {
        (tempfile::tempdir().unwrap(), Disk::new())
    }

    #[test]
    fn bytes_written_are_read_back_and_short_only_at_the_end() {
        let (dir, disk) = disk();
        let path = dir.path().join("a");
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(b"hello", 3).unwrap();
        let mut buffer = [9; 10];
        assert_eq!(file.read_at(&mut buffer, 1).unwrap(), 7);
        assert_eq!(&buffer[..7], b"\0\0hello");
        assert_eq!(file.read_at(&mut buffer, 8).unwrap(), 0);
        assert_eq!(file.read_at(&mut buffer, 1 << 40).unwrap(), 0);
        file.set_size(4).unwrap();
        assert_eq!(file.metadata().unwrap().size_bytes, 4);
        file.sync().unwrap();
        assert_eq!(disk.read(&path, 4).unwrap(), b"\0\0\0h");
        assert!(file.descriptor().is_some());
        let counters = disk.counters();
        assert_eq!((counters.opened, counters.writes, counters.bytes_written), (2, 1, 5));
        assert_eq!((counters.syncs, counters.ring_submissions), (1, 0));
    }

    #[test]
    fn the_parent_of_a_relative_name_is_the_current_directory() {
        let disk = Disk::new();
        let parent = Path::new("orders-0").parent().unwrap();
        disk.sync_dir(parent).unwrap();
        disk.sync_filesystem(parent).unwrap();
        assert_eq!(disk.metadata(parent).unwrap(), disk.metadata(Path::new(".")).unwrap());
        assert_eq!(disk.list(parent).unwrap(), disk.list(Path::new(".")).unwrap());
    }

    #[test]
    fn each_mode_opens_what_it_says() {
        let (dir, disk) = disk();
        let path = dir.path().join("a");
        for mode in [OpenMode::Read, OpenMode::ReadWrite] {
            let error = disk.open(&path, mode).unwrap_err();
            assert_eq!((error.kind(), error.path()), (Kind::NotFound, Some(path.as_path())));
        }
        disk.open(&path, OpenMode::Create).unwrap().write_at(b"1", 0).unwrap();
        let error = disk.open(&path, OpenMode::CreateNew).unwrap_err();
        assert_eq!((error.kind(), error.errno()), (Kind::Conflict, Some(17)));
        let file = disk.open(&path, OpenMode::Read).unwrap();
        let error = file.write_at(b"x", 0).unwrap_err();
        assert_eq!((error.errno(), error.position()), (Some(9), Some(0)));
        assert_eq!(disk.read(&path, 10).unwrap(), b"1");
        disk.open(&path, OpenMode::Create).unwrap();
        assert_eq!(disk.metadata(&path).unwrap().size_bytes, 0);
    }

    #[test]
    fn a_file_longer_than_the_limit_is_not_read() {
        let (dir, disk) = disk();
        let path = dir.path().join("a");
        disk.open(&path, OpenMode::Create).unwrap().set_size(1 << 40).unwrap();
        assert_eq!(disk.read(&path, (1 << 40) - 1).unwrap_err().kind(), Kind::Limit);
        std::fs::write(&path, [7; 100]).unwrap();
        assert_eq!(disk.read(&path, 100).unwrap(), [7; 100]);
        assert_eq!(disk.read(&path, 99).unwrap_err().kind(), Kind::Limit);
    }

    #[test]
    fn pipes_devices_and_directories_are_refused_without_waiting() {
        let (dir, disk) = disk();
        let pipe = dir.path().join("pipe");
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            for mode in [OpenMode::Read, OpenMode::ReadWrite, OpenMode::Create] {
                assert_eq!(disk.open(path, mode).unwrap_err().kind(), Kind::InvalidArgument);
            }
            assert_eq!(disk.read(path, 10).unwrap_err().kind(), Kind::InvalidArgument);
            assert_eq!(disk.metadata(path).unwrap().kind, FileKind::Other);
        }
        for mode in [OpenMode::Read, OpenMode::ReadWrite, OpenMode::Create] {
            assert_eq!(disk.open(dir.path(), mode).unwrap_err().errno(), Some(21));
        }
    }

    #[test]
    fn a_listing_is_sorted_and_looks_behind_links() {
        let (dir, disk) = disk();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("z-file"), b"").unwrap();
        std::fs::create_dir(at("dir")).unwrap();
        symlink(at("z-file"), at("to-file")).unwrap();
        symlink(at("dir"), at("to-dir")).unwrap();
        symlink(at("nowhere"), at("a-dangling")).unwrap();
        symlink(at("loop"), at("loop")).unwrap();
        symlink(at("z-file/below"), at("below-a-file")).unwrap();
        let bytes = OsStr::from_bytes(b"not-utf8-\xff");
        std::fs::write(dir.path().join(bytes), b"").unwrap();
        let listed = disk.list(dir.path()).unwrap();
        let expected: Vec<(&OsStr, FileKind)> = vec![
            (OsStr::new("a-dangling"), FileKind::DanglingLink),
            (OsStr::new("below-a-file"), FileKind::DanglingLink),
            (OsStr::new("dir"), FileKind::Directory),
            (OsStr::new("loop"), FileKind::DanglingLink),
            (bytes, FileKind::File),
            (OsStr::new("to-dir"), FileKind::Directory),
            (OsStr::new("to-file"), FileKind::File),
            (OsStr::new("z-file"), FileKind::File),
        ];
        let found: Vec<_> = listed.iter().map(|e| (e.name.as_os_str(), e.kind)).collect();
        assert_eq!(found, expected);
        for (entry, metadata) in disk.list_with_metadata(dir.path()).unwrap() {
            assert_eq!(entry.kind, metadata.kind, "{:?}", entry.name);
            assert_eq!(metadata, disk.metadata(&dir.path().join(&entry.name)).unwrap());
        }
        for (name, kind) in expected {
            assert_eq!(disk.metadata(&dir.path().join(name)).unwrap().kind, kind, "{name:?}");
        }
        assert_eq!(disk.list(&at("nowhere")).unwrap_err().kind(), Kind::NotFound);
        assert_eq!(disk.list(&at("z-file")).unwrap_err().errno(), Some(20));
        assert_eq!(disk.metadata(&at("nowhere")).unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn names_are_moved_made_and_removed() {
        let (dir, disk) = disk();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a"), b"a").unwrap();
        std::fs::write(at("b"), b"b").unwrap();
        disk.rename(&at("a"), &at("b")).unwrap();
        assert_eq!(disk.read(&at("b"), 10).unwrap(), b"a");
        let error = disk.rename(&at("a"), &at("b")).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        assert!(error.to_string().contains("rename to"), "{error}");
        disk.create_dir(&at("d")).unwrap();
        assert_eq!(disk.create_dir(&at("d")).unwrap_err().kind(), Kind::Conflict);
        assert_eq!(disk.remove_file(&at("d")).unwrap_err().errno(), Some(21));
        disk.remove_file(&at("b")).unwrap();
        assert_eq!(disk.remove_file(&at("b")).unwrap_err().kind(), Kind::NotFound);
        disk.sync_dir(dir.path()).unwrap();
        disk.sync_filesystem(dir.path()).unwrap();
        assert_eq!(disk.sync_dir(&at("b")).unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn a_new_file_takes_mode_and_owner_of_another_but_not_through_a_link() {
        let (dir, disk) = disk();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("log"), b"").unwrap();
        std::fs::set_permissions(at("log"), PermissionsExt::from_mode(0o640)).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        if is_root {
            std::os::unix::fs::chown(at("log"), Some(1234), Some(2345)).unwrap();
        }
        std::fs::write(at("index"), b"").unwrap();
        let like = disk.metadata(&at("log")).unwrap();
        disk.set_owner(&at("index"), &like).unwrap();
        let is = disk.metadata(&at("index")).unwrap();
        assert_eq!((is.mode, is.owner, is.group), (0o640, like.owner, like.group));
        assert_eq!(is.owner == 1234, is_root);
        symlink(at("index"), at("link")).unwrap();
        assert_eq!(disk.set_owner(&at("link"), &like).unwrap_err().errno(), Some(40));
    }

    #[test]
    fn nothing_is_made_or_cut_through_a_link() {
        let (dir, disk) = disk();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("victim"), b"kept").unwrap();
        symlink(at("victim"), at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        for name in ["link", "dangling"] {
            assert_eq!(disk.open(&at(name), OpenMode::Create).unwrap_err().errno(), Some(40));
            let error = disk.open(&at(name), OpenMode::CreateNew).unwrap_err();
            assert_eq!(error.kind(), Kind::Conflict);
        }
        assert_eq!(disk.read(&at("link"), 10).unwrap(), b"kept");
        assert!(!at("nowhere").exists());
    }
}
