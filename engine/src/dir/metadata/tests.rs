//! Made-up metadata logs: which files count, how far they are read, and what is said of it.

use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::error::Kind;
use crate::io::Disk;
use crate::record::builder::{
    BatchBuilder, BatchOptions, KraftControl, Voter as WrittenVoter, write_kraft_control,
};
use crate::record::codec::{Codec, Compression, Compressor};

/// A metadata folder in the making.
struct Folder(TempDir);

/// The bytes of one file.
#[derive(Default)]
struct Batches(Vec<u8>);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn segment(self, base_offset: i64, batches: Batches) -> Self {
        std::fs::write(self.path().join(format!("{base_offset:020}.log")), batches.0).unwrap();
        self
    }

    fn snapshot(self, end_offset: i64, epoch: i32, batches: Batches) -> Self {
        let name = format!("{end_offset:020}-{epoch:010}.checkpoint");
        std::fs::write(self.path().join(name), batches.0).unwrap();
        self
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn load(&self) -> LoadedMetadata {
        self.load_with(&MetadataOptions::default()).unwrap()
    }

    fn load_with(&self, options: &MetadataOptions) -> crate::Result<LoadedMetadata> {
        load_metadata(&Disk::new(), self.path(), options)
    }
}

impl Batches {
    fn batch(mut self, base_offset: i64, leader_epoch: i32, values: &[Vec<u8>]) -> Self {
        self.add(BatchOptions { base_offset, leader_epoch, ..BatchOptions::default() }, values);
        self
    }

    fn add(&mut self, options: BatchOptions, values: &[Vec<u8>]) {
        let mut builder = BatchBuilder::new(options).unwrap();
        for value in values {
            builder.append(1, None, Some(value)).unwrap();
        }
        builder.write_to(&mut Compressor::new(), &mut self.0).unwrap();
    }

    fn control(mut self, base_offset: i64, leader_epoch: i32, control: &KraftControl) -> Self {
        let options = BatchOptions { base_offset, leader_epoch, ..BatchOptions::default() };
        write_kraft_control(&options, 1, control, &mut self.0).unwrap();
        self
    }

    /// A whole snapshot with these records.
    fn snapshot(epoch: i32, values: &[Vec<u8>]) -> Self {
        let header = KraftControl::SnapshotHeader { last_contained_log_timestamp_ms: 1 };
        let end = 1 + i64::try_from(values.len()).unwrap();
        let begun = Batches::default().control(0, epoch, &header).batch(1, epoch, values);
        begun.control(end, epoch, &KraftControl::SnapshotFooter)
    }
}

fn text(value: &str) -> Vec<u8> {
    let size = u8::try_from(value.len() + 1).unwrap();
    [&[size], value.as_bytes()].concat()
}

fn config(kind: u8, resource: &str, key: &str, value: &str) -> Vec<u8> {
    [&[1, 4, 0, kind][..], &text(resource), &text(key), &text(value), &[0]].concat()
}

/// Sets `x` of a group, which is nothing but a mark that a record was applied.
fn mark(value: &str) -> Vec<u8> {
    config(32, "g", "x", value)
}

fn marked(loaded: &LoadedMetadata) -> Option<&str> {
    let group = ConfigResource { kind: 32, name: "g".to_owned() };
    Some(loaded.image.configs.get(&group)?.get("x")?.as_str())
}

fn begin() -> Vec<u8> {
    vec![1, 23, 0, 0]
}

fn end() -> Vec<u8> {
    vec![1, 24, 0, 0]
}

fn abort() -> Vec<u8> {
    vec![1, 25, 0, 0]
}

#[test]
fn the_newest_snapshot_and_the_log_behind_it_make_the_state() {
    let folder = Folder::new()
        .segment(0, Batches::default().batch(0, 1, &[mark("a")]).batch(1, 1, &[mark("b")]))
        .segment(2, Batches::default().batch(2, 1, &[mark("d")]))
        .snapshot(1, 1, Batches::snapshot(1, &[mark("old")]))
        .snapshot(2, 1, Batches::snapshot(1, &[mark("c"), config(2, "t", "k", "v")]));
    let loaded = folder.load();
    assert_eq!(marked(&loaded), Some("d"));
    assert_eq!(loaded.image.configs.len(), 2);
    assert_eq!(loaded.snapshot.as_deref(), Some("00000000000000000002-0000000001.checkpoint"));
    assert_eq!((loaded.read_to, loaded.last_epoch, loaded.committed_at_least), (3, 1, 2));
    assert_eq!(loaded.warnings, [""; 0]);
}

