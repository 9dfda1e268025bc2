//! Settings resolve as Kafka's `LogConfig` and as running brokers have them.

use std::collections::BTreeMap;

use serde_json::Value;
use siltstone::dir::metadata::{BrokerConfigs, METADATA_FOLDER, MetadataOptions, load_metadata};
use siltstone::dir::settings::{Layers, Resolver, TopicSettings, read_server_properties};
use siltstone::io::Disk;
use tempfile::TempDir;

use crate::metadata::{archive, read_json};

fn map(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().unwrap().iter();
    pairs.map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned())).collect()
}

fn texts(settings: &TopicSettings) -> BTreeMap<String, String> {
    let settings = settings.resolved.iter();
    settings.map(|setting| (setting.name.to_owned(), setting.value.to_string())).collect()
}

#[test]
fn stacks_of_layers_resolve_as_kafka_resolves_them() {
    let stacks = read_json("config-resolution.json");
    let stacks = stacks.as_array().unwrap();
    assert_eq!(stacks.len(), 60);
    for (at, stack) in stacks.iter().enumerate() {
        let broker = BrokerConfigs { node: map(&stack["node"]), cluster: map(&stack["cluster"]) };
        let server_properties = map(&stack["static"]);
        let layers = Layers { broker, server_properties, ..Layers::default() };
        let resolver = Resolver::new(layers).unwrap();
        let settings = resolver.topic("t", Some(&map(&stack["topic"]))).unwrap();
        assert_eq!(texts(&settings), map(&stack["config"]), "stack {at}");
        assert_eq!(settings.segment_bytes, stack["segmentSize"], "stack {at}");
        assert_eq!(settings.segment_age_max_ms(), stack["maxSegmentMs"], "stack {at}");
        assert_eq!(settings.local_retention_ms(), stack["localRetentionMs"], "stack {at}");
        assert_eq!(settings.local_retention_bytes(), stack["localRetentionBytes"], "stack {at}");
    }
}

#[test]
fn topics_have_the_settings_that_running_brokers_reported() {
    let effective = read_json("three-nodes/effective.json");
    let mut topics = 0;
    for (state, expected) in effective.as_object().unwrap() {
        let dir = TempDir::new().unwrap();
        archive().unpack(&format!("three-nodes/{state}"), dir.path());
        let file = std::fs::read(dir.path().join("run/server.properties")).unwrap();
        let mut layers = Layers {
            server_properties: read_server_properties(&file).unwrap(),
            ..Layers::default()
        };
        let alone = Resolver::new(layers.clone()).unwrap();
        let node_id = alone.broker().unwrap().node_id;
        let defaults = texts(&alone.topic("none", None).unwrap());
        assert_eq!(defaults, map(&expected["staticOnlyDefaults"]), "{state}");

        let folder = dir.path().join("metadata").join(METADATA_FOLDER);
        let loaded = load_metadata(&Disk::new(), &folder, &MetadataOptions::default()).unwrap();
        layers.broker = loaded.image.broker_layers(node_id);
        let resolver = Resolver::new(layers).unwrap();
        let defaults = map(&expected["defaults"]);
        assert_eq!(texts(&resolver.topic("none", None).unwrap()), defaults, "{state}");
        for (topic, differs) in expected["topics"].as_object().unwrap() {
            let settings = resolver.topic(topic, loaded.image.topic_configs(topic)).unwrap();
            let mut wanted = defaults.clone();
            wanted.extend(map(differs));
            assert_eq!(texts(&settings), wanted, "{state} {topic}");
            topics += 1;
        }
        assert!(resolver.notes().is_empty());
    }
    assert_eq!(topics, 18);
}
