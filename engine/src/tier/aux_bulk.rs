//! How are thousands of replicas rebuilt from remote storage in one call?
//!
//! In waves, as many partitions as the caller allows, or as the objects of open logs fit into the
//! memory that it allows; those of a directory are held until they are written:
//!
//! ```text
//! read both objects of every job, those that jobs share once        \
//! check everything                                                   | many threads
//! write the new files and the mark beside the old                   /
//! sync each disk                                                       once
//! put the new files in place                                           many threads
//! sync each disk; write the lines of the checkpoints                   once
//! remove the marks
//! sync each disk                                                       once
//! ```
//!
//! A job that fails is told and leaves its partition as it is; the others go on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::aux_build::{
    AuxError, AuxErrorKind, AuxInstalled, AuxJob, AuxObjects, AuxPlace, AuxRemote, AuxResult,
};
use super::aux_homes::{Homes, Line};
use super::read_many::side_by_side;
use super::remote_segment::RemoteSegmentId;
use crate::dir::pool::in_pool;
use crate::error::{Error, Kind, Result};
use crate::io::Storage;
use crate::log::bootstrap::{self, AuxStaged, AuxState};

/// What a bulk rebuild may use.
#[derive(Clone, Copy, Debug)]
pub struct AuxLimits {
    /// Threads to work with; 1 is the caller's own.
    pub threads: usize,
    /// So many objects are read at once, but no fewer than there are threads: those of a store that
    /// is far away are waited for most of the time. More of them than threads are threads as well,
    /// for as long as something is read.
    pub readers: usize,
    /// Bytes of objects that are held at once for open logs; each reader may go beyond it by one
    /// object.
    pub held_bytes_max: u64,
    /// Partitions that are made durable together.
    pub partitions_max: usize,
    /// The largest object that is read.
    pub object_bytes_max: u64,
    /// The clock, in milliseconds since 1970.
    pub now_ms: i64,
}

impl AuxLimits {
    /// On the caller's thread, with up to 256 MiB of objects of up to 64 MiB each, and 4,096
    /// partitions at once.
    #[must_use]
    pub fn new(now_ms: i64) -> Self {
        AuxLimits {
            threads: 1,
            readers: 1,
            held_bytes_max: 256 << 20,
            partitions_max: 4096,
            object_bytes_max: 64 << 20,
            now_ms,
        }
    }
}

/// Rebuilds many logs, each behind its remote segment, and says what came of each, in the order of
/// the jobs. Durable when this returns.
///
/// `storage` is the disk that all of the logs lie on. A log that is named twice is rebuilt by the
/// first job alone.
#[must_use]
pub fn build_aux_bulk(
    storage: &dyn Storage,
    jobs: &[AuxJob<'_>],
    remote: AuxRemote<'_>,
    limits: &AuxLimits,
) -> Vec<AuxResult<AuxInstalled>> {
    let mut bulk = Bulk { storage, jobs, remote, limits, results: Vec::new() };
    bulk.results.resize_with(jobs.len(), || None);
    let outcome = in_pool(limits.threads, || {
        bulk.run();
        Ok(())
    });
    let told = bulk.results.into_iter().map(|result| {
        result.unwrap_or_else(|| {
            let message = match &outcome {
                Err(error) => error.to_string(),
                Ok(()) => "it was not come to".to_owned(),
            };
            Err(AuxError::local(Error::new(Kind::Limit, message)))
        })
    });
    told.collect()
}

struct Bulk<'a> {
    storage: &'a dyn Storage,
    jobs: &'a [AuxJob<'a>],
    remote: AuxRemote<'a>,
    limits: &'a AuxLimits,
    results: Vec<Option<AuxResult<AuxInstalled>>>,
}

/// The jobs of one remote segment, by their numbers.
type Unit = Vec<usize>;

/// A job whose objects are checked.
struct Ready<'a> {
    number: usize,
    job: &'a AuxJob<'a>,
    /// The log directory around the partition.
    home: PathBuf,
    state: AuxState,
    bytes_read: u64,
    /// What an open log was when its new files were written.
    staged: Option<AuxStaged>,
    failure: Option<AuxError>,
}

