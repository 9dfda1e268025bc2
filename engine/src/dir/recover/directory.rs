//! One log directory, or one partition alone.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use crate::dir::files::{CLEAN_SHUTDOWN_FILE, LOCK_FILE, META_FILE, RECOVERY_POINT_FILE};
use crate::dir::pool::in_pool;
use crate::dir::recover::checkpoints::{Checkpoints, owner_of_dir, remove_marker, replace};
use crate::dir::recover::group::{Group, Member, sync_all};
use crate::dir::recover::options::{DirRecoverOptions, DirReport, PartitionDone, PartitionResult};
use crate::dir::recover::rebuilds::settle_rebuilds;
use crate::dir::verify::read_small_file;
use crate::error::{Error, Kind, Result};
use crate::io::{FileKind, Lock, Storage};
use crate::log::bootstrap::Interrupted;
use crate::log::inventory::Inventory;
use crate::log::name::{FolderKind, FolderName, REMOTE_INDEX_CACHE};
use crate::log::progress::Progress;
use crate::log::recover::{CutReason, Plan, Refusal, discard, retire};
use crate::problem::{Code, Problem, Severity};
use crate::segment::{FileName, FileRole};
use crate::state::meta::format_clean_shutdown;

/// Partitions that are made durable together.
const GROUP: usize = 256;
/// The folder of the KRaft metadata log, which is read and never written.
const METADATA_LOG: &str = "__cluster_metadata";

/// Recovers a log directory.
///
/// # Errors
/// When the directory cannot be read, a broker holds it, or its own files cannot be written. What is wrong with a partition is told
/// by `options.done` and does not stop the others.
pub fn recover_log_dir(
    storage: &dyn Storage,
    dir: &Path,
    options: &DirRecoverOptions<'_>,
    progress: &dyn Progress,
) -> Result<DirReport> {
    in_pool(options.threads, || log_dir(storage, dir, options, progress))
}

fn log_dir(
    storage: &dyn Storage,
    dir: &Path,
    options: &DirRecoverOptions<'_>,
    progress: &dyn Progress,
) -> Result<DirReport> {
    let _lock = if options.dry_run { None } else { Some(lock_log_dir(storage, dir)?) };
    let mut report = DirReport { dir: dir.to_path_buf(), ..DirReport::default() };
    let mut checkpoints = Checkpoints::read(storage, dir, &mut report.problems)?;
    report.was_clean = checkpoints.marker.is_some() || options.clean_shutdown;
    report.problems.extend(read_small_file(storage, dir, META_FILE).err());
    let members = list_members(storage, dir, &mut report.problems)?;
    let has_settled =
        !options.dry_run && settle_rebuilds(storage, dir, &members, &mut checkpoints)?;
    let run = Run {
        group: Group {
            storage,
            dir,
            checkpoints: &checkpoints,
            options,
            progress,
            clean: report.was_clean,
        },
        marked: Cell::new(checkpoints.marker.is_some()),
        has_settled,
    };
    run.directory(&members, report)
}

/// Recovers one partition folder. The checkpoints beside it are read; nothing outside of it is written.
///
/// # Errors
/// As [`recover_log_dir`].
pub fn recover_partition(
    storage: &dyn Storage,
    dir: &Path,
    options: &DirRecoverOptions<'_>,
    progress: &dyn Progress,
) -> Result<DirReport> {
    in_pool(options.threads, || partition_alone(storage, dir, options, progress))
}

fn partition_alone(
    storage: &dyn Storage,
    dir: &Path,
    options: &DirRecoverOptions<'_>,
    progress: &dyn Progress,
) -> Result<DirReport> {
    let parent = home_of(dir);
    let member = member_of(dir);
    if member.key.as_ref().is_some_and(|(topic, _)| topic == METADATA_LOG) {
        let message = "the metadata log is read and never written";
        return Err(Error::new(Kind::InvalidArgument, message).in_file(dir));
    }
    let lock_file = parent.join(LOCK_FILE);
    let has_lock_file = is_there(storage, &lock_file)?;
    let _lock = if has_lock_file && !options.dry_run {
        Some(lock_log_dir(storage, &parent)?)
    } else {
        None
    };
    let mut report = DirReport { dir: dir.to_path_buf(), ..DirReport::default() };
    // What is wrong with the checkpoints of the directory is not this partition's to tell.
    let checkpoints = Checkpoints::read(storage, &parent, &mut Vec::new())?;
    report.was_clean = checkpoints.marker.is_some() || options.clean_shutdown;
    refuse_alone(storage, dir, checkpoints.marker.is_some(), options)?;
    let group = Group {
        storage,
        dir,
        checkpoints: &checkpoints,
        options,
        progress,
        clean: report.was_clean,
    };
    let members = std::slice::from_ref(&member);
    let mut plans = if options.dry_run { group.look(members) } else { group.prepare(members) };
    if checkpoints.marker.is_some() {
        for plan in plans.iter_mut().flatten().filter(|plan| plan.cut.is_some()) {
            discard(storage, plan)?;
            refuse_beside_marker(plan);
        }
    }
    if !options.dry_run {
        plans = group.put_in_place(plans)?;
        for plan in plans.iter().flatten() {
            // One at the very start is right there, and serves a recovery that begins anew.
            let at_start =
                FileName::live(plan.outcome.log_start_offset, FileRole::Snapshot).format();
            let others = plan.retire.iter().filter(|name| **name != at_start).cloned();
            retire(storage, dir, &others.collect::<Vec<_>>())?;
        }
    }
    if let Some(plan) = plans.pop() {
        // The marker of the directory is none of ours to touch.
        let run = Run { group, marked: Cell::new(false), has_settled: false };
        if !options.dry_run && plan.as_ref().is_ok_and(Plan::is_empty) {
            // An earlier run may have done the work and been killed before it was durable.
            storage.sync_filesystem(dir)?;
        }
        run.tell(&member, plan, &mut report);
    }
    Ok(report)
}

