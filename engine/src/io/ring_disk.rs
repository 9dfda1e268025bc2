//! The real disk with io_uring, where kernel and sandbox allow it and it pays.
//!
//! Measured, it pays for many fsyncs at once (five times as many a second, since the disk sees them
//! together) and for nothing else the engine does on warm files; so by choice `Auto` syncs in
//! batches through the ring and does the rest by plain calls. Writes to many files at once are no
//! exception: ext4 has a worker of the kernel's do each buffered write, and 64 of 4 KiB take two to
//! six times as long as by plain calls. 64 warm reads of 4 KiB take as long either way. Forced,
//! reads and writes go through the ring as well, those to many files in one submission: the tests
//! prove that both ways give the same bytes.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Kind, Result};
use crate::io::counters::Tally;
use crate::io::disk::{DiskFile, advance, no_progress, parts_behind, read_whole};
use crate::io::ring::{Opcodes, Operation, Outcome, Ring, Transfer};
use crate::io::{Counters, DirEntry, Disk, File, FileWrite, Lock, Metadata, OpenMode, Storage};

/// The environment variable that [`IoChoice::from_env`] reads.
const VARIABLE: &str = "SILTSTONE_IO";

/// Rings that are kept for the next call; each is a descriptor and some 20 KiB.
const IDLE_RINGS_MAX: usize = 8;

/// How a real disk is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoChoice {
    /// Through io_uring where that pays and is allowed, else by plain system calls.
    #[default]
    Auto,
    /// Through io_uring; an error where it is not allowed.
    Uring,
    /// By plain system calls.
    Syscalls,
}

impl IoChoice {
    /// What the environment variable `SILTSTONE_IO` asks for: `uring` or `syscalls`; `Auto` when it
    /// is not set. `InvalidArgument` for any other value.
    pub fn from_env() -> Result<Self> {
        Self::from_value(std::env::var_os(VARIABLE).as_deref())
    }

    fn from_value(value: Option<&OsStr>) -> Result<Self> {
        match value.map(OsStr::as_encoded_bytes) {
            None => Ok(IoChoice::Auto),
            Some(b"uring") => Ok(IoChoice::Uring),
            Some(b"syscalls") => Ok(IoChoice::Syscalls),
            Some(_) => Err(Error::new(
                Kind::InvalidArgument,
                format!("{VARIABLE} is neither \"uring\" nor \"syscalls\""),
            )),
        }
    }
}

/// The real disk of this machine, spoken to as chosen. `Unsupported` when io_uring is asked for and
/// not to be had.
pub fn open_disk(choice: IoChoice) -> Result<Box<dyn Storage>> {
    Ok(match choice {
        IoChoice::Auto => Box::new(RingDisk::auto()),
        IoChoice::Uring => Box::new(RingDisk::forced()?),
        IoChoice::Syscalls => Box::new(Disk::new()),
    })
}

/// The real disk with io_uring. Cheap to make; no ring is set up before it is needed.
#[derive(Clone, Debug)]
pub struct RingDisk {
    disk: Disk,
    rings: Arc<Rings>,
    is_forced: bool,
}

impl RingDisk {
    /// With the ring for what it pays for, where it may be used.
    #[must_use]
    pub fn auto() -> Self {
        let disk = Disk::new();
        let rings = Arc::new(Rings::new(Arc::clone(disk.tally())));
        RingDisk { disk, rings, is_forced: false }
    }

    /// With the ring for all that it can do. `Unsupported`, with the reason, where it may not be
    /// used.
    pub fn forced() -> Result<Self> {
        let disk = RingDisk { is_forced: true, ..Self::auto() };
        match Ring::new(Arc::clone(disk.disk.tally())) {
            Ok(ring) if ring.opcodes() != Opcodes::default() => disk.rings.give_back(ring),
            Ok(_) => return Err(unavailable("no opcode of use is allowed")),
            Err(e) => return Err(unavailable(&e.to_string())),
        }
        Ok(disk)
    }
}

fn unavailable(why: &str) -> Error {
    Error::new(Kind::Unsupported, format!("io_uring is not available: {why}"))
}

