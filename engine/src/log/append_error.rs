//! Why was an append refused?

use std::fmt;

use crate::error::{Error, Kind};
use crate::record::validate::{ValidateError, ValidateErrorKind};
use crate::state::live::{Reason, Refusal};

/// Why an append is refused, as Kafka's protocol tells reasons apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AppendReason {
    /// More bytes than a segment may have.
    RecordBatchTooLarge,
    /// Offsets that the log has already.
    UnexpectedAppendOffset,
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

/// An append that is refused. The log is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppendRefusal {
    /// Why.
    pub reason: AppendReason,
    /// One sentence with what was expected and found.
    pub message: String,
    /// First and last offset of the batches, where the reason lies in them.
    pub offsets: Option<(i64, i64)>,
}

/// Why an append did not happen. The log is as it was before.
#[derive(Debug)]
pub enum AppendError {
    /// The batches are not what the topic takes.
    Invalid(ValidateError),
    /// The batches do not fit the log.
    Refused(Box<AppendRefusal>),
    /// The log cannot take them now: the disk, another writer, or it is closed.
    Failed(Error),
}

impl AppendError {
    pub(super) fn refused(reason: AppendReason, message: impl Into<String>) -> Self {
        let refusal = AppendRefusal { reason, message: message.into(), offsets: None };
        AppendError::Refused(Box::new(refusal))
    }

    pub(super) fn refused_at(
        reason: AppendReason,
        message: impl Into<String>,
        first: i64,
        last: i64,
    ) -> Self {
        let offsets = Some((first, last));
        AppendError::Refused(Box::new(AppendRefusal { reason, message: message.into(), offsets }))
    }

    /// Why the batches do not fit the log; `None` for other errors.
    #[must_use]
    pub fn reason(&self) -> Option<AppendReason> {
        match self {
            AppendError::Refused(refusal) => Some(refusal.reason),
            AppendError::Invalid(_) | AppendError::Failed(_) => None,
        }
    }

    /// What is wrong with the batches in themselves; `None` for other errors.
    #[must_use]
    pub fn invalid(&self) -> Option<ValidateErrorKind> {
        match self {
            AppendError::Invalid(error) => Some(error.kind()),
            AppendError::Refused(_) | AppendError::Failed(_) => None,
        }
    }
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Invalid(error) => error.fmt(f),
            AppendError::Refused(refusal) => f.write_str(&refusal.message),
            AppendError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AppendError {}

impl From<ValidateError> for AppendError {
    fn from(error: ValidateError) -> Self {
        AppendError::Invalid(error)
    }
}

impl From<Error> for AppendError {
    fn from(error: Error) -> Self {
        AppendError::Failed(error)
    }
}

impl From<Refusal> for AppendError {
    fn from(refusal: Refusal) -> Self {
        let reason = match refusal.reason {
            Reason::OutOfOrderSequence => AppendReason::OutOfOrderSequence,
            Reason::InvalidProducerEpoch => AppendReason::InvalidProducerEpoch,
            Reason::InvalidTxnState => AppendReason::InvalidTxnState,
            Reason::TransactionCoordinatorFenced => AppendReason::TransactionCoordinatorFenced,
            _ => AppendReason::IllegalArgument,
        };
        AppendError::refused(reason, refusal.message)
    }
}

impl From<AppendError> for Error {
    fn from(error: AppendError) -> Self {
        let refusal = match error {
            AppendError::Failed(error) => return error,
            AppendError::Invalid(error) => return error.into(),
            AppendError::Refused(refusal) => refusal,
        };
        let kind = match refusal.reason {
            AppendReason::RecordBatchTooLarge => Kind::Limit,
            AppendReason::UnexpectedAppendOffset => Kind::OutOfRange,
            AppendReason::IllegalArgument => Kind::InvalidArgument,
            AppendReason::OutOfOrderSequence
            | AppendReason::InvalidProducerEpoch
            | AppendReason::InvalidTxnState
            | AppendReason::TransactionCoordinatorFenced => Kind::Conflict,
        };
        let error = Error::new(kind, refusal.message);
        match refusal.offsets {
            Some((first, _)) => error.at_offset(first),
            None => error,
        }
    }
}
