//! The simulated disk as the engine sees it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::body::Body;
use super::fate::Fate;
use super::faults::{Faults, Sort, Verdict};
use super::file::{SimFile, SimLock};
use super::tree::{Content, NodeId, Tree, directory};
use crate::error::{Error, Kind, Result};
use crate::io::counters::Tally;
use crate::io::{Counters, DirEntry, File, FileKind, Lock, Metadata, OpenMode, Storage};

/// A disk in memory that can lose what was not synced. Clones are the same disk; [`SimDisk::fork`]
/// makes another.
///
/// Paths start at its root, whether they say so or not. It has no symbolic links. All operations
/// are numbered from 0, reads too; with several threads, which one gets which number is chance.
#[derive(Clone, Debug)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
    pub(super) tally: Arc<Tally>,
}

type Outcome<T> = rustix::io::Result<T>;

/// What stands at a path: its kind, and its bytes where it is a file.
pub(super) type Found = (PathBuf, FileKind, Option<Arc<Vec<u8>>>);

#[derive(Debug)]
pub(super) struct State {
    pub(super) tree: Tree,
    pub(super) faults: Faults,
    pub(super) locks: BTreeSet<NodeId>,
    pub(super) foreign_locks: BTreeSet<NodeId>,
    pub(super) open_files: usize,
    pub(super) open_files_peak: usize,
    pub(super) open_files_max: usize,
}

impl Default for SimDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Tree::new())
    }

    fn with(tree: Tree) -> Self {
        let state = State {
            tree,
            faults: Faults::default(),
            locks: BTreeSet::new(),
            foreign_locks: BTreeSet::new(),
            open_files: 0,
            open_files_peak: 0,
            open_files_max: usize::MAX,
        };
        SimDisk { state: Arc::new(Mutex::new(state)), tally: Arc::default() }
    }

    /// Another disk with the same files, pending changes included, but no plan, no log and no
    /// locks. Cheap: bytes are shared until one of them changes.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::with(self.state().tree.clone())
    }

    /// The disk that a power cut now may leave. The same seed gives the same disk; 0 loses
    /// everything that was not synced, 1 nothing, 2 to 4 lose one of bytes, lengths and names
    /// altogether, and all others mix.
    #[must_use]
    pub fn after_crash(&self, seed: u64) -> Self {
        Self::with(self.state().tree.after_crash(&mut Fate::new(seed)))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does an operation as the plan wants it; `act` is told when it is a sync that is lost.
    /// `instead` is what is done of one that fails.
    pub(super) fn operate<T>(
        &self,
        (sort, operation, what): (Sort, &str, String),
        path: &Path,
        act: impl FnOnce(&mut State, Verdict) -> Outcome<T>,
        instead: impl FnOnce(&mut State),
    ) -> Result<T> {
        let state = &mut *self.state();
        let verdict = state.faults.next(sort, what, path);
        match verdict {
            Verdict::Done | Verdict::Lost => {
                act(state, verdict).map_err(|e| io_error(operation, path, e))
            }
            Verdict::Off => Err(power_off(operation, path)),
            Verdict::Cut => {
                if sort == Sort::Change {
                    // Nobody sees whether it succeeded, and nothing of it is durable.
                    act(state, verdict).ok();
                }
                Err(power_off(operation, path))
            }
            Verdict::Fails(errno) => {
                instead(state);
                Err(io_error(operation, path, errno))
            }
        }
    }

    /// An operation that cannot be lost and does nothing when it fails.
    pub(super) fn plain<T>(
        &self,
        sort: Sort,
        operation: &str,
        path: &Path,
        act: impl FnOnce(&mut State) -> Outcome<T>,
    ) -> Result<T> {
        let labels = (sort, operation, operation.to_owned());
        self.operate(labels, path, |state, _| act(state), |_| ())
    }

    fn sync_names(
        &self,
        operation: &str,
        dir: &Path,
        act: impl FnOnce(&mut Tree, NodeId) -> Outcome<()>,
    ) -> Result<()> {
        let labels = (Sort::Sync, operation, operation.to_owned());
        let act = |state: &mut State, verdict| {
            let id = state.tree.find(dir)?;
            state.tree.names(id)?;
            if verdict == Verdict::Lost { Ok(()) } else { act(&mut state.tree, id) }
        };
        self.operate(labels, dir, act, |_| ())
    }

    /// All that is at and below a path, without counting as an operation.
    pub(super) fn walk(&self, root: &Path) -> Vec<Found> {
        let tree = &self.state().tree;
        let mut found = Vec::new();
        let mut waiting = vec![root.to_path_buf()];
        while let Some(path) = waiting.pop() {
            let Ok(id) = tree.find(&path) else { continue };
            let Ok(node) = tree.node(id) else { continue };
            if let Ok(names) = tree.names(id) {
                waiting.extend(names.keys().map(|name| path.join(name)));
            }
            let bytes = tree.body(id).ok().map(|body| Arc::clone(body.seen()));
            found.push((path, node.metadata.kind, bytes));
        }
        found
    }
}

