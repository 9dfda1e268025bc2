//! What holds for every batch that can be built, and what Kafka's own batches show.

use proptest::prelude::*;

use super::{BatchBuilder, BatchOptions, Header, write_empty_batch};
use crate::record::batch::{BatchHeader, compute_crc};
use crate::record::codec::{Codec, Compressor, Decompressor};
use crate::record::records::{Record, Records};

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

type AnyHeader = (Vec<u8>, Option<Vec<u8>>);

#[derive(Clone, Debug)]
struct AnyRecord {
    gap: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<AnyHeader>,
}

fn any_bytes(size: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..size)
}

fn any_record() -> impl Strategy<Value = AnyRecord> {
    let header = (any_bytes(9), prop::option::of(any_bytes(200)));
    (
        prop_oneof![0..3_i64, 0..10_000_000_i64],
        prop_oneof![-1..100_i64, 0..i64::MAX],
        prop::option::of(any_bytes(100)),
        prop::option::of(any_bytes(1000)),
        prop::collection::vec(header, 0..3),
    )
        .prop_map(|(gap, timestamp, key, value, headers)| AnyRecord {
            gap,
            timestamp,
            key,
            value,
            headers,
        })
}

/// A batch of these options with a record at each offset and timestamp.
fn batch(options: BatchOptions, records: &[(i64, i64)]) -> (BatchHeader, Vec<u8>) {
    let mut builder = BatchBuilder::new(options).unwrap();
    for (offset, timestamp) in records {
        builder.append_at(*offset, *timestamp, None, Some(b"v"), std::iter::empty()).unwrap();
    }
    let mut out = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut out).unwrap();
    (BatchHeader::parse(&out).unwrap(), out)
}

/// A fact of each record of a batch without codec.
fn each<T>((header, bytes): &(BatchHeader, Vec<u8>), of: impl Fn(&Record<'_>) -> T) -> Vec<T> {
    Records::new(header, &bytes[61..]).map(|record| of(&record.unwrap())).collect()
}

fn producer(id: i64, epoch: i16, sequence: i32) -> BatchOptions {
    BatchOptions {
        producer_id: id,
        producer_epoch: epoch,
        base_sequence: sequence,
        ..BatchOptions::default()
    }
}

#[test]
fn an_empty_batch_keeps_its_flags_and_its_sequences() {
    // spec: behaviours VB-002
    for is_transactional in [false, true] {
        for is_control in [false, true] {
            let base = producer(1, 3, 983);
            let options = BatchOptions { base_offset: 15, is_transactional, is_control, ..base };
            let mut out = Vec::new();
            write_empty_batch(&options, 37, 7, &mut out).unwrap();
            let header = BatchHeader::parse(&out).unwrap();
            assert_eq!((header.base_offset, header.last_offset(), header.count), (15, 37, 0));
            assert_eq!((header.producer_id, header.producer_epoch), (1, 3));
            assert_eq!((header.base_sequence, header.last_sequence()), (983, 1005));
            assert_eq!(header.is_transactional(), is_transactional);
            assert_eq!(header.is_control(), is_control);
            assert_eq!(header.delete_horizon_ms(), None);
        }
    }
}

#[test]
fn a_batch_without_a_producer_has_none_of_its_numbers() {
    // spec: behaviours VB-003, VB-007
    let options = BatchOptions { base_offset: 1_234_567, ..BatchOptions::default() };
    let made = batch(options, &[(1_234_567, 5), (1_234_568, 6)]);
    let header = made.0;
    assert_eq!(header.last_offset_delta, 1);
    assert_eq!(each(&made, |record| record.offset), [1_234_567, 1_234_568]);
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (-1, -1, -1));
    assert_eq!((header.last_sequence(), header.leader_epoch), (-1, -1));
    assert_eq!(each(&made, |record| record.sequence), [-1, -1]);
}

#[test]
fn sequences_begin_anew_behind_the_last() {
    // spec: behaviours VB-006
    let made = batch(producer(1324, 10, i32::MAX - 1), &[(0, 1), (1, 1), (2, 1)]);
    assert_eq!(made.0.last_sequence(), 0);
    assert_eq!(each(&made, |record| record.sequence), [i32::MAX - 1, i32::MAX, 0]);
}

#[test]
fn timestamps_stay_when_they_are_told_from_a_delete_horizon() {
    // spec: behaviours VB-008
    let options = BatchOptions { delete_horizon_ms: Some(1000), ..BatchOptions::default() };
    let made = batch(options, &[(0, 5), (1, 10), (2, 1_000_000)]);
    assert_eq!((made.0.base_timestamp, made.0.delete_horizon_ms()), (1000, Some(1000)));
    assert_eq!(each(&made, |record| record.timestamp_ms), [5, 10, 1_000_000]);
}