impl<'a> Bulk<'a> {
    fn run(&mut self) {
        let mut waiting = self.units();
        let mut homes = Homes::new(self.storage);
        self.settle(&mut waiting, &mut homes);
        while !waiting.is_empty() {
            let (mut wave, later) = self.read(waiting);
            self.install(&mut wave, &mut homes);
            for ready in wave {
                let Ready { number, state, bytes_read, failure, .. } = ready;
                let result = failure.map_or_else(|| Ok(AuxInstalled::of(&state, bytes_read)), Err);
                self.tell(number, result);
            }
            waiting = later;
        }
        homes.close();
    }

    fn tell(&mut self, number: usize, result: AuxResult<AuxInstalled>) {
        if let Some(slot) = self.results.get_mut(number) {
            *slot = Some(result);
        }
    }

    /// The jobs that can be done, by their segments; the others are told.
    fn units(&mut self) -> Vec<Unit> {
        let mut units: Vec<Unit> = Vec::new();
        let mut of_segment: HashMap<&RemoteSegmentId, usize> = HashMap::new();
        let mut places = BTreeSet::new();
        for (number, job) in self.jobs.iter().enumerate() {
            let possible = job.target().and_then(|_| check_place(&job.place));
            if let Err(error) = possible {
                self.tell(number, Err(error));
                continue;
            }
            if !places.insert(dir_of(&job.place)) {
                let error = Error::new(Kind::Conflict, "the log is named twice");
                let error = error.in_file(&dir_of(&job.place));
                self.tell(number, Err(AuxError::local(error)));
                continue;
            }
            let slot = *of_segment.entry(&job.segment.id).or_insert(units.len());
            match units.get_mut(slot) {
                Some(unit) => unit.push(number),
                None => units.push(vec![number]),
            }
        }
        units
    }

    /// Settles what an earlier call has left half done, directory by directory. The jobs of one
    /// where that fails are told, and go.
    fn settle(&mut self, waiting: &mut Vec<Unit>, homes: &mut Homes<'_>) {
        let mut of_home: BTreeMap<PathBuf, (Vec<&Path>, Vec<usize>)> = BTreeMap::new();
        for number in waiting.iter().flatten() {
            if let Some(AuxPlace::Dir(dir)) = self.jobs.get(*number).map(|job| job.place) {
                let (dirs, numbers) = of_home.entry(home_of(&AuxPlace::Dir(dir))).or_default();
                dirs.push(dir);
                numbers.push(*number);
            }
        }
        for (home, (dirs, numbers)) in of_home {
            let Err(error) = homes.settle(&home, &dirs) else { continue };
            homes.has_failed(&home);
            for number in numbers {
                self.tell(number, Err(AuxError::local(error.copy())));
            }
        }
        for unit in &mut *waiting {
            unit.retain(|number| self.results.get(*number).is_some_and(Option::is_none));
        }
        waiting.retain(|unit| !unit.is_empty());
    }

    /// Reads and checks what the memory allows, and writes it beside; gives the rest back.
    fn read(&mut self, mut waiting: Vec<Unit>) -> (Vec<Ready<'a>>, Vec<Unit>) {
        let mut count = 0_usize;
        let fits = |unit: &&Unit| {
            count = count.saturating_add(unit.len());
            count <= self.limits.partitions_max
        };
        // One unit always goes, however many jobs it has.
        let together = waiting.iter().take_while(fits).count().max(1).min(waiting.len());
        let mut later = waiting.split_off(together);
        let held = AtomicU64::new(0);
        let outcomes = self.each_read(waiting, |unit: Unit| {
            if held.load(Ordering::Relaxed) > self.limits.held_bytes_max {
                return Err(unit);
            }
            let read = self.read_unit(&unit);
            let is_open = |number: &usize| {
                self.jobs.get(*number).is_some_and(|job| matches!(job.place, AuxPlace::Log(_)))
            };
            if let (Ok(objects), true) = (&read, unit.iter().any(is_open)) {
                held.fetch_add(objects.bytes(), Ordering::Relaxed);
            }
            Ok(self.stage_unit(&unit, read))
        });
        let mut wave = Vec::new();
        let mut full = Vec::new();
        for outcome in outcomes {
            match outcome {
                Err(unit) => full.push(unit),
                Ok(done) => {
                    for (number, result) in done {
                        match result {
                            Ok(ready) => wave.push(ready),
                            Err(error) => self.tell(number, Err(error)),
                        }
                    }
                }
            }
        }
        full.append(&mut later);
        (wave, full)
    }

