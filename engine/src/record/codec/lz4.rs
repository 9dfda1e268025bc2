//! What does an lz4 payload look like?
//!
//! One frame of the LZ4 frame format, little-endian:
//!
//! ```text
//! +-------------+-----+----+--------+----+----------------------------+----------+------------+
//! | 04 22 4d 18 | FLG | BD | [size] | HC | { size, bytes, [sum] } ... | 00000000 | [checksum] |
//! +-------------+-----+----+--------+----+----------------------------+----------+------------+
//!   magic         1     1    8        1      4            4            end mark   4
//! ```
//!
//! The high bit of a block's size says that its bytes are stored as they are. HC is the second
//! lowest byte of the XXH32 of FLG up to HC; in messages of magic 0 old clients took it over the
//! frame magic too, so there it is written that way and never verified. Kafka's reader knows
//! neither linked blocks nor dictionaries, reads the content checksum without verifying it, and
//! never looks behind the end mark.

use super::block::{Block, Coding};
use super::xxh32::xxh32;
use super::{Codec, CodecError};
use crate::bytes;

const FRAME_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

const FLG_RESERVED: u8 = 0x03;
const FLG_CONTENT_CHECKSUM: u8 = 0x04;
const FLG_CONTENT_SIZE: u8 = 0x08;
const FLG_BLOCK_CHECKSUM: u8 = 0x10;
const FLG_INDEPENDENT: u8 = 0x20;
const FLG_VERSION_1: u8 = 0x40;
const FLG_VERSION_MASK: u8 = 0xc0;

const BD_64_KIB: u8 = 0x40;
const BD_RESERVED: u8 = 0x8f;

const SIZE_STORED: u32 = 0x8000_0000;
const WRITTEN_BLOCK_SIZE: usize = 64 * 1024;

/// No run of `n` compressed bytes opens to more than `255 * n`: that is what one more length byte
/// adds.
const EXPANSION_MAX: usize = 255;

/// A frame whose header is read, at the next block.
pub(super) struct Frame<'a> {
    rest: &'a [u8],
    block_size_max: usize,
    has_block_checksums: bool,
    has_content_checksum: bool,
    is_finished: bool,
}

impl<'a> Frame<'a> {
    /// Reads the frame header of a payload in a batch of this magic.
    pub(super) fn open(input: &'a [u8], magic: i8) -> Result<Self, CodecError> {
        let mut rest = input;
        if take(&mut rest, 4)? != FRAME_MAGIC {
            return Err(corrupt("the payload does not start with the magic of a frame"));
        }
        let descriptor = rest;
        let &[flg, bd] = take(&mut rest, 2)? else { return Err(ended()) };
        let block_size_max = check_descriptor(flg, bd)?;
        if flg & FLG_CONTENT_SIZE != 0 {
            take(&mut rest, 8)?;
        }
        let descriptor_size = descriptor.len() - rest.len();
        let stored = take(&mut rest, 1)?;
        // Kafka quirk: clients before 0.10 hashed the frame magic too (KAFKA-3160), so a header
        // checksum of magic 0 says nothing. spec: records 4.3
        if magic > 0 {
            let computed = header_checksum(descriptor.get(..descriptor_size).unwrap_or_default());
            if stored != [computed] {
                return Err(corrupt("the header checksum does not match"));
            }
        }
        Ok(Frame {
            rest,
            block_size_max,
            has_block_checksums: flg & FLG_BLOCK_CHECKSUM != 0,
            has_content_checksum: flg & FLG_CONTENT_CHECKSUM != 0,
            is_finished: false,
        })
    }

    /// Bytes that no block has taken yet.
    pub(super) fn unread_size(&self) -> usize {
        self.rest.len()
    }

