//! The producers, transactions and snapshots of a log that is written to.

use super::append::{AppendOrigin, Completion, ProducerAppend};
use super::entry::{BatchMetadata, LiveProducer};
use super::packed::Producers;
use super::refusal::{Reason, Refusal};
use super::transactions::{OffsetMetadata, Transactions};
use super::verification::{VerificationGuard, Verifications};
use crate::state::event::{EventKind, ProducerEvent};
use crate::state::producer::ProducerEntry;
use crate::state::snapshot::{Snapshot, SnapshotFault, write_snapshot};
use crate::state::snapshot_set::{Reload, SnapshotSet};
use crate::state::table::JavaOrder;

/// How long a transaction may outlast its maximum before it counts as hanging, in ms.
const LATE_TRANSACTION_BUFFER_MS: i64 = 300_000;

/// What a broker's settings say of producers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerStateConfig {
    /// `producer.id.expiration.ms`: after how much silence a producer is forgotten.
    pub producer_id_expiration_ms: i64,
    /// `transaction.partition.verification.enable`.
    pub transaction_verification_enabled: bool,
    /// `transaction.max.timeout.ms`.
    pub transaction_timeout_max_ms: i64,
}

impl Default for ProducerStateConfig {
    fn default() -> Self {
        ProducerStateConfig {
            producer_id_expiration_ms: 86_400_000,
            transaction_verification_enabled: true,
            transaction_timeout_max_ms: 900_000,
        }
    }
}

/// What a log that is written to knows of its producers.
///
/// It touches no file: snapshots come and go as bytes, and the offsets of files to write or
/// delete are told to the owner.
#[derive(Clone, Debug)]
pub struct ProducerState {
    config: ProducerStateConfig,
    producers: Producers,
    order: JavaOrder,
    transactions: Transactions,
    verifications: Verifications,
    snapshots: SnapshotSet,
}

impl ProducerState {
    /// A state that knows no producer, beside these snapshots.
    #[must_use]
    pub fn new(config: ProducerStateConfig, snapshots: SnapshotSet) -> Self {
        ProducerState {
            config,
            producers: Producers::new(),
            order: JavaOrder::new(),
            transactions: Transactions::default(),
            verifications: Verifications::default(),
            snapshots,
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &ProducerStateConfig {
        &self.config
    }

    /// The settings, to be changed while the broker runs.
    pub fn config_mut(&mut self) -> &mut ProducerStateConfig {
        &mut self.config
    }

    /// The books of snapshots and of how far the state goes.
    #[must_use]
    pub fn snapshots(&self) -> &SnapshotSet {
        &self.snapshots
    }

    /// The books, for what changes them alone: deletions, and the end that the state reaches.
    pub fn snapshots_mut(&mut self) -> &mut SnapshotSet {
        &mut self.snapshots
    }

    /// The producers in the order they became known.
    #[must_use]
    pub fn producers(&self) -> impl ExactSizeIterator<Item = LiveProducer> {
        self.producers.iter()
    }

    /// What is known of a producer.
    #[must_use]
    pub fn producer(&self, producer_id: i64) -> Option<LiveProducer> {
        self.producers.get(producer_id)
    }

    /// Whether anything is known of a producer.
    #[must_use]
    pub fn knows(&self, producer_id: i64) -> bool {
        self.producers.knows(producer_id)
    }

    /// Whether it knows no producer and no transaction that awaits replication.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.producers.len() == 0 && !self.transactions.has_unreplicated()
    }

    /// The batch that was written before with these sequences, so that it is not written twice.
    #[must_use]
    pub fn find_duplicate(&self, event: &ProducerEvent) -> Option<BatchMetadata> {
        let ProducerEvent { producer_epoch, base_sequence, last_sequence, .. } = *event;
        let producer = self.producer(event.producer_id)?;
        producer.find_duplicate(producer_epoch, base_sequence, last_sequence)
    }

    /// Begins an append of a producer.
    #[must_use]
    pub fn prepare(&self, producer_id: i64, origin: AppendOrigin) -> ProducerAppend {
        let verification = self.verifications.get(producer_id).copied();
        match self.producer(producer_id) {
            Some(current) => ProducerAppend::new(&current, origin, verification),
            None => ProducerAppend::new(&LiveProducer::empty(producer_id), origin, verification),
        }
    }

    /// Takes over an append whose batches are in the log.
    // spec: producer-state A2.5
    pub fn commit(&mut self, append: &ProducerAppend) {
        let producer_id = append.working.producer_id;
        match self.producers.get(producer_id) {
            Some(mut known) => {
                known.take_update(&append.working);
                self.put(&known);
            }
            None => self.put(&append.working),
        }
        for &first_offset in &append.started {
            self.transactions.begin(producer_id, first_offset);
        }
    }

    /// Up to where, exclusive, every transaction but this one is decided: what the transaction
    /// index names. To be asked before the transaction is [completed](Self::complete).
    #[must_use]
    pub fn last_stable_offset(&self, completion: &Completion) -> i64 {
        self.transactions.last_stable_offset(completion)
    }

    /// The same for each of these transactions, which end in turn after these appends were
    /// committed. The state stays as it is.
    ///
    /// # Errors
    /// [`Reason::IllegalArgument`] when one of them was not begun.
    pub fn last_stable_offsets(
        &self,
        appends: &[ProducerAppend],
        completions: &[Completion],
    ) -> Result<Vec<i64>, Refusal> {
        let mut transactions = self.transactions.clone();
        for append in appends {
            for &first_offset in &append.started {
                transactions.begin(append.working.producer_id, first_offset);
            }
        }
        let mut offsets = Vec::with_capacity(completions.len());
        for completion in completions {
            offsets.push(transactions.last_stable_offset(completion));
            transactions.complete(completion)?;
        }
        Ok(offsets)
    }

    /// Ends a transaction whose marker is in the log and committed.
    ///
    /// # Errors
    /// [`Reason::IllegalArgument`] when it was not begun.
    pub fn complete(&mut self, completion: &Completion) -> Result<(), Refusal> {
        self.transactions.complete(completion)
    }

    /// Applies a batch that is in the log: on a follower, or when a log is read again.
    ///
    /// # Errors
    /// [`Reason::InvalidTxnState`] for data outside of the transaction that is open;
    /// [`Reason::IllegalArgument`] for a batch that cannot be.
    pub fn replay(&mut self, event: &ProducerEvent) -> Result<Option<Completion>, Refusal> {
        let mut append = self.prepare(event.producer_id, AppendOrigin::Replication);
        let completion = append.add(event, None, None)?;
        self.commit(&append);
        if let Some(completion) = &completion {
            self.complete(completion)?;
        }
        Ok(completion)
    }

    /// The offset below which transactions neither are open nor await the replication of their
    /// marker.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<OffsetMetadata> {
        self.transactions.first_unstable()
    }

