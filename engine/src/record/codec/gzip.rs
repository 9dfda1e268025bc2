//! What does a gzip payload look like?
//!
//! One or more members of RFC 1952, little-endian:
//!
//! ```text
//! +-------+----+-----+-------+-----+----+-----------------------------+---------+--------+------+
//! | 1f 8b | 08 | FLG | mtime | XFL | OS | [extra] [name] [note] [crc] | deflate | CRC-32 | size |
//! +-------+----+-----+-------+-----+----+-----------------------------+---------+--------+------+
//!   magic        1     4       1     1    as flagged                    stream    4        4
//! ```
//!
//! Java's writer sets no field and, since JDK 16, writes ff for the operating system. Its reader
//! verifies each member's trailer, and takes what is no member behind the last one for padding.

use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Codec, CodecError};
use crate::bytes;
use crate::io::checksum::crc32;

const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
const TRAILER_SIZE: usize = 8;
/// Java looks for another member only in more bytes than these: an empty header and trailer.
const PADDING_SIZE_MAX: usize = 18;

const FLG_HEADER_CRC: u8 = 0x02;
const FLG_EXTRA: u8 = 0x04;
const FLG_NAME: u8 = 0x08;
const FLG_COMMENT: u8 = 0x10;

/// The members of a payload that are still unread.
pub(super) struct Members<'a> {
    inflate: &'a mut Decompress,
    rest: &'a [u8],
    crc: crc32fast::Hasher,
    size: u32,
    is_finished: bool,
}

impl<'a> Members<'a> {
    /// Reads the header of the first member.
    pub(super) fn open(input: &'a [u8], inflate: &'a mut Decompress) -> Result<Self, CodecError> {
        inflate.reset(false);
        let rest = behind_header(input).map_err(corrupt)?;
        Ok(Members { inflate, rest, crc: crc32fast::Hasher::new(), size: 0, is_finished: false })
    }

    /// Bytes that no member has taken yet.
    pub(super) fn unread_size(&self) -> usize {
        self.rest.len()
    }

    /// Opens some bytes into the front of `out`; 0 only at the end.
    pub(super) fn fill(&mut self, out: &mut [u8]) -> Result<usize, CodecError> {
        while !self.is_finished && !out.is_empty() {
            let (total_in, total_out) = (self.inflate.total_in(), self.inflate.total_out());
            // "Finish" spares the copy into the window where all fits into `out`, and is a mere
            // hint where not.
            let status = self
                .inflate
                .decompress(self.rest, out, FlushDecompress::Finish)
                .map_err(corrupt)?;
            let consumed = delta(self.inflate.total_in(), total_in);
            let produced = delta(self.inflate.total_out(), total_out);
            self.rest = self.rest.get(consumed..).unwrap_or_default();
            let opened = out.get(..produced).unwrap_or_default();
            self.crc.update(opened);
            self.size = self.size.wrapping_add(size_modulo(produced));
            if status == Status::StreamEnd {
                self.end_member()?;
            } else if produced == 0 && consumed == 0 {
                return Err(corrupt("the payload ends within a member"));
            }
            if produced > 0 {
                return Ok(produced);
            }
        }
        Ok(0)
    }

    fn end_member(&mut self) -> Result<(), CodecError> {
        let Some((trailer, behind)) = self.rest.split_at_checked(TRAILER_SIZE) else {
            return Err(corrupt("the payload ends within a trailer"));
        };
        let crc = std::mem::take(&mut self.crc).finalize();
        if bytes::get_u32_le(trailer, 0) != Some(crc) {
            return Err(corrupt("the checksum in the trailer does not match"));
        }
        if bytes::get_u32_le(trailer, 4) != Some(self.size) {
            return Err(corrupt("the size in the trailer does not match"));
        }
        // Kafka quirk: whatever is no header ends the payload without complaint, as Java has it.
        match behind_header(behind) {
            Ok(rest) if behind.len() > PADDING_SIZE_MAX => {
                self.rest = rest;
                self.size = 0;
                self.inflate.reset(false);
            }
            _ => {
                self.rest = behind;
                self.is_finished = true;
            }
        }
        Ok(())
    }
}

