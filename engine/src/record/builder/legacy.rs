//! How were messages of magic 0 and 1 written? (The bytes are drawn in [`crate::record::legacy`].)

use crate::error::{Error, Kind, Result};
use crate::io::checksum::crc32;
use crate::record::batch::{ATTR_LOG_APPEND_TIME, LOG_OVERHEAD};
use crate::record::codec::{Codec, Compression, Compressor};
use crate::record::legacy::LegacyMessage;
use crate::units::NO_TIMESTAMP;

/// Appends one entry: offset, size, checksum and the message, exactly as its fields say. The
/// timestamp is left out for magic 0.
///
/// # Errors
///
/// A magic other than 0 and 1; more than 2^31 - 1 bytes.
pub fn write_legacy_message(message: &LegacyMessage<'_>, out: &mut Vec<u8>) -> Result<()> {
    if !(0..=1).contains(&message.magic) {
        return Err(Error::new(Kind::InvalidArgument, "an old message has magic 0 or 1"));
    }
    let key_size = field_size(message.key)?;
    let value_size = field_size(message.value)?;
    let start = out.len();
    out.extend_from_slice(&message.offset.to_be_bytes());
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&message.magic.to_be_bytes());
    out.push(message.attributes);
    if message.magic == 1 {
        out.extend_from_slice(&message.timestamp_ms.to_be_bytes());
    }
    for (size, field) in [(key_size, message.key), (value_size, message.value)] {
        out.extend_from_slice(&size.to_be_bytes());
        out.extend_from_slice(field.unwrap_or_default());
    }
    let entry = out.get_mut(start..).unwrap_or_default();
    let size = to_i32(entry.len() - LOG_OVERHEAD).inspect_err(|_| out.truncate(start))?;
    let entry = out.get_mut(start..).unwrap_or_default();
    let crc = crc32(entry.get(16..).unwrap_or_default());
    let is_written = crate::bytes::put(entry, 8, &size.to_be_bytes())
        && crate::bytes::put(entry, 12, &crc.to_be_bytes());
    debug_assert!(is_written);
    Ok(())
}

/// Collects messages of magic 0 or 1 and writes them one by one, or as one compressed wrapper.
pub struct LegacyBuilder {
    magic: i8,
    compression: Compression,
    log_append_time_ms: Option<i64>,
    base_offset: i64,
    entries: Vec<u8>,
    last: Option<i64>,
    max_timestamp: i64,
}

impl LegacyBuilder {
    /// A set without messages. Relative offsets of a wrapper of magic 1 count from `base_offset`.
    ///
    /// # Errors
    ///
    /// A magic other than 0 and 1; a log append time in magic 0, which has no timestamps; zstd.
    pub fn new(
        magic: i8,
        compression: Compression,
        log_append_time_ms: Option<i64>,
        base_offset: i64,
    ) -> Result<Self> {
        let why = match magic {
            0 if log_append_time_ms.is_some() => "magic 0 has no timestamps",
            0 if compression.codec() == Codec::Zstd => {
                "ZStandard compression is not supported for magic 0"
            }
            1 if compression.codec() == Codec::Zstd => {
                "ZStandard compression is not supported for magic 1"
            }
            0 | 1 => {
                return Ok(LegacyBuilder {
                    magic,
                    compression,
                    log_append_time_ms,
                    base_offset,
                    entries: Vec::new(),
                    last: None,
                    max_timestamp: NO_TIMESTAMP,
                });
            }
            _ => "an old message has magic 0 or 1",
        };
        Err(Error::new(Kind::InvalidArgument, why))
    }

