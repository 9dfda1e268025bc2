//! The records whose key tells their type: `__consumer_offsets`, `__transaction_state` and
//! `__share_group_state`.

use std::sync::LazyLock;

use crate::bytes;
use crate::error::{Error, Result};

use super::decode::decode;
use super::layout::Layouts;
use super::{Message, Payload, layouts};

static OFFSETS: LazyLock<Topic> =
    LazyLock::new(|| Topic::parse(layouts::offsets::KEYS, layouts::offsets::VALUES));
static TRANSACTIONS: LazyLock<Topic> =
    LazyLock::new(|| Topic::parse(layouts::transactions::KEYS, layouts::transactions::VALUES));
static SHARE: LazyLock<Topic> =
    LazyLock::new(|| Topic::parse(layouts::share::KEYS, layouts::share::VALUES));

/// A record with both sides decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Keyed<'a> {
    /// What it is about.
    pub key: Payload<'a>,
    /// What is said of it; `Null` for a tombstone. Of an unknown type as the key is.
    pub value: Payload<'a>,
}

/// A record of `__consumer_offsets`: committed offsets and groups of every kind.
///
/// `Corrupt` when key or value is not what its layout says; bytes left over are ignored, as Kafka
/// does.
pub fn decode_offsets<'a>(key: &'a [u8], value: Option<&'a [u8]>) -> Result<Keyed<'a>> {
    OFFSETS.decode(key, value)
}

/// A record of `__transaction_state`; errors as for [`decode_offsets`].
pub fn decode_transaction_state<'a>(key: &'a [u8], value: Option<&'a [u8]>) -> Result<Keyed<'a>> {
    TRANSACTIONS.decode(key, value)
}

/// A record of `__share_group_state`; errors as for [`decode_offsets`].
pub fn decode_share_state<'a>(key: &'a [u8], value: Option<&'a [u8]>) -> Result<Keyed<'a>> {
    SHARE.decode(key, value)
}

struct Topic {
    keys: Layouts,
    values: Layouts,
}

impl Topic {
    fn parse(keys: &'static str, values: &'static str) -> Self {
        Topic { keys: Layouts::parse(keys), values: Layouts::parse(values) }
    }

    fn decode<'a>(&self, key: &'a [u8], value: Option<&'a [u8]>) -> Result<Keyed<'a>> {
        let (claimed, rest) = prefix(key, "key", "record type")?;
        let id = u32::from(claimed);
        let key = match self.keys.get(id) {
            // The key of every type has version 0 only.
            Some(layout) => {
                let (data, _) = decode(layout, 0, rest)?;
                Payload::Message(Message { name: layout.name, id, version: 0, data })
            }
            None => Payload::UnknownType(id),
        };
        let value = match value {
            Some(value) => self.decode_value(id, value)?,
            None => Payload::Null,
        };
        Ok(Keyed { key, value })
    }

    fn decode_value<'a>(&self, id: u32, value: &'a [u8]) -> Result<Payload<'a>> {
        let Some(layout) = self.values.get(id) else { return Ok(Payload::UnknownType(id)) };
        let (claimed, rest) = prefix(value, "value", "version")?;
        let version = i16::try_from(claimed).ok().filter(|&version| layout.has_version(version));
        let Some(version) = version else {
            let version = u32::from(claimed);
            return Ok(Payload::UnknownVersion { name: layout.name, id, version });
        };
        let (data, _) = decode(layout, version, rest)?;
        Ok(Payload::Message(Message { name: layout.name, id, version, data }))
    }
}

/// The 16-bit number before a message, and the message.
fn prefix<'a>(bytes: &'a [u8], side: &str, what: &str) -> Result<(u16, &'a [u8])> {
    match (bytes::get_u16(bytes, 0), bytes.get(2..)) {
        (Some(number), Some(rest)) => Ok((number, rest)),
        _ => Err(Error::corrupt(format!("{side} of {} bytes has no {what}", bytes.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"\0\x01\0\x01g\0\x01t\0\0\0\x03";

    #[test]
    fn a_committed_offset_is_read_in_each_encoding() {
        let plain = b"\0\x03\0\0\0\0\0\0\0\x14\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\x09";
        let flexible = b"\0\x04\0\0\0\0\0\0\0\x14\xff\xff\xff\xff\x01\0\0\0\0\0\0\0\x09\0";
        for value in [&plain[..], flexible] {
            let keyed = decode_offsets(KEY, Some(value)).unwrap();
            assert_eq!(keyed.key.message().unwrap().data.int("partition"), Some(3));
            let data = &keyed.value.message().unwrap().data;
            assert_eq!((data.int("offset"), data.int("commitTimestamp")), (Some(20), Some(9)));
            assert_eq!(data.field("topicId"), None);
        }
    }

    #[test]
    fn a_null_value_is_a_tombstone() {
        assert_eq!(decode_offsets(KEY, None).unwrap().value, Payload::Null);
    }

    #[test]
    fn bytes_behind_key_and_value_are_ignored() {
        let key = [KEY, b"more"].concat();
        let value = b"\0\x03\0\0\0\0\0\0\0\x14\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\x09more";
        assert!(decode_offsets(&key, Some(value)).unwrap().value.message().is_some());
    }

    #[test]
    fn types_and_versions_that_are_not_known_are_named() {
        let keyed = decode_offsets(b"\0\x09junk", Some(b"\0\0junk")).unwrap();
        assert_eq!(keyed.key, Payload::UnknownType(9));
        assert_eq!(keyed.value, Payload::UnknownType(9));
        assert_eq!(decode_offsets(b"\xff\xff", None).unwrap().key, Payload::UnknownType(65535));
        let keyed = decode_offsets(KEY, Some(b"\0\x05")).unwrap();
        let name = "OffsetCommitValue";
        assert_eq!(keyed.value, Payload::UnknownVersion { name, id: 1, version: 5 });
    }

    #[test]
    fn short_keys_and_values_are_refused() {
        for size in 0..KEY.len() {
            assert!(decode_offsets(&KEY[..size], None).is_err(), "{size}");
        }
        assert!(decode_offsets(KEY, Some(b"")).is_err());
        assert!(decode_offsets(KEY, Some(b"\0")).is_err());
        assert!(decode_transaction_state(b"\0\0\0\x01t", Some(b"\0\x01\0")).is_err());
        assert!(decode_share_state(b"\0\0\0\x01g", None).is_err());
    }
}
