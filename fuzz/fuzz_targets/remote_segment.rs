//! The parts of an uploaded segment: what the inventory makes of them, and the index cache of what
//! it finds in the store and in its own folder.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use siltstone::io::SimDisk;
use siltstone::tier::{
    IndexCacheOptions, LocalTarget, ObjectBytes, ObjectLayout, ObjectTarget, RemoteIndexCache,
    RemoteInventory, RemotePartition, RemoteSegmentId, SegmentPart,
};
use siltstone::uuid::Uuid;

const START_OFFSET: i64 = 100;

fuzz_target!(|bytes: &[u8]| {
    let (store, layout) =
        (LocalTarget::new(Arc::new(SimDisk::new()), "/"), ObjectLayout::default());
    let partition =
        RemotePartition { topic_id: Uuid::reserved(1), topic: "t".to_owned(), partition: 0 };
    let id = RemoteSegmentId { partition, segment_id: Uuid::reserved(2) };
    let mut rest = bytes;
    let mut parts = Vec::new();
    for part in SegmentPart::ALL {
        let Some((size, behind)) = rest.split_first_chunk() else { break };
        let size = usize::from(u16::from_be_bytes(*size)).min(behind.len());
        let (bytes, behind) = behind.split_at(size);
        store
            .put(&layout.name(&id, START_OFFSET, part), &[ObjectBytes::Memory(bytes)])
            .expect("room on the disk");
        parts.push((part, bytes));
        rest = behind;
    }
    let inventory = RemoteInventory::list(&store, &layout).expect("a listing");
    for found in inventory.segments() {
        let reading = found.read(&store, &layout).expect("parts that are there");
        let Some(segment) = reading.segment else { continue };
        segment.check().expect("a segment that can be");
        assert!(segment.end_offset >= START_OFFSET);
        let disk = SimDisk::new();
        // What a cache finds in its folder is what one finds in the store.
        for (part, bytes) in &parts {
            let name = format!("{START_OFFSET}_{}{}", segment.id.segment_id, part.suffix());
            let path = Path::new("/remote-log-index-cache").join(name);
            disk.put(&path, bytes.to_vec(), None).expect("room on the disk");
        }
        let target: Arc<dyn ObjectTarget> = Arc::new(store.clone());
        let open = |disk: SimDisk| {
            let (target, layout) = (Arc::clone(&target), layout.clone());
            let (root, options) = (Path::new("/"), IndexCacheOptions::default());
            RemoteIndexCache::open(Arc::new(disk), root, target, layout, options, 0)
        };
        let (kept, fetched) =
            (open(disk).expect("a cache"), open(SimDisk::new()).expect("a cache"));
        match (kept.get(&segment, 0), fetched.get(&segment, 0)) {
            (Ok(kept), Ok(fetched)) => {
                assert_eq!(kept, fetched);
                for offset in [0, START_OFFSET, segment.end_offset, i64::MAX] {
                    let _ = (kept.lookup_offset(offset), kept.lookup_timestamp(offset, offset));
                    let _ = kept.collect_aborted(offset, i64::MAX, &mut Vec::new());
                }
            }
            (kept, fetched) => assert_eq!(kept.is_ok(), fetched.is_ok()),
        }
    }
});