#[test]
fn a_snapshot_that_is_not_whole_gives_way_to_the_one_before_it() {
    let whole = || Batches::snapshot(1, &[mark("new")]).0;
    let footer_start = {
        let footer = Batches::default().control(0, 1, &KraftControl::SnapshotFooter).0;
        whole().len() - footer.len()
    };
    let mut bad_crc = whole();
    bad_crc[100] ^= 1;
    let without_footer = whole()[..footer_start].to_vec();
    let torn = whole()[..whole().len() - 1].to_vec();
    let more = Batches(whole()).batch(3, 1, &[mark("x")]).0;
    let gap = Batches::default().control(0, 1, &KraftControl::KraftVersion(1)).0;
    let gap = Batches(gap).control(5, 1, &KraftControl::SnapshotFooter).0;
    for broken in [bad_crc, without_footer, torn, more, gap, Vec::new()] {
        let log = Batches::default().batch(0, 1, &[mark("a")]).batch(1, 1, &[mark("b")]);
        let folder = Folder::new()
            .segment(0, log)
            .snapshot(1, 1, Batches::snapshot(1, &[mark("old")]))
            .snapshot(2, 1, Batches(broken));
        let loaded = folder.load();
        assert_eq!((marked(&loaded), loaded.read_to), (Some("b"), 2));
        assert_eq!(loaded.snapshot.as_deref(), Some("00000000000000000001-0000000001.checkpoint"));
        assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    }
}

#[test]
fn a_log_that_begins_late_needs_a_snapshot_before_it() {
    let log = || Batches::default().batch(10, 1, &[mark("log")]);
    let error = Folder::new().segment(10, log()).load_with(&MetadataOptions::default());
    assert_eq!(error.unwrap_err().kind(), Kind::Corrupt);
    let old = Folder::new().segment(10, log()).snapshot(9, 1, Batches::snapshot(1, &[mark("old")]));
    let loaded = old.load();
    assert_eq!((marked(&loaded), loaded.read_to, loaded.warnings.len()), (Some("old"), 9, 1));
    let new =
        Folder::new().segment(10, log()).snapshot(10, 1, Batches::snapshot(1, &[mark("old")]));
    assert_eq!(marked(&new.load()), Some("log"));
}

#[test]
fn a_log_older_than_the_snapshot_is_left_out() {
    // Kafka throws it away: it is of an earlier epoch, or ends before the snapshot does.
    for (epoch, end_offset) in [(2, 1), (1, 5)] {
        let log = Batches::default().batch(0, 1, &[mark("a")]).batch(1, 1, &[mark("b")]);
        let snapshot = Batches::snapshot(epoch, &[mark("snapshot")]);
        let folder = Folder::new().segment(0, log).snapshot(end_offset, epoch, snapshot);
        let loaded = folder.load();
        assert_eq!(marked(&loaded), Some("snapshot"));
        assert_eq!((loaded.read_to, loaded.last_epoch), (end_offset, epoch));
    }
}

#[test]
fn a_snapshot_alone_is_the_state() {
    let folder = Folder::new().snapshot(7, 3, Batches::snapshot(3, &[mark("a")]));
    let loaded = folder.load();
    assert_eq!((marked(&loaded), loaded.read_to, loaded.last_epoch), (Some("a"), 7, 3));
    assert_eq!(loaded.warnings, [""; 0]);
}

