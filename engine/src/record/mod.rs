//! What is in a record batch?
//!
//! Views of batches and records that copy nothing ([`BatchHeader`], [`Records`]), the two old
//! message formats ([`legacy`]), control records, the check of every record ([`check`]), the rules
//! for batches that come in ([`validate`]), and the one loop that walks a file of batches
//! ([`scan`](mod@scan)). Bytes in, bytes out: nothing here opens a file.

pub mod batch;
pub mod builder;
pub mod check;
pub mod codec;
pub mod control;
pub mod filter;
pub mod frames;
pub mod legacy;
pub mod payload;
pub mod reader;
pub mod records;
pub mod scan;
pub mod validate;
pub mod varint;

pub use batch::{BatchHeader, TimestampType};
pub use reader::BatchReader;
pub use records::{Record, Records};
