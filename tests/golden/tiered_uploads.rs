//! What is to be uploaded is what Kafka's broker chose, and an upload leaves the objects that its
//! broker left.

use std::collections::BTreeSet;
use std::sync::Arc;

use siltstone::Result;
use siltstone::io::Disk;
use siltstone::log::Log;
use siltstone::state::checkpoint::{format_epochs, parse_epochs};
use siltstone::state::{EpochEntry, LeaderEpochs};
use siltstone::tier::{
    ColdLog, ColdOptions, LocalTarget, LogUploads, ObjectLayout, ObjectTarget, RemoteInventory,
    SegmentPart, UploadAs, UploadView, prepare_upload, put_parts,
};
use siltstone_tests::kits::Kit;

use crate::live_reads::open;

fn candidates(view: &UploadView<'_>) -> Vec<(i64, i64)> {
    let slots = view.candidates(0).slots();
    slots.map(|slot| (view.bases[slot], view.bases[slot + 1])).collect()
}

#[test]
fn candidates_are_those_of_kafkas_copy_task() {
    let (mut asked, mut chosen) = (0, 0);
    for state in Kit::open("tiered").states() {
        let unpacked = state.unpack();
        for name in state.partitions() {
            let Some(expectation) = state.expectation(&name) else { continue };
            let Some(loaded) = expectation.loaded.ok() else { continue };
            let dir = unpacked.data().join(&name);
            let log: Log = open(&state, &dir, &expectation);
            let uploads = LogUploads::of(&log, -1, None);
            let mut cold = ColdLog::list(&Disk::new(), &dir).expect("a directory");
            for (from, last_stable_offset, expected) in &loaded.upload_candidates {
                let label = format!("{} {name} from {from}", state.label());
                let view = UploadView {
                    log_start_offset: *from,
                    last_stable_offset: *last_stable_offset,
                    ..uploads.view()
                };
                // Kafka does not look whether it knows the leaders of a segment.
                let view = UploadView { lineage_start_offset: 0, ..view };
                assert_eq!(candidates(&view), *expected, "{label}");
                let options = ColdOptions {
                    log_start_offset: Some(*from),
                    last_stable_offset: Some(*last_stable_offset),
                    reads_indexes: false,
                    ..ColdOptions::default()
                };
                cold.look(&Disk::new(), &options).expect("a look");
                let view = UploadView { damaged: &[], lineage_start_offset: 0, ..cold.view() };
                assert_eq!(candidates(&view), *expected, "{label}, not open");
                asked += 1;
                chosen += expected.len();
            }
        }
    }
    println!("{asked} questions, {chosen} candidates");
    assert!(asked > 100 && chosen > 100);
}

/// Epochs as they are since the log start was raised, which was after some of the uploads.
fn cut(epochs: &[EpochEntry], log_start_offset: i64) -> Result<Vec<EpochEntry>> {
    let mut epochs = LeaderEpochs::from_entries(epochs)?;
    epochs.truncate_from_start(log_start_offset);
    Ok(epochs.entries().to_vec())
}

#[test]
fn an_upload_leaves_the_objects_that_kafka_left() -> Result<()> {
    let mut compared = BTreeSet::new();
    for state in ["clean", "unclean"].map(|state| Kit::open("tiered").state(state)) {
        let unpacked = state.unpack();
        let (disk, layout) = (Arc::new(Disk::new()), ObjectLayout::default());
        let kafkas = LocalTarget::new(disk.clone(), unpacked.remote());
        let ours_dir = unpacked.root().join("ours");
        std::fs::create_dir(&ours_dir).expect("a directory");
        let ours = LocalTarget::new(disk, ours_dir);
        for parts in RemoteInventory::list(&kafkas, &layout)?.segments() {
            let told = parts.read(&kafkas, &layout)?.segment.expect("a segment");
            let (topic, partition) = (&told.id.partition.topic, told.id.partition.partition);
            let name = format!("{topic}-{partition}");
            let dir = unpacked.data().join(&name);
            let expectation = state.expectation(&name).expect("an expectation");
            let log = open(&state, &dir, &expectation);
            let segments = log.segments();
            if segments.get(told.start_offset).is_none() {
                // It left the local disk long ago.
                continue;
            }
            log.update_high_watermark(log.log_end_offset())?;
            let upload_as = UploadAs {
                id: told.id.clone(),
                broker_id: -1,
                now_ms: -1,
                rebuilds_snapshot: false,
            };
            let next = told.end_offset + 1;
            let upload = prepare_upload(&log, told.start_offset, next, &upload_as)
                .unwrap_or_else(|error| panic!("{name} {}: {error}", told.start_offset));
            let mut segment = upload.segment.clone();
            segment.state = told.state;
            let log_start = log.log_start_offset();
            let mut told = told;
            told.leader_epochs = cut(&told.leader_epochs, log_start)?;
            assert_eq!(segment, told, "{name}");
            put_parts(&ours, &layout, &upload)?;
            for part in SegmentPart::ALL {
                let object = layout.name(&told.id, told.start_offset, part);
                let [mine, theirs] = [&ours, &kafkas].map(|it| it.get(&object, None, 1 << 30).ok());
                let theirs = match theirs {
                    Some(text) if part == SegmentPart::LeaderEpochs => {
                        Some(format_epochs(&cut(&parse_epochs(&text)?, log_start)?))
                    }
                    other => other,
                };
                assert_eq!(mine, theirs, "{object}");
                compared.insert(object);
            }
        }
    }
    println!("{} objects", compared.len());
    assert!(compared.len() >= 36, "{compared:?}");
    Ok(())
}
