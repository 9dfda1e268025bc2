//! What has to be done with a completion of io_uring? Requests through a ring, each carried on
//! until it is settled.
//!
//! A completion may be short, or say "again" or "interrupted", just as a system call may. [`drive`]
//! settles a batch of transfers over any queue, so that tests can drive it with a queue that does
//! all of that; [`Ring`] is the kernel's.
//!
//! The memory of a request belongs to the kernel until its completion arrived. So nothing here
//! returns, not even with an error, before every request that was handed over has completed.
#![allow(unsafe_code)]

use std::fmt;
use std::io::{ErrorKind, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::io::Errno;

use crate::io::counters::Tally;
use crate::io::disk::{PARTS_MAX, advance, parts_behind};

/// Requests that are in the ring at once.
const DEPTH: u32 = 128;

/// The most bytes of one request: the kernel takes a little less than 2 GiB.
const REQUEST_BYTES_MAX: usize = 1 << 30;

/// So many answers without progress, and a transfer is left to the plain call.
const STALLS_MAX: u32 = 64;

/// What a transfer does.
#[derive(Debug)]
pub(super) enum Operation<'a> {
    /// Fills a buffer, as far as the file goes.
    Read(&'a mut [u8]),
    /// Writes all bytes.
    Write(&'a [u8]),
    /// Writes all parts, one behind the other.
    WriteParts(&'a [&'a [u8]]),
    /// Makes bytes and length of the file durable.
    Sync,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of it is done; a read that met the end of the file may have done less.
    Done,
    /// A write took nothing and gave no reason.
    NoProgress,
    /// The kernel refused.
    Failed(Errno),
    /// The ring does not do this here: the plain call has to do the rest.
    Declined,
}

/// One transfer and how far it is.
#[derive(Debug)]
pub(super) struct Transfer<'a> {
    descriptor: BorrowedFd<'a>,
    operation: Operation<'a>,
    /// The parts of the request that is in flight.
    slices: Vec<IoSlice<'a>>,
    position: u64,
    done: usize,
    stalls: u32,
    outcome: Option<Outcome>,
}

impl<'a> Transfer<'a> {
    pub(super) fn new(descriptor: BorrowedFd<'a>, operation: Operation<'a>, position: u64) -> Self {
        let slices = Vec::new();
        Transfer { descriptor, operation, slices, position, done: 0, stalls: 0, outcome: None }
    }

    /// How it ended; one that the ring never settled is declined.
    pub(super) fn outcome(&self) -> Outcome {
        self.outcome.unwrap_or(Outcome::Declined)
    }

    /// Bytes that are done.
    pub(super) fn done(&self) -> usize {
        self.done
    }

    fn left(&self) -> usize {
        let size = match &self.operation {
            Operation::Read(buffer) => buffer.len(),
            Operation::Write(bytes) => bytes.len(),
            Operation::WriteParts(parts) => {
                parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.len()))
            }
            Operation::Sync => 0,
        };
        size.saturating_sub(self.done)
    }

    /// The request for what is left.
    fn request(&mut self) -> Request {
        let mut size = u32::try_from(self.left().min(REQUEST_BYTES_MAX)).unwrap_or_default();
        let memory = match &mut self.operation {
            Operation::Read(buffer) => {
                Memory::Target(buffer.get_mut(self.done..).unwrap_or_default().as_mut_ptr())
            }
            Operation::Write(bytes) => {
                Memory::Origin(bytes.get(self.done..).unwrap_or_default().as_ptr())
            }
            Operation::WriteParts(parts) => {
                self.slices.clear();
                let rest = parts_behind(parts, self.done).take(PARTS_MAX);
                self.slices.extend(rest.map(IoSlice::new));
                size = u32::try_from(self.slices.len()).unwrap_or_default();
                Memory::Slices(self.slices.as_ptr().cast())
            }
            Operation::Sync => Memory::None,
        };
        let position = advance(self.position, self.done);
        Request { descriptor: self.descriptor.as_raw_fd(), memory, size, position }
    }

    /// Takes a completion: a count of bytes, or an error number below zero. Without an outcome
    /// afterwards it has to be requested again, for what is left.
    fn complete(&mut self, result: i32) {
        self.outcome = match usize::try_from(result) {
            Ok(count) => self.progress(count),
            Err(_) => self.refused(Errno::from_raw_os_error(result.saturating_neg())),
        };
    }

    fn progress(&mut self, count: usize) -> Option<Outcome> {
        if matches!(self.operation, Operation::Sync) {
            return Some(Outcome::Done);
        }
        self.done = self.done.saturating_add(count.min(self.left()));
        self.stalls = 0;
        match &self.operation {
            _ if self.left() == 0 => Some(Outcome::Done),
            Operation::Write(_) | Operation::WriteParts(_) if count == 0 => {
                Some(Outcome::NoProgress)
            }
            _ if count == 0 => Some(Outcome::Done),
            _ => None,
        }
    }

    fn refused(&mut self, errno: Errno) -> Option<Outcome> {
        match errno {
            Errno::INTR | Errno::AGAIN | Errno::CANCELED => {
                self.stalls += 1;
                (self.stalls > STALLS_MAX).then_some(Outcome::Declined)
            }
            // A kernel, a sandbox or a file system without this opcode. If it is the file instead,
            // the plain call says so.
            Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS | Errno::ACCESS | Errno::PERM => {
                Some(Outcome::Declined)
            }
            errno => Some(Outcome::Failed(errno)),
        }
    }
}

