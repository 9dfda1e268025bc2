//! Which names would a power cut leave? Directories with the names that are seen and those that are
//! durable.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};

use rustix::io::Errno;

use super::body::Body;
use super::fate::Fate;
use crate::io::{FileKind, Metadata};

/// A file or directory, whatever its name.
pub(super) type NodeId = usize;

type Outcome<T> = rustix::io::Result<T>;
type Names = BTreeMap<OsString, NodeId>;

const ROOT: NodeId = 0;

/// What a node is.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A file.
    File(Body),
    /// A directory.
    Directory {
        /// The names as they are seen.
        seen: Names,
        /// The names that a power cut leaves.
        durable: Names,
    },
    /// Something that cannot be opened.
    Other(FileKind),
}

/// A file or directory.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) content: Content,
    pub(super) metadata: Metadata,
    /// Where a power cut leaves it: nodes have one name.
    durable_place: Option<(NodeId, OsString)>,
}

/// A change of names that is not durable yet: `node` is at `place` now, or nowhere.
#[derive(Clone, Debug)]
struct Change {
    node: NodeId,
    place: Option<(NodeId, OsString)>,
    /// The directories it touches; syncing one of them makes it durable.
    directories: [NodeId; 2],
}

/// All files and directories. Nodes are never taken out: open files outlive their names.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    pending: Vec<Change>,
    now_ms: i64,
}

impl Tree {
    pub(super) fn new() -> Self {
        let mut tree = Tree { nodes: Vec::new(), pending: Vec::new(), now_ms: 1_700_000_000_000 };
        tree.add(directory(), 0o755);
        tree
    }

    fn add(&mut self, content: Content, mode: u32) -> NodeId {
        let kind = match &content {
            Content::File(_) => FileKind::File,
            Content::Directory { .. } => FileKind::Directory,
            Content::Other(kind) => *kind,
        };
        let metadata =
            Metadata { kind, size_bytes: 0, modified_ms: self.now_ms, mode, owner: 0, group: 0 };
        self.nodes.push(Node { content, metadata, durable_place: None });
        self.nodes.len() - 1
    }

