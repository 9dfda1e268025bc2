#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::io::{SimDisk, Storage};
use crate::log::{LogConfig, OpenOptions};
use crate::problem::Code;
use crate::record::builder::{BatchBuilder, BatchOptions};
use crate::record::codec::Compressor;
use crate::segment::FileRole;
use crate::state::checkpoint::format_epochs;
use crate::state::{EpochEntry, LeaderEpochs};
use crate::tier::remote_segment::RemotePartition;
use crate::tier::{LocalTarget, MetadataCache, ObjectBytes, highest_remote, upload_lag};
use crate::uuid::Uuid;

const DIR: &str = "/orders-0";
const REMOTE: &str = "/remote";

fn config() -> LogConfig {
    LogConfig { remote_storage: true, file_delete_delay_ms: 0, ..LogConfig::default() }
}

fn open_in(disk: &SimDisk, dir: &str, config: LogConfig, options: &OpenOptions) -> Log {
    Log::open(Arc::new(disk.clone()), Path::new(dir), config, options).unwrap()
}

fn open(disk: &SimDisk) -> Log {
    open_in(disk, DIR, config(), &OpenOptions::default())
}

/// Appends a batch of one record that takes the offsets up to `next`.
fn append(log: &Log, next: i64, leader_epoch: i32, producer: Option<i32>) {
    let mut options = BatchOptions {
        base_offset: log.log_end_offset(),
        leader_epoch,
        last_offset: Some(next - 1),
        ..BatchOptions::default()
    };
    if let Some(sequence) = producer {
        (options.producer_id, options.producer_epoch, options.base_sequence) = (7, 0, sequence);
        options.last_offset = None;
    }
    let mut builder = BatchBuilder::new(options).unwrap();
    builder.append(1000 + next, None, Some(b"value")).unwrap();
    let mut bytes = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
    log.append_as_follower(&bytes, leader_epoch, 0).unwrap();
}

/// Appends so many segments of one record each; everything is replicated.
fn produce(log: &Log, count: i64, per_segment: i64) {
    for _ in 0..count {
        let end = log.log_end_offset();
        let active = log.segments().last().unwrap().base_offset();
        if end - active >= per_segment {
            log.roll(0).unwrap();
        }
        append(log, end + 1, 0, None);
    }
    log.update_high_watermark(log.log_end_offset()).unwrap();
}

/// The log of the first rows: epochs (0,0)(1,100)(2,200), segments at 0 and 150, the end at 300.
fn three_epochs(disk: &SimDisk) -> Log {
    let log = open(disk);
    append(&log, 100, 0, None);
    append(&log, 150, 1, None);
    log.roll(0).unwrap();
    append(&log, 200, 1, None);
    append(&log, 300, 2, None);
    log.update_high_watermark(250).unwrap();
    log
}

fn partition() -> RemotePartition {
    RemotePartition { topic_id: Uuid([1; 16]), topic: "orders".to_owned(), partition: 0 }
}

/// Keeps what it was asked, and objects in a folder.
struct Host {
    target: LocalTarget,
    layout: ObjectLayout,
    published: Vec<RemoteSegment>,
    updates: Vec<RemoteSegmentUpdate>,
    deleted: Vec<RemoteSegment>,
    admitted: Vec<u64>,
    admits_max: usize,
    custom: Option<Vec<u8>>,
    fails: Option<Kind>,
    keeps_objects: bool,
    is_cancelled: bool,
    ids: u8,
}

impl Host {
    fn new(disk: &SimDisk) -> Self {
        match disk.create_dir(Path::new(REMOTE)) {
            Err(error) if error.kind() == Kind::Conflict => {}
            other => other.unwrap(),
        }
        Host {
            target: LocalTarget::new(Arc::new(disk.clone()), REMOTE),
            layout: ObjectLayout::default(),
            published: Vec::new(),
            updates: Vec::new(),
            deleted: Vec::new(),
            admitted: Vec::new(),
            admits_max: usize::MAX,
            custom: None,
            fails: None,
            keeps_objects: false,
            is_cancelled: false,
            ids: 0,
        }
    }

