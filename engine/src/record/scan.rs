//! Where do the batches of a file begin, which are whole, and where does the log end?
//!
//! [`scan`] is the only loop in siltstone that walks a file of batches. It decides by framing and
//! checksum alone; what a reader could not decode is still data. Verify, dump, recovery and index
//! rebuild are visitors of it, so they cannot disagree about where a log ends.

use std::ops::ControlFlow;

use crate::bytes;
use crate::error::Result;
use crate::io::{Source, checksum};
use crate::record::batch::{
    BatchHeader, CRC_START, HEADER_SIZE, HEADER_UP_TO_MAGIC, LOG_OVERHEAD, MIN_SIZE_FIELD,
};
use crate::record::legacy::{LEGACY_CRC_START, min_entry_size};

/// Bytes of a batch that are looked at in one piece; the checksum of a larger one is computed in
/// pieces of this size.
const PIECE_BYTES: usize = 4 << 20;

/// Why a scan stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At the end of the bytes, with none left over.
    End,
    /// At or behind the position it was asked to stop at.
    Asked,
    /// The visitor had enough.
    Visitor,
    /// Fewer bytes are left than the smallest batch, or than the batch announces.
    Short {
        /// Bytes that the batch announces, where that many are left to say so.
        announced_bytes: Option<u64>,
    },
    /// A size field below that of the smallest batch of its magic.
    BadLength {
        /// The field.
        size_field: i32,
    },
    /// The checksum does not match the bytes.
    BadCrc {
        /// As it stands in the header.
        stored: u32,
        /// As the bytes have it.
        computed: u32,
    },
    /// A magic byte that is not 0, 1 or 2: the batch cannot be checked.
    UnknownMagic {
        /// The byte.
        magic: i8,
    },
}

/// Where and why a scan stopped: everything before `position` is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanEnd {
    /// The first byte that was not accepted, or where the scan was told to stop.
    pub position: u64,
    /// Why.
    pub stop: Stop,
}

/// A batch whose frame and checksum are right.
#[derive(Clone, Copy, Debug)]
pub struct ScannedBatch<'a> {
    /// Its header.
    pub header: &'a BatchHeader,
    /// Its first byte in the file.
    pub position: u64,
    /// All its bytes, or only the 61 of the header where the batch is larger than the visitor
    /// asked to see.
    pub bytes: &'a [u8],
}

/// Looks at the batches of a scan, one after another.
pub trait Visitor {
    /// Batches up to this size are handed over with all their bytes.
    fn body_limit_bytes(&self) -> usize {
        PIECE_BYTES
    }

    /// Looks at a batch. `Break` ends the scan in front of it.
    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>>;
}

impl<F: FnMut(ScannedBatch<'_>) -> Result<ControlFlow<()>>> Visitor for F {
    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        self(batch)
    }
}

/// Walks the batches of `source` from `position` up to the end, or up to the first batch that
/// begins at `stop_at` or behind.
///
/// Fails only when the source or the visitor fails; bytes that are no batch are an outcome.
pub fn scan<S: Source + ?Sized, V: Visitor + ?Sized>(
    source: &mut S,
    position: u64,
    stop_at: u64,
    visitor: &mut V,
) -> Result<ScanEnd> {
    let end = walk(source, position, stop_at, visitor)?;
    // What looks like a torn tail may be a file that shrank under a map.
    source.check()?;
    Ok(end)
}

