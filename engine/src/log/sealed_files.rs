//! Which files make a sealed segment? All of them, open, for who carries them elsewhere.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::log::Log;
use crate::error::{Error, Kind, Result};
use crate::io::{File, MapMode, OpenMode, Reader};
use crate::record::control::parse_control;
use crate::record::scan::{ScannedBatch, scan};
use crate::segment::handles::Lease;
use crate::segment::{FileRole, LogSegment};
use crate::state::{ProducerEvent, ReplayState, Snapshot};

/// No producer snapshot is larger.
const SNAPSHOT_BYTES_MAX: u64 = 4 << 30;
/// Bytes of a log that are looked at in one piece.
const WINDOW_BYTES: usize = 1 << 20;

/// The files of a segment that is not written to any more. They stay open as long as this lives,
/// whatever becomes of the log.
#[derive(Debug)]
pub struct SealedFiles {
    segment: Arc<LogSegment>,
    lease: Arc<Lease>,
    truncations: u32,
    /// The bytes of the log.
    pub log_size_bytes: u64,
    /// The largest timestamp of its records, or when it was written last where they have none, in
    /// milliseconds since 1970.
    pub largest_timestamp_ms: i64,
    /// The offset index; `None` where it is missing.
    pub offset_index: Option<Arc<dyn File>>,
    /// The time index; `None` where it is missing.
    pub time_index: Option<Arc<dyn File>>,
    /// The transaction index; `None` as long as no transaction was aborted.
    pub txn_index: Option<Arc<dyn File>>,
}

impl SealedFiles {
    /// The segment.
    #[must_use]
    pub fn segment(&self) -> &Arc<LogSegment> {
        &self.segment
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &dyn File {
        self.lease.file()
    }

    /// Whether the log was not cut since: if it was, other bytes may stand in the files now.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.segment.truncations() == self.truncations
    }
}

impl Log {
    /// Opens the files of the segment from `base_offset` to `next_offset`.
    ///
    /// # Errors
    /// `Conflict` where the segment is written to, or does not end there; `NotFound` when there is
    /// none; what opening a file fails with.
    pub fn sealed_files(&self, base_offset: i64, next_offset: i64) -> Result<SealedFiles> {
        let segments = self.segments();
        let refuse = |kind, message: String| Error::new(kind, message).in_file(&self.dir());
        let Some(segment) = segments.get(base_offset) else {
            let message = format!("no segment begins at offset {base_offset}");
            return Err(refuse(Kind::NotFound, message));
        };
        let next = segments.higher(base_offset).map(|next| next.base_offset());
        if next != Some(next_offset) {
            let message = next.map_or_else(
                || format!("the segment at {base_offset} is written to"),
                |next| format!("the segment at {base_offset} ends at {next}, not {next_offset}"),
            );
            return Err(refuse(Kind::Conflict, message));
        }
        let truncations = segment.truncations();
        let handles = segment.handles(&self.folder)?;
        let index = |role| {
            let found = handles.index(segment, &self.folder, role)?;
            Ok::<_, Error>(found.map(Arc::clone))
        };
        let files = SealedFiles {
            log_size_bytes: segment.size_bytes(),
            largest_timestamp_ms: segment.largest_timestamp(&self.folder)?,
            offset_index: index(FileRole::OffsetIndex)?,
            time_index: index(FileRole::TimeIndex)?,
            txn_index: index(FileRole::TxnIndex)?,
            segment: Arc::clone(segment),
            truncations,
            lease: segment.lease(&self.folder)?,
        };
        // It may have become the one that is written to, by a truncation, and have been sealed
        // again at another offset.
        let next = self.segments.load().higher(base_offset).map(|next| next.base_offset());
        if next != Some(next_offset) || !files.is_intact() {
            let message = format!("the segment at {base_offset} is written to");
            return Err(refuse(Kind::Conflict, message));
        }
        Ok(files)
    }

    /// Opens the producer snapshot at `offset`; `None` when there is none.
    ///
    /// # Errors
    /// What the disk says.
    pub fn open_snapshot(&self, offset: i64) -> Result<Option<Box<dyn File>>> {
        match self.folder.open(offset, FileRole::Snapshot, OpenMode::Read) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The bytes of the snapshot that belongs to `offset`, made of the newest one before it and the
    /// batches behind that. Where none can be read, what happened before the first segment is not
    /// in it.
    ///
    /// # Errors
    /// What the disk says; nothing is written.
    pub fn snapshot_at(&self, offset: i64) -> Result<Vec<u8>> {
        let segments = self.segments();
        let mut state = ReplayState::new();
        let mut from = segments.first().map_or(offset, |first| first.base_offset());
        for segment in segments.iter().rev().filter(|segment| segment.base_offset() <= offset) {
            let base_offset = segment.base_offset();
            let path = self.folder.file(base_offset, FileRole::Snapshot);
            let bytes = match self.folder.storage().read(&path, SNAPSHOT_BYTES_MAX) {
                Err(error) if error.kind() == Kind::NotFound => continue,
                other => other?,
            };
            if let Ok(snapshot) = Snapshot::read(&bytes)
                && snapshot.is_before(base_offset)
            {
                (state, from) = (ReplayState::from_snapshot(&snapshot, 0, i64::MAX), base_offset);
                break;
            }
        }
        for segment in segments.values(from, offset.max(from))? {
            self.replay_onto(&mut state, segment, offset)?;
        }
        Ok(state.snapshot())
    }

    fn replay_onto(
        &self,
        state: &mut ReplayState,
        segment: &Arc<LogSegment>,
        end_offset: i64,
    ) -> Result<()> {
        let handles = segment.handles(&self.folder)?;
        let size = segment.size_bytes();
        let mut source = Reader::new(&**handles.log(), size, WINDOW_BYTES, MapMode::Never);
        let mut visitor = |batch: ScannedBatch<'_>| {
            let header = batch.header;
            if header.base_offset >= end_offset {
                return Ok(ControlFlow::Break(()));
            }
            if header.has_producer_id() {
                let control = header.is_control().then(|| parse_control(header, batch.bytes));
                // The log took it: what the state does not allow it forgot on purpose.
                let event = ProducerEvent::of_batch(header, control);
                let _ = event.map(|event| state.apply(&event));
            }
            Ok(ControlFlow::Continue(()))
        };
        scan(&mut source, 0, u64::MAX, &mut visitor).map(drop)
    }
}
