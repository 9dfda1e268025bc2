//! How does a directory leave the disk with all that is in it?

use std::path::Path;

use crate::error::{Kind, Result};
use crate::io::Storage;

/// `EISDIR`: what unlinking says of a directory.
const IS_A_DIRECTORY: i32 = 21;

/// Removes a directory and everything below it, but nothing that is only linked to. One that is
/// gone already is none to remove.
///
/// # Errors
/// The first thing that could not be removed; what else could be was.
pub fn remove_tree(storage: &dyn Storage, dir: &Path) -> Result<()> {
    let mut waiting = vec![dir.to_path_buf()];
    let mut found = Vec::new();
    let mut outcome = Ok(());
    while let Some(dir) = waiting.pop() {
        let entries = match storage.list(&dir) {
            Err(error) if error.kind() == Kind::NotFound => continue,
            other => other?,
        };
        for entry in entries {
            let path = dir.join(&entry.name);
            // Not asked for what it is: a link to a directory is unlinked like a file.
            match storage.remove_file(&path) {
                Err(error) if error.errno() == Some(IS_A_DIRECTORY) => waiting.push(path),
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => outcome = outcome.and(Err(error)),
                Ok(()) => {}
            }
        }
        found.push(dir);
    }
    outcome?;
    for dir in found.iter().rev() {
        match storage.remove_dir(dir) {
            Err(error) if error.kind() == Kind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::io::Disk;

    #[test]
    fn a_tree_goes_and_what_it_links_to_stays() {
        let home = tempfile::tempdir().unwrap();
        let (dir, other) = (home.path().join("t-0"), home.path().join("other"));
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::fs::create_dir(&other).unwrap();
        for path in [dir.join("x"), dir.join("a/y"), dir.join("a/b/z"), other.join("kept")] {
            std::fs::write(path, b"x").unwrap();
        }
        std::os::unix::fs::symlink(&other, dir.join("link")).unwrap();
        remove_tree(&Disk::new(), &dir).unwrap();
        assert!(!dir.exists());
        assert!(other.join("kept").exists());
        remove_tree(&Disk::new(), &dir).unwrap();
    }
}