    fn states(&self) -> Vec<i8> {
        self.updates.iter().map(|update| update.state.wire()).collect()
    }

    fn objects(&self) -> usize {
        self.target.list("").unwrap().len()
    }
}

impl UploadHost for Host {
    fn new_id(&mut self) -> RemoteSegmentId {
        self.ids += 1;
        RemoteSegmentId { partition: partition(), segment_id: Uuid([self.ids; 16]) }
    }

    fn publish(&mut self, segment: &RemoteSegment) -> Result<()> {
        self.published.push(segment.clone());
        Ok(())
    }

    fn publish_update(&mut self, update: RemoteSegmentUpdate) -> Result<()> {
        self.updates.push(update);
        Ok(())
    }

    fn copy(&mut self, parts: &UploadParts) -> Result<Option<Vec<u8>>> {
        put_parts(&self.target, &self.layout, parts)?;
        match self.fails {
            Some(kind) => Err(Error::new(kind, "the store says no")),
            None => Ok(self.custom.clone()),
        }
    }

    fn delete_objects(&mut self, segment: &RemoteSegment) -> Result<()> {
        self.deleted.push(segment.clone());
        if self.keeps_objects {
            return Err(Error::new(Kind::Io, "the store is away"));
        }
        delete_parts(&self.target, &self.layout, segment)
    }

    fn admit(&mut self, size_bytes: u64) -> bool {
        let admits = self.admitted.len() < self.admits_max;
        if admits {
            self.admitted.push(size_bytes);
        }
        admits
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }
}

fn run_from(log: &Log, host: &mut dyn UploadHost, copied: i64) -> (UploadRun, Result<()>) {
    let uploads = LogUploads::of(log, copied, None);
    let mut run = UploadRun::default();
    let uploader = Uploader { broker_id: 5, now_ms: 77, ..Uploader::default() };
    let outcome = run_uploads(log, &uploads, &uploader, host, &mut run);
    (run, outcome)
}

fn run(log: &Log, host: &mut Host) -> UploadRun {
    let (run, outcome) = run_from(log, host, log.highest_remote_offset());
    outcome.unwrap();
    run
}

/// The last offset of a log that is copied, by the search of its leader over what was published.
fn search(log: &Log, host: &Host) -> i64 {
    let mut cache = MetadataCache::new(partition());
    for segment in &host.published {
        cache.add(segment.clone()).unwrap();
    }
    for update in &host.updates {
        cache.update(update).unwrap();
    }
    let highest_of = |epoch| cache.highest_offset(epoch);
    let found = highest_remote(&log.leader_epochs(), log.log_end_offset(), highest_of);
    found.map_or(-1, |found| found.offset)
}

/// A host beside which something happens before and after each segment is copied.
struct Beside<'a> {
    host: &'a mut Host,
    before: &'a dyn Fn(),
    after: &'a dyn Fn(),
}

impl UploadHost for Beside<'_> {
    fn new_id(&mut self) -> RemoteSegmentId {
        self.host.new_id()
    }

    fn publish(&mut self, segment: &RemoteSegment) -> Result<()> {
        self.host.publish(segment)
    }

    fn publish_update(&mut self, update: RemoteSegmentUpdate) -> Result<()> {
        self.host.publish_update(update)
    }

    fn copy(&mut self, parts: &UploadParts) -> Result<Option<Vec<u8>>> {
        (self.before)();
        let copied = self.host.copy(parts);
        (self.after)();
        copied
    }

    fn delete_objects(&mut self, segment: &RemoteSegment) -> Result<()> {
        self.host.delete_objects(segment)
    }

    fn admit(&mut self, size_bytes: u64) -> bool {
        self.host.admit(size_bytes)
    }

    fn is_cancelled(&self) -> bool {
        self.host.is_cancelled()
    }
}

