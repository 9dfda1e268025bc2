//! What does a zstd payload look like?
//!
//! One or more frames of RFC 8878, little-endian; skippable frames may stand between them:
//!
//! ```text
//! +-------------+-----+----------+---------+--------+-----------------------------+------------+
//! | 28 b5 2f fd | FHD | [window] | [dict.] | [size] | { size, kind, last; bytes } | [checksum] |
//! +-------------+-----+----------+---------+--------+-----------------------------+------------+
//!   magic         1     1          0..4      0..8       3                           4
//! ```
//!
//! Kafka's writer streams: no content size, no checksum. Its reader verifies a checksum that is
//! there, and refuses windows above 128 MiB. A frame that is cut short is refused here wherever it
//! stands; Java lets one pass that follows a whole frame closely, and what it held is lost.

use ::zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use ::zstd::zstd_safe::{
    CCtx, DCtx, InBuffer, OutBuffer, ResetDirective, compress_bound, get_error_name, is_error_kind,
};

use super::scratch::Scratch;
use super::{Codec, CodecError};
use crate::bytes;

const FRAME_MAGIC: u32 = 0xfd2f_b528;
const SKIPPABLE_MAGIC: u32 = 0x184d_2a50;
const WINDOW_MAX: u64 = (1 << 27) + 1;
const BLOCK_SIZE_MAX: u64 = 128 * 1024;

/// What a payload can ask of memory, told by its framing alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// More bytes than this it cannot open to.
    pub(super) size_max: u64,
    /// The largest window of its frames: what a streaming reader keeps.
    pub(super) window_bytes: u64,
}

/// Walks the framing of a payload: every frame, every block, nothing opened.
pub(super) fn outline(input: &[u8]) -> Result<Outline, CodecError> {
    let mut outline = Outline::default();
    let mut rest = input;
    while !rest.is_empty() {
        let magic = bytes::get_u32_le(rest, 0).ok_or_else(ended)?;
        if magic & !0xf == SKIPPABLE_MAGIC {
            let size = bytes::get_u32_le(rest, 4).ok_or_else(ended)?;
            skip(&mut rest, 8)?;
            skip(&mut rest, u64::from(size))?;
        } else if magic == FRAME_MAGIC {
            skip(&mut rest, 4)?;
            outline_frame(&mut rest, &mut outline)?;
        } else {
            return Err(corrupt("no magic of a frame where one is due"));
        }
    }
    Ok(outline)
}

fn outline_frame(rest: &mut &[u8], outline: &mut Outline) -> Result<(), CodecError> {
    let descriptor = take(rest, 1)?;
    let is_single_segment = descriptor & 0x20 != 0;
    let window_byte = if is_single_segment { None } else { Some(take(rest, 1)?) };
    let dictionary_size = match descriptor & 3 {
        3 => 4,
        size => usize::try_from(size).unwrap_or_default(),
    };
    take(rest, dictionary_size)?;
    let content_size = match descriptor >> 6 {
        0 if !is_single_segment => u64::MAX,
        0 => take(rest, 1)?,
        1 => take(rest, 2)? + 256,
        2 => take(rest, 4)?,
        _ => take(rest, 8)?,
    };
    let window_bytes = match window_byte {
        None => content_size,
        Some(byte) => {
            let base = 1_u64 << (10 + (byte >> 3));
            base + base / 8 * (byte & 7)
        }
    };
    if window_bytes > WINDOW_MAX {
        return Err(corrupt("a frame needs a window above 128 MiB"));
    }
    let blocks_size_max = outline_blocks(rest, window_bytes.min(BLOCK_SIZE_MAX))?;
    if descriptor & 4 != 0 {
        skip(rest, 4)?;
    }
    outline.size_max = outline.size_max.saturating_add(blocks_size_max.min(content_size));
    outline.window_bytes = outline.window_bytes.max(window_bytes);
    Ok(())
}

fn outline_blocks(rest: &mut &[u8], block_size_max: u64) -> Result<u64, CodecError> {
    let mut size_max = 0_u64;
    loop {
        let header = take(rest, 3)?;
        let size = header >> 3;
        let (stored, opened) = match (header >> 1) & 3 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, block_size_max),
            _ => return Err(corrupt("a block is of the reserved kind")),
        };
        skip(rest, stored)?;
        size_max = size_max.saturating_add(opened);
        if header & 1 != 0 {
            return Ok(size_max);
        }
    }
}

