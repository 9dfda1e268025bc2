//! Which bytes of a batch change when it is appended?
//!
//! Offsets and the leader epoch lie outside the checksum of a batch of magic 2, and the offset
//! outside that of the old formats. A timestamp lies inside.

use crate::bytes;
use crate::record::batch::{ATTR_LOG_APPEND_TIME, BatchHeader, TimestampType, compute_crc};
use crate::record::legacy::compute_legacy_crc;

/// What of the attributes is kept when they are written anew: codec, transaction, control batch,
/// delete horizon. Kafka drops bits that it has no name for.
const KEPT_ATTRIBUTES: u8 = 0x77;
const KEPT_LEGACY_ATTRIBUTES: u8 = 0x07;

/// Moves a batch so that its last record has `last_offset`. `false`, and nothing written, when the
/// bytes are too few.
// spec: records 1
pub fn set_last_offset(batch: &mut [u8], last_offset: i64) -> bool {
    let delta = match batch.get(16) {
        Some(2) => bytes::get_i32(batch, 23),
        Some(_) => Some(0),
        None => None,
    };
    // Kafka subtracts without a check.
    delta.is_some_and(|delta| {
        let base_offset = last_offset.wrapping_sub(i64::from(delta));
        bytes::put(batch, 0, &base_offset.to_be_bytes())
    })
}

/// Gives a batch the epoch of its leader. `false`, and nothing written, for the old formats, which
/// have none.
pub fn set_leader_epoch(batch: &mut [u8], leader_epoch: i32) -> bool {
    batch.get(16) == Some(&2) && bytes::put(batch, 12, &leader_epoch.to_be_bytes())
}

/// Says who gave the timestamps, and the largest. The checksum is computed anew only where that
/// changes something. `false`, and nothing written, for magic 0, which has no timestamps.
// spec: records 1
pub fn set_max_timestamp(batch: &mut [u8], timestamp_type: TimestampType, max_ms: i64) -> bool {
    let flag = match timestamp_type {
        TimestampType::LogAppendTime => ATTR_LOG_APPEND_TIME,
        TimestampType::CreateTime | TimestampType::None => 0,
    };
    match batch.get(16) {
        Some(2) => set_in_header(batch, flag, max_ms),
        Some(1) => set_in_message(batch, flag, max_ms),
        _ => false,
    }
}

fn set_in_header(batch: &mut [u8], flag: u8, max_ms: i64) -> bool {
    let Some(header) = BatchHeader::parse(batch) else { return false };
    if header.attributes & ATTR_LOG_APPEND_TIME == flag && header.max_timestamp == max_ms {
        return true;
    }
    let attributes = [0, header.attributes & KEPT_ATTRIBUTES | flag];
    bytes::put(batch, 21, &attributes) && bytes::put(batch, 35, &max_ms.to_be_bytes()) && {
        let crc = compute_crc(batch);
        bytes::put(batch, 17, &crc.to_be_bytes())
    }
}

fn set_in_message(entry: &mut [u8], flag: u8, timestamp_ms: i64) -> bool {
    let Some(header) = BatchHeader::parse_legacy(entry) else { return false };
    if header.attributes & ATTR_LOG_APPEND_TIME == flag && header.max_timestamp == timestamp_ms {
        return true;
    }
    let attributes = [header.attributes & KEPT_LEGACY_ATTRIBUTES | flag];
    bytes::put(entry, 17, &attributes) && bytes::put(entry, 18, &timestamp_ms.to_be_bytes()) && {
        let crc = compute_legacy_crc(entry);
        bytes::put(entry, 12, &crc.to_be_bytes())
    }
}
