//! What a check gives: what a sound batch holds, or the first thing that is wrong with it.

use std::fmt;

use crate::problem::Code;
use crate::record::codec::{CodecError, CodecErrorKind};
use crate::record::records::RecordError;

/// What a batch without a fault holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedBatch {
    /// How many records.
    pub records: u64,
    /// The base offset: of a compressed message of the old formats that of its first inner
    /// message, which its header does not tell.
    pub base_offset: i64,
}

/// The first fault of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchFault {
    /// What kind.
    pub code: Code,
    /// One sentence for the operator, without a full stop.
    pub detail: String,
}

impl fmt::Display for BatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for BatchFault {}

impl From<CodecError> for BatchFault {
    fn from(error: CodecError) -> Self {
        let code = match error.kind() {
            CodecErrorKind::UnknownCodec => Code::UnknownCodec,
            _ => Code::Codec,
        };
        BatchFault { code, detail: error.reason().to_owned() }
    }
}

impl From<RecordError> for BatchFault {
    fn from(error: RecordError) -> Self {
        BatchFault { code: error.code, detail: error.reason.to_owned() }
    }
}

impl BatchFault {
    /// The same fault, said to be of the record with this number (from 0).
    pub(super) fn in_record(mut self, number: u64) -> Self {
        self.detail = format!("record {number}: {}", self.detail);
        self
    }
}
