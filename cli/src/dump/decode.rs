//! What the records of Kafka's own topics say.

use clap::ValueEnum;
use siltstone::Result;
use siltstone::record::payload::{
    Message, Payload, decode_control_record, decode_metadata_record, decode_offsets,
    decode_remote_metadata, decode_share_state, decode_transaction_state, expand_classic_group,
    hide_secrets, write_json, write_json_text,
};
use siltstone::record::{BatchHeader, Record};

use super::shown::{Printable, Shown};

/// Whose records they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Topic {
    /// Committed offsets and groups.
    #[value(name = "__consumer_offsets")]
    ConsumerOffsets,
    /// Transactions by transactional id.
    #[value(name = "__transaction_state")]
    TransactionState,
    /// Share groups.
    #[value(name = "__share_group_state")]
    ShareGroupState,
    /// Segments in remote storage.
    #[value(name = "__remote_log_metadata")]
    RemoteLogMetadata,
    /// The KRaft metadata log.
    #[value(name = "__cluster_metadata")]
    ClusterMetadata,
    /// Any other topic: bytes.
    #[value(name = "none")]
    Other,
}

impl Topic {
    /// The topic of this name.
    pub(super) fn of_name(name: &str) -> Topic {
        match name {
            "__consumer_offsets" => Topic::ConsumerOffsets,
            "__transaction_state" => Topic::TransactionState,
            "__share_group_state" => Topic::ShareGroupState,
            "__remote_log_metadata" => Topic::RemoteLogMetadata,
            "__cluster_metadata" => Topic::ClusterMetadata,
            _ => Topic::Other,
        }
    }
}

/// A decoded record: what its key and its value say, each as JSON and for a human.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    /// The key, where it says anything.
    pub(super) key: Option<Said>,
    /// The value.
    pub(super) value: Said,
    /// Why it could not be decoded.
    pub(super) error: Option<String>,
}

/// What one side of a record says.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// As JSON.
    pub(super) json: String,
    /// For a human.
    pub(super) text: String,
}

/// Decodes a record; `None` for one that is only bytes.
pub(super) fn decode(topic: Topic, header: &BatchHeader, record: &Record<'_>) -> Option<Decoded> {
    // The metadata log has passwords in it: what cannot be decoded there is not shown at all.
    let is_secret = topic == Topic::ClusterMetadata;
    let key = record.key.unwrap_or_default();
    let value = record.value.unwrap_or_default();
    let decoded = if header.is_control() {
        decode_control_record(key, record.value).map(|payload| {
            let mut kind = control_type(key);
            // The value says it again.
            if payload.message().is_some() {
                kind.text.clear();
            }
            Decoded { key: Some(kind), value: said(payload, value, false), error: None }
        })
    } else {
        match topic {
            Topic::Other => return None,
            Topic::ClusterMetadata => decode_metadata_record(value).map(|payload| Decoded {
                value: said(payload, value, is_secret),
                ..Decoded::default()
            }),
            Topic::RemoteLogMetadata => decode_remote_metadata(value).map(|payload| Decoded {
                value: said(payload, value, is_secret),
                ..Decoded::default()
            }),
            Topic::ConsumerOffsets | Topic::TransactionState | Topic::ShareGroupState => {
                keyed(topic, key, record.value)
            }
        }
    };
    Some(decoded.unwrap_or_else(|error| Decoded {
        key: record.key.filter(|_| !is_secret).map(raw),
        value: if is_secret { hidden(value) } else { raw(value) },
        error: Some(error.message().to_owned()),
    }))
}

fn keyed(topic: Topic, key: &[u8], value: Option<&[u8]>) -> Result<Decoded> {
    let mut keyed = match topic {
        Topic::TransactionState => decode_transaction_state(key, value),
        Topic::ShareGroupState => decode_share_state(key, value),
        _ => decode_offsets(key, value),
    }?;
    if let Payload::Message(message) = &mut keyed.value {
        expand_classic_group(message);
    }
    Ok(Decoded {
        key: Some(said(keyed.key, key, false)),
        value: said(keyed.value, value.unwrap_or_default(), false),
        error: None,
    })
}

/// The type in the key of a control record.
fn control_type(key: &[u8]) -> Said {
    use siltstone::record::control::{ControlType, parse_key};
    let kind = parse_key(key).unwrap_or(ControlType::Unknown(-1));
    let name = match kind {
        ControlType::Unknown(id) => format!("UNKNOWN({id})"),
        known => known.as_str().to_owned(),
    };
    Said { json: format!("{{\"control\":\"{name}\"}}"), text: name }
}

fn said(payload: Payload<'_>, bytes: &[u8], is_secret: bool) -> Said {
    let unknown = |what: String, members: String| {
        let shown = if is_secret { hidden(bytes) } else { raw(bytes) };
        Said {
            json: format!("{{{members},\"bytes\":{}}}", shown.json),
            text: format!("{what} {}", shown.text),
        }
    };
    match payload {
        Payload::Null => Said { json: "null".to_owned(), text: "tombstone".to_owned() },
        Payload::Message(mut message) => {
            hide_secrets(&mut message);
            said_message(&message)
        }
        Payload::UnknownType(id) => {
            unknown(format!("unknown type {id}"), format!("\"unknown_type\":{id}"))
        }
        Payload::UnknownVersion { name, id, version } => unknown(
            format!("{name} of unknown version {version}"),
            format!("\"name\":\"{name}\",\"id\":{id},\"unknown_version\":{version}"),
        ),
    }
}

fn said_message(message: &Message<'_>) -> Said {
    let (name, version) = (message.name, message.version);
    let mut data = String::new();
    write_json(&message.data, &mut data);
    Said {
        json: format!(
            "{{\"name\":\"{name}\",\"id\":{},\"version\":{version},\"data\":{data}}}",
            message.id
        ),
        text: format!("{name} v{version} {}", Printable(&data)),
    }
}

fn raw(bytes: &[u8]) -> Said {
    let text = Shown { bytes: Some(bytes), full: true }.to_string();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut json = "{\"hex\":".to_owned();
    write_json_text(&hex, &mut json);
    json.push('}');
    Said { json, text }
}

fn hidden(bytes: &[u8]) -> Said {
    let text = format!("[hidden] ({} bytes)", bytes.len());
    Said { json: format!("\"{}\"", siltstone::record::payload::HIDDEN), text }
}
