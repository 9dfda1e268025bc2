//! The look at batches before the log takes them: rows UL of the behaviours, and segments 6.4.

use super::*;

fn kind(bytes: &[u8], options: &AnalyseOptions) -> ValidateErrorKind {
    analyse(bytes, options).unwrap_err().kind()
}

fn leader() -> AnalyseOptions {
    AnalyseOptions::leader(AppendOrigin::Client, 0, 1 << 20)
}

/// One record at this offset, of this leader epoch.
fn at(offset: i64, leader_epoch: i32) -> Vec<u8> {
    let options = BatchOptions { base_offset: offset, leader_epoch, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options).unwrap();
    builder.append(NOW + offset, None, Some(b"a")).unwrap();
    finish(&builder)
}

#[test]
fn a_leader_takes_no_batch_above_the_limit_and_a_follower_takes_any() {
    // spec: behaviours UL-079
    let batch = at(0, 0);
    let size = batch.len() as u32;
    let leader = |size_max| AnalyseOptions { max_message_bytes: Some(size_max), ..leader() };
    assert_eq!(kind(&batch, &leader(size - 1)), ValidateErrorKind::RecordTooLarge);
    assert_eq!(analyse(&batch, &leader(size)).unwrap().valid_bytes, batch.len());
    let as_follower = analyse(&batch, &AnalyseOptions::follower(0)).unwrap();
    assert_eq!(as_follower.valid_bytes, batch.len());
}

#[test]
fn random_bytes_are_refused_or_nothing() {
    // spec: behaviours UL-081
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..20_000 {
        let bytes: Vec<u8> = (0..round % 128 + 1)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random.to_be_bytes()[0]
            })
            .collect();
        match analyse(&bytes, &AnalyseOptions::follower(0)) {
            Ok(analysis) => assert_eq!((analysis.valid_bytes, analysis.last_offset), (0, -1)),
            Err(error) => assert_eq!(error.kind(), ValidateErrorKind::CorruptRecord),
        }
    }
}

#[test]
fn a_followers_offsets_must_rise() {
    // spec: behaviours UL-099
    let batches: Vec<u8> = [0, 1, 3, 2, 4].into_iter().flat_map(|offset| at(offset, 0)).collect();
    let error = kind(&batches, &AnalyseOptions::follower(0));
    assert_eq!(error, ValidateErrorKind::OffsetsOutOfOrder);
    assert_eq!(error.code(), -1);
    let twice = at(4, 0).repeat(2);
    let error = kind(&twice, &AnalyseOptions::follower(0));
    assert_eq!(error, ValidateErrorKind::OffsetsOutOfOrder);
    // Offsets that a leader gives anew may be anything.
    let options = AnalyseOptions { origin: AppendOrigin::Coordinator, ..leader() };
    assert!(!analyse(&batches, &options).unwrap().is_monotonic);
}

#[test]
fn a_fetch_answer_is_taken_up_to_its_last_whole_batch() {
    let batches: Vec<u8> = [10, 20, 30].into_iter().flat_map(|offset| at(offset, 3)).collect();
    let analysis = analyse(&batches[..batches.len() - 1], &AnalyseOptions::follower(3)).unwrap();
    assert_eq!(analysis.valid_bytes, batches.len() / 3 * 2);
    assert_eq!((analysis.batch_count, analysis.first_offset), (2, Some(10)));
    assert_eq!((analysis.last_offset_of_first_batch, analysis.last_offset), (10, 20));
    assert_eq!(analysis.last_leader_epoch, 3);
    assert_eq!(analysis.max_timestamp_ms, NOW + 20);
    assert_eq!(analysis.shallow_offset_of_max_timestamp, 20);
    assert_eq!(analysis.first.unwrap().base_offset, 10);
    assert!(analysis.is_monotonic);
}

#[test]
fn a_follower_takes_nothing_from_a_later_leader_on() {
    // spec: segments 6.4
    let batches = [at(0, 1), at(1, 2), at(2, 3), at(3, 2)].concat();
    let analysis = analyse(&batches, &AnalyseOptions::follower(2)).unwrap();
    assert_eq!(analysis.valid_bytes, batches.len() / 2);
    assert_eq!((analysis.skipped_count, analysis.last_offset), (2, 1));
    let all_later = analyse(&batches, &AnalyseOptions::follower(0)).unwrap();
    assert_eq!((all_later.valid_bytes, all_later.skipped_count), (0, 4));
    assert_eq!((all_later.first_offset, all_later.last_offset_of_first_batch), (None, -1));
    // Batches without an epoch are of nobody.
    let without = analyse(&at(0, -1), &AnalyseOptions::follower(0)).unwrap();
    assert_eq!((without.batch_count, without.last_leader_epoch), (1, -1));
    // What is left out is not looked into.
    let mut damaged = [at(0, 1), at(1, 5)].concat();
    *damaged.last_mut().unwrap() ^= 1;
    assert_eq!(analyse(&damaged, &AnalyseOptions::follower(1)).unwrap().batch_count, 1);
}

