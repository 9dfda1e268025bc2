//! What does the header of a batch say?
//!
//! Magic 2, all integers big-endian:
//!
//! ```text
//!  0        8      12           16 17   21     23       27         35        43       51     53     57    61
//!  +--------+------+------------+--+----+------+--------+----------+---------+--------+------+------+-----+----
//!  | base   | size | leader     | 2| crc| attr | last   | base     | max     | prod.  | prod.| base | rec.| records
//!  | offset | -12  | epoch      |  |    |      | offset | time-    | time-   | id     | epoch| seq. | cnt |
//!  |        |      |            |  |    |      | delta  | stamp    | stamp   |        |      |      |     |
//!  +--------+------+------------+--+----+------+--------+----------+---------+--------+------+------+-----+----
//! ```
//!
//! The checksum (CRC-32C) covers byte 21 to the end: offset, size, leader epoch and magic lie
//! outside it, so that they can be assigned without computing it anew.

use zerocopy::big_endian::{I16, I32, I64, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::bytes;
use crate::io::checksum;
use crate::units::{
    NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, increment_sequence,
};

/// Bytes before what the size field counts: offset and size.
pub const LOG_OVERHEAD: usize = 12;
/// Bytes of a header up to and including the magic byte.
pub const HEADER_UP_TO_MAGIC: usize = 17;
/// Bytes of a whole header of magic 2.
pub const HEADER_SIZE: usize = 61;
/// Where the checksum begins to count.
pub const CRC_START: usize = 21;
/// The smallest size field of any format: a message of magic 0 without key and value.
pub const MIN_SIZE_FIELD: i32 = 14;

const ATTR_CODEC: u8 = 0x07;
pub(super) const ATTR_LOG_APPEND_TIME: u8 = 0x08;
pub(super) const ATTR_TRANSACTIONAL: u8 = 0x10;
pub(super) const ATTR_CONTROL: u8 = 0x20;
pub(super) const ATTR_DELETE_HORIZON: u8 = 0x40;

/// A header as it lies in the file.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawHeader {
    base_offset: I64,
    size_field: I32,
    leader_epoch: I32,
    magic: i8,
    crc: U32,
    attributes: [u8; 2],
    last_offset_delta: I32,
    base_timestamp: I64,
    max_timestamp: I64,
    producer_id: I64,
    producer_epoch: I16,
    base_sequence: I32,
    count: I32,
}

const _: () = assert!(size_of::<RawHeader>() == HEADER_SIZE);

/// Who gave the records of a batch their timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// Magic 0: there are none.
    None,
    /// The producer.
    CreateTime,
    /// The broker, at append: every record has the batch's maximum.
    LogAppendTime,
}

/// The header of a batch of any magic; of the old formats, what the view of one entry gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record; of an old entry, its stored offset, which for a wrapper is that
    /// of its **last** message.
    pub base_offset: i64,
    /// Bytes of the whole batch, the header's first twelve included.
    pub size_bytes: u32,
    /// Leader epoch, -1 in the old formats.
    pub leader_epoch: i32,
    /// 0, 1 or 2.
    pub magic: i8,
    /// The stored checksum.
    pub crc: u32,
    /// The low byte of the attributes; Kafka uses no other.
    pub attributes: u8,
    /// Last offset minus base offset.
    pub last_offset_delta: i32,
    /// Timestamp of the first record, or the delete horizon where that flag is set.
    pub base_timestamp: i64,
    /// Largest timestamp, -1 for none.
    pub max_timestamp: i64,
    /// Producer id, -1 for none.
    pub producer_id: i64,
    /// Producer epoch, -1 for none.
    pub producer_epoch: i16,
    /// Sequence of the first record, -1 for none.
    pub base_sequence: i32,
    /// Records in the batch as the header has it; -1 in the old formats, where only reading tells.
    pub count: i32,
}

impl BatchHeader {
    /// The header of a batch of magic 2; `None` when there are fewer than 61 bytes. Nothing is
    /// checked.
    #[inline]
    #[must_use]
    pub fn parse(batch: &[u8]) -> Option<Self> {
        batch.first_chunk().map(Self::parse_whole)
    }

