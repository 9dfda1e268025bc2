//! Which replicas are rebuilt, and behind which segments do they begin?

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use siltstone::dir::files::{LOG_START_FILE, read_offsets};
use siltstone::io::Storage;
use siltstone::log::{FolderKind, FolderName, Inventory, read_topic_id};
use siltstone::tier::{Lineage, RemotePartition, RemoteSegment};
use siltstone::{Error, Kind, Result};

use crate::Outcome;
use crate::remote::Remote;
use crate::target::{PartitionDir, Target};

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
    pub(super) begins_behind: Behind,
}

/// The segment that a replica will begin behind, and where its log will start.
type Behind = std::result::Result<(RemoteSegment, i64), Refusal>;

/// Why a replica cannot be rebuilt.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) why: String,
    /// How the run ends for it.
    pub(super) outcome: Outcome,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let is_unread = error.kind() == Kind::Io;
        let outcome = if is_unread { Outcome::CouldNotLook } else { Outcome::Problems };
        Refusal { why: error.to_string(), outcome }
    }
}

impl Step {
    fn new(partition: &PartitionDir, size_bytes: u64, begins_behind: Behind) -> Self {
        let (name, dir) = (partition.name.clone(), partition.path.clone());
        Step { name, dir, size_bytes, begins_behind }
    }
}

/// A replica that may be rebuilt, before what was uploaded of it is read.
struct Look<'a> {
    partition: PartitionDir,
    is_named: bool,
    /// Bytes of its logs.
    size_bytes: u64,
    /// Where its last segment begins.
    last_base: i64,
    /// Where the checkpoint says that its log starts.
    line: i64,
    uploads: Result<Option<&'a RemotePartition>>,
}

impl<'a> Plan<'a> {
    /// All replicas that were named, else the empty ones that remote storage knows. One that had
    /// later records than were uploaded is not empty: its end would go back. A replica that cannot
    /// be looked at is a step that fails; the others go on.
    pub(super) fn steps(&self) -> Result<Vec<Step>> {
        let mut looks = Vec::new();
        let mut homes = Vec::new();
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        for home in self.dirs {
            let starts = read_offsets(self.storage, home, LOG_START_FILE)?;
            let all = PartitionDir::of_target(self.storage, &Target::LogDir(home.clone()))?;
            let live: Vec<PartitionDir> = all.into_iter().filter(PartitionDir::is_live).collect();
            for partition in &live {
                let count = found.entry(partition.name.clone()).or_default();
                *count = count.saturating_add(1);
            }
            homes.push((starts, live));
        }
        for (starts, live) in &homes {
            for partition in live {
                let Some(folder) = &partition.folder else { continue };
                let is_named = self.named.contains(&partition.name);
                if !is_named && !self.named.is_empty() {
                    continue;
                }
                let is_alone = found.get(&partition.name) == Some(&1);
                let line = starts.get(&folder.topic, folder.partition).unwrap_or(0);
                match self.look(partition, folder, is_named, line) {
                    // Kafka does not start with it, and which of them is to stay nobody can tell.
                    Ok(Some(look)) if !is_alone => {
                        let why = "several log directories have this partition".to_owned();
                        let refusal = Refusal { why, outcome: Outcome::Problems };
                        looks.push(Err(Step::new(partition, look.size_bytes, Err(refusal))));
                    }
                    Ok(look) => looks.extend(look.map(Ok)),
                    // Deleted since the directory was listed.
                    Err(error) if error.kind() == Kind::NotFound && !is_named => {}
                    Err(error) => looks.push(Err(Step::new(partition, 0, Err(error.into())))),
                }
            }
        }
        let mut seen = BTreeSet::new();
        let absent = self.named.iter().filter(|name| !found.contains_key(*name));
        for name in absent.filter(|name| seen.insert(*name)) {
            looks.push(Ok(self.new_look(name)?));
        }
        let uploads = |look: &Look<'a>| look.uploads.as_ref().ok().copied().flatten();
        self.remote.read_ahead(looks.iter().flatten().filter_map(uploads));
        let step = |look: std::result::Result<Look<'a>, Step>| match look {
            Ok(look) => self.step(look),
            Err(failed) => Some(failed),
        };
        Ok(looks.into_iter().filter_map(step).collect())
    }

    /// A replica that is there; `None` for one that is to be left alone.
    fn look(
        &self,
        partition: &PartitionDir,
        folder: &FolderName,
        is_named: bool,
        line: i64,
    ) -> Result<Option<Look<'a>>> {
        // What is wrong with the folder of a topic that was never uploaded is no concern here.
        if !is_named && matches!(self.remote.find(folder, None), Ok(None)) {
            return Ok(None);
        }
        let inventory = Inventory::read(self.storage, &partition.path)?;
        let logs = inventory.segments.values();
        let size_bytes = logs.fold(0, |sum: u64, log| sum.saturating_add(log.log_size_bytes));
        if !is_named && size_bytes > 0 {
            return Ok(None);
        }
        let topic_id = read_topic_id(self.storage, &partition.path)?;
        let uploads = self.remote.find(folder, topic_id);
        if !is_named && matches!(uploads, Ok(None)) {
            return Ok(None);
        }
        let partition = partition.clone();
        let last_base = inventory.segments.keys().next_back().copied().unwrap_or(0);
        Ok(Some(Look { partition, is_named, size_bytes, last_base, line, uploads }))
    }

    /// A replica that is not there yet.
    fn new_look(&self, name: &str) -> Result<Look<'a>> {
        let no_name = || {
            let why = format!("--partition {name}: not a topic and a partition");
            Error::new(Kind::InvalidArgument, why)
        };
        let home = self.dirs.first().ok_or_else(no_name)?;
        let partition = PartitionDir::at(&home.join(name));
        let folder = partition.folder.clone().filter(|folder| folder.kind == FolderKind::Live);
        let folder = folder.filter(|_| partition.name == name).ok_or_else(no_name)?;
        let uploads = self.remote.find(&folder, None);
        Ok(Look { partition, is_named: true, size_bytes: 0, last_base: 0, line: 0, uploads })
    }

    /// What is to be done about a replica; `None` where its end would go back and nobody named it.
    fn step(&self, look: Look<'a>) -> Option<Step> {
        let begins_behind = self.begins_behind(look.uploads, look.line);
        let goes_back = begins_behind.as_ref().is_ok_and(|(segment, _)| {
            look.last_base.checked_sub(1).is_some_and(|last| segment.end_offset < last)
        });
        let is_wanted = look.is_named || !goes_back;
        is_wanted.then(|| Step::new(&look.partition, look.size_bytes, begins_behind))
    }

    /// What a replica begins behind; `line` is where the checkpoint says that its log starts.
    fn begins_behind(&self, uploads: Result<Option<&RemotePartition>>, line: i64) -> Behind {
        let segments = match uploads? {
            Some(partition) => self.remote.finished(partition)?,
            None => Vec::new(),
        };
        let Some(segment) =
            choose(&segments, self.start_offset, |newest| self.remote.lineage(newest))?
        else {
            let why = match self.start_offset {
                Some(start) => format!("no whole segment in remote storage holds {}", start - 1),
                None => "no whole segment is in remote storage".to_owned(),
            };
            return Err(Refusal { why, outcome: Outcome::Problems });
        };
        let first = segments.iter().map(|segment| segment.start_offset).min().unwrap_or(0);
        let log_start_offset = self.log_start_offset.unwrap_or_else(|| first.max(line));
        Ok((segment.clone(), log_start_offset))
    }
}

