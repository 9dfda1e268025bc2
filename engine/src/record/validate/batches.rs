//! Where do the batches of a request or a fetch answer begin?
//!
//! Bytes in memory are cut into batches by other rules than files are: what is cut short at the end
//! is left out without complaint, and a magic that nobody knows is an error.

use super::error::ValidateError;
use crate::bytes;
use crate::record::batch::{
    BatchHeader, HEADER_SIZE, HEADER_UP_TO_MAGIC, LOG_OVERHEAD, MIN_SIZE_FIELD,
};
use crate::record::legacy::min_entry_size;

/// One batch of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct BatchView<'a> {
    /// Its header.
    pub header: BatchHeader,
    /// All of its bytes.
    pub bytes: &'a [u8],
}

/// The batches of a buffer, in order, up to one that is cut short. After an error it ends.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
    size_field_max: i32,
}

impl<'a> Batches<'a> {
    /// Walks all of `records`.
    #[must_use]
    pub fn new(records: &'a [u8]) -> Self {
        Batches::with_size_max(records, i32::MAX)
    }

    /// Walks all of `records`; a batch whose size field (its bytes without the first twelve) is above
    /// `size_max` is an error.
    #[must_use]
    pub fn with_size_max(records: &'a [u8], size_max: i32) -> Self {
        Batches { rest: records, size_field_max: size_max }
    }

    /// The bytes that no batch has taken yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<BatchView<'a>, ValidateError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let size = match size_of_first(self.rest, self.size_field_max) {
            Ok(size) => size?,
            Err(error) => {
                self.rest = &[];
                return Some(Err(error));
            }
        };
        let (batch, behind) = self.rest.split_at_checked(size)?;
        let Some(header) = parse_header(batch) else {
            self.rest = &[];
            return Some(Err(too_small(size)));
        };
        self.rest = behind;
        Some(Ok(BatchView { header, bytes: batch }))
    }
}

/// The header of a batch of any magic that the frame allows; `None` where the batch is too small for
/// it, which no checksum can make right.
#[inline]
pub(super) fn parse_header(batch: &[u8]) -> Option<BatchHeader> {
    match batch.get(16) {
        Some(2) => BatchHeader::parse(batch),
        Some(&magic) if batch.len() >= min_entry_size(magic.cast_signed()) => {
            BatchHeader::parse_legacy(batch)
        }
        _ => None,
    }
}

#[cold]
fn too_small(size: usize) -> ValidateError {
    ValidateError::corrupt(format!(
        "Record batch is corrupted (the size {size} is smaller than the minimum allowed overhead \
         {HEADER_SIZE})"
    ))
}

/// The whole size of the batch at the front; `None` where too few bytes are there to tell.
///
/// # Errors
///
/// A size below that of any batch, or a magic other than 0, 1 and 2: `CorruptRecord`.
pub fn first_batch_size(records: &[u8]) -> Result<Option<usize>, ValidateError> {
    size_of_first(records, i32::MAX)
}

// spec: records 3
#[inline]
fn size_of_first(rest: &[u8], size_field_max: i32) -> Result<Option<usize>, ValidateError> {
    let Some(size_field) = bytes::get_i32(rest, LOG_OVERHEAD - 4) else { return Ok(None) };
    if size_field < MIN_SIZE_FIELD || size_field > size_field_max {
        return Err(bad_size(size_field));
    }
    let Some(magic) = bytes::get_i8(rest, HEADER_UP_TO_MAGIC - 1) else { return Ok(None) };
    if !(0..=2).contains(&magic) {
        return Err(bad_magic(magic));
    }
    Ok(usize::try_from(size_field).ok().and_then(|size| size.checked_add(LOG_OVERHEAD)))
}

#[cold]
fn bad_size(size_field: i32) -> ValidateError {
    ValidateError::corrupt(if size_field < MIN_SIZE_FIELD {
        format!("Record size {size_field} is less than the minimum record overhead (14)")
    } else {
        format!("Record size {size_field} exceeds the largest allowable message size")
    })
}

#[cold]
fn bad_magic(magic: i8) -> ValidateError {
    ValidateError::corrupt(format!("Invalid magic found in record: {magic}"))
}
