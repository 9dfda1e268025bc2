//! What is written into a batch in place: rows VB and LG of the behaviours.

use super::*;
use crate::record::TimestampType::{CreateTime, LogAppendTime};

fn times(bytes: &[u8]) -> Vec<i64> {
    read_all(bytes).iter().map(|record| record.timestamp_ms).collect()
}

#[test]
fn the_leader_epoch_lies_outside_the_checksum() {
    // spec: behaviours VB-014
    let mut batch = build(2, Codec::None, [1, 2, 3]);
    let crc = header_of(&batch).crc;
    assert!(set_leader_epoch(&mut batch, 500));
    let header = header_of(&batch);
    assert_eq!((header.leader_epoch, header.crc), (500, crc));
    assert_eq!(crc_of(&batch), crc);
}

#[test]
fn the_time_of_the_append_covers_all_records() {
    // spec: behaviours VB-015
    for codec in Codec::ALL {
        let mut batch = build(2, codec, [1, 2, 3]);
        assert!(set_max_timestamp(&mut batch, LogAppendTime, 15));
        let header = header_of(&batch);
        assert_eq!((header.timestamp_type(), header.max_timestamp), (LogAppendTime, 15));
        assert_eq!(header.crc, crc_of(&batch));
        assert_eq!(times(&batch), [15; 3]);
    }
}

#[test]
fn the_largest_timestamp_covers_no_record() {
    // spec: behaviours VB-016
    for codec in Codec::ALL {
        let mut batch = build(2, codec, [1, 2, 3]);
        assert!(set_max_timestamp(&mut batch, CreateTime, 15));
        let header = header_of(&batch);
        assert_eq!((header.timestamp_type(), header.max_timestamp), (CreateTime, 15));
        assert_eq!(header.crc, crc_of(&batch));
        assert_eq!(times(&batch), [1, 2, 3]);
    }
}

#[test]
fn attributes_without_a_name_go_only_when_the_header_is_written() {
    // spec: records 1
    let mut batch = build_with(transactional(Codec::Lz4), [1, 2, 3]);
    patch(&mut batch, 21, &[0xff, 0x80 | 0x40 | 0x10 | 3]);
    let before = batch.clone();
    assert!(set_max_timestamp(&mut batch, CreateTime, 3));
    assert_eq!(batch, before);
    assert!(set_max_timestamp(&mut batch, CreateTime, 4));
    assert_eq!(batch[21..23], [0, 0x40 | 0x10 | 3]);
    assert!(set_max_timestamp(&mut batch, LogAppendTime, 4));
    assert_eq!(batch[21..23], [0, 0x40 | 0x10 | 8 | 3]);
}

#[test]
fn the_last_offset_moves_a_wrapper_and_its_messages() {
    // spec: behaviours LG-005
    let mut wrapper = build(1, Codec::Gzip, [1, 2, 3]);
    assert!(set_last_offset(&mut wrapper, 500));
    let offsets: Vec<i64> = read_all(&wrapper).iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [498, 499, 500]);
    assert_eq!(header_of(&wrapper).crc, crc_of(&wrapper));
}

#[test]
fn the_old_formats_have_no_leader_epoch() {
    // spec: behaviours LG-009
    for magic in [0, 1] {
        for codec in [Codec::None, Codec::Gzip] {
            let mut entries = build(magic, codec, [1, 2, 3]);
            let before = entries.clone();
            assert!(!set_leader_epoch(&mut entries, 5));
            assert_eq!(entries, before);
        }
    }
}

#[test]
fn the_time_of_the_append_covers_all_messages_of_a_wrapper() {
    // spec: behaviours LG-010
    for codec in OLD_CODECS {
        let mut wrapper = build(1, codec, [1, 2, 3]);
        assert!(set_max_timestamp(&mut wrapper, LogAppendTime, 15));
        let header = header_of(&wrapper);
        assert_eq!((header.timestamp_type(), header.crc), (LogAppendTime, crc_of(&wrapper)));
        assert_eq!(times(&wrapper), [15; 3]);
    }
}

#[test]
fn the_largest_timestamp_of_a_wrapper_covers_no_message() {
    // spec: behaviours LG-011
    for codec in OLD_CODECS {
        let mut wrapper = build(1, codec, [1, 2, 3]);
        assert!(set_max_timestamp(&mut wrapper, CreateTime, 15));
        let header = header_of(&wrapper);
        assert_eq!((header.max_timestamp, header.crc), (15, crc_of(&wrapper)));
        assert_eq!(times(&wrapper), [1, 2, 3]);
    }
}

#[test]
fn magic_0_has_no_timestamp_to_set() {
    let mut entries = build(0, Codec::None, [1, 2, 3]);
    let before = entries.clone();
    assert!(!set_max_timestamp(&mut entries, LogAppendTime, 15));
    assert_eq!(entries, before);
    for size in 0..26 {
        let short = &mut before.clone()[..size];
        assert!(!set_max_timestamp(short, CreateTime, 15) && !set_leader_epoch(short, 1));
        assert_eq!(set_last_offset(short, 1), size >= 17);
    }
}
