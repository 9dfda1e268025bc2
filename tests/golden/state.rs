//! Producer snapshots, leader epochs and checkpoint files.

use siltstone::state::producer::NO_OFFSET;
use siltstone::state::{
    EpochEntry, LeaderEpochs, OffsetCheckpoint, ProducerEntry, Snapshot, checkpoint, write_snapshot,
};
use siltstone_tests::expect::{FileSum, Loaded, Producer};
use siltstone_tests::sha256;

use crate::{for_each_kit, partitions};

for_each_kit!(snapshots_are_kafkas);

fn snapshots_are_kafkas(kit: &str) {
    for partition in partitions(kit) {
        for want in &partition.expectation.raw.snapshots {
            let label = format!("{} {}", partition.label(), want.file);
            let bytes = partition.read(&want.file).expect(&label);
            let snapshot = Snapshot::read(&bytes).expect(&label);
            let got: Vec<Producer> = snapshot.iter().map(producer).collect();
            assert_eq!(got, want.entries, "{label}");
            let entries: Vec<ProducerEntry> = snapshot.iter().collect();
            assert_eq!(write_snapshot(&entries), bytes, "{label}: written again");
        }
    }
}

/// An entry in the words of the expectations.
pub(crate) fn producer(entry: ProducerEntry) -> Producer {
    let batch = entry.has_batch().then(|| {
        let first = entry.first_offset();
        let sequences = (entry.first_sequence(), entry.last_sequence);
        (sequences.0, sequences.1, first, entry.last_offset, entry.last_timestamp)
    });
    Producer {
        producer_id: entry.producer_id,
        producer_epoch: entry.producer_epoch,
        coordinator_epoch: entry.coordinator_epoch,
        last_timestamp: entry.last_timestamp,
        current_txn_first_offset: entry.in_transaction().then_some(entry.txn_first_offset),
        first_data_offset: batch.map_or(NO_OFFSET, |batch| batch.2),
        last_data_offset: batch.map_or(NO_OFFSET, |batch| batch.3),
        batches: batch.into_iter().collect(),
    }
}

/// Whether a snapshot is Kafka's once its producers stand as Kafka has them: their order in a hash
/// map depends on its history.
pub(crate) fn has_kafkas_producers(bytes: &[u8], sum: &FileSum, loaded: &Loaded) -> bool {
    let Some(want) = loaded.snapshots.iter().find(|snapshot| snapshot.file == sum.0) else {
        return false;
    };
    let place = |id| want.entries.iter().position(|producer| producer.producer_id == id);
    let Ok(snapshot) = Snapshot::read(bytes) else { return false };
    let mut entries: Vec<ProducerEntry> = snapshot.iter().collect();
    entries.sort_by_key(|entry| place(entry.producer_id));
    sha256(&write_snapshot(&entries)) == sum.2
}

for_each_kit!(leader_epochs_are_kafkas);

fn leader_epochs_are_kafkas(kit: &str) {
    for partition in partitions(kit) {
        let label = partition.label();
        let file = partition.read("leader-epoch-checkpoint");
        let lines = file.map(|bytes| {
            let entries = checkpoint::parse_epochs(&bytes).expect(&label);
            assert_eq!(checkpoint::format_epochs(&entries), bytes, "{label}: written again");
            entries.iter().map(|entry| (entry.epoch, entry.start_offset)).collect()
        });
        assert_eq!(lines, partition.expectation.raw.leader_epochs, "{label}");
        let Some(loaded) = partition.expectation.loaded.ok() else { continue };
        let entries = loaded.leader_epochs.iter();
        let entries: Vec<EpochEntry> =
            entries.map(|&(epoch, start_offset)| EpochEntry { epoch, start_offset }).collect();
        let epochs = LeaderEpochs::from_entries(&entries).expect(&label);
        for &(asked, epoch, end) in &loaded.end_offset_for {
            let found = epochs.end_offset_for(asked, loaded.log_end_offset);
            assert_eq!(found, (epoch, end), "{label}: end of epoch {asked}");
        }
        for &(offset, epoch) in &loaded.epoch_for_offset {
            assert_eq!(epochs.epoch_for_offset(offset), epoch, "{label}: epoch of {offset}");
        }
    }
}

for_each_kit!(offset_checkpoints_are_kafkas);

fn offset_checkpoints_are_kafkas(kit: &str) {
    for partition in partitions(kit) {
        let (topic, number) = partition.name.rsplit_once('-').expect("a partition's name");
        let number = number.parse().expect("a partition's number");
        let line = |file: &str| {
            let bytes = partition.state.read(&format!("data/{file}"))?;
            // The checkpoint of the cleaner is an empty file until something was cleaned; these are
            // not.
            OffsetCheckpoint::parse(&bytes).expect(file).get(topic, number)
        };
        let label = partition.label();
        let want = &partition.expectation;
        let recovery_point = line("recovery-point-offset-checkpoint");
        assert_eq!(recovery_point, want.recovery_point_checkpoint, "{label}");
        let log_start = line("log-start-offset-checkpoint");
        assert_eq!(log_start, want.log_start_offset_checkpoint, "{label}");
        let high_watermark = line("replication-offset-checkpoint");
        assert_eq!(high_watermark, want.high_watermark_checkpoint, "{label}");
    }
}
