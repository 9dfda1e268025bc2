//! The records that carry their type in the value (metadata log, remote metadata) or in the control
//! bit's key.

use std::sync::LazyLock;

use crate::bytes;
use crate::error::{Error, Kind, Result};
use crate::record::varint::read_u32;

use super::decode::decode;
use super::layout::Layouts;
use super::{Message, Payload, layouts};

static METADATA: LazyLock<Layouts> = LazyLock::new(|| Layouts::parse(layouts::metadata::METADATA));
static REMOTE: LazyLock<Layouts> = LazyLock::new(|| Layouts::parse(layouts::remote::REMOTE));
static CONTROL: LazyLock<Layouts> = LazyLock::new(|| Layouts::parse(layouts::control::CONTROL));

/// The value of a record of the KRaft metadata log.
///
/// `Corrupt` when it is not what its layout says or has bytes left over, `Unsupported` when its
/// frame is newer.
pub fn decode_metadata_record(value: &[u8]) -> Result<Payload<'_>> {
    framed(&METADATA, value)
}

/// The value of a record of `__remote_log_metadata`; errors as for the metadata log.
pub fn decode_remote_metadata(value: &[u8]) -> Result<Payload<'_>> {
    framed(&REMOTE, value)
}

/// A control record: the end of a transaction, or one of the metadata log's own.
///
/// `Corrupt` when the key has no type or the value is not what its layout says. A null or empty
/// value is `Null`.
pub fn decode_control_record<'a>(key: &[u8], value: Option<&'a [u8]>) -> Result<Payload<'a>> {
    let version = bytes::get_i16(key, 0);
    let (Some(version), Some(id)) = (version, bytes::get_i16(key, 2)) else {
        return Err(Error::corrupt(format!("control record with a key of {} bytes", key.len())));
    };
    // spec: records 6. A later key version begins like this one.
    if version < 0 {
        return Err(Error::corrupt(format!("control record with key version {version}")));
    }
    let Some(value) = value.filter(|value| !value.is_empty()) else { return Ok(Payload::Null) };
    let id = u32::try_from(id).ok();
    let Some(layout) = id.and_then(|id| CONTROL.get(id)) else {
        return Ok(Payload::UnknownType(id.unwrap_or(u32::MAX)));
    };
    // Kafka quirk: whatever version the value claims, it is read with the layout of version 0.
    let (data, _) = decode(layout, 0, value)?;
    Ok(Payload::Message(Message { name: layout.name, id: layout.id, version: 0, data }))
}

fn framed<'a>(layouts: &Layouts, value: &'a [u8]) -> Result<Payload<'a>> {
    let mut rest = value;
    let mut next = |what: &str| -> Result<u32> {
        let read = read_u32(rest);
        let (number, behind) =
            read.map_err(|_| Error::corrupt(format!("record value without {what}")))?;
        rest = behind;
        Ok(number)
    };
    match next("a frame version")? {
        1 => {}
        0 => return Err(Error::corrupt("record value with frame version 0")),
        frame => {
            let message = format!("record value with frame version {frame}, known is 1");
            return Err(Error::new(Kind::Unsupported, message));
        }
    }
    let id = next("an api key")?;
    let claimed = next("a version")?;
    let Some(layout) = layouts.get(id) else { return Ok(Payload::UnknownType(id)) };
    let version = i16::try_from(claimed).ok().filter(|&version| layout.has_version(version));
    let Some(version) = version else {
        return Ok(Payload::UnknownVersion { name: layout.name, id, version: claimed });
    };
    let (data, size) = decode(layout, version, rest)?;
    if size != rest.len() {
        let left = rest.len() - size;
        let name = layout.name;
        let message = format!("{name} version {version}: {left} bytes are left over behind it");
        return Err(Error::corrupt(message));
    }
    Ok(Payload::Message(Message { name: layout.name, id, version, data }))
}

#[cfg(test)]
mod tests {
    use super::super::Value;
    use super::*;

    #[test]
    fn a_metadata_record_begins_with_its_frame() {
        let payload = decode_metadata_record(b"\x01\x0c\x00\x02a\x00\x1e\x00").unwrap();
        let message = payload.message().unwrap();
        assert_eq!((message.name, message.id, message.version), ("FeatureLevelRecord", 12, 0));
        assert_eq!(message.data.text("name"), Some("a"));
        assert_eq!(message.data.int("featureLevel"), Some(30));
    }

    #[test]
    fn newer_types_and_versions_are_told_apart() {
        assert_eq!(decode_metadata_record(b"\x01\xc8\x01\x00").unwrap(), Payload::UnknownType(200));
        assert_eq!(
            decode_metadata_record(b"\x01\x02\xc8\x01junk").unwrap(),
            Payload::UnknownVersion { name: "TopicRecord", id: 2, version: 200 }
        );
        // One that would fit 16 bits only when cut.
        let payload = decode_metadata_record(b"\x01\x02\x80\x80\x04").unwrap();
        assert_eq!(payload, Payload::UnknownVersion { name: "TopicRecord", id: 2, version: 65536 });
        assert_eq!(decode_metadata_record(b"\x02\x02\x00").unwrap_err().kind(), Kind::Unsupported);
    }

    #[test]
    fn broken_frames_are_refused() {
        for value in
            [&b""[..], b"\x00\x02\x00", b"\x01", b"\x01\x02", b"\x01\xff\xff\xff\xff\xff\x00"]
        {
            assert_eq!(
                decode_metadata_record(value).unwrap_err().kind(),
                Kind::Corrupt,
                "{value:?}"
            );
        }
        let error = decode_metadata_record(b"\x01\x14\x00\x00x").unwrap_err();
        assert_eq!(error.message(), "NoOpRecord version 0: 1 bytes are left over behind it");
    }

    #[test]
    fn a_marker_tells_its_coordinator_epoch() {
        let payload = decode_control_record(b"\0\0\0\x01", Some(b"\0\0\0\0\0\x07")).unwrap();
        let message = payload.message().unwrap();
        assert_eq!((message.name, message.data.int("coordinatorEpoch")), ("COMMIT", Some(7)));
    }

    #[test]
    fn control_keys_may_be_newer_but_not_short() {
        let newer = decode_control_record(b"\0\x07\0\x05more", Some(b"\0\0\0\x01\0")).unwrap();
        assert_eq!(newer.message().map(|message| message.name), Some("KRAFT_VERSION"));
        assert!(decode_control_record(b"\0\0\0", Some(b"")).is_err());
        assert!(decode_control_record(b"\xff\xff\0\0", Some(b"\0\0")).is_err());
        let unknown = decode_control_record(b"\0\0\0\x63", Some(b"x")).unwrap();
        assert_eq!(unknown, Payload::UnknownType(99));
        assert_eq!(decode_control_record(b"\0\0\0\0", None).unwrap(), Payload::Null);
    }

    #[test]
    fn a_leader_change_is_read_as_version_0() {
        let value = b"\0\x01\0\0\0\x01\x02\0\0\0\x01\0\x01\0";
        let payload = decode_control_record(b"\0\0\0\x02", Some(value)).unwrap();
        let data = &payload.message().unwrap().data;
        assert_eq!(data.int("version"), Some(1));
        assert_eq!(data.array("voters").map(<[Value<'_>]>::len), Some(1));
    }
}
