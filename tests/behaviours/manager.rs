//! Sections MG, CP and LD: log directories, their checkpoints, and how all logs are loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use siltstone::Error;
use siltstone::dir::engine::{CheckpointFile, Engine, EngineOptions, Identity, NewLog};
use siltstone::error::Kind;
use siltstone::io::{Disk, OpenMode, Storage};
use siltstone::log::{FetchOptions, Isolation, LogConfig, remove_tree};
use siltstone::state::meta::MetaProperties;
use siltstone::uuid::Uuid;
use siltstone_tests::live::records;
use siltstone_tests::nodes::TestNode;

const MARKER: &str = ".kafka_cleanshutdown";
const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
const LOG_STARTS: &str = "log-start-offset-checkpoint";
const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
const COMPACTED_ENDS: &str = "cleaner-offset-checkpoint";

fn bytes_of_one_record() -> u32 {
    u32::try_from(records(1).build().len()).unwrap()
}

#[test]
fn a_log_that_is_asked_for_is_made_once() {
    // spec: behaviours MG-001
    let node = TestNode::new(1);
    assert!(node.engine().log("kafka", 0).unwrap().is_none());
    let log = node.log("kafka");
    assert_eq!(node.folders("/a"), ["kafka-0"]);
    assert_eq!(node.append(&log, &records(1)).first_offset, Some(0));
    assert!(Arc::ptr_eq(&log, &node.log("kafka")));
    assert!(Arc::ptr_eq(&log, &node.engine().log("kafka", 0).unwrap().unwrap()));
    for (topic, partition) in [("", 0), ("a b", 0), ("a/b", 0), ("..", -1), ("ä", 0)] {
        let error = node.engine().get_or_create(topic, partition, &NewLog::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument, "{topic:?}");
    }
}

#[test]
fn a_directory_that_lost_a_log_is_not_marked_as_clean() {
    // spec: behaviours MG-002
    let mut node = TestNode::new(2);
    let (one, two) = (node.log("one"), node.log("two"));
    node.fill(&one, 1);
    node.fill(&two, 1);
    assert_eq!(
        (one.dir().parent(), two.dir().parent()),
        (Some(Path::new("/a")), Some(Path::new("/b")))
    );
    remove_tree(&node.disk, &one.dir()).unwrap();
    let report = node.stop(3);
    assert_eq!(report.dirs.iter().map(|dir| dir.is_clean).collect::<Vec<_>>(), [false, true]);
    assert!(!report.dirs[0].errors.is_empty());
    assert!(node.file("/a/.kafka_cleanshutdown").is_none());
    assert!(node.file("/b/.kafka_cleanshutdown").is_some());
    node.start();
    assert_eq!(node.engine().previous_broker_epoch(), None);
}

