//! Gathers what is known of each partition and plans its uploads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use siltstone::dir::files::{LOG_START_FILE, REPLICATION_FILE, read_offsets};
use siltstone::dir::settings::is_never_remote;
use siltstone::log::read_topic_id;
use siltstone::state::OffsetCheckpoint;
use siltstone::tier::{ColdLog, ColdOptions, CopyLag, RemotePartition};
use siltstone::{Error, Kind, Result};

use super::{Plan, PlanUploadsArgs};
use crate::given::distinct;
use crate::remote::Remote;
use crate::session::{Session, complain};
use crate::settings::{Settings, SettingsFrom};
use crate::side_by_side::side_by_side;
use crate::target::{PartitionDir, Target};
use crate::{Outcome, time};

/// Plans the uploads of what was given: the plans, how it went, and the time that it went by.
pub(super) fn plan(args: &PlanUploadsArgs, session: &Session) -> Result<(Vec<Plan>, Outcome, i64)> {
    let (partitions, is_one, mut outcome) = gather(args, session);
    if let Some(option) = args.of_one_partition().filter(|_| !is_one) {
        let why = format!("{option} is for one partition; name its directory alone");
        return Err(Error::new(Kind::InvalidArgument, why));
    }
    let from = SettingsFrom { args: &args.settings, like_kafka: false, metadata_upto: None };
    let mut job = Job {
        args,
        session,
        settings: Settings::read(session.storage(), &args.paths, &from)?,
        remote: args.remote.as_deref().map(|path| Remote::open(session, path)).transpose()?,
        checkpoints: BTreeMap::new(),
        now_ms: args.now_ms.unwrap_or_else(time::now_ms),
    };
    let partitions: Vec<PartitionDir> =
        partitions.into_iter().filter(|dir| is_one || dir.is_live()).collect();
    let (warnings, is_whole) = job.settings.metadata_warnings();
    for warning in warnings {
        complain(&format_args!("the metadata log: {warning}"));
    }
    if !is_whole {
        outcome = Outcome::CouldNotLook;
    }
    if let Some(remote) = &job.remote {
        let uploads = |dir: &PartitionDir| job.uploads(remote, dir).ok().flatten();
        remote.read_ahead(partitions.iter().filter_map(uploads));
    }
    let asked: Vec<Result<_>> =
        partitions.into_iter().map(|dir| Ok((job.offsets(&dir)?, dir))).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let planned = side_by_side(threads, &asked, |asked| {
        asked.as_ref().ok().map(|(offsets, dir)| job.plan(dir, *offsets)).transpose()
    });
    let mut plans = Vec::new();
    for (asked, plan) in asked.into_iter().zip(planned) {
        match asked.and(plan) {
            Ok(plan) => plans.extend(plan),
            // Deleted since the directory was listed.
            Err(error) if error.kind() == Kind::NotFound && !is_one => {}
            Err(error) => {
                complain(&error);
                outcome = Outcome::CouldNotLook;
            }
        }
    }
    Ok((plans, outcome, job.now_ms))
}

/// The partitions of all paths, whether they are a single one that was named, and whether all
/// paths could be looked at.
fn gather(args: &PlanUploadsArgs, session: &Session) -> (Vec<PartitionDir>, bool, Outcome) {
    let (mut partitions, mut outcome) = (Vec::new(), Outcome::Fine);
    let paths = distinct(&args.paths);
    let mut is_one = paths.len() == 1;
    for path in &paths {
        match partitions_of(session, path) {
            Ok((target, found)) => {
                is_one &= matches!(target, Target::Partition(_));
                partitions.extend(found);
            }
            Err(error) => {
                complain(&error);
                outcome = Outcome::CouldNotLook;
            }
        }
    }
    (partitions, is_one, outcome)
}

fn partitions_of(session: &Session, path: &Path) -> Result<(Target, Vec<PartitionDir>)> {
    let target = Target::classify(session.storage(), path)?;
    if let Target::File { path, .. } = &target {
        let why = "a file: name its partition directory";
        return Err(Error::new(Kind::InvalidArgument, why).in_file(path));
    }
    let partitions = PartitionDir::of_target(session.storage(), &target)?;
    Ok((target, partitions))
}

/// What a log directory says of the offsets of its partitions.
#[derive(Debug, Default)]
struct Checkpoints {
    high_watermarks: OffsetCheckpoint,
    log_starts: OffsetCheckpoint,
}

struct Job<'a> {
    args: &'a PlanUploadsArgs,
    session: &'a Session,
    settings: Settings,
    remote: Option<Remote>,
    checkpoints: BTreeMap<PathBuf, Checkpoints>,
    now_ms: i64,
}