/// What is handed to the kernel.
#[derive(Clone, Copy, Debug)]
struct Request {
    descriptor: RawFd,
    memory: Memory,
    /// Bytes, or slices.
    size: u32,
    position: u64,
}

#[derive(Clone, Copy, Debug)]
enum Memory {
    Target(*mut u8),
    Origin(*const u8),
    /// An `IoSlice` is laid out as the kernel's `iovec`.
    Slices(*const libc::iovec),
    None,
}

/// The queue can no longer be used. Nothing is in flight.
#[derive(Debug)]
struct Broken;

/// Takes requests and gives completions.
trait Queue {
    /// Requests that may be in flight at once.
    fn capacity(&self) -> usize;

    /// Adds a request; `false` when there is no room.
    ///
    /// # Safety
    /// The memory of the request stays valid, and is left alone, until [`Queue::wait`] gave its
    /// completion or failed.
    unsafe fn push(&mut self, tag: usize, request: Request) -> bool;

    /// Hands over what was pushed and waits for one completion or more; gives tags and results.
    /// With an error, too, it gives every completion that arrived, and none is outstanding.
    fn wait(&mut self, completed: &mut Vec<(usize, i32)>) -> Result<(), Broken>;
}

/// Carries on every transfer until it has an outcome; `Broken` when the queue must not be used
/// again, with the unsettled ones declined.
fn drive<Q: Queue>(queue: &mut Q, transfers: &mut [Transfer<'_>]) -> Result<(), Broken> {
    let mut ready: Vec<usize> = (0..transfers.len()).rev().collect();
    let mut completed = Vec::new();
    let mut in_flight = 0_usize;
    loop {
        while in_flight < queue.capacity()
            && let Some(tag) = ready.pop()
        {
            let Some(transfer) = transfers.get_mut(tag) else { continue };
            // SAFETY: the transfer borrows the memory and is not touched before its completion;
            // this function does not return before nothing is in flight.
            if unsafe { queue.push(tag, transfer.request()) } {
                in_flight += 1;
            } else {
                ready.push(tag);
                break;
            }
        }
        if in_flight == 0 {
            return Ok(());
        }
        let outcome = queue.wait(&mut completed);
        for (tag, result) in completed.drain(..) {
            in_flight = in_flight.saturating_sub(1);
            if let Some(transfer) = transfers.get_mut(tag) {
                transfer.complete(result);
                if transfer.outcome.is_none() {
                    ready.push(tag);
                }
            }
        }
        outcome?;
    }
}

/// The opcodes that the kernel and the sandbox allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Opcodes {
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) write_parts: bool,
    pub(super) sync: bool,
}

/// A ring of the kernel's.
pub(super) struct Ring {
    ring: IoUring,
    opcodes: Opcodes,
    outstanding: usize,
    tally: Arc<Tally>,
}