    fn read_unit(&self, unit: &[usize]) -> AuxResult<AuxObjects> {
        let first = unit.first().and_then(|number| self.jobs.get(*number));
        let Some(job) = first else {
            return Err(AuxError::local(Error::new(Kind::InvalidArgument, "a unit without jobs")));
        };
        AuxObjects::read(&self.remote, job.segment, self.limits.object_bytes_max)
    }

    fn stage_unit(
        &self,
        unit: &[usize],
        read: AuxResult<AuxObjects>,
    ) -> Vec<(usize, AuxResult<Ready<'a>>)> {
        let ready = |number: usize| {
            let job = self.jobs.get(number).ok_or_else(|| {
                AuxError::local(Error::new(Kind::InvalidArgument, "a job that is not there"))
            })?;
            // Told to each job that needed the object.
            let told = |error: &AuxError| AuxError::new(error.kind(), error.error().copy());
            let objects = read.as_ref().map_err(told)?;
            let state = job.check(objects)?;
            let staged = self.stage(job, &state)?;
            let state = match job.place {
                AuxPlace::Log(_) => state,
                AuxPlace::Dir(_) => state.without_snapshot(),
            };
            let home = home_of(&job.place);
            let bytes_read = objects.bytes();
            Ok(Ready { number, job, home, state, bytes_read, staged, failure: None })
        };
        unit.iter().map(|number| (*number, ready(*number))).collect()
    }

    /// Writes the new files of one partition beside the old.
    fn stage(&self, job: &AuxJob<'_>, state: &AuxState) -> AuxResult<Option<AuxStaged>> {
        let outcome = match job.place {
            AuxPlace::Log(log) => log.stage_aux(state).map(Some),
            AuxPlace::Dir(dir) => self.stage_dir(dir, state).map(|()| None),
        };
        outcome.map_err(AuxError::local)
    }

    fn stage_dir(&self, dir: &Path, state: &AuxState) -> Result<()> {
        match self.storage.create_dir(dir) {
            Ok(()) => {
                if let Some(home) = dir.parent() {
                    self.storage.set_owner(dir, &self.storage.metadata(home)?)?;
                }
            }
            Err(error) if error.kind() == Kind::Conflict => {}
            Err(error) => return Err(error),
        }
        bootstrap::stage(self.storage, dir, state)
    }

    fn install(&self, wave: &mut [Ready<'a>], homes: &mut Homes<'_>) {
        self.sync(wave, Ready::discard);
        let dirs: BTreeSet<PathBuf> = wave
            .iter()
            .filter(|ready| ready.failure.is_none() && matches!(ready.job.place, AuxPlace::Dir(_)))
            .map(|ready| ready.home.clone())
            .collect();
        for home in dirs {
            if let Err(error) = homes.open(&home) {
                fail_all(wave, &home, &error, |ready| ready.discard(self.storage));
            }
        }
        self.each_mut(wave, |ready| ready.put_in_place(self.storage, self.limits.now_ms));
        self.sync(wave, |ready, _| ready.failed_sync());
        let mut lines: BTreeMap<(PathBuf, bool), Vec<Line>> = BTreeMap::new();
        for ready in wave.iter().filter(|ready| ready.failure.is_none()) {
            let is_open = matches!(ready.job.place, AuxPlace::Log(_));
            let (dir, target) = (dir_of(&ready.job.place), ready.state.target());
            let line = (dir, target.log_start_offset, target.next_offset);
            lines.entry((ready.home.clone(), is_open)).or_default().push(line);
        }
        for ((home, is_open), lines) in lines {
            if let Err(error) = homes.write_lines(&home, &lines, is_open) {
                // The mark has an open log settled when it is opened again.
                fail_all(wave, &home, &error, Ready::failed_sync);
            }
        }
        self.each_mut(wave, |ready| ready.clear(self.storage));
        self.sync(wave, |ready, _| ready.failed_sync());
        for ready in wave.iter().filter(|ready| ready.failure.is_some()) {
            homes.has_failed(&ready.home);
        }
    }

    /// Syncs each disk that a wave is on; where that fails, its jobs fail.
    fn sync(&self, wave: &mut [Ready<'a>], after: impl Fn(&mut Ready<'a>, &dyn Storage)) {
        let homes: BTreeSet<PathBuf> = wave
            .iter()
            .filter(|ready| ready.failure.is_none())
            .map(|ready| ready.home.clone())
            .collect();
        for home in homes {
            if let Err(error) = self.storage.sync_filesystem(&home) {
                fail_all(wave, &home, &error, |ready| after(ready, self.storage));
            }
        }
    }

    /// What `read` makes of each unit, as many at a time as there are readers.
    fn each_read<U: Send>(
        &self,
        units: Vec<Unit>,
        read: impl Fn(Unit) -> U + Send + Sync,
    ) -> Vec<U> {
        let readers = self.limits.readers.min(units.len());
        if readers > self.limits.threads {
            let slots: Vec<_> = units.into_iter().map(|unit| Mutex::new(Some(unit))).collect();
            return side_by_side(readers, &slots, |slot| {
                let unit = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                read(unit.unwrap_or_default())
            });
        }
        if self.limits.threads > 1 {
            units.into_par_iter().map(read).collect()
        } else {
            units.into_iter().map(read).collect()
        }
    }

    fn each_mut<T: Send>(&self, items: &mut [T], work: impl Fn(&mut T) + Send + Sync) {
        if self.limits.threads > 1 {
            items.par_iter_mut().for_each(work);
        } else {
            items.iter_mut().for_each(work);
        }
    }
}

impl Ready<'_> {
    fn fail(&mut self, error: Error) {
        let place = dir_of(&self.job.place);
        self.failure = Some(AuxError::local(error.context(format!("rebuild {}", place.display()))));
    }

