//! What does a caller learn of a failure? A status and, where it wants more, its `silt_error_t`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::log::{AppendError, AppendReason};
use engine::record::validate::ValidateErrorKind;
use engine::{Error, Kind};

use crate::memory::write_text;
use crate::types::c_structs;

/// `silt_status_t`.
pub type Status = i32;

/// `SILT_OK`.
pub const OK: Status = 0;
/// `SILT_E_IO`.
pub const IO: Status = -1;
/// `SILT_E_CORRUPT`.
pub const CORRUPT: Status = -2;
/// `SILT_E_NOT_FOUND`.
pub const NOT_FOUND: Status = -3;
/// `SILT_E_OUT_OF_RANGE`.
pub const OUT_OF_RANGE: Status = -4;
/// `SILT_E_INVALID_ARGUMENT`.
pub const INVALID_ARGUMENT: Status = -5;
/// `SILT_E_CONFLICT`.
pub const CONFLICT: Status = -6;
/// `SILT_E_UNSUPPORTED`.
pub const UNSUPPORTED: Status = -7;
/// `SILT_E_LIMIT`.
pub const LIMIT: Status = -8;
/// `SILT_E_CLOSED`.
pub const CLOSED: Status = -9;
/// `SILT_E_CANCELLED`.
pub const CANCELLED: Status = -10;
/// `SILT_E_SHORT_BUFFER`.
pub const SHORT_BUFFER: Status = -11;
/// `SILT_E_BUG`.
pub const BUG: Status = -12;
/// `SILT_E_FORKED`.
pub const FORKED: Status = -13;

/// Bytes of a message.
const MESSAGE_SIZE: usize = 224;

c_structs! {
    /// `silt_error_t`.
    "silt_error_t" SiltError {
        struct_size: u32,
        code: Status,
        os_errno: i32,
        detail_code: i32,
        offset: i64,
        position: i64,
        message: [u8; MESSAGE_SIZE],
    }
}

const _: () = assert!(size_of::<SiltError>() == 256);

/// Why a call fails.
pub enum Failure {
    /// The engine says so.
    Engine(Error),
    /// The engine refused an append.
    Append(AppendError),
    /// The call itself is not right.
    Call(Status, &'static str),
    /// The caller's function ended the call with this value.
    Cancelled(i32),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Self {
        Failure::Append(error)
    }
}

/// The result of a body.
pub type Outcome<T> = Result<T, Failure>;

/// A call that makes no sense.
pub fn invalid<T>(why: &'static str) -> Outcome<T> {
    Err(Failure::Call(INVALID_ARGUMENT, why))
}

/// Whether a result fitted the caller's memory, as the end of a call.
pub fn fits(is_whole: bool, why: &'static str) -> Outcome<()> {
    match is_whole {
        true => Ok(()),
        false => Err(Failure::Call(SHORT_BUFFER, why)),
    }
}

/// The name of a status in the header, with its NUL.
pub fn name_of(status: Status) -> &'static [u8] {
    match status {
        OK => b"SILT_OK\0",
        IO => b"SILT_E_IO\0",
        CORRUPT => b"SILT_E_CORRUPT\0",
        NOT_FOUND => b"SILT_E_NOT_FOUND\0",
        OUT_OF_RANGE => b"SILT_E_OUT_OF_RANGE\0",
        INVALID_ARGUMENT => b"SILT_E_INVALID_ARGUMENT\0",
        CONFLICT => b"SILT_E_CONFLICT\0",
        UNSUPPORTED => b"SILT_E_UNSUPPORTED\0",
        LIMIT => b"SILT_E_LIMIT\0",
        CLOSED => b"SILT_E_CLOSED\0",
        CANCELLED => b"SILT_E_CANCELLED\0",
        SHORT_BUFFER => b"SILT_E_SHORT_BUFFER\0",
        BUG => b"SILT_E_BUG\0",
        FORKED => b"SILT_E_FORKED\0",
        _ => b"SILT_E_?\0",
    }
}

/// The status of an error of the engine.
pub fn status_of(error: &Error) -> Status {
    match error.kind() {
        Kind::Io => IO,
        Kind::Corrupt => CORRUPT,
        Kind::NotFound => NOT_FOUND,
        Kind::OutOfRange => OUT_OF_RANGE,
        Kind::InvalidArgument => INVALID_ARGUMENT,
        Kind::Conflict => CONFLICT,
        Kind::Unsupported => UNSUPPORTED,
        Kind::Limit => LIMIT,
        Kind::Closed => CLOSED,
        Kind::Cancelled => CANCELLED,
        // A kind that came later than this header.
        _ => IO,
    }
}

/// Why an append was refused: `SILT_DETAIL_`.
fn detail_of(error: &AppendError) -> i32 {
    if let Some(reason) = error.reason() {
        return match reason {
            AppendReason::RecordBatchTooLarge => 18,
            AppendReason::UnexpectedAppendOffset => 1001,
            AppendReason::OutOfOrderSequence => 45,
            AppendReason::InvalidProducerEpoch => 47,
            AppendReason::InvalidTxnState => 48,
            AppendReason::TransactionCoordinatorFenced => 52,
            _ => 0,
        };
    }
    match error.invalid() {
        Some(ValidateErrorKind::OffsetsOutOfOrder) => 1001,
        Some(kind) => i32::from(kind.code().max(0)),
        None => 0,
    }
}

