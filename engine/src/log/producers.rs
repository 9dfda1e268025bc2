//! May the producers of these batches append them, and what do they change?

use super::append_error::AppendError;
use crate::index::AbortedTxn;
use crate::record::control::parse_control;
use crate::record::validate::BatchView;
use crate::state::live::{
    AppendOrigin, BatchMetadata, Completion, ProducerAppend, TransactionVersion, VerificationGuard,
};
use crate::state::{EventKind, ProducerEvent, ProducerState};

/// What the producers of an append are asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProducerChecks {
    pub(super) origin: AppendOrigin,
    pub(super) guard: VerificationGuard,
    pub(super) version: TransactionVersion,
}

/// What an append does to the producers.
pub(super) enum ProducerChanges {
    /// The batch was written before.
    Duplicate(BatchMetadata),
    /// Batches to take note of once they are in the log.
    Batches(BatchChanges),
}

/// The batches of all producers in one append.
#[derive(Debug, Default)]
pub(super) struct BatchChanges {
    appends: Vec<ProducerAppend>,
    completions: Vec<Completion>,
    aborted: Vec<AbortedTxn>,
}

impl ProducerChecks {
    /// Those of an origin that knows of no verification.
    pub(super) fn of(origin: AppendOrigin) -> Self {
        ProducerChecks { origin, guard: VerificationGuard::SENTINEL, version: None }
    }

    /// Checks the batches against the state, which stays as it is. The first of them will lie at
    /// `place`: a segment's base offset and a position in it.
    pub(super) fn check(
        &self,
        state: &ProducerState,
        batches: &[BatchView<'_>],
        (base_offset, mut position): (i64, u64),
    ) -> Result<ProducerChanges, AppendError> {
        // spec: segments 6.4
        let mut changes = BatchChanges::default();
        for batch in batches {
            let place = (base_offset, position);
            position = position.saturating_add(u64::from(batch.header.size_bytes));
            let Some(event) = event_of(batch) else { continue };
            if self.origin == AppendOrigin::Client
                && matches!(event.kind, EventKind::Data { .. })
                && let Some(duplicate) = state.find_duplicate(&event)
            {
                return Ok(ProducerChanges::Duplicate(duplicate));
            }
            let is_checked =
                matches!(self.origin, AppendOrigin::Client | AppendOrigin::Coordinator);
            if is_checked && batch.header.is_transactional() {
                state.check_verified(&event, self.guard)?;
            }
            changes.add(state, self, &event, place)?;
        }
        changes.find_aborted(state)?;
        Ok(ProducerChanges::Batches(changes))
    }
}

impl BatchChanges {
    fn add(
        &mut self,
        state: &ProducerState,
        checks: &ProducerChecks,
        event: &ProducerEvent,
        place: (i64, u64),
    ) -> Result<(), AppendError> {
        let known = self
            .appends
            .iter()
            .position(|append| append.producer().entry().producer_id == event.producer_id);
        let slot = known.unwrap_or_else(|| {
            self.appends.push(state.prepare(event.producer_id, checks.origin));
            self.appends.len() - 1
        });
        if let Some(append) = self.appends.get_mut(slot) {
            self.completions.extend(append.add(event, Some(place), checks.version)?);
        }
        Ok(())
    }

    /// What the index of aborted transactions will say of those that are aborted here.
    fn find_aborted(&mut self, state: &ProducerState) -> Result<(), AppendError> {
        if self.completions.is_empty() {
            return Ok(());
        }
        let stable = state.last_stable_offsets(&self.appends, &self.completions)?;
        let with_stable = self.completions.iter().zip(stable);
        self.aborted = with_stable
            .filter(|(completion, _)| completion.aborted)
            .map(|(completion, last_stable_offset)| AbortedTxn {
                producer_id: completion.producer_id,
                first_offset: completion.first_offset,
                last_offset: completion.last_offset,
                last_stable_offset,
            })
            .collect();
        Ok(())
    }

    /// The transactions that are aborted, in the order of their markers.
    pub(super) fn aborted(&self) -> &[AbortedTxn] {
        &self.aborted
    }

    /// Takes note of the batches, which are in the log.
    pub(super) fn commit(
        &self,
        state: &mut ProducerState,
        batches: &[BatchView<'_>],
        last_offset: i64,
    ) {
        for append in &self.appends {
            state.commit(append);
        }
        for completion in &self.completions {
            // That each was begun was found out before anything was written.
            let _ = state.complete(completion);
        }
        for batch in batches.iter().filter(|batch| batch.header.is_transactional()) {
            if let Some(event) = event_of(batch) {
                state.verification_served(&event);
            }
        }
        state.snapshots_mut().set_map_end_offset(last_offset.saturating_add(1));
    }
}

/// What a batch says of its producer.
pub(super) fn event_of(batch: &BatchView<'_>) -> Option<ProducerEvent> {
    let header = &batch.header;
    if !header.has_producer_id() {
        return None;
    }
    let control = header.is_control().then(|| parse_control(header, batch.bytes));
    ProducerEvent::of_batch(header, control)
}
