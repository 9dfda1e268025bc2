//! What does a reader get of remote segments? Bytes from the first batch that it needs on.

use super::aborted::aborted_with;
use super::indexes::SegmentIndexes;
use super::remote_segment::{RemoteSegment, RemoteSegmentId};
use super::view::{RemoteBatches, RemoteView};
use crate::error::Result;
use crate::index::AbortedTxn;
use crate::log::{FetchOptions, Isolation};

/// What is fetched beside the wanted bytes, so that the batches before them come in the same
/// request: an index interval is smaller as a rule.
const SKIPPED_BYTES: usize = 64 << 10;

/// What a reader of remote segments gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteRead {
    /// Where the first batch is; `None` when there is none at the offset or behind it in remote
    /// storage.
    pub place: Option<RemotePlace>,
    /// The bytes from it on, which may end within a batch; none when the first batch does not fit.
    pub bytes: Vec<u8>,
    /// Of a reader of committed data: the transactions whose records it must leave out, by first
    /// offset and producer id.
    pub aborted: Option<Vec<AbortedTxn>>,
}

/// Where a batch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemotePlace {
    /// The segment.
    pub segment: RemoteSegmentId,
    /// The segment's first offset.
    pub segment_start_offset: i64,
    /// The batch's first offset.
    pub base_offset: i64,
    /// Its first byte.
    pub position: u64,
}

/// Reads from `offset` on, out of one segment: out of the next ones where it has no batch there.
///
/// `options` are as for a read of the local log. What the reader may see is the caller's to
/// consider: only what is decided is ever in remote storage.
///
/// # Errors
/// `OutOfRange` for an offset before the log start or that no finished segment has; `Corrupt` for a
/// log that is none; those of the store.
pub fn remote_read(
    view: &RemoteView<'_>,
    offset: i64,
    options: &FetchOptions,
) -> Result<RemoteRead> {
    // spec: tiered 8
    let wants_aborted = options.isolation == Isolation::Committed;
    let first = view.segment_at(offset).filter(|_| offset >= view.log_start_offset);
    let mut next = Some(first.ok_or_else(|| view.out_of_range(offset))?);
    while let Some(segment) = next {
        let indexes = view.indexes.indexes(segment)?;
        if let Some(mut read) = read_segment(view, segment, &indexes, offset, options)? {
            if wants_aborted {
                read.aborted = Some(aborted(view, segment, &indexes, offset, &read)?);
            }
            return Ok(read);
        }
        next = view.segment_behind(segment);
    }
    let aborted = wants_aborted.then(Vec::new);
    Ok(RemoteRead { place: None, bytes: Vec::new(), aborted })
}

/// Reads from one segment; `None` when it has no batch at the offset or behind it.
fn read_segment(
    view: &RemoteView<'_>,
    segment: &RemoteSegment,
    indexes: &SegmentIndexes,
    offset: i64,
    options: &FetchOptions,
) -> Result<Option<RemoteRead>> {
    let max_bytes = usize::try_from(options.max_bytes).unwrap_or(usize::MAX);
    let window_bytes = max_bytes.saturating_add(SKIPPED_BYTES);
    let name = view.log_name(segment);
    let size_bytes = segment.log_size_bytes();
    let entry = indexes.offset_entries().lookup(offset);
    let in_log = |error: crate::Error| error.context(name.clone());
    let mut batches = RemoteBatches::new(view.target, &name, size_bytes, 0, window_bytes);
    batches.begin_at(entry, segment.start_offset).map_err(in_log)?;
    let Some((header, position)) = batches.find(offset).map_err(in_log)? else { return Ok(None) };
    let first_bytes = usize::try_from(header.size_bytes).unwrap_or(usize::MAX);
    let wanted_bytes = match first_bytes > max_bytes {
        true if options.min_one_message => first_bytes,
        true => 0,
        false => max_bytes,
    };
    let bytes = batches.bytes(position, wanted_bytes).map_err(in_log)?.to_vec();
    let place = RemotePlace {
        segment: segment.id.clone(),
        segment_start_offset: segment.start_offset,
        base_offset: header.base_offset,
        position,
    };
    Ok(Some(RemoteRead { place: Some(place), bytes, aborted: None }))
}