/// The little-endian number of up to eight bytes that stands next.
fn take(rest: &mut &[u8], size: usize) -> Result<u64, CodecError> {
    let (number, behind) = rest.split_at_checked(size).ok_or_else(ended)?;
    *rest = behind;
    Ok(number.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

fn skip(rest: &mut &[u8], size: u64) -> Result<(), CodecError> {
    let size = usize::try_from(size).map_err(|_| ended())?;
    *rest = rest.get(size..).ok_or_else(ended)?;
    Ok(())
}

/// Opens all frames into `scratch` at once; gives the size.
pub(super) fn open_whole(
    context: &mut DCtx<'static>,
    input: &[u8],
    scratch: &mut Scratch,
    limit_bytes: usize,
) -> Result<usize, CodecError> {
    let outline = outline(input)?;
    let size_max = usize::try_from(outline.size_max).unwrap_or(usize::MAX);
    let ceiling = size_max.min(limit_bytes);
    // Neither a content size nor the number of blocks is proof that bytes will come: so begin with
    // what is usual, and double for what does come. The scratch is kept, so the second payload of a
    // kind finds it large enough.
    let mut size = ceiling.min(scratch.size().max(input.len().saturating_mul(4)).max(64 * 1024));
    loop {
        let room = scratch.room(0, size, size).get_mut(..size).unwrap_or_default();
        match context.decompress(room, input) {
            Ok(opened) => return Ok(opened),
            Err(code) if is_error_kind(code, ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall) => {
                if size < ceiling {
                    size = size.saturating_mul(2).min(ceiling);
                } else if ceiling < size_max {
                    let limit_bytes = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
                    return Err(CodecError::limit(Codec::Zstd, limit_bytes));
                } else {
                    return Err(failed(code));
                }
            }
            Err(code) => return Err(failed(code)),
        }
    }
}

/// The frames of a payload that are still unread, opened in the memory of their window.
pub(super) struct Frames<'a> {
    context: &'a mut DCtx<'static>,
    input: &'a [u8],
    position: usize,
    is_within_frame: bool,
}

impl<'a> Frames<'a> {
    pub(super) fn open(
        input: &'a [u8],
        context: &'a mut DCtx<'static>,
    ) -> Result<Self, CodecError> {
        context.reset(ResetDirective::SessionOnly).map_err(failed)?;
        Ok(Frames { context, input, position: 0, is_within_frame: false })
    }

    /// Opens some bytes into the front of `out`; 0 only at the end.
    pub(super) fn fill(&mut self, out: &mut [u8]) -> Result<usize, CodecError> {
        let mut target = OutBuffer::around(out);
        let mut source = InBuffer::around(self.input);
        source.set_pos(self.position);
        while self.is_within_frame || self.position < self.input.len() {
            if target.capacity() == 0 {
                break;
            }
            let hint = self.context.decompress_stream(&mut target, &mut source).map_err(failed)?;
            let consumed = source.pos() - self.position;
            self.position = source.pos();
            self.is_within_frame = hint != 0;
            if target.pos() > 0 {
                break;
            }
            if self.is_within_frame && consumed == 0 {
                return Err(ended());
            }
        }
        Ok(target.pos())
    }
}

fn failed(code: usize) -> CodecError {
    corrupt(get_error_name(code))
}

fn ended() -> CodecError {
    corrupt("the payload ends within a frame")
}

fn corrupt(what: impl std::fmt::Display) -> CodecError {
    CodecError::corrupt(Codec::Zstd, what)
}

/// Appends one frame that holds `input`, without content size and checksum.
pub(super) fn write(
    context: &mut CCtx<'static>,
    level: i32,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CodecError> {
    context.init(level).map_err(failed)?;
    out.reserve(compress_bound(input.len()));
    let mut source = InBuffer::around(input);
    let mut is_flushed = false;
    loop {
        let start = out.len();
        let mut target = OutBuffer::around_pos(out, start);
        // The end must be a call of its own: a frame that is begun and ended in one gets a content
        // size. Kafka quirk: its stream is flushed before it is closed, so that every frame ends
        // with an empty block.
        if source.pos() < input.len() {
            context.compress_stream(&mut target, &mut source).map_err(failed)?;
        } else if !is_flushed {
            is_flushed = context.flush_stream(&mut target).map_err(failed)? == 0;
        } else if context.end_stream(&mut target).map_err(failed)? == 0 {
            return Ok(());
        }
        out.reserve(1024);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compress, open, sample};
    use super::super::{CodecErrorKind, Decompressor};
    use super::*;

    fn reason(payload: &[u8]) -> String {
        open(Codec::Zstd, 2, payload).unwrap_err().reason().to_owned()
    }

    // spec: records 4.4
    #[test]
    fn the_writer_states_neither_content_size_nor_checksum() {
        for size in [10, 300_000] {
            let payload = compress(Codec::Zstd, 2, &sample(size));
            // Frame descriptor 0 and the window of level 3, 2 MiB.
            assert!(payload.starts_with(&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58]));
            // The empty block that a stream which was flushed before ends with.
            assert!(payload.ends_with(&[0x01, 0x00, 0x00]));
        }
    }

    #[test]
    fn frames_laid_end_to_end_and_skippable_ones_open_as_one_payload() {
        let (one, two) = (sample(5000), sample(300_000));
        let skippable = [0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let payload = [
            &compress(Codec::Zstd, 2, &one)[..],
            &skippable,
            &zstd::bulk::compress(&two, 1).unwrap(),
            &compress(Codec::Zstd, 2, b""),
        ]
        .concat();
        assert_eq!(open(Codec::Zstd, 2, &payload).unwrap(), [one, two].concat());
        assert_eq!(open(Codec::Zstd, 2, b"").unwrap(), b"");
    }

    #[test]
    fn bytes_behind_the_last_frame_are_refused() {
        for behind in [&[0][..], &[0; 3], &[0; 40], b"\x28\xb5\x2f", b"\x28\xb5\x2f\xfd"] {
            let payload = [&compress(Codec::Zstd, 2, b"records"), behind].concat();
            assert!(reason(&payload).starts_with("zstd: "));
        }
    }

    #[test]
    fn a_frame_checksum_that_does_not_match_is_refused() {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        std::io::copy(&mut &sample(5000)[..], &mut encoder).unwrap();
        let mut payload = encoder.finish().unwrap();
        assert_eq!(open(Codec::Zstd, 2, &payload).unwrap(), sample(5000));
        *payload.last_mut().unwrap() ^= 1;
        assert!(open(Codec::Zstd, 2, &payload).is_err());
    }

    #[test]
    fn old_messages_have_no_zstd() {
        let payload = compress(Codec::Zstd, 2, b"records");
        for magic in [0, 1] {
            let error = open(Codec::Zstd, magic, &payload).unwrap_err();
            assert_eq!(error.kind(), CodecErrorKind::Corrupt);
        }
    }

    #[test]
    fn a_content_size_that_lies_takes_no_memory_and_is_refused() {
        // Single segment, 100 MiB announced in 4 bytes, one stored block of one byte.
        let payload = [0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x40, 0x06, 9, 0, 0, b'x'];
        assert!(reason(&payload).starts_with("zstd: "));
        let mut decompressor = Decompressor::new();
        assert!(decompressor.decompress(Codec::Zstd, 2, &payload, usize::MAX).is_err());
        assert!(decompressor.stream(Codec::Zstd, 2, &payload, u64::MAX).is_err());
        assert!(decompressor.kept_bytes() < 1 << 20);
    }

    #[test]
    fn an_outline_bounds_what_a_payload_opens_to() {
        let input = vec![7; 300_000];
        let sized = zstd::bulk::compress(&input, 3).unwrap();
        assert_eq!(outline(&sized).unwrap().size_max, 300_000);

        let mut streamed = Vec::new();
        write(&mut CCtx::create(), 3, &input, &mut streamed).unwrap();
        let of_streamed = outline(&streamed).unwrap();
        assert!(of_streamed.size_max >= 300_000 && of_streamed.size_max <= 3 * BLOCK_SIZE_MAX);
        assert_eq!(of_streamed.window_bytes, 1 << 21);
    }

    #[test]
    fn a_window_above_128_mib_is_refused() {
        // An empty last block; window descriptors of 128 MiB and 144 MiB.
        for (window, accepted) in [(17 << 3, true), (17 << 3 | 1, false), (21 << 3, false)] {
            let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, window, 1, 0, 0];
            assert_eq!(outline(&frame).is_ok(), accepted);
        }
    }
}
