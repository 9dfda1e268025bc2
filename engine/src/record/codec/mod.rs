//! How is the records section of a batch compressed?
//!
//! The header of a batch never is; its attributes name one [`Codec`] for all bytes behind it, and
//! the value of a magic 0 or 1 wrapper is compressed the same way. Each codec has its own file,
//! with a drawing of its framing:
//!
//! | id | codec | framing |
//! |---|---|---|
//! | 0 | none | - |
//! | 1 | gzip | one or more members |
//! | 2 | snappy | xerial chunks, or one raw block |
//! | 3 | lz4 | one frame of independent blocks, with a header checksum that depends on the magic |
//! | 4 | zstd | one or more frames; magic 2 only |
//!
//! A [`Decompressor`] keeps its contexts and its scratch from batch to batch. It opens a payload
//! whole, or, where the result may be large, as a [`Stream`] in small memory. A [`Compressor`]
//! writes what Kafka 4.3.1's writers would. What is accepted and refused is what Kafka's reader
//! accepts and refuses, so that nothing is called whole here that a broker cannot serve.

mod block;
mod compress;
mod decompress;
mod error;
mod gzip;
mod id;
mod lz4;
mod scratch;
mod snappy;
mod stream;
mod xxh32;
mod zstd;

pub use compress::Compressor;
pub use decompress::Decompressor;
pub use error::{CodecError, CodecErrorKind};
pub use id::{Codec, Compression};
pub use stream::Stream;

#[cfg(test)]
mod tests;
