//! The log cleaner of whole log directories: which log is compacted, and what the checkpoint says.

use std::path::Path;
use std::sync::Arc;

use siltstone::dir::engine::{Engine, NewLog, WorkKind};
use siltstone::error::Kind;
use siltstone::io::{OpenMode, SimDisk, Storage};
use siltstone::log::{Log, LogConfig};
use siltstone_tests::live::records;
use siltstone_tests::nodes::TestNode;

const CHECKPOINT: &str = "cleaner-offset-checkpoint";

/// A node whose logs are compacted.
fn node(dirs: u8) -> TestNode {
    start(SimDisk::new(), dirs, |_| ())
}

fn start(disk: SimDisk, dirs: u8, change: impl FnOnce(&mut TestNode)) -> TestNode {
    let mut node = TestNode::on(disk, dirs);
    node.cleaners = 1;
    (node.config.compact, node.config.delete) = (true, false);
    node.config.file_delete_delay_ms = 0;
    change(&mut node);
    node.start();
    node
}

/// Appends records with one key, one a batch, until the log has so many segments.
fn grow(node: &TestNode, log: &Log, segments: usize) {
    while log.segments().count() < segments {
        node.append(log, &records(1).key("k"));
    }
}

/// A little later, when a log is looked for again.
fn run_later(node: &mut TestNode) {
    node.now_ms += 15_000;
    node.run_due();
}

fn line(node: &TestNode, dir: &str, topic: &str) -> Option<i64> {
    let path = format!("{dir}/{CHECKPOINT}");
    if node.file(&path).is_some() { node.line(&path, topic) } else { None }
}

fn put(disk: &SimDisk, path: &str, text: &str) {
    let file = disk.open(Path::new(path), OpenMode::Create).unwrap();
    file.write_at(text.as_bytes(), 0).unwrap();
}

/// Whether of the segments before the active one little more than the last record is left.
fn is_compacted(log: &Log) -> bool {
    let segments = log.segments();
    let sealed = segments.iter().rev().skip(1);
    assert!(sealed.len() > 1);
    sealed.map(|segment| segment.size_bytes()).sum::<u64>() < 200
}

#[test]
fn due_work_compacts_and_says_up_to_where() {
    let mut node = node(1);
    let log = node.log("t");
    grow(&node, &log, 4);
    let active = log.segments().last().unwrap().base_offset();
    node.run_due();
    assert!(!is_compacted(&log), "not at once");
    run_later(&mut node);
    assert!(is_compacted(&log));
    assert_eq!(line(&node, "/a", "t"), Some(active));
    assert_eq!(log.compacted_end_offset(), Some(active));
    // Nothing more is to be gained.
    node.now_ms += 15_000;
    let due = node.engine().due_work(node.now_ms);
    let work = due.iter().find(|work| work.kind() == WorkKind::Compact).unwrap();
    let before = node.disk.change_count();
    node.engine().run(work, node.now_ms).unwrap();
    assert_eq!(node.disk.change_count(), before);
    drop(due);
    // A restart goes on from there.
    let report = node.stop(1);
    assert!(report.dirs[0].is_clean && report.dirs[0].errors.is_empty());
    node.start();
    let log = node.log("t");
    assert_eq!(log.compacted_end_offset(), Some(active));
    assert_eq!(line(&node, "/a", "t"), Some(active));
    assert!(node.names("/a/t-0").iter().all(|name| !name.ends_with(".cleaned")));
}

#[test]
fn without_cleaners_nothing_is_compacted() {
    let mut node = start(SimDisk::new(), 1, |node| node.cleaners = 0);
    let log = node.log("t");
    grow(&node, &log, 4);
    run_later(&mut node);
    assert!(!is_compacted(&log));
    assert!(node.file(&format!("/a/{CHECKPOINT}")).is_none());
}

