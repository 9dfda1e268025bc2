//! What holds for every batch that a producer can send.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct AnyRecord {
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

fn any_bytes(size: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..size)
}

fn any_record() -> impl Strategy<Value = AnyRecord> {
    let header = (any_bytes(9), prop::option::of(any_bytes(100)));
    let headers = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(header, 0..3)];
    (
        prop_oneof![Just(-1), NOW - 100..NOW + 100],
        prop::option::of(any_bytes(50)),
        prop::option::of(any_bytes(500)),
        headers,
    )
        .prop_map(|(timestamp, key, value, headers)| AnyRecord {
            timestamp,
            key,
            value,
            headers,
        })
}

fn build_any(options: BatchOptions, records: &[AnyRecord]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(options).unwrap();
    for record in records {
        let headers = record.headers.iter().map(|(k, v)| (k.as_slice(), v.as_deref()));
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        builder.append_at(builder.next_offset(), record.timestamp, key, value, headers).unwrap();
    }
    finish(&builder)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn records_are_the_same_at_their_new_offsets_through_every_codec(
        records in prop::collection::vec(any_record(), 1..40),
        source in prop::sample::select(Codec::ALL.to_vec()),
        target in prop::sample::select(Codec::ALL.to_vec()),
        first in 0..i64::MAX / 2,
        has_append_time in any::<bool>(),
        is_transactional in any::<bool>(),
    ) {
        let from = if is_transactional {
            transactional(source)
        } else {
            BatchOptions { compression: source.into(), ..BatchOptions::default() }
        };
        let batch = build_any(from, &records);
        let rules = ValidateOptions { leader_epoch: 3, ..to_codec(target) };
        let rules = if has_append_time { log_append_time(rules) } else { rules };
        let outcome = validate_at(&batch, &rules, first, NOW);

        let read = read_all(&outcome.bytes);
        prop_assert_eq!(read.len(), records.len());
        for ((read, record), offset) in read.iter().zip(&records).zip(first..) {
            let time = if has_append_time { NOW } else { record.timestamp };
            prop_assert_eq!((read.offset, read.timestamp_ms), (offset, time));
            prop_assert_eq!((&read.key, &read.value), (&record.key, &record.value));
            prop_assert_eq!(&read.headers, &record.headers);
        }
        let header = outcome.header();
        let max = records.iter().map(|record| record.timestamp).max().unwrap();
        prop_assert_eq!(header.max_timestamp, if has_append_time { NOW } else { max });
        prop_assert_eq!(header.leader_epoch, 3);
        prop_assert_eq!(header.codec_id(), target.id());
        prop_assert_eq!(header.producer_id, from.producer_id);
        prop_assert_eq!(header.is_transactional(), is_transactional);
        let validated = outcome.validated();
        prop_assert_eq!(validated.max_timestamp_ms, header.max_timestamp);
        prop_assert_eq!(validated.size_may_have_changed, source != target);

        // As if it had been written there at once.
        let direct = BatchOptions {
            base_offset: first,
            leader_epoch: 3,
            compression: target.into(),
            log_append_time_ms: has_append_time.then_some(NOW),
            ..from
        };
        prop_assert_eq!(&outcome.bytes, &build_any(direct, &records));

        // What a leader has written, a follower takes as it is.
        let analysis = analyse(&outcome.bytes, &AnalyseOptions::follower(3)).unwrap();
        prop_assert_eq!(analysis.valid_bytes, outcome.bytes.len());
        prop_assert_eq!(analysis.first_offset, Some(first));
        prop_assert_eq!(analysis.last_offset, validated.last_offset);
    }

    #[test]
    fn a_validator_remembers_nothing(
        batches in prop::collection::vec(
            (prop::collection::vec(any_record(), 1..9), 0..5_usize, 0..5_usize), 1..8,
        ),
    ) {
        let (mut validator, mut rebuilt) = (Validator::new(), Vec::new());
        for (records, source, target) in batches {
            let compression = Codec::ALL[source].into();
            let batch = build_any(BatchOptions { compression, ..Default::default() }, &records);
            let rules = to_codec(Codec::ALL[target]);
            let mut bytes = batch.clone();
            let validated =
                validator.validate_and_assign(&mut bytes, &rules, 9, NOW, &mut rebuilt).unwrap();
            let fresh = validate_at(&batch, &rules, 9, NOW);
            prop_assert_eq!(validated.bytes(&bytes, &rebuilt), fresh.bytes.as_slice());
            prop_assert_eq!(validated.stats, fresh.validated().stats);
        }
    }

    #[test]
    fn damage_is_an_error_or_an_accepted_batch(
        records in prop::collection::vec(any_record(), 1..5),
        source in prop::sample::select(Codec::ALL.to_vec()),
        target in prop::sample::select(Codec::ALL.to_vec()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let compression = source.into();
        let mut batch = build_any(BatchOptions { compression, ..Default::default() }, &records);
        for (at, byte) in damage {
            let at = at.index(batch.len());
            // Frame and format stay, which analysis looks at.
            if !(8..12).contains(&at) && at != 16 {
                batch[at] = byte;
            }
        }
        fix_crc(&mut batch);
        let rules = ValidateOptions { opened_bytes_max: 1 << 20, ..to_codec(target) };
        let mut bytes = batch.clone();
        let result =
            Validator::new().validate_and_assign(&mut bytes, &rules, 7, NOW, &mut Vec::new());
        if result.is_err() {
            prop_assert_eq!(bytes, batch);
        }
    }
}
