//! Records of Kafka's own topics, as text too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone::record::payload::{self, Keyed, Payload};

fuzz_target!(|bytes: &[u8]| {
    let (key, value) = match bytes.split_first() {
        Some((&size, rest)) => rest.split_at(usize::from(size).min(rest.len())),
        None => return,
    };
    for payload in [
        payload::decode_metadata_record(value),
        payload::decode_remote_metadata(value),
        payload::decode_control_record(key, Some(value)),
    ] {
        show(payload.as_ref().ok());
    }
    for keyed in [
        payload::decode_offsets(key, Some(value)),
        payload::decode_transaction_state(key, Some(value)),
        payload::decode_share_state(key, Some(value)),
    ] {
        show_keyed(keyed.ok());
    }
});

fn show_keyed(keyed: Option<Keyed<'_>>) {
    if let Some(Keyed { key, value }) = keyed {
        show(Some(&key));
        show(Some(&value));
    }
}

fn show(payload: Option<&Payload<'_>>) {
    let Some(Payload::Message(message)) = payload else { return };
    let mut message = message.clone();
    payload::expand_classic_group(&mut message);
    payload::hide_secrets(&mut message);
    let mut text = String::new();
    payload::write_json(&message.data, &mut text);
    assert!(!text.is_empty());
}
