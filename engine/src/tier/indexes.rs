//! What do the side files of a remote segment say: from which byte must a read start, and which
//! transactions were aborted?
//!
//! [`SegmentIndexes`] holds the three files of one segment as they were fetched. Where they come
//! from is for an [`IndexSource`] to say: a cache, or the object store itself each time
//! ([`TargetIndexes`]).

use std::sync::{Arc, OnceLock};

use super::layout::{ObjectLayout, SegmentPart};
use super::remote_segment::RemoteSegment;
use super::target::ObjectTarget;
use super::txn_list::{self, TxnList};
use crate::error::{Error, Kind, Result};
use crate::index::{AbortedTxn, OffsetEntries, TimeEntries};

/// No side file is larger.
pub const INDEX_BYTES_MAX: u64 = 1 << 30;

/// The offset, time and transaction index of one remote segment.
#[derive(Clone, PartialEq, Eq)]
pub struct SegmentIndexes {
    base_offset: i64,
    offset_index: Vec<u8>,
    time_index: Vec<u8>,
    transactions: TxnList,
    /// Read of the log when it is first asked for.
    last_batch_offset: OnceLock<i64>,
}

impl SegmentIndexes {
    /// The side files of the segment that starts at `base_offset`, not checked. A transaction index
    /// that is not there is an empty one.
    #[must_use]
    pub fn new(
        base_offset: i64,
        offset_index: Vec<u8>,
        time_index: Vec<u8>,
        transaction_index: Vec<u8>,
    ) -> Self {
        SegmentIndexes {
            base_offset,
            offset_index,
            time_index,
            transactions: TxnList::new(transaction_index),
            last_batch_offset: OnceLock::new(),
        }
    }

    /// Kafka's checks of the three files.
    ///
    /// # Errors
    /// `Corrupt` for a file of no whole entries, or entries that go back or lie before the base;
    /// `Unsupported` for a transaction index of a version that Kafka refuses.
    pub fn sanity_check(&self) -> Result<()> {
        check_part(SegmentPart::OffsetIndex, self.base_offset, &self.offset_index)?;
        check_part(SegmentPart::TimeIndex, self.base_offset, &self.time_index)?;
        self.transactions.sanity_check(self.base_offset)
    }

    /// The segment's first offset.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// The entries of the offset index.
    #[must_use]
    pub fn offset_entries(&self) -> OffsetEntries<'_> {
        OffsetEntries::new(&self.offset_index, self.base_offset)
    }

    /// The entries of the time index.
    #[must_use]
    pub fn time_entries(&self) -> TimeEntries<'_> {
        TimeEntries::new(&self.time_index, self.base_offset)
    }

    /// How many entries the transaction index has.
    #[must_use]
    pub fn transaction_count(&self) -> usize {
        self.transactions.count()
    }

    /// Bytes of the three files.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let files =
            [self.offset_index.len(), self.time_index.len(), self.transactions.size_bytes()];
        files.into_iter().map(|size| u64::try_from(size).unwrap_or(u64::MAX)).sum()
    }

    /// The byte of the log from which a scan meets `offset`.
    #[inline]
    #[must_use]
    pub fn lookup_offset(&self, offset: i64) -> u64 {
        // A damaged index may have a negative position; a scan from the front is right, too.
        u64::try_from(self.offset_entries().lookup(offset).position).unwrap_or(0)
    }

    /// The byte of the log from which a scan meets the first record at `from_offset` or behind that
    /// is as late as `timestamp_ms`.
    #[must_use]
    pub fn lookup_timestamp(&self, timestamp_ms: i64, from_offset: i64) -> u64 {
        // spec: tiered 7
        self.lookup_offset(from_offset.max(self.time_entries().lookup(timestamp_ms).offset))
    }

    /// The last offset of the last batch, which only the log knows: `read` looks there, once.
    pub(super) fn last_batch_offset(&self, read: impl FnOnce() -> Result<i64>) -> Result<i64> {
        if let Some(known) = self.last_batch_offset.get() {
            return Ok(*known);
        }
        let offset = read()?;
        Ok(*self.last_batch_offset.get_or_init(|| offset))
    }

    /// Adds the aborted transactions that a fetch from `fetch_offset` to before `upper_bound` must
    /// know, as [`TxnEntries::collect_aborted`] does.
    ///
    /// # Errors
    /// `Unsupported` at an entry of a version that Kafka refuses; nothing was added.
    #[inline]
    pub fn collect_aborted(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<bool> {
        self.transactions.collect_aborted(fetch_offset, upper_bound, found)
    }

    /// What [`collect_aborted`](Self::collect_aborted) adds and says, where first offsets rise and
    /// so it adds a run of entries as they are.
    #[inline]
    pub(super) fn aborted_run(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
    ) -> Option<(&[AbortedTxn], bool)> {
        self.transactions.run(fetch_offset, upper_bound)
    }
}

