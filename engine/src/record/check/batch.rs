//! The walk over the records of one batch, plain or compressed.

use super::fault::{BatchFault, CheckedBatch};
use super::fields::{Deltas, walk_record};
use super::window::{LargeRecord, Window};
use super::{control, messages};
use crate::problem::Code;
use crate::record::batch::{BatchHeader, HEADER_SIZE, TimestampType};
use crate::record::codec::{Codec, CodecError, CodecErrorKind, Decompressor};
use crate::record::records::RecordError;
use crate::record::varint;
use crate::units::NO_TIMESTAMP;

/// A payload that opens to no more than this is opened whole, which is fastest.
const WHOLE_SIZE_MAX: usize = 1 << 20;
/// What is held at a time of a larger one.
const WINDOW_SIZE: usize = 64 << 10;

/// Checks batches, one after the other, with memory that it keeps: about a megabyte, whatever the
/// batches open to.
///
/// ```
/// use siltstone::record::BatchHeader;
/// use siltstone::record::check::BatchChecker;
///
/// // One record with the value "v" at offset 7.
/// let mut batch = vec![0; 61];
/// batch[..8].copy_from_slice(&7_i64.to_be_bytes());
/// batch[16] = 2; // magic
/// batch[60] = 1; // count
/// batch.extend([14, 0, 0, 0, 1, 2, b'v', 0]);
/// let header = BatchHeader::parse(&batch).unwrap();
/// let mut offsets = Vec::new();
/// let checked = BatchChecker::new(u64::MAX)
///     .check(&header, &batch, &mut |offset, _timestamp| offsets.push(offset))?;
/// assert_eq!((checked.records, offsets), (1, vec![7]));
/// # Ok::<(), siltstone::record::check::BatchFault>(())
/// ```
pub struct BatchChecker {
    decompressor: Decompressor,
    window: Vec<u8>,
    limit_bytes: u64,
}

impl std::fmt::Debug for BatchChecker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchChecker")
            .field("limit_bytes", &self.limit_bytes)
            .finish_non_exhaustive()
    }
}

