//! What is in the old message formats, magic 0 and 1?
//!
//! ```text
//! i64 offset | i32 size | u32 crc | i8 magic | i8 attributes | (magic 1: i64 timestamp)
//! | i32 key size, key | i32 value size, value            sizes of -1: null
//! ```
//!
//! The checksum (CRC-32) covers everything behind it. A compressed set is one entry, the wrapper,
//! whose value holds the entries. The wrapper's offset is that of its last inner message; inner
//! offsets are absolute in magic 0 and relative in magic 1.

use crate::bytes;
use crate::io::checksum;
use crate::record::batch::{BatchHeader, LOG_OVERHEAD, MIN_SIZE_FIELD, TimestampType};
use crate::record::records::RecordError;

/// Where the checksum of an entry begins to count.
pub const LEGACY_CRC_START: usize = 16;
/// The smallest whole entry of magic 0.
const MIN_ENTRY_V0: usize = 26;
/// The smallest whole entry of magic 1.
const MIN_ENTRY_V1: usize = 34;

/// One message of an old format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegacyMessage<'a> {
    /// Offset as stored: absolute, or relative within a wrapper of magic 1.
    pub offset: i64,
    /// 0 or 1.
    pub magic: i8,
    /// Codec in bits 0 to 2, timestamp type in bit 3.
    pub attributes: u8,
    /// Timestamp, -1 in magic 0.
    pub timestamp_ms: i64,
    /// The key; `None` is null.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is null.
    pub value: Option<&'a [u8]>,
}

/// The checksum of a whole entry as its bytes are.
#[must_use]
pub fn compute_legacy_crc(entry: &[u8]) -> u32 {
    checksum::crc32(entry.get(LEGACY_CRC_START..).unwrap_or_default())
}

/// The fewest bytes that an entry of this magic can have.
#[must_use]
pub fn min_entry_size(magic: i8) -> usize {
    if magic == 0 { MIN_ENTRY_V0 } else { MIN_ENTRY_V1 }
}

/// Reads one whole entry whose checksum is known to be right. What stands behind its value nobody
/// reads: see [`is_exact`].
pub fn parse_message(entry: &[u8]) -> Result<LegacyMessage<'_>, RecordError> {
    let short = RecordError::structure("a message ends within its fields");
    let header = BatchHeader::parse_legacy(entry).ok_or(short)?;
    let fields = entry.get(if header.magic == 0 { 18 } else { 26 }..).ok_or(short)?;
    let (key, rest) = read_field(fields)?;
    let (value, _) = read_field(rest)?;
    Ok(LegacyMessage {
        offset: header.base_offset,
        magic: header.magic,
        attributes: header.attributes,
        timestamp_ms: header.max_timestamp,
        key,
        value,
    })
}

/// Whether nothing stands behind the value of an entry, which was read as this message.
#[must_use]
pub fn is_exact(entry: &[u8], message: &LegacyMessage<'_>) -> bool {
    let size = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len);
    min_entry_size(message.magic) + size(message.key) + size(message.value) == entry.len()
}

fn read_field(bytes: &[u8]) -> Result<(Option<&[u8]>, &[u8]), RecordError> {
    let (size, rest) = bytes
        .split_first_chunk::<4>()
        .ok_or(RecordError::structure("a message ends within its fields"))?;
    match usize::try_from(i32::from_be_bytes(*size)) {
        Err(_) => Ok((None, rest)),
        Ok(size) => match rest.split_at_checked(size) {
            Some((field, rest)) => Ok((Some(field), rest)),
            None => Err(RecordError::structure("a key or value is longer than the message")),
        },
    }
}

/// The messages within a wrapper, with absolute offsets and final timestamps, in order.
///
/// `payload` is the wrapper's value, decompressed. The inner entries are read once here to learn
/// the last inner offset, from which the base of relative offsets follows.
pub fn unwrap<'a>(
    wrapper: &BatchHeader,
    payload: &'a [u8],
) -> Result<Vec<LegacyMessage<'a>>, RecordError> {
    let mut messages = Vec::new();
    let mut rest = payload;
    // A truncated tail ends the iteration silently: spec records 2.
    while rest.len() >= LOG_OVERHEAD {
        let size = bytes::get_i32(rest, 8).unwrap_or_default();
        if size < MIN_SIZE_FIELD {
            return Err(RecordError::structure("an inner message has too small a size"));
        }
        let whole = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(LOG_OVERHEAD);
        let Some((entry, behind)) = rest.split_at_checked(whole) else { break };
        rest = behind;
        let message = parse_message(entry)?;
        if !(0..=1).contains(&message.magic) {
            return Err(RecordError::structure("an inner message has another magic"));
        }
        if message.attributes & 0x07 != 0 {
            return Err(RecordError::structure("an inner message is compressed again"));
        }
        messages.push(message);
    }
    let Some(last) = messages.last() else {
        return Err(RecordError::count("a compressed message holds no messages"));
    };
    if wrapper.magic == 1 {
        let base = relative_base(wrapper.base_offset, last.offset)?;
        let append_time = (wrapper.timestamp_type() == TimestampType::LogAppendTime)
            .then_some(wrapper.max_timestamp);
        for message in &mut messages {
            message.offset = base.wrapping_add(message.offset);
            // One of magic 0 has no timestamp, within a wrapper of magic 1, too.
            if message.magic == 1 {
                message.timestamp_ms = append_time.unwrap_or(message.timestamp_ms);
            }
        }
    }
    Ok(messages)
}

