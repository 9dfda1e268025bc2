//! Records that lie: rows VB and LG of the behaviours, and damage of all kinds.

use super::*;
use crate::record::builder::write_legacy_message;
use crate::record::legacy::LegacyMessage;

/// What the one record of a batch comes to: uncompressed, compressed and kept, compressed and
/// written anew.
fn kinds_of_record(body: &[u8]) -> [Result<(), ValidateErrorKind>; 3] {
    let mut record = Vec::new();
    crate::record::varint::write_i32(&mut record, body.len() as i32);
    record.extend_from_slice(body);
    kinds_of_payload(1, &record)
}

fn kinds_of_payload(count: i32, payload: &[u8]) -> [Result<(), ValidateErrorKind>; 3] {
    let kept = around(Codec::Gzip, count, &compress(Codec::Gzip, 2, payload));
    [
        (around(Codec::None, count, payload), options()),
        (kept.clone(), options()),
        (kept, to_codec(Codec::Lz4)),
    ]
    .map(|(batch, options)| match validate(&batch, &options).result {
        Ok(_) => Ok(()),
        Err(error) => Err(error.kind()),
    })
}

const REFUSED: [Result<(), ValidateErrorKind>; 3] = [Err(ValidateErrorKind::InvalidRecord); 3];
/// What the fields are is right, but not how long the record says they are.
const KEPT: [Result<(), ValidateErrorKind>; 3] =
    [Err(ValidateErrorKind::InvalidRecord), Ok(()), Err(ValidateErrorKind::InvalidRecord)];

/// Attributes, no timestamp (the base is 0), offset 0, no key.
const FRONT: [u8; 4] = [0, 1, 0, 1];

#[test]
fn a_good_record_is_taken_by_every_way() {
    let body = [&FRONT[..], &[2, b'v', 0]].concat();
    assert_eq!(kinds_of_record(&body), [Ok(()); 3]);
}

#[test]
fn counts_that_are_not_those_of_the_records_are_refused() {
    // spec: behaviours VB-010 and VB-011
    for count in [5, 2] {
        let payload = build(2, Codec::None, [NOW; 3]).split_off(61);
        assert_eq!(kinds_of_payload(count, &payload), REFUSED);
    }
}

#[test]
fn a_key_longer_than_its_record_is_refused() {
    // spec: behaviours VB-028
    let mut body = vec![0, 1, 0, 0xd2, 0x01];
    body.resize(100, b'x');
    assert_eq!(kinds_of_record(&body), REFUSED);
}

#[test]
fn fewer_headers_than_none_are_refused() {
    // spec: behaviours VB-030
    assert_eq!(kinds_of_record(&[&FRONT[..], &[1, 1]].concat()), REFUSED);
}

#[test]
fn headers_that_are_not_there_are_refused() {
    // spec: behaviours VB-031
    assert_eq!(kinds_of_record(&[&FRONT[..], &[1, 0xc8, 0x01]].concat()), REFUSED);
}

#[test]
fn headers_with_sizes_that_cannot_be_are_refused() {
    // spec: behaviours VB-032
    for header in [&[0xd2, 0x01, b'k'][..], &[1, 1], &[2, b'k', 0xd2, 0x01, b'v']] {
        assert_eq!(kinds_of_record(&[&FRONT[..], &[1, 2], header].concat()), REFUSED);
    }
}

#[test]
fn a_timestamp_that_breaks_off_is_refused() {
    // spec: behaviours VB-034
    assert_eq!(kinds_of_record(&[0, 0x80, 0x80]), REFUSED);
}

#[test]
fn a_timestamp_that_never_ends_is_refused() {
    // spec: behaviours VB-035
    let body = [&[0][..], &[0xff; 10], &[0, 1, 1, 0]].concat();
    assert_eq!(kinds_of_record(&body), REFUSED);
}

#[test]
fn a_record_that_is_announced_only_is_refused() {
    // spec: behaviours VB-036
    assert_eq!(kinds_of_payload(1, &[20]), REFUSED);
    assert_eq!(kinds_of_payload(1, &[]), REFUSED);
}

#[test]
fn more_headers_counted_than_written_are_refused() {
    // spec: behaviours VB-038
    let body = [&FRONT[..], &[1, 8], &[2, b'k', 1].repeat(3)[..]].concat();
    assert_eq!(kinds_of_record(&body), REFUSED);
}

#[test]
fn a_length_that_lies_is_seen_only_where_kafka_reads_records_in_full() {
    // spec: records 1.2, the skipping iterator
    let longer = [&FRONT[..], &[1, 0, 99]].concat();
    assert_eq!(kinds_of_record(&longer), REFUSED);
    for length in [0_i32, 3, 20, 400, -5] {
        let mut payload = Vec::new();
        crate::record::varint::write_i32(&mut payload, length);
        payload.extend([&FRONT[..], &[1, 0]].concat());
        assert_eq!(kinds_of_payload(1, &payload), KEPT, "length {length}");
    }
}

