//! How are the candidates of many logs told in little memory?

/// A segment that is to be uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadCandidate {
    /// Which of the logs, from 0.
    pub log: u32,
    /// Which segment of the log, from 0.
    pub slot: u32,
    /// The segment's first offset.
    pub base_offset: i64,
    /// The first offset of the segment behind it: the candidate's end, exclusive.
    pub next_offset: i64,
}

/// The candidates of many logs: by log, and in the order in which they must be uploaded.
///
/// Four bytes a candidate, or eight in a log of billions of offsets: what follows from its
/// neighbours is made when it is looked at. Longer entries would cost more to write than all else.
#[derive(Debug, Default)]
pub struct UploadList {
    /// Of each log with candidates how far their base offsets, and the end of the last one, are
    /// from the first.
    words: Vec<u32>,
    runs: Vec<Run>,
    count: usize,
}

/// The candidates of one log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    log: u32,
    first_slot: u32,
    first_offset: i64,
    /// Base offsets and the end of the last one.
    offset_count: usize,
    /// Each distance has two words, the lower half first.
    is_wide: bool,
}

impl Run {
    /// The offset that has these words.
    fn offset(&self, words: &[u32]) -> i64 {
        let distance = words.iter().rev().fold(0, |high, word| high << 32 | u64::from(*word));
        self.first_offset.wrapping_add_unsigned(distance)
    }

    fn words_each(&self) -> usize {
        if self.is_wide { 2 } else { 1 }
    }
}

impl UploadList {
    /// How many candidates there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The candidates.
    pub fn iter(&self) -> impl Iterator<Item = UploadCandidate> {
        let mut words = &*self.words;
        self.runs.iter().flat_map(move |run| {
            let count = run.offset_count.saturating_mul(run.words_each());
            let (own, behind) = words.split_at_checked(count).unwrap_or_default();
            words = behind;
            let offsets = own.chunks(run.words_each()).map(|words| run.offset(words));
            let pairs = offsets.clone().zip(offsets.skip(1));
            (run.first_slot..).zip(pairs).map(|(slot, (base_offset, next_offset))| {
                UploadCandidate { log: run.log, slot, base_offset, next_offset }
            })
        })
    }

    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.runs.clear();
        self.count = 0;
    }

    /// Adds the candidates of a log: their base offsets and the end of the last one.
    pub(super) fn push(&mut self, log: u32, first_slot: u32, offsets: &[i64]) {
        let Some(first_offset) = offsets.first().copied() else { return };
        let distances = offsets.iter().map(|offset| offset.wrapping_sub(first_offset));
        let distances = distances.map(i64::cast_unsigned);
        let before = self.words.len();
        let mut all = 0;
        self.words.extend(distances.clone().map(|distance| {
            all |= distance;
            lower_half(distance)
        }));
        let is_wide = all > u64::from(u32::MAX);
        if is_wide {
            self.words.truncate(before);
            let halves = distances.flat_map(|it| [lower_half(it), lower_half(it >> 32)]);
            self.words.extend(halves);
        }
        self.count = self.count.saturating_add(offsets.len().saturating_sub(1));
        let offset_count = offsets.len();
        self.runs.push(Run { log, first_slot, first_offset, offset_count, is_wide });
    }

    /// Where its memory is.
    #[cfg(test)]
    pub(super) fn places(&self) -> (*const u32, *const Run) {
        (self.words.as_ptr(), self.runs.as_ptr())
    }
}

#[inline]
fn lower_half(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_that_lie_far_apart_are_listed_as_they_are() {
        let far = i64::from(u32::MAX);
        let logs = [
            vec![7, far, far + 7],
            vec![7, far, far + 8],
            vec![i64::MIN, -1, i64::MAX],
            vec![0, 1, 2, 3],
            vec![],
            vec![5, 4],
        ];
        let mut list = UploadList::default();
        for (log, offsets) in (0..).zip(&logs) {
            list.push(log, 10, offsets);
        }
        let found: Vec<_> =
            list.iter().map(|it| (it.log, it.slot, it.base_offset, it.next_offset)).collect();
        let expected: Vec<_> = (0..)
            .zip(&logs)
            .flat_map(|(log, offsets)| {
                (10..).zip(offsets.windows(2)).map(move |(slot, it)| (log, slot, it[0], it[1]))
            })
            .collect();
        assert_eq!((list.count(), found), (10, expected));
    }
}
