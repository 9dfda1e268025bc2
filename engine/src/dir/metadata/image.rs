//! What does the cluster look like? Features, brokers, topics with their partitions, and configs,
//! as of one offset.

use std::collections::BTreeMap;

use crate::uuid::Uuid;

/// The name of a topic's config, with its value.
pub type Configs = BTreeMap<String, String>;

/// The dynamic configs of a broker, in the two layers that count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerConfigs {
    /// Set on this broker.
    pub node: Configs,
    /// Set on all brokers together; what is set on this one hides it.
    pub cluster: Configs,
}

/// The state of the cluster that its metadata log adds up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetadataImage {
    /// The feature level `metadata.version`.
    pub metadata_version: Option<i16>,
    /// The other feature levels, by name.
    pub features: BTreeMap<String, i16>,
    /// The version of KRaft; `None` where no record told it (version 0, or older than the log that
    /// is left).
    pub kraft_version: Option<i16>,
    /// The voters of the quorum, where records tell them (`kraft_version` 1).
    pub voters: Option<Vec<Voter>>,
    /// The leader that the last leader change named.
    pub controller: Option<i32>,
    /// The registered brokers, by node id.
    pub brokers: BTreeMap<i32, Broker>,
    /// Configs by resource, those of topics included; a resource without configs is not there.
    pub configs: BTreeMap<ConfigResource, Configs>,
    topics: BTreeMap<Uuid, Topic>,
    ids: BTreeMap<String, Uuid>,
}

/// What a config belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigResource {
    /// Kafka's number of the kind: see the constants.
    pub kind: i8,
    /// The name of the topic, the node id, or empty for the default of all brokers.
    pub name: String,
}

impl ConfigResource {
    /// The kind of topics.
    pub const TOPIC: i8 = 2;
    /// The kind of brokers.
    pub const BROKER: i8 = 4;

    /// The name of the kind, as Kafka's tools print it.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            2 => "TOPIC",
            4 => "BROKER",
            8 => "BROKER_LOGGER",
            16 => "CLIENT_METRICS",
            32 => "GROUP",
            _ => "UNKNOWN",
        }
    }

    /// The configs of a topic.
    #[must_use]
    pub fn topic(name: &str) -> Self {
        ConfigResource { kind: Self::TOPIC, name: name.to_owned() }
    }

    /// The configs of one broker, or of all brokers together (`None`).
    #[must_use]
    pub fn broker(node_id: Option<i32>) -> Self {
        let name = node_id.map_or_else(String::new, |id| id.to_string());
        ConfigResource { kind: Self::BROKER, name }
    }
}

/// A voter of the KRaft quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voter {
    /// Node id.
    pub id: i32,
    /// Id of the voter's metadata directory.
    pub directory_id: Uuid,
    /// Where it listens.
    pub endpoints: Vec<VoterEndpoint>,
    /// The versions of KRaft that it understands, first and last.
    pub kraft_versions: (i16, i16),
}

/// Where a voter listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoterEndpoint {
    /// Name of the listener.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// A broker's registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Node id.
    pub id: i32,
    /// The epoch of this registration.
    pub epoch: i64,
    /// The id of this life of the process.
    pub incarnation: Uuid,
    /// The rack, where one is set.
    pub rack: Option<String>,
    /// Whether it may not lead: it has not been heard of, or has not caught up.
    pub fenced: bool,
    /// Whether it is about to stop.
    pub in_controlled_shutdown: bool,
    /// Ids of its log directories, ordered by id; empty also where it did not tell.
    pub directories: Vec<Uuid>,
    /// Log directories that get no new replica; `None` where it did not tell.
    pub cordoned_directories: Option<Vec<Uuid>>,
    /// Where it listens.
    pub listeners: Vec<Listener>,
}

/// Where a broker listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Name.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Kafka's number of the security protocol.
    pub security_protocol: i16,
}

