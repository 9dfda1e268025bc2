//! How do batches get into a log?
//!
//! ```text
//! analysis -> checks of offsets, epochs, producers -> roll? -> write -> take note, publish the end
//! (no lock)   (on copies: nothing is changed yet)             (the caller's bytes)
//! ```
//!
//! Whatever fails before the note is taken leaves the log, its indexes and its state as they were.

use std::sync::atomic::Ordering;

use super::append_error::{AppendError, AppendReason};
use super::log::{Log, Writer};
use super::producers::{BatchChanges, ProducerChanges, ProducerChecks};
use crate::record::validate::{
    AnalyseOptions, Analysis, BatchView, Batches, ValidationStats, analyse,
};
use crate::segment::active::RollParams;
use crate::segment::append::SegmentAppend;
use crate::state::LeaderEpochs;
use crate::state::live::AppendOrigin;
use crate::units::NO_TIMESTAMP;

/// What an append has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendInfo {
    /// The first offset; `None` where the format of the first batch does not say it, or nothing was
    /// appended.
    pub first_offset: Option<i64>,
    /// The last offset, -1 when nothing was appended.
    pub last_offset: i64,
    /// The largest timestamp of the batches in milliseconds, -1 for none.
    pub max_timestamp_ms: i64,
    /// The time of the append, where the topic wants it in the records; of a duplicate, the
    /// timestamp of the batch that is there. -1 otherwise.
    pub log_append_time_ms: i64,
    /// Where the log starts.
    pub log_start_offset: i64,
    /// The bytes that were appended; less than were given when the last batch was not whole.
    pub size_bytes: u64,
    /// Whether the batch was there already and nothing was appended.
    pub is_duplicate: bool,
    /// Whether a new segment was begun: a flush of what lies before it is due.
    pub has_rolled: bool,
    /// Whether as many messages wait to be flushed as `flush.messages` allows: a flush is due.
    pub flush_is_due: bool,
    /// What it took to bring a producer's batch into the form of the topic.
    pub stats: ValidationStats,
}

/// Batches as they are to be written.
#[derive(Debug)]
pub(super) struct FinalBatches<'a> {
    /// All of them, where they lie one behind the other.
    bytes: Option<&'a [u8]>,
    views: Vec<BatchView<'a>>,
    /// Of the first batch, where its format says it.
    first_offset: Option<i64>,
    last_offset_of_first: i64,
    last_offset: i64,
    max_timestamp_ms: i64,
    size_bytes: u64,
}

impl<'a> FinalBatches<'a> {
    /// The batches of `records` that were found good; `None` when there are none.
    pub(super) fn of(records: &'a [u8], analysis: &Analysis) -> Result<Option<Self>, AppendError> {
        let bytes = records.get(..analysis.valid_bytes).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(None);
        }
        let views: Result<Vec<_>, _> = Batches::new(bytes).collect();
        Ok(Some(FinalBatches {
            bytes: Some(bytes),
            views: views?,
            first_offset: analysis.first_offset,
            last_offset_of_first: analysis.last_offset_of_first_batch,
            last_offset: analysis.last_offset,
            max_timestamp_ms: analysis.max_timestamp_ms,
            size_bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        }))
    }

    /// One batch of magic 2.
    pub(super) fn one(batch: BatchView<'a>) -> Self {
        FinalBatches {
            bytes: Some(batch.bytes),
            first_offset: Some(batch.header.base_offset),
            last_offset_of_first: batch.header.last_offset(),
            last_offset: batch.header.last_offset(),
            max_timestamp_ms: batch.header.max_timestamp,
            size_bytes: u64::from(batch.header.size_bytes),
            views: vec![batch],
        }
    }

    /// Batches of magic 2 that lie anywhere; `None` when there are none.
    pub(super) fn apart(views: Vec<BatchView<'a>>) -> Option<Self> {
        let (first, last) = (views.first()?.header, views.last()?.header);
        let headers = || views.iter().map(|view| &view.header);
        Some(FinalBatches {
            bytes: None,
            first_offset: Some(first.base_offset),
            last_offset_of_first: first.last_offset(),
            last_offset: last.last_offset(),
            max_timestamp_ms: headers().map(|header| header.max_timestamp).max()?,
            size_bytes: headers().map(|header| u64::from(header.size_bytes)).sum(),
            views,
        })
    }

    /// What is written, one part behind the other.
    pub(super) fn parts(&self) -> Vec<&'a [u8]> {
        match self.bytes {
            Some(bytes) => vec![bytes],
            None => self.views.iter().map(|view| view.bytes).collect(),
        }
    }

    pub(super) fn views(&self) -> &[BatchView<'a>] {
        &self.views
    }

    pub(super) fn roll_params(&self, now_ms: i64) -> RollParams {
        RollParams {
            max_timestamp_ms: self.max_timestamp_ms,
            last_offset: self.last_offset,
            size_bytes: self.size_bytes,
            now_ms,
        }
    }

    /// The first offset, or the last one of the first batch where only that is known.
    fn first_known_offset(&self) -> i64 {
        self.first_offset.unwrap_or(self.last_offset_of_first)
    }
}

