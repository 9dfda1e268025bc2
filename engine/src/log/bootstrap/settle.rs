//! What becomes of an install that was interrupted?
//!
//! | the new files | the old segments | then |
//! |---|---|---|
//! | whole, beside or in place | those that the mark names, or some of them | it is carried out |
//! | not whole | all that the mark names | the log is what it was |
//! | not whole | not all | the log is empty |
//! | - | others, or of another size | somebody else went on with the log: it stays as it is |
//!
//! A mark that is not whole never became durable, so nothing was touched yet.
// spec: tiered-faults T4

use std::path::Path;

use super::mark::{MARK_BYTES_MAX, MARK_FILE, Mark, STAGED_EPOCHS, STAGED_SNAPSHOT, Sum};
use super::stage::{Names, clear, empty, put_at, stage_topic_id};
use crate::error::{Kind, Result};
use crate::io::Storage;
use crate::log::inventory::EPOCH_FILE;
use crate::segment::{FileName, FileRole};

/// What an interrupted install came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It was carried out.
    Finished {
        /// Where the log starts.
        log_start_offset: i64,
        /// Where it goes on: its first local offset, and its end.
        next_offset: i64,
    },
    /// The log is what it was before.
    Undone,
    /// Neither could be had: the log has nothing, and starts at 0.
    Emptied,
    /// The log was written to since by somebody who does not know the mark, and is left alone.
    Overtaken,
}

/// An install that was interrupted, and what it will come to.
#[derive(Debug)]
pub struct Interrupted {
    mark: Option<Mark>,
    outcome: Settled,
}

impl Interrupted {
    /// Looks for the mark of an interrupted install, and reads only.
    ///
    /// # Errors
    /// What the disk says.
    pub fn find(storage: &dyn Storage, dir: &Path) -> Result<Option<Self>> {
        let bytes = match storage.read(&dir.join(MARK_FILE), MARK_BYTES_MAX) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            Err(error) if error.kind() == Kind::Limit => Vec::new(),
            other => other?,
        };
        let mark = Mark::parse(&bytes);
        let outcome = match &mark {
            Some(mark) => judge(storage, dir, mark)?,
            None => Settled::Undone,
        };
        Ok(Some(Interrupted { mark, outcome }))
    }

    /// What it will come to.
    #[must_use]
    pub fn outcome(&self) -> Settled {
        self.outcome
    }

    /// The first step: writes the topic id beside, which the mark knows too. To be made durable,
    /// with everything that an earlier run wrote.
    ///
    /// # Errors
    /// What the disk says.
    pub fn prepare(&self, storage: &dyn Storage, dir: &Path) -> Result<()> {
        match (&self.mark, self.outcome) {
            (Some(mark), Settled::Finished { .. }) => {
                let like = Names::list(storage, dir)?.owner(storage, dir)?;
                stage_topic_id(storage, dir, mark, &like)
            }
            _ => Ok(()),
        }
    }

    /// The second step: the log becomes what it is to be. To be made durable.
    ///
    /// # Errors
    /// What the disk says.
    pub fn carry_out(&self, storage: &dyn Storage, dir: &Path) -> Result<()> {
        match self.outcome {
            Settled::Finished { next_offset, .. } => put_at(storage, dir, next_offset),
            Settled::Emptied => empty(storage, dir),
            Settled::Undone | Settled::Overtaken => Ok(()),
        }
    }
}

/// Settles an interrupted install of one partition, durably; `None` when there is none.
///
/// # Errors
/// What the disk says; the partition can be settled again.
pub fn settle(storage: &dyn Storage, dir: &Path) -> Result<Option<Settled>> {
    let Some(found) = Interrupted::find(storage, dir)? else { return Ok(None) };
    found.prepare(storage, dir)?;
    storage.sync_filesystem(dir)?;
    found.carry_out(storage, dir)?;
    storage.sync_filesystem(dir)?;
    clear(storage, dir)?;
    storage.sync_dir(dir)?;
    Ok(Some(found.outcome))
}

fn judge(storage: &dyn Storage, dir: &Path, mark: &Mark) -> Result<Settled> {
    let Mark { log_start_offset, next_offset, .. } = *mark;
    let names = Names::list(storage, dir)?;
    let found = names.segment_sizes(storage, dir)?;
    let is_ours = |(base, size): (&i64, &u64)| {
        mark.segments.get(base) == Some(size) || (*base == next_offset && *size == 0)
    };
    if !found.iter().all(is_ours) {
        return Ok(Settled::Overtaken);
    }
    let snapshot = FileName::live(next_offset, FileRole::Snapshot).format();
    if is_there(storage, dir, [STAGED_EPOCHS, EPOCH_FILE], mark.epochs)?
        && is_there(storage, dir, [STAGED_SNAPSHOT, &snapshot], mark.snapshot)?
    {
        return Ok(Settled::Finished { log_start_offset, next_offset });
    }
    Ok(if found == mark.segments { Settled::Undone } else { Settled::Emptied })
}

/// Whether a file is there under its staged name, or else under its own.
fn is_there(
    storage: &dyn Storage,
    dir: &Path,
    [staged, name]: [&str; 2],
    sum: Sum,
) -> Result<bool> {
    for name in [staged, name] {
        match storage.read(&dir.join(name), sum.size_bytes()) {
            Err(error) if error.kind() == Kind::NotFound => {}
            Err(error) if error.kind() == Kind::Limit => return Ok(false),
            other => return Ok(Sum::of(&other?) == sum),
        }
    }
    Ok(false)
}
