//! Which rebuilds from remote storage were interrupted, and what do the checkpoints have to say
//! once they are settled?
//!
//! The lines of a rebuilt log are written before its mark goes: the lines of the log that was there
//! before may lie behind the end of the new one, and would have it emptied.

use std::path::Path;

use crate::dir::files::{LOG_START_FILE, RECOVERY_POINT_FILE};
use crate::dir::recover::checkpoints::{Checkpoints, owner_of_dir, remove_marker, replace};
use crate::dir::recover::group::{Member, sync_all};
use crate::error::Result;
use crate::io::Storage;
use crate::log::bootstrap::{Interrupted, Settled, clear};

/// Settles what was interrupted in a directory, durably, and brings the checkpoints up to date, in
/// memory and on the disk; the marker of a clean stop goes. `false` when there was nothing.
///
/// A partition that cannot be settled is left for whoever opens it next, and fails again.
///
/// # Errors
/// What the disk says of the directory as a whole.
pub fn settle_rebuilds(
    storage: &dyn Storage,
    dir: &Path,
    members: &[Member],
    checkpoints: &mut Checkpoints,
) -> Result<bool> {
    let find = |member: &Member| Interrupted::find(storage, &member.dir).ok().flatten();
    let mut waiting: Vec<(&Member, Interrupted)> =
        members.iter().filter_map(|member| Some((member, find(member)?))).collect();
    if waiting.is_empty() {
        return Ok(false);
    }
    let sync = |waiting: &[(&Member, Interrupted)]| {
        sync_all(storage, dir, waiting.iter().map(|(member, _)| member.dir.as_path()))
    };
    remove_marker(storage, dir)?;
    checkpoints.marker = None;
    waiting.retain(|(member, found)| found.prepare(storage, &member.dir).is_ok());
    sync(&waiting)?;
    waiting.retain(|(member, found)| found.carry_out(storage, &member.dir).is_ok());
    sync(&waiting)?;
    for (member, found) in &waiting {
        let Some((topic, partition)) = &member.key else { continue };
        let (start, end) = match found.outcome() {
            Settled::Finished { log_start_offset, next_offset } => (log_start_offset, next_offset),
            Settled::Emptied => (0, 0),
            Settled::Undone | Settled::Overtaken => continue,
        };
        checkpoints.log_starts.set(topic, *partition, start);
        checkpoints.recovery_points.set(topic, *partition, end);
    }
    let like = owner_of_dir(storage, dir)?;
    let lines = [
        (LOG_START_FILE, &checkpoints.log_starts),
        (RECOVERY_POINT_FILE, &checkpoints.recovery_points),
    ];
    for (name, lines) in lines {
        replace(storage, dir, name, &lines.format(), &like)?;
    }
    for (member, _) in &waiting {
        // One that stays is settled again, to the same end.
        let _ = clear(storage, &member.dir);
    }
    sync(&waiting)?;
    Ok(true)
}
