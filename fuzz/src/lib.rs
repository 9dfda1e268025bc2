//! What several targets share.

pub mod directory;

use siltstone::io::checksum;
use siltstone::record::codec::{
    Codec, CodecError, CodecErrorKind, Compression, Compressor, Decompressor,
};

/// More than this no payload may open to.
const LIMIT_BYTES: usize = 1 << 20;

/// The integer at the front, and what is behind it. Missing bytes are zeros.
#[must_use]
pub fn split_i64(bytes: &[u8]) -> (i64, &[u8]) {
    match bytes.split_first_chunk() {
        Some((&first, rest)) => (i64::from_be_bytes(first), rest),
        None => (0, &[]),
    }
}

/// Puts the checksums of a file of batches right, as far as they can be framed: no fuzzer guesses
/// them.
pub fn fix_checksums(file: &mut [u8]) {
    let mut rest = file;
    while rest.len() >= 17 {
        let field = i32::from_be_bytes([rest[8], rest[9], rest[10], rest[11]]);
        let size = usize::try_from(field).unwrap_or(usize::MAX).saturating_add(12);
        let magic = rest[16];
        let Some((batch, behind)) = rest.split_at_mut_checked(size) else { return };
        rest = behind;
        match magic {
            0 | 1 if batch.len() > 16 => {
                let sum = checksum::crc32(&batch[16..]).to_be_bytes();
                batch[12..16].copy_from_slice(&sum);
            }
            2 if batch.len() > 21 => {
                let sum = checksum::crc32c(&batch[21..]).to_be_bytes();
                batch[17..21].copy_from_slice(&sum);
            }
            _ => return,
        }
    }
}

/// Opens a payload whole and piece by piece, which must agree, and compresses what came out again.
/// The first byte picks the magic.
pub fn open(codec: Codec, bytes: &[u8]) {
    let Some((first, payload)) = bytes.split_first() else { return };
    let magic = (first % 3).cast_signed();
    let mut decompressor = Decompressor::new();
    let whole = decompressor.decompress(codec, magic, payload, LIMIT_BYTES).map(<[u8]>::to_vec);
    let pieces = open_in_pieces(&mut decompressor, codec, magic, payload);
    match (&whole, &pieces) {
        (Ok(whole), Ok(pieces)) => assert_eq!(whole, pieces),
        // Both refuse. A payload that is broken and opens to too much is told as the one or the
        // other, by what is met first.
        (Err(whole), Err(pieces)) => assert!(
            whole.kind() == pieces.kind()
                || [whole.kind(), pieces.kind()].contains(&CodecErrorKind::Limit),
            "whole: {whole:?}, in pieces: {pieces:?}"
        ),
        _ => panic!("whole: {whole:?}, in pieces: {pieces:?}"),
    }
    let Ok(opened) = whole else { return };
    assert!(opened.len() <= LIMIT_BYTES);
    let mut again = Vec::new();
    let compressed =
        Compressor::new().compress(Compression::new(codec), magic, &opened, &mut again);
    if compressed.is_ok() {
        let reopened = decompressor.decompress(codec, magic, &again, LIMIT_BYTES);
        assert_eq!(reopened.expect("our own"), opened);
    }
}

fn open_in_pieces(
    decompressor: &mut Decompressor,
    codec: Codec,
    magic: i8,
    payload: &[u8],
) -> Result<Vec<u8>, CodecError> {
    let mut opened = Vec::new();
    let mut piece = [0; 777];
    let mut stream = decompressor.stream(codec, magic, payload, LIMIT_BYTES as u64)?;
    loop {
        let size = stream.fill(&mut piece)?;
        if size == 0 {
            return Ok(opened);
        }
        opened.extend_from_slice(&piece[..size]);
    }
}
