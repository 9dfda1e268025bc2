//! May the settings of a topic be as they are to be, and what does a broker do for its partitions?
//!
//! Whether a topic takes part at all is for
//! [`TopicSettings::has_remote_storage`](crate::dir::settings::TopicSettings::has_remote_storage)
//! to say.

use std::fmt;

use crate::dir::settings::TopicSettings;

/// "As the retention of the whole log is."
pub const AS_RETENTION: i64 = -2;

/// The settings of a topic that remote storage goes by. -1 is "no limit", and of a local retention
/// -2 "as the other one".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteTopicConfig {
    /// `remote.storage.enable`.
    pub remote_storage: bool,
    /// `remote.log.copy.disable`.
    pub copy_disabled: bool,
    /// `remote.log.delete.on.disable`.
    pub delete_on_disable: bool,
    /// `retention.bytes`.
    pub retention_bytes: i64,
    /// `local.retention.bytes`.
    pub local_retention_bytes: i64,
    /// `retention.ms`.
    pub retention_ms: i64,
    /// `local.retention.ms`.
    pub local_retention_ms: i64,
    /// Whether `cleanup.policy` has `compact`.
    pub compact: bool,
}

impl From<&TopicSettings> for RemoteTopicConfig {
    fn from(settings: &TopicSettings) -> Self {
        RemoteTopicConfig {
            remote_storage: settings.remote_storage,
            copy_disabled: settings.remote_copy_disabled,
            delete_on_disable: settings.remote_delete_on_disable,
            retention_bytes: settings.retention_bytes,
            local_retention_bytes: settings.local_retention_bytes_set,
            retention_ms: settings.retention_ms,
            local_retention_ms: settings.local_retention_ms_set,
            compact: settings.compact,
        }
    }
}

/// Why a change of a topic's settings is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigRefusal {
    /// The broker has no remote storage.
    SystemDisabled,
    /// A compacted topic cannot have remote storage.
    Compacted,
    /// The local retention by size is none, or larger than that of the whole log.
    LocalRetentionBytes,
    /// The local retention by time is none, or longer than that of the whole log.
    LocalRetentionMs,
    /// Nothing is copied, so the local retention must be that of the whole log.
    LocalRetentionWithoutCopy,
    /// Remote storage is switched off without saying that what is there may go.
    DisableWithoutDelete,
}

impl fmt::Display for ConfigRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SystemDisabled => {
                "remote.storage.enable needs remote.log.storage.system.enable on the broker"
            }
            Self::Compacted => "remote.storage.enable needs a cleanup.policy without compact",
            Self::LocalRetentionBytes => {
                "local.retention.bytes must be -2, or at most retention.bytes where that has a limit"
            }
            Self::LocalRetentionMs => {
                "local.retention.ms must be -2, or at most retention.ms where that has a limit"
            }
            Self::LocalRetentionWithoutCopy => {
                "with remote.log.copy.disable the local retention must be -2 or equal to the retention"
            }
            Self::DisableWithoutDelete => {
                "remote.storage.enable is switched off only with remote.log.delete.on.disable=true"
            }
        })
    }
}

/// Checks the settings `to` of a topic that had `from`; `None` when it is new. The rules of the
/// retention hold for topics with remote storage alone.
///
/// # Errors
/// The first rule that is broken.
pub fn check_topic_config(
    from: Option<&RemoteTopicConfig>,
    to: &RemoteTopicConfig,
    broker_has_remote_storage: bool,
) -> Result<(), ConfigRefusal> {
    // spec: tiered 1
    if !to.remote_storage {
        let was_on = from.is_some_and(|from| from.remote_storage);
        return match was_on && !to.delete_on_disable {
            true => Err(ConfigRefusal::DisableWithoutDelete),
            false => Ok(()),
        };
    }
    if !broker_has_remote_storage {
        return Err(ConfigRefusal::SystemDisabled);
    }
    if to.compact {
        return Err(ConfigRefusal::Compacted);
    }
    if exceeds(to.local_retention_bytes, to.retention_bytes) {
        return Err(ConfigRefusal::LocalRetentionBytes);
    }
    if exceeds(to.local_retention_ms, to.retention_ms) {
        return Err(ConfigRefusal::LocalRetentionMs);
    }
    let differs = |local: i64, retention: i64| local != AS_RETENTION && local != retention;
    let is_shorter = differs(to.local_retention_bytes, to.retention_bytes)
        || differs(to.local_retention_ms, to.retention_ms);
    if to.copy_disabled && is_shorter {
        return Err(ConfigRefusal::LocalRetentionWithoutCopy);
    }
    Ok(())
}

/// Whether a local retention is more than that of the whole log.
fn exceeds(local: i64, retention: i64) -> bool {
    retention > -1 && local != AS_RETENTION && (local == -1 || local > retention)
}

/// What a broker runs for a partition of a topic with remote storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteTasks {
    /// Segments are uploaded.
    pub copies: bool,
    /// Remote segments are expired.
    pub expires: bool,
    /// The highest remote offset is looked up again and again.
    pub follows: bool,
}

impl RemoteTasks {
    /// The tasks of a leader, or of a follower.
    #[must_use]
    pub fn of(is_leader: bool, copy_disabled: bool) -> Self {
        // spec: tiered 1
        RemoteTasks { copies: is_leader && !copy_disabled, expires: is_leader, follows: !is_leader }
    }

