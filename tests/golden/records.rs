//! Batches and records: every header field, every record, and where a scan ends.

use std::ops::ControlFlow;

use siltstone::record::batch::{BatchHeader, HEADER_SIZE, TimestampType};
use siltstone::record::codec::{Codec, Decompressor};
use siltstone::record::control::{Control, parse_control, parse_key};
use siltstone::record::scan::{ScanEnd, ScannedBatch, Stop, scan};
use siltstone::record::{Records, legacy};
use siltstone_tests::expect::{Batch, RawSegment, Record, blob};

use crate::{Partition, file_name, for_each_kit, partitions};

/// Far more than any batch of the kits opens to.
const PAYLOAD_LIMIT_BYTES: usize = 64 << 20;

for_each_kit!(batches_and_records_are_kafkas);

fn batches_and_records_are_kafkas(kit: &str) {
    let mut decompressor = Decompressor::new();
    for partition in partitions(kit) {
        for segment in &partition.expectation.raw.segments {
            check_segment(&partition, segment, &mut decompressor);
        }
    }
}

/// A scan, taken up again behind each batch that is not valid, as Kafka's reader goes on.
fn check_segment(partition: &Partition, segment: &RawSegment, decompressor: &mut Decompressor) {
    let label = format!("{} segment {}", partition.label(), segment.base_offset);
    let log = partition.read(&file_name(segment.base_offset, "log")).expect(&label);
    assert_eq!(log.len() as u64, segment.size, "{label}");
    let mut records = Vec::new();
    let mut expected = segment.batches.iter();
    let mut position = 0;
    loop {
        let mut visit = |batch: ScannedBatch<'_>| {
            let want = expected.next().unwrap_or_else(|| panic!("{label}: one batch too many"));
            check_batch(&label, &batch, want, decompressor, &mut records);
            Ok(ControlFlow::Continue(()))
        };
        let end = scan(&mut &log[..], position, u64::MAX, &mut visit).expect(&label);
        let Some(invalid) = expected.next() else {
            check_end(&label, segment, end);
            break;
        };
        assert!(!invalid.valid, "{label}: valid for Kafka, but {end:?}");
        assert_eq!(end.position, invalid.position, "{label}");
        assert!(matches!(end.stop, Stop::BadCrc { .. }), "{label}: {end:?}");
        position = invalid.position + invalid.size;
    }
    assert_eq!(records, segment.records, "{label}");
}

fn check_end(label: &str, segment: &RawSegment, end: ScanEnd) {
    assert_eq!(end.position, segment.batches_end, "{label}: {end:?}");
    // Kafka's reader takes a batch that the file is too short for as the end of the file.
    let is_problem = !matches!(end.stop, Stop::End | Stop::Short { .. });
    assert_eq!(is_problem, segment.read_problem.is_some(), "{label}: {end:?}");
    assert_eq!(end.stop == Stop::End, segment.batches_end == segment.size, "{label}: {end:?}");
}

fn check_batch(
    label: &str,
    batch: &ScannedBatch<'_>,
    want: &Batch,
    decompressor: &mut Decompressor,
    records: &mut Vec<Record>,
) {
    let header = batch.header;
    let label = format!("{label}, batch at {}", batch.position);
    assert!(want.valid, "{label}");
    assert_eq!(batch.position, want.position, "{label}");
    assert_eq!(u64::from(header.size_bytes), want.size, "{label}");
    assert_eq!(batch.bytes.len() as u64, want.size, "{label}");
    assert_eq!(header.last_offset(), want.last_offset, "{label}");
    assert_eq!(header.magic, want.magic, "{label}");
    assert_eq!(header.crc, want.crc, "{label}");
    let codec = Codec::from_id(header.codec_id()).expect(&label);
    assert_eq!(codec.as_str(), want.codec, "{label}");
    assert_eq!(timestamp_type(header.timestamp_type()), want.timestamp_type, "{label}");
    assert_eq!(header.max_timestamp, want.max_timestamp, "{label}");
    assert_eq!(header.leader_epoch, want.partition_leader_epoch, "{label}");
    assert_eq!(header.producer_id, want.producer_id, "{label}");
    assert_eq!(header.producer_epoch, want.producer_epoch, "{label}");
    assert_eq!(header.base_sequence, want.base_sequence, "{label}");
    assert_eq!(header.last_sequence(), want.last_sequence, "{label}");
    assert_eq!(header.is_transactional(), want.transactional, "{label}");
    assert_eq!(header.is_control(), want.control, "{label}");
    assert_eq!(header.delete_horizon_ms(), want.delete_horizon_ms, "{label}");
    let before = records.len();
    match header.magic {
        2 => {
            assert_eq!(Some(header.count), want.count, "{label}");
            assert_eq!(header.base_offset, want.base_offset, "{label}");
            read_records(&label, header, batch.bytes, codec, decompressor, records);
            assert_eq!(records.len() - before, header.count as usize, "{label}");
        }
        _ => {
            assert_eq!(want.count, None, "{label}");
            read_messages(&label, header, batch.bytes, codec, decompressor, records);
            // Kafka gives a wrapper the offset of its first message.
            assert_eq!(records[before].offset, want.base_offset, "{label}");
        }
    }
}

fn timestamp_type(timestamp_type: TimestampType) -> &'static str {
    match timestamp_type {
        TimestampType::None => "NoTimestampType",
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

fn read_records(
    label: &str,
    header: &BatchHeader,
    batch: &[u8],
    codec: Codec,
    decompressor: &mut Decompressor,
    records: &mut Vec<Record>,
) {
    let payload = &batch[HEADER_SIZE..];
    let payload = decompressor.decompress(codec, 2, payload, PAYLOAD_LIMIT_BYTES).expect(label);
    for record in Records::new(header, payload) {
        let record = record.unwrap_or_else(|error| panic!("{label}: {error:?}"));
        let control_type = header.is_control().then(|| {
            let kind = parse_key(record.key.expect("a control record has a key")).expect(label);
            kind.as_str().to_owned()
        });
        if let Some(kind) = &control_type {
            let Control::End(marker) = parse_control(header, batch) else {
                panic!("{label}: no marker of a transaction's end")
            };
            assert_eq!(marker.is_abort, kind == "ABORT", "{label}");
        }
        let text = |key: &[u8]| String::from_utf8(key.to_vec()).expect("UTF-8");
        records.push(Record {
            offset: record.offset,
            timestamp: record.timestamp_ms,
            sequence: record.sequence,
            key: blob(record.key),
            value: blob(record.value),
            headers: record.headers.map(|(key, value)| (text(key), blob(value))).collect(),
            control_type,
        });
    }
}

fn read_messages(
    label: &str,
    header: &BatchHeader,
    entry: &[u8],
    codec: Codec,
    decompressor: &mut Decompressor,
    records: &mut Vec<Record>,
) {
    let message = legacy::parse_message(entry).expect(label);
    let messages = match codec {
        Codec::None => vec![message],
        _ => {
            let payload = message.value.expect("a wrapper has a value");
            let limit = PAYLOAD_LIMIT_BYTES;
            let payload =
                decompressor.decompress(codec, header.magic, payload, limit).expect(label);
            legacy::unwrap(header, payload).expect(label)
        }
    };
    records.extend(messages.into_iter().map(|message| Record {
        offset: message.offset,
        timestamp: message.timestamp_ms,
        sequence: -1,
        key: blob(message.key),
        value: blob(message.value),
        headers: Vec::new(),
        control_type: None,
    }));
}
