//! What does one record of the metadata log change?

use crate::record::payload::{Message, Value};
use crate::uuid::Uuid;

use super::image::{
    Broker, ConfigResource, DIRECTORY_MIGRATING, Listener, MetadataImage, Partition, Voter,
    VoterEndpoint,
};

/// Why a record has no effect: it contradicts what came before, or its own layout.
pub(super) type Refused = String;

type Applied = std::result::Result<(), Refused>;

impl MetadataImage {
    /// Applies a record that is not about transactions. What is not about topics, brokers, features
    /// or configs changes nothing.
    pub(super) fn apply(&mut self, record: &Message<'_>) -> Applied {
        // spec: kraft-metadata 3
        let data = Fields { record: record.name, data: &record.data };
        match record.name {
            "TopicRecord" => {
                self.add_topic(data.text("name")?, data.uuid("topicId")?);
                Ok(())
            }
            "RemoveTopicRecord" => {
                let id = data.uuid("topicId")?;
                if self.remove_topic(id) { Ok(()) } else { Err(data.unknown("topic id", id)) }
            }
            "PartitionRecord" => self.set_partition(&data),
            "PartitionChangeRecord" => self.change_partition(&data),
            "ClearElrRecord" => {
                let name = data.text("topicName")?;
                let topics =
                    self.topics_mut().filter(|topic| name.is_empty() || topic.name == name);
                topics.flat_map(|topic| topic.partitions.values_mut()).for_each(clear_elr);
                Ok(())
            }
            "ConfigRecord" => self.set_config(&data),
            "FeatureLevelRecord" => self.set_feature(&data),
            "RegisterBrokerRecord" => {
                let broker = read_broker(&data)?;
                self.brokers.insert(broker.id, broker);
                Ok(())
            }
            "UnregisterBrokerRecord" => {
                let id = data.int("brokerId")?;
                self.brokers.remove(&id).map(drop).ok_or_else(|| data.unknown("broker", id))
            }
            "BrokerRegistrationChangeRecord" => self.change_broker(&data),
            "FenceBrokerRecord" => {
                self.broker(&data, "id", "epoch")?.fenced = true;
                Ok(())
            }
            "UnfenceBrokerRecord" => {
                self.broker(&data, "id", "epoch")?.fenced = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Applies a control record: leader, KRaft version and voters.
    pub(super) fn apply_control(&mut self, record: &Message<'_>) -> Applied {
        let data = Fields { record: record.name, data: &record.data };
        match record.name {
            "LEADER_CHANGE" => self.controller = Some(data.int("leaderId")?),
            "KRAFT_VERSION" => self.kraft_version = Some(data.int("kRaftVersion")?),
            "KRAFT_VOTERS" => {
                let voters = record.data.array("voters").unwrap_or_default();
                self.voters = Some(voters.iter().map(read_voter).collect::<Result<_, _>>()?);
            }
            _ => {}
        }
        Ok(())
    }

    fn set_partition(&mut self, data: &Fields<'_>) -> Applied {
        let id = data.uuid("topicId")?;
        let replicas = data.ints("replicas").unwrap_or_default();
        let directories = data.uuids("directories").filter(|ids| !ids.is_empty());
        let partition = Partition {
            directories: directories.unwrap_or_else(|| migrating(replicas.len())),
            isr: data.ints("isr").unwrap_or_default(),
            eligible_leader_replicas: data.ints("eligibleLeaderReplicas").unwrap_or_default(),
            last_known_elr: data.ints("lastKnownElr").unwrap_or_default(),
            removing_replicas: data.ints("removingReplicas").unwrap_or_default(),
            adding_replicas: data.ints("addingReplicas").unwrap_or_default(),
            leader: data.int("leader")?,
            leader_recovery_state: data.int_or("leaderRecoveryState", 0)?,
            leader_epoch: data.int("leaderEpoch")?,
            partition_epoch: data.int("partitionEpoch")?,
            replicas,
        };
        let topic = self.topic_mut(id).ok_or_else(|| data.unknown("topic id", id))?;
        topic.partitions.insert(data.int("partitionId")?, partition);
        Ok(())
    }

    fn change_partition(&mut self, data: &Fields<'_>) -> Applied {
        let (id, index) = (data.uuid("topicId")?, data.int("partitionId")?);
        let topic = self.topic_mut(id).ok_or_else(|| data.unknown("topic id", id))?;
        let partition = topic.partitions.get_mut(&index);
        let partition = partition.ok_or_else(|| data.unknown("partition", index))?;
        let set = |target: &mut Box<[i32]>, name| {
            if let Some(value) = data.ints(name) {
                *target = value;
            }
        };
        set(&mut partition.isr, "isr");
        set(&mut partition.replicas, "replicas");
        set(&mut partition.removing_replicas, "removingReplicas");
        set(&mut partition.adding_replicas, "addingReplicas");
        set(&mut partition.eligible_leader_replicas, "eligibleLeaderReplicas");
        set(&mut partition.last_known_elr, "lastKnownElr");
        if let Some(directories) = data.uuids("directories") {
            partition.directories = directories;
        }
        // Kafka fails here; that it is not known where the replicas are is no reason to know
        // nothing.
        if partition.directories.len() != partition.replicas.len() {
            partition.directories = migrating(partition.replicas.len());
        }
        // Also when the leader stays the same: spec kraft-metadata 3.
        if data.has("leader") {
            partition.leader = data.int("leader")?;
            partition.leader_epoch = partition.leader_epoch.wrapping_add(1);
        }
        if data.has("leaderRecoveryState") {
            partition.leader_recovery_state = data.int("leaderRecoveryState")?;
        }
        partition.partition_epoch = partition.partition_epoch.wrapping_add(1);
        Ok(())
    }

    fn set_config(&mut self, data: &Fields<'_>) -> Applied {
        let name = data.text("resourceName")?.to_owned();
        let resource = ConfigResource { kind: data.int("resourceType")?, name };
        let key = data.text("name")?;
        match data.data.text("value") {
            Some(value) => {
                let configs = self.configs.entry(resource).or_default();
                configs.insert(key.to_owned(), value.to_owned());
            }
            None => {
                if let Some(configs) = self.configs.get_mut(&resource) {
                    configs.remove(key);
                    if configs.is_empty() {
                        self.configs.remove(&resource);
                    }
                }
            }
        }
        Ok(())
    }

    fn set_feature(&mut self, data: &Fields<'_>) -> Applied {
        let level: i16 = data.int("featureLevel")?;
        match data.text("name")? {
            "metadata.version" => self.metadata_version = Some(level),
            // It lives in control records.
            "kraft.version" => {}
            name if level == 0 => {
                self.features.remove(name);
            }
            name => {
                self.features.insert(name.to_owned(), level);
            }
        }
        Ok(())
    }

    fn change_broker(&mut self, data: &Fields<'_>) -> Applied {
        let broker = self.broker(data, "brokerId", "brokerEpoch")?;
        match data.int_or("fenced", 0_i8)? {
            -1 => broker.fenced = false,
            1 => broker.fenced = true,
            _ => {}
        }
        if data.int_or("inControlledShutdown", 0_i8)? == 1 {
            broker.in_controlled_shutdown = true;
        }
        if let Some(directories) = data.uuids("logDirs").filter(|ids| !ids.is_empty()) {
            broker.directories = directories.into_vec();
        }
        if let Some(cordoned) = data.uuids("cordonedLogDirs") {
            broker.cordoned_directories = Some(cordoned.into_vec());
        }
        Ok(())
    }

    /// The registration that a record is about: of the same id and the same epoch.
    fn broker(&mut self, data: &Fields<'_>, id: &str, epoch: &str) -> Result<&mut Broker, Refused> {
        let (id, epoch) = (data.int(id)?, data.int::<i64>(epoch)?);
        let broker = self.brokers.get_mut(&id).ok_or_else(|| data.unknown("broker", id))?;
        if broker.epoch == epoch {
            return Ok(broker);
        }
        let (record, known) = (data.record, broker.epoch);
        Err(format!("{record} is about epoch {epoch} of broker {id}, which has epoch {known}"))
    }
}

fn clear_elr(partition: &mut Partition) {
    if partition.eligible_leader_replicas.is_empty() && partition.last_known_elr.is_empty() {
        return;
    }
    partition.eligible_leader_replicas = Box::default();
    partition.last_known_elr = Box::default();
    partition.partition_epoch = partition.partition_epoch.wrapping_add(1);
}

fn migrating(count: usize) -> Box<[Uuid]> {
    vec![DIRECTORY_MIGRATING; count].into_boxed_slice()
}

fn read_broker(data: &Fields<'_>) -> Result<Broker, Refused> {
    let endpoints = data.data.array("endPoints").unwrap_or_default();
    let listeners = endpoints.iter().map(|endpoint| {
        let endpoint = Fields { record: data.record, data: endpoint };
        Ok(Listener {
            name: endpoint.text("name")?.to_owned(),
            host: endpoint.text("host")?.to_owned(),
            port: endpoint.int("port")?,
            security_protocol: endpoint.int("securityProtocol")?,
        })
    });
    Ok(Broker {
        id: data.int("brokerId")?,
        epoch: data.int("brokerEpoch")?,
        incarnation: data.uuid("incarnationId")?,
        rack: data.data.text("rack").map(str::to_owned),
        fenced: data.data.bool("fenced").unwrap_or_default(),
        in_controlled_shutdown: data.data.bool("inControlledShutdown").unwrap_or_default(),
        directories: data.uuids("logDirs").unwrap_or_default().into_vec(),
        cordoned_directories: data.uuids("cordonedLogDirs").map(Vec::from),
        listeners: listeners.collect::<Result<_, Refused>>()?,
    })
}

fn read_voter(voter: &Value<'_>) -> Result<Voter, Refused> {
    let data = Fields { record: "KRAFT_VOTERS", data: voter };
    let endpoints = voter.array("endpoints").unwrap_or_default();
    let endpoints = endpoints.iter().map(|endpoint| {
        let endpoint = Fields { record: data.record, data: endpoint };
        Ok(VoterEndpoint {
            name: endpoint.text("name")?.to_owned(),
            host: endpoint.text("host")?.to_owned(),
            port: endpoint.int("port")?,
        })
    });
    let versions = voter.field("kRaftVersionFeature").unwrap_or(&Value::Null);
    let versions = Fields { record: data.record, data: versions };
    Ok(Voter {
        id: data.int("voterId")?,
        directory_id: data.uuid("voterDirectoryId")?,
        endpoints: endpoints.collect::<Result<_, Refused>>()?,
        kraft_versions: (
            versions.int("minSupportedVersion")?,
            versions.int("maxSupportedVersion")?,
        ),
    })
}

/// The fields of a record, by name and in the width that they have.
struct Fields<'a> {
    record: &'static str,
    data: &'a Value<'a>,
}

impl<'a> Fields<'a> {
    fn has(&self, name: &str) -> bool {
        self.data.field(name).is_some()
    }

    fn int<T: TryFrom<i64>>(&self, name: &str) -> Result<T, Refused> {
        let value = self.data.int(name).and_then(|value| T::try_from(value).ok());
        value.ok_or_else(|| self.missing(name))
    }

    fn int_or<T: TryFrom<i64>>(&self, name: &str, default: T) -> Result<T, Refused> {
        if self.has(name) { self.int(name) } else { Ok(default) }
    }

    fn text(&self, name: &str) -> Result<&'a str, Refused> {
        self.data.text(name).ok_or_else(|| self.missing(name))
    }

    fn uuid(&self, name: &str) -> Result<Uuid, Refused> {
        self.data.uuid(name).ok_or_else(|| self.missing(name))
    }

    /// An array of integers; `None` where it is absent or null.
    fn ints(&self, name: &str) -> Option<Box<[i32]>> {
        let elements = self.data.array(name)?.iter();
        let ints = elements.filter_map(|element| match element {
            Value::Int(value) => i32::try_from(*value).ok(),
            _ => None,
        });
        Some(ints.collect())
    }

    /// An array of ids; `None` where it is absent or null.
    fn uuids(&self, name: &str) -> Option<Box<[Uuid]>> {
        let elements = self.data.array(name)?.iter();
        let ids = elements.filter_map(|element| match element {
            Value::Uuid(id) => Some(*id),
            _ => None,
        });
        Some(ids.collect())
    }

    fn missing(&self, name: &str) -> Refused {
        format!("{} without {name}", self.record)
    }

    fn unknown(&self, what: &str, which: impl std::fmt::Display) -> Refused {
        format!("{} names {what} {which}, which does not exist", self.record)
    }
}
