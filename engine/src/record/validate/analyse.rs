//! What are these batches, before the log looks at its own state?
//!
//! A leader refuses here what is no batch, too large or damaged; a follower takes sizes as its
//! leader had them. Nothing is decompressed.

use super::batches::{BatchView, Batches};
use super::error::{ValidateError, ValidateErrorKind};
use super::options::AppendOrigin;
use crate::record::batch::{BatchHeader, compute_crc};
use crate::record::codec::Codec;
use crate::record::legacy::compute_legacy_crc;
use crate::units::{NO_LEADER_EPOCH, NO_TIMESTAMP};

/// Who appends, and what of it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnalyseOptions {
    /// Who appends.
    pub origin: AppendOrigin,
    /// The leader epoch of the append: of the log's leader, or as its follower knows it.
    pub leader_epoch: i32,
    /// `max.message.bytes`; `None` for a follower, which takes what its leader took.
    pub max_message_bytes: Option<u32>,
    /// Whether the batches keep the offsets that they have, which must rise then.
    pub keeps_offsets: bool,
}

impl AnalyseOptions {
    /// As a leader takes a producer's batches.
    #[must_use]
    pub fn leader(origin: AppendOrigin, leader_epoch: i32, max_message_bytes: u32) -> Self {
        let max_message_bytes = Some(max_message_bytes);
        let keeps_offsets = origin == AppendOrigin::RaftLeader;
        AnalyseOptions { origin, leader_epoch, max_message_bytes, keeps_offsets }
    }

    /// As a follower takes its leader's.
    #[must_use]
    pub fn follower(leader_epoch: i32) -> Self {
        AnalyseOptions {
            origin: AppendOrigin::Replication,
            leader_epoch,
            max_message_bytes: None,
            keeps_offsets: true,
        }
    }
}

/// What the batches of one append are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Analysis {
    /// The bytes of the batches that are to be appended: all behind them is left out.
    pub valid_bytes: usize,
    /// How many batches these are.
    pub batch_count: u32,
    /// The header of the first.
    pub first: Option<BatchHeader>,
    /// Base offset of the first batch; `None` in the old formats, where only reading its records
    /// would tell.
    pub first_offset: Option<i64>,
    /// Last offset of the first batch, -1 when there is none.
    pub last_offset_of_first_batch: i64,
    /// Last offset of the last batch, inclusive; -1 when there is none.
    pub last_offset: i64,
    /// Leader epoch of the last batch, -1 for none.
    pub last_leader_epoch: i32,
    /// The largest timestamp, -1 for none.
    pub max_timestamp_ms: i64,
    /// Last offset of the batch that has the largest timestamp, the first of them; -1 for none.
    pub shallow_offset_of_max_timestamp: i64,
    /// The codec of the last batch that is compressed.
    pub source_codec: Codec,
    /// Whether last offsets rise from batch to batch, and no batch begins before the one in front
    /// of it ends.
    pub is_monotonic: bool,
    /// Batches that are left out since their leader epoch is above the follower's: it must hear of
    /// the new leader first.
    pub skipped_count: u32,
}

impl Analysis {
    const EMPTY: Analysis = Analysis {
        valid_bytes: 0,
        batch_count: 0,
        first: None,
        first_offset: None,
        last_offset_of_first_batch: -1,
        last_offset: -1,
        last_leader_epoch: NO_LEADER_EPOCH,
        max_timestamp_ms: NO_TIMESTAMP,
        shallow_offset_of_max_timestamp: -1,
        source_codec: Codec::None,
        is_monotonic: true,
        skipped_count: 0,
    };

    /// The first offset, or as much of it as the old formats tell without decompression: the last
    /// offset of the first batch.
    #[must_use]
    pub fn first_or_last_offset_of_first_batch(&self) -> i64 {
        self.first_offset.unwrap_or(self.last_offset_of_first_batch)
    }

