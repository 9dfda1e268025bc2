//! Which settings are there? Their names, spellings, defaults and what they may be.

use super::SettingValue;

/// A setting and what it may be.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: &'static str,
    /// The broker's names for it, the finest unit first, each with what one unit is worth.
    pub(super) broker: &'static [(&'static str, i64)],
    pub(super) default: &'static str,
    pub(super) kind: Kind,
}

/// What the text of a setting must be.
#[derive(Debug)]
pub(super) enum Kind {
    /// A whole number of these bounds, inclusive.
    Int(i64, i64),
    /// A number of these bounds, inclusive.
    Float(f64, f64),
    Bool,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words, or none.
    Words(&'static [&'static str]),
    /// Words of any kind.
    List,
    Text,
}

const INT_MAX: i64 = 2_147_483_647;
const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 3_600_000;
/// The largest number, as text.
const LONG_MAX: &str = "9223372036854775807";

/// A positive 32-bit number.
const fn int(from: i64) -> Kind {
    Kind::Int(from, INT_MAX)
}

/// A 64-bit number from here on.
const fn long(from: i64) -> Kind {
    Kind::Int(from, i64::MAX)
}

macro_rules! definitions {
    ($($name:literal, [$($broker:literal $(* $unit:expr)?),*], $default:expr, $kind:expr;)*) => {
        &[$(Definition {
            name: $name,
            broker: &[$(($broker, 1 $(* $unit)?)),*],
            default: $default,
            kind: $kind,
        }),*]
    };
}

/// The settings of a topic. `segment.bytes` may be less than the 1 MiB that Kafka 4 asks for when
/// it is set: older releases took anything from one message on.
// spec: kraft-metadata 6
pub(super) const TOPIC: &[Definition] = definitions! {
    "cleanup.policy", ["log.cleanup.policy"], "delete", Kind::Words(&["compact", "delete"]);
    "compression.gzip.level", ["compression.gzip.level"], "-1", Kind::Int(-1, 9);
    "compression.lz4.level", ["compression.lz4.level"], "9", Kind::Int(1, 17);
    "compression.type", ["compression.type"], "producer",
        Kind::Word(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]);
    "compression.zstd.level", ["compression.zstd.level"], "3", Kind::Int(-131_072, 22);
    "delete.retention.ms", ["log.cleaner.delete.retention.ms"], "86400000", long(0);
    "file.delete.delay.ms", ["log.segment.delete.delay.ms"], "60000", long(0);
    "flush.messages", ["log.flush.interval.messages"], LONG_MAX, long(1);
    "flush.ms", ["log.flush.interval.ms", "log.flush.scheduler.interval.ms"], LONG_MAX, long(0);
    "follower.replication.throttled.replicas", [], "", Kind::List;
    "index.interval.bytes", ["log.index.interval.bytes"], "4096", int(0);
    "leader.replication.throttled.replicas", [], "", Kind::List;
    "local.retention.bytes", ["log.local.retention.bytes"], "-2", long(-2);
    "local.retention.ms", ["log.local.retention.ms"], "-2", long(-2);
    "max.compaction.lag.ms", ["log.cleaner.max.compaction.lag.ms"], LONG_MAX, long(1);
    "max.message.bytes", ["message.max.bytes"], "1048588", int(0);
    "message.timestamp.after.max.ms", ["log.message.timestamp.after.max.ms"], "3600000", long(0);
    "message.timestamp.before.max.ms", ["log.message.timestamp.before.max.ms"], LONG_MAX, long(0);
    "message.timestamp.type", ["log.message.timestamp.type"], "CreateTime",
        Kind::Word(&["CreateTime", "LogAppendTime"]);
    "min.cleanable.dirty.ratio", ["log.cleaner.min.cleanable.ratio"], "0.5", Kind::Float(0.0, 1.0);
    "min.compaction.lag.ms", ["log.cleaner.min.compaction.lag.ms"], "0", long(0);
    "min.insync.replicas", ["min.insync.replicas"], "1", int(1);
    "preallocate", ["log.preallocate"], "false", Kind::Bool;
    "remote.log.copy.disable", [], "false", Kind::Bool;
    "remote.log.delete.on.disable", [], "false", Kind::Bool;
    "remote.storage.enable", [], "false", Kind::Bool;
    "retention.bytes", ["log.retention.bytes"], "-1", long(i64::MIN);
    "retention.ms", ["log.retention.ms", "log.retention.minutes" * MINUTE_MS,
        "log.retention.hours" * HOUR_MS], "604800000", long(-1);
    "segment.bytes", ["log.segment.bytes"], "1073741824", int(14);
    "segment.index.bytes", ["log.index.size.max.bytes"], "10485760", int(4);
    "segment.jitter.ms", ["log.roll.jitter.ms", "log.roll.jitter.hours" * HOUR_MS], "0", long(0);
    "segment.ms", ["log.roll.ms", "log.roll.hours" * HOUR_MS], "604800000", long(1);
    "unclean.leader.election.enable", ["unclean.leader.election.enable"], "false", Kind::Bool;
};

