#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::error::{Kind, Result};
use crate::record::batch::compute_crc;
use crate::record::builder::{BatchBuilder, BatchOptions, LegacyBuilder, write_end_marker};
use crate::record::codec::{Codec, Compressor};
use crate::record::control::EndMarker;
use crate::record::scan::{ScanEnd, ScannedBatch, Stop, scan};
use crate::record::{BatchHeader, BatchReader, Record, TimestampType};

/// Keeps what a closure says; every batch gets the same verdict.
struct Rules<F> {
    verdict: BatchVerdict,
    keeps: F,
    asked: usize,
}

impl<F: FnMut(&Record<'_>) -> bool> FilterRules for Rules<F> {
    fn judge_batch(&mut self, _: &BatchHeader, _: &[u8]) -> Result<BatchVerdict> {
        Ok(self.verdict)
    }

    fn keeps_record(&mut self, _: &BatchHeader, record: &Record<'_>) -> bool {
        self.asked += 1;
        (self.keeps)(record)
    }
}

fn rules<F: FnMut(&Record<'_>) -> bool>(retention: Retention, keeps: F) -> Rules<F> {
    let verdict = BatchVerdict { retention, is_marker_of_empty_txn: false };
    Rules { verdict, keeps, asked: 0 }
}

fn keyed(record: &Record<'_>) -> bool {
    record.key.is_some()
}

fn filter_with(
    filter: &mut BatchFilter,
    input: &[u8],
    rules: &mut dyn FilterRules,
) -> (Vec<u8>, FilterTotals) {
    let (mut out, mut totals) = (Vec::new(), FilterTotals::default());
    let mut source = input;
    let end = scan(&mut source, 0, u64::MAX, &mut |batch: ScannedBatch<'_>| {
        filter.filter(batch.header, batch.bytes, rules, &mut out, &mut totals)?;
        Ok(ControlFlow::Continue(()))
    });
    assert_eq!(end.unwrap(), ScanEnd { position: input.len() as u64, stop: Stop::End });
    (out, totals)
}

fn filter(input: &[u8], rules: &mut dyn FilterRules) -> (Vec<u8>, FilterTotals) {
    filter_with(&mut BatchFilter::new(1 << 24), input, rules)
}

/// The headers of batches whose frames and checksums are right.
fn headers(bytes: &[u8]) -> Vec<BatchHeader> {
    let mut found = Vec::new();
    let mut source = bytes;
    let end = scan(&mut source, 0, u64::MAX, &mut |batch: ScannedBatch<'_>| {
        found.push(*batch.header);
        Ok(ControlFlow::Continue(()))
    });
    assert_eq!(end.unwrap().stop, Stop::End);
    found
}

/// Offset, timestamp, key and value of every record.
type Plain = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

fn plain(record: &Record<'_>) -> Plain {
    let owned = |field: Option<&[u8]>| field.map(<[u8]>::to_vec);
    (record.offset, record.timestamp_ms, owned(record.key), owned(record.value))
}

fn records(bytes: &[u8]) -> Vec<Plain> {
    let mut found = Vec::new();
    let mut source = bytes;
    let mut reader = BatchReader::new(1 << 24);
    scan(&mut source, 0, u64::MAX, &mut |batch: ScannedBatch<'_>| {
        reader
            .read(batch.header, batch.bytes, &mut |record| {
                found.push(plain(record));
                ControlFlow::Continue(())
            })
            .unwrap();
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    found
}

fn build(options: BatchOptions, records: &[(i64, i64, Option<&str>, Option<&str>)]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options).unwrap();
    for (offset, timestamp, key, value) in records {
        let (key, value) = (key.map(str::as_bytes), value.map(str::as_bytes));
        builder.append_at(*offset, *timestamp, key, value, std::iter::empty()).unwrap();
    }
    let mut out = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut out).unwrap();
    out
}

fn at(base_offset: i64) -> BatchOptions {
    BatchOptions { base_offset, ..BatchOptions::default() }
}

