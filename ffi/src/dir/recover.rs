//! Make it fit to start: what is to be done is found first, and done only when that is asked for.

use std::collections::HashMap;
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use engine::dir::recover::{
    DirRecoverOptions, PartitionDone, PartitionResult, PartitionSettings, bytes_to_read,
    recover_log_dir,
};
use engine::log::progress::Progress;
use engine::log::recover::{Action, Plan};

use super::object::{DirObject, Found, problem_of, text_of};
use super::progress::{ProgressFn, with_progress};
use super::scan::NO_PARTITION;
use super::types::{PlanStep, RecoverOptions, Recovery, TopicSettings};
use crate::bytes::settings;
use crate::error::{OK, Outcome, invalid, status_of};
use crate::handle::object_function;
use crate::memory::{fill, items_of, path, read_struct, text, threads_of, u32_of, write_if_wanted};

const REPAIR: u32 = 1;
const ALL: u32 = 2;
const ALLOW_LOSS: u32 = 4;
const DISCARD_LOST: u32 = 8;
const TAKE_FOR_CLEAN: u32 = 16;

/// `SILT_TOPIC_REMOTE_STORAGE`.
const REMOTE_STORAGE: u32 = 1;

/// What a recovery is told, read once.
struct Asked {
    flags: u32,
    now_ms: i64,
    threads: usize,
    producer_expiration_ms: i64,
    quarantine: Option<PathBuf>,
    settings: HashMap<String, PartitionSettings>,
    others: PartitionSettings,
}

impl Asked {
    /// # Safety
    /// The struct is NULL or one of the header, and its pointers are NULL or what it says.
    unsafe fn read(options: *const RecoverOptions) -> Outcome<Self> {
        // SAFETY: the caller's promise.
        let options = unsafe { read_struct(options)? };
        if options.flags & !(REPAIR | ALL | ALLOW_LOSS | DISCARD_LOST | TAKE_FOR_CLEAN) != 0 {
            return invalid("flags are none of SILT_RECOVER_");
        }
        let mut asked = Asked {
            flags: options.flags,
            now_ms: options.now_ms,
            threads: threads_of(options.threads)?,
            producer_expiration_ms: options.producer_expiration_ms,
            quarantine: match options.quarantine.is_null() {
                true => None,
                // SAFETY: a text of the caller's.
                false => Some(unsafe { path(options.quarantine)? }.to_owned()),
            },
            settings: HashMap::new(),
            others: PartitionSettings::default(),
        };
        // SAFETY: the caller's array.
        for topic in unsafe { items_of(options.topics, u64::from(options.topic_count))? } {
            let found = settings_of(topic)?;
            if topic.topic.is_null() {
                asked.others = found;
            } else {
                // SAFETY: a text of the caller's.
                asked.settings.insert(unsafe { text(topic.topic)? }.to_owned(), found);
            }
        }
        Ok(asked)
    }

    fn options<'a>(
        &self,
        settings: &'a (dyn Fn(&str) -> PartitionSettings + Sync),
        done: &'a (dyn Fn(PartitionDone<'_>) + Sync),
    ) -> DirRecoverOptions<'a> {
        let defaults = DirRecoverOptions::new(settings, done, self.now_ms);
        DirRecoverOptions {
            threads: self.threads,
            dry_run: self.flags & REPAIR == 0,
            all: self.flags & ALL != 0,
            allow_loss: self.flags & ALLOW_LOSS != 0,
            discard_lost: self.flags & DISCARD_LOST != 0,
            quarantine: self.quarantine.clone(),
            clean_shutdown: self.flags & TAKE_FOR_CLEAN != 0,
            producer_expiration_ms: match self.producer_expiration_ms {
                0 => defaults.producer_expiration_ms,
                ms => ms,
            },
            ..defaults
        }
    }
}

fn settings_of(topic: &TopicSettings) -> Outcome<PartitionSettings> {
    if topic.flags & !REMOTE_STORAGE != 0 {
        return invalid("flags are none of SILT_TOPIC_");
    }
    let index = settings(topic.index_interval_bytes, topic.index_size_bytes_max);
    Ok(PartitionSettings { index, remote_storage: topic.flags & REMOTE_STORAGE != 0 })
}

/// What came of one partition.
struct Done {
    told: Recovery,
    steps: Vec<PlanStep>,
    problems: Vec<engine::problem::Problem>,
}

