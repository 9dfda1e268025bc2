//! Can a file be read without copying it, and without dying when it shrinks meanwhile?
//!
//! A page of a map that lies behind the end of its file, or that the disk cannot read, raises
//! SIGBUS in whoever touches it. A host must never get one, so no reader maps anything until
//! [`guard_process`] was called, which only the owner of the process may do: the command line does.
//! (Who asks for a slice of a sealed file has taken the risk: `io/mapped.rs`.)
//! The guard turns a fault within one of our windows into zeros and a mark; [`Source::check`] then
//! tells that what was seen was not the file.
//!
//! ```text
//! file     |................................................|
//! window           |=========================|               one at a time: unmapped before the next is mapped
//! given                 ^ position ... end of the window
//! ```
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::error::{Error, Kind, Result};
use crate::io::{File, Source, cache};

/// Windows begin at multiples of this: of every page size that Linux knows.
const ALIGNMENT: u64 = 64 * 1024;

/// So many readers can map at once; the next ones read instead.
const READERS_MAX: usize = 256;

/// A [`Source`] over a file through a map of one window at a time.
///
/// The bytes of a window stay what they are only as long as nobody writes to the file: a writer
/// beside us can change them under our eyes, as with any map. Call [`Source::check`] before acting
/// on what was seen.
pub struct MapReader<'a> {
    file: &'a dyn File,
    end: u64,
    window_bytes: usize,
    slot: &'static Slot,
    map: Option<Map>,
}

impl<'a> MapReader<'a> {
    /// Maps `file` up to `end` (exclusive; bounded by the file's own end) in windows of
    /// `window_bytes`, or of what a caller wants when that is more. `None` where a map is not
    /// safe, not possible or not worth it: the process is not guarded, the file has no descriptor,
    /// too many readers map already, or the page cache has not got the file.
    #[must_use]
    pub fn new(file: &'a dyn File, end: u64, window_bytes: usize) -> Option<Self> {
        // Faults keep a disk busy for half of the time only.
        if !cache::has_most(file.descriptor()?, end) {
            return None;
        }
        let slot = is_guarded().then(Slot::take)??;
        Some(MapReader { file, end, window_bytes, slot, map: None })
    }

    pub(super) fn parts(&self) -> (&'a dyn File, u64, usize) {
        (self.file, self.end, self.window_bytes)
    }

    /// Whether no window faulted so far.
    pub(super) fn unharmed(&self) -> Result<()> {
        if self.slot.has_faulted() { Err(self.harmed()) } else { Ok(()) }
    }

    /// Makes sure that the window holds these bytes, as far as the file has them.
    pub(super) fn cover(&mut self, position: u64, wanted_bytes: usize) -> Result<()> {
        if self.held(position).len() >= self.bounded(position, wanted_bytes) {
            return Ok(());
        }
        self.release();
        let size_bytes = self.file.metadata()?.size_bytes;
        // Shorter than promised: a map behind the end of the file would fault.
        self.end = self.end.min(size_bytes);
        let wanted = self.bounded(position, wanted_bytes);
        if wanted == 0 {
            return Ok(());
        }
        let start = Map::start_for(position);
        let lead = size(position - start);
        let map_bytes = lead.saturating_add(wanted).max(self.window_bytes);
        let map_bytes = map_bytes.min(size(self.end - start));
        let Some(descriptor) = self.file.descriptor() else { return Ok(()) };
        let map = Map::new(descriptor, start, map_bytes, Advice::Sequential)
            .map_err(|e| Error::io("map", self.file.path(), e.into()).at_position(start))?;
        self.slot.guard(&map);
        self.map = Some(map);
        Ok(())
    }

    fn bounded(&self, position: u64, wanted_bytes: usize) -> usize {
        wanted_bytes.min(size(self.end.saturating_sub(position)))
    }

    /// What the window holds from `position` on.
    fn held(&self, position: u64) -> &[u8] {
        let Some(map) = &self.map else { return &[] };
        let Some(skip) = position.checked_sub(map.start) else { return &[] };
        map.bytes().get(size(skip)..).unwrap_or_default()
    }

