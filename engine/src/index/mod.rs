//! How do I find a position? The side files of a segment that answer without a scan of its log.
//!
//! | file | entry | answers |
//! |---|---|---|
//! | `.index` | 8 bytes: [`offset`] | from which byte of the log must a scan start to meet this offset? |
//! | `.timeindex` | 12 bytes: [`time`] | from which offset must a scan start to meet this timestamp? |
//! | `.txnindex` | 34 bytes: [`txn`] | which transactions of these offsets were aborted? |
//!
//! All integers are big-endian, no file has a header or a checksum, and offsets in the first two
//! are relative to the segment's base. [`check`] tells what is wrong with such a file; everything
//! in it can be derived from the log again.
//!
//! Nothing here opens a file: views borrow the bytes, builders give bytes.
//!
//! Kafka's exceptions are these kinds of [`Error`](crate::Error):
//!
//! | Kafka | kind |
//! |---|---|
//! | `CorruptIndexException` | [`Corrupt`](crate::Kind::Corrupt) |
//! | `IndexOffsetOverflowException`, an entry that is not there | [`OutOfRange`](crate::Kind::OutOfRange) |
//! | `InvalidOffsetException`, a timestamp or last offset that does not rise, a size below one entry | [`InvalidArgument`](crate::Kind::InvalidArgument) |
//! | an append to a full index | [`Limit`](crate::Kind::Limit) |
//! | a transaction index entry of a later version | [`Unsupported`](crate::Kind::Unsupported) |

pub mod check;
pub(crate) mod entries;
pub mod live;
pub mod offset;
mod slots;
pub mod time;
pub mod txn;

pub use entries::{Entries, IndexBuilder, IndexEntry};
pub use offset::{OffsetEntries, OffsetEntry, OffsetIndexBuilder};
pub use time::{TimeEntries, TimeEntry, TimeIndexBuilder};
pub use txn::{AbortedTxn, TxnEntries, TxnIndexBuilder};