fn done_of(dir: usize, done: &PartitionDone<'_>) -> Done {
    let name = done.dir.file_name().unwrap_or_default().to_string_lossy();
    let (outcome, status, plan) = match done.result {
        PartitionResult::Sound(plan) => (0, OK, Some(plan)),
        PartitionResult::Refused(plan) => (1, OK, Some(plan)),
        PartitionResult::Quarantined(plan, _) => (2, OK, Some(plan)),
        PartitionResult::Failed(error) => (3, status_of(error), None),
    };
    let mut told = Recovery {
        dir: u32_of(dir),
        partition: done.partition.unwrap_or(-1),
        outcome,
        status,
        log_start_offset: -1,
        log_end_offset: -1,
        last_stable_offset: -1,
        cut_offset: -1,
        cut_bytes: 0,
        bytes_read: 0,
        step_count: 0,
        problem_count: 0,
        topic: text_of(done.topic.unwrap_or(&name)),
        reason: [0; 256],
    };
    if let PartitionResult::Failed(error) = done.result {
        told.reason = text_of(&error.to_string());
    }
    let Some(plan) = plan else { return Done { told, steps: Vec::new(), problems: Vec::new() } };
    told.log_start_offset = plan.outcome.log_start_offset;
    told.log_end_offset = plan.outcome.log_end_offset;
    told.last_stable_offset = plan.outcome.last_stable_offset;
    told.bytes_read = plan.outcome.bytes_read;
    if let Some(refusal) = &plan.refusal {
        told.reason = text_of(&refusal.reason);
    }
    if let Some(cut) = &plan.cut {
        told.cut_offset = cut.from_offset;
        let whole = cut.later_segments.iter().map(|(_, bytes)| *bytes);
        told.cut_bytes = whole.chain(cut.segment.map(|it| it.cut_bytes)).sum();
    }
    let steps = steps_of(plan);
    told.step_count = u32_of(steps.len());
    told.problem_count = u32_of(plan.problems.len());
    Done { told, steps, problems: plan.problems.clone() }
}

/// The steps of a plan, in the order in which they are done.
fn steps_of(plan: &Plan) -> Vec<PlanStep> {
    let step = |kind, file: &str, detail: &str| PlanStep {
        number: 0,
        kind,
        offset: -1,
        position: -1,
        size_bytes: 0,
        file: text_of(file),
        detail: text_of(detail),
    };
    let log = |base: i64| format!("{base:020}.log");
    let position = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    let mut steps = Vec::new();
    if let Some(split) = &plan.split {
        let kind = step(5, &log(split.base_offset), "its offsets do not fit its indexes");
        steps.extend(split.parts.iter().skip(1).map(|(offset, at)| PlanStep {
            offset: *offset,
            position: position(*at),
            ..kind
        }));
    }
    if let Some(cut) = &plan.cut {
        steps.extend(cut.segment.map(|it| PlanStep {
            offset: cut.from_offset,
            position: position(it.position),
            size_bytes: it.cut_bytes,
            ..step(4, &log(it.base_offset), &cut.detail)
        }));
        steps.extend(cut.later_segments.iter().map(|(base, bytes)| PlanStep {
            offset: *base,
            position: 0,
            size_bytes: *bytes,
            ..step(4, &log(*base), &cut.detail)
        }));
    }
    steps.extend(plan.actions.iter().map(|action| match action {
        Action::Remove { name, why } => step(0, name, why),
        Action::Rename { from, to } => step(1, from, to),
        Action::Write { name, why, .. } => step(2, name, why),
        Action::Shorten { name, size_bytes } => {
            PlanStep { size_bytes: *size_bytes, ..step(3, name, "what stays of it is right") }
        }
    }));
    steps
}

impl Found {
    fn forget_recoveries(&mut self) {
        self.recoveries.clear();
        self.steps.clear();
        self.problems.clear();
    }

    /// How many recoveries, steps and problems there are.
    fn sizes(&self) -> [usize; 3] {
        [self.recoveries.len(), self.steps.len(), self.problems.len()]
    }

    /// Forgets those that came later.
    fn cut_to(&mut self, [recoveries, steps, problems]: [usize; 3]) {
        self.recoveries.truncate(recoveries);
        self.steps.truncate(steps);
        self.problems.truncate(problems);
    }

