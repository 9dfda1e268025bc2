//! One partition with one large segment, as recovery leaves it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use siltstone::dir::recover::{DirRecoverOptions, PartitionSettings, recover_partition};
use siltstone::io::{Disk, MapMode, Storage};
use siltstone::log::progress::Silent;
use siltstone::segment::{FileName, FileRole};

use crate::Result;
use crate::batches::{Batches, Shape};

/// Written at a time.
const CHUNK: usize = 4 << 20;

/// A generated partition.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Its folder.
    pub dir: PathBuf,
    /// Its only log.
    pub log: PathBuf,
    /// Bytes of that log.
    pub size_bytes: u64,
    /// Its batches.
    pub batches: usize,
    /// The offset behind the last one.
    pub end_offset: i64,
}

impl Segment {
    /// Makes a partition `NAME-0` in `home` with a segment of about `size_bytes`, and the small
    /// files that belong to it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn make(home: &Path, name: &str, size_bytes: u64, shape: Shape) -> Result<Self> {
        let dir = home.join(format!("{name}-0"));
        fs::create_dir_all(&dir)?;
        let log = dir.join(FileName::live(0, FileRole::Log).format());
        let mut file = File::create(&log)?;
        let mut batches = Batches::new(shape)?;
        let (mut chunk, mut written) = (Vec::with_capacity(CHUNK * 2), 0_u64);
        while written < size_bytes {
            while chunk.len() < CHUNK && written < size_bytes {
                written += u64::try_from(batches.push(&mut chunk)?)?;
            }
            file.write_all(&chunk)?;
            chunk.clear();
        }
        file.sync_all()?;
        let segment = Segment {
            dir,
            log,
            size_bytes: written,
            batches: batches.made(),
            end_offset: batches.next_offset(),
        };
        // It has no indexes and no snapshot yet: the first recovery makes them, and the later ones
        // find them right.
        segment.recover(MapMode::Never)?;
        Ok(segment)
    }

    /// Recovers the partition as after an unclean stop, from its first batch on, on this thread.
    ///
    /// # Errors
    /// When it cannot, or comes to something else than what was written.
    pub fn recover(&self, maps: MapMode) -> Result<()> {
        let end = std::sync::Mutex::new(None);
        let settings = |_: &str| PartitionSettings::default();
        let done = |done: siltstone::dir::recover::PartitionDone<'_>| {
            if let siltstone::dir::recover::PartitionResult::Sound(plan) = done.result
                && let Ok(mut end) = end.lock()
            {
                *end = Some(plan.outcome.log_end_offset);
            }
        };
        let now_ms = crate::batches::FIRST_TIMESTAMP_MS;
        let options = DirRecoverOptions {
            map_mode: maps,
            ..DirRecoverOptions::new(&settings, &done, now_ms)
        };
        let storage: &dyn Storage = &Disk::new();
        recover_partition(storage, &self.dir, &options, &Silent)?;
        let reached = end.lock().map_err(|_| "a thread panicked")?.take();
        if reached != Some(self.end_offset) {
            return Err(format!("recovered up to {reached:?}, not {}", self.end_offset).into());
        }
        Ok(())
    }
}
