//! Which replicas are rebuilt, and behind which segments do they begin?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use siltstone::dir::files::LOG_START_FILE;
use siltstone::io::Storage;
use siltstone::log::inventory::METADATA_FILE;
use siltstone::log::{FolderKind, FolderName, Inventory};
use siltstone::state::OffsetCheckpoint;
use siltstone::state::meta::parse_partition_metadata;
use siltstone::tier::{RemoteSegment, RemoteSegmentState};
use siltstone::uuid::Uuid;
use siltstone::{Error, Kind, Result};

use crate::remote::Remote;
use crate::target::PartitionDir;

/// More than `partition.metadata` has.
const METADATA_BYTES_MAX: u64 = 64 << 10;
/// More than a checkpoint of a million partitions has.
const CHECKPOINT_BYTES_MAX: u64 = 512 << 20;

/// What a plan is made of.
pub(super) struct Plan<'a> {
    pub(super) storage: &'a dyn Storage,
    pub(super) remote: &'a Remote,
    pub(super) dirs: &'a [PathBuf],
    pub(super) named: &'a [String],
    pub(super) log_start_offset: Option<i64>,
    pub(super) start_offset: Option<i64>,
}

/// One replica of the plan.
#[derive(Debug)]
pub(super) struct Step {
    /// Its folder's name.
    pub(super) name: String,
    pub(super) dir: PathBuf,
    /// Bytes of its logs now, which go.
    pub(super) size_bytes: u64,
    pub(super) log_start_offset: i64,
    /// The segment that it will begin behind, or why there is none.
    pub(super) segment: std::result::Result<RemoteSegment, String>,
}

impl Plan<'_> {
    /// All replicas that were named, else the empty ones that remote storage knows. One that had
    /// later records than were uploaded is not empty: its end would go back.
    pub(super) fn steps(&self) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        let mut found = BTreeSet::new();
        for home in self.dirs {
            let starts = self.log_starts(home)?;
            for entry in self.storage.list(home)? {
                let partition = PartitionDir::at(&home.join(&entry.name));
                let Some(folder) = &partition.folder else { continue };
                let is_named = self.named.contains(&partition.name);
                let is_wanted = is_named || self.named.is_empty();
                if folder.kind != FolderKind::Live || !is_wanted {
                    continue;
                }
                let inventory = Inventory::read(self.storage, &partition.path)?;
                let logs = inventory.segments.values();
                let size = logs.fold(0, |sum: u64, log| sum.saturating_add(log.log_size_bytes));
                found.insert(partition.name.clone());
                let topic_id = self.topic_id(&partition.path)?;
                let is_known = self.remote.find(folder, topic_id)?.is_some();
                if !is_named && (size > 0 || !is_known) {
                    continue;
                }
                let step = self.step(&partition, folder, (topic_id, size), &starts)?;
                let last_base = inventory.segments.keys().next_back().copied().unwrap_or(0);
                let goes_back = |segment: &RemoteSegment| {
                    last_base.checked_sub(1).is_some_and(|last| segment.end_offset < last)
                };
                if is_named || !step.segment.as_ref().is_ok_and(goes_back) {
                    steps.push(step);
                }
            }
        }
        for name in self.named.iter().filter(|name| !found.contains(*name)) {
            steps.push(self.new_step(name)?);
        }
        Ok(steps)
    }

    /// A replica that is not there yet.
    fn new_step(&self, name: &str) -> Result<Step> {
        let no_name = || {
            let why = format!("--partition {name}: not a topic and a partition");
            Error::new(Kind::InvalidArgument, why)
        };
        let home = self.dirs.first().ok_or_else(no_name)?;
        let partition = PartitionDir::at(&home.join(name));
        let folder = partition.folder.clone().filter(|folder| folder.kind == FolderKind::Live);
        let folder = folder.filter(|_| partition.name == name).ok_or_else(no_name)?;
        self.step(&partition, &folder, (None, 0), &OffsetCheckpoint::new())
    }

    fn step(
        &self,
        partition: &PartitionDir,
        folder: &FolderName,
        (topic_id, size_bytes): (Option<Uuid>, u64),
        starts: &OffsetCheckpoint,
    ) -> Result<Step> {
        let segments = match self.remote.find(folder, topic_id)? {
            Some(partition) => self.remote.segments(partition)?,
            None => Vec::new(),
        };
        let first = segments.iter().map(|segment| segment.start_offset).min().unwrap_or(0);
        let line = starts.get(&folder.topic, folder.partition).unwrap_or(0);
        let log_start_offset = self.log_start_offset.unwrap_or_else(|| first.max(line));
        let segment =
            choose(&segments, self.start_offset).cloned().ok_or_else(|| match self.start_offset {
                Some(start) => format!("no whole segment in remote storage holds {}", start - 1),
                None => "no whole segment is in remote storage".to_owned(),
            });
        let (name, dir) = (partition.name.clone(), partition.path.clone());
        Ok(Step { name, dir, size_bytes, log_start_offset, segment })
    }

    fn topic_id(&self, dir: &Path) -> Result<Option<Uuid>> {
        let path = dir.join(METADATA_FILE);
        match self.storage.read(&path, METADATA_BYTES_MAX) {
            Ok(bytes) => {
                parse_partition_metadata(&bytes).map(Some).map_err(|error| error.in_file(&path))
            }
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn log_starts(&self, home: &Path) -> Result<OffsetCheckpoint> {
        let path = home.join(LOG_START_FILE);
        match self.storage.read(&path, CHECKPOINT_BYTES_MAX) {
            Ok(bytes) => OffsetCheckpoint::parse(&bytes).map_err(|error| error.in_file(&path)),
            Err(error) if error.kind() == Kind::NotFound => Ok(OffsetCheckpoint::new()),
            Err(error) => Err(error),
        }
    }
}

/// The segment that holds the offset before `start_offset`, or the last one; of several uploads of
/// one offset that of the latest leader.
fn choose(segments: &[RemoteSegment], start_offset: Option<i64>) -> Option<&RemoteSegment> {
    // spec: follower-fetch 5.3, K4
    let holds = |segment: &&RemoteSegment| {
        start_offset.is_none_or(|start| {
            (segment.start_offset..=segment.end_offset).contains(&start.saturating_sub(1))
        })
    };
    let is_whole = |segment: &&RemoteSegment| segment.state == RemoteSegmentState::CopyFinished;
    let last_epoch = |segment: &RemoteSegment| segment.leader_epochs.last().map(|it| it.epoch);
    let whole = segments.iter().filter(is_whole).filter(holds);
    whole.max_by_key(|segment| (last_epoch(segment), segment.end_offset))
}
