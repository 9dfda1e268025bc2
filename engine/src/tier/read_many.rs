//! What do the parts of many segments tell? A store answers slowly and takes many questions at
//! once, so they are asked side by side.

use rayon::prelude::*;

use super::aux_build::{AuxInstalled, AuxJob, AuxRemote, AuxResult};
use super::inventory::RemoteParts;
use super::layout::ObjectLayout;
use super::remote_segment::RemoteSegment;
use super::segment_reading::SegmentReading;
use super::target::ObjectTarget;
use crate::dir::pool::in_pool;
use crate::error::{Error, Result};

/// Reads what the parts of many segments tell, up to `readers` segments at a time, as
/// [`RemoteParts::segment`] does of one; one result each, in order. With one reader, or where the
/// threads cannot be had, they are read one by one on the caller's thread.
pub fn read_remote_segments(
    target: &dyn ObjectTarget,
    layout: &ObjectLayout,
    parts: &[&RemoteParts],
    readers: usize,
) -> Vec<Result<Option<RemoteSegment>>> {
    side_by_side(readers, parts, |parts| parts.segment(target, layout))
}

/// The same with what is wrong with the parts, as [`RemoteParts::read`] has it.
pub fn check_remote_segments(
    target: &dyn ObjectTarget,
    layout: &ObjectLayout,
    parts: &[&RemoteParts],
    readers: usize,
) -> Vec<Result<SegmentReading>> {
    side_by_side(readers, parts, |parts| parts.read(target, layout))
}

/// Says what many logs would have, up to `readers` at a time, as [`AuxJob::plan`] does of one; one
/// result each, in order.
pub fn plan_aux_bulk(
    jobs: &[AuxJob<'_>],
    remote: AuxRemote<'_>,
    object_bytes_max: u64,
    readers: usize,
) -> Vec<AuxResult<AuxInstalled>> {
    side_by_side(readers, jobs, |job| job.plan(&remote, object_bytes_max))
}

/// What `read` gives of each item, up to `readers` at a time.
pub(super) fn side_by_side<T: Sync, U: Send>(
    readers: usize,
    items: &[T],
    read: impl Fn(&T) -> U + Send + Sync,
) -> Vec<U> {
    let readers = readers.min(items.len());
    if readers > 1
        && let Ok(results) = in_pool(readers, || {
            // One at a time: they take unequally long.
            Ok::<_, Error>(items.par_iter().with_max_len(1).map(&read).collect())
        })
    {
        return results;
    }
    items.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::ops::Range;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use super::super::inventory::RemoteInventory;
    use super::super::target::{ObjectBytes, ObjectInfo};
    use super::super::test_store::{TestStore, one_by_one};
    use super::*;
    use crate::error::Kind;

    /// A store that answers a read when as many are under way as it waits for, or when it has
    /// waited for longer than anybody who asks side by side would need.
    #[derive(Debug)]
    struct Slow<'a> {
        target: &'a dyn ObjectTarget,
        waits_for: usize,
        under_way: Mutex<UnderWay>,
        more: Condvar,
        /// What is asked of this name fails.
        broken: String,
    }

    #[derive(Debug, Default)]
    struct UnderWay {
        now: usize,
        most: usize,
    }

    impl ObjectTarget for Slow<'_> {
        fn get(&self, name: &str, range: Option<Range<u64>>, limit: u64) -> Result<Vec<u8>> {
            let mut under_way = self.under_way.lock().unwrap();
            under_way.now += 1;
            under_way.most = under_way.most.max(under_way.now);
            self.more.notify_all();
            let is_alone = |it: &mut UnderWay| it.most < self.waits_for;
            let (mut under_way, _) =
                self.more.wait_timeout_while(under_way, Duration::from_secs(10), is_alone).unwrap();
            under_way.now -= 1;
            drop(under_way);
            if name.starts_with(&self.broken) {
                return Err(Error::new(Kind::Io, "it does not answer"));
            }
            self.target.get(name, range, limit)
        }

        fn size(&self, name: &str) -> Result<u64> {
            self.target.size(name)
        }

        fn put(&self, name: &str, parts: &[ObjectBytes<'_>]) -> Result<()> {
            self.target.put(name, parts)
        }

        fn delete(&self, name: &str) -> Result<()> {
            self.target.delete(name)
        }

        fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>> {
            self.target.list(prefix)
        }
    }

    /// Reads ten segments with so many readers, of which the fourth cannot be read, from a store
    /// that waits for so many reads; gives what came of each and how many reads were under way.
    fn read(readers: usize, waits_for: usize) -> (Vec<Option<i64>>, usize) {
        let mut store = TestStore::new("0:0", 100);
        for number in 0_i32..10 {
            let start = i64::from(number) * 10;
            let id = u64::from(number.unsigned_abs()) + 1;
            let epochs = format!("0:{start}");
            one_by_one(&mut store, id, &epochs, &[start, start + 4], start + 9);
        }
        store.with(|view| {
            let inventory = RemoteInventory::list(view.target, view.layout).unwrap();
            let parts: Vec<&RemoteParts> = inventory.segments().collect();
            let name = |part| {
                let fourth = parts.get(3).unwrap();
                view.layout.name(&fourth.id, fourth.start_offset, part)
            };
            let log = name(super::super::layout::SegmentPart::Log);
            let slow = Slow {
                target: view.target,
                waits_for,
                under_way: Mutex::default(),
                more: Condvar::new(),
                broken: log.trim_end_matches(".log").to_owned(),
            };
            let results = read_remote_segments(&slow, view.layout, &parts, readers);
            let start_of = |result: Result<Option<RemoteSegment>>| {
                result.ok().map(|segment| segment.unwrap().start_offset)
            };
            let most = slow.under_way.lock().unwrap().most;
            (results.into_iter().map(start_of).collect(), most)
        })
    }

    #[test]
    fn segments_are_read_side_by_side_and_told_in_order() {
        let expected: Vec<Option<i64>> =
            (0..10).map(|number| (number != 3).then_some(number * 10)).collect();
        assert_eq!(read(4, 4), (expected.clone(), 4));
        assert_eq!(read(100, 10), (expected.clone(), 10), "no more readers than segments");
        assert_eq!(read(1, 1), (expected, 1));
    }

    #[test]
    fn nothing_is_read_of_no_segment() {
        let store = TestStore::new("0:0", 10);
        let results =
            store.with(|view| read_remote_segments(view.target, view.layout, &[], 4).len());
        assert_eq!(results, 0);
    }
}
