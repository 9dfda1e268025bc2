//! Pure functions over the caller's memory.

use std::ops::ControlFlow;

use engine::Error;
use engine::io::checksum;
use engine::record::BatchHeader;
use engine::record::batch::HEADER_SIZE;
use engine::record::builder::{BatchOptions, write_end_marker};
use engine::record::control::EndMarker;
use engine::record::scan::{ScannedBatch, Stop, scan};
use engine::record::validate::Batches;
use engine::segment::rebuild::{IndexRebuild, IndexSettings};

use crate::error::{Outcome, SiltError, Status, fits, guard, invalid};
use crate::memory::{
    bytes_of, check_struct, flags_of, items_of_mut, put_whole, read_struct, u64_of,
    write_if_wanted, write_plain, write_struct,
};
use crate::types::{Batch, EndMarker as CEndMarker, Rebuilt};

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_crc32c(crc: u32, bytes: *const u8, size_bytes: u64) -> u32 {
    // SAFETY: the caller's bytes.
    match unsafe { bytes_of(bytes, size_bytes) } {
        Ok(bytes) => checksum::crc32c_append(crc, bytes),
        Err(_) => crc,
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_batch_parse(
    bytes: *const u8,
    size_bytes: u64,
    out: *mut Batch,
    capacity: u32,
    count: *mut u32,
    consumed_bytes: *mut u64,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's bytes.
        let bytes = unsafe { bytes_of(bytes, size_bytes)? };
        // SAFETY: the caller's array.
        let slots = unsafe { items_of_mut(out, u64::from(capacity))? };
        let (mut found, mut position, mut is_short) = (0, 0, false);
        let mut slots = slots.iter_mut();
        for view in Batches::new(bytes) {
            let view = match view {
                Ok(view) => view,
                Err(error) => return Err(Error::from(error).at_position(position).into()),
            };
            let Some(slot) = slots.next() else {
                is_short = true;
                break;
            };
            *slot = batch(&view.header, position);
            found += 1;
            position += u64::from(view.header.size_bytes);
        }
        // SAFETY: the caller's number.
        unsafe { write_plain(count, found)? };
        // SAFETY: the caller's number.
        unsafe { write_if_wanted(consumed_bytes, position)? };
        fits(!is_short, "there are more batches")
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// The header of a batch, as C sees it.
fn batch(header: &BatchHeader, position: u64) -> Batch {
    let flags = [
        (header.is_transactional(), 1),
        (header.is_control(), 2),
        (header.timestamp_type() == engine::record::TimestampType::LogAppendTime, 4),
        (header.delete_horizon_ms().is_some(), 8),
    ];
    Batch {
        base_offset: header.base_offset,
        last_offset: header.last_offset(),
        base_timestamp_ms: header.base_timestamp,
        max_timestamp_ms: header.max_timestamp,
        producer_id: header.producer_id,
        position,
        size_bytes: header.size_bytes,
        crc: header.crc,
        leader_epoch: header.leader_epoch,
        base_sequence: header.base_sequence,
        record_count: header.count,
        producer_epoch: header.producer_epoch,
        magic: header.magic,
        codec: header.codec_id(),
        flags: flags_of(&flags),
        reserved: 0,
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_batch_validate(
    bytes: *const u8,
    size_bytes: u64,
    valid_bytes: *mut u64,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's bytes.
        let mut bytes = unsafe { bytes_of(bytes, size_bytes)? };
        let mut visit = |_: ScannedBatch<'_>| Ok(ControlFlow::Continue(()));
        let end = scan(&mut bytes, 0, u64::MAX, &mut visit)?;
        // SAFETY: the caller's number.
        unsafe { write_if_wanted(valid_bytes, end.position)? };
        match end.stop {
            Stop::End => Ok(()),
            stop => Err(Error::corrupt(what_stopped(stop)).at_position(end.position).into()),
        }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

fn what_stopped(stop: Stop) -> String {
    match stop {
        Stop::Short { announced_bytes: Some(size) } => {
            format!("a batch of {size} bytes is not whole")
        }
        Stop::Short { announced_bytes: None } => "too few bytes for a batch".to_owned(),
        Stop::BadLength { size_field } => format!("a batch has the size field {size_field}"),
        Stop::BadCrc { stored, computed } => {
            format!("a batch has the checksum {stored:#010x}, but its bytes {computed:#010x}")
        }
        Stop::UnknownMagic { magic } => format!("a batch has the unknown magic {magic}"),
        Stop::End | Stop::Asked | Stop::Visitor => "the walk ended early".to_owned(),
    }
}

/// `SILT_END_ABORT`.
const ABORT: u32 = 1;

/// The batch that ends a transaction.
fn end_marker(given: &CEndMarker) -> Outcome<Vec<u8>> {
    if given.flags & !ABORT != 0 {
        return invalid("flags are none of SILT_END_");
    }
    let Ok(producer_epoch) = i16::try_from(given.producer_epoch) else {
        return invalid("producer_epoch is no epoch");
    };
    let CEndMarker { base_offset, leader_epoch, producer_id, .. } = *given;
    let options = BatchOptions {
        base_offset,
        leader_epoch,
        producer_id,
        producer_epoch,
        ..BatchOptions::default()
    };
    let CEndMarker { coordinator_epoch, timestamp_ms, .. } = *given;
    let is_abort = given.flags & ABORT != 0;
    let mut batch = Vec::new();
    write_end_marker(
        &options,
        &EndMarker { is_abort, coordinator_epoch, timestamp_ms },
        &mut batch,
    )?;
    Ok(batch)
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_end_marker_write(
    marker: *const CEndMarker,
    bytes: *mut u8,
    capacity: u64,
    size_bytes: *mut u64,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: a struct of the header.
        let batch = end_marker(&unsafe { read_struct(marker)? })?;
        // SAFETY: the caller's array.
        let room = unsafe { items_of_mut(bytes, capacity)? };
        // SAFETY: the caller's number.
        unsafe { put_whole(room, &batch, size_bytes, "the marker does not fit its array") }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_segment_rebuild(
    bytes: *const u8,
    size_bytes: u64,
    base_offset: i64,
    index_interval_bytes: u32,
    index_size_bytes_max: u32,
    offset_index: *mut u8,
    offset_index_capacity: u64,
    time_index: *mut u8,
    time_index_capacity: u64,
    out: *mut Rebuilt,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's bytes.
        let bytes = unsafe { bytes_of(bytes, size_bytes)? };
        // SAFETY: the caller's array.
        let offset_room = unsafe { items_of_mut(offset_index, offset_index_capacity)? };
        // SAFETY: the caller's array.
        let time_room = unsafe { items_of_mut(time_index, time_index_capacity)? };
        // SAFETY: a struct of the header.
        unsafe { check_struct(out)? };
        let settings = settings(index_interval_bytes, index_size_bytes_max);
        let (rebuilt, offsets, times) = rebuild(bytes, base_offset, settings)?;
        // SAFETY: a struct of the header.
        unsafe { write_struct(out, &rebuilt)? };
        let is_put = put(offset_room, &offsets) & put(time_room, &times);
        fits(is_put, "an index does not fit its array")
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// The shape of indexes; 0 for Kafka's defaults.
pub fn settings(interval_bytes: u32, size_bytes_max: u32) -> IndexSettings {
    let defaults = IndexSettings::default();
    let max_size_bytes = usize::try_from(size_bytes_max).unwrap_or(usize::MAX);
    IndexSettings {
        interval_bytes: match interval_bytes {
            0 => defaults.interval_bytes,
            bytes => u64::from(bytes),
        },
        max_size_bytes: if max_size_bytes == 0 { defaults.max_size_bytes } else { max_size_bytes },
    }
}

/// Writes an index to its array; an array of no size does not want it.
pub fn put(room: &mut [u8], index: &[u8]) -> bool {
    match room.get_mut(..index.len()) {
        Some(room) => {
            room.copy_from_slice(index);
            true
        }
        None => room.is_empty(),
    }
}

/// Walks through a segment: what was found, and its two indexes.
fn rebuild(
    mut bytes: &[u8],
    base_offset: i64,
    settings: IndexSettings,
) -> Outcome<(Rebuilt, Vec<u8>, Vec<u8>)> {
    /// Headers are all that is looked at.
    struct Walk {
        indexes: IndexRebuild,
        batch_count: u32,
        next_offset: i64,
    }
    impl engine::record::scan::Visitor for Walk {
        fn body_limit_bytes(&self) -> usize {
            HEADER_SIZE
        }

        fn batch(&mut self, batch: ScannedBatch<'_>) -> engine::Result<ControlFlow<()>> {
            self.indexes.batch(batch.header, batch.position)?;
            self.batch_count += 1;
            self.next_offset = self.next_offset.max(batch.header.next_offset());
            Ok(ControlFlow::Continue(()))
        }
    }
    let indexes = IndexRebuild::new(base_offset, settings)?;
    let mut walk = Walk { indexes, batch_count: 0, next_offset: base_offset };
    let end = scan(&mut bytes, 0, u64::MAX, &mut walk)?;
    let indexes = walk.indexes.finish()?;
    let rebuilt = Rebuilt {
        struct_size: 0,
        batch_count: walk.batch_count,
        valid_bytes: end.position,
        next_offset: walk.next_offset,
        max_timestamp_ms: indexes.max_timestamp,
        offset_index_size_bytes: u64_of(indexes.offset_index.len()),
        time_index_size_bytes: u64_of(indexes.time_index.len()),
    };
    Ok((rebuilt, indexes.offset_index, indexes.time_index))
}