/// What stands behind the header of a member.
fn behind_header(input: &[u8]) -> Result<&[u8], &'static str> {
    const SHORT: &str = "the payload ends within a header";
    let (fixed, mut rest) = input.split_at_checked(HEADER.len()).ok_or(SHORT)?;
    let &[0x1f, 0x8b, method, flags, ..] = fixed else {
        return Err("the payload does not start with the magic of a member");
    };
    if method != 8 {
        return Err("the compression method is not deflate");
    }
    if flags & FLG_EXTRA != 0 {
        let (size, behind) = rest.split_first_chunk::<2>().ok_or(SHORT)?;
        let size = usize::from(u16::from_le_bytes(*size));
        rest = behind.get(size..).ok_or(SHORT)?;
    }
    for flag in [FLG_NAME, FLG_COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|&byte| byte == 0).ok_or(SHORT)?;
            rest = rest.get(end + 1..).ok_or(SHORT)?;
        }
    }
    if flags & FLG_HEADER_CRC != 0 {
        let header = input.get(..input.len() - rest.len()).ok_or(SHORT)?;
        let (stored, behind) = rest.split_first_chunk::<2>().ok_or(SHORT)?;
        if u32::from(u16::from_le_bytes(*stored)) != crc32(header) & 0xffff {
            return Err("the header checksum does not match");
        }
        rest = behind;
    }
    Ok(rest)
}

fn delta(after: u64, before: u64) -> usize {
    usize::try_from(after.saturating_sub(before)).unwrap_or(usize::MAX)
}

/// The trailer holds the size modulo 2^32.
fn size_modulo(size: usize) -> u32 {
    u32::try_from(size & 0xffff_ffff).unwrap_or(u32::MAX)
}

fn corrupt(what: impl std::fmt::Display) -> CodecError {
    CodecError::corrupt(Codec::Gzip, what)
}

/// Writes members; keeps the deflate context of one level.
pub(super) struct Writer {
    deflate: Compress,
    level: i32,
}

impl Writer {
    /// A writer for a level of 1 to 9, or -1 for the default.
    pub(super) fn new(level: i32) -> Self {
        let level_or_default = u32::try_from(level).unwrap_or(6);
        let deflate = Compress::new(flate2::Compression::new(level_or_default), false);
        Writer { deflate, level }
    }

    pub(super) fn level(&self) -> i32 {
        self.level
    }