/// What was uploaded: first and last offset of each segment.
fn uploaded(host: &Host) -> Vec<(i64, i64)> {
    host.published.iter().map(|segment| (segment.start_offset, segment.end_offset)).collect()
}

#[test]
fn a_sealed_segment_is_uploaded_with_its_metadata_and_all_its_parts() {
    // spec: tiered-behaviours RC1, RC3
    let disk = SimDisk::new();
    let log = three_epochs(&disk);
    check_first_upload(&disk, &log);
}

#[test]
fn a_topic_that_went_silent_after_a_roll_is_uploaded() {
    // spec: tiered-behaviours RC2
    let disk = SimDisk::new();
    let log = open(&disk);
    append(&log, 100, 0, None);
    append(&log, 150, 1, None);
    log.roll(0).unwrap();
    log.update_high_watermark(150).unwrap();
    check_first_upload(&disk, &log);
}

/// A run uploads the segment 0-149 alone, and all of it.
fn check_first_upload(disk: &SimDisk, log: &Log) {
    let mut host = Host::new(disk);
    assert_eq!((search(log, &host), log.highest_remote_offset()), (-1, -1));
    let highest = Cell::new(i64::MAX);
    let look = || highest.set(log.highest_remote_offset());
    let mut beside = Beside { host: &mut host, before: &look, after: &|| {} };
    let (done, outcome) = run_from(log, &mut beside, -1);
    outcome.unwrap();
    assert_eq!(highest.get(), -1, "it is set to what was found, then to what was copied");
    assert_eq!(search(log, &host), 149);
    let size = log.segments().first().unwrap().size_bytes();
    assert_eq!(uploaded(&host), [(0, 149)]);
    let segment = &host.published[0];
    let epochs: Vec<_> =
        segment.leader_epochs.iter().map(|entry| (entry.epoch, entry.start_offset)).collect();
    assert_eq!(epochs, [(0, 0), (1, 100)]);
    assert_eq!((segment.broker_id, segment.event_timestamp_ms), (5, 77));
    assert_eq!(u64::try_from(segment.size_bytes).unwrap(), size);
    assert_eq!((segment.max_timestamp_ms, segment.is_txn_index_empty), (1150, true));
    assert_eq!(host.states(), [1]);
    assert_eq!(host.admitted, [size], "asked once, and of the whole log");
    let expected =
        UploadRun { copied_offset: 149, requests: 1, copied_bytes: size, ..UploadRun::default() };
    assert_eq!(done, expected);
    assert_eq!(log.highest_remote_offset(), 149);
    let name = |part| host.layout.name(&segment.id, 0, part);
    let text = host.target.get(&name(SegmentPart::LeaderEpochs), None, 1 << 20).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "0\n2\n0 0\n1 100\n");
    for (part, file) in [
        (SegmentPart::Log, "00000000000000000000.log"),
        (SegmentPart::OffsetIndex, "00000000000000000000.index"),
        (SegmentPart::TimeIndex, "00000000000000000000.timeindex"),
        (SegmentPart::ProducerSnapshot, "00000000000000000150.snapshot"),
    ] {
        let local = disk.read(&Path::new(DIR).join(file), 1 << 20).unwrap();
        assert_eq!(host.target.get(&name(part), None, 1 << 20).unwrap(), local, "{file}");
    }
    assert_eq!(host.objects(), 5, "and no transaction index");
}

