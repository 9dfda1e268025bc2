//! Where are the batches that readers of many logs ask for? One call, answers in the caller's
//! memory.
//!
//! Look-ups go one after the other. Most need no read at all (the tail of a log, and indexes that
//! are in memory); those that do read 4 KiB of headers, and 64 such reads of warm files take 1.5 us
//! each by plain calls and 1.6 us each in one submission to a ring, so nothing is gained by
//! gathering them.

use super::log::Log;
use super::read::{FetchOptions, Fetched};
use crate::error::Result;

/// What a reader asks of one of many logs.
#[derive(Clone, Copy, Debug)]
pub struct FetchRequest<'a> {
    /// The log.
    pub log: &'a Log,
    /// From where on.
    pub offset: i64,
    /// How much, and up to where.
    pub options: FetchOptions,
}

/// Looks up what each request asks for, as [`Log::locate`] does; `answers` is emptied first and
/// then has one for each, in order. With a vector that is used again, an answer that gives bytes
/// or nothing takes no memory but that of aborted transactions.
///
/// All ranges together have at most `max_bytes`: what an answer gives is not left for the requests
/// behind it. [`FetchOptions::min_one_message`] holds until a request has got bytes: the first may
/// exceed `max_bytes` by that, as a reader would be stuck otherwise.
pub fn locate_many(
    requests: &[FetchRequest<'_>],
    max_bytes: u64,
    answers: &mut Vec<Result<Fetched>>,
) {
    answers.clear();
    answers.reserve(requests.len());
    let mut budget = FetchBudget::new(max_bytes);
    for request in requests {
        answers.push(budget.locate(request.log, request.offset, &request.options));
    }
}

/// The bytes that are left for the requests of one call.
pub(crate) struct FetchBudget {
    left_bytes: u64,
    has_given: bool,
}

impl FetchBudget {
    pub(crate) fn new(max_bytes: u64) -> Self {
        FetchBudget { left_bytes: max_bytes, has_given: false }
    }

    pub(crate) fn locate(
        &mut self,
        log: &Log,
        offset: i64,
        options: &FetchOptions,
    ) -> Result<Fetched> {
        let left_bytes = u32::try_from(self.left_bytes).unwrap_or(u32::MAX);
        let options = FetchOptions {
            max_bytes: options.max_bytes.min(left_bytes),
            min_one_message: options.min_one_message && !self.has_given,
            ..*options
        };
        let fetched = log.locate(offset, &options)?;
        if let Some(range) = &fetched.range {
            self.has_given = true;
            self.left_bytes = self.left_bytes.saturating_sub(range.size_bytes());
        }
        Ok(fetched)
    }
}