#[test]
fn an_empty_folder_holds_no_records_and_says_so() {
    let loaded = Folder::new().load();
    assert_eq!((loaded.read_to, loaded.image == MetadataImage::default()), (0, true));
    assert_eq!(loaded.warnings, ["the metadata log holds no records"]);
    let missing = load_metadata(&Disk::new(), Path::new("/nowhere"), &MetadataOptions::default());
    assert_eq!(missing.unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn reading_ends_at_a_gap_between_segments() {
    let folder = Folder::new()
        .segment(0, Batches::default().batch(0, 1, &[mark("a")]))
        .segment(2, Batches::default().batch(2, 1, &[mark("b")]));
    let loaded = folder.load();
    assert_eq!((marked(&loaded), loaded.read_to), (Some("a"), 1));
    assert_eq!(
        loaded.warnings,
        ["00000000000000000002.log at position 0: offset 2 stands where 1 is due; \
          the metadata is read up to offset 1"]
    );
}

#[test]
fn every_shorter_segment_reads_up_to_its_last_whole_batch() {
    let log = Batches::default().batch(0, 1, &[mark("a")]).batch(1, 1, &[mark("b")]).0;
    let first = Batches::default().batch(0, 1, &[mark("a")]).0.len();
    for size in 0..log.len() {
        let loaded = Folder::new().segment(0, Batches(log[..size].to_vec())).load();
        let expected = if size < first { (None, 0) } else { (Some("a"), 1) };
        assert_eq!((marked(&loaded), loaded.read_to), expected, "{size}");
    }
}

#[test]
fn transactions_take_effect_at_their_end_or_not_at_all() {
    let read = |values: &[Vec<u8>]| {
        let loaded = Folder::new().segment(0, Batches::default().batch(0, 1, values)).load();
        assert_eq!(loaded.warnings, [""; 0]);
        marked(&loaded).map(str::to_owned)
    };
    assert_eq!(read(&[mark("a"), begin(), mark("b"), end()]).as_deref(), Some("b"));
    assert_eq!(read(&[mark("a"), begin(), mark("b"), abort()]).as_deref(), Some("a"));
    assert_eq!(read(&[mark("a"), begin(), mark("b")]).as_deref(), Some("a"));
    assert_eq!(read(&[begin(), mark("b"), abort(), mark("c")]).as_deref(), Some("c"));
    assert_eq!(read(&[begin(), end(), begin(), mark("d"), end()]).as_deref(), Some("d"));
}

#[test]
fn transactions_that_do_not_match_end_the_reading() {
    for broken in [vec![begin(), mark("b"), begin()], vec![end()], vec![abort()]] {
        let log = Batches::default().batch(0, 1, &[mark("a")]).batch(1, 1, &broken);
        let loaded = Folder::new().segment(0, log.batch(9, 1, &[mark("c")])).load();
        assert_eq!((marked(&loaded), loaded.read_to), (Some("a"), 1));
        assert!(loaded.warnings[0].contains("transaction"), "{:?}", loaded.warnings);
    }
}

#[test]
fn a_newer_release_is_skipped_and_named() {
    let unknown = [vec![1, 99, 0, 1, 2, 3], vec![1, 2, 9, 1], vec![2, 2, 0]];
    let log = Batches::default().batch(0, 1, &unknown).batch(3, 1, &[mark("a")]);
    let loaded = Folder::new().segment(0, log).load();
    assert_eq!((marked(&loaded), loaded.read_to, loaded.unknown_records), (Some("a"), 4, 3));
    assert!(loaded.warnings[0].contains("newer release"), "{:?}", loaded.warnings);
}

#[test]
fn broken_records_are_skipped_and_counted() {
    let broken = vec![vec![1, 4, 0, 9]; 30];
    let log = Batches::default().batch(0, 1, &broken).batch(30, 1, &[mark("a")]);
    let loaded = Folder::new().segment(0, log).load();
    assert_eq!((marked(&loaded), loaded.read_to), (Some("a"), 31));
    assert_eq!(loaded.warnings.len(), 21);
    assert_eq!(loaded.warnings[20], "and 10 more of the kind");
}

#[test]
fn records_that_contradict_the_state_change_nothing() {
    let partition_change = [&[1, 5, 0][..], &[0; 4], &[5; 16], &[0]].concat();
    let log = Batches::default().batch(0, 1, &[partition_change, mark("a")]);
    let loaded = Folder::new().segment(0, log).load();
    assert_eq!(marked(&loaded), Some("a"));
    assert!(loaded.warnings[0].contains("which does not exist"), "{:?}", loaded.warnings);
}

#[test]
fn reading_can_end_at_an_offset_before_the_end() {
    let folder = Folder::new()
        .segment(0, Batches::default().batch(0, 1, &[mark("a"), mark("b")]))
        .segment(2, Batches::default().batch(2, 1, &[mark("c")]))
        .snapshot(2, 1, Batches::snapshot(1, &[mark("b")]));
    for (upto, value, read_to) in
        [(0, None, 0), (1, Some("a"), 1), (2, Some("b"), 2), (3, Some("c"), 3), (9, Some("c"), 3)]
    {
        let options = MetadataOptions { upto: Some(upto), ..MetadataOptions::default() };
        let loaded = folder.load_with(&options).unwrap();
        assert_eq!((marked(&loaded), loaded.read_to), (value, read_to), "up to {upto}");
        assert_eq!(loaded.snapshot.is_some(), upto >= 2);
    }
}

#[test]
fn what_is_committed_follows_from_voters_registration_and_snapshot() {
    let register = |epoch: u8| {
        let start = [&[1, 0, 0][..], &1_i32.to_be_bytes(), &[3; 16], &[0; 7], &[epoch]].concat();
        [start, vec![1, 1, 0, 0, 0]].concat()
    };
    let folder = Folder::new()
        .segment(0, Batches::default().batch(0, 1, &[mark("a"), register(7), mark("b")]));
    let with = |broker_epoch, quorum_voters| {
        let node_id = Some(1);
        let options = MetadataOptions { node_id, broker_epoch, quorum_voters, upto: None };
        let loaded = folder.load_with(&options).unwrap();
        assert_eq!(loaded.image.brokers[&1].epoch, 7);
        loaded.committed_at_least
    };
    assert_eq!(with(None, None), 0);
    assert_eq!(with(Some(6), None), 0);
    assert_eq!(with(Some(7), None), 2);
    assert_eq!(with(None, Some(vec![1])), 3);
    assert_eq!(with(None, Some(vec![2])), 0);
    assert_eq!(with(Some(7), Some(vec![1, 2, 3])), 2);
}

#[test]
fn voters_in_the_log_count_before_those_of_the_settings() {
    let voter = |id| WrittenVoter {
        id,
        directory_id: [9; 16],
        endpoints: vec![],
        kraft_version_min: 0,
        kraft_version_max: 1,
    };
    let voters = KraftControl::KraftVoters(vec![voter(2)]);
    let change =
        KraftControl::LeaderChange { leader_id: 2, voters: vec![2], granting_voters: vec![2] };
    let log = Batches::default().control(0, 1, &voters).control(1, 1, &change);
    let folder = Folder::new().segment(0, log);
    for (node_id, committed) in [(1, 0), (2, 2)] {
        let options = MetadataOptions {
            node_id: Some(node_id),
            quorum_voters: Some(vec![1]),
            ..MetadataOptions::default()
        };
        let loaded = folder.load_with(&options).unwrap();
        assert_eq!((loaded.committed_at_least, loaded.image.controller), (committed, Some(2)));
    }
}

#[test]
fn the_broker_configs_of_the_snapshot_are_kept_beside_the_current_ones() {
    let interval = |value| config(4, "", "log.index.interval.bytes", value);
    let folder = Folder::new()
        .segment(0, Batches::default().batch(0, 1, &[interval("1"), interval("2")]))
        .segment(2, Batches::default().batch(2, 1, &[interval("1000")]))
        .snapshot(2, 1, Batches::snapshot(1, &[interval("8192"), config(4, "1", "k", "v")]));
    let options = MetadataOptions { node_id: Some(1), ..MetadataOptions::default() };
    let loaded = folder.load_with(&options).unwrap();
    let key = "log.index.interval.bytes";
    assert_eq!(loaded.snapshot_broker_configs.cluster[key], "8192");
    assert_eq!(loaded.snapshot_broker_configs.node["k"], "v");
    assert_eq!(loaded.image.broker_layers(Some(1)).cluster[key], "1000");
}

#[test]
fn a_compressed_batch_is_read() {
    let compression = Compression::new(Codec::Zstd);
    let mut log = Batches::default();
    log.add(BatchOptions { compression, leader_epoch: 1, ..BatchOptions::default() }, &[mark("a")]);
    let loaded = Folder::new().segment(0, log).load();
    assert_eq!((marked(&loaded), loaded.read_to), (Some("a"), 1));
}

#[test]
fn no_record_bytes_bring_the_replay_down() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_be_bytes()
    };
    for _ in 0..200 {
        let values: Vec<Vec<u8>> = (0..20)
            .map(|_| {
                let [kind, size, ..] = random();
                let body = (0..4 + size % 8).flat_map(|_| random().map(|byte| byte & 3));
                [1, kind % 30, 0].into_iter().chain(body).collect()
            })
            .collect();
        Folder::new().segment(0, Batches::default().batch(0, 1, &values)).load();
    }
}