    fn release(&mut self) {
        // The window stops being ours before its addresses may become somebody else's.
        self.slot.unguard();
        self.map = None;
    }

    fn harmed(&self) -> Error {
        Error::new(Kind::Io, "file shrank or could not be read while mapped")
            .in_file(self.file.path())
    }
}

impl Source for MapReader<'_> {
    fn end(&self) -> u64 {
        self.end
    }

    fn window(&mut self, position: u64, wanted_bytes: usize) -> Result<&[u8]> {
        self.unharmed()?;
        self.cover(position, wanted_bytes)?;
        Ok(self.held(position))
    }

    fn check(&self) -> Result<()> {
        self.unharmed()?;
        // Within the last page of a file that shrank there are zeros and no fault.
        if self.file.metadata()?.size_bytes < self.end { Err(self.harmed()) } else { Ok(()) }
    }
}

impl Drop for MapReader<'_> {
    fn drop(&mut self) {
        self.release();
        self.slot.give_back();
    }
}

impl fmt::Debug for MapReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let map = self.map.as_ref().map(|map| (map.start, map.size_bytes));
        f.debug_struct("MapReader").field("file", &self.file).field("map", &map).finish()
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// A private read-only map of part of a file.
pub(super) struct Map {
    address: NonNull<u8>,
    size_bytes: usize,
    start: u64,
}

// SAFETY: the map belongs to this value alone, is only read, and can be unmapped from any thread.
unsafe impl Send for Map {}
// SAFETY: it is only read.
unsafe impl Sync for Map {}

impl Map {
    /// Where a map begins that has the byte at `position`.
    pub(super) fn start_for(position: u64) -> u64 {
        position - position % ALIGNMENT
    }