fn walk<S: Source + ?Sized, V: Visitor + ?Sized>(
    source: &mut S,
    position: u64,
    stop_at: u64,
    visitor: &mut V,
) -> Result<ScanEnd> {
    let held_max = visitor.body_limit_bytes().max(PIECE_BYTES);
    let mut position = position;
    let mut wanted = HEADER_SIZE;
    loop {
        let window = source.window(position, wanted)?;
        let (walked, frame) = walk_window(window, position, stop_at, visitor)?;
        position = position.saturating_add(walked);
        if let Frame::Stop(stop) = frame {
            return Ok(ScanEnd { position, stop });
        }
        let tried = std::mem::replace(&mut wanted, HEADER_SIZE);
        if walked > 0 {
            continue;
        }
        // What the window could not settle: the end of the bytes, a bad frame, or a batch that
        // reaches beyond it.
        let size = match size_at(source, position)? {
            ControlFlow::Continue(size) => size,
            ControlFlow::Break(stop) => return Ok(ScanEnd { position, stop }),
        };
        if size <= tried {
            // The file was cut while it was read.
            let announced_bytes = Some(u64::try_from(size).unwrap_or(u64::MAX));
            return Ok(ScanEnd { position, stop: Stop::Short { announced_bytes } });
        }
        if size <= held_max {
            wanted = size;
            continue;
        }
        match check_in_pieces(source, position, size, visitor)? {
            ControlFlow::Continue(size) => position = position.saturating_add(size),
            ControlFlow::Break(stop) => return Ok(ScanEnd { position, stop }),
        }
    }
}

/// What is known of the bytes at a position.
enum Frame {
    /// The scan is over.
    Stop(Stop),
    /// The window ends before the batch does.
    Beyond,
}

/// Walks the whole batches of one window; gives the bytes walked over and what stands behind them.
fn walk_window<V: Visitor + ?Sized>(
    window: &[u8],
    start: u64,
    stop_at: u64,
    visitor: &mut V,
) -> Result<(u64, Frame)> {
    let mut at = 0_usize;
    loop {
        let walked = u64::try_from(at).unwrap_or(u64::MAX);
        let position = start.saturating_add(walked);
        if position >= stop_at {
            return Ok((walked, Frame::Stop(Stop::Asked)));
        }
        let rest = window.get(at..).unwrap_or_default();
        let Some(frame) = read_frame(rest) else { return Ok((walked, Frame::Beyond)) };
        let size = match frame {
            Ok(size) => size,
            Err(stop) => return Ok((walked, Frame::Stop(stop))),
        };
        let Some(batch) = rest.get(..size) else { return Ok((walked, Frame::Beyond)) };
        if let ControlFlow::Break(stop) = take(batch, position, visitor)? {
            return Ok((walked, Frame::Stop(stop)));
        }
        at = at.saturating_add(size);
    }
}

/// The whole size of the batch at the front; `None` when too few bytes are there to tell.
#[inline]
fn read_frame(rest: &[u8]) -> Option<std::result::Result<usize, Stop>> {
    let head = rest.first_chunk::<HEADER_UP_TO_MAGIC>()?;
    let size_field = i32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    let magic = head[16].cast_signed();
    if size_field < MIN_SIZE_FIELD {
        return Some(Err(Stop::BadLength { size_field }));
    }
    let size = usize::try_from(size_field).unwrap_or(usize::MAX).saturating_add(LOG_OVERHEAD);
    let least = match magic {
        0 | 1 => min_entry_size(magic),
        _ => HEADER_SIZE,
    };
    if size < least {
        return Some(Err(Stop::BadLength { size_field }));
    }
    Some(Ok(size))
}

/// Checks a whole batch and hands it to the visitor.
// The header is built where the visitor looks at it, and the old formats have a path of their own:
// handed from one function to another it is copied, which takes longer than to read it.
#[inline(always)]
fn take<V: Visitor + ?Sized>(
    batch: &[u8],
    position: u64,
    visitor: &mut V,
) -> Result<ControlFlow<Stop>> {
    let Some(head) = batch.first_chunk::<HEADER_SIZE>().filter(|head| head[16] == 2) else {
        return take_old(batch, position, visitor);
    };
    let header = BatchHeader::parse_whole(head);
    let computed = checksum::crc32c(batch.get(CRC_START..).unwrap_or_default());
    if computed != header.crc {
        return Ok(ControlFlow::Break(Stop::BadCrc { stored: header.crc, computed }));
    }
    let scanned = ScannedBatch { header: &header, position, bytes: batch };
    Ok(visitor.batch(scanned)?.map_break(|()| Stop::Visitor))
}

