//! What the black-box tests share: log directories that a real Kafka wrote, what Kafka's own
//! classes say about them, damaged inputs with the right answers, and the command line under test.

pub mod archive;
pub mod cases;
pub mod citations;
pub mod columns;
pub mod compacted;
pub mod expect;
pub mod kits;
pub mod live;
pub mod logs;
pub mod model;
pub mod moto;
pub mod nodes;
pub mod remote;
pub mod replicas;
pub mod sources;
pub mod tool;
pub mod turns;

use std::path::Path;

use sha2::{Digest, Sha256};

/// Lower-case hexadecimal of some bytes.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of some bytes, as lower-case hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Every file below `dir` with its size and SHA-256, sorted by path: the form of an expectation's
/// file lists.
///
/// # Panics
///
/// When something below `dir` cannot be read.
#[must_use]
pub fn file_sums(dir: &Path) -> Vec<(String, u64, String)> {
    fn walk(root: &Path, dir: &Path, sums: &mut Vec<(String, u64, String)>) {
        for entry in std::fs::read_dir(dir).expect("a directory that can be listed") {
            let path = entry.expect("an entry that can be read").path();
            let kind = path.symlink_metadata().expect("a file that stays").file_type();
            let name =
                path.strip_prefix(root).expect("a path below the root").display().to_string();
            if kind.is_dir() {
                walk(root, &path, sums);
            } else if kind.is_symlink() {
                let target = std::fs::read_link(&path).expect("a link that can be read");
                sums.push((name, 0, format!("-> {}", target.display())));
            } else {
                let bytes = std::fs::read(&path).expect("a file that can be read");
                sums.push((name, bytes.len() as u64, sha256(&bytes)));
            }
        }
    }
    let mut sums = Vec::new();
    walk(dir, dir, &mut sums);
    sums.sort();
    sums
}
