//! A group of partitions of one directory, recovered side by side and made durable together.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::dir::recover::checkpoints::Checkpoints;
use crate::dir::recover::options::DirRecoverOptions;
use crate::error::{Error, Kind, Result};
use crate::io::Storage;
use crate::log::bootstrap::{Settled, settle};
use crate::log::progress::Progress;
use crate::log::recover::{Plan, RecoverOptions, analyse, commit, discard, prepare};

/// A segment is split into parts that need no split; more rounds than segments there are not.
const SPLITS_MAX: usize = 1000;
/// Bytes of small files that one partition holds in memory.
const STAGE_BYTES: usize = 64 << 10;

/// What came of the analysis of each member of a group, in order.
pub type Plans = Vec<Result<Plan>>;

/// One partition of a directory.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its folder.
    pub dir: PathBuf,
    /// Topic and partition in the folder's name; `None` for a partition alone whose folder has another name.
    pub key: Option<(String, i32)>,
}

/// Recovers partitions whose files are in one file system.
pub struct Group<'a> {
    pub storage: &'a dyn Storage,
    /// The directory they are in.
    pub dir: &'a Path,
    pub checkpoints: &'a Checkpoints,
    pub options: &'a DirRecoverOptions<'a>,
    pub progress: &'a dyn Progress,
    /// Whether the directory was stopped cleanly.
    pub clean: bool,
}

/// Makes a directory and what is in it durable, folders among them that are links to another file
/// system.
pub(super) fn sync_all<'a>(
    storage: &dyn Storage,
    dir: &Path,
    folders: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    storage.sync_filesystem(dir)?;
    let mut links = folders.into_iter().filter(|it| !matches!(storage.link_target(it), Ok(None)));
    links.try_for_each(|folder| storage.sync_filesystem(folder))
}

impl Group<'_> {
    /// What is to be done to each; changes nothing and writes nothing.
    pub fn look(&self, members: &[Member]) -> Plans {
        self.each(members, |member| {
            let options = RecoverOptions { stage_bytes: None, ..self.options_of(member) };
            analyse(self.storage, &member.dir, &options, self.progress)
                .map_err(|error| error.context(format!("recover {}", member.dir.display())))
        })
    }

    /// Recovers each. Durable when this returns.
    pub fn recover(&self, members: &[Member]) -> Result<Plans> {
        let plans = self.prepare(members);
        if !self.clean && !is_busy(&plans) {
            // What a process that was killed has left sound may not be on the disk yet.
            let dirs = members.iter().map(|member| member.dir.as_path());
            sync_all(self.storage, self.dir, dirs)?;
        }
        self.put_in_place(plans)
    }

    /// Analyses each and writes its new files beside the old.
    pub fn prepare(&self, members: &[Member]) -> Plans {
        self.each(members, |member| {
            self.prepared(member)
                .map_err(|error| error.context(format!("recover {}", member.dir.display())))
        })
    }

    /// Carries out what is prepared. Durable when this returns, unless nothing is to be done.
    pub fn put_in_place(&self, mut plans: Plans) -> Result<Plans> {
        if !is_busy(&plans) {
            return Ok(plans);
        }
        let dirs: Vec<PathBuf> = plans.iter().flatten().map(|plan| plan.dir.clone()).collect();
        let sync = || sync_all(self.storage, self.dir, dirs.iter().map(PathBuf::as_path));
        sync()?;
        self.each_mut(&mut plans, |plan| {
            let Ok(ready) = plan else { return };
            if let Err(error) = commit(self.storage, ready) {
                let context = format!("recover {}", ready.dir.display());
                *plan = Err(error.context(context));
            }
        });
        sync()?;
        Ok(plans)
    }

    /// Carries out what is prepared and, where there are threads for it, prepares the next members
    /// meanwhile: otherwise all of them would wait while the disk makes files durable.
    pub fn put_in_place_beside(
        &self,
        plans: Plans,
        next: Option<&[Member]>,
    ) -> Result<(Plans, Option<Plans>)> {
        match next {
            Some(next) if self.options.threads > 1 => {
                let (done, prepared) =
                    rayon::join(|| self.put_in_place(plans), || self.prepare(next));
                Ok((done?, Some(prepared)))
            }
            _ => Ok((self.put_in_place(plans)?, None)),
        }
    }

    /// Analyses a partition and writes its new files beside the old; splits come first.
    fn prepared(&self, member: &Member) -> Result<Plan> {
        let mut options = self.options_of(member);
        match settle(self.storage, &member.dir)? {
            Some(Settled::Finished { log_start_offset, .. }) => {
                options.log_start_offset = log_start_offset;
            }
            Some(Settled::Emptied) => options.log_start_offset = 0,
            Some(Settled::Undone | Settled::Overtaken) | None => {}
        }
        for _ in 0..SPLITS_MAX {
            let mut plan = analyse(self.storage, &member.dir, &options, self.progress)?;
            if let Err(error) = prepare(self.storage, &mut plan) {
                // What was written beside is of no use; that it cannot be removed adds nothing to the error.
                let _ = discard(self.storage, &plan);
                return Err(error);
            }
            if plan.split.is_none() {
                return Ok(plan);
            }
        }
        Err(Error::new(Kind::Limit, "a segment is still too long after many splits"))
    }

    fn options_of(&self, member: &Member) -> RecoverOptions {
        let topic = member.key.as_ref().map_or("", |(topic, _)| topic);
        let settings = (self.options.settings)(topic);
        let checkpoint = |checkpoint: &crate::state::OffsetCheckpoint| {
            member.key.as_ref().and_then(|(topic, partition)| checkpoint.get(topic, *partition))
        };
        let options = self.options;
        RecoverOptions {
            clean_shutdown: self.clean,
            recovery_point: options
                .recovery_point
                .or_else(|| checkpoint(&self.checkpoints.recovery_points))
                .unwrap_or(0),
            recovery_point_is_known: options.recovery_point.is_none(),
            log_start_offset: options
                .log_start_offset
                .or_else(|| checkpoint(&self.checkpoints.log_starts))
                .unwrap_or(0),
            all: options.all,
            allow_loss: options.allow_loss,
            discard_lost: options.discard_lost,
            truncate_to: options.truncate_to,
            topic_id: options.topic_id,
            remote_storage: settings.remote_storage,
            index: settings.index,
            now_ms: options.now_ms,
            producer_expiration_ms: options.producer_expiration_ms,
            stage_bytes: Some(STAGE_BYTES),
            parallel: if options.threads > 1 { options.threads.saturating_mul(2) } else { 1 },
            map_mode: options.map_mode,
            ..RecoverOptions::default()
        }
    }

    fn each<T: Send>(
        &self,
        members: &[Member],
        work: impl Fn(&Member) -> T + Send + Sync,
    ) -> Vec<T> {
        if self.options.threads > 1 {
            members.par_iter().map(work).collect()
        } else {
            members.iter().map(work).collect()
        }
    }

    fn each_mut<T: Send>(&self, items: &mut [T], work: impl Fn(&mut T) + Send + Sync) {
        if self.options.threads > 1 {
            items.par_iter_mut().for_each(work);
        } else {
            items.iter_mut().for_each(work);
        }
    }
}

/// Whether there is anything to be done.
fn is_busy(plans: &Plans) -> bool {
    plans.iter().any(|plan| plan.as_ref().is_ok_and(|plan| !plan.is_empty()))
}
