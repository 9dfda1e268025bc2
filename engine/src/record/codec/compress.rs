//! How are the records of a batch compressed, as Kafka's writers do it?

use ::zstd::zstd_safe::CCtx;

use super::{Codec, CodecError, Compression, gzip, lz4, snappy, zstd};

/// Compresses payloads, one after the other, with contexts that it keeps.
///
/// The framing is Kafka's to the byte; the compressed bytes in it are those of the libraries here,
/// which need not be Java's. lz4 has one compressor here, the fast one that Kafka's default level
/// means too: other levels are accepted and give the same bytes.
#[derive(Default)]
pub struct Compressor {
    gzip: Option<gzip::Writer>,
    snappy: Option<snappy::Writer>,
    lz4: Option<lz4::Writer>,
    zstd: Option<CCtx<'static>>,
}

impl Compressor {
    /// A compressor without memory yet.
    #[must_use]
    pub fn new() -> Self {
        Compressor::default()
    }

    /// Appends `input` in its compressed form, as it goes into a batch of this magic.
    ///
    /// # Errors
    ///
    /// zstd for magic 0 or 1, where Kafka does not allow it.
    pub fn compress(
        &mut self,
        compression: Compression,
        magic: i8,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let level = compression.level();
        match compression.codec() {
            Codec::None => {
                out.extend_from_slice(input);
                Ok(())
            }
            Codec::Gzip => {
                if self.gzip.as_ref().is_some_and(|writer| writer.level() != level) {
                    self.gzip = None;
                }
                self.gzip.get_or_insert_with(|| gzip::Writer::new(level)).write(input, out)
            }
            Codec::Snappy => self.snappy.get_or_insert_with(snappy::Writer::new).write(input, out),
            Codec::Lz4 => self.lz4.get_or_insert_with(lz4::Writer::new).write(magic, input, out),
            Codec::Zstd if magic < 2 => {
                Err(CodecError::argument(Codec::Zstd, "is not allowed for magic 0 and 1"))
            }
            Codec::Zstd => {
                zstd::write(self.zstd.get_or_insert_with(CCtx::create), level, input, out)
            }
        }
    }
}