/// Kafka's check of one side file of the segment that starts at `base_offset`; nothing is known of
/// parts that are no index.
///
/// # Errors
/// As [`SegmentIndexes::sanity_check`].
pub(super) fn check_part(part: SegmentPart, base_offset: i64, bytes: &[u8]) -> Result<()> {
    // spec: tiered 7, "Sanity"
    let of = |what: &'static str| move |error: Error| error.context(what);
    match part {
        SegmentPart::OffsetIndex => {
            OffsetEntries::new(bytes, base_offset).sanity_check().map_err(of("offset index"))
        }
        SegmentPart::TimeIndex => {
            TimeEntries::new(bytes, base_offset).sanity_check().map_err(of("time index"))
        }
        SegmentPart::TransactionIndex => txn_list::check(bytes, base_offset),
        SegmentPart::Log | SegmentPart::ProducerSnapshot | SegmentPart::LeaderEpochs => Ok(()),
    }
}

impl std::fmt::Debug for SegmentIndexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SegmentIndexes")
            .field("base_offset", &self.base_offset)
            .field("offset_entries", &self.offset_entries().count())
            .field("time_entries", &self.time_entries().count())
            .field("transaction_entries", &self.transactions.count())
            .finish()
    }
}

/// Gives the side files of remote segments.
pub trait IndexSource {
    /// The side files of this segment.
    ///
    /// # Errors
    /// Those of the object store; `Corrupt` for files that cannot be what they should.
    fn indexes(&self, segment: &RemoteSegment) -> Result<Arc<SegmentIndexes>>;
}

/// Fetches the side files anew each time.
#[derive(Clone, Copy, Debug)]
pub struct TargetIndexes<'a> {
    /// Where they are.
    pub target: &'a dyn ObjectTarget,
    /// How they are named.
    pub layout: &'a ObjectLayout,
}