/// A setting of Kafka's own tests, which beats `segment.bytes` where a topic has it. It has no
/// default.
pub(super) const INTERNAL_SEGMENT_BYTES: Definition = Definition {
    name: "internal.segment.bytes",
    broker: &[],
    default: "",
    kind: Kind::Int(14, INT_MAX),
};

/// The settings of a broker that a tool needs.
pub(super) const BROKER: &[Definition] = definitions! {
    "controller.quorum.voters", ["controller.quorum.voters"], "", Kind::List;
    "log.dir", ["log.dir"], "/tmp/kafka-logs", Kind::Text;
    "log.dirs", ["log.dirs"], "", Kind::List;
    "metadata.log.dir", ["metadata.log.dir"], "", Kind::Text;
    "node.id", ["node.id"], "-1", Kind::Int(-1, INT_MAX);
    "num.recovery.threads.per.data.dir", ["num.recovery.threads.per.data.dir"], "2", int(1);
    "process.roles", ["process.roles"], "", Kind::Words(&["broker", "controller"]);
    "producer.id.expiration.ms", ["producer.id.expiration.ms"], "86400000", int(1);
    "remote.log.storage.system.enable", ["remote.log.storage.system.enable"], "false", Kind::Bool;
    "transaction.max.timeout.ms", ["transaction.max.timeout.ms"], "900000", int(1);
};

/// The spellings that a dynamic config of this name hides in lower layers, itself included.
pub(super) fn hidden_by(key: &str) -> &'static [&'static str] {
    match key {
        "log.roll.ms" | "log.roll.hours" => &["log.roll.ms", "log.roll.hours"],
        "log.roll.jitter.ms" | "log.roll.jitter.hours" => {
            &["log.roll.jitter.ms", "log.roll.jitter.hours"]
        }
        "log.retention.ms" | "log.retention.minutes" | "log.retention.hours" => {
            &["log.retention.ms", "log.retention.minutes", "log.retention.hours"]
        }
        "log.flush.interval.ms" => &["log.flush.interval.ms", "log.flush.scheduler.interval.ms"],
        _ => &[],
    }
}