#[test]
fn the_dirtiest_log_comes_first_and_each_once() {
    // spec: cleaner 2
    let mut node = node(1);
    let (a, b, c) = (node.log("a"), node.log("b"), node.log("c"));
    grow(&node, &a, 5);
    run_later(&mut node);
    grow(&node, &a, 7);
    grow(&node, &b, 3);
    grow(&node, &c, 1);
    let mut plain = LogConfig::clone(&node.config);
    plain.compact = false;
    plain.delete = true;
    let new = NewLog { config: plain, now_ms: node.now_ms, ..NewLog::default() };
    let d = node.engine().get_or_create("d", 0, &new).unwrap();
    grow(&node, &d, 4);
    let ratio =
        |log: &Log| log.cleanable(log.compacted_end_offset(), node.now_ms).unwrap().dirty_ratio();
    assert!(ratio(&b) > ratio(&a) && ratio(&a) > 0.5, "{} {}", ratio(&b), ratio(&a));
    node.now_ms += 15_000;
    let mut order = Vec::new();
    loop {
        let due = node.engine().due_work(node.now_ms);
        let work = due.iter().find(|work| work.kind() == WorkKind::Compact);
        let Some(work) = work else { break };
        let again = node.engine().due_work(node.now_ms);
        assert!(again.iter().all(|work| work.kind() != WorkKind::Compact), "one cleaner");
        assert_eq!(work.path(), Path::new(""));
        let before = [&a, &b, &c, &d].map(|log| log.size_bytes());
        node.engine().run(work, node.now_ms).unwrap();
        let after = [&a, &b, &c, &d].map(|log| log.size_bytes());
        order.extend((0..4).filter(|n| before[*n] != after[*n]));
    }
    assert_eq!(order, [1, 0]);
    assert_eq!((line(&node, "/a", "c"), line(&node, "/a", "d")), (None, None));
}

#[test]
fn records_that_wait_too_long_are_compacted_however_few() {
    // spec: cleaner 2
    let mut node = start(SimDisk::new(), 1, |node| {
        node.config.min_cleanable_dirty_ratio = 1.0;
        node.config.max_compaction_lag_ms = 60_000;
    });
    let log = node.log("t");
    grow(&node, &log, 3);
    run_later(&mut node);
    assert!(!is_compacted(&log));
    node.now_ms += 60_000;
    node.run_due();
    assert!(is_compacted(&log));
}

#[test]
fn a_checkpoint_that_is_no_part_of_its_log_is_put_right_at_once() {
    // spec: behaviours CM-007, CM-008, CM-009
    let make = |start_offset: i64, checkpoint: i64| {
        let mut node = start(SimDisk::new(), 1, |node| {
            // It is not compacted.
            node.config.min_cleanable_dirty_ratio = 1.0;
        });
        let log = node.log("t");
        grow(&node, &log, 9);
        assert!(log.log_end_offset() > 25 && log.log_end_offset() < 200);
        log.maybe_increment_log_start_offset(start_offset).unwrap();
        drop(log);
        node.stop(1);
        put(&node.disk, &format!("/a/{CHECKPOINT}"), &format!("0\n1\nt 0 {checkpoint}\n"));
        node.start();
        run_later(&mut node);
        line(&node, "/a", "t")
    };
    assert_eq!(make(0, 200), Some(0));
    assert_eq!(make(10, 0), Some(10));
    assert_eq!(make(20, 15), Some(20));
    assert_eq!(make(10, 20), Some(20), "a good one");
}

#[test]
fn the_checkpoint_moves_with_its_log() {
    // spec: behaviours CM-011
    let mut node = start(SimDisk::new(), 2, |node| node.config.segment_bytes = 1 << 20);
    let log = node.log("t");
    node.append(&log, &records(1000).key("k"));
    log.set_compacted_end_offset(Some(999));
    node.run_due();
    assert_eq!((line(&node, "/a", "t"), line(&node, "/b", "t")), (Some(999), None));
    let new = NewLog {
        config: node.config.clone(),
        is_future: true,
        preferred: Some("/b".into()),
        now_ms: node.now_ms,
        ..NewLog::default()
    };
    let future = node.engine().get_or_create("t", 0, &new).unwrap();
    node.append(&future, &records(1000).key("k"));
    node.run_due();
    assert_eq!((line(&node, "/a", "t"), line(&node, "/b", "t")), (Some(999), None));
    node.engine().replace_current_with_future("t", 0, node.now_ms).unwrap();
    assert_eq!((line(&node, "/a", "t"), line(&node, "/b", "t")), (None, Some(999)));
    assert_eq!(future.compacted_end_offset(), Some(999));
    // The one that was replaced is not compacted any more.
    let range = log.cleanable(None, node.now_ms).unwrap();
    let error = log.begin_compaction(&mut Default::default(), &range, node.now_ms).unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled);
    node.kill();
    node.start();
    assert_eq!(node.log("t").compacted_end_offset(), Some(999));
}

