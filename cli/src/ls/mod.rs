//! `siltstone ls`: what lies in log directories, by names, sizes and a look at the end of each log.

mod assignment;
mod listing;
mod print;

use std::path::PathBuf;

use clap::Args;

use crate::given::distinct;
use crate::session::{Session, complain};
use crate::target::Target;
use crate::{Outcome, output};

use assignment::Assignments;
use listing::LogDir;

/// List the partitions of log directories.
///
/// Tells partitions in use from those that Kafka has set aside (-delete, -stray), is moving
/// (-future), and from folders that would stop it from starting (unknown), with size, first and end
/// offset and last write. Only names, sizes and the end of each log are looked at, which takes
/// moments; it works beside a running broker and on read-only media.
///
/// Where the metadata log is found (in one of the directories, or by --metadata), it also says
/// which replicas do not belong here and which are missing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone ls /disk1/kafka /disk2/kafka
      every partition of a broker
  siltstone ls --segments /disk1/kafka/orders-0
      the segments of one partition: sizes, index sizes, largest timestamp, last write
  siltstone ls --json /disk1/kafka | jq -r 'select(.kind == \"stray\") | .path'
      what Kafka has kept aside

Exit codes: 0 nothing wrong, 1 something that would stop Kafka from starting,
2 something could not be looked at.")]
pub(crate) struct LsArgs {
    /// Log directories (entries of log.dirs) or partition directories.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// List the segments of each partition.
    #[arg(long, short)]
    segments: bool,

    /// One JSON object a line: `type` is log_dir, partition, missing or segment.
    #[arg(long)]
    json: bool,

    /// Where the KRaft metadata log is, when it is in none of the directories given.
    #[arg(long, value_name = "DIR")]
    metadata: Option<PathBuf>,
}

/// Lists all paths.
pub(crate) fn run(args: &LsArgs, session: &Session) -> std::io::Result<Outcome> {
    let storage = session.storage();
    let mut outcome = Outcome::Fine;
    let mut dirs: Vec<LogDir> = Vec::new();
    for path in &distinct(&args.paths) {
        let listed = Target::classify(storage, path).and_then(|target| match target {
            Target::LogDir(path) => LogDir::read(session, &path),
            Target::Partition(path) => LogDir::of_partition(session, &path),
            Target::File { path, .. } => Err(siltstone::Error::new(
                siltstone::Kind::InvalidArgument,
                "a file: ls lists directories; `siltstone dump` shows files",
            )
            .in_file(&path)),
        });
        match listed {
            Ok(dir) => dirs.push(dir),
            Err(error) => {
                complain(&error);
                outcome = Outcome::CouldNotLook;
            }
        }
    }
    listing::note_duplicates(&mut dirs);
    let assignments = Assignments::load(session, args.metadata.as_deref(), &dirs);
    let assignments = match assignments {
        Ok(assignments) => assignments,
        Err(error) => {
            complain(&error);
            outcome = Outcome::CouldNotLook;
            None
        }
    };
    if let Some(assignments) = &assignments {
        if !assignments.loaded.is_whole {
            outcome = Outcome::CouldNotLook;
        }
        assignments.annotate(&mut dirs);
    }
    let mut out = output::stdout();
    print::print(&mut out, args, &dirs, assignments.as_ref())?;
    std::io::Write::flush(&mut out)?;
    Ok(dirs.iter().map(LogDir::outcome).fold(outcome, Outcome::max))
}