#[test]
fn a_quota_that_is_exceeded_ends_the_run_between_two_segments() {
    // spec: tiered-behaviours RC5
    let disk = SimDisk::new();
    let log = open(&disk);
    append(&log, 100, 0, None);
    log.roll(0).unwrap();
    append(&log, 150, 1, None);
    log.roll(0).unwrap();
    append(&log, 300, 2, None);
    log.update_high_watermark(250).unwrap();
    let mut host = Host { admits_max: 1, ..Host::new(&disk) };
    assert_eq!(log.highest_remote_offset(), -1);
    run(&log, &mut host);
    assert_eq!((uploaded(&host), log.highest_remote_offset()), (vec![(0, 99)], 99));
    host.admits_max = usize::MAX;
    run(&log, &mut host);
    assert_eq!(uploaded(&host), [(0, 99), (100, 149)]);
}

#[test]
fn custom_metadata_that_is_too_long_undoes_the_upload_and_ends_the_task() {
    // spec: tiered-behaviours RC6
    let disk = SimDisk::new();
    let log = three_epochs(&disk);
    let mut host = Host { custom: Some(vec![9; 256]), ..Host::new(&disk) };
    let done = run(&log, &mut host);
    assert_eq!(host.published[0].state, RemoteSegmentState::CopyStarted);
    let deleted = &host.deleted[..];
    assert_eq!(deleted.len(), 1);
    assert_eq!(deleted[0].state, RemoteSegmentState::CopyFinished);
    assert_eq!(deleted[0].custom_metadata, Some(vec![9; 256]));
    assert_eq!(host.states(), [2, 3]);
    assert_eq!((done.requests, done.copied_bytes, done.failures), (1, 0, 1));
    assert!(done.must_cancel);
    assert_eq!((host.objects(), log.highest_remote_offset()), (0, -1));
    // One byte less than too much.
    let mut host = Host { custom: Some(vec![9; 128]), ..Host::new(&disk) };
    assert!(!run(&log, &mut host).must_cancel);
    assert_eq!(host.updates[0].custom_metadata, Some(vec![9; 128]));
}

#[test]
fn a_store_that_refuses_leaves_nothing() {
    // spec: tiered-behaviours RC7
    let disk = SimDisk::new();
    let log = three_epochs(&disk);
    let mut host = Host { fails: Some(Kind::Unsupported), ..Host::new(&disk) };
    let (done, outcome) = run_from(&log, &mut host, -1);
    assert_eq!(outcome.unwrap_err().kind(), Kind::Unsupported);
    assert_eq!(host.deleted, host.published, "with the metadata of the start, once");
    assert_eq!(host.states(), [2, 3]);
    assert_eq!((done.requests, done.copied_bytes, done.failures), (1, 0, 1));
    assert_eq!(host.objects(), 0);
    let segments = log.segments();
    let sizes = segments.iter().map(|segment| (segment.base_offset(), segment.size_bytes()));
    let lag = upload_lag(sizes, log.highest_remote_offset());
    let first = segments.first().unwrap().size_bytes();
    assert_eq!((lag.size_bytes, lag.segments), (first, 1));
}

#[test]
fn why_a_copy_failed_is_told_although_what_it_left_stays_too() {
    let disk = SimDisk::new();
    let log = three_epochs(&disk);
    let fails = Some(Kind::Unsupported);
    let mut host = Host { fails, keeps_objects: true, ..Host::new(&disk) };
    let (done, outcome) = run_from(&log, &mut host, -1);
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), done.failures), (Kind::Unsupported, 1));
    let told = error.to_string();
    assert!(told.contains("the store says no") && told.contains("the store is away"), "{told}");
    assert_eq!(host.states(), [2], "its removal has started, for expiration to go on with");
}

#[test]
fn a_store_that_is_away_is_tried_again_under_another_id() {
    let disk = SimDisk::new();
    let log = three_epochs(&disk);
    let mut host = Host { fails: Some(Kind::Io), ..Host::new(&disk) };
    let (done, outcome) = run_from(&log, &mut host, -1);
    assert_eq!(outcome.unwrap_err().kind(), Kind::Io);
    assert_eq!((done.requests, done.failures), (1, 0));
    assert!(host.deleted.is_empty() && host.updates.is_empty(), "nothing is cleaned up");
    host.fails = None;
    run(&log, &mut host);
    assert_eq!(uploaded(&host), [(0, 149), (0, 149)]);
    assert_ne!(host.published[0].id, host.published[1].id);
}

