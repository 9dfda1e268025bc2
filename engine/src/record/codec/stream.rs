//! How does a payload open in less memory than it opens to?

use super::block::{Block, Blocks, Coding};
use super::scratch::Scratch;
use super::{Codec, CodecError, gzip, zstd};

/// A payload on its way open; made by [`Decompressor::stream`](super::Decompressor::stream).
pub struct Stream<'a> {
    codec: Codec,
    source: Source<'a>,
    limit_bytes: u64,
    size_bytes: u64,
}

pub(super) enum Source<'a> {
    /// Bytes that are there already.
    Whole(&'a [u8]),
    Gzip(gzip::Members<'a>),
    Blocks {
        blocks: Blocks<'a>,
        scratch: &'a mut Scratch,
        pending: Pending<'a>,
    },
    Zstd(zstd::Frames<'a>),
    Failed(CodecError),
}

/// The part of an opened block that nobody has taken yet.
pub(super) enum Pending<'a> {
    Stored(&'a [u8]),
    /// Scratch from `position` to `end`.
    Opened {
        position: usize,
        end: usize,
    },
}

impl<'a> Source<'a> {
    pub(super) fn blocks(blocks: Blocks<'a>, scratch: &'a mut Scratch) -> Self {
        Source::Blocks { blocks, scratch, pending: Pending::Stored(&[]) }
    }
}

impl<'a> Stream<'a> {
    pub(super) fn new(codec: Codec, source: Source<'a>, limit_bytes: u64) -> Self {
        Stream { codec, source, limit_bytes, size_bytes: 0 }
    }

    /// How many bytes have come out so far.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Bytes of the payload that were not read yet. At the end of the stream: those that Kafka's
    /// reader never looks at, such as a second lz4 frame.
    #[must_use]
    pub fn unread_size(&self) -> usize {
        match &self.source {
            Source::Blocks { blocks: Blocks::Lz4(frame), .. } => frame.unread_size(),
            Source::Gzip(members) => members.unread_size(),
            Source::Blocks { .. } | Source::Whole(_) | Source::Zstd(_) | Source::Failed(_) => 0,
        }
    }

    /// Opens some bytes into the front of `out` and says how many: at least one, or 0 at the end of
    /// the payload (or when `out` is empty). Checksums at the end of a payload are verified on the
    /// way to that 0.
    ///
    /// # Errors
    ///
    /// As [`Decompressor::decompress`](super::Decompressor::decompress); the same error again from
    /// then on.
    pub fn fill(&mut self, out: &mut [u8]) -> Result<usize, CodecError> {
        let left = self.limit_bytes - self.size_bytes;
        let result = match &mut self.source {
            Source::Whole(bytes) => Ok(copy_front(bytes, out)),
            Source::Gzip(members) => members.fill(out),
            Source::Blocks { blocks, scratch, pending } => {
                fill_from_blocks(blocks, scratch, pending, out, left).and_then(|size| {
                    let passed = || CodecError::limit(self.codec, self.limit_bytes);
                    size.ok_or_else(passed)
                })
            }
            Source::Zstd(frames) => frames.fill(out),
            Source::Failed(error) => Err(error.clone()),
        };
        let result = result.and_then(|size| {
            let bytes = u64::try_from(size).unwrap_or(u64::MAX);
            if bytes > left {
                return Err(CodecError::limit(self.codec, self.limit_bytes));
            }
            self.size_bytes += bytes;
            Ok(size)
        });
        if let Err(error) = &result {
            self.source = Source::Failed(error.clone());
        }
        result
    }
}

/// As [`Stream::fill`]; `None` when the next block opens to more than `left`.
fn fill_from_blocks<'a>(
    blocks: &mut Blocks<'a>,
    scratch: &mut Scratch,
    pending: &mut Pending<'a>,
    out: &mut [u8],
    left: u64,
) -> Result<Option<usize>, CodecError> {
    if out.is_empty() {
        return Ok(Some(0));
    }
    loop {
        let size = match pending {
            Pending::Stored(bytes) => copy_front(bytes, out),
            Pending::Opened { position, end } => {
                let mut bytes = scratch.filled(*end).get(*position..).unwrap_or_default();
                let size = copy_front(&mut bytes, out);
                *position += size;
                size
            }
        };
        if size > 0 {
            return Ok(Some(size));
        }
        match blocks.next_block()? {
            None => return Ok(Some(0)),
            Some(Block { coding: Coding::Stored, bytes, .. }) => {
                *pending = Pending::Stored(bytes);
            }
            Some(block) => {
                let size_max = usize::try_from(left).unwrap_or(usize::MAX);
                let size = block.size_max.min(size_max);
                let room = scratch.room(0, size, size_max).get_mut(..size).unwrap_or_default();
                let Some(end) = block.decode(room)? else { return Ok(None) };
                *pending = Pending::Opened { position: 0, end };
            }
        }
    }
}

/// Moves as much as fits from the front of `source` into `out`.
fn copy_front(source: &mut &[u8], out: &mut [u8]) -> usize {
    let size = source.len().min(out.len());
    if let (Some((front, rest)), Some(target)) =
        (source.split_at_checked(size), out.get_mut(..size))
    {
        target.copy_from_slice(front);
        *source = rest;
    }
    size
}