    /// The first offset of the oldest open transaction.
    #[must_use]
    pub fn first_undecided_offset(&self) -> Option<i64> {
        self.transactions.first_undecided()
    }

    /// Everything below `high_watermark` is replicated.
    pub fn high_watermark_updated(&mut self, high_watermark: i64) {
        self.transactions.forget_replicated(high_watermark);
    }

    /// Whether the oldest open transaction has outlasted every timeout: it may hang.
    #[must_use]
    pub fn has_late_transaction(&self, now_ms: i64) -> bool {
        // spec: producer-state A1.2
        let oldest = self.transactions.oldest_producer().and_then(|id| self.producer(id));
        let patience =
            self.config.transaction_timeout_max_ms.saturating_add(LATE_TRANSACTION_BUFFER_MS);
        oldest.is_some_and(|producer| {
            let last = producer.last_timestamp;
            last > 0 && now_ms.saturating_sub(last) > patience
        })
    }

    /// Forgets producers and verifications that are expired at `now_ms`.
    pub fn remove_expired(&mut self, now_ms: i64) {
        // spec: producer-state A4
        let expiration_ms = self.config.producer_id_expiration_ms;
        self.producers.retain(|entry| !entry.is_expired(now_ms, expiration_ms));
        self.verifications.remove_expired(now_ms, expiration_ms);
    }

    /// Whether a producer has a transaction of exactly this epoch open.
    #[must_use]
    pub fn has_ongoing_transaction(&self, producer_id: i64, epoch: i16) -> bool {
        self.producer(producer_id)
            .is_some_and(|producer| producer.in_transaction() && producer.producer_epoch == epoch)
    }

    /// Begins to verify a transaction of a producer before its first batch. The guard is the
    /// sentinel when its transaction is open already: then nothing needs to be verified.
    ///
    /// # Errors
    /// [`Reason::InvalidProducerEpoch`] when a higher epoch of the producer is known.
    // spec: producer-state A7
    pub fn start_verification(
        &mut self,
        producer_id: i64,
        sequence: i32,
        epoch: i16,
        supports_epoch_bump: bool,
        now_ms: i64,
    ) -> Result<VerificationGuard, Refusal> {
        self.check_last_seen_epoch(producer_id, epoch)?;
        if self.has_ongoing_transaction(producer_id, epoch) {
            return Ok(VerificationGuard::SENTINEL);
        }
        let verification = self.verifications.get_or_create(
            producer_id,
            sequence,
            epoch,
            supports_epoch_bump,
            now_ms,
        );
        Ok(verification.guard)
    }

    /// The guard under which a producer is being verified, else the sentinel.
    #[must_use]
    pub fn verification_guard(&self, producer_id: i64) -> VerificationGuard {
        self.verifications.get(producer_id).map_or(VerificationGuard::SENTINEL, |v| v.guard)
    }