#[test]
fn a_log_that_moved_to_another_directory_learns_what_is_copied() {
    // spec: tiered-behaviours RC10
    let disk = SimDisk::new();
    let old = three_epochs(&disk);
    let moved = Cell::new(None);
    // The log moves while the segment is copied.
    let moves = || {
        let new = open_in(&disk, "/moved-0", config(), &OpenOptions::default());
        for (next, epoch) in [(100, 0), (150, 1)] {
            append(&new, next, epoch, None);
        }
        new.roll(0).unwrap();
        append(&new, 300, 2, None);
        new.update_high_watermark(250).unwrap();
        moved.set(Some(new));
    };
    let mut host = Host::new(&disk);
    let mut beside = Beside { host: &mut host, before: &moves, after: &|| {} };
    run_from(&old, &mut beside, -1).1.unwrap();
    let new = moved.take().unwrap();
    assert_eq!((old.highest_remote_offset(), new.highest_remote_offset()), (149, -1));
    // Its own search finds 149; there is nothing to do, and it is told all the same.
    let found = search(&new, &host);
    let (done, outcome) = run_from(&new, &mut host, found);
    outcome.unwrap();
    assert_eq!((found, done.requests, new.highest_remote_offset()), (149, 0, 149));
    // What it uploads then is its own.
    new.update_high_watermark(300).unwrap();
    new.roll(0).unwrap();
    let found = search(&new, &host);
    run_from(&new, &mut host, found).1.unwrap();
    assert_eq!((old.highest_remote_offset(), new.highest_remote_offset()), (149, 299));
}

#[test]
fn a_copy_says_nothing_of_a_log_that_was_cut_meanwhile() {
    // It set the highest remote offset again, and what came in the place of the cut went from the
    // local disk as uploaded.
    let disk = SimDisk::new();
    let log = open(&disk);
    for next in [100, 150, 200] {
        append(&log, next, 0, None);
        log.roll(0).unwrap();
    }
    log.update_high_watermark(200).unwrap();
    let mut host = Host::new(&disk);
    let cuts = || log.truncate_fully_and_start_at(50, Some(0), 0).unwrap();
    let mut beside = Beside { host: &mut host, before: &|| {}, after: &cuts };
    let (done, outcome) = run_from(&log, &mut beside, -1);
    outcome.unwrap();
    // The copy is good, of what the log was; nothing more is copied before somebody has looked.
    assert_eq!((done.requests, done.failures, done.copied_offset), (1, 0, -1));
    assert_eq!((uploaded(&host), host.states()), (vec![(0, 99)], vec![1]));
    assert_eq!(log.highest_remote_offset(), -1);
    // Nor does a run that was planned before: others stand there now.
    let log = three_epochs(&SimDisk::new());
    log.roll(0).unwrap();
    log.update_high_watermark(300).unwrap();
    let uploads = LogUploads::of(&log, 149, None);
    log.truncate_to(100, 0).unwrap();
    append(&log, 150, 3, None);
    log.roll(0).unwrap();
    append(&log, 300, 3, None);
    log.roll(0).unwrap();
    log.update_high_watermark(300).unwrap();
    let (mut host, mut done) = (Host::new(&disk), UploadRun::default());
    run_uploads(&log, &uploads, &Uploader::default(), &mut host, &mut done).unwrap();
    assert_eq!((uploaded(&host), done.copied_offset), (vec![], -1));
    assert_eq!(log.highest_remote_offset(), -1);
    run(&log, &mut host);
    assert_eq!(uploaded(&host), [(0, 149), (150, 299)]);
}

