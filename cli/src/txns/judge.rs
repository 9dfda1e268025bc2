//! Does an open transaction hang? Its coordinator's log tells, where this node has it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use siltstone::dir::files::LOCK_FILE;
use siltstone::dir::metadata::{MetadataOptions, find_metadata, load_metadata};
use siltstone::log::coordinator::TRANSACTION_TOPIC;
use siltstone::log::{
    CoordinatedTransaction, Coordinators, FolderName, OpenTransaction, ReadOptions,
};
use siltstone::{Error, Kind};

use crate::session::Session;
use crate::settings::NO_METADATA;
use crate::target::{PartitionDir, Target};

/// What is known of the coordinators.
#[derive(Debug, Default)]
pub(super) struct Judge {
    by_producer: HashMap<i64, CoordinatedTransaction>,
    /// Partitions of `__transaction_state` of which this node has a replica.
    pub(super) here: BTreeSet<i32>,
    /// How many there are, where the metadata tells.
    pub(super) partitions: Option<usize>,
    /// Whether a broker is running on one of the directories.
    pub(super) is_running: bool,
    now_ms: i64,
    max_timeout_ms: i64,
}

/// What becomes of an open transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// `ongoing`, `hanging` or `unknown`.
    pub(super) state: &'static str,
    /// Why, in a few words.
    pub(super) why: String,
    pub(super) transactional_id: Option<String>,
    pub(super) coordinator_status: Option<&'static str>,
}

impl Verdict {
    pub(super) fn is_hanging(&self) -> bool {
        self.state == "hanging"
    }
}

impl Judge {
    /// Reads the coordinators' logs of these log directories.
    pub(super) fn read(
        session: &Session,
        dirs: &[PathBuf],
        metadata: Option<&Path>,
    ) -> (Judge, Vec<Error>) {
        let storage = session.storage();
        let (mut judge, mut errors) = (Judge::default(), Vec::new());
        let mut coordinators = Coordinators::default();
        let options = ReadOptions { maps: session.maps, ..ReadOptions::default() };
        for dir in dirs {
            judge.is_running |= storage.is_locked(&dir.join(LOCK_FILE)).unwrap_or(false);
            let folders = PartitionDir::of_target(storage, &Target::LogDir(dir.clone()));
            let folders = folders.unwrap_or_else(|error| {
                errors.push(error);
                Vec::new()
            });
            for partition in folders.iter().filter(|partition| partition.is_live()) {
                let Some(folder) = &partition.folder else { continue };
                if folder.topic != TRANSACTION_TOPIC {
                    continue;
                }
                match coordinators.read(storage, &partition.path, &options) {
                    Ok(()) => {
                        judge.here.insert(folder.partition);
                    }
                    Err(error) => errors.push(error),
                }
            }
        }
        judge.partitions = count_partitions(session, dirs, metadata, &mut errors);
        let known = coordinators.by_producer().into_iter();
        judge.by_producer = known.map(|(id, known)| (id, known.clone())).collect();
        (judge, errors)
    }

    /// The same with a clock.
    pub(super) fn with_clock(mut self, now_ms: i64, max_timeout_ms: i64) -> Self {
        (self.now_ms, self.max_timeout_ms) = (now_ms, max_timeout_ms);
        self
    }

    /// How many transactional ids' producers are known.
    pub(super) fn producers(&self) -> usize {
        self.by_producer.len()
    }

    /// Whether all coordinators' logs could be looked at.
    pub(super) fn is_complete(&self) -> bool {
        self.partitions.is_some_and(|count| self.here.len() >= count)
    }