    /// Appends a message at this absolute offset.
    ///
    /// # Errors
    ///
    /// An offset that does not lie above the last one, or below the base offset.
    pub fn append(
        &mut self,
        offset: i64,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> Result<()> {
        if offset < self.base_offset || self.last.is_some_and(|last| offset <= last) {
            let why = format!("offset {offset} does not lie above the last one");
            return Err(Error::new(Kind::InvalidArgument, why));
        }
        // spec: records 2
        let is_relative = self.magic == 1 && self.compression.codec() != Codec::None;
        let message = LegacyMessage {
            offset: if is_relative { offset - self.base_offset } else { offset },
            magic: self.magic,
            attributes: self.timestamp_attribute(),
            timestamp_ms: self.log_append_time_ms.unwrap_or(timestamp_ms),
            key,
            value,
        };
        write_legacy_message(&message, &mut self.entries)?;
        self.last = Some(offset);
        self.max_timestamp = self.max_timestamp.max(timestamp_ms);
        Ok(())
    }

    /// Appends the entries, or the wrapper that holds them; nothing when there are none.
    ///
    /// # Errors
    ///
    /// More than 2^31 - 1 bytes.
    pub fn write_to(&self, compressor: &mut Compressor, out: &mut Vec<u8>) -> Result<()> {
        let Some(last_offset) = self.last else { return Ok(()) };
        if self.compression.codec() == Codec::None {
            out.extend_from_slice(&self.entries);
            return Ok(());
        }
        let mut value = Vec::new();
        compressor.compress(self.compression, self.magic, &self.entries, &mut value)?;
        let wrapper = LegacyMessage {
            offset: last_offset,
            magic: self.magic,
            attributes: self.timestamp_attribute() | self.compression.codec().id(),
            timestamp_ms: self.log_append_time_ms.unwrap_or(self.max_timestamp),
            key: None,
            value: Some(&value),
        };
        write_legacy_message(&wrapper, out)
    }

    fn timestamp_attribute(&self) -> u8 {
        if self.log_append_time_ms.is_some() { ATTR_LOG_APPEND_TIME } else { 0 }
    }
}

fn field_size(field: Option<&[u8]>) -> Result<i32> {
    field.map_or(Ok(-1), |bytes| to_i32(bytes.len()))
}

fn to_i32(size: usize) -> Result<i32> {
    i32::try_from(size)
        .map_err(|_| Error::new(Kind::Limit, "a message has more than 2^31 - 1 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch::BatchHeader;
    use crate::record::codec::Decompressor;
    use crate::record::legacy::{compute_legacy_crc, parse_message, unwrap};

    fn build(magic: i8, codec: Codec, log_append_time: Option<i64>, base_offset: i64) -> Vec<u8> {
        let mut builder =
            LegacyBuilder::new(magic, codec.into(), log_append_time, base_offset).unwrap();
        builder.append(base_offset, 283_843, Some(b"key1"), Some(b"value1")).unwrap();
        builder.append(base_offset + 1, 1234, Some(b"key2"), None).unwrap();
        let mut out = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut out).unwrap();
        out
    }

    // spec: records 10; behaviours LG-001
    #[test]
    fn single_messages_have_kafkas_checksums() {
        for (magic, crc, size) in [(0, 1_978_725_405, 36), (1, 109_425_508, 44)] {
            let out = build(magic, Codec::None, None, 0);
            let first = BatchHeader::parse_legacy(&out).unwrap();
            assert_eq!((first.crc, first.size_bytes), (crc, size));
        }
    }

    #[test]
    fn kafkas_lz4_wrappers_have_their_checksums_and_hold_our_entries() {
        // spec: behaviours LG-002. No two libraries compress alike: the payloads are those of
        // Kafka's, what is within them and around them is ours.
        let v0 = concat!(
            "04224d1860401a3900000016000100511875f0f41d0f00e0046b6579310000000676616c75650a000002",
            "0011012400301bc3a60d00012400b0320000000676616c75653200000000"
        );
        let v1 = concat!(
            "04224d18604082470000001600010062200685b364011000f0050454c3000000046b6579310000000676",
            "616c75650a0000020000230050200509300509000002002304d22c00b0320000000676616c7565320000",
            "0000"
        );
        for (magic, payload, crc, first_crc) in
            [(0, v0, 66_944_826, 1_978_725_405), (1, v1, 1_407_303_399, 109_425_508)]
        {
            let payload = bytes_of(payload);
            let message = LegacyMessage {
                offset: 1,
                magic,
                attributes: Codec::Lz4.id(),
                timestamp_ms: 283_843,
                key: None,
                value: Some(&payload),
            };
            let mut wrapper = Vec::new();
            write_legacy_message(&message, &mut wrapper).unwrap();
            assert_eq!(BatchHeader::parse_legacy(&wrapper).unwrap().crc, crc);

            let mut builder = LegacyBuilder::new(magic, Codec::None.into(), None, 0).unwrap();
            builder.append(0, 283_843, Some(b"key1"), Some(b"value1")).unwrap();
            builder.append(1, 1234, Some(b"key2"), Some(b"value2")).unwrap();
            let mut entries = Vec::new();
            builder.write_to(&mut Compressor::new(), &mut entries).unwrap();
            let mut decompressor = Decompressor::new();
            let opened = decompressor.decompress(Codec::Lz4, magic, &payload, 1000).unwrap();
            assert_eq!(opened, entries);
            assert_eq!(BatchHeader::parse_legacy(&entries).unwrap().crc, first_crc);
        }
    }

    fn bytes_of(hex: &str) -> Vec<u8> {
        let digits = (0..hex.len()).step_by(2);
        digits.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn wrappers_read_back_as_they_were_made() {
        for (magic, codec) in [
            (0, Codec::Gzip),
            (0, Codec::Snappy),
            (0, Codec::Lz4),
            (1, Codec::Gzip),
            (1, Codec::Snappy),
            (1, Codec::Lz4),
        ] {
            let out = build(magic, codec, None, 100);
            let wrapper = BatchHeader::parse_legacy(&out).unwrap();
            assert_eq!(wrapper.base_offset, 101);
            assert_eq!(wrapper.crc, compute_legacy_crc(&out));
            assert_eq!(wrapper.max_timestamp, if magic == 0 { -1 } else { 283_843 });
            let value = parse_message(&out).unwrap().value.unwrap();
            let mut decompressor = Decompressor::new();
            let payload = decompressor.decompress(codec, magic, value, usize::MAX).unwrap();
            let messages = unwrap(&wrapper, payload).unwrap();
            let read: Vec<_> = messages.iter().map(|m| (m.offset, m.key, m.value)).collect();
            assert_eq!(
                read,
                [(100, Some(&b"key1"[..]), Some(&b"value1"[..])), (101, Some(&b"key2"[..]), None)]
            );
        }
    }

    #[test]
    fn log_append_time_is_written_into_every_message() {
        let out = build(1, Codec::None, Some(77), 0);
        let message = parse_message(&out[..44]).unwrap();
        assert_eq!((message.attributes, message.timestamp_ms), (0x08, 77));
        let wrapper = build(1, Codec::Gzip, Some(77), 0);
        let header = BatchHeader::parse_legacy(&wrapper).unwrap();
        assert_eq!((header.attributes, header.max_timestamp), (0x09, 77));
    }

    #[test]
    fn what_the_old_formats_cannot_say_is_refused() {
        let none = Compression::NONE;
        assert!(LegacyBuilder::new(2, none, None, 0).is_err());
        assert!(LegacyBuilder::new(-1, none, None, 0).is_err());
        assert!(LegacyBuilder::new(0, none, Some(5), 0).is_err());
        for magic in [0, 1] {
            // spec: behaviours LG-013
            let error = LegacyBuilder::new(magic, Codec::Zstd.into(), None, 0).err().unwrap();
            let why = format!("ZStandard compression is not supported for magic {magic}");
            assert_eq!((error.kind(), error.message()), (Kind::InvalidArgument, &*why));
        }
        let mut builder = LegacyBuilder::new(1, none, None, 5).unwrap();
        assert!(builder.append(4, 0, None, None).is_err());
        builder.append(5, 0, None, None).unwrap();
        assert!(builder.append(5, 0, None, None).is_err());
    }
}
