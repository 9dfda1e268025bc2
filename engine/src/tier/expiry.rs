//! Which remote segments of a log may go? What its leader decides from time to time.
//!
//! [`plan_expiry`] only decides; [`expire`](super::expire) does it, in the one order that loses
//! nothing: the log start is raised before the first object goes.

use std::borrow::Cow;
use std::collections::HashSet;

use super::highest_remote::begins_above;
use super::lineage::Lineage;
use super::remote_segment::{RemoteSegment, RemoteSegmentState};
use super::size_budget::{SizeBreach, SizeBudget, SizeRetention, size_budget};
use crate::state::{EpochEntry, LeaderEpochs};
use crate::uuid::Uuid;

/// What a decision is made from.
#[derive(Clone, Copy)]
pub struct ExpiryInput<'a> {
    /// Every segment of the partition that is known, in any order.
    pub segments: &'a [&'a RemoteSegment],
    /// The log's own epochs.
    pub epochs: &'a LeaderEpochs,
    /// The log start.
    pub log_start_offset: i64,
    /// The log end, exclusive.
    pub log_end_offset: i64,
    /// Sizes and their limits.
    pub sizes: SizeRetention,
    /// `retention.ms`, -1 for no limit.
    pub retention_ms: i64,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
    /// Whether this broker is copying the segment of this id now.
    pub is_being_copied: &'a dyn Fn(Uuid) -> bool,
    /// What the run before left in [`SizeBudget::all_valid`]; `false` at first, and after the task
    /// was cancelled.
    pub all_valid: bool,
}

/// Why a segment goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpiryReason {
    /// Its removal began earlier and was not finished.
    Retry,
    /// It lies before the log start.
    LogStart,
    /// Its youngest record is older than `retention.ms`.
    Time,
    /// The log is larger than `retention.bytes`.
    Size,
    /// All its epochs are older than the log knows.
    Unreferenced,
}

/// Where the scan of the segments ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryStop {
    /// All segments were looked at.
    End,
    /// This segment is being copied: what lies behind it may change.
    Copying(Uuid),
    /// This segment is the first that stays.
    Stays(Uuid),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiryPlan<'a> {
    /// What the log start becomes, before anything is deleted; it is above the one there is.
    pub new_log_start: Option<i64>,
    /// What goes, in order, and why.
    pub deletes: Vec<(&'a RemoteSegment, ExpiryReason)>,
    /// What goes after that: segments of epochs before those that the log knows.
    pub unreferenced: Vec<&'a RemoteSegment>,
    /// Where the scan ended.
    pub stop: ExpiryStop,
    /// The sizes as they were found.
    pub budget: SizeBudget,
    /// The first epoch of the log, where it starts above the log start: the epochs before it are
    /// missing, and no segment is deleted for being older than they are.
    pub epochs_incomplete: Option<EpochEntry>,
}

/// Decides what goes.
///
/// A log whose epochs begin above its start has lost the earlier ones, as after an interrupted
/// rebuild of a follower by Kafka. Kafka takes the remote segments of those epochs for foreign and
/// deletes them; here they stay, and the plan says so.
#[must_use]
pub fn plan_expiry<'a>(input: &ExpiryInput<'a>) -> ExpiryPlan<'a> {
    // spec: tiered 6
    let lineage = Lineage::new(input.epochs.entries(), input.log_end_offset);
    let finished = || {
        let all = input.segments.iter().copied();
        all.filter(|segment| segment.state == RemoteSegmentState::CopyFinished)
    };
    let finished_bytes = finished().map(RemoteSegment::log_size_bytes).sum();
    let budget = size_budget(&input.sizes, finished_bytes, input.all_valid, || {
        finished().filter(|it| lineage.holds(it)).map(RemoteSegment::log_size_bytes).sum()
    });
    let mut scan = Scan {
        input,
        lineage: &lineage,
        budget: budget.breach.map_or(0, SizeBreach::breach_bytes),
        cutoff_ms: cutoff(input.now_ms, input.retention_ms),
        deletes: Vec::new(),
        listed: HashSet::new(),
        log_start: input.log_start_offset,
    };
    let stop = scan.run();
    let epochs_incomplete = begins_above(input.epochs, input.log_start_offset);
    let unreferenced = match (input.epochs.earliest(), epochs_incomplete) {
        // spec: tiered-faults T4
        (Some(earliest), None) => scan.older_than(earliest.epoch),
        _ => Vec::new(),
    };
    ExpiryPlan {
        new_log_start: (scan.log_start > input.log_start_offset).then_some(scan.log_start),
        deletes: scan.deletes,
        unreferenced,
        stop,
        budget,
        epochs_incomplete,
    }
}

