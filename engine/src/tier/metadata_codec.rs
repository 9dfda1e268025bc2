//! How do the records of `__remote_log_metadata` look, and in which of its partitions are they?
//!
//! ```text
//! value: uvarint 1 | uvarint api key | uvarint version 0 | message, flexible encoding
//! segment id: { topic partition { name str, topic id, i32 partition, tags }, segment id, tags }
//!   0 segment    segment id, start, end, broker, max timestamp, event timestamp,
//!                [{ i32 epoch, i64 start, tags }], i32 size, custom bytes?, i8 state,
//!                tags (0: txn index empty, only when true)
//!   1 update     segment id, broker, event timestamp, custom bytes?, i8 state, tags
//!   2 delete     topic partition, broker, event timestamp, i8 state, tags
//!   3 snapshot   as a segment, with the segment id alone in place of the whole id
//! ```
//!
//! What is read goes through the one decoder of [`payload`](crate::record::payload); what is
//! written is byte for byte what Kafka's serializer writes.

use super::remote_segment::{
    PartitionDelete, PartitionDeleteState, RemotePartition, RemoteSegment, RemoteSegmentId,
    RemoteSegmentState, RemoteSegmentUpdate, SegmentSnapshot,
};
use crate::error::{Error, Kind, Result};
use crate::record::payload::{Payload, Value, decode_remote_metadata};
use crate::record::varint::write_u32;
use crate::state::EpochEntry;

/// The longest name that Kafka writes, in bytes.
const NAME_BYTES_MAX: usize = 32767;

/// The tag of "no aborted transaction".
const TAG_TXN_INDEX_EMPTY: u32 = 0;

/// A record of `__remote_log_metadata`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteMetadataRecord {
    /// A new segment.
    Segment(RemoteSegment),
    /// A change of a segment's state.
    Update(RemoteSegmentUpdate),
    /// A partition goes.
    PartitionDelete(PartitionDelete),
    /// A segment in a file that a broker keeps for itself.
    Snapshot(SegmentSnapshot),
}

impl RemoteMetadataRecord {
    /// The partition that the record is about; of a snapshot, its file says it.
    #[must_use]
    pub fn partition(&self) -> Option<&RemotePartition> {
        match self {
            Self::Segment(segment) => Some(&segment.id.partition),
            Self::Update(update) => Some(&update.id.partition),
            Self::PartitionDelete(delete) => Some(&delete.partition),
            Self::Snapshot(_) => None,
        }
    }

    /// The bytes of the record's value.
    ///
    /// # Errors
    /// `InvalidArgument` for a topic name that is longer than Kafka can write, and for custom
    /// metadata or epochs beyond what a length can say.
    pub fn encode(&self) -> Result<Vec<u8>> {
        // spec: tiered 4.2
        let mut out = Encoder(vec![1]);
        match self {
            Self::Segment(segment) => {
                out.frame(0);
                out.segment_id(&segment.id)?;
                out.segment(&SegmentSnapshot::from(segment))?;
            }
            Self::Update(update) => {
                out.frame(1);
                out.segment_id(&update.id)?;
                out.0.extend(update.broker_id.to_be_bytes());
                out.0.extend(update.event_timestamp_ms.to_be_bytes());
                out.custom(update.custom_metadata.as_deref())?;
                out.0.extend(update.state.wire().to_be_bytes());
                out.no_tags();
            }
            Self::PartitionDelete(delete) => {
                out.frame(2);
                out.partition(&delete.partition)?;
                out.0.extend(delete.broker_id.to_be_bytes());
                out.0.extend(delete.event_timestamp_ms.to_be_bytes());
                out.0.extend(delete.state.wire().to_be_bytes());
                out.no_tags();
            }
            Self::Snapshot(segment) => {
                out.frame(3);
                out.0.extend(segment.segment_id.0);
                out.segment(segment)?;
            }
        }
        Ok(out.0)
    }

