//! How does a leader append what a producer or a coordinator has sent?
//!
//! The rules of the topic are applied before anybody waits, as if the log began there; under the
//! writer's seat the batch then gets its offset, which no checksum covers.

use super::append::{AppendInfo, FinalBatches};
use super::append_error::AppendError;
use super::log::Log;
use super::producers::ProducerChecks;
use super::seat::Look;
use crate::bytes;
use crate::error::Error;
use crate::record::BatchHeader;
use crate::record::batch::HEADER_SIZE;
use crate::record::validate::{
    AnalyseOptions, AppendOrigin, BatchView, Placement, TopicCompression, ValidateOptions,
    Validated, Validator, analyse,
};
use crate::state::ProducerState;
use crate::state::live::{Refusal, TransactionVersion, VerificationGuard};

/// What a leader knows of an append beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderAppend {
    /// Its leader epoch, which the batches get.
    pub leader_epoch: i32,
    /// Who appends.
    pub origin: AppendOrigin,
    /// What shows that the transaction was verified.
    pub guard: VerificationGuard,
    /// The version of the transaction protocol that wrote a marker.
    pub transaction_version: TransactionVersion,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
}

impl LeaderAppend {
    /// A producer's append without a transaction.
    #[must_use]
    pub fn client(leader_epoch: i32, now_ms: i64) -> Self {
        LeaderAppend {
            leader_epoch,
            origin: AppendOrigin::Client,
            guard: VerificationGuard::SENTINEL,
            transaction_version: None,
            now_ms,
        }
    }
}

impl LeaderAppend {
    /// What the producers are asked.
    pub(super) fn checks(&self) -> ProducerChecks {
        ProducerChecks { origin: self.origin, guard: self.guard, version: self.transaction_version }
    }
}

/// Memory that appends reuse: one for each thread that appends as a leader.
#[derive(Debug, Default)]
pub struct AppendScratch {
    validator: Validator,
    rebuilt: Vec<u8>,
}

impl AppendScratch {
    /// Without memory yet.
    #[must_use]
    pub fn new() -> Self {
        AppendScratch::default()
    }

    pub(super) fn clear(&mut self) {
        self.rebuilt.clear();
    }

    pub(super) fn rebuilt(&self) -> &[u8] {
        &self.rebuilt
    }

    pub(super) fn rebuilt_mut(&mut self) -> &mut [u8] {
        &mut self.rebuilt
    }

    /// Gives back memory above `size_bytes` of each kind, for instance after a batch far above the
    /// usual.
    pub fn shrink_to(&mut self, size_bytes: usize) {
        self.validator.shrink_to(size_bytes);
        self.rebuilt.shrink_to(size_bytes);
    }

    /// The validator, for its counters.
    #[must_use]
    pub fn validator(&self) -> &Validator {
        &self.validator
    }
}

impl Log {
    /// Appends a producer's or coordinator's batch at the end of the log. It is held against the
    /// rules of the topic and gets its offsets in `records` itself, which is then written, unless
    /// the topic wants another codec or format.
    ///
    /// A batch that a producer sends again is not appended: the answer is that of the first time.
    ///
    /// # Errors
    /// The log is as it was before, and so is a batch of magic 2 in `records`: see [`AppendError`].
    pub fn append_as_leader(
        &self,
        records: &mut [u8],
        append: &LeaderAppend,
        scratch: &mut AppendScratch,
    ) -> Result<AppendInfo, AppendError> {
        let before = records.first_chunk::<HEADER_SIZE>().copied();
        scratch.clear();
        let Some(validated) = self.validate(records, append, scratch)? else {
            return Ok(self.nothing_appended());
        };
        let outcome = self.append_validated(records, &mut scratch.rebuilt, &validated, append);
        let is_in_place = matches!(validated.placement, Placement::InPlace(_));
        if outcome.is_err()
            && is_in_place
            && let (Some(header), Some(before)) = (records.first_chunk_mut(), before)
        {
            // The producer's bytes as they came, for whoever wants to try again.
            *header = before;
        }
        outcome
    }

