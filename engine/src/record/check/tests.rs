#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
use super::{BatchChecker, BatchFault, CheckedBatch};
use crate::io::checksum;
use crate::problem::Code;
use crate::record::BatchHeader;
use crate::record::batch::HEADER_SIZE;
use crate::record::codec::{Codec, Compressor};
use crate::record::varint::{write_i32, write_i64};

/// A record with these deltas, no key and this value.
fn record(timestamp_delta: i64, offset_delta: i32, value: &[u8]) -> Vec<u8> {
    let mut fields = vec![0];
    write_i64(&mut fields, timestamp_delta);
    write_i32(&mut fields, offset_delta);
    write_i32(&mut fields, -1);
    write_i32(&mut fields, value.len() as i32);
    fields.extend(value);
    write_i32(&mut fields, 0);
    framed(&fields)
}

fn framed(fields: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_i32(&mut out, fields.len() as i32);
    out.extend(fields);
    out
}

struct Batch {
    attributes: u8,
    base_offset: i64,
    last_offset_delta: i32,
    max_timestamp: i64,
    producer_id: i64,
    count: i32,
    payload: Vec<u8>,
}

impl Batch {
    /// Base timestamp 1000.
    fn new(records: &[Vec<u8>]) -> Self {
        Batch {
            attributes: 0,
            base_offset: 100,
            last_offset_delta: records.len() as i32 - 1,
            max_timestamp: 1000,
            producer_id: -1,
            count: records.len() as i32,
            payload: records.concat(),
        }
    }

    fn compressed(mut self, codec: Codec) -> Self {
        let mut payload = Vec::new();
        Compressor::new().compress(codec.into(), 2, &self.payload, &mut payload).unwrap();
        self.attributes |= codec.id();
        self.payload = payload;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = self.base_offset.to_be_bytes().to_vec();
        out.extend((self.payload.len() as i32 + 49).to_be_bytes());
        out.extend([0, 0, 0, 0, 2, 0, 0, 0, 0, 0, self.attributes]);
        out.extend(self.last_offset_delta.to_be_bytes());
        out.extend(1000_i64.to_be_bytes());
        out.extend(self.max_timestamp.to_be_bytes());
        out.extend(self.producer_id.to_be_bytes());
        out.extend([0xff; 6]);
        out.extend(self.count.to_be_bytes());
        assert_eq!(out.len(), HEADER_SIZE);
        out.extend(&self.payload);
        out
    }

    fn check(&self) -> Result<(CheckedBatch, Vec<(i64, i64)>), BatchFault> {
        self.check_up_to(u64::MAX)
    }

    fn check_up_to(&self, limit: u64) -> Result<(CheckedBatch, Vec<(i64, i64)>), BatchFault> {
        let bytes = self.bytes();
        let header = BatchHeader::parse(&bytes).unwrap();
        let mut seen = Vec::new();
        let checked =
            BatchChecker::new(limit).check(&header, &bytes, &mut |offset, timestamp| {
                seen.push((offset, timestamp));
            })?;
        Ok((checked, seen))
    }

    fn code(&self) -> Code {
        self.check().unwrap_err().code
    }
}

const CODECS: [Codec; 4] = [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd];

#[test]
fn every_record_of_a_sound_batch_is_told_whatever_the_codec() {
    let records = [record(0, 0, b"a"), record(-5, 1, b"bc"), record(-9, 4, b"")];
    let plain = Batch { last_offset_delta: 7, ..Batch::new(&records) };
    let expected = vec![(100, 1000), (101, 995), (104, 991)];
    assert_eq!(plain.check().unwrap().1, expected);
    for codec in CODECS {
        let batch = Batch { last_offset_delta: 7, ..Batch::new(&records) }.compressed(codec);
        let (checked, seen) = batch.check().unwrap();
        assert_eq!(checked, CheckedBatch { records: 3, base_offset: 100 }, "{codec}");
        assert_eq!(seen, expected, "{codec}");
    }
}

#[test]
fn records_larger_than_what_is_held_are_walked_too() {
    let large = vec![b'x'; 3 << 20];
    let records = [record(0, 0, b"a"), record(0, 1, &large), record(0, 2, b"b")];
    for codec in CODECS {
        let batch = Batch::new(&records).compressed(codec);
        assert_eq!(batch.check().unwrap().1, [(100, 1000), (101, 1000), (102, 1000)], "{codec}");
        let fault = batch.check_up_to(1 << 20).unwrap_err();
        assert_eq!(fault.code, Code::Codec, "{codec}: {fault}");
        let broken = Batch { count: 4, last_offset_delta: 3, ..Batch::new(&records) };
        assert_eq!(broken.compressed(codec).code(), Code::RecordCount, "{codec}");
        let mut longer = records.to_vec();
        longer[1][0] ^= 2;
        assert_eq!(Batch::new(&longer).compressed(codec).code(), Code::Record, "{codec}");
    }
}

