//! Where objects are kept: the little that the engine asks of an object store.

use std::fmt;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::io::File;

/// An object, as a listing tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its whole name.
    pub name: String,
    /// Its bytes.
    pub size_bytes: u64,
}

/// A store of objects by name.
///
/// Calls may come from several threads at once. An implementation tries again by itself what is
/// worth it and gives up in the end; it never answers with other bytes than those asked for.
///
/// # Errors
/// `NotFound` for an object that is not there, `OutOfRange` for bytes behind its end, `Corrupt` for
/// an answer that is not what was asked for, `Conflict` for an object that changed between two
/// looks, and `Io` for everything that may be gone when one tries again.
pub trait ObjectTarget: Send + Sync + fmt::Debug {
    /// The bytes of `range`; all of the object without one. Nothing is read beyond
    /// `size_limit_bytes`, and an object that is larger is a `Limit`.
    fn get(&self, name: &str, range: Option<Range<u64>>, size_limit_bytes: u64) -> Result<Vec<u8>>;

    /// The size of an object in bytes.
    fn size(&self, name: &str) -> Result<u64>;

    /// Writes an object of the bytes of `parts`, one behind the other; it is there as a whole or
    /// not at all, and replaces what had its name.
    fn put(&self, name: &str, parts: &[ObjectBytes<'_>]) -> Result<()>;

    /// Removes an object. One that is not there is no error.
    fn delete(&self, name: &str) -> Result<()>;

    /// All objects whose names begin so, by name.
    fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>>;
}

/// The bytes of `range`, just so many: what a store gives is not believed to be what it was asked
/// for.
///
/// # Errors
/// What the store says; `Corrupt` for an answer of another length.
pub fn get_exact(target: &dyn ObjectTarget, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
    let wanted_bytes = range.end.saturating_sub(range.start);
    let bytes = target.get(name, Some(range.clone()), wanted_bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|given| given == wanted_bytes) {
        return Ok(bytes);
    }
    let why = format!("{name}: {} bytes came of the {wanted_bytes} asked for", bytes.len());
    Err(Error::corrupt(why).at_position(range.start))
}

/// Bytes to be uploaded.
#[derive(Clone, Copy, Debug)]
pub enum ObjectBytes<'a> {
    /// From memory.
    Memory(&'a [u8]),
    /// From a file, which nobody cuts meanwhile.
    File {
        /// The open file.
        file: &'a dyn File,
        /// Where the bytes begin.
        position: u64,
        /// How many there are.
        size_bytes: u64,
    },
}
