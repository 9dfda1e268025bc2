//! How does a leader append what waits for one log, as one write?
//!
//! Batches that nothing stands between go out together: each is validated by itself, they get
//! offsets one behind the other, and either all of them are in the log or none. Whatever is not so
//! plain (a refusal, a duplicate, a transaction, a roll) sends them in one by one.

use super::append::FinalBatches;
use super::append_error::AppendError;
use super::append_leader::{AppendScratch, LeaderAppend};
use super::log::{Log, Writer};
use super::producers::ProducerChecks;
use super::{AppendInfo, append_leader};
use crate::bytes;
use crate::record::BatchHeader;
use crate::record::batch::HEADER_SIZE;
use crate::record::validate::{AppendOrigin, BatchView, Placement, Validated};
use crate::segment::active::RollParams;

/// Why batches are not appended together.
struct OneByOne;

/// A batch that may be appended.
struct Ready {
    validated: Validated,
    /// Its bytes as they came, where they are changed in place.
    before: Option<[u8; HEADER_SIZE]>,
}

impl Log {
    /// Appends the batches of many producers in order, each as
    /// [`append_as_leader`](Self::append_as_leader) does, but with one write where that is
    /// possible: many small writes cost more than a large one.
    ///
    /// There is an answer for each of `all`; what is refused does not keep out the others.
    pub fn append_all_as_leader(
        &self,
        all: &mut [&mut [u8]],
        append: &LeaderAppend,
        scratch: &mut AppendScratch,
    ) -> Vec<Result<AppendInfo, AppendError>> {
        if all.len() > 1
            && append.origin == AppendOrigin::Client
            && let Ok(infos) = self.append_together(all, append, scratch)
        {
            return infos.into_iter().map(Ok).collect();
        }
        all.iter_mut().map(|records| self.append_as_leader(records, append, scratch)).collect()
    }

    fn append_together(
        &self,
        all: &mut [&mut [u8]],
        append: &LeaderAppend,
        scratch: &mut AppendScratch,
    ) -> Result<Vec<AppendInfo>, OneByOne> {
        scratch.clear();
        let mut ready = Vec::with_capacity(all.len());
        let mut outcome = Ok(());
        for records in all.iter_mut() {
            let before = records.first_chunk::<HEADER_SIZE>().copied();
            match self.validate(records, append, scratch) {
                Ok(Some(validated)) => {
                    let before = before.filter(|_| is_in_place(&validated));
                    ready.push(Ready { validated, before });
                }
                _ => {
                    outcome = Err(OneByOne);
                    break;
                }
            }
        }
        let outcome = outcome.and_then(|()| self.append_ready(all, &ready, append, scratch));
        if outcome.is_err() {
            for (records, ready) in all.iter_mut().zip(&ready) {
                if let (Some(header), Some(before)) = (records.first_chunk_mut(), ready.before) {
                    *header = before;
                }
            }
        }
        outcome
    }

    fn append_ready(
        &self,
        all: &mut [&mut [u8]],
        ready: &[Ready],
        append: &LeaderAppend,
        scratch: &mut AppendScratch,
    ) -> Result<Vec<AppendInfo>, OneByOne> {
        let mut seat = self.take_seat().map_err(|_| OneByOne)?;
        let writer = self.ready(&mut seat).map_err(|_| OneByOne)?;
        let mut next = self.log_end_offset();
        for (records, ready) in all.iter_mut().zip(ready) {
            let bytes = ready.bytes_mut(records, scratch.rebuilt_mut());
            if !bytes::put(bytes, 0, &next.to_be_bytes()) {
                return Err(OneByOne);
            }
            next = BatchHeader::parse(bytes).ok_or(OneByOne)?.next_offset();
        }
        let mut views = Vec::with_capacity(all.len());
        for (records, ready) in all.iter().zip(ready) {
            let bytes = ready.bytes(records, scratch.rebuilt());
            let header = BatchHeader::parse(bytes).ok_or(OneByOne)?;
            if header.magic < 2 || header.is_transactional() || header.is_control() {
                return Err(OneByOne);
            }
            views.push(BatchView { header, bytes });
        }
        let batches = FinalBatches::apart(views).ok_or(OneByOne)?;
        if !self.has_room_for_all(writer, &batches, append.now_ms) {
            return Err(OneByOne);
        }
        let checks = ProducerChecks {
            origin: append.origin,
            guard: append.guard,
            version: append.transaction_version,
        };
        let whole = self.append_in(writer, &batches, &checks, append.now_ms);
        let whole = whole.ok().filter(|whole| !whole.is_duplicate).ok_or(OneByOne)?;
        drop(seat);
        self.save_epochs_later();
        let info = |(view, ready): (&BatchView<'_>, &Ready)| AppendInfo {
            first_offset: Some(view.header.base_offset),
            last_offset: view.header.last_offset(),
            max_timestamp_ms: view.header.max_timestamp,
            log_append_time_ms: ready.validated.log_append_time_ms,
            size_bytes: u64::from(view.header.size_bytes),
            stats: ready.validated.stats,
            ..whole
        };
        Ok(batches.views().iter().zip(ready).map(info).collect())
    }

    /// Whether no batch makes the log roll, wherever among them it stands.
    fn has_room_for_all(
        &self,
        writer: &mut Writer,
        batches: &FinalBatches<'_>,
        now_ms: i64,
    ) -> bool {
        let settings = self.config.load().segment();
        let params: RollParams = batches.roll_params(now_ms);
        // The first batch of a segment says from when on its time counts.
        writer.active.size_bytes() > 0
            && writer.active.touch_indexes(&self.folder, &settings).is_ok()
            && writer.active.has_index_room(batches.views().len())
            && matches!(writer.active.should_roll(&self.folder, &settings, &params), Ok(false))
    }
}

fn is_in_place(validated: &Validated) -> bool {
    matches!(validated.placement, Placement::InPlace(_))
}

impl Ready {
    fn bytes_mut<'a>(&self, records: &'a mut [u8], rebuilt: &'a mut [u8]) -> &'a mut [u8] {
        append_leader::placed_mut(&self.validated, records, rebuilt)
    }

    fn bytes<'a>(&self, records: &'a [u8], rebuilt: &'a [u8]) -> &'a [u8] {
        self.validated.bytes(records, rebuilt)
    }
}
