//! How does a batch lose some of its records?

use super::rules::{BatchVerdict, FilterRules, Retention};
use crate::error::{Error, Kind, Result};
use crate::problem::Code;
use crate::record::batch::{BatchHeader, HEADER_SIZE, TimestampType};
use crate::record::builder::{BatchBuilder, BatchOptions, write_empty_batch};
use crate::record::check::BatchFault;
use crate::record::codec::{Codec, CodecError, Compression, Compressor, Decompressor};
use crate::record::legacy::{LegacyMessage, parse_message, unwrap};
use crate::record::reader::record_of;
use crate::record::records::{Record, RecordError, Records};
use crate::units::NO_TIMESTAMP;

/// Records that rules are shown at once.
const RECORDS_AHEAD: usize = 32;

/// What went through a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterTotals {
    /// Records that were looked at.
    pub records_read: u64,
    /// Bytes of the batches that went in.
    pub bytes_read: u64,
    /// Records that stayed.
    pub records_retained: u64,
    /// Bytes of the batches that came out.
    pub bytes_retained: u64,
    /// The largest offset that stayed, -1 for none: of a batch with all its records or none its
    /// last offset, else that of the last record that stayed.
    pub max_offset: i64,
    /// The largest timestamp of the batches that came out, -1 for none.
    pub max_timestamp_ms: i64,
    /// The last offset of the batch that has it, -1 for none.
    pub shallow_offset_of_max_timestamp: i64,
}

impl Default for FilterTotals {
    /// Nothing went through.
    fn default() -> Self {
        FilterTotals {
            records_read: 0,
            bytes_read: 0,
            records_retained: 0,
            bytes_retained: 0,
            max_offset: -1,
            max_timestamp_ms: NO_TIMESTAMP,
            shallow_offset_of_max_timestamp: -1,
        }
    }
}

impl FilterTotals {
    fn retain(&mut self, batch: Retained) {
        self.records_retained += batch.records;
        self.bytes_retained += batch.size_bytes;
        self.max_offset = self.max_offset.max(batch.max_offset);
        if batch.max_timestamp_ms > self.max_timestamp_ms {
            self.max_timestamp_ms = batch.max_timestamp_ms;
            self.shallow_offset_of_max_timestamp = batch.last_offset;
        }
    }
}

/// A batch that came out.
struct Retained {
    records: u64,
    size_bytes: u64,
    max_offset: i64,
    last_offset: i64,
    max_timestamp_ms: i64,
}

/// What the rules said of the records of a batch.
#[derive(Default)]
struct Tally {
    /// One for each record.
    keeps: Vec<bool>,
    kept: usize,
    first_offset: Option<i64>,
    max_offset: i64,
    has_tombstone: bool,
}

impl Tally {
    fn clear(&mut self) {
        self.keeps.clear();
        self.kept = 0;
        self.first_offset = None;
        self.max_offset = -1;
        self.has_tombstone = false;
    }

    fn take(&mut self, record: &Record<'_>, keeps: bool) {
        self.keeps.push(keeps);
        if keeps {
            self.kept += 1;
            self.first_offset.get_or_insert(record.offset);
            self.max_offset = self.max_offset.max(record.offset);
            self.has_tombstone |= record.value.is_none();
        }
    }
}

/// Filters batches, one after another, with memory and codec contexts that it keeps.
pub struct BatchFilter {
    now_ms: i64,
    delete_retention_ms: i64,
    opened_bytes_max: usize,
    decompressor: Decompressor,
    compressor: Compressor,
    builder: Option<BatchBuilder>,
    tally: Tally,
}

impl std::fmt::Debug for BatchFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchFilter")
            .field("now_ms", &self.now_ms)
            .field("delete_retention_ms", &self.delete_retention_ms)
            .field("opened_bytes_max", &self.opened_bytes_max)
            .finish_non_exhaustive()
    }
}

impl BatchFilter {
    /// A filter that opens no batch to more than `opened_bytes_max`, which bounds its memory. The
    /// clock is at 0, as is `delete.retention.ms`.
    #[must_use]
    pub fn new(opened_bytes_max: usize) -> Self {
        BatchFilter {
            now_ms: 0,
            delete_retention_ms: 0,
            opened_bytes_max,
            decompressor: Decompressor::new(),
            compressor: Compressor::new(),
            builder: None,
            tally: Tally::default(),
        }
    }

    /// Sets the clock and `delete.retention.ms`: what is to go later gets their sum as its horizon.
    pub fn set_time(&mut self, now_ms: i64, delete_retention_ms: i64) {
        self.now_ms = now_ms;
        self.delete_retention_ms = delete_retention_ms;
    }