impl Failure {
    /// The status.
    pub fn status(&self) -> Status {
        match self {
            Failure::Engine(error) => status_of(error),
            Failure::Append(AppendError::Failed(error)) => status_of(error),
            Failure::Append(AppendError::Refused(refusal)) => match refusal.reason {
                AppendReason::RecordBatchTooLarge => LIMIT,
                AppendReason::UnexpectedAppendOffset => OUT_OF_RANGE,
                AppendReason::IllegalArgument => INVALID_ARGUMENT,
                _ => CONFLICT,
            },
            Failure::Append(AppendError::Invalid(error)) => match error.kind() {
                ValidateErrorKind::CorruptRecord | ValidateErrorKind::Codec => CORRUPT,
                ValidateErrorKind::RecordTooLarge => LIMIT,
                ValidateErrorKind::UnsupportedForMessageFormat
                | ValidateErrorKind::UnsupportedCompressionType => UNSUPPORTED,
                ValidateErrorKind::OffsetsOutOfOrder => OUT_OF_RANGE,
                _ => INVALID_ARGUMENT,
            },
            Failure::Call(status, _) => *status,
            Failure::Cancelled(_) => CANCELLED,
        }
    }

    /// `SILT_DETAIL_` and the number of the system's error, 0 where there is none.
    pub fn numbers(&self) -> (i32, i32) {
        match self {
            Failure::Engine(error) | Failure::Append(AppendError::Failed(error)) => {
                (0, error.errno().unwrap_or(0))
            }
            Failure::Append(error) => (detail_of(error), 0),
            Failure::Call(..) => (0, 0),
            Failure::Cancelled(value) => (*value, 0),
        }
    }

    /// Tells the caller, who may not want to know.
    ///
    /// # Safety
    /// `err` is NULL or a `silt_error_t` of at least the first size.
    unsafe fn tell(&self, err: *mut SiltError) -> Status {
        let code = self.status();
        let (detail_code, os_errno) = self.numbers();
        let mut told = SiltError { code, os_errno, detail_code, ..SiltError::new() };
        if let Failure::Engine(error) | Failure::Append(AppendError::Failed(error)) = self {
            told.offset = error.offset().unwrap_or(-1);
            let position = error.position().and_then(|position| i64::try_from(position).ok());
            told.position = position.unwrap_or(-1);
        }
        let message = &mut told.message;
        match self {
            Failure::Engine(error) => write_text(message, format_args!("{error}")),
            Failure::Append(error) => write_text(message, format_args!("{error}")),
            Failure::Call(_, why) => write_text(message, format_args!("{why}")),
            Failure::Cancelled(value) => {
                let why = format_args!("the progress function ended the call with {value}");
                write_text(message, why);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { told.write_to(err) };
        code
    }
}

impl SiltError {
    fn new() -> Self {
        SiltError {
            struct_size: 0,
            code: OK,
            os_errno: 0,
            detail_code: 0,
            offset: -1,
            position: -1,
            message: [0; MESSAGE_SIZE],
        }
    }

    /// # Safety
    /// `to` is NULL or a `silt_error_t` of at least the first size.
    unsafe fn write_to(mut self, to: *mut SiltError) {
        if to.is_null() || !to.is_aligned() {
            return;
        }
        // SAFETY: not NULL, aligned, and of the first size at least by the caller's promise.
        let target = unsafe { &mut *to };
        self.struct_size = target.struct_size;
        *target = self;
    }
}

/// Runs the body of a function: nothing that goes wrong in it leaves it but as a status.
///
/// # Safety
/// `err` is NULL or a `silt_error_t` of at least the first size.
pub unsafe fn guard(err: *mut SiltError, body: impl FnOnce() -> Outcome<()>) -> Status {
    // SAFETY: the caller's promise.
    unsafe { guard_or(err, || {}, body) }
}

/// The same; `after_panic` runs when the body panicked.
///
/// # Safety
/// That of [`guard`].
pub unsafe fn guard_or(
    err: *mut SiltError,
    after_panic: impl FnOnce(),
    body: impl FnOnce() -> Outcome<()>,
) -> Status {
    let body = || {
        #[cfg(feature = "test")]
        crate::library::panic_if_asked();
        body()
    };
    // What the body had in hand is not looked at again: objects are poisoned, results not written.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => OK,
        // SAFETY: the caller's promise.
        Ok(Err(failure)) => unsafe { failure.tell(err) },
        Err(panic) => {
            after_panic();
            let mut told = SiltError { code: BUG, ..SiltError::new() };
            let why = text_of(&*panic);
            write_text(&mut told.message, format_args!("a fault of the library: {why}"));
            // SAFETY: the caller's promise.
            unsafe { told.write_to(err) };
            BUG
        }
    }
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    match panic.downcast_ref::<&str>() {
        Some(text) => text,
        None => panic.downcast_ref::<String>().map_or("it panicked", String::as_str),
    }
}
