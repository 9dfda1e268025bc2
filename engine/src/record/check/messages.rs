//! Are the messages of the old formats right, those within a compressed one too?

use super::fault::BatchFault;
use super::window::Window;
use crate::bytes;
use crate::io::checksum;
use crate::problem::Code;
use crate::record::batch::{BatchHeader, LOG_OVERHEAD, MIN_SIZE_FIELD, TimestampType};
use crate::record::legacy::{
    LEGACY_CRC_START, LegacyMessage, compute_legacy_crc, is_exact, min_entry_size, parse_message,
    relative_base,
};
use crate::record::records::RecordError;
use crate::units::NO_TIMESTAMP;

/// What an inner message says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inner {
    /// As stored.
    offset: i64,
    timestamp_ms: i64,
}

/// The message that stands in the log.
pub(super) fn outer<'a>(
    header: &BatchHeader,
    entry: &'a [u8],
) -> Result<LegacyMessage<'a>, BatchFault> {
    let message = exact_message(entry)?;
    debug_assert_eq!(message.offset, header.base_offset, "the header was read from these bytes");
    Ok(message)
}

fn exact_message(entry: &[u8]) -> Result<LegacyMessage<'_>, RecordError> {
    let message = parse_message(entry)?;
    if is_exact(entry, &message) { Ok(message) } else { Err(TOO_LONG) }
}

