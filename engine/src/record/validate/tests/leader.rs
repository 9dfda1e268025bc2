//! Validation and assignment of offsets by a leader: rows VA and UL of the behaviours.

use super::*;
use crate::record::TimestampType;
use crate::record::builder::{write_end_marker, write_legacy_message};
use crate::record::control::EndMarker;
use crate::record::legacy::LegacyMessage;

use Codec::{Gzip, Lz4, None as Plain, Snappy};

/// A wrapper of one magic around messages of others.
fn wrap(magic: i8, codec: Codec, inner: &[LegacyMessage<'_>]) -> Vec<u8> {
    let mut entries = Vec::new();
    for message in inner {
        write_legacy_message(message, &mut entries).unwrap();
    }
    let value = compress(codec, magic, &entries);
    let wrapper = LegacyMessage {
        offset: inner.last().map_or(0, |message| message.offset),
        magic,
        attributes: codec.id(),
        timestamp_ms: inner.iter().map(|message| message.timestamp_ms).max().unwrap_or(-1),
        key: None,
        value: Some(&value),
    };
    let mut out = Vec::new();
    write_legacy_message(&wrapper, &mut out).unwrap();
    out
}

fn message(offset: i64, magic: i8, timestamp_ms: i64) -> LegacyMessage<'static> {
    let value = Some(&b"value"[..]);
    LegacyMessage { offset, magic, attributes: 0, timestamp_ms, key: None, value }
}

#[test]
fn records_that_all_have_offset_0_are_refused() {
    // spec: behaviours VA-001
    let mut builder =
        BatchBuilder::new(BatchOptions { compression: Gzip.into(), ..Default::default() }).unwrap();
    for _ in 0..20 {
        builder.append(NOW, None, Some(b"value")).unwrap();
    }
    let mut batch = finish(&builder);
    // Records that all have offset 0 leave 0 as the last offset.
    patch(&mut batch, 23, &0_i32.to_be_bytes());
    assert_eq!(validate(&batch, &to_codec(Gzip)).kind(), ValidateErrorKind::InvalidRecord);
}

#[test]
fn two_batches_of_magic_2_are_refused() {
    // spec: behaviours VA-003
    for source in Codec::ALL {
        for target in [Plain, Gzip] {
            let batches = build(2, source, [NOW; 3]).repeat(2);
            let outcome = validate(&batches, &to_codec(target));
            assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
        }
    }
}

#[test]
fn two_compressed_batches_of_the_old_formats_are_refused() {
    // spec: behaviours VA-004
    for magic in [0, 1] {
        for source in OLD_CODECS {
            for target in [Plain, Gzip] {
                let batches = build(magic, source, [NOW; 3]).repeat(2);
                let outcome = validate(&batches, &to_codec(target));
                assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
            }
        }
    }
}

#[test]
fn uncompressed_messages_of_the_old_formats_may_be_many() {
    // spec: behaviours VA-005
    for magic in [0, 1] {
        for target in [Plain, Gzip] {
            for target_magic in [magic, 2] {
                let batches = build(magic, Plain, [NOW; 3]).repeat(2);
                let outcome = validate(&batches, &to_format(target_magic, target));
                assert_eq!(outcome.offsets(), [0, 1, 2, 3, 4, 5]);
            }
        }
    }
}

#[test]
fn nothing_at_all_is_refused() {
    // spec: behaviours VA-007
    for target in [Plain, Gzip] {
        assert_eq!(validate(b"", &to_codec(target)).kind(), ValidateErrorKind::InvalidRecord);
    }
}

#[test]
fn inner_messages_of_another_magic_are_refused_one_by_one() {
    // spec: behaviours VA-008
    for codec in OLD_CODECS {
        for (magic, inner_magic) in [(1, 0), (0, 1)] {
            let inner: Vec<_> = (0..20).map(|offset| message(offset, inner_magic, NOW)).collect();
            let outcome = validate(&wrap(magic, codec, &inner), &to_codec(codec));
            assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
            assert_eq!(outcome.rejected_count(), 20);
            assert_eq!(outcome.counters.invalid_magic, 20);
            let error = outcome.result.unwrap_err();
            assert!(error.is_record_validation());
            assert_eq!(error.rejected()[19].batch_index, 19);
            let rejection = Rejection::Magic { record: inner_magic, batch: magic };
            assert_eq!(error.rejected()[0].rejection, rejection);
        }
    }
}

