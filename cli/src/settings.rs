//! Where topic settings come from: the metadata log, `server.properties`, files and options of the
//! command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use siltstone::dir::metadata::{LoadedMetadata, MetadataOptions, find_metadata, load_metadata};
use siltstone::dir::settings::{Layers, Resolver, TopicSettings, read_server_properties};
use siltstone::io::Storage;
use siltstone::{Error, Kind, Result};

/// What is said of a place that was given and has no metadata log.
pub(crate) const NO_METADATA: &str = "no __cluster_metadata-0 here";
/// More than a file of settings has.
const SETTINGS_BYTES_MAX: u64 = 64 << 20;

/// The options that settings come from, of every verb that needs them.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// Where the KRaft metadata log is: the directory that holds __cluster_metadata-0, or that
    /// directory itself.
    ///
    /// Topic settings and ids are learnt from it. By default it is looked for in the log
    /// directories given.
    #[arg(long, value_name = "DIR", help_heading = "Settings")]
    metadata: Option<PathBuf>,

    /// The broker's server.properties, for its defaults.
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    server_properties: Option<PathBuf>,

    /// Topic settings that override all others: JSON, {"topics": {NAME: {CONFIG: VALUE}}}.
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    topic_configs: Option<PathBuf>,

    /// A setting of every topic that overrides all others, such as index.interval.bytes=4096. May
    /// be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting, help_heading = "Settings")]
    config: Vec<(String, String)>,
}

/// Where settings come from.
#[derive(Debug)]
pub(crate) struct SettingsFrom<'a> {
    pub(crate) args: &'a SettingsArgs,
    pub(crate) like_kafka: bool,
    pub(crate) metadata_upto: Option<i64>,
}

/// The settings of all topics.
#[derive(Debug)]
pub(crate) struct Settings {
    resolver: Resolver,
    metadata: Option<LoadedMetadata>,
    /// Whether `server.properties` was given.
    broker_is_known: bool,
    /// Whether options say which topics have remote storage.
    is_told: bool,
    /// Sentences for the operator.
    pub(crate) notes: Vec<String>,
}

impl Settings {
    /// Reads what is there. `dirs` are the directories given, in which the metadata log is looked
    /// for.
    pub(crate) fn read(
        storage: &dyn Storage,
        dirs: &[PathBuf],
        from: &SettingsFrom<'_>,
    ) -> Result<Settings> {
        check_overrides(from.args)?;
        let mut notes = Vec::new();
        let server_properties = match &from.args.server_properties {
            Some(path) => read_server_properties(&storage.read(path, SETTINGS_BYTES_MAX)?)
                .map_err(|error| error.in_file(path))?,
            None => BTreeMap::new(),
        };
        let topic_configs = match &from.args.topic_configs {
            Some(path) => parse_topic_configs(&storage.read(path, SETTINGS_BYTES_MAX)?)
                .map_err(|error| error.in_file(path))?,
            None => BTreeMap::new(),
        };
        // The layers of the broker alone say where its metadata log is and who votes.
        let of_file = Resolver::new(Layers {
            server_properties: server_properties.clone(),
            ..Layers::default()
        })?
        .broker()
        .map_err(|error| match &from.args.server_properties {
            Some(path) => error.in_file(path),
            None => error,
        })?;
        let broker_is_known = from.args.server_properties.is_some();
        let known = Known {
            node_id: of_file.node_id.or_else(|| node_of(storage, dirs)),
            voters: Some(of_file.quorum_voters.clone()).filter(|voters| !voters.is_empty()),
            dirs: if broker_is_known {
                let of_broker = std::iter::once(of_file.metadata_log_dir.clone());
                dirs.iter().cloned().chain(of_broker).chain(of_file.log_dirs.clone()).collect()
            } else {
                dirs.to_vec()
            },
        };
        let metadata = read_metadata(storage, from, &known, &mut notes)?;
        let broker = match &metadata {
            Some(loaded) if from.like_kafka => loaded.snapshot_broker_configs.clone(),
            Some(loaded) => loaded.image.broker_layers(known.node_id),
            None => Default::default(),
        };
        let resolver = Resolver::new(Layers {
            overrides: from.args.config.clone(),
            topic_configs,
            broker,
            server_properties,
        })?;
        notes.extend(resolver.notes().iter().cloned());
        let is_told = from.args.topic_configs.is_some()
            || from.args.config.iter().any(|(key, _)| key == "remote.storage.enable");
        Ok(Settings { resolver, metadata, broker_is_known, is_told, notes })
    }

    /// The settings of one topic.
    pub(crate) fn topic(&self, name: &str) -> Result<TopicSettings> {
        let configs = self.metadata.as_ref().and_then(|loaded| loaded.image.topic_configs(name));
        self.resolver.topic(name, configs)
    }

    /// Whether remote storage is on for a topic: where the broker's own settings are not known, its
    /// topics' are believed.
    pub(crate) fn is_remote(&self, name: &str, topic: &TopicSettings) -> bool {
        let broker = || self.resolver.broker().is_ok_and(|broker| broker.remote_storage);
        topic.has_remote_storage(name, !self.broker_is_known || broker())
    }

