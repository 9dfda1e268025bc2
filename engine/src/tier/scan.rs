//! What is to be uploaded of all logs? One pass over columns, into buffers of the caller's.
//!
//! An answer costs a few binary searches a log, however many segments wait; only with a copy lag it
//! looks at one after another up to the first that is not due. A list costs a look at their base
//! offsets. Nothing is allocated where the buffers have room.

use std::ops::Range;

use super::candidates::{DamagedSegment, UploadAnswer, UploadView};
use super::upload_list::UploadList;
use crate::log::columns::SegmentColumns;

/// Answers for each log, in place of what `answers` held.
pub fn scan_uploads<'a>(
    logs: impl IntoIterator<Item = UploadView<'a>>,
    now_ms: i64,
    answers: &mut Vec<UploadAnswer>,
) {
    answers.clear();
    answers.extend(logs.into_iter().map(|view| view.candidates(now_ms)));
}

/// Answers for each log as [`scan_uploads`] does and lists the candidates, in place of what
/// `answers` and `list` held.
pub fn list_uploads<'a>(
    logs: impl IntoIterator<Item = UploadView<'a>>,
    now_ms: i64,
    answers: &mut Vec<UploadAnswer>,
    list: &mut UploadList,
) {
    answers.clear();
    list.clear();
    answers.extend((0u32..).zip(logs).map(|(log, view)| {
        let answer = view.candidates(now_ms);
        let slots = answer.slots();
        if !slots.is_empty()
            && let Some(offsets) = view.bases.get(slots.start..=slots.end)
        {
            list.push(log, answer.first, offsets);
        }
        answer
    }));
}

/// Puts the numbers of the logs that have candidates into `order`, in place of what it held, those
/// that have waited longest first; logs whose timestamps are not known come before all others.
pub fn oldest_first(answers: &[UploadAnswer], order: &mut Vec<u32>) {
    order.clear();
    let waiting = (0u32..).zip(answers).filter(|(_, answer)| answer.count() > 0);
    order.extend(waiting.map(|(log, _)| log));
    let timestamp_of = |log: &u32| {
        let answer = usize::try_from(*log).ok().and_then(|log| answers.get(log));
        answer.map(|answer| answer.oldest_timestamp_ms)
    };
    order.sort_unstable_by_key(|log| (timestamp_of(log), *log));
}

/// The segments of many logs in one place, for who gathers them from elsewhere than open logs.
#[derive(Debug, Default)]
pub struct UploadTable {
    columns: SegmentColumns,
    damaged: Vec<DamagedSegment>,
    logs: Vec<TableLog>,
}

/// What the table knows of a log beside its columns, and where in them it is.
#[derive(Debug)]
struct TableLog {
    segments: Range<usize>,
    damaged: Range<usize>,
    view: UploadView<'static>,
}

impl UploadTable {
    /// Forgets all logs, and keeps the room.
    pub fn clear(&mut self) {
        self.columns.clear();
        self.damaged.clear();
        self.logs.clear();
    }

    /// The columns, to which the segments of the log that comes next are pushed.
    pub fn columns_mut(&mut self) -> &mut SegmentColumns {
        &mut self.columns
    }

    /// Ends a log: what was pushed since the one before are its segments. Of `view` all but the
    /// columns counts.
    pub fn end_log(&mut self, view: &UploadView<'_>) {
        let before = self.logs.last();
        let (segments, damaged) =
            before.map_or((0, 0), |before| (before.segments.end, before.damaged.end));
        self.damaged.extend(view.damaged);
        self.logs.push(TableLog {
            segments: segments..self.columns.count(),
            damaged: damaged..self.damaged.len(),
            view: UploadView {
                bases: &[],
                starts_bytes: &[],
                max_timestamps_ms: &[],
                damaged: &[],
                ..*view
            },
        });
    }

