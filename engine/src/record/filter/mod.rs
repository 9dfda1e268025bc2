//! What does compaction keep of a batch?
//!
//! [`BatchFilter`] takes one batch after another, asks [`FilterRules`] for a verdict on the batch
//! and on each of its records, and writes what stays:
//!
//! ```text
//! Delete                                          -> nothing, the records are not looked at
//! no record stays:  DeleteEmpty                   -> nothing
//!                   RetainEmpty                   -> the bare header: offsets and producer stay
//! all stay, magic 2, no delete horizon to be set  -> the same bytes
//! else                                            -> a batch of magic 2 with what stays
//! ```
//!
//! Bytes in, bytes out. Which records stay is the log's to know: see the rules of the log cleaner.

mod batch_filter;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use batch_filter::fault;
pub use batch_filter::{BatchFilter, FilterTotals};
pub use rules::{BatchVerdict, FilterRules, Retention};
