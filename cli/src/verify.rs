//! `siltstone verify`: every problem of log directories, partitions or files, none repaired.

use std::collections::BTreeMap;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::Args;
use serde_json::{Value, json};
use siltstone::dir::verify::{
    LogDirSurvey, PartitionFolder, Surroundings, find_duplicates, survey_log_dir, verify_partitions,
};
use siltstone::log::verify::{Depth, Verdict};
use siltstone::log::{LogFacts, PartitionReport, VerifyOptions, verify_file, verify_partition};
use siltstone::problem::{Code, Problem, Severity};
use siltstone::uuid::Uuid;

use crate::Outcome;
use crate::given::distinct;
use crate::output::{Align, Table, print_json, stdout, told};
use crate::progress::Progress;
use crate::remote::Remote;
use crate::report;
use crate::session::{Session, complain};
use crate::target::Target;
use crate::time::now_ms;

/// Find every problem of log directories, partitions or single files, and repair none.
///
/// Reads every batch of every segment and every record in it, compressed ones too; derives from
/// them what indexes, producer snapshots and leader epochs should say, as Kafka does after a kill;
/// and compares. Nothing is written, so it works beside a running broker and on read-only media.
///
/// What is found has a code that stays the same from release to release, and a severity:
/// `repairable` (the log is whole, a file derived from it is wrong), `corrupt` (bytes of the log
/// are wrong), `refused` (nothing can be said). Notices are worth knowing and no problem.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  siltstone verify /var/lib/kafka
      all partitions of a log directory; those with problems are printed
  siltstone verify /var/lib/kafka/orders-0
      one partition, and what its log holds
  siltstone verify --json /disk1/kafka /disk2/kafka
      one JSON object a line, one for each partition
  siltstone verify /var/lib/kafka/orders-0/00000000000000000000.index
      one index against the log beside it

Exit codes: 0 nothing wrong (there may be notices), 1 problems found,
2 something could not be looked at.")]
pub(crate) struct VerifyArgs {
    /// Log directories (entries of log.dirs), partition directories or files.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// One JSON object a line, one for each partition or file.
    #[arg(long)]
    json: bool,

    /// Look at the header and checksum of every batch, but not at its records.
    #[arg(long)]
    batches_only: bool,

    /// Compare with remote storage, too: a folder in the layout of Kafka's LocalTieredStorage, or
    /// the URL of one in an object store (s3://, gs://, az://, https://).
    ///
    /// Finds replicas that were damaged when they were rebuilt from there (producers or leader
    /// epochs that were forgotten), and segments there that lack parts, aborted transactions or
    /// offsets, or have other bytes than the log here. Every segment there is read.
    #[arg(long, value_name = "DIR|URL")]
    remote: Option<PathBuf>,

    /// Threads to work with; by default one for each processor.
    #[arg(long, allow_negative_numbers = true, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,

    /// Take this as the log start offset, in place of log-start-offset-checkpoint. For one
    /// partition.
    #[arg(long, allow_negative_numbers = true, value_name = "OFFSET",
          value_parser = clap::value_parser!(i64).range(0..))]
    log_start_offset: Option<i64>,

    /// The topic id that the partition must have. For one partition.
    #[arg(long, value_name = "BASE64", value_parser = parse_id)]
    topic_id: Option<Uuid>,

    /// The topic's max.message.bytes. It limits what producers may append, not what is stored:
    /// larger batches are no problem.
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES")]
    max_message_bytes: Option<u64>,

    /// Take a batch that opens to more than this for one that cannot be opened.
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES",
          default_value_t = u64::from(u32::MAX >> 1))]
    max_decompressed_bytes: u64,

    /// Take this as the time of day, in milliseconds since 1970. For runs that must give the same
    /// answer.
    #[arg(long, allow_negative_numbers = true, value_name = "MS",
          value_parser = clap::value_parser!(i64).range(0..))]
    now_ms: Option<i64>,

    /// Producers that were silent for longer may be missing from snapshots (Kafka's
    /// producer.id.expiration.ms).
    #[arg(long, allow_negative_numbers = true, value_name = "MS",
          default_value_t = 86_400_000, value_parser = clap::value_parser!(i64).range(1..))]
    producer_id_expiration_ms: i64,
}

fn parse_id(text: &str) -> Result<Uuid, String> {
    Uuid::parse(text).ok_or_else(|| "a topic id has 22 characters of base64url".to_owned())
}

impl VerifyArgs {
    /// The first option that is given and can be right for a single partition only.
    fn of_one_partition(&self) -> Option<&'static str> {
        let start = self.log_start_offset.map(|_| "--log-start-offset");
        start.or(self.topic_id.map(|_| "--topic-id"))
    }
}