/// The high watermark and the log start of a partition, where a checkpoint has them.
type CheckpointOffsets = (Option<i64>, Option<i64>);

/// What the settings say of a partition.
#[derive(Default)]
struct Part {
    is_remote: Option<bool>,
    apart: Option<&'static str>,
    local_retention: (i64, i64),
}

impl Job<'_> {
    fn plan(&self, dir: &PartitionDir, offsets: CheckpointOffsets) -> Result<Plan> {
        let storage = self.session.storage();
        let mut log = ColdLog::list(storage, &dir.path)?;
        let part = self.part(dir)?;
        let (high_watermark, log_start) = offsets;
        let copied_offset = match &self.remote {
            Some(remote) => match self.uploads(remote, dir)? {
                Some(partition) => {
                    let end = log.facts.read_end(storage, self.session.maps)?;
                    let end = end.map_or(0, |end| end.end_offset);
                    remote.copied_offset(partition, &log.epochs, &log.facts, end)?
                }
                None => -1,
            },
            None => self.args.highest_remote_offset.unwrap_or(-1),
        };
        let options = ColdOptions {
            high_watermark: self.args.high_watermark.or(high_watermark),
            last_stable_offset: self.args.last_stable_offset,
            log_start_offset: self.args.log_start_offset.or(log_start),
            copied_offset,
            lag: self.lag(part.local_retention),
            reads_indexes: !self.args.sizes_only,
            reads_age: true,
            now_ms: self.now_ms,
            maps: self.session.maps,
        };
        let answer = log.look(storage, &options)?;
        let dir = dir.clone();
        Ok(Plan { dir, log, answer, copied_offset, apart: part.apart, is_remote: part.is_remote })
    }

    /// What was uploaded of a partition.
    fn uploads<'r>(
        &self,
        remote: &'r Remote,
        dir: &PartitionDir,
    ) -> Result<Option<&'r RemotePartition>> {
        let Some(folder) = &dir.folder else { return Ok(None) };
        remote.find(folder, read_topic_id(self.session.storage(), &dir.path)?)
    }

    /// What the settings say of the partition's topic.
    fn part(&self, dir: &PartitionDir) -> Result<Part> {
        let mut part = Part { local_retention: (-1, -1), ..Part::default() };
        let Some(folder) = &dir.folder else { return Ok(part) };
        let topic = self.settings.topic(&folder.topic)?;
        part.local_retention = (topic.local_retention_ms(), topic.local_retention_bytes());
        if self.settings.knows_topics() {
            part.is_remote = Some(self.settings.is_remote(&folder.topic, &topic));
        }
        if is_never_remote(&folder.topic) {
            part.is_remote = Some(false);
            part.apart = Some("internal");
        } else if self.args.assume_remote {
            part.apart = None;
        } else if part.is_remote == Some(false) {
            part.apart = Some("remote_storage_off");
        } else if part.is_remote == Some(true) && topic.remote_copy_disabled {
            part.apart = Some("copy_disabled");
        }
        Ok(part)
    }

    fn lag(&self, local_retention: (i64, i64)) -> Option<CopyLag> {
        let (ms, bytes) = (self.args.copy_lag_ms, self.args.copy_lag_bytes);
        if ms.is_none() && bytes.is_none() {
            return None;
        }
        // One alone decides alone: the other never lets a segment go.
        let settings = (ms.unwrap_or(-1), bytes.unwrap_or(-1));
        let retention = (
            if ms.is_some() { local_retention.0 } else { -1 },
            if bytes.is_some() { local_retention.1 } else { -1 },
        );
        Some(CopyLag::of_settings(settings, retention))
    }

    /// The high watermark and the log start by the checkpoints beside the partition.
    fn offsets(&mut self, dir: &PartitionDir) -> Result<CheckpointOffsets> {
        let (Some(folder), Some(parent)) = (&dir.folder, dir.path.parent()) else {
            return Ok((None, None));
        };
        if !self.checkpoints.contains_key(parent) {
            let storage = self.session.storage();
            let found = Checkpoints {
                high_watermarks: read_offsets(storage, parent, REPLICATION_FILE)?,
                log_starts: read_offsets(storage, parent, LOG_START_FILE)?,
            };
            self.checkpoints.insert(parent.to_path_buf(), found);
        }
        let known = self.checkpoints.get(parent);
        let line = |of: fn(&Checkpoints) -> &OffsetCheckpoint| {
            known.and_then(|known| of(known).get(&folder.topic, folder.partition))
        };
        Ok((line(|known| &known.high_watermarks), line(|known| &known.log_starts)))
    }
}