#[test]
fn a_wrapper_of_magic_1_becomes_a_batch() {
    // spec: behaviours VA-009
    let outcome = validate(&build(1, Gzip, [NOW; 3]), &to_codec(Gzip));
    let header = outcome.header();
    assert_eq!((header.magic, header.codec_id(), header.count), (2, Gzip.id(), 3));
    assert_eq!((header.base_timestamp, header.max_timestamp), (NOW, NOW));
    assert_eq!(header.timestamp_type(), TimestampType::CreateTime);
    let producer = (header.producer_id, header.producer_epoch, header.base_sequence);
    assert_eq!(producer, (-1, -1, -1));
    let validated = outcome.validated();
    assert!(validated.size_may_have_changed);
    assert_eq!(validated.stats.converted_records, 3);
    assert!(validated.stats.temporary_memory_bytes > outcome.bytes.len() as u64);
    assert_eq!((validated.max_timestamp_ms, validated.shallow_offset_of_max_timestamp), (NOW, 2));
    assert_eq!(validated.log_append_time_ms, -1);
}

#[test]
fn a_batch_is_compressed_for_the_topic_and_keeps_its_producer() {
    // spec: behaviours VA-011
    let batch = build_with(transactional(Plain), [NOW - 1, NOW + 1, NOW]);
    let options = ValidateOptions { leader_epoch: 40, ..to_codec(Gzip) };
    let outcome = validate(&batch, &options);
    assert_eq!(outcome.timestamps(), [NOW - 1, NOW + 1, NOW]);
    let header = outcome.header();
    let producer = (header.producer_id, header.producer_epoch, header.base_sequence);
    assert_eq!(producer, (1324, 10, 984));
    assert!(header.is_transactional());
    assert_eq!((header.leader_epoch, header.codec_id()), (40, Gzip.id()));
    let validated = outcome.validated();
    assert_eq!(validated.batch_count, 1);
    assert_eq!(validated.max_timestamp_ms, NOW + 1);
    assert!(validated.size_may_have_changed);
    assert_eq!(validated.stats.converted_records, 3);
}

#[test]
fn messages_of_magic_1_are_wrapped_for_magic_1() {
    // spec: behaviours VA-012
    let entries = build(1, Plain, [NOW - 1, NOW + 1, NOW]);
    let outcome = validate(&entries, &to_format(1, Gzip));
    let validated = outcome.validated();
    assert_eq!((validated.batch_count, outcome.header().magic), (1, 1));
    assert_eq!(validated.max_timestamp_ms, NOW + 1);
    assert_eq!(validated.shallow_offset_of_max_timestamp, 2);
    assert_eq!(validated.stats.converted_records, 3);
    assert_eq!(outcome.timestamps(), [NOW - 1, NOW + 1, NOW]);
}

#[test]
fn a_batch_in_the_topics_codec_stays_as_it_is() {
    // spec: behaviours VA-013
    let batch = build_with(transactional(Gzip), [NOW - 1, NOW + 1, NOW]);
    let options = ValidateOptions { leader_epoch: 40, ..to_codec(Gzip) };
    let outcome = validate_at(&batch, &options, 1_234_567, NOW);
    let validated = outcome.validated();
    assert_eq!(validated.placement, Placement::InPlace(batch.len()));
    assert!(!validated.size_may_have_changed);
    assert_eq!(outcome.bytes[8..12], batch[8..12]);
    assert_eq!(outcome.bytes[16..], batch[16..]);
    assert_eq!((outcome.header().base_offset, outcome.header().leader_epoch), (1_234_567, 40));
    assert_eq!(validated.stats.converted_records, 0);
    assert!(validated.stats.temporary_memory_bytes > 61);
    assert_eq!(validated.max_timestamp_ms, NOW + 1);
    assert_eq!(validated.shallow_offset_of_max_timestamp, 1_234_569);
    assert_eq!(validated.last_offset, 1_234_569);
}

