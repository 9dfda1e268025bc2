//! What is behind a `silt_dir_t`?

use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use engine::dir::verify::{LogDirSurvey, find_duplicates, survey_log_dir};
use engine::io::Storage;

use super::types::{DirOptions, PlanStep, Problem, Recovery};
use crate::error::{CONFLICT, Failure, Outcome, SiltError, Status, guard};
use crate::handle::{Handle, Object, close, try_hold};
use crate::log::disk;
use crate::memory::{
    Growing, check_place, items_of, path, read_struct, u32_of, write_plain, write_text,
};

/// Log directories, and what the last long call found in them.
pub struct DirObject {
    pub storage: Arc<dyn Storage>,
    pub dirs: Vec<PathBuf>,
    found: Mutex<Found>,
}

/// What was found.
#[derive(Default)]
pub struct Found {
    pub problems: Vec<Problem>,
    pub recoveries: Vec<Recovery>,
    pub steps: Vec<PlanStep>,
    /// The directory that a step of recovery does next.
    pub next_dir: usize,
}

impl Object for DirObject {
    const MAGIC: u64 = 0x7369_6c74_5f64_6972;
}

impl DirObject {
    /// What was found, for one call at a time.
    pub fn found(&self) -> Outcome<MutexGuard<'_, Found>> {
        let busy = || Failure::Call(CONFLICT, "another call is at work on these directories");
        try_hold(&self.found).ok_or_else(busy)
    }

    /// Looks at all directories, and at what they have in common.
    pub fn survey(&self) -> Outcome<Vec<LogDirSurvey>> {
        let surveys = self.dirs.iter().map(|dir| survey_log_dir(&*self.storage, dir));
        let mut surveys = surveys.collect::<engine::Result<Vec<_>>>()?;
        find_duplicates(&mut surveys);
        Ok(surveys)
    }
}

/// A text of the header's structs.
pub fn text_of<const SIZE: usize>(text: &str) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    write_text(&mut bytes, format_args!("{text}"));
    bytes
}

/// A finding, of a directory and a partition by its number.
pub fn problem_of(dir: usize, number: u32, problem: &engine::problem::Problem) -> Problem {
    use engine::problem::Severity;
    Problem {
        dir: u32_of(dir),
        number,
        severity: match problem.severity {
            Severity::Notice => 0,
            Severity::Repairable => 1,
            Severity::Corrupt => 2,
            Severity::Refused => 3,
        },
        reserved: 0,
        position: problem.position.and_then(|it| i64::try_from(it).ok()).unwrap_or(-1),
        offset: problem.offset.unwrap_or(-1),
        code: text_of(problem.code.as_str()),
        file: text_of(&problem.file),
        detail: text_of(&problem.detail),
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_dir_open(
    paths: *const *const c_char,
    count: u32,
    options: *const DirOptions,
    dir: *mut *mut Handle<DirObject>,
    err: *mut SiltError,
) -> Status {
    let body = || {
        // SAFETY: the caller's array.
        let paths = unsafe { items_of(paths, u64::from(count))? };
        let options = match options.is_null() {
            true => DirOptions::INIT,
            // SAFETY: a struct of the header.
            false => unsafe { read_struct(options)? },
        };
        check_place(dir, "the place for the directories is NULL or not aligned")?;
        // SAFETY: the caller's texts.
        let own = |it: &*const c_char| unsafe { path(*it) }.map(PathBuf::from);
        let dirs = paths.iter().map(own).collect::<Outcome<Vec<_>>>()?;
        let object = DirObject { storage: disk(options.io)?, dirs, found: Mutex::default() };
        // Directories that cannot be listed are told now.
        object.survey()?;
        // SAFETY: not NULL, and aligned.
        unsafe { write_plain(dir, Handle::give(object)) }
    };
    // SAFETY: a struct of the header, or NULL.
    unsafe { guard(err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_dir_close(dir: *mut Handle<DirObject>) {
    // SAFETY: an object of the caller's, which it gives back.
    unsafe { close(dir) };
}