#[test]
fn a_copy_says_nothing_after_remote_storage_was_switched_off() {
    let disk = SimDisk::new();
    let log = three_epochs(&disk);
    let mut host = Host::new(&disk);
    let switches = || {
        log.set_config(LogConfig { remote_storage: false, ..config() });
        log.set_config(config());
    };
    let mut beside = Beside { host: &mut host, before: &switches, after: &|| {} };
    let (done, outcome) = run_from(&log, &mut beside, -1);
    outcome.unwrap();
    assert_eq!((done.requests, done.copied_offset, log.highest_remote_offset()), (1, -1, -1));
}

#[test]
fn a_segment_that_is_cut_while_it_is_copied_ends_the_run_and_is_no_failure() {
    let disk = SimDisk::new();
    let log = three_epochs(&disk);
    let mut host = Host::new(&disk);
    let cuts = || assert!(log.truncate_to(100, 0).unwrap());
    let mut beside = Beside { host: &mut host, before: &cuts, after: &|| {} };
    let (done, outcome) = run_from(&log, &mut beside, -1);
    outcome.unwrap();
    assert_eq!((done.requests, done.failures, done.copied_bytes), (1, 0, 0));
    assert_eq!((host.states(), host.objects()), (vec![2, 3], 0), "nothing of it is left");
    assert_eq!((done.copied_offset, log.highest_remote_offset()), (-1, -1));

    // A cut that reaches into what was copied before takes that back, too.
    let log = three_epochs(&SimDisk::new());
    log.roll(0).unwrap();
    log.update_high_watermark(300).unwrap();
    let mut host = Host::new(&disk);
    let cuts = || {
        if log.highest_remote_offset() == 149 {
            log.truncate_to(100, 0).unwrap();
        }
    };
    let mut beside = Beside { host: &mut host, before: &cuts, after: &|| {} };
    let (done, outcome) = run_from(&log, &mut beside, -1);
    outcome.unwrap();
    assert_eq!((done.requests, done.copied_offset), (2, log.highest_remote_offset()));
    assert!(done.copied_offset < 100, "{}", done.copied_offset);
}

/// The local segments that stay once those are deleted that are uploaded and beyond retention.
fn settle(log: &Log, host: &mut Host) -> (i64, Vec<i64>) {
    run(log, host);
    log.delete_old_segments(0).unwrap();
    let bases = log.segments().iter().map(|segment| segment.base_offset()).collect();
    (log.local_log_start_offset(), bases)
}

#[test]
fn what_is_uploaded_leaves_the_local_disk_and_the_rest_does_not() {
    // spec: tiered-behaviours RC14, RC15
    let disk = SimDisk::new();
    let log = open_in(&disk, DIR, tight(), &OpenOptions::default());
    produce(&log, 3, 1);
    let mut host = Host::new(&disk);
    assert_eq!(settle(&log, &mut host), (2, vec![2]));
    assert_eq!(uploaded(&host), [(0, 0), (1, 1)]);
    let disk = SimDisk::new();
    let log = open_in(&disk, DIR, tight(), &OpenOptions::default());
    produce(&log, 5, 2);
    let mut host = Host::new(&disk);
    assert_eq!(settle(&log, &mut host), (4, vec![4]));
    assert_eq!(uploaded(&host), [(0, 1), (2, 3)]);
}

fn tight() -> LogConfig {
    LogConfig { local_retention_bytes: 1, ..config() }
}

#[test]
fn epochs_are_cut_to_the_segment_and_written_as_text() {
    // spec: tiered-behaviours RC22, RC23
    let entry = |(epoch, start_offset)| EpochEntry { epoch, start_offset };
    let all = [(0, 0), (1, 100), (2, 200)].map(entry);
    let epochs = LeaderEpochs::from_entries(&all).unwrap();
    assert_eq!(epochs.entries_in_range(100, 200), [entry((1, 100))]);
    assert_eq!(epochs.entries_in_range(0, 300), all);
    let text = format_epochs(&[entry((0, 1))]);
    assert_eq!(String::from_utf8(text).unwrap(), "0\n1\n0 1\n");
}

