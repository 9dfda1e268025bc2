//! A packed folder tree, held in memory without its runs of zeros.
//!
//! Index files of a killed broker are 10 MiB of zeros on paper: a kit of a few megabytes unpacks to
//! hundreds. So files are kept as the blocks that are not zero, and unpacked as sparse files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Zero blocks of this size are left out.
const BLOCK_SIZE: usize = 16 * 1024;

/// The blocks of a file that are not all zero, by position.
#[derive(Debug, Default)]
struct SparseBytes {
    size_bytes: u64,
    blocks: Vec<(u64, Vec<u8>)>,
}

#[derive(Debug)]
enum Node {
    Directory,
    File(SparseBytes),
    Link(PathBuf),
}

/// A packed folder tree.
#[derive(Debug)]
pub struct Archive {
    nodes: BTreeMap<String, Node>,
}

impl Archive {
    /// Reads a `.tar.zst` file of `tests/data`.
    ///
    /// # Panics
    ///
    /// When there is no such file, or it is no archive.
    #[must_use]
    pub fn open(name: &str) -> Archive {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
        let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut decoder = zstd::Decoder::new(file).expect("a decoder");
        decoder.window_log_max(27).expect("a window of 128 MiB");
        let mut archive = tar::Archive::new(decoder);
        let mut nodes = BTreeMap::new();
        for entry in archive.entries().expect("a tar archive") {
            let mut entry = entry.expect("a whole entry");
            let path = entry.path().expect("a path").display().to_string();
            let path = path.trim_start_matches("./").trim_end_matches('/').to_owned();
            let kind = entry.header().entry_type();
            let node = if kind.is_dir() {
                Node::Directory
            } else if kind.is_symlink() {
                let target = entry.link_name().expect("a target").expect("a target");
                Node::Link(target.into_owned())
            } else {
                Node::File(read_sparse(&mut entry))
            };
            nodes.insert(path, node);
        }
        Archive { nodes }
    }

    /// The names directly below a folder (empty: the root), sorted.
    #[must_use]
    pub fn list(&self, folder: &str) -> Vec<&str> {
        self.below(folder).map(|(name, _)| name).filter(|name| !name.contains('/')).collect()
    }

    /// Whether there is such a folder.
    #[must_use]
    pub fn has_folder(&self, folder: &str) -> bool {
        matches!(self.nodes.get(folder), Some(Node::Directory))
    }

    /// The bytes of a file, or `None` when there is none.
    ///
    /// # Panics
    ///
    /// When the file does not fit in memory.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        let Node::File(file) = self.nodes.get(path)? else { return None };
        let mut bytes = vec![0; usize::try_from(file.size_bytes).expect("a size in memory")];
        for (position, block) in &file.blocks {
            let start = usize::try_from(*position).expect("a position in memory");
            bytes[start..start + block.len()].copy_from_slice(block);
        }
        Some(bytes)
    }

    /// Writes everything below a folder to `target`, which is made.
    ///
    /// # Panics
    ///
    /// When the disk says no.
    pub fn unpack(&self, folder: &str, target: &Path) {
        fs::create_dir_all(target).expect("a new directory");
        for (name, node) in self.below(folder) {
            let path = target.join(name);
            match node {
                Node::Directory => fs::create_dir_all(&path).expect("a new directory"),
                Node::Link(to) => std::os::unix::fs::symlink(to, &path).expect("a new link"),
                Node::File(bytes) => {
                    let file = File::create(&path).expect("a new file");
                    file.set_len(bytes.size_bytes).expect("a length");
                    for (position, block) in &bytes.blocks {
                        file.write_all_at(block, *position).expect("room on the disk");
                    }
                }
            }
        }
    }

    fn below<'a>(&'a self, folder: &str) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let range = self.nodes.range(prefix.clone()..);
        range
            .take_while({
                let prefix = prefix.clone();
                move |(path, _)| path.starts_with(&prefix)
            })
            .map(move |(path, node)| (&path[prefix.len()..], node))
            .filter(|(name, _)| !name.is_empty())
    }
}

fn read_sparse(reader: &mut impl Read) -> SparseBytes {
    const ZEROS: [u8; BLOCK_SIZE] = [0; BLOCK_SIZE];
    let mut bytes = SparseBytes::default();
    loop {
        let mut block = Vec::new();
        reader.take(BLOCK_SIZE as u64).read_to_end(&mut block).expect("a whole entry");
        if block.is_empty() {
            return bytes;
        }
        let position = bytes.size_bytes;
        bytes.size_bytes += block.len() as u64;
        if block != ZEROS[..block.len()] {
            bytes.blocks.push((position, block));
        }
    }
}
