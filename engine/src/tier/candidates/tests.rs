#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

/// The columns of segments with these bases, all of one size and timestamp.
struct Columns {
    bases: Vec<i64>,
    starts: Vec<u64>,
    timestamps: Vec<i64>,
}

impl Columns {
    fn new(bases: &[i64], size_bytes: u64) -> Self {
        let starts = (0..u64::try_from(bases.len()).unwrap()).map(|n| n * size_bytes).collect();
        Columns { bases: bases.to_vec(), starts, timestamps: vec![1000; bases.len()] }
    }

    fn view(&self, last_stable_offset: i64, copied_offset: i64) -> UploadView<'_> {
        UploadView {
            bases: &self.bases,
            starts_bytes: &self.starts,
            max_timestamps_ms: &self.timestamps,
            active_size_bytes: 100,
            last_stable_offset,
            copied_offset,
            ..UploadView::default()
        }
    }
}

/// Base and next base of each candidate.
fn pairs(view: &UploadView<'_>, now_ms: i64) -> Vec<(i64, i64)> {
    let slots = view.candidates(now_ms).slots();
    slots.map(|slot| (view.bases[slot], view.bases[slot + 1])).collect()
}

fn reasons(view: &UploadView<'_>, now_ms: i64) -> Vec<Option<NotEligible>> {
    let answer = view.candidates(now_ms);
    (0..view.bases.len()).map(|slot| view.why_not(&answer, slot, now_ms)).collect()
}

#[test]
fn sealed_segments_below_the_last_stable_offset_are_candidates() {
    // spec: tiered C1, C2
    let columns = Columns::new(&[5, 10, 15], 10);
    let view = UploadView { log_start_offset: 5, ..columns.view(20, -1) };
    assert_eq!(pairs(&view, 0), [(5, 10), (10, 15)]);
    let columns = Columns::new(&[5, 10, 15, 20], 10);
    let view = UploadView { log_start_offset: 5, ..columns.view(15, -1) };
    assert_eq!(pairs(&view, 0), [(5, 10), (10, 15)]);
    assert_eq!(view.candidates(0).stop, NotEligible::AboveLastStable);
}

#[test]
fn a_tail_that_was_rolled_is_a_candidate_although_nothing_follows() {
    // spec: tiered C3, C4
    let columns = Columns::new(&[0, 150], 10);
    assert_eq!(pairs(&columns.view(250, -1), 0), [(0, 150)]);
    assert_eq!(pairs(&columns.view(150, -1), 0), [(0, 150)]);
    assert_eq!(pairs(&columns.view(149, -1), 0), []);
}

#[test]
fn what_is_copied_is_no_candidate() {
    // spec: tiered C6, C7
    let columns = Columns::new(&[0, 150, 300], 10);
    assert_eq!(pairs(&columns.view(300, 149), 0), [(150, 300)]);
    for copied in [300, 301, 1000, i64::MAX] {
        assert_eq!(pairs(&columns.view(300, copied), 0), [], "{copied}");
    }
    let expected = [NotEligible::AlreadyCopied, NotEligible::AlreadyCopied, NotEligible::Active];
    assert_eq!(reasons(&columns.view(300, 300), 0), expected.map(Some));
}

#[test]
fn the_first_candidate_is_the_segment_that_holds_the_next_offset() {
    let columns = Columns::new(&[0, 100, 200, 300], 10);
    // After a change of leaders the end that was copied may lie within a segment.
    assert_eq!(pairs(&columns.view(300, 149), 0), [(100, 200), (200, 300)]);
    let view = UploadView { log_start_offset: 250, ..columns.view(300, -1) };
    assert_eq!(pairs(&view, 0), [(200, 300)]);
    let before = NotEligible::BeforeLogStart;
    assert_eq!(reasons(&view, 0), [Some(before), Some(before), None, Some(NotEligible::Active)]);
    // The local log may begin behind what is to be copied.
    let columns = Columns::new(&[100, 200], 10);
    assert_eq!(pairs(&columns.view(300, 10), 0), [(100, 200)]);
}

#[test]
fn a_negative_last_stable_offset_is_no_state_of_a_log() {
    let columns = Columns::new(&[0, 150], 10);
    let answer = columns.view(-1, -1).candidates(0);
    assert_eq!((answer.count(), answer.stop), (0, NotEligible::Inconsistent));
    assert_eq!(reasons(&columns.view(-1, -1), 0), [Some(NotEligible::Inconsistent); 2]);
}

