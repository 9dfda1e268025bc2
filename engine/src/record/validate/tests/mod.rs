//! The rules, one test for each row of Kafka's own tests, and what holds for all batches.

#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

mod analyse;
mod hostile;
mod leader;
mod memory;
mod property;
mod setters;

use std::ops::ControlFlow;

use super::*;
use crate::record::BatchReader;
use crate::record::batch::{BatchHeader, compute_crc};
use crate::record::builder::{BatchBuilder, BatchOptions, LegacyBuilder};
use crate::record::codec::{Codec, Compression, Compressor};
use crate::record::legacy::compute_legacy_crc;

/// The time of most tests.
const NOW: i64 = 1_700_000_000_000;

const VALUES: [&[u8]; 3] = [b"hello", b"there", b"beautiful"];

const OLD_CODECS: [Codec; 3] = [Codec::Gzip, Codec::Snappy, Codec::Lz4];

/// A record that was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Read {
    offset: i64,
    timestamp_ms: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// What came of a call.
#[derive(Debug)]
struct Outcome {
    result: Result<Validated, ValidateError>,
    /// The bytes to be written; after an error none.
    bytes: Vec<u8>,
    counters: ValidationCounters,
}

impl Outcome {
    fn validated(&self) -> &Validated {
        self.result.as_ref().expect("accepted")
    }

    fn kind(&self) -> ValidateErrorKind {
        self.result.as_ref().expect_err("refused").kind()
    }

    fn rejected_count(&self) -> usize {
        self.result.as_ref().expect_err("refused").rejected().len()
    }

    fn header(&self) -> BatchHeader {
        header_of(&self.bytes)
    }

    fn offsets(&self) -> Vec<i64> {
        read_all(&self.bytes).iter().map(|record| record.offset).collect()
    }

    fn timestamps(&self) -> Vec<i64> {
        read_all(&self.bytes).iter().map(|record| record.timestamp_ms).collect()
    }
}

/// The limits of Kafka's tests: one second to both sides.
fn options() -> ValidateOptions {
    ValidateOptions {
        timestamp_before_max_ms: 1000,
        timestamp_after_max_ms: 1000,
        ..ValidateOptions::default()
    }
}

fn to_codec(codec: Codec) -> ValidateOptions {
    ValidateOptions { compression: TopicCompression::Fixed(codec.into()), ..options() }
}

fn to_format(magic: i8, codec: Codec) -> ValidateOptions {
    ValidateOptions { target_magic: magic, ..to_codec(codec) }
}

fn log_append_time(options: ValidateOptions) -> ValidateOptions {
    ValidateOptions { timestamp_type: crate::record::TimestampType::LogAppendTime, ..options }
}

/// Validates from offset 0 at [`NOW`].
fn validate(records: &[u8], options: &ValidateOptions) -> Outcome {
    validate_at(records, options, 0, NOW)
}

/// Also checks what holds for every call: an error changes nothing, and what is accepted has right
/// checksums, the header that is told, and its offsets.
fn validate_at(records: &[u8], options: &ValidateOptions, first: i64, now: i64) -> Outcome {
    let mut validator = Validator::new();
    let mut bytes = records.to_vec();
    let mut rebuilt = b"before".to_vec();
    let result = validator.validate_and_assign(&mut bytes, options, first, now, &mut rebuilt);
    assert!(rebuilt.starts_with(b"before"));
    let written = match &result {
        Ok(validated) => {
            let written = validated.bytes(&bytes, &rebuilt).to_vec();
            let batches: Vec<_> =
                Batches::new(&written).map(|batch| batch.expect("a batch")).collect();
            assert_eq!(batches.len(), validated.batch_count as usize);
            assert_eq!(batches.iter().map(|b| b.bytes.len()).sum::<usize>(), written.len());
            for batch in &batches {
                assert_eq!(batch.header.crc, crc_of(batch.bytes));
            }
            assert_eq!(validated.first, batches[0].header);
            assert_eq!(batches.last().map(|b| b.header.last_offset()), Some(validated.last_offset));
            assert_eq!(validated.first_offset, first);
            let is_rebuilt = matches!(validated.placement, Placement::Rebuilt(_));
            assert_eq!(validated.size_may_have_changed, is_rebuilt);
            written
        }
        Err(_) => {
            assert_eq!(bytes, records);
            assert_eq!(rebuilt, b"before");
            Vec::new()
        }
    };
    Outcome { result, bytes: written, counters: *validator.counters() }
}