    /// Reads the bytes of a record's value.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are not what they should be, too many or too few, and for a segment
    /// that cannot be; `Unsupported` for a frame, record or version that is newer.
    pub fn decode(value: &[u8]) -> Result<Self> {
        let unsupported = |message: String| Err(Error::new(Kind::Unsupported, message));
        let payload = decode_remote_metadata(value)?;
        let message = match &payload {
            Payload::Message(message) => message,
            Payload::Null => {
                return Err(Error::corrupt("a remote metadata record without a value"));
            }
            Payload::UnknownType(key) => {
                return unsupported(format!("a remote metadata record with api key {key}"));
            }
            Payload::UnknownVersion { name, version, .. } => {
                return unsupported(format!("{name} of version {version}"));
            }
        };
        let fields = Fields(&message.data);
        let record = match message.id {
            0 => {
                let id = fields.segment_id()?;
                let segment = fields.segment(id.segment_id)?.into_segment(id.partition);
                segment.check().map_err(|error| Error::corrupt(error.message()))?;
                Self::Segment(segment)
            }
            1 => Self::Update(RemoteSegmentUpdate {
                id: fields.segment_id()?,
                event_timestamp_ms: fields.i64("eventTimestampMs")?,
                custom_metadata: fields.custom(),
                state: fields.state("remoteLogSegmentState")?,
                broker_id: fields.i32("brokerId")?,
            }),
            2 => Self::PartitionDelete(PartitionDelete {
                partition: fields.within("topicIdPartition")?.partition()?,
                event_timestamp_ms: fields.i64("eventTimestampMs")?,
                state: fields.delete_state()?,
                broker_id: fields.i32("brokerId")?,
            }),
            _ => Self::Snapshot(fields.segment(fields.uuid("segmentId")?)?),
        };
        Ok(record)
    }
}

/// The partition of `__remote_log_metadata`, of `partitions` that it has, that holds the records of
/// a partition; 0 when there are no partitions.
#[must_use]
pub fn metadata_partition(of: &RemotePartition, partitions: u32) -> u32 {
    // spec: tiered 4.2
    let fold = |half: &[u8]| {
        let (high, low) = half.split_at(half.len() / 2);
        let int = |bytes: &[u8]| crate::bytes::get_i32(bytes, 0).unwrap_or(0);
        int(high) ^ int(low)
    };
    let (most, least) = of.topic_id.0.split_at(8);
    let hash = 31_i32
        .wrapping_add(fold(least))
        .wrapping_mul(31)
        .wrapping_add(fold(most))
        .wrapping_mul(31)
        .wrapping_add(of.partition);
    let positive = murmur2(hash) & 0x7fff_ffff;
    positive.checked_rem(partitions).unwrap_or(0)
}

/// Kafka's murmur2 of the four big-endian bytes of a number.
fn murmur2(number: i32) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    const SIZE: u32 = 4;
    // It takes its bytes as little-endian.
    let mut k = number.cast_unsigned().swap_bytes().wrapping_mul(M);
    k ^= k >> 24;
    let mut h = (SEED ^ SIZE).wrapping_mul(M) ^ k.wrapping_mul(M);
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ (h >> 15)
}

struct Encoder(Vec<u8>);

impl Encoder {
    fn frame(&mut self, api_key: u32) {
        write_u32(&mut self.0, api_key);
        write_u32(&mut self.0, 0);
    }

    fn no_tags(&mut self) {
        self.0.push(0);
    }

    /// A length or count of the flexible encoding.
    fn length(&mut self, length: usize, what: &str) -> Result<()> {
        let coded = u32::try_from(length).ok().and_then(|length| length.checked_add(1));
        let Some(coded) = coded.filter(|coded| i32::try_from(*coded).is_ok()) else {
            return Err(Error::new(Kind::InvalidArgument, format!("{length} {what} are too many")));
        };
        write_u32(&mut self.0, coded);
        Ok(())
    }

