//! What do the records of a batch of magic 2 say to a validator?
//!
//! Kafka reads uncompressed records in full, though it copies nothing. Of compressed records that
//! may stay as they are it only passes over the fields: what they declare as their length is not
//! held against it. Each way is a loop of its own over a slice; payloads that open to more than a
//! megabyte are passed over in pieces.

use super::error::ValidateError;
use super::step::step;
use crate::record::check::fields::{Cursor, Deltas, TOO_SHORT, skip_field, walk_record};
use crate::record::check::window::Window;
use crate::record::codec::{Codec, CodecError, CodecErrorKind, Decompressor};
use crate::record::records::RecordError;
use crate::record::varint::{self, VarintError};

/// A payload that opens to no more than this is opened whole, which is fastest.
const WHOLE_SIZE_MAX: usize = 1 << 20;
/// What is held at a time of a larger one.
const WINDOW_SIZE: usize = 64 << 10;

/// Why a walk ended early.
#[derive(Debug)]
pub(super) enum WalkFault {
    /// The records do not add up.
    Record(RecordError),
    /// The length of a record has too many bytes.
    LengthTooLong,
    /// The payload does not open.
    Codec(CodecError),
}

impl WalkFault {
    pub(super) fn into_error(self, codec: Codec) -> ValidateError {
        match self {
            WalkFault::Record(error) => error.into(),
            WalkFault::Codec(error) => error.into(),
            // Kafka quirk: the reader of uncompressed records lets this one escape as it is.
            WalkFault::LengthTooLong if codec == Codec::None => ValidateError::argument(
                "Varint is too long, the most significant bit in the 5th byte is set",
            ),
            WalkFault::LengthTooLong => ValidateError::invalid("Found invalid record structure"),
        }
    }
}

impl From<RecordError> for WalkFault {
    fn from(error: RecordError) -> Self {
        WalkFault::Record(error)
    }
}

impl From<CodecError> for WalkFault {
    fn from(error: CodecError) -> Self {
        WalkFault::Codec(error)
    }
}

const NEGATIVE_COUNT: &str = "Found invalid record count in magic v2 batch";
const TOO_FEW: &str = "Incorrect declared batch size, premature EOF reached";
const TOO_MANY: &str = "Incorrect declared batch size, records still remaining in file";

/// Is shown every record of a walk. It is handed through by value, and copied where a loop begins:
/// behind a pointer its numbers would be stored at every record.
pub(super) trait Seer {
    fn take(&mut self, deltas: Deltas);
}

/// Looks only whether a walk comes to the end.
struct Blind;

impl Seer for Blind {
    fn take(&mut self, _: Deltas) {}
}

/// Reads `count` records in full, which must be all that `payload` holds.
// spec: records 1.2
pub(super) fn walk_slice<S: Seer>(payload: &[u8], count: i32, seer: S) -> Result<S, WalkFault> {
    if count <= 0 {
        check_no_records(count)?;
        return Ok(seer);
    }
    let (mut seer, mut at) = (seer, 0);
    for _ in 0..count {
        let (deltas, behind) = match step::<true>(payload, at) {
            Some(stepped) => stepped,
            None => walk_precisely(payload, at)?,
        };
        seer.take(deltas);
        at = behind;
    }
    check_end(payload.get(at..).unwrap_or_default())?;
    Ok(seer)
}

/// Reads the record at `at` in full; gives the position behind it, or what is wrong.
#[cold]
fn walk_precisely(payload: &[u8], at: usize) -> Result<(Deltas, usize), WalkFault> {
    let rest = payload.get(at..).unwrap_or_default();
    let (length, behind) = varint::read_i32(rest).map_err(length_fault)?;
    let length = usize::try_from(length)
        .map_err(|_| RecordError::structure("Invalid record size: it is negative"))?;
    let (mut fields, behind) = behind.split_at_checked(length).ok_or(TOO_LONG)?;
    let deltas = walk_record(&mut fields)?;
    Ok((deltas, payload.len() - behind.len()))
}

const TOO_LONG: RecordError = RecordError {
    code: crate::problem::Code::Record,
    reason: "Invalid record size: the payload has fewer bytes than the record declares",
};

#[cold]
fn length_fault(error: VarintError) -> WalkFault {
    match error {
        VarintError::Short => RecordError::count(TOO_FEW).into(),
        VarintError::TooLong => WalkFault::LengthTooLong,
    }
}

#[cold]
fn check_no_records(count: i32) -> Result<(), WalkFault> {
    if count < 0 { Err(RecordError::count(NEGATIVE_COUNT).into()) } else { Ok(()) }
}

fn check_end(rest: &[u8]) -> Result<(), WalkFault> {
    if rest.is_empty() { Ok(()) } else { Err(RecordError::count(TOO_MANY).into()) }
}

/// Passes over `count` records, which must be all that `payload` holds.
fn pass_slice<S: Seer>(payload: &[u8], count: i32, seer: S) -> Result<S, WalkFault> {
    let (mut seer, mut at) = (seer, 0);
    for _ in 0..count {
        let (deltas, behind) = match step::<false>(payload, at) {
            Some(stepped) => stepped,
            None => {
                let mut rest = payload.get(at..).unwrap_or_default();
                let deltas = pass_record(&mut rest)?;
                (deltas, payload.len() - rest.len())
            }
        };
        seer.take(deltas);
        at = behind;
    }
    check_end(payload.get(at..).unwrap_or_default())?;
    Ok(seer)
}

