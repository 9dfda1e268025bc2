//! Batches in memory: rows MI of the behaviours.

use super::*;

fn kinds(bytes: &[u8]) -> Vec<Result<i64, ValidateErrorKind>> {
    Batches::new(bytes)
        .map(|batch| batch.map(|batch| batch.header.base_offset).map_err(|error| error.kind()))
        .collect()
}

#[test]
fn a_batch_that_is_cut_short_is_left_out() {
    // spec: behaviours MI-001
    for magic in [0, 1, 2] {
        let one = build_one(magic);
        let two = one.repeat(2);
        for cut in 1..one.len() {
            assert_eq!(kinds(&two[..two.len() - cut]), [Ok(0)], "magic {magic}, {cut} bytes fewer");
        }
        assert_eq!(kinds(&two), [Ok(0), Ok(0)]);
    }
}

/// One batch: in the old formats, one entry.
fn build_one(magic: i8) -> Vec<u8> {
    let mut bytes = build(magic, Codec::None, [NOW; 3]);
    let first = header_of(&bytes).size_bytes;
    bytes.truncate(first as usize);
    bytes
}

#[test]
fn a_size_below_any_batch_is_corrupt() {
    // spec: behaviours MI-002
    let mut bytes = build_one(2);
    bytes[8..12].copy_from_slice(&9_i32.to_be_bytes());
    assert_eq!(kinds(&bytes), [Err(ValidateErrorKind::CorruptRecord)]);
    // The size is looked at before the bytes are found too few.
    assert_eq!(kinds(&bytes[..12]), [Err(ValidateErrorKind::CorruptRecord)]);
    assert_eq!(kinds(&bytes[..11]), []);
}

#[test]
fn a_size_above_the_callers_limit_is_corrupt() {
    // spec: behaviours MI-004
    let bytes = build_one(2);
    assert!(bytes.len() > 60);
    let first = Batches::with_size_max(&bytes, 60).next().unwrap();
    assert_eq!(first.unwrap_err().kind(), ValidateErrorKind::CorruptRecord);
    let size = bytes.len() as i32 - 12;
    assert!(Batches::with_size_max(&bytes, size).next().unwrap().is_ok());
}

fn as_follower(bytes: &[u8]) -> Result<usize, ValidateErrorKind> {
    let analysis = analyse(bytes, &AnalyseOptions::follower(0));
    analysis.map(|analysis| analysis.valid_bytes).map_err(|error| error.kind())
}

#[test]
fn eleven_bytes_are_nothing_to_append() {
    // spec: behaviours MI-005
    assert_eq!(as_follower(&[0xff; 11]), Ok(0));
    assert_eq!(as_follower(&[0; 11]), Ok(0));
}

#[test]
fn a_follower_refuses_a_size_below_any_batch() {
    // spec: behaviours MI-006
    let mut bytes = build_one(2);
    bytes[8..12].copy_from_slice(&13_i32.to_be_bytes());
    assert_eq!(as_follower(&bytes), Err(ValidateErrorKind::CorruptRecord));
}

#[test]
fn a_follower_refuses_an_unknown_magic() {
    // spec: behaviours MI-008
    for magic in [0xff, 3] {
        let mut bytes = build_one(2);
        bytes[16] = magic;
        assert_eq!(as_follower(&bytes), Err(ValidateErrorKind::CorruptRecord));
    }
}

#[test]
fn a_follower_leaves_out_what_is_announced_but_not_there() {
    // spec: behaviours MI-009
    let mut bytes = build_one(2);
    let size = bytes.len() as i32;
    bytes[8..12].copy_from_slice(&size.to_be_bytes());
    assert_eq!(as_follower(&bytes), Ok(0));
}

#[test]
fn too_few_bytes_tell_no_size() {
    // spec: behaviours MI-010
    let bytes = build_one(2);
    for size in [1, 12, 16] {
        assert_eq!(first_batch_size(&bytes[..size]), Ok(None));
    }
    assert_eq!(first_batch_size(&bytes[..17]), Ok(Some(bytes.len())));
}

#[test]
fn an_unknown_magic_tells_no_size() {
    // spec: behaviours MI-012
    let mut bytes = build_one(2);
    bytes[16] = 10;
    let error = first_batch_size(&bytes).unwrap_err();
    assert_eq!(error.kind(), ValidateErrorKind::CorruptRecord);
}

#[test]
fn a_size_that_is_too_small_is_no_size() {
    // spec: behaviours MI-013
    let options = BatchOptions::default();
    let mut bytes = build_with(options, [NOW; 3]);
    bytes[11] = 0;
    let error = first_batch_size(&bytes).unwrap_err();
    assert_eq!(error.kind(), ValidateErrorKind::CorruptRecord);
}

#[test]
fn an_empty_buffer_has_no_batches() {
    // spec: behaviours MI-014
    assert_eq!(kinds(&b"records"[0..0]), []);
    assert_eq!(Batches::new(b"").rest(), b"");
}

#[test]
fn a_whole_batch_too_small_for_its_header_is_corrupt() {
    // spec: records 1, validity; records 2 for a message of magic 1 without room for its fields
    for (magic, size) in [(2, 60), (2, 26), (1, 26), (1, 33)] {
        let mut bytes = vec![0; size];
        bytes[8..12].copy_from_slice(&(size as i32 - 12).to_be_bytes());
        bytes[16] = magic;
        if magic == 1 {
            fix_crc(&mut bytes);
        }
        assert_eq!(kinds(&bytes), [Err(ValidateErrorKind::CorruptRecord)], "magic {magic}");
    }
}