    /// Takes what came of the partitions of a directory.
    fn take(&mut self, dir: usize, mut done: Vec<Done>) {
        done.sort_by_key(|it| (it.told.topic, it.told.partition));
        for Done { told, steps, problems } in done {
            let number = u32_of(self.recoveries.len());
            self.recoveries.push(told);
            self.steps.extend(steps.into_iter().map(|step| PlanStep { number, ..step }));
            self.problems.extend(problems.iter().map(|it| problem_of(dir, number, it)));
        }
    }
}

/// Recovers the directories of these numbers, one after the other.
///
/// # Safety
/// The function is one that may be called with this context.
unsafe fn recover(
    it: &DirObject,
    found: &mut Found,
    dirs: std::ops::Range<usize>,
    asked: &Asked,
    progress: ProgressFn,
    ctx: *mut c_void,
) -> Outcome<()> {
    let settings = |topic: &str| asked.settings.get(topic).copied().unwrap_or(asked.others);
    let paths: Vec<(usize, &Path)> =
        dirs.filter_map(|dir| Some((dir, it.dirs.get(dir)?.as_path()))).collect();
    let told = Mutex::new(Vec::new());
    let mut total_bytes = 0_u64;
    let silent = |_: PartitionDone<'_>| ();
    for (_, path) in &paths {
        let options = asked.options(&settings, &silent);
        total_bytes =
            total_bytes.saturating_add(bytes_to_read(&*it.storage, path, false, &options)?);
    }
    let work = |progress: &dyn Progress| {
        let mut reports = Vec::new();
        for (dir, path) in &paths {
            let done = |done: PartitionDone<'_>| {
                if let Ok(mut told) = told.lock() {
                    told.push((*dir, done_of(*dir, &done)));
                }
            };
            let options = asked.options(&settings, &done);
            reports.push((*dir, recover_log_dir(&*it.storage, path, &options, progress)?));
        }
        Ok(reports)
    };
    // SAFETY: the caller's promise.
    let reports = unsafe { with_progress(progress, ctx, total_bytes, work) };
    let mut told = told.into_inner().unwrap_or_default();
    for (dir, _) in &paths {
        let here = told.extract_if(.., |(of, _)| of == dir).map(|(_, done)| done).collect();
        found.take(*dir, here);
    }
    for (dir, report) in reports? {
        let problems = report.problems.iter().map(|it| problem_of(dir, NO_PARTITION, it));
        found.problems.extend(problems);
    }
    Ok(())
}

object_function! {
    fn silt_dir_recover(
        dir: DirObject,
        options: *const RecoverOptions,
        progress: ProgressFn,
        ctx: *mut c_void
    ) |it| {
        // SAFETY: a struct of the header, with what it points to.
        let asked = unsafe { Asked::read(options)? };
        let mut found = it.found()?;
        found.forget_recoveries();
        found.next_dir = 0;
        // SAFETY: the caller's function.
        unsafe { recover(it, &mut found, 0..it.dirs.len(), &asked, progress, ctx) }
    }
}

object_function! {
    fn silt_dir_recover_step(
        dir: DirObject,
        options: *const RecoverOptions,
        dirs_left: *mut u32
    ) |it| {
        // SAFETY: a struct of the header, with what it points to.
        let asked = unsafe { Asked::read(options)? };
        let mut found = it.found()?;
        let this = found.next_dir;
        if this == 0 {
            found.forget_recoveries();
        }
        let next = this.saturating_add(1).min(it.dirs.len());
        let nobody = std::ptr::null_mut();
        let before = found.sizes();
        // SAFETY: there is no function.
        let outcome = unsafe { recover(it, &mut found, this..next, &asked, None, nobody) };
        // A step that failed is done again, and told then.
        outcome.inspect_err(|_| found.cut_to(before))?;
        let left = it.dirs.len().saturating_sub(next);
        found.next_dir = if left == 0 { 0 } else { next };
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(dirs_left, u32_of(left)) }
    }
}

object_function! {
    fn silt_dir_recoveries(
        dir: DirObject,
        out: *mut Recovery,
        capacity: u32,
        count: *mut u32
    ) |it| {
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, it.found()?.recoveries.iter().copied()) }
    }
}

object_function! {
    fn silt_dir_plan(dir: DirObject, out: *mut PlanStep, capacity: u32, count: *mut u32) |it| {
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, it.found()?.steps.iter().copied()) }
    }
}