#[test]
fn headers_keep_their_order_and_null_stays_null() {
    // spec: behaviours VB-020
    let lists: [&[Header<'_>]; 2] =
        [&[(b"b", None), (b"a", Some(b"")), (b"b", Some(b"filled"))], &[(b"", None)]];
    let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
    for (offset, list) in (0..).zip(lists) {
        builder.append_at(offset, 7, Some(b"k"), Some(b"v"), list.iter().copied()).unwrap();
    }
    let mut out = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut out).unwrap();
    let header = BatchHeader::parse(&out).unwrap();
    for (record, list) in Records::new(&header, &out[61..]).zip(lists) {
        let record = record.unwrap();
        assert_eq!((record.key, record.value), (Some(&b"k"[..]), Some(&b"v"[..])));
        assert_eq!(record.headers.collect::<Vec<_>>(), list);
    }
}

#[test]
fn a_batch_reaches_from_its_base_to_its_last_record() {
    // spec: behaviours BU-015
    let options = BatchOptions { base_offset: 5, ..BatchOptions::default() };
    let (header, _) = batch(options, &[(5, 1), (9, 1)]);
    assert_eq!((header.last_offset_delta, header.count), (4, 2));
}

#[test]
fn deltas_count_from_the_first_record_under_the_logs_own_time() {
    // spec: behaviours BU-016
    let append_time = BatchOptions { log_append_time_ms: Some(9999), ..BatchOptions::default() };
    let (header, bytes) = batch(append_time, &[(0, 1234), (1, 1240)]);
    assert_eq!((header.base_timestamp, header.max_timestamp), (1234, 9999));
    let own = batch(BatchOptions::default(), &[(0, 1234), (1, 1240)]);
    assert_eq!(bytes[61..], own.1[61..]);
    assert_eq!(each(&own, |record| record.timestamp_ms), [1234, 1240]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_appended_is_what_is_read(
        records in prop::collection::vec(any_record(), 1..40),
        base_offset in 0..i64::MAX / 2,
        codec in prop::sample::select(Codec::ALL.to_vec()),
        horizon in prop::option::of(0..i64::MAX),
    ) {
        let options = BatchOptions {
            base_offset,
            compression: codec.into(),
            delete_horizon_ms: horizon,
            producer_id: 5,
            producer_epoch: 1,
            base_sequence: i32::MAX,
            ..Default::default()
        };
        let mut builder = BatchBuilder::new(options).unwrap();
        let mut offsets = Vec::new();
        for record in &records {
            let offset = builder.next_offset() + record.gap;
            offsets.push(offset);
            let headers = record.headers.iter().map(|(k, v)| (k.as_slice(), v.as_deref()));
            builder
                .append_at(
                    offset,
                    record.timestamp,
                    record.key.as_deref(),
                    record.value.as_deref(),
                    headers,
                )
                .unwrap();
        }
        let mut batch = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut batch).unwrap();

        let header = BatchHeader::parse(&batch).unwrap();
        prop_assert_eq!(header.crc, compute_crc(&batch));
        prop_assert_eq!(usize::try_from(header.size_bytes).unwrap(), batch.len());
        prop_assert_eq!(header.last_offset(), *offsets.last().unwrap());
        let max = records.iter().map(|record| record.timestamp).max().unwrap();
        prop_assert_eq!(header.max_timestamp, max);
        let mut decompressor = Decompressor::new();
        let payload =
            decompressor.decompress(codec, 2, &batch[61..], usize::MAX).unwrap();
        let read: Vec<_> = Records::new(&header, payload).map(|record| record.unwrap()).collect();
        prop_assert_eq!(read.len(), records.len());
        for ((read, offset), record) in read.iter().zip(offsets).zip(&records) {
            prop_assert_eq!((read.offset, read.timestamp_ms), (offset, record.timestamp));
            prop_assert_eq!(read.key, record.key.as_deref());
                prop_assert_eq!(read.value, record.value.as_deref());
            let headers: Vec<AnyHeader> =
                read.headers.map(|(k, v)| (k.to_vec(), v.map(<[u8]>::to_vec))).collect();
            prop_assert_eq!(&headers, &record.headers);
        }

        // Copied record by record, it is the same batch again.
        let mut copy = BatchBuilder::new(options).unwrap();
        for record in &read {
            copy.append_record(record).unwrap();
        }
        let mut copied = Vec::new();
        copy.write_to(&mut Compressor::new(), &mut copied).unwrap();
        prop_assert_eq!(batch, copied);
    }
}
