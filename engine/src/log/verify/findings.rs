//! The findings of one partition: each kind of problem of a file a few times, however often it
//! occurs.

use std::collections::HashMap;

use crate::error::Error;
use crate::index::check::IndexProblem;
use crate::problem::{Code, Problem, Severity};

/// So many problems of one kind are told of one file.
const TOLD_MAX: u64 = 100;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    problems: Vec<Problem>,
    notices: Vec<Problem>,
    /// How many there are of a kind in a file, and where the last one that is told stands.
    counts: HashMap<(String, Code), (u64, usize)>,
}

/// Where a problem is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) position: Option<u64>,
    pub(super) offset: Option<i64>,
}

impl Place {
    /// A whole file.
    pub(super) const FILE: Place = Place { position: None, offset: None };

    /// A byte of a log that belongs to an offset.
    pub(super) fn at(position: u64, offset: i64) -> Self {
        Place { position: Some(position), offset: Some(offset) }
    }
}

impl Findings {
    /// Takes a problem or a notice.
    pub(super) fn add(
        &mut self,
        code: Code,
        severity: Severity,
        file: &str,
        place: Place,
        detail: impl Into<String>,
    ) {
        let Place { position, offset } = place;
        let (file, detail) = (file.to_owned(), detail.into());
        self.take(Problem { code, severity, file, position, offset, detail });
    }

    /// Takes a problem or a notice.
    pub(super) fn take(&mut self, problem: Problem) {
        if problem.severity == Severity::Notice {
            self.notices.push(problem);
            return;
        }
        let key = (problem.file.clone(), problem.code);
        let (count, last) = self.counts.entry(key).or_default();
        *count += 1;
        if *count <= TOLD_MAX {
            *last = self.problems.len();
            self.problems.push(problem);
        }
    }

    /// Takes what the check of an index found.
    pub(super) fn take_index(&mut self, problem: IndexProblem, file: &str) {
        self.take(problem.into_problem(file));
    }

    /// Takes a file that cannot be read.
    pub(super) fn unreadable(&mut self, file: &str, error: &Error) {
        self.add(Code::Unreadable, Severity::Refused, file, Place::FILE, error.to_string());
    }

    /// Problems and notices.
    pub(super) fn finish(mut self) -> (Vec<Problem>, Vec<Problem>) {
        for (count, last) in self.counts.into_values() {
            if count > TOLD_MAX
                && let Some(problem) = self.problems.get_mut(last)
            {
                problem.detail += &format!(" (and {} more of this kind)", count - TOLD_MAX);
            }
        }
        (self.problems, self.notices)
    }
}
