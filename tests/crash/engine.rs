//! A node lives on two log directories, and the power goes at every change of the disk: while logs
//! are made, deleted and moved from one directory to the other, checkpoints are written, and
//! everything is closed.
//!
//! Whatever is left is opened: every log is there with what was made durable of it, and no more
//! than was written; and a directory that says that it was stopped cleanly has all of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use siltstone::dir::engine::{
    CheckpointFile, DueWork, Engine, EngineOptions, LoadReport, LogLoaded, NewLog, WorkKind,
};
use siltstone::error::Kind;
use siltstone::io::SimDisk;
use siltstone::io::sim::Operation;
use siltstone::log::{FetchOptions, Isolation, Log, LogConfig};
use siltstone::record::batch::compute_crc;
use siltstone::record::validate::Batches;
use siltstone::{Error, Result};
use siltstone_tests::live::records;

/// What a power cut spares: the extremes, and mixtures.
const SEEDS: [u64; 6] = [0, 1, 2, 4, 5, 6];
const NOW_MS: i64 = 1_700_000_010_000;
const EACCES: i32 = 13;
const EIO: i32 = 5;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;

/// What may be left of a topic's log.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Where it may end.
    durable: i64,
    written: i64,
    /// It may not be there.
    may_be_absent: bool,
    /// It must not be there.
    is_gone: bool,
    /// It may be in both directories.
    may_be_twice: bool,
    /// It may have been made anew.
    may_be_new: bool,
}

struct Node {
    disk: SimDisk,
    engine: Option<Engine>,
    known: BTreeMap<&'static str, Known>,
    /// Markers may be there.
    is_stopping: bool,
    now_ms: i64,
}

fn config() -> LogConfig {
    LogConfig { segment_bytes: 300, segment_index_bytes: 120, ..LogConfig::default() }
}

fn dirs() -> [PathBuf; 2] {
    ["/a".into(), "/b".into()]
}

fn open(disk: &SimDisk) -> Result<(Engine, LoadReport)> {
    let config = |_: &str| config();
    let options = EngineOptions::new(&config, NOW_MS);
    Engine::open(Arc::new(disk.clone()), &dirs(), &options)
}

impl Node {
    fn new(disk: SimDisk) -> Self {
        let known = BTreeMap::new();
        Node { disk, engine: None, known, is_stopping: false, now_ms: NOW_MS }
    }

    fn start(&mut self) -> Result<()> {
        let (engine, _) = open(&self.disk)?;
        if let Some((_, error)) = engine.offline_dirs().pop() {
            return Err(error);
        }
        self.engine = Some(engine);
        self.is_stopping = false;
        Ok(())
    }

    fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("an engine")
    }

    fn make(&mut self, topic: &'static str, is_future: bool) -> Result<Arc<Log>> {
        let known = self.known.entry(topic).or_default();
        if !is_future {
            *known = Known { may_be_absent: true, ..Known::default() };
        }
        let new = NewLog {
            config: config(),
            is_future,
            preferred: is_future.then(|| "/b".into()),
            now_ms: self.now_ms,
            ..NewLog::default()
        };
        let log = self.engine().get_or_create(topic, 0, &new)?;
        self.known.entry(topic).or_default().may_be_absent = false;
        Ok(log)
    }

    fn fill(&mut self, topic: &'static str, count: i64) -> Result<()> {
        let log = self.engine().log(topic, 0)?.expect("a log");
        self.known.entry(topic).or_default().written += count;
        append(&log, count, self.now_ms)
    }

    fn flush(&mut self, topic: &'static str) -> Result<()> {
        let log = self.engine().log(topic, 0)?.expect("a log");
        self.engine().flush(&[log], self.now_ms).into_iter().collect::<Result<()>>()?;
        let known = self.known.entry(topic).or_default();
        known.durable = known.written;
        Ok(())
    }

    fn run_due(&self) -> Result<()> {
        for work in self.engine().due_work(self.now_ms) {
            self.engine().run(&work, self.now_ms)?;
        }
        Ok(())
    }

    fn delete(&mut self, topic: &'static str) -> Result<()> {
        self.known.entry(topic).or_default().may_be_absent = true;
        self.engine().delete(topic, 0, self.now_ms)?;
        self.known.entry(topic).or_default().is_gone = true;
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        self.is_stopping = true;
        let engine = self.engine.take().expect("an engine");
        let has_failed = !engine.offline_dirs().is_empty();
        self.known.values_mut().for_each(|known| known.may_be_twice |= has_failed);
        for dir in engine.close(3, 1).dirs {
            dir.errors.into_iter().next().map_or(Ok(()), Err)?;
            if !dir.is_clean {
                return Err(Error::new(Kind::Io, "a log could not be opened"));
            }
        }
        self.known.values_mut().for_each(|known| known.durable = known.written);
        Ok(())
    }

    /// Everything, one step after another; the first error ends it.
    fn live(&mut self) -> Result<()> {
        self.start()?;
        for topic in ["one", "two"] {
            self.make(topic, false)?;
            self.fill(topic, 7)?;
            self.flush(topic)?;
        }
        for file in CheckpointFile::ALL {
            self.engine().checkpoint(file)?;
        }
        self.fill("one", 3)?;
        let future = self.make("one", true)?;
        append(&future, 10, self.now_ms)?;
        self.known.entry("one").or_default().may_be_twice = true;
        self.engine().replace_current_with_future("one", 0, self.now_ms)?;
        let known = self.known.entry("one").or_default();
        (known.may_be_twice, known.durable) = (false, known.written);
        self.delete("two")?;
        self.now_ms += 60_000;
        self.run_due()?;
        self.known.entry("two").or_default().may_be_new = true;
        self.make("two", false)?;
        self.fill("two", 2)?;
        self.flush("two")?;
        self.fill("one", 2)?;
        self.run_due()?;
        self.stop()?;
        self.start()?;
        self.fill("two", 1)?;
        self.stop()
    }
}

/// Appends records behind the end, one a batch, and takes them for replicated.
fn append(log: &Log, count: i64, now_ms: i64) -> Result<()> {
    for _ in 0..count {
        let batch = records(1).at(log.log_end_offset()).epoch(0).build();
        log.append_as_follower(&batch, 0, now_ms)?;
        log.update_high_watermark(log.log_end_offset())?;
    }
    Ok(())
}

fn whole_log() -> FetchOptions {
    FetchOptions { max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_message: true }
}

/// Reads everything. Up to `durable` no offset is missing. Behind it one may be: a segment can be
/// on the disk before the end of the one in front of it, and a log that ends between two batches
/// looks whole, to Kafka too.
fn read(log: &Log, durable: i64) {
    let options = whole_log();
    let mut offset = log.log_start_offset();
    while offset < log.log_end_offset() {
        let fetched = log.read(offset, &options).expect("records");
        if fetched.bytes.is_empty() {
            break;
        }
        for batch in Batches::new(&fetched.bytes) {
            let header = batch.expect("a batch").header;
            assert!(header.base_offset == offset || header.base_offset > offset.max(durable));
            offset = header.next_offset();
        }
    }
    assert!(offset >= durable && offset <= log.log_end_offset(), "{offset} of {durable}");
}