impl BatchChecker {
    /// A checker that takes a batch which opens to more than `limit_bytes` for one that cannot be
    /// opened.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        BatchChecker { decompressor: Decompressor::new(), window: Vec::new(), limit_bytes }
    }

    /// Walks every record of a batch whose frame and checksum are right. `batch` is all of its
    /// bytes.
    ///
    /// `record` is told the offset and timestamp of each, in order, as long as none has a fault.
    ///
    /// # Errors
    /// The first fault.
    #[inline]
    pub fn check<F: FnMut(i64, i64)>(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        record: &mut F,
    ) -> Result<CheckedBatch, BatchFault> {
        let codec = codec_of(header)?;
        if header.magic < 2 {
            return self.check_messages(header, codec, batch, record);
        }
        let payload = batch.get(HEADER_SIZE..).unwrap_or_default();
        let records = u64::try_from(header.count)
            .map_err(|_| RecordError::count("the header counts fewer than zero records"))?;
        if header.is_control() {
            control::check(header, payload)?;
        }
        let mut rules = Rules::new(header);
        // spec: records 1.2. Without records the payload is not looked at.
        if records > 0 {
            match codec {
                Codec::None => walk_slice(payload, records, &mut rules, record)?,
                _ => self.walk_compressed(codec, payload, records, &mut rules, record)?,
            }
            rules.finish(header)?;
        }
        Ok(CheckedBatch { records, base_offset: header.base_offset })
    }

    fn walk_compressed<F: FnMut(i64, i64)>(
        &mut self,
        codec: Codec,
        payload: &[u8],
        records: u64,
        rules: &mut Rules,
        record: &mut F,
    ) -> Result<(), BatchFault> {
        let limit = usize::try_from(self.limit_bytes).unwrap_or(usize::MAX).min(WHOLE_SIZE_MAX);
        match self.decompressor.decompress(codec, 2, payload, limit) {
            Ok(opened) => {
                let fault = match walk_slice(opened, records, rules, record) {
                    Ok(()) => return Ok(()),
                    Err(fault) => fault,
                };
                return Err(self.explain(codec, payload, fault));
            }
            Err(error) if error.kind() == CodecErrorKind::Limit => {}
            Err(error) => return Err(error.into()),
        }
        self.window.resize(WINDOW_SIZE, 0);
        let stream = self.decompressor.stream(codec, 2, payload, self.limit_bytes)?;
        let mut window = Window::new(stream, &mut self.window);
        walk_window(&mut window, records, rules, record)
            .map_err(|fault| window.explain().map_or(fault, BatchFault::from))
            .map_err(|fault| self.explain(codec, payload, fault))
    }

    /// Too few records, and bytes behind what the codec reads: frames laid end to end, which other
    /// readers of that codec open and Kafka's does not. So it is the codec's fault.
    fn explain(&mut self, codec: Codec, payload: &[u8], fault: BatchFault) -> BatchFault {
        if fault.code != Code::RecordCount {
            return fault;
        }
        let Ok(stream) = self.decompressor.stream(codec, 2, payload, self.limit_bytes) else {
            return fault;
        };
        self.window.resize(WINDOW_SIZE, 0);
        let mut window = Window::new(stream, &mut self.window);
        let drained = window.pass(usize::MAX, |_| {});
        match window.unread_size() {
            unread if drained.is_ok() && unread > 0 => BatchFault {
                code: Code::Codec,
                detail: format!(
                    "{codec}: {unread} bytes stand behind what Kafka reads, and {}",
                    fault.detail
                ),
            },
            _ => fault,
        }
    }

    fn check_messages<F: FnMut(i64, i64)>(
        &mut self,
        header: &BatchHeader,
        codec: Codec,
        entry: &[u8],
        record: &mut F,
    ) -> Result<CheckedBatch, BatchFault> {
        let message = messages::outer(header, entry)?;
        if codec == Codec::None {
            record(message.offset, message.timestamp_ms);
            return Ok(CheckedBatch { records: 1, base_offset: message.offset });
        }
        let Some(value) = message.value else {
            return Err(RecordError::structure("a compressed message has no value").into());
        };
        self.window.resize(WINDOW_SIZE, 0);
        // The inner offsets may count from the last one, so the messages are walked twice.
        let mut pass = |see: &mut dyn FnMut(messages::Inner)| -> Result<(), BatchFault> {
            let stream = self.decompressor.stream(codec, header.magic, value, self.limit_bytes)?;
            let mut window = Window::new(stream, &mut self.window);
            messages::walk(&mut window, header, see)
                .map_err(|fault| window.explain().map_or(fault, BatchFault::from))
        };
        let mut set = messages::Set::default();
        pass(&mut |inner| set.take(inner))?;
        let placed = set.place(header)?;
        pass(&mut |inner| {
            let (offset, timestamp) = placed.place(inner);
            record(offset, timestamp);
        })?;
        Ok(CheckedBatch { records: placed.records, base_offset: placed.base_offset })
    }
}

/// The codec that the attributes name.
fn codec_of(header: &BatchHeader) -> Result<Codec, BatchFault> {
    let id = header.codec_id();
    Codec::from_id(id).ok_or_else(|| CodecError::unknown(id).into())
}

/// What must hold from record to record.
struct Rules {
    base_offset: i64,
    base_timestamp: i64,
    /// The timestamp of every record, where the broker gave it.
    append_time: Option<i64>,
    last_offset_delta: i32,
    /// The offset delta of the record before, -1 in front of the first.
    previous: i32,
    max_timestamp: i64,
}

impl Rules {
    fn new(header: &BatchHeader) -> Self {
        Rules {
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time: (header.timestamp_type() == TimestampType::LogAppendTime)
                .then_some(header.max_timestamp),
            last_offset_delta: header.last_offset_delta,
            previous: -1,
            max_timestamp: NO_TIMESTAMP,
        }
    }

    /// The offset and timestamp of a record, if it may follow the one before.
    #[inline]
    fn place(&mut self, deltas: Deltas) -> Result<(i64, i64), RecordError> {
        if deltas.offset <= self.previous || deltas.offset > self.last_offset_delta {
            return Err(self.out_of_range(deltas.offset));
        }
        self.previous = deltas.offset;
        let timestamp =
            self.append_time.unwrap_or_else(|| self.base_timestamp.wrapping_add(deltas.timestamp));
        self.max_timestamp = self.max_timestamp.max(timestamp);
        Ok((self.base_offset.wrapping_add(i64::from(deltas.offset)), timestamp))
    }

