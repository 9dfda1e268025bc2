//! May these batches of one producer follow what it has written?
//!
//! A [`ProducerAppend`] gathers the batches of one producer in one append on a copy of what is
//! known of it. Only when the batches are in the log it is committed to the state.

use super::entry::{BatchMetadata, LiveProducer};
use super::refusal::{Reason, Refusal};
use super::transactions::OffsetMetadata;
use super::verification::Verification;
pub use crate::record::validate::AppendOrigin;
use crate::state::event::{EventKind, ProducerEvent, ReplayFault};
use crate::state::producer::LastBatch;
use crate::units::{NO_PRODUCER_EPOCH, NO_SEQUENCE};

/// The version of the transaction protocol that wrote a marker, when it is known.
pub type TransactionVersion = Option<i16>;

/// From this version on every transaction raises its producer's epoch.
const VERSION_WITH_EPOCH_BUMP: i16 = 2;

/// A transaction that a marker ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The producer's id.
    pub producer_id: i64,
    /// The offset of its first batch.
    pub first_offset: i64,
    /// The offset of its marker.
    pub last_offset: i64,
    /// Whether it is aborted, not committed.
    pub aborted: bool,
}

/// The batches of one producer in one append.
#[derive(Clone, Debug)]
pub struct ProducerAppend {
    origin: AppendOrigin,
    /// The producer as it was before, for the sequence check.
    current_epoch: i16,
    current_last_sequence: i32,
    has_current_batch: bool,
    verification: Option<Verification>,
    /// What becomes of it, with the batches of this append alone.
    pub(super) working: LiveProducer,
    pub(super) started: Vec<OffsetMetadata>,
}

impl ProducerAppend {
    pub(super) fn new(
        current: &LiveProducer,
        origin: AppendOrigin,
        verification: Option<Verification>,
    ) -> Self {
        ProducerAppend {
            origin,
            current_epoch: current.producer_epoch,
            current_last_sequence: current.last_sequence(),
            has_current_batch: current.newest().is_some(),
            verification,
            working: current.without_batches(),
            started: Vec::new(),
        }
    }

    /// The producer as the append leaves it, with the batches of the append alone.
    #[must_use]
    pub fn producer(&self) -> &LiveProducer {
        &self.working
    }

    /// The first offsets of the transactions that it begins.
    #[must_use]
    pub fn started(&self) -> &[OffsetMetadata] {
        &self.started
    }

    /// Adds a batch; gives the transaction that it ends, if it is a marker.
    ///
    /// `place` is where a batch of data begins, when that is known. `version` matters to markers
    /// alone, and only a replicated one may come without.
    ///
    /// # Errors
    /// The batch is refused and this append is as it was before.
    pub fn add(
        &mut self,
        event: &ProducerEvent,
        place: Option<(i64, u64)>,
        version: TransactionVersion,
    ) -> Result<Option<Completion>, Refusal> {
        let batch = event.last_batch().map_err(|fault| refuse_fault(event, fault))?;
        if event.producer_id != self.working.producer_id {
            return Err(refuse_fault(event, ReplayFault::ProducerId));
        }
        match event.kind {
            EventKind::Data { transactional } => {
                self.add_data(event, batch, transactional, place)?;
                Ok(None)
            }
            EventKind::Marker { abort, coordinator_epoch, timestamp } => {
                self.check_marker(event, coordinator_epoch, version)?;
                let completion = self.working.in_transaction().then_some(Completion {
                    producer_id: event.producer_id,
                    first_offset: self.working.txn_first_offset,
                    last_offset: event.base_offset,
                    aborted: abort,
                });
                self.working.take_marker(event.producer_epoch, coordinator_epoch, timestamp);
                Ok(completion)
            }
            EventKind::EmptyControl => Ok(None),
        }
    }

    // spec: producer-state A2.1
    fn add_data(
        &mut self,
        event: &ProducerEvent,
        batch: LastBatch,
        transactional: bool,
        place: Option<(i64, u64)>,
    ) -> Result<(), Refusal> {
        self.check_epoch(event, None)?;
        if self.origin == AppendOrigin::Client {
            self.check_sequence(event)?;
        }
        if self.working.in_transaction() {
            if !transactional {
                let message = format!(
                    "producer {} has a transaction open, its batch at offset {} is no part of it",
                    event.producer_id, event.base_offset
                );
                return Err(Refusal::new(Reason::InvalidTxnState, message));
            }
        } else if transactional {
            self.working.txn_first_offset = event.base_offset;
            self.started.push(OffsetMetadata { offset: event.base_offset, place });
        }
        self.working.take_batch(
            event.producer_epoch,
            BatchMetadata {
                last_offset: batch.offset,
                timestamp: event.max_timestamp,
                last_sequence: batch.sequence,
                offset_delta: batch.offset_delta,
            },
        );
        Ok(())
    }

