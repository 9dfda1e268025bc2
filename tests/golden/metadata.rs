//! The metadata log is replayed to what Kafka's own image loader makes of it.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};
use siltstone::dir::metadata::{
    Broker, ConfigResource, LoadedMetadata, METADATA_FOLDER, MetadataImage, MetadataOptions, Topic,
    Voter, load_metadata,
};
use siltstone::io::Disk;
use siltstone::uuid::Uuid;
use siltstone_tests::archive::Archive;
use siltstone_tests::kits::Kit;
use tempfile::TempDir;

/// The archive with records, images and the metadata logs of three nodes.
pub fn archive() -> &'static Archive {
    static OPENED: OnceLock<Archive> = OnceLock::new();
    OPENED.get_or_init(|| Archive::open("metadata.tar.zst"))
}

/// A JSON file of the archive.
pub fn read_json(path: &str) -> Value {
    let bytes = archive().read(path).unwrap_or_else(|| panic!("no {path} in the archive"));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The bytes of a hexadecimal text.
pub fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn load(folder: &Path) -> siltstone::Result<LoadedMetadata> {
    load_metadata(&Disk::new(), folder, &MetadataOptions::default())
}

/// The state in the form of the fixtures.
fn image_json(loaded: &LoadedMetadata) -> Value {
    let image = &loaded.image;
    let topics: Vec<Value> = image.topics().map(|topic| topic_json(image, topic)).collect();
    let is_topic = |resource: &ConfigResource| {
        resource.kind == ConfigResource::TOPIC && image.topic(&resource.name).is_some()
    };
    let configs = image.configs.iter().filter(|(resource, _)| !is_topic(resource));
    let configs: Vec<Value> = configs
        .map(|(resource, configs)| {
            json!({"type": resource.kind_name(), "name": resource.name, "configs": configs})
        })
        .collect();
    let mut json = json!({
        "snapshot": loaded.snapshot,
        "endOffset": loaded.read_to,
        "lastEpoch": loaded.last_epoch,
        "metadataVersion": image.metadata_version_name(),
        "kraftVersion": image.kraft_version,
        "voters": image.voters.as_deref().map(voters_json),
        "features": image.features,
        "brokers": image.brokers.values().map(broker_json).collect::<Vec<_>>(),
        "topics": topics,
        "configs": configs,
    });
    if let Some(controller) = image.controller {
        json["controller"] = json!(controller);
    }
    json
}

fn topic_json(image: &MetadataImage, topic: &Topic) -> Value {
    let partitions = topic.partitions.iter().map(|(index, partition)| {
        json!({
            "partition": index,
            "replicas": partition.replicas,
            "directories": texts(&partition.directories),
            "isr": partition.isr,
            "elr": partition.eligible_leader_replicas,
            "lastKnownElr": partition.last_known_elr,
            "removing": partition.removing_replicas,
            "adding": partition.adding_replicas,
            "leader": partition.leader,
            "leaderRecoveryState": partition.leader_recovery_state,
            "leaderEpoch": partition.leader_epoch,
            "partitionEpoch": partition.partition_epoch,
        })
    });
    let configs = image.topic_configs(&topic.name).cloned().unwrap_or_default();
    let partitions: Vec<Value> = partitions.collect();
    let id = topic.id.to_string();
    json!({"name": topic.name, "id": id, "configs": configs, "partitions": partitions})
}

fn broker_json(broker: &Broker) -> Value {
    let listeners = broker.listeners.iter().map(|listener| {
        let protocol = listener.security_protocol_name();
        format!("{}://{}:{} {protocol}", listener.name, listener.host, listener.port)
    });
    json!({
        "id": broker.id,
        "epoch": broker.epoch,
        "incarnation": broker.incarnation.to_string(),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "inControlledShutdown": broker.in_controlled_shutdown,
        "directories": texts(&broker.directories),
        "cordonedDirectories": broker.cordoned_directories.as_deref().map(texts),
        "listeners": listeners.collect::<Vec<_>>(),
    })
}

fn voters_json(voters: &[Voter]) -> Value {
    let voters = voters.iter().map(|voter| {
        let endpoints = voter.endpoints.iter().map(
            |endpoint| json!({"name": endpoint.name, "host": endpoint.host, "port": endpoint.port}),
        );
        let (first, last) = voter.kraft_versions;
        json!({
            "voterId": voter.id,
            "voterDirectoryId": voter.directory_id.to_string(),
            "endpoints": endpoints.collect::<Vec<_>>(),
            "kRaftVersionFeature": {"minSupportedVersion": first, "maxSupportedVersion": last},
        })
    });
    json!({"version": 0, "voters": voters.collect::<Vec<_>>()})
}

fn texts(ids: &[Uuid]) -> Vec<String> {
    ids.iter().map(Uuid::to_string).collect()
}

#[test]
fn the_metadata_of_every_kit_state_is_what_kafka_loads() {
    let mut states = 0;
    for kit in Kit::all() {
        let images = read_json(&format!("images/{}.json", kit.name()));
        for (state, mut expected) in images.as_object().unwrap() {
            while let Some(same) = expected["sameAs"].as_str() {
                expected = &images[same];
            }
            let state = kit.state(state);
            let loaded = load(&state.unpack().metadata().join(METADATA_FOLDER)).unwrap();
            assert_eq!(image_json(&loaded), *expected, "{}", state.label());
            states += 1;
        }
    }
    assert_eq!(states, 73);
}

#[test]
fn logs_with_snapshots_are_what_kafka_loads() {
    let images = read_json("three-nodes/images.json");
    let images = images.as_object().unwrap();
    assert_eq!(images.len(), 6);
    for (state, expected) in images {
        let dir = TempDir::new().unwrap();
        archive().unpack(&format!("three-nodes/{state}/metadata"), dir.path());
        let loaded = load(&dir.path().join(METADATA_FOLDER)).unwrap();
        assert_eq!(image_json(&loaded), *expected, "{state}");
        assert_eq!(loaded.warnings, Vec::<String>::new(), "{state}");
    }
}

#[test]
fn made_up_logs_are_read_as_their_notes_say() {
    let cases = read_json("cases.json");
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 14);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let dir = TempDir::new().unwrap();
        for (file, bytes) in case["files"].as_object().unwrap() {
            std::fs::write(dir.path().join(file), from_hex(bytes.as_str().unwrap())).unwrap();
        }
        match load(dir.path()) {
            Ok(loaded) => {
                assert_eq!(image_json(&loaded), case["image"], "{name}");
                let unknown = u64::from(name == "unknown-api-key");
                assert_eq!(loaded.unknown_records, unknown, "{name}");
                let warns = matches!(name, "bad-crc" | "torn-tail" | "unknown-api-key");
                assert_eq!(
                    loaded.warnings.len(),
                    usize::from(warns),
                    "{name} {:?}",
                    loaded.warnings
                );
            }
            Err(error) => {
                assert_eq!((name, &case["image"]), ("log-starts-late-no-snapshot", &Value::Null));
                assert_eq!(error.kind(), siltstone::Kind::Corrupt);
            }
        }
    }
}