fn legacy(magic: i8, codec: Codec, records: &[(i64, i64, Option<&str>)]) -> Vec<u8> {
    let first = records[0].0;
    let mut builder = LegacyBuilder::new(magic, codec.into(), None, first).unwrap();
    for (offset, timestamp, key) in records {
        builder.append(*offset, *timestamp, key.map(str::as_bytes), Some(b"v")).unwrap();
    }
    let mut out = Vec::new();
    builder.write_to(&mut Compressor::new(), &mut out).unwrap();
    out
}

fn producer(base_offset: i64) -> BatchOptions {
    BatchOptions {
        leader_epoch: 293,
        producer_id: 23,
        producer_epoch: 5,
        base_sequence: 10,
        is_transactional: true,
        ..at(base_offset)
    }
}

#[test]
fn a_bare_header_stays_itself() {
    // spec: behaviours FI-002
    let two = [(3, 10, Some("a"), Some("1")), (4, 12, Some("b"), Some("2"))];
    let (once, totals) =
        filter(&build(producer(3), &two), &mut rules(Retention::RetainEmpty, |_| false));
    assert_eq!(once.len(), 61);
    assert_eq!((totals.records_read, totals.records_retained), (2, 0));
    assert_eq!((totals.bytes_retained, totals.max_offset), (61, 4));
    let header = headers(&once)[0];
    assert_eq!((header.base_offset, header.last_offset(), header.count), (3, 4, 0));
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (23, 5, 10));
    assert_eq!((header.base_timestamp, header.max_timestamp), (-1, 12));
    assert!(header.is_transactional() && !header.is_control());
    let (twice, totals) = filter(&once, &mut rules(Retention::RetainEmpty, |_| false));
    assert_eq!(twice, once);
    assert_eq!((totals.bytes_read, totals.bytes_retained), (61, 61));
}

#[test]
fn a_batch_without_records_goes_and_one_that_is_deleted_is_not_looked_into() {
    // spec: behaviours FI-003
    let input = build(producer(3), &[(3, 1, None, Some("1")), (4, 1, None, Some("2"))]);
    for (retention, asked) in [(Retention::DeleteEmpty, 2), (Retention::Delete, 0)] {
        let mut rules = rules(retention, |_| false);
        let (out, totals) = filter(&input, &mut rules);
        assert!(out.is_empty());
        assert_eq!(rules.asked, asked);
        assert_eq!(totals.bytes_read, input.len() as u64);
    }
}

#[test]
fn a_tombstone_gives_its_batch_a_delete_horizon() {
    // spec: behaviours FI-004
    const HORIZON: i64 = (1 << 30) - 1;
    let three =
        [(0, 5, Some("0"), Some("0")), (1, 10, Some("1"), None), (2, 15, Some("2"), Some("2"))];
    let input = build(at(0), &three);
    let mut by_time = BatchFilter::new(1 << 20);
    by_time.set_time(HORIZON - 1, 1);
    let mut all = rules(Retention::DeleteEmpty, |_| true);
    all.verdict.is_marker_of_empty_txn = true;
    let (out, _) = filter_with(&mut by_time, &input, &mut all);
    let header = headers(&out)[0];
    assert_eq!(header.delete_horizon_ms(), Some(HORIZON));
    assert_eq!((header.base_timestamp, header.max_timestamp), (HORIZON, 15));
    let times: Vec<i64> = records(&out).iter().map(|record| record.1).collect();
    assert_eq!(times, [5, 10, 15]);
    // It stays as it is from then on, whatever else goes.
    by_time.set_time(HORIZON + 500, 1);
    let (again, _) = filter_with(&mut by_time, &out, &mut rules(Retention::DeleteEmpty, |_| true));
    assert_eq!(again, out);
    let (less, _) =
        filter_with(&mut by_time, &out, &mut rules(Retention::DeleteEmpty, |r| r.offset != 0));
    assert_eq!(headers(&less)[0].delete_horizon_ms(), Some(HORIZON));
    assert_eq!(records(&less), records(&out)[1..]);
}

#[test]
fn a_horizon_beyond_all_time_is_none() {
    let input = build(at(0), &[(0, 5, Some("k"), None), (1, 6, Some("l"), None)]);
    let mut late = BatchFilter::new(1 << 20);
    late.set_time(i64::MAX, 1000);
    let (out, _) = filter_with(&mut late, &input, &mut rules(Retention::DeleteEmpty, |_| true));
    assert_eq!(headers(&out)[0].delete_horizon_ms(), None);
    assert_eq!(records(&out), records(&input));
}

