//! The layers on top of each other.

use std::collections::BTreeMap;

use crate::dir::metadata::{BrokerConfigs, Configs};
use crate::error::{Error, Kind, Result};
use crate::state::Properties;

use super::definition::{BROKER, Definition, INTERNAL_SEGMENT_BYTES, TOPIC, hidden_by};
use super::{BrokerSettings, Resolved, Source, TopicSettings};

/// What is set where, as text. Empty where a source is not there.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// Above all others: a topic's setting, which then holds for all topics, or a broker's.
    pub overrides: Vec<(String, String)>,
    /// Configs by topic, above those that the topics have.
    pub topic_configs: BTreeMap<String, Configs>,
    /// The dynamic configs of the broker, from the metadata log.
    pub broker: BrokerConfigs,
    /// `server.properties`; see [`read_server_properties`].
    pub server_properties: Configs,
}

/// Reads `server.properties` for [`Layers`].
///
/// `Corrupt` where it is no Java properties file.
pub fn read_server_properties(bytes: &[u8]) -> Result<Configs> {
    let properties = Properties::parse(bytes)?;
    let pairs = properties.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
    Ok(pairs.collect())
}

/// Settings by name; made once, asked for every topic.
#[derive(Debug)]
pub struct Resolver {
    overrides: BTreeMap<&'static str, String>,
    topic_configs: BTreeMap<String, Configs>,
    /// What the broker has, by its own spellings.
    broker: BTreeMap<&'static str, (String, Source)>,
    notes: Vec<String>,
}

impl Resolver {
    /// Puts the layers of the broker on top of each other.
    ///
    /// `InvalidArgument` when an override names a setting that is not known.
    pub fn new(layers: Layers) -> Result<Self> {
        let mut resolver = Resolver {
            overrides: BTreeMap::new(),
            topic_configs: layers.topic_configs,
            broker: BTreeMap::new(),
            notes: Vec::new(),
        };
        // spec: kraft-metadata 6
        resolver.lay(&layers.server_properties, Source::ServerProperties);
        resolver.lay(&layers.broker.cluster, Source::Cluster);
        resolver.lay(&layers.broker.node, Source::Node);
        for (key, value) in layers.overrides {
            resolver.add_override(&key, value)?;
        }
        resolver.note_unresolved();
        Ok(resolver)
    }