    fn partition(&mut self, partition: &RemotePartition) -> Result<()> {
        let name = partition.topic.as_bytes();
        if name.len() > NAME_BYTES_MAX {
            let message = format!("a topic name of {} bytes is too long", name.len());
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        self.length(name.len(), "bytes of a name")?;
        self.0.extend(name);
        self.0.extend(partition.topic_id.0);
        self.0.extend(partition.partition.to_be_bytes());
        self.no_tags();
        Ok(())
    }

    fn segment_id(&mut self, id: &RemoteSegmentId) -> Result<()> {
        self.partition(&id.partition)?;
        self.0.extend(id.segment_id.0);
        self.no_tags();
        Ok(())
    }

    fn custom(&mut self, custom: Option<&[u8]>) -> Result<()> {
        let Some(custom) = custom else {
            self.0.push(0);
            return Ok(());
        };
        self.length(custom.len(), "bytes of custom metadata")?;
        self.0.extend(custom);
        Ok(())
    }

    /// The fields of a segment behind its id.
    fn segment(&mut self, segment: &SegmentSnapshot) -> Result<()> {
        self.0.extend(segment.start_offset.to_be_bytes());
        self.0.extend(segment.end_offset.to_be_bytes());
        self.0.extend(segment.broker_id.to_be_bytes());
        self.0.extend(segment.max_timestamp_ms.to_be_bytes());
        self.0.extend(segment.event_timestamp_ms.to_be_bytes());
        self.length(segment.leader_epochs.len(), "leader epochs")?;
        for entry in &segment.leader_epochs {
            self.0.extend(entry.epoch.to_be_bytes());
            self.0.extend(entry.start_offset.to_be_bytes());
            self.no_tags();
        }
        self.0.extend(segment.size_bytes.to_be_bytes());
        self.custom(segment.custom_metadata.as_deref())?;
        self.0.extend(segment.state.wire().to_be_bytes());
        if !segment.is_txn_index_empty {
            self.no_tags();
            return Ok(());
        }
        for number in [1, TAG_TXN_INDEX_EMPTY, 1, 1] {
            // One tag: its number, its size, and "true".
            write_u32(&mut self.0, number);
        }
        Ok(())
    }
}

/// The fields of a decoded message.
struct Fields<'a>(&'a Value<'a>);

impl<'a> Fields<'a> {
    fn missing(name: &str) -> Error {
        Error::corrupt(format!("a remote metadata record without {name}"))
    }

    fn within(&self, name: &str) -> Result<Fields<'a>> {
        self.0.field(name).map(Fields).ok_or_else(|| Self::missing(name))
    }

    fn i64(&self, name: &str) -> Result<i64> {
        self.0.int(name).ok_or_else(|| Self::missing(name))
    }

    fn i32(&self, name: &str) -> Result<i32> {
        i32::try_from(self.i64(name)?).map_err(|_| Self::missing(name))
    }

    fn uuid(&self, name: &str) -> Result<crate::uuid::Uuid> {
        self.0.uuid(name).ok_or_else(|| Self::missing(name))
    }

    fn custom(&self) -> Option<Vec<u8>> {
        self.0.bytes("customMetadata").map(<[u8]>::to_vec)
    }

    fn partition(&self) -> Result<RemotePartition> {
        Ok(RemotePartition {
            topic_id: self.uuid("id")?,
            topic: self.0.text("name").ok_or_else(|| Self::missing("a name"))?.to_owned(),
            partition: self.i32("partition")?,
        })
    }

    fn segment_id(&self) -> Result<RemoteSegmentId> {
        let id = self.within("remoteLogSegmentId")?;
        let partition = id.within("topicIdPartition")?.partition()?;
        Ok(RemoteSegmentId { partition, segment_id: id.uuid("id")? })
    }

    fn wire(&self, name: &str) -> Result<i8> {
        i8::try_from(self.i64(name)?).map_err(|_| Self::missing(name))
    }

    fn state(&self, name: &str) -> Result<RemoteSegmentState> {
        let wire = self.wire(name)?;
        RemoteSegmentState::from_wire(wire)
            .ok_or_else(|| Error::corrupt(format!("a remote segment with state {wire}")))
    }

