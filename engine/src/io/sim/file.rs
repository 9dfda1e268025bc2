//! An open file and a held lock of the simulated disk.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::disk::{SimDisk, State};
use super::faults::{Sort, Verdict};
use super::tree::NodeId;
use crate::error::Result;
use crate::io::{File, Lock, Metadata};

/// No file of the simulated disk is longer.
const FILE_BYTES_MAX: usize = 1 << 30;

/// An open file of the simulated disk.
#[derive(Debug)]
pub(super) struct SimFile {
    disk: SimDisk,
    path: PathBuf,
    id: NodeId,
    can_write: bool,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, path: PathBuf, id: NodeId, can_write: bool) -> Self {
        SimFile { disk, path, id, can_write }
    }
}

impl File for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn metadata(&self) -> Result<Metadata> {
        self.disk.plain(Sort::Look, "examine", &self.path, |state| state.tree.metadata(self.id))
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let what = format!("read {} bytes at {position}", buffer.len());
        let act = |state: &mut State, _| {
            if i64::try_from(position).is_err() && !buffer.is_empty() {
                return Err(Errno::INVAL);
            }
            let start = usize::try_from(position).unwrap_or(usize::MAX);
            let rest = state.tree.body(self.id)?.seen().get(start..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            if let (Some(target), Some(origin)) = (buffer.get_mut(..count), rest.get(..count)) {
                target.copy_from_slice(origin);
            }
            Ok(count)
        };
        let count = self
            .disk
            .operate((Sort::Look, "read", what), &self.path, act, |_| ())
            .map_err(|e| e.at_position(position))?;
        self.disk.tally.read(count);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<()> {
        let what = format!("write {} bytes at {position}", bytes.len());
        let write = |state: &mut State, bytes: &[u8]| {
            if bytes.is_empty() {
                return Ok(());
            }
            if i64::try_from(position).is_err() {
                return Err(Errno::INVAL);
            }
            if !self.can_write {
                return Err(Errno::BADF);
            }
            let start = usize::try_from(position).unwrap_or(usize::MAX);
            if start.saturating_add(bytes.len()) > FILE_BYTES_MAX {
                return Err(Errno::FBIG);
            }
            state.tree.body_mut(self.id)?.write(bytes, start);
            Ok(())
        };
        let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
        let labels = (Sort::Change, "write", what);
        let instead = |state: &mut State| {
            write(state, half).ok();
        };
        self.disk
            .operate(labels, &self.path, |state, _| write(state, bytes), instead)
            .map_err(|e| e.at_position(position))?;
        self.disk.tally.written(bytes.len());
        Ok(())
    }

    fn set_size(&self, size_bytes: u64) -> Result<()> {
        let what = format!("set size to {size_bytes}");
        let act = |state: &mut State, _| {
            if !self.can_write || i64::try_from(size_bytes).is_err() {
                return Err(Errno::INVAL);
            }
            let size = usize::try_from(size_bytes).unwrap_or(usize::MAX);
            if size > FILE_BYTES_MAX {
                return Err(Errno::FBIG);
            }
            state.tree.body_mut(self.id)?.set_size(size);
            Ok(())
        };
        let labels = (Sort::Change, "set size of", what);
        self.disk.operate(labels, &self.path, act, |_| ())
    }

    fn reserve(&self, _size_bytes: u64) -> Result<()> {
        self.disk.plain(Sort::Change, "reserve room for", &self.path, |state| {
            state.tree.body_mut(self.id).map(drop)
        })
    }

    fn set_owner(&self, like: &Metadata) -> Result<()> {
        let Metadata { mode, owner, group, .. } = *like;
        self.disk.plain(Sort::Change, "change owner", &self.path, |state| {
            let metadata = &mut state.tree.node_mut(self.id)?.metadata;
            *metadata = Metadata { mode, owner, group, ..*metadata };
            Ok(())
        })
    }

    fn set_modified(&self, modified_ms: i64) -> Result<()> {
        self.disk.plain(Sort::Change, "set time of", &self.path, |state| {
            state.tree.node_mut(self.id)?.metadata.modified_ms = modified_ms;
            Ok(())
        })
    }

    fn sync(&self) -> Result<()> {
        self.disk.tally.synced();
        let labels = (Sort::Sync, "sync", "sync".to_owned());
        let act = |state: &mut State, verdict| {
            if verdict != Verdict::Lost {
                state.tree.body_mut(self.id)?.sync();
            }
            Ok(())
        };
        let instead = |state: &mut State| {
            if let Ok(body) = state.tree.body_mut(self.id) {
                body.fail_sync();
            }
        };
        self.disk.operate(labels, &self.path, act, instead)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        state.open_files = state.open_files.saturating_sub(1);
    }
}

/// A held lock of the simulated disk.
#[derive(Debug)]
pub(super) struct SimLock {
    disk: SimDisk,
    id: NodeId,
}

impl SimLock {
    pub(super) fn new(disk: SimDisk, id: NodeId) -> Self {
        SimLock { disk, id }
    }
}

impl Lock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.disk.state().locks.remove(&self.id);
    }
}