    /// What becomes of a transaction of this partition.
    // spec: internal-topics 3
    pub(super) fn of(&self, folder: Option<&FolderName>, txn: &OpenTransaction) -> Verdict {
        let known = self.by_producer.get(&txn.producer_id);
        let verdict = |state, why: &str| Verdict {
            state,
            why: why.to_owned(),
            transactional_id: known.map(|known| known.transactional_id.clone()),
            coordinator_status: known.map(CoordinatedTransaction::status_name),
        };
        let Some(folder) = folder else {
            return verdict("unknown", "the directory's name is no partition's");
        };
        let why = match known {
            Some(known) if known.is_open_in(&folder.topic, folder.partition) => {
                return verdict("ongoing", "its coordinator knows it");
            }
            Some(_) => "its coordinator has no such transaction of its producer",
            None if self.here.is_empty() => {
                return verdict("unknown", "this node has no replica of __transaction_state");
            }
            None if self.is_complete() => "no coordinator knows its producer",
            None => return verdict("unknown", "its coordinator's log may be on another node"),
        };
        let age = self.now_ms.saturating_sub(txn.started_ms.unwrap_or(txn.last_timestamp_ms));
        if self.is_running && age < self.max_timeout_ms {
            return verdict("unknown", "too young to tell beside a running broker");
        }
        verdict("hanging", why)
    }
}

/// How many partitions `__transaction_state` has, by the metadata log.
fn count_partitions(
    session: &Session,
    dirs: &[PathBuf],
    metadata: Option<&Path>,
    errors: &mut Vec<Error>,
) -> Option<usize> {
    let places = metadata.map_or_else(|| dirs.to_vec(), |dir| vec![dir.to_path_buf()]);
    let Some(folder) = find_metadata(session.storage(), &places) else {
        let given = metadata.map(|dir| Error::new(Kind::NotFound, NO_METADATA).in_file(dir));
        errors.extend(given);
        return None;
    };
    match load_metadata(session.storage(), &folder, &MetadataOptions::default()) {
        // What stands behind damage may be one more partition.
        Ok(loaded) if !loaded.is_whole => {
            let said = loaded.warnings.into_iter();
            errors.extend(said.map(|warning| Error::corrupt(warning).in_file(&folder)));
            None
        }
        Ok(loaded) => loaded.image.topic(TRANSACTION_TOPIC).map(|topic| topic.partitions.len()),
        Err(error) => {
            errors.push(error);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(producer_id: i64) -> OpenTransaction {
        OpenTransaction {
            producer_id,
            producer_epoch: 0,
            first_offset: 7,
            started_ms: Some(1000),
            last_offset: 9,
            last_timestamp_ms: 2000,
        }
    }

    fn judge() -> Judge {
        let transaction = CoordinatedTransaction {
            transactional_id: "t".to_owned(),
            producer_id: 1,
            producer_epoch: 0,
            status: 1,
            started_ms: 900,
            timeout_ms: 60_000,
            partitions: vec![("orders".to_owned(), 0)],
        };
        Judge {
            by_producer: [(1, transaction)].into_iter().collect(),
            here: [0].into_iter().collect(),
            partitions: Some(1),
            ..Judge::default()
        }
        .with_clock(5000, 3000)
    }

    fn state(judge: &Judge, name: &str, producer_id: i64) -> &'static str {
        judge.of(FolderName::parse(name).as_ref(), &open(producer_id)).state
    }

    #[test]
    fn a_transaction_hangs_when_its_coordinator_does_not_know_it() {
        let judge = judge();
        assert_eq!(state(&judge, "orders-0", 1), "ongoing");
        assert_eq!(state(&judge, "orders-1", 1), "hanging");
        assert_eq!(state(&judge, "orders-0", 2), "hanging");
        assert_eq!(state(&judge, "a copy", 1), "unknown");
    }

    #[test]
    fn without_all_coordinators_an_unknown_producer_cannot_be_judged() {
        let judge = Judge { partitions: Some(50), ..judge() };
        assert_eq!(state(&judge, "orders-0", 2), "unknown");
        // Its producer is known here, so no other coordinator has it.
        assert_eq!(state(&judge, "orders-1", 1), "hanging");
        let judge = Judge { partitions: None, here: BTreeSet::new(), ..judge };
        assert_eq!(state(&judge, "orders-0", 2), "unknown");
    }

    #[test]
    fn beside_a_running_broker_a_young_transaction_does_not_hang() {
        let judge = Judge { is_running: true, ..judge() };
        assert_eq!(state(&judge, "orders-0", 2), "hanging");
        assert_eq!(state(&judge.with_clock(5000, 4001), "orders-0", 2), "unknown");
    }
}
