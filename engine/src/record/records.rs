//! What is in the records of a batch of magic 2?
//!
//! ```text
//! varint length | i8 attributes | varlong timestamp delta | varint offset delta
//! | varint key size, key | varint value size, value | varint header count, headers
//! header: varint key size, key | varint value size, value
//! ```
//!
//! Sizes of keys and values may be negative: null. [`Records`] walks a payload that is already
//! decompressed and copies nothing; every length is compared with what is there before it is used.

use crate::problem::Code;
use crate::record::batch::{BatchHeader, TimestampType};
use crate::record::varint;
use crate::units::{NO_SEQUENCE, increment_sequence};

/// What is wrong with the records of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// [`Code::Record`] or [`Code::RecordCount`].
    pub code: Code,
    /// Why, in a few words.
    pub reason: &'static str,
}

impl RecordError {
    /// Fields that do not add up.
    #[must_use]
    pub fn structure(reason: &'static str) -> Self {
        RecordError { code: Code::Record, reason }
    }

    /// A number of records other than the header's.
    #[must_use]
    pub fn count(reason: &'static str) -> Self {
        RecordError { code: Code::RecordCount, reason }
    }
}

impl From<varint::VarintError> for RecordError {
    fn from(error: varint::VarintError) -> Self {
        RecordError::structure(match error {
            varint::VarintError::Short => "the record ends within a number",
            varint::VarintError::TooLong => "a number in the record has too many bytes",
        })
    }
}

/// One record; its bytes are borrowed from the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Log offset.
    pub offset: i64,
    /// Timestamp in milliseconds, -1 for none.
    pub timestamp_ms: i64,
    /// The producer's sequence, -1 for none.
    pub sequence: i32,
    /// The key; `None` is null, which is not the same as empty.
    pub key: Option<&'a [u8]>,
    /// The value; `None` is null, a tombstone in a compacted topic.
    pub value: Option<&'a [u8]>,
    /// The headers, in order.
    pub headers: Headers<'a>,
}

impl Record<'_> {
    /// In the place of a record that is not read yet.
    pub(super) const EMPTY: Record<'static> = Record {
        offset: -1,
        timestamp_ms: -1,
        sequence: -1,
        key: None,
        value: None,
        headers: Headers::EMPTY,
    };
}

/// The headers of a record. They were checked when the record was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Headers<'a> {
    /// No headers.
    pub const EMPTY: Headers<'static> = Headers { count: 0, bytes: &[] };

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }
}

impl<'a> Iterator for Headers<'a> {
    /// Key (any bytes, UTF-8 by convention) and value.
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let (header, rest) = read_header(self.bytes).ok()?;
        self.bytes = rest;
        Some(header)
    }
}

type HeaderField<'a> = (&'a [u8], Option<&'a [u8]>);

fn read_header(bytes: &[u8]) -> Result<(HeaderField<'_>, &[u8]), RecordError> {
    let (key, rest) = read_field(bytes)?;
    let key = key.ok_or(RecordError::structure("a header has a negative key size"))?;
    let (value, rest) = read_field(rest)?;
    Ok(((key, value), rest))
}

#[inline]
fn read_field(bytes: &[u8]) -> Result<(Option<&[u8]>, &[u8]), RecordError> {
    let (size, rest) = varint::read_i32(bytes)?;
    match usize::try_from(size) {
        Err(_) => Ok((None, rest)),
        Ok(size) => match rest.split_at_checked(size) {
            Some((field, rest)) => Ok((Some(field), rest)),
            None => Err(RecordError::structure("a key or value is longer than the record")),
        },
    }
}

/// The records of a batch, in order. After the first error it ends.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
    left: i64,
    base_offset: i64,
    base_timestamp: i64,
    base_sequence: i32,
    append_time: Option<i64>,
    /// Whether the end of the payload is still to be looked at.
    end_unchecked: bool,
}

impl<'a> Records<'a> {
    /// Walks `payload`: what follows the 61 bytes of the header, decompressed.
    #[must_use]
    pub fn new(header: &BatchHeader, payload: &'a [u8]) -> Self {
        let append_time = (header.timestamp_type() == TimestampType::LogAppendTime)
            .then_some(header.max_timestamp);
        Records {
            rest: payload,
            left: i64::from(header.count),
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            base_sequence: header.base_sequence,
            append_time,
            // spec: records 1.2. A count of zero yields nothing, whatever the payload holds.
            end_unchecked: header.count != 0,
        }
    }

    fn read(&mut self) -> Result<Record<'a>, RecordError> {
        if self.rest.is_empty() {
            return Err(RecordError::count("there are fewer records than the header counts"));
        }
        let (size, rest) = varint::read_i32(self.rest)?;
        let size = usize::try_from(size)
            .map_err(|_| RecordError::structure("a record has a negative length"))?;
        let (body, rest) = rest
            .split_at_checked(size)
            .ok_or(RecordError::structure("a record is longer than its batch"))?;
        self.rest = rest;
        let (_attributes, body) =
            body.split_first().ok_or(RecordError::structure("a record has no bytes"))?;
        let (timestamp_delta, body) = varint::read_i64(body)?;
        let (offset_delta, body) = varint::read_i32(body)?;
        let (key, body) = read_field(body)?;
        let (value, body) = read_field(body)?;
        let headers = read_headers(body)?;
        let sequence = if self.base_sequence >= 0 {
            increment_sequence(self.base_sequence, offset_delta)
        } else {
            NO_SEQUENCE
        };
        Ok(Record {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            timestamp_ms: self
                .append_time
                .unwrap_or_else(|| self.base_timestamp.wrapping_add(timestamp_delta)),
            sequence,
            key,
            value,
            headers,
        })
    }
}

#[inline]
fn read_headers(bytes: &[u8]) -> Result<Headers<'_>, RecordError> {
    let (count, headers) = varint::read_i32(bytes)?;
    let count = u32::try_from(count)
        .map_err(|_| RecordError::structure("a record has a negative header count"))?;
    // A header takes two bytes at least; this also bounds the loop.
    if usize::try_from(count).unwrap_or(usize::MAX) > headers.len() {
        return Err(RecordError::structure("a record counts more headers than it has bytes"));
    }
    let mut rest = headers;
    for _ in 0..count {
        (_, rest) = read_header(rest)?;
    }
    if !rest.is_empty() {
        return Err(RecordError::structure("the fields of a record are shorter than its length"));
    }
    Ok(Headers { count, bytes: headers })
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left > 0 {
            self.left -= 1;
            let record = self.read();
            if record.is_err() {
                (self.left, self.end_unchecked) = (0, false);
            }
            return Some(record);
        }
        if !std::mem::take(&mut self.end_unchecked) {
            return None;
        }
        if self.left < 0 {
            return Some(Err(RecordError::count("the header counts fewer than zero records")));
        }
        if !self.rest.is_empty() {
            return Some(Err(RecordError::count("there are more records than the header counts")));
        }
        None
    }
}