fn aborted(
    view: &RemoteView<'_>,
    segment: &RemoteSegment,
    indexes: &SegmentIndexes,
    offset: i64,
    read: &RemoteRead,
) -> Result<Vec<AbortedTxn>> {
    let Some(place) = read.place.as_ref().filter(|_| !read.bytes.is_empty()) else {
        return Ok(Vec::new());
    };
    // A position is below the size, which has 32 bits.
    let position = i32::try_from(place.position).unwrap_or(i32::MAX);
    let size = i32::try_from(read.bytes.len()).unwrap_or(i32::MAX);
    let bound = indexes.offset_entries().fetch_upper_bound_offset(position, size);
    let upper_bound = bound.map_or(segment.end_offset.saturating_add(1), |entry| entry.offset);
    let mut found = Vec::new();
    aborted_with(view, segment, indexes, (offset, upper_bound), &mut found)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::layout::SegmentPart;
    use super::super::metadata_cache::tests::segment;
    use super::super::test_store::{Batch, TestStore, batch, number, one_by_one};
    use super::super::view::LocalTransactions;
    use super::super::{next_with_txn_index, remote_segment::RemoteSegmentState};
    use super::*;
    use crate::error::Kind;

    fn options(max_bytes: usize, min_one_message: bool) -> FetchOptions {
        let max_bytes = u32::try_from(max_bytes).unwrap();
        FetchOptions { max_bytes, isolation: Isolation::HighWatermark, min_one_message }
    }

    fn committed() -> FetchOptions {
        FetchOptions { isolation: Isolation::Committed, ..options(1 << 20, true) }
    }

    fn read(store: &TestStore, offset: i64, options: &FetchOptions) -> RemoteRead {
        store.with(|view| remote_read(view, offset, options)).unwrap()
    }

    fn base(read: &RemoteRead) -> Option<i64> {
        read.place.as_ref().map(|place| place.base_offset)
    }

    fn bytes(batches: &[Batch]) -> Vec<u8> {
        batches.iter().flat_map(Batch::bytes).collect()
    }

    fn ten_batches() -> (TestStore, Vec<Batch>) {
        let batches: Vec<Batch> = (0..10).map(|slot| batch(slot * 3, 0, &[7, 8, 9])).collect();
        let mut store = TestStore::new("0:0", 40);
        store.upload(segment(1, 0, 29, "0:0"), &batches, &[]);
        (store, batches)
    }

    #[test]
    fn a_read_begins_with_the_batch_that_has_the_offset() {
        // spec: tiered 8, steps 1, 2, 5, 6
        let (store, batches) = ten_batches();
        for offset in 0..30 {
            let slot = usize::try_from(offset / 3).unwrap();
            let from = bytes(&batches[..slot]).len();
            let all = read(&store, offset, &options(1 << 20, false));
            assert_eq!(base(&all), Some(offset / 3 * 3));
            assert_eq!(all.place.unwrap().position, u64::try_from(from).unwrap());
            assert_eq!(all.bytes, bytes(&batches[slot..]));
            // A limit may cut a batch, but not the first one.
            let some = read(&store, offset, &options(batches[0].bytes().len() + 5, false));
            assert_eq!(some.bytes, all.bytes[..some.bytes.len()]);
            let left = all.bytes.len();
            assert_eq!(some.bytes.len(), left.min(batches[0].bytes().len() + 5));
        }
    }

    #[test]
    fn a_first_batch_larger_than_the_limit_is_given_alone_or_not_at_all() {
        // spec: tiered-behaviours RR2, RR3; tiered 8, step 4
        let (store, batches) = ten_batches();
        let size = batches[0].bytes().len();
        let whole = read(&store, 4, &options(size - 1, true));
        assert_eq!((base(&whole), &whole.bytes), (Some(3), &batches[1].bytes()));
        let none = read(&store, 4, &options(size - 1, false));
        assert_eq!((base(&none), none.bytes.len(), none.aborted), (Some(3), 0, None));
        let exact = read(&store, 4, &options(size, false));
        assert_eq!(exact.bytes, batches[1].bytes());
    }

    #[test]
    fn the_next_segment_is_read_where_one_has_no_batch_at_the_offset() {
        // spec: tiered-behaviours RR4; tiered 8, step 3
        let mut store = TestStore::new("0:0 1:20", 40);
        one_by_one(&mut store, 1, "0:0", &[0, 3, 5], 9);
        one_by_one(&mut store, 2, "0:10", &[12, 13], 19);
        one_by_one(&mut store, 3, "1:20", &[20], 29);
        let second = read(&store, 7, &options(1 << 20, false));
        assert_eq!(base(&second), Some(12));
        assert_eq!(number(store.cache.get(second.place.unwrap().segment.segment_id).unwrap()), 2);
        assert_eq!(base(&read(&store, 14, &options(1 << 20, false))), Some(20));
        // None is left: nothing, and no error.
        let nothing = read(&store, 25, &committed());
        assert_eq!((nothing.place, nothing.bytes.len()), (None, 0));
        assert_eq!(nothing.aborted, Some(vec![]));
    }

    #[test]
    fn what_no_finished_segment_has_is_out_of_range() {
        // spec: tiered 8, step 1
        let mut store = TestStore::new("0:5 1:20", 40);
        one_by_one(&mut store, 1, "0:5", &[5, 6, 7, 8], 9);
        store.begin(segment(2, 10, 19, "0:10"), &[batch(10, 0, &[7])], &[]);
        store.log_start_offset = 6;
        let kind = |offset| {
            let outcome = store.with(|view| remote_read(view, offset, &options(100, true)));
            outcome.err().map(|error| error.kind())
        };
        let found = [4, 5, 6, 9, 10, 20, 99].map(kind);
        let out = Some(Kind::OutOfRange);
        assert_eq!(found, [out, out, None, None, out, out, out]);
    }

    #[test]
    fn one_record_at_a_time_takes_a_read_for_each_of_them() {
        // spec: tiered-behaviours RR11, without what is on the local disk
        let mut store = TestStore::new("0:0", 5);
        one_by_one(&mut store, 1, "0:0", &[0, 1], 1);
        one_by_one(&mut store, 2, "0:2", &[2, 3], 3);
        let (mut offset, mut reads) = (1, Vec::new());
        while offset < 4 {
            let got = read(&store, offset, &options(1, true));
            reads.push(base(&got).unwrap());
            offset = base(&got).unwrap() + 1;
        }
        assert_eq!(reads, [1, 2, 3]);
    }

    #[test]
    fn an_index_that_lies_hides_nothing() {
        let (store, batches) = ten_batches();
        let id = segment(1, 0, 29, "0:0").id;
        for entry in [[5_i32, 7], [5, 1_000_000], [5, i32::MAX], [5, -1], [4, 120]] {
            let index: Vec<u8> = entry.iter().flat_map(|it| it.to_be_bytes()).collect();
            store.put(&id, 0, SegmentPart::OffsetIndex, &index);
            let got = read(&store, 8, &options(1 << 20, false));
            assert_eq!((base(&got), &got.bytes), (Some(6), &bytes(&batches[2..])), "{entry:?}");
        }
    }

    #[test]
    fn an_entry_of_an_old_broker_is_begun_at() {
        // Of batches that were appended together it has the last offset of all.
        let (store, batches) = ten_batches();
        let id = segment(1, 0, 29, "0:0").id;
        let front = bytes(&batches[..4]).len();
        let log = [vec![0; front], bytes(&batches[4..])].concat();
        store.put(&id, 0, SegmentPart::Log, &log);
        let entry = [23, i32::try_from(front).unwrap()];
        let index: Vec<u8> = entry.iter().flat_map(|it| it.to_be_bytes()).collect();
        store.put(&id, 0, SegmentPart::OffsetIndex, &index);
        for offset in 23..30 {
            let got = read(&store, offset, &options(1 << 20, false));
            assert_eq!(base(&got), Some(offset / 3 * 3));
        }
    }

    #[test]
    fn a_log_that_is_none_is_an_error_with_its_name() {
        let (store, _) = ten_batches();
        let id = segment(1, 0, 29, "0:0").id;
        let kind = || {
            let outcome = store.with(|view| remote_read(view, 0, &options(100, true)));
            let error = outcome.unwrap_err();
            assert!(error.to_string().contains(".log"), "{error}");
            error.kind()
        };
        store.put(&id, 0, SegmentPart::Log, &[0; 4000]);
        assert_eq!(kind(), Kind::Corrupt);
        store.put(&id, 0, SegmentPart::Log, &[0; 40]);
        assert_eq!(kind(), Kind::Conflict);
    }

    fn txn(producer_id: i64, first_offset: i64, last_offset: i64, stable: i64) -> AbortedTxn {
        AbortedTxn { producer_id, first_offset, last_offset, last_stable_offset: stable }
    }

    /// Entries of local segments; counts how often it is asked.
    struct Local(Vec<AbortedTxn>, std::cell::Cell<usize>);

    impl LocalTransactions for Local {
        fn collect_aborted(
            &self,
            fetch_offset: i64,
            upper_bound: i64,
            found: &mut Vec<AbortedTxn>,
        ) -> Result<()> {
            self.1.set(self.1.get() + 1);
            let wanted = self
                .0
                .iter()
                .filter(|it| it.last_offset >= fetch_offset && it.first_offset < upper_bound);
            found.extend(wanted);
            Ok(())
        }
    }

    #[test]
    fn aborted_transactions_come_once_and_in_order_across_remote_and_local_segments() {
        // spec: tiered 8, "Read-committed"
        let (a, b, c) = (txn(1, 2, 14, 2), txn(2, 1, 25, 1), txn(3, 8, 33, 8));
        let mut store = TestStore::new("0:0", 60);
        let batches =
            |from: i64| (from..from + 10).map(|at| batch(at, 0, &[7])).collect::<Vec<_>>();
        store.upload(segment(1, 0, 9, "0:0"), &batches(0), &[]);
        store.upload(segment(2, 10, 19, "0:10"), &batches(10), &[a]);
        store.upload(segment(3, 20, 29, "0:20"), &batches(20), &[b]);
        let local = Local(vec![b, c], std::cell::Cell::new(0));
        let read = |offset: i64| {
            store.with_local(&local, |view| remote_read(view, offset, &committed())).unwrap()
        };
        assert_eq!(read(0).aborted, Some(vec![b, a, c]));
        assert_eq!(read(15).aborted, Some(vec![b, c]));
        assert_eq!(read(26).aborted, Some(vec![c]));
        assert_eq!(local.1.get(), 3);
        let uncommitted = FetchOptions { isolation: Isolation::HighWatermark, ..committed() };
        let got = store.with_local(&local, |view| remote_read(view, 0, &uncommitted)).unwrap();
        assert_eq!((got.aborted, local.1.get()), (None, 3));
    }

    #[test]
    fn an_entry_made_when_all_was_decided_ends_the_search() {
        // spec: tiered 8, "finished as soon as"
        let mut store = TestStore::new("0:0", 60);
        let (a, b) = (txn(1, 2, 5, 10), txn(2, 12, 15, 12));
        let batches =
            |from: i64| (from..from + 10).map(|at| batch(at, 0, &[7])).collect::<Vec<_>>();
        store.upload(segment(1, 0, 9, "0:0"), &batches(0), &[a]);
        store.upload(segment(2, 10, 19, "0:10"), &batches(10), &[b]);
        let local = Local(vec![], std::cell::Cell::new(0));
        let aborted = |offset: i64| {
            let got = store.with_local(&local, |view| remote_read(view, offset, &committed()));
            got.unwrap().aborted.unwrap()
        };
        assert_eq!((aborted(0), local.1.get()), (vec![a], 0));
        assert_eq!((aborted(7), local.1.get()), (vec![], 0));
        assert_eq!((aborted(11), local.1.get()), (vec![b], 1));
        // The bound of a short read is the offset of the index entry behind it.
        let short = FetchOptions { max_bytes: 1, ..committed() };
        let got = store.with_local(&local, |view| remote_read(view, 10, &short)).unwrap();
        assert_eq!((got.bytes.len() > 1, got.aborted), (true, Some(vec![])));
    }

    #[test]
    fn the_search_for_a_transaction_index_goes_through_the_epochs() {
        // spec: tiered-behaviours RR6. What is asked shows in what each epoch has to answer with.
        let with = |id, start, end, epochs: &str| crate::tier::RemoteSegment {
            is_txn_index_empty: false,
            ..segment(id, start, end, epochs)
        };
        let mut store = TestStore::new("0:0 1:100 2:200", 400);
        store.cache = super::super::metadata_cache::tests::finished(vec![
            segment(1, 10, 99, "0:10"),
            segment(2, 100, 199, "1:100"),
            with(3, 200, 299, "2:200"),
        ]);
        let next = |store: &TestStore, offset| {
            store.with(|view| next_with_txn_index(view, offset).map(number))
        };
        assert_eq!(next(&store, 10), Some(3));
        assert_eq!(next(&store, 250), Some(3));
        assert_eq!(next(&store, 300), None);
        // Epoch 0 is asked from 10, not from its start; epoch 1 from its start, not from 10.
        store.cache = super::super::metadata_cache::tests::finished(vec![
            with(1, 0, 9, "0:0"),
            with(2, 100, 199, "1:100"),
        ]);
        assert_eq!(next(&store, 10), Some(2));
        assert_eq!(next(&store, 9), Some(1));
    }

    #[test]
    fn a_segment_that_is_being_deleted_is_not_read() {
        let (mut store, _) = ten_batches();
        let update = super::super::metadata_cache::tests::update;
        store.cache.update(&update(1, RemoteSegmentState::DeleteStarted)).unwrap();
        let outcome = store.with(|view| remote_read(view, 0, &options(100, true)));
        assert_eq!(outcome.unwrap_err().kind(), Kind::OutOfRange);
    }
}