/// How far an append came without a byte in the log.
pub(super) enum Begun {
    /// It is there already, and the answer is that of the first time.
    Duplicate(AppendInfo),
    /// It may be written.
    Fits(Fitting),
}

/// What an append changes once it is written.
pub(super) struct Fitting {
    epochs: Option<LeaderEpochs>,
    changes: BatchChanges,
    append: SegmentAppend,
    has_rolled: bool,
    now_ms: i64,
}

impl Log {
    /// Appends what a leader has sent, offsets and all. Batches of a later leader epoch than
    /// `leader_epoch` are left out, as is a last batch that is not whole.
    ///
    /// The bytes are written as they are. They are not durable before a flush.
    ///
    /// # Errors
    /// The log is as it was before: see [`AppendError`].
    pub fn append_as_follower(
        &self,
        records: &[u8],
        leader_epoch: i32,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        let analysis = analyse(records, &AnalyseOptions::follower(leader_epoch))?;
        self.append_given(records, &analysis, AppendOrigin::Replication, now_ms)
    }

    /// Appends the batches of the leader of the metadata log, which has assigned their offsets.
    ///
    /// # Errors
    /// Those of [`append_as_follower`](Self::append_as_follower), and `InvalidRecord` for a batch
    /// of another leader epoch.
    pub fn append_as_raft_leader(
        &self,
        records: &[u8],
        leader_epoch: i32,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        let max_bytes = self.config.load().max_message_bytes;
        let mut options = AnalyseOptions::leader(AppendOrigin::RaftLeader, leader_epoch, max_bytes);
        options.keeps_offsets = true;
        let analysis = analyse(records, &options)?;
        self.append_given(records, &analysis, AppendOrigin::RaftLeader, now_ms)
    }

    /// Appends batches whose offsets are given.
    fn append_given(
        &self,
        records: &[u8],
        analysis: &Analysis,
        origin: AppendOrigin,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        let Some(batches) = FinalBatches::of(records, analysis)? else {
            return Ok(self.nothing_appended());
        };
        let mut seat = self.take_seat()?;
        let info =
            self.append_in(self.ready(&mut seat)?, &batches, &ProducerChecks::of(origin), now_ms)?;
        drop(seat);
        self.save_epochs_later();
        Ok(info)
    }

    pub(crate) fn nothing_appended(&self) -> AppendInfo {
        AppendInfo {
            first_offset: None,
            last_offset: -1,
            max_timestamp_ms: NO_TIMESTAMP,
            log_append_time_ms: NO_TIMESTAMP,
            log_start_offset: self.log_start_offset(),
            size_bytes: 0,
            is_duplicate: false,
            has_rolled: false,
            flush_is_due: false,
            stats: ValidationStats::default(),
        }
    }

    /// Writes a new leader epoch to its checkpoint. An error is not lost: until it is written no
    /// flush succeeds, so that the recovery point stays before the batch that began the epoch.
    pub(super) fn save_epochs_later(&self) {
        let _ = self.save_epochs();
    }

    /// Appends batches with their final offsets; the seat is taken.
    // spec: segments 6.4, step 3
    pub(super) fn append_in(
        &self,
        writer: &mut Writer,
        batches: &FinalBatches<'_>,
        checks: &ProducerChecks,
        now_ms: i64,
    ) -> Result<AppendInfo, AppendError> {
        let fitting = match self.begin_append(writer, batches, checks, now_ms)? {
            Begun::Duplicate(info) => return Ok(info),
            Begun::Fits(fitting) => fitting,
        };
        let written = match batches.bytes {
            Some(bytes) => writer.active.write(&self.folder, &[bytes]),
            None => writer.active.write(&self.folder, &batches.parts()),
        };
        self.end_append(writer, batches, fitting, written)
    }

