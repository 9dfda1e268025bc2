//! Which transactions of these offsets were aborted? The transaction index, `.txnindex`.
//!
//! ```text
//! 0         2             10             18            26                   34
//! | version | producer id | first offset | last offset | last stable offset |   repeated
//! ```
//!
//! One entry for each abort marker of the segment: its offset is the entry's last offset, so last
//! offsets rise. The last stable offset is that of the moment of the abort. The file comes with the
//! first aborted transaction, is not preallocated, and an absent file is an empty index.

use zerocopy::big_endian::{I16, I64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::slots;
use crate::{Error, Kind, Result};

/// The bytes of one entry.
pub const ENTRY_SIZE: usize = 34;

/// Entries that are looked at in one piece: they stay in the innermost cache until they are taken.
const BLOCK: usize = 64;

/// The version that is written. Others have bits that it has not.
pub const VERSION: i16 = 0;

/// An entry as it lies in the file.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawEntry {
    version: I16,
    producer_id: I64,
    first_offset: I64,
    last_offset: I64,
    last_stable_offset: I64,
}

const _: () = assert!(size_of::<RawEntry>() == ENTRY_SIZE);

impl RawEntry {
    /// Whether Kafka refuses the entry.
    ///
    /// Kafka quirk: it takes the version from the first of the two bytes alone, sign-extended, and
    /// refuses what is above 0. So it reads an entry of version 1, and so do we: what it serves, we
    /// serve.
    #[inline]
    fn is_refused(&self) -> bool {
        // spec: indexes 4.1
        self.version.get() > 0xFF
    }

    #[inline]
    fn decode(&self) -> AbortedTxn {
        AbortedTxn {
            producer_id: self.producer_id.get(),
            first_offset: self.first_offset.get(),
            last_offset: self.last_offset.get(),
            last_stable_offset: self.last_stable_offset.get(),
        }
    }
}

/// An aborted transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AbortedTxn {
    /// Whose it was.
    pub producer_id: i64,
    /// The offset of its first record.
    pub first_offset: i64,
    /// The offset of its abort marker.
    pub last_offset: i64,
    /// Up to where, exclusive, every transaction had ended when this one was aborted.
    pub last_stable_offset: i64,
}

impl AbortedTxn {
    /// The entry's bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; ENTRY_SIZE] {
        zerocopy::transmute!(RawEntry {
            version: VERSION.into(),
            producer_id: self.producer_id.into(),
            first_offset: self.first_offset.into(),
            last_offset: self.last_offset.into(),
            last_stable_offset: self.last_stable_offset.into(),
        })
    }
}

/// The entries of a transaction index, read where they lie; bytes too few for one more are left
/// out.
#[derive(Clone, Copy)]
pub struct TxnEntries<'a> {
    slots: &'a [RawEntry],
    stray_size: usize,
}

