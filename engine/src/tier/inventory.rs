//! What lies in an object store, as far as the objects themselves tell?
//!
//! A listing gives the segments and which of their parts are there. What a broker would write of a
//! segment into `__remote_log_metadata` is then read from its parts, few bytes of each: the end
//! from the tail of the log, which the offset index leads to; the largest timestamp from the time
//! index; the leader epochs from their checkpoint. Where a part is missing or damaged the whole log
//! is read instead, and the part is reported.

use std::collections::BTreeMap;

use super::layout::{ObjectLayout, SegmentPart};
use super::remote_segment::{RemotePartition, RemoteSegment, RemoteSegmentId};
use super::segment_reading::{SegmentReading, read_segment};
use super::target::{ObjectInfo, ObjectTarget};
use crate::error::Result;

/// The parts of one uploaded segment that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteParts {
    /// Which upload it is.
    pub id: RemoteSegmentId,
    /// The offset in the names.
    pub start_offset: i64,
    sizes: [Option<u64>; 6],
}

impl RemoteParts {
    /// The bytes of a part; `None` when it is not there.
    #[must_use]
    pub fn size_bytes(&self, part: SegmentPart) -> Option<u64> {
        SegmentPart::ALL.iter().zip(self.sizes).find(|(known, _)| **known == part)?.1
    }

    /// The parts that every segment has and this one lacks. A transaction index is none of them.
    pub fn missing(&self) -> impl Iterator<Item = SegmentPart> + '_ {
        let parts = SegmentPart::ALL.into_iter();
        let is_needed = |part: &SegmentPart| *part != SegmentPart::TransactionIndex;
        parts.filter(is_needed).filter(|part| self.size_bytes(*part).is_none())
    }

    /// Reads what the parts tell of the segment.
    ///
    /// # Errors
    /// What the store says, but for a part that went meanwhile: that is a finding.
    pub fn read(&self, target: &dyn ObjectTarget, layout: &ObjectLayout) -> Result<SegmentReading> {
        read_segment(target, layout, self, true)
    }

    /// The segment as [`read`](Self::read) has it, without a look into the parts that tell nothing
    /// of it and may be large: producers and aborted transactions.
    ///
    /// # Errors
    /// What the store says.
    pub fn segment(
        &self,
        target: &dyn ObjectTarget,
        layout: &ObjectLayout,
    ) -> Result<Option<RemoteSegment>> {
        Ok(read_segment(target, layout, self, false)?.segment)
    }

    fn set(&mut self, part: SegmentPart, size_bytes: u64) {
        let sizes = SegmentPart::ALL.iter().zip(&mut self.sizes);
        if let Some((_, size)) = { sizes }.find(|(known, _)| **known == part) {
            *size = Some(size_bytes);
        }
    }
}

/// What lies below a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteInventory {
    /// The segments of each partition, by start offset and id.
    pub partitions: BTreeMap<RemotePartition, Vec<RemoteParts>>,
    /// Objects that are no part of a segment by their names, by name.
    pub others: Vec<ObjectInfo>,
}

impl RemoteInventory {
    /// Lists all partitions.
    ///
    /// # Errors
    /// What the store says.
    pub fn list(target: &dyn ObjectTarget, layout: &ObjectLayout) -> Result<Self> {
        Ok(Self::of_objects(target.list(layout.prefix())?, layout))
    }

    /// Lists the segments of one partition, by start offset and id.
    ///
    /// # Errors
    /// What the store says.
    pub fn list_partition(
        target: &dyn ObjectTarget,
        layout: &ObjectLayout,
        partition: &RemotePartition,
    ) -> Result<Vec<RemoteParts>> {
        let objects = target.list(&layout.partition_prefix(partition))?;
        let mut inventory = Self::of_objects(objects, layout);
        Ok(inventory.partitions.remove(partition).unwrap_or_default())
    }