/// Runs the verb.
pub(crate) fn run(args: &VerifyArgs, session: &Session) -> std::io::Result<Outcome> {
    let mut work = Work::gather(args, session);
    if let Some(option) = args.of_one_partition().filter(|_| work.partition_count() > 1) {
        complain(&format_args!("{option} is for one partition; name its directory alone"));
        return Ok(Outcome::CouldNotLook);
    }
    // A slip in its name is told before hours of reading.
    let remote = args.remote.as_deref().and_then(|path| work.open_remote(session, path));
    let progress =
        Progress::start("verified", work.size_bytes(session), session.quiet || args.json);
    let options = VerifyOptions {
        log_start_offset: args.log_start_offset,
        topic_id: args.topic_id,
        now_ms: args.now_ms.unwrap_or_else(now_ms),
        producer_id_expiration_ms: args.producer_id_expiration_ms,
        depth: if args.batches_only { Depth::Batches } else { Depth::Records },
        max_decompressed_bytes: args.max_decompressed_bytes,
        maps: session.maps,
        progress: &progress,
        ..VerifyOptions::default()
    };
    let tally = Tally { json: args.json, outcome: work.outcome, counts: BTreeMap::new() };
    let printer = Printer { progress: &progress, tally: Mutex::new((tally, Ok(()))) };
    for target in &work.single {
        verify_single(session, target, &options, &printer);
    }
    if !work.surveys.is_empty() {
        verify_dirs(args, session, &work, &options, &printer);
    }
    if let Some(remote) = &remote {
        verify_remote(session, remote, &work, &options, &printer);
    }
    progress.finish();
    printer.finish(&work)
}

/// What there is to do.
#[derive(Default)]
struct Work {
    single: Vec<Target>,
    surveys: Vec<LogDirSurvey>,
    /// How it stands before anything was checked: paths may be missing.
    outcome: Outcome,
}

impl Work {
    fn gather(args: &VerifyArgs, session: &Session) -> Work {
        let mut work = Work::default();
        let storage = session.storage();
        for path in &distinct(&args.paths) {
            let target = match Target::classify(storage, path) {
                Ok(Target::LogDir(dir)) => match survey_log_dir(storage, &dir) {
                    Ok(survey) => {
                        work.surveys.push(survey);
                        continue;
                    }
                    Err(error) => Err(error),
                },
                other => other,
            };
            match target {
                Ok(target) => work.single.push(target),
                Err(error) => {
                    complain(&error);
                    work.outcome = Outcome::CouldNotLook;
                }
            }
        }
        find_duplicates(&mut work.surveys);
        work
    }

    fn open_remote(&mut self, session: &Session, path: &Path) -> Option<Remote> {
        let outcome = Remote::open(session, path).inspect_err(|error| complain(error));
        if outcome.is_err() {
            self.outcome = Outcome::CouldNotLook;
        }
        outcome.ok()
    }

    fn partition_count(&self) -> usize {
        let of_dirs = self.surveys.iter().map(|survey| survey.partitions.len());
        of_dirs.fold(self.single.len(), usize::saturating_add)
    }

    /// Bytes of all logs there are to read.
    fn size_bytes(&self, session: &Session) -> u64 {
        let storage = session.storage();
        let single = self.single.iter().map(|target| match target {
            Target::File { path, .. } => storage.metadata(path).map_or(0, |file| file.size_bytes),
            Target::Partition(dir) | Target::LogDir(dir) => {
                LogFacts::read(storage, dir).map_or(0, |facts| facts.log_size_bytes())
            }
        });
        let dirs = self.surveys.iter().map(LogDirSurvey::log_size_bytes);
        single.chain(dirs).fold(0, u64::saturating_add)
    }
}

fn verify_single(
    session: &Session,
    target: &Target,
    options: &VerifyOptions<'_>,
    printer: &Printer<'_>,
) {
    let storage = session.storage();
    let report = match target {
        Target::File { path, .. } => verify_file(storage, path, options),
        Target::Partition(dir) | Target::LogDir(dir) => {
            let options = Surroundings::of(storage, dir).apply(options);
            verify_partition(storage, dir, &options)
        }
    };
    match report {
        Ok(report) => printer.report(&report, true),
        Err(error) => printer.could_not_look(&error),
    }
}

/// All partitions of all log directories, side by side.
fn verify_dirs(
    args: &VerifyArgs,
    session: &Session,
    work: &Work,
    options: &VerifyOptions<'_>,
    printer: &Printer<'_>,
) {
    for survey in &work.surveys {
        printer.directory(survey);
    }
    let threads = match args.threads {
        Some(threads) => usize::from(threads),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    let options = VerifyOptions { records_listed_max: 0, ..*options };
    let folders: Vec<PartitionFolder> =
        work.surveys.iter().flat_map(|survey| &survey.partitions).cloned().collect();
    let each = |_: &PartitionFolder, report: siltstone::Result<PartitionReport>| match report {
        Ok(report) => printer.report(&report, false),
        Err(error) => printer.could_not_look(&error),
    };
    if let Err(error) = verify_partitions(session.storage(), &folders, &options, threads, &each) {
        printer.could_not_look(&error);
    }
}

/// All partitions against what was uploaded of them.
fn verify_remote(
    session: &Session,
    remote: &Remote,
    work: &Work,
    options: &VerifyOptions<'_>,
    printer: &Printer<'_>,
) {
    let single = work.single.iter().filter_map(|target| match target {
        Target::Partition(dir) => Some(dir),
        Target::File { .. } | Target::LogDir(_) => None,
    });
    let folders = work.surveys.iter().flat_map(|survey| &survey.partitions);
    for dir in single.chain(folders.map(|folder| &folder.path)) {
        match remote.check(session.storage(), dir, options) {
            Ok(problems) => printer.remote(dir, &problems),
            Err(error) => printer.could_not_look(&error),
        }
    }
}

/// Prints reports as they come, from whatever thread.
struct Printer<'a> {
    progress: &'a Progress,
    tally: Mutex<(Tally, std::io::Result<()>)>,
}

