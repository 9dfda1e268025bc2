//! Which bytes of a file would a power cut leave? The bytes that are seen, those that are durable,
//! and what lies between.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::fate::Fate;

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// The bytes of a file. Copies share them until one changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    seen: Arc<Vec<u8>>,
    durable: Arc<Vec<u8>>,
    /// Sectors that a sync has to carry over.
    dirty: BTreeSet<usize>,
}

impl Body {
    /// Bytes that are durable.
    pub(super) fn of(bytes: Arc<Vec<u8>>) -> Self {
        Body { durable: Arc::clone(&bytes), seen: bytes, dirty: BTreeSet::new() }
    }

    /// The bytes as a reader sees them.
    pub(super) fn seen(&self) -> &Arc<Vec<u8>> {
        &self.seen
    }

    pub(super) fn write(&mut self, bytes: &[u8], at: usize) {
        let end = at.saturating_add(bytes.len());
        if end > self.seen.len() {
            self.set_size(end);
        }
        if let Some(target) = Arc::make_mut(&mut self.seen).get_mut(at..end) {
            target.copy_from_slice(bytes);
        }
        self.mark(at, end);
    }

    pub(super) fn set_size(&mut self, size: usize) {
        let old = self.seen.len();
        if size == old {
            return;
        }
        Arc::make_mut(&mut self.seen).resize(size, 0);
        // What is gained is zeros, also where longer durable bytes stand behind an earlier cut.
        self.mark(old.min(size), size);
    }

    fn mark(&mut self, start: usize, end: usize) {
        if start < end {
            self.dirty.extend(start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES));
        }
    }

    /// Carries all that is dirty over.
    pub(super) fn sync(&mut self) {
        if self.dirty.is_empty() && self.seen.len() == self.durable.len() {
            return;
        }
        let durable = Arc::make_mut(&mut self.durable);
        durable.resize(self.seen.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            carry_over(durable, &self.seen, sector);
        }
    }

    /// What Linux does when a write-back fails: the error is told once, and the sectors count as
    /// clean. A later sync says that all is well, and they are lost all the same.
    pub(super) fn fail_sync(&mut self) {
        self.dirty.clear();
    }

    /// What a power cut leaves.
    pub(super) fn after_crash(&self, fate: &mut Fate) -> Body {
        if self.dirty.is_empty() && self.seen.len() == self.durable.len() {
            return Body::of(Arc::clone(&self.durable));
        }
        let mut left = Vec::clone(&self.durable);
        left.resize(fate.size(self.durable.len(), self.seen.len()), 0);
        for &sector in &self.dirty {
            if fate.spares_sector() {
                carry_over(&mut left, &self.seen, sector);
            }
        }
        Body::of(Arc::new(left))
    }
}

/// Copies one sector, as far as both have it.
fn carry_over(target: &mut [u8], origin: &[u8], sector: usize) {
    let start = sector.saturating_mul(SECTOR_BYTES);
    let end = start.saturating_add(SECTOR_BYTES).min(target.len()).min(origin.len());
    if let (Some(target), Some(origin)) = (target.get_mut(start..end), origin.get(start..end)) {
        target.copy_from_slice(origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(body: &Body, seed: u64) -> Vec<u8> {
        body.after_crash(&mut Fate::new(seed)).seen().to_vec()
    }

    #[test]
    fn what_was_synced_is_left_by_every_cut() {
        let mut body = Body::default();
        body.write(&[1; 2000], 0);
        body.sync();
        assert!((0..100).all(|seed| after(&body, seed) == [1; 2000]));
    }

    #[test]
    fn sectors_that_were_not_synced_are_left_or_not_each_for_itself() {
        let mut body = Body::of(Arc::new(vec![1; 2048]));
        body.write(&[2; 1000], 700);
        let seen: BTreeSet<Vec<u8>> = (0..200).map(|seed| after(&body, seed)).collect();
        // Sectors 1, 2 and 3 are touched; the first is not.
        assert_eq!(seen.len(), 8);
        for left in &seen {
            assert!(left[..700] == [1; 700] && left[1700..] == [1; 348]);
            assert!(left[700..1024] == [1; 324] || left[700..1024] == [2; 324]);
        }
        assert_eq!(after(&body, 0), [1; 2048]);
        assert_eq!(after(&body, 1), **body.seen());
    }

    #[test]
    fn a_file_that_grew_has_any_length_between_and_zeros_where_nothing_was_written() {
        let mut body = Body::of(Arc::new(vec![1; 100]));
        body.write(&[2; 1500], 100);
        let lengths: BTreeSet<usize> = (0..300).map(|seed| after(&body, seed).len()).collect();
        assert!(lengths.contains(&100) && lengths.contains(&1600) && lengths.len() > 20);
        assert_eq!(after(&body, 2), [vec![1; 100], vec![0; 1500]].concat());
        assert_eq!(after(&body, 4), [vec![1; 100], vec![2; 1500]].concat());
    }

    #[test]
    fn a_cut_and_longer_again_shows_zeros_after_the_sync() {
        let mut body = Body::of(Arc::new(vec![1; 3000]));
        body.set_size(10);
        body.set_size(2000);
        assert!(body.seen()[10..] == [0; 1990]);
        body.sync();
        assert_eq!(after(&body, 0), [vec![1; 10], vec![0; 1990]].concat());
    }

    #[test]
    fn a_sync_that_failed_loses_the_bytes_though_the_next_one_succeeds() {
        let mut body = Body::of(Arc::new(vec![1; 512]));
        body.write(&[2; 512], 0);
        body.fail_sync();
        body.sync();
        assert_eq!(**body.seen(), [2; 512]);
        assert!((0..50).all(|seed| after(&body, seed) == [1; 512]));
    }
}