/// Walks the messages within a compressed one.
// spec: records 2
pub(super) fn walk(
    window: &mut Window<'_, '_>,
    wrapper: &BatchHeader,
    see: &mut dyn FnMut(Inner),
) -> Result<(), BatchFault> {
    let mut number = 0_u64;
    loop {
        let at = |error: RecordError| BatchFault::from(error).in_record(number);
        let head = window.peek(LOG_OVERHEAD)?;
        // A truncated tail ends the walk without complaint.
        let Some(size) = bytes::get_i32(head, 8) else { return Ok(()) };
        if size < MIN_SIZE_FIELD {
            return Err(at(RecordError::structure("its size is below that of any message")));
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(LOG_OVERHEAD);
        let inner = if size <= window.capacity() {
            let Some(entry) = window.peek(size)?.get(..size) else { return Ok(()) };
            let inner = whole_message(entry, wrapper).map_err(at)?;
            window.consume(size);
            inner
        } else {
            let Some(inner) = large_message(window, size, wrapper).map_err(at)? else {
                return Ok(());
            };
            inner
        };
        see(inner);
        number += 1;
    }
}

/// Kafka does not look at the checksum of messages whose timestamps the broker has overruled.
fn is_checksummed(magic: i8, wrapper: &BatchHeader) -> bool {
    magic == 0 || wrapper.timestamp_type() != TimestampType::LogAppendTime
}

const BAD_CRC: RecordError =
    RecordError { code: Code::Record, reason: "its checksum does not match its bytes" };

const TOO_LONG: RecordError =
    RecordError { code: Code::Record, reason: "a message is longer than its fields" };

fn check_header(header: &BatchHeader) -> Result<(), RecordError> {
    if !(0..=1).contains(&header.magic) {
        return Err(RecordError::structure("it has another magic than 0 or 1"));
    }
    if header.codec_id() != 0 {
        return Err(RecordError::structure("it is compressed again"));
    }
    Ok(())
}

fn whole_message(entry: &[u8], wrapper: &BatchHeader) -> Result<Inner, RecordError> {
    let header = BatchHeader::parse_legacy(entry)
        .ok_or(RecordError::structure("a message ends within its fields"))?;
    check_header(&header)?;
    let message = exact_message(entry)?;
    if is_checksummed(header.magic, wrapper) && compute_legacy_crc(entry) != header.crc {
        return Err(BAD_CRC);
    }
    Ok(Inner { offset: message.offset, timestamp_ms: message.timestamp_ms })
}

/// Walks a message that is larger than the window; `None` when the payload ends within it.
fn large_message(
    window: &mut Window<'_, '_>,
    size: usize,
    wrapper: &BatchHeader,
) -> Result<Option<Inner>, RecordError> {
    let head = window.peek(LARGE_HEAD_SIZE)?;
    let Some(header) = BatchHeader::parse_legacy(head) else { return Ok(None) };
    check_header(&header)?;
    let mut crc = checksum::Crc32::new();
    let fields_at = min_entry_size(header.magic) - 2 * SIZE_FIELD;
    crc.update(head.get(LEGACY_CRC_START..fields_at).unwrap_or_default());
    window.consume(fields_at);
    let mut left = size - fields_at;
    for _key_then_value in 0..2 {
        let Some(field) = bytes::get_i32(window.peek(SIZE_FIELD)?, 0) else { return Ok(None) };
        let field = usize::try_from(field).unwrap_or(0).saturating_add(SIZE_FIELD);
        left = left
            .checked_sub(field)
            .ok_or(RecordError::structure("a key or value is longer than the message"))?;
        if window.pass(field, |piece| crc.update(piece))? < field {
            return Ok(None);
        }
    }
    if left != 0 {
        return Err(TOO_LONG);
    }
    if is_checksummed(header.magic, wrapper) && crc.finish() != header.crc {
        return Err(BAD_CRC);
    }
    Ok(Some(Inner { offset: header.base_offset, timestamp_ms: header.max_timestamp }))
}

const SIZE_FIELD: usize = 4;
const LARGE_HEAD_SIZE: usize = 34;

/// All messages within a compressed one, before it is known what their offsets count from.
#[derive(Debug, Default)]
pub(super) struct Set {
    records: u64,
    first: i64,
    last: i64,
    falls: bool,
    max_timestamp: Option<i64>,
}

impl Set {
    pub(super) fn take(&mut self, inner: Inner) {
        if self.records == 0 {
            self.first = inner.offset;
        } else {
            self.falls |= inner.offset <= self.last;
        }
        self.records += 1;
        self.last = inner.offset;
        self.max_timestamp = self.max_timestamp.max(Some(inner.timestamp_ms));
    }

    /// Where the messages stand in the log.
    pub(super) fn place(&self, wrapper: &BatchHeader) -> Result<Placed, BatchFault> {
        if self.records == 0 {
            return Err(RecordError::count("a compressed message holds no messages").into());
        }
        let relative_to = match wrapper.magic {
            0 => 0,
            _ => relative_base(wrapper.base_offset, self.last)?,
        };
        let range =
            |reason| BatchFault::from(RecordError { code: Code::RecordOffsetRange, reason });
        if self.falls {
            return Err(range("the offsets of the inner messages do not rise"));
        }
        if self.last > wrapper.base_offset.wrapping_sub(relative_to) {
            return Err(range("an inner message lies behind the offset of its wrapper"));
        }
        let append_time = (wrapper.timestamp_type() == TimestampType::LogAppendTime)
            .then_some(wrapper.max_timestamp);
        let largest = self.max_timestamp.unwrap_or(NO_TIMESTAMP);
        if wrapper.magic == 1 && append_time.is_none() && largest != wrapper.max_timestamp {
            return Err(BatchFault {
                code: Code::MaxTimestampMismatch,
                detail: format!(
                    "the wrapper says that the largest timestamp is {}, but it is {largest}",
                    wrapper.max_timestamp
                ),
            });
        }
        Ok(Placed {
            records: self.records,
            base_offset: relative_to.wrapping_add(self.first),
            relative_to,
            append_time,
        })
    }
}

/// What the inner messages are to the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) records: u64,
    pub(super) base_offset: i64,
    relative_to: i64,
    append_time: Option<i64>,
}

impl Placed {
    /// The offset and timestamp of a message.
    pub(super) fn place(&self, inner: Inner) -> (i64, i64) {
        (
            self.relative_to.wrapping_add(inner.offset),
            self.append_time.unwrap_or(inner.timestamp_ms),
        )
    }
}