/// What was found so far.
struct Tally {
    json: bool,
    outcome: Outcome,
    counts: BTreeMap<Verdict, u64>,
}

impl Printer<'_> {
    fn locked(&self, print: impl FnOnce(&mut Tally, &mut dyn Write) -> std::io::Result<()>) {
        let Ok(mut guard) = self.tally.lock() else { return };
        let (tally, written) = &mut *guard;
        if written.is_ok() {
            *written = self.progress.suspend(|| {
                let mut out = stdout();
                print(tally, &mut out).and_then(|()| out.flush())
            });
        } else {
            // Nobody reads any more, and the exit still says what was found.
            let _ = print(tally, &mut std::io::sink());
        }
    }

    /// A partition or file; a sound one of many is only counted.
    fn report(&self, report: &PartitionReport, is_single: bool) {
        self.locked(|tally, out| {
            let verdict = report.verdict();
            *tally.counts.entry(verdict).or_default() += 1;
            tally.take(outcome_of(&report.problems));
            if tally.json {
                print_json(out, &Value::Object(report::to_json(report)))
            } else if is_single || verdict != Verdict::Ok || has_news(report) {
                report::print(out, report)
            } else {
                Ok(())
            }
        });
    }

    /// What is wrong with a log directory itself.
    fn directory(&self, survey: &LogDirSurvey) {
        self.locked(|tally, out| {
            tally.take(outcome_of(&survey.problems));
            if survey.problems.is_empty() {
                return Ok(());
            }
            if tally.json {
                let problems = survey.problems.iter().map(report::problem_json);
                let object = json!({
                    "type": "log_dir",
                    "path": survey.path.to_string_lossy(),
                    "clean_shutdown": survey.is_clean,
                    "problems": problems.collect::<Vec<_>>(),
                });
                return print_json(out, &object);
            }
            writeln!(out, "{}:", survey.path.display())?;
            report::print_problems(out, &survey.problems)
        });
    }

    /// What is wrong with a partition and what was uploaded of it.
    fn remote(&self, dir: &Path, problems: &[Problem]) {
        self.locked(|tally, out| {
            tally.take(outcome_of(problems));
            if problems.is_empty() {
                return Ok(());
            }
            if tally.json {
                let object = json!({
                    "type": "remote",
                    "path": dir.to_string_lossy(),
                    "problems": problems.iter().map(report::problem_json).collect::<Vec<_>>(),
                });
                return print_json(out, &object);
            }
            writeln!(out, "{} and remote storage:", dir.display())?;
            report::print_problems(out, problems)
        });
    }

    fn could_not_look(&self, error: &siltstone::Error) {
        self.locked(|tally, _| {
            tally.take(Outcome::CouldNotLook);
            complain(error);
            Ok(())
        });
    }

    fn finish(self, work: &Work) -> std::io::Result<Outcome> {
        let (tally, written) =
            self.tally.into_inner().map_err(|_| Error::other("a thread has panicked"))?;
        if written.is_err() {
            return told(written, tally.outcome);
        }
        if !tally.json && !work.surveys.is_empty() {
            let mut table = Table::new(&[("VERDICT", Align::Left), ("PARTITIONS", Align::Right)]);
            for (verdict, count) in &tally.counts {
                table.row([verdict.as_str().to_owned(), count.to_string()]);
            }
            let mut out = stdout();
            table.print(&mut out, 0)?;
            let skipped: usize = work.surveys.iter().map(|survey| survey.skipped.len()).sum();
            if skipped > 0 {
                writeln!(out, "{skipped} folders to be deleted, or stray, were not looked at")?;
            }
            out.flush()?;
        }
        Ok(tally.outcome)
    }
}

impl Tally {
    fn take(&mut self, outcome: Outcome) {
        self.outcome = self.outcome.max(outcome);
    }
}

/// Whether a sound partition is worth a word: not for what is natural while a broker writes to it.
fn has_news(report: &PartitionReport) -> bool {
    let news = [
        Code::FutureTimestamp,
        Code::OpenTransaction,
        Code::Leftover,
        Code::UnknownFile,
        Code::Lost,
    ];
    report.notices.iter().any(|notice| news.contains(&notice.code))
}

/// How these problems end the run.
fn outcome_of(problems: &[Problem]) -> Outcome {
    let is_problem = |problem: &&Problem| problem.severity > Severity::Notice;
    if problems.iter().any(|problem| problem.code == Code::Unreadable) {
        Outcome::CouldNotLook
    } else if problems.iter().filter(is_problem).count() > 0 {
        Outcome::Problems
    } else {
        Outcome::Fine
    }
}
