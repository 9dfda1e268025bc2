//! What does the log of a remote segment say against its transaction index and the local log?
//!
//! Each log is read by itself, many side by side. Where a transaction began is known of all that
//! begin in the segment; of the first marker of a producer it may be told by the segments before,
//! and is settled behind the reading, in the order of the segments.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use super::{Check, PART_BYTES_MAX, problem};
use crate::error::{Kind, Result};
use crate::index::TxnEntries;
use crate::io::OpenMode;
use crate::problem::{Code, Problem, Severity};
use crate::record::control::parse_control;
use crate::record::scan::{ScannedBatch, scan};
use crate::state::{EventKind, ProducerEvent};
use crate::tier::layout::SegmentPart;
use crate::tier::object_source::ObjectSource;
use crate::tier::remote_segment::RemoteSegment;
use crate::tier::target::get_exact;

/// Bytes of a log that are looked at at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// The first offsets of open transactions, by producer.
pub(super) type Open = BTreeMap<i64, i64>;

/// What was read of one segment.
#[derive(Debug, Default)]
pub(super) struct LogFindings {
    transactions: Transactions,
    /// Where its bytes are not those of the local log.
    differs: Option<Problem>,
}

/// The transactions in a segment's log, held against its index.
#[derive(Debug, Default)]
struct Transactions {
    /// The index's name.
    index: String,
    /// First offsets as the index has them, by producer and last offset.
    told: HashMap<(i64, i64), i64>,
    /// Those that have begun here and not ended.
    open: Open,
    /// The first marker of each producer.
    first_ends: Vec<FirstEnd>,
    /// Where in `first_ends` it stands.
    ended: HashMap<i64, usize>,
    /// The first that the index lacks of those that began behind another marker of the producer.
    missing: Option<Missing>,
}

/// The first marker of a producer in a segment.
#[derive(Clone, Copy, Debug)]
struct FirstEnd {
    producer_id: i64,
    /// Its offset.
    last: i64,
    is_abort: bool,
    /// Where the producer first wrote in the segment before it.
    first_here: Option<i64>,
    /// What the index tells of a transaction that ends here.
    told: Option<i64>,
}

/// A transaction that the index does not tell.
#[derive(Clone, Copy, Debug)]
struct Missing {
    producer_id: i64,
    first: i64,
    last: i64,
}

impl LogFindings {
    /// Reads the log of a segment.
    pub(super) fn read(check: &Check<'_>, segment: &RemoteSegment) -> Result<Self> {
        let transactions = Transactions::read(check, segment)?;
        Ok(LogFindings { transactions, differs: differs(check, segment)? })
    }

    /// The problems. `open` has the transactions that are open where the segment begins, as far as
    /// they are known, and then those that are open where it ends.
    pub(super) fn settle(self, open: &mut Open) -> impl Iterator<Item = Problem> {
        let index = self.transactions.index.clone();
        let aborted = self.transactions.settle(open).map(|Missing { producer_id, first, last }| {
            let detail = format!(
                "producer {producer_id} aborted offsets {first} to {last}, which the index does \
                 not tell: readers of committed data get its records"
            );
            problem(Code::AbortedForgotten, Severity::Corrupt, index, first, detail)
        });
        aborted.into_iter().chain(self.differs)
    }
}