    fn take(&mut self, header: &BatchHeader, size: usize) {
        if self.batch_count == 0 {
            self.first = Some(*header);
            self.first_offset = (header.magic >= 2).then_some(header.base_offset);
            self.last_offset_of_first_batch = header.last_offset();
        }
        let last_offset = header.last_offset();
        // In the old formats the base offset is that of the last record, too.
        let is_behind = self.batch_count == 0 || self.last_offset < header.base_offset;
        let is_apart = header.magic < 2 || (header.base_offset <= last_offset && is_behind);
        self.is_monotonic &= self.last_offset < last_offset && is_apart;
        self.last_offset = last_offset;
        self.last_leader_epoch = header.leader_epoch;
        self.valid_bytes += size;
        self.batch_count = self.batch_count.saturating_add(1);
        if header.max_timestamp > self.max_timestamp_ms {
            self.max_timestamp_ms = header.max_timestamp;
            self.shallow_offset_of_max_timestamp = last_offset;
        }
    }
}

/// Looks at every batch of `records`; what is cut short at the end is left out.
///
/// # Errors
///
/// The first of: a frame that is none or a checksum that does not match (`CorruptRecord`); a
/// producer's batch with a base offset other than 0, or one of the metadata log's leader with another
/// leader epoch (`InvalidRecord`); a batch that is too large (`RecordTooLarge`); an unknown codec
/// (`IllegalArgument`); and, when all was seen, offsets that do not rise though they must
/// (`OffsetsOutOfOrder`).
// spec: segments 6.4, step 1
pub fn analyse(records: &[u8], options: &AnalyseOptions) -> Result<Analysis, ValidateError> {
    let mut analysis = Analysis::EMPTY;
    for batch in Batches::new(records) {
        let BatchView { header, bytes } = batch?;
        check_origin(&header, options)?;
        if analysis.skipped_count > 0 || is_of_later_leader(&header, options) {
            analysis.skipped_count = analysis.skipped_count.saturating_add(1);
            continue;
        }
        if options.max_message_bytes.is_some_and(|size_max| header.size_bytes > size_max) {
            return Err(too_large(header.size_bytes, options.max_message_bytes));
        }
        check_crc(&header, bytes)?;
        analysis.take(&header, bytes.len());
        match Codec::from_id(header.codec_id()) {
            Some(Codec::None) => {}
            Some(codec) => analysis.source_codec = codec,
            None => return Err(unknown_codec(header.codec_id())),
        }
    }
    if options.keeps_offsets && !analysis.is_monotonic {
        return Err(ValidateError::new(
            ValidateErrorKind::OffsetsOutOfOrder,
            "Out of order offsets found in append",
        ));
    }
    Ok(analysis)
}

#[inline]
fn check_origin(header: &BatchHeader, options: &AnalyseOptions) -> Result<(), ValidateError> {
    match options.origin {
        AppendOrigin::RaftLeader if header.leader_epoch != options.leader_epoch => {
            Err(ValidateError::invalid(format!(
                "Append from Raft leader did not set the batch epoch correctly, expected {} but the \
                 batch has {}",
                options.leader_epoch, header.leader_epoch
            )))
        }
        AppendOrigin::Client if header.magic >= 2 && header.base_offset != 0 => {
            Err(ValidateError::invalid(format!(
                "The baseOffset of the record batch in the append should be 0, but it is {}",
                header.base_offset
            )))
        }
        _ => Ok(()),
    }
}

/// Kafka quirk (KAFKA-18723): a fetch answer of the old leader may arrive when the new one has
/// written already. A follower appends only what belongs to the epoch that it asked in.
fn is_of_later_leader(header: &BatchHeader, options: &AnalyseOptions) -> bool {
    options.origin == AppendOrigin::Replication
        && header.leader_epoch != NO_LEADER_EPOCH
        && header.leader_epoch > options.leader_epoch
}

#[inline]
fn check_crc(header: &BatchHeader, batch: &[u8]) -> Result<(), ValidateError> {
    let computed = if header.magic >= 2 { compute_crc(batch) } else { compute_legacy_crc(batch) };
    if computed == header.crc {
        return Ok(());
    }
    Err(ValidateError::corrupt(format!("Record is corrupt (stored crc = {})", header.crc)))
}

#[cold]
pub(super) fn too_large(size: u32, size_max: Option<u32>) -> ValidateError {
    let message = format!(
        "The record batch size in the append is {size} bytes which exceeds the maximum configured \
         value of {}",
        size_max.unwrap_or(u32::MAX)
    );
    ValidateError::new(ValidateErrorKind::RecordTooLarge, message)
}

#[cold]
pub(super) fn unknown_codec(id: u8) -> ValidateError {
    ValidateError::argument(format!("Unknown compression type id: {id}"))
}
