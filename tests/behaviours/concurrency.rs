//! One writer and many readers: a second writer is turned away, readers see whole batches in order,
//! and what they hold stays good whatever becomes of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use siltstone::Kind;
use siltstone::io::Disk;
use siltstone::log::{
    Cleaner, CleanerOptions, FetchOptions, Isolation, Log, LogConfig, OpenOptions,
};
use siltstone::record::validate::Batches;
use siltstone::segment::{LogMaps, OpenFiles};
use siltstone_tests::live::{NOW_MS, TestLog, records};

const ALL: FetchOptions =
    FetchOptions { max_bytes: 4000, isolation: Isolation::LogEnd, min_one_message: true };

fn on_a_disk() -> (tempfile::TempDir, Log) {
    on_a_disk_with(LogMaps::Never)
}

fn on_a_disk_with(maps: LogMaps) -> (tempfile::TempDir, Log) {
    let dir = tempfile::tempdir().unwrap();
    let config = LogConfig {
        segment_bytes: 4000,
        index_interval_bytes: 200,
        segment_index_bytes: 4096,
        file_delete_delay_ms: 0,
        ..LogConfig::default()
    };
    let options = OpenOptions {
        open_files: OpenFiles::with_maps(9, maps),
        now_ms: NOW_MS,
        ..OpenOptions::default()
    };
    let path = dir.path().join("orders-0");
    let log = Log::open(Arc::new(Disk::new()), &path, config, &options).unwrap();
    (dir, log)
}

/// The batch at an offset: one record whose value has a size that the offset tells.
fn batch(offset: i64) -> Vec<u8> {
    let size = usize::try_from(offset % 50).unwrap();
    records(1).at(offset).epoch(0).value_bytes(size).times(&[NOW_MS + offset]).build()
}

#[test]
fn a_second_writer_is_turned_away() {
    let log = TestLog::new();
    let other = log.log().with_producers(|_| log.try_follow(&batch(0)));
    let error = siltstone::Error::from(other.unwrap().unwrap_err());
    assert_eq!(error.kind(), Kind::Conflict);
    let other = log.log().with_producers(|_| log.log().roll(NOW_MS));
    assert_eq!(other.unwrap().unwrap_err().kind(), Kind::Conflict);
    log.try_follow(&batch(0)).unwrap();
}

/// What others do beside it keeps a writer waiting, and turns it away never.
#[test]
fn one_that_appends_is_never_turned_away_by_what_goes_on_beside_it() {
    let (_dir, log) = on_a_disk();
    /// Over also when an append fails.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let is_over = AtomicBool::new(false);
    let beside = |act: &(dyn Fn() -> siltstone::Result<()> + Sync)| {
        let mut done = 0;
        while !is_over.load(Ordering::Relaxed) || done == 0 {
            match act() {
                Err(error) => assert_eq!(error.kind(), Kind::Conflict, "{error}"),
                Ok(()) => done += 1,
            }
        }
    };
    let verify = || log.start_verification(77, 0, 0, true, NOW_MS);
    let acts: [&(dyn Fn() -> siltstone::Result<()> + Sync); 7] = [
        &|| log.with_producers(|state| state.producers().count()).map(drop),
        &|| log.update_high_watermark(log.log_end_offset()).map(drop),
        &|| log.maybe_increment_log_start_offset(log.high_watermark() / 2).map(drop),
        &|| log.delete_old_segments(NOW_MS).map(drop),
        &|| log.remove_expired_producers(NOW_MS),
        &|| log.first_unstable_offset().map(drop),
        &|| verify().map(drop).map_err(Into::into),
    ];
    std::thread::scope(|scope| {
        for act in acts {
            scope.spawn(move || beside(act));
        }
        let _over = Over(&is_over);
        for offset in 0..2000 {
            log.append_as_follower(&batch(offset), i32::MAX, NOW_MS).unwrap();
        }
    });
    assert_eq!(log.log_end_offset(), 2000);
}