#[test]
fn directories_that_were_stopped_in_order_are_marked_with_the_epoch() {
    // spec: behaviours MG-003, MG-006, LD-001
    let mut node = TestNode::new(2);
    let log = node.log("one");
    node.fill(&log, 3);
    node.stop(3);
    node.disk.settle();
    for dir in ["/a", "/b"] {
        let marker = node.file(&format!("{dir}/{MARKER}")).unwrap();
        assert_eq!(marker, br#"{"version":0,"brokerEpoch":3}"#);
        assert!(node.file(&format!("{dir}/.lock")).is_some());
        node.disk.lock(&PathBuf::from(format!("{dir}/.lock"))).unwrap();
    }
    node.start();
    assert_eq!(node.engine().previous_broker_epoch(), Some(3));
    assert!(node.report.dirs.iter().all(|dir| dir.was_clean));
    assert!(node.file("/a/.kafka_cleanshutdown").is_none());
    node.kill();
    node.start();
    assert!(node.report.dirs.iter().all(|dir| !dir.was_clean));
    assert!(node.file("/a/.kafka_cleanshutdown").is_none());
    assert_eq!(node.log("one").log_end_offset(), 3);
}

#[test]
fn a_directory_has_one_engine() {
    // spec: behaviours MG-005
    let node = TestNode::new(1);
    let mut other = TestNode::on(node.disk.clone(), 1);
    assert_eq!(other.try_start().unwrap_err().kind(), Kind::Conflict);
    node.disk.create_dir(Path::new("/b")).unwrap();
    node.disk.hold_lock_elsewhere(Path::new("/b/.lock")).unwrap();
    other.dirs = vec!["/b".into()];
    assert_eq!(other.try_start().unwrap_err().kind(), Kind::Conflict);
    other.dirs = vec!["/c".into(), "/c/".into()];
    assert_eq!(other.try_start().unwrap_err().kind(), Kind::Conflict);
    other.dirs = Vec::new();
    assert_eq!(other.try_start().unwrap_err().kind(), Kind::InvalidArgument);
}

#[test]
fn folders_that_are_no_logs_are_left_alone() {
    // spec: behaviours MG-007
    let mut node = TestNode::new(1);
    node.stop(1);
    for name in ["remote-log-index-cache", "__cluster_metadata-0", "lost+found"] {
        node.disk.create_dir(&Path::new("/a").join(name)).unwrap();
    }
    node.start();
    assert_eq!((node.report.opened, node.report.refused.len()), (0, 0));
    let problems: Vec<&str> =
        node.report.dirs[0].problems.iter().map(|problem| problem.file.as_str()).collect();
    assert_eq!(problems, ["lost+found"]);
    assert_eq!(
        node.folders("/a"),
        ["__cluster_metadata-0", "lost+found", "remote-log-index-cache"]
    );
}

#[test]
fn retention_by_time_leaves_one_segment() {
    // spec: behaviours MG-009
    let mut node = TestNode::new(1);
    node.config.file_delete_delay_ms = 1000;
    let log = node.log("kafka");
    for _ in 0..200 {
        node.append(&log, &records(1).times(&[-1]));
    }
    assert!(log.segments().count() > 1);
    node.now_ms += 600_001;
    node.run_due();
    assert_eq!(log.segments().count(), 1);
    // An append touches the indexes of the new segment; without one, a flush does.
    log.flush(true, node.now_ms).unwrap();
    node.now_ms += 1001;
    node.run_due();
    assert_eq!(node.names("/a/kafka-0").len(), log.segments().count() * 4 + 1);
    let options =
        FetchOptions { max_bytes: 1024, isolation: Isolation::LogEnd, min_one_message: true };
    assert!(log.read(200, &options).unwrap().bytes.is_empty());
    assert_eq!(log.read(0, &options).unwrap_err().kind(), Kind::OutOfRange);
    assert_eq!(node.append(&log, &records(1)).first_offset, Some(200));
}

#[test]
fn as_many_records_as_flush_messages_says_are_made_durable_when_work_is_due() {
    // spec: segments 6.5
    let mut node = TestNode::new(1);
    node.config.flush_messages = 3;
    let log = node.log("kafka");
    for (count, durable) in [(1, 0), (1, 0), (1, 3), (1, 3), (4, 8)] {
        node.append(&log, &records(count));
        node.now_ms += 1;
        node.run_due();
        assert_eq!(log.recovery_point(), durable, "{}", log.log_end_offset());
    }
}

#[test]
fn retention_by_size_keeps_what_fits() {
    // spec: behaviours MG-010
    let mut node = TestNode::new(1);
    let one = bytes_of_one_record();
    node.config.segment_bytes = 10 * one;
    node.config.retention_bytes = i64::from(50 * one + 10);
    node.config.file_delete_delay_ms = 1000;
    let log = node.log("kafka");
    node.fill(&log, 200);
    assert_eq!(log.segments().count(), 20);
    node.now_ms += 300_000;
    node.run_due();
    assert_eq!(log.segments().count(), 6);
}

#[test]
fn compacted_logs_are_not_the_retentions() {
    // spec: behaviours MG-011
    for delete in [false, true] {
        let mut node = TestNode::new(1);
        node.config.compact = true;
        node.config.delete = delete;
        node.config.retention_bytes = 1;
        let log = node.log("kafka");
        for _ in 0..200 {
            node.append(&log, &records(1).key("k"));
        }
        let count = log.segments().count();
        node.now_ms += 600_001;
        node.run_due();
        assert_eq!((log.segments().count(), count > 1), (count, true));
    }
}

#[test]
fn new_logs_go_where_the_fewest_are() {
    // spec: behaviours MG-013
    let node = TestNode::new(3);
    for count in 1..=20 {
        drop(node.log(&format!("topic-{count}")));
        let sizes = ["/a", "/b", "/c"].map(|dir| node.folders(dir).len());
        assert_eq!(sizes.iter().sum::<usize>(), count);
        assert!(sizes.iter().max().unwrap() <= &(sizes.iter().min().unwrap() + 1), "{sizes:?}");
    }
}

#[test]
fn checkpoints_say_where_logs_are_durable() {
    // spec: behaviours MG-014, MG-015
    for path in ["/a", "/a/", "a", "./a"] {
        let mut node = TestNode::on(siltstone::io::SimDisk::new(), 1);
        node.dirs = vec![path.into()];
        node.start();
        let log = node.log("kafka");
        node.fill(&log, 50);
        log.flush(true, node.now_ms).unwrap();
        node.engine().checkpoint(CheckpointFile::RecoveryPoints).unwrap();
        assert_eq!(log.recovery_point(), 50);
        let line = node.line(&format!("/a/{RECOVERY_POINTS}"), "kafka");
        assert_eq!(line, Some(log.recovery_point()), "{path}");
        let new = NewLog { preferred: Some(format!("{path}/.").into()), ..NewLog::default() };
        node.engine().get_or_create("other", 0, &new).unwrap();
    }
}

#[test]
fn a_topic_with_a_long_name_is_made_and_deleted() {
    // spec: behaviours MG-017
    let mut node = TestNode::new(1);
    let topic = "t".repeat(253);
    let log = node.log(&topic);
    node.fill(&log, 1);
    node.engine().delete(&topic, 0, node.now_ms).unwrap();
    assert!(node.engine().log(&topic, 0).unwrap().is_none());
    let folders = node.folders("/a");
    assert_eq!(folders.len(), 1);
    assert!(folders[0].len() == 255 && folders[0].ends_with("-delete"));
    node.now_ms += 60_000;
    node.run_due();
    assert_eq!(node.folders("/a"), [""; 0]);
    assert_eq!(node.engine().counters().waiting_folders, 0);
}

fn log_of_five(node: &TestNode) -> Arc<siltstone::log::Log> {
    let log = node.log("kafka");
    for offset in 0..50 {
        node.append(&log, &records(1));
        if [10, 20, 30, 40].contains(&offset) {
            log.roll(node.now_ms).unwrap();
        }
    }
    let bases: Vec<i64> = log.segments().iter().map(|segment| segment.base_offset()).collect();
    assert_eq!(bases, [0, 11, 21, 31, 41]);
    log
}

#[test]
fn the_start_of_a_log_with_remote_storage_is_always_written() {
    // spec: behaviours MG-018
    let mut node = TestNode::on(siltstone::io::SimDisk::new(), 1);
    node.config.segment_bytes = 1 << 20;
    node.config.remote_storage = true;
    node.start();
    let log = log_of_five(&node);
    log.maybe_increment_log_start_offset(21).unwrap();
    log.maybe_increment_local_log_start_offset(31);
    node.engine().checkpoint(CheckpointFile::LogStarts).unwrap();
    assert_eq!(node.line(&format!("/a/{LOG_STARTS}"), "kafka"), Some(21));
}

#[test]
fn the_start_of_a_log_is_written_while_it_is_not_that_of_a_segment() {
    // spec: behaviours MG-019
    let mut node = TestNode::on(siltstone::io::SimDisk::new(), 1);
    node.config.segment_bytes = 1 << 20;
    node.start();
    let log = log_of_five(&node);
    log.maybe_increment_log_start_offset(31).unwrap();
    node.engine().checkpoint(CheckpointFile::LogStarts).unwrap();
    assert_eq!(node.line(&format!("/a/{LOG_STARTS}"), "kafka"), Some(31));
    log.delete_old_segments(node.now_ms).unwrap();
    node.engine().checkpoint(CheckpointFile::LogStarts).unwrap();
    assert_eq!(node.line(&format!("/a/{LOG_STARTS}"), "kafka"), None);
    node.stop(1);
    node.start();
    assert_eq!(node.log("kafka").log_start_offset(), 31);
}

fn future_of(node: &TestNode, dir: &str) -> Arc<siltstone::log::Log> {
    let new = NewLog {
        is_future: true,
        preferred: Some(dir.into()),
        config: node.config.clone(),
        now_ms: node.now_ms,
        ..NewLog::default()
    };
    node.engine().get_or_create("kafka", 0, &new).unwrap()
}

#[test]
fn a_future_log_takes_the_place_of_the_current_one() {
    // spec: behaviours MG-021
    let mut node = TestNode::new(2);
    let current = node.log("kafka");
    node.fill(&current, 10);
    let refuse = |preferred: Option<PathBuf>| {
        let new = NewLog { is_future: true, preferred, ..NewLog::default() };
        node.engine().get_or_create("kafka", 0, &new).unwrap_err().kind()
    };
    assert_eq!(refuse(None), Kind::Conflict);
    assert_eq!(refuse(Some("/a".into())), Kind::Conflict);
    assert_eq!(refuse(Some("/z".into())), Kind::InvalidArgument);
    let future = future_of(&node, "/b");
    assert!(node.folders("/b")[0].ends_with("-future"));
    for offset in 0..10 {
        future.append_as_follower(&records(1).at(offset).epoch(0).build(), 0, node.now_ms).unwrap();
    }
    assert_eq!(node.engine().counters().future_logs, 1);
    node.engine().checkpoint(CheckpointFile::RecoveryPoints).unwrap();
    node.engine().replace_current_with_future("kafka", 0, node.now_ms).unwrap();
    assert!(Arc::ptr_eq(&future, &node.log("kafka")));
    assert_eq!(*future.dir(), Path::new("/b/kafka-0"));
    assert!(node.engine().future_log("kafka", 0).unwrap().is_none());
    // The old log is still there, and open.
    let folders = node.folders("/a");
    assert!(folders.len() == 1 && folders[0].ends_with("-delete"), "{folders:?}");
    current.flush(true, node.now_ms).unwrap();
    assert_eq!(node.append(&current, &records(1)).first_offset, Some(10));
    assert_eq!(node.line(&format!("/a/{RECOVERY_POINTS}"), "kafka"), None);
    assert_eq!(node.append(&future, &records(1)).first_offset, Some(10));
    node.stop(1);
    node.start();
    assert_eq!((node.report.deleting, node.report.opened), (1, 1));
    assert_eq!(node.log("kafka").log_end_offset(), 11);
    node.now_ms += 60_000;
    node.run_due();
    assert_eq!(node.folders("/a"), [""; 0]);
}

#[test]
fn a_log_that_is_deleted_can_still_be_read_and_made_anew() {
    // spec: behaviours UL-105
    let mut node = TestNode::new(1);
    let old = node.log("kafka");
    node.fill(&old, 20);
    old.assign_epoch_start(5, 20).unwrap();
    node.engine().delete("kafka", 0, node.now_ms).unwrap();
    let options =
        FetchOptions { max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_message: true };
    assert!(!old.read(0, &options).unwrap().bytes.is_empty());
    old.assign_epoch_start(10, 20).unwrap();
    assert_eq!(old.latest_epoch(), Some(10));
    let folder = node.folders("/a").remove(0);
    assert!(folder.ends_with("-delete"));
    let epochs = node.file(&format!("/a/{folder}/leader-epoch-checkpoint")).unwrap();
    assert!(String::from_utf8(epochs).unwrap().ends_with("10 20\n"));
    assert!(node.file("/a/kafka-0/leader-epoch-checkpoint").is_none());
    let new = node.log("kafka");
    assert_eq!(new.log_end_offset(), 0);
    assert!(!Arc::ptr_eq(&old, &new));
    assert_eq!(node.engine().delete("other", 0, 0).unwrap_err().kind(), Kind::NotFound);
    node.now_ms += 60_000;
    node.run_due();
    assert_eq!(node.folders("/a"), ["kafka-0"]);
    assert_eq!(old.read(0, &options).unwrap_err().kind(), Kind::Closed);
}

#[test]
fn a_directory_says_whose_it_is() {
    // spec: behaviours MG-022
    let mut node = TestNode::on(siltstone::io::SimDisk::new(), 2);
    let identity = Identity { cluster_id: "c".to_owned(), node_id: 1 };
    let text = "version=0\nbroker.id=1\ndirectory.id=RRzezt1J-Q0PpGsFojeKKw\n";
    node.disk.create_dir(Path::new("/a")).unwrap();
    node.disk.put(Path::new("/a/meta.properties"), text.into(), None).unwrap();
    node.start();
    let ids = |node: &TestNode| node.engine().dirs().map(|(_, id)| id).collect::<Vec<_>>();
    assert_eq!(ids(&node), [Uuid::parse("RRzezt1J-Q0PpGsFojeKKw"), None]);
    node.stop(1);
    node.identity = Some(identity.clone());
    node.start();
    let made = ids(&node);
    assert!(made[1].is_some() && made[1] != made[0]);
    let meta = MetaProperties::parse(&node.file("/b/meta.properties").unwrap()).unwrap();
    assert_eq!((meta.version, meta.node_id, meta.cluster_id.as_deref()), (1, Some(1), Some("c")));
    node.stop(1);
    node.start();
    assert_eq!(ids(&node), made);
    node.stop(1);
    for wrong in [
        Identity { node_id: 2, ..identity.clone() },
        Identity { cluster_id: "d".to_owned(), ..identity },
    ] {
        node.identity = Some(wrong);
        assert_eq!(node.try_start().unwrap_err().kind(), Kind::Conflict);
    }
    node.identity = None;
    assert!(node.file("/a/.kafka_cleanshutdown").is_some(), "nothing was touched");
    let twice = node.file("/b/meta.properties").unwrap();
    node.disk.put(Path::new("/a/meta.properties"), twice, None).unwrap();
    assert_eq!(node.try_start().unwrap_err().kind(), Kind::Conflict);
    node.disk.put(Path::new("/a/meta.properties"), b"version=1\n".to_vec(), None).unwrap();
    node.start();
    assert_eq!(node.engine().offline_dirs().len(), 1);
}

#[test]
fn a_log_is_opened_with_the_high_watermark_of_the_checkpoint() {
    // spec: replication H18
    let mut node = TestNode::new(1);
    let log = node.log("kafka");
    for _ in 0..6 {
        node.append(&log, &records(1));
    }
    log.flush(true, node.now_ms).unwrap();
    node.engine().checkpoint(CheckpointFile::RecoveryPoints).unwrap();
    let checkpoint = |node: &TestNode, high_watermark: i64| {
        let text = format!("0\n1\nkafka 0 {high_watermark}\n").into_bytes();
        node.disk.put(&Path::new("/a").join(HIGH_WATERMARKS), text, None).unwrap();
    };
    // It is followed as far as the log goes.
    for (written, opened) in [(4, 4), (0, 0), (9, 6)] {
        node.kill();
        checkpoint(&node, written);
        node.start();
        let log = node.log("kafka");
        assert_eq!((log.high_watermark(), log.log_end_offset()), (opened, 6), "{written}");
    }
}

#[test]
fn high_watermarks_that_cannot_be_understood_take_the_directory_offline() {
    // spec: behaviours CP-004
    let mut node = TestNode::new(2);
    let (one, two) = (node.log("one"), node.log("two"));
    node.fill(&one, 5);
    node.fill(&two, 5);
    two.update_high_watermark(3).unwrap();
    node.stop(1);
    assert_eq!(node.line(&format!("/a/{HIGH_WATERMARKS}"), "one"), Some(5));
    let path = format!("/a/{HIGH_WATERMARKS}");
    node.disk.put(Path::new(&path), b"1\n0\n".to_vec(), None).unwrap();
    node.start();
    assert!(node.report.dirs[0].failure.is_some());
    assert!(node.engine().log("one", 0).unwrap().is_none());
    assert_eq!(node.log("two").high_watermark(), 3);
    // It may be in the directory that is offline.
    let error = node.engine().get_or_create("one", 0, &NewLog::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Io);
    let new = NewLog { is_new: true, ..NewLog::default() };
    assert_eq!(*node.engine().get_or_create("new", 0, &new).unwrap().dir(), Path::new("/b/new-0"));
    assert!(node.file("/a/.kafka_cleanshutdown").is_some(), "nothing was touched");
}

#[test]
fn high_watermarks_that_a_power_cut_tore_are_learnt_anew() {
    let mut node = TestNode::new(1);
    let log = node.log("kafka");
    node.fill(&log, 5);
    for torn in [&[0; 14][..], b"0\n2\nkafka 0 5\n", b"0\n1\nkafka 0"] {
        node.stop(1);
        for name in [HIGH_WATERMARKS, COMPACTED_ENDS] {
            node.disk.put(&Path::new("/a").join(name), torn.to_vec(), None).unwrap();
        }
        node.start();
        let problems = &node.report.dirs[0].problems;
        let files: Vec<&str> = problems.iter().map(|problem| &*problem.file).collect();
        assert_eq!(files, [HIGH_WATERMARKS, COMPACTED_ENDS], "{problems:?}");
        let log = node.log("kafka");
        assert_eq!((log.high_watermark(), log.log_end_offset()), (0, 5));
        log.update_high_watermark(4).unwrap();
        node.engine().checkpoint(CheckpointFile::HighWatermarks).unwrap();
        assert_eq!(node.line(&format!("/a/{HIGH_WATERMARKS}"), "kafka"), Some(4));
    }
}

#[test]
fn recovery_points_that_cannot_be_read_count_as_none() {
    let mut node = TestNode::new(1);
    let log = node.log("kafka");
    node.fill(&log, 30);
    log.flush(true, node.now_ms).unwrap();
    for name in [RECOVERY_POINTS, LOG_STARTS] {
        node.disk.put(&Path::new("/a").join(name), b"1\n0\n".to_vec(), None).unwrap();
    }
    node.kill();
    node.start();
    assert_eq!(node.report.dirs[0].problems.len(), 2);
    assert_eq!(node.log("kafka").log_end_offset(), 30);
}

#[test]
fn a_disk_that_fails_takes_its_directory_offline_and_no_other() {
    // spec: behaviours LD-003, LD-004
    let mut node = TestNode::new(2);
    for topic in ["one", "two", "three", "four"] {
        node.fill(&node.log(topic), 5);
    }
    node.stop(1);
    let mut failed = 0;
    let operations = {
        let disk = node.disk.fork();
        let mut other = TestNode::on(disk.clone(), 2);
        other.start();
        disk.operation_count()
    };
    for number in 0..operations {
        let disk = node.disk.fork();
        disk.fail_at(number, 5);
        let mut other = TestNode::on(disk, 2);
        other.start();
        let offline = other.engine().offline_dirs();
        assert!(offline.len() <= 1, "operation {number}");
        for topic in ["one", "two", "three", "four"] {
            match other.engine().log(topic, 0) {
                Ok(Some(log)) => assert_eq!(log.log_end_offset(), 5),
                Ok(None) => assert_eq!(offline.len(), 1, "operation {number}"),
                Err(error) => assert_eq!(error.kind(), Kind::Io, "{number}: {error}"),
            }
        }
        let healthy = other.engine().counters().logs;
        assert!(healthy == 4 || (healthy == 2 && offline.len() == 1), "operation {number}");
        failed += offline.len();
    }
    assert!(failed > 20, "{failed} of {operations}");
}

#[test]
fn a_log_that_cannot_be_loaded_is_left_alone() {
    // spec: behaviours LD-003
    let mut node = TestNode::new(1);
    node.fill(&node.log("good"), 5);
    node.fill(&node.log("bad"), 5);
    node.engine().checkpoint(CheckpointFile::RecoveryPoints).unwrap();
    node.stop(1);
    let path = Path::new("/a/bad-0/partition.metadata");
    node.disk.put(path, b"version: 7\ntopic_id: AAAAAAAAAAAAAAAAAAAABA".to_vec(), None).unwrap();
    node.start();
    assert_eq!((node.report.opened, node.report.refused.len()), (1, 1));
    assert!(node.report.dirs[0].failure.is_none());
    assert_eq!(node.log("good").log_end_offset(), 5);
    assert_eq!(node.engine().log("bad", 0).unwrap_err().kind(), Kind::Unsupported);
    let error = node.engine().get_or_create("bad", 0, &NewLog::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert_eq!(node.engine().counters().shut_logs, 1);
    let report = node.stop(1);
    assert!(!report.dirs[0].is_clean && report.dirs[0].errors.is_empty());
    // What was known of it is not lost.
    assert_eq!(node.line(&format!("/a/{RECOVERY_POINTS}"), "bad"), Some(5));
    node.disk.remove_file(path).unwrap();
    node.start();
    assert_eq!(node.log("bad").log_end_offset(), 5);
    node.stop(1);
    node.disk.put(path, b"x".to_vec(), None).unwrap();
    node.start();
    node.engine().delete("bad", 0, node.now_ms).unwrap();
    assert!(node.engine().log("bad", 0).unwrap().is_none());
    assert!(node.folders("/a")[0].ends_with("-delete"));
}

#[test]
fn one_log_in_two_directories_is_opened_from_neither() {
    let mut node = TestNode::new(2);
    node.fill(&node.log("kafka"), 5);
    node.stop(1);
    let copy = node.disk.snapshot(Path::new("/a/kafka-0")).unwrap();
    copy.load_into(&node);
    node.start();
    assert_eq!((node.report.opened, node.report.refused.len()), (0, 2));
    let error = node.engine().log("kafka", 0).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert!(error.to_string().contains("/a/kafka-0"), "{error}");
}

trait LoadInto {
    fn load_into(&self, node: &TestNode);
}

impl LoadInto for siltstone::io::sim::Snapshot {
    fn load_into(&self, node: &TestNode) {
        node.disk.put_dir(Path::new("/b/kafka-0"), None).unwrap();
        for (path, entry) in &self.entries {
            if let siltstone::io::sim::Entry::File(bytes) = entry {
                node.disk.put(&Path::new("/b/kafka-0").join(path), bytes.clone(), None).unwrap();
            }
        }
    }
}

#[test]
fn logs_that_are_not_assigned_are_moved_aside() {
    let mut node = TestNode::new(1);
    node.fill(&node.log("kafka"), 5);
    node.fill(&node.log("other"), 5);
    node.stop(1);
    node.stray = vec!["kafka".to_owned()];
    node.start();
    assert_eq!((node.report.opened, node.report.stray.len()), (1, 1));
    assert!(node.engine().log("kafka", 0).unwrap().is_none());
    node.engine().mark_stray("other", 0, node.now_ms).unwrap();
    assert!(node.folders("/a").iter().all(|name| name.ends_with("-stray")));
    node.stop(2);
    node.stray = Vec::new();
    node.start();
    assert_eq!((node.report.opened, node.report.stray.len()), (0, 2));
    node.now_ms += 1_000_000;
    node.run_due();
    assert_eq!(node.folders("/a").len(), 2);
}

#[test]
fn folders_to_be_deleted_are_deleted_after_a_start() {
    // spec: behaviours LD-043
    let mut node = TestNode::new(1);
    node.disk.create_dir(Path::new("/a/foo-3.0123456789abcdef0123456789abcdef-delete")).unwrap();
    node.kill();
    node.start();
    assert_eq!((node.report.deleting, node.report.refused.len()), (1, 0));
    node.run_due();
    assert_eq!(node.folders("/a").len(), 1);
    node.now_ms += 60_000;
    node.run_due();
    assert_eq!(node.folders("/a").len(), 0);
}

#[test]
fn a_new_log_does_not_start_where_an_older_one_of_its_name_was() {
    // The checkpoints of a directory outlived the log, and a new one of its name took them for its
    // own: after a kill it was emptied, as its end lay before its start.
    let mut node = TestNode::new(1);
    let log = node.log("kafka");
    node.fill(&log, 100);
    log.maybe_increment_log_start_offset(90).unwrap();
    node.stop(1);
    let folder = log.dir();
    remove_tree(&node.disk, &folder).unwrap();
    node.start();
    assert_eq!(node.line(&format!("/a/{LOG_STARTS}"), "kafka"), None);
    let log = node.log("kafka");
    node.fill(&log, 10);
    log.flush(true, node.now_ms).unwrap();
    node.kill();
    node.start();
    let log = node.log("kafka");
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (0, 10));
}

#[test]
fn what_a_host_reports_takes_a_directory_offline() {
    let mut node = TestNode::new(2);
    let (one, two) = (node.log("one"), node.log("two"));
    node.fill(&one, 5);
    node.fill(&two, 5);
    let error = Error::new(Kind::Io, "the disk is gone");
    assert!(node.engine().take_offline(Path::new("/a/"), &error));
    assert!(!node.engine().take_offline(Path::new("/a"), &error));
    assert!(!node.engine().take_offline(Path::new("/z"), &error));
    let told = node.engine().log("one", 0).unwrap_err();
    assert!(told.kind() == Kind::Io && told.to_string().contains("the disk is gone"), "{told}");
    let append = one.append_as_follower(&records(1).at(5).build(), 0, 0).unwrap_err();
    assert!(matches!(Error::from(append).kind(), Kind::Io | Kind::Closed));
    node.disk.lock(Path::new("/a/.lock")).unwrap();
    assert_eq!(node.engine().delete("one", 0, 0).unwrap_err().kind(), Kind::Io);
    node.fill(&two, 1);
    node.now_ms += 1_000_000;
    node.run_due();
    let report = node.stop(1);
    assert_eq!(report.dirs.iter().map(|dir| dir.is_clean).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn the_real_disk_is_opened_and_closed_by_several_threads() {
    let home = tempfile::tempdir().unwrap();
    let dirs = [home.path().join("a"), home.path().join("b")];
    let config = |_: &str| LogConfig { segment_index_bytes: 1200, ..LogConfig::default() };
    for round in 0..3_i64 {
        let options = EngineOptions { threads: 2, ..EngineOptions::new(&config, 1) };
        let (engine, report) = Engine::open(Arc::new(Disk::new()), &dirs, &options).unwrap();
        assert_eq!((report.opened, report.refused.len()), (if round == 0 { 0 } else { 40 }, 0));
        for partition in 0..40 {
            let new = NewLog { config: config(""), ..NewLog::default() };
            let log = engine.get_or_create("orders", partition, &new).unwrap();
            assert_eq!(log.log_end_offset(), round);
            log.append_as_follower(&records(1).at(round).epoch(0).build(), 0, 1).unwrap();
        }
        if round == 0 {
            let logs: Vec<_> = engine.logs().into_iter().map(|(_, _, log)| log).collect();
            assert!(engine.flush(&logs, 1).iter().all(Result::is_ok));
            assert!(logs.iter().all(|log| log.recovery_point() == 1));
        } else {
            let report = engine.close(round, 2);
            assert!(report.dirs.iter().all(|dir| dir.is_clean), "{report:?}");
        }
    }
}

#[test]
fn many_segments_are_read_with_few_descriptors() {
    const LOGS: usize = 20;
    const SEGMENTS: usize = 2500;
    let mut node = TestNode::on(siltstone::io::SimDisk::new(), 2);
    node.open_files_max = 300;
    let one = records(1).at(0).epoch(0).build();
    for number in 0..LOGS {
        let dir = format!("/{}/t{number}-0", if number % 2 == 0 { "a" } else { "b" });
        node.disk.put_dir(Path::new(&dir), None).unwrap();
        for base in 0..i64::try_from(SEGMENTS).unwrap() {
            let mut batch = one.clone();
            batch[..8].copy_from_slice(&base.to_be_bytes());
            for (suffix, bytes) in
                [("log", batch), ("index", Vec::new()), ("timeindex", Vec::new())]
            {
                let path = format!("{dir}/{base:020}.{suffix}");
                let file = node.disk.open(Path::new(&path), OpenMode::CreateNew).unwrap();
                file.write_at(&bytes, 0).unwrap();
            }
        }
    }
    node.disk.settle();
    for dir in ["/a", "/b"] {
        let marker = Path::new(dir).join(MARKER);
        node.disk.put(&marker, Vec::new(), None).unwrap();
    }
    node.disk.limit_open_files(500);
    node.start();
    assert_eq!((node.report.opened, node.report.refused.len()), (LOGS, 0));
    let counters = node.engine().counters();
    assert_eq!(counters.segments, u64::try_from(LOGS * SEGMENTS).unwrap());
    let options =
        FetchOptions { max_bytes: 1, isolation: Isolation::LogEnd, min_one_message: true };
    // Far apart, so that none is open when it is read.
    for step in 0..SEGMENTS {
        let offset = i64::try_from(step * 1999 % SEGMENTS).unwrap();
        for number in 0..LOGS {
            let log = node.engine().log(&format!("t{number}"), 0).unwrap().unwrap();
            assert_eq!(log.read(offset, &options).unwrap().bytes[..8], offset.to_be_bytes());
        }
    }
    assert!(node.engine().counters().open_files <= 300);
    assert!(node.disk.open_files_peak() < 500);
    assert!(node.stop(1).dirs.iter().all(|dir| dir.is_clean));
}

#[test]
fn more_partitions_are_written_to_than_files_may_be_open() {
    const LOGS: usize = 150;
    let mut node = TestNode::on(siltstone::io::SimDisk::new(), 2);
    node.open_files_max = 20;
    // A call has a few files of its own beside what stays open, a flush at most as many again.
    node.disk.limit_open_files(45);
    node.start();
    let topics: Vec<String> = (0..LOGS).map(|number| format!("t{number}")).collect();
    let options =
        FetchOptions { max_bytes: 1 << 20, isolation: Isolation::LogEnd, min_one_message: true };
    for round in 0..3_i64 {
        let logs: Vec<_> = topics.iter().map(|topic| node.log(topic)).collect();
        for log in &logs {
            assert_eq!(log.log_end_offset(), round * 4);
            node.fill(log, 3);
        }
        // Opened again by a read, an append and a flush.
        let leases: Vec<_> =
            logs.iter().take(5).map(|log| log.locate(round * 4, &options).unwrap()).collect();
        for log in &logs {
            node.fill(log, 1);
            let first = log.read(round * 4, &options).unwrap();
            assert_eq!(first.bytes[..8], (round * 4).to_be_bytes());
        }
        let leased = leases.iter().map(|fetched| fetched.range.as_ref().unwrap());
        assert!(
            leased.into_iter().all(|range| range.read().unwrap()[..8] == (round * 4).to_be_bytes())
        );
        drop(leases);
        assert!(node.engine().flush(&logs, node.now_ms).iter().all(Result::is_ok));
        assert!(logs.iter().all(|log| log.recovery_point() == round * 4 + 4));
        assert!(logs.iter().all(|log| log.roll(node.now_ms).is_ok()));
        assert!(node.engine().counters().open_files <= 20);
        match round {
            0 => assert!(node.stop(1).dirs.iter().all(|dir| dir.is_clean)),
            _ => node.kill(),
        }
        if round < 2 {
            node.start();
            assert_eq!((node.report.opened, node.report.refused.len()), (LOGS, 0));
        }
    }
    assert!(node.disk.open_files_peak() <= 45);
}
