//! What of a file is in the page cache, and what should be there soon?

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};

use crate::io::File;

/// No page is smaller; where they are larger, some are looked at twice.
const PAGE_BYTES: u64 = 4096;

/// What is asked to be read ahead at once.
const ADVICE_BYTES: u64 = 128 << 10;

/// Less than this is left to the next sync.
const WRITE_BYTES_MIN: usize = 64 << 10;

/// Whether the page cache has the byte at a position. Yes where a file system cannot tell: those
/// that cannot have their files in memory. Yes behind the end of the file, too.
pub(super) fn has(descriptor: BorrowedFd<'_>, position: u64) -> bool {
    let mut byte = [0];
    let mut buffers = [IoSliceMut::new(&mut byte)];
    let seen = rustix::io::preadv2(descriptor, &mut buffers, position, ReadWriteFlags::NOWAIT);
    seen != Err(Errno::AGAIN)
}

/// Whether it has the file up to `end`, as far as a look in the middle and at the end can tell.
pub(super) fn has_most(descriptor: BorrowedFd<'_>, end: u64) -> bool {
    has(descriptor, end.saturating_sub(1)) && has(descriptor, end / 2)
}

/// How many bytes of a range the page cache has, from its start on. All where nobody can tell, and
/// of a file that is in memory anyway, as on the simulated disk.
///
/// One look for each page, 0.4 us: 1 MiB takes 0.11 ms, as long as a copy of it would, which tells
/// as much but needs the memory. On newer Linux a look at a page that is not there has the disk
/// begin to read it.
pub(crate) fn resident_bytes(file: &dyn File, position: u64, size_bytes: u64) -> u64 {
    let Some(descriptor) = file.descriptor() else { return size_bytes };
    let end = position.saturating_add(size_bytes);
    let mut at = position;
    while at < end && has(descriptor, at) {
        at = (at / PAGE_BYTES).saturating_add(1).saturating_mul(PAGE_BYTES);
    }
    if at < end { at - position } else { size_bytes }
}

/// Whether it has all of a range. The end is looked at first: a range that was never read, or was
/// read only in part, is told apart at once.
pub(crate) fn has_all(file: &dyn File, position: u64, size_bytes: u64) -> bool {
    let Some(last) = position.saturating_add(size_bytes).checked_sub(1) else { return true };
    file.descriptor().is_none_or(|descriptor| size_bytes == 0 || has(descriptor, last))
        && resident_bytes(file, position, size_bytes) == size_bytes
}

/// Has the disk read all of a range, and does not wait for it.
pub(crate) fn warm(file: &dyn File, position: u64, size_bytes: u64) {
    let Some(descriptor) = file.descriptor() else { return };
    let end = position.saturating_add(size_bytes);
    let mut from = position;
    while from < end {
        // Linux takes no more than this of a request, where nobody has raised `read_ahead_kb`.
        let to = from.saturating_add(ADVICE_BYTES).min(end);
        read_ahead(descriptor, from, to);
        from = to;
    }
}

/// Has the disk read a range, and does not wait for it.
pub(super) fn read_ahead(descriptor: BorrowedFd<'_>, from: u64, to: u64) {
    let Some(size_bytes) = to.checked_sub(from).and_then(NonZeroU64::new) else { return };
    // Without it the range is read later, and all the same.
    rustix::fs::fadvise(descriptor, from, Some(size_bytes), Advice::WillNeed).ok();
}

/// Has the disk begin to write what was just written to a file, and does not wait for it: a later
/// sync has less to do. A few kilobytes are not worth a request of their own.
pub(crate) fn begin_to_write(file: &dyn File, size: usize) {
    if let Some(descriptor) = file.descriptor()
        && size >= WRITE_BYTES_MIN
    {
        // Linux takes the advice to let go of dirty pages as one to write them, and keeps them.
        // Without it they are written later, and all the same.
        rustix::fs::fadvise(descriptor, 0, None, Advice::DontNeed).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::io::{Disk, OpenMode, SimDisk, Storage};

    const SIZE: u64 = 6 << 20;

    fn written(disk: &dyn Storage, path: &Path) -> Box<dyn File> {
        let file = disk.open(path, OpenMode::CreateNew).unwrap();
        file.write_at(&vec![7; usize::try_from(SIZE).unwrap()], 0).unwrap();
        file
    }

    /// Has the page cache let go of a file from a position on; false where it does not.
    fn evict(file: &dyn File, from: u64) -> bool {
        file.sync().unwrap();
        rustix::fs::fadvise(file.descriptor().unwrap(), from, None, Advice::DontNeed).unwrap();
        !has_all(file, 0, SIZE)
    }

    #[test]
    fn a_cold_range_says_so_and_is_warm_once_it_was_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = written(&Disk::new(), &dir.path().join("a"));
        assert!(has_all(&*file, 0, SIZE) && resident_bytes(&*file, 5, SIZE - 5) == SIZE - 5);
        if !evict(&*file, 4 << 20) {
            eprintln!("skipped: this file system has its files in memory");
            return;
        }
        let prefix = resident_bytes(&*file, 100, SIZE - 100) + 100;
        assert!((4 << 20..SIZE).contains(&prefix), "{prefix}");
        assert!(has_all(&*file, 100, prefix - 100));
        assert!(evict(&*file, 0));
        warm(&*file, 0, SIZE);
        let deadline = Instant::now() + Duration::from_secs(60);
        while !has_all(&*file, 0, SIZE) {
            assert!(
                Instant::now() < deadline,
                "{} bytes are there",
                resident_bytes(&*file, 0, SIZE)
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn ranges_of_nothing_and_behind_the_end_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let simulated = SimDisk::new();
        let files =
            [written(&Disk::new(), &dir.path().join("a")), written(&simulated, Path::new("/a"))];
        for file in &files {
            for (position, size) in [(0, 0), (SIZE, 0), (SIZE, 10_000), (u64::MAX, 5), (9, SIZE)] {
                assert!(has_all(&**file, position, size), "{size} at {position}");
                warm(&**file, position, size);
            }
            assert_eq!(resident_bytes(&**file, SIZE - 1, 10_000), 10_000);
        }
    }
}