/// What a partition alone is not the place for: the files of the directory around it would have to
/// change, too.
fn refuse_alone(
    storage: &dyn Storage,
    dir: &Path,
    is_marked: bool,
    options: &DirRecoverOptions<'_>,
) -> Result<()> {
    let refused = |message: &str| Err(Error::new(Kind::Conflict, message).in_file(dir));
    if options.dry_run {
        return Ok(());
    }
    if let Some(target) = storage.link_target(dir)? {
        let real_home = home_of(&target);
        let is_elsewhere = std::fs::canonicalize(home_of(dir)).ok().as_ref() != Some(&real_home);
        if is_elsewhere && is_there(storage, &real_home.join(LOCK_FILE))? {
            return refused(&format!(
                "a symbolic link into the log directory {}, whose lock and checkpoints would not be looked at; name what \
                 it points to",
                real_home.display()
            ));
        }
    }
    if is_marked && options.quarantine.is_some() {
        refused(
            "the directory around it has its marker of a clean stop, and would be incomplete without this partition; \
             recover the whole directory",
        )
    } else if Interrupted::find(storage, dir)?.is_some() {
        refused(
            "a rebuild from remote storage was interrupted here, and the checkpoints of the directory around it have to \
             follow; recover the whole directory",
        )
    } else {
        Ok(())
    }
}

/// With its marker a directory says that nothing acknowledged is missing; a log that is cut would
/// make that untrue, and the marker is none of a partition's to remove.
fn refuse_beside_marker(plan: &mut Plan) {
    let Some(cut) = plan.cut.take() else { return };
    let advice = match cut.reason {
        // A whole directory is never cut where somebody asks.
        CutReason::Asked => "Remove the marker first",
        CutReason::Damage(_) => "Recover the whole directory, or remove the marker first",
    };
    let reason = format!(
        "the log would be cut at offset {}, but the directory around it has its marker of a clean stop, \
         {CLEAN_SHUTDOWN_FILE}, and Kafka would take it for complete. {advice}",
        cut.from_offset
    );
    let end = cut.survivors.end_offset.unwrap_or(cut.from_offset).max(cut.from_offset);
    let loss = Some((cut.from_offset, end));
    plan.refusal = Some(Refusal { code: Code::CleanMarker, reason, loss });
    plan.split = None;
    plan.actions.clear();
    plan.retire.clear();
}