#[test]
fn a_length_that_never_ends_escapes_as_an_illegal_argument_where_it_is_not_compressed() {
    // spec: records 1.1
    let payload = [&[0xff; 5][..], &[0, 0, 0, 1, 1, 0]].concat();
    let refused = ValidateErrorKind::InvalidRecord;
    let expected = [Err(ValidateErrorKind::IllegalArgument), Err(refused), Err(refused)];
    assert_eq!(kinds_of_payload(1, &payload), expected);
}

#[test]
fn a_count_below_zero_is_refused_whoever_writes() {
    // spec: behaviours VB-039
    let payload = build(2, Codec::None, [NOW; 3]).split_off(61);
    for codec in Codec::ALL {
        for target in Codec::ALL {
            let mut batch = around(codec, 3, &compress(codec, 2, &payload));
            patch(&mut batch, 57, &(-1_i32).to_be_bytes());
            let options = ValidateOptions { origin: AppendOrigin::Coordinator, ..to_codec(target) };
            assert_eq!(validate(&batch, &options).kind(), ValidateErrorKind::InvalidRecord);
        }
    }
}

#[test]
fn a_payload_that_does_not_open_is_no_corrupt_record() {
    // spec: behaviours VB-040
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let good = build(2, codec, [NOW; 3]);
        for target in [codec, Codec::None] {
            let mut batch = good.clone();
            // The magic of the codec's framing; snappy's is followed by no raw block.
            batch[62] ^= 0xff;
            batch[61] = 0xff;
            fix_crc(&mut batch);
            let outcome = validate(&batch, &to_codec(target));
            assert_eq!(outcome.kind(), ValidateErrorKind::Codec, "{codec} to {target}");
            assert_eq!(outcome.result.unwrap_err().kind().code(), -1);
        }
    }
}

#[test]
fn a_bad_record_in_front_of_a_broken_payload_is_met_first() {
    // spec: records 1.2. Kafka reads records while it decompresses.
    let mut payload = vec![20, 0, 0, 0, 0x7e];
    payload.resize(3 << 20, 0xff);
    let mut compressed = compress(Codec::Lz4, 2, &payload);
    compressed.truncate(compressed.len() - 4);
    let batch = around(Codec::Lz4, 2, &compressed);
    assert_eq!(validate(&batch, &options()).kind(), ValidateErrorKind::InvalidRecord);
    let good = build(2, Codec::None, [NOW; 3]).split_off(61);
    let mut compressed = compress(Codec::Lz4, 2, &good);
    compressed.truncate(compressed.len() - 4);
    let batch = around(Codec::Lz4, 3, &compressed);
    assert_eq!(validate(&batch, &options()).kind(), ValidateErrorKind::Codec);
}

