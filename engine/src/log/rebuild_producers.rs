//! How does a log learn again what its producers have written? From the newest snapshot that fits,
//! and the batches behind it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::log::{Log, Writer};
use super::producers::event_of;
use crate::error::{Error, Kind, Result};
use crate::record::validate::BatchView;
use crate::segment::FileRole;
use crate::segment::active::remove_if_there;
use crate::state::snapshot_set::offsets_to_snapshot;

/// More than the snapshot of any partition has; a larger file is not read.
const SNAPSHOT_BYTES_MAX: u64 = 4 << 30;

impl Log {
    /// Removes the snapshots that belong to no segment.
    pub(super) fn remove_stray_snapshots(&self, writer: &mut Writer) -> Result<()> {
        let bases = self.bases();
        for offset in writer.producers.snapshots_mut().remove_stray(&bases) {
            self.remove_snapshot(offset)?;
        }
        Ok(())
    }

    fn bases(&self) -> BTreeSet<i64> {
        self.segments.load().iter().map(|segment| segment.base_offset()).collect()
    }

    pub(super) fn remove_snapshot(&self, offset: i64) -> Result<()> {
        remove_if_there(&self.folder, &self.folder.file(offset, FileRole::Snapshot))
    }

    /// Brings the producers to `log_end`.
    ///
    /// Kafka does not read a log for it that has no snapshot at all after a clean stop, and forgets
    /// the producers; their next batches would be refused.
    // spec: producer-state A8
    pub(super) fn rebuild_producers(&self, writer: &mut Writer, log_end: i64) -> Result<()> {
        let taken_at = offsets_to_snapshot(&self.bases(), log_end);
        let log_start = self.log_start_offset();
        let was_empty =
            writer.producers.is_empty() && writer.producers.snapshots().map_end_offset() >= log_end;
        self.reload_producers(writer, log_start, log_end)?;
        let reached = writer.producers.snapshots().map_end_offset();
        if log_end > reached && !was_empty {
            let segments = self.segments();
            for segment in segments.values(reached, log_end)? {
                let base_offset = segment.base_offset();
                let reached = writer.producers.snapshots().map_end_offset();
                let from = base_offset.max(reached).max(log_start);
                writer.producers.snapshots_mut().set_map_end_offset(from);
                if taken_at.contains(&base_offset) {
                    self.take_snapshot(writer)?;
                }
                self.replay(writer, base_offset, from, log_end)?;
            }
        }
        writer.producers.snapshots_mut().set_map_end_offset(log_end);
        self.take_snapshot(writer)
    }

    fn reload_producers(&self, writer: &mut Writer, log_start: i64, log_end: i64) -> Result<()> {
        let reload = writer.producers.truncate_and_reload(log_start, log_end);
        for offset in reload.delete {
            self.remove_snapshot(offset)?;
        }
        if !reload.reload {
            return Ok(());
        }
        while let Some(offset) = writer.producers.snapshots().latest() {
            let path = self.folder.file(offset, FileRole::Snapshot);
            let bytes = match self.folder.storage().read(&path, SNAPSHOT_BYTES_MAX) {
                Ok(bytes) => bytes,
                // No bytes are no snapshot: the one before it serves.
                Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Limit) => Vec::new(),
                Err(error) => return Err(error),
            };
            match writer.producers.load_snapshot(offset, &bytes, writer.now_ms) {
                Ok(()) => return Ok(()),
                Err(_) => self.remove_snapshot(offset)?,
            }
        }
        writer.producers.nothing_to_load(log_start);
        Ok(())
    }

    /// Takes note of the batches of one segment that hold offsets in `from..end`.
    fn replay(&self, writer: &mut Writer, base_offset: i64, from: i64, end: i64) -> Result<()> {
        let segments = self.segments();
        let Some(segment) = segments.get(base_offset) else { return Ok(()) };
        let position = segment.position_before(&self.folder, from)?;
        let producers = &mut writer.producers;
        segment.for_each_header(&self.folder, position, |header, position, handles| {
            if header.last_offset() < from || !header.has_producer_id() {
                return Ok(ControlFlow::Continue(()));
            }
            if header.last_offset() >= end {
                return Ok(ControlFlow::Break(()));
            }
            // Of a batch of data the header says all; a marker says more within.
            let mut bytes = Vec::new();
            if header.is_control() {
                bytes.resize(usize::try_from(header.size_bytes).unwrap_or(usize::MAX), 0);
                if handles.log().read_at(&mut bytes, position)? < bytes.len() {
                    let error = Error::corrupt("the log ends within a batch");
                    return Err(error.in_file(handles.log().path()).at_position(position));
                }
            }
            if let Some(event) = event_of(&BatchView { header: *header, bytes: &bytes }) {
                // What a producer may not do is in the log all the same, and says nothing.
                let _ = producers.replay(&event);
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Takes a snapshot, if the state has moved on since the last one. It becomes durable with the
    /// next flush.
    pub(super) fn take_snapshot(&self, writer: &mut Writer) -> Result<()> {
        let books = writer.producers.snapshots().clone();
        let Some((offset, bytes)) = writer.producers.take_snapshot() else { return Ok(()) };
        self.write_snapshot(offset, &bytes)
            .inspect_err(|_| *writer.producers.snapshots_mut() = books)?;
        self.durable().snapshots.push(offset);
        Ok(())
    }
}