    /// Checks batches and makes ready for their bytes, which are to be written behind the end of
    /// the active segment; [`end_append`](Self::end_append) is told what came of it. Nobody else
    /// may write in between.
    pub(super) fn begin_append(
        &self,
        writer: &mut Writer,
        batches: &FinalBatches<'_>,
        checks: &ProducerChecks,
        now_ms: i64,
    ) -> Result<Begun, AppendError> {
        self.check_room(batches)?;
        let epochs = epochs_after(&self.epochs.load(), &batches.views)?;
        let append = batches.roll_params(now_ms);
        let has_rolled = self.maybe_roll(writer, &append, batches.first_offset)?;
        let place = (writer.active.base_offset(), writer.active.size_bytes());
        let changes = match checks.check(&writer.producers, &batches.views, place)? {
            ProducerChanges::Duplicate(batch) => {
                self.take_epochs(epochs);
                return Ok(Begun::Duplicate(AppendInfo {
                    first_offset: Some(batch.first_offset()),
                    last_offset: batch.last_offset,
                    log_append_time_ms: batch.timestamp,
                    max_timestamp_ms: batches.max_timestamp_ms,
                    is_duplicate: true,
                    has_rolled,
                    ..self.nothing_appended()
                }));
            }
            ProducerChanges::Batches(changes) => changes,
        };
        let settings = self.config.load().segment();
        let append = writer.active.prepare(&self.folder, &settings, &batches.views)?;
        // The index of aborted transactions first: it can be taken back, bytes of the log that
        // readers have seen cannot.
        writer.active.write_txns(&self.folder, changes.aborted())?;
        Ok(Begun::Fits(Fitting { epochs, changes, append, has_rolled, now_ms }))
    }

    /// Lets readers see what was written, or takes back what was done for it.
    pub(super) fn end_append(
        &self,
        writer: &mut Writer,
        batches: &FinalBatches<'_>,
        fitting: Fitting,
        written: crate::Result<()>,
    ) -> Result<AppendInfo, AppendError> {
        let aborted = fitting.changes.aborted();
        if let Err(error) = written {
            if !aborted.is_empty() {
                writer.active.forget_txns(&self.folder);
            }
            return Err(error.into());
        }
        writer.active.commit_txns(aborted);
        writer.active.commit(&self.folder, &fitting.append);
        self.take_epochs(fitting.epochs);
        fitting.changes.commit(&mut writer.producers, &batches.views, batches.last_offset);
        writer.now_ms = fitting.now_ms;
        self.offsets.log_end.store(batches.last_offset.saturating_add(1), Ordering::Release);
        self.refresh_last_stable(writer);
        Ok(AppendInfo {
            first_offset: batches.first_offset,
            last_offset: batches.last_offset,
            max_timestamp_ms: batches.max_timestamp_ms,
            size_bytes: batches.size_bytes,
            has_rolled: fitting.has_rolled,
            flush_is_due: self.flush_is_due(),
            ..self.nothing_appended()
        })
    }

    fn check_room(&self, batches: &FinalBatches<'_>) -> Result<(), AppendError> {
        let (first, last) = (batches.first_known_offset(), batches.last_offset);
        let end = self.log_end_offset();
        if first < end {
            let message =
                format!("offsets from {first} on are to be appended, the log ends at {end}");
            let reason = AppendReason::UnexpectedAppendOffset;
            return Err(AppendError::refused_at(reason, message, first, last));
        }
        // The log ends one behind its last offset.
        if last < first || last == i64::MAX {
            let message = format!("offsets from {first} to {last} leave no offset to go on at");
            let reason = AppendReason::UnexpectedAppendOffset;
            return Err(AppendError::refused_at(reason, message, first, last));
        }
        let segment_bytes = self.config.load().segment_bytes;
        if batches.size_bytes > u64::from(segment_bytes) {
            let message = format!(
                "{} bytes are to be appended at once, a segment has at most {segment_bytes}",
                batches.size_bytes
            );
            let reason = AppendReason::RecordBatchTooLarge;
            return Err(AppendError::refused_at(reason, message, first, last));
        }
        Ok(())
    }

    fn take_epochs(&self, epochs: Option<LeaderEpochs>) {
        if let Some(epochs) = epochs {
            self.set_epochs(epochs);
        }
    }

    /// Whether as many records wait to be made durable as `flush.messages` lets.
    pub(crate) fn flush_is_due(&self) -> bool {
        let flush_messages = self.config.load().flush_messages;
        flush_messages < i64::MAX
            && self.log_end_offset().saturating_sub(self.recovery_point()) >= flush_messages
    }
}

/// The leader epochs when these batches are appended; `None` when they stay as they are.
fn epochs_after(
    epochs: &LeaderEpochs,
    batches: &[BatchView<'_>],
) -> Result<Option<LeaderEpochs>, AppendError> {
    // spec: producer-state B5
    let mut changed: Option<LeaderEpochs> = None;
    for BatchView { header, .. } in batches {
        let now = changed.as_ref().unwrap_or(epochs);
        if header.magic < 2 {
            if !now.entries().is_empty() {
                changed.get_or_insert_with(|| epochs.clone()).clear();
            }
            continue;
        }
        let (epoch, start) = (header.leader_epoch, header.base_offset);
        let is_known = epoch >= 0
            && now
                .latest()
                .is_some_and(|latest| latest.epoch == epoch && latest.start_offset <= start);
        if !is_known {
            let epochs = changed.get_or_insert_with(|| epochs.clone());
            epochs.assign(epoch, start).map_err(|error| {
                AppendError::refused(AppendReason::IllegalArgument, error.message())
            })?;
        }
    }
    Ok(changed)
}
