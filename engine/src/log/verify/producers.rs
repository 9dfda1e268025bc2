//! Do the producer snapshots say what the batches say?
//!
//! The state of the producers is derived batch by batch. When it has come to the offset of a
//! snapshot, the two are compared.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use super::findings::{Findings, Place};
use crate::error::Kind;
use crate::io::Storage;
use crate::problem::{Code, Severity};
use crate::segment::{FileName, FileRole};
use crate::state::{ProducerEntry, ReplayState, Snapshot};
use crate::units::NO_COORDINATOR_EPOCH;

/// Above this a snapshot is refused: it would hold more than ten million producers.
const FILE_SIZE_MAX: u64 = 512 << 20;
/// So many producers are named of one snapshot.
const NAMED_MAX: usize = 3;

/// The producers of a log, and its snapshots that are still ahead.
pub(super) struct Producers<'a> {
    storage: &'a dyn Storage,
    dir: &'a Path,
    now_ms: i64,
    expiration_ms: i64,
    pub(super) state: ReplayState,
    /// Batches may be missing that were there when a snapshot was taken: the log does not begin at
    /// 0, or compaction took them.
    pub(super) is_partial: bool,
    /// Producers whose last batch lies before it may be forgotten.
    log_start_offset: i64,
    ahead: VecDeque<i64>,
}

impl<'a> Producers<'a> {
    /// Begins at the front of a log with these segments and snapshots. Of a log that does not begin
    /// at offset 0 the state comes from the snapshot there, if it is sound.
    pub(super) fn begin(
        storage: &'a dyn Storage,
        dir: &'a Path,
        (now_ms, expiration_ms): (i64, i64),
        log_start_offset: i64,
        bases: &BTreeSet<i64>,
        snapshots: &BTreeSet<i64>,
        findings: &mut Findings,
    ) -> Self {
        let (first_base, last_base) =
            (bases.first().copied().unwrap_or(0), bases.last().copied().unwrap_or(0));
        let mut ahead = VecDeque::new();
        for &offset in snapshots {
            // spec: producer-state A6. A clean stop leaves one at the end of the log, which is no
            // base, and the next stop leaves another: only a start takes all but the newest.
            if !bases.contains(&offset) && offset < last_base {
                stray(offset, "it belongs to no segment", findings);
            } else {
                ahead.push_back(offset);
            }
        }
        let mut producers = Producers {
            storage,
            dir,
            now_ms,
            expiration_ms,
            state: ReplayState::new(),
            is_partial: log_start_offset > 0,
            log_start_offset,
            ahead,
        };
        if first_base > 0 && producers.ahead.pop_front_if(|offset| *offset == first_base).is_some()
        {
            let known = producers.with_snapshot(first_base, findings, |snapshot, _| {
                // Nobody is forgotten here: what is compared later was not forgotten then.
                ReplayState::from_snapshot(snapshot, 0, i64::MAX)
            });
            producers.state = known.unwrap_or_default();
        }
        producers
    }

    /// The next batch begins at `offset`: compares the snapshots up to there.
    #[inline]
    pub(super) fn reach(&mut self, offset: i64, findings: &mut Findings) {
        while let Some(snapshot) = self.ahead.pop_front_if(|snapshot| *snapshot <= offset) {
            self.compare(snapshot, findings);
        }
    }

    /// The last segment begins, and has no snapshot: wrong where there is something to remember.
    pub(super) fn missing(&self, base_offset: i64, findings: &mut Findings) {
        let producers = self.state.producers().entries();
        let count = producers.iter().filter(|one| one.last_offset >= self.log_start_offset).count();
        if count > 0 {
            let place = Place { position: None, offset: Some(base_offset) };
            let detail = format!("missing, although {count} producers are known there");
            let severity = Severity::Repairable;
            findings.add(Code::SnapshotMismatch, severity, &file_name(base_offset), place, detail);
        }
    }

    /// The log ends: what is still ahead lies behind it.
    pub(super) fn finish(&mut self, log_end_offset: i64, findings: &mut Findings) {
        self.reach(log_end_offset, findings);
        for offset in std::mem::take(&mut self.ahead) {
            stray(offset, &format!("the log ends at {log_end_offset}"), findings);
        }
    }

