//! A small segment, cut at every byte and with every bit flipped: each time a verdict, and what is
//! kept are whole batches from the start.

use std::path::{Path, PathBuf};

use siltstone::io::SimDisk;
use siltstone::io::sim::{Entry, Snapshot};
use siltstone::log::recover::{Plan, RecoverOptions};
use siltstone::log::{PartitionReport, VerifyOptions, verify_file, verify_partition};
use siltstone::problem::Severity;
use siltstone::record::codec::Codec;
use siltstone_tests::logs::{LogBuilder, log_name};

use crate::logs::DIR;
use crate::recovery::recover;

const BASE_OFFSET: i64 = 7;
const NOW_MS: i64 = 1_700_000_100_000;
const EXPIRATION_MS: i64 = i32::MAX as i64;

/// Where the magic stands in every batch, new or old.
const MAGIC_POSITION: usize = 16;
/// The first byte that no checksum covers: the base offset.
const OFFSET_FIELD: std::ops::Range<usize> = 0..8;
/// Nor does it cover the leader epoch of a batch of magic 2.
const EPOCH_FIELD: std::ops::Range<usize> = 12..16;

/// One segment and where its batches begin.
struct Segment {
    bytes: Vec<u8>,
    /// The last is the end.
    borders: Vec<usize>,
}

impl Segment {
    fn of(steps: &[&dyn Fn(LogBuilder) -> LogBuilder]) -> Self {
        let mut log = LogBuilder::starting_at(BASE_OFFSET).value(b"v");
        let mut borders = vec![0];
        for step in steps {
            log = step(log);
            borders.push(log.newest().len());
        }
        Segment { bytes: log.newest().to_vec(), borders }
    }

    /// The last border that is not behind this byte.
    fn border_before(&self, at: usize) -> usize {
        let before = self.borders.iter().rev().find(|border| **border <= at);
        *before.expect("a segment begins with a border")
    }

    /// Whether a checksum or the frame tells when this byte is another.
    fn is_covered(&self, at: usize) -> bool {
        let start = self.border_before(at);
        let field = at - start;
        let is_new = self.bytes[start + MAGIC_POSITION] == 2;
        !(OFFSET_FIELD.contains(&field) || is_new && EPOCH_FIELD.contains(&field))
    }
}

/// Every codec.
fn new_batches() -> Segment {
    Segment::of(&[
        &|log| log.batch(1),
        &|log| log.codec(Codec::Gzip).batch(1),
        &|log| log.codec(Codec::Snappy).batch(1),
        &|log| log.codec(Codec::Lz4).batch(1),
        &|log| log.codec(Codec::Zstd).batch(1),
    ])
}

/// Transactions that end both ways, and what compaction leaves of a batch.
fn transactions() -> Segment {
    Segment::of(&[
        &|log| log.txn(1, 1),
        &|log| log.commit(1),
        &|log| log.txn(1, 1),
        &|log| log.abort(1),
        &|log| log.emptied(2),
        &|log| log.epoch(1).idempotent(2, 1),
    ])
}

/// Old messages, alone and wrapped, before a batch of today.
fn old_messages() -> Segment {
    Segment::of(&[
        &|log| log.legacy(0, 1),
        &|log| log.codec(Codec::Gzip).legacy(0, 1),
        &|log| log.codec(Codec::Snappy).legacy(0, 1),
        &|log| log.codec(Codec::Lz4).legacy(0, 1),
        &|log| log.legacy(1, 1),
        &|log| log.codec(Codec::Snappy).legacy(1, 1),
        &|log| log.codec(Codec::None).legacy(1, 1),
        &|log| log.batch(1),
    ])
}

#[test]
fn every_prefix_of_new_batches_is_cut_to_whole_ones() {
    cut_everywhere(&new_batches());
}

#[test]
fn every_prefix_of_transactions_is_cut_to_whole_batches() {
    cut_everywhere(&transactions());
}

#[test]
fn every_prefix_of_old_messages_is_cut_to_whole_ones() {
    cut_everywhere(&old_messages());
}

#[test]
fn every_flipped_bit_of_new_batches_gets_a_verdict() {
    flip_everywhere(&new_batches());
}

#[test]
fn every_flipped_bit_of_transactions_gets_a_verdict() {
    flip_everywhere(&transactions());
}

#[test]
fn every_flipped_bit_of_old_messages_gets_a_verdict() {
    flip_everywhere(&old_messages());
}

