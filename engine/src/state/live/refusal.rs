//! Why may a batch not be appended?

use std::fmt;

use crate::error::{Error, Kind};

/// Why a batch of a producer is refused, as Kafka's protocol tells reasons apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Batches before it are missing, or it was sent before.
    OutOfOrderSequence,
    /// A newer instance of the producer has written.
    InvalidProducerEpoch,
    /// It does not fit the transaction that is open, or none was begun.
    InvalidTxnState,
    /// A newer transaction coordinator has written a marker.
    TransactionCoordinatorFenced,
    /// The caller asked for what makes no sense.
    IllegalArgument,
}

/// A batch that is refused. The state is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// One sentence with what was expected and found.
    pub message: String,
}

impl Refusal {
    #[cold]
    pub(super) fn new(reason: Reason, message: String) -> Self {
        Refusal { reason, message }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal.reason {
            Reason::IllegalArgument => Kind::InvalidArgument,
            _ => Kind::Conflict,
        };
        Error::new(kind, refusal.message)
    }
}
