//! Which batch stands at a position of a log that is trusted, by its header alone?
//!
//! For readers of a log whose end is known. Only [`scan`](mod@super::scan) decides where a log
//! ends, and [`Batches`](super::validate::Batches) splits what comes in.

use crate::bytes;
use crate::error::{Error, Result};
use crate::record::batch::{BatchHeader, HEADER_SIZE, HEADER_UP_TO_MAGIC, MIN_SIZE_FIELD};

/// One more than the bytes up to the magic byte: with fewer a log ends.
pub const FILE_BYTES_MIN: u64 = 18;

/// The header at the front of `head`, where `left_bytes` of the log are left from there; `None`
/// where the log ends before the batch does. `head` needs 61 bytes unless the log has fewer.
///
/// # Errors
/// `Corrupt` for a size that no batch has.
// spec: records 3, "file"
pub fn read_frame(head: &[u8], left_bytes: u64) -> Result<Option<BatchHeader>> {
    if left_bytes < FILE_BYTES_MIN {
        return Ok(None);
    }
    let (Some(size_field), Some(magic)) =
        (bytes::get_i32(head, 8), bytes::get_i8(head, HEADER_UP_TO_MAGIC - 1))
    else {
        return Ok(None);
    };
    if size_field < MIN_SIZE_FIELD {
        return Err(Error::corrupt(format!("a batch has a size field of {size_field}")));
    }
    let size = u64::from(size_field.unsigned_abs()) + 12;
    if size > left_bytes {
        return Ok(None);
    }
    parse(magic, head).map(Some)
}

fn parse(magic: i8, batch: &[u8]) -> Result<BatchHeader> {
    let header = if magic >= 2 {
        let header = BatchHeader::parse(batch);
        let least = u32::try_from(HEADER_SIZE).unwrap_or(u32::MAX);
        header.filter(|header| header.size_bytes >= least)
    } else {
        BatchHeader::parse_legacy(batch)
    };
    header.ok_or_else(|| Error::corrupt("a batch is smaller than its header"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::record::builder::{BatchBuilder, BatchOptions};
    use crate::record::codec::Compressor;

    fn batch(base_offset: i64) -> Vec<u8> {
        let options = BatchOptions { base_offset, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options).unwrap();
        builder.append(7, None, Some(b"value")).unwrap();
        let mut bytes = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn sizes_that_no_batch_has_are_corrupt() {
        for size in [0_u8, 9, 13, 20] {
            let mut bytes = batch(0);
            bytes[8..12].copy_from_slice(&[0, 0, 0, size]);
            assert_eq!(read_frame(&bytes, 100).unwrap_err().kind(), Kind::Corrupt, "{size}");
        }
    }

    #[test]
    fn a_log_ends_before_a_batch_that_is_not_whole() {
        let bytes = batch(5);
        let size = u64::try_from(bytes.len()).unwrap();
        assert_eq!(read_frame(&bytes, size).unwrap().unwrap().base_offset, 5);
        assert_eq!(read_frame(&bytes, size - 1).unwrap(), None);
        assert_eq!(read_frame(&bytes[..17], 17).unwrap(), None);
    }
}
