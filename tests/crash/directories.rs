//! Small log directories with all that recovery has to deal with.

use std::path::{Path, PathBuf};

use siltstone::io::SimDisk;
use siltstone::io::sim::Entry;
use siltstone::record::codec::Codec;
use siltstone_tests::kits::Kit;
use siltstone_tests::logs::LogBuilder;

use crate::scenario::{LOGS, MARKER, Scenario, tree};

const MARKER_BYTES: &[u8] = br#"{"version":0,"brokerEpoch":42}"#;

fn at(name: &str) -> PathBuf {
    Path::new(LOGS).join(name)
}

/// A log directory with what every broker leaves.
fn directory() -> SimDisk {
    let disk = SimDisk::new();
    put(&disk, ".lock", b"");
    put(&disk, "meta.properties", b"#\nversion=1\nnode.id=1\ncluster.id=c\n");
    put(&disk, "log-start-offset-checkpoint", b"0\n0\n");
    disk.put_dir(Path::new(crate::scenario::QUARANTINE).parent().expect("a parent"), None)
        .expect("a folder");
    disk
}

fn put(disk: &SimDisk, name: &str, bytes: &[u8]) {
    disk.put(&at(name), bytes.to_vec(), None).expect("a file in place");
}

fn recovery_points(disk: &SimDisk, points: &[(&str, i64)]) {
    let lines: String = points.iter().map(|(key, offset)| format!("{key} 0 {offset}\n")).collect();
    let text = format!("0\n{}\n{lines}", points.len());
    put(disk, "recovery-point-offset-checkpoint", text.as_bytes());
}

fn partition(disk: &SimDisk, name: &str, log: &LogBuilder) {
    log.put(disk, &at(name));
    let metadata = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ";
    put(disk, &format!("{name}/partition.metadata"), metadata);
}

/// Three segments, the second with a change of leader.
fn plain_log() -> LogBuilder {
    LogBuilder::new()
        .batch(3)
        .batch(2)
        .batch(1)
        .roll()
        .batch(4)
        .epoch(1)
        .batch(2)
        .batch(2)
        .roll()
        .batch(1)
        .batch(5)
}

/// Producers, transactions that were committed, aborted and not ended.
fn transactional_log() -> LogBuilder {
    LogBuilder::new()
        .idempotent(1, 2)
        .txn(2, 2)
        .txn(3, 1)
        .abort(2)
        .roll()
        .codec(Codec::Lz4)
        .idempotent(1, 3)
        .commit(3)
        .txn(2, 1)
        .roll()
        .abort(2)
        .txn(3, 2)
        .idempotent(1, 1)
}

/// What an earlier recovery leaves of a directory, with its marker.
fn recovered(scenario: Scenario) -> Scenario {
    scenario.succeed(&scenario.disk, "the recovery before");
    scenario.disk.settle();
    put(&scenario.disk, MARKER, MARKER_BYTES);
    Scenario { disk: scenario.disk.fork(), ..scenario }
}

/// Two logs with torn and zero tails, one that is whole.
pub fn torn_tails() -> Scenario {
    let disk = directory();
    partition(&disk, "torn-0", &plain_log().tear(7));
    partition(&disk, "zeros-0", &transactional_log().raw(&[0; 700]));
    partition(&disk, "whole-0", &plain_log());
    recovery_points(&disk, &[("torn", 6), ("whole", 6)]);
    Scenario::new(disk)
}

/// Whole batches and a whole segment stand behind the damage.
pub fn damage_in_the_middle() -> Scenario {
    let disk = directory();
    partition(&disk, "orders-0", &plain_log().damage(10));
    partition(&disk, "payments-0", &transactional_log().roll().batch(2).damage(5));
    Scenario { allow_loss: true, ..Scenario::new(disk) }
}

/// The same, but what is cut is not kept.
pub fn damage_in_the_middle_not_kept() -> Scenario {
    Scenario { discard_lost: true, ..damage_in_the_middle() }
}

/// Files of lost bytes are there already.
pub fn an_earlier_loss_stays() -> Scenario {
    let scenario = damage_in_the_middle();
    let (first, second) =
        ("orders-0/00000000000000000006.log", "orders-0/00000000000000000014.log");
    put(&scenario.disk, &format!("{first}.lost"), b"lost before");
    put(&scenario.disk, &format!("{second}.lost"), b"lost before, too");
    put(&scenario.disk, &format!("{second}.lost.1"), b"and again");
    scenario
}

