//! What must be known of a partition to read its remote segments?

use super::indexes::IndexSource;
use super::layout::{ObjectLayout, SegmentPart};
use super::lineage::is_within;
use super::metadata_cache::MetadataCache;
use super::object_source::ObjectSource;
use super::remote_segment::RemoteSegment;
use super::target::ObjectTarget;
use crate::error::{Error, Kind, Result};
use crate::index::{AbortedTxn, OffsetEntry};
use crate::io::Source;
use crate::record::BatchHeader;
use crate::record::batch::HEADER_SIZE;
use crate::record::frames::read_frame;
use crate::state::LeaderEpochs;

/// A partition in remote storage, as it is at the moment of a read.
#[derive(Clone, Copy)]
pub struct RemoteView<'a> {
    /// Its segments.
    pub cache: &'a MetadataCache,
    /// The log's own epochs.
    pub epochs: &'a LeaderEpochs,
    /// The log start.
    pub log_start_offset: i64,
    /// The log end, exclusive.
    pub log_end_offset: i64,
    /// Where the objects are.
    pub target: &'a dyn ObjectTarget,
    /// How they are named.
    pub layout: &'a ObjectLayout,
    /// Where the side files come from.
    pub indexes: &'a dyn IndexSource,
    /// What the local segments know of aborted transactions.
    pub local: &'a dyn LocalTransactions,
}

/// Gives the aborted transactions of the segments on the local disk.
pub trait LocalTransactions {
    /// Adds those that a fetch from `fetch_offset` to before `upper_bound` must know, from the
    /// first local segment on.
    ///
    /// # Errors
    /// What the disk says.
    fn collect_aborted(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<()>;
}

/// No segment is on the local disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLocalSegments;

impl LocalTransactions for NoLocalSegments {
    fn collect_aborted(&self, _: i64, _: i64, _: &mut Vec<AbortedTxn>) -> Result<()> {
        Ok(())
    }
}

impl LocalTransactions for crate::log::Log {
    fn collect_aborted(
        &self,
        fetch_offset: i64,
        upper_bound: i64,
        found: &mut Vec<AbortedTxn>,
    ) -> Result<()> {
        self.collect_aborted_from_start(fetch_offset, upper_bound, found)
    }
}

impl<'a> RemoteView<'a> {
    /// The finished segment that has `offset`, by the epoch that the log has there.
    #[must_use]
    pub fn segment_at(&self, offset: i64) -> Option<&'a RemoteSegment> {
        self.cache.segment(self.epochs.epoch_for_offset(offset)?, offset)
    }

    /// The finished segment behind this one.
    #[must_use]
    pub fn segment_behind(&self, segment: &RemoteSegment) -> Option<&'a RemoteSegment> {
        self.segment_at(segment.end_offset.checked_add(1)?)
    }

    /// Whether a segment is of the log's [lineage](super::Lineage).
    #[must_use]
    pub fn holds(&self, segment: &RemoteSegment) -> bool {
        // What a log knows of epochs rises: each holds records, and nothing is to be filtered.
        let RemoteSegment { end_offset, leader_epochs, .. } = segment;
        is_within(self.epochs.entries(), self.log_end_offset, *end_offset, leader_epochs)
    }

    /// The name of a segment's log.
    pub(super) fn log_name(&self, segment: &RemoteSegment) -> String {
        self.layout.name(&segment.id, segment.start_offset, SegmentPart::Log)
    }

    /// The error for an offset that is not in remote storage.
    pub(super) fn out_of_range(&self, offset: i64) -> Error {
        let message = format!(
            "no remote segment of {}-{} has it; the log starts at {}",
            self.cache.partition().topic,
            self.cache.partition().partition,
            self.log_start_offset
        );
        Error::new(Kind::OutOfRange, message).at_offset(offset)
    }
}

impl std::fmt::Debug for RemoteView<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteView")
            .field("partition", self.cache.partition())
            .field("log_start_offset", &self.log_start_offset)
            .field("log_end_offset", &self.log_end_offset)
            .finish_non_exhaustive()
    }
}

/// The batches of a remote log from a position on, by their headers.
pub(super) struct RemoteBatches<'a> {
    source: ObjectSource<'a>,
    position: u64,
}

impl<'a> RemoteBatches<'a> {
    /// From the batch at `position` on, fetched in windows of `window_bytes` at least.
    pub(super) fn new(
        target: &'a dyn ObjectTarget,
        name: &'a str,
        size_bytes: u64,
        position: u64,
        window_bytes: usize,
    ) -> Self {
        RemoteBatches {
            source: ObjectSource::new(target, name, size_bytes, window_bytes),
            position,
        }
    }

    /// Where the next batch begins.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The next batch and where it begins; `None` where no whole one is left.
    pub(super) fn next(&mut self) -> Result<Option<(BatchHeader, u64)>> {
        // spec: tiered 8, step 2
        let position = self.position;
        let left = self.source.end().saturating_sub(position);
        let head = self.source.window(position, HEADER_SIZE)?;
        let header = read_frame(head, left).map_err(|error| error.at_position(position))?;
        let Some(header) = header else { return Ok(None) };
        self.position = position.saturating_add(u64::from(header.size_bytes));
        Ok(Some((header, position)))
    }

    /// Goes to the batch that the offset index of a segment names; to the front when it does not
    /// stand there: an index that lies must not hide what is there.
    pub(super) fn begin_at(&mut self, entry: OffsetEntry, start_offset: i64) -> Result<()> {
        let position = u64::try_from(entry.position).unwrap_or(0);
        self.position = position;
        if position == 0 {
            return Ok(());
        }
        self.position = match self.next() {
            Ok(Some((header, _))) if entry.may_name(&header, start_offset) => position,
            Err(error) if error.kind() != Kind::Corrupt => return Err(error),
            _ => 0,
        };
        Ok(())
    }

    /// The first batch that ends at `offset` or behind it.
    pub(super) fn find(&mut self, offset: i64) -> Result<Option<(BatchHeader, u64)>> {
        while let Some((header, position)) = self.next()? {
            if header.last_offset() >= offset {
                return Ok(Some((header, position)));
            }
        }
        Ok(None)
    }

    /// So many bytes from a position on, fewer where the log ends.
    pub(super) fn bytes(&mut self, position: u64, wanted_bytes: usize) -> Result<&[u8]> {
        let window = self.source.window(position, wanted_bytes)?;
        Ok(window.get(..wanted_bytes).unwrap_or(window))
    }
}