    /// The tasks once all remote metadata of the partition has been read, as
    /// [`MetadataCache::is_loaded`](super::MetadataCache::is_loaded) tells; before, there are none.
    #[must_use]
    pub fn if_loaded(self, is_loaded: bool) -> Self {
        let RemoteTasks { copies, expires, follows } = self;
        RemoteTasks {
            copies: copies && is_loaded,
            expires: expires && is_loaded,
            follows: follows && is_loaded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::settings::{Layers, Resolver};
    use std::collections::BTreeMap;

    fn settings(configs: &[(&str, &str)]) -> TopicSettings {
        let configs: BTreeMap<String, String> =
            configs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Resolver::new(Layers::default()).unwrap().topic("t", Some(&configs)).unwrap()
    }

    fn config(configs: &[(&str, &str)]) -> RemoteTopicConfig {
        let settings = settings(configs);
        RemoteTopicConfig { remote_storage: true, ..RemoteTopicConfig::from(&settings) }
    }

    #[test]
    fn a_topic_takes_part_where_broker_topic_policy_and_name_allow_it() {
        // spec: tiered 1
        let on = ("remote.storage.enable", "true");
        let takes_part = |configs: &[(&str, &str)], name: &str, broker: bool| {
            settings(configs).has_remote_storage(name, broker)
        };
        assert!(takes_part(&[on], "t", true));
        assert!(takes_part(&[on, ("cleanup.policy", "delete")], "t", true));
        assert!(takes_part(&[on, ("cleanup.policy", "")], "t", true));
        for policy in ["compact", "compact,delete"] {
            assert!(!takes_part(&[on, ("cleanup.policy", policy)], "t", true), "{policy}");
        }
        assert!(!takes_part(&[], "t", true) && !takes_part(&[on], "t", false));
        for name in ["__consumer_offsets", "__remote_log_metadata", "__cluster_metadata"] {
            assert!(!takes_part(&[on], name, true), "{name}");
        }
    }

    #[test]
    fn a_local_retention_is_at_most_that_of_the_whole_log() {
        // spec: tiered 1, rules 1 to 3
        let rule = |what: &str, retention: &str, local: &str| {
            let (retention_key, local_key) =
                (format!("retention.{what}"), format!("local.retention.{what}"));
            let to = config(&[(&retention_key, retention), (&local_key, local)]);
            check_topic_config(None, &to, true).err()
        };
        for (what, refusal) in
            [("bytes", ConfigRefusal::LocalRetentionBytes), ("ms", ConfigRefusal::LocalRetentionMs)]
        {
            for (retention, local, is_refused) in [
                ("1000", "-1", true),
                ("1000", "1001", true),
                ("1000", "1000", false),
                ("1000", "-2", false),
                ("0", "0", false),
                ("0", "1", true),
                ("-1", "-1", false),
                ("-1", "5", false),
                ("-1", "-2", false),
            ] {
                let expected = is_refused.then_some(refusal);
                assert_eq!(rule(what, retention, local), expected, "{what} {retention} {local}");
            }
        }
    }

    #[test]
    fn without_copies_the_local_retention_is_that_of_the_whole_log() {
        // spec: tiered 1, rule 4
        let rule = |configs: &[(&str, &str)]| {
            let to = RemoteTopicConfig { copy_disabled: true, ..config(configs) };
            check_topic_config(None, &to, true).err()
        };
        assert_eq!(rule(&[]), None);
        assert_eq!(rule(&[("retention.bytes", "7"), ("local.retention.bytes", "7")]), None);
        let refused = Some(ConfigRefusal::LocalRetentionWithoutCopy);
        assert_eq!(rule(&[("retention.bytes", "7"), ("local.retention.bytes", "6")]), refused);
        assert_eq!(rule(&[("retention.ms", "7"), ("local.retention.ms", "6")]), refused);
    }

    #[test]
    fn remote_storage_is_switched_on_and_off_by_the_rules() {
        // spec: tiered 1, rules 5 and 6
        let on = config(&[]);
        let off = RemoteTopicConfig { remote_storage: false, ..on };
        let check = |from, to, broker| check_topic_config(from, &to, broker).err();
        assert_eq!(check(None, on, false), Some(ConfigRefusal::SystemDisabled));
        assert_eq!(check(None, off, false), None);
        assert_eq!(check(Some(&on), off, true), Some(ConfigRefusal::DisableWithoutDelete));
        let deletes = RemoteTopicConfig { delete_on_disable: true, ..off };
        assert_eq!(check(Some(&on), deletes, true), None);
        assert_eq!(check(Some(&off), off, true), None);
        let compact = RemoteTopicConfig { compact: true, ..on };
        assert_eq!(check(None, compact, true), Some(ConfigRefusal::Compacted));
        assert!(ConfigRefusal::Compacted.to_string().starts_with("remote.storage.enable needs"));
    }

    #[test]
    fn a_local_retention_of_minus_2_follows_the_other() {
        // spec: tiered 1
        let follows = settings(&[("retention.bytes", "70"), ("retention.ms", "90")]);
        assert_eq!((follows.local_retention_bytes(), follows.local_retention_ms()), (70, 90));
        let own = settings(&[("retention.bytes", "70"), ("local.retention.bytes", "5")]);
        assert_eq!(own.local_retention_bytes(), 5);
    }

    #[test]
    fn leaders_copy_and_expire_and_followers_follow() {
        // spec: tiered 1
        let tasks = |is_leader, copy_disabled| {
            let RemoteTasks { copies, expires, follows } =
                RemoteTasks::of(is_leader, copy_disabled);
            (copies, expires, follows)
        };
        assert_eq!(tasks(true, false), (true, true, false));
        assert_eq!(tasks(true, true), (false, true, false));
        assert_eq!(tasks(false, false), (false, false, true));
        assert_eq!(tasks(false, true), (false, false, true));
    }
}