fn is_there(storage: &dyn Storage, path: &Path) -> Result<bool> {
    match storage.metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == Kind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The directory that a partition's folder is in.
fn home_of(dir: &Path) -> PathBuf {
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// A partition by its folder alone.
fn member_of(dir: &Path) -> Member {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let key = FolderName::parse(&name).map(|folder| (folder.topic, folder.partition));
    Member { dir: dir.to_path_buf(), key }
}

/// How many bytes of logs a recovery will read at least, for a bar that shows how far it is.
///
/// # Errors
/// When the directory cannot be listed.
pub fn bytes_to_read(
    storage: &dyn Storage,
    dir: &Path,
    is_partition: bool,
    options: &DirRecoverOptions<'_>,
) -> Result<u64> {
    let mut problems = Vec::new();
    let (home, members) = if is_partition {
        (home_of(dir), vec![member_of(dir)])
    } else {
        (dir.to_path_buf(), list_members(storage, dir, &mut problems)?)
    };
    let checkpoints = Checkpoints::read(storage, &home, &mut problems)?;
    if (checkpoints.marker.is_some() || options.clean_shutdown) && !options.all {
        return Ok(0);
    }
    let mut total = 0_u64;
    for member in &members {
        let known = member
            .key
            .as_ref()
            .and_then(|(topic, partition)| checkpoints.recovery_points.get(topic, *partition));
        let point = if options.all { 0 } else { options.recovery_point.or(known).unwrap_or(0) };
        total = total.saturating_add(tail_bytes(storage, &member.dir, point));
    }
    Ok(total)
}

/// How many bytes of a partition lie in the segments from a recovery point on; 0 where it cannot be
/// listed.
pub(crate) fn tail_bytes(storage: &dyn Storage, dir: &Path, point: i64) -> u64 {
    let Ok(inventory) = Inventory::read(storage, dir) else { return 0 };
    let floor = inventory.segments.range(..=point).next_back().map_or(point, |(base, _)| *base);
    let tail = inventory.segments.range(floor..);
    tail.fold(0, |sum, (_, segment)| sum.saturating_add(segment.log_size_bytes))
}

/// Takes the lock that a broker takes, in a file that the broker can open, too.
///
/// # Errors
/// `Conflict` when a broker holds the directory; what the disk says.
pub fn lock_log_dir(storage: &dyn Storage, dir: &Path) -> Result<Box<dyn Lock>> {
    let path = dir.join(LOCK_FILE);
    let is_new = !is_there(storage, &path)?;
    let lock = storage.lock(&path).map_err(|error| {
        if error.kind() == Kind::Conflict {
            Error::new(Kind::Conflict, "a running broker holds this directory; stop it first")
                .in_file(dir)
        } else {
            error
        }
    })?;
    if is_new {
        storage.set_owner(&path, &owner_of_dir(storage, dir)?)?;
    }
    Ok(lock)
}

/// The partitions of a directory. Folders that would stop Kafka from starting are told and left alone.
fn list_members(
    storage: &dyn Storage,
    dir: &Path,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    for entry in storage.list(dir)? {
        if entry.kind != FileKind::Directory {
            continue;
        }
        let name = entry.name.to_string_lossy().into_owned();
        if name == REMOTE_INDEX_CACHE {
            continue;
        }
        let Some(folder) = FolderName::parse(&name) else {
            problems.push(Problem {
                code: Code::BadName,
                severity: Severity::Refused,
                file: name,
                position: None,
                offset: None,
                detail: "no folder of a partition: Kafka does not start with it here; move it away"
                    .to_owned(),
            });
            continue;
        };
        let is_log = matches!(folder.kind, FolderKind::Live | FolderKind::Future);
        if is_log && folder.topic != METADATA_LOG {
            members.push(Member {
                dir: dir.join(&entry.name),
                key: Some((folder.topic, folder.partition)),
            });
        }
    }
    Ok(members)
}

struct Run<'a> {
    group: Group<'a>,
    /// Whether the marker is on disk.
    marked: Cell<bool>,
    /// Whether a log was rebuilt, or emptied, before anything was recovered.
    has_settled: bool,
}

impl Run<'_> {
    fn directory(&self, members: &[Member], mut report: DirReport) -> Result<DirReport> {
        let options = self.group.options;
        let mut ends = self.group.checkpoints.recovery_points.clone();
        let mut touched = self.has_settled;
        let mut retired = Vec::new();
        if options.dry_run {
            for part in members.chunks(GROUP) {
                for (member, plan) in part.iter().zip(self.group.look(part)) {
                    self.tell(member, plan, &mut report);
                }
            }
            report.is_clean = report.was_clean && report.refused == 0 && report.failed == 0;
            return Ok(report);
        }
        let parts: Vec<&[Member]> = members.chunks(GROUP).collect();
        let mut ahead = None;
        for (number, part) in parts.iter().enumerate() {
            let plans = if self.marked.get() {
                // The marker stays as long as there is nothing to write.
                let plans = self.group.look(part);
                let busy = plans.iter().any(|plan| {
                    plan.as_ref().is_ok_and(|plan| plan.refusal.is_none() && !plan.is_empty())
                });
                if busy {
                    self.unmark()?;
                    self.group.recover(part)?
                } else {
                    plans
                }
            } else {
                let ready = ahead.take().unwrap_or_else(|| self.group.prepare(part));
                let next = parts.get(number.saturating_add(1));
                let (plans, prepared) = self.group.put_in_place_beside(ready, next.copied())?;
                ahead = prepared;
                plans
            };
            for (member, plan) in part.iter().zip(plans) {
                if let Ok(plan) = &plan
                    && plan.refusal.is_none()
                {
                    touched |= plan.touches_log();
                    if !plan.retire.is_empty() {
                        retired.push((member.dir.clone(), plan.retire.clone()));
                    }
                    if let Some((topic, partition)) = &member.key {
                        ends.set(topic, *partition, plan.outcome.log_end_offset);
                    }
                }
                self.tell(member, plan, &mut report);
            }
        }
        let report = self.finish(report, members, &ends, touched)?;
        if report.is_clean && !retired.is_empty() {
            for (dir, names) in &retired {
                retire(self.group.storage, dir, names)?;
            }
            self.sync(members)?;
        }
        Ok(report)
    }

    /// Writes the checkpoints and, when all is sound, the marker.
    fn finish(
        &self,
        mut report: DirReport,
        members: &[Member],
        ends: &crate::state::OffsetCheckpoint,
        touched: bool,
    ) -> Result<DirReport> {
        let Group { storage, dir, checkpoints, .. } = self.group;
        let sound = report.refused == 0 && report.failed == 0;
        let like = owner_of_dir(storage, dir)?;
        // A partition that was moved away took acknowledged records with it.
        let touched = touched || report.quarantined > 0;
        if !sound {
            // With the marker, Kafka would trust what is refused, and what could not be read.
            self.unmark()?;
        }
        if self.marked.get() {
            // It may be the marker of an earlier run that was killed before its last steps were
            // durable.
            self.sync(members)?;
            report.is_clean = true;
            return Ok(report);
        }
        // What needed no work may be what an earlier run did before it was killed, and not on the disk yet.
        self.sync(members)?;
        if ends.format() != checkpoints.recovery_points.format() {
            replace(storage, dir, RECOVERY_POINT_FILE, &ends.format(), &like)?;
        }
        if !sound {
            return Ok(report);
        }
        let marker = match &checkpoints.marker {
            Some(bytes) if !touched => bytes.clone(),
            // The controller must still take the broker for one that stopped uncleanly: it may have lost what it had acknowledged.
            _ => format_clean_shutdown(-1),
        };
        replace(storage, dir, CLEAN_SHUTDOWN_FILE, &marker, &like)?;
        report.is_clean = true;
        Ok(report)
    }

    /// Removes the marker before the first write.
    fn unmark(&self) -> Result<()> {
        if self.marked.replace(false) {
            remove_marker(self.group.storage, self.group.dir)?;
        }
        Ok(())
    }

    /// Counts what came of a partition, moves it away if it is refused, and tells.
    fn tell(&self, member: &Member, plan: Result<Plan>, report: &mut DirReport) {
        let options = self.group.options;
        let result = match plan {
            Err(error) => PartitionResult::Failed(error),
            Ok(plan) if plan.refusal.is_none() => PartitionResult::Sound(plan),
            Ok(plan) => match &options.quarantine {
                Some(quarantine) if !options.dry_run => match self.move_away(member, quarantine) {
                    Ok(target) => PartitionResult::Quarantined(plan, target),
                    Err(error) => PartitionResult::Failed(error.context("quarantine")),
                },
                _ => PartitionResult::Refused(plan),
            },
        };
        match &result {
            PartitionResult::Sound(_) => report.sound = report.sound.saturating_add(1),
            PartitionResult::Refused(_) => report.refused = report.refused.saturating_add(1),
            PartitionResult::Quarantined(..) => {
                report.quarantined = report.quarantined.saturating_add(1);
            }
            PartitionResult::Failed(_) => report.failed = report.failed.saturating_add(1),
        }
        (options.done)(PartitionDone {
            dir: &member.dir,
            topic: member.key.as_ref().map(|(topic, _)| topic.as_str()),
            partition: member.key.as_ref().map(|(_, partition)| *partition),
            result: &result,
        });
    }

    fn sync(&self, members: &[Member]) -> Result<()> {
        let dirs = members.iter().map(|member| member.dir.as_path());
        sync_all(self.group.storage, self.group.dir, dirs)
    }

    /// Moves a refused partition out of the log directory, durably.
    fn move_away(&self, member: &Member, quarantine: &Path) -> Result<PathBuf> {
        let storage = self.group.storage;
        self.unmark()?;
        match storage.create_dir(quarantine) {
            Err(error) if error.kind() != Kind::Conflict => return Err(error),
            _ => {}
        }
        // Also when it was there: an earlier run may have made it and been killed. What is moved into a directory whose own
        // name is lost is lost.
        storage.sync_dir(&home_of(quarantine))?;
        let name = member.dir.file_name().unwrap_or_default();
        let target = quarantine.join(name);
        if is_there(storage, &target)? {
            let why = "something of that name is there already";
            return Err(Error::new(Kind::Conflict, why).in_file(&target));
        }
        storage.rename(&member.dir, &target)?;
        storage.sync_dir(quarantine)?;
        storage.sync_dir(&home_of(&member.dir))?;
        Ok(target)
    }
}