    pub(super) fn new(
        descriptor: std::os::fd::BorrowedFd<'_>,
        start: u64,
        size_bytes: usize,
        advice: Advice,
    ) -> rustix::io::Result<Self> {
        // SAFETY: with no address given, the kernel picks one where nothing is mapped.
        let address = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                size_bytes,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                descriptor,
                start,
            )
        }?;
        let address = NonNull::new(address.cast::<u8>()).ok_or(rustix::io::Errno::NOMEM)?;
        let map = Map { address, size_bytes, start };
        // SAFETY: the range was just mapped; the advice changes how it is read ahead, not what it
        // holds.
        let advised = unsafe { rustix::mm::madvise(address.as_ptr().cast(), size_bytes, advice) };
        // Without the advice it is slower, and as right.
        advised.ok();
        Ok(map)
    }

    /// Copies the bytes from `first` on, all of them; `false` where the map ends before. They may
    /// be replaced meanwhile, by [`blank`](Self::blank) or by a writer to the file.
    pub(super) fn copy(&self, first: usize, bytes: &mut [u8]) -> bool {
        if first.checked_add(bytes.len()).is_none_or(|end| end > self.size_bytes) {
            return false;
        }
        let from = self.address.as_ptr().wrapping_add(first);
        // SAFETY: the range lies within the map, which is readable as long as `self` lives, and
        // `bytes` is memory of its own. No reference to the mapped bytes is made: they may change.
        unsafe { ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    /// Puts zeros in the place of the file, for good: it may be cut then, and nobody who still
    /// looks faults.
    pub(super) fn blank(&self) -> rustix::io::Result<()> {
        let first = self.address.as_ptr().expose_provenance();
        replace_by_zeros(first, first.saturating_add(self.size_bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the range is mapped for reading as long as `self` lives, and the guard keeps it
        // readable when the file shrinks; without a guard the process ends by the signal before
        // anything is seen. What a writer beside us changes is seen as
        // changed bytes; they are only ever interpreted as bytes from a disk, which may be
        // anything.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.size_bytes) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the range is the one that was mapped, and the borrows of `bytes` have ended.
        let unmapped = unsafe { rustix::mm::munmap(self.address.as_ptr().cast(), self.size_bytes) };
        // It fails only for a range that was never mapped.
        debug_assert!(unmapped.is_ok());
    }
}

/// The windows that are live, where the signal handler finds them: it may neither lock nor
/// allocate.
static SLOTS: [Slot; READERS_MAX] = [const { Slot::new() }; READERS_MAX];

/// One reader's window. `version` is odd while the range changes, so that the handler never pairs
/// the start of one window with the end of another.
pub(super) struct Slot {
    is_taken: AtomicBool,
    faulted: AtomicBool,
    version: AtomicUsize,
    first_address: AtomicUsize,
    end_address: AtomicUsize,
}

impl Slot {
    const fn new() -> Self {
        Slot {
            is_taken: AtomicBool::new(false),
            faulted: AtomicBool::new(false),
            version: AtomicUsize::new(0),
            first_address: AtomicUsize::new(0),
            end_address: AtomicUsize::new(0),
        }
    }

    pub(super) fn take() -> Option<&'static Slot> {
        SLOTS.iter().find(|slot| !slot.is_taken.swap(true, SeqCst))
    }

    pub(super) fn has_faulted(&self) -> bool {
        self.faulted.load(SeqCst)
    }

    pub(super) fn give_back(&self) {
        self.faulted.store(false, SeqCst);
        self.is_taken.store(false, SeqCst);
    }

    pub(super) fn guard(&self, map: &Map) {
        let first = map.address.as_ptr().expose_provenance();
        self.set(first, first.saturating_add(map.size_bytes));
    }

    pub(super) fn unguard(&self) {
        self.set(0, 0);
    }

    fn set(&self, first_address: usize, end_address: usize) {
        self.version.fetch_add(1, SeqCst);
        self.first_address.store(first_address, SeqCst);
        self.end_address.store(end_address, SeqCst);
        self.version.fetch_add(1, SeqCst);
    }

    /// The window, when this address lies in it. The window of a thread that faults does not change
    /// meanwhile.
    fn window_of(&self, address: usize) -> Option<(usize, usize)> {
        let version = self.version.load(SeqCst);
        let first = self.first_address.load(SeqCst);
        let end = self.end_address.load(SeqCst);
        let is_settled = version.is_multiple_of(2) && self.version.load(SeqCst) == version;
        (is_settled && (first..end).contains(&address)).then_some((first, end))
    }
}

/// What was done with SIGBUS before the guard; known before the handler can run.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// How it went to install the handler, or the error number.
static INSTALLED: OnceLock<std::result::Result<(), i32>> = OnceLock::new();

/// Makes maps safe in this process, and so allows them: installs a handler for SIGBUS that answers
/// a fault within one of our windows with zeros and a mark, and hands every other to the handler
/// that was there before.
///
/// For the owner of a process, once, at its start. A library in somebody else's process must not
/// call it, and whoever installs a handler for SIGBUS afterwards takes the guard away. Calling it
/// again does nothing.
///
/// Fails with `Io` when the system refuses; no maps are made then.
pub fn guard_process() -> Result<()> {
    let outcome =
        INSTALLED.get_or_init(|| install().map_err(|e| e.raw_os_error().unwrap_or_default()));
    outcome.map_err(|errno| {
        let cause = std::io::Error::from_raw_os_error(errno);
        Error::new(Kind::Io, format!("install a handler for SIGBUS: {cause}"))
    })
}

/// Whether [`guard_process`] was called with success.
#[must_use]
pub fn is_guarded() -> bool {
    INSTALLED.get().is_some_and(std::result::Result::is_ok)
}

fn install() -> std::io::Result<()> {
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: it asks only; `previous` is room for the answer.
    let asked = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), previous.as_mut_ptr()) };
    if asked != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: zeros make a sigaction, and the call above filled it in.
    let mut action = *PREVIOUS.get_or_init(|| unsafe { previous.assume_init() });
    action.sa_sigaction = (on_bus_error as *const ()).addr();
    // On the alternate stack where there is one, since the thread's own may be what faulted.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` is whole, and the handler does only what a handler may.
    let set = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) };
    if set == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// The handler. It touches atomics and makes system calls; it neither locks nor allocates, and