    /// What the operator should know of: values that only the broker can resolve.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The settings of a topic whose own configs are `configs`.
    ///
    /// `InvalidArgument`, naming source and key, when a value is none that the setting may have.
    pub fn topic(&self, name: &str, configs: Option<&Configs>) -> Result<TopicSettings> {
        let read = |definition: &'static Definition| {
            let (text, source) = self.set_for_topic(definition.name, name, configs)?;
            let resolved = resolved(definition, definition.name, text, 1, source);
            // The settings of a topic without a name are those of any topic.
            let named = |error: Error| match name {
                "" => error,
                name => error.context(format!("topic {name}")),
            };
            Some(resolved.map_err(named))
        };
        let settings = TOPIC
            .iter()
            .map(|definition| read(definition).unwrap_or_else(|| self.of_broker(definition)));
        let settings: Result<Vec<Resolved>> =
            settings.chain(read(&INTERNAL_SEGMENT_BYTES)).collect();
        Ok(TopicSettings::new(settings?))
    }

    /// What is set for a topic above the broker.
    fn set_for_topic<'a>(
        &'a self,
        key: &str,
        topic: &str,
        configs: Option<&'a Configs>,
    ) -> Option<(&'a str, Source)> {
        let in_file = self.topic_configs.get(topic);
        let layers = [
            (self.overrides.get(key), Source::Override),
            (in_file.and_then(|configs| configs.get(key)), Source::TopicOverride),
            (configs.and_then(|configs| configs.get(key)), Source::Topic),
        ];
        layers.into_iter().find_map(|(text, source)| Some((text?.as_str(), source)))
    }

    /// The settings of the broker.
    ///
    /// `InvalidArgument`, naming source and key, when a value is none that the setting may have.
    pub fn broker(&self) -> Result<BrokerSettings> {
        let settings: Result<Vec<Resolved>> =
            BROKER.iter().map(|definition| self.of_broker(definition)).collect();
        BrokerSettings::new(settings?)
    }

    /// The value that the broker has for a setting.
    fn of_broker(&self, definition: &Definition) -> Result<Resolved> {
        for &(key, unit) in definition.broker {
            match self.broker.get(key) {
                // What it would be is not known, so that a coarser spelling must not win.
                Some((text, _)) if is_unresolved(text) => break,
                Some((text, source)) => {
                    return resolved(definition, key, text, unit, *source);
                }
                None => {}
            }
        }
        resolved(definition, definition.name, definition.default, 1, Source::Default)
    }

    /// Lays a source on top of what is there: a spelling of a setting hides all spellings below.
    fn lay(&mut self, values: &BTreeMap<String, String>, source: Source) {
        // From ms over minutes to hours. Kafka hides within a layer, too, and gets to hours last;
        // only a layer that was not set by its own tools has more than one of them.
        for (key, value) in values.iter().rev() {
            let Some(key) = broker_key(key) else { continue };
            if source != Source::ServerProperties {
                self.hide(key);
            }
            self.broker.insert(key, (value.clone(), source));
        }
    }

    fn hide(&mut self, key: &str) {
        for hidden in hidden_by(key) {
            self.broker.remove(hidden);
        }
    }

    fn add_override(&mut self, key: &str, value: String) -> Result<()> {
        if let Some(definition) = of_topics(key) {
            self.overrides.insert(definition.name, value);
            return Ok(());
        }
        let Some(known) = broker_key(key) else {
            let message = format!("{key}: there is no setting of this name that matters here");
            return Err(Error::new(Kind::InvalidArgument, message));
        };
        self.hide(known);
        self.broker.insert(known, (value, Source::Override));
        Ok(())
    }

    fn note_unresolved(&mut self) {
        for (key, (value, source)) in &self.broker {
            if is_unresolved(value) {
                self.notes.push(format!(
                    "{key} in {source} is {value}, which only the broker can resolve; the default \
                     is used, unless it is given"
                ));
            }
        }
    }
}

/// Refuses names that no setting of a topic has, as Kafka does when a topic is given configs. What
/// a topic has already may be left of an older release, and is passed over where it is of no use.
///
/// # Errors
/// `InvalidArgument`, naming the first of them.
pub fn check_topic_names(configs: &Configs) -> Result<()> {
    match configs.keys().find(|name| of_topics(name).is_none()) {
        Some(name) => {
            let message = format!("there is no topic config of the name \"{name}\"");
            Err(Error::new(Kind::InvalidArgument, message))
        }
        None => Ok(()),
    }
}

/// The setting of a topic with this name.
fn of_topics(name: &str) -> Option<&'static Definition> {
    let mut known = TOPIC.iter().chain([&INTERNAL_SEGMENT_BYTES]);
    known.find(|definition| definition.name == name)
}

/// A broker's spelling as it stands in the tables; `None` for what is of no use here.
fn broker_key(key: &str) -> Option<&'static str> {
    let spellings = TOPIC.iter().chain(BROKER).flat_map(|definition| definition.broker);
    spellings.map(|(known, _)| *known).find(|known| *known == key)
}

/// Whether a value names a place where the broker looks it up: `${provider:path:key}`.
fn is_unresolved(value: &str) -> bool {
    value
        .split("${")
        .skip(1)
        .any(|behind| behind.split_once('}').is_some_and(|(within, _)| within.contains(':')))
}

