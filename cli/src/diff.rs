//! `siltstone diff`: where two replicas part.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use siltstone::dir::files::{CLEANER_FILE, read_offsets};
use siltstone::log::compare::{BatchMark, Comparison, Parting, Replica};
use siltstone::log::{LogFacts, compare_logs};
use siltstone::{Error, Kind, Result};

use crate::Outcome;
use crate::output::{format_count, print_json, stdout};
use crate::progress::Progress;
use crate::report::problem_json;
use crate::session::{Session, complain};
use crate::target::{PartitionDir, Target};

/// Compare two replicas and name the first offset at which they part.
///
/// A and B are both partition directories, or both log directories (of two brokers), whose
/// partitions are then compared by name. Batches are compared by base offset, leader epoch and
/// checksum, so that segments may begin where they like. What only one replica has at its start
/// (the other has deleted it) or at its end (the other is behind) is no difference.
///
/// Each broker compacts for itself, so that replicas of a compacted topic differ in what is
/// cleaned. Where a cleaner-offset-checkpoint beside a partition names it, the comparison begins
/// there, or where --from says.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone diff /mnt/broker1/orders-0 /mnt/broker2/orders-0
      two replicas of a partition
  siltstone diff --json /mnt/broker1 /mnt/broker2 | jq -r 'select(.result == \"parted\") | .name'
      the partitions of two brokers that have parted

Exit codes: 0 equal on the common range, 1 they part, 2 could not look (also: damage
before the end of the common range, or no offset in common).")]
pub(crate) struct DiffArgs {
    /// The one replica, or log directory.
    #[arg(value_name = "A")]
    a: PathBuf,

    /// The other one.
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Begin at this offset, and not where the later replica begins or the cleaner has come to.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(0..))]
    from: Option<i64>,

    /// One JSON object a line: `type` is pair or only.
    #[arg(long)]
    json: bool,
}

/// Two directories of the same partition.
struct Pair {
    name: String,
    a: PathBuf,
    b: PathBuf,
}

/// What there is to compare.
#[derive(Default)]
struct Pairs {
    both: Vec<Pair>,
    /// Partitions that only one side has: its letter, and the path.
    only: Vec<(&'static str, PartitionDir)>,
}

/// Compares.
pub(crate) fn run(args: &DiffArgs, session: &Session) -> std::io::Result<Outcome> {
    let pairs = match Pairs::find(session, &args.a, &args.b) {
        Ok(pairs) => pairs,
        Err(error) => {
            complain(&error);
            return Ok(Outcome::CouldNotLook);
        }
    };
    let total = pairs.both.iter().map(|pair| pair.size_bytes(session)).sum();
    let progress = Progress::start("compared", total, session.quiet);
    let mut outcome = Outcome::Fine;
    let mut out = stdout();
    for pair in &pairs.both {
        let from = args.from.unwrap_or_else(|| pair.cleaned_to(session));
        let compared =
            compare_logs(session.storage(), &pair.a, &pair.b, from, session.maps, &progress);
        match compared {
            Ok(compared) => {
                outcome = outcome.max(outcome_of(&compared));
                progress.suspend(|| pair.print(&mut out, args.json, &compared))?;
            }
            Err(error) => {
                progress.suspend(|| complain(&error.context(pair.name.as_str())));
                outcome = Outcome::CouldNotLook;
            }
        }
    }
    progress.finish();
    for (side, partition) in &pairs.only {
        let (name, path) = (&partition.name, partition.path.to_string_lossy());
        if args.json {
            let line = json!({"type": "only", "name": name, "in": side, "path": path});
            print_json(&mut out, &line)?;
        } else {
            writeln!(out, "{name}: only in {}", if *side == "a" { "A" } else { "B" })?;
        }
    }
    out.flush()?;
    Ok(outcome)
}

fn outcome_of(compared: &Comparison) -> Outcome {
    if compared.parting.is_some() {
        Outcome::Problems
    } else if compared.hindrance.is_some() || compared.is_disjoint() {
        Outcome::CouldNotLook
    } else {
        Outcome::Fine
    }
}

impl Pairs {
    fn find(session: &Session, a: &Path, b: &Path) -> Result<Pairs> {
        let storage = session.storage();
        let targets = (Target::classify(storage, a)?, Target::classify(storage, b)?);
        let mut pairs = Pairs::default();
        match targets {
            (Target::Partition(a), Target::Partition(b)) => {
                pairs.both.push(Pair { name: PartitionDir::at(&a).name, a, b });
            }
            (a @ Target::LogDir(_), b @ Target::LogDir(_)) => {
                let mut others: BTreeMap<String, PartitionDir> = live(session, &b)?
                    .into_iter()
                    .map(|partition| (partition.name.clone(), partition))
                    .collect();
                for partition in live(session, &a)? {
                    match others.remove(&partition.name) {
                        Some(other) => pairs.both.push(Pair {
                            name: partition.name,
                            a: partition.path,
                            b: other.path,
                        }),
                        None => pairs.only.push(("a", partition)),
                    }
                }
                pairs.only.extend(others.into_values().map(|partition| ("b", partition)));
            }
            _ => {
                let why = "A and B must both be partition directories, or both log directories";
                return Err(Error::new(Kind::InvalidArgument, why));
            }
        }
        Ok(pairs)
    }
}

fn live(session: &Session, target: &Target) -> Result<Vec<PartitionDir>> {
    let all = PartitionDir::of_target(session.storage(), target)?;
    Ok(all.into_iter().filter(PartitionDir::is_live).collect())
}

impl Pair {
    fn size_bytes(&self, session: &Session) -> u64 {
        let size = |path| {
            LogFacts::read(session.storage(), path).map_or(0, |facts| facts.log_size_bytes())
        };
        size(&self.a).saturating_add(size(&self.b))
    }

