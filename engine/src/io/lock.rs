//! Does another process hold this directory? The POSIX record lock that a broker takes on `.lock`.
//!
//! Java's `FileChannel.tryLock` is `fcntl(F_SETLK)` over the whole file; `flock` would not see it.
//! Such a lock belongs to the process and the file, not to a descriptor: closing *any* descriptor
//! of the file lets it go. So this module keeps a table of the files whose lock this process holds,
//! and never opens one of those again.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Flock, FlockType, fcntl_getlk};

use crate::error::{Error, Kind, Result};
use crate::io::Lock;

/// A file's device and inode number: the file whatever its path.
type FileId = (u64, u64);

/// The files that this process holds locked. For the whole process, as the locks themselves are.
static HELD: Mutex<BTreeSet<FileId>> = Mutex::new(BTreeSet::new());

/// A held POSIX record lock. Dropping it lets go.
#[derive(Debug)]
struct RecordLock {
    id: FileId,
    descriptor: Option<OwnedFd>,
}

impl Lock for RecordLock {}

impl Drop for RecordLock {
    fn drop(&mut self) {
        let mut held = held();
        // Closed first and within the mutex: else another thread might lock the file anew, and this
        // close take it away.
        self.descriptor = None;
        held.remove(&self.id);
    }
}

/// Takes the exclusive lock on the whole file, making the file when it is missing. `Conflict` when
/// another process or this one holds it.
pub(super) fn lock(path: &Path) -> Result<Box<dyn Lock>> {
    let mut held = held();
    if let Some(id) = id_of(path)?
        && held.contains(&id)
    {
        return Err(conflict(path, "lock: this process holds it already"));
    }
    let descriptor = open(path, OFlags::RDWR | OFlags::CREATE)?;
    match retry_on_intr(|| {
        rustix::fs::fcntl_lock(&descriptor, FlockOperation::NonBlockingLockExclusive)
    }) {
        Ok(()) => {}
        // POSIX allows either number.
        Err(Errno::AGAIN | Errno::ACCESS) => {
            return Err(conflict(path, "lock: another process holds it"));
        }
        Err(e) => return Err(Error::io("lock", path, e.into())),
    }
    let stat = rustix::fs::fstat(&descriptor).map_err(|e| Error::io("examine", path, e.into()))?;
    let id = (stat.st_dev, stat.st_ino);
    held.insert(id);
    Ok(Box::new(RecordLock { id, descriptor: Some(descriptor) }))
}

/// Whether another process holds the lock; a missing file is not held, nor is one that this process
/// holds itself.
pub(super) fn is_locked(path: &Path) -> Result<bool> {
    let held = held();
    match id_of(path)? {
        None => return Ok(false),
        Some(id) if held.contains(&id) => return Ok(false),
        Some(_) => {}
    }
    // Within the mutex to the end: closing this descriptor would let go of a lock taken meanwhile.
    let descriptor = match open(path, OFlags::RDONLY) {
        Err(e) if e.kind() == Kind::NotFound => return Ok(false),
        other => other?,
    };
    let question = Flock::from(FlockType::WriteLock);
    let holder = retry_on_intr(|| fcntl_getlk(&descriptor, &question))
        .map_err(|e| Error::io("ask for the lock", path, e.into()))?;
    Ok(holder.is_some())
}

fn held() -> MutexGuard<'static, BTreeSet<FileId>> {
    // Nothing panics while it is held, and a set is whole after any panic.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn id_of(path: &Path) -> Result<Option<FileId>> {
    match retry_on_intr(|| rustix::fs::stat(path)) {
        Ok(stat) => Ok(Some((stat.st_dev, stat.st_ino))),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(Error::io("examine", path, e.into())),
    }
}

fn open(path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    retry_on_intr(|| rustix::fs::open(path, flags, Mode::from_raw_mode(0o666)))
        .map_err(|e| Error::io("open", path, e.into()))
}

fn conflict(path: &Path, why: &str) -> Error {
    Error::new(Kind::Conflict, why).in_file(path)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Another process that holds the lock as a broker does, until it is killed.
    fn holder(path: &Path) -> Option<Child> {
        let script = "import fcntl,os,sys,time\n\
            f = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n\
            fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\n\
            print('held', flush=True)\n\
            sys.stdin.read()\n";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut()?).read_line(&mut line).ok()?;
        (line == "held\n").then_some(child)
    }

    #[test]
    fn a_lock_held_by_another_process_is_seen_and_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let Some(mut child) = holder(&path) else {
            eprintln!("skipped: no python3 to hold the lock");
            return;
        };
        assert!(is_locked(&path).unwrap());
        let error = lock(&path).unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict);
        assert!(error.to_string().contains("another process"), "{error}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_locked(&path).unwrap());
        drop(lock(&path).unwrap());
    }

    #[test]
    fn asking_for_a_lock_that_we_hold_does_not_lose_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        let held = lock(&path).unwrap();
        // A second name of the same file must not be opened, either.
        let link = dir.path().join("link");
        std::fs::hard_link(&path, &link).unwrap();
        assert!(!is_locked(&path).unwrap());
        assert!(!is_locked(&link).unwrap());
        assert_eq!(lock(&path).unwrap_err().kind(), Kind::Conflict);
        assert_eq!(lock(&link).unwrap_err().kind(), Kind::Conflict);
        assert!(holder(&path).is_none(), "the lock was lost");
        drop(held);
        drop(lock(&path).unwrap());
    }

    #[test]
    fn a_file_alone_is_no_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".lock");
        assert!(!is_locked(&path).unwrap());
        assert!(!path.exists(), "asking must not make the file");
        std::fs::write(&path, b"").unwrap();
        assert!(!is_locked(&path).unwrap());
    }
}