#[test]
fn a_log_without_segments_has_no_candidates() {
    let answer = UploadView::default().candidates(0);
    assert_eq!((answer.count(), answer.stop), (0, NotEligible::Active));
}

#[test]
fn sums_and_the_oldest_timestamp_are_those_of_the_candidates() {
    let mut columns = Columns::new(&[0, 10, 20, 30, 40], 100);
    columns.timestamps = vec![100, 200, 300, 400, 500];
    let answer = columns.view(30, 9).candidates(0);
    assert_eq!((answer.first, answer.end, answer.size_bytes), (1, 3, 200));
    assert_eq!(answer.oldest_age_ms(1000), Some(800));
    assert_eq!(columns.view(0, -1).candidates(0).oldest_age_ms(1000), None);
    columns.timestamps = vec![-1; 5];
    assert_eq!(columns.view(30, 9).candidates(0).oldest_age_ms(1000), None);
}

#[test]
fn damage_stops_its_segment_and_what_is_behind_it() {
    let columns = Columns::new(&[0, 10, 20, 30, 40], 100);
    let damaged = [
        DamagedSegment { slot: 0, code: Code::IndexOrder },
        DamagedSegment { slot: 2, code: Code::TimeindexOrder },
        DamagedSegment { slot: 4, code: Code::IndexSize },
    ];
    let view = UploadView { damaged: &damaged, ..columns.view(40, 9) };
    assert_eq!(pairs(&view, 0), [(10, 20)]);
    let expected = [
        Some(NotEligible::AlreadyCopied),
        None,
        Some(NotEligible::Damaged(Code::TimeindexOrder)),
        Some(NotEligible::Behind),
        Some(NotEligible::Active),
    ];
    assert_eq!(reasons(&view, 0), expected);
    // Above the last stable offset nobody has to know of damage yet.
    let view = UploadView { damaged: &damaged, ..columns.view(29, 9) };
    assert_eq!(view.candidates(0).stop, NotEligible::AboveLastStable);
    let above = Some(NotEligible::AboveLastStable);
    assert_eq!(reasons(&view, 0)[2..4], [above, above]);
}

#[test]
fn a_segment_of_which_no_leader_is_known_stops_the_uploads() {
    let columns = Columns::new(&[0, 10, 20, 30], 100);
    let view = UploadView { lineage_start_offset: 10, ..columns.view(30, -1) };
    assert_eq!(view.candidates(0).stop, NotEligible::OutsideLineage);
    let outside = Some(NotEligible::OutsideLineage);
    let behind = Some(NotEligible::Behind);
    assert_eq!(reasons(&view, 0), [outside, behind, behind, Some(NotEligible::Active)]);
    // Half of a segment is enough.
    let view = UploadView { lineage_start_offset: 9, ..columns.view(30, -1) };
    assert_eq!(view.candidates(0).count(), 3);
}

#[test]
fn a_segment_waits_until_its_age_or_what_is_behind_it_lets_it_go() {
    let mut columns = Columns::new(&[0, 10, 20, 30], 100);
    columns.timestamps = vec![1000, 2000, 3000, 4000];
    let count = |ms, bytes, now_ms| {
        let view = UploadView { lag: Some(CopyLag { ms, bytes }), ..columns.view(30, -1) };
        (view.candidates(now_ms).count(), view.candidates(now_ms).stop)
    };
    let (active, lagging) = (NotEligible::Active, NotEligible::Lagging);
    assert_eq!(count(0, -1, 0), (3, active));
    assert_eq!(count(-1, 0, 0), (3, active));
    assert_eq!(count(-1, -1, i64::MAX), (0, lagging));
    // The age reaches the limit at the millisecond.
    assert_eq!(count(1000, -1, 2999), (1, lagging));
    assert_eq!(count(1000, -1, 3000), (2, lagging));
    assert_eq!(count(1000, -1, 4000), (3, active));
    // Behind the first are two segments and the active one, of 100 bytes each.
    assert_eq!(count(-1, 301, 0), (0, lagging));
    assert_eq!(count(-1, 300, 0), (1, lagging));
    assert_eq!(count(-1, 100, 0), (3, active));
    // Either will do.
    assert_eq!(count(1000, 300, 0), (1, lagging));
    assert_eq!(count(1000, 300, 3000), (2, lagging));
}