    /// Whether a transactional batch that brings `guard` may begin a transaction.
    ///
    /// # Errors
    /// [`Reason::InvalidProducerEpoch`] when a higher epoch is known, [`Reason::InvalidTxnState`]
    /// when data was not verified under the guard.
    // spec: segments 6.4
    pub fn check_verified(
        &self,
        event: &ProducerEvent,
        guard: VerificationGuard,
    ) -> Result<(), Refusal> {
        let ProducerEvent { producer_id, producer_epoch, .. } = *event;
        if self.has_ongoing_transaction(producer_id, producer_epoch) {
            return Ok(());
        }
        self.check_last_seen_epoch(producer_id, producer_epoch)?;
        let is_data = matches!(event.kind, EventKind::Data { .. });
        if self.config.transaction_verification_enabled
            && is_data
            && !self.verification_guard(producer_id).verify(guard)
        {
            let message = format!(
                "the transaction of producer {producer_id}, epoch {producer_epoch}, at offset {} \
                 was not verified",
                event.base_offset
            );
            return Err(Refusal::new(Reason::InvalidTxnState, message));
        }
        Ok(())
    }

    /// A transactional batch of the producer was appended: its verification has served.
    pub fn verification_served(&mut self, event: &ProducerEvent) {
        let is_control = !matches!(event.kind, EventKind::Data { .. });
        self.verifications.appended(event.producer_id, event.producer_epoch, is_control);
    }

    fn check_last_seen_epoch(&self, producer_id: i64, epoch: i16) -> Result<(), Refusal> {
        match self.producer(producer_id) {
            Some(known) if known.producer_epoch > epoch => {
                let message = format!(
                    "epoch {epoch} of producer {producer_id} is smaller than the last seen epoch {}",
                    known.producer_epoch
                );
                Err(Refusal::new(Reason::InvalidProducerEpoch, message))
            }
            _ => Ok(()),
        }
    }

    /// Takes a snapshot: the offset and the bytes of the file to write, or `None` when the state
    /// has not moved on since the last one.
    #[must_use]
    pub fn take_snapshot(&mut self) -> Option<(i64, Vec<u8>)> {
        let offset = self.snapshots.take_snapshot()?;
        let entries: Vec<ProducerEntry> = self.producers.entries().collect();
        Some((offset, write_snapshot(self.order.sorted(&entries, |entry| entry.producer_id))))
    }

    /// The log now spans `log_start_offset..log_end_offset`. When the answer says so, the state
    /// is cleared and to be loaded: [`load_snapshot`](Self::load_snapshot) of the latest one,
    /// and of the next when it is at fault; [`nothing_to_load`](Self::nothing_to_load) when
    /// there is none (left).
    #[must_use]
    pub fn truncate_and_reload(&mut self, log_start_offset: i64, log_end_offset: i64) -> Reload {
        // spec: producer-state A6
        let reload = self.snapshots.truncate_and_reload(log_start_offset, log_end_offset);
        if reload.reload {
            self.producers.clear();
            self.transactions.restart(log_start_offset, log_end_offset);
        } else {
            self.transactions.forget_replicated(log_start_offset);
        }
        reload
    }

    /// Loads the snapshot at `offset`, without the producers that are expired at `now_ms`.
    ///
    /// # Errors
    /// The file is corrupt: it is struck off, and to be deleted.
    pub fn load_snapshot(
        &mut self,
        offset: i64,
        bytes: &[u8],
        now_ms: i64,
    ) -> Result<(), SnapshotFault> {
        let snapshot = Snapshot::read(bytes).inspect_err(|_| self.snapshots.unusable(offset))?;
        self.producers.reserve(snapshot.len());
        for entry in snapshot.iter() {
            if entry.is_expired(now_ms, self.config.producer_id_expiration_ms) {
                continue;
            }
            let is_new = self.producers.put_entry(&entry);
            if is_new && self.order.looks_at_ids() {
                let others = self.producers.len() - 1;
                self.order.inserted(entry.producer_id, self.producers.ids().take(others));
            }
            if entry.in_transaction() {
                let first_offset = OffsetMetadata::offset_only(entry.txn_first_offset);
                self.transactions.begin(entry.producer_id, first_offset);
            }
        }
        self.order.holds(self.producers.len());
        self.snapshots.loaded(offset);
        Ok(())
    }

    /// There is no snapshot to load: the state begins, empty, at the start of the log.
    pub fn nothing_to_load(&mut self, log_start_offset: i64) {
        self.snapshots.nothing_to_load(log_start_offset);
    }

    /// Forgets everything; gives the offsets of the snapshots to delete.
    #[must_use]
    pub fn truncate_fully_and_start_at(&mut self, offset: i64) -> Vec<i64> {
        self.clear();
        self.snapshots.truncate_fully_and_start_at(offset)
    }

    /// The log now starts at `offset`. Producers are kept.
    pub fn log_start_offset_incremented(&mut self, offset: i64) {
        self.transactions.forget_replicated(offset);
        self.snapshots.log_start_offset_incremented(offset);
    }

    fn clear(&mut self) {
        self.producers.clear();
        self.transactions.clear();
    }

    fn put(&mut self, producer: &LiveProducer) {
        let known = self.producers.len();
        if self.producers.put(producer) {
            self.order.inserted(producer.producer_id, self.producers.ids().take(known));
        }
    }
}