    /// The header in its 61 bytes.
    #[inline]
    pub(super) fn parse_whole(head: &[u8; HEADER_SIZE]) -> Self {
        let raw: &RawHeader = zerocopy::transmute_ref!(head);
        BatchHeader {
            base_offset: raw.base_offset.get(),
            size_bytes: total_size(raw.size_field.get()),
            leader_epoch: raw.leader_epoch.get(),
            magic: raw.magic,
            crc: raw.crc.get(),
            // The high byte has no meaning.
            attributes: raw.attributes[1],
            last_offset_delta: raw.last_offset_delta.get(),
            base_timestamp: raw.base_timestamp.get(),
            max_timestamp: raw.max_timestamp.get(),
            producer_id: raw.producer_id.get(),
            producer_epoch: raw.producer_epoch.get(),
            base_sequence: raw.base_sequence.get(),
            count: raw.count.get(),
        }
    }

    /// The view of one entry of magic 0 or 1; `None` when its fields do not fit into the bytes
    /// given.
    #[must_use]
    pub fn parse_legacy(entry: &[u8]) -> Option<Self> {
        let magic = bytes::get_i8(entry, 16)?;
        let max_timestamp = if magic == 0 { -1 } else { bytes::get_i64(entry, 18)? };
        Some(BatchHeader {
            base_offset: bytes::get_i64(entry, 0)?,
            size_bytes: total_size(bytes::get_i32(entry, 8)?),
            leader_epoch: NO_LEADER_EPOCH,
            magic,
            crc: bytes::get_u32(entry, 12)?,
            attributes: bytes::get_u8(entry, 17)?,
            last_offset_delta: 0,
            base_timestamp: max_timestamp,
            max_timestamp,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            count: -1,
        })
    }

    /// Offset of the last record, inclusive.
    #[inline]
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        // Kafka adds without a check; a header that lies wraps the same way here.
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The offset behind the batch.
    #[inline]
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// Sequence of the last record, -1 without one.
    #[inline]
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence == NO_SEQUENCE {
            NO_SEQUENCE
        } else {
            increment_sequence(self.base_sequence, self.last_offset_delta)
        }
    }

    /// The codec's number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 do not exist.
    #[inline]
    #[must_use]
    pub fn codec_id(&self) -> u8 {
        self.attributes & ATTR_CODEC
    }

    /// Who gave the timestamps.
    #[must_use]
    pub fn timestamp_type(&self) -> TimestampType {
        match (self.magic, self.attributes & ATTR_LOG_APPEND_TIME) {
            (0, _) => TimestampType::None,
            (_, 0) => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    /// Whether the batch belongs to a transaction.
    #[inline]
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.magic >= 2 && self.attributes & ATTR_TRANSACTIONAL != 0
    }

    /// Whether the batch holds a control record instead of data.
    #[inline]
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.magic >= 2 && self.attributes & ATTR_CONTROL != 0
    }

    /// The time after which tombstones and markers of the batch may go, where it is set.
    #[must_use]
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        (self.magic >= 2 && self.attributes & ATTR_DELETE_HORIZON != 0)
            .then_some(self.base_timestamp)
    }

    /// Whether a producer id stands in the header.
    #[inline]
    #[must_use]
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > NO_PRODUCER_ID
    }
}

/// The bytes of a whole batch by its size field; 0 for a negative one.
#[inline]
fn total_size(size_field: i32) -> u32 {
    u32::try_from(size_field).map_or(0, |size| size.saturating_add(12))
}