type Prepared = std::result::Result<UploadParts, PrepareError>;

fn prepare(log: &Log, base: i64, next: i64, rebuilds: bool) -> Prepared {
    let id = RemoteSegmentId { partition: partition(), segment_id: Uuid([3; 16]) };
    let upload_as = UploadAs { id, broker_id: 1, now_ms: 0, rebuilds_snapshot: rebuilds };
    prepare_upload(log, base, next, &upload_as)
}

#[test]
fn only_a_sealed_and_stable_segment_can_be_prepared() {
    let disk = SimDisk::new();
    let log = three_epochs(&disk);
    assert!(prepare(&log, 0, 150, false).is_ok());
    for (base, next) in [(150, 300), (0, 149), (0, 300), (1, 150), (400, 500)] {
        let found = prepare(&log, base, next, false).unwrap_err();
        assert!(matches!(found, PrepareError::NotSealed(_)), "{base}: {found}");
    }
    log.roll(0).unwrap();
    let found = prepare(&log, 150, 300, false).unwrap_err();
    assert!(matches!(found, PrepareError::NotStable { last_stable_offset: 250, .. }), "{found}");
}

#[test]
fn a_snapshot_that_is_missing_is_an_error_or_made_of_the_log() {
    // spec: cases S182
    let disk = SimDisk::new();
    let log = open(&disk);
    for sequence in 0..4 {
        append(&log, 0, 0, Some(sequence));
        log.roll(0).unwrap();
    }
    log.update_high_watermark(4).unwrap();
    let path = |offset: i64| Path::new(DIR).join(format!("{offset:020}.snapshot"));
    let written: Vec<_> = (1..=4).map(|at| disk.read(&path(at), 1 << 20).unwrap()).collect();
    // Made of the one before, and of the batches behind it alone.
    disk.remove_file(&path(3)).unwrap();
    assert!(matches!(prepare(&log, 2, 3, false), Err(PrepareError::NoSnapshot(3))));
    assert_eq!(log.snapshot_at(3).unwrap(), written[2]);
    for at in [1, 2, 4] {
        disk.remove_file(&path(at)).unwrap();
    }
    assert_eq!(log.snapshot_at(3).unwrap(), written[2], "of all batches");
    let parts = prepare(&log, 2, 3, true).unwrap();
    let Some(ObjectBytes::Memory(bytes)) = parts.bytes(SegmentPart::ProducerSnapshot) else {
        panic!("bytes in memory")
    };
    assert_eq!(bytes, written[2]);
}

#[test]
fn a_broken_index_is_found_before_it_is_uploaded_and_blocks_its_segment() {
    // spec: cases S183
    let disk = SimDisk::new();
    let log = open(&disk);
    produce(&log, 4, 1);
    log.close().unwrap();
    let path = Path::new(DIR).join("00000000000000000001.timeindex");
    let good = disk.read(&path, 1 << 20).unwrap();
    let file = disk.open(&path, crate::io::OpenMode::ReadWrite).unwrap();
    let size = u64::try_from(good.len()).unwrap();
    file.write_at(&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], size).unwrap();
    let log = open(&disk);
    log.update_high_watermark(4).unwrap();
    let mut host = Host::new(&disk);
    let (_, outcome) = run_from(&log, &mut host, -1);
    assert_eq!(outcome.unwrap_err().kind(), Kind::Corrupt);
    assert_eq!((uploaded(&host), log.highest_remote_offset()), (vec![(0, 0)], 0));
    let blocked = |log: &Log| LogUploads::of(log, 0, None).view().candidates(0).stop;
    assert_eq!(blocked(&log).as_str(), Code::TimeindexOrder.as_str());
    assert_eq!(run(&log, &mut host).requests, 0, "it is not tried again and again");
    // Mended, it can be prepared, and is a candidate again.
    file.set_size(size).unwrap();
    prepare(&log, 1, 2, false).unwrap();
    assert_eq!(blocked(&log).as_str(), "active");
    run(&log, &mut host);
    assert_eq!(uploaded(&host), [(0, 0), (1, 1), (2, 2)]);
}

