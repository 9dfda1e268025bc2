//! What did a check find? One entry for each code, however often it occurs.

use crate::problem::{Code, Problem, Severity};

/// A problem of an index file: the first place of one kind, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexProblem {
    /// What kind.
    pub code: Code,
    /// The byte in the index file where the first one begins.
    pub position: u64,
    /// The log offset that the first one is about, if it is about one.
    pub offset: Option<i64>,
    /// How many places have this problem; at least 1.
    pub count: u64,
    /// What was expected and what was found at the first place, without a full stop.
    pub detail: String,
}

impl IndexProblem {
    /// The finding to report for the index file of that name. Everything in an index can be derived
    /// from the log again, so it is repairable.
    #[must_use]
    pub fn into_problem(self, file: impl Into<String>) -> Problem {
        let detail = match self.count {
            0 | 1 => self.detail,
            count => format!("{} (the first of {count} such places)", self.detail),
        };
        Problem {
            code: self.code,
            severity: Severity::Repairable,
            file: file.into(),
            position: Some(self.position),
            offset: self.offset,
            detail,
        }
    }
}

/// The problems of one file, in the order in which their kinds were met.
#[derive(Debug, Default)]
pub(super) struct Findings {
    problems: Vec<IndexProblem>,
}

impl Findings {
    /// Counts a place, and keeps it when it is the first of its kind in the file. The detail is
    /// only made then.
    pub(super) fn add(
        &mut self,
        code: Code,
        position: u64,
        offset: Option<i64>,
        detail: impl FnOnce() -> String,
    ) {
        match self.problems.iter_mut().find(|problem| problem.code == code) {
            None => {
                let detail = detail();
                self.problems.push(IndexProblem { code, position, offset, count: 1, detail });
            }
            Some(known) => {
                known.count += 1;
                if position < known.position {
                    (known.position, known.offset) = (position, offset);
                    known.detail = detail();
                }
            }
        }
    }

    pub(super) fn into_problems(self) -> Vec<IndexProblem> {
        self.problems
    }
}

/// The byte at which a slot begins.
pub(super) fn position_of(slot: usize, entry_size: usize) -> u64 {
    u64::try_from(slot.saturating_mul(entry_size)).unwrap_or(u64::MAX)
}

/// How many slots of `bytes` are entries: those up to the last that is not all zeros.
///
/// Zeros behind them are what preallocation left. No entry behind the first can be all zeros, since
/// offsets and timestamps rise.
pub(super) fn count_before_padding(bytes: &[u8], entry_size: usize) -> usize {
    let whole_size = bytes.len() / entry_size * entry_size;
    let mut end = whole_size;
    // A preallocated file is mostly zeros, which whole blocks tell fastest.
    for block in bytes.get(..whole_size).unwrap_or_default().rchunks(4096) {
        if block.iter().fold(0, |seen, byte| seen | byte) != 0 {
            let zeros = block.iter().rev().take_while(|byte| **byte == 0).count();
            return (end - zeros).div_ceil(entry_size);
        }
        end -= block.len();
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_problem_is_told_once_with_its_first_place() {
        let mut findings = Findings::default();
        for position in [16, 8, 24] {
            findings.add(Code::IndexOrder, position, Some(7), || format!("at {position}"));
        }
        findings.add(Code::IndexSize, 32, None, || "size".into());
        let problems = findings.into_problems();
        assert_eq!(problems.len(), 2);
        assert_eq!((problems[0].position, problems[0].count), (8, 3));
        let problem = problems[0].clone().into_problem("0.index");
        assert_eq!(problem.detail, "at 8 (the first of 3 such places)");
        assert_eq!(problem.severity, Severity::Repairable);
        assert_eq!(problems[1].clone().into_problem("0.index").detail, "size");
    }

    #[test]
    fn padding_begins_behind_the_last_slot_that_holds_anything() {
        for size in [0, 1, 8, 12, 4096, 10_000] {
            assert_eq!(count_before_padding(&vec![0; size], 12), 0);
        }
        for at in [0, 11, 12, 4090, 4096, 9995] {
            let mut bytes = vec![0; 10_003];
            bytes[at] = 1;
            assert_eq!(count_before_padding(&bytes, 12), at / 12 + 1, "{at}");
        }
        // A stray tail is no slot.
        let mut bytes = vec![0; 10_003];
        bytes[10_002] = 1;
        assert_eq!(count_before_padding(&bytes, 12), 0);
    }
}