#[test]
fn a_producers_batch_begins_at_offset_0() {
    // spec: segments 6.4
    assert_eq!(kind(&at(1, -1), &leader()), ValidateErrorKind::InvalidRecord);
    let coordinator = AnalyseOptions { origin: AppendOrigin::Coordinator, ..leader() };
    assert_eq!(analyse(&at(1, -1), &coordinator).unwrap().first_offset, Some(1));
    // An entry of an old format tells its last offset only.
    let old = &build(1, Codec::None, [NOW; 3])[..];
    let analysis = analyse(old, &leader()).unwrap();
    assert_eq!((analysis.batch_count, analysis.first_offset), (3, None));
    assert_eq!(analysis.first_or_last_offset_of_first_batch(), 0);
}

#[test]
fn the_metadata_logs_leader_gives_its_epoch_and_offsets() {
    // spec: segments 6.4
    let options = AnalyseOptions::leader(AppendOrigin::RaftLeader, 5, 1 << 20);
    assert!(options.keeps_offsets);
    assert_eq!(analyse(&at(9, 5), &options).unwrap().first_offset, Some(9));
    assert_eq!(kind(&at(9, 4), &options), ValidateErrorKind::InvalidRecord);
    let falling = [at(9, 5), at(8, 5)].concat();
    assert_eq!(kind(&falling, &options), ValidateErrorKind::OffsetsOutOfOrder);
}

#[test]
fn a_flipped_bit_under_the_checksum_is_corrupt() {
    // spec: behaviours LG-003
    for magic in [0, 1, 2] {
        let good = build(magic, Codec::Gzip, [NOW; 3]);
        let (begin, covered) = if magic == 2 { (21, 17..21) } else { (16, 12..16) };
        for at in covered.chain(begin..good.len()) {
            // The magic says which checksum it is.
            if at == 16 {
                continue;
            }
            let mut bytes = good.clone();
            bytes[at] ^= 0x10;
            let error = kind(&bytes, &AnalyseOptions::follower(0));
            assert_eq!(error, ValidateErrorKind::CorruptRecord, "magic {magic}, byte {at}");
            assert_eq!(error.code(), 2);
        }
    }
}

#[test]
fn a_last_offset_that_was_changed_is_seen_by_the_checksum() {
    // spec: behaviours VB-012
    let mut batch = build(2, Codec::None, [NOW; 3]);
    batch[23..27].copy_from_slice(&23_i32.to_be_bytes());
    assert_eq!(kind(&batch, &leader()), ValidateErrorKind::CorruptRecord);
}

#[test]
fn an_unknown_codec_is_an_illegal_argument() {
    // spec: behaviours VB-019
    for id in 5..=7 {
        for magic in [0, 1, 2] {
            let mut bytes = build(magic, Codec::None, [NOW; 3]);
            let size = header_of(&bytes).size_bytes as usize;
            bytes.truncate(size);
            patch(&mut bytes, if magic == 2 { 22 } else { 17 }, &[id]);
            assert_eq!(kind(&bytes, &leader()), ValidateErrorKind::IllegalArgument);
            assert_eq!(validate(&bytes, &options()).kind(), ValidateErrorKind::IllegalArgument);
        }
    }
}

#[test]
fn the_source_codec_is_that_of_the_last_compressed_batch() {
    // spec: records 5
    let batches = [
        build(1, Codec::Gzip, [NOW; 3]),
        build(1, Codec::Snappy, [NOW; 3]),
        build(1, Codec::None, [NOW; 3]),
    ]
    .concat();
    assert_eq!(analyse(&batches, &leader()).unwrap().source_codec, Codec::Snappy);
}

#[test]
fn a_produce_request_carries_one_batch_of_magic_2() {
    // spec: records 9
    let kind =
        |bytes: &[u8], version| check_produce_request(bytes, version).map_err(|error| error.kind());
    let good = build(2, Codec::Zstd, [NOW; 3]);
    assert_eq!(kind(&good, 7), Ok(()));
    assert_eq!(kind(&good, 6), Err(ValidateErrorKind::UnsupportedCompressionType));
    assert_eq!(kind(&build(2, Codec::Lz4, [NOW; 3]), 3), Ok(()));
    for bad in [Vec::new(), good.repeat(2), build(1, Codec::None, [NOW; 3]), good[..60].to_vec()] {
        assert_eq!(kind(&bad, 9), Err(ValidateErrorKind::InvalidRecord));
        assert_eq!(kind(&bad, 2), Ok(()));
    }
    let mut behind = good.clone();
    behind.extend([0; 17]);
    assert_eq!(kind(&behind, 9), Err(ValidateErrorKind::CorruptRecord));
}
