//! What do the batches of one segment say, taken in offset order?
//!
//! The fold is fed batch by batch, from a scan in one go or from the pieces of a parallel one, and
//! cannot tell the two apart. It builds indexes, epochs and producer state, and stops at the first
//! batch that cannot follow the one before.

use std::ops::ControlFlow;

use crate::index::txn::{AbortedTxn, TxnIndexBuilder};
use crate::problem::Code;
use crate::record::BatchHeader;
use crate::record::control::{Control, parse_control};
use crate::record::scan::ScannedBatch;
use crate::segment::rebuild::IndexRebuild;
use crate::state::{EpochEntry, LeaderEpochs, ProducerEvent, ReplayState};
use crate::units::is_addressable;

/// What a fold needs of one batch.
#[derive(Clone, Copy, Debug)]
pub struct Fact<'a> {
    /// The first byte of the batch in its file.
    pub position: u64,
    /// The header.
    pub header: &'a BatchHeader,
    /// What it says if it is a control batch.
    pub control: Option<Control>,
}

impl<'a> Fact<'a> {
    /// The fact of a batch that was just scanned.
    #[inline]
    pub fn of(batch: &ScannedBatch<'a>) -> Self {
        let header = batch.header;
        let control = header.is_control().then(|| parse_control(header, batch.bytes));
        Fact { position: batch.position, header, control }
    }
}

/// Why a fold stopped before the scan did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Offsets run backwards, or lie below the base.
    Backwards {
        /// The first byte of the batch.
        position: u64,
        /// Its base offset.
        base_offset: i64,
    },
    /// Offsets reach into the next segment.
    Overlap {
        /// The first byte of the batch.
        position: u64,
        /// Its base offset.
        base_offset: i64,
    },
    /// The place that the operator named.
    Asked {
        /// The first byte of the batch.
        position: u64,
    },
}

impl Trouble {
    /// The code of the finding, if it is one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Trouble::Backwards { .. } => Some(Code::OffsetOrder),
            Trouble::Overlap { .. } => Some(Code::SegmentOverlap),
            Trouble::Asked { .. } => None,
        }
    }
}

/// Folds the batches of one segment.
pub struct SegmentFold<'a> {
    /// Base offset of the segment, or of the part of it that is being read.
    pub base_offset: i64,
    /// Where the segment must be split since offsets lie too far from its base: base offset and first byte of each part but the
    /// first.
    pub parts: Vec<(i64, u64)>,
    /// Base offset of the next segment.
    pub next_base: Option<i64>,
    /// The offset that the log has reached.
    pub next_offset: i64,
    /// Cut here.
    pub truncate_to: Option<i64>,
    /// Indexes in the making.
    pub indexes: Option<IndexRebuild>,
    /// Epochs as recovery assigns them.
    pub epochs: &'a mut LeaderEpochs,
    /// Where the log starts: epochs of batches before it are forgotten.
    pub log_start_offset: i64,
    /// Set when a batch has another epoch than the epochs that were read say.
    pub epoch_differs: bool,
    /// Set when the epochs that were read begin behind a batch, as they may where the log start has moved.
    pub epoch_untold: bool,
    /// Producer state up to here.
    pub producers: Option<&'a mut ReplayState>,
    /// Aborted transactions that ended in this segment.
    pub txn_index: TxnIndexBuilder,
    /// Markers of aborts seen, whether or not a transaction was open.
    pub abort_markers: u64,
    /// Batches taken.
    pub batches: u64,
    /// Batches that the producer state does not allow.
    pub producer_faults: u64,
    /// Why it stopped.
    pub trouble: Option<Trouble>,
}

impl SegmentFold<'_> {
    /// Takes the next batch; `Break` when it cannot follow.
    #[inline]
    pub fn batch(&mut self, fact: &Fact<'_>) -> ControlFlow<()> {
        let header = fact.header;
        if let Some(trouble) = self.trouble_with(fact) {
            self.trouble = Some(trouble);
            return ControlFlow::Break(());
        }
        if !is_addressable(self.base_offset, header.last_offset()) {
            // Only the rest of the log can tell whether there will be a split: the walk goes on as if it were one.
            self.base_offset = header.base_offset;
            self.parts.push((header.base_offset, fact.position));
            self.indexes = None;
        }
        if let Some(indexes) = &mut self.indexes
            && indexes.batch(header, fact.position).is_err()
        {
            // Offsets rise and are addressable, as was just seen; what is left is a timestamp index
            // that cannot follow.
            self.indexes = None;
        }
        if header.magic >= 2 {
            self.take_epoch(header);
        }
        self.take_producer(fact);
        self.next_offset = header.next_offset();
        self.batches = self.batches.saturating_add(1);
        ControlFlow::Continue(())
    }

    #[inline]
    fn trouble_with(&self, fact: &Fact<'_>) -> Option<Trouble> {
        let header = fact.header;
        let (position, base_offset, last_offset) =
            (fact.position, header.base_offset, header.last_offset());
        if self.truncate_to.is_some_and(|to| last_offset >= to) {
            return Some(Trouble::Asked { position });
        }
        if base_offset < self.next_offset.max(self.base_offset) || last_offset < base_offset {
            return Some(Trouble::Backwards { position, base_offset });
        }
        if self.next_base.is_some_and(|next| last_offset >= next) {
            return Some(Trouble::Overlap { position, base_offset });
        }
        None
    }

    #[inline]
    fn take_epoch(&mut self, header: &BatchHeader) {
        let (epoch, start) = (header.leader_epoch, header.base_offset);
        // Nearly always the batch is of the latest epoch.
        let is_of = |latest: EpochEntry| latest.epoch == epoch && latest.start_offset <= start;
        if epoch < 0 || self.epochs.latest().is_some_and(is_of) {
            return;
        }
        // Neither number is negative, so it is taken.
        let _ = self.epochs.assign_recovered(epoch, start);
        if start < self.log_start_offset {
            return;
        }
        match self.epochs.epoch_for_offset(start) {
            Some(told) => self.epoch_differs |= told != epoch,
            // The log start moves between two checkpoints of it, and takes the epochs before it
            // along.
            None => {
                let has_moved = self.epochs.earliest().is_some_and(|earliest| {
                    epoch == earliest.epoch || self.log_start_offset > 0 && epoch < earliest.epoch
                });
                self.epoch_untold |= has_moved;
                self.epoch_differs |= !has_moved;
            }
        }
    }

    #[inline]
    fn take_producer(&mut self, fact: &Fact<'_>) {
        if let Some(Control::End(marker)) = fact.control
            && marker.is_abort
        {
            self.abort_markers = self.abort_markers.saturating_add(1);
        }
        let Some(producers) = &mut self.producers else { return };
        let Some(event) = ProducerEvent::of_batch(fact.header, fact.control) else { return };
        match producers.apply(&event) {
            Ok(Some(completed)) if completed.aborted => {
                let entry = AbortedTxn {
                    producer_id: completed.producer_id,
                    first_offset: completed.first_offset,
                    last_offset: completed.last_offset,
                    last_stable_offset: completed.last_stable_offset,
                };
                // Markers' offsets rise, so the entry follows.
                let _ = self.txn_index.append(&entry);
            }
            Ok(_) => {}
            Err(_) => self.producer_faults = self.producer_faults.saturating_add(1),
        }
    }
}