    /// Takes back what was written beside. If that fails, the mark is settled at the next opening.
    fn discard(&mut self, storage: &dyn Storage) {
        let outcome = match self.job.place {
            AuxPlace::Log(log) => self.staged.take().map_or(Ok(()), |it| log.discard_aux(it)),
            AuxPlace::Dir(dir) => {
                bootstrap::clear(storage, dir).and_then(|()| storage.sync_dir(dir))
            }
        };
        if let (Err(error), None) = (outcome, &self.failure) {
            self.fail(error);
        }
    }

    fn put_in_place(&mut self, storage: &dyn Storage, now_ms: i64) {
        if self.failure.is_some() {
            return;
        }
        let outcome = match (self.job.place, self.staged.take()) {
            (AuxPlace::Log(log), Some(staged)) => log.put_aux_in_place(&self.state, staged, now_ms),
            (AuxPlace::Log(_), None) => Ok(()),
            (AuxPlace::Dir(dir), _) => bootstrap::put_in_place(storage, dir, &self.state),
        };
        if let Err(error) = outcome {
            self.fail(error);
        }
    }

    /// What a sync was to make durable is not known to be: an open log takes no more writes.
    fn failed_sync(&mut self) {
        if let AuxPlace::Log(log) = self.job.place {
            // Its own error is told already.
            let _ = log.aux_synced(Err(Error::new(Kind::Io, "a sync failed")));
        }
    }

    fn clear(&mut self, storage: &dyn Storage) {
        if self.failure.is_some() {
            return;
        }
        let outcome = match self.job.place {
            AuxPlace::Log(log) => log.aux_synced(Ok(())).and_then(|()| log.clear_aux()),
            AuxPlace::Dir(dir) => bootstrap::clear(storage, dir),
        };
        if let Err(error) = outcome {
            self.fail(error);
        }
    }
}

/// Fails all jobs of a log directory that have not failed yet.
fn fail_all<'a>(
    wave: &mut [Ready<'a>],
    home: &Path,
    error: &Error,
    after: impl Fn(&mut Ready<'a>),
) {
    for ready in wave.iter_mut().filter(|ready| ready.failure.is_none() && ready.home == home) {
        ready.fail(error.copy());
        after(ready);
    }
}

fn check_place(place: &AuxPlace<'_>) -> AuxResult<()> {
    match place {
        // spec: follower-fetch 5.3, K0
        AuxPlace::Log(log) if !log.config().remote_storage => {
            let error = Error::new(Kind::InvalidArgument, "the log has no remote storage");
            Err(AuxError::new(AuxErrorKind::NotReady, error.in_file(&log.dir())))
        }
        _ => Ok(()),
    }
}

fn dir_of(place: &AuxPlace<'_>) -> PathBuf {
    match place {
        AuxPlace::Log(log) => log.dir().to_path_buf(),
        AuxPlace::Dir(dir) => dir.to_path_buf(),
    }
}

fn home_of(place: &AuxPlace<'_>) -> PathBuf {
    let dir = dir_of(place);
    match dir.parent() {
        Some(home) if !home.as_os_str().is_empty() => home.to_path_buf(),
        _ => PathBuf::from("."),
    }
}
