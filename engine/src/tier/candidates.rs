//! Which segments of a log are to be uploaded now, and why are the others not?
//!
//! ```text
//! slot       0        1        2        3        4        5 (active)
//!         copied   copied     from     ...    above LSO
//!         '-------------'   '-------------'   '---------------'
//!          not any more       candidates         not yet
//! ```
//!
//! Base offsets rise, so the candidates of a log are a range of its segments: it begins with the
//! segment that holds the first offset which is not copied, and ends with the first segment that
//! must wait. Nothing behind that one is uploaded, whatever it looks like itself: remote storage
//! counts its end as "copied up to here", and a hole before it would stay for ever.

use std::ops::Range;

use crate::log::columns::UNKNOWN_TIMESTAMP_MS;
use crate::problem::Code;

/// Up to when uploads are put off: `remote.copy.lag.ms` and `remote.copy.lag.bytes` (KIP-1241).
/// No release of Kafka up to 4.3.1 has them; without a lag everything is uploaded as soon as it may
/// be.
///
/// A segment is to be uploaded when either says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyLag {
    /// Milliseconds since the segment's largest timestamp; 0: at once, -1: not by its age.
    pub ms: i64,
    /// Bytes of the log behind the segment; 0: at once, -1: not by what is behind it.
    pub bytes: i64,
}

impl CopyLag {
    /// The settings as they are written, where -1 stands for the local retention; where that has no
    /// limit, the setting never lets a segment go.
    #[must_use]
    pub fn of_settings(
        (ms, bytes): (i64, i64),
        (local_retention_ms, local_retention_bytes): (i64, i64),
    ) -> Self {
        CopyLag {
            ms: if ms < 0 { local_retention_ms } else { ms },
            bytes: if bytes < 0 { local_retention_bytes } else { bytes },
        }
    }
}

/// A segment with a side file that must not be uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedSegment {
    /// Which segment of the log, from 0.
    pub slot: u32,
    /// What is wrong.
    pub code: Code,
}

/// What the rule looks at of one log: columns of equal length, one entry a segment, and offsets.
#[derive(Clone, Copy, Debug)]
pub struct UploadView<'a> {
    /// Base offsets, rising. The last segment is the one that is written to.
    pub bases: &'a [i64],
    /// For each segment the bytes of all before it. Counted from anywhere and wrapping: differences
    /// are what means something.
    pub starts_bytes: &'a [u64],
    /// The largest timestamp of each segment: -1 where its records have none,
    /// [`UNKNOWN_TIMESTAMP_MS`] where nobody has looked.
    pub max_timestamps_ms: &'a [i64],
    /// The bytes of the segment that is written to.
    pub active_size_bytes: u64,
    /// Segments that must not be uploaded, by slot.
    pub damaged: &'a [DamagedSegment],
    /// The first offset of the log, remote storage included.
    pub log_start_offset: i64,
    /// Up to where, exclusive, everything is replicated and decided.
    pub last_stable_offset: i64,
    /// The last offset that is copied; -1 for none.
    pub copied_offset: i64,
    /// From where on leader epochs are known: a segment that ends before it cannot say which
    /// leaders wrote it, and nobody would find it again.
    pub lineage_start_offset: i64,
    /// Whether uploads are put off.
    pub lag: Option<CopyLag>,
    /// Whether the topic's segments are copied at all: it has remote storage, and
    /// `remote.log.copy.disable` is not set.
    pub is_copied: bool,
}

impl Default for UploadView<'_> {
    /// A log without segments and without limits.
    fn default() -> Self {
        UploadView {
            bases: &[],
            starts_bytes: &[],
            max_timestamps_ms: &[],
            active_size_bytes: 0,
            damaged: &[],
            log_start_offset: 0,
            last_stable_offset: 0,
            copied_offset: -1,
            lineage_start_offset: 0,
            lag: None,
            is_copied: true,
        }
    }
}

/// Why a segment is not uploaded now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEligible {
    /// It is written to.
    Active,
    /// Its end is not replicated, or in a transaction that is not decided.
    AboveLastStable,
    /// It was uploaded before.
    AlreadyCopied,
    /// It lies before the start of the log.
    BeforeLogStart,
    /// The settings put it off.
    Lagging,
    /// The settings may put it off: its largest timestamp is not known yet.
    TimestampUnknown,
    /// No leader epoch is known for any of its offsets.
    OutsideLineage,
    /// One of its side files is damaged.
    Damaged(Code),
    /// A segment before it must wait.
    Behind,
    /// The last stable offset is negative: this is no state of a log, and nothing is uploaded.
    Inconsistent,
    /// The topic's segments are not copied.
    CopyDisabled,
}

impl NotEligible {
    /// Whether it keeps each segment of a log, whatever is said of the segment itself.
    fn is_of_all(self) -> bool {
        matches!(self, Self::Inconsistent | Self::CopyDisabled)
    }

