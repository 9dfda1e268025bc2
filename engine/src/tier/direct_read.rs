//! Where may a consumer read by itself? (KIP-1248)
//!
//! A broker answers a fetch with the place of the bytes in remote storage in place of the bytes:
//! which segment, from where to where, and which transactions the reader must leave out. Where the
//! proposal is open the answers here are those of docs/COMPATIBILITY.md.

use super::aborted::aborted_with;
use super::byte_range::{ByteRange, byte_range};
use super::formats::negotiate_format;
use super::indexes::SegmentIndexes;
use super::layout::{ObjectLayout, SegmentPart};
use super::remote_segment::RemoteSegment;
use super::view::{RemoteBatches, RemoteView};
use crate::error::Result;
use crate::index::AbortedTxn;
use crate::log::Isolation;

/// Bytes of a log's tail that are fetched at a time.
const TAIL_BYTES: usize = 64 << 10;

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct DirectRequest<'a> {
    /// The offset to begin with.
    pub offset: i64,
    /// So many bytes are enough; the range ends at the next place that the index knows.
    pub max_bytes: u64,
    /// Up to where it may see.
    pub isolation: Isolation,
    /// Whether it asks for a location at all.
    pub wants_location: bool,
    /// Whether the transport says that it is a consumer: followers are never sent to remote
    /// storage.
    pub is_consumer: bool,
    /// The formats that it understands.
    pub formats: &'a [&'a str],
}

/// The log of whose segments a client asks.
#[derive(Clone, Copy, Debug)]
pub struct DirectView<'a> {
    /// What is in remote storage of it.
    pub remote: RemoteView<'a>,
    /// The first offset on the local disk.
    pub local_log_start_offset: i64,
    /// The high watermark.
    pub high_watermark: i64,
    /// The last stable offset.
    pub last_stable_offset: i64,
    /// The format that its segments are stored in, as
    /// [`APACHE_KAFKA_V1`](super::formats::APACHE_KAFKA_V1).
    pub stored_format: &'a str,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectAnswer<'a> {
    /// The client may read there.
    Read(DirectRead<'a>),
    /// There is nothing that it may see at the offset.
    Empty,
    /// The broker answers as it always did.
    Fallback(DirectFallback),
}

/// Where a client may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectRead<'a> {
    /// The segment. Its id, custom metadata and event timestamp go to the client: one that does not
    /// find the object asks again.
    pub segment: &'a RemoteSegment,
    /// The format's name.
    pub format: &'a str,
    /// The bytes: whole batches, of which the client leaves out those that end before its offset
    /// and those from the last stable offset or high watermark on.
    pub range: ByteRange,
    /// The transactions that a reader of committed data must leave out.
    pub aborted: Vec<AbortedTxn>,
    /// Where to go on when the segment is read.
    pub next_offset: i64,
}

/// Why the broker answers as it always did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DirectFallback {
    /// No location was asked for.
    NotRequested,
    /// It is no consumer.
    NotConsumer,
    /// The client does not understand the stored format.
    NoCommonFormat,
    /// The offset is before the log start.
    BeforeLogStart,
    /// The offset is on the local disk.
    Local,
    /// No finished segment of the log's lineage has it.
    NoSegment,
}

/// Where the side files of a segment are: for clients that look into them themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentLocations {
    /// The log.
    pub log: String,
    /// The offset index.
    pub offset_index: String,
    /// The transaction index, where there may be one.
    pub transaction_index: Option<String>,
    /// The producer snapshot at the segment's end.
    pub producer_snapshot: String,
}

impl SegmentLocations {
    /// The names of a segment's objects. Nothing here makes addresses or credentials of them.
    #[must_use]
    pub fn of(layout: &ObjectLayout, segment: &RemoteSegment) -> Self {
        let name = |part| layout.name(&segment.id, segment.start_offset, part);
        SegmentLocations {
            log: name(SegmentPart::Log),
            offset_index: name(SegmentPart::OffsetIndex),
            transaction_index: (!segment.is_txn_index_empty)
                .then(|| name(SegmentPart::TransactionIndex)),
            producer_snapshot: name(SegmentPart::ProducerSnapshot),
        }
    }
}