    /// The next block; `None` at the end mark.
    pub(super) fn next_block(&mut self) -> Result<Option<Block<'a>>, CodecError> {
        if self.is_finished {
            return Ok(None);
        }
        let word = take_u32(&mut self.rest)?;
        let size = usize::try_from(word & !SIZE_STORED).unwrap_or(usize::MAX);
        if size == 0 {
            self.is_finished = true;
            if self.has_content_checksum {
                // Read but not verified. spec: records 4.3
                take(&mut self.rest, 4)?;
            }
            return Ok(None);
        }
        if size > self.block_size_max {
            let size_max = self.block_size_max;
            return Err(corrupt(format_args!("a block of {size} bytes, at most {size_max} fit")));
        }
        let bytes = take(&mut self.rest, size)?;
        if self.has_block_checksums && take_u32(&mut self.rest)? != xxh32(bytes) {
            return Err(corrupt("a block checksum does not match"));
        }
        // Kafka quirk: a block that opens to nothing reads as the end of the payload.
        if word & SIZE_STORED == 0 && matches!(bytes, [0..=0x0f]) {
            self.is_finished = true;
            return Ok(None);
        }
        Ok(Some(if word & SIZE_STORED != 0 {
            Block { coding: Coding::Stored, bytes, size_max: size }
        } else {
            let size_max = self.block_size_max.min(size.saturating_mul(EXPANSION_MAX));
            Block { coding: Coding::Lz4, bytes, size_max }
        }))
    }
}

/// Checks FLG and BD; gives the largest size of a block, opened or not.
fn check_descriptor(flg: u8, bd: u8) -> Result<usize, CodecError> {
    if flg & FLG_RESERVED != 0 {
        return Err(corrupt("a reserved bit of the frame flags is set"));
    }
    if flg & FLG_INDEPENDENT == 0 {
        return Err(corrupt("the blocks are linked, which Kafka cannot read"));
    }
    if flg & FLG_VERSION_MASK != FLG_VERSION_1 {
        return Err(corrupt("the frame version is not 1"));
    }
    if bd & BD_RESERVED != 0 {
        return Err(corrupt("a reserved bit of the block descriptor is set"));
    }
    match bd >> 4 {
        4 => Ok(64 * 1024),
        5 => Ok(256 * 1024),
        6 => Ok(1024 * 1024),
        7 => Ok(4 * 1024 * 1024),
        code => Err(corrupt(format_args!("the block size code is {code}, not 4 to 7"))),
    }
}

fn header_checksum(bytes: &[u8]) -> u8 {
    let [_, _, second, _] = xxh32(bytes).to_be_bytes();
    second
}

fn take<'a>(rest: &mut &'a [u8], size: usize) -> Result<&'a [u8], CodecError> {
    let (taken, behind) = rest.split_at_checked(size).ok_or_else(ended)?;
    *rest = behind;
    Ok(taken)
}

fn take_u32(rest: &mut &[u8]) -> Result<u32, CodecError> {
    bytes::get_u32_le(take(rest, 4)?, 0).ok_or_else(ended)
}

fn ended() -> CodecError {
    corrupt("the frame ends before its end mark")
}

fn corrupt(what: impl std::fmt::Display) -> CodecError {
    CodecError::corrupt(Codec::Lz4, what)
}

/// Writes frames; keeps the hash table and one block.
pub(super) struct Writer {
    table: lz4_flex::block::CompressTable,
    block: Vec<u8>,
}

impl Writer {
    pub(super) fn new() -> Self {
        let size_max = lz4_flex::block::get_maximum_output_size(WRITTEN_BLOCK_SIZE);
        Writer { table: lz4_flex::block::CompressTable::large(), block: vec![0; size_max] }
    }

