//! What did a log know of its producers at an offset? The `.snapshot` file.
//!
//! ```text
//!  0  i16  version, 1
//!  2  u32  CRC-32C of everything from byte 6 to the end of the file
//!  6  i32  number of entries
//! 10  entries of 46 bytes:
//!      +0  i64  producer id
//!      +8  i16  producer epoch
//!     +10  i32  last sequence of the newest batch, -1 when there is none
//!     +14  i64  last offset of the newest batch, -1 when there is none
//!     +22  i32  last less first offset of the newest batch
//!     +26  i64  last timestamp in ms
//!     +34  i32  coordinator epoch
//!     +38  i64  first offset of the open transaction, -1 when there is none
//! ```

use std::fmt;

use zerocopy::big_endian::{I16, I32, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::producer::{NO_OFFSET, ProducerEntry};
use crate::bytes::{get_i16, get_i32, get_u32, put};
use crate::error::Error;
use crate::io::checksum::crc32c;
use crate::problem::Code;

const VERSION: i16 = 1;
const CRC_AT: usize = 2;
const COUNT_AT: usize = 6;
const HEADER_SIZE: usize = 10;
const ENTRY_SIZE: usize = 46;

/// The entries of a snapshot whose checksum is right; borrowed from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    entries: &'a [RawEntry],
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawEntry {
    producer_id: I64,
    producer_epoch: I16,
    last_sequence: I32,
    last_offset: I64,
    offset_delta: I32,
    last_timestamp: I64,
    coordinator_epoch: I32,
    txn_first_offset: I64,
}

const _: () = assert!(size_of::<RawEntry>() == ENTRY_SIZE);

impl<'a> Snapshot<'a> {
    /// Checks the bytes of a file. Nothing is copied.
    ///
    /// # Errors
    /// The first fault of the file: truncated, of an unknown version, or with a wrong checksum.
    pub fn read(bytes: &'a [u8]) -> Result<Self, SnapshotFault> {
        // spec: producer-state A5
        let truncated = |detail: String| SnapshotFault {
            code: Code::SnapshotTruncated,
            position: bytes.len(),
            detail,
        };
        let version = get_i16(bytes, 0)
            .ok_or_else(|| truncated(format!("{} bytes hold no version", bytes.len())))?;
        if version != VERSION {
            let detail = format!("version {version} is unknown, only {VERSION} is known");
            return Err(SnapshotFault { code: Code::SnapshotVersion, position: 0, detail });
        }
        let (Some(stored), Some(count), Some(checked), Some(body)) = (
            get_u32(bytes, CRC_AT),
            get_i32(bytes, COUNT_AT),
            bytes.get(COUNT_AT..),
            bytes.get(HEADER_SIZE..),
        ) else {
            let found = bytes.len();
            return Err(truncated(format!("{found} bytes, the header alone has {HEADER_SIZE}")));
        };
        let entries = usize::try_from(count).ok().and_then(|count| raw_entries(body, count));
        let computed = crc32c(checked);
        match entries {
            Some(entries) if stored == computed => Ok(Snapshot { entries }),
            None if count >= 0 => {
                let found = body.len() / ENTRY_SIZE;
                Err(truncated(format!("{count} entries are announced, {found} are there")))
            }
            _ if stored != computed => {
                let detail = format!("the checksum is {computed:08x}, the file says {stored:08x}");
                Err(SnapshotFault { code: Code::SnapshotCrc, position: CRC_AT, detail })
            }
            _ => Err(SnapshotFault {
                code: Code::SnapshotTruncated,
                position: COUNT_AT,
                detail: format!("{count} entries cannot be"),
            }),
        }
    }

    /// How many producers it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds no producer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether all that it tells of lies before `offset`, as it must in the snapshot there.
    #[must_use]
    pub fn is_before(&self, offset: i64) -> bool {
        self.iter().all(|entry| entry.last_offset.max(entry.txn_first_offset) < offset)
    }

    /// The producers in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = ProducerEntry> + Clone + 'a {
        self.entries.iter().map(ProducerEntry::from)
    }
}