/// leaves errno alone.
extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands a handler with SA_SIGINFO a filled-in siginfo.
    let siginfo = unsafe { &*info };
    let code = siginfo.si_code;
    // Sent by a process, it has no address. From the kernel, it has.
    if code > 0 {
        // SAFETY: the kernel sets the address of every fault.
        let address = unsafe { siginfo.si_addr() }.addr();
        let found = SLOTS.iter().find_map(|slot| Some((slot, slot.window_of(address)?)));
        if let Some((slot, (first, end))) = found {
            // Before the zeros: another thread that reads the window must not see them without the
            // mark.
            slot.faulted.store(true, SeqCst);
            if replace_by_zeros(first, end).is_ok() {
                return;
            }
        }
    }
    pass_on(signal, info, context, code);
}

/// Maps zeros over a whole map.
fn replace_by_zeros(first: usize, end: usize) -> rustix::io::Result<()> {
    // SAFETY: the range is a live map of ours, which the faulting thread or the caller borrows:
    // nothing else is mapped there, and whoever reads it reads bytes that may be anything.
    let mapped = unsafe {
        rustix::mm::mmap_anonymous(
            ptr::with_exposed_provenance_mut(first),
            end - first,
            ProtFlags::READ,
            MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
        )
    };
    mapped.map(drop)
}