/// The same for a batch of the old formats, or of none.
#[cold]
fn take_old<V: Visitor + ?Sized>(
    batch: &[u8],
    position: u64,
    visitor: &mut V,
) -> Result<ControlFlow<Stop>> {
    let magic = bytes::get_i8(batch, 16).unwrap_or(-1);
    if !(0..=1).contains(&magic) {
        return Ok(ControlFlow::Break(Stop::UnknownMagic { magic }));
    }
    // The frame made sure of the bytes of the header.
    let Some(header) = BatchHeader::parse_legacy(batch) else {
        return Ok(ControlFlow::Break(Stop::Short { announced_bytes: None }));
    };
    let computed = checksum::crc32(batch.get(LEGACY_CRC_START..).unwrap_or_default());
    if computed != header.crc {
        return Ok(ControlFlow::Break(Stop::BadCrc { stored: header.crc, computed }));
    }
    give(ScannedBatch { header: &header, position, bytes: batch }, visitor)
}

/// Hands a batch to the visitor where that is rare, so that the loop above is the one place for
/// which the visitor is compiled into its caller.
#[cold]
#[inline(never)]
fn give<V: Visitor + ?Sized>(
    batch: ScannedBatch<'_>,
    visitor: &mut V,
) -> Result<ControlFlow<Stop>> {
    Ok(visitor.batch(batch)?.map_break(|()| Stop::Visitor))
}

/// The size of the batch at `position`, where a window was too small for it, or why there is none.
fn size_at<S: Source + ?Sized>(source: &mut S, position: u64) -> Result<ControlFlow<Stop, usize>> {
    let window = source.window(position, HEADER_SIZE)?;
    if window.is_empty() {
        return Ok(ControlFlow::Break(Stop::End));
    }
    let size = match read_frame(window) {
        // spec: records 3. Up to 17 bytes are the end of a file; a size is read from them all the
        // same, to say more.
        None => {
            return Ok(ControlFlow::Break(Stop::Short { announced_bytes: None }));
        }
        Some(Err(stop)) => return Ok(ControlFlow::Break(stop)),
        Some(Ok(size)) => size,
    };
    let announced = u64::try_from(size).unwrap_or(u64::MAX);
    if announced > source.end().saturating_sub(position) {
        return Ok(ControlFlow::Break(Stop::Short { announced_bytes: Some(announced) }));
    }
    Ok(ControlFlow::Continue(size))
}