    // spec: producer-state A2.2
    fn check_marker(
        &self,
        event: &ProducerEvent,
        coordinator_epoch: i32,
        version: TransactionVersion,
    ) -> Result<(), Refusal> {
        let replicated = self.origin == AppendOrigin::Replication;
        if version.is_none() && !replicated {
            let message = "a marker needs the version of its transaction protocol".to_owned();
            return Err(Refusal::new(Reason::IllegalArgument, message));
        }
        self.check_epoch(event, version)?;
        if self.working.coordinator_epoch > coordinator_epoch && !replicated {
            let message = format!(
                "the marker of producer {} has coordinator epoch {coordinator_epoch}, \
                 a coordinator of epoch {} has written already",
                event.producer_id, self.working.coordinator_epoch
            );
            return Err(Refusal::new(Reason::TransactionCoordinatorFenced, message));
        }
        Ok(())
    }

    // spec: producer-state A2.3
    fn check_epoch(
        &self,
        event: &ProducerEvent,
        version: TransactionVersion,
    ) -> Result<(), Refusal> {
        let (epoch, current) = (event.producer_epoch, self.working.producer_epoch);
        let bumps = version.is_some_and(|version| version >= VERSION_WITH_EPOCH_BUMP);
        let invalid = if bumps { epoch <= current } else { epoch < current };
        // A coordinator may write a marker again that is in the log already.
        let again =
            bumps && epoch == current && (!self.working.in_transaction() || epoch == i16::MAX);
        if !invalid || again || self.origin == AppendOrigin::Replication {
            return Ok(());
        }
        let message = format!(
            "epoch {epoch} of producer {} at offset {} is too old, the last one is {current}",
            event.producer_id, event.base_offset
        );
        Err(Refusal::new(Reason::InvalidProducerEpoch, message))
    }

    // spec: producer-state A2.4
    fn check_sequence(&self, event: &ProducerEvent) -> Result<(), Refusal> {
        let (epoch, sequence) = (event.producer_epoch, event.base_sequence);
        let refuse = |why: String| {
            let message = format!(
                "Out of order sequence {sequence} of producer {} at offset {}: {why}",
                event.producer_id, event.base_offset
            );
            Err(Refusal::new(Reason::OutOfOrderSequence, message))
        };
        if let Some(verification) = &self.verification {
            if verification.supports_epoch_bump && sequence != 0 && !self.has_current_batch {
                return refuse(
                    "Expected sequence 0 for transactions v2 idempotent producer".to_owned(),
                );
            }
            let lowest = verification.lowest_sequence;
            if sequence > lowest {
                return refuse(format!("sequence {lowest} is being verified"));
            }
        }
        if epoch != self.working.producer_epoch {
            if sequence != 0 && self.working.producer_epoch != NO_PRODUCER_EPOCH {
                return refuse(format!(
                    "Invalid sequence number for new epoch {epoch}, expected 0"
                ));
            }
            return Ok(());
        }
        let last = if self.working.newest().is_some() {
            self.working.last_sequence()
        } else if epoch == self.current_epoch {
            self.current_last_sequence
        } else {
            NO_SEQUENCE
        };
        // Kafka quirk: a producer that was unknown before the append may go on anywhere, since
        // it may have expired here; its later batches in the same append are not checked either.
        if self.current_epoch != NO_PRODUCER_EPOCH && !is_in_sequence(last, sequence) {
            return refuse(format!("the last one is {last}"));
        }
        Ok(())
    }
}

fn is_in_sequence(last: i32, next: i32) -> bool {
    i64::from(next) == i64::from(last) + 1 || (next == 0 && last == i32::MAX)
}

#[cold]
fn refuse_fault(event: &ProducerEvent, fault: ReplayFault) -> Refusal {
    Refusal::new(Reason::IllegalArgument, event.problem(fault).to_string())
}
