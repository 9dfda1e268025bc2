//! Which operation goes wrong, and how? The plan of faults and the log of what was done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// One call of the simulated disk, for the messages of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What was done, such as "write 61 bytes at 0".
    pub what: String,
    /// To which path.
    pub path: PathBuf,
    /// Whether it changes the disk or makes a change durable. A cut at any other operation leaves
    /// what a cut at the next change leaves.
    pub is_change: bool,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

/// What sort of operation it is: they go wrong in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// It changes nothing.
    Look,
    /// It changes what is seen.
    Change,
    /// It makes changes durable.
    Sync,
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is done.
    Done,
    /// The power goes while it is done: it may be done or not, and its caller does not live to
    /// know.
    Cut,
    /// The power is off.
    Off,
    /// It fails.
    Fails(Errno),
    /// It is a sync that does nothing and says that all is well.
    Lost,
}

/// The plan and the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    pub(super) log: Vec<Operation>,
    pub(super) change_count: u64,
    pub(super) is_off: bool,
    pub(super) crash_at: Option<u64>,
    pub(super) crash_at_change: Option<u64>,
    pub(super) fail_at: BTreeMap<u64, i32>,
    pub(super) fail_changes_from: Option<(u64, i32)>,
    pub(super) lose_sync_at: BTreeSet<u64>,
    pub(super) lose_syncs: bool,
}

impl Faults {
    /// Counts and notes an operation, and says what becomes of it.
    pub(super) fn next(&mut self, sort: Sort, what: String, path: &Path) -> Verdict {
        if self.is_off {
            return Verdict::Off;
        }
        let number = u64::try_from(self.log.len()).unwrap_or(u64::MAX);
        let is_change = sort != Sort::Look;
        self.log.push(Operation { what, path: path.to_path_buf(), is_change });
        let change = is_change.then_some(self.change_count);
        self.change_count += u64::from(is_change);
        if self.crash_at.is_some_and(|at| number >= at)
            || (self.crash_at_change.is_some() && change >= self.crash_at_change)
        {
            self.is_off = true;
            return Verdict::Cut;
        }
        if let Some(&errno) = self.fail_at.get(&number) {
            return Verdict::Fails(Errno::from_raw_os_error(errno));
        }
        if let Some((from, errno)) = self.fail_changes_from
            && is_change
            && number >= from
        {
            return Verdict::Fails(Errno::from_raw_os_error(errno));
        }
        if sort == Sort::Sync && (self.lose_syncs || self.lose_sync_at.contains(&number)) {
            return Verdict::Lost;
        }
        Verdict::Done
    }
}
