//! What is one upload? The files of a segment, its metadata, and what an uploader must not be
//! given.

use std::fmt;
use std::ops::ControlFlow;

use super::layout::SegmentPart;
use super::remote_segment::{RemoteSegment, RemoteSegmentId, RemoteSegmentState};
use super::side_files::{INDEX_BYTES_MAX, fault_of_bytes, fault_of_size, fault_of_snapshot};
use super::target::ObjectBytes;
use crate::error::{Error, Kind};
use crate::io::File;
use crate::log::{Log, SealedFiles};
use crate::problem::Code;
use crate::segment::FileRole;
use crate::state::checkpoint::format_epochs;

/// Who uploads, and under which id.
#[derive(Clone, Debug)]
pub struct UploadAs {
    /// A new id for each attempt.
    pub id: RemoteSegmentId,
    /// The broker.
    pub broker_id: i32,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
    /// Whether a producer snapshot that is missing or damaged is made of the log, as for segments
    /// that are older than such snapshots. Kafka does not upload them.
    pub rebuilds_snapshot: bool,
}

/// Why a segment cannot be uploaded.
#[derive(Debug)]
#[non_exhaustive]
pub enum PrepareError {
    /// The producer snapshot at this offset is missing.
    NoSnapshot(i64),
    /// It is written to, or is not the segment that it was: look for candidates again.
    NotSealed(Error),
    /// Its end is above the last stable offset.
    NotStable {
        /// The offset behind it.
        next_offset: i64,
        /// The last stable offset.
        last_stable_offset: i64,
    },
    /// No leader epoch is known for any of its offsets.
    OutsideLineage,
    /// A side file is damaged; the log takes note of it.
    Damaged {
        /// Which one.
        role: FileRole,
        /// What is wrong.
        code: Code,
    },
    /// The files could not be read.
    Io(Error),
}

impl fmt::Display for PrepareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSnapshot(offset) => write!(f, "there is no producer snapshot at {offset}"),
            Self::NotStable { next_offset, last_stable_offset } => write!(
                f,
                "the segment ends at {next_offset}, above the last stable offset {last_stable_offset}"
            ),
            Self::OutsideLineage => f.write_str("no leader epoch is known of the segment"),
            Self::Damaged { role, code } => {
                write!(f, "the {} file is damaged: {}", role.suffix(), code.as_str())
            }
            Self::NotSealed(error) | Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PrepareError {}

impl From<Error> for PrepareError {
    fn from(error: Error) -> Self {
        match error.kind() {
            Kind::Conflict | Kind::NotFound => Self::NotSealed(error),
            _ => Self::Io(error),
        }
    }
}

/// All that goes to remote storage of one segment. The files stay open as long as this lives.
#[derive(Debug)]
pub struct UploadParts {
    /// What is to be said of it before it is uploaded: its copy has started.
    pub segment: RemoteSegment,
    /// The files.
    pub files: SealedFiles,
    /// The leader epochs from the start of the log to the end of the segment, as a checkpoint.
    pub epochs: Vec<u8>,
    snapshot: SnapshotBytes,
    /// Sizes of the three indexes and of the snapshot.
    sizes: [u64; 4],
}

#[derive(Debug)]
enum SnapshotBytes {
    File(Box<dyn File>),
    Memory(Vec<u8>),
}

