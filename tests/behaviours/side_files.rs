//! Sections XI, PS, CP and EC: transaction indexes, snapshots and small files, as logs keep them.

use std::path::Path;
use std::sync::Arc;

use siltstone::Kind;
use siltstone::index::TxnEntries;
use siltstone::io::sim::Entry;
use siltstone::io::{Disk, Storage};
use siltstone::log::{Log, LogConfig, OpenOptions};
use siltstone::state::checkpoint::OffsetCheckpoint;
use siltstone::uuid::Uuid;
use siltstone_tests::live::{DIR, NOW_MS, TestLog, records};
use siltstone_tests::nodes::TestNode;

const TXN_INDEX: &str = "00000000000000000000.txnindex";
const EPOCHS: &str = "leader-epoch-checkpoint";

/// One transaction of a producer, aborted.
fn abort(log: &mut TestLog, id: i64) {
    log.lead(&records(2).txn(id, 0, 0));
    log.end(id, 0, true);
}

#[test]
fn a_transaction_index_grows_under_the_new_name_of_its_directory() {
    // spec: behaviours XI-014
    let mut log = TestLog::new();
    abort(&mut log, 1);
    let new = Path::new("/orders-0.11111111111111111111111111111111-future");
    assert!(log.log().rename_dir(new, true).unwrap());
    abort(&mut log, 2);
    let files = log.disk.snapshot(new).unwrap().entries;
    let Some(Entry::File(bytes)) = files.get(Path::new(TXN_INDEX)) else { panic!("no index") };
    let entries = TxnEntries::new(bytes);
    let found: Vec<i64> = entries.iter().map(|entry| entry.producer_id).collect();
    assert_eq!(found, [1, 2]);
}

