//! What must be done to a partition? Reads, and changes nothing that Kafka looks at.

use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::io::Storage;
use crate::log::inventory::{EPOCH_FILE, Inventory, METADATA_FILE};
use crate::log::progress::Progress;
use crate::log::recover::options::RecoverOptions;
use crate::log::recover::plan::{Plan, Refusal};
use crate::log::recover::walk::{Need, Step, Walk};
use crate::log::topic_id::read_topic_id;
use crate::problem::{Code, Problem, Severity};
use crate::state::LeaderEpochs;

/// More than any checkpoint of epochs has.
const EPOCH_BYTES_MAX: u64 = 64 << 20;
/// A walk that must begin anew reads strictly more each time; this many are more than there are
/// reasons.
const WALKS_MAX: usize = 16;

/// Analyses the partition in `dir`.
///
/// # Errors
/// Only when it cannot look: what is wrong with the bytes is in the plan.
pub fn analyse(
    storage: &dyn Storage,
    dir: &Path,
    options: &RecoverOptions,
    progress: &dyn Progress,
) -> Result<Plan> {
    let inventory = match Inventory::read(storage, dir) {
        Ok(inventory) => inventory,
        Err(error) if error.kind() == Kind::Corrupt => {
            return Ok(refused(dir, Vec::new(), Code::Leftover, error.to_string()));
        }
        Err(error) => return Err(error),
    };
    let mut problems = inventory.problems.clone();
    if let Some(refusal) = refusal_by_names(storage, &inventory, options, &mut problems)? {
        return Ok(Plan {
            dir: dir.to_path_buf(),
            refusal: Some(refusal),
            problems,
            ..Plan::default()
        });
    }
    let epochs = read_epochs(storage, &inventory, &mut problems)?;
    let mut need = Need::first(&inventory, options, epochs.is_some());
    for _ in 0..WALKS_MAX {
        let read = if need.epochs { None } else { epochs.clone() };
        let walk = Walk::new(storage, &inventory, options, progress, read)?;
        match walk.run(&need)? {
            Step::Done(plan) => {
                let mut plan = *plan;
                plan.problems.splice(0..0, problems);
                return Ok(plan);
            }
            Step::Again(more) => {
                if more.epochs && !need.epochs {
                    problems.push(Problem {
                        code: Code::EpochMismatch,
                        severity: Severity::Repairable,
                        file: EPOCH_FILE.to_owned(),
                        position: None,
                        offset: None,
                        detail: "not the epochs that the batches have".to_owned(),
                    });
                }
                need = more;
            }
        }
    }
    Err(Error::corrupt("the directory gives another answer each time it is read").in_file(dir))
}

/// A plan that leaves the partition as it is.
fn refused(dir: &Path, problems: Vec<Problem>, code: Code, reason: String) -> Plan {
    let refusal = Some(Refusal { code, reason, loss: None });
    Plan { dir: dir.to_path_buf(), refusal, problems, ..Plan::default() }
}

/// Why the names and the topic id alone forbid to touch the partition.
fn refusal_by_names(
    storage: &dyn Storage,
    inventory: &Inventory,
    options: &RecoverOptions,
    problems: &mut Vec<Problem>,
) -> Result<Option<Refusal>> {
    let grave = |problem: &&Problem| problem.severity >= Severity::Corrupt;
    if let Some(problem) = problems.iter().find(grave) {
        let reason = format!("{problem}; move the file away if it does not belong here");
        return Ok(Some(Refusal { code: problem.code, reason, loss: None }));
    }
    if !inventory.has_metadata_file {
        return Ok(None);
    }
    let (code, detail) = match read_topic_id(storage, &inventory.dir) {
        Ok(found) => match found.zip(options.topic_id) {
            Some((found, wanted)) if wanted != found => {
                (Code::TopicIdMismatch, format!("the topic id is {found}, not {wanted}"))
            }
            _ => return Ok(None),
        },
        Err(error) if matches!(error.kind(), Kind::Corrupt | Kind::Unsupported | Kind::Limit) => {
            (Code::PartitionMetadata, format!("cannot be read: {}", error.message()))
        }
        Err(error) => return Err(error),
    };
    let reason = format!(
        "{METADATA_FILE}: {detail}; so this is not known to be the log that is meant. Restore the file, or copy the \
         partition from another replica"
    );
    problems.push(Problem {
        code,
        severity: Severity::Refused,
        file: METADATA_FILE.to_owned(),
        position: None,
        offset: None,
        detail,
    });
    Ok(Some(Refusal { code, reason, loss: None }))
}

/// The leader epochs of the checkpoint; `None` when it is missing or cannot be trusted.
fn read_epochs(
    storage: &dyn Storage,
    inventory: &Inventory,
    problems: &mut Vec<Problem>,
) -> Result<Option<LeaderEpochs>> {
    if !inventory.has_epoch_file {
        return Ok(None);
    }
    let bytes = match storage.read(&inventory.dir.join(EPOCH_FILE), EPOCH_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == Kind::Limit => Vec::from(*b"?"),
        Err(error) => return Err(error),
    };
    let has_batches = inventory.segments.values().any(|segment| segment.log_size_bytes > 0);
    let mut wrong = |code, detail: String| {
        problems.push(Problem {
            code,
            severity: Severity::Repairable,
            file: EPOCH_FILE.to_owned(),
            position: None,
            offset: None,
            detail,
        });
        Ok(None)
    };
    if bytes.is_empty() && has_batches {
        // Kafka makes the file empty and fills it with the first batch: an empty one beside batches
        // was lost.
        return wrong(Code::EpochFile, "empty, but there are batches".to_owned());
    }
    match crate::state::checkpoint::parse_epochs(&bytes) {
        Ok(entries) => {
            let rising = entries.windows(2).all(|pair| match pair {
                [a, b] => a.epoch < b.epoch && a.start_offset < b.start_offset,
                _ => true,
            });
            if !rising {
                return wrong(
                    Code::EpochOrder,
                    "epochs or their start offsets do not rise".to_owned(),
                );
            }
            match LeaderEpochs::from_entries(&entries) {
                Ok(epochs) => Ok(Some(epochs)),
                Err(error) => wrong(Code::EpochFile, error.message().to_owned()),
            }
        }
        Err(error) => wrong(Code::EpochFile, error.message().to_owned()),
    }
}

impl Need {
    /// What Kafka would read, and what is missing.
    fn first(inventory: &Inventory, options: &RecoverOptions, epochs_are_read: bool) -> Self {
        let first = inventory.segments.keys().next().copied();
        let mut need = Need { epochs: !epochs_are_read, ..Need::default() };
        if !options.clean_shutdown {
            // spec: segments 5. The segment that holds the recovery point, and all behind it.
            let floor = inventory.segments.range(..=options.recovery_point).next_back();
            need.reset_from = floor.map(|(base, _)| *base).or(first);
            need.tail_from = need.reset_from;
        }
        if options.all {
            need.tail_from = first;
        }
        if let Some(to) = options.truncate_to {
            let floor =
                inventory.segments.range(..=to).next_back().map(|(base, _)| *base).or(first);
            need.tail_from = need.tail_from.min(floor).or(floor);
        }
        need
    }
}