fn old_wrapper(magic: i8, codec: Codec, value: Option<&[u8]>) -> Vec<u8> {
    let wrapper = LegacyMessage {
        offset: 0,
        magic,
        attributes: codec.id(),
        timestamp_ms: NOW,
        key: None,
        value,
    };
    let mut bytes = Vec::new();
    write_legacy_message(&wrapper, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_wrapper_offset_below_its_last_message_is_refused() {
    // spec: behaviours LG-007
    for codec in OLD_CODECS {
        let mut wrapper = build(1, codec, [NOW; 3]);
        assert!(set_last_offset(&mut wrapper, 1));
        assert_eq!(validate(&wrapper, &options()).kind(), ValidateErrorKind::InvalidRecord);
    }
}

#[test]
fn a_wrapper_at_offset_0_is_taken_as_some_clients_write_it() {
    // spec: behaviours LG-006
    for magic in [0, 1] {
        for target_magic in [magic, 2] {
            let mut wrapper = build(magic, Codec::Gzip, [NOW; 3]);
            assert!(set_last_offset(&mut wrapper, 0));
            let outcome = validate_at(&wrapper, &to_format(target_magic, Codec::Gzip), 7, NOW);
            assert_eq!(outcome.offsets(), [7, 8, 9]);
        }
    }
}

#[test]
fn messages_of_old_clients_with_odd_offsets_are_numbered_anew() {
    // spec: records 5.6
    let inner = |offset: i64| LegacyMessage {
        offset,
        magic: 1,
        attributes: 0,
        timestamp_ms: NOW,
        key: None,
        value: Some(b"value"),
    };
    let mut entries = Vec::new();
    for _ in 0..20 {
        write_legacy_message(&inner(0), &mut entries).unwrap();
    }
    let value = compress(Codec::Gzip, 1, &entries);
    let outcome = validate(&old_wrapper(1, Codec::Gzip, Some(&value)), &to_format(1, Codec::Gzip));
    assert_eq!(outcome.offsets(), (0..20).collect::<Vec<_>>());
    assert_eq!(outcome.validated().stats.converted_records, 20);
}

#[test]
fn a_wrapper_without_value_is_refused() {
    // spec: behaviours LG-014
    for magic in [0, 1] {
        let outcome = validate(&old_wrapper(magic, Codec::Gzip, None), &options());
        assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
    }
}

#[test]
fn a_wrapper_around_nothing_is_refused() {
    // spec: behaviours LG-015
    for magic in [0, 1] {
        for codec in OLD_CODECS {
            let value = compress(codec, magic, b"");
            let outcome = validate(&old_wrapper(magic, codec, Some(&value)), &options());
            assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
        }
    }
}

#[test]
fn what_a_wrapper_may_not_hold_is_refused() {
    // spec: records 2
    let entries = build(1, Codec::None, [NOW; 3]);
    let kind = |entries: &[u8]| {
        let value = compress(Codec::Gzip, 1, entries);
        validate(&old_wrapper(1, Codec::Gzip, Some(&value)), &options()).kind()
    };
    let mut compressed_again = entries.clone();
    compressed_again[17] |= 1;
    assert_eq!(kind(&compressed_again), ValidateErrorKind::InvalidRecord);
    let mut small = entries.clone();
    small[8..12].copy_from_slice(&13_i32.to_be_bytes());
    assert_eq!(kind(&small), ValidateErrorKind::CorruptRecord);
    let zstd = validate(&old_wrapper(1, Codec::Zstd, Some(b"")), &options());
    assert_eq!(zstd.kind(), ValidateErrorKind::InvalidRecord);
    // A message of magic 1 that ends before its fields do, with a right checksum.
    let mut short = vec![0; 30];
    short[11] = 18;
    short[16] = 1;
    short[18..26].copy_from_slice(&NOW.to_be_bytes());
    fix_crc(&mut short);
    assert_eq!(kind(&short), ValidateErrorKind::CorruptRecord);
    // What is cut short at the end is no message, and no error.
    let [good, cut] = [&b""[..], &entries[..20]].map(|behind| {
        let value = compress(Codec::Gzip, 1, &[&entries[..], behind].concat());
        validate(&old_wrapper(1, Codec::Gzip, Some(&value)), &options())
    });
    assert_eq!(good.offsets(), [0, 1, 2]);
    assert_eq!(cut.bytes, good.bytes);
}

#[test]
fn records_in_front_of_one_that_cannot_be_read_are_counted() {
    // As Kafka's meters have it.
    let good = build(2, Codec::None, [NOW; 3]).split_off(61);
    let payload = [&good[..], &[20]].concat();
    for codec in Codec::ALL {
        let batch = around(codec, 4, &compress(codec, 2, &payload));
        for target in [codec, Codec::Lz4] {
            let compacted = ValidateOptions { is_compacted: true, ..to_codec(target) };
            let outcome = validate(&batch, &compacted);
            assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
            assert_eq!(outcome.counters.no_key_compacted_topic, 3);
            assert!(!outcome.result.unwrap_err().is_record_validation());
        }
    }
}

#[test]
fn what_no_builder_writes_is_refused_as_an_illegal_argument() {
    // spec: records 1.3 and behaviours LG-013
    let zstd = validate(&build(1, Codec::None, [NOW; 3]), &to_format(1, Codec::Zstd));
    assert_eq!(zstd.kind(), ValidateErrorKind::IllegalArgument);
    let mut negative = build(2, Codec::None, [NOW; 3]);
    patch(&mut negative, 27, &(-5_i64).to_be_bytes());
    let far = ValidateOptions { timestamp_before_max_ms: i64::MAX, ..to_codec(Codec::Lz4) };
    assert_eq!(validate(&negative, &far).kind(), ValidateErrorKind::IllegalArgument);
    // In place, such a record is taken.
    let plain = ValidateOptions { timestamp_before_max_ms: i64::MAX, ..to_codec(Codec::None) };
    assert_eq!(validate(&negative, &plain).validated().max_timestamp_ms, -1);
}

#[test]
fn a_batch_that_opens_to_more_than_the_limit_is_not_written_anew() {
    let mut builder =
        BatchBuilder::new(BatchOptions { compression: Codec::Zstd.into(), ..Default::default() })
            .unwrap();
    for _ in 0..40 {
        builder.append(NOW, None, Some(&[0; 100_000])).unwrap();
    }
    let batch = finish(&builder);
    let anew = ValidateOptions { opened_bytes_max: 1 << 20, ..to_codec(Codec::Lz4) };
    assert_eq!(validate(&batch, &anew).kind(), ValidateErrorKind::RecordTooLarge);
    // What stays as it is is looked at in pieces.
    let kept = ValidateOptions { opened_bytes_max: 1 << 20, ..options() };
    let outcome = validate(&batch, &kept);
    assert_eq!(outcome.validated().last_offset, 39);
    let opened = outcome.validated().stats.temporary_memory_bytes;
    assert_eq!(opened as usize, builder.size_bytes());
    let compacted = ValidateOptions { is_compacted: true, ..kept };
    assert_eq!(validate(&batch, &compacted).rejected_count(), 40);
}

#[test]
fn rejected_records_are_all_counted_but_not_all_listed() {
    let mut builder =
        BatchBuilder::new(BatchOptions { compression: Codec::Zstd.into(), ..Default::default() })
            .unwrap();
    for _ in 0..50_000 {
        builder.append(5, None, None).unwrap();
    }
    let batch = finish(&builder);
    let error = validate(&batch, &options()).result.unwrap_err();
    assert_eq!((error.rejected_count(), error.rejected().len()), (50_000, batch.len()));
    assert!(batch.len() < 50_000);
}

/// All that can be asked of a validator.
fn all_options() -> Vec<ValidateOptions> {
    let mut all = Vec::new();
    for codec in Codec::ALL {
        for magic in [1, 2] {
            for base in [options(), log_append_time(options())] {
                all.push(ValidateOptions {
                    target_magic: magic,
                    compression: TopicCompression::Fixed(codec.into()),
                    is_compacted: magic == 1,
                    origin: if codec == Codec::Zstd {
                        AppendOrigin::Coordinator
                    } else {
                        AppendOrigin::Client
                    },
                    opened_bytes_max: 1 << 20,
                    ..base
                });
            }
        }
    }
    all.push(ValidateOptions { target_magic: 2, ..options() });
    all
}

#[test]
fn a_flipped_bit_under_a_right_checksum_never_panics() {
    let all = all_options();
    for magic in [0, 1, 2] {
        for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            if magic < 2 && codec == Codec::Zstd {
                continue;
            }
            let good = build(magic, codec, [NOW; 3]);
            for bit in 0..good.len() * 8 {
                let mut bytes = good.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                if let Ok(first) = first_batch_size(&bytes)
                    && let Some(first) = first.and_then(|size| bytes.get_mut(..size))
                    && first.len() >= 21
                {
                    fix_crc(first);
                }
                let options = &all[bit % all.len()];
                let _ = take(&bytes, options);
            }
        }
    }
}

#[test]
fn random_payloads_never_panic() {
    let all = all_options();
    let mut random = 42_u64;
    for round in 0..20_000_usize {
        let payload: Vec<u8> = (0..round % 61)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                // Small numbers make deeper walks.
                random.to_be_bytes()[0] >> (random & 7)
            })
            .collect();
        let codec = Codec::ALL[round % 5];
        let payload = if round % 2 == 0 { compress(codec, 2, &payload) } else { payload };
        let batch = around(codec, (round % 4) as i32, &payload);
        for options in [&all[round % all.len()], &all[round / 7 % all.len()]] {
            let _ = take(&batch, options);
        }
    }
}

/// Analyses and validates; what is accepted is good when it is looked at as a follower would.
fn take(bytes: &[u8], options: &ValidateOptions) -> Option<()> {
    let leader = AnalyseOptions::leader(options.origin, 0, 1 << 20);
    let analysis = analyse(bytes, &leader).ok()?;
    let mut records = bytes[..analysis.valid_bytes].to_vec();
    let mut rebuilt = Vec::new();
    let result = Validator::new().validate_and_assign(&mut records, options, 50, NOW, &mut rebuilt);
    let Ok(validated) = result else {
        assert_eq!(records, bytes[..analysis.valid_bytes]);
        assert_eq!(rebuilt, b"");
        return None;
    };
    let written = validated.bytes(&records, &rebuilt);
    if BatchHeader::parse(written).is_some_and(|header| header.last_offset() < header.base_offset) {
        // A coordinator's batch of no record, which no log takes.
        assert!(options.origin != AppendOrigin::Client && analysis.batch_count == 1);
        return None;
    }
    let follower = analyse(written, &AnalyseOptions::follower(0)).expect("good batches");
    assert_eq!(follower.valid_bytes, written.len());
    assert_eq!(follower.last_offset, if written.is_empty() { -1 } else { validated.last_offset });
    Some(())
}
