//! How is the segment written that takes the place of others?
//!
//! Like one that is appended to, under names that end in `.cleaned`. A start removes such files.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::rules::CleanRules;
use crate::error::{Error, Result};
use crate::io::File;
use crate::record::filter::{BatchFilter, FilterTotals};
use crate::record::scan::{ScannedBatch, Visitor};
use crate::record::validate::{BatchView, Batches};
use crate::segment::active::remove_if_there;
use crate::segment::{ActiveSegment, FileRole, Folder, LogSegment, SegmentSettings};

/// A segment that is being written.
#[derive(Debug)]
pub(super) struct Cleaned {
    folder: Folder,
    active: ActiveSegment,
    settings: SegmentSettings,
    next_offset: i64,
}

/// A segment that is written, and durable.
#[derive(Debug)]
pub(super) struct CleanSegment {
    /// Its files stay open until it is closed.
    pub(super) segment: Arc<LogSegment>,
    /// The offset behind its last batch, its base when there is none: a start that completes the
    /// replacement removes the segments before.
    pub(super) next_offset: i64,
}

impl Cleaned {
    /// Begins one, over what an earlier attempt may have left.
    pub(super) fn create(
        folder: &Folder,
        base_offset: i64,
        settings: SegmentSettings,
        now_ms: i64,
    ) -> Result<Self> {
        let folder = folder.for_cleaned();
        let active = ActiveSegment::create(&folder, base_offset, &settings, now_ms)
            .and_then(|active| active.touch_indexes(&folder, &settings).map(|()| active))
            .inspect_err(|_| discard(&folder, base_offset))?;
        Ok(Cleaned { folder, active, settings, next_offset: base_offset })
    }

    /// Appends whole batches.
    fn append(&mut self, batches: &[u8]) -> Result<()> {
        let views: Vec<BatchView<'_>> = Batches::new(batches)
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| Error::corrupt(error.to_string()))?;
        let Some(last) = views.last() else { return Ok(()) };
        let append = self.active.prepare(&self.folder, &self.settings, &views)?;
        self.active.write(&self.folder, &[batches])?;
        self.active.commit(&self.folder, &append);
        self.next_offset = last.header.next_offset();
        Ok(())
    }

    /// Makes it durable with the date of the last segment that went into it.
    pub(super) fn finish(mut self, modified_ms: i64) -> Result<CleanSegment> {
        self.active.finish_files(&self.folder)?;
        let handles = self.active.segment().handles(&self.folder)?;
        let changes = self.active.segment().index_changes();
        let mut files: Vec<Arc<dyn File>> = vec![Arc::clone(handles.log())];
        for role in [FileRole::OffsetIndex, FileRole::TimeIndex] {
            files.extend(handles.index(self.active.segment(), &self.folder, role)?.map(Arc::clone));
        }
        for file in &files {
            file.set_modified(modified_ms)?;
        }
        let txns = handles.index(self.active.segment(), &self.folder, FileRole::TxnIndex)?;
        files.extend(txns.map(Arc::clone));
        let files: Vec<&dyn File> = files.iter().map(|file| &**file).collect();
        let storage = self.folder.storage();
        storage.sync_files(&files).into_iter().collect::<Result<()>>()?;
        self.active.segment().indexes_synced(changes);
        // Names, too: a `.log.swap` must never be there without the others.
        storage.sync_dir(&self.folder.path())?;
        Ok(CleanSegment { segment: self.active.seal(), next_offset: self.next_offset })
    }
}

/// Removes what there is of a segment that is not finished, as far as that goes.
pub(super) fn discard(folder: &Folder, base_offset: i64) {
    let folder = folder.for_cleaned();
    for role in &FileRole::ALL[..4] {
        // A start removes what stays.
        let _ = remove_if_there(&folder, &folder.file(base_offset, *role));
    }
}

/// Filters batches into a segment.
pub(super) struct Clean<'a> {
    pub(super) cleaned: &'a mut Cleaned,
    pub(super) filter: &'a mut BatchFilter,
    pub(super) rules: CleanRules<'a>,
    /// Batches that are not written yet.
    pub(super) out: &'a mut Vec<u8>,
    pub(super) out_bytes_max: usize,
    pub(super) totals: &'a mut FilterTotals,
}

impl Clean<'_> {
    /// Writes what has gathered.
    pub(super) fn write_out(&mut self) -> Result<()> {
        self.cleaned.append(self.out)?;
        self.out.clear();
        Ok(())
    }
}

impl Visitor for Clean<'_> {
    fn body_limit_bytes(&self) -> usize {
        usize::MAX
    }

    fn batch(&mut self, batch: ScannedBatch<'_>) -> Result<ControlFlow<()>> {
        self.filter
            .filter(batch.header, batch.bytes, &mut self.rules, self.out, self.totals)
            .map_err(|error| error.at_position(batch.position))?;
        if let Some(txn) = self.rules.aborted.take() {
            let active = &mut self.cleaned.active;
            active.write_txns(&self.cleaned.folder, &[txn])?;
            active.commit_txns(&[txn]);
        }
        if self.out.len() >= self.out_bytes_max {
            self.write_out()?;
        }
        Ok(ControlFlow::Continue(()))
    }
}