fn raw_entries(body: &[u8], count: usize) -> Option<&[RawEntry]> {
    let (entries, _) = <[RawEntry]>::ref_from_prefix_with_elems(body, count).ok()?;
    Some(entries)
}

impl From<&RawEntry> for ProducerEntry {
    #[inline]
    fn from(raw: &RawEntry) -> Self {
        let mut entry = ProducerEntry {
            producer_id: raw.producer_id.get(),
            last_offset: raw.last_offset.get(),
            last_timestamp: raw.last_timestamp.get(),
            txn_first_offset: raw.txn_first_offset.get().max(NO_OFFSET),
            last_sequence: raw.last_sequence.get(),
            offset_delta: raw.offset_delta.get(),
            coordinator_epoch: raw.coordinator_epoch.get(),
            producer_epoch: raw.producer_epoch.get(),
        };
        if !entry.has_batch() {
            // Without an offset there is no batch, whatever the other fields of it say.
            entry.forget_batch();
        }
        entry
    }
}

impl From<&ProducerEntry> for RawEntry {
    fn from(entry: &ProducerEntry) -> Self {
        RawEntry {
            producer_id: entry.producer_id.into(),
            producer_epoch: entry.producer_epoch.into(),
            last_sequence: entry.last_sequence.into(),
            last_offset: entry.last_offset.into(),
            offset_delta: entry.offset_delta.into(),
            last_timestamp: entry.last_timestamp.into(),
            coordinator_epoch: entry.coordinator_epoch.into(),
            txn_first_offset: entry.txn_first_offset.into(),
        }
    }
}

/// The bytes of a snapshot of these producers, in this order.
///
/// Kafka's order is that of [`ProducerTable::snapshot`](super::ProducerTable::snapshot); no
/// reader depends on it.
///
/// # Panics
/// With more than 2^31 - 1 producers, which no machine's memory holds.
#[must_use]
pub fn write_snapshot<'a, I>(producers: I) -> Vec<u8>
where
    I: IntoIterator<Item = &'a ProducerEntry>,
    I::IntoIter: ExactSizeIterator,
{
    let producers = producers.into_iter();
    let count = i32::try_from(producers.len()).expect("2^31 producers do not fit into memory");
    let mut bytes = Vec::with_capacity(HEADER_SIZE + ENTRY_SIZE * producers.len());
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&[0; COUNT_AT - CRC_AT]);
    bytes.extend_from_slice(&count.to_be_bytes());
    for producer in producers {
        bytes.extend_from_slice(RawEntry::from(producer).as_bytes());
    }
    let crc = crc32c(bytes.get(COUNT_AT..).unwrap_or_default());
    let fits = put(&mut bytes, CRC_AT, &crc.to_be_bytes());
    debug_assert!(fits, "the header was written above");
    bytes
}

/// Why a snapshot cannot be used. Kafka deletes such a file and takes an older one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFault {
    /// [`Code::SnapshotTruncated`], [`Code::SnapshotVersion`] or [`Code::SnapshotCrc`].
    pub code: Code,
    /// The byte of the file that shows it.
    pub position: usize,
    /// One sentence for the operator.
    pub detail: String,
}

impl fmt::Display for SnapshotFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "producer snapshot: {}", self.detail)
    }
}

impl std::error::Error for SnapshotFault {}