#[test]
fn a_wrong_count_is_told_from_a_wrong_record() {
    let records = [record(0, 0, b"a"), record(0, 1, b"b")];
    for count in [-1, i32::MIN, 1, 3, i32::MAX] {
        assert_eq!(Batch { count, ..Batch::new(&records) }.code(), Code::RecordCount, "{count}");
    }
    let mut cut = Batch::new(&records);
    cut.payload.pop();
    assert_eq!(cut.code(), Code::Record);
}

#[test]
fn without_records_the_payload_is_not_looked_at() {
    let batch = Batch { count: 0, attributes: 1, ..Batch::new(&[vec![0xff; 9]]) };
    assert_eq!(batch.check().unwrap().0.records, 0);
}

#[test]
fn fields_that_do_not_add_up_are_the_records_fault() {
    let faults: [(&str, Vec<u8>); 9] = [
        ("negative length", vec![1]),
        ("no fields", framed(&[])),
        ("a length beyond the batch", vec![40, 0, 0, 0, 1, 1, 0]),
        ("a length above the fields", framed(&[0, 0, 0, 1, 1, 0, 0])),
        ("a length below the fields", framed(&[0, 0, 0, 1, 2, 0])),
        ("an overlong timestamp delta", framed(&[0xff; 20])),
        ("a negative header count", framed(&[0, 0, 0, 1, 1, 1])),
        ("more headers than bytes", framed(&[0, 0, 0, 1, 1, 8, 0])),
        ("a header without a key", framed(&[0, 0, 0, 1, 1, 2, 1, 0])),
    ];
    for (what, bytes) in faults {
        let mut records = bytes;
        if what == "a length beyond the batch" {
            records.truncate(7);
        }
        let fault = Batch::new(&[records]).check().unwrap_err();
        assert_eq!(fault.code, Code::Record, "{what}: {fault}");
    }
}

#[test]
fn overlong_but_right_numbers_null_fields_and_headers_are_accepted() {
    // key null, value empty, two headers: ("k", null) and ("", "v"); the length in five bytes.
    let fields = [0, 0, 0, 1, 0, 4, 2, b'k', 1, 0, 2, b'v'];
    let mut bytes = vec![0x80 | (fields.len() as u8 * 2), 0x80, 0x80, 0x80, 0];
    bytes.extend(fields);
    assert_eq!(Batch::new(&[bytes]).check().unwrap().0.records, 1);
}

#[test]
fn offsets_must_rise_within_the_batch() {
    for deltas in [[0, 5], [1, 1], [1, 0], [-1, 0]] {
        let records = deltas.map(|delta| record(0, delta, b"v"));
        assert_eq!(Batch::new(&records).code(), Code::RecordOffsetRange, "{deltas:?}");
    }
    let negative = Batch { last_offset_delta: -1, ..Batch::new(&[record(0, 0, b"v")]) };
    assert_eq!(negative.code(), Code::RecordOffsetRange);
}

#[test]
fn the_largest_timestamp_must_be_that_of_a_record() {
    let records = [record(0, 0, b"a"), record(7, 1, b"b")];
    assert_eq!(Batch::new(&records).code(), Code::MaxTimestampMismatch);
    let right = Batch { max_timestamp: 1007, ..Batch::new(&records) };
    assert_eq!(right.check().unwrap().1, [(100, 1000), (101, 1007)]);
    // The broker's own time holds for all records, whatever their deltas say.
    let append_time = Batch { attributes: 8, max_timestamp: 5000, ..Batch::new(&records) };
    assert_eq!(append_time.check().unwrap().1, [(100, 5000), (101, 5000)]);
}

#[test]
fn codecs_that_do_not_exist_or_do_not_open_are_told_apart() {
    let records = [record(0, 0, b"a")];
    for id in 5..8 {
        let batch = Batch { attributes: id, ..Batch::new(&records) };
        assert_eq!(batch.code(), Code::UnknownCodec);
    }
    for codec in CODECS {
        let batch = Batch { attributes: codec.id(), ..Batch::new(&records) };
        assert_eq!(batch.code(), Code::Codec, "plain bytes as {codec}");
    }
}