    #[cold]
    fn out_of_range(&self, delta: i32) -> RecordError {
        let reason = if delta > self.last_offset_delta {
            "its offset lies behind the last one of the batch"
        } else if delta < 0 {
            "its offset lies before the first one of the batch"
        } else {
            "its offset is not above that of the record before"
        };
        RecordError { code: Code::RecordOffsetRange, reason }
    }

    fn finish(&self, header: &BatchHeader) -> Result<(), BatchFault> {
        if self.append_time.is_some() || self.max_timestamp == header.max_timestamp {
            return Ok(());
        }
        Err(BatchFault {
            code: Code::MaxTimestampMismatch,
            detail: format!(
                "the header says that the largest timestamp is {}, but it is {}",
                header.max_timestamp, self.max_timestamp
            ),
        })
    }
}

const TOO_FEW: RecordError = RecordError {
    code: Code::RecordCount,
    reason: "there are fewer records than the header counts",
};
const TOO_MANY: RecordError = RecordError {
    code: Code::RecordCount,
    reason: "there are more records than the header counts",
};
const TOO_LONG: RecordError =
    RecordError { code: Code::Record, reason: "a record is longer than its batch" };

/// The length of the record at the front of `bytes`, and the bytes that the length itself takes.
#[inline]
fn read_length(bytes: &[u8]) -> Result<(usize, usize), RecordError> {
    let (length, rest) = varint::read_i32(bytes)?;
    let length = usize::try_from(length)
        .map_err(|_| RecordError::structure("a record has a negative length"))?;
    Ok((length, bytes.len() - rest.len()))
}

/// Walks records that are all there.
fn walk_slice<F: FnMut(i64, i64)>(
    payload: &[u8],
    count: u64,
    rules: &mut Rules,
    record: &mut F,
) -> Result<(), BatchFault> {
    let mut rest = payload;
    for number in 0..count {
        if rest.is_empty() {
            return Err(TOO_FEW.into());
        }
        match walk_first(rest, rules) {
            Ok((offset, timestamp, behind)) => {
                record(offset, timestamp);
                rest = behind;
            }
            Err(error) => return Err(BatchFault::from(error).in_record(number)),
        }
    }
    if rest.is_empty() { Ok(()) } else { Err(TOO_MANY.into()) }
}

/// Walks the record at the front; gives its offset, its timestamp and what stands behind it.
#[inline]
fn walk_first<'a>(bytes: &'a [u8], rules: &mut Rules) -> Result<(i64, i64, &'a [u8]), RecordError> {
    let (length, rest) = varint::read_i32(bytes)?;
    let length = usize::try_from(length)
        .map_err(|_| RecordError::structure("a record has a negative length"))?;
    let (mut fields, behind) = rest.split_at_checked(length).ok_or(TOO_LONG)?;
    let (offset, timestamp) = rules.place(walk_record(&mut fields)?)?;
    Ok((offset, timestamp, behind))
}

/// Walks records that come bit by bit.
fn walk_window<F: FnMut(i64, i64)>(
    window: &mut Window<'_, '_>,
    count: u64,
    rules: &mut Rules,
    record: &mut F,
) -> Result<(), BatchFault> {
    for number in 0..count {
        if window.peek(1)?.is_empty() {
            return Err(TOO_FEW.into());
        }
        let place = walk_next(window, rules);
        let (offset, timestamp) =
            place.map_err(|error| BatchFault::from(error).in_record(number))?;
        record(offset, timestamp);
    }
    // This also sees checksums behind the last byte.
    if window.peek(1)?.is_empty() { Ok(()) } else { Err(TOO_MANY.into()) }
}

fn walk_next(window: &mut Window<'_, '_>, rules: &mut Rules) -> Result<(i64, i64), RecordError> {
    let (length, head) = read_length(window.peek(LENGTH_SIZE_MAX)?)?;
    let whole = head.saturating_add(length);
    if whole > window.capacity() {
        window.consume(head);
        return rules.place(walk_record(&mut LargeRecord { window, left: length })?);
    }
    let mut fields = window.peek(whole)?.get(head..whole).ok_or(TOO_LONG)?;
    let deltas = walk_record(&mut fields)?;
    window.consume(whole);
    rules.place(deltas)
}

const LENGTH_SIZE_MAX: usize = 5;