fn check(node: &Node, disk: &SimDisk, when: &str) {
    let (engine, report) = open(disk).unwrap_or_else(|error| panic!("{when}: {error}"));
    let offline = engine.offline_dirs();
    assert!(offline.is_empty(), "{when}: {offline:?}");
    let mut ends = Vec::new();
    for (topic, known) in &node.known {
        let found = engine.log(topic, 0);
        let when = format!("{when}: {topic} {known:?}");
        match found {
            Ok(Some(log)) => {
                assert!(!known.is_gone || known.may_be_new, "{when}");
                let end = log.log_end_offset();
                assert!((known.durable..=known.written).contains(&end), "{when}: ends at {end}");
                read(&log, known.durable);
                let was_clean = report
                    .dirs
                    .iter()
                    .any(|dir| dir.was_clean && Some(dir.path.as_path()) == log.dir().parent());
                assert!(!was_clean || (node.is_stopping && end == known.written), "{when}: {end}");
                append(&log, 1, NOW_MS).unwrap_or_else(|error| panic!("{when}: {error}"));
                ends.push((*topic, end + 1));
            }
            Ok(None) => assert!(known.may_be_absent || known.is_gone, "{when}"),
            Err(error) => {
                assert!(known.may_be_twice && error.kind() == Kind::Conflict, "{when}: {error}");
                return;
            }
        }
    }
    let closed = engine.close(4, 1);
    assert!(closed.dirs.iter().all(|dir| dir.is_clean), "{when}: {closed:?}");
    let (engine, report) = open(disk).unwrap_or_else(|error| panic!("{when}: {error}"));
    assert!(report.dirs.iter().all(|dir| dir.was_clean), "{when}");
    for (topic, end) in ends {
        let log = engine.log(topic, 0).expect("a place").expect("a log");
        assert_eq!((log.log_end_offset(), log.recovery_point()), (end, end), "{when}: {topic}");
    }
}

#[test]
fn the_power_goes_at_every_change() {
    let mut uncut = Node::new(SimDisk::new());
    uncut.live().expect("a life without faults");
    let count = uncut.disk.change_count();
    println!("{count} changes of the disk");
    assert!(count > 100);
    (0..count).into_par_iter().for_each(|number| {
        let disk = SimDisk::new();
        disk.crash_at_change(number);
        let mut node = Node::new(disk);
        node.live().expect_err("the power is off");
        let operation = node.disk.operations().pop().expect("an operation");
        node.engine = None;
        for seed in SEEDS {
            let left = node.disk.after_crash(seed);
            check(&node, &left, &format!("change {number} ({operation}), seed {seed}"));
        }
    });
}

