//! What do messages of the old formats say to a validator?

use super::batches::{BatchView, Batches};
use super::counters::ValidationCounters;
use super::error::{Rejection, Rejections, ValidateError};
use super::rules::{RecordRules, Task, check_batch};
use super::walk::size_of;
use crate::bytes;
use crate::record::batch::{BatchHeader, LOG_OVERHEAD, MIN_SIZE_FIELD, TimestampType};
use crate::record::codec::{Codec, Decompressor};
use crate::record::legacy::{compute_legacy_crc, relative_base};
use crate::units::NO_TIMESTAMP;

/// One message, on its own or within a wrapper.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    /// All bytes of its entry.
    entry: &'a [u8],
    /// Its offset in the log of the producer.
    pub(super) offset: i64,
    /// -1 for none.
    pub(super) timestamp_ms: i64,
    magic: i8,
    is_compressed: bool,
}

impl<'a> Message<'a> {
    /// Reads an entry that has the size of its magic's smallest at least, or is refused by its
    /// checksum or magic later.
    fn read(entry: &'a [u8]) -> Self {
        let magic = bytes::get_i8(entry, 16).unwrap_or(-1);
        let timestamp_ms =
            if magic == 1 { bytes::get_i64(entry, 18) } else { None }.unwrap_or(NO_TIMESTAMP);
        Message {
            entry,
            offset: bytes::get_i64(entry, 0).unwrap_or_default(),
            timestamp_ms,
            magic,
            is_compressed: bytes::get_u8(entry, 17).is_some_and(|attributes| attributes & 7 != 0),
        }
    }

    /// Where the key begins, with its size.
    fn fields_at(&self) -> usize {
        if self.magic == 0 { 18 } else { 26 }
    }

    /// Key and value; what stands behind them nobody reads.
    ///
    /// # Errors
    ///
    /// They reach beyond the entry: `CorruptRecord`.
    pub(super) fn fields(&self) -> Result<Fields<'a>, ValidateError> {
        let fields = self.entry.get(self.fields_at()..).and_then(read_fields);
        fields.ok_or_else(|| ValidateError::corrupt(BEYOND_ENTRY))
    }

    /// Holds the message against the rules of its batch, in Kafka's order.
    ///
    /// # Errors
    ///
    /// What Kafka throws at once, whatever else is wrong with the batch.
    // spec: records 5.4
    fn judge(
        &self,
        batch: &BatchHeader,
        rules: &RecordRules,
        counters: &mut ValidationCounters,
    ) -> Result<Option<Rejection>, ValidateError> {
        let is_inner = batch.codec_id() != 0;
        if is_inner && self.is_compressed {
            return Err(ValidateError::invalid("Inner messages must not be compressed"));
        }
        if self.magic != batch.magic {
            return Ok(Some(Rejection::Magic { record: self.magic, batch: batch.magic }));
        }
        let stored = bytes::get_u32(self.entry, 12).unwrap_or_default();
        if is_inner && compute_legacy_crc(self.entry) != stored {
            counters.invalid_checksum += 1;
            return Err(ValidateError::corrupt(format!(
                "Record is corrupt (stored crc = {stored})"
            )));
        }
        // Whether the key lies within the entry is seen by who writes it anew.
        let key_size = bytes::get_i32(self.entry, self.fields_at())
            .ok_or_else(|| ValidateError::corrupt(BEYOND_ENTRY))?;
        Ok(rules.judge(self.timestamp_ms, self.offset, key_size >= 0))
    }
}

pub(super) type Fields<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

const BEYOND_ENTRY: &str = "Record is corrupt (its fields reach beyond its end)";

fn read_fields(bytes: &[u8]) -> Option<Fields<'_>> {
    let (key, rest) = read_field(bytes)?;
    let (value, _) = read_field(rest)?;
    Some((key, value))
}

fn read_field(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    match usize::try_from(i32::from_be_bytes(*size)) {
        Err(_) => Some((None, rest)),
        Ok(size) => rest.split_at_checked(size).map(|(field, rest)| (Some(field), rest)),
    }
}

