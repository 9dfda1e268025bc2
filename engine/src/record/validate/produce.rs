//! May a produce request carry these records at all?
//!
//! The network layer of a broker asks this before the log sees them.

use super::batches::Batches;
use super::error::{ValidateError, ValidateErrorKind};
use crate::record::codec::Codec;

/// The first version of the request that carries batches of magic 2, and one alone.
const FIRST_WITH_BATCHES: i16 = 3;
/// The first version that may carry zstd.
const FIRST_WITH_ZSTD: i16 = 7;

/// Looks at the records of one partition in a produce request of this version.
///
/// # Errors
///
/// No batch, one of another magic than 2, or more than one: `InvalidRecord`. zstd before version 7:
/// `UnsupportedCompressionType`. Bytes that are no batch: `CorruptRecord`.
// spec: records 9
pub fn check_produce_request(records: &[u8], version: i16) -> Result<(), ValidateError> {
    if version < FIRST_WITH_BATCHES {
        return Ok(());
    }
    let refuse = |what: &str| {
        Err(ValidateError::invalid(format!("Produce requests with version {version} {what}")))
    };
    let mut batches = Batches::new(records);
    let Some(first) = batches.next() else {
        return refuse("must have at least one record batch per partition");
    };
    let header = first?.header;
    if header.magic != 2 {
        return refuse("are only allowed to contain record batches with magic version 2");
    }
    if version < FIRST_WITH_ZSTD && header.codec_id() == Codec::Zstd.id() {
        return Err(ValidateError::new(
            ValidateErrorKind::UnsupportedCompressionType,
            format!(
                "Produce requests with version {version} are not allowed to use ZStandard compression"
            ),
        ));
    }
    match batches.next() {
        None => Ok(()),
        Some(Err(error)) => Err(error),
        Some(Ok(_)) => refuse("are only allowed to contain exactly one record batch per partition"),
    }
}
