//! A log directory of many small partitions, as a broker leaves it that was killed.
//!
//! Each partition has sealed segments with right indexes, and an active one whose indexes are
//! preallocated: 10 MiB long, with the entries so far in front of zeros. There are snapshots at the
//! bases of the later segments, and none at the end. No recovery point was written, so that every
//! batch must be read.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use siltstone::dir::recover::{
    DirRecoverOptions, PartitionDone, PartitionResult, PartitionSettings, recover_log_dir,
    recover_partition,
};
use siltstone::io::{Disk, MapMode, Storage};
use siltstone::log::progress::Silent;
use siltstone::record::codec::Codec;
use siltstone::segment::{FileName, FileRole};
use siltstone::state::checkpoint::EpochEntry;
use siltstone::uuid::Uuid;

use crate::Result;
use crate::batches::{Batches, FIRST_TIMESTAMP_MS, Shape};

/// The size of a preallocated index.
const INDEX_SIZE: u64 = 10 << 20;
/// Batches of a segment.
const BATCHES: usize = 16;
/// Bytes of a batch.
const BATCH_BYTES: usize = 4096;
/// Producers of a partition.
const PRODUCERS: usize = 10;

/// What one partition holds; all of them hold the same.
#[derive(Clone, Debug)]
struct Part {
    name: String,
    bytes: Vec<u8>,
    /// The length of the file where zeros follow.
    size: u64,
}

/// A generated log directory.
#[derive(Debug)]
pub struct Directory {
    /// The directory.
    pub home: PathBuf,
    /// Partitions in it.
    pub partitions: usize,
    /// Bytes of the logs.
    pub log_bytes: u64,
    /// The offset behind the last batch of each partition.
    pub end_offset: i64,
    parts: Vec<Part>,
    /// What recovery writes beside what is there.
    made: Vec<String>,
    rounds: usize,
}

impl Directory {
    /// Makes `partitions` partitions of `segments` segments of about 60 KB.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn make(home: &Path, partitions: usize, segments: usize) -> Result<Self> {
        fs::create_dir_all(home)?;
        let model = home.with_extension("model").join("model-0");
        fs::create_dir_all(&model)?;
        let mut parts = logs(segments)?;
        let log_bytes = parts.iter().map(|(_, bytes, _)| bytes.len()).sum::<usize>();
        for (base, bytes, _) in &parts {
            fs::write(model.join(FileName::live(*base, FileRole::Log).format()), bytes)?;
        }
        let end_offset = parts.last().map_or(0, |(_, _, end)| *end);
        let active = parts.pop().map_or(0, |(base, _, _)| base);
        recover_one(&model)?;
        let (killed, made) = kill(&model, active, end_offset)?;
        let mut directory = Directory {
            home: home.to_path_buf(),
            partitions,
            log_bytes: u64::try_from(log_bytes * partitions)?,
            end_offset,
            parts: killed,
            made,
            rounds: 0,
        };
        fs::write(home.join("meta.properties"), b"version=1\nnode.id=1\ncluster.id=benchmark\n")?;
        for dir in directory.folders() {
            fs::create_dir_all(&dir)?;
            for part in &directory.parts {
                let mut file = File::create(dir.join(&part.name))?;
                file.write_all(&part.bytes)?;
                file.set_len(part.size)?;
            }
        }
        directory.rounds = 1;
        crate::cache::sync_all(home)?;
        Ok(directory)
    }

    /// The folders of the partitions.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> + '_ {
        (0..self.partitions).map(|number| self.home.join(format!("topic-{number}")))
    }

    /// The name of the snapshot that recovery writes at the end of each log.
    #[must_use]
    pub fn made_at_the_end(&self) -> &str {
        self.made.first().map_or("", String::as_str)
    }

    /// The name of the active segment, without suffix.
    #[must_use]
    pub fn active(&self) -> &str {
        let names = self.parts.iter().filter_map(|part| part.name.strip_suffix(".log"));
        names.max().unwrap_or_default()
    }

    /// Makes the directory what it was before it was recovered. What recovery has added is moved
    /// aside, not removed: where many files were deleted just before, ext4 takes several times as
    /// long to make new ones.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn kill_again(&mut self) -> Result<()> {
        let aside = self.home.with_extension(format!("aside-{}", self.rounds));
        fs::create_dir_all(&aside)?;
        self.rounds += 1;
        for (number, dir) in self.folders().enumerate() {
            for name in &self.made {
                move_aside(&dir.join(name), &aside.join(format!("{number}-{name}")))?;
            }
            for part in self.parts.iter().filter(|part| part.size == INDEX_SIZE) {
                let mut file = OpenOptions::new().write(true).open(dir.join(&part.name))?;
                file.write_all(&part.bytes)?;
                // What lay behind becomes zeros. Not cut to nothing: that would give its blocks
                // back.
                file.set_len(u64::try_from(part.bytes.len())?)?;
                file.set_len(part.size)?;
            }
        }
        for name in ["recovery-point-offset-checkpoint", ".kafka_cleanshutdown"] {
            move_aside(&self.home.join(name), &aside.join(name))?;
        }
        crate::cache::sync_all(&self.home)
    }

    /// Recovers the directory and sees to it that every partition came to what was written.
    ///
    /// # Errors
    /// When it did not.
    pub fn recover(&self, threads: usize, maps: MapMode) -> Result<()> {
        let right = Mutex::new(0_usize);
        let done = |done: PartitionDone<'_>| {
            if let PartitionResult::Sound(plan) = done.result
                && plan.outcome.log_end_offset == self.end_offset
                && let Ok(mut right) = right.lock()
            {
                *right += 1;
            }
        };
        let settings = |_: &str| PartitionSettings::default();
        let options = options(&settings, &done, threads, maps);
        let storage: &dyn Storage = &Disk::new();
        let report = recover_log_dir(storage, &self.home, &options, &Silent)?;
        let right = right.into_inner().map_err(|_| "a thread panicked")?;
        if right != self.partitions || !report.is_clean {
            return Err(format!("{right} of {} partitions were recovered", self.partitions).into());
        }
        Ok(())
    }
}