/// Passes over the fields of one record.
// spec: records 1.2, the skipping iterator
fn pass_record<C: Cursor>(cursor: &mut C) -> Result<Deltas, RecordError> {
    let _declared_length = cursor.varint()?;
    cursor.skip(1)?;
    let timestamp = cursor.varlong()?;
    let offset = cursor.varint()?;
    let has_key = skip_field(cursor)?;
    skip_field(cursor)?;
    let header_count = cursor.varint()?;
    if header_count != 0 {
        pass_headers(cursor, header_count)?;
    }
    Ok(Deltas { timestamp, offset, has_key })
}

fn pass_headers<C: Cursor>(cursor: &mut C, count: i32) -> Result<(), RecordError> {
    if count < 0 {
        return Err(RecordError::structure("Found invalid number of record headers"));
    }
    // Each takes two bytes at least, so the payload bounds the loop.
    for _ in 0..count {
        let key_size = usize::try_from(cursor.varint()?)
            .map_err(|_| RecordError::structure("Invalid negative header key size"))?;
        cursor.skip(key_size)?;
        skip_field(cursor)?;
    }
    Ok(())
}

/// All that comes out of a window, without borders of records.
struct Flow<'a, 'w, 'p>(&'a mut Window<'w, 'p>);

impl Flow<'_, '_, '_> {
    fn number<T>(
        &mut self,
        size_max: usize,
        read: impl Fn(&[u8]) -> Result<(T, &[u8]), VarintError>,
    ) -> Result<T, RecordError> {
        let bytes = self.0.peek(size_max)?;
        let (value, rest) = read(bytes)?;
        let size = bytes.len() - rest.len();
        self.0.consume(size);
        Ok(value)
    }
}

impl Cursor for Flow<'_, '_, '_> {
    fn left(&self) -> usize {
        usize::MAX
    }

    fn varint(&mut self) -> Result<i32, RecordError> {
        self.number(5, varint::read_i32)
    }

    fn varlong(&mut self) -> Result<i64, RecordError> {
        self.number(10, varint::read_i64)
    }

    fn skip(&mut self, count: usize) -> Result<(), RecordError> {
        if self.0.pass(count, |_| {})? < count { Err(TOO_SHORT) } else { Ok(()) }
    }
}

/// Opens payloads, and keeps the memory for it.
#[derive(Default)]
pub(super) struct Opener {
    pub(super) decompressor: Decompressor,
    window: Vec<u8>,
}

impl Opener {
    /// Shows every record of a batch whose payload may stay as it is; gives how many bytes the
    /// records have.
    pub(super) fn walk<S: Seer>(
        &mut self,
        codec: Codec,
        payload: &[u8],
        count: i32,
        seer: S,
    ) -> Result<(S, u64), WalkFault> {
        if codec == Codec::None {
            return Ok((walk_slice(payload, count, seer)?, size_of(payload)));
        }
        if count <= 0 {
            check_no_records(count)?;
            return Ok((seer, 0));
        }
        match self.decompressor.decompress(codec, 2, payload, WHOLE_SIZE_MAX) {
            Ok(opened) => Ok((pass_slice(opened, count, seer)?, size_of(opened))),
            // A payload that breaks off may hold a bad record before that, which Kafka meets first.
            Err(error)
                if matches!(error.kind(), CodecErrorKind::Limit | CodecErrorKind::Corrupt) =>
            {
                self.walk_in_pieces(codec, payload, count, seer)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What Kafka says of a payload that does not open whole: it reads records while it
    /// decompresses, and meets a bad one in front of the break first.
    #[cold]
    pub(super) fn explain(
        &mut self,
        codec: Codec,
        payload: &[u8],
        count: i32,
        error: CodecError,
    ) -> ValidateError {
        if error.kind() == CodecErrorKind::Corrupt
            && let Err(fault) = self.walk_in_pieces(codec, payload, count, Blind)
        {
            return fault.into_error(codec);
        }
        error.into()
    }

    #[cold]
    fn walk_in_pieces<S: Seer>(
        &mut self,
        codec: Codec,
        payload: &[u8],
        count: i32,
        mut seer: S,
    ) -> Result<(S, u64), WalkFault> {
        self.window.resize(WINDOW_SIZE, 0);
        let stream = self.decompressor.stream(codec, 2, payload, u64::MAX)?;
        let mut window = Window::new(stream, &mut self.window);
        match pass_window(&mut window, count, &mut seer) {
            Ok(()) => Ok((seer, window.opened_bytes())),
            Err(fault) => Err(window.explain().map_or(fault, WalkFault::from)),
        }
    }
}

fn pass_window<S: Seer>(
    window: &mut Window<'_, '_>,
    count: i32,
    seer: &mut S,
) -> Result<(), WalkFault> {
    for _ in 0..count {
        seer.take(pass_record(&mut Flow(window))?);
    }
    // This also sees checksums behind the last byte.
    check_end(window.peek(1)?)
}

pub(super) fn size_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
