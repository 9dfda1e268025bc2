//! What is to be uploaded of many logs: one call over columns in the caller's memory.

use std::ops::Range;

use engine::problem::Code;
use engine::tier::candidates::DamagedSegment;
use engine::tier::{CopyLag, NotEligible, UploadAnswer, UploadView};

use super::types::TierColumns;
use crate::error::{Outcome, SiltError, Status, guard, invalid};
use crate::memory::{items_of, items_of_mut, read_struct};

/// `SILT_WAITS_`; 0 is a candidate.
fn number_of(reason: Option<NotEligible>) -> u8 {
    match reason {
        None => 0,
        Some(NotEligible::Active) => 1,
        Some(NotEligible::AboveLastStable) => 2,
        Some(NotEligible::AlreadyCopied) => 3,
        Some(NotEligible::BeforeLogStart) => 4,
        Some(NotEligible::Lagging) => 5,
        Some(NotEligible::TimestampUnknown) => 6,
        Some(NotEligible::OutsideLineage) => 7,
        Some(NotEligible::Damaged(_)) => 8,
        Some(NotEligible::Behind) => 9,
        // No column says that a topic's segments are not copied: a host leaves such logs out.
        Some(NotEligible::Inconsistent | NotEligible::CopyDisabled) => 10,
    }
}

/// A column that the caller may leave out: it is empty then.
///
/// # Safety
/// That of [`items_of`].
unsafe fn column<'a, T>(at: *const T, count: u64) -> Outcome<&'a [T]> {
    // SAFETY: the caller's promise.
    if at.is_null() { Ok(&[]) } else { unsafe { items_of(at, count) } }
}

/// The same for a result.
///
/// # Safety
/// That of [`items_of_mut`].
unsafe fn result<'a, T>(at: *mut T, count: u64) -> Outcome<&'a mut [T]> {
    // SAFETY: the caller's promise.
    if at.is_null() { Ok(&mut []) } else { unsafe { items_of_mut(at, count) } }
}

/// What is known of the logs, as slices.
struct Given<'a> {
    now_ms: i64,
    bases: &'a [i64],
    starts_bytes: &'a [u64],
    max_timestamps_ms: &'a [i64],
    ends: &'a [u64],
    active_sizes_bytes: &'a [u64],
    log_starts: &'a [i64],
    last_stable: &'a [i64],
    copied: &'a [i64],
    lineage_starts: &'a [i64],
    lags_ms: &'a [i64],
    lags_bytes: &'a [i64],
    damaged: &'a [u64],
}

impl<'a> Given<'a> {
    /// # Safety
    /// Each column is NULL or as long as the header says.
    unsafe fn read(columns: &TierColumns) -> Outcome<Self> {
        let (segments, logs) = (columns.segment_count, u64::from(columns.partition_count));
        let of_logs = |at: *const i64| {
            // SAFETY: the caller's array.
            unsafe { column(at, logs) }
        };
        let given = Given {
            now_ms: columns.now_ms,
            // SAFETY: the caller's array.
            bases: unsafe { items_of(columns.base_offset, segments)? },
            // SAFETY: the caller's array.
            starts_bytes: unsafe { column(columns.start_bytes, segments)? },
            // SAFETY: the caller's array.
            max_timestamps_ms: unsafe { column(columns.max_timestamp_ms, segments)? },
            // SAFETY: the caller's array.
            ends: unsafe { items_of(columns.segment_end, logs)? },
            // SAFETY: the caller's array.
            active_sizes_bytes: unsafe { column(columns.active_size_bytes, logs)? },
            log_starts: of_logs(columns.log_start_offset)?,
            last_stable: of_logs(columns.last_stable_offset)?,
            copied: of_logs(columns.copied_offset)?,
            lineage_starts: of_logs(columns.lineage_start_offset)?,
            lags_ms: of_logs(columns.copy_lag_ms)?,
            lags_bytes: of_logs(columns.copy_lag_bytes)?,
            // SAFETY: the caller's array.
            damaged: unsafe { items_of(columns.damaged, columns.damaged_count)? },
        };
        if !given.ends.is_sorted() || given.ends.last().is_some_and(|end| *end != segments) {
            return invalid("segment_end does not rise to segment_count");
        }
        if !given.damaged.is_sorted() {
            return invalid("the damaged segments do not rise");
        }
        Ok(given)
    }