#[test]
fn what_readers_have_in_memory_of_a_sealed_index_does_not_outlive_a_truncation() {
    let (_dir, log) = on_a_disk();
    let follow = |offsets: std::ops::Range<i64>, epoch: i32, value_bytes: usize| {
        for offset in offsets {
            let batch = records(1).at(offset).epoch(epoch).value_bytes(value_bytes);
            let batch = batch.times(&[NOW_MS + offset]).build();
            log.append_as_follower(&batch, epoch, NOW_MS).unwrap();
        }
    };
    let look_at = |end: i64| {
        for offset in 0..end {
            let base = log.locate(offset, &ALL).unwrap().place.offset;
            assert_eq!(base, offset);
            let found = log.offset_for_timestamp(NOW_MS + offset).unwrap();
            assert_eq!(found.unwrap().offset, offset);
        }
    };
    follow(0..300, 0, 20);
    assert!(log.segments().count() > 5);
    (0..3).for_each(|_| look_at(300));
    // In the midst of a segment whose indexes the readers have in memory by now.
    let sealed = log.segments().iter().nth(2).unwrap().base_offset();
    log.truncate_to(sealed + 7, NOW_MS).unwrap();
    follow(sealed + 7..300, 1, 90);
    (0..3).for_each(|_| look_at(300));
    log.close().unwrap();
}

#[test]
fn readers_see_whole_batches_in_order_while_the_log_grows_rolls_and_shrinks() {
    for maps in [LogMaps::Never, LogMaps::Sealed] {
        readers_see_whole_batches(maps);
    }
}

fn readers_see_whole_batches(maps: LogMaps) {
    let (_dir, log) = on_a_disk_with(maps);
    let is_over = AtomicBool::new(false);
    let reads = AtomicI64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut offset = 0;
                while !is_over.load(Ordering::Acquire) {
                    match log.read(offset, &ALL) {
                        Ok(fetched) => {
                            for found in Batches::new(&fetched.bytes) {
                                let found = found.unwrap();
                                let base = found.header.base_offset;
                                assert!(base >= offset, "{base} behind {offset}");
                                assert_eq!(found.bytes, batch(base));
                                offset = base + 1;
                                reads.fetch_add(1, Ordering::Relaxed);
                            }
                            if fetched.bytes.is_empty() {
                                offset = log.log_start_offset();
                            }
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), Kind::OutOfRange, "{error}");
                            offset = log.log_start_offset();
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                log.flush(false, NOW_MS).unwrap();
                log.delete_due_files(NOW_MS).unwrap();
            }
        });
        let mut end = 0;
        for round in 0..1500 {
            let count = 1 + round % 7;
            let bytes: Vec<u8> = (end..end + count).flat_map(batch).collect();
            log.append_as_follower(&bytes, 0, NOW_MS).unwrap();
            end += count;
            if round % 50 == 49 {
                end -= end % 13;
                log.truncate_to(end, NOW_MS).unwrap();
            }
            if round % 100 == 99 {
                log.update_high_watermark(end).unwrap();
                log.maybe_increment_log_start_offset(end - 100).unwrap();
                log.delete_old_segments(NOW_MS).unwrap();
            }
        }
        is_over.store(true, Ordering::Release);
    });
    assert!(reads.load(Ordering::Relaxed) > 0);
    log.close().unwrap();
}

/// Whether this process has a map of a file below a directory.
fn is_mapped(dir: &std::path::Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains(&*dir.to_string_lossy())
}