#[test]
fn a_last_offset_that_does_not_fit_the_count_is_refused() {
    // spec: behaviours VA-015
    for codec in Codec::ALL {
        for delta in [0_i32, 15, -3] {
            let mut batch = build(2, codec, [NOW; 3]);
            patch(&mut batch, 23, &delta.to_be_bytes());
            let outcome = validate(&batch, &options());
            assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
            assert_eq!(outcome.counters.invalid_offset, 1);
        }
    }
}

#[test]
fn a_count_that_does_not_fit_the_last_offset_is_refused() {
    // spec: behaviours VA-016
    for codec in Codec::ALL {
        for count in [-3_i32, 0, 5] {
            let mut batch = build(2, codec, [NOW; 3]);
            patch(&mut batch, 57, &count.to_be_bytes());
            let outcome = validate(&batch, &options());
            assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
            assert_eq!(outcome.counters.invalid_offset, 1);
        }
    }
}

#[test]
fn a_header_that_agrees_with_itself_but_not_with_the_records_is_refused() {
    // spec: behaviours VA-017
    for source in Codec::ALL {
        for target in Codec::ALL {
            for (delta, count) in [(5_i32, 6_i32), (1, 2)] {
                let mut batch = build(2, source, [NOW; 3]);
                patch(&mut batch, 23, &delta.to_be_bytes());
                patch(&mut batch, 57, &count.to_be_bytes());
                let outcome = validate(&batch, &to_codec(target));
                assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
                assert!(!outcome.result.unwrap_err().is_record_validation());
            }
        }
    }
}

#[test]
fn timestamps_at_the_limits_are_accepted() {
    // spec: behaviours VA-019
    for codec in Codec::ALL {
        for timestamp in [NOW - 1000, NOW + 1000] {
            let outcome = validate(&build(2, codec, [timestamp; 3]), &options());
            assert_eq!(outcome.validated().max_timestamp_ms, timestamp);
        }
        for timestamp in [NOW - 1001, NOW + 1001] {
            let outcome = validate(&build(2, codec, [timestamp; 3]), &options());
            assert_eq!(outcome.kind(), ValidateErrorKind::InvalidTimestamp);
        }
    }
}

const MINUTE: i64 = 60_000;

#[test]
fn timestamps_too_far_in_the_past_are_refused() {
    // spec: behaviours VA-020
    let day = 24 * 60 * MINUTE;
    for codec in [Plain, Gzip] {
        let options = ValidateOptions { timestamp_before_max_ms: day, ..to_codec(codec) };
        let outcome = validate(&build(2, codec, [NOW - day - 5 * MINUTE; 3]), &options);
        assert_eq!(outcome.kind(), ValidateErrorKind::InvalidTimestamp);
        assert_eq!(outcome.rejected_count(), 3);
    }
}

#[test]
fn timestamps_too_far_in_the_future_are_refused() {
    // spec: behaviours VA-021
    let hour = 60 * MINUTE;
    for codec in [Plain, Gzip] {
        let options = ValidateOptions { timestamp_after_max_ms: hour, ..to_codec(codec) };
        let outcome = validate(&build(2, codec, [NOW + hour + 5 * MINUTE; 3]), &options);
        assert_eq!(outcome.kind(), ValidateErrorKind::InvalidTimestamp);
        assert_eq!(outcome.rejected_count(), 3);
        let error = outcome.result.unwrap_err();
        let message = error.rejected()[2].rejection.to_string();
        assert!(message.starts_with("Timestamp 1700003900000 of message with offset 2 is out"));
        assert!(message.ends_with("within [1699999999000, 1700003600000]"), "{message}");
    }
}

#[test]
fn records_without_timestamps_are_accepted_whatever_the_limits() {
    // spec: behaviours VA-023
    let options =
        ValidateOptions { timestamp_before_max_ms: 0, timestamp_after_max_ms: 0, ..options() };
    for codec in Codec::ALL {
        let outcome = validate(&build(2, codec, [-1; 3]), &options);
        assert_eq!(outcome.timestamps(), [-1; 3]);
        assert_eq!(outcome.validated().max_timestamp_ms, -1);
        assert_eq!(outcome.validated().shallow_offset_of_max_timestamp, -1);
    }
}

