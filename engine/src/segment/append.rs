//! How do batches get into the segment that is written to?
//!
//! [`prepare`](ActiveSegment::prepare) works out what an append does, `write` puts its bytes behind
//! the end (or whoever writes to many segments does, between `begin_write` and `end_write`),
//! `commit` lets readers see them: only that cannot fail.

use std::sync::Arc;

use super::active::{ActiveSegment, LOG_BYTES_MAX, SegmentSettings};
use super::folder::Folder;
use super::handles::SegmentHandles;
use super::log_segment::Live;
use super::name::FileRole;
use super::recent::BatchPlace;
use crate::error::{Error, Kind, Result};
use crate::index::{AbortedTxn, TimeEntry, txn};
use crate::io::{File, OpenMode};
use crate::record::validate::BatchView;
use crate::units::is_addressable;

/// What an append will do to the segment once its bytes are written.
#[derive(Debug)]
pub struct SegmentAppend {
    places: Vec<BatchPlace>,
    entries: Vec<(BatchPlace, TimeEntry)>,
    largest: TimeEntry,
    bytes_since_index: u64,
    first_timestamp: Option<i64>,
    end: u64,
}

impl ActiveSegment {
    /// Works out what an append of these batches does. Nothing is changed yet.
    ///
    /// # Errors
    /// `OutOfRange` for offsets that the segment cannot address, `InvalidArgument` for more bytes
    /// than a log may have.
    pub fn prepare(
        &self,
        folder: &Folder,
        settings: &SegmentSettings,
        batches: &[BatchView<'_>],
    ) -> Result<SegmentAppend> {
        let base_offset = self.base_offset();
        let (timestamp_ms, offset) = self.segment.max_timestamp(folder)?;
        let mut append = SegmentAppend {
            places: Vec::with_capacity(batches.len()),
            entries: Vec::new(),
            largest: TimeEntry { timestamp_ms, offset },
            bytes_since_index: self.bytes_since_index,
            first_timestamp: (self.size_bytes() == 0)
                .then(|| batches.first().map(|batch| batch.header.max_timestamp))
                .flatten(),
            end: self.size_bytes(),
        };
        for batch in batches {
            // spec: segments 3.3
            let header = &batch.header;
            let last_offset = header.last_offset();
            if !is_addressable(base_offset, last_offset) {
                let message =
                    format!("the segment at {base_offset} cannot hold a batch up to {last_offset}");
                return Err(Error::new(Kind::OutOfRange, message).at_offset(last_offset));
            }
            let size_bytes = u64::from(header.size_bytes);
            let place = BatchPlace {
                base_offset: header.base_offset,
                last_offset,
                position: append.end,
                size_bytes,
            };
            if header.max_timestamp > append.largest.timestamp_ms {
                append.largest =
                    TimeEntry { timestamp_ms: header.max_timestamp, offset: last_offset };
            }
            if append.bytes_since_index > u64::from(settings.index_interval_bytes) {
                append.entries.push((place, append.largest));
                append.bytes_since_index = 0;
            }
            append.bytes_since_index += size_bytes;
            append.end += size_bytes;
            append.places.push(place);
        }
        if append.end > LOG_BYTES_MAX {
            let message = format!("a log of {} bytes is too large", append.end);
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        Ok(append)
    }

    /// Writes the bytes of an append behind the end. Nobody sees them yet.
    pub fn write(&mut self, folder: &Folder, parts: &[&[u8]]) -> Result<()> {
        let (log, end) = self.begin_write(folder)?;
        self.end_write(folder, log.write_parts_at(parts, end))
    }

    /// The file that the bytes of an append are to be written to, and where they begin.
    /// [`end_write`](Self::end_write) is told what came of it.
    pub fn begin_write(&mut self, folder: &Folder) -> Result<(Arc<dyn File>, u64)> {
        self.cut_what_failed(folder)?;
        let log = |handles: &SegmentHandles| Ok(Arc::clone(handles.log()));
        Ok((self.segment.with_handles(folder, log)?, self.size_bytes()))
    }

    /// Takes note of a write behind the end, and gives its outcome.
    pub fn end_write(&mut self, folder: &Folder, written: Result<()>) -> Result<()> {
        if written.is_err() {
            self.is_dirty_behind = true;
            // Else what was written of it stays until the next append.
            let _ = self.cut_what_failed(folder);
        }
        written
    }

    pub(super) fn cut_what_failed(&mut self, folder: &Folder) -> Result<()> {
        if self.is_dirty_behind {
            self.segment.handles(folder)?.log().set_size(self.size_bytes())?;
            self.is_dirty_behind = false;
        }
        Ok(())
    }

    /// Adds aborted transactions to the transaction index. Readers see them after
    /// [`commit_txns`](Self::commit_txns).
    pub fn write_txns(&self, folder: &Folder, aborted: &[AbortedTxn]) -> Result<()> {
        let Some(first) = aborted.first() else { return Ok(()) };
        if self.txn_last_offset.is_some_and(|last| last >= first.last_offset) {
            let message = format!(
                "an aborted transaction that ends at {} cannot follow one that ends at {}",
                first.last_offset,
                self.txn_last_offset.unwrap_or(-1)
            );
            return Err(Error::new(Kind::InvalidArgument, message));
        }
        let file = folder.open_or_make(self.base_offset(), FileRole::TxnIndex)?;
        let entries: Vec<u8> = aborted.iter().flat_map(AbortedTxn::encode).collect();
        let size = u64::try_from(txn::ENTRY_SIZE).unwrap_or(u64::MAX);
        let position = u64::from(self.txn_count).saturating_mul(size);
        file.write_at(&entries, position)?;
        Ok(())
    }

    /// Takes back what [`write_txns`](Self::write_txns) wrote.
    pub fn forget_txns(&self, folder: &Folder) {
        let opened = folder.open(self.base_offset(), FileRole::TxnIndex, OpenMode::ReadWrite);
        if let Ok(file) = opened {
            let size = u64::try_from(txn::ENTRY_SIZE).unwrap_or(u64::MAX);
            // Entries behind the count are written over by the next, and cut with the roll.
            let _ = file.set_size(u64::from(self.txn_count).saturating_mul(size));
        }
    }

    /// Lets readers see the transactions.
    pub fn commit_txns(&mut self, aborted: &[AbortedTxn]) {
        if let Some(last) = aborted.last() {
            let count = u32::try_from(aborted.len()).unwrap_or(u32::MAX);
            self.txn_count = self.txn_count.saturating_add(count);
            self.txn_last_offset = Some(last.last_offset);
            self.segment.set_entry_count(FileRole::TxnIndex, Some(self.txn_count));
            self.segment.indexes_changed();
        }
    }

    /// Takes an append whose bytes are written, and lets readers see it.
    pub fn commit(&mut self, folder: &Folder, append: &SegmentAppend) {
        let largest = append.largest;
        self.segment.set_max_timestamp(Some((largest.timestamp_ms, largest.offset)));
        if append.first_timestamp.is_some() {
            self.rolling_timestamp = append.first_timestamp;
        }
        self.bytes_since_index = append.bytes_since_index;
        if !append.entries.is_empty() {
            self.push_entries(folder, append);
        }
        self.push_recent(&append.places);
        if let Some(last) = append.places.last() {
            self.segment.hint_end_offset(last.last_offset.saturating_add(1));
        }
        self.segment.set_size_bytes(append.end);
    }

    fn push_entries(&self, folder: &Folder, append: &SegmentAppend) {
        let is_much = self.with_tails(|tails| {
            for (place, largest) in &append.entries {
                let position = u32::try_from(place.position).unwrap_or(u32::MAX);
                tails.push(place.last_offset, position, *largest);
            }
            tails.must_write_out()
        });
        self.segment.indexes_changed();
        if is_much == Some(true) {
            // They stay gathered when it fails; a flush tries again and tells.
            let _ = self.segment.write_out_tails(folder);
        }
    }

    fn push_recent(&self, places: &[BatchPlace]) {
        let Some(mut live) = self.segment.live() else { return };
        if let Some(recent) = live.recent.grown_for(places.len()) {
            self.segment.set_live(Some(Live { recent, tails: Arc::clone(&self.tails) }));
            let Some(grown) = self.segment.live() else { return };
            live = grown;
        }
        places.iter().for_each(|place| live.recent.push(place));
    }
}
