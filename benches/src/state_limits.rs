//! What is the least that the small files of a log take, once their bytes are in memory? As in
//! [`limits`](crate::limits).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crc_fast::crc32_iscsi;

use crate::Result;
use crate::limits::{i64_at, u32_at};

/// Bytes of a producer in a snapshot, and before the first one.
const PRODUCER_SIZE: usize = 46;
const SNAPSHOT_HEADER: usize = 10;
/// Bytes of an aborted transaction in its index.
const TXN_SIZE: usize = 34;

/// Reads a snapshot of producers into an array.
///
/// # Errors
/// When its checksum is wrong.
pub fn read_snapshot(bytes: &[u8], found: &mut Vec<[i64; 6]>) -> Result<()> {
    if Some(crc32_iscsi(bytes.get(6..).ok_or("short")?)) != u32_at(bytes, 2) {
        return Err("the checksum is wrong".into());
    }
    found.clear();
    let entries = bytes.get(SNAPSHOT_HEADER..).unwrap_or_default();
    found.extend(entries.chunks_exact(PRODUCER_SIZE).filter_map(producer));
    Ok(())
}

/// The numbers of a producer.
#[inline]
fn producer(entry: &[u8]) -> Option<[i64; 6]> {
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
}

/// Producers by id.
pub type Producers = HashMap<i64, [i64; 6], BuildHasherDefault<Multiply>>;

/// Spreads a producer id by one multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_i64(&mut self, id: i64) {
        self.write_u64(id.cast_unsigned());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// Reads a snapshot of producers into a map that finds them by id.
///
/// # Errors
/// When its checksum is wrong.
pub fn load_snapshot(bytes: &[u8]) -> Result<Producers> {
    if Some(crc32_iscsi(bytes.get(6..).ok_or("short")?)) != u32_at(bytes, 2) {
        return Err("the checksum is wrong".into());
    }
    let entries = bytes.get(SNAPSHOT_HEADER..).unwrap_or_default();
    let count = entries.len() / PRODUCER_SIZE;
    let mut found = Producers::with_capacity_and_hasher(count, BuildHasherDefault::default());
    found.extend(
        entries.chunks_exact(PRODUCER_SIZE).filter_map(producer).map(|entry| (entry[0], entry)),
    );
    Ok(found)
}

/// Walks a transaction index and takes what a fetch of all offsets must know.
pub fn collect_aborted(bytes: &[u8], found: &mut Vec<(i64, i64)>) {
    for entry in bytes.chunks_exact(TXN_SIZE) {
        if let (Some(id), Some(first), Some(last)) =
            (i64_at(entry, 2), i64_at(entry, 10), i64_at(entry, 18))
            && last >= 0
        {
            found.push((id, first));
        }
    }
}

/// Whether every entry of a transaction index ends behind the one before it.
#[must_use]
pub fn aborted_rise(bytes: &[u8]) -> bool {
    let mut before = i64::MIN;
    bytes.chunks_exact(TXN_SIZE).all(|entry| {
        let last = i64_at(entry, 18).unwrap_or(i64::MIN);
        let rises = last > before;
        before = last;
        rises
    })
}

/// The byte in a transaction index where the first entry begins that ends at `offset` or behind it.
#[must_use]
pub fn first_aborted(index: &[u8], offset: i64) -> usize {
    let (mut low, mut left) = (0, index.len() / TXN_SIZE);
    while left > 0 {
        let half = left / 2;
        let at = (low + half) * TXN_SIZE + 18;
        let last = index.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        if last.is_some_and(|bytes| i64::from_be_bytes(bytes) < offset) {
            low += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    low * TXN_SIZE
}
