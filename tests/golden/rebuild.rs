//! Kafka's follower, rebuilt by us from what its leader had uploaded, and caught up with the very
//! batches: what differs is what Kafka loses.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use siltstone::io::{SimDisk, Storage};
use siltstone::log::{Log, LogConfig, OpenOptions};
use siltstone::record::validate::Batches;
use siltstone::state::{ProducerEntry, Snapshot};
use siltstone::tier::{
    AuxJob, AuxLimits, AuxPlace, AuxRemote, LocalTarget, ObjectLayout, RemoteInventory,
    build_aux_bulk,
};
use siltstone_tests::kits::Kit;

use crate::file_name;

fn producers(bytes: &[u8]) -> BTreeMap<i64, ProducerEntry> {
    let snapshot = Snapshot::read(bytes).expect("a snapshot");
    snapshot.iter().map(|entry| (entry.producer_id, entry)).collect()
}

#[test]
fn the_follower_is_rebuilt_byte_for_byte_but_for_what_kafka_lost() {
    // spec: tiered-faults T2
    let leader = Kit::open("tiered").state("unclean");
    let follower = Kit::open("tiered").state("follower");
    let unpacked = leader.unpack();
    let disk = SimDisk::new();
    disk.load(&unpacked.remote(), Path::new("/remote")).expect("remote storage");
    let target = LocalTarget::new(Arc::new(disk.clone()), "/remote");
    let layout = ObjectLayout::default();
    let inventory = RemoteInventory::list(&target, &layout).expect("an inventory");
    let segments = inventory.read_segments(&target, &layout).expect("segments");
    let remote = AuxRemote { target: &target, layout: &layout };
    let now_ms = follower.at_ms();
    // Partition, its first local offset, the start of its log, its transaction indexes.
    let of_a = [(89, false), (179, true), (279, true)];
    let partitions: [(_, _, _, &[(i64, bool)]); 3] = [
        ("tier-a-0", 89, 0, &of_a),
        ("tier-b-0", 195, 97, &[]),
        ("tier-c-0", 293, 0, &[(293, false)]),
    ];
    for (name, next, start, aborted_indexes) in partitions {
        let config = LogConfig {
            remote_storage: true,
            segment_index_bytes: 4096,
            index_interval_bytes: 512,
            ..LogConfig::default()
        };
        let options = OpenOptions { now_ms, log_start_offset: start, ..OpenOptions::default() };
        let dir = Path::new("/").join(name);
        let log = Log::open(Arc::new(disk.clone()), &dir, config, &options).expect("a log");
        let segment = segments.iter().find(|segment| {
            name.starts_with(&segment.id.partition.topic) && segment.end_offset + 1 == next
        });
        let segment = segment.unwrap_or_else(|| panic!("{name}: no segment ends before {next}"));
        let job = AuxJob { place: AuxPlace::Log(&log), segment, log_start_offset: start };
        let mut results = build_aux_bulk(&disk, &[job], remote, &AuxLimits::new(now_ms));
        let installed = results.remove(0).expect("a rebuilt log");
        assert_eq!(installed.next_offset, next, "{name}");
        let ours = |file: &str| disk.read(&dir.join(file), 1 << 20).expect("a file");
        let theirs = |file: &str| follower.read(&format!("data/{name}/{file}")).expect("a file");

        // What was put in place is what was uploaded; Kafka's snapshot has nobody.
        let part = |part| {
            let object = layout.name(&segment.id, segment.start_offset, part);
            disk.read(&Path::new("/remote").join(object), 1 << 20).expect("an object")
        };
        use siltstone::tier::SegmentPart::{LeaderEpochs, ProducerSnapshot};
        let first = file_name(next, "snapshot");
        assert_eq!(ours("leader-epoch-checkpoint"), part(LeaderEpochs), "{name}");
        assert_eq!(ours(&first), part(ProducerSnapshot), "{name}");
        assert!(!producers(&ours(&first)).is_empty() && producers(&theirs(&first)).is_empty());

        // The same batches, in the same segments.
        let files = follower.files(name);
        let bases: Vec<i64> =
            (files.iter()).filter_map(|file| file.strip_suffix(".log")?.parse().ok()).collect();
        for (number, base) in bases.iter().enumerate() {
            if number > 0 {
                assert_eq!(log.roll(now_ms).expect("a roll"), *base, "{name}");
            }
            let bytes = theirs(&file_name(*base, "log"));
            for batch in Batches::new(&bytes) {
                let batch = batch.expect("a batch");
                log.append_as_follower(batch.bytes, i32::MAX, now_ms).expect("an append");
            }
        }
        log.update_high_watermark(log.log_end_offset()).expect("a high watermark");
        log.close().expect("a clean stop");
        for base in &bases {
            let log = file_name(*base, "log");
            assert_eq!(ours(&log), theirs(&log), "{name} {log}");
            for suffix in ["index", "timeindex"] {
                let index = file_name(*base, suffix);
                assert_eq!(ours(&index), theirs(&index), "{name} {index}");
            }
        }
        // Epoch 0 begins at 0 in tier-b, too, though the log starts at 97: so Kafka has it.
        assert_eq!(ours("leader-epoch-checkpoint"), theirs("leader-epoch-checkpoint"), "{name}");
        let mut more = 0;
        for file in files.iter().filter(|file| file.ends_with(".snapshot")) {
            let (ours, theirs) = (producers(&ours(file)), producers(&theirs(file)));
            for (id, entry) in &theirs {
                let known = &ours[id];
                // Ours may know the coordinator and the last batch where theirs began anew.
                assert_eq!(known.producer_epoch, entry.producer_epoch, "{name} {file} {id}");
                assert!(known.last_offset >= entry.last_offset, "{name} {file} {id}");
                assert_eq!(known.last_timestamp, entry.last_timestamp, "{name} {file} {id}");
            }
            more += ours.len() - theirs.len();
            // What the leader knew at this offset, we know.
            if let Some(bytes) = leader.read(&format!("data/{name}/{file}")) {
                assert_eq!(ours, producers(&bytes), "{name} {file}");
            }
        }
        assert!(more > 0, "{name}: Kafka has lost no producer");
        let mut aborted = Vec::new();
        for base in &bases {
            let index = file_name(*base, "txnindex");
            let path = format!("data/{name}/{index}");
            let Some(leaders) = leader.read(&path) else { continue };
            assert_eq!(ours(&index), leaders, "{name} {index}: not the leader's");
            aborted.push((*base, theirs(&index) == leaders));
        }
        // Whether Kafka's follower, which has lost the producers, has the leader's index as well.
        assert_eq!(aborted, aborted_indexes, "{name}");
    }
}