#[test]
fn an_old_segment_behind_one_that_lags_waits_too() {
    let mut columns = Columns::new(&[0, 10, 20], 100);
    columns.timestamps = vec![9000, 1000, 0];
    let lag = Some(CopyLag { ms: 1000, bytes: -1 });
    let view = UploadView { lag, ..columns.view(20, -1) };
    let (lagging, behind) = (NotEligible::Lagging, NotEligible::Behind);
    assert_eq!(reasons(&view, 9500), [lagging, behind, NotEligible::Active].map(Some));
    columns.timestamps[0] = UNKNOWN_TIMESTAMP_MS;
    let view = UploadView { lag, ..columns.view(20, -1) };
    assert_eq!(view.candidates(9500).stop, NotEligible::TimestampUnknown);
}

#[test]
fn a_lag_of_minus_one_is_the_local_retention() {
    let lag = |settings, retention| CopyLag::of_settings(settings, retention);
    assert_eq!(lag((5, 6), (7, 8)), CopyLag { ms: 5, bytes: 6 });
    assert_eq!(lag((-1, -1), (7, 8)), CopyLag { ms: 7, bytes: 8 });
    assert_eq!(lag((0, -1), (7, -1)), CopyLag { ms: 0, bytes: -1 });
}

/// The rule as the specification writes it, segment by segment.
fn by_the_book(view: &UploadView<'_>) -> Vec<(i64, i64)> {
    if view.last_stable_offset <= 0 || view.copied_offset >= view.last_stable_offset {
        return Vec::new();
    }
    let from = (view.copied_offset + 1).max(view.log_start_offset);
    let floor = view.bases.iter().rposition(|base| *base <= from).unwrap_or(0);
    let segments = view.bases.get(floor..).unwrap_or_default();
    let pairs = segments.windows(2).map(|pair| (pair[0], pair[1]));
    pairs.filter(|(_, next)| *next <= view.last_stable_offset).collect()
}

proptest! {
    #[test]
    fn candidates_are_those_of_the_book(
        bases in prop::collection::btree_set(0i64..60, 1..12),
        last_stable_offset in 0i64..70,
        copied_offset in -1i64..70,
        log_start_offset in 0i64..70,
    ) {
        let columns = Columns::new(&bases.into_iter().collect::<Vec<_>>(), 10);
        let view =
            UploadView { log_start_offset, ..columns.view(last_stable_offset, copied_offset) };
        prop_assert_eq!(pairs(&view, 0), by_the_book(&view));
    }

    #[test]
    fn every_segment_is_a_candidate_or_has_a_reason(
        bases in prop::collection::btree_set(0i64..60, 1..12),
        offsets in (-1i64..70, -1i64..70, 0i64..70, 0i64..70),
        damaged in prop::collection::btree_set(0u32..12, 0..3),
        lag in prop::option::of((-1i64..100, -1i64..100)),
        timestamps in prop::collection::vec(-1i64..100, 12),
    ) {
        let mut columns = Columns::new(&bases.into_iter().collect::<Vec<_>>(), 10);
        columns.timestamps.copy_from_slice(&timestamps[..columns.bases.len()]);
        let code = Code::IndexOrder;
        let damaged: Vec<_> =
            damaged.into_iter().map(|slot| DamagedSegment { slot, code }).collect();
        let view = UploadView {
            damaged: &damaged,
            log_start_offset: offsets.2,
            lineage_start_offset: offsets.3,
            lag: lag.map(|(ms, bytes)| CopyLag { ms, bytes }),
            ..columns.view(offsets.0, offsets.1)
        };
        let answer = view.candidates(50);
        let reasons = reasons(&view, 50);
        let is_candidate: Vec<bool> = reasons.iter().map(Option::is_none).collect();
        let expected: Vec<bool> =
            (0..view.bases.len()).map(|slot| answer.slots().contains(&slot)).collect();
        prop_assert_eq!(is_candidate, expected);
        let mut told = Vec::new();
        view.runs(&answer, 50, |run, reason| {
            assert!(run.start == told.len() && run.start < run.end);
            told.resize(run.end, reason);
        });
        prop_assert_eq!(&told, &reasons);
        // The first that waits says why by itself, and is not only behind another.
        if let Some(reason) = reasons.get(answer.slots().end) {
            prop_assert_eq!(*reason, Some(answer.stop));
        }
        prop_assert!(answer.stop != NotEligible::Behind);
    }
}
