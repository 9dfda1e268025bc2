//! What of a file is in the page cache, and what should be there soon?

use std::io::IoSliceMut;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};

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

/// Has the disk read a range, and does not wait for it.
pub(super) fn read_ahead(descriptor: BorrowedFd<'_>, from: u64, to: u64) {
    let Some(size_bytes) = to.checked_sub(from).and_then(NonZeroU64::new) else { return };
    // Without it the range is read later, and all the same.
    rustix::fs::fadvise(descriptor, from, Some(size_bytes), Advice::WillNeed).ok();
}