#[test]
fn an_inner_message_with_a_wrong_checksum_is_corrupt() {
    // spec: behaviours VA-024
    for magic in [0, 1] {
        for codec in OLD_CODECS {
            let mut entries = build(magic, Plain, [NOW; 3]);
            // The checksum of the first message.
            entries[13] ^= 1;
            let value = compress(codec, magic, &entries);
            let wrapper = LegacyMessage {
                attributes: codec.id(),
                value: Some(&value),
                ..message(2, magic, NOW)
            };
            let mut bytes = Vec::new();
            write_legacy_message(&wrapper, &mut bytes).unwrap();
            let outcome = validate(&bytes, &to_codec(Gzip));
            assert_eq!(outcome.kind(), ValidateErrorKind::CorruptRecord);
            assert!(!outcome.result.unwrap_err().is_record_validation());
            assert_eq!(outcome.counters.invalid_checksum, 1);
        }
    }
}

#[test]
fn a_producer_without_a_sequence_is_refused() {
    // spec: behaviours VA-025
    for source in Codec::ALL {
        for target in Codec::ALL {
            let producer = BatchOptions {
                compression: source.into(),
                producer_id: 1234,
                producer_epoch: 0,
                base_sequence: 0,
                ..BatchOptions::default()
            };
            let mut batch = build_with(producer, [NOW; 3]);
            patch(&mut batch, 53, &(-2_i32).to_be_bytes());
            let outcome = validate(&batch, &to_codec(target));
            assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
            assert_eq!(outcome.counters.invalid_sequence, 1);
        }
    }
}

#[test]
fn offsets_are_given_from_the_end_of_the_log_on() {
    // spec: behaviours VA-027
    for magic in [0, 1, 2] {
        for codec in [Plain, Gzip] {
            let batch = build(magic, codec, [NOW; 3]);
            let outcome = validate_at(&batch, &to_format(magic, codec), 1_234_567, NOW);
            assert_eq!(outcome.offsets(), [1_234_567, 1_234_568, 1_234_569]);
        }
    }
}

#[test]
fn conversion_to_a_newer_format_gives_offsets_and_the_time() {
    // spec: behaviours VA-028
    for (from, to) in [(0, 1), (0, 2), (1, 2)] {
        for codec in [Plain, Gzip] {
            let options = log_append_time(to_format(to, codec));
            let outcome = validate_at(&build(from, codec, [NOW - 9; 3]), &options, 1_234_567, NOW);
            assert_eq!(outcome.offsets(), [1_234_567, 1_234_568, 1_234_569]);
            assert_eq!(outcome.timestamps(), [NOW; 3]);
            let validated = outcome.validated();
            assert_eq!(validated.stats.converted_records, 3);
            assert_eq!((validated.max_timestamp_ms, validated.log_append_time_ms), (NOW, NOW));
            let shallow = if codec == Plain && to == 1 { 1_234_567 } else { 1_234_569 };
            assert_eq!(validated.shallow_offset_of_max_timestamp, shallow);
        }
    }
}

#[test]
fn conversion_to_an_older_format_gives_offsets() {
    // spec: behaviours VA-029
    for (from, to) in [(1, 0), (2, 1), (2, 0)] {
        for codec in [Plain, Gzip] {
            let batch = build(from, codec, [NOW; 3]);
            let outcome = validate_at(&batch, &to_format(to, codec), 1_234_567, NOW);
            assert_eq!(outcome.offsets(), [1_234_567, 1_234_568, 1_234_569]);
            assert_eq!(outcome.header().magic, to);
        }
    }
}

#[test]
fn a_marker_is_never_compressed() {
    // spec: behaviours VA-031
    let mut marker = Vec::new();
    let options = BatchOptions { producer_id: 73, producer_epoch: 13, ..BatchOptions::default() };
    let commit = EndMarker { is_abort: false, coordinator_epoch: 0, timestamp_ms: NOW };
    write_end_marker(&options, &commit, &mut marker).unwrap();
    for target in Codec::ALL {
        let coordinator = ValidateOptions { origin: AppendOrigin::Coordinator, ..to_codec(target) };
        let outcome = validate_at(&marker, &coordinator, 983, NOW);
        assert_eq!(outcome.validated().batch_count, 1);
        assert_eq!(outcome.header().codec_id(), 0);
        assert_eq!(outcome.header().base_offset, 983);
        assert_eq!(outcome.bytes[16..], marker[16..]);
        let client = validate(&marker, &to_codec(target));
        assert_eq!(client.kind(), ValidateErrorKind::InvalidRecord);
        assert_eq!(client.counters.invalid_offset, 1);
    }
}