fn cut_everywhere(segment: &Segment) {
    for size in 0..=segment.bytes.len() {
        let _named = Named(format!("cut at {size}"));
        let border = segment.border_before(size);
        let disk = disk_of(&segment.bytes[..size]);
        let is_corrupt = worst(&look(&disk)) >= Some(Severity::Corrupt);
        assert_eq!(is_corrupt, border < size, "what verify says");
        let (plan, files) = recovered(&disk, false);
        assert!(plan.refusal.is_none(), "{:?}", plan.refusal);
        assert_eq!(log_of(&files), &segment.bytes[..border]);
        assert!(worst(&look(&disk)) < Some(Severity::Repairable), "{:#?}", look(&disk).problems);
    }
}

fn flip_everywhere(segment: &Segment) {
    for (at, bit) in (0..segment.bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let _named = Named(format!("byte {at}, bit {bit}"));
        let mut bytes = segment.bytes.clone();
        bytes[at] ^= 1 << bit;
        let disk = disk_of(&bytes);
        if segment.is_covered(at) {
            let report = look(&disk);
            assert!(worst(&report) >= Some(Severity::Corrupt), "{:#?}", report.problems);
        }
        for allow_loss in [false, true] {
            let disk = disk.fork();
            let (plan, files) = recovered(&disk, allow_loss);
            check_kept(segment, &bytes, at, &plan, &files);
        }
    }
}

/// What a recovery may leave of a segment in which one bit is another.
fn check_kept(segment: &Segment, bytes: &[u8], at: usize, plan: &Plan, files: &Snapshot) {
    let kept = log_of(files);
    if plan.refusal.is_some() {
        assert_eq!(kept, bytes, "refused, but changed");
        assert_eq!(files.entries.len(), 1, "refused, but something is new");
        return;
    }
    assert!(bytes.starts_with(kept), "other bytes are kept");
    assert!(segment.borders.contains(&kept.len()), "half a batch is kept: {}", kept.len());
    let border = segment.border_before(at);
    assert!(kept.len() >= border, "whole batches are gone: {} of {border}", kept.len());
    assert!(kept.len() == border || !segment.is_covered(at), "damage is kept: {}", kept.len());
    // What was cut with whole batches in it is not gone.
    let lost = format!("{}.lost", log_name(BASE_OFFSET));
    let lost = file(files, &lost).unwrap_or_default();
    let is_cut_in_the_middle = plan.cut.as_ref().is_some_and(|cut| cut.survivors.any());
    assert_eq!(lost, if is_cut_in_the_middle { &bytes[kept.len()..] } else { &[] });
}

/// Says what was tried when it goes wrong.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}

fn log_path() -> PathBuf {
    Path::new(DIR).join(log_name(BASE_OFFSET))
}

fn disk_of(log: &[u8]) -> SimDisk {
    let disk = SimDisk::new();
    disk.put(&log_path(), log.to_vec(), None).expect("a file in place");
    disk
}

/// What verify says of the partition; of the log alone it must have something to say, too.
fn look(disk: &SimDisk) -> PartitionReport {
    let options = VerifyOptions {
        now_ms: NOW_MS,
        producer_id_expiration_ms: EXPIRATION_MS,
        ..VerifyOptions::default()
    };
    let alone = verify_file(disk, &log_path(), &options).expect("a file that can be read");
    let report = verify_partition(disk, Path::new(DIR), &options).expect("a partition");
    let is_corrupt = |report: &PartitionReport| worst(report) >= Some(Severity::Corrupt);
    assert_eq!(is_corrupt(&alone), is_corrupt(&report), "the file alone and in its place");
    report
}

fn worst(report: &PartitionReport) -> Option<Severity> {
    report.problems.iter().map(|problem| problem.severity).max()
}

fn recovered(disk: &SimDisk, allow_loss: bool) -> (Plan, Snapshot) {
    let options = RecoverOptions {
        allow_loss,
        now_ms: NOW_MS,
        producer_expiration_ms: EXPIRATION_MS,
        ..RecoverOptions::default()
    };
    let (_, plan) = recover(disk, &options);
    (plan, disk.snapshot(Path::new(DIR)).expect("a partition"))
}

fn log_of(files: &Snapshot) -> &[u8] {
    file(files, &log_name(BASE_OFFSET)).expect("the log")
}

fn file<'a>(files: &'a Snapshot, name: &str) -> Option<&'a [u8]> {
    match files.entries.get(Path::new(name)) {
        Some(Entry::File(bytes)) => Some(bytes),
        _ => None,
    }
}