/// What the relative offsets of a wrapper of magic 1 count from.
pub(in crate::record) fn relative_base(
    wrapper_offset: i64,
    last_inner: i64,
) -> Result<i64, RecordError> {
    // Kafka quirk: a wrapper at offset 0 comes from a client whose inner offsets are taken as they
    // are.
    if wrapper_offset == 0 {
        return Ok(0);
    }
    if wrapper_offset < last_inner {
        return Err(RecordError::structure("the offset of a wrapper is below its last message's"));
    }
    Ok(wrapper_offset.wrapping_sub(last_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(offset: i64, magic: u8, attributes: u8, timestamp: i64, value: &[u8]) -> Vec<u8> {
        let mut message = vec![magic, attributes];
        if magic == 1 {
            message.extend(timestamp.to_be_bytes());
        }
        message.extend((-1_i32).to_be_bytes());
        message.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        message.extend(value);
        let mut out = offset.to_be_bytes().to_vec();
        out.extend(u32::try_from(message.len() + 4).unwrap().to_be_bytes());
        out.extend(checksum::crc32(&message).to_be_bytes());
        out.extend(message);
        out
    }

    #[test]
    fn relative_offsets_of_a_wrapper_count_up_to_its_own() {
        let inner: Vec<u8> = [0, 4, 9].iter().flat_map(|&o| entry(o, 1, 0, 5, b"x")).collect();
        let wrapper = BatchHeader::parse_legacy(&entry(109, 1, 1, 7, b"")).unwrap();
        let messages = unwrap(&wrapper, &inner).unwrap();
        let offsets: Vec<i64> = messages.iter().map(|m| m.offset).collect();
        assert_eq!(offsets, [100, 104, 109]);
        assert_eq!(messages[0].timestamp_ms, 5);
    }

    #[test]
    fn log_append_time_of_a_wrapper_covers_its_messages() {
        let inner = entry(0, 1, 0, 5, b"x");
        let wrapper = BatchHeader::parse_legacy(&entry(3, 1, 0x09, 7, b"")).unwrap();
        assert_eq!(unwrap(&wrapper, &inner).unwrap()[0].timestamp_ms, 7);
        let inner = [entry(0, 0, 0, 5, b"x"), entry(1, 1, 0, 5, b"x")].concat();
        let times: Vec<i64> =
            unwrap(&wrapper, &inner).unwrap().iter().map(|message| message.timestamp_ms).collect();
        assert_eq!(times, [-1, 7]);
    }

    #[test]
    fn bytes_behind_the_value_are_passed_over() {
        for magic in [0, 1] {
            let exact = entry(3, magic, 0, 5, b"value");
            let read = parse_message(&exact).unwrap();
            let mut longer = [&exact[..], &[1, 2, 3, 4]].concat();
            longer[11] += 4;
            assert_eq!(parse_message(&longer), Ok(read));
            assert!(is_exact(&exact, &read) && !is_exact(&longer, &read));
            assert!(parse_message(&exact[..exact.len() - 1]).is_err());
        }
    }

    #[test]
    fn wrappers_that_lie_are_refused() {
        let wrapper = BatchHeader::parse_legacy(&entry(3, 1, 1, 7, b"")).unwrap();
        assert!(unwrap(&wrapper, &[]).is_err(), "no inner message");
        assert!(
            unwrap(&wrapper, &entry(4, 1, 0, 5, b"x")).is_err(),
            "inner offset above the wrapper's"
        );
        assert!(unwrap(&wrapper, &entry(0, 1, 1, 5, b"x")).is_err(), "compressed twice");
        let mut small = entry(0, 1, 0, 5, b"x");
        small[8..12].copy_from_slice(&13_i32.to_be_bytes());
        assert!(unwrap(&wrapper, &small).is_err(), "size below a message's");
    }
}