impl Ring {
    /// Sets up a ring and asks what it can do. Fails where io_uring is missing, forbidden or out of
    /// resources.
    pub(super) fn new(tally: Arc<Tally>) -> std::io::Result<Self> {
        let ring = match IoUring::builder().setup_coop_taskrun().build(DEPTH) {
            // Older kernels do not know the flag, which saves interrupts of the waiting thread.
            Err(e) if e.kind() == ErrorKind::InvalidInput => IoUring::new(DEPTH)?,
            other => other?,
        };
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let opcodes = Opcodes {
            read: probe.is_supported(opcode::Read::CODE),
            write: probe.is_supported(opcode::Write::CODE),
            write_parts: probe.is_supported(opcode::Writev::CODE),
            sync: probe.is_supported(opcode::Fsync::CODE),
        };
        Ok(Ring { ring, opcodes, outstanding: 0, tally })
    }

    pub(super) fn opcodes(&self) -> Opcodes {
        self.opcodes
    }

    /// Settles all transfers. Gives the ring back unless it broke.
    pub(super) fn run(mut self, transfers: &mut [Transfer<'_>]) -> Option<Self> {
        drive(&mut self, transfers).is_ok().then_some(self)
    }

    /// Takes the completions that are there.
    fn reap(&mut self, completed: &mut Vec<(usize, i32)>) {
        for entry in self.ring.completion() {
            self.outstanding = self.outstanding.saturating_sub(1);
            self.tally.ring_completed();
            completed
                .push((usize::try_from(entry.user_data()).unwrap_or(usize::MAX), entry.result()));
        }
    }

    /// Waits, without the help of the call that failed, until the kernel owns no memory of ours.
    fn settle(&mut self, completed: &mut Vec<(usize, i32)>) {
        loop {
            self.reap(completed);
            // What still stands in the submission queue was never handed over, and never will be.
            if self.outstanding <= self.ring.submission().len() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("opcodes", &self.opcodes).finish_non_exhaustive()
    }
}

impl Queue for Ring {
    fn capacity(&self) -> usize {
        usize::try_from(DEPTH).unwrap_or_default()
    }

    unsafe fn push(&mut self, tag: usize, request: Request) -> bool {
        let entry = entry_of(request).user_data(u64::try_from(tag).unwrap_or(u64::MAX));
        // SAFETY: the caller keeps the memory valid until the completion.
        let pushed = unsafe { self.ring.submission().push(&entry) }.is_ok();
        self.outstanding += usize::from(pushed);
        pushed
    }

    fn wait(&mut self, completed: &mut Vec<(usize, i32)>) -> Result<(), Broken> {
        let mut refusals = 0;
        loop {
            self.tally.ring_submitted();
            let entered = self.ring.submit_and_wait(1);
            self.reap(completed);
            if !completed.is_empty() {
                return Ok(());
            }
            match entered.map_err(|e| e.kind()) {
                Ok(_) | Err(ErrorKind::Interrupted) => {}
                // The kernel is short of memory for requests, or its completion queue is full: both
                // pass.
                Err(ErrorKind::WouldBlock | ErrorKind::ResourceBusy) if refusals < STALLS_MAX => {
                    refusals += 1;
                    std::thread::yield_now();
                }
                Err(_) => {
                    self.settle(completed);
                    return Err(Broken);
                }
            }
        }
    }
}

fn entry_of(request: Request) -> squeue::Entry {
    let Request { descriptor, memory, size, position } = request;
    let descriptor = types::Fd(descriptor);
    match memory {
        Memory::Target(target) => {
            opcode::Read::new(descriptor, target, size).offset(position).build()
        }
        Memory::Origin(origin) => {
            opcode::Write::new(descriptor, origin, size).offset(position).build()
        }
        Memory::Slices(slices) => {
            opcode::Writev::new(descriptor, slices, size).offset(position).build()
        }
        Memory::None => opcode::Fsync::new(descriptor).flags(types::FsyncFlags::DATASYNC).build(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    /// A queue that does the work itself on a file in memory, but answers as its script says: each
    /// entry is the most bytes of one completion, or an error number below zero.
    struct Scripted {
        file: Vec<u8>,
        script: VecDeque<i32>,
        pushed: Vec<(usize, Request)>,
        positions: Vec<(u64, u32)>,
        room: usize,
        breaks_after: usize,
    }

    impl Scripted {
        fn new(file: &[u8], script: &[i32]) -> Self {
            Scripted {
                file: file.to_vec(),
                script: script.iter().copied().collect(),
                pushed: Vec::new(),
                positions: Vec::new(),
                room: 4,
                breaks_after: usize::MAX,
            }
        }

        fn perform(&mut self, request: Request, count_max: usize) -> usize {
            let at = usize::try_from(request.position).unwrap();
            let size_of_all = usize::try_from(request.size).unwrap();
            let size = size_of_all.min(count_max);
            match request.memory {
                Memory::Target(target) => {
                    let count = size.min(self.file.len().saturating_sub(at));
                    let found = &self.file[at.min(self.file.len())..][..count];
                    // SAFETY: `drive` keeps the buffer of the request, of at least `size` bytes,
                    // until its completion.
                    unsafe { target.copy_from(found.as_ptr(), count) };
                    count
                }
                Memory::Origin(origin) => {
                    // SAFETY: as above.
                    let bytes = unsafe { std::slice::from_raw_parts(origin, size) };
                    self.file.resize(self.file.len().max(at + size), 0);
                    self.file[at..at + size].copy_from_slice(bytes);
                    size
                }
                Memory::Slices(slices) => {
                    // SAFETY: `drive` keeps the slices and what they name until the completion,
                    // and an `IoSlice` is an `iovec`.
                    let slices = unsafe {
                        std::slice::from_raw_parts(slices.cast::<IoSlice<'_>>(), size_of_all)
                    };
                    let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
                    let bytes = &bytes[..bytes.len().min(count_max)];
                    self.file.resize(self.file.len().max(at + bytes.len()), 0);
                    self.file[at..at + bytes.len()].copy_from_slice(bytes);
                    bytes.len()
                }
                Memory::None => 0,
            }
        }
    }

    impl Queue for Scripted {
        fn capacity(&self) -> usize {
            self.room
        }

        unsafe fn push(&mut self, tag: usize, request: Request) -> bool {
            self.positions.push((request.position, request.size));
            self.pushed.push((tag, request));
            true
        }

        fn wait(&mut self, completed: &mut Vec<(usize, i32)>) -> Result<(), Broken> {
            // The last that was pushed completes first.
            let (tag, request) = self.pushed.pop().unwrap();
            let answer = self.script.pop_front().unwrap_or(i32::MAX);
            let result = match usize::try_from(answer) {
                Ok(count_max) => i32::try_from(self.perform(request, count_max)).unwrap(),
                Err(_) => answer,
            };
            completed.push((tag, result));
            self.breaks_after -= 1;
            if self.breaks_after == 0 {
                self.pushed.clear();
                return Err(Broken);
            }
            Ok(())
        }
    }

    const AGAIN: i32 = -11;
    const INTERRUPTED: i32 = -4;

    fn null() -> File {
        File::open("/dev/null").unwrap()
    }

    // Case S207: a short completion, EAGAIN and EINTR in the middle of an append of 1 MiB.
    // Believing the first completion would acknowledge half a batch, and resubmitting all of it
    // would write over what is there.
    #[test]
    fn a_short_or_interrupted_write_goes_on_where_it_stopped() {
        let bytes: Vec<u8> = (0..1 << 20).map(|i: u32| i.to_be_bytes()[2]).collect();
        let null = null();
        let mut queue = Scripted::new(b"old", &[4096, AGAIN, 1, INTERRUPTED, INTERRUPTED, 65_536]);
        let mut transfers = [Transfer::new(null.as_fd(), Operation::Write(&bytes), 3)];
        drive(&mut queue, &mut transfers).unwrap();
        assert_eq!(transfers[0].outcome(), Outcome::Done);
        assert_eq!(transfers[0].done(), 1 << 20);
        assert_eq!(&queue.file[..3], b"old");
        assert!(queue.file[3..] == bytes[..]);
        let expected = [0, 4096, 4096, 4097, 4097, 4097, 69_633].map(|done| (3 + done, done));
        let expected = expected.map(|(at, done)| (at, (1 << 20) - u32::try_from(done).unwrap()));
        assert_eq!(queue.positions, expected);
    }

    #[test]
    fn a_short_read_goes_on_and_ends_at_the_end_of_the_file() {
        let null = null();
        let mut buffer = [0; 10];
        let mut queue = Scripted::new(b"0123456", &[2, INTERRUPTED, 1]);
        let mut transfers = [Transfer::new(null.as_fd(), Operation::Read(&mut buffer), 1)];
        drive(&mut queue, &mut transfers).unwrap();
        assert_eq!((transfers[0].outcome(), transfers[0].done()), (Outcome::Done, 6));
        assert_eq!(&buffer, b"123456\0\0\0\0");
    }

    #[test]
    fn an_error_stops_a_transfer_and_no_other() {
        let null = null();
        let (first, second) = ([1; 4], [2; 4]);
        let mut queue = Scripted::new(b"", &[2, -28]);
        let mut transfers = [
            Transfer::new(null.as_fd(), Operation::Write(&first), 0),
            Transfer::new(null.as_fd(), Operation::Write(&second), 4),
        ];
        drive(&mut queue, &mut transfers).unwrap();
        assert_eq!(transfers[0].outcome(), Outcome::Done);
        assert_eq!(
            (transfers[1].outcome(), transfers[1].done()),
            (Outcome::Failed(Errno::NOSPC), 2)
        );
        assert_eq!(queue.file, [1, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn parts_go_on_where_a_short_write_stopped() {
        let null = null();
        let many: Vec<&[u8]> = vec![b"x"; PARTS_MAX];
        let mut parts: Vec<&[u8]> = vec![b"abc", b"", b"defg", b"h"];
        parts.extend(&many);
        let mut queue = Scripted::new(b"", &[2, 1, AGAIN, 3]);
        let mut transfers = [Transfer::new(null.as_fd(), Operation::WriteParts(&parts), 0)];
        drive(&mut queue, &mut transfers).unwrap();
        assert_eq!((transfers[0].outcome(), transfers[0].done()), (Outcome::Done, 8 + PARTS_MAX));
        assert_eq!(queue.file, parts.concat());
        // Positions and counts of slices: the last request has what one call did not take.
        let most = u32::try_from(PARTS_MAX).unwrap();
        assert_eq!(
            queue.positions,
            [(0, most), (2, most), (3, most), (3, most), (6, most), (1030, 2)]
        );
        let mut queue = Scripted::new(b"", &[1, 0]);
        let mut transfers = [Transfer::new(null.as_fd(), Operation::WriteParts(&parts), 0)];
        drive(&mut queue, &mut transfers).unwrap();
        assert_eq!(transfers[0].outcome(), Outcome::NoProgress);
    }

    #[test]
    fn a_write_that_takes_nothing_is_no_endless_loop() {
        let null = null();
        let mut queue = Scripted::new(b"", &[3, 0]);
        let mut transfers = [Transfer::new(null.as_fd(), Operation::Write(b"12345"), 0)];
        drive(&mut queue, &mut transfers).unwrap();
        assert_eq!((transfers[0].outcome(), transfers[0].done()), (Outcome::NoProgress, 3));
    }

    #[test]
    fn a_transfer_that_is_always_put_off_is_left_to_the_plain_call() {
        let null = null();
        let mut queue = Scripted::new(b"", &[AGAIN; 1000]);
        let mut transfers = [Transfer::new(null.as_fd(), Operation::Sync, 0)];
        drive(&mut queue, &mut transfers).unwrap();
        assert_eq!(transfers[0].outcome(), Outcome::Declined);
        assert!(queue.script.len() > 900);
    }

    #[test]
    fn an_opcode_that_is_not_there_is_left_to_the_plain_call() {
        let null = null();
        for errno in [22, 95, 38, 13, 1] {
            let mut queue = Scripted::new(b"", &[1, -errno]);
            let mut transfers = [Transfer::new(null.as_fd(), Operation::Write(b"12"), 0)];
            drive(&mut queue, &mut transfers).unwrap();
            assert_eq!((transfers[0].outcome(), transfers[0].done()), (Outcome::Declined, 1));
        }
    }

    #[test]
    fn a_failed_sync_is_never_repeated() {
        // The kernel reports a lost write once: asking again would be told that all is well.
        let null = null();
        let mut queue = Scripted::new(b"", &[-5]);
        let mut transfers = [Transfer::new(null.as_fd(), Operation::Sync, 0)];
        drive(&mut queue, &mut transfers).unwrap();
        assert_eq!(transfers[0].outcome(), Outcome::Failed(Errno::IO));
        assert_eq!(queue.positions.len(), 1);
    }

    #[test]
    fn a_queue_that_breaks_leaves_the_rest_to_plain_calls() {
        let null = null();
        let bytes = [7; 10];
        let mut queue = Scripted { breaks_after: 3, ..Scripted::new(b"", &[10, 4, 4]) };
        let mut transfers: Vec<_> =
            (0..9).map(|i| Transfer::new(null.as_fd(), Operation::Write(&bytes), i * 10)).collect();
        assert!(drive(&mut queue, &mut transfers).is_err());
        let done: Vec<_> = transfers.iter().filter(|t| t.outcome() == Outcome::Done).collect();
        assert_eq!(done.len(), 1);
        assert_eq!(transfers.iter().map(Transfer::done).sum::<usize>(), 18);
    }

    #[test]
    fn more_transfers_than_room_are_all_settled() {
        let null = null();
        let bytes: Vec<[u8; 3]> = (0..100).map(|i| [i, i, i]).collect();
        let mut queue = Scripted::new(b"", &[1; 150]);
        let mut transfers: Vec<_> = (0..)
            .zip(&bytes)
            .map(|(i, bytes)| Transfer::new(null.as_fd(), Operation::Write(bytes), i * 3))
            .collect();
        drive(&mut queue, &mut transfers).unwrap();
        assert!(transfers.iter().all(|t| t.outcome() == Outcome::Done && t.done() == 3));
        assert_eq!(queue.file, bytes.concat());
    }

    /// Has the kernel answer io_uring_setup with this error, on this thread alone; false where it
    /// does not let us.
    fn forbid_rings(errno: u32) -> bool {
        const SETUP: u32 = 425;
        let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
            code: u16::try_from(code).unwrap(),
            jt,
            jf,
            k,
        };
        let mut steps = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, SETUP),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
        // SAFETY: sets a flag of this thread; no memory is involved.
        let no_new = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        // SAFETY: the program is of four steps, which live to the end of the call.
        let set = unsafe {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        no_new == 0 && set == 0
    }

    // Case S534: containers forbid io_uring by EPERM, old kernels by ENOSYS.
    #[test]
    fn where_rings_are_forbidden_plain_calls_do_the_same() {
        use crate::error::Kind;
        use crate::io::{File, IoChoice, OpenMode, RingDisk, Storage, open_disk};

        for errno in [1, 38] {
            let thread = std::thread::spawn(move || {
                if !forbid_rings(errno) {
                    eprintln!("skipped: no seccomp here");
                    return;
                }
                let error = open_disk(IoChoice::Uring).unwrap_err();
                assert_eq!(error.kind(), Kind::Unsupported);
                assert!(error.to_string().contains("io_uring is not available"), "{error}");
                let dir = tempfile::tempdir().unwrap();
                let disk = RingDisk::auto();
                let files = ["a", "b", "c"]
                    .map(|name| disk.open(&dir.path().join(name), OpenMode::Create).unwrap());
                for file in &files {
                    file.write_at(b"bytes", 0).unwrap();
                }
                let borrowed = files.each_ref().map(|file| &**file as &dyn File);
                assert!(disk.sync_files(&borrowed).iter().all(Result::is_ok));
                let counters = disk.counters();
                assert_eq!((counters.syncs, counters.ring_submissions), (3, 0));
            });
            thread.join().unwrap();
        }
    }
}
