//! Does `leader-epoch-checkpoint` say what the batches say?
//!
//! It is right when it gives every batch the epoch that the batch has. Entries for epochs without a
//! batch are as good: a leader writes one as soon as it leads.

use super::findings::{Findings, Place};
use crate::error::{Kind, Result};
use crate::io::Storage;
use crate::log::inventory::EPOCH_FILE;
use crate::problem::{Code, Severity};
use crate::record::BatchHeader;
use crate::state::checkpoint::parse_epochs;
use crate::state::{EpochEntry, LeaderEpochs};

/// Kafka writes a line of at most 31 bytes for each epoch; nobody has had a million leaders.
const FILE_SIZE_MAX: u64 = 32 << 20;

/// The epochs of a log beside those of its file.
#[derive(Debug)]
pub(super) struct EpochCheck {
    file: EpochFile,
    /// As recovery would assign them.
    derived: LeaderEpochs,
    log_start_offset: i64,
    /// The log may start later than that, and the file be right not to go back so far.
    may_have_moved: bool,
    /// The first batch of which the file says another epoch.
    mismatch: Option<Mismatch>,
    /// The first batch of which the file says none.
    untold: Option<Mismatch>,
}

#[derive(Debug)]
enum EpochFile {
    Missing,
    /// Nothing can be taken from it; that was told.
    Unusable,
    /// It has no bytes, as before the first epoch.
    Empty,
    Read(LeaderEpochs),
}

#[derive(Clone, Copy, Debug)]
struct Mismatch {
    offset: i64,
    epoch: i32,
    told: Option<i32>,
}

impl EpochCheck {
    /// Reads the file of a partition.
    pub(super) fn read(
        storage: &dyn Storage,
        dir: &std::path::Path,
        (log_start_offset, may_have_moved): (i64, bool),
        findings: &mut Findings,
    ) -> Self {
        let file = match storage.read(&dir.join(EPOCH_FILE), FILE_SIZE_MAX) {
            Ok(bytes) => read_file(&bytes, findings),
            Err(error) if error.kind() == Kind::NotFound => EpochFile::Missing,
            Err(error) if error.kind() == Kind::Limit => {
                let detail = "larger than any leader epoch checkpoint";
                findings.add(
                    Code::EpochFile,
                    Severity::Repairable,
                    EPOCH_FILE,
                    Place::FILE,
                    detail,
                );
                EpochFile::Unusable
            }
            Err(error) => {
                findings.unreadable(EPOCH_FILE, &error);
                EpochFile::Unusable
            }
        };
        let derived = LeaderEpochs::new();
        EpochCheck { file, derived, log_start_offset, may_have_moved, ..EpochCheck::none() }
    }

    /// Of a log without a file and without batches.
    pub(super) fn none() -> Self {
        EpochCheck {
            file: EpochFile::Missing,
            derived: LeaderEpochs::new(),
            log_start_offset: 0,
            may_have_moved: false,
            mismatch: None,
            untold: None,
        }
    }

    /// Takes note of a batch, whose offsets are in order.
    #[inline]
    pub(super) fn batch(&mut self, header: &BatchHeader) {
        if header.magic < 2 {
            // spec: producer-state B5. A broker that appends in an old format forgets all epochs.
            self.untold = None;
            return;
        }
        // Batches before the log start are deleted, and the file has forgotten their epochs.
        if header.leader_epoch < 0 || header.last_offset() < self.log_start_offset {
            return;
        }
        let (epoch, offset) = (header.leader_epoch, header.base_offset.max(self.log_start_offset));
        // A negative offset is no epoch's start, and a problem of its own.
        let _ = self.derived.assign_recovered(epoch, offset);
        if self.mismatch.is_none()
            && let EpochFile::Read(file) = &self.file
        {
            let told = file.epoch_for_offset(offset);
            let mismatch = Mismatch { offset, epoch, told };
            match told {
                Some(told) if told == epoch => {}
                Some(_) => self.mismatch = Some(mismatch),
                None if self.may_have_moved && is_before(file, epoch) => {}
                None => self.untold = self.untold.or(Some(mismatch)),
            }
        }
    }

    /// Judges the file; gives its entries when it is right, else those of the batches.
    pub(super) fn finish(
        self,
        log_end_offset: i64,
        unknown_end: bool,
        findings: &mut Findings,
    ) -> Vec<EpochEntry> {
        let mut problem = |code, offset, detail: String| {
            let place = Place { position: None, offset };
            findings.add(code, Severity::Repairable, EPOCH_FILE, place, detail);
        };
        let derived = self.derived;
        let is_told = !derived.entries().is_empty();
        match self.file {
            EpochFile::Missing if is_told => {
                problem(
                    Code::EpochMissing,
                    None,
                    "there is no file, but the batches have epochs".into(),
                );
            }
            EpochFile::Empty if is_told => {
                problem(
                    Code::EpochFile,
                    None,
                    "the file is empty, but the batches have epochs".into(),
                );
            }
            EpochFile::Missing | EpochFile::Empty | EpochFile::Unusable => {}
            EpochFile::Read(file) => {
                let beyond =
                    file.entries().iter().find(|entry| entry.start_offset > log_end_offset);
                let mut is_right = true;
                if let Some(entry) = beyond.filter(|_| !unknown_end) {
                    is_right = false;
                    let EpochEntry { epoch, start_offset } = *entry;
                    problem(
                        Code::EpochBeyondEnd,
                        Some(start_offset),
                        format!(
                            "epoch {epoch} starts at {start_offset}, but the log ends at {log_end_offset}"
                        ),
                    );
                }
                if let Some(Mismatch { offset, epoch, told }) = self.mismatch.or(self.untold) {
                    is_right = false;
                    let told = told.map_or("none".to_owned(), |told| told.to_string());
                    problem(
                        Code::EpochMismatch,
                        Some(offset),
                        format!(
                            "the batch at offset {offset} has epoch {epoch}, the file says {told}"
                        ),
                    );
                }
                if is_right {
                    let entries = file.entries().iter().copied();
                    return entries.filter(|entry| entry.start_offset <= log_end_offset).collect();
                }
            }
        }
        derived.entries().to_vec()
    }
}

/// Whether an epoch may have been forgotten in front of the ones that the file has.
fn is_before(file: &LeaderEpochs, epoch: i32) -> bool {
    file.earliest().is_some_and(|earliest| epoch <= earliest.epoch)
}

fn read_file(bytes: &[u8], findings: &mut Findings) -> EpochFile {
    if bytes.is_empty() {
        return EpochFile::Empty;
    }
    let mut problem = |code, detail: String| {
        findings.add(code, Severity::Repairable, EPOCH_FILE, Place::FILE, detail);
    };
    let read: Result<_> = parse_epochs(bytes)
        .and_then(|lines| LeaderEpochs::from_entries(&lines).map(|epochs| (lines, epochs)));
    let (lines, epochs) = match read {
        Ok(read) => read,
        Err(error) => {
            problem(Code::EpochFile, error.to_string());
            return EpochFile::Unusable;
        }
    };
    let falls = lines.iter().zip(lines.iter().skip(1)).find(|(before, after)| {
        after.epoch <= before.epoch || after.start_offset <= before.start_offset
    });
    if let Some((before, after)) = falls {
        problem(
            Code::EpochOrder,
            format!(
                "epoch {} from offset {} stands behind epoch {} from offset {}",
                after.epoch, after.start_offset, before.epoch, before.start_offset
            ),
        );
        return EpochFile::Unusable;
    }
    EpochFile::Read(epochs)
}