    fn compare(&self, offset: i64, findings: &mut Findings) {
        self.with_snapshot(offset, findings, |snapshot, findings| {
            let mut wrong = Wrong::default();
            let mut seen = 0_usize;
            for entry in snapshot.iter() {
                match self.state.producers().get(entry.producer_id) {
                    Some(derived) => {
                        seen += 1;
                        if !self.agree(&entry, derived) {
                            wrong.add(|| {
                                format!("it says {}, the log {}", told(&entry), told(derived))
                            });
                        }
                    }
                    None if self.is_partial => {}
                    None => wrong.add(|| format!("the log does not know {}", told(&entry))),
                }
            }
            // Only when some are missing is it worth finding out which.
            if seen < self.state.producers().len() {
                self.find_missing(snapshot, &mut wrong);
            }
            if wrong.count > 0 {
                let place = Place { position: None, offset: Some(offset) };
                let (code, severity) = (Code::SnapshotMismatch, Severity::Repairable);
                findings.add(code, severity, &file_name(offset), place, wrong.detail());
            }
        });
    }

    fn find_missing(&self, snapshot: &Snapshot<'_>, wrong: &mut Wrong) {
        let known: std::collections::HashSet<i64> =
            snapshot.iter().map(|entry| entry.producer_id).collect();
        for derived in self.state.producers().entries() {
            let may_be_forgotten = derived.is_expired(self.now_ms, self.expiration_ms)
                || derived.last_offset < self.log_start_offset;
            if !known.contains(&derived.producer_id) && !may_be_forgotten {
                wrong.add(|| format!("it does not know {}", told(derived)));
            }
        }
    }

    /// Whether a producer of a snapshot is the one that the log tells of.
    fn agree(&self, entry: &ProducerEntry, derived: &ProducerEntry) -> bool {
        if entry == derived {
            return true;
        }
        // A producer that was forgotten for being silent and came back has no coordinator until its
        // next marker.
        let came_back = ProducerEntry { coordinator_epoch: NO_COORDINATOR_EPOCH, ..*derived };
        if *entry == came_back {
            return true;
        }
        // The snapshot was taken when all batches were there: it may only know more.
        self.is_partial
            && (entry.producer_epoch != derived.producer_epoch
                || entry.last_offset >= derived.last_offset)
    }

    fn with_snapshot<T>(
        &self,
        offset: i64,
        findings: &mut Findings,
        look: impl FnOnce(&Snapshot<'_>, &mut Findings) -> T,
    ) -> Option<T> {
        let name = file_name(offset);
        let bytes = match self.storage.read(&self.dir.join(&name), FILE_SIZE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == Kind::Limit => {
                let detail = "larger than any producer snapshot";
                let (code, severity) = (Code::SnapshotMismatch, Severity::Repairable);
                findings.add(code, severity, &name, Place::FILE, detail);
                return None;
            }
            Err(error) => {
                findings.unreadable(&name, &error);
                return None;
            }
        };
        match Snapshot::read(&bytes) {
            Ok(snapshot) => Some(look(&snapshot, findings)),
            Err(fault) => {
                let position = u64::try_from(fault.position).ok();
                let place = Place { position, offset: Some(offset) };
                findings.add(fault.code, Severity::Repairable, &name, place, fault.detail);
                None
            }
        }
    }
}

fn file_name(offset: i64) -> String {
    FileName::live(offset, FileRole::Snapshot).format()
}

fn stray(offset: i64, why: &str, findings: &mut Findings) {
    let place = Place { position: None, offset: Some(offset) };
    let severity = Severity::Repairable;
    findings.add(Code::StraySnapshot, severity, &file_name(offset), place, why);
}

fn told(entry: &ProducerEntry) -> String {
    let mut text = format!(
        "producer {} (epoch {}, last sequence {}, last offset {}",
        entry.producer_id, entry.producer_epoch, entry.last_sequence, entry.last_offset
    );
    if entry.in_transaction() {
        text += &format!(", transaction from {}", entry.txn_first_offset);
    }
    text + ")"
}

/// The differences of one snapshot, of which the first few are named.
#[derive(Default)]
struct Wrong {
    count: usize,
    named: Vec<String>,
}

impl Wrong {
    fn add(&mut self, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            self.named.push(what());
        }
    }

    fn detail(&self) -> String {
        let mut text = self.named.join("; ");
        if self.count > self.named.len() {
            text += &format!("; and {} more", self.count - self.named.len());
        }
        text
    }
}
