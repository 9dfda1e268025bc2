//! How is a record batch made?
//!
//! A [`BatchBuilder`] collects records and writes them as one batch of magic 2, with Kafka's
//! header, Kafka's choice of base timestamp and Kafka's framing of the compressed records. Beside
//! it stand the batches that hold no data: end of transaction markers and the control records of a
//! KRaft log, and the bare header that compaction leaves. The two old formats are written for tests
//! and for tools; no broker of today writes them.

mod batch;
mod control;
mod encode;
mod legacy;
mod options;

pub use batch::{BatchBuilder, Header, write_empty_batch};
pub use control::{Endpoint, KraftControl, Voter, write_end_marker, write_kraft_control};
pub use legacy::{LegacyBuilder, write_legacy_message};
pub use options::BatchOptions;

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