const COMPACTED: [(i64, i64, Option<&str>); 3] = [(5, 1, None), (8, 2, Some("k")), (10, 3, None)];

#[test]
fn offsets_of_a_batch_stay_when_records_go() {
    // spec: behaviours FI-006
    let three = COMPACTED.map(|(offset, time, key)| (offset, time, key, Some("v")));
    for codec in Codec::ALL {
        let input = build(BatchOptions { compression: codec.into(), ..at(0) }, &three);
        let (out, totals) = filter(&input, &mut rules(Retention::DeleteEmpty, keyed));
        let header = headers(&out)[0];
        assert_eq!((header.base_offset, header.last_offset(), header.count), (0, 10, 1));
        assert_eq!(header.codec_id(), codec.id());
        assert_eq!((header.base_timestamp, header.max_timestamp), (2, 2));
        assert_eq!(records(&out), records(&input)[1..2]);
        assert_eq!(totals.max_offset, 8);
    }
}

#[test]
fn old_messages_become_a_batch_of_what_stays() {
    // spec: behaviours FI-007
    for (magic, codecs) in [(0, &Codec::ALL[1..4]), (1, &Codec::ALL[1..4])] {
        for codec in codecs {
            let input = legacy(magic, *codec, &COMPACTED);
            let (out, totals) = filter(&input, &mut rules(Retention::DeleteEmpty, keyed));
            let header = headers(&out)[0];
            assert_eq!((header.magic, header.base_offset, header.last_offset()), (2, 8, 8));
            assert_eq!(header.codec_id(), codec.id());
            assert_eq!(header.timestamp_type(), TimestampType::CreateTime);
            assert_eq!(header.max_timestamp, if magic == 0 { -1 } else { 2 });
            assert_eq!((totals.records_read, totals.records_retained), (3, 1));
        }
    }
    let lone = legacy(1, Codec::None, &[(8, 2, Some("k"))]);
    let (out, _) = filter(&lone, &mut rules(Retention::DeleteEmpty, |_| true));
    assert_eq!(headers(&out)[0].magic, 2);
    assert_eq!(records(&out), records(&lone));
}

#[test]
fn old_messages_cannot_be_kept_without_records() {
    let input = legacy(1, Codec::None, &[(8, 2, Some("k"))]);
    let header = headers(&input)[0];
    let (mut out, mut totals) = (b"before".to_vec(), FilterTotals::default());
    let mut none = rules(Retention::RetainEmpty, |_| false);
    let error = BatchFilter::new(1 << 20)
        .filter(&header, &input, &mut none, &mut out, &mut totals)
        .unwrap_err();
    assert_eq!((error.kind(), out.as_slice()), (Kind::InvalidArgument, &b"before"[..]));
}

#[test]
fn the_leader_epoch_and_the_producer_stay() {
    // spec: behaviours FI-008
    let options = BatchOptions { leader_epoch: 67, ..producer(0) };
    let input = build(options, &[(0, 1, None, Some("a")), (1, 1, Some("k"), Some("b"))]);
    let (out, _) = filter(&input, &mut rules(Retention::DeleteEmpty, keyed));
    let header = headers(&out)[0];
    assert_eq!((header.leader_epoch, header.count), (67, 1));
    assert_eq!((header.producer_id, header.producer_epoch), (23, 5));
    assert_eq!((header.base_sequence, header.last_sequence()), (10, 11));
    assert!(header.is_transactional());
}

