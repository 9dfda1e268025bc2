//! What could this machine do? Loops that do the work that cannot be left out, and no more.
//!
//! They believe what they read: no length is checked twice, no verdict is given, nothing but the
//! least is kept. What an engine that checks everything comes to is judged against them.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;

use crc_fast::crc32_iscsi;
use siltstone::io::{Disk, MapMode, OpenMode, Reader, Source, Storage};

use crate::Result;

/// Bytes before the records of a batch.
const HEADER_SIZE: usize = 61;
/// Bytes that are read at a time, and of a window of a map.
const WINDOW_BYTES: usize = 256 << 10;
/// Read bytes have room for the largest batch in front.
const BUFFER_BYTES: usize = 512 << 10;
/// Producers are kept in an array of so many.
const PRODUCER_SLOTS: usize = 4096;

/// What recovery of a segment must come to: index entries, the producers' last sequences, the end.
#[derive(Debug)]
struct Walked {
    offset_index: Vec<u8>,
    time_index: Vec<u8>,
    producers: Vec<(i64, i32)>,
    since_entry: usize,
    position: u32,
    next_offset: i64,
    max_timestamp: i64,
}

impl Walked {
    fn nothing() -> Self {
        Walked {
            offset_index: Vec::with_capacity(4 << 20),
            time_index: Vec::with_capacity(4 << 20),
            producers: vec![(0, 0); PRODUCER_SLOTS],
            since_entry: 0,
            position: 0,
            next_offset: 0,
            max_timestamp: 0,
        }
    }
}

/// The same of a log's bytes in memory.
///
/// # Errors
/// When a checksum is wrong.
pub fn recover_bytes(bytes: &[u8]) -> Result<i64> {
    let mut walked = Walked::nothing();
    walk(bytes, &mut walked)?;
    black_box(&walked);
    Ok(walked.next_offset)
}

/// Checks every batch of a log and builds indexes and producers. The engine's maps are used where
/// maps are allowed, and plain reads else.
///
/// # Errors
/// When a checksum is wrong.
pub fn recover(log: &Path, maps: MapMode) -> Result<i64> {
    let mut walked = Walked::nothing();
    if maps == MapMode::Never {
        walk_reads(log, &mut walked)?;
    } else {
        walk_map(log, maps, &mut walked)?;
    }
    black_box(&walked);
    Ok(walked.next_offset)
}

fn walk_reads(log: &Path, walked: &mut Walked) -> Result<()> {
    let mut file = File::open(log)?;
    let (mut buffer, mut kept) = (vec![0; BUFFER_BYTES], 0);
    loop {
        let room = buffer.get_mut(kept..).unwrap_or_default();
        let wanted = room.len().min(WINDOW_BYTES);
        let read = file.read(room.get_mut(..wanted).unwrap_or_default())?;
        if read == 0 {
            break;
        }
        let held = kept + read;
        let taken = walk(buffer.get(..held).unwrap_or_default(), walked)?;
        buffer.copy_within(taken..held, 0);
        kept = held - taken;
    }
    if kept == 0 { Ok(()) } else { Err("the log does not end with a whole batch".into()) }
}

fn walk_map(log: &Path, maps: MapMode, walked: &mut Walked) -> Result<()> {
    let file = Disk::new().open(log, OpenMode::Read)?;
    let size = file.metadata()?.size_bytes;
    let mut source = Reader::new(&*file, size, WINDOW_BYTES, maps);
    let mut at = 0;
    while at < size {
        let window = source.window(at, HEADER_SIZE)?;
        let mut taken = walk(window, walked)?;
        if taken == 0 {
            let wanted = size_of(window)?;
            taken = walk(source.window(at, wanted)?, walked)?;
            if taken == 0 {
                return Err("the log does not end with a whole batch".into());
            }
        }
        at += u64::try_from(taken)?;
    }
    Ok(())
}

fn size_of(batch: &[u8]) -> Result<usize> {
    Ok(usize::try_from(u32_at(batch, 8).ok_or("no header")?)? + 12)
}

/// Takes the whole batches of a window and gives their bytes.
fn walk(window: &[u8], walked: &mut Walked) -> Result<usize> {
    let mut rest = window;
    while let Some(size) = u32_at(rest, 8) {
        let Some((batch, behind)) = rest.split_at_checked(usize::try_from(size)? + 12) else {
            break;
        };
        take(batch, walked).ok_or("a batch is not what was written")?;
        rest = behind;
    }
    Ok(window.len() - rest.len())
}

#[inline]
fn take(batch: &[u8], walked: &mut Walked) -> Option<()> {
    if crc32_iscsi(batch.get(21..)?) != u32_at(batch, 17)? {
        return None;
    }
    let last = i64_at(batch, 0)? + i64::from(u32_at(batch, 23)?);
    walked.max_timestamp = walked.max_timestamp.max(i64_at(batch, 35)?);
    if walked.since_entry > 4096 {
        let relative = u32::try_from(last).ok()?.to_be_bytes();
        walked.offset_index.extend_from_slice(&relative);
        walked.offset_index.extend_from_slice(&walked.position.to_be_bytes());
        walked.time_index.extend_from_slice(&walked.max_timestamp.to_be_bytes());
        walked.time_index.extend_from_slice(&relative);
        walked.since_entry = 0;
    }
    let producer_id = i64_at(batch, 43)?;
    let slot = usize::try_from(producer_id).ok()? % PRODUCER_SLOTS;
    *walked.producers.get_mut(slot)? = (producer_id, u32_at(batch, 53)?.cast_signed());
    walked.since_entry += batch.len();
    walked.position += u32::try_from(batch.len()).ok()?;
    walked.next_offset = last + 1;
    Some(())
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
pub(crate) fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
    Some(i64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads a file from front to back, as the kernel reads ahead.
///
/// # Errors
/// When it cannot be read.
pub fn read_through(path: &Path) -> Result<()> {
    let mut file = File::open(path)?;
    crate::cache::will_read_in_order(&file)?;
    let mut buffer = vec![0; 1 << 20];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Opens the blocks of a frame as Kafka writes it: a header of seven bytes, blocks, an end mark of
/// zeros.
///
/// # Errors
/// When it is not such a frame.
pub fn lz4_blocks(frame: &[u8], out: &mut [u8]) -> Result<usize> {
    const IS_PLAIN: u32 = 1 << 31;
    let (mut rest, mut opened) = (frame.get(7..).ok_or("no frame")?, 0);
    loop {
        let (head, behind) = rest.split_first_chunk::<4>().ok_or("no end mark")?;
        let size = u32::from_le_bytes(*head);
        if size == 0 {
            return Ok(opened);
        }
        let wanted = usize::try_from(size & !IS_PLAIN)?;
        let (block, behind) = behind.split_at_checked(wanted).ok_or("a short block")?;
        opened += if size & IS_PLAIN == 0 {
            lz4_flex::block::decompress_into(block, out)?
        } else {
            black_box(block).len()
        };
        rest = behind;
    }
}