#[test]
fn a_log_is_cut_and_deleted_under_the_maps_of_its_readers() {
    let (dir, log) = on_a_disk_with(LogMaps::Sealed);
    let follow = |offsets: std::ops::Range<i64>| {
        for offset in offsets {
            log.append_as_follower(&batch(offset), 0, NOW_MS).unwrap();
        }
    };
    let is_over = AtomicBool::new(false);
    let reads = AtomicI64::new(0);
    let look = |first: i64, from: i64| {
        // Of every offset that is there the batch is found, whatever is cut meanwhile.
        let mut at = first;
        while !is_over.load(Ordering::Acquire) {
            at = (at * 48_271) % 2_147_483_647;
            let offset = from + at % (300 - from);
            match log.locate(offset, &ALL) {
                Ok(found) => assert!(found.place.offset == offset || offset >= 140, "{offset}"),
                Err(error) => assert_eq!(error.kind(), Kind::OutOfRange, "{error}"),
            }
            reads.fetch_add(1, Ordering::Relaxed);
        }
    };
    follow(0..300);
    for offset in (0..300).chain(0..300) {
        assert_eq!(log.locate(offset, &ALL).unwrap().place.offset, offset);
    }
    let mapped_once = is_mapped(dir.path());
    std::thread::scope(|scope| {
        scope.spawn(|| look(1, 0));
        scope.spawn(|| look(7, 140));
        for round in 0..400_i64 {
            let reads_before = reads.load(Ordering::Relaxed);
            while reads.load(Ordering::Relaxed) < reads_before + 200 {
                std::thread::yield_now();
            }
            // Into segments that are sealed, and mapped.
            let end = 140 + round * 37 % 150;
            log.truncate_to(end, NOW_MS).unwrap();
            assert_eq!(log.log_end_offset(), end);
            follow(end..300);
        }
        is_over.store(true, Ordering::Release);
    });
    assert!(mapped_once, "a sealed segment that is looked into again and again");
    log.update_high_watermark(300).unwrap();
    log.maybe_increment_log_start_offset(250).unwrap();
    log.delete_old_segments(NOW_MS).unwrap();
    log.delete_due_files(NOW_MS).unwrap();
    for offset in (250..300).chain(250..300) {
        assert_eq!(log.read(offset, &ALL).unwrap().place.offset, offset);
    }
    log.close().unwrap();
    assert!(!is_mapped(dir.path()));
}

#[test]
fn a_lease_outlives_roll_deletion_truncation_and_close() {
    let (_dir, log) = on_a_disk();
    for offset in 0..200 {
        log.append_as_follower(&batch(offset), 0, NOW_MS).unwrap();
    }
    let bases: Vec<i64> = log.segments().iter().map(|segment| segment.base_offset()).collect();
    assert!(bases.len() > 3);
    let lease = |offset| log.locate(offset, &ALL).unwrap().range.unwrap();
    let (sealed, active) = (lease(0), lease(199));
    let first = |range: &siltstone::log::FileRange| {
        let bytes = range.read().unwrap();
        Batches::new(&bytes).next().unwrap().unwrap().header.base_offset
    };
    log.roll(NOW_MS).unwrap();
    assert_eq!((first(&sealed), first(&active)), (0, 199));
    log.update_high_watermark(200).unwrap();
    log.maybe_increment_log_start_offset(150).unwrap();
    log.delete_old_segments(NOW_MS).unwrap();
    assert!(log.delete_due_files(NOW_MS).unwrap() > 0);
    assert_eq!((first(&sealed), first(&active)), (0, 199));
    assert!(sealed.is_intact());
    log.truncate_to(190, NOW_MS).unwrap();
    assert!(!active.is_intact(), "its bytes were cut");
    assert_eq!(active.read().unwrap(), [0_u8; 0]);
    let kept = lease(185);
    log.close().unwrap();
    assert_eq!((first(&sealed), first(&kept)), (0, 185));
    assert_eq!(log.read(185, &ALL).unwrap_err().kind(), Kind::Closed);
}

#[test]
fn few_segments_are_open_however_many_are_read() {
    let mut log = TestLog::with(|config| config.segment_bytes = 100);
    log.open_with(|options| options.open_files = siltstone::segment::OpenFiles::new(9));
    for offset in 0..60 {
        log.follow(&records(1).at(offset).epoch(0));
    }
    assert_eq!(log.bases().len(), 60);
    for offset in 0..60 {
        assert_eq!(log.read(offset).place.offset, offset);
    }
    let open = log.log().segments().iter().filter(|segment| segment.is_open()).count();
    assert_eq!(open, 5, "four that were read, with two files each, and the one that is written to");
}

