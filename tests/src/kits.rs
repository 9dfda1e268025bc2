//! Kits: log directories that a real Kafka 4.3.1 wrote, each in several states.
//!
//! `Kit::open("basic").state("unclean").unpack()` gives a fresh copy in a temporary directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use tempfile::TempDir;

use crate::archive::Archive;
use crate::expect::Expectation;

/// The names of all kits.
pub const KITS: [&str; 7] = ["basic", "cluster", "compact", "legacy", "tiered", "tinyindex", "txn"];

/// One kit: a few topics in several states.
#[derive(Clone, Debug)]
pub struct Kit {
    name: &'static str,
    archive: Arc<Archive>,
    case: Arc<Value>,
}

impl Kit {
    /// Opens a kit; its archive is read once in a process.
    ///
    /// # Panics
    ///
    /// When there is no kit of that name.
    #[must_use]
    pub fn open(name: &str) -> Kit {
        static OPENED: OnceLock<Mutex<BTreeMap<&'static str, Kit>>> = OnceLock::new();
        let name = KITS.into_iter().find(|&known| known == name).expect("the name of a kit");
        let mut opened = OPENED.get_or_init(Mutex::default).lock().expect("no panic while opening");
        let read = || {
            let archive = Archive::open(&format!("kits/{name}.tar.zst"));
            let case = archive.read("case.json").expect("case.json in the kit");
            let case = serde_json::from_slice(&case).expect("JSON in case.json");
            Kit { name, archive: Arc::new(archive), case: Arc::new(case) }
        };
        opened.entry(name).or_insert_with(read).clone()
    }

    /// All kits.
    #[must_use]
    pub fn all() -> Vec<Kit> {
        KITS.into_iter().map(Kit::open).collect()
    }

    /// The kit's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The kit's `case.json`: topic configs, and what was done to each state.
    #[must_use]
    pub fn case(&self) -> &Value {
        &self.case
    }

    /// The states that have a data directory, sorted by name.
    #[must_use]
    pub fn states(&self) -> Vec<State> {
        let names = self.archive.list("").into_iter();
        names
            .filter(|name| self.archive.has_folder(&format!("{name}/data")))
            .map(|name| self.state(name))
            .collect()
    }

    /// One state.
    ///
    /// # Panics
    ///
    /// When the kit has no such state.
    #[must_use]
    pub fn state(&self, name: &str) -> State {
        let known = self.archive.has_folder(&format!("{name}/data"));
        assert!(known, "kit {} has no state {name}", self.name);
        State { kit: self.clone(), name: name.to_owned() }
    }
}

/// One state of a kit.
#[derive(Clone, Debug)]
pub struct State {
    kit: Kit,
    name: String,
}

impl State {
    /// The kit it belongs to.
    #[must_use]
    pub fn kit(&self) -> &Kit {
        &self.kit
    }

    /// The state's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kit and state in one word, for messages.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}/{}", self.kit.name, self.name)
    }

    /// The clock of this state, in milliseconds since 1970: recovery at this time gives the
    /// expected bytes.
    ///
    /// # Panics
    ///
    /// When `case.json` does not say.
    #[must_use]
    pub fn at_ms(&self) -> i64 {
        self.kit.case["states"][&self.name]["atMs"].as_i64().expect("atMs of the state")
    }

    /// Whether Kafka was stopped cleanly in this state.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.read("data/.kafka_cleanshutdown").is_some()
    }

    /// The names of the partition directories, sorted.
    #[must_use]
    pub fn partitions(&self) -> Vec<String> {
        let folder = format!("{}/data", self.name);
        let names = self.kit.archive.list(&folder).into_iter();
        let is_partition = |name: &&str| {
            name.rsplit_once('-').is_some_and(|(_, number)| number.parse::<u32>().is_ok())
        };
        names.filter(is_partition).map(str::to_owned).collect()
    }

    /// The names of the files of a partition, sorted.
    #[must_use]
    pub fn files(&self, partition: &str) -> Vec<String> {
        let names = self.kit.archive.list(&format!("{}/data/{partition}", self.name));
        names.into_iter().map(str::to_owned).collect()
    }

    /// The bytes of one file of the state, named from the state's folder: `data/PARTITION/FILE`.
    #[must_use]
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.kit.archive.read(&format!("{}/{path}", self.name))
    }

    /// What Kafka's own classes say about a partition; `None` when they were not asked.
    ///
    /// # Panics
    ///
    /// When the expectation is not of the form that is documented in [`crate::expect`].
    #[must_use]
    pub fn expectation(&self, partition: &str) -> Option<Expectation> {
        let path = format!("expect/{}/{partition}.json", self.name);
        let bytes = self.kit.archive.read(&path)?;
        let parsed = serde_json::from_slice(&bytes);
        Some(parsed.unwrap_or_else(|error| panic!("{} {path}: {error}", self.kit.name)))
    }

    /// A fresh copy on the disk, which goes when the result is dropped.
    ///
    /// # Panics
    ///
    /// When the disk says no.
    #[must_use]
    pub fn unpack(&self) -> Unpacked {
        let dir = TempDir::with_prefix("siltstone-kit-").expect("a temporary directory");
        self.kit.archive.unpack(&self.name, dir.path());
        let case = self.kit.archive.read("case.json").expect("case.json in the kit");
        std::fs::write(dir.path().join("case.json"), case).expect("room on the disk");
        Unpacked { dir }
    }
}

/// A copy of a state in a temporary directory.
#[derive(Debug)]
pub struct Unpacked {
    dir: TempDir,
}

impl Unpacked {
    /// The directory that holds all of it.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Kafka's `log.dirs`: partition directories and checkpoint files.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.root().join("data")
    }

    /// The KRaft metadata log of the same node.
    #[must_use]
    pub fn metadata(&self) -> PathBuf {
        self.root().join("metadata")
    }

    /// The folder of the remote tier; only the tiered kit has one.
    #[must_use]
    pub fn remote(&self) -> PathBuf {
        self.root().join("remote")
    }

    /// The kit's `case.json`, for `--topic-configs`.
    #[must_use]
    pub fn case_file(&self) -> PathBuf {
        self.root().join("case.json")
    }

    /// One partition directory.
    #[must_use]
    pub fn partition(&self, name: &str) -> PathBuf {
        self.data().join(name)
    }
}