/// Reads a value, with what one unit of its spelling is worth.
fn resolved(
    definition: &Definition,
    key: &'static str,
    text: &str,
    unit: i64,
    source: Source,
) -> Result<Resolved> {
    match definition.read(text, unit) {
        Ok(value) => Ok(Resolved { name: definition.name, value, source, key }),
        Err(reason) => {
            let message = format!("{key} in {source} is \"{}\", {reason}", text.trim());
            Err(Error::new(Kind::InvalidArgument, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SettingValue;
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn value(settings: &TopicSettings, name: &str) -> (String, Source, &'static str) {
        let setting = settings.resolved.iter().find(|setting| setting.name == name).unwrap();
        (setting.value.to_string(), setting.source, setting.key)
    }

    #[test]
    fn each_layer_hides_the_ones_below() {
        let name = "index.interval.bytes";
        let broker = "log.index.interval.bytes";
        let mut layers = Layers::default();
        let topic = |layers: &Layers, configs: &[(&str, &str)]| {
            let resolver = Resolver::new(layers.clone()).unwrap();
            value(&resolver.topic("t", Some(&map(configs))).unwrap(), name)
        };
        assert_eq!(topic(&layers, &[]), ("4096".into(), Source::Default, name));
        layers.server_properties = map(&[(broker, "1")]);
        assert_eq!(topic(&layers, &[]), ("1".into(), Source::ServerProperties, broker));
        layers.broker.cluster = map(&[(broker, "2")]);
        assert_eq!(topic(&layers, &[]), ("2".into(), Source::Cluster, broker));
        layers.broker.node = map(&[(broker, "3")]);
        assert_eq!(topic(&layers, &[]), ("3".into(), Source::Node, broker));
        layers.overrides = vec![(broker.to_owned(), "4".to_owned())];
        assert_eq!(topic(&layers, &[]), ("4".into(), Source::Override, broker));
        assert_eq!(topic(&layers, &[(name, "5")]), ("5".into(), Source::Topic, name));
        layers.topic_configs = BTreeMap::from([("t".to_owned(), map(&[(name, "6")]))]);
        assert_eq!(topic(&layers, &[(name, "5")]), ("6".into(), Source::TopicOverride, name));
        layers.overrides = vec![(name.to_owned(), "7".to_owned())];
        assert_eq!(topic(&layers, &[(name, "5")]), ("7".into(), Source::Override, name));
    }

    #[test]
    fn a_coarser_spelling_in_a_higher_layer_beats_a_finer_one_below() {
        let layers = Layers {
            server_properties: map(&[("log.retention.ms", "5")]),
            broker: BrokerConfigs {
                node: map(&[("log.retention.hours", "3")]),
                ..Default::default()
            },
            ..Layers::default()
        };
        let settings = Resolver::new(layers).unwrap().topic("t", None).unwrap();
        let key = "log.retention.hours";
        assert_eq!(value(&settings, "retention.ms"), ("10800000".into(), Source::Node, key));
    }

    #[test]
    fn a_bad_value_is_named_with_its_source_and_key() {
        let resolver = Resolver::new(Layers::default()).unwrap();
        let configs = map(&[("segment.bytes", "many")]);
        let error = resolver.topic("orders", Some(&configs)).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument);
        let text =
            "topic orders: segment.bytes in topic config is \"many\", which is no whole number";
        assert_eq!(error.to_string(), text);
        let layers =
            Layers { server_properties: map(&[("log.preallocate", "1")]), ..Layers::default() };
        let error = Resolver::new(layers).unwrap().topic("t", None).unwrap_err();
        let text =
            "log.preallocate in the broker's properties is \"1\", which is neither true nor false";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn an_override_of_an_unknown_setting_is_refused() {
        let layers =
            Layers { overrides: vec![("segment.byte".into(), "1".into())], ..Layers::default() };
        let error = Resolver::new(layers).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArgument);
        assert!(error.to_string().starts_with("segment.byte: there is no setting"), "{error}");
    }

    #[test]
    fn a_bad_override_is_told_in_the_words_of_any_embedder() {
        // It named an option of the command line, and a topic without a name.
        let overrides = vec![("segment.bytes".into(), "abc".into())];
        let resolver = Resolver::new(Layers { overrides, ..Layers::default() }).unwrap();
        let text = "segment.bytes in the given settings is \"abc\", which is no whole number";
        assert_eq!(resolver.topic("", None).unwrap_err().to_string(), text);
        let error = resolver.topic("orders", None).unwrap_err();
        assert_eq!(error.to_string(), format!("topic orders: {text}"));
    }

    #[test]
    fn a_value_of_a_provider_stays_unresolved_and_is_reported() {
        let properties = map(&[
            ("log.retention.ms", "${file:/run/secrets:retention}"),
            ("log.retention.hours", "1"),
            ("log.segment.bytes", "${env:SEGMENT}"),
            ("ssl.keystore.password", "${file:/run/secrets:password}"),
        ]);
        let mut layers = Layers { server_properties: properties, ..Layers::default() };
        layers.broker.cluster = map(&[("log.segment.bytes", "2000000")]);
        let resolver = Resolver::new(layers).unwrap();
        let settings = resolver.topic("t", None).unwrap();
        assert_eq!(value(&settings, "retention.ms").1, Source::Default);
        assert_eq!(value(&settings, "segment.bytes").1, Source::Cluster);
        assert_eq!(resolver.notes().len(), 1);
        assert!(
            resolver.notes()[0]
                .starts_with("log.retention.ms in the broker's properties is ${file:")
        );
    }

    #[test]
    fn only_a_lookup_is_unresolved() {
        for text in ["${a:b}", "x${a:b:c}y", "${}${a:}"] {
            assert!(is_unresolved(text), "{text}");
        }
        for text in ["", "$", "${", "${ab}", "${a:b", "a:b}", "/logs/${name}/x:y"] {
            assert!(!is_unresolved(text), "{text}");
        }
    }

    #[test]
    fn unknown_configs_of_a_topic_are_ignored() {
        let resolver = Resolver::new(Layers::default()).unwrap();
        let configs = map(&[("from.the.future", "x")]);
        let settings = resolver.topic("t", Some(&configs)).unwrap();
        assert!(settings.resolved.iter().all(|setting| setting.source == Source::Default));
        assert_eq!(settings.resolved[0].value, SettingValue::List(vec!["delete".into()]));
    }

    #[test]
    fn names_that_no_topic_config_has_are_refused_when_they_are_set() {
        let known = map(&[("internal.segment.bytes", "100"), ("segment.bytes", "x")]);
        check_topic_names(&known).unwrap();
        for name in ["segment.byte", "log.segment.bytes", "node.id", ""] {
            let configs = map(&[("segment.bytes", "1000"), (name, "1000")]);
            let error = check_topic_names(&configs).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument, "{name}");
            assert!(error.to_string().contains(&format!("\"{name}\"")), "{error}");
        }
    }

    #[test]
    fn the_defaults_of_a_log_are_kafkas() {
        let settings = Resolver::new(Layers::default()).unwrap().topic("t", None).unwrap();
        let config = settings.log_config("t", true);
        assert_eq!(config, crate::log::LogConfig::default());
    }

    #[test]
    fn only_topics_of_users_that_are_not_compacted_go_to_remote_storage() {
        // spec: behaviours UL-123
        let resolver = Resolver::new(Layers::default()).unwrap();
        let has = |topic: &str, policy: &str, broker_has_it: bool| {
            let configs = map(&[("remote.storage.enable", "true"), ("cleanup.policy", policy)]);
            let settings = resolver.topic(topic, Some(&configs)).unwrap();
            let config = settings.log_config(topic, broker_has_it);
            assert_eq!(config.remote_storage, settings.has_remote_storage(topic, broker_has_it));
            config.remote_storage
        };
        assert!(has("t", "delete", true));
        assert!(!has("t", "delete", false));
        assert!(!has("t", "compact", true));
        assert!(!has("t", "compact,delete", true));
        assert!(!has("__consumer_offsets", "delete", true));
        assert!(!has("__remote_log_metadata", "delete", true));
        let settings = resolver.topic("t", None).unwrap();
        assert!(!settings.log_config("t", true).remote_storage, "it was not asked for");
    }
}