/// Of segments that are whole, the last one of the latest leader; or the one that holds the offset
/// before `start_offset`, of several uploads of that offset the one of the latest leader. One that
/// lost an election holds records that no leader has, and its replica would be cut in front of its
/// first record: `lineage` gives what the log of the last upload was.
fn choose(
    segments: &[RemoteSegment],
    start_offset: Option<i64>,
    lineage: impl FnOnce(&RemoteSegment) -> Result<Lineage>,
) -> Result<Option<&RemoteSegment>> {
    // spec: follower-fetch 5.3, K4
    let place = |segment: &&RemoteSegment| {
        (segment.leader_epochs.last().map(|it| it.epoch), segment.end_offset)
    };
    let newest = segments.iter().max_by_key(place);
    let (Some(start), Some(newest)) = (start_offset, newest) else { return Ok(newest) };
    let previous = start.saturating_sub(1);
    let mut holding = (segments.iter())
        .filter(|segment| (segment.start_offset..=segment.end_offset).contains(&previous))
        .peekable();
    if holding.peek().is_none() {
        return Ok(None);
    }
    let lineage = lineage(newest)?;
    Ok(holding.filter(|segment| lineage.holds(segment)).max_by_key(place))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use siltstone::state::EpochEntry;
    use siltstone::tier::{RemoteSegmentId, RemoteSegmentState};
    use siltstone::uuid::Uuid;

    use super::*;

    fn epochs(list: &[(i32, i64)]) -> Vec<EpochEntry> {
        list.iter().map(|&(epoch, start_offset)| EpochEntry { epoch, start_offset }).collect()
    }

    fn segment(number: u8, start_offset: i64, end_offset: i64, of: &[(i32, i64)]) -> RemoteSegment {
        let partition =
            RemotePartition { topic_id: Uuid::ZERO, topic: "orders".to_owned(), partition: 0 };
        RemoteSegment {
            id: RemoteSegmentId { partition, segment_id: Uuid([number; 16]) },
            start_offset,
            end_offset,
            max_timestamp_ms: 0,
            broker_id: 0,
            event_timestamp_ms: 0,
            size_bytes: 1,
            custom_metadata: None,
            state: RemoteSegmentState::CopyFinished,
            leader_epochs: epochs(of),
            is_txn_index_empty: true,
        }
    }

    #[test]
    fn a_segment_that_lost_an_election_is_not_begun_behind() {
        // spec: follower-fetch 5.3, K4
        // An unclean election ended epoch 0 at 50; the segment that reaches to 79 was taken.
        let segments = [
            segment(1, 0, 29, &[(0, 0)]),
            segment(2, 30, 79, &[(0, 30)]),
            segment(3, 30, 54, &[(0, 30), (1, 50)]),
        ];
        let lineage = |newest: &RemoteSegment| {
            assert_eq!(newest.id, segments[2].id);
            Ok(Lineage::new(&epochs(&[(0, 0), (1, 50)]), i64::MAX))
        };
        let chosen = |segments: &[RemoteSegment], start| {
            let found: Option<&RemoteSegment> = choose(segments, start, lineage).unwrap();
            found.map(|segment| segment.id.segment_id.0[0])
        };
        assert_eq!(chosen(&segments, None), Some(3));
        assert_eq!(chosen(&segments, Some(20)), Some(1));
        assert_eq!(chosen(&segments, Some(40)), Some(3));
        assert_eq!(chosen(&segments, Some(70)), None);
        assert_eq!(chosen(&[], Some(70)), None);
    }
}