impl Listener {
    /// The name of the security protocol.
    #[must_use]
    pub fn security_protocol_name(&self) -> &'static str {
        match self.security_protocol {
            0 => "PLAINTEXT",
            1 => "SSL",
            2 => "SASL_PLAINTEXT",
            3 => "SASL_SSL",
            _ => "UNKNOWN",
        }
    }
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// Its id; a topic made again under the name has another.
    pub id: Uuid,
    /// Its partitions, by index.
    pub partitions: BTreeMap<i32, Partition>,
}

/// A partition. Lists of nodes keep the order of the record that set them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The nodes that have a replica, the preferred leader first.
    pub replicas: Box<[i32]>,
    /// The log directory of each replica, in the order of `replicas`; see [`DIRECTORY_MIGRATING`].
    pub directories: Box<[Uuid]>,
    /// The replicas in sync.
    pub isr: Box<[i32]>,
    /// Replicas outside the ISR that may lead without loss.
    pub eligible_leader_replicas: Box<[i32]>,
    /// The last known such replicas.
    pub last_known_elr: Box<[i32]>,
    /// Replicas that a reassignment takes away.
    pub removing_replicas: Box<[i32]>,
    /// Replicas that a reassignment adds.
    pub adding_replicas: Box<[i32]>,
    /// The leader, -1 for none.
    pub leader: i32,
    /// 0 when the leader has all data, 1 while it recovers from an unclean election.
    pub leader_recovery_state: i8,
    /// The epoch of the leader; the next one counts from it.
    pub leader_epoch: i32,
    /// How many times the record of this partition was changed.
    pub partition_epoch: i32,
}

/// Directory id of a replica that may be in any directory of its broker.
pub const DIRECTORY_MIGRATING: Uuid = Uuid::ZERO;
/// Directory id of a replica that is not placed yet.
pub const DIRECTORY_UNASSIGNED: Uuid = Uuid::reserved(1);
/// Directory id of a replica in a directory that is offline.
pub const DIRECTORY_LOST: Uuid = Uuid::reserved(2);

/// Whether a directory id is one of the reserved ones and names no directory.
#[must_use]
pub fn is_reserved_directory(id: Uuid) -> bool {
    // spec: kraft-metadata 8
    u128::from_be_bytes(id.0) < 100
}

impl MetadataImage {
    /// The topics, ordered by name.
    pub fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.ids.values().filter_map(|id| self.topics.get(id))
    }

    /// The topic of this name.
    #[must_use]
    pub fn topic(&self, name: &str) -> Option<&Topic> {
        self.topics.get(self.ids.get(name)?)
    }

    /// The topic of this id.
    #[must_use]
    pub fn topic_by_id(&self, id: Uuid) -> Option<&Topic> {
        self.topics.get(&id)
    }

    /// The configs set on a topic.
    #[must_use]
    pub fn topic_configs(&self, name: &str) -> Option<&Configs> {
        self.configs.get(&ConfigResource::topic(name))
    }

    /// The dynamic configs of one broker, or of all brokers together (`None`).
    #[must_use]
    pub fn broker_configs(&self, node_id: Option<i32>) -> Option<&Configs> {
        self.configs.get(&ConfigResource::broker(node_id))
    }

    /// Both layers of dynamic configs of a broker; without a node id only that of all brokers.
    #[must_use]
    pub fn broker_layers(&self, node_id: Option<i32>) -> BrokerConfigs {
        let of = |node_id| self.broker_configs(node_id).cloned().unwrap_or_default();
        let node = node_id.map(|id| of(Some(id))).unwrap_or_default();
        BrokerConfigs { node, cluster: of(None) }
    }

    /// The name of the release of `metadata.version`, such as `4.3-IV0`.
    #[must_use]
    pub fn metadata_version_name(&self) -> Option<&'static str> {
        self.metadata_version.and_then(metadata_version_name)
    }

    pub(super) fn add_topic(&mut self, name: &str, id: Uuid) {
        // Kafka never has two topics of one name; were it so, the later one counts.
        if let Some(previous) = self.ids.insert(name.to_owned(), id) {
            self.topics.remove(&previous);
        }
        let topic = Topic { name: name.to_owned(), id, partitions: BTreeMap::new() };
        if let Some(previous) = self.topics.insert(id, topic)
            && previous.name != name
        {
            self.ids.remove(&previous.name);
        }
    }

    /// Removes the topic, its partitions and its configs; `false` when there is none.
    pub(super) fn remove_topic(&mut self, id: Uuid) -> bool {
        let Some(topic) = self.topics.remove(&id) else { return false };
        self.ids.remove(&topic.name);
        // spec: kraft-metadata 3. A topic made again under the name starts without configs.
        self.configs.remove(&ConfigResource::topic(&topic.name));
        true
    }

    pub(super) fn topic_mut(&mut self, id: Uuid) -> Option<&mut Topic> {
        self.topics.get_mut(&id)
    }

    pub(super) fn topics_mut(&mut self) -> impl Iterator<Item = &mut Topic> {
        self.topics.values_mut()
    }
}

