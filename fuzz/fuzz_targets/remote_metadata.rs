//! Records of `__remote_log_metadata`, and a cache and an expiry plan of whatever events come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::state::{EpochEntry, LeaderEpochs};
use siltstone::tier::{
    Applied, ExpiryInput, MetadataCache, RemoteMetadataRecord, RemotePartition, RemoteSegment,
    RemoteSegmentId, RemoteSegmentState, RemoteSegmentUpdate, SizeRetention, plan_expiry,
};
use siltstone::uuid::Uuid;

/// So many epochs and uploads are told apart.
const FEW: u8 = 6;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(record) = RemoteMetadataRecord::decode(bytes) {
        let written = record.encode().expect("a record that was read");
        assert_eq!(RemoteMetadataRecord::decode(&written).expect("our own"), record);
    }
    let partition = RemotePartition { topic_id: Uuid::ZERO, topic: "t".into(), partition: 0 };
    let mut cache = MetadataCache::new(partition.clone());
    let mut highest = [None; FEW as usize];
    for event in bytes.chunks_exact(6) {
        let id = RemoteSegmentId {
            partition: partition.clone(),
            segment_id: Uuid::reserved(u64::from(event[1] % FEW)),
        };
        let outcome = match RemoteSegmentState::from_wire((event[0] % 5).cast_signed()) {
            Some(state) => cache.update(&RemoteSegmentUpdate {
                id,
                event_timestamp_ms: 0,
                custom_metadata: None,
                state,
                broker_id: 0,
            }),
            None => cache.add(segment(id, event)),
        };
        assert!(outcome.is_ok() || event[0] % 5 == 4, "{outcome:?}");
        check(&cache, &mut highest);
        if outcome.is_ok_and(|applied| applied == Applied::Done) {
            plan(&cache, event);
        }
    }
});

/// A segment of up to three epochs.
fn segment(id: RemoteSegmentId, event: &[u8]) -> RemoteSegment {
    let (first, start) = (i32::from(event[2] % FEW), i64::from(event[3]));
    let end_offset = start + i64::from(event[4] % 64);
    let entry = |at: i32| EpochEntry {
        epoch: first + at,
        start_offset: start + i64::from(at) * i64::from(event[5] % 32),
    };
    RemoteSegment {
        id,
        start_offset: start,
        end_offset,
        max_timestamp_ms: i64::from(event[4]),
        broker_id: 0,
        event_timestamp_ms: 0,
        size_bytes: i32::from(event[4]),
        custom_metadata: None,
        state: RemoteSegmentState::CopyStarted,
        leader_epochs: (0..=i32::from(event[5] % 3)).map(entry).collect(),
        is_txn_index_empty: event[5] > 128,
    }
}

fn check(cache: &MetadataCache, highest: &mut [Option<i64>]) {
    for (epoch, before) in (0..).zip(highest) {
        let list = cache.list(epoch).expect("a cache that agrees with itself");
        assert!(list.iter().all(|it| it.leader_epochs.iter().any(|own| own.epoch == epoch)));
        let now = cache.highest_offset(epoch);
        assert!(now >= *before, "the highest offset went back");
        *before = now;
        for offset in [0, 10, 50, 300] {
            if let Some(found) = cache.segment(epoch, offset) {
                assert_eq!(found.state, RemoteSegmentState::CopyFinished);
                assert!(offset <= found.end_offset);
            }
            let _ = cache.next_with_txn_index(epoch, offset);
        }
    }
}

fn plan(cache: &MetadataCache, event: &[u8]) {
    let segments = cache.list_all();
    let entries: Vec<EpochEntry> = (0..3)
        .map(|at| EpochEntry {
            epoch: at + i32::from(event[2] % FEW),
            start_offset: i64::from(at) * i64::from(event[3]),
        })
        .collect();
    let epochs = LeaderEpochs::from_entries(&entries).expect("nothing negative");
    let log_start_offset = i64::from(event[4] % 64);
    let is_being_copied = |id| id == Uuid::reserved(u64::from(event[5]));
    let plan = plan_expiry(&ExpiryInput {
        segments: &segments,
        epochs: &epochs,
        log_start_offset,
        log_end_offset: 400,
        sizes: SizeRetention {
            retention_bytes: i64::from(event[5]) - 1,
            local_retention_bytes: -2,
            only_local_bytes: u64::from(event[3]),
            local_bytes: u64::from(event[3]),
        },
        retention_ms: i64::from(event[4]) - 1,
        now_ms: 200,
        is_being_copied: &is_being_copied,
        all_valid: false,
    });
    assert!(plan.new_log_start.is_none_or(|start| start > log_start_offset && start <= 400));
    if plan.epochs_incomplete.is_some() {
        assert!(plan.unreferenced.is_empty());
    }
    let mut ids: Vec<Uuid> = plan.deletes.iter().map(|(it, _)| it.id.segment_id).collect();
    ids.extend(plan.unreferenced.iter().map(|it| it.id.segment_id));
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "a segment goes twice");
}
