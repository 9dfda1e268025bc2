//! What can be done with the range of a fetch beside reading it: mapping it, asking whether it is
//! in memory, and having it read there.

use std::path::Path;
use std::sync::Arc;

use siltstone::Kind;
use siltstone::io::{Disk, MapMode, SimDisk, Storage};
use siltstone::log::{FetchOptions, FileRange, Isolation, Log, LogConfig, OpenOptions};
use siltstone_tests::live::{NOW_MS, records};

/// A log of three segments: batches at 0 and 1, at 2 and 3, and at 4.
fn log_on(storage: Arc<dyn Storage>, dir: &Path, value_bytes: usize) -> Log {
    let config = LogConfig {
        segment_index_bytes: 12_000,
        file_delete_delay_ms: 0,
        max_message_bytes: 16 << 20,
        ..LogConfig::default()
    };
    let options = OpenOptions { now_ms: NOW_MS, ..OpenOptions::default() };
    let log = Log::open(storage, dir, config, &options).unwrap();
    for offset in 0..5 {
        let batch = records(1).at(offset).epoch(0).value_bytes(value_bytes).build();
        log.append_as_follower(&batch, 0, NOW_MS).unwrap();
        if offset % 2 == 1 {
            log.roll(NOW_MS).unwrap();
        }
    }
    log.update_high_watermark(5).unwrap();
    log
}

fn real_log(dir: &tempfile::TempDir) -> Log {
    log_on(Arc::new(Disk::new()), &dir.path().join("orders-0"), 3000)
}

fn range(log: &Log, offset: i64) -> FileRange {
    let options =
        FetchOptions { max_bytes: u32::MAX, isolation: Isolation::LogEnd, min_one_message: true };
    log.locate(offset, &options).unwrap().range.expect("bytes")
}

#[test]
fn a_mapped_slice_is_the_file_and_outlives_deletion_and_close() {
    let dir = tempfile::tempdir().unwrap();
    let log = real_log(&dir);
    let (first, second, active) = (range(&log, 1), range(&log, 2), range(&log, 4));
    let slices = [first.clone(), second.clone()].map(|range| {
        assert!(range.map(MapMode::Never).unwrap().is_none(), "only where it was asked for");
        range.map(MapMode::Always).unwrap().expect("a sealed segment")
    });
    let wanted = [first, second].map(|range| {
        assert!(range.is_resident(), "it was just written");
        range.read().unwrap()
    });
    assert!(active.map(MapMode::Always).unwrap().is_none(), "it is written to");
    log.roll(NOW_MS).unwrap();
    let last = active.map(MapMode::Always).unwrap().expect("it is sealed now");
    assert_eq!(*last, active.read().unwrap()[..]);

    log.maybe_increment_log_start_offset(4).unwrap();
    assert_eq!(log.delete_old_segments(NOW_MS).unwrap(), 2);
    log.delete_due_files(NOW_MS + 1).unwrap();
    log.close().unwrap();
    drop(log);
    assert!(!dir.path().join("orders-0/00000000000000000000.log").exists());
    for (slice, wanted) in slices.iter().zip(&wanted) {
        assert!(slice.len() >= 3000 && slice.as_ref() == &wanted[..] && slice.is_whole());
    }
}

#[test]
fn a_log_is_not_cut_under_a_mapped_slice() {
    let dir = tempfile::tempdir().unwrap();
    let log = real_log(&dir);
    let kept = range(&log, 0).map(MapMode::Always).unwrap().expect("a slice");
    let sealed = range(&log, 2);
    let slice = sealed.map(MapMode::Always).unwrap().expect("a slice");
    let error = log.truncate_to(3, NOW_MS).unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    assert!(error.to_string().contains("mapped slices"), "{error}");
    assert!(!log.is_failed() && sealed.is_intact());
    assert_eq!((log.log_end_offset(), log.segments().count()), (5, 3));
    let batch = records(1).at(5).epoch(0).build();
    log.append_as_follower(&batch, 0, NOW_MS).unwrap();
    // The segment that is written to may be cut.
    log.truncate_to(5, NOW_MS).unwrap();
    assert_eq!(slice[..], sealed.read().unwrap()[..]);

    drop(slice);
    assert!(log.truncate_to(3, NOW_MS).unwrap());
    assert_eq!(log.log_end_offset(), 3);
    assert!(sealed.map(MapMode::Always).unwrap().is_none(), "it is written to, and was cut");
    log.roll(NOW_MS).unwrap();
    assert!(sealed.map(MapMode::Always).unwrap().is_none(), "it was cut");
    let again = range(&log, 2).map(MapMode::Always).unwrap().expect("a slice");
    // Where all is removed, files go as they are.
    log.truncate_fully_and_start_at(70, None, NOW_MS).unwrap();
    assert!(kept.len() > 6000 && again.len() > 3000);
    assert_eq!(kept[..8], 0_i64.to_be_bytes());
}

#[test]
fn a_simulated_disk_has_everything_in_memory_and_nothing_mapped() {
    let log = log_on(Arc::new(SimDisk::new()), Path::new("/orders-0"), 3000);
    let range = range(&log, 0);
    assert!(range.map(MapMode::Always).unwrap().is_none());
    range.warm();
    assert!(range.is_resident());
    assert_eq!(range.resident_bytes(), range.size_bytes());
}
