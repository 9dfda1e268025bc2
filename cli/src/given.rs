//! Which of the paths that were given are to be looked at, each of them once?

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use siltstone::log::{FolderKind, FolderName};

use crate::session::complain;

/// The paths without those that name what another one names, or a partition in use of a log
/// directory that is given, too: nothing is counted twice, and no partition stands in two
/// directories because one is named twice. What is left out is said.
pub(crate) fn distinct(paths: &[PathBuf]) -> Vec<PathBuf> {
    let real: Vec<Option<PathBuf>> =
        paths.iter().map(|path| std::fs::canonicalize(path).ok()).collect();
    let mut first: HashMap<&Path, &Path> = HashMap::new();
    for (path, real) in paths.iter().zip(&real) {
        if let Some(real) = real {
            first.entry(real).or_insert(path);
        }
    }
    let mut kept = Vec::new();
    for (path, real) in paths.iter().zip(&real) {
        let other = real.as_deref().and_then(|real| {
            let same = first.get(real).filter(|first| **first != path.as_path());
            same.or_else(|| home_of(real).and_then(|home| first.get(home)))
        });
        let is_again = kept.contains(path);
        match other.copied().or(is_again.then_some(path.as_path())) {
            None => kept.push(path.clone()),
            Some(other) => complain(&format_args!(
                "{}: left out, it is looked at with {}",
                path.display(),
                other.display()
            )),
        }
    }
    kept
}

/// The directory around a partition in use.
fn home_of(dir: &Path) -> Option<&Path> {
    let folder = FolderName::of_dir(dir)?;
    let is_looked_at = matches!(folder.kind, FolderKind::Live | FolderKind::Future);
    dir.parent().filter(|_| is_looked_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directory_is_looked_at_once() {
        let name = format!("siltstone-given-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let at = |name: &str| root.join(name);
        std::fs::create_dir_all(at("a/orders-0")).unwrap();
        std::fs::create_dir_all(at("a/orders-0.12-stray")).unwrap();
        std::fs::create_dir(at("b")).unwrap();
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        let kept = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(|name| at(name)).collect();
            let kept = distinct(&paths).into_iter();
            kept.map(|path| path.strip_prefix(&root).unwrap().display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(&["a", "b", "gone"]), ["a", "b", "gone"]);
        assert_eq!(kept(&["a", "a", "link", "b/../a"]), ["a"]);
        assert_eq!(kept(&["a/orders-0", "b", "link"]), ["b", "link"]);
        // What a look at the directory passes over was asked for.
        assert_eq!(kept(&["a", "a/orders-0.12-stray"]), ["a", "a/orders-0.12-stray"]);
        assert_eq!(kept(&["gone", "gone"]), ["gone"]);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
