//! Which batches stand in a buffer or at a position of a log, by their headers?
//!
//! [`Batches`] splits what a producer or a leader sent; [`read_frame`] reads one header of a log
//! that is trusted. Neither walks a file: only [`scan`](mod@super::scan) decides where a log ends.

use crate::bytes;
use crate::error::{Error, Result};
use crate::io::checksum;
use crate::record::batch::{
    BatchHeader, CRC_START, HEADER_SIZE, HEADER_UP_TO_MAGIC, LOG_OVERHEAD, MIN_SIZE_FIELD,
};
use crate::record::legacy::{LEGACY_CRC_START, min_entry_size};

/// One more than the bytes up to the magic byte: with fewer a log ends.
pub const FILE_BYTES_MIN: u64 = 18;

/// A whole batch of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Its header; of magic 0 and 1, what the view of one entry gives.
    pub header: BatchHeader,
    /// All its bytes.
    pub bytes: &'a [u8],
}

impl Batch<'_> {
    /// Whether its checksum is right, and it is large enough to have one.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        if self.header.magic >= 2 {
            let covered = self.bytes.get(CRC_START..);
            covered.is_some_and(|covered| checksum::crc32c(covered) == self.header.crc)
        } else {
            let covered = self.bytes.get(LEGACY_CRC_START..);
            self.bytes.len() >= min_entry_size(self.header.magic)
                && covered.is_some_and(|covered| checksum::crc32(covered) == self.header.crc)
        }
    }
}

/// The batches of a buffer, up to the first that is not whole. After the first error it ends.
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    /// Splits `buffer`.
    #[must_use]
    pub fn new(buffer: &'a [u8]) -> Self {
        Batches { rest: buffer }
    }

    // spec: records 3, "memory". A bad size counts before there are too few bytes for the magic.
    fn split(&self) -> Result<Option<(Batch<'a>, &'a [u8])>> {
        let rest = self.rest;
        let Some(size_field) = bytes::get_i32(rest, 8) else { return Ok(None) };
        if size_field < MIN_SIZE_FIELD {
            return Err(Error::corrupt(format!("a batch has a size field of {size_field}")));
        }
        let Some(magic) = bytes::get_i8(rest, HEADER_UP_TO_MAGIC - 1) else { return Ok(None) };
        if !(0..=2).contains(&magic) {
            return Err(Error::corrupt(format!("a batch has the magic byte {magic}")));
        }
        let size = usize::try_from(size_field).unwrap_or(usize::MAX).saturating_add(LOG_OVERHEAD);
        let Some((bytes, rest)) = rest.split_at_checked(size) else { return Ok(None) };
        Ok(Some((Batch { header: parse(magic, bytes)?, bytes }, rest)))
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.split() {
            Ok(Some((batch, rest))) => {
                self.rest = rest;
                Some(Ok(batch))
            }
            Ok(None) => None,
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

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

    fn split(buffer: &[u8]) -> Result<Vec<i64>> {
        Batches::new(buffer).map(|batch| batch.map(|batch| batch.header.base_offset)).collect()
    }

    #[test]
    fn a_buffer_ends_with_its_last_whole_batch() {
        // spec: behaviours MI-001
        let whole = [batch(0), batch(1)].concat();
        assert_eq!(split(&whole).unwrap(), [0, 1]);
        for cut in 1..batch(1).len() {
            assert_eq!(split(&whole[..whole.len() - cut]).unwrap(), [0], "{cut}");
        }
        assert_eq!(split(&[]).unwrap(), [0_i64; 0]);
    }

    #[test]
    fn bad_sizes_and_magics_are_corrupt() {
        // spec: behaviours MI-002, MI-006, MI-008
        for size in [9_u8, 13, 0] {
            let mut bytes = batch(0);
            bytes[8..12].copy_from_slice(&[0, 0, 0, size]);
            assert_eq!(split(&bytes).unwrap_err().kind(), Kind::Corrupt);
            assert_eq!(split(&bytes[..12]).unwrap_err().kind(), Kind::Corrupt);
            assert_eq!(read_frame(&bytes, 100).unwrap_err().kind(), Kind::Corrupt);
        }
        for magic in [3_u8, 0xff, 10] {
            let mut bytes = batch(0);
            bytes[16] = magic;
            assert_eq!(split(&bytes).unwrap_err().kind(), Kind::Corrupt);
        }
        let mut small = batch(0);
        small[8..12].copy_from_slice(&[0, 0, 0, 20]);
        assert_eq!(split(&small).unwrap_err().kind(), Kind::Corrupt);
    }

    #[test]
    fn a_log_ends_before_a_batch_that_is_not_whole() {
        let bytes = batch(5);
        let size = u64::try_from(bytes.len()).unwrap();
        assert_eq!(read_frame(&bytes, size).unwrap().unwrap().base_offset, 5);
        assert_eq!(read_frame(&bytes, size - 1).unwrap(), None);
        assert_eq!(read_frame(&bytes[..17], 17).unwrap(), None);
    }

    #[test]
    fn one_changed_byte_makes_a_batch_invalid() {
        let mut bytes = batch(0);
        let is_valid = |bytes: &[u8]| Batches::new(bytes).next().unwrap().unwrap().is_valid();
        assert!(is_valid(&bytes));
        *bytes.last_mut().unwrap() ^= 1;
        assert!(!is_valid(&bytes));
    }
}
