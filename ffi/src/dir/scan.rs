//! What is there?

use super::object::{DirObject, problem_of, text_of};
use super::types::{PartitionDir, Problem};
use crate::handle::object_function;
use crate::memory::{fill, u32_of};
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
            dir: u32_of(dir),
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

object_function! {
    fn silt_dir_scan(dir: DirObject, out: *mut PartitionDir, capacity: u32, count: *mut u32) |it| {
        let surveys = it.survey()?;
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, partitions_of(&surveys).into_iter()) }
    }
}

object_function! {
    fn silt_dir_problems(dir: DirObject, out: *mut Problem, capacity: u32, count: *mut u32) |it| {
        // SAFETY: the caller's array and number.
        unsafe { fill(out, capacity, count, it.found()?.problems.iter().copied()) }
    }
}
