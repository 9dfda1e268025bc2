//! The two ways of a batch into the log: as it is, or written anew.

use super::analyse::unknown_codec;
use super::batches::parse_header;
use super::counters::ValidationCounters;
use super::error::ValidateError;
use super::messages;
use super::options::ValidateOptions;
use super::place::{Walked, assign_batch, assign_entries};
use super::rebuild::{RecordSource, Writer};
use super::rules::{Survey, Task, check_batch};
use super::tally::{Lister, Tally};
use super::validated::{Placement, Validated, ValidationStats};
use super::walk::{Opener, size_of, walk_slice};
use crate::record::batch::{BatchHeader, HEADER_SIZE};
use crate::record::codec::Codec;
use crate::units::NO_TIMESTAMP;

/// Holds a producer's batches against the rules of a topic and gives them their offsets.
///
/// It keeps the memory and the contexts that codecs need: one per thread that appends, and warm from
/// the second batch on. A batch that stays as it is allocates nothing.
///
/// ```
/// use siltstone::record::BatchHeader;
/// use siltstone::record::builder::{BatchBuilder, BatchOptions};
/// use siltstone::record::codec::{Codec, Compressor};
/// use siltstone::record::validate::{
///     AnalyseOptions, AppendOrigin, ValidateOptions, Validator, analyse,
/// };
///
/// let mut builder = BatchBuilder::new(BatchOptions::default())?;
/// builder.append(1_700_000_000_000, None, Some(b"value"))?;
/// let mut records = Vec::new();
/// builder.write_to(&mut Compressor::new(), &mut records)?;
///
/// let options = ValidateOptions { leader_epoch: 7, ..ValidateOptions::default() };
/// let leader = AnalyseOptions::leader(AppendOrigin::Client, 7, options.max_message_bytes);
/// let analysis = analyse(&records, &leader)?;
/// records.truncate(analysis.valid_bytes);
/// let (mut validator, mut rebuilt) = (Validator::new(), Vec::new());
/// let validated = validator.validate_and_assign(
///     &mut records,
///     &options,
///     42,
///     1_700_000_000_123,
///     &mut rebuilt,
/// )?;
/// let written = validated.bytes(&records, &rebuilt);
/// assert_eq!(BatchHeader::parse(written).unwrap().base_offset, 42);
/// # Ok::<(), siltstone::Error>(())
/// ```
#[derive(Default)]
pub struct Validator {
    opener: Opener,
    writer: Writer,
    counters: ValidationCounters,
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl Validator {
    /// A validator without memory yet.
    #[must_use]
    pub fn new() -> Self {
        Validator::default()
    }

    /// What was refused since it was made.
    #[must_use]
    pub fn counters(&self) -> &ValidationCounters {
        &self.counters
    }

    /// Gives back memory of the decompressor above `size_bytes`, for instance after a batch far
    /// above the usual.
    pub fn shrink_to(&mut self, size_bytes: usize) {
        self.opener.decompressor.shrink_to(size_bytes);
    }

    /// Validates the batches of `records` and gives their records the offsets from `first_offset`
    /// on.
    ///
    /// `records` is what [`analyse`](super::analyse()) found good, without what is behind it: frames
    /// and checksums are not looked at again. Offsets, leader epoch and, where they change,
    /// timestamps are written into `records`; what must be written anew is appended to `rebuilt`
    /// instead. `now_ms` is the time of the append.
    ///
    /// # Errors
    ///
    /// What [`ValidateErrorKind`](super::ValidateErrorKind) lists, as Kafka's `LogValidator` throws
    /// it. `records` and `rebuilt` are then as they were.
    // spec: records 5
    pub fn validate_and_assign(
        &mut self,
        records: &mut [u8],
        options: &ValidateOptions,
        first_offset: i64,
        now_ms: i64,
        rebuilt: &mut Vec<u8>,
    ) -> Result<Validated, ValidateError> {
        let survey = Survey::of(records, options.target_magic)?;
        let task = Task {
            options,
            first: survey.first,
            source: survey.source,
            target: options.compression.target(survey.source),
            batch_count: survey.batch_count,
            first_offset,
            now_ms,
            rejected_max: records.len(),
        };
        if task.source != Codec::None || task.target.codec() != Codec::None {
            return self.validate_compressed(records, &task, rebuilt);
        }
        if survey.has_other_magic {
            return self.convert(records, &task, rebuilt);
        }
        task.check_single()?;
        if task.first.magic < 2 {
            return self.assign_messages(records, &task);
        }
        // Kafka quirk: uncompressed records may have any offsets, and keep what lies between them.
        match self.assign_in_place(records, &task, false)? {
            Some(validated) => Ok(validated),
            None => self.rebuild_batch(records, &task, rebuilt),
        }
    }

    // spec: records 5.6
    fn validate_compressed(
        &mut self,
        records: &mut [u8],
        task: &Task<'_>,
        rebuilt: &mut Vec<u8>,
    ) -> Result<Validated, ValidateError> {
        let target_magic = task.options.target_magic;
        let mut in_place = task.source == task.target.codec()
            && task.first.magic == target_magic
            && target_magic > 0;
        // Control records are never compressed by the log.
        in_place |= task.source == Codec::None && task.first.is_control();
        task.check_single()?;
        if task.first.magic < 2 {
            return self.validate_messages(records, task, in_place, rebuilt);
        }
        if in_place && let Some(validated) = self.assign_in_place(records, task, true)? {
            return Ok(validated);
        }
        self.rebuild_batch(records, task, rebuilt)
    }

    /// Uncompressed records of another format than the target's.
    fn convert(
        &mut self,
        records: &mut [u8],
        task: &Task<'_>,
        rebuilt: &mut Vec<u8>,
    ) -> Result<Validated, ValidateError> {
        task.check_single()?;
        // Kafka quirk: here its builder refuses before its validator does.
        if task.options.target_magic < 2 && task.first.is_transactional() {
            return Err(ValidateError::argument(format!(
                "Transactional records are not supported for magic {}",
                task.options.target_magic
            )));
        }
        if task.first.magic < 2 {
            return self.validate_messages(records, task, false, rebuilt);
        }
        self.rebuild_batch(records, task, rebuilt)
    }

    /// Walks the records of the one batch of magic 2, and writes into it what the log gives it.
    /// `None`, and nothing written, when they do not stand in the order that `needs_order` asks for.
    fn assign_in_place(
        &mut self,
        records: &mut [u8],
        task: &Task<'_>,
        needs_order: bool,
    ) -> Result<Option<Validated>, ValidateError> {
        let header = &task.first;
        check_batch(header, task, &mut self.counters)?;
        let codec = codec_of(header)?;
        let payload = payload_of(records, header);
        let count = header.count;
        let tally = match self.opener.walk(codec, payload, count, Tally::new(task)) {
            Ok((tally, opened_bytes)) if tally.is_accepted(task) => Ok((tally, opened_bytes)),
            // Something is wrong, or may be.
            walked => {
                let mut lister = Lister::new(task);
                let listed = self.opener.walk(codec, payload, count, &mut lister).map(drop);
                lister.finish(listed, codec, &mut self.counters)?;
                walked.map_err(|fault| fault.into_error(codec))
            }
        };
        let (tally, opened_bytes) = tally?;
        if needs_order && !tally.is_consecutive() {
            return Ok(None);
        }
        let count = u64::try_from(header.count).unwrap_or_default();
        let walked = Walked { count, max_timestamp: tally.max_timestamp(task), opened_bytes };
        Ok(Some(assign_batch(records, task, walked)))
    }

    /// Writes the one batch of magic 2 anew.
    fn rebuild_batch(
        &mut self,
        records: &[u8],
        task: &Task<'_>,
        rebuilt: &mut Vec<u8>,
    ) -> Result<Validated, ValidateError> {
        let header = &task.first;
        check_batch(header, task, &mut self.counters)?;
        let codec = codec_of(header)?;
        let payload = payload_of(records, header);
        let size_max = task.options.opened_bytes_max;
        let opened = match codec {
            Codec::None => payload,
            _ if header.count == 0 => &[],
            _ => match self.opener.decompressor.decompress(codec, 2, payload, size_max) {
                Ok(opened) => opened,
                Err(error) => {
                    return Err(self.opener.explain(codec, payload, header.count, error));
                }
            },
        };
        let tally = walk_slice(opened, header.count, Tally::new(task));
        if !tally.is_ok_and(|tally| tally.is_accepted(task)) {
            let mut lister = Lister::new(task);
            let listed = walk_slice(opened, header.count, &mut lister).map(drop);
            lister.finish(listed, codec, &mut self.counters)?;
        }
        let source = RecordSource::Batch(*header, opened);
        self.writer.rebuild(&source, task, task.memory_for(size_of(opened)), rebuilt)
    }

    /// Uncompressed messages of the target's own format.
    #[cold]
    fn assign_messages(
        &mut self,
        records: &mut [u8],
        task: &Task<'_>,
    ) -> Result<Validated, ValidateError> {
        let decompressor = &mut self.opener.decompressor;
        let messages = messages::read_all(records, task, decompressor, &mut self.counters)?;
        let time = task.log_append_time_ms();
        let mut max = (NO_TIMESTAMP, -1);
        let mut offset = task.first_offset;
        for message in &messages.all {
            let timestamp_ms = time.unwrap_or(message.timestamp_ms);
            if task.first.magic > 0 && timestamp_ms > max.0 {
                max = (timestamp_ms, offset);
            }
            offset = offset.wrapping_add(1);
        }
        // Only now, so that a refused request is as it was.
        let size = assign_entries(records, task);
        Ok(Validated {
            placement: Placement::InPlace(size),
            first: parse_header(records).unwrap_or(task.first),
            batch_count: task.batch_count,
            first_offset: task.first_offset,
            last_offset: offset.wrapping_sub(1),
            max_timestamp_ms: max.0,
            shallow_offset_of_max_timestamp: max.1,
            log_append_time_ms: time.unwrap_or(NO_TIMESTAMP),
            size_may_have_changed: false,
            stats: ValidationStats::default(),
        })
    }

    /// Messages that are compressed, or are to be, or are to get another format.
    #[cold]
    fn validate_messages(
        &mut self,
        records: &mut [u8],
        task: &Task<'_>,
        in_place: bool,
        rebuilt: &mut Vec<u8>,
    ) -> Result<Validated, ValidateError> {
        let decompressor = &mut self.opener.decompressor;
        let messages = messages::read_all(records, task, decompressor, &mut self.counters)?;
        let all = &messages.all;
        // Some old clients number the messages in a wrapper otherwise; they are numbered anew.
        if in_place && (0_i64..).zip(all).all(|(expected, message)| message.offset == expected) {
            let walked = Walked {
                count: u64::try_from(all.len()).unwrap_or(u64::MAX),
                max_timestamp: all.iter().map(|m| m.timestamp_ms).fold(NO_TIMESTAMP, i64::max),
                opened_bytes: messages.opened_bytes,
            };
            return Ok(assign_batch(records, task, walked));
        }
        let memory = task.memory_for(messages.opened_bytes);
        self.writer.rebuild(&RecordSource::Messages(all), task, memory, rebuilt)
    }
}

fn codec_of(header: &BatchHeader) -> Result<Codec, ValidateError> {
    let id = header.codec_id();
    Codec::from_id(id).ok_or_else(|| unknown_codec(id))
}

/// The records section of the batch at the front.
fn payload_of<'a>(records: &'a [u8], header: &BatchHeader) -> &'a [u8] {
    let end = usize::try_from(header.size_bytes).unwrap_or(usize::MAX);
    records.get(HEADER_SIZE..end).unwrap_or_default()
}