#[test]
fn a_second_lz4_frame_is_the_codecs_fault_and_not_the_counts() {
    let mut batch = Batch::new(&[record(0, 0, b"a")]).compressed(Codec::Lz4);
    let second = Batch::new(&[record(0, 1, b"b")]).compressed(Codec::Lz4);
    batch.payload.extend(second.payload);
    batch.count = 2;
    batch.last_offset_delta = 1;
    assert_eq!(batch.code(), Code::Codec);
}

/// A control batch with this key and value.
fn control(key: &[u8], value: &[u8]) -> Batch {
    let mut fields = vec![0, 0, 0];
    write_i32(&mut fields, key.len() as i32);
    fields.extend(key);
    write_i32(&mut fields, value.len() as i32);
    fields.extend(value);
    fields.push(0);
    Batch { attributes: 0x30, producer_id: 9, ..Batch::new(&[framed(&fields)]) }
}

#[test]
fn control_records_must_be_of_a_known_kind() {
    for (key, value) in [(&[0, 0, 0, 0], &[0; 6][..]), (&[0, 0, 0, 1], &[0, 0, 0, 0, 0, 7, 9])] {
        assert!(control(key, value).check().is_ok(), "{key:?}");
    }
    let leader_change = Batch { producer_id: -1, ..control(&[0, 0, 0, 2], &[0; 9]) };
    assert!(leader_change.check().is_ok());
    for (key, value) in [
        (&[0, 0, 0][..], &[0; 6][..]),
        (&[0, 0, 0, 7], &[0; 6]),
        (&[0xff, 0xff, 0, 0], &[0; 6]),
        (&[0, 1, 0, 0], &[0; 6]),
        (&[0, 0, 0, 0], &[0; 5]),
        (&[0, 0, 0, 1], &[0xff; 6]),
        (&[0, 0, 0, 2], &[0; 9]),
    ] {
        assert_eq!(control(key, value).code(), Code::ControlRecord, "{key:?} {value:?}");
    }
    assert_eq!(Batch { attributes: 0x31, ..control(&[0; 4], &[0; 6]) }.code(), Code::ControlRecord);
}

#[test]
fn an_emptied_control_batch_is_sound() {
    let batch = Batch { attributes: 0x30, count: 0, ..Batch::new(&[]) };
    assert_eq!(batch.check().unwrap().0.records, 0);
}

/// An entry of an old format; magic 1 with this timestamp.
fn message(magic: i8, attributes: u8, offset: i64, timestamp: i64, value: &[u8]) -> Vec<u8> {
    let mut covered = vec![magic.cast_unsigned(), attributes];
    if magic == 1 {
        covered.extend(timestamp.to_be_bytes());
    }
    covered.extend((-1_i32).to_be_bytes());
    covered.extend((value.len() as i32).to_be_bytes());
    covered.extend(value);
    let mut out = offset.to_be_bytes().to_vec();
    out.extend((covered.len() as i32 + 4).to_be_bytes());
    out.extend(checksum::crc32(&covered).to_be_bytes());
    out.extend(covered);
    out
}

fn wrapper(magic: i8, attributes: u8, offset: i64, timestamp: i64, inner: &[Vec<u8>]) -> Vec<u8> {
    let codec = Codec::from_id(attributes & 7).unwrap();
    let mut value = Vec::new();
    Compressor::new().compress(codec.into(), magic, &inner.concat(), &mut value).unwrap();
    message(magic, attributes, offset, timestamp, &value)
}

fn check_message(entry: &[u8]) -> Result<(CheckedBatch, Vec<(i64, i64)>), BatchFault> {
    let header = BatchHeader::parse_legacy(entry).unwrap();
    let mut seen = Vec::new();
    let checked = BatchChecker::new(u64::MAX)
        .check(&header, entry, &mut |offset, timestamp| seen.push((offset, timestamp)))?;
    Ok((checked, seen))
}

#[test]
fn plain_messages_are_one_record_each() {
    assert_eq!(check_message(&message(0, 0, 5, 0, b"v")).unwrap().1, [(5, -1)]);
    let (checked, seen) = check_message(&message(1, 0, 5, 77, b"v")).unwrap();
    assert_eq!((checked, seen), (CheckedBatch { records: 1, base_offset: 5 }, vec![(5, 77)]));
}

