//! Which segments have a side file that must not be copied elsewhere?
//!
//! Nobody looks for such files while a log is open: who reads them as a whole, to upload them, says
//! what he met.

use std::sync::{Arc, PoisonError, Weak};

use super::log::Log;
use super::segments::Segments;
use crate::problem::Code;
use crate::segment::LogSegment;
use crate::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// The segments of which something was said.
#[derive(Debug, Default)]
pub(super) struct DamagedSegments {
    /// How many there are: nearly always none, and then nobody has to lock.
    count: AtomicUsize,
    marks: Mutex<Vec<Mark>>,
}

#[derive(Debug)]
struct Mark {
    segment: Weak<LogSegment>,
    /// A segment that was cut since has other side files.
    truncations: u32,
    code: Code,
}

impl Mark {
    fn is_of(&self, segment: &Arc<LogSegment>) -> bool {
        std::ptr::eq(self.segment.as_ptr(), Arc::as_ptr(segment))
            && self.truncations == segment.truncations()
    }
}

impl Log {
    /// Says that a side file of a segment is damaged, or with `None` that all are sound.
    pub fn mark_damaged(&self, segment: &Arc<LogSegment>, code: Option<Code>) {
        let damaged = &self.damaged;
        if code.is_none() && damaged.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut marks = damaged.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.retain(|mark| !mark.is_of(segment) && mark.segment.strong_count() > 0);
        marks.extend(code.map(|code| {
            let (segment, truncations) = (Arc::downgrade(segment), segment.truncations());
            Mark { segment, truncations, code }
        }));
        damaged.count.store(marks.len(), Ordering::Release);
    }

    /// Those of `segments` that are known to have a damaged side file, by slot.
    #[must_use]
    pub fn damaged_segments(&self, segments: &Segments) -> Vec<(usize, Code)> {
        if self.damaged.count.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let marks = self.damaged.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let code_of = |segment| marks.iter().find(|mark| mark.is_of(segment)).map(|mark| mark.code);
        let all = segments.iter().enumerate();
        all.filter_map(|(slot, segment)| Some((slot, code_of(segment)?))).collect()
    }
}