    /// The reason as the command line prints it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::AboveLastStable => "above_last_stable",
            Self::AlreadyCopied => "already_copied",
            Self::BeforeLogStart => "before_log_start",
            Self::Lagging => "lagging",
            Self::TimestampUnknown => "timestamp_unknown",
            Self::OutsideLineage => "outside_lineage",
            Self::Damaged(code) => code.as_str(),
            Self::Behind => "behind",
            Self::Inconsistent => "inconsistent",
            Self::CopyDisabled => "copy_disabled",
        }
    }
}

/// What is to be uploaded of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadAnswer {
    /// The first candidate's slot; where there is no candidate, that of the segment that waits.
    pub first: u32,
    /// The slot behind the last candidate.
    pub end: u32,
    /// Why the segment at `end` is none.
    pub stop: NotEligible,
    /// The bytes of the candidates' logs.
    pub size_bytes: u64,
    /// The largest timestamp of the first candidate, which has waited longest:
    /// [`UNKNOWN_TIMESTAMP_MS`] where it is not known or there is no candidate.
    pub oldest_timestamp_ms: i64,
}

impl UploadAnswer {
    /// How many candidates there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.end - self.first
    }

    /// The slots of the candidates.
    #[must_use]
    pub fn slots(&self) -> Range<usize> {
        to_slot(self.first)..to_slot(self.end)
    }

    /// For how long the first candidate has waited, by its largest timestamp; `None` without one.
    #[must_use]
    pub fn oldest_age_ms(&self, now_ms: i64) -> Option<i64> {
        let is_known = self.oldest_timestamp_ms >= 0;
        is_known.then(|| now_ms.saturating_sub(self.oldest_timestamp_ms))
    }

    fn none(slot: usize, stop: NotEligible) -> Self {
        let slot = from_slot(slot);
        let oldest_timestamp_ms = UNKNOWN_TIMESTAMP_MS;
        UploadAnswer { first: slot, end: slot, stop, size_bytes: 0, oldest_timestamp_ms }
    }
}