/// Records before this time are too old.
fn cutoff(now_ms: i64, retention_ms: i64) -> Option<i64> {
    let cutoff = now_ms.checked_sub(retention_ms).filter(|_| retention_ms >= 0);
    cutoff.filter(|cutoff| *cutoff >= 0)
}

struct Scan<'s, 'a> {
    input: &'s ExpiryInput<'a>,
    lineage: &'s Lineage,
    /// Bytes that the log has too many.
    budget: u64,
    cutoff_ms: Option<i64>,
    deletes: Vec<(&'a RemoteSegment, ExpiryReason)>,
    listed: HashSet<Uuid>,
    log_start: i64,
}

impl<'a> Scan<'_, 'a> {
    fn run(&mut self) -> ExpiryStop {
        let listed = self.list();
        for epoch in self.lineage.epochs() {
            let first = listed.partition_point(|(it, _)| *it < epoch.epoch);
            let from = listed.get(first..).unwrap_or_default();
            for (_, segment) in from.iter().take_while(|(it, _)| *it == epoch.epoch) {
                if let Some(stop) = self.look(segment) {
                    return stop;
                }
            }
        }
        ExpiryStop::End
    }

    /// The segments of each epoch, by epoch and start; of the same start the finished ones first.
    fn list(&self) -> Vec<(i32, &'a RemoteSegment)> {
        let place = |segment: &&RemoteSegment| {
            (segment.start_offset, segment.state != RemoteSegmentState::CopyFinished)
        };
        // Whoever lists them has them in order as a rule, and most know of one epoch.
        let mut by_start = Cow::Borrowed(self.input.segments);
        if !by_start.is_sorted_by_key(place) {
            by_start.to_mut().sort_by_key(place);
        }
        let mut listed = Vec::with_capacity(by_start.len());
        for segment in by_start.iter() {
            listed.extend(segment.leader_epochs.iter().map(|entry| (entry.epoch, *segment)));
        }
        if !listed.is_sorted_by_key(|(epoch, _)| *epoch) {
            listed.sort_by_key(|(epoch, _)| *epoch);
        }
        listed
    }

    fn look(&mut self, segment: &'a RemoteSegment) -> Option<ExpiryStop> {
        let id = segment.id.segment_id;
        if (self.input.is_being_copied)(id) {
            return Some(ExpiryStop::Copying(id));
        }
        match segment.state {
            RemoteSegmentState::DeleteFinished => return None,
            _ if self.listed.contains(&id) => return None,
            RemoteSegmentState::DeleteStarted => {
                self.delete(segment, ExpiryReason::Retry);
                return None;
            }
            RemoteSegmentState::CopyStarted | RemoteSegmentState::CopyFinished => {}
        }
        if self.is_before_log_start(segment) {
            self.delete(segment, ExpiryReason::LogStart);
            return None;
        }
        if !self.lineage.holds(segment) {
            return None;
        }
        let size = segment.log_size_bytes();
        let reason = if self.cutoff_ms.is_some_and(|cutoff| segment.max_timestamp_ms < cutoff) {
            self.budget = self.budget.saturating_sub(size);
            ExpiryReason::Time
        } else if self.budget > 0 && self.budget >= size {
            self.budget -= size;
            ExpiryReason::Size
        } else {
            return Some(ExpiryStop::Stays(id));
        };
        self.log_start = self.log_start.max(segment.end_offset.saturating_add(1));
        self.delete(segment, reason);
        None
    }

    fn is_before_log_start(&self, segment: &RemoteSegment) -> bool {
        let earliest = self.lineage.epochs().first();
        earliest.is_some_and(|first| {
            segment.leader_epochs.iter().all(|entry| entry.epoch <= first.epoch)
        }) && segment.end_offset < self.input.log_start_offset
    }

    fn delete(&mut self, segment: &'a RemoteSegment, reason: ExpiryReason) {
        self.listed.insert(segment.id.segment_id);
        self.deletes.push((segment, reason));
    }

    /// Segments not listed yet whose epochs are all before `epoch`, by start.
    fn older_than(&self, epoch: i32) -> Vec<&'a RemoteSegment> {
        let mut older: Vec<_> = (self.input.segments.iter().copied())
            .filter(|segment| {
                let id = segment.id.segment_id;
                segment.state != RemoteSegmentState::DeleteFinished
                    && segment.leader_epochs.iter().all(|entry| entry.epoch < epoch)
                    && !self.listed.contains(&id)
                    && !(self.input.is_being_copied)(id)
            })
            .collect();
        older.sort_by_key(|segment| (segment.start_offset, segment.id.segment_id));
        older
    }
}

#[cfg(test)]
mod tests;