#[test]
fn transactions_have_no_place_in_old_formats() {
    // spec: behaviours VA-032
    let batch = build_with(transactional(Plain), [NOW; 3]);
    let compressed = validate(&batch, &to_format(1, Gzip));
    assert_eq!(compressed.kind(), ValidateErrorKind::UnsupportedForMessageFormat);
    let plain = validate(&batch, &to_format(1, Plain));
    assert_eq!(plain.kind(), ValidateErrorKind::IllegalArgument);
}

#[test]
fn idempotence_has_no_place_in_old_formats() {
    // spec: behaviours VA-033
    for target in [Plain, Gzip] {
        let producer = BatchOptions { is_transactional: false, ..transactional(Plain) };
        let outcome = validate(&build_with(producer, [NOW; 3]), &to_format(1, target));
        assert_eq!(outcome.kind(), ValidateErrorKind::UnsupportedForMessageFormat);
    }
}

#[test]
fn one_bad_timestamp_names_the_whole_refusal() {
    // spec: behaviours VA-035
    let mut inner = vec![message(0, 1, 1200)];
    inner.extend((1..6).map(|offset| message(offset, 0, -1)));
    let outcome = validate_at(&wrap(1, Gzip, &inner), &to_format(0, Gzip), 0, 0);
    assert_eq!(outcome.kind(), ValidateErrorKind::InvalidTimestamp);
    assert_eq!(outcome.rejected_count(), 6);
    assert_eq!(outcome.counters.invalid_magic, 5);
    assert!(outcome.result.unwrap_err().is_record_validation());
}

#[test]
fn another_level_of_the_same_codec_is_no_reason_to_compress_anew() {
    // spec: behaviours VA-036
    let level_9 = Compression::with_level(Gzip, 9).unwrap();
    let source = BatchOptions { compression: level_9, ..BatchOptions::default() };
    let batch = build_with(source, [NOW; 3]);
    let outcome = validate(&batch, &to_codec(Gzip));
    assert_eq!(outcome.bytes[61..], batch[61..]);
    assert!(!outcome.validated().size_may_have_changed);
}

#[test]
fn another_codec_is_written_as_if_it_had_come_so() {
    // spec: behaviours VA-037
    let source = Compression::with_level(Gzip, 9).unwrap();
    let target = Compression::with_level(Lz4, 17).unwrap();
    let batch = build_with(BatchOptions { compression: source, ..Default::default() }, [NOW; 3]);
    let options = ValidateOptions { compression: TopicCompression::Fixed(target), ..options() };
    let outcome = validate(&batch, &options);
    let direct = build_with(BatchOptions { compression: target, ..Default::default() }, [NOW; 3]);
    assert_eq!(outcome.bytes, direct);
    assert!(outcome.validated().size_may_have_changed);
}