/// Indexes are missing, of odd size, full of zeros, and without a log.
pub fn indexes_missing_and_wrong() -> Scenario {
    let disk = directory();
    partition(&disk, "a-0", &plain_log());
    put(&disk, "a-0/00000000000000000000.index", &[1; 11]);
    put(&disk, "a-0/00000000000000000000.timeindex", &[9; 24]);
    put(&disk, "a-0/00000000000000000014.index", &[0; 4096]);
    put(&disk, "a-0/00000000000000000014.timeindex", &[0; 4092]);
    put(&disk, "a-0/00000000000000000099.index", &[0; 8]);
    partition(&disk, "b-0", &transactional_log());
    put(&disk, "b-0/00000000000000000000.txnindex", &[7; 33]);
    put(&disk, "b-0/00000000000000000000.index", &[]);
    recovery_points(&disk, &[("a", 14), ("b", 20)]);
    Scenario::new(disk)
}

/// Kafka was killed while the complete output of a compaction took its place.
pub fn swaps_in_place() -> Scenario {
    let disk = directory();
    partition(&disk, "compacted-0", &plain_log());
    let compacted = LogBuilder::new().batch(1).skip(8).epoch(1).batch(2).skip(3);
    let swap = compacted.newest();
    put(&disk, "compacted-0/00000000000000000000.log.swap", swap);
    put(&disk, "compacted-0/00000000000000000000.index.swap", b"");
    put(&disk, "compacted-0/00000000000000000000.timeindex.swap", b"");
    put(&disk, "compacted-0/00000000000000000003.log.deleted", b"whatever");
    put(&disk, "compacted-0/00000000000000000006.snapshot", b"covered by the swap");
    recovery_points(&disk, &[("compacted", 20)]);
    Scenario::new(disk)
}

/// Kafka was killed while it split a segment: the parts do not count yet.
pub fn split_interrupted_early() -> Scenario {
    let disk = directory();
    let log = plain_log();
    partition(&disk, "split-0", &log);
    put(
        &disk,
        "split-0/00000000000000000000.log.cleaned",
        &log.files()["00000000000000000000.log"],
    );
    put(&disk, "split-0/00000000000000000003.log.swap", b"the second part");
    put(&disk, "split-0/00000000000000000003.index.swap", b"its index");
    put(&disk, "split-0/00000000000000000000.timeindex.cleaned", b"");
    Scenario::new(disk)
}

/// Offsets reach too far for the indexes of one segment, twice, before a segment that is whole.
pub fn overflow() -> Scenario {
    let disk = directory();
    let far = i64::from(i32::MAX);
    let log = LogBuilder::new()
        .batch(3)
        .batch(2)
        .skip(far)
        .batch(2)
        .idempotent(4, 2)
        .skip(far)
        .batch(1)
        .roll()
        .batch(2)
        .tear(3);
    partition(&disk, "wide-0", &log);
    put(&disk, "wide-0/00000000000000000000.index", &[0; 16]);
    Scenario::new(disk)
}

/// An earlier split was interrupted, too, at another place.
pub fn overflow_beside_leftovers() -> Scenario {
    let scenario = overflow();
    put(&scenario.disk, "wide-0/00000000000000000003.log.cleaned", b"half a part");
    put(&scenario.disk, "wide-0/00000000000000000005.index.swap", b"an index");
    put(&scenario.disk, "wide-0/00000000000000000000.timeindex.deleted", b"another");
    scenario
}

/// A segment is to be split, but behind it stands what the operator must decide: nothing is done.
pub fn overflow_before_damage() -> Scenario {
    let disk = directory();
    let log = LogBuilder::new()
        .batch(3)
        .skip(i64::from(i32::MAX))
        .batch(2)
        .roll()
        .batch(2)
        .batch(1)
        .damage(i64::from(i32::MAX) + 5);
    partition(&disk, "damaged-0", &log);
    let log = LogBuilder::new().batch(3).skip(i64::from(i32::MAX)).batch(2).batch(1);
    let again = log.newest().to_vec();
    partition(&disk, "backwards-0", &log.raw(&again));
    Scenario::new(disk)
}

