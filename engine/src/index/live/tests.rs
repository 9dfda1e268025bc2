#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::index::{OffsetEntries, OffsetIndexBuilder, TimeEntries, TimeIndexBuilder};

fn raw_offset(relative: i32, position: i32) -> offset::RawEntry {
    offset::RawEntry::new(relative, position)
}

#[test]
fn a_closed_index_answers_nothing() {
    let live = LiveEntries::<OffsetEntry>::new(&[], 10);
    assert_eq!(live.lookup(50), Some(OffsetEntry { offset: 10, position: 0 }));
    assert_eq!((live.get(0), live.ends()), (Some(None), Some(None)));
    assert!(live.push(&raw_offset(5, 70)));
    assert_eq!(live.lookup(50), Some(OffsetEntry { offset: 15, position: 70 }));
    live.close();
    assert_eq!((live.lookup(50), live.get(0), live.ends()), (None, None, None));
    assert_eq!((live.count(), live.fetch_upper_bound_offset(0, 1)), (None, None));
}

proptest! {
    #[test]
    fn any_bytes_answer_as_where_they_lie(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        base in 0i64..1 << 40,
        target in any::<i64>(),
        position in any::<i32>(),
        size in any::<i32>(),
    ) {
        let (live, lying) =
            (LiveEntries::<OffsetEntry>::new(&bytes, base), OffsetEntries::new(&bytes, base));
        prop_assert_eq!(live.lookup(target), Some(lying.lookup(target)));
        prop_assert_eq!(usize::try_from(live.count_below(target)), Ok(lying.count_below(target)));
        let upper = lying.fetch_upper_bound_offset(position, size);
        prop_assert_eq!(live.fetch_upper_bound_offset(position, size), Some(upper));
        let whole = lying.count() * offset::ENTRY_SIZE;
        prop_assert_eq!(&live.bytes(0, u32::MAX)[..], &bytes[..whole]);

        let (live, lying) =
            (LiveEntries::<TimeEntry>::new(&bytes, base), TimeEntries::new(&bytes, base));
        prop_assert_eq!(live.lookup(target), Some(lying.lookup(target)));
        prop_assert_eq!(usize::try_from(live.count_below(target)), Ok(lying.count_below(target)));
        prop_assert_eq!(&live.bytes(0, u32::MAX)[..], &bytes[..lying.count() * time::ENTRY_SIZE]);
    }

    #[test]
    fn what_is_added_and_removed_is_as_in_a_builder(
        steps in prop::collection::vec((0u8..10, 1i32..1000), 0..800),
        first in 0usize..50,
    ) {
        let mut offsets = OffsetIndexBuilder::new(50, 1 << 20).unwrap();
        let mut times = TimeIndexBuilder::new(50, 1 << 20).unwrap();
        let mut next = 51;
        for _ in 0..first {
            offsets.append(next, 1).unwrap();
            times.maybe_append(next, next, false).unwrap();
            next += 3;
        }
        let live = LiveEntries::<OffsetEntry>::new(offsets.as_bytes(), 50);
        let live_times = LiveEntries::<TimeEntry>::new(times.as_bytes(), 50);
        for (what, step) in steps {
            if what == 0 {
                next = (next - i64::from(step)).max(51);
                live.keep(live.count_below(next));
                live_times.keep(live_times.count_below(next));
                offsets.truncate_to(next);
                times.truncate_to(next);
                continue;
            }
            next += i64::from(step);
            offsets.append(next, step).unwrap();
            times.maybe_append(next, next, false).unwrap();
            let relative = i32::try_from(next - 50).unwrap();
            prop_assert!(live.push(&raw_offset(relative, step)));
            prop_assert!(live_times.push(&time::RawEntry::new(next, relative)));
        }
        prop_assert_eq!(&live.bytes(0, u32::MAX)[..], offsets.as_bytes());
        prop_assert_eq!(&live_times.bytes(0, u32::MAX)[..], times.as_bytes());
        for target in 45..200 {
            prop_assert_eq!(live.lookup(target * 7), Some(offsets.entries().lookup(target * 7)));
        }
        let last = usize::try_from(live.count().unwrap()).unwrap().checked_sub(1);
        let ends = last.map(|last| (offsets.entries().get(0).unwrap(),
            offsets.entries().get(last).unwrap()));
        prop_assert_eq!(live.ends(), Some(ends));
    }
}
