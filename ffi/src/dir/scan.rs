//! What is there?

use super::object::{DirObject, number_of, problem_of, text_of};
use super::types::{PartitionDir, Problem};
use crate::error::{SiltError, Status};
use crate::handle::{Handle, on};
use crate::memory::fill;
use engine::dir::verify::LogDirSurvey;
use engine::log::name::FolderKind;

/// The directory itself, as the number of a partition.
pub const NO_PARTITION: u32 = u32::MAX;

const CLEAN: u32 = 1;
const LOCKED: u32 = 2;
const FUTURE: u32 = 4;

/// What is wrong with the directories themselves.
pub fn problems_of(surveys: &[LogDirSurvey]) -> Vec<Problem> {
    let mut all = Vec::new();
    for (dir, survey) in surveys.iter().enumerate() {
        all.extend(survey.problems.iter().map(|it| problem_of(dir, NO_PARTITION, it)));
    }
    all
}

fn partitions_of(surveys: &[LogDirSurvey]) -> Vec<PartitionDir> {
    let mut all = Vec::new();
    for (dir, survey) in surveys.iter().enumerate() {
        let flags = u32::from(survey.is_clean) * CLEAN + u32::from(survey.is_locked) * LOCKED;
        all.extend(survey.partitions.iter().map(|folder| PartitionDir {
            dir: number_of(dir),
            partition: folder.name.partition,
            flags: match folder.name.kind {
                FolderKind::Live => flags,
                _ => flags | FUTURE,
            },
            reserved: 0,
            log_start_offset: folder.around.log_start_offset.unwrap_or(-1),
            log_size_bytes: folder.log_size_bytes,
            topic: text_of(&folder.name.topic),
        }));
    }
    all
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_dir_scan(
    dir: *const Handle<DirObject>,
    out: *mut PartitionDir,
    capacity: u32,
    count: *mut u32,
    err: *mut SiltError,
) -> Status {
    let body = |it: &DirObject| {
        let surveys = it.survey()?;
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, partitions_of(&surveys).into_iter()) }
    };
    // SAFETY: an object of the caller's, and a struct of the header or NULL.
    unsafe { on(dir, err, body) }
}

/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn silt_dir_problems(
    dir: *const Handle<DirObject>,
    out: *mut Problem,
    capacity: u32,
    count: *mut u32,
    err: *mut SiltError,
) -> Status {
    // SAFETY: the caller's array and number.
    let body = |it: &DirObject| unsafe {
        fill(out, capacity, count, it.found()?.problems.iter().copied())
    };
    // SAFETY: an object of the caller's, and a struct of the header or NULL.
    unsafe { on(dir, err, body) }
}
