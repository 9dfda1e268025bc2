//! How does a payload open without memory of its own for each batch?

use ::zstd::zstd_safe::DCtx;
use flate2::Decompress;

use super::block::Blocks;
use super::scratch::Scratch;
use super::stream::{Source, Stream};
use super::{Codec, CodecError, gzip, lz4, snappy, zstd};

/// Up to this many bytes a zstd payload is opened at once even where a stream was asked for.
const STREAMED_WHOLE_MAX: u64 = 1024 * 1024;
/// A zstd context that grew above this for one odd payload is not kept.
const CONTEXT_KEPT_MAX: usize = 16 * 1024 * 1024;

/// Opens payloads, one after the other, into memory that it keeps.
///
/// One per thread: it is cheap to make, and warm from the second payload on.
///
/// ```
/// use siltstone::record::codec::{Codec, Compressor, Decompressor};
///
/// let mut payload = Vec::new();
/// Compressor::new().compress(Codec::Lz4.into(), 2, b"records", &mut payload)?;
/// let mut decompressor = Decompressor::new();
/// assert_eq!(decompressor.decompress(Codec::Lz4, 2, &payload, 1024)?, b"records");
/// # Ok::<(), siltstone::Error>(())
/// ```
#[derive(Default)]
pub struct Decompressor {
    scratch: Scratch,
    inflate: Option<Decompress>,
    zstd: Option<DCtx<'static>>,
}

impl Decompressor {
    /// A decompressor without memory yet.
    #[must_use]
    pub fn new() -> Self {
        Decompressor::default()
    }

    /// Opens all of `input`, the payload of a batch of this magic. With [`Codec::None`] that is
    /// `input` itself.
    ///
    /// The memory kept grows to the largest payload opened, in steps, as its bytes come; sizes that
    /// a payload declares are believed only as far as its length allows.
    ///
    /// # Errors
    ///
    /// [`Corrupt`](super::CodecErrorKind::Corrupt) where Kafka's reader fails, and
    /// [`Limit`](super::CodecErrorKind::Limit) where the payload opens to more than `limit_bytes`.
    pub fn decompress<'a>(
        &'a mut self,
        codec: Codec,
        magic: i8,
        input: &'a [u8],
        limit_bytes: usize,
    ) -> Result<&'a [u8], CodecError> {
        let size = match codec {
            Codec::None if input.len() > limit_bytes => return Err(limit(codec, limit_bytes)),
            Codec::None => return Ok(input),
            Codec::Gzip => self.open_gzip(input, limit_bytes)?,
            Codec::Snappy => {
                let blocks = Blocks::Snappy(snappy::Chunks::open(input)?);
                open_blocks(blocks, &mut self.scratch, limit_bytes)?
            }
            Codec::Lz4 => {
                let blocks = Blocks::Lz4(lz4::Frame::open(input, magic)?);
                open_blocks(blocks, &mut self.scratch, limit_bytes)?
            }
            Codec::Zstd => {
                check_zstd_magic(magic)?;
                let context = zstd_context(&mut self.zstd);
                zstd::open_whole(context, input, &mut self.scratch, limit_bytes)?
            }
        };
        Ok(self.scratch.filled(size))
    }

    /// Begins to open `input` in small memory, however much comes out: for gzip 32 KiB, for lz4 and
    /// snappy one block (at most 4 MiB, and 22 times its bytes), for zstd the window that the frame
    /// needs (2 MiB as Kafka writes it, at most 128 MiB).
    ///
    /// # Errors
    ///
    /// As [`Decompressor::decompress`], here for what the first header shows; the rest comes from
    /// [`Stream::fill`].
    pub fn stream<'a>(
        &'a mut self,
        codec: Codec,
        magic: i8,
        input: &'a [u8],
        limit_bytes: u64,
    ) -> Result<Stream<'a>, CodecError> {
        let source = match codec {
            Codec::None => Source::Whole(input),
            Codec::Gzip => {
                let inflate = self.inflate.get_or_insert_with(|| Decompress::new(false));
                Source::Gzip(gzip::Members::open(input, inflate)?)
            }
            Codec::Snappy => {
                let blocks = Blocks::Snappy(snappy::Chunks::open(input)?);
                Source::blocks(blocks, &mut self.scratch)
            }
            Codec::Lz4 => {
                let blocks = Blocks::Lz4(lz4::Frame::open(input, magic)?);
                Source::blocks(blocks, &mut self.scratch)
            }
            Codec::Zstd => {
                check_zstd_magic(magic)?;
                let outline = zstd::outline(input)?;
                let context = zstd_context(&mut self.zstd);
                // Where the window could hold all of it, streaming would take no less memory than
                // the bytes do.
                if outline.size_max <= outline.window_bytes.max(STREAMED_WHOLE_MAX) {
                    let limit_bytes = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
                    let size = zstd::open_whole(context, input, &mut self.scratch, limit_bytes)?;
                    Source::Whole(self.scratch.filled(size))
                } else {
                    Source::Zstd(zstd::Frames::open(input, context)?)
                }
            }
        };
        Ok(Stream::new(codec, source, limit_bytes))
    }

    /// Bytes of memory kept for the next payload, gzip's window of 32 KiB aside.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.scratch.size() + self.zstd.as_ref().map_or(0, DCtx::sizeof)
    }

    /// Gives back what the kept buffer has above `size_bytes`, for instance after a batch far above
    /// the usual.
    pub fn shrink_to(&mut self, size_bytes: usize) {
        self.scratch.shrink_to(size_bytes);
    }

    fn open_gzip(&mut self, input: &[u8], limit_bytes: usize) -> Result<usize, CodecError> {
        let inflate = self.inflate.get_or_insert_with(|| Decompress::new(false));
        let mut members = gzip::Members::open(input, inflate)?;
        let mut used = 0;
        loop {
            // At the limit one byte more of room shows whether the payload goes on.
            let size_max = limit_bytes.saturating_add(1);
            let opened = members.fill(self.scratch.room(used, 1, size_max))?;
            if opened == 0 {
                return Ok(used);
            }
            used += opened;
            if used > limit_bytes {
                return Err(limit(Codec::Gzip, limit_bytes));
            }
        }
    }
}

fn open_blocks(
    mut blocks: Blocks<'_>,
    scratch: &mut Scratch,
    limit_bytes: usize,
) -> Result<usize, CodecError> {
    let mut used = 0;
    while let Some(block) = blocks.next_block()? {
        let size = block.size_max.min(limit_bytes - used);
        let room = scratch.room(used, size, limit_bytes).get_mut(..size).unwrap_or_default();
        match block.decode(room)? {
            Some(opened) => used += opened,
            None => return Err(limit(blocks.codec(), limit_bytes)),
        }
    }
    Ok(used)
}

fn zstd_context<'a>(kept: &'a mut Option<DCtx<'static>>) -> &'a mut DCtx<'static> {
    if kept.as_ref().is_some_and(|context| context.sizeof() > CONTEXT_KEPT_MAX) {
        *kept = None;
    }
    kept.get_or_insert_with(DCtx::create)
}

fn check_zstd_magic(magic: i8) -> Result<(), CodecError> {
    // spec: records 2 and 4.4
    if magic < 2 {
        return Err(CodecError::corrupt(Codec::Zstd, "not allowed in messages of magic 0 and 1"));
    }
    Ok(())
}

fn limit(codec: Codec, limit_bytes: usize) -> CodecError {
    CodecError::limit(codec, u64::try_from(limit_bytes).unwrap_or(u64::MAX))
}
