//! What does a snappy payload look like?
//!
//! Snappy blocks in the framing of xerial's snappy-java, big-endian (Google's own framing is
//! another one, and Kafka does not read it):
//!
//! ```text
//! +-------------------------+---------+------------+-----------------------+
//! | 82 53 4e 41 50 50 59 00 | version | compatible | { size, bytes } ...    |
//! | magic                   | 4       | version 4  |   4                   |
//! +-------------------------+---------+------------+-----------------------+
//! ```
//!
//! A whole header may stand again where a size is due: streams laid end to end. A payload without
//! the magic is one raw snappy block, as some clients send it. Each block begins with its own
//! opened size.

use super::block::{Block, Coding};
use super::{Codec, CodecError};
use crate::bytes;

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const MAGIC_HEAD: i32 = i32::from_be_bytes([0x82, b'S', b'N', b'A']);
const HEADER_SIZE: usize = 16;
const VERSION: i32 = 1;
/// What snappy-java takes for the largest sensible block.
const CHUNK_SIZE_MAX: i32 = 512 * 1024 * 1024;
const WRITTEN_BLOCK_SIZE: usize = 32 * 1024;
/// The best that snappy can do is a copy of 64 bytes in 3.
const EXPANSION_MAX: usize = 22;

/// The blocks of a payload that are still unread.
pub(super) enum Chunks<'a> {
    Raw(Option<&'a [u8]>),
    Xerial(&'a [u8]),
}

impl<'a> Chunks<'a> {
    /// Tells xerial framing from a raw block.
    pub(super) fn open(input: &'a [u8]) -> Result<Self, CodecError> {
        if input.is_empty() {
            return Err(corrupt("the payload is empty"));
        }
        // Kafka quirk: the versions in the first header are not looked at. spec: records 4.2
        match input.split_at_checked(HEADER_SIZE) {
            Some((header, rest)) if header.starts_with(&MAGIC) => Ok(Chunks::Xerial(rest)),
            _ => Ok(Chunks::Raw(Some(input))),
        }
    }

    /// The next block; `None` at the end.
    pub(super) fn next_block(&mut self) -> Result<Option<Block<'a>>, CodecError> {
        let chunk = match self {
            Chunks::Raw(block) => block.take(),
            Chunks::Xerial(rest) => next_chunk(rest)?,
        };
        chunk.map(block).transpose()
    }
}

fn next_chunk<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, CodecError> {
    loop {
        // One to three bytes behind the last chunk are not looked at. spec: records 4.2
        let Some(size) = bytes::get_i32(rest, 0) else { return Ok(None) };
        if size == MAGIC_HEAD {
            let Some((header, behind)) = rest.split_at_checked(HEADER_SIZE) else {
                return Err(corrupt("a second stream ends within its header"));
            };
            *rest = behind;
            // Kafka quirk: a header of another magic is read over. snappy-java takes it for the end
            // of the stream once, but is asked again before anyone looks.
            if !header.starts_with(&MAGIC) {
                continue;
            }
            if bytes::get_i32(header, MAGIC.len()).is_none_or(|version| version < VERSION) {
                return Err(corrupt("a second stream has a version below 1"));
            }
            continue;
        }
        if !(0..=CHUNK_SIZE_MAX).contains(&size) {
            return Err(corrupt(format_args!("a chunk claims {size} bytes")));
        }
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let behind_size = rest.split_at_checked(4).map_or(&[][..], |(_, behind)| behind);
        let Some((chunk, behind)) = behind_size.split_at_checked(size) else {
            let present = behind_size.len();
            return Err(corrupt(format_args!("a chunk of {size} bytes ends after {present}")));
        };
        *rest = behind;
        return Ok(Some(chunk));
    }
}

fn block(bytes: &[u8]) -> Result<Block<'_>, CodecError> {
    if bytes.is_empty() {
        return Err(corrupt("a chunk has no bytes"));
    }
    let size_max = snap::raw::decompress_len(bytes).map_err(corrupt)?;
    // Memory for it is taken before it is opened, so a block must not lie about its size.
    if size_max > bytes.len().saturating_mul(EXPANSION_MAX) {
        let size = bytes.len();
        return Err(corrupt(format_args!("a block of {size} bytes claims to open to {size_max}")));
    }
    Ok(Block { coding: Coding::Snappy, bytes, size_max })
}

fn corrupt(what: impl std::fmt::Display) -> CodecError {
    CodecError::corrupt(Codec::Snappy, what)
}

/// Writes xerial framing; keeps the hash table and one block.
pub(super) struct Writer {
    encoder: snap::raw::Encoder,
    block: Vec<u8>,
}

impl Writer {
    pub(super) fn new() -> Self {
        let size_max = snap::raw::max_compress_len(WRITTEN_BLOCK_SIZE);
        Writer { encoder: snap::raw::Encoder::new(), block: vec![0; size_max] }
    }

    /// Appends a stream that holds `input`.
    pub(super) fn write(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&VERSION.to_be_bytes());
        for piece in input.chunks(WRITTEN_BLOCK_SIZE) {
            let size = self.encoder.compress(piece, &mut self.block).map_err(corrupt)?;
            out.extend_from_slice(&i32::try_from(size).map_err(corrupt)?.to_be_bytes());
            out.extend_from_slice(self.block.get(..size).unwrap_or_default());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decompressor;
    use super::super::tests::{compress, open, sample};
    use super::*;

    const HEADER: [u8; 16] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];

