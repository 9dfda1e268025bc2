//! `siltstone stat`: partitions in numbers.

mod print;

use std::path::PathBuf;

use clap::Args;
use siltstone::dir::files::LOCK_FILE;
use siltstone::log::{LogFacts, LogStats};
use siltstone::problem::Code;
use siltstone::{Error, Kind, Result};

use crate::Outcome;
use crate::given::distinct;
use crate::progress::Progress;
use crate::session::{Session, complain};
use crate::side_by_side::side_by_side;
use crate::target::{PartitionDir, Target};

/// Count what is in partitions: batches, records, codecs, times, producers, transactions, epochs.
///
/// The header and checksum of every batch is read; records are counted as the headers count them,
/// and how well they are compressed is measured on one batch in every 4 MiB. Deleted and stray
/// partitions are left out.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone stat /var/lib/kafka/orders-0
      one partition, in full
  siltstone stat /disk1/kafka /disk2/kafka
      a line for each partition, and the sum
  siltstone stat --json /var/lib/kafka | jq -c 'select(.name) | [.name, .producers]'
      how many producers each partition knows

Frames and checksums are checked, whether batches fit together is for `siltstone verify` to say.

Exit codes: 0 nothing wrong there, 1 damage, 2 something could not be looked at.")]
pub(crate) struct StatArgs {
    /// Log directories (entries of log.dirs) or partition directories.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// One JSON object a line: `type` is partition, or total at the end.
    #[arg(long)]
    json: bool,

    /// Threads to work with; by default one for each processor.
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// One partition in numbers.
struct PartitionStats {
    dir: PartitionDir,
    stats: LogStats,
}

/// Counts all paths.
pub(crate) fn run(args: &StatArgs, session: &Session) -> std::io::Result<Outcome> {
    let (partitions, mut outcome) = gather(args, session);
    let size = |partition: &PartitionDir| {
        let facts = LogFacts::read(session.storage(), &partition.path);
        facts.map_or(0, |facts| facts.log_size_bytes())
    };
    let progress = Progress::start("counted", partitions.iter().map(size).sum(), session.quiet);
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.map_or(available, usize::from).min(partitions.len());
    let mut counted = Vec::new();
    for (dir, stats) in count_all(session, partitions, threads, &progress) {
        match stats {
            Ok(stats) => counted.push(PartitionStats { dir, stats }),
            Err(error) => {
                complain(&error.context(dir.name.as_str()));
                outcome = Outcome::CouldNotLook;
            }
        }
    }
    progress.finish();
    for partition in &counted {
        outcome = outcome.max(partition.outcome(session));
    }
    print::print(args.json, &counted)?;
    Ok(outcome)
}

fn gather(args: &StatArgs, session: &Session) -> (Vec<PartitionDir>, Outcome) {
    let storage = session.storage();
    let (mut partitions, mut outcome) = (Vec::new(), Outcome::Fine);
    for path in &distinct(&args.paths) {
        let found = Target::classify(storage, path).and_then(|target| match target {
            Target::File { path, .. } => {
                let why = "a file: name its partition directory";
                Err(Error::new(Kind::InvalidArgument, why).in_file(&path))
            }
            target => PartitionDir::of_target(storage, &target),
        });
        match found {
            Ok(found) => partitions.extend(found.into_iter().filter(PartitionDir::is_live)),
            Err(error) => {
                complain(&error);
                outcome = Outcome::CouldNotLook;
            }
        }
    }
    (partitions, outcome)
}

/// Counts the partitions side by side; gives them in their order.
fn count_all(
    session: &Session,
    partitions: Vec<PartitionDir>,
    threads: usize,
    progress: &Progress,
) -> Vec<(PartitionDir, Result<LogStats>)> {
    let count = |partition: &PartitionDir| {
        LogStats::read(session.storage(), &partition.path, session.maps, progress)
    };
    let stats = side_by_side(threads, &partitions, count);
    partitions.into_iter().zip(stats).collect()
}

impl PartitionStats {
    fn outcome(&self, session: &Session) -> Outcome {
        let is_running = || {
            let lock = self.dir.path.parent().map(|dir| dir.join(LOCK_FILE));
            lock.is_some_and(|lock| session.storage().is_locked(&lock).unwrap_or(false))
        };
        let each = self.stats.problems.iter().map(|problem| match problem.code {
            // Beside a running broker, an unfinished tail is no damage.
            Code::TornBatch | Code::ZeroTail if is_running() => Outcome::Fine,
            Code::Unreadable => Outcome::CouldNotLook,
            _ => Outcome::Problems,
        });
        each.max().unwrap_or_default()
    }
}
