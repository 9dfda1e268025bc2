//! `preallocate`: room on the disk for a whole segment, in a file that is as long as its batches.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use siltstone::io::{Disk, OpenMode, Storage};
use siltstone::log::{Log, LogConfig, OpenOptions};
use siltstone_tests::live::{NOW_MS, TestLog, records};

const SEGMENT_BYTES: u32 = 4 << 20;
const ENOSPC: i32 = 28;

fn config() -> LogConfig {
    LogConfig { preallocate: true, segment_bytes: SEGMENT_BYTES, ..LogConfig::default() }
}

/// The length of a file, and what it takes of the disk.
fn sizes(dir: &Path, base: i64) -> (u64, u64) {
    let metadata = std::fs::metadata(dir.join(format!("{base:020}.log"))).unwrap();
    (metadata.len(), metadata.blocks() * 512)
}

#[test]
fn room_for_a_segment_is_taken_when_it_begins_and_given_back_when_it_ends() {
    let home = tempfile::tempdir().unwrap();
    let disk = Disk::new();
    let probe = disk.open(&home.path().join("probe"), OpenMode::CreateNew).unwrap();
    probe.reserve(1 << 20).unwrap();
    let metadata = std::fs::metadata(home.path().join("probe")).unwrap();
    assert_eq!(metadata.len(), 0);
    let is_reserved = metadata.blocks() * 512 >= 1 << 20;
    let dir = home.path().join("orders-0");
    let reserved = |base: i64| {
        let (length, taken) = sizes(&dir, base);
        assert!(!is_reserved || taken >= u64::from(SEGMENT_BYTES), "{base}: {taken}");
        length
    };
    let given_back = |base: i64| {
        let (length, taken) = sizes(&dir, base);
        assert!(taken < u64::from(SEGMENT_BYTES), "{base}: {taken}");
        length
    };
    let bytes = |offset| records(1).at(offset).epoch(0).build();
    let size = u64::try_from(bytes(0).len()).unwrap();
    let open = |clean_shutdown| {
        let options = OpenOptions { clean_shutdown, now_ms: NOW_MS, ..OpenOptions::default() };
        Log::open(Arc::new(Disk::new()), &dir, config(), &options).unwrap()
    };
    let log = open(true);
    assert_eq!(reserved(0), 0);
    log.append_as_follower(&bytes(0), 0, NOW_MS).unwrap();
    assert_eq!(reserved(0), size);
    log.roll(NOW_MS).unwrap();
    assert_eq!((given_back(0), reserved(1)), (size, 0));
    log.append_as_follower(&bytes(1), 0, NOW_MS).unwrap();
    // A log that was killed gives back what its process had taken with the next clean stop.
    drop(log);
    let log = open(false);
    assert_eq!((log.log_end_offset(), reserved(1)), (2, size));
    log.close().unwrap();
    assert_eq!(given_back(1), size);
}

#[test]
fn a_disk_without_room_for_a_segment_leaves_the_log_as_it_was() {
    let setup = || {
        let mut log = TestLog::with(|config| {
            *config = LogConfig { segment_bytes: 200, ..self::config() };
        });
        log.lead(&records(1).value_bytes(100));
        log
    };
    let mut log = setup();
    let first = log.disk.operation_count();
    log.lead(&records(1).value_bytes(100));
    assert_eq!(log.bases(), [0, 1]);
    let mut failures = 0;
    for number in first..log.disk.operation_count() {
        let mut log = setup();
        log.disk.fail_at(number, ENOSPC);
        failures += u32::from(log.try_lead(&records(1).value_bytes(100), 0).is_err());
        log.disk.mend();
        let end = log.log().log_end_offset();
        assert_eq!(log.lead(&records(1).value_bytes(100)).first_offset, Some(end), "{number}");
        // No file of a segment that never was is found behind the end of another.
        log.crash(0);
        assert_eq!(log.log().log_end_offset(), end + 1, "{number}");
        assert_eq!(log.headers().len(), usize::try_from(end + 1).unwrap(), "{number}");
    }
    assert!(failures > 1, "{failures}");
}
