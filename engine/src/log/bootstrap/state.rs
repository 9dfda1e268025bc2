//! Are these the leader epochs and the producers of a log that ends here?

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::state::LeaderEpochs;
use crate::state::checkpoint::parse_epochs;
use crate::state::snapshot::Snapshot;
use crate::uuid::Uuid;

/// Where a log is to begin anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuxTarget {
    /// The first offset that readers may ask for; it lies in remote storage.
    pub log_start_offset: i64,
    /// The offset behind the remote segment: the first that will be local.
    pub next_offset: i64,
    /// The leader epoch of the offset before it.
    pub last_epoch: i32,
    /// The topic's id, to be written down where the partition has none yet.
    pub topic_id: Option<Uuid>,
}

/// One of the two objects that the state is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuxObject {
    /// The checkpoint of leader epochs.
    LeaderEpochs,
    /// The snapshot of the producers.
    ProducerSnapshot,
}

/// An object that cannot be used.
#[derive(Debug)]
pub struct AuxFault {
    /// Which one.
    pub object: AuxObject,
    /// Why.
    pub error: Error,
}

/// What a log takes over from remote storage: checked, and not yet part of any log.
#[derive(Clone, Debug)]
pub struct AuxState {
    pub(super) target: AuxTarget,
    pub(super) epochs: Arc<LeaderEpochs>,
    pub(super) snapshot: Arc<Vec<u8>>,
    producer_count: usize,
    first_open_offset: Option<i64>,
}

impl AuxState {
    /// Checks the bytes of both objects.
    ///
    /// # Errors
    /// The first object that is not what it has to be: epochs that do not rise, do not end before
    /// `next_offset` or end with another epoch than the segment; a snapshot that is cut off, of an
    /// unknown version, with a wrong checksum, or with offsets behind its own.
    pub fn check(
        target: AuxTarget,
        epochs: &[u8],
        snapshot: Arc<Vec<u8>>,
    ) -> std::result::Result<Self, AuxFault> {
        // spec: follower-fetch 7
        let epochs = check_epochs(&target, epochs)
            .map_err(|error| AuxFault { object: AuxObject::LeaderEpochs, error })?;
        let (producer_count, first_open_offset) = check_snapshot(&target, &snapshot)
            .map_err(|error| AuxFault { object: AuxObject::ProducerSnapshot, error })?;
        let epochs = Arc::new(epochs);
        Ok(AuxState { target, epochs, snapshot, producer_count, first_open_offset })
    }

    /// The same without the bytes of the snapshot, once they are on the disk.
    pub(crate) fn without_snapshot(self) -> Self {
        AuxState { snapshot: Arc::default(), ..self }
    }

    /// Where the log begins.
    #[must_use]
    pub fn target(&self) -> &AuxTarget {
        &self.target
    }

    /// The leader epochs.
    #[must_use]
    pub fn epochs(&self) -> &Arc<LeaderEpochs> {
        &self.epochs
    }

    /// How many producers the snapshot has.
    #[must_use]
    pub fn producer_count(&self) -> usize {
        self.producer_count
    }

    /// Where the oldest transaction begins that was open at the end of the segment. Its marker
    /// follows: no segment is uploaded before its transactions are decided.
    #[must_use]
    pub fn first_open_offset(&self) -> Option<i64> {
        self.first_open_offset
    }
}

fn check_epochs(target: &AuxTarget, bytes: &[u8]) -> Result<LeaderEpochs> {
    let AuxTarget { next_offset, last_epoch, .. } = *target;
    let entries = parse_epochs(bytes)?;
    let mut pairs = entries.iter().zip(entries.iter().skip(1));
    if let Some((entry, next)) =
        pairs.find(|(a, b)| b.epoch <= a.epoch || b.start_offset <= a.start_offset)
    {
        let message = format!(
            "epoch {} from offset {} is followed by epoch {} from offset {}",
            entry.epoch, entry.start_offset, next.epoch, next.start_offset
        );
        return Err(Error::corrupt(message));
    }
    let epochs = LeaderEpochs::from_entries(&entries)
        .map_err(|error| Error::corrupt(error.message().to_owned()))?;
    match epochs.latest() {
        None => Err(Error::corrupt("there is no leader epoch")),
        Some(latest) if latest.start_offset >= next_offset => {
            let (epoch, start) = (latest.epoch, latest.start_offset);
            let message = format!("epoch {epoch} starts at {start}, the segment ends before that");
            Err(Error::corrupt(message))
        }
        Some(latest) if latest.epoch != last_epoch => {
            let found = latest.epoch;
            let message = format!("the segment ends in epoch {last_epoch}, the list in {found}");
            Err(Error::corrupt(message))
        }
        // A number that lost its last digits is a number, too.
        Some(_) if epochs.format() != bytes => {
            Err(Error::corrupt("the checkpoint is not written as Kafka writes it"))
        }
        Some(_) => Ok(epochs),
    }
}