    /// One log; `damaged` is what of it is damaged.
    fn view<'d>(
        &self,
        log: usize,
        segments: &Range<usize>,
        damaged: &'d [DamagedSegment],
    ) -> UploadView<'d>
    where
        'a: 'd,
    {
        let of = |column: &[i64], default| column.get(log).copied().unwrap_or(default);
        let lag = match (self.lags_ms.get(log), self.lags_bytes.get(log)) {
            (None, None) => None,
            // One that is left out lets nothing go by itself.
            (ms, bytes) => {
                Some(CopyLag { ms: ms.copied().unwrap_or(-1), bytes: bytes.copied().unwrap_or(-1) })
            }
        };
        UploadView {
            bases: self.bases.get(segments.clone()).unwrap_or_default(),
            starts_bytes: self.starts_bytes.get(segments.clone()).unwrap_or_default(),
            max_timestamps_ms: self.max_timestamps_ms.get(segments.clone()).unwrap_or_default(),
            active_size_bytes: self.active_sizes_bytes.get(log).copied().unwrap_or_default(),
            damaged,
            log_start_offset: of(self.log_starts, 0),
            last_stable_offset: of(self.last_stable, i64::MAX),
            copied_offset: of(self.copied, -1),
            lineage_start_offset: of(self.lineage_starts, 0),
            lag,
            is_copied: true,
        }
    }
}

/// What is to be told, as slices.
struct Told<'a> {
    eligible: &'a mut [u8],
    reason: &'a mut [u8],
    first_segment: &'a mut [u64],
    eligible_count: &'a mut [u64],
    stop: &'a mut [u8],
    sum_bytes: &'a mut [u64],
    oldest_timestamp_ms: &'a mut [i64],
}

impl Told<'_> {
    /// # Safety
    /// Each column is NULL or as long as the header says, and nobody else looks at it.
    unsafe fn of(columns: &TierColumns) -> Outcome<Self> {
        let (segments, logs) = (columns.segment_count, u64::from(columns.partition_count));
        let bytes = |at: *mut u8, count| {
            // SAFETY: the caller's array.
            unsafe { result(at, count) }
        };
        let of_logs = |at: *mut u64| {
            // SAFETY: the caller's array.
            unsafe { result(at, logs) }
        };
        Ok(Told {
            eligible: bytes(columns.eligible, segments)?,
            reason: bytes(columns.reason, segments)?,
            first_segment: of_logs(columns.first_segment)?,
            eligible_count: of_logs(columns.eligible_count)?,
            stop: bytes(columns.stop, logs)?,
            sum_bytes: of_logs(columns.sum_bytes)?,
            // SAFETY: the caller's array.
            oldest_timestamp_ms: unsafe { result(columns.oldest_timestamp_ms, logs)? },
        })
    }

    fn log(&mut self, log: usize, start: u64, answer: &UploadAnswer) {
        put(self.first_segment, log, start.saturating_add(u64::from(answer.first)));
        put(self.eligible_count, log, u64::from(answer.count()));
        put(self.stop, log, number_of(Some(answer.stop)));
        put(self.sum_bytes, log, answer.size_bytes);
        put(self.oldest_timestamp_ms, log, answer.oldest_timestamp_ms);
    }

    /// Tells of each segment, where the caller wants that.
    fn segments(&mut self, start: usize, view: &UploadView<'_>, answer: &UploadAnswer, now: i64) {
        if self.eligible.is_empty() && self.reason.is_empty() {
            return;
        }
        view.runs(answer, now, |run, reason| {
            let run = start.saturating_add(run.start)..start.saturating_add(run.end);
            if let Some(slots) = self.eligible.get_mut(run.clone()) {
                slots.fill(u8::from(reason.is_none()));
            }
            if let Some(slots) = self.reason.get_mut(run) {
                slots.fill(number_of(reason));
            }
        });
    }
}

fn put<T>(column: &mut [T], slot: usize, value: T) {
    if let Some(place) = column.get_mut(slot) {
        *place = value;
    }
}

fn scan(given: &Given<'_>, told: &mut Told<'_>) -> Outcome<()> {
    let usize_of = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut start = 0;
    let mut rest = given.damaged;
    let mut damaged = Vec::new();
    for (log, &end) in given.ends.iter().enumerate() {
        let (here, behind) = rest.split_at(rest.partition_point(|number| *number < end));
        rest = behind;
        damaged.clear();
        let slot_of = |number: &u64| u32::try_from(number.checked_sub(start)?).ok();
        let slots = here.iter().filter_map(slot_of);
        damaged.extend(slots.map(|slot| DamagedSegment { slot, code: Code::Unreadable }));
        let segments = usize_of(start)..usize_of(end);
        let view = given.view(log, &segments, &damaged);
        let answer = view.candidates(given.now_ms);
        told.log(log, start, &answer);
        told.segments(segments.start, &view, &answer, given.now_ms);
        start = end;
    }
    Ok(())
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_tier_eligible(
    columns: *const TierColumns,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let columns = unsafe { read_struct(columns)? };
        // SAFETY: the caller's arrays.
        let given = unsafe { Given::read(&columns)? };
        // SAFETY: the caller's arrays.
        let mut told = unsafe { Told::of(&columns)? };
        scan(&given, &mut told)
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}
