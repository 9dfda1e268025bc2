//! The walk over a whole partition: its segments in order, and what can be said only at the end.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::epochs::EpochCheck;
use super::findings::{Findings, Place};
use super::lists::Lists;
use super::options::{Depth, VerifyOptions};
use super::producers::Producers;
use super::report::{OpenTransaction, PartitionReport};
use super::segment;
use crate::error::{Error, Kind, Result};
use crate::index::AbortedTxn;
use crate::io::Storage;
use crate::log::inventory::{Inventory, METADATA_FILE};
use crate::log::name::FolderName;
use crate::problem::{Code, Problem, Severity};
use crate::record::check::BatchChecker;
use crate::segment::name::Parsed;
use crate::segment::{FileName, FileRole};
use crate::state::meta::parse_partition_metadata;
use crate::units::NO_LEADER_EPOCH;

/// Two lines; anything longer is something else.
const METADATA_SIZE_MAX: u64 = 64 << 10;
/// A record that is later than the clock by more than this is said to lie in the future: Kafka
/// refuses such records by default (`message.timestamp.after.max.ms`).
const FUTURE_MS: i64 = 3_600_000;

/// Checks the partition in a directory. Whatever it holds gives a report; only when the directory
/// cannot be listed, or the work is cancelled, there is none.
///
/// # Errors
/// Those of the storage for the directory itself, and [`Kind::Cancelled`].
pub fn verify_partition(
    storage: &dyn Storage,
    dir: &Path,
    options: &VerifyOptions<'_>,
) -> Result<PartitionReport> {
    let mut inventory = Inventory::read(storage, dir)?;
    let mut walk = Walk::begin(storage, dir, &inventory, options);
    walk.is_blind = drop_consequences(&mut inventory);
    walk.read_epochs();
    walk.check_name();
    walk.check_metadata();
    walk.walk_segments(&inventory)?;
    let mut report = walk.finish();
    if options.is_live {
        excuse_unfinished(&mut report, &inventory);
    }
    // What the names say stands behind what the log says.
    for problem in inventory.problems.drain(..) {
        if problem.severity == Severity::Notice {
            report.notices.push(problem);
        } else {
            report.problems.push(problem);
        }
    }
    Ok(report)
}

/// Indexes of a log that cannot be read are no orphans. Gives whether there is such a log.
fn drop_consequences(inventory: &mut Inventory) -> bool {
    let offset_of = |problem: &Problem| match FileName::parse(&problem.file) {
        Parsed::Segment(file) => Some(file.offset),
        Parsed::Bad | Parsed::Other => None,
    };
    let unreadable = inventory.problems.iter().filter(|problem| {
        problem.code == Code::Unreadable && problem.file.ends_with(FileRole::Log.suffix())
    });
    let unreadable: BTreeSet<Option<i64>> = unreadable.map(offset_of).collect();
    inventory.problems.retain(|problem| {
        problem.code != Code::OrphanIndex || !unreadable.contains(&offset_of(problem))
    });
    !unreadable.is_empty()
}

/// Of a log that is being written, takes what is natural at its end for notices.
fn excuse_unfinished(report: &mut PartitionReport, inventory: &Inventory) {
    let Some(last) = inventory.segments.values().next_back() else { return };
    let is_last = |file: &str| {
        let roles = [FileRole::OffsetIndex, FileRole::TimeIndex, FileRole::TxnIndex];
        file == last.log || roles.iter().any(|role| last.index(*role) == Some(file))
    };
    let nothing_lost = !report.survivors_after.any();
    let (unfinished, rest) = report.problems.drain(..).partition(|problem| match problem.code {
        Code::TornBatch | Code::ZeroTail => is_last(&problem.file) && nothing_lost,
        Code::IndexZeroPadding
        | Code::TimeindexZeroPadding
        | Code::TimeindexShort
        | Code::IndexBeyondLog
        | Code::TimeindexMismatch
        | Code::TxnindexMismatch => is_last(&problem.file),
        Code::EpochBeyondEnd | Code::StraySnapshot => true,
        _ => false,
    });
    report.problems = rest;
    report.notices.extend::<Vec<Problem>>(unfinished);
    for notice in &mut report.notices {
        notice.severity = Severity::Notice;
    }
}

