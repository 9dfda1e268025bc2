//! Records of Kafka's own topics decode to what Kafka's serdes and its dump tool make of them.

use serde_json::Value;
use siltstone::record::payload::{self, Payload, write_json};

use crate::metadata::read_json;

#[test]
fn metadata_records_decode_as_kafka_decodes_them() {
    let records = read_json("records/metadata.json");
    let records = records.as_array().unwrap();
    for record in records {
        let value = bytes(&record["value"]).unwrap();
        check(record, &payload::decode_metadata_record(&value).unwrap());
    }
    assert_eq!(records.len(), 295);
}

#[test]
fn control_records_decode_as_kafka_decodes_them() {
    for record in read_json("records/control.json").as_array().unwrap() {
        let key = bytes(&record["key"]).unwrap();
        let value = bytes(&record["value"]);
        check(record, &payload::decode_control_record(&key, value.as_deref()).unwrap());
    }
}

#[test]
fn remote_metadata_decodes_as_kafka_decodes_it() {
    for record in read_json("records/remote-log-metadata.json").as_array().unwrap() {
        let value = bytes(&record["value"]).unwrap();
        check(record, &payload::decode_remote_metadata(&value).unwrap());
    }
}

#[test]
fn client_protocols_decode_as_kafka_decodes_them() {
    for record in read_json("records/consumer-protocol.json").as_array().unwrap() {
        let value = bytes(&record["value"]).unwrap();
        let message = match record["type"].as_str() {
            Some("ConsumerProtocolSubscription") => payload::decode_subscription(&value),
            _ => payload::decode_assignment(&value),
        };
        check(record, &Payload::Message(message.unwrap().unwrap()));
    }
}

#[test]
fn records_with_keys_decode_as_kafka_decodes_them() {
    type Decode = for<'a> fn(&'a [u8], Option<&'a [u8]>) -> siltstone::Result<payload::Keyed<'a>>;
    let topics: [(&str, Decode); 3] = [
        ("consumer-offsets", payload::decode_offsets),
        ("transaction-state", payload::decode_transaction_state),
        ("share-group-state", payload::decode_share_state),
    ];
    for (topic, decode) in topics {
        for record in read_json(&format!("records/{topic}.json")).as_array().unwrap() {
            let key = bytes(&record["key"]).unwrap();
            let value = bytes(&record["value"]);
            let keyed = decode(&key, value.as_deref()).unwrap();
            let key = keyed.key.message().unwrap();
            assert_eq!(u64::from(key.id), record["type"], "{record}");
            assert_eq!(key.name, format!("{}Key", record["record"].as_str().unwrap()));
            assert_eq!(as_json(&key.data), record["decodedKey"], "{record}");
            match keyed.value {
                Payload::Message(value) => {
                    assert_eq!(value.version, record["valueVersion"], "{record}");
                    assert_eq!(as_json(&value.data), record["decodedValue"], "{record}");
                }
                other => {
                    assert_eq!(other, Payload::Null, "{record}");
                    assert_eq!(record["decodedValue"], Value::Null);
                }
            }
        }
    }
}

#[test]
fn damaged_records_give_a_verdict() {
    let files = ["metadata", "control", "remote-log-metadata", "consumer-protocol"];
    let keyed = ["consumer-offsets", "transaction-state", "share-group-state"];
    let mut refused = 0;
    for file in files.into_iter().chain(keyed) {
        for record in read_json(&format!("records/{file}.json")).as_array().unwrap() {
            let key = bytes(&record["key"]).unwrap_or_default();
            let Some(value) = bytes(&record["value"]) else { continue };
            for size in 0..value.len() {
                refused += decode_any(file, &key, &value[..size]);
                let mut flipped = value.clone();
                flipped[size] ^= 1 << (size % 8);
                decode_any(file, &key, &flipped);
            }
            for size in 0..key.len() {
                refused += decode_any(file, &key[..size], &value);
            }
        }
    }
    assert!(refused > 10_000, "{refused}");
}

/// Decodes as records of this file are decoded; 1 when it is refused.
fn decode_any(file: &str, key: &[u8], value: &[u8]) -> u32 {
    let is_ok = match file {
        "metadata" => payload::decode_metadata_record(value).is_ok(),
        "control" => payload::decode_control_record(key, Some(value)).is_ok(),
        "remote-log-metadata" => payload::decode_remote_metadata(value).is_ok(),
        "consumer-offsets" => payload::decode_offsets(key, Some(value)).is_ok(),
        "transaction-state" => payload::decode_transaction_state(key, Some(value)).is_ok(),
        "share-group-state" => payload::decode_share_state(key, Some(value)).is_ok(),
        _ => {
            payload::decode_subscription(value).is_ok() && payload::decode_assignment(value).is_ok()
        }
    };
    u32::from(!is_ok)
}

fn check(record: &Value, payload: &Payload<'_>) {
    let message = payload.message().unwrap_or_else(|| panic!("{payload:?} {record}"));
    assert_eq!(message.name, record["type"], "{record}");
    assert_eq!(message.version, record["version"], "{record}");
    assert_eq!(as_json(&message.data), record["decoded"], "{record}");
}

fn as_json(value: &payload::Value<'_>) -> Value {
    let mut text = String::new();
    write_json(value, &mut text);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The bytes of a hexadecimal text; `None` for null.
fn bytes(text: &Value) -> Option<Vec<u8>> {
    text.as_str().map(crate::metadata::from_hex)
}