    pub(super) fn node(&self, id: NodeId) -> Outcome<&Node> {
        self.nodes.get(id).ok_or(Errno::NOENT)
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> Outcome<&mut Node> {
        self.nodes.get_mut(id).ok_or(Errno::NOENT)
    }

    /// The body of a file that is about to change.
    pub(super) fn body_mut(&mut self, id: NodeId) -> Outcome<&mut Body> {
        self.now_ms += 1;
        let now_ms = self.now_ms;
        let node = self.node_mut(id)?;
        node.metadata.modified_ms = now_ms;
        match &mut node.content {
            Content::File(body) => Ok(body),
            Content::Directory { .. } => Err(Errno::ISDIR),
            Content::Other(_) => Err(Errno::INVAL),
        }
    }

    pub(super) fn body(&self, id: NodeId) -> Outcome<&Body> {
        match &self.node(id)?.content {
            Content::File(body) => Ok(body),
            Content::Directory { .. } => Err(Errno::ISDIR),
            Content::Other(_) => Err(Errno::INVAL),
        }
    }

    pub(super) fn metadata(&self, id: NodeId) -> Outcome<Metadata> {
        let node = self.node(id)?;
        let size = match &node.content {
            Content::File(body) => body.seen().len(),
            _ => 0,
        };
        Ok(Metadata { size_bytes: u64::try_from(size).unwrap_or(u64::MAX), ..node.metadata })
    }

    pub(super) fn names(&self, dir: NodeId) -> Outcome<&Names> {
        match &self.node(dir)?.content {
            Content::Directory { seen, .. } => Ok(seen),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn names_mut(&mut self, dir: NodeId) -> Outcome<&mut Names> {
        match &mut self.node_mut(dir)?.content {
            Content::Directory { seen, .. } => Ok(seen),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// The node at a path; `..` goes up by name, and there are no links.
    pub(super) fn find(&self, path: &Path) -> Outcome<NodeId> {
        let mut id = ROOT;
        for name in steps(path) {
            id = *self.names(id)?.get(name).ok_or(Errno::NOENT)?;
        }
        Ok(id)
    }

    /// The directory that a path is in, and its name there.
    fn parent<'a>(&self, path: &'a Path) -> Outcome<(NodeId, &'a OsStr)> {
        let mut steps = steps(path);
        let name = steps.pop().ok_or(Errno::BUSY)?;
        let mut dir = ROOT;
        for step in steps {
            dir = *self.names(dir)?.get(step).ok_or(Errno::NOENT)?;
        }
        self.names(dir)?;
        Ok((dir, name))
    }

    /// Makes a file or directory where there is none.
    pub(super) fn create(&mut self, path: &Path, content: Content) -> Outcome<NodeId> {
        let (dir, name) = self.parent(path)?;
        if self.names(dir)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        self.now_ms += 1;
        let mode = if matches!(content, Content::Directory { .. }) { 0o755 } else { 0o644 };
        let id = self.add(content, mode);
        self.names_mut(dir)?.insert(name.to_owned(), id);
        let place = Some((dir, name.to_owned()));
        self.pending.push(Change { node: id, place, directories: [dir, dir] });
        Ok(id)
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> Outcome<()> {
        let (dir, name) = self.parent(path)?;
        let id = *self.names(dir)?.get(name).ok_or(Errno::NOENT)?;
        if self.names(id).is_ok() {
            return Err(Errno::ISDIR);
        }
        self.names_mut(dir)?.remove(name);
        self.pending.push(Change { node: id, place: None, directories: [dir, dir] });
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> Outcome<()> {
        let (dir, name) = self.parent(path)?;
        let id = *self.names(dir)?.get(name).ok_or(Errno::NOENT)?;
        if !self.names(id)?.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        self.names_mut(dir)?.remove(name);
        self.pending.push(Change { node: id, place: None, directories: [dir, dir] });
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Outcome<()> {
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        let id = *self.names(from_dir)?.get(from_name).ok_or(Errno::NOENT)?;
        let target = self.names(to_dir)?.get(to_name).copied();
        if target == Some(id) {
            return Ok(());
        }
        let is_directory = self.names(id).is_ok();
        if is_directory && steps(to).starts_with(&steps(from)) {
            return Err(Errno::INVAL);
        }
        if let Some(target) = target {
            match self.names(target) {
                // A directory goes only over an empty one; one above its own origin never is.
                Ok(names) if is_directory && names.is_empty() => {}
                Ok(_) if is_directory || steps(from).starts_with(&steps(to)) => {
                    return Err(Errno::NOTEMPTY);
                }
                Ok(_) => return Err(Errno::ISDIR),
                Err(_) if is_directory => return Err(Errno::NOTDIR),
                Err(_) => {}
            }
        }
        self.names_mut(from_dir)?.remove(from_name);
        self.names_mut(to_dir)?.insert(to_name.to_owned(), id);
        let place = Some((to_dir, to_name.to_owned()));
        self.pending.push(Change { node: id, place, directories: [from_dir, to_dir] });
        Ok(())
    }

    /// Makes the names of a directory durable.
    pub(super) fn sync_directory(&mut self, dir: NodeId) -> Outcome<()> {
        self.names(dir)?;
        let pending = std::mem::take(&mut self.pending);
        let is_synced = |change: &Change| change.directories.contains(&dir);
        for (number, change) in pending.iter().enumerate() {
            if is_synced(change) {
                self.apply(change);
                continue;
            }
            // An older place of a node is of no interest once a newer one is durable.
            let later = pending.get(number..).unwrap_or_default();
            if !later.iter().any(|other| other.node == change.node && is_synced(other)) {
                self.pending.push(change.clone());
            }
        }
        Ok(())
    }

    /// Makes everything durable.
    pub(super) fn sync_all(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            self.apply(&change);
        }
        for node in &mut self.nodes {
            if let Content::File(body) = &mut node.content {
                body.sync();
            }
        }
    }

    /// What a power cut leaves: nothing in it is pending.
    pub(super) fn after_crash(&self, fate: &mut Fate) -> Tree {
        let mut left = self.clone();
        left.pending = Vec::new();
        let spared = fate.spared_names(self.pending.len());
        for (change, _) in self.pending.iter().zip(spared).filter(|(_, is_spared)| *is_spared) {
            left.apply(change);
        }
        for node in &mut left.nodes {
            match &mut node.content {
                Content::File(body) => *body = body.after_crash(fate),
                Content::Directory { seen, durable } => seen.clone_from(durable),
                Content::Other(_) => {}
            }
        }
        left
    }

    /// Carries one change of names over.
    fn apply(&mut self, change: &Change) {
        let old = self.nodes.get_mut(change.node).and_then(|node| node.durable_place.take());
        if let Some((dir, name)) = old
            && let Some(durable) = self.durable_mut(dir)
        {
            durable.remove(&name);
        }
        let Some((dir, name)) = &change.place else { return };
        let Some(durable) = self.durable_mut(*dir) else { return };
        let displaced = durable.insert(name.clone(), change.node);
        if let Some(node) = displaced.and_then(|id| self.nodes.get_mut(id)) {
            node.durable_place = None;
        }
        if let Some(node) = self.nodes.get_mut(change.node) {
            node.durable_place = change.place.clone();
        }
    }

    fn durable_mut(&mut self, dir: NodeId) -> Option<&mut Names> {
        match &mut self.nodes.get_mut(dir)?.content {
            Content::Directory { durable, .. } => Some(durable),
            _ => None,
        }
    }
}

/// An empty directory.
pub(super) fn directory() -> Content {
    Content::Directory { seen: Names::new(), durable: Names::new() }
}

/// The names on the way from the root.
fn steps(path: &Path) -> Vec<&OsStr> {
    let mut steps = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => steps.push(name),
            Component::ParentDir => {
                steps.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    steps
}
