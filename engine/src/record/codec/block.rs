//! How does one block of a snappy or lz4 payload open?
//!
//! Both framings cut the bytes into blocks that open independently of each other; this is the
//! common view of them.

use lz4_flex::block::DecompressError;

use super::{Codec, CodecError, lz4, snappy};

/// How the bytes of a block are coded.
#[derive(Clone, Copy)]
pub(super) enum Coding {
    Stored,
    Lz4,
    Snappy,
}

/// One block, still compressed.
pub(super) struct Block<'a> {
    pub(super) coding: Coding,
    pub(super) bytes: &'a [u8],
    /// More than this the block cannot open to: never more than a small multiple of its own bytes.
    pub(super) size_max: usize,
}

impl Block<'_> {
    /// Opens the block into the front of `out` and says how many bytes it gave; `None` when `out`,
    /// being shorter than `size_max`, has no room for it.
    pub(super) fn decode(&self, out: &mut [u8]) -> Result<Option<usize>, CodecError> {
        let is_clipped = out.len() < self.size_max;
        let end = out.len().min(self.size_max);
        let out = out.get_mut(..end).unwrap_or_default();
        match self.coding {
            Coding::Stored => Ok(out.get_mut(..self.bytes.len()).map(|target| {
                target.copy_from_slice(self.bytes);
                target.len()
            })),
            Coding::Lz4 => match lz4_flex::block::decompress_into(self.bytes, out) {
                Ok(size) => Ok(Some(size)),
                Err(DecompressError::OutputTooSmall { .. }) if is_clipped => Ok(None),
                Err(error) => Err(CodecError::corrupt(Codec::Lz4, error)),
            },
            // The size is declared up front, so a block that is too large is not begun.
            Coding::Snappy if is_clipped => Ok(None),
            Coding::Snappy => match snap::raw::Decoder::new().decompress(self.bytes, out) {
                Ok(size) => Ok(Some(size)),
                Err(error) => Err(CodecError::corrupt(Codec::Snappy, error)),
            },
        }
    }
}

/// The blocks of a payload, in order.
pub(super) enum Blocks<'a> {
    Lz4(lz4::Frame<'a>),
    Snappy(snappy::Chunks<'a>),
}

impl<'a> Blocks<'a> {
    pub(super) fn codec(&self) -> Codec {
        match self {
            Blocks::Lz4(_) => Codec::Lz4,
            Blocks::Snappy(_) => Codec::Snappy,
        }
    }

    /// The next block; `None` where Kafka's reader sees the end of the payload.
    pub(super) fn next_block(&mut self) -> Result<Option<Block<'a>>, CodecError> {
        match self {
            Blocks::Lz4(frame) => frame.next_block(),
            Blocks::Snappy(chunks) => chunks.next_block(),
        }
    }
}