    /// Holds the batches of a producer against the rules of the topic, as if the log began with
    /// them; `None` where there are none.
    pub(super) fn validate(
        &self,
        records: &mut [u8],
        append: &LeaderAppend,
        scratch: &mut AppendScratch,
    ) -> Result<Option<Validated>, AppendError> {
        let config = self.config.load();
        let max_message_bytes = config.max_message_bytes;
        let options = AnalyseOptions::leader(append.origin, append.leader_epoch, max_message_bytes);
        let analysis = analyse(records, &options)?;
        if analysis.valid_bytes == 0 {
            return Ok(None);
        }
        let records = records.get_mut(..analysis.valid_bytes).unwrap_or_default();
        let rules = ValidateOptions {
            origin: append.origin,
            compression: config
                .compression
                .map_or(TopicCompression::Producer, TopicCompression::Fixed),
            is_compacted: config.compact,
            timestamp_type: config.timestamp_type,
            timestamp_before_max_ms: config.timestamp_before_max_ms,
            timestamp_after_max_ms: config.timestamp_after_max_ms,
            max_message_bytes,
            leader_epoch: append.leader_epoch,
            ..ValidateOptions::default()
        };
        let AppendScratch { validator, rebuilt } = scratch;
        let validated =
            validator.validate_and_assign(records, &rules, 0, append.now_ms, rebuilt)?;
        Ok(Some(validated))
    }

    fn append_validated(
        &self,
        records: &mut [u8],
        rebuilt: &mut [u8],
        validated: &Validated,
        append: &LeaderAppend,
    ) -> Result<AppendInfo, AppendError> {
        let bytes = placed_mut(validated, records, rebuilt);
        let mut seat = self.take_seat()?;
        let writer = self.ready(&mut seat)?;
        let header = put_offset(bytes, self.log_end_offset())?;
        let batches = FinalBatches::one(BatchView { header, bytes });
        let info = self.append_in(writer, &batches, &append.checks(), append.now_ms)?;
        drop(seat);
        self.save_epochs_later();
        Ok(info.of_leader(validated))
    }

    /// Begins to verify a transaction of a producer before its first batch is appended. The guard
    /// is the sentinel when its transaction is open already: then nothing needs to be verified.
    ///
    /// # Errors
    /// [`AppendReason::InvalidProducerEpoch`](super::AppendReason) when a higher epoch of the
    /// producer is known; `Conflict`, `Closed`.
    pub fn start_verification(
        &self,
        producer_id: i64,
        sequence: i32,
        epoch: i16,
        supports_epoch_bump: bool,
        now_ms: i64,
    ) -> Result<VerificationGuard, AppendError> {
        let mut seat = self.wait_to_write()?;
        let producers = &mut seat.writer()?.producers;
        producers
            .start_verification(producer_id, sequence, epoch, supports_epoch_bump, now_ms)
            .map_err(|refusal: Refusal| refusal.into())
    }

    /// The guard under which a producer is being verified, else the sentinel.
    ///
    /// # Errors
    /// `Conflict`, `Closed`.
    pub fn verification_guard(&self, producer_id: i64) -> crate::Result<VerificationGuard> {
        Ok(self.take_seat_as_guest_anyway()?.writer()?.producers.verification_guard(producer_id))
    }

    /// Looks at what is known of the producers. Whoever writes meanwhile waits, but `look` itself
    /// waits for nobody: what it calls to write to a log that somebody has, this one among them, or
    /// to close, rename or delete one, gives `Conflict`. It must not pause compaction.
    ///
    /// # Errors
    /// `Conflict` when another thread is writing, `Closed`.
    pub fn with_producers<T>(&self, look: impl FnOnce(&ProducerState) -> T) -> crate::Result<T> {
        let mut seat = self.take_seat_as_guest_anyway()?;
        let producers = &seat.writer()?.producers;
        let _look = Look::begin();
        Ok(look(producers))
    }
}

impl AppendInfo {
    /// With what the validator knows of the batch.
    pub(super) fn of_leader(mut self, validated: &Validated) -> Self {
        if !self.is_duplicate {
            self.log_append_time_ms = validated.log_append_time_ms;
        }
        self.stats = validated.stats;
        self
    }
}

/// Gives a validated batch its offset, and its header then.
pub(super) fn put_offset(bytes: &mut [u8], base_offset: i64) -> crate::Result<BatchHeader> {
    // spec: segments 6.4. The target format has one batch, whose base offset is not covered by its
    // checksum.
    if !bytes::put(bytes, 0, &base_offset.to_be_bytes()) {
        return Err(Error::corrupt("a validated batch has no bytes"));
    }
    BatchHeader::parse(bytes).ok_or_else(|| Error::corrupt("a validated batch has no header"))
}

/// The bytes of a validated batch, wherever they are.
pub(super) fn placed_mut<'a>(
    validated: &Validated,
    records: &'a mut [u8],
    rebuilt: &'a mut [u8],
) -> &'a mut [u8] {
    match &validated.placement {
        Placement::InPlace(size) => records.get_mut(..*size),
        Placement::Rebuilt(range) => rebuilt.get_mut(range.clone()),
    }
    .unwrap_or_default()
}