#[test]
fn a_future_log_is_not_compacted_before_it_replaces_the_current_one() {
    let mut node = node(2);
    let log = node.log("t");
    node.append(&log, &records(1).key("k"));
    let new = NewLog {
        config: node.config.clone(),
        is_future: true,
        preferred: Some("/b".into()),
        now_ms: node.now_ms,
        ..NewLog::default()
    };
    let future = node.engine().get_or_create("t", 0, &new).unwrap();
    grow(&node, &future, 4);
    run_later(&mut node);
    assert!(!is_compacted(&future));
    node.engine().replace_current_with_future("t", 0, node.now_ms).unwrap();
    run_later(&mut node);
    assert!(is_compacted(&future));
    assert!(line(&node, "/b", "t").is_some());
}

#[test]
fn the_line_of_a_deleted_log_goes() {
    let mut node = node(1);
    let (log, other) = (node.log("t"), node.log("u"));
    grow(&node, &log, 3);
    grow(&node, &other, 3);
    run_later(&mut node);
    assert!(line(&node, "/a", "t").is_some());
    let kept = line(&node, "/a", "u");
    node.engine().delete("t", 0, node.now_ms).unwrap();
    assert_eq!((line(&node, "/a", "t"), line(&node, "/a", "u")), (None, kept));
    assert!(kept.is_some());
    // Nor is it there for a new one of the same name.
    assert_eq!(node.log("t").compacted_end_offset(), None);
}

#[test]
fn a_log_that_is_cut_was_compacted_no_further() {
    let mut node = node(1);
    let log = node.log("t");
    grow(&node, &log, 6);
    run_later(&mut node);
    let end = line(&node, "/a", "t").unwrap();
    grow(&node, &log, 8);
    // In the active segment: what was compacted is as it was.
    log.truncate_to(log.log_end_offset() - 1, node.now_ms).unwrap();
    assert_eq!(log.compacted_end_offset(), Some(end));
    log.truncate_to(end - 1, node.now_ms).unwrap();
    let active = log.segments().last().unwrap().base_offset();
    assert!(active < end);
    assert_eq!(log.compacted_end_offset(), Some(active), "which is none of the clean ones");
    node.run_due();
    assert_eq!(line(&node, "/a", "t"), Some(active));
    log.truncate_fully_and_start_at(7, None, node.now_ms).unwrap();
    run_later(&mut node);
    assert_eq!(line(&node, "/a", "t"), Some(7));
}

#[test]
fn a_log_that_cannot_be_read_is_left_alone_and_the_others_are_not() {
    // spec: cleaner 3
    let mut node = node(1);
    let (bad, good) = (node.log("bad"), node.log("good"));
    grow(&node, &bad, 5);
    grow(&node, &good, 3);
    let name = bad.dir().join("00000000000000000000.log");
    let file = node.disk.open(&name, OpenMode::ReadWrite).unwrap();
    file.write_at(&[0xff; 4], 80).unwrap();
    node.now_ms += 15_000;
    let compact = |node: &TestNode| {
        let due = node.engine().due_work(node.now_ms);
        let work = due.iter().find(|work| work.kind() == WorkKind::Compact).expect("due work");
        node.engine().run(work, node.now_ms)
    };
    // Both are as dirty as can be: the damaged one comes first, by its name.
    assert_eq!(compact(&node).unwrap_err().kind(), Kind::Corrupt);
    assert_eq!(node.engine().counters().uncleanable_logs, 1);
    assert!(node.names("/a/bad-0").iter().all(|name| !name.ends_with(".cleaned")));
    node.now_ms += 15_000;
    compact(&node).unwrap();
    assert_eq!((is_compacted(&bad), is_compacted(&good)), (false, true));
    assert_eq!((line(&node, "/a", "bad"), bad.compacted_end_offset()), (None, None));
    assert!(node.engine().offline_dirs().is_empty());
    node.run_due();
    assert_eq!(node.engine().counters().uncleanable_logs, 1, "until the next start");
}

