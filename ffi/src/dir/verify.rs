//! Is it sound?

use std::ffi::c_void;
use std::sync::Mutex;

use engine::dir::verify::{PartitionFolder, verify_partitions};
use engine::log::verify::{Depth, VerifyOptions as Options};
use engine::problem::{Code, Severity};

use super::object::{DirObject, problem_of};
use super::progress::{ProgressFn, with_progress};
use super::scan::problems_of;
use super::types::VerifyOptions;
use crate::error::{Outcome, invalid};
use crate::handle::object_function;
use crate::memory::{read_struct, threads_of, u32_of, write_if_wanted};

/// `SILT_VERIFY_BATCHES`.
const BATCHES: u32 = 1;

/// A partition that could not be looked at.
fn unreadable(error: &engine::Error) -> engine::problem::Problem {
    engine::problem::Problem {
        code: Code::Unreadable,
        severity: Severity::Refused,
        file: String::new(),
        position: error.position(),
        offset: error.offset(),
        detail: error.to_string(),
    }
}

/// # Safety
/// The function is one that may be called with this context.
unsafe fn verify(
    it: &DirObject,
    options: &VerifyOptions,
    progress: ProgressFn,
    ctx: *mut c_void,
) -> Outcome<u32> {
    if options.flags & !BATCHES != 0 {
        return invalid("flags are none of SILT_VERIFY_");
    }
    let mut found = it.found()?;
    let surveys = it.survey()?;
    let problems = Mutex::new(problems_of(&surveys));
    let dirs = surveys.iter().enumerate();
    let dir_of: Vec<usize> = dirs.flat_map(|(dir, it)| vec![dir; it.partitions.len()]).collect();
    let folders: Vec<PartitionFolder> =
        surveys.iter().flat_map(|survey| survey.partitions.iter().cloned()).collect();
    let next = Mutex::new(0_usize);
    let each = |_: &PartitionFolder, report: engine::Result<_>| {
        let Ok(mut next) = next.lock() else { return };
        let (number, dir) = (u32_of(*next), dir_of.get(*next).copied().unwrap_or_default());
        *next += 1;
        let Ok(mut all) = problems.lock() else { return };
        let report: engine::log::verify::PartitionReport = match report {
            Ok(report) => report,
            Err(error) => return all.push(problem_of(dir, number, &unreadable(&error))),
        };
        all.extend(report.problems.iter().map(|it| problem_of(dir, number, it)));
    };
    let total_bytes = surveys.iter().map(engine::dir::verify::LogDirSurvey::log_size_bytes).sum();
    let threads = threads_of(options.threads)?;
    let work = |progress: &dyn engine::log::progress::Progress| {
        let depth = if options.flags & BATCHES == 0 { Depth::Records } else { Depth::Batches };
        let now_ms = if options.now_ms == 0 { i64::MAX } else { options.now_ms };
        let options = Options { now_ms, depth, progress, ..Options::default() };
        verify_partitions(&*it.storage, &folders, &options, threads, &each)
    };
    // SAFETY: the caller's promise.
    unsafe { with_progress(progress, ctx, total_bytes, work)? };
    found.problems = problems.into_inner().unwrap_or_default();
    Ok(u32_of(found.problems.len()))
}

object_function! {
    fn silt_dir_verify(
        dir: DirObject,
        options: *const VerifyOptions,
        progress: ProgressFn,
        ctx: *mut c_void,
        problem_count: *mut u32
    ) |it| {
        // SAFETY: a struct of the header.
        let options = unsafe { read_struct(options)? };
        // SAFETY: the caller's function.
        let count = unsafe { verify(it, &options, progress, ctx)? };
        // SAFETY: the caller's number, or NULL.
        unsafe { write_if_wanted(problem_count, count) }
    }
}
