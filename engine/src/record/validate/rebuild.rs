//! How are records written anew, in another codec or format?

use super::analyse::too_large;
use super::batches::Batches;
use super::error::ValidateError;
use super::messages::Message;
use super::rules::Task;
use super::validated::{Placement, Validated, ValidationStats};
use crate::record::batch::{BatchHeader, HEADER_SIZE};
use crate::record::builder::{BatchBuilder, BatchOptions, LegacyBuilder};
use crate::record::codec::{Codec, Compressor};
use crate::record::legacy::min_entry_size;
use crate::record::records::{Headers, Records};
use crate::units::NO_TIMESTAMP;

/// Where the records come from. They have been validated.
pub(super) enum RecordSource<'a> {
    /// Messages of the old formats.
    Messages(&'a [Message<'a>]),
    /// A batch of magic 2: its header, and its records without compression.
    Batch(BatchHeader, &'a [u8]),
}

/// Timestamp, key, value, headers.
type Parts<'r> = (i64, Option<&'r [u8]>, Option<&'r [u8]>, Headers<'r>);

impl RecordSource<'_> {
    fn for_each(
        &self,
        take: &mut dyn FnMut(Parts<'_>) -> Result<(), ValidateError>,
    ) -> Result<(), ValidateError> {
        match self {
            RecordSource::Messages(messages) => messages.iter().try_for_each(|message| {
                let (key, value) = message.fields()?;
                take((message.timestamp_ms, key, value, Headers::EMPTY))
            }),
            RecordSource::Batch(header, payload) => {
                for record in Records::new(header, payload) {
                    let record = record?;
                    take((record.timestamp_ms, record.key, record.value, record.headers))?;
                }
                Ok(())
            }
        }
    }
}

/// What writes batches, and the memory for it.
#[derive(Default)]
pub(super) struct Writer {
    compressor: Compressor,
    builder: Option<BatchBuilder>,
}

/// What was written.
struct Written {
    count: u64,
    /// Without compression.
    size: u64,
    max_timestamp: i64,
    shallow_offset: i64,
}

