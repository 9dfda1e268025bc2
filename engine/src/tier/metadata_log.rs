//! What do the partitions of `__remote_log_metadata` in a log directory say? Read without a broker.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::metadata_cache::{Applied, Dropped};
use super::metadata_codec::RemoteMetadataRecord;
use super::remote_metadata::RemoteMetadata;
use crate::error::{Error, Result};
use crate::io::Storage;
use crate::log::read_files::{LogReader, ReadOptions, read_log};
use crate::problem::Problem;
use crate::record::scan::ScannedBatch;
use crate::record::{BatchHeader, Record};

/// The topic's name.
pub const METADATA_TOPIC: &str = "__remote_log_metadata";

/// What became of the records of one partition of the topic.
#[derive(Debug, Default)]
pub struct MetadataLogReport {
    /// Records that were read.
    pub records: u64,
    /// Events that changed nothing, by offset.
    pub dropped: Vec<(i64, Dropped)>,
    /// Records that are no events or that could not be applied, by offset.
    pub refused: Vec<(i64, Error)>,
    /// Damage, and the file that has it; behind it nothing of that file was read.
    pub problems: Vec<(PathBuf, Problem)>,
}

/// Applies the records of the partition of `__remote_log_metadata` in `dir`, in order. The caller
/// [says](RemoteMetadata::mark_loaded) when all partitions have been read.
///
/// # Errors
/// Those of the disk: what one file had is then missing.
pub fn read_metadata_log(
    storage: &dyn Storage,
    dir: &Path,
    metadata: &mut RemoteMetadata,
) -> Result<MetadataLogReport> {
    let mut reader =
        MetadataReader { metadata, report: MetadataLogReport::default(), failed: None };
    read_log(storage, dir, &ReadOptions::default(), &mut reader)?;
    match reader.failed {
        Some(error) => Err(error),
        None => Ok(reader.report),
    }
}

struct MetadataReader<'a> {
    metadata: &'a mut RemoteMetadata,
    report: MetadataLogReport,
    failed: Option<Error>,
}

impl LogReader for MetadataReader<'_> {
    fn batch(&mut self, _batch: &ScannedBatch<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn record(&mut self, header: &BatchHeader, record: &Record<'_>) -> ControlFlow<()> {
        if header.is_control() {
            return ControlFlow::Continue(());
        }
        self.report.records = self.report.records.saturating_add(1);
        let event = RemoteMetadataRecord::decode(record.value.unwrap_or_default());
        match event.and_then(|event| self.metadata.apply(event)) {
            Ok(Applied::Done) => {}
            Ok(Applied::Dropped(why)) => self.report.dropped.push((record.offset, why)),
            Err(error) => self.report.refused.push((record.offset, error)),
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, path: &Path, problem: Problem) -> ControlFlow<()> {
        self.report.problems.push((path.to_path_buf(), problem));
        ControlFlow::Continue(())
    }

    fn failed(&mut self, path: &Path, error: Error) -> ControlFlow<()> {
        self.failed = Some(error.in_file(path));
        ControlFlow::Break(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata_cache::tests::{partition, segment, update};
    use super::super::remote_segment::RemoteSegmentState;
    use super::*;
    use crate::io::SimDisk;
    use crate::record::builder::{BatchBuilder, BatchOptions};
    use crate::record::codec::Compressor;

    const DIR: &str = "/__remote_log_metadata-0";

    fn disk(values: &[Vec<u8>]) -> SimDisk {
        let mut builder = BatchBuilder::new(BatchOptions::default()).unwrap();
        for value in values {
            builder.append(7, None, Some(value)).unwrap();
        }
        let mut log = Vec::new();
        builder.write_to(&mut Compressor::new(), &mut log).unwrap();
        let disk = SimDisk::new();
        disk.create_dir(Path::new(DIR)).unwrap();
        disk.put(&Path::new(DIR).join("00000000000000000000.log"), log, None).unwrap();
        disk
    }

    #[test]
    fn the_events_of_a_log_are_applied_in_order() {
        let added = RemoteMetadataRecord::Segment(segment(1, 0, 9, "0:0"));
        let finish =
            |id| RemoteMetadataRecord::Update(update(id, RemoteSegmentState::CopyFinished));
        let disk = disk(&[
            finish(2).encode().unwrap(),
            added.encode().unwrap(),
            finish(1).encode().unwrap(),
            b"\x01\x09\x00".to_vec(),
            added.encode().unwrap(),
        ]);
        let mut metadata = RemoteMetadata::new();
        let report = read_metadata_log(&disk, Path::new(DIR), &mut metadata).unwrap();
        assert_eq!((report.records, report.problems.len()), (5, 0));
        let dropped: Vec<_> = report.dropped.iter().map(|(offset, _)| *offset).collect();
        assert_eq!((dropped, report.refused.len()), (vec![0, 4], 1));
        assert_eq!(report.refused[0].0, 3);
        metadata.mark_loaded();
        assert!(metadata.partition(&partition()).unwrap().segment(0, 5).is_some());
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let mut metadata = RemoteMetadata::new();
        assert!(read_metadata_log(&SimDisk::new(), Path::new(DIR), &mut metadata).is_err());
    }
}
