//! Engines for tests: several log directories on the simulated disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::Result;
use siltstone::dir::engine::{CloseReport, Engine, EngineOptions, Identity, LoadReport, NewLog};
use siltstone::io::sim::Entry;
use siltstone::io::{SimDisk, Storage};
use siltstone::log::{AppendInfo, AppendScratch, LeaderAppend, Log, LogConfig};
use siltstone::state::OffsetCheckpoint;
use siltstone::uuid::Uuid;

use crate::live::{TestBatch, records};

/// A node with log directories on a disk.
pub struct TestNode {
    /// The disk.
    pub disk: SimDisk,
    /// The log directories.
    pub dirs: Vec<PathBuf>,
    /// The settings of all topics.
    pub config: LogConfig,
    /// Whose the directories are.
    pub identity: Option<Identity>,
    /// The topics whose logs are not assigned to the node.
    pub stray: Vec<String>,
    /// Files that may be open at once.
    pub open_files_max: usize,
    /// How many logs may be compacted at once; none, unless said.
    pub cleaners: usize,
    /// The clock.
    pub now_ms: i64,
    /// What came of the last start.
    pub report: LoadReport,
    engine: Option<Engine>,
}

impl TestNode {
    /// A node with so many directories, `/a`, `/b` and so on, on a new disk.
    #[must_use]
    pub fn new(dirs: u8) -> Self {
        let mut node = TestNode::on(SimDisk::new(), dirs);
        node.start();
        node
    }

    /// A node on a disk, not started yet. Logs have segments of 1 KiB and are kept for 10 minutes.
    #[must_use]
    pub fn on(disk: SimDisk, dirs: u8) -> Self {
        let dirs = (0..dirs).map(|n| PathBuf::from(format!("/{}", char::from(b'a' + n))));
        TestNode {
            disk,
            dirs: dirs.collect(),
            config: LogConfig {
                segment_bytes: 1024,
                segment_index_bytes: 1200,
                retention_ms: 600_000,
                ..LogConfig::default()
            },
            identity: None,
            stray: Vec::new(),
            open_files_max: 1000,
            cleaners: 0,
            now_ms: 1_700_000_010_000,
            report: LoadReport::default(),
            engine: None,
        }
    }

    /// Opens all directories.
    ///
    /// # Errors
    ///
    /// Those of the engine.
    pub fn try_start(&mut self) -> Result<()> {
        let config = |_: &str| self.config.clone();
        let is_stray = |topic: &str, _: i32, _: Option<Uuid>| self.stray.iter().any(|t| t == topic);
        let options = EngineOptions {
            identity: self.identity.as_ref(),
            is_stray: (!self.stray.is_empty()).then_some(&is_stray),
            open_files_max: self.open_files_max,
            cleaners: self.cleaners,
            ..EngineOptions::new(&config, self.now_ms)
        };
        self.engine = None;
        let (engine, report) = Engine::open(Arc::new(self.disk.clone()), &self.dirs, &options)?;
        self.engine = Some(engine);
        self.report = report;
        Ok(())
    }

    /// The same.
    ///
    /// # Panics
    ///
    /// When it fails.
    pub fn start(&mut self) {
        self.try_start().expect("a node that starts");
    }

    /// The engine.
    ///
    /// # Panics
    ///
    /// When it is not open.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("a node that runs")
    }

    /// Stops in order.
    ///
    /// # Panics
    ///
    /// When it does not run.
    pub fn stop(&mut self, broker_epoch: i64) -> CloseReport {
        let engine = self.engine.take().expect("a node that runs");
        engine.close(broker_epoch, 1)
    }

    /// Stops without a word.
    pub fn kill(&mut self) {
        self.engine = None;
    }

    /// The log of partition 0 of a topic, made if it is missing.
    ///
    /// # Panics
    ///
    /// When it cannot be had.
    #[must_use]
    pub fn log(&self, topic: &str) -> Arc<Log> {
        let new = NewLog { config: self.config.clone(), now_ms: self.now_ms, ..NewLog::default() };
        self.engine().get_or_create(topic, 0, &new).expect("a log")
    }

    /// Appends as the leader of epoch 0, and takes it for replicated.
    ///
    /// # Panics
    ///
    /// When it is refused.
    pub fn append(&self, log: &Log, batch: &TestBatch) -> AppendInfo {
        let append = LeaderAppend::client(0, self.now_ms);
        let info = log.append_as_leader(&mut batch.build(), &append, &mut AppendScratch::new());
        let info = info.expect("a batch that is taken");
        log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
        info
    }

    /// Appends so many records, one a batch.
    pub fn fill(&self, log: &Log, count: usize) {
        for _ in 0..count {
            self.append(log, &records(1));
        }
    }

    /// Runs everything that is due until nothing is.
    ///
    /// # Panics
    ///
    /// When some of it fails.
    pub fn run_due(&self) {
        loop {
            let due = self.engine().due_work(self.now_ms);
            if due.is_empty() {
                return;
            }
            for work in due {
                let outcome = self.engine().run(&work, self.now_ms);
                outcome.unwrap_or_else(|error| panic!("{:?}: {error}", work.kind()));
            }
        }
    }

    /// The bytes of a file.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.disk.read(Path::new(path), 1 << 20).ok()
    }

    /// What a checkpoint says of partition 0 of a topic.
    ///
    /// # Panics
    ///
    /// When there is none that can be read.
    #[must_use]
    pub fn line(&self, path: &str, topic: &str) -> Option<i64> {
        let bytes = self.file(path).expect("a checkpoint");
        OffsetCheckpoint::parse(&bytes).expect("lines").get(topic, 0)
    }

    /// The names in a directory, sorted.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn names(&self, dir: &str) -> Vec<String> {
        let entries = self.disk.list(Path::new(dir)).expect("a directory");
        entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect()
    }

    /// The folders in a directory, sorted.
    ///
    /// # Panics
    ///
    /// When there is none.
    #[must_use]
    pub fn folders(&self, dir: &str) -> Vec<String> {
        let found = self.disk.snapshot(Path::new(dir)).expect("a directory").entries;
        let folders = found.iter().filter(|(_, entry)| matches!(entry, Entry::Directory));
        folders.map(|(path, _)| path.display().to_string()).collect()
    }
}
