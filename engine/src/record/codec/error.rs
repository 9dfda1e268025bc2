//! What went wrong with a payload?

use std::fmt;

use super::Codec;
use crate::error::{Error, Kind};

/// The kinds of [`CodecError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodecErrorKind {
    /// The payload is not what Kafka's reader of this codec accepts.
    Corrupt,
    /// The payload opens to more bytes than the caller allows.
    Limit,
    /// The attributes name a codec id that does not exist.
    UnknownCodec,
    /// The caller asked for a level or a pairing of codec and magic that Kafka does not write.
    Argument,
}

/// Why a payload could not be opened or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecError {
    kind: CodecErrorKind,
    reason: String,
}

impl CodecError {
    /// The error for a codec id for which [`Codec::from_id`] has nothing.
    #[must_use]
    pub fn unknown(id: u8) -> Self {
        CodecError {
            kind: CodecErrorKind::UnknownCodec,
            reason: format!("unknown compression codec id {id}"),
        }
    }

    pub(super) fn corrupt(codec: Codec, what: impl fmt::Display) -> Self {
        CodecError { kind: CodecErrorKind::Corrupt, reason: format!("{codec}: {what}") }
    }

    pub(super) fn limit(codec: Codec, limit_bytes: u64) -> Self {
        CodecError {
            kind: CodecErrorKind::Limit,
            reason: format!("{codec}: the payload opens to more than {limit_bytes} bytes"),
        }
    }

    pub(super) fn argument(codec: Codec, what: impl fmt::Display) -> Self {
        CodecError { kind: CodecErrorKind::Argument, reason: format!("{codec} {what}") }
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> CodecErrorKind {
        self.kind
    }

    /// One sentence that names the codec and says why.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for CodecError {}

impl From<CodecError> for Error {
    fn from(error: CodecError) -> Self {
        let kind = match error.kind {
            CodecErrorKind::Corrupt => Kind::Corrupt,
            CodecErrorKind::Limit => Kind::Limit,
            CodecErrorKind::UnknownCodec => Kind::Unsupported,
            CodecErrorKind::Argument => Kind::InvalidArgument,
        };
        Error::new(kind, error.reason)
    }
}