#[test]
fn a_broken_snapshot_is_not_uploaded() {
    // It went as it was, and no replica could be built from the segment.
    let disk = SimDisk::new();
    let log = open(&disk);
    for sequence in 0..3 {
        append(&log, 0, 0, Some(sequence));
        log.roll(0).unwrap();
    }
    log.update_high_watermark(3).unwrap();
    let path = |offset: i64| Path::new(DIR).join(format!("{offset:020}.snapshot"));
    let good = disk.read(&path(2), 1 << 20).unwrap();
    let later = disk.read(&path(3), 1 << 20).unwrap();
    let file = disk.open(&path(2), crate::io::OpenMode::ReadWrite).unwrap();
    let put = |bytes: &[u8]| {
        file.set_size(0).unwrap();
        file.write_at(bytes, 0).unwrap();
    };
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let mut host = Host::new(&disk);
    for (bytes, code) in [
        (&flipped[..], Code::SnapshotCrc),
        (&good[..good.len() - 1], Code::SnapshotTruncated),
        (&[][..], Code::SnapshotTruncated),
        (&later[..], Code::SnapshotMismatch),
    ] {
        put(bytes);
        let found = prepare(&log, 1, 2, false).unwrap_err();
        let role = FileRole::Snapshot;
        assert!(
            matches!(found, PrepareError::Damaged { role: r, code: c } if (r, c) == (role, code))
        );
        let stop = LogUploads::of(&log, 0, None).view().candidates(0).stop;
        assert_eq!(stop.as_str(), code.as_str());
        // Made of the log, it is as it was.
        assert_eq!(log.snapshot_at(2).unwrap(), good, "{code:?}");
        let parts = prepare(&log, 1, 2, true).unwrap();
        let Some(ObjectBytes::Memory(made)) = parts.bytes(SegmentPart::ProducerSnapshot) else {
            panic!("bytes in memory")
        };
        assert_eq!(made, good);
    }
    put(&good);
    prepare(&log, 1, 2, false).unwrap();
    run(&log, &mut host);
    assert_eq!(uploaded(&host), [(0, 0), (1, 1), (2, 2)]);
}

#[test]
fn a_segment_that_was_cut_since_the_scan_is_not_uploaded() {
    let disk = SimDisk::new();
    let log = open(&disk);
    produce(&log, 4, 1);
    let uploads = LogUploads::of(&log, -1, None);
    assert_eq!(uploads.view().candidates(0).count(), 3);
    log.truncate_to(1, 0).unwrap();
    let mut host = Host::new(&disk);
    let mut done = UploadRun::default();
    run_uploads(&log, &uploads, &Uploader::default(), &mut host, &mut done).unwrap();
    assert_eq!((uploaded(&host), done.copied_offset), (vec![(0, 0)], 0));
}

#[test]
fn the_files_of_an_upload_outlive_the_segment() {
    let disk = SimDisk::new();
    let log = three_epochs(&disk);
    let parts = prepare(&log, 0, 150, false).unwrap();
    let bytes = disk.read(&Path::new(DIR).join("00000000000000000000.log"), 1 << 20).unwrap();
    log.truncate_fully_and_start_at(400, None, 0).unwrap();
    log.delete_due_files(i64::MAX).unwrap();
    assert_eq!(log.segments().count(), 1);
    let mut found = vec![0; bytes.len()];
    assert_eq!(parts.files.log().read_at(&mut found, 0).unwrap(), bytes.len());
    assert_eq!(found, bytes);
    assert!(parts.files.is_intact(), "it was removed, and not cut");
}
