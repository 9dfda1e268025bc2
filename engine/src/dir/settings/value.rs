//! One setting: its value, and where it comes from.

use std::fmt;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Given for all topics, above everything else.
    Override,
    /// Given for one topic, above its own config.
    TopicOverride,
    /// The topic's own config, from the metadata log.
    Topic,
    /// The dynamic config of this node, from the metadata log.
    Node,
    /// The dynamic config of all brokers, from the metadata log.
    Cluster,
    /// What the broker was started with: `server.properties`.
    ServerProperties,
    /// Nobody set it.
    Default,
}

impl Source {
    /// The source as it stands in a sentence: "segment.bytes in topic config".
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Source::Override => "the given settings",
            Source::TopicOverride => "the given topic configs",
            Source::Topic => "topic config",
            Source::Node => "node config",
            Source::Cluster => "cluster config",
            Source::ServerProperties => "the broker's properties",
            Source::Default => "default",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The value of a setting; it prints as Kafka would.
#[derive(Clone, Debug, PartialEq)]
pub enum SettingValue {
    /// Bytes, milliseconds, counts.
    Int(i64),
    /// A ratio.
    Float(f64),
    /// A switch.
    Bool(bool),
    /// A word or free text.
    Text(String),
    /// Words, separated by commas.
    List(Vec<String>),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Int(value) => write!(f, "{value}"),
            // As Java does, with a fraction always.
            SettingValue::Float(value) => write!(f, "{value:?}"),
            SettingValue::Bool(value) => write!(f, "{value}"),
            SettingValue::Text(value) => f.write_str(value),
            SettingValue::List(words) => f.write_str(&words.join(",")),
        }
    }
}

/// A setting with its value and source.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The setting.
    pub name: &'static str,
    /// Its value.
    pub value: SettingValue,
    /// Who said so.
    pub source: Source,
    /// The name under which the source has it: of a topic's setting that the broker decides, the
    /// broker's.
    pub key: &'static str,
}

/// Settings by name, of the type that their definition makes sure of.
#[derive(Clone, Copy)]
pub(super) struct Values<'a>(pub(super) &'a [Resolved]);

impl<'a> Values<'a> {
    pub(super) fn find(self, name: &str) -> Option<&'a Resolved> {
        self.0.iter().find(|setting| setting.name == name)
    }

    fn value(self, name: &str) -> &'a SettingValue {
        &self.find(name).expect("every setting of the tables is resolved").value
    }

    pub(super) fn int<T: TryFrom<i64>>(self, name: &str) -> T {
        let SettingValue::Int(value) = self.value(name) else { unreachable!("{name} is a number") };
        T::try_from(*value).ok().expect("the bounds of the definition are those of the type")
    }

    pub(super) fn float(self, name: &str) -> f64 {
        let SettingValue::Float(value) = self.value(name) else {
            unreachable!("{name} is a ratio")
        };
        *value
    }

    pub(super) fn bool(self, name: &str) -> bool {
        let SettingValue::Bool(value) = self.value(name) else {
            unreachable!("{name} is a switch")
        };
        *value
    }

    pub(super) fn text(self, name: &str) -> &'a str {
        let SettingValue::Text(value) = self.value(name) else { unreachable!("{name} is text") };
        value
    }

    pub(super) fn list(self, name: &str) -> &'a [String] {
        let SettingValue::List(value) = self.value(name) else { unreachable!("{name} is a list") };
        value
    }
}
