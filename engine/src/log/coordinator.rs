//! What does a transaction coordinator know? The newest value of each transactional id in a
//! partition of `__transaction_state`.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{Error, Result};
use crate::io::Storage;
use crate::log::read_files::{LogReader, ReadOptions, read_log};
use crate::problem::Problem;
use crate::record::payload::{Value, decode_transaction_state};
use crate::record::scan::ScannedBatch;
use crate::record::{BatchHeader, Record};

/// The topic of the transaction coordinators.
pub const TRANSACTION_TOPIC: &str = "__transaction_state";

/// What a coordinator knows of one transactional id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinatedTransaction {
    /// The transactional id.
    pub transactional_id: String,
    /// Its producer.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// 0 empty, 1 ongoing, 2 and 3 about to commit and abort, 4 and 5 committed and aborted, 6
    /// dead.
    pub status: i8,
    /// When the transaction began, in milliseconds; -1 without one.
    pub started_ms: i64,
    /// Its timeout in milliseconds.
    pub timeout_ms: i32,
    /// The partitions in it.
    pub partitions: Vec<(String, i32)>,
}

impl CoordinatedTransaction {
    /// The name of the status, as Kafka spells it.
    #[must_use]
    pub fn status_name(&self) -> &'static str {
        match self.status {
            0 => "Empty",
            1 => "Ongoing",
            2 => "PrepareCommit",
            3 => "PrepareAbort",
            4 => "CompleteCommit",
            5 => "CompleteAbort",
            6 => "Dead",
            _ => "unknown",
        }
    }

    /// Whether the transaction is under way, or about to end, in this partition.
    // spec: internal-topics 3
    #[must_use]
    pub fn is_open_in(&self, topic: &str, partition: i32) -> bool {
        (1..=3).contains(&self.status)
            && self.partitions.iter().any(|(name, index)| name == topic && *index == partition)
    }
}

/// What the coordinators know whose partitions could be read.
#[derive(Clone, Debug, Default)]
pub struct Coordinators {
    by_transactional_id: HashMap<String, CoordinatedTransaction>,
    /// What stood in the way.
    pub problems: Vec<Problem>,
}

impl Coordinators {
    /// Reads one more partition of `__transaction_state`.
    ///
    /// # Errors
    /// The directory cannot be listed, or one of its logs cannot be read.
    pub fn read(&mut self, storage: &dyn Storage, dir: &Path, options: &ReadOptions) -> Result<()> {
        let mut reader = StateReader { known: self, failed: None };
        read_log(storage, dir, options, &mut reader)?;
        reader.failed.map_or(Ok(()), Err)
    }

    /// What is known of each producer.
    #[must_use]
    pub fn by_producer(&self) -> HashMap<i64, &CoordinatedTransaction> {
        self.by_transactional_id.values().map(|known| (known.producer_id, known)).collect()
    }

    /// How many transactional ids are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_transactional_id.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_transactional_id.is_empty()
    }

    fn take(&mut self, record: &Record<'_>) {
        let key = record.key.unwrap_or_default();
        // What cannot be decoded is skipped, as Kafka does.
        let Ok(decoded) = decode_transaction_state(key, record.value) else { return };
        let Some(id) = decoded.key.message().and_then(|key| key.data.text("transactionalId"))
        else {
            return;
        };
        match decoded.value.message().map(|value| transaction(id, &value.data)) {
            // A tombstone: the id is forgotten.
            None if record.value.is_none() => {
                self.by_transactional_id.remove(id);
            }
            None => {}
            Some(transaction) => {
                self.by_transactional_id.insert(id.to_owned(), transaction);
            }
        }
    }
}

fn transaction(id: &str, data: &Value<'_>) -> CoordinatedTransaction {
    let int = |name: &str| data.int(name).unwrap_or(-1);
    let topics = data.array("transactionPartitions").unwrap_or_default();
    let partitions = topics.iter().flat_map(|topic| {
        let name = topic.text("topic").unwrap_or_default();
        let indexes = topic.array("partitionIds").unwrap_or_default().iter();
        indexes.filter_map(move |index| match index {
            Value::Int(index) => Some((name.to_owned(), i32::try_from(*index).ok()?)),
            _ => None,
        })
    });
    CoordinatedTransaction {
        transactional_id: id.to_owned(),
        producer_id: int("producerId"),
        producer_epoch: i16::try_from(int("producerEpoch")).unwrap_or(-1),
        status: i8::try_from(int("transactionStatus")).unwrap_or(-1),
        started_ms: int("transactionStartTimestampMs"),
        timeout_ms: i32::try_from(int("transactionTimeoutMs")).unwrap_or(-1),
        partitions: partitions.collect(),
    }
}

struct StateReader<'a> {
    known: &'a mut Coordinators,
    failed: Option<Error>,
}

impl LogReader for StateReader<'_> {
    fn batch(&mut self, _batch: &ScannedBatch<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn record(&mut self, header: &BatchHeader, record: &Record<'_>) -> ControlFlow<()> {
        if !header.is_control() {
            self.known.take(record);
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, _path: &Path, problem: Problem) -> ControlFlow<()> {
        self.known.problems.push(problem);
        ControlFlow::Continue(())
    }

    fn failed(&mut self, path: &Path, error: Error) -> ControlFlow<()> {
        self.failed = Some(error.in_file(path));
        ControlFlow::Break(())
    }
}
