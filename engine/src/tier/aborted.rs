//! Which transactions must a reader of remote records leave out? Across segments, remote and local,
//! in order and each once.

use super::indexes::SegmentIndexes;
use super::remote_segment::RemoteSegment;
use super::view::RemoteView;
use crate::error::Result;
use crate::index::AbortedTxn;

/// The aborted transactions that a fetch from `fetch_offset` to before `upper_bound` must know,
/// that begins in `segment`: by first offset and producer id.
///
/// An entry that was made when all before `upper_bound` was decided ends the search; else it goes
/// on to the next remote segments and then to the local ones, which may hold the same entries
/// again.
///
/// # Errors
/// Those of the side files and of the disk.
pub fn remote_aborted_transactions(
    view: &RemoteView<'_>,
    segment: &RemoteSegment,
    fetch_offset: i64,
    upper_bound: i64,
) -> Result<Vec<AbortedTxn>> {
    let mut found = Vec::new();
    collect_remote_aborted(view, segment, fetch_offset, upper_bound, &mut found)?;
    Ok(found)
}

/// Adds the same to `found`, which is empty, for who has the side files of the segment at hand.
pub(super) fn aborted_with(
    view: &RemoteView<'_>,
    segment: &RemoteSegment,
    indexes: &SegmentIndexes,
    (fetch_offset, upper_bound): (i64, i64),
    found: &mut Vec<AbortedTxn>,
) -> Result<()> {
    let mut search = Search::new(view, fetch_offset, upper_bound, found);
    let is_over = !segment.is_txn_index_empty && search.take_of(indexes)?;
    search.run(segment, is_over)
}