#[test]
fn a_log_moves_to_another_name_and_ends_for_good() {
    // spec: behaviours LL-004, LL-005, UL-105
    use siltstone::io::Storage;
    let mut log = TestLog::new();
    log.try_lead(&records(1), 5).unwrap();
    log.log().roll(NOW_MS).unwrap();
    let lease = log.log().locate(0, &ALL).unwrap().range.unwrap();
    let new = std::path::Path::new("/orders-0.0123456789abcdef0123456789abcdef-delete");
    assert!(log.log().rename_dir(new, false).unwrap());
    assert!(!log.log().rename_dir(new, false).unwrap());
    assert_eq!(log.log().dir().as_path(), new);
    assert_eq!(log.bases(), [0, 1]);
    let disk: &dyn Storage = &log.disk;
    assert_eq!(disk.list(std::path::Path::new("/orders-0")).unwrap_err().kind(), Kind::NotFound);
    log.try_lead(&records(1), 10).unwrap();
    assert_eq!(log.log().latest_epoch(), Some(10));
    let disk: &dyn Storage = &log.disk;
    assert_eq!(disk.read(&new.join("leader-epoch-checkpoint"), 100).unwrap(), b"0\n1\n10 1\n");
    log.log().delete().unwrap();
    assert_eq!(disk.list(new).unwrap_err().kind(), Kind::NotFound);
    assert_eq!(log.try_read(0, 10, Isolation::LogEnd).unwrap_err().kind(), Kind::Closed);
    assert_eq!(lease.read().unwrap().len(), 69);
}

#[test]
fn a_log_is_deleted_while_it_is_compacted() {
    // The round went on to make files in the directory that was being removed.
    for round in 0..40_u32 {
        let (_dir, log) = on_a_disk();
        for offset in 0..200 {
            log.append_as_follower(&batch(offset), 0, NOW_MS).unwrap();
        }
        log.update_high_watermark(200).unwrap();
        let options = CleanerOptions { step_bytes: 300, ..CleanerOptions::default() };
        let mut cleaner = Cleaner::new(options);
        let range = log.cleanable(None, NOW_MS).unwrap();
        let steps = AtomicI64::new(0);
        std::thread::scope(|scope| {
            let compactor = scope.spawn(|| {
                let mut compaction = match log.begin_compaction(&mut cleaner, &range, NOW_MS) {
                    Ok(compaction) => compaction,
                    Err(error) => return error.kind(),
                };
                loop {
                    match compaction.step() {
                        Ok(done) => assert!(done.is_none(), "a round that comes to its end"),
                        Err(error) if error.kind() == Kind::Conflict => {}
                        Err(error) => return error.kind(),
                    }
                    // From here on there is time for the deletion before the round ends.
                    if steps.fetch_add(1, Ordering::AcqRel) >= i64::from(round) {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
            });
            while steps.load(Ordering::Acquire) < i64::from(round) {
                std::thread::yield_now();
            }
            while let Err(error) = log.delete() {
                assert_eq!(error.kind(), Kind::Conflict, "{error}");
            }
            assert!(!log.dir().exists());
            let why = compactor.join().unwrap();
            // Before the first step there may be no round yet.
            let is_early = round == 0 && matches!(why, Kind::Conflict | Kind::Closed);
            assert!(why == Kind::Cancelled || is_early, "{why:?}");
        });
        assert!(!log.dir().exists());
    }
}

#[test]
fn a_round_that_nobody_takes_further_keeps_no_log_from_going() {
    let (_dir, log) = on_a_disk();
    for offset in 0..200 {
        log.append_as_follower(&batch(offset), 0, NOW_MS).unwrap();
    }
    log.update_high_watermark(200).unwrap();
    let mut cleaner = Cleaner::default();
    let range = log.cleanable(None, NOW_MS).unwrap();
    let mut first = log.begin_compaction(&mut cleaner, &range, NOW_MS).unwrap();
    log.pause_compaction();
    assert_eq!(first.step().unwrap_err().kind(), Kind::Cancelled);
    drop(first);
    let error = log.begin_compaction(&mut cleaner, &range, NOW_MS).unwrap_err();
    assert_eq!(error.kind(), Kind::Cancelled);
    log.resume_compaction();
    let mut second = log.begin_compaction(&mut cleaner, &range, NOW_MS).unwrap();
    assert_eq!(second.step().unwrap(), None);
    log.delete().unwrap();
    assert_eq!(second.step().unwrap_err().kind(), Kind::Cancelled);
    assert!(second.is_abandoned());
}