impl<'a> TxnEntries<'a> {
    /// The entries in `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        let (slots, stray_size) = slots::view(bytes);
        TxnEntries { slots, stray_size }
    }

    /// How many entries there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The bytes behind the last whole entry, 0 to 33.
    #[must_use]
    pub fn stray_size_bytes(&self) -> usize {
        self.stray_size
    }

    /// The entry in a slot, of whatever version; `None` behind the last.
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<AbortedTxn> {
        self.slots.get(slot).map(RawEntry::decode)
    }

    /// The version in a slot as stored, both bytes of it; `None` behind the last.
    #[must_use]
    pub fn version(&self, slot: usize) -> Option<i16> {
        self.slots.get(slot).map(|raw| raw.version.get())
    }

    /// Every entry, of whatever version, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = AbortedTxn> + 'a {
        self.slots.iter().map(RawEntry::decode)
    }

    /// Gives each entry that a fetch from `fetch_offset` must know that ends before `upper_bound`:
    /// those with `last_offset >= fetch_offset` and `first_offset < upper_bound`. Says whether that
    /// is all: an entry whose last stable offset reaches the bound ends the search, and without one
    /// the next segment may hold more.
    ///
    /// Looks at every entry from the front. Fails with `Unsupported` at an entry of a version that
    /// Kafka refuses; those before it were given.
    #[inline]
    pub fn visit_aborted(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
        visit: impl FnMut(AbortedTxn),
    ) -> Result<bool> {
        self.visit(0, fetch_offset, upper_bound, visit)
    }

    /// The same, where `passed` entries stand in front of these.
    #[inline]
    fn visit(
        &self,
        passed: usize,
        fetch_offset: i64,
        upper_bound: i64,
        mut visit: impl FnMut(AbortedTxn),
    ) -> Result<bool> {
        // spec: indexes 4.2
        for (slot, raw) in self.slots.iter().enumerate() {
            if raw.is_refused() {
                return Err(refused(passed + slot, raw));
            }
            if raw.last_offset.get() >= fetch_offset && raw.first_offset.get() < upper_bound {
                visit(raw.decode());
            }
            if raw.last_stable_offset.get() >= upper_bound {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds to `found` what [`visit_aborted`](Self::visit_aborted) gives; nothing when it fails.
    pub fn collect_aborted(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<bool> {
        let old_count = found.len();
        let mut slots = self.slots;
        // Nearly always all entries of a block are wanted, and none ends the search: they are taken
        // while they are looked at, and given back when it is otherwise.
        while let Some((block, behind)) = slots.split_at_checked(BLOCK.min(slots.len()))
            && !block.is_empty()
        {
            let taken = found.len();
            let mut all = true;
            found.extend(block.iter().map(|raw| {
                let txn = raw.decode();
                all &= !raw.is_refused()
                    & (txn.last_offset >= fetch_offset)
                    & (txn.first_offset < upper_bound)
                    & (txn.last_stable_offset < upper_bound);
                txn
            }));
            if !all {
                found.truncate(taken);
                break;
            }
            slots = behind;
        }
        let passed = self.slots.len() - slots.len();
        TxnEntries { slots, stray_size: 0 }
            .visit(passed, fetch_offset, upper_bound, |txn| found.push(txn))
            .inspect_err(|_| found.truncate(old_count))
    }

    /// The same as [`collect_aborted`](Self::collect_aborted) for entries that
    /// [rise](Self::is_rising): those before `fetch_offset` are passed over.
    ///
    /// On other entries it may leave some out.
    pub fn collect_aborted_rising(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> bool {
        let last_offset =
            |slot| self.slots.get(slot).map_or(i64::MAX, |raw: &RawEntry| raw.last_offset.get());
        let passed = count_before(self.slots.len(), fetch_offset, last_offset);
        let slots = self.slots.get(passed..).unwrap_or_default();
        TxnEntries { slots, stray_size: 0 }
            .visit_aborted(fetch_offset, upper_bound, |txn| found.push(txn))
            // Among entries that rise there is none of a refused version.
            .unwrap_or(false)
    }

    /// Whether last offsets rise from entry to entry and Kafka refuses no entry: true of every file
    /// that is not damaged. Whoever keeps a file's bytes asks this once.
    #[must_use]
    pub fn is_rising(&self) -> bool {
        self.is_plain(-1) || {
            let mut pairs = self.slots.iter().zip(self.slots.iter().skip(1));
            pairs.all(|(one, next)| one.last_offset.get() < next.last_offset.get())
                && !self.slots.iter().any(RawEntry::is_refused)
        }
    }

    /// Whether nothing is wrong with the entries in themselves: they [rise](Self::is_rising), are
    /// of the version that is written, and none ends before the segment's base. One look at each.
    #[must_use]
    pub fn is_sound(&self, base_offset: i64) -> bool {
        if base_offset >= 0 {
            return self.is_plain(base_offset - 1);
        }
        let is_written = |raw: &RawEntry| raw.version.get() == VERSION;
        let first_end = self.slots.first().map_or(i64::MAX, |first| first.last_offset.get());
        first_end >= base_offset && self.is_rising() && self.slots.iter().all(is_written)
    }

    /// Whether the entries are as in nearly every file: of the version that is written, with last
    /// offsets that are not negative and rise from above `before`, which is -1 or more.
    fn is_plain(&self, before: i64) -> bool {
        // No branch in the loop, and few instructions: what is asked of all is in the bits. Among
        // numbers from -1 on a difference does not overflow, and is negative where they rise.
        let (mut versions, mut ends, mut steps) = (VERSION, 0, -1);
        let mut previous = before;
        for raw in self.slots {
            let end = raw.last_offset.get();
            versions |= raw.version.get();
            ends |= end;
            steps &= previous.wrapping_sub(end);
            previous = end;
        }
        (versions == VERSION) & (ends >= 0) & (steps < 0)
    }

    /// How many entries stay when the log is cut at `offset`: those before the first that ends at
    /// it or behind.
    #[must_use]
    pub fn count_below(&self, offset: i64) -> usize {
        // spec: indexes 4.2
        let is_cut = |raw: &RawEntry| raw.last_offset.get() >= offset;
        self.slots.iter().position(is_cut).unwrap_or(self.slots.len())
    }

    /// Kafka's own check: no entry ends before the segment's base, and none is of a version that it
    /// refuses. [`check`](super::check) looks at more.
    ///
    /// Fails with `Corrupt` and `Unsupported`, for the first entry that is wrong.
    pub fn sanity_check(&self, base_offset: i64) -> Result<()> {
        // spec: indexes 4.2
        let is_wrong = |raw: &RawEntry| (raw.last_offset.get() < base_offset) | raw.is_refused();
        // Without branches in the loop, since nearly always nothing is wrong.
        if !self.slots.iter().fold(false, |wrong, raw| wrong | is_wrong(raw)) {
            return Ok(());
        }
        match self.slots.iter().enumerate().find(|(_, raw)| is_wrong(raw)) {
            Some((slot, raw)) if raw.last_offset.get() < base_offset => {
                Err(Error::corrupt(format!(
                    "entry {slot} ends at offset {}, below the base offset {base_offset}",
                    raw.last_offset.get()
                )))
            }
            Some((slot, raw)) => Err(refused(slot, raw)),
            None => Ok(()),
        }
    }
}

/// How many of `count` entries end before `offset`, where their last offsets rise.
#[inline]
pub(crate) fn count_before(count: usize, offset: i64, last_offset: impl Fn(usize) -> i64) -> usize {
    let before = offset.checked_sub(1);
    let passed = before.and_then(|before| slots::lower_bound(count, before, last_offset));
    passed.map_or(0, |slot| slot.saturating_add(1))
}

fn refused(slot: usize, raw: &RawEntry) -> Error {
    Error::new(
        Kind::Unsupported,
        format!("entry {slot} of the transaction index has version {}", raw.version.get()),
    )
}

impl std::fmt::Debug for TxnEntries<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A transaction index that grows.
#[derive(Clone, Debug, Default)]
pub struct TxnIndexBuilder {
    bytes: Vec<u8>,
    /// What the next last offset must be above; unknown at first where the entries are a file's.
    last_offset: Option<i64>,
}

impl TxnIndexBuilder {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        TxnIndexBuilder::default()
    }

    /// The index whose entries are `bytes`, to be appended to; stray bytes at the end are dropped,
    /// since an entry behind them could not be read. Whatever its last entry says, the first append
    /// is taken: were it damaged, no transaction could be aborted any more.
    #[must_use]
    pub fn from_bytes(mut bytes: Vec<u8>) -> Self {
        bytes.truncate(bytes.len() / ENTRY_SIZE * ENTRY_SIZE);
        TxnIndexBuilder { bytes, last_offset: None }
    }

    /// Appends an entry. Fails with `InvalidArgument`, and changes nothing, when its last offset is
    /// not above that of the entry before, if this has appended that or a cut has left it.
    pub fn append(&mut self, txn: &AbortedTxn) -> Result<()> {
        // spec: indexes 4.2
        if let Some(last_offset) = self.last_offset
            && last_offset >= txn.last_offset
        {
            return Err(Error::new(
                Kind::InvalidArgument,
                format!("transaction index: last offset {} after {last_offset}", txn.last_offset),
            ));
        }
        self.bytes.extend_from_slice(&txn.encode());
        self.last_offset = Some(txn.last_offset);
        Ok(())
    }

    /// Removes the first entry that ends at or behind `offset`, and every later one.
    pub fn truncate_to(&mut self, offset: i64) {
        let count = self.entries().count_below(offset);
        if count < self.entries().count() {
            self.bytes.truncate(count * ENTRY_SIZE);
            self.last_offset = self.last().map(|last| last.last_offset);
        }
    }

    /// Removes every entry.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.last_offset = None;
    }

    /// The entries so far.
    #[must_use]
    pub fn entries(&self) -> TxnEntries<'_> {
        TxnEntries::new(&self.bytes)
    }

    /// The last entry.
    #[must_use]
    pub fn last(&self) -> Option<AbortedTxn> {
        let entries = self.entries();
        entries.get(entries.count().checked_sub(1)?)
    }

    /// The bytes of the file; with none, there need be no file.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The same bytes, owned.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn txn(producer_id: i64, first: i64, last: i64, stable: i64) -> AbortedTxn {
        AbortedTxn {
            producer_id,
            first_offset: first,
            last_offset: last,
            last_stable_offset: stable,
        }
    }

    fn a_to_d() -> [AbortedTxn; 4] {
        [txn(0, 0, 10, 11), txn(1, 5, 15, 13), txn(2, 18, 35, 25), txn(3, 32, 50, 40)]
    }

    fn index(txns: &[AbortedTxn]) -> TxnIndexBuilder {
        let mut index = TxnIndexBuilder::new();
        for txn in txns {
            index.append(txn).unwrap();
        }
        index
    }

    /// What both ways of collecting find; they must agree.
    fn collect(index: &TxnIndexBuilder, fetch: i64, upper: i64) -> (Vec<AbortedTxn>, bool) {
        let (mut walked, mut searched) = (Vec::new(), Vec::new());
        let entries = index.entries();
        let is_complete = entries.collect_aborted(fetch, upper, &mut walked).unwrap();
        assert!(entries.is_rising());
        let again = entries.collect_aborted_rising(fetch, upper, &mut searched);
        assert_eq!((&walked, is_complete), (&searched, again));
        (walked, is_complete)
    }

    #[test]
    fn appends_go_to_the_end_of_a_reopened_index() {
        // spec: behaviours XI-001
        let mut index = TxnIndexBuilder::from_bytes(index(&a_to_d()).into_bytes());
        index.append(&txn(3, 50, 60, 55)).unwrap();
        assert!(index.entries().iter().eq(a_to_d().into_iter().chain([txn(3, 50, 60, 55)])));
    }

    #[test]
    fn only_the_first_append_to_a_reopened_index_is_never_refused() {
        // spec: indexes 4.2
        let mut reopened = TxnIndexBuilder::from_bytes(index(&a_to_d()).into_bytes());
        reopened.truncate_to(51);
        reopened.append(&txn(4, 0, 15, 11)).unwrap();
        assert_eq!(reopened.append(&txn(5, 0, 15, 11)).unwrap_err().kind(), Kind::InvalidArgument);
        assert_eq!(reopened.entries().count(), 5);
        let mut cut = TxnIndexBuilder::from_bytes(index(&a_to_d()).into_bytes());
        cut.truncate_to(50);
        assert_eq!(cut.append(&txn(5, 0, 35, 11)).unwrap_err().kind(), Kind::InvalidArgument);
        cut.append(&txn(5, 0, 36, 11)).unwrap();
        cut.clear();
        cut.append(&txn(5, 0, 1, 1)).unwrap();
    }

    #[test]
    fn an_entry_below_the_base_fails_the_check() {
        // spec: behaviours XI-002
        let index = index(&a_to_d());
        assert_eq!(index.entries().sanity_check(100).unwrap_err().kind(), Kind::Corrupt);
        index.entries().sanity_check(0).unwrap();
        index.entries().sanity_check(10).unwrap();
    }

    #[test]
    fn entries_rise_only_when_every_last_offset_does() {
        let [a, b, ..] = a_to_d();
        for (txns, is_rising) in [(vec![a, b], true), (vec![b, a], false), (vec![a, a], false)] {
            let bytes: Vec<u8> = txns.iter().flat_map(AbortedTxn::encode).collect();
            assert_eq!(TxnEntries::new(&bytes).is_rising(), is_rising);
        }
        assert!(TxnEntries::new(&[]).is_rising());
    }

    #[test]
    fn entries_are_sound_when_they_rise_from_the_base_on_and_are_of_the_version_written() {
        let bytes = |ends: &[i64]| -> Vec<u8> {
            ends.iter().flat_map(|end| txn(1, 0, *end, 0).encode()).collect()
        };
        for (ends, base, is_sound, is_rising) in [
            (&[][..], 5, true, true),
            (&[5, 6, i64::MAX], 5, true, true),
            (&[5, 6], 6, false, true),
            (&[5, 5], 0, false, false),
            (&[6, 5, 7], 0, false, false),
            (&[-1, 5], 0, false, true),
            (&[-1, 5], -1, true, true),
            (&[-2, 5], -1, false, true),
            (&[i64::MIN, -1, i64::MAX], i64::MIN, true, true),
            (&[i64::MAX, i64::MIN], 0, false, false),
            (&[0, i64::MAX, -5], 0, false, false),
        ] {
            let bytes = bytes(ends);
            let entries = TxnEntries::new(&bytes);
            let found = (entries.is_sound(base), entries.is_rising());
            assert_eq!(found, (is_sound, is_rising), "{ends:?} {base}");
        }
        let mut later = bytes(&[5, 6]);
        later[35] = 1;
        let later = TxnEntries::new(&later);
        assert_eq!(
            (later.is_sound(0), later.is_sound(-1), later.is_rising()),
            (false, false, true)
        );
    }

    #[test]
    fn a_last_offset_that_does_not_rise_is_refused() {
        // spec: behaviours XI-004
        let mut index = index(&[txn(0, 0, 15, 11)]);
        for last in [10, 15] {
            let error = index.append(&txn(1, 0, last, 11)).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument);
        }
        assert_eq!(index.as_bytes().len(), 34);
    }

    #[test]
    fn a_fetch_is_told_the_aborted_transactions_that_overlap_it() {
        // spec: behaviours XI-005, XI-006, XI-008, XI-009, XI-010
        let index = index(&a_to_d());
        let all = a_to_d();
        assert_eq!(collect(&index, 0, 100), (all.to_vec(), false));
        assert_eq!(collect(&index, 0, 32), (all[..3].to_vec(), true));
        assert_eq!(collect(&index, 10, 35), (all.to_vec(), true));
        assert_eq!(collect(&index, 11, 35), (all[1..].to_vec(), true));
        assert_eq!(collect(&index, 20, 41), (all[2..].to_vec(), false));
        assert_eq!(collect(&index, 51, 100), (vec![], false));
    }

    #[test]
    fn an_entry_that_is_left_out_ends_the_search_too() {
        // spec: indexes 4.2
        let index = index(&[txn(1, 50, 60, 55), txn(2, 10, 70, 71)]);
        assert_eq!(collect(&index, 0, 40), (vec![], true));
    }

    #[test]
    fn truncation_removes_the_entries_that_end_at_or_behind_the_offset() {
        // spec: behaviours XI-012, XI-013
        for (offset, count) in [(51, 4), (50, 3), (36, 3), (35, 2), (0, 0)] {
            let mut index = index(&a_to_d());
            index.truncate_to(offset);
            assert_eq!(index.entries().count(), count, "{offset}");
        }
        let mut index = index(&a_to_d());
        index.clear();
        assert!(index.as_bytes().is_empty());
        index.append(&a_to_d()[0]).unwrap();
    }

    #[test]
    fn an_entry_has_34_bytes_in_kafkas_order() {
        // spec: behaviours XI-016, XI-020
        let bytes = txn(983_493, 137, 299, 200).encode();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "000000000000000f01c50000000000000089000000000000012b00000000000000c8");
        let entries = TxnEntries::new(&bytes);
        assert_eq!(entries.get(0), Some(txn(983_493, 137, 299, 200)));
        assert_eq!(entries.version(0), Some(0));
        assert_eq!((entries.get(1), entries.version(1)), (None, None));
    }

    #[test]
    fn kafka_sees_only_the_first_byte_of_the_version() {
        // spec: indexes 4.1
        for (version, is_refused) in
            [([0, 1], false), ([0xFF, 0xFF], false), ([1, 0], true), ([0x7F, 0], true)]
        {
            let mut bytes = [txn(1, 0, 4, 5).encode(), txn(1, 5, 9, 10).encode()].concat();
            bytes[34..36].copy_from_slice(&version);
            let entries = TxnEntries::new(&bytes);
            let mut found = vec![txn(9, 9, 9, 9)];
            let result = entries.collect_aborted(0, 100, &mut found);
            assert_eq!(entries.is_rising(), !is_refused);
            if is_refused {
                assert_eq!(result.unwrap_err().kind(), Kind::Unsupported);
                assert_eq!(found, [txn(9, 9, 9, 9)]);
                assert_eq!(entries.sanity_check(0).unwrap_err().kind(), Kind::Unsupported);
                // The search may end before the entry is met.
                assert!(entries.collect_aborted(0, 5, &mut found).unwrap());
            } else {
                assert!(!result.unwrap());
                assert_eq!(found.len(), 3);
                entries.sanity_check(0).unwrap();
            }
        }
    }

    #[test]
    fn stray_bytes_are_no_entry_and_appends_replace_them() {
        let bytes = [&txn(1, 0, 4, 5).encode()[..], &[7; 10]].concat();
        let entries = TxnEntries::new(&bytes);
        assert_eq!((entries.count(), entries.stray_size_bytes()), (1, 10));
        let mut index = TxnIndexBuilder::from_bytes(bytes);
        index.append(&txn(1, 5, 9, 10)).unwrap();
        assert!(index.entries().iter().eq([txn(1, 0, 4, 5), txn(1, 5, 9, 10)]));
    }

    proptest! {
        #[test]
        fn the_search_finds_what_the_walk_finds(
            steps in prop::collection::vec((1i64..6, 0i64..40, 0i64..40), 0..300),
            fetch in -5i64..900,
            size in 0i64..900,
        ) {
            let mut index = TxnIndexBuilder::new();
            let mut last = 0;
            for (step, length, lag) in steps {
                last += step;
                index.append(&txn(step, last - length, last, last - lag)).unwrap();
            }
            collect(&index, fetch, fetch + size);
        }

        #[test]
        fn any_bytes_can_be_looked_into(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            fetch in any::<i64>(),
            upper in any::<i64>(),
        ) {
            let entries = TxnEntries::new(&bytes);
            let mut found = Vec::new();
            let _ = entries.collect_aborted(fetch, upper, &mut found);
            let _ = entries.collect_aborted_rising(fetch, upper, &mut found);
            let _ = (entries.sanity_check(fetch), entries.count_below(fetch), entries.is_rising());
            prop_assert!(found.len() <= 2 * entries.count());
        }
    }
}