    /// Whether anything says which topics have remote storage. A part of the metadata log does not.
    pub(crate) fn knows_topics(&self) -> bool {
        self.metadata.as_ref().is_some_and(|loaded| loaded.is_whole) || self.is_told
    }

    /// What is wrong with the metadata log, and whether it could be read to its end.
    pub(crate) fn metadata_warnings(&self) -> (&[String], bool) {
        self.metadata.as_ref().map_or((&[], true), |loaded| (&loaded.warnings, loaded.is_whole))
    }

    /// `producer.id.expiration.ms` of the broker.
    pub(crate) fn producer_expiration_ms(&self) -> Result<i64> {
        Ok(self.resolver.broker()?.producer_id_expiration_ms)
    }
}

/// Looks at what `--config` gives before others are laid over it.
fn check_overrides(args: &SettingsArgs) -> Result<()> {
    let layers = Layers { overrides: args.config.clone(), ..Layers::default() };
    let check = |resolver: Resolver| resolver.topic("", None).and(resolver.broker()).map(drop);
    Resolver::new(layers).and_then(check).map_err(|error| error.context("--config"))
}

/// What is known before the metadata log is read.
struct Known {
    node_id: Option<i32>,
    voters: Option<Vec<i32>>,
    /// Where the metadata log may be.
    dirs: Vec<PathBuf>,
}

fn read_metadata(
    storage: &dyn Storage,
    from: &SettingsFrom<'_>,
    known: &Known,
    notes: &mut Vec<String>,
) -> Result<Option<LoadedMetadata>> {
    let named = from.args.metadata.clone();
    let places = named.as_ref().map_or_else(|| known.dirs.clone(), |dir| vec![dir.clone()]);
    let Some(folder) = find_metadata(storage, &places) else {
        if let Some(dir) = named {
            return Err(Error::new(Kind::NotFound, NO_METADATA).in_file(&dir));
        }
        notes.push(
            "no metadata log beside the logs: topic settings are Kafka's defaults where no option says otherwise \
             (--metadata, --server-properties, --topic-configs, --config)"
                .to_owned(),
        );
        return Ok(None);
    };
    let options = MetadataOptions {
        upto: from.metadata_upto,
        node_id: known.node_id,
        broker_epoch: broker_epoch_of(storage, &known.dirs),
        quorum_voters: known.voters.clone(),
    };
    let loaded = load_metadata(storage, &folder, &options)
        .map_err(|error| error.context(format!("read the metadata log in {}", folder.display())))?;
    notes.push(format!(
        "topic settings from {}: read to offset {}, committed at least to {}",
        folder.display(),
        loaded.read_to,
        loaded.committed_at_least
    ));
    notes.extend(loaded.warnings.iter().cloned());
    Ok(Some(loaded))
}

/// The node id in `meta.properties` of one of the directories.
fn node_of(storage: &dyn Storage, dirs: &[PathBuf]) -> Option<i32> {
    dirs.iter().find_map(|dir| {
        let bytes = storage.read(&dir.join("meta.properties"), SETTINGS_BYTES_MAX).ok()?;
        siltstone::state::MetaProperties::parse(&bytes).ok()?.node_id
    })
}

/// The broker epoch in the clean-shutdown marker of one of the directories.
fn broker_epoch_of(storage: &dyn Storage, dirs: &[PathBuf]) -> Option<i64> {
    dirs.iter().find_map(|dir| {
        let bytes = storage.read(&dir.join(".kafka_cleanshutdown"), SETTINGS_BYTES_MAX).ok()?;
        siltstone::state::meta::parse_clean_shutdown(&bytes).filter(|epoch| *epoch >= 0)
    })
}

/// Reads `{"topics": {NAME: {CONFIG: VALUE}}}`; other keys are ignored.
fn parse_topic_configs(bytes: &[u8]) -> Result<BTreeMap<String, BTreeMap<String, String>>> {
    let wrong = |what: &str| Error::corrupt(format!("topic configs: {what}"));
    let json: Value = serde_json::from_slice(bytes).map_err(|error| wrong(&error.to_string()))?;
    let topics = json
        .get("topics")
        .and_then(Value::as_object)
        .ok_or_else(|| wrong("no object \"topics\" in it"))?;
    let mut configs = BTreeMap::new();
    for (topic, values) in topics {
        let values =
            values.as_object().ok_or_else(|| wrong(&format!("topic {topic} has no object")))?;
        let mut of_topic = BTreeMap::new();
        for (key, value) in values {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => return Err(wrong(&format!("{key} of topic {topic} is no plain value"))),
            };
            of_topic.insert(key.clone(), text);
        }
        configs.insert(topic.clone(), of_topic);
    }
    Ok(configs)
}

/// Reads `KEY=VALUE`.
pub(crate) fn parse_setting(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("a setting is written KEY=VALUE".to_owned()),
    }
}