/// The same into memory that is used again: what was in `found` goes.
///
/// # Errors
/// Those of [`remote_aborted_transactions`]; what is in `found` then means nothing.
pub fn collect_remote_aborted(
    view: &RemoteView<'_>,
    segment: &RemoteSegment,
    fetch_offset: i64,
    upper_bound: i64,
    found: &mut Vec<AbortedTxn>,
) -> Result<()> {
    found.clear();
    let mut search = Search::new(view, fetch_offset, upper_bound, found);
    let is_over = !segment.is_txn_index_empty && search.take(segment)?;
    search.run(segment, is_over)
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
struct Search<'s, 'a> {
    view: &'s RemoteView<'a>,
    fetch_offset: i64,
    upper_bound: i64,
    found: &'s mut Vec<AbortedTxn>,
    /// The first offset of the last that was found.
    last_start: i64,
    is_mixed: bool,
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(
        view: &'s RemoteView<'a>,
        fetch_offset: i64,
        upper_bound: i64,
        found: &'s mut Vec<AbortedTxn>,
    ) -> Self {
        Search { view, fetch_offset, upper_bound, found, last_start: i64::MIN, is_mixed: false }
    }

    /// Goes on behind a segment, remotely and then locally, unless the search is over with it.
    fn run(mut self, segment: &RemoteSegment, is_over: bool) -> Result<()> {
        // spec: tiered 8
        if !is_over && !self.take_behind(segment.end_offset.saturating_add(1))? {
            let start = self.found.len();
            self.view.local.collect_aborted(self.fetch_offset, self.upper_bound, self.found)?;
            self.look(start);
        }
        self.finish();
        Ok(())
    }

    /// Takes those of the segments from `offset` on; says whether the search is over.
    fn take_behind(&mut self, offset: i64) -> Result<bool> {
        let mut from = offset;
        let entries = self.view.epochs.entries();
        let slot_of = |offset| {
            let count = entries.partition_point(|entry| entry.start_offset <= offset);
            count.checked_sub(1)
        };
        let Some(mut slot) = slot_of(from) else { return Ok(false) };
        // As `next_with_txn_index` does again and again, without looking up each place anew.
        while let Some(entry) = entries.get(slot) {
            let mut next_slot = slot.saturating_add(1);
            for segment in self.view.cache.chain(entry.epoch, entry.start_offset.max(from)) {
                if segment.is_txn_index_empty {
                    continue;
                }
                if self.take(segment)? {
                    return Ok(true);
                }
                from = segment.end_offset.saturating_add(1);
                if let Some(behind) = slot_of(from).filter(|behind| *behind > slot) {
                    next_slot = behind;
                    break;
                }
            }
            slot = next_slot;
        }
        Ok(false)
    }

    /// Takes those of a segment; says whether the search is over.
    fn take(&mut self, segment: &RemoteSegment) -> Result<bool> {
        self.take_of(&*self.view.indexes.indexes(segment)?)
    }

    /// The same of a segment whose side files are at hand.
    fn take_of(&mut self, indexes: &SegmentIndexes) -> Result<bool> {
        if let Some((run, is_over)) = indexes.aborted_run(self.fetch_offset, self.upper_bound) {
            if let (Some(one), Some(last)) = (run.first(), run.last()) {
                self.is_mixed |= self.last_start >= one.first_offset;
                self.last_start = last.first_offset;
            }
            self.found.extend_from_slice(run);
            return Ok(is_over);
        }
        let start = self.found.len();
        let is_over = indexes.collect_aborted(self.fetch_offset, self.upper_bound, self.found)?;
        self.look(start);
        Ok(is_over)
    }

    /// Looks whether those from `start` on follow each other and the ones before.
    fn look(&mut self, start: usize) {
        // Without a branch in the loop. Those of one first offset, of which there are none in a
        // sound log, are for the sort to tell apart.
        for txn in self.found.get(start..).unwrap_or_default() {
            self.is_mixed |= self.last_start >= txn.first_offset;
            self.last_start = txn.first_offset;
        }
    }

    fn finish(&mut self) {
        if self.is_mixed {
            self.found.sort_by_key(key);
            self.found.dedup_by_key(|entry| key(entry));
        }
    }
}

fn key(entry: &AbortedTxn) -> (i64, i64) {
    (entry.first_offset, entry.producer_id)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::{Arc, Mutex};

    use super::super::indexes::{IndexSource, SegmentIndexes, TargetIndexes};
    use super::super::metadata_cache::tests::segment;
    use super::super::test_store::{TestStore, batch};
    use super::*;

    /// Keeps note of which segments are fetched.
    #[derive(Debug)]
    struct Noted<'a> {
        target: TargetIndexes<'a>,
        fetched: Mutex<Vec<i64>>,
    }

    impl IndexSource for Noted<'_> {
        fn indexes(&self, segment: &RemoteSegment) -> Result<Arc<SegmentIndexes>> {
            self.fetched.lock().unwrap().push(segment.start_offset);
            self.target.indexes(segment)
        }
    }

    /// The first offsets of what is found up to a bound, and the segments that were fetched for it.
    fn search(store: &TestStore, upper_bound: i64) -> (Vec<i64>, Vec<i64>) {
        store.with(|view| {
            let target = TargetIndexes { target: view.target, layout: view.layout };
            let source = Noted { target, fetched: Mutex::default() };
            let view = RemoteView { indexes: &source, ..*view };
            let first = view.segment_at(0).unwrap();
            let found = remote_aborted_transactions(&view, first, 0, upper_bound).unwrap();
            let fetched = source.fetched.lock().unwrap().clone();
            (found.iter().map(|txn| txn.first_offset).collect(), fetched)
        })
    }

    #[test]
    fn a_long_search_finds_all_and_fetches_no_segment_behind_its_end() {
        // The epoch changes at 200 and at 400; the segment at 70 has no transaction.
        let mut store = TestStore::new("0:0 1:200 2:400", 1000);
        for number in 0..60_i64 {
            let start = number * 10;
            let epoch = i32::from(start >= 200) + i32::from(start >= 400);
            let id = u64::try_from(number).unwrap() + 1;
            let given = segment(id, start, start + 9, &format!("{epoch}:{start}"));
            let aborted = AbortedTxn {
                producer_id: number,
                first_offset: start,
                last_offset: start + 5,
                last_stable_offset: start + 6,
            };
            let aborted = if start == 70 { &[][..] } else { &[aborted] };
            store.upload(given, &[batch(start, epoch, &[1])], aborted);
        }
        for end in [0, 10, 20, 60, 80, 190, 200, 210, 390, 400, 410, 580, 590] {
            let (found, fetched) = search(&store, end + 6);
            let all = (0..=end).step_by(10).filter(|start| *start != 70);
            assert_eq!(found, all.collect::<Vec<_>>(), "{end}");
            assert_eq!(fetched, found, "{end}");
        }
        let (found, _) = search(&store, i64::MAX);
        assert_eq!(found.len(), 59);
    }
}
