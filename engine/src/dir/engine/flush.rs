//! How do many logs become durable at once? Their files go to the disk together, then the snapshots
//! that speak of them, then the directories.

use std::sync::Arc;

use super::engine::Engine;
use crate::error::Result;
use crate::io::{File, Storage};
use crate::log::{FlushWork, Log};

/// Logs that are made durable together: so many at most.
const GROUP_MAX: usize = 256;
/// Files of a log that a flush has open: of the one segment that it mostly is about. Each further
/// one that was rolled since the last flush has as many.
const FILES_EACH: usize = 4;

impl Engine {
    /// Makes logs durable up to their ends, all together; one result each, in order.
    ///
    /// A sync that fails makes its log refuse writes; see
    /// [`Log::complete_flush`](crate::log::Log::complete_flush). The directory stays online:
    /// [`take_offline`](Self::take_offline) is the host's to call.
    pub fn flush(&self, logs: &[Arc<Log>], now_ms: i64) -> Vec<Result<()>> {
        let ends: Vec<(&Log, i64)> =
            logs.iter().map(|log| (&**log, log.log_end_offset())).collect();
        self.flush_to(&ends, now_ms)
    }

    /// Makes each log durable up to an offset, exclusive.
    pub(super) fn flush_to(&self, logs: &[(&Log, i64)], now_ms: i64) -> Vec<Result<()>> {
        let group = (self.open_files.count_max() / FILES_EACH).clamp(1, GROUP_MAX);
        let groups = logs.chunks(group);
        groups.flat_map(|group| flush_group(&*self.storage, group, now_ms)).collect()
    }
}

fn flush_group(storage: &dyn Storage, logs: &[(&Log, i64)], now_ms: i64) -> Vec<Result<()>> {
    let prepare = |(log, end): &(&Log, i64)| log.prepare_flush(*end, false);
    let works: Vec<Result<Option<FlushWork>>> = logs.iter().map(prepare).collect();
    let mut synced = sync(storage, &works);
    let mut outcomes = Vec::with_capacity(works.len());
    for ((log, _), work) in logs.iter().zip(works) {
        let outcome = synced.next().unwrap_or(Ok(()));
        outcomes.push(match work {
            Ok(Some(work)) => {
                let names = |()| if work.syncs_dir() { log.sync_folder() } else { Ok(()) };
                log.complete_flush(&work, outcome.and_then(names), now_ms)
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        });
    }
    outcomes
}

/// Syncs the files of all, then the snapshots of those whose files are durable. One result for
/// each.
fn sync(
    storage: &dyn Storage,
    works: &[Result<Option<FlushWork>>],
) -> std::vec::IntoIter<Result<()>> {
    let files = |work: &Result<Option<FlushWork>>| match work {
        Ok(Some(work)) => work.files().len(),
        _ => 0,
    };
    let all: Vec<&dyn File> = works.iter().flatten().flatten().flat_map(FlushWork::files).collect();
    let mut results = storage.sync_files(&all).into_iter();
    let mut outcomes: Vec<Result<()>> = works
        .iter()
        .map(|work| {
            let own: Vec<Result<()>> = results.by_ref().take(files(work)).collect();
            own.into_iter().collect()
        })
        .collect();
    let is_durable: Vec<bool> = outcomes.iter().map(Result::is_ok).collect();
    let ready = works.iter().zip(&is_durable).filter(|(_, is_durable)| **is_durable);
    let ready: Vec<(usize, Vec<&dyn File>)> = ready
        .enumerate()
        .map(|(at, (work, _))| (at, work.iter().flatten().flat_map(FlushWork::snapshots).collect()))
        .collect();
    let all: Vec<&dyn File> = ready.iter().flat_map(|(_, files)| files.iter().copied()).collect();
    let mut results = storage.sync_files(&all).into_iter();
    let mut own = ready.iter().map(|(_, files)| files.len());
    for (outcome, _) in outcomes.iter_mut().zip(&is_durable).filter(|(_, durable)| **durable) {
        let own: Vec<Result<()>> = results.by_ref().take(own.next().unwrap_or(0)).collect();
        *outcome = own.into_iter().collect();
    }
    outcomes.into_iter()
}
