//! `siltstone txns`: transactions that are open, that hang, and that were aborted.

mod judge;
mod print;

use std::path::{Path, PathBuf};

use clap::Args;

use siltstone::index::AbortedTxn;
use siltstone::log::{LogFacts, OpenTransaction, Transactions, read_transactions};
use siltstone::problem::Code;
use siltstone::{Error, Kind, Result};

use crate::given::distinct;
use crate::progress::Progress;
use crate::session::{Session, complain};
use crate::target::{PartitionDir, Target};
use crate::{Outcome, time};
use judge::{Judge, Verdict};

/// List open, hanging and aborted transactions.
///
/// An open transaction holds back the last stable offset, and with it every consumer that reads
/// committed data. It hangs when its coordinator does not know of it: nobody will ever end it. To
/// tell, the partitions of __transaction_state in the same log directories are read.
///
/// Open transactions are found from the newest producer snapshot and the batches behind it, aborted
/// ones from the transaction indexes; --from-start reads all batches instead, where these files are
/// not to be trusted. Ages are by the timestamps in the log.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone txns /disk1/kafka /disk2/kafka
      every open transaction of a broker, and whether it hangs
  siltstone txns --aborted /var/lib/kafka/orders-0
      the aborted ones of one partition, too
  siltstone txns --json /var/lib/kafka | jq -c 'select(.type == \"open\" and .age_ms > 900000)'
      open for more than 15 minutes

Exit codes: 0 nothing hangs, 1 a transaction hangs or a file is damaged,
2 something could not be looked at.")]
pub(crate) struct TxnsArgs {
    /// Log directories (entries of log.dirs) or partition directories.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// One JSON object a line: `type` is partition, open, aborted or coordinators.
    #[arg(long)]
    json: bool,

    /// List aborted transactions, too.
    #[arg(long, short)]
    aborted: bool,

    /// Read all batches, and neither snapshots nor transaction indexes.
    #[arg(long)]
    from_start: bool,

    /// Where the KRaft metadata log is, which tells how many partitions __transaction_state has,
    /// when it is in none of the directories given.
    #[arg(long, value_name = "DIR")]
    metadata: Option<PathBuf>,

    /// Beside a running broker, call no transaction younger than this hanging: it may have begun
    /// or ended between two looks. (Kafka's transaction.max.timeout.ms.)
    #[arg(long, allow_negative_numbers = true, value_name = "MS",
          default_value_t = 900_000, value_parser = clap::value_parser!(i64).range(0..))]
    max_timeout_ms: i64,

    /// Take this as the time of day, in milliseconds since 1970.
    #[arg(long, allow_negative_numbers = true, value_name = "MS",
          value_parser = clap::value_parser!(i64).range(0..))]
    now_ms: Option<i64>,
}

/// The transactions of one partition.
struct PartitionTxns {
    dir: PartitionDir,
    found: Transactions,
    open: Vec<(OpenTransaction, Verdict)>,
    /// Aborted ones with the timestamp of their marker, where they are listed.
    aborted: Vec<(AbortedTxn, Option<i64>)>,
}

/// Lists the transactions of all paths.
pub(crate) fn run(args: &TxnsArgs, session: &Session) -> std::io::Result<Outcome> {
    let mut job = Job {
        args,
        session,
        now_ms: args.now_ms.unwrap_or_else(time::now_ms),
        outcome: Outcome::Fine,
        dirs: Vec::new(),
        partitions: Vec::new(),
    };
    job.gather();
    let total = job.partitions.iter().map(|(_, size)| size).sum();
    let progress = Progress::start("read", total, session.quiet);
    let mut read: Vec<(PartitionDir, Transactions)> = Vec::new();
    for (dir, _) in std::mem::take(&mut job.partitions) {
        let found = read_transactions(
            session.storage(),
            &dir.path,
            args.from_start,
            session.maps,
            &progress,
        );
        match found {
            Ok(found) => read.push((dir, found)),
            Err(error) => job.fail(&error),
        }
    }
    progress.finish();
    let judge = job.judge();
    let partitions: Vec<PartitionTxns> =
        read.into_iter().map(|(dir, found)| job.judged(dir, found, &judge)).collect();
    print::print(args, &partitions, &judge, job.now_ms)?;
    Ok(job.outcome)
}