impl Storage for RingDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>> {
        let file = self.disk.open_file(path, mode)?;
        Ok(if self.is_forced {
            Box::new(RingFile { file, rings: Arc::clone(&self.rings) })
        } else {
            Box::new(file)
        })
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.disk.metadata(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.disk.list(dir)
    }

    fn list_with_metadata(&self, dir: &Path) -> Result<Vec<(DirEntry, Metadata)>> {
        self.disk.list_with_metadata(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.disk.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.disk.remove_dir(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.disk.create_dir(path)
    }

    fn link_target(&self, path: &Path) -> Result<Option<PathBuf>> {
        self.disk.link_target(path)
    }

    fn set_owner(&self, path: &Path, like: &Metadata) -> Result<()> {
        self.disk.set_owner(path, like)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.disk.sync_dir(dir)
    }

    fn sync_filesystem(&self, dir: &Path) -> Result<()> {
        self.disk.sync_filesystem(dir)
    }

    fn sync_files(&self, files: &[&dyn File]) -> Vec<Result<()>> {
        let is_worth_it = files.len() > 1 || self.is_forced;
        let descriptors: Option<Vec<_>> = files.iter().map(|file| file.descriptor()).collect();
        let (true, Some(descriptors)) = (is_worth_it, descriptors) else {
            return files.iter().map(|file| file.sync()).collect();
        };
        self.rings.sync(files, &descriptors)
    }

    fn write_files(&self, writes: &[FileWrite<'_>]) -> Vec<Result<()>> {
        if self.is_forced {
            return self.rings.write(writes);
        }
        self.disk.write_files(writes)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        self.disk.lock(path)
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        self.disk.is_locked(path)
    }

    fn read(&self, path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        if !self.is_forced {
            return self.disk.read(path, limit_bytes);
        }
        // Opening through the ring as well would save a fifth of the time, and looking whether it
        // is a plain file, which must come first, cost more than that.
        read_whole(&*self.open(path, OpenMode::Read)?, limit_bytes)
    }

    fn counters(&self) -> Counters {
        self.disk.counters()
    }
}

/// An open file whose reads and writes go through a ring.
#[derive(Debug)]
struct RingFile {
    file: DiskFile,
    rings: Arc<Rings>,
}

impl File for RingFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn metadata(&self) -> Result<Metadata> {
        self.file.metadata()
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let operation = Operation::Read(&mut *buffer);
        let (outcome, done) = self.run(|opcodes| opcodes.read, operation, position);
        let rest = advance(position, done);
        match outcome {
            Outcome::Done | Outcome::NoProgress => Ok(done),
            Outcome::Failed(e) => Err(Error::io("read", self.path(), e.into()).at_position(rest)),
            Outcome::Declined => {
                let target = buffer.get_mut(done..).unwrap_or_default();
                Ok(done + self.file.read_at(target, rest)?)
            }
        }
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<()> {
        let (outcome, done) = self.run(|opcodes| opcodes.write, Operation::Write(bytes), position);
        let rest = advance(position, done);
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::NoProgress => Err(no_progress(self.path(), rest)),
            Outcome::Failed(e) => Err(Error::io("write", self.path(), e.into()).at_position(rest)),
            Outcome::Declined => self.file.write_at(bytes.get(done..).unwrap_or_default(), rest),
        }
    }

    fn write_parts_at(&self, parts: &[&[u8]], position: u64) -> Result<()> {
        let writes = [FileWrite { file: &self.file, parts, position }];
        self.rings.write(&writes).pop().unwrap_or(Ok(()))
    }

    fn set_size(&self, size_bytes: u64) -> Result<()> {
        self.file.set_size(size_bytes)
    }

    fn reserve(&self, size_bytes: u64) -> Result<()> {
        self.file.reserve(size_bytes)
    }

    fn set_owner(&self, like: &Metadata) -> Result<()> {
        self.file.set_owner(like)
    }

    fn set_modified(&self, modified_ms: i64) -> Result<()> {
        self.file.set_modified(modified_ms)
    }

    fn sync(&self) -> Result<()> {
        let files: [&dyn File; 1] = [&self.file];
        let descriptors: Option<Vec<_>> = files.iter().map(|file| file.descriptor()).collect();
        self.rings.sync(&files, &descriptors.unwrap_or_default()).pop().unwrap_or(Ok(()))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.file.descriptor()
    }
}

impl RingFile {
    /// One transfer through a ring: how it ended and how many bytes are done.
    fn run(
        &self,
        is_supported: impl Fn(Opcodes) -> bool,
        operation: Operation<'_>,
        position: u64,
    ) -> (Outcome, usize) {
        let is_read = matches!(operation, Operation::Read(_));
        let Some(descriptor) = self.file.descriptor() else { return (Outcome::Declined, 0) };
        if i64::try_from(position).is_err() {
            // The ring takes one such position for "where the file stands"; the plain call refuses
            // them all.
            return (Outcome::Declined, 0);
        }
        let mut transfers = [Transfer::new(descriptor, operation, position)];
        self.rings.run(is_supported, &mut transfers);
        let [transfer] = transfers;
        let (outcome, done) = (transfer.outcome(), transfer.done());
        if done > 0 || outcome == Outcome::Done {
            let tally = &self.rings.tally;
            if is_read { tally.read(done) } else { tally.written(done) }
        }
        (outcome, done)
    }
}

/// Rings, one for each thread that is in a call: they share nothing, so that none waits for
/// another's disk.
#[derive(Debug)]
struct Rings {
    idle: Mutex<Vec<Ring>>,
    /// Whether a ring was refused for good, so that it need not be tried again.
    is_refused: AtomicBool,
    tally: Arc<Tally>,
}

impl Rings {
    fn new(tally: Arc<Tally>) -> Self {
        Rings { idle: Mutex::default(), is_refused: AtomicBool::new(false), tally }
    }

    /// Settles the transfers as far as a ring does; the others stay declined.
    fn run(&self, is_supported: impl Fn(Opcodes) -> bool, transfers: &mut [Transfer<'_>]) {
        let Some(ring) = self.take() else { return };
        if !is_supported(ring.opcodes()) {
            self.give_back(ring);
        } else if let Some(ring) = ring.run(transfers) {
            self.give_back(ring);
        }
    }

    /// Makes files durable: through a ring, or one by one where there is none.
    fn sync(&self, files: &[&dyn File], descriptors: &[BorrowedFd<'_>]) -> Vec<Result<()>> {
        let mut transfers: Vec<_> = descriptors
            .iter()
            .map(|&descriptor| Transfer::new(descriptor, Operation::Sync, 0))
            .collect();
        self.run(|opcodes| opcodes.sync, &mut transfers);
        let settled = files.iter().zip(&transfers);
        settled
            .map(|(file, transfer)| match transfer.outcome() {
                Outcome::Declined => file.sync(),
                Outcome::Failed(e) => {
                    self.tally.synced();
                    Err(Error::io("sync", file.path(), e.into()))
                }
                Outcome::Done | Outcome::NoProgress => {
                    self.tally.synced();
                    Ok(())
                }
            })
            .collect()
    }

    /// Writes to files: through a ring, and what that does not take by plain calls.
    fn write(&self, writes: &[FileWrite<'_>]) -> Vec<Result<()>> {
        let transfers: Option<Vec<Transfer<'_>>> = writes.iter().map(transfer_of).collect();
        let Some(mut transfers) = transfers else {
            let plain =
                |write: &FileWrite<'_>| write.file.write_parts_at(write.parts, write.position);
            return writes.iter().map(plain).collect();
        };
        self.run(|opcodes| opcodes.write_parts, &mut transfers);
        let settled = writes.iter().zip(&transfers);
        settled.map(|(write, transfer)| self.settle_write(write, transfer)).collect()
    }

    fn settle_write(&self, write: &FileWrite<'_>, transfer: &Transfer<'_>) -> Result<()> {
        let &FileWrite { file, parts, position } = write;
        let at = advance(position, transfer.done());
        if transfer.done() > 0 {
            self.tally.written(transfer.done());
        }
        match transfer.outcome() {
            Outcome::Done => Ok(()),
            Outcome::NoProgress => Err(no_progress(file.path(), at)),
            Outcome::Failed(e) => Err(Error::io("write", file.path(), e.into()).at_position(at)),
            Outcome::Declined => {
                let rest: Vec<&[u8]> = parts_behind(parts, transfer.done()).collect();
                file.write_parts_at(&rest, at)
            }
        }
    }

    fn take(&self) -> Option<Ring> {
        if let Some(ring) = self.idle().pop() {
            return Some(ring);
        }
        if self.is_refused.load(Ordering::Relaxed) {
            return None;
        }
        let ring = Ring::new(Arc::clone(&self.tally));
        if let Err(e) = &ring
            && matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported)
        {
            self.is_refused.store(true, Ordering::Relaxed);
        }
        // Any other refusal, such as too many open files, may pass.
        ring.ok()
    }

    fn give_back(&self, ring: Ring) {
        let mut idle = self.idle();
        if idle.len() < IDLE_RINGS_MAX {
            idle.push(ring);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Ring>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a ring is to write; `None` for what only the plain call knows how to answer: a file of
/// another disk, no bytes, or a position that the ring takes for "where the file stands".
fn transfer_of<'a>(write: &FileWrite<'a>) -> Option<Transfer<'a>> {
    let is_for_rings =
        i64::try_from(write.position).is_ok() && write.parts.iter().any(|part| !part.is_empty());
    let descriptor = write.file.descriptor().filter(|_| is_for_rings)?;
    Some(Transfer::new(descriptor, Operation::WriteParts(write.parts), write.position))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A forced ring, or none where the machine that runs the tests forbids it.
    fn forced() -> Option<RingDisk> {
        match RingDisk::forced() {
            Ok(disk) => Some(disk),
            Err(e) => {
                assert_eq!(e.kind(), Kind::Unsupported);
                eprintln!("skipped: {e}");
                None
            }
        }
    }

    #[test]
    fn a_forced_ring_reads_and_writes_through_the_ring() {
        let Some(disk) = forced() else { return };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let bytes: Vec<u8> = (0..3 << 20).map(|i: u32| i.to_be_bytes()[2]).collect();
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&bytes, 7).unwrap();
        file.sync().unwrap();
        let mut buffer = vec![1; bytes.len() + 100];
        assert_eq!(file.read_at(&mut buffer, 7).unwrap(), bytes.len());
        assert!(buffer[..bytes.len()] == bytes[..]);
        assert_eq!(file.read_at(&mut buffer, 1 << 40).unwrap(), 0);
        let whole = disk.read(&path, 4 << 20).unwrap();
        assert!(whole[..7] == [0; 7] && whole[7..] == bytes[..]);
        let counters = disk.counters();
        assert!(counters.ring_completions >= 5, "{counters:?}");
        assert_eq!((counters.writes, counters.syncs), (1, 1));
        assert_eq!(counters.bytes_written, 3 << 20);
    }

    #[test]
    fn positions_that_no_file_has_are_refused_as_by_the_plain_call() {
        let Some(disk) = forced() else { return };
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        let files = [
            disk.open(&a, OpenMode::Create).unwrap(),
            Disk::new().open(&b, OpenMode::Create).unwrap(),
        ];
        for position in [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 63) - 1] {
            let [by_ring, by_call] =
                files.each_ref().map(|file| file.read_at(&mut [0; 4], position));
            assert_eq!(by_ring.map_err(|e| e.errno()), by_call.map_err(|e| e.errno()));
            let [by_ring, by_call] = files.each_ref().map(|file| file.write_at(b"1234", position));
            assert_eq!(by_ring.unwrap_err().errno(), by_call.unwrap_err().errno());
        }
        assert_eq!(files[0].metadata().unwrap().size_bytes, 0);
    }

    #[test]
    fn errors_of_the_ring_are_those_of_the_plain_call() {
        let Some(disk) = forced() else { return };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, b"abc").unwrap();
        let file = disk.open(&path, OpenMode::Read).unwrap();
        let error = file.write_at(b"1", 2).unwrap_err();
        assert_eq!((error.errno(), error.position()), (Some(9), Some(2)));
        assert_eq!(disk.open(dir.path(), OpenMode::Read).unwrap_err().errno(), Some(21));
    }

    #[test]
    fn many_syncs_are_few_submissions() {
        let disk = RingDisk::auto();
        let dir = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..300)
            .map(|i| {
                let path = dir.path().join(i.to_string());
                let file = disk.open(&path, OpenMode::CreateNew).unwrap();
                file.write_at(b"something", 0).unwrap();
                file
            })
            .collect();
        assert_eq!(disk.counters().ring_submissions, 0, "plain calls until it pays");
        let borrowed: Vec<&dyn File> = files.iter().map(|file| &**file).collect();
        let outcomes = disk.sync_files(&borrowed);
        assert_eq!(outcomes.len(), 300);
        assert!(outcomes.iter().all(Result::is_ok));
        let counters = disk.counters();
        assert_eq!(counters.syncs, 300);
        if forced().is_some() {
            assert_eq!(counters.ring_completions, 300);
        }
    }

    #[test]
    fn many_writes_are_one_submission_of_a_forced_ring_and_each_has_its_answer() {
        let Some(disk) = forced() else { return };
        let dir = tempfile::tempdir().unwrap();
        let path = |number: usize| dir.path().join(number.to_string());
        let mut files: Vec<_> =
            (0..64).map(|n| disk.open(&path(n), OpenMode::Create).unwrap()).collect();
        files[7] = disk.open(&path(7), OpenMode::Read).unwrap();
        let bytes: Vec<Vec<u8>> = (0..64).map(|n| vec![n; 1000]).collect();
        let parts: Vec<[&[u8]; 2]> = bytes.iter().map(|bytes| [&bytes[..], b"end"]).collect();
        let writes: Vec<FileWrite<'_>> = files
            .iter()
            .zip(&parts)
            .map(|(file, parts)| FileWrite { file: &**file, parts, position: 5 })
            .collect();
        let outcomes = disk.write_files(&writes);
        for (number, outcome) in outcomes.iter().enumerate() {
            let size = std::fs::metadata(path(number)).unwrap().len();
            if number == 7 {
                let error = outcome.as_ref().unwrap_err();
                assert_eq!((error.errno(), error.position(), size), (Some(9), Some(5), 0));
                assert_eq!(error.path(), Some(path(7).as_path()));
            } else {
                outcome.as_ref().unwrap();
                let wanted = [&[0; 5][..], &bytes[number], b"end"].concat();
                assert_eq!(std::fs::read(path(number)).unwrap(), wanted);
            }
        }
        let counters = disk.counters();
        assert_eq!((counters.ring_completions, counters.writes), (64, 63));
        assert_eq!(counters.bytes_written, 63 * 1003);
    }

    #[test]
    fn threads_do_not_share_a_ring() {
        let Some(disk) = forced() else { return };
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (disk, path) = (&disk, dir.path().join(thread.to_string()));
                scope.spawn(move || {
                    let file = disk.open(&path, OpenMode::Create).unwrap();
                    for round in 0..200 {
                        file.write_at(&[thread; 1000], round * 1000).unwrap();
                    }
                    assert_eq!(disk.read(&path, 1 << 20).unwrap(), [thread; 200_000]);
                });
            }
        });
    }

    #[test]
    fn the_environment_chooses() {
        let choose = |value: &str| IoChoice::from_value(Some(OsStr::new(value)));
        assert_eq!(IoChoice::from_value(None).unwrap(), IoChoice::Auto);
        assert_eq!(choose("uring").unwrap(), IoChoice::Uring);
        assert_eq!(choose("syscalls").unwrap(), IoChoice::Syscalls);
        for bad in ["", "URING", "io_uring", "uring "] {
            assert_eq!(choose(bad).unwrap_err().kind(), Kind::InvalidArgument);
        }
        assert_eq!(open_disk(IoChoice::Syscalls).unwrap().counters(), Counters::default());
    }
}