    fn raw(bytes: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(bytes).unwrap()
    }

    fn chunk(bytes: &[u8]) -> Vec<u8> {
        let block = raw(bytes);
        [&u32::try_from(block.len()).unwrap().to_be_bytes()[..], &block].concat()
    }

    fn reason(payload: &[u8]) -> String {
        open(Codec::Snappy, 2, payload).unwrap_err().reason().to_owned()
    }

    // spec: records 4.2
    #[test]
    fn the_writer_frames_blocks_of_32_kib_behind_the_xerial_header() {
        let input = sample(70_000);
        let payload = compress(Codec::Snappy, 2, &input);
        let expected =
            [&HEADER[..], &chunk(&input[..32768]), &chunk(&input[32768..65536])].concat();
        assert!(payload.starts_with(&expected));
        assert_eq!(payload[expected.len()..], chunk(&input[65536..]));
        assert_eq!(compress(Codec::Snappy, 2, b""), HEADER);
    }

    #[test]
    fn a_payload_without_the_magic_is_one_raw_block() {
        let input = sample(50_000);
        assert_eq!(open(Codec::Snappy, 2, &raw(&input)).unwrap(), input);
        assert_eq!(open(Codec::Snappy, 2, &raw(b"x")).unwrap(), b"x");
        assert_eq!(open(Codec::Snappy, 2, &[0]).unwrap(), b"");
        // Fewer than 16 bytes are raw even where they begin like a header, and then make no sense.
        assert!(open(Codec::Snappy, 2, &HEADER[..15]).is_err());
        assert!(reason(b"").contains("empty"));
    }

    #[test]
    fn the_first_header_may_have_any_version_and_a_second_one_needs_1_or_more() {
        // spec: behaviours CO-016
        let (one, two) = (sample(70_000), sample(1000));
        let payload = [compress(Codec::Snappy, 2, &one), compress(Codec::Snappy, 2, &two)].concat();
        assert_eq!(open(Codec::Snappy, 2, &payload).unwrap(), [one, two].concat());
        let mut first = HEADER;
        first[8..].fill(0);
        let (one, two) = (chunk(b"one"), chunk(b"two"));
        let payload = [&first[..], &one, &HEADER, &two].concat();
        assert_eq!(open(Codec::Snappy, 2, &payload).unwrap(), b"onetwo");
        let payload = [&HEADER[..], &one, &first, &two].concat();
        assert!(reason(&payload).contains("version below 1"));
        let payload = [&HEADER[..], &HEADER, &HEADER, &one].concat();
        assert_eq!(open(Codec::Snappy, 2, &payload).unwrap(), b"one");
    }

    #[test]
    fn a_second_header_that_is_cut_fails_and_one_of_other_magic_is_read_over() {
        let one = chunk(b"one");
        for size in 4..16 {
            let payload = [&HEADER[..], &one, &HEADER[..size]].concat();
            assert!(reason(&payload).contains("within its header"));
        }
        let mut other = HEADER;
        other[7] = 1;
        let payload = [&HEADER[..], &one, &other, &chunk(b"two")].concat();
        assert_eq!(open(Codec::Snappy, 2, &payload).unwrap(), b"onetwo");
        assert!(
            reason(&[&HEADER[..], &one, &other, b"junk that follows"].concat()).contains("claims")
        );
    }

    #[test]
    fn up_to_three_bytes_behind_the_last_chunk_are_ignored() {
        for size in 0..4 {
            let payload = [&HEADER[..], &chunk(b"one"), &[9; 4][..size]].concat();
            assert_eq!(open(Codec::Snappy, 2, &payload).unwrap(), b"one");
        }
    }

    #[test]
    fn chunk_sizes_that_lie_are_refused() {
        for (size, why) in [
            (-1, "claims -1"),
            (i32::MIN, "claims"),
            (CHUNK_SIZE_MAX + 1, "claims 536870913"),
            (CHUNK_SIZE_MAX, "ends after 5"),
            (6, "ends after 5"),
            (0, "no bytes"),
        ] {
            let payload = [&HEADER[..], &size.to_be_bytes(), &raw(b"one")].concat();
            assert!(reason(&payload).contains(why), "{size}: {}", reason(&payload));
        }
        // One byte short of its block: the block's own check finds it.
        assert!(
            open(Codec::Snappy, 2, &[&HEADER[..], &[0, 0, 0, 4], &raw(b"one")].concat()).is_err()
        );
    }

    #[test]
    fn a_block_that_lies_about_its_size_takes_no_memory() {
        // Claims 2^32 - 1 bytes.
        let payload = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, b'x'];
        assert!(reason(&payload).contains("claims to open to 4294967295"));
        let mut decompressor = Decompressor::new();
        assert!(decompressor.decompress(Codec::Snappy, 2, &payload, usize::MAX).is_err());
        assert_eq!(decompressor.kept_bytes(), 0);
    }

    #[test]
    fn the_most_that_snappy_can_expand_is_allowed() {
        let zeros = vec![0; 1 << 16];
        let block = raw(&zeros);
        assert!(block.len() * EXPANSION_MAX > zeros.len());
        assert_eq!(open(Codec::Snappy, 2, &block).unwrap(), zeros);
    }

    #[test]
    fn googles_framing_is_refused() {
        let payload = [b"\xff\x06\0\0sNaPpY\0", chunk(b"records").as_slice()].concat();
        assert!(open(Codec::Snappy, 2, &payload).is_err());
    }
}