/// The name of the release that a level of `metadata.version` came with; `None` for one that Kafka
/// 4.3.1 does not know.
#[must_use]
pub fn metadata_version_name(level: i16) -> Option<&'static str> {
    // spec: kraft-metadata 9
    Some(match level {
        7 => "3.3-IV3",
        8 => "3.4-IV0",
        9 => "3.5-IV0",
        10 => "3.5-IV1",
        11 => "3.5-IV2",
        12 => "3.6-IV0",
        13 => "3.6-IV1",
        14 => "3.6-IV2",
        15 => "3.7-IV0",
        16 => "3.7-IV1",
        17 => "3.7-IV2",
        18 => "3.7-IV3",
        19 => "3.7-IV4",
        20 => "3.8-IV0",
        21 => "3.9-IV0",
        22 => "4.0-IV0",
        23 => "4.0-IV1",
        24 => "4.0-IV2",
        25 => "4.0-IV3",
        26 => "4.1-IV0",
        27 => "4.1-IV1",
        28 => "4.2-IV0",
        29 => "4.2-IV1",
        30 => "4.3-IV0",
        31 => "4.4-IV0",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_made_again_has_neither_the_old_id_nor_the_old_configs() {
        let mut image = MetadataImage::default();
        let (old, new) = (Uuid::reserved(1001), Uuid::reserved(1002));
        image.add_topic("a", old);
        let configs = Configs::from([("retention.ms".to_owned(), "1".to_owned())]);
        image.configs.insert(ConfigResource::topic("a"), configs);
        assert!(image.remove_topic(old) && !image.remove_topic(old));
        image.add_topic("a", new);
        assert_eq!(image.topic("a").map(|topic| topic.id), Some(new));
        assert_eq!((image.topic_by_id(old), image.topic_configs("a")), (None, None));
    }

    #[test]
    fn names_and_ids_stay_paired_when_records_contradict_each_other() {
        let mut image = MetadataImage::default();
        image.add_topic("a", Uuid::reserved(1));
        image.add_topic("a", Uuid::reserved(2));
        image.add_topic("b", Uuid::reserved(2));
        assert_eq!(image.topics().map(|topic| topic.name.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(image.topic("a"), None);
        assert!(image.remove_topic(Uuid::reserved(2)));
        assert_eq!(image.topics().count(), 0);
    }

    #[test]
    fn reserved_directory_ids_name_no_directory() {
        for id in [DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, DIRECTORY_LOST, Uuid::reserved(99)] {
            assert!(is_reserved_directory(id));
        }
        assert!(!is_reserved_directory(Uuid::reserved(100)));
        assert!(!is_reserved_directory(Uuid([0x80; 16])));
    }
}