    /// The logs, in the order in which they were added.
    pub fn views(&self) -> impl ExactSizeIterator<Item = UploadView<'_>> {
        self.logs.iter().map(|log| self.view_of(log).unwrap_or_default())
    }

    /// One log.
    #[must_use]
    pub fn view(&self, log: usize) -> Option<UploadView<'_>> {
        self.view_of(self.logs.get(log)?)
    }

    fn view_of<'a>(&'a self, log: &'a TableLog) -> Option<UploadView<'a>> {
        Some(UploadView {
            bases: self.columns.bases().get(log.segments.clone())?,
            starts_bytes: self.columns.starts_bytes().get(log.segments.clone())?,
            max_timestamps_ms: self.columns.max_timestamps_ms().get(log.segments.clone())?,
            damaged: self.damaged.get(log.damaged.clone())?,
            ..log.view
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use crate::log::columns::{SegmentRow, UNKNOWN_TIMESTAMP_MS};
    use crate::problem::Code;
    use crate::tier::candidates::NotEligible;
    use crate::tier::upload_list::UploadCandidate;

    /// A table of logs of four segments with 100 bytes each; of each log the offset that is copied
    /// and the timestamp of its segments.
    fn table(logs: &[(i64, i64)]) -> UploadTable {
        let mut table = UploadTable::default();
        for (copied_offset, max_timestamp_ms) in logs {
            for base_offset in [0, 10, 20, 30] {
                table.columns_mut().push(SegmentRow {
                    base_offset,
                    size_bytes: 100,
                    max_timestamp_ms: *max_timestamp_ms,
                    may_have_txns: false,
                });
            }
            let view = UploadView { last_stable_offset: 30, ..UploadView::default() };
            table.end_log(&UploadView { copied_offset: *copied_offset, ..view });
        }
        table
    }

    #[test]
    fn one_pass_answers_for_all_logs() {
        let table = table(&[(-1, 5), (9, 5), (29, 5)]);
        let (mut answers, mut listed, mut list) = Default::default();
        scan_uploads(table.views(), 0, &mut answers);
        let found: Vec<_> =
            answers.iter().map(|answer| (answer.slots(), answer.size_bytes)).collect();
        assert_eq!(found, [(0..3, 300), (1..3, 200), (3..3, 0)]);
        list_uploads(table.views(), 0, &mut listed, &mut list);
        assert_eq!(listed, answers);
        let found = list.iter().map(|c| (c.log, c.slot, c.base_offset, c.next_offset));
        let expected =
            [(0, 0, 0, 10), (0, 1, 10, 20), (0, 2, 20, 30), (1, 1, 10, 20), (1, 2, 20, 30)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(list.count(), 5);
    }

    #[test]
    fn a_list_forgets_the_one_before() {
        let (mut answers, mut list) = Default::default();
        list_uploads(table(&[(-1, 5), (-1, 5)]).views(), 0, &mut answers, &mut list);
        assert_eq!(list.count(), 6);
        list_uploads(table(&[(29, 5), (19, 5)]).views(), 0, &mut answers, &mut list);
        let last = UploadCandidate { log: 1, slot: 2, base_offset: 20, next_offset: 30 };
        assert_eq!((list.count(), list.iter().collect::<Vec<_>>()), (1, vec![last]));
        list_uploads(std::iter::empty(), 0, &mut answers, &mut list);
        assert_eq!((answers.len(), list.count(), list.iter().next()), (0, 0, None));
    }

    #[test]
    fn buffers_that_have_room_are_kept() {
        let table = table(&[(-1, 5); 50]);
        let (mut answers, mut list) = (Vec::with_capacity(50), UploadList::default());
        list_uploads(table.views(), 0, &mut answers, &mut list);
        let places = |answers: &Vec<_>, list: &UploadList| (answers.as_ptr(), list.places());
        let first = places(&answers, &list);
        for _ in 0..3 {
            list_uploads(table.views(), 0, &mut answers, &mut list);
        }
        assert_eq!((answers.len(), list.count()), (50, 150));
        assert_eq!(places(&answers, &list), first);
    }

    #[test]
    fn damage_is_that_of_its_own_log() {
        let mut table = table(&[(-1, 5)]);
        for base_offset in [0, 10, 20] {
            let (size_bytes, max_timestamp_ms, may_have_txns) = (7, 5, false);
            let row = SegmentRow { base_offset, size_bytes, max_timestamp_ms, may_have_txns };
            table.columns_mut().push(row);
        }
        let damaged = [DamagedSegment { slot: 1, code: Code::IndexOrder }];
        let view = UploadView { last_stable_offset: 30, damaged: &damaged, ..Default::default() };
        table.end_log(&view);
        let mut answers = Vec::new();
        scan_uploads(table.views(), 0, &mut answers);
        assert_eq!((answers[0].count(), answers[0].stop), (3, NotEligible::Active));
        assert_eq!((answers[1].count(), answers[1].size_bytes), (1, 7));
        assert_eq!(answers[1].stop, NotEligible::Damaged(Code::IndexOrder));
    }

    #[test]
    fn logs_that_have_waited_longest_come_first() {
        let table = table(&[(-1, 500), (-1, 300), (29, 1), (-1, UNKNOWN_TIMESTAMP_MS), (-1, 300)]);
        let (mut answers, mut order) = (Vec::new(), vec![9]);
        scan_uploads(table.views(), 0, &mut answers);
        oldest_first(&answers, &mut order);
        assert_eq!(order, [3, 1, 4, 0]);
    }
}