impl UploadView<'_> {
    /// The candidates, and why there are no more.
    #[must_use]
    pub fn candidates(&self, now_ms: i64) -> UploadAnswer {
        // spec: tiered 2.2
        let Some(active) = self.bases.len().checked_sub(1) else {
            return UploadAnswer::none(0, NotEligible::Active);
        };
        if !self.is_copied {
            return UploadAnswer::none(0, NotEligible::CopyDisabled);
        }
        if self.last_stable_offset < 0 {
            return UploadAnswer::none(0, NotEligible::Inconsistent);
        }
        let first = self.first_slot(active);
        let (end, stop) = self.end_slot(first, active, now_ms);
        if end == first {
            return UploadAnswer::none(first, stop);
        }
        let start_of = |slot| self.starts_bytes.get(slot).copied().unwrap_or_default();
        let oldest = self.max_timestamps_ms.get(first).copied();
        UploadAnswer {
            first: from_slot(first),
            end: from_slot(end),
            stop,
            size_bytes: start_of(end).wrapping_sub(start_of(first)),
            oldest_timestamp_ms: oldest.unwrap_or(UNKNOWN_TIMESTAMP_MS),
        }
    }

    /// Why a segment is no candidate by this answer; `None` for one that is.
    #[must_use]
    pub fn why_not(&self, answer: &UploadAnswer, slot: usize, now_ms: i64) -> Option<NotEligible> {
        if answer.slots().contains(&slot) {
            return None;
        }
        if answer.stop.is_of_all() {
            return Some(answer.stop);
        }
        let Some(next) = self.bases.get(slot.saturating_add(1)) else {
            return Some(NotEligible::Active);
        };
        Some(match self.wait(slot, now_ms) {
            _ if slot < to_slot(answer.first) && *next <= self.copied_offset.saturating_add(1) => {
                NotEligible::AlreadyCopied
            }
            _ if slot < to_slot(answer.first) => NotEligible::BeforeLogStart,
            _ if *next > self.last_stable_offset => NotEligible::AboveLastStable,
            Some(reason) => reason,
            None => NotEligible::Behind,
        })
    }

    /// Says of all segments what [`why_not`](Self::why_not) says of each, as runs of slots that
    /// follow each other: in order, and each slot once.
    pub fn runs(
        &self,
        answer: &UploadAnswer,
        now_ms: i64,
        mut tell: impl FnMut(Range<usize>, Option<NotEligible>),
    ) {
        let mut from = 0;
        let mut run = |end: usize, reason| {
            if from < end {
                tell(from..end, reason);
                from = end;
            }
        };
        let Some(active) = self.bases.len().checked_sub(1) else { return };
        if answer.stop.is_of_all() {
            return run(self.bases.len(), Some(answer.stop));
        }
        let behind = |offset: i64| {
            let nexts = self.bases.get(1..).unwrap_or_default();
            nexts.partition_point(|next| *next <= offset)
        };
        let slots = answer.slots().start.min(active)..answer.slots().end.min(active);
        let copied = behind(self.copied_offset.saturating_add(1));
        run(copied.min(slots.start), Some(NotEligible::AlreadyCopied));
        run(slots.start, Some(NotEligible::BeforeLogStart));
        run(slots.end, None);
        for slot in slots.end..behind(self.last_stable_offset).min(active) {
            let reason = self.wait(slot, now_ms).unwrap_or(NotEligible::Behind);
            run(slot.saturating_add(1), Some(reason));
        }
        run(active, Some(NotEligible::AboveLastStable));
        run(self.bases.len(), Some(NotEligible::Active));
    }

    /// The bytes of the logs of some segments, without the active one's.
    #[must_use]
    pub fn size_of(&self, slots: Range<usize>) -> u64 {
        let start_of = |slot| self.starts_bytes.get(slot).copied();
        let pair = start_of(slots.start).zip(start_of(slots.end));
        pair.map_or(0, |(start, end)| end.wrapping_sub(start))
    }

    /// The slot of the segment that holds the first offset to be copied.
    fn first_slot(&self, active: usize) -> usize {
        let from = self.copied_offset.saturating_add(1).max(self.log_start_offset);
        self.slot_of(from, active)
    }

    /// The slot of the last segment that begins at `offset` or before it; the first without one.
    fn slot_of(&self, offset: i64, active: usize) -> usize {
        // Most logs are copied and stable up to one of their last two segments.
        let begins_before = |slot: &usize| self.bases.get(*slot).is_some_and(|it| *it <= offset);
        let last_two = [active, active.saturating_sub(1)];
        last_two
            .into_iter()
            .find(begins_before)
            .unwrap_or_else(|| self.bases.partition_point(|base| *base <= offset).saturating_sub(1))
    }

    /// The slot of the first segment from `first` on that must wait, and why it must.
    fn end_slot(&self, first: usize, active: usize, now_ms: i64) -> (usize, NotEligible) {
        let is_stable = |slot| self.bases.get(slot).is_some_and(|b| *b <= self.last_stable_offset);
        let (mut end, mut stop) = if is_stable(active) {
            (active, NotEligible::Active)
        } else {
            let slot = self.slot_of(self.last_stable_offset, active);
            (slot.max(first), NotEligible::AboveLastStable)
        };
        if first == active {
            return (active, NotEligible::Active);
        }
        if end > first && self.is_outside_lineage(first) {
            (end, stop) = (first, NotEligible::OutsideLineage);
        }
        if let Some(damaged) = self.first_damaged(first).filter(|found| to_slot(found.slot) < end) {
            (end, stop) = (to_slot(damaged.slot), NotEligible::Damaged(damaged.code));
        }
        if let Some(lag) = self.lag {
            let waits = |slot| Some((slot, self.lags(lag, slot, now_ms)?));
            if let Some(waiting) = (first..end).find_map(waits) {
                (end, stop) = waiting;
            }
        }
        (end, stop)
    }

    /// What keeps a segment waiting whatever stands before it.
    fn wait(&self, slot: usize, now_ms: i64) -> Option<NotEligible> {
        if self.is_outside_lineage(slot) {
            return Some(NotEligible::OutsideLineage);
        }
        let damaged = self.first_damaged(slot).filter(|found| to_slot(found.slot) == slot);
        if let Some(damaged) = damaged {
            return Some(NotEligible::Damaged(damaged.code));
        }
        self.lag.and_then(|lag| self.lags(lag, slot, now_ms))
    }

    fn is_outside_lineage(&self, slot: usize) -> bool {
        let next = self.bases.get(slot.saturating_add(1));
        next.is_some_and(|next| *next <= self.lineage_start_offset)
    }

    fn first_damaged(&self, slot: usize) -> Option<DamagedSegment> {
        let at = self.damaged.partition_point(|damaged| to_slot(damaged.slot) < slot);
        self.damaged.get(at).copied()
    }

    fn lags(&self, lag: CopyLag, slot: usize, now_ms: i64) -> Option<NotEligible> {
        // spec: tiered 2.4
        if lag.ms == 0 || lag.bytes == 0 {
            return None;
        }
        let active = self.bases.len().saturating_sub(1);
        let newer = self.size_of(slot.saturating_add(1)..active);
        let newer = newer.saturating_add(self.active_size_bytes);
        if u64::try_from(lag.bytes).is_ok_and(|limit| newer >= limit) {
            return None;
        }
        if lag.ms < 0 {
            return Some(NotEligible::Lagging);
        }
        match self.max_timestamps_ms.get(slot).copied().unwrap_or(UNKNOWN_TIMESTAMP_MS) {
            UNKNOWN_TIMESTAMP_MS => Some(NotEligible::TimestampUnknown),
            largest if now_ms.saturating_sub(largest) >= lag.ms => None,
            _ => Some(NotEligible::Lagging),
        }
    }
}

fn to_slot(slot: u32) -> usize {
    usize::try_from(slot).unwrap_or(usize::MAX)
}

fn from_slot(slot: usize) -> u32 {
    u32::try_from(slot).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