impl Transactions {
    fn read(check: &Check<'_>, segment: &RemoteSegment) -> Result<Self> {
        let target = check.remote.target;
        let log = check.name(segment, SegmentPart::Log);
        let index = check.name(segment, SegmentPart::TransactionIndex);
        let bytes = match target.get(&index, None, PART_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => Vec::new(),
            other => other?,
        };
        let told = TxnEntries::new(&bytes)
            .iter()
            .map(|txn| ((txn.producer_id, txn.last_offset), txn.first_offset))
            .collect();
        let mut found = Transactions { index, told, ..Self::default() };
        let size = match target.size(&log) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(found),
            other => other?,
        };
        let mut source = ObjectSource::new(target, &log, size, WINDOW_BYTES);
        scan(&mut source, 0, u64::MAX, &mut |batch: ScannedBatch<'_>| {
            let header = batch.header;
            let control = header.is_control().then(|| parse_control(header, batch.bytes));
            if let Some(event) = ProducerEvent::of_batch(header, control) {
                found.take(&event);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        // What it may be asked for was looked up.
        found.told = HashMap::new();
        Ok(found)
    }

    fn take(&mut self, event: &ProducerEvent) {
        let (producer_id, offset) = (event.producer_id, event.base_offset);
        match event.kind {
            EventKind::Data { transactional: true } => {
                self.open.entry(producer_id).or_insert(offset);
            }
            EventKind::Marker { abort: is_abort, .. } => {
                let first_here = self.open.remove(&producer_id);
                let told = self.told.get(&(producer_id, offset)).copied();
                let end = FirstEnd { producer_id, last: offset, is_abort, first_here, told };
                let place = self.first_ends.len();
                if *self.ended.entry(producer_id).or_insert(place) == place {
                    self.first_ends.push(end);
                } else if self.missing.is_none() {
                    self.missing = end.missing(first_here);
                }
            }
            EventKind::Data { .. } | EventKind::EmptyControl => {}
        }
    }

    /// The first transaction that a marker in the segment aborts and its index lacks.
    fn settle(self, open: &mut Open) -> Option<Missing> {
        let mut missing: Option<Missing> = None;
        for end in &self.first_ends {
            let first = open.remove(&end.producer_id).or(end.first_here);
            missing = missing.or_else(|| end.missing(first));
        }
        for (producer_id, first) in self.open {
            open.entry(producer_id).or_insert(first);
        }
        // By their markers, of both kinds the first.
        missing.into_iter().chain(self.missing).min_by_key(|missing| missing.last)
    }
}

impl FirstEnd {
    /// The transaction that begins at `first`, if it is aborted and the index does not tell it.
    fn missing(&self, first: Option<i64>) -> Option<Missing> {
        let FirstEnd { producer_id, last, is_abort, told, .. } = *self;
        // One may begin before all that was read: an entry that begins earlier tells of it, too.
        let is_told = |first: &i64| told.is_some_and(|told| told <= *first);
        let first = first.filter(|first| is_abort && !is_told(first))?;
        Some(Missing { producer_id, first, last })
    }
}

/// Compares the log with the local one of the same base, as far as both go.
fn differs(check: &Check<'_>, segment: &RemoteSegment) -> Result<Option<Problem>> {
    let Some(local) = check.inventory.segments.get(&segment.start_offset) else {
        return Ok(None);
    };
    let (target, start) = (check.remote.target, segment.start_offset);
    let name = check.name(segment, SegmentPart::Log);
    let size = match target.size(&name) {
        Err(error) if error.kind() == Kind::NotFound => return Ok(None),
        other => other?,
    };
    if u64::try_from(segment.size_bytes).is_ok_and(|told| told != size) {
        let detail = format!("{size} bytes, its metadata says {}", segment.size_bytes);
        return Ok(Some(problem(Code::RemoteDiffers, Severity::Corrupt, name, start, detail)));
    }
    let file = check.storage.open(&check.dir.join(&local.log), OpenMode::Read)?;
    let end = size.min(local.log_size_bytes);
    let window = u64::try_from(WINDOW_BYTES).unwrap_or(u64::MAX);
    let mut at = 0;
    while at < end {
        let to = at.saturating_add(window).min(end);
        let there = get_exact(target, &name, at..to)?;
        let mut here = vec![0; there.len()];
        let read = file.read_at(&mut here, at)?;
        here.truncate(read);
        if let Some(skipped) = there.iter().zip(&here).position(|(a, b)| a != b) {
            let skipped = u64::try_from(skipped).unwrap_or(u64::MAX);
            let detail = "other bytes than the local log of the same base".to_owned();
            let found = problem(Code::RemoteDiffers, Severity::Corrupt, name, start, detail);
            return Ok(Some(Problem { position: Some(at.saturating_add(skipped)), ..found }));
        }
        at = to;
    }
    Ok(None)
}