    /// How far one of the cleaners has come, by the checkpoints beside the directories.
    fn cleaned_to(&self, session: &Session) -> i64 {
        let of = |path: &Path| {
            let folder = PartitionDir::at(path).folder?;
            let checkpoint = read_offsets(session.storage(), path.parent()?, CLEANER_FILE).ok()?;
            checkpoint.get(&folder.topic, folder.partition)
        };
        of(&self.a).max(of(&self.b)).unwrap_or(0)
    }

    fn print(
        &self,
        out: &mut dyn Write,
        is_json: bool,
        compared: &Comparison,
    ) -> std::io::Result<()> {
        if is_json {
            return print_json(out, &self.to_json(compared));
        }
        writeln!(out, "{}: {}", self.name, summary(compared))?;
        if let Some(parting) = &compared.parting {
            writeln!(out, "  A has {}", mark_text(parting.a))?;
            writeln!(out, "  B has {}", mark_text(parting.b))?;
        }
        for (name, replica) in [("A", &compared.a), ("B", &compared.b)] {
            let (offsets, gaps) = (&replica.offsets, replica.has_gaps);
            let gaps =
                if gaps { ", with offsets missing between batches (compaction)" } else { "" };
            writeln!(out, "  {name}: offsets {} to {}{gaps}", offsets.start, offsets.end)?;
            if let Some(problem) = &replica.problem {
                writeln!(out, "  {name}: {problem}")?;
            }
        }
        Ok(())
    }

    fn to_json(&self, compared: &Comparison) -> Value {
        json!({
            "type": "pair",
            "name": self.name,
            "result": match outcome_of(compared) {
                Outcome::Fine => "equal",
                Outcome::Problems => "parted",
                Outcome::CouldNotLook => "not_compared",
            },
            "same_batches": compared.same_batches,
            "same_from": compared.same_from,
            "same_to": compared.same_to,
            "same_epoch": compared.same_epoch,
            "parting": compared.parting.map(|parting: Parting| json!({
                "offset": parting.offset,
                "a": parting.a.map(mark_json),
                "b": parting.b.map(mark_json),
            })),
            "a": replica_json(&self.a, &compared.a),
            "b": replica_json(&self.b, &compared.b),
        })
    }
}

fn summary(compared: &Comparison) -> String {
    let same = format!("{} batches are the same", format_count(compared.same_batches));
    let from = format!("from offset {}", compared.same_from);
    let epoch = match compared.same_epoch {
        Some(epoch) if epoch >= 0 => format!(", epoch {epoch}"),
        _ => String::new(),
    };
    match &compared.parting {
        Some(parting) => {
            let to = compared.same_to;
            format!(
                "they part at offset {}; {same}, {from} up to offset {to}{epoch}",
                parting.offset
            )
        }
        None if compared.hindrance.is_some() => {
            format!("not compared behind offset {}; {same}", compared.same_to)
        }
        None if compared.is_disjoint() => {
            format!(
                "not compared: from offset {} on they have nothing in common",
                compared.same_from
            )
        }
        None => format!("equal; {same}, {from} up to offset {}{epoch}", compared.same_to),
    }
}

fn mark_text(mark: Option<BatchMark>) -> String {
    mark.map_or_else(
        || "nothing".to_owned(),
        |mark| {
            format!(
                "offsets {}..{} of epoch {}, {} bytes, checksum {:#010x}",
                mark.base_offset, mark.last_offset, mark.leader_epoch, mark.size_bytes, mark.crc
            )
        },
    )
}

fn mark_json(mark: BatchMark) -> Value {
    json!({
        "base_offset": mark.base_offset,
        "last_offset": mark.last_offset,
        "leader_epoch": mark.leader_epoch,
        "crc": mark.crc,
        "size_bytes": mark.size_bytes,
    })
}

fn replica_json(path: &Path, replica: &Replica) -> Value {
    json!({
        "path": path.to_string_lossy(),
        "first_offset": replica.offsets.start,
        "end_offset": replica.offsets.end,
        "has_gaps": replica.has_gaps,
        "problem": replica.problem.as_ref().map(problem_json),
    })
}