impl From<SnapshotFault> for Error {
    fn from(fault: SnapshotFault) -> Self {
        let position = u64::try_from(fault.position).unwrap_or(u64::MAX);
        Error::corrupt(fault.to_string()).at_position(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "000148674bc700000000";
    const TWO: &str = "0001fedf4e5000000002\
        000000000000000100020000000100000000000000020000\
        0003ffffffffffffffff000000030000000000000064\
        000000000000000b000cffffffffffffffffffffffff0000\
        0000000000000001e2400000000dffffffffffffffff";

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect()
    }

    fn two() -> [ProducerEntry; 2] {
        [
            ProducerEntry {
                producer_id: 1,
                producer_epoch: 2,
                last_sequence: 1,
                last_offset: 2,
                offset_delta: 3,
                last_timestamp: -1,
                coordinator_epoch: 3,
                txn_first_offset: 100,
            },
            ProducerEntry {
                producer_epoch: 12,
                last_timestamp: 123_456,
                coordinator_epoch: 13,
                ..ProducerEntry::empty(11)
            },
        ]
    }

    fn code(bytes: &[u8]) -> Code {
        Snapshot::read(bytes).unwrap_err().code
    }

    #[test]
    fn the_golden_snapshots_are_written_and_read() {
        // spec: records 10; behaviours PS-072
        assert_eq!(write_snapshot(&[]), hex(EMPTY));
        assert_eq!(write_snapshot(&two()), hex(TWO));
        assert!(Snapshot::read(&hex(EMPTY)).unwrap().is_empty());
        let bytes = hex(TWO);
        let snapshot = Snapshot::read(&bytes).unwrap();
        assert_eq!(snapshot.len(), 2);
        assert_eq!(snapshot.iter().collect::<Vec<_>>(), two());
    }

    #[test]
    fn a_cut_or_cleared_file_is_refused() {
        // spec: behaviours PS-052
        let bytes = hex(TWO);
        assert_eq!(code(&[]), Code::SnapshotTruncated);
        assert_eq!(code(&bytes[..bytes.len() / 2]), Code::SnapshotTruncated);
        let mut cleared = bytes.clone();
        cleared[..37].fill(0);
        assert_eq!(code(&cleared), Code::SnapshotVersion);
    }

    #[test]
    fn every_prefix_is_truncated_and_says_where_it_ends() {
        let bytes = hex(TWO);
        for end in 0..bytes.len() {
            let fault = Snapshot::read(&bytes[..end]).unwrap_err();
            assert_eq!((fault.code, fault.position), (Code::SnapshotTruncated, end), "{fault}");
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let bytes = hex(TWO);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Snapshot::read(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn an_unknown_version_is_told_from_a_wrong_checksum() {
        let mut bytes = hex(TWO);
        bytes[1] = 2;
        let fault = Snapshot::read(&bytes).unwrap_err();
        assert_eq!((fault.code, fault.position), (Code::SnapshotVersion, 0));
        assert_eq!(fault.detail, "version 2 is unknown, only 1 is known");
        let mut bytes = hex(TWO);
        bytes[20] ^= 1;
        let fault = Snapshot::read(&bytes).unwrap_err();
        assert_eq!((fault.code, fault.position), (Code::SnapshotCrc, 2));
        let error = Error::from(fault);
        assert_eq!(error.position(), Some(2));
    }

    #[test]
    fn the_tail_of_a_longer_file_makes_it_corrupt() {
        let mut bytes = hex(EMPTY);
        bytes.extend_from_slice(&[0; 46]);
        assert_eq!(code(&bytes), Code::SnapshotCrc);
    }

    #[test]
    fn a_count_that_cannot_be_is_refused_even_with_a_right_checksum() {
        for (count, expected) in [(-1_i32, COUNT_AT), (3, 102), (i32::MAX, 102)] {
            let mut bytes = hex(TWO);
            bytes[6..10].copy_from_slice(&count.to_be_bytes());
            let crc = crc32c(&bytes[6..]);
            bytes[2..6].copy_from_slice(&crc.to_be_bytes());
            let fault = Snapshot::read(&bytes).unwrap_err();
            assert_eq!((fault.code, fault.position), (Code::SnapshotTruncated, expected));
        }
    }

    #[test]
    fn without_a_last_offset_there_is_no_batch() {
        let odd = ProducerEntry {
            last_sequence: 7,
            offset_delta: 3,
            txn_first_offset: -9,
            ..ProducerEntry::empty(5)
        };
        let bytes = write_snapshot(&[odd]);
        let read = Snapshot::read(&bytes).unwrap().iter().next().unwrap();
        assert_eq!(read, ProducerEntry::empty(5));
    }
}
