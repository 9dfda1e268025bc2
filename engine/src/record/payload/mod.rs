//! What do the records of Kafka's own topics say? The KRaft metadata log, committed offsets and
//! groups, transactions, share state and remote log metadata; decoding only.
//!
//! ```text
//! metadata log, __remote_log_metadata
//!     value: uvarint frame 1 | uvarint api key | uvarint version | message
//! __consumer_offsets, __transaction_state, __share_group_state
//!     key:   i16 record type | message
//!     value: i16 version | message                              (null: a tombstone)
//! control records
//!     key:   i16 0 | i16 type
//!     value: message, which begins with its own i16 version
//! ```
//!
//! What the messages look like stands in `layouts`, in the notation of `layout`; `decode`
//! reads any of them into a [`Value`].

mod decode;
mod framed;
mod json;
mod keyed;
mod layout;
mod layouts;
mod partition;
mod protocol;
mod secrets;
mod value;

pub use framed::{decode_control_record, decode_metadata_record, decode_remote_metadata};
pub use json::{write_json, write_json_text};
pub use keyed::{Keyed, decode_offsets, decode_share_state, decode_transaction_state};
pub use partition::coordinator_partition;
pub use protocol::{decode_assignment, decode_subscription, expand_classic_group};
pub use secrets::{HIDDEN, hide_secrets, is_sensitive_config};
pub use value::Value;

/// A decoded message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    /// The name of its layout, as Kafka spells it.
    pub name: &'static str,
    /// Its api key, record type or control type.
    pub id: u32,
    /// The version that it was written in.
    pub version: i16,
    /// Its fields.
    pub data: Value<'a>,
}

/// What a key or value holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload<'a> {
    /// A message that this release knows.
    Message(Message<'a>),
    /// No bytes: a tombstone, where it is the value of a keyed record.
    Null,
    /// A record type or api key that this release does not know: a newer Kafka wrote it.
    UnknownType(u32),
    /// A known type in a version that this release does not know.
    UnknownVersion {
        /// The name of its layout.
        name: &'static str,
        /// Its api key, record type or control type.
        id: u32,
        /// The version that it claims.
        version: u32,
    },
}

impl<'a> Payload<'a> {
    /// The message, if it is one.
    #[must_use]
    pub fn message(&self) -> Option<&Message<'a>> {
        match self {
            Payload::Message(message) => Some(message),
            _ => None,
        }
    }
}
