//! What clients put into a classic consumer group: subscription and assignment.
//!
//! ```text
//! i16 version | message in the plain encoding; a version above 3 begins like version 3
//! ```

use std::sync::LazyLock;

use crate::bytes;
use crate::error::{Error, Result};

use super::decode::decode;
use super::layout::Layouts;
use super::{Message, Value, layouts};

static PROTOCOL: LazyLock<Layouts> = LazyLock::new(|| Layouts::parse(layouts::protocol::PROTOCOL));

const SUBSCRIPTION: u32 = 0;
const ASSIGNMENT: u32 = 1;

/// What a member of a classic consumer group asked for; `None` for no bytes: nothing yet.
pub fn decode_subscription(bytes: &[u8]) -> Result<Option<Message<'_>>> {
    read(SUBSCRIPTION, bytes)
}

/// What a member of a classic consumer group was given; `None` for no bytes: nothing yet.
pub fn decode_assignment(bytes: &[u8]) -> Result<Option<Message<'_>>> {
    read(ASSIGNMENT, bytes)
}

/// Puts the decoded form in place of the bytes of a `GroupMetadataValue` whose protocol is
/// "consumer".
///
/// Bytes that do not parse stay, as in Kafka's dump tool. Other messages stay as they are.
pub fn expand_classic_group(message: &mut Message<'_>) {
    if message.name != "GroupMetadataValue" || message.data.text("protocolType") != Some("consumer")
    {
        return;
    }
    let Value::Struct(fields) = &mut message.data else { return };
    let members = fields.iter_mut().find_map(|(name, value)| match value {
        Value::Array(members) if *name == "members" => Some(members),
        _ => None,
    });
    for member in members.into_iter().flatten() {
        let Value::Struct(fields) = member else { continue };
        for (name, value) in fields {
            let Value::Bytes(bytes) = value else { continue };
            let decoded = match *name {
                "subscription" => decode_subscription(bytes),
                "assignment" => decode_assignment(bytes),
                _ => continue,
            };
            if let Ok(Some(decoded)) = decoded {
                *value = decoded.data;
            }
        }
    }
}

fn read(id: u32, bytes: &[u8]) -> Result<Option<Message<'_>>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let layout = PROTOCOL.get(id).expect("both messages are in the text");
    let (Some(claimed), Some(rest)) = (bytes::get_i16(bytes, 0), bytes.get(2..)) else {
        return Err(Error::corrupt(format!("{} of one byte", layout.name)));
    };
    if claimed < 0 {
        return Err(Error::corrupt(format!("{} version {claimed}", layout.name)));
    }
    let version = claimed.min(layout.last_version());
    let (data, _) = decode(layout, version, rest)?;
    Ok(Some(Message { name: layout.name, id, version: claimed, data }))
}

#[cfg(test)]
mod tests {
    use super::super::{decode_offsets, write_json};
    use super::*;

    #[test]
    fn a_newer_version_is_read_as_the_last_known() {
        let bytes = b"\0\x09\0\0\0\x01\0\x01t\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\xff\xffmore";
        let message = decode_subscription(bytes).unwrap().unwrap();
        assert_eq!(message.version, 9);
        let topics = [Value::Text("t".into())];
        assert_eq!(message.data.array("topics"), Some(&topics[..]));
        assert_eq!(message.data.field("rackId"), Some(&Value::Null));
    }

    #[test]
    fn nothing_yet_is_no_error_but_broken_bytes_are() {
        assert_eq!(decode_assignment(b"").unwrap(), None);
        for bytes in [&b"\0"[..], b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\x01"] {
            assert!(decode_assignment(bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn a_group_of_consumers_shows_what_its_members_asked_for() {
        let member = b"\0\x01m\0\x01c\0\x01h\0\0\0\x05\0\0\0\x0a";
        let subscription = b"\0\0\0\x0d\0\0\0\0\0\x01\0\x01t\xff\xff\xff\xff";
        let assignment = b"\0\0\0\x01x";
        let start = b"\0\x01\0\x08consumer\0\0\0\x01\xff\xff\xff\xff\0\0\0\x01";
        let value = [&start[..], member, subscription, assignment].concat();
        let keyed = decode_offsets(b"\0\x02\0\x01g", Some(&value)).unwrap();
        let super::super::Payload::Message(mut message) = keyed.value else { unreachable!() };
        expand_classic_group(&mut message);
        let mut json = String::new();
        write_json(message.data.field("members").unwrap(), &mut json);
        assert!(json.contains(r#""subscription":{"topics":["t"],"userData":null}"#), "{json}");
        assert!(json.contains(r#""assignment":"eA==""#), "{json}");
    }
}