    /// Gives back what the kept memory has above `size_bytes`.
    pub fn shrink_to(&mut self, size_bytes: usize) {
        self.decompressor.shrink_to(size_bytes);
        self.tally.clear();
        self.tally.keeps.shrink_to(size_bytes);
        self.builder = None;
    }

    /// Appends to `out` what stays of a batch. All of its bytes are given; its frame and checksum
    /// are right.
    ///
    /// # Errors
    /// `Corrupt` for records that cannot be read, `Unsupported` for a codec that does not exist,
    /// `Limit` for a batch that opens to more than is allowed, `InvalidArgument` for what Kafka
    /// refuses to write; those of the rules. `out` is then as it was, and the totals say that the
    /// batch was read.
    pub fn filter<R: FilterRules + ?Sized>(
        &mut self,
        header: &BatchHeader,
        batch: &[u8],
        rules: &mut R,
        out: &mut Vec<u8>,
        totals: &mut FilterTotals,
    ) -> Result<()> {
        // spec: records 7
        let verdict = rules.judge_batch(header, batch)?;
        totals.bytes_read += u64::from(header.size_bytes);
        if verdict.retention == Retention::Delete {
            return Ok(());
        }
        let codec = Codec::from_id(header.codec_id()).ok_or_else(|| {
            Error::from(CodecError::unknown(header.codec_id())).at_offset(header.base_offset)
        })?;
        let work = Work { header, batch, codec, verdict };
        let start = out.len();
        let outcome = if header.magic < 2 {
            self.filter_messages(&work, rules, out, totals)
        } else {
            self.filter_records(&work, rules, out, totals)
        };
        match outcome {
            Ok(retained) => {
                if let Some(retained) = retained {
                    totals.retain(retained);
                }
                Ok(())
            }
            Err(error) => {
                out.truncate(start);
                Err(error.at_offset(header.base_offset))
            }
        }
    }

    fn filter_records<R: FilterRules + ?Sized>(
        &mut self,
        work: &Work<'_>,
        rules: &mut R,
        out: &mut Vec<u8>,
        totals: &mut FilterTotals,
    ) -> Result<Option<Retained>> {
        let header = work.header;
        let stored = work.batch.get(HEADER_SIZE..).unwrap_or_default();
        let payload = match work.codec {
            // spec: records 1.2. Without records the payload is not looked at.
            _ if header.count == 0 => &[],
            Codec::None => stored,
            codec => self.decompressor.decompress(codec, 2, stored, self.opened_bytes_max)?,
        };
        self.tally.clear();
        let mut records = Records::new(header, payload);
        let mut ahead = [Record::EMPTY; RECORDS_AHEAD];
        loop {
            let mut count = 0;
            for (slot, record) in ahead.iter_mut().zip(&mut records) {
                *slot = record.map_err(broken)?;
                count += 1;
            }
            let Some(found @ [_, ..]) = ahead.get(..count) else { break };
            let tally = &mut self.tally;
            rules.keep_records(header, found, &mut |record, keeps| tally.take(record, keeps));
        }
        totals.records_read += count(self.tally.keeps.len());
        let horizon = Horizon::of(work, &self.tally, self.now_ms, self.delete_retention_ms);
        if self.tally.kept == 0 {
            return empty(work, out);
        }
        if self.tally.kept == self.tally.keeps.len() && !horizon.is_new {
            out.extend_from_slice(work.batch);
            return Ok(Some(Retained {
                records: count(self.tally.kept),
                size_bytes: u64::from(header.size_bytes),
                max_offset: header.last_offset(),
                last_offset: header.last_offset(),
                max_timestamp_ms: header.max_timestamp,
            }));
        }
        let builder = begin(&mut self.builder, options(work, horizon.at_ms, header.base_offset))?;
        for (record, keeps) in Records::new(header, payload).zip(&self.tally.keeps) {
            if *keeps {
                builder.append_record(&record.map_err(broken)?)?;
            }
        }
        write(builder, &mut self.compressor, &self.tally, out).map(Some)
    }

