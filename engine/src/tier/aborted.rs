//! Which transactions must a reader of remote records leave out? Across segments, remote and local,
//! in order and each once.

use super::remote_segment::RemoteSegment;
use super::view::RemoteView;
use crate::error::Result;
use crate::index::AbortedTxn;

/// The aborted transactions that a fetch from `fetch_offset` to before `upper_bound` must know, that
/// begins in `segment`: by first offset and producer id.
///
/// An entry that was made when all before `upper_bound` was decided ends the search; else it goes
/// on to the next remote segments and then to the local ones, which may hold the same entries again.
///
/// # Errors
/// Those of the side files and of the disk.
pub fn remote_aborted_transactions(
    view: &RemoteView<'_>,
    segment: &RemoteSegment,
    fetch_offset: i64,
    upper_bound: i64,
) -> Result<Vec<AbortedTxn>> {
    // spec: tiered 8
    let mut found = InOrder::default();
    if !segment.is_txn_index_empty && found.take(view, segment, fetch_offset, upper_bound)? {
        return Ok(found.finish());
    }
    let mut offset = segment.end_offset.saturating_add(1);
    while let Some(next) = next_with_txn_index(view, offset) {
        if found.take(view, next, fetch_offset, upper_bound)? {
            return Ok(found.finish());
        }
        // A segment ends at its start or behind, so that this goes forward.
        offset = next.end_offset.saturating_add(1).max(offset.saturating_add(1));
    }
    let start = found.all.len();
    view.local.collect_aborted(fetch_offset, upper_bound, &mut found.all)?;
    found.look(start);
    Ok(found.finish())
}

/// The first segment from `offset` on that may have a transaction index, of the epoch there or of a
/// later one.
#[must_use]
pub fn next_with_txn_index<'a>(view: &RemoteView<'a>, offset: i64) -> Option<&'a RemoteSegment> {
    // spec: tiered 8
    let first = view.epochs.epoch_for_offset(offset)?;
    let entries = view.epochs.entries();
    let slot = entries.partition_point(|entry| entry.epoch < first);
    entries.get(slot..)?.iter().find_map(|entry| {
        view.cache.next_with_txn_index(entry.epoch, entry.start_offset.max(offset))
    })
}

/// Entries as they are found, and whether they are in order so far.
#[derive(Default)]
struct InOrder {
    all: Vec<AbortedTxn>,
    is_mixed: bool,
}

impl InOrder {
    /// Takes those of a segment; says whether the search is over.
    fn take(
        &mut self,
        view: &RemoteView<'_>,
        segment: &RemoteSegment,
        fetch_offset: i64,
        upper_bound: i64,
    ) -> Result<bool> {
        let start = self.all.len();
        let indexes = view.indexes.indexes(segment)?;
        let is_over = indexes.collect_aborted(fetch_offset, upper_bound, &mut self.all)?;
        self.look(start);
        Ok(is_over)
    }

    /// Looks whether those from `start` on follow each other and the ones before, while they are
    /// still in the processor's cache: nearly always they do.
    fn look(&mut self, start: usize) {
        let from = start.saturating_sub(1);
        let fresh = self.all.get(from..).unwrap_or_default();
        let pairs = fresh.iter().zip(fresh.iter().skip(1));
        // Without a branch in the loop.
        self.is_mixed |= pairs.fold(false, |mixed, (one, next)| mixed | (key(one) >= key(next)));
    }

    fn finish(mut self) -> Vec<AbortedTxn> {
        if self.is_mixed {
            self.all.sort_by_key(key);
            self.all.dedup_by_key(|entry| key(entry));
        }
        self.all
    }
}

fn key(entry: &AbortedTxn) -> (i64, i64) {
    (entry.first_offset, entry.producer_id)
}
