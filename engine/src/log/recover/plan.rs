//! What recovery of a partition has found, and what it will do.

use std::path::PathBuf;

use crate::io::Metadata;
use crate::log::recover::stage::Staged;
use crate::problem::{Code, Problem};
use crate::segment::damage::Survivors;
use crate::state::EpochEntry;

/// One change to a file of the partition directory. Names are relative to it.
#[derive(Debug)]
pub enum Action {
    /// Unlink a file that the loader would unlink.
    Remove {
        /// The file.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// Give a complete output of compaction or split its final name.
    Rename {
        /// Present name.
        from: String,
        /// Final name.
        to: String,
    },
    /// Replace or make a small file.
    Write {
        /// The file.
        name: String,
        /// Its new bytes.
        staged: Staged,
        /// Why.
        why: &'static str,
        /// The old file is written over: whatever a crash leaves of it, the next start makes it anew.
        in_place: bool,
    },
    /// Shorten a small file in place: what stays of it is right.
    Shorten {
        /// The file.
        name: String,
        /// Its new length.
        size_bytes: u64,
    },
}

impl Action {
    /// The file it changes.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Action::Remove { name, .. }
            | Action::Write { name, .. }
            | Action::Shorten { name, .. } => name,
            Action::Rename { from, .. } => from,
        }
    }
}

/// Why a log is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutReason {
    /// The bytes are damaged.
    Damage(Code),
    /// The operator named the place.
    Asked,
}

/// The segment in which a log is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutSegment {
    /// Its base offset.
    pub base_offset: i64,
    /// The first byte that goes.
    pub position: u64,
    /// Bytes that go.
    pub cut_bytes: u64,
}

/// Where a log ends from now on.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The segment that is cut; `None` when every segment goes whole.
    pub segment: Option<CutSegment>,
    /// The first offset that goes.
    pub from_offset: i64,
    /// Why.
    pub reason: CutReason,
    /// Why, in words.
    pub detail: String,
    /// Whole batches that go.
    pub survivors: Survivors,
    /// Segments that go whole: base offset and bytes.
    pub later_segments: Vec<(i64, u64)>,
}

impl Cut {
    /// Whether the segment with this base stays, if only a part of it.
    #[must_use]
    pub fn keeps(&self, base_offset: i64) -> bool {
        self.segment.is_some_and(|segment| base_offset <= segment.base_offset)
    }
}

/// Why a partition is left as it is.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// What stands in the way.
    pub code: Code,
    /// One or two sentences for the operator, with what to do next.
    pub reason: String,
    /// First and end offset (exclusive) of what would be lost, where that is what stands in the way.
    pub loss: Option<(i64, i64)>,
}

/// The facts of a partition as it will be.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Where the log starts.
    pub log_start_offset: i64,
    /// Where it ends, exclusive.
    pub log_end_offset: i64,
    /// Where transactions are decided up to.
    pub last_stable_offset: i64,
    /// Leader epochs.
    pub epochs: Vec<EpochEntry>,
    /// Producers that are known.
    pub producers: usize,
    /// Segments.
    pub segments: usize,
    /// Segments of which every batch was read.
    pub segments_read: usize,
    /// Bytes of logs that were read.
    pub bytes_read: u64,
    /// Bytes of logs there are.
    pub log_bytes: u64,
    /// Batches that were read.
    pub batches_read: u64,
    /// Batches that the producer state does not allow, and that say nothing to it.
    pub producer_faults: u64,
}

/// A segment that is to be split: where each part begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The segment.
    pub base_offset: i64,
    /// Base offset and first byte of each part; the first is the segment's own.
    pub parts: Vec<(i64, u64)>,
}

/// What recovery of a partition will do.
#[derive(Debug, Default)]
pub struct Plan {
    /// The partition directory.
    pub dir: PathBuf,
    /// Set when the partition is left as it is; then there is nothing to do.
    pub refusal: Option<Refusal>,
    /// Set when a segment must be split first; the partition is analysed anew after that. Actions are then only what an
    /// interrupted operation asks for, and nothing stands in the way of what is to follow.
    pub split: Option<Split>,
    /// Set when the log is cut.
    pub cut: Option<Cut>,
    /// Changes to small files and leftovers, in order.
    pub actions: Vec<Action>,
    /// Snapshots at the start of the log or before it: Kafka removes them when it loads the log, but a recovery that is
    /// killed and begins anew needs them. To be removed when the directory has its marker.
    pub retire: Vec<String>,
    /// What is wrong or worth a word.
    pub problems: Vec<Problem>,
    /// The facts as they will be.
    pub outcome: Outcome,
    /// Whether what is cut is kept in `.log.lost` files.
    pub keep_lost: bool,
    /// Owner and mode for new files: those of a log, if there is one.
    pub like: Option<Metadata>,
}

impl Plan {
    /// Whether nothing needs to be done before the directory gets its marker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.cut.is_none() && self.split.is_none()
    }

    /// Whether bytes of the log itself change.
    #[must_use]
    pub fn touches_log(&self) -> bool {
        self.cut.is_some() || self.split.is_some()
    }
}
