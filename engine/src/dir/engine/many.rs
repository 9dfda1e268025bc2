//! How are many partitions written to and read in one call?

use std::sync::Arc;

use super::engine::Engine;
use crate::error::{Error, Kind, Result};
use crate::log::{
    AppendAs, AppendError, AppendInfo, AppendRequest, AppendScratch, FetchBudget, FetchOptions,
    Fetched, Log, append_many,
};

/// Records for one of many partitions.
#[derive(Debug)]
pub struct PartitionAppend<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// The records; see [`AppendRequest::records`].
    pub records: &'a mut [u8],
    /// How they are appended.
    pub append: AppendAs,
}

/// What a reader asks of one of many partitions.
#[derive(Clone, Copy, Debug)]
pub struct PartitionFetch<'a> {
    /// The topic.
    pub topic: &'a str,
    /// The partition.
    pub partition: i32,
    /// From where on.
    pub offset: i64,
    /// How much, and up to where.
    pub options: FetchOptions,
}

impl Engine {
    /// Appends to the current logs of many partitions, as [`append_many`] does; one answer each, in
    /// order. A partition that is not here fails with `NotFound`, one that is not open as
    /// [`log`](Self::log) says.
    pub fn append_many(
        &self,
        appends: &mut [PartitionAppend<'_>],
        scratch: &mut AppendScratch,
    ) -> Vec<std::result::Result<AppendInfo, AppendError>> {
        let logs: Vec<Result<Arc<Log>>> =
            appends.iter().map(|append| self.must_find(append.topic, append.partition)).collect();
        let mut requests: Vec<AppendRequest<'_>> = appends
            .iter_mut()
            .zip(&logs)
            .filter_map(|(append, log)| {
                let log = log.as_deref().ok()?;
                Some(AppendRequest { log, records: append.records, append: append.append })
            })
            .collect();
        let mut answers = append_many(&mut requests, scratch).into_iter();
        drop(requests);
        let answer = |log: Result<Arc<Log>>| match log {
            Ok(log) => answers.next().unwrap_or_else(|| Ok(log.nothing_appended())),
            Err(error) => Err(error.into()),
        };
        logs.into_iter().map(answer).collect()
    }

    /// Looks up what readers ask of the current logs of many partitions, as
    /// [`locate_many`](crate::log::locate_many) does, into `answers`. A partition that is not here
    /// fails with `NotFound`, one that is not open as [`log`](Self::log) says.
    pub fn locate_many(
        &self,
        fetches: &[PartitionFetch<'_>],
        max_bytes: u64,
        answers: &mut Vec<Result<Fetched>>,
    ) {
        answers.clear();
        answers.reserve(fetches.len());
        let mut budget = FetchBudget::new(max_bytes);
        for PartitionFetch { topic, partition, offset, options } in fetches {
            let log = self.must_find(topic, *partition);
            answers.push(log.and_then(|log| budget.locate(&log, *offset, options)));
        }
    }

    fn must_find(&self, topic: &str, partition: i32) -> Result<Arc<Log>> {
        let none = || Error::new(Kind::NotFound, format!("no log of {topic}-{partition} is here"));
        self.find(topic, partition, false)?.ok_or_else(none)
    }
}