#[test]
fn inner_messages_get_their_place_in_the_log() {
    let inner = [0, 4, 9].map(|offset| message(1, 0, offset, 50 + offset, b"v"));
    let (checked, seen) = check_message(&wrapper(1, 1, 29, 59, &inner)).unwrap();
    assert_eq!(checked, CheckedBatch { records: 3, base_offset: 20 });
    assert_eq!(seen, [(20, 50), (24, 54), (29, 59)]);
    let (_, seen) = check_message(&wrapper(1, 8 | 1, 29, 99, &inner)).unwrap();
    assert_eq!(seen, [(20, 99), (24, 99), (29, 99)]);
    let absolute = [10, 11, 12].map(|offset| message(0, 0, offset, 0, b"v"));
    for codec in [1, 2, 3] {
        let (_, seen) = check_message(&wrapper(0, codec, 12, 0, &absolute)).unwrap();
        assert_eq!(seen, [(10, -1), (11, -1), (12, -1)]);
    }
}

#[test]
fn inner_messages_larger_than_what_is_held_are_walked_too() {
    let large = vec![b'x'; 1 << 20];
    let inner = [message(1, 0, 0, 7, b"v"), message(1, 0, 1, 8, &large), message(1, 0, 2, 9, b"")];
    let (_, seen) = check_message(&wrapper(1, 3, 12, 9, &inner)).unwrap();
    assert_eq!(seen, [(10, 7), (11, 8), (12, 9)]);
    let mut broken = inner.clone();
    broken[1][5000] ^= 1;
    let fault = check_message(&wrapper(1, 3, 12, 9, &broken)).unwrap_err();
    assert_eq!((fault.code, &fault.detail[..8]), (Code::Record, "record 1"));
    // Where the broker gave the time, Kafka does not look at the checksums within.
    assert!(check_message(&wrapper(1, 8 | 3, 12, 9, &broken)).is_ok());
}

#[test]
fn wrappers_that_break_the_rules_are_refused() {
    let good = [message(1, 0, 0, 7, b"v"), message(1, 0, 1, 7, b"v")];
    let twice = [good.clone(), [message(1, 0, 1, 7, b""), message(1, 0, 2, 7, b"")]].concat();
    let mut small = good.to_vec();
    small[1][8..12].copy_from_slice(&13_i32.to_be_bytes());
    let mut magic = good.to_vec();
    magic[1][16] = 2;
    let nested = [wrapper(1, 1, 1, 7, &good)];
    for (what, inner, code) in [
        ("no message", vec![], Code::RecordCount),
        ("a size below the least", small, Code::Record),
        ("another magic", magic, Code::Record),
        ("compressed again", nested.to_vec(), Code::Record),
        ("offsets that do not rise", twice, Code::RecordOffsetRange),
        ("another largest timestamp", vec![message(1, 0, 0, 6, b"v")], Code::MaxTimestampMismatch),
    ] {
        let fault = check_message(&wrapper(1, 1, 11, 7, &inner)).unwrap_err();
        assert_eq!(fault.code, code, "{what}: {fault}");
    }
    let behind = [message(0, 0, 13, 0, b"v")];
    let fault = check_message(&wrapper(0, 1, 12, 0, &behind)).unwrap_err();
    assert_eq!(fault.code, Code::RecordOffsetRange);
    let below = [message(1, 0, 9, 7, b"v")];
    assert_eq!(check_message(&wrapper(1, 1, 5, 7, &below)).unwrap_err().code, Code::Record);
    assert_eq!(check_message(&message(1, 4, 5, 7, b"zstd")).unwrap_err().code, Code::Codec);
    assert_eq!(check_message(&message(1, 6, 5, 7, b"")).unwrap_err().code, Code::UnknownCodec);
}

#[test]
fn every_flipped_bit_and_every_prefix_gives_a_verdict() {
    let records = [record(0, 0, b"abc"), record(0, 1, &[7; 300])];
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let good = Batch::new(&records).compressed(codec);
        for bit in 0..good.payload.len() * 8 {
            let mut batch = Batch::new(&records).compressed(codec);
            batch.payload[bit / 8] ^= 1 << (bit % 8);
            let _ = batch.check();
        }
        for size in 0..good.payload.len() {
            let mut batch = Batch::new(&records).compressed(codec);
            batch.payload.truncate(size);
            assert!(batch.check().is_err(), "{codec} cut to {size}");
        }
    }
}