    /// What these objects are.
    #[must_use]
    pub fn of_objects(objects: Vec<ObjectInfo>, layout: &ObjectLayout) -> Self {
        let mut segments: BTreeMap<(RemotePartition, i64, RemoteSegmentId), RemoteParts> =
            BTreeMap::new();
        let mut others = Vec::new();
        for object in objects {
            // An offset may be written with more zeros than it needs: that is another object.
            let parsed = layout
                .parse(&object.name)
                .filter(|(id, start, part)| layout.name(id, *start, *part) == object.name);
            let Some((id, start_offset, part)) = parsed else {
                others.push(object);
                continue;
            };
            let key = (id.partition.clone(), start_offset, id.clone());
            let empty = || RemoteParts { id, start_offset, sizes: [None; 6] };
            segments.entry(key).or_insert_with(empty).set(part, object.size_bytes);
        }
        let mut inventory = RemoteInventory { partitions: BTreeMap::new(), others };
        for ((partition, ..), parts) in segments {
            inventory.partitions.entry(partition).or_default().push(parts);
        }
        inventory.others.sort_by(|a, b| a.name.cmp(&b.name));
        inventory
    }

    /// Every segment, by partition, start offset and id.
    pub fn segments(&self) -> impl Iterator<Item = &RemoteParts> {
        self.partitions.values().flatten()
    }

    /// Reads what the parts of every segment tell; those that tell too little are left out.
    ///
    /// # Errors
    /// What the store says.
    pub fn read_segments(
        &self,
        target: &dyn ObjectTarget,
        layout: &ObjectLayout,
    ) -> Result<Vec<RemoteSegment>> {
        self.segments().filter_map(|parts| parts.segment(target, layout).transpose()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn object(name: &str, size_bytes: u64) -> ObjectInfo {
        ObjectInfo { name: name.to_owned(), size_bytes }
    }

    #[test]
    fn parts_are_gathered_by_segment_and_partition() {
        let folder = |topic: &str| format!("kafka-tiered-storage/{topic}-0-KhrFBVCXRj-kNEnYK4ZyLw");
        let part = |topic: &str, offset: &str, id: &str, part: &str| {
            format!("{}/{offset}-{id}{part}", folder(topic))
        };
        let (zero, later) = ("00000000000000000000", "00000000000000000100");
        let (one, two) = ("x2t5GTfnTM-67nVHQOFO5Q", "y-tcbHSyS_K1aAUhhTCjAg");
        let names = [
            part("b", zero, one, ".log"),
            part("a", later, one, ".log"),
            part("a", zero, two, ".txnindex"),
            part("a", zero, one, ".index"),
            part("a", zero, one, ".log"),
            part("a", "000000000000000000000", one, ".log"),
            part("a", zero, one, ".log.tmp"),
            "notes.txt".to_owned(),
        ];
        let objects = names.iter().zip(1..).map(|(name, size)| object(name, size)).collect();
        let inventory = RemoteInventory::of_objects(objects, &ObjectLayout::default());
        let found: Vec<_> = inventory
            .segments()
            .map(|it| {
                (it.id.partition.topic.as_str(), it.start_offset, it.id.segment_id.to_string())
            })
            .collect();
        let expected = [("a", 0, one), ("a", 0, two), ("a", 100, one), ("b", 0, one)];
        assert_eq!(found, expected.map(|(topic, at, id)| (topic, at, id.to_owned())));
        assert_eq!(inventory.others.len(), 3);
        let first = inventory.segments().next().unwrap();
        assert_eq!(first.size_bytes(SegmentPart::Log), Some(5));
        assert_eq!(first.size_bytes(SegmentPart::OffsetIndex), Some(4));
        let missing: Vec<SegmentPart> = first.missing().collect();
        use SegmentPart::{LeaderEpochs, ProducerSnapshot, TimeIndex};
        assert_eq!(missing, [TimeIndex, ProducerSnapshot, LeaderEpochs]);
    }
}
