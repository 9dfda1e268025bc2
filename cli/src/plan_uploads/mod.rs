//! `siltstone plan-uploads`: what waits to go to remote storage, and why.

mod args;
mod job;
mod print;

use siltstone::problem::Code;
use siltstone::tier::{ColdLog, NotEligible, UploadAnswer};

use crate::Outcome;
use crate::session::{Session, complain};
use crate::target::PartitionDir;

pub(crate) use args::PlanUploadsArgs;

/// The plan of one partition.
struct Plan {
    dir: PartitionDir,
    log: ColdLog,
    answer: UploadAnswer,
    /// The last offset that is copied, -1 for none.
    copied_offset: i64,
    /// Why the partition has no part in it: its topic has no remote storage, or is not copied.
    apart: Option<&'static str>,
    /// Whether the topic has remote storage, where that is known.
    is_remote: Option<bool>,
}

impl Plan {
    /// Why a segment is not uploaded; `None` for one that is.
    fn why_not(&self, slot: usize, now_ms: i64) -> Option<&'static str> {
        let reason = self.log.view().why_not(&self.answer, slot, now_ms).map(NotEligible::as_str);
        reason.or(self.apart)
    }

    /// The bases and codes of the segments that cannot be uploaded as they are.
    fn blocked(&self, now_ms: i64) -> Vec<(i64, &'static str)> {
        let view = self.log.view();
        let slots = view.bases.iter().enumerate();
        slots
            .filter_map(|(slot, base)| match view.why_not(&self.answer, slot, now_ms)? {
                reason @ (NotEligible::Damaged(_) | NotEligible::OutsideLineage) => {
                    Some((*base, reason.as_str()))
                }
                _ => None,
            })
            .collect()
    }

    fn outcome(&self, now_ms: i64) -> Outcome {
        let problems = &self.log.problems;
        if problems.iter().any(|problem| problem.code == Code::Unreadable) {
            return Outcome::CouldNotLook;
        }
        let is_fine = problems.is_empty() && self.blocked(now_ms).is_empty();
        if is_fine || self.apart.is_some() { Outcome::Fine } else { Outcome::Problems }
    }
}

/// Plans the uploads of all paths.
pub(crate) fn run(args: &PlanUploadsArgs, session: &Session) -> std::io::Result<Outcome> {
    match job::plan(args, session) {
        Ok((plans, outcome, now_ms)) => {
            for plan in &plans {
                for problem in &plan.log.problems {
                    complain(&format_args!("{}: {problem}", plan.dir.path.display()));
                }
            }
            print::print(args, &plans, now_ms)?;
            Ok(plans.iter().map(|plan| plan.outcome(now_ms)).fold(outcome, Outcome::max))
        }
        Err(error) => {
            complain(&error);
            Ok(Outcome::CouldNotLook)
        }
    }
}
