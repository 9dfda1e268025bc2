//! What holds for every batch that can be built.

use proptest::prelude::*;

use super::{BatchBuilder, BatchOptions};
use crate::record::batch::{BatchHeader, compute_crc};
use crate::record::codec::{Codec, Compressor, Decompressor};
use crate::record::records::Records;

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