/// Gathers what is uploaded of the segment from `base_offset` to `next_offset`, and checks it. Its
/// indexes are read as a whole, so that none that is broken is uploaded.
///
/// # Errors
/// See [`PrepareError`].
pub fn prepare_upload(
    log: &Log,
    base_offset: i64,
    next_offset: i64,
    upload_as: &UploadAs,
) -> Result<UploadParts, PrepareError> {
    // spec: tiered 3
    let files = log.sealed_files(base_offset, next_offset)?;
    let last_stable_offset = log.last_stable_offset();
    if next_offset > last_stable_offset {
        return Err(PrepareError::NotStable { next_offset, last_stable_offset });
    }
    let epochs = log.leader_epochs();
    let leader_epochs = epochs.entries_in_range(base_offset, next_offset);
    if leader_epochs.is_empty() {
        return Err(PrepareError::OutsideLineage);
    }
    let index_sizes = check_indexes(log, &files)?;
    let snapshot = snapshot_of(log, &files, next_offset, upload_as.rebuilds_snapshot)?;
    let snapshot_size = match &snapshot {
        SnapshotBytes::File(file) => file.metadata()?.size_bytes,
        SnapshotBytes::Memory(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
    };
    let [offset, time, txn] = index_sizes;
    let segment = RemoteSegment {
        id: upload_as.id.clone(),
        start_offset: base_offset,
        end_offset: next_offset.saturating_sub(1),
        max_timestamp_ms: files.largest_timestamp_ms,
        broker_id: upload_as.broker_id,
        event_timestamp_ms: upload_as.now_ms,
        // A log has no position that does not fit.
        size_bytes: i32::try_from(files.log_size_bytes).unwrap_or(i32::MAX),
        custom_metadata: None,
        state: RemoteSegmentState::CopyStarted,
        leader_epochs,
        is_txn_index_empty: txn == 0,
    };
    segment.check().map_err(PrepareError::Io)?;
    let text = format_epochs(&epochs.entries_in_range(-1, next_offset));
    // Cut meanwhile: what was read may be of two logs.
    if !files.is_intact() {
        let message = "the segment was cut while its upload was prepared";
        return Err(PrepareError::NotSealed(Error::new(Kind::Conflict, message)));
    }
    let sizes = [offset, time, txn, snapshot_size];
    Ok(UploadParts { segment, files, epochs: text, snapshot, sizes })
}

/// Reads the indexes; gives their sizes.
fn check_indexes(log: &Log, files: &SealedFiles) -> Result<[u64; 3], PrepareError> {
    let segment = files.segment();
    let indexes = [
        (FileRole::OffsetIndex, &files.offset_index),
        (FileRole::TimeIndex, &files.time_index),
        (FileRole::TxnIndex, &files.txn_index),
    ];
    let mut sizes = [0; 3];
    for ((role, file), size) in indexes.into_iter().zip(&mut sizes) {
        let bytes = file.as_deref().map(read_whole).transpose()?;
        let size_bytes = bytes.as_ref().map(|bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let base_offset = segment.base_offset();
        let fault = fault_of_size(role, size_bytes)
            .or_else(|| fault_of_bytes(role, bytes.as_deref()?, base_offset, files.log_size_bytes));
        if let Some(code) = fault {
            return Err(damaged(log, files, role, code));
        }
        *size = size_bytes.unwrap_or_default();
    }
    log.mark_damaged(segment, None);
    Ok(sizes)
}

/// The producer snapshot behind the segment, as it is or made of the log.
fn snapshot_of(
    log: &Log,
    files: &SealedFiles,
    next_offset: i64,
    rebuilds: bool,
) -> Result<SnapshotBytes, PrepareError> {
    let fault = match log.open_snapshot(next_offset)? {
        Some(file) => match fault_of_snapshot(&read_whole(&*file)?, next_offset) {
            None => return Ok(SnapshotBytes::File(file)),
            fault => fault,
        },
        None => None,
    };
    match fault {
        _ if rebuilds => Ok(SnapshotBytes::Memory(log.snapshot_at(next_offset)?)),
        Some(code) => Err(damaged(log, files, FileRole::Snapshot, code)),
        None => Err(PrepareError::NoSnapshot(next_offset)),
    }
}

/// Has the log take note of a side file that is damaged.
fn damaged(log: &Log, files: &SealedFiles, role: FileRole, code: Code) -> PrepareError {
    let segment = files.segment();
    // A file that vanished with its segment is no damage.
    if files.is_intact() && log.segments().get(segment.base_offset()).is_some() {
        log.mark_damaged(segment, Some(code));
    }
    PrepareError::Damaged { role, code }
}

fn read_whole(file: &dyn File) -> Result<Vec<u8>, Error> {
    let size = file.metadata()?.size_bytes;
    if size > INDEX_BYTES_MAX {
        let message = format!("a side file of {size} bytes, at most {INDEX_BYTES_MAX} are read");
        return Err(Error::new(Kind::Limit, message).in_file(file.path()));
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

impl UploadParts {
    /// Hands over one part after the other, in the order in which they are uploaded. A transaction
    /// index that is not there is left out.
    ///
    /// # Errors
    /// What `take` fails with first.
    pub fn each<E>(
        &self,
        mut take: impl FnMut(SegmentPart, ObjectBytes<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        for part in SegmentPart::ALL {
            if let Some(bytes) = self.bytes(part)
                && take(part, bytes)?.is_break()
            {
                break;
            }
        }
        Ok(())
    }

    /// The bytes of a part; `None` for a transaction index that is not there.
    #[must_use]
    pub fn bytes(&self, part: SegmentPart) -> Option<ObjectBytes<'_>> {
        let [offset, time, txn, snapshot] = self.sizes;
        let file = |file, size_bytes| ObjectBytes::File { file, position: 0, size_bytes };
        Some(match part {
            SegmentPart::Log => file(self.files.log(), self.files.log_size_bytes),
            SegmentPart::OffsetIndex => file(self.files.offset_index.as_deref()?, offset),
            SegmentPart::TimeIndex => file(self.files.time_index.as_deref()?, time),
            SegmentPart::TransactionIndex => file(self.files.txn_index.as_deref()?, txn),
            SegmentPart::ProducerSnapshot => match &self.snapshot {
                SnapshotBytes::File(open) => file(&**open, snapshot),
                SnapshotBytes::Memory(bytes) => ObjectBytes::Memory(bytes),
            },
            SegmentPart::LeaderEpochs => ObjectBytes::Memory(&self.epochs),
        })
    }
}
