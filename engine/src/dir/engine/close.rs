//! How does an engine end, so that the next one need not recover anything?

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rayon::prelude::*;

use super::checkpoints::CheckpointFile;
use super::engine::Engine;
use super::partitions::Entry;
use super::report::{CloseReport, DirClosed};
use crate::dir::files::CLEAN_SHUTDOWN_FILE;
use crate::dir::pool::in_pool;
use crate::error::{Error, Kind, Result};
use crate::log::replace::replace;
use crate::log::{FlushWork, Log};
use crate::state::meta::format_clean_shutdown;

/// From so many logs on one sync of the file system is cheaper than those of their files.
const FEW_LOGS: usize = 8;

/// A log that is closed, but perhaps not durable yet.
struct Closing {
    log: Arc<Log>,
    work: Option<(FlushWork, i64)>,
}

impl Engine {
    /// Closes all logs on so many threads, writes the checkpoints and marks the directories as
    /// stopped cleanly, with the broker epoch given, -1 for none. A directory is marked when all
    /// its logs were opened and closed without an error. Locks are let go of.
    ///
    /// Afterwards the engine is of no use; logs answer with `Closed`.
    pub fn close(&self, broker_epoch: i64, threads: usize) -> CloseReport {
        let _changing = self.change();
        let close = || {
            let numbers = 0..self.dirs.len();
            let dirs = if threads > 1 {
                numbers.into_par_iter().map(|dir| self.close_dir(dir, broker_epoch, true)).collect()
            } else {
                numbers.map(|dir| self.close_dir(dir, broker_epoch, false)).collect()
            };
            Ok(CloseReport { dirs })
        };
        let report = in_pool(threads, close);
        // Threads that cannot be had are none that are needed.
        report.unwrap_or_else(|_| CloseReport {
            dirs: (0..self.dirs.len())
                .map(|dir| self.close_dir(dir, broker_epoch, false))
                .collect(),
        })
    }

    fn close_dir(&self, number: usize, broker_epoch: i64, side_by_side: bool) -> DirClosed {
        let Some(dir) = self.dirs.get(number) else {
            return DirClosed { path: Default::default(), is_clean: false, errors: Vec::new() };
        };
        let mut closed = DirClosed { path: dir.path.clone(), is_clean: false, errors: Vec::new() };
        if let Some(error) = dir.failure() {
            closed.errors.push(error);
            return closed;
        }
        let entries: Vec<Arc<Entry>> =
            self.read().entries().filter(|entry| entry.dir == number).cloned().collect();
        // All of them before one is waited for: rounds end side by side.
        entries.iter().for_each(|entry| entry.log.pause_compaction());
        entries.iter().for_each(|entry| entry.pause_compaction());
        closed.errors = self.close_logs(number, &entries, side_by_side);
        for file in CheckpointFile::ALL {
            closed.errors.extend(self.checkpoint_dir(number, file).err());
        }
        if closed.errors.is_empty() && dir.is_complete.load(Ordering::Relaxed) {
            let bytes = format_clean_shutdown(broker_epoch);
            match replace(&*self.storage, &dir.path, CLEAN_SHUTDOWN_FILE, &bytes) {
                Ok(()) => closed.is_clean = true,
                Err(error) => closed.errors.push(error),
            }
        }
        dir.let_go();
        closed
    }

    /// Closes the logs of a directory and makes them durable; gives what went wrong.
    fn close_logs(&self, number: usize, entries: &[Arc<Entry>], side_by_side: bool) -> Vec<Error> {
        let syncs_all = entries.len() > FEW_LOGS;
        let one = |entry: &Arc<Entry>| self.close_log(entry, syncs_all);
        let closing: Vec<Result<Closing>> = if side_by_side {
            entries.par_iter().map(one).collect()
        } else {
            entries.iter().map(one).collect()
        };
        let mut errors = Vec::new();
        let synced = match self.dirs.get(number) {
            Some(dir) if syncs_all => self.storage.sync_filesystem(&dir.path).err(),
            _ => None,
        };
        for closing in closing {
            let outcome = closing.and_then(|closing| settle(&closing, synced.as_ref()));
            errors.extend(outcome.err());
        }
        errors
    }

    fn close_log(&self, entry: &Entry, syncs_all: bool) -> Result<Closing> {
        let log = &entry.log;
        let context = |error: Error| error.context(format!("close {}", log.dir().display()));
        if log.is_failed() {
            log.abandon();
            let message = "a sync of this log failed before: what is on the disk is not known";
            return Err(Error::new(Kind::Io, message).in_file(&log.dir()));
        }
        let mut work = log.begin_close().map_err(context)?;
        if let Some((work, now_ms)) = &mut work {
            if syncs_all {
                work.let_go();
            } else {
                let outcome = log.sync(work);
                log.complete_flush(work, outcome, *now_ms).map_err(context)?;
            }
        }
        // A folder that somebody took away is not there to be trusted.
        self.storage.metadata(&log.dir()).map_err(context)?;
        let work = work.filter(|_| syncs_all);
        Ok(Closing { log: Arc::clone(log), work })
    }
}

/// Takes note of the sync of the file system.
fn settle(closing: &Closing, failure: Option<&Error>) -> Result<()> {
    let Some((work, now_ms)) = &closing.work else { return Ok(()) };
    let outcome = match failure {
        None => Ok(()),
        Some(error) => Err(error.copy()),
    };
    closing.log.complete_flush(work, outcome, *now_ms)
}
