//! What is wrong with an index file? Every problem of it, given its bytes and the batches of its
//! log.
//!
//! Each check is made of the bytes of one file, is then told in one pass what the log holds, in its
//! order, and at the end gives what it found: at most one [`IndexProblem`] for each code, with the
//! first place and the number of places, so that a file of garbage makes no flood.
//!
//! | file | check | is told of |
//! |---|---|---|
//! | `.index` | [`OffsetIndexCheck`] | every batch: where it starts, its last offset |
//! | `.timeindex` | [`TimeIndexCheck`] | every batch: its last offset, its largest timestamp |
//! | `.txnindex` | [`TxnIndexCheck`] | every abort marker: the transaction that it ends |
//!
//! What counts as wrong is what could make a look-up miss something, and what Kafka would never
//! have written; an index that has fewer entries than another would have is right.

mod findings;
mod offset;
mod time;
mod txn;
mod walk;

pub use findings::IndexProblem;
pub use offset::OffsetIndexCheck;
pub use time::{TimeIndexCheck, TimeIndexFindings};
pub use txn::{History, TxnIndexCheck};
