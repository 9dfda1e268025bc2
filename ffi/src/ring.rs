//! A queue of operations whose answers are polled.
//!
//! Operations wait in the queue until somebody polls, and run then, on the thread that polls.
//! Appends that wait one behind the other go to the disk together, and each of their logs is
//! flushed once for all of them.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use engine::log::{AppendAs, AppendRequest, AppendScratch, append_many};
use engine::{Error, Kind};

use crate::error::{CLOSED, Failure, OK, Outcome, SiltError, Status, fits, guard, invalid};
use crate::handle::{Handle, Object, close, object_function, try_hold};
use crate::log::{OpenLog, open_log, shrink};
use crate::many::{append_as, overlapping};
use crate::memory::{check_place, items_of, items_of_mut, u32_of, write_plain};
use crate::read::{NOTHING, options, read, release, tell};
use crate::types::{Append, Done, Fetch, Op};

const APPEND: u32 = 1;
const READ: u32 = 2;
const LOCATE: u32 = 3;
const WARM: u32 = 4;
const SYNC: u32 = 5;
/// An operation that panics: what becomes of those beside it?
#[cfg(feature = "test")]
const PANIC: u32 = 1000;

const FOLLOWER: u32 = 1;
const FLUSH: u32 = 2;
const MIN_ONE: u32 = 4;
const VERIFIED: u32 = 8;

/// What is behind a `silt_ring_t`.
pub struct RingObject {
    queue: Mutex<VecDeque<Waiting>>,
    /// Of whoever polls.
    scratch: Mutex<AppendScratch>,
    /// Readable as long as something waits.
    event: std::fs::File,
}

impl Object for RingObject {
    const MAGIC: u64 = 0x7369_6c74_5f72_696e;
}

/// An operation that was submitted. Its log is gone when the caller has closed it meanwhile.
struct Waiting {
    op: OpPointer,
    log: Outcome<Weak<OpenLog>>,
}

struct OpPointer(*const Op);

// SAFETY: the caller leaves the operation alone until its answer is there, and whoever polls is the
// only one that looks at it.
unsafe impl Send for OpPointer {}

impl RingObject {
    fn new() -> Outcome<Self> {
        // SAFETY: a call without pointers.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if event < 0 {
            let source = std::io::Error::last_os_error();
            return Err(Error::io("make an eventfd", std::path::Path::new(""), source).into());
        }
        // SAFETY: it was just made, and is nobody else's.
        let event = unsafe { OwnedFd::from_raw_fd(event) };
        Ok(RingObject { queue: Mutex::default(), scratch: Mutex::default(), event: event.into() })
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what waits first. The event is told when that is all.
    fn take(&self, count: usize) -> Vec<Waiting> {
        let mut queue = self.queue();
        let count = count.min(queue.len());
        let taken = queue.drain(..count).collect();
        if queue.is_empty() {
            // With nothing to be read, nobody was woken.
            let _was_woken = (&self.event).read(&mut [0; 8]);
        }
        taken
    }