struct Job<'a> {
    args: &'a TxnsArgs,
    session: &'a Session,
    now_ms: i64,
    outcome: Outcome,
    /// The log directories that are given or that hold what is given.
    dirs: Vec<PathBuf>,
    partitions: Vec<(PartitionDir, u64)>,
}

impl Job<'_> {
    fn fail(&mut self, error: &Error) {
        complain(error);
        self.outcome = Outcome::CouldNotLook;
    }

    fn gather(&mut self) {
        let storage = self.session.storage();
        for path in &distinct(&self.args.paths) {
            let found = Target::classify(storage, path).and_then(|target| {
                if let Target::File { path, .. } = &target {
                    let why = "a file: name its partition directory";
                    return Err(Error::new(Kind::InvalidArgument, why).in_file(path));
                }
                Ok((PartitionDir::of_target(storage, &target)?, target))
            });
            match found {
                Ok((partitions, target)) => {
                    let dir = match &target {
                        Target::LogDir(path) => Some(path.as_path()),
                        other => other.path().parent(),
                    };
                    self.dirs.extend(dir.map(Path::to_path_buf));
                    let live = partitions.into_iter().filter(PartitionDir::is_live);
                    for partition in live {
                        self.add(partition);
                    }
                }
                Err(error) => self.fail(&error),
            }
        }
        self.dirs.sort();
        self.dirs.dedup();
    }

    fn add(&mut self, partition: PartitionDir) {
        match LogFacts::read(self.session.storage(), &partition.path) {
            Ok(facts) => self.partitions.push((partition, facts.log_size_bytes())),
            Err(error) => self.fail(&error),
        }
    }

    fn judge(&mut self) -> Judge {
        let (judge, errors) = Judge::read(self.session, &self.dirs, self.args.metadata.as_deref());
        for error in &errors {
            self.fail(error);
        }
        judge.with_clock(self.now_ms, self.args.max_timeout_ms)
    }

    fn judged(&mut self, dir: PartitionDir, found: Transactions, judge: &Judge) -> PartitionTxns {
        let open: Vec<_> =
            found.open.iter().map(|txn| (*txn, judge.of(dir.folder.as_ref(), txn))).collect();
        let hangs = open.iter().any(|(_, verdict)| verdict.is_hanging());
        for problem in &found.problems {
            complain(&format_args!("{}: {problem}", dir.path.display()));
            let outcome = match problem.code {
                Code::Unreadable => Outcome::CouldNotLook,
                // Beside a running broker, an unfinished tail is no damage.
                Code::TornBatch | Code::ZeroTail if judge.is_running => Outcome::Fine,
                _ => Outcome::Problems,
            };
            self.outcome = self.outcome.max(outcome);
        }
        if hangs {
            self.outcome = self.outcome.max(Outcome::Problems);
        }
        let aborted = match self.aborted(&dir, &found) {
            Ok(aborted) => aborted,
            Err(error) => {
                self.fail(&error);
                Vec::new()
            }
        };
        PartitionTxns { dir, found, open, aborted }
    }

    /// The aborted transactions with the timestamps of their markers, when they are wanted.
    fn aborted(
        &self,
        dir: &PartitionDir,
        found: &Transactions,
    ) -> Result<Vec<(AbortedTxn, Option<i64>)>> {
        if !self.args.aborted || found.aborted.is_empty() {
            return Ok(Vec::new());
        }
        let storage = self.session.storage();
        let facts = LogFacts::read(storage, &dir.path)?;
        let ended = |txn: &AbortedTxn| -> Result<Option<i64>> {
            let marker = facts.find_batch(storage, txn.last_offset, self.session.maps)?;
            let marker = marker.filter(|(batch, _)| batch.producer_id == txn.producer_id);
            Ok(marker.map(|(batch, _)| batch.max_timestamp))
        };
        found.aborted.iter().map(|txn| Ok((*txn, ended(txn)?))).collect()
    }
}