fn check_snapshot(target: &AuxTarget, bytes: &[u8]) -> Result<(usize, Option<i64>)> {
    let snapshot = Snapshot::read(bytes)?;
    let mut first_open = i64::MAX;
    for entry in snapshot.iter() {
        let last = entry.last_offset.max(entry.txn_first_offset);
        if last >= target.next_offset {
            let (id, next) = (entry.producer_id, target.next_offset);
            let message = format!("producer {id} has offset {last} in the snapshot at {next}");
            return Err(Error::corrupt(message));
        }
        if entry.in_transaction() {
            first_open = first_open.min(entry.txn_first_offset);
        }
    }
    Ok((snapshot.len(), (first_open < i64::MAX).then_some(first_open)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::state::producer::ProducerEntry;
    use crate::state::snapshot::write_snapshot;

    const TARGET: AuxTarget =
        AuxTarget { log_start_offset: 0, next_offset: 150, last_epoch: 1, topic_id: None };

    fn snapshot(last_offset: i64, txn_first_offset: i64) -> Arc<Vec<u8>> {
        let entry = ProducerEntry {
            last_offset,
            txn_first_offset,
            last_sequence: 4,
            ..ProducerEntry::empty(7)
        };
        Arc::new(write_snapshot([&entry]))
    }

    fn fault(epochs: &str, snapshot: Arc<Vec<u8>>) -> (AuxObject, String) {
        let fault = AuxState::check(TARGET, epochs.as_bytes(), snapshot).unwrap_err();
        (fault.object, fault.error.message().to_owned())
    }

    #[test]
    fn both_objects_are_read_and_what_they_say_is_known() {
        // spec: tiered-behaviours FF15
        let state = AuxState::check(TARGET, b"0\n2\n0 0\n1 85\n", snapshot(149, 120)).unwrap();
        assert_eq!(state.epochs().format(), b"0\n2\n0 0\n1 85\n");
        assert_eq!((state.producer_count(), state.first_open_offset()), (1, Some(120)));
    }

    #[test]
    fn epochs_must_rise_end_in_the_segments_epoch_and_begin_before_its_end() {
        let good = snapshot(149, -1);
        for (text, start) in [
            ("", "there is no leader epoch"),
            ("0\n0\n", "there is no leader epoch"),
            ("0\n2\n1 85\n0 0\n", "epoch 1 from offset 85 is followed by epoch 0 from offset 0"),
            ("0\n2\n0 85\n1 85\n", "epoch 0 from offset 85 is followed by epoch 1 from offset 85"),
            ("0\n1\n1 150\n", "epoch 1 starts at 150"),
            ("0\n1\n0 0\n", "the segment ends in epoch 1, the list in 0"),
            ("0\n2\n1 0\n2 85\n", "the segment ends in epoch 1, the list in 2"),
            ("0\n2\n0 0\n1 8", "the checkpoint is not written as Kafka writes it"),
            ("0\n2\n0 0\n1 85", "the checkpoint is not written as Kafka writes it"),
            ("0\n2\n0 0\n1 085\n", "the checkpoint is not written as Kafka writes it"),
            ("0\n2\n1 0\n", "line 2 announces 2 entries, 1 follow"),
            ("0\n1\n1 -4\n", "leader epoch 1 cannot start at offset -4"),
        ] {
            let (object, message) = fault(text, Arc::clone(&good));
            assert_eq!(object, AuxObject::LeaderEpochs, "{text:?}");
            assert!(message.starts_with(start), "{text:?}: {message}");
        }
    }

    #[test]
    fn a_snapshot_must_be_whole_and_of_the_offset() {
        let epochs = "0\n2\n0 0\n1 85\n";
        let good = snapshot(149, -1);
        for end in 0..good.len() {
            let cut = Arc::new(good.get(..end).unwrap().to_vec());
            assert_eq!(fault(epochs, cut).0, AuxObject::ProducerSnapshot, "{end} bytes");
        }
        for at in 0..good.len() {
            let mut flipped = good.to_vec();
            *flipped.get_mut(at).unwrap() ^= 0x10;
            assert_eq!(fault(epochs, Arc::new(flipped)).0, AuxObject::ProducerSnapshot, "{at}");
        }
        for snapshot in [snapshot(150, -1), snapshot(149, 150)] {
            let (object, message) = fault(epochs, snapshot);
            assert_eq!(object, AuxObject::ProducerSnapshot);
            assert_eq!(message, "producer 7 has offset 150 in the snapshot at 150");
        }
    }
}