    /// Appends a frame that holds `input`, with the header checksum that goes with `magic`.
    pub(super) fn write(
        &mut self,
        magic: i8,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let [a, b, c, d] = FRAME_MAGIC;
        let header = [a, b, c, d, FLG_VERSION_1 | FLG_INDEPENDENT, BD_64_KIB];
        // Kafka quirk: magic 0 keeps the checksum that its first clients expect. spec: records 4.3
        let hashed = if magic == 0 { header.as_slice() } else { header.split_at(4).1 };
        out.extend_from_slice(&header);
        out.push(header_checksum(hashed));
        for piece in input.chunks(WRITTEN_BLOCK_SIZE) {
            self.write_block(piece, out)?;
        }
        out.extend_from_slice(&[0; 4]);
        Ok(())
    }

    fn write_block(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        let size =
            lz4_flex::block::compress_into_with_table(piece, &mut self.block, &mut self.table)
                .map_err(corrupt)?;
        let (flag, bytes) = match self.block.get(..size) {
            Some(smaller) if size < piece.len() => (0, smaller),
            _ => (SIZE_STORED, piece),
        };
        let size = u32::try_from(bytes.len()).map_err(corrupt)?;
        out.extend_from_slice(&bytes::u32_le(size | flag));
        out.extend_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation)]

    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write;

    use super::super::Decompressor;
    use super::super::tests::{compress, open, sample};
    use super::*;

    const HEADER_MAGIC_2: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
    const HEADER_MAGIC_0: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x1a];

    /// A frame of these flags, with the right header checksum.
    fn frame(flg: u8, bd: u8, content_size: &[u8], behind: &[u8]) -> Vec<u8> {
        let descriptor = [&[flg, bd], content_size].concat();
        let checksum = header_checksum(&descriptor);
        [&FRAME_MAGIC, descriptor.as_slice(), &[checksum], behind].concat()
    }

    fn stored(bytes: &[u8]) -> Vec<u8> {
        [&u32_le(bytes.len() as u32 | SIZE_STORED), bytes].concat()
    }

    fn u32_le(value: u32) -> [u8; 4] {
        bytes::u32_le(value)
    }

    fn reason(magic: i8, payload: &[u8]) -> String {
        open(Codec::Lz4, magic, payload).unwrap_err().reason().to_owned()
    }

    // spec: records 10
    #[test]
    fn small_records_are_stored_in_one_block_as_kafka_stores_them() {
        let records = b"\x1e\0\0\0\x08key1\x0cvalue1\0\x22\0\xe1\xbf\x22\x02\x08key2\x0cvalue2\0";
        let expected = [&HEADER_MAGIC_2[..], &[0x24, 0, 0, 0x80], records, &[0, 0, 0, 0]].concat();
        assert_eq!(compress(Codec::Lz4, 2, records), expected);
    }

    // spec: records 4.3; behaviours CO-004, CO-005, CO-008
    #[test]
    fn magic_0_writes_the_header_checksum_of_old_clients_and_reads_any() {
        let payload = compress(Codec::Lz4, 0, b"records");
        assert!(payload.starts_with(&HEADER_MAGIC_0));
        assert_eq!(open(Codec::Lz4, 0, &payload).unwrap(), b"records");
        for magic in [1, 2] {
            assert!(reason(magic, &payload).contains("header checksum"));
        }
        for magic in [1, 2] {
            let mut right = compress(Codec::Lz4, magic, b"records");
            assert!(right.starts_with(&HEADER_MAGIC_2));
            assert_eq!(open(Codec::Lz4, 0, &right).unwrap(), b"records");
            right[6] ^= 1;
            assert!(reason(magic, &right).contains("header checksum"));
            assert_eq!(open(Codec::Lz4, 0, &right).unwrap(), b"records");
        }
    }

    #[test]
    fn blocks_hold_64_kib_and_end_with_the_end_mark() {
        let input = sample(200_000);
        let payload = compress(Codec::Lz4, 2, &input);
        let mut frame = Frame::open(&payload, 2).unwrap();
        let mut sizes = Vec::new();
        while let Some(block) = frame.next_block().unwrap() {
            sizes.push(block.decode(&mut vec![0; 65536]).unwrap().unwrap());
        }
        assert_eq!(sizes, [65536, 65536, 65536, 200_000 - 3 * 65536]);
        assert!(frame.rest.is_empty());
        assert_eq!(compress(Codec::Lz4, 2, b""), [&HEADER_MAGIC_2[..], &[0; 4]].concat());
    }

    #[test]
    fn what_does_not_compress_is_stored_block_by_block() {
        // spec: behaviours CO-013
        let mut seed = 7_u32;
        let mut noise = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24) as u8
        };
        let input: Vec<u8> = (0..150_000).map(|_| noise()).collect();
        let payload = compress(Codec::Lz4, 2, &input);
        let blocks: Vec<u8> = input.chunks(65536).flat_map(stored).collect();
        assert_eq!(payload, [&HEADER_MAGIC_2[..], &blocks, &[0; 4]].concat());
        assert_eq!(open(Codec::Lz4, 2, &payload).unwrap(), input);
    }

    #[test]
    fn frames_of_other_writers_open_with_every_field_they_may_have() {
        let input = sample(300_000);
        for block_size in
            [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB]
        {
            for checksums in [false, true] {
                let info = FrameInfo::new()
                    .block_size(block_size)
                    .block_mode(BlockMode::Independent)
                    .content_size(checksums.then_some(300_000))
                    .block_checksums(checksums)
                    .content_checksum(checksums);
                let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(&input).unwrap();
                let mut payload = encoder.finish().unwrap();
                assert_eq!(open(Codec::Lz4, 2, &payload).unwrap(), input);
                // The content checksum, which comes last, is read and ignored.
                *payload.last_mut().unwrap() ^= u8::from(checksums);
                assert_eq!(open(Codec::Lz4, 2, &payload).unwrap(), input);
            }
        }
    }

    #[test]
    fn linked_blocks_are_refused() {
        let info = FrameInfo::new().block_mode(BlockMode::Linked);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&sample(100_000)).unwrap();
        assert!(reason(2, &encoder.finish().unwrap()).contains("linked"));
    }

    #[test]
    fn headers_that_kafka_refuses_are_refused() {
        // spec: behaviours CO-006, CO-012
        let end = [0; 4];
        assert_eq!(open(Codec::Lz4, 2, &frame(0x60, 0x40, &[], &end)).unwrap(), b"");
        for (flg, bd, why) in [
            (0x61, 0x40, "reserved bit of the frame flags"),
            (0x62, 0x40, "reserved bit of the frame flags"),
            (0x40, 0x40, "linked"),
            (0x20, 0x40, "version"),
            (0xa0, 0x40, "version"),
            (0xe0, 0x40, "version"),
            (0x60, 0xc0, "reserved bit of the block"),
            (0x60, 0x41, "reserved bit of the block"),
            (0x60, 0x48, "reserved bit of the block"),
            (0x60, 0x30, "block size code is 3"),
            (0x60, 0x00, "block size code is 0"),
        ] {
            for magic in [0, 2] {
                let reason = reason(magic, &frame(flg, bd, &[], &end));
                assert!(reason.contains(why), "{flg:#x} {bd:#x}: {reason}");
            }
        }
        for size in 0..6 {
            assert!(reason(2, &HEADER_MAGIC_2[..size]).contains("ends before"), "{size}");
        }
        let mut other_magic = frame(0x60, 0x40, &[], &end);
        other_magic[0] = 0x05;
        assert!(reason(2, &other_magic).contains("magic of a frame"));
    }

    #[test]
    fn the_header_checksum_covers_the_content_size() {
        let end = [0; 4];
        let mut payload = frame(0x68, 0x40, &[9; 8], &end);
        assert_eq!(open(Codec::Lz4, 2, &payload).unwrap(), b"");
        payload[8] = 8;
        assert!(reason(2, &payload).contains("header checksum"));
        assert_eq!(open(Codec::Lz4, 0, &payload).unwrap(), b"");
    }

    #[test]
    fn a_block_checksum_is_verified_over_the_compressed_bytes() {
        let block = [stored(b"abc"), u32_le(xxh32(b"abc")).to_vec()].concat();
        let payload = frame(0x70, 0x40, &[], &[&block[..], &[0; 4]].concat());
        assert_eq!(open(Codec::Lz4, 2, &payload).unwrap(), b"abc");
        let mut flipped = payload.clone();
        flipped[14] ^= 1;
        assert!(reason(2, &flipped).contains("block checksum"));
    }

    #[test]
    fn both_end_marks_end_and_nothing_behind_them_is_read() {
        for end in [0, SIZE_STORED] {
            let behind = [&stored(b"abc")[..], &u32_le(end), b"what follows"].concat();
            let payload = frame(0x60, 0x40, &[], &behind);
            assert_eq!(open(Codec::Lz4, 2, &payload).unwrap(), b"abc");
        }
        let two = [compress(Codec::Lz4, 2, b"one"), compress(Codec::Lz4, 2, b"two")].concat();
        assert_eq!(open(Codec::Lz4, 2, &two).unwrap(), b"one");
    }

    #[test]
    fn a_frame_without_end_mark_or_flagged_checksum_is_refused() {
        // spec: behaviours CO-010
        let payload = frame(0x60, 0x40, &[], &stored(b"abc"));
        assert!(reason(2, &payload).contains("ends before its end mark"));
        let mut decompressor = Decompressor::new();
        let mut stream = decompressor.stream(Codec::Lz4, 2, &payload, u64::MAX).unwrap();
        let mut found = [0; 10];
        assert_eq!(stream.fill(&mut found), Ok(3));
        assert_eq!(&found[..3], b"abc");
        assert!(stream.fill(&mut found).is_err());
        let payload = frame(0x64, 0x40, &[], &[&stored(b"abc")[..], &[0; 7]].concat());
        assert!(reason(2, &payload).contains("ends before its end mark"));
    }

    #[test]
    fn a_block_that_opens_to_nothing_is_the_end() {
        for token in [0, 0x0f] {
            let behind = [&stored(b"abc")[..], &[1, 0, 0, 0, token], &stored(b"def")].concat();
            let payload = frame(0x60, 0x40, &[], &behind);
            assert_eq!(open(Codec::Lz4, 2, &payload).unwrap(), b"abc");
        }
        // A token that asks for a byte which is not there.
        let behind = [&stored(b"abc")[..], &[1, 0, 0, 0, 0x10, 0, 0, 0, 0]].concat();
        assert!(open(Codec::Lz4, 2, &frame(0x60, 0x40, &[], &behind)).is_err());
    }

    #[test]
    fn a_block_larger_than_the_frame_says_is_refused() {
        // spec: behaviours CO-009
        let behind = [&u32_le(0x0100_0000)[..], &[1; 100]].concat();
        assert!(reason(2, &frame(0x60, 0x40, &[], &behind)).contains("16777216"));
        let largest = vec![1; 65536];
        let behind = [stored(&largest), vec![0; 4]].concat();
        assert_eq!(open(Codec::Lz4, 2, &frame(0x60, 0x40, &[], &behind)).unwrap(), largest);
        let behind = [stored(&[1; 65537]), vec![0; 4]].concat();
        assert!(reason(2, &frame(0x60, 0x40, &[], &behind)).contains("65537"));
        // One that is small but opens to more.
        let block = lz4_flex::block::compress(&vec![0; 65537]);
        let behind = [&u32_le(block.len() as u32)[..], &block, &[0; 4]].concat();
        assert!(open(Codec::Lz4, 2, &frame(0x60, 0x40, &[], &behind)).is_err());
        assert!(open(Codec::Lz4, 2, &frame(0x60, 0x50, &[], &behind)).is_ok());
    }
}