/// Says where the client may read. Only a request behind the last entry of an offset index looks
/// into the log itself, once for each segment.
///
/// # Errors
/// Those of the side files, and of the log where it is looked into.
pub fn plan_direct_read<'a>(
    request: &DirectRequest<'_>,
    view: &DirectView<'a>,
) -> Result<DirectAnswer<'a>> {
    let mut aborted = Vec::new();
    let mut answer = plan_direct_read_into(request, view, &mut aborted)?;
    if let DirectAnswer::Read(read) = &mut answer {
        read.aborted = aborted;
    }
    Ok(answer)
}

/// The same into memory that is used again: the transactions that a reader must leave out are in
/// `aborted`, in place of what was there, and [`DirectRead::aborted`] is empty.
///
/// # Errors
/// Those of [`plan_direct_read`]; what is in `aborted` then means nothing.
pub fn plan_direct_read_into<'a>(
    request: &DirectRequest<'_>,
    view: &DirectView<'a>,
    aborted: &mut Vec<AbortedTxn>,
) -> Result<DirectAnswer<'a>> {
    // spec: tiered 9.1
    aborted.clear();
    let format = match check(request, view) {
        Ok(format) => format,
        Err(why) => return Ok(DirectAnswer::Fallback(why)),
    };
    let visible_end = match request.isolation {
        Isolation::LogEnd => view.remote.log_end_offset,
        Isolation::HighWatermark => view.high_watermark,
        Isolation::Committed => view.last_stable_offset.min(view.high_watermark),
    };
    let mut next = view.remote.segment_at(request.offset);
    while let Some(segment) = next.filter(|segment| view.remote.holds(segment)) {
        if request.offset >= visible_end {
            return Ok(DirectAnswer::Empty);
        }
        let indexes = view.remote.indexes.indexes(segment)?;
        // In the segment behind one that has no batch there, the offset is before its start.
        let offset = request.offset.max(segment.start_offset);
        if has_batch_from(&view.remote, segment, &indexes, offset)? {
            let Some(range) = byte_range(segment, &indexes, offset, visible_end, request.max_bytes)
            else {
                return Ok(DirectAnswer::Empty);
            };
            let bound = range.upper_bound_offset;
            if request.isolation == Isolation::Committed {
                let offsets = (request.offset, bound);
                aborted_with(&view.remote, segment, &indexes, offsets, aborted)?;
            }
            let next_offset = segment.end_offset.saturating_add(1);
            let read = DirectRead { segment, format, range, aborted: Vec::new(), next_offset };
            return Ok(DirectAnswer::Read(read));
        }
        next = view.remote.segment_behind(segment);
    }
    Ok(DirectAnswer::Fallback(DirectFallback::NoSegment))
}

/// The format to answer with, when a location may be given at all.
fn check<'a>(
    request: &DirectRequest<'_>,
    view: &DirectView<'a>,
) -> std::result::Result<&'a str, DirectFallback> {
    // spec: tiered 9.1, "when is a location given"
    if !request.wants_location {
        return Err(DirectFallback::NotRequested);
    }
    if !request.is_consumer {
        return Err(DirectFallback::NotConsumer);
    }
    let format = negotiate_format(view.stored_format, request.formats)
        .ok_or(DirectFallback::NoCommonFormat)?;
    if request.offset < view.remote.log_start_offset {
        return Err(DirectFallback::BeforeLogStart);
    }
    if request.offset >= view.local_log_start_offset {
        return Err(DirectFallback::Local);
    }
    Ok(format)
}

/// Whether the segment has a batch that ends at `offset` or behind it: after compaction the last
/// ones may be missing.
fn has_batch_from(
    view: &RemoteView<'_>,
    segment: &RemoteSegment,
    indexes: &SegmentIndexes,
    offset: i64,
) -> Result<bool> {
    // spec: tiered 9.1, "compaction holes"
    let entries = indexes.offset_entries();
    if !entries.is_empty() && offset <= entries.last_offset() {
        return Ok(true);
    }
    let last = indexes.last_batch_offset(|| {
        let (name, size) = (view.log_name(segment), segment.log_size_bytes());
        let tail = indexes.offset_entries().lookup(i64::MAX);
        let mut batches = RemoteBatches::new(view.target, &name, size, 0, TAIL_BYTES);
        batches.begin_at(tail, segment.start_offset).map_err(|error| error.context(&*name))?;
        let mut last = segment.start_offset.saturating_sub(1);
        while let Some((header, _)) = batches.next().map_err(|error| error.context(&*name))? {
            last = header.last_offset();
        }
        Ok(last)
    })?;
    Ok(offset <= last)
}

#[cfg(test)]
mod tests;