/// What is known of a partition while its segments are walked.
pub(super) struct Walk<'w> {
    pub(super) storage: &'w dyn Storage,
    pub(super) dir: &'w Path,
    pub(super) options: &'w VerifyOptions<'w>,
    pub(super) findings: Findings,
    pub(super) report: PartitionReport,
    /// `None` when records are not looked at.
    pub(super) checker: Option<BatchChecker>,
    pub(super) lists: Lists,
    pub(super) producers: Producers<'w>,
    pub(super) epochs: EpochCheck,
    /// The largest leader epoch so far.
    pub(super) largest_epoch: i32,
    /// Behind everything so far.
    pub(super) next_offset: i64,
    /// Where the log starts.
    pub(super) log_start_offset: i64,
    /// A log could not be read: what else speaks of its offsets cannot be judged.
    pub(super) is_blind: bool,
}

impl<'w> Walk<'w> {
    pub(super) fn begin(
        storage: &'w dyn Storage,
        dir: &'w Path,
        inventory: &Inventory,
        options: &'w VerifyOptions<'w>,
    ) -> Self {
        let mut findings = Findings::default();
        let bases: BTreeSet<i64> = inventory.segments.keys().copied().collect();
        let first_base = bases.first().copied();
        let asked = options.log_start_offset.unwrap_or(0);
        let log_start_offset = first_base.map_or(asked, |base| base.max(asked));
        let clock = (options.now_ms, options.producer_id_expiration_ms);
        let producers = Producers::begin(
            storage,
            dir,
            clock,
            log_start_offset,
            &bases,
            &inventory.snapshots,
            &mut findings,
        );
        let is_deep = options.depth == Depth::Records;
        Walk {
            storage,
            dir,
            options,
            findings,
            report: PartitionReport::new(dir.to_path_buf()),
            checker: is_deep.then(|| BatchChecker::new(options.max_decompressed_bytes)),
            lists: Lists::new(if is_deep { options.records_listed_max } else { 0 }),
            producers,
            epochs: EpochCheck::none(),
            largest_epoch: NO_LEADER_EPOCH,
            next_offset: first_base.unwrap_or(log_start_offset),
            log_start_offset,
            is_blind: false,
        }
    }

    pub(super) fn read_epochs(&mut self) {
        let start = (self.log_start_offset, self.options.log_start_may_have_moved);
        self.epochs = EpochCheck::read(self.storage, self.dir, start, &mut self.findings);
    }

    fn check_name(&mut self) {
        let name = folder_name(self.dir);
        match FolderName::parse(&name) {
            Some(folder) => self.report.topic_partition = Some((folder.topic, folder.partition)),
            None => {
                let detail = "no name of a partition's directory: Kafka would not start";
                let (code, severity) = (Code::BadName, Severity::Refused);
                self.findings.add(code, severity, &name, Place::FILE, detail);
            }
        }
    }

    pub(super) fn check_metadata(&mut self) {
        let bytes = match self.storage.read(&self.dir.join(METADATA_FILE), METADATA_SIZE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == Kind::NotFound => return,
            Err(error) if error.kind() == Kind::Limit => Vec::new(),
            Err(error) => return self.findings.unreadable(METADATA_FILE, &error),
        };
        let problem = match (parse_partition_metadata(&bytes), self.options.topic_id) {
            (Err(error), _) => Some((Code::PartitionMetadata, error.to_string())),
            (Ok(found), Some(wanted)) if found != wanted => {
                self.report.topic_id = Some(found);
                Some((Code::TopicIdMismatch, format!("the topic id is {found}, not {wanted}")))
            }
            (Ok(found), _) => {
                self.report.topic_id = Some(found);
                None
            }
        };
        if let Some((code, detail)) = problem {
            self.findings.add(code, Severity::Refused, METADATA_FILE, Place::FILE, detail);
        }
    }

