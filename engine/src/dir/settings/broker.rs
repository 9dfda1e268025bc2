//! The settings of a broker, ready for use.

use std::path::PathBuf;

use crate::error::{Error, Kind, Result};

use super::value::Values;
use super::{Resolved, Source};

/// The settings of a broker that a tool needs.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerSettings {
    /// `node.id`, where it is set.
    pub node_id: Option<i32>,
    /// `log.dirs`, or the one of `log.dir`.
    pub log_dirs: Vec<PathBuf>,
    /// `metadata.log.dir`, or the first of `log_dirs`.
    pub metadata_log_dir: PathBuf,
    /// Whether `process.roles` has `controller`.
    pub is_controller: bool,
    /// The node ids of `controller.quorum.voters`; none where the voters stand in the metadata
    /// log.
    pub quorum_voters: Vec<i32>,
    /// `producer.id.expiration.ms`: how long an idle producer is remembered, in milliseconds.
    pub producer_id_expiration_ms: i64,
    /// `transaction.max.timeout.ms`: the longest timeout that a transaction may ask for, in
    /// milliseconds.
    pub transaction_max_timeout_ms: i64,
    /// `num.recovery.threads.per.data.dir`.
    pub recovery_threads_per_data_dir: u32,
    /// `remote.log.storage.system.enable`.
    pub remote_storage: bool,
    /// Every setting with its source, ordered by name.
    pub resolved: Vec<Resolved>,
}

impl BrokerSettings {
    pub(super) fn new(resolved: Vec<Resolved>) -> Result<Self> {
        let values = Values(&resolved);
        let source = |name: &str| values.find(name).map_or(Source::Default, |found| found.source);
        let dirs = values.list("log.dirs").iter().filter(|dir| !dir.is_empty());
        let mut log_dirs: Vec<PathBuf> = dirs.map(PathBuf::from).collect();
        if log_dirs.is_empty() {
            // Kafka reads it as a list as well.
            let dirs = values.text("log.dir").split(',').map(str::trim);
            log_dirs.extend(dirs.filter(|dir| !dir.is_empty()).map(PathBuf::from));
        }
        let metadata_log_dir = match values.text("metadata.log.dir") {
            "" => log_dirs.first().cloned().unwrap_or_default(),
            dir => PathBuf::from(dir),
        };
        let voters =
            values.list("controller.quorum.voters").iter().filter(|voter| !voter.is_empty());
        let quorum_voters: Result<Vec<i32>> = voters
            .map(|voter| {
                let id = voter.split_once('@').and_then(|(id, _)| id.parse().ok());
                id.ok_or_else(|| {
                    let from = source("controller.quorum.voters");
                    let message = format!(
                        "controller.quorum.voters in {from} has \"{voter}\", which is not \
                         ID@HOST:PORT"
                    );
                    Error::new(Kind::InvalidArgument, message)
                })
            })
            .collect();
        let node_id: i32 = values.int("node.id");
        Ok(BrokerSettings {
            node_id: (node_id >= 0).then_some(node_id),
            log_dirs,
            metadata_log_dir,
            is_controller: values.list("process.roles").iter().any(|role| role == "controller"),
            quorum_voters: quorum_voters?,
            producer_id_expiration_ms: values.int("producer.id.expiration.ms"),
            transaction_max_timeout_ms: values.int("transaction.max.timeout.ms"),
            recovery_threads_per_data_dir: values.int("num.recovery.threads.per.data.dir"),
            remote_storage: values.bool("remote.log.storage.system.enable"),
            resolved,
        })
    }

    /// The source of a setting.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<Source> {
        Values(&self.resolved).find(name).map(|setting| setting.source)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layers, Resolver, read_server_properties};
    use super::*;

    fn settings(file: &str) -> Result<BrokerSettings> {
        let server_properties = read_server_properties(file.as_bytes()).unwrap();
        Resolver::new(Layers { server_properties, ..Layers::default() })?.broker()
    }

    #[test]
    fn directories_come_from_the_first_name_that_has_any() {
        let default = settings("").unwrap();
        assert_eq!(default.log_dirs, [PathBuf::from("/tmp/kafka-logs")]);
        assert_eq!(default.metadata_log_dir, PathBuf::from("/tmp/kafka-logs"));
        assert_eq!((default.node_id, default.producer_id_expiration_ms), (None, 86_400_000));
        let both =
            settings("log.dir=/x\nlog.dirs=/a , /b\nmetadata.log.dir=/m\nnode.id=7").unwrap();
        assert_eq!(both.log_dirs, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!((both.metadata_log_dir, both.node_id), (PathBuf::from("/m"), Some(7)));
        let single = settings("log.dir=/x").unwrap();
        assert_eq!((single.log_dirs, single.metadata_log_dir), (vec!["/x".into()], "/x".into()));
    }

    #[test]
    fn voters_are_read_by_their_ids() {
        let file =
            "controller.quorum.voters=1@a:9093, 22@[::1]:9093\nprocess.roles=broker, controller";
        let settings = settings(file).unwrap();
        assert_eq!(settings.quorum_voters, [1, 22]);
        assert!(settings.is_controller);
        assert_eq!(settings.source("node.id"), Some(Source::Default));
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
        for file in
            ["node.id=x", "controller.quorum.voters=a:1", "num.recovery.threads.per.data.dir=0"]
        {
            assert_eq!(settings(file).unwrap_err().kind(), Kind::InvalidArgument, "{file}");
        }
    }
}