/// Checks a batch that is too large to be held: its checksum is computed over one piece after
/// another.
fn check_in_pieces<S: Source + ?Sized, V: Visitor + ?Sized>(
    source: &mut S,
    position: u64,
    size: usize,
    visitor: &mut V,
) -> Result<ControlFlow<Stop, u64>> {
    let announced = u64::try_from(size).unwrap_or(u64::MAX);
    let short = ControlFlow::Break(Stop::Short { announced_bytes: Some(announced) });
    let window = source.window(position, HEADER_SIZE)?;
    let Some(&head) = window.first_chunk::<HEADER_SIZE>() else { return Ok(short) };
    let magic = head[16].cast_signed();
    let (header, crc_start) = match magic {
        2 => (BatchHeader::parse(&head), CRC_START),
        0 | 1 => (BatchHeader::parse_legacy(&head), LEGACY_CRC_START),
        _ => return Ok(ControlFlow::Break(Stop::UnknownMagic { magic })),
    };
    let Some(header) = header else { return Ok(short) };
    let (mut v2, mut old) = (0_u32, checksum::Crc32::new());
    let mut done = crc_start;
    while done < size {
        let wanted = (size - done).min(PIECE_BYTES);
        let at = position.saturating_add(u64::try_from(done).unwrap_or(u64::MAX));
        let window = source.window(at, wanted)?;
        let Some(piece) = window.get(..wanted.min(window.len())).filter(|piece| !piece.is_empty())
        else {
            return Ok(short);
        };
        if magic == 2 {
            v2 = checksum::crc32c_append(v2, piece);
        } else {
            old.update(piece);
        }
        done += piece.len();
    }
    let computed = if magic == 2 { v2 } else { old.finish() };
    if computed != header.crc {
        return Ok(ControlFlow::Break(Stop::BadCrc { stored: header.crc, computed }));
    }
    let given = give(ScannedBatch { header: &header, position, bytes: &head }, visitor)?;
    Ok(given.map_continue(|()| announced))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation)]
    use super::*;

    /// A batch of magic 2 with one opaque payload; the scan does not look into it.
    fn batch(base_offset: i64, payload: &[u8]) -> Vec<u8> {
        let mut covered = vec![0_u8; HEADER_SIZE - CRC_START];
        covered.extend(payload);
        let mut out = base_offset.to_be_bytes().to_vec();
        out.extend(u32::try_from(covered.len() + 9).unwrap().to_be_bytes());
        out.extend([0, 0, 0, 0, 2]);
        out.extend(checksum::crc32c(&covered).to_be_bytes());
        out.extend(covered);
        out
    }

    fn run(bytes: &[u8]) -> (Vec<i64>, ScanEnd) {
        let mut seen = Vec::new();
        let mut visitor = |batch: ScannedBatch<'_>| {
            seen.push(batch.header.base_offset);
            Ok(ControlFlow::Continue(()))
        };
        let mut source = bytes;
        let end = scan(&mut source, 0, u64::MAX, &mut visitor).unwrap();
        (seen, end)
    }

    #[test]
    fn whole_batches_are_seen_up_to_the_end() {
        let bytes: Vec<u8> = (0..5).flat_map(|o| batch(o, b"payload")).collect();
        let (seen, end) = run(&bytes);
        assert_eq!(seen, [0, 1, 2, 3, 4]);
        assert_eq!(end, ScanEnd { position: bytes.len() as u64, stop: Stop::End });
    }

    #[test]
    fn every_prefix_ends_behind_its_last_whole_batch() {
        let one = batch(0, b"abc");
        let bytes: Vec<u8> = (0..3).flat_map(|o| batch(o, b"abc")).collect();
        for cut in 0..bytes.len() {
            let (seen, end) = run(&bytes[..cut]);
            assert_eq!(seen.len(), cut / one.len());
            assert_eq!(end.position as usize, cut / one.len() * one.len());
            if cut % one.len() == 0 {
                assert_eq!(end.stop, Stop::End);
            } else {
                assert!(matches!(end.stop, Stop::Short { .. }), "{cut}: {end:?}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_stops_the_scan_unless_it_lies_outside_the_checksum() {
        let good = batch(0, b"abc");
        for bit in 0..good.len() * 8 {
            let mut bytes = [good.clone(), batch(1, b"d")].concat();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let (seen, end) = run(&bytes);
            let outside = bit / 8 < 8 || (12..16).contains(&(bit / 8));
            assert_eq!(seen.len() == 2, outside, "bit {bit}: {end:?}");
        }
    }

    #[test]
    fn an_unknown_magic_is_told_apart_from_a_bad_checksum() {
        let mut bytes = batch(0, b"abc");
        bytes[16] = 3;
        assert_eq!(run(&bytes).1.stop, Stop::UnknownMagic { magic: 3 });
    }

    #[test]
    fn lying_sizes_are_refused_without_reading_on() {
        for (size, expected) in [
            (-1_i32, Stop::BadLength { size_field: -1 }),
            (i32::MIN, Stop::BadLength { size_field: i32::MIN }),
            (13, Stop::BadLength { size_field: 13 }),
            (48, Stop::BadLength { size_field: 48 }),
            (i32::MAX, Stop::Short { announced_bytes: Some(2_147_483_659) }),
        ] {
            let mut bytes = batch(0, b"abc");
            bytes[8..12].copy_from_slice(&size.to_be_bytes());
            assert_eq!(run(&bytes).1, ScanEnd { position: 0, stop: expected });
        }
    }

    #[test]
    fn a_batch_larger_than_a_piece_is_checked_in_pieces() {
        let large = batch(7, &vec![0xa5; 2 * PIECE_BYTES + 17]);
        let bytes = [batch(0, b"a"), large.clone(), batch(8, b"b")].concat();
        let (seen, end) = run(&bytes);
        assert_eq!((seen, end.stop), (vec![0, 7, 8], Stop::End));
        let mut broken = bytes;
        let last = broken.len() - batch(8, b"b").len() - 1;
        broken[last] ^= 1;
        let (seen, end) = run(&broken);
        assert_eq!(seen, [0]);
        assert!(matches!(end.stop, Stop::BadCrc { .. }));
    }
}