#[test]
fn messages_without_timestamps_get_the_time_of_the_append() {
    // spec: behaviours VA-039
    for magic in [1, 2] {
        let outcome = validate(&build(0, Gzip, [-1; 3]), &log_append_time(to_format(magic, Gzip)));
        let header = outcome.header();
        assert_eq!(header.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(header.max_timestamp, NOW);
        assert_eq!(header.base_timestamp, if magic == 2 { -1 } else { NOW });
        assert_eq!(outcome.timestamps(), [NOW; 3]);
        assert_eq!(outcome.validated().stats.converted_records, 3);
        assert_eq!(outcome.validated().max_timestamp_ms, NOW);
    }
}

#[test]
fn magic_0_stays_without_timestamps() {
    // spec: behaviours VA-040
    let entries = build(0, Plain, [-1; 3]);
    let outcome = validate(&entries, &log_append_time(to_format(0, Plain)));
    assert_eq!(outcome.validated().max_timestamp_ms, -1);
    assert_eq!(outcome.header().timestamp_type(), TimestampType::None);
    assert_eq!(outcome.bytes, entries);
}

#[test]
fn the_time_of_the_append_is_written_in_place() {
    // spec: behaviours VA-041
    for magic in [1, 2] {
        let batch = build(magic, Plain, [1234; 3]);
        let outcome = validate(&batch, &log_append_time(to_format(magic, Plain)));
        let validated = outcome.validated();
        assert_eq!(validated.placement, Placement::InPlace(batch.len()));
        assert_eq!((validated.max_timestamp_ms, validated.log_append_time_ms), (NOW, NOW));
        assert_eq!(validated.stats, ValidationStats::default());
        assert_eq!(outcome.timestamps(), [NOW; 3]);
        let shallow = if magic == 1 { 0 } else { 2 };
        assert_eq!(validated.shallow_offset_of_max_timestamp, shallow);
    }
}

/// What a conversion tells of the largest timestamp, from a batch of magic 2.
fn max_of(target_magic: i8, codec: Codec, times: [i64; 3], has_append_time: bool) -> (i64, i64) {
    let options = to_format(target_magic, codec);
    let options = if has_append_time { log_append_time(options) } else { options };
    // Another codec, so that magic 2 is written anew too.
    let source = if codec == Plain { Snappy } else { Plain };
    let validated = validate(&build(2, source, times), &options).result.unwrap();
    assert!(validated.size_may_have_changed);
    (validated.max_timestamp_ms, validated.shallow_offset_of_max_timestamp)
}

#[test]
fn the_time_of_the_append_is_the_largest_timestamp_of_any_format() {
    // spec: behaviours BU-011
    for magic in [0, 1, 2] {
        for codec in [Plain, Gzip] {
            let shallow = if magic < 2 && codec == Plain { 0 } else { 2 };
            let max = max_of(magic, codec, [NOW, NOW + 2, NOW + 1], true);
            assert_eq!(max, (NOW, shallow), "magic {magic} {codec}");
        }
    }
}

#[test]
fn the_largest_timestamp_is_told_with_the_last_offset_of_its_batch() {
    // spec: behaviours BU-012
    let times = [NOW, NOW + 2, NOW + 1];
    for (magic, codec, expected) in [
        (1, Plain, (NOW + 2, 1)),
        (1, Gzip, (NOW + 2, 2)),
        (2, Plain, (NOW + 2, 2)),
        (2, Gzip, (NOW + 2, 2)),
        (0, Plain, (-1, -1)),
        (0, Gzip, (-1, -1)),
    ] {
        assert_eq!(max_of(magic, codec, times, false), expected, "magic {magic} {codec}");
    }
}

#[test]
fn no_timestamp_has_no_offset() {
    // spec: behaviours BU-013
    for magic in [0, 1, 2] {
        for codec in [Plain, Gzip] {
            assert_eq!(max_of(magic, codec, [-1; 3], false), (-1, -1));
        }
    }
    let outcome = validate(&build(2, Plain, [-1; 3]), &to_codec(Gzip));
    assert_eq!(outcome.header().base_timestamp, -1);
}

#[test]
fn the_leader_epoch_is_given_in_place_and_anew() {
    // spec: behaviours VA-043
    for source in Codec::ALL {
        for target in Codec::ALL {
            let options = ValidateOptions { leader_epoch: 7, ..to_codec(target) };
            let outcome = validate(&build(2, source, [NOW; 3]), &options);
            assert_eq!(outcome.header().leader_epoch, 7);
            let is_same = source == target;
            assert_eq!(outcome.validated().size_may_have_changed, !is_same);
        }
    }
}

/// Records with and without key, as `keyed` says.
fn keyed(codec: Codec, keyed: &[bool]) -> Vec<u8> {
    let options = BatchOptions { compression: codec.into(), ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options).unwrap();
    for &has_key in keyed {
        builder.append(NOW, has_key.then_some(b"key"), Some(b"value")).unwrap();
    }
    finish(&builder)
}

#[test]
fn a_compacted_topic_takes_no_record_without_key() {
    // spec: behaviours UL-080
    for (codec, keys, index) in
        [(Plain, &[false, true][..], 0), (Plain, &[false], 0), (Gzip, &[true, false], 1)]
    {
        let options = ValidateOptions { is_compacted: true, ..options() };
        let outcome = validate(&keyed(codec, keys), &options);
        assert_eq!(outcome.kind(), ValidateErrorKind::InvalidRecord);
        assert_eq!(outcome.counters.no_key_compacted_topic, 1);
        let error = outcome.result.unwrap_err();
        assert!(error.is_record_validation());
        let [rejected] = error.rejected() else { panic!("one record") };
        assert_eq!(rejected.batch_index, index);
        let message = rejected.rejection.to_string();
        assert!(message.starts_with("Compacted topic cannot accept message without key"));
        validate(&keyed(codec, &[true; 3]), &options).validated();
    }
}

#[test]
fn a_batch_that_has_grown_too_large_is_refused() {
    // spec: records 5.7
    let batch = build(2, Gzip, [NOW; 3]);
    let plain = build(2, Plain, [NOW; 3]).len() as u32;
    let options = |size| ValidateOptions { max_message_bytes: size, ..to_codec(Plain) };
    assert_eq!(validate(&batch, &options(plain)).bytes.len(), plain as usize);
    assert_eq!(validate(&batch, &options(plain - 1)).kind(), ValidateErrorKind::RecordTooLarge);
    // What stays as it is was looked at before.
    validate(&build(2, Plain, [NOW; 3]), &options(10)).validated();
}

#[test]
fn a_flag_of_log_append_time_is_taken_back_unless_there_is_no_timestamp() {
    // spec: records 5.4
    for codec in Codec::ALL {
        let flagged = |time| {
            let options = BatchOptions {
                compression: codec.into(),
                log_append_time_ms: Some(time),
                ..BatchOptions::default()
            };
            build_with(options, [NOW; 3])
        };
        let outcome = validate(&flagged(NOW - 5), &to_codec(codec));
        assert_eq!(outcome.header().timestamp_type(), TimestampType::CreateTime);
        assert_eq!(outcome.header().max_timestamp, NOW - 5);
        for outcome in [
            validate(&flagged(-1), &to_codec(codec)),
            validate(&flagged(NOW), &log_append_time(to_codec(codec))),
        ] {
            assert_eq!(outcome.kind(), ValidateErrorKind::InvalidTimestamp);
            assert_eq!(outcome.rejected_count(), 3);
            let error = outcome.result.unwrap_err();
            assert_eq!(error.rejected()[0].rejection, Rejection::LogAppendTime);
        }
    }
}

#[test]
fn a_batch_without_records_has_no_timestamp() {
    // Only a coordinator's passes with a count of zero.
    for codec in [Plain, Gzip] {
        let options = BatchOptions {
            compression: codec.into(),
            log_append_time_ms: Some(5),
            ..BatchOptions::default()
        };
        let mut batch = build_with(options, [NOW; 3]);
        patch(&mut batch, 57, &0_i32.to_be_bytes());
        let rules = ValidateOptions { origin: AppendOrigin::Coordinator, ..to_codec(codec) };
        let mut rebuilt = Vec::new();
        let validated =
            Validator::new().validate_and_assign(&mut batch, &rules, 7, NOW, &mut rebuilt).unwrap();
        assert_eq!((validated.max_timestamp_ms, validated.last_offset), (-1, 6));
        assert_eq!(header_of(&batch).max_timestamp, -1);
    }
}

#[test]
fn compressed_records_with_odd_offsets_are_numbered_anew() {
    // spec: records 5.6
    let odd = |codec: Codec| {
        let options = BatchOptions { compression: codec.into(), ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options).unwrap();
        for (offset, value) in [0, 5, 7].into_iter().zip(VALUES) {
            builder.append_at(offset, NOW, None, Some(value), std::iter::empty()).unwrap();
        }
        let mut batch = finish(&builder);
        patch(&mut batch, 23, &2_i32.to_be_bytes());
        batch
    };
    for codec in [Gzip, Snappy, Lz4, Codec::Zstd] {
        let outcome = validate_at(&odd(codec), &options(), 100, NOW);
        assert_eq!(outcome.offsets(), [100, 101, 102]);
        assert_eq!(outcome.validated().stats.converted_records, 3);
    }
    // spec: records 5.5. Uncompressed, they keep what they have.
    let outcome = validate_at(&odd(Plain), &options(), 100, NOW);
    assert_eq!(outcome.offsets(), [100, 105, 107]);
    assert_eq!(outcome.validated().last_offset, 102);
}