    /// The old formats always become magic 2.
    fn filter_messages<R: FilterRules + ?Sized>(
        &mut self,
        work: &Work<'_>,
        rules: &mut R,
        out: &mut Vec<u8>,
        totals: &mut FilterTotals,
    ) -> Result<Option<Retained>> {
        let header = work.header;
        let message = parse_message(work.batch).map_err(broken)?;
        let messages: Vec<LegacyMessage<'_>> = if work.codec == Codec::None {
            vec![message]
        } else {
            let value = message.value.ok_or_else(|| {
                broken(RecordError::structure("a compressed message has no value"))
            })?;
            let limit = self.opened_bytes_max;
            let opened = self.decompressor.decompress(work.codec, header.magic, value, limit)?;
            unwrap(header, opened).map_err(broken)?
        };
        self.tally.clear();
        for message in &messages {
            let record = record_of(message);
            self.tally.take(&record, rules.keeps_record(header, &record));
        }
        totals.records_read += count(messages.len());
        let Some(first_offset) = self.tally.first_offset else { return empty(work, out) };
        let builder = begin(&mut self.builder, options(work, None, first_offset))?;
        for (message, keeps) in messages.iter().zip(&self.tally.keeps) {
            if *keeps {
                builder.append_record(&record_of(message))?;
            }
        }
        write(builder, &mut self.compressor, &self.tally, out).map(Some)
    }
}

/// A batch that is filtered.
struct Work<'a> {
    header: &'a BatchHeader,
    batch: &'a [u8],
    codec: Codec,
    verdict: BatchVerdict,
}

/// When tombstones and markers of a batch may go.
struct Horizon {
    is_new: bool,
    at_ms: Option<i64>,
}

impl Horizon {
    fn of(work: &Work<'_>, tally: &Tally, now_ms: i64, delete_retention_ms: i64) -> Self {
        let old = work.header.delete_horizon_ms();
        let goes_later = tally.has_tombstone || work.verdict.is_marker_of_empty_txn;
        let is_new = goes_later && old.is_none();
        // Kafka quirk: the sum wraps, and a negative horizon is not written.
        let at_ms = if is_new { Some(now_ms.wrapping_add(delete_retention_ms)) } else { old };
        Horizon { is_new, at_ms: at_ms.filter(|horizon| *horizon >= 0) }
    }
}

/// What the header of a batch that is written anew says.
fn options(work: &Work<'_>, delete_horizon_ms: Option<i64>, base_offset: i64) -> BatchOptions {
    let header = work.header;
    BatchOptions {
        base_offset,
        leader_epoch: header.leader_epoch,
        compression: Compression::new(work.codec),
        log_append_time_ms: (header.timestamp_type() == TimestampType::LogAppendTime)
            .then_some(header.max_timestamp),
        producer_id: header.producer_id,
        producer_epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
        is_transactional: header.is_transactional(),
        is_control: header.is_control(),
        delete_horizon_ms,
        // With it the last sequence stays, too.
        last_offset: (header.magic >= 2).then(|| header.last_offset()),
    }
}

/// What stays of a batch without records.
fn empty(work: &Work<'_>, out: &mut Vec<u8>) -> Result<Option<Retained>> {
    if work.verdict.retention != Retention::RetainEmpty {
        return Ok(None);
    }
    let header = work.header;
    if header.magic < 2 {
        let message = format!("a batch of magic {} cannot be kept without records", header.magic);
        return Err(Error::new(Kind::InvalidArgument, message));
    }
    let options = options(work, None, header.base_offset);
    write_empty_batch(&options, header.last_offset(), header.max_timestamp, out)?;
    Ok(Some(Retained {
        records: 0,
        size_bytes: count(HEADER_SIZE),
        max_offset: header.last_offset(),
        last_offset: header.last_offset(),
        max_timestamp_ms: header.max_timestamp,
    }))
}

/// Begins a batch in kept memory.
fn begin(kept: &mut Option<BatchBuilder>, options: BatchOptions) -> Result<&mut BatchBuilder> {
    Ok(match kept {
        Some(builder) => {
            builder.restart(options)?;
            builder
        }
        none => none.insert(BatchBuilder::new(options)?),
    })
}

fn write(
    builder: &BatchBuilder,
    compressor: &mut Compressor,
    tally: &Tally,
    out: &mut Vec<u8>,
) -> Result<Retained> {
    let start = out.len();
    let size_bytes = count(builder.write_to(compressor, out)?);
    let written = out.get(start..).and_then(BatchHeader::parse);
    let (last_offset, max_timestamp_ms) =
        written.map_or((-1, NO_TIMESTAMP), |header| (header.last_offset(), header.max_timestamp));
    Ok(Retained {
        records: count(tally.kept),
        size_bytes,
        max_offset: tally.max_offset,
        last_offset,
        max_timestamp_ms,
    })
}

fn broken(error: RecordError) -> Error {
    fault(BatchFault::from(error))
}

/// A batch that cannot be read, as an error.
pub(crate) fn fault(fault: BatchFault) -> Error {
    match fault.code {
        Code::UnknownCodec => Error::new(Kind::Unsupported, fault.detail),
        _ => Error::corrupt(fault.detail),
    }
}

fn count(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}
