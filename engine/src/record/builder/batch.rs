//! How are records put into a batch of magic 2? (The bytes are drawn in [`crate::record::batch`].)

use super::encode::{delta_from, push_header, push_record, seal};
use super::options::{BatchOptions, invalid};
use crate::error::{Error, Result};
use crate::record::batch::{BatchHeader, HEADER_SIZE};
use crate::record::codec::{Compression, Compressor};
use crate::record::records::Record;
use crate::units::NO_TIMESTAMP;

/// A header of a record: its key and its value, where `None` is null.
pub type Header<'a> = (&'a [u8], Option<&'a [u8]>);

/// Collects records and writes them as one batch of magic 2.
///
/// ```
/// use siltstone::record::BatchHeader;
/// use siltstone::record::builder::{BatchBuilder, BatchOptions};
/// use siltstone::record::codec::{Codec, Compressor};
///
/// let compression = Codec::Zstd.into();
/// let options = BatchOptions { base_offset: 42, compression, ..Default::default() };
/// let mut builder = BatchBuilder::new(options)?;
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
/// builder.append(1_700_000_000_001, Some(b"key"), None)?;
/// let mut log = Vec::new();
/// builder.write_to(&mut Compressor::new(), &mut log)?;
/// assert_eq!(BatchHeader::parse(&log).unwrap().last_offset(), 43);
/// # Ok::<(), siltstone::Error>(())
/// ```
pub struct BatchBuilder {
    options: BatchOptions,
    records: Vec<u8>,
    count: i32,
    last_offset: i64,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// An empty batch with these options.
    ///
    /// # Errors
    ///
    /// Options that contradict each other: a transaction or sequence without producer, a producer
    /// without epoch or, for data, without sequence.
    pub fn new(options: BatchOptions) -> Result<Self> {
        let mut builder = BatchBuilder {
            options,
            records: Vec::new(),
            count: 0,
            last_offset: 0,
            base_timestamp: NO_TIMESTAMP,
            max_timestamp: NO_TIMESTAMP,
        };
        builder.restart(options)?;
        Ok(builder)
    }

    /// Drops all records and begins another batch in the same memory.
    ///
    /// # Errors
    ///
    /// As [`BatchBuilder::new`]; the builder is then unchanged.
    pub fn restart(&mut self, options: BatchOptions) -> Result<()> {
        options.check()?;
        self.options = options;
        self.records.clear();
        self.count = 0;
        self.last_offset = options.base_offset.wrapping_sub(1);
        self.base_timestamp = options.delete_horizon_ms.unwrap_or(NO_TIMESTAMP);
        self.max_timestamp = NO_TIMESTAMP;
        Ok(())
    }

    /// Records so far.
    #[must_use]
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Bytes of the batch so far, uncompressed, its header included.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        HEADER_SIZE + self.records.len()
    }

    /// Appends a record without headers at the next offset.
    ///
    /// # Errors
    ///
    /// As [`BatchBuilder::append_at`].
    pub fn append(
        &mut self,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> Result<()> {
        self.append_at(self.next_offset(), timestamp_ms, key, value, std::iter::empty())
    }

    /// Appends a record that was read elsewhere: its offset, timestamp, key, value and headers.
    ///
    /// # Errors
    ///
    /// As [`BatchBuilder::append_at`].
    pub fn append_record(&mut self, record: &Record<'_>) -> Result<()> {
        let Record { offset, timestamp_ms, key, value, headers, .. } = *record;
        self.append_at(offset, timestamp_ms, key, value, headers)
    }

    /// Appends a record. `timestamp_ms` is -1 for none.
    ///
    /// # Errors
    ///
    /// An offset that does not lie above the last one, or not within 2^31 - 1 of the base offset; a
    /// negative timestamp other than -1; more than 2^31 - 1 records or bytes.
    pub fn append_at<'h>(
        &mut self,
        offset: i64,
        timestamp_ms: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl Iterator<Item = Header<'h>> + Clone,
    ) -> Result<()> {
        // spec: records 1.3
        if offset <= self.last_offset {
            let last = self.last_offset;
            return Err(invalid(format!("offset {offset} does not lie above {last}")));
        }
        let offset_delta = delta_from(self.options.base_offset, offset)?;
        if timestamp_ms < NO_TIMESTAMP {
            return Err(invalid(format!("timestamp {timestamp_ms} is negative")));
        }
        let count = self.count.checked_add(1).ok_or_else(|| invalid("too many records"))?;
        // Kafka quirk: deltas count from the first record's timestamp even where the log's own time
        // covers it, and from the delete horizon where there is one.
        let base_timestamp = if self.count == 0 && self.options.delete_horizon_ms.is_none() {
            timestamp_ms
        } else {
            self.base_timestamp
        };
        let start = self.records.len();
        let timestamp_delta = timestamp_ms.wrapping_sub(base_timestamp);
        push_record(&mut self.records, timestamp_delta, offset_delta, key, value, headers)
            .inspect_err(|_| self.records.truncate(start))?;
        self.base_timestamp = base_timestamp;
        self.max_timestamp = self.max_timestamp.max(timestamp_ms);
        self.last_offset = offset;
        self.count = count;
        Ok(())
    }

    /// Appends the batch to `out` and says how many bytes it has: 0 when there are no records.
    ///
    /// # Errors
    ///
    /// A batch of more than 2^31 - 1 bytes, or a `last_offset` in the options that lies below the
    /// last record or not within 2^31 - 1 of the base offset; `out` is then as it was.
    pub fn write_to(&self, compressor: &mut Compressor, out: &mut Vec<u8>) -> Result<usize> {
        if self.count == 0 {
            return Ok(0);
        }
        let last_offset = self.options.last_offset.unwrap_or(self.last_offset);
        if last_offset < self.last_offset {
            return Err(invalid("the batch ends before its last record"));
        }
        let header = BatchHeader {
            base_offset: self.options.base_offset,
            size_bytes: 0,
            leader_epoch: self.options.leader_epoch,
            magic: 2,
            crc: 0,
            attributes: self.options.attributes(),
            last_offset_delta: delta_from(self.options.base_offset, last_offset)?,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.options.log_append_time_ms.unwrap_or(self.max_timestamp),
            producer_id: self.options.producer_id,
            producer_epoch: self.options.producer_epoch,
            base_sequence: self.options.base_sequence,
            count: self.count,
        };
        let start = out.len();
        push_header(out, &header);
        compressor
            .compress(self.options.compression, 2, &self.records, out)
            .map_err(Error::from)
            .and_then(|()| seal(out, start))
            .inspect_err(|_| out.truncate(start))
    }

    /// The offset that [`BatchBuilder::append`] gives to the next record.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset.wrapping_add(1)
    }
}