/// Base offset, bytes and end offset of each segment.
fn logs(segments: usize) -> Result<Vec<(i64, Vec<u8>, i64)>> {
    let shape = Shape { batch_bytes: BATCH_BYTES, codec: Codec::None, producers: PRODUCERS };
    let mut batches = Batches::new(shape)?;
    let mut logs = Vec::new();
    for _ in 0..segments {
        let (base, mut bytes) = (batches.next_offset(), Vec::new());
        for _ in 0..BATCHES {
            batches.push(&mut bytes)?;
        }
        logs.push((base, bytes, batches.next_offset()));
    }
    Ok(logs)
}

/// The files of a partition whose broker is killed, and the names of those that it lacks, made from
/// a recovered one.
fn kill(model: &Path, active: i64, end_offset: i64) -> Result<(Vec<Part>, Vec<String>)> {
    let last = FileName::live(end_offset, FileRole::Snapshot).format();
    let offsets = FileName::live(active, FileRole::OffsetIndex).format();
    let times = FileName::live(active, FileRole::TimeIndex).format();
    let mut parts = Vec::new();
    for entry in fs::read_dir(model)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let mut bytes = fs::read(model.join(&name))?;
        let mut size = u64::try_from(bytes.len())?;
        if name == last || name == METADATA {
            continue;
        }
        if name == times {
            // The entry for the largest timestamp comes when a segment is rolled or closed.
            bytes.truncate(bytes.len().saturating_sub(TIME_ENTRY));
        }
        if name == times || name == offsets {
            size = INDEX_SIZE;
        }
        parts.push(Part { name, bytes, size });
    }
    let id = Uuid([7; 16]);
    let bytes = siltstone::state::meta::format_partition_metadata(id);
    parts.push(Part { name: METADATA.to_owned(), size: u64::try_from(bytes.len())?, bytes });
    Ok((parts, vec![last]))
}

const METADATA: &str = "partition.metadata";
const TIME_ENTRY: usize = 12;

fn recover_one(dir: &Path) -> Result<()> {
    let epochs = [EpochEntry { epoch: 0, start_offset: 0 }];
    let bytes = siltstone::state::checkpoint::format_epochs(&epochs);
    fs::write(dir.join("leader-epoch-checkpoint"), bytes)?;
    let settings = |_: &str| PartitionSettings::default();
    let done = |_: PartitionDone<'_>| {};
    let options = options(&settings, &done, 1, MapMode::Never);
    let storage: &dyn Storage = &Disk::new();
    recover_partition(storage, dir, &options, &Silent)?;
    Ok(())
}

fn move_aside(from: &Path, to: &Path) -> Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => Ok(other?),
    }
}

fn options<'a>(
    settings: &'a (dyn Fn(&str) -> PartitionSettings + Sync),
    done: &'a (dyn Fn(PartitionDone<'_>) + Sync),
    threads: usize,
    map_mode: MapMode,
) -> DirRecoverOptions<'a> {
    DirRecoverOptions {
        threads,
        map_mode,
        ..DirRecoverOptions::new(settings, done, FIRST_TIMESTAMP_MS)
    }
}
