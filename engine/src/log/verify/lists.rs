//! The records of a small log, one by one: for tests, tools and curious operators.

use std::collections::HashMap;

use super::report::RecordLists;
use crate::index::AbortedTxn;
use crate::record::BatchHeader;
use crate::units::NO_PRODUCER_ID;

/// The records so far, as long as they are few.
#[derive(Debug)]
pub(super) struct Lists {
    limit: usize,
    /// `None` since there were more than the limit.
    entries: Option<Vec<Entry>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    offset: i64,
    timestamp_ms: i64,
    is_control: bool,
    /// Whose transaction it belongs to, -1 for none.
    txn_producer: i64,
}

impl Lists {
    pub(super) fn new(limit: usize) -> Self {
        Lists { limit, entries: Some(Vec::new()) }
    }

    /// Whether there were few so far.
    pub(super) fn is_open(&self) -> bool {
        self.entries.is_some()
    }

    /// How many are listed.
    pub(super) fn len(&self) -> usize {
        self.entries.as_ref().map_or(0, Vec::len)
    }

    /// Forgets the last ones: their batch turned out to have a fault.
    pub(super) fn truncate(&mut self, len: usize) {
        if let Some(entries) = &mut self.entries {
            entries.truncate(len);
        }
    }

    #[inline]
    pub(super) fn push(&mut self, header: &BatchHeader, offset: i64, timestamp_ms: i64) {
        let Some(entries) = &mut self.entries else { return };
        if entries.len() >= self.limit {
            self.entries = None;
            return;
        }
        let txn_producer =
            if header.is_transactional() { header.producer_id } else { NO_PRODUCER_ID };
        let is_control = header.is_control();
        entries.push(Entry { offset, timestamp_ms, is_control, txn_producer });
    }

    /// The lists of a log with these aborted transactions.
    pub(super) fn finish(
        self,
        aborted: &[AbortedTxn],
        log_start_offset: i64,
        last_stable_offset: i64,
    ) -> Option<RecordLists> {
        let entries = self.entries?;
        let mut spans: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
        for txn in aborted {
            spans.entry(txn.producer_id).or_default().push((txn.first_offset, txn.last_offset));
        }
        let is_aborted = |entry: &Entry| {
            let spans = spans.get(&entry.txn_producer).map(Vec::as_slice).unwrap_or_default();
            spans.iter().any(|(first, last)| (*first..=*last).contains(&entry.offset))
        };
        let mut lists = RecordLists::default();
        for entry in &entries {
            lists.offsets.push(entry.offset);
            lists.timestamps.push(entry.timestamp_ms);
            if entry.is_control {
                continue;
            }
            lists.data_offsets.push(entry.offset);
            let is_visible = (log_start_offset..last_stable_offset).contains(&entry.offset);
            if is_visible && !is_aborted(entry) {
                lists.committed_offsets.push(entry.offset);
            }
        }
        Some(lists)
    }
}
