//! How do a header and a record become bytes?

use super::Header;
use super::options::invalid;
use crate::bytes;
use crate::error::{Error, Kind, Result};
use crate::record::batch::{BatchHeader, LOG_OVERHEAD, compute_crc};
use crate::record::varint;

const CRC_POSITION: usize = 17;

/// `offset` relative to the base offset of its batch.
pub(super) fn delta_from(base_offset: i64, offset: i64) -> Result<i32> {
    offset
        .checked_sub(base_offset)
        .and_then(|delta| i32::try_from(delta).ok())
        .filter(|delta| *delta >= 0)
        .ok_or_else(|| invalid(format!("offset {offset} cannot be told relative to {base_offset}")))
}

/// Appends a header; size and checksum are filled in by [`seal`].
pub(super) fn push_header(out: &mut Vec<u8>, header: &BatchHeader) {
    out.extend_from_slice(&header.base_offset.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&header.leader_epoch.to_be_bytes());
    out.extend_from_slice(&header.magic.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[0, header.attributes]);
    out.extend_from_slice(&header.last_offset_delta.to_be_bytes());
    out.extend_from_slice(&header.base_timestamp.to_be_bytes());
    out.extend_from_slice(&header.max_timestamp.to_be_bytes());
    out.extend_from_slice(&header.producer_id.to_be_bytes());
    out.extend_from_slice(&header.producer_epoch.to_be_bytes());
    out.extend_from_slice(&header.base_sequence.to_be_bytes());
    out.extend_from_slice(&header.count.to_be_bytes());
}

/// Writes size and checksum of the batch that stands from `start` to the end; gives its size.
pub(super) fn seal(out: &mut [u8], start: usize) -> Result<usize> {
    let batch = out.get_mut(start..).unwrap_or_default();
    let size = i32::try_from(batch.len() - LOG_OVERHEAD)
        .map_err(|_| Error::new(Kind::Limit, "a batch has more than 2^31 - 1 bytes"))?;
    let crc = compute_crc(batch);
    let is_written = bytes::put(batch, LOG_OVERHEAD - 4, &size.to_be_bytes())
        && bytes::put(batch, CRC_POSITION, &crc.to_be_bytes());
    debug_assert!(is_written);
    Ok(batch.len())
}

/// Appends one record, whose length must be known before its first byte is written.
pub(super) fn push_record<'h>(
    out: &mut Vec<u8>,
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: impl Iterator<Item = Header<'h>> + Clone,
) -> Result<()> {
    let header_count = to_i32(headers.clone().count())?;
    let headers_size: usize = headers
        .clone()
        .map(|(key, value)| field_size(Some(key)).saturating_add(field_size(value)))
        .fold(0, usize::saturating_add);
    let size = (1
        + varint_size(timestamp_delta)
        + varint_size(i64::from(offset_delta))
        + varint_size(i64::from(header_count)))
    .saturating_add(field_size(key))
    .saturating_add(field_size(value))
    .saturating_add(headers_size);
    // No field is longer than the record, so that this bounds all of them.
    varint::write_i32(out, to_i32(size)?);
    out.push(0);
    varint::write_i64(out, timestamp_delta);
    varint::write_i32(out, offset_delta);
    push_field(out, key)?;
    push_field(out, value)?;
    varint::write_i32(out, header_count);
    for (key, value) in headers {
        push_field(out, Some(key))?;
        push_field(out, value)?;
    }
    Ok(())
}

fn push_field(out: &mut Vec<u8>, field: Option<&[u8]>) -> Result<()> {
    match field {
        None => varint::write_i32(out, -1),
        Some(bytes) => {
            varint::write_i32(out, to_i32(bytes.len())?);
            out.extend_from_slice(bytes);
        }
    }
    Ok(())
}

fn field_size(field: Option<&[u8]>) -> usize {
    // A length above i64's is no memory's; the record is then refused by its size.
    field.map_or(1, |bytes| {
        varint_size(i64::try_from(bytes.len()).unwrap_or(i64::MAX)).saturating_add(bytes.len())
    })
}

/// Bytes of the zigzag-coded number.
fn varint_size(value: i64) -> usize {
    let coded = ((value << 1) ^ (value >> 63)).cast_unsigned();
    let bits = u64::BITS - coded.leading_zeros();
    usize::try_from(bits.div_ceil(7).max(1)).unwrap_or(10)
}

fn to_i32(size: usize) -> Result<i32> {
    i32::try_from(size)
        .map_err(|_| Error::new(Kind::Limit, "a record has more than 2^31 - 1 bytes"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::hex;
    use super::*;

    // spec: records 10; behaviours VB-022, VB-023
    #[test]
    fn one_record_has_kafkas_bytes() {
        let mut out = Vec::new();
        push_record(&mut out, 10, 5, Some(b"hi"), Some(b"there"), std::iter::empty()).unwrap();
        assert_eq!(hex(&out), "1a00140a0468690a746865726500");
        let mut out = Vec::new();
        push_record(&mut out, 0, 0, None, None, std::iter::empty()).unwrap();
        assert_eq!(hex(&out), "0c000000010100");
    }
}