impl Definition {
    /// Reads the value from text whose unit is worth `unit`; the error says what it should be.
    pub(super) fn read(&self, text: &str, unit: i64) -> Result<SettingValue, String> {
        let text = text.trim();
        match &self.kind {
            Kind::Int(from, to) => {
                let number = text.parse::<i64>().map_err(|_| "which is no whole number")?;
                let mut number = number.checked_mul(unit).ok_or("which is too large")?;
                // spec: kraft-metadata 6. Any negative retention time of a broker is "unlimited".
                if self.name == "retention.ms" && number < 0 {
                    number = -1;
                }
                if (*from..=*to).contains(&number) {
                    Ok(SettingValue::Int(number))
                } else if *to == i64::MAX {
                    Err(format!("which is less than {from}"))
                } else {
                    Err(format!("which is not within {from} and {to}"))
                }
            }
            Kind::Float(from, to) => match text.parse::<f64>() {
                Ok(number) if (*from..=*to).contains(&number) => Ok(SettingValue::Float(number)),
                Ok(_) => Err(format!("which is not within {from} and {to}")),
                Err(_) => Err("which is no number".to_owned()),
            },
            Kind::Bool if text.eq_ignore_ascii_case("true") => Ok(SettingValue::Bool(true)),
            Kind::Bool if text.eq_ignore_ascii_case("false") => Ok(SettingValue::Bool(false)),
            Kind::Bool => Err("which is neither true nor false".to_owned()),
            Kind::Word(known) if known.contains(&text) => Ok(SettingValue::Text(text.to_owned())),
            Kind::Word(known) => Err(format!("which is none of {}", known.join(", "))),
            Kind::Words(known) => {
                let words = list(text);
                if words.iter().all(|word| known.contains(&word.as_str())) {
                    Ok(SettingValue::List(words))
                } else {
                    Err(format!("which has words other than {}", known.join(", ")))
                }
            }
            Kind::List => Ok(SettingValue::List(list(text))),
            Kind::Text => Ok(SettingValue::Text(text.to_owned())),
        }
    }
}

fn list(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    text.split(',').map(|word| word.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str) -> &'static Definition {
        TOPIC.iter().find(|definition| definition.name == name).unwrap()
    }

    #[test]
    fn every_default_is_a_value_of_its_setting() {
        for definition in TOPIC.iter().chain(BROKER) {
            let value = definition.read(definition.default, 1).unwrap();
            assert_eq!(value.to_string(), definition.default, "{}", definition.name);
        }
    }

    #[test]
    fn values_are_trimmed_and_of_any_case_where_kafka_takes_it() {
        assert_eq!(topic("segment.bytes").read(" 2097152 ", 1), Ok(SettingValue::Int(2_097_152)));
        assert_eq!(topic("preallocate").read("TRUE", 1), Ok(SettingValue::Bool(true)));
        let policy = topic("cleanup.policy").read("delete , compact", 1).unwrap();
        assert_eq!(policy.to_string(), "delete,compact");
        assert_eq!(topic("cleanup.policy").read("", 1), Ok(SettingValue::List(vec![])));
        let ratio = topic("min.cleanable.dirty.ratio").read("1", 1).unwrap();
        assert_eq!(ratio.to_string(), "1.0");
    }

    #[test]
    fn coarser_units_are_worth_more() {
        assert_eq!(topic("segment.ms").read("200", HOUR_MS), Ok(SettingValue::Int(720_000_000)));
        assert_eq!(topic("retention.ms").read("-5", HOUR_MS), Ok(SettingValue::Int(-1)));
        assert!(topic("segment.ms").read("9223372036854775807", HOUR_MS).is_err());
    }

    #[test]
    fn what_a_setting_cannot_be_is_refused() {
        for (name, text) in [
            ("segment.bytes", "1e6"),
            ("segment.bytes", "13"),
            ("segment.bytes", "2147483648"),
            ("segment.bytes", ""),
            ("segment.index.bytes", "0"),
            ("index.interval.bytes", "-1"),
            ("preallocate", "yes"),
            ("cleanup.policy", "compact;delete"),
            ("cleanup.policy", "Compact"),
            ("compression.type", "brotli"),
            ("min.cleanable.dirty.ratio", "NaN"),
            ("min.cleanable.dirty.ratio", "1.1"),
            ("retention.bytes", "9223372036854775808"),
        ] {
            assert!(topic(name).read(text, 1).is_err(), "{name}={text}");
        }
    }
}