impl Writer {
    /// Appends the records to `out`, from the task's first offset on; `opened_bytes` were already
    /// spent to read them.
    ///
    /// # Errors
    ///
    /// What Kafka's builder refuses, and a batch that has become too large; `out` is then as it was.
    pub(super) fn rebuild(
        &mut self,
        source: &RecordSource<'_>,
        task: &Task<'_>,
        opened_bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<Validated, ValidateError> {
        let start = out.len();
        let written = if task.options.target_magic >= 2 {
            self.write_batch(source, task, out)
        } else {
            self.write_messages(source, task, out)
        };
        let result = written.and_then(|written| {
            let (first, batch_count) = check_sizes(out.get(start..).unwrap_or_default(), task)?;
            let last_offset =
                task.first_offset.wrapping_add_unsigned(written.count).wrapping_sub(1);
            Ok(Validated {
                placement: Placement::Rebuilt(start..out.len()),
                first: first.unwrap_or(task.first),
                batch_count,
                first_offset: task.first_offset,
                last_offset,
                max_timestamp_ms: written.max_timestamp,
                shallow_offset_of_max_timestamp: written.shallow_offset,
                log_append_time_ms: task.log_append_time_ms().unwrap_or(NO_TIMESTAMP),
                size_may_have_changed: true,
                stats: ValidationStats {
                    converted_records: written.count,
                    temporary_memory_bytes: opened_bytes + written.size,
                },
            })
        });
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    // spec: records 5.6. Control flag and delete horizon are not taken over.
    fn write_batch(
        &mut self,
        source: &RecordSource<'_>,
        task: &Task<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Written, ValidateError> {
        let options = BatchOptions {
            base_offset: task.first_offset,
            leader_epoch: task.options.leader_epoch,
            compression: task.target,
            log_append_time_ms: task.log_append_time_ms(),
            producer_id: task.first.producer_id,
            producer_epoch: task.first.producer_epoch,
            base_sequence: task.first.base_sequence,
            is_transactional: task.first.is_transactional(),
            ..BatchOptions::default()
        };
        let builder = match &mut self.builder {
            Some(builder) => {
                builder.restart(options)?;
                builder
            }
            none => none.insert(BatchBuilder::new(options)?),
        };
        let mut max_timestamp = NO_TIMESTAMP;
        source.for_each(&mut |(timestamp_ms, key, value, headers)| {
            max_timestamp = max_timestamp.max(timestamp_ms);
            builder.append_at(builder.next_offset(), timestamp_ms, key, value, headers)?;
            Ok(())
        })?;
        builder.write_to(&mut self.compressor, out)?;
        let max_timestamp = task.log_append_time_ms().unwrap_or(max_timestamp);
        let count = u64::try_from(builder.count()).unwrap_or_default();
        let size = u64::try_from(builder.size_bytes()).unwrap_or(u64::MAX);
        let shallow_offset = shallow(max_timestamp, builder.next_offset().wrapping_sub(1));
        Ok(Written { count, size, max_timestamp, shallow_offset })
    }

    fn write_messages(
        &mut self,
        source: &RecordSource<'_>,
        task: &Task<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Written, ValidateError> {
        let magic = task.options.target_magic;
        let time = task.log_append_time_ms().filter(|_| magic > 0);
        let mut builder = LegacyBuilder::new(magic, task.target, time, task.first_offset)?;
        let is_compressed = task.target.codec() != Codec::None;
        let overhead = min_entry_size(magic);
        let mut written = Written {
            count: 0,
            size: batch_overhead(magic, task.target.codec()),
            max_timestamp: NO_TIMESTAMP,
            shallow_offset: -1,
        };
        let mut offset = task.first_offset;
        source.for_each(&mut |(timestamp_ms, key, value, headers)| {
            check_for_messages(magic, timestamp_ms, &headers)?;
            builder.append(offset, timestamp_ms, key, value)?;
            let fields = key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len);
            written.size += size(overhead + fields);
            if magic > 0 && timestamp_ms > written.max_timestamp {
                written.max_timestamp = timestamp_ms;
                written.shallow_offset = offset;
            }
            written.count += 1;
            offset = offset.wrapping_add(1);
            Ok(())
        })?;
        builder.write_to(&mut self.compressor, out)?;
        // Kafka quirk: what its builder tells has this time for magic 0 too, which cannot say it.
        if let Some(time) = task.log_append_time_ms() {
            (written.max_timestamp, written.shallow_offset) = (time, task.first_offset);
        }
        if is_compressed {
            written.shallow_offset = shallow(written.max_timestamp, offset.wrapping_sub(1));
        }
        Ok(written)
    }
}

/// What Kafka's builder refuses in the old formats.
fn check_for_messages(
    magic: i8,
    timestamp_ms: i64,
    headers: &Headers<'_>,
) -> Result<(), ValidateError> {
    if headers.count() > 0 {
        let message = format!("Magic v{magic} does not support record headers");
        return Err(ValidateError::argument(message));
    }
    if timestamp_ms < NO_TIMESTAMP {
        return Err(ValidateError::argument(format!("Invalid negative timestamp {timestamp_ms}")));
    }
    Ok(())
}

/// The header of the first batch, and how many there are. None may be above the limit.
// spec: records 5.7
fn check_sizes(
    written: &[u8],
    task: &Task<'_>,
) -> Result<(Option<BatchHeader>, u32), ValidateError> {
    let size_max = task.options.max_message_bytes;
    let (mut first, mut count) = (None, 0_u32);
    for batch in Batches::new(written) {
        let header = batch?.header;
        if header.size_bytes > size_max {
            return Err(too_large(header.size_bytes, Some(size_max)));
        }
        first = first.or(Some(header));
        count = count.saturating_add(1);
    }
    Ok((first, count))
}

/// The last offset of a batch, as that of its largest timestamp.
pub(super) fn shallow(max_timestamp: i64, last_offset: i64) -> i64 {
    if max_timestamp == NO_TIMESTAMP { -1 } else { last_offset }
}

/// What a batch takes beside its records, in this format.
pub(super) fn batch_overhead(magic: i8, codec: Codec) -> u64 {
    match (magic, codec) {
        (2.., _) => size(HEADER_SIZE),
        (_, Codec::None) => 0,
        _ => size(min_entry_size(magic)),
    }
}

fn size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
