//! Do the fields of a record of magic 2 add up?
//!
//! The walk is written once over a [`Cursor`] and compiled for slices, where nearly all records
//! are, and for the rare record that is larger than what is held of its decompressed batch.

use crate::record::records::RecordError;
use crate::record::varint;

/// Passes over the bytes of one record and never leaves it.
pub(in crate::record) trait Cursor {
    /// Bytes of the record that are left.
    fn left(&self) -> usize;
    /// Passes over a 32-bit number.
    fn varint(&mut self) -> Result<i32, RecordError>;
    /// Passes over a 64-bit number.
    fn varlong(&mut self) -> Result<i64, RecordError>;
    /// Passes over bytes.
    fn skip(&mut self, count: usize) -> Result<(), RecordError>;
}

impl Cursor for &[u8] {
    #[inline]
    fn left(&self) -> usize {
        self.len()
    }

    #[inline]
    fn varint(&mut self) -> Result<i32, RecordError> {
        let (value, rest) = varint::read_i32(self)?;
        *self = rest;
        Ok(value)
    }

    #[inline]
    fn varlong(&mut self) -> Result<i64, RecordError> {
        let (value, rest) = varint::read_i64(self)?;
        *self = rest;
        Ok(value)
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), RecordError> {
        *self = self.get(count..).ok_or(TOO_SHORT)?;
        Ok(())
    }
}

/// A field that reaches beyond its record.
pub(in crate::record) const TOO_SHORT: RecordError =
    RecordError { code: crate::problem::Code::Record, reason: "a field is longer than its record" };

/// Where a record stands in its batch, and what else rules ask of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::record) struct Deltas {
    pub(in crate::record) timestamp: i64,
    pub(in crate::record) offset: i32,
    /// Whether it has a key, though perhaps an empty one.
    pub(in crate::record) has_key: bool,
}

/// Walks all fields of a record, from behind its length to its end.
// spec: records 1.1
#[inline]
pub(in crate::record) fn walk_record<C: Cursor>(cursor: &mut C) -> Result<Deltas, RecordError> {
    cursor.skip(ATTRIBUTES_SIZE)?;
    let timestamp = cursor.varlong()?;
    let offset = cursor.varint()?;
    let has_key = skip_field(cursor)?;
    skip_field(cursor)?;
    let header_count = cursor.varint()?;
    if header_count != 0 {
        walk_headers(cursor, header_count)?;
    }
    if cursor.left() != 0 {
        return Err(RecordError::structure("the fields of a record are shorter than its length"));
    }
    Ok(Deltas { timestamp, offset, has_key })
}

const ATTRIBUTES_SIZE: usize = 1;

/// A key or value: null, and `false`, where its size is negative.
#[inline]
pub(in crate::record) fn skip_field<C: Cursor>(cursor: &mut C) -> Result<bool, RecordError> {
    match usize::try_from(cursor.varint()?) {
        Ok(size) => cursor.skip(size).map(|()| true),
        Err(_) => Ok(false),
    }
}

fn walk_headers<C: Cursor>(cursor: &mut C, count: i32) -> Result<(), RecordError> {
    let count = usize::try_from(count)
        .map_err(|_| RecordError::structure("a record has a negative header count"))?;
    // A header has two bytes at least, so this also bounds the loop.
    if count > cursor.left() {
        return Err(RecordError::structure("a record counts more headers than it has bytes"));
    }
    for _ in 0..count {
        let key_size = usize::try_from(cursor.varint()?)
            .map_err(|_| RecordError::structure("a header has a negative key size"))?;
        cursor.skip(key_size)?;
        skip_field(cursor)?;
    }
    Ok(())
}