/// Appends the bare header that compaction leaves of a batch without records: it keeps offsets and
/// producer state.
///
/// Codec and delete horizon of the options are dropped, as Kafka drops them. `last_offset` is
/// inclusive.
///
/// # Errors
///
/// A last offset below the base offset or not within 2^31 - 1 of it.
pub fn write_empty_batch(
    options: &BatchOptions,
    last_offset: i64,
    max_timestamp_ms: i64,
    out: &mut Vec<u8>,
) -> Result<()> {
    // spec: records 1.3
    let kept = BatchOptions { compression: Compression::NONE, delete_horizon_ms: None, ..*options };
    let header = BatchHeader {
        base_offset: options.base_offset,
        size_bytes: 0,
        leader_epoch: options.leader_epoch,
        magic: 2,
        crc: 0,
        attributes: kept.attributes(),
        last_offset_delta: delta_from(options.base_offset, last_offset)?,
        base_timestamp: NO_TIMESTAMP,
        max_timestamp: max_timestamp_ms,
        producer_id: options.producer_id,
        producer_epoch: options.producer_epoch,
        base_sequence: options.base_sequence,
        count: 0,
    };
    let start = out.len();
    push_header(out, &header);
    seal(out, start).map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::tests::hex;
    use super::*;
    use crate::record::codec::Codec;
    use crate::record::records::Records;

    fn build(options: BatchOptions, records: &[(i64, &[u8], &[u8])]) -> Vec<u8> {
        let mut builder = BatchBuilder::new(options).unwrap();
        for (timestamp, key, value) in records {
            builder.append(*timestamp, Some(key), Some(value)).unwrap();
        }
        let mut out = Vec::new();
        let size = builder.write_to(&mut Compressor::new(), &mut out).unwrap();
        assert_eq!(size, out.len());
        out
    }

    const TWO_RECORDS: [(i64, &[u8], &[u8]); 2] =
        [(283_843, b"key1", b"value1"), (1234, b"key2", b"value2")];

    // spec: records 10; behaviours VB-004
    #[test]
    fn two_records_have_kafkas_bytes() {
        let expected = concat!(
            "000000000000000000000055ffffffff02e58cf1ff00000000000100000000000454c300000000000454",
            "c3ffffffffffffffffffffffffffff0000000220000000086b6579310c76616c756531002400e1bf2202",
            "086b6579320c76616c75653200"
        );
        let batch = build(BatchOptions::default(), &TWO_RECORDS);
        assert_eq!(hex(&batch), expected);
        assert_eq!((batch.len(), BatchHeader::parse(&batch).unwrap().crc), (97, 3_851_219_455));
    }

    // spec: records 10
    #[test]
    fn two_records_in_lz4_have_kafkas_bytes() {
        let options = BatchOptions { compression: Codec::Lz4.into(), ..Default::default() };
        let batch = build(options, &TWO_RECORDS);
        assert_eq!(batch.len(), 112);
        assert_eq!(BatchHeader::parse(&batch).unwrap().crc, 2_745_969_314);
        let expected = concat!(
            "04224d1860408224000080",
            "20000000086b6579310c76616c756531002400e1bf2202086b6579320c76616c7565320000000000"
        );
        assert_eq!(hex(&batch[61..]), expected);
    }

    // spec: records 10
    #[test]
    fn the_empty_batch_of_compaction_has_kafkas_bytes() {
        let options = BatchOptions {
            base_offset: 3,
            leader_epoch: 293,
            producer_id: 23,
            producer_epoch: 5,
            base_sequence: 10,
            compression: Codec::Zstd.into(),
            delete_horizon_ms: Some(99),
            ..Default::default()
        };
        let mut out = Vec::new();
        write_empty_batch(&options, 4, 12, &mut out).unwrap();
        let expected = concat!(
            "000000000000000300000031000001250255581148000000000001ffffffffffffffff00000000000000",
            "0c000000000000001700050000000a00000000"
        );
        assert_eq!(hex(&out), expected);
        assert!(write_empty_batch(&options, 2, 12, &mut out).is_err());
    }

    #[test]
    fn a_builder_without_records_writes_nothing() {
        // spec: behaviours BU-001
        assert_eq!(build(BatchOptions::default(), &[]), b"");
    }

    #[test]
    fn log_append_time_keeps_the_records_own_deltas() {
        let options = BatchOptions { log_append_time_ms: Some(999), ..Default::default() };
        let batch = build(options, &TWO_RECORDS);
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!((header.base_timestamp, header.max_timestamp), (283_843, 999));
        assert_eq!(header.attributes, 0x08);
        assert_eq!(batch[61..], build(BatchOptions::default(), &TWO_RECORDS)[61..]);
        for record in Records::new(&header, &batch[61..]) {
            assert_eq!(record.unwrap().timestamp_ms, 999);
        }
    }

    #[test]
    fn a_delete_horizon_takes_the_place_of_the_base_timestamp() {
        let options = BatchOptions { delete_horizon_ms: Some(300_000), ..Default::default() };
        let batch = build(options, &TWO_RECORDS);
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!(header.delete_horizon_ms(), Some(300_000));
        assert_eq!(header.max_timestamp, 283_843);
        let times: Vec<i64> =
            Records::new(&header, &batch[61..]).map(|r| r.unwrap().timestamp_ms).collect();
        assert_eq!(times, [283_843, 1234]);
    }

    #[test]
    fn a_compacted_batch_reaches_to_its_old_last_offset() {
        let options = BatchOptions { base_offset: 10, last_offset: Some(25), ..Default::default() };
        let mut builder = BatchBuilder::new(options).unwrap();
        builder.append_at(17, 5, None, Some(b"v"), std::iter::empty()).unwrap();
        let mut out = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut out).unwrap();
        let header = BatchHeader::parse(&out).unwrap();
        assert_eq!((header.base_offset, header.last_offset(), header.count), (10, 25, 1));

        let short = BatchOptions { last_offset: Some(16), ..options };
        let mut builder = BatchBuilder::new(short).unwrap();
        builder.append_at(17, 5, None, None, std::iter::empty()).unwrap();
        let mut out = b"before".to_vec();
        assert!(builder.write_to(&mut Compressor::new(), &mut out).is_err());
        assert_eq!(out, b"before");
    }

    #[test]
    fn records_that_kafka_refuses_leave_the_batch_as_it_was() {
        // spec: behaviours BU-008, BU-009
        let options = BatchOptions { base_offset: 100, ..Default::default() };
        let mut builder = BatchBuilder::new(options).unwrap();
        let none = std::iter::empty;
        let refuses = |builder: &mut BatchBuilder, offset, timestamp| {
            let error = builder.append_at(offset, timestamp, None, None, none()).unwrap_err();
            assert_eq!(error.kind(), crate::error::Kind::InvalidArgument, "{offset}");
        };
        refuses(&mut builder, 99, 0);
        builder.append_at(105, 7, None, None, none()).unwrap();
        refuses(&mut builder, 105, 0);
        refuses(&mut builder, 104, 0);
        refuses(&mut builder, 106, -2);
        let too_far = 100 + i64::from(i32::MAX) + 1;
        refuses(&mut builder, too_far, 0);
        builder.append_at(too_far - 1, -1, None, None, none()).unwrap();
        let mut out = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut out).unwrap();
        let header = BatchHeader::parse(&out).unwrap();
        assert_eq!((header.count, header.last_offset_delta), (2, i32::MAX));
        assert_eq!((header.base_timestamp, header.max_timestamp), (7, 7));
    }

    #[test]
    fn a_restarted_builder_has_nothing_of_the_batch_before() {
        let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
        builder.append(5, None, Some(b"first")).unwrap();
        let options = BatchOptions { base_offset: 7, ..Default::default() };
        builder.restart(options).unwrap();
        builder.append(3, None, Some(b"second")).unwrap();
        let mut out = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut out).unwrap();
        let mut fresh = BatchBuilder::new(options).unwrap();
        fresh.append(3, None, Some(b"second")).unwrap();
        let mut expected = Vec::new();
        fresh.write_to(&mut Compressor::new(), &mut expected).unwrap();
        assert_eq!(out, expected);
    }
}