#[test]
fn a_transaction_index_goes_with_its_segment() {
    // spec: behaviours XI-017
    let mut log = TestLog::new();
    abort(&mut log, 1);
    assert!(log.file(TXN_INDEX).is_some());
    log.log().truncate_fully_and_start_at(7, None, NOW_MS).unwrap();
    assert!(log.log().delete_due_files(NOW_MS + 60_000).unwrap() > 0);
    let left: Vec<String> =
        log.files().into_iter().filter(|name| name.contains("txnindex")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn a_transaction_index_that_is_cut_to_nothing_stays_as_an_empty_file() {
    // spec: behaviours XI-013, XI-016
    let mut log = TestLog::new();
    abort(&mut log, 1);
    log.log().flush(true, NOW_MS).unwrap();
    assert_eq!(log.file(TXN_INDEX).unwrap().len(), 34);
    log.log().truncate_to(0, NOW_MS).unwrap();
    assert_eq!(log.file(TXN_INDEX), Some(Vec::new()));
}

#[test]
fn the_snapshot_of_a_segment_that_is_deleted_is_marked_so_first() {
    // spec: behaviours PS-057, PS-058
    let name = format!("{:020}.snapshot", 1);
    for is_gone in [false, true] {
        let mut log = TestLog::new();
        for sequence in 0..3 {
            log.lead(&records(1).producer(1, 0, sequence));
            log.log().roll(NOW_MS).unwrap();
        }
        assert_eq!(log.snapshots(), [1, 2, 3]);
        if is_gone {
            let storage: &dyn Storage = &log.disk;
            storage.remove_file(&Path::new(DIR).join(&name)).unwrap();
        }
        log.replicate();
        log.log().maybe_increment_log_start_offset(2).unwrap();
        assert_eq!(log.log().delete_old_segments(NOW_MS).unwrap(), 2);
        assert_eq!(log.snapshots(), [2, 3]);
        assert_eq!(log.file(&format!("{name}.deleted")).is_some(), !is_gone);
        log.log().delete_due_files(NOW_MS + 60_000).unwrap();
        assert_eq!(log.file(&format!("{name}.deleted")), None);
    }
}

#[test]
fn a_checkpoint_is_what_was_written_last() {
    // spec: behaviours CP-001
    let mut node = TestNode::new(1);
    let read = |node: &TestNode| {
        let bytes = node.file("/a/recovery-point-offset-checkpoint").unwrap();
        let checkpoint = OffsetCheckpoint::parse(&bytes).unwrap();
        let lines = checkpoint.entries().iter();
        let mut lines: Vec<_> = lines.map(|e| (e.topic.to_string(), e.offset)).collect();
        lines.sort();
        lines
    };
    let (bar, foo) = (node.log("bar"), node.log("foo"));
    node.fill(&foo, 5);
    node.fill(&bar, 10);
    node.stop(1);
    assert_eq!(read(&node), [("bar".to_owned(), 10), ("foo".to_owned(), 5)]);
    node.start();
    node.fill(&node.log("foo"), 1);
    node.stop(1);
    assert_eq!(read(&node), [("bar".to_owned(), 10), ("foo".to_owned(), 6)]);
}

#[test]
fn a_marker_of_a_clean_stop_counts_whatever_it_holds() {
    // spec: behaviours CP-015
    let mut node = TestNode::new(1);
    node.stop(7);
    for (content, was_clean) in [
        (Some(&br#"{"version":0}"#[..]), true),
        (Some(b"garbage"), true),
        (Some(br#"{"version":0,"brokerEpoch":-1}"#), true),
        (None, false),
    ] {
        let path = Path::new("/a/.kafka_cleanshutdown");
        match content {
            Some(bytes) => node.disk.put(path, bytes.to_vec(), None).unwrap(),
            None => Storage::remove_file(&node.disk, path).unwrap(),
        }
        node.start();
        assert_eq!(node.report.dirs[0].was_clean, was_clean);
        assert_eq!(node.engine().previous_broker_epoch(), None, "-1 is no epoch");
        node.stop(7);
    }
}

#[test]
fn a_topic_id_stays_what_it_is() {
    // spec: behaviours CP-011
    let mut log = TestLog::new();
    let (one, other) = (Uuid([1; 16]), Uuid([2; 16]));
    log.open_with(|options| options.topic_id = Some(one));
    log.open_with(|options| options.topic_id = Some(one));
    assert_eq!(log.log().topic_id(), Some(one));
    let options = OpenOptions { topic_id: Some(other), ..log.options.clone() };
    let disk = Arc::new(log.disk.clone());
    let error = Log::open(disk, Path::new(DIR), log.config.clone(), &options).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    log.open_with(|options| options.topic_id = None);
    assert_eq!(log.log().topic_id(), Some(one), "it is what the file says");
}

#[test]
fn a_log_without_a_topic_id_has_no_file_for_it() {
    // spec: behaviours CP-012
    let log = TestLog::new();
    log.log().flush(true, NOW_MS).unwrap();
    assert_eq!(log.file("partition.metadata"), None);
}

#[test]
fn a_checkpoint_is_not_written_where_its_directory_is_gone() {
    // spec: behaviours CP-005, EC-040
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("orders-0");
    let options = OpenOptions { now_ms: NOW_MS, ..OpenOptions::default() };
    let disk = Arc::new(Disk::new());
    let log = Log::open(disk, &path, LogConfig::default(), &options).unwrap();
    let follow = |offset: i64, epoch: i32| {
        let batch = records(1).at(offset).epoch(epoch).build();
        log.append_as_follower(&batch, epoch, NOW_MS).unwrap();
    };
    follow(0, 1);
    follow(1, 2);
    log.flush(false, NOW_MS).unwrap();
    assert_eq!(std::fs::read(path.join(EPOCHS)).unwrap(), b"0\n2\n1 0\n2 1\n");
    let away = dir.path().join("away");
    std::fs::rename(&path, &away).unwrap();
    follow(2, 3);
    log.flush(false, NOW_MS).unwrap();
    assert_eq!(std::fs::read(away.join(EPOCHS)).unwrap(), b"0\n2\n1 0\n2 1\n");
    // It is not forgotten: it is written when there is a place for it.
    std::fs::rename(&away, &path).unwrap();
    log.flush(false, NOW_MS).unwrap();
    assert_eq!(std::fs::read(path.join(EPOCHS)).unwrap(), b"0\n3\n1 0\n2 1\n3 2\n");
}