/// All messages of a request.
pub(super) struct Messages<'a> {
    pub(super) all: Vec<Message<'a>>,
    /// Bytes of their entries.
    pub(super) opened_bytes: u64,
}

/// Reads the messages of all batches, when each keeps every rule.
pub(super) fn read_all<'a>(
    records: &'a [u8],
    task: &Task<'_>,
    decompressor: &'a mut Decompressor,
    counters: &mut ValidationCounters,
) -> Result<Messages<'a>, ValidateError> {
    let mut all = Vec::new();
    let mut wrapper = None;
    for batch in Batches::new(records) {
        let BatchView { header, bytes } = batch?;
        check_batch(&header, task, counters)?;
        // A wrapper comes alone.
        if task.source != Codec::None {
            wrapper = Some((header, bytes));
            break;
        }
        let message = Message::read(bytes);
        judge_all(&[message], &header, task, counters)?;
        all.push(message);
    }
    if let Some((header, entry)) = wrapper {
        let size_max = task.options.opened_bytes_max;
        let payload = open(&header, entry, task.source, decompressor, size_max)?;
        unwrap(&header, payload, &mut all)?;
        judge_all(&all, &header, task, counters)?;
    }
    let opened_bytes = all.iter().map(|message| size_of(message.entry)).sum();
    Ok(Messages { all, opened_bytes })
}

/// Holds the messages of one batch against the rules.
fn judge_all(
    messages: &[Message<'_>],
    batch: &BatchHeader,
    task: &Task<'_>,
    counters: &mut ValidationCounters,
) -> Result<(), ValidateError> {
    let rules = RecordRules::new(task, batch);
    let mut rejections = Rejections::default();
    for (index, message) in (0_u32..).zip(messages) {
        match message.judge(batch, &rules, counters) {
            Ok(None) => {}
            Ok(Some(rejection)) => rejections.push(index, rejection, task.rejected_max),
            Err(error) => {
                rejections.count_into(counters);
                return Err(error);
            }
        }
    }
    rejections.into_result(counters)
}

/// What a wrapper holds.
fn open<'a>(
    wrapper: &BatchHeader,
    entry: &'a [u8],
    codec: Codec,
    decompressor: &'a mut Decompressor,
    opened_bytes_max: usize,
) -> Result<&'a [u8], ValidateError> {
    if codec == Codec::Zstd {
        return Err(ValidateError::invalid(
            "Invalid wrapper compressionType found in legacy deep record iterator",
        ));
    }
    let (_, value) = Message::read(entry).fields()?;
    let value = value.ok_or_else(|| {
        ValidateError::invalid("Found invalid compressed record set with null value")
    })?;
    Ok(decompressor.decompress(codec, wrapper.magic, value, opened_bytes_max)?)
}

// spec: records 2
fn unwrap<'a>(
    wrapper: &BatchHeader,
    payload: &'a [u8],
    messages: &mut Vec<Message<'a>>,
) -> Result<(), ValidateError> {
    let mut rest = payload;
    while let Some(size_field) = bytes::get_i32(rest, LOG_OVERHEAD - 4) {
        if size_field < MIN_SIZE_FIELD {
            return Err(ValidateError::corrupt(
                "Record size is less than the minimum record overhead (14)",
            ));
        }
        let size = usize::try_from(size_field).unwrap_or(usize::MAX).saturating_add(LOG_OVERHEAD);
        // A truncated tail ends the messages without complaint.
        let Some((entry, behind)) = rest.split_at_checked(size) else { break };
        rest = behind;
        messages.push(Message::read(entry));
    }
    let Some(last) = messages.last() else {
        return Err(ValidateError::invalid(
            "Found invalid compressed record set with no inner records",
        ));
    };
    if wrapper.magic == 1 {
        let base = relative_base(wrapper.base_offset, last.offset)?;
        let append_time = (wrapper.timestamp_type() == TimestampType::LogAppendTime)
            .then_some(wrapper.max_timestamp);
        for message in messages {
            message.offset = base.wrapping_add(message.offset);
            if message.magic == 1 {
                message.timestamp_ms = append_time.unwrap_or(message.timestamp_ms);
            }
        }
    }
    Ok(())
}