/// Small files that lie, and snapshots where none belongs.
pub fn epochs_and_snapshots_wrong() -> Scenario {
    let disk = directory();
    partition(&disk, "a-0", &plain_log());
    put(&disk, "a-0/leader-epoch-checkpoint", b"0\n2\n5 0\n3 6\n");
    put(&disk, "a-0/00000000000000000003.snapshot", b"stray");
    put(&disk, "a-0/00000000000000000900.snapshot", b"behind the end");
    partition(&disk, "b-0", &transactional_log());
    put(&disk, "b-0/leader-epoch-checkpoint", b"?");
    put(&disk, "b-0/00000000000000000006.snapshot", b"broken");
    partition(&disk, "c-0", &plain_log());
    put(&disk, "c-0/leader-epoch-checkpoint", b"0\n3\n0 0\n1 10\n7 800\n");
    // Its only epoch begins behind the end: cut away with the end, it left the batches without any.
    partition(&disk, "d-0", &plain_log());
    put(&disk, "d-0/leader-epoch-checkpoint", b"0\n1\n1 800\n");
    recovery_points(&disk, &[("a", 19), ("b", 8), ("c", 19)]);
    Scenario::new(disk)
}

/// A log of transactions without any side file, and one with those of a recovery that went further.
pub fn transactions() -> Scenario {
    let before = Scenario::new(directory());
    partition(&before.disk, "a-0", &transactional_log().roll().abort(3).txn(8, 2));
    let Scenario { disk, .. } = recovered(before);
    partition(&disk, "a-0", &transactional_log().roll().abort(3).txn(8, 2).tear(1));
    partition(&disk, "b-0", &transactional_log());
    recovery_points(&disk, &[("a", 9), ("b", 0)]);
    let scenario = Scenario::new(disk);
    let mut left = tree(&scenario.disk);
    left.entries.remove(Path::new("logs").join(MARKER).as_path());
    Scenario { disk: disk_of(&left), ..scenario }
}

/// Only the snapshot at its first base knows the producers whose batches retention has deleted; no
/// checkpoint says that the log starts there.
pub fn snapshot_at_the_first_base() -> Scenario {
    let before = Scenario::new(directory());
    let log = LogBuilder::new().idempotent(6, 2).roll().idempotent(7, 3).batch(2).roll().txn(8, 2);
    partition(&before.disk, "old-0", &log);
    let before = recovered(before);
    let mut left = tree(&before.disk);
    left.entries.retain(|path, _| {
        let name = path.to_string_lossy();
        !name.contains("old-0/00000000000000000000.") && !name.ends_with(MARKER)
    });
    left.entries.insert(
        Path::new("logs/recovery-point-offset-checkpoint").to_path_buf(),
        Entry::File(b"0\n1\nold 0 2\n".to_vec()),
    );
    let disk = disk_of(&left);
    let snapshot = at("old-0/00000000000000000002.snapshot");
    assert!(siltstone::io::Storage::metadata(&disk, &snapshot).is_ok(), "no snapshot to load");
    Scenario::new(disk)
}

/// The log ends before the offset that it should start at.
pub fn start_beyond_end() -> Scenario {
    let disk = directory();
    partition(&disk, "short-0", &plain_log());
    put(&disk, "log-start-offset-checkpoint", b"0\n1\nshort 0 100\n");
    Scenario { allow_loss: true, ..Scenario::new(disk) }
}

/// Folders without a log, and logs without a byte.
pub fn empty_folders() -> Scenario {
    let disk = directory();
    disk.put_dir(&at("nothing-0"), None).expect("a folder");
    put(&disk, "rolled-0/00000000000000000012.log", b"");
    put(&disk, "indexes-0/00000000000000000000.index", &[0; 40]);
    Scenario::new(disk)
}

/// Indexes that are too large to be held in memory until they are in place.
pub fn large_side_files() -> Scenario {
    let disk = directory();
    let mut log = LogBuilder::new().value(b"");
    for _ in 0..9000 {
        log = log.batch(1);
    }
    partition(&disk, "many-0", &log.damage(8990));
    Scenario { allow_loss: true, interval_bytes: 0, is_long: true, ..Scenario::new(disk) }
}

/// Nothing is to be done.
pub fn stopped_cleanly() -> Scenario {
    let scenario = Scenario::new(directory());
    partition(&scenario.disk, "a-0", &plain_log());
    partition(&scenario.disk, "b-0", &transactional_log());
    recovered(scenario)
}