    /// Waits until something is there, at most so long; forever when that is negative.
    fn wait(&self, timeout_ms: i32) -> Outcome<()> {
        let mut poll =
            libc::pollfd { fd: self.event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one struct, which outlives the call.
        if unsafe { libc::poll(&raw mut poll, 1, timeout_ms) } >= 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        match error.kind() {
            // Whoever was interrupted polls again.
            std::io::ErrorKind::Interrupted => Ok(()),
            _ => Err(Error::io("wait for", std::path::Path::new("eventfd"), error).into()),
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_ring_new(
    ring: *mut *mut Handle<RingObject>,
    err: *mut SiltError,
) -> Status {
    let body = || {
        check_place(ring, "the place for the ring is NULL or not aligned")?;
        let object = RingObject::new()?;
        // SAFETY: not NULL, and aligned.
        unsafe { write_plain(ring, Handle::give(object)) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_ring_close(ring: *mut Handle<RingObject>) {
    // SAFETY: an object of the caller's, which it gives back.
    unsafe { close(ring) };
}

object_function! {
    fn silt_ring_fd(ring: RingObject, fd: *mut i32) |it| {
        // SAFETY: the caller's number.
        unsafe { write_plain(fd, it.event.as_raw_fd()) }
    }
}

object_function! {
    fn silt_ring_submit(ring: RingObject, ops: *const Op, count: u32) |it| {
        // SAFETY: the caller's array.
        let ops = unsafe { items_of(ops, u64::from(count))? };
        if ops.is_empty() {
            return Ok(());
        }
        let waiting = ops.iter().map(|op| Waiting {
            op: OpPointer(op),
            // SAFETY: an object of the caller's.
            log: unsafe { open_log(op.log) }.map(|object| Arc::downgrade(&object.log)),
        });
        let mut queue = it.queue();
        queue.extend(waiting);
        // It can only be full of wake-ups, which is as good.
        let _is_told = (&it.event).write(&1_u64.to_ne_bytes());
        Ok(())
    }
}

object_function! {
    fn silt_ring_poll(
        ring: RingObject,
        out: *mut Done,
        capacity: u32,
        timeout_ms: i32,
        count: *mut u32
    ) |it| {
        // SAFETY: the caller's array.
        let slots = unsafe { items_of_mut(out, u64::from(capacity))? };
        check_place(count, "the place for the count is NULL or not aligned")?;
        let Some(mut scratch) = try_hold(&it.scratch) else {
            return Err(Error::new(Kind::Conflict, "another thread is polling this ring").into());
        };
        if timeout_ms != 0 && it.queue().is_empty() {
            it.wait(timeout_ms)?;
        }
        let taken = it.take(slots.len());
        let taken_count = u32_of(taken.len());
        // SAFETY: operations of the caller's, which it leaves alone until they are done.
        unsafe { run(taken, slots, &mut scratch) };
        shrink(&mut scratch);
        // SAFETY: the caller's number.
        unsafe { write_plain(count, taken_count) }
    }
}

/// An operation with its log, and where its answer goes.
struct Running<'a> {
    op: &'a Op,
    log: Outcome<Weak<OpenLog>>,
    done: &'a mut Done,
}

/// Runs operations in their order. Where one panics no answer is given: what they all hold is let
/// go of, and their logs are poisoned.
///
/// # Safety
/// The operations and their memory are as the header says.
unsafe fn run(taken: Vec<Waiting>, slots: &mut [Done], scratch: &mut AppendScratch) {
    // SAFETY: the caller's promise.
    let mut running = unsafe { begin(taken, slots) };
    let body = || {
        // SAFETY: the caller's promise.
        unsafe { run_all(&mut running, scratch) };
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(body)) {
        for one in &mut running {
            one.abandon();
        }
        resume_unwind(panic);
    }
}

/// Has every answer say that there is nothing yet.
///
/// # Safety
/// That of [`run`].
unsafe fn begin(taken: Vec<Waiting>, slots: &mut [Done]) -> Vec<Running<'_>> {
    let mut running: Vec<Running<'_>> = Vec::with_capacity(taken.len());
    for (Waiting { op: OpPointer(op), log }, done) in taken.into_iter().zip(slots) {
        // SAFETY: the caller's promise.
        let op = unsafe { &*op };
        *done = Done {
            user_data: op.user_data,
            kind: op.kind,
            status: OK,
            detail_code: 0,
            os_errno: 0,
            first_offset: -1,
            last_offset: -1,
            range: NOTHING,
        };
        running.push(Running { op, log, done });
    }
    running
}

/// # Safety
/// That of [`run`].
unsafe fn run_all(running: &mut [Running<'_>], scratch: &mut AppendScratch) {
    for group in running.chunk_by_mut(|one, other| one.op.kind == APPEND && other.op.kind == APPEND)
    {
        match group {
            [first, ..] if first.op.kind == APPEND => {
                // SAFETY: the caller's promise.
                unsafe { append(group, scratch) };
            }
            others => {
                for one in others {
                    // SAFETY: the caller's promise.
                    let outcome = unsafe { one.run() };
                    one.end(outcome);
                }
            }
        }
    }
}

impl Running<'_> {
    fn end(&mut self, outcome: Outcome<()>) {
        if let Err(failure) = outcome {
            (self.done.detail_code, self.done.os_errno) = failure.numbers();
            self.done.status = failure.status();
        }
    }

    /// The log, which stays open until the operation has run.
    fn log(&mut self) -> Outcome<Arc<OpenLog>> {
        let found = match &self.log {
            Ok(log) => log.upgrade(),
            Err(_) => std::mem::replace(&mut self.log, Ok(Weak::new()))?.upgrade(),
        };
        found.ok_or(Failure::Call(CLOSED, "the log was closed"))
    }

    /// Lets go of what a call that panicked had in hand.
    fn abandon(&mut self) {
        match std::mem::take(&mut self.done.range.lease) {
            0 => {}
            // SAFETY: nobody was told of it.
            lease => unsafe { release(lease) },
        }
        if let Some(log) = self.log.as_ref().ok().and_then(Weak::upgrade) {
            log.poison();
        }
    }

    fn fetch(&self) -> Outcome<Fetch> {
        let op = self.op;
        if op.flags & !MIN_ONE != 0 {
            return invalid("flags are none of SILT_OP_");
        }
        Ok(Fetch {
            log: op.log,
            offset: op.offset,
            max_bytes: op.max_bytes,
            up_to: op.up_to,
            flags: if op.flags & MIN_ONE != 0 { 1 } else { 0 },
            aborted_capacity: op.aborted_capacity,
            aborted: op.aborted,
        })
    }

    /// # Safety
    /// That of [`run`].
    unsafe fn run(&mut self) -> Outcome<()> {
        let log = self.log()?;
        match self.op.kind {
            READ => {
                let fetch = self.fetch()?;
                // SAFETY: the caller's bytes.
                let bytes = unsafe { items_of_mut(self.op.bytes.cast(), self.op.size_bytes)? };
                // SAFETY: the caller's array.
                let is_all = unsafe { read(&fetch, &log, bytes, &mut self.done.range)? };
                fits(is_all, "not all aborted transactions fit")
            }
            LOCATE => {
                let fetch = self.fetch()?;
                let fetched = log.locate(fetch.offset, &options(&fetch)?)?;
                // SAFETY: the caller's array.
                self.done.status = unsafe { tell(&fetch, fetched, &mut self.done.range)? };
                Ok(())
            }
            WARM => {
                let fetch = self.fetch()?;
                let fetched = log.locate(fetch.offset, &options(&fetch)?)?;
                if let Some(bytes) = fetched.range {
                    bytes.warm();
                    self.done.range.size_bytes = bytes.size_bytes();
                }
                Ok(())
            }
            SYNC => Ok(log.flush(true, self.op.now_ms)?),
            #[cfg(feature = "test")]
            #[expect(clippy::panic, reason = "it is asked to")]
            PANIC => panic!("as it was asked to"),
            _ => invalid("kind is none of SILT_OP_"),
        }
    }
}

fn append_of(op: &Op) -> Outcome<AppendAs> {
    if op.flags & !(FOLLOWER | FLUSH | VERIFIED) != 0 {
        return invalid("flags are none of SILT_OP_");
    }
    let Op { leader_epoch, now_ms, origin, transaction_version, .. } = *op;
    let verification = match op.flags & VERIFIED {
        0 => 0,
        _ => op.offset.cast_unsigned(),
    };
    let append =
        Append { struct_size: 0, leader_epoch, now_ms, origin, transaction_version, verification };
    append_as(op.flags & FOLLOWER != 0, &append)
}

/// An append whose operation can be read.
struct Appending<'a> {
    log: Arc<OpenLog>,
    how: AppendAs,
    records: &'a mut [u8],
}

/// Appends what waits one behind the other, and flushes each log that asks for it once.
///
/// # Safety
/// That of [`run`].
unsafe fn append(group: &mut [Running<'_>], scratch: &mut AppendScratch) {
    let records = group.iter().map(|one| (one.op.bytes.addr(), one.op.size_bytes));
    let mut shared = overlapping(records).into_iter().peekable();
    let mut appends: Vec<Option<Appending<'_>>> = Vec::with_capacity(group.len());
    for (number, one) in group.iter_mut().enumerate() {
        let is_shared = shared.next_if_eq(&number).is_some();
        let found = one.log().and_then(|log| {
            if is_shared {
                return invalid("the records of two operations share bytes");
            }
            let how = append_of(one.op)?;
            // SAFETY: the caller's bytes, which no other operation has.
            let records = unsafe { items_of_mut(one.op.bytes.cast(), one.op.size_bytes)? };
            Ok(Appending { log, how, records })
        });
        appends.push(found.map_err(|failure| one.end(Err(failure))).ok());
    }
    let asked = appends.iter_mut().flatten();
    let mut requests: Vec<AppendRequest<'_>> = asked
        .map(|it| AppendRequest { log: &it.log, records: it.records, append: it.how })
        .collect();
    let mut answers = append_many(&mut requests, scratch).into_iter();
    drop(requests);
    // What came of the flushes: status, detail and the system's number.
    let mut flushed: Vec<(&OpenLog, (Status, i32, i32))> = Vec::new();
    for (one, found) in group.iter_mut().zip(&appends) {
        let Some(Appending { log, .. }) = found else { continue };
        let outcome = match answers.next() {
            Some(Ok(info)) => {
                one.done.first_offset = info.first_offset.unwrap_or(-1);
                one.done.last_offset = info.last_offset;
                one.done.range.size_bytes = info.size_bytes;
                Ok(())
            }
            Some(Err(error)) => Err(Failure::from(error)),
            None => Ok(()),
        };
        let wants_flush = outcome.is_ok() && one.op.flags & FLUSH != 0;
        one.end(outcome);
        if !wants_flush {
            continue;
        }
        let done = &mut *one.done;
        match flushed.iter().find(|(known, _)| Arc::ptr_eq(&known.log, &log.log)) {
            Some((_, told)) => (done.status, done.detail_code, done.os_errno) = *told,
            None => {
                one.end(log.flush(true, one.op.now_ms).map_err(Failure::from));
                let done = &*one.done;
                flushed.push((log, (done.status, done.detail_code, done.os_errno)));
            }
        }
    }
}
