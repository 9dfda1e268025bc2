//! What could this machine do? Loops that do the work that cannot be left out, and no more.
//!
//! They believe what they read: no length is checked twice, no verdict is given, nothing but the
//! least is kept. What an engine that checks everything comes to is judged against them.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crc_fast::crc32_iscsi;
use siltstone::io::{Disk, MapMode, OpenMode, Reader, Source, Storage};

use crate::Result;

/// Bytes before the records of a batch.
const HEADER_SIZE: usize = 61;
/// Bytes of a window.
const WINDOW_BYTES: usize = 256 << 10;
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

/// Checks every batch of a log and builds indexes and producers.
///
/// # Errors
/// When a checksum is wrong.
pub fn recover(log: &Path, maps: MapMode) -> Result<i64> {
    let file = Disk::new().open(log, OpenMode::Read)?;
    let size = file.metadata()?.size_bytes;
    let mut source = Reader::new(&*file, size, WINDOW_BYTES, maps);
    let mut walked = Walked {
        offset_index: Vec::with_capacity(4 << 20),
        time_index: Vec::with_capacity(4 << 20),
        producers: vec![(0, 0); PRODUCER_SLOTS],
        since_entry: 0,
        position: 0,
        next_offset: 0,
        max_timestamp: 0,
    };
    let mut at = 0;
    while at < size {
        let window = source.window(at, HEADER_SIZE)?;
        let mut taken = walk(window, &mut walked)?;
        if taken == 0 {
            let wanted = size_of(window)?;
            taken = walk(source.window(at, wanted)?, &mut walked)?;
            if taken == 0 {
                return Err("the log does not end with a whole batch".into());
            }
        }
        at += u64::try_from(taken)?;
    }
    black_box(&walked);
    Ok(walked.next_offset)
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
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[inline]
fn i64_at(bytes: &[u8], at: usize) -> Option<i64> {
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

/// Checks every batch of a log and opens its payload as LZ4 frames by the library that the engine
/// uses, a block at a time.
///
/// # Errors
/// When something is not what was written.
pub fn open_lz4(log: &[u8]) -> Result<usize> {
    let (mut rest, mut opened) = (log, 0);
    let mut out = vec![0; 1 << 20];
    while let Some(size) = u32_at(rest, 8) {
        let (batch, behind) = rest.split_at_checked(usize::try_from(size)? + 12).ok_or("short")?;
        if Some(crc32_iscsi(batch.get(21..).ok_or("short")?)) != u32_at(batch, 17) {
            return Err("a batch is not what was written".into());
        }
        opened += lz4_blocks(batch.get(HEADER_SIZE..).ok_or("short")?, &mut out)?;
        rest = behind;
    }
    Ok(opened)
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

/// Reads a snapshot of producers into an array.
///
/// # Errors
/// When its checksum is wrong.
pub fn read_snapshot(bytes: &[u8], found: &mut Vec<[i64; 6]>) -> Result<()> {
    if Some(crc32_iscsi(bytes.get(6..).ok_or("short")?)) != u32_at(bytes, 2) {
        return Err("the checksum is wrong".into());
    }
    found.clear();
    found.extend(bytes.get(10..).unwrap_or_default().chunks_exact(46).filter_map(|entry| {
        let numbers = (u32_at(entry, 8)?, u32_at(entry, 22)?, u32_at(entry, 34)?);
        let small = i64::from(numbers.0) << 32 | i64::from(numbers.1);
        Some([
            i64_at(entry, 0)?,
            i64_at(entry, 14)?,
            i64_at(entry, 26)?,
            i64_at(entry, 38)?,
            small,
            i64::from(numbers.2),
        ])
    }));
    Ok(())
}

/// Walks a transaction index and takes what a fetch of all offsets must know.
pub fn collect_aborted(bytes: &[u8], found: &mut Vec<(i64, i64)>) {
    for entry in bytes.chunks_exact(34) {
        if let (Some(id), Some(first), Some(last)) =
            (i64_at(entry, 2), i64_at(entry, 10), i64_at(entry, 18))
            && last >= 0
        {
            found.push((id, first));
        }
    }
}

/// Does to every folder what its recovery cannot leave out: list it, read its logs, check them,
/// write a snapshot beside and put it in place, write over the time index, cut the offset index.
/// Folders are made durable by the hundred.
///
/// # Errors
/// When a folder is not what was made.
pub fn recover_folders(
    home: &Path,
    folders: &[PathBuf],
    threads: usize,
    snapshot: &str,
    active: &str,
) -> Result<()> {
    for group in folders.chunks(256) {
        let share = group.len().div_ceil(threads.max(1));
        each(group, share, &|folder| prepare(folder, snapshot))?;
        crate::cache::sync_all(home)?;
        each(group, share, &|folder| commit(folder, snapshot, active))?;
        crate::cache::sync_all(home)?;
    }
    Ok(())
}

type Step<'a> = &'a (dyn Fn(&Path) -> std::io::Result<()> + Sync);

fn each(group: &[PathBuf], share: usize, step: Step<'_>) -> Result<()> {
    if share >= group.len() {
        return Ok(group.iter().try_for_each(|folder| step(folder))?);
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = group
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().try_for_each(|folder| step(folder))))
            .collect();
        for worker in workers {
            worker.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })
}

fn prepare(folder: &Path, snapshot: &str) -> std::io::Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let mut producers: HashMap<i64, u32> = HashMap::new();
    let mut buffer = vec![0; 64 << 10];
    for name in names.iter().filter(|name| name.ends_with(".log")) {
        let file = File::open(folder.join(name))?;
        let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        buffer.resize(size, 0);
        file.read_exact_at(&mut buffer, 0)?;
        let mut rest = buffer.as_slice();
        while let Some(batch) = u32_at(rest, 8)
            .and_then(|size| rest.split_at_checked(usize::try_from(size).ok()?.saturating_add(12)))
        {
            let computed = crc32_iscsi(batch.0.get(21..).unwrap_or_default());
            if let (Some(id), true) = (i64_at(batch.0, 43), u32_at(batch.0, 17) == Some(computed)) {
                producers.insert(id, u32_at(batch.0, 53).unwrap_or(0));
            }
            rest = batch.1;
        }
    }
    black_box(&producers);
    for name in
        names.iter().filter(|name| name.ends_with("-checkpoint") || name.ends_with(".metadata"))
    {
        black_box(fs::read(folder.join(name))?);
    }
    fs::write(folder.join(format!("{snapshot}.tmp")), [7; 470])?;
    Ok(())
}

fn commit(folder: &Path, snapshot: &str, active: &str) -> std::io::Result<()> {
    fs::rename(folder.join(format!("{snapshot}.tmp")), folder.join(snapshot))?;
    let times = OpenOptions::new().write(true).open(folder.join(format!("{active}.timeindex")))?;
    times.write_all_at(&[7; 96], 0)?;
    times.set_len(96)?;
    OpenOptions::new().write(true).open(folder.join(format!("{active}.index")))?.set_len(64)
}