fn crc_of(batch: &[u8]) -> u32 {
    if batch[16] == 2 { compute_crc(batch) } else { compute_legacy_crc(batch) }
}

fn header_of(batch: &[u8]) -> BatchHeader {
    Batches::new(batch).next().expect("a batch").expect("a good one").header
}

fn read_all(bytes: &[u8]) -> Vec<Read> {
    let mut reader = BatchReader::new(1 << 24);
    let mut read = Vec::new();
    for batch in Batches::new(bytes) {
        let batch = batch.expect("a batch");
        reader
            .read(&batch.header, batch.bytes, &mut |record| {
                read.push(Read {
                    offset: record.offset,
                    timestamp_ms: record.timestamp_ms,
                    key: record.key.map(<[u8]>::to_vec),
                    value: record.value.map(<[u8]>::to_vec),
                    headers: record
                        .headers
                        .map(|(k, v)| (k.to_vec(), v.map(<[u8]>::to_vec)))
                        .collect(),
                });
                ControlFlow::Continue(())
            })
            .expect("good records");
    }
    read
}

/// The three records in any format, with these timestamps and no keys.
fn build(magic: i8, codec: Codec, timestamps: [i64; 3]) -> Vec<u8> {
    if magic == 2 {
        build_with(
            BatchOptions { compression: codec.into(), ..BatchOptions::default() },
            timestamps,
        )
    } else {
        build_old(magic, codec, None, timestamps)
    }
}

fn build_with(options: BatchOptions, timestamps: [i64; 3]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options).unwrap();
    for (timestamp, value) in timestamps.into_iter().zip(VALUES) {
        builder.append(timestamp, None, Some(value)).unwrap();
    }
    finish(&builder)
}

fn finish(builder: &BatchBuilder) -> Vec<u8> {
    let mut out = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut out).unwrap();
    out
}

fn build_old(magic: i8, codec: Codec, append_time: Option<i64>, timestamps: [i64; 3]) -> Vec<u8> {
    let mut builder = LegacyBuilder::new(magic, codec.into(), append_time, 0).unwrap();
    for ((offset, timestamp), value) in (0..).zip(timestamps).zip(VALUES) {
        builder.append(offset, timestamp, None, Some(value)).unwrap();
    }
    let mut out = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut out).unwrap();
    out
}

/// A producer's transactional batch.
fn transactional(codec: Codec) -> BatchOptions {
    BatchOptions {
        compression: codec.into(),
        producer_id: 1324,
        producer_epoch: 10,
        base_sequence: 984,
        is_transactional: true,
        ..BatchOptions::default()
    }
}

/// Writes over the header of a batch of magic 2, and puts the checksum right.
fn patch(batch: &mut [u8], position: usize, bytes: &[u8]) {
    batch[position..position + bytes.len()].copy_from_slice(bytes);
    fix_crc(batch);
}

fn fix_crc(batch: &mut [u8]) {
    let crc = crc_of(batch).to_be_bytes();
    let at = if batch[16] == 2 { 17 } else { 12 };
    batch[at..at + 4].copy_from_slice(&crc);
}

/// A batch of magic 2 around a payload that is compressed already.
fn around(codec: Codec, count: i32, payload: &[u8]) -> Vec<u8> {
    let mut batch = vec![0; 61];
    batch[16] = 2;
    batch[22] = codec.id();
    batch[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    batch[35..43].copy_from_slice(&(-1_i64).to_be_bytes());
    batch[43..57].copy_from_slice(&[0xff; 14]);
    batch[57..61].copy_from_slice(&count.to_be_bytes());
    batch.extend_from_slice(payload);
    let size = (batch.len() - 12) as u32;
    batch[8..12].copy_from_slice(&size.to_be_bytes());
    fix_crc(&mut batch);
    batch
}

fn compress(codec: Codec, magic: i8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Compressor::new().compress(Compression::new(codec), magic, payload, &mut out).unwrap();
    out
}
