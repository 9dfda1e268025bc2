//! The sources of the repository, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file.
#[derive(Debug)]
pub struct Source {
    /// Its path from the root of the repository.
    pub name: String,
    /// All of it.
    pub text: String,
}

impl Source {
    /// Its lines without comments and without the tests at its end.
    #[must_use]
    pub fn code(&self) -> String {
        let lines = self.text.lines().take_while(|line| *line != "#[cfg(test)]");
        let code: Vec<&str> =
            lines.map(|line| line.split("//").next().unwrap_or_default()).collect();
        code.join("\n")
    }
}

/// The root of the repository.
///
/// # Panics
///
/// Never: these tests are a folder of it.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root of the repository")
}

/// All Rust sources below these folders of the repository.
///
/// # Panics
///
/// When one cannot be read, or there are none.
#[must_use]
pub fn sources(folders: &[&str]) -> Vec<Source> {
    let mut waiting: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut sources = Vec::new();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory").filter_map(Result::ok);
            waiting.extend(entries.map(|entry| entry.path()));
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let name = path.strip_prefix(root()).expect("a path below the root");
            sources.push(Source { name: name.display().to_string(), text });
        }
    }
    assert!(!sources.is_empty(), "{folders:?} have no sources");
    sources
}