    pub(super) fn walk_segments(&mut self, inventory: &Inventory) -> Result<()> {
        let first_base = inventory.segments.keys().next().copied();
        let last_base = inventory.segments.keys().next_back().copied();
        let mut damaged = false;
        for (&base, files) in &inventory.segments {
            self.report.segments += 1;
            self.report.size_bytes = self.report.size_bytes.saturating_add(files.log_size_bytes);
            if damaged {
                let survivors = segment::count_survivors(self, files)?;
                self.report.survivors_after.add(survivors);
                continue;
            }
            if base > self.next_offset {
                self.producers.is_partial = true;
            }
            self.producers.reach(base, &mut self.findings);
            let is_bare = !inventory.snapshots.contains(&base);
            if Some(base) == last_base && first_base < last_base && is_bare {
                self.producers.missing(base, &mut self.findings);
            }
            let next_base = inventory.next_base(base);
            damaged = segment::check_segment(self, files, next_base)? == ControlFlow::Break(());
        }
        self.report.log_end_offset = self.next_offset;
        let unknown_end = damaged || self.is_blind;
        if !unknown_end {
            self.producers.finish(self.next_offset, &mut self.findings);
        }
        let epochs = std::mem::replace(&mut self.epochs, EpochCheck::none());
        self.report.epochs = epochs.finish(self.next_offset, unknown_end, &mut self.findings);
        Ok(())
    }

    /// A log cannot be read.
    pub(super) fn blind(&mut self, log: &str, error: &Error) {
        self.findings.unreadable(log, error);
        self.is_blind = true;
    }

    /// A log cannot be read to its end; only a check that is cancelled ends there.
    pub(super) fn take_error(&mut self, log: &str, error: Error) -> Result<()> {
        if error.kind() == Kind::Cancelled {
            return Err(error);
        }
        self.blind(log, &error);
        Ok(())
    }

    /// A timestamp in the future is no damage, but retention by time will not remove its segment
    /// before then.
    pub(super) fn note_future(&mut self, log: &str, max_timestamp: i64) {
        if max_timestamp > self.options.now_ms.saturating_add(FUTURE_MS) {
            let detail = format!(
                "the largest timestamp {max_timestamp} lies in the future: retention by time keeps this segment, and all \
                 behind it, until then"
            );
            let (code, severity) = (Code::FutureTimestamp, Severity::Notice);
            self.findings.add(code, severity, log, Place::FILE, detail);
        }
    }

    /// Lists an aborted transaction, as long as there are few.
    pub(super) fn list_aborted(&mut self, txn: AbortedTxn) {
        if let Some(list) = &mut self.report.aborted {
            if list.len() < self.options.aborted_listed_max {
                list.push(txn);
            } else {
                self.report.aborted = None;
            }
        }
    }

    pub(super) fn finish(mut self) -> PartitionReport {
        let end = self.next_offset;
        if self.log_start_offset > end {
            let detail = format!("the log ends at {end}");
            let place = Place { position: None, offset: Some(self.log_start_offset) };
            let name = folder_name(self.dir);
            self.findings.add(Code::LogStartBeyondEnd, Severity::Corrupt, &name, place, detail);
        }
        let state = &self.producers.state;
        let open = state.ongoing().map(|(first_offset, producer_id)| OpenTransaction {
            producer_id,
            producer_epoch: state.producers().get(producer_id).map_or(-1, |p| p.producer_epoch),
            first_offset,
        });
        let mut report = self.report;
        report.open = open.collect();
        report.producers = state.producers().entries().to_vec();
        report.log_start_offset = self.log_start_offset;
        report.last_stable_offset = state.first_undecided_offset().unwrap_or(end);
        if let Some(oldest) = report.open.first() {
            let detail = format!(
                "open transactions: {}; the oldest, of producer {}, began at offset {}, and read-committed \
                 readers wait there",
                report.open.len(),
                oldest.producer_id,
                oldest.first_offset
            );
            let place = Place { position: None, offset: Some(oldest.first_offset) };
            let name = folder_name(self.dir);
            self.findings.add(Code::OpenTransaction, Severity::Notice, &name, place, detail);
        }
        if let (Depth::Records, Some(aborted)) = (self.options.depth, &report.aborted) {
            report.lists =
                self.lists.finish(aborted, self.log_start_offset, report.last_stable_offset);
        }
        (report.problems, report.notices) = self.findings.finish();
        report
    }
}

/// The last part of a path, also of `.` and the like.
pub(super) fn folder_name(dir: &Path) -> String {
    let real = || std::path::absolute(dir).unwrap_or_else(|_| PathBuf::from(dir));
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| real().file_name().unwrap_or_default().to_string_lossy().into_owned())
}
