//! The one error type of the engine.
//!
//! It is one pointer wide, tells its [`Kind`] (whose numbers the C ABI shares) and reads as one
//! sentence, context first. What a check finds is no error but a
//! [`Problem`](crate::problem::Problem).

use std::fmt;
use std::path::{Path, PathBuf};

/// The engine's result.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, in the few kinds that a caller tells apart. The numbers are part of the C ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum Kind {
    /// The operating system refused: see [`Error::errno`].
    Io = 1,
    /// Bytes are not what their format says.
    Corrupt = 2,
    /// A file, segment or offset that is not there.
    NotFound = 3,
    /// An offset, position or slot outside what there is.
    OutOfRange = 4,
    /// The caller asked for something that makes no sense.
    InvalidArgument = 5,
    /// Somebody else holds it, or the state does not allow it now.
    Conflict = 6,
    /// A version, magic or codec that this release does not know.
    Unsupported = 7,
    /// A limit of size, memory or count was reached.
    Limit = 8,
    /// The object is closed.
    Closed = 9,
    /// The caller cancelled.
    Cancelled = 10,
}

/// An error of the engine: its [`Kind`], where it happened and why.
pub struct Error(Box<Inner>);

struct Inner {
    kind: Kind,
    message: String,
    context: Vec<String>,
    path: Option<PathBuf>,
    position: Option<u64>,
    offset: Option<i64>,
    source: Option<std::io::Error>,
    is_repeated: bool,
}

impl Error {
    /// An error of this kind with one sentence that says why.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner {
            kind,
            message: message.into(),
            context: Vec::new(),
            path: None,
            position: None,
            offset: None,
            source: None,
            is_repeated: false,
        }))
    }

    /// Bytes that are not what their format says.
    #[must_use]
    pub fn corrupt(message: impl Into<String>) -> Self {
        Error::new(Kind::Corrupt, message)
    }

    /// An error of the operating system while doing `operation` (such as "open") on `path`.
    #[must_use]
    pub fn io(operation: &str, path: &Path, source: std::io::Error) -> Self {
        let kind = match source.kind() {
            std::io::ErrorKind::NotFound => Kind::NotFound,
            std::io::ErrorKind::AlreadyExists => Kind::Conflict,
            _ => Kind::Io,
        };
        let mut error = Error::new(kind, operation);
        error.0.path = Some(path.to_path_buf());
        error.0.source = Some(source);
        error
    }

    /// The same error, said to be of this file.
    #[must_use]
    pub fn in_file(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    /// The same error, said to be at this byte of the file.
    #[must_use]
    pub fn at_position(mut self, position: u64) -> Self {
        self.0.position.get_or_insert(position);
        self
    }

    /// The same error, said to be at this log offset.
    #[must_use]
    pub fn at_offset(mut self, offset: i64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// The same error, within what the caller was doing ("recover orders-0").
    #[must_use]
    pub fn context(mut self, what: impl Into<String>) -> Self {
        self.0.context.push(what.into());
        self
    }

    /// The same, for each of those that one error is told to: its kind and all that it says.
    #[must_use]
    pub(crate) fn copy(&self) -> Self {
        Error::new(self.kind(), self.to_string()).repeated()
    }

    /// The same error, said to tell of a fault that was told before: it is no new one.
    #[must_use]
    pub(crate) fn repeated(mut self) -> Self {
        self.0.is_repeated = true;
        self
    }

    /// Whether the fault was told before.
    pub(crate) fn is_repeated(&self) -> bool {
        self.0.is_repeated
    }

    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The operating system's error number, if it came from there.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        self.0.source.as_ref().and_then(std::io::Error::raw_os_error)
    }

    /// The file it is about.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The byte of the file it is about.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.0.position
    }

    /// The log offset it is about.
    #[must_use]
    pub fn offset(&self) -> Option<i64> {
        self.0.offset
    }

    /// The reason alone, without file, position and context.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for context in self.0.context.iter().rev() {
            write!(f, "{context}: ")?;
        }
        if let Some(path) = &self.0.path {
            write!(f, "{}: ", path.display())?;
        }
        if let Some(position) = self.0.position {
            write!(f, "at position {position}: ")?;
        }
        if let Some(offset) = self.0.offset {
            write!(f, "offset {offset}: ")?;
        }
        f.write_str(&self.0.message)?;
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}

const _: () = assert!(size_of::<Error>() == size_of::<usize>());
