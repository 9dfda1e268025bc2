//! By how many bytes is a log with remote storage too large?

use crate::error::{Error, Kind, Result};

/// The sizes of a log and what they may be, in bytes; -1 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRetention {
    /// `retention.bytes`: of all of the log.
    pub retention_bytes: i64,
    /// The effective `local.retention.bytes`.
    pub local_retention_bytes: i64,
    /// What is on the local disk and nowhere else: segments that start at the highest remote offset
    /// or behind.
    pub only_local_bytes: u64,
    /// All that is on the local disk.
    pub local_bytes: u64,
}

/// By how much a log is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeBreach {
    retention_bytes: u64,
    breach_bytes: u64,
}

impl SizeBreach {
    /// A log that may have `retention_bytes` and has `breach_bytes` more.
    ///
    /// # Errors
    /// `InvalidArgument` for a negative retention, and for a breach of nothing.
    pub fn new(retention_bytes: i64, breach_bytes: i64) -> Result<Self> {
        let refuse = |what: &str, value: i64| {
            Err(Error::new(Kind::InvalidArgument, format!("{what} of {value} bytes cannot be")))
        };
        let Ok(retention) = u64::try_from(retention_bytes) else {
            return refuse("a retention", retention_bytes);
        };
        match u64::try_from(breach_bytes) {
            Ok(breach) if breach > 0 => {
                Ok(SizeBreach { retention_bytes: retention, breach_bytes: breach })
            }
            _ => refuse("a breach", breach_bytes),
        }
    }

    /// What the log may have.
    #[must_use]
    pub fn retention_bytes(self) -> u64 {
        self.retention_bytes
    }

    /// What it has beyond, above 0.
    #[must_use]
    pub fn breach_bytes(self) -> u64 {
        self.breach_bytes
    }
}

/// What the sizes of a log allow. The default is what stands when nothing is known, as after the
/// task was cancelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SizeBudget {
    /// By how much the log is too large; `None` when it is not, or has no limit.
    pub breach: Option<SizeBreach>,
    /// The log's size in percent of `retention.bytes`, rounded down; 0 without a limit.
    pub total_percent: u64,
    /// The local size in percent of the local retention, rounded down; 0 without a limit.
    pub local_percent: u64,
    /// Whether all finished segments are known to be of the log's lineage: then the next run need
    /// not look again.
    pub all_valid: bool,
}

/// Works out the budget.
///
/// `finished_bytes` is the size of all finished remote segments, `valid_bytes` that of those within
/// the lineage: it is asked only where it matters, and not with `all_valid`, which an earlier
/// budget has found out.
pub fn size_budget(
    sizes: &SizeRetention,
    finished_bytes: u64,
    all_valid: bool,
    valid_bytes: impl FnOnce() -> u64,
) -> SizeBudget {
    // spec: tiered 6, "budget"
    let local_percent = percent(sizes.local_bytes, sizes.local_retention_bytes);
    let Ok(retention) = u64::try_from(sizes.retention_bytes) else {
        return SizeBudget { local_percent, all_valid, ..SizeBudget::default() };
    };
    let estimate = sizes.only_local_bytes.saturating_add(finished_bytes);
    let (total, all_valid) = if estimate <= retention || all_valid {
        (estimate, all_valid)
    } else {
        let valid = valid_bytes();
        (sizes.only_local_bytes.saturating_add(valid), valid == finished_bytes)
    };
    let breach_bytes = total.checked_sub(retention).filter(|breach| *breach > 0);
    SizeBudget {
        breach: breach_bytes
            .map(|breach_bytes| SizeBreach { retention_bytes: retention, breach_bytes }),
        total_percent: percent(total, sizes.retention_bytes),
        local_percent,
        all_valid,
    }
}

fn percent(size: u64, of: i64) -> u64 {
    let of = u64::try_from(of).unwrap_or(0);
    size.saturating_mul(100).checked_div(of).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breach(budget: &SizeBudget) -> Option<u64> {
        budget.breach.map(SizeBreach::breach_bytes)
    }

    #[test]
    fn a_log_within_its_retention_breaches_nothing() {
        // spec: tiered-behaviours EX6
        let sizes = SizeRetention {
            retention_bytes: 12288,
            local_retention_bytes: 6144,
            only_local_bytes: 100,
            local_bytes: 100,
        };
        let budget = size_budget(&sizes, 10 * 1024, false, || panic!("nothing to ask for"));
        assert_eq!(breach(&budget), None);
        assert_eq!((budget.total_percent, budget.local_percent), (84, 1));
    }

    #[test]
    fn only_segments_of_the_lineage_count() {
        // spec: tiered-behaviours EX7
        let sizes = SizeRetention {
            retention_bytes: 12288,
            local_retention_bytes: 5000,
            only_local_bytes: 3000,
            local_bytes: 4000,
        };
        let budget = size_budget(&sizes, 12288, false, || 10240);
        assert_eq!(breach(&budget), Some(952));
        assert_eq!((budget.total_percent, budget.local_percent), (107, 80));
        assert!(!budget.all_valid);
    }

    #[test]
    fn without_a_limit_there_is_no_budget_and_no_percentage() {
        // spec: tiered-behaviours EX9
        let sizes = SizeRetention {
            retention_bytes: -1,
            local_retention_bytes: -1,
            only_local_bytes: 3000,
            local_bytes: 4000,
        };
        let budget = size_budget(&sizes, 12288, false, || panic!("nothing to ask for"));
        assert_eq!(budget, SizeBudget::default());
        let zero = SizeRetention { retention_bytes: 0, ..sizes };
        let budget = size_budget(&zero, 12288, false, || 12288);
        assert_eq!((breach(&budget), budget.total_percent), (Some(15288), 0));
    }

    #[test]
    fn what_is_valid_is_asked_until_all_of_it_is() {
        // spec: tiered X7
        let sizes = SizeRetention {
            retention_bytes: 1000,
            local_retention_bytes: -1,
            only_local_bytes: 500,
            local_bytes: 500,
        };
        for (finished, valid, expected, all_valid) in [
            (500, None, None, false),
            (1600, Some(0), None, false),
            (1600, Some(1000), Some(500), false),
            (1000, Some(1000), Some(500), true),
        ] {
            let budget = size_budget(&sizes, finished, false, || valid.unwrap());
            assert_eq!((breach(&budget), budget.all_valid), (expected, all_valid), "{finished}");
        }
        let known = size_budget(&sizes, 1000, true, || panic!("it is known"));
        assert_eq!((breach(&known), known.all_valid), (Some(500), true));
    }

    #[test]
    fn a_breach_of_nothing_cannot_be() {
        // spec: tiered-behaviours EX19
        for (retention, breach) in [(10, 0), (10, -1), (-1, 10), (-1, -1), (-1, 0)] {
            let error = SizeBreach::new(retention, breach).unwrap_err();
            assert_eq!(error.kind(), Kind::InvalidArgument, "{retention} {breach}");
        }
        let right = SizeBreach::new(0, 1).unwrap();
        assert_eq!((right.retention_bytes(), right.breach_bytes()), (0, 1));
    }
}
