//! `siltstone rebuild-aux`: replicas that begin behind what remote storage holds.

mod plan;
mod print;

use std::path::{Path, PathBuf};

use clap::Args;
use siltstone::dir::files::LOCK_FILE;
use siltstone::dir::recover::lock_log_dir;
use siltstone::io::Storage;
use siltstone::tier::{
    AuxInstalled, AuxJob, AuxLimits, AuxPlace, AuxResult, build_aux_bulk, plan_aux_bulk,
};
use siltstone::{Error, Kind, Result};

use crate::Outcome;
use crate::given::distinct;
use crate::rebuild_aux::plan::{Plan, Step};
use crate::remote::{READERS, Remote};
use crate::session::{Session, complain};
use crate::target::Target;
use crate::time::now_ms;

/// Rebuild replicas of a stopped broker from remote storage, up to the end of what was uploaded.
///
/// A replica of a topic with remote storage needs little to follow its leader: the leader epochs
/// and the producers at the end of an uploaded segment. `rebuild-aux` reads both, checks them, and
/// puts them in place for all replicas at once; the broker then fetches what lies behind, and
/// nothing else. Replicas that have records, or had later ones, are left alone unless --partition
/// names them: their records go, and are read from remote storage from then on.
///
/// It can be killed at any moment and started again: each replica is then as it was, or rebuilt. A
/// directory that a running broker holds locked is refused.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone rebuild-aux --dry-run --remote /mnt/remote /var/lib/kafka
      which empty replicas would be rebuilt, and where they would begin
  siltstone rebuild-aux --remote s3://bucket/tier --partition orders-0 /var/lib/kafka
      one replica, whatever it has now; its folder is made if it is missing

Exit codes: 0 all that was to be rebuilt is, 1 a replica was not, 2 could not look or write.")]
pub(crate) struct RebuildAuxArgs {
    /// Log directories (entries of log.dirs).
    #[arg(required = true, value_name = "LOGDIR")]
    dirs: Vec<PathBuf>,

    /// Where the uploaded segments are: a folder in the layout of Kafka's LocalTieredStorage, or
    /// the URL of one in an object store (s3://, gs://, az://, https://).
    #[arg(long, value_name = "DIR|URL")]
    remote: PathBuf,

    /// Rebuild this replica, even if it has records, or is not there yet: then it is made in the
    /// first LOGDIR. May be given several times; by default every empty replica is rebuilt.
    #[arg(long = "partition", value_name = "TOPIC-N")]
    partitions: Vec<String>,

    /// Where the leaders' logs start. By default what log-start-offset-checkpoint says, or the
    /// first whole segment in remote storage, whichever is higher.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(0..))]
    log_start_offset: Option<i64>,

    /// Begin behind the segment that holds the offset before this one, in place of the last one.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(1..))]
    start_offset: Option<i64>,

    /// Print the plan and write nothing. Both objects of each replica are read and checked, so
    /// what is planned is what would be done.
    #[arg(long)]
    dry_run: bool,

    /// One JSON object a line, one for each replica.
    #[arg(long)]
    json: bool,

    /// Threads to work with; by default one for each processor.
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Take this as the time of day, in milliseconds since 1970.
    #[arg(long, allow_negative_numbers = true, value_name = "MS",
          value_parser = clap::value_parser!(i64).range(0..))]
    now_ms: Option<i64>,
}

/// Runs the verb.
pub(crate) fn run(args: &RebuildAuxArgs, session: &Session) -> std::io::Result<Outcome> {
    match rebuild(args, session) {
        Ok((steps, results)) => print::print(args.json, args.dry_run, &steps, &results),
        Err(error) => {
            complain(&error);
            Ok(Outcome::CouldNotLook)
        }
    }
}

/// What came of each step, or would; `None` where there was nothing to do.
type Results = Vec<Option<AuxResult<AuxInstalled>>>;

fn rebuild(args: &RebuildAuxArgs, session: &Session) -> Result<(Vec<Step>, Results)> {
    let storage = session.storage();
    let dirs = log_dirs(args, storage)?;
    let mut locks = Vec::new();
    for dir in &dirs {
        if args.dry_run {
            session.point_out_broker(dir);
        } else {
            locks.push(lock_log_dir(storage, dir)?);
        }
    }
    let remote = Remote::open(session, &args.remote)?;
    let plan = Plan {
        storage,
        remote: &remote,
        dirs: &dirs,
        named: &args.partitions,
        log_start_offset: args.log_start_offset,
        start_offset: args.start_offset,
    };
    let steps = plan.steps()?;
    let (numbers, jobs): (Vec<usize>, Vec<AuxJob<'_>>) = (steps.iter().enumerate())
        .filter_map(|(number, step)| {
            let (segment, log_start_offset) = step.begins_behind.as_ref().ok()?;
            let (place, log_start_offset) = (AuxPlace::Dir(&step.dir), *log_start_offset);
            Some((number, AuxJob { place, segment, log_start_offset }))
        })
        .unzip();
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let limits = AuxLimits {
        threads: args.threads.map_or(available, usize::from),
        readers: if remote.is_far() { READERS } else { 1 },
        ..AuxLimits::new(args.now_ms.unwrap_or_else(now_ms))
    };
    let outcomes = if args.dry_run {
        plan_aux_bulk(&jobs, remote.of_aux(), limits.object_bytes_max, READERS)
    } else {
        build_aux_bulk(storage, &jobs, remote.of_aux(), &limits)
    };
    let mut results: Results = steps.iter().map(|_| None).collect();
    for (number, outcome) in numbers.into_iter().zip(outcomes) {
        if let Some(slot) = results.get_mut(number) {
            *slot = Some(outcome);
        }
    }
    Ok((steps, results))
}

/// The log directories that are given; nothing else is written into. One that is empty may be that
/// of a new disk: it is taken for one where replicas are named.
fn log_dirs(args: &RebuildAuxArgs, storage: &dyn Storage) -> Result<Vec<PathBuf>> {
    let is_empty = |dir: &Path| {
        let entries = storage.list(dir);
        entries.is_ok_and(|entries| entries.iter().all(|entry| entry.name == LOCK_FILE))
    };
    let classified =
        distinct(&args.dirs).into_iter().map(|path| match Target::classify(storage, &path) {
            Ok(Target::LogDir(dir)) => Ok(dir),
            Ok(Target::Partition(_) | Target::File { .. }) => {
                let why =
                    "no log directory; name the one around it, and the replica with --partition";
                Err(Error::new(Kind::InvalidArgument, why).in_file(&path))
            }
            Err(_) if !args.partitions.is_empty() && is_empty(&path) => Ok(path),
            Err(error) => Err(error),
        });
    classified.collect()
}