impl Storage for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>> {
        let (sort, what) = match mode {
            OpenMode::Read => (Sort::Look, "open for reading"),
            OpenMode::ReadWrite | OpenMode::Rewrite => (Sort::Look, "open for writing"),
            OpenMode::Create => (Sort::Change, "make or cut to nothing"),
            OpenMode::CreateNew => (Sort::Change, "make"),
        };
        let act = |state: &mut State, _| {
            if state.open_files >= state.open_files_max {
                return Err(Errno::MFILE);
            }
            let id = open(&mut state.tree, path, mode)?;
            state.open_files += usize::from(id.is_some());
            state.open_files_peak = state.open_files_peak.max(state.open_files);
            Ok(id)
        };
        let id = self.operate((sort, "open", what.to_owned()), path, act, |_| ())?;
        let id = id.ok_or_else(|| {
            Error::new(Kind::InvalidArgument, "open: a device, pipe or socket").in_file(path)
        })?;
        self.tally.opened();
        let can_write = mode != OpenMode::Read;
        Ok(Box::new(SimFile::new(self.clone(), path.to_path_buf(), id, can_write)))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.plain(Sort::Look, "examine", path, |state| state.tree.metadata(state.tree.find(path)?))
    }

    fn list(&self, dir: &Path) -> Result<Vec<DirEntry>> {
        self.plain(Sort::Look, "list", dir, |state| {
            let names = state.tree.names(state.tree.find(dir)?)?;
            let entry = |(name, &id): (&std::ffi::OsString, &NodeId)| {
                Ok(DirEntry { name: name.clone(), kind: state.tree.node(id)?.metadata.kind })
            };
            names.iter().map(entry).collect()
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let operation = format!("rename to {}", to.display());
        self.plain(Sort::Change, &operation, from, |state| state.tree.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.plain(Sort::Change, "remove", path, |state| state.tree.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.plain(Sort::Change, "remove directory", path, |state| state.tree.remove_dir(path))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.plain(Sort::Change, "create directory", path, |state| {
            state.tree.create(path, directory()).map(|_| ())
        })
    }

    fn set_owner(&self, path: &Path, like: &Metadata) -> Result<()> {
        let Metadata { mode, owner, group, .. } = *like;
        self.plain(Sort::Change, "change owner", path, |state| {
            let id = state.tree.find(path)?;
            let metadata = &mut state.tree.node_mut(id)?.metadata;
            *metadata = Metadata { mode, owner, group, ..*metadata };
            Ok(())
        })
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.tally.synced_directory();
        self.sync_names("sync directory", dir, Tree::sync_directory)
    }

    fn sync_filesystem(&self, dir: &Path) -> Result<()> {
        self.tally.synced_filesystem();
        self.sync_names("sync file system", dir, |tree, _| {
            tree.sync_all();
            Ok(())
        })
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>> {
        let id = self.plain(Sort::Change, "lock", path, |state| {
            let id = find_or_create(&mut state.tree, path)?;
            let is_held = state.foreign_locks.contains(&id) || !state.locks.insert(id);
            Ok((!is_held).then_some(id))
        })?;
        let id = id.ok_or_else(|| {
            Error::new(Kind::Conflict, "lock: another process holds it").in_file(path)
        })?;
        Ok(Box::new(SimLock::new(self.clone(), id)))
    }

    fn is_locked(&self, path: &Path) -> Result<bool> {
        self.plain(Sort::Look, "ask for the lock", path, |state| match state.tree.find(path) {
            Ok(id) => Ok(state.foreign_locks.contains(&id)),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(e),
        })
    }

    fn read(&self, path: &Path, limit_bytes: u64) -> Result<Vec<u8>> {
        let bytes = self.plain(Sort::Look, "read", path, |state| {
            if state.open_files >= state.open_files_max {
                return Err(Errno::MFILE);
            }
            Ok(Arc::clone(state.tree.body(state.tree.find(path)?)?.seen()))
        })?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit_bytes {
            let why = format!("longer than the limit of {limit_bytes} bytes");
            return Err(Error::new(Kind::Limit, why).in_file(path));
        }
        self.tally.read(bytes.len());
        Ok(bytes.to_vec())
    }

    fn counters(&self) -> Counters {
        self.tally.snapshot()
    }
}

/// `None` for what is no file and no directory, either.
fn open(tree: &mut Tree, path: &Path, mode: OpenMode) -> Outcome<Option<NodeId>> {
    let id = match tree.find(path) {
        Ok(_) if mode == OpenMode::CreateNew => return Err(Errno::EXIST),
        Ok(id) => id,
        Err(Errno::NOENT) if matches!(mode, OpenMode::Create | OpenMode::CreateNew) => {
            tree.create(path, Content::File(Body::default()))?
        }
        Err(e) => return Err(e),
    };
    match tree.node(id)?.content {
        Content::Other(FileKind::DanglingLink) => return Err(Errno::NOENT),
        Content::Other(_) => return Ok(None),
        _ => {}
    }
    tree.body(id)?;
    if mode == OpenMode::Create {
        tree.body_mut(id)?.set_size(0);
    }
    Ok(Some(id))
}

pub(super) fn find_or_create(tree: &mut Tree, path: &Path) -> Outcome<NodeId> {
    match tree.find(path) {
        Err(Errno::NOENT) => tree.create(path, Content::File(Body::default())),
        found => found.and_then(|id| tree.body(id).map(|_| id)),
    }
}

pub(super) fn io_error(operation: &str, path: &Path, errno: Errno) -> Error {
    Error::io(operation, path, errno.into())
}

fn power_off(operation: &str, path: &Path) -> Error {
    Error::io(operation, path, std::io::Error::other("the power is off"))
}