    fn delete_state(&self) -> Result<PartitionDeleteState> {
        let wire = self.wire("remotePartitionDeleteState")?;
        PartitionDeleteState::from_wire(wire)
            .ok_or_else(|| Error::corrupt(format!("a partition that goes with state {wire}")))
    }

    fn segment(&self, segment_id: crate::uuid::Uuid) -> Result<SegmentSnapshot> {
        let epochs = self.0.array("segmentLeaderEpochs").unwrap_or_default();
        let entry = |value| {
            let fields = Fields(value);
            let epoch = fields.i32("leaderEpoch")?;
            Ok(EpochEntry { epoch, start_offset: fields.i64("offset")? })
        };
        let mut leader_epochs = epochs.iter().map(entry).collect::<Result<Vec<_>>>()?;
        // Kafka reads them into a map: they may come in any order, and the last of an epoch counts.
        leader_epochs.reverse();
        leader_epochs.sort_by_key(|entry| entry.epoch);
        leader_epochs.dedup_by_key(|entry| entry.epoch);
        Ok(SegmentSnapshot {
            segment_id,
            start_offset: self.i64("startOffset")?,
            end_offset: self.i64("endOffset")?,
            max_timestamp_ms: self.i64("maxTimestampMs")?,
            broker_id: self.i32("brokerId")?,
            event_timestamp_ms: self.i64("eventTimestampMs")?,
            size_bytes: self.i32("segmentSizeInBytes")?,
            custom_metadata: self.custom(),
            state: self.state("remoteLogSegmentState")?,
            leader_epochs,
            is_txn_index_empty: self.0.bool("txnIndexEmpty").unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uuid::Uuid;
    use proptest::prelude::*;

    fn uuid(first: u8) -> Uuid {
        Uuid(std::array::from_fn(|at| first + u8::try_from(at).unwrap()))
    }

    fn partition() -> RemotePartition {
        RemotePartition { topic_id: uuid(0), topic: "foo".into(), partition: 0 }
    }

    fn segment() -> RemoteSegment {
        RemoteSegment {
            id: RemoteSegmentId { partition: partition(), segment_id: uuid(16) },
            start_offset: 0,
            end_offset: 99,
            max_timestamp_ms: 1000,
            broker_id: 1,
            event_timestamp_ms: 2000,
            size_bytes: 1024,
            custom_metadata: None,
            state: RemoteSegmentState::CopyStarted,
            leader_epochs: vec![EpochEntry { epoch: 0, start_offset: 0 }],
            is_txn_index_empty: false,
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The segment id of the worked bytes, and the fields of a segment behind it.
    const ID: &str = "04666f6f000102030405060708090a0b0c0d0e0f0000000000\
                      101112131415161718191a1b1c1d1e1f00";
    const FIELDS: &str = "00000000000000000000000000000063000000010000000000\
                          0003e800000000000007d0020000000000000000000000000000000400\
                          0000";

    #[test]
    fn a_segment_and_an_update_are_written_as_kafka_writes_them() {
        // spec: tiered 4.2, the worked bytes
        let record = RemoteMetadataRecord::Segment(segment());
        let bytes = record.encode().unwrap();
        assert_eq!(hex(&bytes), format!("010000{ID}{FIELDS}00"));
        assert_eq!(bytes.len(), 102);
        assert_eq!(RemoteMetadataRecord::decode(&bytes).unwrap(), record);

        let mut without = segment();
        without.is_txn_index_empty = true;
        let record = RemoteMetadataRecord::Segment(without);
        let bytes = record.encode().unwrap();
        assert_eq!(hex(&bytes), format!("010000{ID}{FIELDS}01000101"));
        assert_eq!(bytes.len(), 105);
        assert_eq!(RemoteMetadataRecord::decode(&bytes).unwrap(), record);

        let record = RemoteMetadataRecord::Update(RemoteSegmentUpdate {
            id: segment().id,
            event_timestamp_ms: 3000,
            custom_metadata: Some(vec![0xab, 0xcd]),
            state: RemoteSegmentState::CopyFinished,
            broker_id: 1,
        });
        let bytes = record.encode().unwrap();
        assert_eq!(hex(&bytes), format!("010100{ID}000000010000000000000bb803abcd0100"));
        assert_eq!(bytes.len(), 62);
        assert_eq!(RemoteMetadataRecord::decode(&bytes).unwrap(), record);
    }

    #[test]
    fn a_partition_that_goes_and_a_snapshot_read_back() {
        // spec: tiered 4.2
        for wire in 0..3 {
            let record = RemoteMetadataRecord::PartitionDelete(PartitionDelete {
                partition: partition(),
                event_timestamp_ms: 7,
                state: PartitionDeleteState::from_wire(wire).unwrap(),
                broker_id: 2,
            });
            let bytes = record.encode().unwrap();
            let tip = "04666f6f000102030405060708090a0b0c0d0e0f0000000000";
            assert_eq!(hex(&bytes), format!("010200{tip}000000020000000000000007{wire:02x}00"));
            assert_eq!(RemoteMetadataRecord::decode(&bytes).unwrap(), record);
        }
        let mut snapshot = SegmentSnapshot::from(&segment());
        snapshot.is_txn_index_empty = true;
        let record = RemoteMetadataRecord::Snapshot(snapshot.clone());
        let bytes = record.encode().unwrap();
        let id = "101112131415161718191a1b1c1d1e1f";
        assert_eq!(hex(&bytes), format!("010300{id}{FIELDS}01000101"));
        assert_eq!(RemoteMetadataRecord::decode(&bytes).unwrap(), record);
        assert_eq!(record.partition(), None);
        let whole = snapshot.into_segment(partition());
        assert_eq!(whole, RemoteSegment { is_txn_index_empty: true, ..segment() });
    }

    #[test]
    fn bytes_that_are_no_record_are_refused_with_their_reason() {
        let good = RemoteMetadataRecord::Segment(segment()).encode().unwrap();
        let kind = |bytes: &[u8]| RemoteMetadataRecord::decode(bytes).unwrap_err().kind();
        for size in 0..good.len() {
            assert_eq!(kind(&good[..size]), Kind::Corrupt, "{size}");
        }
        assert_eq!(kind(&[good.as_slice(), b"x"].concat()), Kind::Corrupt);
        for (at, byte, expected) in [
            (0, 0, Kind::Corrupt),
            (0, 2, Kind::Unsupported),
            (1, 4, Kind::Unsupported),
            (2, 1, Kind::Unsupported),
            (100, 4, Kind::Corrupt),
            (100, 0xff, Kind::Corrupt),
            // A start below 0, an end before the start, a name of another length.
            (45, 0xff, Kind::Corrupt),
            (53, 0xff, Kind::Corrupt),
            (3, 0xff, Kind::Corrupt),
        ] {
            let mut bytes = good.clone();
            bytes[at] = byte;
            assert_eq!(kind(&bytes), expected, "{at}");
        }
        // A count of epochs that no bytes stand for, and none at all.
        let at = good.len() - 21;
        assert_eq!(good[at], 2);
        for count in [&[0xff, 0xff, 0xff, 0xff, 7][..], &[1], &[0]] {
            let bytes = [&good[..at], count, &good[at + 14..]].concat();
            assert_eq!(kind(&bytes), Kind::Corrupt, "{count:?}");
        }
        // A state of a partition that goes.
        let tip = &good[3..28];
        let delete = [b"\x01\x02\x00", tip, &[0; 12], b"\x03\x00"].concat();
        assert_eq!(kind(&delete), Kind::Corrupt);
    }

    #[test]
    fn epochs_in_any_order_are_read_as_a_map() {
        let mut of = segment();
        let entry = |epoch, start_offset| EpochEntry { epoch, start_offset };
        of.leader_epochs = vec![entry(3, 50), entry(0, 0), entry(3, 60)];
        let bytes = RemoteMetadataRecord::Segment(of.clone()).encode().unwrap();
        of.leader_epochs = vec![entry(0, 0), entry(3, 60)];
        assert_eq!(
            RemoteMetadataRecord::decode(&bytes).unwrap(),
            RemoteMetadataRecord::Segment(of)
        );
    }

    #[test]
    fn names_that_kafka_cannot_write_are_refused() {
        let mut long = segment();
        long.id.partition.topic = "x".repeat(32768);
        let error = RemoteMetadataRecord::Segment(long).encode().unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument);
    }

    // The right values are those of Java's hash and of Kafka's murmur2, computed apart from this.
    #[test]
    fn a_partition_has_its_place_by_kafkas_hash() {
        // spec: tiered 4.2
        assert_eq!(murmur2(0), 0x32b8_9340);
        assert_eq!(murmur2(-1), 0x2665_46a5);
        let place = |topic_id, partition, partitions| {
            let of = RemotePartition { topic_id, topic: "any".into(), partition };
            metadata_partition(&of, partitions)
        };
        assert_eq!([0, 1, 2, 3, 99].map(|it| place(uuid(0), it, 50)), [45, 3, 5, 36, 26]);
        let squares =
            Uuid(std::array::from_fn(|at| u8::try_from((at * at * 7 + 3) % 256).unwrap()));
        assert_eq!([0, 1, 2, 3, 99].map(|it| place(squares, it, 50)), [9, 20, 19, 20, 12]);
        assert_eq!((place(uuid(1), 7, 1), place(uuid(1), 7, 0)), (0, 0));
    }

    prop_compose! {
        fn any_segment()(
            topic in "[a-z.]{0,40}", topic_id in any::<[u8; 16]>(), partition in any::<i32>(),
            segment_id in any::<[u8; 16]>(), start_offset in 0..i64::MAX / 2,
            more in 0..i64::MAX / 2, numbers in any::<(i64, i32, i64, i32)>(),
            custom_metadata in any::<Option<Vec<u8>>>(), state in 0_i8..4,
            starts in prop::collection::btree_map(any::<i32>(), any::<i64>(), 1..9),
            is_txn_index_empty in any::<bool>(),
        ) -> RemoteSegment {
            let partition = RemotePartition { topic_id: Uuid(topic_id), topic, partition };
            RemoteSegment {
                id: RemoteSegmentId { partition, segment_id: Uuid(segment_id) },
                start_offset,
                end_offset: start_offset + more,
                max_timestamp_ms: numbers.0,
                broker_id: numbers.1,
                event_timestamp_ms: numbers.2,
                size_bytes: numbers.3,
                custom_metadata,
                state: RemoteSegmentState::from_wire(state).unwrap(),
                leader_epochs: starts
                    .into_iter()
                    .map(|(epoch, start_offset)| EpochEntry { epoch, start_offset })
                    .collect(),
                is_txn_index_empty,
            }
        }
    }

    proptest! {
        #[test]
        fn any_record_reads_back(segment in any_segment()) {
            let update = RemoteSegmentUpdate {
                id: segment.id.clone(),
                event_timestamp_ms: segment.event_timestamp_ms,
                custom_metadata: segment.custom_metadata.clone(),
                state: segment.state,
                broker_id: segment.broker_id,
            };
            for record in [
                RemoteMetadataRecord::Snapshot(SegmentSnapshot::from(&segment)),
                RemoteMetadataRecord::Segment(segment),
                RemoteMetadataRecord::Update(update),
            ] {
                let bytes = record.encode().unwrap();
                prop_assert_eq!(RemoteMetadataRecord::decode(&bytes).unwrap(), record);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(record) = RemoteMetadataRecord::decode(&bytes) {
                let written = record.encode().unwrap();
                prop_assert_eq!(RemoteMetadataRecord::decode(&written).unwrap(), record);
            }
        }
    }
}