/// Does with the signal what would have been done without us.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void, code: i32) {
    let previous = PREVIOUS.get();
    match previous.map_or(libc::SIG_DFL, |action| action.sa_sigaction) {
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: a sigaction of zeros asks for the default action, which is to die of the
            // signal.
            let default = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
            // SAFETY: sigaction may be called in a handler.
            unsafe { libc::sigaction(signal, &raw const default, ptr::null_mut()) };
            if code <= 0 {
                // A fault comes again by itself on return; a signal that was sent does not.
                // SAFETY: raise may be called in a handler.
                unsafe { libc::raise(signal) };
            }
        }
        handler if previous.is_some_and(|action| action.sa_flags & libc::SA_SIGINFO != 0) => {
            // SAFETY: with SA_SIGINFO, the address is that of a function of this type.
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without SA_SIGINFO, the address is that of a function of this type.
            let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Command, ExitStatus};

    use super::*;
    use crate::io::{Disk, MapMode, OpenMode, Reader, Storage};

    const IN_CHILD: &str = "SILTSTONE_TEST_IN_CHILD";
    const GUARDED: &str = "SILTSTONE_TEST_GUARDED";

    /// Runs a test of this module again in a process of its own, since a signal handler is the
    /// whole process's. `None` when this is that process.
    fn in_child(name: &str) -> Option<ExitStatus> {
        in_child_with(name, None)
    }

    /// The same with a variable of the environment set.
    fn in_child_with(name: &str, variable: Option<&str>) -> Option<ExitStatus> {
        if std::env::var_os(IN_CHILD).is_some() {
            return None;
        }
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &format!("io::map::tests::{name}"), "--nocapture"])
            .env(IN_CHILD, "1")
            .envs(variable.map(|name| (name, "1")))
            .output()
            .unwrap();
        if !output.status.success() {
            println!("{}", String::from_utf8_lossy(&output.stdout));
            println!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Some(output.status)
    }

    fn numbered(path: &Path, size_bytes: usize) -> Vec<u8> {
        let bytes: Vec<u8> = (0_u32..).flat_map(u32::to_be_bytes).take(size_bytes).collect();
        std::fs::write(path, &bytes).unwrap();
        bytes
    }

    #[test]
    fn nothing_is_mapped_in_a_process_without_the_guard() {
        if let Some(status) = in_child("nothing_is_mapped_in_a_process_without_the_guard") {
            assert!(status.success());
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let bytes = numbered(&path, 100_000);
        let file = Disk::new().open(&path, OpenMode::Read).unwrap();
        assert!(!is_guarded());
        assert!(MapReader::new(&*file, 100_000, 1 << 20).is_none());
        let mut reader = Reader::new(&*file, 100_000, 4096, MapMode::Always);
        assert!(matches!(reader, Reader::Windows(_)));
        assert_eq!(&reader.window(50_000, 10).unwrap()[..10], &bytes[50_000..50_010]);
    }

    #[test]
    fn a_file_that_shrinks_under_a_map_is_an_error_and_the_process_lives() {
        let name = "a_file_that_shrinks_under_a_map_is_an_error_and_the_process_lives";
        if let Some(status) = in_child(name) {
            assert!(status.success());
            return;
        }
        guard_process().unwrap();
        guard_process().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let bytes = numbered(&path, 1_000_000);
        let file = Disk::new().open(&path, OpenMode::ReadWrite).unwrap();
        let mut reader = MapReader::new(&*file, 1_000_000, 1 << 20).unwrap();
        let mut beside = MapReader::new(&*file, 1_000_000, 128 * 1024).unwrap();
        assert_eq!(beside.window(0, 1).unwrap()[..], bytes[..128 * 1024]);
        let window = reader.window(0, 1).unwrap();
        assert_eq!(window[..4096], bytes[..4096]);
        file.set_size(500_000).unwrap();
        // This read faults, on another thread than the reader's; the zeros are no bytes of the
        // file.
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(window[900_000..900_010], [0; 10]));
        });
        for error in [reader.check().unwrap_err(), reader.window(0, 1).unwrap_err()] {
            assert_eq!(error.kind(), Kind::Io);
            assert!(error.to_string().contains("shrank"), "{error}");
        }
        assert_eq!(reader.window(600_000, 1).unwrap_err().kind(), Kind::Io);
        // The other one never saw a fault, and learns of it by the size.
        assert!(beside.unharmed().is_ok());
        assert_eq!(beside.check().unwrap_err().kind(), Kind::Io);
        assert_eq!(beside.window(499_990, 100).unwrap(), &bytes[499_990..500_000]);
        assert!(beside.window(900_000, 1).unwrap().is_empty());
        // The slot is free again, and its mark is gone.
        drop(reader);
        let mut again = MapReader::new(&*file, 1_000_000, 1 << 20).unwrap();
        assert_eq!(again.window(0, 1).unwrap(), &bytes[..500_000]);
        again.check().unwrap();
    }

    #[test]
    fn zeros_behind_the_end_within_a_page_are_seen_by_the_check() {
        let name = "zeros_behind_the_end_within_a_page_are_seen_by_the_check";
        if let Some(status) = in_child(name) {
            assert!(status.success());
            return;
        }
        guard_process().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        numbered(&path, 84_000);
        let file = Disk::new().open(&path, OpenMode::ReadWrite).unwrap();
        let small = Reader::new(&*file, 4000, 1 << 20, MapMode::Always);
        assert!(matches!(small, Reader::Windows(_)), "a map does not pay for so little");
        let mut reader = Reader::new(&*file, 84_000, 1 << 20, MapMode::Always);
        assert!(matches!(reader, Reader::Mapped(_)));
        assert_eq!(reader.window(0, 84_000).unwrap().len(), 84_000);
        reader.check().unwrap();
        file.set_size(83_000).unwrap();
        assert_eq!(reader.window(83_500, 10).unwrap(), [0; 500]);
        assert_eq!(reader.check().unwrap_err().kind(), Kind::Io);
    }

    #[test]
    fn a_slice_of_a_file_that_shrinks_is_zeros_with_the_guard_and_a_signal_without() {
        use crate::io::MappedFile;

        let name = "a_slice_of_a_file_that_shrinks_is_zeros_with_the_guard_and_a_signal_without";
        let is_guarded = std::env::var_os(GUARDED).is_some();
        if let Some(status) = in_child(name) {
            assert_eq!(status.signal(), Some(libc::SIGBUS));
            let status = in_child_with(name, Some(GUARDED)).expect("another process");
            assert!(status.success());
            return;
        }
        if is_guarded {
            guard_process().unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let bytes = numbered(&path, 200_000);
        let file = Disk::new().open(&path, OpenMode::ReadWrite).unwrap();
        let slice = MappedFile::new(&*file, 70_001, 100_000).unwrap().unwrap();
        assert!(slice.bytes() == &bytes[70_001..170_001] && slice.is_whole());
        assert!(MappedFile::new(&*file, 70_001, 130_000).unwrap().is_none(), "it is shorter");
        assert!(MappedFile::new(&*file, 7, 0).unwrap().is_none());
        file.set_size(100_000).unwrap();
        assert_eq!(slice.bytes()[99_000], 0);
        assert!(!slice.is_whole());
        drop(slice);
        let slice = MappedFile::new(&*file, 0, 100_000).unwrap().unwrap();
        assert!(slice.bytes() == &bytes[..100_000] && slice.is_whole());
    }

    #[test]
    fn a_fault_outside_our_windows_still_kills() {
        let Some(status) = in_child("a_fault_outside_our_windows_still_kills") else {
            guard_process().unwrap();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a");
            numbered(&path, 100_000);
            let file = Disk::new().open(&path, OpenMode::ReadWrite).unwrap();
            let map = Map::new(file.descriptor().unwrap(), 0, 100_000, Advice::Normal).unwrap();
            file.set_size(0).unwrap();
            std::process::exit(i32::from(map.bytes()[50_000]));
        };
        assert_eq!(status.signal(), Some(libc::SIGBUS));
    }

    #[test]
    fn a_signal_that_was_sent_still_kills() {
        let Some(status) = in_child("a_signal_that_was_sent_still_kills") else {
            // SAFETY: sets the default action, in a process of this test's own.
            unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
            guard_process().unwrap();
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::BUS).unwrap();
            std::thread::sleep(std::time::Duration::from_secs(10));
            std::process::exit(0);
        };
        assert_eq!(status.signal(), Some(libc::SIGBUS));
    }

    #[test]
    fn windows_give_the_bytes_of_the_file_in_any_order() {
        if let Some(status) = in_child("windows_give_the_bytes_of_the_file_in_any_order") {
            assert!(status.success());
            return;
        }
        guard_process().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let bytes = numbered(&path, 777_777);
        let file = Disk::new().open(&path, OpenMode::Read).unwrap();
        let mut mapped = MapReader::new(&*file, u64::MAX, 128 * 1024).unwrap();
        let mut random = 1_u32;
        for _ in 0..2000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let position = random as usize % 800_000;
            let wanted = (random >> 7) as usize % 300_000;
            let given = mapped.window(position as u64, wanted).unwrap();
            let expected = bytes.get(position..).unwrap_or_default();
            assert!(given.len() >= wanted.min(expected.len()));
            assert!(given == &expected[..given.len()], "at {position}, {wanted}");
        }
        assert_eq!(mapped.end(), 777_777);
        mapped.check().unwrap();
        assert!(mapped.window(u64::MAX, usize::MAX).unwrap().is_empty());
    }

    #[test]
    fn more_readers_than_slots_fall_back_to_reading() {
        if let Some(status) = in_child("more_readers_than_slots_fall_back_to_reading") {
            assert!(status.success());
            return;
        }
        guard_process().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        numbered(&path, 10);
        let file = Disk::new().open(&path, OpenMode::Read).unwrap();
        let readers: Vec<_> =
            (0..READERS_MAX).map(|_| MapReader::new(&*file, 10, 4096).unwrap()).collect();
        assert!(MapReader::new(&*file, 10, 4096).is_none());
        drop(readers);
        assert!(MapReader::new(&*file, 10, 4096).is_some());
    }
}