    /// Appends one member that holds `input`.
    pub(super) fn write(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CodecError> {
        out.extend_from_slice(&HEADER);
        self.deflate.reset();
        loop {
            let consumed = delta(self.deflate.total_in(), 0);
            let rest = input.get(consumed..).unwrap_or_default();
            out.reserve(rest.len() / 2 + 1024);
            let status =
                self.deflate.compress_vec(rest, out, FlushCompress::Finish).map_err(corrupt)?;
            if status == Status::StreamEnd {
                break;
            }
        }
        out.extend_from_slice(&bytes::u32_le(crc32(input)));
        out.extend_from_slice(&bytes::u32_le(size_modulo(input.len())));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::{GzBuilder, write::GzEncoder};
    use std::io::Write;

    use super::super::tests::{compress, open, sample};
    use super::*;

    fn member(bytes: &[u8]) -> Vec<u8> {
        compress(Codec::Gzip, 2, bytes)
    }

    fn reason(payload: &[u8]) -> String {
        open(Codec::Gzip, 2, payload).unwrap_err().reason().to_owned()
    }

    /// The member with these flags and the fields that go with them.
    fn with_fields(flags: u8, fields: &[u8]) -> Vec<u8> {
        let member = member(b"records");
        let mut header = member[..10].to_vec();
        header[3] = flags;
        [&header, fields, &member[10..]].concat()
    }

    // spec: records 4.1
    #[test]
    fn the_writer_makes_one_member_as_java_does() {
        let input = sample(3000);
        let payload = member(&input);
        assert!(payload.starts_with(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff]));
        let trailer = [bytes::u32_le(crc32(&input)), bytes::u32_le(3000)].concat();
        assert!(payload.ends_with(&trailer));
    }

    #[test]
    fn members_laid_end_to_end_open_as_one_payload() {
        // spec: behaviours CO-017
        let (one, two) = (sample(5000), sample(70_000));
        let payload = [member(&one), member(b""), member(&two)].concat();
        assert_eq!(open(Codec::Gzip, 2, &payload).unwrap(), [one, two].concat());
        let torn = &payload[..payload.len() - 1];
        assert!(reason(torn).contains("within a trailer"));
    }

    #[test]
    fn optional_header_fields_are_skipped() {
        let mut encoder: GzEncoder<Vec<u8>> = GzBuilder::new()
            .extra(vec![1, 2, 0, 4])
            .filename("name")
            .comment("a comment")
            .mtime(1_700_000_000)
            .write(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"records").unwrap();
        assert_eq!(open(Codec::Gzip, 2, &encoder.finish().unwrap()).unwrap(), b"records");
        // "Text" and the reserved flags mean nothing to Java.
        assert_eq!(open(Codec::Gzip, 2, &with_fields(0xe1, &[])).unwrap(), b"records");
    }

    #[test]
    fn fields_that_do_not_end_are_refused() {
        for flags in [FLG_NAME, FLG_COMMENT, FLG_EXTRA, FLG_HEADER_CRC] {
            let mut header = HEADER;
            header[3] = flags;
            assert!(reason(&header).contains("within a header"));
        }
        let mut header = with_fields(FLG_EXTRA, &[0xff, 0xff]);
        header.truncate(100);
        assert!(reason(&header).contains("within a header"));
    }

    #[test]
    fn a_header_checksum_is_verified() {
        let mut header = HEADER;
        header[3] = FLG_HEADER_CRC;
        let crc = u16::try_from(crc32(&header) & 0xffff).unwrap();
        let right = with_fields(FLG_HEADER_CRC, &crc.to_le_bytes());
        assert_eq!(open(Codec::Gzip, 2, &right).unwrap(), b"records");
        let wrong = with_fields(FLG_HEADER_CRC, &(crc ^ 1).to_le_bytes());
        assert!(reason(&wrong).contains("header checksum"));
    }

    #[test]
    fn a_trailer_that_does_not_match_is_refused() {
        let payload = member(&sample(1000));
        for (from_end, why) in [(8, "checksum"), (5, "checksum"), (4, "size"), (1, "size")] {
            let mut wrong = payload.clone();
            let at = wrong.len() - from_end;
            wrong[at] ^= 1;
            assert!(reason(&wrong).contains(why));
        }
    }

    #[test]
    fn padding_behind_the_last_member_is_ignored_as_java_ignores_it() {
        for padding in [vec![0; 1], vec![0; 100], b"no member, but more than a few bytes".to_vec()]
        {
            let payload = [member(b"records"), padding].concat();
            assert_eq!(open(Codec::Gzip, 2, &payload).unwrap(), b"records");
        }
        // 18 bytes are too few for Java to look at; with 19 the header counts, and its stream is
        // missing.
        let mut second = HEADER.to_vec();
        second.resize(18, 0xff);
        let payload = [member(b"records"), second.clone()].concat();
        assert_eq!(open(Codec::Gzip, 2, &payload).unwrap(), b"records");
        second.push(0xff);
        assert!(open(Codec::Gzip, 2, &[member(b"records"), second].concat()).is_err());
    }

    #[test]
    fn what_is_no_gzip_is_refused() {
        assert!(reason(b"").contains("within a header"));
        assert!(reason(&sample(100)).contains("magic of a member"));
        let mut method = member(b"records");
        method[2] = 7;
        assert!(reason(&method).contains("method"));
        assert!(reason(&[&HEADER[..], &[0xff; 20]].concat()).contains("gzip"));
    }
}