#[test]
fn what_lies_before_the_start_of_a_compacted_log_is_the_cleaners_to_remove() {
    // spec: cleaner 2
    for delete in [false, true] {
        let mut node = start(SimDisk::new(), 1, |node| {
            node.config.delete = delete;
            node.config.min_cleanable_dirty_ratio = 1.0;
            node.config.retention_ms = 3_600_000;
        });
        let log = node.log("t");
        grow(&node, &log, 5);
        let bases: Vec<i64> = log.segments().iter().map(|segment| segment.base_offset()).collect();
        log.maybe_increment_log_start_offset(bases[2]).unwrap();
        run_later(&mut node);
        assert_eq!(log.segments().first().unwrap().base_offset(), bases[2]);
        node.now_ms += 3_600_001;
        node.run_due();
        let left = log.segments().count();
        assert_eq!(left, if delete { 1 } else { 3 }, "by time only with that policy");
    }
}

#[test]
fn a_torn_checkpoint_is_none_and_one_of_another_release_takes_its_directory_offline() {
    let mut node = node(2);
    let log = node.log("t");
    grow(&node, &log, 3);
    run_later(&mut node);
    let end = line(&node, "/a", "t").unwrap();
    drop(log);
    node.stop(1);
    put(&node.disk, &format!("/a/{CHECKPOINT}"), "0\n2\nt 0 1\n");
    node.start();
    assert_eq!(node.report.dirs[0].problems.len(), 1);
    let log = node.log("t");
    assert_eq!(log.compacted_end_offset(), None);
    log.update_high_watermark(log.log_end_offset()).unwrap();
    run_later(&mut node);
    assert_eq!(line(&node, "/a", "t"), Some(end), "all of it was looked at again");
    drop(log);
    node.stop(1);
    put(&node.disk, &format!("/a/{CHECKPOINT}"), "1\n1\nt 0 1\n");
    node.start();
    assert_eq!(node.engine().offline_dirs().len(), 1);
    assert!(node.engine().log("t", 0).is_err() || node.engine().log("t", 0).unwrap().is_none());
}

#[test]
fn lines_of_logs_that_are_not_there_go_and_those_of_logs_that_are_shut_stay() {
    let mut node = node(1);
    let log = node.log("t");
    grow(&node, &log, 3);
    run_later(&mut node);
    let end = line(&node, "/a", "t").unwrap();
    drop(log);
    node.stop(1);
    put(&node.disk, &format!("/a/{CHECKPOINT}"), &format!("0\n2\nt 0 {end}\ngone 3 7\n"));
    let metadata = "/a/t-0/partition.metadata";
    put(&node.disk, metadata, "nonsense");
    node.start();
    assert_eq!(node.report.refused.len(), 1);
    assert_eq!(
        node.file(&format!("/a/{CHECKPOINT}")).unwrap(),
        format!("0\n1\nt 0 {end}\n").as_bytes()
    );
}

#[test]
fn logs_are_deleted_and_closed_while_they_are_compacted() {
    fn compact(engine: &Engine, now_ms: i64) {
        for work in engine.due_work(now_ms) {
            if work.kind() == WorkKind::Compact {
                // Where everything is closed by now there is nobody to do it.
                let _ = engine.run(&work, now_ms);
            }
        }
    }
    for number in 0..60 {
        let mut node = node(1);
        let log = node.log("t");
        grow(&node, &log, 30);
        node.now_ms += 15_000;
        let now_ms = node.now_ms;
        let is_deleted = number % 2 == 0;
        let errors = std::thread::scope(|scope| {
            let engine = node.engine();
            let compactor = scope.spawn(|| compact(engine, now_ms));
            for _ in 0..number * 40 {
                std::hint::spin_loop();
            }
            let errors = if is_deleted {
                engine.delete("t", 0, now_ms).unwrap();
                Vec::new()
            } else {
                let report = engine.close(1, 1);
                report.dirs.into_iter().flat_map(|dir| dir.errors).collect()
            };
            compactor.join().unwrap();
            errors
        });
        assert!(errors.is_empty(), "{errors:?}");
        let dir = log.dir();
        let names = node.names(&dir.to_string_lossy());
        assert!(names.iter().all(|name| !name.ends_with(".cleaned")), "{names:?}");
        assert!(names.iter().all(|name| !name.ends_with(".swap")), "{names:?}");
        assert_eq!(dir.to_string_lossy().ends_with("-delete"), is_deleted);
        assert!(Arc::strong_count(&log) > 0);
    }
}
