//! What does a test write that needs some batch?

use super::{BatchBuilder, BatchOptions};
use crate::record::codec::Compressor;

/// A batch of one record without a key.
pub(crate) fn batch_of_one(options: BatchOptions, timestamp_ms: i64, value: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options).expect("options of a batch");
    builder.append(timestamp_ms, None, Some(value)).expect("a record");
    let mut bytes = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut bytes).expect("a batch");
    bytes
}