/// A disk that lies about syncs, and a power cut later: records may be gone, and so may a log. None
/// is made up, and the node starts and goes on.
#[test]
fn a_lost_sync_of_a_node_costs_records_and_makes_up_none() {
    let mut uncut = Node::new(SimDisk::new());
    uncut.live().expect("a life without faults");
    let operations: Vec<(u64, Operation)> = (0..).zip(uncut.disk.operations()).collect();
    let is_sync = |operation: &Operation| operation.to_string().contains("sync");
    let syncs = operations.iter().filter(|(_, operation)| is_sync(operation));
    let mut losses: Vec<Option<u64>> = syncs.map(|(number, _)| Some(*number)).collect();
    assert!(losses.len() > 30, "{}", losses.len());
    // All of them.
    losses.push(None);
    let (whole, short) = (AtomicU32::new(0), AtomicU32::new(0));
    losses.par_iter().for_each(|lost| {
        let from = lost.map_or(0, |lost| lost + 1);
        // Soon after, and later; and when all is over.
        let is_near = |at: u64| at < from + 20 || (at - from).is_multiple_of(17);
        let cuts = operations
            .iter()
            .filter(|(at, operation)| *at >= from && operation.is_change && is_near(*at));
        let cuts = cuts.map(|(at, _)| Some(*at)).chain([None]);
        for at in cuts {
            let disk = SimDisk::new();
            match lost {
                Some(lost) => disk.lose_sync_at(*lost),
                None => disk.lose_syncs(),
            }
            if let Some(at) = at {
                disk.crash_at(at);
            }
            let mut node = Node::new(disk);
            let outcome = node.live();
            assert_eq!(outcome.is_err(), at.is_some(), "lost {lost:?}, cut at {at:?}");
            node.engine = None;
            for seed in [0, 1, 4] {
                let when = format!("lost {lost:?}, cut at {at:?}, seed {seed}");
                let is_whole = check_after_a_lie(&node, &node.disk.after_crash(seed), &when);
                let count = if is_whole { &whole } else { &short };
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let (whole, short) = (whole.into_inner(), short.into_inner());
    println!("{whole} nodes had all, {short} had not");
    assert!(whole > 1000 && short > 0, "{whole}, {short}");
}

/// Says whether the node has all that was durable. Where it has not, a log is shorter, or says
/// where it cannot be read.
fn check_after_a_lie(node: &Node, disk: &SimDisk, when: &str) -> bool {
    let (engine, report) = open(disk).unwrap_or_else(|error| panic!("{when}: {error}"));
    let offline = engine.offline_dirs();
    assert!(offline.is_empty(), "{when}: {offline:?}");
    let mut is_whole = true;
    // A log that was moved may be back where it came from, too; then it is in neither directory.
    let twice = |refused: &LogLoaded| refused.error.kind() == Kind::Conflict;
    assert!(report.refused.iter().all(twice), "{when}: {:?}", report.refused);
    for (topic, known) in &node.known {
        let when = format!("{when}: {topic} {known:?}");
        let log = match engine.log(topic, 0) {
            Ok(Some(log)) => log,
            Ok(None) => {
                is_whole &= known.is_gone || known.durable == 0;
                continue;
            }
            Err(error) => {
                assert_eq!(error.kind(), Kind::Conflict, "{when}: {error}");
                is_whole = false;
                continue;
            }
        };
        let end = log.log_end_offset();
        // The first log of its name may be back.
        assert!(end <= known.written.max(10), "{when}: ends at {end}");
        is_whole &= is_as_written(&log, &when) && end >= known.durable;
        append(&log, 1, NOW_MS).unwrap_or_else(|error| panic!("{when}: {error}"));
        let options = FetchOptions { max_bytes: 1, ..whole_log() };
        assert_eq!(log.read(end, &options).expect("a record").place.offset, end, "{when}");
    }
    let closed = engine.close(4, 1);
    let is_clean = closed.dirs.iter().all(|dir| dir.is_clean);
    assert!(is_clean == report.refused.is_empty(), "{when}: {closed:?}");
    is_whole
}

/// Whether all batches are there, each as it was written; none may be another one.
fn is_as_written(log: &Log, when: &str) -> bool {
    let mut offset = log.log_start_offset();
    let mut is_whole = true;
    while offset < log.log_end_offset() {
        let fetched = match log.read(offset, &whole_log()) {
            Ok(fetched) => fetched,
            Err(error) => {
                assert_eq!(error.kind(), Kind::Corrupt, "{when}: {error}");
                return false;
            }
        };
        if fetched.bytes.is_empty() {
            return false;
        }
        for batch in Batches::new(&fetched.bytes) {
            let Ok(batch) = batch else { return false };
            let base_offset = batch.header.base_offset;
            is_whole &= base_offset == offset;
            if compute_crc(batch.bytes) != batch.header.crc {
                return false;
            }
            assert_eq!(batch.bytes, records(1).at(base_offset).epoch(0).build(), "{when}");
            offset = batch.header.next_offset();
        }
    }
    is_whole
}

#[test]
fn every_operation_fails_once_and_nothing_durable_is_lost() {
    let mut uncut = Node::new(SimDisk::new());
    uncut.live().expect("a life without faults");
    let operations: Vec<(u64, Operation)> = (0..).zip(uncut.disk.operations()).collect();
    println!("{} operations", operations.len());
    operations.into_par_iter().for_each(|(number, operation)| {
        for errno in [EIO, ENOSPC, EMFILE, EACCES] {
            let when = format!("error {errno} at {number} ({operation})");
            let disk = SimDisk::new();
            disk.fail_at(number, errno);
            let mut node = Node::new(disk);
            let has_failed = node.live().err();
            // The host gives up at the first error: what it leaves is sound, nothing lost.
            if let Some(engine) = node.engine.take() {
                // A log that could not be made in one directory was made in the other, and the
                // first may have it, too, once its disk works again.
                let is_offline = !engine.offline_dirs().is_empty();
                for (topic, known) in &mut node.known {
                    known.may_be_twice |= is_offline;
                    if let Ok(Some(log)) = engine.log(topic, 0) {
                        known.written = log.log_end_offset();
                    }
                }
                if is_passing(errno) {
                    assert!(!is_offline, "{when}: {has_failed:?}");
                    go_on(&mut node, &engine, &when);
                }
                drop(engine.close(3, 1));
                node.is_stopping = true;
            }
            // Nothing is durable that was not made so.
            for seed in if operation.is_change { &[0, 5][..] } else { &[5] } {
                check(&node, &node.disk.after_crash(*seed), &format!("{when}, seed {seed}"));
            }
        }
    });
}

/// Whether an error says nothing of the disk: the directory stays online.
fn is_passing(errno: i32) -> bool {
    matches!(errno, ENOSPC | EMFILE)
}

/// The fault is gone: all that is open is written to, made durable and noted down, but for a log of
/// which a sync failed.
fn go_on(node: &mut Node, engine: &Engine, when: &str) {
    let mut sound = Vec::new();
    for (topic, known) in &mut node.known {
        let Ok(Some(log)) = engine.log(topic, 0) else { continue };
        if log.is_failed() {
            assert!(when.contains("sync"), "{when}: {topic}");
            continue;
        }
        append(&log, 1, node.now_ms).unwrap_or_else(|error| panic!("{when}: {topic}: {error}"));
        known.written = log.log_end_offset();
        sound.push((log, known));
    }
    let logs: Vec<Arc<Log>> = sound.iter().map(|(log, _)| Arc::clone(log)).collect();
    for outcome in engine.flush(&logs, node.now_ms) {
        outcome.unwrap_or_else(|error| panic!("{when}: {error}"));
    }
    sound.into_iter().for_each(|(_, known)| known.durable = known.written);
    for work in engine.due_work(node.now_ms + 2_000) {
        let outcome = engine.run(&work, node.now_ms + 2_000);
        outcome.unwrap_or_else(|error| panic!("{when}: {:?}: {error}", work.kind()));
    }
    for file in CheckpointFile::ALL {
        engine.checkpoint(file).unwrap_or_else(|error| panic!("{when}: {file:?}: {error}"));
    }
}

#[test]
fn a_full_disk_keeps_checkpoints_due() {
    let mut node = Node::new(SimDisk::new());
    node.start().unwrap();
    node.make("one", false).unwrap();
    node.fill("one", 9).unwrap();
    node.now_ms += 300_000;
    node.disk.fail_changes_from(node.disk.operation_count(), ENOSPC);
    let engine = node.engine();
    let due = engine.due_work(node.now_ms);
    let kinds: Vec<_> = due.iter().map(DueWork::kind).collect();
    assert!(engine.due_work(node.now_ms).is_empty(), "handed out once");
    for work in due {
        // Retention has nothing to do and producers need no disk.
        let _ = engine.run(&work, node.now_ms);
        // Compaction picks its log when it is run.
        let is_somewhere = work.path().starts_with("/a") || work.path().starts_with("/b");
        assert!(is_somewhere || work.kind() == WorkKind::Compact);
    }
    assert!(engine.offline_dirs().is_empty());
    assert!(engine.due_work(node.now_ms).is_empty(), "not at once");
    let again = engine.due_work(node.now_ms + 1000);
    let checkpoints =
        |kinds: &[WorkKind]| kinds.iter().filter(|k| matches!(k, WorkKind::Checkpoint(_))).count();
    let kinds_again: Vec<_> = again.iter().map(DueWork::kind).collect();
    assert_eq!((checkpoints(&kinds), checkpoints(&kinds_again)), (6, 6));
    drop(again);
    node.disk.fail_changes_from(u64::MAX, ENOSPC);
    for work in engine.due_work(node.now_ms + 1000) {
        if matches!(work.kind(), WorkKind::Checkpoint(_)) {
            engine.run(&work, node.now_ms + 1000).unwrap();
        }
    }
    assert!(node.disk.snapshot(Path::new("/a")).is_ok());
}