/// A small file is wrong although Kafka was stopped cleanly.
pub fn stopped_cleanly_with_a_bad_index() -> Scenario {
    let scenario = stopped_cleanly();
    put(&scenario.disk, "a-0/00000000000000000006.index", &[3; 8]);
    put(&scenario.disk, "b-0/00000000000000000000.txnindex", &[1; 20]);
    scenario
}

/// Bytes of a log are wrong although Kafka was stopped cleanly.
pub fn stopped_cleanly_and_torn() -> Scenario {
    let scenario = stopped_cleanly();
    partition(&scenario.disk, "a-0", &plain_log().tear(5));
    scenario
}

/// One partition must not be touched, and the others are done.
pub fn refused_beside_torn() -> Scenario {
    let disk = directory();
    partition(&disk, "broken-0", &plain_log().damage(10));
    partition(&disk, "backwards-0", &plain_log().raw(plain_log().newest()));
    partition(&disk, "torn-0", &plain_log().tear(7));
    Scenario::new(disk)
}

/// Refused partitions are moved away.
pub fn quarantine() -> Scenario {
    Scenario { quarantine: true, ..refused_beside_torn() }
}

/// The directory was stopped cleanly, and a partition must be moved away all the same.
pub fn quarantine_after_a_clean_stop() -> Scenario {
    let scenario = stopped_cleanly();
    put(&scenario.disk, "b-0/partition.metadata", b"version: 0\ntopic_id: nonsense");
    Scenario { quarantine: true, ..scenario }
}

pub fn kit_torn() -> Scenario {
    kit("basic", "torn", &["codec-none-0", "codec-zstd-0", "delrec-0"])
}

pub fn kit_with_bad_checksums() -> Scenario {
    kit("basic", "crc", &["codec-none-0", "nonidem-0"])
}

pub fn kit_transactions() -> Scenario {
    kit("txn", "crc", &["txn-a-0", "txn-b-0"])
}

/// Some partitions that a real Kafka wrote. Their preallocated indexes are cut to a few pages, so
/// that they are quick to copy.
fn kit(name: &str, state: &str, partitions: &[&str]) -> Scenario {
    let state = Kit::open(name).state(state);
    let unpacked = state.unpack();
    let loaded = SimDisk::new();
    loaded.load(&unpacked.data(), Path::new(LOGS)).expect("a kit");
    let mut left = tree(&loaded);
    left.entries.retain(|path, entry| {
        if let Entry::File(bytes) = entry
            && path.to_string_lossy().ends_with("index")
        {
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(bytes.len().min(used.div_ceil(24) * 24 + 480));
        }
        let mut parts = path.components().skip(1).map(|part| part.as_os_str().to_string_lossy());
        match parts.next() {
            Some(name) if name.contains('-') && parts.next().is_some() => {
                partitions.contains(&&*name)
            }
            Some(name) => !matches!(entry, Entry::Directory) || partitions.contains(&&*name),
            None => true,
        }
    });
    let disk = disk_of(&left);
    put(&disk, ".lock", b"");
    disk.put_dir(Path::new("/elsewhere"), None).expect("a folder");
    Scenario {
        allow_loss: true,
        interval_bytes: 4096,
        now_ms: state.at_ms(),
        ..Scenario::new(disk)
    }
}

/// A partition by itself: nothing outside of it is written.
pub fn lone_partition() -> Scenario {
    Scenario { alone: Some("orders-0"), ..damage_in_the_middle() }
}

/// A partition that is cut at an offset which the operator names.
pub fn lone_partition_cut_where_asked() -> Scenario {
    let disk = directory();
    partition(&disk, "orders-0", &transactional_log());
    Scenario { alone: Some("orders-0"), truncate_to: Some(8), ..Scenario::new(disk) }
}

/// A disk with these files.
fn disk_of(tree: &siltstone::io::sim::Snapshot) -> SimDisk {
    let disk = SimDisk::new();
    for (path, entry) in &tree.entries {
        let path = Path::new("/").join(path);
        match entry {
            Entry::File(bytes) => disk.put(&path, bytes.clone(), None),
            Entry::Directory => disk.put_dir(&path, None),
            Entry::Other(kind) => disk.put_other(&path, *kind),
        }
        .expect("a file in place");
    }
    disk
}