impl IndexSource for TargetIndexes<'_> {
    fn indexes(&self, segment: &RemoteSegment) -> Result<Arc<SegmentIndexes>> {
        let get = |part| {
            let name = self.layout.name(&segment.id, segment.start_offset, part);
            self.target.get(&name, None, INDEX_BYTES_MAX)
        };
        let offset_index = get(SegmentPart::OffsetIndex)?;
        let time_index = get(SegmentPart::TimeIndex)?;
        // spec: tiered 7, "transaction index missing remotely"
        let transaction_index = match segment.is_txn_index_empty {
            true => Vec::new(),
            false => match get(SegmentPart::TransactionIndex) {
                Err(error) if error.kind() == Kind::NotFound => Vec::new(),
                other => other?,
            },
        };
        let start = segment.start_offset;
        let indexes = SegmentIndexes::new(start, offset_index, time_index, transaction_index);
        indexes.sanity_check().map_err(|error| {
            error.context(format!("side files of the remote segment at {start}"))
        })?;
        Ok(Arc::new(indexes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn txn(first_offset: i64, last_offset: i64) -> AbortedTxn {
        AbortedTxn { producer_id: 1, first_offset, last_offset, last_stable_offset: 0 }
    }

    fn indexes(transactions: &[AbortedTxn]) -> SegmentIndexes {
        let (mut offset_index, mut time_index) = (Vec::new(), Vec::new());
        for (relative, position) in [(9_i32, 0_i32), (19, 500), (29, 1000)] {
            let timestamp_ms = i64::from(relative + 100) * 10;
            offset_index.extend([relative.to_be_bytes(), position.to_be_bytes()].concat());
            time_index.extend(timestamp_ms.to_be_bytes());
            time_index.extend(relative.to_be_bytes());
        }
        let transactions = transactions.iter().flat_map(AbortedTxn::encode).collect();
        SegmentIndexes::new(100, offset_index, time_index, transactions)
    }

    // spec: tiered 7
    #[test]
    fn offsets_and_timestamps_are_looked_up_at_the_entry_before_them() {
        let indexes = indexes(&[]);
        assert_eq!(
            [100, 109, 118, 119, 200].map(|it| indexes.lookup_offset(it)),
            [0, 0, 0, 500, 1000]
        );
        assert_eq!(indexes.lookup_timestamp(0, 100), 0);
        assert_eq!(indexes.lookup_timestamp(1195, 100), 500);
        assert_eq!(indexes.lookup_timestamp(1195, 140), 1000);
        assert_eq!(indexes.size_bytes(), 3 * 8 + 3 * 12);
        assert!(indexes.sanity_check().is_ok());
    }

    #[test]
    fn aborted_transactions_are_the_same_whether_entries_rise_or_not() {
        let rising = [txn(100, 105), txn(101, 110), txn(112, 120)];
        let mixed = [rising[1], rising[0], rising[2]];
        for fetch in 99..122 {
            for upper in [fetch + 1, fetch + 9, 1000] {
                let collect = |transactions: &[AbortedTxn]| {
                    let mut found = Vec::new();
                    indexes(transactions).collect_aborted(fetch, upper, &mut found).unwrap();
                    found.sort_by_key(|txn| txn.last_offset);
                    found
                };
                let expected: Vec<AbortedTxn> = (rising.iter().copied())
                    .filter(|txn| txn.last_offset >= fetch && txn.first_offset < upper)
                    .collect();
                assert_eq!(collect(&rising), expected, "{fetch} {upper}");
                assert_eq!(collect(&mixed), expected, "{fetch} {upper}");
            }
        }
    }

    // spec: tiered 7, "Sanity"
    #[test]
    fn files_that_cannot_be_are_refused_by_name() {
        let good = indexes(&[txn(100, 105)]);
        let check = |change: &dyn Fn(&mut SegmentIndexes)| {
            let mut bad = good.clone();
            change(&mut bad);
            bad.sanity_check().unwrap_err().to_string()
        };
        assert!(check(&|it| it.offset_index.truncate(7)).starts_with("offset index"));
        assert!(check(&|it| it.time_index.truncate(13)).starts_with("time index"));
        let entry = txn(100, 105).encode();
        let later_version = [&[1], entry.get(1..).unwrap_or_default()].concat();
        for bytes in [entry.get(..33).unwrap_or_default(), &later_version] {
            let message = check(&|it| it.transactions = TxnList::new(bytes.to_vec()));
            assert!(message.starts_with("transaction index"), "{message}");
        }
        assert!(check(&|it| it.base_offset = 200).starts_with("transaction index"));
        assert!(check(&|it| it.offset_index[16] = 0xff).starts_with("offset index"));
        let empty = SegmentIndexes::new(5, Vec::new(), Vec::new(), Vec::new());
        assert!(empty.sanity_check().is_ok());
        assert_eq!((empty.lookup_offset(9), empty.lookup_timestamp(9, 7)), (0, 0));
    }
}
