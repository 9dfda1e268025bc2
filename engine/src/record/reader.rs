//! Which records does a batch hold, whatever its magic and codec?
//!
//! [`BatchReader`] gives every record with its bytes, of the old formats too, in memory that it
//! keeps. It takes what Kafka's reader takes; [`check`](super::check) is stricter and needs less
//! memory.

use std::ops::ControlFlow;

use super::batch::{BatchHeader, HEADER_SIZE};
use super::check::BatchFault;
use super::codec::{Codec, CodecError, Decompressor};
use super::legacy::{LegacyMessage, parse_message, unwrap};
use super::records::{Headers, Record, RecordError, Records};
use crate::problem::Code;
use crate::units::NO_SEQUENCE;

/// Reads the records of batches, one after the other.
///
/// ```
/// use std::ops::ControlFlow;
/// use siltstone::record::builder::{BatchBuilder, BatchOptions};
/// use siltstone::record::codec::{Codec, Compressor};
/// use siltstone::record::{BatchHeader, BatchReader};
///
/// let options = BatchOptions { compression: Codec::Gzip.into(), ..Default::default() };
/// let mut builder = BatchBuilder::new(options)?;
/// builder.append(7, Some(b"key"), Some(b"value"))?;
/// let mut batch = Vec::new();
/// builder.write_to(&mut Compressor::new(), &mut batch)?;
///
/// let header = BatchHeader::parse(&batch).unwrap();
/// let mut keys = Vec::new();
/// BatchReader::new(1 << 20)
///     .read(&header, &batch, &mut |record| {
///         keys.push(record.key.map(<[u8]>::to_vec));
///         ControlFlow::Continue(())
///     })
///     .unwrap();
/// assert_eq!(keys, [Some(b"key".to_vec())]);
/// # Ok::<(), siltstone::Error>(())
/// ```
pub struct BatchReader {
    decompressor: Decompressor,
    limit_bytes: usize,
}

impl std::fmt::Debug for BatchReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchReader")
            .field("limit_bytes", &self.limit_bytes)
            .finish_non_exhaustive()
    }
}

