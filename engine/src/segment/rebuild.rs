//! How are the offset and time index of a segment made anew from its batches?
//!
//! As Kafka's recovery does it: an entry in front of the first batch that begins more than
//! `index.interval.bytes` behind the last entry, holding that batch's last offset and position, and
//! with it the largest timestamp so far.

use crate::error::Result;
use crate::index::offset::OffsetIndexBuilder;
use crate::index::time::TimeIndexBuilder;
use crate::record::BatchHeader;
use crate::units::NO_TIMESTAMP;

/// The settings of a topic that shape its indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSettings {
    /// `index.interval.bytes`.
    pub interval_bytes: u64,
    /// `segment.index.bytes`.
    pub max_size_bytes: usize,
}

impl Default for IndexSettings {
    fn default() -> Self {
        IndexSettings { interval_bytes: 4096, max_size_bytes: 10_485_760 }
    }
}

/// The two indexes of one segment, growing batch by batch.
#[derive(Debug)]
pub struct IndexRebuild {
    interval_bytes: u64,
    offset_index: OffsetIndexBuilder,
    time_index: TimeIndexBuilder,
    last_indexed_position: u64,
    max_timestamp: i64,
    offset_of_max_timestamp: i64,
}

/// The indexes of a segment as recovery leaves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebuiltIndexes {
    /// Bytes of the `.index`.
    pub offset_index: Vec<u8>,
    /// Bytes of the `.timeindex`.
    pub time_index: Vec<u8>,
    /// Largest timestamp of the segment's batches, -1 for none.
    pub max_timestamp: i64,
}

impl IndexRebuild {
    /// Indexes of the segment with this base, empty yet. An index size below one entry is taken as
    /// one entry.
    pub fn new(base_offset: i64, settings: IndexSettings) -> Result<Self> {
        let max_size_bytes = settings.max_size_bytes.max(12);
        Ok(IndexRebuild {
            interval_bytes: settings.interval_bytes,
            offset_index: OffsetIndexBuilder::new(base_offset, max_size_bytes)?,
            time_index: TimeIndexBuilder::new(base_offset, max_size_bytes)?,
            last_indexed_position: 0,
            max_timestamp: NO_TIMESTAMP,
            offset_of_max_timestamp: base_offset,
        })
    }

    /// Takes note of the next batch, which begins at `position`.
    ///
    /// Fails when its last offset cannot follow the one before or is too far from the base.
    #[inline]
    pub fn batch(&mut self, header: &BatchHeader, position: u64) -> Result<()> {
        // spec: segments 3.6
        if header.max_timestamp > self.max_timestamp {
            self.max_timestamp = header.max_timestamp;
            self.offset_of_max_timestamp = header.last_offset();
        }
        if position.saturating_sub(self.last_indexed_position) <= self.interval_bytes {
            return Ok(());
        }
        self.add_entry(header, position)
    }

    fn add_entry(&mut self, header: &BatchHeader, position: u64) -> Result<()> {
        // A full index stops growing: lookups scan a little further. Kafka gives up the whole
        // partition here.
        if !self.offset_index.is_full() {
            let indexed = i32::try_from(position).unwrap_or(i32::MAX);
            self.offset_index.append(header.last_offset(), indexed)?;
        }
        if !self.time_index.is_full() {
            self.time_index.maybe_append(
                self.max_timestamp,
                self.offset_of_max_timestamp,
                false,
            )?;
        }
        self.last_indexed_position = position;
        Ok(())
    }

    /// The finished indexes, with the entry of the largest timestamp at the end.
    pub fn finish(mut self) -> Result<RebuiltIndexes> {
        self.time_index.maybe_append(self.max_timestamp, self.offset_of_max_timestamp, true)?;
        Ok(RebuiltIndexes {
            offset_index: self.offset_index.into_bytes(),
            time_index: self.time_index.into_bytes(),
            max_timestamp: self.max_timestamp,
        })
    }
}