type Group = (i64, Vec<(i64, i64, Option<&'static str>)>);

fn four_batches() -> Vec<Group> {
    let group = |time: i64, keys: &[(i64, Option<&'static str>)]| {
        (time, keys.iter().map(|(offset, key)| (*offset, time, *key)).collect())
    };
    vec![
        group(10, &[(0, None)]),
        group(11, &[(1, Some("1")), (2, None)]),
        group(20, &[(3, None), (4, Some("4")), (5, Some("5"))]),
        group(16, &[(6, Some("6"))]),
    ]
}

#[test]
fn totals_tell_what_went_through() {
    // spec: behaviours FI-011, FI-012
    let mut input = Vec::new();
    for (_, group) in four_batches() {
        let mut records: Vec<_> = group.iter().map(|(o, t, k)| (*o, *t, *k, Some("v"))).collect();
        if records[0].0 == 3 {
            // The largest timestamp is not the last record's.
            records[2].1 = 15;
        }
        input.extend(build(at(group[0].0), &records));
    }
    let (out, totals) = filter(&input, &mut rules(Retention::DeleteEmpty, keyed));
    assert_eq!((totals.records_read, totals.records_retained), (7, 4));
    assert_eq!((totals.bytes_read, totals.bytes_retained), (input.len() as u64, out.len() as u64));
    assert_eq!((totals.max_timestamp_ms, totals.shallow_offset_of_max_timestamp), (20, 5));
    let headers = headers(&out);
    let of = |get: &dyn Fn(&BatchHeader) -> i64| headers.iter().map(get).collect::<Vec<_>>();
    assert_eq!(of(&|header| header.base_offset), [1, 3, 6]);
    assert_eq!(of(&BatchHeader::last_offset), [2, 5, 6]);
    assert_eq!(of(&|header| header.max_timestamp), [11, 20, 16]);
    for (magic, expected) in [(1, (20, 4)), (0, (-1, -1))] {
        let mut input = Vec::new();
        for (_, group) in four_batches() {
            let mut group = group.clone();
            if group[0].0 == 3 {
                group[2].1 = 15;
            }
            input.extend(legacy(magic, Codec::None, &group));
        }
        let (_, totals) = filter(&input, &mut rules(Retention::DeleteEmpty, keyed));
        assert_eq!((totals.records_read, totals.records_retained), (7, 4));
        assert_eq!(totals.bytes_read, input.len() as u64);
        let found = (totals.max_timestamp_ms, totals.shallow_offset_of_max_timestamp);
        assert_eq!(found, expected, "magic {magic}");
    }
}

#[test]
fn log_append_time_stays() {
    // spec: behaviours FI-014
    let options = BatchOptions { log_append_time_ms: Some(999), ..at(0) };
    let input = build(options, &[(0, 1, None, Some("a")), (1, 5, Some("k"), Some("b"))]);
    for retention in [Retention::DeleteEmpty, Retention::RetainEmpty] {
        let keeps = retention == Retention::DeleteEmpty;
        let (out, _) = filter(&input, &mut rules(retention, |r| keeps && keyed(r)));
        let header = headers(&out)[0];
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(header.max_timestamp, 999);
    }
}

#[test]
fn a_batch_that_keeps_all_its_records_keeps_its_bytes() {
    // spec: behaviours FI-015
    for codec in Codec::ALL {
        let options = BatchOptions { compression: codec.into(), ..producer(7) };
        let input = build(options, &[(7, 1, None, Some("a")), (9, 5, Some("k"), Some("b"))]);
        let (out, totals) = filter(&input, &mut rules(Retention::DeleteEmpty, |_| true));
        assert_eq!(out, input);
        assert_eq!((totals.max_offset, totals.bytes_retained), (9, input.len() as u64));
        assert_eq!(headers(&out)[0].delete_horizon_ms(), None);
    }
}

#[test]
fn the_marker_of_an_empty_transaction_gets_a_horizon_and_stays_a_marker() {
    let options = BatchOptions { base_sequence: -1, ..producer(40) };
    let marker = EndMarker { is_abort: false, coordinator_epoch: 3, timestamp_ms: 77 };
    let mut input = Vec::new();
    write_end_marker(&options, &marker, &mut input).unwrap();
    let mut by_time = BatchFilter::new(1 << 20);
    by_time.set_time(1000, 200);
    let mut all = rules(Retention::DeleteEmpty, |_| true);
    let (same, _) = filter_with(&mut by_time, &input, &mut all);
    assert_eq!(same, input);
    all.verdict.is_marker_of_empty_txn = true;
    let (out, _) = filter_with(&mut by_time, &input, &mut all);
    let header = headers(&out)[0];
    assert!(header.is_control() && header.is_transactional());
    assert_eq!((header.delete_horizon_ms(), header.max_timestamp), (Some(1200), 77));
    assert_eq!((header.base_offset, header.base_sequence), (40, -1));
    assert_eq!(records(&out), records(&input));
    let (again, _) = filter_with(&mut by_time, &out, &mut all);
    assert_eq!(again, out);
}

#[test]
fn records_that_cannot_be_read_leave_the_output_as_it_was() {
    let good = build(at(0), &[(0, 1, None, Some("a")), (1, 5, Some("k"), Some("b"))]);
    for cut in 61..good.len() {
        let mut bytes = good[..cut].to_vec();
        let size = i32::try_from(cut).unwrap() - 12;
        bytes[8..12].copy_from_slice(&size.to_be_bytes());
        let crc = compute_crc(&bytes);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        let header = headers(&bytes)[0];
        let (mut out, mut totals) = (b"before".to_vec(), FilterTotals::default());
        let mut all = rules(Retention::RetainEmpty, |_| true);
        let error = BatchFilter::new(1 << 20)
            .filter(&header, &bytes, &mut all, &mut out, &mut totals)
            .unwrap_err();
        assert_eq!((error.kind(), out.as_slice()), (Kind::Corrupt, &b"before"[..]), "{cut}");
    }
    let mut header = headers(&good)[0];
    header.attributes = 5;
    let (mut out, mut totals) = (Vec::new(), FilterTotals::default());
    let mut all = rules(Retention::RetainEmpty, |_| true);
    let mut filter = BatchFilter::new(1 << 20);
    let error = filter.filter(&header, &good, &mut all, &mut out, &mut totals).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    let large = build(
        BatchOptions { compression: Codec::Zstd.into(), ..at(0) },
        &[(0, 1, None, Some(&"x".repeat(5000)))],
    );
    let header = headers(&large)[0];
    let mut filter = BatchFilter::new(1000);
    let error = filter.filter(&header, &large, &mut all, &mut out, &mut totals).unwrap_err();
    assert_eq!(error.kind(), Kind::Limit);
}

proptest! {
    #[test]
    fn what_comes_out_is_what_was_kept(
        gaps in prop::collection::vec((0..5_i64, 0..1000_i64, any::<bool>(), any::<bool>()), 1..40),
        codec in 0..5_usize,
        append_time in any::<bool>(),
        kept in any::<u64>(),
    ) {
        let options = BatchOptions {
            compression: Codec::ALL[codec].into(),
            log_append_time_ms: append_time.then_some(5000),
            ..producer(100)
        };
        let mut offset = 99;
        let mut builder = BatchBuilder::new(options).unwrap();
        for (gap, time, has_key, has_value) in &gaps {
            offset += 1 + gap;
            let key = offset.to_be_bytes();
            let (key, value) = (has_key.then_some(&key[..]), has_value.then_some(&b"v"[..]));
            builder.append_at(offset, *time, key, value, std::iter::empty()).unwrap();
        }
        let mut input = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut input).unwrap();
        let keeps = |offset: i64| kept >> (offset & 63) & 1 == 1;
        let mut filter = BatchFilter::new(1 << 20);
        filter.set_time(10_000, 5);
        let mut by_offset = rules(Retention::RetainEmpty, |r: &Record<'_>| keeps(r.offset));
        let (out, totals) = filter_with(&mut filter, &input, &mut by_offset);
        let wanted: Vec<Plain> =
            records(&input).into_iter().filter(|record| keeps(record.0)).collect();
        prop_assert_eq!(records(&out), wanted.clone());
        prop_assert_eq!(totals.records_retained, wanted.len() as u64);
        let (before, after) = (headers(&input)[0], headers(&out)[0]);
        prop_assert_eq!(after.base_offset, before.base_offset);
        prop_assert_eq!(after.last_offset(), before.last_offset());
        prop_assert_eq!(after.last_sequence(), before.last_sequence());
        let has_tombstone = wanted.iter().any(|record| record.3.is_none());
        prop_assert_eq!(after.delete_horizon_ms(), has_tombstone.then_some(10_005));
        // A second time nothing changes.
        let (again, _) = filter_with(&mut filter, &out, &mut by_offset);
        prop_assert_eq!(again, out);
    }
}
