//! How long does a store have, and how often is it asked again?

use std::time::Duration;

/// Bounds of what a call may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// How often a request that failed is made again.
    pub retries_max: usize,
    /// How long after the first try a request may still be made again.
    pub retry_time: Duration,
    /// How long a connection may take to be made.
    pub connect_time: Duration,
    /// How long a single request may take with all of its answer.
    pub request_time: Duration,
    /// An object of more bytes is uploaded in parts of this many, one after another; so many are in
    /// memory. (Stores take at most 10,000 parts and none of less than 5 MiB: of a huge object the
    /// parts are larger.)
    pub part_bytes: usize,
    /// Settings of the store by their names in `object_store`, such as `aws_endpoint`; they
    /// outweigh those of the environment.
    pub settings: Vec<(String, String)>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            retries_max: 5,
            retry_time: Duration::from_secs(60),
            connect_time: Duration::from_secs(10),
            request_time: Duration::from_secs(120),
            part_bytes: 8 << 20,
            settings: Vec::new(),
        }
    }
}

impl StoreOptions {
    /// How long a call for one answer may take, whatever happens.
    pub(crate) fn call_time(&self) -> Duration {
        self.retry_time.saturating_add(self.request_time).saturating_add(self.connect_time)
    }

    /// How long to wait before the next try.
    pub(crate) fn pause(&self, tries: usize) -> Duration {
        let doublings = u32::try_from(tries).unwrap_or(u32::MAX).min(7);
        Duration::from_millis(100).saturating_mul(1 << doublings).min(self.retry_time)
    }
}