/// The checksum of a batch of magic 2, as its bytes are. 0 when there are fewer than 21.
#[inline]
#[must_use]
pub fn compute_crc(batch: &[u8]) -> u32 {
    checksum::crc32c(batch.get(CRC_START..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn kafkas_two_record_batch_reads_as_it_was_made() {
        // spec: records 10
        let batch = hex(concat!(
            "000000000000000000000055ffffffff02e58cf1ff00000000000100000000000454c300000000000454c3ff",
            "ffffffffffffffffffffffffff0000000220000000086b6579310c76616c756531002400e1bf2202086b6579",
            "320c76616c75653200"
        ));
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!(header.size_bytes, 97);
        assert_eq!(header.crc, 3_851_219_455);
        assert_eq!(compute_crc(&batch), header.crc);
        assert_eq!((header.base_offset, header.last_offset()), (0, 1));
        assert_eq!((header.base_timestamp, header.max_timestamp), (283_843, 283_843));
        assert_eq!((header.producer_id, header.last_sequence(), header.count), (-1, -1, 2));
        assert_eq!(header.timestamp_type(), TimestampType::CreateTime);
    }

    #[test]
    fn an_empty_batch_kept_by_compaction_keeps_its_producer() {
        // spec: records 10
        let batch = hex(concat!(
            "000000000000000300000031000001250255581148000000000001ffffffffffffffff000000000000000c",
            "000000000000001700050000000a00000000"
        ));
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!(compute_crc(&batch), header.crc);
        assert_eq!((header.base_offset, header.last_offset(), header.count), (3, 4, 0));
        assert_eq!((header.producer_id, header.producer_epoch), (23, 5));
        assert_eq!((header.base_sequence, header.last_sequence()), (10, 11));
    }

    #[test]
    fn the_flag_of_a_delete_horizon_says_nothing_else() {
        // spec: behaviours VB-018
        let mut batch = vec![0; HEADER_SIZE];
        (batch[16], batch[22]) = (2, 0x40);
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!(header.delete_horizon_ms(), Some(0));
        assert_eq!(header.timestamp_type(), TimestampType::CreateTime);
        assert_eq!(header.codec_id(), 0);
        assert!(!header.is_transactional() && !header.is_control());
    }

    #[test]
    fn the_old_formats_have_fewer_fields() {
        // spec: behaviours LG-017, LG-018
        let mut entry = vec![0; 34];
        (entry[16], entry[17]) = (1, 0x08);
        let header = BatchHeader::parse_legacy(&entry).unwrap();
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        entry[16] = 0;
        let header = BatchHeader::parse_legacy(&entry).unwrap();
        assert_eq!(header.timestamp_type(), TimestampType::None);
        assert_eq!((header.base_timestamp, header.max_timestamp), (-1, -1));
        assert_eq!((header.producer_id, header.producer_epoch), (-1, -1));
        assert_eq!(
            (header.base_sequence, header.last_sequence(), header.leader_epoch),
            (-1, -1, -1)
        );
    }

    #[test]
    fn a_header_is_read_without_its_records() {
        // spec: behaviours FR-025
        let mut batch = hex(concat!(
            "00000000000003d7000000420000001d02172b6dc800300000000000000000000003e800000000000003e8",
            "0000000000000049000dffffffff000000012000000008000000010c00000000015b00"
        ));
        let header = BatchHeader::parse(&batch[..HEADER_SIZE]).unwrap();
        assert_eq!(
            (header.base_offset, header.last_offset(), header.next_offset()),
            (983, 983, 984)
        );
        assert_eq!((header.leader_epoch, header.magic, header.size_bytes), (29, 2, 78));
        assert_eq!((header.producer_id, header.producer_epoch), (73, 13));
        assert_eq!((header.base_sequence, header.last_sequence()), (-1, -1));
        assert!(header.is_control() && header.is_transactional());
        assert_eq!((header.codec_id(), header.count), (0, 1));
        assert_eq!(header.timestamp_type(), TimestampType::CreateTime);
        assert_eq!((header.base_timestamp, header.max_timestamp), (1000, 1000));
        // The checksum alone is about the records.
        assert_eq!(compute_crc(&batch), header.crc);
        *batch.last_mut().unwrap() ^= 1;
        assert_eq!(BatchHeader::parse(&batch), Some(header));
        assert_ne!(compute_crc(&batch), header.crc);
    }
}