impl BatchReader {
    /// A reader that opens no batch to more than `limit_bytes`, which bounds its memory.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        BatchReader { decompressor: Decompressor::new(), limit_bytes }
    }

    /// Gives the records of a batch whose frame and checksum are right, in order, up to a `Break`.
    /// `batch` is all of its bytes.
    ///
    /// # Errors
    /// The first fault; the records in front of it have been given.
    pub fn read(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        see: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), BatchFault> {
        if u64::try_from(batch.len()).unwrap_or(u64::MAX) < u64::from(header.size_bytes) {
            let detail =
                format!("a batch of {} bytes is too large to be opened", header.size_bytes);
            return Err(BatchFault { code: Code::Codec, detail });
        }
        let codec = Codec::from_id(header.codec_id())
            .ok_or_else(|| CodecError::unknown(header.codec_id()))?;
        if header.magic < 2 {
            return self.read_messages(header, codec, batch, see);
        }
        let payload = batch.get(HEADER_SIZE..).unwrap_or_default();
        // spec: records 1.2. Without records the payload is not looked at.
        if header.count == 0 {
            return Ok(());
        }
        let opened = match codec {
            Codec::None => payload,
            _ => self.decompressor.decompress(codec, header.magic, payload, self.limit_bytes)?,
        };
        for record in Records::new(header, opened) {
            if see(&record?).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn read_messages(
        &mut self,
        header: &BatchHeader,
        codec: Codec,
        entry: &[u8],
        see: &mut dyn FnMut(&Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), BatchFault> {
        let message = parse_message(entry)?;
        if codec == Codec::None {
            let _ = see(&record_of(&message));
            return Ok(());
        }
        let value =
            message.value.ok_or(RecordError::structure("a compressed message has no value"))?;
        let opened = self.decompressor.decompress(codec, header.magic, value, self.limit_bytes)?;
        for inner in &unwrap(header, opened)? {
            if see(&record_of(inner)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

pub(super) fn record_of<'a>(message: &LegacyMessage<'a>) -> Record<'a> {
    Record {
        offset: message.offset,
        timestamp_ms: message.timestamp_ms,
        sequence: NO_SEQUENCE,
        key: message.key,
        value: message.value,
        headers: Headers::EMPTY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::builder::{
        BatchBuilder, BatchOptions, LegacyBuilder, write_empty_batch, write_legacy_message,
    };
    use crate::record::codec::Compressor;

    fn batch(codec: Codec, count: i64) -> Vec<u8> {
        let options =
            BatchOptions { base_offset: 5, compression: codec.into(), ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options).unwrap();
        for number in 0..count {
            builder.append(number, None, Some(&[b'x'; 100])).unwrap();
        }
        let mut batch = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut batch).unwrap();
        batch
    }

    fn offsets(batch: &[u8], limit_bytes: usize) -> (Vec<i64>, Result<(), BatchFault>) {
        let mut offsets = Vec::new();
        let header = BatchHeader::parse(batch).unwrap();
        let outcome = BatchReader::new(limit_bytes).read(&header, batch, &mut |record| {
            offsets.push(record.offset);
            ControlFlow::Continue(())
        });
        (offsets, outcome)
    }

    #[test]
    fn every_codec_gives_the_same_records() {
        for codec in Codec::ALL {
            assert_eq!(offsets(&batch(codec, 3), 1 << 20), (vec![5, 6, 7], Ok(())), "{codec}");
        }
    }

    /// A wrapper at this offset whose messages are at 0, 1 and 2.
    fn wrapper(magic: i8, codec: Codec, offset: i64) -> Vec<u8> {
        let mut builder = LegacyBuilder::new(magic, codec.into(), None, 0).unwrap();
        (0..3).for_each(|at| builder.append(at, 7, None, Some(b"v")).unwrap());
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
        // The checksum does not cover it.
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        bytes
    }

    fn old_offsets(entry: &[u8]) -> (Vec<i64>, Result<(), BatchFault>) {
        let mut offsets = Vec::new();
        let header = BatchHeader::parse_legacy(entry).unwrap();
        let outcome = BatchReader::new(1 << 20).read(&header, entry, &mut |record| {
            offsets.push(record.offset);
            ControlFlow::Continue(())
        });
        (offsets, outcome)
    }

    #[test]
    fn a_wrapper_at_offset_0_has_its_messages_where_they_say() {
        // spec: behaviours LG-006, LG-007
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4] {
            for magic in [0, 1] {
                assert_eq!(old_offsets(&wrapper(magic, codec, 0)), (vec![0, 1, 2], Ok(())));
            }
            assert_eq!(old_offsets(&wrapper(1, codec, 9)), (vec![7, 8, 9], Ok(())));
            let (seen, outcome) = old_offsets(&wrapper(1, codec, 1));
            assert_eq!((seen, outcome.unwrap_err().code), (vec![], Code::Record), "{codec}");
        }
    }

    #[test]
    fn a_wrapper_that_holds_nothing_is_a_fault() {
        // spec: behaviours LG-014, LG-015
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4] {
            for magic in [0, 1] {
                let mut nothing = Vec::new();
                Compressor::new().compress(codec.into(), magic, b"", &mut nothing).unwrap();
                for (value, code) in [(None, Code::Record), (Some(&nothing[..]), Code::RecordCount)]
                {
                    let (offset, attributes, timestamp_ms, key) = (0, codec.id(), 7, None);
                    let message =
                        LegacyMessage { offset, magic, attributes, timestamp_ms, key, value };
                    let mut bytes = Vec::new();
                    write_legacy_message(&message, &mut bytes).unwrap();
                    let (seen, outcome) = old_offsets(&bytes);
                    assert_eq!((seen, outcome.unwrap_err().code), (vec![], code), "{codec}");
                }
            }
        }
    }

    #[test]
    fn a_batch_without_records_is_not_opened() {
        // spec: behaviours CO-018
        for codec in Codec::ALL {
            let mut payload = Vec::new();
            Compressor::new().compress(codec.into(), 2, b"", &mut payload).unwrap();
            let mut opener = Decompressor::new();
            assert_eq!(opener.decompress(codec, 2, &payload, 100).unwrap(), b"", "{codec}");
            let mut empty = Vec::new();
            write_empty_batch(&BatchOptions::default(), 4, 7, &mut empty).unwrap();
            empty[22] = codec.id();
            for payload in [&payload[..], b"that is no payload"] {
                let bytes = [&empty[..], payload].concat();
                assert_eq!(offsets(&bytes, 100), (vec![], Ok(())), "{codec}");
            }
        }
    }

    #[test]
    fn a_batch_that_opens_to_more_than_the_limit_is_a_fault() {
        let (seen, outcome) = offsets(&batch(Codec::Zstd, 100), 1000);
        assert!(seen.is_empty());
        assert_eq!(outcome.unwrap_err().code, Code::Codec);
    }

    #[test]
    fn records_in_front_of_a_fault_are_given() {
        let mut bytes = batch(Codec::None, 3);
        let size = bytes.len();
        bytes[size - 1] = 7;
        let (seen, outcome) = offsets(&bytes, 1 << 20);
        assert_eq!(seen, [5, 6]);
        assert_eq!(outcome.unwrap_err().code, Code::Record);
        let short = offsets(&bytes[..size - 1], 1 << 20);
        assert!(short.0.is_empty() && short.1.is_err());
    }

    #[test]
    fn a_break_ends_the_batch_without_a_fault() {
        let bytes = batch(Codec::Lz4, 3);
        let header = BatchHeader::parse(&bytes).unwrap();
        let mut count = 0;
        let outcome = BatchReader::new(1 << 20).read(&header, &bytes, &mut |_| {
            count += 1;
            ControlFlow::Break(())
        });
        assert_eq!((count, outcome), (1, Ok(())));
    }
}
